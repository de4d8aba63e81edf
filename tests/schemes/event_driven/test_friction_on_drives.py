"""Friction where something else tells the motion, or holds as well: drives, stops, controllers that do nothing."""

import math
import warnings

import numpy as np
import pytest

import nsds
from nsds.status import FRICTION, is_event

linear = nsds.lagrangian_linear_relation
EDGES = 1e-3  # about a reversal: rows there are left out


def run(system, t_end, h=0.1, **options):
    """A run whose warnings are failures."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven(**options), progress=False)


def swing(t, z, out):
    out[0] = np.cos(t)


def place(t, q, z, out):
    out[0] = q[0] - np.sin(t)


# ------------------------------------------------------------------------------------------------- what others prescribe
@pytest.mark.parametrize("drive", [nsds.prescribed_velocity([0], swing), nsds.rheonomous(place, m=1)], ids=["velocity", "position"])
@pytest.mark.parametrize("rubs", ["dry", "relay", "both"])
def test_friction_of_a_driven_coordinate_is_against_its_velocity(drive, rubs):
    """``-f sign(v)`` at all times but those of reversal, each of which is an event; the drive has ``m v' + f sign(v)``."""
    parts = {"dry": nsds.interaction(linear(H=[[1.0]]), nsds.dry_friction(0.75), on="mass")}
    parts["relay"] = nsds.interaction(linear(H=[[2.0]]), nsds.relay(-0.5, 0.125), on="mass")
    parts = parts if rubs == "both" else {rubs: parts[rubs]}
    system = nsds.system(
        mass=nsds.lagrangian_linear(M=[[2.0]], q=[0.0], v=[1.0]), drive=nsds.interaction(drive, nsds.equality(), on="mass"), **parts
    )
    rows = run(system, 12.0, 1.0)
    away = rows[abs(np.cos(rows["t"])) > EDGES]
    forward = np.cos(away["t"]) > 0
    total = np.zeros(len(away))
    for name, low, high, H in (("dry", -0.75, 0.75, 1.0), ("relay", -0.5, 0.125, 2.0)):
        if name in parts:
            force = np.where(forward, low, high)
            np.testing.assert_allclose(away[name]["lambda"].ravel(), force, atol=1e-9)
            total += H * force
    np.testing.assert_allclose(away["drive"]["lambda"].ravel(), -2 * np.sin(away["t"]) - total, atol=1e-6)
    reversals = rows["t"][is_event(rows["status"]) & (rows["status"] & FRICTION > 0)]
    np.testing.assert_allclose(np.unique(reversals.round(6)), np.pi * (np.arange(4) + 0.5), atol=1e-6)


@pytest.mark.parametrize("dim", [2, 3])
def test_friction_of_a_contact_whose_slip_is_prescribed(dim):
    """A block that lies on the ground and is moved to and fro: ``-mu N sign(v)`` along the motion, nothing across."""
    H, drive = np.eye(dim)[[-1, *range(dim - 1)]], nsds.prescribed_velocity([0], swing)
    law = nsds.newton_impact_friction(e_n=0.0, mu=0.5, dimension=dim)
    v = np.eye(dim)[0]
    system = nsds.system(
        block=nsds.lagrangian_linear(M=np.eye(dim), q=np.zeros(dim), v=v, fext=-2.0 * np.eye(dim)[-1]),
        drive=nsds.interaction(drive, nsds.equality(), on="block"),
        ground=nsds.interaction(linear(H=H), law, on="block"),
    )
    rows = run(system, 6.0, 0.5)
    away = rows[abs(np.cos(rows["t"])) > EDGES]
    friction = np.zeros((len(away), dim))
    friction[:, 0], friction[:, 1] = 2.0, -np.sign(np.cos(away["t"]))
    np.testing.assert_allclose(away["ground"]["lambda"].reshape(len(away), dim), friction, atol=1e-6)


def test_a_drive_that_stands_still_first_is_against_friction_once_it_moves():
    """``v = max(t - 1, 0)^2``: no friction is known before, ``-f`` after; the event is there as soon as that is seen."""

    def begins(t, z, out):
        out[0] = max(t - 1.0, 0.0) ** 2

    system = nsds.system(
        mass=nsds.lagrangian_linear(M=[[1.0]], q=[0.0], v=[0.0]),
        drive=nsds.interaction(nsds.prescribed_velocity([0], begins), nsds.equality(), on="mass"),
        rubs=nsds.interaction(linear(H=[[1.0]]), nsds.dry_friction(0.5), on="mass"),
    )
    rows = run(system, 2.0, 0.25)
    late = rows["t"] > 1.01
    np.testing.assert_allclose(rows["rubs"]["lambda"].ravel()[late], -0.5, atol=1e-12)
    np.testing.assert_allclose(rows["drive"]["lambda"].ravel()[late], 2 * (rows["t"][late] - 1) + 0.5, atol=1e-6)
    assert (abs(rows["rubs"]["lambda"]) <= 0.5).all()


