"""What a body passes without touching it does nothing to it: seams of faces and bodies that are flush, edges below its path."""

import numpy as np
import pytest

import nsds
from nsds.model import shapes
from tests.collision.test_collision_convex import terrain

G, SPEED = 9.81, 3.0
LENGTHS, TILE = [0.3, 0.2, 0.1], [0.5, 2.0, 0.2]
HEADING = [np.cos(0.15), 0, 0, np.sin(0.15)]
SCHEMES = {
    "moreau_jean": nsds.moreau_jean(), "theta 1": nsds.moreau_jean(theta=1.0), "gamma 1": nsds.moreau_jean(gamma=1.0),
    "combined": nsds.moreau_jean_combined_projection(), "direct": nsds.moreau_jean_direct_projection(), "rattle": nsds.rattle(),
}  # fmt: skip
PAIRS = [(a, b) for a in ("box", "hull", "mesh", "ball", "capsule", "cylinder", "two boxes") for b in ("box", "hull", "mesh")]


def hull(lengths):
    x, y, z = np.array(lengths) / 2
    return shapes.convex(np.array([[a, b, c] for a in (-x, x) for b in (-y, y) for c in (-z, z)]))


def as_mesh(hull):
    return shapes.mesh(hull["vertices"], hull["triangles"])


def body(name):
    """A shape, or a list of them, whose lowest point is 0.05 below its centre."""
    quarter = np.sqrt(0.5)
    return {
        "box": lambda: shapes.box(LENGTHS), "hull": lambda: hull(LENGTHS), "mesh": lambda: as_mesh(hull(LENGTHS)),
        "ball": lambda: shapes.sphere(0.05), "capsule": lambda: shapes.capsule(0.05, 0.2, orientation=[quarter, 0, quarter, 0]),
        "cylinder": lambda: shapes.cylinder(0.1, 0.1),
        "two boxes": lambda: [shapes.box([0.15, 0.2, 0.1], position=[x, 0, 0]) for x in (-0.075, 0.075)],
    }[name]()  # fmt: skip


def block(name, lengths, at):
    made = {"box": lambda: shapes.box(lengths), "hull": lambda: hull(lengths), "mesh": lambda: as_mesh(hull(lengths))}[name]()
    return made | {"pose": np.array([*at, 1.0, 0, 0, 0])}


def tiles(name, lower=0.0, first=-2, last=3):
    return [block(name, TILE, [0.5 * i, 0, -0.1 - lower * i]) for i in range(first, last)]


def slide(shape, floor, at, scheme, t_end=0.25, gravity=G, v=(SPEED, 0, 0, 0, 0, 0), q=HEADING, h=1e-3):
    """Rows of a body that slides without friction."""
    system = nsds.system(
        gravity=[0, 0, -gravity],
        body=nsds.rigid_bodies(1.0, shapes.inertia(shapes.box(LENGTHS), 1.0), q=[*at, *q], v=v),
        contacts=nsds.collisions({"body": shape}, nsds.newton_impact(0.0), world=floor),
    )
    return nsds.simulate(system, t_end=t_end, h=h, scheme=scheme, progress=False)["body"]


@pytest.mark.parametrize(("shape", "tile"), PAIRS)
def test_flush_tiles_are_one_floor(shape, tile):
    v = slide(body(shape), tiles(tile), [-0.1, 0.1, 0.05], SCHEMES["moreau_jean"])["v"]
    np.testing.assert_allclose(v, [[SPEED, 0, 0, 0, 0, 0]] * len(v), rtol=0, atol=1e-6)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("shape", "tile"), [("box", "box"), ("mesh", "hull"), ("cylinder", "box")])
def test_flush_tiles_are_one_floor_under_every_scheme(scheme, shape, tile):
    v = slide(body(shape), tiles(tile), [-0.05, 0.1, 0.05], SCHEMES[scheme], t_end=0.12)["v"]
    np.testing.assert_allclose(v, [[SPEED, 0, 0, 0, 0, 0]] * len(v), rtol=0, atol=1e-6)


