"""Rotations by unit quaternions and rotation vectors ([Notes], 11.3 to 11.5): kernels, for schemes and for users' functions.

A quaternion is scalar first, ``p = (p0, p1, p2, p3)``, and turns axes of the body into inertial ones: ``x' = Phi(p) x``. Omega is the
angular velocity in axes of the body, omega = Phi(p) Omega in inertial ones. The configuration of a body is ``q = (x, p)``, 7 numbers, its
twist ``v = (v_g, Omega)``, 6 numbers, v_g inertial. Arrays are 1-D and contiguous, matrices by rows. The last argument is written, and may
be one of the others where both have the same length.

>>> import numpy as np
>>> from nsds import rotations
>>> p, x = np.empty(4), np.empty(3)
>>> rotations.exp_quaternion(np.array([0.0, 0.0, np.pi / 2]), p)
>>> rotations.rotate(p, np.array([1.0, 0.0, 0.0]), x)
>>> x.round(12)
array([0., 1., 0.])
"""

import math

import numpy as np

from nsds._jit import stack, tiny
from nsds._jit.sized import of_sizes
from nsds.maths.vectors import dot, norm

__all__ = [
    "advance", "dexp", "dexp_inverse", "exp_quaternion", "exp_rotation", "left_matrix", "log_quaternion", "log_rotation",
    "moment_gradient", "normalise", "perpendicular", "product", "quaternion_of", "rate_matrix", "right_matrix", "rotate", "rotate_back",
    "rotation_matrix", "tangent_map", "turned", "turned_back",
]  # fmt: skip

_NEARLY_UNIT = 1e-8  # of the square of a norm: its square is below rounding


def __dir__():
    return __all__


@of_sizes(4, 4, 4)
@tiny
def product(p, q, out):
    """``out = p . q`` ([Notes], eq. 11.126): first the rotation q, then p; all (4,)."""
    p0, p1, p2, p3 = p[0], p[1], p[2], p[3]
    q0, q1, q2, q3 = q[0], q[1], q[2], q[3]
    out[0] = p0 * q0 - p1 * q1 - p2 * q2 - p3 * q3
    out[1] = p0 * q1 + p1 * q0 + p2 * q3 - p3 * q2
    out[2] = p0 * q2 + p2 * q0 + p3 * q1 - p1 * q3
    out[3] = p0 * q3 + p3 * q0 + p1 * q2 - p2 * q1


@of_sizes(4, 16)
@tiny
def left_matrix(p, out):
    """``p . q = out q`` for every q ([Notes], eq. 11.130); p (4,), out (16,)."""
    p0, p1, p2, p3 = p[0], p[1], p[2], p[3]
    out[0], out[1], out[2], out[3] = p0, -p1, -p2, -p3
    out[4], out[5], out[6], out[7] = p1, p0, -p3, p2
    out[8], out[9], out[10], out[11] = p2, p3, p0, -p1
    out[12], out[13], out[14], out[15] = p3, -p2, p1, p0


@of_sizes(4, 16)
@tiny
def right_matrix(q, out):
    """``p . q = out p`` for every p ([Notes], eq. 11.131); q (4,), out (16,)."""
    q0, q1, q2, q3 = q[0], q[1], q[2], q[3]
    out[0], out[1], out[2], out[3] = q0, -q1, -q2, -q3
    out[4], out[5], out[6], out[7] = q1, q0, q3, -q2
    out[8], out[9], out[10], out[11] = q2, -q3, q0, q1
    out[12], out[13], out[14], out[15] = q3, q2, -q1, q0


@of_sizes(4)
@tiny
def normalise(p):
    """``p <- p / |p|`` (4,); returns the norm that p had."""
    square = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]
    excess = square - 1.0
    # of a product of unit quaternions rounding alone is left, which one step of Newton's method takes off without a division
    if abs(excess) < _NEARLY_UNIT:
        scale = 1.0 - 0.5 * excess
        p[0], p[1], p[2], p[3] = scale * p[0], scale * p[1], scale * p[2], scale * p[3]
        return 1.0 + 0.5 * excess
    norm = math.sqrt(square)
    p[0], p[1], p[2], p[3] = p[0] / norm, p[1] / norm, p[2] / norm, p[3] / norm
    return norm


@of_sizes(4, 9)
@tiny
def rotation_matrix(p, out):
    """``out = Phi(p)``, the rotation matrix of a unit quaternion by rows ([Notes], eq. 11.137); p (4,), out (9,)."""
    p0, p1, p2, p3 = p[0], p[1], p[2], p[3]
    out[0], out[1], out[2] = 1.0 - 2.0 * (p2 * p2 + p3 * p3), 2.0 * (p1 * p2 - p3 * p0), 2.0 * (p1 * p3 + p2 * p0)
    out[3], out[4], out[5] = 2.0 * (p1 * p2 + p3 * p0), 1.0 - 2.0 * (p1 * p1 + p3 * p3), 2.0 * (p2 * p3 - p1 * p0)
    out[6], out[7], out[8] = 2.0 * (p1 * p3 - p2 * p0), 2.0 * (p2 * p3 + p1 * p0), 1.0 - 2.0 * (p1 * p1 + p2 * p2)


