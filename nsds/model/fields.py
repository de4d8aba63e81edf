"""Descriptions of fields of a record, for the table by which records are checked: see `nsds.model.validation`."""

from typing import NamedTuple

import numpy as np

LARGEST = np.finfo(np.float64).max


class Leaf(NamedTuple):
    """A field of numbers (kind f), whole numbers (i) or the name of a function (S), with its shape and range.

    Lengths and bounds are numbers, or names of lengths of the part, ``"n"`` or ``"n-1"``; a shape that is a name is a whole shape.
    """

    kind: str
    shape: object = ()
    low: object = None
    high: object = None
    required: bool = False


FUNCTION = Leaf("S")


def floats(*shape, low=-LARGEST, high=LARGEST, required=False):
    """Numbers of a shape, in a range."""
    return Leaf("f", shape, low, high, required)


def integers(*shape, low, high):
    """Whole numbers of a shape, in a range."""
    return Leaf("i", shape, low, high)


def sparse(rows, columns, entries):
    """A matrix by compressed rows, with the name of its number of entries."""
    return {
        "data": floats(entries),
        "indptr": integers(f"{rows}+1", low=0, high=entries),
        "indices": integers(entries, low=0, high=f"{columns}-1"),
    }


class Pattern(dict):
    """A nested record that may be missing: the places of the entries of a matrix, by compressed rows."""


def pattern(rows, columns, entries):
    """The places of the entries of a matrix, with the name of their number."""
    return Pattern(indices=integers(entries, low=0, high=f"{columns}-1"), indptr=integers(f"{rows}+1", low=0, high=entries))


PER_ROW = Leaf("f", "per_row", -LARGEST, LARGEST)  # a number for each constraint


# Detected contacts in a record, a row each; block: components of the law.
CONTACT_FIELDS = {
    "a": Leaf("i", ("capacity",), 0, "n_shapes-1", True),
    "b": Leaf("i", ("capacity",), 0, "n_shapes-1", True),
    "feature": Leaf("i", ("capacity",), np.iinfo(np.int64).min, np.iinfo(np.int64).max, True),
    "normal": floats("capacity", 3, required=True),
    "point": floats("capacity", 3, required=True),
    "y": floats("capacity", required=True),
    "lambda": floats("capacity", "block", required=True),
}
