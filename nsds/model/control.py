"""Controllers that act at their own period and hold their output in between."""

import numpy as np

from nsds import _checks
from nsds.model.functions import function_name
from nsds.model.kinds import CONTROL
from nsds.model.records import pack

_NEVER = -1e300


def sampled_control(control, *, reads, writes, period=None, state=None, z=None):
    """Controller with its own clock: at its instants it reads parts, and sets the control u of one of them until the next.

    Parameters
    ----------
    control : function ``control(t, x, state, z, u)``
        Reads the time, the states x of the parts it reads, one behind the other (of a Lagrangian system q, then v), and its own
        ``state``, which it may change; writes ``u``, which holds the last one.
    reads : str or sequence of str
        Names of systems (all elements of an array part).
    writes : str
        Name of a system with a constant ``u``.
    period : float, optional
        Time between two calls, a multiple of the step; every step if not given. The first call is at the start, and a row of the trajectory
        holds the control that was computed at its time and acts after it.
    state : array_like, optional
        The controller's memory at the start.
    z : array_like, optional
        Parameters passed to the function.

    Returns
    -------
    dict
        A part for `nsds.system`, with the fields state, t_last (time of the last call), period, z.

    Raises
    ------
    TypeError, ValueError
        Wrong shape or type, a period that is not positive, or a function that has the wrong arguments or does not compile.

    Examples
    --------
    >>> import nsds
    >>> def feedback(t, x, state, z, u):
    ...     u[0] = -z[0] * x[0]
    >>> system = nsds.system(
    ...     plant=nsds.first_order_linear(A=[[1.0]], x=[1.0], u=[0.0]),
    ...     controller=nsds.sampled_control(feedback, reads="plant", writes="plant", period=0.1, z=[3.0]),
    ... )
    >>> rows = nsds.simulate(system, t_end=1.0, h=0.05, scheme=nsds.zero_order_hold())
    >>> rows["plant"]["u"][:4, 0].round(3)
    array([-3.   , -3.   , -2.369, -2.369])
    """
    owner = CONTROL
    names = (reads,) if isinstance(reads, str) else tuple(reads) if isinstance(reads, (list, tuple)) else ()
    if not names or not all(isinstance(name, str) for name in (*names, writes)) or len(set(names)) < len(names):
        given = f"{_checks.shortened(reads)} and {_checks.shortened(writes)}"
        raise TypeError(f"{owner}: reads and writes must be names of parts, each once, got {given}")
    fields = {
        "control": function_name(control, owner, "control"),
        "period": np.array(0.0 if period is None else _checks.number(owner, "period", period, above=0.0)),
        "t_last": np.array(_NEVER),
    }
    for name, value in (("state", state), ("z", z)):
        if value is not None:
            fields[name] = _checks.array(owner, name, value, at_least=1, n_dims=1)
    return {"kind": owner, "record": pack(fields, None), "reads": names, "writes": writes}
