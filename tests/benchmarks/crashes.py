"""Runs in files under kills, full disks, Ctrl-C and damage: ``python -m tests.benchmarks.crashes [KIND [COUNT [SEED]]]``.

kills        SIGKILL at any time: the file holds the rows of all blocks that were finished, with the bits of a run in memory, and goes on
full_disks   file systems of random size (mounted where that is allowed, else a limit on the size of files): an error, the rows so far
interrupts   SIGINT at any time: KeyboardInterrupt at the caller, always; the file can be read
damages      bits flipped, pages lost, mixed up or cleared, wrong lengths: an error that names the file, or the right rows; never a crash

The kind small is a little of each. All runs are in processes forked from this one, so that nothing is compiled or loaded twice.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import h5py  # noqa: F401, before processes are forked
import numpy as np

import nsds
from nsds.results import storage
from nsds.schemes.run import interrupts as looks
from nsds.schemes.run import recording

COUNTS = {"kills": 200, "full_disks": 20, "interrupts": 100, "damages": 2000}
_FEW = {"kills": 6, "full_disks": 4, "interrupts": 6, "damages": 60}
_FAILED = 77
_SECONDS = 240  # before a child counts as hanging


def ball():
    """One system: (system, arguments of a run)."""
    return nsds.examples.bouncing_ball(), {"t_end": 200.0, "h": 5e-4}


def ensemble():
    """Five systems at once, every seventh step."""
    systems = np.repeat(nsds.examples.bouncing_ball(), 5)
    systems["floor"]["e"] = np.linspace(0.0, 0.9, 5)
    return systems, {"t_end": 500.0, "h": 5e-3, "save_every": 7}


def chain():
    """Many fields, few rows."""
    relation = nsds.lagrangian_linear_relation
    parts = {f"mass_{i}": nsds.lagrangian_linear(M=[1.0], fext=[-9.81], q=[0.1 * i], v=[0.0]) for i in range(20)}
    parts |= {f"floor_{i}": nsds.interaction(relation(H=[[1.0]]), nsds.newton_impact(0.5), on=f"mass_{i}") for i in range(20)}
    return nsds.system(**parts), {"t_end": 20.0, "h": 2e-3}


MODELS = [ball, ensemble, chain]


def shorter(model):
    """A model whose runs take a tenth of the time."""

    def make():
        system, arguments = model()
        return system, arguments | {"t_end": arguments["t_end"] / 10}

    return make


def in_child(work):
    """Fork a process that does some work; returns its number. It ends with 0, or with _FAILED after an error, which is printed."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(_FAILED)
    return child


