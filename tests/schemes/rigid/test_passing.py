"""What is fast passes nothing: it comes back as its law says, whatever the speed, shapes and scheme; what is slow is stepped as ever."""

import warnings

import numpy as np
import pytest

import nsds
from nsds import joints, shapes

H = 1e-3
BALL = shapes.sphere(0.005)
SCHEMES = {
    "moreau_jean": nsds.moreau_jean,
    "combined": nsds.moreau_jean_combined_projection,
    "direct": nsds.moreau_jean_direct_projection,
    "rattle": nsds.rattle,
    "generalised_alpha": nsds.generalised_alpha,
}


def plate(thickness, turn=(1, 0, 0, 0)):
    """A square plate about the origin, as a hull whose vertices are given in turned axes."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-0.5, 0.5)]) * [1, 1, thickness]
    turn = np.array(turn) / np.linalg.norm(turn)
    return shapes.convex(nsds.rotations.turned_back(np.tile(turn, (8, 1)), corners), orientation=turn)


def mesh_of(hull):
    return shapes.mesh(hull["vertices"], hull["triangles"])


WORLDS = {
    "plane": shapes.plane(),
    "sheet": shapes.box([1, 1, 1e-3]),
    "plate": shapes.box([1, 1, 2e-2]),
    "ball": shapes.sphere(0.1, position=[0.013, 0.027, -0.1]),
    "disk": shapes.cylinder(0.5, 1e-3),
    "hull": plate(2e-3, [1, 2, 3, 4]),
    "mesh": mesh_of(plate(2e-3)),
    "surface": shapes.mesh([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], [[0, 1, 2], [0, 2, 3]]),
}


def shot(world, v, e=0.5):
    """A ball that flies down on what is in the world."""
    ball = nsds.rigid_bodies(0.004, shapes.inertia(BALL, 0.004), q=[0.013, 0.027, 0.5, 1, 0, 0, 0], v=[0, 0, -v, 0, 0, 0])
    return nsds.system(ball=ball, contacts=nsds.collisions({"ball": BALL}, nsds.newton_impact(e), world=world))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("world", WORLDS)
def test_a_ball_comes_back_as_its_law_says(world, scheme):
    for v in (1.0, 20.0, 57.0, 123.0, 1000.0):
        rows = nsds.simulate(shot(WORLDS[world], v), t_end=0.6 / v + 0.02, h=H, scheme=SCHEMES[scheme]())
        np.testing.assert_allclose(rows["ball"]["v"][-1, 2], v / 2, rtol=1e-9)
        assert rows["ball"]["q"][:, 2].min() > -0.5 * BALL["size"][0]  # what is slow, as it is here below 5 m/s, may overlap by half


@pytest.mark.parametrize("v", [20.0, 700.0])
def test_a_ball_thrown_beside_misses(v):
    system = shot(shapes.box([0.01, 0.01, 1e-3], position=[0.05, 0.027, 0]), v)
    rows = nsds.simulate(system, t_end=1 / v, h=H)
    assert (rows["ball"]["v"][:, 2] == -v).all()
    np.testing.assert_allclose(rows["ball"]["q"][:, 2], 0.5 - v * rows["t"], rtol=1e-12, atol=1e-12)


def random_body(rng):
    """A solid of any kind, thin ones among them."""
    size = 10 ** rng.uniform(-1.5, -0.7)
    thin = size * 10 ** rng.uniform(-1.0, 0.0)
    hull = shapes.convex(rng.normal(size=(12, 3)) * [size, size, thin] / 2)
    return [
        shapes.box([size, size, thin]),
        shapes.capsule(thin, size),
        shapes.cylinder(size, thin),
        shapes.cone(size, 2 * size),
        hull,
    ][rng.integers(5)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_passes_a_thin_sheet(scheme):
    """Bodies of all shapes that turn in any way, up to a radian a step: none is seen on the other side, and all have struck."""
    rng, sheets = np.random.default_rng(3), list(WORLDS.values())
    for k in range(24):
        body, sheet, v = random_body(rng), sheets[k % len(sheets)], 10 ** rng.uniform(0.5, 1.5)
        if sheet["shape"] == "sphere":
            continue
        way = np.array([*rng.uniform(-0.3, 0.3, 2), -1.0])
        start = np.array([*rng.uniform(-0.1, 0.1, 2), 0.0]) - 0.4 * way
        turn, spin = rng.normal(size=4), rng.normal(size=3)
        spin *= 10 ** rng.uniform(1, 3) / np.linalg.norm(spin)
        inertia = np.trace(shapes.inertia(body, 1.0)) / 3  # no gyroscopic moment, which turns by radians do not bear
        given = nsds.rigid_bodies(1.0, inertia, q=[*start, *(turn / np.linalg.norm(turn))], v=[*(v * way), *spin])
        system = nsds.system(b=given, c=nsds.collisions({"b": body}, nsds.newton_impact(0.5), world=sheet))
        rows = nsds.simulate(system, t_end=0.5 / v + 0.03, h=H, scheme=SCHEMES[scheme]())
        over = np.linalg.norm(rows["b"]["q"][:, :2], axis=1) < 0.4
        assert rows["b"]["q"][over, 2].min() > 0.0
        assert (rows["b"]["v"][-1, :3] != rows["b"]["v"][0, :3]).any()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("v", [20.0, 300.0])
def test_a_mesh_does_not_pass_a_mesh(scheme, v):
    cube = mesh_of(plate(1.0))
    body = shapes.mesh(0.05 * cube["vertices"], cube["triangles"])
    given = nsds.rigid_bodies(1.0, shapes.inertia(body, 1.0), q=[0.1, 0.2, 0.4, 1, 0, 0, 0], v=[0, 0, -v, 0, 0, 0])
    system = nsds.system(b=given, c=nsds.collisions({"b": body}, nsds.newton_impact(0.5), world=WORLDS["mesh"]))
    rows = nsds.simulate(system, t_end=0.6 / v + 0.02, h=H, scheme=SCHEMES[scheme]())
    np.testing.assert_allclose(rows["b"]["v"][-1, 2], v / 2, rtol=1e-6)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_passes_in_the_plane(scheme):
    rng = np.random.default_rng(1)
    corners = [[-1, -1e-3], [1, -1e-3], [1, 0], [-1, 0]]
    bodies = [
        shapes.disk(0.01),
        shapes.stadium(0.004, 0.02),
        shapes.rectangle([0.02, 0.003]),
        shapes.polygon(0.01 * np.array(corners) * [1, 900]),
    ]
    for k in range(16):
        body, v = bodies[k % 4], 10 ** rng.uniform(0.5, 3)
        sheet = [shapes.rectangle([2, 1e-3]), shapes.polygon(corners), shapes.half_plane(), shapes.stadium(5e-4, 2)][k // 4]
        given = nsds.planar_bodies(1.0, shapes.inertia(body, 1.0), q=[0, 0.4, rng.uniform(-3, 3)], v=[0.2 * v, -v, rng.uniform(-900, 900)])
        system = nsds.system(b=given, c=nsds.collisions({"b": body}, nsds.newton_impact(0.5), world=sheet))
        rows = nsds.simulate(system, t_end=0.5 / v + 0.03, h=H, scheme=SCHEMES[scheme]())
        over = abs(rows["b"]["q"][:, 0]) < 0.9
        assert rows["b"]["q"][over, 1].min() > 0.0
        assert (rows["b"]["v"][-1, :2] != rows["b"]["v"][0, :2]).any()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("v", [7.0, 100.0, 1000.0])
def test_a_moving_sheet_takes_along_what_it_strikes(scheme, v):
    """A sheet of infinite mass keeps its way; the ball leaves it with v (1 + e), and is before it in every row."""
    ball = nsds.rigid_bodies(0.004, shapes.inertia(BALL, 0.004), q=[0.013, 0.027, 0.0123, 1, 0, 0, 0], v=np.zeros(6))
    sheet = nsds.rigid_bodies(np.inf, np.eye(3), q=[0, 0, -0.3, 1, 0, 0, 0], v=[0, 0, v, 0, 0, 0])
    contacts = nsds.collisions({"ball": BALL, "sheet": shapes.box([1, 1, 1e-3])}, nsds.newton_impact(0.5))
    rows = nsds.simulate(nsds.system(ball=ball, sheet=sheet, contacts=contacts), t_end=0.4 / v + 0.02, h=H, scheme=SCHEMES[scheme]())
    np.testing.assert_allclose(rows["ball"]["v"][-1, 2], 1.5 * v, rtol=1e-9)
    np.testing.assert_allclose(rows["sheet"]["q"][:, 2], -0.3 + v * rows["t"], rtol=1e-12, atol=1e-12)
    assert (rows["ball"]["q"][:, 2] > rows["sheet"]["q"][:, 2]).all()


@pytest.mark.parametrize("v", [10.0, 200.0])
@pytest.mark.parametrize("m", [0.004, 0.4])
def test_two_that_fly_at_each_other(v, m):
    one, other = ([-0.2, 0, 0, 1, 0, 0, 0], [v, 0, 0, 0, 0, 0]), ([0.21, 0, 0, 1, 0, 0, 0], [-v, 0, 0, 0, 0, 0])
    a = nsds.rigid_bodies(0.004, shapes.inertia(BALL, 0.004), q=one[0], v=one[1])
    b = nsds.rigid_bodies(m, shapes.inertia(BALL, m), q=other[0], v=other[1])
    system = nsds.system(a=a, b=b, c=nsds.collisions({"a": BALL, "b": BALL}, nsds.newton_impact(0.5)))
    rows = nsds.simulate(system, t_end=0.3 / v + 0.02, h=H)
    u, w = rows["a"]["v"][-1, 0], rows["b"]["v"][-1, 0]
    np.testing.assert_allclose(w - u, v, rtol=1e-9)
    np.testing.assert_allclose(0.004 * u + m * w, (0.004 - m) * v, rtol=1e-9, atol=1e-12)
    assert (rows["a"]["q"][:, 0] < rows["b"]["q"][:, 0]).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_column_of_balls_piles_up_before_a_sheet(scheme):
    """Each stops behind the one that has stopped before it, but for less than half a ball: they keep their order."""
    n, v = 8, 100.0
    q, u = np.zeros((n, 7)), np.zeros((n, 6))
    q[:, 2], q[:, 3], u[:, 2] = 0.3 + 0.0102 * np.arange(n), 1.0, -v
    balls = nsds.rigid_bodies(np.full(n, 0.004), np.tile(shapes.inertia(BALL, 0.004), (n, 1, 1)), q=q, v=u)
    contacts = nsds.collisions({"balls": BALL}, nsds.newton_impact(0.5), world=shapes.box([1, 1, 1e-3]))
    rows = nsds.simulate(nsds.system(balls=balls, contacts=contacts), t_end=0.02, h=H, scheme=SCHEMES[scheme]())
    z = rows["balls"]["q"][:, :, 2]
    assert z.min() > 0.0
    assert (np.diff(z, axis=1) > 0.004).all()
    assert (rows["balls"]["v"][-1, :, 2] > 0.0).all()


@pytest.mark.parametrize("scheme", ["moreau_jean", "combined", "rattle"])
def test_a_bar_on_a_hinge_does_not_pass_a_sheet(scheme):
    """It turns by 0.3 rad in a step, its end by 200 times the thickness of the sheet; the joint closes again."""
    bar = shapes.box([1.0, 0.02, 0.02])
    body = nsds.rigid_bodies(1.0, shapes.inertia(bar, 1.0), q=[0.5, 0, 0, 1, 0, 0, 0], v=[0, 150.0, 0, 0, 0, 300.0])
    sheet = shapes.box([3.0, 1e-3, 1.0], position=[0.0, 0.55, 0.0])
    system = nsds.system(
        bar=body,
        hinge=nsds.interaction(joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="bar"),
        contacts=nsds.collisions({"bar": bar}, nsds.newton_impact(0.5), world=sheet),
    )
    rows = nsds.simulate(system, t_end=0.02, h=H, scheme=SCHEMES[scheme]())
    assert rows["bar"]["q"][:, 1].max() < 0.3
    assert (rows["bar"]["v"][:, 5] < 0.0).any()


def test_what_slides_and_rolls_fast_is_not_held_up():
    """On a sheet of 1 mm, 100 times its thickness in a step."""
    box, law = shapes.box([0.02, 0.02, 0.01]), nsds.newton_impact_friction(0.0, 0.3)
    body = nsds.rigid_bodies(0.1, shapes.inertia(box, 0.1), q=[-20, 0, 0.0055, 1, 0, 0, 0], v=[100.0, 0, 0, 0, 0, 0])
    system = nsds.system(gravity=[0, 0, -9.81], b=body, c=nsds.collisions({"b": box}, law, world=shapes.box([100, 1, 1e-3])))
    rows, a = nsds.simulate(system, t_end=0.3, h=H), 0.3 * 9.81
    np.testing.assert_allclose(rows["b"]["v"][-1, 0], 100 - 0.3 * a, atol=1e-6)
    np.testing.assert_allclose(rows["b"]["q"][-1, 0], -20 + 30 - 0.045 * a, atol=1e-6)


def test_what_is_slow_is_not_touched():
    """A ball that moves by less than half of a sheet in a step has the bits of one for which there is no such sheet."""
    near, far = (shot(shapes.box([1, 1, thickness], position=[0, 0, -thickness / 2]), 0.4) for thickness in (1e-3, 5.0))
    rows = [nsds.simulate(system, t_end=0.1, h=H)["ball"] for system in (near, far)]
    assert (rows[0]["q"] == rows[1]["q"]).all()


def leave_as_it_is(shapes, poses, z, contact):
    pass


def test_a_function_for_contacts_warns_of_what_may_pass():
    def system(v):
        ball = nsds.rigid_bodies(0.004, shapes.inertia(BALL, 0.004), q=[0, 0, 0.5, 1, 0, 0, 0], v=[0, 0, -v, 0, 0, 0])
        law = nsds.newton_impact(0.5)
        return nsds.system(ball=ball, c=nsds.collisions({"ball": BALL}, law, world=shapes.box([1, 1, 1e-3]), on_contact=leave_as_it_is))

    with pytest.warns(UserWarning, match=r"sphere 0 of ball\[0\] has moved at 20 m/s.* it may have passed others"):
        nsds.simulate(system(20.0), t_end=0.01, h=H)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nsds.simulate(system(0.4), t_end=0.01, h=H)


def test_a_corner_strikes_before_a_body_lies_flat():
    """Under generalised-alpha a box that falls on a corner was turned flat by its projection before the contact acted."""
    box, turn = shapes.box([0.1, 0.1, 0.1]), np.array([1.0, 0.3, 0.2, 0.1])
    body = nsds.rigid_bodies(1.0, shapes.inertia(box, 1.0), q=[0, 0, 0.2, *(turn / np.linalg.norm(turn))], v=[0, 0, -2.0, 0, 0, 0])
    system = nsds.system(b=body, c=nsds.collisions({"b": box}, nsds.newton_impact(0.5), world=shapes.plane()))
    rows = nsds.simulate(system, t_end=0.2, h=H, scheme=nsds.generalised_alpha())
    first = rows[np.flatnonzero(rows["b"]["v"][:, 2] != -2.0)[0]]
    i = int(np.argmax(first["c"]["lambda"][:, 0]))
    arm = first["c"]["point"][i] - first["b"]["q"][:3]
    omega = nsds.rotations.turned(first["b"]["q"][3:], first["b"]["v"][3:])
    after = first["b"]["v"][:3] + np.cross(omega, arm)
    assert abs(omega).max() > 1.0
    np.testing.assert_allclose(after[2], 1.0, atol=1e-6)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("floor", [shapes.plane(), shapes.box([4, 4, 1], position=[0, 0, -0.5])], ids=["plane", "box"])
def test_a_sheet_that_turns_about_its_corner_goes_on(floor, scheme):
    """Its corner dips by more than a hundredth of its thickness in a step; it was stopped by that in each, and fell ever faster."""
    sheet, turn = shapes.box([0.3, 0.2, 1e-3]), np.zeros(4)
    nsds.rotations.exp_quaternion(np.array([0.4, 0.3, 0.1]), turn)
    inertia, h = shapes.inertia(sheet, 1.0), 2.0**-8
    system = nsds.system(
        gravity=[0, 0, -9.81],
        sheet=nsds.rigid_bodies(1.0, inertia, q=[0, 0, 0.1, *turn], v=[0.5, 0, -1, 1, 0, 2]),
        contacts=nsds.collisions({"sheet": sheet}, nsds.newton_impact_friction(e_n=0.1, mu=0.3), world=floor),
    )
    rows = nsds.simulate(system, t_end=50 * h, h=h, scheme=SCHEMES[scheme]())
    q, v = rows["sheet"]["q"], rows["sheet"]["v"]
    energy = 0.5 * (v[:, :3] ** 2).sum(axis=1) + 0.5 * v[:, 3:] ** 2 @ inertia.diagonal() + 9.81 * q[:, 2]
    assert energy.max() < 1.02 * energy[0]
    assert abs(np.diff(q[:, 2]) / h - 0.5 * (v[1:, 2] + v[:-1, 2])).mean() < 0.2


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_a_heavy_body_strikes_is_not_pushed_through_the_floor(scheme):
    """A light ball lies on the ground as a heavy plate comes down, and gives way to it by as much as may overlap."""
    radius, plate = 0.02, shapes.box([0.2, 0.2, 0.02])
    q = [0, 0, 2 * radius + 0.01 + 5e-3, 1, 0, 0, 0]
    ball = nsds.rigid_bodies(0.1, shapes.inertia(shapes.sphere(radius), 0.1), q=[0, 0, radius, 1, 0, 0, 0], v=np.zeros(6))
    heavy = nsds.rigid_bodies(10.0, shapes.inertia(plate, 10.0), q=q, v=[0, 0, -4.0, 0, 0, 0])
    of_bodies = {"ball": shapes.sphere(radius), "plate": plate}
    contacts = nsds.collisions(of_bodies, nsds.newton_impact(0.0), world=shapes.plane())
    system = nsds.system(gravity=[0, 0, -9.81], ball=ball, plate=heavy, contacts=contacts)
    rows = nsds.simulate(system, t_end=0.1, h=1e-2, scheme=SCHEMES[scheme]())
    assert not rows["status"].any()
    assert rows["ball"]["q"][:, 2].min() > 0.95 * radius  # an overlap of a hundredth is a touch
    assert (rows["plate"]["q"] - rows["ball"]["q"])[:, 2].min() > 0.95 * radius + 0.01
