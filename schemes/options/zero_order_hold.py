"""Options of the zero-order hold."""

from nsds.model.system_kinds import FIRST_ORDER
from nsds.schemes.declared import record_of
from nsds.schemes.table import scheme_for

_OPTIONS = {}


@scheme_for(_OPTIONS, {FIRST_ORDER: "first_order.zero_order_hold"})
def zero_order_hold():
    """Options of the zero-order hold: exact for linear systems whose control, source and multipliers are constant over each step.

    A source or control that is a function of time is taken at the end of the step and held. Laws hold at the end of the step, with the
    multiplier that acts over it.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> decay = nsds.system(tank=nsds.first_order_linear(A=[[-1.0]], x=[1.0]))
    >>> rows = nsds.simulate(decay, t_end=1.0, h=0.5, scheme=nsds.zero_order_hold())
    >>> bool(abs(rows["tank"]["x"][-1, 0] - np.exp(-1.0)) < 1e-15)
    True
    """
    return record_of("zero_order_hold", _OPTIONS, locals())
