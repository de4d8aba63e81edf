"""Published runs of switched and sampled systems, event-driven.

Where the published scheme is exact between its samples the runs agree to the tolerance of the collection. All others hold the error of
their own scheme; what they tend to with its step is then the event-driven motion.
"""

import math

import numpy as np
import pytest

import nsds
from nsds.status import is_event
from tests.paths import REFERENCE
from tests.reference_cases import needs_collection


def grid_of(rows):
    """Rows at steps, without those of events."""
    return rows[~is_event(rows["status"])]


def published(case):
    with np.load(REFERENCE / case / "ref.npz") as file:
        reference = dict(file)
    return reference, next(reference[name].astype(int) for name in ("step", "row") if name in reference)


# --------------------------------------------------------------------------------------------- two relays, held exactly
def two_relays():
    system = nsds.linear_complementarity_system(np.zeros((2, 2)), np.eye(2), np.eye(2), x=[1, -1], law=nsds.relay())
    return grid_of(nsds.simulate(system, t_end=10.0, h=0.1, scheme=nsds.event_driven()))


def test_two_relays_reach_zero_and_rest():
    rows = two_relays()
    np.testing.assert_allclose(rows["plant"]["x"], np.maximum(0, 1 - rows["t"])[:, None] * [1, -1], rtol=0, atol=1e-12)
    rests = rows["t"] > 1.05
    np.testing.assert_allclose(rows["switches"]["lambda"][rests], 0, atol=1e-12)


@pytest.mark.reference
@needs_collection
def test_two_relays_in_full():
    reference, k = published("zoh_relay_two")
    rows = two_relays()[k]
    before = abs(reference["t"] - 1.0) > 1e-9  # there lambda is that after the event, which the published row has before it
    for i in range(2):
        np.testing.assert_allclose(rows["plant"]["x"][:, i], reference[f"x{i}"], rtol=0, atol=1e-12)
        wanted = reference[f"lam{i}"]
        np.testing.assert_allclose(rows["switches"]["lambda"][before & (k > 0), i], wanted[before & (k > 0)], rtol=0, atol=1e-12)


# ------------------------------------------------------------------------------------------------- sampled sliding mode
def held_disturbance_and_control(t, x, state, z, u):
    """u: the disturbance of the published scheme, taken at the end of a step, and every z[1] steps the control."""
    if state[0] % z[1] == 0:
        u[1] = min(max(-x[1] / (2 * z[0]), -1.0), 1.0)
    u[0] = math.sin(50 * (state[0] + 1) * 1e-4)
    state[0] += 1


def sliding_mode(t_end):
    plant = nsds.first_order_linear(np.zeros((2, 2)), x=[1, -1], T=[[1, 0], [-1, 2]], u=[0.0, 0.0])
    control = nsds.sampled_control(held_disturbance_and_control, reads="plant", writes="plant", z=[1e-2, 100], state=[0.0])
    return grid_of(nsds.simulate(nsds.system(plant=plant, control=control), t_end=t_end, h=1e-4, scheme=nsds.event_driven()))


# of the published run: x0, x1, u in some rows
SLIDING = {
    102: (1.002569513407114, -0.9821695134071169, 1.0),
    300: (1.018635091996676, -0.958635091996683, 1.0),
    1002: (1.014087426855842, -0.8136874268558639, 1.0),
    1902: (1.039923076858428, -0.6595230768584674, 1.0),
}


def test_sampled_sliding_mode_control():
    plant = sliding_mode(0.2)["plant"]
    for k, wanted in SLIDING.items():
        np.testing.assert_allclose([*plant["x"][k], plant["u"][k, 1]], wanted, rtol=0, atol=1e-9)


@pytest.mark.reference
@needs_collection
def test_sampled_sliding_mode_control_in_full():
    reference, k = published("smc_implicit")
    plant = sliding_mode(1.0)["plant"][k]
    for column, ours in (("x0", plant["x"][:, 0]), ("x1", plant["x"][:, 1]), ("u", plant["u"][:, 1])):
        np.testing.assert_allclose(ours, reference[column], rtol=0, atol=1e-9, err_msg=column)


