"""Motions in other units are the same motions: errors relative to the states, however small these are."""

import numpy as np
import pytest

import nsds


def run(system, t_end, h, **options):
    return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven(**options), progress=False)


def pumped(t, x, z, out):
    out[0] = -x[0] + z[0] * np.cos(3 * t)
    out[1] = x[0] - 2 * x[1]


@pytest.mark.parametrize("unit", [1e-3, 1e-9, 1e-15, 1e-30])
@pytest.mark.parametrize("flow", ["dopri5", "radau"])
def test_charges_of_any_size(flow, unit):
    """``x0' = -x0 + u cos 3t, x1' = x0 - 2 x1`` from 0, in closed form."""
    rows = run(nsds.system(a=nsds.first_order(pumped, x=[0.0, 0.0], z=[unit])), 5.0, 0.5, flow=flow, rtol=1e-8)
    t, amplitude = rows["t"], 1 / (1 + 3j)
    x0 = (amplitude * (np.exp(3j * t) - np.exp(-t))).real
    x1 = (amplitude * (np.exp(3j * t) / (2 + 3j) - np.exp(-t) - np.exp(-2 * t) / (2 + 3j) + np.exp(-2 * t))).real
    np.testing.assert_allclose(rows["a"]["x"] / unit, np.stack([x0, x1], axis=1), atol=1e-6)


def shaken(t, q, v, z, out):
    out[0] = q[0] - z[0] * np.cos(2 * t)


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e-14])
@pytest.mark.parametrize("flow", ["dopri5", "radau"])
def test_vibrations_of_any_size(flow, unit):
    """``q'' + q = u cos 2t`` from rest, ``(cos t - cos 2t) / 3``, beside a mass of ordinary motion."""
    system = nsds.system(
        small=nsds.lagrangian([1.0], fint=shaken, q=[0.0], v=[0.0], z=[unit]),
        large=nsds.lagrangian([1.0], fint=shaken, q=[0.0], v=[0.0], z=[2.0]),
    )
    rows = run(system, 6.0, 0.5, flow=flow, rtol=1e-8)
    np.testing.assert_allclose(rows["small"]["q"][:, 0] / unit, (np.cos(rows["t"]) - np.cos(2 * rows["t"])) / 3, atol=1e-6)


def pull(t, q, v, z, out):
    out[0] = -z[0] * t


@pytest.mark.parametrize("unit", [1.0, 1e-9])
def test_what_friction_holds_at_rest_costs_nothing(unit):
    """A block at the origin under a pull that grows: its state is rounding of forces, to which no step is cut."""
    block = nsds.lagrangian([1.0], fint=pull, q=[0.0], v=[0.0], z=[unit])
    ground = nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.dry_friction(0.5 * unit), on="block")
    rows = run(nsds.system(block=block, ground=ground), 1.0, 0.1)
    assert rows["n_iter"].sum() < 200
    assert rows["block"]["q"][-1, 0] == pytest.approx(unit * 0.5**3 / 6, rel=1e-7)
