"""Block Gauss–Seidel without the Delassus matrix: contacts act on the velocities of the bodies that they touch.

    u_c = H_c^T v + b_c,    solve contact c for r_c,    v <- v + M^-1 H_c (r_c - r_c_old)

Each contact knows the unknowns of v that it touches (its *panel*), with the rows of ``H^T`` and of ``(M^-1 H)^T`` there: a sweep costs and
needs memory in proportion to the contacts, whatever their number on a body.
"""

import math

from nsds._jit import each, inlined, kernel, parallel, specialised, tiny, view
from nsds.solvers.contact import local as one
from nsds.solvers.contact.signature import natural_map
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
