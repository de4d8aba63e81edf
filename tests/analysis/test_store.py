"""Sweeps that are kept piece by piece, and computed on a cluster: the bits of a sweep, whatever was interrupted, damaged or killed."""

import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import nsds
from nsds.analysis import sweeps
from nsds.schemes.run import ensembles
from nsds.status import NOT_COMPUTED
from tests.analysis.models import impact_oscillator
from tests.paths import ROOT

GRID = {"p[0]": np.linspace(2.8, 4.0, 24), "p[1]": np.linspace(0.0, 0.1, 12)}


def logistic(x, p, out):
    out[0] = p[0] * x[0] * (1 - x[0]) - p[1]


def chart(**options):
    table = nsds.iterated_map(logistic, x=[0.6], p=[3.0, 0.0])
    return nsds.sweep(table, **{"vary": GRID, "transient": 50, "keep": 8, "progress": False, **options})


def diagram(**options):
    """Diagram of an impact oscillator over the frequency of its force, up and down."""
    settings = {"vary": {"mass.z[0]": np.linspace(2.5, 3.1, 70)}, "period": lambda omega: 2 * math.pi / omega, "progress": False}
    return nsds.sweep(impact_oscillator(0.05, 2.6, 0.8), **settings, transient=20, keep=4, **options)


def above(t, x, p, out):
    out[0] = x[0] + 0.1 * p[0]


def crossings(**options):
    return diagram(direction=None, record=above, **options)


def ensemble(**options):
    """Runs of oscillators with different starts, one hundred of them; event-driven ones have different numbers of rows."""
    systems = np.repeat(impact_oscillator(0.05, 2.6, 0.8), 100)
    systems["mass"]["q"][:, 0] = np.linspace(-2.0, -0.1, 100)
    settings = {"t_end": 6.0, "h": 0.05, "scheme": nsds.event_driven(), "fields": ["mass"], "progress": False}
    return nsds.simulate(systems.reshape(4, 25), **{**settings, **options})


def files_of(folder):
    return {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}


@pytest.fixture
def computed(monkeypatch):
    """How many pieces were computed in this process, and after how many a Ctrl-C comes."""
    state = {"count": 0, "limit": math.inf}
    before = sweeps._Runs.compute

    def compute(self, piece, states):
        if state["count"] >= state["limit"]:
            raise KeyboardInterrupt
        state["count"] += 1
        return before(self, piece, states)

    monkeypatch.setattr(sweeps._Runs, "compute", compute)
    return state


@pytest.mark.parametrize("make", [chart, diagram])
def test_what_is_kept_is_what_is_computed_and_is_computed_once(make, tmp_path, computed):
    whole = make()
    n_pieces = computed["count"]
    assert n_pieces > 10
    assert make(store=tmp_path).tobytes() == whole.tobytes()
    assert computed["count"] == 2 * n_pieces == 2 * len(files_of(tmp_path))
    assert make(store=tmp_path).tobytes() == whole.tobytes()
    assert computed["count"] == 2 * n_pieces


@pytest.mark.parametrize("make", [chart, diagram])
def test_an_interrupted_sweep_goes_on_where_it_was(make, tmp_path, computed):
    whole, n_pieces = make(), computed["count"]
    computed["limit"] = n_pieces + 5
    part = make(store=tmp_path)
    done = part["status"] != NOT_COMPUTED
    assert 0 < done.sum() < part.size
    assert part[done].tobytes() == whole[done].tobytes()
    computed["limit"] = math.inf
    assert make(store=tmp_path).tobytes() == whole.tobytes()
    assert computed["count"] == 2 * n_pieces


@pytest.mark.parametrize("make", [chart, diagram, ensemble])
def test_a_result_on_the_disk_has_the_same_bits(make, tmp_path):
    whole = make()
    mapped = make(store=tmp_path, mapped=True)
    assert isinstance(mapped, np.memmap)
    assert mapped.tobytes() == whole.tobytes()
    assert mapped.dtype == whole.dtype
    assert make(store=tmp_path, mapped=True).tobytes() == make(store=tmp_path).tobytes() == whole.tobytes()
    with pytest.raises(ValueError, match="mapped goes with store"):
        make(mapped=True)


