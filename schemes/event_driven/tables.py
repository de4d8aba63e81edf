"""Tables and options of event-driven Lagrangian systems, beside those of the Newton form."""

from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference
from nsds.maths.polynomials import FORCE_DEGREE, GUARD_DEGREE
from nsds.model.layout import table
from nsds.schemes.event_driven import dopri5
from nsds.schemes.event_driven.event_times import CLOCK, COUNTS
from nsds.schemes.lagrangian import newton
from nsds.schemes.mechanics.tables import Rigid
from nsds.schemes.memory import require_affordable

SERIES_DEGREE = 24  # of the Taylor series of a linear motion
_OF_STATES, _OF_EQUATIONS = 11, 1.25  # squares of their numbers that are reserved: jac, newton and filter; null and gram
_ATOL = 1e-12  # in the units of the states, or, of what is small, of the largest so far
JUMPS = 64  # of forces, at most, whose times are stored
LEANS = 3  # in spared: a contact in equilibrium under bounded forces
# The motion: x = (q, v) of all coordinates, n of them.
_MOTION = (
    # x, x_new, x_sampled (n): at the start, the end and inside a step; k: stages; poly: motion as polynomials of theta; force_value,
    # force_poly: forces that depend on time
    "x", "x_new", "x_sampled", "k", "poly", "force_value", "force_poly",
    # acc_free, acc_size: accelerations without contact, and those of the last state; atol: absolute tolerances; x_size: largest |x| so
    # far; jumped_at: times of the last jumps of forces, s
    "acc_free", "acc_size", "atol", "x_size", "jumped_at",
)  # fmt: skip
# Of each constraint.
_ROWS = (
    # root: first root of its guard, theta; length, speed, pull: largest terms so far of y, ydot and of the acceleration without contact
    "root", "length", "speed", "pull",
    # slow: speed below which it is at rest; slip: the same for the guard; creep: up to which slip that begins in space keeps its direction
    "slow", "slip", "creep",
    # direction of slip; at the start of a step (heading), and before the event
    "direction", "heading", "direction_before",
    # last: time of the last impact; two times of flight before that, s; approach: speed before an impact; opening: ydot after an event
    "last", "flight", "flight_before", "approach", "opening",
    # right-hand side and row sums of the problem of forces
    "rhs", "size",
    # run of slow impacts: its start and middle, s, and the largest speeds in both halves; carried: largest friction of a contact
    "run_start", "run_middle", "run_first", "run_second", "carried",
    # compliant rows. margin: value of the guard; opening, bend: its derivatives; soft: scratch
    "margin", "bend", "soft",
    # kept: force of a bounded row before the event; of a contact at rest by the problem of forces
    "kept",
)  # fmt: skip
# Values and polynomial of guards, forces lambda as polynomials, scratch, the matrix of the HELD rows, shifts of forces, and the matrix of a
# compliant element.
_GUARDS = ("guard_value", "guard_poly", "lam_poly", "spare", "matrix", "shift", "soft_matrix")
# Equations that may be linearly dependent, see `nsds.schemes.event_driven.dependent`.
_EQUATIONS = ("dense", "null", "gram", "scale", "scaled", "weight")
# Scalars.
_NUMBERS = (
    *CLOCK,
    # step: next step of the flow; resume: the one after a jump of forces; error: of the last step; limit: longest step; force: largest
    # lambda so far
    "step", "resume", "error", "limit", "force",
    # recurrence: period of jumps of forces, infinite if unknown; t_low, t_high: times between which functions may be called
    "recurrence", "t_low", "t_high",
)  # fmt: skip
# Integers of each constraint.
_WHOLE_ROWS = (
    # mode; zeros: orders in which its guard starts from zero; fired: it has come to zero; keep: active in a problem; before: mode before
    # the event
    "mode", "zeros", "fired", "keep", "before",
    # equation: number of an active row in the matrix; row: the reverse; pivots; spared: others carry load in its place; run: slow impacts
    # in a row
    "equation", "row", "pivots", "spared", "run",
    # shifted: place in the list of shifts; relation: that of a compliant row, ABSENT if y is linear; listed: in the list of the record
    "shifted", "relation", "listed",
    # turned: its slip is reversed at the end of a step; left_out: linearly dependent equation; block: first row of its block of equations;
    # changes: its gap is that of different contacts of two shapes within the step
    "turned", "left_out", "block", "changes",
    # component: equations that may be linearly dependent, by number; stuck: places of sticking tangents in the list of rows; disks: of the
    # first tangent of each sticking disk; guessed: mode by the problem of forces
    "component", "stuck", "disks", "guessed",
)  # fmt: skip
# Integers.
_WHOLE = (
    *COUNTS,
    # numbers of active rows, of HELD ones, of shifts, of sticking tangents and disks; degree of poly; fresh: the state is not that of the
    # last step; has_forces: forces depend on time; first_event: the step ends at one
    "count", "n_equations", "n_shifts", "n_stuck", "n_disks", "degree", "fresh", "has_forces", "first_event",
    # culprit: row that an event is due to; n_jumps: times in jumped_at; foretold: the one that recurs next; force_degree: of force_poly
    "culprit", "n_jumps", "foretold", "force_degree",
    # depends: number of linearly dependent equations at the last factorisation, ABSENT before; swept: first slot of the shapes that meet at
    # the end of the step, ABSENT if a guard of a row ends it; carries: redundant contacts at rest carry as in the problem of forces
    "depends", "swept", "carries",
)  # fmt: skip
# Scratch of `nsds.schemes.event_driven.radau5`, and x' at the start of a step.
_STIFF = ("jac", "newton", "filter", "z", "g", "sizes", "first", "stage_pivots")
# The last four are flags: all matrices are constant, forces may jump at rows, there are compliant rows, the motion is stiff.
FLOW = table(
    "n",
    *_MOTION,
    *_ROWS,
    *_GUARDS,
    *_EQUATIONS,
    *_NUMBERS,
    *_WHOLE_ROWS,
    *_WHOLE,
    *_STIFF,
    "is_linear",
    "is_controlled",
    "is_compliant",
    "is_stiff",
)


