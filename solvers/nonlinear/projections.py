"""Projection methods for monotone problems: no Jacobian is solved with, and the only operation on the set is the projection.

Both predict ``y = P(z - rho F(z))`` with a step rho such that ``rho ||F(z) - F(y)|| <= 0.9 ||z - y||``. References: Khobotov, USSR
Computational Mathematics and Mathematical Physics 27 (1987) 120, and Marcotte, Information Systems and Operational Research 29 (1991) 258
(extragradient with a step that adapts); He, Applied Mathematics and Optimization 35 (1997) 69 (projection and contraction).
"""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import kernel, tiny, view
from nsds.solvers.nonlinear.signature import evaluate, judge, judge_size, project
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, STALLED

_MAX_ITER = 20_000
_LIPSCHITZ = 0.9  # the step times the change of F, of the change of z
_GROWTH, _SHRINK = 1.3, 0.5
_SHORTEST = 1e-14
_RELAXED = 1.8  # of a step that would be best
_SPACING = 10  # iterations between checks of the residual


class _Scratch(NamedTuple):
    """Predicted point and F there, what is judged and F there, and spare room."""

    middle: np.ndarray
    F: np.ndarray
    end: np.ndarray
    end_w: np.ndarray
    spare: np.ndarray


def work_size(n):
    """Scratch for n unknowns."""
    return 4 * n + judge_size(n), 0


@tiny
def _scratch(n, work):
    return _Scratch(view(work, 0, n), view(work, n, n), view(work, 2 * n, n), view(work, 3 * n, n), view(work, 4 * n, judge_size(n)))


@kernel
def extragradient(p, options, z, w, info, work, iwork):
    """Correct by ``z <- P(z - rho F(y))``."""
    return _iterate(False, p, options, z, w, info, work)


@kernel
def contraction(p, options, z, w, info, work, iwork):
    """Correct by ``z <- z - 1.8 (r^T d / ||d||^2) d``, ``r = z - y``, ``d = r - rho (F(z) - F(y))``."""
    return _iterate(True, p, options, z, w, info, work)


@kernel
def _iterate(contracts, p, options, z, w, info, work):
    """See the module; contracts: which correction."""
    n, s, rho = z.size, _scratch(z.size, work), 1.0
    max_iter = int(options.max_iter) if options.max_iter > 0.0 else _MAX_ITER
    project(p, z)
    for n_iter in range(max_iter):
        if not evaluate(p, z, w):
            return judge(NON_FINITE, n_iter, p, options, z, w, info, s.spare)
        rho, ratio = _predict(p, rho, z, w, s)
        if ratio > _LIPSCHITZ:
            return judge(STALLED, n_iter, p, options, z, w, info, s.spare)
        if n_iter % _SPACING == _SPACING - 1 or _distance(z, s.middle) == 0.0:
            for i in range(n):
                s.end[i] = s.middle[i]
            if judge(MAX_ITER, n_iter + 1, p, options, s.end, s.end_w, info, s.spare) == CONVERGED:
                for i in range(n):
                    z[i], w[i] = s.end[i], s.end_w[i]
                return CONVERGED
        if contracts:
            _contract(rho, z, w, s)
        else:
            for i in range(n):
                z[i] -= rho * s.F[i]
            project(p, z)
        rho *= _GROWTH if ratio < 0.5 * _LIPSCHITZ else 1.0
    return judge(MAX_ITER, max_iter, p, options, z, w, info, s.spare)


@kernel
def _predict(p, rho, z, w, s):
    """(rho, ``rho ||F(z) - F(y)|| / ||z - y||``), rho shortened until that is small enough, or nothing is left of it. Out: y, F(y)."""
    ratio = math.inf
    while rho >= _SHORTEST and ratio > _LIPSCHITZ:
        for i in range(z.size):
            s.middle[i] = z[i] - rho * w[i]
        project(p, s.middle)
        way = _distance(z, s.middle)
        if evaluate(p, s.middle, s.F):
            ratio = rho * _distance(w, s.F) / way if way > 0.0 else 0.0
        if ratio > _LIPSCHITZ:
            rho *= _SHRINK
    return rho, ratio


@tiny
def _contract(rho, z, w, s):
    """The correction of `contraction`."""
    along, size = 0.0, 0.0
    for i in range(z.size):
        r = z[i] - s.middle[i]
        d = r - rho * (w[i] - s.F[i])
        along += r * d
        size += d * d
    for i in range(z.size):
        if size > 0.0:
            z[i] -= _RELAXED * along / size * (z[i] - s.middle[i] - rho * (w[i] - s.F[i]))


@tiny
def _distance(a, b):
    s = 0.0
    for i in range(a.size):
        s += (a[i] - b[i]) ** 2
    return math.sqrt(s)
