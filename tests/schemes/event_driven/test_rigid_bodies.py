"""Event-driven runs of rigid bodies against closed forms, and against machines whose motion is known to more digits than is asked."""

import math

import numpy as np
import pytest

import nsds
from nsds.maths.rotations import turned
from nsds.model import joints
from nsds.status import ACCUMULATION, FRICTION, JUMP, is_event
from tests.paths import MACHINES
from tests.schemes.event_driven.test_event_driven import G, happened, run
from tests.schemes.rigid.test_newton_euler_machines import EQUAL, arm, body, four_bar, reference

TIGHT = {"rtol": 1e-11, "atol": 1e-13}
RUBBING = nsds.newton_impact_friction(e_n=0.0, mu=1.0)


def height_of_centre(t, q, z, out):
    out[0], out[1], out[2], out[3] = q[2] - z[0], q[0], q[1], 0.0
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def on_floor(law, name="ball", radius=0.0):
    return nsds.interaction(nsds.contact_point(height_of_centre, z=[radius]), law, on=name)


# ------------------------------------------------------------------------------------------------------- closed forms
def test_a_ball_bounces_to_its_rest():
    e, first = 0.8, math.sqrt(2 / G)
    ball = nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 1, 1, 0, 0, 0], v=[0.5, 0, 0, 0, 0, 2], fext=[0, 0, -G])
    rows = run(nsds.system(ball=ball, floor=on_floor(nsds.newton_impact(e=e))), 5.0, **TIGHT)
    after, _ = happened(rows, JUMP)
    n = np.arange(len(after))
    np.testing.assert_allclose(after["t"], first + 2 * first * (e - e ** (n + 1)) / (1 - e), atol=1e-11)
    np.testing.assert_allclose(after["floor"]["lambda"][:-1], (1 + e) * G * first * e ** n[:-1], rtol=1e-9)
    np.testing.assert_allclose(happened(rows, ACCUMULATION)[0]["t"], [first * (1 + e) / (1 - e)], atol=1e-11)
    assert rows["floor"]["lambda"][-1] == pytest.approx(G, rel=1e-12)
    assert rows["ball"]["v"][-1] == pytest.approx([0.5, 0, 0, 0, 0, 2], abs=1e-12)
    np.testing.assert_allclose(np.linalg.norm(rows["ball"]["q"][:, 3:], axis=1), 1.0, atol=1e-15)


def test_a_sphere_slides_and_then_rolls():
    """It rolls from ``2 v_0 / (7 mu g)`` on, with ``5 v_0 / 7``, in whatever direction, without slip and without friction."""
    m, R, mu, v = 1.5, 0.2, 0.25, np.array([3 * math.cos(0.7), 3 * math.sin(0.7), 0])
    ball = nsds.rigid_bodies(m, 0.4 * m * R * R, q=[0, 0, R, 1, 0, 0, 0], v=[*v, 0, 0, 0], fext=[0, 0, -m * G])
    rows = run(nsds.system(ball=ball, floor=on_floor(nsds.newton_impact_friction(e_n=0.5, mu=mu), radius=R)), 1.0, **TIGHT)
    stop, _ = happened(rows, FRICTION)
    np.testing.assert_allclose(stop["t"], [2 * 3 / (7 * mu * G)], rtol=1e-10)
    slides = rows["t"] < stop["t"][0]
    wanted = v * (1 - mu * G * rows["t"][slides] / 3)[:, None]
    np.testing.assert_allclose(rows["ball"]["v"][slides, :3], wanted, atol=1e-11)
    np.testing.assert_allclose(rows["ball"]["v"][~slides, :3], np.broadcast_to(5 / 7 * v, (np.sum(~slides), 3)), atol=1e-10)
    assert abs(rows["floor"]["lambda"][-1, 1:]).max() < 1e-9
    assert rows["floor"]["lambda"][-1, 0] == pytest.approx(m * G, rel=1e-11)


