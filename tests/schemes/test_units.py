"""Finite differences of a relation do not depend on units, on how far a part has turned, or on when a run begins."""

import numpy as np
import pytest

import nsds

SCHEMES = {
    "event_driven": nsds.event_driven(),
    "d1_minus_linear": nsds.d1_minus_linear(),
    "generalised_alpha": nsds.generalised_alpha(),
    "moreau_jean": nsds.moreau_jean(),
    "direct projection": nsds.moreau_jean_direct_projection(),
    "combined projection": nsds.moreau_jean_combined_projection(),
}
TURN = 2 * np.pi


def wire(q, z, out):
    out[0] = q[1] - z[0] * np.cos(q[0] / z[0])


def slope(q, z, out):
    out[0, 0], out[0, 1] = np.sin(q[0] / z[0]), 1.0


def drive(t, q, z, out):
    out[0] = q[0] - np.sin(20 * np.pi * (t - z[0]))


def bead(length, duration, angle, scheme, H):
    """Positions and forces, in units of length and duration, of a bead on a wire ``y = L cos(x / L)`` under gravity."""
    speed, near = length / duration, np.remainder(angle, TURN)
    system = nsds.system(
        bead=nsds.lagrangian_linear(
            M=np.eye(2), fext=[0.0, -speed / duration], q=[angle * length, length * np.cos(near)], v=[speed, -np.sin(near) * speed]
        ),
        wire=nsds.interaction(nsds.scleronomous(wire, H, m=1, z=[length]), nsds.equality(), on="bead"),
    )
    rows = nsds.simulate(system, t_end=duration, h=0.05 * duration, scheme=scheme)
    assert not (rows["status"] & nsds.status.INEXACT).any()
    force = speed / duration if scheme["scheme"] == b"event_driven" else speed
    return np.column_stack([rows["bead"]["q"] / length - [angle - near, 0.0], rows["wire"]["lambda"] / force])


@pytest.mark.parametrize("H", [None, slope])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("length", "duration"), [(1e-6, 1.0), (1e-3, 1.0), (1e6, 1.0), (1.0, 1e6)])
def test_motions_scale_with_lengths_and_times(length, duration, scheme, H):
    for angle in (0.0, 0.3):
        wanted = bead(1.0, 1.0, angle, SCHEMES[scheme], H)
        np.testing.assert_allclose(bead(length, duration, angle, SCHEMES[scheme], H), wanted, atol=1e-6)


@pytest.mark.parametrize("H", [None, slope])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("turns", [100, 10**4, 10**6])
def test_what_has_turned_far_moves_as_at_its_start(turns, scheme, H):
    """The angle is known to 1e-16 of itself, and Newton's method leaves impulses up to its tolerance."""
    wanted = bead(1.0, 1.0, 0.3, SCHEMES[scheme], H)
    np.testing.assert_allclose(bead(1.0, 1.0, 0.3 + turns * TURN, SCHEMES[scheme], H), wanted, atol=1e-6 + 1e-11 * turns)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_driven_moves_late_as_at_its_start(scheme):
    """``dh/dt`` by differences: of a drive of 10 Hz, with steps of a tenth of its period."""

    def run(begin):
        system = nsds.system(
            mass=nsds.lagrangian_linear(M=[[1.0]], q=[0.0], v=[20 * np.pi]),
            drive=nsds.interaction(nsds.rheonomous(drive, m=1, z=[begin]), nsds.equality(), on="mass"),
        )
        system["t"] = system["t0"] = begin
        rows = nsds.simulate(system, t_end=begin + 0.2, h=0.01, scheme=SCHEMES[scheme])
        return np.column_stack([rows["mass"]["q"], rows["mass"]["v"]]), rows["t"] - begin

    wanted, t = run(0.0)
    np.testing.assert_allclose(wanted[:, 1], 20 * np.pi * np.cos(20 * np.pi * t), atol=1e-6)
    for begin in (100.0, 1e4):
        np.testing.assert_allclose(run(begin)[0], wanted, atol=1e-8 * begin)


def pull(t, q, v, z, out):
    out[0] = 4.0 * z[0] * np.sin(q[0] / z[0])


def rate(t, x, z, out):
    out[0] = z[0] * (np.sin(5.0 * t) - np.tanh(3.0 * x[0] / z[0]))


def bouncing(unit, scheme):
    """Positions, in units, of a mass on a spring by a function, without its derivative, over a floor."""
    system = nsds.system(
        mass=nsds.lagrangian(mass=[1.0], fint=pull, q=[unit], v=[0.0], z=[unit]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation([[1.0]]), nsds.newton_impact(0.5), on="mass"),
    )
    return nsds.simulate(system, t_end=1.5, h=0.03, scheme=scheme)["mass"]["q"] / unit


def switched(unit, scheme):
    """States, in units, of a plant by a function with a relay."""
    system = nsds.system(
        plant=nsds.first_order(rate, x=[unit], z=[unit]),
        relay=nsds.interaction(nsds.first_order_linear_relation([[1.0]], [[1.0]]), nsds.relay(-0.3 * unit, 0.3 * unit), on="plant"),
    )
    rows = nsds.simulate(system, t_end=1.5, h=0.03, scheme=scheme)
    return rows["plant"]["x"][rows["status"] == 0] / unit


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e9])
def test_functions_without_derivatives_scale_in_all_families(unit):
    for run, schemes in (
        (bouncing, (nsds.moreau_jean(), nsds.generalised_alpha(), nsds.schatzman_paoli())),
        (switched, (nsds.euler_moreau(), nsds.event_driven(), nsds.event_driven(flow="radau"))),
    ):
        for scheme in schemes:
            np.testing.assert_allclose(run(unit, scheme), run(1.0, scheme), atol=1e-8)


