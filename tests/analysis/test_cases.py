"""The cases of the reference collection, where they are at hand, within the tolerances that they state."""

import math

import numpy as np
import pytest

import nsds
from nsds import status
from tests.analysis.models import PERIOD, buck, free_motion, friction_oscillator, impact_oscillator, single_impact_orbit
from tests.analysis.test_maps import maximal_orbit, maximal_orbits, nordmark, nordmark_slope
from tests.paths import ANALYSIS
from tests.schemes.event_driven.test_filippov import fuller, fullers_state, times_of

pytestmark = [pytest.mark.reference, pytest.mark.skipif(not ANALYSIS.is_dir(), reason="the cases are not part of the package")]
_PART = 0.37  # of an orbit: where the section is, away from impacts


def high_bounce(x, p, out):
    out[0], out[1] = x[0] + x[1], p[1] * x[1] - p[0] * math.cos(x[0] + x[1])


def columns(case):
    with np.load(ANALYSIS / case / "ref.npz") as file:
        return dict(file)


def test_impact_oscillator_period_n():
    case = columns("impact_oscillator_period_n")
    names = ("zeta", "omega", "r", "n", "sigma", "v", "phase", "trace", "det")
    for zeta, omega, r, n, sigma, v, phase, trace, det in zip(*(case[name] for name in names), strict=True):
        period, wait = 2 * math.pi / omega, _PART * 2 * math.pi * n / omega
        state = free_motion(zeta, omega, phase, sigma, -r * v, wait)
        found = nsds.floquet(impact_oscillator(zeta, omega, r, sigma, *state, phase + omega * wait), period=period, n_periods=int(n))
        assert found["n_impacts"] == 1
        assert found["residual"] < 1e-9 * max(1.0, abs(trace))
        assert abs(found["slowest"] - v) < 1e-9
        assert abs(found["monodromy"].trace() - trace) < 1e-6 * max(1.0, abs(trace))
        assert abs(np.linalg.det(found["monodromy"]) - det) < 1e-6 * max(1.0, abs(trace))


def test_doublings_of_single_impact_orbits():
    """On the branch of each, from a little below its frequency on."""
    case = columns("impact_oscillator_period_n")
    for n, omega in zip(case["pd_n"].tolist(), case["pd_omega"], strict=True):
        ends, found = (0.998 * omega, 1.002 * omega), []
        _, phase, state, *_ = single_impact_orbit(0.05, ends[0], 0.8, n, 0.0, _PART)
        start = impact_oscillator(0.05, ends[0], 0.8, 0.0, *state, phase)
        period = lambda omega: 2 * math.pi / omega  # noqa: E731
        found = nsds.continue_orbit(start, parameter="mass.z[0]", until=ends[1], period=period, n_periods=n, step=0.2)
        assert found[found["kind"] == "period_doubling"]["parameter"] == pytest.approx([omega], abs=1e-9)
        assert (found["n_impacts"] == 1).all()


def test_den_hartog_stick_slip():
    """What the motion settles to where it sticks: its largest displacement is at a row of an event."""
    case = columns("den_hartog_response")
    for f, omega, x_max in zip(case["f_stick"], case["omega_stick"], case["x_stick"], strict=True):
        T = 2 * math.pi / omega
        rows = nsds.simulate(friction_oscillator(f, omega, 0.0, 0.0, 0.0), t_end=60 * T, h=T, scheme=nsds.event_driven())
        assert abs(rows["mass"]["q"][rows["t"] > 50 * T]).max() == pytest.approx(x_max, abs=1e-8)


