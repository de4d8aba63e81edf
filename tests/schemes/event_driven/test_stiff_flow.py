"""Stiff motions by Radau IIA: its step against a twin, orders, published references, and events in stiff motions."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

import nsds
from nsds._jit import specialised
from nsds.model.layout import table
from nsds.schemes.event_driven import radau5
from nsds.status import CONVERGED, EVENT, JUMP
from tests.memories import memory_with
from tests.schemes.event_driven.test_event_driven import G, happened, linear
from tests.schemes.event_driven.test_flows import circle, pendulum

RELAY = 0.3  # of the switch
PLACES = table("n", "x", "x_new", "x_sampled", "k", "poly", "first", "jac", "newton", "filter", "z", "g", "sizes", "atol", "stage_pivots")


def taken(t, x, h, f, rtol=1e-10, atol=1e-12):
    """(new state, error, coefficients of the dense output) of one step."""
    n, p, at = x.size, np.zeros(1, PLACES), 0
    sizes = {"n": 1, "x": n, "x_new": n, "x_sampled": n, "k": 7 * n, "poly": 4 * n, "first": n, "jac": n * n, "newton": 9 * n * n,
             "filter": n * n, "z": 3 * n, "g": 3 * n, "sizes": 3 * n, "atol": n}  # fmt: skip
    for name, size in sizes.items():
        p[name], at = at, at + size
    p["n"], work, iwork = n, np.zeros(at), np.zeros(3 * n, np.int64)
    s, options = SimpleNamespace(flow=p), SimpleNamespace(rtol=rtol)

    def derivative(t, at, out, *_):
        work[out : out + n] = f(t, work[at : at + n])
        return CONVERGED

    bound = {"derivative": derivative, "time_in_step": lambda t, theta, h: t + theta * h}
    p = p[0]
    work[p["x"] : p["x"] + n], work[p["k"] : p["k"] + n], work[p["atol"] : p["atol"] + n] = x, f(t, x), atol
    specialised(radau5._note_slopes, "here", **bound)(t, s, None, options, memory_with(work, iwork))
    status, error = specialised(radau5._take_step, "here", **bound)(t, h, s, None, options, memory_with(work, iwork))
    assert status == CONVERGED
    return work[p["x_new"] : p["x_new"] + n].copy(), error, work[p["poly"] : p["poly"] + 4 * n].reshape(4, n).copy()


def collocated(t, x, h, f):
    """The same stages by SciPy, from the equations of collocation."""
    s = math.sqrt(6)
    A = np.array([[88 - 7 * s, (296 - 169 * s) / 5, (-16 + 24 * s) / 5], [(296 + 169 * s) / 5, 88 + 7 * s, (-16 - 24 * s) / 5],
                  [160 - 10 * s, 160 + 10 * s, 40]]) / 360  # fmt: skip
    c = np.array([0.4 - s / 10, 0.4 + s / 10, 1])

    def missing(z):
        z = z.reshape(3, -1)
        return (z - h * A @ [f(t + c[i] * h, x + z[i]) for i in range(3)]).ravel()

    return x + fsolve(missing, np.zeros(3 * x.size), xtol=1e-13).reshape(3, -1), c


def test_a_step_is_that_of_the_equations_of_collocation():
    x, h = np.array([1.0, 0.5]), 0.2
    new, _, poly = taken(0.3, x, h, pendulum)
    stages, c = collocated(0.3, x, h, pendulum)
    np.testing.assert_allclose(new, stages[2], rtol=1e-11)
    np.testing.assert_allclose(c[:, None] ** np.arange(4) @ poly, stages, rtol=1e-11)
    np.testing.assert_allclose(poly[0], x)


def test_orders_of_the_step_of_its_dense_output_and_of_its_error():
    ends, inside, errors, theta = [], [], [], np.linspace(0, 1, 21)
    for h in (0.4, 0.2, 0.1):
        new, error, poly = taken(0.0, np.array([1.0, 0.0]), h, circle)
        ends.append(abs(new - [np.cos(h), -np.sin(h)]).max())
        inside.append(abs(theta[:, None] ** np.arange(4) @ poly - np.array([np.cos(h * theta), -np.sin(h * theta)]).T).max())
        errors.append(error)
    for found, order in ((ends, 6), (inside, 4), (errors, 4)):
        assert (abs(np.log2(np.divide(found[:-1], found[1:])) - order) < 0.4).all()


def test_a_step_forgets_what_is_fast():
    """``x' = -1e8 (x - cos t) - sin t`` from far away: on the slow motion after one step, to its order there."""
    new, _, _ = taken(0.0, np.array([3.0]), 0.1, lambda t, x: -1e8 * (x - np.cos(t)) - np.sin(t))
    np.testing.assert_allclose(new, np.cos(0.1), atol=1e-5)


