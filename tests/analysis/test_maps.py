"""Analysis of maps that users state: orbits, branches, exponents, diagrams; the small dense algebra of tangent maps."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

import nsds
from nsds.analysis.sections import Iterates
from nsds.analysis.tangent import exponential, log_of_determinant, multiply, orthonormalise

# Feigenbaum cascade of the high-bounce map, alpha = 0.5, one table period a bounce: case high_bounce_map_cascade of the collection.
CASCADE = [4.34391579120605866, 4.62766618748035183, 4.67268580135391045, 4.6815298253150557]


def bounce(x, p, out):
    out[0], out[1] = x[0] + x[1], 0.5 * x[1] - p[0] * np.cos(x[0] + x[1])


def logistic(x, p, out):
    out[0] = p[0] * x[0] * (1 - x[0])


def nordmark(x, p, out):
    out[0] = p[0] * x[0] + p[1] if x[0] <= 0 else p[1] - np.sqrt(x[0])


def nordmark_slope(x, p, out):
    out[0, 0] = p[0] if x[0] <= 0 else -0.5 / np.sqrt(x[0])


def cubic(x, p, out):
    out[0] = 1.5 * x[0] - 0.5 * x[0] ** 3


def rotated(x, p, out):
    """A spiral whose multipliers are ``p[0] exp(+-i)``; (0, 0) is fixed."""
    c, s = p[0] * math.cos(1.0), p[0] * math.sin(1.0)
    out[0], out[1] = c * x[0] - s * x[1], s * x[0] + c * x[1]


def folded(x, p, out):
    """Fixed points at ``x² = p``."""
    out[0] = x[0] + 0.1 * (p[0] - x[0] * x[0])


matrices = st.integers(1, 5).flatmap(lambda n: st.lists(st.floats(-30, 30), min_size=n * n, max_size=n * n))


@given(matrices)
def test_exponential_and_determinant(entries):
    n = math.isqrt(len(entries))
    A, out, spare, more = np.array(entries), np.zeros(n * n), np.zeros(n * n), np.zeros(n * n)
    exponential(n, A, out, spare, more)
    wanted = expm(A.reshape(n, n))
    scale = math.exp(np.linalg.norm(A.reshape(n, n), np.inf))  # of the terms that cancel
    assert abs(out.reshape(n, n) - wanted).max() <= 1e-11 * scale
    sign, log = np.linalg.slogdet(A.reshape(n, n))
    ours = log_of_determinant(n, A, spare)
    if np.linalg.cond(A.reshape(n, n)) < 1e8:
        assert sign != 0
        assert abs(ours - log) < 1e-6
    multiply(n, n, A, out, spare)
    np.testing.assert_allclose(spare.reshape(n, n), A.reshape(n, n) @ out.reshape(n, n), rtol=1e-12, atol=1e-12 * scale)


def test_columns_become_orthonormal_and_their_growth_is_that_of_volumes():
    rng = np.random.default_rng(1)
    for n, k in ((1, 1), (3, 2), (4, 4)):
        columns = rng.normal(size=(n, k))
        R = abs(np.diag(np.linalg.qr(columns)[1]))
        flat, growth = columns.reshape(-1).copy(), np.zeros(k)
        orthonormalise(n, k, flat, growth)
        np.testing.assert_allclose(growth, np.log(R), atol=1e-13)
        np.testing.assert_allclose(flat.reshape(n, k).T @ flat.reshape(n, k), np.eye(k), atol=1e-14)


def test_cascade_of_period_doublings():
    """Cycles of 1, 2 and 4 points, each followed to its doubling, and past it onto the next."""
    x, value = np.array([-np.arccos(-np.pi / 4), 2 * np.pi]), 4.0
    for k, wanted in enumerate(CASCADE[:3]):
        table = nsds.iterated_map(bounce, x=x, p=[value], modulo=[2 * np.pi, 0])
        branch = nsds.continue_orbit(table, parameter="p[0]", until=value + 1.2 * (wanted - value), n_periods=2**k)
        (doubling,) = branch[branch["kind"] == "period_doubling"]
        assert abs(doubling["parameter"] - wanted) < 1e-8
        assert abs(np.prod(doubling["multipliers"]) - 0.5 ** (2**k)) < 1e-8  # the determinant is alpha everywhere
        value = wanted + 0.3 * (CASCADE[k + 1] - wanted)
        table = nsds.iterated_map(bounce, x=doubling["x"] + [1e-3, 0], p=[value], modulo=[2 * np.pi, 0])
        x = nsds.orbit(table, n_periods=2 ** (k + 1), settle=200)["x"]


@pytest.mark.parametrize("m", [3, 5])
def test_maximal_orbits_of_the_square_root_map(m):
    """Doubling at ``rho = 3/4 A² / (A + (1 - A)/(1 - alpha))``, ``A = alpha^(m-1)``; the orbit ends where a point reaches the border."""
    alpha = 0.2
    A = alpha ** (m - 1)
    doubling, border = 0.75 * A**2 / (A + (1 - A) / (1 - alpha)), (A * (1 - alpha) / (alpha * (1 - A))) ** 2
    rho = (doubling + border) / 2
    u = -A / 2 + math.sqrt(A**2 / 4 + A * rho + rho * (1 - A) / (1 - alpha))
    start = nsds.iterated_map(nordmark, x=[u * u], p=[alpha, rho], jac=nordmark_slope)
    branch = nsds.continue_orbit(start, parameter="p[1]", until=rho - 1.5 * (rho - doubling), n_periods=m)
    special = branch[branch["kind"] == "period_doubling"]["parameter"]
    assert special.size == 1
    assert abs(special[0] - doubling) < 1e-10 * doubling
    ends = nsds.continue_orbit(start, parameter="p[1]", until=2 * border, n_periods=m)[-1]
    assert ends["kind"] == "lost"
    assert abs(ends["parameter"] - border) < 1e-4 * border


def test_folds_and_neimark_sacker_points():
    branch = nsds.continue_orbit(nsds.iterated_map(folded, x=[1.0], p=[1.0]), parameter="p[0]", until=-0.5)
    folds = branch[branch["kind"] == "fold"]
    assert len(folds) == 1
    assert abs(folds["parameter"][0]) < 1e-10
    assert abs(folds["x"][0, 0]) < 1e-5
    assert branch["x"][-1, 0] == pytest.approx(-1, abs=1e-9)
    assert branch["kind"][-1] == "until"
    branch = nsds.continue_orbit(nsds.iterated_map(rotated, x=[0.0, 0.0], p=[0.5]), parameter="p[0]", until=1.5)
    special = branch[branch["kind"] == "neimark_sacker"]
    assert len(special) == 1
    assert abs(special["parameter"][0] - 1) < 1e-9
    np.testing.assert_allclose(special["multipliers"][0], np.exp([1j, -1j]), atol=1e-9)


def test_exponents_of_maps():
    table = nsds.iterated_map(bounce, x=[0.1, 0.2], p=[10.0], modulo=[2 * np.pi, 2 * np.pi])
    found = nsds.lyapunov(table, n_periods=2000)
    assert abs(found["exponents"].sum() - math.log(0.5)) < 1e-8
    assert abs(found["sum_error"]) < 1e-12
    doubling = nsds.lyapunov(nsds.iterated_map(logistic, x=[0.3], p=[4.0]), n_periods=20_000)
    assert abs(doubling["exponents"][0] - math.log(2)) < 5 * doubling["errors"][0] + 1e-3


def test_diagrams_of_maps():
    values = np.linspace(2.9, 3.9, 11)
    rows = nsds.sweep(nsds.iterated_map(logistic, x=[0.6], p=[2.5]), vary={"p[0]": values}, transient=2000)
    assert rows.shape == (2, 11)
    assert (rows["parameters"][..., 0] == values).all()
    assert rows["n_periods"][0, [0, 2, 6]].tolist() == [1, 2, 4]
    assert rows["n_periods"][0, -1] == 0
    assert abs(rows["x"][0, 0, :, 0] - (1 - 1 / 2.9)).max() < 1e-12
    grid = nsds.sweep(nsds.iterated_map(nordmark, x=[0.1], p=[0.2, 0.0]), vary={"p[0]": [0.2, 0.5], "p[1]": [-0.1, 0.03]}, transient=2000)
    assert grid.shape == (2, 2)
    assert (grid["n_periods"][:, 0] == 1).all()


def test_branches_side_by_side_are_followed_in_both_directions():
    """The square-root map with alpha = 0.2: orbits of three points exist up to rho = 1/36, those of two are stable from 1/40 on."""
    values = np.linspace(0.02, 0.035, 31)
    rows = nsds.sweep(nsds.iterated_map(nordmark, x=[0.01], p=[0.2, 0.02]), vary={"p[1]": values}, transient=500)
    up, down = rows["n_periods"]
    assert (up[values < 0.0272] == 3).all()
    assert (up[values > 1 / 36] == 2).all()
    assert (down[values > 0.0263] == 2).all()
    assert (down[values < 1 / 40 - 1e-9] == 3).all()


def test_basins_of_a_map():
    """``x -> 1.5 x - x³/2``: to 1 or -1 within sqrt 3 on either side of 0, to either up to sqrt 5, beyond that to infinity."""
    values = np.linspace(-2.5, 2.5, 402)
    found = nsds.basins(nsds.iterated_map(cubic, x=[0.0]), grid={"x[0]": values}, keep=4)
    assert sorted(found.attractors["x"][:, 0, 0].round(9)) == [-1, 1]
    assert ((found.labels == -2) == (abs(values) > math.sqrt(5))).all()
    ends = np.sign(values[abs(values) < math.sqrt(3)])
    of_label = found.attractors["x"][:, 0, 0]
    np.testing.assert_allclose(of_label[found.labels[abs(values) < math.sqrt(3)]], ends, atol=1e-9)
    assert found.attractors["fraction"].sum() == pytest.approx((found.labels >= 0).mean())


def test_basins_tell_chaos_from_orbits():
    found = nsds.basins(nsds.iterated_map(nordmark, x=[0.0], p=[0.2, 0.026]), grid={"x[0]": np.linspace(-0.1, 0.1, 101)}, transient=2000)
    assert set(found.attractors["n_periods"]) == {2, 3}
    assert found.labels.min() >= 0
    chaotic = nsds.basins(nsds.iterated_map(logistic, x=[0.0], p=[3.9]), grid={"x[0]": [0.3, 0.4]})
    assert (chaotic.labels == -1).all()
    assert len(chaotic.attractors) == 0


@pytest.mark.parametrize("analyse", ["lyapunov", "sweep", "basins"])
def test_ctrl_c_returns_what_is_done(analyse, monkeypatch):
    start, counted, advance = nsds.iterated_map(logistic, x=[0.3], p=[3.9]), [], Iterates.advance

    def interrupted(run, *arguments):
        counted.append(run)
        if len(counted) > 3:
            raise KeyboardInterrupt
        advance(run, *arguments)

    monkeypatch.setattr(Iterates, "advance", interrupted)
    if analyse == "lyapunov":
        found = nsds.lyapunov(start, n_periods=1600, blocks=16)
        assert found["time"] == 200
    elif analyse == "sweep":
        rows = nsds.sweep(start, vary={"p[0]": [2.9, 3.2, 3.5, 3.9, 3.95]}, direction=(1, -1))
        assert (rows["status"] == [[0, 0, 0, -1, -1], [-1, -1, 0, 0, 0]]).all()
    else:
        monkeypatch.setattr("nsds.analysis.basins._MEMBERS", 2)
        found = nsds.basins(start, grid={"x[0]": np.linspace(0.1, 0.9, 8)})
        assert found.labels.tolist() == [-1] * 6 + [-3] * 2
