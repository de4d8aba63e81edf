"""Modes of linear first-order systems ``x' = A x + s + B lambda``, ``y = C x + D lambda + e``, and the affine motion in a mode.

Rows are LOWER, UPPER or HELD, see `nsds.schemes.event_driven.switched_rows`. The modes at a state are those of one implicit Euler step of
vanishing length h: the rational complementarity problem (Heemels, Schumacher, Weiland 2000) at the frequency 1/h,

    w = (D + h C G B) lambda + (C x + e) + h C G (A x + s),   G = (I - h A)^-1,      w and lambda by the law

with ``C x + e`` of rows that came to zero set to zero. If the modes that it chooses end at once, terms of higher order decide, which are
rounding at that h: the next choice takes a longer one. In a mode, y = 0 of the HELD rows is differentiated until lambda is determined,
which gives ``lambda = L x + l`` and ``x' = (A + B L) x + s + B l``. Rows are solved by components, see
`nsds.schemes.event_driven.linear_operators`: those of a component whose modes are as before keep their L and Y.
"""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference, kernel, tiny, view
from nsds.maths.polynomials import NO_ROOT, first_root
from nsds.model.layout import ABSENT, table
from nsds.schemes.event_driven.accumulation import HISTORY, slots_of
from nsds.schemes.event_driven.collocation import BLOCKS, LARGEST, NOISE, STAGES, forget_long_steps, move_to, take_long_step
from nsds.schemes.event_driven.event_times import CLOCK, COUNTS
from nsds.schemes.event_driven.linear_operators import LENGTHS, STORED
from nsds.schemes.event_driven.switched_rows import (
    HELD,
    LOWER,
    UPPER,
    Rows,
    bounds_away_from_zero,
    bounds_of_impulse,
    mode_at,
    pivot,
    subtract,
)
from nsds.schemes.problem.box import rounding_of, solve
from nsds.schemes.problem.branches import COLUMNS, LARGEST_LOOKED_AT, note_several, solve_near
from nsds.solvers.box.signature import changed, exact
from nsds.status import CONVERGED, INFEASIBLE

LEAVES = 2  # of is_off: held rows are at 0 now, and sources move them off it
SERIES_DEGREE = 24
# n states, m rows, p coefficients of a series, t unknowns of all stages of a long step, b entries of their blocks, h states that are kept
# of accumulations; e entries of all rows over the columns of their components, s those of the squares of components. An extent is the
# product of its letters.
_ARRAYS = {
    # 1. motion. x, s: state and source; poly of x: Taylor coefficients, guard: of one guard; reach: the most that they move x
    "x": "n", "s": "n", "spare": "n", "sum": "n", "poly": "np", "guard": "p", "reach": "n",
    # 2. elimination of the HELD rows, P lambda + X x + K = 0; size: largest terms of P; of_row: one row over all multipliers, and its terms
    "P": "s", "X": "e", "K": "m", "size": "m", "of_row": "m", "of_terms": "m",
    # 3. mode. lambda = L x + l, y = Y x + y0, x' = rate x + constant; solved: lambda at bounds, in what they were solved; x_size: largest
    # |x| so far; c_size: sizes of the terms of each coefficient of the series, the scale of rounding
    "best": "m", "input": "n", "L": "e", "l": "m", "Y": "e", "y0": "m", "solved": "m", "constant": "n", "x_size": "n", "c_size": "np",
    # 4. accumulations, and the clock; step: the next one, rest: rounding error of t, corner: the next one of a source, s
    **HISTORY, **dict.fromkeys((*CLOCK, "step", "rest", "corner"), ""),
    # 5. ahead: step by which modes were chosen, s; chosen: lambda of the last choice; hidden: held rows without lambda, which x obeys;
    # largest: terms of any row
    "ahead": "", "chosen": "m", "hidden": "e", "hidden_constant": "m", "largest": "",
    # 6. long steps by collocation: length, length whose matrix is inverted, blocks of the stages; stage_rest: what they do not solve
    "long": "", "inverted": "", "stages": "b", "stage_size": "t", "stage_value": "t", "stage_rest": "t",
}  # fmt: skip
# Integers of each row: mode, mode before the event, mode in which it was solved; fired: its guard came to zero; near: y is nearly zero
# between events; row, column: pivots of the elimination; best_column: of the largest entry of a row there, which is best.
_ROWS = ("mode", "before", "solved_mode", "fired", "near", "row", "column", "best_column")
# Integers: frozen: an accumulation is waited for; culprit: row to blame; is_afresh: no component is solved.
# first_moving, end_moving: range of the system's states outside of which all are 0 so far, and so are their series.
_WHOLE = (*COUNTS, "n_short", "frozen", "culprit", "is_off", "is_doubtful", "is_unsolved", "first_moving", "end_moving")
# The problem of modes and its solver.
_PROBLEM = ("W", "q", "z", "w", "lower", "upper", "info", "rounding", "solver", "n_solver", "isolver", "n_isolver")
PLAN = table(
    # sizes; of circuits n_own states are the system's and those of sources follow
    # band: how far apart states are that act on each other; first_driven, end_driven: range of those on which states of sources act
    "n", "m", "n_stages", "n_own", "n_components", "is_driven", "is_controlled", "n_lengths", "band", "first_driven", "end_driven",
    # operators, see `nsds.schemes.event_driven.linear_operators.store_operators`
    *STORED,
    # arrays, see above
    *_ARRAYS, *_ROWS, *_WHOLE, *_PROBLEM, *COLUMNS,
    # collocation; ends of the rows of rate, and their columns; slots of the entries of one row; of each component whether its modes are
    # others, its hidden rows, and whether they are off; of each state whether its rate is another
    "stage_pivots", "rate_end", "rate_column", "nonzero", "is_stale", "n_hidden", "off", "is_moved",
    # bounds of lambda, and bounds while switches are open
    "bounds_lower", "bounds_upper", "open_lower", "open_upper",
)  # fmt: skip
_ON_IT = 1e-12  # relative to the largest terms of y: smaller values are zero
_NEAR_IT = 16.0 * _ON_IT  # nearly zero, when events follow each other closely
_NO_VALUE = 1e-13  # relative to the terms of a guard: smaller values start from zero
_ROUNDED = 1e-10  # likewise: smaller negative values are rounding of a choice of modes, and start from zero, too
_AHEAD = 4.0  # steps of a choice in which a guard may be below zero
_NO_SLOPE, _NO_LATER_SLOPE = 1e-9, 1e-13  # relative to the terms of its derivatives: in the first step after an event, and later
_NO_CHANGE, _MOST_CHANGE = 1e-14, 1e-9  # of its terms, where nothing moves: what it changes by less in a step; ten times as much each time
_ENOUGH = 1e-8  # residual at which modes are tried if rounding of W decides between them; wrong ones end at once, and others are tried
_SHORT = 1e-4  # relative to the time in which B changes what D gives at once: the first step whose limit is a jump
_STRICT = 1e-13  # tolerance of the choice of modes, which terms of 1e-9 decide
_VERGE = 1e-10  # of the largest y: a row whose y is smaller may be held
_OFF = 1e-9  # relative to the terms of held rows: largest deviation from 0
_BROKEN = 1e-3  # relative to the terms of y or lambda: a larger violation by a choice that looks ahead is no solution
_NO_SIZE = 1e-140  # of a state: smaller values are 0, up to the error of a projection
_FADED = 1e-100  # of the largest state: smaller ones do not move
_NOTHING = 1e-14
_SWEEPS = 8  # of a choice of modes by rows; each reduces the error by the influence of one row on the next
_NO_PIVOT = 1e-11
_NO_ENTRY = 1e-13
_TOGETHER = 1e-13  # of a step: guards that come to zero within that time do so simultaneously
_EPS = 2.0**-54
_ATTEMPTS = 200
_CLEAR = 1.0 - 2.0**-30  # of a guard: what is larger than how far it can move has no root