def test_a_free_body_keeps_what_is_kept():
    """Energy and the inertial angular momentum of a body that tumbles about its middle axis."""
    I = np.array([1.0, 2.0, 3.0])
    rows = run(nsds.system(body=nsds.rigid_bodies(1.0, I, q=[0, 0, 0, 1, 0, 0, 0], v=[0, 0, 0, 1e-3, 2.0, 0])), 20.0, 0.5, **TIGHT)
    Omega = rows["body"]["v"][:, 3:]
    assert (np.sign(Omega[:, 1]) < 0).any()  # it turns over
    np.testing.assert_allclose(Omega**2 @ I, Omega[0] ** 2 @ I, rtol=1e-9)
    momentum = turned(rows["body"]["q"][:, 3:], Omega * I)
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-8)


def test_a_point_stops_on_a_curved_path_on_an_incline():
    """It stops at 1.03575625931202 s, 1.30735177831326 m across and 0.00821759517641119 m uphill of its start, and stays."""
    m, tilt, mu = 1.3, 0.4, 0.6
    down, across, up = (np.array(x) for x in ([math.cos(tilt), 0, -math.sin(tilt)], [0, 1.0, 0], [math.sin(tilt), 0, math.cos(tilt)]))
    v = 4 * (math.cos(2) * down + math.sin(2) * across)
    block = nsds.rigid_bodies(m, 0.1, q=[0, 0, 0, 1, 0, 0, 0], v=[*v, 0, 0, 0], fext=[0, 0, -m * G])

    def gap(t, q, z, out):
        out[0] = z[0] * q[0] + z[1] * q[2]
        out[1], out[2], out[3] = q[0] - out[0] * z[0], q[1], q[2] - out[0] * z[1]
        out[4], out[5], out[6] = z[0], 0.0, z[1]

    floor = nsds.interaction(nsds.contact_point(gap, z=[up[0], up[2]]), nsds.newton_impact_friction(e_n=0.0, mu=mu), on="block")
    rows = run(nsds.system(block=block, floor=floor), 2.0, **TIGHT)
    stop, _ = happened(rows, FRICTION)
    np.testing.assert_allclose(stop["t"], [1.03575625931202], atol=1e-10)
    np.testing.assert_allclose(rows["block"]["q"][-1, :3], -0.00821759517641119 * down + 1.30735177831326 * across, atol=1e-10)
    assert abs(rows["block"]["v"][-1]).max() < 1e-12
    assert np.linalg.norm(rows["floor"]["lambda"][-1, 1:]) == pytest.approx(m * G * math.sin(tilt), rel=1e-10)


def cylinder(width, law, lean=0.0, clear=0.0):
    """A cylinder of radius 0.1 above a plane, its axis lean from the vertical."""
    solid = nsds.shapes.cylinder(0.1, width)
    z = 0.5 * width * math.cos(lean) + 0.1 * math.sin(lean) + clear
    part = nsds.rigid_bodies(
        1.0, nsds.shapes.inertia(solid, 1.0), q=[0, 0, z, math.cos(lean / 2), math.sin(lean / 2), 0, 0], v=[0] * 6, fext=[0, 0, -G]
    )
    return nsds.system(solid=part, contacts=nsds.collisions({"solid": solid}, law, world=nsds.shapes.plane()))


@pytest.mark.parametrize(
    ("width", "law"),
    [
        (0.1, nsds.newton_impact_rolling_friction(e_n=0.0, mu=0.5, mu_r=1e-3)),
        (0.1, nsds.newton_impact(e=0.0)),
        (0.3, nsds.newton_impact_friction(e_n=0.5, mu=0.5)),
    ],
)
def test_a_cylinder_that_falls_over_its_rim_is_not_carried_off(width, law):
    """Its lowest point jumps round the rim where that lies flat, next to others that touch: projections there moved it by kilometres."""
    system = cylinder(width, law, lean=0.39, clear=0.2)
    rows = nsds.simulate(system, t_end=1.2, h=0.1, scheme=nsds.event_driven())
    q, v, inertia = rows["solid"]["q"], rows["solid"]["v"], np.diag(nsds.shapes.inertia(nsds.shapes.cylinder(0.1, width), 1.0))
    energy = (v[:, :3] ** 2).sum(axis=1) / 2 + v[:, 3:] ** 2 @ inertia / 2 + G * q[:, 2]
    assert np.diff(energy).max() < 1e-3 * energy[0]
    assert abs(q[:, :2]).max() < 1.0
    assert rows["contacts"]["y"].min() > -1e-5


