"""One contact of two rigid bodies in space: its record, its velocity, what it does to the bodies, and its solution.

All that a sweep reads of a contact lies in one record, in the order of the sweep, and all that it reads of a body in another local.
"""

import math
from typing import NamedTuple

from numba import int64
from numpy.typing import NDArray

from nsds._jit import kernel, specialised, stack, tiny, view
from nsds.maths.dense import cholesky, invert
from nsds.maths.vectors import cross, dot, times, times_transposed
from nsds.solvers.contact import local
from nsds.solvers.contact.signature import EQUATION, Cone, modify, project

BODY = 16  # a body's record: v and omega (6), 1/m, inverse of the angular iteration matrix (9)

# A contact's record: frame (9), levers (6), b (d), mu, mu_r, and its block of W: d² entries by rows, or, with d = 3,
#   W_NN, 1 / W_NN, p = W_NT / W_NN (2), S = W_TT - p W_NN p^T (11, 12, 22), 1 / det S (0: to be solved the slow way).
# With d = 5 the axes of its moments (6) lie behind them, 1 / W_NN (0: to be solved the slow way), p = W_NO / W_NN (4) and S^-1 (4, 4) with
# S = W_OO - W_NN p p^T, where O stands for T and R.
LEVER, B_AT, SOLVED_AT, AXES, ROLLING_AT = 9, 15, 27, 47, 53
SCRATCH = 45 + local.SCRATCH  # of one contact: u, r, new r, q (5 each), a block of W (25)
STEPS = 4
STRAIGHT = 1e-3  # angle up to which the next step of Newton would change nothing that counts
_PROJECTIONS, _AT_REST = 20, 1e-10  # of a contact whose slip is frozen, and the change of r, relative to r, after which there are no more

# int64(3) is a number for numba, 3 a type of its own, for which what is called would be compiled once more
_D = 3  # components of a contact; bound by `specialised`


class State(NamedTuple):
    """State that relaxing a contact reads and changes; contacts come first, general blocks behind them."""

    disk: NDArray  # (n,)
    R: NDArray  # records of the contacts
    ids: NDArray  # (2 n,): bodies, of which the world is the last
    B: NDArray  # records of the bodies and the world
    S: NDArray  # (n,): slip, where it is frozen
    r: NDArray  # (n d,)
    r_before: NDArray  # (n d,): r before the last sweep
    L: NDArray  # records of contacts side by side, see `lanes`,
    alike: NDArray  # (n,): 1 for the first of some of these


@tiny
def record_size(d):
    """Floats of a contact's record."""
    return 28 if d == 3 else 74


@tiny
def mean_of_record(d, k, R):
    """Mean of the diagonal of the block of the contact at R[k]."""
    if d == 3:
        return (R[k + 20] * (1.0 + R[k + 22] ** 2 + R[k + 23] ** 2) + R[k + 24] + R[k + 26]) / 3.0
    return (R[k + 22] + R[k + 28] + R[k + 34] + R[k + 40] + R[k + 46]) / 5.0


@tiny
def _point_velocity(B, i, lever, out):
    """``v + omega × l`` of the body at B[i]."""
    cross(view(B, i + 3, 3), lever, out)
    for a in range(3):
        out[a] += B[i + a]


def _velocity(k, i, j, R, B):
    """``u - b`` of the contact at R[k] between the bodies at B[i] and B[j]: N, T1, T2, and R1, R2."""
    x, other, u = stack(3), stack(3), stack(3)
    _point_velocity(B, i, view(R, k + LEVER, 3), x)
    _point_velocity(B, j, view(R, k + LEVER + 3, 3), other)
    for a in range(3):
        x[a] -= other[a]
    times(view(R, k, 9), x, u)
    if _D == 3:
        return u[0], u[1], u[2], 0.0, 0.0
    for a in range(3):
        x[a] = B[i + 3 + a] - B[j + 3 + a]
    return u[0], u[1], u[2], dot(view(R, k + AXES, 3), x), dot(view(R, k + AXES + 3, 3), x)


@tiny
def _push(B, i, lever, P, M):
    """``v += P / m``, ``omega += I^-1 (l × P + M)`` for the body at B[i]."""
    L = stack(3)
    cross(lever, P, L)
    for a in range(3):
        L[a] += M[a]
        B[i + a] += B[i + 6] * P[a]
    times(view(B, i + 7, 9), L, L)
    for a in range(3):
        B[i + 3 + a] += L[a]