@by_reference
class Flow(NamedTuple):
    """Tables of the motion."""

    plan: np.ndarray  # PLAN, one row
    W_row: np.ndarray  # compressed rows of W, for each of the steps of a choice of modes
    W_column: np.ndarray
    W_begin: np.ndarray  # where the columns of each begin


def _sizes(n, m, e, s):
    """Extents by the letters of `_ARRAYS`."""
    return {"n": n, "m": m, "e": e, "s": s, "p": SERIES_DEGREE + 1, "h": slots_of(m), "3": 3, "t": STAGES * n if n <= LARGEST else 0,
            "b": BLOCKS * n**2 if n <= LARGEST else 0}  # fmt: skip


def number_of_entries(n, m, e, s, r):
    """Entries of all arrays of one member, with those of e, s and r entries that operators have."""
    sizes = _sizes(n, m, e, s)
    return sum(math.prod(sizes[axis] for axis in shape) for shape in _ARRAYS.values()) + e + s + 3 * r


def place_arrays(p, n, m, e, s, work, iwork):
    """Reserve the arrays that are not stored in advance."""
    sizes, n_rate = _sizes(n, m, e, s), int(p["n_rate"][0])
    p["n_stages"] = sizes["t"]
    work.place(p, rate=n_rate, **{name: math.prod(sizes[axis] for axis in shape) for name, shape in _ARRAYS.items()})
    iwork.place(p, **dict.fromkeys(_ROWS, m), **dict.fromkeys(_WHOLE, 1), stage_pivots=sizes["t"])
    n_components = int(p["n_components"][0])
    iwork.place(p, rate_end=n, rate_column=n_rate, nonzero=n, is_moved=n)
    iwork.place(p, is_stale=n_components, n_hidden=n_components, off=n_components)


class Component(NamedTuple):
    """One component: its first row in the list of all, their number; its columns in the integer memory; its entries and its square."""

    begin: int
    count: int
    columns: int
    width: int
    entries: int
    square: int


@tiny
def component(k, p, iwork):
    """The component k."""
    begin, first = iwork[p.begin + k], iwork[p.first + k]
    count, width = iwork[p.begin + k + 1] - begin, iwork[p.first + k + 1] - first
    return Component(begin, count, p.columns + first, width, iwork[p.entries + k], iwork[p.square + k])


@tiny
def pattern_of_choice(length, flow):
    """Compressed rows (row, column) of W of the step ``work[p.lengths + length]``."""
    m, begin = flow.plan[0].m, flow.W_begin[length]
    return view(flow.W_row, length * (m + 1), m + 1), view(flow.W_column, begin, flow.W_begin[length + 1] - begin)


@tiny
def along(i, matrix, constant, p, memory):
    """(``matrix x + constant`` of row i, the largest that its terms have been together); places in the work memory."""
    work, iwork = memory.work, memory.iwork
    value, terms = work[constant + i], abs(work[constant + i])
    entry, column = matrix + iwork[p.at + i], iwork[p.reads + i]
    for l in range(iwork[p.wide + i]):
        j = iwork[column + l]
        value += work[entry + l] * work[p.x + j]
        terms += abs(work[entry + l]) * work[p.x_size + j]
    return value, terms


@tiny
def value_of(i, matrix, constant, p, memory):
    """``matrix x + constant`` of row i."""
    work, iwork = memory.work, memory.iwork
    value, entry, column = work[constant + i], matrix + iwork[p.at + i], iwork[p.reads + i]
    for l in range(iwork[p.wide + i]):
        value += work[entry + l] * work[p.x + iwork[column + l]]
    return value


@tiny
def output(i, p, memory):
    """(C x + e of row i, the largest that its terms have been together)."""
    return along(i, p.C, p.e, p, memory)


@tiny
def multiplier(i, p, memory):
    """lambda of row i at the state, in the present modes."""
    return value_of(i, p.L, p.l, p, memory)


@tiny
def note_size(p, work):
    """Note how large the state is."""
    for j in range(p.n):
        work[p.x_size + j] = max(work[p.x_size + j], abs(work[p.x + j]), _NO_SIZE)


@kernel
def note_near(p, memory):
    """Which rows are next to zero though their guards are not: between events of an accumulation that can hardly be followed further."""
    iwork = memory.iwork
    for i in range(p.m):
        y, terms = output(i, p, memory)
        is_near = iwork[p.fired + i] == 0 and iwork[p.mode + i] != HELD and abs(y) <= _NEAR_IT * terms
        iwork[p.near + i] = 1 if is_near and iwork[p.direct + i] == 0 else 0


@kernel
def choose_modes(is_afresh, flow, calls, memory):
    """Choose the modes after the present state, from the previous ones unless it ``is_afresh``. Returns the status of the problem.

    Its unknowns are the changes of lambda, so that constants cancel in no row. If rounding of W leaves no solution, a longer step
    amplifies the decisive terms; is_doubtful: a shorter one had no solution.
    """
    work, iwork = memory.work, memory.iwork
    p, m, status = flow.plan[0], flow.plan[0].m, CONVERGED
    iwork[p.is_doubtful] = 0
    # 1. lambda so far, and options; terms of 1e-9 decide, so the tolerance is strict
    _note_multipliers(p, memory)
    usual = calls.solver_options
    strict = changed(usual, min(_STRICT, usual.tol), usual.max_iter)
    # 2. from the shortest step on; after events at one time a longer one, since the shorter has chosen modes that ended, and after many of
    # them one that is long against the shortest times
    longest = min(max(iwork[p.n_still], len(LENGTHS) - 1), p.n_lengths - 1)
    for length in range(min(iwork[p.n_still], longest), longest + 1):
        work[p.ahead] = work[p.lengths + length]
        row, column = pattern_of_choice(length, flow)
        _state_choice(length, is_afresh, row, column, p, memory)
        note_several(LARGEST_LOOKED_AT, m, row, column, p, memory)
        is_settled = _settle_rows(row, column, p, memory)
        status = CONVERGED if is_settled else solve_near(m, row, column, p, calls.solver, exact(strict, _STRICT), memory)
        # 3. at the longest step the nearest point of an infeasible problem has ended at once
        if status == INFEASIBLE and iwork[p.n_still] >= longest:
            return status
        # 4. from the guess of all at their bounds: switches may have moved lambda so far that rounding of its terms decides; an inexact
        # solution may have the modes, but not where there is none
        if status != CONVERGED:
            work[p.rounding] = _start_again(row, column, p, work)
            own = exact(strict, _STRICT) if status == INFEASIBLE else strict
            status = solve_near(m, row, column, p, calls.solver, own, memory)
            work[p.rounding] = 0.0
        # 5. a small residual: rounding of W decides between modes, and any of them is tried
        if status != CONVERGED and work[p.info + 1] <= max(_ENOUGH, usual.tol):
            status = CONVERGED
        if status == CONVERGED:
            break
        if status == INFEASIBLE:
            iwork[p.is_doubtful] = 1
    # 6. modes by the bounds that the solution is at; equal bounds leave the sign of y
    for i in range(m):
        work[p.chosen + i] = min(max(work[p.z + i] + work[p.K + i], work[p.bounds_lower + i]), work[p.bounds_upper + i])
        z, lower, upper = work[p.z + i], work[p.bounds_lower + i] - work[p.K + i], work[p.bounds_upper + i] - work[p.K + i]
        iwork[p.mode + i] = mode_at(z, lower, upper, work[p.q + i])
    return status


