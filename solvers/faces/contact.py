"""Contact problems from Python: checks, conversion to the solvers' form, and a result that says what happened."""

from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds._jit import kernel, tiny, view
from nsds.solvers import results, table
from nsds.solvers.box import forms as box_forms
from nsds.solvers.contact import auto, forms, generic, global_newton, infeasible, panels
from nsds.solvers.contact.signature import (
    LARGEST_BLOCK,
    N_INFO,
    Problem,
    call_solver,
    classify,
    diagonal_block,
    judge,
    largest,
    mixed_residual,
    solve_repeatedly,
)
from nsds.solvers.faces import box
from nsds.solvers.faces.frame import name_of, requested
from nsds.solvers.results import judged
from nsds.solvers.workspaces import REFUSED, Workspace, Workspaces, key_of, left_at_interrupts, work_of
from nsds.status import CONVERGED, INFEASIBLE, MAX_ITER, NON_FINITE, RAY, SINGULAR, STALLED

WORKSPACES = Workspaces()
_SIZES = {"fc2d": (2, 1), "fc3d": (3, 2), "rfc2d": (3, 1), "rfc3d": (5, 2)}  # components of a contact, and of its disk of friction
_MAY_BE_SOLVED = (MAX_ITER, STALLED, RAY, SINGULAR)  # by another method
# Methods that "auto" tries where its compiled part has failed, and the iterations each may take; 0: its own limit, as it gives up soon.
_OTHERS = (
    ("newton_natural", 80), ("newton_fb", 0), ("newton_ac", 0), ("least_norm", 0), ("enumerate", 4000), ("admm", 0), ("cpg", 1000),
    ("nsgs", 200), ("tresca", 0), ("aclm", 0), ("panagiotopoulos", 0), ("fixed_point", 3000),
)  # fmt: skip
# The same for more contacts than these, where factors may be costly, and methods that need them end early in the compiled part.
_FEW, _OTHERS_OF_MANY = 40, (("interior_point", 0), ("proximal", 0), ("newton_jm", 0))
_MAY_BE_INFEASIBLE = (MAX_ITER, STALLED, RAY, SINGULAR, NON_FINITE)
_EXTREME = 150  # binary exponent of the largest entry of W or q from which they are scaled
_LEAST, _MOST = 2.0 ** (-_EXTREME - 1), 2.0**_EXTREME  # sizes of it that are not extreme
_N_ANSWER = 4  # res_rho, res_q, n_iter, place of the method
_POLISHING_ROUNDS, _POLISHING_STEPS, _LEAST_TOL = 3, 10, 1e-15
_STATES = np.array(["open", "sticking", "sliding"])


@results.readable(lambda self: _advice(self))
class ContactSolution(NamedTuple):
    """Result of a contact solver: ``u = W r + q`` (d nc,), a status of `nsds.status`, both residuals, the method, and what contacts do.

    state (nc,): "open", "sticking" or "sliding"; of rolling contacts (nc, 2), the second for the rolling (where "sticking" means that
    the contact does not roll).
    """

    r: np.ndarray
    u: np.ndarray
    status: int
    n_iter: int
    res_q: float
    res_rho: float
    method: str
    state: np.ndarray

    @property
    def residual(self):
        """res_rho, by which convergence is judged."""
        return self.res_rho


@results.readable(lambda self: _advice(self))
class GlobalContactSolution(NamedTuple):
    """Result of a global contact problem: as `ContactSolution`, and the velocities v of ``M v = q + H r``."""

    v: np.ndarray
    r: np.ndarray
    u: np.ndarray
    status: int
    n_iter: int
    res_q: float
    res_rho: float
    method: str
    state: np.ndarray

    @property
    def residual(self):
        """res_rho, by which convergence is judged."""
        return self.res_rho


@results.readable(lambda self: results.SPACE)  # which proposes what all sizes of contacts have
class MixedSolution(box.Solution):
    """Result of a mixed system: a `Solution` whose residual is the merit over all blocks."""

    __slots__ = ()


def _advice(solution):
    """Advice for contacts in the plane, or in space: by the components of a contact, of which rolling has one or two more."""
    d, rolls = solution.r.size // max(len(solution.state), 1), solution.state.ndim == 2
    return results.PLANE if d - rolls == 2 else results.SPACE


