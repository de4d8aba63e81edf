"""The one-step problem of rigid bodies, ``u = W r + q`` in blocks of d components ([Notes], eq. 11.220).

A block acts on two bodies, or on one and the world: ``u = H w + b``, ``w = w_free + M_hat^-1 H^T r``, with velocities w in inertial axes.
Each law occupies the first components of its block; unused (padding) components satisfy ``u = s r``, s a diagonal entry of W: both are 0.

- a contact with friction is one block, with or without rolling; a row of complementarity the normal component of one;
- equations fill blocks one after the other;
- a row with two finite bounds, as dry friction, is the tangent of a contact whose normal component, ``s r_N = s h radius``, is half their
  distance, and r is counted from their middle; with one it is a row of complementarity, counted from it and along or against it; with
  none an equation. The impulse from which r is counted acts on the bodies as a known one.

Equations may be redundant, as those of joints in a loop (`schemes.problem.redundancy`). Methods for contacts need regular matrices, and
get ``u = H w + epsilon s (r - r_last)``, s their own diagonal entries: the proximal point iteration, which Newton's iteration over a step
repeats until r no longer moves.
"""

import math
from typing import NamedTuple

from numpy.typing import NDArray

from nsds._jit import kernel, load, put, specialised, stack, tiny, view
from nsds.maths.vectors import norm
from nsds.model.laws import NONE
from nsds.model.layout import ABSENT
from nsds.schemes.problem.activation_rule import is_closed, slack
from nsds.schemes.rigid.bodies import length_of_turns
from nsds.schemes.rigid.forces import COMPLIANT
from nsds.schemes.rigid.interactions import row_length
from nsds.schemes.rigid.tables import EQUALITY, FORCE
from nsds.solvers.contact.signature import EQUATION

PROXIMAL = 1e-12  # epsilon: times their own diagonal, the stiffness that is added to equations for methods for contacts
_TANGENTS = 2


class Blocks(NamedTuple):
    """Views of n blocks that lie behind one another."""

    H: NDArray  # (n, d, 12): on v_a, omega_a, v_b, omega_b in inertial axes; of impulses
    E: NDArray  # the same of velocities, which is the H of impulses but where equations hold for positions
    diagonal: NDArray  # (n, d): what comes to the diagonal of W
    body: NDArray  # (2 n,): a and b, -1 the world
    disk: NDArray  # (n,)
    mu: NDArray  # (2 n,)
    b: NDArray  # (n, d)
    r: NDArray  # (n, d)


@tiny
def place(interaction, d, i):
    """Component of the one-step problem that row i of an interaction without bounds is, counted from the interaction's first."""
    each = interaction.each
    if i < each or interaction.law == EQUALITY or interaction.law == FORCE:
        return i
    return i * d if each == 1 else i // each * d + i % each


@tiny
def first_row(interaction, i):
    """First row of the contact that row i is one of; of one contact and of single rows without a division, which takes long."""
    each = interaction.each
    return 0 if i < each else i if each == 1 else i // each * each


@tiny
def unit_of_row(interaction, i, mem):
    """lambda of row i over r, and u over its velocity: `length_of_turns` of moments of a contact, whose block is so in m/s; else 1."""
    it = interaction
    return length_of_turns(it.q_a, it.q_b, mem) if it.mu_r != ABSENT and i - first_row(it, i) > it.tangents else 1.0


@tiny
def takes_part(interaction, i, ahead, memory):
    """Whether row i is in the one-step problem: if its law is bilateral, if its contact `is_closed`, or if it has joined all the same.

    ahead: negative where no forecast counts.
    """
    if interaction.always != 0:
        return True
    work = memory.work
    first = first_row(interaction, i)
    rounding, forces = work[interaction.slack + 2 * first], work[interaction.slack + 2 * first + 1]
    is_in, way = work[interaction.joined + first] != 0.0, ahead * memory.mem[interaction.ydot + first]
    return is_in or (ahead >= 0.0 and is_closed(memory.mem[interaction.y + first] + way, way, rounding, forces))