@kernel
def _settle_rows(row, column, p, memory):
    """Solve a problem in which each row is a component of its own, weakly coupled to others by a short step, by Gauss–Seidel sweeps.

    Each row has the z that solves it, in the last sweep the one that it had. False, with the guess restored, if sweeps do not end so, or if
    there may be several solutions. Rows of any size are solved in their own digits, however far influence falls along them.
    """
    work, iwork = memory.work, memory.iwork
    is_settled = p.n_components < p.m or p.m == 1 or iwork[p.several] != 0
    for _ in range(0 if is_settled else _SWEEPS):
        is_settled = True
        for i in range(p.m):
            w, own, terms = work[p.q + i], 0.0, abs(work[p.q + i])
            for k in range(row[i], row[i + 1]):
                term = work[p.W + k] * work[p.z + column[k]]
                own = work[p.W + k] if column[k] == i else own
                w, terms = w + (term if column[k] != i else 0.0), terms + (abs(term) if column[k] != i else 0.0)
            w = w if abs(w) > _NOTHING * terms else 0.0
            z = min(max(-w / own, work[p.lower + i]), work[p.upper + i])
            is_settled &= abs(z - work[p.z + i]) <= _NOTHING * abs(z)
            work[p.z + i], work[p.w + i] = z, w + own * z
        if is_settled:
            iwork[p.open], iwork[p.unstable] = max(iwork[p.open], 0), 0
            return True
    for i in range(0 if is_settled else p.m):
        work[p.z + i] = min(max(0.0, work[p.lower + i]), work[p.upper + i])
    return False


@kernel
def _note_multipliers(p, memory):
    """lambda before the choice, into K: at its bound where it has come to one, or is off by rounding."""
    work = memory.work
    for i in range(p.m):
        lam, terms = along(i, p.L, p.l, p, memory)
        lower, upper = work[p.bounds_lower + i], work[p.bounds_upper + i]
        nearest = upper if abs(upper - lam) < abs(lam - lower) else lower
        if memory.iwork[p.mode + i] == HELD and (memory.iwork[p.fired + i] != 0 or abs(lam - nearest) <= _ROUNDED * terms):
            lam = nearest
        work[p.K + i] = lam


@kernel
def _state_choice(length, is_afresh, row, column, p, memory):
    """W, q, bounds and first guess of the problem whose step is ``work[p.lengths + length]``."""
    work, iwork = memory.work, memory.iwork
    m, at = p.m, length * (p.m + 1)
    iwork[p.isolver] = 0  # another matrix
    for i in range(m):
        # 1. W: D and what the step adds
        for k in range(row[i], row[i + 1]):
            work[p.of_row + column[k]] = 0.0
        _add_own(i, 1.0, p, memory)
        for k in range(iwork[p.near_lam_row + at + i], iwork[p.near_lam_row + at + i + 1]):
            work[p.of_row + iwork[p.near_lam_column + k]] += work[p.near_lam + k]
        for k in range(row[i], row[i + 1]):
            work[p.W + k] = work[p.of_row + column[k]]
        # 2. q, with the sizes of its terms
        y, terms = output(i, p, memory)
        lower, upper = work[p.bounds_lower + i], work[p.bounds_upper + i]
        # rows without D: y is zero, or keeps its sign for the step, which fixes lambda at the other bound
        if iwork[p.direct + i] == 0:
            is_zero = iwork[p.fired + i] != 0 or iwork[p.mode + i] == HELD or abs(y) <= _ON_IT * terms
            if is_zero:
                y = 0.0
            else:
                lower, upper = bounds_away_from_zero(y, lower, upper)
        # rows with D, from scratch: by the previous lambda
        elif is_afresh:
            c = component(iwork[p.owner + i], p, iwork)
            for b in range(c.count):
                term = of_D(i, b, c, p, memory) * work[p.K + iwork[p.rows + c.begin + b]]
                y, terms = y + term, terms + abs(term)
        # y of fired and held rows is zero by definition, not by evaluation
        elif iwork[p.fired + i] != 0 or iwork[p.mode + i] == HELD:
            y = 0.0
        # by the previous modes, so that rows that differ from held ones by nothing do so here
        else:
            y, terms = along(i, p.Y, p.y0, p, memory)
        terms = terms if y != 0.0 else 0.0
        # 3. change by the implicit step: state, source, multipliers
        y, terms = _added(y, terms, at + i, p.near_x_row, p.near_x_column, p.near_x, p.x, memory)
        y, terms = _added(y, terms, at + i, p.near_s_row, p.near_s_column, p.near_s, p.s, memory)
        y, terms = _added(y, terms, at + i, p.near_lam_row, p.near_lam_column, p.near_lam, p.K, memory)
        # rounding would be data to the solver
        y = y if abs(y) > _NOTHING * terms else 0.0
        work[p.q + i], work[p.lower + i], work[p.upper + i] = y, lower - work[p.K + i], upper - work[p.K + i]
        work[p.z + i] = min(max(0.0, work[p.lower + i]), work[p.upper + i])


@tiny
def _added(y, terms, i, row, column, entries, x, memory):
    """(y, terms) and row i of a sparse operator times work[x:]; places in the memory."""
    for k in range(memory.iwork[row + i], memory.iwork[row + i + 1]):
        term = memory.work[entries + k] * memory.work[x + memory.iwork[column + k]]
        y, terms = y + term, terms + abs(term)
    return y, terms


@tiny
def of_D(i, b, c, p, memory):
    """The entry of D in row i, of the component c, and its local column b."""
    return memory.work[p.D + c.square + memory.iwork[p.local + i] * c.count + b]


@tiny
def _add_own(i, factor, p, memory):
    """Add a multiple of row i of D to work[of_row:]."""
    c = component(memory.iwork[p.owner + i], p, memory.iwork)
    for b in range(c.count):
        memory.work[p.of_row + memory.iwork[p.rows + c.begin + b]] += factor * of_D(i, b, c, p, memory)


@kernel
def jump(flow, calls, memory):
    """Jump ``x += B p`` if no lambda gives the required y: p is the limit of ``h lambda`` of an implicit step, h to 0. False without limit.

    ``0 <= p  ⟂  C (x + B p) + e + D p / h >= 0``, and p = 0 of bounded multipliers, with three h, each half of the one before:
    Richardson extrapolation removes two orders of the error.
    """
    solver_options, work, iwork = calls.solver_options, memory.work, memory.iwork
    # 1. scale of h: the time in which B changes y as much as D
    p, m, n, by_B, by_D = flow.plan[0], flow.plan[0].m, flow.plan[0].n, 0.0, 0.0
    row, column = pattern_of_choice(p.n_lengths - 1, flow)
    for i in range(m):
        _drive_row(i, row, column, p, memory)
        c = component(iwork[p.owner + i], p, iwork)
        for k in range(row[i], row[i + 1]):
            by_B = max(by_B, abs(work[p.of_row + column[k]]))
        for b in range(c.count):
            by_D = max(by_D, abs(of_D(i, b, c, p, memory)))
    strict = changed(solver_options, min(_STRICT, solver_options.tol), solver_options.max_iter)
    # 2. three problems, and their extrapolation to h = 0
    for halvings in range(3):
        stiffness = by_B / (_SHORT * by_D) * 2.0**halvings if by_D > 0.0 else 0.0
        for i in range(m):
            work[p.q + i], _ = output(i, p, memory)
            work[p.z + i] = 0.0
            work[p.lower + i], work[p.upper + i] = bounds_of_impulse(work[p.bounds_lower + i], work[p.bounds_upper + i])
            _drive_row(i, row, column, p, memory)
            _add_own(i, stiffness, p, memory)
            for k in range(row[i], row[i + 1]):
                work[p.W + k] = work[p.of_row + column[k]]
        status = solve(m, row, column, p.W, p, calls.solver, strict, False, memory)
        if status != CONVERGED and not work[p.info + 1] <= max(_ENOUGH, solver_options.tol):
            return False
        # weights of the extrapolation 1, 1/2, 1/4
        weight = (1.0 if halvings == 0 else -6.0 if halvings == 1 else 8.0) / 3.0
        for i in range(m):
            work[p.chosen + i] = (work[p.chosen + i] if halvings > 0 else 0.0) + weight * work[p.z + i]
    # 3. jump, and modes by p
    most = 0.0
    for i in range(m):
        most = max(most, abs(work[p.chosen + i]))
    for a in range(n):
        for k in range(iwork[p.B_row + a], iwork[p.B_row + a + 1]):
            work[p.x + a] += work[p.B + k] * work[p.chosen + iwork[p.B_column + k]]
    note_size(p, work)
    for i in range(m):
        is_held = abs(work[p.chosen + i]) > _VERGE * most
        low, high = work[p.bounds_lower + i] > -math.inf, work[p.bounds_upper + i] < math.inf
        iwork[p.mode + i] = LOWER if low and not is_held else UPPER if high and not is_held else HELD
    # 4. motion in these modes; a projection gives all digits
    solve_modes(flow, memory)
    put_on_outputs(flow, memory)  # from a jump in digits that count to one in all of them
    return True


