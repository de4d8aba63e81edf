"""The sides of the guess, one factorisation, and the merit's verdict: what a warm start in a time loop needs."""

from nsds._jit import kernel, tiny, view
from nsds.solvers.box import band
from nsds.solvers.box.newton_min import BASIC, LOWER, choose_sides
from nsds.solvers.box.signature import clip, judge, multiply
from nsds.status import CONVERGED, SINGULAR

# iwork: 0, or 1 + the size of the factorised basis, negative where that is singular; then side, factored, member, place, pivots.


def work_size(n, row, column):
    """The band of the basic part and a right-hand side."""
    return room(n, band.half_width(n, row, column)), 5 * n + 1


@kernel
def room(n, half):
    """Floats of the scratch."""
    return band.room(n, half) + n


@kernel
def direct(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``: ``z_B <- z_B - M_BB^-1 w_B``, B where the guess lies inside its bounds, the others being at them.

    Solves any problem whose sides are those of the guess, equations with zeros on the diagonal included; a z_i that M_BB leaves open
    keeps its value. A basis that was factorised in the last call is not factorised again. STALLED: the sides are others. SINGULAR: the
    basis is singular, and the guess was no help.
    """
    lower, upper = problem.lower, problem.upper
    n = problem.q.size
    side, factored, member = view(iwork, 1, n), view(iwork, n + 1, n), view(iwork, 2 * n + 1, n)
    place, pivots = view(iwork, 3 * n + 1, n), view(iwork, 4 * n + 1, n)
    half = band.measure(n, problem.row, problem.column)
    A, x = view(work, n, band.room(n, half)), view(work, 0, n)
    choose_sides(lower, upper, z, side, False)
    known = iwork[0] != 0
    for i in range(n):
        known &= (factored[i] == BASIC) == (side[i] == BASIC)
    if not known:
        b, regular = factorise_basis(n, half, problem, side, member, place, A, pivots)
        iwork[0] = b + 1 if regular else -b - 1
        for i in range(n):
            factored[i] = side[i]
    for i in range(n):
        z[i] = z[i] if side[i] == BASIC else lower[i] if side[i] == LOWER else upper[i]
    settle(abs(iwork[0]) - 1, half, problem, z, A, pivots, member, x, w)
    clip(lower, upper, z)
    return judge(CONVERGED if iwork[0] > 0 else SINGULAR, 1, problem, options, z, w, info)


@kernel
def factorise_basis(n, half, problem, side, member, place, A, pivots):
    """Factors of M_BB; returns the size of the basis, and False where it is singular."""
    b = 0
    for i in range(n):
        member[b] = i
        place[i] = b if side[i] == BASIC else -1
        b += side[i] == BASIC
    band.fill(b, half, problem.row, problem.column, problem.M, member, place, A)
    return b, band.factorise(b, half, A, pivots)


@tiny
def settle(b, half, problem, z, A, pivots, member, x, w):
    """``z_B <- z_B - M_BB^-1 w_B``: basic z from ``w_B = 0``. Work: x, w."""
    multiply(problem.row, problem.column, problem.M, problem.q, z, w)
    for i in range(b):
        x[i] = w[member[i]]
    band.substitute(b, half, A, pivots, x)
    for i in range(b):
        z[member[i]] -= x[i]
