"""Models of the examples of the established code that have no reference run, beside closed forms."""

import math

import numpy as np
import pytest
from scipy.linalg import expm

import nsds
from nsds import joints, shapes

G, EQUAL = 9.81, nsds.equality()
UPRIGHT, LYING = [1.0, 0, 0, 0], [math.sqrt(0.5), math.sqrt(0.5), 0, 0]  # z up; z to the side
DOWN = [0, 0, -G]


def run(system, t_end, h=1e-3, **settings):
    rows = nsds.simulate(system, t_end=t_end, h=h, **settings)
    assert (rows["status"] == 0).all()
    return rows


def solid(shape, x, v=(0, 0, 0, 0, 0, 0), mass=1.0, p=UPRIGHT, **more):
    return nsds.rigid_bodies(mass, shapes.inertia(shape, mass), q=[*x, *p], v=list(v), **more)


def friction(mu, e=0.0):
    return nsds.newton_impact_friction(e_n=e, mu=mu)


# -------------------------------------------------------------------------------------------------------------- points and mechanisms
def shake(t, z, out):
    out[0] = z[0] * z[1] * math.cos(z[1] * t)


def test_ball_on_moving_plane():
    """The plane is a coordinate whose velocity is prescribed; the contact carries ``m (g + a)``."""
    amplitude, omega, m, h = 0.01, 10.0, 2.0, 1e-3
    bodies = nsds.lagrangian_linear(np.diag([1.0, m]), fext=[0, -m * G], q=[0, 0], v=[amplitude * omega, amplitude * omega])
    system = nsds.system(
        bodies=bodies,
        drive=nsds.interaction(nsds.prescribed_velocity([0], shake, z=[amplitude, omega]), EQUAL, on="bodies"),
        contact=nsds.interaction(nsds.lagrangian_linear_relation([[-1, 1]]), nsds.newton_impact(0.0), on="bodies"),
    )
    rows = run(system, 1.0, h)
    force = m * (G - amplitude * omega**2 * np.sin(omega * (rows["t"][1:] - h / 2)))
    np.testing.assert_allclose(rows["contact"]["lambda"][1:] / h, force, rtol=1e-3)


def test_two_bouncing_balls():
    """Equal balls without losses exchange their velocities: the upper one comes back to its height."""
    falls = nsds.lagrangian_linear(np.eye(2), fext=[-G, -G], q=[0.0, 1.0], v=[0, 0])
    relation = nsds.lagrangian_linear_relation([[1, 0], [-1, 1]])
    rows = run(nsds.system(balls=falls, contacts=nsds.interaction(relation, nsds.newton_impact(1.0), on="balls")), 1.0, 1e-4)
    energy = (rows["balls"]["v"] ** 2).sum(axis=1) / 2 + G * rows["balls"]["q"].sum(axis=1)
    np.testing.assert_allclose(energy, energy[0], rtol=2e-3)
    again = 2 * math.sqrt(2 / G)
    k = round(again / 1e-4)
    np.testing.assert_allclose(rows["balls"]["q"][k], [0, 1], atol=5e-3)


def test_bouncing_ball_dynamic():
    """The floor is linked at 0.5 s, when the ball is a metre and more below the place where it began."""
    ball = shapes.sphere(0.1)
    system = nsds.system(
        gravity=DOWN, ball=solid(ball, [0, 0, 0.0]), floor=nsds.collisions({"ball": ball}, nsds.newton_impact(0.8),
        world=[shapes.plane(offset=-1.0), shapes.plane(offset=-2.0)], enabled=[True, False, True]),
        link=nsds.sampled_control(nothing, reads="ball", writes="floor.enabled"),
    )  # fmt: skip
    rows = run(system, 0.9)
    hits = math.sqrt(2 * 1.9 / G)
    v = rows["ball"]["v"][:, 2]
    first = int((v > 0).argmax())
    assert rows["t"][first] == pytest.approx(hits, abs=2e-3)
    assert v[first] == pytest.approx(0.8 * G * hits, rel=5e-3)


def nothing(t, x, state, z, u):
    """What is switched off stays so."""