@kernel
def _drive_row(i, row, column, p, memory):
    """Row i of C B into work[of_row:], where the pattern of W has entries."""
    work, iwork = memory.work, memory.iwork
    for k in range(row[i], row[i + 1]):
        work[p.of_row + column[k]] = 0.0
    entry, reads = p.C + iwork[p.at + i], iwork[p.reads + i]
    for l in range(iwork[p.wide + i]):
        a = iwork[reads + l]
        for k in range(iwork[p.B_row + a], iwork[p.B_row + a + 1] if work[entry + l] != 0.0 else 0):
            work[p.of_row + iwork[p.B_column + k]] += work[entry + l] * work[p.B + k]


@kernel
def _start_again(row, column, p, work):
    """Put z at the point of its box that is nearest to 0. Returns rounding of the largest terms that w has there."""
    largest = 0.0
    for i in range(p.m):
        work[p.z + i] = min(max(0.0, work[p.lower + i]), work[p.upper + i])
    for i in range(p.m):
        terms = abs(work[p.q + i])
        for k in range(row[i], row[i + 1]):
            terms += abs(work[p.W + k] * work[p.z + column[k]])
        largest = max(largest, terms)
    return rounding_of(largest)


@kernel
def solve_modes(flow, memory):
    """Express lambda, y and the motion of the present modes by x: L, l, Y, y0, rate and constant."""
    work, iwork = memory.work, memory.iwork
    p, largest = flow.plan[0], 0.0
    # 1. input by sources and rows at bounds; sizes of outputs
    _gather_input(p, memory)
    for i in range(p.m):
        largest = max(largest, output(i, p, memory)[1])
    work[p.largest], iwork[p.is_off] = largest, 0
    for a in range(p.n):
        iwork[p.is_moved + a] = iwork[p.is_unsolved]
    # 2. lambda of components whose modes are others
    for k in range(p.n_components):
        c = component(k, p, iwork)
        iwork[p.is_stale + k] = 1 if _is_stale(c, p, memory) else 0
        if iwork[p.is_stale + k] != 0:
            _solve_component(k, c, p, memory)
        elif iwork[p.n_hidden + k] > 0:
            _note_off(k, c, p, memory)
        if iwork[p.off + k] != 0:
            iwork[p.is_off] = iwork[p.off + k]
    if p.is_driven != 0:
        _without_rounding(p.l, p.L, p, memory)
    # 3. substitute into their outputs, and into the rates of what they act on; in circuits rounding of large sources is removed first
    for k in range(p.n_components):
        if iwork[p.is_stale + k] != 0:
            _substitute_outputs(k, p, memory)
            for l in range(iwork[p.touched_begin + k], iwork[p.touched_begin + k + 1]):
                iwork[p.is_moved + iwork[p.touched + l]] = 1
    if p.is_driven != 0:
        _without_rounding(p.y0, p.Y, p, memory)
    for a in range(p.n):
        if iwork[p.is_moved + a] != 0:
            _substitute_rate(a, p, memory)
    iwork[p.is_unsolved] = 0
    forget_long_steps(p, memory)


@kernel
def _gather_input(p, memory):
    """The part of x' by sources and by rows at their bounds."""
    work, iwork = memory.work, memory.iwork
    for a in range(p.n):
        f = work[p.s + a]
        for k in range(iwork[p.B_row + a], iwork[p.B_row + a + 1]):
            f += _at_bound(iwork[p.B_column + k], p, memory) * work[p.B + k]
        work[p.input + a] = f


@tiny
def _is_stale(c, p, memory):
    """Whether a component has to be solved again: other modes or bounds, or redundant rows, which keep the lambda of the choice."""
    iwork, result = memory.iwork, memory.iwork[p.is_unsolved] != 0
    for b in range(c.count):
        i = iwork[p.rows + c.begin + b]
        mode = iwork[p.mode + i]
        result |= mode != iwork[p.solved_mode + i] or _at_bound(i, p, memory) != memory.work[p.solved + i]
    return result


@kernel
def _solve_component(k, c, p, memory):
    """l and L of the rows of a component."""
    work, iwork = memory.work, memory.iwork
    # 1. eliminate lambda of the held rows
    count = _eliminate(k, c, p, memory)
    if count < _count_held(c, p, iwork):
        count = _hold_more(count, k, c, p, memory)
    # 2. rows at bounds
    for b in range(c.count):
        i = iwork[p.rows + c.begin + b]
        work[p.l + i] = work[p.solved + i] = _at_bound(i, p, memory)
        iwork[p.solved_mode + i] = iwork[p.mode + i]
        for j in range(c.width):
            work[p.L + iwork[p.at + i] + j] = 0.0
    # 3. redundant held rows keep the lambda of the choice, and are solved again with the next one; the others follow from x
    column = p.column + c.begin
    held = _count_held(c, p, iwork) if p.is_driven != 0 else count
    for b in range(count, held):
        i = iwork[p.rows + c.begin + iwork[column + b]]
        work[p.l + i], iwork[p.solved_mode + i] = work[p.chosen + i], ABSENT
    for a in range(count):
        i = iwork[p.rows + c.begin + iwork[column + a]]
        work[p.l + i] = -work[p.K + c.begin + a]
        for b in range(count, held):
            other = iwork[p.rows + c.begin + iwork[column + b]]
            work[p.l + i] -= work[p.P + c.square + a * c.count + b] * work[p.l + other]
        for j in range(c.width):
            work[p.L + iwork[p.at + i] + j] = -work[p.X + c.entries + a * c.width + j]


@kernel
def take_back(p, memory):
    """Restore the modes of rows that were changed too early: whose guard had not come to zero, and that violate the law now.

    A choice looks ahead by a step, in which y or lambda may get there. For rows with D. Returns whether there are any.
    """
    iwork = memory.iwork
    are_back = False
    for i in range(p.m):
        mode, before = iwork[p.mode + i], iwork[p.before + i]
        fixed = memory.work[p.bounds_lower + i] == memory.work[p.bounds_upper + i] or iwork[p.direct + i] == 0
        if fixed or mode == before or iwork[p.fired + i] != 0:
            continue
        if _breaks_law(i, _ROUNDED, p, memory):
            iwork[p.mode + i], are_back = before, True
    return are_back


