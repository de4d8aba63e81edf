"""Multiple impacts in a step of velocities: what velocities its contacts must have at the end, from those at its start.

The law of Liu, Zhao and Brogliato gives impulses P and velocities u+ from the velocities u- at the start of the step, for positions and
forces that stay (`nsds.solvers.impact.multiple`). As Newton's law does with ``e u-``, it then enters the one-step problem as an offset:

    0 <= u_{k+1} + rebound  ⟂  lambda >= 0,      rebound = -u+ where P > 0, else 0

which P solves where no forces act. So contacts at rest carry loads, and without an impact the law is complementarity.
"""

from nsds._jit import kernel, on_demand, tiny, view
from nsds.model.layout import ABSENT
from nsds.schemes.problem.box import ULPS
from nsds.solvers.impact.multiple import SIGNATURE, call_multiple_impact, multiple_impact, work_size
from nsds.status import CONVERGED, IMPACT

_TOL = 1e-10  # of a step of the integration, relative to the largest velocity
_PER_CONTACT = 4  # numbers beside those that the integration needs
N_INFO = 2

address_of_multiple_impact = on_demand(SIGNATURE, multiple_impact)


def place_impacts(plan, constraints, work, iwork):
    """Reserve the scratch of multiple impacts where constraints have that law."""
    plan["multiple"] = bool((constraints["rebound"] != ABSENT).any())
    floats, integers = work_size(constraints.size if plan["multiple"][0] else 0)
    work.place(plan, impact=floats + _PER_CONTACT * constraints.size + N_INFO)
    iwork.place(plan, mode=integers)


@tiny
def rebound(c, mem, work):
    """What a law of impacts adds to ydot at the end of the step: ``e ydot_k``, or what `state_rebounds` found; 0 of others."""
    if c.rebound != ABSENT:
        return work[c.rebound]
    return work[c.e] * mem[c.ydot] if c.e != ABSENT else 0.0


@kernel
def state_rebounds(p, n, W, row, column, constraints, entries, mem, work, iwork):
    """Rebounds of the n active constraints, all of which have the law, from ydot_k. W: where the matrix on the pattern begins.

    Returns CONVERGED, or IMPACT where the impact does not end.
    """
    u, P = view(work, p.impact, n), view(work, p.impact + n, n)
    stiffness, e = view(work, p.impact + 2 * n, n), view(work, p.impact + 3 * n, n)
    info, first = view(work, p.impact + _PER_CONTACT * n, N_INFO), p.impact + _PER_CONTACT * n + N_INFO
    floats, integers = work_size(n)
    noise, exponent = 0.0, 1.0
    for a in range(n):
        c = constraints[iwork[p.active + a]]
        u[a], stiffness[a], e[a], exponent = mem[c.ydot], work[c.stiffness], work[c.e], work[c.exponent]
        size = work[c.pull]
        for k in range(c.entry, c.entry_end):
            size += abs(work[entries[k].coefficient] * work[p.v_old + entries[k].dof])
        noise = max(noise, ULPS * size)
    matrix, scratch, mode = view(work, W, column.size), view(work, first, floats), view(iwork, p.mode, integers)
    status = call_multiple_impact(
        address_of_multiple_impact(), (row, column, matrix, stiffness, exponent, e, _TOL, noise, u, P, info, scratch, mode)
    )
    for a in range(n):
        work[constraints[iwork[p.active + a]].rebound] = -u[a] if P[a] > 0.0 else 0.0
    return CONVERGED if status == CONVERGED else IMPACT
