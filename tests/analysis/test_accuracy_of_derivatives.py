"""Derivatives of smooth motions are as accurate as they say: Mathieu's equation, van der Pol's, Duffing's."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsds
from nsds.analysis.paths import scale_of
from nsds.analysis.tangent_run import refined

# (q, characteristic value, kind): tables 20.1 of Abramowitz and Stegun
CHARACTERISTIC = [(5.0, -5.80004602, 1), (5.0, 1.85818754, -1), (5.0, -5.79008060, -1), (5.0, 2.09946045, 1)]
ENOUGH = 1e-8  # what is promised, relative to the largest derivative


def pull(t, q, v, z, out):
    out[0] = (z[0] - 2.0 * z[1] * np.cos(2.0 * t)) * q[0]


def mathieu(a, q):
    return nsds.system(mass=nsds.lagrangian(mass=[[1.0]], fint=pull, q=[0.5], v=[0.2], z=[a, q]))


def rate_of_mathieu(t, x, a, q):
    return [x[1], -(a - 2.0 * q * np.cos(2.0 * t)) * x[0]]


def map_of(rate, x, length, *given):
    """The map of tangent vectors of a linear equation, by SciPy."""
    n = len(x)
    ends = [solve_ivp(rate, (0.0, length), e, "DOP853", rtol=1e-12, atol=1e-13, args=given).y[:, -1] for e in np.eye(n)]
    return np.transpose(ends)


@pytest.mark.parametrize(("a", "q"), [(1.0, 5.0), (-3.0, 8.0), (30.0, 20.0), (2.0, 25.0)])
@pytest.mark.parametrize("n_periods", [1, 3])
def test_monodromy_of_mathieu(a, q, n_periods):
    M = map_of(rate_of_mathieu, np.zeros(2), n_periods * np.pi, a, q)
    found = nsds.floquet(mathieu(a, q), period=np.pi, n_periods=n_periods)
    assert abs(found["monodromy"] - M).max() <= 2.0 * ENOUGH * max(1.0, abs(M).max())
    assert 0.0 < found["error"] <= ENOUGH


@pytest.mark.parametrize(("q", "a", "multiplier"), CHARACTERISTIC)
def test_characteristic_values(q, a, multiplier):
    """At a characteristic value both multipliers are 1, or -1: half the trace; published ones have 8 decimals."""
    found = nsds.floquet(mathieu(a, q), period=np.pi)
    M = found["monodromy"]
    slope = abs(map_of(rate_of_mathieu, np.zeros(2), np.pi, a + 1e-4, q).trace() - M.trace()) / 1e-4
    assert abs(0.5 * M.trace() - multiplier) <= 1e-8 * slope + 2.0 * ENOUGH * abs(M).max()
    assert abs(np.linalg.det(M) - 1.0) <= 4.0 * ENOUGH * abs(M).max() ** 2


def test_sensitivity_and_gradient_of_mathieu():
    """By state, and by the parameter q: differences of SciPy's motion."""
    a, q, x, length = 1.0, 5.0, np.array([0.5, 0.2]), 3.0
    system = mathieu(a, q)
    found = nsds.sensitivity(system, t_end=length, parameters=["mass.z[1]"])
    M = map_of(rate_of_mathieu, x, length, a, q)
    assert abs(found["by_state"] - M).max() <= 2.0 * ENOUGH * abs(M).max()
    assert found["error"] <= ENOUGH
    high, low = (map_of(rate_of_mathieu, x, length, a, q + d) @ x for d in (1e-4, -1e-4))
    assert found["by_parameters"][:, 0] == pytest.approx((high - low) / 2e-4, rel=1e-6)
    back = nsds.gradient(system, t_end=length, objective=lambda x: x[0], parameters=["mass.z[1]"], rows=4)
    forth = np.append(found["by_state"][0], found["by_parameters"][0])
    assert abs(back["gradient"] - forth).max() <= 4.0 * ENOUGH * abs(M).max()
    assert back["error"] <= ENOUGH
    assert np.isnan(nsds.sensitivity(system, t_end=length, rows=7)["error"])


def test_exponents_of_mathieu():
    """Where a solution grows: the logarithm of its multiplier in each period."""
    largest = abs(np.linalg.eigvals(map_of(rate_of_mathieu, np.zeros(2), np.pi, 1.0, 5.0))).max()
    system = mathieu(1.0, 5.0)
    system["mass"]["q"] = system["mass"]["v"] = 0.0
    found = nsds.lyapunov(system, period=np.pi, n_periods=20, transient=10, blocks=2)
    assert found["exponents"][0] == pytest.approx(np.log(largest) / np.pi, abs=1e-8)


