"""Block Gauss–Seidel over contacts of rigid bodies in space: on the velocities of the bodies, without any matrix, and with momentum.

    u_c = frame_c [(v_a + omega_a × l_a) - (v_b + omega_b × l_b)] + b_c,    solve contact c for r_c,    pass the change of r_c on to a and b

With rolling friction, ``t_1 (omega_a - omega_b)`` and ``t_2 (omega_a - omega_b)`` follow in u_c, and moments about t_1 and t_2 in r_c.
Momentum: a sweep begins at ``r + beta (r - r_before)`` with the velocities that belong to it. A settled pile of 1000
spheres takes a quarter to an eighth of the sweeps with it.

Where sweeps do not settle, as in some steps of piles with much friction, the slip ``mu ||u_T|| + mu_r ||u_R||`` that Coulomb's law adds to
u_N is frozen, after it has followed the velocities more and more slowly: ``u + s e_N ∈ K*`` and ``r ∈ K`` is a convex problem that sweeps
do solve. Its solution obeys the balance of momentum and the law but for u_N of contacts that slide, which is off by what s is (INEXACT).
"""

import math
from typing import NamedTuple

from numba import float64, int64, types
from numpy.typing import NDArray

from nsds._jit import caller, each, kernel, load, parallel, put, specialised, spread, stack, threaded, tiny, view
from nsds.maths.vectors import times
from nsds.solvers.bodies import slabs
from nsds.solvers.bodies.lanes import ENTRIES, SLOW, WIDTH, pack, relax_lanes, residual_lanes
from nsds.solvers.bodies.rigid_contact import (  # fmt: skip
    B_AT,
    BODY,
    SCRATCH,
    State,
    act_3,
    act_5,
    build_record,
    extrapolate,
    follow,
    mean_of_record,
    record_size,
    relax_3,
    relax_5,
    relax_block_3,
    relax_block_5,
    solve_frozen,
    velocity_3,
    velocity_5,
)
from nsds.solvers.contact import local as one
from nsds.solvers.contact.signature import EQUATION, cone_of, keep_better, mean_diagonal, modify, natural_map, natural_map_with, norm
from nsds.status import CONVERGED, INEXACT, MAX_ITER, NON_FINITE, STALLED


class Problem(NamedTuple):
    """Problem of `nsgs_rigid`: nc contacts, and np general blocks behind them; n of both."""

    d: int  # components of each: 3, with rolling or spinning friction 5
    begin: NDArray  # groups of contacts in the order of the sweep, see `slabs.order`
    disk: NDArray  # (n,)
    mu: NDArray  # (2 n,)
    body: NDArray  # (2 nc,): a and b, -1 the world
    frame: NDArray  # (9 nc,): n, t_1, t_2
    lever: NDArray  # (6 nc,): point of contact minus x_a and minus x_b
    axes: NDArray  # (6 nc,): about which moments act, where d is 5; the second may be zero
    b: NDArray  # (n d,)
    panel_body: NDArray  # (2 np,)
    H: NDArray  # (np, d, 12): of general blocks, on (v_a, omega_a, v_b, omega_b)
    diagonal: NDArray  # (np, d): added to the diagonal of W of general blocks
    inverse: NDArray  # (10 n_bodies,): 1/m, inverse of the angular iteration matrix by rows; zeros: cannot be moved
    v_free: NDArray  # (6 n_bodies,): of the centre of mass, and omega, both in inertial axes


class Options(NamedTuple):
    """Options of `nsgs_rigid`."""

    tol: float
    max_iter: float  # sweeps; 0: MAX_SWEEPS
    momentum: float  # bound of beta; 0: 0.9, negative: none
    owed: float  # residual that is enough where tol would cost more than it gains, see `_enough`; tol: no other is
    quick: float  # sweeps before which it has to be tol
    speed: float  # norm of the velocities of points of contact at the start of the step, m/s
    may_freeze: float  # not 0: the slip may be frozen where sweeps do not settle; 0: another method comes next


class Layout(NamedTuple):
    """The parts of the scratch."""

    R: NDArray  # records of the contacts
    B: NDArray  # records of the bodies and the world
    v_before: NDArray  # (n_bodies + 1, 6): velocities of the bodies before the last sweep
    r_before: NDArray  # (n d,): r before the last sweep
    best: NDArray  # (n d,): the best r seen
    S: NDArray  # (n,): slip, where it is frozen
    G: NDArray  # (np, d, 12): rows of ``(M^-1 H^T)^T`` of general blocks
    W: NDArray  # (np, d, d): ``H M^-1 H^T`` and the diagonal
    sums: NDArray  # (_CHUNKS,): of squares of res_q
    change: NDArray  # (groups + 1, 2): what relaxations return, summed over each group
    own: NDArray  # (groups + 1, SCRATCH + SLOW): of the contacts at hand, in each group
    L: NDArray  # records of contacts side by side, where d is 3


