"""Bad inputs of the solvers of box problems: each is refused by an error that names the field and what was given."""

import numpy as np
import pytest
import scipy.sparse as sp

from nsds import solvers

I2, Q2 = np.eye(2), np.array([1.0, -1.0])
NAN, INF = np.nan, np.inf


class Mute:
    """What cannot even be shown."""

    def __repr__(self):
        raise RuntimeError("no repr")


MUTE = Mute()
OWN = np.zeros((), [("method", "S32")])


def edited(field, value):
    record = solvers.solver("pgs")
    record[field] = value
    return record


GOOD = {
    "solve_lcp": {"M": I2, "q": Q2},
    "solve_relay": {"M": I2, "q": Q2},
    "solve_mlcp": {"M": I2, "q": Q2, "lower": 0.0, "upper": 1.0},
    "solve_avi": {"M": I2, "q": Q2, "G": I2, "g": Q2},
    "solve_qp": {"P": I2, "c": Q2, "G": I2, "g": Q2, "A": [[1.0, 1.0]], "b": [0.0]},
    "all_solutions": {"M": I2, "q": Q2},
    "solver": {"method": "pgs"},
    "methods": {"kind": "lcp"},
    "generate": {"family": "chain", "n": 3},
    "profile": {"problems": [solvers.Problem("a", I2, Q2)], "methods": ["pgs"], "seconds": 0.0},
}
MATRIX = [
    None, "text", 1.0, [], [1.0], [[]], [["a", "b"], ["c", "d"]], [[1.0, 2.0], [3.0]], np.ones((2, 3)), np.ones((3, 3)), np.ones((2, 2, 2)),
    I2 * 1j, np.array([[1, None], [2, 3]], object), [[NAN, 0], [0, 1]], [[INF, 0], [0, 1.0]], {"a": 1}, np.eye(2, dtype="U3"),
    sp.csr_array(I2 * 1j), sp.csr_array([[NAN, 0], [0, 1]]), sp.csr_array((3, 2)), sp.coo_array(np.ones(2)),
    sp.csr_array([[INF, 0], [0, 1]]), np.eye(2).astype("M8[s]"),
]  # fmt: skip
VECTOR = [
    "text", 1.0, [[1.0, 2.0]], [1.0], [1.0, 2.0, 3.0], [1j, 0.0], [NAN, 0.0], [0.0, -INF], ["a", "b"], [None, 1.0],
    [[1.0], [2.0, 3.0]], sp.csr_array(I2), {"a": 1},
]  # fmt: skip
BOUND = [MUTE, "text", "1.0", NAN, [0.0], [0.0, 0.0, 0.0], [NAN, 0.0], 1j, [None, 0.0], {"a": 1}]
TOL = [NAN, INF, 0.0, -1.0, 1.0, 1e300, "small", None, [1e-8, 1e-8], 1j, True]
COUNT = [0, -1, 1.5, 3.0, NAN, "many", True, [3], 10**30, 1j]
METHOD = [
    "", "lemk", "Lemke", None, 3, ["lemke"], b"lemke", np.array(["lemke"]), int, OWN, edited("method", b"nothing"), edited("tol", NAN),
    edited("tol", 2.0), edited("max_iter", -3), edited("weight", NAN),
]  # fmt: skip
COMMON = {"method": METHOD, "tol": TOL, "max_iter": COUNT, "on_failure": ["return", None, 1, ["raise"], "RAISE", MUTE], "z0": VECTOR,
          "weight": [0.0, -1.0, NAN, "w", 1j], "block": COUNT,
          "work_size": [3, (1, 2, 3), (1.5, 0), (-1, 0), (4, 4), None, MUTE]}  # fmt: skip
