"""``python -m tests.extras WHEEL``: is each extra enough for what it is for? For each a fresh environment with the wheel, and a program.

Two at a time, each from an environment with nothing but the wheel's own requirements, which is made once: its files are linked, as
unpacking them takes longer than most programs. That of notebooks leaves them, as they ran, where that of the documentation finds them.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.paths import ROOT

_CORNER = r"""
triangles = "0 0 0, 0 1 0, 1 0 0", "0 0 0, 1 0 0, 0 0 1", "0 0 0, 0 0 1, 0 1 0", "1 0 0, 0 1 0, 0 0 1"
with open("corner.stl", "w") as file:
    file.write("solid corner\n")
    for triangle in triangles:
        vertices = "".join(f"vertex {place}\n" for place in triangle.split(", "))
        file.write(f"facet normal 0 0 0\nouter loop\n{vertices}endloop\nendfacet\n")
    file.write("endsolid\n")
assert abs(nsds.shapes.volume(nsds.shapes.from_file("corner.stl")) - 1 / 6) < 1e-12
"""
_ROBOT = """
door = nsds.robot('''<robot name="door"> <link name="wall"/>
<link name="leaf"> <inertial> <mass value="3"/> <inertia ixx="1" iyy="1" izz="1"/> </inertial> </link>
<joint name="hinge" type="continuous"> <parent link="wall"/> <child link="leaf"/> <axis xyz="0 0 1"/> </joint> </robot>''')
nsds.simulate(nsds.system(**door), t_end=0.1, h=0.01)
"""
_CLUSTER = """
from distributed import Client, LocalCluster

def logistic(x, p, out):
    out[0] = p[0] * x[0] * (1 - x[0])

if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        values = {"vary": {"p[0]": [2.9, 3.2]}, "direction": None}
        rows = nsds.sweep(nsds.iterated_map(logistic, x=[0.3], p=[2.9]), **values, store="sweep", client=client)
    assert rows["n_periods"].tolist() == [1, 2]
"""
_BALL = "ball = nsds.examples.bouncing_ball()\n"
_NOTEBOOKS = f"""
import sys
from pathlib import Path

sys.path.append({str(ROOT)!r})  # behind what is installed, as the package in a checkout is not whole
from tests.run_notebooks import main

if __name__ == "__main__":
    main(Path({str(ROOT / "docs" / "generated" / "notebooks")!r}), is_kept=False, names=())  # figures depend on the processor: only told
"""
# extra -> programs in Python, or commands of the environment
PROGRAMS = {
    "plot": ["nsds run cam_follower --rpm 358 --plot cam.png --save cam.npz"],
    "io": [_BALL + "nsds.stream(ball, 'ball.h5', t_end=0.1, h=1e-3)\nassert len(nsds.read_trajectory('ball.h5')) == 101"],
    "view": ["nsds.view(nsds.examples.dominoes(), port=0).stop()"],
    "meshes": [_CORNER],
    "urdf": [_CORNER, _ROBOT],
    "fem": ["block = nsds.examples.sheared_block()\nnsds.step(block, 1e-3)"],
    "distributed": [_CLUSTER],
    "pandas": [_BALL + "nsds.to_pandas(nsds.simulate(ball, t_end=0.1, h=1e-3))"],
    "xarray": [_BALL + "nsds.to_xarray(nsds.simulate(ball, t_end=0.1, h=1e-3))"],
    "notebooks": [_NOTEBOOKS],
    "docs": [f"sphinx-build -q -W --keep-going {ROOT / 'docs'} site"],
}


def bare(wheel, folder):
    """A fresh environment with all that the wheel requires, but without itself."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    _pip(folder, "install", "--no-compile", wheel)
    _pip(folder, "uninstall", "-y", "nsds")  # its script starts the Python of this folder


def _pip(folder, *arguments):
    subprocess.run([folder / "bin" / "python", "-m", "pip", "-q", "--disable-pip-version-check", *arguments], check=True)


def tried(extra, wheel, begin, folder):
    """(whether something is wrong with an extra, what its programs say). begin: an environment as `bare` makes it."""
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "MPLBACKEND": "Agg"}
    shutil.copytree(begin, folder, symlinks=True, copy_function=os.link)
    _pip(folder, "install", "--no-compile", f"{wheel}[{extra}]")
    said = ""
    for program in PROGRAMS[extra]:
        command = program.split() if program.startswith(("nsds ", "sphinx-")) else ["python", "program.py"]
        (folder / "program.py").write_text(f"import nsds\n{program}")
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        said += done.stdout
        if done.returncode:
            return True, said + done.stderr
    return False, said


def in_turn(extras):
    """Those that come one behind another, the longest first: documentation after notebooks, all others by themselves."""
    linked = [extra for extra in ("notebooks", "docs") if extra in extras]
    return [linked] * bool(linked) + [[extra] for extra in extras if extra not in linked]


def try_all(extras, wheel, folder):
    """How many of these extras fail, which are tried one behind another; tells what their programs say."""
    failed = 0
    for extra in extras:
        began = time.perf_counter()
        is_wrong, said = tried(extra, wheel, folder / "bare", folder / extra)
        shutil.rmtree(folder / extra)
        failed += is_wrong
        print(f"{extra}: {time.perf_counter() - began:.0f} s {'failed' if is_wrong else ''}\n{said}", end="", flush=True)
    return failed


def main():
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("extras", nargs="*", default=list(PROGRAMS), help="all but test by default")
    arguments = parser.parse_args()
    wheel = arguments.wheel.resolve()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        folder = Path(name)
        bare(wheel, folder / "bare")
        failed = sum(pool.map(lambda extras: try_all(extras, wheel, folder), in_turn(arguments.extras)))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
