"""Surfaces that run over their shapes, as belts, tracks and turntables: friction acts on their velocities, under every scheme."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import nsds
from nsds.model.system_kinds import NEWTON_EULER
from tests.cells.outcomes import schemes_of

G = 10.0
CRATE, BALL = nsds.shapes.box([0.2, 0.2, 0.2]), nsds.shapes.sphere(0.1)
SCHEMES = {name: getattr(nsds, name)() for name in schemes_of(NEWTON_EULER)}


def _on_plane(shape, velocity, law, v=(0, 0, 0, 0, 0, 0), **surfaces):
    """A body of 1 kg that lies on the plane z = 0."""
    body = nsds.rigid_bodies(1.0, nsds.shapes.inertia(shape, 1.0), q=[0, 0, 0.1, 1, 0, 0, 0], v=v)
    contacts = nsds.collisions({"body": shape}, law, world=nsds.shapes.plane(), surface_velocity={"world": velocity} | surfaces)
    return nsds.system(gravity=[0, 0, -G], body=body, contacts=contacts)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_belt_takes_a_box_along(scheme):
    """Its speed grows by mu g until it is that of the belt; the sum of friction is then 0."""
    system = _on_plane(CRATE, [0.6, 0.8, 0.0], nsds.newton_impact_friction(e_n=0.0, mu=0.5))
    rows = nsds.simulate(system, t_end=0.3, h=1e-2, scheme=SCHEMES[scheme])
    assert not nsds.status.has_failed(rows["status"]).any()
    speed = np.minimum(0.5 * G * rows["t"], 1.0)
    assert_allclose(rows["body"]["v"], speed[:, None] * np.array([0.6, 0.8, 0, 0, 0, 0]), atol=1e-7)
    assert_allclose(rows["contacts"]["lambda"][-1, :, 1:].sum(axis=0), 0.0, atol=1e-7)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_belt_in_the_plane(scheme):
    """A stone on a half plane; components of the velocity that leave the plane have no effect."""
    stone = nsds.shapes.rectangle([0.2, 0.2])
    system = nsds.system(
        gravity=[0, -G, 0],
        stone=nsds.planar_bodies(1.0, nsds.shapes.inertia(stone, 1.0), q=[0, 0.1, 0], v=[0.0, 0, 0]),
        contacts=nsds.collisions(
            {"stone": stone},
            nsds.newton_impact_friction(e_n=0.0, mu=0.5),
            world=nsds.shapes.half_plane([0, 1]),
            surface_velocity={"world": [-1.0, 5.0, 7.0, 3.0, 4.0, 0.0]},
        ),
    )
    rows = nsds.simulate(system, t_end=0.3, h=1e-2, scheme=SCHEMES[scheme])
    assert not nsds.status.has_failed(rows["status"]).any()
    assert_allclose(rows["stone"]["v"], np.minimum(0.5 * G * rows["t"], 1.0)[:, None] * np.array([-1.0, 0, 0, 0, 0, 0]), atol=1e-7)


@pytest.mark.parametrize(("scheme", "order"), [("rattle", 2), ("moreau_jean", 1), ("event_driven", 2)])
def test_a_ball_on_a_turntable_goes_round_with_two_sevenths_of_its_speed(scheme, order):
    """Of a homogeneous ball that rolls, ``v' = 2/7 Omega x v``, whatever its place (Weckesser, Am. J. Phys. 65 (1997) 736)."""
    ahead, table, h = 0.3, 2.0, 2e-3
    # rolling on the table at its centre, where the surface is at rest
    system = _on_plane(BALL, [0, 0, 0, 0, 0, table], nsds.newton_impact_friction(e_n=0.0, mu=2.0), v=[ahead, 0, 0, 0, ahead / 0.1, 0])
    rows = nsds.simulate(system, t_end=0.5, h=h, scheme=SCHEMES[scheme])
    assert not nsds.status.has_failed(rows["status"]).any()
    angle = 2.0 / 7.0 * table * rows["t"]
    assert_allclose(rows["body"]["v"][:, 0], ahead * np.cos(angle), atol=ahead * (table * h) ** order)
    assert_allclose(rows["body"]["v"][:, 1], ahead * np.sin(angle), atol=ahead * (table * h) ** order)


@pytest.mark.parametrize("scheme", ["rattle", "event_driven"])
def test_tracks_turn_with_their_body(scheme):
    """A box whose own surface runs backwards goes forwards, along its own axis, at the speed of its tracks."""
    system = _on_plane(CRATE, [0.0, 0, 0], nsds.newton_impact_friction(e_n=0.0, mu=0.5), body=[-1.0, 0, 0])
    system["body"]["q"][3:] = [np.cos(0.5), 0, 0, np.sin(0.5)]
    rows = nsds.simulate(system, t_end=0.3, h=1e-2, scheme=SCHEMES[scheme])
    assert_allclose(rows["body"]["v"][-1, :3], [np.cos(1.0), np.sin(1.0), 0.0], atol=1e-7)


@pytest.mark.parametrize("scheme", ["rattle", "moreau_jean"])
def test_rolling_friction_takes_a_ball_round_with_the_surface(scheme):
    """Without sliding friction: its rate of turn grows by mu_r N / I until it is that of the surface."""
    law = nsds.newton_impact_rolling_friction(e_n=0.0, mu=0.0, mu_r=0.01)
    rows = nsds.simulate(_on_plane(BALL, [0, 0, 0, 0, 5.0, 0], law), t_end=0.4, h=1e-2, scheme=SCHEMES[scheme])
    turn = np.minimum(0.01 * G / nsds.shapes.inertia(BALL, 1.0)[1, 1] * rows["t"], 5.0)
    assert_allclose(rows["body"]["v"], turn[:, None] * np.array([0, 0, 0, 0, 1.0, 0]), atol=1e-9)


