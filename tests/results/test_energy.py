"""The energy ledger against work and losses by hand, for all kinds of Lagrangian systems, relations and schemes."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import nsds
from nsds.results.energy import WORKS
from nsds.status import JUMP, is_event

linear = nsds.lagrangian_linear_relation
GRAVITY = 9.81


def ledger_of(system, t_end, h, theta=0.5, **options):
    """(rows, ledger) of a run of Moreau–Jean."""
    rows = nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.moreau_jean(theta=theta, **options))
    return rows, nsds.energy(system, rows, theta)


def total(ledger):
    return ledger["kinetic"] + ledger["potential"]


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_midpoint_conserves_the_energy_of_linear_oscillators(storage):
    K = np.array([[300.0, -100.0, 0.0], [-100.0, 200.0, -100.0], [0.0, -100.0, 100.0]])
    part = nsds.lagrangian_linear(storage(np.diag([1.0, 2.0, 3.0])), storage(K), q=np.eye(3)[:2], v=[[0, 1, 0], [0, 0, 2]], count=2)
    system = nsds.system(chains=part)
    _, ledger = ledger_of(system, 2.0, 1e-2)
    assert total(ledger)[0] == pytest.approx(150 + 1 + 100 + 6)
    assert abs(total(ledger) - total(ledger)[0]).max() < 1e-12 * total(ledger)[0]
    assert not any(ledger[name].any() for name in WORKS)


def weight(t, q, v, z, out):
    out[0] = GRAVITY * math.sin(q[0])


def test_internal_work_of_a_pendulum_is_that_of_its_potential():
    system = nsds.system(pendulum=nsds.lagrangian(mass=[1.0], fint=weight, q=[1.0], v=[0.5]))
    errors = []
    for h in (1e-2, 5e-3):
        rows, ledger = ledger_of(system, 2.0, h)
        by_hand = GRAVITY * (np.cos(rows["pendulum"]["q"][:, 0]) - math.cos(1.0))
        np.testing.assert_allclose(ledger["kinetic"], rows["pendulum"]["v"][:, 0] ** 2 / 2)
        assert abs(by_hand).max() > 4.0
        assert abs(ledger["numerical"]).max() < 1e-8  # newton_tol times momentum times velocity
        assert not ledger["potential"].any()
        errors.append(abs(np.cumsum(ledger["internal"]) - by_hand).max())
    assert errors[0] < 10 * h**2
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def polar_mass(q, z, out):
    out[0, 0], out[0, 1], out[1, 0], out[1, 1] = z[0], 0.0, 0.0, z[0] * q[0] ** 2


def polar_inertia(q, v, z, out):
    out[0], out[1] = -z[0] * q[0] * v[1] ** 2, 2.0 * z[0] * q[0] * v[0] * v[1]


@pytest.mark.parametrize(("q_star", "order"), [(1.0, 1), (0.5, 2)])
def test_inertia_of_a_free_particle_in_polar_coordinates_does_no_work(q_star, order):
    """Internal is an error of the trapezoidal rule, numerical that of the scheme: neither holds the O(1) work of one term alone."""
    system = nsds.system(particle=nsds.lagrangian(polar_mass, fgyr=polar_inertia, q=[1.0, 0.0], v=[-0.5, 1.0], z=[2.0]))
    numerical, internal = [], []
    for h in (2e-2, 1e-2):
        rows, ledger = ledger_of(system, 1.0, h, q_star=q_star)
        (r, _), (v, omega) = rows["particle"]["q"].T, rows["particle"]["v"].T
        np.testing.assert_allclose(ledger["kinetic"], v**2 + (r * omega) ** 2)
        numerical.append(ledger["numerical"].sum())
        internal.append(ledger["internal"].sum())
    assert abs(numerical[0]) < 0.05
    assert abs(internal[0]) < 1e-3
    assert numerical[0] / numerical[1] == pytest.approx(2**order, rel=0.1)
    assert internal[0] / internal[1] == pytest.approx(4.0, rel=0.1)


def constant_mass(q, z, out):
    out[0, 0], out[0, 1], out[1, 0], out[1, 1] = 2.0, 0.5, 0.5, 1.0


def springs_and_dampers(t, q, v, z, out):
    out[0], out[1] = 9.0 * q[0] - 2.0 * q[1] + 0.1 * v[0], -2.0 * q[0] + 4.0 * q[1] + 0.2 * v[1]


@pytest.mark.parametrize("theta", [0.5, 0.8])
def test_functions_and_matrices_give_the_same_ledger(theta):
    state = {"q": [1.0, 0.5], "v": [0.0, -1.0], "fext": [0.0, 3.0]}
    M, K, C = [[2.0, 0.5], [0.5, 1.0]], [[9.0, -2.0], [-2.0, 4.0]], [0.1, 0.2]
    _, stored = ledger_of(nsds.system(part=nsds.lagrangian_linear(M, K, C, **state)), 2.0, 1e-2, theta)
    _, called = ledger_of(nsds.system(part=nsds.lagrangian(constant_mass, springs_and_dampers, **state)), 2.0, 1e-2, theta)
    np.testing.assert_allclose(called["kinetic"], stored["kinetic"], atol=1e-9)
    assert not called["forces"].any()
    assert not stored["forces"].any()
    lost = np.diff(stored["potential"] - called["potential"]) - stored["damping"][1:]  # both have that of the constant force
    assert abs(lost).max() > 1e-2
    difference = called["internal"][1:] + lost  # what K loses for theta > 1/2 is internal now
    np.testing.assert_allclose(difference, stored["numerical"][1:] - called["numerical"][1:], atol=1e-9)
    assert theta > 0.5 or abs(called["numerical"]).max() < 1e-10


def weights(q, z, out):
    out[0, 0], out[1, 0] = 1.0 + q[0] ** 2, -1.0


def feedback(t, q, v, z, out):
    out[0] = math.cos(t) - v[0]


def sampled(t, x, state, z, u):
    u[0] = -4.0 * x[0] - x[2]  # of q[0] and v[0]


CONTROLS = {
    "constant": {"u": [0.7, 0.2]},
    "weighted": {"u": [0.7], "T": [[1.0], [-2.0]]},
    "feedback": {"u": feedback, "T": weights, "n_u": 1},
    "sampled": {"u": [0.0], "T": weights},
}


@pytest.mark.parametrize("theta", [0.5, 1.0])
@pytest.mark.parametrize("name", CONTROLS)
def test_work_of_controls(name, theta):
    parts = {"arm": nsds.lagrangian([1.0, 2.0], q=[0.5, 0.0], v=[0.0, 1.0], **CONTROLS[name])}
    if name == "sampled":
        parts["controller"] = nsds.sampled_control(sampled, reads="arm", writes="arm", period=0.05)
    rows, ledger = ledger_of(nsds.system(**parts), 1.0, 1e-2, theta)
    lost = (theta - 0.5) * (np.diff(rows["arm"]["v"], axis=0) ** 2 @ [1.0, 2.0])
    np.testing.assert_allclose(ledger["numerical"][1:], -lost, atol=1e-9)
    assert abs(ledger["forces"]).max() > 1e-3
    if name == "weighted":
        np.testing.assert_allclose(ledger["forces"].sum(), rows["arm"]["q"][-1] @ [0.7, -1.4] - 0.35, atol=1e-12 if theta == 0.5 else 0.1)


def squared_gap(q, z, out):
    out[0] = 0.5 * (q[0] + 2.0) ** 2 - 2.0  # q = 0, with slope 2 there


def squared_gap_by_q(q, z, out):
    out[0, 0] = q[0] + 2.0


def gap(q, z, out):
    out[0] = q[0]


def gap_at(t, q, z, out):
    out[0] = q[0]


WALLS = {
    "linear": linear(H=[[1.0]]),
    "sparse": linear(H=sp.csr_array([[1.0]])),
    "scleronomous": nsds.scleronomous(squared_gap, squared_gap_by_q, m=1),
    "by differences": nsds.scleronomous(squared_gap, m=1),
    "rheonomous": nsds.rheonomous(gap_at, m=1),
}
SCHEMES = {
    "moreau_jean": nsds.moreau_jean(),
    "theta": nsds.moreau_jean(theta=0.8),
    "direct": nsds.moreau_jean_direct_projection(),
    "combined": nsds.moreau_jean_combined_projection(),
    "exact": nsds.moreau_jean_exact(),
    "schatzman_paoli": nsds.schatzman_paoli(),
    "d1_minus": nsds.d1_minus_linear(),
    "generalised_alpha": nsds.generalised_alpha(),
}


@pytest.mark.parametrize(("scheme", "wall"), [("moreau_jean", wall) for wall in WALLS] + [(scheme, "linear") for scheme in SCHEMES])
def test_an_impact_loses_the_energy_of_its_restitution(scheme, wall):
    mass, v, e = 3.0, -2.0, 0.6
    system = nsds.system(
        ball=nsds.lagrangian_linear(M=[mass], q=[0.0995], v=[v]), wall=nsds.interaction(WALLS[wall], nsds.newton_impact(e), on="ball")
    )
    rows = nsds.simulate(system, t_end=0.1, h=1e-3, scheme=SCHEMES[scheme])
    ledger = nsds.energy(system, rows)
    after = rows["ball"]["v"][-1, 0]
    assert after == pytest.approx(-e * v, rel=1e-12 if wall in ("linear", "sparse", "rheonomous") else 1e-3)  # where H varies it is H v
    np.testing.assert_allclose(ledger["contact"].sum(), mass / 2 * (after**2 - v**2), rtol=1e-9)
    np.testing.assert_allclose(np.diff(total(ledger)[[0, -1]]), mass / 2 * (after**2 - v**2), rtol=1e-9)


def test_a_sliding_block_loses_friction_times_distance():
    mass, mu = 2.0, 0.3
    system = nsds.system(
        block=nsds.lagrangian_linear(M=[mass, mass], fext=[0.0, -mass * GRAVITY], q=[0.0, 0.0], v=[2.0, 0.0]),
        floor=nsds.interaction(linear(H=[[0.0, 1.0], [1.0, 0.0]]), nsds.newton_impact_friction(0.0, mu), on="block"),
    )
    rows, ledger = ledger_of(system, 1.0, 1e-3)
    sliding = rows["block"]["v"][:, 0] > 1e-9
    distance = rows["block"]["q"][:, 0]
    assert 0.5 < rows["t"][sliding][-1] < 0.9
    np.testing.assert_allclose(np.cumsum(ledger["contact"])[sliding], -mu * mass * GRAVITY * distance[sliding], atol=1e-12)
    np.testing.assert_allclose(ledger["contact"].sum(), -mass * 2.0**2 / 2, rtol=1e-12)
    assert abs(ledger["numerical"]).max() < 1e-13


def oblique_impact(seed, law):
    """Largest work of contact in a step of a body of random inertia that hits a wall at random, without forces."""
    random = np.random.default_rng(seed)
    A, H, v = random.normal(size=(3, 3)), random.normal(size=(2, 3)), random.normal(size=3)
    v *= -np.sign(H[0] @ v)
    system = nsds.system(
        body=nsds.lagrangian_linear(A @ A.T + 0.1 * np.eye(3), q=np.zeros(3), v=v),
        wall=nsds.interaction(linear(H=H, b=[1e-3, 0.0]), law, on="body"),
    )
    _, ledger = ledger_of(system, 0.5, 1e-2)
    assert abs(ledger["numerical"]).max() < 1e-12
    return ledger["contact"].max()


def test_fremond_impacts_never_gain_energy_and_those_of_newton_may():
    assert max(oblique_impact(seed, nsds.fremond_impact(0.8, 0.5)) for seed in range(40)) < 1e-13
    assert max(oblique_impact(seed, nsds.newton_impact_friction(0.8, 0.5)) for seed in range(40)) > 1e-3


def lift(t, q, z, out):
    out[0] = q[1] - q[0] - z[0] * math.sin(t)


@pytest.mark.parametrize("drive", ["prescribed", "two parts", "rheonomous"])
def test_a_drive_puts_its_work_into_the_system(drive):
    """Nothing else acts, so that contact is the change of energy, step by step."""
    parts = {"chain": nsds.lagrangian_linear([1.0, 2.0], [[50.0, -50.0], [-50.0, 60.0]], q=[0.0, 0.0], v=[0.5, 0.5])}
    if drive == "two parts":
        parts["cart"] = nsds.lagrangian([3.0], q=[0.0], v=[0.2])
    relation = {
        "prescribed": nsds.prescribed_velocity([1], amplitude=0.5, omega=20.0),
        "two parts": nsds.prescribed_velocity([2, 0], [0.2, 0.5], amplitude=0.3, omega=[5.0, 20.0], phase=np.pi / 2),
        "rheonomous": nsds.rheonomous(lift, m=1, z=[0.5]),
    }[drive]
    on = ("chain", "cart") if drive == "two parts" else "chain"
    _, ledger = ledger_of(nsds.system(**parts, drive=nsds.interaction(relation, nsds.equality(), on=on)), 1.0, 1e-2)
    np.testing.assert_allclose(ledger["contact"][1:], np.diff(total(ledger)), atol=1e-8 if drive == "rheonomous" else 1e-11)
    assert abs(ledger["contact"]).max() > 1e-3


def test_a_driven_mass_takes_what_its_velocity_says():
    system = nsds.system(
        table=nsds.lagrangian_linear(M=[3.0], q=[0.0], v=[0.0]),
        shaker=nsds.interaction(nsds.prescribed_velocity([0], amplitude=0.1, omega=20.0, phase=-np.pi / 2), nsds.equality(), on="table"),
    )
    _, ledger = ledger_of(system, 1.0, 1e-3)
    np.testing.assert_allclose(np.cumsum(ledger["contact"]), 1.5 * (0.1 * np.sin(20.0 * ledger["t"])) ** 2, atol=1e-14)


COMPLIANCE = 0.01


def soft(q, lam, z, out):
    out[0] = q[0] + z[0] * lam[0]


def soft_at(t, q, lam, z, out):
    out[0] = q[0] + z[0] * lam[0]


def soft_push(t, q, lam, z, out):
    out[0] = lam[0]


SOFT = {
    "D": linear(H=[[1.0]], D=[[COMPLIANCE]]),
    "compliant": nsds.compliant(soft, m=1, z=[COMPLIANCE]),
    "lagrangian_relation": nsds.lagrangian_relation(soft_at, soft_push, m=1, z=[COMPLIANCE]),
}


@pytest.mark.parametrize("relation", SOFT)
@pytest.mark.parametrize("law", [nsds.complementarity(), nsds.equality()], ids=lambda law: law["law"])
def test_a_compliant_contact_stores_energy(relation, law):
    """lambda is a force: its work is ``lambda dq = -D lambda dlambda`` while it presses, the change of D lambda^2 / 2 but for O(h)."""
    mass = 2.0
    system = nsds.system(
        ball=nsds.lagrangian_linear(M=[mass], fext=[-mass * GRAVITY], q=[0.0], v=[-1.0]),
        floor=nsds.interaction(SOFT[relation], law, on="ball"),
    )
    rows, ledger = ledger_of(system, 0.5, 1e-4)
    lam = rows["floor"]["lambda"]
    pressing = (lam[1:] != 0) & (lam[:-1] != 0)
    assert pressing.sum() > 1000
    np.testing.assert_allclose(ledger["contact"][1:][pressing], -COMPLIANCE * (lam[1:] * np.diff(lam))[pressing], rtol=1e-6, atol=1e-9)
    assert abs(ledger["numerical"]).max() < 1e-8
    lowest = rows["ball"]["q"].argmin()
    stored = COMPLIANCE * lam[lowest] ** 2 / 2
    assert stored > 1.0
    assert -ledger["contact"][: lowest + 1].sum() == pytest.approx(stored, rel=0.02)


def test_interactions_between_elements_of_array_parts():
    """Beads that hit each other and a wall that is another part: the same ledger for dense and sparse H, closed to rounding."""
    ledgers = []
    for storage in (np.array, sp.csr_array):
        system = nsds.system(
            beads=nsds.lagrangian([1.0], q=[0.1, 0.4, 0.9], v=[1.0, -2.0, -3.0], fext=[-1.0], count=3),
            wall=nsds.lagrangian_linear(M=[5.0, 1.0], K=[40.0, 0.0], C=[0.5, 0.0], q=[0.0, 0.0], v=[0.0, 0.0]),
            neighbours=nsds.interaction(linear(H=storage([[-1.0, 1.0]])), nsds.newton_impact(0.5), on=("beads[:-1]", "beads[1:]")),
            stop=nsds.interaction(linear(H=storage([[1.0, -1.0, 0.0]])), nsds.newton_impact(0.8), on=("beads[0]", "wall")),
        )
        rows, ledger = ledger_of(system, 2.0, 1e-3)
        assert (rows["stop"]["lambda"] > 0).any()
        assert (rows["neighbours"]["lambda"] > 0).any(axis=0).all()
        assert abs(ledger["numerical"]).max() < 1e-12
        assert ledger["contact"].min() < -0.1
        ledgers.append(ledger)
    for name in ledgers[0].dtype.names:
        np.testing.assert_allclose(ledgers[1][name], ledgers[0][name], atol=1e-12)


def length(q, z, out):
    out[0] = (q[0] - q[2]) ** 2 + (q[1] - q[3]) ** 2 - z[0]


def length_by_q(q, z, out):
    for i in range(2):
        out[0, i] = 2.0 * (q[i] - q[2 + i])
        out[0, 2 + i] = -out[0, i]


@pytest.mark.parametrize("jacobian", [None, length_by_q])
def test_joints_on_elements(jacobian):
    """Bars between point masses: with H of the end of the step their work is one of the O(h) by which that scheme errs."""
    work = []
    for h in (1e-3, 5e-4):
        system = nsds.system(
            masses=nsds.lagrangian_linear(
                M=[1.0, 1.0], fext=[0.0, -GRAVITY], q=[[0.3, 0.2], [1.3, 0.2], [2.3, 0.2]], v=[[0, -2.0], [0, 0.0], [0, 1.0]], count=3
            ),
            bars=nsds.interaction(nsds.scleronomous(length, jacobian, m=1, z=[1.0]), nsds.equality(), on=("masses[:-1]", "masses[1:]")),
        )
        rows, ledger = ledger_of(system, 0.5, h)
        assert abs(rows["bars"]["lambda"]).max() > h
        assert abs(ledger["numerical"]).max() < 1e-6
        assert np.ptp(ledger["kinetic"]) > 1.0
        assert not ledger["contact"].any()
        work.append(ledger["joints"].sum())
    assert abs(work[0]) < 0.02
    assert work[0] / work[1] == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize("part", [{"q": [1.0], "M": [1.0], "v": [0.0]}, {"q": np.ones(6), "v": np.ones(6), "M": np.ones(6)}])
def test_the_trajectory_of_another_system_is_refused(part):
    """Also where numpy would make the shapes fit."""
    trajectory, other = nsds.simulate(nsds.examples.bouncing_ball(), t_end=0.1, h=0.01), nsds.system(ball=nsds.lagrangian_linear(**part))
    own = nsds.simulate(other, t_end=0.1, h=0.01)
    for call, words in ((nsds.energy, "energy: the trajectory is that of another system"), (nsds.report, "report: the trajectory is that")):
        with pytest.raises(ValueError, match=words):
            call(other, trajectory)
        with pytest.raises(ValueError, match=words):
            call(nsds.examples.bouncing_ball(), own)
        with pytest.raises(TypeError, match="trajectory"):
            call(other, own["t"])


def test_trajectories_of_any_byte_order_give_the_same_ledger_and_restart():
    system = nsds.examples.bouncing_ball()
    rows = nsds.simulate(system, t_end=1.0, h=0.01)
    swapped = rows.astype(rows.dtype.newbyteorder())
    np.testing.assert_array_equal(nsds.energy(system, swapped), nsds.energy(system, rows))
    assert nsds.restart(system, swapped[60]) == nsds.restart(system, rows[60])


def test_what_the_ledger_cannot_do_is_refused():
    first_order = nsds.system(tank=nsds.first_order_linear(A=[[-1.0]], x=[1.0]))
    with pytest.raises(ValueError, match="mechanical systems; this one is first-order"):
        nsds.energy(first_order, nsds.simulate(first_order, t_end=1.0, h=0.1))
    system = nsds.system(
        arm=nsds.lagrangian([1.0], q=[0.0], v=[0.0], u=[1.0]), stop=nsds.interaction(WALLS["linear"], nsds.newton_impact(0.5), on="arm")
    )
    ensemble = np.repeat(system, 2)
    for arguments in [(ensemble, nsds.simulate(ensemble, t_end=1.0, h=0.1)), (ensemble, nsds.simulate(system, t_end=1.0, h=0.1))]:
        with pytest.raises(ValueError, match="trajectory of one system with every step saved"):
            nsds.energy(*arguments)
    fields = ["arm.q", "arm.v", "arm.u", "stop.lambda"]
    for missing in fields:
        kept = [field for field in fields if field != missing]
        with pytest.raises(ValueError, match=f"state of part '{missing.partition('.')[0]}', but {missing} was not recorded"):
            nsds.energy(system, nsds.simulate(system, t_end=1.0, h=0.1, fields=kept))
    nsds.energy(system, nsds.simulate(system, t_end=1.0, h=0.1, fields=fields))
    body = nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 0.2, 1, 0, 0, 0], v=np.zeros(6), fext=[0, 0, -GRAVITY])
    law, floor = nsds.newton_impact_friction(0.5, 0.3), nsds.shapes.plane()
    ball = nsds.system(ball=body, contacts=nsds.collisions({"ball": nsds.shapes.sphere(0.1)}, law, world=floor))
    with pytest.raises(ValueError, match=r"rows at events do not tell the work of friction between them in nsds\.collisions"):
        nsds.energy(ball, nsds.simulate(ball, t_end=0.3, h=0.1, scheme=nsds.event_driven()))


def event_by_event(system, t_end, h):
    rows = nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven())
    return rows, nsds.energy(system, rows), is_event(rows["status"]) & (rows["status"] & JUMP > 0)


def test_impacts_of_a_ball_event_by_event():
    """Each impact loses the part 1 - e^2 of what there is, in its own row; between them nothing is lost."""
    system = nsds.examples.bouncing_ball(e=0.8)
    _, ledger, jumps = event_by_event(system, 2.0, 0.1)
    assert np.count_nonzero(jumps) == 3
    start = total(ledger)[0]
    np.testing.assert_allclose(ledger["contact"][jumps], -0.36 * start * 0.64 ** np.arange(3), rtol=1e-10)
    assert not ledger["contact"][~jumps].any()
    assert abs(ledger["numerical"]).max() < 1e-12 * start


@pytest.mark.parametrize("law", [nsds.newton_impact(0.5), nsds.poisson_impact(0.5), nsds.multiple_impact(0.5)])
def test_two_masses_on_a_spring_strike_a_wall_and_each_other_event_by_event(law):
    K = 50.0 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    masses = nsds.lagrangian_linear(M=[1.0, 2.0], K=K, q=[0.5, 0.9], v=[-1.0, -6.0])
    system = nsds.system(
        masses=masses,
        wall=nsds.interaction(linear([[1.0, 0.0]]), law, on="masses"),
        touch=nsds.interaction(linear([[-1.0, 1.0]], b=[-0.1]), law, on="masses"),
    )
    rows, ledger, jumps = event_by_event(system, 0.5, 0.05)
    assert np.count_nonzero(jumps) >= 2
    assert (ledger["contact"][jumps] < 0.0).all()
    assert abs(ledger["numerical"]).max() < 1e-9 * total(ledger)[0]
    np.testing.assert_allclose(total(ledger)[-1] - total(ledger)[0], ledger["contact"].sum(), rtol=1e-9)
    assert rows["touch"]["y"].min() > -1e-9


def _end_of_rod(q, z, out):
    out[0], out[1] = q[1] - z[0] * math.sin(q[2]), 0.0


def _rows_of_rod(q, z, out):
    out[0, 0], out[0, 1], out[0, 2] = 0.0, 1.0, -z[0] * math.cos(q[2])
    out[1, 0], out[1, 1], out[1, 2] = 1.0, 0.0, z[0] * math.sin(q[2])


@pytest.mark.parametrize("law", [nsds.newton_impact_friction, nsds.poisson_impact_friction, nsds.multiple_impact_friction])
def test_a_rod_with_friction_event_by_event(law):
    """What its end loses in impacts is in their rows to rounding; what it loses in sliding is summed to second order."""
    for h in (0.02, 0.01, 0.005):
        rod = nsds.lagrangian_linear(M=[1.0, 1.0, 1 / 12], fext=[0.0, -GRAVITY, 0.0], q=[0.0, 0.6, 0.9], v=[1.0, 0.0, 0.0])
        end = nsds.scleronomous(_end_of_rod, H=_rows_of_rod, m=2, z=[0.5])
        system = nsds.system(rod=rod, floor=nsds.interaction(end, law(0.0, 0.2), on="rod"))
        _, ledger, jumps = event_by_event(system, 0.35, h)
        assert np.count_nonzero(jumps) >= 1
        assert (ledger["contact"][jumps] < 0.0).all()
        assert abs(ledger["numerical"][jumps]).max() < 1e-8
        assert ledger["contact"][~jumps].min() < -1e-4
        assert abs(ledger["numerical"]).max() < h**2
        np.testing.assert_allclose(total(ledger)[-1] - total(ledger)[0], ledger["contact"].sum(), rtol=0, atol=h**2)


def test_a_rigid_ball_that_slides_event_by_event():
    """It bounces, slides and rolls; friction of a contact that is stated by a function."""
    body = nsds.rigid_bodies(2.0, np.eye(3) * 0.01, q=[0, 0, 0.3, 1, 0, 0, 0], v=[3.0, 0, 0, 0, 0, 0], fext=[0, 0, -2.0 * GRAVITY])
    floor = nsds.interaction(nsds.contact_point(_lowest_point, z=[0.1]), nsds.newton_impact_friction(0.0, 0.1), on="ball")
    _, ledger, jumps = event_by_event(nsds.system(ball=body, floor=floor), 1.5, 0.05)
    assert np.count_nonzero(jumps) == 1
    assert ledger["contact"][~jumps].sum() < -0.1
    assert abs(ledger["numerical"]).max() < 1e-8
    np.testing.assert_allclose(total(ledger)[-1] - total(ledger)[0], ledger["contact"].sum(), rtol=1e-7)


def _lowest_point(t, q, z, out):
    out[0] = q[2] - z[0]
    out[1], out[2], out[3] = q[0], q[1], q[2] - z[0]
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def test_what_slides_from_the_start_event_by_event():
    mass, mu = 2.0, 0.3
    system = nsds.system(
        block=nsds.lagrangian_linear(M=[mass, mass], fext=[0.0, -mass * GRAVITY], q=[0.0, 0.0], v=[2.0, 0.0]),
        floor=nsds.interaction(linear(H=[[0.0, 1.0], [1.0, 0.0]]), nsds.newton_impact_friction(0.0, mu), on="block"),
    )
    rows, ledger, _ = event_by_event(system, 1.0, 0.1)
    np.testing.assert_allclose(np.cumsum(ledger["contact"]), -mu * mass * GRAVITY * rows["block"]["q"][:, 0], atol=1e-10)
    assert abs(ledger["numerical"]).max() < 1e-10
