"""Euler–Moreau time stepping of first-order systems ([Notes], chapter 9): options, and choice of the form of the step.

    M x_{k+1} = M x_k + h theta f_{k+1} + h (1-theta) f_k + h gamma r_{k+1} + h (1-gamma) r_k      theta–gamma scheme         (9.5)
    M x_{k+1} = M x_k + h theta f_{k+1} + h (1-theta) f_k + h r_{k+gamma}                          full theta–gamma scheme    (9.6)
    M x_{k+1} = M x_k + h f(t_{k+theta}, x_{k+theta})     + h r_{k+gamma}                          mid-point scheme           (9.7)

with ``y = h(t, x, lambda)``, ``r = g(t, x, lambda)`` and the law at t_{k+1} in (9.5), at ``t_{k+gamma}``, ``x_{k+gamma} = gamma x_{k+1} +
(1-gamma) x_k`` in the others. Linear systems with constant operators take one step of Newton's method with everything prepared
(`nsds.schemes.first_order.linear`), all others iterate (`nsds.schemes.first_order.newton`).
"""

from nsds.schemes.first_order import linear, newton
from nsds.schemes.first_order.functions import AT_ONCE, set_windows
from nsds.schemes.first_order.relative_degree import require_low_degree
from nsds.schemes.first_order.tables import is_constant, layout_of
from nsds.schemes.memory import Allocator


def prepare(records, mem, options, h, method):
    """Tables, inverse iteration matrices and, where they are constant, the matrices of the one-step problem of all members."""
    work, iwork = Allocator(records.size), Allocator(records.size)
    layout = layout_of(records, work)
    require_low_degree("euler_moreau", records, layout, work)
    theta, gamma, full, midpoint = (options[name].item() for name in ("theta", "gamma", "gamma_for_relation", "midpoint"))
    weights = (1.0, gamma) if full else (gamma, 1.0)  # of r in the equation of x, of x in the relation
    lag = h * (1.0 - theta) if midpoint else 0.0  # how far before t_{k+1} sources act
    is_once = midpoint or theta == 1.0
    set_windows(records, (h - lag, lag) if is_once else AT_ONCE, (h * weights[1], h * (1.0 - weights[1])))
    if not is_constant(records):
        limits = options["newton_tol"].item(), float(options["newton_max_iter"].item())
        words = newton.Options(h, theta, *weights, float(midpoint), *limits)
        return newton.prepare(records, layout, words, method, work, iwork, may_be_mixed=True)
    named = zip(layout.part_names, layout.parts, strict=True)
    inverses = [linear.inverse_of_part(records[name], part, name, h, theta) for name, part in named]
    source = (1.0 if midpoint else theta, lag)  # weight of the newer one
    return linear.prepare(records, layout, inverses, linear.Options(h, *source, *weights), method, work, iwork, linear.terms_of(h, theta))
