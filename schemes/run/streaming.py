"""Runs into HDF5 files: the time loop of `nsds.schemes.run.simulation` with memory that stays bounded."""

import numpy as np

from nsds import _checks
from nsds.model.functions import offered
from nsds.results.storage import RunFile
from nsds.results.trajectories import restart
from nsds.schemes.run.simulation import run_through
from nsds.solvers import table as solvers


def stream(system, file, *, t_end, h, scheme=None, solver=None, save_every=1, fields=None, progress=None, on_failure="raise",
           overwrite=False, check=False, functions=None):  # fmt: skip
    """March as `nsds.simulate` does, with the rows going to an HDF5 file: memory stays bounded, however long the run (extra ``io``).

    What may end a run early, ``until`` and ``callback``, belongs to `nsds.simulate`, whose rows are in memory: take it in pieces, each
    from the last row of the one before (`nsds.restart`), or look at the file after each `nsds.resume`.

    Rows are written in blocks of 32 MB and at least every five seconds, the first ones at once. The file is valid, with all rows so far,
    also after a failure and Ctrl-C; after a kill, on a full disk or when the power fails it holds the rows up to the last block.
    `nsds.read_trajectory` and `nsds.read_system` read it, also while the run goes on, and `nsds.resume` goes on with it.

    Parameters
    ----------
    system : numpy.ndarray
        A record from `nsds.system`, or an array of such records; it is not changed.
    file : str or Path
        HDF5 file to make.
    t_end, h, save_every, fields, progress, on_failure, check, functions
        See `nsds.simulate`.
    scheme : numpy.ndarray, optional
        One for all systems.
    solver : str or numpy.ndarray, optional
        Method for the one-step problems; a run with a function of one's own is resumed by the process that made it alone.
    overwrite : bool
        Whether a file that exists may be replaced: with the first rows of the run, not before.

    Returns
    -------
    numpy.ndarray
        The record, or ensemble, at the end of the run, from which one can go on.

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
        As `nsds.simulate`; the trajectory on the exception is the last block, the whole one is in the file.

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
    run_file = RunFile("stream", file, _checks.flag("stream", "overwrite", overwrite))
    try:
        run, _ = run_through("stream", system, h, scheme, solver, on_failure, t_end, save_every, fields, progress, run_file, check)
    finally:
        run_file.close()
    return run.records.reshape(np.shape(system))


def resume(file, *, t_end=None, progress=None, on_failure=None, check=False, functions=None):
    """Go on with the run in a file from its last row: all else is as it was, and so are the bits of an uninterrupted run.

    Parameters
    ----------
    file : str or Path
        HDF5 file that `nsds.stream` wrote; further rows go there.
    t_end : float, optional
        Where the run ends; by default where it was to end when it was interrupted.
    progress, on_failure, check, functions
        See `nsds.simulate`; on_failure is as it was by default.

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
        As `nsds.stream`; the file has no rows, or not the whole state; t_end is not after the last row.

    Warns
    -----
    RuntimeWarning
        The rows in the file were computed with other versions, or on another processor: those that follow may differ in their last bits.

    Notes
    -----
    Every ``save_every``-th step is counted from the last row of the file, which is off that count at t_end and at a failed step.

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
    try:
        if last is None:
            raise ValueError(f"resume: the file {file} has no rows")
        for name, value in (("t_end", t_end), ("on_failure", on_failure)):
            settings[name] = settings[name] if value is None else value
        settings["t_end"] = _checks.number("resume", "t_end", settings["t_end"])
        run, _ = run_through("resume", restart(system, last), progress=progress, file=run_file, check=check, **settings)
    finally:
        run_file.close()
    return run.records.reshape(np.shape(system))