def relaxation(t, q, v, z, out):
    out[0] = q[0] - z[0] * (1.0 - q[0] ** 2) * v[0]


# (mu, period): van der Pol's cycle, as its period is published to 8 decimals
@pytest.mark.parametrize(("mu", "period"), [(1.0, 6.66328686), (2.0, 7.62987448)])
def test_multiplier_of_van_der_pol(mu, period):
    """One is 1; the other is exp of the integral of the divergence along the cycle."""
    system = nsds.system(mass=nsds.lagrangian(mass=[[1.0]], fint=relaxation, q=[2.0], v=[0.0], z=[mu]))
    found = nsds.orbit(system, period=period, free_period=True, settle=4)

    def rate(t, x):
        return [x[1], mu * (1.0 - x[0] ** 2) * x[1] - x[0], mu * (1.0 - x[0] ** 2)]

    end = solve_ivp(rate, (0.0, found["period"]), [*found["x"], 0.0], "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    assert found["period"] == pytest.approx(period, abs=2e-8)
    assert abs(found["multipliers"] - [1.0, np.exp(end[2])]).max() <= 10.0 * ENOUGH * abs(found["monodromy"]).max()
    assert found["error"] <= ENOUGH


def hardening(t, q, v, z, out):
    out[0] = q[0] + 0.1 * v[0] + q[0] ** 3 - 0.3 * np.cos(z[0] * t)


def test_branch_of_duffing():
    """Along a branch every orbit has the volume exp(-damping times the period), and the error that it says."""
    system = nsds.system(mass=nsds.lagrangian(mass=[[1.0]], fint=hardening, q=[0.3], v=[0.0], z=[0.5]))
    branch = nsds.continue_orbit(system, parameter="mass.z[0]", until=0.6, period=lambda w: 2.0 * np.pi / w)
    volumes, sizes = np.linalg.det(branch["monodromy"]), abs(branch["monodromy"]).max(axis=(1, 2))
    assert (abs(volumes - np.exp(-0.1 * branch["period"])) <= 4.0 * ENOUGH * np.maximum(1.0, sizes) ** 2).all()
    assert (branch["error"] <= ENOUGH).all()
    assert (branch["error"] > 0.0).all()


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("fails_below", [0, 2, 10**9])
def test_the_error_is_that_of_half_as_many_rows(rows, fails_below):
    """Of two members whose derivatives are off by ``1 / rows^4``; runs with few rows may fail, and give NaN."""

    def derivatives(rows):
        values = np.array([1.0 + 1.0 / rows**4, 2.0])
        return rows, np.where(rows < fails_below, np.nan, values)[:, None, None]

    result, error, used = refined(derivatives, rows, 1.0)
    assert result == used
    if fails_below > 10**6:
        assert np.isnan(error).all()
    else:
        assert error == pytest.approx([15.0 / used**4, 0.0], rel=1e-3)
        assert error[0] <= ENOUGH


def test_a_branch_whose_velocity_grows_a_hundredfold_comes_to_its_end():
    """Through both folds of a hardening oscillator: the velocity at the section is 0.011 at the start, and 2 at resonance."""
    system = nsds.system(mass=nsds.lagrangian(mass=[[1.0]], fint=hardening, q=[0.3], v=[0.0], z=[0.5]))
    branch = nsds.continue_orbit(system, parameter="mass.z[0]", until=2.0, step=0.2, period=lambda w: 2.0 * np.pi / w)
    assert branch["kind"][branch["kind"] != ""].tolist() == ["fold", "fold", "until"]
    folds = branch[branch["kind"] == "fold"]
    assert abs(folds["multipliers"] - 1.0).min(axis=1) == pytest.approx([0.0, 0.0], abs=1e-6)
    assert len(branch) < 60


@pytest.mark.parametrize("parts", [[2, 2], [1, 3], [4]])
def test_units_of_states_follow_those_of_coordinates(parts):
    """In units that are powers of two, also of parts that do not act on each other; a state that is 0 has the unit that its map tells."""
    rng = np.random.default_rng(len(parts))
    M, x = np.zeros((4, 4)), rng.uniform(0.1, 1.0, 4)
    for first, n in zip(np.cumsum([0, *parts]), parts, strict=False):
        M[first : first + n, first : first + n] = rng.normal(size=(n, n))
    x[-1] = 0.0
    D = 2.0 ** np.array([-20.0, 20.0, -3.0, 7.0])
    scale = scale_of(x, M)
    ratio = scale_of(D * x, D[:, None] * M / D) / (D * scale)
    assert ((ratio >= 0.25) & (ratio <= 4.0)).all()  # balanced to a factor of two
    assert (scale >= x).all()
    assert (scale > 0.0).all()
