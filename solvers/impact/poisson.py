"""Poisson's law for several contacts at once: a linear complementarity problem of compression, then one of expansion.

    compression   0 <= u_C = u- + W P_C  ⟂  P_C >= 0
    expansion     0 <= u+ = u_C + W P_E  ⟂  P_E - e P_C >= 0

Reference: Pfeiffer, Glocker, Multibody Dynamics with Unilateral Contacts, Wiley 1996, chapter 8, without friction.
"""

import math

from nsds._jit import kernel, on_demand, view
from nsds.solvers.box import auto as box_auto
from nsds.solvers.box.signature import N_INFO, SOLVER, Options, call_solver, multiply
from nsds.status import CONVERGED

_VECTORS = 5  # of n numbers, of scratch

address_of_box_solver = on_demand(SOLVER, box_auto.auto)


def work_size(n, row, column):
    """Scratch of n contacts: floats and integers."""
    floats, integers = box_auto.work_size(n, row, column)
    return _VECTORS * n + N_INFO + floats, max(integers, 1)


@kernel
def poisson_impact(row, column, W, e, tol, u, P, info, work, iwork):
    """Impulses P and velocities u after an impact, from W, the velocities u before and the restitution e of each contact.

    row, column, W: compressed rows, as those of `nsds.solvers.box.signature`. In/out: u. Out: P, info (iterations, residual) of both
    problems. Returns the status of the solver, by the method "auto" for rows with bounds.
    """
    n = u.size
    lower, upper, z, w, q = view(work, 0, n), view(work, n, n), view(work, 2 * n, n), view(work, 3 * n, n), view(work, 4 * n, n)
    box_info, scratch = view(work, _VECTORS * n, N_INFO), view(work, _VECTORS * n + N_INFO, work.size - _VECTORS * n - N_INFO)
    options, status = Options(tol, 0.0, 0.0, 0.0, 0.0, 0.0), CONVERGED
    info[0], info[1] = 0.0, 0.0
    for i in range(n):
        lower[i], upper[i], z[i], P[i], q[i] = 0.0, math.inf, 0.0, 0.0, u[i]
    for phase in range(2):
        iwork[0] = 0
        status = call_solver(address_of_box_solver(), (row, column, W, q, lower, upper, options, z, w, box_info, scratch, iwork))
        info[0], info[1] = info[0] + box_info[0], max(info[1], box_info[1])
        for i in range(n):
            P[i] += z[i]
            if phase == 0:
                z[i] *= e[i]
                P[i] += z[i]
        if status != CONVERGED:
            break
        if phase == 0:  # what is given back at least
            multiply(row, column, W, w, z, q)
            for i in range(n):
                z[i] = 0.0
    multiply(row, column, W, u, P, w)
    for i in range(n):
        u[i] = w[i]
    return status
