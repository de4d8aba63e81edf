"""Contact problems in the coordinates that first-order methods use, and the steps they share: ``r = S y``, S diagonal and positive.

    F = S uhat,    K_y = {y : ||y_T|| <= mu S_N/S_T y_N, ||y_R|| <= mu_r S_N/S_R y_N},    K_y* ∋ F ⟂ y ∈ K_y

is a contact problem again, of the Delassus matrix S W S, if T has one scale and R too. With ``S^2 = rho`` of `alart_curnier.split_rho`
its diagonal blocks are close to unit matrices: a projection onto K_y is one onto K in the metric of W_cc.

Convex neighbours of the law are solved with the same steps. A *shape* says which: CONE (K_y; what uhat adds to u_N is given), CYLINDER
(``y_N >= 0`` and disks of given radii), NORMAL and TANGENT (the same, where only y_N or only y_T and y_R move).
"""

import math
from typing import NamedTuple

from numpy.typing import NDArray

from nsds._jit import kernel, tiny, view
from nsds.solvers.contact import alart_curnier
from nsds.solvers.contact.signature import (
    EQUATION,
    cone_of,
    diagonal_block,
    has_stalled,
    judge,
    keep_better,
    modify,
    multiply,
    norm,
    project,
)
from nsds.status import MAX_ITER, STALLED

CONE, CYLINDER, NORMAL, TANGENT = range(4)

MAX_ITERATIONS = 100_000
CHECKED = 25  # iterations between two checks of the residual while steps are not small
PATIENCE = 400  # checks without progress after which a method has stalled
_ROUNDING = 1e-14  # relative to S q


class Layout(NamedTuple):
    """The parts of the scratch."""

    S: NDArray  # (n,), like all but the last five
    y: NDArray
    F: NDArray  # at y
    y_new: NDArray
    F_new: NDArray
    z: NDArray  # extrapolated from y
    G: NDArray  # F at z
    best: NDArray  # the best r seen
    mu_y: NDArray  # (2 nc,): friction of K_y
    radius: NDArray  # (2 nc,): of disks
    s: NDArray  # (nc,): S_N times what uhat adds to u_N
    state: NDArray  # (3,): L and theta of `accelerated`, what is rounding in F
    x: NDArray  # (5,): scratch


def work_size(d, row, column):
    """The parts of `Layout`."""
    n_contacts = row.size - 1
    return 8 * d * n_contacts + 5 * n_contacts + 8, 0


@tiny
def layout(n, m, work):
    """The parts of the scratch for n unknowns and m contacts."""
    S, y, F, y_new, F_new = view(work, 0, n), view(work, n, n), view(work, 2 * n, n), view(work, 3 * n, n), view(work, 4 * n, n)
    z, G, best, at = view(work, 5 * n, n), view(work, 6 * n, n), view(work, 7 * n, n), 8 * n
    mu_y, radius, s = view(work, at, 2 * m), view(work, at + 2 * m, 2 * m), view(work, at + 4 * m, m)
    return Layout(S, y, F, y_new, F_new, z, G, best, mu_y, radius, s, view(work, at + 5 * m, 3), view(work, at + 5 * m + 3, 5))


@kernel
def start(problem, options, r, work):
    """Scales, and y of the guess r; returns ``tol ||S q||``.

    options.rho: the square of S for all components, or 0: that of the diagonal blocks.
    """
    disk, q = problem.disk, problem.q
    v = layout(q.size, disk.size, work)
    d = q.size // max(disk.size, 1)
    for c in range(disk.size):
        place = diagonal_block(problem.row, problem.column, c) * d * d
        alart_curnier.split_rho(disk[c], d, problem.W, place, v.x)
        for a in range(d):
            square = v.x[0] if a == 0 else v.x[1] if a <= disk[c] else v.x[2]
            if disk[c] == EQUATION:
                square = 1.0 / problem.W[place + a * (d + 1)]
                square = square if 0.0 < square < math.inf else 1.0
            v.S[c * d + a] = math.sqrt(options.rho if options.rho > 0.0 else square)
        v.mu_y[2 * c] = problem.mu[2 * c] * v.S[c * d] / v.S[c * d + 1]
        v.mu_y[2 * c + 1] = problem.mu[2 * c + 1] * v.S[c * d] / v.S[c * d + d - 1]
        v.s[c] = 0.0
    size = 0.0
    for i in range(q.size):
        v.y[i], v.best[i] = r[i] / v.S[i], r[i]
        size += (v.S[i] * q[i]) ** 2
    v.state[0], v.state[1], v.state[2] = 1.0, 1.0, _ROUNDING * math.sqrt(size)
    return options.tol * math.sqrt(size)


@kernel
def scaled_velocity(problem, S, y, r, u, F):
    """``F = S u`` with ``u = W r + q``, ``r = S y``. Out: r, u, F."""
    for i in range(y.size):
        r[i] = S[i] * y[i]
    multiply(problem.row, problem.column, problem.W, problem.q, r, u)
    for i in range(y.size):
        F[i] = S[i] * u[i]


@tiny
def hat(disk, mu_y, d, c, F):
    """Slip term of contact c, which uhat adds to u_N, times S_N; F: ``S u``. 0 for an equation."""
    return modify(cone_of(c, d, disk, mu_y), c * d, F) if disk[c] != EQUATION else 0.0


@kernel
def radii(disk, mu_y, y, radius):
    """``mu y_N`` and ``mu_r y_N``. Out: radius (2 nc,)."""
    d = y.size // max(disk.size, 1)
    for c in range(disk.size):
        radius[2 * c], radius[2 * c + 1] = mu_y[2 * c] * y[c * d], mu_y[2 * c + 1] * y[c * d]


@tiny
def _onto_disk(radius, first, last, y):
    """Projection of components first..last - 1."""
    size = norm(y, first, last)
    if size > radius:
        for i in range(first, last):
            y[i] *= radius / size


@kernel
def step(shape, t, disk, mu_y, radius, y, F, y_new):
    """``y_new = P(y - t F)``, P the projection onto the shape, whose disks, if it has any, have the given radii."""
    d = y.size // max(disk.size, 1)
    for c in range(disk.size):
        at = c * d
        for i in range(at, at + d):
            y_new[i] = y[i] - t * F[i]
        if disk[c] == EQUATION:
            continue
        if shape == CONE:
            project(cone_of(c, d, disk, mu_y), at, y_new)
        elif shape == NORMAL:
            y_new[at] = max(y_new[at], 0.0)
        else:
            y_new[at] = max(y_new[at], 0.0)
            _onto_disk(radius[2 * c], at + 1, at + 1 + disk[c], y_new)
            _onto_disk(radius[2 * c + 1], at + 1 + disk[c], at + d, y_new)


@kernel
def look(n_iter, progress, problem, options, r, u, info, best):
    """Status of an iteration that goes on while it is MAX_ITER. In/out: best (n,), progress (4,), see `begin_progress`.

    The checks that remain are PATIENCE again where the residual fell by a thousandth, else one less; with none left it has STALLED, or
    where the residual has not halved, see `has_stalled`.
    """
    status = judge(MAX_ITER, n_iter, problem, options, r, u, info)
    progress[3] = PATIENCE if info[1] < 0.999 * progress[2] else progress[3] - 1.0
    progress[2] = keep_better(info[1], progress[2], r, best)
    if status == MAX_ITER and (progress[3] == 0.0 or has_stalled(n_iter, info[1], options.patience, progress)):
        return STALLED
    return status
