"""Robots from URDF: places and velocities of links by products of transforms, inertias, joints in closed form, what is refused."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from scipy.spatial.transform import Rotation

import nsds
from tests.strategies import examples, generators

pytest.importorskip("yourdfpy")
GRAVITY = 9.81
BOX = '<collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision>'


def link(name, mass=1.0, inertia=(0.1, 0.1, 0.1), origin="", more=""):
    moments = " ".join(f'i{axis}{axis}="{value!r}"' for axis, value in zip("xyz", inertia, strict=True))
    return f'<link name="{name}"><inertial>{origin}<mass value="{mass!r}"/><inertia {moments}/></inertial>{more}</link>'


def joint(name, kind, parent, child, axis=(0, 0, 1), more=""):
    axis = " ".join(map(repr, map(float, axis)))
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/>{more}</joint>'


def urdf(*parts):
    return f'<robot name="r">{"".join(parts)}</robot>'


def origin(rng):
    """(text, matrix) of a random one: roll, pitch and yaw about fixed axes, in that order."""
    xyz, rpy = rng.normal(size=3), rng.uniform(-1.5, 1.5, size=3)
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = Rotation.from_euler("xyz", rpy).as_matrix(), xyz
    return f'<origin xyz="{" ".join(map(repr, xyz.tolist()))}" rpy="{" ".join(map(repr, rpy.tolist()))}"/>', matrix


def motion(kind, axis, s):
    """Transform of a joint whose coordinate is s."""
    result, axis = np.eye(4), axis / np.linalg.norm(axis)
    if kind == "prismatic":
        result[:3, 3] = s * axis
    elif kind in ("revolute", "continuous"):
        result[:3, :3] = Rotation.from_rotvec(s * axis).as_matrix()
    return result


def random_tree(rng, n):
    """(text, [(parent, kind, axis, transform of the origin)], [(mass, moments, transform of the inertial frame)])."""
    texts, chain, masses = ['<link name="l0"/>'], [], []
    for i in range(1, n + 1):
        (where, T), (inertial, C) = origin(rng), origin(rng)
        parent, kind, axis = int(rng.integers(i)), str(rng.choice(["revolute", "continuous", "prismatic", "fixed"])), rng.normal(size=3)
        mass, moments = float(rng.uniform(0.5, 3)), rng.uniform(1, 1.9, size=3)
        limit = '<limit lower="-9" upper="9" effort="1" velocity="1"/>' if kind in ("revolute", "prismatic") else ""
        texts += [link(f"l{i}", mass, moments.tolist(), inertial), joint(f"j{i}", kind, f"l{parent}", f"l{i}", axis, where + limit)]
        chain.append((parent, kind, axis, T))
        masses.append((mass, moments, C))
    return urdf(*texts), chain, masses


def placed(chain, s):
    """Transforms of all links."""
    frames = [np.eye(4)]
    for (parent, kind, axis, T), value in zip(chain, s, strict=True):
        frames.append(frames[parent] @ T @ motion(kind, axis, value))
    return frames


@examples(30)
@given(generators)
def test_bodies_are_where_products_of_transforms_say_and_move_as_their_differences(rng):
    n = int(rng.integers(2, 7))
    text, chain, masses = random_tree(rng, n)
    moves = [kind != "fixed" for _, kind, *_ in chain]
    s, rate = (np.where(moves, rng.uniform(-1, 1, size=n), 0.0) for _ in range(2))
    given_q, given_v = ({f"j{i + 1}": x[i] for i in range(n) if moves[i]} for x in (s, rate))
    parts = nsds.robot(text, q=given_q, v=given_v)
    head = {0: 0}
    for i, (parent, kind, *_) in enumerate(chain, 1):
        head[i] = head[parent] if kind == "fixed" else i
    bodies = {h for h in head.values() if h}
    assert {f"l{h}" for h in bodies} == {name for name, part in parts.items() if part["kind"] == "rigid_bodies"}
    eps = 1e-6
    now, before, after = (placed(chain, s + step * rate) for step in (0.0, -eps, eps))
    for h in bodies:
        members = [i for i in range(1, n + 1) if head[i] == h]
        mass = np.array([masses[i - 1][0] for i in members])

        def centre(frames, members=members, mass=mass):
            return sum(m * (frames[i] @ masses[i - 1][2])[:3, 3] for i, m in zip(members, mass, strict=True)) / mass.sum()

        body = parts[f"l{h}"]["record"]
        assert body["mass"] == pytest.approx(mass.sum(), rel=1e-12)
        assert body["q"][:3] == pytest.approx(centre(now), abs=1e-12)
        R = Rotation.from_quat(np.roll(body["q"][3:], -1)).as_matrix()
        assert pytest.approx(now[h][:3, :3], abs=1e-12) == R
        assert body["v"][:3] == pytest.approx((centre(after) - centre(before)) / (2 * eps), abs=1e-7)
        spin = Rotation.from_matrix(before[h][:3, :3].T @ after[h][:3, :3]).as_rotvec() / (2 * eps)
        assert body["v"][3:] == pytest.approx(spin, abs=1e-7)
        J = np.zeros((3, 3))  # of six points for each link, which have its moments
        for i in members:
            m, moments, C = masses[i - 1]
            T = now[i] @ C
            reach = np.sqrt(3 * (moments.sum() / 2 - moments) / m)
            for k in range(3):
                for sign in (-1, 1):
                    d = T[:3, 3] + sign * reach[k] * T[:3, k] - body["q"][:3]
                    J += m / 6 * (d @ d * np.eye(3) - np.outer(d, d))
        assert R @ body["inertia"] @ R.T == pytest.approx(J, rel=1e-9)


def test_what_stands_on_the_robot_moves_with_its_root():
    text = urdf('<link name="base"/>', link("a", origin='<origin xyz="0.5 0 0"/>'), joint("j", "revolute", "base", "a", more=LIMIT))
    turned = nsds.robot(text, q={"j": 0.3}, position=[1, 2, 3], orientation=[math.sqrt(0.5), 0, 0, math.sqrt(0.5)])["a"]["record"]
    angle = 0.3 + np.pi / 2
    assert turned["q"] == pytest.approx([1 + 0.5 * np.cos(angle), 2 + 0.5 * np.sin(angle), 3, np.cos(angle / 2), 0, 0, np.sin(angle / 2)])


LIMIT = '<limit lower="-0.4" upper="0.6" effort="1" velocity="1"/>'


def simulated(text, t_end=1.0, h=1e-3, gravity=(0, 0, 0), **arguments):
    system = nsds.system(gravity=gravity, **nsds.robot(text, **arguments))
    rows = nsds.simulate(system, t_end=t_end, h=h)
    assert (rows["status"] == 0).all()
    return system, rows


def slider(more="", kind="prismatic"):
    return urdf('<link name="base"/>', link("cart", 2.0), joint("rail", kind, "base", "cart", (1, 0, 0), more))


def test_damping_and_friction_of_a_joint_brake_as_they_should():
    _, rows = simulated(slider('<limit lower="-9" upper="9"/><dynamics damping="0.8"/>'), v={"rail": 1.5})
    np.testing.assert_allclose(rows["cart"]["v"][:, 0], 1.5 * np.exp(-0.4 * rows["t"]), atol=1e-6)
    _, rows = simulated(slider('<limit lower="-9" upper="9"/><dynamics friction="4"/>'), v={"rail": 1.5})
    np.testing.assert_allclose(rows["cart"]["v"][:, 0], np.maximum(1.5 - 2 * rows["t"], 0.0), atol=3e-3)
    np.testing.assert_allclose(rows["cart"]["q"][-1, 0], 1.5**2 / 4, atol=3e-3)


@pytest.mark.parametrize("start", [0.0, 0.5])
def test_stops_are_those_of_the_description_wherever_it_starts(start):
    _, rows = simulated(slider(LIMIT), q={"rail": start}, v={"rail": 1.0}, e=0.5, t_end=4.0)
    x = rows["cart"]["q"][:, 0]
    assert x.max() == pytest.approx(0.6, abs=2e-3)
    assert x.min() == pytest.approx(-0.4, abs=2e-3)
    assert rows["cart"]["v"][-1, 0] == pytest.approx(0.25, abs=1e-9)


def test_a_motor_acts_on_the_coordinate_that_counts_from_the_start():
    spring = {"rail": nsds.spring_damper(50.0)}
    _, rows = simulated(slider('<limit lower="-9" upper="9"/>'), q={"rail": 0.2}, v={"rail": 1.0}, motors=spring)
    np.testing.assert_allclose(rows["cart"]["q"][:, 0], 0.2 + np.sin(5 * rows["t"]) / 5, atol=1e-5)
    np.testing.assert_allclose(rows["rail_motor"]["y"], rows["cart"]["q"][:, 0] - 0.2, atol=1e-12)


def test_a_puck_stays_in_its_plane_and_what_floats_falls():
    text = urdf('<link name="table"/>', link("puck"), joint("air", "planar", "table", "puck", (0, 0.6, 0.8)))
    _, rows = simulated(text, gravity=[0, 0, -GRAVITY])
    np.testing.assert_allclose(rows["puck"]["q"][-1, :3], -0.5 * GRAVITY * 0.6 * np.array([0, -0.8, 0.6]), atol=1e-9)
    text = urdf('<link name="sky"/>', link("stone"), joint("air", "floating", "sky", "stone"))
    for more in ({"urdf": text}, {"urdf": urdf(link("stone")), "fixed": False}):
        system = nsds.system(gravity=[0, 0, -GRAVITY], **nsds.robot(**more))
        assert nsds.simulate(system, t_end=1.0, h=1e-2)["stone"]["q"][-1, 2] == pytest.approx(-GRAVITY / 2, abs=0.05)


def test_collision_shapes_are_in_place_and_the_body_comes_to_rest_on_the_ground():
    """A leg with its shapes off its centre of mass, and a base whose shapes belong to the world."""
    leg = link(
        "leg",
        origin='<origin xyz="0.1 0 -0.3"/>',
        more='<collision><origin xyz="0 0 -0.5"/><geometry><sphere radius="0.1"/></geometry></collision>',
    )
    text = urdf(f'<link name="base">{BOX}</link>', leg, joint("lift", "prismatic", "base", "leg", more='<limit lower="-1" upper="1"/>'))
    law = nsds.newton_impact_friction(e_n=0.0, mu=0.5)
    parts = nsds.robot(text, position=[0, 0, 0.7], law=law, world=nsds.shapes.plane())
    assert [shape["shape"] for shape in parts["contacts"]["world"]] == ["box", "plane"]
    assert parts["contacts"]["shapes"]["leg"][0]["pose"][:3] == pytest.approx([-0.1, 0, -0.2])
    assert parts["contacts"]["pairs"] == []  # a joint holds the leg to the base
    text = urdf(leg.replace('name="leg"', 'name="foot-1"'))
    parts = nsds.robot(text, position=[0, 0, 0.7], law=law, world=nsds.shapes.plane(), fixed=False)
    rows = nsds.simulate(nsds.system(gravity=[0, 0, -GRAVITY], **parts), t_end=0.3, h=1e-3)
    assert parts["contacts"]["pairs"] == [("foot_1", "world")]
    assert rows["contacts"]["y"][-1, 0] == pytest.approx(0.0, abs=2e-3)


def test_bodies_of_a_robot_touch_each_other_where_that_is_wanted():
    chain = [joint(f"j{i}", "continuous", f"l{i}", f"l{i + 1}", more='<origin xyz="1 0 0"/>') for i in range(3)]
    text = urdf(*(link(f"l{i}", more=BOX) for i in range(4)), *chain)
    law = nsds.newton_impact(0.0)
    assert nsds.robot(text, law=law)["contacts"]["pairs"] == [("l2", "world"), ("l3", "world")]
    assert nsds.robot(text, law=law, self_contacts=True)["contacts"]["pairs"][2:] == [("l1", "l3")]


def test_meshes_are_hulls_in_metres_and_a_missing_one_is_named(tmp_path):
    pytest.importorskip("trimesh")
    cube = [(x, y, z) for x in (0, 1) for y in (0, 2) for z in (0, 3)]
    (tmp_path / "cube.obj").write_text("".join(f"v {x} {y} {z}\n" for x, y, z in cube) + "f 1 2 4\nf 5 6 8\nf 3 7 1\n")
    mesh = '<collision><geometry><mesh filename="package://robot/cube.obj" scale="0.1 -0.1 0.1"/></geometry></collision>'
    text = urdf('<link name="base"/>', link("a", more=mesh), joint("j", "continuous", "base", "a"))
    (tmp_path / "robot.urdf").write_text(text)
    shape = nsds.robot(tmp_path / "robot.urdf", law=nsds.newton_impact(0.0))["contacts"]["shapes"]["a"][0]
    assert shape["shape"] == "convex"
    assert nsds.shapes.volume(shape) == pytest.approx(6e-3)
    assert nsds.shapes.centre_of_mass(shape) == pytest.approx([0.05, -0.1, 0.15])
    assert nsds.robot(text, law=nsds.newton_impact(0.0), folder=tmp_path)["contacts"]["shapes"]["a"][0]["size"][2] == 8
    (tmp_path / "cube.obj").unlink()
    with pytest.raises(ValueError, match=r"robot: link 'a': <collision>: from_file: path: there is no file .*cube\.obj"):
        nsds.robot(tmp_path / "robot.urdf", law=nsds.newton_impact(0.0))


def test_a_namespace_of_the_exporter_changes_nothing():
    text = two(joint("j", "continuous", "a", "b", more='<dynamics damping="0.1"/>'))
    named = text.replace("<robot ", '<robot xmlns="http://drake.mit.edu" ', 1)
    assert str(nsds.robot(named)) == str(nsds.robot(text))


def test_names_that_python_does_not_know_and_joints_named_as_links():
    first, second = joint("arm-1", "continuous", "base", "arm-1"), joint("j/2", "continuous", "arm-1", "2nd")
    text = urdf('<link name="base"/>', link("arm-1"), link("2nd"), first, second)
    assert set(nsds.robot(text)) == {"arm_1", "_2nd", "arm_1_joint", "j_2"}
    twice = urdf("<link name='b'/>", link("a-1"), link("a_1"), joint("j", "continuous", "b", "a-1"), joint("k", "continuous", "b", "a_1"))
    with pytest.raises(ValueError, match="got more than one 'a_1'"):
        nsds.robot(twice)


def arm(*parts, base='<link name="base"/>', moments=(0.1, 0.1, 0.1)):
    return urdf(base, link("a", inertia=moments, origin='<origin xyz="0.3 0 0"/>'), *parts)


def end(text, **arguments):
    return simulated(text, t_end=0.2, gravity=(0, 0, -GRAVITY), **arguments)[1]["a"]["q"][-1]


HANGS = joint("j", "continuous", "base", "a", (0, 1, 0))
LIKE = {  # description, and one that moves alike; how far apart they may be
    "a world that is not described": (arm(HANGS.replace("base", "world"), base=""), arm(HANGS), 0.0),
    "a comment before the declaration": ('<!-- by hand -->\n<?xml version="1.0"?>' + arm(HANGS), arm(HANGS), 0.0),
    "an end without inertia": (arm(HANGS, '<link name="tool"/>', joint("k", "continuous", "a", "tool", (1, 0, 0))), arm(HANGS), 0.0),
    "no inertia": (arm(HANGS, moments=(0.0, 0.0, 0.0)), arm(HANGS, moments=(1e-8, 1e-8, 1e-8)), 1e-7),
    "inertia that is rounding": (arm(HANGS, moments=(1e-21, 4e-21, 4e-21)), arm(HANGS, moments=(1e-8, 1e-8, 1e-8)), 1e-7),
    "inertia below 0 by rounding": (arm(HANGS, moments=(-1e-21, 0.0, 0.0)), arm(HANGS, moments=(1e-8, 1e-8, 1e-8)), 1e-7),
    "stops in the wrong order": (
        arm(joint("j", "revolute", "base", "a", (0, 1, 0), '<limit lower="1" upper="-1"/>')),
        arm(HANGS),
        0.0,
    ),
}


@pytest.mark.filterwarnings("ignore:robot. joint 'j'. lower is above upper")
@pytest.mark.parametrize("name", LIKE)
def test_what_exporters_leave_out_changes_nothing(name):
    text, other, apart = LIKE[name]
    assert abs(end(text) - end(other)).max() <= apart


@pytest.mark.parametrize("between", ['<link name="m"/>', link("m", 1e-3, (0.0, 0.0, 0.0))], ids=["no inertia", "a mass on its joint"])
def test_a_link_without_inertia_between_two_hinges_is_the_cross_of_a_cardan_joint(between):
    """The same arm on the cross alone; the mass on the crossing of the axes does not move."""
    hinges = joint("j", "continuous", "base", "m", (0, 1, 0)), joint("k", "continuous", "m", "a", (1, 0, 0))
    start = {"q": {"k": 0.4}, "v": {"k": 1.0}}
    q = end(arm(between, *hinges), **start)
    body = nsds.robot(arm(between, *hinges), **start)["a"]
    cross = nsds.interaction(nsds.joints.universal([0, 0, 0], [1, 0, 0], [0, 1, 0]), nsds.equality(), on="a")
    rows = nsds.simulate(nsds.system(gravity=[0, 0, -GRAVITY], a=body, cross=cross), t_end=0.2, h=1e-3)
    np.testing.assert_allclose(q, rows["a"]["q"][-1], atol=1e-6)


def test_where_a_joint_starts_within_its_stops_and_which_joints_are_held():
    text = arm(joint("j", "revolute", "base", "a", (0, 1, 0), '<limit lower="-2.7" upper="-0.9"/>'))
    assert nsds.robot(text)["a"]["record"]["q"][[0, 2]] == pytest.approx([0.3 * np.cos(0.9), 0.3 * np.sin(0.9)])
    for limit, at in (('lower="0.5" upper="0.5"', 0.5), ('effort="1"', 0.0)):
        text = arm(joint("j", "revolute", "base", "a", (0, -1, 0), f"<limit {limit}/>"))
        if at == 0:
            with pytest.warns(UserWarning, match="joint 'j': its <limit> has neither lower nor upper, which are then 0: it is held at 0"):
                nsds.robot(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert end(text)[[0, 2]] == pytest.approx([0.3 * np.cos(at), 0.3 * np.sin(at)], abs=1e-9)


def test_a_spherical_joint_lets_an_arm_fall_as_a_hinge_does():
    np.testing.assert_allclose(end(arm(joint("j", "spherical", "base", "a"))), end(arm(HANGS)), atol=1e-9)


FINGER = '<limit lower="0" upper="0.05"/>'


def fingers(mimic, kind="prismatic", base='<link name="base"/>'):
    first, second = (joint(name, kind, "base", name[0], axis, FINGER + more) for name, axis, more in (
        ("a1", (1, 0, 0), ""), ("b1", (-1, 0, 0), f"<mimic {mimic}/>")))  # fmt: skip
    return urdf(base, link("a"), link("b"), first, second)


def test_a_joint_that_mimics_follows_with_multiplier_and_offset():
    """Both masses are driven by the force on the first: ``(1 + 0.5^2) a = 0.02 - 0.5 * 0.02`` of the accelerations of both axes."""
    text = fingers('joint="a1" multiplier="0.5" offset="0.01"')
    _, rows = simulated(text, t_end=0.5, gravity=(0.02, 0, 0), q={"a1": 0.01}, v={"a1": 0.02})
    s, t = rows["a"]["q"][:, 0], rows["t"]
    np.testing.assert_allclose(s, 0.01 + 0.02 * t + 0.5 * (0.02 - 0.5 * 0.02) / 1.25 * t**2, atol=1e-5)
    np.testing.assert_allclose(rows["b"]["q"][:, 0], -(0.5 * s + 0.01), atol=1e-12)
    assert "b1_mimic" not in nsds.robot(fingers('joint="a1" multiplier="0"'))  # held
    turning = fingers('joint="a1" multiplier="-2"', "revolute").replace('upper="0.05"', 'upper="0.5"').replace('lower="0"', 'lower="-9"')
    _, rows = simulated(turning, t_end=0.2, v={"a1": 1.0})
    np.testing.assert_allclose(rows["b"]["v"][:, 3], 2.0, atol=1e-9)  # -2 about -x


def angle(rows, part):
    """By which a body has turned about x, up to a turn."""
    return 2.0 * np.arctan2(rows[part]["q"][:, 4], rows[part]["q"][:, 3])


def test_fingers_of_a_hand_that_moves_slide_alike():
    """The opening of two masses with a spring on one swings as ``0.1 sin(w t) / w`` with ``w^2 = k / 2m``; the hand keeps its speed."""
    first, second, rail = (joint(f"{name}_slide", "prismatic", parent, name, (x, 0, 0), '<limit lower="-9" upper="9"/>' + more)
                           for name, parent, x, more in (("a", "hand", 1, ""), ("b", "hand", -1, '<mimic joint="a_slide" multiplier="1"/>'),
                                                         ("hand", "rail", 1, "")))  # fmt: skip
    text = urdf('<link name="rail"/>', link("hand"), link("a", 0.05), link("b", 0.05), rail, first, second)
    motors = {"a_slide": nsds.spring_damper(10.0, 0.0)}
    _, rows = simulated(text, t_end=0.5, h=1e-3, gravity=(0, 0, 0), v={"hand_slide": 0.5, "a_slide": 0.1}, motors=motors)
    hand, a, b = (rows[part]["q"][:, 0] for part in ("hand", "a", "b"))
    np.testing.assert_allclose(hand, 0.5 * rows["t"], atol=1e-9)
    np.testing.assert_allclose((a + b) / 2, hand, atol=1e-11)
    np.testing.assert_allclose((a - b) / 2, 0.01 * np.sin(10.0 * rows["t"]), atol=2e-6)  # the wedge has 1e-4 of a finger's mass


@pytest.mark.parametrize("multiplier", [1.0, -0.5, 2.0])
@pytest.mark.parametrize("beyond", [False, True])
def test_fingers_of_a_free_hand_turn_as_their_gear_says(multiplier, beyond):
    """On the hand, and with the second one on the first: angles on the body between them, and momenta are kept."""
    places = [f'<origin xyz="0 {y} 0"/>' for y in (0.1, 0.2 if beyond else -0.1)]
    first = joint("j", "continuous", "hand", "a", (1, 0, 0), places[0])
    second = joint(
        "k", "continuous", "a" if beyond else "hand", "b", (1, 0, 0), places[1] + f'<mimic joint="j" multiplier="{multiplier}"/>'
    )
    off = '<origin xyz="0 0.02 0.03"/>'
    text = urdf(link("hand"), link("a", 0.5, (0.01, 0.02, 0.02), off), link("b", 0.3, (0.01, 0.02, 0.02), off), first, second)
    start, rows = simulated(text, t_end=0.6, h=1e-3, gravity=(0, 0, 0), fixed=False, v={"j": 1.0})
    hand, a, b = (np.unwrap(angle(rows, part)) for part in ("hand", "a", "b"))
    assert a[-1] - hand[-1] > 0.3
    np.testing.assert_allclose(b - (a if beyond else hand), multiplier * (a - hand), atol=1e-9)
    for momentum in (sum(start[part]["mass"] * rows[part]["v"][:, k] for part in ("hand", "a", "b")) for k in range(3)):
        np.testing.assert_allclose(momentum, momentum[0], atol=1e-4)  # wheels have 1e-4 of the mass of the lighter finger


def test_joints_of_a_link_follow_the_one_that_holds_it_in_the_world():
    """A finger of two links on a fixed base, and two slides across each other: ``(m_a + (1 + 2^2) m_b) a = (m_a + m_b) g``, g along a's."""
    hinge, slide = (1, 0, 0), '<limit lower="-9" upper="9"/>'
    first = joint("j", "continuous", "base", "a", hinge, '<origin xyz="0 0.1 0"/>')
    second = joint("k", "continuous", "a", "b", hinge, '<origin xyz="0 0.2 0"/><mimic joint="j" multiplier="-0.5"/>')
    _, rows = simulated(urdf('<link name="base"/>', link("a"), link("b", 0.3), first, second), t_end=0.4, v={"j": 1.0})
    a, b = (angle(rows, part) for part in "ab")
    assert a[-1] > 0.1
    np.testing.assert_allclose(b - a, -0.5 * a, atol=1e-9)
    first, second = (joint(name, "prismatic", parent, child, axis, slide + more) for name, parent, child, axis, more in (
        ("j", "base", "a", (1, 0, 0), ""), ("k", "a", "b", (0, 1, 0), '<mimic joint="j" multiplier="2"/>')))  # fmt: skip
    _, rows = simulated(urdf('<link name="base"/>', link("a", 0.5), link("b", 0.3), first, second), t_end=0.4, gravity=(1, 0, 0))
    x = rows["a"]["q"][:, 0]
    np.testing.assert_allclose(x, 0.5 * 0.8 / (0.5 + 5 * 0.3) * rows["t"] ** 2, atol=1e-4)  # the wedge has 1e-4 of b's mass
    np.testing.assert_allclose(rows["b"]["q"][:, 1], 2.0 * x, atol=1e-9)


