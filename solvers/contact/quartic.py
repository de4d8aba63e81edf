"""One contact in space, solved exactly: open, sticking, or sliding in a direction that is the root of a quartic.

Sliding means ``r_T = mu r_N t`` and ``u_T = -alpha t`` with a unit vector ``t = (cos θ, sin θ)`` and ``alpha >= 0``. With ``u_N = 0``,

    r_N = -q_N / (W_NN + mu W_NT t),

which is the conic of [Notes], eqs. 15.2–15.5, in polar form, and ``t⊥ u_T = 0`` becomes, multiplied by that divisor,

    A cos² θ + B sin² θ + C sin θ cos θ + D sin θ + E cos θ = 0                                     (15.15)

Written with W itself rather than with the eigenvectors of W_TT (15.7), this needs no symmetry, and none of the special cases R_T1 = 0,
R_T2 = 0 of (15.19, 15.20) remains. ``tan(θ/2)`` (15.17, 15.18) makes a quartic of it, after a turn that keeps its leading coefficient
from vanishing; the roots are then polished in θ.
"""

import math

from nsds._jit import kernel, tiny

OPEN, STICK, SLIDE, NONE = 0, 1, 2, 3

_POLISHED = 4  # Newton steps on the trigonometric polynomial of a root of the quartic
_DOUBLE = 1e-6  # by which a discriminant may be negative, relative to its terms
_EIGHTHS = (1.0, math.sqrt(0.5), 0.0, -math.sqrt(0.5), -1.0, -math.sqrt(0.5), 0.0, math.sqrt(0.5))  # cosines of multiples of 45 degrees
_ROOM = 1e-9  # by which alpha may be negative, and a root's residual differ from 0, relative to the terms that they are sums of


@tiny
def solve_3(W, k, b, x):
    """``x = -W_k^-1 b`` for the 3 × 3 block that begins at W[k]; False where it is singular."""
    a00, a01, a02, a10, a11, a12, a20, a21, a22 = W[k], W[k + 1], W[k + 2], W[k + 3], W[k + 4], W[k + 5], W[k + 6], W[k + 7], W[k + 8]
    c0, c1, c2 = a11 * a22 - a12 * a21, a12 * a20 - a10 * a22, a10 * a21 - a11 * a20
    determinant = a00 * c0 + a01 * c1 + a02 * c2
    if not abs(determinant) > 1e-14 * abs(a00 * a11 * a22):
        return False
    f = -1.0 / determinant
    x[0] = f * (c0 * b[0] + (a02 * a21 - a01 * a22) * b[1] + (a01 * a12 - a02 * a11) * b[2])
    x[1] = f * (c1 * b[0] + (a00 * a22 - a02 * a20) * b[1] + (a02 * a10 - a00 * a12) * b[2])
    x[2] = f * (c2 * b[0] + (a01 * a20 - a00 * a21) * b[1] + (a00 * a11 - a01 * a10) * b[2])
    return True


@tiny
def coefficients(mu, W, k, q):
    """(A, B, C, D, E) of (15.15) for the 3 × 3 block that begins at W[k]."""
    return (
        mu * (W[k + 1] * q[2] - q[0] * W[k + 7]),
        mu * (q[0] * W[k + 5] - W[k + 2] * q[1]),
        mu * (W[k + 2] * q[2] - W[k + 1] * q[1] - q[0] * (W[k + 8] - W[k + 4])),
        q[0] * W[k + 3] - W[k] * q[1],
        W[k] * q[2] - q[0] * W[k + 6],
    )


@tiny
def slide(c, s, mu, W, k, q, r):
    """(alpha, size of its terms) of sliding along (c, s), and r; alpha is -inf where r_N would not be positive."""
    r_n = -q[0] / (W[k] + mu * (W[k + 1] * c + W[k + 2] * s))
    if not 0.0 < r_n < math.inf:
        return -math.inf, 0.0
    r[0], r[1], r[2] = r_n, mu * r_n * c, mu * r_n * s
    u_1 = W[k + 3] * r[0] + W[k + 4] * r[1] + W[k + 5] * r[2] + q[1]
    u_2 = W[k + 6] * r[0] + W[k + 7] * r[1] + W[k + 8] * r[2] + q[2]
    size = abs(q[1]) + abs(q[2]) + r_n * (abs(W[k + 3]) + abs(W[k + 6]) + mu * (abs(W[k + 4]) + abs(W[k + 8])))
    return -(c * u_1 + s * u_2), size


@tiny
def refine(A, B, C, D, E, c, s):
    """(c, s, residual): one Newton step on (15.15) from the direction (c, s)."""
    value = A * c * c + B * s * s + C * s * c + D * s + E * c
    slope = 2.0 * (B - A) * s * c + C * (c * c - s * s) + D * c - E * s
    step = -value / slope if slope != 0.0 else 0.0
    if not abs(step) < 0.5:
        step = math.copysign(0.5, step)
    c_new, s_new = c - step * s, s + step * c
    square = step * step
    f = 1.0 - square * (0.5 - 0.375 * square) if square < 1e-6 else 1.0 / math.sqrt(1.0 + square)  # a series where rounding hides the rest
    return f * c_new, f * s_new, abs(value)