def _act(k, i, j, R, B, r_0, r_1, r_2, r_3, r_4):
    """The reaction r of the contact at R[k] acts with + on the body at B[i], with - on that at B[j]; the world is the last body."""
    P, M = stack(3), stack(3)
    P[0], P[1], P[2] = r_0, r_1, r_2
    times_transposed(view(R, k, 9), P, P)
    for a in range(3):
        M[a] = R[k + AXES + a] * r_3 + R[k + AXES + 3 + a] * r_4 if _D == 5 else 0.0
    if i != B.size - BODY:
        _push(B, i, view(R, k + LEVER, 3), P, M)
    if j != B.size - BODY:
        for a in range(3):
            P[a], M[a] = -P[a], -M[a]
        _push(B, j, view(R, k + LEVER + 3, 3), P, M)


velocity_3, velocity_5 = (tiny(specialised(_velocity, str(d), _D=d)) for d in (3, 5))
act_3, act_5 = (tiny(specialised(_act, str(d), _D=d)) for d in (3, 5))


@kernel
def _pack_block(W, R, k):
    """The block W (3, 3) to the record at R[k], symmetric: it is made to by an even share."""
    w = W[0]
    p_1, p_2 = (0.5 * (W[1] + W[3]) / w, 0.5 * (W[2] + W[6]) / w) if w > 0.0 else (0.0, 0.0)
    S_11, S_12, S_22 = W[4] - w * p_1 * p_1, 0.5 * (W[5] + W[7]) - w * p_1 * p_2, W[8] - w * p_2 * p_2
    determinant = S_11 * S_22 - S_12 * S_12
    R[k + 20], R[k + 21], R[k + 22], R[k + 23] = w, 1.0 / w if w > 0.0 else 0.0, p_1, p_2
    R[k + 24], R[k + 25], R[k + 26] = S_11, S_12, S_22
    R[k + 27] = 1.0 / determinant if w > 0.0 and S_11 > 0.0 and determinant > 1e-12 * W[4] * W[8] else 0.0


_invert_4 = kernel(specialised(invert, "4", _N=4))


@kernel
def _pack_rolling(W, out):
    """1 / W_NN, p and S^-1 of the symmetric part of the block W (5, 5); 1 / W_NN is 0 where W is not positive definite. Out: (21,)."""
    w, p, S, L, regular = W[0], view(out, 1, 4), stack(16), stack(16), W[0] > 0.0
    for a in range(4):
        p[a] = 0.5 * (W[a + 1] + W[5 * (a + 1)]) / w if regular else 0.0
    for a in range(4):
        for e in range(4):
            S[4 * a + e] = L[4 * a + e] = _schur_entry(W, 0, p, a, e)
    regular = regular and cholesky(4, 4, 1e-12, L) == 4 and _invert_4(S, view(out, 5, 16))
    out[0] = 1.0 / w if regular else 0.0


@tiny
def _schur_entry(W, k, p, a, e):
    """S of `_pack_rolling`, of the block at W[k]."""
    at = k + 5 * (a + 1) + 1 + e
    return 0.5 * (W[at] + W[k + 5 * (e + 1) + 1 + a]) - W[k] * p[a] * p[e]


@tiny
def _add_block(d, m, arm, W):
    """``W += H M^-1 H^T`` of one body with the inverse m (10,); arm (3 d,): levers of the d axes of a contact, by which it is turned."""
    turned = stack(3)
    for e in range(d):
        times(view(m, 1, 9), view(arm, 3 * e, 3), turned)
        for a in range(d):
            W[a * d + e] += dot(view(arm, 3 * a, 3), turned)
        if e < 3:
            W[e * (d + 1)] += m[0]


