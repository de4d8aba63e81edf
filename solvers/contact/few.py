"""Few contacts in the plane, directly: one in closed form, several by what each does, which the last impulses tell.

A contact is open, sticks, or slides to one side; an equation holds. Once that is known of all, ``u = W r + q`` and the laws are linear
equations for the impulses of those that are not open. Where their solution says that a contact does something else, that is tried next:
Newton's method on Jean and Moreau's equations (see `nsds.solvers.contact.alart_curnier`) with steps of their full length.
"""

import math

from nsds._jit import kernel, tiny, view
from nsds.solvers.contact import quartic
from nsds.solvers.contact.local import enumerate_plane, gauss
from nsds.solvers.contact.signature import EQUATION
from nsds.status import CONVERGED, UNSUITED

LARGEST = 6  # contacts
_ROUNDS = 12
_SLIDING = 1.0 - 1e-9  # ``|r_T|``, relative to ``mu r_N``, from which on a contact slid
_ROUNDING = 2.0**-52
_TINY, _HUGE = 1e-280, 1e280  # squares that are as exact as others
_OPEN, _STICK, _LEFT, _RIGHT = range(4)


def room():
    """Floats and integers of scratch."""
    return 2 * LARGEST * (2 * LARGEST + 2), 2 * LARGEST


