"""The table of methods by class of problem, and choices of a method with its options: a new solver is one module and one line here.

Three classes of problems have a signature each: "box", scalar rows with bounds (`nsds.solvers.box.signature`), "contact", blocks with
cones (`nsds.solvers.contact.signature`), and "nonlinear", user functions (`nsds.solvers.nonlinear.signature`). A name may stand in
several; the class of the problem says which method is meant.
"""

import importlib
import inspect
from functools import cache, lru_cache
from types import FunctionType
from typing import NamedTuple

import numpy as np

from nsds import _checks, _jit
from nsds._jit.mistakes import users_callback
from nsds.solvers.box import own_law as box_own_law
from nsds.solvers.box import signature as box_signature
from nsds.solvers.contact import own_law as own_law_of_contacts
from nsds.solvers.contact import signature
from nsds.solvers.contact.local import LOCALS
from nsds.solvers.nonlinear import signature as nonlinear_signature


class Method(NamedTuple):
    """A solver: name, where its code is, what it assumes of the problem, the kinds that it treats.

    code: "module:kernel" in this package, or the compiled callback of a user's; None where there is a function with another signature, as
    for problems without a Delassus matrix. room: the function of the module, or of the user's, that tells the scratch it needs. options:
    those that it reads beside tol and max_iter. reorders: it gains from unknowns in an order that keeps M close to its diagonal. in_python:
    it is a function of Python, with another signature.
    """

    name: str
    code: object
    assumes: str
    kinds: tuple
    options: tuple = ()
    reorders: bool = False
    room: object = "work_size"
    in_python: bool = False
    law: int = 0  # address of the law of a user's own that it solves; see `own_law`
    sweeps: int = 0  # address of what is called where rigid bodies are swept; 0: the sweeps themselves

    @property
    def kernel(self):
        """Its compiled function."""
        return _part_of(*self.code.split(":")) if isinstance(self.code, str) else self.code

    @property
    def work_size(self):
        """Function that tells the words of scratch, floats and integers, of a problem's pattern."""
        return _part_of(self.code.split(":")[0], self.room) if isinstance(self.code, str) else self.room


@cache
def _part_of(module, name):
    """A function of a module of methods, which is imported when it is asked for."""
    return getattr(importlib.import_module(f"nsds.solvers.{module}"), name)


_BOX = ("lcp", "mlcp", "relay", "avi", "qp")
_SYMMETRIC = ("lcp", "mlcp", "relay", "qp")  # what multipliers of inequalities make unsymmetric is left out
_PLANE, _GLOBAL, _RIGID = ("fc2d", "gfc2d", "lagrangian_plane"), ("gfc2d", "gfc3d", "grfc3d"), ("rigid", "rigid_rolling")
_LAGRANGIAN = ("lagrangian_plane", "lagrangian_space", "lagrangian_rolling")
_NOT_ROLLING = (*_PLANE, "fc3d", "gfc3d", "rigid", "lagrangian_space")
_CONTACT = ("fc2d", "fc3d", "rfc2d", "rfc3d", *_GLOBAL, *_RIGID, *_LAGRANGIAN)

