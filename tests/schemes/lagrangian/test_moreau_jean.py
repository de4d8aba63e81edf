"""Moreau–Jean: agreement with a dense NumPy twin, and the laws that every step must obey."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import nsds
from tests import reference
from tests.strategies import examples

seeds = st.integers(0, 2**32 - 1)
pytestmark = pytest.mark.filterwarnings("ignore:the bilateral constraint")  # random models start anywhere


def random_model(seed, n=None, m=None, stiff=True, bilateral=False, compliant=False, uniform_e=False):
    """A dense system of n coordinates with m constraints, some of them closed at the start."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(1, 6))
    m = m or int(rng.integers(1, n + 1))
    spd = lambda scale: scale * (lambda A: A @ A.T / n + 0.5 * np.eye(n))(rng.normal(size=(n, n)))  # noqa: E731
    H = rng.normal(size=(m, n))
    q, v = rng.normal(size=n), rng.normal(size=n)
    amplitude = rng.normal(size=n)
    joints = rng.uniform(size=m) < 0.5 if bilateral else np.zeros(m, bool)
    e = np.where(joints, 0.0, rng.uniform() if uniform_e else rng.uniform(size=m))
    compliance = 0.1 * np.diag(rng.uniform(size=m)) if compliant else np.zeros((m, m))
    return {
        "M": spd(1.0), "K": spd(20.0) if stiff else np.zeros((n, n)), "C": spd(0.5) if stiff else np.zeros((n, n)),
        "F": lambda t: amplitude, "amplitude": amplitude, "q": q, "v": v, "H": H, "b": -H @ q + rng.choice([0.0, 0.05], size=m),
        "D": compliance, "e": e, "bilateral": joints,
    }  # fmt: skip


def _restitution(model):
    """Of the unilateral constraints; any where there are none."""
    return 0.0 if model["bilateral"].all() else model["e"][~model["bilateral"]]


def build(model, t=0.0, matrix=np.asarray, force=None):
    """The record of a model: unilateral constraints in one interaction, bilateral ones in another."""
    part = nsds.lagrangian_linear(
        M=matrix(model["M"]), K=matrix(model["K"]), C=matrix(model["C"]), fext=force or model["amplitude"], q=model["q"], v=model["v"]
    )
    parts = {"body": part}
    for name, rows, law in (("contact", ~model["bilateral"], nsds.newton_impact(_restitution(model))),
                            ("joint", model["bilateral"], nsds.equality())):  # fmt: skip
        if rows.any():
            D = model["D"][np.ix_(rows, rows)]
            relation = nsds.lagrangian_linear_relation(H=model["H"][rows], b=model["b"][rows], D=D if D.any() else None)
            parts[name] = nsds.interaction(relation, law, on="body")
    return nsds.system(t=t, **parts)


def columns(trajectory, model, key):
    """Rows of an interaction field in the order of the model's constraints."""
    result = np.zeros((len(trajectory), len(model["bilateral"])))
    for name, rows in (("contact", ~model["bilateral"]), ("joint", model["bilateral"])):
        if rows.any():
            result[:, rows] = trajectory[name][key].reshape(len(trajectory), -1)
    return result


@examples(60)
@given(seeds, st.sampled_from([0.5, 0.7, 1.0]), st.sampled_from([0.0, 0.5, 1.0]), st.booleans(), st.booleans())
def test_agrees_with_the_dense_twin(seed, theta, gamma, bilateral, compliant):
    model = random_model(seed, bilateral=bilateral, compliant=compliant)
    scheme = nsds.moreau_jean(theta=theta, gamma=gamma)
    trajectory = nsds.simulate(build(model), t_end=0.2, h=0.01, scheme=scheme)
    t, q, v, y, ydot, lam, active = reference.moreau_jean(model, 0.0, 0.01, 20, theta, gamma)
    np.testing.assert_allclose(trajectory["t"], t, atol=1e-14)
    # A forecast within rounding of zero may fall on either side; from there on two correct programs part.
    same = np.argmax(np.r_[(columns(trajectory, model, "active") != active).any(axis=1), True])
    assert same == 21 or np.abs(y + gamma * 0.01 * ydot)[same - 1].min() < 1e-12
    for given_rows, wanted in ((trajectory["body"]["q"], q), (trajectory["body"]["v"], v), (columns(trajectory, model, "y"), y),
                               (columns(trajectory, model, "ydot"), ydot), (columns(trajectory, model, "lambda"), lam)):  # fmt: skip
        np.testing.assert_allclose(given_rows[:same], wanted[:same], atol=1e-9)


