"""Lagrangian systems against trajectories of the established code, see `tests.reference_cases`, and against exact solutions."""

import math

import numpy as np
import pytest

import nsds
from tests.reference_cases import Bound, compare_at_checkpoints, compare_in_full, needs_collection, numbered, run_example, trajectory_of

CRANK, ROD, HALF_LENGTH, HALF_HEIGHT, CLEARANCE = 0.153, 0.306, 0.05, 0.025, 0.001


def one_iteration(**options):
    """The published runs end Newton's method after one iteration."""
    return nsds.moreau_jean(newton_tol=np.inf, **options)


def double_pendulum(scheme=None):
    _, rows = run_example("double_pendulum", scheme=one_iteration(theta=0.500001) if scheme is None else scheme)
    q, v = rows["pendulum"]["q"], rows["pendulum"]["v"]
    x, y, speed = np.cumsum(np.sin(q), axis=1), np.cumsum(-np.cos(q), axis=1), np.cumsum(np.cos(q) * v, axis=1)
    positions = {f"{name}{i + 1}": column[:, i] for name, column in (("x", x), ("y", y), ("xdot", speed)) for i in range(2)}
    return numbered(q=q, v=v) | positions


def double_pendulum_converged():
    return double_pendulum(nsds.moreau_jean(theta=0.500001))


def pendulum_weight(t, q, v, z, out):
    out[0] = 10 * math.sin(q[0])


def pendulum_weight_by_q(t, q, v, z, out):
    out[0, 0] = 10 * math.cos(q[0])


def bob(q, z, out):
    out[0] = math.sin(q[0])


def bob_by_q(q, z, out):
    out[0, 0] = math.cos(q[0])


def pendulum_wall(scheme=None):
    system = nsds.system(
        pendulum=nsds.lagrangian(mass=[1.0], fint=pendulum_weight, jac_q=pendulum_weight_by_q, q=[1.0], v=[0.0]),
        wall=nsds.interaction(nsds.scleronomous(bob, bob_by_q, m=1), nsds.newton_impact(0.9), on="pendulum"),
    )
    rows = nsds.simulate(system, t_end=10.0, h=5e-4, scheme=one_iteration(theta=0.500001) if scheme is None else scheme)
    q, v = rows["pendulum"]["q"][:, 0], rows["pendulum"]["v"][:, 0]
    return {"q": q, "v": v, "X": np.sin(q), "Y": -np.cos(q), "Xdot": np.cos(q) * v}


def pendulum_wall_converged():
    return pendulum_wall(nsds.moreau_jean(theta=0.500001))


def slider_crank(rows):
    """Columns of both cases of the mechanism; corners are numbered as there."""
    q, v, corners = rows["mechanism"]["q"], rows["mechanism"]["v"], rows["corners"]
    x, y = (CRANK * wave(q[:, 0]) + ROD * wave(q[:, 1]) for wave in (np.cos, np.sin))
    named = numbered(q=q, v=v) | {"crank_rev": q[:, 0] / (2 * np.pi), "slider_x": (x - ROD) / CRANK, "slider_y": y / CLEARANCE}
    for i, (side, end) in enumerate([(1, -1), (1, 1), (-1, -1), (-1, 1)]):
        height = y + end * HALF_LENGTH * np.sin(q[:, 2]) + side * HALF_HEIGHT * np.cos(q[:, 2])
        named[f"corner{i + 1}"] = (height - side * HALF_HEIGHT) / CLEARANCE
        for names, field in (("gap g", "y"), ("un gdot", "ydot"), ("lam lambda", "lambda")):
            named |= {f"{name}{i + 1}": corners[field][:, 2 * i] for name in names.split()}
    return named


def slider_crank_moreau_jean():
    """Impacts in the clearances make 1e-4 of the default tolerance of Newton's iteration by the end: a sharper one has 4e-7."""
    return slider_crank(run_example("slider_crank", scheme=nsds.moreau_jean(newton_tol=1e-11))[1])


def slider_crank_free_flight():
    return slider_crank(run_example("slider_crank", {"rotation": 0.0}, t_end=27e-4, h=1e-4, scheme=one_iteration())[1])


