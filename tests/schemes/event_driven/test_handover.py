"""Mechanical systems that are handed over to steps in time: against a twin in NumPy, and runs that follow all events."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds.status import (
    AFTER_MANY_EVENTS,
    AFTER_NO_MODES,
    AFTER_SHORT_STEPS,
    CLOSED,
    EVENT,
    STEP_COLLAPSED,
    TIME_EVENT,
    TIME_STEPPED,
    is_event,
)
from tests.benchmarks.fuzz_events import gain_of, random_system
from tests.random_bodies import gain_of as gain_of_bodies
from tests.random_bodies import random_bodies
from tests.strategies import examples

pytestmark = pytest.mark.filterwarnings("ignore:event_driven.*handed over:RuntimeWarning")

G = 9.81
SUBSTEPS = 64
linear = nsds.lagrangian_linear_relation


def run(system, t_end, h, **options):
    return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven(**options), progress=False)


def stepped(rows):
    """Which rows end an interval that was stepped in time."""
    return is_event(rows["status"]) & (rows["status"] & TIME_STEPPED > 0)


def column(e, q, v, K=0.0):
    n = len(q)
    H = np.eye(n) - np.eye(n, k=-1)
    balls = nsds.lagrangian_linear(M=np.ones(n), K=np.diag(np.full(n, K)), fext=np.full(n, -G), q=q, v=v)
    return nsds.system(balls=balls, touch=nsds.interaction(linear(H=H), nsds.newton_impact(e=e), on="balls"))


# ------------------------------------------------------------------------------------------------------------------- twin
def complementary(W, q):
    """``0 <= W z + q  ⟂  z >= 0``: the first choice of what is positive that has the right signs."""
    for chosen in product([False, True], repeat=q.size):
        z, on = np.zeros(q.size), np.array(chosen, bool)
        z[on] = np.linalg.solve(W[np.ix_(on, on)], -q[on])
        if z.min(initial=0) >= 0 and (W @ z + q).min(initial=0) >= -1e-12:
            return z
    raise AssertionError("no solution")


def midpoint_rule(q, v, duration, e, K):
    """State of a column of unit masses after 64 steps of Moreau's midpoint rule, before what happens at the end of them."""
    H, h = np.eye(q.size) - np.eye(q.size, k=-1), duration / SUBSTEPS
    for _ in range(SUBSTEPS):
        q_m = q + h / 2 * v
        a = -G - K * q_m
        on = H @ q_m <= 1e-11
        rows, u, gain = H[on], H[on] @ v, h * H[on] @ a
        restitution = np.where(abs(u) > h * abs(H[on]) @ abs(a), e, 0.0)
        v = v + h * a + rows.T @ complementary(rows @ rows.T, u + gain + restitution * u)
        q = q_m + h / 2 * v
    return q, v


@pytest.mark.parametrize("K", [0.0, 30.0])
@pytest.mark.parametrize("flow", ["exact", "dopri5"])
def test_an_interval_is_that_of_the_twin(flow, K):
    """Three balls that chatter; of the intervals those at whose end nothing touches, so that nothing else has changed the state."""
    rows, compared = run(column(0.9, [0.1, 0.3, 0.6], [0, 0, -1.0], K), 1.0, 0.05, flow=flow, max_events=3), 0
    for k in np.flatnonzero(stepped(rows)):
        q, v = midpoint_rule(rows["balls"]["q"][k - 1], rows["balls"]["v"][k - 1], rows["t"][k] - rows["t"][k - 1], 0.9, K)
        if np.diff(q, prepend=0.0).min() > 1e-6:
            np.testing.assert_allclose(rows["balls"]["q"][k], q, atol=1e-12)
            np.testing.assert_allclose(rows["balls"]["v"][k], v, atol=1e-11)
            compared += 1
    assert compared >= 2


