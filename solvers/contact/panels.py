"""Block Gauss–Seidel without the Delassus matrix: contacts act on the velocities of the bodies that they touch.

    u_c = H_c^T v + b_c,    solve contact c for r_c,    v <- v + M^-1 H_c (r_c - r_c_old)

Each contact knows the unknowns of v that it touches (its *panel*), with the rows of ``H^T`` and of ``(M^-1 H)^T`` there: a sweep costs and
needs memory in proportion to the contacts, whatever their number on a body.
"""

import math
from typing import NamedTuple

from numpy.typing import NDArray

from nsds._jit import each, inlined, kernel, parallel, specialised, stack, threaded, tiny, view
from nsds.solvers.contact import local as one
from nsds.solvers.contact.signature import cone_of, keep_better, natural_maps
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, STALLED

MAX_SWEEPS = 10_000
MOST_COLOURS = 63  # contacts that find no colour among these are solved one after the other, last
_CHECKED = 25
_PATIENCE = 40
_CHUNKS = 16


class Problem(NamedTuple):
    """Contacts and what they touch of the velocities: contact c the m unknowns ``unknown[panel[c]:panel[c + 1]]``."""

    disk: NDArray  # (n,)
    mu: NDArray  # (2 n,)
    panel: NDArray  # (n + 1,)
    unknown: NDArray
    H: NDArray  # the d × m entries of ``H^T`` of contact c by rows, from ``panel[c] d`` on
    G: NDArray  # and those of ``(M^-1 H)^T``
    v_free: NDArray
    b: NDArray  # (n d,)


class Sweep(NamedTuple):
    """Options and scratch of sweeps over contacts."""

    d: int  # components of a contact
    local: int  # how a contact is solved
    n_colours: int
    begin: NDArray  # first contact of each colour in the order
    order: NDArray  # (n,)
    W: NDArray  # (n d^2,): diagonal blocks
    change: NDArray  # (n,), out: squares of ``trace(W_cc) ||change of r_c||``
    work: NDArray  # ``sweep_room()``


_D, _renew = 0, one.renew_3  # components of a contact, and what solves one; bound by `specialised`


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


def _relax(c, local, d, p, W, r, v, scratch):
    """Solves contact c; returns the square of ``trace(W_cc) ||change of r_c||``. In/out: r, v. Work: scratch (10 + `local.SCRATCH`)."""
    panel, unknown, H, G = p.panel, p.unknown, p.H, p.G
    change, q_c, k = view(scratch, 0, 5), view(scratch, 5, 5), c * _D * _D
    m, at = panel[c + 1] - panel[c], panel[c] * _D
    for a in range(_D):
        s = p.b[c * _D + a]
        for i in range(m):
            s += H[at + a * m + i] * v[unknown[panel[c] + i]]
        for e in range(_D):
            s -= W[k + a * _D + e] * r[c * _D + e]
        q_c[a] = s
    moved = _renew(c, local, cone_of(c, d, p.disk, p.mu), W, k, q_c, r, change, view(scratch, 10, one.SCRATCH))
    for a in range(_D):
        for i in range(m):
            v[unknown[panel[c] + i]] += G[at + a * m + i] * change[a]
    return moved