@kernel
def build_record(c, p, R, ids):
    """The record of contact c of a `rigid.Problem`; a body that cannot be moved is the world from here on, with its velocity in b.

    Out: R, ids.
    """
    d, body, frame, lever, inverse, v_free = p.d, p.body, p.frame, p.lever, p.inverse, p.v_free
    k, world, W, arm, own = c * record_size(d), inverse.size // 10, stack(25), stack(15), view(frame, 9 * c, 9)
    for a in range(9):
        R[k + a] = frame[9 * c + a]
    for a in range(6):
        R[k + LEVER + a] = lever[6 * c + a]
    for a in range(25):
        W[a] = 0.0
    for a in range(d):
        R[k + B_AT + a] = p.b[d * c + a]
    R[k + B_AT + d], R[k + B_AT + d + 1] = p.mu[2 * c], p.mu[2 * c + 1]
    for side in range(2):
        i, sign, l = body[2 * c + side], 1.0 - 2.0 * side, view(lever, 6 * c + 3 * side, 3)
        ids[2 * c + side] = world
        if i < 0:
            continue
        m, size = view(inverse, 10 * i, 10), 0.0
        for a in range(3):
            cross(l, view(own, 3 * a, 3), view(arm, 3 * a, 3))
        for a in range(6 if d == 5 else 0):
            arm[9 + a] = p.axes[6 * c + a]
        for a in range(10):
            size += abs(m[a])
        if size == 0.0:
            for a in range(d):
                for x in range(3):
                    along = own[3 * a + x] * v_free[6 * i + x] if a < 3 else 0.0
                    R[k + B_AT + a] += sign * (along + arm[3 * a + x] * v_free[6 * i + 3 + x])
            continue
        ids[2 * c + side] = i
        if d == 3:
            _add_block(int64(3), m, arm, W)
        else:
            _add_block(int64(5), m, arm, W)
    if d == 5:
        # a moment without an axis is padding, u = W r
        W[24] = W[24] if W[24] > 0.0 else W[18]
        for a in range(25):
            R[k + 22 + a] = W[a]
        for a in range(6):
            R[k + AXES + a] = p.axes[6 * c + a]
        _pack_rolling(W, view(R, k + ROLLING_AT, 21))
        if p.disk[c] != 2:
            R[k + ROLLING_AT] = 0.0
    else:
        _pack_block(W, R, k)
        if p.disk[c] != 2:
            R[k + 27] = 0.0


@tiny
def _slide(mu, S_11, S_12, S_22, p_1, p_2, c_0, g_1, g_2, c, s):
    """(c, s, r_N, alpha): sliding near the direction t = (c, s), by Newton on ``t⊥ u_T (1 + mu p t) = 0``; alpha -inf: not found.

    With u_N = 0 eliminated, ``r_N = c_0 / (1 + mu p t)`` and ``u_T = mu r_N S t + g``: what `quartic` solves ([Notes], eq. 15.15).
    """
    for _ in range(STEPS):
        n, across = 1.0 + mu * (p_1 * c + p_2 * s), c * g_2 - s * g_1
        value = mu * c_0 * (S_12 * (c * c - s * s) + (S_22 - S_11) * (c * s)) + n * across
        slope = mu * (c_0 * ((S_22 - S_11) * (c * c - s * s) - 4.0 * S_12 * (c * s)) + (c * p_2 - s * p_1) * across)
        slope -= n * (c * g_1 + s * g_2)
        step = value / slope if value != 0.0 else 0.0
        small = abs(step) <= STRAIGHT
        c, s = c + step * s, s - step * c
        size = 1.0 - 0.5 * step * step if small else 1.0 / math.sqrt(c * c + s * s)
        c, s = size * c, size * s
        if small:
            r_n = c_0 / (1.0 + mu * (p_1 * c + p_2 * s))
            alpha = -(c * g_1 + s * g_2) - mu * r_n * (S_11 * c * c + 2.0 * S_12 * (c * s) + S_22 * s * s)
            return c, s, r_n, alpha
    return c, s, -1.0, -math.inf


@kernel
def _unpack_block(d, R, k, W):
    """Out: W (d, d) of the contact at R[k]."""
    if d == 5:
        for a in range(25):
            W[a] = R[k + 22 + a]
        return
    w, p_1, p_2 = R[k + 20], R[k + 22], R[k + 23]
    W[0], W[1], W[2] = w, w * p_1, w * p_2
    W[3], W[4], W[5] = W[1], R[k + 24] + W[1] * p_1, R[k + 25] + W[1] * p_2
    W[6], W[7], W[8] = W[2], W[5], R[k + 26] + W[2] * p_2


