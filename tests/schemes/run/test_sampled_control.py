"""Zero-order hold against the matrix exponential, and controllers with their own clock against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

import nsds
from nsds import status
from tests.reference_solvers import solve_by_enumeration
from tests.strategies import examples

HOLD = nsds.zero_order_hold()


@examples(30)
@given(seed=st.integers(0, 2**32 - 1))
def test_linear_systems_are_stepped_exactly(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    A, L, b, x = rng.normal(size=(n, n)), rng.normal(size=(n, n)), rng.normal(size=n), rng.normal(size=n)
    A *= rng.choice([0.0, 1e-9, 1.0])  # singular and tiny ones too
    M = L @ L.T + np.eye(n) if rng.uniform() < 0.5 else np.eye(n)
    rows = nsds.simulate(nsds.system(p=nsds.first_order_linear(A, b, M, x=x)), t_end=2.0, h=0.25, scheme=HOLD)
    block = np.zeros((n + 1, n + 1))
    block[:n, :n], block[:n, n] = np.linalg.solve(M, A), np.linalg.solve(M, b)
    exact = [(expm(block * t) @ np.append(x, 1.0))[:n] for t in rows["t"]]
    np.testing.assert_allclose(rows["p"]["x"], exact, rtol=1e-11, atol=1e-11)


def test_a_diagonal_is_stepped_as_the_dense_matrix_is():
    a, b, x = np.array([-3.0, 0.0, 1e-12, 2.0]), np.ones(4), np.arange(4.0)
    rows = [nsds.simulate(nsds.system(p=nsds.first_order_linear(A, b, x=x)), t_end=1.0, h=0.1, scheme=HOLD) for A in (a, np.diag(a))]
    np.testing.assert_allclose(rows[0]["p"]["x"], rows[1]["p"]["x"], rtol=1e-13)


@examples(20)
@given(seed=st.integers(0, 2**32 - 1))
def test_relays_under_the_hold_follow_the_slow_twin(seed):
    """``y_{k+1} = C (Phi x_k + Psi B lambda)`` with lambda held over the step."""
    rng = np.random.default_rng(seed)
    n, m, h = 3, 2, 0.1
    A, B = rng.normal(size=(n, n)), rng.normal(size=(n, m))
    C, D = B.T, 0.1 * np.eye(m)
    x, lam = rng.normal(size=n), np.zeros(m)
    system = nsds.linear_complementarity_system(A, B, C, D, x=x, law=nsds.relay())
    rows = nsds.simulate(system, t_end=2.0, h=h, scheme=HOLD)
    block = expm(np.block([[A, np.eye(n)], [np.zeros((n, 2 * n))]]) * h)
    Phi, Psi = block[:n, :n], block[:n, n:]
    for row in rows[1:]:
        lam = solve_by_enumeration(C @ Psi @ B + D, C @ Phi @ x, -np.ones(m), np.ones(m))
        x = Phi @ x + Psi @ B @ lam
        np.testing.assert_allclose(row["plant"]["x"], x, atol=1e-8)
        np.testing.assert_allclose(row["switches"]["lambda"], lam, atol=1e-7)


def test_what_the_hold_cannot_step_is_refused():
    def f(t, x, z, out):
        out[0] = -x[0]

    with pytest.raises(ValueError, match="zero_order_hold: A and the relations must be linear and constant"):
        nsds.simulate(nsds.system(p=nsds.first_order(f, x=[1.0])), t_end=1.0, h=0.1, scheme=HOLD)
    with pytest.raises(ValueError, match="part 'p': M is singular"):
        nsds.simulate(nsds.system(p=nsds.first_order_linear([[1.0]], M=[[0.0]], x=[1.0])), t_end=1.0, h=0.1, scheme=HOLD)
    with pytest.raises(ValueError, match="first-order systems"):
        nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=0.1, scheme=HOLD)


# --- controllers --------------------------------------------------------------------------------------------------------------------
def integral_feedback(t, x, state, z, u):
    state[0] += z[1] * x[0]
    u[0] = -z[0] * x[0] - state[0] + 0.1 * u[0] + 0.01 * t


def controlled(**more):
    return nsds.system(
        plant=nsds.first_order_linear([[0.0, 1.0], [0.5, -0.3]], x=[1.0, 0.0], T=[[0.0], [1.0]], u=[0.0], **more.pop("plant", {})),
        controller=nsds.sampled_control(integral_feedback, reads="plant", writes="plant", state=[0.0], z=[2.0, 0.1], **more),
    )


@pytest.mark.parametrize("period", [None, 0.1, 0.3])
@pytest.mark.parametrize("scheme", ["hold", "theta"])
def test_a_controller_is_called_at_its_own_period_and_held_in_between(period, scheme):
    h, n = 0.05, 40
    A, T = np.array([[0.0, 1.0], [0.5, -0.3]]), np.array([0.0, 1.0])
    every = 1 if period is None else round(period / h)
    rows = nsds.simulate(controlled(period=period), t_end=n * h, h=h, scheme=HOLD if scheme == "hold" else nsds.euler_moreau(theta=0.5))
    x, u, state = np.array([1.0, 0.0]), np.zeros(1), np.zeros(1)
    block = expm(np.block([[A, np.eye(2)], [np.zeros((2, 4))]]) * h)
    for k in range(n + 1):
        if k % every == 0:
            integral_feedback(k * h, x, state, np.array([2.0, 0.1]), u)
        np.testing.assert_allclose(rows["plant"]["x"][k], x, atol=1e-12)
        np.testing.assert_allclose(rows["plant"]["u"][k], u, atol=1e-11)
        np.testing.assert_allclose(rows["controller"]["state"][k], state, atol=1e-12)
        if scheme == "hold":
            x = block[:2, :2] @ x + block[:2, 2:] @ T * u[0]
        else:
            x = np.linalg.solve(np.eye(2) - h / 2 * A, x + h / 2 * A @ x + h * T * u[0])


def test_the_control_is_held_for_functions_of_time_and_nonlinear_plants_too():
    """b(t) is weighted by theta while u is held; the prepared and the Newton form agree."""

    def source(t, z, out):
        out[0] = np.sin(5 * t)
        out[1] = np.cos(3 * t)

    def plant(t, x, z, out):
        out[0] = x[1] + np.sin(5 * t)
        out[1] = 0.5 * x[0] - 0.3 * x[1] + np.cos(3 * t)

    for theta in (1.0, 0.5):
        rows = []
        for part in (nsds.first_order_linear([[0.0, 1.0], [0.5, -0.3]], source, x=[1.0, 0.0], T=[[0.0], [1.0]], u=[0.0]),
                     nsds.first_order(plant, x=[1.0, 0.0], T=[[0.0], [1.0]], u=[0.0])):  # fmt: skip
            system = nsds.system(plant=part, controller=nsds.sampled_control(integral_feedback, reads="plant", writes="plant", period=0.2,
                                                                            state=[0.0], z=[2.0, 0.1]))  # fmt: skip
            rows.append(nsds.simulate(system, t_end=2.0, h=0.05, scheme=nsds.euler_moreau(theta=theta)))
        np.testing.assert_allclose(rows[0]["plant"]["x"], rows[1]["plant"]["x"], atol=1e-10)


def test_controllers_restart_and_run_in_ensembles_bit_for_bit():
    ensemble = np.repeat(controlled(period=0.2), 3)
    ensemble["controller"]["z"][:, 0] = [1.0, 2.0, 3.0]
    options = {"t_end": 2.0, "h": 0.05, "scheme": HOLD}
    together = nsds.simulate(ensemble, **options)
    assert not (together["plant"]["u"][0] == together["plant"]["u"][1]).all()
    for k in (0, 7, 8, 21):
        again = nsds.simulate(nsds.restart(ensemble[1], together[1, k]), **options)
        assert again.tobytes() == together[1, k:].tobytes()


def test_a_controller_may_read_several_parts_and_all_elements():
    def total(t, x, state, z, u):
        u[0] = x.sum()

    system = nsds.system(
        many=nsds.first_order_linear([-1.0], x=[1.0, 2.0, 3.0], count=3),
        one=nsds.first_order_linear([-2.0], x=[10.0]),
        sink=nsds.first_order_linear([0.0], x=[0.0], u=[0.0]),
        sum=nsds.sampled_control(total, reads=("many", "one"), writes="sink"),
    )
    rows = nsds.simulate(system, t_end=1.0, h=0.1, scheme=HOLD)
    np.testing.assert_allclose(rows["sink"]["u"][:, 0], rows["many"]["x"].sum(axis=(1, 2)) + rows["one"]["x"][:, 0])


def test_wrong_controllers_are_named():
    with pytest.raises(ValueError, match=r"period of controller 'controller', 0.12, must be a multiple of the step h = 0.05"):
        nsds.simulate(controlled(period=0.12), t_end=1.0, h=0.05, scheme=HOLD)
    plant = nsds.first_order_linear([[1.0]], x=[1.0])
    with pytest.raises(ValueError, match="'plant' has no constant control u to write"):
        nsds.system(plant=plant, c=nsds.sampled_control(integral_feedback, reads="plant", writes="plant"))
    with pytest.raises(ValueError, match="there is no system 'plan'"):
        nsds.system(plant=plant, c=nsds.sampled_control(integral_feedback, reads="plan", writes="plant"))
    with pytest.raises(TypeError, match=r"control\(t, x, state, z, u\)"):
        nsds.sampled_control(lambda t, x: None, reads="plant", writes="plant")
    with pytest.raises(ValueError, match="period must be above 0"):
        nsds.sampled_control(integral_feedback, reads="plant", writes="plant", period=0.0)
    with pytest.raises(ValueError, match=r"part 'controller'.*control\(t, x, state, z, u\).*out of bounds"):
        nsds.system(plant=nsds.first_order_linear([[1.0]], x=[1.0], u=[0.0]),
                    controller=nsds.sampled_control(integral_feedback, reads="plant", writes="plant"))  # fmt: skip


def relay_feedback(t, x, state, z, u):
    u[0] = -z[0] * x[0] - z[1] * x[1]


def test_a_controller_reads_the_multipliers_of_the_step_before():
    """``u_k = -y_k - 0.4 lambda_k``, lambda_0 what the record holds."""
    system = nsds.system(
        plant=nsds.first_order_linear([[-0.5]], x=[0.7], u=[0.0]),
        switch=nsds.interaction(nsds.first_order_linear_relation(C=[[1.0]], B=[[1.0]]), nsds.relay(-0.2, 0.2), on="plant"),
        loop=nsds.sampled_control(relay_feedback, reads=["switch.y", "switch.lambda"], writes="plant", z=[1.0, 0.4]),
    )
    rows = nsds.simulate(system, t_end=3.0, h=0.05)
    y, lam = rows["switch"]["y"], rows["switch"]["lambda"]
    assert len(np.unique(lam.round(6))) > 2
    np.testing.assert_allclose(rows["plant"]["u"].ravel(), -y.ravel() - 0.4 * lam.ravel(), atol=1e-14)


def slope(t, x, state, z, u):
    u[0] = -z[0] * (x[0] - state[0])
    state[0] = x[0]


def note(t, x, state, z, u):
    state[0] = x[0]


def test_the_first_call_is_told_apart():
    """A controller by differences begins with one of 0; a restart goes on with the one of the run."""
    system = nsds.system(
        mass=nsds.lagrangian(mass=[1.0], q=[5.0], v=[2.0], u=[0.0]),
        brake=nsds.sampled_control(slope, reads="mass.q", writes="mass", start=note, period=0.1, state=[np.pi], z=[3.0]),
    )
    rows = nsds.simulate(system, t_end=1.0, h=0.05, scheme=nsds.moreau_jean(theta=0.5))
    q, v, before, u = 5.0, 2.0, 5.0, 0.0
    for row in rows[::2]:
        u, before = -3.0 * (q - before), q
        assert row["mass"]["u"][0] == pytest.approx(u, abs=1e-13)
        assert row["mass"]["q"][0] == pytest.approx(q, abs=1e-13)
        q, v = q + 0.1 * v + 0.005 * u, v + 0.1 * u
    for k in (0, 4, 9):
        again = nsds.simulate(nsds.restart(system, rows[k]), t_end=1.0, h=0.05, scheme=nsds.moreau_jean(theta=0.5))
        assert again.tobytes() == rows[k:].tobytes()


def is_closed(t, x, state, z, u):
    u[0], u[1] = x[0], x[1]


def test_whole_numbers_are_read_as_such_and_several_parts_written():
    system = nsds.system(
        ball=nsds.lagrangian(mass=[1.0], fext=[-10.0], q=[0.2], v=[0.0]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.0), on="ball"),
        lamp=nsds.lagrangian(mass=[1.0], q=[0.0], v=[0.0], u=[7.0]),
        meter=nsds.lagrangian(mass=[1.0], q=[0.0], v=[0.0], u=[7.0]),
        look=nsds.sampled_control(is_closed, reads=["floor.active", "floor.lambda"], writes=["lamp", "meter"]),
    )
    rows = nsds.simulate(system, t_end=0.5, h=0.01)
    np.testing.assert_array_equal(rows["lamp"]["u"][:, 0], rows["floor"]["active"].ravel())
    np.testing.assert_array_equal(rows["meter"]["u"][:, 0], rows["floor"]["lambda"].ravel())
    assert set(rows["lamp"]["u"][:, 0]) == {0.0, 1.0}
    described = repr(nsds.describe(system))
    assert "of lamp, meter" in described
    assert "reads floor.active, floor.lambda" in described


@pytest.mark.parametrize(("changes", "words"), [
    ({"reads": "switch.lambda"}, "controller 'c': there is no part 'switch'; the parts are: plant, c"),
    ({"reads": "plant.q"}, "controller 'c' reads plant.q, which is not there or not of numbers"),
    ({"reads": "c.control"}, "controller 'c' reads c.control, which is not there or not of numbers"),
    ({"reads": "c"}, "controller 'c': there is no system 'c'; the systems are: plant"),
    ({"writes": ["plant", "plan"]}, "controller 'c': there is no system 'plan'"),
])  # fmt: skip
def test_what_is_not_there_is_named(changes, words):
    wiring = {"reads": "plant", "writes": "plant"} | changes
    with pytest.raises(ValueError, match=words):
        nsds.system(plant=nsds.first_order_linear([[1.0]], x=[1.0], u=[0.0]), c=nsds.sampled_control(note, state=[0.0], **wiring))


def test_two_controllers_do_not_write_the_same():
    loops = {name: nsds.sampled_control(note, reads="plant", writes="plant", state=[0.0]) for name in "ab"}
    with pytest.raises(ValueError, match=r"controllers 'a' and 'b' both write plant\.u"):
        nsds.system(plant=nsds.first_order_linear([[1.0]], x=[1.0], u=[0.0]), **loops)


def test_a_control_that_is_not_finite_fails_its_step():
    """Rows with status 0 are finite, the control among them."""

    def too_much(t, x, state, z, u):
        u[0] = 1e308 * t

    system = nsds.system(
        plant=nsds.first_order_linear(A=[[0.0]], x=[0.0], u=[0.0]),
        loop=nsds.sampled_control(too_much, reads="plant", writes="plant"),
    )
    rows = nsds.simulate(system, t_end=3.0, h=1.0, scheme=HOLD, on_failure="continue")
    assert rows["plant"]["u"][:, 0].tolist() == [0.0, 1e308, np.inf, np.inf]
    assert rows["status"].tolist() == [0, 0, status.NON_FINITE, status.NON_FINITE]
    with pytest.raises(nsds.SimulationError, match="'plant'"):
        nsds.simulate(system, t_end=3.0, h=1.0, scheme=HOLD)