# ------------------------------------------------------------------------------------------------- what follows of it
def test_a_column_that_chatters_without_end_comes_to_rest():
    """Accumulations are not summed; the balls then rest, as they do where all events are followed, and loads are those of statics."""
    system = column(0.8, [0.2, 0.5, 0.9], [0.0, 0.0, 0.0])
    with pytest.raises(nsds.SimulationError, match="more events"):
        nsds.simulate(system, t_end=6.0, h=0.1, scheme=nsds.event_driven(accumulation=0.0, max_events=40, hybrid=False))
    rows = run(system, 6.0, 0.1, accumulation=0.0, max_events=40)
    assert stepped(rows).any()
    assert (rows["status"][stepped(rows)] & CLOSED > 0).any()
    np.testing.assert_allclose(rows["balls"]["q"][-1], 0.0, atol=1e-12)
    np.testing.assert_allclose(rows["touch"]["lambda"][-1].ravel(), [3 * G, 2 * G, G], rtol=1e-12)
    assert "time stepping" in nsds.advice(int(rows["status"][stepped(rows)][0]))
    assert rows["touch"]["y"].min() > -1e-11


def test_it_is_of_first_order():
    """A ball on a spring above a floor, handed over from its second impact in each interval on, against the exact motion."""
    system = column(0.9, [0.3], [0.0], K=20.0)
    exact = nsds.simulate(system, t_end=1.05, h=1.05, scheme=nsds.event_driven())[-1]["balls"]["q"]
    off = [abs(run(system, 1.05, h, max_events=1)[-1]["balls"]["q"] - exact).max() for h in (1.05, 1.05 / 16)]
    assert off[0] < 0.05
    assert off[1] < off[0] / 4


def test_time_stepping_of_small_steps_is_its_limit():
    """A block that is thrown onto an incline, with friction: it bounces, slips and stops; against Moreau–Jean with small steps."""
    turn = np.array([[0.0, 1.0], [1.0, 0.0]])
    block = nsds.lagrangian_linear(M=np.ones(2), fext=[-2.0, -G], q=[0.0, 0.2], v=[2.0, 0.0])
    law = nsds.newton_impact_friction(e_n=0.8, mu=0.5)
    system = nsds.system(block=block, floor=nsds.interaction(linear(H=turn), law, on="block"))
    rows = run(system, 3.0, 0.02, accumulation=0.0, max_events=8)
    assert stepped(rows).any()
    fine = nsds.simulate(system, t_end=3.0, h=1e-4, scheme=nsds.moreau_jean(theta=0.5))
    np.testing.assert_allclose(rows["block"]["q"][-1], fine["block"]["q"][-1], atol=2e-3)
    assert abs(rows["block"]["v"][-1]).max() < 1e-9


def test_times_known_in_advance_are_still_met():
    rows = run(column(0.9, [0.1], [0.0]), 3.0, 1.0, max_events=2, time_events=[1.25, 2.5])
    at = rows[is_event(rows["status"]) & (rows["status"] & TIME_EVENT > 0)]
    assert 2.5 in at["t"]
    assert {1.25, 2.5} <= set(rows["t"])


def test_members_of_an_ensemble_and_runs_in_parts_have_the_same_bits():
    system = column(0.9, [0.1, 0.3, 0.6], [0, 0, -1.0])
    rows = run(system, 0.5, 0.05, max_events=3)
    assert stepped(rows).any()
    other = column(0.5, [0.2, 0.3, 0.6], [0, 0, 1.0])
    both = run(np.stack([other, system]), 0.5, 0.05, max_events=3)
    assert both[1]["balls"][: len(rows)].tobytes() == rows["balls"].tobytes()
    seen = []
    again = nsds.simulate(system, t_end=0.5, h=0.05, scheme=nsds.event_driven(max_events=3), callback=seen.append)
    assert len(seen) > 1
    assert again["balls"].tobytes() == rows["balls"].tobytes()


