"""Shapes that touch edge on edge, or corner on corner: the normal between those that all their faces allow, and houses of cards."""

import numpy as np
import pytest

import nsds
from nsds.collision.edge_on import WIDTH
from nsds.model import shapes
from tests.collision.test_collision import Found

LENGTH, THICK, DEEP, GRAVITY = 0.1, 1e-3, 0.06, 9.81
CORNERS = np.array([[x, y, z] for x in (-THICK, THICK) for y in (-DEEP, DEEP) for z in (-LENGTH, LENGTH)]) / 2
SCHEMES = {"default": None, "moreau_jean": nsds.moreau_jean()}


def place(side, lean):
    """(centre in the plane of the cards, angle) of a card that leans towards the other one, with its upper inner edge at the origin."""
    up, out = np.array([-side * np.sin(lean), np.cos(lean)]), np.array([side * np.cos(lean), np.sin(lean)])
    return THICK / 2 * out - LENGTH / 2 * up, side * lean


def card(kind, side, lean, shift=0.0):
    """A card, higher by a shift."""
    (x, z), angle = place(side, lean)
    if kind == "rectangle":
        return shapes.rectangle([THICK, LENGTH], position=[x, z + shift], angle=angle)
    at = {"position": [x, 0.0, z + shift], "orientation": [np.cos(angle / 2), 0, -np.sin(angle / 2), 0]}
    return shapes.box([THICK, DEEP, LENGTH], **at) if kind == "box" else shapes.convex(CORNERS, **at)


def tilt(kind, normals):
    """By how much normals are turned upwards."""
    return np.arctan2(normals[:, 1 if kind == "rectangle" else 2], normals[:, 0])


@pytest.mark.parametrize("kind", ["box", "convex", "rectangle"])
@pytest.mark.parametrize("leans", [(0.25, 0.25), (0.1, 0.4), (0.02, 0.03)])
def test_the_normal_of_two_edges_is_in_the_middle_of_those_that_both_allow(kind, leans):
    right, left = leans
    for shift in (0.0, 1e-12, -1e-12):
        found = Found([card(kind, 1, right, shift), card(kind, -1, left)], 1e-4)
        edge = found.gap < 1e-6
        assert np.count_nonzero(edge) == (1 if kind == "rectangle" else 2)
        np.testing.assert_allclose(tilt(kind, found.normal[edge]), (right - left) / 2, atol=1e-4)  # 1e-12 of a width of 5e-9
        np.testing.assert_allclose(found.gap[edge], 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", ["box", "convex", "rectangle"])
def test_the_normal_turns_without_a_jump_to_that_of_the_face_on_which_an_edge_is(kind):
    lean, half = 0.25, THICK / 2
    width = WIDTH * half / (2 * np.sin(lean))  # shift at which the other face separates by so much less
    shifts = np.linspace(-1.5, 1.5, 61) * width
    found = [Found([card(kind, 1, lean, shift), card(kind, -1, lean)], 1e-5) for shift in shifts]
    tilts = np.array([tilt(kind, one.normal)[np.argmin(one.gap)] for one in found])
    np.testing.assert_allclose(tilts[[0, -1]], [-lean, lean], atol=1e-6)
    assert (np.diff(tilts) > -1e-6).all()
    assert np.diff(tilts).max() < 0.1 * 2 * lean
    gaps, distances = np.array([one.gap.min() for one in found]), abs(shifts) * np.sin(lean)
    assert abs(gaps - distances).max() < WIDTH * half


def house(kind, lean, mu):
    """Two cards that lean on each other, on the ground."""
    bodies, of_bodies, mass = {}, {}, 0.01
    corners = np.array([[x, z] for x in (-THICK, THICK) for z in (-LENGTH, LENGTH)]) / 2
    for name, side in (("right", 1), ("left", -1)):
        (x, z), angle = place(side, lean)
        R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        z = -(corners @ R.T)[:, 1].min()
        if kind == "rectangle":
            of_bodies[name] = shapes.rectangle([THICK, LENGTH])
            bodies[name] = nsds.planar_bodies(mass, shapes.inertia(of_bodies[name], mass), q=[x, z, angle], v=np.zeros(3))
        else:
            of_bodies[name] = shapes.box([THICK, DEEP, LENGTH]) if kind == "box" else shapes.convex(CORNERS)
            q = [x, 0, z, np.cos(angle / 2), 0, -np.sin(angle / 2), 0]
            bodies[name] = nsds.rigid_bodies(mass, shapes.inertia(of_bodies[name], mass), q=q, v=np.zeros(6))
    ground = shapes.half_plane() if kind == "rectangle" else shapes.plane()
    contacts = nsds.collisions(of_bodies, nsds.newton_impact_friction(0.0, mu), world=ground)
    gravity = [0, -GRAVITY, 0] if kind == "rectangle" else [0, 0, -GRAVITY]
    return nsds.system(gravity=gravity, **bodies, contacts=contacts)


def needed(lean):
    """mu of the ground: half the span of a card, from foot to centre of mass, by the height of the edge on which it leans."""
    (x, z), _ = place(1, lean)
    up, out = np.array([-np.sin(lean), np.cos(lean)]), np.array([np.cos(lean), np.sin(lean)])
    foot = np.array([x, z]) - LENGTH / 2 * up - THICK / 2 * out
    return abs(foot[0] - x) / abs(foot[1])


@pytest.mark.parametrize("kind", ["box", "convex", "rectangle"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("lean", [0.06, 0.25, 0.5])
def test_a_house_of_cards_stands_as_long_as_friction_on_the_ground_holds_its_feet(kind, scheme, lean):
    stays, slides = (
        nsds.simulate(house(kind, lean, share * needed(lean)), t_end=0.4, h=2e-3, scheme=SCHEMES[scheme])["right"]["q"]
        for share in (1.05, 0.95)
    )
    assert abs(stays[-1] - stays[0]).max() < 1e-9
    assert abs(slides[-1] - slides[0]).max() > 1e-3  # and falls
