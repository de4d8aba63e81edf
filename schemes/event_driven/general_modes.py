"""Choice of modes of rows of a first-order system: one problem with bounds for all of them, and jumps of inconsistent states.

Rows are LOWER, UPPER or HELD, see `nsds.schemes.event_driven.switched_rows`. For rows whose w is zero and does not depend on lambda the
law holds for w' (Filippov), or for w'' if lambda is not in w' either; for the others for w. Nonlinear in lambda: Newton's method, with a
problem of the linearised rows in each iteration.
"""

import math

from nsds._jit import kernel, tiny
from nsds.schemes.event_driven.general_outputs import (
    evaluate_output_rates,
    evaluate_outputs,
    evaluate_rates,
    evaluate_second_slopes,
    follow_bounds,
    linearise,
)
from nsds.schemes.event_driven.switched_rows import HELD, bounds_away_from_zero, bounds_of_impulse, mode_at
from nsds.schemes.problem.box import solve
from nsds.schemes.problem.branches import LARGEST_LOOKED_AT, note_several, solve_near
from nsds.schemes.sides import clamped
from nsds.solvers.box.signature import changed, exact
from nsds.status import CONVERGED, INEXACT, INFEASIBLE, NEWTON, NON_FINITE

_ON_IT = 2.0**-48  # relative to the largest w so far: smaller values are zero
_NO_RATE = 1e-9  # relative to the terms of w': smaller values are zero
_VIOLATED = 1e-9  # relative to the terms of w
_LEAVES = 1e-8  # of lambda: decides that it leaves a bound that it has reached
_STRICT = 1e-13  # tolerance of the problem
_MAX_ITER = 30
_SETTLED = 1e-10
_NEXT_TO_NOTHING = 1e-9  # of the step of the motion


@kernel
def choose_modes(t, is_start, s, calls, memory):
    """The modes after an event, with a first guess of their lambda. Returns a status.

    The unknowns are the changes of lambda since the last guess, so that constants cancel in no row.
    """
    functions, mem, work, iwork = calls.functions, memory.mem, memory.work, memory.iwork
    f, r, constraints, p = s.flow[0], s.problem[0], s.newton.constraints, s.newton.plan[0]
    m, status = f.m, NEWTON
    # 1. rows that start from zero
    _find_zeros(t, is_start, s, functions, memory)
    strict = changed(calls.solver_options, min(_STRICT, calls.solver_options.tol), calls.solver_options.max_iter)
    # 2. Newton's iteration on the linearised rows
    for k in range(_MAX_ITER):
        _state_problem(t, k == 0, s, functions, memory)
        if k > 0 and _is_solved(f, r, work):  # of multipliers that are not unique a solver may find others each time
            status = CONVERGED
            break
        note_several(LARGEST_LOOKED_AT, m, s.row, s.column, r, memory)
        solved = solve_near(m, s.row, s.column, r, calls.solver, exact(strict, _STRICT), memory)
        # inexact, unless there is none, as rounding of the matrix may decide between modes: wrong ones end at once
        if solved not in (CONVERGED, INEXACT, INFEASIBLE):
            solved = solve_near(m, s.row, s.column, r, calls.solver, strict, memory)
        change, largest, zero = 0.0, 1e-300, 0.0
        # a row at a bound gets the bound itself, so that its mode is found by comparison
        for i in range(m):
            difference, lam = work[r.z + i], constraints[i].lam
            is_low, is_high = difference == work[r.lower + i], difference == work[r.upper + i]
            mem[lam] = work[f.low + i] if is_low else work[f.high + i] if is_high else mem[lam] + difference
            change = max(change, abs(difference))
            largest = max(largest, abs(mem[lam]), work[f.lam_size + i])
            zero += 0.0 * difference
        if zero != 0.0:
            return NON_FINITE
        if solved not in (CONVERGED, INEXACT):
            return solved
        if f.is_affine != 0 or change <= _SETTLED * largest:
            status = CONVERGED
            break
        evaluate_outputs(t, f.x, s, functions, memory)
        linearise(t, s, functions, memory)
    # 3. modes by the bounds; equal bounds leave the sign of w
    for i in range(m):
        z, lower, upper = mem[constraints[i].lam], work[p.lower + i], work[p.upper + i]
        iwork[f.mode + i] = mode_at(z, lower, upper, work[r.w + i])
        iwork[f.zero + i] = 0 if iwork[f.mode + i] == HELD else iwork[f.zero + i]
    return status


