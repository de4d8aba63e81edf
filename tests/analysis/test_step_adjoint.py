"""Gradients by transposed steps, beside derivatives forwards and differences of runs."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

import nsds
from nsds.analysis import step_adjoint
from tests.analysis.models import friction_oscillator, impact_oscillator
from tests.analysis.test_gradients import COUNTS, ball, pushed_pair, shaken, thrown

MODELS = {
    "ball": (ball(1.0, 9.81, 1.0, 0.3, 0.8), 2.4, ["floor.e", "ball.fext", "ball.M"]),
    "pair": (
        pushed_pair(3.0, 0.1, 0.5, -0.6, 2.0),
        4.0,
        ["touch.e", "touch.H[0][0]", "masses.K[0][0]", "masses.fext[1]", "masses.C[0][1]", "masses.M[0][0]"],
    ),
    "thrown": (thrown(0.5, 0.3, [0.0, 0.5], [3.0, 0.5]), 2.0, ["floor.e_n", "floor.mu", "body.fext[1]", "floor.H[1][0]"]),
    "slides, then sticks": (thrown(0.0, 0.3, [0.0, 0.0], [3.0, 0.0]), 2.0, ["floor.mu", "body.fext[1]"]),
    "shaken": (
        shaken(0.2, 0.2, 2.0, [1.5, 4.0], [0.3, 0.2], [0.5, 0.0]),
        4.0,
        ["floor.e_n", "floor.mu", "body.K[0][0]", "body.z[0]", "body.z[1]"],
    ),
    "stop": (
        impact_oscillator(0.05, 2.8, 0.8, x=-0.5, v=0.7),
        6.0,
        ["stop.e", "stop.b", "mass.z[0]", "mass.z[1]", "mass.K", "mass.C", "mass.M"],
    ),
    "dry friction": (friction_oscillator(0.3, 0.8, 0.7, 0.1, 0.2), 4.0, ["friction.limit", "mass.z[0]", "mass.z[1]", "mass.K"]),
}


def objective(x):
    return float(np.sin(x) @ np.arange(1.0, x.size + 1))


def both(name, theta, rows=4):
    """Derivatives of a model forwards, and backwards."""
    system, t_end, parameters = MODELS[name]
    settings = {"t_end": t_end, "h": 1e-2, "objective": objective, "parameters": parameters, "scheme": nsds.moreau_jean(theta=theta)}
    return nsds.sensitivity(system, **settings), nsds.gradient(system, rows=rows, **settings)


@pytest.mark.parametrize("theta", [0.5, 0.8])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_forwards_through_impacts_and_modes_of_friction(name, theta):
    ahead, back = both(name, theta)
    size = 1.0 + abs(ahead["gradient"]).max()
    np.testing.assert_allclose(back["gradient"], ahead["gradient"], rtol=0, atol=1e-9 * size)
    assert [back[count] for count in COUNTS] == [ahead[count] for count in COUNTS]
    assert back["value"] == ahead["value"]
    np.testing.assert_array_equal(back["x"][-1], ahead["x"])
    assert ahead["n_events"] > 0
    # sparse matrices are the same equations
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_adjoint, "_DENSE", 0)
        _, sparse = both(name, theta)
    np.testing.assert_allclose(sparse["gradient"], back["gradient"], rtol=0, atol=1e-12 * size)


def test_costates_are_gradients_by_the_state_then():
    system, t_end, _ = MODELS["stop"]
    found = nsds.gradient(system, t_end=t_end, h=1e-2, objective=objective, rows=12)
    later = nsds.simulate(system, t_end=3.0, h=1e-2, progress=False)[-1]
    rest = nsds.gradient(nsds.restart(system, later), t_end=t_end, h=1e-2, objective=objective, rows=6)
    np.testing.assert_allclose(found["costate"][6], rest["costate"][0], rtol=1e-9)
    np.testing.assert_allclose(found["t"], np.linspace(0.0, t_end, 13), atol=1e-12)


def chain(n, fext):
    """Masses on springs between three stops, in sparse form."""
    random = np.random.default_rng(0)
    K = sp.diags_array([[-100.0] * (n - 1), [200.0] * n, [-100.0] * (n - 1)], offsets=[-1, 0, 1]).tocsr()
    H = sp.csr_array((np.ones(3), ([0, 1, 2], [n - 1, n // 2, n // 3])), shape=(3, n))
    part = nsds.lagrangian_linear(np.linspace(1, 2, n), K, 0.01 * K, q=np.zeros(n), v=random.normal(size=n), fext=fext)
    stops = nsds.interaction(nsds.lagrangian_linear_relation(H, b=np.full(3, 0.05)), nsds.newton_impact(0.6), on="chain")
    return nsds.system(chain=part, stops=stops)


def test_hundreds_of_parameters_of_a_large_system_cost_little_more_than_one():
    n, t_end, h = 3000, 0.3, 1e-3
    fext, some = np.random.default_rng(1).normal(size=n), np.linspace(0, n - 1, 200).astype(int)
    names = [f"chain.fext[{i}]" for i in some]
    last = lambda x: float(np.sin(x[:n:7]).sum())  # noqa: E731
    settings = {"t_end": t_end, "h": h, "objective": last, "rows": 10}
    took = []
    for parameters in (names[:1], names[:1], names):
        began = time.process_time()
        found = nsds.gradient(chain(n, fext), parameters=parameters, **settings)
        took.append(time.process_time() - began)
    assert took[2] < 5.0 * took[1]  # 200 times as long where each parameter is a run
    assert found["n_impacts"] > 0
    # along a random direction, beside differences of two runs
    way, ends = np.random.default_rng(2).normal(size=some.size), []
    for sign in (1.0, -1.0):
        pushed = fext.copy()
        pushed[some] += sign * 1e-5 * way
        row = nsds.simulate(chain(n, pushed), t_end=t_end, h=h, progress=False)[-1]
        ends.append(last(row["chain"]["q"]))
    assert found["gradient"][2 * n :] @ way == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def test_constraints_that_depend_on_each_other_have_maps_of_parts():
    """Two stops at one place: neither has an impulse of its own, but the state has derivatives."""
    H = [[1.0], [1.0]]
    system = nsds.system(
        ball=nsds.lagrangian_linear(M=[[1.0]], fext=[-9.81], q=[1.0], v=[0.3]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=H), nsds.newton_impact(0.8), on="ball"),
    )
    settings = {"t_end": 1.0, "h": 1e-2, "objective": objective, "parameters": ["ball.fext"]}
    ahead, back = nsds.sensitivity(system, **settings), nsds.gradient(system, rows=4, **settings)
    np.testing.assert_allclose(back["gradient"], ahead["gradient"], rtol=1e-9)
    assert back["n_impacts"] > 0


def speed_of_the_end(t, z, out):
    out[0] = z[0] * np.cos(t)


def test_rates_by_functions_of_time_have_maps_of_parts():
    drive = nsds.interaction(nsds.prescribed_velocity([0], speed_of_the_end, z=[0.7]), nsds.equality(), on="masses")
    masses = nsds.lagrangian_linear(M=np.eye(2), K=[[2.0, -1.0], [-1.0, 1.0]], q=[0.0, 0.0], v=[0.7, 0.0])
    settings = {"t_end": 1.0, "h": 1e-2, "objective": objective, "parameters": ["drive.z[0]", "masses.K[1][1]"]}
    system = nsds.system(masses=masses, drive=drive)
    ahead, back = nsds.sensitivity(system, **settings), nsds.gradient(system, rows=4, **settings)
    np.testing.assert_allclose(back["gradient"], ahead["gradient"], rtol=1e-7, atol=1e-9)
    assert abs(back["gradient"][4]) > 1e-2