_BOX_METHODS = (
    Method("auto", "box.auto:auto",
           "nothing; newton_min or direct first, then up to five others; see the result's method", _BOX, reorders=True),
    Method("direct", "box.direct:direct",
           "a guess that says which z are at their bounds; one factorisation", _BOX, reorders=True),
    Method("newton_min", "box.newton_min:newton_min",
           "P, or positive semidefinite and consistent; linear in n for chains", _BOX, reorders=True),
    Method("proximal", "box.proximal:proximal",
           "positive semidefinite and consistent; linear in n for chains", _BOX, reorders=True),
    Method("lemke", "box.lemke:lemke", "copositive plus or P or bounded; dense, 8 n^2 bytes", _BOX),
    Method("murty", "box.murty:murty", "P; dense, 8 n^2 bytes", _BOX),
    Method("bard", "box.murty:bard", "P; dense, 8 n^2 bytes", _BOX),
    Method("cao_ferris", "box.cao_ferris:cao_ferris", "copositive plus on the recession cone; dense", ("avi", "qp")),
    Method("enumerate", "box.enumeration:enumeration", "any matrix; up to 2^20 bases", _BOX),
    Method("newton_fb", "box.newton_fb:newton_fb",
           "P0 and regular, but often more; a band of M", _BOX, reorders=True),
    Method("interior_point", "box.interior_point:interior_point",
           "positive semidefinite; a band of M", _BOX, reorders=True),
    Method("qp", "box.qp:qp", "symmetric positive semidefinite; a band of M", _SYMMETRIC, reorders=True),
    Method("interior_sparse", "box.interior_sparse:interior_sparse",
           "positive semidefinite, redundant too; sparse factors by SuperLU", ("avi", "qp"), in_python=True),
    Method("pgs", "box.gauss_seidel:pgs", "symmetric positive semidefinite or diagonally dominant", _BOX),
    Method("psor", "box.gauss_seidel:psor",
           "symmetric positive definite; weight: omega in (0, 2)", _BOX, options=("weight",)),
    Method("rpgs", "box.gauss_seidel:rpgs",
           "symmetric positive semidefinite; weight: regularisation", _BOX, options=("weight",)),
    Method("nsgs", "box.gauss_seidel:nsgs",
           "symmetric positive definite; block: unknowns of a block", _BOX, options=("block",), room="nsgs_work_size"),
    Method("cpg", "box.cpg:cpg", "symmetric positive definite", _SYMMETRIC),
    Method("latin", "box.latin:latin",
           "positive semidefinite; a band of M; weight: search direction", _BOX, options=("weight",), reorders=True),
)  # fmt: skip
_CONTACT_METHODS = (
    Method("auto", "contact.auto:auto",
           "nothing; sweeps, then Newton island by island; see the result's method", _CONTACT, options=("local", "rho", "seed", "freeze")),
    Method("nsgs", "contact.nsgs:nsgs",
           "positive semidefinite, and bodies of comparable mass; linear in the blocks", _CONTACT, options=("local", "seed", "freeze")),
    Method("nsgs_parallel", "contact.nsgs:nsgs_parallel",
           "as nsgs; contacts by colour, on all cores, with the same bits on any number of them", _CONTACT, options=("local",),
           room="parallel_work_size"),
    Method("schwarz", "contact.schwarz:schwarz",
           "as nsgs; for contacts that all act on each other, as on one elastic body", _CONTACT, options=("local",)),
    Method("accelerated", "contact.accelerated:accelerated",
           "nearly symmetric positive semidefinite, redundant too; one product with W an iteration", _CONTACT, options=("rho",)),
    Method("extragradient", "contact.projections:extragradient",
           "positive semidefinite, unsymmetric too; two products with W an iteration", _CONTACT, options=("rho",)),
    Method("fixed_point", "contact.projections:fixed_point",
           "symmetric positive semidefinite; one product with W an iteration", _CONTACT, options=("rho",)),
    Method("tresca", "contact.fixed_points:tresca",
           "nearly symmetric positive semidefinite; proved for small mu", _CONTACT, options=("rho",)),
    Method("aclm", "contact.fixed_points:aclm",
           "nearly symmetric positive semidefinite; proved for small mu", _CONTACT, options=("rho",)),
    Method("panagiotopoulos", "contact.fixed_points:panagiotopoulos",
           "as tresca; slow where normal and tangential parts are strongly coupled", _CONTACT, options=("rho",)),
    Method("newton_ac", "contact.newton:newton_ac",
           "a guess not too far off; unsymmetric and redundant too; up to 8192 contacts", _CONTACT, options=("rho",)),
    Method("newton_jm", "contact.newton:newton_jm", "as newton_ac", _CONTACT, options=("rho",)),
    Method("newton_natural", "contact.newton:newton_natural", "as newton_ac", _CONTACT, options=("rho",)),
    Method("newton_fb", "contact.newton:newton_fb", "as newton_ac; no rolling friction", _NOT_ROLLING, options=("rho",)),
    Method("proximal", "contact.proximal:proximal",
           "redundant and unsymmetric too; robust; up to 8192 contacts", _CONTACT, options=("rho",)),
    Method("least_norm", "contact.least_norm:least_norm",
           "impulses of least norm where they are redundant; positive semidefinite; up to 8192 contacts", _CONTACT),
    Method("interior_point", "contact.interior_point:interior_point",
           "positive semidefinite, redundant too; no use for a guess; up to 8192 contacts", _CONTACT),
    Method("admm", "contact.admm:admm", "positive semidefinite, redundant too; up to 8192 contacts", _CONTACT, options=("rho",)),
    Method("cpg", "contact.cpg:cpg", "in the plane; symmetric positive semidefinite; not proved to converge", _PLANE),
    Method("enumerate", "contact.enumeration:enumeration", "in the plane; any matrix; up to 10 contacts", _PLANE),
    Method("lemke", "contact.lemke:lemke", "in the plane; copositive plus; up to 8192 contacts", _PLANE),
    Method("nsgs_bodies", None,
           "as nsgs, without forming W: time and memory grow with the contacts; on all cores", _GLOBAL, options=("local",)),
    Method("newton_global", None, "as newton_ac, for v and r together, without forming W; SuperLU", _GLOBAL),
    Method("bodies", "contact.auto:auto",
           "nothing; sweeps on the velocities of rigid bodies, without forming W", _RIGID, options=("rho",)),
)  # fmt: skip


