"""By default what rolls keeps its energy and its height, what rests its gaps; what overlaps is pushed apart without energy."""

import numpy as np
import pytest

import nsds
from nsds import joints, rotations, shapes

G = 9.81


def friction(e, mu):
    return nsds.newton_impact_friction(e, mu)


def loaded_ball(scale, mu, start=0.02):
    """A ball of 0.1 scale whose centre of mass lies 0.03 scale below its centre; the angle at the start is that of the amplitude."""
    r, d = 0.1 * scale, 0.03 * scale
    q = [-d * np.sin(start), 0, r - d * np.cos(start), np.cos(start / 2), 0, np.sin(start / 2), 0]
    return nsds.system(
        gravity=[0, 0, -G * scale],
        toy=nsds.rigid_bodies(1.0, 2e-3 * scale**2, q=q, v=np.zeros(6)),
        contacts=nsds.collisions({"toy": shapes.sphere(r, position=[0, 0, d])}, friction(0.0, mu), world=shapes.plane()),
    )


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("mu", [0.8, 0.0])
def test_a_loaded_ball_keeps_its_amplitude(scale, mu):
    """20 s of some 9 rad/s; the implicit midpoint rule between constraints at both ends keeps it but for O((h omega)^2)."""
    rows = nsds.simulate(loaded_ball(scale, mu), t_end=20.0, h=2e-3)
    late = rows[rows["t"] > 18.5]
    amplitude = abs(2 * np.arcsin(late["toy"]["q"][:, 5])).max()
    assert amplitude == pytest.approx(0.02, rel=1e-3)
    assert abs(rows["contacts"]["y"][:, 0]).max() < 1e-7 * scale


def test_an_eccentric_disk_keeps_its_height_and_energy():
    """It rolls without slip in the plane, its centre of mass 1 cm off; 20 s. The gap is h^2 / 2 of the curvature of the way at most."""
    m, inertia, r, d, h = 1.0, 5e-3, 0.1, 0.01, 2e-3
    disk = nsds.planar_bodies(m, inertia, q=[0, r - d, 0], v=[2.0 * (r - d), 0, -2.0])
    system = nsds.system(
        gravity=[0, -G, 0],
        disk=disk,
        contacts=nsds.collisions({"disk": shapes.disk(r, position=[0, d])}, friction(0.0, 0.8), world=shapes.half_plane()),
    )
    rows = nsds.simulate(system, t_end=20.0, h=h)
    q, v = rows["disk"]["q"], rows["disk"]["v"]
    energy = 0.5 * m * (v[:, :3] ** 2).sum(axis=1) + 0.5 * inertia * v[:, 5] ** 2 + m * G * q[:, 1]
    assert abs(energy / energy[0] - 1).max() < 1e-4
    assert abs(rows["contacts"]["y"][:, 0]).max() < 1e-6