# ------------------------------------------------------------------------------------------------- held at a stop
def piston(pull, mass=3.36e-4, limit=1.0):
    """A coordinate that dry friction and a stop at 0 hold, under ``z0 + z1 sin(z2 t)``."""

    def force(t, z, out):
        out[0] = z[0] + z[1] * np.sin(z[2] * t)

    H = linear(H=[[1.0]])
    return nsds.system(
        piston=nsds.lagrangian_linear(M=[[mass]], fext=force, q=[0.0], v=[0.0], z=pull),
        stop=nsds.interaction(H, nsds.newton_impact(0.3), on="piston"),
        rubs=nsds.interaction(H, nsds.dry_friction(limit), on="piston"),
    )


@pytest.mark.parametrize("flow", ["exact", "dopri5"])
@pytest.mark.parametrize("constant", [0.05, 0.597, 0.6])
def test_friction_that_holds_a_block_at_its_stop_goes_on_to(constant, flow):
    """Nothing happens before ``c + 2 sin(w t)`` reaches the limit of 1; then the block leaves, at that time."""
    w = 1500.0
    leaves = math.asin((1.0 - constant) / 2.0) / w
    rows = run(piston([constant, 2.0, w]), 0.95 * leaves, 0.1 * leaves, flow=flow)
    assert not rows["status"].any()
    assert abs(rows["piston"]["q"]).max() < 1e-18
    np.testing.assert_allclose(rows["rubs"]["lambda"].ravel(), -constant - 2 * np.sin(w * rows["t"]), atol=1e-9)
    assert (rows["stop"]["lambda"] == 0).all()
    rows = run(piston([constant, 2.0, w]), 1.5 * leaves, 0.1 * leaves, flow=flow)
    events = rows["t"][is_event(rows["status"])]
    np.testing.assert_allclose(events, leaves, rtol=1e-5)
    assert len(events) <= 4
    assert rows["piston"]["v"][-1, 0] > 0


@pytest.mark.parametrize("flow", ["exact", "dopri5"])
def test_friction_takes_over_from_a_stop_that_is_unloaded(flow):
    """Pressed by 0.5, then pulled by up to 0.9: the stop carries what presses, friction what pulls, and the block stays."""
    rows = run(piston([-0.5, 1.4, 1.0], mass=1.0), math.pi, math.pi / 16, flow=flow)
    assert abs(rows["piston"]["q"]).max() < 1e-15
    load = -0.5 + 1.4 * np.sin(rows["t"])
    stop, friction = rows["stop"]["lambda"].ravel(), rows["rubs"]["lambda"].ravel()
    np.testing.assert_allclose(stop + friction, -load, atol=1e-9)
    assert (stop >= -1e-9).all()
    assert (abs(friction) <= 1.0).all()
    assert is_event(rows["status"]).sum() <= 6


# ------------------------------------------------------------------------------------------------- controllers that do nothing


def nothing(t, x, state, z, u):
    u[:] = 0.0


@pytest.mark.parametrize("ground", ["dry", "plane", "space"])
@pytest.mark.parametrize("flow", ["dopri5", "radau"])
def test_a_controller_that_writes_zero_makes_no_events(ground, flow):
    """A pull of t sets a block in motion against friction 0.47 at t = 0.47, with ``x(1) = 0.53^3 / 6``: two rows at that event."""
    n = {"dry": 1, "plane": 2, "space": 3}[ground]

    def pull(t, q, v, z, out):
        out[0] = -t
        if n > 1:
            out[n - 1] = 1.0

    if ground == "dry":
        friction = nsds.interaction(linear(H=[[1.0]]), nsds.dry_friction(0.47), on="block")
    else:
        law = nsds.newton_impact_friction(e_n=0.0, mu=0.47, dimension=n)
        friction = nsds.interaction(linear(H=np.eye(n)[[-1, *range(n - 1)]]), law, on="block")
    system = nsds.system(
        block=nsds.lagrangian(np.ones(n), fint=pull, q=np.zeros(n), v=np.zeros(n), u=np.zeros(n)),
        friction=friction,
        control=nsds.sampled_control(nothing, reads="block", writes="block", period=1.0),
    )
    rows = run(system, 1.0, flow=flow)
    assert (is_event(rows["status"]) & (abs(rows["t"] - 0.47) < 1e-3)).sum() == 2
    assert rows["block"]["q"][-1, 0] == pytest.approx(0.53**3 / 6, abs=1e-10)
