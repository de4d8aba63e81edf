"""A predictor-corrector interior point method on products of Lorentz cones, for the law with ``mu ||u_T||`` and not its convex relative.

With ``x = (mu r_N, r_T)`` and ``y`` in the Lorentz cone, ``K* ∋ uhat ⟂ r ∈ K`` is ``x ⟂ y`` and ``u = (mu (y_N - ||y_T||), y_T)``. Rolling
friction has two such cones that share r_N, as K is the intersection of theirs, and K* the sum: ``u_N`` is then the sum of both
``mu (y_N - ||y_T||)``. Without friction the cone is a half line, and r_T is held at 0; an equation has no cone.

A cone's vectors lie in `_PLACES` places of X, Y and their changes, those of contact c at ``2 c`` and ``2 c + 1``.
"""

import math
from typing import NamedTuple

from numpy.typing import NDArray

from nsds._jit import inlined, kernel, stack, tiny, view
from nsds.solvers.contact import alart_curnier, block_lu
from nsds.solvers.contact.signature import (
    EQUATION,
    LARGEST_BLOCK,
    cone_of,
    diagonal_block,
    has_stalled,
    judge,
    keep_better,
    mean_diagonal,
    norm,
)
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, SINGULAR, STALLED, UNSUITED

_LIMIT = 100
_PLACES = LARGEST_BLOCK
_TO_THE_BORDER = 0.9
_LEAST_TARGET = 0.1  # relative to the gap: the path of this law bends, and points too near the border lose it
_SMALLEST_STEP = 1e-8
_SMALLEST_GAP = 2e-16  # y_N - ||y_T|| relative to y_N: less is rounding
_REGULARISED = 1e-10  # added to the diagonal, relative to its mean: for equations and contacts that say the same twice
_CLOSE = 1e-2  # res_q from which Newton's steps are tried
_FALLEN = 0.5  # factor by which res_q must have fallen for another try, and by which each of Newton's steps must make it fall
_NEWTON_STEPS = 5


@kernel
def room(d, n, n_upper):
    """Floats of scratch for n contacts and n_upper blocks above the diagonal in the factors."""
    return 5 + 2 * _PLACES + n * (3 + 3 * d + 2 * d * d + 10 * _PLACES) + block_lu.float_room(d, n, n_upper)


def work_size(d, row, column):
    """Scratch of the factors."""
    return block_lu.work_size(room, d, row, column)


class Scratch(NamedTuple):
    """The parts of the scratch."""

    rho: NDArray  # (5,)
    eta: NDArray  # (n,): what regularises the diagonal blocks
    dr: NDArray
    best: NDArray  # the best r seen
    F: NDArray  # with two cones' places more
    A: NDArray
    B: NDArray
    Y: NDArray  # y of all cones; like X, w, dx, dy
    X: NDArray
    w: NDArray
    dx: NDArray
    dy: NDArray
    scales: NDArray  # (2 n,): eta of Nesterov and Todd
    factors: NDArray


@tiny
def _partition(n, d, work):
    """The parts of the scratch for n contacts."""
    size, m, cones, at = n * d, n * d * d, 2 * n * _PLACES, 5 + n
    A = at + 3 * size + 2 * _PLACES
    Y = A + 2 * m
    factors = room(d, n, 0) - block_lu.float_room(d, n, 0)
    return Scratch(
        view(work, 0, 5),
        view(work, 5, n),
        view(work, at, size),
        view(work, at + size, size),
        view(work, at + 2 * size, size + 2 * _PLACES),
        view(work, A, m),
        view(work, A + m, m),
        view(work, Y, cones),
        view(work, Y + cones, cones),
        view(work, Y + 2 * cones, cones),
        view(work, Y + 3 * cones, cones),
        view(work, Y + 4 * cones, cones),
        view(work, Y + 5 * cones, 2 * n),
        view(work, factors, work.size - factors),
    )