def beam(n, length, stiffness, rho):
    """Mass and stiffness of a cantilever of Hermite elements."""
    M, K, h = np.zeros((2, 2 * n + 2, 2 * n + 2)), None, length / n
    k = stiffness / h**3 * np.array([[12, 6 * h, -12, 6 * h], [6 * h, 4 * h**2, -6 * h, 2 * h**2], [-12, -6 * h, 12, -6 * h],
                                     [6 * h, 2 * h**2, -6 * h, 4 * h**2]])  # fmt: skip
    m = rho * h / 420 * np.array([[156, 22 * h, 54, -13 * h], [22 * h, 4 * h**2, 13 * h, -3 * h**2], [54, 13 * h, 156, -22 * h],
                                  [-13 * h, -3 * h**2, -22 * h, 4 * h**2]])  # fmt: skip
    for i in range(n):
        at = slice(2 * i, 2 * i + 4)
        M[0, at, at] += m
        M[1, at, at] += k
    M, K = M[:, 2:, 2:]
    return M, K


def test_impacting_euler_bernoulli_beam():
    """A ball falls on the tip of a cantilever with damping; in the end it hangs by ``(m g L^3 / 3 + rho g L^4 / 8) / (E I)``."""
    n, L, EI, rho, m = 6, 1.0, 20.0, 0.5, 0.3
    M, K = beam(n, L, EI, rho)
    size = 2 * n
    whole, stiff = np.zeros((2, size + 1, size + 1))
    whole[:size, :size], stiff[:size, :size], whole[size, size] = M, K, m
    weight = np.zeros(size + 1)
    h = L / n
    for i in range(n):  # of a uniform load, element by element
        load = -rho * G * h * np.array([0.5, h / 12, 0.5, -h / 12])
        for k in range(4):
            if 2 * i + k >= 2:
                weight[2 * i + k - 2] += load[k]
    weight[size] = -m * G
    H = np.zeros((1, size + 1))
    H[0, [size - 2, size]] = -1, 1
    system = nsds.system(
        beam=nsds.lagrangian_linear(whole, C=2 * whole + 2e-3 * stiff, K=stiff, fext=weight, q=[0.0] * size + [0.05], v=[0.0] * (size + 1)),
        contact=nsds.interaction(nsds.lagrangian_linear_relation(H), nsds.newton_impact(0.2), on="beam"),
    )
    rows = run(system, 8.0, 2e-3)
    assert (rows["contact"]["lambda"] > 0.01).any()
    sag = (m * G * L**3 / 3 + rho * G * L**4 / 8) / EI
    np.testing.assert_allclose(rows["beam"]["q"][-1, size - 2], -sag, rtol=2e-3)


def pendulum_mass(q, z, out):
    out[0, 0], out[1, 1], out[0, 1] = z[0] + z[1], z[1] * z[2] ** 2, z[1] * z[2] * math.cos(q[1])
    out[1, 0] = out[0, 1]


def pendulum_forces(t, q, v, z, out):
    out[0], out[1] = -z[1] * z[2] * math.sin(q[1]) * v[1] ** 2, z[1] * 9.81 * z[2] * math.sin(q[1])


@pytest.mark.parametrize(("limit", "sticks"), [(0.0, False), (4.0, True)])
def test_pendulum_on_a_slider(limit, sticks):
    """A slider that sticks is a fixed pivot, one without friction leaves the centre of mass where it is."""
    system = nsds.system(
        both=nsds.lagrangian(pendulum_mass, pendulum_forces, q=[0.0, 0.3], v=[0.0, 0.0], z=[2.0, 1.0, 0.5]),
        guide=nsds.interaction(nsds.lagrangian_linear_relation([[1, 0]]), nsds.dry_friction(limit), on="both"),
    )
    rows = run(system, 1.0, 1e-3)
    x, angle = rows["both"]["q"].T
    if sticks:
        assert abs(x).max() < 1e-9
        energy = 0.5 * 0.25 * rows["both"]["v"][:, 1] ** 2 - G * 0.5 * np.cos(angle)
        np.testing.assert_allclose(energy, energy[0], rtol=1e-5)
    else:
        np.testing.assert_allclose(3.0 * x + 0.5 * np.sin(angle), 0.5 * math.sin(0.3), atol=1e-4)


