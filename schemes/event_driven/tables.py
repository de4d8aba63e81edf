"""Tables and options of event-driven Lagrangian systems: what they have besides those of the Newton form."""

from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference
from nsds.maths.polynomials import FORCE_DEGREE, GUARD_DEGREE
from nsds.model.layout import table
from nsds.schemes.event_driven import dopri5
from nsds.schemes.lagrangian import newton
from nsds.schemes.mechanics.tables import Rigid

SERIES_DEGREE = 24  # of the Taylor series of a linear motion
_ATOL = 1e-12  # in the units of the states, or, of what is small, of the largest so far
JUMPS = 64  # of forces, at most, whose times are remembered
LEANS = 3  # in spared: a contact that bounded forces keep where it is
# of the motion: x = (q, v) of all coordinates, n of them, at the start, the end and inside a step; stages k; poly, the
# motion as polynomials of theta, and those of forces that depend on time; acc_free, accelerations without contact; of each coordinate
# acc_size, the same at the last state, and of x atol, absolute tolerances, and x_size, the largest so far; jumped_at, when forces
# have jumped lately.
_MOTION = ("x", "x_new", "x_sampled", "k", "poly", "force_value", "force_poly", "acc_free", "acc_size", "atol", "x_size", "jumped_at")
# Of each constraint: the first root of its guard; length, speed and pull, the largest so far that cancelled in y, ydot and the acceleration
# without contact; slow, below which it is at rest, slip, the same for the guard, and creep, up to which what begins to slip in space keeps
# its direction; direction of slip, at the start of a step (heading), and before the event; last, the time of the last impact, and two times
# of flight before that; approach, the speed before an impact; opening, ydot after an event; of compliant rows margin, the value of the
# guard, opening and bend, its derivatives, and soft, scratch; right side and row sums of the problem of
# forces; of a run of slow impacts, when it began and when its first half ended, and the largest speeds in both halves; carried, what the
# friction of a contact can be; of equations that may depend on each other weight, scale and side, see
# `nsds.schemes.event_driven.dependent`; kept, the force of a bounded row before the event.
_ROWS = (
    "root", "length", "speed", "pull", "slow", "slip", "creep", "direction", "heading", "direction_before", "last", "flight",
    "flight_before", "approach", "opening", "rhs", "size", "run_start", "run_middle", "run_first", "run_second", "carried",
    "margin", "bend", "soft", "weight", "scale", "side", "kept",
)  # fmt: skip
# Values and polynomial of guards, forces lambda as polynomials, scratch, the matrix of the HELD rows, shifts of forces, and the matrix of a
# compliant element.
_GUARDS = ("guard_value", "guard_poly", "lam_poly", "spare", "matrix", "shift", "soft_matrix")
# Numbers: the next step of the flow, and, where it crosses a jump of forces, that to resume with; the error of the last; tail, when an
# accumulation ends; limit, of steps; event, when the last one was; force, the largest lambda so far; mark, a time from which
# steps are counted, counted, events; reached, the time of the last step, and stride, the longest so far; recurrence, the time after which
# jumps of forces come again, infinite where that is not known; handed, the length of the interval that was last handed over to time
# stepping, and handed_to, its end; t_low and t_high, between which functions are called.
_NUMBERS = ("step", "resume", "error", "tail", "limit", "event", "force", "mark", "counted", "reached", "stride", "recurrence",
            "handed", "handed_to", "t_low", "t_high")  # fmt: skip
# In the integer work memory, of each constraint: mode; zeros, in how many orders its guard starts from zero; fired, whether it has come to
# zero; keep, whether it takes part in a problem; before, its mode before the event; equation, the number of an active row in the matrix,
# row, the reverse, and pivots; spared, whether others carry load rather than it; run, slow impacts in a row; shifted, places in the
# list that have shifts; relation, that of a compliant row, ABSENT where y is linear; listed, whether it is in the record's list; turned,
# whether its slip is reversed at the end of a step; left_out, whether it is an equation that follows from others; block, the first row of
# its block of equations; changes, whether its gap is now that of one contact of two shapes, now of another.
_WHOLE_ROWS = ("mode", "zeros", "fired", "keep", "before", "equation", "row", "pivots", "spared", "run", "shifted", "relation", "listed",
               "turned", "left_out", "block", "changes")  # fmt: skip