@tiny
def _cone(disk, mu, mu_r, d, j):
    """(first, size, m) of a contact's cone j: ``x = (m r_N, r[first], ...)`` has size components; 0: there is none."""
    if disk == EQUATION:
        return 1, 0, 0.0
    first, last, m = (1, 1 + disk, mu) if j == 0 else (1 + disk, d, mu_r)
    if m > 0.0 and last > first:
        return first, last - first + 1, m
    no_other = not (mu_r > 0.0 and d > 1 + disk)
    return first, 1 if j == 0 and no_other else 0, 1.0


@tiny
def _determinant(x, at, size):
    """``x_N^2 - ||x_T||^2`` of a vector in the cone."""
    x_t = norm(x, at + 1, at + size)
    return max(x[at] - x_t, _SMALLEST_GAP * x[at]) * (x[at] + x_t)


@tiny
def _scale(sign, factor, size, w, at, z):
    """``z <- factor S z`` where S is the root of the quadratic representation of w (sign 1) or of its inverse (-1)."""
    s = 0.0
    for i in range(1, size):
        s += w[at + i] * z[i]
    along = sign * z[0] + s / (1.0 + w[at])
    z[0] = factor * (w[at] * z[0] + sign * s)
    for i in range(1, size):
        z[i] = factor * (z[i] + w[at + i] * along)


@tiny
def _scaling(at, size, X, Y, w):
    """Nesterov and Todd's point w, ``det w = 1``, with ``Q(w) y = x / eta^2``; returns eta."""
    det_x, det_y = _determinant(X, at, size), _determinant(Y, at, size)
    a, b, product = 1.0 / math.sqrt(det_x), 1.0 / math.sqrt(det_y), 0.0
    for i in range(at, at + size):
        product += a * X[i] * b * Y[i]
    f = 1.0 / math.sqrt(2.0 * (1.0 + product))
    w[at] = f * (a * X[at] + b * Y[at])
    for i in range(at + 1, at + size):
        w[i] = f * (a * X[i] - b * Y[i])
    return (det_x / det_y) ** 0.25


@tiny
def _curvature(i, j, eta, w, at):
    """Entry of ``H = Q(w)^-1 / eta^2``, which takes x to y."""
    sign = 1.0 if (i == 0) == (j == 0) else -1.0
    diagonal = 0.0 if i != j else 1.0 if i == 0 else -1.0
    return (2.0 * sign * w[at + i] * w[at + j] - diagonal) / eta**2


@tiny
def _velocity(m, size, along, y, at, z):
    """Change of u_N with z, a change of y: ``m (z_N - n · z_T)`` with ``n = y_T / ||y_T||``."""
    if size == 1:
        return z[along]
    y_t, s = norm(y, at + 1, at + size), 0.0
    for i in range(1, size):
        s += y[at + i] * z[along + i]
    return m * (z[along] - (s / y_t if y_t > 0.0 else 0.0))


@inlined
def _start(problem, d, r, Y, eta):
    """r and y on the axes of the cones: y of the size of q, r_N of that size divided by W_NN."""
    W = problem.W
    size = 0.0
    for i in range(problem.q.size):
        size = max(size, abs(problem.q[i]))
        r[i] = 0.0
    size = size if size > 0.0 else 1.0
    for c in range(problem.disk.size):
        k = diagonal_block(problem.row, problem.column, c)
        eta[c] = _REGULARISED * mean_diagonal(d, k, W)
        if problem.disk[c] != EQUATION:
            r[c * d] = size / W[k * d * d] if W[k * d * d] > 0.0 else 1.0
        for i in range(2 * c * _PLACES, 2 * (c + 1) * _PLACES):
            Y[i] = 0.0
        Y[2 * c * _PLACES] = Y[(2 * c + 1) * _PLACES] = size


