"""Machines whose joints form a tree: the halves of a step of RATTLE in the velocities that joints leave free.

With S, whose columns are the velocities ``w = S theta`` that all joints allow, impulses of joints drop out,

    S_k^T (M (w - w_k) - h/2 F) = 0,        S_{k+1}^T (M (w_{k+1} - w) - h/2 F) = 0,  w_{k+1} = S_{k+1} theta,

and few unknowns are left, and no equations. In the first half Newton's iteration turns and shifts joints until

    R_free = M (w - w_k) - h/2 F,    A theta = g = S_k^T R_free,    A = S_k^T M_hat D

vanishes, by ``-h theta`` at a time. From the world on, joints give the rotation Q of a body in the step, ``Q_i = Q_parent E``, and its
displacement; these give its velocities, ``h omega = log(Q)``. So ``D = dw/d(joints)`` are the columns of S at the new places, their
rotations times ``dexp^-1(h omega)``. All is in inertial axes, relative to q_k: nothing cancels in a short step. A is factorised body by
body (`nsds.schemes.rigid.articulated`): a step takes a time in proportion to their number.

Impulses of joints on a body are the residual of its balance, minus what the bodies beyond it transmit. Rows of a joint split it by
projection, as its directions are orthogonal.
References: Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, 3.2 and 4.1 (motion subspaces, trees); `schemes.rigid.rattle`.
"""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import by_reference, kernel, load, put, stack, tiny, view
from nsds.maths import rotations
from nsds.maths.vectors import cross, dot, dot_6, norm, times
from nsds.model.joints import ALIGN, POINT
from nsds.model.layout import ABSENT, table
from nsds.schemes.rigid import articulated, forces, loads, problem
from nsds.schemes.rigid import moreau_jean as plain
from nsds.schemes.rigid import tree_contacts as laws
from nsds.schemes.rigid.articulated import SIX
from nsds.schemes.rigid.bodies import State, rotational_matrix, subtract_turning, turn_block
from nsds.schemes.rigid.enabled import is_gone
from nsds.schemes.rigid.tables import EQUALITY, FORCE, INERTIA, MASS
from nsds.status import CONVERGED, INFEASIBLE, NEWTON

# One row per movable body, none before its parent, those of a group together; links and joints as in Featherstone.
LINK = table(
    # body; parent: another body, above: its row, both ABSENT for the world, above also if the parent is fixed; joint: an interaction,
    # ABSENT for a free body; is_b: the body is B of its joint, along whose axes the point of the other one slides
    "body", "parent", "above", "joint", "is_b",
    # points: rows of the joint that hold a point, which come first; slides, turns: free translations and rotations; planar: in z = 0
    "points", "slides", "turns", "planar",
    # first: first of the k unknowns of the joint; group: component of the graph of joints and forces; force: first interaction that is
    # one between the body and its parent, ABSENT if none is
    "first", "k", "group", "force",
    # work memory, see `nsds.schemes.rigid.articulated`, inertial axes: S, D (6 k) and carry_S, carry_D (3), m, motion by the joint and with
    # the parent at the start and at the iterate; T (9): dexp^-1 of the rotation of the step; P (6, 6), U, V (6 k), E (k, k): factors
    "S", "D", "carry_S", "carry_D", "T", "P", "U", "V", "E",
    # z, y (6): impulse on the body, and with what the bodies beyond hand on; u, motion (6): its motion, and its velocity by that
    "z", "y", "u", "motion",
    # arm, lever (3), m: the point of the joint from the parent and from the body; axis (3, 3): of translations; pin (3): of the rotation;
    # shift (3), m, spin (3), rad: displacement and rotation that close the joint
    "arm", "lever", "axis", "pin", "shift", "spin",
    # step: Q (4), rotation of the body; way (3), its displacement, m; swing (4): E, rotation of the joint; slide (3), m
    "Q", "way", "swing", "slide",
)  # fmt: skip
# Of all links, in the work memory.
PLAN = table(
    # n: unknowns; moved (n): displacement of the joints in the step, m or rad; regular: whether A has a factor
    # stands: whether axes, arms and S are those of the configuration at which a half begins
    "n", "moved", "regular", "stands",
    # theta (n): correction; wrench (6), rotary (3, 3) of each body: impulse of joints and inertia
    "theta", "wrench", "rotary",
    # integers: joins: whether an interaction is a joint of the tree; row_of: link of each body; next: of each interaction that is a force
    # between a body and its parent, the next one of these bodies
    "joins", "row_of", "next",
    # forces between bodies that no joint connects: their number and that m of their rows; apart: which, apart_links (2 m): bodies of rows
    "apart_forces", "n_apart", "apart", "apart_links",
    # work memory: rows (12 m), left, right (n m), C (m, m) and share (2 m), see `nsds.schemes.rigid.articulated`
    "rows", "left", "right", "C", "share",
)  # fmt: skip