@by_reference
class Options(NamedTuple):
    """Parameters of the step."""

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


def place_flow(n_dofs, n_state, constraints, is_stiff, work, iwork, compliant=0):
    """The table FLOW, its arrays reserved; n_state: numbers of a state; compliant: rows of the largest compliant element.

    is_stiff: whether the motion is that of `nsds.schemes.event_driven.radau5`.
    """
    f, n, m, equations = np.zeros(1, FLOW), n_state, constraints.size, int((constraints["bilateral"] != 0).sum())
    # 1. what is dense, before any memory is reserved
    require_affordable(f"event_driven: the matrices of {m} rows", 2 * m * m + _OF_EQUATIONS * equations**2, "use nsds.moreau_jean")
    if is_stiff:
        require_affordable(f"event_driven: flow='radau': the matrices of {n} states", _OF_STATES * n * n, "use flow='auto'")
    # 2. arrays of the motion, of rows and of equations
    f["n"] = n
    forces = (FORCE_DEGREE + 1) * n_dofs
    work.place(f, x=n, x_new=n, x_sampled=n, k=dopri5.STAGES * n, poly=(SERIES_DEGREE + 1) * n, acc_free=n_dofs, jumped_at=JUMPS)
    work.place(f, acc_size=n_dofs, atol=n, x_size=n)
    work.place(f, force_value=forces, force_poly=forces, lam_poly=(SERIES_DEGREE + 1) * m, guard_value=(GUARD_DEGREE + 1) * m)
    work.place(f, guard_poly=SERIES_DEGREE + 1, spare=FORCE_DEGREE + 1, matrix=m * m, shift=m * m, **dict.fromkeys(_ROWS, m))
    # the matrix of the equations has been read where shifts are written
    f["dense"] = f["shift"]
    work.place(f, soft_matrix=compliant**2, null=equations**2 // 4, gram=equations * (equations + 1))
    work.place(f, **dict.fromkeys(("scale", "scaled", "weight"), equations))
    work.place(f, **dict.fromkeys(_NUMBERS, 1))
    iwork.place(f, **dict.fromkeys(_WHOLE_ROWS, m), **dict.fromkeys(_WHOLE, 1))
    # 3. those of implicit stages
    square, stages = n * n * is_stiff, 3 * n * is_stiff
    work.place(f, jac=square, newton=9 * square, filter=square, z=stages, g=stages, sizes=stages, first=n * is_stiff)
    iwork.place(f, stage_pivots=stages)
    f["is_compliant"], f["is_stiff"] = compliant > 0, is_stiff
    return f


def numbers_of(options):
    """Options that kernels read, as floats."""
    numbers = {name: float(options[name].item()) for name in ("rtol", "atol", "accumulation", "max_events", "hybrid")}
    return numbers | {"atol": numbers["atol"] or _ATOL, "is_scaled": float(numbers["atol"] == 0.0)}
