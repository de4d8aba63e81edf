"""Angles of joints whose bodies turn by more than half a turn in a step: they go on by the turn nearest to what the rate says."""

import numpy as np
import pytest

import nsds

H, N = 1e-3, 20
SCHEMES = [
    nsds.moreau_jean(), nsds.moreau_jean(theta=1.0), nsds.moreau_jean_combined_projection(), nsds.rattle(), nsds.generalised_alpha(),
    nsds.d1_minus_linear(),
]  # fmt: skip
Z = [0, 0, 1]
FREE = nsds.spring_damper(0.0, 1e-12)


def rotor(w, x=(0, 0, 0)):
    return nsds.rigid_bodies(1.0, 1e-2, q=[*x, 1, 0, 0, 0], v=[0, 0, 0, 0, 0, w])


def hinge(on, x=(0, 0, 0)):
    return nsds.interaction(nsds.joints.hinge(x, Z), nsds.equality(), on=on)


def run(scheme, n=N, **parts):
    return nsds.simulate(nsds.system(**parts), t_end=n * H, h=H, scheme=scheme)


def named(scheme):
    return scheme["scheme"].item().decode() + (f"_{float(scheme['theta'])}" if "theta" in scheme.dtype.names else "")


schemes = pytest.mark.parametrize("scheme", SCHEMES, ids=named)


@schemes
@pytest.mark.parametrize("turn", [3.0, 4.0, -4.0, 10.0, -31.0])
def test_an_angle_is_speed_times_time(scheme, turn):
    w = turn / H
    angle = nsds.interaction(nsds.joints.hinge_angle(Z), FREE, on="rotor")
    rows = run(scheme, rotor=rotor(w), hinge=hinge("rotor"), angle=angle)
    assert np.allclose(rows["angle"]["y"].ravel(), w * rows["t"], rtol=1e-9)


@schemes
@pytest.mark.parametrize("turn", [4.0, -6.0])
def test_a_stop_ends_the_rotation(scheme, turn):
    w = turn / H
    bound = {"upper" if turn > 0 else "lower": 10.5 * turn}
    stop = nsds.interaction(nsds.joints.hinge_angle(Z, **bound), nsds.newton_impact(0.0), on="rotor")
    rows = run(scheme, rotor=rotor(w), hinge=hinge("rotor"), stop=stop)
    assert np.allclose(rows["rotor"]["v"][:10, 5], w)
    assert abs(rows["rotor"]["v"][-1, 5]) < 1e-9 * abs(w)
    gap = abs(turn) * (10.5 - np.arange(10))
    assert np.allclose(rows["stop"]["y"][:10].ravel(), gap, atol=1e-6)


@schemes
def test_two_bodies_that_turn_against_each_other_have_the_angle_between_them(scheme):
    w = np.array([4.0, -2.0]) / H
    parts = {"a": rotor(w[0]), "b": rotor(w[1]), "first": hinge("a"), "second": hinge("b")}
    angle = nsds.interaction(nsds.joints.hinge_angle(Z), FREE, on=("a", "b"))
    rows = run(scheme, **parts, angle=angle)
    assert np.allclose(rows["angle"]["y"].ravel(), (w[0] - w[1]) * rows["t"], rtol=1e-9)


@schemes
def test_a_spring_of_many_turns_swings(scheme):
    """``I a'' = -k a``: a = w / W sin(W t); by order 2, or 1, in W h."""
    w, swing = 5.0 / H, 0.05 / H
    spring = nsds.interaction(nsds.joints.hinge_angle(Z), nsds.spring_damper(1e-2 * swing**2, 0.0), on="rotor")
    rows = run(scheme, 60, rotor=rotor(w), hinge=hinge("rotor"), spring=spring)
    is_first_order = scheme["scheme"] == b"moreau_jean" and scheme["theta"] == 1.0
    expected = w / swing * np.sin(swing * rows["t"])
    assert abs(expected).max() > 90
    assert abs(rows["spring"]["y"].ravel() - expected).max() < (0.15 if is_first_order else 2e-3) * abs(expected).max()


@pytest.mark.parametrize("scheme", [nsds.moreau_jean(), nsds.moreau_jean_combined_projection(), nsds.rattle()], ids=named)
def test_a_coupler_holds_its_ratio(scheme):
    """The second turns twice as fast, from both at angle 0, from unequal speeds on."""
    coupler = nsds.interaction(nsds.joints.coupler(("angle", Z), ("angle", Z), 2.0), nsds.equality(), on=("a", "b"))
    parts = {"a": rotor(2.0 / H), "b": rotor(4.0 / H, (1, 0, 0)), "first": hinge("a"), "second": hinge("b", (1, 0, 0))}
    rows = run(scheme, **parts, coupler=coupler)
    assert abs(rows["coupler"]["y"]).max() < 1e-6
    assert np.allclose(rows["b"]["v"][:, 5], 2.0 * rows["a"]["v"][:, 5])
