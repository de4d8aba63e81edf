"""Bounds on lambda in joints and drives of rigid bodies: motors, clutches, brakes, freewheels, against closed forms."""

import numpy as np
import pytest

import nsds
from nsds.model import joints, laws
from nsds.model.system_kinds import NEWTON_EULER

AT_ORIGIN = [0, 0, 0, 1, 0, 0, 0]
BOUNDS = [(-4, 4), (-1, 5), (2, 5), (3, 3), (-np.inf, 5), (-1, np.inf), (0, np.inf), (-np.inf, np.inf)]
INERTIA, H = 2.0, 0.05


def wheel(spin, law=None, relation=None, **forces):
    """A wheel on a hinge about z, with a law for its angle or for another relation."""
    relation = joints.hinge_angle([0, 0, 1]) if relation is None else relation
    parts = {} if law is None else {"extra": nsds.interaction(relation, law, on="wheel")}
    return nsds.system(
        wheel=nsds.rigid_bodies(1.0, INERTIA, q=AT_ORIGIN, v=[0, 0, 0, 0, 0, spin], **forces),
        hinge=nsds.interaction(joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="wheel"),
        **parts,
    )


def spins_by_the_law(spin, wanted, lower, upper, n_steps):
    """``I (Omega+ - Omega) = lambda`` with ``Omega+ = wanted``, or lambda at the bound that keeps it from there."""
    result = [spin]
    for _ in range(n_steps):
        force = min(max(INERTIA * (wanted - result[-1]) / H, lower), upper)
        result.append(result[-1] + H * force / INERTIA)
    return np.array(result)


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
@pytest.mark.parametrize("spin", [0.0, 6.0])
def test_a_motor_holds_a_velocity_with_what_it_has(spin, lower, upper):
    motor = nsds.prescribed_velocity([5], [3.0])
    rows = nsds.simulate(wheel(spin, nsds.relay(lower, upper), motor), t_end=2.0, h=H)
    np.testing.assert_allclose(rows["wheel"]["v"][:, 5], spins_by_the_law(spin, 3.0, lower, upper, len(rows) - 1), rtol=0, atol=1e-10)
    lam = rows["extra"]["lambda"][1:]
    assert (lam >= H * lower - 1e-12).all()
    assert (lam <= H * upper + 1e-12).all()
    np.testing.assert_allclose(rows["wheel"]["p"][1:, 5], lam, rtol=0, atol=1e-12)
    np.testing.assert_allclose(rows["extra"]["ydot"], rows["wheel"]["v"][:, 5] - 3.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_a_brake_has_bounds_of_its_own_for_each_direction(lower, upper):
    for spin in (-3.0, 3.0):
        rows = nsds.simulate(wheel(spin, nsds.relay(lower, upper)), t_end=2.0, h=H)
        np.testing.assert_allclose(rows["wheel"]["v"][:, 5], spins_by_the_law(spin, 0.0, lower, upper, len(rows) - 1), rtol=0, atol=1e-10)


def test_equal_bounds_with_two_signs_are_dry_friction():
    rows = [nsds.simulate(wheel(3.0, law), t_end=2.0, h=H) for law in (nsds.dry_friction(4.0), nsds.relay(-4.0, 4.0))]
    for name, field in (("wheel", "q"), ("wheel", "v"), ("extra", "lambda")):
        np.testing.assert_array_equal(rows[0][name][field], rows[1][name][field])


@pytest.mark.parametrize("relation", [None, nsds.prescribed_velocity([5], [1.0])], ids=["angle", "drive"])
@pytest.mark.parametrize("scheme", ["moreau_jean", "rattle", "generalised_alpha"])
def test_bounds_are_what_the_row_of_a_law_says(monkeypatch, relation, scheme):
    """Whatever its parameters are called: a pawl, which takes up to a limit one way, is a relay of 0 and that limit."""

    def one_way(values, m):
        limit = values["most"].reshape(*values.shape, m)
        return np.zeros_like(limit), limit

    roles = {NEWTON_EULER: ("joint", "drive")}
    monkeypatch.setitem(laws.LAWS, "pawl", laws.Law(roles, "bounded", {"most": (0.0, np.inf)}, own_bounds=one_way))
    monkeypatch.setitem(laws.HELD, "pawl", ("most",))
    pawl = {"law": "pawl", "most": np.array(4.0)}
    for spin in (-3.0, 3.0):
        own, relay = (
            nsds.simulate(wheel(spin, law, relation), t_end=2.0, h=H, scheme=getattr(nsds, scheme)())
            for law in (pawl, nsds.relay(0.0, 4.0))
        )
        for name, field in (("wheel", "q"), ("wheel", "v"), ("extra", "lambda")):
            np.testing.assert_array_equal(own[name][field], relay[name][field])
        assert own["extra"]["lambda"].max() == (0.0 if spin > 0.0 else H * 4.0)


def test_without_bounds_it_is_an_equation():
    laws, scheme = (nsds.equality(), nsds.relay(-np.inf, np.inf)), nsds.moreau_jean()
    rows = [nsds.simulate(wheel(-3.0, law), t_end=2.0, h=H, scheme=scheme) for law in laws]
    for name, field in (("wheel", "q"), ("wheel", "v"), ("extra", "lambda")):
        np.testing.assert_array_equal(rows[0][name][field], rows[1][name][field])
    assert (rows[0]["status"] == 0).all()  # although what is left of the velocity shrinks until its square is 0


def test_a_flywheel_runs_up_against_a_load():
    """``I Omega' = torque - load`` until the speed is reached, and then the motor gives what the load takes."""
    torque, load, speed = 5.0, 2.0, 3.0
    system = wheel(0.0, nsds.relay(-1.0, torque), nsds.prescribed_velocity([5], [speed]), mext=[0, 0, -load])
    rows = nsds.simulate(system, t_end=4.0, h=1e-2)
    expected = np.minimum((torque - load) / INERTIA * rows["t"], speed)
    np.testing.assert_allclose(rows["wheel"]["v"][:, 5], expected, rtol=0, atol=1e-10)
    arrived = rows["t"] > speed * INERTIA / (torque - load) + 2e-2
    np.testing.assert_allclose(rows["extra"]["lambda"][arrived], load * 1e-2, rtol=1e-9)


def coupled_wheels(law, spins, inertias=(2.0, 3.0)):
    wheels = {
        name: nsds.rigid_bodies(1.0, inertia, q=AT_ORIGIN, v=[0, 0, 0, 0, 0, spin])
        for name, inertia, spin in zip("ab", inertias, spins, strict=True)
    }
    hinges = {f"hinge_{name}": nsds.interaction(joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on=name) for name in wheels}
    return nsds.system(**wheels, **hinges, clutch=nsds.interaction(joints.hinge_angle([0, 0, 1]), law, on=("a", "b")))


@pytest.mark.parametrize("spins", [(6.0, 1.0), (1.0, 6.0)])
def test_a_clutch_slips_and_then_sticks(spins):
    """It slips for ``|Omega_a - Omega_b| / (M (1/I_a + 1/I_b))``, M the bound of that direction, until both have the mean velocity."""
    lower, upper = -2.0, 5.0
    rows = nsds.simulate(coupled_wheels(nsds.relay(lower, upper), spins), t_end=4.0, h=1e-2)
    moment = lower if spins[0] > spins[1] else upper
    ends = -(spins[0] - spins[1]) / (moment * (1 / 2 + 1 / 3))
    slipped = np.minimum(rows["t"], ends)
    np.testing.assert_allclose(rows["a"]["v"][:, 5], spins[0] + moment / 2 * slipped, rtol=0, atol=1e-9)
    np.testing.assert_allclose(rows["b"]["v"][:, 5], spins[1] - moment / 3 * slipped, rtol=0, atol=1e-9)
    np.testing.assert_allclose(rows["a"]["v"][-1, 5], (2 * spins[0] + 3 * spins[1]) / 5, rtol=0, atol=1e-9)
    np.testing.assert_allclose(rows["clutch"]["lambda"][-50:], 0.0, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("spins", "holds"), [((1.0, 6.0), True), ((6.0, 1.0), False)])
def test_a_freewheel_drives_in_one_direction(spins, holds):
    """``0 <= Omega_a - Omega_b  ⟂  lambda >= 0``: b takes a along, and a runs ahead of b freely."""
    rows = nsds.simulate(coupled_wheels(nsds.relay(0.0, np.inf), spins), t_end=0.5, h=1e-2)
    expected = [(2 * spins[0] + 3 * spins[1]) / 5] * 2 if holds else spins
    np.testing.assert_allclose([rows[name]["v"][-1, 5] for name in "ab"], expected, rtol=0, atol=1e-9)


def driven_ball(limit):
    """A ball on a floor whose spin about y a motor holds at 20 rad/s with at most limit."""

    def height(t, q, z, out):
        out[0] = q[2] - 0.1
        out[1], out[2], out[3] = q[0], q[1], 0.0
        out[4], out[5], out[6] = 0.0, 0.0, 1.0

    return nsds.system(
        ball=nsds.rigid_bodies(1.0, 0.004, q=[0, 0, 0.1, 1, 0, 0, 0], v=np.zeros(6), fext=[0, 0, -9.81]),
        floor=nsds.interaction(nsds.contact_point(height), nsds.newton_impact_friction(0.0, 0.4), on="ball"),
        motor=nsds.interaction(nsds.prescribed_velocity([4], [20.0]), nsds.relay(-0.2, limit), on="ball"),
    )


@pytest.mark.parametrize(("limit", "rolls"), [(0.2, True), (2.0, False)])
def test_a_driven_ball_rolls_or_spins(limit, rolls):
    """``(m + I/r^2) a = M / r`` as long as ``m a <= mu m g``, then ``a = mu g``; bounds and cones hold in every step."""
    h = 1e-3
    rows = nsds.simulate(driven_ball(limit), t_end=0.1, h=h)
    acceleration = limit / 0.1 / (1.0 + 0.004 / 0.01) if rolls else 0.4 * 9.81
    np.testing.assert_allclose(rows["ball"]["v"][:, 0], acceleration * rows["t"], rtol=0, atol=1e-6)
    lam, ydot = rows["motor"]["lambda"][1:], rows["motor"]["ydot"][1:]
    np.testing.assert_allclose(np.clip(lam - ydot, -0.2 * h, limit * h), lam, rtol=0, atol=1e-9)
    contact = rows["floor"]["lambda"][1:]
    assert (np.hypot(contact[:, 1], contact[:, 2]) <= 0.4 * contact[:, 0] + 1e-9).all()


def test_what_a_motor_puts_in_is_in_the_ledger():
    system = wheel(0.0, nsds.relay(-1.0, 5.0), nsds.prescribed_velocity([5], [3.0]))
    ledger = nsds.energy(system, nsds.simulate(system, t_end=2.0, h=1e-2))
    assert ledger["contact"].sum() == pytest.approx(INERTIA * 9.0 / 2, abs=1e-9)
    assert abs(ledger["numerical"]).max() < 1e-12


def test_members_of_an_ensemble_have_bounds_of_their_own():
    """Also of other kinds: two bounds, one, none."""
    systems = np.repeat(wheel(0.0, nsds.relay(-1.0, 5.0), nsds.prescribed_velocity([5], [3.0])), len(BOUNDS))
    systems["extra"]["lower"], systems["extra"]["upper"] = np.array(BOUNDS).T
    rows = nsds.simulate(systems, t_end=1.0, h=H)
    for member, (lower, upper) in zip(rows, BOUNDS, strict=True):
        expected = spins_by_the_law(0.0, 3.0, lower, upper, member.size - 1)
        np.testing.assert_allclose(member["wheel"]["v"][:, 5], expected, rtol=0, atol=1e-10)


def test_rows_of_one_joint_have_bounds_each():
    """The three angles of a ball held by a relay each: bounds are vectors."""
    lower, upper = np.array([-1.0, 0.0, -np.inf]), np.array([2.0, np.inf, np.inf])
    system = nsds.system(
        body=nsds.rigid_bodies(1.0, INERTIA, q=AT_ORIGIN, v=[0, 0, 0, 1.0, -2.0, 3.0]),
        motor=nsds.interaction(nsds.prescribed_velocity([3, 4, 5]), nsds.relay(lower, upper), on="body"),
    )
    rows = nsds.simulate(system, t_end=1.0, h=H)
    for i in range(3):
        expected = spins_by_the_law([1.0, -2.0, 3.0][i], 0.0, lower[i], upper[i], len(rows) - 1)
        np.testing.assert_allclose(rows["body"]["v"][:, 3 + i], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("scheme", [nsds.moreau_jean(form="explicit"), nsds.moreau_jean(theta=1.0), nsds.moreau_jean_direct_projection()])
def test_other_forms_of_the_step_have_them_too(scheme):
    rows = nsds.simulate(wheel(6.0, nsds.relay(-1.0, 5.0), nsds.prescribed_velocity([5], [3.0])), t_end=2.0, h=H, scheme=scheme)
    np.testing.assert_allclose(rows["wheel"]["v"][:, 5], spins_by_the_law(6.0, 3.0, -1.0, 5.0, len(rows) - 1), rtol=0, atol=1e-10)


def test_the_report_tells_forces_and_velocities(capsys):
    system = wheel(3.0, nsds.dry_friction(4.0))
    nsds.report(system, nsds.simulate(system, t_end=1.0, h=H))
    assert "lambda in [-0.2, 0], ydot in [1, 3]" in next(line for line in capsys.readouterr().out.splitlines() if line.startswith("extra"))


def test_refusals():
    with pytest.raises(ValueError, match="relay: lower <= upper is wanted"):
        nsds.relay(2.0, 1.0)
    with pytest.raises(ValueError, match="interaction 'extra': lower must be a number or have shape"):
        wheel(0.0, nsds.relay([0.0, 1.0], 2.0))
    system = wheel(0.0, nsds.relay(0.0, 2.0))
    system["extra"]["lower"] = 3.0
    with pytest.raises(ValueError, match=r"extra\.lower"):
        nsds.step(system, 0.1)
    with pytest.raises(ValueError, match=r"prescribed_velocity wants one of the laws .*relay.*, got newton_impact"):
        wheel(0.0, nsds.newton_impact(0.5), nsds.prescribed_velocity([5], [3.0]))
