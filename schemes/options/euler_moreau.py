"""Options of the Euler–Moreau scheme."""

from nsds.model.system_kinds import FIRST_ORDER
from nsds.schemes.declared import flag, integer, number, record_of
from nsds.schemes.table import scheme_for

_OPTIONS = {
    "theta": number(0.0, 1.0),
    "gamma": number(0.0, 1.0),
    "gamma_for_relation": flag(),
    "midpoint": flag(),
    "newton_tol": number(above=0.0),
    "newton_max_iter": integer(low=1),
}


@scheme_for(_OPTIONS, {FIRST_ORDER: "first_order.euler_moreau"})
def euler_moreau(theta=1.0, gamma=1.0, gamma_for_relation=False, midpoint=False, newton_tol=1e-10, newton_max_iter=50):
    """Options of the Euler–Moreau scheme for first-order systems ([Notes], eqs 9.5–9.7).

    Parameters
    ----------
    theta : float in [0, 1]
        Weight of the end of the step in f: 1 implicit, 0 explicit; 1/2 with gamma = 1/2 is second order on smooth phases, but with
        gamma = 1 of first order as soon as a multiplier varies.
    gamma : float in [0, 1]
        Weight of the end of the step in r; see the next.
    gamma_for_relation : bool
        False: r and y at both ends of the step, ``gamma r_{k+1} + (1-gamma) r_k`` (9.5). True: one r, and y, of the point
        ``x_{k+gamma}`` (9.6); with theta = gamma = 1/2 a passive circuit then neither gains nor loses energy by the discretisation.
        y and lambda of a row are those of this point.
    midpoint : bool
        f of the point ``x_{k+theta}`` instead of the mean of f (9.7); y and r are those of ``x_{k+gamma}``.
    newton_tol : float
        Nonlinear systems: largest residual of an equation of x or y, relative to the magnitudes that cancel in it; 7e-15, rounding, at
        least.
    newton_max_iter : int
        Newton's iterations of a step; then it is INEXACT where the residual is at most 1e-3, else it has failed.

    Notes
    -----
    All are of first order across the switches of a relay. gamma = 1 alone slides without chattering: with gamma < 1 lambda alternates about
    its mean in a sliding mode, and in (9.6) and (9.7) y does so too, within O(h). gamma < 1 in (9.5) needs r at the start: g(t, x, lambda)
    with the record's lambda.

    For a passive circuit, storage ``x^T P x / 2``, the full scheme with theta = gamma >= 1/2 never lets the storage grow; with other
    weights it may, by at most ``|gamma - theta| h |lambda^T C (x_{k+1} - x_k)|`` in a step.

    Steps of linear systems with constant operators and more than 60 multipliers form no matrix of the multipliers where sparse equations
    for state and multipliers take fewer operations, under the default choice of a solver: work and memory of a step then grow as those of
    a sparse factorisation of A. n_iter counts the sets of rows at and between their bounds that were tried.

    In the trajectory of a nonlinear system n_iter counts Newton's iterations, and residual is theirs; of a linear one they are the
    solver's, and n_iter is 0 where the set of the last step served again.

    Examples
    --------
    >>> import nsds
    >>> nsds.euler_moreau(theta=0.5)["gamma"].item()
    1.0
    """
    record = record_of("euler_moreau", _OPTIONS, locals())
    record["gamma_for_relation"] |= record["midpoint"]
    return record
