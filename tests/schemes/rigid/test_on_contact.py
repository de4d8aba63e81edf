"""Functions of users for contacts that are found: exact motions on turned normals, coats and holes; nothing changes where nothing is."""

import math

import numpy as np
import pytest

import nsds
from nsds import shapes

G, H = 9.81, 1e-3
_ROLLED = (math.cos(0.7), math.sin(0.7), 0.0, 0.0)  # about x, so that the axis of a cylinder is nearly along -y


def nothing(shapes, poses, z, contact):
    pass


def turned(shapes, poses, z, contact):
    contact[0], contact[2] = 2.0 * math.sin(z[0]), 2.0 * math.cos(z[0])  # any length


def coated(shapes, poses, z, contact):
    contact[6] -= z[0]


def with_a_hole(shapes, poses, z, contact):
    if contact[3] > z[0]:
        contact[6] = math.inf


def towards_the_second_shape(shapes, poses, z, contact):
    """The normal of balls, from where they are."""
    for k in range(3):
        contact[k] = poses[k] - poses[7 + k]


def broken(shapes, poses, z, contact):
    if contact[6] < 0.0:
        contact[0] = math.nan


def short(shapes, contact):
    pass


def balls(on_contact=None, z=None, x=(0.0,), v=(0.0,), height=0.1, mu=0.0, capacity=None, margin=0.0):
    ball, n = shapes.sphere(0.1), len(x)
    q, speed = np.tile([0, 0, height, 1.0, 0, 0, 0], (n, 1)), np.zeros((n, 6))
    q[:, 0], speed[:, 0] = x, v
    bodies = nsds.rigid_bodies(np.ones(n), np.array([shapes.inertia(ball, 1.0)] * n), q=q, v=speed)
    law = nsds.newton_impact_friction(0.0, mu=mu)
    contacts = nsds.collisions({"balls": ball}, law, world=shapes.plane(), on_contact=on_contact, z=z, capacity=capacity, margin=margin)
    return nsds.system(gravity=[0, 0, -G], balls=bodies, contacts=contacts)


@pytest.mark.parametrize(
    "scheme", [nsds.moreau_jean(), nsds.generalised_alpha(), nsds.rattle()], ids=lambda one: one["scheme"].item().decode()
)
def test_a_function_that_changes_nothing_changes_no_bit(scheme):
    x, v = 0.21 * np.arange(6), (1.0, 0, 0, -0.5, 0, 0.3)
    with_it, without = (nsds.simulate(balls(f, x=x, v=v, mu=0.3), t_end=0.03, h=H, scheme=scheme) for f in (nothing, None))
    assert np.array_equal(with_it["balls"]["q"], without["balls"]["q"])
    assert np.array_equal(with_it["contacts"]["lambda"], without["contacts"]["lambda"])


def test_what_wobbles_does_so_to_the_same_bits_on_contacts_that_a_function_has_seen():
    """RATTLE foresees how contacts move in a step, and asks the function there, too."""
    wheel = shapes.cylinder(0.1, 0.02)
    body = nsds.rigid_bodies(1.0, shapes.inertia(wheel, 1.0), q=[0, 0, 0.101, *_ROLLED], v=[1.0, 0, 0, 0, 0, 10.0])
    law = nsds.newton_impact_friction(0.0, mu=0.5)
    runs = []
    for f in (nothing, None):
        contacts = nsds.collisions({"wheel": wheel}, law, world=shapes.plane(), on_contact=f)
        system = nsds.system(gravity=[0, 0, -G], wheel=body, contacts=contacts)
        runs.append(nsds.simulate(system, t_end=0.3, h=H, scheme=nsds.rattle()))
    with_it, without = runs
    assert (without["contacts"]["n"] > 0).any()
    assert np.array_equal(with_it["wheel"]["q"], without["wheel"]["q"])


