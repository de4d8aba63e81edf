"""Outputs w of all rows of a first-order system, their rates along the motion, and the multipliers that hold some of them on zero.

With ``M x' = f(t, x) + g(t, x, lambda)`` and ``w = h(t, x, lambda)``, rows in the mode HELD have w = 0: if h depends on lambda that is
an equation for it; combinations of rows that do not are differentiated, ``C x' + h_t = 0``; if that does not depend on lambda either,
twice. Newton's method in lambda, at each evaluation of x'.
"""

import math

from nsds._jit import kernel, tiny
from nsds.model.layout import ABSENT
from nsds.schemes.derivatives import BEGIN_FIRST, FIRST, side_of
from nsds.schemes.event_driven.switched_rows import HELD, LOWER, Rows, pivot, subtract
from nsds.schemes.first_order.functions import evaluate_bounds, rate, relation_jacobians, relation_values
from nsds.schemes.linear_algebra import apply_inverses
from nsds.schemes.problem.rows import number_of
from nsds.schemes.sides import clamped
from nsds.status import CONVERGED, NEWTON, NON_FINITE

DIFFERENCES = 64.0  # of their steps are in one of the motion
_NO_PIVOT = 1e-10  # of the terms of a factor of lambda
_MAX_ITER = 20
_SETTLED = 1e-9  # of lambda: a change after which one more evaluation is enough


@tiny
def set_difference(h, f, work):
    """Choose the step of finite differences, a power of two, so that sums with the time are exact."""
    work[f.delta] = 2.0 ** math.floor(math.log2(h / DIFFERENCES))


@kernel
def follow_bounds(t, s, functions, memory):
    """Bounds of lambda that are functions of time, at t, and lambda of the rows that are at theirs."""
    work = memory.work
    constraints, f, p = s.newton.constraints, s.flow[0], s.newton.plan[0]
    if p.driven == 0:
        return
    evaluate_bounds(t, s.newton.relations, constraints, p, functions, memory)
    for i in range(f.m):
        lower, upper, lam = work[p.lower + i], work[p.upper + i], constraints[i].lam
        if constraints[i].low != ABSENT and memory.iwork[f.mode + i] != HELD:
            at = lower if memory.iwork[f.mode + i] == LOWER else upper
            memory.mem[lam] = at if abs(at) < math.inf else min(max(memory.mem[lam], lower), upper)
        for bound in (lower, upper):
            work[f.lam_size + i] = max(work[f.lam_size + i], abs(bound) if abs(bound) < math.inf else 0.0)


@kernel
def evaluate_outputs(t, x, s, functions, memory):
    """w of all rows at the state work[x:] and lambda in mem; h and g of all relations."""
    work = memory.work
    form, f = s.newton, s.flow[0]
    constraints = form.constraints
    # 1. arguments and values of relations
    for i in range(f.m):
        if constraints[i].y != ABSENT:
            work[constraints[i].argument] = memory.mem[constraints[i].lam]
    for k in range(form.relations.size):
        r = form.relations[k]
        for j in range(r.n):
            work[r.x + j] = work[x + number_of(r, j)]
        relation_values(t, r, functions, memory)
    # 2. rows: base and value, with couplings of multipliers
    for i in range(f.m):
        c = constraints[i]
        w = work[c.base] if c.y == ABSENT else work[c.h]
        for k in range(c.coupling, c.coupling_end):
            partner = constraints[form.couplings[k].constraint]
            if c.y == ABSENT or partner.y == ABSENT:
                w += form.couplings[k].sign * work[form.couplings[k].coefficient] * memory.mem[partner.lam]
        work[f.w + i] = w


@kernel
def evaluate_rates(t, x, out, s, functions, memory):
    """``x' = M^-1 (f + g)`` at the state work[x:] into work[out:], with g of the last outputs."""
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    for k in range(form.elements.size):
        el = form.elements[k]
        rate(t, form.parts[el.part], el.e, x + el.dof, p.spare, functions, memory, f.rhs + el.dof)
    for k in range(form.relations.size):
        r = form.relations[k]
        for j in range(r.n):
            memory.work[f.rhs + number_of(r, j)] += memory.work[r.g + j]
    _accelerate(out, s, memory)