def solve_fc2d(W, q, mu, method="auto", tol=1e-8, max_iter=None, r0=None, on_failure="raise", **options):
    """Contacts with friction in the plane: `solve_fc3d` with two components, (normal, tangential), for each contact.

    Examples
    --------
    >>> import nsds
    >>> s = nsds.solvers.solve_fc2d([[2.0, 0.0], [0.0, 1.0]], [-4.0, 3.0], mu=0.5)  # pressed with 2, sliding
    >>> s.r.tolist(), s.u.tolist(), s.state.tolist()
    ([2.0, -1.0], [0.0, 2.0], ['sliding'])
    """
    return judged(_local(requested(("solve_fc2d", "fc2d", method, tol, max_iter, options, r0, on_failure)), W, q, mu), on_failure)


def solve_fc3d(W, q, mu, method="auto", tol=1e-8, max_iter=None, r0=None, on_failure="raise", **options):
    """Contacts with Coulomb friction: ``u = W r + q``, ``K* ∋ u + mu ||u_T|| e_N ⟂ r ∈ K = {||r_T|| <= mu r_N}`` for each contact.

    So ``0 <= u_N ⟂ r_N >= 0``, and ``r_T = -mu r_N u_T / ||u_T||`` where a contact slides. Restitution is inside q already.

    Parameters
    ----------
    W : array_like or scipy.sparse (3 nc, 3 nc)
        Delassus matrix; need not be symmetric. Three rows for each contact: normal, two tangents.
    q : array_like (3 nc,)
        Velocities without contact forces.
    mu : float or array_like (nc,)
        Coefficients of friction.
    method, tol, max_iter
        See `nsds.solvers.methods` and `nsds.solvers.solver`, a record of which may take the place of all three; tol is for res_rho.
    r0 : array_like (3 nc,), optional
        First guess.
    on_failure : "raise", "warn" or "continue"
        What to do with a problem that was not solved.
    **options
        rho, local, seed, freeze and work_size of `nsds.solvers.solver`.

    Returns
    -------
    ContactSolution
        NamedTuple (r, u, status, n_iter, res_q, res_rho, method, state). ``res_rho = ||(F_N, F_T)|| / ||q||`` is the velocity by which
        contacts miss their laws: ``F_N = min(D_N r_N, u_N)``, ``F_T = D_T r_T - P(D_T r_T - u_T)``, P the projection onto the disk of
        radius ``mu D_T r_N``, D the largest entries in rows of W, so that units do not matter. ``res_q = ||r - P_K(r - uhat)|| / ||q||``,
        which other codes judge by, mixes velocities and impulses; "auto" goes on for a few steps where it is above tol.

    Raises
    ------
    ValueError, TypeError
        Wrong shapes, NaN or infinity, negative mu, negative diagonal of W, unknown method.
    SolverError
        Not solved and ``on_failure="raise"``.

    Examples
    --------
    >>> import nsds
    >>> s = nsds.solvers.solve_fc3d([[2, 0, 0], [0, 1, 0], [0, 0, 1]], [-4, 3, 4], mu=0.5)
    >>> s.r.round(12).tolist(), s.u.round(12).tolist(), s.state.tolist()
    ([2.0, -0.6, -0.8], [0.0, 2.4, 3.2], ['sliding'])
    """
    return judged(_local(requested(("solve_fc3d", "fc3d", method, tol, max_iter, options, r0, on_failure)), W, q, mu), on_failure)


def solve_rfc2d(W, q, mu, mu_r, method="auto", tol=1e-8, max_iter=None, r0=None, on_failure="raise", **options):
    """Contacts with rolling friction in the plane: `solve_rfc3d` with three components, (normal, tangential, rolling), for each contact.

    Examples
    --------
    >>> import nsds
    >>> s = nsds.solvers.solve_rfc2d([[2.0, 0, 0], [0, 1, 0], [0, 0, 1]], [-4, 3, 0.1], mu=0.5, mu_r=0.2)
    >>> s.r.tolist(), s.state.tolist()
    ([2.0, -1.0, -0.1], [['sliding', 'sticking']])
    """
    return judged(_local(requested(("solve_rfc2d", "rfc2d", method, tol, max_iter, options, r0, on_failure)), W, q, mu, mu_r), on_failure)


