"""Trees of joints: the same steps as by equations, whatever the joints, what acts on them, and the scales; and what is no tree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds import joints, shapes
from nsds.schemes.memory import Memory
from nsds.schemes.rigid import articulated, trees
from nsds.schemes.rigid import tree_contacts as laws
from nsds.schemes.rigid.tables import FORCE, MASS
from nsds.schemes.run.preparation import prepare_run
from tests.strategies import examples, generators

BY_EQUATIONS = nsds.rattle(newton_max_iter=49)  # another record than the default's, so that no kept run is taken
KINDS = ("hinge", "ball_joint", "fixed_joint", "prismatic", "cylindrical", "planar")


def joint_of(kind, point, axis):
    given = {"ball_joint": (point,), "fixed_joint": (), "prismatic": (axis,)}
    return getattr(joints, kind)(*given.get(kind, (point, axis)))


def unit(x):
    return x / np.linalg.norm(x)


def random_tree(rng, n, scale=1.0, planar=False, speed=3.0, mu=None):
    """A system of n bodies, each on an earlier one, the world or a fixed body, or free; springs between any, a motor in a hinge.

    With mu the bodies are balls between two walls, and hinges have stops and brakes.
    """
    parts, places = {"frame": nsds.rigid_bodies(np.inf, 1.0, q=[0, 0, 0, 1, 0, 0, 0], v=np.zeros(6))}, [np.zeros(3)]
    names, forces = ["frame"], {}
    if planar:
        parts = {"frame": nsds.planar_bodies(np.inf, 1.0, q=[0, 0, 0], v=[0, 0, 0])}
    for i in range(n):
        name, place, mass = f"b{i}", scale * rng.normal(size=3) * [1, 1, not planar], 10 ** rng.uniform(-1, 1)
        inertia, v = mass * scale**2 * rng.uniform(0.05, 0.1, 3), speed * rng.normal(size=6) * np.repeat([scale, 1.0], 3)
        if planar:
            parts[name] = nsds.planar_bodies(mass, inertia[0], q=[*place[:2], rng.uniform(0, 6)], v=v[[0, 1, 5]])
        else:
            parts[name] = nsds.rigid_bodies(mass, inertia, q=[*place, *unit(rng.normal(size=4))], v=v)
        kinds, axis = ("hinge", "ball_joint", "fixed_joint", "prismatic") if planar else KINDS, unit(rng.normal(size=3))
        kind, other = "hinge" if i == 0 else rng.choice(kinds), names[rng.integers(len(names))]
        if planar:
            axis = np.array([0, 0, 1.0]) if kind == "hinge" else unit(axis * [1, 1, 0])
        on = name if rng.random() < 0.2 else (name, other) if rng.random() < 0.5 else (other, name)
        point = (place + scale * rng.normal(size=3)) * [1, 1, not planar]
        if i == 0 or rng.random() < 0.85:
            parts[f"j{i}"] = nsds.interaction(joint_of(kind, point, axis), nsds.equality(), on=on)
            if kind == "hinge" and rng.random() < 0.5:
                stiff = mass * scale**2 * 10.0 ** rng.uniform(0, 5)
                forces[f"m{i}"] = nsds.interaction(joints.hinge_angle(axis), nsds.spring_damper(stiff, 0.05 * stiff), on=on)
            if kind == "hinge" and mu is not None:
                brake, stop = nsds.dry_friction(0.1 * mass * scale**2), joints.hinge_angle(axis, lower=-1e-3, upper=2e-2)
                forces[f"d{i}"] = nsds.interaction(joints.hinge_angle(axis), brake, on=on)
                forces[f"e{i}"] = nsds.interaction(stop, nsds.newton_impact(0.3), on=on)
        if rng.random() < 0.4:
            spring = joints.distance(place, places[rng.integers(len(places))] + scale * np.array([0.1, 0, 0]))
            forces[f"s{i}"] = nsds.interaction(spring, nsds.spring_damper(50.0 * mass, 0.5 * mass), on=(name, names[-1]))
        names.append(name)
        places.append(place)
    if mu is not None:
        r, heights = 0.05 * scale, [place[1] for place in places[1:]]
        wall, ball = (shapes.half_plane, shapes.disk(r)) if planar else (shapes.plane, shapes.sphere(r))
        world = [wall([0, sign, 0][: 3 - planar], min(sign * y for y in heights) - 1.02 * r) for sign in (1.0, -1.0)]
        law = nsds.newton_impact_friction(0.3, mu, dimension=3 - planar)
        parts["walls"] = nsds.collisions(dict.fromkeys(names[1:], ball), law, world=world, pairs=[])
    return nsds.system(gravity=[0, -9.81 * scale, 0], **parts, **forces)


def links_of(system):
    return prepare_run("test", system, 1e-3, nsds.rattle(), nsds.solvers.solver("auto"), False)[0].prepared.tables.tree.links


def both(system, h, n_steps):
    """Rows by the tree, and by equations."""
    assert links_of(system).size > 0
    rows = nsds.simulate(system, t_end=n_steps * h, h=h, on_failure="continue")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "_order", lambda lists, joints: [])
        others = nsds.simulate(system, t_end=n_steps * h, h=h, scheme=BY_EQUATIONS, on_failure="continue")
    return rows, others


def assert_alike(rows, others, tol):
    """To tol of what is largest among all bodies, or all impulses: rods without mass, and springs in them, carry rounding."""
    assert (rows["status"] == others["status"]).all()
    for field in ("q", "v", "p", "lambda"):
        names = [name for name in rows.dtype.names if rows.dtype[name].names and field in rows.dtype[name].names]
        largest = max(abs(others[name][field]).max() for name in names)
        for name in names:
            np.testing.assert_allclose(rows[name][field], others[name][field], rtol=0, atol=tol * largest, err_msg=f"{name}.{field}")


@examples(40)
@given(generators, st.integers(1, 6), st.booleans())
def test_the_steps_are_those_by_equations(rng, n, planar):
    """Joints of all kinds either way round, free bodies, a body that nothing moves, springs, motors stiffer than their bodies."""
    rows, others = both(random_tree(rng, n, planar=planar), 2e-3, 8)
    assert_alike(rows, others, 1e-8)
    assert (rows["status"] == 0).all()
    assert rows["residual"].max() <= 1e-11


@examples(40)
@given(generators, st.integers(1, 6), st.booleans(), st.sampled_from([0.0, 0.3, 1.0]))
def test_the_steps_are_those_by_equations_where_bodies_touch(rng, n, planar, mu):
    """Balls that strike two walls and slide on them, with hinges that strike their stops and rub."""
    rows, others = both(random_tree(rng, n, planar=planar, mu=mu), 2e-3, 15)
    assert_alike(rows, others, 1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_other_scales(scale):
    for seed in range(4):
        rows, others = both(random_tree(np.random.default_rng(seed), 4, scale), 2e-3, 8)
        assert_alike(rows, others, 1e-7)


def test_far_turns_take_the_equations_where_they_must():
    """A quarter of a radian a step; and three, more than a tree takes."""
    for omega in (25.0, 300.0):
        spin = np.array([0.3, 1.0, 0.0]) * omega
        body = nsds.rigid_bodies(1.0, [0.02, 0.03, 0.005], q=[0.3, 0.4, 0, 1, 0, 0, 0], v=[*np.cross(spin, [0.3, 0.4, 0.0]), *spin])
        system = nsds.system(bob=body, pivot=nsds.interaction(joints.ball_joint([0, 0, 0]), nsds.equality(), on="bob"))
        rows, others = both(system, 1e-2, 1)
        assert_alike(rows, others, 1e-9)
        assert (rows.tobytes() == others.tobytes()) == (omega == 300.0)


def pendulum(x=1.0, **options):
    body = nsds.rigid_bodies(1.0, 0.1, q=[x, 0, 0, 1, 0, 0, 0], v=np.zeros(6), fext=[0, -9.81, 0])
    return nsds.system(bob=body, pivot=nsds.interaction(joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="bob", **options))


def test_what_hangs_at_rest_stays():
    body = nsds.rigid_bodies(2.0, [0.1, 0.2, 0.3], q=[0, -1, 0, 1, 0, 0, 0], v=np.zeros(6), fext=[0, -19.62, 0])
    system = nsds.system(bob=body, pivot=nsds.interaction(joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="bob"))
    rows = nsds.simulate(system, t_end=1.0, h=1e-2)
    assert abs(rows["bob"]["v"]).max() < 1e-14
    np.testing.assert_allclose(rows["pivot"]["lambda"][1:, 0], rows["pivot"]["lambda"][1, 0], rtol=1e-12)
    assert np.linalg.norm(rows["pivot"]["lambda"][-1]) == pytest.approx(2.0 * 9.81 * 1e-2)


def test_what_is_no_tree_is_none():
    """A loop, two joints on one pair of bodies, a joint that holds no point; another method than the default."""
    bodies = {f"b{i}": nsds.rigid_bodies(1.0, 0.1, q=[i, 0, 0, 1, 0, 0, 0], v=np.zeros(6)) for i in range(2)}

    def pin(x, on, relation=joints.ball_joint):
        return nsds.interaction(relation([x, 0, 0]), nsds.equality(), on=on)

    loop = {"j0": pin(-0.5, "b0"), "j1": pin(0.5, ("b1", "b0")), "j2": pin(1.5, "b1")}
    twice = {"j0": pin(0.5, ("b1", "b0")), "j1": pin(0.7, ("b1", "b0"))}
    rod = {"rod": nsds.interaction(joints.distance([1, 0, 0], [0, 0.5, 0]), nsds.equality(), on=("b1", "b0"))}
    for parts, number in ((loop, 0), (twice, 0), (rod, 0), ({"j0": pin(-0.5, "b0")}, 2), ({"j1": pin(0.5, ("b1", "b0"))} | rod, 2)):
        assert links_of(nsds.system(**bodies, **parts)).size == number
    chosen = nsds.solvers.solver("nsgs")
    assert prepare_run("test", pendulum(), 1e-3, nsds.rattle(), chosen, False)[0].prepared.tables.tree.links.size == 0


def test_joints_that_are_off_or_open():
    """A joint without effect lets the body fall; one that is open, by little or by a millimetre, closes in the first step."""
    system = pendulum(enabled=True)
    system["pivot"]["enabled"] = False
    rows = nsds.simulate(system, t_end=0.1, h=1e-2)
    np.testing.assert_allclose(rows["bob"]["v"][:, 1], -9.81 * rows["t"], atol=1e-12)
    for gap in (1e-9, 1e-3):
        system = pendulum()
        system["bob"]["q"] = [1.0 + gap, 0, gap, *unit(np.array([1.0, 2.0 * gap, 0, 0]))]
        rows, others = both(system, 1e-2, 5)
        assert abs(rows["pivot"]["y"][0]).max() > 0.9 * gap
        assert abs(rows["pivot"]["y"][1:]).max() < 1e-13
        assert_alike(rows, others, 1e-10)


def test_members_are_as_they_are_alone():
    """Of an ensemble whose members have joints elsewhere."""
    members = np.stack([pendulum(), pendulum(1.5), pendulum(0.5)])
    rows = nsds.simulate(members, t_end=0.1, h=1e-2)
    for k, x in enumerate((1.0, 1.5, 0.5)):
        assert rows[k].tobytes() == nsds.simulate(pendulum(x), t_end=0.1, h=1e-2).tobytes()


def dense_columns(tree, work, is_start):
    """Velocities of each body by all unknowns: its joint's own columns, its parent's carried over; then dexp^-1 but at the start."""
    n, motions, columns = int(tree.plan[0]["n"]), [], []
    for link in tree.links:
        own, carry = (work[link[f"{name}{'S' if is_start else 'D'}"] :] for name in ("", "carry_"))
        motion = np.zeros((6, n))
        if link["above"] >= 0:
            given = motions[link["above"]]
            motion[:3] = given[:3] + np.cross(given[3:], carry[:3], axisa=0).T
            motion[3:] = given[3:] * (link["turns"] < 3)
        k, first = int(link["k"]), int(link["first"])
        motion[:, first : first + k] += own[: 6 * k].reshape(k, 6).T
        motions.append(motion)
        T = np.eye(3) if is_start else work[link["T"] : link["T"] + 9].reshape(3, 3)
        columns.append(np.vstack([motion[:3], T @ motion[3:]]))
    return columns


@examples(20)
@given(generators, st.integers(2, 6), st.booleans())
def test_articulated_inertias_solve_what_the_dense_matrix_does(rng, n, planar):
    """``A = S^T M D`` and the stiffness of forces, those between neighbours and those apart, of a random tree after some steps."""
    system = random_tree(rng, n, planar=planar)
    advance = nsds.stepper(system, h=2e-3, on_failure="continue")
    run, *_ = prepare_run("test", advance(system, n=3), 2e-3, nsds.rattle(), nsds.solvers.solver("auto"), False)
    tree, form, work = run.prepared.tables.tree, run.prepared.tables.motion, run.prepared.work[0]
    memory = Memory(run.mem[0], run.mem[0].view(np.int64), work, run.prepared.iwork[0])
    p, links = form.plan[0], tree.links
    # 1. numbers in the places of the forces, inertias and joints
    for link in links:
        for name, size in (("S", 6 * link["k"]), ("D", 6 * link["k"]), ("carry_S", 3), ("carry_D", 3)):
            work[link[name] : link[name] + size] = rng.normal(size=size)
        work[link["D"] : link["D"] + 6 * link["k"]] = work[link["S"] : link["S"] + 6 * link["k"]] + 0.1 * rng.normal(size=6 * link["k"])
        work[link["carry_D"] : link["carry_D"] + 3] = work[link["carry_S"] : link["carry_S"] + 3] + 0.1 * rng.normal(size=3)
        work[tree.plan[0]["rotary"] + 9 * link["body"] :][:9] = (np.eye(3) + 0.1 * rng.normal(size=(3, 3))).reshape(-1)
        work[p["w"] + 6 * link["body"] :][:6] = 0.1 * rng.normal(size=6)
    rows = []
    for k in np.flatnonzero(form.interactions["law"] == FORCE):
        it = form.interactions[k]
        m = int(it["m"])
        root, H = np.tril(rng.normal(size=(m, m))), rng.normal(size=(m, 12))
        work[it["root"] : it["root"] + m * m], work[it["H"] : it["H"] + 12 * m] = root.reshape(-1), H.reshape(-1)
        memory.iwork[p["begin"] + k] = 0
        rows += [(it, row) for row in root.T @ H]
    # 2. dense matrix
    assert articulated.factorise(True, 1.0, form, tree, memory)
    row_of = memory.iwork[tree.plan[0]["row_of"] :][: form.bodies.size]
    S, D = dense_columns(tree, work, True), dense_columns(tree, work, False)
    A, z = np.zeros((tree.plan[0]["n"],) * 2), rng.normal(size=(links.size, 6))
    for i, link in enumerate(links):
        M = np.zeros((6, 6))
        M[:3, :3] = memory.mem[form.bodies[link["body"]]["q"] + MASS] * np.eye(3)
        M[3:, 3:] = work[tree.plan[0]["rotary"] + 9 * link["body"] :][:9].reshape(3, 3)
        A += S[i].T @ M @ D[i]
        work[link["z"] : link["z"] + 6] = z[i]
    for it, row in rows:
        ends = [(row_of[it[side]], half) for side, half in (("a", row[:6]), ("b", row[6:])) if it[side] >= 0 and row_of[it[side]] >= 0]
        A += np.outer(sum(half @ S[at] for at, half in ends), sum(half @ D[at] for at, half in ends)) if ends else 0.0
    g = sum(S[i].T @ z[i] for i in range(links.size))
    # 3. solution, velocities, and the norm of the correction
    energy = articulated.solve_all(False, tree, memory)
    theta = work[tree.plan[0]["theta"] :][: g.size]
    scale = np.linalg.cond(A) * abs(theta).max()
    np.testing.assert_allclose(theta, np.linalg.solve(A, g), rtol=0, atol=1e-13 * scale)
    for i, link in enumerate(links):
        np.testing.assert_allclose(work[link["motion"] :][:6], D[i] @ theta, rtol=0, atol=1e-11 * scale)
    assert np.isfinite(energy)


def test_a_joint_without_inertia_has_no_factor():
    E = np.outer([1.0, 2.0], [1.0, 2.0]).reshape(-1)
    assert not articulated._factorise_joint(2, E)
    assert not articulated._factorise_joint(1, np.zeros(1))


@examples(20)
@given(generators, st.integers(1, 6), st.sampled_from([3, 5]))
def test_impulses_are_levelled_within_their_cones(rng, count, d):
    """Towards the law: normals stay positive, tangents in the disk, rolling as it was, what is given stays; alike contacts carry alike."""
    H = rng.normal(size=(count * d, 6))
    W = (H @ H.T).reshape(count, d, count, d).transpose(0, 2, 1, 3).reshape(-1).copy()
    q, mu, disk = rng.normal(size=count * d), rng.uniform(0, 1, 2 * count), np.full(count, 2)
    diagonal, r, change = np.zeros(count * d), np.zeros(count * d), np.empty(count * d)
    r[::d] = rng.uniform(0, 1, count)
    diagonal[0], given = rng.integers(2), r.copy()
    laws._level(d, disk, mu, diagonal, W, q, r, change)
    R = r.reshape(count, d)
    assert (R[:, 0] >= 0).all()
    assert (np.linalg.norm(R[:, 1:3], axis=1) <= mu[::2] * R[:, 0] * (1 + 1e-12)).all()
    assert (R[:, 3:] == given.reshape(count, d)[:, 3:]).all()
    assert diagonal[0] == 0 or r[0] == given[0]
    alike, r = np.ones(count * count * d * d), np.zeros(count * d)
    laws._level(d, disk, 0 * mu, 0 * diagonal, alike, -np.ones(count * d), r, change)
    np.testing.assert_allclose(r[::d], r[0], rtol=1e-12)
    assert r[::d].sum() == pytest.approx(1.0, rel=1e-4)
    np.testing.assert_allclose(r.reshape(count, d)[:, 1:], 0.0)


def test_a_drive_that_is_switched_off_pushes_no_more():
    """One with unequal bounds, whose impulse is counted from their middle."""
    body = nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 0, 1, 0, 0, 0], v=np.zeros(6))
    system = nsds.system(
        wheel=body,
        hinge=nsds.interaction(joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="wheel"),
        drive=nsds.interaction(joints.hinge_angle([0, 0, 1]), nsds.relay(1.0, 3.0), on="wheel", enabled=True),
    )
    assert links_of(system).size > 0
    advance = nsds.stepper(system, h=1e-2)
    system = advance(system, n=5)
    spin = system["wheel"]["v"][5].item()
    assert spin == pytest.approx(5 * 1e-2 * 1.0 / 0.1)
    system["drive"]["enabled"] = False
    assert advance(system, n=5)["wheel"]["v"][5] == pytest.approx(spin)


def _ratchet(length):
    """A pawl on a hinge that falls on the teeth of a rack, which slides on its guide; all lengths in proportion, under one gravity."""
    profile = np.array([[0, 0.0], [0.02, 0.012], [0.02, -0.02], [0, -0.02]])
    teeth = []
    for k in range(6):
        corners = [[x + 0.02 * k, side, z] for x, z in profile for side in (-0.03, 0.03)]
        teeth.append(nsds.shapes.convex(length * np.array(corners)))
    pawl, tilt = nsds.shapes.box(length * np.array([0.1, 0.02, 0.005])), 0.35
    mass, speed = 1000.0 * nsds.shapes.volume(pawl), 0.3 * np.sqrt(length)
    lower = np.array([0.06, 0, 0.04]) * length
    pivot = lower - 0.05 * length * np.array([np.cos(tilt), 0, -np.sin(tilt)])
    parts = {
        "rack": nsds.rigid_bodies(0.36 * length**3, np.full(3, 0.01 * length**5), q=[0, 0, 0, 1, 0, 0, 0], v=[speed, 0, 0, 0, 0, 0]),
        "pawl": nsds.rigid_bodies(
            mass, nsds.shapes.inertia(pawl, mass), q=[*lower, np.cos(tilt / 2), 0, np.sin(tilt / 2), 0], v=np.zeros(6)
        ),
        "guide": nsds.interaction(nsds.joints.prismatic([1, 0, 0]), nsds.equality(), on="rack"),
        "hinge": nsds.interaction(nsds.joints.hinge(pivot, [0, 1, 0]), nsds.equality(), on="pawl"),
        "hits": nsds.collisions({"rack": teeth, "pawl": pawl}, nsds.newton_impact_friction(0.0, mu=0.2)),
    }  # fmt: skip
    h = 1e-3 * np.sqrt(length)
    return nsds.simulate(nsds.system(gravity=[0, 0, -9.81], **parts), t_end=250 * h, h=h)


def test_joints_of_a_mechanism_whose_contacts_are_open_do_no_work():
    """Rows of the last problem with a contact, 1e12 times too large in these units, counted as those of joints: steps were INEXACT."""
    rows, wanted = (_ratchet(length) for length in (2.0**-20, 1.0))
    assert (wanted["hits"]["n"] > 0).any()
    assert (wanted["status"] == 0).all()
    assert (rows["status"] == 0).all()
    np.testing.assert_allclose(rows["pawl"]["q"][:, 3:], wanted["pawl"]["q"][:, 3:], atol=1e-9)


def test_a_stepper_begins_anywhere():
    system, h = random_tree(np.random.default_rng(5), 4), 2e-3
    later = nsds.restart(system, nsds.simulate(system, t_end=20 * h, h=h, progress=False)[-1])
    again = nsds.stepper(system, h)
    for record in (system, later, system):
        assert again(record, 2).tobytes() == nsds.stepper(system, h)(record, 2).tobytes()


@pytest.mark.parametrize("e", [0.0, 0.5])
def test_stops_that_nothing_reaches_change_nothing(e):
    parts = {"arm": nsds.rigid_bodies(1.0, [0.1, 0.2, 0.3], q=[0.5, 0, 0, 1, 0, 0, 0], v=np.zeros(6))}
    parts["hand"] = nsds.rigid_bodies(0.5, [0.01, 0.03, 0.02], q=[1.2, 0.1, 0, 1, 0, 0, 0], v=np.zeros(6))
    parts["servo"] = nsds.interaction(joints.hinge_angle([0, 1.0, 0]), nsds.spring_damper(5.0, 0.1), on=("hand", "arm"))
    sides, stops = {"arm": (0.0, "arm"), "hand": (1.0, ("hand", "arm"))}, {}
    for name, (x, on) in sides.items():
        parts[f"{name}_pin"] = nsds.interaction(joints.hinge([x, 0, 0], [0, 1.0, 0]), nsds.equality(), on=on)
        stop = joints.hinge_angle([0, 1.0, 0], lower=-9.0, upper=9.0)
        stops[f"{name}_stop"] = nsds.interaction(stop, nsds.newton_impact(e), on=on)
    free, stopped = (
        nsds.simulate(nsds.system(gravity=[0, 0, -9.81], **parts, **more), t_end=0.2, h=2e-3, progress=False) for more in ({}, stops)
    )
    for name in sides:
        assert np.array_equal(free[name], stopped[name])
    assert not stopped["hand_stop"]["lambda"].any()