@kernel
def _accelerate(out, s, memory):
    """``M^-1`` times work[f.rhs:], into work[out:]."""
    apply_inverses(s.newton.bodies, s.flow[0].rhs, out, s.newton.plan[0].scratch, memory)


@kernel
def evaluate_output_rates(t, x, s, functions, memory):
    """``C x' + h_t`` of all rows, lambda fixed, with x' in work[f.xdot:] and C of the last `linearise`; h_t by finite differences."""
    work = memory.work
    form, f = s.newton, s.flow[0]
    # 1. C x'
    for i in range(f.m):
        c = form.constraints[i]
        work[f.wt + i] = 0.0
        for k in range(c.entry, c.entry_end):
            work[f.wt + i] += work[form.entries[k].coefficient] * work[f.xdot + form.entries[k].dof]
    if f.varies == 0:
        return
    # 2. h_t, of fourth order, from one side next to a known time, so that no jump is differentiated
    delta = work[f.delta]
    which = side_of(t, delta, work[f.t_low], work[f.t_high])
    for k in range(5):
        evaluate_outputs(t + (k + BEGIN_FIRST[which]) * delta, x, s, functions, memory)
        for i in range(f.m):
            work[f.wt + i] += FIRST[which, k] / delta * work[f.w + i]
    evaluate_outputs(t, x, s, functions, memory)


@kernel
def evaluate_second_rates(t, x, s, functions, memory):
    """w'' of all rows, lambda fixed, by second differences along the motion. Work: xdd."""
    work = memory.work
    f, delta = s.flow[0], work[s.flow[0].delta]
    # 1. w at the point
    evaluate_outputs(t, x, s, functions, memory)
    evaluate_rates(t, x, f.xdot, s, functions, memory)
    for i in range(f.m):
        work[f.wtt + i] = -2.0 * work[f.w + i]
    # 2. x'', by differences of x' along the motion
    for j in range(f.n):
        work[f.xdd + j] = 0.0
    for side in (-1.0, 1.0):
        for j in range(f.n):
            work[f.at + j] = work[x + j] + side * delta * work[f.xdot + j]
        at = clamped(t + side * delta, f, work)
        evaluate_outputs(at, f.at, s, functions, memory)
        evaluate_rates(at, f.at, f.scratch, s, functions, memory)
        for j in range(f.n):
            work[f.xdd + j] += 0.5 * side / delta * work[f.scratch + j]
    # 3. w along the parabola
    for side in (-1.0, 1.0):
        for j in range(f.n):
            work[f.at + j] = work[x + j] + side * delta * work[f.xdot + j] + 0.5 * delta * delta * work[f.xdd + j]
        evaluate_outputs(clamped(t + side * delta, f, work), f.at, s, functions, memory)
        for i in range(f.m):
            work[f.wtt + i] += work[f.w + i]
    for i in range(f.m):
        work[f.wtt + i] /= delta * delta
    evaluate_outputs(t, x, s, functions, memory)


@kernel
def evaluate_second_slopes(t, x, s, functions, memory):
    """Finite differences of w'' by each lambda, into work[f.second:]; w'' itself last. x' is as before."""
    mem, work = memory.mem, memory.work
    f = s.flow[0]
    for j in range(f.m):
        lam = s.newton.constraints[j].lam
        value = mem[lam]
        mem[lam] = value + 0.5
        evaluate_second_rates(t, x, s, functions, memory)
        for i in range(f.m):
            work[f.second + i * f.m + j] = work[f.wtt + i]
        mem[lam] = value - 0.5
        evaluate_second_rates(t, x, s, functions, memory)
        for i in range(f.m):
            work[f.second + i * f.m + j] -= work[f.wtt + i]
        mem[lam] = value
    evaluate_second_rates(t, x, s, functions, memory)


