"""Joints that depend on each other, event by event: forces of least norm, alike where placed alike, whatever the order of statement."""

import numpy as np
import pytest

import nsds
from nsds import joints
from tests.schemes.rigid.test_multibody_benchmarks import AXES, CORNERS, bricard

G = 9.81
ON = ["rod0", *((f"rod{i}", f"rod{i - 1}") for i in range(1, 5)), "rod4"]  # the hinges of Bricard's loop


def wheel(m, r, at, **more):
    return nsds.rigid_bodies(m, m * r * r / 2, q=[*at, 0, 1, 0, 0, 0], v=[0] * 6, **more)


def hinge(on, at):
    return nsds.interaction(joints.hinge([*at, 0], [0, 0, 1]), nsds.equality(), on=on)


def planetary(n, order):
    """n planets between a sun that is driven and a ring that stands; joints are stated in an order."""
    at = [[0.05 * np.cos(a), 0.05 * np.sin(a)] for a in 2 * np.pi * np.arange(n) / n]
    parts = {"sun": wheel(0.5, 0.03, [0, 0], mext=[0, 0, 1.5]), "carrier": wheel(0.8, 0.05, [0, 0], mext=[0, 0, -2.0])}
    held = {"s": hinge("sun", [0, 0]), "c": hinge("carrier", [0, 0])}
    for k in range(n):
        parts[f"planet{k}"] = wheel(0.2, 0.02, at[k])
        held[f"pin{k}"] = hinge((f"planet{k}", "carrier"), at[k])
        held[f"inner{k}"] = nsds.interaction(joints.gear([0, 0, 1], 0.03, 0.02), nsds.equality(), on=("sun", f"planet{k}"))
        held[f"outer{k}"] = nsds.interaction(joints.gear([0, 0, 1], 0.02, -0.07), nsds.equality(), on=f"planet{k}")
    names = list(held)
    return nsds.system(**parts, **{names[i]: held[names[i]] for i in order(len(names))})


def tooth_force(n):
    """Of each of n planets, by Lagrange's equation of the one coordinate, the angle of the sun, and the balance of the sun."""
    turns = {"carrier": 0.03 / 0.1, "planet": -0.03 / 0.04}  # of the sun's: the ring stands
    arm = 0.05 * turns["carrier"]
    inertia = 0.5 * 0.03**2 / 2 + 0.8 * 0.05**2 / 2 * turns["carrier"] ** 2 + n * (0.2 * arm**2 + 0.2 * 0.02**2 / 2 * turns["planet"] ** 2)
    acceleration = (1.5 - 2.0 * turns["carrier"]) / inertia
    return (1.5 - 0.5 * 0.03**2 / 2 * acceleration) / (0.03 * n)


@pytest.mark.parametrize("n", [3, 4, 5])
@pytest.mark.parametrize("order", [range, lambda n: range(n)[::-1]], ids=["forwards", "backwards"])
def test_planets_carry_alike(n, order):
    rows = nsds.simulate(planetary(n, order), t_end=0.02, h=1e-2, scheme=nsds.event_driven())
    forces = abs(np.array([rows[f"inner{k}"]["lambda"][1:].reshape(-1) for k in range(n)]))
    np.testing.assert_allclose(forces, tooth_force(n), rtol=1e-8)


def test_two_hinges_on_one_axis_carry_alike():
    body = nsds.rigid_bodies(1.0, [0.1, 0.1, 0.1], q=[1.0, 0, 0, 1, 0, 0, 0], v=np.zeros(6), fext=[0, -10.0, 0])
    held = {z: nsds.interaction(joints.hinge([0, 0, z], [0, 0, 1]), nsds.equality(), on="body") for z in (-0.3, 0.3)}
    rows = nsds.simulate(nsds.system(body=body, low=held[-0.3], high=held[0.3]), t_end=0.5, h=0.1, scheme=nsds.event_driven())
    np.testing.assert_allclose(rows["low"]["lambda"][1:, :3], rows["high"]["lambda"][1:, :3], rtol=0, atol=1e-9)
    assert abs(rows["low"]["lambda"][-1, :3]).max() > 3.0


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (3, 0, 5, 2, 4, 1), (5, 4, 3, 2, 1, 0)])
def test_bricards_loop_runs_in_any_order_of_its_hinges(order):
    """Which five rows follow from the others changes on the way: all of 30 are there, and none is chosen once and for all."""
    system = bricard()
    names = [name for name in system.dtype.names if name.startswith("hinge")]
    given = {name: nsds.interaction(joints.hinge(CORNERS[i], AXES[i]), nsds.equality(), on=ON[i]) for i, name in enumerate(names)}
    parts = {
        f"rod{i}": nsds.rigid_bodies(1.0, system[f"rod{i}"]["inertia"], q=system[f"rod{i}"]["q"], v=system[f"rod{i}"]["v"])
        for i in range(5)
    }
    permuted = nsds.system(gravity=[0, -G, 0], **parts, **{names[i]: given[names[i]] for i in order})
    rows = nsds.simulate(permuted, t_end=0.6, h=0.1, scheme=nsds.event_driven())
    assert not (rows["status"] & 0xFFF).any()
    right = nsds.simulate(system, t_end=0.6, h=2e-4, save_every=500)  # of order 2
    for name in (*parts, *names):
        field = "q" if name in parts else "y"
        np.testing.assert_allclose(rows[name][field], right[name][field], rtol=0, atol=2e-5)
