"""Consistent initial values of rigid bodies: positions by projection, velocities by impulses of bilateral constraints."""

from nsds._jit import kernel, tiny, view
from nsds.model.records import copied, memory
from nsds.schemes.memory import of_each_member
from nsds.schemes.rigid import blocks, problem, projection
from nsds.schemes.rigid import moreau_jean as plain
from nsds.schemes.rigid.enabled import is_gone
from nsds.schemes.rigid.interactions import evaluate
from nsds.schemes.rigid.tables import EQUALITY, P, V
from nsds.solvers.contact.signature import EQUATION
from nsds.status import CAPACITY, CONVERGED, VIOLATED

_ROUNDS = 4  # of iterative refinement: redundant equations are softened a little
_CLOSE = 1e-12  # relative velocity residual of a solution,
_BEARABLE = 1e-8  # and of all at the end


def make_consistent(records, options, h, method, solver, solver_options):
    """(records, statuses of all members): copies with more room for contacts where that is wanted.

    options: of `nsds.moreau_jean_direct_projection`.
    """
    while True:
        changed = copied(records)
        prepared = projection.prepare(changed, memory(changed), options, h, method)
        statuses = of_each_member(_make_consistent, prepared, changed, solver, solver_options)
        if CAPACITY not in statuses:
            return changed, statuses
        records = plain.grow(records)


@kernel
def _make_consistent(t, s, calls, options, memory):
    """Project positions, then velocities; returns a status, or CAPACITY without room for the contacts."""
    functions, work = calls.functions, memory.work
    form, p, own = s.motion, s.positions.plan[0], s.motion.plan[0]
    m = p.n_bodies
    q, v, w, R = view(work, own.q, 7 * m), view(work, own.v, 6 * m), view(work, p.w, 6 * m), view(work, p.R, 9 * m)
    # 1. positions
    if projection.start(t, s, functions, options, memory) == CAPACITY:
        return CAPACITY
    status = projection.project(t, False, s, calls, options, memory)
    if status != CONVERGED:
        return status
    # 2. inverse masses at the new positions, and velocities in inertial axes
    projection.metric(t, True, form.bodies, p, q, functions, memory)
    plain.to_inertial(m, R, v, w)
    # 3. velocities, by impulses of the active equations, refined in _ROUNDS
    n_blocks, left, most = _choose_equations(form.interactions, p, memory), 0.0, 0.0
    for k in range(_ROUNDS + 1 if n_blocks > 0 else 0):
        left, size = _state_velocities(t, n_blocks, form.interactions, p, q, functions, memory)
        most = max(most, size)
        if k == _ROUNDS or left == 0.0:
            break
        problem.arrange(0, problem.has_matrix(0, n_blocks, p), p, memory)
        wanted = _CLOSE * problem.size_of(w)
        solved = problem.solve_blocks(0, n_blocks, True, False, s.positions, calls.solver, calls.solver_options, wanted, 1.0, memory)
        if solved != CONVERGED and not problem.can_go_on(solved):
            return solved
        # w += M^-1 H^T r
        change = view(work, p.w_free, 6 * m)
        blocks.multiply_inverse(m, p.stride, view(work, p.inverse, p.stride * m), view(work, p.p, 6 * m), change)
        for i in range(6 * m):
            w[i] += change[i]
    # equations that contradict each other stay violated
    if not left <= _BEARABLE * most:
        return VIOLATED
    if n_blocks > 0:
        plain.to_body(m, R, w, v)
    # 4. contacts at the new positions, and the state
    if not plain.find_contacts(options.motion, own.parallel != 0, form.collisions, q, v, memory):
        return CAPACITY
    plain.take_contacts(form.collisions, memory)
    _keep(form, q, v, memory)
    problem.keep_contact_impulses(0, form, p, memory)
    plain.outputs(t, form.interactions, own, q, v, view(work, own.R, 9 * m), functions, memory)
    return CONVERGED


@tiny
def _choose_equations(interactions, p, memory):
    """Number of their blocks. Out: begin."""
    n = 0
    for k in range(interactions.size):
        is_listed = interactions[k].law == EQUALITY and memory.work[interactions[k].off] == 0.0
        memory.iwork[p.begin + k] = n if is_listed else -1
        n += interactions[k].n_blocks if is_listed else 0
    return n


@kernel
def _state_velocities(t, n_blocks, interactions, p, q, functions, memory):
    """Equations ``H w + rate + H M^-1 H^T r = 0``. Returns the largest ``|H w + rate|``, and sum of its terms."""
    work = memory.work
    stated, d, w, worst = problem.stated_blocks(0, n_blocks, p, memory), p.d, view(work, p.w, 6 * p.n_bodies), 0.0
    most = 0.0
    # 1. all rows padding, with the current velocities as free ones
    for i in range(6 * p.n_bodies):
        work[p.w_free + i] = w[i]
    for i in range(d * n_blocks):
        stated.diagonal[i], stated.b[i], stated.r[i] = 1.0, 0.0, 0.0
        for l in range(12):
            stated.H[12 * i + l] = 0.0
    # 2. rows of the active interactions
    for k in range(interactions.size):
        it, first = interactions[k], memory.iwork[p.begin + k]
        if first < 0:
            continue
        evaluate(t, it, q, view(work, p.R, 9 * p.n_bodies), functions, memory)
        for i in range(first, first + it.n_blocks):
            stated.body[2 * i], stated.body[2 * i + 1], stated.mu[2 * i], stated.mu[2 * i + 1] = it.a, it.b, 0.0, 0.0
            stated.disk[i] = EQUATION
        # residual, and sizes of its terms
        for i in range(it.m):
            to = d * first + i
            stated.diagonal[to], stated.b[to] = -1.0, work[it.rate + i]
            s, size = work[it.rate + i], abs(work[it.rate + i])
            for l in range(12):
                stated.H[12 * to + l] = work[it.H + 12 * i + l]
                body = it.a if l < 6 else it.b
                if body >= 0:
                    term = work[it.H + 12 * i + l] * w[6 * body + l % 6]
                    s, size = s + term, size + abs(term)
            worst, most = max(worst, abs(s)) + 0.0 * s, max(most, size)
    return worst, most


@kernel
def _keep(s, q, v, memory):
    """The state into the record, without impulses of the interactions."""
    mem = memory.mem
    for i in range(s.bodies.size):
        if is_gone(s.bodies[i], memory.work):
            continue
        at = s.bodies[i].q
        for k in range(7):
            mem[at + k] = q[7 * i + k]
        for k in range(6):
            mem[at + V + k], mem[at + P + k] = v[6 * i + k], 0.0
    for k in range(s.interactions.size):
        for i in range(s.interactions[k].m):
            mem[s.interactions[k].lam + i] = 0.0
