"""Multiple impacts by the law of Liu, Zhao and Brogliato, as an ordinary differential equation of the contacts' deformations.

Contact j has a stiffness ``K_j``, an energetic restitution ``e_j`` and, as all of them, the exponent eta of its force. Positions are
frozen; in a fictitious time s

    u = u- + W P,    dP_j/ds = K_j D_j^eta,    dD_j/ds = -u_j           where u_j < 0, or e_j = 1: the contact is closing
                                              dD_j/ds = -u_j / e_j^2    where u_j > 0 and D_j > 0: it is opening
                                              D_j = 0                   where u_j >= 0 afterwards: it is idle

until all are idle. With the energies ``E_j = K_j D_j^(eta+1) / (eta+1)`` this is the law ``dE_j = -u_j dP_j`` (closing) and
``-u_j dP_j / e_j^2`` (opening), impulses being shared as ``dP_j/dP_i = (K_j/K_i)^(1/(eta+1)) (E_j/E_i)^(eta/(eta+1))``; there is no 0/0 at
the start, and no primary contact. It depends on the ratios of the stiffnesses only, and is homogeneous in u.

Reference: Liu, Zhao, Brogliato, Frictionless multiple impacts in multibody systems, Proceedings of the Royal Society A 464 (2008) 3193
(part I: theory) and 465 (2009) 1 (part II: numerical algorithm and simulation results).
"""

import math
from typing import NamedTuple

import numpy as np
from numba import float64, int64

from nsds._jit import caller, kernel, tiny, view
from nsds.solvers.box.signature import diagonal
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE

# The arguments of `multiple_impact`, for those who call it by its address.
_floats, _integers = float64[::1], int64[::1]
SIGNATURE = int64(
    _integers, _integers, _floats, _floats, float64, _floats, float64, float64, _floats, _floats, _floats, _floats, _integers
)  # fmt: skip
call_multiple_impact = caller(SIGNATURE)

_IDLE, _CLOSING, _OPENING = 0, 1, 2
_NOISE = 1e-12  # of the largest velocity and deformation: below, a contact neither closes nor opens
_LEFT = 1e-11  # what may be left of both at the end
_LEAST_E = 1e-8  # a restitution below this is none
MAX_STEPS = 200000
_FIRST_STEP = 1e-3
_SHORTEST, _LONGEST, _SAFETY = 0.2, 5.0, 0.9  # changes of the step
_MAX_TRIALS = 100  # of a switching point
_INTERIOR = 0.99  # of a step: extrema of velocities beyond are those of its end
_N_VECTORS = 24  # of n numbers, of scratch

# Dormand and Prince's pair of orders 5 and 4: rows of the tableau one after the other, the last one the result; and the error's weights.
_TABLEAU = (
    1 / 5, 3 / 40, 9 / 40, 44 / 45, -56 / 15, 32 / 9, 19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729,
    9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84,
)  # fmt: skip
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


class _Scratch(NamedTuple):
    """State ``(P, D)``, velocities and their slopes at the start and the end of a step, and slopes of the state by stages."""

    y: np.ndarray
    y_new: np.ndarray
    slopes: np.ndarray
    u: np.ndarray
    u_new: np.ndarray
    pull: np.ndarray
    pull_new: np.ndarray


class _Contacts(NamedTuple):
    """Contacts in units of the largest velocity, stiffness and diagonal entry of W."""

    row: np.ndarray
    column: np.ndarray
    W: np.ndarray
    lightness: float  # what makes the largest diagonal entry of W one
    u: np.ndarray  # before the impact
    stiffness: np.ndarray
    e: np.ndarray
    exponent: float


@tiny
def work_size(n):
    """Scratch of n contacts: floats and integers."""
    return _N_VECTORS * n, n


