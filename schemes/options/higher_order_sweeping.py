"""Options of the higher-order sweeping process."""

from nsds.model.system_kinds import FIRST_ORDER
from nsds.schemes.declared import record_of
from nsds.schemes.table import scheme_for

_OPTIONS = {}


@scheme_for(_OPTIONS, {FIRST_ORDER: "first_order.higher_order_sweeping"})
def higher_order_sweeping():
    """Options of the higher-order sweeping process: linear complementarity systems of relative degree 1, 2, 3, ...

    When y reaches 0, its derivatives ``y' = z_2, y'' = z_3, ...`` jump, up to the relative degree r of the system: a negative z_i becomes 0
    if none of lower order is positive; the first that is positive ends this, and what follows it stays. With r = 2 this is an inelastic
    impact. For linear systems with constant operators whose constraints are all `nsds.complementarity`, of one relative degree (Acary,
    Brogliato, Goeleven 2008).

    Notes
    -----
    A run refuses other laws, operators that change, a singular M, relative degrees that are 0 or differ, and a ``C A^(r-1) B`` that is not
    positive definite. Entries of D, C B, C A B, ... are zero up to 1e-12 of the magnitudes that they are summed from.

    The multiplier is a distribution: measures nu_i on z_i, of which only nu_r has a density. The lambda of a row is the mass of nu_r in the
    step that ends at t, over h: the multiplier itself while y rests on 0, and what grows like 1/h at a jump. The input ``r`` of a row is
    that of all measures over the step, over h: ``h C A^(i-1) M^-1 r`` is the mass of nu_i, for the last i ``C A^(r-1) B`` times that.
    Summed over a jump, which takes up to r steps, these masses converge to what jumps.

    First order in h. Initial states with ``y < 0``, or on 0 with a derivative that is negative, jump in the first steps. A source that
    varies in time must not reach y earlier than its derivative of order r - 1: else the status is EARLY_SOURCE.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> chain = nsds.linear_complementarity_system(A=np.eye(3, k=1), B=[[0], [0], [1]], C=[[1, 0, 0]], b=[0, 0, -1], x=[1, 0, 0])
    >>> rows = nsds.simulate(chain, t_end=3.0, h=1e-3, scheme=nsds.higher_order_sweeping())
    >>> rows["plant"]["x"][-1].tolist(), float(rows["switches"]["lambda"][-1].round(6))  # it rests
    ([0.0, 0.0, 0.0], 1.0)
    >>> jumps = 1e-3 * rows["plant"]["r"][rows["t"] < 1.85].sum(axis=0)  # of y' from -1.65 to 0, of y'' from -1.82
    >>> [float(jump.round(2)) for jump in jumps[1:]]
    [1.65, 1.85]
    """
    return record_of("higher_order_sweeping", _OPTIONS, locals())
