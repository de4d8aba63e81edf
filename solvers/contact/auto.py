"""The default: few contacts in the plane directly, others by sweeps over contacts or groups; then islands by methods in turns."""

import math

from nsds._jit import kernel, on_demand, tiny, view
from nsds.solvers.contact import accelerated, block_lu, few, interior_point, islands, lemke, newton, nsgs, projections, proximal, schwarz
from nsds.solvers.contact.signature import N_INFO, SOLVER, call_solver, changed, judge, keep_better, largest, problem_of
from nsds.status import CONVERGED, MAX_ITER

# Methods in the order of info[3].
ORDER = ("nsgs", "newton_jm", "newton_ac", "interior_point", "lemke", "proximal", "accelerated", "extragradient", "few", "schwarz")
_NSGS, _NEWTON_JM, _NEWTON_AC, _INTERIOR, _LEMKE, _PROXIMAL, _ACCELERATED, _EXTRAGRADIENT, _FEW, _SCHWARZ = range(10)

_SWEEPS = 20.0  # over all contacts, before islands are solved one by one
_DENSE, _ROUNDS = 200, 40.0  # blocks of W for each contact from which groups of contacts are swept instead, and how many rounds

# What is tried in turns on an island that sweeps have not solved: the method, how many iterations it may take, in how many the residual
# must halve (0: no such limit), and whether it begins with the best point so far or without impulses: a point with a small residual may
# be a trap. Where factors are cheap, and where one factorisation takes the time of many sweeps. All turns end: those of products with W
# when a thousand of them do not halve the residual; all together take some 12 ms for eight contacts, 3 ms of them the short ones.
# Limits are what the slowest of 1900 problems of up to 16 contacts took, most of them with any matrix, rounded up.
_BEST, _ZERO = False, True
_CHEAP = (
    (_NEWTON_JM, 15, 0, _BEST),
    (_INTERIOR, 60, 0, _BEST),
    (_NEWTON_AC, 30, 0, _BEST),
    (_LEMKE, 20_000, 0, _BEST),
    (_NEWTON_JM, 60, 0, _ZERO),
    (_NEWTON_AC, 60, 0, _ZERO),
    (_NEWTON_JM, 60, 0, _BEST),
    (_PROXIMAL, 200, 0, _BEST),
    (_PROXIMAL, 1_000, 0, _ZERO),
    (_PROXIMAL, 500, 250, _BEST),
    (_ACCELERATED, 10_000, 300, _BEST),
    (_EXTRAGRADIENT, 10_000, 1_000, _BEST),
)
_COSTLY = (
    (_ACCELERATED, 600, 200, _BEST),
    (_NEWTON_JM, 15, 0, _BEST),
    (_INTERIOR, 30, 0, _BEST),
    (_NSGS, 300, 0, _BEST),
    (_ACCELERATED, 3_000, 300, _BEST),
    (_NEWTON_AC, 30, 12, _BEST),
    (_PROXIMAL, 100, 50, _BEST),
    (_NEWTON_JM, 30, 12, _ZERO),
    (_LEMKE, 20_000, 0, _BEST),
    (_ACCELERATED, 100_000, 300, _BEST),
    (_EXTRAGRADIENT, 100_000, 300, _BEST),
    (_NSGS, 10_000, 300, _ZERO),
)
_METHODS = tuple(method for method, _, _, _ in _CHEAP + _COSTLY)
_LIMITS = tuple(limit for _, limit, _, _ in _CHEAP + _COSTLY)
_PATIENCES = tuple(float(patience) for _, _, patience, _ in _CHEAP + _COSTLY)
_BEGINS = tuple(begin for _, _, _, begin in _CHEAP + _COSTLY)
# Turns that every island is given before a residual is enough that is below tol no more than for the scheme: the lightest of bodies in a
# stack has velocities far below the largest, so that this residual has to be small, or until all short turns have been taken. Where factors
# are cheap a step takes no others: of 7000 problems that 20 sweeps left unsolved, all that had a solution had it after these.
_FIRST, _SHORT, _SHORT_OF_COSTLY, _CLOSE_TO = 3, 8, 10, 1e-8
BRIEF = 125.0  # iterations of the first turns, which are tried where a step has had a problem without solution
# Work of one turn: products of blocks in factorisations, or of blocks with vectors; a few seconds. Some iterations are always made.
_PRODUCTS, _LEAST_STEPS = 3e8, 20
_VECTOR_PRODUCTS, _LEAST_SWEEPS = 1e9, 300
_MUCH = 15  # block products of a factorisation, over blocks of W, from which it is costly

