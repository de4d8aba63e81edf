"""Event-driven runs of Lagrangian systems against closed forms, SciPy with its events, and published runs of the same kind."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import nsds
from nsds.status import (
    ACCUMULATION,
    AFTER_JAM,
    CLOSED,
    EVENT,
    FRICTION,
    JUMP,
    NOT_COMPUTED,
    OPENED,
    PAINLEVE,
    TIME_EVENT,
    TOO_MANY_EVENTS,
    VIOLATED,
    is_event,
)
from tests.benchmarks.fuzz_events import fault_of
from tests.paths import ANALYSIS, REFERENCE
from tests.reference_cases import needs_collection
from tests.strategies import examples

G = 9.81
FLOWS = ("exact", "dopri5")
linear = nsds.lagrangian_linear_relation
both_flows = pytest.mark.parametrize("flow", FLOWS)


def run(system, t_end, h=0.1, **options):
    return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven(**options))


def happened(rows, bit):
    """Rows after events at which something of a kind happened, and those before them."""
    after = np.flatnonzero(is_event(rows["status"]) & (rows["status"] & bit > 0))
    return rows[after], rows[after - 1]


def falling_ball(e, height=1.0, **terms):
    ball = nsds.lagrangian_linear(M=[1.0], fext=[-G], q=[height], v=[0.0], **terms)
    return nsds.system(ball=ball, floor=nsds.interaction(linear(H=[[1.0]]), nsds.newton_impact(e=e), on="ball"))


# ----------------------------------------------------------------------------------------------------------- impacts
@both_flows
def test_bouncing_ball_to_its_rest(flow):
    """``t_n = t_1 + 2 t_1 (e + ... + e^(n-1))``, and rest at ``t_1 (1 + e) / (1 - e)``."""
    e, first = 0.8, math.sqrt(2 / G)
    rows = run(falling_ball(e), 5.0, flow=flow, rtol=1e-12, atol=1e-14)
    after, before = happened(rows, JUMP)
    n = np.arange(len(after))
    tolerance = 1e-14 if flow == "exact" else 1e-11
    np.testing.assert_allclose(after["t"], first + 2 * first * (e - e ** (n + 1)) / (1 - e), atol=tolerance)
    np.testing.assert_allclose(before["floor"]["ydot"], -G * first * e**n, rtol=1e-9)
    np.testing.assert_allclose(after["floor"]["lambda"][:-1], (1 + e) * G * first * e ** n[:-1], rtol=1e-9)  # the last closes the contact
    end, _ = happened(rows, ACCUMULATION)
    np.testing.assert_allclose(end["t"], [first * (1 + e) / (1 - e)], atol=1e-11)
    assert rows["floor"]["lambda"][-1] == pytest.approx(G, rel=1e-12)
    assert rows["ball"]["v"][-1] == 0
    assert (rows["t"][1:] >= rows["t"][:-1]).all()


@both_flows
def test_a_plastic_impact_stays(flow):
    rows = run(falling_ball(0.0), 2.0, flow=flow)
    after, _ = happened(rows, JUMP)
    assert len(after) == 1
    assert after["status"][0] == EVENT | JUMP | CLOSED
    late = rows[rows["t"] > after["t"][0]]
    np.testing.assert_allclose(late["floor"]["lambda"], G, rtol=1e-12)
    assert abs(late["ball"]["q"]).max() < 1e-15


def forced(t, z, out):
    out[0] = math.cos(z[0] * t)


def test_a_thousand_impacts_of_a_forced_oscillator_are_exact():
    """``x'' + 2 zeta x' + x = cos(omega t)`` above a stop at 0: flights in closed form, roots by bisection on what no sampling misses."""
    zeta, omega, e = 0.05, 2.6, 0.8
    oscillator = nsds.lagrangian_linear(M=[1.0], C=[2 * zeta], K=[1.0], fext=forced, z=[omega], q=[0.3], v=[0.0])
    system = nsds.system(mass=oscillator, stop=nsds.interaction(linear(H=[[1.0]]), nsds.newton_impact(e=e), on="mass"))
    after, _ = happened(run(system, 2700.0, h=10.0), JUMP)
    assert len(after) > 1000
    t, x, v = 0.0, 0.3, 0.0
    for k in range(1000):
        flight = flight_of(zeta, omega, t, x, v)
        times = t + np.linspace(1e-4, 12.0, 6001)
        last = np.argmax(flight(times)[0] < 0)
        t_new = brentq(lambda s: flight(s)[0], times[last - 1], times[last], xtol=1e-15, rtol=1e-15)  # noqa: B023
        assert abs(after["t"][k] - t_new) < 1e-12 * max(t_new, 1.0)
        t, x, v = t_new, 0.0, -e * flight(t_new)[1]


