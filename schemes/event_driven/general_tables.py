"""Tables of event-driven steps of first-order systems in general, and their work memory."""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference
from nsds.maths.polynomials import GUARD_DEGREE
from nsds.model.layout import ABSENT, table
from nsds.schemes.event_driven import dopri5
from nsds.schemes.event_driven.accumulation import HISTORY, slots_of
from nsds.schemes.event_driven.event_times import CLOCK, COUNTS
from nsds.schemes.first_order import newton
from nsds.schemes.problem.branches import COLUMNS, place_branches
from nsds.schemes.problem.tables import Unknowns, place_problem

# n states, m rows, i states of implicit stages, r their unknowns, s stages, d coefficients, g samples of a guard, h states that are kept of
# accumulations. An extent is the product of its letters.
_ARRAYS = {
    # 1. stiff motions, see `nsds.schemes.event_driven.radau5`; first: x' at the start of a step
    "jac": "in", "newton": "rr", "filter": "in", "z": "r", "g": "r", "sizes": "r", "first": "i",
    # 2. states: present, at the end of a step, at finite differences, at samples; x', x''; rhs: forces before M^-1; stages k and
    # polynomial of the motion; absolute tolerances; largest |x| and |x'| so far
    "x": "n", "x_new": "n", "at": "n", "x_sampled": "n", "scratch": "n", "xdot": "n", "xdd": "n", "rhs": "n", "k": "sn", "poly": "dn",
    "atol": "n",
    # 3. rows. w, its first two rates, off: its deviation from 0 at an event; MB: M^-1 B by columns; CMB: C M^-1 B; second: dw''/dlambda
    "x_size": "n", "xdot_size": "n", "w": "m", "wt": "m", "wtt": "m", "off": "m", "MB": "mn", "CMB": "mm", "D": "mm", "second": "mm",
    # 4. elimination: P, combinations T of rows, right-hand side R, sizes; largest |w| and |lambda|, terms of w; still: rate that is rest
    "P": "mm", "T": "mm", "R": "m", "size": "m", "best": "m", "y_size": "m", "lam_size": "m", "terms": "m", "still": "m",
    # 5. bounds low and high; guards: samples and polynomial, first root in the step and in a section of it, theta
    "low": "m", "high": "m", "guard_value": "2gm", "guard_poly": "g", "spare": "g", "root": "m", "section": "m",
    # 6. accumulations, and the clock; step: the next one, its error; delta: step of finite differences; t_low, t_high: times between which
    # functions may be called, s
    **HISTORY, **dict.fromkeys((*CLOCK, "step", "error", "delta", "t_low", "t_high"), ""),
}  # fmt: skip
# Integers of each row: mode, mode before the event; direct: w depends on lambda; fired: its guard came to zero; near: w is nearly zero
# between events; zero: it starts from zero; order of the rate that determines lambda; held rows, their places, pivot columns, best columns.
_ROWS = ("mode", "before", "direct", "fired", "near", "zero", "order", "row", "place", "column", "best_column")
# Integers: fresh: the next step restarts; frozen: an accumulation is waited for; culprit: row to blame; numbers of held rows, of those that
# D solves, and of rows with sampled guards; effort: the last step counts for so many; stiff: the motion is that of
# `nsds.schemes.event_driven.radau5`; steps that stability has limited, and others since.
_WHOLE = (*COUNTS, "fresh", "frozen", "culprit", "count", "n_direct", "n_sampled", "effort", "stiff", "n_limited", "n_free")
EXPLICIT, STIFF, EITHER = range(3)  # flows: EITHER begins as an explicit one after each event, and becomes stiff where the motion is
_LARGEST = 48  # states, of matrices that are kept in case the motion is stiff
# The problem of all rows, with the names of `nsds.schemes.problem.box`.
PROBLEM = table("W", "q", "z", "w", "lower", "upper", "info", "rounding", "solver", "n_solver", "isolver", "n_isolver", *COLUMNS)
FILIPPOV = table("n", "m", "is_controlled", "is_circuit", "varies", "is_affine", "kind", *_ARRAYS, *_ROWS, *_WHOLE, "stage_pivots")


@by_reference
class Options(NamedTuple):
    """Parameters of the step."""

    h: float
    rtol: float
    atol: float
    is_scaled: float  # 1: of states smaller than 1 atol is relative to the largest so far
    accumulation: float  # of the longest time between events: where it may end
    max_events: float
    hybrid: float  # ALWAYS: what cannot be followed event by event is handed over to time stepping


@by_reference
class Tables(NamedTuple):
    """Tables of one model that a step reads."""

    newton: newton.Tables
    flow: np.ndarray  # FILIPPOV, one row
    problem: np.ndarray  # PROBLEM, one row
    plain: np.ndarray  # of each row, whether y is a constant linear function of x alone
    row: np.ndarray  # pattern of the problem of all rows: everything
    column: np.ndarray
    times: np.ndarray  # of events that are known in advance


def place(n, constraints, flow, method, work, iwork):
    """Tables FILIPPOV and PROBLEM, their arrays reserved, and the pattern of the problem of all rows: (flow, problem, row, column).

    flow: as in the options of the scheme.
    """
    m = constraints.size
    kind = STIFF if flow == b"radau" else EITHER if flow == b"auto" and n <= _LARGEST else EXPLICIT
    n_stiff = n if kind != EXPLICIT else 0
    f = np.zeros(1, FILIPPOV)
    sizes = {"n": n, "m": m, "s": dopri5.STAGES, "d": dopri5.DEGREE + 1, "g": GUARD_DEGREE + 1, "2": 2, "3": 3, "h": slots_of(m),
             "i": n_stiff, "r": 3 * n_stiff}  # fmt: skip
    work.place(f, **{name: math.prod(sizes[axis] for axis in shape) for name, shape in _ARRAYS.items()})
    iwork.place(f, **dict.fromkeys(_ROWS, m), **dict.fromkeys(_WHOLE, 1))
    row, column = np.arange(m + 1) * m, np.tile(np.arange(m), m)
    problem = np.zeros(1, PROBLEM)
    place_problem(problem, Unknowns(None, None, constraints, None, row, column, None), method, work, iwork)
    place_branches(problem, m, work, iwork)
    iwork.place(f, stage_pivots=3 * n_stiff)
    f["n"], f["m"], f["kind"] = n, m, kind
    return f, problem, row, column


def are_plain(layout, constraints):
    """For each row, whether y is ``C x + e`` with constant operators, and the law is that of one row with constant bounds."""
    relations = layout.relations
    fixed = np.ones(relations.size, bool)
    for field in ("h", "e", "C", "B", "D", "F", "bounds"):
        fixed &= relations[field + "_function"] == ABSENT
    of_relation = {int(h): bool(is_fixed) for r, is_fixed in zip(relations, fixed, strict=True) for h in r["h"] + np.arange(r["m"])}
    return np.array([c["y"] != ABSENT and c["coupling"] == c["coupling_end"] and of_relation[int(c["h"])] for c in constraints], np.int32)