@examples(60)
@given(seeds, st.sampled_from(["auto", "newton_min", "lemke", "pgs", "enumerate"]))
def test_impact_law_and_momentum_balance_hold_at_every_step(seed, solver):
    model = random_model(seed)
    h, theta, gamma = 0.01, 0.5, 0.5
    system = build(model)
    trajectory = nsds.simulate(system, t_end=0.3, h=h, solver=nsds.solvers.solver(solver, tol=1e-10))
    contact, body = trajectory["contact"], trajectory["body"]
    shape = (len(trajectory), -1)
    y, ydot, lam, active = (contact[key].reshape(shape) for key in ("y", "ydot", "lambda", "active"))
    assert (trajectory["status"] == 0).all()
    np.testing.assert_array_equal(active[1:], (y + gamma * h * ydot <= 0)[:-1])
    assert (lam[active == 0] == 0).all()
    assert (lam >= 0).all()
    w = ydot[1:] + model["e"] * ydot[:-1]
    bound = 1e-8  # tol times the scale of q, which is of order 10 here
    assert (w[active[1:] == 1] >= -bound).all()
    assert (np.minimum(abs(w), lam[1:])[active[1:] == 1] <= bound).all()
    q, v = body["q"], body["v"]
    q_theta, v_theta = theta * q[1:] + (1 - theta) * q[:-1], theta * v[1:] + (1 - theta) * v[:-1]
    inertia = (v[1:] - v[:-1]) @ model["M"]
    forces = h * (model["amplitude"] - v_theta @ model["C"] - q_theta @ model["K"])
    np.testing.assert_allclose(inertia, forces + lam[1:] @ model["H"], atol=1e-11)
    np.testing.assert_allclose(q[1:] - q[:-1], h * v_theta, atol=1e-13)


@examples(40)
@given(seeds, st.sampled_from([0.5, 0.6, 1.0]))
def test_energy_does_not_grow_without_forces(seed, theta):
    """Contact work is ``-(1 - theta (1+e)) / (1+e) lambda . W lambda`` for K = C = 0 and one e; theta and the data add only losses."""
    model = random_model(seed, stiff=False, uniform_e=True)
    model["amplitude"] = np.zeros_like(model["amplitude"])
    model["e"] = model["e"] * (1 - theta) / theta
    system = build(model)
    trajectory = nsds.simulate(system, t_end=0.5, h=0.01, scheme=nsds.moreau_jean(theta=theta))
    ledger = nsds.energy(system, trajectory, theta)
    assert np.diff(ledger["kinetic"]).max() <= 1e-10
    assert ledger["contact"].max() <= 1e-10
    assert ledger["numerical"].max() <= 1e-10


@examples(40)
@given(st.floats(0, 1), st.floats(0.1, 10), st.floats(0.1, 20), st.floats(1e-4, 1e-2))
def test_energy_gain_of_a_ball_is_bounded(e, mass, g, h):
    """With an active contact and u > 0 a step may gain at most ``m (1-e) / (8 (1+e)) (h g)^2`` over the work of the weight."""
    system = nsds.system(
        ball=nsds.lagrangian_linear(M=[mass], fext=[-mass * g], q=[0.01], v=[0.0]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(e), on="ball"),
    )
    ledger = nsds.energy(system, nsds.simulate(system, t_end=500 * h, h=h))
    bound = mass * (1 - e) / (8 * (1 + e)) * (h * g) ** 2
    assert ledger["contact"].max() <= bound + 1e-14 * mass
    assert abs(ledger["numerical"]).max() <= 1e-12 * mass


