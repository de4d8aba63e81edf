"""Runs into files, restart from them, and records that grow during a run."""

import contextlib
import hashlib
import signal
import sys
import threading
import types
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds import _jit, status
from nsds.model.records import widened
from nsds.results import transaction
from nsds.schemes.lagrangian import linear as moreau_jean_linear
from nsds.schemes.run import interrupts, recording, simulation
from nsds.schemes.run.recording import Recorder
from tests.strategies import examples

h5py = pytest.importorskip("h5py")
ball = nsds.examples.bouncing_ball


def ensemble():
    systems = np.repeat(ball(), 3)
    systems["floor"]["e"] = [0.0, 0.5, 0.9]
    return systems


def chain():
    relation = nsds.lagrangian_linear_relation
    return nsds.system(
        beads=nsds.lagrangian_linear(M=1.0, fext=-9.81, q=np.arange(3.0) + 0.03, v=-1.0, count=3),
        floor=nsds.interaction(relation(H=[[1.0]]), nsds.newton_impact(0.0), on="beads[0]"),
        gaps=nsds.interaction(relation(H=[[-1.0, 1.0]], b=[-1.0]), nsds.newton_impact(0.0), on=("beads[:-1]", "beads[1:]")),
    )


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch):
    """Do not wait for the disk, which is for power failures: those are in test_crash_safety.py."""
    monkeypatch.setattr(transaction, "_sync", lambda raw: None)


SYSTEMS = {"ball": ball, "ensemble": ensemble, "chain": chain}


