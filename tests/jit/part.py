"""A part of the package: what compiles kernels, and those of vectors and rotations. To import all the rest takes longer than most tests."""

import shutil


def part_of_the_package(whole, folder):
    """A folder in which processes find a copy of a part of the package ``whole``, with the shipped kernels that it has."""
    copy = folder / "nsds"
    for inner in ("_jit", "maths"):
        shutil.copytree(whole / inner, copy / inner)
    shutil.copy2(whole / "_checks.py", copy)
    (copy / "__init__.py").write_text("from nsds.maths import rotations\n")
    return folder
