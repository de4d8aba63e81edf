"""Event-driven first-order systems in general: nonlinear relays, sources and operators of time, normal cones, accumulations, jumps.

Twins are closed forms, the exact motion of linear systems, and SciPy's solve_ivp with events at a tolerance of 1e-12.
"""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.optimize import brentq

import nsds
from nsds import status
from tests.analysis.models import PERIOD, C, L, R, buck
from tests.schemes.event_driven.test_first_order import clipper, driven_relay, oscillator, random_model, spiral, system_of, times_of

EVENTS = nsds.event_driven(rtol=1e-11, atol=1e-13)
DOPRI5 = nsds.event_driven(flow="dopri5", rtol=1e-11, atol=1e-13)


def fuller_surface(t, x, z, out):
    out[0] = x[0] + z[0] * x[1] * abs(x[1])


def fuller_normal(t, x, z, out):
    out[0, 0], out[0, 1] = 1.0, 2.0 * z[0] * abs(x[1])


def onto_the_second(t, lam, z, out):
    out[1] = lam[0]


def fuller(xi, start=(None, -1.0), normal=fuller_normal):
    """x1' = x2, x2' = u, u = -sgn(x1 + xi x2 |x2|), on the switching curve at the start."""
    relation = nsds.type1_relation(fuller_surface, onto_the_second, m=1, C=normal, z=[xi])
    x = [xi if start[0] is None else start[0], start[1]]
    return nsds.system(
        plant=nsds.first_order_linear([[0, 1.0], [0, 0]], x=x), switches=nsds.interaction(relation, nsds.relay(), on="plant")
    )


XI = [0.25, np.sqrt((np.sqrt(33) - 1) / 24), 0.15, 0.01, 0.45, 0.49]  # the second one is that of Fuller's optimal control


def fullers_times(xi, n):
    """Times of the first n switches from the switching curve on, and the time of their accumulation: closed form."""
    k = np.sqrt((0.5 - xi) / (0.5 + xi))
    return (1 + k) * (1 - k ** np.arange(1, n + 1)) / (1 - k), (1 + k) / (1 - k)


def fullers_state(xi, t):
    """State at t: between switches, at which speeds fall by k, a parabola."""
    k, end = np.sqrt((0.5 - xi) / (0.5 + xi)), fullers_times(xi, 1)[1]
    if t >= end:
        return [0.0, 0.0]
    n = np.floor(np.log1p(-t / end) / np.log(k) + 1e-12)
    v = -((-k) ** n)
    x, s, u = -xi * v * abs(v), t - end * (1 - k**n), -np.sign(v)
    return [x + v * s + u * s * s / 2, v + u * s]


def fullers_switches(xi, x, n):
    """Times of n switches from any state on, and of their accumulation, in 60 digits: parabolas meet the switching curve."""
    with localcontext() as context:
        context.prec = 60
        x, v, c, t, times = Decimal(x[0]), Decimal(x[1]), Decimal(xi), Decimal(0), []
        u = -1 if x + c * v * abs(v) > 0 else 1
        for _ in range(n):
            roots = []
            for sign in (1, -1):  # of the speed at the curve
                A, B, C = Decimal(u) / 2 + c * sign, v + 2 * c * sign * v * u, x + c * sign * v * v
                square = B * B - 4 * A * C
                both = [(-B + half) / (2 * A) for half in (square.sqrt(), -square.sqrt())] if square >= 0 else []
                roots += [root for root in both if root > Decimal("1e-45") and (v + u * root) * sign >= 0]
            d = min(roots)
            x, v, t, u = x + v * d + u * d * d / 2, v + u * d, t + d, -u
            times.append(float(t))
        k = ((1 - 2 * c) / (1 + 2 * c)).sqrt()
        return times, float(t + abs(v) * (1 + k) / (1 - k))


