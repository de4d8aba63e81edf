"""The default: what the structure suggests first, then what also treats redundant and singular problems; the residual decides."""

import math

from nsds._jit import inlined, kernel, on_demand, tiny, view
from nsds.solvers.box import band, direct, enumeration, gauss_seidel, lemke, newton_fb, newton_min, proximal, tableau
from nsds.solvers.box.signature import SOLVER, a_row_is_infeasible, affordable, call_solver, changed, diagonal, judge
from nsds.status import CONVERGED, INFEASIBLE, MAX_ITER, STALLED

# Methods in the order of info[2].
ORDER = ("newton_min", "direct", "proximal", "lemke", "enumerate", "newton_fb", "proximal", "enumerate", "pgs")
_NEWTON_MIN, _DIRECT, _PROXIMAL, _LEMKE, _TRY_FEW, _NEWTON_FB, _PROXIMAL_LATE, _TRY_MANY, _PGS = range(9)

DENSE_LIMIT = 256  # unknowns up to which dense scratch is kept at hand, so that all of these are tried; more where M itself is dense
_DENSITY = 0.2
_BAND_LIMIT = 64  # half width up to which band scratch is kept at hand
_FEW, _MANY = 1 << 10, 1 << 17  # bases that may all be tried: early, and when all else has failed
# Iterations of two that are slow to give up, where no max_iter is given: of 4500 small problems of all kinds, what is solved by these
# takes up to 6 and 48. _STEPS: multiplications of a step with damping, over those of a factorisation.
_LIMIT_OF_PROXIMAL, _LIMIT_OF_NEWTON, _STEPS = 15, 80, 40

# iwork: 0 for a new matrix, else the sign of its diagonal; then the scratch of the methods.
_POSITIVE, _OTHER = 1, 2


def work_size(n, row, column):
    """The most that one of the methods for which there is room needs, and the best point so far."""
    dense = n <= DENSE_LIMIT or column.size >= _DENSITY * n**2
    banded = dense or band.half_width(n, row, column) <= _BAND_LIMIT
    modules = [proximal, *[direct, newton_fb] * banded, *[lemke] * dense]
    sizes = [module.work_size(n, row, column) for module in modules]
    return n + max(s[0] for s in sizes), max(s[1] for s in sizes) + 1


@inlined
def _sign_of_diagonal(problem):
    sign = _POSITIVE
    for i in range(problem.row.size - 1):
        if not diagonal(problem.row, problem.column, problem.M, i) > 0.0:
            sign = _OTHER
    return sign


@tiny
def _limited(limit, options):
    """The options, with a limit where they have none."""
    return changed(options, options.tol, options.max_iter if options.max_iter > 0.0 else float(limit))


