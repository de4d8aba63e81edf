"""Euler–Moreau against its slow twin, its orders, sliding without chattering, passivity, and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds.status import NEWTON, NON_FINITE, SINGULAR_STEP
from tests.reference import euler_moreau
from tests.strategies import examples

VARIANTS = {
    "implicit": {},
    "theta": {"theta": 0.5},
    "theta_gamma": {"theta": 0.6, "gamma": 0.7},
    "full": {"theta": 0.5, "gamma": 0.5, "full": True},
    "full_implicit": {"theta": 0.7, "gamma": 1.0, "full": True},
    "midpoint": {"theta": 0.5, "gamma": 0.5, "midpoint": True},
    "explicit": {"theta": 0.0},
    "lagged": {"theta": 1.0, "gamma": 0.0},
}


def scheme(variant, **more):
    options = dict(VARIANTS[variant])
    return nsds.euler_moreau(gamma_for_relation=options.pop("full", False), **options, **more)


def spread(rng, n):
    """Random matrix well away from singular."""
    return rng.normal(size=(n, n)) + (1 + n) * np.eye(n)


def wave(t, z, out):
    for i in range(out.size):
        out[i] = np.sin(3 * t + i)


def wave_at(t, n):
    return np.sin(3 * t + np.arange(n))


def random_linear(seed):
    """(record, dense model): one or two parts, M or none, functions of time, complementarity or relays or both."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    two, with_mass, diagonal = (rng.uniform() < 0.5 for _ in range(3))
    A, B, L = -spread(rng, n), rng.normal(size=(n, m)), rng.normal(size=(n, n))
    M = L @ L.T + 0.3 * np.eye(n) + 0.2 * (L - L.T) if with_mass else np.eye(n)
    S, K = rng.normal(size=(m, m)), rng.normal(size=(m, m))
    D, law = S @ S.T + K - K.T + 0.2 * np.eye(m), nsds.complementarity()  # monotone with C = B^T: exactly one solution
    lower, upper = np.zeros(m), np.full(m, np.inf)
    if rng.uniform() < 0.5:
        law = nsds.relay(-0.5, 0.75)
        lower, upper = np.full(m, -0.5), np.full(m, 0.75)
    parts = {"a": nsds.first_order_linear(A, wave, M if with_mass else None, x=rng.normal(size=n))}
    x, n_all = parts["a"]["record"]["x"], n
    on = "a"
    if two:
        a = -rng.uniform(1, 2, size=2)
        T, u = rng.normal(size=(2, 1)), rng.normal(size=1)
        parts["b"] = nsds.first_order_linear(a if diagonal else np.diag(a), x=rng.normal(size=2), T=T, u=u)
        x, n_all, on = np.concatenate([x, parts["b"]["record"]["x"]]), n + 2, ("a", "b")
        A = np.block([[A, np.zeros((n, 2))], [np.zeros((2, n)), np.diag(a)]])
        M = np.block([[M, np.zeros((n, 2))], [np.zeros((2, n)), np.eye(2)]])
        B = np.vstack([B, rng.normal(size=(2, m))])
    source = lambda t: np.concatenate([wave_at(t, n), (T @ u).ravel()]) if two else wave_at(t, n)  # noqa: E731
    C = B.T + 0.05 * rng.normal(size=B.T.shape)
    e, F, z = rng.normal(size=m), rng.normal(size=(m, 2)), rng.normal(size=2)
    timed = rng.uniform() < 0.5
    relation = nsds.first_order_linear_relation(C, B, D, wave if timed else e, F, z=z)
    record = nsds.system(**parts, law=nsds.interaction(relation, law, on=on))
    offset = lambda t: (wave_at(t, m) if timed else e) + F @ z  # noqa: E731
    model = {"M": M, "x": x, "lower": lower, "upper": upper, "f": lambda t, x: A @ x + source(t)}
    model |= {"h": lambda t, x, lam: C @ x + D @ lam + offset(t), "g": lambda t, x, lam: B @ lam}
    assert n_all == len(M)
    return record, model


def state(trajectory, field="x"):
    parts = [trajectory[name][field] for name in trajectory.dtype.names if "x" in (trajectory.dtype[name].names or ())]
    return np.concatenate([part.reshape(len(trajectory), -1) for part in parts], axis=1)


@pytest.mark.parametrize("variant", VARIANTS)
@examples(15)
@given(seed=st.integers(0, 2**32 - 1))
def test_linear_systems_follow_the_twin(variant, seed):
    record, model = random_linear(seed)
    steps = 12
    rows = nsds.simulate(record, t_end=steps * 0.05, h=0.05, scheme=scheme(variant))
    _, x, r, y, lam = euler_moreau(model, 0.0, 0.05, steps, **VARIANTS[variant])
    np.testing.assert_allclose(state(rows), x, atol=1e-8)
    np.testing.assert_allclose(state(rows, "r")[1:], r[1:], atol=1e-7)
    np.testing.assert_allclose(rows["law"]["lambda"].reshape(len(rows), -1), lam, atol=1e-7)
    np.testing.assert_allclose(rows["law"]["y"].reshape(len(rows), -1)[1:], y[1:], atol=1e-7)


@examples(20)
@given(seed=st.integers(0, 2**32 - 1))
def test_trying_the_set_of_the_last_step_changes_nothing(seed):
    """auto keeps the set of the last step, other solvers are called at each."""
    record, _ = random_linear(seed)
    rows, expected = (nsds.simulate(record, t_end=3.0, h=0.05, scheme=scheme("theta"), solver=name) for name in ("auto", "lemke"))
    np.testing.assert_allclose(state(rows), state(expected), atol=1e-9)
    np.testing.assert_allclose(rows["law"]["lambda"], expected["law"]["lambda"], atol=1e-8)
    assert (rows["n_iter"][1:] == 0).any()


# --- nonlinear systems and relations -------------------------------------------------------------------------------------------------
def swing(t, x, z, out):
    out[0] = x[1]
    out[1] = -np.sin(x[0]) - 0.1 * x[1] + np.cos(2 * t)


def swing_jacobian(t, x, z, out):
    out[0, 0] = 0.0
    out[0, 1] = 1.0
    out[1, 0] = -np.cos(x[0])
    out[1, 1] = -0.1


def cubic(t, x, lam, z, out):
    out[0] = x[0] + 0.1 * x[1] ** 3 + 0.5 * lam[0] + 0.1 * lam[0] ** 3 - z[0]


def cubic_x(t, x, lam, z, out):
    out[0, 0] = 1.0
    out[0, 1] = 0.3 * x[1] ** 2


def cubic_lam(t, x, lam, z, out):
    out[0, 0] = 0.5 + 0.3 * lam[0] ** 2


def push(t, x, lam, z, out):
    out[0] = 0.3 * lam[0] * np.cos(x[1])
    out[1] = (1 + x[0] ** 2) * lam[0]


