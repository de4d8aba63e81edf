"""Runs in files after kills, on full disks, under Ctrl-C and damage; one writer; what a file may not do; exceptions in pools; forks."""

import concurrent.futures
import copy
import io
import multiprocessing
import os
import pickle
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import types

import numpy as np
import pytest

import nsds
from nsds import _checks
from nsds.circuits import netlist
from nsds.maths.sparse_lu import SingularPatternError
from nsds.results import storage, transaction
from nsds.results.transaction import Transaction
from nsds.schemes.linear_algebra import SingularMatrixError
from nsds.schemes.rigid import problem as newton_euler_problem
from nsds.schemes.run import recording, simulation
from nsds.schemes.run.interrupts import Interrupts
from tests.paths import ROOT

h5py = pytest.importorskip("h5py")
ball = nsds.examples.bouncing_ball


def assert_same_bits(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


# Transactions.


class PowerError(Exception):
    """The disk stops."""


class Disk(io.BytesIO):
    """A file on a disk that stops after some operations; of what was written since the last fsync, each piece may be lost."""

    def __init__(self, data, n_operations, rng):
        super().__init__(data)
        self.left, self.rng, self.safe, self.unsafe = n_operations, rng, data, []

    def fileno(self):
        return self

    def count(self):
        self.left -= 1
        if self.left < 0:
            raise PowerError

    def write(self, piece):
        self.count()
        cut = int(self.rng.integers(1, len(piece) + 1))  # systems may write less than they are asked to
        self.unsafe.append((self.tell(), bytes(piece[:cut])))
        return super().write(piece[:cut])

    def truncate(self, size):
        self.count()
        self.unsafe.append((size, None))
        return super().truncate(size)

    def fsync(self):
        self.count()
        self.safe, self.unsafe = self.getvalue(), []

    def after_the_failure(self):
        """Bytes on the disk: what is safe, and some of the rest, by sectors; sizes change in their order."""
        data = bytearray(self.safe)
        for place, piece in self.unsafe:
            if piece is None:
                if self.rng.random() < 0.5:
                    break  # neither this nor what follows reached the disk
                del data[place:]
                continue
            for start in range(0, len(piece), 512):
                if self.rng.random() < 0.5:
                    data.extend(bytes(max(0, place + start - len(data))))
                    data[place + start : place + start + len(piece[start : start + 512])] = piece[start : start + 512]
        return bytes(data)


@pytest.fixture
def disks(monkeypatch):
    fake = types.SimpleNamespace(fsync=lambda file: file.fsync(), fstat=lambda file: types.SimpleNamespace(st_size=len(file.getvalue())))
    fake.SEEK_SET = os.SEEK_SET
    monkeypatch.setattr(transaction, "os", fake)


def changed_at_random(file, twin, rng):
    """Write, lengthen and shorten a transaction and its twin, bytes in memory, alike."""
    for _ in range(rng.integers(1, 8)):
        size = len(twin)
        if rng.random() < 0.15:
            size = int(rng.integers(size // 2, size + 5000))
            file.truncate(size)
            del twin[size:]
            twin.extend(bytes(size - len(twin)))
        else:
            place, piece = int(rng.integers(size + 3000)), rng.bytes(int(rng.integers(1, 9000)))
            file.seek(place)
            assert file.write(piece) == len(piece)
            twin.extend(bytes(max(0, place - size)))
            twin[place : place + len(piece)] = piece


def content(file):
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return file.read(size)


@pytest.mark.parametrize("seed", range(40))
def test_a_file_holds_the_old_or_the_new_bytes_whenever_the_power_fails(disks, seed):
    rng = np.random.default_rng(seed)
    data = rng.bytes(int(rng.integers(30_000)))
    for n_operations in [*range(25), 10**9]:
        disk, twin = Disk(data, n_operations, rng), bytearray(data)
        file = Transaction(disk)
        allowed = [bytes(twin)]
        try:
            file.restore()
            for _ in range(3):
                changed_at_random(file, twin, rng)
                allowed = [allowed[-1], bytes(twin)]
                assert content(file) == bytes(twin)
                file.commit()
                assert content(file) == bytes(twin)
                allowed = [bytes(twin)]
        except PowerError:
            assert n_operations < 10**9
        after = disk.after_the_failure()
        found = content(Transaction(io_of(after)))
        base = [one for one in allowed if found[: len(one)] == one]
        assert base, "neither the old nor the new bytes"
        restored = io_of(after)
        mended = Transaction(restored)
        mended.restore()
        assert content(mended) == found
        assert restored.getvalue()[: len(found)] == found


def io_of(data):
    return Disk(data, 10**9, np.random.default_rng(0))


def test_what_was_noted_can_be_taken_back(disks):
    rng = np.random.default_rng(0)
    file, twin = Transaction(io_of(rng.bytes(20_000))), None
    twin = bytearray(content(file))
    changed_at_random(file, twin, rng)
    before = file.changes()
    changed_at_random(file, copy.copy(twin), rng)
    file.go_back(before)
    assert content(file) == bytes(twin)


# Campaigns, small.


def test_a_small_campaign_of_kills_full_disks_interrupts_and_damage():
    """As many as a test may cost; `tests.benchmarks.crashes` runs more."""
    command = [sys.executable, "-m", "tests.benchmarks.crashes", "small"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"{kind} {{" in done.stdout for kind in ("kills", "full_disks", "interrupts", "damages")), done.stdout


# A full disk.


@pytest.fixture
def limit():
    """A function that limits the size of files, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda n_bytes: resource.setrlimit(resource.RLIMIT_FSIZE, (before[1] if n_bytes is None else n_bytes, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_an_error_that_tells_what_is_missing_and_the_run_goes_on_later(tmp_path, limit):
    file, whole = tmp_path / "run.h5", nsds.simulate(ball(), t_end=20.0, h=1e-3)
    limit(900_000)
    with pytest.raises(
        OSError, match=r"stream: .* are free, the next rows need .* MB, all that are to come .* MB; the file holds"
    ) as caught:
        nsds.stream(ball(), file, t_end=20.0, h=1e-3)
    limit(None)
    assert caught.value.filename == str(file)
    rows = nsds.read_trajectory(file)
    assert 1000 < len(rows) < len(whole)
    assert f"holds {len(rows)} rows" in str(caught.value)
    assert_same_bits(rows, whole[: len(rows)])
    with h5py.File(file) as tree:  # an ordinary file
        np.testing.assert_array_equal(tree["trajectory/ball/q"][: len(rows)], rows["ball"]["q"])
    nsds.resume(file)
    assert_same_bits(nsds.read_trajectory(file), whole)


def test_nothing_is_replaced_where_the_first_rows_find_no_room(tmp_path, limit):
    file = tmp_path / "run.h5"
    nsds.stream(ball(), file, t_end=1.0, h=0.01)
    before = file.read_bytes()
    limit(5000)
    with pytest.raises(OSError, match="nothing was changed"):
        nsds.stream(ball(), file, t_end=2.0, h=0.01, overwrite=True)
    limit(None)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_run_that_will_not_find_room_is_told_before(tmp_path, monkeypatch):
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda folder: types.SimpleNamespace(free=10_000))
    with pytest.warns(RuntimeWarning, match=r"all rows of the run need 0\.0121 MB, 0\.01 MB are free for .*run\.h5: save_every") as caught:
        nsds.stream(ball(), tmp_path / "run.h5", t_end=1.0, h=0.01)
    assert caught[0].filename == __file__
    nsds.resume(tmp_path / "run.h5", t_end=1.5)


def test_new_files_of_killed_runs_are_removed_by_the_next_run(tmp_path, monkeypatch):
    (tmp_path / ".run.h5.0123.part").write_bytes(b"")
    (tmp_path / ".other.h5.0123.part").write_bytes(b"")
    with open(tmp_path / ".run.h5.4567.part", "wb", buffering=0) as busy:
        storage._locked(busy, exclusive=True)
        nsds.stream(ball(), tmp_path / "run.h5", t_end=1.0, h=0.01)
    assert {path.name for path in tmp_path.iterdir()} == {"run.h5", ".other.h5.0123.part", ".run.h5.4567.part"}


# When rows are written.


def test_the_first_row_is_written_before_the_first_step(tmp_path, monkeypatch):
    counts, store = [], storage.RunFile._store
    monkeypatch.setattr(storage.RunFile, "_store", lambda file, rows: (counts.append(rows.shape[1]), store(file, rows)))
    nsds.stream(ball(), tmp_path / "run.h5", t_end=1.0, h=0.01)
    assert counts == [1, 100]


def test_a_file_can_be_read_while_the_run_goes_on_and_nobody_else_writes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "BLOCK_BYTES", 50_000)
    file, errors = tmp_path / "run.h5", []
    whole = nsds.simulate(ball(), t_end=50.0, h=1e-3)
    run = threading.Thread(target=lambda: nsds.stream(ball(), file, t_end=50.0, h=1e-3))
    run.start()
    while run.is_alive():
        if not file.exists():
            continue
        for write in (lambda: nsds.stream(ball(), file, t_end=1.0, h=0.1, overwrite=True), lambda: nsds.resume(file, t_end=100.0)):
            try:
                write()
            except BlockingIOError as error:
                errors.append(str(error))
            else:
                assert not run.is_alive()
            break
        rows = nsds.read_trajectory(file)
        if not run.is_alive():
            break
        assert_same_bits(rows, whole[: len(rows)])
    run.join()
    assert errors
    assert all("the file is in use" in error and str(file) in error for error in errors)


# Ctrl-C.


def test_an_interrupt_is_kept_until_it_can_be_raised():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Interrupts() as interrupts:
            interrupts.raise_noted()  # none
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                interrupts.raise_noted()
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)  # not yet
            with pytest.raises(KeyboardInterrupt), interrupts.at_once():
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(KeyboardInterrupt), Interrupts():
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), Interrupts():  # also where something else goes wrong
            raise ValueError(signal.raise_signal(signal.SIGINT))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with Interrupts():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("place", ["spill", "close", "_put"])
def test_an_interrupt_at_any_place_gives_all_rows(tmp_path, monkeypatch, place):
    """Also while a file is written, and after the last step."""
    method, whole = getattr(recording.Recorder, place), nsds.simulate(ball(), t_end=1.0, h=0.01)

    def interrupted(recorder):
        signal.raise_signal(signal.SIGINT)
        return method(recorder)

    monkeypatch.setattr(recording.Recorder, place, interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(nsds.SimulationInterrupted) as caught:
            nsds.stream(ball(), tmp_path / "run.h5", t_end=1.0, h=0.01)
    finally:
        signal.signal(signal.SIGINT, before)
    rows = nsds.read_trajectory(tmp_path / "run.h5")
    assert_same_bits(rows, caught.value.trajectory)
    assert_same_bits(rows, whole[: len(rows)])
    assert len(rows) == (1 if place == "spill" else 101)


# What a file may not do.


def linked_outside(tree, file):
    with h5py.File(file.with_name("other.h5"), "w") as other:
        other["q"] = tree["trajectory/ball/q"][()]
    del tree["trajectory/ball/q"]
    tree["trajectory/ball/q"] = h5py.ExternalLink(str(file.with_name("other.h5")), "q")


def linked_softly(tree, _):
    tree.move("trajectory/ball/q", "q")
    tree["trajectory/ball/q"] = h5py.SoftLink("/q")


def linked_group(tree, _):
    tree.move("row", "rows")
    tree["row"] = h5py.SoftLink("/rows")


def replaced(name, **options):
    def change(tree, file):
        values = tree[name][()]
        del tree[name]
        tree.create_dataset(name, data=values, **{key: value(file) if callable(value) else value for key, value in options.items()})

    return change


def stored_outside(tree, file):
    values = tree["trajectory/t"][()]
    file.with_name("t.bin").write_bytes(values.tobytes())
    del tree["trajectory/t"]
    tree.create_dataset("trajectory/t", values.shape, values.dtype, external=[(str(file.with_name("t.bin")), 0, values.nbytes)])


def virtual(tree, _):
    values = tree["trajectory/t"][()]
    tree["t"] = values
    del tree["trajectory/t"]
    layout = h5py.VirtualLayout(values.shape, values.dtype)
    layout[:] = h5py.VirtualSource(tree["t"])
    tree.create_virtual_dataset("trajectory/t", layout)


def one_number(name):
    def change(tree, _):
        tree[name][0] += 1

    return change


def more_rows(tree, _):
    tree.attrs["n_rows"] = 10**6


def no_stretches(tree, _):
    tree.attrs["n_stretch"] = 0


def deleted(name):
    def change(tree, _):
        del tree[name]

    return change


def other_settings(tree, _):
    storage._write(tree, "settings", b"[1, 2")


CHANGES = {
    "external link": linked_outside,
    "soft link": linked_softly,
    "linked group": linked_group,
    "external storage": stored_outside,
    "virtual dataset": virtual,
    "filter": replaced("trajectory/t", compression="gzip"),
    "byte order": replaced("trajectory/t", dtype=">f8"),
    "integers": replaced("trajectory/t", dtype="<i8"),
    "a time": one_number("trajectory/t"),
    "a checksum": one_number("system"),
    "more rows": more_rows,
    "no stretches": no_stretches,
    "no system": deleted("system"),
    "no field": deleted("trajectory/ball"),
    "no settings": deleted("settings"),
    "no checksums": deleted("checksums"),
    "settings": other_settings,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_files_are_refused_by_name(tmp_path, change):
    file = tmp_path / "run.h5"
    nsds.stream(ball(), file, t_end=1.0, h=0.01)
    with h5py.File(file, "r+") as tree:
        change(tree, file)
    for call in (nsds.read_trajectory, nsds.resume) if change not in (other_settings, CHANGES["no settings"]) else (nsds.resume,):
        with pytest.raises(OSError, match=r"run\.h5 is damaged, or is no file that nsds\.stream wrote: .") as caught:
            call(file)
        assert call.__name__ in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"precious", b"\x89HDF\r\n\x1a\n" + bytes(100)])
def test_other_files_are_refused_by_name(tmp_path, data):
    (tmp_path / "run.h5").write_bytes(data)
    for call in (nsds.read_trajectory, nsds.read_system, nsds.resume):
        with pytest.raises(OSError, match=r"run\.h5 is damaged"):
            call(tmp_path / "run.h5")
    assert (tmp_path / "run.h5").read_bytes() == data


def test_a_run_that_goes_on_with_other_code_says_so(tmp_path, monkeypatch):
    file, usual = tmp_path / "run.h5", simulation.computed_with
    nsds.stream(ball(), file, t_end=0.5, h=0.01)
    monkeypatch.setattr(simulation, "computed_with", lambda kernels: usual("other") | {"numba": "0.1"})
    with pytest.warns(RuntimeWarning, match=r"computed with other code: numba .* then, 0\.1 now; kernels .* then, other now") as caught:
        nsds.resume(file, t_end=0.6)
    assert caught[0].filename == __file__
    monkeypatch.setattr(simulation, "computed_with", usual)
    with pytest.warns(RuntimeWarning, match="kernels other then"):
        nsds.resume(file, t_end=0.7)
    nsds.resume(file, t_end=0.8)


def test_links_to_files_stay_and_what_they_lead_to_is_replaced(tmp_path):
    (tmp_path / "link.h5").symlink_to(tmp_path / "run.h5")
    for _ in range(2):
        nsds.stream(ball(), tmp_path / "link.h5", t_end=0.1, h=0.01, overwrite=True)
    assert (tmp_path / "link.h5").is_symlink()
    assert len(nsds.read_trajectory(tmp_path / "run.h5")) == 11


@pytest.mark.parametrize(
    ("error", "words", "arguments"),
    [
        (TypeError, "file must be a path, got 3", {"file": 3}),
        (TypeError, "file must be a path, got ''", {"file": ""}),
        (TypeError, "file must be a path, got None", {"file": None}),
        (TypeError, "rows must be a whole number or a slice, got 'x'", {"rows": "x"}),
        (TypeError, "rows must be a whole number or a slice, got 1.5", {"rows": 1.5}),
        (TypeError, "rows must be a whole number or a slice, got True", {"rows": True}),
        (TypeError, "rows: the file has 101, got slice", {"rows": slice("a", None)}),
        (ValueError, "rows: the file has 101, got slice", {"rows": slice(None, None, 0)}),
        (IndexError, "rows: the file has 101, got 101", {"rows": 101}),
        (IndexError, "rows: the file has 101, got -102", {"rows": -102}),
        (TypeError, "fields must be texts", {"fields": 3}),
        (TypeError, "fields must be texts", {"fields": ["ball.q", 3]}),
        (ValueError, "there is no part 'bell'", {"fields": "bell"}),
    ],
)
def test_what_is_asked_of_a_file_is_checked(tmp_path, error, words, arguments):
    nsds.stream(ball(), tmp_path / "run.h5", t_end=1.0, h=0.01)
    with pytest.raises(error) as caught:
        nsds.read_trajectory(**{"file": tmp_path / "run.h5"} | arguments)
    assert words in str(caught.value)


def test_where_a_file_goes_is_checked(tmp_path):
    for file in (3, None, ""):
        for call in (nsds.read_system, nsds.resume, lambda file: nsds.stream(ball(), file, t_end=1.0, h=0.1)):
            with pytest.raises(TypeError, match="file must be a path"):
                call(file)
    with pytest.raises(TypeError, match="overwrite"):
        nsds.stream(ball(), tmp_path / "run.h5", t_end=1.0, h=0.1, overwrite="no")
    with pytest.raises(FileNotFoundError, match=r"no file can be made here.*run\.h5"):
        nsds.stream(ball(), tmp_path / "none" / "run.h5", t_end=1.0, h=0.1)
    with pytest.raises(IsADirectoryError):
        nsds.read_trajectory(tmp_path)


# Exceptions in pools of processes.


def failing():
    system = ball()
    system["ball"]["q"] = 1e308
    system["ball"]["v"] = 1e308
    return nsds.simulate(system, t_end=20.0, h=0.1)


def exceptions():
    with pytest.raises(nsds.SimulationError) as caught:
        failing()
    yield caught.value
    yield nsds.SimulationInterrupted(nsds.simulate(ball(), t_end=0.1, h=0.01), 11, "run.h5")
    with pytest.raises(nsds.solvers.SolverError) as caught:
        nsds.solvers.solve_lcp([[0.0]], [-1.0])
    yield caught.value
    yield SingularMatrixError((0, 1))
    yield SingularPatternError(np.array([2, 5]))
    yield netlist._NotLinearError()


def test_exceptions_are_the_same_after_pickling():
    seen = {type(one) for one in exceptions()}
    own = [kind for kind in all_own(Exception) | all_own(KeyboardInterrupt) if kind.__module__.startswith("nsds")]
    assert set(own) == seen
    for error in exceptions():
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        for name, value in vars(error).items():
            if isinstance(value, np.ndarray):
                assert_same_bits(getattr(again, name), value)
            else:
                assert repr(getattr(again, name)) == repr(value)


def all_own(kind):
    return set(kind.__subclasses__()).union(*(all_own(one) for one in kind.__subclasses__()))


def test_a_failure_in_a_pool_of_processes_reaches_the_caller():
    with pytest.raises(nsds.SimulationError) as here:
        failing()
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        there = pool.submit(failing).exception(timeout=120)
    assert type(there) is nsds.SimulationError
    assert str(there) == str(here.value)
    assert_same_bits(there.trajectory, here.value.trajectory)


# Forks.


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_process_forked_after_parallel_kernels_says_what_does_not_run_there():
    script = """
        import os, numba, numpy as np, nsds
        from nsds import _checks

        @numba.njit(parallel=True)
        def on_threads(x):
            for i in numba.prange(x.size):
                x[i] = 1.0

        def in_child(work):
            child = os.fork()
            if child == 0:
                try:
                    os._exit(work())
                finally:
                    os._exit(99)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        def solve():
            p = nsds.solvers.generate_contacts("stack", 4)
            try:
                nsds.solvers.solve_fc3d(p.W, p.q, p.mu, method="nsgs_parallel")
            except RuntimeError as error:
                return 10 if "'spawn'" in str(error) else 11

        before = in_child(lambda: int(_checks.may_use_threads()))
        on_threads(np.zeros(100))
        print(before, in_child(lambda: int(_checks.may_use_threads())), in_child(solve), int(_checks.may_use_threads()))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["1", "0", "10", "1"], done.stdout + done.stderr


def test_rigid_bodies_do_without_threads_in_forked_processes(monkeypatch):
    plans, reserve = [], newton_euler_problem.reserve
    monkeypatch.setattr(newton_euler_problem, "reserve", lambda *arguments: plans.append(reserve(*arguments)) or plans[-1])
    system = nsds.system(ball=nsds.rigid_bodies(1.0, np.eye(3), q=[0, 0, 1, 1, 0, 0, 0], v=[0, 0, 0, 0, 0, 0], fext=[0, 0, -9.81]))
    rows = nsds.simulate(system, t_end=0.1, h=0.01)
    monkeypatch.setattr(_checks, "_forked_from_threads", [1])
    assert_same_bits(nsds.simulate(system, t_end=0.1, h=0.01), rows)
    assert [int(one["parallel"][0]) for one in plans] == [1, 0]
