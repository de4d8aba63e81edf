"""The one-step problem of rigid bodies: active contacts and rows, its arrays, and its solution ([Notes], eqs 11.203 and 11.220).

Detected contacts come first, then the blocks of interactions. Small problems are solved with their Delassus matrix, by any method for
contact problems; large ones by sweeps over the contacts that act on the velocities of the bodies (`nsds.solvers.bodies.rigid`), on all
cores. All components of a contact are velocities and impulses: rates of rolling and spinning are stated times a length of the bodies
(`nsds.schemes.rigid.bodies.length_of_turns`), their moments over it, so that residuals do not depend on the unit of length.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import float64, int64, typeof, uintp

from nsds._checks import may_use_threads
from nsds._jit import by_reference, caller, each, kernel, on_demand, parallel, stack, tiny, view
from nsds.collision import WORLD
from nsds.maths.rotations import rotate, rotate_back
from nsds.maths.vectors import cross, dot, norm
from nsds.model.joints import ALIGN, POINT
from nsds.model.laws import ANY
from nsds.model.layout import ABSENT, table
from nsds.schemes.memory import memory_of
from nsds.schemes.problem import friction, redundancy
from nsds.schemes.problem.contact import can_go_on
from nsds.schemes.rigid import blocks, equations, forces, guess, joint_friction, passing
from nsds.schemes.rigid import collisions as contacts
from nsds.schemes.rigid.approach import address_of_meet, call_meet
from nsds.schemes.rigid.bodies import EXPONENTIAL, move, radius_of_gyration
from nsds.schemes.rigid.interactions import evaluate, foresee_angles
from nsds.schemes.rigid.joint_rows import turned_arm
from nsds.schemes.rigid.tables import COLLISIONS, EQUALITY, FORCE, MASS, OTHER
from nsds.solvers.bodies import lanes, newton, rigid, slabs
from nsds.solvers.contact import block_lu
from nsds.solvers.contact.auto import BRIEF, address_of_nsgs
from nsds.solvers.contact.signature import EQUATION, N_INFO, call_solver, changed, largest, merit, problem_of
from nsds.status import CONVERGED, MAX_ITER, STALLED, UNSUITED

# Offsets into the work memory of a member, and sizes. Extents: n bodies, c contacts that there is room for, N blocks, d components of a
# block, m rows of equations. Velocities and impulses of the one-step problem are in inertial axes: w = (v_g, R Omega).
PLAN = table(
    # 1. state of the bodies. R (9 n): rotation matrices of q_k; R_span (9 n): R dexp(span Omega), see `_follow_turn`; q_old (7 n),
    # v_old (6 n): state before the step; q (7 n), v (6 n): current iterate; q_bar (7 n): configuration at which H is evaluated
    "R", "R_span", "q_old", "v_old", "q", "v", "q_bar",
    # 2. equation of motion. f_old, f (6 n): forces at the start and at the iterate, N and N m; size (2 n): norms of their terms, the
    # scale of rounding; inverse (stride n): M_hat^-1; w, w_free, w_end (6 n): velocities of iterate, without impulses, of sweeps
    "f_old", "f", "size", "inverse", "w", "w_free", "w_end",
    # R_free (6 n): M (v - v_k) - h F, N s; p (6 n): H^T r of all; impulses (2 n): norms of its terms; spare (150): scratch
    "R_free", "p", "impulses", "spare",
    # 3. measures of error. x (3 n): positions for slabs; h_size (2 n): sizes of terms of forces as impulses; worth (2 n): velocities below
    # whose rounding the state does not change (`moreau_jean.state_worth`); speed (4 n): sums of velocities, translation and rotation,
    # without impulses that cancel and with these; reach (4 n): see `guess._bound_bodies`; turning (9 n): geometric stiffness of joints;
    # moved (n): see `way_of_forces`, m
    "x", "h_size", "worth", "speed", "reach", "turning", "moved",
    # known (6 n), known_size (2 n): impulses from which r of rows with bounds is counted, and their sizes; unknown (6 n): the others
    "known", "known_size", "unknown",
    # 4. statement of the problem. frame (9 c), lever (6 c): axes and arms of contacts; axes (6 c): of their moments, d = 5;
    # H, G, E (12 d N): rows, H M_hat^-T, and the derivative of H w, which shares the memory of H where both agree; diagonal, b, r,
    # u (d N): as in `blocks`; mu (2 N); rhs: q
    "frame", "lever", "axes", "H", "G", "E", "diagonal", "b", "mu", "r", "u", "rhs",
    # 5. solvers. W (d d per block of the pattern): the Delassus matrix; info: (iterations, residual, ...); scratch and its sizes of the
    # method with a matrix and of the sweeps
    "W", "info", "solver", "n_solver", "sweeper", "n_sweeper", "newton", "n_newton",
    # 6. structure (integers). body (2 N): bodies of a block; disk (N): number of tangents; begin: first block of an interaction, or -1;
    # first (n + 1), linked (2 N): blocks of each body; row, column: pattern of W; scratch of solvers and its sizes
    "body", "disk", "begin", "first", "linked", "row", "column", "isolver", "n_isolver", "isweeper", "n_isweeper", "inewton", "n_inewton",
    # which (2 c): number of a contact in its collisions, and these; pair (2 c): its bodies; place (c): order in which contacts are swept;
    # slab (n), counts, groups, sets: contacts that can be swept at the same time
    "which", "pair", "place", "slab", "counts", "groups", "sets",
    # 7. sizes and flags, not offsets: n; stride, floats of an inverse (36 if coupled, else 10); d; room for contacts and blocks; few,
    # limit: blocks up to which the default, and any method, uses a matrix; room: blocks of the pattern
    "n_bodies", "stride", "d", "n_contacts", "n_blocks", "few", "limit", "room",
    # linear: one iteration is exact; parallel: threads allowed; sweeps: sweeps may take over; instead: address of other sweeps, or 0;
    # at_once: the default method; unilateral, bounded, forces: kinds of laws present; placed: forces or H depend on the configuration
    "linear", "parallel", "sweeps", "instead", "at_once", "unilateral", "bounded", "forces", "placed",
    # lost (1): unsolved problems of this step; v_mid (6 n): velocity at the start in the position update, see `move_all`
    "lost", "v_mid",
    # 8. dense and sparse elimination of equations, see `equations` and `redundancy`; most: rows that there is room for (m);
    # answer (3 d per block with a matrix): see `joint_friction`
    "dense", "null", "gram", "scaled", "scale", "weight", "component", "row_of", "most",
    "n_nodes", "n_words", "is_ordered", "next_row", "ends", "node_row", "node_body", "node_links", "node_at",
    "node_place", "nodes_left", "on_body", "own", "answer", "pivot", "run_of", "runs",
    # 9. paths of bodies within the step, as in `passing`: path, order, time of the touch, partner, flags, joint groups
    "path", "rank", "when", "partner", "is_new", "turned", "unit", "held",
    # 10. load, wrench, arms: see `loads`; kept (2 per block with a matrix): see `nsds.schemes.problem.friction`
    "load", "wrench", "arms", "kept",
)  # fmt: skip


@by_reference
class Options(NamedTuple):
    """Parameters of a step."""

    h: float
    theta: float  # weight of the force at the end of the step
    a: float  # weight of v_{k+1} in the position update
    gamma: float  # forecast of gaps: y + gamma h ydot
    q_star: float  # fraction of the step at which H is evaluated
    tol: float
    max_iter: float
    is_explicit: float = 0.0  # not 0: the semi-explicit form
    update: float = float(EXPONENTIAL)  # how a configuration is moved: EXPONENTIAL or LINEAR
    span: float = 0.0  # not 0: equations are imposed on positions, q_k moved by v for this time, s
    press: float = 0.0  # fraction of the step at which H of the impulses of equations is evaluated
    is_half: float = 0.0  # not 0: a half step; contact laws are counted from `aim`, which the scheme has written, instead of restitution


_PRESSED, _ACROSS = 1e-8, 0.1  # of the momentum of a fall: impulses of a cold start, and cosine between the fall and a normal from which on
_STEPS = 100.0  # of Newton's method on the graph of the bodies, and its work in sweeps over all contacts: where sweeps fail,
_BUDGET, _BRIEF_BUDGET, _DEARER = 1000.0, 300.0, 4.0  # and after these; and how much more a sweep takes with rolling friction,
_BUDGET_OF_TREES = 120.0  # and before sweeps with it: 25 steps where the graph of the bodies is a tree, else none
_HELD, _HOLDS, _COLD = 1e-6, 1e-3, 0.5  # residuals, relative likewise, of impulses that are kept, that nearly hold, and of none at rest
_FILL = 64  # blocks of factors on the graph of the bodies, for each body
_FEWEST = 16  # contacts and equations above which there is room for Newton's method on the graph of the bodies
_FEW = 64  # blocks up to which the default solves with a matrix at once
_DENSE = 512  # blocks up to which detected contacts are solved with one at all,
_WORDS = 1 << 27  # as long as the matrices of all members of an ensemble take no more than so many floats
_NEAR = 0.5  # radians: rotation of a body in a step up to which the derivative is used; beyond, H takes its place
_CLOSE = 1e-10  # tolerance of equations if Newton's iteration has none
_CLOSEST = 2e-15  # the least tolerance that solvers are asked for,
_LEAST_OF_MOTION = 1e-13  # and if bounds of impulses are far above the impulses that they limit
_SHARE, _ULPS = 0.1, 4 * 2.0**-52  # of the tolerance of an equation, and of the velocities that cancel in it: residual of the solver
_OWED = 1e-2  # residual of sweeps without a requested tolerance, relative to the velocities of contacts without impulses,
_QUICK, _SLOW = 10.0, 0.7  # and sweeps within which they must reach a hundredth of it to continue, where bodies are that slow
_STRUCK = 8  # bodies in a row that strike each other in a step, at most: of more, those are found that end too deep
_TRIED = 60.0  # sweeps before a method with a matrix, if there is room for one
_AT_REST = 1e-2  # velocities of contacts, relative likewise, of bodies at rest
_PARALLEL, _CHUNKS = 4000, 16  # contacts from which all cores state and sweep them, and number of chunks
SWEEPERS = "auto", "bodies"  # methods that sweep over the contacts, "auto" where these are many
# Problems nearly solved, up to so many times the tolerance, are solved to a share of it, if sweeps halve the residual in so many of them:
# residuals of contacts at rest add up, step by step, until the last impulses are no solution any more.
_NEARBY, _FINE, _FINE_SWEEPS, _FINE_PATIENCE = 10.0, 1e-2, 20.0, 2.0
EQUATIONS, SMOOTH, IMPULSIVE = range(3)  # problems: of bilateral constraints alone, with forces, and of all causes of velocity jumps

address_of_sweeps = on_demand(rigid.SIGNATURE, rigid.nsgs_rigid)
address_of_parallel_sweeps = on_demand(rigid.SIGNATURE, rigid.nsgs_rigid_parallel)


def reserve(lists, options, method, work, iwork, n_members):
    """Plan with the memory of bodies, contacts and of the one-step problem reserved."""
    name = method.name
    n, d, bodies, interactions = lists.bodies.size, lists.d, lists.bodies, lists.interactions
    plan = np.zeros(1, PLAN)
    # 1. bodies
    stride = 36 if bodies["coupled"].any() else 10
    n_blocks, n_contacts = int(interactions["n_blocks"].sum()), int(lists.collisions["capacity"].sum())
    work.place(plan, R=9 * n, R_span=9 * n)
    work.place(plan, q_old=7 * n, v_old=6 * n, q=7 * n, v=6 * n, q_bar=7 * n, f_old=6 * n, f=6 * n, size=2 * n, x=3 * n)
    # 2. the problem; a pattern of W exists only for the blocks that may be solved with a matrix
    work.place(plan, inverse=stride * n, w=6 * n, w_free=6 * n, w_end=6 * n, R_free=6 * n, p=6 * n, impulses=2 * n, spare=150, info=N_INFO)
    limit = _limit(name, n_blocks, n_contacts, d, n_members)
    row, column = _pattern(lists, n_blocks, limit) if limit else (np.zeros(1, np.int64), np.zeros(0, np.int64))
    n_rows = max(limit, n_blocks)
    work.place(plan, lost=1, h_size=2 * n, worth=2 * n, speed=4 * n, reach=4 * n, turning=9 * n, moved=n)
    work.place(plan, known=6 * n, known_size=2 * n, unknown=6 * n)
    work.place(plan, frame=9 * n_contacts, lever=6 * n_contacts, axes=6 * n_contacts if d == 5 else 0, mu=2 * (n_contacts + n_blocks))
    # rows of contacts are needed by methods with a matrix alone, that of Delassus or that of the bodies
    on_graph = n_contacts > 0 and _is_graph_kept(name, stride, n_contacts + n_blocks, d, n, n_members)
    n_stated = max(n_rows, n_contacts) if on_graph else n_rows
    work.place(plan, H=12 * d * n_stated, G=12 * d * n_rows, diagonal=d * n_stated, rhs=d * n_stated)
    work.place(plan, **dict.fromkeys(("b", "r", "u"), d * (n_contacts + n_blocks)), W=d * d * column.size, kept=2 * limit)
    floats, integers = method.work_size(d, row, column) if limit else (0, 0)
    # without turning equations E and H are the same rows; v_mid is v_k unless a scheme has a better value
    work.place(plan, solver=floats)
    plan["v_mid"], plan["E"] = plan["v_old"], plan["H"]
    # 3. equations: elimination needs m^2 floats, or bit sets of n_words entries for the sparse one, so its size is limited
    n_rows = int(interactions["m"][_may_be_equations(interactions)].sum())
    n_rows = n_rows if n_rows <= equations.MOST and (n_rows <= redundancy.MOST or n_rows**2 * n_members <= _WORDS) else 0
    plan["most"], plan["n_words"], few = n_rows, equations.words_of(n_rows), min(n_rows, redundancy.MOST)
    work.place(plan, dense=n_rows**2, null=few**2, gram=few**2 + few, weight=few, own=d * limit if n_rows else 0)
    work.place(plan, answer=3 * d * limit if n_rows else 0)
    work.place(plan, **dict.fromkeys(("scaled", "scale", "pivot"), n_rows))
    iwork.place(plan, n_nodes=1, is_ordered=1, ends=2 * n_rows, row_of=d * limit if n_rows else 0)
    iwork.place(plan, node_body=2 * n_rows, **dict.fromkeys(("component", "next_row", "node_at", "node_place"), n_rows))
    words = int(plan["n_words"][0])
    iwork.place(plan, nodes_left=words, node_links=words * n_rows, on_body=words * n)
    iwork.place(plan, **dict.fromkeys(("node_row", "run_of"), n_rows + 1), runs=n_rows * (n_rows + 5) // 2)
    iwork.place(plan, body=2 * (n_contacts + n_blocks), disk=n_contacts + n_blocks, begin=interactions.size, first=n + 1)
    iwork.place(plan, linked=2 * limit, row=limit + 1, column=column.size, isolver=integers)
    plan["n_solver"], plan["n_isolver"] = floats, integers
    # 4. integers of the structure
    plan["few"] = few = min(limit, _FEW) if name == "auto" and stride == 10 and n_contacts else limit
    plan["at_once"] = name == "auto"
    plan["sweeps"] = (name in SWEEPERS or method.sweeps != 0) and stride == 10
    plan["instead"] = iwork.store(np.full((n_members, 1), method.sweeps, np.int64))
    # 5. choice of method: sweeps need block-diagonal inverses (stride 10); with coupled bodies only methods with a matrix remain
    if plan["sweeps"][0] and (n_contacts or few < n_blocks):  # sweeps also take over where methods with a matrix give up
        floats, integers = rigid.work_size(d, n_contacts, n_blocks, n, 2 * slabs.count(n_contacts))
        work.place(plan, sweeper=floats)
        iwork.place(plan, isweeper=integers)
        plan["n_sweeper"], plan["n_isweeper"] = floats, integers
    if on_graph:
        floats, integers = newton.work_size(d, n_contacts + n_blocks, n, _most_fill(n))
        work.place(plan, newton=floats)
        iwork.place(plan, inewton=integers)
        plan["n_newton"], plan["n_inewton"] = floats, integers
    iwork.place(plan, which=2 * n_contacts, pair=2 * n_contacts, place=n_contacts, slab=n, counts=slabs.COUNTS, groups=slabs.GROUPS)
    iwork.place(plan, sets=slabs.SETS * n_contacts if d == 3 else 0)
    passing.reserve(lists, plan, work, iwork, n_members)
    plan["n_bodies"], plan["stride"], plan["d"], plan["n_blocks"], plan["n_contacts"] = n, stride, d, n_blocks, n_contacts
    plan["limit"], plan["room"], plan["linear"] = limit, column.size, _is_linear(lists, options)
    plan["parallel"] = n_members == 1 and may_use_threads()
    plan["bounded"], plan["forces"] = (interactions["bounds"] == ANY).any(), (interactions["law"] == FORCE).any()
    # 6. sizes and flags
    plan["unilateral"] = lists.collisions.size > 0 or (interactions["always"] == 0).any()
    plan["placed"] = interactions.size > 0 or bool((bodies["oriented"] | bodies["coupled"]).any())
    return plan


def _may_be_equations(interactions):
    """Which interactions have rows without a sign: equations, forces, and bounds that are infinite."""
    return (interactions["law"] != OTHER) | (interactions["bounds"] == ANY)


def follow_turns(lists, options, plan, work):
    """Reserve E, rows of velocities apart from the rows H of impulses, if there are equations whose H turns with the bodies."""
    interactions = lists.interactions
    turning = (interactions["law"] == EQUALITY) & ((interactions["row"] != ABSENT) | (interactions["h_function"] != ABSENT))
    if options.q_star > 0.0 and turning.any():
        work.place(plan, E=int(plan["G"][0] - plan["H"][0]))


def _limit(name, n_blocks, n_contacts, d, n_members):
    """Blocks up to which a problem may be solved with a matrix."""
    if name == "bodies" or n_contacts == 0:
        return 0 if name == "bodies" else n_blocks
    dense = max(_FEW, min(_DENSE, int(np.sqrt(_WORDS / (4 * d * d * n_members)))))
    return n_blocks + min(n_contacts, dense - n_blocks) if n_blocks < dense else 0


def _most_fill(n_bodies):
    """Blocks above the diagonal of factors of the graph of the bodies, for which there is room."""
    return min(n_bodies * (n_bodies - 1) // 2, _FILL * n_bodies)


def _is_graph_kept(name, stride, n_stated, d, n_bodies, n_members):
    """Whether there is room for Newton's method on the graph of the bodies, of the default and more than a few contacts."""
    if name != "auto" or stride != 10 or d not in (3, 5) or n_stated <= _FEWEST or n_bodies > block_lu.LARGEST:
        return False
    return n_members * (newton.work_size(d, n_stated, n_bodies, _most_fill(n_bodies))[0] + 12 * d * n_stated) <= _WORDS


