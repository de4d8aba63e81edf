"""Block Gauss–Seidel over contacts of rigid bodies in space: on the velocities of the bodies, without any matrix, and with momentum.

    u_c = frame_c [(v_a + omega_a × l_a) - (v_b + omega_b × l_b)] + b_c,    solve contact c for r_c,    pass the change of r_c on to a and b

With rolling friction, ``t_1 (omega_a - omega_b)`` and ``t_2 (omega_a - omega_b)`` follow in u_c, and moments about t_1 and t_2 in r_c.
Momentum: a sweep begins at ``r + beta (r - r_before)`` with the velocities that belong to it. A settled pile of 1000
spheres takes a quarter to an eighth of the sweeps with it.

All that a sweep reads of a contact lies in one record, in the order of the sweep, and all that it reads of a body in another one.
"""

import math

from numba import float64, int64

from nsds._jit import caller, each, kernel, parallel, specialised, stack, threaded, tiny, view
from nsds.solvers.contact import local as one
from nsds.solvers.contact import slabs
from nsds.solvers.contact.signature import EQUATION, keep_better, natural_map, norm
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, STALLED

_floats, _integers = float64[::1], int64[::1]
# The arguments of `nsgs_rigid`, for those who call it by its address.
SIGNATURE = int64(int64, *(_integers, _integers, _floats, _integers), *(_floats,) * 3, _integers, *(_floats,) * 10, _integers)
call_sweeps = caller(SIGNATURE)

MAX_SWEEPS = 10_000
BODY = 16  # a body's record: v and omega (6), 1/m, inverse of the angular iteration matrix (9)

# A contact's record: frame (9), levers (6), b (d), mu, mu_r, and its block of W: d² entries by rows, or, with d = 3,
#   W_NN, 1 / W_NN, p = W_NT / W_NN (2), S = W_TT - p W_NN p^T (11, 12, 22), 1 / det S (0: to be solved the slow way).
_LEVER, _B = 9, 15
_SCRATCH = 45 + one.SCRATCH  # of one contact: u, r, new r, q (5 each), a block of W (25)
_CHUNKS = 16  # parts in which the loops over all contacts or bodies are handed out
_MOMENTUM = 0.9
_GROWTH, _WAIT = 10.0, 50  # of the change of r beyond its least, and sweeps without a lesser one, after which the bound of beta is lowered
_BACK = 0.004  # of the way that the bound takes back in each sweep
_MEMORY, _STRAIGHT_ON = 0.1, 0.5  # weight of the last change in their mean direction, and from which mean on it is kept
_SPACING = 10  # sweeps between looks at the residual, or a tenth of those done; a twentieth where the changes promise a solution
_PATIENCE = 1000  # sweeps without progress
_STEPS = 4
_STRAIGHT = 1e-3  # angle up to which the next step of Newton would change nothing that counts

# int64(3) is a number for numba, 3 a type of its own, for which what is called would be compiled once more
_D = 3  # components of a contact; bound by `specialised`, like the next ones
_each = range


@tiny
def record_size(d):
    """Floats of a contact's record."""
    return 28 if d == 3 else 48


# ------------------------------------------------------------------------------------------------------------------ bodies and contacts


@tiny
def _point_velocity(B, i, R, k):
    """``v + omega × l`` of the body at B[i], with l at R[k]."""
    return (
        B[i] + (B[i + 4] * R[k + 2] - B[i + 5] * R[k + 1]),
        B[i + 1] + (B[i + 5] * R[k] - B[i + 3] * R[k + 2]),
        B[i + 2] + (B[i + 3] * R[k + 1] - B[i + 4] * R[k]),
    )


def _velocity(k, i, j, R, B):
    """``u - b`` of the contact at R[k] between the bodies at B[i] and B[j]: N, T1, T2, and R1, R2."""
    ax, ay, az = _point_velocity(B, i, R, k + _LEVER)
    bx, by, bz = _point_velocity(B, j, R, k + _LEVER + 3)
    x, y, z = ax - bx, ay - by, az - bz
    u_0 = R[k] * x + R[k + 1] * y + R[k + 2] * z
    u_1 = R[k + 3] * x + R[k + 4] * y + R[k + 5] * z
    u_2 = R[k + 6] * x + R[k + 7] * y + R[k + 8] * z
    if _D == 3:
        return u_0, u_1, u_2, 0.0, 0.0
    x, y, z = B[i + 3] - B[j + 3], B[i + 4] - B[j + 4], B[i + 5] - B[j + 5]
    return u_0, u_1, u_2, R[k + 3] * x + R[k + 4] * y + R[k + 5] * z, R[k + 6] * x + R[k + 7] * y + R[k + 8] * z


