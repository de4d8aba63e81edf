"""Contacts side by side: as many as a vector register has lanes, of bodies of which no two are the same, solved at once.

A contact takes some 300 operations, and hardly waits for memory or for another contact: in vector registers a sweep takes little more than
half of the time. The solution, and its bits, are those of one contact after the other (`rigid_contact.relax_3`), by which contacts are
solved that do not fit: without friction, of bodies that turn about some axes more easily than about others, and the last ones of a group.
"""

import math

from nsds._jit import apart, bits_of, chosen, gather, kernel, larger, load, places, put, root, scatter, spread, tiny, view
from nsds.solvers.bodies.rigid_contact import BODY, LEVER, SOLVED_AT, STEPS, STRAIGHT, solve_slowly

WIDTH = 8
ENTRIES = 31  # of a contact in lanes: frame (9), levers (6), b (3), mu, what follows of the block in its record (8), 1 / m and 1 / I (4)
SLOW = 9 * WIDTH  # floats of scratch: u, r and new r of contacts in lanes
_ALL = (1 << WIDTH) - 1


@tiny
def _is_top(m):
    """Whether the inverse of an angular matrix is a multiple of 1; m (10,): behind the inverse of the mass."""
    off = abs(m[2]) + abs(m[3]) + abs(m[4]) + abs(m[6]) + abs(m[7]) + abs(m[8])
    return off == 0.0 and m[1] == m[5] and m[1] == m[9]


@tiny
def _fit(c, disk, R, ids, B):
    """Whether contacts from c on can be solved side by side."""
    world, result = B.size // BODY - 1, True
    for l in range(c, c + WIDTH):
        result = result and disk[l] == 2 and R[28 * l + SOLVED_AT] != 0.0
        for side in range(2):
            i = ids[2 * l + side]
            result = result and _is_top(view(B, i * BODY + 6, 10))
            for k in range(2 * c, 2 * l if i != world else 2 * c):
                result = result and ids[k] != i
    return result


@kernel
def pack(first, last, s):
    """Records of contacts from first to last in lanes, as far as they can be solved side by side. Out: L, alike of s."""
    R, L, alike = s.R, s.L, s.alike
    for c in range(first, last):
        alike[c] = 0
    for c in range(first, last - WIDTH + 1, WIDTH):
        if not _fit(c, s.disk, R, s.ids, s.B):
            continue
        alike[c] = 1
        for l in range(WIDTH):
            k, at = 28 * (c + l), ENTRIES * c + l
            for x in range(19):
                L[at + x * WIDTH] = R[k + x]
            for x in range(8):
                L[at + (19 + x) * WIDTH] = R[k + 20 + x]
            for side in range(2):
                i = s.ids[2 * (c + l) + side] * BODY
                L[at + (27 + side) * WIDTH], L[at + (29 + side) * WIDTH] = s.B[i + 6], s.B[i + 7]


@tiny
def _cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@tiny
def _three(A, word):
    return load(A, word, WIDTH), load(A, word + 1, WIDTH), load(A, word + 2, WIDTH)


@tiny
def _gather_three(A, at, entry):
    return gather(A, at, entry), gather(A, at, entry + 1), gather(A, at, entry + 2)


@tiny
def _scatter_three(A, at, entry, x):
    scatter(A, at, entry, x[0])
    scatter(A, at, entry + 1, x[1])
    scatter(A, at, entry + 2, x[2])


@tiny
def _slide(done, mu, block, c_0, g, t):
    """(mask of those found or done before, t_1, t_2, r_N, alpha): as `rigid_contact._slide`, of all lanes that are not done."""
    (S_11, S_12, S_22, p_1, p_2), (g_1, g_2), (c, s) = block, g, t
    for _ in range(STEPS):
        n, across = 1.0 + mu * (p_1 * c + p_2 * s), c * g_2 - s * g_1
        value = mu * c_0 * (S_12 * (c * c - s * s) + (S_22 - S_11) * (c * s)) + n * across
        slope = mu * (c_0 * ((S_22 - S_11) * (c * c - s * s) - 4.0 * S_12 * (c * s)) + (c * p_2 - s * p_1) * across)
        slope = slope - n * (c * g_1 + s * g_2)
        step = chosen(value != 0.0, value / slope, spread(0.0, WIDTH))
        small = (step <= STRAIGHT) & (step >= -STRAIGHT)
        c_new, s_new = c + step * s, s - step * c
        size = chosen(small, 1.0 - 0.5 * step * step, 1.0 / root(c_new * c_new + s_new * s_new))
        c, s = chosen(done, c, size * c_new), chosen(done, s, size * s_new)
        done = done | small
        if bits_of(done) == _ALL:
            break
    r_n = c_0 / (1.0 + mu * (p_1 * c + p_2 * s))
    alpha = -(c * g_1 + s * g_2) - mu * r_n * (S_11 * c * c + 2.0 * S_12 * (c * s) + S_22 * s * s)
    return done, c, s, r_n, alpha