_NONLINEAR = ("ncp", "mcp", "vi", "soclcp")
_WITH_BOUNDS = ("ncp", "mcp", "vi")
_NONLINEAR_METHODS = (
    Method("auto", "nonlinear.auto:auto",
           "nothing; newton_fb first, then the others, then from other guesses; see the result's method", _NONLINEAR),
    Method("newton_fb", "nonlinear.newton:newton_fb",
           "a differentiable F that is P0 near the solution, but often less; dense, 8 n^2 bytes", _WITH_BOUNDS),
    Method("newton_natural", "nonlinear.newton:newton_natural",
           "a differentiable F and a guess not too far off; dense, 8 n^2 bytes", _NONLINEAR),
    Method("josephy", "nonlinear.josephy:josephy",
           "a differentiable F whose linearised problems can be solved; dense, 8 n^2 bytes", _WITH_BOUNDS),
    Method("extragradient", "nonlinear.projections:extragradient", "a monotone F", _NONLINEAR),
    Method("contraction", "nonlinear.projections:contraction", "a monotone F", _NONLINEAR),
)  # fmt: skip


class ProblemClass(NamedTuple):
    """Problems with one signature: the module that has it, its arguments, kinds of problems, methods, their options, methods of users.

    own: None where users bring none; own_law: the module of laws of users, and the option that has the address.
    """

    signature: object
    arguments: str
    kinds: tuple
    methods: dict
    options: tuple
    own: dict | None
    own_law: tuple | None


def _problem_class(module, arguments, kinds, methods, own, law=None):
    options = tuple(option for option in _NAMED if any(option in method.options for method in methods))
    return ProblemClass(module, arguments, kinds, {method.name: method for method in methods}, options, own, law)


_NAMED = ("weight", "block", "rho", "local", "seed", "freeze")  # options that some methods read
CLASSES = {
    "box": _problem_class(box_signature, "row, column, M, q, lower, upper, options, z, w, info, work, iwork", _BOX, _BOX_METHODS, {},
                          (box_own_law, "weight")),
    "contact": _problem_class(signature, "disk, mu, row, column, W, q, options, r, u, info, work, iwork", _CONTACT, _CONTACT_METHODS, {},
                              (own_law_of_contacts, "rho")),
    "nonlinear": _problem_class(nonlinear_signature, "problem, options, z, w, info, work, iwork", _NONLINEAR, _NONLINEAR_METHODS, None),
}  # fmt: skip
_CLASS_OF = {kind: one for one in CLASSES.values() for kind in one.kinds}
_BROUGHT = {}  # functions of users, and the scratch they need, None of a law, by name
_OF_STEPS = ("relay", *_RIGID, *_LAGRANGIAN)  # kinds of problems that `nsds.simulate` has
_MOST = 2**53  # of counts: kernels take options as floats
_BOX_TOL, _CONTACT_TOL = 1e-10, 1e-8  # tolerances where none is given
_AIM, _ENOUGH = 1e-10, 1e-4  # and of steps of mechanical systems: what methods with a matrix are asked for, and what counts as solved
_DEFAULT_LOCAL = "auto"

OPTIONS = np.dtype(
    [
        ("method", "S32"), ("tol", "<f8"), ("max_iter", "<i8"), ("weight", "<f8"), ("block", "<i8"), ("rho", "<f8"), ("local", "S16"),
        ("seed", "<i8"), ("freeze", "<i8"), ("inexact", "<f8"),
    ]
)  # fmt: skip


