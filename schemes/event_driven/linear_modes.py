"""Modes of linear first-order systems ``x' = A x + s + B lambda``, ``y = C x + D lambda + e``, and the affine motion in a mode.

Rows are LOWER, UPPER or HELD, see `nsds.schemes.event_driven.switched_rows`. The modes at a state are those of one implicit Euler step of
vanishing length h: the rational complementarity problem (Heemels, Schumacher, Weiland 2000) at the frequency 1/h,

    w = (D + h C G B) lambda + (C x + e) + h C G (A x + s),   G = (I - h A)^-1,      w and lambda by the law

with ``C x + e`` of rows that came to zero set to zero. If the modes that it chooses end at once, terms of higher order decide, which are
rounding at that h: the next choice takes a longer one. In a mode, y = 0 of the HELD rows is differentiated until lambda is determined,
which gives ``lambda = L x + l`` and ``x' = (A + B L) x + s + B l``.
"""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference, kernel, tiny
from nsds.maths.polynomials import NO_ROOT, first_root
from nsds.model.layout import table
from nsds.schemes.event_driven.accumulation import HISTORY
from nsds.schemes.event_driven.collocation import LARGEST, NOISE, STAGES, forget_long_steps, move_to, take_long_step
from nsds.schemes.event_driven.event_times import CLOCK, COUNTS
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
LENGTHS = (1e-11, 1e-9, 1e-7, 1e-5, 1e-3)  # of the step that decides the modes, in the shortest times of the system
# n states, m rows, p coefficients of a series, t unknowns of all stages of a long step. An extent is the product of its letters.
_ARRAYS = {
    # 1. system. A, B, C, D, e with M^-1; raw_B without it; mass: M; near_x, near_s, near_lam: operators of w in the choice of modes, for
    # each of the `LENGTHS`
    "A": "nn", "B": "nm", "raw_B": "nm", "C": "mn", "D": "mm", "mass": "nn", "e": "m", "near_x": "mn", "near_s": "mn",
    # 2. motion. x, s: state and source; poly of x: Taylor coefficients, guard: of one guard
    # 3. elimination of the HELD rows, P lambda + X x + K = 0; size: largest terms of P
    "x": "n", "s": "n", "spare": "n", "poly": "np", "guard": "p", "P": "mm", "X": "mn", "K": "m", "size": "m",
    # 4. mode. lambda = L x + l, y = Y x + y0, x' = rate x + constant; x_size: largest |x| so far; c_size: sizes of the terms of each
    # coefficient of the series, the scale of rounding
    "input": "n", "L": "mn", "l": "m", "Y": "mn", "y0": "m", "rate": "nn", "constant": "n", "x_size": "n", "c_size": "np",
    # 5. accumulations, and the clock; step: the next one, rest: rounding error of t, corner: the next one of a source, s
    **HISTORY, **dict.fromkeys((*CLOCK, "step", "rest", "corner"), ""),
    # 6. lengths: steps by which modes may be chosen, s; ahead: the one that was; chosen: lambda of the last choice; hidden: held rows
    # without lambda, which x obeys
    "lengths": "", "ahead": "", "near_lam": "mm", "chosen": "m", "hidden": "mn", "hidden_constant": "m",
    # 7. long steps by collocation: length, length whose matrix is inverted, matrix of the stages; stage_rest: what they do not solve
    "long": "", "inverted": "", "stages": "tt", "stage_size": "t", "stage_value": "t", "stage_rest": "t",
}  # fmt: skip
# Integers of each row: mode, mode before the event; direct: y depends on lambda at once (D); fired: its guard came to zero; near: y is
# nearly zero between events; row, column: pivots of the elimination.
_ROWS = ("mode", "before", "direct", "fired", "near", "row", "column")
# Integers: frozen: an accumulation is waited for; culprit: row to blame.
_WHOLE = (*COUNTS, "n_short", "frozen", "culprit", "is_off", "n_hidden", "is_doubtful")
# The problem of modes and its solver.
_PROBLEM = ("W", "q", "z", "w", "lower", "upper", "info", "rounding", "solver", "n_solver", "isolver", "n_isolver")
PLAN = table(
    # sizes; of circuits n_own states are the system's and those of sources follow
    "n", "m", "n_stages", "n_own", "is_driven", "is_controlled",
    # arrays, see above
    *_ARRAYS, *_ROWS, *_WHOLE, *_PROBLEM, *COLUMNS,
    # collocation; bounds of lambda, and bounds while switches are open
    "stage_pivots", "bounds_lower", "bounds_upper", "open_lower", "open_upper",
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
_NOTHING = 1e-14
_NO_PIVOT = 1e-11
_NO_ENTRY = 1e-13
_TOGETHER = 1e-13  # of a step: guards that come to zero within that time do so simultaneously
_EPS = 2.0**-54
_ATTEMPTS = 200


@by_reference
class Flow(NamedTuple):
    """Tables of the motion."""

    plan: np.ndarray  # PLAN, one row
    W_row: np.ndarray  # all of W, by rows
    W_column: np.ndarray


def place_arrays(p, n, m, work, iwork):
    """Reserve the arrays that are not stored in advance."""
    p["n_stages"] = STAGES * n if n <= LARGEST else 0
    sizes = {"n": n, "m": m, "p": SERIES_DEGREE + 1, "3": 3, "t": int(p["n_stages"][0])}
    work.place(p, **{name: math.prod(sizes[axis] for axis in shape) for name, shape in _ARRAYS.items() if name not in STORED})
    iwork.place(p, **dict.fromkeys(_ROWS, m), **dict.fromkeys(_WHOLE, 1), stage_pivots=sizes["t"])


STORED = ("A", "B", "raw_B", "C", "D", "mass", "e", "near_x", "near_s", "near_lam", "lengths")


@tiny
def output(i, p, work):
    """(C x + e of row i, the largest that its terms have been together)."""
    y, terms, n = work[p.e + i], abs(work[p.e + i]), p.n
    for j in range(n):
        y += work[p.C + i * n + j] * work[p.x + j]
        terms += abs(work[p.C + i * n + j]) * work[p.x_size + j]
    return y, terms


@tiny
def multiplier(i, p, work):
    """lambda of row i at the state, in the present modes."""
    lam = work[p.l + i]
    for j in range(p.n):
        lam += work[p.L + i * p.n + j] * work[p.x + j]
    return lam


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
        y, terms = output(i, p, memory.work)
        is_near = iwork[p.fired + i] == 0 and iwork[p.mode + i] != HELD and abs(y) <= _NEAR_IT * terms
        iwork[p.near + i] = 1 if is_near and iwork[p.direct + i] == 0 else 0


@kernel
def choose_modes(is_afresh, flow, calls, memory):
    """Choose the modes after the present state, from the previous ones unless it ``is_afresh``. Returns the status of the problem.

    Its unknowns are the changes of lambda, so that constants cancel in no row. If rounding of W leaves no solution, a longer step
    amplifies the decisive terms; is_doubtful: a shorter one had no solution.
    """
    work, iwork = memory.work, memory.iwork
    p, m, status, longest = flow.plan[0], flow.plan[0].m, CONVERGED, len(LENGTHS) - 1
    iwork[p.is_doubtful] = 0
    # 1. lambda so far, and options; terms of 1e-9 decide, so the tolerance is strict
    _note_multipliers(p, memory)
    usual = calls.solver_options
    strict = changed(usual, min(_STRICT, usual.tol), usual.max_iter)
    # 2. from the shortest step on; after events at one time a longer one, since the shorter has chosen modes that ended
    for length in range(min(iwork[p.n_still], longest), longest + 1):
        work[p.ahead] = work[p.lengths + length]
        _state_choice(length, is_afresh, p, memory)
        note_several(LARGEST_LOOKED_AT, m, flow.W_row, flow.W_column, p, memory)
        status = solve_near(m, flow.W_row, flow.W_column, p, calls.solver, exact(strict, _STRICT), memory)
        # 3. at the longest step the nearest point of an infeasible problem has ended at once
        if status == INFEASIBLE and iwork[p.n_still] >= longest:
            return status
        # 4. from the guess of all at their bounds: switches may have moved lambda so far that rounding of its terms decides; an inexact
        # solution may have the modes, but not where there is none
        if status != CONVERGED:
            work[p.rounding] = _start_again(p, work)
            own = exact(strict, _STRICT) if status == INFEASIBLE else strict
            status = solve_near(m, flow.W_row, flow.W_column, p, calls.solver, own, memory)
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
def _note_multipliers(p, memory):
    """lambda before the choice, into K: at its bound where it has come to one, or is off by rounding."""
    work = memory.work
    for i in range(p.m):
        lam, lower, upper = multiplier(i, p, work), work[p.bounds_lower + i], work[p.bounds_upper + i]
        terms = abs(work[p.l + i])
        for j in range(p.n):
            terms += abs(work[p.L + i * p.n + j]) * work[p.x_size + j]
        nearest = upper if abs(upper - lam) < abs(lam - lower) else lower
        if memory.iwork[p.mode + i] == HELD and (memory.iwork[p.fired + i] != 0 or abs(lam - nearest) <= _ROUNDED * terms):
            lam = nearest
        work[p.K + i] = lam


@kernel
def _state_choice(length, is_afresh, p, memory):
    """W, q, bounds and first guess of the problem whose step has the length ``LENGTHS[length]``."""
    work, iwork = memory.work, memory.iwork
    m, n = p.m, p.n
    near_x, near_s, near_lam = p.near_x + length * m * n, p.near_s + length * m * n, p.near_lam + length * m * m
    # 1. W
    for k in range(m * m):
        work[p.W + k] = work[p.D + k] + work[near_lam + k]
    iwork[p.isolver] = 0  # another matrix
    # 2. q by row, with the sizes of its terms
    for i in range(m):
        y, terms = output(i, p, work)
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
            for k in range(m):
                y += work[p.D + i * m + k] * work[p.K + k]
                terms += abs(work[p.D + i * m + k] * work[p.K + k])
        # y of fired and held rows is zero by definition, not by evaluation
        elif iwork[p.fired + i] != 0 or iwork[p.mode + i] == HELD:
            y = 0.0
        # by the previous modes, so that rows that differ from held ones by nothing do so here
        else:
            y, terms = work[p.y0 + i], abs(work[p.y0 + i])
            for j in range(n):
                y += work[p.Y + i * n + j] * work[p.x + j]
                terms += abs(work[p.Y + i * n + j]) * work[p.x_size + j]
        terms = terms if y != 0.0 else 0.0
        # 3. change by the implicit step: state, source, multipliers
        for j in range(n):
            of_x, of_s = work[near_x + i * n + j] * work[p.x + j], work[near_s + i * n + j] * work[p.s + j]
            y, terms = y + of_x + of_s, terms + abs(of_x) + abs(of_s)
        for k in range(m):
            of_lam = work[near_lam + i * m + k] * work[p.K + k]
            y, terms = y + of_lam, terms + abs(of_lam)
        # rounding would be data to the solver
        y = y if abs(y) > _NOTHING * terms else 0.0
        work[p.q + i], work[p.lower + i], work[p.upper + i] = y, lower - work[p.K + i], upper - work[p.K + i]
        work[p.z + i] = min(max(0.0, work[p.lower + i]), work[p.upper + i])


@kernel
def jump(flow, calls, memory):
    """Jump ``x += B p`` if no lambda gives the required y: p is the limit of ``h lambda`` of an implicit step, h to 0. False without limit.

    ``0 <= p  ⟂  C (x + B p) + e + D p / h >= 0``, and p = 0 of bounded multipliers, with three h, each half of the one before:
    Richardson extrapolation removes two orders of the error.
    """
    solver_options, work = calls.solver_options, memory.work
    # 1. scale of h: the time in which B changes y as much as D
    p, m, n, of_B, of_D = flow.plan[0], flow.plan[0].m, flow.plan[0].n, 0.0, 0.0
    for k in range(m * m):
        of_D, of_B = max(of_D, abs(work[p.D + k])), max(of_B, abs(_driven(k // m, k % m, p, work)))
    strict = changed(solver_options, min(_STRICT, solver_options.tol), solver_options.max_iter)
    # 2. three problems, and their extrapolation to h = 0
    for halvings in range(3):
        stiffness = of_B / (_SHORT * of_D) * 2.0**halvings if of_D > 0.0 else 0.0
        for i in range(m):
            work[p.q + i], _ = output(i, p, work)
            work[p.z + i] = 0.0
            work[p.lower + i], work[p.upper + i] = bounds_of_impulse(work[p.bounds_lower + i], work[p.bounds_upper + i])
            for k in range(m):
                work[p.W + i * m + k] = _driven(i, k, p, work) + stiffness * work[p.D + i * m + k]
        status = solve(m, flow.W_row, flow.W_column, p.W, p, calls.solver, strict, False, memory)
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
            work[p.x + a] += work[p.B + a * m + i] * work[p.chosen + i]
    note_size(p, work)
    for i in range(m):
        is_held = abs(work[p.chosen + i]) > _VERGE * most
        low, high = work[p.bounds_lower + i] > -math.inf, work[p.bounds_upper + i] < math.inf
        memory.iwork[p.mode + i] = LOWER if low and not is_held else UPPER if high and not is_held else HELD
    # 4. motion in these modes; a projection gives all digits
    solve_modes(flow, memory)
    put_on_outputs(flow, memory)  # from a jump in digits that count to one in all of them
    return True


@tiny
def _driven(i, k, p, work):
    """``(C B)_ik``."""
    s = 0.0
    for a in range(p.n):
        s += work[p.C + i * p.n + a] * work[p.B + a * p.m + k]
    return s


@kernel
def _start_again(p, work):
    """Put z at the point of its box that is nearest to 0. Returns rounding of the largest terms that w has there."""
    largest = 0.0
    for i in range(p.m):
        work[p.z + i] = min(max(0.0, work[p.lower + i]), work[p.upper + i])
    for i in range(p.m):
        terms = abs(work[p.q + i])
        for k in range(p.m):
            terms += abs(work[p.W + i * p.m + k] * work[p.z + k])
        largest = max(largest, terms)
    return rounding_of(largest)


@kernel
def solve_modes(flow, memory):
    """Express lambda, y and the motion of the present modes by x: L, l, Y, y0, rate and constant."""
    work, iwork = memory.work, memory.iwork
    p, m, n = flow.plan[0], flow.plan[0].m, flow.plan[0].n
    # 1. eliminate lambda of the held rows
    count = _eliminate(p, memory)
    if p.is_driven != 0 and count < _count_held(p, iwork):
        count = _hold_more(count, p, memory)
    # 2. rows at bounds
    for i in range(m):
        mode = iwork[p.mode + i]
        work[p.l + i] = work[p.bounds_lower + i] if mode == LOWER else work[p.bounds_upper + i] if mode == UPPER else 0.0
        for j in range(n):
            work[p.L + i * n + j] = 0.0
    # 3. redundant held rows keep the lambda of the choice; the others follow from x
    held = _count_held(p, iwork) if p.is_driven != 0 else count
    for b in range(count, held):
        work[p.l + iwork[p.column + b]] = work[p.chosen + iwork[p.column + b]]
    for a in range(count):
        i = iwork[p.column + a]
        work[p.l + i] = -work[p.K + a]
        for b in range(count, held):
            work[p.l + i] -= work[p.P + a * m + b] * work[p.l + iwork[p.column + b]]
        for j in range(n):
            work[p.L + i * n + j] = -work[p.X + a * n + j]
    if p.is_driven != 0:
        _without_rounding(p.l, p.L, p, work)
    # 4. substitute into outputs and motion; in circuits rounding of large sources is removed first
    _substitute(m, p.e, p.C, p.D, p.y0, p.Y, p, work)
    if p.is_driven != 0:
        _without_rounding(p.y0, p.Y, p, work)
    _substitute(n, p.s, p.A, p.B, p.constant, p.rate, p, work)
    forget_long_steps(p, memory)


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
    value, terms = work[constant + i], abs(work[constant + i])
    for j in range(p.n):
        value += work[matrix + i * p.n + j] * work[p.x + j]
        terms += abs(work[matrix + i * p.n + j]) * work[p.x_size + j]
    if mode == HELD:
        off = max(work[p.bounds_lower + i] - value, value - work[p.bounds_upper + i])
    else:
        off = -value if mode == LOWER else value
    return off > share * terms and off > share * _unit(matrix, p, work)


@kernel
def _without_rounding(constant, matrix, p, work):
    """Entries of a column that are rounding of its largest, or of that of C or e, become 0: y and lambda of circuits have one unit."""
    n, m = p.n, p.m
    for j in range(n + 1):
        largest = 0.0
        for i in range(m):
            given, found = (p.C + i * n + j, matrix + i * n + j) if j < n else (p.e + i, constant + i)
            largest = max(largest, abs(work[given]), abs(work[found]))
        for i in range(m):
            at = matrix + i * n + j if j < n else constant + i
            work[at] = work[at] if abs(work[at]) > _NOTHING * largest else 0.0


@tiny
def _count_held(p, iwork):
    """Number of HELD rows."""
    count = 0
    for i in range(p.m):
        count += 1 if iwork[p.mode + i] == HELD else 0
    return count


@kernel
def _hold_more(count, p, memory):
    """If held rows are redundant, hold rows at a bound with y = 0, too, provided that lambda of the others is then determined.

    So a floating part of a circuit moves with the diode that is about to conduct. Returns the count of `_eliminate`.
    """
    work, iwork = memory.work, memory.iwork
    largest = 0.0
    for i in range(p.m):
        largest = max(largest, abs(work[p.q + i]))
    # one more row at a time, undone unless it makes a redundant row independent
    for i in range(p.m):
        mode, missing = iwork[p.mode + i], _count_held(p, iwork) - count
        if missing == 0:
            break
        if mode == HELD or work[p.bounds_lower + i] == work[p.bounds_upper + i] or abs(work[p.w + i]) > _VERGE * largest:
            continue
        iwork[p.mode + i] = HELD
        count = _eliminate(p, memory)
        if _count_held(p, iwork) - count >= missing:
            iwork[p.mode + i] = mode
            count = _eliminate(p, memory)
    return count


@kernel
def _substitute(count, known, state, gain, constant, matrix, p, work):
    """``known + state x + gain lambda`` with ``lambda = L x + l``, so many rows, as ``matrix x + constant``; places in the work memory."""
    n, m = p.n, p.m
    for i in range(count):
        s = work[known + i]
        terms = abs(s)
        for k in range(m):
            s += work[gain + i * m + k] * work[p.l + k]
            terms += abs(work[gain + i * m + k] * work[p.l + k])
        work[constant + i] = s if p.is_driven == 0 or abs(s) > _NOTHING * terms else 0.0
        for j in range(n):
            s = work[state + i * n + j]
            terms = abs(s)
            for k in range(m):
                s += work[gain + i * m + k] * work[p.L + k * n + j]
                terms += abs(work[gain + i * m + k] * work[p.L + k * n + j])
            work[matrix + i * n + j] = s if p.is_driven == 0 or abs(s) > _NOTHING * terms else 0.0


@kernel
def _eliminate(p, memory):
    """Solve ``P lambda + X x + K = 0`` of the HELD rows for lambda. Returns the number of independent rows, which come first.

    Out: lambda of iwork[p.column + a] is ``-X_a x - K_a``. Rows without lambda are differentiated; those still without one are redundant.
    """
    work, iwork = memory.work, memory.iwork
    n, m, count, rows = p.n, p.m, 0, _rows(p)
    # 1. held rows
    for i in range(m):
        if iwork[p.mode + i] == HELD:
            iwork[p.row + count], iwork[p.column + count] = i, i
            count += 1
    # 2. input by sources and by rows at their bounds
    for a in range(n):
        f = work[p.s + a]
        for i in range(m):
            f += _at_bound(i, p, memory) * work[p.B + a * m + i]
        work[p.input + a] = f
    # 3. rows, with lambda of the others at their bounds
    for a in range(count):
        i = iwork[p.row + a]
        work[p.K + a] = work[p.e + i]
        for k in range(m):
            work[p.K + a] += _at_bound(k, p, memory) * work[p.D + i * m + k]
        for j in range(n):
            work[p.X + a * n + j] = work[p.C + i * n + j]
        for b in range(count):
            work[p.P + a * m + b] = work[p.D + i * m + iwork[p.column + b]]
        _measure(a, count, p, work)
    # 4. pivots of D
    done = pivot(0, count, rows, memory)
    _note_what_is_off(done, count, p, memory)
    # 5. rows without lambda: differentiate, at most n times (relative degree), and pivot again
    for order in range(n):
        if done == count:
            break
        for a in range(done, count):
            _differentiate(a, done, count, rows, p, memory)
        done = pivot(done, count, rows, memory)
        if order == 0 and p.is_driven != 0:
            _note_what_leaves(done, count, p, memory)
    return done


@tiny
def _rows(p):
    """The rows of the elimination."""
    return Rows(p.m, p.P, p.X, p.n, p.n, p.K, p.size, p.row, p.column, 0.0, _NO_ENTRY)


@tiny
def _at_bound(i, p, memory):
    """lambda of a row at a bound, 0 of a held row."""
    mode = memory.iwork[p.mode + i]
    return memory.work[p.bounds_lower + i] if mode == LOWER else memory.work[p.bounds_upper + i] if mode == UPPER else 0.0


@tiny
def _measure(a, count, p, work):
    """Note the largest factor of lambda in row a."""
    work[p.size + a] = 0.0
    for b in range(count):
        work[p.size + a] = max(work[p.size + a], abs(work[p.P + a * p.m + b]))


@kernel
def _note_what_is_off(done, count, p, memory):
    """Keep held rows without lambda, which constrain x, and note if one is off by more than rounding: only a jump of x corrects that."""
    work, iwork = memory.work, memory.iwork
    largest = 0.0
    iwork[p.n_hidden] = count - done
    for i in range(p.m):
        largest = max(largest, output(i, p, work)[1])
    iwork[p.is_off] = 0
    for a in range(done, count):
        y = work[p.K + a]
        work[p.hidden_constant + a - done] = y
        for j in range(p.n):
            work[p.hidden + (a - done) * p.n + j] = work[p.X + a * p.n + j]
            y += work[p.X + a * p.n + j] * work[p.x + j]
        if abs(y) > _OFF * largest:
            iwork[p.is_off], iwork[p.culprit] = 1, iwork[p.row + a]


@kernel
def _note_what_leaves(done, count, p, memory):
    """Note if a source moves a held row off 0 which no lambda can hold, nor its rate: a loop of contradicting sources."""
    work, iwork = memory.work, memory.iwork
    n, largest = p.n, 0.0
    # sizes of the terms of x'
    for j in range(n):
        work[p.spare + j] = abs(work[p.input + j])
        for k in range(n):
            work[p.spare + j] += abs(work[p.A + j * n + k]) * work[p.x_size + k]
    # rates of the remaining rows, relative to the largest terms
    for i in range(p.m):
        terms = 0.0
        for j in range(n):
            terms += abs(work[p.C + i * n + j]) * work[p.spare + j]
        largest = max(largest, terms)
    for a in range(done, count):
        rate = work[p.K + a]
        for j in range(n):
            rate += work[p.X + a * n + j] * work[p.x + j]
        if iwork[p.is_off] == 0 and abs(rate) > _OFF * largest:
            iwork[p.is_off], iwork[p.culprit] = LEAVES, iwork[p.row + a]


@kernel
def _differentiate(a, done, count, rows, p, memory):
    """Replace row a, which has no lambda, by its derivative, minus its part along the solved rows."""
    work = memory.work
    n, m = p.n, p.m
    constant, size = 0.0, 0.0
    # 1. X x' = X (A x + input)
    for j in range(n):
        work[p.spare + j] = 0.0
        constant += work[p.X + a * n + j] * work[p.input + j]
        for k in range(n):
            work[p.spare + j] += work[p.X + a * n + k] * work[p.A + k * n + j]
    # 2. coefficients X B of lambda, with rounding set to 0: a pivot must not be rounding
    for b in range(count):
        entry, terms = 0.0, 0.0
        for k in range(n):
            term = work[p.X + a * n + k] * work[p.B + k * m + memory.iwork[p.column + b]]
            entry += term
            terms += abs(term)
        work[p.P + a * m + b] = entry if abs(entry) > _NO_PIVOT * terms else 0.0
        size = max(size, terms)
    # 3. store, and subtract the solved rows
    work[p.K + a] = constant
    for j in range(n):
        work[p.X + a * n + j] = work[p.spare + j]
    work[p.size + a] = size
    for k in range(done):
        subtract(a, k, count, rows, work)


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
        h = _short_step(h_most, p, work)
    # 2. first root of the guards
    end = min(h_most / h, 1.0) if is_long else 1.0
    theta = _first_event(end, h, p, memory)
    is_event = theta != NO_ROOT
    if not is_event:
        theta = end
    # 3. state there
    if is_long:
        move_to(theta, p, work)
    for a in range(0 if is_long else n):
        x = work[p.poly + SERIES_DEGREE * n + a]
        for j in range(SERIES_DEGREE - 1, -1, -1):
            x = x * theta + work[p.poly + j * n + a]
        work[p.x + a] = x
    note_size(p, work)
    return theta * h if is_event or h < h_most else h_most, is_event


@kernel
def _short_step(h_most, p, work):
    """Coefficients of the motion over a step of its series, whose length is returned."""
    h, growth = h_most if work[p.step] <= 0.0 else min(h_most, work[p.step]), 1.0
    for _ in range(_ATTEMPTS):
        growth = _series(h, p, work)
        if growth >= 1.0:
            break
        h *= max(0.9 * growth, 0.02)
    work[p.step] = h * min(growth, 4.0)
    return h


@kernel
def _series(h, p, work):
    """Coefficients of the motion over h. Returns the factor by which h may grow; below 1 the last terms still count."""
    n, growth = p.n, 1e3
    for a in range(n):
        work[p.poly + a] = work[p.x + a]
        work[p.c_size + a] = work[p.x_size + a] if a >= p.n_own else abs(work[p.x + a])
    # 1. coefficients, and sizes of their terms
    for j in range(SERIES_DEGREE):
        for a in range(n):
            c = work[p.constant + a] if j == 0 else 0.0
            size = abs(c)
            for b in range(n):
                c += work[p.rate + a * n + b] * work[p.poly + j * n + b]
                size += abs(work[p.rate + a * n + b]) * work[p.c_size + j * n + b]
            work[p.poly + (j + 1) * n + a] = c * h / (j + 1)
            work[p.c_size + (j + 1) * n + a] = size * h / (j + 1)
    # 2. the last two terms of each state against its largest one
    for a in range(n):
        largest = 0.0
        for j in range(SERIES_DEGREE):
            largest = max(largest, abs(work[p.poly + j * n + a]))
        for j in range(SERIES_DEGREE - 1, SERIES_DEGREE + 1):
            last = abs(work[p.poly + j * n + a])
            if not last < math.inf:
                return 0.02
            if last > 0.0:
                growth = min(growth, (_EPS * largest / last) ** (1.0 / j))
    return growth


@kernel
def _first_event(end, h, p, memory):
    """First theta, up to end, at which a guard comes to zero, or NO_ROOT; h: step of the series. Out: those guards, in iwork[p.fired:]."""
    work, iwork = memory.work, memory.iwork
    best, no_change = NO_ROOT, min(_NO_CHANGE * 10.0 ** iwork[p.n_still], _MOST_CHANGE) if iwork[p.n_still] > 0 else 0.0
    for i in range(p.m):
        work[p.w + i] = NO_ROOT
        # equal bounds: lambda is given, and y free
        mode = iwork[p.mode + i]
        if work[p.bounds_lower + i] == work[p.bounds_upper + i]:
            continue
        # a row at a bound: y
        if mode != HELD:
            work[p.w + i] = _root(p.Y + i * p.n, 1.0 if mode == LOWER else -1.0, work[p.y0 + i], 0.0, end, no_change, h, p, memory)
            best = min(best, work[p.w + i])
            continue
        # a held row: lambda at either bound
        at, lower, upper = p.L + i * p.n, work[p.bounds_lower + i], work[p.bounds_upper + i]
        if lower > -math.inf:
            work[p.w + i] = _root(at, 1.0, work[p.l + i], lower, end, no_change, h, p, memory)
        if upper < math.inf:
            work[p.w + i] = min(work[p.w + i], _root(at, -1.0, work[p.l + i], upper, end, no_change, h, p, memory))
        best = min(best, work[p.w + i])
    # guards that come to zero together are one event
    for i in range(p.m):
        iwork[p.fired + i] = 1 if best != NO_ROOT and work[p.w + i] <= best + _TOGETHER else 0
    return best


@kernel
def _root(row, sign, constant, bound, end, no_change, h, p, memory):
    """First root of ``sign (row x + constant - bound)`` along the motion; initial coefficients that are rounding count as zero.

    A guard that has just fired is zero by rounding only: its leading coefficients are dropped, so that it does not fire again.
    """
    work, zeros, is_start, size = memory.work, 0, True, 0.0
    no_slope = _NO_SLOPE if memory.iwork[p.n_short] == 1 else _NO_LATER_SLOPE
    for j in range(SERIES_DEGREE + 1):
        g = constant - bound if j == 0 else 0.0
        terms = abs(constant) + abs(bound) if j == 0 else 0.0
        reach = 0.0
        for a in range(p.n):
            # coefficient of order j, the size of its terms, and the largest size that these can have
            c = work[p.poly + j * p.n + a]
            g += work[row + a] * c
            terms += abs(work[row + a]) * (work[p.x_size + a] if j == 0 else abs(c))
            reach += abs(work[row + a]) * work[p.c_size + j * p.n + a]
        g *= sign
        # the value, and derivatives as long as all lower ones are zero
        if j == 0:
            is_start, size = -_ROUNDED * terms <= g <= max(_NO_VALUE, no_change) * terms, terms
        else:
            is_start &= abs(g) <= max(no_slope * terms, NOISE * reach, no_change * size)
        zeros += 1 if is_start else 0
        work[p.guard + j] = g
    return first_root(SERIES_DEGREE, p.guard, _without_dips(row, zeros, size, h, p, memory), 0.0, end, work)


@kernel
def _without_dips(row, zeros, size, h, p, memory):
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
    unit = max(size, _unit(row, p, work))
    limit = _MOST_CHANGE if back <= _AHEAD * work[p.ahead] else _ROUNDED if zeros == 0 else _NO_VALUE
    if back < math.inf and depth <= limit * unit:
        return k
    # 3. no choice of modes keeps it from falling
    if zeros > 0 and memory.iwork[p.n_still] >= len(LENGTHS):
        work[p.guard] += _NO_VALUE * unit
        return 0
    return zeros


@kernel
def _unit(row, p, work):
    """Largest terms of y, or of lambda, over all rows of a circuit, in which they have one unit; 0 of other systems. row: one of Y or L."""
    is_lambda, largest = p.L <= row < p.L + p.m * p.n, 0.0
    matrix, constant = (p.L, p.l) if is_lambda else (p.Y, p.y0)
    for i in range(p.m if p.is_driven != 0 else 0):
        terms = abs(work[constant + i])
        for j in range(p.n):
            terms += abs(work[matrix + i * p.n + j]) * work[p.x_size + j]
        largest = max(largest, terms if is_lambda else max(terms, output(i, p, work)[1]))
    return largest


@kernel
def put_on_outputs(flow, memory):
    """Project x onto the constraints of the modes, and onto ``C x + e = 0`` of rows that came to zero, which only rounding violates."""
    work, iwork = memory.work, memory.iwork
    p = flow.plan[0]
    for _ in range(2):
        for a in range(iwork[p.n_hidden]):
            _project(p.hidden + a * p.n, work[p.hidden_constant + a], p, work)
        for i in range(p.m):
            if iwork[p.direct + i] == 0 and (iwork[p.mode + i] == HELD or iwork[p.fired + i] != 0):
                _project(p.C + i * p.n, work[p.e + i], p, work)


@kernel
def _project(row, y, p, work):
    """Move x onto ``row x + y = 0``, the more the larger its entries are; states of sources stay."""
    square = 0.0
    for j in range(p.n):
        y += work[row + j] * work[p.x + j]
    for j in range(p.n_own):
        square += (work[row + j] * max(abs(work[p.x + j]), 1e-150)) ** 2
    for j in range(p.n_own):
        if square > 0.0:
            work[p.x + j] -= y * work[row + j] * max(abs(work[p.x + j]), 1e-150) ** 2 / square