@pytest.mark.parametrize("e_t", [0.0, 0.5])
def test_restitution_is_that_of_the_velocity_between_the_surfaces(e_t):
    """A ball that falls onto a belt with much friction has ``u_t+ = -e_t u_t-``, u_t its velocity at the belt less that of the belt."""
    system = _on_plane(BALL, [1.0, 0, 0], nsds.newton_impact_friction(e_n=0.5, mu=10.0, e_t=e_t))
    system["body"]["q"][2] = 0.15
    for scheme in (nsds.rattle(), nsds.moreau_jean()):
        rows = nsds.simulate(system, t_end=0.12, h=1e-3, scheme=scheme)
        after = rows["body"]["v"][-1]
        assert after[2] > 0.0
        assert_allclose(after[0] - 0.1 * after[4] - 1.0, e_t, atol=1e-9)


def test_the_belt_does_the_work_of_its_friction():
    """Ledger of a box that slips and then sticks: contact is ``mu N v`` over the time of slip, and it closes."""
    system = _on_plane(CRATE, [1.0, 0, 0], nsds.newton_impact_friction(e_n=0.0, mu=0.5))
    scheme = nsds.moreau_jean(theta=0.5)
    ledger = nsds.energy(system, nsds.simulate(system, t_end=0.3, h=1e-2, scheme=scheme))
    assert_allclose(ledger["contact"].sum(), 0.5, atol=1e-9)
    assert_allclose(ledger["numerical"], 0.0, atol=1e-9)


def test_a_belt_that_is_stopped_stops_what_is_on_it():
    system = _on_plane(CRATE, [0.0, 0, 0], nsds.newton_impact_friction(e_n=0.0, mu=0.5))
    advance = nsds.stepper(system, h=1e-2)
    for speed, steps in ((1.0, 30), (0.0, 10)):
        system["contacts"]["surface_velocity"][1, 0] = speed
        system = advance(system, steps)
    assert_allclose(system["body"]["v"][0], 0.5, atol=1e-9)


def test_a_surface_at_rest_is_as_none():
    law = nsds.newton_impact_friction(e_n=0.3, mu=0.5, e_t=0.2)
    still = _on_plane(BALL, [0.0, 0, 0], law, v=[1.0, 0, 0.5, 0, 0, 3])
    without = nsds.system(
        gravity=[0, 0, -G],
        body=nsds.rigid_bodies(1.0, nsds.shapes.inertia(BALL, 1.0), q=[0, 0, 0.1, 1, 0, 0, 0], v=[1.0, 0, 0.5, 0, 0, 3]),
        contacts=nsds.collisions({"body": BALL}, law, world=nsds.shapes.plane()),
    )
    rows = [nsds.simulate(system, t_end=0.5, h=5e-3) for system in (still, without)]
    assert (rows[0]["body"] == rows[1]["body"]).all()


def test_velocities_of_shapes_of_a_part():
    """One for all, one for each shape, or one for each body where shapes are listed body by body; 0 of parts that are not named."""
    bodies = nsds.rigid_bodies(1.0, [1.0, 1.0, 1.0], q=[[0, 0, 0, 1, 0, 0, 0]] * 2, v=[[0.0] * 6] * 2)

    def stated(shapes, value):
        law = nsds.newton_impact_friction(e_n=0.0, mu=0.5)
        contacts = nsds.collisions({"bodies": shapes}, law, world=[nsds.shapes.plane()], surface_velocity={"bodies": value})
        return nsds.system(bodies=bodies, contacts=contacts)["contacts"]["surface_velocity"]

    one, other = [1.0, 0, 0, 0, 0, 0], [0, 2.0, 0, 0, 0, 3.0]
    still = [0.0] * 6
    assert stated([BALL, CRATE], [1.0, 0, 0]).tolist() == [one] * 4 + [still]
    assert stated([BALL, CRATE], [one, other]).tolist() == [one, other] * 2 + [still]
    assert stated([[BALL, CRATE], [BALL]], [one, other]).tolist() == [one, one, other, still]


@pytest.mark.parametrize(
    ("law", "world", "value", "text"),
    [
        (nsds.newton_impact(0.5), True, {"world": [1, 0, 0]}, "surface_velocity acts by friction, which newton_impact has none of"),
        (None, True, {"walls": [1, 0, 0]}, "surface_velocity must be a dict of some of the names ball, world"),
        (None, True, {"ball": 1.0}, r"surface_velocity\['ball'\] must be three numbers \(m/s\), or six"),
        (None, True, {"ball": [1, 0, 0, 0]}, r"surface_velocity\['ball'\] must be three numbers \(m/s\), or six"),
        (None, True, {"ball": [[1, 0, 0], [0, 0, 0]]}, r"surface_velocity\['ball'\] must be one velocity or 1 of them, got 2"),
        (None, True, {"ball": [np.nan, 0, 0]}, r"surface_velocity\['ball'\]"),
        (None, False, {"world": [1, 0, 0]}, "that of the shapes of world=, of which none was given"),
    ],
)
def test_bad_surface_velocities(law, world, value, text):
    law = nsds.newton_impact_friction(e_n=0.0, mu=0.5) if law is None else law
    ball = nsds.rigid_bodies(1.0, [1.0, 1.0, 1.0], q=[0, 0, 0, 1, 0, 0, 0], v=[0.0] * 6)
    ground = nsds.shapes.plane() if world else ()
    with pytest.raises(ValueError, match=text):
        nsds.system(ball=ball, contacts=nsds.collisions({"ball": BALL}, law, world=ground, surface_velocity=value))