@kernel
def _solve_others(left, c, s, scratch, kept):
    """Contacts from c on whose bits are set in left, one by one. In: u, r; out: new r, all in kept. Work: scratch."""
    for l in range(WIDTH):
        if (left >> l) & 1:
            for a in range(3):
                scratch[a], scratch[5 + a] = kept[a * WIDTH + l], kept[(3 + a) * WIDTH + l]
            solve_slowly(3, s.disk[c + l], s.R, (c + l) * 28, scratch)
            for a in range(3):
                kept[(6 + a) * WIDTH + l] = scratch[10 + a]


@tiny
def _velocities(R, i, j, B):
    """(u, and v_a, omega_a, v_b, omega_b) of contacts between the bodies at i and j."""
    n, t, o = _three(R, 0), _three(R, 3), _three(R, 6)
    lever_a, lever_b, b = _three(R, LEVER), _three(R, LEVER + 3), _three(R, 15)
    v_a, w_a, v_b, w_b = _gather_three(B, i, 0), _gather_three(B, i, 3), _gather_three(B, j, 0), _gather_three(B, j, 3)
    x, y = _cross(w_a, lever_a), _cross(w_b, lever_b)
    x_0, x_1, x_2 = (x[0] + v_a[0]) - (y[0] + v_b[0]), (x[1] + v_a[1]) - (y[1] + v_b[1]), (x[2] + v_a[2]) - (y[2] + v_b[2])
    u = (
        (n[0] * x_0 + n[1] * x_1 + n[2] * x_2) + b[0],
        (t[0] * x_0 + t[1] * x_1 + t[2] * x_2) + b[1],
        (o[0] * x_0 + o[1] * x_1 + o[2] * x_2) + b[2],
    )
    return u, (v_a, w_a, v_b, w_b)


@tiny
def residual_lanes(c, unit, s, u):
    """Squares of res_q of contacts from c on, in lanes, as `signature.natural_map` has them times unit^2; unit 0: none. Out: u."""
    R, at, zero = view(s.L, ENTRIES * c, ENTRIES * WIDTH), apart(3 * c, 3, WIDTH), spread(0.0, WIDTH)
    i, j = places(s.ids, 2 * c, 2, BODY, WIDTH), places(s.ids, 2 * c + 1, 2, BODY, WIDTH)
    (u_0, u_1, u_2), _ = _velocities(R, i, j, s.B)
    _scatter_three(u, at, 0, (u_0, u_1, u_2))
    if unit == 0.0:
        return zero
    # 1. r - rho uhat
    mu, rho, (r_0, r_1, r_2) = load(R, 18, WIDTH), 1.0 / unit, _gather_three(s.r, at, 0)
    v_0, v_1, v_2 = rho * (u_0 + mu * root(u_1 * u_1 + u_2 * u_2)), rho * u_1, rho * u_2
    x_0, x_1, x_2 = r_0 - v_0, r_1 - v_1, r_2 - v_2
    # 2. what its projection onto the cone leaves
    size = root(x_1 * x_1 + x_2 * x_2)
    n = larger(zero, chosen(size > mu * x_0, (x_0 + mu * size) / (1.0 + mu * mu), x_0))
    scale = chosen(size > mu * n, (mu * n) / size, spread(1.0, WIDTH))
    e_0, e_1, e_2 = v_0 + (x_0 - n), v_1 + (x_1 - scale * x_1), v_2 + (x_2 - scale * x_2)
    return (e_0 * e_0 + e_1 * e_1 + e_2 * e_2) * (unit * unit)


