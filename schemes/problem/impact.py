"""Laws of impacts in a step of velocities: impulses of its contacts, and their velocities at its end, from those at its start.

A law gives impulses P and velocities u+ from the velocities u- at the start of the step, with constant positions and forces: that of Liu,
Zhao and Brogliato (`nsds.solvers.impact.multiple`) or Poisson's (`nsds.solvers.impact.poisson`). P acts in the step, and the impulse of
forces is added to it, in the one-step problem of ``lambda - P``:

    0 <= u_{k+1} + rebound  ⟂  lambda - P >= 0,      rebound = -u+ where P > 0, else 0

with friction of ``lambda_n - P_n`` against the tangential velocity at the end. So ``lambda = P`` where no forces act, contacts at
rest carry loads, and without an impact the law is complementarity, or Coulomb's.
"""

import numpy as np
from numba import uintp

from nsds._jit import kernel, on_demand, specialised, tiny, view
from nsds.model.layout import ABSENT
from nsds.schemes.problem.box import ULPS
from nsds.schemes.problem.rows import IMPACTS
from nsds.solvers.box.signature import diagonal
from nsds.solvers.impact import LAWS
from nsds.solvers.impact.signature import LAW, N_INFO, call_law, impact_of
from nsds.status import CONVERGED, IMPACT

_TOL = 1e-10  # of a step of the integration, relative to the largest velocity, or of the problems of Poisson's law
_PER_CONTACT = 5  # floats beside those that the law needs
_REDUNDANT = 1e-12  # relative to an equation's diagonal entry: its remainder if others imply it

_ENOUGH = (0.0, *(module.ENOUGH for module in LAWS.values()))  # residuals up to which impacts are solved, by the number of their law


def _address_template(law):
    """Address of the code of a law of impacts by its number."""
    return this() if law == number else other(law)  # noqa: F821


@tiny
def _no_address(law):
    """There is no further law."""
    return uintp(0)


address_of = _no_address
for _number, (_name, _module) in enumerate(LAWS.items(), start=1):
    _this = on_demand(LAW, getattr(_module, _name))
    address_of = tiny(specialised(_address_template, _name, this=_this, number=_number, other=address_of))


def place_impacts(plan, unknowns, work, iwork):
    """Reserve the scratch of impacts if constraints have such a law; with equations, for a matrix reduced by them."""
    constraints = unknowns.constraints
    is_contact = constraints["rebound"] != ABSENT
    plan["impact_law"] = law = constraints["impact_law"].max(initial=0)
    n, row, column = constraints.size if law else 0, unknowns.row, unknowns.column
    # with equations the law gets the dense matrix of the contacts alone
    n_reduced = 0 if is_contact.all() else n
    if n_reduced:
        n_contacts = int(is_contact.sum())
        row, column = n_contacts * np.arange(n_contacts + 1), np.tile(np.arange(n_contacts), n_contacts)
    floats, integers = 0, 0
    if law:
        floats, integers = LAWS[IMPACTS[law]].work_size(row, column, constraints["component"][is_contact])
    work.place(plan, impact=floats + _PER_CONTACT * n + N_INFO, whole=n_reduced**2, reduced=n_reduced**2)
    iwork.place(plan, mode=integers, chosen=n, place_in_contact=n, reduced_row=n_reduced + 1, reduced_column=n_reduced**2)
    plan["n_impact"], plan["n_mode"] = floats, integers


@tiny
def restitution(row, work):
    """Restitution e of a row of constraints or relations, 0 without one."""
    return 0.0 if row.e == ABSENT else work[row.e]


@tiny
def rebound(c, memory):
    """Velocity that a law of impacts adds to ydot at the end of the step: ``e ydot_k``, or that of `state_impact`; 0 without one."""
    if c.rebound != ABSENT:
        return memory.work[c.rebound]
    return memory.work[c.e] * memory.mem[c.ydot] if c.e != ABSENT else 0.0


