"""The time loop, recording, progress, interruption and failure policy: once, for all schemes."""

import math
import os
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nsds import _checks, _jit
from nsds.kinds import RELATIONS
from nsds.laws import LAWS
from nsds.layout import state_fields
from nsds.records import N_ITER, RESIDUAL, STATUS, STEP, T0, T, copied, memory, model_of
from nsds.results import SimulationError, SimulationInterrupted, recorded
from nsds.schemes import sampled_control, several
from nsds.schemes import table as schemes
from nsds.schemes.consistency import warn_of_violations
from nsds.schemes.sampled_control import act
from nsds.status import CONVERGED, NON_FINITE, NOT_COMPUTED, advice

_CHUNK_SECONDS = 0.2
# Words of the head of a row.
_ROW_T, _ROW_STEP, _ROW_STATUS, _ROW_N_ITER, _ROW_RESIDUAL = range(5)
# Columns of a member's progress.
_ROW, _DONE, _STOPPED = range(3)


class _Run(NamedTuple):
    """Records being simulated in place, their memory, and what the scheme prepared."""

    records: np.ndarray
    mem: np.ndarray
    prepared: NamedTuple
    controls: NamedTuple
    solver: int
    solver_options: np.ndarray


def simulate(system, *, t_end, h, scheme=None, solver=None, save_every=1, fields=None, progress=None, on_failure="raise"):
    """March a system, or every member of an ensemble, from its time to ``t_end``.

    Parameters
    ----------
    system : numpy.ndarray
        A record from `nsds.system`, or an array of such records; it is not changed.
    t_end : float
        The run takes the fewest steps of size h that reach t_end.
    h : float
        Step size.
    scheme : numpy.ndarray, or dict of str to numpy.ndarray, optional
        For instance ``nsds.moreau_jean(theta=0.5)``; Moreau–Jean by default, `nsds.euler_moreau` for first-order systems. A dict gives
        each system its own, which no interaction may link to one with another.
    solver : str or numpy.ndarray, optional
        Method for the one-step problems: a name from `nsds.solvers.methods`, or a record from `nsds.solvers.solver`.
    save_every : int
        Save every that many steps; the initial and the last state are always saved.
    fields : sequence of str, optional
        What to save, as ``"ball"`` (its state) or ``"ball.q"``; all state by default. Any numeric field of the record may be named.
    progress : bool, optional
        Progress bar; by default on a terminal when the run takes longer than half a second.
    on_failure : "raise", "warn" or "continue"
        What to do when a step is not solved or becomes NaN. The status of every step is in the trajectory.

    Returns
    -------
    numpy.ndarray
        Structured array (rows,), for an ensemble (members, rows), with t, step, status, n_iter, residual, and one field per part: q, v of
        Lagrangian systems; x, r and a constant u of first-order ones; y, lambda (of the step that ends at t) of interactions, on
        Lagrangian systems also ydot, active; state of controllers. Row 0 is the initial state. Where steps between two rows are not
        saved, status is the last that was not 0, n_iter the sum, residual the maximum.

    Raises
    ------
    ValueError, TypeError
        Arguments that do not fit; a singular iteration matrix.
    SimulationError
        A step failed and ``on_failure="raise"``; the trajectory so far is on the exception.
    SimulationInterrupted
        Ctrl-C; the trajectory so far is on the exception.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> trajectory = nsds.simulate(nsds.examples.bouncing_ball(), t_end=10.0, h=5e-3)
    >>> trajectory["ball"]["q"].shape
    (2001, 3)
    >>> float(trajectory["floor"]["lambda"].max().round(3))
    8.437
    """
    if isinstance(scheme, dict):
        settings = {"t_end": t_end, "h": h, "solver": solver, "save_every": save_every, "progress": progress, "on_failure": on_failure}
        groups = several.groups_of("simulate", system, scheme)
        pieces = [
            simulate(several.part_of(system, names), scheme=options, fields=several.fields_of(fields, names), **settings)
            for options, names in groups
        ]
        return several.joined_rows(system, pieces)
    save_every = _checks.integer("simulate", "save_every", save_every, low=1)
    if on_failure not in ("raise", "warn", "continue"):
        raise ValueError(f"simulate: on_failure must be 'raise', 'warn' or 'continue', got {on_failure!r}")
    run = _prepare("simulate", system, h, scheme, solver)
    n_steps = _number_of_steps(run.records, _checks.number("simulate", "t_end", t_end), h)
    dtype, sources = recorded(run.records, fields)
    n_rows = 1 + -(-n_steps // save_every)
    trajectory = np.empty((run.records.size, n_rows), dtype)
    reached = np.zeros((run.records.size, 3), np.int64)
    _march(run, np.shape(system), n_steps, save_every, progress, on_failure == "raise", sources, trajectory, reached)
    warn_of_violations(run.prepared, trajectory)
    trajectory = _finish(run, np.shape(system), trajectory, reached, save_every, on_failure)
    return trajectory.reshape(*np.shape(system), trajectory.shape[1])


def step(system, h, *, scheme=None, solver=None, on_failure="raise"):
    """One step: a new record (or ensemble) at ``t + h``. For many steps `simulate` saves the preparation that each call repeats.

    Parameters
    ----------
    system, h, scheme, solver, on_failure
        See `simulate`.

    Returns
    -------
    numpy.ndarray
        Record with the new state, and status, n_iter and residual of the step.

    Examples
    --------
    >>> import nsds
    >>> ball = nsds.step(nsds.examples.bouncing_ball(), h=0.1)
    >>> float(ball["t"]), float(ball["ball"]["v"][0].round(3))
    (0.1, -0.981)
    """
    if on_failure not in ("raise", "warn", "continue"):
        raise ValueError(f"step: on_failure must be 'raise', 'warn' or 'continue', got {on_failure!r}")
    if isinstance(scheme, dict):
        groups = several.groups_of("step", system, scheme)
        pieces = [
            step(several.part_of(system, names), h, scheme=options, solver=solver, on_failure=on_failure) for options, names in groups
        ]
        return several.joined_records(system, pieces)
    run = _prepare("step", system, h, scheme, solver)
    dtype, sources = recorded(run.records)
    trajectory = np.empty((run.records.size, 2), dtype)
    reached = np.zeros((run.records.size, 3), np.int64)
    _march(run, np.shape(system), 1, 1, False, False, sources, trajectory, reached)
    _finish(run, np.shape(system), trajectory, reached, 1, on_failure)
    return run.records.reshape(np.shape(system))


def _prepare(owner, system, h, scheme, solver):
    model_of(system)
    _checks.number(owner, "h", h, above=0.0)
    module, options = schemes.chosen(scheme, system)
    method, solver_options, address = schemes.solver_of(solver, system)
    records = copied(system).reshape(-1)
    mem = memory(records)
    _require_finite(owner, records)
    anchored = records["t0"] + records["step"] * h == records["t"]
    records["t0"] = np.where(anchored, records["t0"], records["t"])
    records["step"] = np.where(anchored, records["step"], 0)
    prepared = module.prepare(records, mem, options, h, method)
    return _Run(records, mem, prepared, sampled_control.prepare(owner, records, h), address, solver_options)


def _require_finite(owner, records):
    """Fields can be assigned after construction, so what is about to be computed with is checked once more."""
    for name, kind, *law in model_of(records):
        is_relay = law[:1] == ["relay"]
        for field, values in _numbers(records[name]):
            if is_relay and field in ("lower", "upper"):  # may be infinite
                values = np.where(np.isinf(values), 0.0, values)
            if field == "mass":  # of rigid bodies, infinite where nothing stops them
                values = np.where(np.isposinf(values), 0.0, values)
            if not np.isfinite(values).all():
                raise ValueError(f"{owner}: {name}.{field} must be finite")
        parameters = LAWS[law[0]].parameters if kind in RELATIONS and not is_relay else {}
        for field, (low, high) in parameters.items():
            if not ((records[name][field] >= low) & (records[name][field] <= high)).all():
                raise ValueError(f"{owner}: {name}.{field} must be in [{low:g}, {high:g}]")
        if is_relay and not (records[name]["lower"] <= records[name]["upper"]).all():
            raise ValueError(f"{owner}: {name}.lower must be at most {name}.upper")


def _numbers(record):
    """(name, values) of all float fields of a record, those of nested ones too."""
    for field in record.dtype.names:
        if record.dtype[field].names:
            yield from ((f"{field}.{inner}", values) for inner, values in _numbers(record[field]))
        elif record.dtype[field].base.kind == "f":
            yield field, record[field]


def _number_of_steps(records, t_end, h):
    if (t_end <= records["t"]).any():
        raise ValueError(f"simulate: t_end must be after the system's time {records['t'].max()}, got {t_end}")
    counts = np.ceil((t_end - records["t"]) / h - 1e-6).astype(np.int64)
    if (counts != counts[0]).any():
        raise ValueError("simulate: all members of an ensemble must have the same time at the start")
    return max(int(counts[0]), 1)


def _march_template(first, last, n_steps, n_total, save_every, stop, sources, reached, tables, functions, controls, solver,
                    solver_options, options, mems, imems, works, iworks, rows, irows, width):  # fmt: skip
    """Up to n_steps further steps of members first..last, each recorded where it is due. Written once; each scheme gets its copy."""
    h = options[0]
    controllers, where, control_functions, scratch = controls
    for m in range(first, last):
        mem, imem, work, iwork, address, row, irow = mems[m], imems[m], works[m], iworks[m], functions[m], rows[m], irows[m]
        at, done, stopped = reached[m, _ROW] * width, reached[m, _DONE], reached[m, _STOPPED]
        if at == 0:
            start(mem[T], tables, address, options, mem, imem, work, iwork)  # noqa: F821
            if controllers.size > 0:
                act(mem[T], h, controllers, where, control_functions[m], mem, scratch[m])
            irow[_ROW_STATUS], irow[_ROW_N_ITER], row[_ROW_RESIDUAL] = imem[STATUS], imem[N_ITER], mem[RESIDUAL]
            at = _save(at, width, sources, mem, imem, row, irow)
        for _ in range(min(n_steps, n_total - done)):
            if stopped != 0:
                break
            k = imem[STEP] + 1
            t = mem[T0] + k * h
            status, n_iter, residual = step_(t, tables, address, solver, solver_options, options, mem, imem, work, iwork)  # noqa: F821
            mem[T], imem[STEP], imem[STATUS], imem[N_ITER], mem[RESIDUAL] = t, k, status, n_iter, residual
            if controllers.size > 0:
                act(t, h, controllers, where, control_functions[m], mem, scratch[m])
            done += 1
            irow[at + _ROW_N_ITER] += n_iter
            row[at + _ROW_RESIDUAL] = max(row[at + _ROW_RESIDUAL], residual)
            if status != 0:
                irow[at + _ROW_STATUS] = status
                stopped = status if stop else 0
            if done % save_every == 0 or done == n_total or stopped != 0:
                at = _save(at, width, sources, mem, imem, row, irow)
        reached[m, _ROW], reached[m, _DONE], reached[m, _STOPPED] = at // width, done, stopped


@_jit.inlined
def _save(at, width, sources, mem, imem, row, irow):
    """Fill the row that begins at word ``at`` with the recorded words, clear the head of the next, and return where that begins."""
    row[at + _ROW_T], irow[at + _ROW_STEP] = mem[T], imem[STEP]
    behind_head = at + _ROW_RESIDUAL + 1
    for i in range(sources.size):
        row[behind_head + i] = mem[sources[i]]
    at += width
    if at < row.size:
        irow[at + _ROW_STATUS], irow[at + _ROW_N_ITER], row[at + _ROW_RESIDUAL] = 0, 0, 0.0
    return at


_marches = {}


def _march_of(stepper):
    """The compiled time loop of a scheme."""
    name = stepper.__name__.rpartition(".")[2]
    if name not in _marches:
        march = _jit.specialised(_march_template, name, start=stepper.start, step_=stepper.step)
        if _jit.is_cold(march.__name__):
            print("nsds: compiling kernels, once for this version of the package (about 20 s) ...", file=sys.stderr, flush=True)
        _marches[name] = _jit.kernel(march)
    return _marches[name]


def _march(run, shape, n_steps, save_every, progress, stop, sources, trajectory, reached):
    """Run the compiled loop in chunks of a fifth of a second, so that a progress bar moves and Ctrl-C works."""
    p, march = run.prepared, _march_of(run.prepared.stepper)
    rows = trajectory.view(np.float64).reshape(trajectory.shape[0], -1)
    n_members = trajectory.shape[0]
    workers = min(n_members, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    bounds = np.linspace(0, n_members, workers + 1).astype(int)

    def chunk(first, last, n):
        march(first, last, n, n_steps, save_every, stop, sources, reached, p.tables, p.functions, tuple(run.controls), run.solver,
              run.solver_options, p.options, run.mem, run.mem.view(np.int64), p.work, p.iwork, rows, rows.view(np.int64),
              rows.shape[1] // trajectory.shape[1])  # fmt: skip

    bar = _progress_bar(progress, n_steps)
    pool = ThreadPoolExecutor(workers) if workers > 1 else None
    done, n = 0, min(n_steps, 64)
    try:
        while done < n_steps and not (stop and reached[:, _STOPPED].any()):
            began = time.perf_counter()
            if pool is None:
                chunk(0, n_members, n)
            else:
                futures = [pool.submit(chunk, first, last, n) for first, last in pairwise(bounds)]
                for future in futures:
                    future.result()
            elapsed = time.perf_counter() - began
            done += n
            bar.update(n)
            n = max(1, min(int(n * min(8.0, _CHUNK_SECONDS / max(elapsed, 1e-6))), n_steps - done))
    except KeyboardInterrupt:
        if pool is not None:
            pool.shutdown(wait=True)
        kept = _cut(trajectory, reached)
        raise SimulationInterrupted(kept.reshape(*shape, kept.shape[1])) from None
    finally:
        bar.close()
        if pool is not None:
            pool.shutdown(wait=True)


class _NoBar:
    def update(self, n):
        pass

    def close(self):
        pass


def _progress_bar(progress, n_steps):
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return _NoBar()
    from tqdm.auto import tqdm

    return tqdm(total=n_steps, unit=" steps", unit_scale=True, delay=0.0 if progress else 0.5)


def _cut(trajectory, reached):
    """Rows that some member reached; the rest of the others is marked as not computed."""
    kept = trajectory[:, : reached[:, _ROW].max()]
    for m in np.flatnonzero(reached[:, _ROW] < kept.shape[1]):
        rest = kept[m, reached[m, _ROW] :]
        rest.view(np.float64)[...] = math.nan
        rest["status"], rest["step"], rest["n_iter"] = NOT_COMPUTED, NOT_COMPUTED, 0
    return kept


def _finish(run, shape, trajectory, reached, save_every, on_failure):
    """Apply the failure policy to what was computed."""
    failed = np.argwhere(trajectory["status"] != CONVERGED) if not reached[:, _STOPPED].any() else None
    if failed is None:
        trajectory = _cut(trajectory, reached)
        member = int(np.flatnonzero(reached[:, _STOPPED])[0])
        where = (member, reached[member, _ROW] - 1)
    elif failed.size:
        where = tuple(failed[0])
    else:
        return trajectory
    row = trajectory[where]
    member = None if shape == () else int(where[0])
    cause = _cause(run, where[0], row) if row["status"] == NON_FINITE else ""
    if on_failure == "raise":
        kept = trajectory.reshape(*shape, trajectory.shape[1])
        raise SimulationError(kept, member, int(row["step"]), row["t"].item(), int(row["status"]), row["residual"].item(), cause)
    if on_failure == "warn":
        at = f"step {row['step']}" if save_every == 1 else f"before step {row['step']}"
        message = f"{len(failed)} of {trajectory['status'].size} saved rows have failed steps; the first: {at} (t = {row['t']:.9g}): "
        warnings.warn(message + (cause or advice(row["status"])), RuntimeWarning, stacklevel=3)
    return trajectory


def _cause(run, m, row):
    """Name the part, and the function if it is to blame, of a step that gave NaN or infinity."""
    function = run.prepared.stepper.blame(run.records, run.prepared, m)
    if function:
        return function
    for name, fields in state_fields(run.records):
        if not all(np.isfinite(run.records[name][field][m]).all() for field in fields):
            return f"the state of part '{name}' became NaN or infinite"
    return ""
