"""Joints stated by functions of coordinates: what they do in a smooth step is bounded as for rigid bodies, or the run ends."""

import math

import numpy as np
import pytest

import nsds
from nsds.status import LEFT_BRANCH, NEWTON, VIOLATED

G = 9.81
SCHEMES = {  # and the weight of the turn: those of Moreau and Jean have impulses with H of the end alone
    "moreau_jean": (nsds.moreau_jean(), 1 / 2),
    "combined": (nsds.moreau_jean_combined_projection(), 1 / 2),
    "direct": (nsds.moreau_jean_direct_projection(), 1 / 2),
    "d1": (nsds.d1_minus_linear(), 1 / 4),
    "d1_velocity": (nsds.d1_minus_linear(level="velocity"), 1.0),  # rows of one coordinate turn by up to sqrt(3) h omega
    "alpha": (nsds.generalised_alpha(), 1 / 4),
}


def hinges(q, z, out):
    """Four hinges of three rods, each with the coordinates x, y, angle; z: half lengths, and the distance of the ends."""
    x, y = 0.0, 0.0
    for i in range(3):
        a, b = z[i] * math.cos(q[3 * i + 2]), z[i] * math.sin(q[3 * i + 2])
        out[2 * i], out[2 * i + 1] = q[3 * i] - a - x, q[3 * i + 1] - b - y
        x, y = q[3 * i] + a, q[3 * i + 1] + b
    out[6], out[7] = x - z[3], y


def parallelogram(rng, turn):
    """(system, masses of coordinates, h): random, its cranks turn by that in a step."""
    crank, base, angle = rng.uniform(0.3, 0.6), rng.uniform(0.7, 1.3), rng.uniform(0.2, 2.9) * rng.choice([-1, 1])
    masses, rate = rng.uniform(0.3, 3.0, 3), rng.uniform(3.0, 10.0) * rng.choice([-1, 1])
    lengths, rates = np.array([crank, base, crank]), np.array([rate, 0.0, rate])
    turned = np.array([angle, 0.0, angle + math.pi])
    end, v_end, q, v = np.zeros(2), np.zeros(2), np.zeros(9), np.zeros(9)
    for i in range(3):
        way = lengths[i] * np.array([math.cos(turned[i]), math.sin(turned[i])])
        moved = rates[i] * np.array([-way[1], way[0]])
        q[3 * i : 3 * i + 3], v[3 * i : 3 * i + 3] = [*(end + way / 2), turned[i]], [*(v_end + moved / 2), rates[i]]
        end, v_end = end + way, v_end + moved
    M = np.column_stack([masses, masses, masses * lengths**2 / 12]).reshape(-1)
    rods = nsds.lagrangian_linear(M=np.diag(M), fext=-G * np.tile([0.0, 1.0, 0.0], 3) * M, q=q, v=v)
    relation = nsds.scleronomous(h=hinges, m=8, z=[*lengths / 2, base])
    return nsds.system(rods=rods, joints=nsds.interaction(relation, nsds.equality(), on="rods")), M, turn / abs(rate)


def largest_share(rows, M, h, weight):
    """Of what joints did in a step, by what that may be: ``(0.01 + w (h omega)^2) (T + T' + what forces do)``, omega of the start."""
    q, v = rows["rods"]["q"], rows["rods"]["v"]
    T, V, mass, radius = 0.5 * v**2 @ M, G * q[:, 1::3] @ M[::3], M[::3].sum(), np.sqrt(M[2::3] / M[::3])
    turn = (h * abs(v[:-1, 2::3]) + 0.5 * h * h * G / radius).max(axis=1)
    allowed = (0.01 + weight * turn**2) * (T[1:] + T[:-1] + 0.5 * mass * (G * h) ** 2)
    return (abs(np.diff(T + V)) / allowed).max(initial=0.0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_coarse_steps_keep_the_energy_or_the_run_ends(scheme):
    """A step of `d1_minus_linear` gave 1.8 times the energies of its ends, and one of `moreau_jean` took half of them, with status 0."""
    rng, (how, weight) = np.random.default_rng(3), SCHEMES[scheme]
    for turn in (0.02, 0.1, 0.22, 0.4):
        for _ in range(6):
            (system, M, h), failure = parallelogram(rng, turn), None
            try:
                rows = nsds.simulate(system, t_end=60 * h, h=h, scheme=how)
            except nsds.SimulationError as error:
                failure, rows = error, error.trajectory[:-1]
            assert failure is None or (turn > 0.02 and failure.status in (LEFT_BRANCH, NEWTON, VIOLATED))
            rows = rows[np.logical_and.accumulate(rows["status"] == 0)]
            assert largest_share(rows, M, h, weight) < 1.1, (turn, failure)


def on_a_circle(q, z, out):
    out[0] = q[0] * q[0] + q[1] * q[1] - 1.0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_pendulum_that_turns_far_in_a_step_goes_on(scheme):
    """In x and y, by up to 0.4 rad a step: what its joint takes is less than the bound, however small the pendulum is beside others."""
    mass = nsds.lagrangian_linear(M=np.eye(2), fext=[0, -G], q=[1.0, 0.0], v=[0.0, 10.0])
    other = nsds.lagrangian_linear(M=[[1e-6]], fext=[0.0], q=[0.0], v=[0.0])
    joint = nsds.interaction(nsds.scleronomous(h=on_a_circle, m=1), nsds.equality(), on="mass")
    rows = nsds.simulate(nsds.system(mass=mass, other=other, joint=joint), t_end=1.2, h=0.04, scheme=SCHEMES[scheme][0])
    assert (rows["status"] == 0).all()
