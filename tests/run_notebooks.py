"""Run every notebook from top to bottom: ``python -m tests.run_notebooks``."""

import sys
import time

import nbformat
from nbclient import NotebookClient

from tests.paths import ROOT


def main():
    """Execute the notebooks in place, in memory only; the first error ends the run with its traceback."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        began = time.perf_counter()
        notebook = nbformat.read(path, as_version=4)
        if any(cell.get("outputs") for cell in notebook.cells):
            sys.exit(f"{path.name}: outputs are not kept in the repository, clear them")
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": path.parent}}).execute()
        print(f"{path.name}: ran in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