@kernel
def multiple_impact(row, column, W, stiffness, exponent, e, tol, rounding, u, P, info, work, iwork):
    """Impulses P and velocities u after an impact of several contacts at once, from W, the velocities u before and the law's data.

    ====================  ==========================================================================================================
    row, column, W        compressed rows, as those of `nsds.solvers.box.signature`: (n+1,), (nnz,) × 2
    stiffness, e          > 0 and in [0, 1], (n,); only ratios of stiffnesses count
    exponent              eta >= 1 of the force ``K D^eta``: 1 linear, 3/2 Hertz
    tol                   error of a step, relative to the largest velocity
    rounding              of u: approach speeds up to it are none
    u                     in: velocities before, negative where contacts close; out: after (n,)
    P                     out: impulses (n,)
    info                  out (2,): steps, the largest approach speed left, relative to the largest before
    work, iwork           scratch of `work_size`
    ====================  ==========================================================================================================

    Returns CONVERGED, NON_FINITE, or MAX_ITER where the impact does not end, as between walls that lose nothing. A contact whose row has
    no other entry obeys Newton's law, exactly.
    """
    n, before = u.size, 0.0
    info[0], info[1] = 0.0, 0.0
    for j in range(n):
        before = max(before, abs(u[j]))
        P[j] = 0.0
    least = max(rounding, _NOISE * before)
    for j in range(n):
        if u[j] < -least and _is_alone(row, column, W, j):
            P[j] = -(1.0 + e[j]) * u[j] / diagonal(row, column, W, j)
            u[j] *= -e[j]
    speed, stiffest, largest, closing = 0.0, 0.0, 0.0, 0.0
    for j in range(n):
        speed, stiffest, closing = max(speed, abs(u[j])), max(stiffest, stiffness[j]), max(closing, -u[j])
        largest = max(largest, diagonal(row, column, W, j))
    if not math.isfinite(speed + largest):
        return NON_FINITE
    if closing <= least or largest <= 0.0:
        info[1] = closing / before if before > 0.0 else 0.0
        return CONVERGED
    for j in range(n):
        work[j], work[n + j] = u[j] / speed, stiffness[j] / stiffest
    contacts = _Contacts(row, column, W, 1.0 / largest, view(work, 0, n), view(work, n, n), e, exponent)
    status, steps = _march(contacts, tol, _scratch(n, view(work, 2 * n, _N_VECTORS * n - 2 * n)), iwork)
    for j in range(n):
        work[j] = work[2 * n + j] * speed / largest
        P[j] += work[j]
    closing = 0.0
    for j in range(n):
        for k in range(row[j], row[j + 1]):
            u[j] += W[k] * work[column[k]]
        closing = max(closing, -u[j])
    info[0], info[1] = float(steps), closing / before
    return status


@tiny
def _is_alone(row, column, W, j):
    """True where no other contact acts on this one."""
    alone = row[j] < row[j + 1]
    for k in range(row[j], row[j + 1]):
        alone &= (W[k] > 0.0) if column[k] == j else (W[k] == 0.0)
    return alone


@tiny
def _scratch(n, work):
    """Views of the scratch."""
    return _Scratch(
        view(work, 0, 2 * n), view(work, 2 * n, 2 * n), view(work, 4 * n, 14 * n),
        view(work, 18 * n, n), view(work, 19 * n, n), view(work, 20 * n, n), view(work, 21 * n, n),
    )  # fmt: skip


@kernel
def _march(c, tol, s, mode):
    """Integrate the state ``y = (P, D)`` from 0 to the end of the impact. Returns (status, steps)."""
    n, h = c.u.size, _FIRST_STEP
    for j in range(n):
        s.y[j], s.y[n + j] = 0.0, 0.0
        mode[j] = _CLOSING if c.u[j] < -_NOISE else _IDLE
    for steps in range(MAX_STEPS):
        _slope(c, mode, 0, s.y, s.u, s.pull, s.slopes)
        if _is_over(mode, s):
            return CONVERGED, steps
        error = _try_step(c, mode, h, s) / tol
        if not math.isfinite(error):
            return NON_FINITE, steps
        size, h = h, h * min(max(_SAFETY * error**-0.2, _SHORTEST), _LONGEST) if error > 0.0 else h * _LONGEST
        if error <= 1.0:
            _stop_at_switch(c, mode, size, s)
            _switch(c, mode, s)
    return MAX_ITER, MAX_STEPS


@tiny
def _is_over(mode, s):
    """True where all contacts are idle, or velocities are noise and either deformations are, too, or forces balance (a body is wedged)."""
    n, idle, closing, moving, deformed = s.u.size, True, 0.0, 0.0, 0.0
    for j in range(n):
        idle &= mode[j] == _IDLE
        closing, moving, deformed = max(closing, -s.u[j]), max(moving, abs(s.u[j]), abs(s.pull[j])), max(deformed, s.y[n + j])
    return idle or max(closing, deformed) <= _LEFT or moving <= _LEFT


@tiny
def _force(K, D, exponent):
    """``K D^exponent``, continued to D < 0 as an odd function: a step may overshoot the end of a contact before that is located."""
    if exponent == 1.0:
        return K * D
    power = abs(D) * math.sqrt(abs(D)) if exponent == 1.5 else abs(D) ** exponent
    return K * math.copysign(power, D)


@kernel
def _slope(c, mode, stage, y, u, pull, slopes):
    """Velocities u at y, ``d(P, D)/ds`` into a row of slopes, and ``pull = du/ds``."""
    n, first = u.size, 2 * u.size * stage
    for j in range(n):
        change = 0.0
        for k in range(c.row[j], c.row[j + 1]):
            change += c.W[k] * y[c.column[k]]
        u[j] = c.u[j] + c.lightness * change
        force, rate = 0.0, 0.0
        if mode[j] != _IDLE:
            force = _force(c.stiffness[j], y[n + j], c.exponent)
            rate = -u[j] if mode[j] == _CLOSING else -u[j] / c.e[j] ** 2
        slopes[first + j], slopes[first + n + j] = force, rate
    for j in range(n):
        change = 0.0
        for k in range(c.row[j], c.row[j + 1]):
            change += c.W[k] * slopes[first + c.column[k]]
        pull[j] = c.lightness * change


