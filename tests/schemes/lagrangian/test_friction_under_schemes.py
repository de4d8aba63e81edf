"""Friction, dry friction and relays under the Lagrangian schemes besides Moreau–Jean: exact motions, orders, energy, restarts."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsds
from tests.schemes.lagrangian.test_moreau_jean import observed_order

relation, friction = nsds.lagrangian_linear_relation, nsds.newton_impact_friction
GRAVITY, MASS, STIFFNESS = 9.81, 1.3, 20.0
SCHEMES = {
    "alpha": nsds.generalised_alpha(),
    "alpha 0": nsds.generalised_alpha(0.0),
    "d1_acceleration": nsds.d1_minus_linear(),
    "d1_velocity": nsds.d1_minus_linear(level="velocity"),
    "paoli": nsds.schatzman_paoli(),
}
every_scheme = pytest.mark.parametrize("name", SCHEMES)
EXACT = nsds.solvers.solver(tol=1e-13)


def start_of(name, v, a, h):
    """Velocity of the start as the scheme understands it: that of the step before, where it is a backward difference."""
    return np.asarray(v) - h / 2 * np.asarray(a) * (name == "paoli")


def end_of(name, part, a, h):
    """(q, v) at the end of a run, v of a backward difference moved by half a step."""
    return part["q"][-1], part["v"][-1] + h / 2 * np.asarray(a) * (name == "paoli")


# ------------------------------------------------------------------------------------------------- a block on a spring
LIMIT = 0.3 * MASS * GRAVITY
ON_THE_GROUND = {
    "plane": (np.eye(3)[[2, 0]], friction(0.0, 0.3)),
    "space": (np.eye(3)[[2, 0, 1]], friction(0.0, 0.3, dimension=3)),
    "dry_friction": (np.eye(3)[:1], nsds.dry_friction(LIMIT)),
    "relay": (np.eye(3)[:1], nsds.relay(-LIMIT, LIMIT)),
}


def block_on_a_spring(name, ground, h, t_end):
    """Let go 0.8 m from where its spring is at rest: (rows, the acceleration at the end, as long as it slides back)."""
    H, law = ON_THE_GROUND[ground]
    block = nsds.lagrangian_linear(
        [MASS] * 3, K=np.diag([STIFFNESS, 0, 0]), fext=[0, 0, -MASS * GRAVITY if len(H) > 1 else 0.0], q=[0.8, 0, 0],
        v=start_of(name, np.zeros(3), [(LIMIT - STIFFNESS * 0.8) / MASS, 0, 0], h),
    )  # fmt: skip
    system = nsds.system(block=block, ground=nsds.interaction(relation(H), law, on="block"))
    rows = nsds.simulate(system, t_end=t_end, h=h, scheme=SCHEMES[name], solver=EXACT)
    return rows, [(LIMIT - STIFFNESS * rows["block"]["q"][-1, 0]) / MASS, 0, 0]


def exact_block(t):
    """(x, v): half waves about where spring and friction balance, until friction holds it."""
    x0, omega, offset = 0.8, math.sqrt(STIFFNESS / MASS), LIMIT / STIFFNESS
    while t > math.pi / omega and abs(x0) > offset:
        x0, t = 2 * math.copysign(offset, x0) - x0, t - math.pi / omega
    if abs(x0) <= offset:
        return x0, 0.0
    centre = math.copysign(offset, x0)
    return centre + (x0 - centre) * math.cos(omega * t), -(x0 - centre) * omega * math.sin(omega * t)


@every_scheme
@pytest.mark.parametrize("ground", ON_THE_GROUND)
def test_sliding_keeps_the_second_order(name, ground):
    errors = []
    for h in (0.02, 0.01, 0.005):
        rows, a = block_on_a_spring(name, ground, h, 0.6)
        q, v = end_of(name, rows["block"], a, h)
        errors.append(abs(np.array([q[0], v[0]]) - exact_block(0.6)))
        np.testing.assert_allclose(q[1:], 0.0, atol=1e-9)
    assert observed_order([e[0] for e in errors]) == pytest.approx(2, abs=0.2)
    assert observed_order([e[1] for e in errors]) == pytest.approx(2, abs=0.2)


@every_scheme
@pytest.mark.parametrize("ground", ON_THE_GROUND)
def test_a_block_turns_and_comes_to_rest(name, ground):
    h = 0.01
    rows, _ = block_on_a_spring(name, ground, h, 5.0)
    x, v = rows["block"]["q"][:, 0], rows["block"]["v"][:, 0]
    assert abs(x[-1] - exact_block(5.0)[0]) < 0.1 * h
    assert abs(np.diff(x[-200:])).max() < 1e-12  # does not creep
    assert abs(v[-200:]).max() < 1e-12
    tangent = rows["ground"]["lambda"][-1] if ground in ("dry_friction", "relay") else rows["ground"]["lambda"][-1, 1]
    np.testing.assert_allclose(tangent / h, STIFFNESS * x[-1], atol=STIFFNESS * h**2)
    energy = MASS * v**2 / 2 + STIFFNESS * x**2 / 2
    assert np.diff(energy).max() < h**3


@every_scheme
def test_the_plane_and_space_give_the_same_motion(name):
    one, other = (block_on_a_spring(name, ground, 0.01, 0.8)[0] for ground in ("plane", "space"))
    np.testing.assert_allclose(one["block"]["q"], other["block"]["q"], atol=1e-9)
    np.testing.assert_allclose(one["ground"]["lambda"], other["ground"]["lambda"][:, :2], atol=1e-9)


# ------------------------------------------------------------------------------------------------- a block on an incline
SLOPE = 0.4
DOWNHILL = GRAVITY * np.array([-math.cos(SLOPE), math.sin(SLOPE), 0.0])


def block_on_a_slope(name, h, t_end, speed=4.0):
    """The case incline_curved_stop: pushed downhill at 2 rad to the line of fall."""
    v = speed * np.array([0.0, math.cos(2), math.sin(2)])
    a = DOWNHILL * [0, 1, 1] - 0.6 * GRAVITY * math.cos(SLOPE) * v / max(speed, 1e-9)
    block = nsds.lagrangian_linear([MASS] * 3, fext=MASS * DOWNHILL, q=np.zeros(3), v=start_of(name, v, a if speed else 0 * a, h))
    plane = nsds.interaction(relation(np.eye(3)), friction(0.0, 0.6, dimension=3), on="block")
    return nsds.simulate(nsds.system(block=block, plane=plane), t_end=t_end, h=h, scheme=SCHEMES[name], solver=EXACT)


@every_scheme
def test_a_block_that_sticks_does_not_creep(name):
    rows = block_on_a_slope(name, 0.01, 10.0, speed=0.0)
    assert abs(rows["block"]["q"]).max() < 1e-13
    np.testing.assert_allclose(rows["plane"]["lambda"][1:] / 0.01, np.broadcast_to(-MASS * DOWNHILL, (1000, 3)), atol=1e-9)


@every_scheme
def test_a_block_slides_in_a_curve_and_stops(name):
    """Slip is opposed by impulses of the direction at the end of a step, which is of order 1; forces at both ends make order 2."""
    stop, end = 1.03575625931202, np.array([-0.00821759517641119, 1.30735177831326])
    errors = []
    for h in (4e-3, 2e-3, 1e-3):
        rows = block_on_a_slope(name, h, 1.5)
        moves = np.linalg.norm(rows["block"]["v"], axis=1) > 1e-9
        assert abs(rows["t"][moves][-1] - stop) < 3 * h
        np.testing.assert_allclose(rows["plane"]["lambda"][-1] / h, -MASS * DOWNHILL, atol=1e-8)
        errors.append(np.linalg.norm(rows["block"]["q"][-1, 1:] - end))
    assert observed_order(errors) == pytest.approx(2 if name.startswith("d1") else 1, abs=0.15)
    assert errors[-1] < (3e-6 if name.startswith("d1") else 3e-3)


# ------------------------------------------------------------------------------------------------- discs, belts, beads
def disc(h, name, t_end):
    """Thrown along the ground without spin: slides, then rolls; height, way, angle."""
    radius = 0.2
    a = [0.0, -0.3 * GRAVITY, 2 * 0.3 * GRAVITY / radius]
    wheel = nsds.lagrangian_linear([1.0, 1.0, 0.5 * radius**2], fext=[-GRAVITY, 0, 0], q=np.zeros(3), v=start_of(name, [0, 3.0, 0], a, h))
    ground = nsds.interaction(relation([[1.0, 0, 0], [0, 1.0, -radius]]), friction(0.0, 0.3), on="wheel")
    return nsds.simulate(nsds.system(wheel=wheel, ground=ground), t_end=t_end, h=h, scheme=SCHEMES[name], solver=EXACT)


@every_scheme
def test_a_disc_slides_until_it_rolls(name):
    rolls, speed = 3.0 / (3 * 0.3 * GRAVITY), 2.0
    way = 3.0 * rolls - 0.3 * GRAVITY * rolls**2 / 2 + speed * (1.0 - rolls)
    errors = []
    for n in (50, 100, 200):
        h = rolls / (n + 1 / 3)
        rows = disc(h, name, 1.0)
        after = rows["t"] > rolls + 2 * h
        np.testing.assert_allclose(rows["wheel"]["v"][after, 1], speed, atol=1e-9)
        np.testing.assert_allclose(rows["ground"]["ydot"][after, 1], 0.0, atol=1e-9)
        errors.append(abs(rows["wheel"]["q"][-1, 1] + speed * (1.0 - rows["t"][-1]) - way))
    assert max(errors[0] / 50, errors[1], errors[2]) < 1e-4
    assert observed_order(errors) > 0.9


def mass_on_a_belt(name, h, t_end):
    """Carried by a belt of 1 m/s against a spring, from rest where it is relaxed."""
    mass = nsds.lagrangian_linear([1.0], K=[[4.0]], q=[0.0], v=start_of(name, [0.0], [3.0], h))
    belt = nsds.interaction(nsds.prescribed_velocity([0], 1.0), nsds.dry_friction(3.0), on="mass")
    return nsds.simulate(nsds.system(mass=mass, belt=belt), t_end=t_end, h=h, scheme=SCHEMES[name])


@every_scheme
def test_a_mass_on_a_belt_slips_sticks_and_swings(name):
    """Slips until it is as fast as the belt, sticks until the spring pulls with 3 N, then swings about there, at most as fast."""
    caught = math.asin(2 / 3) / 2
    at = 0.75 * (1 - math.cos(2 * caught))
    leaves = caught + 0.75 - at
    errors = []
    for n in (40, 80, 160):
        h = caught / (n + 1 / 3)
        rows = mass_on_a_belt(name, h, 3.0)
        sticks = (rows["t"] > caught + 2 * h) & (rows["t"] < leaves - h)
        np.testing.assert_allclose(rows["mass"]["v"][sticks], 1.0, atol=1e-12)
        phase = 2 * (rows["t"][-1] - leaves)
        errors.append(abs(rows["mass"]["q"][-1, 0] - 0.75 - math.sin(phase) / 2))
        assert rows["mass"]["v"].max() < 1 + 1e-12
    assert observed_order(errors) > 0.9
    assert errors[-1] < 5e-3


def valley(q, z, out):
    """Distance of a bead from the parabola ``y = x^2 / 2``, to first order; nothing along it."""
    out[0], out[1] = (q[1] - q[0] ** 2 / 2) / math.sqrt(1 + q[0] ** 2), 0.0


def valley_by_q(q, z, out):
    s = math.sqrt(1 + q[0] ** 2)
    out[0, 0], out[0, 1] = -q[0] / s - (q[1] - q[0] ** 2 / 2) * q[0] / s**3, 1 / s
    out[1, 0], out[1, 1] = 1 / s, q[0] / s


def bead(name, h, t_end):
    """Let go in the valley at x = -1."""
    push = GRAVITY / 2 * 0.8  # along the slope: weight less friction
    ball = nsds.lagrangian_linear([1.0, 1.0], fext=[0, -GRAVITY], q=[-1.0, 0.5], v=start_of(name, [0.0, 0.0], [push, -push], h))
    ground = nsds.interaction(nsds.scleronomous(valley, valley_by_q, m=2), friction(0.0, 0.2), on="bead")
    return nsds.simulate(nsds.system(bead=ball, ground=ground), t_end=t_end, h=h, scheme=SCHEMES[name], solver=EXACT)


def motion_of_the_bead(t_end):
    """(q, v) by the speed s along the valley: ``s' = -g sin - mu (g cos + kappa s^2)``."""

    def rate(t, y):
        x, s = y
        root = math.sqrt(1 + x * x)
        return s / root, -GRAVITY * x / root - 0.2 * (GRAVITY / root + s * s / root**3)

    x, s = solve_ivp(rate, (0, t_end), [-1.0, 0.0], rtol=1e-12, atol=1e-12).y[:, -1]
    return np.array([x, x * x / 2]), s * np.array([1.0, x]) / math.sqrt(1 + x * x)