@_checks.naming_options
def solver(
    method="auto", *, tol=None, max_iter=None, weight=None, block=None, rho=None, local="auto", seed=None, freeze=None, inexact=0.1,
    work_size=(0, 0),
):  # fmt: skip
    """Choice of a solver and its options, as a record that `nsds.simulate` and the functions ``nsds.solvers.solve_...`` take.

    Parameters
    ----------
    method : str or function
        A name from `methods`, or a function of your own with the arguments of `nsds.solvers.box.signature` or of
        `nsds.solvers.contact.signature`; it is compiled for the class of the first problem that it is given, and its last line should be
        ``return conclude(...)`` so that only the residual says converged. Of rigid bodies also "bodies": sweeps over the contacts that act
        on the velocities of the bodies, without a Delassus matrix; their "auto" takes these for many blocks of constraints, and a matrix
        for few. Methods that are named build it, for up to 512 blocks where contacts are detected; beyond, the status says UNSUITED.
    tol : float, optional
        Largest residual that counts as converged, without unit and below 1: of rows with bounds, errors of w relative to the terms that
        cancel in it (1e-10 if not given; see `nsds.solvers.box.signature.judge`); of contacts, velocities by which they miss their laws,
        relative to those without impulses (1e-8; in simulations 1e-4, whatever the number of contacts, where methods with a matrix are
        asked for 1e-10, which they mostly reach, and equations of rigid bodies hold as `newton_tol` of the scheme says; by "auto" and
        `nsds.rattle` 1e-2 of more than 64 contacts where sweeps do not get closer soon, see the notes).
    max_iter : int, optional
        Iteration limit; if not given the method's own, which also bounds the time to a few seconds. Of "auto" for contacts: of all methods
        together.
    weight : float, optional
        Of rows with bounds: omega of psor, the regularisation of rpgs, the search direction of latin.
    block : int, optional
        Unknowns of a block of nsgs, of rows with bounds.
    rho : float, optional
        Of contacts: step or penalty of the methods that have one; of "bodies" the largest share of momentum.
    local : str
        Of contacts: how nsgs solves one contact while the others are held, a name from `nsds.solvers.contact.local.LOCALS`.
    seed : int, optional
        Of contacts: nsgs goes through them in another order every time, which the seed determines.
    freeze : int, optional
        Of contacts: sweeps for which nsgs leaves out a contact that has come to rest.
    inexact : float
        In simulations: a step whose residuals, of the one-step problem and of balances of momentum, are larger than asked and at most this
        is taken with the status INEXACT, and the run goes on; beyond it a step has failed. Errors are velocities relative to those at
        hand: what contacts would do without impulses, and the sum of what a body's momentum, forces and impulses are worth. Newton's
        iterations of Lagrangian and first-order systems count as INEXACT up to a hundredth of it.
    work_size : (int, int)
        Of a function of your own: floats and integers of scratch that it needs for each unknown.

    Raises
    ------
    ValueError
        Unknown name; an option out of range, or one that no method of this name reads.
    TypeError
        The function has another number of arguments; where it is used, it does not compile.

    Notes
    -----
    Many contacts by "auto" under `nsds.rattle`, without a tolerance and without joints: after ten sweeps, or at once while bodies are fast,
    a residual is enough that is a tenth of the velocities at contacts at the start of the step, and 1e-2 at most; after 50 sweeps 1e-2 is,
    after 300 they are given up. Sweeps begin without impulses where those of the step before are spoilt, and have 200 times the residual of
    none. The residual is relative to the norm of the velocities that contacts would have without impulses: at rest on the ground 1e-2 is
    ``0.01 g h`` for each contact with it, 0.5 mm/s at h = 5 ms. What is left of a gap the next step makes up for. Of 20 heaps of 100
    spheres that slide apart (mu = 0.5, radius 5 mm, h = 1 ms) and 10 that settle in a box (0.3, 0.1 m, 5 ms), energy, heights and widths at
    the end are those of steps solved to 1e-6, within standard errors of 0.1 to 2 %, and so is the deepest overlap of a run, 1.1 % and 0.65
    % of the radius, within a tenth of it. In the last quarter, when the piles have come apart or settled, overlaps are larger: the deepest
    one is 5e-4 and 4e-4 of the radius on the mean, 2e-4 with 1e-6. At rest the impulses of the step before are tried without any matrix,
    and kept while their residual is at most 1e-6. Where it is more, Newton's method whose matrix has the graph of the bodies
    (`nsds.solvers.bodies.newton`) finds new ones, if its steps cost no more than some tens of sweeps: as in towers, arches and walls, which
    stay where they are drawn to 1e-11 m. A wall of 200 bricks that has moved by 1e-5 m before it came to rest, so that bricks lean on their
    neighbours, is left to sweeps and creeps. With rolling friction that method comes first, moving or not, and what rolls without slip is
    in motion.

    Coulomb's law is no convex problem, and sweeps over many contacts with much friction may go on without getting closer. Those over rigid
    bodies then go on with less momentum; after that, the slip term ``mu ||u_T||`` that the law adds to u_N follows the velocities more and
    more slowly, and is held in the end. The problem with this term held is convex, and sweeps solve it. Its solution balances momentum,
    friction opposes slip, and contacts do no work beyond the tolerance; but u_N of contacts that slide is off by as much as the term.
    Such a step is INEXACT (of 300 spheres that settle with tol=1e-4, mu = 0.6: every tenth step; u_N is off by some mm/s at most).
    Physics engines do the like silently: many stop after a fixed number of sweeps whatever the residual is, and others solve the convex
    problem with a term of zero, in which all that slides lifts off with ``mu ||u_T||``.

    Examples
    --------
    >>> import nsds
    >>> nsds.solvers.solver("pgs", tol=1e-8)["method"].item()
    b'pgs'
    >>> nsds.solvers.solver("bodies", tol=1e-4, max_iter=1000)["inexact"].item()
    0.1
    """
    given = {"weight": weight, "block": block, "rho": rho, "local": local, "seed": seed, "freeze": freeze}
    return record_of("solver", method, tol, max_iter, inexact, work_size, **given)