@pytest.mark.parametrize("ratio", [3.0, 5.0])
def test_rocking_block(ratio):
    """Housner: at each impact without rebound the rate falls by ``1 - 3/2 sin^2 alpha``."""
    width, alpha = 0.2, math.atan(1 / ratio)
    shape, angle = shapes.rectangle([width, ratio * width]), 0.5 * alpha
    R = math.hypot(width, ratio * width) / 2
    x = [R * math.sin(alpha - angle), R * math.cos(alpha - angle), -angle]  # on its right corner, which is the origin of -x
    block = nsds.planar_bodies(1.0, shapes.inertia(shape, 1.0), q=[-x[0], x[1], x[2]], v=[0, 0, 0])
    floor = nsds.collisions({"block": shape}, friction(5.0), world=shapes.half_plane())
    rows = run(nsds.system(gravity=[0, -G, 0], block=block, floor=floor), 1.0, 2e-4)
    q, v = nsds.in_plane(rows["block"])
    k = int((np.diff(np.sign(q[:, 2])) != 0).argmax())
    before, after = v[k - 20, 2], v[k + 20, 2]
    assert after / before == pytest.approx(1 - 1.5 * math.sin(alpha) ** 2, rel=0.03)


def test_yoyo():
    """Down at ``g / (1 + I / m r^2)``; at the end of the string it turns, and climbs with its restitution."""
    m, moment, r, length, e = 0.1, 1e-4, 0.01, 0.5, 0.9
    yoyo = nsds.lagrangian_linear([[m + moment / r**2]], fext=[m * G], q=[0.0], v=[0.0])
    end = nsds.interaction(nsds.lagrangian_linear_relation([[-1]], b=[length]), nsds.newton_impact(e), on="yoyo")
    rows = run(nsds.system(yoyo=yoyo, string=end), 2.2)
    a = G / (1 + moment / (m * r**2))
    down = math.sqrt(2 * length / a)
    first = int((rows["yoyo"]["v"][:, 0] < 0).argmax())
    assert rows["t"][first] == pytest.approx(down, abs=2e-3)
    top = rows["yoyo"]["q"][first : first + 1200, 0].min()
    assert length - top == pytest.approx(e**2 * length, rel=5e-3)


# --------------------------------------------------------------------------------------------------------------------------- control
def test_explicit_sliding_mode():
    """A sampled sign on an exactly integrated plant is the map ``x+ = E x + F sgn(s)``."""
    A, B, C, period = np.array([[0.0, 1.0], [0.0, -1.0]]), np.array([[0.0], [1.0]]), [1.0, 1.0], 0.01
    system = nsds.system(
        plant=nsds.first_order_linear(A, x=[1.0, -0.4953], T=B, u=[0.0]),
        control=nsds.sampled_control(sign_of_sum, reads="plant", writes="plant", period=period),
    )
    rows = run(system, 3.0, period, scheme=nsds.zero_order_hold())
    both = expm(np.block([[A, B], [np.zeros((1, 3))]]) * period)
    x = np.array([1.0, -0.4953])
    for k in range(1, len(rows)):
        x = both[:2, :2] @ x - both[:2, 2] * np.sign(np.dot(C, x))
        np.testing.assert_allclose(rows["plant"]["x"][k], x, atol=1e-10)


def sign_of_sum(t, x, state, z, u):
    s = x[0] + x[1]
    u[0] = -1.0 if s > 0 else (1.0 if s < 0 else 0.0)


def reduced(t, x, state, z, u):
    """Position is measured; velocity = w + z[0] y with w' = -z[0] w - z[0]^2 y + u, by explicit Euler steps of z[1]."""
    y, w = x[0], state[0]
    u[0] = -1.0 * y - 2.0 * (w + z[0] * y)
    state[0] = w + z[1] * (-z[0] * w - z[0] * z[0] * y + u[0])


def test_reduced_order_observer():
    """The error of the estimate dies out by ``1 - l T`` a sample, whatever the plant does, but for the inputs of one sample."""
    gain, period = 8.0, 0.01
    A, B = [[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]]
    system = nsds.system(
        plant=nsds.first_order_linear(A, x=[0.3, -1.0], T=B, u=[0.0]),
        observer=nsds.sampled_control(reduced, reads="plant", writes="plant", period=period, state=[0.0], z=[gain, period]),
    )
    rows = run(system, 3.0, period, scheme=nsds.zero_order_hold())
    x, v, w = 0.3, -1.0, 0.0
    for k in range(1, len(rows)):
        u = -x - 2.0 * (w + gain * x)
        w += period * (-gain * w - gain**2 * x + u)
        x, v = x + period * v + period**2 / 2 * u, v + period * u
        np.testing.assert_allclose(rows["plant"]["x"][k], [x, v], atol=1e-10)
    assert abs(w + gain * x - v) < 0.05


