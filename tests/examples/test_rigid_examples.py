"""The examples of rigid bodies against what mechanics says of them."""

import importlib
import math
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation
from scipy.special import ellipkm1

import nsds
from nsds.examples import EXAMPLES
from nsds.examples.dominoes import SIZE
from nsds.examples.euler_disk import precession, tilts
from nsds.examples.rotating_drum import GRAIN, drum_radius
from nsds.status import INEXACT

arm = importlib.import_module("nsds.examples.six_axis_arm")
G = 9.81


def run(name, parameters=None, **settings):
    system = EXAMPLES[name].build(**parameters or {})
    rows = nsds.simulate(system, **EXAMPLES[name].run | settings)
    inexact = (rows["status"] == INEXACT) & (rows["residual"] <= 1e-3)  # sweeps that get no closer
    assert ((rows["status"] == 0) | inexact).all()
    return system, rows


def energy(system, rows, *parts):
    """Kinetic energy and that of the weight of all bodies at each row, from the definition."""
    total = np.zeros(rows.size)
    for name in parts:
        part = np.atleast_1d(system[name])
        for i, body in enumerate(part):
            state = rows[name].reshape(rows.size, -1)[:, i]
            q, v = state["q"], state["v"]
            total += body["mass"] * (v[:, :3] ** 2).sum(axis=1) / 2 + np.einsum("ki,ij,kj->k", v[:, 3:], body["inertia"], v[:, 3:]) / 2
            if np.isfinite(body["mass"]):
                total -= body["mass"] * (q[:, :3] @ system["gravity"])
    return total


@pytest.mark.parametrize(("speed", "mu"), [(2.0, 0.1), (1.0, 0.05)])
def test_sliding_ball_rolls_after_the_time_of_coriolis_with_five_sevenths_of_its_speed(speed, mu):
    _, rows = run("sliding_ball", {"speed": speed, "mu": mu})
    v, radius = rows["ball"]["v"], 0.028575
    slip = v[:, 0] - radius * v[:, 4]
    rolls = 2 * speed / (7 * mu * G)
    np.testing.assert_allclose(rows["t"][(abs(slip) < 1e-9).argmax()], rolls, atol=1e-3)
    sliding = rows["t"] < rolls - 1e-3
    np.testing.assert_allclose(v[sliding, 0], speed - mu * G * rows["t"][sliding], atol=1e-10)
    np.testing.assert_allclose(v[-1, 0], 5 / 7 * speed, rtol=1e-9)
    assert abs(rows["ball"]["q"][:, 2] - radius).max() < 1e-9


def test_wing_nut_turns_over_at_the_times_of_the_elliptic_functions_and_keeps_energy_and_momentum():
    system, rows = run("dzhanibekov")
    moments, omega = np.diag(system["nut"]["inertia"]), rows["nut"]["v"][:, 3:]
    energies, momentum = (omega**2 @ moments) / 2, np.linalg.norm(omega * moments, axis=1)
    np.testing.assert_allclose(energies, energies[0], rtol=1e-5)
    np.testing.assert_allclose(momentum, momentum[0], rtol=1e-5)
    turned = rows["t"][1:][(omega[1:, 1] > 0) != (omega[:-1, 1] > 0)]
    (j1, j2, j3), two_e, l2 = moments, moments @ omega[0] ** 2, ((moments * omega[0]) ** 2).sum()
    rate = math.sqrt((j2 - j1) * (two_e * j3 - l2) / (j1 * j2 * j3))
    complement = 1 - (j3 - j2) * (l2 - two_e * j1) / ((j2 - j1) * (two_e * j3 - l2))
    quarter = ellipkm1(complement) / rate
    np.testing.assert_allclose(turned, quarter * np.array([1, 3, 5]), rtol=1e-3)


