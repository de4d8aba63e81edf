"""The table of methods for contact problems: a new solver is one module and one line here."""

from functools import cache
from typing import NamedTuple

import numpy as np

from nsds import _checks, _jit
from nsds.solvers.contact import (
    accelerated,
    admm,
    auto,
    cpg,
    enumeration,
    fixed_points,
    interior_point,
    lemke,
    newton,
    nsgs,
    projections,
    proximal,
)
from nsds.solvers.contact.local import LOCALS
from nsds.solvers.contact.signature import SOLVER


class Method(NamedTuple):
    """A solver: its kernel, the scratch it needs, what it assumes of the problem, the numbers of components of a contact it treats."""

    kernel: object
    work_size: object
    assumes: str
    components: tuple = (2, 3, 5)


METHODS = {
    "auto": Method(auto.auto, auto.work_size, "nothing; sweeps, then Newton island by island; see the result's method"),
    "nsgs": Method(nsgs.nsgs, nsgs.work_size, "positive semidefinite, and bodies of comparable mass; linear in the blocks"),
    "nsgs_parallel": Method(
        nsgs.nsgs_parallel, nsgs.parallel_work_size, "as nsgs; contacts by colour, on all cores, with the same bits on any number of them"
    ),
    "accelerated": Method(
        accelerated.accelerated,
        accelerated.work_size,
        "nearly symmetric positive semidefinite, redundant too; one product with W an iteration",
    ),
    "extragradient": Method(
        projections.extragradient, projections.work_size, "positive semidefinite, unsymmetric too; two products with W an iteration"
    ),
    "fixed_point": Method(
        projections.fixed_point, projections.work_size, "symmetric positive semidefinite; one product with W an iteration"
    ),
    "tresca": Method(fixed_points.tresca, fixed_points.work_size, "nearly symmetric positive semidefinite; proved for small mu"),
    "aclm": Method(fixed_points.aclm, fixed_points.work_size, "nearly symmetric positive semidefinite; proved for small mu"),
    "panagiotopoulos": Method(
        fixed_points.panagiotopoulos, fixed_points.work_size, "as tresca; slow where normal and tangential parts are strongly coupled"
    ),
    "newton_ac": Method(newton.newton_ac, newton.work_size, "a guess not too far off; unsymmetric and redundant too; up to 8192 contacts"),
    "newton_jm": Method(newton.newton_jm, newton.work_size, "as newton_ac"),
    "newton_natural": Method(newton.newton_natural, newton.work_size, "as newton_ac"),
    "newton_fb": Method(newton.newton_fb, newton.work_size, "as newton_ac; no rolling friction", (2, 3)),
    "proximal": Method(proximal.proximal, proximal.work_size, "redundant and unsymmetric too; robust; up to 8192 contacts"),
    "interior_point": Method(
        interior_point.interior_point,
        interior_point.work_size,
        "positive semidefinite, redundant too; no use for a guess; up to 8192 contacts",
    ),
    "admm": Method(admm.admm, admm.work_size, "positive semidefinite, redundant too; up to 8192 contacts"),
    "cpg": Method(cpg.cpg, cpg.work_size, "in the plane; symmetric positive semidefinite; not proved to converge", (2,)),
    "enumerate": Method(enumeration.enumeration, enumeration.work_size, "in the plane; any matrix; up to 10 contacts", (2,)),
    "lemke": Method(lemke.lemke, lemke.work_size, "in the plane; copositive plus; up to 8192 contacts", (2,)),
}


BODIES = "bodies"
_MOST = 2**53  # of whole numbers that are kept as floats
_AIM, _TOL, _INEXACT = 1e-10, 1e-4, 0.1
OPTIONS = np.dtype([("method", "S32"), *((name, "<f8") for name in ("tol", "max_iter", "local", "rho", "seed", "freeze", "inexact"))])


def contact_solver(method="auto", *, tol=None, max_iter=None, local="auto", rho=None, seed=None, freeze=None, inexact=_INEXACT):
    """Choice of a solver of contact problems for `nsds.simulate`, as a record; of systems of rigid bodies.

    Parameters
    ----------
    method : str
        A name from `contact_methods`; "bodies": sweeps over the contacts that act on the velocities of the bodies, without a Delassus
        matrix; or "auto": the former for a few blocks of constraints, the latter for many. Methods that are named build the matrix,
        for up to 512 blocks where contacts are detected; beyond, the status says UNSUITED.
    tol : float, optional
        Largest residual that counts as converged, relative to the velocities without impulses. By default 1e-4, whatever the number of
        contacts; methods with a matrix are asked for 1e-10, which they mostly reach, and equations hold as `newton_tol` of the scheme says.
    max_iter, local, rho, seed, freeze
        See `nsds.solvers.solve_fc3d`.
    inexact : float
        A step whose residuals, of contacts, equations and balances of momentum, are larger than asked and at most this is taken with the
        status INEXACT, and the run goes on; beyond it a step has failed. Errors are velocities relative to those at hand: what contacts
        would do without impulses, and the sum of what a body's momentum, forces and impulses are worth.

    Raises
    ------
    ValueError, TypeError
        Unknown name, or an option out of its range.

    Notes
    -----
    Coulomb's law is no convex problem, and sweeps over many contacts with much friction may go on without getting closer. They then go on
    with less momentum; after that, the slip term ``mu ||u_T||`` that the law adds to u_N follows the velocities more and more slowly, and
    is held in the end. The problem with this term held is convex, and sweeps solve it. Its solution balances momentum, friction opposes
    slip, and contacts do no work beyond the tolerance; but u_N of contacts that slide is off by as much as the term. Such a step is
    INEXACT (300 spheres that settle, mu = 0.6: every tenth step; 1000: 4 of 10; u_N is off by some mm/s at most).
    Physics engines do the like silently: many stop after a fixed number of sweeps whatever the residual is, and others solve the convex
    problem with a term of zero, in which all that slides lifts off with ``mu ||u_T||``.

    Examples
    --------
    >>> import nsds
    >>> nsds.solvers.contact_solver("bodies", tol=1e-4, max_iter=1000)["method"].item()
    b'bodies'
    """
    if not isinstance(method, str) or (method != BODIES and method not in METHODS):
        raise ValueError(f"contact_solver: method must be one of {', '.join([BODIES, *METHODS])}, got {method!r}")
    record = np.zeros((), OPTIONS)
    record["method"] = method.encode()
    for name, value in zip(OPTIONS.names[1:-1], options(1.0 if tol is None else tol, max_iter, local, rho, seed, freeze), strict=True):
        record[name] = value
    record["tol"] = 0.0 if tol is None else tol
    record["inexact"] = _checks.number("contact_solver", "inexact", inexact, low=0.0)
    return record