@tiny
def _push(B, i, x, y, z, a, b, c):
    """``v += P / m``, ``omega += I^-1 L`` for the body at B[i], the impulse P = (x, y, z) and the moment L = (a, b, c)."""
    B[i] += B[i + 6] * x
    B[i + 1] += B[i + 6] * y
    B[i + 2] += B[i + 6] * z
    B[i + 3] += B[i + 7] * a + B[i + 8] * b + B[i + 9] * c
    B[i + 4] += B[i + 10] * a + B[i + 11] * b + B[i + 12] * c
    B[i + 5] += B[i + 13] * a + B[i + 14] * b + B[i + 15] * c


def _act(k, i, j, R, B, r_0, r_1, r_2, r_3, r_4):
    """The reaction r of the contact at R[k] acts with + on the body at B[i], with - on that at B[j]; the world is the last body."""
    x = R[k] * r_0 + R[k + 3] * r_1 + R[k + 6] * r_2
    y = R[k + 1] * r_0 + R[k + 4] * r_1 + R[k + 7] * r_2
    z = R[k + 2] * r_0 + R[k + 5] * r_1 + R[k + 8] * r_2
    mx = my = mz = 0.0
    if _D == 5:
        mx, my, mz = R[k + 3] * r_3 + R[k + 6] * r_4, R[k + 4] * r_3 + R[k + 7] * r_4, R[k + 5] * r_3 + R[k + 8] * r_4
    if i != B.size - BODY:
        lx, ly, lz = R[k + _LEVER], R[k + _LEVER + 1], R[k + _LEVER + 2]
        _push(B, i, x, y, z, mx + (ly * z - lz * y), my + (lz * x - lx * z), mz + (lx * y - ly * x))
    if j != B.size - BODY:
        lx, ly, lz = R[k + _LEVER + 3], R[k + _LEVER + 4], R[k + _LEVER + 5]
        _push(B, j, -x, -y, -z, (lz * y - ly * z) - mx, (lx * z - lz * x) - my, (ly * x - lx * y) - mz)


_velocity_3, _velocity_5 = (tiny(specialised(_velocity, str(d), _D=d)) for d in (3, 5))
_act_3, _act_5 = (tiny(specialised(_act, str(d), _D=d)) for d in (3, 5))


# ------------------------------------------------------------------------------------------------------------------ one contact


@tiny
def _slide(mu, S_11, S_12, S_22, p_1, p_2, c_0, g_1, g_2, c, s):
    """(c, s, r_N, alpha): sliding near the direction t = (c, s), by Newton on ``t⊥ u_T (1 + mu p t) = 0``; alpha -inf: not found.

    With u_N = 0 eliminated, ``r_N = c_0 / (1 + mu p t)`` and ``u_T = mu r_N S t + g``: what `quartic` solves (seed 003, eq. 15.15).
    """
    for _ in range(_STEPS):
        n, across = 1.0 + mu * (p_1 * c + p_2 * s), c * g_2 - s * g_1
        value = mu * c_0 * (S_12 * (c * c - s * s) + (S_22 - S_11) * (c * s)) + n * across
        slope = mu * (c_0 * ((S_22 - S_11) * (c * c - s * s) - 4.0 * S_12 * (c * s)) + (c * p_2 - s * p_1) * across)
        slope -= n * (c * g_1 + s * g_2)
        step = value / slope if value != 0.0 else 0.0
        small = abs(step) <= _STRAIGHT
        c, s = c + step * s, s - step * c
        size = 1.0 - 0.5 * step * step if small else 1.0 / math.sqrt(c * c + s * s)
        c, s = size * c, size * s
        if small:
            r_n = c_0 / (1.0 + mu * (p_1 * c + p_2 * s))
            alpha = -(c * g_1 + s * g_2) - mu * r_n * (S_11 * c * c + 2.0 * S_12 * (c * s) + S_22 * s * s)
            return c, s, r_n, alpha
    return c, s, -1.0, -math.inf


@kernel
def _unpack_block(R, k, W):
    """Out: W (3, 3) of the contact at R[k]."""
    w, p_1, p_2 = R[k + 20], R[k + 22], R[k + 23]
    W[0], W[1], W[2] = w, w * p_1, w * p_2
    W[3], W[4], W[5] = W[1], R[k + 24] + W[1] * p_1, R[k + 25] + W[1] * p_2
    W[6], W[7], W[8] = W[2], W[5], R[k + 26] + W[2] * p_2