_APART = 12  # rows of forces between bodies that no joint connects: up to here trees are faster than equations
_FAR, _FAR_IN_CONTACT = 2.5, 0.5  # radians, the largest rotation of a body in a step
_DRIVEN = 0.1  # of the energy present, which joints and laws may add: that of rotation in a step is a few hundredths
_PATIENCE = 10  # Newton's iterations
_UNSOLVED = 2  # problems of laws in a row that the solver may leave unsolved
_PROGRESS = 0.1  # by which one of them at least reduces corrections that are not rounding
_SLOW = 1e-3  # of the last correction: A is recomputed for a larger one
_SMALL = 1e-6  # a correction to which forces respond to first order
_CLOSED = 1e-8  # relative to the lengths that cancel in it: smaller gaps of a joint are closed to first order
_ORTHOGONAL = 1e-10  # by which products of directions may differ from 0 and 1


@by_reference
class Tables(NamedTuple):
    """A tree; no links where joints form none."""

    links: np.ndarray
    plan: np.ndarray
    groups: np.ndarray  # `tree_contacts.GROUP`
    contacts: np.ndarray  # the plan of `tree_contacts`


# ------------------------------------------------------------------------------------------------------------------ preparation


def plant(lists, joints, method, work, iwork):
    """`Tables` of the tree of joints, see `joints_of`, for the default method; its work memory is reserved."""
    is_for_it = method.name == "auto" and not lists.bodies["coupled"].any()
    order, plan = _order(lists, joints if is_for_it else {}), np.zeros(1, PLAN)
    # 1. links in the order of the groups
    group_of = _groups(lists, order)
    order.sort(key=lambda line: group_of[line[0]])
    links, n = np.zeros(len(order), LINK), 0
    row_of, groups = np.full(lists.bodies.size, ABSENT), np.zeros(max(group_of.values(), default=-1) + 1, laws.GROUP)
    # 2. unknowns of each joint
    for at, (body, parent, joint, is_b, slides, turns) in enumerate(order):
        link, group = links[at], groups[group_of[body]]
        above = row_of[parent] if parent != ABSENT else ABSENT
        link["body"], link["parent"], link["above"], link["joint"], link["is_b"] = body, parent, above, joint, is_b
        link["slides"], link["turns"], link["first"], link["k"], link["group"] = slides, turns, n, slides + turns, group_of[body]
        link["planar"] = lists.bodies["planar"][body]
        link["points"] = (2 if link["planar"] else 3) - slides
        row_of[body], n = at, n + slides + turns
        group["size"], group["links"] = group["size"] + slides + turns, group["links"] + 1
    groups["origin"], groups["link"] = np.cumsum(groups["size"]) - groups["size"], np.cumsum(groups["links"]) - groups["links"]
    # 3. forces: between a body and its parent, or apart
    chain, apart, sides = _forces_of(lists, links, row_of)
    if n == 0 or len(sides) > 2 * _APART:
        return Tables(np.zeros(0, LINK), plan, groups[:0], np.zeros(1, laws.PLAN))
    # 4. work memory
    sizes = {"arm": 3, "lever": 3, "axis": 9, "pin": 3, "shift": 3, "spin": 3, "Q": 4, "way": 3, "swing": 4, "slide": 3}
    sizes |= {"carry_S": 3, "carry_D": 3, "T": 9, "P": 36, "z": 6, "y": 6, "u": 6, "motion": 6}
    for link in links:
        k = int(link["k"])
        for name, size in (sizes | dict.fromkeys(("S", "D", "U", "V"), 6 * k) | {"E": k * k}).items():
            link[name] = work.reserve(size)
    m = len(sides) // 2
    work.place(plan, moved=n, regular=1, stands=1, theta=n, wrench=6 * row_of.size, rotary=9 * row_of.size)
    work.place(plan, rows=12 * m, left=n * m, right=n * m, C=m * m, share=2 * m)
    plan["n"], plan["row_of"], plan["next"] = n, _store(iwork, row_of), _store(iwork, chain)
    plan["apart_forces"], plan["n_apart"], plan["apart"], plan["apart_links"] = len(apart), m, _store(iwork, apart), _store(iwork, sides)
    plan["joins"] = _store(iwork, np.isin(np.arange(lists.interactions.size), links["joint"]))
    return Tables(links, plan, groups, laws.reserve(lists, method, n, work, iwork))


def _forces_of(lists, links, row_of):
    """(next of each interaction, interactions that are forces apart, links on both sides of each of their rows). Out: force."""
    chain, apart, sides = np.full(lists.interactions.size, ABSENT), [], []
    links["force"] = ABSENT
    for number in np.flatnonzero(lists.interactions["law"] == FORCE):
        it = lists.interactions[number]
        ends = [row_of[it[side]] if it[side] != ABSENT else ABSENT for side in "ab"]
        at = next((a for a, b in (ends, ends[::-1]) if a != ABSENT and links["above"][a] == b), ABSENT)
        if at != ABSENT:
            chain[number], links["force"][at] = links["force"][at], number
        elif ends[0] != ends[1]:
            apart.append(number)
            sides += ends * int(it["m"])
    return chain, apart, sides


def _store(iwork, numbers):
    """Offset of integers that are the same for all members."""
    return iwork.store(np.tile(np.array(numbers, np.int64), (iwork.n_members, 1)))


