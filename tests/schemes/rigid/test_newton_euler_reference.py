"""Rigid bodies against trajectories of the established code, see `tests.reference_cases`, and against exact motions."""

import math

import numpy as np
import pytest

import nsds
from tests.reference_cases import Bound, compare_at_checkpoints, compare_in_full, needs_collection, trajectory_of
from tests.reference_newton_euler import matrix

PLATE = [[0.1, 0.1, 0.0], [0.1, 1.0, 0.0], [0.0, 0.0, 1.0]]
IMPLICIT = nsds.moreau_jean(theta=1.0)
GRAVITY, RADIUS, BALL = 9.81, 0.1, nsds.joints.ball_joint([0, 0, 0])


def columns_of(rows, body="body"):
    """Columns of one body, as the cases name them."""
    q, v = rows[body]["q"], rows[body]["v"]
    names = ("x", "y", "z", "quat_w", "quat_x", "quat_y", "quat_z"), ("vx", "vy", "vz", "Ox", "Oy", "Oz")
    return {name: column for array, each in zip((q, v), names, strict=True) for name, column in zip(each, array.T, strict=True)}


def plate(v):
    s, c = 0.5 / math.sqrt(2), math.pi / 8
    return nsds.rigid_bodies(1.0, PLATE, q=[s, 0, -s, math.cos(c), 0, math.sin(c), 0], v=v, fext=[0, 0, -GRAVITY])


def free_spin():
    return columns_of(nsds.simulate(nsds.system(body=plate([100, 0, 0, 0, 0, 100])), t_end=10.0, h=0.01, scheme=IMPLICIT))


def knee():
    """The case starts with 100 m/s that the joint forbids: Newton's iteration needs many steps while the body is fast."""
    system = nsds.system(body=plate([100, 0, 0, 0, 0, 0]), joint=nsds.interaction(BALL, nsds.equality(), on="body"))
    scheme = nsds.moreau_jean(theta=1.0, newton_tol=1e-9, newton_max_iter=200)
    return columns_of(nsds.simulate(system, t_end=10.0, h=0.01, scheme=scheme))


def prismatic():
    axis = np.array([3, 2, 1]) / math.sqrt(14)
    q = [1, 1, 1, math.cos(math.pi / 5), *(math.sin(math.pi / 5) * axis)]
    system = nsds.system(
        body=nsds.rigid_bodies(1.0, 1.0, q=q, v=np.zeros(6), fext=[0, 0, -GRAVITY]),
        slide=nsds.interaction(nsds.joints.prismatic([0, 0, 1]), nsds.equality(), on="body"),
    )
    return columns_of(nsds.simulate(system, t_end=2.0, h=1e-3, scheme=IMPLICIT))


def beta(t, z, out):
    for i in range(3):
        out[i] = 2 + math.cos(math.pi * t / 2)


def prescribed_rotation():
    system = nsds.system(
        body=nsds.rigid_bodies(1.0, 1.0, q=[1, 0, 0, 1, 0, 0, 0], v=np.zeros(6), fext=[-10, 0, 0]),
        drive=nsds.interaction(nsds.prescribed_velocity([0, 3, 5], beta), nsds.equality(), on="body"),
    )
    return columns_of(nsds.simulate(system, t_end=10.0, h=1e-3, scheme=IMPLICIT))


def wall(t, q, z, out):
    """The plane x = 0; the contact point lies below the centre."""
    out[0] = abs(q[0]) - 0.1
    out[1], out[2], out[3] = abs(q[0]) - 0.1, q[1], q[2]
    out[4], out[5], out[6] = 1.0, 0.0, 0.0


def ball_on_wall(law, spin, t_end):
    system = nsds.system(
        body=nsds.rigid_bodies(1.0, 1.0, q=[1, 0, 0, 1, 0, 0, 0], v=[2, 0, 0, 0, 0, spin], fext=[-GRAVITY, 0, 0]),
        wall=nsds.interaction(nsds.contact_point(wall), law, on="body"),
    )
    rows = nsds.simulate(system, t_end=t_end, h=0.005, scheme=nsds.moreau_jean(), fields=["body", "body.p", "wall"])
    lam, names = rows["wall"]["lambda"], ("lam_n", "lam_t1", "lam_t2", "lam_r1", "lam_r2")
    return columns_of(rows) | dict(zip(names, lam.T, strict=False)) | {"p_x": rows["body"]["p"][:, 0], "lambda_n": lam[:, 0]}