@tiny
def relax_lanes(c, beta, s, scratch, kept):
    """As `rigid_contact.relax_3`, of contacts from c on side by side; (squares of changes, their products with the way), in lanes."""
    R, B, r, r_before = view(s.L, ENTRIES * c, ENTRIES * WIDTH), s.B, s.r, s.r_before
    i, j, at = places(s.ids, 2 * c, 2, BODY, WIDTH), places(s.ids, 2 * c + 1, 2, BODY, WIDTH), apart(3 * c, 3, WIDTH)
    # 1. velocities at the contacts
    (u_0, u_1, u_2), (v_a, w_a, v_b, w_b) = _velocities(R, i, j, B)
    # 2. impulses from which the sweep begins
    begun, before = _gather_three(r, at, 0), _gather_three(r_before, at, 0)
    _scatter_three(r_before, at, 0, begun)
    r_0, r_1, r_2 = (
        begun[0] + beta * (begun[0] - before[0]),
        begun[1] + beta * (begun[1] - before[1]),
        begun[2] + beta * (begun[2] - before[2]),
    )
    # 3. open, sticking
    mu, W_n, W_inverse, p_1, p_2 = load(R, 18, WIDTH), load(R, 19, WIDTH), load(R, 20, WIDTH), load(R, 21, WIDTH), load(R, 22, WIDTH)
    S_11, S_12, S_22, over = load(R, 23, WIDTH), load(R, 24, WIDTH), load(R, 25, WIDTH), load(R, 26, WIDTH)
    q_n, zero = u_0 - W_n * (r_0 + (p_1 * r_1 + p_2 * r_2)), spread(0.0, WIDTH)
    g_1, g_2 = u_1 - p_1 * u_0, u_2 - p_2 * u_0
    d_1, d_2 = over * (S_22 * g_1 - S_12 * g_2), over * (S_11 * g_2 - S_12 * g_1)
    n_0, n_1, n_2 = r_0 - W_inverse * u_0 + (p_1 * d_1 + p_2 * d_2), r_1 - d_1, r_2 - d_2
    is_open = q_n >= 0.0
    solved = is_open | ((n_0 >= 0.0) & (n_1 * n_1 + n_2 * n_2 <= (mu * n_0) * (mu * n_0)))
    n_0, n_1, n_2 = chosen(is_open, zero, n_0), chosen(is_open, zero, n_1), chosen(is_open, zero, n_2)
    # 4. sliding
    if bits_of(solved) != _ALL:
        rho = 2.0 / (S_11 + S_22)
        t_1, t_2 = r_1 - rho * g_1, r_2 - rho * g_2
        size = root(t_1 * t_1 + t_2 * t_2)
        t_1, t_2 = chosen(size > 0.0, t_1 / size, spread(1.0, WIDTH)), chosen(size > 0.0, t_2 / size, zero)
        g_1, g_2 = g_1 - (S_11 * r_1 + S_12 * r_2), g_2 - (S_12 * r_1 + S_22 * r_2)
        block = S_11, S_12, S_22, p_1, p_2
        found, t_1, t_2, r_n, alpha = _slide(solved, mu, block, -q_n * W_inverse, (g_1, g_2), (t_1, t_2))
        n_0 = chosen(solved, n_0, r_n)
        n_1, n_2 = chosen(solved, n_1, mu * r_n * t_1), chosen(solved, n_2, mu * r_n * t_2)
        left = _ALL ^ bits_of(solved | (found & (r_n >= 0.0) & (r_n < math.inf) & (alpha >= 0.0)))
        if left != 0:
            put(kept, 0, WIDTH, u_0)
            put(kept, 1, WIDTH, u_1)
            put(kept, 2, WIDTH, u_2)
            put(kept, 3, WIDTH, r_0)
            put(kept, 4, WIDTH, r_1)
            put(kept, 5, WIDTH, r_2)
            put(kept, 6, WIDTH, n_0)
            put(kept, 7, WIDTH, n_1)
            put(kept, 8, WIDTH, n_2)
            _solve_others(left, c, s, scratch, kept)
            n_0, n_1, n_2 = _three(kept, 6)
    # 5. change of velocities
    _scatter_three(r, at, 0, (n_0, n_1, n_2))
    b_0, b_1, b_2 = n_0 - begun[0], n_1 - begun[1], n_2 - begun[2]
    n_0, n_1, n_2 = n_0 - r_0, n_1 - r_1, n_2 - r_2
    n, t, o, lever_a, lever_b = _three(R, 0), _three(R, 3), _three(R, 6), _three(R, LEVER), _three(R, LEVER + 3)
    P = n[0] * n_0 + t[0] * n_1 + o[0] * n_2, n[1] * n_0 + t[1] * n_1 + o[1] * n_2, n[2] * n_0 + t[2] * n_1 + o[2] * n_2
    m_a, m_b, I_a, I_b = load(R, 27, WIDTH), load(R, 28, WIDTH), load(R, 29, WIDTH), load(R, 30, WIDTH)
    x, y = _cross(lever_a, P), _cross(lever_b, P)
    _scatter_three(B, i, 0, (v_a[0] + m_a * P[0], v_a[1] + m_a * P[1], v_a[2] + m_a * P[2]))
    _scatter_three(B, i, 3, (w_a[0] + I_a * x[0], w_a[1] + I_a * x[1], w_a[2] + I_a * x[2]))
    _scatter_three(B, j, 0, (v_b[0] - m_b * P[0], v_b[1] - m_b * P[1], v_b[2] - m_b * P[2]))
    _scatter_three(B, j, 3, (w_b[0] - I_b * y[0], w_b[1] - I_b * y[1], w_b[2] - I_b * y[2]))
    scale = W_n * W_n
    return (n_0 * n_0 + n_1 * n_1 + n_2 * n_2) * scale, (n_0 * b_0 + n_1 * b_1 + n_2 * b_2) * scale