@pytest.mark.parametrize("theta", [0.5, 0.75, 1.0])
def test_numerical_dissipation_is_that_of_theta(theta):
    model = random_model(3, n=4, m=1)
    model["b"] += 100.0  # never in contact
    system = build(model)
    trajectory = nsds.simulate(system, t_end=1.0, h=0.01, scheme=nsds.moreau_jean(theta=theta))
    dq, dv = np.diff(trajectory["body"]["q"], axis=0), np.diff(trajectory["body"]["v"], axis=0)
    lost = (theta - 0.5) * ((dv @ model["M"] * dv).sum(axis=1) + (dq @ model["K"] * dq).sum(axis=1))
    np.testing.assert_allclose(nsds.energy(system, trajectory, theta)["numerical"][1:], -lost, atol=1e-12)


def observed_order(errors):
    """Mean slope of log2(error) when h is halved."""
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:])).mean()


@pytest.mark.parametrize(("theta", "order"), [(0.5, 2), (1.0, 1)])
def test_order_without_impacts(theta, order):
    def oscillator_error(h):
        system = nsds.system(mass=nsds.lagrangian_linear(M=[1.0], K=[[4.0]], q=[1.0], v=[0.5]))
        last = nsds.simulate(system, t_end=1.0, h=h, scheme=nsds.moreau_jean(theta=theta))[-1]
        exact = np.cos(2.0) + 0.25 * np.sin(2.0)
        return abs(last["mass"]["q"][0] - exact)

    assert observed_order([oscillator_error(0.02 / 2**i) for i in range(4)]) == pytest.approx(order, abs=0.1)


def test_order_one_with_impacts():
    """Mean error of q over a bouncing ball (closed form between impacts) falls as h."""
    e, g, height = 0.8, 10.0, 1.0
    system = nsds.examples.bouncing_ball(height=height, e=e)
    system["ball"]["fext"][0] = -g

    def exact(t):
        fall = np.sqrt(2 * height / g)
        v, start = e * g * fall, fall
        while start + 2 * v / g < t:
            start, v = start + 2 * v / g, e * v
        return height - g * t**2 / 2 if t < fall else v * (t - start) - g * (t - start) ** 2 / 2

    def error(h):
        trajectory = nsds.simulate(system, t_end=2.0, h=h)
        return np.mean(abs(trajectory["ball"]["q"][:, 0] - [exact(t) for t in trajectory["t"]]))

    # 0.7 because the error also depends on where in its step each impact falls.
    assert observed_order([error(2e-3 / 2**i) for i in range(7)]) == pytest.approx(1.0, abs=0.3)


def two_balls_and_a_spring(order):
    rel, impact = nsds.lagrangian_linear_relation, nsds.newton_impact
    parts = {
        "a": nsds.lagrangian_linear(M=[1.0], fext=[-9.81], q=[0.3], v=[0.0]),
        "b": nsds.lagrangian_linear(M=[2.0], K=[[5.0]], fext=[-19.62], q=[0.6], v=[-1.0]),
        "floor": nsds.interaction(rel(H=[[1.0]]), impact(0.7), on="a"),
        "gap": nsds.interaction(rel(H=[[-1.0, 1.0]], b=[-0.2]), impact(0.5), on=("a", "b")),
    }
    return nsds.system(**{name: parts[name] for name in order})