# Whole numbers: how many rows are active, and HELD, and how many shifts there are; the degree of poly; fresh, whether the state is another
# than that of the last step; pending, whether an event is; next_time, of those known in advance; events since the last row, and at one
# time; steps since the mark; has_forces, whether forces depend on time; first_event, whether the step ends at one; culprit, the row that
# it is due to; n_jumps, times in jumped_at; foretold, the one of them that comes again next; force_degree, of the polynomials of forces;
# depends, how many equations followed from others when the matrix was last factorised, ABSENT before; swept, of the shapes that meet at
# the end of the step the first slot, ABSENT where a guard of a row ends it.
_WHOLE = (
    "count", "n_equations", "n_shifts", "degree", "fresh", "pending", "next_time", "n_events", "n_still", "n_steps", "has_forces",
    "first_event", "culprit", "n_jumps", "foretold", "force_degree", "depends", "swept",
)  # fmt: skip
# Of stiff motions what `nsds.schemes.event_driven.radau5` works with, and x' at the start of a step.
_STIFF = ("jac", "newton", "filter", "z", "g", "sizes", "first", "stage_pivots")
# These are no places: whether all matrices are constant, forces may jump at rows, there are compliant rows, and the motion is stiff.
FLOW = table(
    "n", *_MOTION, *_ROWS, *_GUARDS, *_NUMBERS, *_WHOLE_ROWS, *_WHOLE, *_STIFF, "is_linear", "is_controlled", "is_compliant", "is_stiff"
)


@by_reference
class Options(NamedTuple):
    """Words of the step."""

    h: float
    newton: newton.Options
    rtol: float
    atol: float
    is_scaled: float  # 1: of states smaller than 1 atol is relative to the largest so far
    accumulation: float  # of the largest speed: contacts that bounce more slowly may come to rest
    max_events: float
    hybrid: float  # NEVER, ALWAYS, USUAL: whether what cannot be followed event by event is handed over to time stepping


@by_reference
class Tables(NamedTuple):
    """Tables of the step."""

    newton: newton.Tables
    flow: np.ndarray
    times: np.ndarray  # of events that are known in advance
    rigid: Rigid


def place_flow(n_dofs, n_state, n_constraints, is_stiff, work, iwork, compliant=0):
    """The table FLOW, its arrays reserved; n_state: numbers of a state; compliant: rows of the largest compliant element.

    is_stiff: whether the motion is that of `nsds.schemes.event_driven.radau5`.
    """
    f, n, m = np.zeros(1, FLOW), n_state, n_constraints
    f["n"] = n
    forces = (FORCE_DEGREE + 1) * n_dofs
    work.place(f, x=n, x_new=n, x_sampled=n, k=dopri5.STAGES * n, poly=(SERIES_DEGREE + 1) * n, acc_free=n_dofs, jumped_at=JUMPS)
    work.place(f, acc_size=n_dofs, atol=n, x_size=n)
    work.place(f, force_value=forces, force_poly=forces, lam_poly=(SERIES_DEGREE + 1) * m, guard_value=(GUARD_DEGREE + 1) * m)
    work.place(f, guard_poly=SERIES_DEGREE + 1, spare=FORCE_DEGREE + 1, matrix=m * m, shift=m * m, **dict.fromkeys(_ROWS, m))
    work.place(f, soft_matrix=compliant**2)
    work.place(f, **dict.fromkeys(_NUMBERS, 1))
    iwork.place(f, **dict.fromkeys(_WHOLE_ROWS, m), **dict.fromkeys(_WHOLE, 1))
    square, stages = n * n * is_stiff, 3 * n * is_stiff
    work.place(f, jac=square, newton=9 * square, filter=square, z=stages, g=stages, sizes=stages, first=n * is_stiff)
    iwork.place(f, stage_pivots=stages)
    f["is_compliant"], f["is_stiff"] = compliant > 0, is_stiff
    return f


def numbers_of(options):
    """What kernels read of the options, as floats."""
    numbers = {name: float(options[name].item()) for name in ("rtol", "atol", "accumulation", "max_events", "hybrid")}
    return numbers | {"atol": numbers["atol"] or _ATOL, "is_scaled": float(numbers["atol"] == 0.0)}