@kernel
def _newton_matrix(problem, d, r, u, v):
    """x, w and eta of all cones; F, and the diagonal blocks B of ``∂F/∂r = A W + B`` once dy is eliminated by ``dy = g - H dx``."""
    disk, mu = problem.disk, problem.mu
    X, Y, F, A, B = v.X, v.Y, v.F, v.A, v.B
    column = view(F, F.size - _PLACES, _PLACES)
    for c in range(disk.size):
        for i in range(d * d):
            A[c * d * d + i] = B[c * d * d + i] = 0.0
        for i in range(d):
            held = disk[c] != EQUATION and i > 0 and not (mu[2 * c] if i <= disk[c] else mu[2 * c + 1]) > 0.0
            A[c * d * d + i * (d + 1)], B[c * d * d + i * (d + 1)] = (0.0, 1.0) if held else (1.0, 0.0)
            F[c * d + i] = 0.0 if held else u[c * d + i]
        for j in range(2):
            first, size, m = _cone(disk[c], mu[2 * c], mu[2 * c + 1], d, j)
            at = (2 * c + j) * _PLACES
            if size == 0:
                continue
            X[at] = m * r[c * d]
            for i in range(1, size):
                X[at + i] = r[c * d + first + i - 1]
                F[c * d + first + i - 1] -= Y[at + i]
            F[c * d] -= Y[at] if size == 1 else m * (Y[at] - norm(Y, at + 1, at + size))
            v.scales[2 * c + j] = _scaling(at, size, X, Y, v.w)
            for b in range(size):
                for i in range(size):
                    column[i] = _curvature(i, b, v.scales[2 * c + j], v.w, at) * (m if b == 0 else 1.0)
                to = c * d * d + (0 if b == 0 else first + b - 1)
                B[to] += _velocity(m, size, 0, Y, at, column)
                for i in range(1, size):
                    B[to + (first + i - 1) * d] += column[i]


@kernel
def _direction(target, problem, d, n_upper, symbols, v):
    """Changes that aim at ``x ∘ y = target e``, corrected by the dx and dy of the affine direction (0 for that one). Out: dx, dy, dr."""
    disk, mu, dX, dY, dr = problem.disk, problem.mu, v.dx, v.dy, v.dr
    z = view(v.F, v.F.size - 2 * _PLACES, _PLACES)
    for c in range(disk.size):
        for i in range(c * d, (c + 1) * d):
            dr[i] = -v.F[i]
        for j in range(2):
            first, size, m = _cone(disk[c], mu[2 * c], mu[2 * c + 1], d, j)
            at = (2 * c + j) * _PLACES
            if size > 0:
                _lift(target, size, at, v.scales[2 * c + j], v, z)
                for i in range(size):
                    dY[at + i] = z[i] - v.Y[at + i]
                dr[c * d] += _velocity(m, size, at, v.Y, at, dY)
                for i in range(1, size):
                    dr[c * d + first + i - 1] += dY[at + i]
    block_lu.substitute(d, problem.row, n_upper, symbols, v.factors, dr)
    for c in range(disk.size):
        for j in range(2):
            first, size, m = _cone(disk[c], mu[2 * c], mu[2 * c + 1], d, j)
            at = (2 * c + j) * _PLACES
            for i in range(size):
                dX[at + i] = m * dr[c * d] if i == 0 else dr[c * d + first + i - 1]
            for i in range(size):
                for b in range(size):
                    dY[at + i] -= _curvature(i, b, v.scales[2 * c + j], v.w, at) * dX[at + b]