# ------------------------------------------------------------------------------------------------------------ rigid bodies and joints
def test_one_free_body():
    """NE_1DS: a parabola, and steady turning about a principal axis."""
    body = nsds.rigid_bodies(2.0, [1.0, 2.0, 3.0], q=[0, 0, 0, *UPRIGHT], v=[1.0, 0, 5.0, 0, 0, 4.0])
    rows = run(nsds.system(gravity=DOWN, body=body), 1.0)
    np.testing.assert_allclose(rows["body"]["q"][-1, :3], [1.0, 0, 5.0 - G / 2], atol=1e-9)
    np.testing.assert_allclose(rows["body"]["q"][-1, [3, 6]], [math.cos(2.0), math.sin(2.0)], atol=1e-9)


def test_three_bodies_on_three_knees_and_a_guide():
    """A chain of three bodies whose last one slides: it keeps its joints to rounding, its energy to second order."""
    sizes = []
    for h in (2e-3, 1e-3):
        q = [[0.5, 0, 0, *UPRIGHT], [1.5, 0, 0, *UPRIGHT], [2.5, 0, 0, *UPRIGHT]]
        bodies = nsds.rigid_bodies(1.0, [0.02, 0.09, 0.09], q=q, v=np.zeros((3, 6)))
        knees = {f"knee_{i}": nsds.interaction(joints.ball_joint([i + 0.0, 0, 0]), EQUAL, on=on) for i, on in
                 enumerate(("chain[0]", ("chain[1]", "chain[0]"), ("chain[2]", "chain[1]")))}  # fmt: skip
        guide = nsds.interaction(joints.prismatic([1, 0, 0]), EQUAL, on="chain[2]")
        system = nsds.system(gravity=[0, 1.0, -G], chain=bodies, **knees, guide=guide)
        rows = run(system, 0.6, h)
        assert max(abs(rows[name]["y"]).max() for name in ("knee_0", "knee_1", "knee_2", "guide")) < 1e-11
        ledger = nsds.energy(system, rows)
        sizes.append(abs(ledger["kinetic"] + ledger["potential"]).max())
    assert sizes[1] < 1e-2
    assert sizes[0] / sizes[1] == pytest.approx(4.0, abs=0.6)


def test_bouncing_beam():
    """A beam falls about a hinge onto the ground: its rate before is by its height, after it by its restitution."""
    length, e = 1.0, 0.5
    shape = shapes.box([length, 0.05, 0.05])
    high = 0.5 + 0.025
    system = nsds.system(
        gravity=DOWN, beam=solid(shape, [length / 2, 0, high], mass=3.0),
        pivot=nsds.interaction(joints.hinge([0, 0, high], [0, 1, 0]), EQUAL, on="beam"),
        ground=nsds.collisions({"beam": shape}, nsds.newton_impact(e), world=shapes.plane()),
    )  # fmt: skip
    rows = run(system, 0.6, 2e-4)
    rate = rows["beam"]["v"][:, 4]
    hit = int((rate < 0).argmax())
    moment = 3.0 * (length**2 + 0.05**2) / 12 + 3.0 * length**2 / 4
    q = rows["beam"]["q"][hit]
    before = math.sqrt(2 * 3.0 * G * (high - q[2]) / moment)
    assert rate[hit - 1] == pytest.approx(before, rel=2e-3)
    assert rate[hit] == pytest.approx(-e * before, rel=5e-3)