@examples(20)
@given(st.integers(0, 10**4))
def test_random_columns_gain_no_energy(seed):
    """But what it takes to lift what has sunk in a substep, of a length of 1e-2 / 64."""
    system, block = random_system(4 * seed)
    rows = run(system, 0.5, 0.01, max_events=2)
    assert block == 1
    assert gain_of(system, rows) < 1e-3
    assert rows["touch"]["y"].min() > -1e-9


@pytest.mark.parametrize(
    ("seed", "t_end", "why"),
    [(1777, 0.05, AFTER_NO_MODES), (4642, 0.05, AFTER_NO_MODES), (20321, 0.8, AFTER_MANY_EVENTS)],
)
def test_bodies_that_have_no_modes_or_turn_too_fast_are_handed_over(seed, t_end, why):
    """Lying boxes whose corners follow from each other, slip that turns too fast: short intervals, and the run says so once."""
    system = random_bodies(seed)
    with pytest.warns(RuntimeWarning, match="handed over to time stepping") as said:
        rows = run(system, t_end, 0.01, max_events=5000)
    ends = np.flatnonzero(stepped(rows))
    assert len(said) == 1
    assert rows["status"][ends[0]] & why
    assert (rows["t"][ends] - rows["t"][ends - 1]).max() <= 0.01 / 16
    assert gain_of_bodies(rows, system) < 1e-8
    with pytest.raises(nsds.SimulationError):
        run(system, t_end, 0.01, max_events=5000, hybrid=False)


@pytest.mark.parametrize("seed", [3100104, 800231])
def test_points_in_space_whose_slip_turns_within_rounding_are_handed_over(seed):
    system, _ = random_system(seed, in_space=True)
    with pytest.warns(RuntimeWarning, match="too short"):
        rows = run(system, 0.1, 0.01, max_events=5000, atol=1e-12)  # relative to their states one needs no interval
    assert (rows["status"][stepped(rows)] & AFTER_SHORT_STEPS > 0).all()
    assert gain_of(system, rows) < 1e-9
    assert rows["floor"]["y"].reshape(len(rows), -1)[:, ::3].min() > -1e-9


def test_intervals_that_follow_each_other_grow_and_few_events_are_tried_between():
    """Of a ball that may have one event between two rows each impact is too many; within h there are few intervals."""
    rows = run(column(0.9, [1e-3], [0.0]), 0.3, 0.1, accumulation=0.0, max_events=1)
    ends = np.flatnonzero(stepped(rows))
    lengths = rows["t"][ends] - rows["t"][ends - 1]
    assert lengths[0] == pytest.approx(0.1 / 1024)
    assert 4 < len(ends) < 3 * 7
    assert (lengths[1:6] <= 4.0001 * lengths[:5]).all()
    assert lengths.max() > 0.02


def _braked(t, q, v, z, out):
    out[0] = 5.0 * np.sign(v[0])


def test_a_force_of_the_user_that_jumps_with_the_velocity_is_stepped_over():
    """No step of the smooth motion is short enough where the mass stops; steps in time go to and fro there, by what forces do in one."""
    system, h = nsds.system(mass=nsds.lagrangian(mass=[1.0], fint=_braked, fext=[1.0], q=[0.0], v=[1.0])), 0.05
    with pytest.raises(nsds.SimulationError, match="too short") as failure:
        run(system, 0.5, h)
    assert failure.value.status == STEP_COLLAPSED
    rows = run(system, 0.5, h, hybrid=True)
    stops = stepped(rows)
    assert abs(rows["t"][stops][0] - 0.25 - h / 1024) < 1e-6
    assert abs(rows["mass"]["v"][stops]).max() <= 6.0 * h / SUBSTEPS
    assert abs(rows["mass"]["q"][-1, 0] - 0.125) <= 0.5 * 6.0 * h / SUBSTEPS


