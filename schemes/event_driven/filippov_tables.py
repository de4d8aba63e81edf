"""Tables of event-driven steps of first-order systems in general: what they reserve in the work memory."""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference
from nsds.maths.polynomials import GUARD_DEGREE
from nsds.model.layout import ABSENT, table
from nsds.schemes.event_driven import dopri5
from nsds.schemes.first_order import newton
from nsds.schemes.problem.branches import COLUMNS, place_branches
from nsds.schemes.problem.tables import Unknowns, place_problem

# Of n states and m rows. Of stiff motions what `nsds.schemes.event_driven.radau5` works with, and x' at the start of a step. States:
# present, at the end of a step, of samples, of differences; x', x''; forces before M^-1; stages and coefficients of the motion; absolute
# tolerances. w of all rows, its first two rates, what of w is off at an event; M^-1 B by columns, its product with C, D, the second rates
# by lambda. Elimination: P, combinations of rows, right side, sizes. Of each row: largest |w| and |lambda|, terms of w,
# the rate that is rest; values and polynomial of guards; first root in the step and in a section of it. Of each row and mode that it
# left: last time, two times of flight, the longest, the state then. Numbers: next step, error of the last one, end of an accumulation,
# time of the last event, step of differences, first and last time at which functions are called.
_ARRAYS = {
    "jac": "in", "newton": "rr", "filter": "in", "z": "r", "g": "r", "sizes": "r", "first": "i",
    "x": "n", "x_new": "n", "at": "n", "x_sampled": "n", "scratch": "n", "xdot": "n", "xdd": "n", "rhs": "n", "k": "sn", "poly": "dn",
    "atol": "n",
    "x_size": "n", "xdot_size": "n", "w": "m", "wt": "m", "wtt": "m", "off": "m", "MB": "mn", "CMB": "mm", "D": "mm", "second": "mm",
    "P": "mm", "T": "mm", "R": "m", "size": "m", "y_size": "m", "lam_size": "m", "terms": "m", "still": "m",
    "low": "m", "high": "m", "guard_value": "2gm", "guard_poly": "g", "spare": "g", "root": "m", "section": "m",
    "last": "3m", "flight": "3m", "flight_before": "3m", "longest": "3m", "x_last": "3mn",
    "step": "", "error": "", "tail": "", "event": "", "delta": "", "t_low": "", "t_high": "", "mark": "", "counted": "", "reached": "",
    "stride": "", "handed": "", "handed_to": "",
}  # fmt: skip
# Whole numbers. Of each row: mode, also before the event; direct, whether w depends on lambda at once; fired, whether its guard came to
# zero; near, whether w is next to zero between events; zero, whether it starts from zero; order of the rate that tells lambda; held rows,
# their places, columns of the elimination.
_ROWS = ("mode", "before", "direct", "fired", "near", "zero", "order", "row", "place", "column")
# fresh, whether the next step starts anew; pending, whether an event is; frozen, whether an accumulation is waited for; counts; culprit;
# how many rows are held, and how many have guards that are sampled; effort, as of how many steps the last one was.
_WHOLE = ("fresh", "pending", "frozen", "n_events", "n_still", "n_steps", "next_time", "culprit", "count", "n_sampled", "effort")
# Where the problem of all rows lies, by the names that `nsds.schemes.problem.box` knows.
PROBLEM = table("W", "q", "z", "w", "lower", "upper", "info", "rounding", "solver", "n_solver", "isolver", "n_isolver", *COLUMNS)
FILIPPOV = table("n", "m", "is_controlled", "is_circuit", "varies", "is_affine", "is_stiff", *_ARRAYS, *_ROWS, *_WHOLE, "stage_pivots")


@by_reference
class Options(NamedTuple):
    """Words of the step."""

    h: float
    rtol: float
    atol: float
    is_scaled: float  # 1: of states smaller than 1 atol is relative to the largest so far
    accumulation: float  # of the longest time between events: where it may end
    max_events: float
    hybrid: float  # ALWAYS: what cannot be followed event by event is handed over to time stepping


@by_reference
class Tables(NamedTuple):
    """What a step reads of one model."""

    newton: newton.Tables
    flow: np.ndarray  # FILIPPOV, one row
    problem: np.ndarray  # PROBLEM, one row
    plain: np.ndarray  # of each row, whether y is a constant linear function of x alone
    row: np.ndarray  # pattern of the problem of all rows: everything
    column: np.ndarray
    times: np.ndarray  # of events that are known in advance


def place(n, constraints, is_stiff, method, work, iwork):
    """Tables FILIPPOV and PROBLEM, their arrays reserved, and the pattern of the problem of all rows: (flow, problem, row, column).

    is_stiff: whether the motion is that of `nsds.schemes.event_driven.radau5`.
    """
    m = constraints.size
    f = np.zeros(1, FILIPPOV)
    sizes = {"n": n, "m": m, "s": dopri5.STAGES, "d": dopri5.DEGREE + 1, "g": GUARD_DEGREE + 1, "2": 2, "3": 3,
             "i": n * is_stiff, "r": 3 * n * is_stiff}  # fmt: skip
    work.place(f, **{name: math.prod(sizes[axis] for axis in shape) for name, shape in _ARRAYS.items()})
    iwork.place(f, **dict.fromkeys(_ROWS, m), **dict.fromkeys(_WHOLE, 1))
    row, column = np.arange(m + 1) * m, np.tile(np.arange(m), m)
    problem = np.zeros(1, PROBLEM)
    place_problem(problem, Unknowns(None, None, constraints, None, row, column, None), method, work, iwork)
    place_branches(problem, m, work, iwork)
    iwork.place(f, stage_pivots=3 * n * is_stiff)
    f["n"], f["m"], f["is_stiff"] = n, m, is_stiff
    return f, problem, row, column


def are_plain(layout, constraints):
    """Of each row, whether y is ``C x + e`` with numbers, and the law is that of one row with constant bounds."""
    relations = layout.relations
    fixed = np.ones(relations.size, bool)
    for field in ("h", "e", "C", "B", "D", "F", "bounds"):
        fixed &= relations[field + "_function"] == ABSENT
    of_relation = {int(h): bool(is_fixed) for r, is_fixed in zip(relations, fixed, strict=True) for h in r["h"] + np.arange(r["m"])}
    return np.array([c["y"] != ABSENT and c["coupling"] == c["coupling_end"] and of_relation[int(c["h"])] for c in constraints], np.int32)
