"""Contacts of bodies that joints connect: what joints carry is no contact, what they leave free is one."""

import numpy as np
import pytest

import nsds
from nsds import joints, shapes
from nsds.model.joints import ALIGN, POINT
from nsds.model.layout import ABSENT
from nsds.schemes.rigid import joined

X, Z = [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]
BOX, MASS = shapes.box([0.4, 0.3, 0.1]), 1.0
# Joints that do not let the second box leave the first one, which is below it.
FLUSH = {
    "fixed": joints.fixed_joint(),
    "prismatic": joints.prismatic(X),
    "hinge": joints.hinge([0.05, 0.02, 1.05], Z),
    "planar": joints.planar([0.0, 0.0, 1.0], Z),
}
SCHEMES = {
    "default": {},
    "moreau_jean": {"scheme": nsds.moreau_jean()},
    "combined": {"scheme": nsds.moreau_jean_combined_projection()},
    "generalised_alpha": {"scheme": nsds.generalised_alpha()},
    "event_driven": {"scheme": nsds.event_driven()},
}


def body(q, speed=0.0, **more):
    """A box that turns about the point (0.05, 0.025, 1.05), as one rigid body with others that do."""
    omega = speed * np.array([1.0, 0.5, 0.7])
    v = np.cross(omega, np.subtract(q, [0.05, 0.025, 1.05]))
    return nsds.rigid_bodies(MASS, shapes.inertia(BOX, MASS), q=[*q, 1, 0, 0, 0], v=[*v, *omega], **more)


def energy(rows, names):
    """Kinetic energy of each row."""
    inertia = np.asarray(shapes.inertia(BOX, MASS))
    v = np.stack([rows[name]["v"] for name in names], axis=1)
    return 0.5 * MASS * (v[..., :3] ** 2).sum(axis=(1, 2)) + 0.5 * np.einsum("tbi,ij,tbj->t", v[..., 3:], inertia, v[..., 3:])


@pytest.mark.parametrize("joint", FLUSH)
@pytest.mark.parametrize("overlap", [0.0, 1e-3])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_flush_parts_of_a_machine_that_tumbles_do_not_touch(scheme, overlap, joint):
    """Nothing acts on both but the joint, which does no work: the energy stays, to what the scheme has of it without shapes."""
    parts = {"a": body([0.0, 0.0, 1.0], 3.0), "b": body([0.1, 0.05, 1.1 - overlap], 3.0)}
    parts["joint"] = nsds.interaction(FLUSH[joint], nsds.equality(), on=("b", "a"))
    touching = nsds.collisions({"a": BOX, "b": BOX}, nsds.newton_impact_friction(0.0, 0.3))
    alone, both = (
        nsds.simulate(nsds.system(**parts, **more), t_end=0.2, h=0.01, **SCHEMES[scheme]) for more in ({}, {"contacts": touching})
    )
    assert (both["status"] == nsds.status.CONVERGED).all()
    assert not both["contacts"]["n"].any()
    assert abs(energy(both, "ab") / energy(alone, "ab") - 1.0).max() < 1e-6


def test_bodies_that_others_weld_together_do_not_touch():
    """Three boxes in a row, with welds of both ends to a rod, and none between them; the ends of the rod do not collide."""
    parts = {"a": body([-0.15, 0.025, 1.05], 3.0), "b": body([0.25, 0.025, 1.05], 3.0), "rod": body([0.05, 0.025, 1.05], 3.0)}
    parts |= {name: nsds.interaction(joints.fixed_joint(), nsds.equality(), on=(name[0], "rod")) for name in ("a_weld", "b_weld")}
    touching = nsds.collisions({"a": BOX, "b": BOX}, nsds.newton_impact_friction(0.0, 0.3))
    rows = nsds.simulate(nsds.system(**parts, contacts=touching), t_end=0.2, h=0.01)
    assert (rows["status"] == nsds.status.CONVERGED).all()
    assert not rows["contacts"]["n"].any()
    assert abs(energy(rows, ["a", "b", "rod"]) / energy(rows, ["a", "b", "rod"])[0] - 1.0).max() < 1e-4


def test_a_drawer_strikes_its_stop():
    """Along its runners a joint leaves it free: contacts with the stop of a frame that cannot move end its motion, without a rebound."""
    parts = {
        "frame": nsds.rigid_bodies(np.inf, 1.0, q=[0, 0, 1, 1, 0, 0, 0], v=[0] * 6),
        "drawer": nsds.rigid_bodies(MASS, shapes.inertia(BOX, MASS), q=[0, 0, 1.1, 1, 0, 0, 0], v=[1, 0, 0, 0, 0, 0]),
    }
    parts["runners"] = nsds.interaction(joints.prismatic(X), nsds.equality(), on=("drawer", "frame"))
    stop = shapes.box([0.1, 0.3, 0.1], position=[0.3, 0.0, 0.1])
    touching = nsds.collisions({"frame": [BOX, stop], "drawer": BOX}, nsds.newton_impact_friction(0.0, 0.3))
    rows = nsds.simulate(nsds.system(**parts, contacts=touching), t_end=0.2, h=0.01)
    assert (rows["status"] == nsds.status.CONVERGED).all()
    np.testing.assert_allclose(rows["drawer"]["v"][-1], 0.0, atol=1e-9)
    n = rows["contacts"]["n"][-1]
    assert n > 0
    assert (abs(rows["contacts"]["normal"][-1, :n, 0]) > 0.99).all()


@pytest.mark.parametrize("enabled", [True, False])
def test_a_joint_that_is_disabled_carries_nothing(enabled):
    """A box on another one on the ground, with a latch between them: the upper one is carried by the latch, or by contacts."""
    parts = {"a": body([0.0, 0.0, 0.05]), "b": body([0.0, 0.0, 0.15])}
    parts["latch"] = nsds.interaction(joints.fixed_joint(), nsds.equality(), on=("b", "a"), enabled=enabled)
    touching = nsds.collisions({"a": BOX, "b": BOX}, nsds.newton_impact_friction(0.0, 0.3), world=shapes.plane())
    rows = nsds.simulate(nsds.system(gravity=[0, 0, -10.0], **parts, contacts=touching), t_end=0.05, h=0.01)
    n, contacts = rows["contacts"]["n"][-1], rows["contacts"][-1]
    assert n == (4 if enabled else 8)
    of_latch = abs(rows["latch"]["lambda"][-1, 2]) if enabled else contacts["lambda"][:n, 0][contacts["b"][:n] == 1].sum()
    np.testing.assert_allclose(of_latch, 10.0 * MASS * 0.01, rtol=1e-6)


def test_bodies_that_are_welded_are_one_unit():
    """Body 0 is welded to 1, which a hinge joins with 2: the hinge is the joint of their unit and of 2."""
    bodies = np.zeros(3, [("alive", np.int64), ("planar", np.int64)])
    interactions = np.zeros(2, [("a", np.int64), ("b", np.int64), ("enabled", np.int64)])
    bodies["alive"], interactions["enabled"], interactions["a"], interactions["b"] = ABSENT, ABSENT, [0, 1], [1, 2]
    entries = joined.connections(bodies, interactions, [[POINT] * 3 + [ALIGN] * 3, [POINT] * 3 + [ALIGN] * 2])
    units, begin = entries[:3], entries[3:]
    assert units[0] == units[1] != units[2]
    of_units = [entries[begin[unit] : begin[unit + 1]].tolist() for unit in range(3)]
    assert of_units[units[0]] == of_units[2] == [1]
    assert sum(map(len, of_units)) == 2
