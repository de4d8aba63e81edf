"""Rows of joints against their definition, differences of the exact flow, ranks, and the motions that a joint leaves free."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds.model import joints
from nsds.schemes.rigid.joint_rows import joint_row, seen_from
from tests.reference_newton_euler import product
from tests.strategies import examples, generators

ORIGIN = np.array([0, 0, 0, 1.0, 0, 0, 0])
two_or_one = st.booleans()


def unit(rng, n=3):
    x = rng.normal(size=n)
    return x / np.linalg.norm(x)


def turn(axis, angle):
    """Quaternion of a rotation about an axis of any length."""
    return np.concatenate([[math.cos(angle / 2)], math.sin(angle / 2) * np.asarray(axis) / np.linalg.norm(axis)])


def matrix(p):
    """Columns ``p . (0, e) . p*`` ([Notes], eq. 11.135)."""
    return np.column_stack([product(product(p, np.array([0, *e])), p * [1, -1, -1, -1])[1:] for e in np.eye(3)])


def moved(q, shift, p, about=(0, 0, 0)):
    """The body turned by p in inertial axes about a point, then shifted."""
    return np.concatenate([about + matrix(p) @ (q[:3] - about) + shift, product(p, q[3:])])


def flow(q, v, t):
    """The exact motion with a constant twist (v_g, Omega)."""
    spin = np.linalg.norm(v[3:])
    p = product(q[3:], turn(v[3:], t * spin)) if spin > 0 else q[3:]
    return np.concatenate([q[:3] + t * v[:3], p])


def configuration(rng):
    return np.concatenate([rng.normal(size=3), unit(rng, 4)])


def rows(fields, q_a, q_b, angle=None):
    """y (m,), H (m, 12) by the kernel; angle (m, 2) is advanced where it is given."""
    m = len(fields["row"])
    y, H, seen = np.empty(m), np.full((m, 12), np.nan), np.empty(12)
    angle = np.zeros((m, 2)) if angle is None else angle
    q = ORIGIN[:0] if q_b is None else q_b
    seen_from(q_a, q, q_b is not None, seen)
    for r in range(m):
        data = (fields[key][r] for key in ("a", "u", "b", "w", "offset"))
        y[r] = joint_row(fields["row"][r], *data, q_a, q, q_b is not None, seen, angle[r], H[r])
    return y, H


def values(fields, q_a, q_b):
    """y (m,) as the definition has it; angles within pi of zero, without the tilt of axes."""
    q_b = ORIGIN if q_b is None else q_b
    (x_a, R_a), (x_b, R_b) = ((q[:3], matrix(q[3:])) for q in (q_a, q_b))
    y = []
    for row, a, u, b, w, offset in zip(*(fields[key] for key in ("row", "a", "u", "b", "w", "offset")), strict=True):
        if row == joints.POINT:
            value = (x_a + R_a @ a - x_b - R_b @ b) @ (R_b @ w)
        elif row == joints.ALIGN:
            value = (R_a @ u) @ (R_b @ w)
        elif row == joints.DISTANCE:
            value = (-1 if u.any() else 1) * np.linalg.norm(x_a + R_a @ a - x_b - R_b @ b)
        else:
            value = math.atan2((R_a @ u) @ (R_b @ np.cross(w, b)), (R_a @ u) @ (R_b @ b))
        if row == joints.GEAR:
            line = R_b.T @ (x_a - x_b)
            value = a[0] * value - (a[0] + a[1]) * math.atan2(line @ np.cross(w, b), line @ b)
        y.append(value - offset)
    return np.array(y)


def coupled(rng):
    kinds = rng.choice(["angle", "translation"], 2)
    return joints.coupler((kinds[0], rng.normal(size=3)), (kinds[1], rng.normal(size=3)), ratio=rng.choice([-2.5, 0.3, 1.7]))


BUILDERS = {
    "ball_joint": lambda rng, frame: joints.ball_joint(rng.normal(size=3), frame),
    "universal": lambda rng, frame: joints.universal(rng.normal(size=3), *np.linalg.qr(rng.normal(size=(3, 2)))[0].T, frame),
    "hinge": lambda rng, frame: joints.hinge(rng.normal(size=3), rng.normal(size=3), frame),
    "prismatic": lambda rng, frame: joints.prismatic(rng.normal(size=3), frame),
    "cylindrical": lambda rng, frame: joints.cylindrical(rng.normal(size=3), rng.normal(size=3), frame),
    "planar": lambda rng, frame: joints.planar(rng.normal(size=3), rng.normal(size=3), frame),
    "fixed_joint": lambda rng, frame: joints.fixed_joint(),
    "hinge_angle": lambda rng, frame: joints.hinge_angle(rng.normal(size=3), lower=-0.3, upper=4.0, frame=frame),
    "slide_along": lambda rng, frame: joints.slide_along(rng.normal(size=3), lower=-0.3, point=rng.normal(size=3), frame=frame),
    "distance": lambda rng, frame: joints.distance(rng.normal(size=3), rng.normal(size=3), lower=0.2, upper=9.0, frame=frame),
    "gear": lambda rng, frame: joints.gear(rng.normal(size=3), 0.3, rng.choice([-0.8, 0.5]), frame),
    "coupler": lambda rng, frame: coupled(rng),
}
HOLDING = ("ball_joint", "universal", "hinge", "prismatic", "cylindrical", "planar", "fixed_joint")
frames = st.sampled_from(["world", "body"])


def test_every_joint_is_tried():
    assert set(joints.HELD) == set(HOLDING) <= set(BUILDERS)


def drawn(name, rng, frame, has_b):
    relation = BUILDERS[name](rng, frame)
    q_a, q_b = configuration(rng), configuration(rng) if has_b else None
    return relation, joints.resolve(relation, q_a, q_b), q_a, q_b


def given_vectors(relation, q_a):
    """Point and axis at the start in inertial coordinates."""
    x, R = (q_a[:3], matrix(q_a[3:])) if relation["frame"] == "body" else (np.zeros(3), np.eye(3))
    return x + R @ relation.get("point", np.zeros(3)), R @ relation.get("axis", np.zeros(3))


@pytest.mark.parametrize("name", BUILDERS)
@examples(25)
@given(generators, frames, two_or_one)
def test_y_and_its_derivative_along_the_exact_flow(name, rng, frame, has_b):
    """``ydot = H v`` anywhere, where the joint is violated too."""
    relation, fields, *_ = drawn(name, rng, frame, has_b)
    q_a, q_b = configuration(rng), configuration(rng) if has_b else None
    y, H = rows(fields, q_a, q_b)
    assert y.shape == (relation["m"],)
    if name != "coupler":
        assert y == pytest.approx(values(fields, q_a, q_b), abs=1e-12)
    if not has_b:
        assert not H[:, 6:].any()
    v, eps = rng.normal(size=12), 1e-5
    angle = np.zeros((len(y), 2))
    rows(fields, q_a, q_b, angle)
    later, earlier = (
        rows(fields, flow(q_a, v[:6], t), flow(q_b, v[6:], t) if has_b else None, angle.copy())[0] for t in (eps, -eps)
    )  # fmt: skip
    tilted = fields["row"][0] in joints.ANGULAR  # where the marker is near the axis the angle turns fast
    assert (later - earlier) / (2 * eps) == pytest.approx(H @ v, abs=1e-7, rel=1e-4 if tilted else 1e-7)


@pytest.mark.parametrize("name", BUILDERS)
@examples(15)
@given(generators, frames, two_or_one)
def test_the_start_is_the_zero_of_a_joint(name, rng, frame, has_b):
    relation, fields, q_a, q_b = drawn(name, rng, frame, has_b)
    y, H = rows(fields, q_a, q_b)
    start = relation.get("length", 0.0)  # of a distance
    stops = ([start - relation["lower"]] if "lower" in relation else []) + ([relation["upper"] - start] if "upper" in relation else [])
    assert y == pytest.approx(np.array(stops or np.zeros(relation["m"])), abs=1e-14)
    assert np.linalg.matrix_rank(H, tol=1e-6) == (relation["m"] if len(stops) < 2 else 1)
    assert ("angle" in fields) == (name in ("hinge_angle", "coupler", "gear"))


@pytest.mark.parametrize("name", HOLDING)
def test_what_holds_bodies_together_is_no_stop(name):
    body = nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 0, 1, 0, 0, 0], v=np.zeros(6))
    with pytest.raises(ValueError, match=f"interaction 'pin': {name} holds bodies together, and newton_impact would let them part"):
        nsds.system(body=body, pin=nsds.interaction(BUILDERS[name](np.random.default_rng(0), "world"), nsds.newton_impact(0.5), on="body"))


def test_what_contradicts_itself_is_refused():
    """A coordinate that is held at both of its stops; a joint between a body and itself."""
    bodies = nsds.rigid_bodies(1.0, 0.1, q=[[0, 0, z, 1, 0, 0, 0] for z in range(3)], v=np.zeros((3, 6)))
    stops = nsds.interaction(joints.hinge_angle([0, 1, 0], lower=-1.0, upper=1.0), nsds.equality(), on="bodies[0]")
    with pytest.raises(ValueError, match="interaction 'stops': equality would hold hinge_angle at its lower and its upper stop at once"):
        nsds.system(bodies=bodies, stops=stops)
    for on in (("bodies[0]", "bodies[0]"), ("bodies[1:]", "bodies[1:]"), (("bodies", [0, 1]), ("bodies", [2, 1])), ("bodies", "bodies")):
        with pytest.raises(ValueError, match="interaction 'pin' joins a body with itself: on names a part of 'bodies' twice"):
            nsds.system(bodies=bodies, pin=nsds.interaction(joints.ball_joint([0, 0, 0.5]), nsds.equality(), on=on))


@pytest.mark.parametrize("name", HOLDING)
@examples(25)
@given(generators, frames, two_or_one)
def test_rows_vanish_on_the_motions_that_a_joint_leaves_free(name, rng, frame, has_b):
    """A moves as the joint lets it, then both move as one: y stays zero, and H keeps its rank and its null space."""
    relation, fields, q_a, q_b = drawn(name, rng, frame, has_b)
    point, axis = given_vectors(relation, q_a)
    slide = rng.normal() * axis if name in ("prismatic", "cylindrical") else 0.0 * axis
    if name == "planar":
        slide = np.cross(axis, rng.normal(size=3))
    angle = rng.uniform(-3, 3)
    p = {"ball_joint": unit(rng, 4), "universal": None, "hinge": None, "cylindrical": None, "planar": None}.get(name, ORIGIN[3:])
    p = turn(axis, angle) if p is None else p
    if name == "universal":  # about the axis of A, then about that of B
        second = relation["second_axis"]
        p = product(turn(matrix(q_a[3:]) @ second if frame == "body" else second, rng.uniform(-3, 3)), p)
    q_a = moved(q_a, slide, p, point)
    if has_b:
        both = rng.normal(size=3), unit(rng, 4), rng.normal(size=3)
        q_a, q_b = moved(q_a, *both), moved(q_b, *both)
        axis = matrix(both[1]) @ axis
    y, H = rows(fields, q_a, q_b)
    assert y == pytest.approx(np.zeros(relation["m"]), abs=1e-13)
    singular = np.linalg.svd(H[:, :6], compute_uv=False)
    assert len(singular) == relation["m"]
    R_a, n = matrix(q_a[3:]), relation["m"]
    scale = 1 + np.linalg.norm(fields["a"], axis=1).max()
    assert singular[-1] > 0.2 / scale**2
    if name in ("prismatic", "cylindrical"):
        assert H[:, :3] @ axis == pytest.approx(np.zeros(n), abs=1e-13)
    if name in ("hinge", "cylindrical"):
        point = q_a[:3] + R_a @ fields["a"][0]
        spin = np.concatenate([np.cross(axis, q_a[:3] - point), R_a.T @ axis])
        assert H[:, :6] @ spin == pytest.approx(np.zeros(n), abs=1e-12)
    if name == "planar":
        ways = np.linalg.svd(axis[None])[2][1:]
        assert H[:, :3] @ ways.T == pytest.approx(np.zeros((n, 2)), abs=1e-13)
        assert H[:, 3:6] @ (R_a.T @ axis) == pytest.approx(np.zeros(n), abs=1e-12)
    assert np.linalg.norm(H[:, 3:6][fields["row"] == joints.ALIGN], axis=1) == pytest.approx(1, abs=1e-12)


@examples(15)
@given(generators, two_or_one)
def test_alignment_rows_of_a_fixed_joint_have_orthonormal_gradients_at_the_start(rng, has_b):
    _, fields, q_a, q_b = drawn("fixed_joint", rng, "world", has_b)
    _, H = rows(fields, q_a, q_b)
    assert H[3:, 3:6] @ H[3:, 3:6].T == pytest.approx(np.eye(3), abs=1e-13)


@examples(15)
@given(generators, frames, st.floats(-0.2, 0.2), two_or_one)
def test_angle_of_a_hinge_over_many_turns_and_its_rate(rng, frame, step, has_b):
    q_a, q_b = configuration(rng), configuration(rng) if has_b else None
    relation = joints.hinge_angle(rng.normal(size=3), frame=frame)
    fields = joints.resolve(relation, q_a, q_b)
    point, axis = rng.normal(size=3), given_vectors(relation, q_a)[1]
    angle = fields["angle"].copy()
    for k in range(1, 60):
        turned = moved(q_a, 0, turn(axis, 15 * step * k), point)
        y, H = rows(fields, turned, q_b, angle)
        assert y == pytest.approx([15 * step * k], abs=1e-12)
    assert angle[0, 0] == y[0]
    v = rng.normal(size=12)
    omega = matrix(turned[3:]) @ v[3:6] - (matrix(q_b[3:]) @ v[9:] if has_b else 0)
    assert H @ v == pytest.approx([axis @ omega], abs=1e-12)


@examples(15)
@given(generators, frames, st.floats(-1.0, 1.0), two_or_one)
def test_stops_open_inside_and_close_outside(rng, frame, where, has_b):
    """``lower < coordinate < upper`` where both y are positive; A's impulse at the lower stop points along the coordinate."""
    q_a, q_b = configuration(rng), configuration(rng) if has_b else None
    lower, upper, axis = -0.5, 0.7, rng.normal(size=3)
    for make in (joints.hinge_angle, joints.slide_along):
        relation = make(axis, lower=lower, upper=upper, frame=frame)
        fields = joints.resolve(relation, q_a, q_b)
        direction = given_vectors(relation, q_a)[1]
        shift, p = (where * direction, ORIGIN[3:]) if make is joints.slide_along else (np.zeros(3), turn(direction, where))
        y, H = rows(fields, moved(q_a, shift, p, q_a[:3]), q_b)
        assert y == pytest.approx([where - lower, upper - where], abs=1e-12)
        assert H[0] == pytest.approx(-H[1], abs=1e-14)
        only = [
            rows(joints.resolve(make(axis, frame=frame, **stop), q_a, q_b), q_a, q_b)[0] for stop in ({"lower": lower}, {"upper": upper})
        ]
        assert np.concatenate(only) == pytest.approx([-lower, upper], abs=1e-13)


