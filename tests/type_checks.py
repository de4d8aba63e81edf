"""Types as users see them: ``python -m tests.type_checks`` runs mypy (extra ``types``) on `tests.typed_script`.

With ``--all`` also pyright, stubtest, which holds the stubs to the code, and ``pyright --verifytypes``, which counts the names whose types
it knows, of users' modules and of all.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.paths import ROOT

SCRIPT = ROOT / "tests" / "typed_script.py"
LEAST = 0.95
_PUBLIC = "analysis circuits examples io joints laws plotting relations rotations schemes shapes solvers status".split()  # noqa: SIM905
# Modules within these, and other ones of the package, have no stubs: what users call is stated in those of the public ones.
_INNER = (rf"nsds\.({'|'.join(_PUBLIC)})\.[a-z_0-9]+\..*", rf"nsds\.(?!{'|'.join(_PUBLIC)})[a-z_]+(\..*)?")


def lacking():
    """Names of checkers that are not installed."""
    return [name for name in ("mypy", "pyright") if importlib.util.find_spec(name) is None]


def installed(folder, with_inner=False):
    """The environment in which checkers find the package, which lies below a folder as an installation lays it out.

    with_inner: with types of all modules, as wheels have them.
    """
    package = folder / "site" / "nsds"
    for part, place in (("nsds", package), ("solvers", package / "solvers"), ("schemes", package / "schemes")):
        shutil.copytree(ROOT / part, place, ignore=shutil.ignore_patterns("__pycache__", "*.nbk"))
    if with_inner:
        from tests import stubs  # imports the package

        for path, text in stubs.inner().items():
            place = path.relative_to(ROOT)
            (package / (place.relative_to("nsds") if place.parts[0] == "nsds" else place)).write_text(text)
    return os.environ | {"PYTHONPATH": str(package.parent), "MYPYPATH": str(package.parent)}


def complaints(checker, folder, environment):
    """What a checker says about the script, as text; empty where it is satisfied."""
    script = folder / SCRIPT.name
    script.write_text(SCRIPT.read_text())
    options = ["--follow-imports=silent", "--strict"] if checker == "mypy" else ["--pythonpath", sys.executable]
    done = subprocess.run(
        [sys.executable, "-m", checker, *options, str(script)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def differences(folder, environment):
    """Lines of stubtest: where a stub of a public module says something else than the code."""
    folder.mkdir()  # of its own: its settings are not those of the script
    (folder / "mypy.ini").write_text("[mypy]\nignore_errors = True\nignore_missing_imports = True\n")
    (folder / "inner.txt").write_text("\n".join(_INNER))
    options = ["--concise", "--mypy-config-file", "mypy.ini", "--allowlist", "inner.txt", "--ignore-unused-allowlist"]
    return subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "nsds", *options], cwd=folder, env=environment, capture_output=True, text=True, check=False
    ).stdout.strip()


def unknown(folder, environment):
    """[(names whose type pyright does not know, number of names)] of all modules, and of those that users import from."""
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--verifytypes", "nsds", "--ignoreexternal", "--outputjson"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    symbols = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    public = re.compile(rf"nsds\.(({'|'.join(_PUBLIC)})\.)?(\w+|[A-Z]\w+\.\w+)")
    of_all = [symbol for symbol in symbols if symbol["isExported"]]
    of_users = [symbol for symbol in of_all if public.fullmatch(symbol["name"])]
    return [([symbol["name"] for symbol in found if not symbol["isTypeKnown"]], len(found)) for found in (of_all, of_users)]


def everything(folder):
    """What all checkers say, each in a process of its own; empty texts where they are satisfied."""
    (folder / "inner").mkdir()
    environment, with_inner = installed(folder), installed(folder / "inner", with_inner=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = [pool.submit(complaints, checker, folder, environment) for checker in ("mypy", "pyright")]
        said.append(pool.submit(differences, folder / "stubtest", environment))
        counts = pool.submit(unknown, folder / "inner", with_inner).result()
    for whose, (names, n) in zip(("all", "users' modules"), counts, strict=True):
        print(f"types: {n - len(names)} of {n} names of {whose} are known to pyright; not {', '.join(names) or 'any'}")
    return [*(one.result() for one in said), *("too few types are known" for names, n in counts if n - len(names) < LEAST * n)]


def main(is_full):
    """The exit code."""
    if lacking():
        print(f"types: not checked, {' and '.join(lacking())} not installed: pip install '.[types]'")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said = everything(folder) if is_full else [complaints("mypy", folder, installed(folder))]
    said = [text for text in said if text]
    print("\n".join(said) or "types: nothing to say")
    return int(bool(said))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="pyright, stubtest and the share of known types, too")
    sys.exit(main(parser.parse_args().all))