@kernel
def _solve_slowly(d, disk, R, k, scratch):
    """The contact at R[k] by `local.solve_contact`, as good as without memory of the sweep. In: u, r; out: new r, all in scratch."""
    u, r, new, q, W = view(scratch, 0, 5), view(scratch, 5, 5), view(scratch, 10, 5), view(scratch, 15, 5), view(scratch, 20, 25)
    if d == 3:
        _unpack_block(R, k, W)
    else:
        for i in range(25):
            W[i] = R[k + 22 + i]
    trace = 0.0
    for a in range(d):
        new[a], q[a] = r[a], u[a]
        trace += abs(W[a * (d + 1)])
        for e in range(d):
            q[a] -= W[a * d + e] * r[e]
    if disk != EQUATION and (trace == 0.0 or q[0] >= 0.0):
        for a in range(d):
            new[a] = 0.0
    else:
        one.solve_contact(one.AUTO, d, disk, R[k + _B + d], R[k + _B + d + 1], W, int64(0), q, new, view(scratch, 45, one.SCRATCH))


def _relax_3(c, beta, disk, R, ids, B, r, r_before, scratch):
    """Solves contact c from ``r + beta (r - r_before)``; (square of its change, that change times the way from r), both times ``W_NN^2``.

    In/out: B, r, r_before.
    """
    k, i, j = c * 28, ids[2 * c] * BODY, ids[2 * c + 1] * BODY
    u_0, u_1, u_2, _, _ = _velocity_3(k, i, j, R, B)
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
        _solve_slowly(int64(3), disk[c], R, k, scratch)
        n_0, n_1, n_2 = scratch[10], scratch[11], scratch[12]
    r[3 * c], r[3 * c + 1], r[3 * c + 2] = n_0, n_1, n_2
    b_0, b_1, b_2 = n_0 - r_before[3 * c], n_1 - r_before[3 * c + 1], n_2 - r_before[3 * c + 2]
    n_0, n_1, n_2 = n_0 - r_0, n_1 - r_1, n_2 - r_2
    _act_3(k, i, j, R, B, n_0, n_1, n_2, 0.0, 0.0)
    return (n_0 * n_0 + n_1 * n_1 + n_2 * n_2) * (W_n * W_n), (n_0 * b_0 + n_1 * b_1 + n_2 * b_2) * (W_n * W_n)


def _relax_5(c, beta, disk, R, ids, B, r, r_before, scratch):
    """As `_relax_3`, with rolling friction."""
    k, i, j = c * 48, ids[2 * c] * BODY, ids[2 * c + 1] * BODY
    u, now, new, change = view(scratch, 0, 5), view(scratch, 5, 5), view(scratch, 10, 5), stack(5)
    u[0], u[1], u[2], u[3], u[4] = _velocity_5(k, i, j, R, B)
    for a in range(5):
        u[a] += R[k + _B + a]
        r_a = r[5 * c + a]
        now[a] = r_a + beta * (r_a - r_before[5 * c + a])
        r_before[5 * c + a] = r_a
    _solve_slowly(int64(5), disk[c], R, k, scratch)
    moved = along = 0.0
    for a in range(5):
        r[5 * c + a] = new[a]
        change[a] = new[a] - now[a]
        moved += change[a] * change[a]
        along += change[a] * (new[a] - r_before[5 * c + a])
    _act_5(k, i, j, R, B, change[0], change[1], change[2], change[3], change[4])
    return moved * R[k + 22] ** 2, along * R[k + 22] ** 2


# ------------------------------------------------------------------------------------------------------------------ general blocks