def _is_linear(lists, options):
    """Whether one iteration is exact: forces and matrices that do not change, and no equations to be repeated for."""
    bodies, interactions = lists.bodies, lists.interactions
    moving = ((interactions["row"] != ABSENT) | (interactions["h_function"] != ABSENT)).any() and options.q_star > 0
    simple = (bodies["isotropic"] & (bodies["coupled"] == 0) & (bodies["oriented"] == 0)) | bodies["fixed"]
    repeated = _may_be_equations(interactions).any()
    return options.is_explicit != 0 or (bool(simple.all()) and not moving and not repeated)


def _pattern(lists, n_blocks, limit):
    """Compressed rows of the pattern of W: of all interactions; with detected contacts, which may touch any body, all pairs."""
    if limit > n_blocks:
        return np.arange(limit + 1) * limit, np.tile(np.arange(limit), limit)
    owner = np.repeat(np.arange(lists.interactions.size), lists.interactions["n_blocks"])
    body = np.stack([lists.interactions["a"][owner], lists.interactions["b"][owner]], axis=1).reshape(-1).astype(np.int64)
    n = lists.bodies.size
    first, linked = np.zeros(n + 1, np.int64), np.zeros(2 * n_blocks, np.int64)
    blocks.link(n_blocks, body, n, lists.bodies, first, linked)
    row, column = np.zeros(n_blocks + 1, np.int64), np.zeros(int((np.diff(first) ** 2).sum()) + n_blocks + 1, np.int64)
    blocks.pattern(n_blocks, body, lists.bodies, first, linked, row, column, column.size)
    return row, column[: row[-1]].copy()