@tiny
def _turn(p0, p1, p2, p3, x, out):
    x1, x2, x3 = x[0], x[1], x[2]
    t1, t2, t3 = 2.0 * (p2 * x3 - p3 * x2), 2.0 * (p3 * x1 - p1 * x3), 2.0 * (p1 * x2 - p2 * x1)
    out[0] = x1 + p0 * t1 + p2 * t3 - p3 * t2
    out[1] = x2 + p0 * t2 + p3 * t1 - p1 * t3
    out[2] = x3 + p0 * t3 + p1 * t2 - p2 * t1


@of_sizes(4, 3, 3)
@tiny
def rotate(p, x, out):
    """``out = Phi(p) x``, from axes of the body to inertial ones ([Notes], eq. 11.136); p (4,) unit, x and out (3,)."""
    _turn(p[0], p[1], p[2], p[3], x, out)


@of_sizes(4, 3, 3)
@tiny
def rotate_back(p, x, out):
    """``out = Phi(p)^T x``, from inertial axes to those of the body; p (4,) unit, x and out (3,)."""
    _turn(p[0], -p[1], -p[2], -p[3], x, out)


def turned(p, x):
    """``Phi(p) x`` of arrays p (..., 4) and x (..., 3), outside kernels."""
    twice = 2.0 * np.cross(p[..., 1:], x)
    return x + p[..., :1] * twice + np.cross(p[..., 1:], twice)


def turned_back(p, x):
    """``Phi(p)^T x`` of arrays p (..., 4) and x (..., 3), outside kernels."""
    return turned(p * [1.0, -1.0, -1.0, -1.0], x)


@of_sizes(4, 12)
@tiny
def rate_matrix(p, out):
    """``out = Psi(p)`` by rows, so that ``pdot = Psi(p) Omega / 2`` ([Notes], eq. 11.150, 11.151: without the half); p (4,), out (12,)."""
    p0, p1, p2, p3 = p[0], p[1], p[2], p[3]
    out[0], out[1], out[2] = -p1, -p2, -p3
    out[3], out[4], out[5] = p0, -p3, p2
    out[6], out[7], out[8] = p3, p0, -p1
    out[9], out[10], out[11] = -p2, p1, p0


@of_sizes(7, 42)
@tiny
def tangent_map(q, out):
    """``qdot = T(q) v`` with ``out = T(q)`` by rows ([Notes], eq. 11.191), the half of pdot included; q (7,), out (42,)."""
    for i in range(42):
        out[i] = 0.0
    out[0] = out[7] = out[14] = 1.0
    p0, p1, p2, p3 = 0.5 * q[3], 0.5 * q[4], 0.5 * q[5], 0.5 * q[6]
    out[21], out[22], out[23] = -p1, -p2, -p3
    out[27], out[28], out[29] = p0, -p3, p2
    out[33], out[34], out[35] = p3, p0, -p1
    out[39], out[40], out[41] = -p2, p1, p0


@tiny
def sine_ratio(x2):
    """``sin(x) / x`` for ``x2 = x^2``."""
    if x2 < 1e-3:
        return 1.0 - x2 * (1.0 / 6.0 - x2 * (1.0 / 120.0 - x2 * (1.0 / 5040.0 - x2 * (1.0 / 362880.0))))
    x = math.sqrt(x2)
    return math.sin(x) / x


@tiny
def sine_remainder(x2):
    """``(x - sin(x)) / x^3`` for ``x2 = x^2``."""
    if x2 < 1.0:  # the difference cancels
        s = 1.0 - x2 / 210.0 * (1.0 - x2 / 272.0)
        return (1.0 - x2 / 20.0 * (1.0 - x2 / 42.0 * (1.0 - x2 / 72.0 * (1.0 - x2 / 110.0 * (1.0 - x2 / 156.0 * s))))) / 6.0
    return (1.0 - sine_ratio(x2)) / x2


