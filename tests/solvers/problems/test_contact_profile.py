"""Comparisons of methods for contact problems measure what they say."""

import numpy as np
import pytest

from nsds import solvers, status
from nsds.pictures import plotting
from nsds.solvers.problems.contact_profiling import PROFILE


def rows_of(names, numbers):
    """A profile (problems, methods) from (status, time, res_rho) of each."""
    result = np.zeros((len(numbers), len(names)), PROFILE)
    for line, problem in zip(result, numbers, strict=True):
        for row, (code, time, residual) in zip(line, problem, strict=True):
            row["status"], row["time"], row["res_rho"] = code, time, residual
    result["method"] = names
    return result


def test_rows_are_what_a_call_returns():
    problems = [solvers.generate_contacts("chain", 5), solvers.generate_contacts("stack", 8, d=5, mu_r=0.1)]
    result = solvers.profile_contacts(problems, ["nsgs", "newton_jm"], seconds=0.001)
    assert result.shape == (2, 2)
    assert result["problem"][:, 0].tolist() == [p.name for p in problems]
    assert result["method"][0].tolist() == ["nsgs", "newton_jm"]
    assert result["n_contacts"][:, 0].tolist() == [5, 8]
    assert (result["time"] > 0).all()
    for row in result[0]:
        s = solvers.solve_fc3d(*problems[0][1:4], method=row["method"], on_failure="continue")
        assert (s.status, s.n_iter, s.res_q, s.res_rho) == tuple(row[["status", "n_iter", "res_q", "res_rho"]])
    limited = solvers.profile_contacts(problems, ["nsgs"], max_iter=1, tol=1e-12, seconds=0)
    assert (limited["status"] == status.MAX_ITER).all()
    assert (limited["n_iter"] == 1).all()


def test_global_problems_are_reduced():
    p = solvers.generate_contacts("pile", 6, d=2)
    result = solvers.profile_contacts([p, p._replace(W=None, q=None)], ["auto"], seconds=0)
    np.testing.assert_allclose(*result["n_iter"])
    assert (result["status"] == status.CONVERGED).all()


def test_methods_that_do_not_treat_a_problem_are_unsuited():
    result = solvers.profile_contacts([solvers.generate_contacts("random", 2)], seconds=0)
    assert result["method"][0].tolist() == list(solvers.methods("fc2d"))
    left_out = ~np.isin(result["method"], list(solvers.methods("fc3d")))
    np.testing.assert_array_equal(result["status"] == status.UNSUITED, left_out)
    assert np.isnan(result["time"][left_out]).all()


def test_folders_of_both_formats(tmp_path):
    pytest.importorskip("h5py")
    (tmp_path / "below").mkdir()
    np.savez(tmp_path / "below" / "a.npz", cls="fc2d", M=[[2.0, 0.0], [0.0, 1.0]], q=[-4.0, 3.0], mu=[0.5])
    np.savez(tmp_path / "none.npz", cls="gfc2d", M=[[1.0]], H=np.zeros((1, 0)), q=[1.0], b=np.zeros(0), mu=np.zeros(0))
    solvers.write_fclib(tmp_path / "b.hdf5", solvers.generate_contacts("random", 2))
    result = solvers.profile_contacts(tmp_path, ["auto"], seconds=0)
    assert result["problem"][:, 0].tolist() == ["b", "a", "none"]
    assert result["n_contacts"][:, 0].tolist() == [2, 1, 0]
    assert (result["status"] == status.CONVERGED).all()
    np.testing.assert_array_equal(plotting.performance_ratios(result, "res_q"), 1.0)


def test_performance_is_compared_by_the_measures_of_contacts():
    result = rows_of(["a", "b"], [[(0, 2.0, 1e-9), (0, 1.0, 1e-10)], [(status.UNSUITED, np.nan, np.nan), (1, 1.0, 1e-3)]])
    np.testing.assert_array_equal(plotting.performance_ratios(result), [[2, 1], [np.nan, np.nan]])
    np.testing.assert_allclose(plotting.performance_ratios(result, "res_rho"), [[10, 1], [np.inf, 1]])
    with pytest.raises(ValueError, match="one of 'time', 'n_iter', 'res_q', 'res_rho', got 'residual'"):
        plotting.performance_ratios(result, "residual")


def test_bad_comparisons_are_named(tmp_path):
    good = solvers.generate_contacts("random", 2)
    with pytest.raises(ValueError, match="at least one problem"):
        solvers.profile_contacts([])
    with pytest.raises(ValueError, match=r"no \.npz or \.hdf5 files"):
        solvers.profile_contacts(tmp_path)
    with pytest.raises(ValueError, match=r"method must be one of auto, .* got 'simplex'"):
        solvers.profile_contacts([good], ["auto", "simplex"])
    with pytest.raises(ValueError, match=r"profile_contacts\(random-2-0-fc3d\): W must have shape \(6, 6\)"):
        solvers.profile_contacts([good._replace(W=np.eye(3))], ["nsgs"])
    with pytest.raises(ValueError, match="contacts must have 2 or 3 components, got 6 for each"):
        solvers.profile_contacts([good._replace(mu=[0.5])], ["nsgs"])
    for seconds in (-1.0, np.inf, 1e300):
        with pytest.raises(ValueError, match="seconds"):
            solvers.profile_contacts([good], ["nsgs"], seconds=seconds)
    for methods in ("nsgs", np.array(1.0), np.zeros(0), np.array(["nsgs"]), 3, [np.zeros((), [("a", "i8")])], [None]):
        with pytest.raises((ValueError, TypeError), match=r"profile_contacts: method"):
            solvers.profile_contacts([good], methods)
