"""Consistent initial values of rigid bodies: positions by projection, velocities by impulses of bilateral constraints."""

from nsds._jit import kernel, view
from nsds.schemes.rigid import blocks, problem, projection
from nsds.schemes.rigid import moreau_jean as plain
from nsds.schemes.rigid.tables import P
from nsds.status import CAPACITY, CONVERGED, VIOLATED

_ROUNDS = 4  # of iterative refinement: redundant equations are softened a little
_CLOSE = 1e-12  # relative velocity residual of a solution,
_BEARABLE = 1e-8  # and of all at the end


@kernel
def make_consistent(t, s, calls, options, memory):
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
    n_blocks, left, most = problem.list_blocks(problem.EQUATIONS, form.interactions, p, memory), 0.0, 0.0
    for k in range(_ROUNDS + 1 if n_blocks > 0 else 0):
        # restated: solvers soften them
        problem.state_rows(t, 0, n_blocks, q, options.h, form.interactions, p, functions, memory)
        stated = problem.stated_blocks(0, n_blocks, p, memory)
        for i in range(p.d * n_blocks):
            stated.r[i] = 0.0
        for i in range(6 * m):
            work[p.w_free + i] = w[i]
        left, size = blocks.largest_velocity(p.d, stated, w)
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
    if not plain.find_contacts(options.motion, own.parallel != 0, form, q, v, memory):
        return CAPACITY
    plain.take_contacts(form.collisions, memory)
    for i in range(m):
        for k in range(6):
            memory.mem[form.bodies[i].q + P + k] = 0.0
    for k in range(form.interactions.size):
        for i in range(form.interactions[k].m):
            memory.mem[form.interactions[k].lam + i] = 0.0
    problem.keep_contact_impulses(0, form, p, memory)
    return plain.put_state(t, form, q, v, view(work, own.R, 9 * m), functions, memory)