@tiny
def find_slack(h, interaction, q, moved, work):
    """Slacks of the forecasts up to which each contact of an interaction is active (see `is_closed`), from H at q. Out: slack.

    By rounding: that of the lengths ``|H_v| |x| + |H_omega|``; by forces: ``|H_v|`` times moved (n_bodies,), a fraction of the
    displacement that they cause in a step (see `way_of_forces`).
    """
    it = interaction
    for i in range(it.m):
        if first_row(it, i) != i:
            continue
        length = forces = 0.0
        for side in range(2):
            body, row = it.a if side == 0 else it.b, it.H + 12 * i + 6 * side
            if body != ABSENT:
                length += row_length(view(work, row, 6), view(q, 7 * body, 3))
                forces += norm(view(work, row, 3)) * moved[body] if moved[body] > 0.0 else 0.0
        work[it.slack + 2 * i], work[it.slack + 2 * i + 1] = slack(length, 0.0, h), forces


@tiny
def state_block(h, ahead, is_half, is_new, interaction, first, d, memory, stated):
    """Blocks ``first ..`` of an interaction, from its H and rate in the work memory. Out: stated.

    Inactive rows become padding. diagonal: 1 for padding, -1 for equations, 0 otherwise; r, if the block is new: the last impulses.
    is_half: b is counted from `aim` instead of restitution, see `problem.Options`, with a share `grip` of friction.
    """
    mem, work = memory.mem, memory.work
    it, H, mu, b, diagonal, r = interaction, stated.H, stated.mu, stated.b, stated.diagonal, stated.r
    is_equation, bounded = it.law == EQUALITY, has_bounds(it)
    each = d if is_equation else it.each
    # 1. bodies, cone and friction of the block
    for k in range(first, first + it.n_blocks):
        stated.body[2 * k], stated.body[2 * k + 1] = it.a, it.b
        stated.disk[k] = EQUATION if is_equation else it.tangents
        mu[2 * k], mu[2 * k + 1] = 0.0, 0.0
        c = k - first
        if it.tangents > 0:
            grip = work[it.grip + c * each] if is_half else 1.0
            mu[2 * k] = grip * mem[it.mu + c]
            mu[2 * k + 1] = 0.0 if it.mu_r == ABSENT else grip * mem[it.mu_r + c] / length_of_turns(it.q_a, it.q_b, mem)
        is_in = not bounded and takes_part(it, c * each, ahead, memory)
        # 2. rows: active ones from H and rate, the others as padding
        for a in range(d):
            i, to = c * each + a, k * d + a
            if is_in and a < each and i < it.m:
                unit = unit_of_row(it, i, mem)
                b[to], diagonal[to] = work[it.rate + i], -1.0 if is_equation else 0.0
                if not is_equation and is_half:
                    b[to] += work[it.aim + i]
                elif not is_equation:
                    b[to] += restitution(it, c, a, mem) * mem[it.ydot + i]
                b[to] *= unit
                if is_new:
                    r[to] = mem[it.lam + i] / unit
                for l in range(12):
                    H[12 * to + l] = unit * work[it.H + 12 * i + l]
            # padding: u = s r with H = 0, so r = 0 whatever the method does
            else:
                b[to], diagonal[to] = 0.0, 1.0
                if is_new:
                    r[to] = 0.0
                for l in range(12):
                    H[12 * to + l] = 0.0
        # 3. rows with bounds, as tangents or shifted rows of complementarity
        if bounded:
            _state_bounds(h, is_new, it, c, k, d, memory, stated)


@tiny
def has_gap(interaction):
    """Whether the interaction constrains positions (false for prescribed velocities, bounded forces and force laws)."""
    return interaction.dofs == ABSENT and not has_bounds(interaction) and interaction.law != FORCE


@tiny
def has_bounds(interaction):
    """Whether its law is one of bounds on lambda."""
    return interaction.bounds != NONE


@tiny
def bounds(interaction, i, work):
    """(lower, upper): bounds of the force of row i of a law that has them."""
    return work[interaction.lower + i], work[interaction.upper + i]


@tiny
def origin(h, lower, upper):
    """(impulse, sign): r of a row with bounds is counted from impulse, ``lambda = impulse + sign r``."""
    if lower > -math.inf and upper < math.inf:
        return h * (0.5 * (lower + upper)), 1.0
    if upper < math.inf:
        return h * upper, -1.0
    return (h * lower if lower > -math.inf else 0.0), 1.0


