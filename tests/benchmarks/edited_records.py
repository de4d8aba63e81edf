"""Records edited at random, as a file from anywhere may be: each is refused with a word on what is wrong, or computed with; never a crash.

    python -m tests.benchmarks.edited_records 2000 --seed 1

Batches run in processes of their own, so that a crash costs one edit. What counts as a failure: a process that dies or hangs, an exception
that does not say which part is wrong, rows with status 0 that are not finite.
"""

import argparse
import collections
import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import scipy.sparse as sp

import nsds

N_STEPS, _BATCH = 3, 400
_NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 7.0, 1e9, -1e9, 1e300, -1e300, 5e-324]
_WHOLE = [0, 1, -1, 2, 3, 7, -2, 63, 64, 65, 1000, 10**6, 2**31 - 1, 2**31, -(2**31), 2**32 + 1, 2**62, 2**63 - 1, -(2**63)]
_TEXTS = [b"", b"os:system#000000000000", b"\xff\xfe", b"a:b", b"x" * 300, b"nsds.model.functions:wanted#0"]


def circle(q, z, out):
    out[0] = q[0] ** 2 + q[1] ** 2 - z[0]


def spring(t, q, v, z, out):
    out[0] = z[0] * q[0]


def feedback(t, x, state, z, u):
    state[0] += x[0]
    u[0] = -z[0] * x[0]


def swing(t, z, out):
    out[0] = np.cos(z[0] * t)


def square(t, x, z, out):
    out[0] = x[0] + 0.1 * x[0] ** 2


def push(t, lam, z, out):
    out[0] = lam[0]


def sparse_chain():
    n = 6
    K = sp.diags_array([np.full(n - 1, -1.0), np.full(n, 2.0), np.full(n - 1, -1.0)], offsets=[-1, 0, 1])
    H = sp.csr_array(([1.0, -1.0, 1.0], ([0, 1, 1], [0, 2, 3])), shape=(2, n))
    return nsds.system(
        bar=nsds.lagrangian_linear(M=sp.eye_array(n), K=K, q=np.linspace(0, 1, n), v=np.zeros(n), fext=swing, z=[1.0]),
        stops=nsds.interaction(nsds.lagrangian_linear_relation(H, b=[0.1, 0.1]), nsds.newton_impact([0.5, 0.2]), on="bar"),
        held=nsds.interaction(nsds.prescribed_velocity([5], amplitude=0.1, omega=1.0), nsds.equality(), on="bar"),
    )


def beads_on_a_ring():
    return nsds.system(
        beads=nsds.lagrangian([1.0, 1.0], fint=spring, fext=[0.0, -9.81], q=[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], v=[0.0, 0.0], z=[1.0],
            count=3),
        ring=nsds.interaction(nsds.scleronomous(circle, m=1, z=[1.0]), nsds.equality(), on="beads[0:2]"),
        touch=nsds.interaction(nsds.lagrangian_linear_relation([[1.0, 0, -1.0, 0], [0, 1.0, 0, -1.0]], b=[0.1, 0]),
                               nsds.newton_impact_friction(0.5, 0.3), on=("beads[0]", "beads[2]")),
    )  # fmt: skip


def controlled_plant():
    return nsds.system(
        plant=nsds.first_order_linear(A=sp.csr_array([[0.0, 1.0], [-1.0, -0.5]]), x=[1.0, 0.0], T=[[0.0], [1.0]], u=[0.0]),
        other=nsds.first_order_linear(A=[[-1.0]], x=[1.0]),
        loop=nsds.sampled_control(feedback, reads=("plant", "other"), writes="plant", period=0.02, state=[0.0], z=[2.0]),
        relay=nsds.interaction(nsds.first_order_linear_relation([[1.0, 0.0]], [[0.0], [1.0]], F=[[0.5]], z=[0.2]), nsds.relay(-1, 2),
            on="plant"),
        cone=nsds.interaction(nsds.first_order_linear_relation([[1.0]], [[1.0]]), nsds.normal_cone([[1.0], [-1.0]], [-1.0, -1.0]),
            on="other"),
        mixed=nsds.interaction(nsds.type1_relation(square, push, m=1), nsds.mixed_complementarity(0), on="other"),
    )  # fmt: skip