# ----------------------------------------------------------------------------------------------------------------- motions
def van_der_pol(t, x, z, out):
    out[0], out[1] = x[1], z[0] * (1.0 - x[0] * x[0]) * x[1] - x[0]


def simulate(system, t_end, h, **options):
    return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven(flow="radau", **options))


@pytest.mark.parametrize(
    ("mu", "x"),
    [
        (1e3, (1.706167732170483, -8.928097010247975e-4)),  # Test Set for IVP Solvers, VDPOL
        (1e5, (1.70554750, -8.93474982e-6)),  # SciPy's Radau, rtol 1e-11
        (1e6, (1.70554622, -8.93476362e-7)),  # the same, rtol 1e-10
    ],
)
def test_van_der_pols_oscillator_after_more_than_a_period(mu, x):
    part = nsds.first_order(f=van_der_pol, x=[2.0, 0.0], z=[mu])
    rows = simulate(nsds.system(part=part), 2 * mu, 0.1 * mu, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rows["part"]["x"][-1], x, rtol=1e-6)
    assert rows["n_iter"].sum() < 10_000  # an explicit method takes mu^2


@pytest.mark.parametrize("mu", [1e1, 1e3])
def test_a_switch_in_a_stiff_oscillator(mu):
    """A relay pushes against x: events at its zeros, where steps of SciPy's Radau are begun anew."""
    part = nsds.first_order(f=van_der_pol, x=[2.0, 0.0], z=[mu])
    relation = nsds.first_order_linear_relation(C=[[1.0, 0.0]], B=[[0.0], [1.0]])
    relay = nsds.interaction(relation, nsds.relay(lower=-RELAY, upper=RELAY), on="part")
    rows = simulate(nsds.system(part=part, relay=relay), 2.5 * max(mu, 5.0), 0.1 * mu, rtol=1e-10, atol=1e-12)
    times = rows["t"][rows["status"] == EVENT]
    np.testing.assert_allclose(times, switches(mu, 2.5 * max(mu, 5.0)), rtol=1e-7)
    assert len(times) >= 2


def switches(mu, t_end):
    """Times of them by SciPy."""
    t, x, found = 0.0, np.array([2.0, 0.0]), []

    def crosses(t, x, sign):
        return x[0]

    crosses.terminal = True
    while t < t_end:
        sign = np.sign(x[0]) if x[0] else np.sign(x[1])
        crosses.direction = -sign
        solved = solve_ivp(lambda t, x, sign: [x[1], mu * (1 - x[0] ** 2) * x[1] - x[0] - RELAY * sign], (t, t_end), x, "Radau",
                           events=crosses, args=(sign,), rtol=1e-10, atol=1e-12)  # fmt: skip
        t, x = solved.t[-1], solved.y[:, -1]
        if solved.status == 1:
            found.append(t)
            x[0] = 0.0
    return found


