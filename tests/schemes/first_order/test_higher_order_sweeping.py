"""Higher-order sweeping process: explicit solutions, its slow and its event-driven twin, order, the laws of its jumps, and refusals."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.optimize import brentq

import nsds
from nsds.status import EARLY_SOURCE
from tests.paths import REFERENCE
from tests.reference import higher_order_sweeping
from tests.reference_cases import needs_collection
from tests.strategies import examples

SWEEPING = nsds.higher_order_sweeping()


def swing(t, z, out):
    out[0] = 0.0
    out[1] = 0.0
    out[2] = -np.cos(t)


def chain(x, b=None, M=None):
    """Integrators one behind the other: lambda acts on the last, y is the first."""
    r = len(x)
    return nsds.linear_complementarity_system(np.eye(r, k=1), np.eye(r)[:, -1:], np.eye(r)[:1], b=b, x=x, M=M)


# Explicit solutions: what starts, until when z_1 is compared, z_1 as a function of time, and the jumps of z_2 and z_3 (or none).
HIT, LATE = 6 ** (1 / 3), 1.4973003890958922
CASES = {
    "it stays": (lambda: chain([1.0, 0, 0], [0, 0, -1.0]), 3.0, lambda t: np.where(t < HIT, 1 - t**3 / 6, 0.0), [HIT**2 / 2, HIT]),
    "it leaves at once": (
        lambda: chain([1.0, -2, 1]), 2.0,
        lambda t: np.where(t < 2 - 2**0.5, 1 - 2 * t + t**2 / 2, (t - 2 + 2**0.5) ** 2 / 2), [2**0.5, 0.0],
    ),
    "it rests for a while": (
        lambda: chain([0.5, 0, 0], swing), 4.0,
        lambda t: np.select([t < LATE, t < np.pi / 2], [0.5 + np.sin(t) - t, 0 * t], (t - np.pi / 2) ** 2 / 2 + np.sin(t) - 1), None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_explicit_solutions_of_degree_three_are_met_to_first_order(case):
    build, until, exact, jumps = CASES[case]
    errors = []
    for h in (1e-2, 1e-3):
        rows = nsds.simulate(build(), t_end=until, h=h, scheme=SWEEPING)
        errors.append(abs(rows["plant"]["x"][:, 0] - exact(rows["t"])).max())
        assert errors[-1] < 4 * h
        assert (rows["status"] == 0).all()
    assert 5 < errors[0] / errors[1] < 20
    if jumps is not None:
        before = rows["t"] < (HIT if jumps[1] else 1.0) + 0.01
        masses = h * rows["plant"]["r"][before].sum(axis=0)
        assert masses[1:] == pytest.approx(jumps, abs=0.03)


@needs_collection
def test_full_reference():
    with np.load(REFERENCE.parent / "analysis" / "hosp_relative_degree_3" / "ref.npz") as file:
        for (build, until, _, _), name in zip(CASES.values(), ("za", "zb", "zc"), strict=True):
            rows = nsds.simulate(build(), t_end=4.0, h=1e-3, scheme=SWEEPING, save_every=10)
            compared = file["t"] <= until
            assert abs(rows["plant"]["x"][:, 0] - file[name][:, 0])[compared].max() < 4e-3


def mixed_up(seed, degree=None, m=None):
    """(record, model of the twin): a system of one relative degree with zero dynamics, in coordinates in which nothing is seen of that."""
    rng = np.random.default_rng(seed)
    r, m, n_hidden = degree or int(rng.integers(1, 4)), m or int(rng.integers(1, 3)), int(rng.integers(0, 3))
    n = r * m + n_hidden
    A, B, C = np.zeros((n, n)), np.zeros((n, m)), np.eye(m, n)
    for i in range(r - 1):
        A[i * m : (i + 1) * m, (i + 1) * m : (i + 2) * m] = np.eye(m)
    A[(r - 1) * m : r * m] = rng.uniform(-1, 1, (m, n))
    A[r * m :, :m], A[r * m :, r * m :] = rng.uniform(-1, 1, (n_hidden, m)), rng.uniform(-1, 1, (n_hidden, n_hidden))
    L = rng.uniform(-0.5, 0.5, (m, m))
    B[(r - 1) * m : r * m] = np.eye(m) + L @ L.T + 0.2 * (L - L.T)
    T = np.eye(n) + rng.uniform(-0.3, 0.3, (n, n)) / n
    A, B, C = T @ A @ np.linalg.inv(T), T @ B, C @ np.linalg.inv(T)
    s = B @ rng.uniform(-2, 0, m)
    x = T @ np.concatenate([rng.uniform(0.1, 1, m), rng.uniform(-1, 1, n - m)])
    M = np.eye(n) + rng.uniform(-0.2, 0.2, (n, n))
    system = nsds.linear_complementarity_system(M @ A, M @ B, C, b=M @ s, x=x, M=M)
    return system, {"A": A, "B": B, "C": C, "degree": r, "x": x, "s": lambda t: s, "M": M}


@given(st.integers(0, 10**6))
@examples(25)
def test_systems_with_zero_dynamics_follow_the_twin(seed):
    system, model = mixed_up(seed)
    h, n_steps = 0.02, 60
    rows = nsds.simulate(system, t_end=h * n_steps, h=h, scheme=SWEEPING)
    _, x, lam, mu = higher_order_sweeping(model, h, n_steps)
    size = max(1.0, abs(x).max())
    np.testing.assert_allclose(rows["plant"]["x"], x, rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(rows["switches"]["lambda"].reshape(lam.shape), lam, rtol=0, atol=1e-7 * max(1.0, abs(lam).max()))
    r, A, B, C = model["degree"], model["A"], model["B"], model["C"]
    inputs = h * np.linalg.solve(model["M"], rows["plant"]["r"].T)
    for i in range(r):  # as documented: the masses of all measures from the recorded input
        masses = C @ np.linalg.matrix_power(A, i) @ inputs
        leading = C @ np.linalg.matrix_power(A, r - 1) @ B if i == r - 1 else np.eye(len(C))
        np.testing.assert_allclose(masses[:, 1:].T, mu[1:, i] @ leading.T, rtol=0, atol=1e-9 * max(1.0, abs(mu).max()) * size)


@given(st.integers(0, 10**6))
@examples(25)
def test_y_is_never_negative_and_multipliers_push_only_what_is_closed(seed):
    system, _ = mixed_up(seed)
    rows = nsds.simulate(system, t_end=1.0, h=0.02, scheme=SWEEPING)
    y, lam = rows["switches"]["y"][1:], rows["switches"]["lambda"][1:]
    size = max(1.0, abs(rows["plant"]["x"]).max())
    assert y.min() >= -1e-10 * size
    assert lam.min() >= 0.0
    is_open = np.vstack([rows["switches"]["y"][:-1].reshape(len(y), -1) > 1e-9 * size])
    degree = nsds.relative_degree(system).uniform
    if degree > 1:
        assert (lam.reshape(is_open.shape)[is_open] == 0).all()


def event_driven(model, t_end, dt=1e-3):
    """(times, x) of the exact motion of one output: free flow, jump rule, rest while lambda >= 0; source constant."""
    A, B, C, r = model["A"], model["B"], model["C"], model["degree"]
    n, s = len(A), model["s"](0.0)
    Z = np.vstack([C @ np.linalg.matrix_power(A, i) for i in range(r)])
    U = np.hstack([np.linalg.matrix_power(A, i) @ B for i in range(r)])
    U = U @ np.linalg.inv(Z @ U)
    needed = -np.append(Z[-1] @ A, Z[-1] @ s) / (Z[-1] @ B).item()
    free = np.vstack([np.column_stack([A, s]), np.zeros(n + 1)])
    rest = free + np.outer(np.append(B, 0.0), needed)
    y = np.append(C, 0.0)
    t, x, rows, resting = 0.0, np.append(model["x"], 1.0), [(0.0, model["x"])], False

    def first_zero(flow, guard, t, x):
        state, moved, whole = x, False, expm(dt * flow)
        while t < t_end - 1e-12:
            step = min(dt, t_end - t)
            new = (whole if step == dt else expm(step * flow)) @ state
            moved |= guard @ state > 1e-9
            if moved and guard @ new <= 0:
                at = brentq(lambda s, state=state: guard @ expm(s * flow) @ state, 0.0, step, xtol=1e-14)
                return t + at, expm(at * flow) @ state
            t, state = t + step, new
            rows.append((t, state[:n].copy()))
        return t, state

    while t < t_end - 1e-12:
        if resting:
            t, x = first_zero(rest, needed, t, x)
            resting = False
            continue
        t, x = first_zero(free, y, t, x)
        if t >= t_end - 1e-12:
            break
        z = Z @ x[:n]
        z[0] = 0.0
        for i in range(1, r):
            if z[i] > 0:
                break
            z[i] = 0.0
        x[:n] += U @ (z - Z @ x[:n])
        resting = (z == 0).all() and needed @ x >= 0
    return rows


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_event_driven_motion_is_approached_to_first_order(degree):
    """Of seeds whose output comes to 0."""
    for seed in (6, 18, 24):
        system, model = mixed_up(seed, degree, m=1)
        rows = event_driven(model, 1.5)
        t, exact = np.array([row[0] for row in rows]), np.array([model["C"] @ row[1] for row in rows])[:, 0]
        errors = []
        for h in (1e-3, 2.5e-4):
            run = nsds.simulate(system, t_end=1.5, h=h, scheme=SWEEPING)
            errors.append(abs(np.interp(t, run["t"], run["switches"]["y"]) - exact).max())
        assert run["switches"]["lambda"].max() > 0
        assert errors[1] < 4 * h * max(1.0, abs(exact).max())
        assert 3.5 < errors[0] / errors[1] < 4.5


def test_the_event_driven_twin_has_the_explicit_solutions():
    model = {"A": np.eye(3, k=1), "B": np.eye(3)[:, 2:], "C": np.eye(3)[:1], "degree": 3}
    for x, u, case in (([1.0, 0, 0], -1.0, "it stays"), ([1.0, -2, 1], 0.0, "it leaves at once")):
        rows = event_driven(model | {"x": np.array(x), "s": lambda t, u=u: np.array([0, 0, u])}, 2.0)
        t, y = np.array([row[0] for row in rows]), np.array([row[1][0] for row in rows])
        np.testing.assert_allclose(y, CASES[case][2](t), rtol=0, atol=1e-9)


def test_degree_two_is_an_inelastic_impact():
    ball = nsds.system(
        ball=nsds.lagrangian_linear(M=[[2.0]], fext=[-20.0], q=[1.0], v=[0.5]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(e=0.0), on="ball"),
    )
    falls = nsds.linear_complementarity_system([[0, 1], [0, 0]], [[0], [0.5]], [[1, 0]], b=[0, -10.0], x=[1.0, 0.5])
    h = 1e-3
    impact = nsds.simulate(ball, t_end=1.0, h=h, scheme=nsds.moreau_jean(theta=1.0))
    sweep = nsds.simulate(falls, t_end=1.0, h=h, scheme=SWEEPING)
    np.testing.assert_allclose(sweep["plant"]["x"][:, 0], impact["ball"]["q"][:, 0], rtol=0, atol=10 * h)
    momentum, speed = h * sweep["switches"]["lambda"][sweep["t"] < 0.51].sum(), np.sqrt(0.25 + 20)
    assert momentum == pytest.approx(2 * speed, abs=0.1 + 20 * 0.011)
    assert sweep["switches"]["lambda"][-1] == pytest.approx(20.0, rel=1e-12)
    assert sweep["plant"]["x"][-1].tolist() == [0.0, 0.0]


def test_an_infeasible_start_jumps_at_once():
    rows = nsds.simulate(chain([-0.5, -1.0, 2.0]), t_end=0.04, h=0.01, scheme=SWEEPING)
    assert rows["plant"]["x"][0].tolist() == [-0.5, -1.0, 2.0]
    assert rows["plant"]["x"][1:, 0].min() >= 0
    assert rows["plant"]["x"][-1, 2] == 2.0  # z_2 has become 0, and what follows is positive: it stays


def test_an_output_that_rests_far_from_the_origin_stays_there():
    """The zero of y is where terms of 1e3 cancel: that is rounding, not motion."""
    system = nsds.linear_complementarity_system(
        np.eye(3, k=1), np.eye(3)[:, 2:], [[1.0, 0, 0]], b=[0, 0, -1.0], e=[-1e3], x=[1e3 + 0.1, 0, 0]
    )
    rows = nsds.simulate(system, t_end=3.0, h=1e-2, scheme=SWEEPING)
    assert (rows["switches"]["lambda"][-100:] > 0.9).all()
    assert (rows["switches"]["y"][-100:] == 0.0).all()


def test_a_constant_source_counts_in_the_derivatives():
    """y' = z_2 with the drift in it: y reaches 0 at 2/3, with the speed -1.5."""
    system = nsds.linear_complementarity_system([[0, 1.0], [0, 0]], [[0.0], [1.0]], [[1.0, 0]], b=[-2.0, 0.0], x=[1.0, 0.5])
    rows = nsds.simulate(system, t_end=1.0, h=1e-3, scheme=SWEEPING)
    assert 1e-3 * rows["switches"]["lambda"].sum() == pytest.approx(1.5, rel=1e-9)
    assert rows["plant"]["x"][-1].tolist() == pytest.approx([0.0, 2.0], abs=1e-12)