@pytest.mark.parametrize("kind", ["pivot", "prismatic"])
def test_spring_and_damper_between_two_bodies(kind):
    """Two bodies on one axis: the difference of their coordinates is a damped oscillation."""
    k, c, m = 40.0, 0.6, 2.0
    axis = [0, 0, 1.0]
    is_turning = kind == "pivot"
    v = np.zeros((2, 6))
    v[:, 5 if is_turning else 2] = 1.0, -1.0
    bodies = nsds.rigid_bodies(m, m, q=[[0, 0, 0.0, *UPRIGHT], [0, 0, 1.0, *UPRIGHT]], v=v)
    make = joints.hinge_angle if is_turning else joints.slide_along
    guide = joints.hinge([0, 0, 0], axis) if is_turning else joints.prismatic(axis)
    system = nsds.system(
        bodies=bodies, guides=nsds.interaction(guide, EQUAL, on="bodies"),
        spring=nsds.interaction(make(axis), nsds.spring_damper(k, c), on=("bodies[0]", "bodies[1]")),
    )  # fmt: skip
    rows = run(system, 2.0)
    decay, reduced = c / m, m / 2
    omega = math.sqrt(k / reduced - decay**2)
    np.testing.assert_allclose(rows["spring"]["y"], 2 / omega * np.exp(-decay * rows["t"]) * np.sin(omega * rows["t"]), atol=1e-4)


def to_rest(t, q, v, z, out):
    for i in range(3):
        out[i] = z[0] * q[i] + z[1] * v[i]


def test_internal_forces():
    """A body on a spring and a damper that are functions of its own state."""
    m, k, c = 2.0, 50.0, 1.0
    body = nsds.rigid_bodies(m, 1.0, q=[0.1, 0, -0.2, *UPRIGHT], v=[0] * 6, fint=to_rest, z=[k, c])
    rows = run(nsds.system(body=body), 2.0)
    decay = c / (2 * m)
    omega = math.sqrt(k / m - decay**2)
    t = rows["t"]
    factor = np.exp(-decay * t) * (np.cos(omega * t) + decay / omega * np.sin(omega * t))
    np.testing.assert_allclose(rows["body"]["q"][:, [0, 2]], np.outer(factor, [0.1, -0.2]), atol=1e-5)


def test_cylindrical_joint_with_stops_and_friction_on_both_axes():
    """Dry friction brakes way and angle at ``F / m`` and ``M / I``; then it strikes a stop with the speed that is left."""
    m, moment, force, torque, e = 2.0, 0.5, 3.0, 0.4, 0.5
    z = [0, 0, 1.0]
    system = nsds.system(
        body=nsds.rigid_bodies(m, moment, q=[0, 0, 0, *UPRIGHT], v=[0, 0, 2.0, 0, 0, 3.0]),
        guide=nsds.interaction(joints.cylindrical([0, 0, 0], z), EQUAL, on="body"),
        stops=nsds.interaction(joints.slide_along(z, -1.0, 1.0), nsds.newton_impact(e), on="body"),
        along=nsds.interaction(joints.slide_along(z), nsds.dry_friction(force), on="body"),
        about=nsds.interaction(joints.hinge_angle(z), nsds.dry_friction(torque), on="body"),
    )
    rows = run(system, 5.0)
    v = rows["body"]["v"]
    left = math.sqrt(4.0 - 2 * force / m)
    first = int((v[:, 2] < 0).argmax())
    assert v[first, 2] == pytest.approx(-e * left, rel=5e-3)
    assert rows["body"]["q"][-1, 2] == pytest.approx(1.0 - (e * left) ** 2 / (2 * force / m), abs=3e-3)
    turned = 3.0**2 / (2 * torque / moment)
    assert rows["about"]["y"][-1] == pytest.approx(turned, rel=1e-3)
    assert abs(v[-1]).max() < 1e-12


@pytest.mark.parametrize(("name", "part"), [("box", None), ("ball", 2 / 5), ("cylinder", 1 / 2), ("capsule", None)])
def test_slide_and_roll_down_a_slope(name, part):
    """A box slides with ``sin - mu cos`` of g, a ball rolls with 5/7 of sin, a cylinder with 2/3; a capsule by its own inertia."""
    slope, mu, r = 0.4, 0.3, 0.1
    shape = {
        "box": shapes.box([0.2, 0.2, 0.2]), "ball": shapes.sphere(r), "cylinder": shapes.cylinder(r, 0.3), "capsule": shapes.capsule(r, 0.3)
    }[name]  # fmt: skip
    if part is None and name == "capsule":
        part = shapes.inertia(shape, 1.0)[2, 2] / r**2
    gravity = [G * math.sin(slope), 0, -G * math.cos(slope)]
    body = solid(shape, [0, 0, 0.1], p=UPRIGHT if name in ("box", "ball") else LYING)
    floor = nsds.collisions({"body": shape}, friction(mu), world=shapes.plane())
    rows = run(nsds.system(gravity=gravity, body=body, floor=floor), 0.5)
    share = math.sin(slope) - mu * math.cos(slope) if part is None else math.sin(slope) / (1 + part)
    assert rows["body"]["v"][-1, 0] == pytest.approx(G * share * 0.5, rel=2e-3)


