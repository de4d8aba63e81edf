"""Large linear systems with many contacts with friction: velocities and impulses together, by semismooth Newton on the laws.

    M_hat dv - B r = 0,      F(u, r) = 0,      u = H dv + q,      q = H v_free + e ydot_k

F are Alart and Curnier's equations of each contact, see `nsds.solvers.contact.alart_curnier`, and ``w = 0`` or ``z = bound`` of other rows.
Each iteration factorises the whole sparse matrix, whose rows of contacts are ``A H`` and ``B + sigma A W_cc``; the step is halved until
``||F||`` falls, and sigma grows where it does not, as in `nsds.solvers.contact.newton`.
"""

import math

from nsds._jit import inlined, kernel, specialised, tiny, view
from nsds.maths import sparse_lu
from nsds.schemes.lagrangian import mixed
from nsds.schemes.lagrangian.functions import blame  # noqa: F401
from nsds.schemes.linear_algebra import solve_with
from nsds.schemes.problem.active_set import state_bounds
from nsds.schemes.problem.rows import POSITION
from nsds.solvers.box.signature import UNDERFLOW, is_affordable
from nsds.solvers.contact import alart_curnier
from nsds.solvers.contact.newton import DECREASE, HALVINGS, LEAST, MOST, RELAX, STIFFEN
from nsds.solvers.contact.signature import Cone
from nsds.status import CONVERGED, INEXACT, MAX_ITER, NON_FINITE, SINGULAR, STALLED

_MAX_ITER = 60
_LARGEST = 3  # components of a contact

start = mixed.start


@kernel
def solve(n, h, s, options, memory):
    """The mixed problem of the n active constraints, q in work[p.q:], from the multipliers in mem. Out: x, z, w.

    Returns (status, iterations, residual): ``||F||`` relative to ``||q||``.
    """
    work, iwork, p, g = memory.work, memory.iwork, s.linear.plan[0], s.mixed[0]
    asked = options.contact
    # 1. guess, and the velocities that go with it
    size = _begin(n, h, s, memory)
    merit = _evaluate(n, s, memory)
    status, n_iter, sigma, multiplications, bound = MAX_ITER, 0, 0.0, 0.0, merit
    limit = int(asked.max_iter) if asked.max_iter > 0.0 else _MAX_ITER
    # 2. Newton's iterations; the merit may rise once, not twice
    while math.sqrt(merit) > asked.tol * size and math.sqrt(merit) > work[p.rounding]:
        if not merit < math.inf:
            status = NON_FINITE
            break
        if n_iter == limit or not is_affordable(multiplications, options.box):
            break
        n_iter += 1
        _factorise(n, sigma, s, memory)
        multiplications += sparse_lu.effort(g.index, iwork)
        sparse_lu.solve(g.values, g.factors, g.index, g.rhs, g.fixed, work, iwork)
        before, t = merit, 1.0
        _move(n, 1.0, s, memory)
        merit = _evaluate(n, s, memory)
        for _ in range(HALVINGS):
            if merit <= (1.0 - 2.0 * DECREASE * t) * bound:
                break
            t *= 0.5
            _move(n, -t, s, memory)
            merit = _evaluate(n, s, memory)
        bound = max(before, merit)
        if t < 1.0 and sigma == MOST and not merit < before:
            status = SINGULAR
            break
        sigma = (sigma / RELAX if sigma > LEAST else 0.0) if t == 1.0 else min(max(sigma * STIFFEN, LEAST), MOST)
    # 3. verdict
    _project(n, s, memory)
    lost = mixed.imbalance(n, s.linear, g, memory)
    missed = max(math.sqrt(merit), lost)
    error = missed / size
    work[p.info], work[p.info + 1] = n_iter, error
    if not missed + 0.0 * lost < math.inf:
        return NON_FINITE, n_iter, math.inf
    if error <= asked.enough or missed <= work[p.rounding]:
        return CONVERGED, n_iter, error
    if error <= asked.inexact:
        return INEXACT, n_iter, error
    return STALLED if status == CONVERGED else status, n_iter, error


@kernel
def _begin(n, h, s, memory):
    """Bounds, multipliers of the last step, and dv by these; returns ``||q||``."""
    work, iwork, p, g, form = memory.work, memory.iwork, s.linear.plan[0], s.mixed[0], s.linear
    for r in range(g.size):
        work[g.x + r] = work[g.rhs + r] = 0.0
    for i in range(form.constraints.size):
        iwork[g.free + g.n_dofs + i] = 0
    # 1. guess, and its impulses
    size, is_pressed = 0.0, False
    for a in range(n):
        i = iwork[p.active + a]
        c = form.constraints[i]
        state_bounds(a, h, c, p, work)
        z = memory.mem[c.lam] * (h if c.level == POSITION else 1.0)
        work[p.z + a] = work[g.x + iwork[g.unknown + i]] = z
        iwork[g.free + iwork[g.unknown + i]] = 1
        size += work[p.q + a] ** 2
        is_pressed |= z != 0.0
        for k in range(c.input, c.input_end):
            work[g.rhs + form.inputs[k].dof] += work[form.inputs[k].coefficient] * z
    # 2. their velocities
    for k in range(form.parts.size if is_pressed else 0):
        part, o = form.parts[k], form.operators[k]
        for e in range(part.count):
            dof = part.dof + e * part.n
            solve_with(o, e, part.n, g.rhs + dof, g.x + dof, p.scratch, memory)
    for r in range(g.size):
        work[g.rhs + r] = 0.0
    return max(math.sqrt(size), UNDERFLOW)


