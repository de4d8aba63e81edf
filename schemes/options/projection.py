"""Options of Moreau–Jean with a projection of positions, direct or combined."""

from nsds.model.system_kinds import LAGRANGIAN, NEWTON_EULER
from nsds.schemes.declared import integer, number, record_of, word
from nsds.schemes.options.moreau_jean import MOTION
from nsds.schemes.table import scheme_for

_PROJECTION = {"constraint_tol": number(above=0.0), "max_rounds": integer(low=1)}
_METRIC = {"metric": word("mass", "identity")}
_DIRECT = MOTION | _PROJECTION | {"contacts": word("active", "all")} | _METRIC
_COMBINED = MOTION | _PROJECTION | _METRIC
_MODULES = {LAGRANGIAN: "lagrangian.projection", NEWTON_EULER: "rigid.projection"}


@scheme_for(_DIRECT, _MODULES)
def moreau_jean_direct_projection(
    theta=0.5,
    gamma=0.5,
    q_star=1.0,
    newton_tol=1e-10,
    newton_max_iter=50,
    constraint_tol=1e-8,
    max_rounds=20,
    contacts="all",
    metric="mass",
):
    """Options of Moreau–Jean with a projection of the positions after each step ([Notes], 13.0.2.a).

    Parameters
    ----------
    theta, gamma, q_star, newton_tol, newton_max_iter
        See `nsds.moreau_jean`.
    constraint_tol : float
        Gaps are brought above minus this, bilateral y within it; where the terms of y are all smaller than 1, within that part of them if
        projections reach it; of rigid bodies that are large in their units within rounding, 4e-15 of the lengths that cancel in y.
    max_rounds : int
        Projections of a step, each linearised at the last; the step fails if a constraint is still violated after them.
    contacts : "all" or "active"
        Which contacts are projected: all, or those of the velocity problem, which lets a body stay below 0 for one step before an impact.
    metric : "mass" or "identity"
        Norm in which positions move least; of rigid bodies "identity" is that of x and the unit quaternion (eqs 13.7 and 13.12), and "mass"
        follows where it leaves a violation, as of bodies that are large in their units.

    Notes
    -----
    Moving positions without velocities changes potential energy: by at most the weight times the penetration that a step leaves, O(h).
    A contact of shapes that is not in the record at the start of a step, and violated at its end, takes part in the step, which is solved
    again, if all contacts are projected: what has been pushed apart need not be found in the next step.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.bouncing_ball(), t_end=5.0, h=5e-3, scheme=nsds.moreau_jean_direct_projection())
    >>> bool(rows["floor"]["y"].min() >= -1e-8)
    True
    """
    return record_of("moreau_jean_direct_projection", _DIRECT, locals())


@scheme_for(_COMBINED, _MODULES)
def moreau_jean_combined_projection(
    theta=0.5, gamma=0.5, q_star=1.0, newton_tol=1e-10, newton_max_iter=50, constraint_tol=1e-10, max_rounds=20, metric="mass"
):
    """Options of Moreau–Jean with a projection that shares the choice of contacts with the velocity problem ([Notes], chapter 13).

    A contact that the end of a step violates by more than constraint_tol joins the active ones and the step is solved again, unless no
    velocity satisfies them all. Then contacts with a positive impulse are put on ``y = 0``, also from above, and the others above
    ``-constraint_tol``. Contacts are put on 0 from above as long as the default solves with a matrix, up to 512 contacts.

    Parameters
    ----------
    theta, gamma, q_star, newton_tol, newton_max_iter
        See `nsds.moreau_jean`.
    constraint_tol, max_rounds, metric
        See `nsds.moreau_jean_direct_projection`.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.bouncing_ball(), t_end=5.0, h=5e-3, scheme=nsds.moreau_jean_combined_projection())
    >>> bool(rows["floor"]["y"].min() >= -1e-10)
    True
    """
    return record_of("moreau_jean_combined_projection", _COMBINED, locals())