@pytest.mark.parametrize("periods", [4_000, 100_000])
def test_forces_that_depend_on_time_are_known_late_in_a_run_too(periods):
    """What the rounding of t does to a force does not make its polynomials worse, and steps shorter and shorter."""
    omega, late = 3.8, 2 * math.pi * periods / 3.8
    oscillator = nsds.lagrangian_linear(M=[1.0], C=[0.1], K=[1.0], fext=forced, z=[omega], q=[0.3], v=[0.0])
    stop = nsds.interaction(linear(H=[[1.0]]), nsds.newton_impact(e=0.8), on="mass")
    (one, _), (other, _) = (happened(run(nsds.system(mass=oscillator, stop=stop, t=t), t + 40.0, h=10.0), JUMP) for t in (0.0, late))
    assert len(one) == len(other) > 3
    np.testing.assert_allclose(other["t"] - late, one["t"], atol=1e-8)


def flight_of(zeta, omega, t0, x0, v0):
    """(x, v) at times, of the free motion from (t0, x0, v0)."""
    gain = 1 / (1 - omega**2 + 2j * zeta * omega)
    wd = math.sqrt(1 - zeta**2)

    def steady(t):
        z = gain * np.exp(1j * omega * t)
        return z.real, (1j * omega * z).real

    a, da = x0 - steady(t0)[0], v0 - steady(t0)[1]
    b = (da + zeta * a) / wd

    def motion(t):
        s, (x, v) = t - t0, steady(t)
        c, d, decay = np.cos(wd * s), np.sin(wd * s), np.exp(-zeta * s)
        return x + decay * (a * c + b * d), v + decay * ((b * wd - zeta * a) * c - (a * wd + zeta * b) * d)

    return motion


@pytest.mark.parametrize("tie", [0.0, 50.0])
def test_balls_that_are_alike_bounce_alike(tie):
    """Twenty side by side on one floor, or a chain of them by springs that is dropped flat: the same bits, by either flow."""
    n = 20
    K = tie * (np.diag(np.r_[1.0, np.full(n - 2, 2.0), 1.0]) - np.eye(n, k=1) - np.eye(n, k=-1))
    for flow in FLOWS:
        balls = nsds.lagrangian_linear(M=0.7 * np.eye(n), K=K, fext=np.full(n, -G), q=np.full(n, 0.3), v=np.zeros(n))
        system = nsds.system(balls=balls, floor=nsds.interaction(linear(H=np.eye(n)), nsds.newton_impact(e=0.7), on="balls"))
        rows = run(system, 2.5, flow=flow)
        assert (rows["balls"]["q"] == rows["balls"]["q"][:, :1]).all()
        assert (rows["floor"]["lambda"] == rows["floor"]["lambda"][:, :1]).all()
        assert len(happened(rows, JUMP)[0]) > 30


def test_a_row_of_balls_hands_the_motion_on():
    """Newton's law at one instant: with e = 0 all balls that touch go on together; momentum is kept."""
    n = 5
    H = np.zeros((n - 1, n))
    for k in range(n - 1):
        H[k, k], H[k, k + 1] = -1.0, 1.0
    q = np.r_[0.0, 1.0 + np.arange(n - 1)]
    balls = nsds.lagrangian_linear(M=np.ones(n), q=q, v=np.r_[1.0, np.zeros(n - 1)])
    relation = linear(H=H, b=-np.r_[0.5, np.ones(n - 2)])
    rows = run(nsds.system(balls=balls, touch=nsds.interaction(relation, nsds.newton_impact(e=0.0), on="balls")), 1.0)
    np.testing.assert_allclose(rows["balls"]["v"][-1], 1 / n, rtol=1e-14)
    assert len(happened(rows, JUMP)[0]) == 1


# -------------------------------------------------------------------------------------------- contacts that stay and open
def shaken(t, z, out):
    out[0] = -9.81 + z[0] * z[1] ** 2 * math.sin(z[1] * t)


@both_flows
def test_a_ball_leaves_a_vibrating_table_when_that_falls_faster(flow):
    """Rest on the table is left at ``sin(omega t) = g / (A omega^2)``, with gap, speed and acceleration zero."""
    A, omega = 0.1, 12.0
    ball = nsds.lagrangian_linear(M=[1.0], fext=shaken, z=[A, omega], q=[0.0], v=[0.0])
    system = nsds.system(ball=ball, table=nsds.interaction(linear(H=[[1.0]]), nsds.newton_impact(e=0.5), on="ball"))
    rows = run(system, 2.0, flow=flow, rtol=1e-11, atol=1e-13)
    leaves = math.asin(G / (A * omega**2)) / omega
    opened, before = happened(rows, OPENED)
    period = 2 * math.pi / omega
    np.testing.assert_allclose(opened["t"], leaves + period * np.round((opened["t"] - leaves) / period), atol=1e-9)
    assert len(opened) > 1
    assert abs(before["table"]["lambda"]).max() < 1e-9
    assert rows["table"]["y"].min() > -1e-12
    t = rows["t"]
    flown = rows[(t > leaves) & (t < happened(rows, JUMP)[0]["t"][0])]  # exact flight from there
    s = flown["t"] - leaves
    z, dz = A * np.sin(omega * leaves), A * omega * np.cos(omega * leaves)
    np.testing.assert_allclose(flown["ball"]["q"][:, 0], z + dz * s - G * s**2 / 2 - A * np.sin(omega * flown["t"]), atol=1e-10)


