"""What the constructors of rigid bodies, their relations and collisions refuse, and how they say so."""

import re
import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nsds
from nsds.model import joints, shapes

BALL, BOX = shapes.sphere(0.1), shapes.box([1, 1, 1])
HIT = nsds.newton_impact(0.5)
ORIGIN = [0, 0, 0, 1, 0, 0, 0]


def body(**changes):
    return nsds.rigid_bodies(**({"mass": 1.0, "inertia": 1.0, "q": ORIGIN, "v": np.zeros(6)} | changes))


def two_arguments(t, out):
    out[0] = t


def force(t, z, out):
    out[0] = z[0]


def internal(t, q, v, z, out):
    out[0] = q[0]


@pytest.mark.parametrize(("changes", "words"), [
    ({"q": [0, 0, 0, 0, 0, 0, 0]}, "unit quaternion"),
    ({"q": [0, 0, 0, 1, 0.1, 0, 0]}, "norm 1.00498"),
    ({"q": [ORIGIN, [0, 0, 0, 2, 0, 0, 0]], "v": np.zeros((2, 6))}, "of body 1 of norm 2"),
    ({"q": np.zeros(6)}, r"q must have shape \(7,\), got \(6,\)"),
    ({"v": np.zeros(7)}, r"v must have shape \(6,\), got \(7,\)"),
    ({"q": [ORIGIN] * 3, "v": np.zeros((2, 6))}, r"v must have shape \(3, 6\)"),
    ({"q": [np.nan, *ORIGIN[1:]]}, "q must be finite"),
    ({"mass": 0.0}, "mass must be positive"),
    ({"mass": -1.0}, "mass must be positive"),
    ({"mass": np.nan}, "mass"),
    ({"mass": [1.0, 2.0]}, "mass must have shape"),
    ({"inertia": 0.0}, "inertia must be positive definite"),
    ({"inertia": [1, 1, -1]}, "inertia must be positive definite"),
    ({"inertia": [[1, 2, 0], [2, 1, 0], [0, 0, 1]]}, "inertia must be positive definite"),
    ({"inertia": [[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]}, "inertia must be symmetric"),
    ({"inertia": np.eye(2)}, "inertia must be a number or have shape"),
    ({"fext": [1, 2]}, "fext must have shape"),
    ({"mext": np.zeros(6)}, "mext must have shape"),
    ({"frame": "world"}, "frame must be 'body' or 'inertial'"),
    ({"C": np.eye(3)}, "C must have shape"),
    ({"K": np.eye(6)}, "K must have shape"),
    ({"jac_q": internal}, "derivatives of fint and mint, which are missing"),
    ({"count": 0}, "count must be at least 1"),
])  # fmt: skip
def test_values_of_bodies(changes, words):
    with pytest.raises(ValueError, match=f"rigid_bodies: .*{words}"):
        body(**changes)


@pytest.mark.parametrize(("changes", "words"), [
    ({"fext": two_arguments}, "fext"),
    ({"fint": force}, "fint"),
    ({"mass": "heavy"}, ""),
    ({"count": 1.5}, "count must be a whole number"),
])  # fmt: skip
def test_types_of_bodies(changes, words):
    with pytest.raises((TypeError, ValueError), match=words):
        body(**changes)


@pytest.mark.parametrize("run", [
    lambda system, file: nsds.simulate(system, t_end=0.1, h=0.1),
    lambda system, file: nsds.step(system, 0.1),
    lambda system, file: nsds.stream(system, file, t_end=0.1, h=0.1),
], ids=["simulate", "step", "stream"])  # fmt: skip
@pytest.mark.parametrize(("field", "value", "words"), [
    ("q", [0, 0, 0, 0, 0, 0, 0], r"q\[3:\] must be a unit quaternion, scalar first, got one{} of norm 0"),
    ("q", [0, 0, 0, 1, 0, 0, 1e-2], r"q\[3:\] must be a unit quaternion, scalar first, got one{} of norm 1.00005"),
    ("mass", 0.0, "mass must be positive, got one{} of value 0"),
    ("mass", -2.5, "mass must be positive, got one{} of value -2.5"),
    ("inertia", np.diag([1, 1, -0.5]), "inertia must be positive definite, got one{} of least eigenvalue -0.5"),
    ("inertia", np.zeros((3, 3)), "inertia must be positive definite, got one{} of least eigenvalue 0"),
    ("inertia", np.eye(3) + np.eye(3, k=1) / 4, "inertia must be symmetric, got one{} of difference across the diagonal 0.25"),
])  # fmt: skip
def test_values_of_bodies_assigned_later(tmp_path, run, field, value, words):
    one, many = nsds.system(one=body()), nsds.system(many=body(q=[ORIGIN] * 3, v=np.zeros((3, 6))))
    for member, system in ((None, one), (None, many), (1, np.repeat(many, 2))):
        system = system.copy()
        part = system.dtype.names[-1]
        at = (system if member is None else system[member])[part]
        (at if part == "one" else at[2])[field] = value
        of = (" of body 2" if part == "many" else "") + ("" if member is None else f" of member {member}")
        with pytest.raises(ValueError, match=rf"^\w+: {part}\.{words.format(of)}$"):
            run(system, tmp_path / "run.h5")
        assert not (tmp_path / "run.h5").exists()


def test_what_has_infinite_mass_needs_no_inertia():
    system = nsds.system(a=body(), b=body(mass=np.inf))
    system["b"]["inertia"] = 0.0
    nsds.simulate(system, t_end=0.1, h=0.1)


def joined(relation, law, on, **parts):
    return nsds.system(**(parts or {"a": body(), "b": body()}), joint=nsds.interaction(relation, law, on=on))


def simulated(*arguments, **parts):
    return nsds.simulate(joined(*arguments, **parts), t_end=0.1, h=0.1)


def test_unknown_parts():
    with pytest.raises(ValueError, match="there is no part 'c'; the systems are: a, b"):
        joined(joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), "c")
    with pytest.raises(ValueError, match="there is no part 'c'"):
        nsds.system(a=body(), contacts=nsds.collisions({"c": BALL}, HIT))


