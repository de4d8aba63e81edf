"""Moreau–Jean time stepping ([EventCapturing]; [Notes], 10.2): options, and which form of the step a system gets.

Linear systems with linear relations take one step with everything prepared (the linear form), all others iterate
(the Newton form).
"""

import numpy as np

from nsds import _checks
from nsds.model.kinds import LAGRANGIAN, NEWTON_EULER, family
from nsds.model.records import model_of
from nsds.schemes.lagrangian import bordered, linear, newton
from nsds.schemes.lagrangian.tables import is_linear, layout_of
from nsds.schemes.rigid import moreau_jean as rigid_moreau_jean
from nsds.schemes.run.memory import Allocator
from nsds.schemes.table import scheme_for

# Options that all forms of the scheme have.
FIELDS = [("theta", "<f8"), ("gamma", "<f8"), ("q_star", "<f8"), ("newton_tol", "<f8"), ("newton_max_iter", "<i8")]
OPTIONS = np.dtype([("scheme", "S32"), *FIELDS, ("form", "S8"), ("update", "S16"), ("pre_impact", "S8")])
FORMS = ("reduced", "global", "explicit")
UPDATES = ("exponential", "linear")
PRE_IMPACT = ("start", "q_star")


@scheme_for(LAGRANGIAN, NEWTON_EULER)
def moreau_jean(
    theta=0.5, gamma=0.5, q_star=1.0, newton_tol=1e-10, newton_max_iter=50, form="reduced", update="exponential", pre_impact="start"
):
    """Options of the Moreau–Jean scheme ([EventCapturing]; of rigid bodies [Notes], 11.6).

    Parameters
    ----------
    theta : float in [0, 1]
        Weight of the end of the step: 0 explicit, without tangent matrices; 1/2 second order where nothing is in contact; 1 implicit.
    gamma : float >= 0
        Forecast of contact: a constraint is active when ``y + gamma h ydot <= 0`` at the start of the step, and at rest also up to rounding
        in units of the scene: 1e-10 of the lengths that cancel in y, and 1e-6 of the way that velocities and forces make in a step.
        Rigid bodies have a slack of their own lengths and forces.
    q_star : float in [0, 1]
        Nonlinear systems: mass and H are those of ``q* = (1 - q_star) q_k + q_star q_{k+1}`` ([Notes], eq. 10.22). Impulses of joints of
        rigid bodies act with H at ``max(1/2, theta)`` of the way there: so these keep their energy for ``q_star=1`` and theta = 1/2.
    newton_tol : float
        Nonlinear systems: largest residual of the equation of motion, relative to momentum, impulses of forces and impulses of contacts
        of each coordinate; 7e-15, rounding, at least. ``numpy.inf`` makes one iteration from the forecast ``q_k + h v_k``, ``v_k`` in each
        step.
    newton_max_iter : int
        Newton's iterations of a step; then it is INEXACT where the residual is at most 1e-3, else it has failed.
    form : "reduced", "global" or "explicit"
        The one-step problem is one of impulses, with the Delassus matrix; or, of linear systems, one of velocities and impulses together.
        Of rigid bodies "explicit" is the semi-explicit form ([Notes], eq. 11.204): forces and H of q_k, and one iteration.
    update : "exponential" or "linear"
        How rigid bodies turn: along the exponential map, which keeps quaternions unit and is exact for a constant Omega; or by
        ``p + h T v`` ([Notes], eq. 11.208), then made unit.
    pre_impact : "start" or "q_star"
        The velocity before an impact, which restitution reverses: ``H(q_k) v_k``, the ydot of the row before; or, of Lagrangian systems,
        ``H(q*) v_k``, with the H of the velocity after it, so that `nsds.fremond_impact` adds no energy where H changes either.

    Returns
    -------
    numpy.ndarray, shape ()
        Record for `nsds.simulate`.

    Raises
    ------
    ValueError, TypeError
        An option out of its range.

    Notes
    -----
    The velocities jump at an impact: the scheme is of order 1 across impacts whatever theta is. Newton's matrix neglects the change of
    the mass within a step, as in the source (eqs 10.33, 10.44). That of H it neglects in the first iterations, which are enough for small
    steps; further ones have it, by finite differences of H, and converge quadratically but for what couples two bodies.

    Examples
    --------
    >>> import nsds
    >>> nsds.moreau_jean(theta=1.0)["theta"].item()
    1.0
    """
    record = np.zeros((), OPTIONS)
    for field, value, known in (("form", form, FORMS), ("update", update, UPDATES), ("pre_impact", pre_impact, PRE_IMPACT)):
        _checks.choice("moreau_jean", field, value, known)
        record[field] = value.encode()
    record["scheme"] = b"moreau_jean"
    fill(record, "moreau_jean", theta, gamma, q_star, newton_tol, newton_max_iter)
    return record


def fill(record, owner, theta, gamma, q_star, newton_tol, newton_max_iter):
    """Checked options that all forms of the scheme have."""
    record["theta"] = _checks.number(owner, "theta", theta, 0.0, 1.0)
    record["gamma"] = _checks.number(owner, "gamma", gamma, 0.0)
    record["q_star"] = _checks.number(owner, "q_star", q_star, 0.0, 1.0)
    record["newton_tol"] = _checks.number_or_inf(owner, "newton_tol", newton_tol, above=0.0)
    record["newton_max_iter"] = _checks.integer(owner, "newton_max_iter", newton_max_iter, low=1)


def prepare(records, mem, options, h, method):
    """Tables, iteration matrices and, where they are constant, the matrices of the one-step problem of all members."""
    if family(model_of(records)) == NEWTON_EULER:
        if options["form"] == b"global":
            raise ValueError("moreau_jean: form='global' is for Lagrangian systems")
        if options["pre_impact"] == b"q_star":
            raise ValueError("moreau_jean: pre_impact='q_star' is for Lagrangian systems; of rigid bodies it is 'start'")
        return rigid_moreau_jean.prepare(records, options, h, method)
    if options["form"] == b"explicit":
        raise ValueError("moreau_jean: form='explicit' is for rigid bodies; for others theta=0 is explicit")
    work, iwork = Allocator(records.size), Allocator(records.size)
    constant = linear.Options(h, options["theta"].item(), options["gamma"].item())
    layout = layout_of(records, work, "moreau_jean", h, h * constant.theta, has_impact_laws=options["form"] != b"global")
    if options["form"] == b"global":
        if not is_linear(layout):
            raise ValueError("moreau_jean: form='global' is for linear systems with linear relations")
        return bordered.prepare(records, layout, constant, method, work, iwork)
    if is_linear(layout):
        return linear.prepare(records, layout, constant, method, work, iwork)
    words = newton.options_of(h, options)._replace(sees_q_star=float(options["pre_impact"] == b"q_star"))
    return newton.prepare(records, layout, words, method, work, iwork)