def slider_crank_free_flight_converged():
    return slider_crank(run_example("slider_crank", {"rotation": 0.0}, t_end=27e-4, h=1e-4)[1])


def spinning_disk():
    _, rows = run_example("spinning_disk", fields=["disk", "disk.p", "floor"])
    disk = rows["disk"]
    named = {"omega": disk["v"][:, 2], "angle": disk["q"][:, 2], "p0": disk["p"][:, 0], "lambda_n": rows["floor"]["lambda"][:, 0]}
    return numbered(q=disk["q"], v=disk["v"]) | named


def woodpecker():
    _, rows = run_example("woodpecker", t_end=14999 * 2e-5)
    (y, phi_M, phi_S), (vy, omega_M, omega_S) = rows["toy"]["q"].T, rows["toy"]["v"].T
    return {"y": y, "phi_M": phi_M, "phi_S": phi_S, "vy": vy, "omega_M": omega_M, "omega_S": omega_S}


def impacting_stick():
    _, rows = run_example("impacting_stick", fields=["stick", "stick.p", "floor"])
    (x, y, phi), (vx, vy, omega), p = rows["stick"]["q"].T, rows["stick"]["v"].T, rows["stick"]["p"]
    u, lam = rows["floor"]["ydot"], rows["floor"]["lambda"]
    mean = np.vstack([np.zeros(2), (u[1:] + u[:-1]) / 2])
    work = mean * lam
    named = {"x": x, "y": y, "phi": phi, "vx": vx, "vy": vy, "omega": omega, "p_x": p[:, 0], "gap": rows["floor"]["y"][:, 0]}
    contact = {"u_n": u[:, 0], "u_t": u[:, 1], "lambda_n": lam[:, 0], "lambda_t": lam[:, 1]}
    works = {"normal_work": work[:, 0], "tangential_work": work[:, 1], "dissipation": 0.01 * abs(mean[:, 1]) * lam[:, 0]}
    sums = {f"{name}_sum": works[name].cumsum() for name in ("normal_work", "tangential_work")}
    return named | contact | works | sums | {"kinetic_energy": (vx**2 + vy**2 + omega**2 / 12) / 2, "potential_energy": 10 * y}


def bouncing_ball_global_form():
    """The case solves for velocity and impulse together; the reduced problem gives the same."""
    _, rows = run_example("bouncing_ball", fields=["ball", "ball.p", "floor"])
    return {"q0": rows["ball"]["q"][:, 0], "v0": rows["ball"]["v"][:, 0], "p0": rows["ball"]["p"][:, 0], "lam": rows["floor"]["lambda"]}


def schatzman_paoli():
    """The velocity of the case is the central difference, of the rows around the last; its lambda is h times an impulse."""
    _, rows = run_example("bouncing_ball", scheme=nsds.schatzman_paoli())
    v = rows["ball"]["v"][:, 0]
    return {"q0": rows["ball"]["q"][:, 0], "v0": np.append(v[:1], (v[1:] + v[:-1]) / 2), "lambda": 5e-3 * rows["floor"]["lambda"]}


def d1_minus_linear():
    """The lambda of the case is the impulse of the impact, without that of the force lambda2 at the end of a step in contact."""
    _, rows = run_example("bouncing_ball", h=5e-4, scheme=nsds.d1_minus_linear())
    return {"q0": rows["ball"]["q"][:, 0], "v0": rows["ball"]["v"][:, 0], "lambda": rows["floor"]["lambda"]}


def combined_projection():
    _, rows = run_example("bouncing_ball", scheme=nsds.moreau_jean_combined_projection())
    return {"q0": rows["ball"]["q"][:, 0], "v0": rows["ball"]["v"][:, 0], "lambda1": rows["floor"]["lambda"]}


def direct_projection():
    _, rows = run_example("bouncing_ball", scheme=nsds.moreau_jean_direct_projection())
    return {"q0": rows["ball"]["q"][:, 0], "v0": rows["ball"]["v"][:, 0], "lam_vel": rows["floor"]["lambda"]}


def slider_crank_projected():
    scheme = nsds.moreau_jean_direct_projection(newton_tol=np.inf)
    return slider_crank(run_example("slider_crank", {"rotation": 0.0}, h=1e-4, scheme=scheme)[1])


