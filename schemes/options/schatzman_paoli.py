"""Options of the scheme of Schatzman and Paoli."""

import numpy as np

from nsds.model.system_kinds import LAGRANGIAN
from nsds.schemes.declared import integer, number, number_or_inf, record_of
from nsds.schemes.table import scheme_for

_OPTIONS = {
    "theta": number(0.0, 1.0),
    "gamma": number_or_inf(low=0.0),
    "newton_tol": number_or_inf(above=0.0),
    "newton_max_iter": integer(low=1),
}


@scheme_for(_OPTIONS, {LAGRANGIAN: "lagrangian.schatzman_paoli"})
def schatzman_paoli(theta=0.0, gamma=np.inf, newton_tol=1e-10, newton_max_iter=50):
    """Options of the Schatzman–Paoli scheme ([Notes], 10.3): impacts by positions, without forecast or activation.

    Parameters
    ----------
    theta : float in [0, 1]
        Where in the step forces act. 0 is explicit: of order 2 without damping, and conserving energy, but stable only for
        ``h omega < 2``; the others are of order 1 and dissipate, 1/2 too.
    gamma : float >= 0
        Constraints with ``y + gamma h ydot > 0`` at the start of the step are left out of its problem; none is by default.
    newton_tol, newton_max_iter
        See `nsds.moreau_jean`.

    Notes
    -----
    v of a row is ``(q_k - q_{k-1}) / h``, also at the start: for order 2 begin with ``v_0 - h/2 a_0``. The central difference of the source
    is the mean of the v of two successive rows. lambda is an impulse; times h it is the multiplier of the source, which is one of
    positions. Penetration is up to ``h |v|`` in an impact. Friction, dry friction and relays oppose the displacement of a step; contacts
    of one nonlinear relation have one e_n. Relations with D are refused.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=5e-3, scheme=nsds.schatzman_paoli())
    >>> float(rows["ball"]["v"][rows["floor"]["lambda"].argmax(), 0].round(3))
    3.973
    """
    return record_of("schatzman_paoli", _OPTIONS, locals())
