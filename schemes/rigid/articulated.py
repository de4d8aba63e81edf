"""Articulated inertias: the matrix ``A = S^T M_hat D`` of a tree of joints, factorised body by body, and solutions with it.

A body moves with its parent and by its own joint, ``u_i = X_i u_parent + D_i theta_i``. From the leaves on, with the equation of its joint,

    theta_i = E^-1 (S_i^T z_i - V u_parent),   E = S_i^T P_i D_i,   V = S_i^T P_i X_i,   U = X_i^T P_i D_i,

each body hands on what it resists and what acts on it,

    P_parent += X_i^T P_i X_i - U E^-1 V,      z_parent += X_i^T z_i - U E^-1 S_i^T z_i,

so that a factor and a solution take a time in proportion to the number of bodies. X^T and S on the left are those of the start of the step,
X and D on the right those of the iterate. Velocities are the motions u with ``dexp^-1`` of the step's rotation, which P contains.

Forces between a body and its parent are terms of these; other ones between bodies, ``sum of S^T l l^T D``, are added by Woodbury's formula.
Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, chapter 7.
"""

from nsds._jit import kernel, load, put, stack, tiny, view
from nsds.maths import rotations
from nsds.maths.vectors import cross, dot_6, times, times_transposed
from nsds.model.layout import ABSENT
from nsds.schemes.rigid.tables import MASS

_PIVOT = 1e-12  # of a diagonal entry: smaller pivots are rounding
SIX = 6  # lanes: components of a row, on which one operation acts at once


# ------------------------------------------------------------------------------------------------------------------ columns


@kernel
def state_columns(is_start, links, work):
    """Motion of each body by the unknowns of its joint, and with its parent, at q_k or at the current configuration.

    Out: S and carry_S, or D and carry_D: ``X (v, w) = (v + w × carry, w)``, without the last w where all rotations are the joint's own.
    """
    for at in range(links.size):
        link = links[at]
        columns, carry = view(work, link.S if is_start else link.D, 6 * link.k), view(work, link.carry_S if is_start else link.carry_D, 3)
        # 1. arms at this configuration; the point slides along axes of B
        Q, arm, lever, axis = view(work, link.Q, 4), stack(3), stack(3), stack(3)
        Q_above = view(work, links[link.above].Q if link.above != ABSENT else link.Q, 4)
        slides_on = Q if link.is_b != 0 else Q_above
        slid = 0.0 if is_start else 1.0
        for l in range(3):
            lever[l] = work[link.lever + l] + (slid * work[link.slide + l] if link.is_b != 0 else 0.0)
            arm[l] = work[link.arm + l] + (slid * work[link.slide + l] if link.is_b == 0 else 0.0)
        if not is_start:
            rotations.rotate(Q, lever, lever)
            if link.above != ABSENT:
                rotations.rotate(Q_above, arm, arm)
        for l in range(3):
            carry[l] = arm[l] - (lever[l] if link.turns < 3 else 0.0)
        # 2. translations of the joint
        for c in range(link.slides):
            column = view(columns, 6 * c, 6)
            for l in range(3):
                axis[l] = work[link.axis + 3 * c + l]
                column[3 + l] = 0.0
            if not is_start and (link.above != ABSENT or link.is_b != 0):
                rotations.rotate(slides_on, axis, axis)
            for l in range(3):
                column[l] = axis[l] if link.is_b == 0 else -axis[l]
        # 3. rotations of the joint, about its point
        for c in range(link.turns):
            column = view(columns, 6 * (link.slides + c), 6)
            for l in range(3):
                axis[l] = work[link.pin + l] if link.turns == 1 else 1.0 if l == c else 0.0
            if not is_start and link.turns == 1:
                rotations.rotate(Q, axis, axis)
            for l in range(3):
                column[3 + l] = axis[l]
            cross(lever, axis, column)


@tiny
def _hand_on(turns, carry, x):
    """``x <- X^T x``: a force and its moment about the centre of the parent."""
    moment = stack(3)
    cross(carry, x, moment)
    for l in range(3):
        x[3 + l] = moment[l] + (x[3 + l] if turns < 3 else 0.0)