@tiny
def _by_law(cone, trace, q, new, W, scratch):
    """Solves ``u = W r + q`` for r, as good as without memory of the sweep. In: new, the guess; out: new. trace: of W."""
    if cone.disk != EQUATION and (trace == 0.0 or q[0] >= 0.0):
        for a in range(cone.d):
            new[a] = 0.0
    else:
        local.solve_contact(local.AUTO, cone, W, int64(0), q, new, scratch)


@tiny
def extrapolate(d, at, beta, r, r_before, now):
    """``r + beta (r - r_before)`` of the d components from ``at`` on. In/out: r_before; out: now (d,)."""
    for a in range(d):
        r_a = r[at + a]
        now[a] = r_a + beta * (r_a - r_before[at + a])
        r_before[at + a] = r_a


@tiny
def follow(gain, c, cone, u, S):
    """``S_c <- S_c + gain (mu ||u_T|| + mu_r ||u_R|| - S_c)``."""
    S[c] += gain * (modify(cone, 0, u) - S[c])


@kernel
def solve_slowly(d, disk, R, k, scratch):
    """The contact at R[k] by `_by_law`. In: u, r; out: new r, all in scratch."""
    u, r, new, q, W = view(scratch, 0, 5), view(scratch, 5, 5), view(scratch, 10, 5), view(scratch, 15, 5), view(scratch, 20, 25)
    _unpack_block(d, R, k, W)
    trace = 0.0
    for a in range(d):
        new[a], q[a] = r[a], u[a]
        trace += abs(W[a * (d + 1)])
        for e in range(d):
            q[a] -= W[a * d + e] * r[e]
    cone = Cone(d, disk, R[k + B_AT + d], R[k + B_AT + d + 1])
    _by_law(cone, trace, q, new, W, view(scratch, 45, local.SCRATCH))


@tiny
def relax_3(c, beta, gain, s, scratch):
    """Solves contact c from ``r + beta (r - r_before)``; its change times itself and times the way from r, both times ``W_NN^2``.

    gain: not used. In/out: B, r, r_before of s.
    """
    R, B, r, r_before = s.R, s.B, s.r, s.r_before
    k, i, j = c * 28, s.ids[2 * c] * BODY, s.ids[2 * c + 1] * BODY
    u_0, u_1, u_2, _, _ = velocity_3(k, i, j, R, B)
    u_0, u_1, u_2 = u_0 + R[k + 15], u_1 + R[k + 16], u_2 + R[k + 17]
    r_0, r_1, r_2 = r[3 * c], r[3 * c + 1], r[3 * c + 2]
    b_0, b_1, b_2 = r_before[3 * c], r_before[3 * c + 1], r_before[3 * c + 2]
    r_before[3 * c], r_before[3 * c + 1], r_before[3 * c + 2] = r_0, r_1, r_2
    r_0, r_1, r_2 = r_0 + beta * (r_0 - b_0), r_1 + beta * (r_1 - b_1), r_2 + beta * (r_2 - b_2)
    mu, W_n, W_inverse, p_1, p_2 = R[k + 18], R[k + 20], R[k + 21], R[k + 22], R[k + 23]
    q_n = u_0 - W_n * (r_0 + (p_1 * r_1 + p_2 * r_2))
    solved, n_0, n_1, n_2 = R[k + 27] != 0.0, 0.0, 0.0, 0.0
    if solved and q_n < 0.0:
        S_11, S_12, S_22, over = R[k + 24], R[k + 25], R[k + 26], R[k + 27]
        g_1, g_2 = u_1 - p_1 * u_0, u_2 - p_2 * u_0
        d_1, d_2 = over * (S_22 * g_1 - S_12 * g_2), over * (S_11 * g_2 - S_12 * g_1)  # sticking: r - W^-1 u
        n_0, n_1, n_2 = r_0 - W_inverse * u_0 + (p_1 * d_1 + p_2 * d_2), r_1 - d_1, r_2 - d_2
        if not (n_0 >= 0.0 and n_1 * n_1 + n_2 * n_2 <= (mu * n_0) ** 2):
            rho = 2.0 / (S_11 + S_22)
            t_1, t_2 = r_1 - rho * g_1, r_2 - rho * g_2  # exact where S is a multiple of 1 and p = 0, or nothing changes
            size = math.sqrt(t_1 * t_1 + t_2 * t_2)
            t_1, t_2 = (t_1 / size, t_2 / size) if size > 0.0 else (1.0, 0.0)
            g_1, g_2 = g_1 - (S_11 * r_1 + S_12 * r_2), g_2 - (S_12 * r_1 + S_22 * r_2)
            t_1, t_2, n_0, alpha = _slide(mu, S_11, S_12, S_22, p_1, p_2, -q_n * W_inverse, g_1, g_2, t_1, t_2)
            n_1, n_2 = mu * n_0 * t_1, mu * n_0 * t_2
            solved = 0.0 <= n_0 < math.inf and alpha >= 0.0
    if not solved:
        scratch[0], scratch[1], scratch[2] = u_0, u_1, u_2
        scratch[5], scratch[6], scratch[7] = r_0, r_1, r_2
        solve_slowly(int64(3), s.disk[c], R, k, scratch)
        n_0, n_1, n_2 = scratch[10], scratch[11], scratch[12]
    r[3 * c], r[3 * c + 1], r[3 * c + 2] = n_0, n_1, n_2
    b_0, b_1, b_2 = n_0 - r_before[3 * c], n_1 - r_before[3 * c + 1], n_2 - r_before[3 * c + 2]
    n_0, n_1, n_2 = n_0 - r_0, n_1 - r_1, n_2 - r_2
    act_3(k, i, j, R, B, n_0, n_1, n_2, 0.0, 0.0)
    return (n_0 * n_0 + n_1 * n_1 + n_2 * n_2) * (W_n * W_n), (n_0 * b_0 + n_1 * b_1 + n_2 * b_2) * (W_n * W_n)