def assert_same_bits(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


def assert_is_at(final, row):
    """The record has the state and the clock of a row, which sums up n_iter and residual of several steps."""
    expected = nsds.restart(final, row)
    expected["n_iter"], expected["residual"] = final["n_iter"], final["residual"]
    assert_same_bits(final, expected)


@pytest.fixture(params=[1, 7, 2**25 // 8], ids=["rows one by one", "few rows", "all rows"])
def block(request, monkeypatch):
    """Size of the blocks in a few rows of each system."""
    monkeypatch.setattr(
        Recorder, "_room", lambda recorder: recorder.n_rows if recorder.file is None else min(request.param, recorder.n_rows)
    )
    return request.param


@pytest.mark.parametrize("make", SYSTEMS.values(), ids=SYSTEMS)
@pytest.mark.parametrize("save_every", [1, 7, 1000])
def test_a_file_holds_the_bits_of_the_trajectory_in_memory(tmp_path, block, make, save_every):
    arguments = {"t_end": 0.6, "h": 0.01, "save_every": save_every}
    system = make()
    final = nsds.stream(system, tmp_path / "run.h5", **arguments)
    whole = nsds.simulate(system, **arguments)
    assert_same_bits(nsds.read_trajectory(tmp_path / "run.h5"), whole)
    assert_same_bits(nsds.read_system(tmp_path / "run.h5"), system)
    assert_is_at(final, whole[..., -1])


@pytest.mark.parametrize("fields", [["floor.lambda", "ball.p", "ball.q"], "ball", ["floor.e"], []])
def test_chosen_fields(tmp_path, fields):
    arguments = {"t_end": 1.0, "h": 0.01}
    nsds.stream(ensemble(), tmp_path / "run.h5", fields=fields, **arguments)
    some = nsds.simulate(ensemble(), fields=fields, **arguments)
    assert_same_bits(nsds.read_trajectory(tmp_path / "run.h5"), some)
    more = ["floor", "floor.e", "ball"] + (["ball.p"] if fields != "ball" else [])  # a part stands for all that was saved of it
    nsds.stream(ensemble(), tmp_path / "run.h5", overwrite=True, fields=more, **arguments)
    assert_same_bits(nsds.read_trajectory(tmp_path / "run.h5", fields), some)
    with pytest.raises(ValueError, match=r"no part 'bal'; the parts are: floor, ball"):
        nsds.read_trajectory(tmp_path / "run.h5", "bal")
    with pytest.raises(ValueError, match=r"'ball' has no field 'M'.*it has: q, v"):
        nsds.read_trajectory(tmp_path / "run.h5", ["ball.M"])


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    file = tmp_path_factory.mktemp("stored") / "run.h5"
    nsds.stream(ensemble(), file, t_end=0.2, h=0.01)
    return file, nsds.simulate(ensemble(), t_end=0.2, h=0.01)


def test_rows_that_are_asked_for(stored):
    file, whole = stored
    ends = [None, *range(-25, 26, 5), 1, 20, 21]
    for rows in [*[slice(a, b, c) for a in ends for b in ends for c in (None, 1, 3, -1, -4)][::7], 0, -1, 20, -21]:
        assert_same_bits(nsds.read_trajectory(file, ["ball.q", "floor"], rows), nsds.read_trajectory(file, ["ball.q", "floor"])[:, rows])
        np.testing.assert_array_equal(nsds.read_trajectory(file, "floor", rows)["floor"], whole["floor"][:, rows])
    for row in (21, -22):
        with pytest.raises(IndexError):
            nsds.read_trajectory(file, rows=row)


def test_restart_from_a_file_goes_on_with_the_same_bits(tmp_path, stored):
    file, whole = stored
    at = nsds.restart(nsds.read_system(file), nsds.read_trajectory(file, rows=7))
    assert_same_bits(nsds.simulate(at, t_end=0.2, h=0.01), whole[:, 7:])
    second = nsds.stream(at, tmp_path / "second.h5", t_end=0.3, h=0.01)
    third = nsds.stream(second, tmp_path / "third.h5", t_end=0.5, h=0.01)
    assert_same_bits(third, nsds.restart(third, nsds.simulate(ensemble(), t_end=0.5, h=0.01)[:, -1]))


def test_a_restart_after_a_change_of_step_keeps_the_clock(tmp_path):
    system = nsds.step(ball(), h=0.1)  # its clock begins anew with another step
    nsds.stream(system, tmp_path / "run.h5", t_end=1.0, h=0.03)
    whole = nsds.simulate(system, t_end=1.0, h=0.03)
    at = nsds.restart(nsds.read_system(tmp_path / "run.h5"), nsds.read_trajectory(tmp_path / "run.h5", rows=11))
    assert_same_bits(nsds.simulate(at, t_end=1.0, h=0.03), whole[11:])


def pull(t, z, out):
    out[0] = -np.cos(t) * z[0]


def test_user_functions_are_known_by_name(tmp_path):
    system = nsds.system(mass=nsds.lagrangian_linear(M=[1.0], fext=pull, z=[3.0], q=[0.0], v=[0.0]))
    nsds.stream(system, tmp_path / "run.h5", t_end=1.0, h=0.01)
    read = nsds.read_system(tmp_path / "run.h5")
    assert_same_bits(nsds.simulate(read, t_end=1.0, h=0.01), nsds.read_trajectory(tmp_path / "run.h5"))


def test_models_of_any_length_are_stored(tmp_path):
    """NumPy reads no description above 10000 characters unless it is told to."""
    system = nsds.system(**{f"mass_{i:03}": nsds.lagrangian_linear(M=[1.0], q=[float(i)], v=[1.0]) for i in range(100)})
    nsds.stream(system, tmp_path / "run.h5", t_end=0.1, h=0.01)
    assert_same_bits(nsds.read_system(tmp_path / "run.h5"), system)
    assert_same_bits(nsds.read_trajectory(tmp_path / "run.h5"), nsds.simulate(system, t_end=0.1, h=0.01))


# Going on with a file.


@pytest.mark.parametrize("make", SYSTEMS.values(), ids=SYSTEMS)
@pytest.mark.parametrize("solver", [None, "auto", nsds.solvers.solver("auto", tol=1e-6)], ids=["default", "name", "record"])
def test_resumed_runs_have_the_bits_of_an_uninterrupted_one(tmp_path, block, make, solver):
    arguments = {"h": 0.01, "save_every": 2, "scheme": nsds.moreau_jean(theta=0.7), "solver": solver}
    nsds.stream(make(), tmp_path / "run.h5", t_end=0.2, **arguments)
    nsds.resume(tmp_path / "run.h5", t_end=0.3)
    final = nsds.resume(tmp_path / "run.h5", t_end=0.6)
    whole = nsds.simulate(make(), t_end=0.6, **arguments)
    assert_same_bits(nsds.read_trajectory(tmp_path / "run.h5"), whole)
    assert_is_at(final, whole[..., -1])
    with pytest.raises(ValueError, match=r"resume: t_end must be after"):
        nsds.resume(tmp_path / "run.h5")
    assert_same_bits(nsds.read_trajectory(tmp_path / "run.h5"), whole)


@contextlib.contextmanager
def interrupt_after(seconds):
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process that runs tests for another ignores it
    timer = threading.Timer(seconds, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(nsds.SimulationInterrupted) as caught:
            yield caught
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, handler)


@pytest.mark.parametrize("make", [ball, ensemble])
def test_an_interrupted_run_can_be_read_and_goes_on(tmp_path, make):
    file = tmp_path / "run.h5"
    nsds.simulate(make(), t_end=1.0, h=0.01)  # compiled
    with interrupt_after(0.5) as caught:
        nsds.stream(make(), file, t_end=1e8, h=1.0, save_every=1000)
    rows = nsds.read_trajectory(file)
    n = rows.shape[-1]
    assert str(caught.value) == f"interrupted after {n} saved rows; see {file}"
    assert_same_bits(caught.value.trajectory, rows)  # they fit in one block
    n = int((rows["status"] == 0).all(axis=tuple(range(rows.ndim - 1))).sum())
    assert 1 < n < 1e5
    if rows.shape[-1] == n:
        nsds.resume(file, t_end=rows["t"].max() + 50_000.0)
        longer = nsds.read_trajectory(file)
        assert longer.shape[-1] == n + 50
    else:
        longer = rows[..., :n]
    assert_same_bits(longer, nsds.simulate(make(), t_end=longer["t"].max(), h=1.0, save_every=1000))


def test_rows_are_kept_where_a_resumed_run_is_interrupted_at_once(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    nsds.stream(ball(), tmp_path / "run.h5", t_end=0.5, h=0.01)
    before = nsds.read_trajectory(tmp_path / "run.h5")
    monkeypatch.setattr(simulation, "_advance", interrupted)
    with pytest.raises(nsds.SimulationInterrupted):
        nsds.resume(tmp_path / "run.h5", t_end=1.0)
    assert_same_bits(nsds.read_trajectory(tmp_path / "run.h5"), before)


def test_an_interrupt_while_a_block_is_written(tmp_path, block, monkeypatch):
    """The block is written again when the file is closed."""
    write = nsds.results.storage.RunFile.write
    calls = []

    def interrupted(file, first, rows):
        calls.append(first)
        if len(calls) == 2:
            with file._changed() as tree:
                tree["trajectory/t"].resize(first + rows.shape[1], 0)
                raise KeyboardInterrupt
        write(file, first, rows)

    monkeypatch.setattr(nsds.results.storage.RunFile, "write", interrupted)
    with pytest.raises(KeyboardInterrupt) if block < 101 else contextlib.nullcontext():
        nsds.stream(ball(), tmp_path / "run.h5", t_end=1.0, h=0.01)
    rows = nsds.read_trajectory(tmp_path / "run.h5")
    assert len(rows) == min(2 * block, 101)
    assert_same_bits(rows, nsds.simulate(ball(), t_end=1.0, h=0.01)[: len(rows)])


def test_failed_runs_leave_what_was_computed(tmp_path, block):
    arguments = {"t_end": 0.1, "h": 0.01, "solver": nsds.solvers.solver("pgs", max_iter=1)}
    with pytest.raises(nsds.SimulationError) as streamed:
        nsds.stream(chain(), tmp_path / "run.h5", **arguments)
    with pytest.raises(nsds.SimulationError) as simulated:
        nsds.simulate(chain(), **arguments)
    assert str(streamed.value) == str(simulated.value)
    assert_same_bits(nsds.read_trajectory(tmp_path / "run.h5"), simulated.value.trajectory)
    last = streamed.value.trajectory
    assert_same_bits(last, simulated.value.trajectory[-len(last) :])
    with pytest.warns(RuntimeWarning, match="iteration limit") as streamed:
        nsds.stream(chain(), tmp_path / "run.h5", on_failure="warn", overwrite=True, **arguments)
    with pytest.warns(RuntimeWarning, match="iteration limit") as simulated:
        rows = nsds.simulate(chain(), on_failure="warn", **arguments)
    assert [str(one.message) for one in streamed] == [str(one.message) for one in simulated]
    assert {one.filename for one in [*streamed, *simulated]} == {__file__}
    assert_same_bits(nsds.read_trajectory(tmp_path / "run.h5"), rows)


def test_a_failed_member_of_an_ensemble(tmp_path, block):
    systems = ensemble()
    systems["ball"]["q"][1], systems["ball"]["v"][1] = [1e308, 0, 0], [1e308, 0, 0]
    with pytest.raises(nsds.SimulationError) as simulated:
        nsds.simulate(systems, t_end=20.0, h=0.1)
    with pytest.raises(nsds.SimulationError, match=r"member 1") as streamed:
        nsds.stream(systems, tmp_path / "run.h5", t_end=20.0, h=0.1)
    rows, n = nsds.read_trajectory(tmp_path / "run.h5"), streamed.value.step + 1
    assert streamed.value.step == simulated.value.step
    assert_same_bits(rows[:, :n], simulated.value.trajectory[:, :n])
    assert (rows["status"][1, n:] == status.NOT_COMPUTED).all()


def test_constraints_violated_at_the_start_are_told(tmp_path, block):
    system = nsds.system(
        cart=nsds.lagrangian_linear(M=[1.0], fext=[1.0], q=[0.0], v=[0.0]),
        brake=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]], b=[0.25]), nsds.equality(), on="cart"),
    )
    with pytest.warns(RuntimeWarning, match="violated at the start") as caught:
        nsds.stream(system, tmp_path / "run.h5", t_end=1.0, h=0.01)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nsds.step(system, h=0.01)