def test_a_cylinder_stands_on_contacts_that_hardly_resist_rolling():
    """Moments that cancel between its contacts are the scale of what turns: with rounding alone modes changed without end."""
    rows = nsds.simulate(
        cylinder(0.3, nsds.newton_impact_rolling_friction(e_n=0.0, mu=0.5, mu_r=1e-9)), t_end=0.3, h=0.1, scheme=nsds.event_driven()
    )
    assert (rows["status"] == 0).all()
    np.testing.assert_allclose(rows["solid"]["q"][-1], [0, 0, 0.15, 1, 0, 0, 0], atol=1e-12)


# ------------------------------------------------------------------------------------------------- contacts of shapes
def in_scene(law, shape, world, q, v=(0,) * 6, inertia=0.016):
    part = nsds.rigid_bodies(1.0, inertia, q=q, v=v, fext=[0, 0, -G])
    return nsds.system(body=part, hits=nsds.collisions({"body": shape}, law, world=world))


def test_a_sphere_bounces_on_what_its_shape_finds():
    e, first = 0.8, math.sqrt(2 / G)
    system = in_scene(nsds.newton_impact(e=e), nsds.shapes.sphere(0.2), nsds.shapes.plane(), [0, 0, 1.2, 1, 0, 0, 0])
    rows = run(system, 5.0, **TIGHT)
    after, _ = happened(rows, JUMP)
    n = np.arange(len(after))
    np.testing.assert_allclose(after["t"], first + 2 * first * (e - e ** (n + 1)) / (1 - e), atol=1e-11)
    np.testing.assert_allclose(after["hits"]["lambda"][:-1, 0, 0], (1 + e) * G * first * e ** n[:-1], rtol=1e-9)
    assert (rows["hits"]["n"][rows["t"] < first * (1 - 1e-9)] == 0).all()
    last = rows[-1]["hits"]
    assert (last["n"], last["a"][0], last["b"][0], last["feature"][0]) == (1, 0, 1, 0)
    np.testing.assert_allclose(last["normal"][0], [0, 0, 1], atol=1e-15)
    np.testing.assert_allclose(last["point"][0], [0, 0, 0], atol=1e-12)
    assert last["lambda"][0, 0] == pytest.approx(G, rel=1e-11)
    assert not last["lambda"][1:].any()
    assert not last["normal"][1:].any()


def test_spheres_of_one_part_hit_each_other():
    """Newton's cradle of two: the second takes the velocity of the first, off the line by none."""
    balls = nsds.rigid_bodies(
        [1.0, 1.0], [0.01, 0.01], q=[[0, 0, 0, 1, 0, 0, 0], [1, 0, 0, 1, 0, 0, 0]], v=[[2, 0, 0, 0, 0, 0], [0] * 6], count=2
    )
    system = nsds.system(balls=balls, hits=nsds.collisions({"balls": nsds.shapes.sphere(0.2)}, nsds.newton_impact(e=1.0)))
    rows = run(system, 1.0, **TIGHT)
    after, _ = happened(rows, JUMP)
    np.testing.assert_allclose(after["t"], [0.3], atol=1e-14)
    np.testing.assert_allclose(rows["balls"]["v"][-1, :, 0], [0, 2], atol=1e-14)


def test_records_without_room_for_all_contacts_get_it():
    """Of three spheres and the floor there are six."""
    q, shape = [[0.1 * k, 0, 0.5 + k, 1, 0, 0, 0] for k in range(3)], {"balls": nsds.shapes.sphere(0.2)}
    parts = {"balls": nsds.rigid_bodies(1.0, 0.016, q=q, v=np.zeros((3, 6)), fext=[0, 0, -G])}
    rooms = [nsds.collisions(shape, nsds.newton_impact(e=0.5), world=nsds.shapes.plane(), capacity=n) for n in (1, 20)]
    short, long = (run(nsds.system(**parts, hits=hits), 0.5, **TIGHT) for hits in rooms)
    assert short["hits"]["y"].shape[1] >= 6
    for part, field in (("balls", "q"), ("balls", "v"), ("hits", "n")):
        assert short[part][field].tobytes() == long[part][field].tobytes()


