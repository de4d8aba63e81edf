"""The examples against checkpoints of the established code's published or recomputed trajectories, and in full where these are at hand.

Case names are those of the reference collection; tolerances are the ones it states.
"""

import numpy as np
import pytest

import nsds
from nsds.examples import EXAMPLES
from nsds.status import is_event
from tests.paths import REFERENCE
from tests.reference_cases import needs_collection
from tests.scenes.runs import tolerances

# row of the full series: values of the columns named with the case below
BALL = {
    1: (0.999877375, -0.04905, 0.0),
    91: (0.005633874999998808, 3.973050000000009, 8.436600000000018),
    500: (0.3956807012500005, -1.628950500000001, 0.0),
    1200: (0.06651538446213634, -0.742746976324602, 0.0),
    1720: (-2.288488996310468e-05, -9.811162260293937e-06, 0.04902928754632963),
    1999: (-2.288618090550717e-05, 2.775557561562891e-17, 0.04905000000000773),
}
CAM = {
    192: (0.00041889232061448627, -10.568135052410504, 0.0),
    193: (0.00031321097009038207, 8.454508041928408, 23.2983757068568),
    2424: (-0.0001490311319272418, 6.550522918121688, 18.05128696007024),
    4972: (-0.0004059105561193671, 7.532476673208025, 20.707853198705642),
    9916: (-0.00018439309495931285, 6.336679689487082, 17.42273056055517),
    10000: (0.04821495654551462, 5.107474792719162, 0.0),
}
CAM_PROFILE = {  # t: position, velocity
    0.0: (0.1, 0.0),
    0.03: (0.2468373357741536, 5.540737694914277),
    0.06: (0.1919962969326244, -8.343072875925586),
    0.36: (0.2006126859979274, 8.795515730143999),
    0.7002: (0.2457378087449923, 5.969672507753043),
}
COLUMN = {  # q and v of the beads 0, 4 and 9
    858: (0.09927682412500645, 3.783226499999964, 1.097278895000006, -4.20848999999996, 2.347278895000006, -4.20848999999996),
    1200: (0.2047446374978044, -0.2465748724967377, 1.030436432120269, 0.3967825220851428, 2.037095888146139, 0.6943219968260046),
    1800: (0.1032961888383424, -1.407092781069882, 0.9286273854485091, -0.5343346857922028, 2.001907350680248, -1.572478211139063),
    2400: (0.09999849387719148, 6.556343092305877e-08, 0.8999828851322856, 2.033099017724818e-06, 1.899994375464055, 0.03472301637968242),
    3999: (0.09999849387805411, 0.0, 0.8999828851590363, 0.0, 1.899974434589526, 0.0),
}
BAR = {  # q_first, v_first, lambda, v_last, v_mid
    250: (2.062789924360238e-19, -0.1, 0.0, -0.1, -0.1),
    252: (-2.999999999997902e-07, 0.0, 0.001454264143819822, -0.1, -0.1),
    345: (-2.999999999997953e-07, 0.0, 0.002542036386347422, -0.07501628788720822, 0.003117124453147839),
    600: (3.096273614389188e-05, 0.1038198980270009, 0.0, 0.08751366036446025, 0.0776100261440428),
    748: (6.000091122626505e-05, 0.09497655627264671, 0.0, 0.08676275060270563, 0.1085050416119449),
}


def ball():
    trajectory = nsds.simulate(nsds.examples.bouncing_ball(), t_end=10.0, h=5e-3)
    return {"q0": trajectory["ball"]["q"][:, 0], "v0": trajectory["ball"]["v"][:, 0], "lambda": trajectory["floor"]["lambda"]}


def cam():
    trajectory = nsds.simulate(nsds.examples.cam_follower(), t_end=1.0, h=1e-4)
    follower = trajectory["follower"]
    return {"q": follower["q"][:, 0], "v": follower["v"][:, 0], "lambda": trajectory["contact"]["lambda"], "t": trajectory["t"]}


def column():
    beads = nsds.simulate(nsds.examples.column_of_beads(), t_end=2.0, h=5e-4)["beads"]
    return {f"{name}_{i}": beads[name][:, i, 0] for i in range(10) for name in "qv"}


def bar():
    system = nsds.examples.impacting_bar()
    trajectory = nsds.simulate(system, t_end=1.498e-3, h=2e-6, scheme=nsds.moreau_jean(gamma=0.0))
    q, v, impulse = trajectory["bar"]["q"], trajectory["bar"]["v"], trajectory["wall"]["lambda"]
    ledger = nsds.energy(system, trajectory)
    columns = {"q_first": q[:, 0], "v_first": v[:, 0], "q_last": q[:, -1], "v_last": v[:, -1], "q_mid": q[:, 50], "v_mid": v[:, 50]}
    energies = {"kinetic_x2": 2 * ledger["kinetic"], "potential_x2": 2 * ledger["potential"]}
    energies = {name: np.r_[0.0, column[1:]] if name == "potential_x2" else column for name, column in energies.items()}
    return {**columns, **energies, "lambda": impulse, "force_first": impulse / 2e-6, "t": trajectory["t"]}


