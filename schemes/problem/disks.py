"""Rows of a contact: the normal one, its disk of friction, and of contacts that resist rolling a disk of moments behind it.

A disk has one row in the plane and two in space, ``||lambda_disk|| <= mu lambda_n``; the event-driven scheme has the coefficient of its own
disk in the column mu of each row, which is mu_r of rows of rolling: `state_coefficients`. Modes are those of a disk as a whole: a sliding
contact may stick in rolling, and the reverse.
"""

import numpy as np

from nsds._jit import tiny
from nsds.model.layout import ABSENT


def state_coefficients(constraints):
    """The same constraints, each row with the coefficient of its own disk in the column mu."""
    rolls = constraints["component"] > constraints["tangents"]
    constraints = constraints.copy()
    constraints["mu"] = np.where(rolls & (constraints["tangents"] > 0), constraints["mu_r"], constraints["mu"])
    return constraints


@tiny
def rows_of(c):
    """Rows of the contact whose normal row is c; 1 of a row without friction."""
    return 1 + (c.tangents if c.mu_r == ABSENT else 2 * c.tangents)


@tiny
def begins_disk(c):
    """Whether a row is the first of a disk."""
    return c.component == 1 or (c.component > 1 and c.component == c.tangents + 1)


@tiny
def rolls(c):
    """Whether a row is one of rolling."""
    return c.component > c.tangents


@tiny
def first_of_disk(i, c):
    """Number of the first row of the disk that row i is in."""
    return i - (c.component - 1 if c.component <= c.tangents else c.component - 1 - c.tangents)


@tiny
def unit_of(c, work):
    """Unit of force in the units of a row: mu_r for moments of rolling, else 1."""
    return work[c.mu] if rolls(c) else 1.0
