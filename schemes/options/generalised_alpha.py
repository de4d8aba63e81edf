"""Options of the nonsmooth generalised-alpha scheme, and its weights."""

from nsds.model.system_kinds import LAGRANGIAN, NEWTON_EULER
from nsds.schemes.declared import integer, number, record_of
from nsds.schemes.table import scheme_for

_OPTIONS = {
    "rho": number(0.0, 1.0),
    "newton_tol": number(above=0.0),
    "newton_max_iter": integer(low=1),
    "constraint_tol": number(above=0.0),
    "max_rounds": integer(low=1),
}


@scheme_for(_OPTIONS, {LAGRANGIAN: "lagrangian.generalised_alpha", NEWTON_EULER: "rigid.generalised_alpha"})
def generalised_alpha(rho=0.8, newton_tol=1e-10, newton_max_iter=50, constraint_tol=1e-10, max_rounds=20):
    """Options of the nonsmooth generalised-alpha scheme: second order between impacts, constraints exact for positions and velocities.

    Parameters
    ----------
    rho : float in [0, 1]
        Spectral radius at infinite frequency (Chung and Hulbert 1993): 1 damps nothing, 0 removes what a step does not resolve in one step.
    newton_tol, newton_max_iter
        See `nsds.moreau_jean`.
    constraint_tol, max_rounds
        See `nsds.moreau_jean_direct_projection`.

    Notes
    -----
    Where a controller changes u, accelerations restart, so that jumps keep order 2; a u that changes in every step costs it for rho < 1.

    lambda of a row is the impulse of the step. A restart begins with the accelerations of its state, as the first step of a run does: it is
    as accurate, but not the same to the last bit. Unilateral contacts are impulses also where they persist: along a curve the scheme is of
    order 1 then; bilateral constraints keep order 2. Friction, dry friction and relays are impulses of the velocities at the end of a
    step, and shift its positions, so that what sticks does not creep; sliding in one direction keeps order 2, slip whose direction turns
    has order 1. Relations with D are refused. Rigid bodies move on the rotation group. Initial positions and velocities must satisfy
    bilateral constraints (see `nsds.consistent`).

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.bouncing_ball(e=0.0), t_end=2.0, h=1e-3, scheme=nsds.generalised_alpha())
    >>> bool(rows["floor"]["y"].min() >= -1e-10), float(rows["floor"]["lambda"][-1].round(6))  # rests: the impulse of its weight
    (True, 0.00981)
    """
    return record_of("generalised_alpha", _OPTIONS, locals())