def solve_rfc3d(W, q, mu, mu_r, method="auto", tol=1e-8, max_iter=None, r0=None, on_failure="raise", **options):
    """Contacts with friction and rolling friction: as `solve_fc3d`, with five components (N, T1, T2, R1, R2) for each contact.

    ``u = W r + q``, ``K* ∋ u + (mu ||u_T|| + mu_r ||u_R||) e_N ⟂ r ∈ K = {||r_T|| <= mu r_N, ||r_R|| <= mu_r r_N}``.

    Parameters
    ----------
    W, q, mu, method, tol, max_iter, r0, on_failure, **options
        As in `solve_fc3d`, with five rows for each contact.
    mu_r : float or array_like (nc,)
        Coefficients of rolling friction: moment over normal force.

    Returns
    -------
    ContactSolution
        As `solve_fc3d`; state has a second column for the rolling.

    Raises
    ------
    ValueError, TypeError, SolverError
        As `solve_fc3d`.

    Examples
    --------
    >>> import nsds, numpy as np
    >>> s = nsds.solvers.solve_rfc3d(np.eye(5), [-2, 0.1, 0, 3, 4], mu=0.5, mu_r=0.25)
    >>> s.r.round(12).tolist(), s.state.tolist()
    ([2.0, -0.1, 0.0, -0.3, -0.4], [['sticking', 'sliding']])
    """
    return judged(_local(requested(("solve_rfc3d", "rfc3d", method, tol, max_iter, options, r0, on_failure)), W, q, mu, mu_r), on_failure)


def solve_gfc2d(M, H, q, b, mu, method="auto", tol=1e-8, max_iter=None, r0=None, on_failure="raise", **options):
    """Global contact problem in the plane: `solve_gfc3d` with two components for each contact.

    Examples
    --------
    >>> import nsds
    >>> s = nsds.solvers.solve_gfc2d([[2, 0], [0, 2]], [[1, 0], [0, 1]], q=[-4, 3], b=[0, 0], mu=0.5)
    >>> s.v.tolist(), s.r.tolist()
    ([0.0, 0.5], [4.0, -2.0])
    """
    return judged(_global(requested(("solve_gfc2d", "gfc2d", method, tol, max_iter, options, r0, on_failure)), M, H, q, b, mu), on_failure)


def solve_gfc3d(M, H, q, b, mu, method="auto", tol=1e-8, max_iter=None, r0=None, on_failure="raise", **options):
    """Global contact problem: ``M v = q + H r``, ``u = H^T v + b``, and Coulomb's law between u and r as in `solve_fc3d`.

    It is reduced to ``W = H^T M^-1 H``, ``q_local = H^T M^-1 q + b``: sparse where M falls apart into bodies.

    Parameters
    ----------
    M : array_like or scipy.sparse (n, n)
        Mass, or iteration matrix; regular, need not be symmetric.
    H : array_like or scipy.sparse (n, 3 nc)
        Directions of the contact forces.
    q : array_like (n,)
        Generalised impulse without contact.
    b : array_like (3 nc,)
        Velocities given at the contacts, restitution included.
    mu, method, tol, max_iter, r0, on_failure, **options
        As in `solve_fc3d`. Two more methods do not form W: "nsgs_bodies" sweeps over the contacts, in memory and time that grow with
        their number, on all cores, with the same bits on any number of them; "newton_global" takes v and r together ([Notes], 16.25).

    Returns
    -------
    GlobalContactSolution
        NamedTuple (v, r, u, status, n_iter, res_q, res_rho, method, state); residuals relative to ``||q_local||``.

    Raises
    ------
    ValueError, TypeError, SolverError
        As `solve_fc3d`; M is singular.

    Examples
    --------
    >>> import nsds, numpy as np
    >>> s = nsds.solvers.solve_gfc3d(2 * np.eye(3), np.eye(3), q=[-4, 3, 0], b=[0, 0, 0], mu=0.5)
    >>> s.v.tolist(), s.r.tolist()
    ([0.0, 0.5, 0.0], [4.0, -2.0, 0.0])
    """
    return judged(_global(requested(("solve_gfc3d", "gfc3d", method, tol, max_iter, options, r0, on_failure)), M, H, q, b, mu), on_failure)