def own_law(function, *, tol=None, max_iter=None, inexact=0.1):
    """A law of your own in place of the laws of contacts or of rows with bounds, as a record that `nsds.simulate` takes as solver.

    Parameters
    ----------
    function : function
        The law of one contact, ``law(rho, mu, mu_r, r, u, out)``, or of one row with bounds, ``law(rho, lower, upper, z, w)``, which
        returns a number. The law holds where ``out = r``, or where ``z`` is returned, whatever the number rho > 0 is: rho has the units of
        an impulse over a velocity, and what is written is a projection, or a proximal map, of ``r - rho u`` or ``z - rho w``.
        r, u, z, w are impulses and velocities of a step, the normal component first, restitution inside u_N; mu and mu_r those of the
        contact; lower and upper bounds of the impulse. Tangents of a Lagrangian contact are the rows of its relation; of rigid bodies they
        follow from the normal, x and y where it is z.
    tol, max_iter, inexact
        As of `solver`; tol is for ``||r - out|| / rho`` of all contacts relative to velocities without impulses.

    Returns
    -------
    numpy.ndarray, shape ()
        Record for ``nsds.simulate(.., solver=..)``.

    Raises
    ------
    TypeError
        The function has another number of arguments; where it is used, it does not compile, or is not a law of what the system has.
    ValueError
        Where it is used: a scheme or a law of the system that this one cannot take the place of.

    Notes
    -----
    The law is that of all contacts with friction of a system, or, where nothing has friction, of all rows that are no equations; contacts
    without friction beside others keep their law, and so do equations. Sweeps solve the problem, contact by contact, each by the fixed
    point of its law, and the residual is judged by the law. So it is for `nsds.moreau_jean` and `nsds.moreau_jean_exact`, whose problems
    are stated for velocities and impulses, and, as a law of contacts, for their projections, whose problems of positions have no friction;
    others are refused.

    Examples
    --------
    Friction that is proportional to the velocity up to a bound:

    >>> import nsds
    >>> h, c = 1e-2, 2.0
    >>> def viscous(rho, lower, upper, z, w):
    ...     return min(max((z - rho * w) / (1.0 + rho / (h * c)), lower), upper)
    >>> mass = nsds.lagrangian_linear(M=1.0, q=0.0, v=4.0)
    >>> slide = nsds.interaction(nsds.lagrangian_linear_relation([[1.0]]), nsds.dry_friction(1.0), on="mass")
    >>> rows = nsds.simulate(nsds.system(mass=mass, slide=slide), t_end=5.0, h=h, solver=nsds.solvers.own_law(viscous))
    >>> [round(float(v), 3) for v in rows["mass"]["v"][[100, 350], 0]]  # 4 - t, and 1/2 exp(-2 (t - 3.5)) from t = 3.5 on
    [3.0, 0.5]
    """
    plain = getattr(function, "py_func", function)
    sizes = {_n_arguments(one.own_law[0].ARGUMENTS) for one in CLASSES.values() if one.own_law}
    if not isinstance(plain, FunctionType) or len(inspect.signature(plain).parameters) not in sizes:
        raise TypeError(f"own_law: expected a Python function {_wanted_laws()}, got {_checks.shortened(function)}")
    name = f"{plain.__name__[:8]}#{id(function):x}:law"
    _BROUGHT[name] = function, None
    return record_of("own_law", name, tol, max_iter, inexact)