def test_a_body_is_not_joined_with_itself():
    with pytest.raises(ValueError, match="joins a body with itself"):
        simulated(joints.ball_joint([0, 0, 0]), nsds.equality(), ("a", "a"))
    many = nsds.rigid_bodies(1.0, 1.0, q=[ORIGIN] * 3, v=np.zeros((3, 6)))
    with pytest.raises(ValueError, match="joins a body with itself"):
        simulated(joints.ball_joint([0, 0, 0]), nsds.equality(), ("m[1]", "m[:]"), m=many)


@pytest.mark.parametrize("law", [nsds.newton_impact_friction(0.5, 0.3), nsds.newton_impact_rolling_friction(0.5, 0.3, 0.1)])
def test_laws_that_do_not_fit_a_joint(law):
    with pytest.raises(ValueError, match="joint"):
        simulated(joints.ball_joint([0, 0, 0]), law, "a")


@pytest.mark.parametrize("law", [nsds.complementarity(), nsds.mixed_complementarity(1)])
def test_laws_of_other_systems(law):
    with pytest.raises(ValueError, match="is not a law for"):
        joined(joints.ball_joint([0, 0, 0]), law, "a")


def test_relations_of_other_systems():
    with pytest.raises(ValueError, match="is for"):
        joined(nsds.lagrangian_linear_relation(H=[[1, 0, 0, 0, 0, 0]]), HIT, "a")
    point = nsds.lagrangian_linear(M=[1.0], q=[0.0], v=[0.0])
    with pytest.raises(ValueError, match="'p' is a lagrangian_linear"):
        joined(joints.ball_joint([0, 0, 0]), nsds.equality(), "p", p=point)
    with pytest.raises(ValueError, match="expected rigid_bodies"):
        nsds.system(p=point, contacts=nsds.collisions({"p": BALL}, HIT))


def test_prescribed_velocities_of_a_body_are_six():
    with pytest.raises(ValueError, match="dofs must be below 6"):
        joined(nsds.prescribed_velocity([6], [1.0]), nsds.equality(), "a")


@pytest.mark.parametrize(("arguments", "words"), [
    (({"a": shapes.plane()}, HIT), "a plane cannot be on a body"),
    (({"world": BALL}, HIT), "the name 'world' is taken"),
    (({"a": BALL}, nsds.newton_impact([0.1, 0.2])), "one number for all contacts"),
])  # fmt: skip
def test_values_of_collisions(arguments, words):
    with pytest.raises(ValueError, match=words):
        nsds.collisions(*arguments)


@pytest.mark.parametrize(("arguments", "words"), [
    (({}, HIT), "shapes must be a dict"),
    (({"a": 1.0}, HIT), ""),
    (({"a": [1.0]}, HIT), "must come from nsds.shapes"),
    (({"a": BALL}, nsds.equality()), "law must come from"),
])  # fmt: skip
def test_types_of_collisions(arguments, words):
    with pytest.raises(TypeError, match=words):
        nsds.collisions(*arguments)


@pytest.mark.parametrize(("options", "words"), [
    ({"pairs": [("a", "c")]}, "pairs must be pairs of a, world"),
    ({"capacity": 0}, "capacity must be at least 1"),
    ({"margin": -1.0}, "margin"),
])  # fmt: skip
def test_options_of_collisions(options, words):
    with pytest.raises(ValueError, match=words):
        nsds.collisions({"a": BALL}, HIT, **options)


def test_pairs_of_shapes_without_contacts():
    with pytest.raises(ValueError, match="contacts"):
        nsds.system(a=body(), b=body(), contacts=nsds.collisions({"a": shapes.tube(1, 1), "b": BOX}, HIT))
    nsds.system(a=body(), b=body(), contacts=nsds.collisions({"a": shapes.tube(1, 1), "b": BOX}, HIT, pairs=[("a", "a")][:0]))


