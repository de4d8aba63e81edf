"""Block Gauss–Seidel over contacts: each contact is solved, the others being held."""

import math
from typing import NamedTuple

from numba import float64, int64, types, void
from numpy.typing import NDArray

from nsds._jit import caller, each, kernel, on_demand, parallel, specialised, stack, threaded, tiny, view
from nsds.solvers.contact import colours
from nsds.solvers.contact import local as one
from nsds.solvers.contact.signature import PROBLEM, begin_progress, cone_of, diagonal_block, has_stalled, judge, keep_better, problem_of
from nsds.status import CONVERGED, MAX_ITER, STALLED

MAX_SWEEPS = 10_000
_CHECKED = 25  # sweeps between two checks of the residual while the changes are not small
PATIENCE = 40  # checks without progress after which sweeps have stalled
_STILL = 1e-3  # change of a contact, relative to its share of what counts as small, at which it may be left out for a while
_CHUNKS = 16  # parts that the contacts of one colour are handed out in


class Sweep(NamedTuple):
    """Options and scratch of sweeps over the contacts of one problem."""

    d: int  # components of a contact
    local: int  # how a contact is solved
    diagonal: NDArray  # (n,): places of the diagonal blocks
    order: NDArray  # (n,): the contacts, one after the other, or colour by colour
    change: NDArray  # (n,), out: squares of ``trace(W_cc) ||change of r_c||``
    work: NDArray  # scratch of one contact, or of one in each chunk


class Search(NamedTuple):
    """Progress that looks at the residual keep between sweeps."""

    limit: int  # sweeps
    small: float  # squared sum of changes that suggests convergence
    best: NDArray  # (n d,): the best r that was checked, or the guess
    progress: NDArray  # (4,), see `nsds.solvers.contact.signature.begin_progress`


def work_size(d, row, column):
    """Scratch of one contact, the changes, the best r; places of the diagonal blocks, the order, and how long contacts are left out."""
    n = row.size - 1
    return 10 + one.SCRATCH + n + n * d, 3 * n


def parallel_work_size(d, row, column):
    """As `work_size`, scratch for each chunk, and the colours."""
    n = row.size - 1
    return _CHUNKS * (10 + one.SCRATCH) + n + n * d, 5 * n + 2


_D, _renew = 0, one.renew_3  # components of a contact, and what solves one; bound by `specialised`


def _relax(c, local, d, problem, r, diagonal, scratch):
    """Solves contact c; returns the square of ``trace(W_cc) ||change of r_c||``. Work: scratch (10 + `local.SCRATCH`)."""
    change, q_c, total = view(scratch, 0, 5), view(scratch, 5, 5), stack(5)
    k_c = diagonal[c]
    for a in range(_D):
        total[a] = problem.q[c * _D + a]
    for first, last in ((problem.row[c], k_c), (k_c + 1, problem.row[c + 1])):
        for k in range(first, last):
            j = problem.column[k] * _D
            for a in range(_D):
                s = 0.0
                for b in range(_D):
                    s += problem.W[(k * _D + a) * _D + b] * r[j + b]
                total[a] += s
    for a in range(_D):
        q_c[a] = total[a]
    cone = cone_of(c, d, problem.disk, problem.mu)
    return _renew(c, local, cone, problem.W, k_c * _D * _D, q_c, r, change, view(scratch, 10, one.SCRATCH))


def _sweep(asleep, s, problem, r):
    """One sweep in order, without the contacts that are asleep: these rest for ``asleep[c]`` sweeps. In/out: asleep, r."""
    d, local, diagonal, order, change, work = s.d, s.local, s.diagonal, s.order, s.change, s.work
    for i in range(order.size):
        c = order[i]
        if asleep[c] > 0:
            asleep[c] -= 1
            change[c] = 0.0
        else:
            change[c] = _relax(c, local, d, problem, r, diagonal, work)