@kernel
def broken_row(p, memory):
    """The first row that breaks the law in the present modes, by more than a short step explains; -1 where none does."""
    for i in range(p.m):
        if memory.work[p.bounds_lower + i] != memory.work[p.bounds_upper + i] and _breaks_law(i, _BROKEN, p, memory):
            return i
    return -1


@tiny
def _breaks_law(i, share, p, memory):
    """Whether y, or lambda of a held row, is beyond its bound by more than share times its terms."""
    work = memory.work
    mode = memory.iwork[p.mode + i]
    matrix, constant = (p.L, p.l) if mode == HELD else (p.Y, p.y0)
    value, terms = along(i, matrix, constant, p, memory)
    if mode == HELD:
        off = max(work[p.bounds_lower + i] - value, value - work[p.bounds_upper + i])
    else:
        off = -value if mode == LOWER else value
    return off > share * terms and off > share * _unit(mode == HELD, p, memory)


@kernel
def _without_rounding(constant, matrix, p, memory):
    """Entries of a column that are rounding of its largest, or of that of C or e, become 0: y and lambda of circuits have one unit."""
    work, iwork, largest = memory.work, memory.iwork, 0.0
    # 1. the largest of each column
    for j in range(p.n):
        work[p.spare + j] = 0.0
    for i in range(p.m):
        largest = max(largest, abs(work[p.e + i]), abs(work[constant + i]))
        at, reads = iwork[p.at + i], iwork[p.reads + i]
        for l in range(iwork[p.wide + i]):
            j = iwork[reads + l]
            work[p.spare + j] = max(work[p.spare + j], abs(work[p.C + at + l]), abs(work[matrix + at + l]))
    # 2. entries beside it
    for i in range(p.m):
        work[constant + i] = work[constant + i] if abs(work[constant + i]) > _NOTHING * largest else 0.0
        at, reads = matrix + iwork[p.at + i], iwork[p.reads + i]
        for l in range(iwork[p.wide + i]):
            work[at + l] = work[at + l] if abs(work[at + l]) > _NOTHING * work[p.spare + iwork[reads + l]] else 0.0


@tiny
def _count_held(c, p, iwork):
    """Number of HELD rows of a component."""
    count = 0
    for b in range(c.count):
        count += 1 if iwork[p.mode + iwork[p.rows + c.begin + b]] == HELD else 0
    return count


@kernel
def _hold_more(count, k, c, p, memory):
    """If held rows are redundant, hold rows at a bound with y = 0, too, provided that lambda of the others is then determined.

    So a floating part of a circuit moves with the diode that is about to conduct. Returns the count of `_eliminate`.
    """
    work, iwork = memory.work, memory.iwork
    largest = 0.0
    for i in range(p.m):
        largest = max(largest, abs(work[p.q + i]))
    # one more row at a time, undone unless it makes a redundant row independent
    for b in range(c.count):
        i = iwork[p.rows + c.begin + b]
        mode, missing = iwork[p.mode + i], _count_held(c, p, iwork) - count
        if missing == 0:
            break
        if mode == HELD or work[p.bounds_lower + i] == work[p.bounds_upper + i] or abs(work[p.w + i]) > _VERGE * largest:
            continue
        iwork[p.mode + i] = HELD
        _gather_input(p, memory)
        count = _eliminate(k, c, p, memory)
        if _count_held(c, p, iwork) - count >= missing:
            iwork[p.mode + i] = mode
            _gather_input(p, memory)
            count = _eliminate(k, c, p, memory)
    return count


@kernel
def _substitute_outputs(k, p, memory):
    """``y = (C + D L) x + e + D l`` of the rows of a component, as ``Y x + y0``."""
    work, iwork = memory.work, memory.iwork
    c = component(k, p, iwork)
    for a in range(c.count):
        i = iwork[p.rows + c.begin + a]
        at = iwork[p.at + i]
        # 1. constant
        s = work[p.e + i]
        terms = abs(s)
        for b in range(c.count):
            term = of_D(i, b, c, p, memory) * work[p.l + iwork[p.rows + c.begin + b]]
            s, terms = s + term, terms + abs(term)
        work[p.y0 + i] = s if p.is_driven == 0 or abs(s) > _NOTHING * terms else 0.0
        # 2. factors of x, with the sizes of their terms
        for j in range(c.width):
            work[p.Y + at + j] = work[p.C + at + j]
            work[p.spare + j] = abs(work[p.C + at + j])
        for b in range(c.count):
            factor, other = of_D(i, b, c, p, memory), p.L + iwork[p.at + iwork[p.rows + c.begin + b]]
            for j in range(c.width if factor != 0.0 else 0):
                term = factor * work[other + j]
                work[p.Y + at + j] += term
                work[p.spare + j] += abs(term)
        for j in range(c.width if p.is_driven != 0 else 0):
            work[p.Y + at + j] = work[p.Y + at + j] if abs(work[p.Y + at + j]) > _NOTHING * work[p.spare + j] else 0.0


@kernel
def _substitute_rate(a, p, memory):
    """``x' = (A + B L) x + s + B l`` of the state a, as ``rate x + constant``; entries that are 0 are left out."""
    work, iwork = memory.work, memory.iwork
    # 1. constant
    s = work[p.s + a]
    terms = abs(s)
    for k in range(iwork[p.B_row + a], iwork[p.B_row + a + 1]):
        term = work[p.B + k] * work[p.l + iwork[p.B_column + k]]
        s, terms = s + term, terms + abs(term)
    work[p.constant + a] = s if p.is_driven == 0 or abs(s) > _NOTHING * terms else 0.0
    # 2. factors of x, with the sizes of their terms, over all states
    for k in range(iwork[p.rate_row + a], iwork[p.rate_row + a + 1]):
        work[p.sum + iwork[p.rate_pattern + k]] = work[p.spare + iwork[p.rate_pattern + k]] = 0.0
    for k in range(iwork[p.A_row + a], iwork[p.A_row + a + 1]):
        j = iwork[p.A_column + k]
        work[p.sum + j], work[p.spare + j] = work[p.A + k], abs(work[p.A + k])
    for k in range(iwork[p.B_row + a], iwork[p.B_row + a + 1]):
        i, factor = iwork[p.B_column + k], work[p.B + k]
        at, reads = p.L + iwork[p.at + i], iwork[p.reads + i]
        for l in range(iwork[p.wide + i] if factor != 0.0 else 0):
            term, j = factor * work[at + l], iwork[reads + l]
            work[p.sum + j] += term
            work[p.spare + j] += abs(term)
    # 3. those that are not 0
    end = iwork[p.rate_row + a]
    for k in range(iwork[p.rate_row + a], iwork[p.rate_row + a + 1]):
        j = iwork[p.rate_pattern + k]
        value = work[p.sum + j]
        if value != 0.0 and (p.is_driven == 0 or abs(value) > _NOTHING * work[p.spare + j]):
            work[p.rate + end], iwork[p.rate_column + end] = value, j
            end += 1
    iwork[p.rate_end + a] = end


@kernel
def _eliminate(k, c, p, memory):
    """Solve ``P lambda + X x + K = 0`` of the HELD rows of a component for lambda. Returns the number of independent rows, which are first.

    Out: lambda of its row iwork[p.column + a] is ``-X_a x - K_a``. Rows without lambda are differentiated; those still without one are
    redundant.
    """
    work, iwork = memory.work, memory.iwork
    rows = _rows(c, p)
    count, done = _solve_by_D(c, rows, p, memory)
    # 1. the remaining rows constrain x
    iwork[p.n_hidden + k] = count - done
    for a in range(done, count):
        work[p.hidden_constant + c.begin + a - done] = work[rows.K + a]
        for j in range(c.width):
            work[p.hidden + c.entries + (a - done) * c.width + j] = work[rows.X + a * c.width + j]
    _note_off(k, c, p, memory)
    # 2. rows without lambda: differentiate, at most n times (relative degree), and pivot again
    for order in range(p.n):
        if done == count:
            break
        for a in range(done, count):
            _differentiate(a, done, count, c, rows, p, memory)
        done = pivot(done, count, rows, memory)
        if order == 0 and p.is_driven != 0 and done < count:
            _note_what_leaves(done, count, k, c, p, memory)
    return done


