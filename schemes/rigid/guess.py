"""Residual of a contact problem at the impulses of the last step or iteration, evaluated without its matrix.

Most steps at rest, in rolling and in sliding have the impulses of the last one as their solution. Velocities show that at a cost linear
in the number of contacts, where the matrix costs its square.
"""

import math

from nsds._jit import kernel, tiny, view
from nsds.collision import WORLD
from nsds.maths.vectors import norm
from nsds.schemes.rigid import blocks
from nsds.schemes.rigid import collisions as contacts
from nsds.solvers.contact.signature import EQUATION, Cone, law_error

_LEAST = 2.0**-400  # of the sum of squares of q: below it squares of residuals may be subnormal
_ROUNDING = 4.0 * 2.0**-52  # of each term of a sum
STEADY = 0.1  # of the tolerance: change of velocity in a step of contacts among which many impulses are solutions


@kernel
def error(aim, n, collisions, p, memory):
    """(At least the `merit` of n contacts with impulses r, whose sum is p, infinity where rounding may hide more than aim; change).

    u is that of ``w_free + M_hat^-1 p``, and scales are bounded by norms, ``|W_ij| <= ||H_i|| ||M_hat^-1|| ||H_j||``. change: of the
    normal velocities of closed contacts, relative likewise. Impulses that have corrected a velocity in the last step would change it
    again: those are kept whose change is at most `STEADY` of the tolerance. Out: u, rhs. Work: w_end, reach.
    """
    work, iwork = memory.work, memory.iwork
    d, m, s, size, hidden, change, has_equations = p.d, p.n_bodies, 0.0, 0.0, 0.0, 0.0, False
    inverse, w_free, w = view(work, p.inverse, p.stride * m), view(work, p.w_free, 6 * m), view(work, p.w_end, 6 * m)
    q, r, u, mu = view(work, p.rhs, d * n), view(work, p.r, d * n), view(work, p.u, d * n), view(work, p.mu, 2 * n)
    # 1. velocities of the bodies by the guess
    blocks.multiply_inverse(m, p.stride, inverse, view(work, p.p, 6 * m), w)
    for i in range(6 * m):
        w[i] += w_free[i]
    longest = 0.0  # of the angular parts of H: levers, and lengths of axes of moments
    for c in range(n if d == 5 else 0):
        longest = max(longest, contacts.length_of_moments(c, p, work) ** 2)
    for c in range(2 * n):
        x, y, z = work[p.lever + 3 * c], work[p.lever + 3 * c + 1], work[p.lever + 3 * c + 2]
        longest = max(longest, x * x + y * y + z * z)
    _bound_bodies(n, math.sqrt(longest), inverse, w_free, p, work)
    # 2. residual of each law, at velocities with and without the guess
    for c in range(n):
        each = collisions[iwork[p.which + p.n_contacts + iwork[p.place + c]]].each
        a, b, disk, at = iwork[p.body + 2 * c], iwork[p.body + 2 * c + 1], iwork[p.disk + c], d * c
        of_point = of_turn = terms = 0.0
        frame, lever = view(work, p.frame + 9 * c, 9), view(work, p.lever + 6 * c, 6)
        contacts.relative_velocity(each, a, b, frame, lever, w_free, view(q, at, d))
        contacts.relative_velocity(each, a, b, frame, lever, w, view(u, at, d))
        length = contacts.length_of_moments(c, p, work) if d == 5 else 0.0
        for k in range(at + 3, at + each):
            q[k], u[k] = length * q[k], length * u[k]
        has_equations = has_equations or disk == EQUATION
        # an active contact whose velocity jumps is being corrected: not steady
        if r[at] > 0.0:
            change += (u[at] - contacts.normal_velocity(a, b, view(frame, 0, 3), lever, view(work, p.w, 6 * m))) ** 2
        # components beyond those of the law are padding
        for k in range(d):
            q[at + k] = q[at + k] + work[p.b + at + k] if k < each else 0.0
            u[at + k] = u[at + k] + work[p.b + at + k] if k < each else 0.0
            size += q[at + k] ** 2
            s += 0.0 * u[at + k]
        # bounds on |W_ij|, which the matrix would give exactly, and on the velocities by all impulses on both bodies
        for side in range(2):
            body = a if side == 0 else b
            if body != WORLD:
                reach, arm = view(work, p.reach + 4 * body, 4), norm(view(lever, 3 * side, 3))
                of_point, of_turn = of_point + reach[0] + reach[1] * arm, of_turn + reach[1] * length
                terms += reach[2] + reach[3] * max(arm, length)
        s += law_error(Cone(d, disk, mu[2 * c], mu[2 * c + 1]), at, (of_point, of_point, of_turn), r, u, 1.0)
        for k in range(1, each):  # of r_T and mu r_N, which cancel where a contact slides
            terms += max(of_point, of_turn) * (abs(r[at + k]) + max(mu[2 * c], mu[2 * c + 1]) * abs(r[at]))
        hidden += terms * terms
    # 3. equations and tiny velocities need the accurate residual of the matrix
    if has_equations or not size > _LEAST:
        return math.inf, math.inf
    size = math.sqrt(size)
    # a residual that rounding may hide is not trusted
    is_sound = _ROUNDING * _ROUNDING * hidden <= aim * aim * size * size
    return math.sqrt(s) / size if is_sound else math.inf, math.sqrt(change) / size


@tiny
def _bound_bodies(n, longest, inverse, w_free, p, work):
    """Bounds ``a + b l`` of velocities of each body at a lever l: by an impulse at the longest lever, and of n times the terms of its own.

    Out: reach (4 each), a and b of both.
    """
    for i in range(p.n_bodies):
        A, reach = view(inverse, p.stride * i, p.stride), view(work, p.reach + 4 * i, 4)
        pushed, turned = n * work[p.impulses + 2 * i], n * work[p.impulses + 2 * i + 1]
        for side in range(2):
            straight, turn = blocks.block_norm(p.stride, A, side, 0), blocks.block_norm(p.stride, A, side, 1)
            reach[side], reach[2 + side] = straight + turn * longest, straight * pushed + turn * turned
            for k in range(6 * i + 3 * side, 6 * i + 3 * side + 3):
                reach[2 + side] += abs(w_free[k])