@examples(25)
@given(generators, two_or_one)
def test_coupled_coordinates(rng, has_b):
    """``ratio first - second`` over several turns, for every pair of kinds, on two bodies or one."""
    relation = coupled(rng)
    q_a, q_b = configuration(rng), configuration(rng) if has_b else None
    fields = joints.resolve(relation, q_a, q_b)
    (kind_a, e_a), (kind_b, e_b) = relation["first"], relation["second"]
    if not has_b and kind_a == kind_b == "angle":
        e_b = e_a  # one body cannot turn about two fixed axes
        relation["second"] = kind_b, e_b
        fields = joints.resolve(relation, q_a, q_b)
    rates, angle = rng.uniform(-2.5, 2.5, 2), np.zeros((1, 2))
    for k in range(8):
        first, second = k * rates

        def place(q, kind, e, value):
            return moved(q, *((value * e, ORIGIN[3:]) if kind == "translation" else (0, turn(e, value), q[:3])))

        now = [place(q_a, kind_a, e_a, first), place(q_b, kind_b, e_b, second) if has_b else None]
        if not has_b:
            first_of_a, second_of_a = first, second
            if kind_a == kind_b:
                second_of_a = first * (1 if kind_a == "angle" else e_a @ e_b)
            else:
                now[0] = place(now[0], kind_b, e_b, second)
            first, second = first_of_a, second_of_a
        y, _ = rows(fields, *now, angle)
        assert y == pytest.approx([relation["ratio"] * first - second], abs=1e-11)


