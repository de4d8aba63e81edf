"""Polynomials on [0, 1] that approximate flows and guards: values, interpolation, first root.

A polynomial of degree d lies in the work memory as coefficients of theta^j at ``p + j stride``, ascending.
"""

import math

import numpy as np

from nsds._jit import kernel, tiny

FORCE_DEGREE, GUARD_DEGREE = 14, 8  # degrees of interpolation of forces and guards
NO_ROOT = 2.0
_ROUNDING = 2.0**-52
_MAX_ITER = 300
_BLURS = 16.0  # assumed slope of a force in theta, over its range in a step
_REACH = 4.0  # multiple of the last step for which the bound of the next one is computed


def _nodes(degree):
    """Chebyshev's points of the second kind on [0, 1], ascending: both ends are among them."""
    return (np.sin(np.pi * np.arange(degree + 1) / (2 * degree)) ** 2).astype(float)


def _chebyshev(degree):
    """Matrix from values at the nodes to coefficients of Chebyshev polynomials T_j(2 theta - 1)."""
    weight = np.where(np.arange(degree + 1) % degree == 0, 0.5, 1.0)
    angle = np.pi * (degree - np.arange(degree + 1)) / degree  # of 2 theta - 1 = cos(angle)
    return 2 / degree * weight[:, None] * np.cos(np.outer(np.arange(degree + 1), angle)) * weight


def _monomials(degree):
    """Matrix from Chebyshev coefficients to coefficients of powers; whole numbers, without rounding."""
    rows = [np.polynomial.Polynomial([1.0]), np.polynomial.Polynomial([-1.0, 2.0])]
    while len(rows) <= degree:
        rows.append(2 * rows[1] * rows[-1] - rows[-2])
    return np.array([np.pad(row.coef, (0, degree + 1 - row.coef.size)) for row in rows]).T


FORCE_NODES, GUARD_NODES = _nodes(FORCE_DEGREE), _nodes(GUARD_DEGREE)
_FORCE_CHEBYSHEV, _FORCE_MONOMIALS = np.ascontiguousarray(_chebyshev(FORCE_DEGREE).T), np.ascontiguousarray(_monomials(FORCE_DEGREE).T)
_GUARD_CHEBYSHEV, _GUARD_MONOMIALS = _chebyshev(GUARD_DEGREE), _monomials(GUARD_DEGREE)


@tiny
def value(degree, p, stride, theta, work):
    """The polynomial at theta (Horner)."""
    s = work[p + degree * stride]
    for j in range(degree - 1, -1, -1):
        s = s * theta + work[p + j * stride]
    return s


@tiny
def value_and_slope(degree, p, stride, theta, work):
    """The polynomial and its derivative at theta."""
    s, slope = work[p + degree * stride], 0.0
    for j in range(degree - 1, -1, -1):
        slope = slope * theta + s
        s = s * theta + work[p + j * stride]
    return s, slope


@kernel
def evaluate(n, degree, p, theta, out, work):
    """n polynomials stored side by side (stride n) at theta, into work[out:]."""
    for a in range(n):
        work[out + a] = value(degree, p + a, n, theta, work)


