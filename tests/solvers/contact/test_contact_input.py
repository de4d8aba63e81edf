"""What users may get wrong: every public function of contact problems names the function, the field, what it wants and what it got."""

import numpy as np
import pytest
import scipy.sparse as sp

from nsds import solvers

I2, I3, I5 = np.eye(2), np.eye(3), np.eye(5)
LOCAL = {
    "solve_fc2d": {"W": I2, "q": [-1.0, 0.0], "mu": 0.5},
    "solve_fc3d": {"W": I3, "q": [-1.0, 0.0, 0.0], "mu": 0.5},
    "solve_rfc2d": {"W": I3, "q": [-1.0, 0.0, 0.0], "mu": 0.5, "mu_r": 0.1},
    "solve_rfc3d": {"W": I5, "q": [-1.0, 0.0, 0.0, 0.0, 0.0], "mu": 0.5, "mu_r": 0.1},
}
GLOBAL = {
    "solve_gfc2d": {"M": I2, "H": I2, "q": [-1.0, 0.0], "b": [0.0, 0.0], "mu": 0.5},
    "solve_gfc3d": {"M": I3, "H": I3, "q": [-1.0, 0.0, 0.0], "b": np.zeros(3), "mu": 0.5},
    "solve_grfc3d": {"M": I5, "H": I5, "q": -np.eye(5)[0], "b": np.zeros(5), "mu": 0.5, "mu_r": 0.1},
}
GENERIC = {"solve_generic": {"M": I3, "q": [-1.0, 0.0, 0.0], "blocks": [("friction", 3, 0.5)]}}
ALL = LOCAL | GLOBAL | GENERIC
NOT_NUMBERS = ["no", None, object(), {"a": 1}, [[1.0], [2.0, 3.0]], [1j], np.array([1, None], object)]

# field: values that are refused, as ValueError or TypeError, in all functions that have the field.
BAD = {
    "W": [*NOT_NUMBERS, [], I2[0], np.eye(7), np.ones((2, 3)), np.zeros((2, 2, 2)), sp.eye_array(9), sp.csr_array((3, 4)), 3.0],
    "M": [*NOT_NUMBERS, [], np.eye(7), np.ones((2, 3)), np.zeros((2, 2, 2)), sp.eye_array(9), 3.0],
    "H": [*NOT_NUMBERS, [], np.eye(7), np.zeros((2, 2, 2)), sp.eye_array(9), 3.0],
    "q": [*NOT_NUMBERS, [], [[1.0, 2.0]], 1.0, np.zeros(7), np.zeros((3, 1)), ["a", "b", "c"]],
    "b": [*NOT_NUMBERS, [], 1.0, np.zeros(7), np.zeros((3, 1))],
    "mu": [*NOT_NUMBERS, -0.1, [0.5, 0.5], np.nan, np.inf, -np.inf, [[0.5]], []],
    "mu_r": [*NOT_NUMBERS, -1e-300, [0.5, 0.5], np.nan, np.inf],
    "method": ["simplex", "", "NSGS", None, 3, ["nsgs"], {"nsgs"}, b"nsgs"],
    "tol": [0.0, -1e-8, np.nan, np.inf, "small", None, [1e-8, 1e-8], 1j],
    "max_iter": [0, -1, 1.5, np.nan, "10", True, [10]],
    "r0": [*NOT_NUMBERS[:1], [0.0], np.zeros(7), np.zeros((3, 1)), "zeros"],
    "on_failure": ["return", "ignore", "", None, 1, ["raise"]],
    "local": ["magic", None, 0, ["exact"]],
    "rho": [0.0, -1.0, np.nan, np.inf, "1", [1.0, 2.0]],
    "seed": [0, -1, 1.5, "a", True],
    "freeze": [0, -3, 2.5, "a"],
    "blocks": [
        None, 5, "friction", [], [()], np.array(1.0), np.eye(3), iter([]),
        ["friction"], [5], [None], [("friction",)], [("friction", 3)], [("friction", 3, 0.5, 0.1)],
        [("friction", 4, 0.5)], [("friction", 2, 0.5)], [("friction", 3, -0.5)], [("friction", 3, np.nan)], [("friction", 3, np.inf)],
        [("friction", 3, "a")], [("friction", 3, [0.5, 0.5])], [("friction", 3.0, 0.5)], [("friction", True, 0.5)],
        [("rolling", 3, 0.5)], [("rolling", 2, 0.5, 0.1), ("lcp", 1)], [("equality", 0), ("friction", 3, 0.5)], [("relay", 3)],
        [(3, "friction", 0.5)], [(["friction"], 3, 0.5)], [("lcp", -3), ("friction", 3, 0.5), ("lcp", 3)], {"friction": 3},
    ],
}  # fmt: skip
NOT_FINITE = ("W", "M", "H", "q", "b", "r0")