@kernel
def _is_solved(f, r, work):
    """Whether no change of lambda solves the problem, up to rounding."""
    for i in range(f.m):
        size, q = 0.0, work[r.q + i]
        for j in range(f.m):
            size += abs(work[r.W + i * f.m + j]) * work[f.lam_size + j]
        stays_above, stays_below = q <= _SETTLED * size or work[r.lower + i] == 0.0, q >= -_SETTLED * size or work[r.upper + i] == 0.0
        if not (stays_above and stays_below):
            return False
    return True


@tiny
def note_direct(f, memory):
    """Which rows depend on lambda at once."""
    for i in range(f.m):
        memory.iwork[f.direct + i] = 0
        for j in range(f.m):
            memory.iwork[f.direct + i] |= 1 if memory.work[f.D + i * f.m + j] != 0.0 else 0


@kernel
def _find_zeros(t, is_start, s, functions, memory):
    """Rows that start from w = 0, and their deviation from it; operators."""
    work, iwork = memory.work, memory.iwork
    f, m = s.flow[0], s.flow[0].m
    evaluate_outputs(t, f.x, s, functions, memory)
    if f.is_affine == 0 or f.varies != 0:
        linearise(t, s, functions, memory)
    note_direct(f, memory)
    for i in range(m):
        work[f.y_size + i] = max(work[f.y_size + i], abs(work[f.w + i]))
        iwork[f.order + i] = 1
        is_zero = (iwork[f.fired + i] != 0 or iwork[f.mode + i] == HELD) and not is_start
        if iwork[f.direct + i] == 0:
            is_zero |= abs(work[f.w + i]) <= _ON_IT * work[f.y_size + i]
        iwork[f.zero + i] = 1 if is_zero else 0
        work[f.off + i] = work[f.w + i] if is_zero and not is_start else 0.0


@kernel
def _state_problem(t, is_first, s, functions, memory):
    """W, q and bounds of the problem linearised at lambda in mem, with known outputs; its unknowns are the changes of lambda."""
    mem, work, iwork = memory.mem, memory.work, memory.iwork
    f, r, constraints, p = s.flow[0], s.problem[0], s.newton.constraints, s.newton.plan[0]
    m, near = f.m, _NEXT_TO_NOTHING * work[f.delta]
    # 1. x' and the rates of all rows
    evaluate_rates(t, f.x, f.xdot, s, functions, memory)
    evaluate_output_rates(t, f.x, s, functions, memory)
    _find_orders(t, is_first, s, functions, memory)
    # 2. each row: w a moment later, or the lowest rate that is not zero
    for i in range(m):
        lower, upper = work[p.lower + i], work[p.upper + i]
        w, slopes, share = work[f.w + i] - work[f.off + i], f.CMB, near
        # rounding of w would hide the decisive rate
        w = near * work[f.wt + i] + (w if abs(w) > _ON_IT * work[f.y_size + i] else 0.0)
        if iwork[f.direct + i] == 0 and iwork[f.zero + i] != 0:
            w, share = work[f.wt + i], 1.0
            if iwork[f.order + i] == 2:
                w, slopes = work[f.wtt + i], f.second
        # away from zero a row without lambda keeps its sign, which fixes lambda at the other bound
        elif iwork[f.direct + i] == 0:
            lower, upper = bounds_away_from_zero(work[f.w + i], lower, upper)
        # 3. W, and bounds as changes
        for j in range(m):
            work[r.W + i * m + j] = share * work[slopes + i * m + j] + work[f.D + i * m + j]
        work[f.low + i], work[f.high + i], lam = lower, upper, mem[constraints[i].lam]
        work[r.q + i], work[r.lower + i], work[r.upper + i] = w, lower - lam, upper - lam
        work[r.z + i] = min(max(0.0, lower - lam), upper - lam)
    # 4. lambda has reached a bound: it stays there; rows at zero without lambda are as if it had just been cut off
    for j in range(m):
        if iwork[f.before + j] == HELD and iwork[f.fired + j] != 0:
            lam, cut = mem[constraints[j].lam], _LEAVES * work[f.lam_size + j]
            cut = cut if abs(lam - work[f.low + j]) < abs(work[f.high + j] - lam) else -cut
            work[r.q + j] += cut * abs(work[r.W + j * m + j])
            for i in range(m if iwork[f.direct + j] == 0 else 0):
                if iwork[f.before + i] != HELD and iwork[f.direct + i] == 0 and iwork[f.zero + i] != 0:
                    work[r.q + i] += cut * work[r.W + i * m + j]
    work[r.rounding], iwork[r.isolver] = 0.0, 0