# ------------------------------------------------------------------------------------------------------------------ factors


@kernel
def factorise(moves, h, s, tree, memory):
    """Factor of A, with the stiffness of forces between bodies; without motion D is S. False at a pivot that is rounding.

    In: rotary, inertias of rotation; S, D. Out: of links T, P, U, V, E; of forces apart rows, Y, motions, C.
    """
    work = memory.work
    plan, turn, is_regular = tree.plan[0], stack(3), True
    # 1. nothing from bodies beyond, as yet; rotations of the step
    for at in range(tree.links.size):
        for i in range(6):
            put(view(work, tree.links[at].P, 36), i, SIX, 0.0)
        if moves:
            for l in range(3):
                turn[l] = h * work[s.plan[0].w + 6 * tree.links[at].body + 3 + l]
            rotations.dexp_inverse(turn, view(work, tree.links[at].T, 9))
    # 2. from the leaves on
    for at in range(tree.links.size - 1, -1, -1):
        is_regular = _eliminate(at, moves, s, tree, memory) and is_regular
    # 3. forces between bodies that no joint connects
    if is_regular and moves and plan.n_apart > 0:
        is_regular = _add_forces_apart(s, tree, memory)
    return is_regular


@kernel
def _eliminate(at, moves, s, tree, memory):
    """The unknowns of one joint; the articulated inertia of its body goes to the parent. False at a pivot that is rounding."""
    # most joints have one unknown: compiled for it, loops over k vanish
    if tree.links[at].k == 1:
        return _eliminate_joint(1, at, moves, s, tree, memory)
    return _eliminate_joint(tree.links[at].k, at, moves, s, tree, memory)


@tiny
def _eliminate_joint(k, at, moves, s, tree, memory):
    """As `_eliminate`, of k unknowns."""
    work, link = memory.work, tree.links[at]
    P, column, on_left, on_right = stack(36), stack(6), stack(3), stack(3)
    E, S, D = view(work, link.E, k * k), view(work, link.S, 6 * k), view(work, link.D if moves else link.S, 6 * k)
    U, V = view(work, link.U, 6 * k), view(work, link.V, 6 * k)
    # 1. articulated inertia: of the bodies beyond, and its own
    for l in range(36):
        P[l] = work[link.P + l]
    _add_own(moves, link, s, tree, memory, P)
    # 2. V = S^T P, E = V D
    for a in range(k):
        put(V, a, SIX, _times_rows(view(S, 6 * a, 6), P))
        for c in range(k):
            E[k * a + c] = dot_6(view(V, 6 * a, 6), view(D, 6 * c, 6))
    if link.above == ABSENT:
        _add_forces(at, moves, s, tree, memory)
        return _factorise_joint(k, E)
    # 3. U = P D, which is V without motion, as P is symmetric then; P, U and V in velocities of the parent
    for l in range(3):
        on_left[l], on_right[l] = work[link.carry_S + l], work[(link.carry_D if moves else link.carry_S) + l]
    for c in range(k):
        if moves:
            for l in range(6):
                column[l] = 0.0
                for i in range(6):
                    column[l] += P[6 * l + i] * D[6 * c + i]
        put(U, c, SIX, load(column, 0, SIX) if moves else load(V, c, SIX))
        _hand_on(link.turns, on_left, view(U, 6 * c, 6))
        _hand_on(link.turns, on_right, view(V, 6 * c, 6))
    for l in range(0, 36, 6):
        _hand_on(link.turns, on_right, view(P, l, 6))
    _hand_on_rows(link.turns, on_left, P)
    # 4. forces between the body and its parent, then E = L U, and what the motion of the joint takes off
    _add_forces(at, moves, s, tree, memory)
    if not _factorise_joint(k, E):
        return False
    _solve_rows(k, E, V)
    above = view(work, tree.links[link.above].P, 36)
    for i in range(6):
        row = load(P, i, SIX)
        for c in range(k):
            row = row - U[6 * c + i] * load(V, c, SIX)
        put(above, i, SIX, load(above, i, SIX) + row)
    return True


