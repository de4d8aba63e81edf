"""Nesterov's accelerated projected gradient: for convex neighbours of the contact law, and for the law itself."""

import math

from nsds._jit import kernel, stack
from nsds.solvers.contact import scaled
from nsds.solvers.contact.scaled import (
    CHECKED,
    CONE,
    MAX_ITERATIONS,
    NORMAL,
    PATIENCE,
    TANGENT,
    hat,
    layout,
    look,
    scaled_velocity,
    start,
    step,
)
from nsds.solvers.contact.signature import EQUATION, begin_progress, end
from nsds.status import MAX_ITER

_GROW, _FALL = 1.5, 0.98  # of L where it is too small, and after every iteration
_GROWTHS = 100

work_size = scaled.work_size


@kernel
def accelerated(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q``: an accelerated step for ``min r' W r / 2 + (q + s e_N)' r`` over K, then s follows, and again.

    Steps are those of `advance`, in the coordinates of `nsds.solvers.contact.scaled` (or, with rho, in such that S^2 is that for
    all), and ``s = mu ||u_T|| + mu_r ||u_R||``; momentum is kept while s moves. With s at rest, and W symmetric and positive semidefinite,
    the objective falls like 1/k^2; that s may follow at every step is not proved. A W that is a little unsymmetric does no harm.
    STALLED: 10 000 iterations without progress. Returns the best r that it checked.
    References: Mazhar, Heyn, Negrut, Tasora, ACM Transactions on Graphics 34 (2015) 32 (s = 0); s: Acary, Cadoux, Lemaréchal, Malick,
    ZAMM 91 (2011) 155–175.
    """
    disk, q = problem.disk, problem.q
    v = layout(q.size, disk.size, work)
    small = start(problem, options, r, work)
    rest(CONE, problem, r, u, work)
    follow(disk, q.size, work)
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_ITERATIONS
    status, n_iter, progress = MAX_ITER, 0, stack(4)
    begin_progress(math.inf, PATIENCE, progress)
    while status == MAX_ITER and n_iter < limit:
        residual = advance(CONE, problem, r, u, work)
        follow(disk, q.size, work)
        n_iter += 1
        if not residual > small or n_iter % CHECKED == 0 or n_iter == limit:
            status = look(n_iter, progress, problem, options, r, u, info, v.best)
            small = min(small, 0.5 * residual)
    return end(status, n_iter, problem, options, r, u, info, v.best)


@kernel
def _gradient(shape, problem, S, s, y, r, u, F):
    """``F = S u + s e_N``, without s for a shape with disks, and 0 where the shape is at rest. Out: r, u, F."""
    disk = problem.disk
    scaled_velocity(problem, S, y, r, u, F)
    d = problem.q.size // max(disk.size, 1)
    for c in range(disk.size):
        if disk[c] == EQUATION:
            continue
        if shape == CONE:
            F[c * d] += s[c]
        elif shape == TANGENT:
            F[c * d] = 0.0
        elif shape == NORMAL:
            for i in range(c * d + 1, c * d + d):
                F[i] = 0.0


@kernel
def rest(shape, problem, r, u, work):
    """Begin at y, without momentum."""
    v = layout(problem.q.size, problem.disk.size, work)
    _gradient(shape, problem, v.S, v.s, v.y, r, u, v.F)
    for i in range(problem.q.size):
        v.z[i], v.G[i] = v.y[i], v.F[i]
    v.state[1] = 1.0


@kernel
def follow(disk, n, work):
    """``s <- mu ||u_T|| + mu_r ||u_R||`` of y, in F and G too."""
    v = layout(n, disk.size, work)
    d = n // max(disk.size, 1)
    for c in range(disk.size):
        change = hat(disk, v.mu_y, d, c, v.F) - v.s[c]
        v.s[c] += change
        v.F[c * d] += change
        v.G[c * d] += change


@kernel
def advance(shape, problem, r, u, work):
    """A step for the affine ``F = S (W S y + q) + s e_N``; returns ``L ||y_new - z||``, a velocity that vanishes at a solution.

        y_new = P(z - F(z) / L),    L large enough for ``(y_new - z)' (F(y_new) - F(z)) <= L ||y_new - z||^2`` up to rounding
        z = y_new + beta (y_new - y),    beta = theta (1 - theta) / (theta^2 + theta_new),    theta_new^2 = (1 - theta_new) theta^2

    or ``beta = 0``, ``theta_new = 1`` where ``(z - y_new)' (y_new - y) > 0``. F(z) is combined like z, which spares a product with W.
    In/out: y, F, z, G, state of the layout; out: r, u of y.
    References: Nesterov, Soviet Mathematics Doklady 27 (1983) 372–376; O'Donoghue, Candès, Foundations of Computational Mathematics 15
    (2015) 715–732 (restart).
    """
    q = problem.q
    v = layout(q.size, problem.disk.size, work)
    L, theta = v.state[0], v.state[1]
    moved = uphill = 0.0
    for _ in range(_GROWTHS):
        step(shape, 1.0 / L, problem.disk, v.mu_y, v.radius, v.z, v.G, v.y_new)
        _gradient(shape, problem, v.S, v.s, v.y_new, r, u, v.F_new)
        moved = curvature = uphill = 0.0
        for i in range(q.size):
            change = v.y_new[i] - v.z[i]
            moved += change**2
            curvature += (v.F_new[i] - v.G[i]) * change
            uphill -= change * (v.y_new[i] - v.y[i])
        if not curvature > L * moved + v.state[2] * math.sqrt(moved):
            break
        L *= _GROW
    theta_new = 0.5 * theta * (math.sqrt(theta * theta + 4.0) - theta)
    beta = theta * (1.0 - theta) / (theta * theta + theta_new)
    if uphill > 0.0:
        beta, theta_new = 0.0, 1.0
    for i in range(q.size):
        v.z[i] = v.y_new[i] + beta * (v.y_new[i] - v.y[i])
        v.G[i] = v.F_new[i] + beta * (v.F_new[i] - v.F[i])
        v.y[i], v.F[i] = v.y_new[i], v.F_new[i]
    v.state[0], v.state[1] = _FALL * L, theta_new
    return L * math.sqrt(moved)
