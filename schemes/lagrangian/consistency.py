"""Consistent initial values of Lagrangian systems: positions by their projection, velocities by impulses of bilateral constraints."""

from nsds._jit import kernel
from nsds.schemes.lagrangian import projection
from nsds.schemes.lagrangian.contact_forces import make_jump
from nsds.schemes.lagrangian.outputs import add_change, update_outputs
from nsds.schemes.problem.active_set import list_row
from nsds.schemes.problem.box import worse
from nsds.schemes.problem.rows import POSITION


@kernel
def make_consistent(t, s, calls, options, memory):
    """Project positions, then velocities; returns a status."""
    form, parts, elements, constraints, entries = s.newton, s.newton.parts, s.newton.elements, s.newton.constraints, s.newton.entries
    p = form.plan[0]
    # 1. positions
    projection.start(t, s, calls.functions, options, memory)
    status, _ = projection.project(t, s, calls, options, memory)
    # 2. inverse masses there, and the bilateral constraints
    projection.find_metrics(s, calls.functions, memory)
    n = 0
    for i in range(constraints.size):
        n = list_row(i, constraints[i].bilateral != 0 and constraints[i].level != POSITION, n, p, memory.iwork)
    # 3. impulses that satisfy them, from the given velocities
    pushed, _ = make_jump(n, 0.0, 1.0, form, s.metrics, calls, memory)
    add_change(True, parts, elements, p.dv, memory)
    # 4. no multipliers before the first step, and outputs
    for i in range(constraints.size):
        memory.mem[constraints[i].lam] = 0.0
    update_outputs(options.h, 1.0, constraints, entries, form.couplings, memory)
    return worse(status, pushed)
