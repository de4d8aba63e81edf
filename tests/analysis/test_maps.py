"""Analysis of maps that users state: orbits, branches, exponents, diagrams; the small dense algebra of tangent maps."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

import nsds
from nsds.analysis.maps import Iterates, section_of, slopes
from nsds.analysis.tangent import exponential, log_of_determinant, multiply, orthonormalise
from nsds.schemes.run import simulation
from nsds.status import NOT_COMPUTED
from tests.analysis.models import impact_oscillator

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


def side(x, p, out):
    out[0] = x[0]


def maximal_orbits(alpha, m):
    """Parameters at which orbits of m points, one on the right, double their period and meet the border (Nordmark 1991)."""
    A = alpha ** (m - 1)
    return 0.75 * A**2 / (A + (1 - A) / (1 - alpha)), (A * (1 - alpha) / (alpha * (1 - A))) ** 2


def maximal_orbit(alpha, m, jac=None, rho=None):
    """The map at the point of such an orbit that is on the right, and rho: in the middle if not given."""
    A, rho = alpha ** (m - 1), sum(maximal_orbits(alpha, m)) / 2 if rho is None else rho
    u = -A / 2 + math.sqrt(A**2 / 4 + A * rho + rho * (1 - A) / (1 - alpha))
    return nsds.iterated_map(nordmark, x=[u * u], p=[alpha, rho], jac=jac, border=side), rho


def broken_line(x, p, out):
    out[0] = (p[1] if x[0] <= 0 else p[2]) * x[0] + p[0]


def gap(x, p, out):
    out[0] = 0.6 * x[0] + p[0] - (1.0 if x[0] > 0 else 0.0)


def clipped(x, p, out):
    out[0] = 0.5 * x[0] - max(-1.0, min(1.0, 0.4 * x[0])) + p[0]


def clips(x, p, out):
    out[0] = (0.4 * x[0] - 1) * (0.4 * x[0] + 1)


def normal_form(x, p, out):
    t, d = (p[1], p[2]) if x[0] <= 0 else (p[3], p[4])
    out[0], out[1] = t * x[0] + x[1] + p[0], -d * x[0]


def bent(x, p, out):
    out[0] = (math.sqrt(x[0]) if x[0] > 0 else 0.5 * x[0]) + p[0] * math.sin(x[1])
    out[1] = x[0] * x[1] + p[0] ** 2


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
    exponential(n, n, A, out, spare, more)
    wanted = expm(A.reshape(n, n))
    scale = math.exp(np.linalg.norm(A.reshape(n, n), np.inf))  # of the terms that cancel
    assert abs(out.reshape(n, n) - wanted).max() <= 1e-11 * scale
    sign, log = np.linalg.slogdet(A.reshape(n, n))
    ours = log_of_determinant(n, A, spare)
    if np.linalg.cond(A.reshape(n, n)) < 1e8:
        assert sign != 0
        assert abs(ours - log) < 1e-6
    multiply(n, n, n, A, out, spare)
    np.testing.assert_allclose(spare.reshape(n, n), A.reshape(n, n) @ out.reshape(n, n), rtol=1e-12, atol=1e-12 * scale)


@given(st.integers(1, 4), st.integers(0, 3), st.integers(0, 10**6), st.sampled_from([0.1, 3.0, 40.0]))
def test_exponential_with_columns_that_do_not_move(n, k, seed, size):
    """The first rows of that of the whole matrix."""
    A = np.random.default_rng(seed).uniform(-size, size, (n, n + k))
    out, spare, more = (np.zeros(A.size) for _ in range(3))
    exponential(n, n + k, A.ravel(), out, spare, more)
    wanted = expm(np.vstack([A, np.zeros((k, n + k))]))[:n]
    np.testing.assert_allclose(
        out.reshape(n, n + k), wanted, rtol=1e-9, atol=1e-11 * math.exp(np.linalg.norm(A[:, :n], np.inf)) * (1 + size)
    )


def test_columns_become_orthonormal_and_their_growth_is_that_of_volumes():
    rng = np.random.default_rng(1)
    for n, k in ((1, 1), (3, 2), (4, 4)):
        columns = rng.normal(size=(n, k))
        R = abs(np.diag(np.linalg.qr(columns)[1]))
        flat, growth = columns.reshape(-1).copy(), np.zeros(k)
        orthonormalise(n, k, flat, growth, 0.0)
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


@pytest.mark.parametrize("jac", [None, nordmark_slope])
@pytest.mark.parametrize(("alpha", "m"), [(0.2, 3), (0.2, 7), (0.5, 4), (0.35, 6), (0.9, 3)])
def test_maximal_orbits_of_the_square_root_map(alpha, m, jac):
    """Where they double their period, and end at the border (case nordmark_period_adding of the collection; alpha to 1e-10)."""
    doubling, border = maximal_orbits(alpha, m)
    start, rho = maximal_orbit(alpha, m, jac)
    branch = nsds.continue_orbit(start, parameter="p[1]", until=rho - 1.5 * (rho - doubling), n_periods=m)
    special = branch[branch["kind"] == "period_doubling"]["parameter"]
    assert special == pytest.approx([doubling], rel=1e-11)
    branch = nsds.continue_orbit(start, parameter="p[1]", until=2 * border, n_periods=m)
    assert branch["kind"][-1] == "border"
    assert branch["parameter"][-1] == pytest.approx(border, rel=1e-11)
    A, u = alpha ** (m - 1), math.sqrt(border)
    assert branch["multipliers"][-1].real == pytest.approx([-0.5 * A / u], rel=1e-5)
    assert sorted(branch["x"][-1]) == pytest.approx([border], rel=1e-9)  # the image of the border


def test_the_border_that_a_parameter_of_the_slope_leads_to():
    rho = 0.03
    start, _ = maximal_orbit(0.3, 3, rho=rho)
    branch = nsds.continue_orbit(start, parameter="p[0]", until=0.1, n_periods=3)
    assert branch["kind"][-1] == "border"
    assert branch["parameter"][-1] == pytest.approx(math.sqrt(rho) / (1 - math.sqrt(rho)), rel=1e-12)


@pytest.mark.parametrize(("left", "right"), [(0.5, -0.5), (0.5, -2.0), (-0.5, -2.0), (0.9, -0.3), (0.5, 2.0)])
def test_a_fixed_point_goes_on_past_the_border_or_turns_back_there(left, right):
    """``x -> left x + mu``, ``right x + mu``: fixed points ``mu / (1 - slope)`` on either side, with right = 2 both where mu < 0."""
    start = nsds.iterated_map(broken_line, x=[-1 / (1 - left)], p=[-1.0, left, right], border=side)
    branch = nsds.continue_orbit(start, parameter="p[0]", until=1.0)
    special = branch[branch["kind"] != ""]
    assert special["kind"].tolist() == ["border", "until"]
    assert abs(special["parameter"][0]) < 1e-11
    assert abs(special["x"][0, 0]) < 1e-11
    end = -1.0 if right > 1 else 1.0
    assert special["parameter"][1] == end
    assert special["x"][1, 0] == pytest.approx(end / (1 - right), rel=1e-9)
    assert special["multipliers"][1].real == pytest.approx([right], rel=1e-9)


@pytest.mark.parametrize(("until", "wanted", "point"), [(0.8, 0.625, 0.0), (0.2, 0.375, -0.625)])
def test_orbits_of_a_map_that_jumps_end_at_its_border(until, wanted, point):
    """``x -> 0.6 x + mu``, less 1 on the right: points left and right in turn for ``0.6/1.6 < mu < 1/1.6``."""
    start = nsds.iterated_map(gap, x=[(1.6 * 0.5 - 1) / 0.64], p=[0.5], border=side)
    end = nsds.continue_orbit(start, parameter="p[0]", until=until, n_periods=2)[-1]
    assert end["kind"] == "border"
    assert end["parameter"] == pytest.approx(wanted, abs=1e-12)
    assert end["x"][0] == pytest.approx(point, abs=1e-11)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_several_borders_are_stated_by_their_product(sign):
    """``x -> x/2 - clip(0.4 x, -1, 1) + mu`` has its fixed point at ``mu/0.9`` up to 2.5, then at ``2 (mu - 1)``."""
    branch = nsds.continue_orbit(nsds.iterated_map(clipped, x=[0.0], p=[0.0], border=clips), parameter="p[0]", until=5.0 * sign)
    special = branch[branch["kind"] != ""]
    assert special["kind"].tolist() == ["border", "until"]
    np.testing.assert_allclose(special["parameter"], [2.25 * sign, 5 * sign], rtol=1e-12)
    np.testing.assert_allclose(special["x"][:, 0], [2.5 * sign, 8 * sign], rtol=1e-11)


def test_a_node_and_a_spiral_meet_at_the_border_in_the_plane():
    """Normal form of border collisions (Nusse and Yorke 1992): ``(x, y) -> (t x + y + mu, -d x)`` with t, d of either side."""
    p = [-1.0, 1.2, 0.3, -1.0, 0.9]
    start = np.linalg.solve([[1 - p[1], -1.0], [p[2], 1.0]], [p[0], 0.0])
    branch = nsds.continue_orbit(nsds.iterated_map(normal_form, x=start, p=p, border=side), parameter="p[0]", until=1.0)
    special = branch[branch["kind"] != ""]
    assert special["kind"].tolist() == ["border", "until"]
    assert abs(special["parameter"][0]) < 1e-10
    np.testing.assert_allclose(special["x"][1], np.linalg.solve([[1 - p[3], -1.0], [p[4], 1.0]], [1.0, 0.0]), rtol=1e-9)
    assert abs(special["multipliers"][1]) == pytest.approx(np.sqrt([0.9, 0.9]), rel=1e-9)


def test_small_orbits_are_as_accurate_as_large_ones():
    """Residuals count relative to the state as well."""
    for alpha, m in ((0.2, 8), (0.5, 3)):
        start, rho = maximal_orbit(alpha, m)
        wanted = start.x[0]
        near = nsds.iterated_map(nordmark, x=[wanted * 1.01], p=[alpha, rho])
        assert nsds.orbit(near, n_periods=m)["x"] == pytest.approx([wanted], rel=1e-11)


def slopes_in_numpy(f, v, i):
    """Twin of `slopes`: Richardson's extrapolation of central differences, narrower and narrower."""
    best, least = np.nan, np.inf
    h = 2.0**-6 * max(1.0, abs(v[i]))
    for _ in range(16):
        D = []
        for k in range(3):
            high, low = v.copy(), v.copy()
            high[i] += h / 2**k
            low[i] -= h / 2**k
            D.append((f(high) - f(low)) / (high[i] - low[i]))
        first, second = (4 * D[1] - D[0]) / 3, (4 * D[2] - D[1]) / 3
        R, noise = (16 * second - first) / 15, 2.0**-48 * abs(f(high)) / h
        error = abs(R - second) + noise
        best, least = np.where(error < least, R, best), np.fmin(error, least)
        if (error <= np.maximum(1e-9 * abs(R), 2 * noise)).all():
            break
        h /= 16
    return best


