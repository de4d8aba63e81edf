"""The cases of the reference collection, where they are at hand, within the tolerances that they state."""

import math

import numpy as np
import pytest

import nsds
from nsds import status
from tests.analysis.models import free_motion, friction_oscillator, impact_oscillator
from tests.analysis.test_maps import maximal_orbit, maximal_orbits, nordmark, nordmark_slope
from tests.paths import ANALYSIS
from tests.schemes.event_driven.test_filippov import fuller, fullers_state, times_of

pytestmark = [pytest.mark.reference, pytest.mark.skipif(not ANALYSIS.is_dir(), reason="the cases are not part of the package")]
_PART = 0.37  # of an orbit: where the section is, away from impacts


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
    case = columns("nordmark_period_adding")
    for alpha, *edges in zip(case["alpha"], case["rho_pd"], case["rho_bc"], strict=True):
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