class Pace(NamedTuple):
    """Over-relaxation of the next sweep; see `_faster`."""

    beta: float  # of the last change of r, by which the sweep begins ahead
    t: float  # of Nesterov's rule
    bound: float  # of beta
    least: float  # change of r so far
    since: int  # sweeps without a lesser one
    straight: float  # mean cosine between changes


_floats, _integers = float64[::1], int64[::1]
_PROBLEM = types.NamedTuple([int64, *(_integers, _integers, _floats, _integers), *(_floats,) * 4, _integers, *(_floats,) * 4], Problem)
# The arguments of `nsgs_rigid`, for those who call it by its address.
SIGNATURE = int64(_PROBLEM, types.NamedUniTuple(float64, 7, Options), *(_floats,) * 5, _integers)
call_sweeps = caller(SIGNATURE)

MAX_SWEEPS = 10_000
_OWN = SCRATCH + SLOW
_CHUNKS = 16  # parts in which the loops over all contacts or bodies are handed out
_MOMENTUM, _LESS, _MORE = 0.9, 0.5, 0.95  # bound of beta, when sweeps get no closer with it, and with the slip frozen
_STUCK = 0.97  # of the least residual before: with more at a check, momentum begins again
_SPOILT = 0.005  # of the residual of the guess: with less by no impulses sweeps begin there
_GROWTH, _WAIT = 10.0, 50  # of the change of r beyond its least, and sweeps without a lesser one, after which the bound of beta is lowered
_BACK = 0.004  # of the way that the bound takes back in each sweep
_MEMORY, _STRAIGHT_ON = 0.1, 0.5  # weight of the last change in their mean direction, and from which mean on it is kept
_SPACING = 10  # sweeps between checks of the residual, or a tenth of those done; a twentieth where the changes promise a solution
_PATIENCE = 500  # sweeps without progress
_SHARE = 0.1  # of the velocities at contacts: an error that counts beside them
_PATIENT, _MOST_OWED = 50, 300  # sweeps until what is owed is enough although bodies hardly move, and until it is given up
_CLEAN = 10  # sweeps whose rounding is no more than that of velocities from reactions
_FOLLOWING, _FROZEN = 300, 1000  # sweeps in which the slip follows the velocities, and with it frozen
_GAIN = 0.2  # of the way that the slip takes in the first sweep; it falls to 0
_BRIEFLY = 60  # sweeps in which the slip follows where not more than what is owed is asked: that is met soon or not at all

# Components of a contact, what belongs to them, and the kind of loop: bound by `specialised`.
_D, _velocity, _act, _relax, _each = 3, velocity_3, act_3, relax_3, range


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
                    times(view(inverse, 10 * i + 1, 9), view(H, at + 3, 3), view(G, at + 3, 3))
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
def _relax_panels(beta, gain, p, s, w):
    """Solves the general blocks one after the other, as `relax_block` does with a contact; returns the sum of squares of changes."""
    d, disk, r, n_contacts, moved = p.d, p.disk, s.r, p.body.size // 2, 0.0
    u, now, new, q = view(w.own, 0, 5), view(w.own, 5, 5), view(w.own, 10, 5), view(w.own, 15, 5)
    spare = view(w.own, 45, one.SCRATCH)
    for c in range(n_contacts, disk.size):
        i, j, k, trace = s.ids[2 * c] * BODY, s.ids[2 * c + 1] * BODY, c - n_contacts, 0.0
        cone = cone_of(c, d, disk, p.mu)
        extrapolate(d, d * c, beta, r, s.r_before, now)
        for a in range(d):
            new[a] = now[a]
        for a in range(d):
            q[a] = p.b[d * c + a] + p.diagonal[d * k + a] * now[a] + _panel_velocity(d * k + a, i, j, p.H, s.B)
            trace += w.W[(d * k + a) * d + a] / d
            for e in range(d):
                q[a] -= w.W[(d * k + a) * d + e] * now[e]
        if gain < 0.0 or disk[c] == EQUATION:
            one.solve_contact(one.AUTO, cone, w.W, d * d * k, q, new, spare)
        elif trace > 0.0:
            q[0] += s.S[c]
            solve_frozen(cone, w.W, d * d * k, q, new, spare)
            q[0] -= s.S[c]
            one.product(d, w.W, d * d * k, new, q, u)
            follow(gain, c, cone, u, s.S)
        for a in range(d):
            r[d * c + a] = new[a]
            _panel_act(d * k + a, i, j, w.G, s.B, new[a] - now[a])
            moved += (trace * (new[a] - now[a])) ** 2
    return moved