@pytest.mark.parametrize("normal", [fuller_normal, None])
@pytest.mark.parametrize("xi", XI)
def test_fullers_switches_accumulate_and_the_state_rests(xi, normal):
    """Speeds at switches fall by k, times between them too; closed form, case fuller_zeno of the collection."""
    times, end = fullers_times(xi, 10)
    rows = nsds.simulate(fuller(xi, normal=normal), t_end=1.2 * end, h=0.5, scheme=EVENTS)
    np.testing.assert_allclose(np.unique(times_of(rows, status.SWITCHED))[:10], times, rtol=0, atol=1e-10)
    assert times_of(rows, status.ACCUMULATION) == pytest.approx([end], abs=1e-9)
    after = rows[rows["t"] > end + 1e-6]
    assert abs(after["plant"]["x"]).max() < 1e-10
    assert abs(after["switches"]["lambda"]).max() < 1e-8


def test_fullers_switches_from_anywhere():
    """Starts of all sizes off the switching curve; the tenth row is at the end of the accumulation, to rounding."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        xi, start = rng.uniform(0.02, 0.495), rng.normal(size=2) * 10 ** rng.uniform(-3, 3)
        times, end = fullers_switches(xi, start, 40)
        rows = nsds.simulate(fuller(xi, start), t_end=1.3 * end, h=end / 10, scheme=EVENTS)
        found = np.unique(times_of(rows, status.SWITCHED))[:10]
        assert found.size >= 8
        np.testing.assert_allclose(found, times[: found.size], rtol=0, atol=1e-11 * end)
        assert times_of(rows, status.ACCUMULATION) == pytest.approx([end], rel=1e-11)
        assert abs(rows["plant"]["x"][rows["t"] > 1.01 * end]).max() < 1e-12 * (1 + end) ** 2


@pytest.mark.parametrize("xi", XI[:3])
def test_time_stepping_goes_through_fullers_accumulation(xi):
    """Of first order before it, at rest behind it."""
    end, errors = fullers_times(xi, 1)[1], []
    for h in (2e-3, 1e-3, 5e-4, 2.5e-4):
        rows = nsds.simulate(fuller(xi), t_end=1.5 * end, h=h, scheme=nsds.euler_moreau())
        assert (rows["status"] == 0).all()
        exact = np.array([fullers_state(xi, t) for t in rows["t"]])
        errors.append(abs(rows["plant"]["x"] - exact)[rows["t"] < 0.8 * end].max())
        assert abs(rows["plant"]["x"] - exact).mean() < 10 * h
        assert abs(rows["plant"]["x"][-1]).max() < 1e-15
    assert errors[-1] < 0.01
    assert 5 < errors[0] / errors[-1] < 14


@pytest.mark.parametrize("build", [spiral, lambda: driven_relay(1.5), *(lambda k=k: system_of(random_model(k)) for k in range(6))])
def test_both_motions_of_linear_systems_agree(build):
    exact, ours = (nsds.simulate(build(), t_end=2.0, h=0.1, scheme=scheme) for scheme in (nsds.event_driven(), DOPRI5))
    exact, ours = (rows[rows["status"] < status.EVENT] for rows in (exact, ours))
    size = abs(exact["plant"]["x"]).max()
    np.testing.assert_allclose(ours["plant"]["x"], exact["plant"]["x"], rtol=0, atol=1e-8 * size)
    far = abs(exact["t"] - 1.5) > 1e-3  # the end of the spiral
    np.testing.assert_allclose(ours["switches"]["lambda"][far], exact["switches"]["lambda"][far], rtol=0, atol=1e-7 * size)


@pytest.mark.parametrize("build", [clipper, oscillator])
def test_circuits_switch_when_their_exact_motion_does(build):
    exact, ours = (nsds.simulate(build(), t_end=1e-3, h=1e-4, scheme=scheme) for scheme in (nsds.event_driven(), DOPRI5))
    np.testing.assert_allclose(times_of(ours, 4095), times_of(exact, 4095), rtol=1e-9)


def circle(t, x, lam, z, out):
    out[0] = x[0] ** 2 + x[1] ** 2 - 1.0


def along_the_radius(t, x, lam, z, out):
    out[0], out[1] = x[0] * lam[0], x[1] * lam[0]


def turns(t, x, z, out):
    a = z[0] * np.sin(t)
    out[0], out[1] = a * x[0] - 2.0 * x[1], a * x[1] + 2.0 * x[0]


def ring(amplitude, r):
    """r' = r (a sin t + lambda): slides on the unit circle as long as the drive is weaker than the relay."""
    relation = nsds.first_order_relation(circle, along_the_radius, m=1)
    return nsds.system(
        plant=nsds.first_order(turns, x=[r, 0.0], z=[amplitude]), switches=nsds.interaction(relation, nsds.relay(), on="plant")
    )