def test_capsules_and_meshes_with_a_package_in_their_name(tmp_path):
    text = urdf(link("a", more='<collision><geometry><capsule radius="0.1" length="0.3"/></geometry></collision>'))
    shape = nsds.robot(text, fixed=False, law=nsds.newton_impact(0.0), world=nsds.shapes.plane())["contacts"]["shapes"]["a"][0]
    assert shape["shape"] == "capsule"
    assert shape["size"][:2].tolist() == [0.1, 0.3]
    pytest.importorskip("trimesh")
    (tmp_path / "assets").mkdir()
    corners = [(x, y, z) for x in (0, 1) for y in (0, 2) for z in (0, 3)]
    faces = "f 1 2 4\nf 5 6 8\nf 3 7 1\n"
    (tmp_path / "assets" / "part.obj").write_text("".join(f"v {x} {y} {z}\n" for x, y, z in corners) + faces)
    for name in ("package://assets/part.obj", "package://robot/assets/part.obj", "assets/part.obj"):
        mesh = f'<collision><geometry><mesh filename="{name}"/></geometry></collision>'
        (tmp_path / "robot.urdf").write_text(urdf(link("a", more=mesh)))
        parts = nsds.robot(tmp_path / "robot.urdf", fixed=False, law=nsds.newton_impact(0.0), world=nsds.shapes.plane())
        assert nsds.shapes.volume(parts["contacts"]["shapes"]["a"][0]) == pytest.approx(6.0)