@every_scheme
def test_a_bead_slides_through_a_valley(name):
    """Impulses in persistent contact along a curve are of order 1; forces are of order 2, where no opening ends them."""
    q, v = motion_of_the_bead(0.8)
    errors = []
    for h in (0.008, 0.004, 0.002, 0.001):
        part = bead(name, h, 0.8)["bead"]
        errors.append([abs(part["q"][-1] - q).max(), abs(part["v"][-1] - v).max()])
    order = 2 if name == "d1_velocity" else 1
    assert min(observed_order(column) for column in np.transpose(errors)) > order - 0.2


@every_scheme
def test_impacts_of_one_direction_leave_the_other_alone(name):
    """A ball that strikes one wall of a corner, and later the other."""
    ball = nsds.lagrangian_linear([1.0, 1.0], q=[0.5, 0.8], v=[-1.0, -1.0])
    walls = [nsds.interaction(relation(H), nsds.newton_impact(0.5), on="ball") for H in np.eye(2)[:, None]]
    rows = nsds.simulate(nsds.system(ball=ball, left=walls[0], right=walls[1]), t_end=1.0, h=0.01, scheme=SCHEMES[name])
    np.testing.assert_allclose(rows["ball"]["v"][-1], [0.5, 0.5], rtol=1e-12)
