"""Orbits, bifurcations and exponents of nonsmooth systems that the literature has in closed form, or that other programs have computed."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import nsds


def shaken(t, z, out):
    out[0] = z[0] * math.sin(t)


def pair(A, width, e, t, q, v):
    """A ball between the walls of a box that moves as ``A sin t``, in the frame of the box."""
    ball = nsds.lagrangian_linear([[1.0]], fext=shaken, q=[q], v=[v], z=[A])
    walls = nsds.lagrangian_linear_relation([[-1.0], [1.0]], b=[width / 2, width / 2])
    return nsds.system(t=t, ball=ball, walls=nsds.interaction(walls, nsds.newton_impact(e), on="ball"))


def symmetric_motions(A, width, e):
    """[(phase of the impact at the right wall, speed of the ball, half of the map with the symmetry), ...].

    Bapat (1988), Han et al. (1995): the speed V changes its sign only, ``V (1 - e) = -(1 + e) A cos phase``, and it passes
    the width in half a period.
    """
    speed = lambda p: (2 * A * math.sin(p) + width) / math.pi  # noqa: E731
    off = lambda p: -A * math.cos(p) * (1 + e) / (1 - e) - speed(p)  # noqa: E731
    phases, found = np.linspace(0, 2 * math.pi, 400), []
    for low, high in pairwise(phases):
        if off(low) * off(high) < 0:
            p = brentq(off, low, high, xtol=1e-15)
            approach, push = speed(p) - A * math.cos(p), A * math.sin(p)
            S = np.array([[-e, 0.0], [(1 + e) * push / approach, -e]])
            found.append((p, speed(p), -S @ np.array([[1.0, math.pi], [0.0, 1.0]])))
    return found


def started_after_impact(A, width, e, p, speed):
    """The pair 1 after the impact at the right wall."""
    t = p + 1.0
    return pair(A, width, e, t, A * math.sin(p) + width / 2 - speed - A * math.sin(t), -speed - A * math.cos(t))


@pytest.mark.parametrize("A", [0.6, 1.0, 1.4])
@pytest.mark.parametrize("e", [0.5, 0.7])
def test_an_impact_pair(A, e):
    """Two impacts a period, one at each wall: both motions, the stable one and the saddle."""
    motions = symmetric_motions(A, 4.0, e)
    assert len(motions) == 2
    for p, speed, half in motions:
        start = started_after_impact(A, 4.0, e, p, speed)
        found = nsds.orbit(start, period=2 * math.pi)
        np.testing.assert_allclose(found["x"], [start["ball"]["q"][0], start["ball"]["v"][0]], rtol=0, atol=1e-11)
        wanted = np.linalg.eigvals(half @ half)
        np.testing.assert_allclose(sorted(abs(found["multipliers"])), sorted(abs(wanted)), rtol=1e-9, atol=1e-11)
        assert (found["n_impacts"], found["n_untreated"]) == (2, 0)


def test_an_impact_pair_loses_its_symmetry():
    """Where the half map has the multiplier -1, that of the whole period is 1: branches of the same period cross."""
    width, e = 4.0, 0.5
    test = lambda A: np.linalg.det(symmetric_motions(A, width, e)[0][2] + np.eye(2))  # noqa: E731
    exact = brentq(test, 1.4, 1.7, xtol=1e-14)
    p, speed, _ = symmetric_motions(1.0, width, e)[0]
    rows = nsds.continue_orbit(started_after_impact(1.0, width, e, p, speed), parameter="ball.z[0]", until=1.7, period=2 * math.pi)
    (crossing,) = rows[rows["kind"] == "branch_point"]
    assert crossing["parameter"] == pytest.approx(exact, abs=1e-8)


def falling(t, z, out):
    out[0] = -1.0 + z[0] * math.sin(t)


@pytest.mark.parametrize("G", [1.1, 1.3, 1.5])
@pytest.mark.parametrize("e", [0.2, 0.5])
def test_a_ball_that_chatters_and_is_thrown_off_in_each_period(G, e):
    """It rests on the table from the end of its bounces until ``sin t = 1/G``, so that all before is forgotten (Luck and Mehta 1993)."""
    ball = nsds.lagrangian_linear([[1.0]], fext=falling, q=[0.2], v=[0.0], z=[G])
    table = nsds.interaction(nsds.lagrangian_linear_relation([[1.0]]), nsds.newton_impact(e), on="ball")
    found = nsds.orbit(nsds.system(t=2.5, ball=ball, table=table), period=2 * math.pi)
    off = math.asin(1 / G)
    q = -((2.5 - off) ** 2) / 2 - G * (math.sin(2.5) - math.sin(off) - math.cos(off) * (2.5 - off))
    v = -(2.5 - off) - G * (math.cos(2.5) - math.cos(off))
    np.testing.assert_allclose(found["x"], [q, v], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["multipliers"], 0.0, rtol=0, atol=1e-14)


def weakening(t, q, v, z, out):
    slip = abs(v[0] - 0.2)
    out[0] = q[0] + (1.0 / (1.0 + 3.0 * slip) - 1.0) * (1.0 if v[0] > 0.2 else -1.0)


@pytest.mark.parametrize(("q", "v"), [(1.13, 0.0), (0.5, 0.2), (0.0, 0.0)])
def test_a_mass_on_a_belt_sticks_and_slips(q, v):
    """Friction ``1 / (1 + 3 |slip|)`` on a belt of speed 0.2: Leine et al. (1998); multipliers are 1 and 0."""
    mass = nsds.lagrangian(mass=[[1.0]], fint=weakening, q=[q], v=[v])
    belt = nsds.interaction(nsds.prescribed_velocity([0], 0.2), nsds.dry_friction(1.0), on="mass")
    found = nsds.orbit(nsds.system(mass=mass, belt=belt), period=12.0, free_period=True)
    back = lambda t, y: y[1] - 0.2 if t > 0.1 else -1.0  # noqa: E731
    slips = solve_ivp(
        lambda t, y: [y[1], -y[0] + 1 / (1 + 3 * (0.2 - y[1]))], [0, 9], [1.0, 0.2], "DOP853", events=back, rtol=1e-12, atol=1e-13
    )
    end = next(k for k, t in enumerate(slips.t_events[0]) if t > 0.2)
    assert found["period"] == pytest.approx(slips.t_events[0][end] + (1.0 - slips.y_events[0][end][0]) / 0.2, abs=1e-7)
    np.testing.assert_allclose(abs(found["multipliers"]), [1.0, 0.0], rtol=0, atol=1e-4)
    assert found["n_events"] == 2


def test_exponents_of_the_double_scroll():
    """Chua's circuit with (9, 100/7, -8/7, -5/7), its diode as two complementarities: 0.3271, 0, -2.5197 (Sprott 2003)."""
    a, b, inner, outer = 9.0, 100 / 7, -8 / 7, -5 / 7
    slope = a * (inner - outer)
    system = nsds.linear_complementarity_system(
        A=[[-a * (1 + inner), a, 0], [1, -1, 1], [0, -b, 0]], B=[[-slope, slope], [0, 0], [0, 0]], C=[[1, 0, 0], [-1, 0, 0]], D=np.eye(2),
        e=[1, 1], x=[0.1, 0.2, 0.3],
    )  # fmt: skip
    found = nsds.lyapunov(system, period=1.0, n_periods=2000, transient=100)
    assert (abs(found["exponents"] - [0.3271, 0.0, -2.5197]) < 4 * found["errors"] + 5e-3).all()
    assert found["n_untreated"] == 0
