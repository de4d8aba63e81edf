"""Contacts that come within a step whose positions are projected: they join it, so that velocities know of what moves the positions."""

import numpy as np
import pytest

import nsds
from nsds import shapes
from tests.reference_newton_euler import matrix

G = 9.81
# A cone falls onto the rim of a round table, lies across it with its side and rolls off: with its tip and its rim it touches by turns.
CONE, TABLE = (0.54543018, 2.10081376), (2.3253678060104108, 1.1626839030052054)
FROM = [0.0, 0.0, 3.33314757, 0.49238922, 0.18800397, 0.79799409, -0.29225468]
THROWN = [-2.58533596, -2.04401967, -2.0893788, 1.31189046, 0.54486057, 0.58398396]


def energy_of(rows, mass, inertia):
    v, q = rows["body"]["v"], rows["body"]["q"]
    return 0.5 * mass * (v[:, :3] ** 2).sum(axis=1) + 0.5 * np.einsum("ti,ij,tj->t", v[:, 3:], inertia, v[:, 3:]) + mass * G * q[:, 2]


@pytest.mark.parametrize(
    ("scheme", "height"),
    [
        (nsds.moreau_jean_combined_projection(metric="identity"), 1e-3),
        (nsds.moreau_jean_combined_projection(metric="mass"), 1e-3),
        (nsds.moreau_jean_direct_projection(metric="identity"), 5e-3),
        (nsds.moreau_jean_direct_projection(metric="mass"), 5e-3),
        (nsds.generalised_alpha(), 1e-3),
    ],
    ids=["combined", "combined by mass", "direct", "direct by mass", "generalised_alpha"],
)
def test_what_rolls_over_a_rim_gains_no_energy(scheme, height):
    """It was lifted by the projection in each step, while its velocity went on to grow: by 19 % of its energy in 0.3 s.

    height: by how much moving positions alone may lift it, of 2 m.
    """
    cone, mass = shapes.cone(*CONE), 5.422020366878103
    inertia = np.asarray(shapes.inertia(cone, mass))
    system = nsds.system(
        gravity=[0, 0, -G],
        body=nsds.rigid_bodies(mass, inertia, q=FROM, v=THROWN),
        contacts=nsds.collisions(
            {"body": cone}, nsds.newton_impact_friction(0.0, 0.5), world=shapes.cylinder(*TABLE, position=[0, 0, TABLE[1] / 2])
        ),
    )
    rows = nsds.simulate(system, t_end=1.0, h=0.010782782122463598, scheme=scheme)
    E = energy_of(rows, mass, inertia)
    assert (rows["status"] == 0).all()
    assert E.max() < E[0] + height * mass * G
    assert E[-1] < E[0] - 10.0  # it has struck


@pytest.mark.parametrize("h", [2e-3, 5e-3])
@pytest.mark.parametrize(("radius", "length"), [(0.1, 0.3), (0.5, 0.2), (0.03, 0.5)])
@pytest.mark.parametrize("floor", ["plane", "box", "cylinder"])
def test_a_cylinder_rolls_without_gain(floor, radius, length, h):
    """Over a plane, a box, and a large cylinder that lies across its way, onto which it is let down by a millimetre."""
    shape, half = shapes.cylinder(radius, length), np.sqrt(0.5)
    ground = {
        "plane": shapes.plane(),
        "box": shapes.box([40.0, 10.0, 1.0], position=[0, 0, -0.5]),
        "cylinder": shapes.cylinder(3.0, 10.0, position=[0, 0, -3.0], orientation=[half, half, 0, 0]),
    }[floor]
    inertia, speed, q = np.asarray(shapes.inertia(shape, 1.0)), 1.0, np.array([0, 0, radius + 1e-3, half, half, 0, 0])
    spin = matrix(q[3:]).T @ [0, speed / radius, 0]
    system = nsds.system(
        gravity=[0, 0, -G],
        body=nsds.rigid_bodies(1.0, inertia, q=q, v=[speed, 0, 0, *spin]),
        contacts=nsds.collisions({"body": shape}, nsds.newton_impact_friction(0.0, 0.5), world=ground),
    )
    rows = nsds.simulate(system, t_end=1.0, h=h, scheme=nsds.moreau_jean_combined_projection())
    E = energy_of(rows, 1.0, inertia)
    assert (rows["status"] == 0).all()
    assert E.max() < E[0] + 1e-3 * (E[0] - G * q[2])
    if floor != "cylinder":
        np.testing.assert_allclose(E[rows["t"] > 0.1], E[0] - 1e-3 * G, rtol=1e-6)
        np.testing.assert_allclose(rows["body"]["q"][rows["t"] > 0.1, 2], radius, rtol=1e-8)


@pytest.mark.parametrize("start", [0.0, 0.03, 0.11])
@pytest.mark.parametrize("scheme", [nsds.moreau_jean_combined_projection(), nsds.moreau_jean_direct_projection()])
def test_corners_that_come_together_with_a_new_one_act_together(scheme, start):
    """A box falls flat on level triangles, over whose edges it slides: a contact with one that is new does not act alone."""
    box, ground = shapes.box([0.5, 0.6, 0.4]), shapes.height_map(np.zeros((3, 3)), [4.0, 4.0])
    body = nsds.rigid_bodies(1.0, np.eye(3) * 4e-3, q=[start, 0, 0.22, 1, 0, 0, 0], v=[0.5, 0, -0.5, 0, 0, 0], fext=[0.3, 0, 0])
    contacts = nsds.collisions({"body": box}, nsds.newton_impact(0.4), world=ground)
    rows = nsds.simulate(nsds.system(gravity=[0, 0, -G], body=body, contacts=contacts), t_end=0.2, h=1e-3, scheme=scheme)
    assert (rows["status"] == 0).all()
    assert abs(rows["body"]["v"][:, 3:]).max() < 1e-3
    assert rows["contacts"]["lambda"][:, :, 0].max() > 0.1
