"""Options of the Moreau–Jean scheme."""

from nsds.model.system_kinds import LAGRANGIAN, NEWTON_EULER
from nsds.schemes.declared import integer, number, number_or_inf, record_of, word
from nsds.schemes.table import scheme_for

MOTION = {
    "theta": number(0.0, 1.0),
    "gamma": number(0.0),
    "q_star": number(0.0, 1.0),
    "newton_tol": number_or_inf(above=0.0),
    "newton_max_iter": integer(low=1),
}  # that all forms of the scheme have
_OPTIONS = MOTION | {
    "form": word("reduced", "global", "explicit"),
    "update": word("exponential", "linear"),
    "pre_impact": word("start", "q_star"),
}


@scheme_for(_OPTIONS, {LAGRANGIAN: "lagrangian.moreau_jean", NEWTON_EULER: "rigid.moreau_jean"})
def moreau_jean(
    theta=0.5, gamma=0.5, q_star=1.0, newton_tol=1e-10, newton_max_iter=50, form="reduced", update="exponential", pre_impact="start"
):
    """Options of the Moreau–Jean scheme ([EventCapturing]; of rigid bodies [Notes], 11.6).

    Parameters
    ----------
    theta : float in [0, 1]
        Weight of the end of the step: 0 explicit, without tangent matrices; 1/2 second order where nothing is in contact; 1 implicit.
        Where forces by functions of Lagrangian systems bend within a step, as those of stiff stops that open or close, by more than 5 % of
        its momenta and impulses, or Newton's iteration fails, a theta between 0 and 1 is 1 in that step, for the parts with such forces.
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
        Of more than 60 rows "reduced" forms no Delassus matrix where that would have more entries than sparse factors of both together, by
        the default solver: of linear systems with matrices and relations in a form of scipy.sparse, and of forces by functions with a
        pattern; with friction from 2^20 entries on, and not with rolling friction, compliance beside friction, and laws of impacts.
        Of rigid bodies "explicit" is the semi-explicit form ([Notes], eq. 11.204): forces and H of q_k, and one iteration.
    update : "exponential" or "linear"
        How rigid bodies turn: along the exponential map, which keeps quaternions unit and is exact for a constant Omega; or by
        ``p + h T v`` ([Notes], eq. 11.208), then made unit.
    pre_impact : "start" or "q_star"
        The velocity before an impact, which restitution reverses: ``H(q_k) v_k``, the ydot of the row before; or, of Lagrangian systems,
        ``H(q*) v_k``, with the H of the velocity after it, so that `nsds.fremond_impact` adds no energy where H changes either.

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
    return record_of("moreau_jean", _OPTIONS, locals())