def refused(name, given, field):
    """The error of a call, which names function and field, and is none of NumPy's."""
    with pytest.raises((ValueError, TypeError)) as caught:
        getattr(solvers, name)(**given)
    message = str(caught.value)
    assert message.startswith(f"{name}: "), message
    assert field in message, message
    assert not isinstance(caught.value, np.linalg.LinAlgError)


_OPTIONS = ("method", "tol", "max_iter", "on_failure", "local", "rho", "seed", "freeze")


def takes(name, field):
    return field in ALL[name] or field in _OPTIONS or (field == "r0" and name not in GENERIC)


@pytest.mark.parametrize(("name", "field"), [(name, field) for name in ALL for field in BAD if takes(name, field)])
def test_nonsense_is_refused_by_name(name, field):
    for value in BAD[field]:
        if field == "q" and name in GLOBAL and getattr(value, "shape", None) == (7,):
            continue  # M is what has the wrong shape then
        told = {"q": ("q", "W", "M", "b"), "blocks": ("block",), "b": ("b", "H")}.get(field, (field,))
        with pytest.raises((ValueError, TypeError)) as caught:
            getattr(solvers, name)(**{**ALL[name], field: value})
        message = str(caught.value)
        assert message.startswith(f"{name}: "), (value, message)
        assert any(word in message for word in told), (value, message)


@pytest.mark.parametrize(("name", "field"), [(name, field) for name in ALL for field in NOT_FINITE if field in ALL[name]])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(name, field, bad):
    value = np.array(ALL[name][field], float)
    value.reshape(-1)[0] = bad
    refused(name, {**ALL[name], field: value}, f"{field} must be finite")
    if value.ndim == 2:
        refused(name, {**ALL[name], field: sp.csr_array(value)}, f"{field} must be finite")


@pytest.mark.parametrize("name", ALL)
def test_unknown_options_are_named(name):
    refused(name, {**ALL[name], "tolerance": 1e-8}, "tolerance")
    refused(name, {**ALL[name], "rh0": 1.0}, "rh0")


@pytest.mark.parametrize("name", LOCAL)
def test_negative_diagonals_are_refused(name):
    W = -np.asarray(LOCAL[name]["W"])
    refused(name, {**LOCAL[name], "W": W}, "diagonal")
    refused(name, {**LOCAL[name], "W": sp.csr_array(W)}, "diagonal")


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("kind", [">f8", "<f4", ">i2", "i1", "u2", "?", "longdouble", "float16"])
def test_numbers_of_any_kind_are_understood(name, kind):
    """Big-endian, short, whole or logical: the same values give the same bits."""
    given = LOCAL[name]
    W, q = np.asarray(given["W"]).astype(kind), np.asarray(given["q"])
    plain = getattr(solvers, name)(**given)
    for matrix in (W, np.asfortranarray(W), sp.csr_array(W) if kind not in (">f8", ">i2", "float16") else W, W.tolist()):
        s = getattr(solvers, name)(**{**given, "W": matrix, "q": q.astype(">f8")})
        np.testing.assert_array_equal(s.r, plain.r)
    assert getattr(solvers, name)(**{**given, "q": list(given["q"]), "mu": np.array([0.5], ">f8")}).success