# ------------------------------------------------------------------------------------------------------------------ contact detection
def born_and_dead(t, x, state, z, u):
    for i in range(u.size):
        u[i] = 1.0 if z[2 * i] - 1e-9 < t < z[2 * i + 1] - 1e-9 else 0.0


def test_cubes_with_times_of_birth_and_death():
    """delayed_cubes, deleted_cubes, reused_cube, TimeofBirthandDeath: each falls from its birth on, and lies where it died."""
    cube = shapes.box([0.2] * 3)
    times = [0.0, 9.0, 0.1, 0.4, 0.3, 9.0]
    q = [[i, 0, 1.1, *UPRIGHT] for i in range(3)]
    system = nsds.system(
        gravity=DOWN, cubes=nsds.rigid_bodies(1.0, shapes.inertia(cube, 1.0), q=q, v=np.zeros((3, 6)), alive=[True, False, False]),
        ground=nsds.collisions({"cubes": cube}, friction(0.5), world=shapes.plane()),
        clock=nsds.sampled_control(born_and_dead, reads="cubes.q", writes="cubes.alive", z=times),
    )  # fmt: skip
    rows = run(system, 1.0)
    z, alive = rows["cubes"]["q"][:, :, 2], rows["cubes"]["alive"]
    np.testing.assert_allclose(alive.sum(axis=0), [1001, 300, 701], atol=1)
    assert z[-1, 1] == pytest.approx(1.1 - G * 0.3**2 / 2, abs=4e-3)
    assert z[400, 2] == pytest.approx(1.1 - G * 0.1**2 / 2, abs=2e-3)
    np.testing.assert_allclose(z[-1, [0, 2]], 0.1, atol=6e-3)


def test_cluster_of_spheres_that_is_born():
    """sphere_clusters, cubes_sphere_contactors: eight balls on a body lie on four, which carry its weight."""
    balls = [shapes.sphere(0.05, position=x) for x in 0.1 * np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])]
    system = nsds.system(
        gravity=DOWN, cluster=nsds.rigid_bodies(2.0, 0.02, q=[0, 0, 0.2, *UPRIGHT], v=[0] * 6, alive=False),
        ground=nsds.collisions({"cluster": balls}, friction(0.5), world=shapes.plane()),
        clock=nsds.sampled_control(born_and_dead, reads="cluster.q", writes="cluster.alive", z=[0.1, 9.0]),
    )  # fmt: skip
    rows = run(system, 0.5)
    carried = rows["ground"]["lambda"][-1, :, 0] / 1e-3
    assert rows["ground"]["n"][-1] == 4
    np.testing.assert_allclose(carried.sum(), 2.0 * G, rtol=1e-6)
    assert rows["cluster"]["q"][-1, 2] == pytest.approx(0.15, abs=2e-3)


def touched(t, x, state, z, u):
    """The last shape vanishes once something has pressed on it."""
    if x[0] > 0.0 and x[1] > 0.0:
        state[0] = 1.0
    if state[0] == 1.0:
        u[u.size - 1] = 0.0


def test_contactor_that_is_removed_once_it_is_touched():
    """spheres_remove_contactor: the ball leaves with its rebound, and falls past the place where the plane was."""
    ball, h = shapes.sphere(0.1), 1e-3
    system = nsds.system(
        gravity=DOWN, ball=solid(ball, [0, 0, 0.6]),
        plate=nsds.collisions({"ball": ball}, nsds.newton_impact(0.5), world=shapes.plane(), enabled=[True, True]),
        trap=nsds.sampled_control(touched, reads=("plate.n", "plate.lambda"), writes="plate.enabled", state=[0.0]),
    )  # fmt: skip
    rows = run(system, 1.0, h)
    hit = math.sqrt(2 * 0.5 / G)
    up = 0.5 * G * hit
    t = 1.0 - hit
    assert rows["ball"]["q"][-1, 2] == pytest.approx(0.1 + up * t - G * t**2 / 2, abs=2e-2)


