"""Forces between bodies: springs, dampers and functions of rows y of a relation and their rates, ``f(t, y, ydot)``.

They act as ``H^T f`` on the bodies, with the weights and at the places that a scheme gives to the forces of each body. Newton's matrix is
block-diagonal by body and cannot hold the coupling stiffness between two bodies; it is added as rows of the one-step problem,

    L^T H (w_new - w) + r = 0,     L L^T = K_h = -h theta (df/dydot + h a df/dy),

whose impulses ``H^T L r = -H^T K_h H (w_new - w)`` are the changes of the forces within an iteration. They start from 0 in each, and vanish
at convergence. A row without stiffness has L near 0 and no effect; of an indefinite K_h only the positive part is kept.
"""

import math

from nsds._jit import kernel, stack, tiny, view
from nsds.maths.dense import cholesky
from nsds.maths.vectors import norm, times_transposed
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT
from nsds.schemes.derivatives import FORWARD_STEP
from nsds.schemes.rigid.interactions import evaluate, row_length, row_velocity
from nsds.schemes.rigid.tables import FORCE
from nsds.solvers.contact.signature import EQUATION

COMPLIANT = -2.0  # diagonal of a block: 1 once its units are known
_PIVOT = 1e-12  # of the diagonal: smaller pivots are rounding


@kernel
def force_of(t, it, y, ydot, functions, mem, out):
    """``out = f(t, y, ydot)`` of one element (m,): that of its function, or ``-stiffness y - damping ydot``."""
    if it.force_function != ABSENT:
        call_function(functions, it.force_function, (t, y, ydot, view(mem, it.z, it.n_z), out))
        return
    for i in range(it.m):
        out[i] = 0.0
        for j in range(it.m):
            out[i] -= mem[it.stiffness + it.m * i + j] * y[j] + mem[it.damping + it.m * i + j] * ydot[j]


@kernel
def add_at_start(t, s, functions, memory):
    """Forces at the state of the record, whose outputs and H are known. In/out: f_old and size of bodies; out: force_old."""
    mem, work = memory.mem, memory.work
    for k in range(s.interactions.size):
        it = s.interactions[k]
        if it.law == FORCE and work[it.off] == 0.0:
            force_of(t, it, view(mem, it.y, it.m), view(mem, it.ydot, it.m), functions, mem, view(work, it.force_old, it.m))
            _add(it, it.force_old, s.bodies, s.plan[0], s.plan[0].f_old, work)


@kernel
def add_at_end(is_new, t, weight_v, weight_q, floor, s, q, functions, memory):
    """Forces at q and w. In/out: f and size of bodies; root, blur, computed if is_new, else kept; out: force.

    root: L for the weights ``h theta`` and ``h^2 theta a``; blur: effect of rounded lengths on stiff forces, of which floor says how
    much counts as size.
    """
    mem, work = memory.mem, memory.work
    p = s.plan[0]
    for k in range(s.interactions.size):
        it = s.interactions[k]
        if it.law == FORCE and work[it.off] == 0.0:
            # 1. rows, rates and forces at the iterate
            y, ydot, f = view(work, it.h, it.m), view(work, it.spare, it.m), view(work, it.force, it.m)
            evaluate(t, it, q, view(work, p.R, 9 * p.n_bodies), functions, memory)
            rates(it, p, work, ydot)
            force_of(t, it, y, ydot, functions, mem, f)
            _add(it, it.force, s.bodies, p, p.f, work)
            # 2. stiffness, from springs first: rounding of lengths is relative to it alone; then damping, and the factor L
            if is_new:
                moved, K = view(work, it.spare + it.m, it.m), view(work, it.root, it.m * it.m)
                for i in range(it.m * it.m):
                    K[i] = 0.0
                _add_slopes(t, weight_q, it.stiffness, y, it, y, ydot, f, functions, mem, moved, K)
                _find_blur(floor / weight_q if weight_q > 0.0 else 0.0, it, q, K, work)
                _add_slopes(t, weight_v, it.damping, ydot, it, y, ydot, f, functions, mem, moved, K)
                _factorise(it.m, K)
            # 3. sizes, by which the balance of each body is judged
            for side in range(2):
                body = it.a if side == 0 else it.b
                if body != ABSENT and not s.bodies[body].fixed:
                    work[p.size + 2 * body] += work[it.blur + 2 * side]
                    work[p.size + 2 * body + 1] += work[it.blur + 2 * side + 1]