# ------------------------------------------------------------------------------------------------------------------ rolling friction


@tiny
def _one_slides(pair, k, R, star, r, new):
    """A contact of which the tangents (pair 0) slide and moments stick, or moments (pair 2) roll and tangents stick; False: there is none.

    star: r of sticking; r: the guess. As sticking, ``u_R = 0`` gives ``u_T = A (r_T - star_T)``, ``r_R = star_R - C^T (r_T - star_T)`` and
    ``r_N = star_N - p' (r_T - star_T)`` with ``A = (S^-1)_TT^-1``, ``C = S_TR S_RR^-1`` and ``p' = p_T - C p_R``. Out: new.
    """
    mu, mu_other = (R[k + 20], R[k + 21]) if pair == 0 else (R[k + 21], R[k + 20])
    p, X, other = view(R, k + ROLLING_AT + 1, 4), view(R, k + ROLLING_AT + 5, 16), 2 - pair
    x_11, x_12, x_22 = X[5 * pair], X[5 * pair + 1], X[5 * pair + 5]
    over = 1.0 / (x_11 * x_22 - x_12 * x_12)
    A_11, A_12, A_22 = over * x_22, -over * x_12, over * x_11
    # 1. what sticks, eliminated
    at = 4 * pair + other
    C_11, C_12 = -(A_11 * X[at] + A_12 * X[at + 4]), -(A_11 * X[at + 1] + A_12 * X[at + 5])
    C_21, C_22 = -(A_12 * X[at] + A_22 * X[at + 4]), -(A_12 * X[at + 1] + A_22 * X[at + 5])
    p_1, p_2 = p[pair] - (C_11 * p[other] + C_12 * p[other + 1]), p[pair + 1] - (C_21 * p[other] + C_22 * p[other + 1])
    s_1, s_2 = star[1 + pair], star[2 + pair]
    # 2. the direction, from that of the guess
    d_1, d_2, rho = r[1 + pair] - s_1, r[2 + pair] - s_2, 2.0 / (A_11 + A_22)
    t_1, t_2 = r[1 + pair] - rho * (A_11 * d_1 + A_12 * d_2), r[2 + pair] - rho * (A_12 * d_1 + A_22 * d_2)
    t_1, t_2 = _direction(t_1, t_2)
    g_1, g_2 = -(A_11 * s_1 + A_12 * s_2), -(A_12 * s_1 + A_22 * s_2)
    t_1, t_2, n, alpha = _slide(mu, A_11, A_12, A_22, p_1, p_2, star[0] + p_1 * s_1 + p_2 * s_2, g_1, g_2, t_1, t_2)
    # 3. all of r
    new[0], new[1 + pair], new[2 + pair] = n, mu * n * t_1, mu * n * t_2
    d_1, d_2 = new[1 + pair] - s_1, new[2 + pair] - s_2
    new[1 + other] = star[1 + other] - (C_11 * d_1 + C_21 * d_2)
    new[2 + other] = star[2 + other] - (C_12 * d_1 + C_22 * d_2)
    within = new[1 + other] ** 2 + new[2 + other] ** 2 <= (mu_other * n) ** 2
    return 0.0 <= n < math.inf and alpha >= 0.0, within


