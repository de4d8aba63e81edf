"""Bodies in the plane: closed forms, the same motions in space, what laws and balances say, and other units and directions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds import joints, shapes
from tests import reference_planar as twin
from tests.strategies import examples, generators

G = 9.81
EXACT = nsds.solvers.solver("auto", tol=1e-13)
FRICTION, ROLLING = nsds.newton_impact_friction, nsds.newton_impact_rolling_friction
SCHEMES = {
    "moreau_jean": nsds.moreau_jean(),
    "explicit": nsds.moreau_jean(form="explicit"),
    "rattle": nsds.rattle(),
    "combined_projection": nsds.moreau_jean_combined_projection(),
    "generalised_alpha": nsds.generalised_alpha(),
    "event_driven": nsds.event_driven(),
}


def on_incline(shape, height, slope, law, v=(0, 0, 0), m=1.0):
    """A body on a line; gravity is inclined."""
    return nsds.system(
        gravity=[G * np.sin(slope), -G * np.cos(slope), 0],
        body=nsds.planar_bodies(m, shapes.inertia(shape, m), q=[0, height, 0], v=v),
        contacts=nsds.collisions({"body": shape}, law, world=shapes.half_plane()),
    )


def run(system, t_end, h, **options):
    """(q, v, rows)."""
    rows = nsds.simulate(system, t_end=t_end, h=h, progress=False, **options)
    return *nsds.in_plane(rows[system.dtype.names[-2]]), rows


def pile(rng, n, law, scale=1.0, angle=0.0, shift=(0, 0)):
    """Disks, stadia and polygons that are thrown into a corner; the scene is grown, turned and moved."""
    R, outlines = twin.turned(angle), []
    for i in range(n):
        r = 0.1 * scale * rng.uniform(0.6, 1.0)
        if i % 3 == 2:
            at = rng.uniform(0, 2 * np.pi, 6)
            outline = shapes.polygon(r * np.stack([np.cos(at), np.sin(at)], axis=1))
            outlines.append([shapes.polygon(outline["vertices"][:, :2], position=-shapes.centre_of_mass(outline)[:2])])
        else:
            outlines.append([shapes.disk(r) if i % 3 == 0 else shapes.stadium(r / 2, r)])
    masses = np.array([1000 / scale**2 * shapes.volume(each) for (each,) in outlines])
    moments = np.array([shapes.inertia(each, m) for (each,), m in zip(outlines, masses, strict=True)])
    columns = int(np.ceil(np.sqrt(n)))
    x = scale * np.stack([0.3 * (np.arange(n) % columns), 0.2 + 0.3 * (np.arange(n) // columns)], axis=1)
    q = np.column_stack([x @ R.T + shift, rng.uniform(0, 6, n) + angle])
    v = np.column_stack([scale * rng.normal(size=(n, 2)) @ R.T, rng.normal(size=n)])
    walls = [(np.array([0.0, 1.0]), 0.0), (np.array([1.0, 0.0]), -0.3 * scale), (np.array([-1.0, 0.0]), -0.3 * scale * columns)]
    world = [shapes.half_plane(R @ normal, R @ normal @ shift + offset) for normal, offset in walls]
    return nsds.system(
        gravity=[*(scale * R @ [0, -G]), 0],
        bodies=nsds.planar_bodies(masses, moments, q=q, v=v),
        contacts=nsds.collisions({"bodies": outlines}, law, world=world),
    )


def of_all_shapes():
    """A shape of each kind on each other one, in a corner, with rolling friction."""
    outlines = [
        shapes.disk(0.1),
        shapes.stadium(0.06, 0.1),
        shapes.rectangle([0.2, 0.1]),
        shapes.polygon([[-0.1, -0.05], [0.1, -0.05], [0, 0.1]]),
    ]
    q = [[0.11 + 0.2 * (i % 4), 0.1 + 0.19 * (i // 4), 0.3 * i] for i in range(8)]
    return nsds.system(
        gravity=[0, -G, 0],
        bodies=nsds.planar_bodies(1.0, 5e-3, q=q, v=[[-1.0, -2.0, 0.5 * i] for i in range(8)]),
        contacts=nsds.collisions(
            {"bodies": [[outlines[(i + i // 4) % 4]] for i in range(8)]}, ROLLING(0.0, 0.5, 0.01),
            world=[shapes.half_plane(), shapes.half_plane([1, 0]), shapes.rectangle([0.1, 0.1], position=[0.5, 0]), shapes.disk(0.05)],
        ),
    )  # fmt: skip


def linked():
    """Two disks on a hinge, of which one touches the ground."""
    return nsds.system(
        gravity=[0, -G, 0],
        bodies=nsds.planar_bodies(1.0, 5e-3, q=[[0, 0.1, 0], [0.3, 0.2, 0]], v=np.zeros((2, 3))),
        pin=nsds.interaction(joints.hinge([0.1, 0.1, 0], [0, 0, 1]), nsds.equality(), on=("bodies[0]", "bodies[1]")),
        contacts=nsds.collisions({"bodies": shapes.disk(0.1)}, FRICTION(0.0, 0.5), world=shapes.half_plane(), pairs=[("bodies", "world")]),
    )


class TestClosedForms:
    @pytest.mark.parametrize("scheme", SCHEMES.values(), ids=list(SCHEMES))
    def test_a_disk_rolls_or_slips_down_an_incline(self, scheme):
        slope, r = 0.5, 0.1
        for mu in (0.3, 0.1):  # it slips below tan(slope) / 3
            q, v, rows = run(on_incline(shapes.disk(r), r, slope, FRICTION(0.0, mu)), 0.5, 1e-3, scheme=scheme)
            a = G * np.sin(slope) * 2 / 3 if mu > np.tan(slope) / 3 else G * (np.sin(slope) - mu * np.cos(slope))
            turn = -a / r if mu > np.tan(slope) / 3 else -mu * G * np.cos(slope) * 2 / r
            np.testing.assert_allclose(v[-1], [a * 0.5, 0, turn * 0.5], rtol=1e-7, atol=1e-9)
            assert np.allclose(q[:, 1], r, atol=1e-9)
            lam = rows["contacts"]["lambda"][2:, 0]
            assert (lam[:, 1] > 0).all()  # along z × n, which is -x
            assert not lam[:, 2].any()

    @examples(8)
    @given(slope=st.floats(0.05, 0.8), part=st.sampled_from([0.5, 0.99, 1.01, 2.0]))
    def test_rolling_friction_holds_a_disk_up_to_its_cone(self, slope, part):
        r = 0.1
        resistance = part * r * np.tan(slope)
        _, v, rows = run(on_incline(shapes.disk(r), r, slope, ROLLING(0.0, 2.0, resistance)), 0.2, 1e-3)
        a = max(0.0, (1 - part) * G * np.sin(slope) / 1.5)
        np.testing.assert_allclose(v[-1], [a * 0.2, 0, -a * 0.2 / r], rtol=1e-6, atol=1e-9)
        lam = rows["contacts"]["lambda"][-1, 0]
        assert lam[4] == pytest.approx(min(part, 1.0) * r * np.tan(slope) * lam[0], rel=1e-6)

    @pytest.mark.parametrize("mu", [0.2, 0.6])
    @pytest.mark.parametrize("part", [0.999, 1.001])
    def test_a_box_slides_where_the_slope_is_beyond_its_friction(self, mu, part):
        slope = np.arctan(part * mu)
        q, v, _ = run(on_incline(shapes.rectangle([0.4, 0.1]), 0.05, slope, FRICTION(0.0, mu)), 1.0, 1e-2)
        a = max(0.0, G * (np.sin(slope) - mu * np.cos(slope)))
        np.testing.assert_allclose(v[-1], [a, 0, 0], atol=1e-9)
        assert np.allclose(q[:, 1:], [0.05, 0], atol=1e-9)

    @pytest.mark.parametrize("part", [0.99, 1.01])
    def test_a_box_tips_where_its_weight_is_beyond_its_edge(self, part):
        width, height = 0.1, 0.4
        slope = np.arctan(part * width / height)
        q, v, _ = run(on_incline(shapes.rectangle([width, height]), height / 2, slope, FRICTION(0.0, 2.0)), 0.3, 1e-4)
        if part < 1:
            assert abs(v[-1]).max() < 1e-9
            return
        arm, moment = np.array([width / 2, -height / 2]), (width**2 + height**2) / 3  # about the edge, of a unit mass
        angle = rate = 0.0
        for _ in range(30000):  # of the pendulum on its head, by midpoints
            force = G * np.array([np.sin(slope), -np.cos(slope)])
            middle = twin.turned(angle + 5e-6 * rate) @ -arm
            rate += 1e-5 * (middle[0] * force[1] - middle[1] * force[0]) / moment
            angle += 1e-5 * rate
        assert rate < -0.01
        np.testing.assert_allclose([q[-1, 2], v[-1, 2]], [angle, rate], rtol=2e-3)

    def test_a_stack_of_boxes_keeps_still(self):
        box, n = shapes.rectangle([0.2, 0.1]), 6
        q = np.column_stack([0.01 * (-1.0) ** np.arange(n), 0.05 + 0.1 * np.arange(n), np.zeros(n)])
        stack = nsds.system(
            gravity=[0, -G, 0],
            boxes=nsds.planar_bodies(1.0, shapes.inertia(box, 1.0), q=q, v=np.zeros((n, 3))),
            contacts=nsds.collisions({"boxes": box}, FRICTION(0.0, 0.5), world=shapes.half_plane()),
        )
        q, _, rows = run(stack, 2.0, 5e-3)
        assert abs(q - q[0]).max() < 1e-8  # gaps are kept to 1e-9 of the size
        assert (rows["contacts"]["n"] == 2 * n).all()
        lam, n_contacts = rows["contacts"]["lambda"][-1], rows["contacts"]["n"][-1]
        on_ground = np.flatnonzero(rows["contacts"]["normal"][-1, :n_contacts, 1] > 0)[:2]
        assert lam[on_ground, 0].sum() == pytest.approx(n * G * 5e-3, rel=1e-8)

    @pytest.mark.parametrize("scheme", ["moreau_jean", "event_driven"])
    def test_a_blow_goes_through_a_row_of_disks(self, scheme):
        n, r = 5, 0.1
        q = np.column_stack([(2 * r + 0.01) * np.arange(n), np.zeros((n, 2))])
        v = np.zeros((n, 3))
        v[0, 0] = 1.0
        row = nsds.system(
            disks=nsds.planar_bodies(1.0, 0.005, q=q, v=v), contacts=nsds.collisions({"disks": shapes.disk(r)}, nsds.newton_impact(1.0))
        )
        _, v, _ = run(row, 0.2, 1e-3, scheme=SCHEMES[scheme])
        np.testing.assert_allclose(v[-1], v[0][::-1], atol=1e-12)

    @examples(20)
    @given(rng=generators)
    def test_two_disks_that_hit_each_other_keep_energy_and_momentum(self, rng):
        r, m, turn = rng.uniform(0.1, 0.5, 2), rng.uniform(0.5, 5, 2), rng.uniform(0, 6)
        n = np.array([np.cos(turn), np.sin(turn)])
        x = np.stack([0 * n, (r.sum() + 0.01) * n + 0.3 * r.min() * np.array([-n[1], n[0]])])
        v = np.column_stack([np.stack([n, -n]), rng.normal(size=2)])
        pair = nsds.system(
            disks=nsds.planar_bodies(m, m * r**2 / 2, q=np.column_stack([x, [0, 0]]), v=v),
            contacts=nsds.collisions({"disks": [[shapes.disk(each)] for each in r]}, nsds.newton_impact(1.0)),
        )
        _, v, rows = run(pair, 0.2, 1e-2)
        assert (rows["contacts"]["lambda"][:, :, 0] > 0).any()
        weights = np.column_stack([m, m, m * r**2 / 2])
        assert (weights * v[-1] ** 2).sum() == pytest.approx((weights * v[0] ** 2).sum(), rel=1e-12)
        np.testing.assert_allclose(m @ v[-1, :, :2], m @ v[0, :, :2], atol=1e-12)
        np.testing.assert_allclose(v[-1, :, 2], v[0, :, 2], atol=1e-13)


def in_space(system, solids, law, **contacts):
    """The bodies of a system in the plane as rigid bodies in space, which joints hold in the plane."""
    part = system["bodies"]
    count = part.size
    return nsds.system(
        gravity=system["gravity"],
        bodies=nsds.rigid_bodies(part["mass"].copy(), part["inertia"].copy(), q=part["q"].copy(), v=part["v"].copy(), count=count),
        plane=nsds.interaction(joints.planar([0, 0, 0], [0, 0, 1], frame="body"), nsds.equality(), on="bodies"),
        contacts=nsds.collisions({"bodies": solids}, law, **contacts),
    )


class TestTheSameInSpace:
    """Spheres, and boxes on planes, that `joints.planar` hold in the plane move as disks and rectangles do.

    Boxes have other contacts with each other: of their ends, and of corners that pass each other.
    """

    @pytest.mark.parametrize("kind", ["disk", "rectangle"])
    def test_the_same_motion(self, kind):
        law, options = FRICTION(0.2, 0.4), {"scheme": nsds.moreau_jean(), "solver": EXACT}
        outline, solid = {
            "disk": (shapes.disk(0.1), shapes.sphere(0.1)),
            "rectangle": (shapes.rectangle([0.2, 0.12]), shapes.box([0.2, 0.12, 0.1])),
        }[kind]
        q, v = [[0, 0.12, 0.3], [0.05, 0.4, 1.0], [0.35, 0.2, -0.5]], [[1, 0, 3], [0, -1, 0], [-2, 0, -4]]
        pairs = None if kind == "disk" else [("bodies", "world")]
        flat = nsds.system(
            gravity=[0, -G, 0],
            bodies=nsds.planar_bodies(1.0, 0.006, q=q, v=v),
            contacts=nsds.collisions({"bodies": outline}, law, world=[shapes.half_plane(), shapes.half_plane([-1, 0], -0.5)], pairs=pairs),
        )
        solids = in_space(flat, solid, law, world=[shapes.plane([0, 1, 0]), shapes.plane([-1, 0, 0], -0.5)], pairs=pairs)
        one, other = (nsds.simulate(system, t_end=0.4, h=1e-3, progress=False, **options) for system in (flat, solids))
        assert (one["contacts"]["lambda"][:, :, 0] > 0).any(axis=1).sum() > 20
        np.testing.assert_allclose(one["bodies"]["q"], other["bodies"]["q"], atol=1e-9)
        np.testing.assert_allclose(one["bodies"]["v"], other["bodies"]["v"], atol=1e-7)


class TestProperties:
    @pytest.mark.parametrize(
        "law", [FRICTION(0.3, 0.5), ROLLING(0.0, 0.5, 0.02), nsds.newton_impact(0.5)], ids=["coulomb", "rolling", "none"]
    )
    @examples(6)
    @given(rng=generators, n=st.integers(2, 12))
    def test_laws_hold_and_nothing_leaves_the_plane(self, law, rng, n):
        h, system = 2e-3, pile(rng, n, law)
        _, _, rows = run(system, 0.5, h)  # in_plane refuses what is off the plane by a bit
        contacts = rows["contacts"]
        lam, d = contacts["lambda"], contacts["lambda"].shape[-1]
        slack = 1e-7 * lam.max()  # what solvers may leave
        assert (lam[..., 0] >= -slack).all()
        if d > 1:
            assert (abs(lam[..., 1]) <= 0.5 * lam[..., 0] + slack).all()
            assert not lam[..., 2].any()
        if d == 5:
            assert (abs(lam[..., 4]) <= 0.02 * lam[..., 0] + slack).all()
            assert not lam[..., 3].any()
        speed = abs(rows["bodies"]["v"][..., :3]).max() + 0.1 * abs(rows["bodies"]["v"][..., 5]).max()
        assert contacts["y"].min() > -2 * h * speed
        assert not contacts["normal"][..., 2].any()
        ledger = nsds.energy(system, rows)
        q, v = rows["bodies"]["q"][..., 1], rows["bodies"]["v"][..., 1]
        stopped = np.diff(q, axis=0) - h * (v[1:] + v[:-1]) / 2  # by what is fast and thin, before it would pass
        numerical = ledger["numerical"].sum() - G * (stopped @ system["bodies"]["mass"]).sum()
        assert abs(numerical) < 1e-9 * abs(ledger["kinetic"] + ledger["potential"]).max()

    @examples(10)
    @given(rng=generators)
    def test_bodies_without_a_world_keep_their_momentum(self, rng):
        given = pile(rng, 5, FRICTION(0.3, 0.5))["bodies"]
        outlines = [[shapes.rectangle(rng.uniform(0.1, 0.2, 2))] for _ in range(5)]
        m, q, v = given["mass"], *nsds.in_plane(given)
        v[:, :2] = -4 * (q[:, :2] - q[:, :2].mean(axis=0))  # all to one place
        moments = np.array([shapes.inertia(each, mass) for (each,), mass in zip(outlines, m, strict=True)])
        free = nsds.system(
            bodies=nsds.planar_bodies(m.copy(), moments, q=q, v=v), contacts=nsds.collisions({"bodies": outlines}, FRICTION(0.3, 0.5))
        )
        q, v, rows = run(free, 0.5, 1e-3)
        assert rows["contacts"]["lambda"].any()
        momentum = np.einsum("b,kbi->ki", m, v[..., :2])
        spin = v[..., 2] @ moments + np.einsum("b,kb->k", m, q[..., 0] * v[..., 1] - q[..., 1] * v[..., 0])
        np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-11 * m.sum())
        # impulses have the places of the start of a step: h / 2 m v_k × v_k+1 of each body and impact is left over
        assert abs(spin - spin[0]).max() < 1e-2 * (abs(spin[0]) + m.sum() * 0.1)

    @examples(4)
    @given(rng=generators, angle=st.floats(-3, 3))
    def test_a_scene_that_is_turned_moves_as_before(self, rng, angle):
        seed, shift = rng.integers(2**31), np.array([0.3, -0.2])
        one, other = (
            run(pile(np.random.default_rng(seed), 5, FRICTION(0.0, 0.5), angle=a, shift=d), 0.1, 1e-3, solver=EXACT)[:2]
            for a, d in ((0.0, (0, 0)), (angle, shift))
        )
        R = twin.turned(angle)
        np.testing.assert_allclose(one[0][..., :2] @ R.T + shift, other[0][..., :2], atol=1e-8)
        np.testing.assert_allclose(one[1][..., 2], other[1][..., 2], atol=1e-5)

    @pytest.mark.parametrize("scale", [1e-6, 1e6])
    def test_a_scene_of_another_size_moves_as_before(self, scale):
        one, other = (run(pile(np.random.default_rng(3), 6, FRICTION(0.0, 0.5), scale=s), 0.2, 1e-3)[:2] for s in (1.0, scale))
        np.testing.assert_allclose(one[0][..., :2], other[0][..., :2] / scale, atol=1e-5)
        np.testing.assert_allclose(one[0][..., 2], other[0][..., 2], atol=1e-4)

    def test_a_run_goes_on_from_any_row(self):
        system = pile(np.random.default_rng(1), 6, FRICTION(0.0, 0.5))
        _, _, rows = run(system, 0.3, 1e-3)
        again = nsds.simulate(nsds.restart(system, rows[150]), t_end=0.3, h=1e-3, progress=False)
        np.testing.assert_array_equal(again["bodies"]["q"][-1], rows["bodies"]["q"][-1])

    def test_sweeps_move_a_pile_as_methods_with_a_matrix_do(self):
        system = pile(np.random.default_rng(2), 40, FRICTION(0.0, 0.5))
        one, other = (nsds.simulate(system, t_end=0.2, h=2e-3, progress=False, solver=solver) for solver in ("auto", "bodies"))
        np.testing.assert_allclose(one["bodies"]["q"], other["bodies"]["q"], atol=1e-3)


class TestJoints:
    """Joints between bodies in the plane have the rows in it, and move as those in space."""

    def pendulum(self, bodies, n=2, **law):
        q, v = np.zeros((n, 3)), np.zeros((n, 3))
        q[:, 0] = 0.5 + np.arange(n)
        make = nsds.planar_bodies
        if bodies == "space":
            q = np.column_stack([q[:, :2], np.zeros(n), np.ones(n), np.zeros((n, 3))])
            v, make = np.zeros((n, 6)), nsds.rigid_bodies
        return nsds.system(
            gravity=[0, -G, 0],
            bars=make(1.0, 1 / 12, q=q, v=v),
            pivot=nsds.interaction(joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="bars[0]"),
            knee=nsds.interaction(joints.hinge([1, 0, 0], [0, 0, -1]), nsds.equality(), on=("bars[1]", "bars[0]")),
            spring=nsds.interaction(joints.hinge_angle([0, 0, 1]), nsds.spring_damper(2.0, 0.1), on=("bars[1]", "bars[0]")),
        )

    def test_a_double_pendulum_with_a_spring_moves_as_in_space(self):
        flat, solid = self.pendulum("plane"), self.pendulum("space")
        assert flat["pivot"]["y"].shape == (2,)
        one, other = (nsds.simulate(system, t_end=2.0, h=1e-3, progress=False) for system in (flat, solid))
        np.testing.assert_allclose(one["bars"]["q"], other["bars"]["q"], atol=1e-9)
        assert not one["bars"]["q"][..., [2, 4, 5]].any()

    def test_a_closed_chain_has_no_redundant_rows(self):
        """A parallelogram that turns through its flat position; in space its rows depend on each other."""
        angle = np.pi / 3
        ends = np.array([[0, 0], [np.cos(angle), np.sin(angle)], [2 + np.cos(angle), np.sin(angle)], [2, 0]])
        middle, turn = (ends[1:] + ends[:-1]) / 2, [angle, 0.0, angle + np.pi]
        v = np.zeros((3, 3))
        v[:, :2] = 3.0 * np.array([[-middle[0, 1], middle[0, 0]], [-ends[1, 1], ends[1, 0]], [-middle[0, 1], middle[0, 0]]])
        v[[0, 2], 2] = 3.0
        bars = nsds.planar_bodies(1.0, [1 / 12, 1 / 3, 1 / 12], q=np.column_stack([middle, turn]), v=v)
        pivots = {
            f"pivot_{i}": nsds.interaction(joints.hinge([*ends[i], 0], [0, 0, 1]), nsds.equality(), on=on)
            for i, on in enumerate(["bars[0]", ("bars[0]", "bars[1]"), ("bars[1]", "bars[2]"), "bars[2]"])
        }
        system = nsds.system(bars=bars, **pivots)
        rows = nsds.simulate(system, t_end=1.0, h=1e-3, progress=False)
        q, v = nsds.in_plane(rows["bars"])
        assert (rows["status"] == 0).all()
        np.testing.assert_allclose(v[:, 0, 2], 3.0, atol=1e-6)
        np.testing.assert_allclose(q[:, 1, 2], 0.0, atol=1e-9)
        assert q[-1, 0, 2] == pytest.approx(angle + 3.0, abs=1e-5)

    def test_a_slider_on_a_slope(self):
        slope = 0.4
        axis = [np.cos(slope), np.sin(slope), 0]
        system = nsds.system(
            gravity=[0, -G, 0],
            slider=nsds.planar_bodies(2.0, 0.1, q=[1, 2, 0.3], v=[0, 0, 0]),
            guide=nsds.interaction(joints.prismatic(axis), nsds.equality(), on="slider"),
            stop=nsds.interaction(joints.slide_along(axis, lower=-0.5), nsds.newton_impact(0.0), on="slider"),
        )
        assert system["guide"]["y"].shape == (2,)
        rows = nsds.simulate(system, t_end=0.3, h=1e-3, progress=False)
        _, v = nsds.in_plane(rows["slider"])
        np.testing.assert_allclose(v[-1, :2], -G * np.sin(slope) * 0.3 * np.array(axis[:2]), rtol=1e-9)
        rows = nsds.simulate(system, t_end=1.0, h=1e-3, progress=False)
        q, v = nsds.in_plane(rows["slider"])
        np.testing.assert_allclose(q[-1], [1 - 0.5 * np.cos(slope), 2 - 0.5 * np.sin(slope), 0.3], atol=2e-3)
        assert abs(v[-1]).max() < 1e-9

    def test_what_is_welded_moves_as_one(self):
        box = shapes.rectangle([0.2, 0.2])
        system = nsds.system(
            gravity=[0, -G, 0],
            boxes=nsds.planar_bodies(1.0, shapes.inertia(box, 1.0), q=[[0, 0.5, 0], [0.3, 0.5, 0]], v=[[0, 0, 2.0], [0, 0.6, 2.0]]),
            weld=nsds.interaction(joints.fixed_joint(), nsds.equality(), on=("boxes[0]", "boxes[1]")),
            contacts=nsds.collisions({"boxes": box}, FRICTION(0.0, 0.5), world=shapes.half_plane(), pairs=[("boxes", "world")]),
        )
        assert system["weld"]["y"].shape == (3,)
        q, _ = nsds.in_plane(nsds.simulate(system, t_end=1.0, h=1e-3, progress=False)["boxes"])
        np.testing.assert_allclose(np.linalg.norm(q[:, 1, :2] - q[:, 0, :2], axis=1), 0.3, atol=1e-8)
        np.testing.assert_allclose(q[:, 0, 2], q[:, 1, 2], atol=1e-8)


class TestForces:
    def test_users_functions_have_no_effect_out_of_the_plane(self):
        def push(t, z, out):
            out[0], out[1], out[2] = 1.0, 2.0 * t, 5.0

        def twist(t, z, out):
            out[0], out[1], out[2] = 7.0, -3.0, 0.5

        body = nsds.planar_bodies(2.0, 0.25, q=[0, 0, 0], v=[0, 0, 0], fext=push, mext=twist)
        _, v = nsds.in_plane(nsds.simulate(nsds.system(body=body), t_end=1.0, h=1e-2, progress=False)["body"])
        np.testing.assert_allclose(v[-1], [0.5, 0.5, 2.0], rtol=1e-12)

    def test_a_control_acts_in_axes_of_the_body_or_of_the_room(self):
        for frame, way in (("body", [0, 1.0]), ("inertial", [1.0, 0])):
            body = nsds.planar_bodies(2.0, 0.25, q=[0, 0, np.pi / 2], v=[0, 0, 0], u=[2.0, 0, 0], u_frame=frame)
            _, v = nsds.in_plane(nsds.simulate(nsds.system(body=body), t_end=1.0, h=1e-2, progress=False)["body"])
            np.testing.assert_allclose(v[-1], [*way, 0], atol=1e-12)

    def test_constant_forces_and_controls_of_several_bodies(self):
        bodies = nsds.planar_bodies(
            [1.0, 2.0],
            [0.5, 0.25],
            q=np.zeros((2, 3)),
            v=np.zeros((2, 3)),
            fext=[[1, 0], [0, 2]],
            mext=[0.5, 0],
            T=[[0], [1], [0]],
            u=[1.0],
            u_frame="inertial",
        )
        _, v = nsds.in_plane(nsds.simulate(nsds.system(bodies=bodies), t_end=1.0, h=1e-2, progress=False)["bodies"])
        np.testing.assert_allclose(v[-1], [[1, 1, 1], [0, 1.5, 0]], atol=1e-12)


DISK, BALL, IMPACT = shapes.disk(0.1), shapes.sphere(0.1), nsds.newton_impact(0.5)


def body(**more):
    return nsds.planar_bodies(1.0, 0.005, q=[0, 0, 0], v=[0, 0, 0], **more)


def solid():
    return nsds.rigid_bodies(1.0, 0.005, q=[0, 0, 0, 1, 0, 0, 0], v=[0] * 6)


def joined(joint, *on):
    parts = {"body": body(), "other": body(), "solid": solid()}
    return nsds.system(**parts, joint=nsds.interaction(joint, nsds.equality(), on=on if len(on) > 1 else on[0]))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nsds.planar_bodies(1.0, 0.1, q=[0, 0], v=[0, 0, 0]), r"planar_bodies: q must have shape \(3,\), got \(2,\)"),
        (lambda: nsds.planar_bodies(1.0, np.eye(3), q=[0, 0, 0], v=[0, 0, 0]), "inertia must be a number about the normal"),
        (lambda: nsds.planar_bodies(-1.0, 0.1, q=[0, 0, 0], v=[0, 0, 0]), "planar_bodies: mass must be positive"),
        (lambda: body(fext=[1, 2, 3]), r"planar_bodies: fext must have shape \(2,\)"),
        (lambda: body(T=np.eye(6), u=np.zeros(6)), r"T must have shape \(3, n_u\), got \(6, 6\)"),
        (lambda: nsds.system(gravity=[0, 0, -G], body=body()), "gravity must lie in the plane z = 0 of the planar bodies 'body'"),
        (lambda: nsds.collisions({"body": DISK}, IMPACT, world=shapes.plane()), "all be in the plane or in space, got a disk for"),
        (lambda: nsds.collisions({"body": DISK}, FRICTION(0.0, 0.5, dimension=3)), "one tangent; .* wants dimension=2, got 3"),
        (
            lambda: nsds.system(body=body(), contacts=nsds.collisions({"body": BALL}, IMPACT, world=shapes.plane())),
            "a sphere is a shape of nsds.rigid_bodies, got a planar body",
        ),
        (
            lambda: nsds.system(solid=solid(), contacts=nsds.collisions({"solid": DISK}, IMPACT, world=shapes.half_plane())),
            "a disk is a shape of nsds.planar_bodies, got a body in space",
        ),
        (lambda: joined(joints.hinge([0, 0, 0], [0, 0, 1]), "body", "solid"), "'solid' must be planar bodies"),
        (lambda: joined(joints.hinge([0, 0, 0], [1, 0, 0]), "body", "other"), "axis between planar bodies must be along z"),
        (lambda: joined(joints.hinge([0, 0, 0.1], [0, 0, 1]), "body", "other"), "point between planar bodies must be in the plane z = 0"),
        (lambda: joined(joints.prismatic([1, 0, 1]), "body"), "axis between planar bodies must be in the plane"),
        (lambda: joined(joints.cylindrical([0, 0, 0], [0, 0, 1]), "body"), "cylindrical takes bodies out of the plane"),
        (lambda: joined(joints.coupler(("angle", [0, 1, 0]), ("translation", [1, 0, 0]), 1.0), "body"), "the axis of first between planar"),
        (lambda: nsds.in_plane(np.zeros(3)), "expected a part of planar bodies"),
        (lambda: nsds.in_plane(nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 0.5, 1, 0, 0, 0], v=[0] * 6)["record"]), "got one that is 0.5 off"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_plane_is_named(make, said):
    with pytest.raises((TypeError, ValueError), match=said):
        make()


def test_records_that_have_left_the_plane_are_named():
    system = nsds.system(body=body(), contacts=nsds.collisions({"body": DISK}, nsds.newton_impact(0.5), world=shapes.half_plane()))
    for part, field, entry in (("body", "q", 2), ("body", "v", 3), ("contacts", "shape_pose", (0, 2))):
        wrong = system.copy()
        wrong[part][field][entry] = 0.1
        with pytest.raises(ValueError, match=f"{part}.{field} must be"):
            nsds.simulate(wrong, t_end=0.1, h=1e-2, progress=False)


def test_a_polygon_slides_down_by_events_as_coulomb_says():
    """a = g (sin slope - mu cos slope) on a line, from rest, on both of its lower corners."""
    slope, mu = 0.4, 0.2
    system = on_incline(shapes.rectangle([0.4, 0.1]), 0.05, slope, FRICTION(0.0, mu))
    q, v, _ = run(system, 0.5, 0.1, scheme=nsds.event_driven())
    a = G * (np.sin(slope) - mu * np.cos(slope))
    np.testing.assert_allclose(q[-1], [a * 0.5**2 / 2, 0.05, 0.0], atol=1e-9)
    np.testing.assert_allclose(v[-1], [a * 0.5, 0.0, 0.0], atol=1e-9)