def joints_of(lists, mem):
    """{interaction: (slides, turns)} of joints with free translations along axes, and rotations about one, all or none, in all members."""
    found, bodies = {}, lists.bodies
    # a joint of position rows only, whose first rows hold a point and the others a direction
    for k, it in enumerate(lists.interactions):
        m = int(it["m"])
        if it["law"] != EQUALITY or it["row"] == ABSENT:
            continue
        kinds = mem[:, it["row"] : it["row"] + m].view(np.int64)
        a, u, b, w = (mem[:, it[f"row_{name}"] : it[f"row_{name}"] + 3 * m].reshape(-1, m, 3) for name in "aubw")
        n, is_planar = int((kinds[0] == POINT).sum()), bool(bodies["planar"][it["a"]])
        turns = ({0: 1, 1: 0} if is_planar else {0: 3, 2: 1, 3: 0}).get(m - n)
        if n == 0 or turns is None or (kinds != np.where(np.arange(m) < n, POINT, ALIGN)).any():
            continue
        # one point, one pin, no offset, orthonormal directions: then its impulse is found by projection
        is_straight = not mem[:, it["row_offset"] + n : it["row_offset"] + m].any()
        has_one_pin = turns != 1 or is_planar or (u[:, n:] == u[:, n : n + 1]).all()
        has_one_point = all((points == points[:, :1]).all() for points in (a[:, :n], b[:, :n]))
        axes = (w[:, :n], w[:, n:], u[:, n : n + 1] if turns == 1 else u[:, n:])
        if is_straight and has_one_point and has_one_pin and all(_are_orthogonal(directions) for directions in axes):
            found[k] = (2 if is_planar else 3) - n, turns
    return found


def _are_orthogonal(directions):
    """Whether vectors (members, k, 3) are orthogonal unit vectors."""
    return abs(directions @ directions.transpose(0, 2, 1) - np.eye(directions.shape[1])).max(initial=0.0) < _ORTHOGONAL


def _order(lists, joints):
    """[(body, parent, joint, is_b, slides, turns)] from the world on; nothing without joints, and if they close a loop."""
    bodies, around = lists.bodies, {}

    def root_of(body):
        return ABSENT if body == ABSENT or bodies["fixed"][body] else body

    # 1. neighbours of each body; fixed bodies count as the world
    for k, left in joints.items():
        a, b = (int(lists.interactions[side][k]) for side in "ab")
        for body, parent, is_b in ((a, b, False), (b, a, True)):
            if root_of(body) != ABSENT:
                around.setdefault(root_of(parent), []).append((body, parent, k, is_b, *left))
    # 2. breadth first, from the world and then from each body not reached
    order, known, used = [], set(), set()
    for root in (ABSENT, *np.flatnonzero(bodies["fixed"] == 0).tolist()) if joints else ():
        if root in known:
            continue
        if root != ABSENT:
            order.append((root, ABSENT, ABSENT, False, *((2, 1) if bodies["planar"][root] else (3, 3))))
        known.add(root)
        waiting = [root]
        while waiting:
            for line in around.get(waiting.pop(0), ()):
                if line[2] in used:
                    continue
                # 3. a second path to a body: a closed loop
                if line[0] in known:
                    return []
                used.add(line[2])
                known.add(line[0])
                order.append(line)
                waiting.append(line[0])
    return order


def _groups(lists, order):
    """{body: number} of components connected by joints and forces, in the order in which its first body comes."""
    leader = {line[0]: line[0] for line in order}

    def leader_of(body):
        while leader[body] != body:
            body = leader[body]
        return body

    pairs = [(body, parent) for body, parent, *_ in order]
    pairs += [(int(it["a"]), int(it["b"])) for it in lists.interactions if it["law"] == FORCE]
    for a, b in pairs:
        if a in leader and b in leader:
            leader[leader_of(b)] = leader_of(a)
    numbers = {}
    return {line[0]: numbers.setdefault(leader_of(line[0]), len(numbers)) for line in order}


# ------------------------------------------------------------------------------------------------------------------ halves of a step


@kernel
def laws_of(may_be_open, n_contacts, n_blocks, s, tree, memory):
    """Blocks of laws beside the joints, if the step is one of the tree, else -1: its joints are enabled and nearly closed.

    Other equations, moving bodies of infinite mass, or more blocks than there is room for exclude it.
    In/out: begin, see `tree_contacts.number_blocks`.
    """
    iwork = memory.iwork
    p, joins, is_one, n_laws = s.plan[0], tree.plan[0].joins, tree.links.size > 0, 0
    for i in range(s.bodies.size if is_one else 0):
        is_one = is_one and not is_gone(s.bodies[i], memory.work)
        for l in range(6 if s.bodies[i].fixed else 0):
            is_one = is_one and memory.work[p.v_old + 6 * i + l] == 0.0
    for k in range(s.interactions.size if is_one else 0):
        it, acts, is_joint = s.interactions[k], iwork[p.begin + k] >= 0, iwork[joins + k] != 0
        is_one = is_one and (it.law != EQUALITY or acts == is_joint) and (not is_joint or may_be_open or _is_closed(it, p, memory))
        n_laws += it.n_blocks if acts and not is_joint and it.law != FORCE else 0
    if not is_one or n_contacts + n_laws > tree.contacts[0].most or (n_contacts > 0 and not problem.has_matrix(n_contacts, n_blocks, p)):
        return -1
    if n_contacts + n_laws > 0:
        laws.number_blocks(s.interactions, joins, p, iwork)
    return n_laws