# Memory.


def test_memory_is_bounded_whatever_the_length(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "BLOCK_BYTES", 10_000)
    seen, write = [], nsds.results.storage.RunFile.write

    def watched(file, first, rows):
        seen.append((first, rows.shape[1], (rows.base if rows.base is not None else rows).nbytes))
        write(file, first, rows)

    monkeypatch.setattr(nsds.results.storage.RunFile, "write", watched)
    nsds.stream(ball(), tmp_path / "run.h5", t_end=100.0, h=0.01)
    assert max(nbytes for *_, nbytes in seen) <= 10_000
    firsts, counts, _ = zip(*seen, strict=True)
    assert list(firsts) == [0, *np.cumsum(counts)[:-1]]
    assert sum(counts) == 10_001
    assert len(seen) == -(-10_001 // counts[0])
    seen.clear()
    nsds.stream(np.repeat(ball(), 100), tmp_path / "run.h5", t_end=0.1, h=0.01, overwrite=True)  # one row is longer than a block
    assert [count for _, count, _ in seen] == [1] * 11


def test_old_blocks_are_written_though_they_are_not_full(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "_BLOCK_SECONDS", 0.0)
    monkeypatch.setattr(interrupts, "CHUNK_SECONDS", 0.0)
    nsds.stream(ensemble(), tmp_path / "run.h5", t_end=0.3, h=0.001, save_every=7)
    assert_same_bits(nsds.read_trajectory(tmp_path / "run.h5"), nsds.simulate(ensemble(), t_end=0.3, h=0.001, save_every=7))


# What is refused.


def test_files_that_exist_are_kept_unless_told_otherwise(tmp_path):
    file = tmp_path / "run.h5"
    file.write_text("precious")
    with pytest.raises(FileExistsError, match=r"run\.h5 exists; overwrite=True"):
        nsds.stream(ball(), file, t_end=1.0, h=0.1)
    with pytest.raises(ValueError, match="after"):
        nsds.stream(ball(), file, t_end=-1.0, h=0.1, overwrite=True)  # nothing is lost by what is refused
    assert file.read_text() == "precious"
    nsds.stream(ball(), file, t_end=1.0, h=0.1, overwrite=True)
    assert nsds.read_trajectory(file).shape == (11,)


@pytest.mark.parametrize(
    ("error", "words", "arguments"),
    [
        (ValueError, ["stream: h", "above 0"], {"h": -0.1}),
        (TypeError, ["stream: t_end"], {"t_end": "soon"}),
        (ValueError, ["stream: save_every", "at least 1"], {"save_every": 0}),
        (ValueError, ["stream: on_failure", "ignore"], {"on_failure": "ignore"}),
        (ValueError, ["fields", "'bal'"], {"fields": ["bal"]}),
        (TypeError, ["solver", "record"], {"solver": 3}),
        (ValueError, ["stream", "one scheme", "dict"], {"scheme": {"ball": nsds.moreau_jean()}}),
        (ValueError, ["stream: file", "HDF5", "run.npz"], {"file": "run.npz"}),
        (ValueError, ["stream: file", ".h5 or .hdf5", "'run'"], {"file": "run"}),
    ],
)
def test_bad_arguments_are_named(tmp_path, error, words, arguments):
    with pytest.raises(error) as caught:
        nsds.stream(ball(), **{"file": tmp_path / "run.h5", "t_end": 1.0, "h": 0.1, **arguments})
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert not (tmp_path / "run.h5").exists()


def test_what_cannot_be_resumed(tmp_path):
    with pytest.raises(FileNotFoundError):
        nsds.resume(tmp_path / "none.h5")
    nsds.stream(ball(), tmp_path / "some.h5", t_end=1.0, h=0.1, fields=["ball.q"])
    with pytest.raises(ValueError, match=r"does not hold ball\.v"):
        nsds.resume(tmp_path / "some.h5", t_end=2.0)
    with h5py.File(tmp_path / "some.h5", "r+") as tree:
        tree.attrs["n_rows"] = 0
    with pytest.raises(ValueError, match="no rows"):
        nsds.resume(tmp_path / "some.h5", t_end=2.0)


def test_without_h5py_the_command_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    for call in (nsds.read_system, nsds.read_trajectory, nsds.resume, lambda file: nsds.stream(ball(), file, t_end=1.0, h=0.1)):
        with pytest.raises(ImportError, match="pip install h5py"):
            call(tmp_path / "run.h5")


# Growth.

SHAPES = st.lists(st.integers(0, 4), max_size=2).map(tuple)


def nested(shapes, sizes):
    """dtype of a nested record whose array fields have these shapes."""
    part = [("n", "<i8"), ("x", "<f8", shapes[0]), ("name", f"S{sizes[0]}"), ("inner", [("k", "<i8", shapes[1])], sizes[1])]
    return np.dtype([("t", "<f8"), ("part", part, (sizes[2],))])


def numbered(shape, dtype):
    result = np.zeros(shape, dtype)
    result.reshape(-1).view(np.uint8)[...] = np.arange(result.nbytes) % 251 + 1
    return result


def widened_twin(source, dtype):
    """Entry by entry."""
    if source.dtype.names is None:
        result = np.zeros(source.shape[: source.ndim - len(dtype.shape)] + dtype.shape, dtype.base)
        for index in np.ndindex(*(min(sizes) for sizes in zip(source.shape, result.shape, strict=True))):
            result[index] = source[index]
        return result
    result = np.zeros(source.shape[: source.ndim - len(dtype.shape)] + dtype.shape, dtype.base)
    for index in np.ndindex(*(min(sizes) for sizes in zip(source.shape, result.shape, strict=True))):
        for name in dtype.base.names:
            result[name][index] = widened_twin(np.asarray(source[name][index]), dtype.base[name])
    return result


@given(st.data(), SHAPES, SHAPES, st.tuples(*[st.integers(1, 3)] * 3), st.sampled_from([(), (3,), (2, 2)]))
@examples(60)
def test_widened_copies_the_overlap_of_every_field(data, x, k, sizes, shape):
    larger = [tuple(n + data.draw(st.integers(0, 3)) for n in field) for field in (x, k)]
    more = [n + data.draw(st.integers(0, 2)) for n in sizes]
    narrow, wide = nested((x, k), sizes), nested(larger, more)
    array = numbered(shape, narrow)
    before = array.tobytes()
    result = widened(array, wide)
    assert_same_bits(result, widened_twin(array, np.dtype((wide, ()))))
    assert_same_bits(widened(result, narrow), array)
    assert array.tobytes() == before


def test_widened_wants_the_same_fields():
    with pytest.raises(ValueError, match="widened: expected the same fields"):
        widened(np.zeros(2, [("a", "f8")]), np.dtype([("b", "f8")]))
    with pytest.raises(ValueError, match="widened: expected the same fields"):
        widened(np.zeros(2, [("a", "f8", 2)]), np.dtype([("a", "f8", (2, 2))]))


def thrown(n, room=1):
    """A ball, or an ensemble of n, whose field z stands for a list of contacts with some room."""
    system = nsds.system(
        ball=nsds.lagrangian_linear(M=[1.0], fext=[-9.81], q=[1.0], v=[0.0], z=np.eye(room)[0] * 7),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.5), on="ball"),
    )
    if n:
        system = np.repeat(system, n)
        system["ball"]["v"] = np.linspace(-3, 3, n)[:, None]
    return system