@pytest.mark.parametrize("order", [("b", "gap", "a", "floor"), ("gap", "floor", "b", "a"), ("floor", "a", "b", "gap")])
def test_the_order_of_parts_does_not_matter(order):
    usual = nsds.simulate(two_balls_and_a_spring(("a", "b", "floor", "gap")), t_end=2.0, h=1e-3)
    other = nsds.simulate(two_balls_and_a_spring(order), t_end=2.0, h=1e-3)
    for part in ("a", "b"):
        np.testing.assert_allclose(other[part]["q"], usual[part]["q"], atol=1e-12)
    assert other["floor"]["lambda"].any()
    np.testing.assert_allclose(other["gap"]["lambda"], usual["gap"]["lambda"], atol=1e-12)


def column(order, split=False, n_dofs=1):
    """Beads on a floor, numbered from below by ``order``; one array part, or a part for each bead."""
    n = len(order)
    rank = np.argsort(order)  # the bead at each height
    rel, impact, radius = nsds.lagrangian_linear_relation, nsds.newton_impact(0.6), 0.1
    first = np.eye(n_dofs)[0]
    height = np.zeros((n, n_dofs))
    height[rank, 0] = 0.2 + 0.25 * np.arange(n)
    mass, weight = np.linspace(1.0, 0.5, n_dofs), -9.81 * first
    low, high = rel(H=[first], b=[-radius]), rel(H=[[*-first, *first]], b=[-2 * radius])
    if split:
        beads = {f"bead{i}": nsds.lagrangian_linear(M=mass, fext=weight, q=height[i], v=np.zeros(n_dofs)) for i in range(n)}
        pairs = {f"gap{i}": nsds.interaction(high, impact, on=(f"bead{rank[i]}", f"bead{rank[i + 1]}")) for i in range(n - 1)}
        return nsds.system(**beads, floor=nsds.interaction(low, impact, on=f"bead{rank[0]}"), **pairs)
    return nsds.system(
        beads=nsds.lagrangian_linear(M=mass, fext=weight, q=height, v=np.zeros(n_dofs), count=n),
        floor=nsds.interaction(low, impact, on=f"beads[{rank[0]}]"),
        gaps=nsds.interaction(high, impact, on=(("beads", rank[:-1]), ("beads", rank[1:]))),
    )


@pytest.mark.parametrize("n_dofs", [1, 3])
def test_an_array_part_equals_separate_parts(n_dofs):
    order = np.arange(6)
    array = nsds.simulate(column(order, n_dofs=n_dofs), t_end=1.5, h=1e-3)
    split = nsds.simulate(column(order, split=True, n_dofs=n_dofs), t_end=1.5, h=1e-3)
    for i in range(6):
        np.testing.assert_array_equal(array["beads"]["q"][:, i], split[f"bead{i}"]["q"])
    np.testing.assert_array_equal(array["gaps"]["lambda"][:, 2], split["gap2"]["lambda"])


def test_a_shuffled_column_moves_as_the_ordered_one():
    """The constraints of the shuffled column are reordered to keep the problem narrow; the motion is the same."""
    order = np.random.default_rng(1).permutation(40)
    shuffled = nsds.simulate(column(order), t_end=1.0, h=1e-3)
    ordered = nsds.simulate(column(np.arange(40)), t_end=1.0, h=1e-3)
    np.testing.assert_allclose(shuffled["beads"]["q"][:, np.argsort(order)], ordered["beads"]["q"], atol=1e-9)


@examples(25)
@given(seeds)
def test_sparse_dense_and_diagonal_storage_agree(seed):
    model = random_model(seed, n=5)
    for key in "MKC":
        model[key] = np.diag(np.diag(model[key]))
    runs = [nsds.simulate(build(model, matrix=matrix), t_end=0.2, h=0.01) for matrix in (np.asarray, np.diag, sp.csr_array)]
    for run in runs[1:]:
        np.testing.assert_allclose(run["body"]["q"], runs[0]["body"]["q"], atol=1e-12)
        np.testing.assert_allclose(run["contact"]["lambda"], runs[0]["contact"]["lambda"], atol=1e-11)