@given(st.floats(1e-12, 3.0), st.floats(-2.0, 2.0))
def test_differences_are_as_short_as_the_map_asks_for(x, p):
    """Beside the exact derivative, by the state and by a parameter, and the twin."""
    table = nsds.iterated_map(bent, x=[x, 0.3], p=[p, 0.5])
    out, spare = np.zeros(2), np.zeros(12)
    for varied, i in (("x", 0), ("x", 1), ("p", 0)):
        state, parameters = table.x.copy(), table.p.copy()
        slopes(table.addresses()[0], 2, state, parameters, state if varied == "x" else parameters, i, out, spare)
        exact = {("x", 0): [0.5 / math.sqrt(x), 0.3], ("x", 1): [math.cos(0.3) * p, x], ("p", 0): [math.sin(0.3), 2 * p]}[varied, i]
        assert state.tolist() == table.x.tolist()
        np.testing.assert_allclose(out, exact, rtol=1e-10, atol=1e-10 + 5e-14 / x)  # of which rounding

        def f(v, varied=varied):
            image = np.zeros(2)
            bent(*((v, table.p) if varied == "x" else (table.x, v)), image)
            return image

        twin = slopes_in_numpy(f, (table.x if varied == "x" else table.p).copy(), i)
        np.testing.assert_allclose(out, twin, rtol=1e-10, atol=1e-10 + 5e-14 / x)


