"""Types as users see them: ``python -m tests.type_checks`` runs mypy and pyright (extra ``types``) on `tests.typed_script`.

With ``--all`` also stubtest, which holds the stubs to the code, and the share of public names whose types pyright knows.
"""

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
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


def installed(folder):
    """The package below a folder as an installation lays it out, and the environment in which checkers find it there."""
    package = folder / "site" / "nsds"
    package.mkdir(parents=True)
    for path in [*(ROOT / "nsds").iterdir(), ROOT / "solvers", ROOT / "schemes"]:
        (package / path.name).symlink_to(path)
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
    (folder / "mypy.ini").write_text("[mypy]\nignore_errors = True\nignore_missing_imports = True\n")
    (folder / "inner.txt").write_text("\n".join(_INNER))
    options = ["--concise", "--mypy-config-file", "mypy.ini", "--allowlist", "inner.txt", "--ignore-unused-allowlist"]
    return subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "nsds", *options], cwd=folder, env=environment, capture_output=True, text=True, check=False
    ).stdout.strip()


def unknown(folder, environment):
    """(public names whose type pyright does not know, number of all public names)."""
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--verifytypes", "nsds", "--ignoreexternal", "--outputjson"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    symbols = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    public = re.compile(rf"nsds\.(({'|'.join(_PUBLIC)})\.)?(\w+|[A-Z]\w+\.\w+)")
    found = [symbol for symbol in symbols if symbol["isExported"] and public.fullmatch(symbol["name"])]
    return [symbol["name"] for symbol in found if not symbol["isTypeKnown"]], len(found)


def main(is_full):
    """The exit code."""
    if lacking():
        print(f"types: not checked, {' and '.join(lacking())} not installed: pip install '.[types]'")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = installed(folder)
        said = [text for checker in ("mypy", "pyright") if (text := complaints(checker, folder, environment))]
        if is_full:
            said += [differences(folder, environment)]
            names, n = unknown(folder, environment)
            print(f"types: {n - len(names)} of {n} public names are known to pyright; not {', '.join(names) or 'any'}")
            said += ["too few types are known"] * (n - len(names) < LEAST * n)
    said = [text for text in said if text]
    print("\n".join(said) or "types: nothing to say about the script")
    return int(bool(said))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="stubtest and the share of known types, too")
    sys.exit(main(parser.parse_args().all))