@kernel
def interpolate_force(n, values, blur, p, spare, work):
    """Polynomials of degree FORCE_DEGREE through n quantities given at FORCE_NODES: quantity a at node j in work[values + j n + a].

    blur: rounding of theta at the nodes; in long runs values of the force differ by more than their own rounding.
    Out: coefficients, stride n, in work[p:]. Work: spare (FORCE_DEGREE + 1). Returns the truncation error: largest, over the quantities,
    of the last two Chebyshev coefficients relative to the largest value; coefficients below rounding are dropped.
    """
    d, worst = FORCE_DEGREE, 0.0
    for a in range(n):
        # 1. range of the values, and the size of coefficients that are rounding
        low, high = math.inf, -math.inf
        for j in range(d + 1):
            low, high = min(low, work[values + j * n + a]), max(high, work[values + j * n + a])
        largest = max(abs(low), abs(high))
        lost = 16.0 * _ROUNDING * largest + _BLURS * blur * (high - low)
        # 2. Chebyshev coefficients
        for i in range(d + 1):
            work[spare + i] = work[p + i * n + a] = 0.0
        for j in range(d + 1):  # sums side by side: none waits for itself
            at_node = work[values + j * n + a]
            for i in range(d + 1):
                work[spare + i] += _FORCE_CHEBYSHEV[j, i] * at_node
        # 3. drop rounding: in powers of theta it would grow by the large coefficients of the polynomials
        for i in range(d + 1):
            work[spare + i] = work[spare + i] if abs(work[spare + i]) > lost else 0.0
        if largest > 0.0:
            worst = max(worst, (abs(work[spare + d]) + abs(work[spare + d - 1])) / largest)
        # 4. powers of theta
        for j in range(d + 1):
            of_order = work[spare + j]
            for i in range(j + 1):
                work[p + i * n + a] += _FORCE_MONOMIALS[j, i] * of_order
    return worst


@kernel
def interpolate_guard(values, p, spare, work):
    """The polynomial of degree GUARD_DEGREE through values at GUARD_NODES, into work[p:] (stride 1). Work: spare (GUARD_DEGREE + 1)."""
    d = GUARD_DEGREE
    # values to Chebyshev coefficients, then to powers
    for i in range(d + 1):
        s = 0.0
        for j in range(d + 1):
            s += _GUARD_CHEBYSHEV[i, j] * work[values + j]
        work[spare + i] = s
    for i in range(d + 1):
        s = 0.0
        for j in range(i, d + 1):
            s += _GUARD_MONOMIALS[i, j] * work[spare + j]
        work[p + i] = s


@kernel
def first_root(degree, p, zeros, begin, end, work):
    """First theta in (begin, end] at which a polynomial, positive before, reaches or touches zero; NO_ROOT if it stays positive.

    zeros: number of its lowest coefficients that are zero up to rounding, if it starts at zero (then begin is 0): that root is no event,
    and the polynomial is divided by theta^zeros. If the quotient is not positive at begin, the root is begin itself.

    From theta on, ``g + g' s - bound s^2 / 2`` lies below the polynomial, with a bound of ``-g''`` between theta and top. The march goes to
    the root of that parabola, and on: it never passes a root, however close two of them are, and at a simple one it is Newton's method.
    """
    d = degree - zeros
    p += zeros
    # 1. rounding of the values of the polynomial
    noise = 0.0
    for j in range(d + 1):
        noise += abs(work[p + j])
    noise *= _ROUNDING
    theta, reach = begin, end - begin
    for _ in range(_MAX_ITER if d >= 0 else 0):
        # 2. at a root?
        g, slope = value_and_slope(d, p, 1, theta, work)
        if not g > (0.0 if slope < 0.0 or theta == begin else noise):  # what touches zero later is at rest there up to rounding
            return theta
        # 3. root of the parabola below the polynomial, in the form that does not cancel
        top = min(theta + reach, end)
        bound = _bend(d, p, theta, top, work)
        root = math.sqrt(slope * slope + 2.0 * bound * g)
        above, below = (slope + root, bound) if slope > 0.0 else (2.0 * g, root - slope)
        s = above / below if below > 0.0 else math.inf
        # 4. accept the step if the bound holds up to there, else continue from the end of the bound
        if theta + s <= top:
            if s <= 2.0 * _ROUNDING * theta:
                return theta
            theta += s
            reach = _REACH * s
        elif top == end:
            return NO_ROOT
        else:
            theta = top
            reach *= _REACH
    return theta if d >= 0 else NO_ROOT


@tiny
def _bend(degree, p, theta, top, work):
    """Upper bound of ``-g''`` on [theta, top]: each term at the end where it is largest."""
    s, power, power_top = 0.0, 1.0, 1.0
    for j in range(2, degree + 1):
        c = -j * (j - 1.0) * work[p + j]
        s += c * (power_top if c > 0.0 else power)
        power *= theta
        power_top *= top
    return max(s, 0.0)