def test_den_hartog_response():
    """From a turning point on, a little later: where x is largest, and the multipliers of half a period, squared."""
    case = columns("den_hartog_response")
    exact = nsds.event_driven()
    for f, omega, x_max, phase, trace, det in zip(
        *(case[name] for name in ("f", "omega", "x_max", "phase", "trace_half", "det_half")), strict=True
    ):
        T = 2 * math.pi / omega
        rows = nsds.simulate(friction_oscillator(f, omega, x_max, 0.0, phase), t_end=0.3 * T, h=0.3 * T, scheme=exact)
        start = friction_oscillator(f, omega, rows["mass"]["q"][-1, 0], rows["mass"]["v"][-1, 0], phase + 0.6 * math.pi)
        found = nsds.orbit(start, period=T)
        turned = nsds.simulate(start, t_end=T, h=T, scheme=exact)["mass"]["q"]
        assert abs(abs(turned).max() - x_max) < 1e-8
        assert abs(found["monodromy"].trace() - (trace**2 - 2 * det)) < 1e-6
        assert abs(np.linalg.det(found["monodromy"]) - det**2) < 1e-6


def test_cam_follower_orbits():
    case = columns("cam_follower_orbits")
    for rpm, n, name in ((358.0, 3, "z358"), (700.0, 1, "z700")):
        q, v = case[name][:2]
        found = nsds.orbit(nsds.examples.cam_follower(rpm=rpm, q=q, v=v), period=60 / rpm, n_periods=n)
        np.testing.assert_allclose(found["x"], [q, v], rtol=1e-6)
        assert found["n_impacts"] == (8 if n == 3 else 1)
        if n == 3:
            np.testing.assert_allclose(sorted(found["multipliers"].real), sorted(case["mult358"]), atol=1e-6)
        else:
            np.testing.assert_allclose(found["multipliers"][0], case["mult700"] @ [1, 1j], atol=1e-6)
        impacts = nsds.sweep(
            nsds.examples.cam_follower(rpm=rpm, q=found["x"][0], v=found["x"][1]), vary={"follower.z[0]": [rpm]}, period=60 / rpm,
            record="impact", transient=0, keep=8, direction=None, progress=False,
        )[0]  # fmt: skip
        phases = impacts["t"][: int(found["n_impacts"])] * rpm / 60
        np.testing.assert_allclose(phases, case["imp358"][:, 0] if n == 3 else [0.181399127216811641], atol=1e-8)
        speeds = impacts["x"][: int(found["n_impacts"]), 1]
        np.testing.assert_allclose(speeds, case["imp358"][:, 1] if n == 3 else [-90.948595949], rtol=1e-6)
        if n == 1:
            assert abs(found["monodromy"].trace() - 0.6027216735333) < 1e-6


def test_chaos_of_the_cam_follower():
    case = columns("cam_follower_orbits")
    for rpm, wanted, error, rate in zip(*(case[name] for name in ("lyap_rpm", "lyap1", "lyap1_err", "impacts_per_period")), strict=True):
        found = nsds.lyapunov(nsds.examples.cam_follower(rpm=rpm), period=60 / rpm, n_periods=20_000)
        spread = 4 * math.hypot(error, found["errors"][0])
        assert abs(found["exponents"][0] - wanted) < spread
        assert abs(found["exponents"].sum() - 2 * math.log(0.8) * found["n_impacts"] / found["time"]) < 1e-9 * abs(found["rate"])
        assert found["n_impacts"] / found["time"] * 60 / rpm == pytest.approx(rate, rel=1e-2)


def test_lyapunov_impact_oscillator():
    """lambda_1 within 1 % at 2.8 after 1e5 periods, elsewhere within four standard errors; the sum to rounding.

    At 2.75 two chaotic motions exist side by side, with 0.5690 and 0.4377 impacts per unit time: the numbers of the case, a mean of eight
    runs, are those of six on the first and two on the second.
    """
    case = columns("lyapunov_impact_oscillator")

    def spectra(starts, omega, n_periods):
        systems = np.repeat(impact_oscillator(0.05, omega, 0.8), len(starts))
        systems["mass"]["q"][:, 0] = starts
        rows = nsds.lyapunov(systems, period=2 * math.pi / omega, n_periods=n_periods)
        rate = rows["n_impacts"] / rows["time"]
        assert abs(rows["exponents"].sum(axis=1) + 0.1 - 2 * math.log(0.8) * rate).max() < 1e-9
        return np.column_stack([rows["exponents"], rate]), rows["errors"][:, 0]

    for omega, first, error, second, rate in zip(
        *(case[name] for name in ("omega", "lambda1", "lambda1_err", "lambda2", "impact_rate")), strict=True
    ):
        starts, weights = ([-1.0, -0.3], [0.75, 0.25]) if omega == 2.75 else ([-1.0], [1.0])
        found, errors = spectra(starts, omega, 100_000 if omega == 2.8 else 20_000)
        spread = 4 * math.hypot(error, errors.max())
        np.testing.assert_allclose((weights @ found)[:2], [first, second], atol=spread)
        assert (weights @ found)[2] == pytest.approx(rate, rel=5e-3)
        if omega == 2.8:
            assert found[0, 0] == pytest.approx(first, rel=0.01)