@tiny
def choose_active(options, s, memory):
    """(contacts, blocks of interactions) that are active: bilateral ones, and those with a forecast ``y + gamma h ydot`` that closes.

    Out: begin, the first block of each interaction, or -1; pair and which, the bodies of each contact, its number and collisions.
    """
    work, iwork = memory.work, memory.iwork
    p, ahead, n_contacts = s.plan[0], options.gamma * options.h, 0
    q, w, pair = view(work, p.q_old, 7 * p.n_bodies), view(work, p.w, 6 * p.n_bodies), view(iwork, p.pair, 2 * p.n_contacts)
    moved, n_blocks = view(work, p.moved, p.n_bodies), choose_blocks(options, s, memory)
    # open contacts are kept only if their shapes meet on the way: the tangent plane of a contact ends nowhere, shapes do
    for k in range(s.collisions.size):
        first, number = n_contacts, view(iwork, p.which, p.n_contacts)
        is_half = options.is_half != 0.0
        n_contacts = contacts.choose(s.collisions[k], s.bodies, ahead, is_half, moved, first, q, w, memory, pair, number)
        if ahead > 0.0 and contacts.are_some_open(s.collisions[k], first, n_contacts, number, memory):
            n_contacts = _without_missed(k, ahead, first, n_contacts, s.collisions, q, w, memory, pair, number)
        for i in range(first, n_contacts):
            iwork[p.which + p.n_contacts + i] = k
    if options.is_half != 0.0 and ahead > 0.0 and not has_matrix(n_contacts, n_blocks, p):
        n_contacts = _add_struck(ahead, n_contacts, s, q, w, memory)
    return n_contacts, n_blocks


@kernel
def _add_struck(ahead, n, s, q, w, memory):
    """Number of the n active contacts with those of spheres that close if a body with an active contact is stopped by it.

    Bodies that fall together do not approach each other, but in a pile the first one to land is struck by the next in the same step.
    Out: pair, which. Work: slab, taking of contacts.
    """
    iwork, p = memory.iwork, s.plan[0]
    struck, pair, number = view(iwork, p.slab, p.n_bodies), view(iwork, p.pair, 2 * p.n_contacts), view(iwork, p.which, p.n_contacts)
    # 1. bodies with an active contact, and these
    for i in range(p.n_bodies):
        struck[i] = 0
    for k in range(s.collisions.size):
        for i in range(memory.imem[s.collisions[k].n]):
            memory.work[s.collisions[k].taking + i] = 0.0
    for i in range(n):
        memory.work[s.collisions[iwork[p.which + p.n_contacts + i]].taking + number[i]] = 1.0
        struck[pair[2 * i]] = 1
        if pair[2 * i + 1] != WORLD:
            struck[pair[2 * i + 1]] = 1
    # 2. from body to body
    for _ in range(_STRUCK):
        n_found = 0
        for k in range(s.collisions.size):
            n_found += contacts.find_struck(s.collisions[k], s.bodies, ahead, q, w, struck, memory)
        if n_found == 0:
            break
    # 3. into the list of active contacts
    for k in range(s.collisions.size):
        c = s.collisions[k]
        for i in range(memory.imem[c.n]):
            if memory.work[c.taking + i] == contacts.STRUCK:
                pair[2 * n], pair[2 * n + 1] = memory.imem[c.body + memory.imem[c.a + i]], memory.imem[c.body + memory.imem[c.b + i]]
                number[n], iwork[p.which + p.n_contacts + n] = i, k
                n += 1
    return n


@tiny
def choose_blocks(options, s, memory):
    """Number of active blocks of interactions, see `choose_active`. Out: begin."""
    work = memory.work
    p, ahead, n_blocks = s.plan[0], options.gamma * options.h, 0
    q, moved = view(work, p.q_old, 7 * p.n_bodies), view(work, p.moved, p.n_bodies)
    for k in range(s.interactions.size):
        it, active = s.interactions[k], s.interactions[k].always != 0
        if not active:
            blocks.find_slack(options.h, it, q, moved, work)
        # an interaction is active as a whole as soon as one of its rows is; a disabled one never is
        for i in range(0 if active else it.m):
            active = active or blocks.takes_part(it, i, ahead, memory)
        active = active and work[it.off] == 0.0 and not (it.law == FORCE and options.is_explicit != 0.0)
        memory.iwork[p.begin + k] = n_blocks if active else -1
        if active:
            n_blocks += it.n_blocks
    return n_blocks


@tiny
def _without_missed(k, ahead, first, last, collisions, q, w, memory, pair, which):
    """End of the contacts of collisions k, from first on, without those whose shapes miss each other within the forecast.

    In/out: pair, which.
    """
    address = address_of_meet()
    arguments = (collisions, int64(k), ahead, int64(first), int64(last), q, w, memory, pair, which)
    return int64(last) if address == 0 else call_meet(address, arguments)


@kernel
def list_blocks(what, interactions, p, memory):
    """Number of the blocks of bilateral constraints, and, if wanted, of forces, or of rows with bounds and closed contacts. Out: begin."""
    n = 0
    # forces count in smooth problems only: an impact has no duration in which they could act
    for k in range(interactions.size):
        it = interactions[k]
        chosen = what == SMOOTH if it.law == FORCE else it.law == EQUALITY or (what == IMPULSIVE and it.always != 0)
        for i in range(it.m if what == IMPULSIVE and it.always == 0 else 0):
            chosen = chosen or memory.work[it.joined + i] != 0.0
        chosen = chosen and memory.work[it.off] == 0.0
        memory.iwork[p.begin + k] = n if chosen else -1
        n += it.n_blocks if chosen else 0
    return n


@kernel
def state_rows(t, n_contacts, n_blocks, q, h, interactions, p, functions, memory):
    """Blocks of the listed interactions, with H at q, and without any forecast."""
    stated = stated_blocks(n_contacts, n_blocks, p, memory)
    for k in range(interactions.size):
        it, first = interactions[k], memory.iwork[p.begin + k]
        if first >= 0:
            evaluate(t, it, q, view(memory.work, p.R, 9 * p.n_bodies), functions, memory)
            blocks.state_block(h, -1.0, False, True, it, first, p.d, memory, stated)


@tiny
def way_of_forces(h, bodies, p, memory):
    """Displacement from forces, a fraction of ``h^2 |F_k| / m`` of each body: a gap below it closes within a step without impulse.

    The forecast ``y + gamma h ydot`` omits the change by forces, ``gamma h^2 F / m``; a gap at rest, which rounding or the tolerance
    of solvers have opened, is closed by this. Out: moved (n_bodies,).
    """
    share = contacts.WAY * h * h
    for i in range(p.n_bodies):
        memory.work[p.moved + i] = (
            0.0 if bodies[i].fixed else share * norm(view(memory.work, p.f_old + 6 * i, 3)) / memory.mem[bodies[i].q + MASS]
        )


@kernel
def arrange(n, in_order, p, memory):
    """Order in which the n contacts are swept, and the groups of it that can be swept at the same time. Out: place, groups.

    in_order: as they are.
    """
    work, iwork = memory.work, memory.iwork
    n_slabs = slabs.count(n)
    groups, place, sweeps = view(iwork, p.groups, 2 * n_slabs + 1), view(iwork, p.place, n), not in_order and p.stride == 10
    # 1. one group: methods with a matrix, and coupled bodies, have no use for slabs
    if not sweeps or n_slabs == 1:
        for i in range(n):
            place[i] = i
        groups[0], groups[1], groups[2] = 0, n, n
    if not sweeps:
        return
    # 2. cut the bodies into slabs by their positions, and order the contacts by slab
    pair, x, slab = view(iwork, p.pair, 2 * n), view(work, p.x, 3 * p.n_bodies), view(iwork, p.slab, p.n_bodies)
    inverse = view(work, p.inverse, p.stride * p.n_bodies)
    if n_slabs > 1:
        for i in range(p.n_bodies):
            for k in range(3):
                x[3 * i + k] = work[p.q_old + 7 * i + k]
        slabs.cut(n_slabs, pair, x, inverse, slab, view(iwork, p.counts, slabs.COUNTS))
        slabs.order(n_slabs, pair, slab, place, groups)
    # 3. contacts that share no body side by side
    if p.d == 3:
        slabs.set_apart(lanes.WIDTH, pair, inverse, groups, place, slab, view(iwork, p.sets, slabs.SETS * n))


