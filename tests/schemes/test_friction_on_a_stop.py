"""Dry friction at rest on a stop: of all forces that the laws admit it is the one to which the motion before leads.

Friction acts against the motion until that is stopped, and goes on to do so: the stop carries the load less the friction.
"""

import numpy as np
import pytest

import nsds
from nsds import joints

G, FRICTION = 9.81, 0.5
SCHEMES = {
    "rattle": 1e-3, "moreau_jean": 1e-3, "moreau_jean_direct_projection": 1e-3, "moreau_jean_combined_projection": 1e-3,
    "d1_minus_linear": 1e-3, "generalised_alpha": 1e-3, "event_driven": 1e-2,
}  # fmt: skip
LAGRANGIAN = ("moreau_jean", "moreau_jean_direct_projection", "moreau_jean_combined_projection", "schatzman_paoli", "d1_minus_linear",
              "generalised_alpha", "event_driven")  # fmt: skip
ORDERS = ("friction first", "stop first")


def in_order(order, friction, stop):
    parts = {"friction": friction, "stop": stop}
    return parts if order == ORDERS[0] else dict(reversed(parts.items()))


def forces(rows, name, h):
    """Of the last row: impulses over a step, or forces of events."""
    unit = 1.0 if name == "event_driven" else h
    return abs(rows["stop"]["lambda"][-1]).max() / unit, abs(rows["friction"]["lambda"][-1]).max() / unit, rows


def fallen(kind, order):
    """A rod that turns in a hinge, or a block that slides down a guide, onto a stop."""
    if kind == "rod":
        inertia = [1 / 12, 1e-3, 1 / 12]
        body = nsds.rigid_bodies(1.0, inertia, q=[0.5 * np.cos(0.5), 0, -0.5 * np.sin(0.5), np.cos(0.25), 0, np.sin(0.25), 0], v=[0] * 6)
        held, along = joints.hinge([0, 0, 0], [0, 1, 0]), joints.hinge_angle([0, 1, 0])
        stop = joints.hinge_angle([0, 1, 0], lower=-0.8, upper=0.2)
    else:
        body = nsds.rigid_bodies(1.0, [0.1, 0.1, 0.1], q=[0, 0, 1.0, 1, 0, 0, 0], v=[0] * 6)
        held, along = joints.prismatic([0, 0, 1]), joints.slide_along([0, 0, 1])
        stop = joints.slide_along([0, 0, 1], lower=-0.2, upper=0.8)
    parts = in_order(
        order,
        nsds.interaction(along, nsds.dry_friction(FRICTION), on="body"),
        nsds.interaction(stop, nsds.newton_impact(0.0), on="body"),
    )
    return nsds.system(gravity=[0, 0, -G], body=body, held=nsds.interaction(held, nsds.equality(), on="body"), **parts)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["rod", "block"])
@pytest.mark.parametrize("name", SCHEMES)
def test_friction_of_a_joint_holds_what_it_has_braked(name, kind, order):
    h = SCHEMES[name]
    rows = nsds.simulate(fallen(kind, order), t_end=0.6, h=h, scheme=getattr(nsds, name)())
    stop, friction, _ = forces(rows, name, h)
    q = rows["body"]["q"][-1]
    load = G * q[0] if kind == "rod" else G
    assert friction == pytest.approx(FRICTION, abs=2e-3)
    assert stop == pytest.approx(load - FRICTION, abs=5e-3)
    assert abs(rows["body"]["v"][-1]).max() < (1e-8 if name == "d1_minus_linear" else 1e-9)


