"""FCLIB files: what is written is read again, and files as its C library writes them are understood; collected ``.npz`` problems too."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from nsds import solvers
from tests.paths import PROBLEMS

h5py = pytest.importorskip("h5py")


def dense(A):
    return A.toarray() if hasattr(A, "toarray") else np.asarray(A)


def assert_same(a, b):
    for field in ("W", "q", "mu", "M", "H", "f", "w"):
        x, y = getattr(a, field), getattr(b, field)
        assert (x is None) == (y is None), field
        if x is not None:
            x, y = (sp.csr_array(z) if hasattr(z, "tocsr") or z.ndim == 2 else z for z in (x, y))
            assert x.shape == y.shape
            assert (x != y).sum() == 0


def linked(tree, file):
    with h5py.File(file.with_name("other.hdf5"), "w") as other:
        other["mu"] = tree["fclib_local/vectors/mu"][()]
    del tree["fclib_local/vectors/mu"]
    tree["fclib_local/vectors/mu"] = h5py.ExternalLink(str(file.with_name("other.hdf5")), "mu")


def outside(tree, file):
    mu = tree["fclib_local/vectors/mu"][()]
    file.with_name("mu.bin").write_bytes(mu.tobytes())
    del tree["fclib_local/vectors/mu"]
    tree.create_dataset("fclib_local/vectors/mu", mu.shape, mu.dtype, external=[(str(file.with_name("mu.bin")), 0, mu.nbytes)])


@pytest.mark.parametrize("change", [linked, outside])
def test_what_lies_in_other_files_is_not_read(tmp_path, change):
    file = tmp_path / "stack.hdf5"
    solvers.write_fclib(file, solvers.generate_contacts("stack", 3))
    with h5py.File(file, "r+") as tree:
        change(tree, file)
    with pytest.raises(ValueError, match=r"read_fclib\(stack\.hdf5\): .*mu lies elsewhere"):
        solvers.read_fclib(file)


def test_damaged_files_are_refused_by_name_or_read(tmp_path):
    file, rng = tmp_path / "stack.hdf5", np.random.default_rng(0)
    solvers.write_fclib(file, solvers.generate_contacts("stack", 3))
    data, refusals = file.read_bytes(), []
    for k in range(100):
        if k % 2:
            file.write_bytes(data[: rng.integers(len(data))])
        else:
            place, n = (int(i) for i in rng.integers(1, [len(data), 200]))
            file.write_bytes(data[:place] + rng.bytes(n) + data[place + n :])
        try:
            solvers.read_fclib(file)
        except ValueError as error:
            refusals.append(str(error))
    assert len(refusals) > 50
    assert all("read_fclib(stack.hdf5)" in refusal for refusal in refusals)


def test_a_file_is_replaced_as_a_whole(tmp_path, monkeypatch):
    file = tmp_path / "stack.hdf5"
    solvers.write_fclib(file, solvers.generate_contacts("stack", 3))
    before = file.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        solvers.write_fclib(file, solvers.generate_contacts("stack", 4))
    monkeypatch.undo()
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("family", ["stack", "pile", "flexible", "unsymmetric"])
def test_what_is_written_is_read(tmp_path, family, d):
    problem = solvers.generate_contacts(family, 7, 2, d, mu=np.linspace(0.1, 0.7, 7))
    rng, n = np.random.default_rng(1), None if problem.f is None else problem.f.size
    drawn = [solvers.FclibSolution(*rng.normal(size=(2, 7 * d)), None if n is None else rng.normal(size=n)) for _ in range(3)]
    forms = [problem, problem._replace(M=None, H=None, f=None, w=None)]
    forms += [] if n is None else [problem._replace(W=None, q=None)]
    for k, form in enumerate(forms):
        solvers.write_fclib(tmp_path / f"{k}.hdf5", form, drawn[0], drawn[1:])
        stored = solvers.read_fclib(tmp_path / f"{k}.hdf5")
        assert stored.problem.name == str(k)
        assert stored.info == {"title": problem.name}
        assert (stored.problem.d, stored.problem.n_contacts) == (d, 7)
        assert_same(stored.problem, form)
        for a, b in zip([stored.solution, *stored.guesses], drawn, strict=True):
            np.testing.assert_array_equal(a.r, b.r)
            np.testing.assert_array_equal(a.u, b.u)
            assert (a.v is None) == (form.M is None)
            assert a.v is None or (a.v == b.v).all()


def test_a_file_is_written_over_and_needs_no_solution(tmp_path):
    file = tmp_path / "a.hdf5"
    first, second = solvers.generate_contacts("stack", 4), solvers.generate_contacts("random", 2, d=2)
    solvers.write_fclib(file, first, guesses=[solvers.solve_gfc3d(first.M, first.H, first.f, first.w, first.mu)])
    solvers.write_fclib(file, second)
    stored = solvers.read_fclib(file)
    assert_same(stored.problem, second)
    assert (stored.solution, stored.guesses) == (None, [])


def test_files_are_as_the_c_library_reads_them(tmp_path):
    problem = solvers.generate_contacts("chain", 3)
    solvers.write_fclib(tmp_path / "a.hdf5", problem, solvers.solve_gfc3d(problem.M, problem.H, problem.f, problem.w, problem.mu))
    with h5py.File(tmp_path / "a.hdf5") as tree:
        assert set(tree) == {"fclib_local", "fclib_global", "solution"}
        assert set(tree["solution"]) == {"r", "u", "v"}
        assert set(tree["fclib_global"]) == {"spacedim", "M", "H", "vectors", "info"}
        assert set(tree["fclib_global/vectors"]) == {"f", "w", "mu"}
        W = tree["fclib_local/W"]
        assert {name: (W[name].dtype.str, W[name].shape) for name in W} == {
            **dict.fromkeys(("m", "n", "nz", "nzmax"), ("<i4", (1,))),
            "p": ("<i4", (10,)),
            "i": ("<i4", (problem.W.nnz,)),
            "x": ("<f8", (problem.W.nnz,)),
        }
        assert W["nz"][0] == -1
        title = tree["fclib_local/info/title"]
        assert title.dtype.itemsize == len(problem.name) + 1


def minimal(tree, **matrices):
    """As the C library writes: ``W = [[2, 1], [0, 3]]``, one contact in the plane."""
    group = tree.create_group("fclib_local")
    group["spacedim"] = np.array([2], np.int32)
    for name, matrix in matrices.items():
        for field, value in matrix.items():
            dtype = np.float64 if field == "x" else np.int32
            group[f"{name}/{field}"] = np.atleast_1d(np.array(value, dtype))
    group["vectors/q"], group["vectors/mu"] = [-4.0, 3.0], [0.5]
    return group


SIZE = {"m": 2, "n": 2, "nzmax": 3}
WAYS = {
    "triplets": {**SIZE, "nz": 3, "p": [0, 0, 1], "i": [0, 1, 1], "x": [2, 1, 3]},
    "triplets with room": {**SIZE, "nzmax": 5, "nz": 3, "p": [1, 0, 0], "i": [1, 1, 0], "x": [3, 1, 2, 0, 0]},
    "repeated triplets": {**SIZE, "nz": 4, "p": [0, 0, 1, 0], "i": [0, 1, 1, 0], "x": [1, 1, 3, 1]},
    "columns": {**SIZE, "nz": -1, "p": [0, 1, 3], "i": [0, 0, 1], "x": [2, 1, 3]},
    "columns with room": {**SIZE, "nzmax": 4, "nz": -1, "p": [0, 1, 3], "i": [0, 0, 1, 0], "x": [2, 1, 3, 0]},
    "rows": {**SIZE, "nz": -2, "p": [0, 2, 3], "i": [0, 1, 1], "x": [2, 1, 3]},
}


@pytest.mark.parametrize("way", WAYS)
def test_minimal_files(tmp_path, way):
    with h5py.File(tmp_path / "a.hdf5", "w") as tree:
        group = minimal(tree, W=WAYS[way])
        group["W/comment"], group["W/rank"] = np.bytes_("small"), np.array([2], np.int32)  # matrix information is skipped
        group["info/description"] = np.bytes_("one contact")
        group["info"].attrs["numberOfInvolvedDS"] = np.array([7], np.int32)
        tree["guesses/number_of_guesses"] = np.array([1], np.int32)
        tree["guesses/1/r"], tree["guesses/1/u"] = [1.0, 0.0], [0.0, 0.0]
    stored = solvers.read_fclib(tmp_path / "a.hdf5")
    np.testing.assert_array_equal(dense(stored.problem.W), [[2, 1], [0, 3]])
    assert stored.info == {"description": "one contact", "numberOfInvolvedDS": 7}
    assert stored.guesses[0].r.tolist() == [1.0, 0.0]
    p = stored.problem
    s = solvers.solve_fc2d(p.W, p.q, p.mu, r0=stored.guesses[0].r)
    np.testing.assert_allclose(s.r, [2.5, -1.0], atol=1e-7)


def triplets(A):
    A = sp.coo_array(A)
    return {"m": A.shape[0], "n": A.shape[1], "nz": A.nnz, "nzmax": A.nnz, "p": A.row, "i": A.col, "x": A.data}


def test_multipliers_of_equations(tmp_path):
    """``G^T v + b = 0`` in both forms: the reduced one has ``V = H^T M^-1 G``, ``R = G^T M^-1 G``, ``s = G^T M^-1 f + b``."""
    rng = np.random.default_rng(3)
    problem = solvers.generate_contacts("flexible", 4, 3)
    M, H, n = dense(problem.M), dense(problem.H), problem.f.size
    G, b = rng.normal(size=(n, 2)), rng.normal(size=2)
    inverse = np.linalg.inv(M)
    with h5py.File(tmp_path / "a.hdf5", "w") as tree:
        for name, matrices in (
            ("fclib_global", {"M": M, "H": H, "G": G}),
            ("fclib_local", {"W": H.T @ inverse @ H, "V": H.T @ inverse @ G, "R": G.T @ inverse @ G}),
        ):
            for part, matrix in matrices.items():
                for field, value in triplets(matrix).items():
                    tree[f"{name}/{part}/{field}"] = np.atleast_1d(value)
            tree[f"{name}/spacedim"], tree[f"{name}/vectors/mu"] = np.array([3], np.int32), problem.mu
        for part, value in (("f", problem.f), ("w", problem.w), ("b", b)):
            tree[f"fclib_global/vectors/{part}"] = value
        tree["fclib_local/vectors/q"], tree["fclib_local/vectors/s"] = problem.q, G.T @ inverse @ problem.f + b
        for part, size in (("v", n), ("l", 2), ("u", 12), ("r", 12)):
            tree[f"solution/{part}"] = np.arange(size) * 1.0
    stored = solvers.read_fclib(tmp_path / "a.hdf5")
    p = stored.problem
    whole, inner = solvers.solve_gfc3d(p.M, p.H, p.f, p.w, p.mu, tol=1e-11), solvers.solve_fc3d(p.W, p.q, p.mu, tol=1e-11)
    np.testing.assert_allclose(whole.r, inner.r, atol=1e-8)
    v, multiplier = whole.v[:n], whole.v[n:]
    np.testing.assert_allclose(G.T @ v + b, 0.0, atol=1e-9)
    np.testing.assert_allclose(M @ v, H @ whole.r + G @ multiplier + problem.f, atol=1e-9)
    np.testing.assert_array_equal(stored.solution.v, [*range(n), 0, 1])


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("neither fclib_local nor fclib_global", lambda tree: tree.move("fclib_local", "other")),
        ("/fclib_local/W/nz is missing", lambda tree: tree.pop("fclib_local/W/nz")),
        ("/fclib_local/vectors/q is missing", lambda tree: tree.pop("fclib_local/vectors/q")),
        (r"vectors/mu must have shape \(1,\), got \(2,\)", lambda tree: replace(tree, "fclib_local/vectors/mu", [0.5, 0.5])),
        ("spacedim must be 2 or 3 and divide the number of rows 2, got 3", lambda tree: replace(tree, "fclib_local/spacedim", [3])),
        ("nz of /fclib_local/W must be -2, -1", lambda tree: replace(tree, "fclib_local/W/nz", [-3])),
        ("/fclib_local/W is not a matrix", lambda tree: replace(tree, "fclib_local/W/i", [0, 1, 7])),
        ("W/x must be finite, got nan", lambda tree: replace(tree, "fclib_local/W/x", [0, np.nan, 1])),
        ("/guesses/1 is missing", lambda tree: replace(tree, "guesses/number_of_guesses", [1])),
    ],
)
def test_bad_files_are_named(tmp_path, words, change):
    with h5py.File(tmp_path / "bad.hdf5", "w") as tree:
        minimal(tree, W=WAYS["rows"])
        change(tree)
    with pytest.raises(ValueError, match=rf"read_fclib\(bad.hdf5\).*{words}"):
        solvers.read_fclib(tmp_path / "bad.hdf5")


def replace(tree, name, value):
    if name in tree:
        del tree[name]
    tree[name] = value


def test_what_the_format_cannot_hold_is_refused(tmp_path):
    file, small = tmp_path / "a.hdf5", solvers.generate_contacts("stack", 2)
    with pytest.raises(ValueError, match="without rolling friction, got 'stack-2-0-rfc2d'"):
        solvers.write_fclib(file, solvers.generate_contacts("stack", 2, mu_r=0.1))
    with pytest.raises(ValueError, match="solution must have v"):
        solvers.write_fclib(file, small, solvers.solve_fc3d(small.W, small.q, small.mu))
    with pytest.raises(ValueError, match=r"r of guesses/1 must have shape \(6,\), got \(3,\)"):
        solvers.write_fclib(file, small, guesses=[solvers.FclibSolution(np.zeros(3), np.zeros(6), small.f)])
    with pytest.raises(ValueError, match=r"W must have shape \(6, 6\)"):
        solvers.write_fclib(file, small._replace(W=np.eye(3)))
    assert not file.exists()


def test_without_h5py_the_command_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match="pip install h5py"):
        solvers.read_fclib(tmp_path / "a.hdf5")


# Problems as NumPy archives.


def test_stored_classes(tmp_path):
    rows = sp.csr_array(np.diag([2.0, 1.0, 1.0]))
    sparse = {"M_data": rows.data, "M_indices": rows.indices, "M_indptr": rows.indptr, "M_shape": rows.shape}
    np.savez(tmp_path / "local.npz", cls="fc3d", q=[-4.0, 3, 4], mu=[0.5], d=3, nc=1, **sparse)
    np.savez(tmp_path / "global.npz", cls="gfc3d", H=np.eye(3), q=[-4.0, 3, 4], b=np.zeros(3), mu=[0.5], **sparse)
    np.savez(tmp_path / "rolling.npz", cls="rfc3d", M=np.eye(5), q=np.ones(5), mu=[0.5], mu_r=[0.1])
    local, whole, rolling = (solvers.read_contact_problem(tmp_path / f"{name}.npz") for name in ("local", "global", "rolling"))
    assert (local.name, local.d, local.M, whole.W) == ("local", 3, None, None)
    np.testing.assert_allclose(solvers.solve_fc3d(local.W, local.q, local.mu).r, [2, -0.6, -0.8])
    np.testing.assert_allclose(solvers.solve_gfc3d(whole.M, whole.H, whole.f, whole.w, whole.mu).r, [4, -1.2, -1.6])
    assert (rolling.d, rolling.tangents, rolling.mu_r.tolist()) == (5, 2, [0.1])


@pytest.mark.parametrize(
    ("words", "arrays"),
    [
        ("cls must be 'fc2d', .* or 'grfc3d', got 'lcp'", {"cls": "lcp"}),
        ("M, mu missing", {"cls": "fc2d", "q": [1.0, 2.0]}),
        ("M_indices, M_indptr, M_shape missing", {"cls": "fc2d", "q": [1.0, 2.0], "mu": [0.5], "M_data": [1.0]}),
        ("fc3d problem of 1 coefficients mu must have 3 rows, got 2", {"cls": "fc3d", "M": np.eye(2), "q": [1.0, 2.0], "mu": [0.5]}),
    ],
)
def test_bad_archives_are_named(tmp_path, words, arrays):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(ValueError, match=rf"read_contact_problem\(bad.npz\).*{words}"):
        solvers.read_contact_problem(tmp_path / "bad.npz")


@pytest.mark.skipif(not PROBLEMS.exists(), reason="the collected problems are not at hand")
@pytest.mark.parametrize("kind", ["fc2d", "fc3d", "gfc2d", "gfc3d", "rfc3d", "grfc3d"])
def test_collected_problems_survive_both_formats(tmp_path, kind):
    for file in sorted((PROBLEMS / kind).glob("*.npz")):
        problem = solvers.read_contact_problem(file)
        assert problem.d == (5 if "r" in kind else int(kind[-2])) or not problem.n_contacts
        if problem.mu_r is None and problem.n_contacts:
            solvers.write_fclib(tmp_path / "a.hdf5", problem)
            assert_same(solvers.read_fclib(tmp_path / "a.hdf5").problem, problem)


def test_what_is_no_file_is_refused_by_name(tmp_path):
    """A folder, the root, and a name that no file system takes; nothing is left beside them."""
    problem = solvers.generate_contacts("pile", 2)
    for place in ("/", tmp_path):
        with pytest.raises(IsADirectoryError, match="write_fclib: file must not be a folder"):
            solvers.write_fclib(place, problem)
    for call in (lambda file: solvers.write_fclib(file, problem), solvers.read_fclib, solvers.read_contact_problem, solvers.read_problem):
        with pytest.raises(ValueError, match=r"file must be a path of at most 4096 characters, got 100000") as caught:
            call("a" * 100_000)
        assert len(str(caught.value)) < 300
    with pytest.raises(OSError, match="name too long"):
        solvers.write_fclib(tmp_path / ("a" * 1000), problem)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["fclib", "npz"])
def test_damaged_files_are_refused_with_their_name(tmp_path, kind):
    """Cut off anywhere, or with a byte changed, a file is read as a problem or refused in our own words."""
    file, problem = tmp_path / "pile.hdf5", solvers.generate_contacts("pile", 3)
    read = solvers.read_fclib if kind == "fclib" else solvers.read_contact_problem
    if kind == "fclib":
        solvers.write_fclib(file, problem)
    else:
        np.savez(file.with_suffix(".npz"), cls="fc3d", M=sp.csr_array(problem.W).toarray(), q=problem.q, mu=problem.mu)
        file = file.with_suffix(".npz")
    data, rng, refused = file.read_bytes(), np.random.default_rng(0), []
    damaged = [data[: len(data) * k // 12] for k in range(12)]
    for _ in range(60):
        changed = bytearray(data)
        changed[rng.integers(len(data))] ^= 1 << rng.integers(8)
        damaged.append(bytes(changed))
    for content in damaged:
        file.write_bytes(content)
        try:
            read(file)
        except ValueError as error:
            refused.append(str(error))
    assert len(refused) >= 12
    assert all(message.startswith("read_") for message in refused)