@kernel
def _evaluate(n, s, memory):
    """u of all rows at (dv, r); F into the right-hand side, with A and B. Returns ``||F||^2``."""
    work, iwork, p, g, constraints, merit = memory.work, memory.iwork, s.linear.plan[0], s.mixed[0], s.linear.constraints, 0.0
    for a in range(n):
        work[p.w + a], _ = mixed.row_sum(a, constraints[iwork[p.active + a]], s.linear, g, memory)
        work[p.z + a] = work[g.x + iwork[g.unknown + iwork[p.active + a]]]
    for a in range(n):
        i = iwork[p.active + a]
        c, u = constraints[i], iwork[g.unknown + i]
        A, B = g.A + _LARGEST * a, g.B + _LARGEST * a
        # 1. a contact with friction: all of its rows
        if c.tangents > 0:
            if c.component == 0:
                d, rho, F = c.tangents + 1, view(work, g.rho, 3), view(work, g.rhs + u, c.tangents + 1)
                largest = work[p.W + i + 1] if d == 2 else max(work[p.W + i + 1], work[p.W + i + 2])
                rho[0], rho[1], rho[2] = 1.0 / work[p.W + i], 1.0 / largest, 1.0
                cone, r, w = Cone(d, c.tangents, work[c.mu], 0.0), view(work, p.z + a, d), view(work, p.w + a, d)
                A_a, B_a = view(work, A, d * d), view(work, B, d * d)
                alart_curnier.evaluate(alart_curnier.ALART_CURNIER, cone, rho, r, w, F, A_a, B_a)
                for k in range(d):
                    merit += F[k] ** 2
            continue
        # 2. other rows: w = 0 or at a bound
        z, w, lower, upper = work[p.z + a], work[p.w + a], work[p.lower + a], work[p.upper + a]
        y = z - w / work[p.W + i]
        if lower < y < upper:
            work[g.rhs + u], work[A], work[B] = w, 1.0, 0.0
        else:
            work[g.rhs + u], work[A], work[B] = (z - (lower if y <= lower else upper)) * work[p.W + i], 0.0, work[p.W + i]
        merit += work[g.rhs + u] ** 2
    return merit


@kernel
def _factorise(n, sigma, s, memory):
    """Factors of ``[M_hat, -B; A H, B + sigma A W_cc]``; multipliers of inactive rows stay 0."""
    work, iwork, p, g, constraints = memory.work, memory.iwork, s.linear.plan[0], s.mixed[0], s.linear.constraints
    # 1. momentum, and rows that are not active
    for r in range(g.size):
        for k in range(iwork[g.row_start + r], iwork[g.row_start + r + 1]):
            column = iwork[g.column + k]
            if r < g.n_dofs and iwork[g.free + column] != 0:
                work[g.values + k] = work[g.base + k]
            else:
                work[g.values + k] = 1.0 if r == column else 0.0
    # 2. laws: rows of a contact have entries in the same columns, those of its multipliers one after the other
    for a in range(n):
        i = iwork[p.active + a]
        c, u = constraints[i], iwork[g.unknown + i]
        d, component, first = c.tangents + 1, c.component, iwork[g.row_start + u]
        A, B = g.A + _LARGEST * (a - component) + d * component, g.B + _LARGEST * (a - component) + d * component
        for k in range(first, iwork[g.row_start + u + 1]):
            work[g.values + k] = 0.0
        for b in range(d):
            other, weight = iwork[g.row_start + u - component + b], work[A + b]
            for k in range(iwork[g.row_start + u + 1] - first if weight != 0.0 else 0):
                if iwork[g.free + iwork[g.column + other + k]] != 0:
                    work[g.values + first + k] += weight * work[g.base + other + k]
            work[g.values + iwork[g.own + u] + b] += work[B + b] + sigma * weight * work[p.W + i - component + b]
    sparse_lu.factorise(g.values, g.factors, g.index, work, iwork)


@tiny
def _move(n, t, s, memory):
    """``(dv, r) -= t step``."""
    g = s.mixed[0]
    for r in range(g.size):
        memory.work[g.x + r] -= t * memory.work[g.fixed + r]


@kernel
def _project(n, s, memory):
    """Impulses that are outside of their bounds by rounding, into them."""
    work, p = memory.work, s.linear.plan[0]
    for a in range(n):
        c = s.linear.constraints[memory.iwork[p.active + a]]
        work[p.z + a] = min(max(work[p.z + a], work[p.lower + a]), work[p.upper + a]) if c.component == 0 else work[p.z + a]
        if c.component == 0 and c.tangents > 0:
            size = 0.0
            for k in range(1, c.tangents + 1):
                size += work[p.z + a + k] ** 2
            most = work[c.mu] * max(work[p.z + a], 0.0)
            for k in range(1, c.tangents + 1):
                work[p.z + a + k] *= min(1.0, most / math.sqrt(size)) if size > 0.0 else 1.0


step = inlined(specialised(mixed.step, "friction", _solve_step=solve))
