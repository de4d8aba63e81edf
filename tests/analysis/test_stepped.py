"""Derivatives of time stepping: of each step with the same active set, against closed forms and differences of whole runs."""

import math

import numpy as np
import pytest
from scipy.linalg import expm

import nsds
from nsds.analysis.parameters import Parameter, state_words
from nsds.analysis.tangent_steps import whole_steps
from nsds.model.records import memory
from nsds.model.system_kinds import LAGRANGIAN
from nsds.schemes import table
from tests.analysis.models import duffing, friction_oscillator, impact_oscillator

TWO_PI = 2 * math.pi


def ball(q=1.0, v=0.3, e=0.8):
    return nsds.system(
        ball=nsds.lagrangian_linear(M=[[1.0]], fext=[-9.81], q=[q], v=[v]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(e), on="ball"),
    )


def theta_step(h, theta, zeta):
    """Of ``x'' + 2 zeta x' + x``: what a step of Moreau and Jean makes of (q, v), in matrices."""
    m_hat = 1 + h * theta * 2 * zeta + h**2 * theta**2
    v = np.array([-h, m_hat - h * 2 * zeta - h**2 * theta]) / m_hat
    return np.array([[1.0, 0.0] + h * theta * v + [0.0, h * (1 - theta)], v])


def by_differences(system, change, t_end, h, scheme):
    """Derivative of the state after a run, by central differences of runs."""
    ends = []
    for amount in (1e-6, -1e-6):
        changed = change(np.array(system), amount)
        rows = nsds.simulate(changed, t_end=t_end, h=h, scheme=scheme, progress=False)
        part = rows["ball" if "ball" in rows.dtype.names else "mass"]
        ends.append(np.append(part["q"][-1], part["v"][-1]))
    return (ends[0] - ends[1]) / 2e-6


def moved(k):
    def change(record, amount):
        memory(record.reshape(1))[0, state_words(record)[k]] += amount
        return record

    return change


def test_free_motion_is_the_power_of_a_matrix():
    """And tends to that of the differential equation; the growth of volumes is that of its determinant."""
    n, h = 200, TWO_PI / 2.8 / 200
    found = nsds.floquet(impact_oscillator(0.05, 2.8, 0.8, sigma=9.0), period=TWO_PI / 2.8, h=h)
    one = theta_step(h, 0.5, 0.05)
    np.testing.assert_allclose(found["monodromy"], np.linalg.matrix_power(one, n), atol=1e-8)
    assert abs(found["log_det"] - n * math.log(np.linalg.det(one))) < 1e-8
    np.testing.assert_allclose(found["monodromy"], expm(np.array([[0, 1], [-1, -0.1]]) * TWO_PI / 2.8), atol=1e-4)
    assert (found["n_impacts"], found["n_untreated"]) == (0, 0)


def test_impacts_whose_time_does_not_move():
    """One impact: the velocity is reversed and lost in part, nothing else; the entry that event-driven motions have there is missing."""
    found = nsds.sensitivity(ball(), t_end=0.7, h=1e-3, parameters=["floor.e", "ball.fext[0]"])
    assert (found["n_impacts"], found["n_untreated"]) == (1, 0)
    exact = nsds.sensitivity(ball(), t_end=0.7)
    t = (0.3 + math.sqrt(0.09 + 2 * 9.81)) / 9.81
    flight = lambda s: np.array([[1.0, s], [0.0, 1.0]])  # noqa: E731
    np.testing.assert_allclose(found["by_state"], flight(0.7 - t) @ np.diag([1.0, -0.8]) @ flight(t), atol=5e-3)
    assert abs(found["by_state"] - exact["by_state"]).max() > 1.0
    assert found["by_parameters"][1, 0] == pytest.approx(abs(0.3 - 9.81 * t), abs=2e-2)  # of the speed after it


@pytest.mark.parametrize(
    ("system", "t_end", "n"), [(ball(), 1.5, 400), (duffing(), 4.0, 400), (friction_oscillator(0.3, 0.8, 0.7, 0.1, 0.2), 4.0, 400)]
)
def test_derivatives_are_those_of_whole_runs(system, t_end, n):
    """Of runs beside each other by 1e-6, which pass the same steps in the same active sets."""
    scheme, h = nsds.moreau_jean(newton_tol=1e-14), t_end / n
    found = nsds.sensitivity(system, t_end=t_end, h=h, scheme=scheme)
    assert found["status"] == 0
    wanted = np.column_stack([by_differences(system, moved(k), t_end, h, scheme) for k in range(2)])
    np.testing.assert_allclose(found["by_state"], wanted, rtol=1e-5, atol=1e-5 * abs(wanted).max())


def test_derivatives_by_parameters_are_those_of_whole_runs():
    """Laws, forces, and matrices, of which the scheme has factors."""
    system = impact_oscillator(0.05, 2.8, 0.8, x=-0.5, v=0.7)
    names = ["stop.e", "stop.b", "mass.z[0]", "mass.K", "mass.C", "mass.M"]
    found = nsds.sensitivity(system, t_end=6.0, h=0.01, parameters=names)
    assert found["n_impacts"] > 1
    for k, name in enumerate(names):
        parameter = Parameter("test", "parameter", system, name)
        change = lambda record, amount, parameter=parameter: parameter.put(  # noqa: E731
            record.reshape(1), parameter.of(system) + amount
        ).reshape(())
        wanted = by_differences(system, change, 6.0, 0.01, nsds.moreau_jean())
        np.testing.assert_allclose(found["by_parameters"][:, k], wanted, rtol=2e-5, atol=2e-5 * max(1.0, abs(wanted).max()))