@tiny
def _lift(target, size, at, eta, v, z):
    """``z = S (λ^-1 ∘ (target e - (S dx) ∘ (S^-1 dy)))`` with ``λ = S x = S^-1 y``. Out: z. Of the cone dx and dy are destroyed."""
    lam, w = view(v.F, v.F.size - _PLACES, _PLACES), v.w
    dx, dy = view(v.dx, at, size), view(v.dy, at, size)
    for i in range(size):
        lam[i] = v.X[at + i]
    _scale(-1.0, 1.0 / eta, size, w, at, lam)
    _scale(-1.0, 1.0 / eta, size, w, at, dx)
    _scale(1.0, eta, size, w, at, dy)
    z[0] = target
    for i in range(size):
        z[0] -= dx[i] * dy[i]
    product = lam[0] * z[0]
    for i in range(1, size):
        z[i] = -dx[0] * dy[i] - dy[0] * dx[i]
        product -= lam[i] * z[i]
    z[0] = product / _determinant(lam, 0, size)
    for i in range(1, size):
        z[i] = (z[i] - z[0] * lam[i]) / lam[0]
    _scale(-1.0, 1.0 / eta, size, w, at, z)


@tiny
def _to_the_border(at, size, x, dx):
    """Largest t with ``x + t dx`` in the cone: the first zero of ``det(x + t dx) = a t^2 + 2 b t + c``, double at the tip."""
    dx_t, b = norm(dx, at + 1, at + size), x[at] * dx[at]
    for i in range(at + 1, at + size):
        b -= x[i] * dx[i]
    a, c = (dx[at] - dx_t) * (dx[at] + dx_t), _determinant(x, at, size)
    below = -b + math.sqrt(max(b * b - a * c, 0.0))
    return c / below if below > 0.0 else math.inf


@kernel
def _largest_step(problem, d, v):
    """Up to where all x and y stay in their cones; at most 1 / 0.9."""
    disk, mu, step = problem.disk, problem.mu, 1.0 / _TO_THE_BORDER
    for c in range(disk.size):
        for j in range(2):
            _, size, _ = _cone(disk[c], mu[2 * c], mu[2 * c + 1], d, j)
            at = (2 * c + j) * _PLACES
            if size > 0:
                step = min(step, _to_the_border(at, size, v.X, v.dx), _to_the_border(at, size, v.Y, v.dy))
    return step


@kernel
def _gap(step, problem, d, v):
    """Mean of ``x · y`` over the cones after a step."""
    disk, mu, total, count = problem.disk, problem.mu, 0.0, 0
    for c in range(disk.size):
        for j in range(2):
            _, size, _ = _cone(disk[c], mu[2 * c], mu[2 * c + 1], d, j)
            count += size > 0
            for i in range((2 * c + j) * _PLACES, (2 * c + j) * _PLACES + size):
                total += (v.X[i] + step * v.dx[i]) * (v.Y[i] + step * v.dy[i])
    return total / count if count > 0 else 0.0


@kernel
def _finish(n_iter, problem, options, r, u, info, v, n_upper, symbols):
    """Newton's steps on Alart and Curnier's equations as long as each halves res_q: CONVERGED, or MAX_ITER and r as before."""
    disk, q = problem.disk, problem.q
    d, before = q.size // disk.size, v.dr
    step = view(v.F, 0, q.size)
    for i in range(q.size):
        before[i] = r[i]
    for _ in range(_NEWTON_STEPS):
        for c in range(disk.size):
            at, m = c * d, d * d
            alart_curnier.split_rho(disk[c], d, problem.W, diagonal_block(problem.row, problem.column, c) * m, v.rho)
            F_c, A_c, B_c = view(v.F, at, d), view(v.A, at * d, m), view(v.B, at * d, m)
            cone, r_c, u_c = cone_of(c, d, disk, problem.mu), view(r, at, d), view(u, at, d)
            alart_curnier.evaluate(alart_curnier.ALART_CURNIER, cone, v.rho, r_c, u_c, F_c, A_c, B_c)
        if not block_lu.factorise(d, problem, v.eta, v.A, v.B, n_upper, symbols, v.factors):
            break
        block_lu.substitute(d, problem.row, n_upper, symbols, v.factors, step)
        for i in range(q.size):
            r[i] -= step[i]
        last = info[1]
        status = judge(MAX_ITER, n_iter, problem, options, r, u, info)
        if status == CONVERGED:
            return CONVERGED
        if not info[1] <= _FALLEN * last:
            break
    for i in range(q.size):
        r[i] = before[i]
    return judge(MAX_ITER, n_iter, problem, options, r, u, info)