@tiny
def _add_own(moves, link, s, tree, memory, P):
    """Mass and inertia of a body for itself; with motion for velocities that its turn in the step gives. In/out: P."""
    body, J = link.body, stack(9)
    for l in range(9):
        J[l] = memory.work[tree.plan[0].rotary + 9 * body + l]
    for i in range(0, 9 if moves else 0, 3):
        times_transposed(view(memory.work, link.T, 9), view(J, i, 3), view(J, i, 3))  # a row of J T
    for i in range(3):
        P[7 * i] += memory.mem[s.bodies[body].q + MASS]
        for l in range(3):
            P[6 * (3 + i) + 3 + l] += J[3 * i + l]


@tiny
def _times_rows(x, P):
    """``x^T P`` of six numbers, as lanes."""
    row = x[0] * load(P, 0, SIX)
    for i in range(1, 6):
        row = row + x[i] * load(P, i, SIX)
    return row


@tiny
def _hand_on_rows(turns, carry, P):
    """``P <- X^T P``, see `_hand_on`, of all columns at once."""
    a, b, c, share = load(P, 0, SIX), load(P, 1, SIX), load(P, 2, SIX), 1.0 if turns < 3 else 0.0
    put(P, 3, SIX, carry[1] * c - carry[2] * b + share * load(P, 3, SIX))
    put(P, 4, SIX, carry[2] * a - carry[0] * c + share * load(P, 4, SIX))
    put(P, 5, SIX, carry[0] * b - carry[1] * a + share * load(P, 5, SIX))


@tiny
def _add_forces(at, moves, s, tree, memory):
    """Stiffness of all forces between the body of a link and its parent."""
    force = tree.links[at].force if moves else ABSENT
    while force != ABSENT:
        if memory.iwork[s.plan[0].begin + force] >= 0:
            _add_force(s.interactions[force], at, tree, memory)
        force = memory.iwork[tree.plan[0].next + force]


@tiny
def _row(it, j, work, row):
    """Column j of ``H^T L`` of a force whose stiffness is ``L L^T``, see `schemes.rigid.forces`: a row of both bodies."""
    for l in range(12):
        row[l] = 0.0
        for i in range(j, it.m):
            row[l] += work[it.root + it.m * i + j] * work[it.H + 12 * i + l]


@tiny
def _turn_back(T, x):
    """The row x of velocities as one of motions: times T on its right."""
    times_transposed(T, view(x, 3, 3), view(x, 3, 3))


@kernel
def _add_force(it, at, tree, memory):
    """Stiffness ``H^T L L^T H`` of a force between the body of a link and its parent. In/out: E, P of the parent, U and V at it."""
    work, link, row = memory.work, tree.links[at], stack(12)
    k, left, right, of_parent = link.k, stack(6), stack(6), stack(6)
    own = 0 if it.a == link.body else 6
    for j in range(it.m):
        _row(it, j, work, row)
        # 1. on the unknowns of the joint
        for l in range(6):
            left[l] = right[l] = row[own + l]
        _turn_back(view(work, link.T, 9), right)
        for a in range(k):
            for b in range(k):
                work[link.E + k * a + b] += dot_6(view(work, link.S + 6 * a, 6), left) * dot_6(view(work, link.D + 6 * b, 6), right)
        if link.above == ABSENT:
            continue
        # 2. on the motion of the parent: with it, and its own
        alpha, beta = stack(6), stack(6)
        for l in range(6):
            alpha[l], beta[l], of_parent[l] = left[l], right[l], row[6 - own + l]
        _hand_on(link.turns, view(work, link.carry_S, 3), alpha)
        _hand_on(link.turns, view(work, link.carry_D, 3), beta)
        for l in range(6):
            alpha[l] += of_parent[l]
        _turn_back(view(work, tree.links[link.above].T, 9), of_parent)
        for l in range(6):
            beta[l] += of_parent[l]
        # 3. in P, U and V
        for i in range(6):
            for l in range(6):
                work[tree.links[link.above].P + 6 * i + l] += alpha[i] * beta[l]
        for c in range(k):
            a, b = dot_6(view(work, link.S + 6 * c, 6), left), dot_6(view(work, link.D + 6 * c, 6), right)
            for l in range(6):
                work[link.U + 6 * c + l] += alpha[l] * b
                work[link.V + 6 * c + l] += a * beta[l]