def driven(kind):
    """(system, load of the stop): a motor of 2 N m with friction in its bearing drives what strikes a stop, by a gear or as a screw."""
    spin = [0, 0, 1]
    motor = nsds.rigid_bodies(1.0, 0.1 * np.eye(3), q=[0, 0, 0, 1, 0, 0, 0], v=[0] * 6, mext=[0, 0, 2.0])
    parts = {"motor": motor, "friction": nsds.interaction(joints.hinge_angle(spin), nsds.dry_friction(FRICTION), on="motor")}
    if kind == "gear":
        bearing, load = joints.hinge([0, 0, 0], spin), nsds.rigid_bodies(1.0, np.eye(3), q=[2, 0, 0, 1, 0, 0, 0], v=[0] * 6)
        parts |= {"load": load, "axle": nsds.interaction(joints.hinge([2, 0, 0], spin), nsds.equality(), on="load")}
        ratio, to, on, stop = 0.25, "angle", ("motor", "load"), ("load", joints.hinge_angle(spin, upper=0.1))
    else:
        bearing = joints.cylindrical([0, 0, 0], spin)
        ratio, to, on, stop = 0.05, "translation", "motor", ("motor", joints.slide_along(spin, upper=0.02))
    coupled = joints.coupler(("angle", spin), (to, spin), ratio)
    for name, relation, law, which in (
        ("bearing", bearing, nsds.equality(), "motor"),
        ("coupled", coupled, nsds.equality(), on),
        ("stop", stop[1], nsds.newton_impact(0.0), stop[0]),
    ):
        parts[name] = nsds.interaction(relation, law, on=which)
    return nsds.system(**parts), (2.0 - FRICTION) / ratio


@pytest.mark.parametrize("kind", ["gear", "screw"])
@pytest.mark.parametrize("name", [name for name in SCHEMES if name != "d1_minus_linear"])
def test_friction_of_a_drive_holds_what_a_stop_behind_it_has_stopped(name, kind):
    """Joints hand on what the stop carries: motor less friction, times the ratio, not motor plus friction."""
    system, load = driven(kind)
    h = 1e-2
    stop, friction, rows = forces(nsds.simulate(system, t_end=0.6, h=h, scheme=getattr(nsds, name)()), name, h)
    assert rows["friction"]["lambda"][-1].item() < 0.0
    assert friction == pytest.approx(FRICTION, abs=1e-3)
    assert stop == pytest.approx(load, rel=1e-3)
    assert abs(rows["motor"]["v"][-1]).max() < 1e-9


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", LAGRANGIAN)
def test_friction_of_a_guide_holds_what_it_has_braked(name, order):
    """As above, of a coordinate with linear relations."""
    h = 1e-2 if name == "event_driven" else 1e-3
    relation = nsds.lagrangian_linear_relation(H=[[1.0]])
    parts = in_order(
        order,
        nsds.interaction(relation, nsds.dry_friction(FRICTION), on="mass"),
        nsds.interaction(relation, nsds.newton_impact(0.0), on="mass"),
    )
    mass = nsds.lagrangian_linear(M=np.eye(1), fext=[-G], q=[0.2], v=[0.0])
    rows = nsds.simulate(nsds.system(mass=mass, **parts), t_end=0.5, h=h, scheme=getattr(nsds, name)())
    stop, friction, _ = forces(rows, name, h)
    assert friction == pytest.approx(FRICTION, abs=1e-6)
    assert stop == pytest.approx(G - FRICTION, rel=1e-6)


def test_what_is_lifted_off_its_stop_is_held_by_friction_as_far_as_that_goes():
    """A force that lifts more and more: the stop carries less, then friction turns, then the mass moves; friction never jumps."""
    mass = nsds.lagrangian_linear(M=np.eye(1), fext=lift, q=[0.0], v=[0.0])
    relation = nsds.lagrangian_linear_relation(H=[[1.0]])
    parts = in_order(
        ORDERS[1],
        nsds.interaction(relation, nsds.dry_friction(2.0), on="mass"),
        nsds.interaction(relation, nsds.newton_impact(0.0), on="mass"),
    )
    h = 1e-3
    rows = nsds.simulate(nsds.system(mass=mass, **parts), t_end=1.0, h=h)
    friction = rows["friction"]["lambda"][1:].reshape(-1) / h
    assert abs(np.diff(friction)).max() < 0.1
    assert friction[-1] == pytest.approx(-2.0)
    assert rows["mass"]["v"][-1, 0] > 0.0


def lift(t, z, out):
    out[0] = 20.0 * t - 10.0