@tiny
def _component(lower, upper):
    """Component of its block that a row with bounds is."""
    return 1 if lower > -math.inf and upper < math.inf else 0


@kernel
def _state_bounds(h, is_new, it, i, k, d, memory, stated):
    """Row i of a law of bounds, in block k, of which nothing else is used."""
    work = memory.work
    lower, upper = bounds(it, i, work)
    start, sign = origin(h, lower, upper)
    to = k * d + _component(lower, upper)
    if to > k * d:
        radius = 0.5 * (upper - lower)
        stated.disk[k], stated.mu[2 * k] = _TANGENTS, 1.0
        stated.b[k * d], stated.r[k * d] = -h * radius, h * radius  # b times s, once that is known
    elif lower == -math.inf and upper == math.inf:
        stated.disk[k] = EQUATION
    stated.b[to], stated.diagonal[to] = sign * work[it.rate + i], -1.0 if stated.disk[k] == EQUATION else 0.0
    if is_new:
        stated.r[to] = sign * (memory.mem[it.lam + i] - start)
    for l in range(12):
        stated.H[12 * to + l] = sign * work[it.H + 12 * i + l]


@tiny
def impulse_within_bounds(h, interaction, i, first, d, work, r):
    """lambda of row i of a law of bounds, whose block is ``first + i``."""
    lower, upper = bounds(interaction, i, work)
    start, sign = origin(h, lower, upper)
    counted = sign * r[(first + i) * d + _component(lower, upper)]
    return start + counted if start != 0.0 else counted


@kernel
def add_origins(h, interaction, work, p, size):
    """``p += H^T impulse`` of the origins of r of rows with bounds, and the norms of each one's share to size, as `add_impulses`."""
    term, it = stack(6), interaction
    for i in range(it.m):
        lower, upper = bounds(it, i, work)
        impulse, _ = origin(h, lower, upper)
        for side in range(2):
            body = it.a if side == 0 else it.b
            if body != ABSENT and impulse != 0.0:
                for l in range(6):
                    term[l] = work[it.H + 12 * i + 6 * side + l] * impulse
                    p[6 * body + l] += term[l]
                size[2 * body] += norm(term)
                size[2 * body + 1] += norm(view(term, 3, 3))


@tiny
def restitution(it, c, component, mem):
    """e of a component of contact c: of the normal, of tangents, none of rolling, or where the law has none."""
    e = it.e_n if component == 0 else it.e_t if component < 3 else ABSENT
    return mem[e + c] if e != ABSENT else 0.0


@tiny
def multiply_inverse(n, stride, inverse, x, y):
    """``y = M_hat^-1 x`` for the n blocks of six components of x; inverse: stride 10 (1/m and 3 × 3) or 36 each."""
    for c in range(n):
        _apply(stride, view(inverse, stride * c, stride), view(x, 6 * c, 6), view(y, 6 * c, 6))


@tiny
def _apply(stride, A, x, y):
    """``y = A x`` of one body."""
    if stride == 36:
        for k in range(6):
            s = 0.0
            for l in range(6):
                s += A[6 * k + l] * x[l]
            y[k] = s
    else:
        x3, x4, x5 = x[3], x[4], x[5]
        for k in range(3):
            y[k] = A[0] * x[k]
        for k in range(3):
            y[3 + k] = A[1 + 3 * k] * x3 + A[2 + 3 * k] * x4 + A[3 + 3 * k] * x5


@tiny
def block_norm(stride, inverse, side, other):
    """Norm of the 3 × 3 block of one inverse that gives velocities of a side, translation or rotation, by impulses of the other."""
    if stride == 10:
        return 0.0 if side != other else inverse[0] if side == 0 else math.sqrt(_dot_9(view(inverse, 1, 9)))
    s = 0.0
    for i in range(3 * side, 3 * side + 3):
        for j in range(3 * other, 3 * other + 3):
            s += inverse[6 * i + j] ** 2
    return math.sqrt(s)


@tiny
def _dot_9(A):
    """Sum of the squares of nine numbers."""
    s = 0.0
    for i in range(9):
        s += A[i] ** 2
    return s


