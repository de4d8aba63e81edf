"""Runs into HDF5 files: the time loop of `nsds.schemes.run.simulation` with memory that stays bounded."""

import numpy as np

from nsds import _checks
from nsds.model.functions import offered
from nsds.model.records import widened
from nsds.results.storage import RunFile
from nsds.results.trajectories import restart
from nsds.schemes.run.simulation import pauses_of, run_through
from nsds.schemes.run.stepping import stepper
from nsds.schemes.run.stop_conditions import Until
from nsds.solvers import table as solvers
from nsds.status import NOT_COMPUTED


def stream(system, file, *, t_end, h, scheme=None, solver=None, save_every=1, t_eval=None, fields=None, progress=None,
           on_failure="raise", until=None, callback=None, callback_every=1, overwrite=False, check=False, functions=None):  # fmt: skip
    """March as `nsds.simulate` does, with the rows going to an HDF5 file: memory stays bounded, however long the run (extra ``io``).

    Rows are written in blocks of 32 MB and at least every five seconds, the first ones at once. The file is valid, with all rows so far,
    also after a failure and Ctrl-C; after a kill, on a full disk or when the power fails it holds the rows up to the last block.
    `nsds.read_trajectory` and `nsds.read_system` read it, also while the run goes on, and `nsds.resume` goes on with it.

    Parameters
    ----------
    system : numpy.ndarray
        A record from `nsds.system`, or an array of such records; it is not changed.
    file : str or Path
        HDF5 file to make, ending in ``.h5`` or ``.hdf5``.
    t_end, save_every, t_eval, fields, progress, on_failure, callback, callback_every, check, functions
        See `nsds.simulate`.
    h : float
        Step size, of all members.
    scheme : numpy.ndarray, optional
        One for all systems.
    until : str or function, optional
        As of `nsds.simulate`: ends the run at the first saved row after the initial one at which it holds, of an ensemble each member at
        its own. A text goes into the file, and a run that is resumed before it has held ends there, too; a function is given again.
    solver : str or numpy.ndarray, optional
        Method for the one-step problems; a run with a function of one's own is resumed by the process that made it alone.
    overwrite : bool
        Whether a file that exists may be replaced: with the first rows of the run, not before.

    Returns
    -------
    numpy.ndarray
        The record, or ensemble, at the end of the run, from which one can go on; members that ``until`` ended, each at its own end.

    Raises
    ------
    ImportError
        h5py is not installed.
    FileExistsError
        The file exists.
    BlockingIOError
        Another run writes the file.
    OSError
        The disk is full: says how much room there is and how much the run wants; or it fails. The file holds the rows written before.
    ValueError, TypeError, SimulationError, SimulationInterrupted
        As `nsds.simulate`, or the name of a file of another format; the trajectory on the exception is the last block, the whole one is
        in the file.

    Examples
    --------
    >>> import nsds, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "run.h5"
    ...     final = nsds.stream(nsds.examples.bouncing_ball(), file, t_end=10.0, h=5e-3)
    ...     trajectory = nsds.read_trajectory(file)
    >>> trajectory["ball"]["q"].shape, bool((trajectory["ball"]["q"][-1] == final["ball"]["q"]).all())
    ((2001, 3), True)
    """
    offered("stream", functions)
    if isinstance(scheme, dict):
        raise ValueError("stream: the rows of a dict of schemes are computed one scheme after the other; expected one scheme, got a dict")
    t_end = _checks.number("stream", "t_end", t_end)
    solver = solvers.solver(solver) if callable(solver) else solver  # a record goes into the file
    pauses = pauses_of("stream", t_eval, save_every, until, callback, callback_every)
    path = _checks.path_ending("stream", "file", file, "HDF5", (".h5", ".hdf5"))
    run_file = RunFile("stream", path, _checks.flag("stream", "overwrite", overwrite))
    try:
        run, recorder = run_through("stream", system, h, scheme, solver, on_failure, t_end, save_every, fields, progress, run_file, check,
                                    pauses=pauses)  # fmt: skip
    finally:
        run_file.close()
    return _at_end(run, recorder, np.shape(system), h, scheme, solver)


