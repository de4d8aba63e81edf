"""Block Gauss–Seidel without the Delassus matrix: contacts act on the velocities of the bodies that they touch.

    u_c = H_c^T v + b_c,    solve contact c for r_c,    v <- v + M^-1 H_c (r_c - r_c_old)

Each contact knows the unknowns of v that it touches (its *panel*), with the rows of ``H^T`` and of ``(M^-1 H)^T`` there: a sweep costs and
needs memory in proportion to the contacts, whatever their number on a body.
"""

import math

from nsds._jit import each, inlined, kernel, parallel, specialised, threaded, tiny, view
from nsds.solvers.contact import local as one
from nsds.solvers.contact.signature import keep_better, natural_maps
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, STALLED

MAX_SWEEPS = 10_000
MOST_COLOURS = 63  # contacts that find no colour among these are solved one after the other, last
_CHECKED = 25
_PATIENCE = 40
_CHUNKS = 16

_D = 0  # components of a contact; bound by `specialised`


@kernel
def blocks(d, panel, H, G, W):
    """``W_cc = H_c^T M^-1 H_c`` of each contact. Out: W (n d^2)."""
    for c in range(panel.size - 1):
        m, at = panel[c + 1] - panel[c], panel[c] * d
        for a in range(d):
            for b in range(d):
                s = 0.0
                for i in range(m):
                    s += H[at + a * m + i] * G[at + b * m + i]
                W[(c * d + a) * d + b] = s


@kernel
def paint(panel, unknown, n_unknowns, colour, order, begin, taken):
    """Number of colours; contacts of one colour, ``order[begin[k]:begin[k + 1]]``, touch different unknowns of v, but for colour 63.

    Out: order (n,), begin (66,). Work: colour (n,), taken (n_unknowns,): bits of the colours that touch an unknown.
    """
    n, n_colours = panel.size - 1, 0
    for i in range(n_unknowns):
        taken[i] = 0
    for k in range(begin.size):
        begin[k] = 0
    for c in range(n):
        used = 0
        for i in range(panel[c], panel[c + 1]):
            used |= taken[unknown[i]]
        first = 0
        while first < MOST_COLOURS and (used >> first) & 1:
            first += 1
        colour[c] = first
        n_colours = max(n_colours, first + 1)
        begin[first + 1] += 1
        if first < MOST_COLOURS:
            for i in range(panel[c], panel[c + 1]):
                taken[unknown[i]] |= 1 << first
    for k in range(n_colours):
        begin[k + 1] += begin[k]
    for k in range(n_colours, 0, -1):
        begin[k] = begin[k - 1]  # where the next contact of colour k - 1 goes, for a moment
    for c in range(n):
        order[begin[colour[c] + 1]] = c
        begin[colour[c] + 1] += 1
    return n_colours


def _relax(c, local, d, disk, mu, panel, unknown, H, G, W, b, r, v, scratch):
    """Solves contact c; returns the square of ``trace(W_cc) ||change of r_c||``. In/out: r, v. Work: scratch (10 + `local.SCRATCH`)."""
    r_new, q_c = view(scratch, 0, 5), view(scratch, 5, 5)
    m, at = panel[c + 1] - panel[c], panel[c] * _D
    for a in range(_D):
        s = b[c * _D + a]
        for i in range(m):
            s += H[at + a * m + i] * v[unknown[panel[c] + i]]
        for e in range(_D):
            s -= W[(c * _D + a) * _D + e] * r[c * _D + e]
        r_new[a], q_c[a] = r[c * _D + a], s
    one.solve_contact(local, d, disk[c], mu[2 * c], mu[2 * c + 1], W, c * _D * _D, q_c, r_new, view(scratch, 10, one.SCRATCH))
    moved = trace = 0.0
    for a in range(_D):
        change = r_new[a] - r[c * _D + a]
        moved += change * change
        trace += W[(c * _D + a) * _D + a]
        r[c * _D + a] = r_new[a]
        for i in range(m):
            v[unknown[panel[c] + i]] += G[at + a * m + i] * change
    return moved * trace * trace