@kernel
def _build_panels(d, panel_body, H, diagonal, inverse, G, W):
    """Out: G (n, d, 12), whose rows are those of ``(M^-1 H^T)^T``, and W (n, d, d) = ``H M^-1 H^T + diag``."""
    for p in range(panel_body.size // 2):
        for a in range(d):
            for side in range(2):
                i, at = panel_body[2 * p + side], (p * d + a) * 12 + 6 * side
                for x in range(3):
                    G[at + x] = inverse[10 * i] * H[at + x] if i >= 0 else 0.0
                    G[at + 3 + x] = 0.0
                    if i >= 0:
                        m = view(inverse, 10 * i + 1 + 3 * x, 3)
                        G[at + 3 + x] = m[0] * H[at + 3] + m[1] * H[at + 4] + m[2] * H[at + 5]
        for a in range(d):
            for e in range(d):
                s = diagonal[p * d + a] if a == e else 0.0
                for x in range(12):
                    s += H[(p * d + a) * 12 + x] * G[(p * d + e) * 12 + x]
                W[(p * d + a) * d + e] = s


@tiny
def _panel_velocity(row, i, j, H, B):
    """Entry of ``H v`` of one row."""
    s = 0.0
    for x in range(6):
        s += H[12 * row + x] * B[i + x] + H[12 * row + 6 + x] * B[j + x]
    return s


@tiny
def _panel_act(row, i, j, G, B, r_a):
    """``v += M^-1 H^T r`` for one entry of r."""
    for x in range(6):
        B[i + x] += G[12 * row + x] * r_a
    for x in range(6):
        B[j + x] += G[12 * row + 6 + x] * r_a


@kernel
def _relax_panels(d, n_contacts, beta, disk, mu, b, ids, H, G, W, diagonal, B, r, r_before, scratch):
    """Solves the general blocks one after the other, as `_relax_3` does with a contact."""
    now, new, q, moved = view(scratch, 5, 5), view(scratch, 10, 5), view(scratch, 15, 5), 0.0
    for c in range(n_contacts, disk.size):
        i, j, p, trace = ids[2 * c] * BODY, ids[2 * c + 1] * BODY, c - n_contacts, 0.0
        for a in range(d):
            r_a = r[d * c + a]
            now[a] = new[a] = r_a + beta * (r_a - r_before[d * c + a])
            r_before[d * c + a] = r_a
        for a in range(d):
            q[a] = b[d * c + a] + diagonal[d * p + a] * now[a] + _panel_velocity(d * p + a, i, j, H, B)
            trace += W[(d * p + a) * d + a] / d
            for e in range(d):
                q[a] -= W[(d * p + a) * d + e] * now[e]
        one.solve_contact(one.AUTO, d, disk[c], mu[2 * c], mu[2 * c + 1], W, d * d * p, q, new, view(scratch, 45, one.SCRATCH))
        for a in range(d):
            r[d * c + a] = new[a]
            _panel_act(d * p + a, i, j, G, B, new[a] - now[a])
            moved += (trace * (new[a] - now[a])) ** 2
    return moved


# ------------------------------------------------------------------------------------------------------------------ all contacts


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


@kernel
def _build_one(c, d, disk, mu, body, frame, lever, b, inverse, v_free, R, ids):
    """The record of contact c; a body that cannot be moved is the world from here on, with its velocity in b. Out: R, ids."""
    k, world, W, arm = c * record_size(d), inverse.size // 10, stack(25), stack(15)
    for a in range(9):
        R[k + a] = frame[9 * c + a]
    for a in range(6):
        R[k + _LEVER + a] = lever[6 * c + a]
    for a in range(25):
        W[a] = 0.0
    for a in range(d):
        R[k + _B + a] = b[d * c + a]
    R[k + _B + d], R[k + _B + d + 1] = mu[2 * c], mu[2 * c + 1]
    for side in range(2):
        i, sign, l = body[2 * c + side], 1.0 - 2.0 * side, view(lever, 6 * c + 3 * side, 3)
        ids[2 * c + side] = world
        if i < 0:
            continue
        m, t, size = view(inverse, 10 * i, 10), view(frame, 9 * c + 3, 6), 0.0
        for a in range(3):
            n = view(frame, 9 * c + 3 * a, 3)
            arm[3 * a], arm[3 * a + 1], arm[3 * a + 2] = l[1] * n[2] - l[2] * n[1], l[2] * n[0] - l[0] * n[2], l[0] * n[1] - l[1] * n[0]
        for a in range(6):
            arm[9 + a] = t[a]
        for a in range(10):
            size += abs(m[a])
        if size > 0.0:
            ids[2 * c + side] = i
        for a in range(d):
            for x in range(3):
                if size == 0.0:
                    along = frame[9 * c + 3 * a + x] * v_free[6 * i + x] if a < 3 else 0.0
                    R[k + _B + a] += sign * (along + arm[3 * a + x] * v_free[6 * i + 3 + x])
            for e in range(d):
                for x in range(3):
                    along = frame[9 * c + 3 * a + x] * frame[9 * c + 3 * e + x] if a < 3 and e < 3 else 0.0
                    turned = m[1 + 3 * x] * arm[3 * e] + m[2 + 3 * x] * arm[3 * e + 1] + m[3 + 3 * x] * arm[3 * e + 2]
                    W[a * d + e] += m[0] * along + arm[3 * a + x] * turned
    if d == 5:
        for a in range(25):
            R[k + 22 + a] = W[a]
    else:
        _pack_block(W, R, k)
        if disk[c] != 2:
            R[k + 27] = 0.0


def _build(d, disk, mu, body, frame, lever, b, inverse, v_free, R, ids):
    """Records of all contacts. Out: R, ids."""
    n = body.size // 2
    for chunk in _each(_CHUNKS):
        for c in range(n * chunk // _CHUNKS, n * (chunk + 1) // _CHUNKS):
            _build_one(c, d, disk, mu, body, frame, lever, b, inverse, v_free, R, ids)


def _apply(begin, R, ids, r, B):
    """``v += M^-1 H r`` for all contacts, in the order of a sweep. In/out: B."""
    for phase in range(slabs.PHASES):
        first, last = slabs.phase(begin.size - 1, phase), slabs.phase(begin.size - 1, phase + 1)
        if begin[last] > begin[first]:
            for g in _each(first, last):
                for c in range(begin[g], begin[g + 1]):
                    x = view(r, _D * c, _D)
                    r_3, r_4 = (x[3], x[4]) if _D == 5 else (0.0, 0.0)
                    _act(c * record_size(_D), ids[2 * c] * BODY, ids[2 * c + 1] * BODY, R, B, x[0], x[1], x[2], r_3, r_4)


def _sweep(begin, beta, disk, R, ids, B, r, r_before, change, work):
    """One sweep over the contacts, phase by phase, the groups of one at the same time. In/out: B, r, r_before.

    Out: change (2 groups,): what `_relax_3` returns, summed over each group.
    """
    for phase in range(slabs.PHASES):
        first, last = slabs.phase(begin.size - 1, phase), slabs.phase(begin.size - 1, phase + 1)
        if begin[last] > begin[first]:
            for g in _each(first, last):
                s = a = 0.0
                for c in range(begin[g], begin[g + 1]):
                    moved, along = _relax(c, beta, disk, R, ids, B, r, r_before, view(work, g * _SCRATCH, _SCRATCH))
                    s += moved
                    a += along
                change[2 * g], change[2 * g + 1] = s, a


def _extrapolate(beta, B, before):
    """``v + beta (v - v_before)`` for all bodies. In/out: B, before (6 each)."""
    n = B.size // BODY
    for chunk in _each(_CHUNKS):
        for i in range(n * chunk // _CHUNKS, n * (chunk + 1) // _CHUNKS):
            for x in range(6):
                v = B[i * BODY + x]
                if beta > 0.0:
                    B[i * BODY + x] = v + beta * (v - before[6 * i + x])
                before[6 * i + x] = v


def _residuals(disk, mu, R, ids, B, r, u, parts):
    """u of all contacts, and parts of the sums of squares of res_q and res_rho. Out: u, parts (2 _CHUNKS,)."""
    n, size = u.size // _D, record_size(_D)
    for chunk in _each(_CHUNKS):
        x, plain, scaled = stack(5), 0.0, 0.0
        for c in range(n * chunk // _CHUNKS, n * (chunk + 1) // _CHUNKS):
            k = c * size
            u_0, u_1, u_2, u_3, u_4 = _velocity(k, ids[2 * c] * BODY, ids[2 * c + 1] * BODY, R, B)
            u[_D * c], u[_D * c + 1], u[_D * c + 2] = u_0 + R[k + _B], u_1 + R[k + _B + 1], u_2 + R[k + _B + 2]
            if _D == 5:
                u[_D * c + 3], u[_D * c + 4] = u_3 + R[k + _B + 3], u_4 + R[k + _B + 4]
                mean = (R[k + 22] + R[k + 28] + R[k + 34] + R[k + 40] + R[k + 46]) / 5.0
            else:
                mean = (R[k + 20] * (1.0 + R[k + 22] ** 2 + R[k + 23] ** 2) + R[k + 24] + R[k + 26]) / 3.0
            mean = mean if mean > 0.0 else 1.0
            plain += natural_map(1.0, disk[c], mu[2 * c], mu[2 * c + 1], _D, c * _D, r, u, x)
            scaled += natural_map(1.0 / mean, disk[c], mu[2 * c], mu[2 * c + 1], _D, c * _D, r, u, x) * mean**2
        parts[2 * chunk], parts[2 * chunk + 1] = plain, scaled


def _templates(d, suffix, decorate, loops):
    bound = {"_D": d, "_each": loops}
    bound["_velocity"], bound["_act"] = (_velocity_3, _act_3) if d == 3 else (_velocity_5, _act_5)
    bound["_relax"] = tiny(_relax_3) if d == 3 else _relax_5_kernel
    return [decorate(specialised(f, f"{d}_{suffix}", **bound)) for f in (_sweep, _apply, _residuals)]


_relax_5_kernel = kernel(_relax_5)
_relax = None  # bound by `_templates`
_sweep_3, _apply_3, _residuals_3 = _templates(3, "serial", kernel, range)
_sweep_5, _apply_5, _residuals_5 = _templates(5, "serial", kernel, range)
_sweep_3_each, _apply_3_each, _residuals_3_each = _templates(3, "parallel", parallel, each)
_sweep_5_each, _apply_5_each, _residuals_5_each = _templates(5, "parallel", parallel, each)
_build_serial, _extrapolate_serial = (kernel(specialised(f, "serial", _each=range)) for f in (_build, _extrapolate))
_build_all, _extrapolate_all = _build_serial, _extrapolate_serial
_build_parallel, _extrapolate_parallel = (parallel(specialised(f, "parallel", _each=each)) for f in (_build, _extrapolate))


# ------------------------------------------------------------------------------------------------------------------ the method


def work_size(d, n_contacts, n_panels, n_bodies, n_groups):
    """(floats, integers) of scratch of `nsgs_rigid`; n_groups: twice `slabs.count`."""
    n = n_contacts + n_panels
    floats = record_size(d) * n_contacts + (BODY + 6) * (n_bodies + 1) + 2 * d * n + (12 * d + d * d) * n_panels
    return floats + 2 * _CHUNKS + (n_groups + 1) * (2 + _SCRATCH), 2 * n


@tiny
def _layout(d, n_contacts, n, n_bodies, n_groups, work):
    """Views of work: R, B, v and r before, best, G and W of panels, parts, change, scratch."""
    m, at = n - n_contacts, 0
    R = view(work, at, record_size(d) * n_contacts)
    at += R.size
    B, v_before = view(work, at, BODY * (n_bodies + 1)), view(work, at + BODY * (n_bodies + 1), 6 * (n_bodies + 1))
    at += (BODY + 6) * (n_bodies + 1)
    r_before, best = view(work, at, d * n), view(work, at + d * n, d * n)
    at += 2 * d * n
    G, W = view(work, at, 12 * d * m), view(work, at + 12 * d * m, d * d * m)
    at += (12 * d + d * d) * m
    parts, change = view(work, at, 2 * _CHUNKS), view(work, at + 2 * _CHUNKS, 2 * n_groups + 2)
    at += 2 * _CHUNKS + 2 * n_groups + 2
    return R, B, v_before, r_before, best, G, W, parts, change, view(work, at, (n_groups + 1) * _SCRATCH)


@kernel
def _start(v_free, inverse, B):
    """Bodies with v_free; the last one is the world. Out: B."""
    n = inverse.size // 10
    for i in range(n):
        for x in range(6):
            B[i * BODY + x] = v_free[6 * i + x]
        for x in range(10):
            B[i * BODY + 6 + x] = inverse[10 * i + x]
    for x in range(BODY):
        B[n * BODY + x] = 0.0


@kernel
def _start_velocities(v_free, B):
    """Out: v of B."""
    for i in range(v_free.size // 6):
        for x in range(6):
            B[i * BODY + x] = v_free[6 * i + x]


@kernel
def _panel_residuals(d, n_contacts, disk, mu, b, ids, H, W, diagonal, B, r, u, x):
    """Sums of squares of res_q and res_rho of the general blocks. Out: u."""
    plain = scaled = 0.0
    for c in range(n_contacts, disk.size):
        p, mean = c - n_contacts, 0.0
        for a in range(d):
            row = d * p + a
            u[d * c + a] = (
                b[d * c + a] + diagonal[row] * r[d * c + a] + _panel_velocity(row, ids[2 * c] * BODY, ids[2 * c + 1] * BODY, H, B)
            )
            mean += W[row * d + a] / d
        mean = mean if mean > 0.0 else 1.0
        plain += natural_map(1.0, disk[c], mu[2 * c], mu[2 * c + 1], d, c * d, r, u, x)
        scaled += natural_map(1.0 / mean, disk[c], mu[2 * c], mu[2 * c + 1], d, c * d, r, u, x) * mean**2
    return plain, scaled


def _judge(k, scale, d, disk, mu, b, panel_H, panel_diagonal, options, r, u, info, R, B, ids, W, parts, x):
    """Status after k sweeps: CONVERGED, NON_FINITE or MAX_ITER, by res_q at the velocities of B. Out: u, info."""
    n_contacts = R.size // record_size(d)
    if d == 3:
        _residuals_3(disk, mu, R, ids, B, r, view(u, 0, d * n_contacts), parts)
    else:
        _residuals_5(disk, mu, R, ids, B, r, view(u, 0, d * n_contacts), parts)
    plain, scaled = _panel_residuals(d, n_contacts, disk, mu, b, ids, panel_H, W, panel_diagonal, B, r, u, x)
    for chunk in range(_CHUNKS):
        plain, scaled = plain + parts[2 * chunk], scaled + parts[2 * chunk + 1]
    info[0], info[1], info[2] = k, math.sqrt(plain) / scale, math.sqrt(scaled) / scale
    if not math.isfinite(info[1]):
        return NON_FINITE
    return CONVERGED if info[1] <= options[0] else MAX_ITER


def _velocities(d, begin, v_free, r, R, B, ids, G):
    """``v = v_free + M^-1 H r``. Out: v of B."""
    n_contacts = R.size // record_size(d)
    _start_velocities(v_free, B)
    if d == 3:
        _apply_3(begin, R, ids, r, B)
    else:
        _apply_5(begin, R, ids, r, B)
    for row in range(r.size - d * n_contacts):
        c = n_contacts + row // d
        _panel_act(row, ids[2 * c] * BODY, ids[2 * c + 1] * BODY, G, B, r[d * n_contacts + row])


@tiny
def _faster(pace, most, moved, along):
    """(beta, t, bound, least, since, straight) for the next sweep, from those of the last one, its ``moved`` and ``along``.

    By Nesterov's rule up to a bound, which is lowered where changes neither shrink nor keep their direction; straight: how far they do.
    """
    beta, t, bound, least, since, straight = pace
    cosine = along / (moved * moved) * (1.0 - beta) if moved > 0.0 else 0.0  # 1 where all changes are the same
    straight += _MEMORY * (min(max(cosine, -1.0), 1.0) - straight)
    since += 1
    bound += _BACK * (most - bound)
    if moved < 0.95 * least:
        least, since = moved, 0
    if moved > _GROWTH * least or (since > _WAIT and straight < _STRAIGHT_ON):
        return 0.0, 1.0, max(1.0 - 1.5 * (1.0 - bound), 0.0), moved, 0, straight
    if along < 0.0:  # the sweep went back on the way that momentum took
        return 0.0, 1.0, bound, least, since, straight
    t_new = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
    return min((t - 1.0) / t_new, bound), t_new, bound, least, since, straight


def _nsgs(
    d, begin, disk, mu, body, frame, lever, b, panel_body, panel_H, panel_diagonal, inverse, v_free, options, r, v, u, info, work, iwork
):
    """Contact problem of rigid bodies, ``u = H v + b`` and ``v = v_free + M^-1 H^T r``, by sweeps with momentum over contacts in phases.

    The law of contacts, disk (n,), mu (2 n,), options, info and statuses: as for reduced problems (`nsds.solvers.contact.signature`), but
    options[3] bounds beta (0: 0.9, negative: none), and residuals are relative to ``||H v_free + b||``. d: 3, with rolling friction 5.
    The nc contacts come first: begin, `slabs.order`: groups of contacts in the order of the sweep; body (2 nc,): a and b, -1 the world;
    frame (9 nc,): n, t_1, t_2; lever (6 nc,): point of contact minus x_a and minus x_b. General blocks follow: panel_body (2 np,),
    panel_H (np, d, 12) on ``(v_a, omega_a, v_b, omega_b)``, panel_diagonal (np, d): what comes to the diagonal of W. b, r, u: (n d,).
    inverse (10 n_bodies,): 1/m, inverse of the angular iteration matrix by rows, of which W_cc only knows the symmetric part, in a
    preconditioner's role; zeros: cannot be moved. v_free, v (6 n_bodies,): of the centre of mass, and omega, both in inertial axes.
    In/out: r, the best looked at. Out: v, u, info. The bits do not depend on the number of cores.
    References: Jourdan, Alart, Jean, CMAME 155 (1998) 31–47; Nesterov, Soviet Mathematics Doklady 27 (1983) 372–376 (the rule for beta);
    O'Donoghue, Candès, Foundations of Computational Mathematics 15 (2015) 715–732 (when it begins anew).
    """
    n_contacts, world, limit = body.size // 2, inverse.size // 10, int(options[1]) if options[1] > 0 else MAX_SWEEPS
    R, B, v_before, r_before, best, G, W, parts, change, scratch = _layout(d, n_contacts, disk.size, world, begin.size - 1, work)
    ids, x = iwork, stack(5)
    _build_all(d, disk, mu, body, frame, lever, b, inverse, v_free, R, ids)
    for i in range(panel_body.size):
        ids[2 * n_contacts + i] = panel_body[i] if panel_body[i] >= 0 else world
    _build_panels(d, panel_body, panel_H, panel_diagonal, inverse, G, W)
    _start(v_free, inverse, B)
    for g in range(change.size):
        change[g] = 0.0  # groups of a phase without contacts are not swept
    judged = (d, disk, mu, b, panel_H, panel_diagonal, options, r, u, info, R, B, ids, W, parts, x)
    for i in range(r.size):
        best[i], r[i] = r[i], 0.0
    _judge(0, 1.0, *judged)
    scale = norm(u, 0, u.size)
    scale = scale if scale > 0.0 else 1.0
    for i in range(r.size):
        r[i] = r_before[i] = best[i]
    _velocities(d, begin, v_free, r, R, B, ids, G)
    status = _judge(0, scale, *judged)
    most = max(options[3], 0.0) if options[3] != 0.0 else _MOMENTUM
    pace = (0.0, 1.0, most, math.inf, 0, 0.5)
    k, looked, progress, ratio, least = 0, 0, 0, 1.0, keep_better(info[1], math.inf, r, best)
    while status == MAX_ITER and k < limit:
        beta = pace[0]
        _extrapolate_all(beta, B, v_before)
        if d == 3:
            _sweep_3(begin, beta, disk, R, ids, B, r, r_before, change, scratch)
        else:
            _sweep_5(begin, beta, disk, R, ids, B, r, r_before, change, scratch)
        k += 1
        moved = _relax_panels(d, n_contacts, beta, disk, mu, b, ids, panel_H, G, W, panel_diagonal, B, r, r_before, scratch)
        along = 0.0
        for g in range(begin.size - 1):
            moved += change[2 * g]
            along += change[2 * g + 1]
        moved = math.sqrt(moved)
        promising = moved * ratio <= options[0] * scale and k > looked + k // 20
        if promising or k >= looked + max(_SPACING, k // 10) or k == limit or not moved < math.inf:
            status, looked = _judge(k, scale, *judged), k
            if status == CONVERGED:  # once more without the rounding of all sweeps
                _velocities(d, begin, v_free, r, R, B, ids, G)
                status = _judge(k, scale, *judged)
            ratio = info[1] * scale / moved if moved > 0.0 else 0.0
            progress = k if info[1] < 0.999 * least else progress
            least = keep_better(info[1], least, r, best)
            status = STALLED if k > progress + _PATIENCE and status == MAX_ITER else status
        pace = _faster(pace, most, moved, along)
    if status != CONVERGED and least < math.inf:
        for i in range(r.size):
            r[i] = best[i]
        _velocities(d, begin, v_free, r, R, B, ids, G)
        _judge(k, scale, *judged)
    for i in range(v.size):
        v[i] = B[i // 6 * BODY + i % 6]
    return status


def _bind(suffix, decorate, names):
    """The method with other loops."""
    judge, velocities = (decorate(specialised(f, suffix, **names)) for f in (_judge, _velocities))
    result = specialised(_nsgs, suffix, _judge=judge, _velocities=velocities, **names)
    return decorate(result)


nsgs_rigid = _bind("serial", kernel, {})
_names = {"_build_all": _build_parallel, "_extrapolate_all": _extrapolate_parallel, "_residuals_3": _residuals_3_each}
_names |= {"_residuals_5": _residuals_5_each, "_apply_3": _apply_3_each, "_apply_5": _apply_5_each}
nsgs_rigid_parallel = _bind("parallel", threaded, _names | {"_sweep_3": _sweep_3_each, "_sweep_5": _sweep_5_each})
