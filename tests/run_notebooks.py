"""Run every notebook from top to bottom: ``python -m tests.run_notebooks``; with ``--save FOLDER`` as it was executed goes there."""

import argparse
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tests.paths import ROOT


def main(folder=None):
    """Execute the notebooks in place, in memory only, or into a folder; the first error ends the run with its traceback."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        began = time.perf_counter()
        notebook = nbformat.read(path, as_version=4)
        if any(cell.get("outputs") for cell in notebook.cells):
            sys.exit(f"{path.name}: outputs are not kept in the repository, clear them")
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": path.parent}}).execute()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            nbformat.write(notebook, folder / path.name)
        print(f"{path.name}: ran in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="for the documentation")
    main(parser.parse_args().save)