@pytest.mark.parametrize("law", [nsds.newton_impact(e=0.0), RUBBING])
def test_a_sphere_falls_on_another_that_lies_on_the_floor(law):
    """Shapes of which some contacts are of two bodies, others of a body and the world; they come to rest one above the other."""
    parts = {f"ball_{k}": nsds.rigid_bodies(1.0, 0.016, q=[0, 0, 1.0 + k, 1, 0, 0, 0], v=[0] * 6, fext=[0, 0, -G]) for k in range(2)}
    hits = nsds.collisions(dict.fromkeys(parts, nsds.shapes.sphere(0.2)), law, world=nsds.shapes.plane())
    rows = run(nsds.system(**parts, hits=hits), 0.6, **TIGHT)
    after, _ = happened(rows, JUMP)
    np.testing.assert_allclose(after["t"], [math.sqrt(2 * 0.8 / G), math.sqrt(2 * 1.4 / G)], rtol=1e-11)
    np.testing.assert_allclose([rows[name]["q"][-1, 2] for name in parts], [0.2, 0.6], atol=1e-12)
    np.testing.assert_allclose(np.sort(rows["hits"]["lambda"][-1, :, 0])[-2:], [G, 2 * G], rtol=1e-9)


def test_a_box_slides_on_its_face_and_stops():
    """All four feet share the load; it stops at ``v / (mu g)``, in a straight line."""
    mu, v = 0.4, np.array([1.2, 0.5])
    law = nsds.newton_impact_friction(e_n=0.0, mu=mu)
    system = in_scene(law, nsds.shapes.box([0.6, 0.6, 0.1]), nsds.shapes.plane(), [0, 0, 0.05, 1, 0, 0, 0], [*v, 0, 0, 0, 0], 0.05)
    rows = run(system, 1.0, **TIGHT)
    speed = np.linalg.norm(v)
    np.testing.assert_allclose(rows["body"]["q"][-1, :2], v * speed / (2 * mu * G), atol=1e-9)
    assert abs(rows["body"]["v"][-1]).max() < 1e-12
    forces = rows["hits"]["lambda"][:, :, 0].sum(axis=1)[rows["status"] == 0]
    np.testing.assert_allclose(forces[1:], G, rtol=1e-9)
    assert (rows["hits"]["n"][1:] == 4).all()


def test_a_box_that_falls_on_a_corner_loses_energy():
    q = [0, 0, 1, *(np.array([1, 0.3, 0.2, 0.1]) / math.sqrt(1.14))]
    law = nsds.newton_impact_friction(e_n=0.3, mu=0.4)
    rows = run(in_scene(law, nsds.shapes.box([0.6, 0.6, 0.6]), nsds.shapes.plane(), q, inertia=0.1), 0.6, **TIGHT)
    v = rows["body"]["v"]
    energy = 0.5 * (v[:, :3] ** 2).sum(axis=1) + 0.05 * (v[:, 3:] ** 2).sum(axis=1) + G * rows["body"]["q"][:, 2]
    after, _ = happened(rows, JUMP)
    assert len(after) == 2
    assert np.diff(energy).max() < 1e-10
    assert energy[-1] < 0.6 * energy[0]


# ----------------------------------------------------------------------------------------------------------- machines
def test_a_heavy_top_nutates():
    """After 32 turns, from the closed form with Jacobi's functions."""
    theta, arm_ = 0.9, 0.3
    q = [0, -arm_ * math.sin(theta), arm_ * math.cos(theta), math.cos(theta / 2), math.sin(theta / 2), 0, 0]
    v = [arm_ * math.sin(theta), 0, 0, 0, math.sin(theta), 40]
    system = nsds.system(top=body(1.0, [0.03, 0.03, 0.02], q, v), joint=nsds.interaction(joints.ball_joint([0, 0, 0]), EQUAL, on="top"))
    rows = run(system, 5.0, **TIGHT)
    np.testing.assert_allclose(rows["top"]["q"][-1, :3], [-0.25042308372481886, 0.1454213165956485, 0.07836402119174626], atol=1e-9)
    assert abs(rows["joint"]["y"]).max() < 1e-14
    assert abs(rows["joint"]["ydot"]).max() < 1e-13
    np.testing.assert_allclose(rows["top"]["v"][:, 5], 40, atol=1e-9)


