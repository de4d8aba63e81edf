"""What holds for every motion of rigid bodies: balances, cones, symmetries, and the same bits by other ways."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds.model import joints
from tests.model.test_joints import configuration, unit
from tests.reference_newton_euler import matrix, moved, product
from tests.schemes.rigid.test_newton_euler import ORIGIN, spd, two_balls
from tests.strategies import examples, generators

WEIGHT = np.array([0.0, 0.0, -9.81])


def packed(rng, n, radius=0.5, spin=1.0):
    """q (n, 7) and v (n, 6) of balls around the origin that touch or overlap a little, and fly at one another."""
    x = [np.zeros(3)]
    while len(x) < n:
        candidate = x[rng.integers(len(x))] + (2 * radius - 1e-3) * unit(rng)
        if min(np.linalg.norm(candidate - other) for other in x) > 2 * radius - 2e-3:
            x.append(candidate)
    p = rng.normal(size=(n, 4))
    q = np.hstack([np.array(x), p / np.linalg.norm(p, axis=1)[:, None]])
    return q, np.hstack([0.3 * rng.normal(size=(n, 3)) - 3 * np.array(x), spin * rng.normal(size=(n, 3))])


def balls(q, v, mass, law, *, weight=None, radius=0.5, world=(), **options):
    ball = nsds.shapes.sphere(radius)
    fext = {} if weight is None else {"fext": np.asarray(mass)[:, None] * weight}
    inertia = np.asarray(mass) * 0.4 * radius**2
    return nsds.system(
        balls=nsds.rigid_bodies(mass, inertia[:, None, None] * np.eye(3), q, v, count=len(q), **fext),
        contacts=nsds.collisions({"balls": ball}, law, world=world, **options),
    )


def impulses_balance(q, p, scale):
    """Impulses between bodies add up to nothing, and so do their moments about the origin."""
    moments = [np.cross(x[:3], each[:3]) + matrix(x[3:]) @ each[3:] for x, each in zip(q, p, strict=True)]
    assert abs(np.sum(p[:, :3], axis=0)).max() < 1e-13 * scale
    assert abs(np.sum(moments, axis=0)).max() < 1e-12 * scale


laws = st.sampled_from(["newton_impact", "newton_impact_friction", "newton_impact_rolling_friction"])


def law_of(kind, rng):
    e, mu, mu_r = rng.uniform(0, 1, size=3)
    return {
        "newton_impact": nsds.newton_impact(e),
        "newton_impact_friction": nsds.newton_impact_friction(e, mu),
        "newton_impact_rolling_friction": nsds.newton_impact_rolling_friction(e, mu, 0.1 * mu_r),
    }[kind]


@examples(20)
@given(rng=generators, n=st.integers(2, 8), kind=laws)
def test_collisions_keep_momentum_and_stay_in_their_cones(rng, n, kind):
    q, v = packed(rng, n)
    mass, law = rng.uniform(0.5, 2, size=n), law_of(kind, rng)
    system = balls(q, v, mass, law)
    how = {"scheme": nsds.moreau_jean(), "fields": ["balls", "balls.p", "contacts", "contacts.lambda"]}  # impulses act where a step begins
    rows = nsds.simulate(system, t_end=0.05, h=0.01, **how)
    momentum = np.einsum("i,tij->tj", mass, rows["balls"]["v"][:, :, :3])
    assert abs(momentum - momentum[0]).max() < 1e-12
    assert rows["contacts"]["lambda"].any()
    for before, after in itertools.pairwise(rows):
        impulses_balance(before["balls"]["q"], after["balls"]["p"], 10)
    lam = rows["contacts"]["lambda"].reshape(rows.size, -1, np.shape(system["contacts"]["lambda"])[-1] if kind != "newton_impact" else 1)
    assert (lam[..., 0] >= -1e-12).all()
    if kind != "newton_impact":
        assert (np.hypot(lam[..., 1], lam[..., 2]) <= law["mu"] * lam[..., 0] + 1e-9).all()
    if kind == "newton_impact_rolling_friction":
        assert (np.hypot(lam[..., 3], lam[..., 4]) <= law["mu_r"] * lam[..., 0] + 1e-9).all()
    assert abs(np.linalg.norm(rows["balls"]["q"][..., 3:], axis=-1) - 1).max() < 1e-14


@examples(20)
@given(rng=generators, n=st.integers(2, 8), e=st.sampled_from([0.0, 0.3, 1.0]))
def test_contacts_without_friction_never_gain_energy(rng, n, e):
    """``(v+ + e v-) / (1 + e)`` is the point nearest to v- of the cone of admissible velocities, with one e for all contacts."""
    q, v = packed(rng, n)
    mass = rng.uniform(0.5, 2, size=n)
    rows = nsds.simulate(balls(q, v, mass, nsds.newton_impact(e)), t_end=0.2, h=0.01)
    energy = np.einsum("i,tij->t", mass, rows["balls"]["v"][:, :, :3] ** 2) / 2
    assert (np.diff(energy) < 1e-9 * energy[0]).all()
    if e == 1.0:
        np.testing.assert_allclose(energy, energy[0], rtol=1e-8)
    np.testing.assert_allclose(rows["balls"]["v"][:, :, 3:], np.broadcast_to(v[:, 3:], (rows.size, n, 3)), rtol=1e-12)


JOINTS = [joints.ball_joint([0.2, 0.1, 0.4]), joints.hinge([0.2, 0.1, 0.4], [1, 2, 3]), joints.prismatic([1, 2, 3]), joints.fixed_joint()]


@examples(20)
@given(rng=generators, relation=st.sampled_from(JOINTS), q_star=st.sampled_from([0.0, 1.0]))
def test_joints_keep_momentum(rng, relation, q_star):
    """The wrench of a joint balances where its H is taken: at q_k, or halfway, up to the tolerance of Newton's iteration."""
    parts = {
        name: nsds.rigid_bodies(rng.uniform(0.5, 2), spd(rng), q=configuration(rng), v=[*rng.normal(size=3), *(0.3 * rng.normal(size=3))])
        for name in "ab"
    }
    system = nsds.system(**parts, joint=nsds.interaction(relation, nsds.equality(), on=("a", "b")))
    new = nsds.step(system, 0.01, scheme=nsds.moreau_jean(q_star=q_star))
    p, q = [new[name]["p"] for name in "ab"], [system[name]["q"] for name in "ab"]
    if q_star > 0:
        q = [moved(system[name]["q"], (system[name]["v"] + new[name]["v"]) / 2, 0.005, False) for name in "ab"]
    moments = [np.cross(x[:3], each[:3]) + matrix(x[3:]) @ each[3:] for x, each in zip(q, p, strict=True)]
    assert abs(p[0][:3] + p[1][:3]).max() < 1e-12
    assert abs(moments[0] + moments[1]).max() < (1e-12 if q_star == 0 else 1e-8)