@tiny
def _direction(x, y):
    """(x, y) of length 1; (1, 0) of none."""
    size = math.sqrt(x * x + y * y)
    return (x / size, y / size) if size > 0.0 else (1.0, 0.0)


@kernel
def _both_slide(c_0, k, R, star, u, r, new):
    """A contact whose tangents slide and moments roll: (alpha of these, of those), ``u_T = -alpha t``; both -inf: none found. Out: new.

    By Newton on the components of u across t and s: ``u = c_0 S y / n + h`` with ``y = (mu t, mu_r s)``, ``n = 1 + p y``, ``h = -S star``.
    """
    mu, mu_r, p = R[k + 20], R[k + 21], view(R, k + ROLLING_AT + 1, 4)
    S, h, z, x, y = stack(16), stack(4), stack(4), stack(4), stack(4)
    for a in range(4):
        h[a] = 0.0
        for e in range(4):
            S[4 * a + e] = _schur_entry(R, k + 22, p, a, e)
            h[a] -= S[4 * a + e] * star[1 + e]
    # 1. directions, from the guess: of t, then of s beside tangents that slide
    for a in range(4):
        z[a] = u[1 + a] - p[a] * u[0]
    for pair in range(0, 4, 2):
        rho, size = 2.0 / (S[5 * pair] + S[5 * pair + 5]), c_0 * (mu if pair == 0 else mu_r)
        x[pair], x[pair + 1] = _direction(r[1 + pair] - rho * z[pair], r[2 + pair] - rho * z[pair + 1])
        for a in range(4):
            z[a] += S[4 * a + pair] * (size * x[pair] - r[1 + pair]) + S[4 * a + pair + 1] * (size * x[pair + 1] - r[2 + pair])
    n, is_found = 1.0, False
    for step in range(STEPS + 1):
        # 2. n times u
        n = 1.0
        for a in range(4):
            y[a] = (mu if a < 2 else mu_r) * x[a]
            n += p[a] * y[a]
        for a in range(4):
            z[a] = n * h[a]
            for e in range(4):
                z[a] += c_0 * S[4 * a + e] * y[e]
        if is_found or step == STEPS:
            break
        # 3. its derivatives by both angles, of components across
        J_11, J_21 = _across(mu, 0, c_0, S, p, h, x)
        J_12, J_22 = _across(mu_r, 2, c_0, S, p, h, x)
        J_11, J_22 = J_11 - (x[0] * z[0] + x[1] * z[1]), J_22 - (x[2] * z[2] + x[3] * z[3])
        f_1, f_2, det = x[0] * z[1] - x[1] * z[0], x[2] * z[3] - x[3] * z[2], J_11 * J_22 - J_12 * J_21
        d_1, d_2 = (J_22 * f_1 - J_12 * f_2) / det, (J_11 * f_2 - J_21 * f_1) / det
        is_found = abs(d_1) <= STRAIGHT and abs(d_2) <= STRAIGHT
        x[0], x[1] = _direction(x[0] + d_1 * x[1], x[1] - d_1 * x[0])
        x[2], x[3] = _direction(x[2] + d_2 * x[3], x[3] - d_2 * x[2])
    new[0] = c_0 / n
    for a in range(4):
        new[1 + a] = new[0] * y[a]
    if not (is_found and 0.0 <= new[0] < math.inf):
        return -math.inf, -math.inf
    return -(x[0] * z[0] + x[1] * z[1]), -(x[2] * z[2] + x[3] * z[3])