def solve_grfc3d(M, H, q, b, mu, mu_r, method="auto", tol=1e-8, max_iter=None, r0=None, on_failure="raise", **options):
    """Global contact problem with rolling friction: `solve_gfc3d` with the law of `solve_rfc3d`.

    Examples
    --------
    >>> import nsds, numpy as np
    >>> s = nsds.solvers.solve_grfc3d(np.eye(5), np.eye(5), q=[-2, 0.1, 0, 3, 4], b=np.zeros(5), mu=0.5, mu_r=0.25)
    >>> s.v.round(12).tolist()
    [0.0, 0.0, 0.0, 2.7, 3.6]
    """
    return judged(
        _global(requested(("solve_grfc3d", "grfc3d", method, tol, max_iter, options, r0, on_failure)), M, H, q, b, mu, mu_r), on_failure
    )


def solve_generic(M, q, blocks, method="auto", tol=1e-8, max_iter=None, z0=None, on_failure="raise", **options):
    """Equations, complementarity and friction in one system: ``w = M z + q``, cut into blocks with a law each.

    Parameters
    ----------
    M : array_like or scipy.sparse (n, n)
        Matrix.
    q : array_like (n,)
        Vector.
    blocks : sequence of tuples
        In the order of the unknowns: ``("equality", size)``, w = 0 with z free; ``("lcp", size)``, 0 <= z ⟂ w >= 0; ``("friction", d,
        mu)``, one contact with d = 2 or 3, z its reaction and w its velocity as in `solve_fc3d`; ``("rolling", d, mu, mu_r)``, one contact
        with d = 3 (in the plane) or 5.
    method, tol, max_iter, on_failure, **options
        As in `solve_fc3d`; without friction blocks those of `solve_mlcp`.
    z0 : array_like (n,), optional
        First guess.

    Returns
    -------
    MixedSolution
        NamedTuple (z, w, status, n_iter, residual, method); residual is res_rho over all blocks, the parts of equations and
        complementarity being w and min(D z, w).

    Raises
    ------
    ValueError, TypeError, SolverError
        As `solve_fc3d`; unknown law, sizes that do not add up to n.

    Examples
    --------
    >>> import nsds, numpy as np
    >>> M = np.diag([2.0, 2, 1, 1, 4])
    >>> s = nsds.solvers.solve_generic(M, [-4, 3, 1, -1, 8], [("friction", 2, 0.5), ("lcp", 2), ("equality", 1)])
    >>> s.z.tolist(), s.w.tolist()
    ([2.0, -1.0, 0.0, 1.0, -2.0], [0.0, 1.0, 1.0, 0.0, 0.0])
    """
    owner = "solve_generic"
    results.check_policy(owner, on_failure)
    q = _checks.array(owner, "q", q, n_dims=1)
    M = box_forms.matrix(owner, "M", M, (q.size, q.size))
    blocks = generic.checked_blocks(owner, q.size, blocks)
    z0 = None if z0 is None else _checks.array(owner, "z0", z0, shape=q.shape)
    if not any(block.law in ("friction", "rolling") for block in blocks):
        lower = np.concatenate([np.full(block.size, -np.inf if block.law == "equality" else 0.0) for block in blocks] or [q])
        return box.solve_mlcp(M, q, lower, np.inf, method, tol, max_iter, z0, on_failure, **options)
    problem, place = generic.embedded(M, q, blocks)
    kind = kind_of(problem.d, any(block.law == "rolling" for block in blocks))
    choice = table.asked(owner, kind, method, tol, max_iter, options)
    r0 = np.zeros(problem.q.size)
    r0[place] = 0.0 if z0 is None else z0
    s = solve_contacts(problem, *choice, r0)
    r, u, residual = s.r, s.u, s.residual
    if s.success and not (M.data if hasattr(M, "tocoo") else M).any():  # r has no unit then, but is 0 in all
        r, u, residual = np.zeros_like(r), problem.q, 0.0
    return judged(MixedSolution(r[place], u[place], s.status, s.n_iter, residual, s.method), on_failure)


