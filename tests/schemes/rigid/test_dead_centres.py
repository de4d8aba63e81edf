"""Mechanisms at dead centres, where their equations allow two motions: each scheme goes on with its energy, or ends with an error."""

import math

import numpy as np
import pytest

import nsds
from nsds import joints
from nsds.status import LEFT_BRANCH, NEWTON, VIOLATED
from tests.strategies import many

G, Z = 9.81, [0.0, 0.0, 1.0]
HELD = {  # schemes that hold positions, and by how much energy may be off, of that at the start
    "rattle": (nsds.rattle(), 2e-3),
    "combined": (nsds.moreau_jean_combined_projection(), 2e-3),
    "direct": (nsds.moreau_jean_direct_projection(), 2e-3),
    "alpha": (nsds.generalised_alpha(), 5e-3),
}


def four_bar(crank, coupler, rocker, base, angle, rate, masses, planar):
    """Of three rods; a hinge at each end. rate: of the crank."""
    A, D, B = np.zeros(2), np.array([base, 0.0]), crank * np.array([math.cos(angle), math.sin(angle)])
    far = math.hypot(*(D - B))
    turn = math.atan2(*(D - B)[::-1]) + math.acos((coupler**2 + far**2 - rocker**2) / (2 * coupler * far))
    C = B + coupler * np.array([math.cos(turn), math.sin(turn)])
    points, across = [A, B, C, D], np.array([[0.0, -1.0], [1.0, 0.0]])
    others = np.linalg.solve(np.column_stack([across @ (C - B), across @ (D - C)]), -rate * (across @ (B - A)))
    parts, v = {}, np.zeros(2)
    for i, omega in enumerate([rate, *others]):
        way, m = points[i + 1] - points[i], masses[i]
        x, half = (points[i] + points[i + 1]) / 2, math.atan2(*way[::-1]) / 2
        moment, mean = m * (way @ way) / 12, v + omega * (across @ way) / 2
        v = v + omega * (across @ way)
        if planar:
            parts[f"rod{i}"] = nsds.planar_bodies(m, moment, q=[*x, 2 * half], v=[*mean, omega])
        else:
            q = [*x, 0, math.cos(half), 0, 0, math.sin(half)]
            parts[f"rod{i}"] = nsds.rigid_bodies(m, [moment / 100, moment, moment], q=q, v=[*mean, 0, 0, 0, omega])
    on = ["rod0", ("rod1", "rod0"), ("rod2", "rod1"), "rod2"]
    hinges = {f"hinge{i}": nsds.interaction(joints.hinge([*points[i], 0], Z), nsds.equality(), on=on[i]) for i in range(4)}
    return nsds.system(gravity=[0, -G, 0], **parts, **hinges)


LOOPS = {
    "parallelogram": (0.4, 1.0, 0.4, 1.0, 0.3 * math.pi, 9.0, (1.0, 1.5, 1.0)),
    "heavy": (0.2, 1.0, 0.2, 1.0, 1.0, 20.0, (0.1, 5.0, 3.0)),
    "square": (0.4, 0.4, 0.4, 0.4, 1.0, 5.0, (1.0, 1.5, 1.0)),
    "kite": (0.4, 0.4, 1.0, 1.0, 1.0, 6.0, (1.0, 1.5, 1.0)),
    "flat once": (0.3, 0.7, 0.5, 0.9, 1.0, 9.0, (1.0, 1.5, 1.0)),
}


def energies(system, h, scheme, t_end=1.5):
    rows = nsds.simulate(system, t_end=t_end, h=h, scheme=scheme)
    ledger = nsds.energy(system, rows)
    return rows, ledger["kinetic"] + ledger["potential"]