@tiny
def cotangent_remainder(x2):
    """``(1 - x cot(x)) / (4 x^2)`` for ``x2 = x^2``, x < pi."""
    if x2 < 1e-3:
        return 1.0 / 12.0 + x2 * (1.0 / 180.0 + x2 * (1.0 / 1890.0 + x2 * (1.0 / 18900.0)))
    if x2 < 1.0:  # sin(x) - x cos(x) = sum of (-1)^(k+1) 2k / (2k+1)! x^(2k+1)
        s = 1.0 / 93405312000.0 - x2 * (1.0 / 22230464256000.0 - x2 / 6758061133824000.0)
        s = 1.0 / 45360.0 - x2 * (1.0 / 3991680.0 - x2 * (1.0 / 518918400.0 - x2 * s))
        s = 1.0 / 3.0 - x2 * (1.0 / 30.0 - x2 * (1.0 / 840.0 - x2 * s))
        return s / (4.0 * sine_ratio(x2))
    x = math.sqrt(x2)
    return (1.0 - x * math.cos(x) / math.sin(x)) / (4.0 * x2)


@tiny
def _arc_ratio(x2):
    """``arcsin(x) / x`` for ``x2 = x^2 < 0.01``."""
    s = 0.0
    if x2 >= 1e-3:
        s = 63.0 / 2816.0 + x2 * (231.0 / 13312.0 + x2 * (143.0 / 10240.0 + x2 * (6435.0 / 557056.0)))
    return 1.0 + x2 * (1.0 / 6.0 + x2 * (3.0 / 40.0 + x2 * (5.0 / 112.0 + x2 * (35.0 / 1152.0 + x2 * s))))


@tiny
def _skew_polynomial(w, a, b, out):
    # out = 1 + a w~ + b w~^2
    w1, w2, w3 = w[0], w[1], w[2]
    out[0], out[1], out[2] = 1.0 - b * (w2 * w2 + w3 * w3), b * w1 * w2 - a * w3, b * w1 * w3 + a * w2
    out[3], out[4], out[5] = b * w1 * w2 + a * w3, 1.0 - b * (w1 * w1 + w3 * w3), b * w2 * w3 - a * w1
    out[6], out[7], out[8] = b * w1 * w3 - a * w2, b * w2 * w3 + a * w1, 1.0 - b * (w1 * w1 + w2 * w2)


@tiny
def cosine(x2):
    """``cos(x)`` for ``x2 = x^2``."""
    if x2 < 1e-3:
        return 1.0 - x2 * (0.5 - x2 * (1.0 / 24.0 - x2 * (1.0 / 720.0 - x2 * (1.0 / 40320.0))))
    return math.cos(math.sqrt(x2))


@of_sizes(3, 4)
@tiny
def exp_quaternion(w, out):
    """The unit quaternion ``(cos(|w|/2), sin(|w|/2) w/|w|)`` of a rotation vector; w (3,), out (4,).

    [Notes], eq. 11.177, where w is Omega and theta its norm.
    """
    x2 = 0.25 * dot(w, w)
    s = 0.5 * sine_ratio(x2)
    out[1], out[2], out[3] = s * w[0], s * w[1], s * w[2]
    out[0] = cosine(x2)


@of_sizes(3, 9)
@tiny
def exp_rotation(w, out):
    """``out = exp(w~) = 1 + sin(theta)/theta w~ + (1 - cos(theta))/theta^2 w~^2`` with ``theta = |w|``; w (3,), out (9,).

    [Notes], eq. 11.102, which has the sign of the last term wrong.
    """
    t2 = dot(w, w)
    s = sine_ratio(0.25 * t2)
    _skew_polynomial(w, sine_ratio(t2), 0.5 * s * s, out)


@of_sizes(9, 4)
@tiny
def quaternion_of(R, out):
    """A unit quaternion with ``Phi(out) = R``, from its largest component; R (9,) a rotation matrix by rows, out (4,)."""
    # four times the square of each component; the largest one as the divisor does not cancel
    s0, s1 = 1.0 + R[0] + R[4] + R[8], 1.0 + R[0] - R[4] - R[8]
    s2, s3 = 1.0 - R[0] + R[4] - R[8], 1.0 - R[0] - R[4] + R[8]
    a1, a2, a3 = R[7] - R[5], R[2] - R[6], R[3] - R[1]
    b1, b2, b3 = R[5] + R[7], R[6] + R[2], R[1] + R[3]
    largest = max(s0, s1, s2, s3)
    if s0 == largest:
        out[0], out[1], out[2], out[3] = s0, a1, a2, a3
    elif s1 == largest:
        out[0], out[1], out[2], out[3] = a1, s1, b3, b2
    elif s2 == largest:
        out[0], out[1], out[2], out[3] = a2, b3, s2, b1
    else:
        out[0], out[1], out[2], out[3] = a3, b2, b1, s3
    normalise(out)