def test_high_bounce_map_cascade():
    """Folds and doublings of the orbits that bounce once in n periods, in closed form; and the cascade."""
    case = columns("high_bounce_map_cascade")

    def table(x, gamma, alpha):
        return nsds.iterated_map(high_bounce, x=x, p=[gamma, alpha], modulo=[2 * math.pi, 0])

    for alpha, n, fold, doubling in zip(*(case[name] for name in ("alpha", "n", "gamma_sn", "gamma_pd")), strict=True):
        middle = 0.5 * (fold + doubling)
        x = [-math.acos(2 * math.pi * n * (alpha - 1) / middle), 2 * math.pi * n]
        up = nsds.continue_orbit(table(x, middle, alpha), parameter="p[0]", until=doubling + 0.2 * (doubling - fold))
        down = nsds.continue_orbit(table(x, middle, alpha), parameter="p[0]", until=0.5 * fold, max_points=300)
        assert up[up["kind"] == "period_doubling"]["parameter"] == pytest.approx([doubling], abs=1e-10)
        assert down[down["kind"] == "fold"]["parameter"][0] == pytest.approx(fold, abs=1e-10)
    first = nsds.continue_orbit(
        table([-math.acos(-math.pi / 4), 2 * math.pi], 4.0, 0.5), parameter="p[0]", until=4.684, step=0.05, switch=4, max_points=300
    )
    doublings = [
        value for k in range(5) for value in first[(first["period"] == 2**k) & (first["kind"] == "period_doubling")]["parameter"][:1]
    ]
    assert doublings == pytest.approx(case["cascade"][: len(doublings)], abs=1e-8)
    assert len(doublings) == 5


def test_buck_period_doubling():
    """Orbits and traces of the seven rows, then the three doublings, each on the branch that leaves at the one before."""
    case = columns("buck_period_doubling")
    exact = nsds.event_driven(time_events=PERIOD * np.arange(1, 8), rtol=1e-12, atol=1e-14)
    for v_in, v, i, trace, at in zip(*(case[name] for name in ("vin", "v0", "i0", "trace", "ts")), strict=True):
        rows = nsds.simulate(buck(v_in, v, i), t_end=PERIOD, h=PERIOD, scheme=exact)
        assert np.unique(times_of(rows, status.SWITCHED))[0] == pytest.approx(at, rel=1e-9)
        found = nsds.orbit(buck(v_in, v, i), period=PERIOD, scheme=exact)
        np.testing.assert_allclose(found["x"], [v, i], rtol=1e-9)
        assert abs(found["monodromy"].trace() - trace) < 1e-7
        assert abs(np.linalg.det(found["monodromy"]) - 0.6791948711) < 1e-9
    rows = nsds.continue_orbit(
        buck(24.0, case["v0"][5], case["i0"][5]), parameter="switch.upper", until=32.2, period=PERIOD, scheme=exact, switch=2, step=0.03
    )
    for k, wanted in enumerate(case["pd"]):
        doublings = rows[(np.round(rows["period"] / PERIOD) == 2**k) & (rows["kind"] == "period_doubling")]["parameter"]
        assert doublings[0] == pytest.approx(wanted, abs=1e-7)