def test_spatial_slider_crank_keeps_its_joints_its_kinematics_and_up_to_order_h_its_energy():
    losses = []
    for h in (1e-3, 5e-4):
        system, rows = run("slider_crank_3d", t_end=1.0, h=h)
        total = energy(system, rows, "crank", "rod", "slider")
        losses.append(abs(total - total[0]).max())
        p = rows["crank"]["q"][:, 3:]
        angle = 2 * np.arctan2(p[:, 1], p[:, 0])
        y, z = 0.1 - 0.08 * np.sin(angle), 0.12 + 0.08 * np.cos(angle)
        np.testing.assert_allclose(rows["slider"]["q"][:, 0], np.sqrt(0.3**2 - y**2 - z**2), atol=1e-4)
        for joint in ("pivot", "pin", "fork", "guide"):
            assert abs(rows[joint]["y"]).max() < 1e-3
            assert abs(rows[joint]["ydot"][1:]).max() < 1e-6
        assert abs(rows["slider"]["q"][:, 1:3]).max() < 1e-6
    assert np.ptp(angle) > math.pi  # it turns round
    assert losses[1] < 0.7 * losses[0]
    assert losses[0] < 0.1  # of 0.8 J


def test_coin_goes_round_at_the_rate_of_steady_motion_and_settles_where_rolling_costs():
    tilt = 0.4
    np.testing.assert_allclose(precession(0.01) ** 2 * np.sin(0.01), 4 * G / 0.0375, rtol=0.2)  # of a thin coin; this one is thick
    _, rows = run("euler_disk", {"tilt": tilt, "mu_r": 0.0}, t_end=0.2)
    p = rows["coin"]["q"][:, 3:]
    axis = 2 * (p[:, 1] * p[:, 3] + p[:, 0] * p[:, 2]), 2 * (p[:, 2] * p[:, 3] - p[:, 0] * p[:, 1])
    phase = np.unwrap(np.arctan2(axis[1], axis[0]))
    np.testing.assert_allclose((phase[-1] - phase[0]) / rows["t"][-1], precession(tilt), rtol=5e-3)
    np.testing.assert_allclose(tilts(rows), tilt, atol=0.02)
    system, rows = run("euler_disk", t_end=1.0)
    assert abs(rows["coin"]["q"][:, :2]).max() < 2e-3  # the centre stays
    total = energy(system, rows, "coin")
    assert (np.diff(total[::500]) < 0).all()
    assert tilts(rows)[-1] < tilt - 0.05
    omega = Rotation.from_quat(np.roll(rows["coin"]["q"][:, 3:], -1, axis=1)).apply(rows["coin"]["v"][:, 3:])
    power = system["contacts"]["mu_r"].item() * system["coin"]["mass"].item() * G * np.hypot(omega[:, 0], omega[:, 1])
    assert total[0] - total[-1] == pytest.approx(power[1:].sum() * EXAMPLES["euler_disk"].run["h"], rel=0.02)
    assert rows["contacts"]["y"].min() > -5e-4


def test_tower_stands_and_each_box_carries_the_weight_above():
    n, h = 6, EXAMPLES["box_stack"].run["h"]
    _, rows = run("box_stack", {"n": n})
    q, contacts = rows["boxes"]["q"][-1], rows["contacts"][-1]
    assert abs(rows["boxes"]["v"][-1]).max() < 1e-3
    np.testing.assert_allclose(q[:, 2], 0.05 + 0.1 * np.arange(n), atol=1e-3 * n)
    np.testing.assert_allclose(q[:, 0], 0.01 * (np.arange(n) % 2), atol=1e-4)
    k = contacts["n"]
    a, b, force = contacts["a"][:k], contacts["b"][:k], contacts["lambda"][:k, 0] / h
    for below in range(n):
        joined = np.isin(a, below) & np.isin(b, below - 1) | np.isin(b, below) & np.isin(a, below - 1) if below else b == n
        np.testing.assert_allclose(force[joined].sum(), (n - below) * G, rtol=1e-3)