def test_a_cone_that_rolls_on_its_side_keeps_its_height():
    r, height = 0.15, 0.3
    alpha, cone = np.arctan(r / height), shapes.cone(r, height)
    axis = -np.array([np.cos(alpha), 0, np.sin(alpha)])
    turn, across = np.arccos(axis[2]), np.cross([0, 0, 1], axis) / np.linalg.norm(np.cross([0, 0, 1], axis))
    p = np.r_[np.cos(turn / 2), np.sin(turn / 2) * across]
    centre = 0.75 * height * np.array([np.cos(alpha), 0, np.sin(alpha)])
    omega = np.array([-centre[0] / centre[2], 0, 0])
    v = np.r_[np.cross(omega, centre), rotations.turned_back(p[None], omega[None])[0]]
    system = nsds.system(
        gravity=[0, 0, -G],
        cone=nsds.rigid_bodies(1.0, shapes.inertia(cone, 1.0), q=[*centre, *p], v=v),
        contacts=nsds.collisions({"cone": cone}, friction(0.0, 5.0), world=shapes.plane()),
    )
    z = nsds.simulate(system, t_end=5.0, h=2e-3)["cone"]["q"][:, 2]
    assert abs(z - centre[2]).max() < 1e-5
    assert abs(z[-1] - z[len(z) // 2]) < 1e-7


@pytest.mark.parametrize("h", [1e-2, 2e-3])
def test_an_arm_that_lies_on_the_ground_stays_there(h):
    rod = shapes.capsule(0.03, 0.5, orientation=[np.cos(np.pi / 4), 0, np.sin(np.pi / 4), 0])
    inertia, places = shapes.inertia(rod, 1.0), {"a": 0.25, "b": 0.75}
    parts = {name: nsds.rigid_bodies(1.0, inertia, q=[x, 0, 0.4, 1, 0, 0, 0], v=np.zeros(6)) for name, x in places.items()}
    pairs = [("a", "world"), ("b", "world")]
    system = nsds.system(
        gravity=[0, 0, -G],
        **parts,
        first=nsds.interaction(joints.hinge([0, 0, 0.4], [0, 1, 0]), nsds.equality(), on="a"),
        second=nsds.interaction(joints.hinge([0.5, 0, 0.4], [0, 1, 0]), nsds.equality(), on=("a", "b")),
        contacts=nsds.collisions({"a": rod, "b": rod}, friction(0.2, 0.6), world=shapes.plane(), pairs=pairs),
    )
    rows = nsds.simulate(system, t_end=10.0, h=h)
    depth = [-row["y"][: row["n"]].min() if row["n"] else 0.0 for row in rows["contacts"]]
    assert max(depth) < 0.01 * 0.5
    assert max(depth[-10:]) < 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_pebbles_that_are_poured_lie_without_overlap(seed):
    """A tenth of their size on the way at most where nothing else throws them, and none at rest; the energy of the start is not passed."""
    rng, places = np.random.default_rng(seed), []
    kinds = [shapes.capsule(0.03, 0.06), shapes.sphere(0.05), shapes.box([0.06, 0.08, 0.1]), shapes.capsule(0.025, 0.08)]
    solids = [kinds[rng.integers(4)] for _ in range(20)]
    for i in range(20):
        turn = rng.normal(size=4)
        places.append([(i % 2) * 0.16 - 0.08, (i // 2 % 2) * 0.16 - 0.08, 0.1 + (i // 4) * 0.16, *(turn / np.linalg.norm(turn))])
    inertia = np.array([shapes.inertia(s, 1.0) for s in solids])
    walls = [shapes.plane(n, -0.16) for n in ([1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0])]
    system = nsds.system(
        gravity=[0, 0, -G],
        pebbles=nsds.rigid_bodies(np.ones(20), inertia, q=np.array(places), v=np.zeros((20, 6)), count=20),
        contacts=nsds.collisions({"pebbles": [[s] for s in solids]}, friction(0.0, 0.4), world=[shapes.plane(), *walls]),
    )
    rows = nsds.simulate(system, t_end=3.0, h=2e-3, on_failure="continue")
    depth = np.array([max(-row["y"][: row["n"]].min(), 0.0) if row["n"] else 0.0 for row in rows["contacts"]])
    assert depth.max() < 0.1 * 0.05
    assert depth[-50:].max() < 1e-5
    v = rows["pebbles"]["v"]
    spin = np.einsum("tij,ijk,tik->t", v[..., 3:], inertia, v[..., 3:])
    energy = 0.5 * (v[..., :3] ** 2).sum(axis=(1, 2)) + 0.5 * spin + G * rows["pebbles"]["q"][..., 2].sum(axis=1)
    assert energy.max() <= energy[0] * (1 + 1e-9)


def test_what_begins_within_another_is_pushed_out_without_energy():
    """A ball 1 cm deep in a floor, at rest without gravity: out by a hundredth of its size a step, and still then."""
    ball = shapes.sphere(0.1)
    system = nsds.system(
        ball=nsds.rigid_bodies(1.0, shapes.inertia(ball, 1.0), q=[0, 0, 0.09, 1, 0, 0, 0], v=np.zeros(6)),
        contacts=nsds.collisions({"ball": ball}, friction(0.5, 0.3), world=shapes.plane()),
    )
    with pytest.warns(UserWarning, match="overlaps"):
        rows = nsds.simulate(system, t_end=0.5, h=1e-3)
    z = rows["ball"]["q"][:, 2]
    assert (np.diff(z) > -1e-12).all()
    assert z[-1] == pytest.approx(0.1, abs=1e-8)
    assert abs(rows["ball"]["v"]).max() < 1e-12
