"""Derivatives of the state at the end of a run by the initial state and by parameters."""

import numpy as np

from nsds import _checks
from nsds.analysis.parameters import named_parameters, one_record
from nsds.analysis.tangent import EVENTS, IMPACTS, TOGETHER, UNTREATED
from nsds.analysis.tangent_run import refined
from nsds.analysis.tangent_steps import carried
from nsds.results.description import result_dtype

_STEP = 2.0**-17  # finite difference of the objective, relative to 1 or the variable


def sensitivity(system, *, t_end, parameters=(), objective=None, rows=None, scheme=None, h=None):
    """Derivatives of the state at t_end, and of a function of it, by the initial state and by parameters, through all events.

    Parameters
    ----------
    system : numpy.ndarray
        A record.
    t_end : float or array_like (m,)
        Time at which the state is differentiated; no event should be just then.
    parameters : sequence of str
        Numbers of the record, as ``"floor.e"``, ``"floor.mu"`` or ``"ball.fext[0]"``: of systems, interactions and laws; at an end of
        its range, as e = 1, that of a number is the derivative from within, and friction may not be 0.
    objective : function ``objective(x)``, optional
        A number that depends on the state at the end, a plain Python function of x (n,).
    rows : int, optional
        Points of the run between which the derivatives are of fourth order, where motions are not linear, or parameters act on them. By
        default as many as they need: doubled from 128 on until the derivatives change by less than 1e-8 of the largest.
    scheme : numpy.ndarray, optional
        ``nsds.event_driven(...)`` with other options than its defaults; with h a time-stepping scheme, by default that of `nsds.simulate`.
    h : float, optional
        Step of a time-stepping scheme, of which one t_end has a whole number: the derivatives are then those of what it computes (see
        Notes), and rows is without meaning. Leave it out for event-driven motions.

    Returns
    -------
    numpy.ndarray, shape () or (m,)
        x (n,), the state at the end, all coordinates and then all velocities, or all states; by_state (n, n) and by_parameters (n, k),
        its derivatives; value, gradient (n + k,) of the objective, by the initial state and then by parameters, NaN without one;
        error, an estimate of that of the derivatives, relative to the largest of them or 1, NaN where rows are given; n_impacts, n_events,
        n_together and n_untreated as of `nsds.floquet`; status.

    Raises
    ------
    ValueError, TypeError
        Arguments that do not fit; parameters that name no field; a system without tangent map.

    Notes
    -----
    Derivatives pass events by saltation matrices (Leine and Nijmeijer 2004). Those of a run by time stepping, which h asks for, are
    derivatives of each step with the same active constraints, up to the tolerance of iterations over 1e-5. Its impacts lie at the ends of
    steps, and their time does not move, so that they do not converge to the former: they tell what the scheme computes, not what it
    approximates. Without impacts, and without other jumps of the motion, they do. Where a motion begins on a surface on which lambda keeps
    it, states beside it come back at once, see `nsds.floquet`: of a contact that is closed at the start those that it opens, of which
    derivatives are one-sided, while those by the gap of one that sticks are for states that it leaves closed.

    Examples
    --------
    >>> import nsds
    >>> ball = nsds.system(
    ...     ball=nsds.lagrangian_linear(M=[[1.0]], fext=[-9.81], q=[1.0], v=[0.3]),
    ...     floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.8), on="ball"),
    ... )
    >>> found = nsds.sensitivity(ball, t_end=2.5, parameters=["floor.e"])
    >>> found["by_state"].round(4).tolist(), float(found["by_parameters"][0, 0].round(4))
    ([[0.9275, 0.0931], [11.7413, 1.3591]], 4.8707)
    """
    # 1. arguments
    owner = "sensitivity"
    system = one_record(owner, system)
    named, t_end = named_parameters(owner, system, parameters), _checks.array(owner, "t_end", t_end)
    if rows is not None:
        rows = _checks.integer(owner, "rows", rows, low=1)
    if objective is not None:
        _checks.takes(owner, "objective", objective, "x")
    start = float(system["t"])
    if t_end.ndim > 1 or t_end.size == 0 or not (t_end > start).all():
        raise ValueError(f"{owner}: t_end must be after the system's time {start}, or an array of such times, got {t_end.tolist()}")
    # 2. one member for each end; rows are doubled until the derivatives are accurate
    systems = np.repeat(system.reshape(1), t_end.size)
    lengths, error = t_end.reshape(-1) - start, np.full(t_end.size, np.nan)

    def run_with(rows):
        run = carried(owner, systems, lengths, scheme, h, parameters=named, rows=rows)
        run.advance(1)
        return run, run.in_units(run.columns)

    run, columns = run_with(rows)
    if run.is_exact:
        error[:] = 0.0
    elif rows is None:
        first = run
        run, error, _ = refined(lambda rows: (first, columns) if rows == first.rows else run_with(rows), first.rows, lengths.min())
    # 3. result
    n, k = run.plan.n_own, len(named)
    vectors = [("x", (n,)), ("by_state", (n, n)), ("by_parameters", (n, k)), ("value", ()), ("gradient", (n + k,)), ("error", ())]
    counts = ("n_impacts", "n_events", "n_together", "n_untreated", "status")
    result = np.zeros(t_end.size, result_dtype([(name, "<f8", shape) for name, shape in vectors] + [(name, "<i8") for name in counts]))
    result["x"], result["status"] = run.states(), run.status
    result["by_state"], result["by_parameters"] = run.columns[:, :n, :n], run.columns[:, :n, run.plan.n :]
    result["value"], result["gradient"], result["error"] = np.nan, np.nan, error
    # 4. chain rule for the objective
    for row in result if objective is not None else ():
        row["value"] = _checks.number(owner, "objective(x)", objective(row["x"].copy()))
        slope = [slope_of(objective, row["x"], i) for i in range(n)]
        row["gradient"] = slope @ np.concatenate([row["by_state"], row["by_parameters"]], axis=1)
    for name, column in (("n_impacts", IMPACTS), ("n_events", EVENTS), ("n_together", TOGETHER), ("n_untreated", UNTREATED)):
        result[name] = run.notes[:, column]
    return result.reshape(t_end.shape)[()]


def slope_of(objective, x, i):
    """Central difference of the objective by coordinate i."""
    high, low = x.copy(), x.copy()
    high[i] += _STEP * max(1.0, abs(x[i]))
    low[i] -= _STEP * max(1.0, abs(x[i]))
    return (objective(high) - objective(low)) / (high[i] - low[i])
