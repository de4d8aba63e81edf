"""The method "auto" for nonlinear problems: Newton's methods one after the other, projections, then Newton's again from other guesses."""

import math

from nsds._jit import kernel, tiny, view
from nsds.solvers.nonlinear import josephy as josephy_newton
from nsds.solvers.nonlinear import newton, projections
from nsds.solvers.nonlinear.josephy import josephy
from nsds.solvers.nonlinear.newton import newton_fb, newton_natural
from nsds.solvers.nonlinear.projections import extragradient
from nsds.solvers.nonlinear.signature import Options, judge, project
from nsds.status import CONVERGED, MAX_ITER

ORDER = ("newton_fb", "josephy", "newton_natural", "extragradient")
_FB, _JOSEPHY, _NATURAL, _EXTRAGRADIENT = range(4)
_SWEEPS = 3000.0  # of the extragradient method
_GUESSES = 24  # others
_MODULUS, _FACTOR = 2147483647.0, 16807.0  # of Lehmer's random numbers


def work_size(n):
    """Scratch for n unknowns."""
    each = [module.work_size(n) for module in (newton, josephy_newton, projections)]
    return 2 * n + max(floats for floats, _ in each), max(integers for _, integers in each)


@kernel
def auto(p, options, z, w, info, work, iwork):
    """All methods from the first guess, then Newton's from others, until one has solved the problem; else the best that was found."""
    n, least, n_iter, which, seed = z.size, math.inf, 0.0, 0, 1.0
    first, best, rest = view(work, 0, n), view(work, n, n), view(work, 2 * n, work.size - 2 * n)
    for i in range(n):
        first[i] = best[i] = z[i]
    from_first, bounded = len(ORDER), p.cones.size == 0
    for trial in range(from_first + 2 * _GUESSES):
        method = trial if trial < from_first else _FB if trial % 2 == 0 else _JOSEPHY
        if not bounded:
            if method == _JOSEPHY:
                continue
            method = _NATURAL if method == _FB else method
        for i in range(n):
            z[i] = first[i]
        if trial >= from_first:
            seed = _another_guess(seed, trial, z)
        project(p, z)
        status = _run(method, p, options, z, w, info, rest, iwork)
        n_iter += info[0]
        if info[1] < least:
            least, which = info[1], method
            for i in range(n):
                best[i] = z[i]
        if status == CONVERGED:
            break
    for i in range(n):
        z[i] = best[i]
    status = judge(MAX_ITER, 0, p, options, z, w, info, rest)
    info[0], info[2] = n_iter, float(which)
    return status


@kernel
def _run(method, p, options, z, w, info, work, iwork):
    """One method of `ORDER`."""
    if method == _FB:
        return newton_fb(p, options, z, w, info, work, iwork)
    if method == _JOSEPHY:
        return josephy(p, options, z, w, info, work, iwork)
    if method == _NATURAL:
        return newton_natural(p, options, z, w, info, work, iwork)
    sweeps = min(options.max_iter, _SWEEPS) if options.max_iter > 0.0 else _SWEEPS
    return extragradient(p, Options(options.tol, sweeps), z, w, info, work, iwork)


@tiny
def _another_guess(seed, trial, z):
    """Random numbers within ``±10^k`` into z, k from -1 to 2. Returns the next seed."""
    size = 10.0 ** (trial // 2 % 4 - 1)
    for i in range(z.size):
        seed = (seed * _FACTOR) % _MODULUS
        z[i] = size * (2.0 * seed / _MODULUS - 1.0)
    return seed