@tiny
def _is_closed(it, p, memory):
    """Whether a joint is all but closed."""
    x_a, arm, gap, turn = view(memory.work, p.q_old + 7 * it.a, 3), view(memory.mem, it.row_a, 3), 0.0, 0.0
    for i in range(it.m):
        y = abs(memory.mem[it.y + i])
        gap, turn = (max(gap, y), turn) if memory.imem[it.row + i] == POINT else (gap, max(turn, y))
    # one length is mostly enough, and its square
    if turn <= _CLOSED and gap * gap <= _CLOSED * _CLOSED * max(dot(x_a, x_a), dot(arm, arm)):
        return True
    length = norm(x_a) + norm(arm)
    if it.b != ABSENT:
        length += norm(view(memory.work, p.q_old + 7 * it.b, 3))
    return turn <= _CLOSED and gap <= _CLOSED * length


@kernel
def move(t, n_contacts, n_laws, s, tree, calls, options, memory):
    """The first half, from v_k. Returns (status, iterations, residual). Out: v, w, f, p, r.

    CONVERGED, NEWTON if nothing is found, or INFEASIBLE if no solution exists, see `tree_contacts.is_contradicted`.

    A is kept as long as corrections shrink by `_SLOW`. The last of them is applied to first order: the one after which, by the rate of
    convergence, only rounding remains, or one that no longer shrinks and is rounding of the state.
    """
    functions, solver_options, work = calls.functions, calls.solver_options, memory.work
    p, plan, h, tol = s.plan[0], tree.plan[0], options.span, max(options.tol, plain.ROUNDING)
    m, residual, before, rate, scale, is_slow, n_iter, unsolved = p.n_bodies, math.inf, math.inf, 1.0, 0.0, True, 0, 0
    far = _FAR if n_contacts + n_laws == 0 else _FAR_IN_CONTACT
    v, R, w, R_free = view(work, p.v, 6 * m), view(work, p.R, 9 * m), view(work, p.w, 6 * m), view(work, p.R_free, 6 * m)
    # 1. laws, geometry of the joints, and a guess by the velocities at the start
    if n_contacts + n_laws > 0 or p.bounded != 0:
        laws.state(t, n_contacts, n_laws, s, plan.joins, options, functions, memory)
    _stand(view(work, p.q_old, 7 * m), R, s, tree, memory)
    _close(s, tree, memory)
    _guess(h, tree, work, w)
    # 2. Newton's iteration in the joints: places, forces, residual
    while n_iter < min(_PATIENCE, options.max_iter) and _find_places(tree, work, h, w) < far:
        plain.to_body(m, R, w, v)
        problem.move_all(options.h, options, s.interactions, p, view(work, p.q, 7 * m), memory)
        plain.evaluate_forces(is_slow, t + 0.5 * h, options, s, view(work, p.q, 7 * m), v, functions, memory)
        loads.press(is_slow, options.h, s, memory)
        plain.free_impulse(options, s.bodies, p, v, R, R_free, memory)
        # 3. A at the start; its scale is the energy that the step can move
        if n_iter == 0:
            scale = _energy_at_hand(options.h, False, s, tree, memory)
            is_free = _renew(False, t + 0.5 * h, n_contacts, n_laws, s, tree, functions, options, memory)
            if not is_free and laws.is_contradicted(n_contacts, n_laws, scale, solver_options.inexact, s, tree, memory):
                return INFEASIBLE, 0, math.inf
        # 4. correction; a correction that no longer shrinks and is worth less than rounding has converged
        size = _correct(False, n_iter == 0, scale, n_contacts, n_laws, s, tree, calls.solver, solver_options, memory)
        is_noise = n_iter > 0 and size > _PROGRESS * before and size * size * scale <= _energy_of_rounding(options.h, s, tree, memory)
        rate, is_slow = min(rate, size / before) if n_iter > 0 else 1.0, n_iter > 0 and size > _SLOW * before
        # 5. slow convergence: A at the iterate, and the correction with it
        if is_slow and not is_noise:
            _renew(False, t + 0.5 * h, n_contacts, n_laws, s, tree, functions, options, memory)
            size = _correct(False, False, scale, n_contacts, n_laws, s, tree, calls.solver, solver_options, memory)
        unsolved = unsolved + 1 if n_contacts + n_laws > 0 and work[p.info + 1] > solver_options.enough else 0
        if not size < math.inf or unsolved >= _UNSOLVED:
            break
        n_iter += 1
        # 6. converged: velocities to first order, impulses of joints; the residual judges these
        if size <= tol or is_noise or (size <= _SMALL and rate * size <= 0.1 * tol):
            _change_velocities(s, tree, memory)
            if p.forces != 0:  # forces between bodies follow the change
                forces.follow(options.h, s, view(work, p.w_free, 6 * m), R_free, work)
            loads.add_sizes(s, work)
            residual = _share(n_contacts, n_laws, scale, s, tree, options, memory)
            if residual <= tol:
                loads.split(s, memory)
                break
        # 7. next iterate
        _move_joints(-h, tree, work)
        before = size
    status, residual = _verdict(n_contacts + n_laws, residual, tol, p, solver_options, work)
    return status, n_iter, residual


