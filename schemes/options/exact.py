"""Options of exact time stepping of modal systems."""

from nsds.model.system_kinds import LAGRANGIAN
from nsds.schemes.declared import number, record_of
from nsds.schemes.table import scheme_for

_OPTIONS = {"gamma": number(0.0)}


@scheme_for(_OPTIONS, {LAGRANGIAN: "lagrangian.exact"})
def moreau_jean_exact(gamma=0.5):
    """Options of the exact scheme for modal systems ([ExactScheme]): no error between contacts, whatever the step.

    For `nsds.lagrangian_modal`, or `nsds.lagrangian_linear` with diagonal M, K and C, and linear relations.

    Parameters
    ----------
    gamma : float >= 0
        Forecast of contact: a constraint is active when ``y + gamma h ydot <= 0`` at the start of the step.

    Notes
    -----
    v of a row is the backward difference ``(q_k - q_{k-1}) / h``, also at the start: for a mode that rests at t = 0 it is not 0, as the
    example shows. Constant forces are treated exactly, others to second order, by ``fext(t_k)``.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> mode = nsds.system(mode=nsds.lagrangian_modal(omega=[2 * np.pi], q=[1.0], v=[0.0]))
    >>> mode["mode"]["v"] = (1 - np.cos(2 * np.pi * 0.7)) / 0.7  # the backward difference of a cosine
    >>> rows = nsds.simulate(mode, t_end=7.0, h=0.7, scheme=nsds.moreau_jean_exact())
    >>> float(rows["mode"]["q"][-1, 0].round(12)), float(rows["mode"]["q"][1, 0].round(12)) == float(np.cos(2 * np.pi * 0.7).round(12))
    (1.0, True)
    """
    return record_of("moreau_jean_exact", _OPTIONS, locals())