def bouncing_ball():
    return ball_on_wall(nsds.newton_impact_friction(e_n=0.9, mu=0.6, e_t=0.9), 0.0, 10.0)


def rolling_friction_ball():
    return ball_on_wall(nsds.newton_impact_rolling_friction(e_n=0.9, mu=0.6, mu_r=0.01, e_t=0.9), 1.0, 15.0)


def bouncing_box():
    """The peer's activation is that of its collision library: the forecast of a whole step begins its first impact in the same step."""
    box = nsds.shapes.box([1, 1, 1])
    system = nsds.system(
        body=nsds.rigid_bodies(1.0, nsds.shapes.inertia(box, 1.0), q=[0, 0, 10, 1, 0, 0, 0], v=np.zeros(6), fext=[0, 0, -GRAVITY]),
        contacts=nsds.collisions({"body": box}, nsds.newton_impact(0.8), world=nsds.shapes.plane(offset=-0.5)),
    )
    rows = nsds.simulate(system, t_end=20.0, h=0.005, scheme=nsds.moreau_jean(gamma=1.0))
    return columns_of(rows) | {"lambda_norm_sum": abs(rows["contacts"]["lambda"]).sum(axis=(1, 2))}


SPHERE = {"mass": 1.5, "radius": 0.2, "mu": 0.25, "speed": 3.0}
T_ROLL = 2 * SPHERE["speed"] / (7 * SPHERE["mu"] * GRAVITY)


def slide_to_roll():
    """The ball starts a trifle in the plane, so that rounding does not open the contact."""
    ball = nsds.shapes.sphere(SPHERE["radius"])
    system = nsds.system(
        body=nsds.rigid_bodies(
            SPHERE["mass"],
            nsds.shapes.inertia(ball, SPHERE["mass"]),
            q=[0, 0, SPHERE["radius"] - 1e-10, 1, 0, 0, 0],
            v=[SPHERE["speed"], 0, 0, 0, 0, 0],
            fext=[0, 0, -SPHERE["mass"] * GRAVITY],
        ),
        contacts=nsds.collisions({"body": ball}, nsds.newton_impact_friction(e_n=0.0, mu=SPHERE["mu"]), world=nsds.shapes.plane()),
    )
    rows = nsds.simulate(system, t_end=2 * T_ROLL, h=T_ROLL / 400, scheme=nsds.moreau_jean(), solver=nsds.solvers.solver(tol=1e-14))
    columns = columns_of(rows)
    q, v = rows["body"]["q"], rows["body"]["v"]
    omega = np.array([matrix(p) @ Omega for p, Omega in zip(q[:, 3:], v[:, 3:], strict=True)])[:, 1]
    return columns | {"omega": omega, "slip": columns["vx"] - SPHERE["radius"] * omega}


INERTIA, SPIN = np.array([0.7, 0.7, 1.3]), np.array([0.8, 0.0, 2.0])


def torque_free_top():
    system = nsds.system(body=nsds.rigid_bodies(1.0, INERTIA, q=[0, 0, 0, 1, 0, 0, 0], v=[0, 0, 0, *SPIN]))
    return columns_of(nsds.simulate(system, t_end=10.0, h=1e-3, save_every=10))