def test_sliding_on_a_circle_begins_and_ends_at_the_times_of_its_closed_form():
    rows = nsds.simulate(ring(1.5, 1.2), t_end=3.0, h=0.05, scheme=EVENTS)
    enters = brentq(lambda t: np.log(1.2) - t + 1.5 * (1 - np.cos(t)), 0.05, 0.6, xtol=1e-15)
    leaves = np.arcsin(2 / 3)
    assert times_of(rows, status.CLOSED)[0] == pytest.approx(enters, abs=1e-9)
    assert times_of(rows, status.OPENED)[0] == pytest.approx(leaves, abs=1e-9)
    t, radius = rows["t"], np.hypot(*rows["plant"]["x"].T)
    slides, after = (t > enters) & (t < leaves), (t > leaves) & (t < 2.0)
    np.testing.assert_allclose(radius[slides], 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(rows["switches"]["lambda"][slides][1:-1], -1.5 * np.sin(t[slides])[1:-1], rtol=0, atol=1e-8)
    np.testing.assert_allclose(np.log(radius[after]), -1.5 * (np.cos(t) - np.cos(leaves))[after] - (t[after] - leaves), rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.unwrap(np.arctan2(*rows["plant"]["x"].T[::-1])), 2.0 * t, rtol=0, atol=1e-9)


def cubic(t, x, lam, z, out):
    out[0] = x[0] + lam[0] + lam[0] ** 3


def push(t, lam, z, out):
    out[0] = lam[0]


def swings(t, x, z, out):
    out[0] = 2.0 * np.cos(3.0 * t) - 0.2 * x[0] ** 3


def test_a_diode_of_nonlinear_resistance_follows_its_twin():
    system = nsds.system(
        plant=nsds.first_order(swings, x=[0.5]),
        switches=nsds.interaction(nsds.type2_relation(cubic, push, m=1), nsds.complementarity(), on="plant"),
    )
    rows = nsds.simulate(system, t_end=4.0, h=0.05, scheme=EVENTS)

    def lam_of(x):
        return brentq(lambda lam: x + lam + lam**3, 0.0, 10.0, xtol=1e-15) if x < 0 else 0.0

    def right_side(t, x):
        return [2 * np.cos(3 * t) - 0.2 * x[0] ** 3 + lam_of(x[0])]

    def crosses(t, x):
        return x[0]

    crosses.terminal = True
    t, x, switches = 0.0, 0.5, []
    while t < 4.0:
        twin = solve_ivp(right_side, (t, 4.0), [x], events=crosses, rtol=1e-12, atol=1e-13)
        t, x = twin.t[-1], twin.y[0, -1]
        if t < 4.0:
            switches.append(t)
            t, x = t + 1e-9, x + 1e-9 * right_side(t, [x])[0]
    np.testing.assert_allclose(np.unique(times_of(rows, status.CLOSED | status.OPENED)), switches, rtol=0, atol=1e-8)
    assert rows["plant"]["x"][-1, 0] == pytest.approx(x, abs=1e-8)
    x, lam = rows["plant"]["x"][1:, 0], rows["switches"]["lambda"][1:]
    np.testing.assert_allclose(lam[x < 0] ** 3 + lam[x < 0], -x[x < 0], rtol=0, atol=1e-11)
    assert (lam[x > 1e-9] == 0).all()


def chopped(t, z, out):
    out[0] = 12.0 if t % 0.01 < 0.004 else 0.0


def test_a_chopped_source_is_stepped_on_at_its_declared_times():
    """L i' = -R i + u + lambda, i >= 0: the current decays to a back voltage of 1.5, reaches 0 and waits there for the next pulse."""
    tau = 5e-3 / 1.2
    system = nsds.linear_complementarity_system([[-1 / tau]], [[1.0]], [[1.0]], b=chopped_current, x=[0.0])
    edges = np.sort(np.concatenate([0.01 * np.arange(1, 8), 0.01 * np.arange(8) + 0.004]))
    rows = nsds.simulate(system, t_end=0.078, h=1e-3, scheme=nsds.event_driven(rtol=1e-12, atol=1e-14, time_events=edges))
    assert times_of(rows, status.TIME_EVENT).tolist() == edges[edges < 0.078].tolist()
    i, low, high = 0.0, -1.5 / 1.2, 10.5 / 1.2
    for k in range(8):
        i = high + (i - high) * np.exp(-0.004 / tau)
        at = np.flatnonzero(rows["t"] == edges[2 * k])[0]
        assert rows["plant"]["x"][at, 0] == pytest.approx(i, abs=1e-10)
        zero = 0.01 * k + 0.004 + tau * np.log((i - low) / -low)
        i = max(low + (i - low) * np.exp(-0.006 / tau), 0.0)
        if i == 0.0 and zero < 0.078:
            assert abs(times_of(rows, status.CLOSED) - zero).min() < 1e-11
    assert (rows["plant"]["x"] >= 0).all()


def chopped_current(t, z, out):
    out[0] = (10.5 if t % 0.01 < 0.004 else -1.5) / 5e-3


def cosine(t, z, out):
    out[0] = -0.5 * np.cos(3.0 * t)


def test_a_moving_bound_holds_the_state_with_its_rate():
    """x >= 0.5 cos 3t: where it is held, lambda = x' + x."""
    rows = nsds.simulate(
        nsds.linear_complementarity_system([[-1.0]], [[1.0]], [[1.0]], e=cosine, x=[1.0]), t_end=5.0, h=0.05, scheme=EVENTS
    )
    t, x, lam = rows["t"][1:], rows["plant"]["x"][1:, 0], rows["switches"]["lambda"][1:]
    held = lam > 1e-6
    np.testing.assert_allclose(x[held], 0.5 * np.cos(3 * t[held]), rtol=0, atol=1e-13)
    np.testing.assert_allclose(lam[held], -1.5 * np.sin(3 * t[held]) + 0.5 * np.cos(3 * t[held]), rtol=0, atol=1e-9)
    leaves = (np.arctan(1 / 3) + 2 * np.pi * np.arange(1, 3)) / 3
    np.testing.assert_allclose(times_of(rows, status.OPENED), leaves, rtol=0, atol=1e-8)


def decays(t, z, out):
    out[0, 0] = -1.0 if t < 0.4 else -5.0


def test_an_operator_that_jumps_is_exact_where_its_time_is_given():
    system = nsds.linear_complementarity_system(decays, [[1.0]], [[1.0]], x=[1.0], e=[-0.01])
    rows = nsds.simulate(system, t_end=1.0, h=0.1, scheme=nsds.event_driven(rtol=1e-12, atol=1e-14, time_events=[0.4]))
    expected = np.where(rows["t"] <= 0.4, np.exp(-rows["t"]), np.exp(-0.4 - 5 * (rows["t"] - 0.4)))
    np.testing.assert_allclose(rows["plant"]["x"][:, 0], np.maximum(expected, 0.01), rtol=0, atol=1e-12)


def test_a_normal_cone_of_an_interval_is_a_relay():
    cone = nsds.normal_cone([[1.0], [-1.0]], [-1.0, -1.5])
    rows, others = (
        nsds.simulate(nsds.linear_complementarity_system([[0.5]], [[1.0]], [[1.0]], x=[0.8], law=law), t_end=3.0, h=0.25, scheme=scheme)
        for law, scheme in ((cone, EVENTS), (nsds.relay(-1.0, 1.5), DOPRI5))
    )
    np.testing.assert_allclose(rows["plant"]["x"], others["plant"]["x"], rtol=0, atol=1e-11)
    assert times_of(rows, status.CLOSED | status.OPENED)[0] == pytest.approx(2 * np.log(1 / 0.6), abs=1e-10)


def test_a_normal_cone_of_a_polygon_is_the_limit_of_time_stepping():
    G = [[1, 0], [-0.2, 1], [-1, 0], [0.2, -1]]
    system = nsds.linear_complementarity_system(
        [[0, 1.0], [-1.0, -0.5]], [[0.5, 0], [0, 0.6]], np.eye(2), x=[-1.5, 2.0], law=nsds.normal_cone(G, [-1.0] * 4)
    )
    exact = nsds.simulate(system, t_end=1.0, h=0.5, scheme=EVENTS)[-1]["plant"]["x"]
    errors = [
        abs(nsds.simulate(system, t_end=1.0, h=h, scheme=nsds.euler_moreau(), save_every=9999)[-1]["plant"]["x"] - exact).max()
        for h in (2e-3, 1e-3)
    ]
    assert errors[1] < 2e-3
    assert 1.6 < errors[0] / errors[1] < 2.4


def two_sines(t, z, out):
    out[0] = z[0] * np.sin(z[1] * t + z[2]) + z[3] * np.sin(2.3 * z[1] * t)


def drag_and_sines(t, x, z, out):
    out[0] = z[0] * np.sin(z[1] * t + z[2]) + z[3] * np.sin(2.3 * z[1] * t) - 0.2 * x[0] * abs(x[0])


def shares_of_speed(t, x, lam, z, out):
    for i in range(lam.size):
        out[i] = z[i] * x[0]


def hardening_sum(t, x, lam, z, out):
    force = 0.0
    for i in range(lam.size):
        force += z[i] * lam[i]
    out[0] = force + 0.3 * np.tanh(force)


def rubbed(kind, c, limit, z, x):
    """x' = force(t) and the friction of rows ``y_i = c_i x``, of which one force, nonlinear in their sum or not, moves x."""
    law, linear = nsds.relay(-limit, limit), nsds.first_order_linear_relation(C=c[:, None], B=c[None, :])
    relation = nsds.first_order_relation(shares_of_speed, hardening_sum, m=c.size, z=c) if kind == "hardening" else linear
    part = nsds.first_order_linear([[-0.1]], b=two_sines, z=z, x=[x]) if kind == "linear" else nsds.first_order(drag_and_sines, z=z, x=[x])
    return nsds.system(plant=part, rubs=nsds.interaction(relation, law, on="plant"))


@pytest.mark.parametrize("kind", ["linear", "drag", "hardening"])
@pytest.mark.parametrize("seed", range(6))
def test_rows_that_share_the_friction_of_one_state_move_it_as_one_row(kind, seed):
    """Three relays on one speed are one of strength sum |c_i| limit_i: whichever of them gives way first, the motion is that."""
    rng = np.random.default_rng(seed)
    z, x = [rng.uniform(1, 4), rng.uniform(1, 6), rng.uniform(0, 6), rng.uniform(-1, 1)], rng.uniform(-2, 2)
    c, limit = rng.uniform(0.3, 2, 3) * rng.choice([-1, 1], 3), rng.uniform(0.1, 1, 3)
    several, one = (
        nsds.simulate(rubbed(kind, *of, z, x), t_end=8.0, h=0.1, scheme=EVENTS)
        for of in ((c, limit), (np.ones(1), np.array([abs(c) @ limit])))
    )
    assert not (several["status"] & status.TIME_STEPPED).any()
    paths = [rows[~status.is_event(rows["status"])]["plant"]["x"] for rows in (several, one)]
    np.testing.assert_allclose(*paths, rtol=0, atol=1e-8)
    assert (several["status"] & (status.CLOSED | status.SWITCHED)).any()


def test_a_state_outside_at_the_start_jumps_once():
    rows = nsds.simulate(
        nsds.linear_complementarity_system([[-1.0]], [[2.0]], [[1.0]], e=cosine, x=[-1.0]), t_end=0.1, h=0.1, scheme=EVENTS
    )
    assert rows["status"][1] & status.JUMP > 0
    assert rows["plant"]["x"][1, 0] == pytest.approx(0.5, abs=1e-14)
    assert len(times_of(rows, status.JUMP)) == 1


def test_members_of_an_ensemble_have_the_bits_of_single_runs():
    members = np.repeat(fuller(0.25), 2)
    members["plant"]["x"][1] = 0.3, 0.4
    several = nsds.simulate(members, t_end=2.0, h=0.5, scheme=EVENTS)
    for m in range(2):
        alone = nsds.simulate(members[m], t_end=2.0, h=0.5, scheme=EVENTS)
        np.testing.assert_array_equal(several[m][: len(alone)], alone)


def test_what_has_no_exact_motion_is_refused_it_by_name():
    with pytest.raises(ValueError, match="flow='exact' is for linear systems with constant operators"):
        nsds.simulate(fuller(0.25), t_end=1.0, h=0.1, scheme=nsds.event_driven(flow="exact"))


def blows_up(t, x, z, out):
    out[0] = x[0] ** 2


def test_a_state_that_ends_in_finite_time_ends_the_run_with_its_time():
    with pytest.raises(nsds.SimulationError) as error:
        nsds.simulate(nsds.system(plant=nsds.first_order(blows_up, x=[1.0])), t_end=2.0, h=0.1, scheme=EVENTS)
    assert error.value.trajectory["t"][-1] == pytest.approx(1.0, abs=0.11)


def test_too_many_events_are_handed_over_to_time_stepping_and_back():
    """A spiral whose accumulation is not summed has more events near its end than are allowed; then it rests all the same."""
    scheme = nsds.event_driven(accumulation=0.0, max_events=40, hybrid=True)
    rows = nsds.simulate(spiral(), t_end=2.0, h=1e-2, scheme=scheme)
    stepped = times_of(rows, status.TIME_STEPPED)
    assert stepped.size > 0
    assert abs(stepped - 1.5).max() < 0.03
    assert "time stepping" in nsds.advice(int(rows["status"][rows["t"] == stepped[0]].max()))
    off = abs(abs(rows["plant"]["x"]).sum(axis=1) - np.maximum(6 - 4 * rows["t"], 0))
    assert off[rows["t"] < stepped[0] - 0.01].max() < 1e-12
    assert off.max() < 0.05
    assert abs(rows["plant"]["x"][-1]).max() < 1e-12


def test_switches_are_found_wherever_rows_are():
    """States at the end of a period of a converter, of 1500 starts: rows in between change nothing."""
    rng, n = np.random.default_rng(0), 1500
    systems = np.repeat(buck(24.0, 12.0, 0.6), n)
    systems["plant"]["x"], systems["switch"]["upper"] = rng.uniform([11.9, 0.5], [12.1, 0.7], (n, 2)), rng.uniform(20, 33, n)
    scheme = nsds.event_driven(rtol=1e-12, atol=1e-14, time_events=[PERIOD])

    def ends(h):
        rows = nsds.simulate(systems, t_end=PERIOD, h=h, scheme=scheme)
        assert ((rows["status"] > 0) & (rows["status"] & status.SWITCHED > 0)).any(axis=1).sum() > n // 2
        return np.array([one["plant"]["x"][one["t"] <= PERIOD][-1] for one in rows])

    assert abs(ends(PERIOD) - ends(PERIOD / 32)).max() < 1e-10


def test_a_ramp_that_jumps_unasked_says_where_and_what_to_do():
    with pytest.raises(nsds.SimulationError, match=r"t = 0\.0004\).*'switch'.*say when with time_events"):
        nsds.simulate(buck(24.0, 12.0, 0.6), t_end=20 * PERIOD, h=PERIOD, scheme=nsds.event_driven())


@pytest.mark.parametrize("late", [0.0, 1e-9, 1e-8, 1e-7])
def test_a_switch_just_before_the_ramp_jumps(late):
    """A converter that switches 5e-7 s before a jump at 0.1048 s: guards are not looked at in times that rounding of t blurs.

    The interval between that switch and the jump has the exact solution of a linear circuit without supply.
    """
    jumps = nsds.event_driven(time_events=PERIOD * np.arange(1, 270))
    model = buck(33.65, 12.0139539 + 0.1 * late, 0.58812555)
    model["t"] = 261 * PERIOD
    rows = nsds.simulate(model, t_end=263 * PERIOD, h=PERIOD, scheme=jumps)
    at_jump = np.argmax(rows["t"] >= 262 * PERIOD)
    switch, jump = rows[at_jump - 1], rows[at_jump]
    assert switch["switch"]["lambda"] == 0.0
    assert 4e-7 < jump["t"] - switch["t"] < 6e-7
    flow = expm(np.array([[-1 / (R * C), 1 / C], [-1 / L, 0]]) * (jump["t"] - switch["t"]))
    np.testing.assert_allclose(jump["plant"]["x"], flow @ switch["plant"]["x"], rtol=1e-13)