@kernel
def state_impact(p, n, W, row, column, constraints, entries, memory):
    """Impulses and rebounds, from ydot_k, of the contacts among the n active constraints; the others are equations.

    W: offset of the matrix on the pattern. Returns CONVERGED, or IMPACT if the impact does not end, or has no solution.
    """
    work, iwork = memory.work, memory.iwork
    u, P, e = view(work, p.impact, n), view(work, p.impact + n, n), view(work, p.impact + 2 * n, n)
    mu, stiffness, info = view(work, p.impact + 3 * n, n), view(work, p.impact + 4 * n, n), view(work, p.impact + _PER_CONTACT * n, N_INFO)
    # 1. contacts, their parameters, and the rounding of velocities, below which there is no impact
    m, noise, exponent = 0, 0.0, 1.0
    for a in range(n):
        c = constraints[iwork[p.active + a]]
        if c.rebound == ABSENT:
            continue
        u[m], e[m], mu[m] = memory.mem[c.ydot], restitution(c, work), 0.0 if c.mu == ABSENT else work[c.mu]
        if c.stiffness != ABSENT:
            stiffness[m], exponent = work[c.stiffness], work[c.exponent]
        iwork[p.chosen + m], iwork[p.place_in_contact + m] = a, c.component
        m += 1
        size = work[c.pull]
        for k in range(c.entry, c.entry_end):
            size += abs(work[entries[k].coefficient] * work[p.v_old + entries[k].dof])
        noise = max(noise, ULPS * size)
    # 2. matrix of the contacts, with equations eliminated
    matrix = view(work, W, column.size)
    if m < n:
        _reduce(p, n, m, row, column, matrix, constraints, memory)
        row, column = view(iwork, p.reduced_row, m + 1), view(iwork, p.reduced_column, m * m)
        matrix = view(work, p.reduced, m * m)
    # 3. law
    scratch, mode = view(work, p.impact + _PER_CONTACT * n + N_INFO, p.n_impact), view(iwork, p.mode, p.n_mode)
    component = view(iwork, p.place_in_contact, m)
    u, P, e, mu, stiffness = view(u, 0, m), view(P, 0, m), view(e, 0, m), view(mu, 0, m), view(stiffness, 0, m)
    impact = impact_of((row, column, matrix, component, mu, e, stiffness, exponent))
    status = call_law(address_of(p.impact_law), (impact, _TOL, noise, u, P, info, scratch, mode))
    if info[1] <= _ENOUGH[p.impact_law]:
        status = CONVERGED
    # 4. impulses and rebounds of the contacts
    for a in range(m):
        c = constraints[iwork[p.active + iwork[p.chosen + a]]]
        work[c.blow] = P[a]
        work[c.rebound] = -u[a] if c.component == 0 and P[a] > 0.0 else 0.0
    return CONVERGED if status == CONVERGED else IMPACT


@kernel
def forget_impact(constraints, work):
    """Impulses are 0 until the next impact."""
    for i in range(constraints.size):
        if constraints[i].blow != ABSENT:
            work[constraints[i].blow] = 0.0


@kernel
def _reduce(p, n, m, row, column, W, constraints, memory):
    """Rows and columns of the m chosen contacts of ``W_cc - W_ce W_ee^-1 W_ec``, with the equations e. Out: reduced, its pattern."""
    iwork = memory.iwork
    # 1. dense matrix
    whole = view(memory.work, p.whole, n * n)
    for i in range(n * n):
        whole[i] = 0.0
    for i in range(n):
        for k in range(row[i], row[i + 1]):
            whole[i * n + column[k]] = W[k]
    # 2. eliminate equations; redundant ones have no pivot left
    for a in range(n):
        pivot = whole[a * n + a]
        if constraints[iwork[p.active + a]].rebound != ABSENT or not pivot > _REDUNDANT * diagonal(row, column, W, a):
            continue
        for i in range(n):
            factor = whole[i * n + a] / pivot if i != a else 0.0
            for j in range(n if factor != 0.0 else 0):
                whole[i * n + j] -= factor * whole[a * n + j]
    # 3. contacts
    for a in range(m):
        iwork[p.reduced_row + a] = a * m
        for b in range(m):
            iwork[p.reduced_column + a * m + b] = b
            memory.work[p.reduced + a * m + b] = whole[iwork[p.chosen + a] * n + iwork[p.chosen + b]]
    iwork[p.reduced_row + m] = m * m