def contacts(owner, kind, W, q, mu, mu_r, is_checked=True):
    """`Problem` of a kind without M; without checks, numbers may be any."""
    d, disk = _SIZES[kind]
    vector, matrix, coefficients = _checks.floats, box_forms.entries, forms.coefficients
    if is_checked:
        vector, matrix, coefficients = _checks.array, box_forms.matrix, forms.friction
    q = vector(owner, "q", q, n_dims=1)
    n = forms.count(owner, d, "q", q)
    W = matrix(owner, "W", W, (q.size, q.size))
    if is_checked:
        forms.check_diagonal(owner, "W", W)
    return Problem(forms.disks(n, disk), coefficients(owner, mu, mu_r, n), *forms.block_rows(W, d), q)


def kind_of(d, rolls):
    """Kind of problems of contacts with d components."""
    return {2: "fc2d", 3: "rfc2d" if rolls else "fc3d", 5: "rfc3d"}[d]


def solve_contacts(problem, method, options, r0=0.0, check=None):
    """`ContactSolution` of a problem.

    check: function that returns the problem with its numbers checked, called where compiled code has refused them; None where they are
    checked already. A problem that is solved at once is solved, judged and classified by one call of compiled code.
    """
    q = problem.q
    if not q.size:
        return ContactSolution(q.copy(), q.copy(), CONVERGED, 0, 0.0, 0.0, method.name, states(problem, q, q))
    result = _by(problem, method, options, r0, check, True)
    if method.name == "auto" and result.status in _MAY_BE_SOLVED and options.max_iter == 0.0:
        return _by_others(result, problem, options, r0)
    return result


def _by_others(result, problem, options, r0):
    """The first other method for such contacts that has a solution within its limit; else the given result."""
    kind, n_iter = kind_of(problem.d, (problem.disk != problem.d - 1).any()), result.n_iter
    for name, limit in _OTHERS + (_OTHERS_OF_MANY if problem.disk.size > _FEW else ()):
        if table.treats(name, kind) and (table.treats(name, "rfc3d") or (problem.disk >= 0).all()):
            other = _by(problem, table.find(name, kind), options._replace(max_iter=float(limit)), r0, None, False)
            n_iter += other.n_iter
            if other.success:
                return other._replace(n_iter=n_iter, method=f"auto: {name}")
    return result


def _by(problem, method, options, r0, check, proves):
    """`ContactSolution` by one method; proves: whether, without a solution, a proof is sought that there is none."""
    # 1. try
    key = key_of(method, options, problem.d, problem.row, problem.column)
    kept = WORKSPACES.taken(key) or _workspace(method, options, problem)
    own = kept.problem
    own.disk[...], own.mu[...], own.W[...], own.q[...], kept.guess[...] = problem.disk, problem.mu, problem.W, problem.q, r0
    status, (answer, codes) = int(kept.solve()), kept.more
    res_rho, res_q, n_iter, place = answer[:_N_ANSWER].tolist()
    # 2. certify: in other units, with a proof, or closer where only one of the residuals is met
    if status == REFUSED:
        result = _in_other_units(check() if check else problem, method, options, kept.guess, proves)
    elif status != CONVERGED or not res_rho < np.inf or (method.name == "auto" and options.tol < res_q < np.inf):
        name = name_of(method, auto.ORDER, place)
        result = _completed(_Scaled(own, own, 0, 0), options, kept.z, status, int(n_iter), name, proves)
    # 3. result
    else:
        name, state = name_of(method, auto.ORDER, place), _texts(own, codes)
        result = ContactSolution(kept.z.copy(), kept.w.copy(), status, int(n_iter), res_q, res_rho, name, state)
    WORKSPACES.put_back(key, kept)
    return result


def _workspace(method, options, problem):
    """A `Workspace` for a method and a pattern."""
    own = Problem(*map(np.array, problem))
    arguments = table.arguments_of(method, options, own, problem.d, np.zeros(problem.q.size))
    more = np.zeros(_N_ANSWER + LARGEST_BLOCK), np.zeros(2 * problem.disk.size, np.int64)
    return Workspace(solve_and_judge, arguments, _work(method, problem, options), more)


def _work(method, problem, options):
    """See `work_of`. Code that uses all cores is waited for: two such calls at once end the process."""
    return 0.0 if method.name == "nsgs_parallel" else work_of(problem.W.size, problem.q.size, options.max_iter)


