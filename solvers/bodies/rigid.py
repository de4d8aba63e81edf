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

from numba import float64, int64

from nsds._jit import caller, each, kernel, parallel, specialised, stack, threaded, tiny, view
from nsds.solvers.bodies import slabs
from nsds.solvers.bodies.rigid_contact import (  # fmt: skip
    B_AT,
    BODY,
    SCRATCH,
    act_3,
    act_5,
    build_record,
    frozen_map,
    mean_of_record,
    record_size,
    relax_3,
    relax_5,
    relax_frozen_3,
    relax_frozen_5,
    solve_frozen,
    velocity_3,
    velocity_5,
)
from nsds.solvers.contact import local as one
from nsds.solvers.contact.signature import EQUATION, keep_better, mean_diagonal, modify, natural_map, norm
from nsds.status import CONVERGED, INEXACT, MAX_ITER, NON_FINITE, STALLED

_floats, _integers = float64[::1], int64[::1]
# The arguments of `nsgs_rigid`, for those who call it by its address.
SIGNATURE = int64(int64, *(_integers, _integers, _floats, _integers), *(_floats,) * 3, _integers, *(_floats,) * 10, _integers)
call_sweeps = caller(SIGNATURE)

MAX_SWEEPS = 10_000
_CHUNKS = 16  # parts in which the loops over all contacts or bodies are handed out
_MOMENTUM, _LESS, _MORE = 0.9, 0.5, 0.95  # bound of beta, when sweeps get no closer with it, and with the slip frozen
_GROWTH, _WAIT = 10.0, 50  # of the change of r beyond its least, and sweeps without a lesser one, after which the bound of beta is lowered
_BACK = 0.004  # of the way that the bound takes back in each sweep
_MEMORY, _STRAIGHT_ON = 0.1, 0.5  # weight of the last change in their mean direction, and from which mean on it is kept
_SPACING = 10  # sweeps between looks at the residual, or a tenth of those done; a twentieth where the changes promise a solution
_PATIENCE = 500  # sweeps without progress
_FOLLOWING, _FROZEN = 300, 1000  # sweeps in which the slip follows the velocities, and with it frozen
_GAIN = 0.2  # of the way that the slip takes in the first sweep; it falls to 0

# Components of a contact, what belongs to them, and the kind of loop: bound by `specialised`.
_D, _velocity, _act, _relax, _relax_frozen, _each = 3, velocity_3, act_3, relax_3, relax_frozen_3, range


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
def _relax_panels(gain, d, n_contacts, beta, disk, mu, b, ids, H, G, W, diagonal, B, S, r, r_before, scratch):
    """Solves the general blocks one after the other, as `relax_3` does with a contact, or as `relax_frozen_3` where gain is at least 0."""
    u, now, new, q, moved = view(scratch, 0, 5), view(scratch, 5, 5), view(scratch, 10, 5), view(scratch, 15, 5), 0.0
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
        if gain < 0.0 or disk[c] == EQUATION:
            one.solve_contact(one.AUTO, d, disk[c], mu[2 * c], mu[2 * c + 1], W, d * d * p, q, new, view(scratch, 45, one.SCRATCH))
        elif trace > 0.0:
            q[0] += S[c]
            solve_frozen(d, disk[c], mu[2 * c], mu[2 * c + 1], W, d * d * p, q, new, view(scratch, 45, one.SCRATCH))
            q[0] -= S[c]
            one.product(d, W, d * d * p, new, q, u)
            S[c] += gain * (modify(disk[c], mu[2 * c], mu[2 * c + 1], d, 0, u) - S[c])
        for a in range(d):
            r[d * c + a] = new[a]
            _panel_act(d * p + a, i, j, G, B, new[a] - now[a])
            moved += (trace * (new[a] - now[a])) ** 2
    return moved


# ------------------------------------------------------------------------------------------------------------------ all contacts