def test_damaged_pieces_are_computed_again(tmp_path, computed):
    whole = chart(store=tmp_path)
    n_pieces, files = computed["count"], sorted(tmp_path.iterdir())
    content = bytearray(files[0].read_bytes())
    content[len(content) // 3] ^= 1
    files[0].write_bytes(content)
    files[1].write_bytes(files[1].read_bytes()[:-100])
    files[2].write_bytes(b"")
    files[3].unlink()
    assert chart(store=tmp_path).tobytes() == whole.tobytes()
    assert computed["count"] == n_pieces + 4


def test_other_settings_have_other_pieces(tmp_path, computed):
    kinds = [{}, {"keep": 9}, {"tol": 1e-3}, {"vary": GRID | {"p[1]": GRID["p[1]"] + 1e-15}}]
    for k, options in enumerate(kinds):
        rows = chart(store=tmp_path, **options)
        n_pieces = computed["count"] // (k + 1)
        assert computed["count"] == n_pieces * (k + 1)
        computed["count"], before = 0, computed["count"]
        assert chart(store=tmp_path, **options).tobytes() == rows.tobytes()
        assert computed["count"] == 0
        computed["count"] = before
    assert len(files_of(tmp_path)) == computed["count"]


def test_runs_of_an_ensemble_are_kept(tmp_path, monkeypatch):
    """The bits of a run of all members at once; a piece that is missing, or was damaged, is computed again, and nothing else is."""
    computed, before = [], ensembles._Runs.compute
    monkeypatch.setattr(ensembles._Runs, "compute", lambda work, piece, states: computed.append(piece.first) or before(work, piece, states))
    for options in ({}, {"scheme": nsds.moreau_jean(), "h": 1e-3, "save_every": 7, "until": "mass.q[0] > -0.05"}):
        whole, folder = ensemble(**options), tmp_path / str(len(options))
        kept = ensemble(**options, store=folder)
        assert kept.dtype == whole.dtype
        assert kept.tobytes() == whole.tobytes()
        assert computed == list(range(0, 100, 16))
        files = sorted(folder.iterdir())
        files[2].unlink()
        files[5].write_bytes(files[5].read_bytes()[:-50])
        computed.clear()
        assert ensemble(**options, store=folder).tobytes() == whole.tobytes()
        assert computed == [32, 80]
        ensemble(**options | {"h": 0.04}, store=folder)
        assert len(computed) == 2 + 7
        computed.clear()


def test_an_interrupted_run_of_an_ensemble_goes_on_where_it_was(tmp_path, monkeypatch):
    whole, before, left = ensemble(), ensembles._Runs.compute, [3]

    def compute(work, piece, states):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return before(work, piece, states)

    monkeypatch.setattr(ensembles._Runs, "compute", compute)
    with pytest.raises(KeyboardInterrupt) as caught:
        ensemble(store=tmp_path)
    rows = caught.value.trajectory.reshape(100, -1)
    assert (rows["status"][48:] == NOT_COMPUTED).all()
    assert rows[:48, :20].tobytes() == whole.reshape(100, -1)[:48, :20].tobytes()
    left[0] = 4
    assert ensemble(store=tmp_path).tobytes() == whole.tobytes()


def stiffening(t, q, v, z, out):
    out[0] = z[0] * math.exp(q[0] ** 2) - 1.0


def test_members_that_fail_are_told_when_all_are_through(tmp_path):
    one = nsds.system(mass=nsds.lagrangian(mass=[[1.0]], fint=stiffening, q=[0.0], v=[0.0], z=[1.0]))
    systems = np.repeat(one, 40)
    systems["mass"]["v"][21, 0] = 1e30
    settings = {"t_end": 0.3, "h": 0.1, "store": tmp_path, "progress": False}
    with pytest.raises(nsds.SimulationError, match="member 21, step 1") as caught:
        nsds.simulate(systems, **settings)
    rows = caught.value.trajectory
    assert np.flatnonzero((rows["status"] > 0).any(axis=1)).tolist() == [21]
    assert (rows["step"][[0, 20, 22, 39], -1] == 3).all()
    with pytest.warns(RuntimeWarning, match="first: member 21"):
        assert nsds.simulate(systems, **settings, on_failure="warn").tobytes() == rows.tobytes()
    assert nsds.simulate(systems, **settings, on_failure="continue").tobytes() == rows.tobytes()


def test_ensembles_that_cannot_be_kept(tmp_path):
    for options, words in (
        ({"callback": print}, "callback: members run piece by piece"),
        ({"until": lambda rows: rows["t"] > 1.0}, "until: members run piece by piece"),
        ({"check": True}, "check: members run piece by piece"),
        ({"h": np.full((4, 25), 0.1)}, "one step h"),
        ({"t_end": -1.0}, "t_end must be after"),
        ({"store": None, "client": object()}, "distributed.Client"),
    ):
        with pytest.raises(ValueError, match=words):
            ensemble(**{"store": tmp_path, **options})


def test_bad_arguments(tmp_path):
    for options, error, words in (
        ({"store": 3}, TypeError, "store must be a path"),
        ({"client": object(), "store": tmp_path}, ValueError, "distributed.Client"),
        ({"client": object()}, ValueError, "store="),
    ):
        with pytest.raises(error, match=words):
            chart(**options)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(OSError, match="file"):
        chart(store=file)


def test_a_cluster_computes_the_same_bits_although_a_worker_dies(tmp_path):
    distributed = pytest.importorskip("distributed")
    whole, expected, runs, crossed = diagram(direction=None), chart(), ensemble(), crossings()
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert diagram(direction=None, store=tmp_path / "diagram", client=client).tobytes() == whole.tobytes()
        killer = threading.Thread(target=_kill_midway, args=(next(iter(client.run(os.getpid).values())), tmp_path / "chart"))
        killer.start()
        assert chart(store=tmp_path / "chart", client=client).tobytes() == expected.tobytes()
        killer.join()
        assert ensemble(store=tmp_path / "runs", client=client).tobytes() == runs.tobytes()
        assert crossings(store=tmp_path / "crossings", client=client).tobytes() == crossed.tobytes()
        values = {"vary": {"mass.z[0]": [2.7, 2.6]}, "period": 2.0}
        assert nsds.sweep(impact_oscillator(0.05, 2.6, 0.8), **values, store=tmp_path / "few", client=client, progress=False).shape == (
            2,
            2,
        )


def _kill_midway(pid, folder):
    while not (folder.is_dir() and len(list(folder.glob("0*"))) >= 3):
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)