@kernel
def linearise(t, s, functions, memory):
    """D, ``M^-1 B`` and ``C M^-1 B`` of all rows at the arguments of the last outputs."""
    work = memory.work
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    # 1. Jacobians of the relations
    for k in range(form.relations.size):
        if form.relations[k].h_function != ABSENT:
            relation_jacobians(t, form.relations[k], 1.0, p.spare, functions, memory)
    # 2. M^-1 B by columns
    for j in range(f.m):
        c = form.constraints[j]
        for a in range(f.n):
            work[f.rhs + a] = 0.0
        for k in range(c.input, c.input_end):
            work[f.rhs + form.inputs[k].dof] += work[form.inputs[k].coefficient]
        _accelerate(f.MB + j * f.n, s, memory)
    # 3. D and C M^-1 B; rounding of the latter is set to 0, since a pivot must not be rounding
    for i in range(f.m):
        c = form.constraints[i]
        for j in range(f.m):
            work[f.D + i * f.m + j] = 0.0
            s_ij, terms = 0.0, 0.0
            for k in range(c.entry, c.entry_end):
                term = work[form.entries[k].coefficient] * work[f.MB + j * f.n + form.entries[k].dof]
                s_ij += term
                terms += abs(term)
            work[f.CMB + i * f.m + j] = s_ij if abs(s_ij) > _NO_PIVOT * terms else 0.0
        for k in range(c.coupling, c.coupling_end):
            work[f.D + i * f.m + form.couplings[k].constraint] += form.couplings[k].sign * work[form.couplings[k].coefficient]


@kernel
def hold(t, x, s, functions, memory):
    """lambda of the HELD rows at the state work[x:], into mem, and x' into work[f.xdot:]. Returns a status."""
    iwork = memory.iwork
    f, count = s.flow[0], 0
    # 1. held rows, numbered
    follow_bounds(t, s, functions, memory)
    for i in range(f.m):
        iwork[f.place + i] = ABSENT
        if iwork[f.mode + i] == HELD:
            iwork[f.place + i], iwork[f.row + count] = count, i
            count += 1
    iwork[f.count] = count
    # 2. Newton's iteration; the last evaluation is at the converged lambda
    status = NEWTON
    for _ in range(_MAX_ITER):
        evaluate_outputs(t, x, s, functions, memory)
        evaluate_rates(t, x, f.xdot, s, functions, memory)
        if count == 0 or status == CONVERGED:
            return CONVERGED
        change = _correct(t, x, count, s, functions, memory)
        if not change < math.inf:
            return NON_FINITE
        status = CONVERGED if f.is_affine != 0 or change <= _SETTLED else NEWTON
    return status


@kernel
def _correct(t, x, count, s, functions, memory):
    """One Newton step for lambda of the HELD rows. Returns the largest change relative to the largest lambda."""
    work, iwork = memory.work, memory.iwork
    f, rows = s.flow[0], _rows(count, s.flow[0])
    if f.is_affine == 0 or f.varies != 0:
        linearise(t, s, functions, memory)
    # 1. eliminate, differentiate the remaining combinations, and eliminate again
    _solve_by_D(s, memory)
    done = iwork[f.n_direct]
    if done < count:
        evaluate_output_rates(t, x, s, functions, memory)
        _differentiate(t, x, done, count, False, s, functions, memory)
        done = pivot(done, count, rows, memory)
    # 2. new lambda; redundant rows keep theirs
    change, largest, zero = 0.0, 1e-300, 0.0
    for a in range(count):
        i = iwork[f.row + iwork[f.column + a]]
        lam = s.newton.constraints[i].lam
        if a < done:
            memory.mem[lam] -= work[f.R + a]
            change = max(change, abs(work[f.R + a]))
            zero += 0.0 * work[f.R + a]
        largest = max(largest, abs(memory.mem[lam]), work[f.lam_size + i])
    return change / largest + zero


