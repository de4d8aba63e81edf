"""The one signature of laws of impacts: impulses and velocities after an impact of several contacts, from the velocities before.

    status = law(impact, tol, rounding, u, P, info, work, iwork)

====================  ==========================================================================================================
impact                `Impact`
tol                   error of a step of the integration, relative to the largest velocity, or tolerance of the law's problems
rounding              of u: approach speeds up to it are none
u                     in: velocities before, negative where contacts close; out: after (n,)
P                     out: impulses (n,)
info                  out (2,): iterations or steps, residual
work, iwork           scratch of the law's ``work_size(row, column, component)``
====================  ==========================================================================================================
"""

from typing import NamedTuple

import numpy as np
from numba import float64, int64, typeof

from nsds._jit import by_reference, caller, made

__all__ = ["N_INFO", "Impact"]

N_INFO = 2


@by_reference
class Impact(NamedTuple):
    """Contacts of an impact, as kernels get them: by reference. A row is a component of a contact."""

    row: np.ndarray  # compressed rows of W, as those of `nsds.solvers.box.signature`: (n+1,), (nnz,) × 2
    column: np.ndarray
    W: np.ndarray
    component: np.ndarray  # (n,): 0 the normal one, behind which the tangents of the contact lie
    mu: np.ndarray  # (n,) friction of the contact
    e: np.ndarray  # (n,) restitution in [0, 1], read of normal rows
    stiffness: np.ndarray  # (n,) > 0, read of normal rows, of the law of Liu, Zhao and Brogliato: only ratios count
    exponent: float  # eta >= 1 of its force ``K D^eta``: 1 linear, 3/2 Hertz


impact_of = made(Impact)
_floats, _integers = float64[::1], int64[::1]
_INTEGERS, _FLOATS = np.zeros(0, np.int64), np.zeros(0)
LAW = int64(
    typeof(Impact(_INTEGERS, _INTEGERS, _FLOATS, _INTEGERS, _FLOATS, _FLOATS, _FLOATS, 1.0)),
    float64, float64, _floats, _floats, _floats, _floats, _integers,
)  # fmt: skip
call_law = caller(LAW)