@tiny
def _factorise_joint(k, E):
    """``E <- L U`` without pivoting, of U 1 / pivots; False at a pivot that is rounding."""
    for c in range(k):
        least = _PIVOT * abs(E[k * c + c])
        for j in range(c):
            E[k * c + j] *= E[k * j + j]
            for i in range(j + 1, k):
                E[k * c + i] -= E[k * c + j] * E[k * j + i]
        if not E[k * c + c] > least:
            return False
        E[k * c + c] = 1.0 / E[k * c + c]
    return True


@tiny
def _solve_joint(k, E, x):
    """``x <- E^-1 x`` of k numbers with the factors of E."""
    for c in range(k):
        for j in range(c):
            x[c] -= E[k * c + j] * x[j]
    for c in range(k - 1, -1, -1):
        for j in range(c + 1, k):
            x[c] -= E[k * c + j] * x[j]
        x[c] *= E[k * c + c]


@tiny
def _solve_rows(k, E, V):
    """``V <- E^-1 V`` of k rows of six numbers, as lanes."""
    for c in range(k):
        row = load(V, c, SIX)
        for j in range(c):
            row = row - E[k * c + j] * load(V, j, SIX)
        put(V, c, SIX, row)
    for c in range(k - 1, -1, -1):
        row = load(V, c, SIX)
        for j in range(c + 1, k):
            row = row - E[k * c + j] * load(V, j, SIX)
        put(V, c, SIX, E[k * c + c] * row)


# ------------------------------------------------------------------------------------------------------------------ solutions


@kernel
def solve(is_start, k, tree, memory):
    """``A theta = S^T z`` in the k-th group; returns ``z . S theta``, as if A were symmetric. is_start: D is S.

    In: z (6) of each link. Out: theta, and motion (6) of each link, the velocity ``D theta`` of its body.
    """
    energy = _solve_tree(is_start, tree.groups[k], tree, memory)
    if not is_start and tree.plan[0].n_apart > 0:
        energy -= _solve_with_forces_apart(k, tree, memory)
    return energy


@kernel
def solve_all(is_start, tree, memory):
    """`solve` in all groups."""
    energy = 0.0
    for k in range(tree.groups.size):
        energy += solve(is_start, k, tree, memory)
    return energy


@kernel
def _solve_tree(is_start, group, tree, memory):
    """As `solve`, without forces apart."""
    work, first, end, energy = memory.work, group.link, group.link + group.links, 0.0
    # 1. from the leaves on: what acts on each joint
    for at in range(first, end):
        for l in range(6):
            work[tree.links[at].y + l] = work[tree.links[at].z + l]
    for at in range(end - 1, first - 1, -1):
        if tree.links[at].k == 1:  # as in `_eliminate`
            energy += _load_joint(1, tree.links[at], tree, work)
        else:
            energy += _load_joint(tree.links[at].k, tree.links[at], tree, work)
    # 2. from the world on: motion
    for at in range(first, end):
        if tree.links[at].k == 1:
            _move_joint(1, is_start, tree.links[at], tree, work)
        else:
            _move_joint(tree.links[at].k, is_start, tree.links[at], tree, work)
    return energy


@tiny
def _load_joint(k, link, tree, work):
    """Forces on a joint of k unknowns, and through it on the parent. Returns the energy. Out: theta with the parent at rest."""
    theta, y, given, energy = view(work, tree.plan[0].theta + link.first, k), view(work, link.y, 6), stack(6), 0.0
    for c in range(k):
        theta[c] = given[c] = dot_6(view(work, link.S + 6 * c, 6), y)
    _solve_joint(k, view(work, link.E, k * k), theta)
    for c in range(k):
        energy += given[c] * theta[c]
    if link.above != ABSENT:
        above = view(work, tree.links[link.above].y, 6)
        _hand_on(link.turns, view(work, link.carry_S, 3), y)
        for l in range(6):  # one by one: they have just been written so, and lanes would wait for all of them
            above[l] += y[l]
        for c in range(k):
            for l in range(6):
                above[l] -= work[link.U + 6 * c + l] * theta[c]
    return energy