@pytest.mark.parametrize("e", [0.0, 0.5])
def test_a_box_in_space_comes_to_rest(e):
    """Rigid bodies, their contacts found as they go, redundant ones: of four corners no two press against each other."""
    part = nsds.rigid_bodies(1.0, [0.02, 0.03, 0.04], q=[0, 0, 0.6, 0.92, 0.3, 0.2, 0.15] / np.array([1] * 3 + [np.sqrt(0.9989)] * 4),
                             v=[0.3, 0, 0, 1, 2, 0], fext=[0, 0, -G])  # fmt: skip
    law = nsds.newton_impact_friction(e_n=e, mu=0.4, dimension=3)
    box = nsds.shapes.box([0.4, 0.3, 0.2])
    system = nsds.system(box=part, hits=nsds.collisions({"box": box}, law, world=nsds.shapes.plane()))
    rows = run(system, 3.0, 0.02, max_events=4)
    assert stepped(rows).any()
    assert abs(rows["box"]["v"][rows["t"] > 2.0]).max() < 1e-20
    n = int(rows["hits"]["n"][-1])
    assert n >= 3
    forces = rows["hits"]["lambda"][-1].reshape(-1, 3)[:n]
    assert abs(forces[:, 0].sum() - G) < 1e-9
    assert abs(forces[:, 1:]).max() < 1e-9
    assert abs(np.linalg.norm(rows["box"]["q"][:, 3:], axis=1) - 1).max() < 1e-12


def test_a_hinged_box_comes_to_rest_on_the_ground():
    """Joints and contacts of shapes in one interval: the hinge holds to rounding, and the box rests where events alone put it."""
    box = nsds.rigid_bodies(1.0, [0.02, 0.08, 0.08], q=[0.5, 0, 1.0, 1, 0, 0, 0], v=np.zeros(6), fext=[0, 0, -G])
    hinge = nsds.interaction(nsds.joints.hinge([-0.5, 0, 0], [0, 1, 0]), nsds.equality(), on="box")
    law, shape = nsds.newton_impact_friction(e_n=0.7, mu=0.4, dimension=3), nsds.shapes.box([1.0, 0.1, 0.1])
    system = nsds.system(box=box, hinge=hinge, hits=nsds.collisions({"box": shape}, law, world=nsds.shapes.plane()))
    rows = run(system, 3.0, 0.02, max_events=2)
    assert stepped(rows).any()
    assert abs(rows["hinge"]["y"]).max() < 1e-12
    assert abs(rows["box"]["v"][-1]).max() < 1e-12
    exact = nsds.simulate(system, t_end=3.0, h=0.02, scheme=nsds.event_driven())
    np.testing.assert_allclose(rows["box"]["q"][-1], exact["box"]["q"][-1], atol=1e-9)


def test_rows_that_are_not_events_have_no_such_bit():
    rows = run(column(0.5, [0.1], [0.0]), 0.1, 0.01)
    assert not (rows["status"][~is_event(rows["status"])]).any()
    assert not stepped(rows).any()
    assert (rows["status"] & EVENT > 0).any() == is_event(rows["status"]).any()


def test_a_run_ends_where_no_modes_are_found_at_a_row():
    """Moments of rolling at two corners of a plate are not unique: no modes are found at rest, and steps in time lead to each row."""
    low, mu, pull = 0.2, 0.1, 0.3
    plate = nsds.shapes.rectangle([0.6, 2 * low])
    law = nsds.newton_impact_rolling_friction(0.4, mu, 2e-3, dimension=2)
    body = nsds.planar_bodies(1.0, 4e-3, q=[0, low + 0.02, 0], v=[0.5, -0.5, 0], fext=[pull, -G])
    slides = nsds.system(body=body, hits=nsds.collisions({"body": plate}, law, world=nsds.shapes.half_plane()))
    rows = run(slides, 0.17, 1e-3)
    assert rows["t"][-1] == pytest.approx(0.17)
    assert len(rows) < 400
    late = rows[rows["t"] > 0.15]
    t, x, v = late["t"], late["body"]["q"], late["body"]["v"]
    np.testing.assert_allclose(x[:, 1], low, atol=1e-9)
    np.testing.assert_allclose((v[-1, 0] - v[0, 0]) / (t[-1] - t[0]), pull - mu * G, rtol=1e-6)