@kernel
def solve_and_judge(solver, r0, problem, options, r, u, info, work, iwork, answer, states):
    """Solve a problem from a guess and judge the result; REFUSED where a number is NaN, too large or small, or of the wrong sign.

    solver: the address of its compiled code. Out: answer (res_rho, res_q, n_iter and the place of the method; and work (5,)), states of
    `classify`. res_rho is infinite where r is. The rest as in `nsds.solvers.contact.signature`.
    """
    if not _is_ordinary(r0, problem):
        return REFUSED
    for i in range(problem.q.size):
        r[i] = r0[i]
    status = call_solver(solver, (problem, options, r, u, info, work, iwork))
    answer[0], answer[2], answer[3] = np.inf, info[0], info[3]
    if largest(r) < np.inf and _are_numbers(r):
        answer[1] = mixed_residual(problem, r, u, view(answer, _N_ANSWER, LARGEST_BLOCK))
        judge(MAX_ITER, 0, problem, options, r, u, info)
        answer[0] = info[1]
        classify(problem, r, u, states)
    return status


@kernel
def _is_ordinary(r0, problem):
    """Whether a problem is to be solved as it is: finite, W and q not of extreme size, q not 0, mu and the diagonal of W not negative."""
    mu, W, q = problem.mu, problem.W, problem.q
    d, is_good = q.size // problem.disk.size, _are_numbers(W) and _are_numbers(q) and _are_numbers(mu) and _are_numbers(r0)
    most_W, most_q = largest(W), largest(q)
    is_good &= (_LEAST <= most_W < _MOST or most_W == 0.0) and _LEAST <= most_q < _MOST and largest(r0) < np.inf
    for c in range(problem.disk.size):
        at = diagonal_block(problem.row, problem.column, c) * d * d
        is_good &= 0.0 <= mu[2 * c] < np.inf and 0.0 <= mu[2 * c + 1] < np.inf
        for a in range(d):
            is_good &= W[at + a * (d + 1)] >= 0.0
    return is_good


@tiny
def _are_numbers(x):
    """Whether nothing is NaN."""
    zero = 0.0
    for i in range(x.size):
        zero += 0.0 if x[i] == x[i] else 1.0
    return zero == 0.0


class _Scaled(NamedTuple):
    """A problem, and the same with q and W divided by powers of 2 with these exponents, which bring extreme numbers to a middle size."""

    problem: Problem
    middle: Problem
    of_q: int
    of_matrix: int


def _in_other_units(problem, method, options, r0, proves):
    """`ContactSolution` of a checked problem with numbers of any size, and with q = 0, of which r = 0 is a solution."""
    e_q, e_W = _exponent(problem.q), _exponent(problem.W)
    middle = problem._replace(q=np.ldexp(problem.q, -e_q), W=np.ldexp(problem.W, -e_W)) if e_q or e_W else problem
    options = options._replace(rho=float(np.ldexp(options.rho, e_W)))
    r0 = np.ldexp(r0, e_W - e_q)
    if problem.q.any():
        arguments = table.arguments_of(method, options, middle, problem.d, r0)
        status = int(left_at_interrupts(_work(method, problem, options), solve_repeatedly, 1, *arguments))
        r, info = arguments[-5], arguments[-3]
    else:
        status, info, r = CONVERGED, np.zeros(N_INFO), np.zeros_like(r0)
        if _judged(middle, options, r0)[1] == CONVERGED:
            r = r0
    name = name_of(method, auto.ORDER, info[3])
    return _completed(_Scaled(problem, middle, e_q, e_W), options, r, status, int(info[0]), name, proves)