def _n_arguments(names):
    return len(names.split(","))


def _wanted_laws():
    return " or ".join(f"law({one.own_law[0].ARGUMENTS})" for one in CLASSES.values() if one.own_law)


def _law_compiled(owner, name, one):
    """The `Method` of a user's law for a class of problems."""
    if name not in one.own:
        (module, _), function = one.own_law, _BROUGHT[name][0]
        wanted = f"law({module.ARGUMENTS})"
        if len(inspect.signature(getattr(function, "py_func", function)).parameters) != _n_arguments(module.ARGUMENTS):
            what = "rows with bounds, without friction" if one is CLASSES["box"] else "contacts with friction"
            raise TypeError(f"{owner}: the law {function.__name__} is not for this system, which has {what}: it wants {wanted}")
        law = users_callback(f"{owner}: the function {function.__name__} does not compile as {wanted}", module.LAW, function).address
        one.own[name] = Method(name, module.sweeps, "what its author says", one.kinds, (), room=module.work_size, law=law)
    return one.own[name]


def record_of(owner, method, tol=None, max_iter=None, inexact=0.1, work_size=(0, 0), **given):
    """`solver` for a function of the name owner, with which errors begin."""
    if callable(method):
        method = _brought(owner, method, work_size)
    elif not _are_counts(work_size) or any(work_size):
        given = f"{_checks.shortened(work_size)} with method {_checks.shortened(method)}"
        raise ValueError(f"{owner}: work_size is for a function of your own, got {given}")
    named = [one.methods[method] for one in CLASSES.values() if isinstance(method, str) and method in one.methods]
    if not named and (not isinstance(method, str) or method not in _BROUGHT):
        known = dict.fromkeys(name for one in CLASSES.values() for name in one.methods)
        raise ValueError(
            f"{owner}: method must be one of {', '.join(known)}, got {_checks.shortened(method)}{_checks.meant(method, known)}"
        )
    record = np.zeros((), OPTIONS)
    record["method"] = method.encode()
    record["tol"] = 0.0 if tol is None else _tolerance(owner, tol)
    record["inexact"] = _checks.number(owner, "inexact", inexact, low=0.0)
    record["local"] = _checks.choice(owner, "local", given.get("local", _DEFAULT_LOCAL), LOCALS).encode()
    for field in ("weight", "rho"):
        record[field] = 0.0 if given.get(field) is None else _checks.number(owner, field, given[field], above=0.0)
    for field, value in (("max_iter", max_iter), *((field, given.get(field)) for field in ("block", "seed", "freeze"))):
        record[field] = 0 if value is None else _checks.integer(owner, field, value, low=1, high=_MOST)
    if named:
        _require_read(owner, record, method, {field for one in named for field in one.options})
    if method == "psor" and record["weight"] >= 2.0:
        raise ValueError(f"{owner}: weight of 'psor' must be below 2, got {record['weight']}")
    return record


def _require_read(owner, record, name, read, where=""):
    """Refuse an option that is given and that the method of this name does not read."""
    for field in _NAMED:
        if field not in read and record[field].item() not in (0, _DEFAULT_LOCAL.encode()):
            takers = dict.fromkeys(taker for one in CLASSES.values() for taker, method in one.methods.items() if field in method.options)
            raise ValueError(f"{owner}: {field} is an option of {', '.join(takers)}, not of {name!r}{where}")


def _tolerance(owner, tol):
    result = _checks.number(owner, "tol", tol, above=0.0)
    if result >= 1.0:
        raise ValueError(f"{owner}: tol must be below 1, as errors are relative, got {tol}")
    return result


def _are_counts(pair):
    return isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(x, (int, np.integer)) and x >= 0 for x in pair)


def _brought(owner, function, work_size):
    """Keep a user's solver under its name and identity; returns the name. It is compiled for the class of the problem that it is given."""
    plain = getattr(function, "py_func", function)
    wanted = " or ".join(f"solver({one.arguments})" for one in CLASSES.values() if one.own is not None)
    if not _are_counts(work_size):
        raise ValueError(f"{owner}: work_size must be two whole numbers of at least 0, got {_checks.shortened(work_size)}")
    if not isinstance(plain, FunctionType) or len(inspect.signature(plain).parameters) != 12:
        raise TypeError(f"{owner}: method must be a name or a Python function {wanted}, got {_checks.shortened(function)}")
    floats, integers = work_size
    name = f"{plain.__name__[:8]}#{id(function):x}:{floats},{integers}"
    _BROUGHT[name] = function, work_size
    return name