@kernel
def fall_back(problem, options, z, w, info, work, iwork):
    """One method after the other, each from the point of the box nearest to 0, so that the answer does not depend on the first guess.

    Where none succeeds, the point with the least merit is returned, with the status and the name of its method.
    """
    column = problem.column
    n, positive = problem.q.size, _sign_of_diagonal(problem) == _POSITIVE
    best, rest = view(work, 0, n), view(work, n, work.size - n)
    dense = tableau.room(n) <= rest.size
    banded = newton_fb.room(n, column.size, band.measure(n, problem.row, column)) <= rest.size
    n_choices = enumeration.count_choices(problem.lower, problem.upper)
    n_iter, least, outcome, winner = info[0], math.inf, MAX_ITER, info[2]
    few_steps = _limited(_LIMIT_OF_PROXIMAL, options)
    of_newton = _limited(affordable(_LIMIT_OF_NEWTON, _STEPS * n * (band.measure(n, problem.row, column) + 1.0) ** 2), options)
    for method in range(_PROXIMAL, _PGS + 1):
        suits = banded if method == _NEWTON_FB else dense
        if method == _PROXIMAL:
            suits = positive or not dense
        elif method == _PROXIMAL_LATE:
            suits = not positive and dense
        elif method == _TRY_FEW:
            suits &= n_choices <= _FEW
        elif method == _TRY_MANY:
            suits &= _FEW < n_choices <= _MANY
        elif method == _PGS:
            suits = not banded
        if not suits:
            continue
        for i in range(n):
            z[i] = min(max(0.0, problem.lower[i]), problem.upper[i])
        info[0] = 0.0
        iwork[0] = 0
        if method in (_PROXIMAL, _PROXIMAL_LATE):
            status = proximal.proximal(problem, few_steps, z, w, info, rest, iwork)
        elif method == _LEMKE:
            status = lemke.lemke(problem, options, z, w, info, rest, iwork)
        elif method == _NEWTON_FB:
            status = newton_fb.newton_fb(problem, of_newton, z, w, info, rest, iwork)
        elif method == _PGS:
            status = gauss_seidel.pgs(problem, options, z, w, info, rest, iwork)
        else:
            status = enumeration.enumeration(problem, options, z, w, info, rest, iwork)
        n_iter += info[0]
        if status == CONVERGED:
            info[0], info[2] = n_iter, method
            return status
        if info[1] < least:
            least, outcome, winner = info[1], status, method
            for i in range(n):
                best[i] = z[i]
        if status == INFEASIBLE:
            outcome, winner = status, method
            break
    info[2] = winner
    if least < math.inf:
        for i in range(n):
            z[i] = best[i]
    outcome = INFEASIBLE if a_row_is_infeasible(problem) else outcome
    return judge(outcome, int(n_iter), problem, options, z, w, info)


address_of_fall_back = on_demand(SOLVER, fall_back)


@inlined
def _is_blank(lower, upper, z):
    """True for the point of the box nearest to 0, which says nothing."""
    blank = True
    for i in range(z.size):
        blank &= z[i] == min(max(0.0, lower[i]), upper[i])
    return blank


@kernel
def search(problem, options, z, w, info, work, iwork):
    """Newton-min where the diagonal is positive, else direct, if there is a guess; where that fails, all that `fall_back` has."""
    n = problem.q.size
    rest = view(iwork, 1, iwork.size - 1)
    if iwork[0] == 0:
        iwork[0] = _sign_of_diagonal(problem)
        rest[0] = 0
    info[2] = _NEWTON_MIN
    if iwork[0] == _POSITIVE:
        status = newton_min.newton_min(problem, options, z, w, info, work, rest)
    elif not _is_blank(problem.lower, problem.upper, z) and direct.room(n, band.measure(n, problem.row, problem.column)) <= work.size:
        info[2] = _DIRECT
        status = direct.direct(problem, options, z, w, info, work, rest)
    else:
        info[0], status = 0.0, MAX_ITER
    if status == CONVERGED:
        return status
    iwork[0] = 0  # the others write over what is known of the matrix
    others = address_of_fall_back()
    return call_solver(others, (problem, options, z, w, info, work, rest)) if others != 0 else status


address_of_search = on_demand(SOLVER, search)


@kernel
def auto(problem, options, z, w, info, work, iwork):
    """Box problem ``w = M z + q``: one unknown at once; else Newton-min where the diagonal is positive, or direct, if there is a guess.

    Where that fails, from the point of the box nearest to 0: proximal steps (with a positive diagonal, or where there is no room for a
    dense method), Lemke, enumeration up to 2^10 bases, Newton-Fischer-Burmeister, proximal steps if not yet tried, enumeration up to 2^17
    bases, each if the scratch has room for it; else projected Gauss–Seidel.
    info[2] names the method whose z and status are returned by its place in `ORDER`; iterations of all attempts are counted.
    """
    info[2] = _NEWTON_MIN
    if problem.q.size == 1 and problem.M[0] > 0.0:
        return newton_min.one_unknown(problem.M, problem.q, problem.lower, problem.upper, options, z, w, info)
    more = address_of_search()
    return call_solver(more, (problem, options, z, w, info, work, iwork)) if more != 0 else STALLED