def test_a_four_bar_of_hinges_that_are_redundant():
    """Twenty equations, of which three follow from the others; angles at 2 s of a program in minimal coordinates."""
    lengths, angles = {"crank": 0.3, "coupler": 0.8, "rocker": 0.6}, {}
    D = np.array([0.7 - 0.3 * math.cos(1), -0.3 * math.sin(1)])
    d = math.hypot(*D)
    angles["crank"], angles["coupler"] = 1.0, math.atan2(D[1], D[0]) + math.acos((0.64 + d * d - 0.36) / (1.6 * d))
    B = np.array([0.3 * math.cos(1), 0.3 * math.sin(1)]) + 0.8 * np.array([math.cos(angles["coupler"]), math.sin(angles["coupler"])])
    angles["rocker"] = math.atan2(B[1], B[0] - 0.7)
    starts = {"crank": np.zeros(2), "coupler": 0.3 * np.array([math.cos(1), math.sin(1)]), "rocker": np.array([0.7, 0])}
    # rates from that of the crank: w x (B - A) of both ways to B
    e = {name: np.array([-math.sin(a), math.cos(a)]) * lengths[name] for name, a in angles.items()}
    w = dict(zip(("coupler", "rocker"), np.linalg.solve(np.array([e["coupler"], -e["rocker"]]).T, -4 * e["crank"]), strict=True), crank=4.0)
    r = {}
    for name, a in angles.items():
        centre = starts[name] + lengths[name] / 2 * np.array([math.cos(a), math.sin(a)])
        v = w[name] * e[name] / 2 + (4 * e["crank"] if name == "coupler" else 0)
        r[f"free_q_{name}"] = np.array([[*centre, 0, math.cos(a / 2), 0, 0, math.sin(a / 2)]])
        r[f"free_v_{name}"] = np.array([[*v, 0, 0, 0, w[name]]])
    rows = run(four_bar(r, "free"), 2.0, **TIGHT)
    wanted = {"crank": 10.303404163125293, "coupler": 0.9523400373666028, "rocker": 2.3641844752497407}
    for name, angle in wanted.items():
        q = rows[name]["q"][-1]
        assert 2 * math.atan2(q[6], q[3]) % (2 * math.pi) == pytest.approx(angle % (2 * math.pi), abs=1e-8)
    assert rows["crank"]["v"][-1, 5] == pytest.approx(15.739475854500146, abs=1e-7)


def tip_gap(t, q, z, out):
    c, s = 1 - 2 * q[6] * q[6], 2 * q[3] * q[6]
    x, y = q[0] + 0.5 * s, q[1] - 0.5 * c
    out[0], out[1], out[2], out[3] = 0.3 - x, x, y, 0.0
    out[4], out[5], out[6] = -1.0, 0.0, 0.0


def test_a_double_pendulum_strikes_a_rough_wall():
    """Impacts that slip, stick, and slip back, with the forces of the hinges in the same problem."""
    angles, start, rods = (-1.2, -0.4), np.zeros(3), {}
    for name, a in zip(("one", "two"), angles, strict=True):
        along = np.array([math.sin(a), -math.cos(a), 0])
        rods[name] = body(
            1.0, [1 / 12, 1e-3, 1 / 12], [*(start + along / 2), math.cos(a / 2), 0, 0, math.sin(a / 2)], np.zeros(6), (0, -1, 0)
        )
        start = start + along
    elbow = [math.sin(angles[0]), -math.cos(angles[0]), 0]
    system = nsds.system(
        **rods,
        joint_0=nsds.interaction(joints.hinge([0, 0, 0], [0, 0, 1]), EQUAL, on="one"),
        joint_1=nsds.interaction(joints.hinge(elbow, [0, 0, 1]), EQUAL, on=("one", "two")),
        wall=nsds.interaction(nsds.contact_point(tip_gap), nsds.newton_impact_friction(e_n=0.6, mu=0.3), on="two"),
    )
    rows = run(system, 4.0, **TIGHT)
    after, before = happened(rows, JUMP)
    np.testing.assert_allclose(after["t"], [0.675729689747, 2.30586373693, 3.81142046023], atol=1e-10)
    impulses = [[3.615867911, 0, -1.084760373], [1.760872359, 0, -0.1193955434], [2.603451696, 0, 0.7810355089]]
    np.testing.assert_allclose(after["wall"]["lambda"], impulses, atol=1e-8)
    np.testing.assert_allclose(after["wall"]["ydot"][:, 0], -0.6 * before["wall"]["ydot"][:, 0], rtol=1e-10)
    assert rows["wall"]["y"][:, 0].min() > -1e-12