class Crowded(NamedTuple):
    """Words of Moreau–Jean, and the room that there is."""

    h: float
    theta: float
    gamma: float
    room: float


def crowded_step(t, tables, calls, options, memory):
    """A step of Moreau–Jean that wants more room the lower the ball is."""
    if 1.0 + 4.0 * (1.0 - memory.mem[tables.parts[0].q]) > options.room:
        return status.CAPACITY, 0, 0.0
    return moreau_jean_linear.step(t, tables, calls, options, memory)


def grow(records):
    n = records.dtype["ball"]["z"].shape[0]
    fields = [(name, records.dtype[name]) for name in records.dtype.names]
    part = [(name, (records.dtype["ball"][name])) for name in records.dtype["ball"].names]
    part = np.dtype([(name, "<f8", (n + 1,)) if name == "z" else (name, dtype) for name, dtype in part])
    return widened(records, np.dtype([(name, part) if name == "ball" else (name, dtype) for name, dtype in fields]))


@pytest.fixture
def crowds(monkeypatch):
    """Let moreau_jean count its room; returns the list of records that have grown."""
    edition = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    grown = []
    stepper = types.SimpleNamespace(
        __name__=f"crowded_{edition}",
        start=moreau_jean_linear.start,
        step=CROWDED_STEP,
        blame=moreau_jean_linear.blame,
        grow=lambda records: grown.append(records.copy()) or grow(records),
    )
    prepare = moreau_jean_linear.prepare

    def prepare_with_room(records, *rest):
        prepared = prepare(records, *rest)
        room = records.dtype["ball"]["z"].shape[0]
        return prepared._replace(options=Crowded(*prepared.options, float(room)), stepper=stepper)

    monkeypatch.setattr(moreau_jean_linear, "prepare", prepare_with_room)
    return grown