@tiny
def complete_blocks(d, stride, inverse, stated, G):
    """``G = H M_hat^-T`` of blocks and the diagonal in units of velocity. In/out: diagonal, b of stated.

    Padding gets s, the largest ``H_i M_hat^-1 H_i^T`` of the block, so that W keeps one scale; an equation 0; a row of a force 1, see
    `schemes.rigid.forces`.
    """
    H, body, diagonal, b = stated.H, stated.body, stated.diagonal, stated.b
    for k in range(stated.disk.size):
        s, has_rest = 0.0, False
        for a in range(d):
            has_rest = has_rest or diagonal[k * d + a] > 0.0
        # 1. G = H M_hat^-T, and the scale of the block
        for a in range(d):
            i = (k * d + a) * 12
            for side in range(2):
                if body[2 * k + side] >= 0:
                    A = view(inverse, stride * body[2 * k + side], stride)
                    _apply(stride, A, view(H, i + 6 * side, 6), view(G, i + 6 * side, 6))
                else:
                    for l in range(6):
                        G[i + 6 * side + l] = 0.0
            if has_rest:
                s = max(s, _own(k * d + a, H, G))
        # immovable on both sides: any scale will do
        if not s > 0.0:
            s = 1.0
        # 2. diagonal in units of velocity; b of padding is an impulse (half a bound), which s turns into a velocity
        for a in range(k * d, k * d + d):
            if diagonal[a] == COMPLIANT:
                diagonal[a] = 1.0
            elif diagonal[a] > 0.0:
                diagonal[a] = s
                if stated.disk[k] != EQUATION:
                    b[a] *= s
            elif diagonal[a] < 0.0:
                diagonal[a] = 0.0


@tiny
def soften_equations(epsilon, d, stated, G, q):
    """Equations get epsilon times their own ``H_i M_hat^-1 H_i^T`` on the diagonal, and q less that times r. In/out: diagonal, q."""
    for k in range(stated.disk.size):
        for a in range(k * d, k * d + d if stated.disk[k] == EQUATION else k * d):
            if stated.diagonal[a] == 0.0:
                own = abs(_own(a, stated.H, G))
                stated.diagonal[a] = epsilon * (own if own > 0.0 else 1.0)
                q[a] -= stated.diagonal[a] * stated.r[a]


@tiny
def _own(a, H, G):
    """``H_a M_hat^-1 H_a^T`` of component a."""
    w = 0.0
    for l in range(12 * a, 12 * a + 12):
        w += H[l] * G[l]
    return w


@kernel
def link(n, body, n_bodies, fixed, first, blocks):
    """Blocks that act on each body that can move: ``blocks[first[i]:first[i + 1]]``. Out: first (n_bodies + 1,), blocks (2 n,)."""
    for i in range(n_bodies + 1):
        first[i] = 0
    for k in range(2 * n):
        if body[k] >= 0 and not fixed[body[k]].fixed:
            first[body[k] + 1] += 1
    for i in range(n_bodies):
        first[i + 1] += first[i]
    total = first[n_bodies]
    for k in range(2 * n - 1, -1, -1):
        if body[k] >= 0 and not fixed[body[k]].fixed:
            first[body[k] + 1] -= 1
            blocks[first[body[k] + 1]] = k // 2
    for i in range(n_bodies):
        first[i] = first[i + 1]
    first[n_bodies] = total


@kernel
def pattern(n, body, fixed, first, blocks, row, column, room):
    """Compressed rows of the blocks of W: pairs that share a movable body. False if there are more than room.

    Out: row (n + 1,), column.
    """
    row[0] = 0
    # merge the ordered lists of both bodies by insertion
    for i in range(n):
        end = row[i]
        for side in range(2):
            if body[2 * i + side] < 0 or fixed[body[2 * i + side]].fixed:
                continue
            for k in range(first[body[2 * i + side]], first[body[2 * i + side] + 1]):
                j, at = blocks[k], end
                while at > row[i] and column[at - 1] > j:
                    at -= 1
                # both bodies are shared: listed already
                if at > row[i] and column[at - 1] == j:
                    continue
                if end >= room:
                    return False
                for l in range(end, at, -1):
                    column[l] = column[l - 1]
                column[at] = j
                end += 1
        if end == row[i]:  # neither body can move: the diagonal block alone
            if end >= room:
                return False
            column[end] = i
            end += 1
        row[i + 1] = end
    return True