@kernel
def few(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q`` of up to `LARGEST` contacts of two components. Out: r, u, info; r as it was where UNSUITED."""
    n = problem.disk.size
    guess = view(work, 4 * LARGEST * LARGEST + 2 * LARGEST, 2 * n)
    for i in range(2 * n):
        guess[i] = r[i]
    rounds = 1
    if n == 1 and problem.disk[0] > 0:
        solved = enumerate_plane(problem.mu[0], problem.W, 0, problem.q, r) != quartic.NONE
    else:
        solved, rounds = _settle(problem, r, work, iwork)
    if solved:
        error = _judge(problem, options.tol, r, u)
        if error <= options.tol:
            info[0], info[1] = rounds, error
            return CONVERGED
    for i in range(2 * n):
        r[i] = guess[i]
    return UNSUITED


@kernel
def _judge(problem, tol, r, u):
    """`nsds.solvers.contact.signature.merit`, or infinity where rounding may hide tol or a scale is missing. Out: u."""
    disk, row, W, q = problem.disk, problem.row, problem.W, problem.q
    error = size = noise = 0.0
    for c in range(disk.size):
        i = 2 * c
        u_n, u_t, terms_n, terms_t = q[i], q[i + 1], abs(q[i]), abs(q[i + 1])
        size += u_n * u_n + u_t * u_t
        scale_n = scale_t = 0.0
        for k in range(row[c], row[c + 1]):
            a, b, d, e = W[4 * k], W[4 * k + 1], W[4 * k + 2], W[4 * k + 3]
            r_n, r_t = r[2 * problem.column[k]], r[2 * problem.column[k] + 1]
            u_n += a * r_n + b * r_t
            u_t += d * r_n + e * r_t
            terms_n += abs(a * r_n) + abs(b * r_t)
            terms_t += abs(d * r_n) + abs(e * r_t)
            scale_n, scale_t = max(scale_n, max(abs(a), abs(b))), max(scale_t, max(abs(d), abs(e)))
        u[i], u[i + 1] = u_n, u_t
        count = 2 * (row[c + 1] - row[c]) + 1
        noise += count * count * (terms_n * terms_n + terms_t * terms_t)
        if disk[c] == EQUATION:
            error += u_n * u_n + u_t * u_t
            continue
        if not scale_n > 0.0 or not scale_t > 0.0:
            return math.inf
        slope = problem.mu[i] if disk[c] > 0 else problem.mu[i + 1]
        bound = scale_t * (slope * max(r[i], 0.0))
        f_n, x = min(scale_n * r[i], u_n), scale_t * r[i + 1]
        f_t = max(min(u_t, x + bound), x - bound)
        error += f_n * f_n + f_t * f_t
        hidden = scale_t * (slope * abs(r[i]) + abs(r[i + 1]))
        noise += hidden * hidden
    if not _TINY < size < _HUGE or not 16.0 * _ROUNDING * _ROUNDING * noise <= tol * tol * size:
        return math.inf
    return math.sqrt(error / size) + 0.0 * error


@tiny
def _state_of_guess(disk, mu, r_n, r_t):
    """State of a contact, from its last impulse."""
    if disk == EQUATION:
        return _STICK
    if not r_n > 0.0:
        return _OPEN
    if abs(r_t) >= _SLIDING * mu * r_n:
        return _LEFT if r_t < 0.0 else _RIGHT
    return _STICK


@kernel
def _settle(problem, r, work, iwork):
    """(whether states were found that their own solution confirms, rounds). In: r, the guess; out: r."""
    disk = problem.disk
    n = disk.size
    state, place = view(iwork, 0, n), view(iwork, n, n)
    for c in range(n):
        slope = problem.mu[2 * c] if disk[c] > 0 else problem.mu[2 * c + 1]
        state[c] = _state_of_guess(disk[c], slope, r[2 * c], r[2 * c + 1])
    for k in range(_ROUNDS):
        if not _solve_states(problem, state, place, r, work):
            return False, k
        if not _renew_states(problem, state, r):
            return True, k + 1
    return False, _ROUNDS


@kernel
def _solve_states(problem, state, place, r, work):
    """r for which contacts do what their states say; False where the equations are singular. Out: place, r."""
    disk, W = problem.disk, problem.W
    n, m = disk.size, 0
    for c in range(n):
        place[c] = m
        m += 0 if state[c] == _OPEN else 2 if state[c] == _STICK else 1
    A, b = view(work, 0, m * m), view(work, 4 * LARGEST * LARGEST, m)
    for i in range(m * m):
        A[i] = 0.0
    for c in range(n):
        for a in range(place[c + 1] - place[c] if c + 1 < n else m - place[c]):
            i = place[c] + a
            b[i] = -problem.q[2 * c + a]
            for k in range(problem.row[c], problem.row[c + 1]):
                j, at = problem.column[k], 4 * k + 2 * a
                if state[j] == _STICK:
                    A[i * m + place[j]], A[i * m + place[j] + 1] = W[at], W[at + 1]
                elif state[j] != _OPEN:
                    A[i * m + place[j]] = W[at] + _slope(j, disk, problem.mu, state) * W[at + 1]
    if m > 0 and not gauss(m, A, b):
        return False
    for c in range(n):
        i = place[c]
        r[2 * c] = 0.0 if state[c] == _OPEN else b[i]
        r[2 * c + 1] = 0.0 if state[c] == _OPEN else b[i + 1] if state[c] == _STICK else _slope(c, disk, problem.mu, state) * b[i]
    return True


@tiny
def _slope(c, disk, mu, state):
    """``r_T / r_N`` of a contact that slides."""
    slope = mu[2 * c] if disk[c] > 0 else mu[2 * c + 1]
    return -slope if state[c] == _LEFT else slope


@kernel
def _renew_states(problem, state, r):
    """State of each contact by the signs of r and u that the present state leaves open; whether some state has changed. Out: state."""
    disk, W = problem.disk, problem.W
    changed = False
    for c in range(disk.size):
        if disk[c] == EQUATION:
            continue
        i = 2 * c
        u_n, u_t = problem.q[i], problem.q[i + 1]
        for k in range(problem.row[c], problem.row[c + 1]):
            j = 2 * problem.column[k]
            u_n += W[4 * k] * r[j] + W[4 * k + 1] * r[j + 1]
            u_t += W[4 * k + 2] * r[j] + W[4 * k + 3] * r[j + 1]
        slope, was = problem.mu[i] if disk[c] > 0 else problem.mu[i + 1], state[c]
        new = was
        if was == _OPEN:
            new = _OPEN if u_n >= 0.0 else _STICK if slope > 0.0 else _RIGHT
        elif r[i] <= 0.0:
            new = _OPEN
        elif was == _STICK:
            new = _STICK if abs(r[i + 1]) <= slope * r[i] else _LEFT if r[i + 1] < 0.0 else _RIGHT
        elif was == _LEFT:
            new = _LEFT if u_t >= 0.0 else _STICK
        else:
            new = _RIGHT if u_t <= 0.0 else _STICK
        changed = changed or new != was
        state[c] = new
    return changed