# ------------------------------------------------------------------------------------------------------------------ all contacts


def _build(p, R, ids):
    """Records of all contacts. Out: R, ids."""
    n = p.body.size // 2
    for chunk in _each(_CHUNKS):
        _build_some(n * chunk // _CHUNKS, n * (chunk + 1) // _CHUNKS, p, R, ids)


@kernel
def _build_some(first, last, p, R, ids):
    for c in range(first, last):
        build_record(c, p, R, ids)


def _pack(begin, s):
    """Contacts of each group that can be solved side by side. Out: L, alike of s."""
    for g in _each(begin.size - 1):
        pack(begin[g], begin[g + 1], s)


def _apply(begin, R, ids, r, B):
    """``v += M^-1 H r`` for all contacts, in the order of a sweep. In/out: B."""
    for phase in range(slabs.PHASES):
        first, last = slabs.phase(begin.size - 1, phase), slabs.phase(begin.size - 1, phase + 1)
        if begin[last] > begin[first]:
            for g in _each(first, last):
                _apply_some(begin[g], begin[g + 1], R, ids, r, B)


def _apply_some(first, last, R, ids, r, B):
    """Contacts from first to last of `_apply`."""
    for c in range(first, last):
        x = view(r, _D * c, _D)
        r_3, r_4 = (x[3], x[4]) if _D == 5 else (0.0, 0.0)
        _act(c * record_size(_D), ids[2 * c] * BODY, ids[2 * c + 1] * BODY, R, B, x[0], x[1], x[2], r_3, r_4)


def _sweep(begin, beta, gain, s, change, own):
    """One sweep over the contacts, phase by phase, the groups of one at the same time. In/out: B, S, r, r_before of s.

    Out: change (2 groups,): what the relaxation returns, summed over each group. gain: see `relax_block`. Work: own.
    """
    for phase in range(slabs.PHASES):
        first, last = slabs.phase(begin.size - 1, phase), slabs.phase(begin.size - 1, phase + 1)
        if begin[last] > begin[first]:
            for g in _each(first, last):
                own_g, change_g = view(own, g * _OWN, _OWN), view(change, 2 * g, 2)
                _sweep_some(begin[g], begin[g + 1], beta, gain, s, change_g, own_g)


def _sweep_some(first, last, beta, gain, s, change, own):
    """Contacts from first to last of `_sweep`, one after the other."""
    total = total_along = 0.0
    for c in range(first, last):
        moved, along = _relax(c, beta, gain, s, own)
        total += moved
        total_along += along
    change[0], change[1] = total, total_along


@kernel
def _sweep_lanes(first, last, beta, gain, s, change, own):
    """As `_sweep_some`, of contacts with friction in space by their law, side by side where they can be. gain: not used."""
    total = total_along = 0.0
    totals = totals_along = spread(0.0, WIDTH)
    scratch, kept, c = view(own, 0, SCRATCH), view(own, SCRATCH, SLOW), first
    while c < last:
        if s.alike[c] != 0:
            moved_each, along_each = relax_lanes(c, beta, s, scratch, kept)
            totals, totals_along, c = totals + moved_each, totals_along + along_each, c + WIDTH
        else:
            moved, along = relax_3(c, beta, gain, s, scratch)
            total, total_along, c = total + moved, total_along + along, c + 1
    put(kept, 0, WIDTH, totals)
    put(kept, 1, WIDTH, totals_along)
    for l in range(WIDTH):
        total += kept[l]
        total_along += kept[WIDTH + l]
    change[0], change[1] = total, total_along


def _extrapolate(beta, B, before):
    """``v + beta (v - v_before)`` for all bodies. In/out: B, before (6 each)."""
    n = B.size // BODY
    for chunk in _each(_CHUNKS):
        for i in range(n * chunk // _CHUNKS, n * (chunk + 1) // _CHUNKS):
            now, kept = view(B, i * BODY, 6), view(before, 6 * i, 6)
            v = load(now, 0, 6)
            if beta > 0.0:
                put(now, 0, 6, v + beta * (v - load(kept, 0, 6)))
            put(kept, 0, 6, v)


def _residuals(unit, mu, s, u, sums):
    """u of all contacts, and the sum of squares of res_q in parts, unless unit is 0. Out: u, sums (_CHUNKS,)."""
    n = u.size // _D
    for chunk in _each(_CHUNKS):
        sums[chunk] = _residuals_of_some(n * chunk // _CHUNKS, n * (chunk + 1) // _CHUNKS, unit, mu, s, u)


def _residuals_of_some(first, last, unit, mu, s, u):
    """Contacts from first to last of `_residuals`; returns the sum of squares."""
    squares = 0.0
    for c in range(first, last):
        squares += _residual(c, unit, mu, s, u)
    return squares


@kernel
def _residuals_lanes(first, last, unit, mu, s, u):
    """As `_residuals_of_some`, of contacts in space without moments, side by side where they can be."""
    squares, each_squares, kept, c = 0.0, spread(0.0, WIDTH), stack(WIDTH), first
    while c < last:
        if s.alike[c] != 0 and c + WIDTH <= last:
            each_squares, c = each_squares + residual_lanes(c, unit, s, u), c + WIDTH
        else:
            squares, c = squares + _residual_3(c, unit, mu, s, u), c + 1
    put(kept, 0, WIDTH, each_squares)
    for l in range(WIDTH):
        squares += kept[l]
    return squares


def _residual(c, unit, mu, s, u):
    """Square of res_q of contact c, 0 where unit is. Out: u of it."""
    k, x = c * record_size(_D), stack(5)
    u_0, u_1, u_2, u_3, u_4 = _velocity(k, s.ids[2 * c] * BODY, s.ids[2 * c + 1] * BODY, s.R, s.B)
    u[_D * c], u[_D * c + 1], u[_D * c + 2] = u_0 + s.R[k + B_AT], u_1 + s.R[k + B_AT + 1], u_2 + s.R[k + B_AT + 2]
    if _D == 5:
        u[_D * c + 3], u[_D * c + 4] = u_3 + s.R[k + B_AT + 3], u_4 + s.R[k + B_AT + 4]
    return natural_map(1.0 / unit, cone_of(c, int64(_D), s.disk, mu), c * _D, s.r, u, x) * unit**2 if unit > 0.0 else 0.0


_residual_3, _residual_5 = (tiny(specialised(_residual, str(d), _D=d, _velocity=v)) for d, v in ((3, velocity_3), (5, velocity_5)))


def _of_some(d):
    """(sweep by the law, sweep with frozen slip, apply, residuals) of contacts of d components in a row, for any number of cores."""
    act, block = (act_3, relax_block_3) if d == 3 else (act_5, relax_block_5)
    return [
        _sweep_lanes if d == 3 else kernel(specialised(_sweep_some, "5", _relax=relax_5)),
        kernel(specialised(_sweep_some, f"blocks_{d}", _relax=block)),
        kernel(specialised(_apply_some, str(d), _D=d, _act=act)),
        _residuals_lanes if d == 3 else kernel(specialised(_residuals_of_some, "5", _residual=_residual_5)),
    ]


def _templates(d, some, suffix, decorate, loops):
    """`_of_some`, for all contacts."""
    sweep, sweep_blocks, apply, residuals = some
    bound = {"_D": d, "_each": loops}
    return [
        decorate(specialised(_sweep, f"{d}_{suffix}", _sweep_some=sweep, **bound)),
        decorate(specialised(_sweep, f"blocks_{d}_{suffix}", _sweep_some=sweep_blocks, **bound)),
        decorate(specialised(_apply, f"{d}_{suffix}", _apply_some=apply, **bound)),
        decorate(specialised(_residuals, f"{d}_{suffix}", _residuals_of_some=residuals, **bound)),
    ]


_some_3, _some_5 = _of_some(3), _of_some(5)
_sweep_3, _sweep_blocks_3, _apply_3, _residuals_3 = _templates(3, _some_3, "serial", kernel, range)
_sweep_5, _sweep_blocks_5, _apply_5, _residuals_5 = _templates(5, _some_5, "serial", kernel, range)
_sweep_3_each, _sweep_blocks_3_each, _apply_3_each, _residuals_3_each = _templates(3, _some_3, "parallel", parallel, each)
_sweep_5_each, _sweep_blocks_5_each, _apply_5_each, _residuals_5_each = _templates(5, _some_5, "parallel", parallel, each)
_build_serial, _pack_serial, _extrapolate_serial = (kernel(specialised(f, "serial", _each=range)) for f in (_build, _pack, _extrapolate))
_build_all, _pack_all, _extrapolate_all = _build_serial, _pack_serial, _extrapolate_serial
_build_parallel, _pack_parallel, _extrapolate_parallel = (
    parallel(specialised(f, "parallel", _each=each)) for f in (_build, _pack, _extrapolate)
)


# ------------------------------------------------------------------------------------------------------------------ the method


def work_size(d, n_contacts, n_panels, n_bodies, n_groups):
    """(floats, integers) of scratch of `nsgs_rigid`; n_groups: twice `slabs.count`."""
    n = n_contacts + n_panels
    floats = record_size(d) * n_contacts + (BODY + 6) * (n_bodies + 1) + (2 * d + 1) * n + (12 * d + d * d) * n_panels
    floats += ENTRIES * n_contacts if d == 3 else 0
    return floats + _CHUNKS + (n_groups + 1) * (2 + _OWN), 2 * n + n_contacts


@tiny
def _layout(d, n_contacts, n, n_bodies, n_groups, work):
    """The parts of the scratch; n: contacts and general blocks."""
    m, size = n - n_contacts, record_size(d) * n_contacts
    bodies = size + BODY * (n_bodies + 1)
    blocks = bodies + 6 * (n_bodies + 1)
    panels = blocks + (2 * d + 1) * n
    rest = panels + (12 * d + d * d) * m
    return Layout(
        view(work, 0, size),
        view(work, size, BODY * (n_bodies + 1)),
        view(work, bodies, 6 * (n_bodies + 1)),
        view(work, blocks, d * n),
        view(work, blocks + d * n, d * n),
        view(work, blocks + 2 * d * n, n),
        view(work, panels, 12 * d * m),
        view(work, panels + 12 * d * m, d * d * m),
        view(work, rest, _CHUNKS),
        view(work, rest + _CHUNKS, 2 * (n_groups + 1)),
        view(work, rest + _CHUNKS + 2 * (n_groups + 1), (n_groups + 1) * _OWN),
        view(work, rest + _CHUNKS + (n_groups + 1) * (2 + _OWN), ENTRIES * n_contacts if d == 3 else 0),
    )


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
def _unit_of_impulses(d, disk, R, W):
    """The power of two next to the largest mean diagonal of a contact's block: impulses times it are like velocities."""
    n_contacts, largest = R.size // record_size(d), 0.0
    for c in range(disk.size):
        if disk[c] != EQUATION:
            p = c - n_contacts
            largest = max(largest, mean_of_record(d, c * record_size(d), R) if p < 0 else mean_diagonal(d, p, W))
    return 2.0 ** math.ceil(math.log2(largest)) if 0.0 < largest < math.inf else 1.0


@kernel
def _panel_residuals(unit, p, s, u):
    """Sum of squares of res_q of the general blocks, unless unit is 0. Out: u."""
    d, n_contacts, x, squares = p.d, p.body.size // 2, stack(5), 0.0
    for c in range(n_contacts, p.disk.size):
        k = c - n_contacts
        i, j = s.ids[2 * c] * BODY, s.ids[2 * c + 1] * BODY
        for a in range(d):
            row = d * k + a
            u[d * c + a] = p.b[d * c + a] + p.diagonal[row] * s.r[d * c + a] + _panel_velocity(row, i, j, p.H, s.B)
        if unit > 0.0:
            squares += natural_map(1.0 / unit, cone_of(c, d, p.disk, p.mu), c * d, s.r, u, x) * unit**2
    return squares


def _judge(k, scale, unit, p, enough, s, w, u, info):
    """Status after k sweeps: CONVERGED, NON_FINITE or MAX_ITER, by res_q at the velocities of B. Out: u, where unit is 0 alone; info."""
    if p.d == 3:
        _residuals_3(unit, p.mu, s, view(u, 0, 3 * (p.body.size // 2)), w.sums)
    else:
        _residuals_5(unit, p.mu, s, view(u, 0, 5 * (p.body.size // 2)), w.sums)
    squares = _panel_residuals(unit, p, s, u)
    for chunk in range(_CHUNKS):
        squares += w.sums[chunk]
    info[0], info[1], info[2], info[3] = k, math.sqrt(squares) / scale, scale, 0.0
    if not math.isfinite(info[1]):
        return NON_FINITE
    return CONVERGED if info[1] <= enough else MAX_ITER


def _velocities(p, s, G):
    """``v = v_free + M^-1 H r``. Out: v of B."""
    n_contacts = p.body.size // 2
    _start_velocities(p.v_free, s.B)
    if p.d == 3:
        _apply_3(p.begin, s.R, s.ids, s.r, s.B)
    else:
        _apply_5(p.begin, s.R, s.ids, s.r, s.B)
    for row in range(s.r.size - p.d * n_contacts):
        c = n_contacts + row // p.d
        _panel_act(row, s.ids[2 * c] * BODY, s.ids[2 * c + 1] * BODY, G, s.B, s.r[p.d * n_contacts + row])


def _sweep_all(beta, gain, p, s, w):
    """One sweep over all contacts and general blocks, by the law where gain is negative; (norm of the change, its product with the way).

    From ``r + beta (r - r_before)`` and its velocities.
    """
    _extrapolate_all(beta, s.B, w.v_before)
    if p.d == 3 and gain < 0.0:
        _sweep_3(p.begin, beta, gain, s, w.change, w.own)
    elif p.d == 3:
        _sweep_blocks_3(p.begin, beta, gain, s, w.change, w.own)
    elif gain < 0.0:
        _sweep_5(p.begin, beta, gain, s, w.change, w.own)
    else:
        _sweep_blocks_5(p.begin, beta, gain, s, w.change, w.own)
    squares, along = _relax_panels(beta, gain, p, s, w) if p.panel_body.size > 0 else 0.0, 0.0
    for g in range(p.begin.size - 1):
        squares += w.change[2 * g]
        along += w.change[2 * g + 1]
    return math.sqrt(squares), along


@tiny
def _first_pace(most):
    """`Pace` of the first sweep, where beta is at most so large."""
    return Pace(0.0, 1.0, most, math.inf, 0, 0.5)


@tiny
def _faster(pace, most, moved, along):
    """`Pace` of the next sweep from that of the last one, its ``moved`` and ``along``.

    By Nesterov's rule up to a bound, which is lowered where changes neither shrink nor keep their direction.
    """
    t, least, since = pace.t, pace.least, pace.since + 1
    cosine = along / (moved * moved) * (1.0 - pace.beta) if moved > 0.0 else 0.0  # 1 where all changes are the same
    straight = pace.straight + _MEMORY * (min(max(cosine, -1.0), 1.0) - pace.straight)
    bound = min(pace.bound + _BACK * (most - pace.bound), most)
    if moved < 0.95 * least:
        least, since = moved, 0
    if moved > _GROWTH * least or (since > _WAIT and straight < _STRAIGHT_ON):
        return Pace(0.0, 1.0, max(1.0 - 1.5 * (1.0 - bound), 0.0), moved, 0, straight)
    if along < 0.0:  # the sweep went back on the way that momentum took
        return Pace(0.0, 1.0, bound, least, since, straight)
    t_new = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
    return Pace(min((t - 1.0) / t_new, bound), t_new, bound, least, since, straight)


@tiny
def _most_sweeps(options):
    """Sweeps until these are given up; none where max_iter is negative."""
    most = _MOST_OWED if options.owed > options.tol else MAX_SWEEPS
    return most if options.max_iter == 0.0 else max(int(options.max_iter), 0)


@tiny
def _enough(k, scale, options):
    """Residual that is enough after k sweeps: tol at first, then what is small beside the velocities at contacts, then what is owed.

    So the error is small beside the motion at hand, and where there is none, each step goes on from a better guess than the last one.
    """
    if k < options.quick:
        return options.tol
    return small_beside(options.speed, scale, options.tol, options.owed) if k < _PATIENT else options.owed


@tiny
def small_beside(speed, scale, tol, owed):
    """Residual from tol to owed that is small beside the velocities at contacts, of norm speed; scale: of those without impulses."""
    return min(max(tol, _SHARE * speed / scale), owed) if scale > 0.0 else owed


def _nsgs(p, options, r, v, u, info, work, iwork):
    """Contact problem of rigid bodies, ``u = H v + b`` and ``v = v_free + M^-1 H^T r``, by sweeps with momentum over contacts in phases.

    p: `Problem`; options: `Options`. The law of contacts, info and statuses: as for reduced problems (`nsds.solvers.contact.signature`),
    but residuals are relative to ``||H v_free + b||``. Of the inverse of an angular iteration matrix W_cc only knows the symmetric part,
    in a preconditioner's role.
    In/out: r (n d,), the best that was checked. Out: v (6 n_bodies,), u (n d,), info. The bits do not depend on the number of cores.
    References: Jourdan, Alart, Jean, CMAME 155 (1998) 31–47; Nesterov, Soviet Mathematics Doklady 27 (1983) 372–376 (the rule for beta);
    O'Donoghue, Candès, Foundations of Computational Mathematics 15 (2015) 715–732 (when it restarts).
    """
    n_contacts, world, limit = p.body.size // 2, p.inverse.size // 10, _most_sweeps(options)
    w = _layout(p.d, n_contacts, p.disk.size, world, p.begin.size - 1, work)
    ids, alike = view(iwork, 0, 2 * p.disk.size), view(iwork, 2 * p.disk.size, n_contacts)
    s = State(p.disk, w.R, ids, w.B, w.S, r, w.r_before, w.L, alike)
    # 1. the guess, or none where impacts have spoilt it; a fair one is kept: errors between neighbours go in a few sweeps, and it carries
    #    the weight of columns, which sweeps take hundreds to find
    unit, scale, without = _begin(p, s, w, u, info)
    _velocities(p, s, w.G)
    status = _judge(0, scale, unit, p, _enough(0, scale, options), s, w, u, info)
    if status != CONVERGED and without < _SPOILT * info[1]:
        for i in range(r.size):
            r[i] = s.r_before[i] = 0.0
        _start_velocities(p.v_free, s.B)
        status = _judge(0, scale, unit, p, _enough(0, scale, options), s, w, u, info)
    # 2. sweeps
    most = max(options.momentum, 0.0) if options.momentum != 0.0 else _MOMENTUM
    pace = _first_pace(most)
    k, looked, progress, ratio, least = 0, 0, 0, 1.0, keep_better(info[1], math.inf, r, w.best)
    while status == MAX_ITER and k < limit:
        moved, along = _sweep_all(pace.beta, -1.0, p, s, w)
        k += 1
        enough = _enough(k, scale, options)
        promising = moved * ratio <= enough * scale and k > looked + k // 20
        if promising or k >= looked + max(_SPACING, k // 10) or k == limit or not moved < math.inf:
            status, looked = _judge(k, scale, unit, p, enough, s, w, u, info), k
            if status == CONVERGED and k > _CLEAN:  # once more without the rounding of all sweeps
                _velocities(p, s, w.G)
                status = _judge(k, scale, unit, p, enough, s, w, u, info)
            ratio = info[1] * scale / moved if moved > 0.0 else 0.0
            progress = k if info[1] < 0.999 * least else progress
            if info[1] > _STUCK * least:  # momentum carries r past the solution, though changes still go one way
                pace = Pace(0.0, 1.0, pace.bound, pace.least, pace.since, pace.straight)
            least = keep_better(info[1], least, r, w.best)
            if k > progress + _PATIENCE and status == MAX_ITER:
                status, most, progress = MAX_ITER if most > _LESS else STALLED, min(most, _LESS), k
        pace = _faster(pace, most, moved, along)
    # 3. the best that was seen, and the slip frozen where nothing else is left
    if status != CONVERGED and least < math.inf:
        for i in range(r.size):
            r[i] = w.best[i]
        _velocities(p, s, w.G)
        if _judge(k, scale, unit, p, options.owed, s, w, u, info) == CONVERGED:
            status = CONVERGED
        elif status in (MAX_ITER, STALLED) and k > 0 and options.may_freeze != 0.0:
            longest = min(limit, _BRIEFLY) if options.owed > options.tol else limit
            status = _freeze(status, longest, _MORE if most > 0.0 else 0.0, scale, unit, p, options, s, w, u, info)
    for i in range(v.size):
        v[i] = w.B[i // 6 * BODY + i % 6]
    return status


def _begin(p, s, w, u, info):
    """(unit of impulses, size of u without impulses, residual of none). Out: s, w, with the guess as r and r_before, but no velocities of
    it."""
    n_contacts, world, r = p.body.size // 2, p.inverse.size // 10, s.r
    _build_all(p, s.R, s.ids)
    for i in range(p.panel_body.size):
        s.ids[2 * n_contacts + i] = p.panel_body[i] if p.panel_body[i] >= 0 else world
    _build_panels(p.d, p.panel_body, p.H, p.diagonal, p.inverse, w.G, w.W)
    _start(p.v_free, p.inverse, s.B)
    if p.d == 3:
        _pack_all(p.begin, s)
    for g in range(w.change.size):
        w.change[g] = 0.0  # groups of a phase without contacts are not swept
    for i in range(r.size):
        w.best[i], r[i] = r[i], 0.0
    unit = _unit_of_impulses(p.d, p.disk, s.R, w.W)
    _judge(0, 1.0, 0.0, p, 0.0, s, w, u, info)
    scale = norm(u, 0, u.size)
    scale = scale if scale > 0.0 else 1.0
    without = _residual_without(unit, p, r, u) / scale
    for i in range(r.size):
        r[i] = s.r_before[i] = w.best[i]
    return unit, scale, without


@kernel
def _residual_without(unit, p, r, u):
    """Root of the sum of squares of res_q of r = 0, whose velocities are u."""
    x, squares = stack(5), 0.0
    for c in range(p.disk.size):
        squares += natural_map(1.0 / unit, cone_of(c, p.d, p.disk, p.mu), p.d * c, r, u, x) * unit**2
    return math.sqrt(squares)


@kernel
def _slips(d, disk, mu, u, S):
    """``S = mu ||u_T|| + mu_r ||u_R||`` of all contacts. Out: S."""
    for c in range(disk.size):
        S[c] = modify(cone_of(c, d, disk, mu), d * c, u) if disk[c] != EQUATION else 0.0


@kernel
def _frozen_residual(unit, p, s, u):
    """(root of the sum of squares of the natural map with slip S, largest ``|S - mu ||u_T|| - mu_r ||u_R|||`` of contacts that press)."""
    d, disk, mu, r, x, squares, off = p.d, p.disk, p.mu, s.r, stack(5), 0.0, 0.0
    for c in range(disk.size):
        cone = cone_of(c, d, disk, mu)
        if disk[c] == EQUATION:
            squares += natural_map(1.0, cone, d * c, r, u, x)
        else:
            squares += natural_map_with(s.S[c], 1.0 / unit, cone, d * c, r, u, x) * unit**2
            if r[d * c] > 0.0:
                off = max(off, abs(s.S[c] - modify(cone, d * c, u)))
    return math.sqrt(squares), off


def _freeze(status, limit, most, scale, unit, p, options, s, w, u, info):
    """From r and its velocities: the solution with frozen slip, whose slip has followed the velocities more and more slowly; INEXACT.

    CONVERGED where the law itself was met on the way; the status given, with the best r of all, where the convex problem is not solved.
    Out: info[3], the largest error of the normal velocity of contacts that press.
    """
    r, begun, least, k = s.r, int(info[0]), info[1], 0
    _slips(p.d, p.disk, p.mu, u, s.S)
    for i in range(r.size):
        s.r_before[i] = w.best[i] = r[i]
    pace, result, last = _first_pace(most), MAX_ITER, min(limit, _FOLLOWING + _FROZEN)
    while result == MAX_ITER and k < last:
        gain = _GAIN * max(1.0 - k / _FOLLOWING, 0.0)
        moved, along = _sweep_all(pace.beta, gain, p, s, w)
        k += 1
        if k % _SPACING == 0 or k == last or not moved < math.inf:
            for _ in range(2):  # once more without the rounding of all sweeps
                result = _judge(begun + k, scale, unit, p, options.owed, s, w, u, info)
                frozen, off = _frozen_residual(unit, p, s, u)
                if result == MAX_ITER and gain == 0.0 and frozen <= options.owed * scale:
                    result = INEXACT
                if result == MAX_ITER:
                    break
                _velocities(p, s, w.G)
            least = keep_better(info[1], least, r, w.best)
            info[3] = off
        pace = _faster(pace, most, moved, along)
    if result in (CONVERGED, INEXACT):
        return result
    for i in range(r.size):
        r[i] = w.best[i]
    _velocities(p, s, w.G)
    _judge(begun + k, scale, unit, p, options.owed, s, w, u, info)
    return status


def _bind(suffix, decorate, names):
    """The method with other loops."""
    for function in (_judge, _velocities, _sweep_all, _begin, _freeze):
        names = names | {function.__name__: decorate(specialised(function, suffix, **names))}
    return decorate(specialised(_nsgs, suffix, **names))


nsgs_rigid = _bind("serial", kernel, {})
nsgs_rigid_parallel = _bind("parallel", threaded, {
    "_build_all": _build_parallel, "_pack_all": _pack_parallel, "_extrapolate_all": _extrapolate_parallel,
    "_residuals_3": _residuals_3_each, "_residuals_5": _residuals_5_each, "_apply_3": _apply_3_each, "_apply_5": _apply_5_each,
    "_sweep_3": _sweep_3_each, "_sweep_blocks_3": _sweep_blocks_3_each, "_sweep_5": _sweep_5_each,
    "_sweep_blocks_5": _sweep_blocks_5_each,
})  # fmt: skip