def chosen(choice, d):
    """(name, Method, kernel options) of what a caller passed: None, a method's name, or a record from `contact_solver`.

    The last three options, which methods do not read: the tolerance of sweeps over bodies, what counts as converged, and as INEXACT.
    """
    if choice is None or isinstance(choice, str):
        choice = contact_solver() if choice is None else contact_solver(choice)
    if not isinstance(choice, (np.ndarray, np.void)) or choice.dtype != OPTIONS:
        raise TypeError(f"solver: rigid bodies want a method's name or a record from nsds.solvers.contact_solver, got {choice!r}")
    name = choice["method"].item().decode()
    tol, *others, inexact = (choice[field].item() for field in OPTIONS.names[1:])
    return name, find("auto" if name == BODIES else name, d), np.array([tol or _AIM, *others, tol or _TOL, tol or _TOL, inexact])


def options(tol=1e-8, max_iter=None, local="auto", rho=None, seed=None, freeze=None, owner="solver"):
    """Options of contact solvers as their kernels take them.

    Parameters
    ----------
    tol : float
        Largest res_q that counts as converged.
    max_iter : int, optional
        Iteration limit; the method's own, if not given.
    local : str
        How one contact is solved while the others are held: a name from `nsds.solvers.contact.local.LOCALS`.
    rho : float, optional
        Step or penalty of the methods that have one.
    seed : int, optional
        Of nsgs: go through the contacts in another order every time, which it determines.
    freeze : int, optional
        Of nsgs: sweeps for which a contact that has come to rest is left out.
    owner : str
        The function that errors name.
    """
    if not isinstance(local, str) or local not in LOCALS:
        raise ValueError(f"{owner}: local must be one of {', '.join(LOCALS)}, got {local!r}")
    counts = [
        0 if value is None else _checks.integer(owner, name, value, low=1, high=_MOST)
        for name, value in (("max_iter", max_iter), ("seed", seed), ("freeze", freeze))
    ]
    return np.array(
        [
            _checks.number(owner, "tol", tol, above=0.0),
            counts[0],
            LOCALS.index(local),
            0.0 if rho is None else _checks.number(owner, "rho", rho, above=0.0),
            *counts[1:],
        ],
        dtype=float,
    )


def checked_options(owner, tol, max_iter, given):
    """`options` of what a caller gave, by name."""
    names = [name for name in OPTIONS.names[1:] if name not in ("tol", "max_iter", "inexact")]
    unknown = [name for name in given if name not in names]
    if unknown:
        raise TypeError(f"{owner}: options must be {', '.join(names)}, got {unknown[0]!r}")
    return options(tol, max_iter, **given, owner=owner)


GLOBAL_METHODS = {
    "nsgs_bodies": "as nsgs, without forming W: time and memory grow with the contacts; on all cores",
    "newton_global": "as newton_ac, for v and r together, without forming W; SuperLU",
}


def contact_methods(d=3, form="reduced"):
    """Names of the methods that treat contacts of d components, and what each assumes of the problem.

    Parameters
    ----------
    d : 2, 3 or 5
        In the plane; in space, or in the plane with rolling friction; in space with rolling friction.
    form : "reduced" or "global"
        Problems of `nsds.solvers.solve_fc3d` and its like, or those of `nsds.solvers.solve_gfc3d`, which have two methods more.

    Examples
    --------
    >>> import nsds
    >>> nsds.solvers.contact_methods(2)["lemke"]
    'in the plane; copositive plus; up to 8192 contacts'
    """
    if not isinstance(form, str) or form not in ("reduced", "global"):
        raise ValueError(f"contact_methods: form must be 'reduced' or 'global', got {form!r}")
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or d not in (2, 3, 5):
        raise ValueError(f"contact_methods: d must be 2, 3 or 5, got {d!r}")
    reduced = {name: method.assumes for name, method in METHODS.items() if d in method.components}
    return reduced | (GLOBAL_METHODS if form == "global" else {})


def find(name, d, owner="solver", form="reduced"):
    """The `Method` of a name, if it treats contacts of d components."""
    if not isinstance(name, str) or name not in contact_methods(d):
        elsewhere = isinstance(name, str) and name in METHODS
        why = f", which is for contacts {METHODS[name].assumes.split(';')[0]}" if elsewhere else ""
        raise ValueError(f"{owner}: method must be one of {', '.join(contact_methods(d, form))}, got {name!r}{why}")
    if name == "nsgs_parallel":
        _checks.require_threads("solver", name)
    return METHODS[name]


def address(method):
    """Address of a method's compiled code, for kernels that call it."""
    return _address(method.kernel)


@cache
def _address(compiled):
    return np.uintp(_jit.address(SOLVER, compiled))
