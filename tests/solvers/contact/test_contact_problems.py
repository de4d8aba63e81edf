"""Contact problems of other codes' test suites by the default method: a few always, the collection where it is at hand."""

import numpy as np
import pytest
import scipy.sparse as sp

from nsds import solvers, status
from tests import reference_contact as ref
from tests.paths import PROBLEMS

SOLVERS = {
    "fc2d": (solvers.solve_fc2d, 1),
    "fc3d": (solvers.solve_fc3d, 2),
    "rfc3d": (solvers.solve_rfc3d, 2),
    "gfc2d": (solvers.solve_gfc2d, 1),
    "gfc3d": (solvers.solve_gfc3d, 2),
    "grfc3d": (solvers.solve_grfc3d, 2),
}
_LAWS = {"equality": "equality", "lcp": "lcp", "fc3d": "friction"}

# Data of the solver tests of Siconos (https://github.com/siconos/siconos, Apache-2.0), from the file of each name.
SMALL = {
    "FrictionContact3D_1c": {
        "cls": "fc3d",
        "M": [[15.0, -1.0, -2.0], [-1.0, 14.0, 1.0], [-2.0, 1.0, 16.0]],
        "q": [-1.0, 2.0, 3.0],
        "mu": [0.1],
    },
    "Rover11035": {
        "cls": "fc3d",
        "M": [
            [0.013583095681423556, -0.00014382857014974082, 0.0007924271998636922],
            [-0.00014265742068136564, 0.10616680692283628, 5.369789396199593e-05],
            [0.0007917137724989218, 5.3528089072404136e-05, 0.0014133187113857578],
        ],
        "q": [-0.0541770492217097, -0.1570886479868534, -0.10648427523051185],
        "mu": [0.7],
    },
    "RFC3D_sphere_1": {
        "cls": "rfc3d",
        "M": [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 1.01, 0.0, 0.0, -0.1],
            [0.0, 0.0, 1.01, 0.07744192777558041, 0.0],
            [0.0, 0.0, 0.07744192777558041, 1.0, 0.0],
            [0.0, -0.1, 0.0, 0.0, 1.0],
        ],
        "q": [-8.923570000000023, 0.19, 0.0, 0.0, -1.0],
        "mu": [0.6],
        "mu_r": [0.5],
    },
    "GFC3D_Example1": {
        "cls": "gfc3d",
        "M": [[106.5, 81.0, 126.5], [81.0, 91.5, 110.0], [126.5, 110.0, 163.5]],
        "H": np.eye(3),
        "q": [0.0, 0.0, 0.0],
        "b": [-2.5, -10.0, -5.5],
        "mu": [0.5],
    },
}


def project(x, mu, mu_r, disk):
    """Rows of x on their cones, as `tests.reference_contact.onto_cone`."""
    return np.array([ref.onto_cone(row, m, m_r, disk) for row, m, m_r in zip(x, mu, mu_r, strict=True)]).reshape(x.shape)


def law(u, r, mu, mu_r, disk):
    """Natural map with rho = 1 for contacts by rows."""
    uhat = u.copy()
    uhat[:, 0] += mu * np.linalg.norm(u[:, 1 : 1 + disk], axis=1) + mu_r * np.linalg.norm(u[:, 1 + disk :], axis=1)
    return r - project(r - uhat, mu, mu_r, disk)


def res_q(p, disk, r, v=None):
    """With u from r (local), or from the v that is returned, whose own residual is added (global)."""
    mu, q, r = np.asarray(p["mu"], float), np.asarray(p["q"], float), np.asarray(r)
    mu_r = np.asarray(p.get("mu_r", np.zeros(mu.size)), float)
    if v is None:
        u, scale = p["M"] @ r + q, np.linalg.norm(q)
    else:
        M, H, b = sp.csc_array(p["M"]), p["H"], np.asarray(p["b"], float)
        solve_M = sp.linalg.splu(M).solve
        assert np.linalg.norm(M @ v - q - H @ r) <= 1e-9 * (np.linalg.norm(q) + np.linalg.norm(H @ r) + 1e-300)
        u, scale = H.T @ solve_M(q + H @ r) + b, np.linalg.norm(H.T @ solve_M(q) + b)
    if not mu.size:
        return 0.0
    shape = mu.size, len(r) // mu.size
    return np.linalg.norm(law(u.reshape(shape), r.reshape(shape), mu, mu_r, disk)) / (scale or 1.0)


def solve(p, method="auto"):
    call, disk = SOLVERS[p["cls"]]
    matrices = (p["M"], p["H"], p["q"], p["b"]) if p["cls"][0] == "g" else (p["M"], p["q"])
    rolling = (p["mu_r"],) if "mu_r" in p else ()
    s = call(*matrices, p["mu"], *rolling, method, on_failure="continue")
    return s, res_q(p, disk, s.r, s.v if p["cls"][0] == "g" else None)


@pytest.mark.parametrize("name", SMALL)
def test_small_problems_are_solved(name):
    s, error = solve(SMALL[name])
    assert s.status == status.CONVERGED
    assert error <= 1e-8
    assert abs(error - s.res_q) <= 1e-10


def load(path):
    with np.load(path) as file:
        p = {key: value.item() if value.ndim == 0 else value for key, value in file.items()}
    for name in ("M", "H"):
        if f"{name}_data" in p:
            p[name] = sp.csr_array((p[f"{name}_data"], p[f"{name}_indices"], p[f"{name}_indptr"]), shape=tuple(p[f"{name}_shape"]))
    return p


@pytest.mark.reference
@pytest.mark.skipif(not PROBLEMS.is_dir(), reason="the collection of problems is not part of the package")
@pytest.mark.parametrize("path", sorted(path for cls in SOLVERS for path in (PROBLEMS / cls).glob("*.npz")), ids=lambda path: path.stem)
def test_problems_of_the_collection_are_solved(path):
    s, error = solve(load(path))
    assert s.status == status.CONVERGED
    assert error <= 1e-8 * (1 + 1e-3)


@pytest.mark.reference
@pytest.mark.skipif(not PROBLEMS.is_dir(), reason="the collection of problems is not part of the package")
@pytest.mark.parametrize("path", sorted((PROBLEMS / "generic_mechanical").glob("*.npz")), ids=lambda path: path.stem)
def test_mixed_systems_of_the_collection_are_solved(path):
    p = load(path)
    begin, laws, mu, q = p["block_ptr"], p["block_type"], p["mu"], p["q"]
    blocks = [
        (_LAWS[name], int(n), m) if name == "fc3d" else (_LAWS[name], int(n)) for name, n, m in zip(laws, np.diff(begin), mu, strict=True)
    ]
    s = solvers.solve_generic(p["M"], q, blocks, on_failure="continue")
    w, F = p["M"] @ s.z + q, []
    for name, i, j, m in zip(laws, begin[:-1], begin[1:], mu, strict=True):
        z, y = s.z[i:j], w[i:j]
        F.append(
            y if name == "equality" else np.minimum(z, y) if name == "lcp" else law(y[None], z[None], np.array([m]), np.zeros(1), 2)[0]
        )
    assert s.status == status.CONVERGED
    assert np.linalg.norm(np.concatenate(F)) <= 1.001e-8 * np.linalg.norm(q)