@tiny
def state_contacts(n, is_half, s, memory):
    """State the n active contacts, in the order of place, many on all cores. Out: the first n of disk, mu, body, frame, lever, b, r.

    is_half: laws are counted from `aim` of the record's contacts, see `Options`.
    """
    p, iwork = s.plan[0], memory.iwork
    if p.parallel != 0 and n >= _PARALLEL:
        _call_statement(
            _address_of_parallel_statement(),
            (int64(n), int64(is_half), s.collisions, s.plan, memory.mem, memory.imem, memory.work, iwork),
        )
    else:
        _state_some(0, n, is_half, s.collisions, s.plan, memory)
    for i in range(n if p.d == 5 else 0):
        each = s.collisions[iwork[p.which + p.n_contacts + iwork[p.place + i]]].each
        contacts.state_moments(each, i, s.bodies, p, memory)


@kernel
def _state_some(first, last, is_half, collisions, plan, memory):
    """Statement of the contacts at places first to last."""
    iwork = memory.iwork
    p = plan[0]
    for i in range(first, last):
        k = iwork[p.place + i]
        c = collisions[iwork[p.which + p.n_contacts + k]]
        contacts.state_contact(is_half, c, iwork[p.which + k], i, p, memory)


@parallel
def _state_all(n, is_half, collisions, plan, mem, imem, work, iwork):
    memory = memory_of((mem, imem, work, iwork))
    for chunk in each(_CHUNKS):
        _state_some(chunk * n // _CHUNKS, (chunk + 1) * n // _CHUNKS, is_half != 0, collisions, plan, memory)
    return 0


_STATEMENT = int64(
    int64, int64, typeof(np.zeros(0, COLLISIONS)), typeof(np.zeros(0, PLAN)), float64[::1], int64[::1], float64[::1], int64[::1]
)  # of `_state_all`
_call_statement, _address_of_parallel_statement = caller(_STATEMENT), on_demand(_STATEMENT, _state_all)


@tiny
def has_matrix(n_contacts, n_blocks, p):
    """Whether the problem is solved with a Delassus matrix: up to few blocks, or up to limit if some are not contacts."""
    return n_contacts + n_blocks <= (p.limit if n_blocks > 0 else p.few)


@tiny
def stated_blocks(n_contacts, n_blocks, p, memory):
    """Blocks of interactions, which follow the contacts in the arrays; of these there are rows where a matrix wants them."""
    return _blocks_at(n_contacts, n_contacts if has_matrix(n_contacts, n_blocks, p) else 0, n_blocks, p, memory)


@tiny
def _blocks_at(first, first_row, n, p, memory):
    """n blocks from the first on, whose rows begin with those of another one."""
    work, d, row = memory.work, p.d, p.d * first_row
    return blocks.Blocks(
        view(work, p.H + 12 * row, 12 * d * n),
        view(work, p.E + 12 * row, 12 * d * n),
        view(work, p.diagonal + row, d * n),
        view(memory.iwork, p.body + 2 * first, 2 * n),
        view(memory.iwork, p.disk + first, n),
        view(work, p.mu + 2 * first, 2 * n),
        view(work, p.b + d * first, d * n),
        view(work, p.r + d * first, d * n),
    )


@kernel
def state_blocks(t_new, is_new, n_contacts, n_blocks, options, interactions, p, functions, memory):
    """State the active blocks of interactions, with H at qbar; of contacts, and if q_star is 0, H at q_k, in the first iteration.

    H at q_k of contacts and of joints that do not depend on t is known since `nsds.schemes.rigid.moreau_jean.outputs`.
    """
    work = memory.work
    h, ahead, m, moves = options.h, options.gamma * options.h, p.n_bodies, options.q_star > 0.0
    q_bar = view(work, p.q_bar, 7 * m)
    # 1. configuration at which H is evaluated
    if moves and (p.linear == 0 or options.is_explicit != 0.0):
        move_all(options.q_star * options.h, options, interactions, p, q_bar, memory)
    elif is_new and n_blocks > 0:
        for i in range(7 * m):
            q_bar[i] = work[p.q_old + i]
    stated = stated_blocks(n_contacts, n_blocks, p, memory)
    # 2. rows of each active interaction
    for k in range(interactions.size):
        it, first = interactions[k], memory.iwork[p.begin + k]
        if first < 0:
            continue
        if it.law == FORCE:  # with the H of their force, at the end of the step
            forces.state_block(it, first, p.d, work, stated)
            blocks.copy_rows(p, first, it.n_blocks, stated)
            blocks.subtract_velocities(p.d, first, it, view(work, p.w, 6 * m), stated)
            continue
        holds_position = options.span > 0.0 and it.law == EQUALITY and it.dofs == ABSENT
        # prescribed velocities are evaluated at the middle of a half step of RATTLE, of which t_new is the start
        if it.gap_function == ABSENT and (moves or (is_new and it.row == ABSENT)):
            t = t_new + 0.5 * options.span if it.dofs != ABSENT else t_new
            evaluate(t, it, q_bar, view(work, p.R, 9 * m), functions, memory)
        if is_new or moves or not holds_position:
            blocks.state_block(h, ahead, options.is_half != 0.0, is_new, it, first, p.d, memory, stated)
            blocks.copy_rows(p, first, it.n_blocks, stated)
    # 3. rows of equations: on positions, or with the derivative of H(qbar) w
    if options.span > 0.0 and n_blocks > 0:
        _hold_positions(t_new + options.span, has_matrix(n_contacts, n_blocks, p), options, interactions, p, functions, memory, stated)
    elif moves and p.E != p.H:
        _follow_turns(t_new, has_matrix(n_contacts, n_blocks, p), options, interactions, p, functions, memory, stated)
    if p.bounded != 0 and (moves or is_new):
        know_origins(h, interactions, p, memory)


@kernel
def _follow_turns(t_new, is_newton, options, interactions, p, functions, memory, stated):
    """E of equations: derivative of ``H(qbar) w``, the H of the law as stated; H: rows of the impulses. Out: H, E, b, q_bar.

    The change of H along the motion is extrapolated from an earlier configuration: that of the impulses, or, if both agree, halfway.
    If is_newton is false, E is the H of the impulses, and b compensates.
    """
    work = memory.work
    q_bar, w, before = view(work, p.q_bar, 7 * p.n_bodies), view(work, p.w, 6 * p.n_bodies), options.press
    moves_impulses, turned = before < options.q_star, stack(3)
    # 1. an earlier configuration, for the secant of H
    if not moves_impulses:
        before = 0.5 * options.q_star
    weight = options.a * options.q_star
    move_all(before * options.h, options, interactions, p, q_bar, memory)
    # 2. each equation, whose H at q_bar is in stated and at the earlier configuration in work
    for k in range(interactions.size):
        it, first = interactions[k], p.d * memory.iwork[p.begin + k]
        if first < 0 or it.law != EQUALITY or it.dofs != ABSENT:
            continue
        evaluate(t_new - (options.q_star - before) * options.h, it, q_bar, view(work, p.R, 9 * p.n_bodies), functions, memory)
        for i in range(first, first + it.m):
            H, E, row = view(stated.H, 12 * i, 12), view(stated.E, 12 * i, 12), it.H + 12 * (i - first)
            # b gets the velocity by the law, so that the residual is exact whatever E is
            stated.b[i] = blocks.velocity(stated.b[i], i, it.a, it.b, stated.E, w)
            for side in range(2 if is_newton else 0):
                body = it.a if side == 0 else it.b
                if body == ABSENT:
                    continue
                cross(view(w, 6 * body + 3, 3), view(H, 6 * side + 3, 3), turned)  # commutator of rotations, second order in the turn
                for l in range(6 * side, 6 * side + 6):
                    E[l] += weight / (options.q_star - before) * (H[l] - work[row + l])
                for l in range(3):
                    E[6 * side + 3 + l] += weight * options.h * turned[l]
            # swap: from here on H is that of the impulses
            for l in range(12 if moves_impulses else 0):
                H[l] = work[row + l]
            for l in range(12 if not is_newton else 0):
                E[l] = H[l]
        blocks.subtract_velocities(p.d, first // p.d, it, w, stated)
    # 3. restore q_bar, which later stages read
    if not moves_impulses:
        move_all(options.q_star * options.h, options, interactions, p, q_bar, memory)


@kernel
def _hold_positions(t, is_newton, options, interactions, p, functions, memory, stated):
    """Equations for ``h = 0`` at q_k moved by ``span v`` instead of ``H w + rate = 0``: ``b = h / span - E w``. Out: b, diagonal, E, q_bar.

    E is the derivative of ``h / span``, see `_follow_turn`, or, if is_newton is false, the H of the impulses.
    """
    work = memory.work
    q_bar, w, R_span = view(work, p.q_bar, 7 * p.n_bodies), view(work, p.w, 6 * p.n_bodies), view(work, p.R_span, 9 * p.n_bodies)
    # 1. predicted configuration and derivative of the rotation over the span
    for i in range(p.n_bodies):
        v = view(work, p.v + 6 * i, 6)
        move(int(options.update), view(work, p.q_old + 7 * i, 7), options.span, 1.0, v, v, view(q_bar, 7 * i, 7))
        _follow_turn(options.span, view(v, 3, 3), view(work, p.R + 9 * i, 9), view(R_span, 9 * i, 9))
    v = view(work, p.v, 6 * p.n_bodies)
    foresee_angles(options.span, 1.0, v, v, view(work, p.R, 9 * p.n_bodies), interactions, memory)
    # 2. residual of positions, as velocities: b = h / span - E w
    for k in range(interactions.size):
        it, first = interactions[k], memory.iwork[p.begin + k]
        if first >= 0 and it.law == EQUALITY and it.dofs == ABSENT:
            evaluate(t, it, q_bar, R_span, functions, memory)
            for i in range(12 * it.m if is_newton else 0):
                stated.E[12 * p.d * first + i] = work[it.H + i]
            for i in range(p.d * first, p.d * (first + it.n_blocks)):
                row = i - p.d * first
                stated.b[i], stated.diagonal[i] = (work[it.h + row] / options.span, -1.0) if row < it.m else (0.0, 1.0)
            blocks.subtract_velocities(p.d, first, it, w, stated)


@tiny
def _follow_turn(span, Omega, R, R_span):
    """``R_span = R dexp(span Omega)`` up to the square of the turn; R alone for large turns, where the series does not help.

    The rotation by ``span Omega`` changes by ``dexp(span Omega)^T span dOmega`` in axes of the body.
    """
    # beyond _NEAR the truncated series is no derivative any more
    share, once, twice = span if span * norm(Omega) < _NEAR else 0.0, stack(3), stack(3)
    for i in range(0, 9, 3):
        cross(view(R, i, 3), Omega, once)
        cross(once, Omega, twice)
        for k in range(3):
            R_span[i + k] = R[i + k] + share / 2.0 * once[k] + share * share / 6.0 * twice[k]


@kernel
def know_origins(h, interactions, p, memory):
    """Impulses from which r of rows with bounds is counted: the middle of two bounds, or the one. Out: known, known_size."""
    work = memory.work
    known, size = view(work, p.known, 6 * p.n_bodies), view(work, p.known_size, 2 * p.n_bodies)
    for i in range(6 * p.n_bodies):
        known[i] = 0.0
    for i in range(2 * p.n_bodies):
        size[i] = 0.0
    for k in range(interactions.size):
        if interactions[k].bounds == ANY and memory.iwork[p.begin + k] >= 0:
            blocks.add_origins(h, interactions[k], work, known, size)


@tiny
def are_equations(interactions, p, iwork):
    """Whether all active interactions are equations."""
    result = True
    for k in range(interactions.size):
        result = result and (iwork[p.begin + k] < 0 or interactions[k].law == EQUALITY or interactions[k].law == FORCE)
    return result


@tiny
def count_equations(n_contacts, n_blocks, p, iwork):
    """Number of blocks of interactions that are equations."""
    n = 0
    for k in range(n_contacts, n_contacts + n_blocks):
        n += iwork[p.disk + k] == EQUATION
    return n


@tiny
def _are_solved_at_once(n_contacts, n_blocks, p, iwork):
    """Whether there are equations alone, and room for their matrix."""
    return p.most > 0 and p.at_once != 0 and n_contacts == 0 and count_equations(0, n_blocks, p, iwork) == n_blocks


@kernel
def turn_joints(n_contacts, n_blocks, options, interactions, p, memory):
    """Geometric stiffness: the rotational derivative of the moments of joints, at the current impulses. Out: turning.

    Counted for rows whose direction does not turn with the body: weight h a times the fraction of the step at which the impulse acts,
    times the derivative of its moment. Of body B only three POINT rows together count, whose force keeps its direction in the world.
    The coupling between two bodies is omitted, as M_hat is block-diagonal.
    """
    mem, work = memory.mem, memory.work
    r = stated_blocks(n_contacts, n_blocks, p, memory).r
    weight = options.press * options.h * options.a
    for i in range(9 * p.n_bodies):
        work[p.turning + i] = 0.0
    for k in range(interactions.size if weight > 0.0 else 0):
        it, first = interactions[k], memory.iwork[p.begin + k]
        if it.row == ABSENT or it.law != EQUALITY or first < 0:
            continue
        # only a point held in all three directions has a force that does not turn with body B
        has_b, n_points = it.b != ABSENT, 0
        for i in range(it.m):
            n_points += 1 if memory.imem[it.row + i] == POINT else 0
        for i in range(it.m):
            lam, kind = weight * r[p.d * first + blocks.place(it, p.d, i)], memory.imem[it.row + i]
            if kind == POINT or (kind == ALIGN and not has_b):
                at = it.row_a if kind == POINT else it.row_u
                # direction of the row in axes of body A
                n, q_a = stack(3), view(work, p.q_bar + 7 * it.a, 7)
                if has_b:
                    rotate(view(work, p.q_bar + 7 * it.b + 3, 4), view(mem, it.row_w + 3 * i, 3), n)
                else:
                    for l in range(3):
                        n[l] = mem[it.row_w + 3 * i + l]
                rotate_back(view(q_a, 3, 4), n, n)
                turned_arm(lam, view(mem, at + 3 * i, 3), n, view(work, p.turning + 9 * it.a, 9))
                if kind == POINT and has_b and n_points == 3:
                    turned_arm(-lam, view(mem, it.row_b + 3 * i, 3), view(mem, it.row_w + 3 * i, 3), view(work, p.turning + 9 * it.b, 9))


@kernel
def move_all(h, options, interactions, p, q, memory):
    """``q = q_k`` moved by ``h (a v + (1 - a) v_mid)``, of all bodies; v_mid is v_k unless a scheme has a better one. Out: q, angles."""
    work = memory.work
    foresee_all(h, options, interactions, p, memory)
    for i in range(p.n_bodies):
        q_old, v_mid = view(work, p.q_old + 7 * i, 7), view(work, p.v_mid + 6 * i, 6)
        move(int(options.update), q_old, h, options.a, v_mid, view(work, p.v + 6 * i, 6), view(q, 7 * i, 7))


@tiny
def foresee_all(h, options, interactions, p, memory):
    """Predicted angles of joints after the motion of `move_all`, so that full turns are counted."""
    work = memory.work
    v, v_mid, R = view(work, p.v, 6 * p.n_bodies), view(work, p.v_mid, 6 * p.n_bodies), view(work, p.R, 9 * p.n_bodies)
    foresee_angles(h, options.a, v, v_mid, R, interactions, memory)


@kernel
def solve(n_contacts, n_blocks, is_new, is_half, s, solver, options, tol, reached, memory):
    """The one-step problem ``u = H (w_free + M_hat^-1 H^T r) + b``. Returns the solver's status. Out: p, the sizes of its terms.

    tol: of equations, relative to the velocities present; reached: the residual of Newton's iteration which this solve has to reduce.
    """
    work = memory.work
    p = s.plan[0]
    m = p.n_bodies
    if n_contacts + n_blocks == 0:
        clear(p, work)
        return CONVERGED
    inverse, w, w_free = view(work, p.inverse, p.stride * m), view(work, p.w, 6 * m), view(work, p.w_free, 6 * m)
    R_free = view(work, p.R_free, 6 * m)
    # 1. free velocity; known impulses of bounds act on it like forces
    if p.bounded != 0:
        R_free = view(work, p.w_end, 6 * m)
        for i in range(6 * m):
            R_free[i] = work[p.R_free + i] - work[p.known + i]
    blocks.multiply_inverse(m, p.stride, inverse, R_free, w_free)
    for i in range(6 * m):
        w_free[i] = w[i] - w_free[i]
    # 2. statement of contacts: the rows of detected contacts do not change within the step, so once is enough
    if is_new:
        arrange(n_contacts, has_matrix(n_contacts, n_blocks, p), p, memory)
        state_contacts(n_contacts, is_half, s, memory)
    # 3. accuracy: equations are solved to a share of what Newton's iteration has reached, not to the tolerance of contacts
    wanted, share = math.inf, min(1.0, _SHARE * tol / reached)
    if p.most > redundancy.MOST or not _are_solved_at_once(n_contacts, n_blocks, p, memory.iwork):
        wanted = equation_accuracy(n_contacts, n_blocks, min(tol, _CLOSE), p, memory)
    return solve_blocks(n_contacts, n_blocks, is_new, is_half, s, solver, options, wanted, share, memory)


@tiny
def equation_accuracy(n_contacts, n_blocks, tol, p, memory):
    """Velocity residual allowed in an equation, so that the converged step meets tol; infinity without equations."""
    stated, speed = stated_blocks(n_contacts, n_blocks, p, memory), view(memory.work, p.speed, 4 * p.n_bodies)
    return blocks.least_size(p.d, stated, speed, _SHARE * tol, _ULPS)


@tiny
def aim_of_motion(aim, d, stated, q, bodies, mem):
    """Tolerance relative to ``||q||`` that equals aim relative to the velocities alone, of rows in m/s and of those in rad/s by themselves.

    The impulse that a brake could give to a body at rest is no scale of its motion: entries that stand for bounds do not count. Rows that
    act on rotations alone count at the radius of gyration.
    """
    of_motion = whole = longest = 0.0
    for i in range(q.size):
        whole += q[i] ** 2
        if stated.diagonal[i] <= 0.0:
            lever = _lever(view(stated.H, 12 * i, 12), view(stated.body, 2 * (i // d), 2), bodies, mem)
            of_motion, longest = of_motion + (lever * q[i]) ** 2, max(longest, lever)
    if not whole > 0.0 or longest == 0.0:
        return aim
    return max(aim * math.sqrt(of_motion / whole) / longest, min(aim, _LEAST_OF_MOTION))


@tiny
def _lever(H, body, bodies, mem):
    """Length at which the velocity of a row counts: 1 of one in m/s, of rotations alone the larger radius of gyration."""
    lever = 0.0
    for side in range(2):
        if body[side] >= 0 and not bodies[body[side]].fixed:
            if norm(view(H, 6 * side, 3)) > 0.0:
                return 1.0
            lever = max(lever, radius_of_gyration(bodies[body[side]], mem))
    return lever


@tiny
def size_of(x):
    """``||x||``, 1 for 0."""
    s = 0.0
    for i in range(x.size):
        s += x[i] ** 2
    return math.sqrt(s) if s > 0.0 else 1.0


@tiny
def clear(p, work):
    """No impulses."""
    for i in range(6 * p.n_bodies):
        work[p.p + i] = 0.0
    for i in range(2 * p.n_bodies):
        work[p.impulses + i] = 0.0


@tiny
def solve_blocks(n_contacts, n_blocks, is_new, may_owe, s, solver, options, wanted, share, memory):
    """As `solve`, once w_free and the rows are stated; methods with a matrix and sweeps replace each other where one fails on contacts.

    may_owe: many contacts by the default method without a given tolerance; the next step corrects the residual of this one.
    wanted: velocity residual allowed in an equation, infinity without any; share: of the residual of the guess, likewise.
    """
    p = s.plan[0]
    groups, status, asked = view(memory.iwork, p.groups, 2 * slabs.count(n_contacts) + 1), UNSUITED, options.enough
    may_swap = n_blocks == 0 and p.sweeps != 0
    # a small problem: matrix first, sweeps if it gives up
    if has_matrix(n_contacts, n_blocks, p):
        status = solve_with_matrix(is_new, options.tol, n_contacts, n_blocks, s, solver, options, wanted, share, memory)
        if can_go_on(status) and may_swap:
            status = solve_by_sweeps(n_contacts, n_blocks, groups, p, options, asked, asked, 0.0, 0.0, True, memory)
    # many contacts without a requested tolerance: sweeps with a residual that the next step corrects
    elif may_swap and p.at_once != 0 and may_owe and asked > options.tol:
        status = _solve_as_owed(n_contacts, groups, is_new, s, solver, options, memory)
    # many contacts with a tolerance: sweeps first, a matrix if it fits and they stall
    elif p.sweeps != 0:
        status = solve_by_sweeps(n_contacts, n_blocks, groups, p, options, asked, asked, 0.0, 0.0, True, memory)
        if can_go_on(status) and n_blocks == 0 and n_contacts <= p.limit:
            status = solve_with_matrix(True, asked, n_contacts, n_blocks, s, solver, options, wanted, share, memory)
    return status


@kernel
def _solve_as_owed(n, groups, is_new, s, solver, options, memory):
    """`solve_blocks` of many contacts without a requested tolerance: sweeps to `_OWED`; bodies at rest by Newton's method if possible."""
    work = memory.work
    p = s.plan[0]
    (speed, slip), scale = contact_speed(p.w, n, p, memory), contact_speed(p.w_free, n, p, memory)[0]
    is_at_rest, has_tried, status, left = speed <= _AT_REST * scale, p.n_newton == 0, UNSUITED, math.inf
    # 1. at rest the impulses of the last step, without any matrix
    if is_at_rest:
        total_impulse(n, 0, p, memory)
        left, change = guess.error(options.enough, n, s.collisions, p, memory)
        work[p.info], work[p.info + 1] = 0.0, left
        if left <= _HELD and change <= guess.STEADY * _HELD:
            return CONVERGED
    # 2. rest that few contacts carry, or that these nearly hold, or that has none yet
    is_tree = p.d == 5 and n <= p.n_bodies
    is_cold = is_at_rest and left >= _COLD and largest(view(work, p.r, p.d * n)) == 0.0
    if is_cold:
        _press(n, p, memory)
    if not has_tried and ((is_at_rest and (n <= p.limit or is_tree)) or left <= _HOLDS or is_cold):
        tol, held = (options.tol, _SHARE * _HELD) if is_at_rest else (options.enough, _OWED)
        has_tried, status = True, _solve_on_graph(n, tol, held, 0.0, _BUDGET, s, memory)
    # 3. with rolling friction columns bend like beams, over which sweeps take hundreds: of trees Newton's steps cost little
    beside = slip if p.d == 5 else 0.0
    if not has_tried and not is_at_rest and is_tree:
        status = _solve_on_graph(n, options.enough, _OWED, beside, _BUDGET_OF_TREES, s, memory)
    # 4. sweeps, few of them if another method can take over, since hard problems cost many
    is_last, quick = options.max_iter != 0.0 or (has_tried and n > p.limit), _QUICK if is_new and speed <= _SLOW * scale else 0.0
    if status != CONVERGED:
        few = changed(options, options.tol, options.max_iter if is_last else _TRIED, 0.0)
        status = solve_by_sweeps(n, 0, groups, p, few, options.enough, _OWED, quick, slip, is_last, memory)
        # their residuals would add up from step to step at rest, so that a pile would creep
        if is_at_rest and not has_tried and status == CONVERGED and work[p.info + 1] > options.enough:
            _solve_on_graph(n, options.tol, _SHARE * _HELD, 0.0, _BRIEF_BUDGET, s, memory)
    # 5. methods with a matrix, or all sweeps
    if can_go_on(status) and not has_tried and _solve_on_graph(n, options.enough, _OWED, beside, _BUDGET, s, memory) == CONVERGED:
        status = CONVERGED
    if can_go_on(status) and n <= p.limit:
        status = solve_with_matrix(True, options.enough, n, 0, s, solver, options, math.inf, 1.0, memory)
    elif can_go_on(status) and not is_last:
        status = solve_by_sweeps(n, 0, groups, p, options, options.enough, _OWED, quick, slip, True, memory)
    return status


@kernel
def _press(n, p, memory):
    """Impulses by which contacts across the fall of their bodies count as closed, and hardly more. Out: r_N.

    Without any, bodies that fall together do not meet, and each iteration finds only what the ones that carry so far hand on to the next.
    """
    work = memory.work
    for c in range(n):
        fall, rate, normal = 0.0, 0.0, view(work, p.frame + 9 * c, 3)
        for side in range(2):
            body = memory.iwork[p.body + 2 * c + side]
            if body != WORLD:
                v = view(work, p.w_free + 6 * body, 3)
                fall, rate = max(fall, abs(dot(normal, v)) - _ACROSS * norm(v)), rate + work[p.inverse + p.stride * body]
        work[p.r + p.d * c] = _PRESSED * fall / rate if rate > 0.0 else 0.0


@kernel
def contact_speed(at, n, p, memory):
    """Norm of the velocities at the first n contacts, of bodies whose velocities lie at ``at``, and that of points alone, m/s.

    With rolling friction those by which the bodies roll count, too, at the lever of the first one: what rolls without slip is in motion.
    """
    w, total, slip, x = view(memory.work, at, 6 * p.n_bodies), 0.0, 0.0, stack(3)
    # relative velocity at each contact, of which the norm over all is a scale of motion
    for c in range(n):
        a, b, lever = memory.iwork[p.body + 2 * c], memory.iwork[p.body + 2 * c + 1], view(memory.work, p.lever + 6 * c, 6)
        contacts.point_velocity(a, b, lever, w, x)
        total += dot(x, x)
        slip += dot(x, x)
        if p.d == 5:
            for k in range(3):
                x[k] = w[6 * a + 3 + k] - (w[6 * b + 3 + k] if b != WORLD else 0.0)
            reach = view(lever, 0, 3)
            total += dot(x, x) * dot(reach, reach)
    return math.sqrt(total), math.sqrt(slip)


@kernel
def solve_with_matrix(is_new, aim, n_contacts, n_blocks, s, solver, options, wanted, share, memory):
    """As `solve`, by a method for contact problems, unless the impulses of the last step solve it already.

    aim: the tolerance requested of the method, unless equations want less.
    """
    p, left, change = s.plan[0], math.inf, math.inf
    # the residual at the guess is found without the matrix; at rest, most steps end here
    if n_blocks == 0 and p.at_once != 0 and p.bounded == 0:
        total_impulse(n_contacts, 0, p, memory)
        left, change = guess.error(aim, n_contacts, s.collisions, p, memory)
        memory.work[p.info], memory.work[p.info + 1] = 0.0, left
    if left <= aim and change <= guess.STEADY * aim:
        return CONVERGED
    # impulses that nearly solve it, to a finer residual, since residuals of contacts at rest add up
    is_near = left <= _NEARBY * aim
    fine = max(_FINE * aim, _CLOSEST)
    is_kept = p.n_newton > 0 and n_contacts > _FEWEST  # bodies that are not there give room, but change no bits
    if is_near and is_kept and _solve_on_graph(n_contacts, fine, aim, 0.0, _BRIEF_BUDGET, s, memory) == CONVERGED:
        return CONVERGED
    return _solve_with_matrix(is_new, is_near, aim, n_contacts, n_blocks, s, solver, options, wanted, share, memory)


@kernel
def _solve_with_matrix(is_new, is_near, aim, n_contacts, n_blocks, s, solver, options, wanted, share, memory):
    """As `solve_with_matrix`; is_near: whether the impulses of the guess nearly solve it."""
    work, iwork = memory.work, memory.iwork
    p = s.plan[0]
    n, d, m = n_contacts + n_blocks, p.d, p.n_bodies
    G, u, q, row = view(work, p.G, 12 * d * n), view(work, p.u, d * n), view(work, p.rhs, d * n), view(iwork, p.row, n + 1)
    stated = _blocks_at(0, 0, n, p, memory)
    disk, mu, r = stated.disk, stated.mu, stated.r
    # 1. rows of detected contacts, which the sweeps do without
    _rows_of_contacts(n_contacts, s.collisions, p, stated, memory)
    # 2. scaling by M_hat, and free velocities q
    blocks.complete_blocks(d, p.stride, view(work, p.inverse, p.stride * m), stated, G)
    blocks.velocities(d, stated, view(work, p.w_free, 6 * m), q)
    aim = aim_of_motion(aim, d, stated, q, s.bodies, memory.mem)
    if is_new:
        row[n] = 0  # no pattern is known
    # 3. many contacts beside equations: the impulses of the guess, before anything is factorised. Equations need not be met as finely here,
    # as the scheme judges them by themselves
    is_on_graph = p.n_newton > 0 and n > _FEWEST and p.at_once != 0 and p.bounded == 0 and n_blocks > 0 and n_contacts > 0
    fine = 2.0 * max(min(wanted, aim * size_of(q)), _CLOSEST * size_of(q))
    own = newton.Options(aim, max(aim, min(options.enough, _SHARE * _HELD)), fine, _STEPS, _BUDGET * n * (1.0 if d == 3 else _DEARER))
    if is_on_graph and _on_graph(newton.address_of_guess(), own, stated, q, p, memory) == CONVERGED:
        total_impulse(n_contacts, n_blocks, p, memory)
        return CONVERGED
    # 4. equations: eliminated at once if they are all that there is; redundant ones are made consistent in q
    n_equations = equations.gather(d, stated, s.bodies, G, p, memory) if p.most > 0 else 0
    is_regular, rank = equations.eliminate(n_equations, q, p, memory), n_equations
    if n_equations > 0 and _are_solved_at_once(n_contacts, n_blocks, p, iwork):  # rows that press may be more than there is room for
        left = _solve_equations(n_equations, is_regular, stated, G, s.bodies, p, options, memory)
        if left <= options.enough or n_equations <= redundancy.MOST:
            return CONVERGED if left <= options.enough else STALLED
    if not is_regular and n_equations <= redundancy.MOST:
        equations.gather_dense(d, stated, s.bodies, G, p, memory)
        rank = redundancy.factorise(n_equations, p, memory)
    if rank < n_equations:
        redundancy.make_consistent(n_equations, rank, p, q, memory)
    # 5. proximal term: methods for contacts want a regular matrix
    blocks.soften_equations(blocks.PROXIMAL, d, stated, G, q)
    # 6. many contacts beside equations on the graph of the bodies
    if is_on_graph and _on_graph(newton.address_of_newton(), own, stated, q, p, memory) == CONVERGED:
        total_impulse(n_contacts, n_blocks, p, memory)
        return CONVERGED
    # 7. pattern of W, if it is not the full one, then its blocks
    if row[n] == 0 and not blocks.full_pattern(n, stated.body, s.bodies, row, view(iwork, p.column, p.room)):
        first, linked = view(iwork, p.first, m + 1), view(iwork, p.linked, 2 * n)
        blocks.link(n, stated.body, m, s.bodies, first, linked)
        blocks.pattern(n, stated.body, s.bodies, first, linked, row, view(iwork, p.column, p.room), p.room)
    column, W = view(iwork, p.column, row[n]), view(work, p.W, d * d * row[n])
    blocks.assemble(d, stated, G, row, column, W)
    problem = problem_of((disk, mu, row, column, W, q))
    info, spare, ispare = view(work, p.info, N_INFO), view(work, p.solver, p.n_solver), view(iwork, p.isolver, p.n_isolver)
    # 8. accuracy: the tighter of contacts and equations, but not below rounding
    if wanted < math.inf:
        aim = max(min(aim, wanted / size_of(q), share * merit(False, problem, r, u)), _CLOSEST)
    # 9. solve: a nearly solved problem by few sweeps to a finer residual, since residuals of contacts at rest add up
    kept = view(work, p.kept, 2 * n)
    friction.note(d, disk, stated.diagonal, r, kept)
    status = UNSUITED
    if is_near:
        own = changed(options, max(_FINE * aim, _CLOSEST), _FINE_SWEEPS, _FINE_PATIENCE)
        status = call_solver(address_of_nsgs(), (problem, own, r, u, info, spare, ispare))
    if not (is_near and info[1] <= aim):
        own = changed(options, aim, most_iterations(p, options, work), 0.0)
        status = call_solver(solver, (problem, own, r, u, info, spare, ispare))
    if info[1] > options.enough and info[1] * size_of(q) <= blocks.rounding(d, stated, view(work, p.w_free, 6 * m), _ULPS):
        info[1] = options.tol  # nothing moves against anything, and q is what rounding left
    # 10. impulses: of sticking contacts that are linearly dependent those of the last step are kept
    note_lost(p, options, work)
    friction.keep_blocks(d, disk, row, column, W, u, kept, r)
    if 0 < n_equations <= redundancy.MOST:
        joint_friction.keep(stated, row, column, W, G, kept, s, memory)
    total_impulse(n_contacts, n_blocks, p, memory)
    return CONVERGED if info[1] <= options.enough else status


@tiny
def _rows_of_contacts(n, collisions, p, stated, memory):
    """Rows of the n detected contacts. Out: H, E, diagonal of stated."""
    d = p.d
    for i in range(n):
        each = collisions[memory.iwork[p.which + p.n_contacts + memory.iwork[p.place + i]]].each
        H, diagonal, is_equation = view(stated.H, 12 * d * i, 12 * d), view(stated.diagonal, d * i, d), stated.disk[i] == EQUATION
        contacts.rows_of_contact(1 if is_equation else each, is_equation, i, p, memory, H, diagonal)
        blocks.copy_rows(p, i, 1, stated)


@kernel
def _solve_on_graph(n, tol, enough, slip, budget, s, memory):
    """`solve` of n contacts by Newton's method on the graph of the bodies, to tol, or to enough where steps get no closer. In/out: r.

    slip: norm of velocities of points beside which an error may be small, too. Returns its status: UNSUITED where the graph is too dense.
    Out: p, u, info.
    """
    work, p = memory.work, s.plan[0]
    stated, q = _blocks_at(0, 0, n, p, memory), view(work, p.rhs, p.d * n)
    _rows_of_contacts(n, s.collisions, p, stated, memory)
    for i in range(p.d * n):
        stated.diagonal[i] = 0.0  # padding of contacts is 0 by their law
    blocks.velocities(p.d, stated, view(work, p.w_free, 6 * p.n_bodies), q)
    wanted = rigid.small_beside(slip, size_of(q), tol, enough) if slip > 0.0 else tol
    own = newton.Options(wanted, enough, math.inf, _STEPS, budget * n * (1.0 if p.d == 3 else _DEARER))
    status = _on_graph(newton.address_of_newton(), own, stated, q, p, memory)
    total_impulse(n, 0, p, memory)
    return CONVERGED if status == MAX_ITER and work[p.info + 1] <= enough else status


@kernel
def _on_graph(address, options, stated, q, p, memory):
    """Status of `newton.newton` or `newton.guess` on a problem whose rows and free velocities are stated. In/out: r. Out: u, info."""
    work = memory.work
    inverse = view(work, p.inverse, p.stride * p.n_bodies)
    given = newton.Problem(
        int64(p.d), stated.disk, stated.mu, stated.body, stated.H, stated.E, stated.diagonal, q, int64(p.stride), inverse
    )
    u, info = view(work, p.u, q.size), view(work, p.info, N_INFO)
    spare, ispare = view(work, p.newton, p.n_newton), view(memory.iwork, p.inewton, p.n_inewton)
    return newton.call_newton(address, (given, options, stated.r, u, info, spare, ispare))


@tiny
def most_iterations(p, options, work):
    """Iteration limit of a problem: lower if an earlier one of the step was not solved, as the next mostly is not either."""
    is_brief = work[p.lost] > 0.0 and p.at_once != 0
    return BRIEF if is_brief and not 0.0 < options.max_iter < BRIEF else options.max_iter


@tiny
def note_lost(p, options, work):
    """Count an unsolved problem. In/out: lost."""
    if not work[p.info + 1] <= options.enough:
        work[p.lost] += 1.0


@kernel
def _solve_equations(n, is_regular, stated, G, bodies, p, options, memory):
    """Equations alone, solved by elimination; multipliers of least norm if they are linearly dependent. Returns the relative residual.

    is_regular: the n rows are eliminated. Out: r, p, info: number of choices of independent rows, residual.
    """
    work = memory.work
    q, left, n_choices = view(work, p.rhs, stated.b.size), math.inf, 0.0
    # 1. sparse factors
    if is_regular:
        equations.substitute(n, p, stated.r, memory)
        left = _what_is_left(n, stated, q, p, memory)
    # 2. dense, rank-revealing: rows that depend on others get a share by least norm
    if not left <= options.enough and n <= redundancy.MOST:
        n_choices = 1.0
        equations.gather_dense(p.d, stated, bodies, G, p, memory)
        rank = redundancy.factorise(n, p, memory)
        redundancy.solve(n, rank, q, p, stated.r, memory)
        left = _what_is_left(rank, stated, q, p, memory)
    work[p.info], work[p.info + 1] = n_choices, left
    return left


@kernel
def _what_is_left(n_rows, stated, q, p, memory):
    """``||u|| / ||q||`` with u of the first n_rows. Out: p, the sizes of its terms. Work: unknown, w_end.

    Evaluated from the velocities of the bodies, not from the factors, so that it measures the equations themselves.
    """
    work = memory.work
    m, s, body = p.n_bodies, 0.0, stated.body
    impulse, w = view(work, p.unknown, 6 * m), view(work, p.w_end, 6 * m)
    # 1. impulse on the bodies and the velocities that it gives
    total_impulse(0, stated.disk.size, p, memory)
    for i in range(6 * m):
        impulse[i] = work[p.p + i] - (work[p.known + i] if p.bounded != 0 else 0.0)
    blocks.multiply_inverse(m, p.stride, view(work, p.inverse, p.stride * m), impulse, w)
    # 2. velocities of the rows
    for i in range(n_rows):
        a = memory.iwork[p.component + i]
        start = q[a] + stated.diagonal[a] * stated.r[a]
        s += blocks.velocity(start, a, body[2 * (a // p.d)], body[2 * (a // p.d) + 1], stated.E, w) ** 2
    return math.sqrt(s) / size_of(q)


@kernel
def solve_by_sweeps(n_contacts, n_blocks, groups, p, options, tol, owed, quick, speed, may_freeze, memory):
    """As `solve`, on the velocities of the bodies. groups: contacts that are swept at the same time, see `arrange`.

    tol, owed, quick, speed, may_freeze: see `rigid.Options`.
    """
    work, iwork = memory.work, memory.iwork
    n, d, m = n_contacts + n_blocks, p.d, p.n_bodies
    stated, inverse = stated_blocks(n_contacts, n_blocks, p, memory), view(work, p.inverse, p.stride * m)
    G = view(work, p.G, 12 * d * n_blocks)
    # 1. scale the blocks of interactions; their equations get the proximal term as methods with a matrix do
    blocks.complete_blocks(d, p.stride, inverse, stated, G)
    blocks.soften_equations(blocks.PROXIMAL, d, stated, G, stated.b)
    given = rigid.Problem(
        int64(d),
        groups,
        view(iwork, p.disk, n),
        view(work, p.mu, 2 * n),
        view(iwork, p.body, 2 * n_contacts),
        view(work, p.frame, 9 * n_contacts),
        view(work, p.lever, 6 * n_contacts),
        view(work, p.axes, 6 * n_contacts if d == 5 else 0),
        view(work, p.b, d * n),
        stated.body,
        stated.H,
        stated.diagonal,
        inverse,
        view(work, p.w_free, 6 * m),
    )
    # 2. sweep; threads pay from _PARALLEL contacts on only
    own = rigid.Options(tol, options.max_iter, options.rho, owed, quick, speed, 1.0 if may_freeze else 0.0)
    r, v, u, info = view(work, p.r, d * n), view(work, p.w_end, 6 * m), view(work, p.u, d * n), view(work, p.info, N_INFO)
    spare, ispare = view(work, p.sweeper, p.n_sweeper), view(iwork, p.isweeper, p.n_isweeper)
    address = uintp(iwork[p.instead])
    if address == 0:
        address = address_of_parallel_sweeps() if p.parallel != 0 and n_contacts >= _PARALLEL else address_of_sweeps()
    status = rigid.call_sweeps(address, (given, own, r, v, u, info, spare, ispare))
    total_impulse(n_contacts, n_blocks, p, memory)
    return status


@tiny
def total_impulse(n_contacts, n_blocks, p, memory):
    """``H^T r`` with H and r as they are now. Out: p, and the sizes of its terms."""
    work = memory.work
    impulse, size = view(work, p.p, 6 * p.n_bodies), view(work, p.impulses, 2 * p.n_bodies)
    clear(p, work)
    add_contact_impulses(n_contacts, p, view(memory.iwork, p.body, 2 * n_contacts), work, impulse, size)
    blocks.add_impulses(p.d, stated_blocks(n_contacts, n_blocks, p, memory), impulse, size)
    for i in range(6 * p.n_bodies if p.bounded != 0 else 0):
        impulse[i] += work[p.known + i]
    for i in range(2 * p.n_bodies if p.bounded != 0 else 0):
        size[i] += work[p.known_size + i]


@kernel
def add_contact_impulses(n, p, body, work, impulse, size):
    """``impulse += H^T r`` of n contacts, and the norms of each one's share in translation and rotation to size (2 each)."""
    P, L, moment = stack(3), stack(3), stack(3)
    # linear impulse, and moment of rolling or spinning of blocks of five components
    for c in range(n):
        frame, axes, r = view(work, p.frame + 9 * c, 9), p.axes + 6 * c, view(work, p.r + p.d * c, p.d)
        for k in range(3):
            P[k] = frame[k] * r[0] + frame[3 + k] * r[1] + frame[6 + k] * r[2]
            L[k] = work[axes + k] * r[3] + work[axes + 3 + k] * r[4] if p.d == 5 else 0.0
        push, spin = norm(P), norm(L) if p.d == 5 else 0.0
        # on A with plus, on B with minus
        for side in range(2):
            i, sign = body[2 * c + side], 1.0 - 2.0 * side
            if i != WORLD:
                cross(view(work, p.lever + 6 * c + 3 * side, 3), P, moment)
                for k in range(3):
                    impulse[6 * i + k] += sign * P[k]
                    impulse[6 * i + 3 + k] += sign * (moment[k] + L[k])
                size[2 * i] += push
                size[2 * i + 1] += norm(moment) + spin


@tiny
def keep_impulses(n_contacts, is_at_end, options, s, memory):
    """lambda of everything into the record, 0 of inactive rows. is_at_end: without forecasts; forces are those of the end of the step."""
    mem, work = memory.mem, memory.work
    p = s.plan[0]
    r, ahead = view(work, p.r + p.d * n_contacts, p.d * p.n_blocks), -1.0 if is_at_end else options.gamma * options.h
    for k in range(s.interactions.size):
        it, first = s.interactions[k], memory.iwork[p.begin + k]
        at_end = 0.0 if options.is_explicit != 0.0 else options.h if is_at_end else options.h * options.theta
        takes_part = False
        # rows of a joint follow each other
        if it.law == EQUALITY and first >= 0 and not blocks.has_bounds(it):
            for i in range(it.m):
                memory.imem[it.active + i] = True
                mem[it.lam + i] = r[p.d * first + i]
            continue
        # the record's flag is that of the first row of a contact
        for i in range(it.m):
            if blocks.first_row(it, i) == i:
                takes_part = work[it.off] == 0.0 and blocks.takes_part(it, i, ahead, memory)
            memory.imem[it.active + i] = takes_part
            # impulse of a force law: both ends of the step by their weights
            if it.law == FORCE:
                mem[it.lam + i] = (options.h - at_end) * work[it.force_old + i] + at_end * work[it.force + i]
            elif first < 0:
                mem[it.lam + i] = 0.0
            elif blocks.has_bounds(it):
                mem[it.lam + i] = blocks.impulse_within_bounds(options.h, it, i, first, p.d, work, r)
            else:
                mem[it.lam + i] = blocks.unit_of_row(it, i, mem) * r[p.d * first + blocks.place(it, p.d, i)]
    keep_contact_impulses(n_contacts, s, p, memory)


@tiny
def keep_contact_impulses(n_contacts, s, p, memory):
    """lambda of detected contacts into the record, 0 of all but the n_contacts active ones, and of those that carry rounding alone."""
    iwork = memory.iwork
    # clear first: contacts of the record that were not active carried nothing
    for k in range(s.collisions.size):
        c = s.collisions[k]
        for i in range(c.each * memory.imem[c.n]):
            memory.mem[c.lam + i] = 0.0
    smallest = _rounding_of_impulses(s.bodies, p, memory) if n_contacts > 0 else 0.0
    for i in range(n_contacts):
        j = iwork[p.place + i]
        c, number = s.collisions[iwork[p.which + p.n_contacts + j]], iwork[p.which + j]
        # of one that has opened: in flight it would count as closed, and be stopped where the flight turns
        if 0.0 < memory.work[p.r + p.d * i] <= smallest and _is_rounding(i, j, s.bodies, p, memory):
            continue
        for k in range(c.each):
            unit = 1.0 if k < 3 else contacts.length_of_moments(i, p, memory.work)
            memory.mem[c.lam + c.each * number + k] = unit * memory.work[p.r + p.d * i + k]


@tiny
def _rounding_of_impulses(bodies, p, memory):
    """Impulse above which there is none that `_is_rounding`."""
    mass, speed = 0.0, 0.0
    for i in range(p.n_bodies):
        square = 0.0
        for k in range(3):
            square += memory.work[p.w + 6 * i + k] ** 2
        speed = max(speed, square)
        mass = max(mass, 0.0 if bodies[i].fixed else memory.mem[bodies[i].q + MASS])
    return 2.0 * _ULPS * mass * math.sqrt(speed)


@kernel
def _is_rounding(i, j, bodies, p, memory):
    """Whether the i-th impulse changes the velocities of the j-th pair of bodies by no more than their rounding."""
    change, speed = 0.0, 0.0
    for side in range(2):
        body = memory.iwork[p.pair + 2 * j + side]
        if body != WORLD and not bodies[body].fixed:
            change += memory.work[p.r + p.d * i] / memory.mem[bodies[body].q + MASS]
        for k in range(3 if body != WORLD else 0):
            speed += memory.work[p.w + 6 * body + k] ** 2
    return change * change <= _ULPS * _ULPS * speed