PLACE, TURN, SPEED = "x y z", "quat_w quat_x quat_y quat_z", "vx vy vz Ox Oy Oz"
# name of the case, and its acceptance as the collection states it
CASES = {
    free_spin: ("ne_free_spin", [Bound(1e-9, f"{PLACE} {TURN}")]),
    knee: ("ne_knee_1body", [Bound(1e-2, f"{PLACE} {TURN}"), Bound(5e-5, f"{PLACE} {TURN}", 1)]),
    prismatic: ("ne_prismatic", [Bound(1e-9, f"{PLACE} {TURN}")]),
    prescribed_rotation: ("ne_prescribed_rotation", [Bound(1e-10, "x vx Ox Oz"), Bound(2e-6, TURN)]),
    bouncing_ball: ("ne_bouncing_ball", [Bound(1e-9, "x vx p_x lambda_n y z vy vz")]),
    rolling_friction_ball: ("ne_rolling_friction_ball_r440", [Bound(1e-8, "x y z vx vy vz Ox Oy Oz lam_n")]),
    bouncing_box: ("ne_bouncing_box", [Bound(1e-9, "z vz", 286)]),
    slide_to_roll: ("exact_sphere_slide_to_roll", [Bound(1e-12, "vx", 400), Bound(1e-9, "vx omega slip")]),
    torque_free_top: ("exact_torque_free_top", [Bound(1e-5, f"{TURN} Ox Oy Oz")]),
}
# columns, and their values in some rows of the full series
CHECKPOINTS = {
    free_spin: (
        "x z quat_w quat_x quat_y quat_z",
        {
            1: (1.3535533905933, -0.35453439059327, 0.81078056701933, 0.18346821067654, 0.33583630696796, 0.44293144247962),
            10: (10.353553390593, -0.40750839059327, 0.2620696872969, -0.36696443280629, 0.10855281876525, -0.88593051058951),
            1000: (1000.3535533906, -491.34405339059, -0.81657025354835, -0.17900852002441, -0.33823447365016, -0.43216479682327),
        },
    ),
    knee: (
        "x y z quat_w quat_x quat_y quat_z",
        {
            1: (
                0.41373212221226,
                0.0090240357993393,
                -0.25741385182126,
                0.95284699218413,
                0.12058069337588,
                0.27822380812091,
                -0.011593897763733,
            ),
            2: (
                0.45065326994402,
                0.013379954729506,
                -0.15388457496009,
                0.95370527417446,
                0.24354602279396,
                0.17642064502099,
                -0.002709391710738,
            ),
            500: (
                0.16468587393599,
                -0.44886104063557,
                -0.44962862261777,
                0.32225051839718,
                0.62701772194389,
                0.35786977526232,
                -0.6123174043866,
            ),
            1000: (
                0.19449840972461,
                -0.50438920341205,
                -0.44793094180905,
                0.33229963786449,
                0.64898491697809,
                0.27996280066747,
                -0.62451289694649,
            ),
        },
    ),
    prismatic: (
        "x y z quat_w quat_z",
        {
            1: (1.0, 1.0, 0.99999019, 0.80901699437495, 0.15709221650549),
            1000: (1.0, 1.0, -3.909905, 0.80901699437495, 0.15709221650549),
            2000: (1.0, 1.0, -18.629809999997, 0.80901699437495, 0.15709221650549),
        },
    ),
    prescribed_rotation: (
        "x vx Ox Oz quat_w quat_x quat_z",
        {
            1: (
                1.0029999987663,
                2.9999987662997,
                2.9999987662997,
                2.9999987662997,
                0.99999775000269,
                0.0014999982581515,
                0.0014999982581515,
            ),
            50: (1.149947060059, 2.9969173337331, 2.9969173337331, 2.9969173337331, 0.99438423381872, 0.074833132811492, 0.074833132811492),
            5002: (
                11.640114929085,
                1.9968584125141,
                1.9968584125141,
                1.9968584125141,
                0.32431158402588,
                0.66888788186701,
                0.66888788186701,
            ),
            10000: (20.999, 1.0, 1.0, 1.0, -0.0042623843903815, 0.70710035831399, 0.70710035831399),
        },
    ),
    bouncing_ball: (
        "x vx p_x",
        {
            136: (0.091927999999997, -4.6708, 0.0),
            137: (0.090760299999997, 4.20372, 8.92357),
            138: (0.111656275, 4.15467, 0.0),
            999: (0.32684065574582, -0.68872501053001, 0.0),
            2000: (0.099959190434125, -7.0374558958086e-10, 0.049049998514305),
        },
    ),
    rolling_friction_ball: (
        "x y vx vy Oz lam_n",
        {
            136: (0.091927999999998, 0.0, -4.6708, 0.0, 1.0, 0.0),
            138: (0.111656275, 0.0013446269554456, 4.1546699999999, 0.17928359405941, 0.89283594059406, 0.0),
            1000: (0.3232744056929, 0.36157339239536, -0.73777501053018, 0.10051234159459, 0.52682651594585, 0.0),
            3000: (0.099959190433473, 0.50082604742532, -2.7755575615629e-17, 2.472087378946e-60, 0.0, 0.04904999999999),
        },
    ),
    bouncing_box: (
        "z vz",
        {
            284: (0.10955799999999, -13.9302),
            286: (0.032794749999985, 11.1834),
        },
    ),
    slide_to_roll: (
        "vx omega slip",
        {
            1: (2.9978571428571, 0.026785714285714, 2.9925),
            200: (2.5714285714286, 5.3571428571429, 1.5),
            399: (2.145, 10.6875, 0.0074999999999998),
            401: (2.1428571428571, 10.714285714286, 0.0),
            800: (2.1428571428571, 10.714285714286, 0.0),
        },
    ),
    torque_free_top: (
        "quat_w quat_x quat_y quat_z Ox Oy",
        {
            1: (0.99994200075658, 0.0039996124766643, 3.4283232250596e-05, 0.0099998523804799, 0.79988245185836, 0.013713614004039),
            500: (0.47840525888976, 0.0064318230558013, 0.014148237929715, -0.87800163284716, -0.52597049442557, 0.60278938195171),
            1000: (-0.54185647126021, -0.020380296799968, 0.023356873897389, -0.83989919900993, -0.10838759748431, -0.79262357314906),
        },
    ),
}