def _sweep(n_colours, begin, order, local, d, disk, mu, panel, unknown, H, G, W, b, r, v, change, work):
    """One sweep, colour by colour. Out: change (n,)."""
    for colour in range(n_colours):
        first, size = begin[colour], begin[colour + 1] - begin[colour]
        chunks = 1 if colour == MOST_COLOURS else _CHUNKS
        for chunk in each(chunks):
            scratch = view(work, chunk * (10 + one.SCRATCH), 10 + one.SCRATCH)
            for i in range(first + chunk * size // chunks, first + (chunk + 1) * size // chunks):
                change[order[i]] = _relax(order[i], local, d, disk, mu, panel, unknown, H, G, W, b, r, v, scratch)


def _template(d):
    return parallel(specialised(_sweep, str(d), _relax=tiny(specialised(_relax, str(d), _D=d))))


_sweep_2, _sweep_3, _sweep_5 = _template(2), _template(3), _template(5)


@threaded
def sweep(n_colours, begin, order, local, d, disk, mu, panel, unknown, H, G, W, b, r, v, change, work):
    """One sweep, colour by colour, on all cores. Out: change (n,). Work: ``sweep_room()``."""
    if d == 2:
        _sweep_2(n_colours, begin, order, local, d, disk, mu, panel, unknown, H, G, W, b, r, v, change, work)
    elif d == 3:
        _sweep_3(n_colours, begin, order, local, d, disk, mu, panel, unknown, H, G, W, b, r, v, change, work)
    else:
        _sweep_5(n_colours, begin, order, local, d, disk, mu, panel, unknown, H, G, W, b, r, v, change, work)


@tiny
def sweep_room():
    """Floats of scratch of `sweep`."""
    return _CHUNKS * (10 + one.SCRATCH)


@inlined
def velocities(d, panel, unknown, H, G, v_free, b, r, v, u):
    """``v = v_free + M^-1 H r``, ``u = H^T v + b``. Out: v, u."""
    for i in range(v.size):
        v[i] = v_free[i]
    for c in range(panel.size - 1):
        m, at = panel[c + 1] - panel[c], panel[c] * d
        for a in range(d):
            for i in range(m):
                v[unknown[panel[c] + i]] += G[at + a * m + i] * r[c * d + a]
    for c in range(panel.size - 1):
        m, at = panel[c + 1] - panel[c], panel[c] * d
        for a in range(d):
            s = b[c * d + a]
            for i in range(m):
                s += H[at + a * m + i] * v[unknown[panel[c] + i]]
            u[c * d + a] = s


def work_size(n, n_unknowns, d):
    """(floats, integers) of scratch of `nsgs_bodies`."""
    return sweep_room() + n + n * d * d + 5 + n * d, 2 * n + MOST_COLOURS + 2 + n_unknowns


@threaded
def nsgs_bodies(disk, mu, panel, unknown, H, G, v_free, b, options, r, v, u, info, work, iwork):
    """Contact problem ``v = v_free + M^-1 H r``, ``u = H^T v + b`` by sweeps over the contacts that act on v.

    disk, mu, options, info, statuses: as for reduced problems (`nsds.solvers.contact.signature`), residuals relative to
    ``||H^T v_free + b||``. panel (n+1,): contact c touches ``unknown[panel[c]:panel[c + 1]]`` of v, m of them, and H and G hold its d × m
    entries of ``H^T`` and ``(M^-1 H)^T``, by rows, from ``panel[c] d`` on. In/out: r, the best looked at. Out: v, u. The result does
    not depend on the number of cores.
    """
    n = disk.size
    d = b.size // max(n, 1)
    room = sweep_room()
    scratch, change, W, x = view(work, 0, room), view(work, room, n), view(work, room + n, n * d * d), view(work, room + n + n * d * d, 5)
    best = view(work, room + n + n * d * d + 5, n * d)
    order, begin, taken = view(iwork, 0, n), view(iwork, n, MOST_COLOURS + 2), view(iwork, 2 * n + MOST_COLOURS + 2, v.size)
    n_colours = paint(panel, unknown, v.size, view(iwork, n + MOST_COLOURS + 2, n), order, begin, taken)
    blocks(d, panel, H, G, W)
    scale = _size_without_reactions(d, panel, unknown, H, v_free, b)
    status = _judge(0, scale, d, disk, mu, panel, unknown, H, G, W, v_free, b, options, r, v, u, info, x)
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_SWEEPS
    least, patience, k = keep_better(info[1], math.inf, r, best), _PATIENCE, 0
    while status == MAX_ITER and k < limit:
        sweep(n_colours, begin, order, int(options.local), d, disk, mu, panel, unknown, H, G, W, b, r, v, change, scratch)
        k += 1
        squares = 0.0
        for c in range(n):
            squares += change[c]
        if not math.sqrt(squares) > options.tol * scale or k % _CHECKED == 0 or k == limit:
            status = _judge(k, scale, d, disk, mu, panel, unknown, H, G, W, v_free, b, options, r, v, u, info, x)
            patience = _PATIENCE if info[1] < 0.999 * least else patience - 1
            least = keep_better(info[1], least, r, best)
            if patience == 0 and status == MAX_ITER:
                status = STALLED
    if status != CONVERGED and least < math.inf:
        for i in range(r.size):
            r[i] = best[i]
        _judge(k, scale, d, disk, mu, panel, unknown, H, G, W, v_free, b, options, r, v, u, info, x)
    return status


@kernel
def _judge(k, scale, d, disk, mu, panel, unknown, H, G, W, v_free, b, options, r, v, u, info, x):
    """Status after k sweeps: CONVERGED, NON_FINITE or MAX_ITER, by res_q. Out: v, u, info."""
    velocities(d, panel, unknown, H, G, v_free, b, r, v, u)
    plain, scaled = natural_maps(d, disk, mu, W, r, u, x)
    info[0], info[1], info[2] = k, plain / scale, scaled / scale
    if not math.isfinite(info[1]):
        return NON_FINITE
    return CONVERGED if info[1] <= options.tol else MAX_ITER


@inlined
def _size_without_reactions(d, panel, unknown, H, v_free, b):
    """``||H^T v_free + b||``, 1 for 0."""
    size = 0.0
    for c in range(panel.size - 1):
        m, at = panel[c + 1] - panel[c], panel[c] * d
        for a in range(d):
            s = b[c * d + a]
            for i in range(m):
                s += H[at + a * m + i] * v_free[unknown[panel[c] + i]]
            size += s * s
    return math.sqrt(size) if size > 0.0 else 1.0