def _sweep(s, p, r, v):
    """One sweep, colour by colour. In/out: r, v."""
    d, local, W, begin, order = s.d, s.local, s.W, s.begin, s.order
    change, work = s.change, s.work
    for colour in range(s.n_colours):
        first, size = begin[colour], begin[colour + 1] - begin[colour]
        chunks = 1 if colour == MOST_COLOURS else _CHUNKS
        for chunk in each(chunks):
            scratch = view(work, chunk * (10 + one.SCRATCH), 10 + one.SCRATCH)
            for i in range(first + chunk * size // chunks, first + (chunk + 1) * size // chunks):
                change[order[i]] = _relax(order[i], local, d, p, W, r, v, scratch)


def _template(d):
    renew = {2: one.renew_2, 3: one.renew_3, 5: one.renew_5}[d]
    return parallel(specialised(_sweep, str(d), _relax=tiny(specialised(_relax, str(d), _D=d, _renew=renew))))


_sweep_2, _sweep_3, _sweep_5 = _template(2), _template(3), _template(5)


@threaded
def sweep(s, p, r, v):
    """One sweep, colour by colour, on all cores. In/out: r, v."""
    if s.d == 2:
        _sweep_2(s, p, r, v)
    elif s.d == 3:
        _sweep_3(s, p, r, v)
    else:
        _sweep_5(s, p, r, v)


@tiny
def sweep_room():
    """Floats of scratch of `sweep`."""
    return _CHUNKS * (10 + one.SCRATCH)


@kernel
def velocities(d, p, r, v, u):
    """``v = v_free + M^-1 H r``, ``u = H^T v + b``. Out: v, u."""
    panel, unknown, H, G = p.panel, p.unknown, p.H, p.G
    for i in range(v.size):
        v[i] = p.v_free[i]
    for c in range(panel.size - 1):
        m, at = panel[c + 1] - panel[c], panel[c] * d
        for a in range(d):
            for i in range(m):
                v[unknown[panel[c] + i]] += G[at + a * m + i] * r[c * d + a]
    for c in range(panel.size - 1):
        m, at = panel[c + 1] - panel[c], panel[c] * d
        for a in range(d):
            s = p.b[c * d + a]
            for i in range(m):
                s += H[at + a * m + i] * v[unknown[panel[c] + i]]
            u[c * d + a] = s


def work_size(n, n_unknowns, d):
    """(floats, integers) of scratch of `nsgs_bodies`."""
    return sweep_room() + n + n * d * d + n * d, 2 * n + MOST_COLOURS + 2 + n_unknowns


@threaded
def nsgs_bodies(p, options, r, v, u, info, work, iwork):
    """Contact problem ``v = v_free + M^-1 H r``, ``u = H^T v + b`` by sweeps over the contacts that act on v.

    p: `Problem`; options, info, statuses: as for reduced problems (`nsds.solvers.contact.signature`), residuals relative to
    ``||H^T v_free + b||``. In/out: r, the best that was checked. Out: v, u. The result does not depend on the number of cores.
    """
    n = p.disk.size
    d = p.b.size // max(n, 1)
    room = sweep_room()
    change, W = view(work, room, n), view(work, room + n, n * d * d)
    best = view(work, room + n + n * d * d, n * d)
    order, begin, taken = view(iwork, 0, n), view(iwork, n, MOST_COLOURS + 2), view(iwork, 2 * n + MOST_COLOURS + 2, v.size)
    n_colours = paint(p.panel, p.unknown, v.size, view(iwork, n + MOST_COLOURS + 2, n), order, begin, taken)
    blocks(d, p.panel, p.H, p.G, W)
    s = Sweep(d, int(options.local), n_colours, begin, order, W, change, view(work, 0, room))
    scale = _size_without_reactions(d, p)
    velocities(d, p, r, v, u)
    status = _judge(0, scale, options.tol, W, p, r, u, info)
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_SWEEPS
    least, patience, k = keep_better(info[1], math.inf, r, best), _PATIENCE, 0
    while status == MAX_ITER and k < limit:
        sweep(s, p, r, v)
        k += 1
        squares = 0.0
        for c in range(n):
            squares += change[c]
        if not math.sqrt(squares) > options.tol * scale or k % _CHECKED == 0 or k == limit:
            velocities(d, p, r, v, u)
            status = _judge(k, scale, options.tol, W, p, r, u, info)
            patience = _PATIENCE if info[1] < 0.999 * least else patience - 1
            least = keep_better(info[1], least, r, best)
            if patience == 0 and status == MAX_ITER:
                status = STALLED
    if status != CONVERGED and least < math.inf:
        for i in range(r.size):
            r[i] = best[i]
        velocities(d, p, r, v, u)
        _judge(k, scale, options.tol, W, p, r, u, info)
    return status


@kernel
def _judge(k, scale, tol, W, p, r, u, info):
    """Status after k sweeps: CONVERGED, NON_FINITE or MAX_ITER, by res_q. Out: info."""
    plain, scaled = natural_maps(p.b.size // max(p.disk.size, 1), p.disk, p.mu, W, r, u, stack(5))
    info[0], info[1], info[2] = k, plain / scale, scaled / scale
    if not math.isfinite(info[1]):
        return NON_FINITE
    return CONVERGED if info[1] <= tol else MAX_ITER


@inlined
def _size_without_reactions(d, p):
    """``||H^T v_free + b||``, 1 for 0."""
    size, panel = 0.0, p.panel
    for c in range(panel.size - 1):
        m, at = panel[c + 1] - panel[c], panel[c] * d
        for a in range(d):
            s = p.b[c * d + a]
            for i in range(m):
                s += p.H[at + a * m + i] * p.v_free[p.unknown[panel[c] + i]]
            size += s * s
    return math.sqrt(size) if size > 0.0 else 1.0
