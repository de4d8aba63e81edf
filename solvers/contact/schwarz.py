"""Block Gauss–Seidel over overlapping groups of contacts, where all act on each other, as on one elastic body.

What contacts a few places apart do to each other takes sweeps contact by contact the longest: impulses that alternate from one to the next
hardly move the body. Groups of contacts that act on each other most are solved together, the others being held, by sweeps inside the group,
for which its part of W stays in the cache. Groups overlap (multiplicative Schwarz method), so that what happens at their borders is
settled, too. W is read once or twice a round, and a tenth of the rounds are needed that sweeps contact by contact take.
"""

import math
from typing import NamedTuple

from numba import float64, int64, types
from numpy.typing import NDArray

from nsds._jit import caller, kernel, on_demand, specialised, stack, tiny, view
from nsds.solvers.box.signature import place_of
from nsds.solvers.contact import local as one
from nsds.solvers.contact.nsgs import PATIENCE, Search, look, small_change
from nsds.solvers.contact.signature import PROBLEM, begin_progress, cone_of, diagonal_block, judge
from nsds.status import CONVERGED, MAX_ITER

ABSENT = -1
CORE, OVERLAP = 40, 8  # contacts of a group: those that belong to no other one before it, and others around them
_MEMBERS = CORE + OVERLAP
MAX_ROUNDS = 2_000
_SWEEPS = 100  # in a group, at most,
_SETTLED = 1e-2  # until its contacts change so much less than in the first one


class Groups(NamedTuple):
    """Groups of contacts, with scratch for one of them."""

    d: int  # components of a contact
    local: int  # how a contact is solved
    diagonal: NDArray  # (n,): places of the diagonal blocks
    begin: NDArray  # (n + 1,): of each group, in member
    member: NDArray  # (9 n,)
    columns: NDArray  # W of one group by columns
    u: NDArray  # of its contacts
    work: NDArray  # scratch of one contact


def work_size(d, row, column):
    """Scratch of one contact, columns and u of a group, strengths and units, the best r; places, groups and marks."""
    n = row.size - 1
    return 10 + one.SCRATCH + (_MEMBERS * d + 1) * _MEMBERS * d + 2 * n + n * d, 14 * n + 1


class Near(NamedTuple):
    """Contacts that act on those of the group that is being gathered."""

    contact: NDArray  # the first ones of (n,)
    group: NDArray  # (n,): for which they were found
    has_group: NDArray  # (n,): whether they belong to one
    strength: NDArray  # (n,): sums of ``|W_cj|``; -1 of members
    unit: NDArray  # (n,): what these are multiplied by


@kernel
def gather(d, problem, begin, member, strength, unit, marks):
    """Groups of contacts with the largest sums of ``|W_cj|`` between them; returns how many.

    Each begins beside the last one, with `CORE` contacts that are in none, and goes on with `OVERLAP` of any. Out: begin (n + 1,), member
    (9 n,). Work: strength, unit (n,), marks (3 n,).
    """
    n = problem.row.size - 1
    near = Near(view(marks, 0, n), view(marks, n, n), view(marks, 2 * n, n), strength, unit)
    for c in range(n):
        trace, k = 0.0, diagonal_block(problem.row, problem.column, c)
        for a in range(d):
            trace += abs(problem.W[k * d * d + a * (d + 1)])
        unit[c] = 1.0 / math.sqrt(trace) if trace > 0.0 else 0.0
        near.group[c], near.has_group[c] = ABSENT, 0
    n_groups = end = first = c = 0
    while n_groups < n and c < n:
        begin[n_groups], n_near, size = end, 0, 0
        # 1. contacts without a group; the first one that finds no room begins the next group
        while c != ABSENT and size < CORE:
            member[end], near.has_group[c] = c, 1
            end, size = end + 1, size + 1
            n_near = _strengthen(c, d, n_groups, n_near, problem, near)
            strength[c] = -1.0
            c = _strongest(True, n_near, near)
        # 2. others around them
        for _ in range(OVERLAP):
            other = _strongest(False, n_near, near)
            if other != ABSENT:
                member[end], strength[other] = other, -1.0
                end += 1
        n_groups += 1
        while c == ABSENT or (c < n and near.has_group[c] == 1):
            c, first = first, first + 1
    begin[n_groups] = end
    return n_groups