@tiny
def _move_joint(k, is_start, link, tree, work):
    """Motion of a joint of k unknowns, with its parent. In/out: theta. Out: u, motion."""
    theta, u, motion = view(work, tree.plan[0].theta + link.first, k), view(work, link.u, 6), view(work, link.motion, 6)
    D, spin = view(work, link.S if is_start else link.D, 6 * k), stack(3)
    for l in range(6):
        u[l] = 0.0
    if link.above != ABSENT:
        above = view(work, tree.links[link.above].u, 6)
        for c in range(k):
            theta[c] -= dot_6(view(work, link.V + 6 * c, 6), above)
        cross(view(above, 3, 3), view(work, link.carry_S if is_start else link.carry_D, 3), spin)
        for l in range(3):
            u[l], u[3 + l] = above[l] + spin[l], above[3 + l] if link.turns < 3 else 0.0
    for c in range(k):
        for l in range(6):
            u[l] += D[6 * c + l] * theta[c]
    for l in range(6):
        motion[l] = u[l]
    if not is_start:
        times(view(work, link.T, 9), view(u, 3, 3), view(motion, 3, 3))


# ------------------------------------------------------------------------------------------------------------------ rows of bodies


@tiny
def add_left(at, x, s, tau, tree, memory):
    """Impulses on the joints of the path by an impulse x (6) on the body of a link, added to s, and ``E^-1`` times these, to tau (n each).

    With `add_right` of another row, ``y . D A^-1 S^T x = a . tau``. In/out: x, spoiled.
    """
    work, given, theta = memory.work, stack(6), stack(6)
    while at != ABSENT:
        link = tree.links[at]
        for c in range(link.k):
            theta[c] = given[c] = dot_6(view(work, link.S + 6 * c, 6), x)
        _solve_joint(link.k, view(work, link.E, link.k * link.k), theta)
        for c in range(link.k):
            s[link.first + c] += given[c]
            tau[link.first + c] += theta[c]
        if link.above != ABSENT:
            _hand_on(link.turns, view(work, link.carry_S, 3), x)
            for c in range(link.k):
                for l in range(6):
                    x[l] -= work[link.U + 6 * c + l] * theta[c]
        at = link.above


@tiny
def add_right(at, y, a, tree, memory):
    """Parts of a row y (6) of the velocity of a body in the joints of its path, each given those before, added to a (n).

    In/out: y, spoiled.
    """
    work, part = memory.work, stack(6)
    _turn_back(view(work, tree.links[at].T, 9), y)
    while at != ABSENT:
        link = tree.links[at]
        for c in range(link.k):
            part[c] = dot_6(view(work, link.D + 6 * c, 6), y)
            a[link.first + c] += part[c]
        if link.above != ABSENT:
            _hand_on(link.turns, view(work, link.carry_D, 3), y)
            for c in range(link.k):
                for l in range(6):
                    y[l] -= work[link.V + 6 * c + l] * part[c]
        at = link.above


@kernel
def mobility(k, a, tree, work):
    """``a . E^-1 a`` of the parts of a row in the joints of the k-th group, see `add_right`: small where they allow no motion along it."""
    group, part, total = tree.groups[k], stack(6), 0.0
    for at in range(group.link, group.link + group.links):
        link = tree.links[at]
        for c in range(link.k):
            part[c] = a[link.first + c]
        _solve_joint(link.k, view(work, link.E, link.k * link.k), part)
        for c in range(link.k):
            total += a[link.first + c] * part[c]
    return total


# ------------------------------------------------------------------------------------------------------------------ forces apart