def test_derivatives_by_a_parameter_are_carried_along_iterations():
    """``x_n`` of the logistic map as a polynomial of p, by differentiating its recursion."""
    x, slope, p = 0.3, 0.0, 3.2
    for _ in range(5):
        x, slope = p * x * (1 - x), x * (1 - x) + p * (1 - 2 * x) * slope
    section = section_of("test", nsds.iterated_map(logistic, x=[0.3], p=[p]), None, 5, None, ["p[0]"])
    returned, found = section.with_slopes(np.array([0.3]), np.array([p]), 1e-6)
    assert returned.ends[0] == pytest.approx([x], rel=1e-14)
    assert found == pytest.approx([slope], rel=1e-11)


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


def test_motions_that_still_settle_are_no_attractors_of_their_own():
    """A ball on a table comes to its orbits of one bounce in turns: on the way two bounces, or three, seem to repeat."""
    table = nsds.iterated_map(bounce, x=[0.0, 0.0], p=[4.1], modulo=[2 * math.pi, 0])
    late = {"x[0]": np.linspace(0, 2 * math.pi, 300), "x[1]": np.linspace(-10, 20, 300)[::25]}
    found = nsds.basins(table, grid=late, transient=20, tol=1e-3)
    one = nsds.basins(table, grid=late, transient=2000)
    assert len(found.attractors) == len(one.attractors) == 3
    for row in found.attractors:
        assert abs(row["multipliers"].prod() - 0.5 ** row["n_periods"]) < 1e-9
        assert row["error"] == pytest.approx(math.sqrt(row["fraction"] * (1 - row["fraction"]) / found.labels.size))


