"""Multiple impacts by the law of Liu, Zhao and Brogliato, as an ordinary differential equation of the contacts' deformations.

Contact j has a stiffness ``K_j``, an energetic restitution ``e_j`` and, as all of them, the exponent eta of its force. Positions are
frozen; in a fictitious time s

    u = u- + W P,    dP_j/ds = K_j D_j^eta,    dD_j/ds = -u_j           where u_j < 0, or e_j = 1: the contact is closing
                                              dD_j/ds = -u_j / e_j^2    where u_j > 0 and D_j > 0: it is opening
                                              D_j = 0                   where u_j >= 0 afterwards: it is idle

until all are idle. Tangents of a contact have ``dP_T/ds = -mu F_j u_T / ||u_T||`` where it slips; where it sticks ``u_T = 0`` gives
``dP_T/ds``, which is at most ``mu F_j``. Slip ends where it would turn back: then the contact sticks, or slips the other way where that
takes more friction than it has.

With the energies ``E_j = K_j D_j^(eta+1) / (eta+1)`` this is the law ``dE_j = -u_j dP_j`` (closing) and ``-u_j dP_j / e_j^2`` (opening),
impulses being shared as ``dP_j/dP_i = (K_j/K_i)^(1/(eta+1)) (E_j/E_i)^(eta/(eta+1))``; there is no 0/0 at the start, and no primary
contact. It depends on the ratios of the stiffnesses only, and is homogeneous in u.

Reference: Liu, Zhao, Brogliato, Frictionless multiple impacts in multibody systems, Proceedings of the Royal Society A 464 (2008) 3193
(part I: theory) and 465 (2009) 1 (part II: numerical algorithm and simulation results); with friction Zhao, Liu, Brogliato, Planar dynamics
of a rigid body system with frictional impacts, 465 (2009) 2267.
"""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import kernel, tiny, view
from nsds.maths.dense import cholesky, cholesky_solve
from nsds.solvers.box.signature import diagonal
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE

_IDLE, _CLOSING, _OPENING, _STICKING, _SLIPPING = range(5)  # the last two of tangents, told of the first one
_NOISE = 1e-12  # of the largest velocity and deformation: below, a contact neither closes nor opens
_LEFT = 1e-11  # what may be left of both at the end
_LEAST_E = 1e-8  # a restitution below this is none
MAX_STEPS = 200000
ENOUGH = -1.0  # a result that has not come to its end is none, see `nsds.solvers.impact.LAWS`
_FIRST_STEP = 1e-3
_SHORTEST, _LONGEST, _SAFETY = 0.2, 5.0, 0.9  # changes of the step
_MAX_TRIALS = 100  # of a switching point
_INTERIOR = 0.99  # of a step: extrema of velocities beyond are those of its end
_CREEP = 1e-7  # of the largest velocity: slip in space that is slower keeps the direction in which it began, or has come to its end
_LATER = 1e-6  # time at which sticking contacts are tested: at once nothing may press yet
_EXCESS = 1e-9  # of friction: more than that is too much
_BISECTIONS = 50
_DEPENDENT = 1e-12  # of a diagonal entry: what is left of it where other tangents hold this one
_N_VECTORS = 26  # of n numbers, of scratch

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
    heading: np.ndarray  # of slip, of its tangents
    force: np.ndarray  # of what sticks, in the order of the list
    factor: np.ndarray  # of its rows of W, by Cholesky
    sticking: np.ndarray  # how many tangents stick, then which


class _Contacts(NamedTuple):
    """Contacts in units of the largest velocity, stiffness and diagonal entry of W."""

    row: np.ndarray
    column: np.ndarray
    W: np.ndarray
    component: np.ndarray
    mu: np.ndarray
    lightness: float  # what makes the largest diagonal entry of W one
    u: np.ndarray  # before the impact
    stiffness: np.ndarray
    e: np.ndarray
    exponent: float


def work_size(row, column, component):
    """Scratch of rows that are these components of contacts: floats and integers."""
    n, tangents = component.size, int((component > 0).sum())
    return _N_VECTORS * n + tangents**2, 2 * n + 1


