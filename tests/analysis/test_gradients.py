"""Sensitivities of random models against differences of their runs, and a record from which parameters are identified."""

import re
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq, least_squares

import nsds
from nsds.analysis.parameters import Parameter, state_words
from nsds.model.records import memory
from nsds.status import EVENT, OPENED
from tests.analysis.models import duffing, friction_oscillator, impact_oscillator, self_excited
from tests.strategies import many

N_MODELS = many(200)
STEP = 2.0**-14
COUNTS = ("n_impacts", "n_events", "n_together", "n_untreated", "status")


def ball(mass, g, q, v, e):
    return nsds.system(
        ball=nsds.lagrangian_linear(M=[[mass]], fext=[-mass * g], q=[q], v=[v]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(e), on="ball"),
    )


def pushed_pair(k, c, e, x, v):
    """Two masses on springs, one of which strikes the other."""
    return nsds.system(
        masses=nsds.lagrangian_linear(
            M=np.diag([1.0, 2.0]), K=np.diag([k, 1.0]), C=np.diag([c, c]), fext=[0.3, -0.4], q=[x, 0.5], v=[v, 0.0]
        ),
        touch=nsds.interaction(nsds.lagrangian_linear_relation(H=[[-1.0, 1.0]], b=[0.1]), nsds.newton_impact(e), on="masses"),
    )


def thrown(e, mu, q, v, g=9.81):
    """A particle in a plane, thrown onto a floor with friction."""
    return nsds.system(
        body=nsds.lagrangian_linear(M=np.eye(2), fext=[0.0, -g], q=q, v=v),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[0.0, 1.0], [1.0, 0.0]]), nsds.newton_impact_friction(e, mu), on="body"),
    )


def shake(t, z, out):
    out[0], out[1] = z[1] * np.cos(z[0] * t), -9.81


def shaken(e, mu, k, z, q, v):
    """The particle on a spring along the floor, and shaken: it bounces, then slips and sticks in turn."""
    return nsds.system(
        body=nsds.lagrangian_linear(M=np.eye(2), K=np.diag([k, 0.0]), fext=shake, q=q, v=v, z=z),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[0.0, 1.0], [1.0, 0.0]]), nsds.newton_impact_friction(e, mu), on="body"),
    )


def random_model(rng):
    """(system, parameters)."""
    u = rng.uniform
    kind = rng.integers(7)
    if kind == 0:
        system = impact_oscillator(u(0.01, 0.3), u(0.5, 4), u(0.1, 1), u(0, 0.5), u(-2, -0.1), u(-2, 2), u(0, 6))
        return system, ["stop.e", "stop.b", "mass.z[0]", "mass.z[1]", "mass.K", "mass.C"]
    if kind == 1:
        system = friction_oscillator(u(0.1, 0.5), u(0.5, 2), u(-2, 2), u(-2, 2), u(0, 6))
        return system, ["friction.limit", "mass.z[0]", "mass.z[1]", "mass.K"]
    if kind == 2:
        return self_excited(u(0.1, 0.9), u(-2, 0.5), u(-1, 1)), ["stop.e", "mass.C", "mass.M"]
    if kind == 3:
        return pushed_pair(u(1, 9), u(0, 0.2), u(0.1, 1), u(-1, 0.5), u(-1, 3)), ["touch.e", "masses.K[0][0]", "masses.fext[1]"]
    if kind == 4:
        return ball(u(0.5, 2), u(5, 12), u(0.2, 2), u(-2, 2), u(0.6, 1)), ["floor.e", "ball.fext", "ball.M"]
    if kind == 5:
        return thrown(u(0.1, 0.9), u(0.05, 1), [0.0, u(0.1, 1)], [u(-6, 6), u(-1, 1)]), ["floor.e_n", "floor.mu", "body.fext[1]"]
    system = shaken(u(0, 0.4), u(0.05, 0.4), u(0.5, 4), [u(0.5, 3), u(1, 8)], [u(-1, 1), u(0.1, 0.3)], [u(-1, 1), 0.0])
    return system, ["floor.e_n", "floor.mu", "body.K[0][0]", "body.z[0]", "body.z[1]"]