@kernel
def _find_orders(t, is_first, s, functions, memory):
    """Rows at zero whose second rate determines lambda: those whose rate is zero and does not depend on it; and w'' of all."""
    work, iwork = memory.work, memory.iwork
    f, m, second = s.flow[0], s.flow[0].m, False
    # 1. dependence of the rate on lambda, and size of its terms
    for i in range(m):
        c, slope, terms = s.newton.constraints[i], 0.0, 0.0
        for j in range(m if is_first and iwork[f.direct + i] == 0 and iwork[f.zero + i] != 0 else 0):
            share = abs(work[f.CMB + i * m + j])
            slope = max(slope, share * work[f.lam_size + j] if work[f.still + i] > 0.0 else math.inf if share > 0.0 else 0.0)
        for k in range(c.entry, c.entry_end):
            dof = s.newton.entries[k].dof
            work[f.xdot_size + dof] = max(work[f.xdot_size + dof], abs(work[f.xdot + dof]))
            terms += abs(work[s.newton.entries[k].coefficient]) * work[f.xdot_size + dof]
        noise = max(_NO_RATE * terms, work[f.still + i])
        if is_first and iwork[f.direct + i] == 0 and iwork[f.zero + i] != 0 and abs(work[f.wt + i]) <= noise >= slope:
            iwork[f.order + i] = 2
        second |= iwork[f.order + i] == 2
    # 2. w'', which overwrites first rates: these are saved
    if second:
        for i in range(m):
            work[f.R + i] = work[f.wt + i]
        evaluate_second_slopes(t, f.x, s, functions, memory)
        for i in range(m):
            work[f.wt + i] = work[f.R + i]