@kernel
def multiple_impact(impact, tol, rounding, u, P, info, work, iwork):
    """Impulses P and velocities u after an impact of several contacts at once; arguments: `nsds.solvers.impact.signature`.

    info: steps, and the largest approach speed that remains, relative to the largest before. Returns CONVERGED, NON_FINITE, or MAX_ITER
    where the impact does not end, as between walls that lose nothing. A contact without friction whose row has no other entry obeys
    Newton's law, exactly.
    """
    row, column, W, component = impact.row, impact.column, impact.W, impact.component
    n, before = u.size, 0.0
    info[0], info[1] = 0.0, 0.0
    for j in range(n):
        before = max(before, abs(u[j]))
        P[j] = 0.0
    least = max(rounding, _NOISE * before)
    for j in range(n):
        if component[j] == 0 and u[j] < -least and not _rubs(impact, j) and _is_alone(impact, j):
            P[j] = -(1.0 + impact.e[j]) * u[j] / diagonal(row, column, W, j)
            u[j] *= -impact.e[j]
    speed, stiffest, largest, closing = 0.0, 0.0, 0.0, 0.0
    for j in range(n):
        speed = max(speed, abs(u[j]))
        if component[j] == 0:
            stiffest, closing = max(stiffest, impact.stiffness[j]), max(closing, -u[j])
        largest = max(largest, diagonal(row, column, W, j))
    if not math.isfinite(speed + largest):
        return NON_FINITE
    if closing <= least or largest <= 0.0:
        info[1] = closing / before if before > 0.0 else 0.0
        return CONVERGED
    for j in range(n):
        work[j], work[n + j] = u[j] / speed, impact.stiffness[j] / stiffest
    unit, units = 1.0 / largest, (view(work, 0, n), view(work, n, n))
    contacts = _Contacts(row, column, W, component, impact.mu, unit, *units, impact.e, impact.exponent)
    status, steps = _march(contacts, tol, _scratch(n, view(work, 2 * n, work.size - 2 * n), view(iwork, n, n + 1)), view(iwork, 0, n))
    for j in range(n):
        work[j] = work[2 * n + j] * speed / largest
        P[j] += work[j]
    closing = 0.0
    for j in range(n):
        for k in range(row[j], row[j + 1]):
            u[j] += W[k] * work[column[k]]
        closing = max(closing, -u[j] if component[j] == 0 else 0.0)
    info[0], info[1] = float(steps), closing / before
    return status


@tiny
def _is_alone(c, j):
    """True where no other contact acts on this one."""
    alone = c.row[j] < c.row[j + 1]
    for k in range(c.row[j], c.row[j + 1]):
        alone &= (c.W[k] > 0.0) if c.column[k] == j else (c.W[k] == 0.0)
    return alone


@tiny
def _rubs(c, j):
    """True where the contact whose normal row is j has friction."""
    return j + 1 < c.component.size and c.component[j + 1] > 0 and c.mu[j] > 0.0


@tiny
def _scratch(n, work, sticking):
    """Views of the scratch."""
    return _Scratch(
        view(work, 0, 2 * n), view(work, 2 * n, 2 * n), view(work, 4 * n, 14 * n),
        view(work, 18 * n, n), view(work, 19 * n, n), view(work, 20 * n, n), view(work, 21 * n, n),
        view(work, 22 * n, n), view(work, 23 * n, n), view(work, 24 * n, work.size - 24 * n), sticking,
    )  # fmt: skip


@kernel
def _march(c, tol, s, mode):
    """Integrate the state ``y = (P, D)`` from 0 to the end of the impact. Returns (status, steps)."""
    n, h = c.u.size, _FIRST_STEP
    for j in range(n):
        s.y[j], s.y[n + j], s.u[j] = 0.0, 0.0, c.u[j]
        mode[j] = _CLOSING if c.component[j] == 0 and c.u[j] < -_NOISE else _IDLE
    for j in range(n):
        if mode[j] == _CLOSING and _rubs(c, j):
            _touch(c, mode, j + 1, s.u, s)
    _settle(c, mode, s)
    for steps in range(MAX_STEPS):
        _slope(c, mode, 0, s.y, s.u, s.pull, s)
        if _is_over(c, mode, s):
            return CONVERGED, steps
        error = _try_step(c, mode, h, s) / tol
        if not math.isfinite(error):
            return NON_FINITE, steps
        size, h = h, h * min(max(_SAFETY * error**-0.2, _SHORTEST), _LONGEST) if error > 0.0 else h * _LONGEST
        if error <= 1.0:
            _stop_at_switch(c, mode, size, s)
            if _switch(c, mode, s):
                _settle(c, mode, s)
    return MAX_ITER, MAX_STEPS