@kernel
def hold(t, n_contacts, n_laws, s, tree, calls, options, memory):
    """The second half, which moves nothing. Returns as `move`. Out: v, w, p, r."""
    work = memory.work
    p, plan, tol = s.plan[0], tree.plan[0], max(options.tol, plain.ROUNDING)
    m = p.n_bodies
    v, R, w, R_free = view(work, p.v, 6 * m), view(work, p.R, 9 * m), view(work, p.w, 6 * m), view(work, p.R_free, 6 * m)
    # 1. laws, and geometry of the joints
    if n_contacts + n_laws > 0 or p.bounded != 0:
        laws.state(t, n_contacts, n_laws, s, plan.joins, options, calls.functions, memory)
    _stand(view(work, p.q_old, 7 * m), R, s, tree, memory)
    scale = _energy_at_hand(options.h, True, s, tree, memory) if n_contacts + n_laws > 0 else 0.0  # joints alone cannot drive
    # 2. residual of bodies at rest: theta is the whole velocity, so the problem is linear
    for i in range(6 * m):
        v[i] = w[i] = 0.0
    plain.free_impulse(options, s.bodies, p, v, R, R_free, memory)  # - M w_k - h F
    _renew(True, t, n_contacts, n_laws, s, tree, calls.functions, options, memory)
    if not _correct(True, True, 1.0, n_contacts, n_laws, s, tree, calls.solver, calls.solver_options, memory) < math.inf:
        return NEWTON, 0, math.inf
    # 3. velocities, impulses of joints, residual
    _change_velocities(s, tree, memory)
    residual = _share(n_contacts, n_laws, scale, s, tree, options, memory)
    status, residual = _verdict(n_contacts + n_laws, residual, tol, p, calls.solver_options, work)
    return status, 1, residual


@tiny
def _verdict(n_blocks, residual, tol, p, options, work):
    """(status, residual): CONVERGED where balances hold, and laws, if there are any; else NEWTON; the largest residual of both."""
    of_laws = work[p.info + 1] if n_blocks > 0 else 0.0
    return CONVERGED if residual <= tol and of_laws <= options.enough else NEWTON, max(residual, of_laws)


# ------------------------------------------------------------------------------------------------------------------ joints


@tiny
def forget_places(tree, memory):
    """Bodies have come to another configuration. Out: stands."""
    if tree.links.size > 0:
        memory.work[tree.plan[0].stands] = 0.0


@tiny
def _stand(q, R, s, tree, memory):
    """Joints and S where bodies are at q, R, unless they are known: a step begins where the last one has ended."""
    if memory.work[tree.plan[0].stands] == 0.0:
        _begin(q, R, s, tree, memory)
        articulated.state_columns(True, tree.links, memory.work)
        memory.work[tree.plan[0].stands] = 1.0


@kernel
def _begin(q, R, s, tree, memory):
    """Points and axes of joints where bodies are at q, R. Out: arm, lever, axis, pin; slide, 0, and Q, no rotation."""
    mem, work = memory.mem, memory.work
    for at in range(tree.links.size):
        link = tree.links[at]
        arm, lever, pin, axis = view(work, link.arm, 3), view(work, link.lever, 3), view(work, link.pin, 3), view(work, link.axis, 9)
        # 1. a free body: inertial axes, no arm, no rotation
        for l in range(9):
            axis[l] = 1.0 if l % 4 == 0 else 0.0
        for l in range(3):
            arm[l], lever[l], pin[l] = 0.0, 0.0, 1.0 if l == 2 else 0.0
            work[link.slide + l], work[link.Q + 1 + l] = 0.0, 0.0
        work[link.Q] = 1.0
        # 2. a joint: its point from both bodies
        if link.joint == ABSENT:
            continue
        it = s.interactions[link.joint]
        times(view(R, 9 * it.a, 9), view(mem, it.row_a, 3), lever)
        for l in range(3):
            point = q[7 * it.a + l] + lever[l]
            lever[l] = point - q[7 * link.body + l]
            arm[l] = point - q[7 * link.parent + l] if link.parent != ABSENT else 0.0
        # 3. axes of free translations, turned with B
        if link.slides > 0:
            _free_axes(link, view(mem, it.row_w, 6), axis)
            for l in range(0, 9 if it.b != ABSENT else 0, 3):
                times(view(R, 9 * it.b, 9), view(axis, l, 3), view(axis, l, 3))
        # 4. pin of the free rotation, turned with A
        if link.turns == 1 and link.planar == 0:
            u = view(mem, it.row_u + 3 * link.points, 3)
            times(view(R, 9 * it.a, 9), u, pin)


@tiny
def _free_axes(link, w, axis):
    """Axes of the free translations, one or two, orthogonal to those that the joint holds. Out: axis, in axes of B."""
    if link.planar != 0:
        axis[0], axis[1], axis[2] = -w[1], w[0], 0.0
    elif link.slides == 1:
        cross(w, view(w, 3, 3), axis)
    else:
        rotations.perpendicular(w, axis)
        cross(w, axis, view(axis, 3, 3))


