"""Static equilibria against closed forms: positions, forces, and what is said where there is none."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import brentq

import nsds
from nsds import joints, shapes
from nsds.status import ACCELERATING, CONVERGED, MAX_ITER
from tests.strategies import examples

G = 9.81
_TOL = 1e-8  # of positions and forces, relative to their size, for the default tolerance of 1e-9
UNITS = (1e-6, 1.0, 1e6)


def weight(g=G):
    return {"gravity": [0, 0, -g]}


def turn(axis, angle):
    return np.r_[math.cos(angle / 2), math.sin(angle / 2) * np.asarray(axis, dtype=float)]


def contact_forces(found, name="contacts"):
    """(forces, points, normals) of detected contacts."""
    n = found[name]["n"]
    return found[name]["lambda"][:n], found[name]["point"][:n], found[name]["normal"][:n]


def stays(system, found, t_end=0.05, h=1e-3, tol=1e-6):
    """Whether a run from the equilibrium stays there."""
    rows = nsds.simulate(found, t_end=float(found["t"]) + t_end, h=h)
    speeds = [abs(rows[name]["v"]).max() for name, kind, *_ in nsds.model.records.model_of(system) if "v" in (rows[name].dtype.names or ())]
    return max(speeds) <= tol


# Springs and wells.


@pytest.mark.parametrize("length", UNITS)
@pytest.mark.parametrize("mass", UNITS)
def test_mass_on_a_linear_spring(length, mass):
    system = nsds.system(mass=nsds.lagrangian_linear(M=[[mass]], K=[[mass * G / length]], fext=[-mass * G], q=[0.0], v=[3.0]))
    found = nsds.equilibrium(system)
    assert found["mass"]["q"][0] == pytest.approx(-length, rel=_TOL)
    assert found["mass"]["v"][0] == 0.0
    assert found["status"] == CONVERGED
    assert found["residual"] <= 1e-9


def hardening(t, q, v, z, out):
    out[0] = z[0] * q[0] + z[1] * q[0] ** 3


def test_mass_on_a_hardening_spring():
    system = nsds.system(mass=nsds.lagrangian([2.0], fint=hardening, fext=[-2 * G], q=[0.0], v=[0.0], z=[10.0, 100.0]))
    q = nsds.equilibrium(system)["mass"]["q"][0]
    assert q == pytest.approx(brentq(lambda q: 10 * q + 100 * q**3 + 2 * G, -2, 0, xtol=1e-15), rel=_TOL)


def strut(t, q, v, z, out):
    """A shallow truss of two bars of stiffness z[0] and half span 1, loaded in the middle, at the height q."""
    length = math.sqrt(1.0 + q[0] ** 2)
    out[0] = z[0] * (length - math.sqrt(1.0 + 0.04)) * q[0] / length


@pytest.mark.parametrize(("start", "sign"), [(0.3, 1), (0.01, 1), (-0.01, -1), (-0.4, -1)])
def test_of_two_equilibria_the_near_one_is_found(start, sign):
    system = nsds.system(truss=nsds.lagrangian([1.0], fint=strut, q=[start], v=[0.0], z=[100.0]))
    assert nsds.equilibrium(system)["truss"]["q"][0] == pytest.approx(sign * 0.2, rel=_TOL)


def test_a_truss_snaps_through_where_its_load_is_too_large():
    holds, snaps = (nsds.system(truss=nsds.lagrangian([1.0], fint=strut, fext=[-load], q=[0.2], v=[0.0], z=[100.0])) for load in (0.1, 1.0))

    def balance(q, load):
        out = np.zeros(1)
        strut(0.0, [q], [0.0], [100.0], out)
        return out[0] + load

    assert nsds.equilibrium(holds)["truss"]["q"][0] == pytest.approx(brentq(balance, 0.15, 0.2, args=(0.1,), xtol=1e-15), rel=_TOL)
    assert nsds.equilibrium(snaps)["truss"]["q"][0] == pytest.approx(brentq(balance, -0.5, -0.2, args=(1.0,), xtol=1e-15), rel=_TOL)


def test_what_rests_stays_even_where_it_is_unstable():
    found = nsds.equilibrium(nsds.system(truss=nsds.lagrangian([1.0], fint=strut, q=[0.0], v=[0.0], z=[100.0])))
    assert found["truss"]["q"][0] == 0.0
    assert found["n_iter"] == 1


def test_a_force_pushes_a_mass_away_from_an_unstable_place_until_a_stop_holds_it():
    part = nsds.lagrangian_linear(M=[[1.0]], K=[[-4.0]], q=[0.1], v=[0.0])
    stop = nsds.interaction(nsds.lagrangian_linear_relation(H=[[-1.0]], b=[1.0]), nsds.newton_impact(0.5), on="mass")
    found = nsds.equilibrium(nsds.system(mass=part, stop=stop))
    assert found["mass"]["q"][0] == pytest.approx(1.0, abs=1e-9)
    assert found["stop"]["lambda"] == pytest.approx(4.0, rel=_TOL)
    with pytest.raises(ValueError, match="'mass' keeps accelerating"):
        nsds.equilibrium(nsds.system(mass=part))


# Contacts and friction.


def slope(mu, angle=0.3, side=1.0, mass=1.0):
    """A box on a slope."""
    shape, normal = shapes.box([side] * 3), np.array([-math.sin(angle), 0, math.cos(angle)])
    return nsds.system(
        **weight(),
        block=nsds.rigid_bodies(mass, shapes.inertia(shape, mass), q=[*(side / 2 * normal), *turn([0, -1, 0], angle)], v=[0] * 6),
        contacts=nsds.collisions({"block": shape}, nsds.newton_impact_friction(e_n=0.0, mu=mu), world=shapes.plane(normal=normal)),
    )


@pytest.mark.parametrize(("side", "mass"), [(1.0, 1.0), (1e-6, 1e-12), (1e6, 1e6), (1.0, 1e-6)])
def test_block_sticks_on_a_slope(side, mass):
    system = slope(0.5, 0.3, side, mass)
    found = nsds.equilibrium(system)
    forces, _, _ = contact_forces(found)
    assert forces[:, 0].sum() == pytest.approx(mass * G * math.cos(0.3), rel=_TOL)
    assert np.linalg.norm(found["block"]["p"][:3] - [0, 0, mass * G]) <= _TOL * mass * G
    assert (np.linalg.norm(forces[:, 1:], axis=1) <= 0.5 * forces[:, 0] * (1 + 1e-6)).all()
    assert found["n_iter"] == 1
    assert abs(found["block"]["q"] - system["block"]["q"])[:3].max() <= 1e-9 * side


def test_block_on_a_slope_that_is_too_steep_is_named():
    with pytest.raises(ValueError, match=r"equilibrium: 'block' keeps accelerating, in the end by 0\.979"):  # g (sin - mu cos)
        nsds.equilibrium(slope(0.2))
    with pytest.warns(RuntimeWarning, match="'block' keeps accelerating"):
        found = nsds.equilibrium(slope(0.2), on_failure="warn")
    assert found["status"] == ACCELERATING
    assert found["residual"] > 1e-3
    assert not found["block"]["v"].any()
    assert "accelerating" in nsds.advice(ACCELERATING)


def test_free_body_is_named():
    balls = nsds.rigid_bodies(1.0, 0.1, q=[[0, 0, 0, 1, 0, 0, 0], [2, 0, 0, 1, 0, 0, 0]], v=np.zeros((2, 6)))
    held = nsds.interaction(joints.ball_joint([0, 0, 0]), nsds.equality(), on="balls[0]")
    with pytest.raises(ValueError, match=r"'balls\[1\]' keeps accelerating, in the end by 9\.81"):
        nsds.equilibrium(nsds.system(**weight(), balls=balls, held=held))


def test_ladder_at_a_rough_wall():
    mass, angle, length, radius, mu = 10.0, 1.0, 2.0, 0.02, 0.6
    shape = shapes.capsule(radius, length)
    at = np.array([radius, 0, radius]) + length / 2 * np.array([math.cos(angle), 0, math.sin(angle)])
    system = nsds.system(
        **weight(),
        ladder=nsds.rigid_bodies(mass, shapes.inertia(shape, mass), q=[*at, *turn([0, 1, 0], angle - math.pi / 2)], v=[0] * 6),
        contacts=nsds.collisions(
            {"ladder": shape}, nsds.newton_impact_friction(e_n=0.0, mu=mu), world=[shapes.plane(), shapes.plane(normal=[1, 0, 0])]
        ),
    )
    found = nsds.equilibrium(system)
    forces, points, normals = contact_forces(found)
    floor, wall = np.argmax(normals[:, 2]), np.argmax(normals[:, 0])
    assert len(forces) == 2
    assert found["n_iter"] == 1
    assert abs(forces[floor, 0] + np.linalg.norm(forces[wall, 1:]) - mass * G) <= _TOL * mass * G
    assert abs(np.linalg.norm(forces[floor, 1:]) - forces[wall, 0]) <= _TOL * mass * G
    assert (np.linalg.norm(forces[:, 1:], axis=1) <= mu * forces[:, 0] * (1 + 1e-8)).all()
    of_floor, of_wall = points[floor] - at, points[wall] - at  # moments about the centre, along y
    on_floor = np.array([np.linalg.norm(forces[floor, 1:]) * -1.0, 0.0, forces[floor, 0]])
    on_wall = np.array([forces[wall, 0], 0.0, np.linalg.norm(forces[wall, 1:])])
    moment = np.cross(of_floor, on_floor)[1] + np.cross(of_wall, on_wall)[1]
    assert abs(moment) <= _TOL * mass * G * length


def test_stack_of_boxes_carries_its_weight_layer_by_layer():
    mass, found = 1.0, nsds.equilibrium(nsds.examples.box_stack(n=3))
    forces, points, _ = contact_forces(found)
    assert found["boxes"]["q"][:, 2] == pytest.approx([0.05, 0.15, 0.25], abs=1e-9)
    for layer in range(3):
        here = abs(points[:, 2] - 0.1 * layer) < 0.01
        assert forces[here, 0].sum() == pytest.approx((3 - layer) * mass * G, rel=_TOL)
    assert found["boxes"]["p"][:, 2] == pytest.approx(mass * G, rel=_TOL)
    assert stays(nsds.examples.box_stack(n=3), found)


@pytest.mark.parametrize("feet", [[-1.0, 1.0], [-0.5, 1.0], [-0.25, 2.0]])
@pytest.mark.parametrize("length", UNITS)
def test_beam_falls_onto_two_supports(feet, length):
    mass, left, right = 2.0, *(length * np.array(feet))
    H = [[0, 1, left], [0, 1, right]]
    system = nsds.system(
        beam=nsds.lagrangian_linear(M=np.diag([mass, mass, mass * length**2]), fext=[0, -mass * G, 0], q=[0, 0.3 * length, 0.1], v=[0] * 3),
        feet=nsds.interaction(nsds.lagrangian_linear_relation(H=H), nsds.newton_impact(0.7), on="beam"),
    )  # fmt: skip
    found = nsds.equilibrium(system)
    assert abs(found["beam"]["q"][1:] / [length, 1]).max() <= 1e-10
    assert found["feet"]["lambda"] == pytest.approx(mass * G * np.array([right, -left]) / (right - left), rel=_TOL)


@pytest.mark.parametrize("legs", [[-1, 0, 1], [-1, -0.5, 0.5, 1], [-1, -1, 1, 1]])
def test_redundant_legs_share_the_weight(legs):
    system = nsds.system(
        beam=nsds.lagrangian_linear(M=np.diag([2.0, 2.0, 1.0]), fext=[0, -2 * G, 0], q=[0, 0.3, 0.1], v=[0, 0, 0]),
        feet=nsds.interaction(nsds.lagrangian_linear_relation(H=[[0, 1, x] for x in legs]), nsds.newton_impact(0.0), on="beam"),
    )
    force = nsds.equilibrium(system)["feet"]["lambda"]
    assert (force >= -1e-12).all()
    assert force.sum() == pytest.approx(2 * G, rel=_TOL)
    assert abs(force @ legs) <= _TOL * G


@pytest.mark.parametrize("unit", UNITS)
def test_ball_rolls_into_a_corner(unit):
    shape, s = shapes.sphere(0.1 * unit), math.sqrt(0.5)
    system = nsds.system(
        **weight(),
        ball=nsds.rigid_bodies(1.0, shapes.inertia(shape, 1.0), q=[0.5 * unit, 0, 0.9 * unit, 1, 0, 0, 0], v=[0] * 6),
        contacts=nsds.collisions(
            {"ball": shape}, nsds.newton_impact(0.5), world=[shapes.plane(normal=[s, 0, s]), shapes.plane(normal=[-s, 0, s])]
        ),
    )
    found = nsds.equilibrium(system)
    assert found["ball"]["q"][:3] == pytest.approx([0, 0, 0.1 * unit / s], abs=1e-9 * unit)
    assert contact_forces(found)[0][:, 0] == pytest.approx([G * s, G * s], rel=_TOL)


def test_spring_pulls_a_mass_as_far_as_friction_lets_it():
    system = nsds.system(
        mass=nsds.lagrangian_linear(M=[[2.0]], K=[[50.0]], q=[0.3], v=[0.0]),
        drag=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.dry_friction(3.0), on="mass"),
    )
    found = nsds.equilibrium(system)
    assert found["mass"]["q"][0] == pytest.approx(3.0 / 50.0, rel=_TOL)
    assert abs(found["drag"]["lambda"]) == pytest.approx(3.0, rel=_TOL)
    system["mass"]["q"] = 0.05
    found = nsds.equilibrium(system)
    assert found["mass"]["q"][0] == 0.05
    assert found["drag"]["lambda"] == pytest.approx(2.5, rel=_TOL)
    assert found["n_iter"] == 1


def on_belt(t, q, z, out):
    out[0], out[1] = q[1], q[0] - z[0] * t


def belt_rate(t, q, z, out):
    out[1] = -z[0]


def test_block_on_a_moving_belt_rests_where_the_spring_balances_slip():
    system = nsds.system(
        block=nsds.lagrangian([1.0, 1.0], fint=pull_of_spring, fext=[0, -G], q=[0.0, 0.0], v=[0, 0], z=[40.0]),
        belt=nsds.interaction(
            nsds.rheonomous(on_belt, m=2, h_t=belt_rate, z=[0.5]), nsds.newton_impact_friction(e_n=0.0, mu=0.3), on="block"
        ),
    )
    found = nsds.equilibrium(system)
    assert found["block"]["q"][0] == pytest.approx(0.3 * G / 40.0, rel=_TOL)
    assert found["belt"]["lambda"] == pytest.approx([G, 0.3 * G], rel=_TOL)


def pull_of_spring(t, q, v, z, out):
    out[0] = z[0] * q[0]


def test_what_is_squeezed_without_weight_bears_the_force_that_squeezes_it():
    system = nsds.system(
        jaws=nsds.lagrangian_linear(M=np.ones(3), fext=[20.0, 0.0, -20.0], q=[0.0, 1.0, 2.0], v=np.zeros(3)),
        gaps=nsds.interaction(nsds.lagrangian_linear_relation(H=[[-1, 1, 0], [0, -1, 1]], b=[-1, -1]), nsds.newton_impact(0.0), on="jaws"),
    )
    found = nsds.equilibrium(system)
    assert found["gaps"]["lambda"] == pytest.approx([20.0, 20.0], rel=_TOL)
    assert found["n_iter"] == 1


@examples(25)
@given(st.integers(2, 6), st.integers(1, 5), st.integers(0, 2**31))
@example(6, 5, 8576515)  # long steps closed a contact that is open in balance, and did not come back
def test_linear_equilibrium_is_the_solution_of_a_complementarity_problem(n, m, seed):
    rng = np.random.default_rng(seed)
    root, H = rng.normal(size=(n, n)), rng.normal(size=(m, n))
    K, M, load = root @ root.T + 0.5 * np.eye(n), np.diag(rng.uniform(0.5, 2.0, n)), rng.normal(size=n)
    b = rng.uniform(-0.5, 1.0, m) if m <= n else rng.uniform(0.1, 1.0, m)
    system = nsds.system(
        body=nsds.lagrangian_linear(M=M, K=K, fext=load, q=np.zeros(n), v=rng.normal(size=n)),
        walls=nsds.interaction(nsds.lagrangian_linear_relation(H=H, b=b), nsds.newton_impact(0.0), on="body"),
    )
    found = nsds.equilibrium(system)
    y, force = H @ found["body"]["q"] + b, np.atleast_1d(found["walls"]["lambda"])
    size = abs(force).max() + abs(load).max()
    assert (y >= -1e-8).all()
    assert (force >= -1e-8 * size).all()
    assert abs(y * force).max() <= 1e-7 * size
    assert abs(load + H.T @ force - K @ found["body"]["q"]).max() <= 1e-7 * size


@pytest.mark.parametrize("seed", range(6))
def test_bodies_of_any_shape_thrown_into_a_bin_come_to_rest(seed):
    """Each is held by contacts within their cones that do not overlap, and a run from there goes nowhere."""
    rng, unit, parts, all_shapes = np.random.default_rng(seed), 10.0 ** (seed % 3 - 1), weight(), {}
    mu, masses = 0.3 + 0.1 * seed, {}
    for i in range(1 + seed % 3):
        lengths = unit * rng.uniform(0.5, 1.5, 3)
        shape = [shapes.box(lengths), shapes.capsule(*(0.4 * lengths[:2])), shapes.cylinder(*(0.5 * lengths[:2]))][rng.integers(3)]
        p, mass = rng.normal(size=4), masses.setdefault(f"body_{i}", 10.0 ** rng.uniform(-1, 1))
        q = [*(unit * rng.uniform(-0.3, 0.3, 2)), unit * (1.5 + 2 * i), *(p / np.linalg.norm(p))]
        parts[f"body_{i}"] = nsds.rigid_bodies(mass, shapes.inertia(shape, mass), q=q, v=rng.normal(size=6))
        all_shapes[f"body_{i}"] = shape
    walls = [shapes.plane(normal=n, point=-3 * unit * np.array(n)) for n in ([1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0])]
    law = nsds.newton_impact_friction(e_n=0.3, mu=mu)
    system = nsds.system(**parts, contacts=nsds.collisions(all_shapes, law, world=[shapes.plane(), *walls]))
    found = nsds.equilibrium(system)
    forces, n = contact_forces(found)[0], found["contacts"]["n"]
    assert (np.linalg.norm(forces[:, 1:], axis=1) <= mu * forces[:, 0] + 1e-8 * forces.max()).all()
    assert found["contacts"]["y"][:n].min() >= -1e-9 * unit
    for name, mass in masses.items():
        assert np.linalg.norm(found[name]["p"][:3] - [0, 0, mass * G]) <= 1e-7 * sum(masses.values()) * G
    h = 1e-3 * math.sqrt(unit)
    rows = nsds.simulate(found, t_end=20 * h, h=h)
    drift = [abs(rows[name]["q"][-1] - found[name]["q"]) / np.r_[[unit] * 3, np.ones(4)] for name in masses]
    assert np.max(drift) <= 1e-3 * 0.5 * G * (20 * h) ** 2 / unit


# Joints.


def chain(n, link=1.0, stiffness=0.0, mass=1.0):
    """Rods on hinges, drawn along x; the first hangs on the world."""
    inertia = mass * link**2 * np.array([0.01, 1 / 12, 1 / 12])
    parts = weight() | {
        "rods": nsds.rigid_bodies(mass, inertia, q=[[link * (i + 0.5), 0, 0, 1, 0, 0, 0] for i in range(n)], v=np.zeros((n, 6)))
    }
    for i in range(n):
        on = "rods[0]" if i == 0 else (f"rods[{i}]", f"rods[{i - 1}]")
        parts[f"hinge_{i}"] = nsds.interaction(joints.hinge([link * i, 0, 0], [0, 1, 0]), nsds.equality(), on=on)
        if stiffness:
            parts[f"spring_{i}"] = nsds.interaction(joints.hinge_angle([0, 1, 0]), nsds.spring_damper(stiffness), on=on)
    return nsds.system(**parts)


@pytest.mark.parametrize("link", UNITS)
def test_pendulum_with_a_torsion_spring(link):
    stiffness = 5.0 * link
    found = nsds.equilibrium(chain(1, link, stiffness=stiffness))
    angle = brentq(lambda a: stiffness * a - G * link / 2 * math.cos(a), 0, 2, xtol=1e-15)
    assert found["rods"]["q"][0, [0, 2]] / link == pytest.approx([math.cos(angle) / 2, -math.sin(angle) / 2], abs=_TOL)
    assert abs(found["spring_0"]["lambda"]) == pytest.approx(stiffness * angle, rel=_TOL)


@pytest.mark.parametrize("n", [1, 4, 12])
def test_chain_hangs_down(n):
    found = nsds.equilibrium(chain(n))
    assert found["rods"]["q"][:, 2] == pytest.approx(-0.5 - np.arange(n), abs=1e-7)
    for i in range(n):
        assert np.linalg.norm(found[f"hinge_{i}"]["lambda"][:3]) == pytest.approx((n - i) * G, rel=1e-7)


def test_chain_between_two_points_is_the_discrete_catenary():
    n, span = 9, 6.0  # links of length 1 along an arc that is near
    angles = brentq(lambda s: sum(math.cos(s * (1 - 2 * (i + 0.5) / n)) for i in range(n)) - span, 0.1, 3.0)
    angles = angles * (1 - 2 * (np.arange(n) + 0.5) / n)
    ends = np.vstack([[0, 0], np.cumsum(np.stack([np.cos(angles), -np.sin(angles)], axis=1), axis=0)])
    middles = (ends[1:] + ends[:-1]) / 2
    q = [[*(m[0], 0, m[1]), *turn([0, 1, 0], a)] for m, a in zip(middles, angles, strict=True)]
    parts = weight() | {"rods": nsds.rigid_bodies(1.0, [0.01, 1 / 12, 1 / 12], q=q, v=np.zeros((n, 6)))}
    for i in range(n + 1):
        on = "rods[0]" if i == 0 else f"rods[{n - 1}]" if i == n else (f"rods[{i}]", f"rods[{i - 1}]")
        parts[f"pin_{i}"] = nsds.interaction(joints.ball_joint([ends[i, 0], 0, ends[i, 1]]), nsds.equality(), on=on)
    found = nsds.equilibrium(nsds.system(**parts))
    p = found["rods"]["q"]
    slopes = np.array([nsds.rotations.turned(each[3:], np.array([1.0, 0, 0])) for each in p])
    # of link i the pull is (H, V_i) with V falling by the weight of a link from one to the next: equal steps of the tangents
    steps = np.diff(slopes[:, 2] / slopes[:, 0])
    assert steps == pytest.approx(np.full(n - 1, steps.mean()), rel=1e-6)
    assert steps.mean() > 0.1
    horizontal = G / steps.mean()
    total = np.sqrt(horizontal**2 + (n * G / 2) ** 2)
    assert np.linalg.norm(found["pin_0"]["lambda"]) == pytest.approx(total, rel=1e-6)
    assert np.linalg.norm(found[f"pin_{n}"]["lambda"]) == pytest.approx(total, rel=1e-6)


def test_four_bar_with_a_spring_is_where_its_potential_energy_is_least():
    a, b, foot, stiffness = np.array([0.0, 0.2]), np.array([0.5, 0.4]), np.array([0.4, 0.0]), 3.0
    axis, lengths = [0, 1, 0], [np.linalg.norm(a), np.linalg.norm(b - a), np.linalg.norm(b - foot)]
    parts = weight()
    for name, start, end in (("crank", np.zeros(2), a), ("coupler", a, b), ("rocker", b, foot)):
        along, middle = end - start, (start + end) / 2
        q = [middle[0], 0, middle[1], *turn(axis, math.atan2(along[0], along[1]))]
        parts[name] = nsds.rigid_bodies(0.5, 0.01, q=q, v=[0] * 6)
    for name, at, on in (
        ("pivot", np.zeros(2), "crank"), ("elbow", a, ("crank", "coupler")), ("knee", b, ("coupler", "rocker")), ("foot", foot, "rocker"),
    ):  # fmt: skip
        parts[name] = nsds.interaction(joints.hinge([at[0], 0, at[1]], axis), nsds.equality(), on=on)
    parts["spring"] = nsds.interaction(joints.hinge_angle(axis), nsds.spring_damper(stiffness), on="crank")
    found = nsds.equilibrium(nsds.system(**parts))

    def potential(angle):
        tip = lengths[0] * np.array([math.sin(angle), math.cos(angle)])
        reach = foot - tip
        d = np.linalg.norm(reach)
        along = (lengths[1] ** 2 - lengths[2] ** 2 + d**2) / (2 * d)
        knee = tip + along * reach / d + math.sqrt(lengths[1] ** 2 - along**2) * np.array([-reach[1], reach[0]]) / d
        return 0.5 * G * (tip[1] / 2 + (tip[1] + knee[1]) / 2 + (knee[1] + foot[1]) / 2) + stiffness * angle**2 / 2

    angle = float(found["spring"]["y"])
    eps = 1e-5
    slope = (potential(angle + eps) - potential(angle - eps)) / (2 * eps)
    assert abs(slope) <= 1e-8
    assert 0.05 < abs(angle) < 1.0
    assert potential(angle + 1e-2) > potential(angle) < potential(angle - 1e-2)


def test_redundant_hinges_of_a_door_carry_alike():
    door = nsds.rigid_bodies(12.0, [1.0, 2.0, 1.0], q=[0.5, 0, 1.5, 1, 0, 0, 0], v=[0] * 6)
    pins = {f"hinge_{z}": nsds.interaction(joints.hinge([0, 0, z], [0, 0, 1]), nsds.equality(), on="door") for z in (1, 2)}
    found = nsds.equilibrium(nsds.system(**weight(), door=door, **pins))
    assert found["n_iter"] == 1
    assert [abs(found[name]["lambda"][0]) for name in pins] == pytest.approx([6.0 * G] * 2, rel=1e-7)


# What is returned and refused.


def test_an_equilibrium_that_is_given_again_is_returned_at_once():
    for system in (nsds.examples.box_stack(n=3), chain(3, stiffness=5.0), nsds.examples.bouncing_ball(), slope(0.5)):
        found = nsds.equilibrium(system)
        again = nsds.equilibrium(found)
        assert again["n_iter"] == 1
        assert again.dtype == found.dtype
        for name, kind, *_ in nsds.model.records.model_of(system):
            if kind in nsds.model.system_kinds.SYSTEMS:
                assert again[name]["q"] == pytest.approx(found[name]["q"], abs=1e-9)


def test_time_controls_and_record_are_kept():
    def force(t, z, out):
        out[0] = z[0] * math.cos(t)

    system = nsds.system(mass=nsds.lagrangian_linear(M=[[2.0]], K=[[50.0]], fext=force, q=[0.0], v=[1.0], z=[3.0]))
    system["t"], system["t0"] = 1.0, 0.5
    before = system.tobytes()
    found = nsds.equilibrium(system)
    assert system.tobytes() == before
    assert (found["t"], found["t0"], found["step"]) == (1.0, 0.5, 0)
    assert found["mass"]["q"][0] == pytest.approx(3 * math.cos(1.0) / 50, rel=_TOL)
    cart = nsds.system(cart=nsds.lagrangian([1.0], fint=hardening, q=[0.0], v=[0.0], u=[4.0], z=[8.0, 0.0]))
    assert nsds.equilibrium(cart)["cart"]["q"][0] == pytest.approx(0.5, rel=_TOL)


def test_ensembles_and_the_member_that_falls():
    systems = np.repeat(slope(0.5), 3)
    systems["contacts"]["mu"] = [0.5, 0.2, 0.4]
    with pytest.raises(ValueError, match="member 1: 'block' keeps accelerating"):
        nsds.equilibrium(systems)
    found = nsds.equilibrium(systems, on_failure="continue")
    assert found["status"].tolist() == [CONVERGED, ACCELERATING, CONVERGED]
    assert found.shape == (3,)
    one = nsds.equilibrium(systems[2])
    assert (one["block"]["q"] == found["block"]["q"][2]).all()


def test_too_few_steps_are_said():
    with pytest.raises(ValueError, match=r"'rods.*max_iter"):
        nsds.equilibrium(chain(3, stiffness=5.0), max_iter=12)
    assert nsds.equilibrium(chain(3, stiffness=5.0), max_iter=12, on_failure="continue")["status"] == MAX_ITER


def test_what_cannot_rest_is_refused():
    def track(t, q, z, out):
        out[0] = q[0] - t

    def rate(t, q, z, out):
        out[0] = -1.0

    mass = nsds.lagrangian([1.0], q=[0.0], v=[0.0])
    driven = nsds.interaction(nsds.rheonomous(track, m=1, h_t=rate), nsds.equality(), on="mass")
    with pytest.raises(ValueError, match="equilibrium: 'driven' has ydot = 1 where all parts are at rest"):
        nsds.equilibrium(nsds.system(mass=mass, driven=driven))
    with pytest.raises(ValueError, match="equilibrium: 'drum' has a body of infinite mass that moves"):
        nsds.equilibrium(nsds.examples.rotating_drum())
    with pytest.raises(ValueError, match=r"got first-order ones; .* nsds\.euler_moreau"):
        nsds.equilibrium(nsds.examples.diode_bridge())


def test_forces_that_vanish_at_rest_are_no_obstacle():
    found = nsds.equilibrium(nsds.examples.double_pendulum())
    assert abs(found["pendulum"]["q"]).max() <= 1e-9
    assert found["n_iter"] <= 20
    balls = nsds.rigid_bodies(2.0, 0.1, q=[[0, 0, 0, 1, 0, 0, 0], [1.1, 0, 0, 1, 0, 0, 0]], v=[[0.0] * 6] * 2)
    spring = nsds.interaction(joints.distance([0, 0, 0], [1.1, 0, 0], length=1.0), nsds.spring_damper(100.0), on=("balls[0]", "balls[1]"))
    found = nsds.equilibrium(nsds.system(balls=balls, spring=spring))
    assert np.diff(found["balls"]["q"][:, 0]) == pytest.approx(1.0, rel=1e-9)
    assert found["balls"]["q"][:, 0].sum() == pytest.approx(1.1)


@pytest.mark.filterwarnings("error")
def test_boxes_that_overlap_at_the_start_are_pushed_apart():
    system = nsds.examples.box_stack(n=2, drop=-0.004)
    found = nsds.equilibrium(system)
    assert found["boxes"]["q"][:, 2] == pytest.approx([0.05, 0.15], abs=1e-8)