@kernel
def follow(h, s, change, R_free, work):
    """Change of the forces with the velocities, to first order: ``-H^T L L^T H change / h``. In/out: force, f, ``R_free = .. - h f``."""
    p, term = s.plan[0], stack(6)
    for k in range(s.interactions.size):
        it = s.interactions[k]
        if it.law != FORCE or work[it.off] != 0.0:
            continue
        # 1. rates of the rows by the change
        push, pull = view(work, it.spare, it.m), view(work, it.spare + it.m, it.m)
        for i in range(it.m):
            pull[i] = row_velocity(0.0, it, i, change, work)
        # 2. times L^T, then L
        for j in range(it.m):
            push[j] = 0.0
            for i in range(j, it.m):
                push[j] += work[it.root + it.m * i + j] * pull[i]
        for i in range(it.m - 1, -1, -1):
            pull[i] = 0.0
            for j in range(i + 1):
                pull[i] += work[it.root + it.m * i + j] * push[j]
            work[it.force + i] -= pull[i] / h
        # 3. on both bodies, moments in axes of the body for f
        for side in range(2):
            body = it.a if side == 0 else it.b
            if body == ABSENT or s.bodies[body].fixed:
                continue
            for l in range(6):
                term[l] = 0.0
                for i in range(it.m):
                    term[l] += work[it.H + 12 * i + 6 * side + l] * pull[i]
                R_free[6 * body + l] += term[l]
            times_transposed(view(work, p.R + 9 * body, 9), view(term, 3, 3), view(term, 3, 3))
            for l in range(6):
                work[p.f + 6 * body + l] -= term[l] / h


@tiny
def rates(it, p, work, ydot):
    """``ydot = H w + rate`` of one element, with H and w as they lie in the work memory."""
    w = view(work, p.w, 6 * p.n_bodies)
    for i in range(it.m):
        ydot[i] = row_velocity(work[it.rate + i], it, i, w, work)


@kernel
def _add(it, place, bodies, p, f, work):
    """``H^T force`` of one element, forces in inertial axes and moments in those of the body, and norms of its terms. In/out: f, size."""
    term, moment = stack(6), stack(3)
    for side in range(2):
        body = it.a if side == 0 else it.b
        if body == ABSENT or bodies[body].fixed:
            continue
        for l in range(6):
            term[l] = 0.0
            for i in range(it.m):
                term[l] += work[it.H + 12 * i + 6 * side + l] * work[place + i]
        times_transposed(view(work, p.R + 9 * body, 9), view(term, 3, 3), moment)
        for l in range(3):
            work[f + 6 * body + l] += term[l]
            work[f + 6 * body + 3 + l] += moment[l]
        work[p.size + 2 * body] += norm(view(term, 0, 3))
        work[p.size + 2 * body + 1] += norm(moment)


@kernel
def _add_slopes(t, weight, numbers, x, it, y, ydot, f, functions, mem, moved, K):
    """``K -= weight df/dx`` (m, m), x is y or ydot; of functions by finite differences from f. numbers: offset of spring constants.

    Work: moved (m,).
    """
    for j in range(it.m):
        step = 1.0
        if it.force_function != ABSENT:
            kept = x[j]
            x[j] = kept + math.copysign(FORWARD_STEP * max(1.0, abs(kept)), kept)
            force_of(t, it, y, ydot, functions, mem, moved)
            step, x[j] = x[j] - kept, kept
        for i in range(it.m):
            slope = (f[i] - moved[i]) / step if it.force_function != ABSENT else mem[numbers + it.m * i + j]
            K[it.m * i + j] += weight * slope


@kernel
def _find_blur(factor, it, q, K, work):
    """Effect of rounded lengths in y, by K and factor, as forces and moments on both bodies. Out: blur."""
    for l in range(4):
        work[it.blur + l] = 0.0
    for i in range(it.m):
        s = 0.0
        for j in range(it.m):
            length, row = 0.0, it.H + 12 * j
            for side in range(2):
                body = it.a if side == 0 else it.b
                if body != ABSENT:
                    length += row_length(view(work, row + 6 * side, 6), view(q, 7 * body, 3))
            s += factor * abs(K[it.m * i + j]) * length
        for l in range(4):
            work[it.blur + l] += s * norm(view(work, it.H + 12 * i + 3 * l, 3))


@tiny
def _factorise(m, K):
    """``K <- L`` with ``L L^T`` the symmetric part of K, as far as its pivots are positive; other columns are 0. In/out: K (m, m)."""
    for i in range(m):
        for j in range(i):
            K[m * i + j] = 0.5 * (K[m * i + j] + K[m * j + i])
            K[m * j + i] = 0.0
    cholesky(m, m, _PIVOT, K)


@kernel
def state_block(interaction, first, d, work, stated):
    """Blocks ``first ..`` of one element: ``H <- L^T H``; b is 0, r begins with 0. Out: stated."""
    it = interaction
    for k in range(first, first + it.n_blocks):
        stated.body[2 * k], stated.body[2 * k + 1], stated.mu[2 * k], stated.mu[2 * k + 1] = it.a, it.b, 0.0, 0.0
        stated.disk[k] = EQUATION
        for row in range(d):
            to, j = k * d + row, (k - first) * d + row
            stated.b[to], stated.r[to], stated.diagonal[to] = 0.0, 0.0, COMPLIANT if j < it.m else 1.0
            for l in range(12):
                stated.H[12 * to + l] = 0.0
                for i in range(j, it.m):
                    stated.H[12 * to + l] += work[it.root + it.m * i + j] * work[it.H + 12 * i + l]