def ended(child, seconds=_SECONDS):
    """Exit status of a child, negative for the signal that ended it; None where it hangs, and is killed."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def small_blocks():
    """Blocks so small that a run is nearly always writing one."""
    recording.BLOCK_BYTES, looks.CHUNK_SECONDS = 200_000, 0.002


def told_of_blocks(pipe):
    """Have a pipe be told, after each block, how many rows are on the disk."""
    store = storage.RunFile._store

    def telling(file, rows):
        store(file, rows)
        os.write(pipe, file.n_rows.to_bytes(8, "little"))

    storage.RunFile._store = telling


def check_rows(file, whole, least, owner):
    """Number of rows in a file, which have the bits of the first rows in memory."""
    rows = nsds.read_trajectory(file)
    n = rows.shape[-1]
    if n < least or rows.tobytes() != np.ascontiguousarray(whole[..., :n]).tobytes():
        raise AssertionError(f"{owner}: {n} rows, {least} were written, bits {'differ' if n >= least else 'unknown'}")
    return n


def kills(count, rng, folder):
    """SIGKILL."""
    figures = {"before the first block": 0, "in a run": 0, "after the end": 0, "rows": 0, "resumed": 0}
    for k in range(count):
        system, arguments = MODELS[k % len(MODELS)]()
        whole, file = wholes[k % len(MODELS)], folder / f"kill{k}.h5"
        receive, send = os.pipe()

        def work(system=system, arguments=arguments, file=file, send=send, small=k % 2):
            if small:
                small_blocks()
            told_of_blocks(send)
            nsds.stream(system, file, **arguments)

        child = in_child(work)
        os.close(send)
        time.sleep(rng.uniform(0, spans[k % len(MODELS), k % 2]))
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        if ended(child) not in (0, -signal.SIGKILL):
            raise AssertionError(f"kill {k}: the run failed")
        with os.fdopen(receive, "rb") as pipe:
            told = pipe.read()
        least = int.from_bytes(told[-8:], "little")
        if not file.exists():
            if least:
                raise AssertionError(f"kill {k}: {least} rows were written, and there is no file")
            figures["before the first block"] += 1
            continue
        n = check_rows(file, whole, max(1, least), f"kill {k}")
        figures["in a run" if n < whole.shape[-1] else "after the end"] += 1
        figures["rows"] += n
        if n < whole.shape[-1] and k % 4 == 0:
            nsds.resume(file)
            check_resumed(file, whole, n, arguments, f"kill {k}")
            figures["resumed"] += 1
        for path in [file, *folder.glob(f".kill{k}.h5*")]:
            path.unlink()
    return figures


def check_resumed(file, whole, n, arguments, owner):
    """A run that went on is that of one without a break."""
    rows = nsds.read_trajectory(file)
    if rows.tobytes() != whole.tobytes():
        raise AssertionError(f"{owner}: the bits differ after it went on from row {n}")


@contextlib.contextmanager
def small_disk(n_bytes, folder, k):
    """(folder on a file system of that size, function that limits a child): mounted, or by a limit on the size of files."""
    place = folder / f"disk{k}"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", place], capture_output=True, check=False)
    if mounted.returncode == 0:
        try:
            yield place, lambda: None
        finally:
            subprocess.run(["umount", place], check=True)
    else:
        yield place, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))


def full_disks(count, rng, folder):
    """Disks of 50 KB to as much as a run needs."""
    figures = {"no file": 0, "rows kept": 0, "errors": 0, "went on with more room": 0, "the run fitted": 0}
    for k in range(count):
        system, arguments = MODELS[k % len(MODELS)]()
        whole = wholes[k % len(MODELS)]
        size = int(np.exp(rng.uniform(np.log(5e4), np.log(1.2 * whole.nbytes))))
        with small_disk(size, folder, k) as (place, limit):
            file, note = place / "run.h5", folder / f"note{k}"

            def work(system=system, arguments=arguments, file=file, limit=limit, small=k % 2, note=note):
                if small:
                    small_blocks()
                limit()
                try:
                    nsds.stream(system, file, **arguments)
                    note.write_text("it fits")
                except OSError as error:
                    if not (str(file) in str(error) and "are free" in str(error) and "MB" in str(error)):
                        raise
                    note.write_text(str(error))

            if ended(in_child(work)) != 0:
                raise AssertionError(f"disk {k} of {size} bytes: the run did not end with an error of its own")
            if note.read_text() == "it fits":
                figures["the run fitted"] += 1
            else:
                figures["errors"] += 1
                if not file.exists() and not list(place.iterdir()):
                    figures["no file"] += 1
                    continue
            n = check_rows(file, whole, 1, f"disk {k}")
            figures["rows kept"] += n
            if n < whole.shape[-1]:
                more = folder / f"more{k}.h5"
                more.write_bytes(file.read_bytes())
                nsds.resume(more)
                check_resumed(more, whole, n, arguments, f"disk {k}")
                more.unlink()
                figures["went on with more room"] += 1
    return figures


def interrupts(count, rng, folder):
    """SIGINT."""
    figures = {"in a run": 0, "after the end": 0, "before the first block": 0, "rows": 0}
    for k in range(count):
        system, arguments = MODELS[k % len(MODELS)]()
        whole, file, note = wholes[k % len(MODELS)], folder / f"int{k}.h5", folder / f"int{k}.txt"
        receive, send = os.pipe()

        def work(system=system, arguments=arguments, file=file, send=send, small=k % 2, note=note):
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if small:
                small_blocks()
            returned = False
            try:
                os.write(send, b"x")
                nsds.stream(system, file, **arguments)
                returned = True
                while True:
                    time.sleep(1)
            except KeyboardInterrupt as error:
                note.write_text("returned" if returned else f"{type(error).__name__}: {error}")

        child = in_child(work)
        os.read(receive, 1)
        time.sleep(rng.uniform(0, spans[k % len(MODELS), k % 2]))
        os.kill(child, signal.SIGINT)
        status = ended(child)
        if status != 0:
            raise AssertionError(f"interrupt {k}: {'Ctrl-C was swallowed' if status is None else status}")
        for end in (receive, send):
            os.close(end)
        if not file.exists():
            figures["before the first block"] += 1
            continue
        n = check_rows(file, whole, 1, f"interrupt {k}")
        figures["after the end" if note.read_text() == "returned" else "in a run"] += 1
        figures["rows"] += n
        if list(folder.glob(".int*")):
            raise AssertionError(f"interrupt {k}: {list(folder.glob('.int*'))} was left")
        if n < whole.shape[-1] and k % 4 == 0:
            nsds.resume(file)
            check_resumed(file, whole, n, arguments, f"interrupt {k}")
        file.unlink()
    return figures


def damaged(data, rng):
    """(what was done, bytes of a file after that)."""
    data, size = bytearray(data), len(data)
    kind = rng.choice(["bit", "byte", "bits", "truncated", "longer", "zeros", "ones", "noise", "copied", "cut out", "swapped"])
    a = int(rng.integers(size))
    n = int(np.exp(rng.uniform(0, np.log(size - a)))) if a < size - 1 else 1
    if kind in ("bit", "bits"):
        for place in rng.integers(size, size=1 if kind == "bit" else 20):
            data[place] ^= 1 << int(rng.integers(8))
    elif kind == "byte":
        data[a] = int(rng.integers(256))
    elif kind == "truncated":
        del data[a:]
    elif kind == "longer":
        data += rng.bytes(n)
    elif kind == "cut out":
        del data[a : a + n]
    elif kind == "swapped":
        pages = -(-size // 512)
        i, j = (512 * int(k) for k in rng.integers(pages, size=2))
        data[i : i + 512], data[j : j + 512] = data[j : j + 512], data[i : i + 512]
    elif kind == "copied":
        b = int(rng.integers(size))
        data[a : a + n] = data[b : b + n]
    else:
        data[a : a + n] = {"zeros": bytes(n), "ones": b"\xff" * n}.get(kind, rng.bytes(n))
    return f"{kind} at {a} of {size}, {n} bytes", bytes(data)


def killed_in_a_change(source, target):
    """Make a file as a kill leaves it whose last change is in the log alone: (rows before, rows afterwards)."""

    def work():
        storage.Transaction._apply = lambda _: os._exit(0)
        nsds.resume(target, t_end=nsds.read_trajectory(source, rows=-1)["t"].max() * 1.5)

    target.write_bytes(source.read_bytes())
    before = nsds.read_trajectory(source).shape[-1]
    if ended(in_child(work)) != 0:
        raise AssertionError("the run was to end in a change of its file")
    return before, nsds.read_trajectory(target).shape[-1]


def damages(count, rng, folder):
    """Damaged files, read in children that a crash would end."""
    sources = []
    for k, model in enumerate(MODELS):
        system, arguments = model()
        short = arguments | {"t_end": arguments["t_end"] / 50}
        file = folder / f"source{k}.h5"
        nsds.stream(system, file, **short)
        whole = nsds.simulate(system, **short)
        n = check_rows(file, whole, whole.shape[-1], "an undamaged file")
        sources.append((file.read_bytes(), whole, [n], system))
        hot = folder / f"hot{k}.h5"
        allowed = list(killed_in_a_change(file, hot))
        sources.append((hot.read_bytes(), nsds.read_trajectory(hot), allowed, system))
    figures = {"refused": 0, "harmless": 0, "one block less": 0}
    totals, batch = folder / "totals.npy", 50
    for first in range(0, count, batch):
        seeds = rng.integers(2**32, size=min(batch, count - first))

        def work(seeds=seeds, first=first):
            found = np.zeros(3, int)
            for k, seed in enumerate(seeds.tolist(), first):
                data, whole, allowed, system = sources[k % len(sources)]
                what, bad = damaged(data, np.random.default_rng(seed))
                found[outcome(folder / "damaged.h5", bad, whole, allowed, system, f"{what}, model {k % len(sources)}, seed {seed}")] += 1
            np.save(totals, found)

        status = ended(in_child(work), 300)
        if status != 0:
            raise AssertionError(f"damaged files {first} to {first + batch}: {'a hang' if status is None else status}")
        for name, n in zip(figures, np.load(totals).tolist(), strict=True):
            figures[name] += n
    return figures


def outcome(file, data, whole, allowed, system, what):
    """0: refused, 1: the rows are right, 2: those before the last change."""
    file.write_bytes(data)
    for read in (nsds.read_trajectory, nsds.read_system):
        try:
            result = read(file)
        except OSError as error:
            if str(file) not in str(error):
                raise AssertionError(f"{what}: the error does not name the file: {error}") from None
            return 0
        if read is nsds.read_trajectory:
            n = result.shape[-1]
            if n not in allowed or result.tobytes() != np.ascontiguousarray(whole[..., :n]).tobytes():
                raise AssertionError(f"{what}: wrong rows")
        elif result.tobytes() != system.tobytes():
            raise AssertionError(f"{what}: a wrong system")
    return 1 if n == allowed[-1] else 2


def main(kind=None, count=None, seed=0):
    """Run one campaign, or all, and print figures."""
    if kind == "small":
        MODELS[:] = [shorter(model) for model in MODELS]
    for model in MODELS:
        system, arguments = model()
        wholes.append(nsds.simulate(system, **arguments))
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for k, model in enumerate(MODELS):
            for small in range(2):
                system, arguments = model()
                began = time.monotonic()
                ended(in_child(lambda s=system, a=arguments, t=small: (t and small_blocks(), nsds.stream(s, Path(folder) / "x.h5", **a))))
                spans[k, small] = min(5.0, 1.1 * (time.monotonic() - began))
                (Path(folder) / "x.h5").unlink()
        print("seconds of the runs:", {key: round(value, 2) for key, value in spans.items()})
        for name in [kind] if kind in COUNTS else COUNTS:
            began = time.monotonic()
            n = int(count or (_FEW if kind == "small" else COUNTS)[name])
            figures = globals()[name](n, np.random.default_rng(int(seed)), Path(folder))
            print(n, name, figures, f"{time.monotonic() - began:.0f} s", flush=True)


wholes, spans = [], {}

if __name__ == "__main__":
    main(*sys.argv[1:])
