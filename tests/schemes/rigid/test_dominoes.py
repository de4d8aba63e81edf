"""The speed of a wave of falling dominoes without friction beside the theory of their train, event by event and by steps.

J. M. J. van Leeuwen, The domino effect, American Journal of Physics 78, 721 (2010): a domino that was struck keeps leaning on the next one,
so all that fall are one degree of freedom; each further one is struck without restitution.
"""

import math
import warnings

import numpy as np
import pytest

import nsds
from nsds import joints, shapes

THICKNESS = 0.179  # in units of the height, in which gravity is 1


def chain(head, n, gap):
    """(tilts of n dominoes that lean on each other, their rates for a rate of 1 of the first of the wave, whose tilts are ``head``)."""
    tilts, rates = [head], [np.ones_like(head)]
    for _ in range(n - 1):
        sine = (gap + THICKNESS) * np.cos(tilts[-1]) - THICKNESS  # of the angle between a domino and the one that it leans on
        rates.append(rates[-1] * (1 - (gap + THICKNESS) * np.sin(tilts[-1]) / np.sqrt(1 - sine**2)))
        tilts.append(tilts[-1] + np.arcsin(sine))
    return np.array(tilts), np.array(rates)


def energy_of(tilts):
    return ((np.cos(tilts) + THICKNESS * np.sin(tilts)) / 2).sum(axis=0)


def times_between_impacts(gap, rate, n):
    """Those of the first n impacts, by Gauss' rule over the tilt of the first domino of the wave."""
    moment, last, times = (1 + THICKNESS**2) / 3, math.asin(gap), []
    nodes, weights = np.polynomial.legendre.leggauss(40)
    head = np.r_[0.0, last * (nodes + 1) / 2, last]
    for k in range(1, n + 1):
        tilts, rates = chain(head, k, gap)
        inertia, energy = moment * (rates**2).sum(axis=0), energy_of(tilts)
        speeds = np.sqrt((inertia[0] * rate**2 + 2 * (energy[0] - energy)) / inertia)
        times.append(last / 2 * (weights / speeds[1:-1]).sum())
        struck = moment * (chain(np.zeros(1), k + 1, gap)[1] ** 2).sum()
        rate = speeds[-1] * (struck - moment) / struck
    return np.array(times)


def row_of_dominoes(n, gap, rate):
    """Dominoes on hinges at their lower edges in front, with stops upright; the first falls with that rate."""
    shape = shapes.polygon([[x, y] for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))] * np.array([THICKNESS, 1.0]) / 2)
    q, v = np.zeros((n, 3)), np.zeros((n, 3))
    q[:, 0], q[:, 1] = (gap + THICKNESS) * np.arange(n), 0.5
    v[0] = [rate / 2, rate * THICKNESS / 2, -rate]
    parts = {}
    for i in range(n):
        edge = [q[i, 0] + THICKNESS / 2, 0.0, 0.0]
        parts[f"hinge{i}"] = nsds.interaction(joints.hinge(edge, [0, 0, 1]), nsds.equality(), on=f"row[{i}]")
        parts[f"stop{i}"] = nsds.interaction(joints.hinge_angle([0, 0, 1], upper=0.0), nsds.newton_impact(0.0), on=f"row[{i}]")
    contacts = nsds.collisions({"row": shape}, nsds.newton_impact_friction(0.0, 0.0))
    return nsds.system(gravity=[0, -1.0, 0], row=nsds.planar_bodies(1.0, (1 + THICKNESS**2) / 12, q=q, v=v), **parts, contacts=contacts)


@pytest.mark.parametrize(
    ("scheme", "h", "bound"), [(nsds.event_driven(), 0.05, 1e-8), (nsds.rattle(), 1e-3, 0.02)], ids=["events", "steps"]
)
@pytest.mark.parametrize(("gap", "rate", "t_end"), [(0.4, 1.0, 3.6), (0.7, 1.2, 4.2)])
def test_the_wave_is_as_fast_as_the_train(gap, rate, t_end, scheme, h, bound):
    """Event by event to 1e-8, by steps to about a step for each impact; far from the start it has its own speed."""
    n = 7
    system = row_of_dominoes(n, gap, rate)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is handed over to steps
        rows = nsds.simulate(system, t_end=t_end, h=h, scheme=scheme)
    q = rows["row"]["q"]
    tilts = -2 * np.arctan2(q[:, :, 6], q[:, :, 3])
    struck = rows["t"][(tilts > 1e-6).argmax(axis=0) - 1]
    assert (tilts[-1] > 0.1).all()
    np.testing.assert_allclose(np.diff(struck)[1:], times_between_impacts(gap, rate, n - 1)[1:], rtol=bound)


@pytest.mark.parametrize("gap", [0.3, 0.4])
def test_those_that_lie_on_each_other_gain_no_energy(gap):
    """Contacts that nearly depend on each other: to bring the first to rest would take the speed of all, which moves them as it likes."""
    n = 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # some intervals have too many events
        rows = nsds.simulate(row_of_dominoes(n, gap, 1.0), t_end=4.0, h=0.05, scheme=nsds.event_driven())
    q, v = rows["row"]["q"], rows["row"]["v"]
    energy = ((v[:, :, :2] ** 2).sum(axis=2) / 2 + (1 + THICKNESS**2) / 24 * v[:, :, 5] ** 2 + q[:, :, 1]).sum(axis=1)
    assert np.diff(energy).max() < 1e-3
    assert energy[-1] < energy[0]