def test_what_rests_stays_closed():
    """By the height and the speed of what lies on the floor: that of the step with the contact closed."""
    found = nsds.sensitivity(ball(q=0.0, v=0.0, e=0.0), t_end=0.1, h=1e-2, parameters=["ball.fext[0]"])
    np.testing.assert_allclose(found["by_state"], [[1.0, 0.005], [0.0, 0.0]], atol=1e-9)
    np.testing.assert_allclose(found["by_parameters"], 0.0, atol=1e-9)
    assert found["n_untreated"] == 0


def test_backwards_as_forwards():
    system = impact_oscillator(0.05, 2.8, 0.8, x=-0.5, v=0.7)
    settings = {"t_end": 6.0, "h": 0.01, "objective": lambda x: x[0] ** 2 + x[1], "parameters": ["stop.e", "mass.K"]}
    forwards, backwards = nsds.sensitivity(system, **settings), nsds.gradient(system, rows=12, **settings)
    np.testing.assert_allclose(backwards["gradient"], forwards["gradient"], rtol=1e-9, atol=1e-10)  # forwards by differences


def test_an_orbit_of_the_scheme():
    """It closes to rounding, near that of the motion; its derivatives are those of runs beside it."""
    system, period = impact_oscillator(0.05, 2.6, 0.8, x=-0.5), TWO_PI / 2.6
    found = nsds.orbit(system, period=period, h=period / 200, settle=300)
    assert found["residual"] < 1e-11
    assert found["n_impacts"] == 1
    start = impact_oscillator(0.05, 2.6, 0.8, 0.0, *found["x"])
    wanted = np.column_stack([by_differences(start, moved(k), period, period / 200, nsds.moreau_jean()) for k in range(2)])
    np.testing.assert_allclose(found["monodromy"], wanted, atol=1e-8)
    exact = nsds.orbit(system, period=period, settle=300)
    np.testing.assert_allclose(found["x"], exact["x"], atol=0.05)


def test_exponents_of_the_scheme():
    """Their sum is the growth of volumes. The motion is chaotic, and its largest exponent 0.158: that lies in the times of its impacts."""
    period = TWO_PI / 2.8
    found = nsds.lyapunov(impact_oscillator(0.05, 2.8, 0.8), period=period, n_periods=400, h=period / 100)
    assert abs(found["sum_error"]) < 1e-9
    assert found["n_untreated"] <= 2
    assert found["exponents"][0] < 0.0


def test_sliding_along_a_relay():
    """In the sliding mode one direction is lost."""
    system = nsds.system(
        plant=nsds.first_order_linear([[-1.0, 0.0], [0.0, -0.5]], x=[0.0, 1.0]),
        relay=nsds.interaction(nsds.first_order_linear_relation(C=[[1.0, 0.2]], B=[[1.0], [0.0]]), nsds.relay(-1.0, 1.0), on="plant"),
    )
    found = nsds.sensitivity(system, t_end=1.0, h=0.01)
    decay = 1.005**-100.0
    np.testing.assert_allclose(found["by_state"], [[0.0, -0.2 * decay], [0.0, decay]], atol=1e-8)
    assert found["n_untreated"] == 0


def test_all_schemes_are_maps_of_the_state_but_those_that_say_so():
    """A step from the state alone is that of the run."""
    follower = nsds.examples.cam_follower(rpm=700.0)
    for name, known in table.SCHEMES.items():
        if LAGRANGIAN not in known.modules or name in ("event_driven", "moreau_jean_exact"):
            continue
        scheme = getattr(nsds, name)()
        whole = nsds.simulate(follower, t_end=0.02, h=1e-3, scheme=scheme, progress=False)
        record = np.array(follower)
        for _ in range(20):
            after = nsds.step(record, h=1e-3, scheme=scheme)
            record = np.array(follower)
            record["follower"]["q"], record["follower"]["v"], record["t"] = after["follower"]["q"], after["follower"]["v"], after["t"]
        off = abs(record["follower"]["q"] - whole["follower"]["q"][-1]).max()
        assert (off < 1e-12) == getattr(table.module_of(scheme, LAGRANGIAN), "IS_ONE_STEP", True), name


def test_what_is_refused_is_named():
    system = impact_oscillator(0.05, 2.8, 0.8)
    with pytest.raises(ValueError, match=r"no divisor of the section of length 1: after 11 steps the phase is off by -0.01"):
        nsds.floquet(system, period=1.0, h=0.09)
    with pytest.raises(ValueError, match="event_driven has none"):
        nsds.lyapunov(system, period=1.0, h=0.01, scheme=nsds.event_driven())
    with pytest.raises(ValueError, match="more than the state from one step to the next"):
        nsds.floquet(system, period=1.0, h=0.01, scheme=nsds.generalised_alpha())
    with pytest.raises(ValueError, match="all sections must be of one length"):
        nsds.lyapunov(np.repeat(system, 2), period=[1.0, 2.0], h=0.01)
    with pytest.raises(ValueError, match="free_period is for event-driven"):
        nsds.orbit(system, period=1.0, h=0.01, free_period=True)
    with pytest.warns(RuntimeWarning, match="h = 0.05 is too coarse for the events: what is active changes in"):
        nsds.lyapunov(ball(q=0.01, v=0.0, e=1.0), period=1.0, h=0.05, n_periods=40)
    assert whole_steps("test", 0.3, 0.1) == (3, 0.3 / 3)
