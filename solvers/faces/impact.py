"""Impacts from Python: checks, conversion, and a result that says what happened."""

from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.solvers import results
from nsds.solvers.box import forms
from nsds.solvers.impact import LAWS
from nsds.solvers.impact.signature import N_INFO, Impact
from nsds.status import MAX_ITER, NON_FINITE

_ADVICE = {
    MAX_ITER: ("the impact does not end: bodies without loss are held from both sides, or data differ by too many orders of magnitude", ()),
    NON_FINITE: ("numbers grew beyond what floating point holds: look at the size of the matrices and velocities", ()),
}


@results.readable(lambda self: _ADVICE)
class ImpactSolution(NamedTuple):
    """Velocities and impulses after an impact.

    v: of the coordinates, None where the impact was given by W; u: of the contacts, ``u = H v``; P: impulses of the contacts. residual:
    the largest approach speed left, relative to the largest speed before; n_iter: steps of the integration.
    """

    v: np.ndarray | None
    u: np.ndarray
    P: np.ndarray
    status: int
    n_iter: int
    residual: float
    method: str


def solve_multiple_impact(
    M=None, H=None, v=None, e=None, stiffness=1.0, exponent=1.0, *, mu=0.0, dimension=1, W=None, u=None, tol=1e-11, on_failure="raise"
):  # fmt: skip
    """Impact of several contacts at once, by the law of Liu, Zhao and Brogliato: velocities after it, and impulses.

    Contacts are springs that deform while positions stay: ``F_j = K_j D_j^eta`` with deformations D_j, ``M dv = H^T F ds``. A contact that
    opens gives back the part e_j^2 of the energy that it took while it closed. One contact alone obeys Newton's law, ``u+ = -e u-``. With
    friction ``dP_T = -mu dP_N u_T / ||u_T||`` where a contact slips; what keeps one that sticks so is at most ``mu dP_N``.

    Parameters
    ----------
    M : array_like or scipy.sparse (n, n)
        Mass matrix, symmetric positive definite.
    H : array_like or scipy.sparse (m, n)
        Directions of the closed contacts: ``u = H v``, negative where a contact closes. With friction a contact has dimension rows, the
        normal one and then its tangents.
    v : array_like (n,)
        Velocities before the impact.
    e : float or array_like (contacts,)
        Energetic restitution in [0, 1].
    stiffness : float or array_like (contacts,)
        Stiffnesses of the contacts, positive; only their ratios count.
    exponent : float >= 1
        eta, of all contacts: 1 linear, 1.5 Hertz.
    mu : float or array_like (contacts,)
        Coefficients of friction.
    dimension : 1, 2 or 3
        Rows of a contact: 1 without friction, else contacts in the plane or in space.
    W, u : array_like or scipy.sparse (m, m), (m,)
        Instead of M, H and v: the Delassus matrix ``W = H M^-1 H^T`` and the velocities of the contacts.
    tol : float
        Error of a step of the integration, relative to the largest velocity.
    on_failure : "raise", "warn" or "continue"
        What to do where the impact does not end.

    Returns
    -------
    ImpactSolution
        NamedTuple (v, u, P, status, n_iter, residual, method) with ``success`` and ``message``.

    Raises
    ------
    ValueError, TypeError
        Wrong shapes or ranges, NaN or infinity; both forms, or neither; M that is not positive definite.
    SolverError
        The impact does not end and ``on_failure="raise"``.

    Notes
    -----
    Liu, Zhao, Brogliato, Proceedings of the Royal Society A 464 (2008) 3193 and 465 (2009) 1, with friction 465 (2009) 2267; it is
    integrated in the deformations, which gives the limit of infinitely small steps of impulse. With ``e = 0`` energy is lost as soon as a
    contact begins to open; where others press on, it closes again (a convention: it is not the limit of small e where only some contacts
    are so).

    A light body between heavy ones bounces to and fro while these come to a halt, as often as the square root of the ratio of masses says,
    and each time is integrated: a chain whose masses differ by turns takes 2e4 steps for a ratio of 1e6, 1.3e5 for 1e8, and more than
    are allowed, 2e5, from about 1e9 on.

    Examples
    --------
    Newton's cradle of three balls with linear contacts, which is not the one of textbooks:

    >>> import nsds
    >>> s = nsds.solvers.solve_multiple_impact(M=[[1, 0, 0], [0, 1, 0], [0, 0, 1]], H=[[-1, 1, 0], [0, -1, 1]], v=[1, 0, 0], e=1)
    >>> s.v.round(6)
    array([-0.130262,  0.15023 ,  0.980032])

    A slender rod that falls on its inclined end, and sticks there at once:

    >>> W = [[2.5, -1.5], [-1.5, 2.5]]
    >>> nsds.solvers.solve_multiple_impact(W=W, u=[-1.0, 0.0], e=0.5, mu=1.0, dimension=2).u.round(6) + 0.0
    array([0.5, 0. ])
    """
    owner = "solve_multiple_impact"
    results.check_policy(owner, on_failure)
    given = _given(owner, M, H, v, W, u)
    d, e, mu = _contact_data(owner, given.u.size, dimension, e, mu)
    m, component = given.u.size, np.arange(given.u.size) % d
    stiffness = _of_contacts(owner, "stiffness", stiffness, m // d, high=np.inf)
    if not (stiffness > 0.0).all():
        raise ValueError(f"{owner}: stiffness must be positive, got {stiffness.min()}")
    exponent, tol = _checks.number(owner, "exponent", exponent, 1.0), _checks.number(owner, "tol", tol, high=1e-3, above=0.0)
    impact = Impact(*given.rows, component, mu, e, np.repeat(stiffness, d), exponent)
    return results.judged(_solved("multiple_impact", given, impact, tol), on_failure)


def solve_poisson_impact(
    M=None, H=None, v=None, e=None, mu=0.0, *, dimension=1, W=None, u=None, tol=1e-10, on_failure="raise"
):  # fmt: skip
    """Impact of several contacts at once by Poisson's law: velocities after it, and impulses.

    In compression contacts stop closing, ``0 <= u_C = u- + W P_C  ⟂  P_C >= 0``; in expansion each gives back at least the part e of its
    impulse, ``0 <= u+ = u_C + W P_E  ⟂  P_E - e P_C >= 0``. With friction these are the normal components, and tangential impulses are at
    most mu times the normal ones of their phase, against the tangential velocities at its end. One contact alone, without friction, obeys
    Newton's law.

    Parameters
    ----------
    M, H, v, W, u, on_failure
        As in `solve_multiple_impact`; with friction a contact has dimension rows, the normal one and then its tangents.
    e : float or array_like (contacts,)
        Restitution of normal impulses in [0, 1].
    mu : float or array_like (contacts,)
        Coefficients of friction.
    dimension : 1, 2 or 3
        Rows of a contact: 1 without friction, else contacts in the plane or in space.
    tol : float
        Tolerance of both problems, see `nsds.solvers.solve_lcp` and `nsds.solvers.solve_fc3d`.

    Returns
    -------
    ImpactSolution
        NamedTuple (v, u, P, status, n_iter, residual, method) with ``success`` and ``message``.

    Raises
    ------
    ValueError, TypeError, SolverError
        As `solve_multiple_impact`; a problem without a solution, where ``on_failure="raise"``.

    Notes
    -----
    Pfeiffer and Glocker 1996, chapter 8, without restitution of tangents. Energy does not grow where all e are equal.

    Examples
    --------
    Newton's cradle of three balls, where Newton's law with ``e = 1`` gives the same:

    >>> import nsds
    >>> s = nsds.solvers.solve_poisson_impact(M=[[1, 0, 0], [0, 1, 0], [0, 0, 1]], H=[[-1, 1, 0], [0, -1, 1]], v=[1, 0, 0], e=1)
    >>> s.v.round(6)
    array([-0.333333,  0.666667,  0.666667])

    A ball that is thrown obliquely on a wall slides in both phases:

    >>> s = nsds.solvers.solve_poisson_impact(W=[[1.0, 0.0], [0.0, 1.0]], u=[-1.0, 2.0], e=0.5, mu=0.2, dimension=2)
    >>> s.u.round(6)
    array([0.5, 1.7])
    """
    owner = "solve_poisson_impact"
    results.check_policy(owner, on_failure)
    given = _given(owner, M, H, v, W, u)
    n = given.u.size
    d, e, mu = _contact_data(owner, n, dimension, e, mu)
    tol = _checks.number(owner, "tol", tol, high=1e-3, above=0.0)
    impact = Impact(*given.rows, np.arange(n) % d, mu, e, np.ones(n), 1.0)
    return results.judged(_solved("poisson_impact", given, impact, tol), on_failure)


def _contact_data(owner, n, dimension, e, mu):
    """Rows of a contact; restitution and friction of the contact of each of n rows."""
    d = _checks.integer(owner, "dimension", dimension, 1, 3)
    if n % d:
        raise ValueError(f"{owner}: dimension={d} wants {d} rows of each contact, got {n} rows")
    e, mu = (_of_contacts(owner, field, value, n // d, high) for field, value, high in (("e", e, 1.0), ("mu", mu, np.inf)))
    if d == 1 and mu.any():
        raise ValueError(f"{owner}: friction wants dimension=2 or 3, and rows of tangents, got mu {mu.max():g} and dimension=1")
    return d, np.repeat(e, d), np.repeat(mu, d)


class _Given(NamedTuple):
    """Start of an impact: v and ``M^-1 H^T`` or None, velocities u of the contacts, compressed rows (row, column, entries) of W."""

    v: np.ndarray | None
    to_velocities: np.ndarray | None
    u: np.ndarray
    rows: tuple


def _given(owner, M, H, v, W, u):
    """Checked data of one of the two forms."""
    by_mass, by_contact = [part is not None for part in (M, H, v)], [part is not None for part in (W, u)]
    if not (all(by_mass) and not any(by_contact)) and not (all(by_contact) and not any(by_mass)):
        raise ValueError(f"{owner}: give M, H and v, or W and u")
    to_velocities = None
    if M is not None:
        v = _checks.array(owner, "v", v, n_dims=1)
        H = forms.dense(forms.matrix(owner, "H", H))
        if H.shape[1] != v.size:
            raise ValueError(f"{owner}: H must have {v.size} columns as v has {v.size} entries, got shape {H.shape}")
        M = forms.dense(forms.matrix(owner, "M", M, (v.size, v.size)))
        to_velocities = _inverse_times(owner, M, H.T)
        W, u = H @ to_velocities, H @ v
    else:
        u = _checks.array(owner, "u", u, n_dims=1)
    return _Given(v, to_velocities, u, forms.compressed_rows(forms.matrix(owner, "W", W, (u.size, u.size)))[:3])


def _solved(method, given, impact, tol):
    """The result by a law of impacts, a kernel of this name."""
    law, u, P, info = LAWS[method], given.u.copy(), np.zeros(given.u.size), np.zeros(N_INFO)
    floats, integers = law.work_size(impact.row, impact.column, impact.component)
    arguments = impact, tol, 0.0, u, P, info, np.zeros(floats), np.zeros(integers, np.int64)
    status = getattr(law, method)(*arguments)
    after = None if given.v is None else given.v + given.to_velocities @ P
    return ImpactSolution(after, u, P, int(status), int(info[0]), float(info[1]), method)


def _inverse_times(owner, M, B):
    """``M^-1 B`` of a matrix that must be symmetric positive definite."""
    if abs(M - M.T).max(initial=0.0) > 1e-10 * abs(M).max(initial=0.0):
        raise ValueError(f"{owner}: M must be symmetric")
    try:
        half = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        raise ValueError(f"{owner}: M must be positive definite") from None
    return np.linalg.solve(half.T, np.linalg.solve(half, B))


def _of_contacts(owner, field, value, m, high):
    """A number not negative for each contact, from one for all or one each."""
    value = _checks.array(owner, field, value)
    if value.shape not in ((), (m,)):
        raise ValueError(f"{owner}: {field} must be a number or have shape {(m,)}, got {value.shape}")
    if (value < 0.0).any() or (value > high).any():
        raise ValueError(f"{owner}: {field} must be in [0, {high:g}], got {_checks.shortened(value.tolist())}")
    return np.ascontiguousarray(np.broadcast_to(value, (m,)))