@pytest.mark.parametrize("planar", [True, False], ids=["plane", "space"])
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("scheme", HELD)
def test_a_loop_passes_its_flat_positions(scheme, loop, planar):
    """A rank is lost there, and in Newton's iteration H turns faster than the rows tell both motions apart."""
    how, share = HELD[scheme]
    rows, E = energies(four_bar(*LOOPS[loop], planar), 1e-3, how)
    assert (rows["status"] == 0).all()
    assert max(abs(rows[f"hinge{i}"]["y"]).max() for i in range(4)) < 1e-7
    assert abs(E - E[0]).max() < share * E[0]


@pytest.mark.parametrize("planar", [True, False], ids=["plane", "space"])
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("h", [1e-3, 2.5e-4])
@pytest.mark.parametrize("scheme", [nsds.moreau_jean(), nsds.d1_minus_linear()], ids=["moreau_jean", "d1"])
def test_positions_that_drift_pass_or_the_run_ends(scheme, h, loop, planar):
    """These do not hold positions: where positions do not tell the two motions apart they say so, and give no row that has left."""
    system, failure = four_bar(*LOOPS[loop], planar), None
    try:
        rows, E = energies(system, h, scheme)
    except nsds.SimulationError as error:
        failure, rows = error, error.trajectory[:-1]
        ledger = nsds.energy(system, rows)
        E = ledger["kinetic"] + ledger["potential"]
    assert failure is None or failure.status == LEFT_BRANCH
    assert len(rows) > 10
    assert abs(E - E[0]).max() < 0.02 * E[0]


@pytest.mark.parametrize("h", [1.5e-3, 0.0019423134229621566, 2.5e-3])
def test_generalised_alpha_keeps_its_energy_or_the_run_ends(h):
    """A four-bar whose accelerations are large where it is flat: one of these steps lost two thirds of its energy there."""
    loop = (0.3, 0.7, 0.5, 0.9, 1.0, -25.5281414388936, (2.83757416, 0.53704976, 0.78848352))
    system, failure = four_bar(*loop, True), None
    try:
        _, E = energies(system, h, nsds.generalised_alpha(), 0.5)
    except nsds.SimulationError as error:
        failure, ledger = error, nsds.energy(system, error.trajectory[:-1])
        E = ledger["kinetic"] + ledger["potential"]
    assert failure is None or failure.status == LEFT_BRANCH
    assert len(E) > 10
    assert abs(E - E[0]).max() < 0.1 * E[0]


ALL = {name: how for name, (how, _) in HELD.items()} | {"moreau_jean": nsds.moreau_jean(), "d1": nsds.d1_minus_linear()}


def parallelogram(rng, turn, planar):
    """(system, h): random, its cranks turn by that in a step."""
    crank, base, angle = rng.uniform(0.3, 0.6), rng.uniform(0.7, 1.3), rng.uniform(0.2, 2.9) * rng.choice([-1, 1])
    rng.integers(2)  # so that the loop that lost half of its energy under `rattle` is among them
    masses, rate = tuple(rng.uniform(0.3, 3.0, 3)), rng.uniform(3.0, 10.0) * rng.choice([-1, 1])
    return four_bar(crank, base, crank, base, angle, rate, masses, planar), turn / abs(rate)


def largest_share(system, rows, h):
    """Of what joints did in a step, by what that may be: ``(0.01 + (h omega)^2 / 4) (T + T' + what forces do)``, omega of the start."""
    ledger, names, mass, turn, pushed = nsds.energy(system, rows), ("rod0", "rod1", "rod2"), 0.0, 0.0, 0.0
    for name in names:
        m, inertia = system[name]["mass"].item(), np.trace(np.atleast_2d(system[name]["inertia"])) / 3
        mass, pushed = mass + m, max(pushed, 0.5 * h * h * G * math.sqrt(m / inertia))
        turn = np.maximum(turn, h * abs(rows[name]["v"][:-1, -1]))
    E, T = ledger["kinetic"] + ledger["potential"], ledger["kinetic"]
    allowed = (0.01 + (turn + pushed) ** 2 / 4) * (T[1:] + T[:-1] + mass * (G * h) ** 2)
    return (abs(np.diff(E)) / allowed).max(initial=0.0)


