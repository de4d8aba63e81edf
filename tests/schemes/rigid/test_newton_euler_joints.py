"""Joints in motion: stops, dry friction, couplers, against closed forms."""

import numpy as np
import pytest

import nsds
from nsds.model import joints

AT_ORIGIN = [0, 0, 0, 1, 0, 0, 0]


def wheel(spin, joint=None, law=None, inertia=2.0, **forces):
    """A wheel on a hinge about z, with one more interaction."""
    parts = {} if joint is None else {"extra": nsds.interaction(joint, law, on="wheel")}
    return nsds.system(
        wheel=nsds.rigid_bodies(1.0, inertia, q=AT_ORIGIN, v=[0, 0, 0, 0, 0, spin], **forces),
        hinge=nsds.interaction(joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="wheel"),
        **parts,
    )


def test_friction_of_a_hinge_brakes_evenly_and_then_holds():
    """``I Omega' = -limit`` until Omega = 0, at t = I Omega / limit, and nothing after that."""
    system = wheel(3.0, joints.hinge_angle([0, 0, 1]), nsds.dry_friction(4.0))
    rows = nsds.simulate(system, t_end=3.0, h=1e-3)
    expected = np.maximum(3.0 - 2.0 * rows["t"], 0.0)
    np.testing.assert_allclose(rows["wheel"]["v"][:, 5], expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(rows["extra"]["lambda"][1:1499], -4e-3, rtol=1e-7)
    np.testing.assert_allclose(rows["extra"]["lambda"][-1000:], 0.0, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("moment", "moves"), [(3.99, False), (4.01, True)])
def test_friction_of_a_hinge_holds_up_to_its_limit(moment, moves):
    system = wheel(0.0, joints.hinge_angle([0, 0, 1]), nsds.dry_friction(4.0), mext=[0, 0, moment])
    rows = nsds.simulate(system, t_end=1.0, h=1e-2)
    np.testing.assert_allclose(rows["wheel"]["v"][-1, 5], (moment - 4.0) / 2.0 * moves, rtol=0, atol=1e-8)


def test_stops_of_a_hinge_beyond_a_turn():
    """Between stops at -1 and 8 rad, elastic: the wheel goes to and fro, and the angle counts turns."""
    system = wheel(5.0, joints.hinge_angle([0, 0, 1], lower=-1.0, upper=8.0), nsds.newton_impact(1.0))
    rows = nsds.simulate(system, t_end=10.0, h=1e-3)
    gaps = rows["extra"]["y"]
    np.testing.assert_allclose(gaps.sum(axis=1), 9.0, rtol=0, atol=1e-9)
    assert gaps.min() > -6e-3
    np.testing.assert_allclose(abs(rows["wheel"]["v"][:, 5]), 5.0, rtol=0, atol=1e-8)
    impacts = rows["t"][(rows["extra"]["lambda"] > 0).any(axis=1)]
    np.testing.assert_allclose(impacts, [8 / 5 + 9 / 5 * k for k in range(5)], rtol=0, atol=6e-3)  # an impact is at the next step


def test_a_slide_falls_onto_its_stop():
    system = nsds.system(
        block=nsds.rigid_bodies(2.0, [1, 2, 3], q=AT_ORIGIN, v=np.zeros(6), fext=[1.0, 2.0, -2 * 9.81]),
        guide=nsds.interaction(joints.prismatic([0, 0, 1]), nsds.equality(), on="block"),
        stop=nsds.interaction(joints.slide_along([0, 0, 1], lower=-0.5), nsds.newton_impact(0.0), on="block"),
    )
    rows = nsds.simulate(system, t_end=1.0, h=1e-3)
    assert rows["t"][np.flatnonzero(rows["stop"]["lambda"])[0]] == pytest.approx(np.sqrt(2 * 0.5 / 9.81), abs=2e-3)
    np.testing.assert_allclose(rows["stop"]["lambda"][-100:], 2 * 9.81e-3, rtol=1e-6)
    np.testing.assert_allclose(rows["block"]["q"][-1, :2], 0, rtol=0, atol=1e-9)


def test_gears_turn_in_their_ratio_and_share_the_moment():
    """``(I_a + I_b ratio^2) Omega_a' = M`` with Omega_b = ratio Omega_a."""
    ratio, moment = -0.5, 3.0

    def gear(x, inertia, **forces):
        return nsds.rigid_bodies(1.0, inertia, q=[x, 0, 0, 1, 0, 0, 0], v=np.zeros(6), **forces)

    system = nsds.system(
        a=gear(0.0, 2.0, mext=[0, 0, moment]),
        b=gear(1.0, 4.0),
        axle_a=nsds.interaction(joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="a"),
        axle_b=nsds.interaction(joints.hinge([1, 0, 0], [0, 0, 1]), nsds.equality(), on="b"),
        teeth=nsds.interaction(joints.coupler(("angle", [0, 0, 1]), ("angle", [0, 0, 1]), ratio), nsds.equality(), on=("a", "b")),
    )
    rows = nsds.simulate(system, t_end=2.0, h=1e-2)
    speed = moment / (2.0 + 4.0 * ratio**2) * rows["t"]
    np.testing.assert_allclose(rows["a"]["v"][:, 5], speed, rtol=0, atol=1e-7)
    np.testing.assert_allclose(rows["b"]["v"][:, 5], ratio * speed, rtol=0, atol=1e-7)
    assert abs(rows["teeth"]["y"]).max() < 1e-7


def test_a_screw_moves_by_its_lead():
    """A nut of weight m g on a screw without friction: ``(m lead^2 + I) Omega' = m g lead``, with z = -lead angle."""
    lead = 0.3
    system = nsds.system(
        nut=nsds.rigid_bodies(2.0, 0.5, q=AT_ORIGIN, v=np.zeros(6), fext=[0, 0, -2 * 9.81]),
        shaft=nsds.interaction(joints.cylindrical([0, 0, 0], [0, 0, 1]), nsds.equality(), on="nut"),
        thread=nsds.interaction(joints.coupler(("angle", [0, 0, 1]), ("translation", [0, 0, 1]), lead), nsds.equality(), on="nut"),
    )
    rows = nsds.simulate(system, t_end=1.0, h=1e-2)
    spin = -2 * 9.81 * lead / (2 * lead**2 + 0.5) * rows["t"]
    np.testing.assert_allclose(rows["nut"]["v"][:, 5], spin, rtol=0, atol=1e-7)
    np.testing.assert_allclose(rows["nut"]["v"][:, 2], lead * spin, rtol=0, atol=1e-7)