CROWDED_STEP = _jit.inlined(crowded_step)
FIELDS = ["ball", "ball.z", "floor"]


@pytest.mark.parametrize("on_failure", ["raise", "continue"])
@pytest.mark.parametrize("n", [None, 5])
@pytest.mark.parametrize("save_every", [1, 7])
def test_records_grow_when_a_step_wants_more_room(crowds, tmp_path, block, n, save_every, on_failure):
    arguments = {"t_end": 1.0, "h": 0.01, "save_every": save_every, "fields": FIELDS, "on_failure": on_failure}
    rows = nsds.simulate(thrown(n), **arguments)
    room = rows.dtype["ball"]["z"].shape[0]
    assert len(crowds) == room - 1 > 2
    assert (rows["status"] == 0).all()
    whole = nsds.simulate(thrown(n, room), **arguments)  # had all the room from the start
    assert_same_bits(rows, whole)
    final = nsds.stream(thrown(n), tmp_path / "run.h5", **arguments)
    assert_same_bits(nsds.read_trajectory(tmp_path / "run.h5"), whole)
    assert_same_bits(nsds.read_system(tmp_path / "run.h5"), thrown(n, room))
    assert_is_at(final, whole[..., -1])
    if save_every == 1:
        at = nsds.restart(nsds.read_system(tmp_path / "run.h5"), nsds.read_trajectory(tmp_path / "run.h5", rows=3))
        assert_same_bits(nsds.simulate(at, **arguments), whole[..., 3:])