def _completed(scaled, options, r, status, n_iter, name, proves):
    """`ContactSolution` of a point r, in units of the scaled problem, that a method has ended with."""
    problem, middle, e_q, e_W = scaled
    if not np.isfinite(r).all():
        r = np.zeros_like(r)
    if status == CONVERGED and name.startswith("auto") and not (e_q or e_W):
        r = _polished(problem, options, r)
    if proves and status in _MAY_BE_INFEASIBLE and infeasible.is_infeasible(middle, r):
        status = INFEASIBLE
    r = _times_power(r, e_q - e_W)
    u, _, res_rho = _judged(middle, options, np.ldexp(r, e_W - e_q))
    u = _times_power(u, e_q)
    if not (np.isfinite(r).all() and np.isfinite(u).all() and np.isfinite(res_rho)):  # too large to be written down
        r, u, status = np.zeros_like(r), problem.q.copy(), INFEASIBLE if status == INFEASIBLE else NON_FINITE
        res_rho = _judged(middle, options, r)[2]
    return ContactSolution(r.copy(), u, status, n_iter, mixed_residual_of(problem, r), res_rho, name, states(problem, r, u))


def _times_power(x, exponent):
    """``2^exponent x``; infinite where that is too large."""
    if exponent == 0:
        return x
    with np.errstate(over="ignore"):
        return np.ldexp(x, exponent)


def _exponent(x):
    """Power of 2 of the largest entry, where that is of extreme size; else 0."""
    largest = abs(x).max(initial=0.0)
    exponent = int(np.frexp(largest)[1]) if np.isfinite(largest) else 0
    return exponent if abs(exponent) > _EXTREME else 0


def _judged(problem, options, r):
    """(u, status, res_rho) of r."""
    u, info = np.zeros(r.size), np.zeros(N_INFO)
    status = judge(MAX_ITER, 0, problem, options, r, u, info)
    return u, int(status), float(info[1])


def mixed_residual_of(problem, r):
    """res_q."""
    return float(mixed_residual(problem, r, np.zeros(r.size), np.zeros(5)))


def _polished(problem, options, r):
    """r after a few steps of Newton's method where res_q is above tol; that it falls is not promised."""
    res_q = mixed_residual_of(problem, r)
    for _ in range(_POLISHING_ROUNDS):
        if not options.tol < res_q < np.inf:
            break
        _, _, res_rho = _judged(problem, options, r)
        tol = max(0.1 * res_rho * options.tol / res_q, _LEAST_TOL)
        tighter = options._replace(tol=tol, max_iter=float(_POLISHING_STEPS))
        arguments = table.arguments_of(table.find("newton_jm", "fc3d"), tighter, problem, problem.d, r.copy())
        solve_repeatedly(1, *arguments)
        new = arguments[-5]
        better = mixed_residual_of(problem, new)
        if not better < res_q or _judged(problem, options, new)[1] != CONVERGED:
            break
        r, res_q = new, better
    return r


def states(problem, r, u):
    """ "open", "sticking" or "sliding", (nc,); with rolling (nc, 2)."""
    codes = np.zeros(2 * problem.disk.size, np.int64)
    classify(problem, r, u, codes)
    return _texts(problem, codes)


def _texts(problem, codes):
    """States as text, of the codes of `classify`."""
    rolls = any(disk < problem.d - 1 for disk in problem.disk.tolist())
    return _STATES[codes.reshape(-1, 2) if rolls else codes[::2]]


def _local(request, W, q, mu, mu_r=0.0):
    """`ContactSolution` of a problem with a Delassus matrix."""
    owner, choice = request.owner, request.choice()
    problem = contacts(owner, request.kind, W, q, mu, mu_r, is_checked=False)
    r0 = request.first_guess("r0", problem.q.shape)

    def check():
        checked = contacts(owner, request.kind, W, q, mu, mu_r)
        _checks.finite(owner, "r0", np.asarray(r0))
        return checked

    return solve_contacts(problem, *choice, r0, check)