BAD = {
    "solve_lcp": {"M": MATRIX, "q": VECTOR, **COMMON},
    "solve_relay": {"M": MATRIX, "q": VECTOR, "lower": [*BOUND, 2.0, INF, None], "upper": [*BOUND, -2.0, -INF, None], **COMMON},
    "solve_mlcp": {"M": MATRIX, "q": VECTOR, "lower": [*BOUND, 2.0, INF, None], "upper": [*BOUND, -2.0, -INF, None], "A": [I2], **COMMON},
    "solve_avi": {"M": MATRIX, "q": VECTOR, "G": MATRIX, "g": VECTOR, **COMMON},
    "solve_qp": {
        "P": [*MATRIX, [[1.0, 1.0], [0.0, 1.0]], -I2, [[0.0, 1e300], [1e300, 0.0]]], "c": VECTOR, "G": MATRIX, "g": [*VECTOR, None],
        "A": MATRIX, "b": [NAN, "b", [1.0, 2.0], [1j], None, [NAN]],
        "lower": [*BOUND, INF], "upper": [*BOUND, -INF], **COMMON,
    },
    "all_solutions": {"M": MATRIX, "q": VECTOR, "lower": [*BOUND, INF], "upper": [*BOUND, -1.0], "tol": TOL},
    "solver": {
        "method": METHOD[:11], "tol": [tol for tol in TOL if tol is not None], "max_iter": COUNT, "weight": [0.0, NAN, "w", 1.0],
        "block": [*COUNT, 3], "work_size": [3, (1, 1)],
    },
    "methods": {"kind": ["fc4d", None, 1, ["lcp"], np.array(["lcp", "mlcp"])]},
    "generate": {"family": ["chains", None, ["chain"], 1], "n": COUNT, "seed": [-1, 1.5, "s", None], "kind": ["fc3d", None, ["lcp"]]},
    "profile": {"problems": [None, [], [1], 3, [None], "no/such/folder"],
                "methods": ["pgs", ["simplex"], [None], 3, MUTE, np.array(["pgs"])],
                "seconds": [-1.0, NAN, "s", INF, 1e300], "tol": TOL, "max_iter": COUNT},
}  # fmt: skip
CASES = [(name, field, k) for name, fields in BAD.items() for field, values in fields.items() for k in range(len(values))]


@pytest.mark.parametrize(("name", "field", "k"), CASES)
def test_bad_inputs_are_refused_by_name(name, field, k):
    value = BAD[name][field][k]
    with pytest.raises((ValueError, TypeError)) as caught:
        getattr(solvers, name)(**GOOD[name] | {field: value})
    message = str(caught.value)
    assert type(caught.value) in (ValueError, TypeError)
    named = field.removesuffix("s") in message or "of the record" in message or "must have shape" in message
    assert named or (field == "A" and "all of A, B, C, D" in message), message
    assert name in message or "solver" in message, message


def test_good_inputs_of_the_table_are_accepted():
    for name, arguments in GOOD.items():
        getattr(solvers, name)(**arguments)


@pytest.mark.parametrize("block", ["A", "B", "C", "D", "a", "b"])
@pytest.mark.parametrize("bad", ["text", np.ones((3, 3, 3)), [[1j]], [[NAN]], {"a": 1}])
def test_bad_blocks_are_refused_by_name(block, bad):
    good = {"A": [[1.0]], "B": [[1.0]], "C": [[1.0]], "D": [[1.0]], "a": [1.0], "b": [1.0]}
    with pytest.raises((ValueError, TypeError), match=rf"solve_mlcp: {block} "):
        solvers.solve_mlcp(**good | {block: bad})


@pytest.mark.parametrize(
    "content",
    [b"", b"text", b"PK\x03\x04 broken", {"cls": "lcp"}, {"cls": "mlcp", "M": I2, "q": Q2, "n": 1.5, "m": 1}, {"M": I2, "q": Q2},
     {"cls": "mlcp", "M": I2, "q": Q2, "n": 1, "m": 3}, {"cls": "relay", "M": I2, "q": Q2}],
)  # fmt: skip
def test_bad_files_are_refused_by_name(tmp_path, content):
    file = tmp_path / "bad.npz"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        np.savez(file, **content)
    with pytest.raises(ValueError, match=r"bad\.npz"):
        solvers.read_problem(file)