def guitar_string():
    _, rows = run_example("guitar_string")
    named = {f"{name}{j + 1}": rows["string"][name][:, j] for name in "qv" for j in range(20)}
    return named | {"impulse1": rows["frets"]["lambda"], "gap1": rows["frets"]["y"]}


PENDULUM = "q0 q1 v0 v1 x1 y1 x2 y2 xdot1 xdot2"
FLIGHT = "crank_rev q1 q2 v0 v1 v2 corner1 corner2 corner3 corner4 slider_x slider_y g1 g2 g3 g4 gdot1 gdot2 gdot3 gdot4"
SPEEDS = "v0 v1 v2 un1 un2 un3 un4"
STICK = "x y phi vx vy omega p_x gap u_n u_t lambda_n lambda_t kinetic_energy potential_energy"
Q = " ".join(f"q{j}" for j in range(1, 21))
V = Q.replace("q", "v")
# name of the case, and its acceptance as the collection states it
CASES = {
    double_pendulum: ("DoublePendulum", [Bound(1e-8, PENDULUM)]),
    double_pendulum_converged: ("DoublePendulum", [Bound(1e-6, PENDULUM, 1200)]),
    pendulum_wall: ("pendulum_wall", [Bound(1e-10, "q v X Y Xdot")]),
    pendulum_wall_converged: ("pendulum_wall", [Bound(1e-5, "q v X Y Xdot", 10000)]),
    slider_crank_moreau_jean: (
        "slider_crank_moreau_jean",
        [Bound(1e-6, "crank_rev"), Bound(1e-5, "q1 q2 slider_x gap1 gap2 gap3 gap4"), Bound(1.0, SPEEDS), Bound(1e-4, SPEEDS, 2000)],
    ),
    slider_crank_free_flight: ("SliderCrank-MoreauJeanDirectProjectionOSI", [Bound(1e-8, FLIGHT, 27)]),
    slider_crank_free_flight_converged: ("SliderCrank-MoreauJeanDirectProjectionOSI", [Bound(2e-2, "v0 v1 v2", 27)]),
    spinning_disk: ("Ball2D-friction", [Bound(1e-8, "q0 q1 angle v0 v1 omega p0 lambda_n")]),
    woodpecker: ("Woodpecker", [Bound(1e-8, "y phi_M phi_S"), Bound(3e-6, "vy omega_M omega_S")]),
    impacting_stick: (
        "ImpactingStick",
        [Bound(1e-8, STICK), Bound(1e-8, "normal_work tangential_work dissipation normal_work_sum tangential_work_sum")],
    ),
    bouncing_ball_global_form: ("bouncing_ball_global_form", [Bound(1e-9, "q0 v0 p0 lam")]),
    schatzman_paoli: ("BouncingBallTS-SchatzmanPaoliOSI", [Bound(1e-8, "q0 lambda", 1200), Bound(1e-7, "v0", 1200)]),
    d1_minus_linear: ("BouncingBallTS-D1MinusLinearOSI", [Bound(1e-8, "q0 v0"), Bound(1e-8, "lambda", 16000)]),
    combined_projection: ("BouncingBallTS-MoreauJeanCombinedProjectionOSI", [Bound(1e-8, "q0 v0 lambda1")]),
    direct_projection: ("bouncing_ball_direct_projection_all", [Bound(1e-9, "q0 v0 lam_vel")]),
    slider_crank_projected: (
        "SliderCrank-MoreauJeanDirectProjectionOSI",
        [Bound(1e-8, "q1 q2 v0 v1 v2 g1 g2 g3 g4", 27), Bound(3e-2, "crank_rev")],
    ),
    guitar_string: ("modal_string_one_fret", [Bound(1e-10, Q), Bound(1e-7, V), Bound(1e-8, "impulse1")]),
}
# columns, and their values in some rows of the full series
CHECKPOINTS = {
    double_pendulum: (
        "q0 q1 v0 v1 x2 xdot2",
        {
            600: (0.093701011267375, 0.12305387138699, -0.07467685029722, -0.44131984152684, 0.21630751175212, -0.51233202998319),
            1290: (0.018258488617795, -0.018522808980309, -0.3611258535376, 0.36201944768247, -0.00026427566432092, 0.00089168551354463),
            1392: (0.00029870791035097, -0.000354240957267, 0.37503721626906, -0.36940319087453, -5.553304394938e-05, 0.005634031840495),
            10000: (0.067561839766351, -0.056821493362281, 0.058870777376071, 0.043584591555337, 0.010719530800694, 0.10225071772598),
        },
    ),
    pendulum_wall: (
        "q v",
        {
            90: (0.99148789385531, -0.37796903930407),
            1068: (0.011384440385644, 2.7287012418569),
            6997: (0.29596463133926, -2.0041177576361),
            20000: (0.2735369935545, 0.61172574057755),
        },
    ),
    slider_crank_moreau_jean: (
        "crank_rev q1 q2 v0 v1 v2",
        {
            90: (0.021023073084275, -0.065714264541655, -9e-06, 140.89994349841, -69.386455480983, -0.01),
            276: (0.057723122560858, -0.17500881844924, 0.00015052093052631, 107.79862036615, -52.213967695787, 3.8927400378625),
            1992: (0.25605283719667, -0.5199779456386, 7.5040734577526e-09, 71.626988280778, 1.2093697244641, 0.0),
            20000: (2.888782578642, 0.32460048408754, -1.0676283561545e-07, 74.787735003643, -32.008120727318, 0.0),
        },
    ),
    slider_crank_free_flight: (
        "q1 v0 v1 g1 corner2 slider_x",
        {
            1: (-0.0074959576340834, 149.86255546646, -74.919152681668, 0.00099987894921729, 0.0001210507827136, 0.99983141604753),
            14: (-0.099020904488629, 131.78538976495, -63.672854247597, 0.00080540132727051, 0.19459867272949, 0.97020434599641),
            27: (-0.17219904392452, 109.91601321982, -49.520787451888, 9.9386077229979e-06, 0.990061392277, 0.90748025126291),
        },
    ),
    spinning_disk: (
        "q0 q1 v0 v1 omega lambda_n",
        {
            63: (0.513301375, 0.0, -3.09015, 0.0, 2.0, 0.0),
            64: (0.5125288375, 0.00071428571428571, 2.781135, 0.28571428571429, 0.57142857142857, 5.920335),
            1000: (0.51725249886856, 1.3378571428571, -0.1667495789072, 0.28571428571429, 0.57142857142857, 0.0),
            1999: (0.49996710391176, 2.765, 0.0, 0.28571428571429, 0.57142857142857, 0.049050000000008),
        },
    ),
    woodpecker: (
        "y phi_M phi_S vy omega_M omega_S",
        {
            1000: (-0.0043735470526239, -0.1036, -0.45230998305909, -0.040655397033374, 0.0, -10.199584839736),
            3696: (-0.0057795775766352, 0.0065893049695696, 0.0061794952079324, -0.35328782310288, 31.915210491041, 14.466048961476),
            8000: (-0.023204749404395, -0.10345426122754, -0.39330494714652, -0.1670652858372, 0.0, -9.1655218894703),
            14999: (-0.041348186768337, -0.10346846827174, -0.34093397555043, -0.26013733079138, 0.0, -8.3275553532393),
        },
    ),
    impacting_stick: (
        "phi vy omega u_t lambda_n lambda_t",
        {
            603: (0.79142816339742, -0.503, 0.1, 0.46485849511725, 0.0, 0.0),
            604: (0.79151716453986, -0.13011652767641, 1.680022848792, -0.086593291866512, 0.37388347232359, 0.0037388347232359),
            1636: (0.96497212492173, -0.84927393290697, 3.2120705787537, -0.40767313847976, 0.31284259476942, 0.0031284259476942),
        },
    ),
    bouncing_ball_global_form: (
        "q0 v0 p0 lam",
        {
            91: (0.0056338749999979, 3.97305, 8.4366, 8.4366),
            500: (0.39568070124999, -1.6289505, 0.0, 0.0),
            1000: (0.15135368026251, -0.75225812575498, 0.0, 0.0),
            2000: (-2.2886180909074e-05, 0.0, 0.049050000000002, 0.049050000000002),
        },
    ),
    schatzman_paoli: (
        "q0 v0 lambda",
        {
            1: (0.99975475, -0.024524999999997, 0.0),
            91: (-0.015996375000089, -3.3770125000189, 0.010620124999807),
            92: (0.0038688749999089, 0.81676249998076, 0.031808125000189),
            1000: (0.13945433051443, -0.82172715025496, 0.0),
        },
    ),
    d1_minus_linear: (
        "q0 v0 lambda",
        {
            902: (0.0023180950000073, -4.42431, 0.0),
            903: (0.00010471375000735, -4.429215, 0.0),
            904: (-0.0021111199999926, 3.990708, 8.4248279999999),
            2761: (0.34635602124999, 2.4626043, 0.0),
        },
    ),
    combined_projection: (
        "q0 v0 lambda1",
        {
            91: (0.0, 3.97305, 8.4366),
            92: (0.019742625, 3.924, 0.0),
            400: (0.0, 3.1828545, 6.7684095),
            1000: (0.0, 1.5992932753845, 3.4253358035895),
            1999: (5.0393791101908e-11, 0.0, 0.049050000000008),
        },
    ),
    direct_projection: (
        "q0 v0 lam_vel",
        {
            90: (0.0067374999999975, -4.4145, 0.0),
            91: (0.0056338749999975, 3.97305, 8.4366),
            400: (0.0010599625000424, -3.5855549999999, 0.0),
            1000: (0.15880033663751, -0.75225812575497, 0.0),
            1999: (0.00064170154158, -0.030794897228018, 0.0),
        },
    ),
    guitar_string: (
        "q1 q7 v1 v7 impulse1",
        {
            137: (-0.00060985338019683, -7.2871024118758e-06, -0.28888419491827, -0.010762287629875, 0.0),
            138: (-0.00062167991786548, -6.7955786351839e-06, -0.23653075337289, 0.0098304755338375, 0.043117148613129),
            500: (-0.00074922140985356, 1.8947807958316e-05, -0.036561569070487, 0.01058615233561, 0.0),
            1999: (0.00063022888394496, 2.6631874281079e-05, 0.13234775356259, -0.012736591772596, 0.0),
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


def test_first_impacts_of_the_slider():
    """Steps of case slider_crank_moreau_jean in which a corner hits the guide."""
    columns = trajectory_of(slider_crank_moreau_jean)
    hits = np.any([columns[f"lam{i}"] > 0 for i in range(1, 5)], axis=0)
    assert (1 + np.flatnonzero(hits[1:] & ~hits[:-1]))[:4].tolist() == [270, 353, 382, 394]


GRAVITY, DROP, SPRING_AT, ROOF, COMPLIANCE = 9.81, 1.0, 0.1, 0.7, 0.01


def compliant_floor(h):
    """Rows of case BouncingBallTS-CompliantContact, whose floor we discretise consistently: ``0 <= y_{k+1} ⟂ lambda_{k+1} >= 0``."""
    relation = nsds.lagrangian_linear_relation
    floor, roof = relation(H=[[1, 0, 0]], b=[-SPRING_AT], D=[[COMPLIANCE]]), relation(H=[[-1, 0, 0]], b=[ROOF])
    system = nsds.system(
        ball=nsds.lagrangian_linear(M=[1.0, 1.0, 0.004], fext=[-GRAVITY, 0, 0], q=[DROP, 0, 0], v=[0, 0, 0]),
        roof=nsds.interaction(roof, nsds.newton_impact(1.0), on="ball"),
        floor=nsds.interaction(floor, nsds.complementarity(), on="ball"),
    )
    return nsds.simulate(system, t_end=10.0, h=h)


def half_oscillator():
    """Circular frequency, speed at the spring, amplitude about rest, time in contact, time from floor to roof, speed at the roof."""
    omega, speed = COMPLIANCE**-0.5, math.sqrt(2 * GRAVITY * (DROP - SPRING_AT))
    at_roof = math.sqrt(speed**2 - 2 * GRAVITY * (ROOF - SPRING_AT))
    contact = 2 * (math.pi - math.atan2(speed * omega, GRAVITY)) / omega
    return omega, speed, math.hypot(GRAVITY / omega**2, speed / omega), contact, (speed - at_roof) / GRAVITY, at_roof


def exact_height(t):
    """Free fall from the start, half an oscillation on the spring, up to the roof and back, over and over."""
    omega, speed, amplitude, contact, flight, at_roof = half_oscillator()
    first = speed / GRAVITY
    s = (t - first) % (contact + 2 * flight)
    up, down = s - contact, s - contact - flight
    on_spring = SPRING_AT - GRAVITY / omega**2 - amplitude * np.cos(omega * (s - contact / 2))
    upwards, downwards = SPRING_AT + speed * up - GRAVITY * up**2 / 2, ROOF - at_roof * down - GRAVITY * down**2 / 2
    return np.where(t < first, DROP - GRAVITY * t**2 / 2, np.where(up < 0, on_spring, np.where(down < 0, upwards, downwards)))


def test_compliant_floor_holds_in_every_step():
    h = 5e-4
    rows = compliant_floor(h)
    q, v, lam, roof = rows["ball"]["q"][:, 0], rows["ball"]["v"][:, 0], rows["floor"]["lambda"], rows["roof"]["lambda"]
    y = q - SPRING_AT + COMPLIANCE * lam
    np.testing.assert_allclose(rows["floor"]["y"], y, atol=1e-14)
    np.testing.assert_allclose(np.diff(v), h * (lam[1:] - GRAVITY) - roof[1:], atol=1e-13)
    np.testing.assert_allclose(np.diff(q), h * (v[1:] + v[:-1]) / 2, atol=1e-14)
    assert (np.minimum(y, lam)[1:] > -1e-14).all()
    assert abs(np.minimum(y, lam)[rows["floor"]["active"] == 1]).max() < 1e-14


def test_compliant_floor_converges_to_the_exact_half_oscillator():
    errors = []
    for h in (5e-4, 1.25e-4):
        rows = compliant_floor(h)
        early = rows["t"] < 2.0
        errors.append(abs(rows["ball"]["q"][:, 0] - exact_height(rows["t"]))[early].max())
    assert errors[0] < 0.1
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.15)


def test_compliant_floor_loses_energy_in_proportion_to_the_step():
    """Each step loses ``D (lambda_{k+1} - lambda_k)^2 / 2``: in one contact ``h / (2 D)`` times the integral of v² over it."""
    h = 6.25e-5
    rows = compliant_floor(h)
    v, q, lam = rows["ball"]["v"][:, 0], rows["ball"]["q"][:, 0], rows["floor"]["lambda"]
    energy = v**2 / 2 + GRAVITY * q + COMPLIANCE * lam**2 / 2
    omega, _, amplitude, contact, _, _ = half_oscillator()
    loss = h / (2 * COMPLIANCE) * (amplitude * omega) ** 2 * (contact - math.sin(omega * contact) / omega) / 2
    at_roof = np.flatnonzero(rows["roof"]["lambda"] > 0)
    np.testing.assert_allclose(GRAVITY - energy[at_roof[0]], loss, rtol=0.01)
    assert (np.diff(energy) < 1e-13).all()


def test_projected_slider_agrees_in_statistics():
    """Case SliderCrank-MoreauJeanDirectProjectionOSI: after the first impacts only ranges can be compared."""
    columns = trajectory_of(slider_crank_projected)
    gaps = np.array([columns[f"g{i}"] for i in range(1, 5)])
    assert gaps.min() > -1e-8
    assert gaps.max() < 4e-3


def test_string_hits_the_fret_in_the_steps_of_the_case():
    """Case modal_string_one_fret."""
    steps = """138 148 158 167 176 184 190 199 473 482 490 497 504 511 516 520 524 815 827 837 847 854
    862 1158 1167 1176 1183 1188 1193 1199 1209 1497 1510 1521 1530 1538 1546 1832 1851 1860 1868 1875 1882"""
    assert np.flatnonzero(trajectory_of(guitar_string)["impulse1"]).tolist() == [int(step) for step in steps.split()]