def test_without_outputs_it_is_the_implicit_euler_method():
    tank = nsds.system(tank=nsds.first_order_linear([[-1.0, 0.5], [0, -2.0]], [1.0, 1.0], x=[1.0, 0]))
    sweep, euler = (nsds.simulate(tank, t_end=1.0, h=0.1, scheme=scheme)["tank"]["x"] for scheme in (SWEEPING, nsds.euler_moreau()))
    np.testing.assert_allclose(sweep, euler, rtol=0, atol=1e-14)


def early(t, z, out):
    out[0] = np.sin(t)
    out[1] = 0.0
    out[2] = 0.0


def test_a_source_that_varies_too_early_is_a_failed_step():
    rows = nsds.simulate(chain([1.0, 0, 0], early), t_end=0.1, h=0.01, scheme=SWEEPING, on_failure="continue")
    assert (rows["status"][1:] == EARLY_SOURCE).all()
    with pytest.raises(nsds.SimulationError, match="reaches an output earlier"):
        nsds.simulate(chain([1.0, 0, 0], early), t_end=0.1, h=0.01, scheme=SWEEPING)


def test_ensembles_and_restarts_have_the_bits_of_a_single_run():
    system, _ = mixed_up(5, 3, 2)
    members = np.repeat(system, 3)
    members["plant"]["x"] *= np.array([1.0, 1.1, 0.9])[:, None]
    members["plant"]["A"][2] *= 1.01
    several = nsds.simulate(members, t_end=1.0, h=0.01, scheme=SWEEPING)
    for m in range(3):
        np.testing.assert_array_equal(several[m], nsds.simulate(members[m], t_end=1.0, h=0.01, scheme=SWEEPING))
    half = nsds.simulate(system, t_end=0.5, h=0.01, scheme=SWEEPING)
    rest = nsds.simulate(nsds.restart(system, half[-1]), t_end=1.0, h=0.01, scheme=SWEEPING)
    for part, fields in (("plant", "xr"), ("switches", ("y", "lambda"))):
        for field in fields:
            np.testing.assert_array_equal(rest[part][field], several[0][part][field][50:])