def mechanism():
    """Joints of all kinds, an array of bodies, and detected contacts."""
    row = [[0.0, 0, 1.0 + i, 1, 0, 0, 0] for i in range(3)]
    one, two = "links[0]", "links[1]"
    hinge = nsds.joints.hinge([0, 0, 1.5], [0, 1, 0])
    gear = nsds.joints.coupler(("angle", [0, 1, 0]), ("angle", [0, 1, 0]), ratio=0.5)
    shapes = {"links": nsds.shapes.capsule(0.1, 0.3), "block": nsds.shapes.box([0.2, 0.2, 0.2])}
    return nsds.system(
        links=nsds.rigid_bodies(1.0, [0.1, 0.1, 0.05], q=row, v=[0] * 6, fext=[0, 0, -9.81], mext=[0, 0, 0.1], frame="inertial"),
        block=nsds.rigid_bodies(2.0, 0.2, q=[1, 0, 0.0999, 1, 0, 0, 0], v=[0] * 6, fext=swing, z=[1.0], C=0.1 * np.eye(6)),
        pivot=nsds.interaction(hinge, nsds.equality(), on=(one, two)),
        stop=nsds.interaction(nsds.joints.hinge_angle([0, 1, 0], -0.5, 0.5), nsds.newton_impact(0.1), on=(one, two)),
        brake=nsds.interaction(nsds.joints.hinge_angle([0, 1, 0]), nsds.dry_friction(0.1), on=(one, two)),
        gear=nsds.interaction(gear, nsds.equality(), on=("links[2]", "block")),
        contacts=nsds.collisions(
            shapes, nsds.newton_impact_friction(0.0, 0.3), world=[nsds.shapes.plane(), nsds.shapes.sphere(0.1)], margin=0.01
        ),
    )


OWN = {model.__name__: (model, {"h": 0.01}) for model in (sparse_chain, beads_on_a_ring, controlled_plant, mechanism)}
MODELS = OWN | {name: (example.build, example.run) for name, example in nsds.examples.EXAMPLES.items()}


def leaves(dtype, path=()):
    """Paths of all fields that have no fields of their own."""
    for name in dtype.names:
        inner = dtype[name].base
        yield from leaves(inner, (*path, name)) if inner.names else [(*path, name)]


def edited(record, rng):
    """(the record with one thing changed, what was changed in words)."""
    if rng.random() < 0.15:
        return _of_another_type(record, rng)
    record = record.copy()
    paths = list(leaves(record.dtype))
    whole = [path for path in paths if _leaf(record, path).dtype.kind in "iS"]
    chosen = whole if whole and rng.random() < 0.5 else paths
    path = chosen[int(rng.integers(len(chosen)))]
    leaf = _leaf(record, path)
    if leaf.size == 0:
        return record, f"{'.'.join(path)} is empty"
    value = _other_value(record, leaf, rng)
    if rng.random() < 0.3:
        leaf[...] = value
        return record, f"{'.'.join(path)}[...] = {value!r}"
    where = tuple(int(rng.integers(n)) for n in leaf.shape)
    leaf[where] = value
    return record, f"{'.'.join(path)}{list(where)} = {value!r}"


def _leaf(record, path):
    for name in path:
        record = record[name]
    return record


def _other_value(record, leaf, rng):
    if leaf.dtype.kind == "f":
        return _NUMBERS[rng.integers(len(_NUMBERS))] if rng.random() < 0.7 else float(rng.normal() * 10.0 ** rng.integers(-12, 12))
    if leaf.dtype.kind == "i":
        return _WHOLE[rng.integers(len(_WHOLE))] if rng.random() < 0.7 else int(rng.integers(-1000, 100000))
    texts = [_leaf(record, path).reshape(-1)[0] for path in leaves(record.dtype) if _leaf(record, path).dtype.kind == "S"]
    texts += _TEXTS
    if rng.random() < 0.5:
        return texts[rng.integers(len(texts))]
    words = leaf.reshape(-1)[0].split()
    if len(words) > 1:
        i, j = rng.integers(len(words), size=2)
        words[i] = [words[j], b"", b"relay", b"collisions", b"lagrangian", b"joint"][rng.integers(6)]
    return b"\n".join(b" ".join(words[k : k + 3]) for k in range(0, len(words), 3))