def test_full_sparse_matrices_agree_with_dense_ones():
    """With fill, pivoting and permutations in the factors."""
    model = random_model(11, n=9, m=3)
    rng = np.random.default_rng(0)
    for key in "MKC":
        pattern = rng.uniform(size=(9, 9)) < 0.3
        model[key] = np.where(pattern | pattern.T | np.eye(9, dtype=bool), model[key], 0.0) + 3 * np.eye(9)
    dense = nsds.simulate(build(model), t_end=0.5, h=0.01)
    sparse = nsds.simulate(build(model, matrix=sp.csr_array), t_end=0.5, h=0.01)
    np.testing.assert_allclose(sparse["body"]["q"], dense["body"]["q"], atol=1e-12)


def test_matrices_of_different_storage_mix():
    model = random_model(5, n=4, m=2)
    model["M"] = np.diag(np.diag(model["M"]))
    dense = nsds.simulate(build(model), t_end=0.3, h=0.01)
    choose = {"M": np.diag, "K": sp.csr_array, "C": np.asarray}
    for mixed in ({"M": np.diag, "K": sp.csr_array, "C": sp.csr_array}, choose):
        part = nsds.lagrangian_linear(**{k: mixed[k](model[k]) for k in "MKC"}, fext=model["amplitude"], q=model["q"], v=model["v"])
        contact = nsds.interaction(nsds.lagrangian_linear_relation(H=model["H"], b=model["b"]), nsds.newton_impact(model["e"]), on="body")
        run = nsds.simulate(nsds.system(body=part, contact=contact), t_end=0.3, h=0.01)
        np.testing.assert_allclose(run["body"]["q"], dense["body"]["q"], atol=1e-12)


def test_sparse_jacobian_equals_dense_jacobian():
    model = random_model(8, n=5, m=3)
    model["H"][:, ::2] = 0.0
    dense = nsds.simulate(build(model), t_end=0.3, h=0.01)
    model["H"] = model["H"]
    part = nsds.lagrangian_linear(M=model["M"], K=model["K"], C=model["C"], fext=model["amplitude"], q=model["q"], v=model["v"])
    relation = nsds.lagrangian_linear_relation(H=sp.csr_array(model["H"]), b=model["b"])
    contact = nsds.interaction(relation, nsds.newton_impact(model["e"]), on="body")
    sparse = nsds.simulate(nsds.system(body=part, contact=contact), t_end=0.3, h=0.01)
    np.testing.assert_array_equal(sparse["body"]["q"], dense["body"]["q"])


def test_equality_holds_two_bodies_together():
    system = nsds.system(
        a=nsds.lagrangian_linear(M=[1.0], fext=[3.0], q=[0.0], v=[0.0]),
        b=nsds.lagrangian_linear(M=[2.0], q=[0.0], v=[0.0]),
        rod=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0, -1.0]]), nsds.equality(), on=("a", "b")),
    )
    trajectory = nsds.simulate(system, t_end=1.0, h=0.01)
    np.testing.assert_allclose(trajectory["a"]["v"][:, 0], trajectory["t"], atol=1e-13)  # acceleration 3 / (1 + 2)
    assert abs(trajectory["rod"]["y"]).max() < 1e-14
    np.testing.assert_allclose(trajectory["rod"]["lambda"][1:], -0.02, atol=1e-14)


def test_complementarity_is_an_impact_without_rebound():
    def run(law):
        system = nsds.system(
            ball=nsds.lagrangian_linear(M=[1.0], fext=[-9.81], q=[0.1], v=[0.0]),
            floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), law, on="ball"),
        )
        return nsds.simulate(system, t_end=0.5, h=1e-3)["ball"]["q"]

    np.testing.assert_array_equal(run(nsds.complementarity()), run(nsds.newton_impact(0.0)))