@tiny
def _is_over(c, mode, s):
    """True where all contacts are idle, or velocities are noise and either deformations are, too, or forces balance (a body is wedged)."""
    n, idle, closing, moving, deformed = s.u.size, True, 0.0, 0.0, 0.0
    for j in range(n):
        idle &= mode[j] == _IDLE or c.component[j] > 0
        moving = max(moving, abs(s.u[j]), abs(s.pull[j]))
        if c.component[j] == 0:
            closing, deformed = max(closing, -s.u[j]), max(deformed, s.y[n + j])
    return idle or max(closing, deformed) <= _LEFT or moving <= _LEFT


@tiny
def _force(K, D, exponent):
    """``K D^exponent``, continued to D < 0 as an odd function: a step may overshoot the end of a contact before that is located."""
    if exponent == 1.0:
        return K * D
    power = abs(D) * math.sqrt(abs(D)) if exponent == 1.5 else abs(D) ** exponent
    return K * math.copysign(power, D)


@kernel
def _slope(c, mode, stage, y, u, pull, s):
    """Velocities u at y, ``d(P, D)/ds`` into a row of slopes, and ``pull = du/ds``."""
    n, first, slopes = u.size, 2 * u.size * stage, s.slopes
    for j in range(n):
        change = 0.0
        for k in range(c.row[j], c.row[j + 1]):
            change += c.W[k] * y[c.column[k]]
        u[j] = c.u[j] + c.lightness * change
        force, rate = 0.0, 0.0
        if c.component[j] == 0 and mode[j] != _IDLE:
            force = _force(c.stiffness[j], y[n + j], c.exponent)
            rate = -u[j] if mode[j] == _CLOSING else -u[j] / c.e[j] ** 2
        slopes[first + j], slopes[first + n + j] = force, rate
    _rub(c, mode, first, u, s)
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
        _slope(c, mode, stage, s.y_new, s.u_new, s.pull_new, s)
    worst = 0.0
    for i in range(size):
        error = 0.0
        for stage in range(7):
            error += h * _ERROR[stage] * s.slopes[size * stage + i]
        worst += 0.0 * error  # NaN shows
        worst = max(worst, abs(error) / max(1.0, abs(s.y_new[i])))
    return worst


@tiny
def _margins(c, mode, j, u, y, s):
    """Margins of contact j to the end of its mode, by the sign of its velocity and by its deformation; negative beyond.

    Of what sticks: by how much its friction may be more, at the end of the step.
    """
    if c.component[j] > 0:
        if mode[j] == _SLIPPING:
            return _along(c, j, u, s) + _NOISE, math.inf
        last = 12 * u.size + j
        return math.inf, c.mu[j] * s.slopes[last - 1] - _size(c, j, last, s.slopes) + _NOISE if mode[j] == _STICKING else math.inf
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
        by_sign, by_depth = _margins(c, mode, j, s.u_new, s.y_new, s)
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
def _rate_of_sign(c, mode, j, pull, s):
    """Rate of change of the margin of a velocity."""
    if mode[j] == _SLIPPING:
        return _along(c, j, pull, s)
    return pull[j] if mode[j] != _CLOSING else -pull[j]


@tiny
def _time_to_switch(c, mode, s):
    """The time, perhaps negative, from the end of the step to the first change of a mode, by the slopes there."""
    n, first, last = s.u.size, math.inf, 12 * s.u.size
    for j in range(n):
        by_sign, by_depth = _margins(c, mode, j, s.u_new, s.y_new, s)
        sign_rate = _rate_of_sign(c, mode, j, s.pull_new, s)
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
        by_sign, _ = _margins(c, mode, j, s.u_new, s.y_new, s)
        a, b = h * _rate_of_sign(c, mode, j, s.pull, s), h * _rate_of_sign(c, mode, j, s.pull_new, s)
        if by_sign < math.inf and a < 0.0 < b:
            before, _ = _margins(c, mode, j, s.u, s.y, s)
            rise = by_sign - before
            cubic, square = a + b - 2.0 * rise, 3.0 * rise - 2.0 * a - b
            x = -a / (square + math.sqrt(max(square * square - 3.0 * cubic * a, 0.0)))
            if x < _INTERIOR and before + x * (a + x * (square + x * cubic)) < 0.0:
                part = min(part, x)
    if part < 1.0:
        _try_step(c, mode, part * h, s)
    return part