def two(*joints):
    return urdf('<link name="a"/>', link("b"), *joints)


FIXED, SPINS, FLOATS = (joint("j", kind, "a", "b") for kind in ("fixed", "continuous", "floating"))
FLAT = joint("j", "continuous", "a", "b", (0, 0, 0))
BACK = joint("k", "fixed", "b", "a")
MIMIC = joint("j", "continuous", "a", "b", more='<mimic joint="k"/>')
TURNS = joint("j", "revolute", "a", "b", more="{}")
NO_CHILD = '<joint name="j" type="fixed"><parent link="a"/></joint>'
HALF = '<robot name="r"><link name="a"><inertial><mass value="1"/></inertial></link></robot>'
FREE, LAW = {"fixed": False}, {"law": nsds.newton_impact(0.0)}
REFUSED = {  # description, further arguments, what the error says
    "no XML": ("<robot", {}, "robot: urdf cannot be read: "),
    "no file": ("nowhere.urdf", {}, "robot: urdf cannot be read: .*nowhere.urdf"),
    "no robot": ("<mujoco/>", {}, "must have the root element <robot>, got <mujoco>"),
    "empty": (urdf(), {}, "must have a <link>, got none"),
    "two links of a name": (urdf(link("a"), link("a")), {}, "each link must have a name of its own, got 'a' twice"),
    "no child": (two(NO_CHILD), {}, "joint 'j' must have <child link=...>"),
    "no such link": (two(joint("j", "fixed", "a", "c")), {}, "joint 'j': there is no link 'c'"),
    "two roots": (two(), {}, "one root, a link that is no joint's child, but 'a', 'b' have none"),
    "a loop": (two(FIXED, joint("k", "fixed", "a", "b")), {}, "link 'b' is the child of joints 'j' and 'k': a loop"),
    "a ring": (two(FIXED, BACK), {}, "each of 'b', 'a' has one: a loop"),
    "a ring apart": (
        urdf(link("c"), link("a"), link("b"), FIXED, BACK),
        {},
        "joints 'j', 'k' are a loop, which nothing joins to the root 'c'",
    ),
    "a type": (two(joint("j", "screw", "a", "b")), {}, "joint 'j': type must be one of .*, got 'screw'"),
    "mimic": (two(MIMIC), {}, "joint 'j' mimics 'k', and there is no joint 'k' with a coordinate"),
    "mimics in a loop": (fingers('joint="b1"'), {}, "joints 'b1' mimic each other in a loop"),
    "a follower elsewhere": (fingers('joint="a1"'), {"q": {"b1": 0.02}}, "q of 'b1', which mimics 'a1', must be 0, got 0.02"),
    "mimics far apart": (
        urdf(
            *(link(name) for name in "abcd"),
            joint("j", "continuous", "a", "b"),
            joint("free", "floating", "a", "c"),
            joint("k", "continuous", "c", "d", more='<mimic joint="j"/>'),
        ),
        FREE,
        "joint 'k' mimics 'j', and no body has both",
    ),
    "mimics of two kinds": (
        urdf(
            *(link(name) for name in "abc"),
            joint("j", "continuous", "a", "b"),
            joint("k", "prismatic", "a", "c", (1, 0, 0), FINGER + '<mimic joint="j"/>'),
        ),
        FREE,
        "one turns, one slides, and link 'a' between them moves",
    ),
    "mimics on one axis": (
        urdf(
            *(link(name) for name in "abc"),
            joint("j", "continuous", "a", "b"),
            joint("k", "continuous", "a", "c", more='<mimic joint="j"/>'),
        ),
        FREE,
        "the axes must be parallel, and apart",
    ),
    "no axis": (two(FLAT), {}, "joint 'j': axis must not be zero"),
    "no limit": (two(TURNS.format("")), {}, "joint 'j' is revolute and has no <limit"),
    "beyond": (two(TURNS.format(LIMIT)), {"q": {"j": 0.75}}, "got 0.75, which is 0.15 beyond"),
    "damping": (two(TURNS.format(LIMIT + '<dynamics damping="-2"/>')), {}, "joint 'j': damping must be"),
    "friction": (two(TURNS.format(LIMIT + '<dynamics friction="a lot"/>')), {}, "joint 'j': friction must be a number, got 'a lot'"),
    "no inertia": (urdf('<link name="a"/><link name="b"/>', FLOATS), {}, "link 'b' has no inertia, and joint 'j' lets it move"),
    "root": (two(FLOATS), FREE, "link 'a' has no inertia, and the root floats"),
    "nothing moves": (two(FIXED), {}, "link 'a' is fixed, and no joint moves: fixed=False lets it float"),
    "half an inertia": (HALF, FREE, "link 'a': <inertial> must have <mass> and <inertia>, has no <inertia>"),
    "mass": (urdf(link("a", -1.0)), FREE, "link 'a': mass must be"),
    "inertia": (urdf(link("a", inertia=(1, 1, -0.5))), FREE, "link 'a': inertia must be positive definite, got the least eigenvalue -0.5"),
    "numbers": (urdf(link("a").replace("1.0", "one")), FREE, "cannot be read by yourdfpy"),
    "q": (two(FIXED), {"q": {"j": 0.1}}, "q: there is no joint 'j' with a coordinate"),
    "motors": (two(FIXED), {"motors": {"j": nsds.equality()}}, "motors: there is no joint 'j' with a coordinate"),
    "no shapes": (urdf(link("a")), FREE | LAW, "law is given, and no link that moves has a <collision>"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_bad_is_named(name):
    text, arguments, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        nsds.robot(text, **arguments)