def test_sensitivity_bouncing_ball():
    case = columns("sensitivity_bouncing_ball")
    ball = nsds.system(
        ball=nsds.lagrangian_linear(M=[[1.0]], fext=[-9.81], q=[1.0], v=[0.3]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.8), on="ball"),
    )
    found = nsds.sensitivity(ball, t_end=2.5, parameters=["floor.e", "ball.fext[0]"], rows=1)
    np.testing.assert_allclose(np.hstack([found["by_state"], found["by_parameters"] * [1, -1]]), case["S"], atol=1e-9)
    np.testing.assert_allclose(found["x"], case["state"], atol=1e-12)


@pytest.mark.parametrize("jac", [None, nordmark_slope])
def test_nordmark_period_adding_by_continuation(jac):
    """With derivatives by finite differences, and of the first alpha with those of a function."""
    case = columns("nordmark_period_adding")
    for alpha, *edges in list(zip(case["alpha"], case["rho_pd"], case["rho_bc"], strict=True))[: None if jac is None else 1]:
        for m, doubling, border in zip(case["m"].tolist(), *edges, strict=True):
            assert maximal_orbits(alpha, m) == pytest.approx((doubling, border), rel=1e-13)
            start, rho = maximal_orbit(alpha, m, jac)
            down = nsds.continue_orbit(start, parameter="p[1]", until=rho - 1.5 * (rho - doubling), n_periods=m)
            up = nsds.continue_orbit(start, parameter="p[1]", until=2 * border, n_periods=m)
            assert down[down["kind"] == "period_doubling"]["parameter"] == pytest.approx([doubling], rel=1e-10)
            assert up["kind"][-1] == "border"
            assert up["parameter"][-1] == pytest.approx(border, rel=1e-10)


def test_nordmark_period_adding_by_brute_force():
    """From inside the window past either edge, in steps that become shorter: the last value with m points."""
    case = columns("nordmark_period_adding")
    steps = np.append(np.geomspace(0.02, 4e-4, 14), [0.0, -4e-4, -1e-3, -2e-3])
    for alpha, *edges in zip(case["alpha"], case["rho_pd"], case["rho_bc"], strict=True):
        for m, doubling, border in zip(case["m"].tolist(), *edges, strict=True):
            for edge, inwards in ((doubling, 1.0), (border, -1.0)):
                values = edge * (1 + inwards * steps)
                x = maximal_orbit(alpha, m, rho=values[0])[0].x
                start = nsds.iterated_map(nordmark, x=x, p=[alpha, values[0]])
                rows = nsds.sweep(start, vary={"p[1]": values}, transient=400_000, tol=1e-4 * values[0], direction=1)[0]
                last = np.flatnonzero(rows["n_periods"] == m)[-1]
                assert values[last] == pytest.approx(edge, rel=1e-3)


def test_fuller_zeno():
    case = columns("fuller_zeno")
    for xi, end, switches in zip(case["xi"], case["t_zeno"], case["t_switch"], strict=True):
        rows = nsds.simulate(fuller(xi), t_end=1.5 * end, h=0.1, scheme=nsds.event_driven())
        np.testing.assert_allclose(np.unique(times_of(rows, status.SWITCHED))[:10], switches[:10], rtol=0, atol=1e-9)
        assert times_of(rows, status.ACCUMULATION) == pytest.approx([end], abs=1e-8)
        assert abs(rows["plant"]["x"][rows["t"] > end + 1e-8]).max() < 1e-8
        stepped = [nsds.simulate(fuller(xi), t_end=1.5 * end, h=h, scheme=nsds.euler_moreau()) for h in (1e-3, 2.5e-4)]
        before = [one[one["t"] < 0.8 * end] for one in stepped]
        coarse, fine = (abs(one["plant"]["x"] - [fullers_state(xi, t) for t in one["t"]]).max() for one in before)
        assert 2.5 < coarse / fine < 10.7
        assert all(abs(one["plant"]["x"][-1]).max() < 1e-12 for one in stepped)