@kernel
def _switch(c, mode, s):
    """Take the state at the end of the step, and change modes. Returns whether some has changed."""
    n, changed = s.u.size, False
    for i in range(2 * n):
        s.y[i] = s.y_new[i]
    for j in range(n):
        by_sign, by_depth = _margins(c, mode, j, s.u_new, s.y_new, s)
        if c.component[j] > 0:
            changed |= _switch_tangents(c, mode, j, by_sign, by_depth, s)
        elif by_sign < 0.0 or by_depth < 0.0:
            changed, was_idle = True, mode[j] == _IDLE
            keeps = mode[j] == _CLOSING and by_sign < 0.0 and c.e[j] >= _LEAST_E and s.y[n + j] > _NOISE
            stays_deformed = mode[j] == _OPENING and by_depth >= 0.0
            if not (keeps or stays_deformed):
                s.y[n + j] = 0.0
            mode[j] = _OPENING if keeps else _CLOSING if s.u_new[j] < -_NOISE else _IDLE
            if _rubs(c, j) and (was_idle or mode[j] == _IDLE):
                _touch(c, mode, j + 1, s.u_new, s)
    return changed


# ---------------------------------------------------------------------------------------------------------------------- friction


@tiny
def _end_of(c, j):
    """Behind the tangents of which j is the first."""
    return j + 2 if j + 1 < c.u.size and c.component[j + 1] == 2 else j + 1


@tiny
def _creep(c, j):
    """Slip of the tangents, of which j is the first, that counts as none where it ends: in the plane it does so at one time."""
    return _CREEP if _end_of(c, j) == j + 2 else _NOISE


@tiny
def _size(c, j, at, x):
    """Norm of the tangents of which j is the first; x[at:] is theirs."""
    return math.hypot(x[at], x[at + 1]) if _end_of(c, j) == j + 2 else abs(x[at])


@tiny
def _along(c, j, x, s):
    """Component in the direction of slip of what x has for the tangents of which j is the first."""
    along = x[j] * s.heading[j]
    return along + x[j + 1] * s.heading[j + 1] if _end_of(c, j) == j + 2 else along


@tiny
def _head(c, j, sign, at, x, s):
    """Slip in the direction of x[at:], or against it."""
    size = _size(c, j, at, x)
    for k in range(_end_of(c, j) - j):
        s.heading[j + k] = sign * x[at + k] / size


@tiny
def _touch(c, mode, j, u, s):
    """Tangents, j the first, of a contact that begins to close, or has opened: it slips, or sticks until `_settle` knows more."""
    mode[j] = _IDLE
    if mode[j - 1] != _IDLE:
        mode[j] = _STICKING
        if _size(c, j, j, u) > _creep(c, j):
            mode[j] = _SLIPPING
            _head(c, j, 1.0, j, u, s)


@tiny
def _switch_tangents(c, mode, j, by_slip, by_force, s):
    """Change the mode of the tangents of which j is the first, and the direction of their slip. Returns whether the mode has changed."""
    if mode[j] == _STICKING and by_force < 0.0:
        mode[j] = _SLIPPING
        _head(c, j, -1.0, 12 * c.u.size + j, s.slopes, s)
        return True
    slip = _size(c, j, j, s.u_new) if mode[j] == _SLIPPING else 0.0
    creep = _creep(c, j)
    ends = by_slip < 0.0 or (slip > 0.5 * _CREEP and _along(c, j, s.pull_new, s) < 0.0)
    if mode[j] == _SLIPPING and ends and slip <= 3.0 * creep:
        mode[j] = _STICKING
        return True
    if mode[j] == _SLIPPING and slip > creep:
        _head(c, j, 1.0, j, s.u_new, s)
    return False


@kernel
def _rub(c, mode, first, u, s):
    """Friction of contacts that press: against slip where there is some, else what keeps it 0. In/out: slopes."""
    for j in range(c.u.size):
        if mode[j] == _SLIPPING:
            bound, slip = c.mu[j] * s.slopes[first + j - 1], _size(c, j, j, u)
            turns = slip > _CREEP and _along(c, j, u, s) > 0.0
            for k in range(j, _end_of(c, j)):
                s.slopes[first + k] = -bound * (u[k] / slip if turns else s.heading[k])
    count = s.sticking[0]
    for a in range(count):
        i, x = s.sticking[1 + a], 0.0
        for k in range(c.row[i], c.row[i + 1]):
            x -= c.W[k] * s.slopes[first + c.column[k]]
        s.force[a] = x
    _solve_sticking(s)
    for a in range(count):
        s.slopes[first + s.sticking[1 + a]] = s.force[a]


