"""Controllers that act at their own period, with constant output in between."""

import numpy as np

from nsds import _checks
from nsds.model.functions import function_name
from nsds.model.records import model_of, pack
from nsds.model.system_kinds import CONTROL, split

NEVER = -1e300


def sampled_control(control, *, reads, writes, start=None, period=None, state=None, z=None):
    """Controller with its own clock: at its instants it reads parts, and sets the control u of systems until the next one.

    Parameters
    ----------
    control : function ``control(t, x, state, z, u)``
        Reads the time, x, all numbers that it reads, one behind the other, and its own ``state``, which it may change; writes ``u``, the
        controls of the systems that it writes, one behind the other, which holds the last ones, and flags likewise.
    reads : str or sequence of str
        Names of systems, whose state is read (x; of mechanical systems q, then v), or of any field of any part, as ``"floor.lambda"``,
        ``"contacts.y"``, ``"arm.p"``. Of array parts all elements, one after the other. Values are those of the row at that time, so that
        lambda is that of the step before, as rows have it: of contacts an impulse, if the scheme says nothing else.
    writes : str or sequence of str
        Names of systems with a constant ``u``; or ``"grains.alive"`` of `nsds.rigid_bodies`, ``"bond.enabled"`` of a `nsds.interaction` or
        of `nsds.collisions`, which were given with it: there a number that is not 0 switches on. No two controllers write the same. What is
        switched at a row takes part, or does not, from then on; lambda of the row is that of the step before.
    start : function ``start(t, x, state, z, u)``, optional
        What is called at the first instant in place of ``control``, for instance to take a first difference. A run from a restart goes on
        with ``control``.
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
        A part for `nsds.system`, with the fields state, t_last (time of the last call), period, z. Arrays of `nsds.collisions` have room
        for more contacts than there are, of which ``"contacts.n"`` says how many; what is read behind them moves when that room grows.

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
    reads, writes = _names(owner, "reads", reads), _names(owner, "writes", writes)
    fields = {
        "control": function_name(control, owner, "control"),
        "period": np.array(0.0 if period is None else _checks.number(owner, "period", period, above=0.0)),
        "t_last": np.array(NEVER),
    }
    if start is not None:
        fields["start"] = function_name(start, owner, "start")
    for name, value in (("state", state), ("z", z)):
        if value is not None:
            fields[name] = _checks.array(owner, name, value, at_least=1, n_dims=1)
    return {"kind": owner, "record": pack(fields, None), "reads": reads, "writes": writes}


def _names(owner, what, given):
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, (list, tuple)) else ()
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise TypeError(f"{owner}: {what} must be names of parts, each once, got {_checks.shortened(given)}")
    return names


def has_controls(records):
    """Whether a model has controllers."""
    return len(split(model_of(records))[2]) > 0