def test_one_step_grows_too(crowds):
    system = thrown(None)
    for _ in range(60):
        system = nsds.step(system, h=0.01)
    assert len(crowds) == system.dtype["ball"]["z"].shape[0] - 1 > 2
    assert_same_bits(system, nsds.restart(system, nsds.simulate(thrown(None, 9), t_end=0.6, h=0.01)[-1]))


def test_growth_that_gives_no_room_is_an_error(crowds, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "grow", lambda records: records)
    with pytest.raises(ValueError, match=r"crowded_.* were to grow and did not"):
        nsds.stream(thrown(None), tmp_path / "run.h5", t_end=1.0, h=0.01)
    rows = nsds.read_trajectory(tmp_path / "run.h5")
    assert_same_bits(rows, nsds.simulate(thrown(None, 9), t_end=1.0, h=0.01)[: len(rows)])


def test_rows_wider_than_the_record_are_refused():
    wide, narrow = chain(), nsds.simulate(chain(), t_end=0.1, h=0.01)[-1:]
    dtype = [(name, narrow.dtype[name]) for name in narrow.dtype.names]
    dtype = [(name, (kind.base, (4,))) if name == "beads" else (name, kind) for name, kind in dtype]
    with pytest.raises(ValueError, match=r"restart: beads\.q must have shape \(3, 1\) as in the record, got \(4, 1\) in the row"):
        nsds.restart(wide, widened(narrow, np.dtype(dtype))[0])