def least_thickness(n, mu):
    """Of a semicircular arch of n wedges that stands, as a fraction of its radius: a linear program for forces at the corners of joints."""

    def stands(thickness):
        angles = np.pi * np.arange(n + 1) / n
        rays = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        equilibrium = np.zeros((3 * n, 4 * (n + 1)))  # of joint i: N and T at the inner and at the outer corner, on the stone behind it
        weights = np.zeros(3 * n)
        for i in range(n):
            corners = [(1 + side * thickness / 2) * ray for ray in (rays[i], rays[i + 1]) for side in (-1, 1)]
            x, y = np.array([corners[0], corners[1], corners[3], corners[2]]).T
            turn = x * np.roll(y, -1) - y * np.roll(x, -1)
            area = turn.sum() / 2
            weights[3 * i : 3 * i + 3] = [0, area, ((x + np.roll(x, -1)) * turn).sum() / 6]
            for joint, sign in ((i, 1.0), (i + 1, -1.0)):
                across, along = np.array([-rays[joint][1], rays[joint][0]]), rays[joint]
                for side in range(2):
                    at = (1 + (2 * side - 1) * thickness / 2) * rays[joint]
                    for k, way in enumerate((across, along)):
                        column = 4 * joint + 2 * side + k
                        equilibrium[3 * i : 3 * i + 3, column] += sign * np.array([*way, at[0] * way[1] - at[1] * way[0]])
        normal, tangent = np.eye(4 * (n + 1))[0::2], np.eye(4 * (n + 1))[1::2]
        cones = np.concatenate([tangent - mu * normal, -tangent - mu * normal])
        bounds = [(0, None), (None, None)] * (2 * (n + 1))
        found = linprog(np.zeros(4 * (n + 1)), cones, np.zeros(len(cones)), equilibrium, weights, bounds)
        return found.status == 0

    low, high = 0.05, 0.2
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if stands(middle) else (middle, high)
    return high


@pytest.mark.parametrize("n", [9, 15])
def test_an_arch_stands_from_the_thickness_on_that_a_linear_program_finds(n):
    critical = least_thickness(n, 0.7)
    assert 0.07 < critical <= 0.1076  # of Milankovitch's, which may be cut anywhere
    for part in (0.98, 1.02):
        system, rows = run("masonry_arch", {"n": n, "thickness": part * critical})
        q, _ = nsds.in_plane(rows["stones"])
        moved = abs(q[-1] - q[0]).max()
        assert moved < 1e-4 if part > 1 else moved > 0.05
    contacts = rows["joints"][-1]
    on_ground = np.arange(len(contacts["y"])) < contacts["n"]
    on_ground &= contacts["b"] == n
    weight = system["stones"]["mass"].sum() * G * 1e-3
    assert contacts["lambda"][on_ground, 0].sum() == pytest.approx(weight, rel=1e-6)
    assert contacts["lambda"][on_ground, 1].sum() == pytest.approx(0.0, abs=1e-6 * weight)


def test_all_dominoes_fall_in_turn_and_the_wave_forgets_the_push():
    speeds = []
    for push in (3.0, 6.0):
        system, rows = run("dominoes", {"push": push})
        q = rows["dominoes"]["q"]
        lean = 2 * np.arcsin(np.clip(q[:, :, 5], -1, 1))
        assert (lean[-1] > 1.0).all()
        began = rows["t"][(lean > 0.3).argmax(axis=0)]
        assert (np.diff(began) > 0).all()
        speeds.append(4 * (0.02 + SIZE[0]) / (began[10] - began[6]) / math.sqrt(G * SIZE[2]))
        assert abs(q[:, :, 1]).max() < 2e-3  # they stay in their row
        assert rows["contacts"]["y"].min() > -2e-3
        total = energy(system, rows, "dominoes")
        assert total[-1] < total[0]
        assert (np.diff(total[::100]) < 1e-6).all()
    np.testing.assert_allclose(speeds[0], speeds[1], rtol=0.05)
    assert 0.8 < speeds[0] < 2.0


def test_grains_stay_in_the_drum_which_carries_them_up_one_side():
    n = 100
    system, rows = run("rotating_drum", {"n": n}, t_end=1.0)
    x, radius = rows["grains"]["q"][:, :, :3], drum_radius(n)
    assert np.hypot(x[..., 0], x[..., 2]).max() < radius - 0.9 * GRAIN
    assert abs(x[..., 1]).max() < 4.1 * GRAIN  # caps at 5 radii
    last = x[-20:].reshape(-1, n, 3)
    distance = np.linalg.norm(last[:, :, None] - last[:, None], axis=-1) + 1.0 * np.eye(n)
    assert distance.min() > 1.8 * GRAIN
    # the bottom of the drum moves towards -x: there the grains are carried up
    assert last[..., 0].mean() < -0.05 * radius
    np.testing.assert_array_equal(rows["drum"]["v"], np.broadcast_to(system["drum"]["v"], (rows.size, 6)))