@pytest.mark.parametrize("run", CHECKPOINTS, ids=lambda run: run.__name__)
def test_checkpoints(run):
    compare_at_checkpoints(trajectory_of(run), CASES[run][1], *CHECKPOINTS[run])


@pytest.mark.reference
@needs_collection
@pytest.mark.parametrize("run", CASES, ids=lambda run: run.__name__)
def test_full_reference(run):
    name, bounds = CASES[run]
    compare_in_full(name, trajectory_of(run), bounds)


def test_first_impact_of_the_ball_that_spins():
    """Case ne_rolling_friction_ball, whose first impact has a closed form for the lever of the radius; then rest."""
    columns, lever, spin = trajectory_of(rolling_friction_ball), RADIUS, 1.0
    p = 8.92357
    lam_r = 0.01 * p
    lam_t = (0.9 * lever * spin + lever * (spin - lam_r)) / (1 + lever**2)
    wanted = {"vx": 4.20372, "lam_n": p, "vy": lam_t, "Oz": spin - lam_r - lever * lam_t}
    for name, value in wanted.items():
        np.testing.assert_allclose(columns[name][137], value, rtol=0, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(np.hypot(columns["lam_t1"], columns["lam_t2"])[137], lam_t, atol=1e-6)
    np.testing.assert_allclose(np.hypot(columns["lam_r1"], columns["lam_r2"])[137], lam_r, atol=1e-6)
    assert abs(columns["Oz"][:137] - 1).max() == abs(columns["vy"][:137]).max() == 0


def test_cones_and_rest_of_the_ball_that_spins():
    """Case ne_rolling_friction_ball."""
    columns = trajectory_of(rolling_friction_ball)
    assert (np.hypot(columns["lam_t1"], columns["lam_t2"]) <= 0.6 * columns["lam_n"] + 1e-8).all()
    assert (np.hypot(columns["lam_r1"], columns["lam_r2"]) <= 0.01 * columns["lam_n"] + 1e-8).all()
    np.testing.assert_allclose(columns["lam_n"][-1], GRAVITY * 0.005, atol=1e-10)
    assert max(abs(columns[name][-1]) for name in SPEED.split()) < 1e-10


@pytest.mark.reference
@needs_collection
def test_ball_that_spins_to_its_second_impact():
    """Case ne_rolling_friction_ball: exact up to the first impact, the height within 2e-3 to t = 2; its lateral motion is another."""
    compare_in_full("ne_rolling_friction_ball", trajectory_of(rolling_friction_ball), [
        Bound(1e-10, f"{PLACE} {TURN} {SPEED}", 135), Bound(1e-6, "vx lam_n", 137), Bound(2e-3, "vx", 400),
    ])  # fmt: skip


def test_box_comes_to_rest():
    columns = trajectory_of(bouncing_box)
    assert abs(columns["z"][-1]) < 1e-3
    np.testing.assert_allclose(columns["lambda_norm_sum"][-1], GRAVITY * 0.005, atol=1e-8)
    assert abs(np.array([columns[name] for name in ("x", "y", "vx", "vy", "Ox", "Oy", "Oz")])).max() < 1e-9


def test_sphere_rolls_when_the_closed_form_says():
    columns = trajectory_of(slide_to_roll)
    assert 399 <= np.flatnonzero(columns["slip"] < 1e-9)[0] <= 401
    np.testing.assert_allclose(columns["vx"][-1], SPHERE["speed"] * 5 / 7, rtol=0, atol=1e-9)