def differences(system, changes, t_end):
    """Of each change(records, amounts): (derivative of the state at the end, by differences; how far two step lengths are apart)."""
    steps = STEP * np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    records = np.repeat(system.reshape(1), steps.size * len(changes))
    for k, change in enumerate(changes):
        change(records[k * steps.size : (k + 1) * steps.size], steps)
    after = nsds.step(records, h=t_end, scheme=nsds.event_driven())
    for x in np.split(memory(after)[:, state_words(after)], len(changes)):
        coarse, fine = ((8 * (x[b] - x[a]) - (x[d] - x[c])) / (6 * (steps[b] - steps[a])) for a, b, c, d in ((1, 4, 0, 5), (2, 3, 1, 4)))
        yield fine, abs(fine - coarse).max()


def move(word, records, amounts):
    memory(records)[:, word] += amounts


def put(parameter, system, records, amounts):
    parameter.put(records, parameter.of(system) + amounts)


def test_derivatives_of_random_models_are_those_of_differences():
    """By all states and parameters, through impacts, stick and slip; but where differences themselves pass another order of events."""
    rng, n_compared, n_events, worst = np.random.default_rng(20), 0, 0, 0.0
    for _ in range(N_MODELS):
        system, names = random_model(rng)
        t_end = float(rng.uniform(1.0, 4.0))
        found = nsds.sensitivity(system, t_end=t_end, parameters=names)
        assert found["status"] == 0
        assert found["n_untreated"] == 0
        changes = [partial(move, word) for word in state_words(system.reshape(1))]
        changes += [partial(put, Parameter("test", "parameters", system, name), system) for name in names]
        slopes = np.column_stack([found["by_state"], found["by_parameters"]])
        for slope, (expected, doubt) in zip(slopes.T, differences(system, changes, t_end), strict=True):
            size = 1.0 + abs(expected).max()
            if doubt <= 1e-8 * size:
                n_compared, worst = n_compared + 1, max(worst, abs(slope - expected).max() / size)
        n_events += int(found["n_events"])
    assert worst < 1e-6
    assert n_compared > 4.5 * N_MODELS
    assert n_events > 1.5 * N_MODELS


def test_each_parameter_has_the_derivative_that_it_has_alone():
    """Systems with other parameters are prepared side by side."""
    system, names = impact_oscillator(0.05, 2.6, 0.8), ["stop.e", "mass.z[0]", "mass.K"]
    derivatives = lambda names: nsds.sensitivity(system, t_end=5.0, parameters=names, rows=64)["by_parameters"]  # noqa: E731
    alone = np.hstack([derivatives([name]) for name in names])
    assert (alone[0] != 0.0).all()
    np.testing.assert_allclose(derivatives(names), alone, rtol=1e-9)


def test_gradients_backwards_are_those_forwards():
    """Through the same parts of the same motions, of random models; and the derivative of a function that is not linear."""
    rng, n_events = np.random.default_rng(21), 0
    objective = lambda x: float(np.sin(x) @ np.arange(1.0, x.size + 1))  # noqa: E731
    for _ in range(40):
        system, names = random_model(rng)
        t_end, rows = float(rng.uniform(1.0, 4.0)), int(rng.integers(1, 20))
        back = nsds.gradient(system, t_end=t_end, objective=objective, parameters=names, rows=rows)
        ahead = nsds.sensitivity(system, t_end=t_end, objective=objective, parameters=names)
        np.testing.assert_allclose(back["gradient"], ahead["gradient"], rtol=0, atol=1e-6 * (1 + abs(ahead["gradient"]).max()))
        assert (back["costate"][0] == back["gradient"][: back["x"].shape[1]]).all()
        np.testing.assert_allclose(back["x"][-1], ahead["x"], rtol=0, atol=1e-8 * (1 + abs(ahead["x"]).max()))  # rows differ
        np.testing.assert_allclose(back["value"], ahead["value"], rtol=0, atol=1e-8 * (1 + abs(ahead["value"])))
        assert [back[name] for name in COUNTS] == [ahead[name] for name in COUNTS]
        n_events += int(back["n_events"])
    assert n_events > 60


def test_costates_are_gradients_by_the_state_then():
    system, last = duffing(), lambda x: x[0] + 2 * x[1] ** 2
    found = nsds.gradient(system, t_end=9.0, objective=last, rows=90)
    assert found["n_impacts"] == 2
    for row in (20, 45, 80):
        later = nsds.step(system, h=found["t"][row], scheme=nsds.event_driven())
        np.testing.assert_allclose(memory(later.reshape(1))[0, state_words(later)], found["x"][row], atol=1e-8)
        rest = nsds.gradient(later, t_end=9.0, objective=last, rows=90 - row)
        np.testing.assert_allclose(found["costate"][row], rest["gradient"], rtol=1e-5)