def test_a_step_depends_on_the_record_alone():
    """Sweeps begin with work memory of steps before, which had other numbers of contacts."""
    system, rows = run("rotating_drum", t_end=0.1, save_every=1, fields=None)
    settings = {key: EXAMPLES["rotating_drum"].run[key] for key in ("h", "solver")}
    for k in (20, 60, 100, 150, 199):
        again = nsds.simulate(nsds.restart(system, rows[k]), t_end=rows["t"][k + 1], **settings)[-1]
        np.testing.assert_array_equal(again["grains"]["v"], rows[k + 1]["grains"]["v"])


def arm_from(text, s):
    """(rigid parts with their transforms, (point, axis) of each joint) of the six-axis arm: products of transforms, read from its text."""

    def transform(element):
        T = np.eye(4)
        if element is not None:
            T[:3, 3] = [float(x) for x in element.get("xyz", "0 0 0").split()]
            T[:3, :3] = Rotation.from_euler("xyz", [float(x) for x in element.get("rpy", "0 0 0").split()]).as_matrix()
        return T

    tree = ElementTree.fromstring(text)
    links = {link.get("name"): link for link in tree.findall("link")}
    T, masses, axes = np.eye(4), [], []
    for joint in tree.findall("joint"):  # a chain
        T = T @ transform(joint.find("origin"))
        if joint.get("type") != "fixed":
            axis = np.array([float(x) for x in joint.find("axis").get("xyz").split()])
            axes.append((T[:3, 3].copy(), T[:3, :3] @ axis))
            turn = np.eye(4)
            turn[:3, :3] = Rotation.from_rotvec(s[joint.get("name")] * axis).as_matrix()
            T = T @ turn
        name = joint.find("child").get("link")
        inertial = links[name].find("inertial")
        masses.append((name, float(inertial.find("mass").get("value")), (T @ transform(inertial.find("origin")))[:3, 3], len(axes)))
    return masses, axes


def test_six_axis_arm_is_where_its_angles_say_and_its_servos_carry_the_weight():
    """At the end moments ``sum axis . ((c - x) × m g)`` over what a joint carries, and angles off by these over the stiffnesses."""
    _, rows = run("six_axis_arm", t_end=4.0)
    for row in (rows[0], rows[600], rows[-1]):
        masses, axes = arm_from(arm.URDF, {joint: arm.START[joint] + row[f"{joint}_motor"]["y"] for joint in arm.JOINTS})
        centres = {name: c for name, _, c, _ in masses}
        tool = {name: m for name, m, *_ in masses if name in ("flange", "tool")}
        centres["flange"] = sum(m * centres[name] for name, m in tool.items()) / sum(tool.values())
        for name in ("column", "upper_arm", "elbow_block", "forearm", "wrist", "flange"):
            np.testing.assert_allclose(row[name]["q"][:3], centres[name], atol=1e-9)
    for i, (joint, (x, axis)) in enumerate(zip(arm.JOINTS, axes, strict=True)):
        weight = sum(axis @ np.cross(c - x, [0, 0, -m * G]) for _, m, c, above in masses if above > i)
        np.testing.assert_allclose(rows[f"{joint}_motor"]["lambda"][-1] / 1e-3, -weight, atol=1e-4)
        off = rows[f"{joint}_motor"]["y"][-1] - (arm.TARGET[joint] - arm.START[joint])
        np.testing.assert_allclose(off, weight / arm.STIFFNESS[joint], atol=1e-8)


def test_six_axis_arm_that_swings_freely_keeps_its_energy_to_second_order():
    text = arm.URDF.replace('type="revolute"', 'type="continuous"')
    system = nsds.system(gravity=[0, 0, -G], **nsds.robot(text, q=arm.START))
    names = ("column", "upper_arm", "elbow_block", "forearm", "wrist", "flange")
    drift = []
    for h in (2e-3, 1e-3):
        rows = nsds.simulate(system, t_end=1.0, h=h)
        total = energy(system, rows, *names)
        drift.append(abs(total - total[0]).max())
    assert drift[1] < 0.1  # of 1600 J that come and go
    assert drift[0] / drift[1] == pytest.approx(4, rel=0.2)