@tiny
def full_pattern(n, body, fixed, row, column):
    """Whether all blocks act on the first one's body, or there is but one: W then has all blocks. Out: row (n + 1,), column."""
    a, b = body[0], body[1]
    has_a, has_b = a >= 0 and not fixed[a].fixed, b >= 0 and not fixed[b].fixed
    for k in range(1, n):
        has_a = has_a and (body[2 * k] == a or body[2 * k + 1] == a)
        has_b = has_b and (body[2 * k] == b or body[2 * k + 1] == b)
    if not (n == 1 or has_a or has_b):
        return False
    for i in range(n):
        row[i + 1] = n * (i + 1)
        for j in range(n):
            column[n * i + j] = j
    row[0] = 0
    return True


_D = 0  # components of a block; bound by `specialised`


def _add_product(x, y, k, E, G, W):
    """``W_ab += sum_l E_al G_bl`` over the six columns of one body; x, y and k: where E, G and W begin."""
    sums = stack(2)
    for a in range(_D):
        i = x + 12 * a
        first, second, third = load(view(E, i, 2), 0, 2), load(view(E, i + 2, 2), 0, 2), load(view(E, i + 4, 2), 0, 2)
        for b in range(_D):
            j = y + 12 * b
            s = first * load(view(G, j, 2), 0, 2) + second * load(view(G, j + 2, 2), 0, 2)
            put(sums, 0, 2, s + third * load(view(G, j + 4, 2), 0, 2))
            W[k + a * _D + b] += sums[0] + sums[1]


_add_product_3, _add_product_5 = (tiny(specialised(_add_product, str(d), _D=d)) for d in (3, 5))


@tiny
def assemble(d, stated, G, row, column, W):
    """``W_ij = sum over shared bodies of E_i M_hat^-1 H_j^T``, plus the diagonal. Out: W."""
    E, body = stated.E, stated.body
    for i in range(stated.disk.size):
        for k in range(row[i], row[i + 1]):
            j = column[k]
            for a in range(d):
                for b in range(d):
                    W[(k * d + a) * d + b] = stated.diagonal[i * d + a] if i == j and a == b else 0.0
            for side in range(2):
                for other in range(2):
                    if body[2 * i + side] == body[2 * j + other] and body[2 * i + side] >= 0:
                        x, y = 12 * d * i + 6 * side, 12 * d * j + 6 * other
                        if d == 3:
                            _add_product_3(x, y, k * d * d, E, G, W)
                        else:
                            _add_product_5(x, y, k * d * d, E, G, W)


@tiny
def copy_rows(p, first, n_blocks, stated):
    """``E = H`` of n blocks, unless both use one memory."""
    for i in range(12 * p.d * first, 12 * p.d * (first + n_blocks) if p.E != p.H else 0):
        stated.E[i] = stated.H[i]


@tiny
def velocity(start, a, body_a, body_b, H, w):
    """``start + H w`` of component a, H of impulses or E of velocities."""
    for side in range(2):
        body = body_a if side == 0 else body_b
        for l in range(6 if body >= 0 else 0):
            start += H[12 * a + 6 * side + l] * w[6 * body + l]
    return start


@tiny
def velocities(d, stated, w, q):
    """``q = E w + b`` of blocks."""
    for k in range(stated.disk.size):
        for a in range(k * d, k * d + d):
            q[a] = velocity(stated.b[a], a, stated.body[2 * k], stated.body[2 * k + 1], stated.E, w)