@pytest.mark.parametrize("law", [nsds.newton_impact(0.0), nsds.newton_impact(0.7), nsds.equality()], ids=["plastic", "elastic", "held"])
def test_one_contact_solved_in_the_step_has_the_bits_of_the_called_method(law):
    ball = nsds.system(
        ball=nsds.lagrangian_linear(M=1.3, fext=-9.81, q=[0.01], v=[0.0]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[0.7]]), law, on="ball"),
    )
    in_step, called = (nsds.simulate(ball, t_end=0.3, h=1e-3, solver=solver) for solver in ("auto", "newton_min"))
    assert in_step["floor"]["lambda"].any()
    assert in_step.tobytes() == called.tobytes()


def test_redundant_contacts_are_solved():
    """Three supports of one body: the impulses are not unique, the motion is."""
    system = nsds.system(
        plate=nsds.lagrangian_linear(M=[1.0, 0.1], fext=[-9.81, 0.0], q=[0.0, 0.0], v=[0.0, 0.0]),
        legs=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1, -1], [1, 0], [1, 1]]), nsds.newton_impact(0.0), on="plate"),
    )
    trajectory = nsds.simulate(system, t_end=0.1, h=1e-3)
    assert abs(trajectory["plate"]["q"]).max() < 1e-15
    np.testing.assert_allclose(trajectory["legs"]["lambda"][1:].sum(axis=1), 9.81e-3)


def drive(t, z, out):
    out[0] = z[0] * np.sin(z[1] * t)


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_force_function_is_weighted_over_the_step(theta):
    model = random_model(2, n=1, m=1)
    model["F"] = lambda t: np.array([50.0 * np.sin(7.0 * t)])
    part = nsds.lagrangian_linear(M=model["M"], K=model["K"], C=model["C"], fext=drive, z=[50.0, 7.0], q=model["q"], v=model["v"])
    contact = nsds.interaction(nsds.lagrangian_linear_relation(H=model["H"], b=model["b"]), nsds.newton_impact(model["e"]), on="body")
    trajectory = nsds.simulate(nsds.system(t=0.3, body=part, contact=contact), t_end=1.3, h=0.01, scheme=nsds.moreau_jean(theta=theta))
    _, q, _, _, _, lam, _ = reference.moreau_jean(model, 0.3, 0.01, 100, theta)
    np.testing.assert_allclose(trajectory["body"]["q"], q, atol=1e-11)
    np.testing.assert_allclose(trajectory["contact"]["lambda"], lam[:, 0], atol=1e-11)


@examples(20)
@given(seeds)
def test_ensemble_gives_the_bits_of_single_runs(seed):
    rng = np.random.default_rng(seed)
    systems = np.repeat(build(random_model(seed, n=3, m=2)), 5)
    systems["contact"]["e"] = rng.uniform(size=(5, 2))
    systems["body"]["v"] = rng.normal(size=(5, 3))
    together = nsds.simulate(systems, t_end=0.3, h=0.01)
    for member, system in enumerate(systems):
        alone = nsds.simulate(system, t_end=0.3, h=0.01)
        assert together[member].tobytes() == alone.tobytes()


@examples(20)
@given(seeds, st.integers(1, 29))
def test_restart_gives_the_bits_of_an_uninterrupted_run(seed, row):
    system = build(random_model(seed, compliant=True, bilateral=True), t=0.1, force=None)
    whole = nsds.simulate(system, t_end=0.4, h=0.01)
    rest = nsds.simulate(nsds.restart(system, whole[row]), t_end=0.4, h=0.01)
    assert rest.tobytes() == whole[row:].tobytes()


def test_restart_of_a_driven_system_gives_the_same_bits():
    system = nsds.examples.cam_follower(rpm=660)
    whole = nsds.simulate(system, t_end=0.5, h=1e-4)
    rest = nsds.simulate(nsds.restart(system, whole[1234]), t_end=0.5, h=1e-4)
    assert rest.tobytes() == whole[1234:].tobytes()