def _at_end(run, recorder, shape, h, scheme, solver):
    """The record, or ensemble, at the end of a run."""
    records, steps = run.records.reshape(shape), np.zeros(shape, np.int64)
    for m, (before, n) in recorder.ended.items():  # the run has gone on with them: their last steps are made again
        run.records[m], steps.reshape(-1)[m] = widened(before, records.dtype)[0], n
    if recorder.ended:
        advance = stepper(records, h, scheme=scheme, solver=solver, on_failure="continue")
        advance(records, n=steps if shape else int(steps), out=records)
    return records


def resume(file, *, t_end=None, progress=None, on_failure=None, until=None, callback=None, callback_every=1, check=False, functions=None):
    """Go on with the run in a file from its last row: all else is as it was, and so are the bits of an uninterrupted run.

    Parameters
    ----------
    file : str or Path
        HDF5 file that `nsds.stream` wrote; further rows go there.
    t_end : float, optional
        Where the run ends; by default where it was to end when it was interrupted.
    progress, on_failure, callback, callback_every, check, functions
        See `nsds.simulate`; on_failure is as it was by default.
    until : str, function or False, optional
        A condition that ends the run, see `nsds.stream`; by default the one that it had, False for none.

    Returns
    -------
    numpy.ndarray
        The record, or ensemble, at the end of the run.

    Raises
    ------
    ImportError, OSError
        As `nsds.read_trajectory` and `nsds.stream`.
    BlockingIOError
        Another run writes the file.
    ValueError, TypeError, SimulationError, SimulationInterrupted
        As `nsds.stream`; the file has no rows, or not the whole state; t_end is not after the last row; the run ended where its condition
        held, and there is no new one; the condition was a function; members of the ensemble have ended before others.

    Warns
    -----
    RuntimeWarning
        The rows in the file were computed with other versions, or on another processor: those that follow may differ in their last bits.

    Notes
    -----
    Every ``save_every``-th step is counted from the last row of the file, which is off that count at t_end and at a failed step. Where h
    does not divide the time to a t_end, the step to it was shorter: the run goes on from there by steps of h, which are counted from 0.

    Examples
    --------
    >>> import nsds, pathlib, tempfile
    >>> ball = nsds.examples.bouncing_ball()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "run.h5"
    ...     half = nsds.stream(ball, file, t_end=5.0, h=5e-3)
    ...     whole = nsds.resume(file, t_end=10.0)
    ...     bool((nsds.read_trajectory(file) == nsds.simulate(ball, t_end=10.0, h=5e-3)).all())
    True
    """
    offered("resume", functions)
    run_file, system, settings, last = RunFile.resumed("resume", file)
    # 1. settings of the file, and those of the call
    try:
        if last is None:
            raise ValueError(f"resume: the file {file} has no rows")
        for name, value in (("t_end", t_end), ("on_failure", on_failure)):
            settings[name] = settings[name] if value is None else value
        settings["t_end"] = _checks.number("resume", "t_end", settings["t_end"])
        _require_unfinished(file, settings["until"], until, last, run_file.n_rows)
        until = (settings["until"] if until is None else until) or None
        # 2. condition and times that are still ahead
        t_eval = settings.pop("t_eval")
        pauses = pauses_of("resume", t_eval, settings["save_every"], until, callback, callback_every)
        if t_eval is not None:
            pauses = pauses._replace(times=pauses.times[pauses.times > last["t"].max()])
        del settings["until"]
        # 3. run
        run, recorder = run_through(
            "resume", restart(system, last), progress=progress, file=run_file, check=check, pauses=pauses, **settings
        )
    finally:
        run_file.close()
    return _at_end(run, recorder, np.shape(system), *(settings[name] for name in ("h", "scheme", "solver")))


def _require_unfinished(file, held, until, last, n_rows):
    """Refuse to go on with a run, or with members of one, which its condition ``held`` has ended, unless ``until`` takes its place."""
    if (last["status"] == NOT_COMPUTED).any():
        raise ValueError(f"resume: members of the ensemble in {file} have ended before others; nsds.restart goes on from a row of one")
    if until is None and held is False:
        raise ValueError(f"resume: the run in {file} ends by a function until(rows), which is not in the file; pass until, False for none")
    if until is None and held and n_rows > 1 and any(Until("resume", held).first(row) == 0 for row in last.reshape(-1, 1)):
        raise ValueError(f"resume: the run in {file} has ended where {held!r} held; pass until to go on, False for no condition")