# ------------------------------------------------------------------------------------------------------------- friction
def block(angle, mu, v, **terms):
    force = {"fext": [-G * math.sin(angle), -G * math.cos(angle)]} | terms
    body = nsds.lagrangian_linear(M=[1.0, 1.0], q=[0.0, 0.0], v=[v, 0.0], **force)
    return nsds.system(
        block=body, plane=nsds.interaction(linear(H=[[0, 1.0], [1.0, 0]]), nsds.newton_impact_friction(e_n=0.0, mu=mu), on="block")
    )


@both_flows
@pytest.mark.parametrize(("angle", "mu"), [(0.3, 0.5), (0.5, 0.3)])
def test_a_block_that_slides_up_an_incline_stops_and_stays_or_slides_back(flow, angle, mu):
    rows = run(block(angle, mu, 2.0), 1.0, flow=flow)
    braking = G * (math.sin(angle) + mu * math.cos(angle))
    stops = 2.0 / braking
    changed, _ = happened(rows, FRICTION)
    np.testing.assert_allclose(changed["t"], [stops], rtol=1e-12)
    slides = max(G * (math.sin(angle) - mu * math.cos(angle)), 0.0)
    np.testing.assert_allclose(rows["block"]["q"][-1, 0], 2.0 / braking - slides * (1 - stops) ** 2 / 2, rtol=1e-10)
    assert rows["plane"]["active"][-1].tolist() == [1, slides == 0]
    np.testing.assert_allclose(rows["plane"]["lambda"][-1, 1], G * min(math.sin(angle), mu * math.cos(angle)), rtol=1e-10)


def pulled(t, z, out):
    out[0], out[1] = 5 * t, -9.81


@both_flows
def test_a_block_that_is_pulled_begins_to_slide(flow):
    rows = run(block(0.0, 0.5, 0.0, fext=pulled), 2.0, flow=flow)
    slips = 0.5 * G / 5
    np.testing.assert_allclose(happened(rows, FRICTION)[0]["t"], [slips], rtol=1e-9)
    np.testing.assert_allclose(rows["block"]["q"][-1, 0], 5 * (2 - slips) ** 3 / 6, rtol=1e-8)