address_of_nsgs = on_demand(SOLVER, nsgs.nsgs)
address_of_schwarz = on_demand(SOLVER, schwarz.schwarz)
address_of_newton_jm = on_demand(SOLVER, newton.newton_jm)
address_of_newton_ac = on_demand(SOLVER, newton.newton_ac)
address_of_interior_point = on_demand(SOLVER, interior_point.interior_point)
address_of_lemke = on_demand(SOLVER, lemke.lemke)
address_of_proximal = on_demand(SOLVER, proximal.proximal)
address_of_accelerated = on_demand(SOLVER, accelerated.accelerated)
address_of_extragradient = on_demand(SOLVER, projections.extragradient)


@kernel
def _address(method):
    if method == _NSGS:
        return address_of_nsgs()
    if method == _NEWTON_JM:
        return address_of_newton_jm()
    if method == _NEWTON_AC:
        return address_of_newton_ac()
    if method == _INTERIOR:
        return address_of_interior_point()
    if method == _LEMKE:
        return address_of_lemke()
    if method == _PROXIMAL:
        return address_of_proximal()
    if method == _ACCELERATED:
        return address_of_accelerated()
    return address_of_extragradient()


def work_size(d, row, column):
    """A copy of the largest island, its best point, and the scratch of the methods."""
    n, (floats_of_few, integers_of_few) = row.size - 1, few.room()
    m, n_blocks, n_upper = islands.sizes(row, column)
    rooms = [module.room(d, m, n_upper) for module in (newton, interior_point, lemke) if n_upper <= block_lu.LARGEST_FILL]
    own, on_island = nsgs.work_size(d, row, column), accelerated.work_size(d, row[: m + 1], column)
    if column.size >= _DENSE * n:
        own = tuple(max(pair) for pair in zip(own, schwarz.work_size(d, row, column), strict=True))
    floats = N_INFO + 2 * m + n_blocks * d * d + 4 * m * d + max(*rooms, own[0], on_island[0])
    integers = 6 * n + 2 + n_blocks + max(own[1], m + block_lu.integer_room(m, n_upper if rooms else 0))
    return max(floats, floats_of_few), max(integers, integers_of_few)


