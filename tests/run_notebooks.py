"""Run every notebook from top to bottom: ``python -m tests.run_notebooks``; with ``--save FOLDER`` as it was executed goes there."""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tests.paths import ROOT

AT_ONCE = 2


def execute(path, folder):
    """Execute a notebook in place, in memory only, or into a folder. Returns the seconds it took; an error raises with its traceback."""
    began = time.perf_counter()
    notebook = nbformat.read(path, as_version=4)
    if any(cell.get("outputs") for cell in notebook.cells):
        sys.exit(f"{path.name}: outputs are not kept in the repository, clear them")
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": path.parent}}).execute()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, folder / path.name)
    return time.perf_counter() - began


def main(folder=None):
    """Execute all notebooks; the first error ends the run."""
    paths = sorted((ROOT / "notebooks").glob("*.ipynb"))
    with ProcessPoolExecutor(AT_ONCE) as pool:
        for path, seconds in zip(paths, pool.map(partial(execute, folder=folder), paths), strict=True):
            print(f"{path.name}: ran in {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="for the documentation")
    main(parser.parse_args().save)