def unlike_degrees():
    return nsds.system(
        fast=nsds.first_order_linear(np.eye(2, k=1), x=[1.0, 0]),
        slow=nsds.first_order_linear(np.eye(3, k=1), x=[1.0, 0, 0]),
        one=nsds.interaction(nsds.first_order_linear_relation([[1.0, 0]], [[0], [1.0]]), nsds.complementarity(), on="fast"),
        two=nsds.interaction(nsds.first_order_linear_relation([[1.0, 0, 0]], [[0], [0], [1.0]]), nsds.complementarity(), on="slow"),
    )


REFUSED = {
    "interaction 'switches' must have the law complementarity": lambda: nsds.examples.relay_oscillator(),
    "relative degree, got 2 of interaction 'one' and 3 of interaction 'two'": unlike_degrees,
    "'switches' has relative degree 0: y depends on lambda through D": lambda: nsds.examples.diode_bridge(),
    "'switches' has relative degree -1: no multiplier acts on it": lambda: nsds.linear_complementarity_system(
        np.zeros((2, 2)), [[1.0], [0]], [[0, 1.0]], x=[1.0, 1.0]
    ),
    "'switches': lambda must push y up, but its entry of C A^(r-1) B is -1": lambda: nsds.linear_complementarity_system(
        [[0, 1.0], [0, 0]], [[0.0], [-1.0]], [[1.0, 0]], x=[1.0, 0]
    ),
    "C A^(r-1) B of the interactions must be positive definite": lambda: nsds.linear_complementarity_system(
        np.zeros((2, 2)), [[1.0, 3.0], [3.0, 1.0]], np.eye(2), x=[1.0, 1.0]
    ),
    "M is singular": lambda: chain([1.0, 0], M=np.diag([1.0, 0.0])),
    "must be linear and constant in time": lambda: nsds.examples.filippov_spiral(),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_it_is_not_for_is_refused_by_name(words):
    with pytest.raises(ValueError, match=re.escape(words)):
        nsds.simulate(REFUSED[words](), t_end=1.0, h=0.1, scheme=SWEEPING)