@kernel
def _solve_by_D(s, memory):
    """Solve the HELD rows w = 0 for the lambda on which they depend at once; n_direct: so many. T records the combinations of rows."""
    work, iwork = memory.work, memory.iwork
    f, m, count = s.flow[0], s.flow[0].m, memory.iwork[s.flow[0].count]
    for a in range(count):
        i = iwork[f.row + a]
        work[f.R + a], work[f.size + a], iwork[f.column + a] = work[f.w + i], 0.0, a
        for b in range(count):
            work[f.T + a * m + b] = 1.0 if a == b else 0.0
            work[f.P + a * m + b] = work[f.D + i * m + iwork[f.row + b]]
            work[f.size + a] = max(work[f.size + a], abs(work[f.P + a * m + b]))
    iwork[f.n_direct] = pivot(0, count, _rows(count, f), memory)


@kernel
def n_surfaces(t, x, s, functions, memory):
    """Number of combinations of HELD rows that do not depend on lambda: they are 0 at the state, and keep it on surfaces."""
    f = s.flow[0]
    hold(t, x, s, functions, memory)
    linearise(t, s, functions, memory)
    _solve_by_D(s, memory)
    return memory.iwork[f.count] - memory.iwork[f.n_direct]


@tiny
def off_surface(k, s, memory):
    """Combination k of HELD rows of the last outputs, after `n_surfaces`."""
    work, iwork = memory.work, memory.iwork
    f, off = s.flow[0], 0.0
    for b in range(iwork[f.count]):
        off += work[f.T + (iwork[f.n_direct] + k) * f.m + b] * work[f.w + iwork[f.row + b]]
    return off


@kernel
def along_lambda(k, out, s, memory):
    """``M^-1 B`` of the k-th lambda that HELD rows do not determine at once, with those that do change with it, after `n_surfaces`."""
    work, iwork = memory.work, memory.iwork
    f, free = s.flow[0], iwork[s.flow[0].n_direct] + k
    for j in range(f.n):
        out[j] = work[f.MB + iwork[f.row + iwork[f.column + free]] * f.n + j]
    for a in range(iwork[f.n_direct]):
        for j in range(f.n):
            out[j] -= work[f.P + a * f.m + free] * work[f.MB + iwork[f.row + iwork[f.column + a]] * f.n + j]


@kernel
def _differentiate(t, x, done, count, is_second, s, functions, memory):
    """Replace rows without lambda by their rates, minus their part along the solved rows; those of order 2 by their second rates."""
    work, iwork = memory.work, memory.iwork
    f, m, second, rows = s.flow[0], s.flow[0].m, False, _rows(count, s.flow[0])
    for a in range(count):
        second |= iwork[f.order + iwork[f.row + a]] == 2
    # 1. second rates, which overwrite first ones: these are saved
    if second:
        for i in range(m):
            work[f.off + i] = work[f.wt + i]
        evaluate_second_slopes(t, x, s, functions, memory)
        for i in range(m):
            work[f.wt + i] = work[f.off + i]
    # 2. each remaining combination of rows, by its factors T
    for a in range(done, count):
        work[f.R + a], work[f.size + a] = 0.0, 0.0
        for b in range(count):
            work[f.P + a * m + b] = 0.0
        for k in range(count):
            i, factor = iwork[f.row + k], work[f.T + a * m + k]
            if factor != 0.0:
                twice = iwork[f.order + i] == 2
                work[f.R + a] += factor * (work[f.wtt + i] if twice else work[f.wt + i])
                slopes = f.second if twice else f.CMB
                for b in range(count):
                    entry = factor * work[slopes + i * m + iwork[f.row + iwork[f.column + b]]]
                    work[f.P + a * m + b] += entry
                    work[f.size + a] = max(work[f.size + a], abs(entry))
        for d in range(done):
            subtract(a, d, count, rows, work)


@tiny
def _rows(count, f):
    """The rows of the elimination; T are their combinations."""
    return Rows(f.m, f.P, f.T, count, f.m, f.R, f.size, f.best, ABSENT, f.column, f.best_column, _NO_PIVOT, 0.0)