@pytest.mark.parametrize(("omega", "leaves"), [(25.0, False), (40.0, True)])
def test_cubes_on_a_vibrating_table(omega, leaves):
    """n_cubes_vibrating: they part from the table where its acceleration exceeds g."""
    cube, amplitude = shapes.box([0.2] * 3), 0.01
    slab = shapes.box([2, 2, 0.2])
    q = [[-0.5, 0, 0.2, *UPRIGHT], [0.5, 0, 0.2, *UPRIGHT]]
    v = np.tile([0, 0, amplitude * omega, 0, 0, 0], (2, 1))
    system = nsds.system(
        gravity=DOWN, cubes=nsds.rigid_bodies(1.0, shapes.inertia(cube, 1.0), q=q, v=v),
        table=nsds.rigid_bodies(50.0, 50.0, q=[0, 0, 0, *UPRIGHT], v=[0, 0, amplitude * omega, 0, 0, 0]),
        drive=nsds.interaction(nsds.prescribed_velocity([0, 1, 2, 3, 4, 5], [0] * 6, amplitude=[0, 0, amplitude * omega, 0, 0, 0],
                                                        omega=[omega] * 6), EQUAL, on="table"),
        contacts=nsds.collisions({"cubes": cube, "table": slab}, friction(0.5), pairs=[("cubes", "table")]),
    )  # fmt: skip
    rows = run(system, 0.5)
    gap = (rows["cubes"]["q"][:, :, 2] - rows["table"]["q"][:, None, 2] - 0.2).max()
    assert (gap > 1e-3) == leaves
    if leaves:  # at the phase at which a = g
        first = int((rows["cubes"]["p"][1:, 0, 2] == 0).argmax())
        assert rows["t"][first] == pytest.approx(math.asin(G / (amplitude * omega**2)) / omega, abs=2e-3)


def test_stack_of_cubes_under_direct_projection():
    """Cubes that fall into each other's places lie there without any overlap."""
    cube = shapes.box([0.2] * 3)
    q = [[0, 0, 0.1 + 0.22 * k, *UPRIGHT] for k in range(3)]
    bodies = nsds.rigid_bodies(1.0, shapes.inertia(cube, 1.0), q=q, v=np.zeros((3, 6)))
    contacts = nsds.collisions({"cubes": cube}, friction(0.5), world=shapes.plane())
    rows = run(nsds.system(gravity=DOWN, cubes=bodies, contacts=contacts), 0.5, scheme=nsds.moreau_jean_direct_projection())
    np.testing.assert_allclose(rows["cubes"]["q"][-1, :, 2], [0.1, 0.3, 0.5], atol=1e-6)
    y, n = rows["contacts"]["y"], rows["contacts"]["n"]
    assert (y * (np.arange(y.shape[1]) < n[:, None])).min() > -1e-6


def test_disk_and_box_in_the_plane():
    """2d_primitives, disk_on_box: a disk bounces by its restitution, a box slides to rest."""
    disk, box = shapes.disk(0.1), shapes.rectangle([0.4, 0.2])
    system = nsds.system(
        gravity=[0, -G, 0],
        disk=nsds.planar_bodies(1.0, shapes.inertia(disk, 1.0), q=[-2.0, 0.6, 0], v=[0, 0, 0]),
        box=nsds.planar_bodies(1.0, shapes.inertia(box, 1.0), q=[0, 0.1, 0], v=[1.5, 0, 0]),
        bounces=nsds.collisions({"disk": disk}, friction(0.5, e=0.7), world=shapes.half_plane()),
        slides=nsds.collisions({"box": box}, friction(0.4), world=shapes.half_plane()),
    )
    rows = run(system, 0.6)
    assert rows["box"]["q"][-1, 0] == pytest.approx(1.5**2 / (2 * 0.4 * G), abs=3e-3)
    speed = math.sqrt(2 * G * 0.5)
    assert rows["disk"]["v"][:, 1].max() == pytest.approx(0.7 * speed, rel=5e-3)


