"""Run every notebook and compare what it shows with what it showed when it was kept: ``python -m tests.run_notebooks``.

Numbers in texts are compared as numbers, pictures by the mean grey of 24 x 24 tiles; a cell with the tag "varies" shows times or rounding,
and is not compared.
``--keep`` writes the outputs into the notebooks instead, ``--save FOLDER`` also puts them there as executed.
"""

import argparse
import base64
import io
import os
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import nbformat
import numpy as np
from nbclient import NotebookClient
from PIL import Image

from tests.paths import ROOT

AT_ONCE = 2
PATIENCE = 3600  # s, of a cell or the start of a kernel: beside tests on all processors they get a hundredth of one
LARGEST = 100_000  # bytes of a picture that is kept
CLOSE, SMALL = 0.01, 1e-6  # relative difference of numbers; below SMALL they are rounding
_TILES, _GREY = 24, 0.1  # a tile of a picture may differ by this part of white
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")


def texts(cell):
    """All that a cell prints, and the reprs of its results; without what is said where kernels are compiled."""
    parts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", [])]
    text = "".join(part for part in parts if not part.startswith("<"))
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("nsds: compiling"))


def pictures(cell):
    """Bytes of the pictures of a cell."""
    found = [output.get("data", {}).get("image/png") for output in cell.get("outputs", [])]
    return [base64.b64decode(data) for data in found if data]


def difference(kept, made):
    """What is different between two texts, or two pictures, as text; empty if nothing is."""
    if isinstance(kept, bytes):
        sizes = [Image.open(io.BytesIO(data)).size for data in (kept, made)]
        if abs(sizes[0][0] / sizes[0][1] - sizes[1][0] / sizes[1][1]) > CLOSE * sizes[0][0] / sizes[0][1]:
            return f"picture of {sizes[1]} instead of {sizes[0]} pixels"
        grey = [
            np.asarray(Image.open(io.BytesIO(data)).convert("RGB").convert("L").resize((_TILES, _TILES), Image.BOX))
            for data in (kept, made)
        ]
        worst = np.abs(grey[0] / 255.0 - grey[1] / 255.0).max()
        return f"picture: a tile differs by {worst:.2f} of white" if worst > _GREY else ""
    words = [_NUMBER.sub("#", " ".join(text.split())) for text in (kept, made)]
    numbers = [np.array(_NUMBER.findall(text), float) for text in (kept, made)]
    if words[0] != words[1]:
        return f"{made.strip()!r} instead of {kept.strip()!r}"
    is_far = ~np.isclose(numbers[1], numbers[0], rtol=CLOSE, atol=SMALL)
    return ", ".join(f"{a:g} instead of {b:g}" for a, b in zip(numbers[1][is_far], numbers[0][is_far], strict=True))


def compared(kept, made):
    """Lines on the cells that show something else than when they were kept."""
    for i, (old, new) in enumerate(zip(kept.cells, made.cells, strict=True)):
        if old.cell_type != "code" or "varies" in old.metadata.get("tags", []):
            continue
        if len(pictures(old)) != len(pictures(new)):
            yield f"cell {i}: {len(pictures(new))} pictures instead of {len(pictures(old))}"
            continue
        for pair in [(texts(old), texts(new)), *zip(pictures(old), pictures(new), strict=True)]:
            if said := difference(*pair):
                yield f"cell {i}: {said}"


def smaller(data):
    """A picture with fewer colours, and as many pixels as the limit allows."""
    picture, scale = Image.open(io.BytesIO(data)).convert("RGB"), 1.0
    while True:
        target = io.BytesIO()
        reduced = picture.resize([round(scale * n) for n in picture.size], Image.LANCZOS) if scale < 1.0 else picture
        reduced.quantize(128, dither=Image.Dither.NONE).save(target, "png", optimize=True)
        if target.tell() <= LARGEST:
            return target.getvalue()
        scale *= 0.9


def execute(path, folder, is_kept):
    """Execute a notebook. Returns the seconds it took, and lines on what is different; an error raises with its traceback."""
    began = time.perf_counter()
    os.environ.pop("MPLBACKEND", None)  # one without a screen would keep pictures out of the notebook
    kept = nbformat.read(path, as_version=4)
    made = nbformat.read(path, as_version=4)
    waits, where = {"timeout": PATIENCE, "startup_timeout": PATIENCE}, {"metadata": {"path": path.parent}}
    NotebookClient(made, **waits, kernel_name="python3", record_timing=False, coalesce_streams=True, resources=where).execute()
    seconds = time.perf_counter() - began
    # 1. for the documentation, as it is
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(made, folder / path.name)
    if not is_kept:
        return seconds, list(compared(kept, made))
    # 2. for the repository, with small pictures and nothing of this machine
    for output in (output for cell in made.cells for output in cell.get("outputs", [])):
        if "image/png" in output.get("data", {}):
            output["data"]["image/png"] = base64.b64encode(smaller(base64.b64decode(output["data"]["image/png"]))).decode() + "\n"
    made.metadata = kept.metadata
    nbformat.write(made, path)
    return seconds, []


def main(folder, is_kept, names):
    """Execute all notebooks, or some; the exit code."""
    paths = [path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if not names or path.stem in names]
    n_different = 0
    with ProcessPoolExecutor(AT_ONCE) as pool:
        for path, (seconds, lines) in zip(paths, pool.map(partial(execute, folder=folder, is_kept=is_kept), paths), strict=True):
            print("\n  ".join([f"{path.name}: ran in {seconds:.0f} s", *lines]), flush=True)
            n_different += len(lines)
    return int(n_different > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of notebooks, without ending [all]")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="for the documentation")
    parser.add_argument("--keep", action="store_true", help="write outputs into the notebooks")
    arguments = parser.parse_args()
    sys.exit(main(arguments.save, arguments.keep, arguments.names))
