"""Rigid bodies, joints, contacts and controllers of a record that is edited: as one that was stated so, or refused by name."""

import numpy as np
import pytest

import nsds
from nsds.schemes.run import preparation

STATED = {
    "mass": 2.0, "inertia": [0.2, 0.3, 0.4], "point": [0.0, 0.0, 1.0], "axis": [0.0, 1.0, 0.0], "gain": 30.0, "torque": 0.4,
    "stiffness": 40.0, "radius": 0.1, "mu": 0.3, "e_n": 0.4, "thrust": 2.0, "weight": [0.0, 0.0, -9.81],
}  # fmt: skip


def servo(t, y, ydot, z, out):
    out[0] = z[0] * (0.5 - y[0]) - 0.05 * z[0] * ydot[0]


def push(t, x, state, z, u):
    u[0] = z[0] * (1.0 - x[0])


def machine(**values):
    """An arm on a hinge with a motor and a brake, a spring from it to a ball that is pushed over a rough floor."""
    s = STATED | values
    hinge = nsds.joints.hinge(s["point"], s["axis"])
    q = [0.4, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    return nsds.system(
        arm=nsds.rigid_bodies(s["mass"], s["inertia"], q=q, v=np.zeros(6), fext=[0.0, 0.0, -19.62]),
        ball=nsds.rigid_bodies(
            1.0, [0.004] * 3, q=[0.0, 0.3, 0.15, 1.0, 0.0, 0.0, 0.0], v=[1.0, 0.2, 0.0, 3.0, 0.0, 0.0], fext=s["weight"],
            T=[[1.0], [0.0], [0.0], [0.0], [0.0], [0.0]], u=[0.0],
        ),
        pivot=nsds.interaction(hinge, nsds.laws.equality(), on="arm"),
        motor=nsds.interaction(nsds.joints.hinge_angle(s["axis"]), nsds.laws.force_law(servo, z=[s["gain"]]), on="arm"),
        brake=nsds.interaction(nsds.joints.hinge_angle(s["axis"]), nsds.laws.relay(-s["torque"], s["torque"]), on="arm"),
        spring=nsds.interaction(nsds.joints.distance([0.4, 0.0, 1.0], [0.0, 0.3, 0.15]), nsds.laws.spring_damper(s["stiffness"], 0.5),
                                on=("arm", "ball")),
        hits=nsds.collisions(
            {"ball": nsds.shapes.sphere(s["radius"])}, nsds.laws.newton_impact_friction(e_n=s["e_n"], mu=s["mu"]), world=nsds.shapes.plane()
        ),
        pusher=nsds.sampled_control(push, reads="ball", writes="ball", period=0.01, z=[s["thrust"]]),
    )  # fmt: skip


def write(part, field, place=()):
    """What writes a value into a field of a part, at a place in it."""
    return lambda system, value: system[part][field].__setitem__(place, value)


def turn(system, axis):
    for part in ("pivot", "motor", "brake"):
        system[part]["geometry"] = machine(axis=axis)[part]["geometry"]


def brake(system, torque):
    system["brake"]["lower"], system["brake"]["upper"] = -torque, torque


EDITS = {  # other values, and what writes them into the record
    "mass": (3.0, write("arm", "mass")),
    "inertia": ([0.5, 0.2, 0.3], lambda system, value: write("arm", "inertia")(system, np.diag(value))),
    "gain": (50.0, write("motor", "z", 0)),
    "torque": (3.0, brake),
    "stiffness": (90.0, write("spring", "stiffness")),
    "radius": (0.12, write("hits", "shape_size", (0, 0))),
    "mu": (0.05, write("hits", "mu")),
    "e_n": (0.9, write("hits", "e_n")),
    "thrust": (9.0, write("pusher", "z", 0)),
    "weight": ([0.0, 0.5, -5.0], write("ball", "fext")),
    "axis": ([0.2, 1.0, 0.1], turn),
    "point": ([0.1, 0.0, 1.2], lambda system, value: write("pivot", "geometry")(system, machine(point=value)["pivot"]["geometry"])),
}
SCHEMES = {"steps": nsds.schemes.moreau_jean(), "events": nsds.schemes.event_driven()}


def motion(record, scheme, t_end=0.2):
    """Coordinates and velocities in all rows."""
    rows = nsds.simulate(record, t_end=t_end, h=2e-3, scheme=SCHEMES[scheme])
    return np.hstack([rows[part][field] for part in ("arm", "ball") for field in "qv"])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", EDITS)
def test_an_edited_record_moves_as_the_one_that_states_these_values(name, scheme):
    """After a run of the record before; and it moves otherwise than that."""
    value, edit = EDITS[name]
    system = machine()
    before = motion(system, scheme)
    edit(system, value)
    found, expected = motion(system, scheme), motion(machine(**{name: value}), scheme)
    assert found.tobytes() == expected.tobytes()
    assert abs(found[-1] - before[-1]).max() > 1e-3


def places(system):
    """(part, field, field within it or None) of all that are floats."""
    for part in (part for part in system.dtype.names if system.dtype[part].names):
        for field in system.dtype[part].names:
            inner = system.dtype[part][field].names
            yield from ((part, field, each) for each in inner or [None] if system[part][field].dtype.kind == "f" or inner)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_run_after_another_one_has_the_fields_of_its_own_record(scheme):
    """Each field in turn, also those that no run accepts: then both say the same."""
    system, n_tried = machine(), 0

    def said(record):
        try:
            return motion(record, scheme, 0.02).tobytes()
        except (ValueError, nsds.SimulationError) as error:
            return str(error)

    for part, field, inner in places(system):
        edited = system.copy()
        changed = edited[part][field] if inner is None else edited[part][field][inner]
        if changed.dtype.kind == "f":
            changed[...] = changed * 1.25 + 0.03125
            preparation._kept.clear()
            fresh = said(edited)
            preparation._kept.clear()
            said(system)
            assert said(edited) == fresh, f"{part}.{field}.{inner}"
            n_tried += 1
    assert n_tried > 50


def block():
    """A disk in the plane, over the ground."""
    disk = nsds.planar_bodies(1.0, 0.02, q=[0.0, 0.5, 0.1], v=[0.3, 0.0, 1.0])
    return nsds.system(disk=disk, gravity=[0.0, -9.81, 0.0])


REFUSED = {  # what no run begins with
    "space": (machine, "arm", "q", [0.4, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0], "must be a unit quaternion"),
    "plane": (block, "disk", "q", [0.0, 0.5, 0.1, 1.0, 0.0, 0.0, 0.0], "must be 0 at entries"),
    "turned": (block, "disk", "q", [0.0, 0.5, 0.0, 0.8, 0.6, 0.0, 0.0], "must be 0 at entries"),
    "speed": (block, "disk", "v", [0.3, 0.0, 0.0, 0.1, 0.0, 1.0], "must be 0 at entries"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_state_that_no_run_begins_with_is_refused_after_a_run_too(case):
    build, part, field, value, why = REFUSED[case]
    system, advance = build(), nsds.stepper(build(), 2e-3)
    edited = system.copy()
    edited[part][field] = value
    nsds.simulate(system, t_end=0.01, h=2e-3)
    advance(system)
    for call in (lambda: nsds.simulate(edited, t_end=0.01, h=2e-3), lambda: advance(edited)):
        with pytest.raises(ValueError, match=why):
            call()