@tiny
def _cubic_root(b, c, d):
    """The largest real root of ``x^3 + b x^2 + c x + d``."""
    shift = b / 3.0
    p, q = c / 3.0 - shift * shift, shift * shift * shift - 0.5 * (shift * c - d)
    discriminant = q * q + p * p * p
    if discriminant >= 0.0:
        w = -q - math.copysign(math.sqrt(discriminant), q)
        v = math.copysign(abs(w) ** (1.0 / 3.0), w)
        x = v - p / v if v != 0.0 else 0.0
    else:
        x = 2.0 * math.sqrt(-p) * math.cos(math.acos(max(-1.0, min(1.0, q / (p * math.sqrt(-p))))) / 3.0)
    return x - shift


@tiny
def quartic_roots(a3, a2, a1, a0, roots):
    """Number of candidates for the real roots of ``x^4 + a3 x^3 + a2 x^2 + a1 x + a0`` (Ferrari); out: roots (4,).

    ``(y^2 + w y + beta)(y^2 - w y + gamma)`` with ``y = x + a3 / 4``. A factor whose discriminant is slightly negative counts as one with
    a double root, which a look at the residual may reject.
    """
    h = 0.25 * a3
    p = a2 - 6.0 * h * h
    q = a1 - 2.0 * a2 * h + 8.0 * h * h * h
    r = a0 - a1 * h + a2 * h * h - 3.0 * h * h * h * h
    z = max(_cubic_root(2.0 * p, p * p - 4.0 * r, -q * q), 0.0)
    w = math.sqrt(z)
    half = 0.5 * q / w if w > 0.0 else math.sqrt(max(0.25 * p * p - r, 0.0))
    n = 0
    for sign in (1.0, -1.0):
        discriminant = -0.25 * z - 0.5 * p + sign * half
        if discriminant >= -_DOUBLE * (z + abs(p) + abs(half)):
            root = math.sqrt(max(discriminant, 0.0))
            roots[n], roots[n + 1] = -0.5 * sign * w - h - root, -0.5 * sign * w - h + root
            n += 2
    return n


@tiny
def _turn(A, B, C, D, E):
    """(c, s) of the turn, by a multiple of 45 degrees, after which the leading coefficient ``f(turn + 180°)`` is largest."""
    best, c_best, s_best = -1.0, 1.0, 0.0
    for eighth in range(8):
        c = _EIGHTHS[eighth]
        s = _EIGHTHS[(eighth + 6) % 8]
        value = abs(A * c * c + B * s * s + C * s * c - D * s - E * c)
        if value > best:
            best, c_best, s_best = value, c, s
    return c_best, s_best


@kernel
def solve_quartic(mu, W, k, q, r, roots):
    """One contact ``u = W_k r + q`` with friction mu: OPEN, STICK, SLIDE, or NONE where nothing fits (W_k not positive definite).

    ``W[k:k + 9]`` by rows, unsymmetric too; q (3,). Out: r (3,). Work: roots (4,).
    Where friction admits several sliding directions, the one with the largest alpha is taken.
    """
    r[0], r[1], r[2] = 0.0, 0.0, 0.0
    if q[0] >= 0.0:
        return OPEN
    if mu == 0.0:
        r[0] = -q[0] / W[k]
        return SLIDE if 0.0 < r[0] < math.inf else NONE
    if solve_3(W, k, q, r) and math.sqrt(r[1] ** 2 + r[2] ** 2) <= mu * r[0]:
        return STICK
    A, B, C, D, E = coefficients(mu, W, k, q)
    turn_c, turn_s = _turn(A, B, C, D, E)
    cc, ss, cs = turn_c * turn_c, turn_s * turn_s, turn_c * turn_s
    a, b, m = A * cc + B * ss + C * cs, A * ss + B * cc - C * cs, 2.0 * (B - A) * cs + C * (cc - ss)
    d, e = D * turn_c - E * turn_s, E * turn_c + D * turn_s
    f = 1.0 / (a - e)  # eq. 15.18 in θ - turn
    n = quartic_roots(2.0 * f * (d - m), f * (4.0 * b - 2.0 * a), 2.0 * f * (m + d), f * (a + e), roots) if abs(f) < math.inf else 0
    size = abs(A) + abs(B) + abs(C) + abs(D) + abs(E)
    best, c_best, s_best = -math.inf, 1.0, 0.0
    for i in range(n):
        square = roots[i] * roots[i]
        c, s = (1.0 - square) / (1.0 + square), 2.0 * roots[i] / (1.0 + square)
        c, s = turn_c * c - turn_s * s, turn_s * c + turn_c * s
        for _ in range(_POLISHED):
            c, s, value = refine(A, B, C, D, E, c, s)
        alpha, terms = slide(c, s, mu, W, k, q, r)
        if value <= _ROOM * size and alpha >= -_ROOM * terms and alpha > best:
            best, c_best, s_best = alpha, c, s
    if best > -math.inf:
        slide(c_best, s_best, mu, W, k, q, r)
        return SLIDE
    r[0], r[1], r[2] = 0.0, 0.0, 0.0
    return NONE