@pytest.mark.parametrize(("mu", "cosine"), [(0.0, 2 / 3), (20.0, 4 / 7)])
def test_disk_on_a_disk(mu, cosine):
    """It leaves the one below where ``cos = 2/3`` if it slides, and ``4/7`` if it rolls."""
    small, large = 0.1, 0.4
    start, far = 0.05, small + large
    disk = shapes.disk(small)
    body = nsds.planar_bodies(1.0, shapes.inertia(disk, 1.0), q=[far * math.sin(start), far * math.cos(start), 0], v=[0, 0, 0])
    contact = nsds.collisions({"disk": disk}, friction(mu), world=shapes.disk(large))
    rows = run(nsds.system(gravity=[0, -G, 0], disk=body, contact=contact), 1.3, 2e-4)
    q, _ = nsds.in_plane(rows["disk"])
    level = q[:, 1] / np.hypot(q[:, 0], q[:, 1])
    on = level > 1.05 * cosine
    force = G * (level[on] - cosine / (1 - cosine) * (math.cos(start) - level[on]))
    assert rows["contact"]["lambda"][: on.sum(), 0, 0].sum() == pytest.approx(2e-4 * force.sum(), rel=5e-3)
    last = np.flatnonzero(rows["contact"]["lambda"][:, 0, 0] > 0)[-1]
    assert level[last] == pytest.approx(cosine * math.cos(start), rel=3e-2)


def test_polygons_on_a_box_in_the_plane():
    """convexhull2d_on_box: a wedge on a fixed box slides down its upper face as a block does."""
    slope, mu = 0.5, 0.2
    wedge = shapes.polygon([[-0.2, -0.1], [0.2, -0.1], [0.0, 0.2]])
    body = nsds.planar_bodies(1.0, shapes.inertia(wedge, 1.0), q=[0, 0.1, 0], v=[0, 0, 0])
    world = shapes.rectangle([8.0, 0.4], position=[0, -0.2])
    contact = nsds.collisions({"wedge": wedge}, friction(mu), world=world)
    gravity = [G * math.sin(slope), -G * math.cos(slope), 0]
    rows = run(nsds.system(gravity=gravity, wedge=body, contact=contact), 0.5)
    assert rows["wedge"]["v"][-1, 0] == pytest.approx(0.5 * G * (math.sin(slope) - mu * math.cos(slope)), rel=1e-3)


def test_soup_of_primitives():
    """primitive_soup, cone: solids of all kinds that lie on the ground carry their weights, and nothing else."""
    kinds = [shapes.sphere(0.1), shapes.box([0.2] * 3), shapes.cylinder(0.1, 0.2), shapes.cone(0.15, 0.2), shapes.capsule(0.1, 0.2),
             shapes.convex(0.1 * np.array([[1, 1, 1], [-1, -1, 1], [1, -1, -1], [-1, 1, -1]]))]  # fmt: skip
    high = [0.1, 0.1, 0.1, 0.05, 0.1, 0.1]
    parts = {f"s{i}": solid(shape, [0.5 * i, 0, high[i] + 0.05], p=LYING if i == 4 else UPRIGHT) for i, shape in enumerate(kinds)}
    ground = nsds.collisions({f"s{i}": shape for i, shape in enumerate(kinds)}, friction(0.6), world=shapes.plane())
    rows = run(nsds.system(gravity=DOWN, **parts, ground=ground), 1.0)
    np.testing.assert_allclose(rows["ground"]["lambda"][-20:, :, 0].sum(), 20 * 6 * G * 1e-3, rtol=1e-2)


def test_stone_on_a_slope_of_heights():
    """RockFall: a hull on a height map slides down as a block does."""
    slope, mu = 0.5, 0.25
    n = 9
    x = np.linspace(-4, 4, n)
    ground = shapes.height_map(np.repeat(-math.tan(slope) * x[:, None], n, axis=1), [8.0, 8.0])
    half = np.array([0.2, 0.2, 0.1])
    stone = shapes.convex(half * np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]))
    p = [math.cos(slope / 2), 0, math.sin(slope / 2), 0]
    normal = np.array([math.sin(slope), 0, math.cos(slope)])
    body = solid(stone, 0.1 * normal + np.array([-1.0, 0, math.tan(slope)]), p=p)
    contact = nsds.collisions({"stone": stone}, friction(mu), world=ground)
    rows = run(nsds.system(gravity=DOWN, stone=body, contact=contact), 0.4)
    v = rows["stone"]["v"][-1, :3]
    assert np.hypot(v[0], v[2]) == pytest.approx(0.4 * G * (math.sin(slope) - mu * math.cos(slope)), rel=1e-2)