# Conditions, times of rows and callbacks.

FALLS = "ball.q[0] < 0.3"


def assert_is_at_ends(final, rows):
    """Each member has the state of its last row that was computed."""
    for record, own in zip(final.reshape(-1), rows.reshape(-1, rows.shape[-1]), strict=True):
        assert_is_at(record, own[own["status"] >= 0][-1])


@pytest.mark.parametrize("make", [ball, ensemble])
@pytest.mark.parametrize("save_every", [1, 7])
def test_a_condition_ends_the_run(tmp_path, block, make, save_every):
    arguments = {"t_end": 3.0, "h": 5e-3, "save_every": save_every, "until": FALLS}
    final = nsds.stream(make(), tmp_path / "run.h5", **arguments)
    rows = nsds.simulate(make(), **arguments)
    assert 5 < rows.shape[-1] < 600 / save_every
    assert_same_bits(nsds.read_trajectory(tmp_path / "run.h5"), rows)
    assert_is_at_ends(final, rows)


def test_the_record_at_the_end_is_whole_though_few_fields_are_saved(tmp_path, block):
    arguments = {"t_end": 3.0, "h": 5e-3, "until": lambda rows: rows["ball"]["q"][:, 0] < 0.3}
    final = nsds.stream(ball(), tmp_path / "run.h5", fields="ball.q", **arguments)
    assert_is_at(final, nsds.simulate(ball(), **arguments)[-1])


def test_a_run_that_its_condition_ended_goes_on_where_that_is_wanted(tmp_path, block):
    file, arguments = tmp_path / "run.h5", {"t_end": 1.5, "h": 1e-2}
    whole = nsds.simulate(ball(), **arguments)
    nsds.stream(ball(), file, until=FALLS, **arguments)
    ended = nsds.read_trajectory(file)
    for further in ({}, {"t_end": 2.0}):
        with pytest.raises(ValueError, match=r"has ended where 'ball\.q\[0\] < 0\.3' held; pass until"):
            nsds.resume(file, **further)
    assert_same_bits(nsds.read_trajectory(file), ended)
    final = nsds.resume(file, until="ball.q[0] > 0.35")
    rises = ended.size + int((whole["ball"]["q"][ended.size :, 0] > 0.35).argmax())
    assert_same_bits(nsds.read_trajectory(file), whole[: rises + 1])
    assert_is_at(final, whole[rises])
    assert_is_at(nsds.resume(file, until=False), whole[-1])
    assert_same_bits(nsds.read_trajectory(file), whole)
    assert_is_at(nsds.resume(file, t_end=1.6), nsds.simulate(ball(), t_end=1.6, h=1e-2)[-1])  # it has no condition any more