@kernel
def _add_forces_apart(s, tree, memory):
    """``C = 1 + l^T D A^-1 S^T l`` for the rows l of the forces apart, factorised. False if C is singular. Out: rows, right, left, C."""
    work, iwork, plan, x, row = memory.work, memory.iwork, tree.plan[0], stack(6), 0
    n, m, unused = plan.n, plan.n_apart, view(memory.work, plan.theta, plan.n)
    # 1. rows, 0 of a force that is off, and their parts in the joints
    for i in range(2 * n * m):
        work[plan.left + i] = 0.0
    for i in range(plan.apart_forces):
        it = s.interactions[iwork[plan.apart + i]]
        for j in range(it.m):
            given = view(work, plan.rows + 12 * row, 12)
            _row(it, j, work, given)
            for side in range(2):
                at = iwork[plan.apart_links + 2 * row + side]
                if at == ABSENT:
                    continue
                for l in range(6):
                    given[6 * side + l] *= 1.0 if iwork[s.plan[0].begin + iwork[plan.apart + i]] >= 0 else 0.0
                    x[l] = given[6 * side + l]
                add_left(at, x, unused, view(work, plan.left + n * row, n), tree, memory)
                for l in range(6):
                    x[l] = given[6 * side + l]
                add_right(at, x, view(work, plan.right + n * row, n), tree, memory)
            row += 1
    # 2. C
    for a in range(m):
        for b in range(m):
            total = 1.0 if a == b else 0.0
            for c in range(n):
                total += work[plan.right + n * a + c] * work[plan.left + n * b + c]
            work[plan.C + m * a + b] = total
    return _factorise_joint(m, view(work, plan.C, m * m))


@kernel
def _solve_with_forces_apart(k, tree, memory):
    """The solution of the k-th group, after `_solve_tree`, for ``z - l C^-1 l^T D theta``. Returns by what ``z . S theta`` has fallen."""
    work, iwork, plan, energy = memory.work, memory.iwork, tree.plan[0], 0.0
    m = plan.n_apart
    share, rate = view(work, plan.share, m), view(work, plan.share + m, m)
    for a in range(m):
        share[a] = 0.0
        for side in range(2):
            at = iwork[plan.apart_links + 2 * a + side]
            if at != ABSENT and tree.links[at].group == k:
                share[a] += dot_6(view(work, plan.rows + 12 * a + 6 * side, 6), view(work, tree.links[at].motion, 6))
        rate[a] = share[a]
    _solve_joint(m, view(work, plan.C, m * m), share)
    for a in range(m):
        energy += share[a] * rate[a]
    # the impulses of these forces act for this solution only
    _act(-1.0, share, tree, memory)
    _solve_tree(False, tree.groups[k], tree, memory)
    _act(1.0, share, tree, memory)
    return energy


@tiny
def _act(sign, share, tree, memory):
    """``z += sign l share`` of the rows of forces apart."""
    plan = tree.plan[0]
    for a in range(plan.n_apart):
        for side in range(2):
            at = memory.iwork[plan.apart_links + 2 * a + side]
            for l in range(6 if at != ABSENT else 0):
                memory.work[tree.links[at].z + l] += sign * share[a] * memory.work[plan.rows + 12 * a + 6 * side + l]


@kernel
def correct_by_forces_apart(n_rows, left, right, d, W, tree, memory):
    """``W -= (right l) C^-1 (l left)`` in blocks of d components, for rows with n numbers each at left and at right, see `add_left`."""
    work, plan = memory.work, tree.plan[0]
    n, m, count = plan.n, plan.n_apart, n_rows // d
    share = view(work, plan.share, m)
    for b in range(n_rows):
        for f in range(m):
            share[f] = 0.0
            for c in range(n):
                share[f] += work[plan.right + n * f + c] * work[left + n * b + c]
        _solve_joint(m, view(work, plan.C, m * m), share)
        for a in range(n_rows):
            for f in range(m):
                for c in range(n if share[f] != 0.0 else 0):
                    work[W + ((a // d * count + b // d) * d + a % d) * d + b % d] -= (
                        work[right + n * a + c] * work[plan.left + n * f + c] * share[f]
                    )