@examples(10)
@given(rng=generators, kind=laws)
def test_the_same_scene_turned_moves_the_same_way_turned(rng, kind):
    n, angle, axis = 5, rng.uniform(0, 3), unit(rng)
    p = np.array([math.cos(angle / 2), *(math.sin(angle / 2) * axis)])
    R, shift = matrix(p), rng.normal(size=3)
    q, v = packed(rng, n)
    mass, law = rng.uniform(0.5, 2, size=n), law_of(kind, rng)
    turned = np.array([[*(R @ x[:3] + shift), *product(p, x[3:])] for x in q])
    turned_v = np.hstack([v[:, :3] @ R.T, v[:, 3:]])
    one = nsds.simulate(balls(q, v, mass, law, weight=WEIGHT), t_end=0.02, h=0.01)["balls"]
    other = nsds.simulate(balls(turned, turned_v, mass, law, weight=R @ WEIGHT), t_end=0.02, h=0.01)["balls"]
    np.testing.assert_allclose(other["v"][..., :3], one["v"][..., :3] @ R.T, rtol=0, atol=1e-6)
    np.testing.assert_allclose(other["v"][..., 3:], one["v"][..., 3:], rtol=0, atol=1e-6)
    np.testing.assert_allclose(other["q"][..., :3], one["q"][..., :3] @ R.T + shift, rtol=0, atol=1e-7)


