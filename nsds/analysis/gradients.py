"""Gradient of a function of the state at the end of a run, by the adjoint method."""

import numpy as np

from nsds import _checks
from nsds.analysis.parameters import named_parameters, one_record, state_of
from nsds.analysis.sensitivities import slope_of
from nsds.analysis.tangent import EVENTS, IMPACTS, TOGETHER, UNTREATED
from nsds.analysis.tangent_run import ROWS, refined
from nsds.analysis.tangent_steps import carried
from nsds.results.description import result_dtype


def gradient(system, *, t_end, objective, parameters=(), rows=ROWS, scheme=None, h=None):
    """Gradient of a function of the state at t_end, by the state at any time before and by parameters: the adjoint of `nsds.sensitivity`.

    Parameters
    ----------
    system : numpy.ndarray
        A record.
    t_end : float
        Time at which the objective is evaluated; no event should be just then.
    objective : function ``objective(x)``
        A number that depends on the state at the end, a plain Python function of x (n,).
    parameters : sequence of str
        See `nsds.sensitivity`.
    rows : int
        Number of parts of the run: the costate is given between them.
    scheme : numpy.ndarray, optional
        ``nsds.event_driven(...)`` with other options than its defaults; with h a time-stepping scheme, by default that of `nsds.simulate`.
    h : float, optional
        Step of a time-stepping scheme, of which each part has a whole number: see `nsds.sensitivity`.

    Returns
    -------
    numpy.ndarray, shape ()
        t (rows + 1,); x (rows + 1, n), states then, all coordinates and then all velocities, or all states; costate (rows + 1, n), the
        gradient of the objective by these; value, of the objective; gradient (n + k,), by the initial state, which is the first costate,
        and then by parameters; error, an estimate of that of all derivatives, see `nsds.sensitivity`; n_impacts, n_events, n_together and
        n_untreated as of `nsds.floquet`; status: where it tells that the run ended early, there is no gradient, but NaN.

    Raises
    ------
    ValueError, TypeError
        Arguments that do not fit; parameters that name no field; a system without tangent map.

    Notes
    -----
    The tangent map of each part, through its events, is kept, and one vector goes back through them. What a force f(t) on the coordinates
    changes, of which nothing need be known in advance, follows from the costate p of the velocities: ``dJ = sum p M^-1 f dt``, an integral
    over all times. At an impact the costate jumps.

    Examples
    --------
    >>> import nsds
    >>> ball = nsds.system(
    ...     ball=nsds.lagrangian_linear(M=[[1.0]], fext=[-9.81], q=[1.0], v=[0.3]),
    ...     floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.8), on="ball"),
    ... )
    >>> found = nsds.gradient(ball, t_end=2.5, objective=lambda x: x[0], parameters=["floor.e"], rows=50)
    >>> found["gradient"].round(4).tolist()
    [0.9275, 0.0931, 4.8707]
    """
    # 1. arguments
    owner = "gradient"
    system, rows = one_record(owner, system), _checks.integer(owner, "rows", rows, low=1)
    start, t_end = float(system["t"]), _checks.number(owner, "t_end", t_end)
    if not t_end > start:
        raise ValueError(f"{owner}: t_end must be after the system's time {start}, got {t_end}")
    _checks.takes(owner, "objective", objective, "x")
    named = named_parameters(owner, system, parameters)
    length = (t_end - start) / rows

    # 2. forward run, with the tangent map of each part; rows are doubled until these are accurate
    def run_with(in_part):
        run = carried(owner, system.reshape(1), length, scheme, h, parameters=named, rows=in_part, sections=rows)
        run.record(rows)
        run.advance(rows)
        return run, _product(run.maps[0])

    (run, maps), error = run_with(1), np.zeros(1)
    if not run.is_exact:
        first = run
        run, error, _ = refined(lambda in_part: (first, maps) if in_part == 1 else run_with(in_part), 2, length)
    # 3. result, NaN where the run ends early
    n, k, states = run.plan.n_own, len(named), run.plan.n
    counts = ("n_impacts", "n_events", "n_together", "n_untreated", "status")
    fields = [("t", (rows + 1,)), ("x", (rows + 1, n)), ("costate", (rows + 1, n)), ("value", ()), ("gradient", (n + k,)), ("error", ())]
    result = np.zeros((), result_dtype([(name, "<f8", shape) for name, shape in fields] + [(name, "<i8") for name in counts]))
    for name, _ in fields:
        result[name] = np.nan
    result["error"] = error[0]
    t, _, x, _ = run.recorded(0)
    result["t"][0], result["x"][0] = start, state_of(system)
    result["t"][1 : len(t) + 1], result["x"][1 : len(t) + 1] = t, x
    maps = run.maps[0][:, :n][:, :, np.r_[:n, states : run.plan.n_columns]]  # the sources of a circuit, which time gives, lie between
    # 4. backwards: one vector through the maps of all parts
    if run.status[0] == 0:
        last = result["x"][-1]
        result["value"] = _checks.number(owner, "objective(x)", objective(last.copy()))
        costate, by_parameters = np.array([slope_of(objective, last, i) for i in range(n)]), np.zeros(k)
        result["costate"][-1] = costate
        for row in range(rows - 1, -1, -1):
            by_parameters += costate @ maps[row, :, n:]
            costate = costate @ maps[row, :, :n]
            result["costate"][row] = costate
        result["gradient"] = np.append(costate, by_parameters)
    for name, column in (("n_impacts", IMPACTS), ("n_events", EVENTS), ("n_together", TOGETHER), ("n_untreated", UNTREATED)):
        result[name] = run.notes[0, column]
    result["status"] = run.status[0]
    return result[()]


def _product(maps):
    """Map (1, n, columns) over all parts, from their maps (parts, n, columns)."""
    n = maps.shape[1]
    product = np.eye(n, maps.shape[2])
    for M in maps:
        product = M[:, :n] @ product
        product[:, n:] += M[:, n:]
    return product[None]