@pytest.mark.parametrize("name", ["solve_fc3d", "solve_rfc2d", "solve_rfc3d", "solve_gfc3d", "solve_grfc3d"])
@pytest.mark.parametrize("method", ["lemke", "enumerate", "cpg"])
def test_methods_of_the_plane_are_not_offered_in_space(name, method):
    with pytest.raises(ValueError, match=f"got '{method}', which is for fc2d, gfc2d") as caught:
        getattr(solvers, name)(**ALL[name], method=method)
    assert method not in str(caught.value).split(", got")[0]


@pytest.mark.parametrize("name", [*LOCAL, *GLOBAL])
def test_nothing_is_a_problem_too(name):
    given = {
        field: np.zeros((0, 0)) if field in ("W", "M", "H") else [] if field in ("q", "b") else value for field, value in ALL[name].items()
    }
    s = getattr(solvers, name)(**given)
    assert s.success
    assert s.r.size == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"family": "towers"}, "family"), ({"family": None}, "family"), ({"family": ["stack"]}, "family"), ({"family": 3}, "family"),
        ({"n_contacts": 0}, "n_contacts"), ({"n_contacts": 2.5}, "n_contacts"), ({"n_contacts": "2"}, "n_contacts"),
        ({"n_contacts": True}, "n_contacts"), ({"seed": -1}, "seed"), ({"seed": "a"}, "seed"), ({"d": 4}, "d must"), ({"d": "3"}, "d must"),
        ({"d": 5}, "d must"), ({"d": 2, "mu_r": 0.1}, "d must"), ({"d": True}, "d must"), ({"d": None}, "d must"), ({"mu": -1.0}, "mu"),
        ({"mu": np.nan}, "mu"), ({"mu": np.inf}, "mu"), ({"mu": [0.1, 0.2]}, "mu"), ({"mu": "a"}, "mu"),
        ({"mu_r": -1.0}, "mu_r"), ({"mu_r": "a"}, "mu_r"), ({"family": "flexible", "mu_r": 0.1}, "mu_r"),
    ],
)  # fmt: skip
def test_families_refuse_nonsense(arguments, told):
    with pytest.raises((ValueError, TypeError), match=rf"generate_contacts: .*{told}"):
        solvers.generate_contacts(**{"family": "stack", "n_contacts": 4, **arguments})


@pytest.mark.parametrize(("call", "told"), [
    (lambda: solvers.methods("fc4d"), "kind must be one of 'lcp', .*'fc2d', .* got 'fc4d'"),
    (lambda: solvers.methods(3), "kind must be"),
    (lambda: solvers.methods(["fc3d"]), "kind must be"),
    (lambda: solvers.solve_fc3d(I3, [-1, 0, 0], 0.5, "admm", seed=1), "solve_fc3d: seed is an option of auto, nsgs, not of 'admm'"),
    (lambda: solvers.solve_fc3d(I3, [-1, 0, 0], 0.5, "nsgs", block=2), "solve_fc3d: options must be rho, local, .* got 'block'"),
    (lambda: solvers.solve_fc3d(I3, [-1, 0, 0], 0.5, solvers.solver(block=2, method="nsgs")), "block is an option .* 'nsgs' for fc3d"),
    (lambda: solvers.solve_lcp(I3, [-1, 0, 0], solvers.solver("nsgs", seed=2)), "seed is an option of auto, nsgs, not of 'nsgs' for lcp"),
    (lambda: solvers.solver("pgs", seed=2), "solver: seed is an option of auto, nsgs, not of 'pgs'"),
    (lambda: solvers.solve_fc3d(I3, [-1, 0, 0], 0.5, "pgs"), "solve_fc3d: method must be one of auto, .* got 'pgs'"),
    (lambda: solvers.solver("simplex"), "method must be one of"),
    (lambda: solvers.solver(["nsgs"]), "method must be one of"),
    (lambda: solvers.solver(None), "method must be one of"),
    (lambda: solvers.solver(tol=np.nan), "tol must be finite"),
    (lambda: solvers.solver(tol=0.0), "tol must be above"),
    (lambda: solvers.solver(max_iter=0), "max_iter must be"),
    (lambda: solvers.solver(max_iter=2.0), "max_iter must be"),
    (lambda: solvers.solver(local="a"), "local must be"),
    (lambda: solvers.solver(rho="a"), "rho must be"),
    (lambda: solvers.solver(seed=0), "seed must be"),
    (lambda: solvers.solver(freeze=-1), "freeze must be"),
    (lambda: solvers.solver(inexact=np.nan), "inexact must be"),
])  # fmt: skip
def test_choices_refuse_nonsense(call, told):
    with pytest.raises((ValueError, TypeError), match=told):
        call()


