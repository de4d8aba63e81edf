"""Multiple impacts in a step of velocities: what velocities its contacts must have at the end, from those at its start.

The law of Liu, Zhao and Brogliato gives impulses P and velocities u+ from the velocities u- at the start of the step, for positions and
forces that stay (`nsds.solvers.impact.multiple`). As Newton's law does with ``e u-``, it then enters the one-step problem as an offset:

    0 <= u_{k+1} + rebound  ⟂  lambda >= 0,      rebound = -u+ where P > 0, else 0

which P solves where no forces act. So contacts at rest carry loads, and without an impact the law is complementarity.
"""

from nsds._jit import kernel, on_demand, tiny, view
from nsds.model.layout import ABSENT
from nsds.schemes.problem.box import ULPS
from nsds.solvers.box.signature import diagonal
from nsds.solvers.impact.multiple import SIGNATURE, call_multiple_impact, multiple_impact, work_size
from nsds.status import CONVERGED, IMPACT

_TOL = 1e-10  # of a step of the integration, relative to the largest velocity
_PER_CONTACT = 4  # numbers beside those that the integration needs
N_INFO = 2
_REDUNDANT = 1e-12  # of an equation's diagonal entry: what is left of it where others imply it

address_of_multiple_impact = on_demand(SIGNATURE, multiple_impact)


def place_impacts(plan, constraints, work, iwork):
    """Reserve the scratch of multiple impacts where constraints have that law; with equations, for a matrix from which they are gone."""
    is_contact = constraints["rebound"] != ABSENT
    plan["multiple"] = bool(is_contact.any())
    n = constraints.size if plan["multiple"][0] else 0
    n_reduced = 0 if is_contact.all() else n
    floats, integers = work_size(n)
    work.place(plan, impact=floats + _PER_CONTACT * n + N_INFO, whole=n_reduced**2, reduced=n_reduced**2)
    iwork.place(plan, mode=integers, chosen=n, reduced_row=n_reduced + 1, reduced_column=n_reduced**2)


@tiny
def rebound(c, mem, work):
    """What a law of impacts adds to ydot at the end of the step: ``e ydot_k``, or what `state_rebounds` found; 0 of others."""
    if c.rebound != ABSENT:
        return work[c.rebound]
    return work[c.e] * mem[c.ydot] if c.e != ABSENT else 0.0


@kernel
def state_rebounds(p, n, W, row, column, constraints, entries, mem, work, iwork):
    """Rebounds, from ydot_k, of the contacts among the n active constraints; others are equations, which hold during the impact.

    W: where the matrix on the pattern begins. Returns CONVERGED, or IMPACT where the impact does not end.
    """
    u, P = view(work, p.impact, n), view(work, p.impact + n, n)
    stiffness, e = view(work, p.impact + 2 * n, n), view(work, p.impact + 3 * n, n)
    info, first = view(work, p.impact + _PER_CONTACT * n, N_INFO), p.impact + _PER_CONTACT * n + N_INFO
    m, noise, exponent = 0, 0.0, 1.0
    for a in range(n):
        c = constraints[iwork[p.active + a]]
        if c.rebound == ABSENT:
            continue
        u[m], stiffness[m], e[m], exponent = mem[c.ydot], work[c.stiffness], work[c.e], work[c.exponent]
        iwork[p.chosen + m] = a
        m += 1
        size = work[c.pull]
        for k in range(c.entry, c.entry_end):
            size += abs(work[entries[k].coefficient] * work[p.v_old + entries[k].dof])
        noise = max(noise, ULPS * size)
    matrix = view(work, W, column.size)
    if m < n:
        _reduce(p, n, m, row, column, matrix, constraints, work, iwork)
        row, column = view(iwork, p.reduced_row, m + 1), view(iwork, p.reduced_column, m * m)
        matrix = view(work, p.reduced, m * m)
    floats, integers = work_size(m)
    scratch, mode = view(work, first, floats), view(iwork, p.mode, integers)
    u, P, stiffness, e = view(u, 0, m), view(P, 0, m), view(stiffness, 0, m), view(e, 0, m)
    status = call_multiple_impact(
        address_of_multiple_impact(), (row, column, matrix, stiffness, exponent, e, _TOL, noise, u, P, info, scratch, mode)
    )
    for a in range(m):
        work[constraints[iwork[p.active + iwork[p.chosen + a]]].rebound] = -u[a] if P[a] > 0.0 else 0.0
    return CONVERGED if status == CONVERGED else IMPACT


@kernel
def _reduce(p, n, m, row, column, W, constraints, work, iwork):
    """Rows and columns of the m chosen contacts of ``W_cc - W_ce W_ee^-1 W_ec``, e being the equations. Out: reduced, its pattern."""
    whole = view(work, p.whole, n * n)
    for i in range(n * n):
        whole[i] = 0.0
    for i in range(n):
        for k in range(row[i], row[i + 1]):
            whole[i * n + column[k]] = W[k]
    for a in range(n):
        pivot = whole[a * n + a]
        if constraints[iwork[p.active + a]].rebound != ABSENT or not pivot > _REDUNDANT * diagonal(row, column, W, a):
            continue
        for i in range(n):
            factor = whole[i * n + a] / pivot if i != a else 0.0
            for j in range(n if factor != 0.0 else 0):
                whole[i * n + j] -= factor * whole[a * n + j]
    for a in range(m):
        iwork[p.reduced_row + a] = a * m
        for b in range(m):
            iwork[p.reduced_column + a * m + b] = b
            work[p.reduced + a * m + b] = whole[iwork[p.chosen + a] * n + iwork[p.chosen + b]]
    iwork[p.reduced_row + m] = m * m