def test_the_number_of_threads_changes_no_bits(monkeypatch):
    """Of basins and diagrams of maps and systems."""
    start, period = impact_oscillator(0.05, 2.7, 0.8, x=-0.5), lambda omega: 2 * math.pi / omega
    vary = {"mass.z[0]": np.linspace(2.6, 2.8, 23)}
    grid = {"mass.q[0]": np.linspace(-1, -0.1, 5), "mass.v[0]": np.linspace(-1, 1, 7)}
    ring = nsds.iterated_map(nordmark, x=[0.0], p=[0.2, 0.026])
    results = []
    for count in (1, 2, 5):
        monkeypatch.setattr(simulation, "cores", lambda count=count: count)
        found = [nsds.basins(start, grid=grid, period=period(2.6), transient=60, keep=8, tol=1e-2),
                 nsds.basins(ring, grid={"x[0]": np.linspace(-0.1, 0.1, 101)}, transient=200)]  # fmt: skip
        rows = [nsds.sweep(start, vary=vary, period=period, transient=20, keep=8, direction=None),
                nsds.sweep(start, vary=vary, period=period, record="impact", transient=20, keep=8),
                nsds.sweep(ring, vary={"p[1]": np.linspace(0.02, 0.04, 31)}, direction=None)]  # fmt: skip
        results.append([array.tobytes() for one in (*found, rows) for array in one])
    assert results[0] == results[1] == results[2]


def test_basins_of_what_a_scheme_computes():
    """A mass between two wells, whose equilibria are orbits of any period; what the start says beside."""

    def wells(t, q, v, z, out):
        out[0] = q[0] ** 3 - q[0] + 0.5 * v[0]

    system = nsds.system(mass=nsds.lagrangian([1.0], fint=wells, q=[0.0], v=[0.0]))
    grid = {"mass.q[0]": np.linspace(-0.9, 0.9, 6)}
    found = nsds.basins(system, grid=grid, period=1.0, h=0.05, transient=80, keep=4)
    np.testing.assert_array_equal(np.sign(found.attractors["x"][found.labels, 0, 0]), np.sign(grid["mass.q[0]"]))
    np.testing.assert_allclose(abs(found.attractors["x"][:, 0, 0]), 1.0, atol=1e-6)
    assert (abs(found.attractors["multipliers"]) < 0.8).all()
    with pytest.raises(ValueError, match=r"basins: h = 0.3 is no divisor"):
        nsds.basins(system, grid=grid, period=1.0, h=0.3)


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
        assert ((rows["status"] == NOT_COMPUTED) == np.array([[0, 0, 0, 1, 1], [1, 1, 0, 0, 0]], bool)).all()
    else:
        monkeypatch.setattr("nsds.analysis.basin_maps._MEMBERS", 2)
        found = nsds.basins(start, grid={"x[0]": np.linspace(0.1, 0.9, 8)})
        assert found.labels.tolist() == [-1] * 6 + [-3] * 2


