"""The explicit Runge–Kutta pair of Dormand and Prince of orders 5 and 4, for any right-hand side.

`step_of` binds its step to a right-hand side. Of the tables of a motion, ``s.flow[0]`` has the columns n, x, x_new, k (STAGES n), poly
(5 n) and atol, absolute tolerances, in the work memory. A step is accepted if its error is at most 1; `factor` gives the length of the
next.

Dormand and Prince, J. Comput. Appl. Math. 6 (1980) 19–26; dense output and step control as in Hairer, Nørsett, Wanner, Solving Ordinary
Differential Equations I, II.4–II.6.
"""

import math

import numpy as np

from nsds._jit import kernel, specialised, tiny
from nsds.status import CONVERGED

STAGES, LAST, DEGREE = 7, 6, 4
C = np.array([0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0])
A = np.array(
    [
        [0, 0, 0, 0, 0, 0],
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
# Weights of order 5 minus those of order 4, and of dense output beyond the cubic through both ends.
ERROR = np.array([71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
DENSE = np.array(
    [
        -12715105075 / 11282082432, 0.0, 87487479700 / 32700410799, -10690763975 / 1880347072, 701980252875 / 199316789632,
        -1453857185 / 822651844, 69997945 / 29380423,
    ]
)  # fmt: skip
_SAFETY, _LEAST, _MOST = 0.9, 0.2, 10.0  # of a step, from one to the next
_STABILISING = 0.04  # exponent of the last error: damps oscillations of the step size
TINY = 1e-300  # least denominator
_FIRST = 0.01  # of the time scale of the state
STABLE = 3.25  # h |lambda| on the boundary of the region of stability


def _take_step(t, h, s, functions, options, memory):
    """A step from work[x:], with x' there in work[k:]: the state in x_new, x' in LAST of k, and dense output.

    Returns (status, error relative to the tolerances, infinite where a stage fails).
    """
    work = memory.work
    f, n, status = s.flow[0], s.flow[0].n, CONVERGED
    for i in range(1, STAGES):
        _stage(i, n, h, f.x, f.k, f.x_new, work)
        at = derivative(time_in_step(t, C[i], h), f.x_new, f.k + i * n, s, functions, options, memory)  # noqa: F821
        status = at if status == CONVERGED else status
    if status != CONVERGED:
        return status, math.inf
    _dense_output(n, h, f.x, f.x_new, f.k, f.poly, work)
    return status, _error_of_step(n, h, f.x, f.x_new, f.k, options.rtol, f.atol, work)


@kernel
def _stage(i, n, h, x, k, out, work):
    """State of stage i, ``x + h sum_j a_ij k_j``, into work[out:]; of the last one the solution of order 5. k_j lies at ``k + j n``."""
    for a in range(n):
        s = 0.0
        for j in range(i):
            s += A[i, j] * work[k + j * n + a]
        work[out + a] = work[x + a] + h * s


@kernel
def _error_of_step(n, h, x, x_new, k, rtol, atol, work):
    """Root mean square of the errors of all components, each relative to ``atol + rtol max(|x|, |x_new|)``; NaN where a stage is.

    atol: offset of the absolute tolerances.
    """
    s = 0.0
    for a in range(n):
        error = 0.0
        for j in range(STAGES):
            error += ERROR[j] * work[k + j * n + a]
        error *= h / max(work[atol + a] + rtol * max(abs(work[x + a]), abs(work[x_new + a])), TINY)
        s += error * error
    return (s / n) ** 0.5


@kernel
def reach(n, h, x, x_new, k, rtol, atol, work):
    """``h |lambda|`` of the fastest motion, by the last two stages, both at the end of the step: |k_6 - k_5| h over |x_6 - x_5|.

    At `STABLE` stability limits the step, not accuracy. Hairer and Wanner, Solving Ordinary Differential Equations II, IV.2.
    """
    rates, distances = 0.0, 0.0
    for a in range(n):
        s = 0.0
        for j in range(LAST - 1):
            s += A[LAST - 1, j] * work[k + j * n + a]
        unit = max(work[atol + a] + rtol * abs(work[x + a]), TINY)
        distances += ((work[x_new + a] - work[x + a] - h * s) / unit) ** 2
        rates += ((work[k + LAST * n + a] - work[k + (LAST - 1) * n + a]) / unit) ** 2
    return h * (rates / distances) ** 0.5 if distances > 0.0 else 0.0


@tiny
def factor(error, last_error):
    """Factor from one step to the next, after an error, accepted (<= 1) or not; last_error: of the last accepted one, 1 at first.

    A step with error NaN becomes five times shorter.
    """
    if not error < np.inf:
        return _LEAST
    s = _SAFETY * max(error, 1e-10) ** (0.75 * _STABILISING - 0.2)
    if error <= 1.0:
        s *= max(last_error, 1e-4) ** _STABILISING
    return min(max(s, _LEAST), _MOST if error <= 1.0 else 1.0)


@kernel
def first_step(n, h_max, x, k, rtol, atol, work):
    """A first step of ``0.01 |x| / |x'|``, in the norm of the tolerances, whose absolute ones lie at atol; k: offset of x'."""
    size, rate = 0.0, 0.0
    for a in range(n):
        scale = max(work[atol + a] + rtol * abs(work[x + a]), TINY)
        size += (work[x + a] / scale) ** 2
        rate += (work[k + a] / scale) ** 2
    if not (size > 0.0 and rate > 0.0 and rate < np.inf):
        return 1e-3 * h_max
    return min(h_max, _FIRST * (size / rate) ** 0.5)


@kernel
def _dense_output(n, h, x, x_new, k, poly, work):
    """Coefficients of the interpolant of order 4 in ``theta = (time - t) / h``: that of theta^j of component a in work[poly + j n + a]."""
    for a in range(n):
        bend = 0.0
        for j in range(STAGES):
            bend += DENSE[j] * work[k + j * n + a]
        bend *= h
        change = work[x_new + a] - work[x + a]
        first = h * work[k + a] - change
        last = change - h * work[k + LAST * n + a] - first
        work[poly + a] = work[x + a]
        work[poly + n + a] = change + first
        work[poly + 2 * n + a] = last + bend - first
        work[poly + 3 * n + a] = -last - 2.0 * bend
        work[poly + 4 * n + a] = bend


def step_of(name, derivative, time_in_step):
    """Kernel of a step of motions with a right-hand side; for the arguments see `nsds.schemes.event_driven.radau5.steps_of`."""
    return kernel(specialised(_take_step, name, derivative=derivative, time_in_step=time_in_step))