@tiny
def _strengthen(c, d, group, n_near, problem, near):
    """Add ``||W_cj||_1``, relative to the diagonal of j, to the strength of all contacts j; returns how many are near the group."""
    for k in range(problem.row[c], problem.row[c + 1]):
        j, s = problem.column[k], 0.0
        for i in range(d * d):
            s += abs(problem.W[k * d * d + i])
        if near.group[j] != group:
            near.contact[n_near], near.group[j], near.strength[j] = j, group, 0.0
            n_near += 1
        if near.strength[j] >= 0.0:
            near.strength[j] += s * near.unit[j]
    return n_near


@tiny
def _strongest(is_free, n_near, near):
    """The strongest contact that is not in the group, of those without a group if is_free; ABSENT if there is none."""
    best, chosen = -0.5, ABSENT
    for i in range(n_near):
        j = near.contact[i]
        if near.strength[j] > best and not (is_free and near.has_group[j] == 1):
            best, chosen = near.strength[j], j
    return chosen


_D, _renew = 0, one.renew_3  # components of a contact, and what solves one; bound by `specialised`


def _solve_group(g, s, problem, r):
    """Solve the contacts of group g, the others being held; returns the squares of ``trace(W_cc) ||change of r_c||`` of the first sweep."""
    member, diagonal, u, columns, work = s.member, s.diagonal, s.u, s.columns, s.work
    first, m = s.begin[g], s.begin[g + 1] - s.begin[g]
    change, q_c, scratch = view(work, 0, 5), view(work, 5, 5), view(work, 10, one.SCRATCH)
    # 1. velocities, and W of the group by columns
    for i in range(m):
        c = member[first + i]
        _velocity(c, problem, r, view(u, _D * i, _D))
        for j in range(m):
            k = _block(c, member[first + j], problem.row, problem.column)
            for a in range(_D):
                for b in range(_D):
                    columns[((j * _D + b) * m + i) * _D + a] = problem.W[(k * _D + a) * _D + b] if k != ABSENT else 0.0
    # 2. sweeps; what a contact changes acts on all velocities at once
    whole = moved = 0.0
    for sweep in range(_SWEEPS):
        moved = 0.0
        for i in range(m):
            c = member[first + i]
            at, k = c * _D, diagonal[c] * _D * _D
            for a in range(_D):
                q_c[a] = u[i * _D + a]
                for b in range(_D):
                    q_c[a] -= problem.W[k + a * _D + b] * r[at + b]
            moved += _renew(c, s.local, cone_of(c, s.d, problem.disk, problem.mu), problem.W, k, q_c, r, change, scratch)
            for b in range(_D):
                if change[b] != 0.0:
                    column = view(columns, (i * _D + b) * m * _D, m * _D)
                    for l in range(m * _D):
                        u[l] += column[l] * change[b]
        whole = moved if sweep == 0 else whole
        if not moved > _SETTLED * _SETTLED * whole:
            break
    return whole


def _velocity(c, problem, r, u):
    """``u_c = q_c + sum of W_cj r_j``, in four partial sums."""
    row, column, W, parts = problem.row, problem.column, problem.W, stack(20)
    first, last = row[c], row[c + 1]
    for l in range(4 * _D):
        parts[l] = 0.0
    k = first
    while k < last - 3:
        for l in range(4):
            j = column[k + l] * _D
            for a in range(_D):
                for b in range(_D):
                    parts[l * _D + a] += W[((k + l) * _D + a) * _D + b] * r[j + b]
        k += 4
    while k < last:
        j = column[k] * _D
        for a in range(_D):
            for b in range(_D):
                parts[a] += W[(k * _D + a) * _D + b] * r[j + b]
        k += 1
    for a in range(_D):
        u[a] = problem.q[c * _D + a] + ((parts[a] + parts[_D + a]) + (parts[2 * _D + a] + parts[3 * _D + a]))