_SCRIPT = """
import sys
from distributed import Client, LocalCluster
from tests.analysis.test_store import diagram

if __name__ == "__main__":
    n_workers = int(sys.argv[3])
    size = {"n_workers": n_workers, "threads_per_worker": 1, "processes": n_workers > 1}
    with LocalCluster(**size, dashboard_address=None) as cluster, Client(cluster) as client:
        rows = diagram(store=sys.argv[1], client=client)
    rows.tofile(sys.argv[2])
"""


def test_scheduler_and_workers_killed_midway(tmp_path):
    pytest.importorskip("distributed")
    store, script, out = tmp_path / "store", tmp_path / "script.py", tmp_path / "rows"
    script.write_text(_SCRIPT)
    command, environment = [sys.executable, script, store, out], os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([*command, "2"], env=environment, start_new_session=True, stderr=subprocess.DEVNULL)
    whole, deadline = diagram(), time.monotonic() + 120
    while not (store.is_dir() and len(list(store.glob("0*"))) >= 3):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = files_of(store)
    assert not out.exists()
    subprocess.run([*command, "1"], env=environment, check=True, stderr=subprocess.DEVNULL, timeout=120)
    assert out.read_bytes() == whole.tobytes()
    after = files_of(store)
    assert all(after[name] == when for name, when in finished.items() if not name.startswith("."))