def test_a_block_in_space_stops_on_a_curved_path():
    angle, mu = 0.3, 0.4
    body = nsds.lagrangian_linear(M=np.ones(3), fext=[-G * math.sin(angle), 0, -G * math.cos(angle)], q=np.zeros(3), v=[0, 2.0, 0])
    law = nsds.newton_impact_friction(e_n=0.0, mu=mu, dimension=3)
    system = nsds.system(block=body, plane=nsds.interaction(linear(H=[[0, 0, 1.0], [1.0, 0, 0], [0, 1.0, 0]]), law, on="block"))
    rows = run(system, 2.0)

    def rate(t, x):
        speed = np.hypot(x[2], x[3])
        friction = mu * G * math.cos(angle) / speed
        return [x[2], x[3], -G * math.sin(angle) - friction * x[2], -friction * x[3]]

    def stops(t, x):
        return np.hypot(x[2], x[3]) - 1e-9

    stops.terminal = True
    path = solve_ivp(rate, (0, 2), [0, 0, 0, 2.0], events=stops, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(happened(rows, FRICTION)[0]["t"], path.t[-1:], atol=1e-8)
    np.testing.assert_allclose(rows["block"]["q"][-1, :2], path.y[:2, -1], atol=1e-9)
    np.testing.assert_allclose(rows["plane"]["lambda"][-1], [G * math.cos(angle), G * math.sin(angle), 0], atol=1e-9)
    slides = rows[(rows["t"] > 0) & (rows["t"] < path.t[-1] - 1e-6)]
    np.testing.assert_allclose(np.linalg.norm(slides["plane"]["lambda"][:, 1:], axis=1), mu * G * math.cos(angle), rtol=1e-12)


@both_flows
@pytest.mark.parametrize(
    ("limit", "omega", "largest"), [(0.6, 0.6, 1.44322413170776), (0.9, 0.8, 0.0683453800022), (0.8, 0.5, 1.02078517361114)]
)
def test_den_hartog_with_sticking(flow, limit, omega, largest):
    """``x'' + x + f sgn(x') = cos(omega t)``: amplitudes of stick-slip motions (computed with 13 digits by a program of its own)."""
    period = 2 * math.pi / omega
    oscillator = nsds.lagrangian_linear(M=[1.0], K=[1.0], fext=forced, z=[omega], q=[1.3], v=[0.0])
    system = nsds.system(mass=oscillator, brake=nsds.interaction(linear(H=[[1.0]]), nsds.dry_friction(limit), on="mass"))
    rows = run(system, 60 * period, h=period, flow=flow)
    late = rows[rows["t"] > 57 * period]
    np.testing.assert_allclose(late["mass"]["q"].max(), largest, rtol=0, atol=1e-12 if flow == "exact" else 1e-8)


def rod_ends(q, z, out):
    out[0], out[1] = q[1] - np.sin(q[2]), q[0] - np.cos(q[2])


def test_a_rod_that_jams_says_so():
    """Painlevé: the tip of a rod that slides fast, with mu large, digs in."""
    rod = nsds.lagrangian(mass=[1.0, 1.0, 1 / 3], fext=[0, -G, 0], q=[0.0, math.sin(1.0), 1.0], v=[-30.0, 0.0, 0.0])
    ground = nsds.interaction(nsds.scleronomous(rod_ends, m=2), nsds.newton_impact_friction(e_n=0.0, mu=2.0), on="rod")
    system = nsds.system(rod=rod, ground=ground)
    with pytest.raises(nsds.SimulationError, match="Painlevé") as caught:
        run(system, 1.0, hybrid=False)
    assert caught.value.status == PAINLEVE
    assert "ground" in str(caught.value)
    with pytest.warns(RuntimeWarning, match="Painlevé"):
        rows = run(system, 0.2)
    jams = is_event(rows["status"]) & (rows["status"] & AFTER_JAM > 0)
    assert jams.sum() == 1
    assert abs(rows["ground"]["ydot"][jams, 1]).max() < 0.1  # an impulse has stopped the tip
    assert rows["ground"]["y"][:, 0].min() > -1e-9


# ----------------------------------------------------------------------------------------------------- nonlinear systems
def string(q, z, out):
    out[0] = 1 - q[0] ** 2 - q[1] ** 2


@pytest.mark.parametrize("law", [nsds.newton_impact(e=0.9), nsds.equality()])
def test_pendulum_on_a_string_and_on_a_rod(law):
    start = math.pi / 3
    bob = nsds.lagrangian(mass=[1.0, 1.0], fext=[0, G], q=[math.sin(start), math.cos(start)], v=[0, 0])
    rows = run(nsds.system(bob=bob, string=nsds.interaction(nsds.scleronomous(string, m=1), law, on="bob")), 5.0, rtol=1e-10)
    exact = solve_ivp(lambda t, x: [x[1], -G * np.sin(x[0])], (0, 5), [start, 0], method="DOP853", rtol=1e-13, atol=1e-13, t_eval=rows["t"])
    angle, rate = exact.y
    np.testing.assert_allclose(rows["bob"]["q"], np.array([np.sin(angle), np.cos(angle)]).T, atol=1e-8)
    np.testing.assert_allclose(rows["bob"]["v"], np.array([np.cos(angle) * rate, -np.sin(angle) * rate]).T, atol=1e-8)
    np.testing.assert_allclose(rows["string"]["lambda"].reshape(-1)[1:], ((G * np.cos(angle) + rate**2) / 2)[1:], atol=1e-7)
    assert abs(rows["string"]["y"]).max() < 1e-14
    assert not is_event(rows["status"]).any()


def gravity(t, q, v, z, out):
    out[0] = 9.81 * math.sin(q[0]) + 0.1 * v[0]


def wall(q, z, out):
    out[0] = math.sin(q[0]) + 0.3


def pendulum(v=2.5):
    bob = nsds.lagrangian(mass=[1.0], fint=gravity, q=[0.0], v=[v])
    return nsds.system(bob=bob, wall=nsds.interaction(nsds.scleronomous(wall, m=1), nsds.newton_impact(e=0.7), on="bob"))


def impacts_by_scipy(t_end, v=2.5, e=0.7):
    """Times of impacts and the last state, by SciPy's method of order 8 with events."""
    wall.terminal = True

    def gap(t, x):
        return np.sin(x[0]) + 0.3

    gap.terminal, gap.direction = True, -1
    t, x, times = 0.0, [0.0, v], []
    while t < t_end:
        flight = solve_ivp(lambda t, x: [x[1], -G * np.sin(x[0]) - 0.1 * x[1]], (t, t_end), x, "DOP853", events=gap, rtol=1e-13, atol=1e-13)
        t, x = flight.t[-1], flight.y[:, -1].copy()
        if flight.status == 1:
            times.append(t)
            x[1] *= -e
    return np.array(times), x


def test_a_pendulum_at_a_wall_is_that_of_scipy_as_well_as_it_was_asked_for():
    times, last = impacts_by_scipy(4.0)
    errors = []
    for rtol in (1e-5, 1e-7, 1e-9, 1e-11):
        rows = run(pendulum(), 4.0, rtol=rtol, atol=rtol)
        after, _ = happened(rows, JUMP)
        assert len(after) == len(times)
        errors.append(max(abs(after["t"] - times).max(), abs(rows["bob"]["q"][-1, 0] - last[0])))
    assert errors[-1] < 1e-9
    assert all(error < 300 * rtol for error, rtol in zip(errors, (1e-5, 1e-7, 1e-9, 1e-11), strict=True))
    assert all(np.divide(errors[1:], errors[:-1]) < 0.1)


def test_the_step_of_rows_does_not_change_the_motion():
    coarse, fine = run(pendulum(), 4.0, h=1.0, rtol=1e-10), run(pendulum(), 4.0, h=0.01, rtol=1e-10)
    np.testing.assert_allclose(coarse["bob"]["q"][-1], fine["bob"]["q"][-1], atol=1e-8)
    np.testing.assert_allclose(happened(coarse, JUMP)[0]["t"], happened(fine, JUMP)[0]["t"], atol=1e-8)


# -------------------------------------------------------------------------------------------------------- time and rows
def switched(t, z, out):
    out[0] = 1.0 if t < 0.37 else -2.0


@both_flows
def test_switches_known_in_advance_are_met_exactly(flow):
    body = nsds.lagrangian_linear(M=[1.0], fext=switched, q=[0.0], v=[0.0])
    far = nsds.interaction(linear(H=[[1.0]], b=[5.0]), nsds.newton_impact(e=0.0), on="body")
    rows = run(nsds.system(body=body, far=far), 1.0, h=0.25, flow=flow, time_events=[0.37])
    assert 0.37 in rows["t"]
    assert len(happened(rows, TIME_EVENT)[0]) == 1
    s = 1.0 - 0.37
    np.testing.assert_allclose(rows["body"]["q"][-1, 0], 0.37**2 / 2 + 0.37 * s - s**2, rtol=1e-13 if flow == "exact" else 1e-7)


def test_rows_are_at_every_step_and_twice_at_events():
    rows = run(falling_ball(0.5), 1.0, h=0.1)
    grid, events = rows[~is_event(rows["status"])], rows[is_event(rows["status"])]
    np.testing.assert_allclose(grid["t"], 0.1 * np.arange(11), atol=1e-15)
    assert (events["t"][::2] == events["t"][1::2]).all()
    assert (events["ball"]["q"][::2] == events["ball"]["q"][1::2])[:4].all()
    assert nsds.advice(int(events["status"][1])) == "event: impact"


def test_members_of_an_ensemble_have_events_of_their_own():
    systems = np.repeat(falling_ball(0.5), 3)
    systems["floor"]["e"] = [0.0, 0.5, 0.9]
    rows = run(systems, 1.0)
    for m, e in enumerate((0.0, 0.5, 0.9)):
        alone = run(falling_ball(e), 1.0)
        there = rows[m][rows[m]["status"] != NOT_COMPUTED]
        assert there.tobytes() == alone.tobytes()


def test_restarts_go_on():
    rows = run(falling_ball(0.7), 2.0)
    half = run(nsds.restart(falling_ball(0.7), rows[np.flatnonzero((rows["step"] == 10) & (rows["status"] == 0))[0]]), 2.0)
    np.testing.assert_allclose(happened(half, JUMP)[0]["t"], happened(rows[rows["t"] > 1.0], JUMP)[0]["t"], rtol=1e-13)


def test_runs_never_hang():
    with pytest.raises(nsds.SimulationError, match=r"'floor'.*more events") as caught:
        run(falling_ball(0.9), 9.0, h=9.0, max_events=20, hybrid=False)
    assert caught.value.status == TOO_MANY_EVENTS
    assert len(happened(caught.value.trajectory, JUMP)[0]) == 20


def jumping_floor(t, q, z, out):
    out[0] = q[0] - (0.3 if t >= 0.4 else 0.0)


def test_a_floor_that_jumps_says_where():
    """From 0 to 0.3 at a ball that is 0.2152 high: no impact, which would have the speed of a difference quotient."""
    ball = nsds.lagrangian(mass=[1.0], fext=[-G], q=[1.0], v=[0.0])
    system = nsds.system(ball=ball, floor=nsds.interaction(nsds.rheonomous(jumping_floor, m=1), nsds.newton_impact(e=0.5), on="ball"))
    with pytest.raises(nsds.SimulationError, match=r"t = 0\.4\).*'floor'.*its gap jumps") as caught:
        run(system, 1.0)
    assert caught.value.status == VIOLATED
    np.testing.assert_allclose(caught.value.trajectory["ball"]["q"][-1], 1 - 0.08 * G, rtol=0, atol=1e-9)


def test_a_coordinate_without_mass_is_refused_by_its_row():
    """Stiffness gives it a place under time stepping; event by event M alone counts, and the message says so."""
    train = nsds.system(train=nsds.lagrangian_linear(M=[1.0, 0.0], K=[[1.0, -1.0], [-1.0, 2.0]], q=[0.0, 0.0], v=[1.0, 0.0]))
    q = nsds.simulate(train, t_end=1.0, h=1e-3)["train"]["q"][-1]
    np.testing.assert_allclose(q, np.sin(math.sqrt(0.5)) * math.sqrt(2) * np.array([1.0, 0.5]), rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match=r"part 'train': the iteration matrix M is singular, without C and K: row 1 is zero"):
        nsds.simulate(train, t_end=1.0, h=0.1, scheme=nsds.event_driven())


def test_what_is_not_treated_is_refused(tmp_path):
    ball = nsds.lagrangian_linear(M=[1.0], fext=[-G], q=[1.0], v=[0.0])
    with pytest.raises(ValueError, match="number of rows"):
        nsds.stream(falling_ball(0.5), tmp_path / "run.h5", t_end=1.0, h=0.1, scheme=nsds.event_driven())
    two = nsds.system(ball=ball, other=ball, floor=nsds.interaction(linear(H=[[1.0]]), nsds.newton_impact(e=0.5), on="ball"))
    with pytest.raises(ValueError, match="several schemes"):
        nsds.simulate(two, t_end=1.0, h=0.1, scheme={"ball": nsds.event_driven()})
    with pytest.raises(ValueError, match="flow='exact'"):
        run(pendulum(), 1.0, flow="exact")


@examples(30)
@given(st.integers(0, 10**6))
def test_random_systems(seed):
    assert fault_of(seed, t_end=0.6) == ""


@examples(15)
@example(832935)  # slips that begin, reverse and turn
@given(st.integers(0, 10**6))
def test_random_systems_in_space(seed):
    assert fault_of(seed, t_end=0.4, in_space=True) == ""


@pytest.mark.parametrize("seed", [8796, 9171, 9499, 9644, 1001924])
def test_guards_that_begin_at_zero_do_not_come_again_at_once(seed):
    """Gaps of fourth order, speeds of slip and heights of flights near rounding."""
    assert fault_of(seed) == ""


@pytest.mark.parametrize("seed", [880, 2524, 78064, 103384, 309140, 702472])
def test_a_row_of_balls_that_once_did_not_come_to_an_end(seed):
    """Impacts of six balls at one time, and at another; a force that begins of second order; two that move side by side from 0;
    a choice of modes that comes again every other time; gaps of 1e-77; a contact whose force is next to nothing and opens."""
    assert fault_of(seed) == ""


# ------------------------------------------------------------------------------------------------------- published runs
CORNERS = np.array([0.0, 1.050328174371336, 1.22173047639603])  # of the cam's profile, angles from the lowest point of its rise
# speed -> periods of the attractor, what repeats: distance and its rate at the start of the rise, phases of impacts in periods; from exact
# flights in the inertial frame, confirmed by DOP853 in that of the cam.
ORBITS = {
    358.0: (3, (0.06341575, 8.3425468), (0.26231167, 0.54801678, 0.94009146, 1.1428655, 1.58646994)),
    700.0: (1, (1.32791229, -66.20684191), (0.181399127,)),
}


@pytest.mark.parametrize("rpm", ORBITS)
def test_cam_follower_comes_to_its_attractor(rpm):
    periods, state, phases = ORBITS[rpm]
    period, n = 60 / rpm, 300
    angles = np.r_[CORNERS, 3.14159265 - CORNERS, 3.14159265 / 2]
    corners = (np.arange(n + 1)[:, None] + np.sort(angles) / (2 * 3.14159265)).ravel() * period
    rows = run(nsds.examples.cam_follower(rpm=rpm), n * period, h=period, rtol=1e-11, atol=1e-13, time_events=corners)
    ends = rows[rows["status"] == 0][-periods:]["follower"]
    found = np.abs(np.c_[ends["q"], ends["v"]] - state).max(axis=1).argmin()
    np.testing.assert_allclose([ends["q"][found, 0], ends["v"][found, 0]], state, atol=2e-6)
    after, _ = happened(rows, JUMP)
    shift = round(rows[rows["status"] == 0][-periods:]["t"][found] / period)
    seen = (after["t"][-20:] / period - shift) % periods
    for phase in phases:
        assert np.abs(seen - phase).min() < 2e-8


def string_length(q, z, out):
    out[0] = 1.0 - q[0] ** 2 - q[1] ** 2


def test_a_pendulum_on_a_string_is_that_on_a_rod_as_long_as_the_string_is_taut():
    mass = nsds.lagrangian_linear([1.0, 1.0], fext=[0.0, G], q=[math.sin(math.pi / 3), math.cos(math.pi / 3)], v=[0.0, 0.0])
    string = nsds.interaction(nsds.scleronomous(string_length, m=1), nsds.newton_impact(0.9), on="mass")
    rows = run(nsds.system(mass=mass, string=string), 10.0, h=0.05)
    angle = solve_ivp(
        lambda t, y: [y[1], -G * math.sin(y[0])], (0, rows["t"][-1]), [math.pi / 3, 0.0], "DOP853", rows["t"], rtol=1e-13, atol=1e-14
    ).y
    assert (rows["status"] == 0).all()
    np.testing.assert_allclose(rows["mass"]["q"], np.stack([np.sin(angle[0]), np.cos(angle[0])], axis=1), atol=1e-7)
    np.testing.assert_allclose(2 * rows["string"]["lambda"][1:], G * np.cos(angle[0, 1:]) + angle[1, 1:] ** 2, atol=1e-6)
    assert abs(rows["string"]["y"]).max() < 1e-14


def body_of_reference(e, m=1.0, q=(1.0, 0.0, 0.0), **terms):
    ball = nsds.lagrangian_linear(M=[m, m, 0.006 * m], fext=[-G * m, 0, 0], q=list(q), v=[0.0, 0.0, 0.0], **terms)
    return nsds.system(ball=ball, floor=nsds.interaction(linear(H=[[1.0, 0, 0]]), nsds.newton_impact(e=e), on="ball"))


PUBLISHED = {
    "ed_bouncing_ball": (body_of_reference(0.9), 8.5, 44),
    "ed_bouncing_ball_resting": (body_of_reference(0.0), 8.5, 1),
    "ed_linear_oscillator": (body_of_reference(0.9, 1e-3, (1.0, 1e-3, 0.0), K=[100.0, 100.0, 0.0]), 7.07, 100),
}


@pytest.mark.reference
@needs_collection
@both_flows
@pytest.mark.parametrize("case", PUBLISHED)
def test_published_run_in_full(case, flow):
    system, t_end, n = PUBLISHED[case]
    with np.load(REFERENCE / case / "ref.npz") as file:
        reference = dict(file)
    rows = run(system, t_end, h=0.005, flow=flow, rtol=1e-12, atol=1e-14)
    after, before = happened(rows, JUMP)
    first = np.flatnonzero(np.diff(reference["t"]) == 0)[:n]
    np.testing.assert_allclose(after["t"][:n], reference["t"][first], atol=1e-9)
    np.testing.assert_allclose(before["ball"]["v"][:n, 0], reference["vx"][first], rtol=1e-8)
    is_grid = np.ones(len(reference["t"]), bool)
    is_grid[np.flatnonzero(np.diff(reference["t"]) == 0)] = is_grid[np.flatnonzero(np.diff(reference["t"]) == 0) + 1] = False
    if case != "ed_linear_oscillator":
        assert len(after) == n
        grid = rows[~is_event(rows["status"])][1 : 1 + is_grid.sum()]
        np.testing.assert_allclose(grid["ball"]["q"][:, 0], reference["x"][is_grid], atol=1e-8)
    assert rows["floor"]["lambda"][-1] == pytest.approx(reference["f_x"][-1], abs=1e-8)


# -------------------------------------------------------------------------------- accumulations over several contacts
def corners(q, z, out):
    c, s = np.cos(q[2]), np.sin(q[2])
    for k in range(4):
        x, y = -z[0] if k in (0, 3) else z[0], -z[1] if k < 2 else z[1]
        out[k] = q[1] + s * x + c * y


def rough_corners(q, z, out):
    c, s = np.cos(q[2]), np.sin(q[2])
    for k in range(4):
        x, y = -z[0] if k in (0, 3) else z[0], -z[1] if k < 2 else z[1]
        out[2 * k], out[2 * k + 1] = q[1] + s * x + c * y, q[0] + c * x - s * y


def tumbling_box(e, mu, length=1.0, time=1.0):
    """A box that falls on a corner, in units of length and time; its angle is a coordinate."""
    a, b = 0.256 * length, 0.212 * length
    law = nsds.newton_impact_friction(e_n=e, mu=mu) if mu else nsds.newton_impact(e=e)
    relation = nsds.scleronomous(rough_corners if mu else corners, m=8 if mu else 4, z=[a, b])
    box = nsds.lagrangian(
        mass=[1.0, 1.0, (a * a + b * b) / 3], fext=[0, -G * length / time**2, 0], z=[0.0],
        q=[0, length, -1.2], v=[0.7 * length / time, 0, 2.0 / time],
    )  # fmt: skip
    return nsds.system(box=box, floor=nsds.interaction(relation, law, on="box"))


@pytest.mark.parametrize(("length", "time"), [(1.0, 1.0), (1e-6, 1.0), (1e6, 1e3)])
@pytest.mark.parametrize(("e", "mu"), [(0.0, 0.0), (0.3, 0.3), (0.7, 0.0), (0.7, 0.8)])
def test_a_box_tumbles_to_rest_on_its_side(e, mu, length, time):
    rows = run(tumbling_box(e, mu, length, time), 6.0 * time, h=0.1 * time, atol=1e-12 * length, max_events=3000)
    y = rows["floor"]["y"][:, :: 2 if mu else 1]
    assert y.min() > -1e-9 * length
    assert (np.sort(y[-1])[:2] < 1e-9 * length).all()
    assert abs(rows["box"]["v"][-1, 1:] * [1.0, length]).max() < 1e-9 * length / time
    kinetic = rows["box"]["v"][:, 1] ** 2 / 2 + length**2 * (0.256**2 + 0.212**2) / 6 * rows["box"]["v"][:, 2] ** 2
    energy = kinetic + rows["box"]["v"][:, 0] ** 2 / 2 + G * length / time**2 * rows["box"]["q"][:, 1]
    assert np.diff(energy).max() < 1e-7 * G * (length / time) ** 2


def test_a_box_in_space_tumbles_to_rest():
    size, axis = np.array([0.6, 0.4, 0.3]), np.array([1.0, 0.3, 0.2, 0.1])
    inertia = np.diag(np.sum(size**2) - size**2) / 12
    part = nsds.rigid_bodies(1.0, inertia, q=[0, 0, 0.9, *(axis / np.linalg.norm(axis))], v=[0.3, 0.2, 0, 1.0, -2.0, 0.5], fext=[0, 0, -G])
    law = nsds.newton_impact_friction(e_n=0.3, mu=0.8, dimension=3)
    hits = nsds.collisions({"box": nsds.shapes.box(size)}, law, world=nsds.shapes.plane())
    rows = run(nsds.system(box=part, hits=hits), 4.0, max_events=3000)
    assert abs(rows["box"]["v"][-1]).max() < 1e-9
    assert rows["hits"]["n"][-1] == 4
    assert rows["hits"]["lambda"][-1, :, 0].sum() == pytest.approx(G, rel=1e-9)


def test_a_ball_without_weight_is_never_closed():
    """Between two walls speeds fall, but the flights become longer: nothing accumulates."""
    ball = nsds.lagrangian_linear(M=[1.0], q=[0.5], v=[1.0])
    walls = nsds.interaction(linear(H=[[1.0], [-1.0]], b=[0.0, 1.0]), nsds.newton_impact(e=0.5), on="ball")
    rows = run(nsds.system(ball=ball, walls=walls), 1e9, h=1e9, accumulation=1e-2)
    assert not happened(rows, ACCUMULATION)[0].size
    after = happened(rows, JUMP)[0]
    n = np.arange(len(after))
    assert len(after) > 25
    np.testing.assert_allclose(abs(after["ball"]["v"][:, 0]), 0.5 ** (n + 1), rtol=1e-12)


# ------------------------------------------------------------------------------------------------------ periodic orbits
def shaken_at(t, z, out):
    out[0] = math.cos(z[0] * t + z[1])


def orbit_with_an_impact(zeta, omega, r, n, sigma, v, phase):
    """From just after an impact over one orbit: (rows, what the state after it should be)."""
    T = 2 * math.pi * n / omega
    mass = nsds.lagrangian_linear(M=[1.0], C=[2 * zeta], K=[1.0], fext=shaken_at, z=[omega, phase], q=[sigma], v=[-r * v])
    stop = nsds.interaction(linear(H=[[-1.0]], b=[sigma]), nsds.newton_impact(e=r), on="mass")
    return run(nsds.system(mass=mass, stop=stop), 9 / 8 * T, h=T / 8)


# zeta, omega, r, n, sigma, impact speed and phase of the forcing there
IMPACTING = [
    (0.0, 1.3, 0.5, 1, 0.0, 1.6693979324232728, 0.22336908943317402),
    (0.02, 2.2, 0.5, 1, 0.0, 1.59363626577367, 2.2700193836542732),
    (0.05, 2.6, 0.8, 2, 0.3, 0.1304643332322078, 2.9836994045435814),
    (0.1, 4.2, 0.8, 2, 0.0, 0.6608116017621538, 2.453039304087361),
]


@pytest.mark.parametrize("row", IMPACTING)
def test_orbits_of_an_impact_oscillator_close(row):
    """One impact every n periods, from Shaw and Holmes' closed form."""
    rows = orbit_with_an_impact(*row)
    after, before = happened(rows, JUMP)
    np.testing.assert_allclose(after["t"], [2 * math.pi * row[3] / row[1]], rtol=1e-9)
    np.testing.assert_allclose(before["mass"]["v"][:, 0], [row[5]], rtol=1e-9)


def rubbing(f, omega, x_max, phase):
    """Den Hartog's oscillator from its upper turning point over one period."""
    T = 2 * math.pi / omega
    mass = nsds.lagrangian_linear(M=[1.0], K=[1.0], fext=shaken_at, z=[omega, phase], q=[x_max], v=[0.0])
    friction = nsds.interaction(linear(H=[[1.0]]), nsds.dry_friction(f), on="mass")
    return run(nsds.system(mass=mass, friction=friction), T, h=T / 16)


# f, omega, largest x and phase of the forcing there
RUBBING = [
    (0.1, 0.4, 1.1639302213151366, -0.21157495975809562),
    (0.2, 2.0, 0.31797973380564853, 2.8368999995743955),
    (0.5, 2.0, 0.22047927592204922, 2.293530574608312),
]


@pytest.mark.parametrize("row", RUBBING)
def test_den_hartogs_responses_close(row):
    """Two turning points a period, no sticking; largest x and phase from the closed form."""
    rows = rubbing(*row)
    turns, _ = happened(rows, FRICTION)
    assert rows["mass"]["q"][-1, 0] == pytest.approx(row[2], abs=1e-8)
    np.testing.assert_allclose(turns["t"][turns["t"] > 0][0], math.pi / row[1], rtol=1e-9)
    assert turns["mass"]["q"][turns["t"] > 0][0, 0] == pytest.approx(-row[2], abs=1e-8)


@pytest.mark.reference
@pytest.mark.skipif(not ANALYSIS.is_dir(), reason="the collection of analyses is not part of the package")
def test_periodic_orbits_in_full():
    with np.load(ANALYSIS / "impact_oscillator_period_n" / "ref.npz") as r:
        for row in zip(*(r[name].tolist() for name in ("zeta", "omega", "r", "n", "sigma", "v", "phase")), strict=True):
            test_orbits_of_an_impact_oscillator_close(row)
    with np.load(ANALYSIS / "den_hartog_response" / "ref.npz") as r:
        for row in zip(*(r[name].tolist() for name in ("f", "omega", "x_max", "phase")), strict=True):
            test_den_hartogs_responses_close(row)