@kernel
def solve_island(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q`` by the methods of `_CHEAP` or `_COSTLY` in turns. Out of r: the best point."""
    column, q = problem.column, problem.q
    d = q.size // problem.disk.size
    best, rest = view(work, 0, q.size), view(work, q.size, work.size - q.size)
    status = judge(MAX_ITER, 0, problem, options, r, u, info)
    if status != CONVERGED and (not math.isfinite(info[1]) or largest(q) == 0.0):
        clear(r)
        status = judge(MAX_ITER, 0, problem, options, r, u, info)
    least, n_iter, winner = keep_better(info[1], math.inf, r, best), 0.0, _NSGS
    products = block_lu.cost(problem.row, column, iwork)
    cheap = 0 <= products <= _MUCH * column.size
    for stage in range(0 if cheap else len(_CHEAP), len(_CHEAP) if cheap else len(_METHODS)):
        method = _METHODS[stage]
        turn = stage if cheap else stage - len(_CHEAP)
        is_short = turn < (_SHORT if cheap else _SHORT_OF_COSTLY)
        is_enough = least <= options.enough and ((turn >= _FIRST and least <= _CLOSE_TO) or not is_short)
        is_enough = is_enough or (cheap and not is_short and options.enough > options.tol)
        if status == CONVERGED or is_enough or (options.max_iter > 0.0 and n_iter >= options.max_iter):
            break
        if method == _LEMKE and d != 2:
            continue
        limit = _limit(method, _LIMITS[stage], products, column.size)
        if options.max_iter > 0.0:
            limit = min(limit, options.max_iter - n_iter)
        if _BEGINS[stage]:
            clear(r)
        own = changed(options, options.tol, limit, _PATIENCES[stage])
        status = call_solver(_address(method), (problem, own, r, u, info, rest, iwork))
        n_iter += info[0]
        if info[1] < least:
            winner = method
        least = keep_better(info[1], least, r, best)
        for i in range(q.size):
            r[i] = best[i]
    info[0], info[3] = n_iter, winner
    return status


@tiny
def clear(x):
    """``x = 0``."""
    for i in range(x.size):
        x[i] = 0.0


@tiny
def _limit(method, limit, products, n_blocks):
    """Iterations of a method: limit, or as many as a few seconds allow."""
    if method in (_NSGS, _ACCELERATED, _EXTRAGRADIENT):
        return min(limit, max(_LEAST_SWEEPS, _VECTOR_PRODUCTS / (1.0 + n_blocks)))
    return min(limit, max(_LEAST_STEPS, _PRODUCTS / (1.0 + products + n_blocks)))


@kernel
def by_islands(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q``, each island that the guess does not solve by `solve_island`; n_iter goes on from info[0]."""
    row = problem.row
    n = problem.disk.size
    d = problem.q.size // n
    begin, member, place, queue = view(iwork, 0, n + 1), view(iwork, n + 1, n), view(iwork, 2 * n + 1, n), view(iwork, 3 * n + 1, 2 * n)
    n_islands = islands.find(row, problem.column, begin, member, queue)
    m = n_blocks = 0
    for i in range(n_islands):
        size, blocks = begin[i + 1] - begin[i], 0
        for k in range(begin[i], begin[i + 1]):
            blocks += row[member[k] + 1] - row[member[k]]
        m, n_blocks = max(m, size), max(n_blocks, blocks)
    disk_i, row_i, column_i = queue, view(iwork, 5 * n + 1, n + 1), view(iwork, 6 * n + 2, n_blocks)
    scratch = view(iwork, 6 * n + 2 + n_blocks, iwork.size - 6 * n - 2 - n_blocks)
    info_i, mu_i, at = view(work, 0, N_INFO), view(work, N_INFO, 2 * m), N_INFO + 2 * m
    W_i, at = view(work, at, n_blocks * d * d), at + n_blocks * d * d
    q_i, r_i, u_i = view(work, at, m * d), view(work, at + m * d, m * d), view(work, at + 2 * m * d, m * d)
    rest = view(work, at + 3 * m * d, work.size - at - 3 * m * d)
    n_iter, winner, room = info[0], _NSGS, problem_of((disk_i, mu_i, row_i, column_i, W_i, q_i))
    for i in range(n_islands):
        first, last = begin[i], begin[i + 1]
        islands.extract(first, last, member, place, problem, r, room, r_i)
        left = max(1.0, options.max_iter - n_iter) if options.max_iter > 0.0 else 0.0
        own = changed(options, islands.share(options.tol, first, last, d, member, problem.q), left, 0.0)
        size, blocks = last - first, row_i[last - first]
        island = problem_of((
            view(disk_i, 0, size), view(mu_i, 0, 2 * size), view(row_i, 0, size + 1), view(column_i, 0, blocks),
            view(W_i, 0, blocks * d * d), view(q_i, 0, size * d),
        ))  # fmt: skip
        solve_island(island, own, view(r_i, 0, size * d), view(u_i, 0, size * d), info_i, rest, scratch)
        n_iter += info_i[0]
        winner = max(winner, int(info_i[3]))
        for k in range(size):
            for a in range(d):
                r[d * member[first + k] + a] = r_i[d * k + a]
    info[3] = winner
    return judge(CONVERGED, int(n_iter), problem, options, r, u, info)


address_of_by_islands = on_demand(SOLVER, by_islands)


@kernel
def auto(problem, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q``: few contacts in the plane directly; 20 sweeps of nsgs, or, where each contact acts on some hundred
    others, 40 rounds of schwarz; then `by_islands` where these are not enough.

    info[3] names, by its place in `ORDER`, the last of the methods that an island needed; iterations of all methods and islands are
    counted, and limited together by max_iter. STALLED: none of the methods solves some island; the best points are returned.
    """
    disk = problem.disk
    if 0 < disk.size <= few.LARGEST and problem.q.size == 2 * disk.size:
        info[3] = _FEW
        if few.few(problem, options, r, u, info, work, iwork) == CONVERGED:
            return CONVERGED
    is_dense = problem.column.size >= _DENSE * disk.size and disk.size > 0
    limit = _ROUNDS if is_dense else _SWEEPS
    own = changed(options, options.tol, min(options.max_iter, limit) if options.max_iter > 0 else limit, 0.0)
    first = address_of_schwarz() if is_dense else address_of_nsgs()
    status = call_solver(first, (problem, own, r, u, info, work, iwork))
    info[3] = _SCHWARZ if is_dense else _NSGS
    if status == CONVERGED or disk.size == 0:
        return status
    others = address_of_by_islands()
    return call_solver(others, (problem, options, r, u, info, work, iwork)) if others != 0 else status