@kernel
def _follow(problem, d, r, u, v, n_upper, symbols):
    """One step along the path. Returns MAX_ITER, or why there is none. Out: r, v.Y."""
    Y, dX, dY = v.Y, v.dx, v.dy
    _newton_matrix(problem, d, r, u, v)
    if not block_lu.factorise(d, problem, v.eta, v.A, v.B, n_upper, symbols, v.factors):
        return SINGULAR
    for i in range(Y.size):
        dX[i] = dY[i] = 0.0
    _direction(0.0, problem, d, n_upper, symbols, v)
    gap = _gap(0.0, problem, d, v)
    ahead = _gap(min(1.0, _largest_step(problem, d, v)), problem, d, v)
    target = gap * max(_LEAST_TARGET, min(ahead / gap, 1.0) ** 2) if gap > 0.0 else 0.0
    _direction(target, problem, d, n_upper, symbols, v)
    step = min(1.0, _TO_THE_BORDER * _largest_step(problem, d, v))
    if not step > _SMALLEST_STEP:
        return STALLED
    for i in range(r.size):
        r[i] += step * v.dr[i]
    for i in range(Y.size):
        Y[i] += step * dY[i]
    return MAX_ITER


@kernel
def interior_point(problem, options, r, u, info, work, iwork):
    """Contact problem as ``x ∘ y = t e`` with x and y inside their cones, t to 0: the path is followed by Newton's method for u = W r + q.

        W dr + q_u = Q dy,   dy = g - H dx,   dx = P dr,    Q: u by y, true law with ``mu ||y_T||`` differentiated;  H: Nesterov–Todd

    Each iteration factorises ``W + Q H P`` once, for Mehrotra's predictor and corrector. The guess is not used. Close to a solution
    Newton's method for the equations of `alart_curnier` is tried from the iterate: it ends in a step or two where the path loses half
    of the digits, at contacts with both x and y on the border. STALLED: steps vanish. SINGULAR: a pivot does. UNSUITED: more contacts
    than `block_lu.LARGEST`.
    Reference: Acary, Armand, Nguyen and Shpakovych, Second-order cone programming for frictional contact mechanics using interior point
    algorithm, Optimization Methods and Software (2024); Vandenberghe, The CVXOPT linear and quadratic cone program solvers (2010).
    """
    n, size = problem.disk.size, problem.q.size
    d = size // max(n, 1)
    n_upper = block_lu.pattern(block_lu.UNLIMITED, problem.row, problem.column, iwork)
    if n_upper < 0 or room(d, n, n_upper) > work.size:
        judge(UNSUITED, 0, problem, options, r, u, info)
        return UNSUITED
    v = _partition(n, d, work)
    _start(problem, d, r, v.Y, v.eta)
    limit = int(options.max_iter) if options.max_iter > 0 else _LIMIT
    least, close, halved = math.inf, _CLOSE, stack(2)
    halved[0], halved[1] = math.inf, 0.0
    for n_iter in range(limit + 1):
        status = judge(MAX_ITER, n_iter, problem, options, r, u, info)
        least = keep_better(info[1], least, r, v.best)
        if status == MAX_ITER and info[1] <= close:
            close = _FALLEN * info[1]
            status = _finish(n_iter, problem, options, r, u, info, v, n_upper, iwork)
        if status == CONVERGED:
            return CONVERGED
        if n_iter == limit or status == NON_FINITE:
            break
        if has_stalled(n_iter, info[1], options.patience, halved):
            status = STALLED
            break
        status = _follow(problem, d, r, u, v, n_upper, iwork)
        if status != MAX_ITER:
            break
    for i in range(size):
        r[i] = v.best[i] if least < math.inf else r[i]
    return judge(status, n_iter, problem, options, r, u, info)
