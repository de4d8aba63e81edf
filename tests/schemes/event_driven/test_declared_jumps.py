"""Functions of Lagrangian systems that jump at times that are declared: each is called on its own side of them."""

import itertools

import numpy as np
import pytest

import nsds

linear = nsds.lagrangian_linear_relation
JUMP = 0.5


def run(system, t_end, h, **options):
    return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven(**options), progress=False)


def after(t, q, v, z, out):
    out[0] = 0.0 if t < 0.5 else -1.0


def before(t, q, v, z, out):
    out[0] = 0.0 if t <= 0.5 else -1.0


def after_alone(t, z, out):
    out[0] = 0.0 if t < 0.5 else 1.0


def before_alone(t, z, out):
    out[0] = 0.0 if t <= 0.5 else 1.0


@pytest.mark.parametrize(
    ("ground", "flow"),
    [*itertools.product(["nothing", "dry"], ["dopri5", "radau", "exact"]), ("plane", "dopri5"), ("plane", "radau")],
)
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("h", [0.1, 0.5])
def test_a_pull_that_jumps(ground, flow, side, h):
    """``x(1) = (1 - f) 0.5^2 / 2`` whether the function has the value before the jump, or after it, at its time."""
    n, friction = (2 if ground == "plane" else 1), 0.0 if ground == "nothing" else 0.5
    parts = {}
    if ground == "dry":
        parts["ground"] = nsds.interaction(linear(H=[[1.0]]), nsds.dry_friction(friction), on="block")
    if flow == "exact":
        block = nsds.lagrangian_linear(M=[[1.0]], fext={"after": after_alone, "before": before_alone}[side], q=[0.0], v=[0.0])
    else:
        block = nsds.lagrangian(np.ones(n), fint=PULLS[side, n], q=np.zeros(n), v=np.zeros(n))
    if n > 1:
        contact = nsds.newton_impact_friction(e_n=0.0, mu=friction)
        parts["ground"] = nsds.interaction(linear(H=[[0.0, 1.0], [1.0, 0.0]]), contact, on="block")
    rows = run(nsds.system(block=block, **parts), 1.0, h, flow=flow, time_events=[JUMP])
    assert rows["block"]["q"][-1, 0] == pytest.approx((1 - friction) * 0.125, abs=1e-12)


def after_pressed(t, q, v, z, out):
    out[0], out[1] = 0.0 if t < 0.5 else -1.0, 1.0


def before_pressed(t, q, v, z, out):
    out[0], out[1] = 0.0 if t <= 0.5 else -1.0, 1.0


PULLS = {("after", 1): after, ("before", 1): before, ("after", 2): after_pressed, ("before", 2): before_pressed}


def corner(t, z, out):
    out[0] = abs(t - 0.5)


def bent(t, q, z, out):
    out[0] = q[0] - 0.5 * (t - 0.5) * abs(t - 0.5)


@pytest.mark.parametrize(
    ("drive", "of_rate"),
    [(nsds.prescribed_velocity([0], corner), 1e-10), (nsds.rheonomous(bent, m=1), 1e-5)],
    ids=["velocity", "position"],
)
def test_the_force_of_a_drive_with_a_corner(drive, of_rate):
    """``v = |t - 1/2|``: the force is -m before the corner and m after it, up to the corner itself; rates may be differences there."""
    mass = nsds.lagrangian_linear(M=[[2.0]], q=[-0.125], v=[0.5])
    rows = run(nsds.system(mass=mass, drive=nsds.interaction(drive, nsds.equality(), on="mass")), 1.0, 0.125, time_events=[JUMP])
    at_corner = np.flatnonzero(rows["t"] == JUMP)
    force = np.where(np.arange(len(rows)) <= at_corner[-2], -2.0, 2.0)
    np.testing.assert_allclose(rows["drive"]["lambda"].ravel(), force, atol=1e-6)
    np.testing.assert_allclose(rows["mass"]["v"][:, 0], abs(rows["t"] - 0.5), atol=of_rate)


# ------------------------------------------------------------------------------------------------------------ rigid bodies
def force_after(t, z, out):
    out[0], out[1], out[2] = 0.0 if t < 0.5 else 1.0, 0.0, 0.0


def force_before(t, z, out):
    out[0], out[1], out[2] = 0.0 if t <= 0.5 else 1.0, 0.0, 0.0


def still(t, q, z, out):
    out[0], out[1] = q[1], q[2]


def bent_for_a_body(t, q, z, out):
    out[0] = q[0] - 0.5 * (t - 0.5) * abs(t - 0.5)


def rate_of_bent(t, q, z, out):
    out[0] = -abs(t - 0.5)


def along_x(t, q, z, out):
    for k in range(7):
        out[0, k] = 1.0 if k == 0 else 0.0


@pytest.mark.parametrize("force", [force_before, force_after])
@pytest.mark.parametrize("h", [0.1, 0.5])
def test_a_force_on_a_body_that_jumps(force, h):
    body = nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 0, 1, 0, 0, 0], v=[0.0] * 6, fext=force)
    rail = nsds.interaction(nsds.newton_euler_relation(still, m=2), nsds.equality(), on="body")
    rows = run(nsds.system(body=body, rail=rail), 1.0, h, time_events=[JUMP])
    assert rows["body"]["q"][-1, 0] == pytest.approx(0.125, abs=1e-12)


@pytest.mark.parametrize(
    "drive",
    [
        nsds.prescribed_velocity([0], corner),
        nsds.newton_euler_relation(bent_for_a_body, h_t=rate_of_bent, m=1),
        nsds.newton_euler_relation(bent_for_a_body, along_x, rate_of_bent, m=1),
    ],
    ids=["velocity", "position by differences", "position"],
)
def test_the_force_of_a_drive_of_a_body_with_a_corner(drive):
    """As of a Lagrangian mass: -m before the corner, m after it, up to the corner itself."""
    body = nsds.rigid_bodies(2.0, 0.1, q=[-0.125, 0, 0, 1, 0, 0, 0], v=[0.5, 0, 0, 0, 0, 0])
    rows = run(nsds.system(body=body, drive=nsds.interaction(drive, nsds.equality(), on="body")), 1.0, 0.125, time_events=[JUMP])
    at_corner = np.flatnonzero(rows["t"] == JUMP)
    force = np.where(np.arange(len(rows)) <= at_corner[-2], -2.0, 2.0)
    np.testing.assert_allclose(rows["drive"]["lambda"].ravel(), force, atol=1e-6)
    np.testing.assert_allclose(rows["body"]["v"][:, 0], abs(rows["t"] - 0.5), atol=1e-9)