@pytest.mark.parametrize(
    ("run", "names", "rows"),
    [
        pytest.param(ball, ("q0", "v0", "lambda"), BALL, id="BouncingBallTS"),
        pytest.param(cam, ("q", "v", "lambda"), CAM, id="CamFollower-CamForce"),
        pytest.param(column, ("q_0", "v_0", "q_4", "v_4", "q_9", "v_9"), COLUMN, id="ColumnOfBeadsTS"),
        pytest.param(bar, ("q_first", "v_first", "lambda", "v_last", "v_mid"), BAR, id="ImpactingBar"),
    ],
)
def test_checkpoints(run, names, rows):
    columns = run()
    for k, wanted in rows.items():
        np.testing.assert_allclose([columns[name][k] for name in names], wanted, rtol=0, atol=1e-8)


def test_cam_profile_checkpoints():
    position, velocity, _ = nsds.examples.cam_motion(list(CAM_PROFILE), rpm=358)
    np.testing.assert_allclose(np.stack([position, velocity], axis=1), list(CAM_PROFILE.values()), atol=1e-8)


def test_cam_motion_is_consistent_with_its_derivatives():
    t = np.linspace(0.0, 0.5, 20001)
    position, velocity, acceleration = nsds.examples.cam_motion(t, rpm=358)
    step = t[1] - t[0]
    assert abs(np.gradient(position, step) - velocity)[1:-1].max() < 0.05  # the profile has kinks where sectors meet
    smooth = abs(np.gradient(acceleration)) < 1.0
    np.testing.assert_allclose(np.gradient(velocity, step)[smooth][5:-5], acceleration[smooth][5:-5], atol=2.0)


def test_resting_follower_stays_at_rest():
    """Case CamFollower-CF: no force, q = v = 0, a contact at exactly zero."""
    system = nsds.system(
        follower=nsds.lagrangian_linear(M=[[1.221]], K=[[1430.8]], fext=[0.0], q=[0.0], v=[0.0]),
        contact=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.8), on="follower"),
    )
    trajectory = nsds.simulate(system, t_end=1.0, h=1e-4)
    assert not trajectory["follower"]["q"].any()
    assert trajectory["contact"]["active"][1:].all()


@pytest.mark.reference
@needs_collection
@pytest.mark.parametrize(
    ("case", "run", "relative"),
    [
        ("BouncingBallTS", ball, ()),
        ("CamFollower-CamForce", cam, ()),
        ("ColumnOfBeadsTS", column, ()),
        ("ImpactingBar", bar, ("force_first", "kinetic_x2", "potential_x2")),
    ],
)
def test_full_reference(case, run, relative):
    with np.load(REFERENCE / case / "ref.npz") as file:
        reference = dict(file)
    columns = run()
    rows = reference.pop("row").astype(int)
    compared = sorted(set(columns) & set(reference))
    assert len(compared) >= 3
    for name in compared:
        tolerance = 1e-8 * (abs(reference[name]).max() if name in relative else 1.0)
        np.testing.assert_allclose(columns[name][rows], reference[name], rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.reference
@needs_collection
def test_full_reference_of_the_cam_profile():
    with np.load(REFERENCE / "CamFollower-CF" / "ref.npz") as file:
        position, velocity, _ = nsds.examples.cam_motion(file["t"], rpm=358)
        np.testing.assert_allclose(position, file["cam_position"], rtol=0, atol=1e-8)
        np.testing.assert_allclose(velocity, file["cam_velocity"], rtol=0, atol=1e-8)


def test_tip_of_the_arm_leaves_the_wall_when_the_controller_pulls():
    """On the wall the tip is at rest across it: it is pressed as long as the acceleration that the controller wants points into it."""
    run = EXAMPLES["two_link_manipulator"].run | {"t_end": 1.5}
    rows = nsds.simulate(nsds.examples.two_link_manipulator(), **run)
    t, pressed = rows["t"], rows["wall"]["lambda"] > 0
    circle, speed = -0.4 * np.cos(np.pi * t), 0.4 * np.pi * np.sin(np.pi * t)
    wanted = -(np.pi**2) * circle + 20 * speed + 100 * (1.1 + circle - 1.3)
    assert pressed[(t > 0.8) & (wanted > 0)].all()
    assert not pressed[1:][(wanted[1:] < 0) & (wanted[:-1] < 0)].any()


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_runs_without_a_failed_step(name):
    example = EXAMPLES[name]
    system = example.build()
    t_end = np.max(system["t"]) + 300 * example.run["h"]
    trajectory = nsds.simulate(system, **example.run | {"t_end": t_end})
    assert ((trajectory["status"] == 0) | is_event(trajectory["status"])).all()
    settings = {key: value for key, value in example.run.items() if key in ("scheme", "solver")}
    member, rows = (system, trajectory) if trajectory.ndim == 1 else (system.reshape(-1)[0], trajectory[0])
    assert (rows["residual"] <= tolerances(member, rows, settings)).all()
