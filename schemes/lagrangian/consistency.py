"""Consistent initial values of Lagrangian systems: positions by their projection, velocities by impulses of bilateral constraints."""

from nsds._jit import kernel
from nsds.model.layout import ABSENT
from nsds.model.records import copied, memory
from nsds.schemes.lagrangian import newton, projection
from nsds.schemes.lagrangian.contact_forces import push_apart
from nsds.schemes.lagrangian.outputs import update_outputs, velocity
from nsds.schemes.memory import of_each_member
from nsds.schemes.problem.box import rounding_of, worse
from nsds.schemes.problem.rows import POSITION


def make_consistent(records, options, h, method, solver, solver_options):
    """(records, statuses of all members): changed copies; options: of `nsds.moreau_jean_direct_projection`."""
    changed = copied(records)
    prepared = projection.prepare(changed, memory(changed), options, h, method)
    return changed, of_each_member(_make_consistent, prepared, changed, solver, solver_options)


@kernel
def _make_consistent(t, s, calls, options, memory):
    """Project positions, then velocities; returns a status."""
    work = memory.work
    form, parts, elements, constraints, entries = s.newton, s.newton.parts, s.newton.elements, s.newton.constraints, s.newton.entries
    p = form.plan[0]
    # 1. positions
    projection.start(t, s, calls.functions, options, memory)
    status, _ = projection.project(t, s, calls, options, memory)
    # 2. inverse masses there, and the bilateral constraints
    newton.evaluate_masses(1.0, parts, elements, p, calls.functions, memory)
    projection.invert_metrics(elements, parts, s.metrics, s.plan[0], memory)
    n, most = 0, 0.0
    for i in range(constraints.size):
        c = constraints[i]
        chosen = c.bilateral != 0 and c.level != POSITION
        memory.iwork[p.local + i] = n if chosen else ABSENT
        if chosen:
            memory.iwork[p.active + n] = i
            work[p.q + n], size = velocity(c, entries, memory)
            most = max(most, size)
            n += 1
    work[p.rounding] = rounding_of(most)
    # 3. impulses that satisfy them, from the given velocities
    for i in range(p.n_dofs):
        work[p.dv + i] = 0.0
    pushed, _, _ = push_apart(n, p.dv, 0.0, 1.0, form, s.metrics, calls, memory)
    newton.add_jump(parts, elements, p, memory)
    # 4. no multipliers before the first step, and outputs
    for i in range(constraints.size):
        memory.mem[constraints[i].lam] = 0.0
    update_outputs(options.h, 1.0, constraints, entries, form.couplings, memory)
    return worse(status, pushed)