@pytest.mark.parametrize("until", [FALLS, lambda rows: rows["ball"]["q"][:, 0] < 0.3])
def test_a_run_that_is_resumed_ends_where_its_condition_holds(tmp_path, block, until):
    file, rows = tmp_path / "run.h5", nsds.simulate(ball(), t_end=3.0, h=5e-3, until=FALLS)
    nsds.stream(ball(), file, t_end=0.1, h=5e-3, until=until)
    if callable(until):
        with pytest.raises(ValueError, match="ends by a function"):
            nsds.resume(file, t_end=3.0)
    final = nsds.resume(file, t_end=3.0, until=until if callable(until) else None)
    assert_same_bits(nsds.read_trajectory(file), rows)
    assert_is_at(final, rows[-1])


def test_an_ensemble_whose_members_ended_apart_is_not_resumed(tmp_path):
    file, members = tmp_path / "run.h5", ensemble()
    members["ball"]["q"][:, 0] = [1.0, 0.5, 20.0]
    final = nsds.stream(members, file, t_end=1.0, h=5e-3, until=FALLS)
    assert_is_at_ends(final, nsds.simulate(members, t_end=1.0, h=5e-3, until=FALLS))
    assert np.unique(final["t"]).size == 3
    assert (nsds.read_trajectory(file)["status"] == nsds.status.NOT_COMPUTED).any()
    with pytest.raises(ValueError, match="have ended before others"):
        nsds.resume(file, until=False)


@pytest.mark.parametrize("make", [ball, ensemble])
def test_rows_at_times(tmp_path, block, make):
    times = [0.05, 0.2, 0.2004, 0.7, 0.95]
    final = nsds.stream(make(), tmp_path / "run.h5", t_end=1.0, h=0.01, t_eval=times)
    rows = nsds.simulate(make(), t_end=1.0, h=0.01, t_eval=times)
    assert_same_bits(nsds.read_trajectory(tmp_path / "run.h5"), rows)
    assert_is_at(final, rows[..., -1])


def test_rows_at_times_of_a_run_that_goes_on(tmp_path, block):
    file, times = tmp_path / "run.h5", [0.05, 0.2, 0.7, 0.95]
    whole = nsds.simulate(ball(), t_end=1.2, h=0.01)

    def stops(system):
        return float(system["t"]) > 0.3

    final = nsds.stream(ball(), file, t_end=1.0, h=0.01, t_eval=times, callback=stops)
    assert_is_at(final, whole[31])
    seen = []
    nsds.resume(file, callback=lambda system: seen.append(int(system["step"])), callback_every=20)
    final = nsds.resume(file, t_end=1.2)
    rows, expected = nsds.read_trajectory(file), whole[[0, 5, 20, 31, 70, 95, 100, 120]]
    for name in ("t", "step", "ball", "floor"):
        assert_same_bits(rows[name].copy(), expected[name].copy())
    assert_is_at(final, whole[-1])
    assert seen == [51, 71, 91]


@pytest.mark.parametrize("every", [1, 4])
def test_a_callback_ends_the_run(tmp_path, block, every):
    stops = {"callback": lambda system: float(system["t"]) > 0.3, "callback_every": every}
    for save_every in (1, 3):
        arguments = {"t_end": 1.0, "h": 0.01, "save_every": save_every, **stops}
        final = nsds.stream(ball(), tmp_path / f"{save_every}.h5", **arguments)
        rows = nsds.simulate(ball(), **arguments)
        assert_same_bits(nsds.read_trajectory(tmp_path / f"{save_every}.h5"), rows)
        assert_is_at(final, rows[-1])