@tiny
def _across(mu, pair, c_0, S, p, h, x):
    """Derivatives of n u by the angle of the pair's direction: their components across t and across s."""
    e_1, e_2 = -mu * x[pair + 1], mu * x[pair]
    tilt, z = p[pair] * e_1 + p[pair + 1] * e_2, stack(4)
    for a in range(4):
        z[a] = c_0 * (S[4 * a + pair] * e_1 + S[4 * a + pair + 1] * e_2) + tilt * h[a]
    return x[0] * z[1] - x[1] * z[0], x[2] * z[3] - x[3] * z[2]


@kernel
def solve_rolling(k, R, u, r, new):
    """The contact at R[k] by its law, with velocity u at the guess r; False where it is to be solved the slow way. Out: new r.

    Tangents stick or slide and moments stick or roll: what of sticking exceeds its bound slides, then what the result of that asks for.
    """
    w_inverse, mu, mu_r = R[k + ROLLING_AT], R[k + 20], R[k + 21]
    p, X, star, g = view(R, k + ROLLING_AT + 1, 4), view(R, k + ROLLING_AT + 5, 16), stack(5), stack(4)
    # 1. open, or r of sticking
    c_0 = r[0] - w_inverse * u[0]
    for a in range(4):
        c_0 += p[a] * r[1 + a]
        g[a] = u[1 + a] - p[a] * u[0]
    if not (w_inverse > 0.0 and c_0 > 0.0):
        for a in range(5):
            new[a] = 0.0
        return w_inverse > 0.0 and c_0 <= 0.0
    star[0] = c_0
    for a in range(4):
        star[1 + a] = r[1 + a] - (X[4 * a] * g[0] + X[4 * a + 1] * g[1] + X[4 * a + 2] * g[2] + X[4 * a + 3] * g[3])
        star[0] -= p[a] * star[1 + a]
    slides = not (star[0] >= 0.0 and star[1] ** 2 + star[2] ** 2 <= (mu * star[0]) ** 2)
    rolls = not (star[0] >= 0.0 and star[3] ** 2 + star[4] ** 2 <= (mu_r * star[0]) ** 2)
    if not slides and not rolls:
        for a in range(5):
            new[a] = star[a]
        return True
    # 2. what slides
    for _ in range(3):
        if slides and rolls:
            alpha, alpha_r = _both_slide(c_0, k, R, star, u, r, new)
            if (alpha >= 0.0 and alpha_r >= 0.0) or (alpha < 0.0 and alpha_r < 0.0):
                return alpha >= 0.0
            slides, rolls = alpha >= 0.0, alpha_r >= 0.0
        else:
            is_found, within = _one_slides(0 if slides else 2, k, R, star, r, new)
            if within or not is_found:
                return is_found
            slides = rolls = True
    return False


@kernel
def relax_5(c, beta, gain, s, scratch):
    """As `relax_3`, with moments of rolling or spinning friction."""
    R, B, u, now, new = s.R, s.B, view(scratch, 0, 5), view(scratch, 5, 5), view(scratch, 10, 5)
    k, i, j, moved, along = c * record_size(5), s.ids[2 * c] * BODY, s.ids[2 * c + 1] * BODY, 0.0, 0.0
    u[0], u[1], u[2], u[3], u[4] = velocity_5(k, i, j, R, B)
    for a in range(5):
        u[a] += R[k + B_AT + a]
    extrapolate(int64(5), 5 * c, beta, s.r, s.r_before, now)
    if not solve_rolling(k, R, u, now, new):
        solve_slowly(int64(5), s.disk[c], R, k, scratch)
    for a in range(5):
        s.r[5 * c + a] = new[a]
        now[a] = new[a] - now[a]
        moved += now[a] * now[a]
        along += now[a] * (new[a] - s.r_before[5 * c + a])
    act_5(k, i, j, R, B, now[0], now[1], now[2], now[3], now[4])
    return moved * R[k + 22] ** 2, along * R[k + 22] ** 2


# ---------------------------------------------------------------------------------------------------------------------- frozen slip