@pytest.mark.reference
@pytest.mark.skipif(not MACHINES.is_dir(), reason="the collection of machines is not part of the package")
@pytest.mark.parametrize("name", ["heavy_top", "hinge", "four_bar", "slider_crank", "disc", "arm"])
def test_machine_in_full(name):
    for system, r, bodies, t_end, tolerance in MACHINE[name]():
        rows = run(system, t_end, 0.01, **TIGHT)
        rows = rows[rows["status"] == 0]
        at = np.searchsorted(r["t"], rows["t"] - 1e-9)
        for part, column in bodies.items():
            wanted, found = r[column][at], rows[part]["q"]
            signs = np.sign((found[:, 3:] * wanted[:, 3:]).sum(axis=1))[:, None]
            assert abs(found[:, :3] - wanted[:, :3]).max() < tolerance
            assert abs(signs * found[:, 3:] - wanted[:, 3:]).max() < tolerance
        if name == "arm":
            angles = np.stack([rows["friction_0"]["y"], rows["friction_1"]["y"]], axis=1) + np.array([1.8, 0.6])
            assert abs(angles - np.stack([r["theta1"], r["theta2"]], axis=1)[at]).max() < tolerance


def heavy_top():
    r = reference("heavy_top_nutation")
    top = body(1.0, [0.03, 0.03, 0.02], r["q"][0], r["v"][0])
    yield nsds.system(top=top, joint=nsds.interaction(joints.ball_joint([0, 0, 0]), EQUAL, on="top")), r, {"top": "q"}, 5.0, 1e-8


def hinge():
    r = reference("hinge_pendulum_3d")
    inertia = [[0.05, 0.01, -0.008], [0.01, 0.08, 0.012], [-0.008, 0.012, 0.06]]
    joint = joints.hinge([0, 0, 0], [0, math.cos(0.3), math.sin(0.3)])
    system = nsds.system(body=body(2.0, inertia, r["q"][0], r["v"][0]), joint=nsds.interaction(joint, EQUAL, on="body"))
    yield system, r, {"body": "q"}, 5.0, 1e-9


def bars():
    r = reference("four_bar_three_bodies")
    yield four_bar(r, "free"), r, {name: f"free_q_{name}" for name in ("crank", "coupler", "rocker")}, 5.0, 1e-8


def slider_crank():
    r = reference("slider_crank_spatial")
    parts = {"crank": (0.12, [1e-4, 1e-5, 1e-4]), "rod": (0.5, [4e-4, 4e-3, 4e-3]), "slider": (2.0, 1e-4)}
    yield nsds.system(
        **{name: body(m, I, r["q_" + name][0], r["v_" + name][0]) for name, (m, I) in parts.items()},
        joint_0=nsds.interaction(joints.hinge([0, 0.1, 0.12], [1, 0, 0]), EQUAL, on="crank"),
        joint_1=nsds.interaction(joints.ball_joint([0, 0.1, 0.2]), EQUAL, on=("crank", "rod")),
        joint_2=nsds.interaction(joints.ball_joint(r["q_slider"][0][:3]), EQUAL, on=("rod", "slider")),
        joint_3=nsds.interaction(joints.prismatic([1, 0, 0]), EQUAL, on="slider"),
    ), r, {name: "q_" + name for name in parts}, float(r["t"][-1]), 1e-7  # fmt: skip


def edge(t, q, z, out):
    x, y, along = 2 * (q[4] * q[6] + q[3] * q[5]), 2 * (q[5] * q[6] - q[3] * q[4]), 1 - 2 * (q[4] * q[4] + q[5] * q[5])
    n = math.sqrt(x * x + y * y)  # of the horizontal part of the axis
    d0, d1, d2 = -along * x / n, -along * y / n, n
    out[0] = q[2] - z[0] * d2
    out[1], out[2], out[3] = q[0] - z[0] * d0, q[1] - z[0] * d1, q[2] - z[0] * d2
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def disc():
    r, R, m = reference("rolling_disc_precession"), 0.25, 1.2
    for name in ("steady", "euler", "perturbed"):
        coin = body(m, [m * R * R / 4, m * R * R / 4, m * R * R / 2], r[name + "_q"][0], r[name + "_v"][0])
        floor = nsds.interaction(nsds.contact_point(edge, z=[R]), RUBBING, on="coin")
        yield nsds.system(coin=coin, floor=floor), r, {"coin": name + "_q"}, 5.0, 1e-8


