"""Josephy and Newton's method: each iteration solves the problem with F linearised, a linear complementarity problem with bounds.

``-(F(z) + J(z) (x - z)) ∈ N(x)`` for x, by the method "auto" for rows with bounds; then a step towards x, the whole one unless the natural
map ``z - P(z - F)`` grows. References: Josephy, Report 1965, Mathematics Research Center, Madison 1979; Mathiesen, Mathematical Programming
37 (1987) 1.
"""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import kernel, on_demand, tiny, view
from nsds.solvers.box import auto as box_auto
from nsds.solvers.box.signature import SOLVER, call_solver, problem_of
from nsds.solvers.box.signature import Options as BoxOptions
from nsds.solvers.nonlinear.signature import differentiate, evaluate, judge, judge_size, mid, residual
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, SINGULAR, STALLED

_MAX_ITER = 100
_SHORTEST = 2.0**-20  # step of the line search
_DECREASE = 1e-4
_BOX_TOL = 1e-10
_PROXIMAL = 1e-6  # of the largest entry of J, on the diagonal where the linear problem has no solution; then ten times as much, and so on
_MAX_TRIES = 8

address_of_box_solver = on_demand(SOLVER, box_auto.auto)


class _Scratch(NamedTuple):
    """Jacobian of F, matrix and vectors of the linear problem, trial point and F there, spare room, and the linear solver's."""

    J: np.ndarray
    M: np.ndarray
    q: np.ndarray
    x: np.ndarray
    x_w: np.ndarray
    trial: np.ndarray
    trial_w: np.ndarray
    spare: np.ndarray
    box_info: np.ndarray
    box_work: np.ndarray
    row: np.ndarray
    column: np.ndarray
    box_iwork: np.ndarray


def work_size(n):
    """Scratch for n unknowns."""
    row, column = np.arange(n + 1) * n, np.tile(np.arange(n), n)
    floats, integers = box_auto.work_size(n, row, column)
    return 2 * n * n + 5 * n + judge_size(n) + 3 + floats, n + 1 + n * n + max(integers, 1)


@tiny
def _scratch(n, work, iwork):
    square, vectors, box, rest = n * n, 2 * n * n, 2 * n * n + 5 * n, 2 * n * n + 5 * n + judge_size(n)
    return _Scratch(
        view(work, 0, square), view(work, square, square), view(work, vectors, n), view(work, vectors + n, n),
        view(work, vectors + 2 * n, n), view(work, vectors + 3 * n, n), view(work, vectors + 4 * n, n), view(work, box, judge_size(n)),
        view(work, rest, 3), view(work, rest + 3, work.size - rest - 3),
        view(iwork, 0, n + 1), view(iwork, n + 1, square), view(iwork, n + 1 + square, iwork.size - n - 1 - square),
    )  # fmt: skip


@kernel
def josephy(p, options, z, w, info, work, iwork):
    """See the module; bounds, and inequalities as bounds of their multipliers."""
    n, s, status = z.size, _scratch(z.size, work, iwork), MAX_ITER
    max_iter = int(options.max_iter) if options.max_iter > 0.0 else _MAX_ITER
    for i in range(n + 1):
        s.row[i] = i * n
    for i in range(n * n):
        s.column[i] = i % n
    for i in range(n):
        z[i] = min(max(z[i], p.lower[i]), p.upper[i])
    if not evaluate(p, z, w):
        return judge(NON_FINITE, 0, p, options, z, w, info, s.spare)
    n_iter = 0
    for n_iter in range(max_iter + 1):
        differentiate(p, z, s.J, s.spare)
        if residual(p, z, w, s.J, s.spare) <= options.tol or n_iter == max_iter:
            break
        if not _solve_linearised(p, z, w, s):
            status = SINGULAR
            break
        if not _search(p, z, w, s):
            status = STALLED
            break
    return judge(status, n_iter, p, options, z, w, info, s.spare)


@kernel
def _solve_linearised(p, z, F, s):
    """Solution x of the linearised problem; where it has none, of one with a proximal term. False without any."""
    n, largest, proximal = z.size, 0.0, 0.0
    for i in range(n * n):
        largest = max(largest, abs(s.J[i]))
    for _ in range(_MAX_TRIES):
        for i in range(n):
            s.q[i], s.x[i] = F[i], z[i]
            for j in range(n):
                s.M[i * n + j] = s.J[i * n + j] + (proximal if i == j else 0.0)
                s.q[i] -= s.M[i * n + j] * z[j]
        s.box_iwork[0] = 0
        options = BoxOptions(_BOX_TOL, 0.0, 0.0, 0.0, 0.0, 0.0)
        linear = problem_of((s.row, s.column, s.M, s.q, p.lower, p.upper))
        arguments = linear, options, s.x, s.x_w, s.box_info, s.box_work, s.box_iwork
        if call_solver(address_of_box_solver(), arguments) == CONVERGED:
            return True
        proximal = max(_PROXIMAL * largest, 10.0 * proximal)
    return False


@tiny
def _merit(p, z, F):
    """Norm of the natural map."""
    s = 0.0
    for i in range(z.size):
        s += mid(p.lower[i], p.upper[i], z[i], F[i]) ** 2
    return math.sqrt(s)


@kernel
def _search(p, z, w, s):
    """Step from z towards x, halved until the natural map falls; False where it never does. In/out: z, w."""
    merit, t = _merit(p, z, w), 1.0
    while t >= _SHORTEST:
        for i in range(z.size):
            s.trial[i] = z[i] + t * (s.x[i] - z[i])
        if evaluate(p, s.trial, s.trial_w) and _merit(p, s.trial, s.trial_w) <= (1.0 - _DECREASE * t) * merit:
            for i in range(z.size):
                z[i], w[i] = s.trial[i], s.trial_w[i]
            return True
        t *= 0.5
    return False