@kernel
def _close(s, tree, memory):
    """Displacement and rotation that close joints with the gap y. Out: shift, spin."""
    work = memory.work
    for at in range(tree.links.size):
        link, shift, spin = tree.links[at], stack(3), stack(3)
        for l in range(3):
            shift[l] = spin[l] = 0.0
        if link.joint != ABSENT:
            it = s.interactions[link.joint]
            for i in range(link.points):
                for l in range(3):
                    shift[l] -= memory.mem[it.y + i] * work[it.H + 12 * i + 6 * link.is_b + l]
            for i in range(link.points, it.m):
                for l in range(3):
                    spin[l] -= memory.mem[it.y + i] * work[it.H + 12 * i + 6 * link.is_b + 3 + l]
        for l in range(3):
            work[link.shift + l], work[link.spin + l] = shift[l], spin[l]


@kernel
def _guess(h, tree, work, w):
    """Displacements of the joints in a step at the velocities w. Out: moved, swing."""
    for at in range(tree.links.size):
        link, relative, point, turn = tree.links[at], stack(3), stack(3), stack(3)
        i, first, sign = 6 * link.body, tree.plan[0].moved + link.first, 1.0 if link.is_b == 0 else -1.0
        # relative velocity at the point of the joint
        cross(view(w, i + 3, 3), view(work, link.lever, 3), point)
        for l in range(3):
            point[l] += w[i + l]
            relative[l] = turn[l] = w[i + 3 + l]
        if link.parent != ABSENT:
            cross(view(w, 6 * link.parent + 3, 3), view(work, link.arm, 3), turn)
            for l in range(3):
                point[l] -= w[6 * link.parent + l] + turn[l]
                relative[l] -= w[6 * link.parent + 3 + l]
        # along its axes, about its pin, or a free rotation as a quaternion
        for c in range(link.slides):
            work[first + c] = sign * h * dot(view(work, link.axis + 3 * c, 3), point)
        if link.turns == 1:
            work[first + link.slides] = h * dot(view(work, link.pin, 3), relative)
        elif link.turns == 3:
            for l in range(3):
                turn[l] = h * w[i + 3 + l]
            rotations.exp_quaternion(turn, view(work, link.swing, 4))


@kernel
def _move_joints(scale, tree, work):
    """Joints move by scale theta, rotations about all axes in inertial ones. In/out: moved, swing."""
    for at in range(tree.links.size):
        link, turn, Q = tree.links[at], stack(3), stack(4)
        theta, moved = view(work, tree.plan[0].theta + link.first, 6), view(work, tree.plan[0].moved + link.first, 6)
        for c in range(link.slides + (1 if link.turns == 1 else 0)):
            moved[c] += scale * theta[c]
        if link.turns == 3:
            for l in range(3):
                turn[l] = scale * theta[link.slides + l]
            swing = view(work, link.swing, 4)
            rotations.exp_quaternion(turn, Q)
            rotations.product(Q, swing, swing)
            rotations.normalise(swing)


@kernel
def _find_places(tree, work, h, w):
    """Rotations and displacements of bodies at the current joints, and velocities. Returns the largest rotation. Out: Q, way, slide, w."""
    farthest, per_h, way, turn, slide, closing, Q = 0.0, 1.0 / h, stack(3), stack(3), stack(3), stack(4), stack(4)
    closing[0] = 1.0
    for at in range(tree.links.size):
        link = tree.links[at]
        swing, moved = view(work, link.swing, 4), view(work, tree.plan[0].moved + link.first, 6)
        # 1. rotation of the joint, with the one that closes it
        if link.turns < 3:
            half = 0.5 * moved[link.slides] if link.turns == 1 else 0.0
            sine = half * rotations.sine_ratio(half * half)
            Q[0] = rotations.cosine(half * half)
            for l in range(3):
                Q[1 + l], closing[1 + l] = sine * work[link.pin + l], 0.5 * work[link.spin + l]
            rotations.product(closing, Q, Q)
        else:
            for l in range(4):
                Q[l] = swing[l]
        # 2. displacement of the joint along its axes
        for l in range(3):
            way[l], slide[l] = work[link.shift + l], 0.0
            for c in range(link.slides):
                slide[l] += moved[c] * work[link.axis + 3 * c + l]
        # 3. compose with the parent: its rotation and displacement, and that of the point of the joint
        if link.above != ABSENT:
            above = tree.links[link.above]
            Q_above = view(work, above.Q, 4)
            if link.turns < 3:
                rotations.product(Q_above, Q, Q)
            _add_turned(Q_above, view(work, link.arm, 3), 1.0, way)
            for l in range(3):
                way[l] += work[above.way + l]
        for l in range(3):
            turn[l] = slide[l]
        if link.slides > 0 and (link.is_b != 0 or link.above != ABSENT):
            rotations.rotate(Q if link.is_b != 0 else view(work, tree.links[link.above].Q, 4), slide, turn)
        # 4. the centre of mass about the point of the joint
        _add_turned(Q, view(work, link.lever, 3), -1.0, way)
        for l in range(3):
            way[l] += turn[l] if link.is_b == 0 else -turn[l]
            work[link.way + l], work[link.slide + l] = way[l], slide[l]
        for l in range(4):
            work[link.Q + l] = Q[l]
        # 5. constant velocities that give this motion in the step
        rotations.log_quaternion(Q, turn)
        for l in range(3):
            w[6 * link.body + l], w[6 * link.body + 3 + l] = per_h * way[l], per_h * turn[l]
        farthest = max(farthest, dot(turn, turn))
    return math.sqrt(farthest)