def arms():
    yield arm(1.8, 0.6), reference("two_link_joint_friction"), {}, 8.0, 1e-8


MACHINE = {"heavy_top": heavy_top, "hinge": hinge, "four_bar": bars, "slider_crank": slider_crank, "disc": disc, "arm": arms}


# ------------------------------------------------------------------------------------------------------------ bad input
def test_what_is_not_treated_is_refused():
    ball = nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 1, 1, 0, 0, 0], v=np.zeros(6))
    with pytest.raises(ValueError, match="flow='exact'"):
        run(nsds.system(ball=ball, floor=on_floor(nsds.newton_impact(e=0.5))), 1.0, flow="exact")


def _slider_crank(length):
    """Orientations of a slider-crank whose piston has clearance in its guide, of that length, all in proportion, under one gravity."""
    shapes, second = nsds.shapes, np.sqrt(length)
    bodies = {
        "crank": (shapes.capsule(0.01 * length, 0.1 * length), [0, 0, 0.05], 0.0, [0.5, 0, 0, 0, 10.0, 0]),
        "rod": (shapes.capsule(0.01 * length, 0.3 * length), [0.05 * np.sqrt(8), 0, 0.05], np.pi / 2 + np.arcsin(1 / 3), np.zeros(6)),
        "piston": (shapes.box(length * np.array([0.08, 0.05, 0.0496])), [0.1 * np.sqrt(8), 0, 0], 0.0, np.zeros(6)),
    }
    parts = {}
    for name, (shape, place, angle, v) in bodies.items():
        mass, turn = 1000.0 * shapes.volume(shape), [np.cos(angle / 2), 0, np.sin(angle / 2), 0]
        v = np.asarray(v) * np.repeat([second, 1 / second], 3)
        parts[name] = nsds.rigid_bodies(mass, shapes.inertia(shape, mass), q=np.r_[length * np.array(place), turn], v=v)
    for name, point, on in (("main", [0, 0, 0], "crank"), ("big", [0, 0, 0.1], ("crank", "rod")),
                            ("small", [0.1 * np.sqrt(8), 0, 0], ("rod", "piston"))):  # fmt: skip
        parts[name] = nsds.interaction(nsds.joints.hinge(length * np.array(point), [0, 1, 0]), nsds.equality(), on=on)
    walls = [shapes.plane([0, 0, 1], -0.025 * length), shapes.plane([0, 0, -1], -0.025 * length)]
    hits = nsds.collisions({"piston": bodies["piston"][0]}, nsds.newton_impact_friction(e_n=0.3, mu=0.1), world=walls)
    system = nsds.system(gravity=[0, 0, -9.81], hits=hits, **parts)
    rows = nsds.simulate(system, t_end=0.1 * second, h=5e-3 * second, scheme=nsds.event_driven())
    return np.array([rows[name]["q"][:, 3:] for name in bodies])


def test_impacts_beside_joints_are_solved_in_any_unit():
    """Rows of angles of bodies of a micrometre have a diagonal that is 1e12 times that of their contacts."""
    wanted = _slider_crank(1.0)
    for length in (2.0**-20, 2.0**20):
        np.testing.assert_allclose(_slider_crank(length), wanted, atol=1e-8)


def test_what_stands_beside_what_falls_has_no_events():
    """Forces at corners that others carry are rounding, and change sign all the time."""
    rows = nsds.simulate(nsds.examples.dominoes(n=3), t_end=0.1, h=0.01, scheme=nsds.event_driven())
    assert not is_event(rows["status"]).any()
    np.testing.assert_allclose(rows["dominoes"]["q"][-1, 1:, :3], rows["dominoes"]["q"][0, 1:, :3], atol=1e-12)