@kernel
def largest_velocity(d, stated, w):
    """(largest ``|H w + b|`` of the equations, largest sum of the sizes of its terms)."""
    worst, most = 0.0, 0.0
    for i in range(stated.b.size):
        s = stated.b[i] if stated.diagonal[i] < 0.0 else 0.0
        size = abs(s)
        for l in range(12 if stated.diagonal[i] < 0.0 else 0):
            body = stated.body[2 * (i // d) + l // 6]
            term = stated.H[12 * i + l] * w[6 * body + l % 6] if body >= 0 else 0.0
            s, size = s + term, size + abs(term)
        worst, most = max(worst, abs(s)) + 0.0 * s, max(most, size)
    return worst, most


@tiny
def subtract_velocities(d, first, interaction, w, stated):
    """``b -= E w`` of the rows of equations, whose first block is given."""
    for a in range(d * first, d * first + interaction.m):
        stated.b[a] -= velocity(0.0, a, interaction.a, interaction.b, stated.E, w)


@tiny
def add_impulses(d, stated, p, size):
    """``p += H^T r`` of blocks, and the norms of each block's share in translation and rotation to size (2 each)."""
    term, H, body, r = stack(6), stated.H, stated.body, stated.r
    for k in range(stated.disk.size):
        for side in range(2):
            if body[2 * k + side] >= 0:
                for l in range(6):
                    term[l] = 0.0
                    for a in range(k * d, k * d + d):
                        term[l] += H[12 * a + 6 * side + l] * r[a]
                    p[6 * body[2 * k + side] + l] += term[l]
                size[2 * body[2 * k + side]] += norm(term)
                size[2 * body[2 * k + side] + 1] += norm(view(term, 3, 3))


@tiny
def _sizes(row, body_a, body_b, H, rate, speed):
    """Sizes of the terms of ``H w + rate`` of one row: without impulses that cancel on a body, and of these."""
    net, gross = abs(rate), 0.0
    for side in range(2):
        i = body_a if side == 0 else body_b
        if i >= 0:
            linear, angular = norm(view(H, 12 * row + 6 * side, 3)), norm(view(H, 12 * row + 6 * side + 3, 3))
            net += linear * speed[4 * i] + angular * speed[4 * i + 1]
            gross += linear * speed[4 * i + 2] + angular * speed[4 * i + 3]
    return net, gross


@kernel
def equation_residual(d, stated, w, speed, floor):
    """Largest ``|H w + rate|`` of the equations, relative to the velocities that cancel, and the same where rounding is not counted.

    speed (4 each): of bodies, translation and rotation, without impulses that cancel and of these. floor: rounding of the latter.
    """
    worst, judged, H, body, b = 0.0, 0.0, stated.E, stated.body, stated.b
    for k in range(stated.disk.size):
        if stated.disk[k] != EQUATION:
            continue
        for a in range(k * d, k * d + d):
            s = velocity(b[a], a, body[2 * k], body[2 * k + 1], H, w)
            if s != 0.0:
                net, gross = _sizes(a, body[2 * k], body[2 * k + 1], H, b[a], speed)
                if net != 0.0:  # it is 0 where velocities are so small that their squares are
                    worst, judged = max(worst, abs(s) / net), max(judged, abs(s) / (net + floor * gross))
            worst += 0.0 * s
    return worst, judged


@kernel
def rounding(d, stated, w, ulps):
    """``||H w + b||``, without rows that have a diagonal, as far as it may be rounding of w, velocities in inertial axes, and b."""
    total = 0.0
    for i in range(stated.b.size):
        gross = abs(stated.b[i]) if stated.diagonal[i] <= 0.0 else 0.0
        for l in range(12 if stated.diagonal[i] <= 0.0 else 0):
            body = stated.body[2 * (i // d) + l // 6]
            gross += abs(stated.H[12 * i + l] * w[6 * body + l % 6]) if body >= 0 else 0.0
        total += (ulps * gross) ** 2
    return math.sqrt(total)


@kernel
def least_size(d, stated, speed, share, ulps):
    """Least ``share net + ulps gross`` of the equations, without rows of forces, see `equation_residual`; infinity without any."""
    least, body = math.inf, stated.body
    for k in range(stated.disk.size):
        for a in range(k * d, k * d + d if stated.disk[k] == EQUATION and stated.diagonal[k * d] != COMPLIANT else k * d):
            net, gross = _sizes(a, body[2 * k], body[2 * k + 1], stated.H, stated.b[a], speed)
            if net > 0.0:
                least = min(least, share * net + ulps * gross)
    return least