@kernel
def _solve_by_D(c, rows, p, memory):
    """Solve the HELD rows of a component for the lambda on which they depend at once. Returns (number of these rows, of solved ones)."""
    work, iwork = memory.work, memory.iwork
    column, count = p.column + c.begin, 0
    # 1. held rows
    for b in range(c.count):
        if iwork[p.mode + iwork[p.rows + c.begin + b]] == HELD:
            iwork[rows.row + count], iwork[column + count] = b, b
            count += 1
    # 2. rows, with lambda of the others at their bounds
    for a in range(count):
        i = iwork[p.rows + c.begin + iwork[rows.row + a]]
        work[rows.K + a] = work[p.e + i]
        for b in range(c.count):
            work[rows.K + a] += _at_bound(iwork[p.rows + c.begin + b], p, memory) * of_D(i, b, c, p, memory)
        for j in range(c.width):
            work[rows.X + a * c.width + j] = work[p.C + iwork[p.at + i] + j]
        for b in range(count):
            work[rows.P + a * c.count + b] = of_D(i, iwork[column + b], c, p, memory)
        work[rows.size + a] = 0.0
        for b in range(count):
            work[rows.size + a] = max(work[rows.size + a], abs(work[rows.P + a * c.count + b]))
    # 3. pivots of D
    return count, pivot(0, count, rows, memory)


@kernel
def n_surfaces(p, memory):
    """Number of hidden rows in the present modes: they are 0 at the state, and keep it on surfaces."""
    count = 0
    for k in range(p.n_components):
        count += memory.iwork[p.n_hidden + k]
    return count


@kernel
def off_surface(l, x, p, memory):
    """Hidden row l, of all components, at the state x."""
    work, k = memory.work, 0
    while l >= memory.iwork[p.n_hidden + k]:
        l, k = l - memory.iwork[p.n_hidden + k], k + 1
    c = component(k, p, memory.iwork)
    off = work[p.hidden_constant + c.begin + l]
    for j in range(c.width):
        off += work[p.hidden + c.entries + l * c.width + j] * x[memory.iwork[c.columns + j]]
    return off


@kernel
def along_lambda(l, out, p, memory):
    """B of the l-th lambda that held rows do not determine at once, with those that do change with it."""
    work, iwork, k = memory.work, memory.iwork, 0
    # 1. its component, and lambda of that
    while l >= iwork[p.n_hidden + k]:
        l, k = l - iwork[p.n_hidden + k], k + 1
    c = component(k, p, iwork)
    _, done = _solve_by_D(c, _rows(c, p), p, memory)
    for b in range(c.count):
        work[p.of_row + iwork[p.rows + c.begin + b]] = 0.0
    for a in range(done + 1):
        i = iwork[p.rows + c.begin + iwork[p.column + c.begin + (a if a < done else done + l)]]
        work[p.of_row + i] = -work[p.P + c.square + a * c.count + done + l] if a < done else 1.0
    # 2. B of its rows
    for j in range(p.n):
        out[j] = 0.0
        for at in range(iwork[p.B_row + j], iwork[p.B_row + j + 1]):
            i = iwork[p.B_column + at]
            out[j] += work[p.B + at] * work[p.of_row + i] if iwork[p.owner + i] == k else 0.0


@tiny
def _rows(c, p):
    """The rows of the elimination of a component."""
    at = c.begin
    return Rows(
        c.count, p.P + c.square, p.X + c.entries, c.width, c.width, p.K + at, p.size + at, p.best + at, p.row + at, p.column + at,
        p.best_column + at, 0.0, _NO_ENTRY,
    )  # fmt: skip


@tiny
def _at_bound(i, p, memory):
    """lambda of a row at a bound, 0 of a held row."""
    mode = memory.iwork[p.mode + i]
    return memory.work[p.bounds_lower + i] if mode == LOWER else memory.work[p.bounds_upper + i] if mode == UPPER else 0.0


@tiny
def hidden_row(l, c, p, memory):
    """(value at x of a hidden row of a component, the largest that its terms have been together)."""
    work = memory.work
    y, terms = work[p.hidden_constant + c.begin + l], abs(work[p.hidden_constant + c.begin + l])
    for j in range(c.width):
        at, a = p.hidden + c.entries + l * c.width + j, memory.iwork[c.columns + j]
        y += work[at] * work[p.x + a]
        terms += abs(work[at]) * work[p.x_size + a]
    return y, terms


@kernel
def _note_off(k, c, p, memory):
    """Note if a hidden row, which constrains x, is off by more than rounding: only a jump of x corrects that."""
    iwork = memory.iwork
    count, done = _count_held(c, p, iwork), 0
    iwork[p.off + k], done = 0, count - iwork[p.n_hidden + k]
    for l in range(iwork[p.n_hidden + k]):
        if abs(hidden_row(l, c, p, memory)[0]) > _OFF * memory.work[p.largest]:
            iwork[p.off + k], iwork[p.culprit] = 1, iwork[p.rows + c.begin + iwork[p.row + c.begin + done + l]]


@kernel
def _note_what_leaves(done, count, k, c, p, memory):
    """Note if a source moves a held row off 0 which no lambda can hold, nor its rate: a loop of contradicting sources."""
    work, iwork, largest = memory.work, memory.iwork, 0.0
    # sizes of the terms of x'
    for j in range(p.n):
        work[p.spare + j] = abs(work[p.input + j])
        for l in range(iwork[p.A_row + j], iwork[p.A_row + j + 1]):
            work[p.spare + j] += abs(work[p.A + l]) * work[p.x_size + iwork[p.A_column + l]]
    # rates of the remaining rows, relative to the largest terms
    for i in range(p.m):
        terms, at, reads = 0.0, p.C + iwork[p.at + i], iwork[p.reads + i]
        for l in range(iwork[p.wide + i]):
            terms += abs(work[at + l]) * work[p.spare + iwork[reads + l]]
        largest = max(largest, terms)
    for a in range(done, count):
        rate = work[p.K + c.begin + a]
        for j in range(c.width):
            rate += work[p.X + c.entries + a * c.width + j] * work[p.x + iwork[c.columns + j]]
        if iwork[p.off + k] == 0 and abs(rate) > _OFF * largest:
            iwork[p.off + k], iwork[p.culprit] = LEAVES, iwork[p.rows + c.begin + iwork[p.row + c.begin + a]]