def test_shapes_for_each_body_are_as_many():
    many = nsds.rigid_bodies(1.0, 1.0, q=[ORIGIN] * 3, v=np.zeros((3, 6)))
    with pytest.raises(ValueError, match="'m' has 3 bodies, got shapes for 2"):
        nsds.system(m=many, contacts=nsds.collisions({"m": [[BALL], [BOX]]}, HIT))


def test_options_of_the_scheme():
    with pytest.raises(ValueError, match="update must be one of"):
        nsds.moreau_jean(update="cayley")
    with pytest.raises(ValueError, match="form='global' is for Lagrangian systems"):
        nsds.simulate(nsds.system(a=body()), t_end=0.1, h=0.1, scheme=nsds.moreau_jean(form="global"))
    with pytest.raises(ValueError, match="method must be one of"):
        nsds.simulate(nsds.system(a=body()), t_end=0.1, h=0.1, solver="magic")
    with pytest.raises(ValueError, match=r"method must be one of .* got 'lemke', which is for fc2d, gfc2d"):
        nsds.simulate(nsds.system(a=body()), t_end=0.1, h=0.1, solver=nsds.solvers.solver("lemke"))
    chosen = nsds.solvers.solver()
    chosen["weight"] = 1.0
    with pytest.raises(ValueError, match="weight is an option of psor, rpgs, latin, not of 'auto'"):
        nsds.simulate(nsds.system(a=body()), t_end=0.1, h=0.1, solver=chosen)


@pytest.mark.parametrize("make", [
    lambda: joints.hinge([0, 0, 0], [0, 0, 0]),
    lambda: joints.ball_joint([0, 0]),
    lambda: joints.slide_along([1, 0, 0], lower=1.0, upper=0.0),
    lambda: nsds.dry_friction(-1.0),
    lambda: shapes.sphere(-1.0),
    lambda: shapes.box([1, 0, 1]),
    lambda: nsds.newton_impact_rolling_friction(0.5, 0.3, -0.1),
])  # fmt: skip
def test_values_of_joints_laws_and_shapes(make):
    with pytest.raises(ValueError, match=r"must (be|have|not be)"):
        make()


def test_a_method_that_builds_matrices_refuses_what_is_too_large_for_it():
    q = np.array([[x, y, 0.1, 1, 0, 0, 0] for x in range(23) for y in range(23)], dtype=float)
    balls = nsds.rigid_bodies(1.0, 0.1, q=q, v=np.zeros((len(q), 6)), fext=[0, 0, -10.0])
    contacts = nsds.collisions({"balls": BALL}, HIT, world=shapes.plane(), pairs=[("balls", "world")])
    system = nsds.system(balls=balls, contacts=contacts)
    with pytest.raises(nsds.SimulationError, match="does not treat this problem, or not at this size"):
        nsds.step(system, h=1e-3, solver="nsgs")
    assert nsds.step(system, h=1e-3)["status"] == 0


TILTED = Rotation.from_rotvec([0.3, -0.5, 0.7]).as_matrix()


@pytest.mark.parametrize(
    ("inertia", "excess"),
    [
        ([1.0, 1.0, 2.1], "0.1"),
        ([0.001, 0.2, 0.3], "0.099"),
        (np.diag([5.0, 1.0, 1.0]), "3"),
        (TILTED @ np.diag([1.0, 2.0, 3.5]) @ TILTED.T, "0.5"),
        ([1.0, 1.0, 2.0 * (1 + 1e-5)], "2e-05"),
    ],
)
def test_an_inertia_that_no_body_can_have_is_taken_with_a_warning_of_the_amount(inertia, excess):
    with pytest.warns(UserWarning, match=rf"inertia is one that no body can have: .* less by {re.escape(excess)};") as caught:
        part = nsds.rigid_bodies(1.0, inertia, q=[0, 0, 0, 1, 0, 0, 0], v=[0] * 6)
    assert caught[0].filename == __file__
    matrix = np.diag(inertia) if np.ndim(inertia) == 1 else inertia
    assert np.array_equal(part["record"]["inertia"], matrix)
    with pytest.warns(UserWarning, match=rf"inertia of body 1 is one that no body can have: .* less by {re.escape(excess)};"):
        nsds.rigid_bodies(1.0, [np.eye(3), matrix], q=[[0, 0, 0, 1, 0, 0, 0]] * 2, v=[[0] * 6] * 2)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
def test_plates_rods_and_what_nothing_stops_are_bodies(scale):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for inertia in ([1, 1, 2], [0.1, 0.2, 0.3], [1e-12, 1, 1], TILTED @ np.diag([1.0, 2.0, 3.0]) @ TILTED.T, 0.4):
            nsds.rigid_bodies(1.0, scale * np.array(inertia, float), q=[0, 0, 0, 1, 0, 0, 0], v=[0] * 6)
        nsds.rigid_bodies(np.inf, [1.0, 1.0, 9.0], q=[0, 0, 0, 1, 0, 0, 0], v=[0] * 6)