PROBLEM = solvers.generate_contacts("random", 2)


@pytest.mark.parametrize(
    ("problems", "options", "told"),
    [
        (None, {}, "problems must be"), (5, {}, "problems must be"), (PROBLEM, {}, "problems must be"), ([], {}, "at least one"),
        ([1], {}, "a list of problems"), (["a"], {}, "a list of problems"), ([PROBLEM._replace(W=None)], {}, "W missing"),
        ([PROBLEM._replace(q=np.zeros(5))], {}, "must have"), ([PROBLEM._replace(mu=None)], {}, "mu"),
        ([PROBLEM._replace(mu=-PROBLEM.mu)], {}, "mu"), ([PROBLEM._replace(name=3)], {}, "name"),
        ([PROBLEM._replace(W=None, q=None)], {}, "must be given"), ([PROBLEM._replace(W=np.full((6, 6), np.nan))], {}, "W must be finite"),
        ([PROBLEM], {"methods": "auto"}, "methods must be"), ([PROBLEM], {"methods": ["simplex"]}, "method must be"),
        ([PROBLEM], {"methods": [["auto"]]}, "method must be"), ([PROBLEM], {"methods": 3}, "methods must be"),
        ([PROBLEM], {"tol": np.nan}, "tol must be"), ([PROBLEM], {"max_iter": 0}, "max_iter must be"),
        ([PROBLEM], {"seconds": -1.0}, "seconds must be"), ([PROBLEM], {"seconds": "a"}, "seconds must be"),
        ("nowhere", {}, "no .npz"),
    ],
)  # fmt: skip
def test_comparisons_refuse_nonsense(problems, options, told):
    with pytest.raises((ValueError, TypeError), match=rf"profile_contacts.*{told}"):
        solvers.profile_contacts(problems, **options)


def test_files_that_hold_something_else(tmp_path):
    h5py = pytest.importorskip("h5py")
    text, array, odd = tmp_path / "a.npz", tmp_path / "b.npz", tmp_path / "c.npz"
    text.write_text("nothing")
    with array.open("wb") as file:
        np.save(file, np.zeros(3))
    np.savez(odd, cls="fc2d", M=np.eye(2), q=np.zeros(3), mu=[0.5])
    for file in (text, array, odd):
        with pytest.raises(ValueError, match=rf"read_contact_problem\({file.name}\): "):
            solvers.read_contact_problem(file)
    for file in (text, array):
        with pytest.raises(ValueError, match=rf"read_fclib\({file.name}\): not an HDF5 file"):
            solvers.read_fclib(file)
    for read in (solvers.read_contact_problem, solvers.read_fclib):
        with pytest.raises(FileNotFoundError, match=r"nowhere\.npz"):
            read(tmp_path / "nowhere.npz")
    with h5py.File(tmp_path / "empty.hdf5", "w"):
        pass
    with pytest.raises(ValueError, match=r"read_fclib\(empty.hdf5\): neither"):
        solvers.read_fclib(tmp_path / "empty.hdf5")
    for problem, told in (
        (None, "must be a ContactProblem"), ("a", "must be a ContactProblem"), (PROBLEM._replace(q=np.zeros(4)), "must have|2 or 3"),
        (PROBLEM._replace(W=np.full((6, 6), np.inf)), "W must be finite"), (PROBLEM._replace(mu_r=[0.1, 0.1]), "without rolling"),
        (PROBLEM._replace(mu=["a", "b"]), "mu"),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=rf"write_fclib.*({told})"):
            solvers.write_fclib(tmp_path / "x.hdf5", problem)
    with pytest.raises((ValueError, TypeError), match=r"write_fclib: .*solution"):
        solvers.write_fclib(tmp_path / "x.hdf5", PROBLEM, solution=3)
    assert not (tmp_path / "x.hdf5").exists()