@kernel
def jump(t, s, calls, memory):
    """Jump ``x += M^-1 B p`` if one-sided rows are violated, p >= 0 complementary to w after it. Returns (status, whether x has changed).

    Bounded multipliers have no impulses; rows whose w depends on lambda have none in the directions in which it does.
    """
    work = memory.work
    f, r, p, m = s.flow[0], s.problem[0], s.newton.plan[0], s.flow[0].m
    # 1. outputs, and which rows lambda changes at once
    evaluate_outputs(t, f.x, s, calls.functions, memory)
    linearise(t, s, calls.functions, memory)
    note_direct(f, memory)
    # 2. problem of impulses, and whether any row is violated
    is_off, off = False, 0.0
    for i in range(m):
        low, high = work[p.lower + i] > -math.inf, work[p.upper + i] < math.inf
        is_direct, terms = memory.iwork[f.direct + i] != 0, _terms(i, s, work)
        off = 0.0 if low and high else min(work[f.w + i], 0.0) if low else max(work[f.w + i], 0.0) if high else work[f.w + i]
        is_off |= not is_direct and abs(off) > _VIOLATED * terms
        work[r.q + i], work[r.z + i] = work[f.w + i], 0.0
        work[r.lower + i], work[r.upper + i] = bounds_of_impulse(work[p.lower + i], work[p.upper + i])
        if is_direct:
            work[r.lower + i] = work[r.upper + i] = 0.0
        for j in range(m):
            work[r.W + i * m + j] = work[f.CMB + i * m + j]
    if not is_off:
        return CONVERGED, False
    # 3. impulses, and the state after them
    work[r.rounding], memory.iwork[r.isolver] = 0.0, 0
    status = solve(m, s.row, s.column, r.W, r, calls.solver, exact(calls.solver_options, 1.0), False, memory)
    for j in range(m):
        for a in range(f.n):
            work[f.x + a] += work[f.MB + j * f.n + a] * work[r.z + j]
    for a in range(f.n):
        work[f.x_size + a] = max(work[f.x_size + a], abs(work[f.x + a]))
    return status, True


@kernel
def catch_up(t, h, s, calls, memory):
    """One step of Euler–Moreau from the state in work[f.x:], explicit in f: the law holds for ``w + h w'``. Returns a status."""
    functions, mem, work = calls.functions, memory.mem, memory.work
    f, r, p, constraints, m = s.flow[0], s.problem[0], s.newton.plan[0], s.newton.constraints, s.flow[0].m
    # 1. bounds at the end of the step
    solved = CONVERGED
    follow_bounds(clamped(t + h, f, work), s, functions, memory)
    # 2. Newton's iteration: rows linearised at lambda
    for _ in range(_MAX_ITER if m > 0 else 0):
        evaluate_outputs(t, f.x, s, functions, memory)
        evaluate_rates(t, f.x, f.xdot, s, functions, memory)
        linearise(t, s, functions, memory)
        evaluate_output_rates(t, f.x, s, functions, memory)
        for i in range(m):
            work[r.q + i] = work[f.w + i] + h * work[f.wt + i]
            work[r.lower + i], work[r.upper + i], work[r.z + i] = work[p.lower + i], work[p.upper + i], mem[constraints[i].lam]
            for j in range(m):
                slope = work[f.D + i * m + j] + h * work[f.CMB + i * m + j]
                work[r.q + i] -= slope * mem[constraints[j].lam]
                work[r.W + i * m + j] = slope
        work[r.rounding], memory.iwork[r.isolver] = 0.0, 0
        note_several(LARGEST_LOOKED_AT, m, s.row, s.column, r, memory)
        solved = solve_near(m, s.row, s.column, r, calls.solver, calls.solver_options, memory)
        change, largest = 0.0, 1e-300
        for i in range(m):
            change = max(change, abs(work[r.z + i] - mem[constraints[i].lam]))
            largest = max(largest, abs(work[r.z + i]), work[f.lam_size + i])
            mem[constraints[i].lam] = work[r.z + i]
        if solved not in (CONVERGED, INEXACT) or f.is_affine != 0 or change <= _SETTLED * largest:
            break
    # 3. explicit step with the multipliers found
    evaluate_outputs(t, f.x, s, functions, memory)
    evaluate_rates(t, f.x, f.xdot, s, functions, memory)
    for a in range(f.n):
        work[f.x + a] += h * work[f.xdot + a]
        work[f.x_size + a] = max(work[f.x_size + a], abs(work[f.x + a]))
    return CONVERGED if solved == INEXACT else solved


@kernel
def _terms(i, s, work):
    """The largest that the terms of w have been together."""
    c, f = s.newton.constraints[i], s.flow[0]
    terms = abs(work[f.w + i])
    for k in range(c.entry, c.entry_end):
        terms += abs(work[s.newton.entries[k].coefficient]) * work[f.x_size + s.newton.entries[k].dof]
    return terms