@kernel
def _differentiate(a, done, count, c, rows, p, memory):
    """Replace row a, which has no lambda, by its derivative, minus its part along the solved rows."""
    work, iwork, X = memory.work, memory.iwork, rows.X + a * c.width
    constant, size = 0.0, 0.0
    n_entries = _nonzero(X, p.nonzero, c.width, memory)
    # 1. X x' = X (A x + input), and coefficients X B of lambda with their terms
    for j in range(c.width):
        work[p.spare + iwork[c.columns + j]] = 0.0
    for b in range(c.count):
        i = iwork[p.rows + c.begin + b]
        work[p.of_row + i] = work[p.of_terms + i] = 0.0
    for l in range(n_entries):
        k, factor = iwork[c.columns + iwork[p.nonzero + l]], work[X + iwork[p.nonzero + l]]
        constant += factor * work[p.input + k]
        for at in range(iwork[p.A_row + k], iwork[p.A_row + k + 1]):
            work[p.spare + iwork[p.A_column + at]] += factor * work[p.A + at]
        for at in range(iwork[p.B_row + k], iwork[p.B_row + k + 1]):
            term = factor * work[p.B + at]
            work[p.of_row + iwork[p.B_column + at]] += term
            work[p.of_terms + iwork[p.B_column + at]] += abs(term)
    # 2. rounding set to 0: a pivot must not be rounding
    for b in range(count):
        i = iwork[p.rows + c.begin + iwork[p.column + c.begin + b]]
        entry, terms = work[p.of_row + i], work[p.of_terms + i]
        work[rows.P + a * c.count + b] = entry if abs(entry) > _NO_PIVOT * terms else 0.0
        size = max(size, terms)
    # 3. store, and subtract the solved rows
    work[rows.K + a] = constant
    for j in range(c.width):
        work[X + j] = work[p.spare + iwork[c.columns + j]]
    work[rows.size + a] = size
    for k in range(done):
        subtract(a, k, count, rows, work)


@tiny
def _nonzero(row, slots, width, memory):
    """Slots of the entries of a row of so many that are not zero, into iwork[slots:]; returns their number."""
    count = 0
    for j in range(width):
        if memory.work[row + j] != 0.0:
            memory.iwork[slots + count] = j
            count += 1
    return count


@kernel
def move(h_most, flow, memory):
    """One step of the motion in the present modes, at most h_most, or to the first event in it. Returns (h, whether an event ends it).

    The motion is its Taylor series, to rounding: x at theta is ``sum_j c_j theta^j``; h is as long as the last terms are rounding. Many
    short steps are replaced by one of collocation, which may be longer than h_most.
    """
    work = memory.work
    p, n = flow.plan[0], flow.plan[0].n
    # 1. polynomials of the motion
    h = take_long_step(h_most, SERIES_DEGREE, p, memory)
    is_long = h > 0.0
    if not is_long:
        h = _short_step(h_most, p, memory)
    # 2. first root of the guards
    end = min(h_most / h, 1.0) if is_long else 1.0
    theta = _first_event(end, h, p, memory)
    is_event = theta != NO_ROOT
    if not is_event:
        theta = end
    # 3. state there
    if is_long:
        move_to(theta, p, work)
    for k in range(0 if is_long else _count_moving(p, memory.iwork)):
        a = _moving(k, p, memory.iwork)
        x = work[p.poly + SERIES_DEGREE * n + a]
        for j in range(SERIES_DEGREE - 1, -1, -1):
            x = x * theta + work[p.poly + j * n + a]
        work[p.x + a] = x
    note_size(p, work)
    return theta * h if is_event or h < h_most else h_most, is_event


@kernel
def _short_step(h_most, p, memory):
    """Coefficients of the motion over a step of its series, whose length is returned."""
    work = memory.work
    _widen(p, memory)
    h, growth = h_most if work[p.step] <= 0.0 else min(h_most, work[p.step]), 1.0
    for _ in range(_ATTEMPTS):
        growth = _series(h, p, memory)
        if growth >= 1.0:
            break
        h *= max(0.9 * growth, 0.02)
    work[p.step] = h * min(growth, 4.0)
    return h


@kernel
def forget_moving(p, memory):
    """No state has moved, and all coefficients of series are 0."""
    work, iwork = memory.work, memory.iwork
    iwork[p.first_moving] = iwork[p.end_moving] = 0
    for k in range((SERIES_DEGREE + 1) * p.n):
        work[p.poly + k] = work[p.c_size + k] = 0.0
    for a in range(p.n):
        work[p.reach + a] = 0.0


@kernel
def _widen(p, memory):
    """Add to the states that move all on which those that are not 0, or have a constant rate, act within a series.

    Along many states motion fades to numbers that have lost their digits, and take a processor a hundred times as long: they count as 0.
    """
    work, iwork = memory.work, memory.iwork
    first, end, reach, least = p.first_driven, p.end_driven, SERIES_DEGREE * p.band, 0.0
    for a in range(p.n_own):
        least = max(least, _FADED * abs(work[p.x + a]))
    for a in range(p.n_own):
        if abs(work[p.x + a]) > least or work[p.constant + a] != 0.0:
            first = min(first, a)
            break
    for a in range(p.n_own - 1, -1, -1):
        if abs(work[p.x + a]) > least or work[p.constant + a] != 0.0:
            end = max(end, a + 1)
            break
    # each coefficient reaches as much farther as rates do
    if first < end:
        first, end, is_first = max(first - reach, 0), min(end + reach, p.n_own), iwork[p.end_moving] == 0
        iwork[p.first_moving] = first if is_first else min(iwork[p.first_moving], first)
        iwork[p.end_moving] = max(iwork[p.end_moving], end)


@tiny
def _count_moving(p, iwork):
    """Number of states that move, with those of sources."""
    return iwork[p.end_moving] - iwork[p.first_moving] + p.n - p.n_own


@tiny
def _moving(k, p, iwork):
    """The k-th of the states that move; those of sources are the last ones."""
    own = iwork[p.end_moving] - iwork[p.first_moving]
    return iwork[p.first_moving] + k if k < own else p.n_own + k - own


@kernel
def _series(h, p, memory):
    """Coefficients of the motion over h. Returns the factor by which h may grow; below 1 the last terms still count."""
    work, iwork = memory.work, memory.iwork
    n, count, growth = p.n, _count_moving(p, iwork), 1e3
    for l in range(count):
        a = _moving(l, p, iwork)
        work[p.poly + a] = work[p.x + a]
        work[p.c_size + a] = work[p.x_size + a] if a >= p.n_own else abs(work[p.x + a])
        work[p.reach + a], work[p.spare + a] = 0.0, max(abs(work[p.x + a]), _NO_SIZE)
    # 1. coefficients, and sizes of their terms; the most that they move a state, and its largest one but the last
    for j in range(SERIES_DEGREE):
        for l in range(count):
            a = _moving(l, p, iwork)
            c = work[p.constant + a] if j == 0 else 0.0
            size = abs(c)
            for k in range(iwork[p.rate_row + a], iwork[p.rate_end + a]):
                b = iwork[p.rate_column + k]
                c += work[p.rate + k] * work[p.poly + j * n + b]
                size += abs(work[p.rate + k]) * work[p.c_size + j * n + b]
            c = c * h / (j + 1)
            work[p.poly + (j + 1) * n + a] = c
            work[p.reach + a] += abs(c)
            if j + 1 < SERIES_DEGREE:
                work[p.spare + a] = max(work[p.spare + a], abs(c))
            work[p.c_size + (j + 1) * n + a] = size * h / (j + 1)
    # 2. the last two terms of each state against its largest one
    last_but_one = last = math.inf
    for l in range(count):
        a = _moving(l, p, iwork)
        largest, end = work[p.spare + a], p.poly + SERIES_DEGREE * n + a
        before, after = abs(work[end - n]), abs(work[end])
        if not before + after < math.inf:
            return 0.02
        last_but_one = min(last_but_one, _EPS * largest / before if before > 0.0 else math.inf)
        last = min(last, _EPS * largest / after if after > 0.0 else math.inf)
    return min(growth, last_but_one ** (1.0 / (SERIES_DEGREE - 1)), last ** (1.0 / SERIES_DEGREE))