def _not_single(owner, name):
    return f"{owner}: the law {name_of_law(name)} of own_law is for nsds.simulate, not for single problems"


def name_of_law(name):
    """Name of the function of a user's law, from the name of its method."""
    return _BROUGHT[name][0].__name__


def _compiled(owner, name, one):
    """The `Method` of a user's solver for a class of problems, or of a law."""
    if _BROUGHT[name][1] is None:
        return _law_compiled(owner, name, one)
    if name not in one.own:
        function, (floats, integers) = _BROUGHT[name]
        about = f"{owner}: the function {function.__name__} does not compile as solver({one.arguments}), returning a status"
        kernel = users_callback(about, one.signature.SOLVER, function, *_as_called(one))

        def room(size, row, column):
            n = (row.size - 1) * (1 if one is CLASSES["box"] else size)
            return floats * n, integers * n

        one.own[name] = Method(name, kernel, "what its author says", one.kinds, _NAMED, room=room)
    return one.own[name]


def _as_called(one):
    """(parameters, arguments) as text: how methods are called by their address, and how a method of a user's is called then."""
    arrays, others = one.signature.Problem._fields, one.arguments.split(", ")[len(one.signature.Problem._fields) :]
    return ", ".join(("problem", *others)), ", ".join((*(f"problem.{name}" for name in arrays), *others))


def treats(name, kind):
    """Whether a name stands for a method for a kind of problems."""
    known, takes_own = _CLASS_OF[kind].methods, _CLASS_OF[kind].own is not None
    return isinstance(name, str) and (
        (name in known and kind in known[name].kinds) or (name in _BROUGHT and takes_own and not is_law(name))
    )


def is_law(name):
    """Whether a name stands for a law of a user's own."""
    return isinstance(name, str) and name in _BROUGHT and _BROUGHT[name][1] is None


def find(name, kind, owner="solver"):
    """The `Method` of a name for a kind of problems, which it must treat."""
    one = _CLASS_OF[kind]
    if is_law(name):
        if kind in _OF_STEPS:
            return _law_compiled(owner, name, one)
        raise ValueError(_not_single(owner, name))
    if not treats(name, kind):
        known = [each.methods[name] for each in (one, *CLASSES.values()) if isinstance(name, str) and name in each.methods]
        why = f", which is for {', '.join(known[0].kinds)}" if known else ""
        why = why or _checks.meant(name, methods(kind))
        raise ValueError(f"{owner}: method must be one of {', '.join(methods(kind))}, got {_checks.shortened(name)}{why}")
    if name in ("nsgs_parallel", "nsgs_bodies"):
        _checks.require_threads("solver", name)
    return one.methods[name] if name in one.methods else _compiled(owner, name, one)


def is_record(choice):
    """Whether a caller passed one record of `solver`."""
    return isinstance(choice, (np.ndarray, np.void)) and choice.dtype == OPTIONS and choice.shape == ()


def chosen(choice, kind, owner="solver"):
    """(`Method`, options for kernels) of what a caller passed for a kind of problems: None, a name, a function, or a record."""
    if choice is None or isinstance(choice, str) or callable(choice):
        choice = record_of(owner, "auto" if choice is None else choice)
    if not is_record(choice):
        raise TypeError(
            f"{owner}: expected a method's name, a function or a record from nsds.solvers.solver, got {_checks.shortened(choice)}"
        )
    name, options = _understood(owner, kind, choice.tobytes())
    return find(name, kind, owner), options


@lru_cache(maxsize=64)
def _understood(owner, kind, stored):
    """(name, options for kernels) of the bytes of a record, which may have been edited: what `solver` would refuse is refused."""
    fields = {field: value or None for field, value in zip(OPTIONS.names, np.frombuffer(stored, OPTIONS)[0].item(), strict=True)}
    name, local, inexact = (fields.pop(field) or default for field, default in (("method", b""), ("local", b""), ("inexact", 0.0)))
    name = name.decode(errors="replace")
    record = record_of("solver, of the record", name, inexact=inexact, local=local.decode(errors="replace"), **fields)
    method = find(name, kind, owner)
    _require_read(owner, record, name, method.options, f" for {kind} problems")
    options = _kernel_options(record, kind)
    return name, options._replace(**{_CLASS_OF[kind].own_law[1]: float(method.law)}) if method.law else options