@pytest.mark.parametrize("planar", [True, False], ids=["plane", "space"])
@pytest.mark.parametrize("scheme", ALL)
def test_coarse_steps_keep_the_energy_or_the_run_ends(scheme, planar):
    """Parallelograms whose cranks turn by up to 0.4 rad a step, and more as they swing: some gained their energy in one clean step."""
    rng = np.random.default_rng(3)
    for turn in (0.02, 0.05, 0.1, 0.22, 0.4):
        for _ in range(many(8)):
            (system, h), failure = parallelogram(rng, turn, planar), None
            try:
                rows = nsds.simulate(system, t_end=60 * h, h=h, scheme=ALL[scheme])
            except nsds.SimulationError as error:
                failure, rows = error, error.trajectory[:-1]
            assert failure is None or failure.status in (LEFT_BRANCH, NEWTON, VIOLATED)
            rows = rows[np.logical_and.accumulate(rows["status"] == 0)]
            assert largest_share(system, rows, h) < 1.01
            if scheme in HELD and turn <= 0.1:
                assert failure is None or turn > 0.02
                ledger = nsds.energy(system, rows)
                E = ledger["kinetic"] + ledger["potential"]
                assert abs(E - E[0]).max() < 0.05 * ledger["kinetic"].max()


@pytest.mark.parametrize("rho", [0.8, 1.0])
def test_the_energy_that_generalised_alpha_loses_is_an_error_of_order_two(rho):
    """With and without damping, so that it is not what the scheme damps: half the step loses a quarter, of one rotor an eighth."""
    for seed in (1, 5, 8, 12):
        (system, h), lost = parallelogram(np.random.default_rng(seed), 0.22, True), []
        for n in (2, 4):
            _, E = energies(system, h / n, nsds.generalised_alpha(rho=rho), 60 * h)
            lost.append(abs(E - E[0]).max())
        assert lost[0] > 3.5 * lost[1]
    rotor = nsds.rigid_bodies(1.0, [0.1, 0.1, 0.1], q=[1.0, 0, 0, 1, 0, 0, 0], v=[0, 1.0, 0, 0, 0, 1.0])
    rotor = nsds.system(rotor=rotor, hinge=nsds.interaction(joints.hinge([0, 0, 0], Z), nsds.equality(), on="rotor"))
    lost = []
    for h in (0.22, 0.11, 0.055):
        _, E = energies(rotor, h, nsds.generalised_alpha(rho=rho), 60 * 0.22)
        lost.append(1.0 - E[-1] / E[0])
    assert 0 < lost[0] < 0.012
    assert lost[0] > 7 * lost[1] > 49 * lost[2]


def swing(h, scheme):
    """Angles of a double pendulum in space after 0.5 s."""
    parts = {
        "upper": nsds.rigid_bodies(1.0, [0.02, 0.09, 0.1], q=[0.5, 0, 0, 1, 0, 0, 0], v=np.zeros(6)),
        "lower": nsds.rigid_bodies(1.0, [0.1, 0.02, 0.09], q=[1.0, 0.5, 0, 1, 0, 0, 0], v=np.zeros(6)),
    }
    hinge = nsds.interaction(joints.hinge([0, 0, 0], [0, 1.0, 1.0]), nsds.equality(), on="upper")
    ball = nsds.interaction(joints.ball_joint([1.0, 0, 0]), nsds.equality(), on=("lower", "upper"))
    return nsds.simulate(nsds.system(gravity=[0, 0, -G], hinge=hinge, ball=ball, **parts), t_end=0.5, h=h, scheme=scheme)["lower"]["q"][-1]


def test_moreau_jean_is_of_order_two_with_joints():
    exact = swing(2.5e-4, nsds.rattle())
    far = [abs(swing(h, nsds.moreau_jean()) - exact).max() for h in (4e-3, 2e-3)]
    assert far[0] / far[1] == pytest.approx(4.0, abs=0.8)