@kernel
def _try_step(c, mode, h, s):
    """One step of size h from y, whose slope is the first stage, to y_new. Returns the estimate of its error."""
    size, entry = s.y.size, 0
    for stage in range(1, 7):
        for i in range(size):
            s.y_new[i] = s.y[i]
        for previous in range(stage):
            weight = h * _TABLEAU[entry]
            entry += 1
            for i in range(size):
                s.y_new[i] += weight * s.slopes[size * previous + i]
        _slope(c, mode, stage, s.y_new, s.u_new, s.pull_new, s.slopes)
    worst = 0.0
    for i in range(size):
        error = 0.0
        for stage in range(7):
            error += h * _ERROR[stage] * s.slopes[size * stage + i]
        worst += 0.0 * error  # NaN shows
        worst = max(worst, abs(error) / max(1.0, abs(s.y_new[i])))
    return worst


@tiny
def _margins(c, mode, j, u, y):
    """How far contact j is from what ends its mode, by the sign of its velocity and by its deformation; negative beyond."""
    D, lossless = y[u.size + j], c.e[j] == 1.0
    if mode[j] == _IDLE:
        return u[j] + _NOISE, math.inf
    if mode[j] == _OPENING:
        return u[j] + _NOISE, D
    return (math.inf, D) if lossless else (_NOISE - u[j], math.inf)


@tiny
def _least_margin(c, mode, s):
    """The least margin of all contacts at the end of the step."""
    least = math.inf
    for j in range(s.u.size):
        by_sign, by_depth = _margins(c, mode, j, s.u_new, s.y_new)
        least = min(least, by_sign, by_depth)
    return least


@kernel
def _stop_at_switch(c, mode, h, s):
    """Shorten a step of size h to where the first contact changes its mode, if one does: then by a velocity or deformation of noise.

    Newton's method for the first of all changes, within a bracket.
    """
    if _least_margin(c, mode, s) >= 0.0:
        h *= _extremum(c, mode, h, s)
    low, high, at = 0.0, h, h
    for trial in range(_MAX_TRIALS):
        least = _least_margin(c, mode, s)
        if (least >= 0.0 and at == high) or -_NOISE <= least < 0.0:
            return
        low, high = (low, at) if least < 0.0 else (at, high)
        at = at + _time_to_switch(c, mode, s)
        if not low < at < high or trial > _MAX_TRIALS // 2:
            at = 0.5 * (low + high)
        _try_step(c, mode, at, s)
    _try_step(c, mode, high, s)


@tiny
def _time_to_switch(c, mode, s):
    """The time, perhaps negative, from the end of the step to the first change of a mode, by the slopes there."""
    n, first, last = s.u.size, math.inf, 12 * s.u.size
    for j in range(n):
        by_sign, by_depth = _margins(c, mode, j, s.u_new, s.y_new)
        sign_rate = s.pull_new[j] if mode[j] != _CLOSING else -s.pull_new[j]
        depth_rate = s.slopes[last + n + j]
        if by_sign < math.inf and sign_rate < 0.0:
            first = min(first, (-0.5 * _NOISE - by_sign) / sign_rate)
        if by_depth < math.inf and depth_rate < 0.0:
            first = min(first, (-0.5 * _NOISE - by_depth) / depth_rate)
    return first


@kernel
def _extremum(c, mode, h, s):
    """The part of the step to the first extremum of a velocity that ends a mode, up to which it is repeated; 1 where there is none.

    By the cubic through velocities and their slopes at both ends.
    """
    part = 1.0
    for j in range(s.u.size):
        by_sign, _ = _margins(c, mode, j, s.u_new, s.y_new)
        sign = 1.0 if mode[j] != _CLOSING else -1.0
        a, b = sign * h * s.pull[j], sign * h * s.pull_new[j]
        if by_sign < math.inf and a < 0.0 < b:
            rise = sign * (s.u_new[j] - s.u[j])
            cubic, square = a + b - 2.0 * rise, 3.0 * rise - 2.0 * a - b
            x = -a / (square + math.sqrt(max(square * square - 3.0 * cubic * a, 0.0)))
            if x < _INTERIOR and sign * s.u[j] + _NOISE + x * (a + x * (square + x * cubic)) < 0.0:
                part = min(part, x)
    if part < 1.0:
        _try_step(c, mode, part * h, s)
    return part


@tiny
def _switch(c, mode, s):
    """Take the state at the end of the step, and change modes."""
    n = s.u.size
    for i in range(2 * n):
        s.y[i] = s.y_new[i]
    for j in range(n):
        by_sign, by_depth = _margins(c, mode, j, s.u_new, s.y_new)
        if by_sign < 0.0 or by_depth < 0.0:
            keeps = mode[j] == _CLOSING and by_sign < 0.0 and c.e[j] >= _LEAST_E and s.y[n + j] > _NOISE
            stays_deformed = mode[j] == _OPENING and by_depth >= 0.0
            if not (keeps or stays_deformed):
                s.y[n + j] = 0.0
            mode[j] = _OPENING if keeps else _CLOSING if s.u_new[j] < -_NOISE else _IDLE
