"""Runs of large ensembles, by groups of members: finished pieces are kept in a folder, or computed on a cluster."""

import warnings

import numpy as np

from nsds import _checks
from nsds._jit.cache import fingerprint
from nsds.model.function_checks import function_names
from nsds.model.functions import functions_named, offered
from nsds.model.validation import valid
from nsds.results.trajectories import SimulationError, SimulationInterrupted, recorded
from nsds.schemes import table
from nsds.schemes.run import split_runs
from nsds.schemes.run.jobs import Piece, finish_all, names_of, places_of, store_of
from nsds.schemes.run.preparation import number_of_steps, prepare_run
from nsds.status import advice, has_failed

_OWNER = "simulate"


class _Runs:
    """Common data of the pieces of an ensemble: one member, for its type, and the arguments of `nsds.simulate`.

    calls: `nsds.simulate` itself, and the fingerprint of the compiled code of a run.
    """

    def __init__(self, calls, member, settings):
        self.calls, self.member, self.settings = calls, member, settings
        self.simulate, edition = calls
        run, options = prepare_run(_OWNER, member, settings["h"], settings["scheme"], settings["solver"], False)
        method, *_ = table.solver_of(settings["solver"], run.records, options)
        steps = number_of_steps(_OWNER, run.records, settings["t_end"], settings["h"])
        rows = steps // settings["save_every"] + 2 if settings["t_eval"] is None else len(settings["t_eval"]) + 1
        self.bytes = recorded(run.records, settings["fields"])[0].itemsize * rows
        self._edition = edition(run), method.name, fingerprint(method.kernel, {})

    def __reduce__(self):
        """For other processes: with its functions."""
        return _restored, (functions_named(function_names(self.member.reshape(1))), self.calls, self.member, self.settings)

    def identity(self):
        """All that determines the results of runs, except the members."""
        settings = {name: (x.dtype, x.tobytes()) if isinstance(x, np.ndarray) else x for name, x in self.settings.items()}
        return repr((self.member.dtype, settings, self._edition)).encode()

    def compute(self, piece, _states):
        """(rows of the members of a piece, nothing that another begins with)."""
        try:
            return self.simulate(piece.values[0], on_failure="continue", progress=False, **self.settings), np.zeros(0)
        except SimulationError as e:  # a user's function that raised
            raise SimulationError(e.trajectory, piece.first + e.member, e.step, e.t, e.status, e.residual, e.cause) from e.__cause__


def _restored(functions, calls, member, settings):
    """Runs that come from another process."""
    offered(_OWNER, functions)
    return _Runs(calls, member, settings)


def simulate_in_pieces(calls, system, store, client, mapped, progress, on_failure, **settings):
    """`nsds.simulate` of an ensemble, piece by piece: members of a piece run at once, all are through before a failure is told."""
    # 1. arguments, checked before any work
    kept = store_of(_OWNER, store, client, mapped)
    _checks.choice(_OWNER, "on_failure", on_failure, ("raise", "warn", "continue"))
    if progress is not None:
        progress = _checks.flag(_OWNER, "progress", progress)
    system = valid(_OWNER, system)
    records = np.ascontiguousarray(system).reshape(-1)
    settings["t_end"] = _checks.number(_OWNER, "t_end", settings["t_end"])
    settings["h"] = _checks.number(_OWNER, "h", settings["h"], above=0.0)
    settings["save_every"] = _checks.integer(_OWNER, "save_every", settings["save_every"], low=1)
    if settings["t_eval"] is not None:
        settings["t_eval"] = _checks.array(_OWNER, "t_eval", settings["t_eval"], n_dims=1)
    # 2. pieces, by the memory that one member needs
    runs = _Runs(calls, records[:1].copy(), settings)
    places = [place[0] for place in places_of(records.size, runs.bytes)]
    pieces = [Piece(records[None, place], np.full((1, place.size), settings["h"]), False, int(place[0])) for place in places]
    files, kinds, found = names_of(runs, pieces, kept), [], []

    def joined():
        if not mapped:
            return split_runs.joined_members(system.shape, found)
        read = ((place, kept.rows_of(name)) for place, name in found)
        return split_runs.joined_members(system.shape, read, kinds, lambda shape, dtype: kept.array(files, shape, dtype))

    # 3. run; after Ctrl-C the rows of finished pieces are on the exception
    try:
        for k, rows in finish_all(runs, pieces, files, kept, client, progress):
            kinds.append((rows.dtype, rows.shape[1]))
            found.append((places[k], files[k] if mapped else rows))
    except KeyboardInterrupt:
        if not found:
            raise
        rows = joined()
        raise SimulationInterrupted(rows, rows.shape[-1], ".trajectory") from None
    # 4. failure policy, once all pieces are there
    rows = joined()
    _tell(runs, records, rows, on_failure)
    return rows


def _tell(runs, records, rows, on_failure):
    """Apply the failure policy: the first member that has failed runs again, for the cause of its failure."""
    flat = rows.reshape(records.size, -1)
    failed = np.argwhere(has_failed(flat["status"])) if on_failure != "continue" else np.zeros((0, 2), int)
    if not len(failed):
        return
    m, row = int(failed[0, 0]), flat[tuple(failed[0])]
    outcome = (int(row["step"]), row["t"].item(), int(row["status"]), row["residual"].item())
    # the run is repeated up to the failure, as pieces keep rows only
    cause = ""
    try:
        runs.simulate(records[m], on_failure="raise", progress=False, **runs.settings)
    except SimulationError as e:
        cause = e.cause
    if on_failure == "raise":
        raise SimulationError(rows, m if rows.ndim > 1 else None, *outcome, cause)
    message = (
        f"{len(failed)} of {flat.size} saved rows have failed steps; the first: member {m}, step {outcome[0]} (t = {outcome[1]:.9g}): "
    )
    warnings.warn(message + (cause or advice(outcome[2])), RuntimeWarning, stacklevel=4)
