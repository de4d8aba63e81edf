"""Moreau–Jean time stepping of Lagrangian systems ([EventCapturing]; [Notes], 10.2): choice of the form of the step.

Linear systems with linear relations use the linear form, with everything prepared; all others iterate (the Newton form).
"""

from nsds.schemes.lagrangian import bordered, linear, mixed, mixed_friction, newton
from nsds.schemes.lagrangian.tables import is_linear, layout_of
from nsds.schemes.memory import Allocator
from nsds.schemes.problem.tables import has_friction


def prepare(records, mem, options, h, method):
    """Tables, iteration matrices and, where they are constant, the matrices of the one-step problem of all members."""
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
        plans = mixed.planned(records, layout, constant, method, work)
        if plans is not None:
            stepper = mixed_friction if has_friction(layout.constraints) else mixed
            return mixed.prepare(records, layout, constant, method, plans, stepper, work, iwork)
        return linear.prepare(records, layout, constant, method, work, iwork)
    words = newton.options_of(h, options)._replace(sees_q_star=float(options["pre_impact"] == b"q_star"))
    return newton.prepare(records, layout, words, method, work, iwork, may_be_mixed=True)