def test_turned_normals_make_an_incline():
    """Of which the lowest point of the ball may not go down: the impulse turns it, with ``I = 0.4 m r^2``."""
    slope, t_end = 0.3, 0.2
    rows = nsds.simulate(balls(turned, z=[slope]), t_end=t_end, h=H)
    normal = np.array([math.sin(slope), 0, math.cos(slope)])
    impulse = G * t_end * math.cos(slope) / (1 + math.sin(slope) ** 2 / 0.4)
    np.testing.assert_allclose(rows["balls"]["v"][-1].reshape(-1)[:3], impulse * normal - [0, 0, G * t_end], atol=1e-9)
    np.testing.assert_allclose(rows["contacts"]["normal"][-1, 0], normal, atol=1e-12)


@pytest.mark.parametrize("scheme", [None, nsds.moreau_jean_combined_projection(), nsds.moreau_jean_direct_projection()])
def test_a_coat_carries_at_its_surface(scheme):
    rows = nsds.simulate(balls(coated, z=[0.02], height=0.2, margin=0.03), t_end=0.3, h=H, scheme=scheme)
    assert rows["balls"]["q"][-1].reshape(-1)[2] == pytest.approx(0.12, abs=2e-3)
    assert rows["contacts"]["lambda"][-1, 0, 0] == pytest.approx(G * H, rel=1e-6)


def test_what_is_dropped_carries_nothing():
    t_end = 0.15
    rows = nsds.simulate(balls(with_a_hole, z=[0.5], x=(0.0, 1.0, -1.0)), t_end=t_end, h=H)
    z = rows["balls"]["q"][-1, :, 2]
    np.testing.assert_allclose(z, [0.1, 0.1 - 0.5 * G * t_end**2, 0.1], atol=2e-3)
    assert rows["contacts"]["n"][-1] == 2
    assert (rows["contacts"]["a"][-1, :2] == [0, 2]).all()


def test_poses_are_those_of_the_two_shapes():
    x, v = (0.0, 0.25), (1.0, -1.0)
    with_it, without = (nsds.simulate(balls(f, x=x, v=v, height=5.0), t_end=0.06, h=H) for f in (towards_the_second_shape, None))
    np.testing.assert_allclose(with_it["balls"]["v"], without["balls"]["v"], atol=1e-12)


def test_parameters_may_change_between_steps_and_room_grows():
    system = balls(with_a_hole, z=[9.0], x=0.3 * np.arange(5), capacity=1)
    advance = nsds.stepper(system, H)
    system = advance(system, 10)
    assert system["contacts"]["n"] == 5
    system["contacts"]["z"] = 0.5
    assert advance(system, 10)["contacts"]["n"] == 2


def test_a_contact_that_is_no_number_ends_the_run():
    with pytest.raises(nsds.SimulationError, match="NaN"):
        nsds.simulate(balls(broken, height=0.2), t_end=1.0, h=H, scheme=nsds.moreau_jean())


def out_of_range(shapes, poses, z, contact):
    if contact[6] < 0.0:
        contact[int(shapes[0]) + 7] = 0.0


def test_a_checked_run_names_the_function():
    with pytest.raises(nsds.SimulationError, match=r"contacts.*out_of_range.*IndexError"):
        nsds.simulate(balls(out_of_range, height=0.2), t_end=1.0, h=H, scheme=nsds.moreau_jean(), check=True)


def test_refusals_name_what_is_wrong():
    with pytest.raises(TypeError, match=r"collisions: on_contact: expected a function on_contact\(shapes, poses, z, contact\)"):
        balls(short)
    with pytest.raises(ValueError, match="collisions: z are parameters of on_contact"):
        balls(z=[1.0])
    for scheme in (nsds.event_driven(), nsds.d1_minus_linear()):
        with pytest.raises(ValueError, match=r"collisions 'contacts'.*without on_contact"):
            nsds.simulate(balls(nothing), t_end=1.0, h=H, scheme=scheme)