@pytest.mark.parametrize("lower", [1e-6, 1e-4])
@pytest.mark.parametrize("shape", ["box", "hull", "ball"])
def test_tiles_that_are_lower_stop_nothing(shape, lower):
    """Faces tilt by lower / 0.25 at most, and height becomes speed."""
    v = slide(body(shape), tiles("box", lower), [-0.1, 0.1, 0.05], SCHEMES["moreau_jean"], t_end=0.4)["v"][:, 0]
    assert v.min() >= SPEED - 0.01
    assert v.max() <= np.sqrt(SPEED**2 + 2 * G * 4 * lower) + 0.01


@pytest.mark.parametrize(("shape", "tile"), PAIRS)
def test_what_flies_above_a_ledge_does_not_touch_it(shape, tile):
    ledge = block(tile, [2, 1, 1], [1.0, 0, -0.5])
    for x in (-0.1605, -0.1595, -0.1585):
        v = slide(body(shape), ledge, [x, 0.1, 0.0505], SCHEMES["gamma 1"], t_end=0.02, gravity=0.0)["v"]
        np.testing.assert_allclose(v, [[SPEED, 0, 0, 0, 0, 0]] * len(v), rtol=0, atol=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_flies_above_a_ledge_does_not_touch_it_under_every_scheme(scheme):
    for x in np.linspace(-0.17, -0.155, 4):
        v = slide(body("box"), block("box", [2, 1, 1], [1.0, 0, -0.5]), [x, 0.1, 0.0505], SCHEMES[scheme], t_end=0.02, gravity=0.0)["v"]
        np.testing.assert_allclose(v, [[SPEED, 0, 0, 0, 0, 0]] * len(v), rtol=0, atol=1e-12)


@pytest.mark.parametrize("scheme", ["moreau_jean", "combined", "rattle"])
@pytest.mark.parametrize(("shape", "tile"), [("box", "box"), ("hull", "mesh"), ("mesh", "box"), ("cylinder", "hull"), ("two boxes", "box")])
def test_a_step_stops_what_runs_into_it(scheme, shape, tile):
    """20 mm high: the front of the body does not pass it, and most of its speed is gone."""
    floor = [*tiles(tile, last=1), block(tile, TILE, [0.5, 0, -0.08])]
    rows = slide(body(shape), floor, [0.05, 0.1, 0.05], SCHEMES[scheme], t_end=0.08, q=[1.0, 0, 0, 0])
    front = 0.1 if shape == "cylinder" else 0.15
    assert rows["q"][:, 0].max() <= 0.25 - front + 0.02
    assert rows["v"][-1, 0] < 0.5 * SPEED


def test_a_mesh_slides_over_a_floor_of_irregular_triangles():
    rng, n, extent = np.random.default_rng(1), 16, 6.0
    x = np.linspace(-extent / 2, extent / 2, n + 1)
    X, Y = np.meshgrid(x, x, indexing="ij")
    X[1:-1, 1:-1] += rng.uniform(-0.3, 0.3, (n - 1, n - 1)) * extent / n
    Y[1:-1, 1:-1] += rng.uniform(-0.3, 0.3, (n - 1, n - 1)) * extent / n
    corner = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    triangles = np.concatenate(
        [np.column_stack([corner, corner + n + 1, corner + n + 2]), np.column_stack([corner, corner + n + 2, corner + 1])]
    )
    floor = shapes.mesh(np.column_stack([X.ravel(), Y.ravel(), 0 * X.ravel()]), triangles)
    for _ in range(4):
        angle, start = rng.uniform(0, 6), rng.uniform([-2.5, -1], [-2, 1])
        q = [np.cos(angle / 2), 0, 0, np.sin(angle / 2)]
        v = slide(body("mesh"), floor, [*start, 0.05], SCHEMES["moreau_jean"], 0.6, v=[4, 0.7, 0, 0, 0, 0], q=q, h=2e-3)["v"]
        np.testing.assert_allclose(v, [[4, 0.7, 0, 0, 0, 0]] * len(v), rtol=0, atol=1e-6)


def test_a_mesh_slides_down_a_mesh_event_by_event():
    """Closed form, ``v = g (sin a - mu cos a) t``: contacts at edges of tiles come and go, and none of them moves the box."""
    lengths, angle, mu, t_end = [0.3, 0.2, 0.1], np.radians(30.0), 0.3, 0.5
    floor = terrain(12, lambda x, y: 0.0, size=6.0)
    part = nsds.rigid_bodies(1.0, shapes.inertia(hull(lengths), 1.0), q=[-2, 0.02, 0.05, 1, 0, 0, 0], v=np.zeros(6))
    contacts = nsds.collisions({"box": as_mesh(hull(lengths))}, nsds.newton_impact_friction(0.0, mu), world=floor)
    g = np.array([np.sin(angle), 0, -np.cos(angle)]) * 9.81
    rows = nsds.simulate(nsds.system(gravity=g, box=part, contacts=contacts), t_end=t_end, h=0.05, scheme=nsds.event_driven())
    np.testing.assert_allclose(rows["box"]["v"][-1], [(g[0] + mu * g[2]) * t_end, 0, 0, 0, 0, 0], atol=1e-9)
    np.testing.assert_allclose(rows["box"]["q"][:, 2], 0.05, atol=1e-9)


def test_a_height_map_that_is_level_is_one_floor():
    v = slide(body("mesh"), shapes.height_map(np.zeros((12, 12)), [4, 4]), [-1, 0.1, 0.05], SCHEMES["moreau_jean"], 0.3)["v"]
    np.testing.assert_allclose(v, [[SPEED, 0, 0, 0, 0, 0]] * len(v), rtol=0, atol=1e-6)


def rectangle(x, y, at):
    return shapes.polygon(np.array([[-x, -y], [x, -y], [x, y], [-x, y]]) / 2 + at)


@pytest.mark.parametrize("scheme", ["moreau_jean", "combined", "rattle"])
@pytest.mark.parametrize("shape", ["polygon", "disk", "stadium"])
def test_in_the_plane(scheme, shape):
    """Flush rectangles, some 0.1 mm lower than the last, and a ledge 0.5 mm below the path."""
    own = {"polygon": rectangle(0.3, 0.1, [0, 0]), "disk": shapes.disk(0.05), "stadium": shapes.stadium(0.05, 0.2)}[shape]

    def run(world, x, y, gravity, t_end):
        system = nsds.system(
            gravity=[0, -gravity, 0],
            body=nsds.planar_bodies(1.0, 0.01, q=[x, y, 0], v=[SPEED, 0, 0]),
            contacts=nsds.collisions({"body": own}, nsds.newton_impact(0.0), world=world),
        )
        return nsds.simulate(system, t_end=t_end, h=1e-3, scheme=SCHEMES[scheme], progress=False)["body"]["v"]

    flush, lower = ([rectangle(0.5, 0.2, [0.5 * i, -0.1 - d * i]) for i in range(-1, 3)] for d in (0.0, 1e-4))
    v = run(flush, -0.1, 0.05, G, 0.25)
    np.testing.assert_allclose(v, [[SPEED, 0, 0, 0, 0, 0]] * len(v), rtol=0, atol=1e-6)
    v = run(lower, -0.1, 0.05, G, 0.25)[:, 0]
    assert v.min() >= SPEED - 0.01
    assert v.max() <= SPEED + 0.01
    for x in (-0.16, -0.159, -0.158):
        v = run([rectangle(2, 1, [1, -0.5])], x, 0.0505, 0.0, 0.02)
        np.testing.assert_allclose(v, [[SPEED, 0, 0, 0, 0, 0]] * len(v), rtol=0, atol=1e-12)


def test_a_body_that_lands_on_the_edge_of_a_ledge_is_struck_by_what_it_meets():
    """Aslant from before the ledge: its lower front edge comes over the corner before it is as low, so that only the fall is stopped.

    The impulse is upwards; the box then turns by some 0.01 in a step, and later ones lean back by that.
    """
    ledge = shapes.box([2, 1, 1], position=[1.0, 0, -0.5])
    rows = slide(
        shapes.box(LENGTHS), ledge, [-0.1505, 0.1, 0.051], SCHEMES["gamma 1"], 2e-3, 0.0, v=[3, 0, -1.5, 0, 0, 0], q=[1.0, 0, 0, 0]
    )
    np.testing.assert_allclose(rows["v"][-1, 0], SPEED, rtol=0, atol=0.02)
    assert rows["v"][-1, 2] > -1.5