@of_sizes(4, 3)
@tiny
def log_quaternion(p, out):
    """The rotation vector, ``|out| <= pi``, of a unit quaternion; the same for p and -p; p (4,), out (3,)."""
    sine2 = p[1] * p[1] + p[2] * p[2] + p[3] * p[3]
    factor = 2.0 * _arc_ratio(sine2)
    if sine2 >= 0.01:
        sine = math.sqrt(sine2)
        factor = 2.0 * math.atan2(sine, abs(p[0])) / sine
    if p[0] < 0.0:
        factor = -factor
    out[0], out[1], out[2] = factor * p[1], factor * p[2], factor * p[3]


@of_sizes(9, 3)
@tiny
def log_rotation(R, out):
    """The rotation vector, ``|out| <= pi``, of a rotation matrix by rows, ``exp(out~) = R``; R (9,), out (3,)."""
    p = stack(4)
    quaternion_of(R, p)
    log_quaternion(p, out)


@of_sizes(3, 9)
@tiny
def dexp(w, out):
    """``omega = out wdot`` is the inertial angular velocity of ``R = exp(w~)`` ([Notes], eq. 11.108, 11.112); w (3,), out (9,).

    The one in axes of the body is ``Omega = dexp(-w) wdot = dexp(w)^T wdot``.
    """
    t2 = dot(w, w)
    s = sine_ratio(0.25 * t2)
    _skew_polynomial(w, 0.5 * s * s, sine_remainder(t2), out)


@of_sizes(3, 9)
@tiny
def dexp_inverse(w, out):
    """``wdot = out omega`` for the inertial angular velocity omega of ``R = exp(w~)``, the inverse of `dexp`; w (3,), out (9,).

    ``1 - w~/2 + (1 - theta/2 cot(theta/2)) / theta^2 w~^2`` with ``theta = |w|``, singular where theta is a multiple of 2 pi.
    """
    _skew_polynomial(w, -0.5, cotangent_remainder(0.25 * dot(w, w)), out)


@of_sizes(4, 3, 4)
@tiny
def advance(p, w, out):
    """``out = p . exp(w)``: the quaternion p after a rotation by the rotation vector w, in axes of the body; p and out (4,), w (3,).

    The step of the Lie group with ``w = h Omega`` ([Notes], eq. 11.171). The result is normalised: ``|out| = 1`` but for rounding.
    """
    turn = stack(4)
    exp_quaternion(w, turn)
    product(p, turn, out)
    normalise(out)


@of_sizes(3, 3)
@tiny
def perpendicular(n, out):
    """A unit vector orthogonal to n, always the same for the same n; n (3,) not zero, out (3,)."""
    n1, n2, n3 = n[0], n[1], n[2]
    least = min(abs(n1), abs(n2), abs(n3))
    if abs(n1) == least:  # n times the axis that is furthest from it
        out[0], out[1], out[2] = 0.0, n3, -n2
    elif abs(n2) == least:
        out[0], out[1], out[2] = -n3, 0.0, n1
    else:
        out[0], out[1], out[2] = n2, -n1, 0.0
    scale = 1.0 / norm(out)
    out[0], out[1], out[2] = scale * out[0], scale * out[1], scale * out[2]


@of_sizes(4, 3, 12)
@tiny
def moment_gradient(p, m, out):
    """The derivative by p of ``Phi(p)^T m``, a given inertial moment in axes of the body; p (4,), m (3,), out (12,) by rows (3, 4).

    ``M = m - 2 p0 u x m + 2 u (u.m) - 2 |u|^2 m`` with u = (p1, p2, p3). [Notes], eq. 11.227 corrected: that is for Phi(p) m, with slips.
    """
    # derivatives by p0 in column 0, then by p1 to p3, each written out
    p0, p1, p2, p3 = p[0], p[1], p[2], p[3]
    m1, m2, m3 = m[0], m[1], m[2]
    s = p1 * m1 + p2 * m2 + p3 * m3
    out[0], out[4], out[8] = 2.0 * (p3 * m2 - p2 * m3), 2.0 * (p1 * m3 - p3 * m1), 2.0 * (p2 * m1 - p1 * m2)
    out[1] = 2.0 * (s + p1 * m1) - 4.0 * p1 * m1
    out[2] = 2.0 * (p1 * m2 - p0 * m3) - 4.0 * p2 * m1
    out[3] = 2.0 * (p1 * m3 + p0 * m2) - 4.0 * p3 * m1
    out[5] = 2.0 * (p2 * m1 + p0 * m3) - 4.0 * p1 * m2
    out[6] = 2.0 * (s + p2 * m2) - 4.0 * p2 * m2
    out[7] = 2.0 * (p2 * m3 - p0 * m1) - 4.0 * p3 * m2
    out[9] = 2.0 * (p3 * m1 - p0 * m2) - 4.0 * p1 * m3
    out[10] = 2.0 * (p3 * m2 + p0 * m1) - 4.0 * p2 * m3
    out[11] = 2.0 * (s + p3 * m3) - 4.0 * p3 * m3