@pytest.mark.parametrize("length", [1e-9, 1e-6, 1e6])
def test_the_work_of_a_relation_without_its_derivative_has_no_units(length):
    ledgers = []
    for H in (None, slope):
        system = nsds.system(
            bead=nsds.lagrangian_linear(
                M=np.eye(2), fext=[0.0, -length], q=[0.3 * length, length * np.cos(0.3)], v=[length, -np.sin(0.3) * length]
            ),
            wire=nsds.interaction(nsds.scleronomous(wire, H, m=1, z=[length]), nsds.dry_friction(0.5 * length), on="bead"),
        )
        rows = nsds.simulate(system, t_end=1.0, h=0.05)
        ledgers.append(nsds.energy(system, rows)["contact"] / length**2)
    assert abs(ledgers[1]).max() > 1e-4
    np.testing.assert_allclose(ledgers[0], ledgers[1], atol=1e-10)


def bouncing_links(length, scheme):
    """Positions, in units of length, of two links that swing and bounce on the ground; times go with its root."""
    duration, along = length**0.5, np.array([0.8, 0.0, 0.6])
    parts = {}
    for i in range(2):
        end = np.array([0.0, 0.0, 1.5]) + i * along
        parts[f"link{i}"] = nsds.rigid_bodies(
            1.0, 0.25 * np.eye(3) * length**2, q=np.r_[length * (end + 0.5 * along), 1, 0, 0, 0], v=np.zeros(6), fext=[0, 0, -8.0]
        )
        on = "link0" if i == 0 else ("link1", "link0")
        parts[f"hinge{i}"] = nsds.interaction(nsds.joints.hinge(length * end, [0, 1, 0]), nsds.equality(), on=on)
    ball = [nsds.shapes.sphere(0.125 * length)]
    parts["ground"] = nsds.collisions(
        {"link0": ball, "link1": ball}, nsds.newton_impact_friction(e_n=0.5, mu=0.3), world=[nsds.shapes.plane()]
    )
    rows = nsds.simulate(nsds.system(**parts), t_end=2.0 * duration, h=2.0**-7 * duration, scheme=scheme)
    assert not (rows["status"] & nsds.status.INEXACT).any()
    assert (rows["ground"]["n"] > 0).any()
    return np.column_stack([rows[f"link{i}"]["q"][:, 2] / length for i in range(2)])


@pytest.mark.parametrize("scheme", [*SCHEMES, "rattle"])
def test_links_of_a_micrometre_move_as_those_of_a_metre(scheme):
    """Up to the tolerances of positions and of contact problems. Impacts are no work of joints, however far links turn in a step."""
    scheme = nsds.rattle() if scheme == "rattle" else SCHEMES[scheme]
    np.testing.assert_allclose(bouncing_links(2.0**-20, scheme), bouncing_links(1.0, scheme), rtol=0, atol=5e-8)


def ball_on_a_belt_beside_a_braked_hinge(length):
    """Positions, in units of length, of a ball that a belt takes along under two links that fall and turn against a brake."""
    ball, link = nsds.shapes.sphere(0.05 * length), nsds.shapes.box(np.array([0.2, 0.1, 0.1]) * length)
    parts = {
        f"link{i}": nsds.rigid_bodies(
            1.0 - 0.5 * i,
            nsds.shapes.inertia(link, 1.0 - 0.5 * i),
            q=[0.2 * i * length, 0, 5 * length, 1, 0, 0, 0],
            v=[0, 0, -2.0 * i * length, 0, 20.0 * i, 0],
        )
        for i in range(2)
    }
    hinge, on = nsds.joints.hinge([0.1 * length, 0, 5 * length], [0, 1, 0]), ("link0", "link1")
    belt = [0.5 * length, 0, 0, 0, 0, 1.0]
    law = nsds.newton_impact_friction(0.0, 0.2)
    system = nsds.system(
        gravity=[0, 0, -9.81 * length],
        **parts,
        ball=nsds.rigid_bodies(0.2, nsds.shapes.inertia(ball, 0.2), q=[0, 0, 0.05 * length, 1, 0, 0, 0], v=np.zeros(6)),
        hinge=nsds.interaction(hinge, nsds.equality(), on=on),
        brake=nsds.interaction(nsds.joints.hinge_angle([0, 1, 0]), nsds.dry_friction(0.02 * length**2), on=on),
        belt=nsds.collisions({"ball": ball}, law, world=nsds.shapes.plane(), surface_velocity={"world": belt}),
    )
    rows = nsds.simulate(system, t_end=0.3, h=2e-3, scheme=nsds.rattle())
    return np.column_stack([rows[name]["q"][:, :3] / length for name in (*on, "ball")])


def test_contacts_are_solved_as_well_beside_rows_in_other_units():
    """Rates of angles are no scale of the velocities of contacts."""
    wanted = ball_on_a_belt_beside_a_braked_hinge(1.0)
    assert wanted[-1, 6] > 0.03
    np.testing.assert_allclose(ball_on_a_belt_beside_a_braked_hinge(2.0**-20), wanted, rtol=0, atol=1e-7)
