"""One contact, the others being held: ``u = W_c r + q`` with the law of the contact."""

import math

from numba import float64, int64, void

from nsds._jit import caller, kernel, on_demand, specialised, tiny, view
from nsds.solvers.contact import alart_curnier, quartic
from nsds.solvers.contact.signature import CONE, EQUATION

# How a contact is solved, in the order of options.local.
LOCALS = ("auto", "exact", "alart_curnier", "jean_moreau", "projection")
AUTO, EXACT, NEWTON_AC, NEWTON_JM, PROJECTION = range(5)

SCRATCH = 100  # floats that `solve_contact` needs: x (5), F (5), rho (3), A, B, J (25 each), q (5) and spare
_MAX_NEWTON, _MAX_HALVINGS, _MAX_PROJECTIONS, _ROUNDS = 25, 8, 200, 8
_EXACT = 1e-14  # residual of Newton's local iteration that is rounding, relative to q and u
_WARM_STEPS = 3


@kernel
def gauss(n, A, b):
    """``b <- A^-1 b`` for a dense n × n matrix by rows, which is destroyed; partial pivoting; False where it is singular."""
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i * n + k]) > abs(A[p * n + k]):
                p = i
        if not abs(A[p * n + k]) > 0.0:
            return False
        if p != k:
            for j in range(k, n):
                A[k * n + j], A[p * n + j] = A[p * n + j], A[k * n + j]
            b[k], b[p] = b[p], b[k]
        for i in range(k + 1, n):
            f = A[i * n + k] / A[k * n + k]
            for j in range(k + 1, n):
                A[i * n + j] -= f * A[k * n + j]
            b[i] -= f * b[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= A[i * n + j] * b[j]
        b[i] /= A[i * n + i]
    return True


@tiny
def product(d, W, k, r, q, u):
    """``u = W_c r + q`` for the d × d block at W[k]."""
    for a in range(d):
        u[a] = q[a]
        for b in range(d):
            u[a] += W[k + a * d + b] * r[b]


@kernel
def enumerate_plane(mu, W, k, q, r):
    """One contact in the plane: open, sticking, sliding forwards or backwards; `quartic.NONE` where nothing fits. Out: r (2,)."""
    r[0], r[1] = 0.0, 0.0
    if q[0] >= 0.0:
        return quartic.OPEN
    if mu == 0.0:
        r[0] = -q[0] / W[k]
        return quartic.SLIDE if 0.0 < r[0] < math.inf else quartic.NONE
    determinant = W[k] * W[k + 3] - W[k + 1] * W[k + 2]
    a, b = W[k + 1] * q[1] - W[k + 3] * q[0], W[k + 2] * q[0] - W[k] * q[1]  # determinant times r_N and r_T of sticking
    if determinant != 0.0 and abs(b) <= math.copysign(mu, determinant) * a:
        r[0], r[1] = a / determinant, b / determinant
        return quartic.STICK
    for side in (-1.0, 1.0):
        r_n = -q[0] / (W[k] + side * mu * W[k + 1])
        if 0.0 < r_n < math.inf and mu * a <= side * b:  # u_T, times that divisor, is side mu a - b
            r[0], r[1] = r_n, side * mu * r_n
            return quartic.SLIDE
    return quartic.NONE


@tiny
def slide_on(mu, W, k, q, r, r_new):
    """True where sliding near the direction of r solves the contact; a few steps of Newton instead of a quartic. Out: r_new."""
    size_t = math.sqrt(r[1] * r[1] + r[2] * r[2])
    if not (0.0 < mu * r[0] <= 1.000001 * size_t) or q[0] >= 0.0:
        return False
    A, B, C, D, E = quartic.coefficients(mu, W, k, q)
    size = 1e-15 * (abs(A) + abs(B) + abs(C) + abs(D) + abs(E))
    c, s = r[1] / size_t, r[2] / size_t
    for _ in range(_WARM_STEPS):
        c, s, value = quartic.refine(A, B, C, D, E, c, s)
        if value <= size:
            break
    alpha, _ = quartic.slide(c, s, mu, W, k, q, r_new)
    return value <= 1e6 * size and alpha >= 0.0


@kernel
def newton(form, cone, W, k, q, r, scratch):
    """One contact by Newton's method on F of `alart_curnier`, from the guess r; False: no solution found. Out: r (d,)."""
    x, F, u, rho = view(scratch, 0, 5), view(scratch, 5, 5), view(scratch, 10, 5), view(scratch, 15, 3)
    A, B, J, d = view(scratch, 18, 25), view(scratch, 43, 25), view(scratch, 68, 25), cone.d
    alart_curnier.split_rho(cone.disk, d, W, k, rho)
    product(d, W, k, r, q, u)
    alart_curnier.evaluate(form, cone, rho, r, u, F, A, B)
    merit, scale = _square(d, F), _square(d, q)
    for _ in range(_MAX_NEWTON):
        if merit <= _EXACT**2 * scale:
            return True
        for a in range(d):
            for b in range(d):
                s = B[a * d + b]
                for i in range(d):
                    s += A[a * d + i] * W[k + i * d + b]
                J[a * d + b] = s
        for a in range(d):
            x[a] = F[a]
        if not gauss(d, J, x):
            return False
        step, before = 1.0, merit
        for a in range(d):
            r[a] -= x[a]
        for _ in range(_MAX_HALVINGS):
            product(d, W, k, r, q, u)
            alart_curnier.evaluate(form, cone, rho, r, u, F, A, B)
            merit = _square(d, F)
            if merit < before * (1.0 - 1e-4 * step):
                break
            step *= 0.5
            for a in range(d):
                r[a] += step * x[a]
        if not merit < before:
            return merit <= 1e-20 * scale
    return merit <= 1e-20 * scale


@tiny
def _square(d, x):
    s = 0.0
    for a in range(d):
        s += x[a] ** 2
    return s


@kernel
def iterate_projection(limit, cone, W, k, q, r, scratch):
    """One contact by ``r_N <- (r_N - rho_N u_N)_+``, ``r_T <- P_D(r_T - rho_T u_T)``, at most limit times. In/out: r (d,)."""
    d, disk, mu, mu_r = cone
    u, rho = view(scratch, 10, 5), view(scratch, 15, 3)
    alart_curnier.split_rho(disk, d, W, k, rho)
    for _ in range(limit):
        change = size = 0.0
        product(d, W, k, r, q, u)
        r_n = max(r[0] - rho[0] * u[0], 0.0)
        change, size = abs(r_n - r[0]), r_n
        r[0] = r_n
        product(d, W, k, r, q, u)
        change += _onto_disk(mu * r_n, rho[1], 1, 1 + disk, r, u) + _onto_disk(mu_r * r_n, rho[2], 1 + disk, d, r, u)
        if change <= _EXACT * size:
            break


@tiny
def _onto_disk(radius, rho, first, last, r, u):
    """``r <- P_D(r - rho u)`` for components first..last - 1; returns the sum of changes."""
    size, change = 0.0, 0.0
    for i in range(first, last):
        size += (r[i] - rho * u[i]) ** 2
    size = math.sqrt(size)
    f = radius / size if size > radius else 1.0
    for i in range(first, last):
        new = f * (r[i] - rho * u[i])
        change += abs(new - r[i])
        r[i] = new
    return change


@tiny
def _solve_exactly(d, mu, W, k, q, r, scratch):
    """The quartic in space, enumeration in the plane; False where nothing fits. Out: r."""
    if d == 3:
        return quartic.solve_quartic(mu, W, k, q, r, scratch) != quartic.NONE
    return enumerate_plane(mu, W, k, q, r) != quartic.NONE


@kernel
def iterate(local, cone, W, k, q, r, guess, scratch):
    """Newton, and the exact solution where it fails; where there is none, projections from the guess and Newton in turns. Out: r."""
    d, exact = cone.d, cone.disk == cone.d - 1
    form = alart_curnier.JEAN_MOREAU if local == NEWTON_JM else alart_curnier.ALART_CURNIER
    if local > EXACT or not exact:
        for i in range(d):
            r[i] = guess[i]
        if newton(form, cone, W, k, q, r, scratch) or (exact and _solve_exactly(d, cone.mu, W, k, q, r, scratch)):
            return
    for _ in range(_ROUNDS):
        iterate_projection(_MAX_PROJECTIONS // _ROUNDS, cone, W, k, q, guess, scratch)
        for i in range(d):
            r[i] = guess[i]
        form = alart_curnier.ALART_CURNIER + alart_curnier.JEAN_MOREAU - form
        if newton(form, cone, W, k, q, r, scratch):
            return
    for i in range(d):
        r[i] = guess[i]


_floats = float64[::1]
_ITERATE = void(int64, CONE, _floats, int64, *(_floats,) * 4)
_call_iterate = caller(_ITERATE)
_address_of_iterate = on_demand(_ITERATE, iterate)  # long to compile and rarely needed


@kernel
def solve_contact(local, cone, W, k, q, r, scratch):
    """``u = W_c r + q`` and the law of the contact, for the d × d block at W[k]; r (d,) in: guess, out: solution.

    auto: in space sliding on from the guess, else the quartic; in the plane enumeration; with rolling friction Newton. Where Newton
    fails, the quartic or enumeration; where these do (the block is not positive definite) or there is none, projections from the guess
    and Newton take turns.
    """
    d, disk, mu, _ = cone
    if disk == EQUATION:
        for i in range(d * d):
            scratch[i] = W[k + i]
        for i in range(d):
            r[i] = -q[i]
        gauss(d, scratch, r)
        return
    if local == PROJECTION:
        iterate_projection(_MAX_PROJECTIONS, cone, W, k, q, r, scratch)
        return
    guess = view(scratch, 93, 5)
    for i in range(d):
        guess[i] = r[i]
    if local <= EXACT and disk == d - 1:
        if d == 3 and local == AUTO and slide_on(mu, W, k, q, guess, r):
            return
        if _solve_exactly(d, mu, W, k, q, r, scratch):
            return
    _call_iterate(_address_of_iterate(), (local, cone, W, k, q, r, guess, scratch))


_D = 0  # components of a contact; bound by `specialised`


def _renew(c, local, cone, W, k, q, r, change, scratch):
    """Solves contact c with its block at W[k], from r_c; returns the square of ``trace(W_cc) ||change of r_c||``. q (5,): of the contact.

    In/out: r. Out: change (5,): of r_c. Work: scratch (SCRATCH).
    """
    at = c * _D
    for a in range(_D):
        change[a] = r[at + a]
    solve_contact(local, cone, W, k, q, change, scratch)
    moved = trace = 0.0
    for a in range(_D):
        r_a = change[a]
        change[a] = r_a - r[at + a]
        moved += change[a] ** 2
        trace += W[k + a * (_D + 1)]
        r[at + a] = r_a
    return moved * trace * trace


renew_2, renew_3, renew_5 = (tiny(specialised(_renew, str(d), _D=d)) for d in (2, 3, 5))