@tiny
def _add_turned(Q, a, sign, out):
    """``out += sign (Q - 1) a``, of a rotation by Q, however small."""
    once, twice, axis = stack(3), stack(3), view(Q, 1, 3)
    cross(axis, a, once)
    cross(axis, once, twice)
    for l in range(3):
        out[l] += 2.0 * sign * (Q[0] * once[l] + twice[l])


@kernel
def _find_inertias(t, options, s, tree, functions, memory):
    """3 × 3 of rotation in inertial axes, with derivatives of moments by velocities and rotations, of joints, too. Out: rotary."""
    work = memory.work
    p, weight, spare = s.plan[0], 0.0 if options.is_explicit != 0.0 else options.h * options.theta, stack(9)
    for at in range(tree.links.size):
        i = tree.links[at].body
        J, q, v = view(work, tree.plan[0].rotary + 9 * i, 9), view(work, p.q_old + 7 * i, 7), view(work, p.v + 6 * i, 6)
        rotational_matrix(State(t, weight, weight * options.h * options.a, q, v), s.bodies[i], functions, memory.mem, J)
        turns = weight > 0.0 and subtract_turning(view(work, p.turning + 9 * i, 9), False, J)
        if not s.bodies[i].isotropic or s.bodies[i].oriented or turns:
            turn_block(view(work, p.R + 9 * i, 9), 3, 3, J, spare)


@kernel
def _renew(is_start, t, n_contacts, n_laws, s, tree, functions, options, memory):
    """A at the start, by S alone, or at the current joints, factorised, and the response of laws by it.

    False if joints resist a normal, see `tree_contacts.respond`. Out: D but at the start, factors, regular, and those of `tree_contacts`.
    """
    work = memory.work
    plan = tree.plan[0]
    if not is_start:
        articulated.state_columns(False, tree.links, work)
    _find_inertias(t, options, s, tree, functions, memory)
    is_regular, is_free = articulated.factorise(not is_start, options.span, s, tree, memory), True
    if n_contacts + n_laws > 0 and is_regular:
        is_free = laws.respond(is_start, n_contacts, n_laws, s, tree, memory)
    work[plan.regular] = 1.0 if is_regular and is_free else 0.0
    return is_free


@kernel
def _correct(is_start, is_first, scale, n_contacts, n_laws, s, tree, solver, options, memory):
    """Size of theta relative to the energy at hand, infinity if A is singular. Out: z, theta, motion; r of laws."""
    work = memory.work
    p, energy = s.plan[0], 0.0
    if work[tree.plan[0].regular] == 0.0:
        return math.inf
    for at in range(tree.links.size):
        i, z = 6 * tree.links[at].body, view(work, tree.links[at].z, 6)
        for l in range(6):
            z[l] = work[p.R_free + i + l] - (work[p.known + i + l] if p.bounded != 0 else 0.0)
    if n_contacts + n_laws == 0:
        energy = articulated.solve_all(is_start, tree, memory)
    else:
        _, energy = laws.solve(is_start, is_first, n_contacts, n_laws, s, tree, solver, options, memory)
    return math.sqrt(abs(energy) / scale) if abs(energy) > 0.0 else energy


@kernel
def _energy_at_hand(h, has_loads, s, tree, memory):
    """Twice the kinetic energy of the velocities that bodies have and had, and that forces are worth in a half.

    Loads of joints on each other cause no velocity; has_loads: the size of forces contains them.
    """
    work = memory.work
    p, total, momentum = s.plan[0], 0.0, stack(3)
    for at in range(tree.links.size):
        i = tree.links[at].body
        q = s.bodies[i].q
        mass, I = memory.mem[q + MASS], view(memory.mem, q + INERTIA, 9)
        push, turn = work[p.size + 2 * i], work[p.size + 2 * i + 1]
        if has_loads:
            push = max(0.0, push - norm(view(work, p.load + 6 * i, 3)))
            turn = max(0.0, turn - norm(view(work, p.load + 6 * i + 3, 3)))
        for place in (p.v + 6 * i, p.v_old + 6 * i):
            v, Omega = view(work, place, 3), view(work, place + 3, 3)
            times(I, Omega, momentum)
            total += mass * dot(v, v) + dot(Omega, momentum)
        total += h * h * (push * push / mass + 3.0 * turn * turn / (I[0] + I[4] + I[8]))
    return total


@kernel
def _energy_of_rounding(h, s, tree, memory):
    """As `_energy_at_hand`, of velocities that are rounding of the state, see `plain.state_worth`."""
    p, total = s.plan[0], 0.0
    plain.state_worth(h, s.bodies, p, view(memory.work, p.v, 6 * p.n_bodies), memory)
    for at in range(tree.links.size):
        i = tree.links[at].body
        total += 2.0 * memory.mem[s.bodies[i].q + MASS] * (plain.ROUNDING * memory.work[p.worth + 2 * i]) ** 2
    return total