def _kernel_options(record, kind):
    """The options of a record as kernels of the class of a kind take them."""
    given = {field: value for field, value in zip(OPTIONS.names, record.item(), strict=True) if field not in ("method", "local")}
    tol, Options = given.pop("tol"), _CLASS_OF[kind].signature.Options
    if _CLASS_OF[kind] is not CLASSES["contact"]:
        given |= {"tol": tol or _BOX_TOL, "rounding": 0.0}
    else:
        of_step = kind in (*_RIGID, *_LAGRANGIAN)
        given |= {"tol": tol or (_AIM if of_step else _CONTACT_TOL), "enough": tol or (_ENOUGH if of_step else _CONTACT_TOL)}
        given["patience"] = 0.0
        given["local"] = LOCALS.index(record["local"].item().decode())
    return Options(*(float(given[field]) for field in Options._fields))


def asked(owner, kind, method, tol, max_iter, given):
    """`chosen` of the arguments of a function that solves one problem: given, its further options by name; a record brings its own."""
    if type(method) is str and not given and type(tol) is float and (max_iter is None or type(max_iter) is int):
        return _plainly_asked(owner, kind, method, tol, max_iter)
    if not isinstance(method, (np.ndarray, np.void)):
        names = (*_CLASS_OF[kind].options, "work_size")
        unknown = [field for field in given if field not in names]
        if unknown:
            raise TypeError(f"{owner}: options must be {', '.join(names)}, got {unknown[0]!r}{_checks.meant(unknown[0], names)}")
        if not callable(method):
            find(method, kind, owner)
        if tol is None:
            raise TypeError(f"{owner}: tol must be a number, got None")
        method = record_of(owner, method, tol, max_iter, **given)
    found, options = chosen(method, kind, owner)
    if found.law:
        raise ValueError(_not_single(owner, found.name))
    return found, options


@lru_cache(maxsize=64)
def _plainly_asked(owner, kind, name, tol, max_iter):
    """`asked` with a method's name, tolerance and limit alone, as in most calls."""
    method = find(name, kind, owner)
    return method, _understood(owner, kind, record_of(owner, name, tol, max_iter).tobytes())[1]


def methods(kind="lcp"):
    """Names of the methods that treat a kind of problem, and what each assumes of it.

    Parameters
    ----------
    kind : str
        Of rows with bounds "lcp" (bounds 0 and infinity), "mlcp" (and equations), "relay" (any bounds), "avi" and "qp" (polyhedra). Of
        contacts "fc2d" and "fc3d", with rolling friction "rfc2d" and "rfc3d"; their global forms "gfc2d", "gfc3d" and "grfc3d"; and what
        `nsds.simulate` takes for rigid bodies, "rigid" and "rigid_rolling", and for Lagrangian systems with friction, "lagrangian_plane",
        "lagrangian_space" and "lagrangian_rolling"; others have "relay". Of user functions "ncp", "mcp", "vi" and, over cones, "soclcp".

    Examples
    --------
    >>> import nsds
    >>> nsds.solvers.methods("lcp")["enumerate"]
    'any matrix; up to 2^20 bases'
    >>> nsds.solvers.methods("fc2d")["lemke"]
    'in the plane; copositive plus; up to 8192 contacts'
    """
    _checks.choice("methods", "kind", kind, _CLASS_OF)
    return {name: method.assumes for name, method in _CLASS_OF[kind].methods.items() if kind in method.kinds}


def address(method):
    """Address of a method's compiled code, for kernels that call it."""
    return _address(method.kernel, method.kinds[0])


@cache
def _address(compiled, kind):
    return np.uintp(getattr(compiled, "address", 0) or _jit.address(_CLASS_OF[kind].signature.SOLVER, compiled))


def arguments_of(method, options, problem, size, guess):
    """Arguments of ``solve_repeatedly`` of the class of a problem, from solver on; size: see `scratch`."""
    n, row, column = guess.size, problem.row, problem.column
    info = np.zeros(_CLASS_OF[method.kinds[0]].signature.N_INFO)
    return address(method), guess, problem, options, np.zeros(n), np.zeros(n), info, *scratch(method, size, row, column)


@lru_cache(maxsize=256)
def _room_of_full(work_size, size, n):
    """Words that a method needs where every row has all n entries."""
    return work_size(size, np.arange(n + 1) * n, np.tile(np.arange(n), n))


def scratch(method, size, row, column):
    """New (work, iwork) for a method and a pattern; size: unknowns, or components of a contact."""
    n = row.size - 1
    floats, integers = _room_of_full(method.work_size, size, n) if column.size == n * n else method.work_size(size, row, column)
    return np.zeros(floats), np.zeros(max(integers, 1), np.int64)