def _of_another_type(record, rng):
    dtype, choice = record.dtype, int(rng.integers(7))
    if choice == 0:
        return record.astype(dtype.newbyteorder()), "the other byte order"
    if choice == 1:
        return record.astype(_changed(dtype, lambda leaf: np.dtype("f4") if leaf.kind == "f" else leaf)), "float32"
    if choice == 2:
        return record.astype(np.dtype(dtype.descr, align=True)) if not record.shape else np.repeat(record, 2)[::2], "other strides"
    if choice == 3:
        buffer = np.zeros(record.nbytes + 3, np.uint8)
        moved = buffer[3:].view(dtype)
        moved[...] = record.reshape(-1)
        return moved.reshape(record.shape), "misaligned"
    parts = [name for name in dtype.names if dtype[name].base.names]
    part = parts[int(rng.integers(len(parts)))]
    base = dtype[part].base
    fields = [(name, base[name]) for name in base.names]
    k = int(rng.integers(len(fields)))
    if choice == 4:
        what, fields = f"{part}.{fields[k][0]} is missing", fields[:k] + fields[k + 1 :]
    elif choice == 5:
        other = (fields[k][1].base, (*fields[k][1].shape[:-1], int(rng.integers(0, 9))))
        what, fields[k] = f"{part}.{fields[k][0]} of shape {other[1]}", (fields[k][0], *other)
    else:
        what, fields = f"{part} in another order", fields[k:] + fields[:k]
    if not fields:
        return record, "nothing"
    made = np.dtype([(name, dtype[name] if name != part else np.dtype((np.dtype(fields), dtype[part].shape))) for name in dtype.names])
    result = np.zeros(record.shape, made)
    for name in dtype.names:
        if name != part:
            result[name] = record[name]
            continue
        for field in made[part].base.names:
            if result[name][field].shape == record[name][field].shape:
                result[name][field] = record[name][field]
    return result, what


def _changed(dtype, change):
    if dtype.subdtype:
        return np.dtype((_changed(dtype.base, change), dtype.shape))
    if dtype.names:
        return np.dtype([(name, _changed(dtype[name], change)) for name in dtype.names])
    return change(dtype)


def outcome(record, run):
    """What becomes of a record in a few steps: "refused", "failed" (a status or an exception says so), "computed", else what is wrong."""
    h = run["h"]
    try:
        t = np.max(record["t"]).item()
        rows = nsds.simulate(record, t_end=t + N_STEPS * h, h=h, scheme=run.get("scheme"), solver=run.get("solver"), on_failure="continue",
                             progress=False)  # fmt: skip
    except (ValueError, TypeError) as error:
        return "refused" if ": " in str(error) or "'" in str(error) else f"obscure: {error!r}"
    except nsds.SimulationError:
        return "failed"
    except MemoryError:
        return "refused"
    except Exception as error:
        return f"obscure: {error!r}"
    steps = rows[..., 1:]  # row 0 is what was given
    solved = steps[(steps["status"] == 0) & np.isfinite(steps["residual"])]
    for path in leaves(rows.dtype):
        values = _leaf(solved, path)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            return f"garbage: {'.'.join(path)} is not finite in rows with status 0"
    return "failed" if (rows["status"] != 0).any() else "computed"


def edit_of(seed, i, models=MODELS):
    """(name of the model, edited record, arguments of its run, what was changed)."""
    rng = np.random.default_rng([seed, i])
    name = list(models)[int(rng.integers(len(models)))] if rng.random() < 0.6 else list(OWN)[int(rng.integers(len(OWN)))]
    record, what = edited(_built(name), rng)
    return name, record, MODELS[name][1], what


@cache
def _built(name):
    return MODELS[name][0]()


def _work(seed, first, last):
    warnings.simplefilter("ignore")
    for i in range(first, last):
        name, record, run, what = edit_of(seed, i)
        print(f"{i}\t{name}\t{what}\t".replace("\n", " "), end="", flush=True)
        with np.errstate(all="ignore"):
            print(str(outcome(record, run)).replace("\n", " "), flush=True)


def main():
    """Run the campaign and print what became of the edits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one edit")
    parser.add_argument("--verbose", action="store_true", help="what became of each edit")
    parser.add_argument("--worker", type=int, nargs=2)
    options = parser.parse_args()
    if options.worker:
        _work(options.seed, *options.worker)
        return
    found, i = collections.Counter(), options.first
    while i < options.first + options.count:
        last = min(i + _BATCH, options.first + options.count)
        command = [sys.executable, "-m", "tests.benchmarks.edited_records", "--seed", str(options.seed), "--worker", str(i), str(last)]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout * 20, check=False)
            output, died = ran.stdout, f"died with {ran.returncode}" if ran.returncode else None
        except subprocess.TimeoutExpired as late:
            output, died = (late.stdout or b"").decode(), "hangs"
        for line in output.splitlines():
            number, model, what, result = line.split("\t")
            result = result or died or "died"
            found[result.partition(":")[0]] += 1
            verbose = options.verbose or result.partition(":")[0] not in ("refused", "failed", "computed")
            if verbose:
                print(f"{number} {model}: {what}: {result}", flush=True)
            i = int(number) + 1
        if died and not output.strip():
            print(f"a batch from {i} on did nothing: {died}\n{ran.stderr[-2000:]}")
            break
    print(f"{sum(found.values())} edits: " + ", ".join(f"{count} {name}" for name, count in found.most_common()))


if __name__ == "__main__":
    main()