@examples(10)
@given(rng=generators, kind=laws)
def test_the_order_of_bodies_does_not_matter(rng, kind):
    n, order = 6, rng.permutation(6)
    q, v = packed(rng, n)
    mass, law = rng.uniform(0.5, 2, size=n), law_of(kind, rng)
    one = nsds.simulate(balls(q, v, mass, law), t_end=0.02, h=0.01)["balls"]
    other = nsds.simulate(balls(q[order], v[order], mass[order], law), t_end=0.02, h=0.01)["balls"]
    np.testing.assert_allclose(other["v"], one["v"][:, order], rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", ["auto", "newton_ac", "nsgs", "bodies"])
def test_methods_agree_with_contacts_stated_by_a_function(method):
    rng = np.random.default_rng(5)
    law, x = nsds.newton_impact_friction(0.4, 0.3), [[0, 0, 0], [0.999, 0, 0]]
    q = [[*place, *unit(rng, 4)] for place in x]
    v = [[1, 0.2, 0, *rng.normal(size=3)], [-1, 0, 0.3, *rng.normal(size=3)]]
    ball = nsds.shapes.sphere(0.5)
    parts = {name: nsds.rigid_bodies(1.0 + i, 0.1, q=q[i], v=v[i]) for i, name in enumerate("ab")}
    detected = nsds.system(**parts, contacts=nsds.collisions({"a": ball, "b": ball}, law))
    stated = nsds.system(**parts, contact=nsds.interaction(nsds.contact_point(two_balls, [0.5, 0.5]), law, on=("a", "b")))
    exact = nsds.simulate(stated, t_end=0.05, h=0.01, solver="newton_ac")
    solver = nsds.solvers.solver(method, tol=1e-10)
    for system in (detected, stated):
        rows = nsds.simulate(system, t_end=0.05, h=0.01, solver=solver)
        for name in "ab":
            np.testing.assert_allclose(rows[name]["v"], exact[name]["v"], rtol=0, atol=1e-7)
    assert abs(exact["a"]["v"][-1, 0] - 1) > 0.1  # they hit


def linked(*names, **options):
    """Two bodies that hang on one another by hinges of these names."""
    parts = {
        name: nsds.rigid_bodies(1.0, [0.5, 0.8, 1.0], q=[x, 0, -0.1 * x, 1, 0, 0, 0], v=[0, 0, x, 0, 0, 0], fext=WEIGHT)
        for name, x in (("a", 0.5), ("b", 1.5))
    }
    parts["world"] = nsds.interaction(joints.hinge([0, 0, 0], [0, 1, 0]), nsds.equality(), on="a")
    for name in names:
        parts[name] = nsds.interaction(joints.hinge([1, 0, 0], [0, 1, 0]), nsds.equality(), on=("b", "a"))
    return nsds.simulate(nsds.system(**parts), t_end=0.3, h=0.01, **options)


def test_redundant_joints_move_as_one():
    one, two = linked("one"), linked("one", "two")
    for name in "ab":
        np.testing.assert_allclose(
            two[name]["q"], one[name]["q"], rtol=0, atol=1e-5
        )  # loops have loads at the ends of a step, trees in the middle
    np.testing.assert_allclose(two["one"]["lambda"] + two["two"]["lambda"], one["one"]["lambda"], rtol=0, atol=1e-4)


def test_contradictory_equations_are_reported():
    body = nsds.rigid_bodies(1.0, 1.0, q=ORIGIN, v=np.zeros(6))
    drives = {
        name: nsds.interaction(nsds.prescribed_velocity([0], [speed]), nsds.equality(), on="body")
        for name, speed in (("a", 1.0), ("b", 2.0))
    }
    rows = nsds.simulate(nsds.system(body=body, **drives), t_end=0.02, h=0.01, on_failure="continue")
    assert (rows["status"][1:] != 0).all()
    with pytest.raises(nsds.SimulationError):
        nsds.simulate(nsds.system(body=body, **drives), t_end=0.02, h=0.01)


def heap(capacity=None, n=8):
    rng = np.random.default_rng(2)
    q, v = packed(rng, n)
    q[:, 2] -= q[:, 2].min() - 0.5
    return balls(q, v, np.ones(n), nsds.newton_impact_friction(0.3, 0.4), weight=WEIGHT, world=nsds.shapes.plane(), capacity=capacity)


def test_members_of_an_ensemble_are_single_runs():
    systems = np.repeat(heap(), 3)
    systems["balls"]["v"][:, 0, 0] += [0.0, 0.5, 1.0]
    systems["contacts"]["mu"] = [0.0, 0.2, 0.4]
    rows = nsds.simulate(systems, t_end=0.1, h=0.01)
    for k in range(3):
        assert (nsds.simulate(systems[k], t_end=0.1, h=0.01) == rows[k]).all()


def test_restart_with_collisions():
    system = heap()
    whole = nsds.simulate(system, t_end=0.2, h=0.01)
    half = nsds.simulate(nsds.restart(system, whole[9]), t_end=0.2, h=0.01)
    for part in ("balls", "contacts"):
        for name in whole[part].dtype.names:
            assert np.array_equal(half[part][name], whole[part][name][9:]), name


@pytest.mark.parametrize("scheme", [nsds.moreau_jean(), nsds.moreau_jean_direct_projection()], ids=["plain", "projected"])
def test_room_for_contacts_grows_before_the_first_row(scheme, tmp_path):
    wide, narrow = (nsds.simulate(heap(capacity), t_end=0.2, h=0.01, scheme=scheme) for capacity in (200, 1))
    for name in "qvp":
        assert np.array_equal(wide["balls"][name], narrow["balls"][name])
    assert np.array_equal(wide["contacts"]["n"], narrow["contacts"]["n"])
    room, most = narrow["contacts"]["lambda"].shape[1], wide["contacts"]["n"].max()
    assert 1 < wide["contacts"]["n"][0] <= most <= room < 200
    for name in ("y", "lambda"):
        assert np.array_equal(wide["contacts"][name][:, :room], narrow["contacts"][name])
    nsds.stream(heap(1), tmp_path / "run.h5", t_end=0.2, h=0.01, scheme=scheme)
    assert nsds.read_trajectory(tmp_path / "run.h5").tobytes() == narrow.tobytes()


def test_room_for_contacts_grows_with_the_member_that_wants_it():
    """The first member has no contact at the start; that of the second makes room for both."""
    systems = np.repeat(heap(1), 2)
    systems["balls"]["q"][0] *= np.where(np.arange(7) < 3, 3.0, 1.0)
    rows = nsds.simulate(systems, t_end=0.1, h=0.01)
    for k in range(2):
        alone = nsds.simulate(systems[k], t_end=0.1, h=0.01)
        assert np.array_equal(alone["balls"], rows[k]["balls"])
        assert np.array_equal(alone["contacts"]["n"], rows[k]["contacts"]["n"])
    assert rows[0, 0]["contacts"]["n"] < rows[1, 0]["contacts"]["n"]


def test_restart_after_the_room_has_grown():
    system = heap(1)
    whole = nsds.simulate(system, t_end=0.1, h=0.01)
    half = nsds.simulate(nsds.restart(system, whole[5]), t_end=0.1, h=0.01)
    for name in "qv":
        assert np.array_equal(half["balls"][name], whole["balls"][name][5:])


@pytest.mark.parametrize(("tol", "taken"), [(None, 1e-4), (1e-4, 1e-4), (1e-2, 1e-2)])
def test_sweeps_that_get_no_closer_are_taken_as_said(tol, taken):
    """In few sweeps each: rows tell how close they came, and a step is solved if that is close enough."""
    x = [[1.01 * i + 0.2 * (k % 2), 1.01 * j, 0.5 + 1.01 * k] for k in range(4) for j in range(4) for i in range(4)]
    q = np.hstack([x, np.tile([1.0, 0, 0, 0], (64, 1))])
    ground = nsds.shapes.plane()
    system = balls(q, np.zeros((64, 6)), np.ones(64), nsds.newton_impact_friction(0.0, 0.5), weight=WEIGHT, world=ground)
    solver = nsds.solvers.solver("bodies", tol=tol, max_iter=12)
    rows = nsds.simulate(system, t_end=0.5, h=5e-3, solver=solver, on_failure="continue")
    np.testing.assert_array_equal(rows["status"] == 0, rows["residual"] <= taken)
    np.testing.assert_array_equal(rows["status"] == 13, (rows["residual"] > taken) & (rows["residual"] <= 0.1))
    assert (rows["residual"] > 1e-4).any()