@kernel
def solve_frozen(cone, W, k, q, r, scratch):
    """``min r W r / 2 + q r`` over the cone of a contact, for the d × d block at W[k]: the law of ``u = W r + q`` with the slip in q_N.

    By projections ``y <- P(y - (W y + q) / L)`` in coordinates in which N, T and R have diagonals of 1; L: the largest sum of a row of W.
    In/out: r (d,). Work: scratch (40,).
    """
    d, disk, mu, mu_r = cone
    s, y, x, A, largest = view(scratch, 0, 5), view(scratch, 5, 5), view(scratch, 10, 5), view(scratch, 15, 25), 0.0
    _diagonal_scales(d, disk, W, k, s)
    for a in range(d):
        y[a], size = r[a] * s[a], 0.0
        for e in range(d):
            A[a * d + e] = W[k + a * d + e] / (s[a] * s[e])
            size += abs(A[a * d + e])
        largest = max(largest, size)
    scaled = Cone(d, disk, mu * s[1] / s[0], mu_r * s[d - 1] / s[0])
    for _ in range(_PROJECTIONS):
        change = size = 0.0
        for a in range(d):
            x[a] = q[a] / s[a]
            for e in range(d):
                x[a] += A[a * d + e] * y[e]
            x[a] = y[a] - x[a] / largest
        project(scaled, 0, x)
        for a in range(d):
            change, size, y[a] = max(change, abs(x[a] - y[a])), max(size, abs(x[a])), x[a]
        if change <= _AT_REST * size:
            break
    for a in range(d):
        r[a] = y[a] / s[a]


@tiny
def _diagonal_scales(d, disk, W, k, s):
    """Roots of the mean diagonals of N, T and R of the block at W[k]; those that vanish are 1."""
    t = view(s, 1, d - 1)
    mean_t = mean_r = 0.0
    for a in range(1, d):
        if a <= disk:
            mean_t += W[k + a * (d + 1)] / disk
        else:
            mean_r += W[k + a * (d + 1)] / (d - 1 - disk)
    for a in range(1, d):
        mean = mean_t if a <= disk else mean_r
        t[a - 1] = math.sqrt(mean) if mean > 0.0 else 1.0
    s[0] = math.sqrt(W[k]) if W[k] > 0.0 else 1.0


def _relax_block(c, beta, gain, s, scratch):
    """As `relax_3` for blocks of any kind with the slip S of the contact frozen, which follows u afterwards, by the share gain of its way.

    In/out: B, S, r, r_before of s.
    """
    R, B = s.R, s.B
    k, i, j, disk = c * record_size(_D), s.ids[2 * c] * BODY, s.ids[2 * c + 1] * BODY, s.disk[c]
    u, now, new, q, W = view(scratch, 0, 5), view(scratch, 5, 5), view(scratch, 10, 5), view(scratch, 15, 5), view(scratch, 20, 25)
    spare = view(scratch, 45, local.SCRATCH)
    _unpack_block(_D, R, k, W)
    u[0], u[1], u[2], u[3], u[4] = _velocity(k, i, j, R, B)
    cone, trace, moved, along = Cone(int64(_D), disk, R[k + B_AT + _D], R[k + B_AT + _D + 1]), 0.0, 0.0, 0.0
    extrapolate(_D, _D * c, beta, s.r, s.r_before, now)
    for a in range(_D):
        new[a] = now[a]
        trace += abs(W[a * (_D + 1)])
        q[a] = u[a] = u[a] + R[k + B_AT + a]
    for a in range(_D):
        for e in range(_D):
            q[a] -= W[a * _D + e] * now[e]
    if disk == EQUATION:
        local.solve_contact(local.AUTO, cone, W, int64(0), q, new, spare)
    elif trace > 0.0:
        q[0] += s.S[c]
        solve_frozen(cone, W, int64(0), q, new, spare)
    for a in range(_D):
        s.r[_D * c + a] = new[a]
        now[a] = new[a] - now[a]
        moved += now[a] * now[a]
        along += now[a] * (new[a] - s.r_before[_D * c + a])
    if disk != EQUATION:
        for a in range(_D):
            for e in range(_D):
                u[a] += W[a * _D + e] * now[e]
        follow(gain, c, cone, u, s.S)
    _act(k, i, j, R, B, now[0], now[1], now[2], now[3], now[4])
    return moved * W[0] ** 2, along * W[0] ** 2


relax_block_3 = kernel(specialised(_relax_block, "3", _D=3, _velocity=velocity_3, _act=act_3))
relax_block_5 = kernel(specialised(_relax_block, "5", _D=5, _velocity=velocity_5, _act=act_5))
