"""Files of problems whose arrays do not go together are refused: by file, array, what is expected and what is given."""

import numpy as np
import pytest

import nsds

ROWS = {"M_data": [2.0, 1.0, 2.0], "M_indices": [0, 1, 1], "M_indptr": [0, 2, 3], "M_shape": [2, 2]}
LCP = {"cls": "lcp", "q": [-1.0, -1.0], **ROWS}
RELAY = {"cls": "relay", "q": [-1.0, -1.0], "M": np.eye(2), "lb": [-1.0, -np.inf], "ub": [1.0, 1.0]}
MLCP = {"cls": "mlcp", "q": [-1.0, -1.0], "M": np.eye(2), "n": 1, "m": 1}
CONTACT = {"cls": "fc2d", "q": [-1.0, 0.0], "mu": [0.5], **ROWS}
GLOBAL = {"cls": "gfc2d", "M": np.eye(3), "H": np.ones((3, 2)), "q": [1.0, 2.0, 3.0], "b": [0.0, 0.0], "mu": [0.5]}

BAD = [
    ("M_indices", [0, 1, 7], r"M_indices must be in \[0, 1\], got 7 at index 2"),
    ("M_indices", [0, -1, 1], r"M_indices must be in \[0, 1\], got -1 at index 1"),
    ("M_indices", [0.0, 1.5, 1.0], "M_indices must be whole numbers, got float64"),
    ("M_indices", [[0, 1, 1]], r"M_indices must have shape \(3,\), as M_data, got \(1, 3\)"),
    ("M_indptr", [0, 2, 9], r"M_indptr must be 3 whole numbers .* up to 3, the size of M_data, got \[0, 2, 9\]"),
    ("M_indptr", [0, 3, 2], "M_indptr must be 3 whole numbers from 0 on that do not fall"),
    ("M_indptr", [1, 2, 3], "M_indptr must be 3 whole numbers from 0 on"),
    ("M_indptr", [0, 3], "M_indptr must be 3 whole numbers"),
    ("M_indptr", ["a", "b", "c"], "M_indptr must be whole numbers"),
    ("M_shape", [2], r"M_shape must be two whole numbers of at least 0, got \[2\]"),
    ("M_shape", [-2, 2], r"M_shape must be two whole numbers of at least 0, got \[-2, 2\]"),
    ("M_shape", [2.5, 2.0], "M_shape must be whole numbers, got float64"),
    ("M_data", [2.0, 1.0], r"M_indices must have shape \(2,\), as M_data, got \(3,\)"),
    ("M_data", [2.0, np.nan, 2.0], r"M_data must be finite, got nan at index \[1\]"),
    ("M_data", ["a", "b", "c"], "M_data must be an array of real numbers"),
    ("M_data", [2.0, 1j, 2.0], "M_data must be an array of real numbers"),
    ("q", ["a", "b"], "q must be an array of real numbers"),
    ("q", [1.0, np.inf], r"q must be finite, got inf at index \[1\]"),
]


def refusal(tmp_path, read, arrays):
    np.savez(tmp_path / "given.npz", **arrays)
    with pytest.raises((TypeError, ValueError)) as error:
        read(tmp_path / "given.npz")
    assert str(error.value).startswith(f"{read.__name__}(given.npz): ")
    return error


@pytest.mark.parametrize(("name", "value", "answer"), BAD)
@pytest.mark.parametrize(("read", "good"), [(nsds.solvers.read_problem, LCP), (nsds.solvers.read_contact_problem, CONTACT)])
def test_arrays_that_are_no_matrix_are_refused(tmp_path, read, good, name, value, answer):
    np.savez(tmp_path / "good.npz", **good)
    assert read(tmp_path / "good.npz").q.tolist() == good["q"]
    refusal(tmp_path, read, good | {name: value}).match(answer)


@pytest.mark.parametrize(
    ("read", "good", "name", "value", "answer"),
    [
        (nsds.solvers.read_problem, LCP, "q", [-1.0], "M must have 1 rows"),
        (nsds.solvers.read_problem, LCP, "M_shape", [2, 3], r"M must have as many columns as rows, 2, got shape \(2, 3\)"),
        (nsds.solvers.read_problem, RELAY, "lb", [-1.0], r"lb must have 2 rows, got shape \(1,\)"),
        (nsds.solvers.read_problem, RELAY, "ub", 1.0, "ub must be an array of 1 dimensions"),
        (nsds.solvers.read_problem, RELAY, "M", [1.0, 1.0], "M must be an array of 2 dimensions"),
        (nsds.solvers.read_problem, MLCP, "n", 1.5, "n must be a whole number of at least 0"),
        (nsds.solvers.read_problem, MLCP, "m", 3, "M must have n . m = 4 columns"),
        (nsds.solvers.read_problem, MLCP, "q", [1.0, 2.0, 3.0], "M must have 3 rows"),
        (nsds.solvers.read_contact_problem, CONTACT, "mu", [0.5, 0.5], "2 coefficients mu must have 4 rows, got 2"),
        (nsds.solvers.read_contact_problem, CONTACT, "M_shape", [2, 3], r"M must have shape \(2, 2\), got \(2, 3\)"),
        (nsds.solvers.read_contact_problem, CONTACT, "cls", "rfc3d", "mu_r missing"),
        (nsds.solvers.read_contact_problem, GLOBAL, "H", np.ones((2, 3)), r"H must have shape \(3, 2\), got \(2, 3\)"),
        (nsds.solvers.read_contact_problem, GLOBAL, "M", np.eye(2), r"M must have shape \(3, 3\), got \(2, 2\)"),
        (nsds.solvers.read_contact_problem, GLOBAL, "b", [0.0], "must have 2 rows, got 1"),
    ],
)
def test_arrays_that_do_not_go_together_are_refused(tmp_path, read, good, name, value, answer):
    np.savez(tmp_path / "good.npz", **good)
    read(tmp_path / "good.npz")
    refusal(tmp_path, read, good | {name: value}).match(answer)


@pytest.mark.parametrize("read", [nsds.solvers.read_problem, nsds.solvers.read_contact_problem, nsds.solvers.read_fclib])
@pytest.mark.parametrize("file", [3, None, [], {}, 1.5, "", "a\0b"])
def test_what_is_no_path_is_refused(read, file):
    with pytest.raises(TypeError, match=f"{read.__name__}: file must be a path, got "):
        read(file)


@pytest.mark.parametrize("file", [3, None, [], {}, 1.5, "", "a\0b"])
def test_what_is_no_path_is_not_written(file):
    problem = nsds.solvers.generate_contacts("stack", 1)
    with pytest.raises(TypeError, match="write_fclib: file must be a path, got "):
        nsds.solvers.write_fclib(file, problem)


@pytest.mark.parametrize("guesses", [3, None, "a", np.zeros(3), iter([])])
def test_guesses_that_are_no_list_are_not_written(tmp_path, guesses):
    with pytest.raises(TypeError, match="write_fclib: guesses must be a list of solutions, got "):
        nsds.solvers.write_fclib(tmp_path / "a.hdf5", nsds.solvers.generate_contacts("stack", 1), guesses=guesses)
