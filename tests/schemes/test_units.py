"""Finite differences of a relation do not depend on units, on how far a part has turned, or on when a run begins."""

import numpy as np
import pytest

import nsds

SCHEMES = {
    "event_driven": nsds.event_driven(),
    "d1_minus_linear": nsds.d1_minus_linear(),
    "generalised_alpha": nsds.generalised_alpha(constraint_tol=1e-16),  # in the unit of y
    "moreau_jean": nsds.moreau_jean(),
}
TURN = 2 * np.pi


def wire(q, z, out):
    out[0] = q[1] - z[0] * np.cos(q[0] / z[0])


def slope(q, z, out):
    out[0, 0], out[0, 1] = np.sin(q[0] / z[0]), 1.0


def drive(t, q, z, out):
    out[0] = q[0] - np.sin(20 * np.pi * (t - z[0]))


def bead(length, duration, angle, scheme, H):
    """Positions and forces, in units of length and duration, of a bead on a wire ``y = L cos(x / L)`` under gravity."""
    speed, near = length / duration, np.remainder(angle, TURN)
    system = nsds.system(
        bead=nsds.lagrangian_linear(
            M=np.eye(2), fext=[0.0, -speed / duration], q=[angle * length, length * np.cos(near)], v=[speed, -np.sin(near) * speed]
        ),
        wire=nsds.interaction(nsds.scleronomous(wire, H, m=1, z=[length]), nsds.equality(), on="bead"),
    )
    rows = nsds.simulate(system, t_end=duration, h=0.05 * duration, scheme=scheme)
    assert not (rows["status"] & nsds.status.INEXACT).any()
    force = speed / duration if scheme["scheme"] == b"event_driven" else speed
    return np.column_stack([rows["bead"]["q"] / length - [angle - near, 0.0], rows["wire"]["lambda"] / force])


@pytest.mark.parametrize("H", [None, slope])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("length", "duration"), [(1e-6, 1.0), (1e-3, 1.0), (1e6, 1.0), (1.0, 1e6)])
def test_motions_scale_with_lengths_and_times(length, duration, scheme, H):
    for angle in (0.0, 0.3):
        wanted = bead(1.0, 1.0, angle, SCHEMES[scheme], H)
        np.testing.assert_allclose(bead(length, duration, angle, SCHEMES[scheme], H), wanted, atol=1e-6)


@pytest.mark.parametrize("H", [None, slope])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("turns", [100, 10**4, 10**6])
def test_what_has_turned_far_moves_as_at_its_start(turns, scheme, H):
    """The angle is known to 1e-16 of itself, and Newton's method leaves impulses up to its tolerance."""
    wanted = bead(1.0, 1.0, 0.3, SCHEMES[scheme], H)
    np.testing.assert_allclose(bead(1.0, 1.0, 0.3 + turns * TURN, SCHEMES[scheme], H), wanted, atol=1e-6 + 1e-11 * turns)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_driven_moves_late_as_at_its_start(scheme):
    """``dh/dt`` by differences: of a drive of 10 Hz, with steps of a tenth of its period."""

    def run(begin):
        system = nsds.system(
            mass=nsds.lagrangian_linear(M=[[1.0]], q=[0.0], v=[20 * np.pi]),
            drive=nsds.interaction(nsds.rheonomous(drive, m=1, z=[begin]), nsds.equality(), on="mass"),
        )
        system["t"] = system["t0"] = begin
        rows = nsds.simulate(system, t_end=begin + 0.2, h=0.01, scheme=SCHEMES[scheme])
        return np.column_stack([rows["mass"]["q"], rows["mass"]["v"]]), rows["t"] - begin

    wanted, t = run(0.0)
    np.testing.assert_allclose(wanted[:, 1], 20 * np.pi * np.cos(20 * np.pi * t), atol=1e-6)
    for begin in (100.0, 1e4):
        np.testing.assert_allclose(run(begin)[0], wanted, atol=1e-8 * begin)