def test_a_stiff_circuit_switches_when_its_exact_motion_does():
    """Two RC stages whose times differ by 1e7, behind a diode, driven by an oscillator."""
    w = 2 * math.pi
    A = [[0, -w, 0, 0], [w, 0, 0, 0], [0, 0, -1.0, 1e-3], [0, 0, 1e4, -1e7]]
    part = nsds.first_order_linear(A=A, x=[1.0, 0.0, 0.0, 0.0])
    diode = nsds.first_order_linear_relation(C=[[-1.0, 0, 1.0, 0]], D=[[0.1]], B=[[0], [0], [1.0], [0]])
    system = nsds.system(part=part, diode=nsds.interaction(diode, nsds.complementarity(), on="part"))
    exact = nsds.simulate(system, t_end=3.0, h=0.1, scheme=nsds.event_driven())
    rows = simulate(system, 3.0, 0.1, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(rows["t"][rows["status"] == EVENT], exact["t"][exact["status"] == EVENT], atol=1e-8)
    np.testing.assert_allclose(rows["part"]["x"][-1], exact["part"]["x"][-1], atol=1e-7)
    assert rows["n_iter"].sum() < 5000


def test_a_ball_on_a_stiff_damper_bounces_when_its_exact_motion_does():
    ball = nsds.lagrangian_linear(M=np.diag([1.0, 1e-3]), K=[[1e4, -1e4], [-1e4, 1e4]], C=[[1e3, -1e3], [-1e3, 1e3]], fext=[-G, -1e-3 * G],
                                  q=[1.0, 1.0], v=[0.0, 0.0])  # fmt: skip
    system = nsds.system(ball=ball, floor=nsds.interaction(linear(H=[[1.0, 0.0]]), nsds.newton_impact(e=0.5), on="ball"))
    exact = nsds.simulate(system, t_end=1.0, h=0.1, scheme=nsds.event_driven(flow="exact"))
    rows = simulate(system, 1.0, 0.1, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(happened(rows, JUMP)[0]["t"], happened(exact, JUMP)[0]["t"], rtol=1e-8)
    np.testing.assert_allclose(rows["ball"]["q"][-1], exact["ball"]["q"][-1], atol=1e-8)
    assert rows["n_iter"].sum() < exact["n_iter"].sum() / 5


def test_a_body_on_a_stiff_damper_comes_to_rest():
    """A servo of a door, its time 1e-6 s."""

    def servo(t, y, ydot, z, out):
        out[0] = z[0] * (z[1] - y[0]) - z[2] * ydot[0]

    door = nsds.rigid_bodies(10.0, [1.0, 1.0, 1.0], q=[0.5, 0, 0, 1, 0, 0, 0], v=[0.0] * 6)
    hinge = nsds.interaction(nsds.joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="door")
    force = nsds.interaction(nsds.joints.hinge_angle([0, 0, 1]), nsds.force_law(servo, z=[4e6, 0.5, 4e6]), on="door")
    rows = simulate(nsds.system(door=door, hinge=hinge, servo=force), 2.0, 0.5, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(rows["servo"]["y"], 0.5 * (1 - np.exp(-rows["t"])), atol=1e-6)
    assert rows["n_iter"].sum() < 500


def steep_relay(gain):
    """``x' = sin t - x + 2 lambda`` with a relay that is linear within ``|x| < 1 / gain``: there x is ``(a sin t - cos t) / (a^2 + 1)``."""

    def f(t, x, z, out):
        out[0] = math.sin(t) - x[0]

    relation = nsds.first_order_linear_relation(C=[[1.0]], B=[[2.0]], D=[[1.0 / gain]])
    return nsds.system(plant=nsds.first_order(f, x=[1.0]), switch=nsds.interaction(relation, nsds.relay(), on="plant"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # at 1e10 the corner of the relay is rounding
@pytest.mark.parametrize("gain", [1e2, 1e6, 1e10])
def test_a_motion_that_turns_stiff_goes_on_by_radau(gain):
    """Explicit steps are half a time constant long at most: by default the motion is handed over where stability limits them."""
    rows = nsds.simulate(steep_relay(gain), t_end=2.0, h=0.1, scheme=nsds.event_driven())
    a = 1.0 + 2.0 * gain
    assert rows["switch"]["lambda"][-1] == pytest.approx(-gain * (a * math.sin(2.0) - math.cos(2.0)) / (a**2 + 1.0), rel=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("gain", [1e7, 1e9])
def test_explicit_steps_of_a_stiff_motion_end_and_name_it(gain):
    """There would be more than 10^6 of them between two rows."""
    with pytest.raises(nsds.SimulationError, match="part 'plant': the motion is stiff") as raised:
        nsds.simulate(steep_relay(gain), t_end=2.0, h=1.0, scheme=nsds.event_driven(flow="dopri5"))
    assert raised.value.status == nsds.status.STEP_COLLAPSED
    assert len(raised.value.trajectory) > 1