def _global(request, M, H, q, b, mu, mu_r=0.0):
    """`GlobalContactSolution` of a problem with M and H."""
    owner, (method, options) = request.owner, request.choice()
    d, disk = _SIZES[request.kind[1:]]
    M, H, q, b = forms.global_matrices(owner, d, M, H, q, b)
    mu = forms.friction(owner, mu, mu_r, b.size // d)
    r0 = np.zeros(b.size) if request.guess is None else _checks.array(owner, "r0", request.guess, shape=b.shape)
    M, H, q, b, e_v, e_r, e_u, e_W = _of_middle_size(M, H, q, b)
    options, r0 = options._replace(rho=float(np.ldexp(options.rho, e_W))), np.ldexp(r0, -e_r)
    given = global_newton.Problem(np.full(b.size // d, disk), mu, M, H, q, b)
    if method.name == "newton_global" and b.size:
        s = _by_newton(owner, given, options, r0)
    else:
        solve_M, inverse_H = forms.inverse_times(owner, M, H)
        v = solve_M(q)
        if method.name == "nsgs_bodies" and b.size:
            s = _by_panels(given, forms.panels(d, H, inverse_H), v, options, r0)
        else:
            problem = contacts(owner, request.kind[1:], H.T @ inverse_H, H.T @ v + b, *mu.reshape(-1, 2).T)
            local = solve_contacts(problem, method, options, r0)
            s = GlobalContactSolution(v + inverse_H @ local.r, *local)
    s = s._replace(v=_times_power(s.v, e_v), r=_times_power(s.r, e_r), u=_times_power(s.u, e_u))
    if not all(np.isfinite(x).all() for x in s[:3]):  # too large to be written down
        s = s._replace(v=np.zeros_like(s.v), r=np.zeros_like(s.r), u=np.zeros_like(s.u), status=NON_FINITE)
    return s


def _of_middle_size(M, H, q, b):
    """(M, H, q, b, exponents of v, r, u and W) of a global problem, where numbers of extreme size are scaled by powers of 2."""
    entries = [X.data if hasattr(X, "tocsr") else X for X in (M, H)]
    m, h, e_q, e_b = (int(np.frexp(abs(x).max(initial=0.0))[1]) for x in (*entries, q, b))
    if max(abs(m), abs(h), abs(e_q), abs(e_b)) <= _EXTREME:
        return M, H, q, b, 0, 0, 0, 0
    e_v = max(e_q - m if q.any() else -(10**6), e_b - h if b.any() else -(10**6))
    e_v = e_v if e_v > -(10**6) else 0
    M, H = _scaled(M, -m), _scaled(H, -h)
    return M, H, np.ldexp(q, -m - e_v), np.ldexp(b, -h - e_v), e_v, m + e_v - h, h + e_v, 2 * h - m


def _scaled(matrix, exponent):
    """A dense or sparse matrix times a power of 2."""
    if not hasattr(matrix, "tocsr"):
        return np.ldexp(matrix, exponent)
    matrix = matrix.copy()
    matrix.data = np.ldexp(matrix.data, exponent)
    return matrix


def _of_diagonal(given, W):
    """`Problem` of a global problem with diagonal blocks W (n, d, d) only, for `states`."""
    n = W.shape[0]
    return Problem(given.disk, given.mu, np.arange(n + 1), np.arange(n), W.reshape(-1), given.b)


def _by_panels(given, touched, v_free, options, r):
    """`GlobalContactSolution` by `nsds.solvers.contact.panels.nsgs_bodies`; touched: `nsds.solvers.contact.forms.Panels`."""
    n = given.disk.size
    d = given.b.size // n
    floats, integers = panels.work_size(n, v_free.size, d)
    v, u, info, W = np.zeros(v_free.size), np.zeros(given.b.size), np.zeros(N_INFO), np.zeros((n, d, d))
    panels.blocks(d, touched.panel, touched.H, touched.G, W.reshape(-1))
    work, iwork = np.zeros(floats), np.zeros(integers, np.int64)
    status = panels.nsgs_bodies(panels.Problem(given.disk, given.mu, *touched, v_free, given.b), options, r, v, u, info, work, iwork)
    state = states(_of_diagonal(given, W), r, u)
    return GlobalContactSolution(v, r, u, int(status), int(info[0]), float(info[2]), float(info[1]), "nsgs_bodies", state)


def _by_newton(owner, given, options, r):
    """`GlobalContactSolution` by `nsds.solvers.contact.global_newton.newton_global`."""
    solve_M = forms.factorised(owner, given.M)
    W = global_newton.diagonal_blocks(given.M, given.H, given.b.size // given.disk.size)
    scale = np.linalg.norm(given.H.T @ solve_M(given.q) + given.b) or 1.0
    found = global_newton.newton_global(given, W, scale, options, solve_M(given.q + given.H @ r), r)
    return GlobalContactSolution(*found, "newton_global", states(_of_diagonal(given, W), *found[1:3]))