def push(t, z, out):
    out[0] = -9.81 + (z[0] if z[1] <= t < z[1] + 0.25 else 0.0)


def test_costates_tell_what_a_force_changes():
    """Of a ball that is pushed for a quarter of a second, between two impacts: the integral of the costate of its velocity."""
    floor = nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.8), on="ball")
    pushed = lambda force: nsds.system(  # noqa: E731
        ball=nsds.lagrangian_linear(M=[[1.0]], fext=push, q=[1.0], v=[0.3], z=[force, 0.75]), floor=floor
    )
    scheme = nsds.event_driven(time_events=[0.75, 1.0])
    found = nsds.gradient(pushed(0.0), t_end=2.5, objective=lambda x: x[1], rows=1000, scheme=scheme)
    begin, end = 300, 400
    assert found["t"][[begin, end]] == pytest.approx([0.75, 1.0], abs=1e-12)
    whole = np.trapezoid(found["costate"][begin : end + 1, 1], found["t"][begin : end + 1])
    ends = [nsds.step(pushed(sign * 1e-5), h=2.5, scheme=scheme)["ball"]["v"][0] for sign in (1, -1)]
    assert whole == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def test_thrusts_of_least_effort():
    """They are in proportion to what each gains (Lagrange), none in flight, and less than any others that come as high."""
    thrusts, run = nsds.examples.hopper_thrusts(), nsds.examples.EXAMPLES["hopper"].run
    hopper, apex = nsds.examples.hopper, nsds.examples.hopper_apex
    names = [f"hopper.z[{1 + j}]" for j in range(len(thrusts))]
    gain = nsds.gradient(hopper(thrusts), t_end=run["t_end"], objective=apex, parameters=names, rows=12, scheme=run["scheme"])
    assert gain["value"] == pytest.approx(0.35, abs=1e-9)
    assert gain["n_impacts"] == 1
    slope = gain["gradient"][4:]
    np.testing.assert_allclose(thrusts, slope * (thrusts @ slope) / (slope @ slope), atol=2e-4 * abs(thrusts).max())
    rows = nsds.simulate(hopper(thrusts), **run)
    lift_off = rows["t"][rows["status"] == EVENT | OPENED]
    assert abs(thrusts[int(np.ceil(lift_off[0] / 2**-5)) :]).max() < 1e-6
    upwards = slope / np.linalg.norm(slope)
    for seed in range(3):
        other = thrusts + np.random.default_rng(seed).uniform(-1, 1, len(thrusts))
        missing = lambda s, other=other: apex(nsds.simulate(hopper(other + s * upwards), **run)["hopper"][-1]) - 0.35  # noqa: E731
        other = other + brentq(missing, -9.0, 9.0) * upwards
        assert other @ other > thrusts @ thrusts


def test_bad_gradients():
    system = ball(1.0, 9.81, 1.0, 0.0, 0.8)
    for options, error, words in (
        ({"t_end": 0.0}, ValueError, "t_end must be after"),
        ({"objective": 3.0}, TypeError, "objective must be a function"),
        ({"objective": lambda x: "a"}, TypeError, "objective"),
        ({"parameters": "floor.e"}, TypeError, "parameters must be a list"),
        ({"parameters": ["floor.d"]}, ValueError, "names no field"),
        ({"rows": 0}, ValueError, "rows must be at least 1"),
        ({"system": np.repeat(system, 2)}, ValueError, "one record"),
    ):
        with pytest.raises(error, match=words):
            nsds.gradient(**{"system": system, "t_end": 1.0, "objective": lambda x: x[0], **options})


STATES = {  # path, and what the refusal says
    "ball.q[0]": "initial state",
    "ball.v": "initial state",
    "ball.p": "overwrites",
    "floor.lambda": "overwrites",
    "floor.y": "overwrites",
}