@kernel
def _first_event(end, h, p, memory):
    """First theta, up to end, at which a guard comes to zero, or NO_ROOT; h: step of the series. Out: those guards, in iwork[p.fired:]."""
    work, iwork = memory.work, memory.iwork
    best, no_change = NO_ROOT, min(_NO_CHANGE * 10.0 ** iwork[p.n_still], _MOST_CHANGE) if iwork[p.n_still] > 0 else 0.0
    # 1. first root of each guard
    for i in range(p.m):
        work[p.w + i] = NO_ROOT
        # equal bounds: lambda is given, and y free
        mode, lower, upper = iwork[p.mode + i], work[p.bounds_lower + i], work[p.bounds_upper + i]
        if lower == upper:
            continue
        # a row at a bound: y
        if mode != HELD:
            work[p.w + i] = _root(i, False, 1.0 if mode == LOWER else -1.0, 0.0, end, no_change, h, p, memory)
        # a held row: lambda at either bound
        if mode == HELD and lower > -math.inf:
            work[p.w + i] = _root(i, True, 1.0, lower, end, no_change, h, p, memory)
        if mode == HELD and upper < math.inf:
            work[p.w + i] = min(work[p.w + i], _root(i, True, -1.0, upper, end, no_change, h, p, memory))
        best = min(best, work[p.w + i])
    # 2. guards that come to zero together are one event
    for i in range(p.m):
        iwork[p.fired + i] = 1 if best != NO_ROOT and work[p.w + i] <= best + _TOGETHER else 0
    return best


@kernel
def _root(i, is_lambda, sign, bound, end, no_change, h, p, memory):
    """First root of ``sign (lambda - bound)``, or of y, of row i along the motion; initial coefficients that are rounding count as zero.

    A guard that has just fired is zero by rounding only: its leading coefficients are dropped, so that it does not fire again.
    """
    work, iwork, zeros, is_start, size = memory.work, memory.iwork, 0, True, 0.0
    constant = work[p.l + i] if is_lambda else work[p.y0 + i]
    row, reads = (p.L if is_lambda else p.Y) + iwork[p.at + i], iwork[p.reads + i]
    # 1. most guards are farther from zero than the motion reaches
    g, terms, most = constant - bound, abs(constant) + abs(bound), 0.0
    for l in range(iwork[p.wide + i]):
        a, factor = iwork[reads + l], work[row + l]
        g, terms, most = g + factor * work[p.poly + a], terms + abs(factor) * work[p.x_size + a], most + abs(factor) * work[p.reach + a]
    if _CLEAR * sign * g > most and sign * g > max(_NO_VALUE, no_change) * terms:
        return NO_ROOT
    if most == 0.0 and sign * g >= -_ROUNDED * terms:  # zero throughout
        return NO_ROOT
    # 2. polynomial of the guard
    n_entries = _nonzero(row, p.nonzero, iwork[p.wide + i], memory)
    no_slope = _NO_SLOPE if iwork[p.n_short] == 1 else _NO_LATER_SLOPE
    for j in range(SERIES_DEGREE + 1):
        g = constant - bound if j == 0 else 0.0
        terms = abs(constant) + abs(bound) if j == 0 else 0.0
        reach = 0.0
        for l in range(n_entries):
            slot = iwork[p.nonzero + l]
            a, factor = iwork[reads + slot], work[row + slot]
            # coefficient of order j, the size of its terms, and the largest size that these can have
            c = work[p.poly + j * p.n + a]
            g += factor * c
            terms += abs(factor) * (work[p.x_size + a] if j == 0 else abs(c))
            reach += abs(factor) * work[p.c_size + j * p.n + a]
        g *= sign
        # the value, and derivatives as long as all lower ones are zero
        if j == 0:
            is_start, size = -_ROUNDED * terms <= g <= max(_NO_VALUE, no_change) * terms, terms
        else:
            is_start &= abs(g) <= max(no_slope * terms, NOISE * reach, no_change * size)
        zeros += 1 if is_start else 0
        work[p.guard + j] = g
    return first_root(SERIES_DEGREE, p.guard, _without_dips(is_lambda, zeros, size, h, p, memory), 0.0, end, work)


@kernel
def _without_dips(is_lambda, zeros, size, h, p, memory):
    """Number of leading coefficients of a guard that count as zero, where the next one is negative and would be an event at once.

    A guard that comes back from less than rounding has not been below zero; rounding of the value is that of a choice of modes, and more
    where it is back before the end of the step by which they were chosen. Where no longer step leads to other modes, a guard of a circuit
    may go below zero by rounding: it is raised by that. size: terms of the guard; h: step of the series.
    """
    work, first = memory.work, p.guard + zeros
    if zeros > SERIES_DEGREE or work[first] >= 0.0:
        return zeros
    # 1. the first coefficient that leads back
    k = zeros
    while k <= SERIES_DEGREE and work[p.guard + k] <= 0.0:
        k += 1
    # 2. depth, and time until it is back: an equal part of that coefficient against each before it
    depth, back = 0.0, math.inf if k > SERIES_DEGREE else 0.0
    for j in range(zeros, k if k <= SERIES_DEGREE else zeros):
        ratio = -work[p.guard + j] / work[p.guard + k] * (k - zeros)
        depth -= work[p.guard + j] * (ratio * j / k) ** (j / (k - j)) * (1.0 - j / k)
        back = max(back, ratio ** (1.0 / (k - j)) * h)
    unit = max(size, _unit(is_lambda, p, memory))
    limit = _MOST_CHANGE if back <= _AHEAD * work[p.ahead] else _ROUNDED if zeros == 0 else _NO_VALUE
    if back < math.inf and depth <= limit * unit:
        return k
    # 3. no choice of modes keeps it from falling
    if zeros > 0 and memory.iwork[p.n_still] >= p.n_lengths:
        work[p.guard] += _NO_VALUE * unit
        return 0
    return zeros


@kernel
def _unit(is_lambda, p, memory):
    """Largest terms of y, or of lambda, over all rows of a circuit, in which they have one unit; 0 of other systems."""
    largest = 0.0
    for i in range(p.m if p.is_driven != 0 else 0):
        terms = along(i, p.L if is_lambda else p.Y, p.l if is_lambda else p.y0, p, memory)[1]
        largest = max(largest, terms if is_lambda else max(terms, output(i, p, memory)[1]))
    return largest


@kernel
def put_on_outputs(flow, memory):
    """Project x onto the constraints of the modes, and onto ``C x + e = 0`` of rows that came to zero, which only rounding violates."""
    work, iwork = memory.work, memory.iwork
    p = flow.plan[0]
    for _ in range(2):
        for k in range(p.n_components):
            c = component(k, p, iwork)
            for l in range(iwork[p.n_hidden + k]):
                _project(p.hidden + c.entries + l * c.width, c.columns, c.width, work[p.hidden_constant + c.begin + l], p, memory)
        for i in range(p.m):
            if iwork[p.direct + i] == 0 and (iwork[p.mode + i] == HELD or iwork[p.fired + i] != 0):
                _project(p.C + iwork[p.at + i], iwork[p.reads + i], iwork[p.wide + i], work[p.e + i], p, memory)


@kernel
def _project(row, columns, width, y, p, memory):
    """Move x onto ``row x + y = 0``, the more the larger its entries are; states of sources stay."""
    work, iwork, square = memory.work, memory.iwork, 0.0
    for l in range(width):
        j = iwork[columns + l]
        y += work[row + l] * work[p.x + j]
        if j < p.n_own:
            square += (work[row + l] * max(abs(work[p.x + j]), 1e-150)) ** 2
    for l in range(width if square > 0.0 else 0):
        j = iwork[columns + l]
        if j < p.n_own:
            work[p.x + j] -= y * work[row + l] * max(abs(work[p.x + j]), 1e-150) ** 2 / square