def _build(d, disk, mu, body, frame, lever, b, inverse, v_free, R, ids):
    """Records of all contacts. Out: R, ids."""
    n = body.size // 2
    for chunk in _each(_CHUNKS):
        for c in range(n * chunk // _CHUNKS, n * (chunk + 1) // _CHUNKS):
            build_record(c, d, disk, mu, body, frame, lever, b, inverse, v_free, R, ids)


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

    Out: change (2 groups,): what `relax_3` returns, summed over each group.
    """
    for phase in range(slabs.PHASES):
        first, last = slabs.phase(begin.size - 1, phase), slabs.phase(begin.size - 1, phase + 1)
        if begin[last] > begin[first]:
            for g in _each(first, last):
                s = a = 0.0
                for c in range(begin[g], begin[g + 1]):
                    moved, along = _relax(c, beta, disk, R, ids, B, r, r_before, view(work, g * SCRATCH, SCRATCH))
                    s += moved
                    a += along
                change[2 * g], change[2 * g + 1] = s, a


def _frozen_sweep(begin, beta, gain, disk, R, ids, B, S, r, r_before, change, work):
    """As `_sweep`, with the slip S of each contact held while it is solved. In/out: B, S, r, r_before."""
    for phase in range(slabs.PHASES):
        first, last = slabs.phase(begin.size - 1, phase), slabs.phase(begin.size - 1, phase + 1)
        if begin[last] > begin[first]:
            for g in _each(first, last):
                s = a = 0.0
                for c in range(begin[g], begin[g + 1]):
                    moved, along = _relax_frozen(c, beta, gain, disk, R, ids, B, S, r, r_before, view(work, g * SCRATCH, SCRATCH))
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


def _residuals(unit, disk, mu, R, ids, B, r, u, parts):
    """u of all contacts, and parts of the sums of squares of res_q and res_rho. Out: u, parts (2 _CHUNKS,)."""
    n, size = u.size // _D, record_size(_D)
    for chunk in _each(_CHUNKS):
        x, plain, scaled = stack(5), 0.0, 0.0
        for c in range(n * chunk // _CHUNKS, n * (chunk + 1) // _CHUNKS):
            k = c * size
            u_0, u_1, u_2, u_3, u_4 = _velocity(k, ids[2 * c] * BODY, ids[2 * c + 1] * BODY, R, B)
            u[_D * c], u[_D * c + 1], u[_D * c + 2] = u_0 + R[k + B_AT], u_1 + R[k + B_AT + 1], u_2 + R[k + B_AT + 2]
            if _D == 5:
                u[_D * c + 3], u[_D * c + 4] = u_3 + R[k + B_AT + 3], u_4 + R[k + B_AT + 4]
            mean = mean_of_record(_D, k, R)
            mean = mean if mean > 0.0 else 1.0
            plain += natural_map(1.0 / unit, disk[c], mu[2 * c], mu[2 * c + 1], _D, c * _D, r, u, x) * unit**2
            scaled += natural_map(1.0 / mean, disk[c], mu[2 * c], mu[2 * c + 1], _D, c * _D, r, u, x) * mean**2
        parts[2 * chunk], parts[2 * chunk + 1] = plain, scaled


def _templates(d, suffix, decorate, loops):
    bound = {"_D": d, "_each": loops}
    bound["_velocity"], bound["_act"] = (velocity_3, act_3) if d == 3 else (velocity_5, act_5)
    bound["_relax"], bound["_relax_frozen"] = (relax_3, relax_frozen_3) if d == 3 else (relax_5, relax_frozen_5)
    return [decorate(specialised(f, f"{d}_{suffix}", **bound)) for f in (_sweep, _frozen_sweep, _apply, _residuals)]


_sweep_3, _frozen_sweep_3, _apply_3, _residuals_3 = _templates(3, "serial", kernel, range)
_sweep_5, _frozen_sweep_5, _apply_5, _residuals_5 = _templates(5, "serial", kernel, range)
_sweep_3_each, _frozen_sweep_3_each, _apply_3_each, _residuals_3_each = _templates(3, "parallel", parallel, each)
_sweep_5_each, _frozen_sweep_5_each, _apply_5_each, _residuals_5_each = _templates(5, "parallel", parallel, each)
_build_serial, _extrapolate_serial = (kernel(specialised(f, "serial", _each=range)) for f in (_build, _extrapolate))
_build_all, _extrapolate_all = _build_serial, _extrapolate_serial
_build_parallel, _extrapolate_parallel = (parallel(specialised(f, "parallel", _each=each)) for f in (_build, _extrapolate))


# ------------------------------------------------------------------------------------------------------------------ the method


def work_size(d, n_contacts, n_panels, n_bodies, n_groups):
    """(floats, integers) of scratch of `nsgs_rigid`; n_groups: twice `slabs.count`."""
    n = n_contacts + n_panels
    floats = record_size(d) * n_contacts + (BODY + 6) * (n_bodies + 1) + (2 * d + 1) * n + (12 * d + d * d) * n_panels
    return floats + 2 * _CHUNKS + (n_groups + 1) * (2 + SCRATCH), 2 * n


@tiny
def _layout(d, n_contacts, n, n_bodies, n_groups, work):
    """Views of work: R, B, v and r before, best, slip, G and W of panels, parts, change, scratch."""
    m, at = n - n_contacts, 0
    R = view(work, at, record_size(d) * n_contacts)
    at += R.size
    B, v_before = view(work, at, BODY * (n_bodies + 1)), view(work, at + BODY * (n_bodies + 1), 6 * (n_bodies + 1))
    at += (BODY + 6) * (n_bodies + 1)
    r_before, best = view(work, at, d * n), view(work, at + d * n, d * n)
    S = view(work, at + 2 * d * n, n)
    at += (2 * d + 1) * n
    G, W = view(work, at, 12 * d * m), view(work, at + 12 * d * m, d * d * m)
    at += (12 * d + d * d) * m
    parts, change = view(work, at, 2 * _CHUNKS), view(work, at + 2 * _CHUNKS, 2 * n_groups + 2)
    at += 2 * _CHUNKS + 2 * n_groups + 2
    return R, B, v_before, r_before, best, S, G, W, parts, change, view(work, at, (n_groups + 1) * SCRATCH)


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
def _panel_residuals(unit, d, n_contacts, disk, mu, b, ids, H, W, diagonal, B, r, u, x):
    """Sums of squares of res_q and res_rho of the general blocks. Out: u."""
    plain = scaled = 0.0
    for c in range(n_contacts, disk.size):
        p = c - n_contacts
        for a in range(d):
            row = d * p + a
            u[d * c + a] = (
                b[d * c + a] + diagonal[row] * r[d * c + a] + _panel_velocity(row, ids[2 * c] * BODY, ids[2 * c + 1] * BODY, H, B)
            )
        mean = mean_diagonal(d, p, W)
        mean = mean if mean > 0.0 else 1.0
        plain += natural_map(1.0 / unit, disk[c], mu[2 * c], mu[2 * c + 1], d, c * d, r, u, x) * unit**2
        scaled += natural_map(1.0 / mean, disk[c], mu[2 * c], mu[2 * c + 1], d, c * d, r, u, x) * mean**2
    return plain, scaled


def _judge(k, scale, unit, d, disk, mu, b, panel_H, panel_diagonal, options, r, u, info, R, B, ids, W, parts, x):
    """Status after k sweeps: CONVERGED, NON_FINITE or MAX_ITER, by res_q at the velocities of B. Out: u, info."""
    n_contacts = R.size // record_size(d)
    if d == 3:
        _residuals_3(unit, disk, mu, R, ids, B, r, view(u, 0, d * n_contacts), parts)
    else:
        _residuals_5(unit, disk, mu, R, ids, B, r, view(u, 0, d * n_contacts), parts)
    plain, scaled = _panel_residuals(unit, d, n_contacts, disk, mu, b, ids, panel_H, W, panel_diagonal, B, r, u, x)
    for chunk in range(_CHUNKS):
        plain, scaled = plain + parts[2 * chunk], scaled + parts[2 * chunk + 1]
    info[0], info[1], info[2], info[3] = k, math.sqrt(plain) / scale, math.sqrt(scaled) / scale, 0.0
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
    bound = min(bound + _BACK * (most - bound), most)
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
    R, B, v_before, r_before, best, S, G, W, parts, change, scratch = _layout(d, n_contacts, disk.size, world, begin.size - 1, work)
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
    unit = _unit_of_impulses(d, disk, R, W)
    _judge(0, 1.0, unit, *judged)
    scale = norm(u, 0, u.size)
    scale = scale if scale > 0.0 else 1.0
    for i in range(r.size):
        r[i] = r_before[i] = best[i]
    _velocities(d, begin, v_free, r, R, B, ids, G)
    status = _judge(0, scale, unit, *judged)
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
        moved = _relax_panels(-1.0, d, n_contacts, beta, disk, mu, b, ids, panel_H, G, W, panel_diagonal, B, S, r, r_before, scratch)
        along = 0.0
        for g in range(begin.size - 1):
            moved += change[2 * g]
            along += change[2 * g + 1]
        moved = math.sqrt(moved)
        promising = moved * ratio <= options[0] * scale and k > looked + k // 20
        if promising or k >= looked + max(_SPACING, k // 10) or k == limit or not moved < math.inf:
            status, looked = _judge(k, scale, unit, *judged), k
            if status == CONVERGED:  # once more without the rounding of all sweeps
                _velocities(d, begin, v_free, r, R, B, ids, G)
                status = _judge(k, scale, unit, *judged)
            ratio = info[1] * scale / moved if moved > 0.0 else 0.0
            progress = k if info[1] < 0.999 * least else progress
            least = keep_better(info[1], least, r, best)
            if k > progress + _PATIENCE and status == MAX_ITER:
                status, most, progress = MAX_ITER if most > _LESS else STALLED, min(most, _LESS), k
        pace = _faster(pace, most, moved, along)
    if status != CONVERGED and least < math.inf:
        for i in range(r.size):
            r[i] = best[i]
        _velocities(d, begin, v_free, r, R, B, ids, G)
        _judge(k, scale, unit, *judged)
        if status in (MAX_ITER, STALLED):
            most = _MORE if most > 0.0 else 0.0
            status = _freeze(status, limit, most, scale, unit, begin, v_free, judged, (v_before, r_before, best, S, G, change, scratch))
    for i in range(v.size):
        v[i] = B[i // 6 * BODY + i % 6]
    return status


@kernel
def _slips(d, disk, mu, u, S):
    """``S = mu ||u_T|| + mu_r ||u_R||`` of all contacts. Out: S."""
    for c in range(disk.size):
        S[c] = modify(disk[c], mu[2 * c], mu[2 * c + 1], d, d * c, u) if disk[c] != EQUATION else 0.0


@kernel
def _frozen_residual(unit, d, disk, mu, r, u, S, x):
    """(root of the sum of squares of the natural map with slip S, largest ``|S - mu ||u_T|| - mu_r ||u_R|||`` of contacts that press)."""
    squares = off = 0.0
    for c in range(disk.size):
        if disk[c] == EQUATION:
            squares += natural_map(1.0, EQUATION, 0.0, 0.0, d, d * c, r, u, x)
        else:
            mu_c, mu_r = mu[2 * c], mu[2 * c + 1]
            squares += frozen_map(1.0 / unit, disk[c], mu_c, mu_r, d, d * c, r, u, S[c], x) * unit**2
            if r[d * c] > 0.0:
                off = max(off, abs(S[c] - modify(disk[c], mu_c, mu_r, d, d * c, u)))
    return math.sqrt(squares), off


def _freeze(status, limit, most, scale, unit, begin, v_free, judged, spare):
    """From r and its velocities: the solution with frozen slip, whose slip has followed the velocities more and more slowly; INEXACT.

    CONVERGED where the law itself was met on the way; the status given, with the best r of all, where the convex problem is not solved.
    Out: info[3], the largest error of the normal velocity of contacts that press.
    """
    d, disk, mu, b, panel_H, panel_diagonal, options, r, u, info, R, B, ids, W, parts, x = judged
    v_before, r_before, best, S, G, change, scratch = spare
    n_contacts, start, least, k = R.size // record_size(d), int(info[0]), info[1], 0
    _slips(d, disk, mu, u, S)
    for i in range(r.size):
        r_before[i] = best[i] = r[i]
    pace, result, last = (0.0, 1.0, most, math.inf, 0, 0.5), MAX_ITER, min(limit, _FOLLOWING + _FROZEN)
    while result == MAX_ITER and k < last:
        beta, gain = pace[0], _GAIN * max(1.0 - k / _FOLLOWING, 0.0)
        _extrapolate_all(beta, B, v_before)
        if d == 3:
            _frozen_sweep_3(begin, beta, gain, disk, R, ids, B, S, r, r_before, change, scratch)
        else:
            _frozen_sweep_5(begin, beta, gain, disk, R, ids, B, S, r, r_before, change, scratch)
        k += 1
        moved = _relax_panels(gain, d, n_contacts, beta, disk, mu, b, ids, panel_H, G, W, panel_diagonal, B, S, r, r_before, scratch)
        along = 0.0
        for g in range(begin.size - 1):
            moved += change[2 * g]
            along += change[2 * g + 1]
        moved = math.sqrt(moved)
        if k % _SPACING == 0 or k == last or not moved < math.inf:
            for _ in range(2):  # once more without the rounding of all sweeps
                result = _judge(start + k, scale, unit, *judged)
                frozen, off = _frozen_residual(unit, d, disk, mu, r, u, S, x)
                if result == MAX_ITER and gain == 0.0 and frozen <= options[0] * scale:
                    result = INEXACT
                if result == MAX_ITER:
                    break
                _velocities(d, begin, v_free, r, R, B, ids, G)
            least = keep_better(info[1], least, r, best)
            info[3] = off
        pace = _faster(pace, most, moved, along)
    if result in (CONVERGED, INEXACT):
        return result
    for i in range(r.size):
        r[i] = best[i]
    _velocities(d, begin, v_free, r, R, B, ids, G)
    _judge(start + k, scale, unit, *judged)
    return status


def _bind(suffix, decorate, names):
    """The method with other loops."""
    judge, velocities = (decorate(specialised(f, suffix, **names)) for f in (_judge, _velocities))
    names = names | {"_judge": judge, "_velocities": velocities}
    result = specialised(_nsgs, suffix, _freeze=decorate(specialised(_freeze, suffix, **names)), **names)
    return decorate(result)


nsgs_rigid = _bind("serial", kernel, {})
_names = {"_build_all": _build_parallel, "_extrapolate_all": _extrapolate_parallel, "_residuals_3": _residuals_3_each}
_names |= {"_residuals_5": _residuals_5_each, "_apply_3": _apply_3_each, "_apply_5": _apply_5_each}
_names |= {"_frozen_sweep_3": _frozen_sweep_3_each, "_frozen_sweep_5": _frozen_sweep_5_each}
nsgs_rigid_parallel = _bind("parallel", threaded, _names | {"_sweep_3": _sweep_3_each, "_sweep_5": _sweep_5_each})