@pytest.mark.parametrize("path", STATES)
@pytest.mark.parametrize("h", [None, 1e-2])
def test_states_are_no_parameters(path, h):
    settings = {"t_end": 1.0, "h": h, "objective": lambda x: x[0], "parameters": ["floor.e", path]}
    for derivatives in (nsds.sensitivity, nsds.gradient):
        words = f"{derivatives.__name__}: parameters: '{re.escape(path)}' is a state and no parameter.*{STATES[path]}"
        with pytest.raises(ValueError, match=words):
            derivatives(ball(1.0, 9.81, 1.0, 0.0, 0.8), **settings)


def test_restitution_and_gravity_are_identified_from_a_noisy_record():
    """Least squares with the derivatives of the motion: errors are those that the noise explains."""
    true, times, noise = np.array([0.75, -9.81]), np.linspace(0.1, 2.4, 24), 1e-3

    def motion(parameters):
        system = ball(1.0, -parameters[1], 1.0, 0.0, parameters[0])
        return nsds.sensitivity(system, t_end=times, parameters=["floor.e", "ball.fext"], rows=1)

    position = lambda parameters: motion(parameters)["x"][:, 0]  # noqa: E731
    slope = lambda parameters: motion(parameters)["by_parameters"][:, 0]  # noqa: E731
    errors = []
    for seed in range(8):
        measured = position(true) + noise * np.random.default_rng(seed).standard_normal(times.size)
        misfit = lambda p, measured=measured: (position(p) - measured) / noise  # noqa: E731
        fit = least_squares(misfit, [0.74, -9.7], lambda p: slope(p) / noise, bounds=([0.0, -20.0], [1.0, -1.0]), x_scale=[0.01, 0.1])
        deviation = noise * np.sqrt(np.diag(np.linalg.inv(slope(true).T @ slope(true))))
        errors.append((fit.x - true) / deviation)
    assert np.abs(errors).max() < 4.0
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1.0, abs=0.5)


def test_restitution_and_friction_are_identified_from_a_noisy_record():
    """A throw with impacts that slip, sliding after they have accumulated, and the end of it: errors are within four deviations.

    These are the bound of Cramér and Rao; in the mean the errors are as large as it says.
    """
    true, times, noise = np.array([0.6, 0.25]), np.linspace(0.05, 2.2, 36), 2e-3

    def motion(parameters):
        return nsds.sensitivity(thrown(*parameters, [0.0, 0.4], [4.0, 0.5]), t_end=times, parameters=["floor.e_n", "floor.mu"], rows=1)

    found = motion(true)
    assert found["n_untreated"].sum() == 0
    assert found["n_impacts"][-1] > 10
    assert abs(found["x"][-1, 2:]).max() == 0.0  # at rest
    information = found["by_parameters"][:, :2].reshape(-1, 2)
    deviation = noise * np.sqrt(np.diag(np.linalg.inv(information.T @ information)))
    errors = []
    for seed in range(8):
        measured = found["x"][:, :2] + noise * np.random.default_rng(seed).standard_normal((times.size, 2))
        misfit = lambda p, measured=measured: ((motion(p)["x"][:, :2] - measured) / noise).ravel()  # noqa: E731
        slope = lambda p: motion(p)["by_parameters"][:, :2].reshape(-1, 2) / noise  # noqa: E731
        fit = least_squares(misfit, [0.57, 0.3], slope, bounds=([0.0, 0.01], [1.0, 2.0]), x_scale=[0.01, 0.01])
        errors.append((fit.x - true) / deviation)
    assert np.abs(errors).max() < 4.0
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1.0, abs=0.5)


def test_parameters_at_the_ends_of_their_ranges():
    """Derivatives from within; friction that is not there has none."""
    names, way = ["floor.e_n", "floor.mu"], 2.0**-20
    for e in (0.0, 1.0):
        at, within = (thrown(x, 0.2, [0.0, 0.4], [4.0, 0.5]) for x in (e, e + way * (1 - 2 * e)))
        after = nsds.step(np.array([at, within]), h=0.7, scheme=nsds.event_driven())
        slope = np.diff(memory(after)[:, state_words(after)], axis=0)[0] / (way * (1 - 2 * e))
        np.testing.assert_allclose(nsds.sensitivity(at, t_end=0.7, parameters=names)["by_parameters"][:, 0], slope, atol=1e-4)
    with pytest.raises(ValueError, match=r"parameters: 'floor.mu' is 0, where friction begins"):
        nsds.sensitivity(thrown(0.5, 0.0, [0.0, 0.4], [4.0, 0.5]), t_end=0.7, parameters=names)