# ------------------------------------------------------------------------------------------------ controllers beside a plant
def twisting_plant(periods):
    """(state at samples, control after them): the published controller, its plant moved event by event between its samples."""
    controller = nsds.examples.twisting_controller()
    plant = nsds.system(plant=nsds.first_order_linear([[0, 1], [19, -2]], x=[-15, 20], T=[[0], [300]], u=[0.0]))
    states, controls = [plant["plant"]["x"].copy()], []
    for _ in range(periods):
        controller["plant"]["x"] = plant["plant"]["x"]
        controls.append(nsds.step(controller, h=0.05, scheme=nsds.zero_order_hold())["controller"]["lambda"] @ [1.0, 0.2])
        plant["plant"]["u"] = controls[-1]
        plant = nsds.restart(plant, nsds.simulate(plant, t_end=0.05 * (len(controls)), h=0.05, scheme=nsds.event_driven())[-1])
        states.append(plant["plant"]["x"].copy())
    return np.array(states), np.array(controls)


@pytest.mark.reference
@needs_collection
def test_implicit_twisting_controller():
    """The plant is unstable: what its motion is off by grows between samples, and the controller takes it away."""
    reference, k = published("zoh_twisting_implicit")
    states, controls = twisting_plant(300)
    kept = k < 300
    for ours, column in ((states[:, 0], "x0"), (states[:, 1], "x1"), (controls, "s")):
        np.testing.assert_allclose(ours[k[kept]], reference[column][kept], rtol=0, atol=1e-7, err_msg=column)


def disturbed(t, z, out):
    out[0], out[1] = math.sin(50 * t), -math.sin(50 * t)


@pytest.mark.reference
@needs_collection
def test_relay_controller_with_its_own_clock():
    """The published process takes its disturbance by the trapezoidal rule: in a period it is off by ``h^2 / 12`` times what b' changes by.

    The controller feeds that back with a gain of one for each period, so the difference stays of this size.
    """
    process = nsds.system(plant=nsds.first_order_linear(np.zeros(2), disturbed, x=[1, -1], u=[0, 0]))
    controller = nsds.linear_complementarity_system(np.zeros((2, 2)), 2 * np.eye(2), np.eye(2), x=[1, -1], law=nsds.relay())
    pieces = []
    for j in range(1, 101):
        controller = nsds.step(controller, h=1e-2, scheme=nsds.euler_moreau())
        process["plant"]["u"] = controller["plant"]["r"]
        rows = grid_of(nsds.simulate(process, t_end=1e-2 * j - 1e-4, h=1e-4, scheme=nsds.event_driven()))
        pieces.append(rows[pieces != [] :])
        process = nsds.restart(process, rows[-1])
        controller["plant"]["x"] = process["plant"]["x"]
    x = np.concatenate(pieces)["plant"]["x"]
    reference, k = published("relay_bisimulation_process")
    bound = 4 * 1e-8 / 12 * 50 * 2
    np.testing.assert_allclose(x[k, 0], reference["x0"], rtol=0, atol=bound)
    np.testing.assert_allclose(x[k[k > 0], 1], reference["x1"][k > 0], rtol=0, atol=bound)


# ------------------------------------------------------------------------------------------ limits of the published schemes
def spiral(x):
    point = nsds.first_order_linear(np.zeros((2, 2)), x=x)
    B = 500 * np.array([[0.01, 0.99], [-0.99, 0.01]])
    return nsds.system(point=point, relays=nsds.interaction(nsds.first_order_linear_relation(C=np.eye(2), B=B), nsds.relay(), on="point"))


def test_the_published_spiral_is_within_the_way_of_a_step_of_its_limit():
    """`filippov_nonlinear` has few points a turn; its first switches are where straight lines meet the axes."""
    rows = nsds.simulate(spiral([3.0, 3.0]), t_end=0.02, h=1e-3, scheme=nsds.event_driven())
    switches = rows[is_event(rows["status"])][1::2]
    np.testing.assert_allclose(switches["t"], [0.006, 0.006 + 5.94 / 500], rtol=1e-14)
    np.testing.assert_allclose(switches["point"]["x"], [[0, 5.94], [-5.94 * 0.98, 0]], rtol=0, atol=1e-13)
    for n in (1, 3, 9, 27):
        steps = nsds.simulate(spiral([3.0, 3.0]), t_end=0.02, h=1e-3 / n, scheme=nsds.euler_moreau(theta=0.5), save_every=n)
        assert abs(steps["point"]["x"] - grid_of(rows)["point"]["x"]).max() < 1000 * 1e-3 / n