@kernel
def _change_velocities(s, tree, memory):
    """Subtract D theta from the velocities, with its effect to first order. In/out: w, v, R_free. Out: w_free, the change."""
    work = memory.work
    p, plan, m, spin = s.plan[0], tree.plan[0], s.plan[0].n_bodies, stack(3)
    change = view(work, p.w_free, 6 * m)
    for i in range(6 * m):
        change[i] = 0.0
    for at in range(tree.links.size):
        link = tree.links[at]
        i, mass = link.body, memory.mem[s.bodies[link.body].q + MASS]
        dw, R_free = view(change, 6 * i, 6), view(work, p.R_free + 6 * i, 6)
        for l in range(6):
            dw[l] = -work[link.motion + l]
        times(view(work, plan.rotary + 9 * i, 9), view(dw, 3, 3), spin)
        for l in range(3):
            R_free[l] += mass * dw[l]
            R_free[3 + l] += spin[l]
        for l in range(6):
            work[p.w + 6 * i + l] += dw[l]
    plain.to_body(m, view(work, p.R, 9 * m), view(work, p.w, 6 * m), view(work, p.v, 6 * m))


@kernel
def _share(n_contacts, n_laws, scale, s, tree, options, memory):
    """Impulses of joints, from R_free and the laws. Returns the relative residual, beside rounding, see `plain.free_residual`.

    It is infinity if laws and joints together drive the motion: nearly orthogonal to the free directions, laws demand large
    velocities. Out: r of joints, H of their blocks; p and sizes of its terms.
    """
    work = memory.work
    p, m, done = s.plan[0], s.plan[0].n_bodies, 0.0
    wrench, term, left = view(work, tree.plan[0].wrench, 6 * m), stack(6), stack(6)
    # 1. balance of each body without joints
    problem.total_impulse(n_contacts, n_laws, p, memory)
    for i in range(6 * m):
        wrench[i] = work[p.R_free + i] - work[p.p + i]
    for i in range(m if n_contacts + n_laws > 0 and p.bounded == 0 else 0):
        done += _work_of(view(work, p.p + 6 * i, 6), i, p, work)
    # 2. from the leaves on: the joint takes what is left of its body's balance, split by orthogonal rows
    for at in range(tree.links.size - 1, -1, -1):
        link = tree.links[at]
        if link.joint == ABSENT:
            continue
        it = s.interactions[link.joint]
        first = p.d * (n_contacts + memory.iwork[p.begin + link.joint])
        r, H = view(work, p.r + first, it.m), view(work, p.H + 12 * first, 12 * it.m)
        for l in range(6):
            left[l] = wrench[6 * link.body + l]
        for i in range(it.m):
            own = view(work, it.H + 12 * i + 6 * link.is_b, 6)
            r[i] = dot(own, left) if i < link.points else dot(view(own, 3, 3), view(left, 3, 3))
            # moments about the point, as the force acts there
            for l in range(3, 6):
                left[l] -= r[i] * own[l]
        # rows for the work of joints, which is judged in models with contacts even if none acts
        for l in range(12 * it.m if n_contacts + n_laws > 0 or p.unilateral != 0 else 0):
            H[l] = work[it.H + l]
        # 3. the reaction on both bodies, of which the forces are opposite; the parent hands it on
        push = 0.0
        for side in range(2 if it.b != ABSENT else 1):
            body = it.a if side == 0 else it.b
            total = r[0] * load(view(work, it.H, 12 * it.m), side, SIX)
            for i in range(1, it.m):
                total = total + r[i] * load(view(work, it.H, 12 * it.m), 2 * i + side, SIX)
            put(term, 0, SIX, total)
            for l in range(6):
                work[p.p + 6 * body + l] += term[l]
                wrench[6 * body + l] -= term[l]
            if n_contacts + n_laws > 0:
                done += _work_of(term, body, p, work)
            push = norm(term) if side == 0 else push
            work[p.impulses + 2 * body] += push
            work[p.impulses + 2 * body + 1] += norm(view(term, 3, 3))
    # 4. energy: rounding is counted only if the plain test fails, as it costs a pass over all bodies
    impulse, v, R_free = view(work, p.p, 6 * m), view(work, p.v, 6 * m), view(work, p.R_free, 6 * m)
    is_driven = False
    if n_contacts + n_laws > 0 and (done > _DRIVEN * scale or _energy_at_hand(0.0, True, s, tree, memory) > 2.0 * scale):
        scale += _energy_of_rounding(options.h, s, tree, memory)
        is_driven = done > _DRIVEN * scale or _energy_at_hand(0.0, True, s, tree, memory) > 2.0 * scale
    if is_driven:
        return math.inf
    # 5. residual, then beside rounding
    tol, residual = max(options.tol, plain.ROUNDING), plain.free_residual(options, s.bodies, p, v, impulse, R_free, 0.0, memory)
    if residual > tol:
        residual = plain.residual_beside_rounding(tol, options, s.bodies, p, v, impulse, R_free, memory)
    return residual


@tiny
def _work_of(impulse, body, p, work):
    """``impulse . (w_k + w)``, twice the work of an impulse on a body."""
    spin = stack(3)
    times(view(work, p.R + 9 * body, 9), view(work, p.v_old + 6 * body + 3, 3), spin)
    return dot(impulse, view(work, p.v_old + 6 * body, 3)) + dot(view(impulse, 3, 3), spin) + dot_6(impulse, view(work, p.w + 6 * body, 6))