def _sweep_colours(n_colours, begin, s, problem, r):
    """One sweep colour by colour, the contacts of one colour in any order or at the same time. In/out: r."""
    d, local, diagonal, order, change, work = s.d, s.local, s.diagonal, s.order, s.change, s.work
    disk, mu, row, column, W, q = problem.disk, problem.mu, problem.row, problem.column, problem.W, problem.q
    for colour in range(n_colours):
        size = begin[colour + 1] - begin[colour]
        for chunk in each(_CHUNKS):
            same = problem_of((disk, mu, row, column, W, q))  # what cores are handed are arrays
            scratch = view(work, chunk * (10 + one.SCRATCH), 10 + one.SCRATCH)
            for i in range(begin[colour] + chunk * size // _CHUNKS, begin[colour] + (chunk + 1) * size // _CHUNKS):
                change[order[i]] = _relax(order[i], local, d, same, r, diagonal, scratch)


def _templates(d):
    """(sweep, parallel sweep) for contacts of d components."""
    relax = tiny(specialised(_relax, str(d), _D=d, _renew={2: one.renew_2, 3: one.renew_3, 5: one.renew_5}[d]))
    return kernel(specialised(_sweep, str(d), _relax=relax)), parallel(specialised(_sweep_colours, str(d), _relax=relax))


_floats, _integers = float64[::1], int64[::1]
_SWEEP = void(_integers, types.NamedTuple((int64, int64, _integers, _integers, _floats, _floats), Sweep), PROBLEM, _floats)
_call_sweep = caller(_SWEEP)
_sweep_2, _sweep_colours_2 = _templates(2)
_sweep_3, _sweep_colours_3 = _templates(3)
_sweep_5, _sweep_colours_5 = _templates(5)
# Only the sweep for the contacts at hand is ever compiled.
_address_2, _address_3, _address_5 = (on_demand(_SWEEP, one) for one in (_sweep_2, _sweep_3, _sweep_5))


@kernel
def sweep(asleep, s, problem, r):
    """One sweep over the contacts that are not asleep. In/out: asleep, r."""
    address = _address_2() if s.d == 2 else _address_3() if s.d == 3 else _address_5()
    _call_sweep(address, (asleep, s, problem, r))


@threaded
def sweep_colours(n_colours, begin, s, problem, r):
    """One sweep over all contacts, colour by colour, on all cores. In/out: r."""
    if s.d == 2:
        _sweep_colours_2(n_colours, begin, s, problem, r)
    elif s.d == 3:
        _sweep_colours_3(n_colours, begin, s, problem, r)
    else:
        _sweep_colours_5(n_colours, begin, s, problem, r)


@tiny
def _shuffle(order, state):
    """Another order, drawn by a linear congruential generator (Knuth's MMIX); returns its next state."""
    for i in range(order.size - 1, 0, -1):
        state = state * 6364136223846793005 + 1442695040888963407
        j = ((state >> 33) & 0x7FFFFFFF) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return state


@tiny
def _sum(x):
    s = 0.0
    for i in range(x.size):
        s += x[i]
    return s


@tiny
def small_change(tol, q):
    """Squared sum of changes that suggests convergence."""
    s = 0.0
    for i in range(q.size):
        s += q[i] ** 2
    return tol * tol * s


@tiny
def look(k, change, search, problem, options, r, u, info):
    """Status after sweep k: a look at the residual where changes are small, and now and then. In/out: search.

    At the end r is the best one that was checked, or the guess.
    """
    status, progress, is_last = MAX_ITER, search.progress, k == search.limit - 1
    if change <= search.small or k % _CHECKED == _CHECKED - 1 or is_last or not change < math.inf:
        least = progress[2]
        status = judge(MAX_ITER, k + 1, problem, options, r, u, info)
        progress[2] = keep_better(info[1], least, r, search.best)
        progress[3] = PATIENCE if info[1] < 0.999 * least else progress[3] - 1.0
        if status == MAX_ITER and (progress[3] == 0.0 or has_stalled(k + 1, info[1], options.patience, progress)):
            status = STALLED
        if not info[1] <= least and (status != MAX_ITER or is_last):
            for i in range(r.size):
                r[i] = search.best[i]
            judge(status, k + 1, problem, options, r, u, info)
    return status


@kernel
def nsgs(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q``, contact by contact: ``W_cc r_c + (q_c + sum of W_cj r_j over the others)`` is solved for r_c.

    local: how (`solvers.contact.local.LOCALS`). seed: another order, drawn again for every sweep. freeze: sweeps for which a contact that
    has come to rest is left out; all are checked before a result is returned.
    Reference: Jourdan, Alart, Jean, Computer Methods in Applied Mechanics and Engineering 155 (1998) 31–47.
    """
    q = problem.q
    n, local, seed, freeze = problem.disk.size, int(options.local), int(options.seed), int(options.freeze)
    d = q.size // max(n, 1)
    room = 10 + one.SCRATCH
    change, best = view(work, room, n), view(work, room + n, n * d)
    diagonal, order, asleep = view(iwork, 0, n), view(iwork, n, n), view(iwork, 2 * n, n)
    s = Sweep(d, local, diagonal, order, change, view(work, 0, room))
    for c in range(n):
        diagonal[c], order[c], asleep[c] = diagonal_block(problem.row, problem.column, c), c, 0
    if judge(MAX_ITER, 0, problem, options, r, u, info) == CONVERGED:
        return CONVERGED
    for i in range(q.size):
        best[i] = r[i]
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_SWEEPS
    search, state = Search(limit, small_change(options.tol, q), best, stack(4)), seed
    begin_progress(info[1] if math.isfinite(info[1]) else math.inf, PATIENCE, search.progress)
    for k in range(limit):
        if seed > 0:
            state = _shuffle(order, state)
        sweep(asleep, s, problem, r)
        status = look(k, _sum(change), search, problem, options, r, u, info)
        if status != MAX_ITER:
            return status
        if freeze > 0:
            awake = k % _CHECKED == _CHECKED - 1
            for c in range(n):
                if awake:
                    asleep[c] = 0
                elif asleep[c] == 0 and change[c] <= _STILL * search.small / n:
                    asleep[c] = freeze
    return MAX_ITER


@threaded
def nsgs_parallel(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q`` as by `nsgs`, colour by colour: contacts that do not touch the same body are solved at the same time.

    The result does not depend on the number of cores. local: as for `nsgs`.
    """
    q = problem.q
    n, chunks = problem.disk.size, _CHUNKS * (10 + one.SCRATCH)
    d = q.size // max(n, 1)
    change, best = view(work, chunks, n), view(work, chunks + n, n * d)
    diagonal, order, begin = view(iwork, 0, n), view(iwork, n, n), view(iwork, 2 * n, n + 1)
    s = Sweep(d, int(options.local), diagonal, order, change, view(work, 0, chunks))
    n_colours = colours.paint(problem.row, problem.column, order, begin, view(iwork, 3 * n + 1, n), view(iwork, 4 * n + 1, n + 1))
    for c in range(n):
        diagonal[c] = diagonal_block(problem.row, problem.column, c)
    if judge(MAX_ITER, 0, problem, options, r, u, info) == CONVERGED:
        return CONVERGED
    for i in range(q.size):
        best[i] = r[i]
    limit = int(options.max_iter) if options.max_iter > 0 else MAX_SWEEPS
    search = Search(limit, small_change(options.tol, q), best, stack(4))
    begin_progress(info[1] if math.isfinite(info[1]) else math.inf, PATIENCE, search.progress)
    for k in range(limit):
        sweep_colours(n_colours, begin, s, problem, r)
        status = look(k, _sum(change), search, problem, options, r, u, info)
        if status != MAX_ITER:
            return status
    return MAX_ITER