@tiny
def _solve_sticking(s):
    """``force <- W_ss^-1 force`` for the rows that stick."""
    cholesky_solve(s.sticking[0], s.sticking[0], s.factor, s.force)


@tiny
def _stop(c, s):
    """Impulses by which what sticks is at rest, of which the end of slip has left a little. In/out: y."""
    for a in range(s.sticking[0]):
        s.force[a] = -s.u[s.sticking[1 + a]] / c.lightness
    _solve_sticking(s)
    for a in range(s.sticking[0]):
        s.y[s.sticking[1 + a]] += s.force[a]


@kernel
def _settle(c, mode, s):
    """Which contacts stick: of those that may all for which that takes no more friction than they have."""
    n = c.u.size
    for trial in range(n + 1):
        _list_sticking(c, mode, s)
        if s.sticking[0] == 0:
            return
        if trial == 0:
            _slope(c, mode, 0, s.y, s.u, s.pull, s)
            _stop(c, s)
        _slope(c, mode, 0, s.y, s.u, s.pull, s)
        for i in range(2 * n):
            s.y_new[i] = s.y[i] + _LATER * s.slopes[i]
        _slope(c, mode, 0, s.y_new, s.u_new, s.pull_new, s)
        worst, at = 0.0, -1
        for j in range(n):
            if mode[j] == _STICKING:
                bound = c.mu[j] * s.slopes[j - 1]
                excess = _size(c, j, j, s.slopes) - bound
                if excess > max(worst, _EXCESS * bound):
                    worst, at = excess, j
        if at < 0:
            return
        mode[at] = _SLIPPING
        _head(c, at, -1.0, at, s.slopes, s)
        if _end_of(c, at) == at + 2:
            _list_sticking(c, mode, s)
            _align(c, mode, at, s)


@kernel
def _align(c, mode, j, s):
    """The direction d in which slip in space begins at y_new, along its acceleration ``a d = b - G d``, ``||d|| = 1``; G: friction times W.

    b and G are those that other contacts leave, found from three directions; a by bisection.
    """
    x, y = s.heading[j], s.heading[j + 1]
    s.heading[j], s.heading[j + 1] = 1.0, 0.0
    first_x, first_y = _pull_of(c, mode, j, s)
    s.heading[j] = -1.0
    b_x, b_y = _pull_of(c, mode, j, s)
    b_x, b_y = 0.5 * (b_x + first_x), 0.5 * (b_y + first_y)
    s.heading[j], s.heading[j + 1] = 0.0, 1.0
    second_x, second_y = _pull_of(c, mode, j, s)
    xx, xy, yx, yy = b_x - first_x, b_x - second_x, b_y - first_y, b_y - second_y
    low, high = 0.0, math.hypot(b_x, b_y)
    for _ in range(_BISECTIONS):
        a = 0.5 * (low + high)
        determinant = (a + xx) * (a + yy) - xy * yx
        x, y = ((a + yy) * b_x - xy * b_y) / determinant, ((a + xx) * b_y - yx * b_x) / determinant
        low, high = (a, high) if math.hypot(x, y) > 1.0 else (low, a)
    size = math.hypot(x, y)
    s.heading[j], s.heading[j + 1] = x / size, y / size


@tiny
def _pull_of(c, mode, j, s):
    """Acceleration of the tangents of which j is the first, at y_new."""
    _slope(c, mode, 0, s.y_new, s.u_new, s.pull_new, s)
    return s.pull_new[j], s.pull_new[j + 1]


@kernel
def _list_sticking(c, mode, s):
    """The tangents that stick, and the Cholesky factor of their rows of W. Out: sticking, factor."""
    n, count = c.u.size, 0
    for j in range(n):
        for i in range(j, _end_of(c, j) if mode[j] == _STICKING else j):
            s.sticking[1 + count] = i
            count += 1
    s.sticking[0] = count
    for a in range(count):
        i = s.sticking[1 + a]
        for b in range(a + 1):
            s.factor[a * count + b] = 0.0
            for k in range(c.row[i], c.row[i + 1]):
                if c.column[k] == s.sticking[1 + b]:
                    s.factor[a * count + b] = c.W[k]
    cholesky(count, count, _DEPENDENT, s.factor)
