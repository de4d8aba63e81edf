"""The default: sweeps for what they solve, Newton island by island for the rest, and slower methods where that fails; res_q decides."""

from nsds._jit import kernel, view
from nsds.solvers.contact import islands, lemke, newton, nsgs
from nsds.solvers.contact.signature import N_OPTIONS, conclude
from nsds.status import CONVERGED, MAX_ITER

# Methods in the order of info[3].
ORDER = ("nsgs", "newton", "lemke")
_NSGS, _NEWTON, _LEMKE = range(3)

_SWEEPS = 20  # before Newton's first attempt
_GROWTH = 3  # of the number of sweeps, from one attempt to the next
_ROUNDS = 6
_ITERATIONS = 30  # of each attempt of Newton


def work_size(d, row, column):
    """A copy of the largest island and the scratch of its methods."""
    n = row.size - 1
    sizes = [module.work_size(d, row, column) for module in (nsgs, newton, lemke)]
    floats = 2 * n + column.size * d * d + 4 * n * d + 2 * N_OPTIONS + 4
    integers = 6 * n + 2 + column.size
    return floats + max(s[0] for s in sizes), integers + max(s[1] for s in sizes)


@kernel
def solve_island(disk, mu, row, column, W, q, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q`` by Newton from the guess, with more and more sweeps before the next attempts.

    Jean–Moreau and Alart–Curnier take turns; in the plane, Lemke after two attempts. Out of r: the best point met.
    """
    d = q.size // disk.size
    best, own, rest = view(work, 0, q.size), view(work, q.size, N_OPTIONS), view(work, q.size + N_OPTIONS, work.size - q.size - N_OPTIONS)
    for i in range(N_OPTIONS):
        own[i] = options[i]
    status = conclude(MAX_ITER, 0, disk, mu, row, column, W, q, options, r, u, info, rest)
    least, n_iter, winner, sweeps = info[1], 0, _NSGS, _SWEEPS
    for i in range(q.size):
        best[i] = r[i]
    for attempt in range(2 * _ROUNDS):
        if status == CONVERGED:
            break
        if attempt % 2 == 0:
            own[1], winner = _ITERATIONS, _NEWTON
            if attempt % 4 == 0:
                status = newton.newton_jm(disk, mu, row, column, W, q, own, r, u, info, rest, iwork)
            else:
                status = newton.newton_ac(disk, mu, row, column, W, q, own, r, u, info, rest, iwork)
        elif d == 2 and attempt == 3:
            own[1], winner = 0, _LEMKE
            status = lemke.lemke(disk, mu, row, column, W, q, own, r, u, info, rest, iwork)
        else:
            sweeps *= _GROWTH
            own[1], winner = sweeps, _NSGS
            status = nsgs.nsgs(disk, mu, row, column, W, q, own, r, u, info, rest, iwork)
        n_iter += info[0]
        if info[1] < least:
            least = info[1]
            for i in range(q.size):
                best[i] = r[i]
        elif status != CONVERGED:
            for i in range(q.size):
                r[i] = best[i]
    info[0], info[3] = n_iter, winner
    for i in range(q.size):
        r[i] = best[i]
    return status


@kernel
def auto(disk, mu, row, column, W, q, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q``: a few sweeps, then every island that these have not solved by `solve_island`.

    info[3] names the last method that was needed by its place in `ORDER`; iterations of all attempts and islands are counted.
    """
    n = disk.size
    d = q.size // max(n, 1)
    own = view(work, 0, N_OPTIONS)
    for i in range(N_OPTIONS):
        own[i] = options[i]
    own[1] = _SWEEPS
    status = nsgs.nsgs(disk, mu, row, column, W, q, own, r, u, info, view(work, N_OPTIONS, work.size - N_OPTIONS), iwork)
    info[3] = _NSGS
    if status == CONVERGED:
        return status
    n_iter, winner = info[0], _NSGS
    begin, member, place, queue = view(iwork, 0, n + 1), view(iwork, n + 1, n), view(iwork, 2 * n + 1, n), view(iwork, 3 * n + 1, 2 * n)
    n_islands = islands.find(row, column, begin, member, queue)
    disk_i, row_i, column_i = queue, view(iwork, 5 * n + 1, n + 1), view(iwork, 6 * n + 2, column.size)
    scratch = view(iwork, 6 * n + 2 + column.size, iwork.size - 6 * n - 2 - column.size)
    at = N_OPTIONS
    info_i, mu_i, W_i = view(work, at, 4), view(work, at + 4, 2 * n), view(work, at + 4 + 2 * n, W.size)
    at += 4 + 2 * n + W.size
    q_i, r_i, u_i = view(work, at, q.size), view(work, at + q.size, q.size), view(work, at + 2 * q.size, q.size)
    rest = view(work, at + 3 * q.size, work.size - at - 3 * q.size)
    for i in range(n_islands):
        first, last = begin[i], begin[i + 1]
        m = last - first
        islands.extract(first, last, member, place, d, disk, mu, row, column, W, q, r, disk_i, mu_i, row_i, column_i, W_i, q_i, r_i)
        own[0] = islands.share(options[0], first, last, d, member, q)
        solve_island(
            view(disk_i, 0, m), view(mu_i, 0, 2 * m), view(row_i, 0, m + 1), view(column_i, 0, row_i[m]), view(W_i, 0, row_i[m] * d * d),
            view(q_i, 0, m * d), own, view(r_i, 0, m * d), view(u_i, 0, m * d), info_i, rest, scratch,
        )  # fmt: skip
        n_iter += info_i[0]
        winner = max(winner, int(info_i[3]))
        for k in range(m):
            for a in range(d):
                r[d * member[first + k] + a] = r_i[d * k + a]
    info[3] = winner
    return conclude(CONVERGED, int(n_iter), disk, mu, row, column, W, q, options, r, u, info, rest)
