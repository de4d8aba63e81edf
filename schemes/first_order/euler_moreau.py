"""Euler–Moreau time stepping of first-order systems ([Notes], chapter 9): options, and which form of the step a system gets.

    M x_{k+1} = M x_k + h theta f_{k+1} + h (1-theta) f_k + h gamma r_{k+1} + h (1-gamma) r_k      theta–gamma scheme         (9.5)
    M x_{k+1} = M x_k + h theta f_{k+1} + h (1-theta) f_k + h r_{k+gamma}                          full theta–gamma scheme    (9.6)
    M x_{k+1} = M x_k + h f(t_{k+theta}, x_{k+theta})     + h r_{k+gamma}                          mid-point scheme           (9.7)

with ``y = h(t, x, lambda)``, ``r = g(t, x, lambda)`` and the law at t_{k+1} in (9.5), at ``t_{k+gamma}``, ``x_{k+gamma} = gamma x_{k+1} +
(1-gamma) x_k`` in the others. Linear systems with constant operators take one step of Newton's method with everything prepared
(`nsds.schemes.first_order.linear`), all others iterate (`nsds.schemes.first_order.newton`).
"""

import numpy as np

from nsds import _checks
from nsds.model.kinds import FIRST_ORDER
from nsds.schemes.first_order import linear, newton
from nsds.schemes.first_order.relative_degree import require_low_degree
from nsds.schemes.first_order.tables import is_constant, layout_of
from nsds.schemes.run.memory import Allocator
from nsds.schemes.table import scheme_for

OPTIONS = np.dtype(
    [("scheme", "S16"), ("theta", "<f8"), ("gamma", "<f8"), ("gamma_for_relation", "<i8"), ("midpoint", "<i8"), ("newton_tol", "<f8"),
     ("newton_max_iter", "<i8")]
)  # fmt: skip


@scheme_for(FIRST_ORDER)
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

    Returns
    -------
    numpy.ndarray, shape ()
        Record for `nsds.simulate`.

    Raises
    ------
    ValueError, TypeError
        A weight outside [0, 1], a tolerance that is not positive, an iteration limit below 1.

    Notes
    -----
    All are of first order across the switches of a relay. gamma = 1 alone slides without chattering: with gamma < 1 lambda alternates about
    its mean in a sliding mode, and in (9.6) and (9.7) y does so too, within O(h). gamma < 1 in (9.5) needs r at the start: g(t, x, lambda)
    with the record's lambda.

    For a passive circuit, storage ``x^T P x / 2``, the full scheme with theta = gamma >= 1/2 never lets the storage grow; with other
    weights it may, by at most ``|gamma - theta| h |lambda^T C (x_{k+1} - x_k)|`` in a step.

    In the trajectory of a nonlinear system n_iter counts Newton's iterations, and residual is theirs; of a linear one they are the
    solver's, and n_iter is 0 where the set of the last step served again.

    Examples
    --------
    >>> import nsds
    >>> nsds.euler_moreau(theta=0.5)["gamma"].item()
    1.0
    """
    record = np.zeros((), OPTIONS)
    record["scheme"] = b"euler_moreau"
    record["theta"] = _checks.number("euler_moreau", "theta", theta, 0.0, 1.0)
    record["gamma"] = _checks.number("euler_moreau", "gamma", gamma, 0.0, 1.0)
    midpoint = _checks.flag("euler_moreau", "midpoint", midpoint)
    record["gamma_for_relation"] = _checks.flag("euler_moreau", "gamma_for_relation", gamma_for_relation) or midpoint
    record["midpoint"] = midpoint
    record["newton_tol"] = _checks.number("euler_moreau", "newton_tol", newton_tol, above=0.0)
    record["newton_max_iter"] = _checks.integer("euler_moreau", "newton_max_iter", newton_max_iter, low=1)
    return record


def prepare(records, mem, options, h, method):
    """Tables, inverse iteration matrices and, where they are constant, the matrices of the one-step problem of all members."""
    work, iwork = Allocator(records.size), Allocator(records.size)
    layout = layout_of(records, work)
    require_low_degree("euler_moreau", records, layout, work)
    theta, gamma, full, midpoint = (options[name].item() for name in ("theta", "gamma", "gamma_for_relation", "midpoint"))
    weights = (1.0, gamma) if full else (gamma, 1.0)  # of r in the equation of x, of x in the relation
    if not is_constant(layout):
        limits = options["newton_tol"].item(), float(options["newton_max_iter"].item())
        words = newton.Options(h, theta, *weights, float(midpoint), *limits)
        return newton.prepare(records, layout, words, method, work, iwork)
    named = zip(layout.part_names, layout.parts, strict=True)
    inverses = [linear.inverse_of_part(records[name], part, name, h, theta) for name, part in named]
    source = (1.0, h * (1.0 - theta)) if midpoint else (theta, 0.0)  # weight of the newer one, how far before t_{k+1} it acts
    return linear.prepare(records, layout, inverses, linear.Options(h, *source, *weights), method, work, iwork)