def test_a_screw_and_gears():
    q = np.array([0.3, 0.1, -0.2, *turn([0.2, 1.0, 0.4], 1.1)])
    axis, lead = np.array([0, 0.6, 0.8]), 0.02
    fields = joints.resolve(joints.coupler(("angle", axis), ("translation", axis), ratio=lead / (2 * math.pi)), q)
    angle = fields["angle"].copy()
    for k in range(40):
        y, H = rows(fields, moved(q, lead * k / 7 * axis, turn(axis, 2 * math.pi * k / 7), q[:3]), None, angle)
        assert y == pytest.approx([0], abs=1e-14)
    assert H[0, :3] == pytest.approx(-axis)
    gears = joints.coupler(("angle", [0, 0, 1]), ("angle", [0, 0, 1]), ratio=-0.5)
    _, H = rows(joints.resolve(gears, ORIGIN, ORIGIN), ORIGIN, ORIGIN)
    assert H[0] == pytest.approx(np.array([0, 0, 0, 0, 0, -0.5, 0, 0, 0, 0, 0, -1]))


@pytest.mark.parametrize("name", BUILDERS)
def test_many_bodies_at_once_are_resolved_as_one_by_one(name):
    rng = np.random.default_rng(3)
    relation = BUILDERS[name](rng, "body") if name != "coupler" else coupled(rng)
    q_a, q_b = np.array([[configuration(rng) for _ in range(3)] for _ in range(2)]), configuration(rng)
    for other in (q_b, None):
        together = joints.resolve(relation, q_a, other)
        for i, j in np.ndindex(2, 3):
            alone = joints.resolve(relation, q_a[i, j], other)
            for key, value in alone.items():
                assert together[key][i, j] == pytest.approx(value, abs=1e-15)
                assert together[key].shape == (2, 3, *value.shape)
        assert together["row"].dtype == np.int64
        assert all(value.flags.c_contiguous and value.flags.writeable for value in together.values())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: joints.hinge([0, 0, 0], [0, 0, 0]), "hinge: axis must not be zero"),
        (lambda: joints.hinge([0, 0], [0, 0, 1]), r"hinge: point must have shape \(3,\), got \(2,\)"),
        (lambda: joints.prismatic([0, 1]), r"prismatic: axis must have shape \(3,\), got \(2,\)"),
        (lambda: joints.cylindrical([0, 0, np.nan], [0, 0, 1]), "cylindrical: point must be finite"),
        (lambda: joints.universal([0, 0, 0], [0, 0, 1], [0, 2, 2]), "universal: axis and second_axis must be across .* angle of 45°"),
        (lambda: joints.ball_joint([0, 0, 0], frame="local"), "ball_joint: frame must be one of 'world', 'body', got 'local'"),
        (lambda: joints.hinge_angle([0, 0, 1], lower=1, upper=1), "hinge_angle: lower must be below upper, got 1 and 1"),
        (lambda: joints.slide_along([0, 0, 0]), "slide_along: axis must not be zero"),
        (lambda: joints.coupler(("angle", [0, 0, 1]), ("angle", [0, 0, 1]), 0), "coupler: ratio must not be zero"),
        (lambda: joints.distance([1, 0, 0], [1, 0, 0]), r"distance: point and second must be apart, .* got \[1.0, 0.0, 0.0\]"),
        (lambda: joints.distance([1, 0, 0], [0, 0, 0], 0.5, upper=2.0), "distance: length is what y counts from without stops"),
        (lambda: joints.gear([0, 0, 1], 0.0, 1.0), "gear: radius must not be zero"),
        (lambda: joints.resolve(joints.gear([0, 0, 1], 1.0, 2.0), ORIGIN, ORIGIN), "gear: the centres of the wheels"),
        (lambda: joints.coupler(("angle", [0, 0, 0]), ("angle", [0, 0, 1]), 1), "coupler: the axis of first must not be zero"),
    ],
)
def test_wrong_values_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: joints.coupler([0, 0, 1], ("angle", [0, 0, 1]), 1), "coupler: first must be"),
        (lambda: joints.coupler(("angle", [0, 0, 1]), ("turn", [0, 0, 1]), 1), "coupler: second must be"),
        (lambda: joints.hinge("here", [0, 0, 1]), "hinge: point must be an array of real numbers"),
    ],
)
def test_wrong_types_are_named(make, words):
    with pytest.raises(TypeError, match=words):
        make()


def test_axes_of_any_length():
    for axis in ([0, 0, 1e-200], [0, 0, 1e200], [0, 0, 3]):
        assert joints.prismatic(axis)["axis"].tolist() == [0, 0, 1]