def push_x(t, x, lam, z, out):
    out[0, 0] = 0.0
    out[0, 1] = -0.3 * lam[0] * np.sin(x[1])
    out[1, 0] = 2 * x[0] * lam[0]
    out[1, 1] = 0.0


def push_lam(t, x, lam, z, out):
    out[0, 0] = 0.3 * np.cos(x[1])
    out[1, 0] = 1 + x[0] ** 2


def in_python(function, n):
    """A user's function as one that returns its result."""

    def result(*arguments):
        out = np.zeros(n)
        function(*arguments, out)
        return out

    return result


Z = np.array([0.3])
SWING = in_python(swing, 2)
NONLINEAR = {
    "M": np.eye(2),
    "x": [0.5, 0.0],
    "f": lambda t, x: SWING(t, x, None),
    "h": lambda t, x, lam: in_python(cubic, 1)(t, x, lam, Z),
    "g": lambda t, x, lam: in_python(push, 2)(t, x, lam, Z),
}
JACOBIANS = {"C": cubic_x, "D": cubic_lam, "K": push_x, "B": push_lam}
LAWS = {
    "complementarity": (nsds.complementarity(), [0.0], [np.inf]),
    "relay": (nsds.relay(), [-1.0], [1.0]),
    "equality": (nsds.equality(), [-np.inf], [np.inf]),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("given_jacobians", [True, False], ids=["jacobians", "differences"])
def test_fully_nonlinear_relations_follow_the_twin(variant, law, given_jacobians):
    """K = dg/dx is not zero; y depends on lambda nonlinearly; every scheme, also the full one and the mid-point one."""
    nonsmooth, lower, upper = LAWS[law]
    jac_f, jacobians = (swing_jacobian, JACOBIANS) if given_jacobians else (None, {})
    record = nsds.system(
        plant=nsds.first_order(swing, jac_f, x=NONLINEAR["x"]),
        law=nsds.interaction(nsds.first_order_relation(cubic, push, m=1, z=Z, **jacobians), nonsmooth, on="plant"),
    )
    rows = nsds.simulate(record, t_end=2.0, h=0.05, scheme=scheme(variant, newton_tol=1e-12))
    model = NONLINEAR | {"lower": np.array(lower), "upper": np.array(upper)}
    _, x, r, y, lam = euler_moreau(model, 0.0, 0.05, 40, **VARIANTS[variant])
    np.testing.assert_allclose(rows["plant"]["x"], x, atol=1e-9)
    np.testing.assert_allclose(rows["plant"]["r"], r, atol=1e-8)
    np.testing.assert_allclose(rows["law"]["lambda"], lam[:, 0], atol=1e-8)
    np.testing.assert_allclose(rows["law"]["y"], y[:, 0], atol=1e-8)
    assert (np.ptp(lam) > 0.1).all()


def joined(t, x, lam, z, out):
    out[0] = x[0] - x[2] ** 2 - 0.2 + 0.1 * lam[0]


def coupling(t, x, lam, z, out):
    out[0] = x[2] * lam[0]
    out[1] = -0.5 * lam[0]
    out[2] = -x[0] * lam[0]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_nonlinear_relation_between_two_parts_couples_their_iteration_matrices(variant):
    record = nsds.system(
        other=nsds.first_order_linear([-1.0], x=[0.0]),  # its place between the two must not matter
        swing=nsds.first_order(swing, swing_jacobian, x=[0.5, 0.0]),
        lag=nsds.first_order_linear([[-2.0]], [1.0], M=[[2.0]], x=[0.4]),
        law=nsds.interaction(nsds.first_order_relation(joined, coupling, m=1), nsds.complementarity(), on=("swing", "lag")),
    )
    rows = nsds.simulate(record, t_end=2.0, h=0.05, scheme=scheme(variant, newton_tol=1e-12))
    model = {
        "M": np.diag([1.0, 1.0, 2.0]), "x": [0.5, 0.0, 0.4], "lower": np.zeros(1), "upper": np.full(1, np.inf),
        "f": lambda t, x: np.append(SWING(t, x[:2], None), -2 * x[2] + 1),
        "h": lambda t, x, lam: in_python(joined, 1)(t, x, lam, None), "g": lambda t, x, lam: in_python(coupling, 3)(t, x, lam, None),
    }  # fmt: skip
    _, x, _, _, lam = euler_moreau(model, 0.0, 0.05, 40, **VARIANTS[variant])
    np.testing.assert_allclose(np.hstack([rows["swing"]["x"], rows["lag"]["x"]]), x, atol=1e-8)
    np.testing.assert_allclose(rows["law"]["lambda"], lam[:, 0], atol=1e-7)
    assert lam.max() > 0.05
    assert (lam[1:] == 0).any()


def difference(t, x, lam, z, out):
    out[0] = x[1] - x[0] + 0.1 * lam[0]


def exchange(t, x, lam, z, out):
    out[0] = -(1 + x[1] ** 2) * lam[0]
    out[1] = (1 + x[1] ** 2) * lam[0]


@pytest.mark.parametrize("variant", ["implicit", "full"])
def test_elements_of_one_array_part_may_be_joined_and_others_not(variant):
    x = np.array([2.0, 0.0, 1.0, -1.0])
    record = nsds.system(
        cells=nsds.first_order_linear([[-1.0]], x=x, count=4),
        law=nsds.interaction(nsds.first_order_relation(difference, exchange, m=1), nsds.complementarity(), on=("cells[3]", "cells[0]")),
        twin=nsds.interaction(nsds.first_order_relation(difference, exchange, m=1), nsds.complementarity(), on=("cells[1]", "cells[3]")),
    )
    rows = nsds.simulate(record, t_end=1.0, h=0.05, scheme=scheme(variant, newton_tol=1e-12))
    h, g = in_python(difference, 1), in_python(exchange, 2)

    def push(t, x, lam):
        out = np.zeros(4)
        out[[3, 0]] += g(t, x[[3, 0]], lam[:1], None)
        out[[1, 3]] += g(t, x[[1, 3]], lam[1:], None)
        return out

    model = {"M": np.eye(4), "x": x, "lower": np.zeros(2), "upper": np.full(2, np.inf), "f": lambda t, x: -x, "g": push}
    model["h"] = lambda t, x, lam: np.append(h(t, x[[3, 0]], lam[:1], None), h(t, x[[1, 3]], lam[1:], None))
    _, expected, _, _, lam = euler_moreau(model, 0.0, 0.05, 20, **VARIANTS[variant])
    np.testing.assert_allclose(rows["cells"]["x"][..., 0], expected, atol=1e-8)
    np.testing.assert_allclose(np.column_stack([rows["law"]["lambda"], rows["twin"]["lambda"]]), lam, atol=1e-7)
    assert (lam > 0).any()


@pytest.mark.parametrize("flow", ["dopri5", "radau"])
def test_elements_of_one_array_part_are_joined_event_by_event(flow):
    """As four parts of their own, to the bit."""
    x, law = np.array([2.0, 0.0, 1.0, -1.0]), (nsds.first_order_relation(difference, exchange, m=1), nsds.complementarity())
    cells = nsds.system(
        cells=nsds.first_order_linear([[-1.0]], x=x, count=4),
        law=nsds.interaction(*law, on=("cells[3]", "cells[0]")),
        twin=nsds.interaction(*law, on=("cells[1]", "cells[3]")),
    )
    alone = nsds.system(
        **{f"c{k}": nsds.first_order_linear([[-1.0]], x=[x[k]]) for k in range(4)},
        law=nsds.interaction(*law, on=("c3", "c0")),
        twin=nsds.interaction(*law, on=("c1", "c3")),
    )
    together, apart = (nsds.simulate(one, t_end=1.0, h=0.1, scheme=nsds.event_driven(flow=flow)) for one in (cells, alone))
    np.testing.assert_array_equal(together["t"], apart["t"])
    np.testing.assert_array_equal(together["cells"]["x"][..., 0], np.column_stack([apart[f"c{k}"]["x"][:, 0] for k in range(4)]))


def output_1(t, x, z, out):
    out[0] = x[0] ** 2 + x[1] - z[0]


def output_2(t, x, lam, z, out):
    out[0] = x[0] ** 2 + x[1] - z[0] + 0.2 * lam[0] ** 2


def push_2(t, lam, z, out):
    out[0] = 0.2 * lam[0]
    out[1] = lam[0] + 0.1 * lam[0] ** 2


@pytest.mark.parametrize("kind", ["type1", "type2"])
@pytest.mark.parametrize("variant", ["theta", "full"])
def test_relations_of_types_1_and_2_follow_the_twin(kind, variant):
    relation = (
        nsds.type1_relation(output_1, push_2, m=1, z=[0.2]) if kind == "type1" else nsds.type2_relation(output_2, push_2, m=1, z=[0.2])
    )
    record = nsds.system(plant=nsds.first_order(swing, x=[0.5, 0.0]), law=nsds.interaction(relation, nsds.relay(0.0, 2.0), on="plant"))
    rows = nsds.simulate(record, t_end=1.5, h=0.05, scheme=scheme(variant, newton_tol=1e-12))
    h = in_python(output_1, 1) if kind == "type1" else in_python(output_2, 1)
    z = np.array([0.2])
    model = NONLINEAR | {"lower": np.zeros(1), "upper": np.full(1, 2.0), "g": lambda t, x, lam: in_python(push_2, 2)(t, lam, z)}
    model["h"] = (lambda t, x, lam: h(t, x, z)) if kind == "type1" else (lambda t, x, lam: h(t, x, lam, z))
    _, x, _, _, lam = euler_moreau(model, 0.0, 0.05, 30, **VARIANTS[variant])
    np.testing.assert_allclose(rows["plant"]["x"], x, atol=1e-8)
    np.testing.assert_allclose(rows["law"]["lambda"], lam[:, 0], atol=1e-7)


def A_of_t(t, z, out):
    out[0, 0] = -1 - t
    out[0, 1] = np.sin(t)
    out[1, 0] = 0.5
    out[1, 1] = -2.0


def C_of_t(t, z, out):
    out[0, 0] = 1 + t
    out[0, 1] = -1.0


def D_of_t(t, z, out):
    out[0, 0] = 1.0 + 0.5 * np.cos(t)


def T_of_t(t, z, out):
    out[0, 0] = t
    out[1, 0] = 1.0


@pytest.mark.parametrize("variant", VARIANTS)
def test_operators_that_depend_on_time_follow_the_twin(variant):
    B = np.array([[1.0], [0.5]])
    record = nsds.system(
        plant=nsds.first_order_linear(A_of_t, wave, x=[1.0, -1.0], T=T_of_t, u=[0.3]),
        law=nsds.interaction(nsds.first_order_linear_relation(C_of_t, B, D_of_t, [-0.2]), nsds.complementarity(), on="plant"),
    )
    rows = nsds.simulate(record, t_end=2.0, h=0.05, scheme=scheme(variant))
    a, c, d, T = (
        in_python_matrix(A_of_t, 2, 2),
        in_python_matrix(C_of_t, 1, 2),
        in_python_matrix(D_of_t, 1, 1),
        in_python_matrix(T_of_t, 2, 1),
    )
    model = {
        "M": np.eye(2), "x": [1.0, -1.0], "lower": np.zeros(1), "upper": np.full(1, np.inf),
        "f": lambda t, x: a(t) @ x + wave_at(t, 2) + T(t)[:, 0] * 0.3, "h": lambda t, x, lam: c(t) @ x + d(t) @ lam - 0.2,
        "g": lambda t, x, lam: B @ lam,
    }  # fmt: skip
    _, x, _, y, lam = euler_moreau(model, 0.0, 0.05, 40, **VARIANTS[variant])
    np.testing.assert_allclose(rows["plant"]["x"], x, atol=1e-9)
    np.testing.assert_allclose(rows["law"]["lambda"], lam[:, 0], atol=1e-9)
    np.testing.assert_allclose(rows["law"]["y"][1:], y[1:, 0], atol=1e-9)


def in_python_matrix(function, rows, columns):
    def result(t):
        out = np.zeros((rows, columns))
        function(t, None, out)
        return out

    return result


def control_T(t, x, z, out):
    out[0, 0] = x[1]
    out[1, 0] = 1.0


def control_u(t, x, z, out):
    out[0] = -np.tanh(x[0]) * z[0]


def test_the_control_term_of_a_nonlinear_system_may_depend_on_the_state():
    """[Systems], eq. 1: ``x' = f + T(x) u(x, t) + r``; the same system with all of it in f."""

    def whole(t, x, z, out):
        out[0] = x[1] - np.tanh(x[0]) * z[0] * x[1]
        out[1] = -np.sin(x[0]) - 0.1 * x[1] + np.cos(2 * t) - np.tanh(x[0]) * z[0]

    options = {"t_end": 2.0, "h": 0.05, "scheme": nsds.euler_moreau(theta=0.5, newton_tol=1e-12)}
    expected = nsds.simulate(nsds.system(p=nsds.first_order(whole, x=[0.5, 0.0], z=[0.7])), **options)
    for jacobian in (swing_jacobian, None):
        part = nsds.first_order(swing, jacobian, x=[0.5, 0.0], z=[0.7], T=control_T, u=control_u, n_u=1)
        rows = nsds.simulate(nsds.system(p=part), **options)
        np.testing.assert_allclose(rows["p"]["x"], expected["p"]["x"], atol=1e-11)
        assert rows["n_iter"].max() <= 4


def test_the_newton_form_and_the_prepared_form_agree():
    """The same linear system, once with numbers, once with functions that return them."""
    A, B, C = np.array([[-1.0, 2.0], [-2.0, -1.0]]), np.array([[1.0], [0.0]]), np.array([[1.0, 0.5]])

    def constant_A(t, z, out):
        out[:] = A

    for variant in VARIANTS:
        rows = []
        for matrix in (A, constant_A):
            system = nsds.linear_complementarity_system(matrix, B, C, [[0.5]], x=[-1.0, 1.0], e=[-0.1])
            rows.append(nsds.simulate(system, t_end=2.0, h=0.02, scheme=scheme(variant)))
        np.testing.assert_allclose(rows[0]["plant"]["x"], rows[1]["plant"]["x"], atol=1e-12)
        np.testing.assert_allclose(rows[0]["switches"]["lambda"], rows[1]["switches"]["lambda"], atol=1e-11)


# --- laws ---------------------------------------------------------------------------------------------------------------------------
def test_mixed_complementarity_is_equations_then_complementarity():
    A, B = -np.eye(3), np.eye(3)
    D, e = np.eye(3) / 2, np.array([0.3, -0.5, 0.5])
    rows = nsds.simulate(nsds.linear_complementarity_system(A, B, np.eye(3), D, x=[1.0, -1.0, 1.0], e=e,
                                                            law=nsds.mixed_complementarity(1)), t_end=0.5, h=0.01)  # fmt: skip
    y, lam = rows["switches"]["y"][1:], rows["switches"]["lambda"][1:]
    np.testing.assert_allclose(y[:, 0], 0, atol=1e-12)
    assert (lam[:, 0] < 0).any()
    assert (np.minimum(y[:, 1:], lam[:, 1:]) >= -1e-12).all()
    assert abs(np.minimum(y[:, 1:], lam[:, 1:])).max() < 1e-12


@examples(25)
@given(seed=st.integers(0, 2**32 - 1))
def test_normal_cone_of_a_polyhedron(seed):
    """``-y ∈ N_P(lambda)``: lambda in P, ``y = G^T mu``, ``mu >= 0`` only where a face is reached."""
    rng = np.random.default_rng(seed)
    m, k = 2, int(rng.integers(3, 6))
    angle = np.sort(rng.uniform(0, 2 * np.pi / k, k)) + 2 * np.pi / k * np.arange(k)
    G, g = np.column_stack([np.cos(angle), np.sin(angle)]), -rng.uniform(0.5, 1.5, k)  # 0 is inside, and the faces go round it
    B = spread(rng, m)
    system = nsds.linear_complementarity_system(-np.eye(m), B, B.T, x=3 * rng.normal(size=m), law=nsds.normal_cone(G, g))
    rows = nsds.simulate(system, t_end=1.0, h=0.02)
    lam, y, mu = (rows["switches"][field][1:] for field in ("lambda", "y", "mu"))
    slack = lam @ G.T - g
    np.testing.assert_allclose(y, mu @ G, atol=1e-9)
    assert min(slack.min(), mu.min()) > -1e-9
    assert abs(slack * mu).max() < 1e-8
    np.testing.assert_allclose(y, rows["plant"]["x"][1:] @ B, atol=1e-9)


def test_a_box_is_a_polyhedron():
    A, B = np.array([[0.0, 1.0], [-1.0, 0.0]]), np.array([[1.0, 0.2], [0.0, 1.0]])
    box = nsds.normal_cone(np.vstack([np.eye(2), -np.eye(2)]), [-0.5, -0.5, -1.0, -1.0])
    runs = [nsds.simulate(nsds.linear_complementarity_system(A, B, np.eye(2), x=[3.0, -2.0], law=law), t_end=5.0, h=0.01)
            for law in (box, nsds.relay(-0.5, 1.0))]  # fmt: skip
    np.testing.assert_allclose(runs[0]["plant"]["x"], runs[1]["plant"]["x"], atol=1e-9)
    np.testing.assert_allclose(runs[0]["switches"]["lambda"], runs[1]["switches"]["lambda"], atol=1e-6)


# --- orders -------------------------------------------------------------------------------------------------------------------------
def observed_order(run, exact, steps=(100, 200, 400)):
    errors = [abs(run(n) - exact).max() for n in steps]
    return np.log2(np.array(errors[:-1]) / errors[1:])


def smooth_error(variant):
    """Swing with a bilateral output force that is smooth in time; the reference is the same with a small step."""

    def run(n):
        record = nsds.system(
            plant=nsds.first_order(swing, swing_jacobian, x=[0.5, 0.0]),
            law=nsds.interaction(nsds.first_order_relation(cubic, push, m=1, z=Z, **JACOBIANS), nsds.equality(), on="plant"),
        )
        record["law"]["lambda"] = -0.38829144  # consistent with y = 0 at the start, which gamma < 1 in (9.5) needs
        return nsds.simulate(record, t_end=1.0, h=1.0 / n, scheme=scheme(variant, newton_tol=1e-13))["plant"]["x"][-1]

    return run


@pytest.mark.parametrize(("variant", "order"), [("implicit", 1), ("theta_gamma", 1), ("full", 2), ("midpoint", 2)])
def test_orders_on_smooth_phases(variant, order):
    exact = smooth_error("midpoint")(20_000)
    np.testing.assert_allclose(observed_order(smooth_error(variant), exact), order, atol=0.1)


@pytest.mark.parametrize(("variant", "order"), [("implicit", 1), ("theta", 2), ("full", 2), ("midpoint", 2)])
def test_orders_of_a_linear_circuit_without_switching(variant, order):
    """A conducting diode, ``lambda > 0`` throughout: a linear system whose solution is a matrix exponential."""
    from scipy.linalg import expm

    A, B, C, D = np.array([[0.0, 1.0], [-4.0, -0.2]]), np.array([[0.0], [1.0]]), np.array([[0.0, -1.0]]), 2.0
    b = np.array([0.0, 3.0])
    x0 = np.array([0.0, 3.0])
    closed = A + B @ (-C / D)

    def run(n):
        system = nsds.linear_complementarity_system(A, B, C, [[D]], b=b, x=x0)
        rows = nsds.simulate(system, t_end=0.5, h=0.5 / n, scheme=scheme(variant))
        assert (rows["switches"]["lambda"][1:] > 0).all()
        return rows["plant"]["x"][-1]

    exact = expm(0.5 * closed) @ x0 + np.linalg.solve(closed, (expm(0.5 * closed) - np.eye(2)) @ b)
    # theta = 1/2 with lambda at the end of the step only is first order in B lambda (9.5 with gamma = 1)
    expected = 1 if variant == "theta" else order
    np.testing.assert_allclose(observed_order(run, exact), expected, atol=0.15)


@pytest.mark.parametrize("variant", ["implicit", "theta", "full"])
def test_order_one_across_switches(variant):
    """A relay that switches at known times: ``x'' = -sgn(x)`` from (1, 0) is made of parabolas, with period 4 sqrt(2)."""
    A, B, C = [[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], [[1.0, 0.0]]
    t_end = 3.0  # switches once, at sqrt(2)
    s = t_end - np.sqrt(2.0)
    exact = np.array([-np.sqrt(2.0) * s + s**2 / 2, -np.sqrt(2.0) + s])

    def error(n):
        system = nsds.linear_complementarity_system(A, B, C, x=[1.0, 0.0], law=nsds.relay())
        return abs(nsds.simulate(system, t_end=t_end, h=t_end / n, scheme=scheme(variant))["plant"]["x"][-1] - exact).max()

    sizes = (100, 400, 1600, 6400)
    errors = [max(error(n + k) for k in range(0, 30, 3)) for n in sizes]  # the place of the switch within its step varies
    assert -1.2 < np.polyfit(np.log(sizes), np.log(errors), 1)[0] < -0.85


# --- sliding ------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("h", [1e-1, 1e-2, 1e-3])
def test_an_implicit_relay_slides_without_chattering(h):
    """``x' = 0.5 sin t - sgn(x)``: reaches 0, then lambda cancels the disturbance and y stays at rounding."""

    def disturbance(t, z, out):
        out[0] = 0.5 * np.sin(t)

    system = nsds.linear_complementarity_system([[0.0]], [[1.0]], [[1.0]], b=disturbance, x=[1.0], law=nsds.relay())
    rows = nsds.simulate(system, t_end=10.0, h=h, scheme=nsds.euler_moreau())
    sliding = rows["t"] > 3.0
    assert abs(rows["switches"]["y"][sliding]).max() < 1e-14
    np.testing.assert_allclose(rows["switches"]["lambda"][sliding], -0.5 * np.sin(rows["t"][sliding]), atol=1e-10)
    assert np.ptp(np.sign(np.diff(rows["switches"]["lambda"][sliding], 2))) <= 2
    explicit = nsds.simulate(system, t_end=10.0, h=h, scheme=nsds.euler_moreau(theta=0.0))
    assert abs(explicit["switches"]["y"][sliding]).max() < 1e-14  # theta weighs f only: the relay stays implicit


def test_two_relays_slide_along_the_intersection_of_their_surfaces():
    system = nsds.linear_complementarity_system(np.zeros((2, 2)), [[2.0, -0.5], [0.5, 2.0]], np.eye(2), x=[1.0, -1.0], law=nsds.relay())
    rows = nsds.simulate(system, t_end=2.0, h=1e-3)
    assert abs(rows["switches"]["y"][1000:]).max() < 1e-14
    assert abs(rows["switches"]["lambda"][1000:]).max() < 1e-10


# --- passivity ----------------------------------------------------------------------------------------------------------------------
def passive_system(seed):
    """(A, B, C, D, P): storage ``x^T P x / 2`` with ``A^T P + P A <= 0``, ``P B = C^T``, ``D + D^T >= 0``."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    L = rng.normal(size=(n, n)) + 2 * np.eye(n)
    P = L @ L.T
    J, R = rng.normal(size=(n, n)), rng.normal(size=(n, int(rng.integers(0, n + 1))))
    A = np.linalg.solve(P, (J - J.T) * 3 - R @ R.T)
    C = rng.normal(size=(m, n))
    S, K = rng.normal(size=(m, int(rng.integers(0, m + 1)))), rng.normal(size=(m, m))
    return A, np.linalg.solve(P, C.T), C, S @ S.T + K - K.T, P, rng.normal(size=n)


@pytest.mark.parametrize(("theta", "gamma"), [(1.0, 1.0), (0.5, 0.5), (0.75, 0.75), (0.5, 1.0), (1.0, 0.5), (0.6, 0.9)])
@examples(25)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_storage_of_a_passive_circuit_never_grows(theta, gamma, seed):
    """Full theta–gamma scheme (9.6) of a passive LCS, theta and gamma >= 1/2.

    With d = x_{k+1} - x_k the storage changes by ``x_{1/2}^T P d`` and ``d = h (A x_theta + B lambda)``. For theta = gamma that is
    ``h x_theta^T P A x_theta + h lambda^T y - h lambda^T D lambda - (theta - 1/2) d^T P d <= 0``, exactly; for gamma > theta write
    ``B lambda`` with ``C x_theta = y - D lambda - (gamma - theta) C d``, which adds at most ``|gamma - theta| h |lambda^T C d|``.
    """
    A, B, C, D, P, x = passive_system(seed)
    h = 0.1
    system = nsds.linear_complementarity_system(A, B, C, D, x=x)
    scheme = nsds.euler_moreau(theta=theta, gamma=gamma, gamma_for_relation=True)
    rows = nsds.simulate(system, t_end=3.0, h=h, scheme=scheme)
    x, lam = rows["plant"]["x"], rows["switches"]["lambda"].reshape(len(rows), -1)[1:]
    storage = np.einsum("ki,ij,kj->k", x, P, x) / 2
    d = np.diff(x, axis=0)
    excess = abs(gamma - theta) * h * abs(np.einsum("ki,ij,kj->k", lam, C, d))
    assert (np.diff(storage) <= excess - (theta - 0.5) * np.einsum("ki,ij,kj->k", d, P, d) + 1e-9 * (1 + storage[0])).all()


@examples(25)
@given(seed=st.integers(0, 2**32 - 1), theta=st.floats(0.5, 1.0))
def test_the_storage_never_grows_for_equal_weights(seed, theta):
    """The bound above has no excess for theta = gamma."""
    A, B, C, D, P, x = passive_system(seed)
    system = nsds.linear_complementarity_system(A, B, C, D, x=x)
    rows = nsds.simulate(system, t_end=3.0, h=0.1, scheme=nsds.euler_moreau(theta=theta, gamma=theta, gamma_for_relation=True))
    storage = np.einsum("ki,ij,kj->k", rows["plant"]["x"], P, rows["plant"]["x"]) / 2
    assert (np.diff(storage) <= 1e-9 * (1 + storage[0])).all()


def test_a_lossless_circuit_keeps_its_energy():
    """theta = gamma = 1/2 (9.6): the balance of the RLC circuit with one diode is exact."""
    L, C0, R, h = 1.0, 1 / (4 * np.pi**2), 10.0, 0.05
    system = nsds.linear_complementarity_system([[0.0, -1.0], [1 / (L * C0), 0.0]], [[1.0], [0.0]], [[1 / C0, 0.0]], [[R]], x=[1.0, 1.0])
    rows = nsds.simulate(system, t_end=5.0, h=h, scheme=nsds.euler_moreau(theta=0.5, gamma=0.5, gamma_for_relation=True))
    q, i = rows["plant"]["x"].T
    total = (q**2 / C0 + L * i**2) / 2 + np.cumsum(h * R * rows["switches"]["lambda"] ** 2)
    assert np.ptp(total) < 1e-12 * total[0] * 10


# --- ensembles, arrays, restart -----------------------------------------------------------------------------------------------------
def test_ensembles_and_restarts_have_the_bits_of_a_single_run():
    record, _ = random_linear(11)
    ensemble = np.repeat(record, 5)
    ensemble["a"]["x"] *= np.linspace(0.5, 1.5, 5)[:, None]
    for variant in VARIANTS:
        options = {"h": 0.02, "scheme": scheme(variant)}
        together = nsds.simulate(ensemble, t_end=1.0, **options)
        for one, expected in zip(ensemble, together, strict=True):
            alone = nsds.simulate(one, t_end=1.0, **options)
            assert alone.tobytes() == expected.tobytes()
        again = nsds.simulate(nsds.restart(ensemble[2], together[2, 20]), t_end=1.0, **options)
        assert again.tobytes() == together[2, 20:].tobytes()


def test_a_nonlinear_restart_has_the_bits_of_a_single_run():
    record = nsds.system(
        plant=nsds.first_order(swing, swing_jacobian, x=[0.5, 0.0]),
        law=nsds.interaction(nsds.first_order_relation(cubic, push, m=1, z=Z, **JACOBIANS), nsds.relay(), on="plant"),
    )
    for variant in VARIANTS:
        whole = nsds.simulate(record, t_end=1.0, h=0.02, scheme=scheme(variant))
        again = nsds.simulate(nsds.restart(record, whole[17]), t_end=1.0, h=0.02, scheme=scheme(variant))
        assert again.tobytes() == whole[17:].tobytes()


def test_an_array_of_nonlinear_systems_is_each_of_them():
    """Elements with their own parameters and starts, an interaction on some of them, and an ensemble of it all."""
    x, z = np.array([[0.5, 0.0], [-0.2, 0.3], [1.0, -1.0], [0.4, 0.1]]), np.array([0.3, 0.1, 0.2, 0.4])

    def system(x, z, count, on):
        relation = nsds.first_order_relation(cubic, push, m=1, z=[0.3], **JACOBIANS)
        part = nsds.first_order(damped, x=x, z=z, count=count)
        return nsds.system(plants=part, law=nsds.interaction(relation, nsds.complementarity(), on=on))

    options = {"t_end": 2.0, "h": 0.05, "scheme": nsds.euler_moreau(theta=0.5)}
    whole = system(x, z[:, None], 4, "plants[1:]")
    rows = nsds.simulate(np.repeat(whole, 2), **options)[1]
    free = nsds.simulate(nsds.system(p=nsds.first_order(damped, x=x[0], z=[z[0]])), **options)
    np.testing.assert_allclose(rows["plants"]["x"][:, 0], free["p"]["x"], atol=1e-8)
    for k in (1, 2, 3):
        alone = nsds.simulate(system(x[k], [z[k]], None, "plants"), **options)
        np.testing.assert_allclose(rows["plants"]["x"][:, k], alone["plants"]["x"], atol=1e-8)
        np.testing.assert_allclose(rows["law"]["lambda"][:, k - 1], alone["law"]["lambda"], atol=1e-8)
    assert (rows["law"]["lambda"] > 0).any()


def damped(t, x, z, out):
    out[0] = x[1]
    out[1] = -np.sin(x[0]) - z[0] * x[1] + np.cos(2 * t)


def test_a_ladder_of_cells_is_solved_in_sparse_form():
    """Cells that charge one another through diodes: an array part, an interaction between neighbours, agreement with one dense part."""
    n = 12
    cells = nsds.first_order_linear([-0.5], x=np.linspace(2.0, 0.0, n), count=n)
    diode = nsds.first_order_linear_relation([[-1.0, 1.0]], [[-1.0], [1.0]], D=[[0.1]])
    ladder = nsds.system(cells=cells, diodes=nsds.interaction(diode, nsds.complementarity(), on=("cells[:-1]", "cells[1:]")))
    C = np.eye(n)[1:] - np.eye(n)[:-1]
    dense = nsds.linear_complementarity_system(-0.5 * np.eye(n), C.T, C, 0.1 * np.eye(n - 1), x=np.linspace(2.0, 0.0, n))
    rows, expected = (nsds.simulate(system, t_end=1.0, h=0.01, scheme=nsds.euler_moreau(theta=0.5)) for system in (ladder, dense))
    np.testing.assert_allclose(rows["cells"]["x"][..., 0], expected["plant"]["x"], atol=1e-9)
    np.testing.assert_allclose(rows["diodes"]["lambda"], expected["switches"]["lambda"], atol=1e-8)
    assert (rows["diodes"]["lambda"][1:] > 0).any()


def test_sparse_and_diagonal_matrices_give_what_dense_ones_give():
    from scipy.sparse import csr_array, diags_array

    n = 30
    A = (diags_array([np.ones(n - 1), -2 * np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1]) * 4).tocsr()
    mass = np.linspace(1, 2, n)
    C, B = np.zeros((1, n)), np.zeros((n, 1))
    C[0, 0], B[0, 0] = 1.0, 1.0
    rows = []
    for matrix, M in ((A, mass), (A.toarray(), np.diag(mass)), (A, csr_array(np.diag(mass)))):
        system = nsds.linear_complementarity_system(matrix, B, C, x=np.sin(np.arange(n)), e=[-0.2], M=M, b=np.full(n, -0.1))
        rows.append(nsds.simulate(system, t_end=1.0, h=0.01, scheme=nsds.euler_moreau(theta=0.5)))
    for other in rows[1:]:
        np.testing.assert_allclose(other["plant"]["x"], rows[0]["plant"]["x"], atol=1e-10)


# --- failures -----------------------------------------------------------------------------------------------------------------------
def blow_up(t, x, z, out):
    out[0] = 1.0 + x[0] ** 2


def test_newton_that_does_not_converge_is_a_failed_step():
    """``x = x_k + h (1 + x^2)`` has no solution once h is too large for x."""
    system = nsds.system(p=nsds.first_order(blow_up, x=[0.0]))
    with pytest.raises(nsds.SimulationError, match="Newton's iteration of the step did not converge") as caught:
        nsds.simulate(system, t_end=2.0, h=0.1)
    assert caught.value.status == NEWTON
    assert caught.value.residual > 1e-10
    rows = nsds.simulate(system, t_end=0.5, h=0.01)
    assert rows["n_iter"].max() < 10


def steep(t, x, z, out):
    out[0] = 10.0 * x[0]


def steep_jacobian(t, x, z, out):
    out[0, 0] = 10.0


def test_a_singular_iteration_matrix_is_named():
    with pytest.raises(ValueError, match=r"part 'p': the iteration matrix M - h theta A is singular \(h = 0.1, theta = 1\)"):
        nsds.simulate(nsds.system(p=nsds.first_order_linear([[10.0]], x=[1.0])), t_end=1.0, h=0.1)
    with pytest.raises(nsds.SimulationError, match="iteration matrix of the step is singular") as caught:
        nsds.simulate(nsds.system(p=nsds.first_order(steep, steep_jacobian, x=[1.0])), t_end=1.0, h=0.1)
    assert caught.value.status == SINGULAR_STEP


def breaks(t, x, z, out):
    out[0] = np.nan if t > 0.45 else -x[0]


def test_nan_of_a_function_is_named():
    with pytest.raises(nsds.SimulationError, match=r"f of part 'p', .*breaks, returned NaN") as caught:
        nsds.simulate(nsds.system(p=nsds.first_order(breaks, x=[1.0])), t_end=1.0, h=0.1)
    assert caught.value.status == NON_FINITE
    assert caught.value.step == 5


def breaks_too(t, x, lam, z, out):
    out[0] = np.log(x[0] - 0.5)


def lift(t, x, lam, z, out):
    out[0] = lam[0]


def test_nan_of_a_relation_is_named():
    relation = nsds.first_order_relation(breaks_too, lift, m=1)
    system = nsds.system(p=nsds.first_order_linear([[-1.0]], x=[1.0]), law=nsds.interaction(relation, nsds.relay(-1.0, 0.0), on="p"))
    with pytest.raises(nsds.SimulationError, match=r"h of interaction 'law', .*breaks_too, returned NaN"):
        nsds.simulate(system, t_end=2.0, h=0.1, scheme=nsds.euler_moreau(theta=0.0))


def breaks_below(t, x, z, out):
    out[0] = np.log(x[0] - 0.5)


def test_nan_of_one_system_of_an_array_is_named():
    """The function is evaluated at the state of each element: those before may have no trouble."""
    system = nsds.system(p=nsds.first_order(breaks_below, x=[[2.0], [0.51]], count=2))
    with pytest.raises(nsds.SimulationError, match=r"f of part 'p', .*breaks_below, returned NaN"):
        nsds.simulate(system, t_end=1.0, h=0.1)


def twice(t, x, lam, z, out):
    out[0] = x[0] + 2.0 * lam[0]


def no_derivative(t, x, lam, z, out):
    out[0] = np.nan if x[0] < 0.5 else 2.0


def test_nan_of_a_derivative_of_a_relation_is_named():
    relation = nsds.first_order_relation(twice, lift, m=1, D=no_derivative)
    system = nsds.system(p=nsds.first_order_linear([[-1.0]], x=[1.0]), law=nsds.interaction(relation, nsds.relay(-1.0, 1.0), on="p"))
    with pytest.raises(nsds.SimulationError, match=r"D of interaction 'law', .*no_derivative, returned NaN"):
        nsds.simulate(system, t_end=2.0, h=0.1)


def good(t, x, z, out):
    out[0] = -x[0]


def wide_jacobian(t, x, z, out):
    out[0, 1] = 1.0


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: nsds.system(p=nsds.first_order(good, wide_jacobian, x=[1.0])), ValueError, ["part 'p'", "jac_f(t, x, z, out)", "(1, 1)"]),
        (lambda: nsds.first_order(lambda t, x, out: None, x=[1.0]), TypeError, ["f(t, x, z, out)", "(t, x, out)"]),
        (lambda: nsds.first_order(good, lambda x: None, x=[1.0]), TypeError, ["jac_f(t, x, z, out)"]),
        (lambda: nsds.first_order(np.eye(2), x=[1.0, 1.0]), TypeError, ["f(t, x, z, out)"]),
        (lambda: nsds.first_order_linear([[1.0, 0.0]], x=[1.0, 0.0]), ValueError, ["A must have shape (2, 2)"]),
        (lambda: nsds.first_order_linear(np.eye(2), x=[1.0]), ValueError, ["x must have shape (2,)"]),
        (lambda: nsds.first_order_linear(np.eye(2), x=[1.0, 0.0], T=np.eye(2)), ValueError, ["T is the weight of u"]),
        (lambda: nsds.first_order_linear(np.eye(2), x=[1.0, 0.0], u=[1.0]), ValueError, ["length of u", "1 from u", "2 from T"]),
        (lambda: nsds.first_order_linear(np.eye(2), x=[1.0, 0.0], T=T_of_t, u=wave), ValueError, ["n_u"]),
        (lambda: nsds.first_order_linear_relation([[1.0, 0.0]], [[1.0, 0.0]]), ValueError, ["B must have shape (2, 1)"]),
        (lambda: nsds.first_order_linear_relation([[1.0]], [[1.0]], F=[[1.0]]), ValueError, ["F is the weight of z"]),
        (lambda: nsds.first_order_linear_relation(C_of_t, T_of_t), ValueError, ["m, the number of constraints"]),
        (lambda: nsds.type1_relation(good, None, m=1), TypeError, ["type1_relation: g"]),
        (lambda: nsds.type2_relation(good, good, m=1), TypeError, ["h(t, x, lam, z, out)"]),
        (lambda: nsds.first_order_relation(cubic, push, m=0), ValueError, ["m must be at least 1"]),
        (lambda: nsds.relay(1.0, -1.0), ValueError, ["lower <= upper"]),
        (lambda: nsds.normal_cone([[1.0, 0.0]], [1.0, 2.0]), ValueError, ["g must have shape (1,)"]),
        (lambda: nsds.linear_complementarity_system([[1.0]], [[1.0]], [[1.0]], x=[1.0], law=nsds.newton_impact(0.5)), ValueError,
         ["newton_impact is not a law for first-order systems"]),
        (lambda: nsds.linear_complementarity_system([[1.0]], [[1.0]], [[1.0]], x=[1.0], law=nsds.mixed_complementarity(2)), ValueError,
         ["n_equalities must be at most 1"]),
        (lambda: nsds.linear_complementarity_system([[1.0]], [[1.0]], [[1.0]], x=[1.0], law=nsds.normal_cone(np.eye(2), [0, 0])),
         ValueError, ["G must have 1 columns"]),
        (lambda: nsds.system(p=nsds.first_order(swing, x=[1.0, 0.0]), r=nsds.interaction(
            nsds.first_order_relation(push, push, m=1), nsds.relay(), on="p")), ValueError, ["part 'r'", "h(t, x, lam, z, out)", "(1,)"]),
        (lambda: nsds.system(p=nsds.first_order_linear([[1.0]], x=[1.0]), q=nsds.lagrangian_linear([1.0], q=[0], v=[0])), ValueError,
         ["'p' is first-order", "'q' is Lagrangian"]),
    ],
)  # fmt: skip
def test_bad_input_is_named(build, error, words):
    with pytest.raises(error) as caught:
        build()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_relations_and_systems_of_different_families_are_refused():
    ball = nsds.lagrangian_linear([1.0], q=[0.0], v=[0.0])
    relation = nsds.first_order_linear_relation([[1.0]], [[1.0]])
    with pytest.raises(ValueError, match="is for first-order systems, but 'ball' is a lagrangian_linear"):
        nsds.system(ball=ball, floor=nsds.interaction(relation, nsds.complementarity(), on="ball"))
    with pytest.raises(ValueError, match=r"Lagrangian systems want nsds.moreau_jean"):
        nsds.simulate(nsds.system(ball=ball), t_end=1.0, h=0.1, scheme=nsds.euler_moreau())
    with pytest.raises(ValueError, match=r"first-order systems want nsds.euler_moreau"):
        nsds.simulate(nsds.system(p=nsds.first_order(good, x=[1.0])), t_end=1.0, h=0.1, scheme=nsds.moreau_jean())


@pytest.mark.parametrize("size", [1e-300, 2e-320, 2e-323])
@pytest.mark.parametrize("method", ["auto", "lemke", "newton_fb"])
@pytest.mark.parametrize("n", [1, 2])
def test_what_has_died_out_is_solved(n, method, size):
    """Below 1e-308 numbers lose digits, so that the error of an exact solution is a part of its terms: that is no failure."""
    system = nsds.system(
        plant=nsds.first_order_linear(A=[[-1.0]], x=[-size]),
        diodes=nsds.interaction(
            nsds.first_order_linear_relation(np.ones((n, 1)), -np.ones((1, n)), 3 * np.eye(n) + 0.5), nsds.complementarity(), on="plant"
        ),
    )
    rows = nsds.simulate(system, t_end=0.1, h=0.01, solver=nsds.solvers.solver(method))
    assert not rows["status"].any()
    assert (abs(rows["diodes"]["lambda"]) <= size).all()


# --- relative degree ----------------------------------------------------------------------------------------------------------------
def chain_of_integrators(r, D=0.0):
    """Relative degree r: lambda acts on the last of r integrators, y is the first."""
    A = np.eye(r, k=1)
    return nsds.linear_complementarity_system(A, np.eye(r)[:, -1:], np.eye(r)[:1], [[D]], x=np.ones(r))


@pytest.mark.parametrize("size", [1e-300, 1e200, 1e300])
def test_relative_degree_does_not_depend_on_units(size):
    """``C A^2 B`` overflows, or vanishes, where its factors do not."""
    A = size * np.eye(3, k=1)
    B, C = [[0.0], [0.0], [size]], [[size, 0.0, 0.0]]
    system = nsds.system(
        plant=nsds.first_order_linear(A=A, x=np.ones(3)),
        c=nsds.interaction(nsds.first_order_linear_relation(C, B), nsds.complementarity(), on="plant"),
    )
    assert nsds.relative_degree(system) == (3, np.array([3]))


def test_relative_degree_from_the_markov_parameters():
    for r in (1, 2, 3, 5):
        assert nsds.relative_degree(chain_of_integrators(r)) == (r, np.array([r]))
    assert nsds.relative_degree(chain_of_integrators(3, D=1.0)).uniform == 0
    mixed = nsds.linear_complementarity_system(np.eye(3, k=1), np.eye(3), np.eye(3), np.diag([1.0, 0.0, 0.0]), x=np.ones(3))
    degree = nsds.relative_degree(mixed)
    assert degree.uniform == 1  # D is singular, CB regular (8.4-8.5)
    assert degree.of_outputs.tolist() == [0, 1, 1]
    unmoved = nsds.linear_complementarity_system(np.zeros((2, 2)), [[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], x=np.ones(2))
    assert nsds.relative_degree(unmoved).uniform is None
    assert nsds.relative_degree(unmoved).of_outputs.tolist() == [1, -1]
    with pytest.raises(ValueError, match="linear systems with constant operators"):
        nsds.relative_degree(nsds.system(p=nsds.first_order(good, x=[1.0])))
    with pytest.raises(ValueError, match="first-order"):
        nsds.relative_degree(nsds.examples.bouncing_ball())


def test_a_mass_counts_in_the_relative_degree():
    M = np.array([[0.0, 1.0], [1.0, 0.0]])  # swaps the states: lambda reaches y at once
    system = nsds.linear_complementarity_system(np.zeros((2, 2)), [[0.0], [1.0]], [[1.0, 0.0]], x=np.ones(2), M=M)
    assert nsds.relative_degree(system).uniform == 1


def test_complementarity_of_degree_two_is_refused_and_relays_are_not():
    with pytest.raises(ValueError, match=r"'switches' has a one-sided constraint of relative degree 2.*degrees 0 and 1 are treated"):
        nsds.simulate(chain_of_integrators(2), t_end=1.0, h=0.1)
    nsds.simulate(chain_of_integrators(2, D=1.0), t_end=1.0, h=0.1)
    nsds.simulate(chain_of_integrators(1), t_end=1.0, h=0.1)
    relay = nsds.linear_complementarity_system([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], [[1.0, 0.0]], x=[1.0, 0.0], law=nsds.relay())
    nsds.simulate(relay, t_end=1.0, h=0.1)


@pytest.mark.parametrize("h", [0.1, 1e-2, 1e-3])
def test_what_friction_holds_at_rest_by_functions(h):
    """``x' = v, v' = 2 t - s, s in Sgn(v)`` from rest sticks up to t = 1/2, with velocities that are rounding: x(1) = 1/24."""

    def f(t, x, z, out):
        out[0], out[1] = x[1], 2 * t

    friction = nsds.interaction(nsds.first_order_linear_relation(C=[[0, 1]], B=[[0], [1]]), nsds.relay(-1, 1), on="plant")
    rows = nsds.simulate(nsds.system(plant=nsds.first_order(f, x=[0.0, 0.0]), friction=friction), t_end=1.0, h=h)
    assert (rows["status"] == 0).all()
    assert abs(rows["plant"]["x"][-1, 0] - 1 / 24) <= h


def test_a_super_twisting_controller_slides_without_failed_steps():
    """g is no Lipschitz function at the point where it slides, with ``lambda = -cos(t) / 2.2``."""

    def f(t, x, z, out):
        out[0], out[1] = x[1], np.cos(t)

    def h(t, x, lam, z, out):
        out[0] = x[0]

    def g(t, x, lam, z, out):
        out[0], out[1] = 2.1213 * np.sqrt(abs(x[0])) * lam[0], 2.2 * lam[0]

    switch = nsds.interaction(nsds.first_order_relation(h, g, m=1), nsds.relay(-1, 1), on="plant")
    rows = nsds.simulate(nsds.system(plant=nsds.first_order(f, x=[1.0, 0.0]), switch=switch), t_end=6, h=1e-2, on_failure="continue")
    assert not nsds.status.has_failed(rows["status"]).any()
    late = rows["t"] > 3
    np.testing.assert_allclose(rows["switch"]["lambda"].reshape(-1)[late], -np.cos(rows["t"][late]) / 2.2, atol=1e-6)