def quadratic(x, p, out):
    out[0] = p[0] * x[0] * (1.0 - x[0])


def quadratic_bubble(x, p, out):
    out[0] = (3.2 - p[0] ** 2) * x[0] * (1.0 - x[0])


def odd_cubic(x, p, out):
    out[0] = (1.0 + p[0]) * x[0] - x[0] ** 3


def odd_bubble(x, p, out):
    out[0] = (1.2 - p[0] ** 2) * x[0] - x[0] ** 3


def branches(f, x, first, until, switch):
    rows = nsds.continue_orbit(nsds.iterated_map(f, x=[x], p=[first]), parameter="p[0]", until=until, switch=switch)
    return [rows[rows["branch"] == k] for k in range(rows["branch"].max() + 1)]


def special_of(rows):
    return [(row["kind"], row["parameter"].round(8)) for row in rows if row["kind"]]


def test_branches_that_leave_at_period_doublings():
    """Of the quadratic map: cycles of two points in closed form, their doubling at 1 + sqrt 6, and two more."""
    found = branches(quadratic, 0.6, 2.5, 3.56, 3)
    doublings = [3.0, 1.0 + math.sqrt(6.0), 3.54409036]
    assert [rows["period"][-1] for rows in found] == [1, 2, 4, 8]
    for rows, doubling in zip(found, doublings, strict=False):
        assert rows["kind"][-1] == "until"
        assert [value for kind, value in special_of(rows) if kind == "period_doubling"] == pytest.approx([doubling], abs=1e-8)
    for rows, doubling in zip(found[1:], doublings, strict=True):
        assert special_of(rows)[0] == ("leaves", pytest.approx(doubling, abs=1e-8))
    p, x = found[1]["parameter"][1:], found[1]["x"][1:, 0]
    root = np.sqrt((p - 3.0) * (p + 1.0))
    assert np.minimum(abs(x - (p + 1.0 + root) / (2.0 * p)), abs(x - (p + 1.0 - root) / (2.0 * p))).max() < 1e-9
    np.testing.assert_allclose(found[1]["multipliers"][1:, 0].real, 4.0 + 2.0 * p - p * p, atol=1e-8)


def test_branches_that_leave_where_a_symmetry_is_lost():
    """``x² = p``, on both sides, and the period doublings of these at p = 1."""
    found = branches(odd_cubic, 0.0, -0.5, 1.2, 1)
    assert special_of(found[0]) == [("branch_point", pytest.approx(0.0, abs=1e-9)), ("until", 1.2)]
    assert len(found) == 3
    assert sorted(np.sign(rows["x"][-1, 0]) for rows in found[1:]) == [-1, 1]
    for rows in found[1:]:
        assert abs(rows["x"][:, 0] ** 2 - rows["parameter"]).max() < 1e-9
        assert special_of(rows)[1:] == [("period_doubling", 1.0), ("until", 1.2)]


@pytest.mark.parametrize(("f", "x", "period", "n_branches"), [(quadratic_bubble, 0.6, 2, 2), (odd_bubble, 0.0, 1, 3)])
def test_branches_that_come_back_end_there(f, x, period, n_branches):
    """Nothing is followed twice: no branch leaves where one is back."""
    found = branches(f, x, -0.9, 0.9, 2)
    assert len(found) == n_branches
    for rows in found[1:]:
        assert (rows["period"] == period).all()
        assert [kind for kind, _ in special_of(rows)] == ["leaves", "rejoins"]
        assert rows["parameter"][[0, -1]] == pytest.approx([-math.sqrt(0.2), math.sqrt(0.2)], abs=1e-8)
        assert len(rows) < 40
