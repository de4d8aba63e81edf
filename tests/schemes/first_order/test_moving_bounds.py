"""Bounds of lambda that are functions of time: brakes and clutches that are engaged, beside closed forms and the law itself."""

import math

import numpy as np
import pytest

import nsds

EVENT_FLOWS = ["dopri5", "radau"]


def mass(force, bounds, v=0.0, D=None, plant=None):
    """``v' = force(t) + lambda``, lambda a friction force between bounds of time."""
    plant = nsds.first_order_linear([[0.0]], b=force, x=[v]) if plant is None else plant
    relation = nsds.first_order_linear_relation(C=[[1.0]], B=[[1.0]], D=D, bounds=bounds)
    return nsds.system(mass=plant, rubs=nsds.interaction(relation, nsds.relay(-1, 1), on="mass"))


def off_the_law(rows, bounds, z=()):
    """By how much each row violates ``-y in N_[lower(t),upper(t)](lambda)``."""
    limits = np.empty((len(rows), 2, 1))
    for t, out in zip(rows["t"], limits, strict=True):
        bounds(t, np.array(z), out)
    y, lam = rows["rubs"]["y"], rows["rubs"]["lambda"]
    return abs(lam - np.clip(lam - y, limits[:, 0, 0], limits[:, 1, 0]))


def changes(rows):
    bits = nsds.status.CLOSED | nsds.status.OPENED | nsds.status.SWITCHED
    return rows["t"][nsds.status.is_event(rows["status"]) & (rows["status"] & bits > 0)]


def push(t, z, out):
    out[0] = 3.0


def push_on(t, x, z, out):
    out[0] = 3.0


def pressed(t, z, out):
    out[1, 0] = 10.0 * (t if t < 1.0 else 2.0 - t)
    out[0, 0] = -out[1, 0]


@pytest.mark.parametrize("flow", EVENT_FLOWS)
def test_a_brake_that_is_pressed_and_let_go(flow):
    """It slides while ``10 t`` is too little, ``v = 3 t - 5 t^2``, rests from 0.6 s, and slips at 1.7 s, ``v = 5 (t - 1.7)^2``."""
    rows = nsds.simulate(mass(push, pressed), t_end=2.0, h=0.05, scheme=nsds.event_driven(flow=flow))
    t, v = rows["t"], rows["mass"]["x"][:, 0]
    exact = np.where(t < 0.6, 3 * t - 5 * t**2, np.where(t < 1.7, 0.0, 5 * (t - 1.7) ** 2))
    np.testing.assert_allclose(v, exact, rtol=0, atol=1e-9)
    np.testing.assert_allclose(changes(rows), [0.6, 1.7], rtol=0, atol=1e-8)
    assert off_the_law(rows, pressed).max() < 1e-8


@pytest.mark.parametrize("is_nonlinear", [False, True])
def test_the_same_by_steps(is_nonlinear):
    """Of first order, and the same of a plant that is given by a function."""
    errors = []
    for h in (1e-2, 1e-3):
        plant = nsds.first_order(push_on, x=[0.0]) if is_nonlinear else None
        rows = nsds.simulate(mass(push, pressed, plant=plant), t_end=2.0, h=h, scheme=nsds.euler_moreau())
        t, v = rows["t"], rows["mass"]["x"][:, 0]
        exact = np.where(t < 0.6, 3 * t - 5 * t**2, np.where(t < 1.7, 0.0, 5 * (t - 1.7) ** 2))
        errors.append(abs(v - exact).max())
        assert off_the_law(rows[1:], pressed).max() < 1e-12
    assert errors[0] < 0.1
    assert errors[1] < 0.12 * errors[0]


@pytest.mark.parametrize("flow", EVENT_FLOWS)
@pytest.mark.parametrize(("force", "holds"), [(5.0, True), (10.0, False)])
def test_bounds_that_grow_from_zero_with_the_force(flow, force, holds):
    """At rest at the start, where both bounds, the force and y are 0: what grows faster decides."""

    def pull(t, z, out):
        out[0] = force * t

    def growing(t, z, out):
        out[0, 0], out[1, 0] = -7.0 * t, 7.0 * t

    rows = nsds.simulate(mass(pull, growing), t_end=1.0, h=0.1, scheme=nsds.event_driven(flow=flow))
    np.testing.assert_allclose(rows["mass"]["x"][:, 0], 0.0 if holds else 1.5 * rows["t"] ** 2, rtol=0, atol=1e-9)
    assert off_the_law(rows, growing).max() < 1e-8
    assert not (rows["status"] & nsds.status.TIME_STEPPED).any()


@pytest.mark.parametrize("flow", EVENT_FLOWS)
def test_a_brake_that_is_engaged_at_a_time(flow):
    """Nothing happens where a brake that is not engaged sees v pass zero; at 2.5 s it is, and stops what moves."""

    def wave(t, z, out):
        out[0] = math.cos(2.0 * t)

    def engaged(t, z, out):
        out[1, 0] = 3.0 if t >= 2.5 else 0.0
        out[0, 0] = -out[1, 0]

    scheme = nsds.event_driven(flow=flow, time_events=[2.5])
    rows = nsds.simulate(mass(wave, engaged), t_end=4.0, h=0.1, scheme=scheme)
    t, v = rows["t"], rows["mass"]["x"][:, 0]
    before = t <= 2.5
    np.testing.assert_allclose(v[before], np.sin(2 * t[before]) / 2, rtol=0, atol=1e-9)
    begins, stops = changes(rows)
    assert begins == 2.5
    assert 0.5 * math.sin(2 * stops) + 3.0 * (stops - 2.5) == pytest.approx(0.0, abs=1e-9)
    assert abs(v[t > stops + 1e-9]).max() == 0.0


@pytest.mark.parametrize("flow", EVENT_FLOWS)
def test_lambda_at_a_moving_bound_acts_on_y(flow):
    """With a feedthrough, ``y = v + lambda / 2``: at its lower bound lambda is ``-1 - t / 4``, until v is ``(1 + t / 4) / 2``."""

    def nothing(t, z, out):
        out[0] = 0.0

    def widening(t, z, out):
        out[0, 0], out[1, 0] = -1.0 - 0.25 * t, 1.0

    rows = nsds.simulate(mass(nothing, widening, v=2.0, D=[[0.5]]), t_end=3.0, h=0.1, scheme=nsds.event_driven(flow=flow))
    rows = rows[1:]  # the first is the record
    t, v, lam = rows["t"], rows["mass"]["x"][:, 0], rows["rubs"]["lambda"]
    end = (-9.0 + math.sqrt(81.0 + 4.0 * 12.0)) / 2.0  # of 2 - t - t^2 / 8 = (1 + t / 4) / 2
    slides = t <= end
    np.testing.assert_allclose(v[slides], 2 - t[slides] - t[slides] ** 2 / 8, rtol=0, atol=1e-9)
    np.testing.assert_allclose(lam[slides], -1 - 0.25 * t[slides], rtol=0, atol=1e-8)
    np.testing.assert_allclose(v[~slides], (1 + end / 4) / 2 * np.exp(-2 * (t[~slides] - end)), rtol=0, atol=1e-8)
    np.testing.assert_allclose(changes(rows), [end], rtol=0, atol=1e-8)


def test_bounds_of_time_are_those_of_a_relay():
    relation = nsds.first_order_linear_relation(C=[[1.0]], B=[[1.0]], bounds=pressed)
    with pytest.raises(ValueError, match=r"bounds of lambda as a function of time are for the law nsds\.relay.*got complementarity"):
        nsds.interaction(relation, nsds.complementarity(), on="mass")