@tiny
def _block(c, j, row, column):
    """Place of the block ``W_cj``, ABSENT where it is not stored. A row without gaps needs no search."""
    first, last = row[c], row[c + 1]
    if first + j < last and column[first + j] == j:
        return first + j
    k = place_of(row, column, c, j)
    return k if column[k] == j else ABSENT


def _template(d):
    """Solution of a group of contacts of d components."""
    renew, velocity = {2: one.renew_2, 3: one.renew_3, 5: one.renew_5}[d], tiny(specialised(_velocity, str(d), _D=d))
    return kernel(specialised(_solve_group, str(d), _D=d, _renew=renew, _velocity=velocity))


_floats, _integers = float64[::1], int64[::1]
_GROUPS = types.NamedTuple((int64, int64, _integers, _integers, _integers, _floats, _floats, _floats), Groups)
_SOLVE = float64(int64, _GROUPS, PROBLEM, _floats)
_call_solve = caller(_SOLVE)
_address_2, _address_3, _address_5 = (on_demand(_SOLVE, _template(d)) for d in (2, 3, 5))


@kernel
def solve_groups(n_groups, s, problem, r):
    """One round over all groups; returns the sum of their changes. In/out: r."""
    address, change = _address_2() if s.d == 2 else _address_3() if s.d == 3 else _address_5(), 0.0
    for g in range(n_groups):
        change += _call_solve(address, (int64(g), s, problem, r))
    return change


@kernel
def schwarz(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q`` by rounds over overlapping groups of contacts, each of which is solved with the others held.

    local: how one contact is solved (`solvers.contact.local.LOCALS`). What is looked for in each round is what the next one would change.
    Reference: Badea, Tai, Wang, "Convergence rate analysis of a multiplicative Schwarz method for variational inequalities", SIAM Journal
    on Numerical Analysis 41 (2003) 1052–1073.
    """
    q = problem.q
    n = problem.disk.size
    d, room, wide = q.size // max(n, 1), 10 + one.SCRATCH, _MEMBERS * (q.size // max(n, 1))
    diagonal, begin, member, marks = view(iwork, 0, n), view(iwork, n, n + 1), view(iwork, 2 * n + 1, 9 * n), view(iwork, 11 * n + 1, 3 * n)
    columns, velocities = view(work, room, wide * wide), view(work, room + wide * wide, wide)
    rest = view(work, room + (wide + 1) * wide, 2 * n + n * d)
    for c in range(n):
        diagonal[c] = diagonal_block(problem.row, problem.column, c)
    if judge(MAX_ITER, 0, problem, options, r, u, info) == CONVERGED:
        return CONVERGED
    best = view(rest, 2 * n, n * d)
    for i in range(q.size):
        best[i] = r[i]
    n_groups = gather(d, problem, begin, member, view(rest, 0, n), view(rest, n, n), marks)
    s = Groups(d, int(options.local), diagonal, begin, member, columns, velocities, view(work, 0, room))
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_ROUNDS
    search, last = Search(limit, small_change(options.tol, q), best, stack(4)), math.inf
    begin_progress(info[1] if math.isfinite(info[1]) else math.inf, PATIENCE, search.progress)
    for k in range(limit):
        change = solve_groups(n_groups, s, problem, r)
        status = look(k, change * min(change / last, 1.0) if last > 0.0 else change, search, problem, options, r, u, info)
        if status != MAX_ITER:
            return status
        last = change
    return MAX_ITER
