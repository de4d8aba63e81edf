"""Tangent maps of motions that lambda keeps on surfaces from their start on: sliding, stick, closed contacts, conducting diodes.

States beside a surface come back at once, along what lambda acts: the derivative off it is that of the flow map, and one multiplier is 0.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

import nsds
from tests.analysis.models import den_hartog, friction_oscillator
from tests.strategies import examples

EVENTS = nsds.event_driven()


def state_of(system, name):
    """All coordinates and then all velocities, or all states, of a record."""
    part = system[name]
    return np.concatenate([part[field].ravel() for field in (("x",) if "x" in part.dtype.names else ("q", "v"))])


def started(system, name, x):
    """The system at the state x."""
    beside = system.copy()
    for field in ("x",) if "x" in beside[name].dtype.names else ("q", "v"):
        size = beside[name][field].size
        beside[name][field], x = x[:size].reshape(beside[name][field].shape), x[size:]
    return beside


def differences(system, name, length, delta, sides=(1, -1)):
    """Derivatives of the state a time later, by starts beside that of the system, on these sides."""
    x, t = state_of(system, name), float(system["t"]) + length
    end = lambda x: state_of(nsds.simulate(started(system, name, x), t_end=t, h=length, scheme=EVENTS)[-1], name)  # noqa: E731
    ends = [[end(x + side * delta * one) for side in sides] for one in np.eye(x.size)]
    if len(sides) == 1:
        return np.transpose([(each[0] - end(x)) * sides[0] / delta for each in ends])
    return np.transpose([(high - low) / (2 * delta) for high, low in ends])


def sliding(A, C, B, b=None, law=None):
    """``x' = A x + b + B lambda`` with relays in rows of C x; at a state on all of them."""
    C, B = np.atleast_2d(C), np.atleast_2d(B).T
    x = (np.eye(len(A)) - np.linalg.pinv(C) @ C) @ np.array([0.1, 0.2, -0.3])[: len(A)]
    part = nsds.first_order_linear(A, x=x, **({} if b is None else {"b": b}))
    relation = nsds.first_order_linear_relation(C, B)
    return nsds.system(part=part, switch=nsds.interaction(relation, law or nsds.relay(-1.0, 1.0), on="part"))


def wave(t, z, out):
    out[0], out[1] = 0.2 * math.cos(t), 0.1


A = np.array([[-0.3, 1.0, 0.2], [-1.0, -0.1, 0.5], [0.1, -0.4, -0.2]])


@pytest.mark.parametrize("b", [None, wave])
@pytest.mark.parametrize("rows", [[0], [0, 1]])
@given(seed=st.integers(0, 2**16))
@examples(6)
def test_directions_off_surfaces_on_which_relays_slide_are_lost(b, rows, seed):
    """``P = 1 - B (C B)^-1 C`` and then the motion along them, of constant operators; of drawn directions."""
    rng = np.random.default_rng(seed)
    C = np.eye(3)[rows] + 0.2 * rng.normal(size=(len(rows), 3))
    B = np.eye(3)[:, rows] + 0.2 * rng.normal(size=(3, len(rows)))
    found = nsds.floquet(sliding(A, C, B.T, b), period=0.02)
    P = np.eye(3) - B @ np.linalg.solve(C @ B, C)
    np.testing.assert_allclose(found["monodromy"], expm(0.02 * P @ A) @ P, rtol=0, atol=1e-11)
    assert (found["n_untreated"], found["log_det"]) == (0, -math.inf)


def bent(t, x, z, out):
    out[0], out[1], out[2] = x[1] - 0.3 * x[0] ** 3, -math.sin(x[0]) - 0.1 * x[1] + 0.5 * x[2], 0.1 * x[0] - 0.4 * x[1] * x[2]


def folded(t, x, lam, z, out):
    out[0] = x[0] + 0.3 * math.sin(x[1]) - 0.2 * x[2]


def pushed(t, x, lam, z, out):
    out[0], out[1], out[2] = lam[0], 0.3 * lam[0] * (1 + 0.1 * x[1]), 0.2 * lam[0]


def test_a_curved_surface_of_a_nonlinear_system():
    part = nsds.first_order(f=bent, x=[-0.3 * math.sin(0.4) - 0.06, 0.4, -0.3])
    relation = nsds.first_order_relation(m=1, h=folded, g=pushed)
    system = nsds.system(part=part, switch=nsds.interaction(relation, nsds.relay(-2.0, 2.0), on="part"))
    found = nsds.floquet(system, period=0.5)
    wanted = differences(system, "part", 0.5, 1e-5)
    np.testing.assert_allclose(found["monodromy"], wanted, rtol=0, atol=2e-5)
    assert abs(found["multipliers"]).min() < 1e-7
    by_state = nsds.sensitivity(system, t_end=0.5)["by_state"]
    np.testing.assert_allclose(by_state, found["monodromy"], rtol=0, atol=1e-7)


def test_what_a_number_of_the_relation_moves_a_surface_by_moves_the_state_along_lambda():
    """By ``e`` of ``y = C x + e``: from the same start the motion comes to the moved surface at once; costates know it, too."""
    system = sliding(A, [1.0, 0.3, 0.0], [1.0, 0.3, 0.2])
    relation = nsds.first_order_linear_relation([[1.0, 0.3, 0.0]], [[1.0], [0.3], [0.2]], e=[1e-3])
    system = nsds.system(
        part=nsds.first_order_linear(A, x=state_of(system, "part") - [1e-3, 0.0, 0.0]),
        switch=nsds.interaction(relation, nsds.relay(-1.0, 1.0), on="part"),
    )
    found = nsds.sensitivity(system, t_end=0.4, parameters=["switch.e"])
    ends = []
    for side in (1, -1):
        moved = system.copy()
        moved["switch"]["e"] += side * 1e-6
        ends.append(state_of(nsds.simulate(moved, t_end=0.4, h=0.4, scheme=EVENTS)[-1], "part"))
    np.testing.assert_allclose(found["by_parameters"][:, 0], (ends[0] - ends[1]) / 2e-6, rtol=0, atol=1e-5)
    back = nsds.gradient(system, t_end=0.4, objective=lambda x: x[1], parameters=["switch.e"], rows=4)
    np.testing.assert_allclose(back["gradient"], np.append(found["by_state"][1], found["by_parameters"][1]), rtol=0, atol=1e-8)
    np.testing.assert_allclose(back["costate"][:-1] @ [1.0, 0.3, 0.2], 0.0, rtol=0, atol=1e-8)


def test_exponents_of_directions_that_a_motion_loses():
    """Of sliding throughout: those of the motion along the surface, and -inf; also of fewer vectors, and without a transient."""
    B, C = np.array([1.0, 0.3, 0.2]), np.eye(3)[0]
    wanted = np.sort(np.linalg.eigvals((np.eye(3) - np.outer(B, C)) @ A).real)[:2]
    for k in (None, 2):
        for transient in (0, 10):
            found = nsds.lyapunov(sliding(A, C, B), period=0.5, n_periods=200, transient=transient, n_exponents=k)
            np.testing.assert_allclose(found["exponents"][:2], wanted, rtol=0, atol=0.02)
            assert found["rate"] == -math.inf
            assert k is not None or found["exponents"][2] == -math.inf


def drive(t, z, out):
    out[1] = math.cos(z[0] * t + z[1])


def relayed(f, omega, x, v, phase):
    """The oscillator with dry friction, its friction a relay of a first-order system."""
    part = nsds.first_order_linear([[0.0, 1.0], [-1.0, 0.0]], b=drive, x=[x, v], z=[omega, phase])
    relation = nsds.first_order_linear_relation(C=[[0.0, 1.0]], B=[[0.0], [1.0]])
    return nsds.system(part=part, friction=nsds.interaction(relation, nsds.relay(-f, f), on="part"))


@pytest.mark.parametrize(("build", "name"), [(friction_oscillator, "mass"), (relayed, "part")])
@given(shares=st.lists(st.floats(0.0, 0.999), min_size=3, max_size=3))
@examples(4)
def test_multipliers_are_those_of_all_base_points_of_an_orbit(build, name, shares):
    """Of an oscillator that sticks, or slides, twice in a period: one is 0, from where it sticks, too, and the other one is the same."""
    omega, f = 0.8, 0.83
    _, phase, state, *_ = den_hartog(0.79, omega, 0.3)
    system, period = build(f, omega, *state, phase), 2 * math.pi / omega
    orbit = nsds.orbit(system, period=period, settle=5)
    system = started(system, name, orbit["x"])
    rows = nsds.simulate(system, t_end=period, h=period / 64, scheme=EVENTS)
    at_rest = int(np.flatnonzero(rows[name]["v"][:, 0] == 0.0)[0]) if name == "mass" else int(abs(rows[name]["x"][:, 1]).argmin())
    for row in (at_rest, *(int(share * 64) for share in shares)):
        later = started(system, name, state_of(rows[row], name))
        later["t"] = rows["t"][row]
        found = nsds.floquet(later, period=period)
        np.testing.assert_allclose(abs(found["multipliers"]), abs(orbit["multipliers"]), rtol=0, atol=1e-7)
        assert found["residual"] < 1e-8
        assert found["n_untreated"] == 0
    assert abs(orbit["multipliers"][1]) < 1e-14


M, K, DAMPING = np.array([[2.0, 0.4], [0.4, 1.0]]), np.array([[2.0, -1.0], [-1.0, 1.5]]), np.array([[0.2, 0.1], [0.1, 0.3]])


def hardening(t, q, v, z, out):
    out[0] = 2 * q[0] - q[1] + 0.2 * v[0] + 0.1 * v[1] + 0.3 * q[0] ** 3
    out[1] = -q[0] + 1.5 * q[1] + 0.1 * v[0] + 0.3 * v[1] + 0.2 * q[1] ** 2


@pytest.mark.parametrize("q", [0.0, 0.05])
@pytest.mark.parametrize("linear", [True, False])
def test_a_mass_that_sticks_at_the_start(linear, q):
    """At 0, too, where its position stays rounding: that is no unit in which other derivatives could be lost."""
    state = {"q": [q, 0.4], "v": [0.0, 0.3]}
    mass = nsds.lagrangian_linear(M=M, K=K, C=DAMPING, **state) if linear else nsds.lagrangian(mass=M, fint=hardening, **state)
    friction = nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0, 0.0]]), nsds.dry_friction(1.0), on="mass")
    system = nsds.system(mass=mass, friction=friction)
    found = nsds.floquet(system, period=0.7)
    np.testing.assert_allclose(found["monodromy"], differences(system, "mass", 0.7, 1e-6), rtol=0, atol=2e-6)
    if linear:
        other = expm(0.7 * np.array([[0.0, 1.0], [-1.5, -0.3]]))
        np.testing.assert_allclose(found["monodromy"][1::2, 1::2], other, rtol=0, atol=1e-12)
    assert abs(found["multipliers"][-1]) < 1e-12
    assert found["n_untreated"] == 0


@pytest.mark.parametrize("e", [0.0, 0.5])
def test_a_contact_that_is_closed_at_the_start(e):
    """From a gap, or a speed, beside it the contact closes again: derivatives are one-sided, of a gap to the root of that."""
    mass = nsds.lagrangian_linear(M=M, K=K, C=DAMPING, fext=[-2.0, 0.0], q=[0.0, 0.4], v=[0.0, 0.3])
    floor = nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0, 0.0]]), nsds.newton_impact(e), on="mass")
    system = nsds.system(mass=mass, floor=floor)
    found = nsds.floquet(system, period=0.7)
    wanted = differences(system, "mass", 0.7, 1e-8, sides=(1,))
    np.testing.assert_allclose(found["monodromy"][:, 1:], wanted[:, 1:], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["monodromy"][:, 0], wanted[:, 0], rtol=0, atol=5e-4)
    np.testing.assert_allclose(abs(found["multipliers"]), [math.exp(-0.105)] * 2 + [0.0] * 2, rtol=0, atol=1e-12)


def test_a_joint_keeps_two_masses_together():
    """Multipliers of both as one, and 0 of what the joint does not allow."""
    mass = nsds.lagrangian_linear(M=np.diag([1.0, 3.0]), K=np.diag([2.0, 1.0]), C=np.diag([0.1, 0.3]), q=[0.2, 0.2], v=[0.1, 0.1])
    joint = nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0, -1.0]]), nsds.equality(), on="mass")
    found = nsds.floquet(nsds.system(mass=mass, joint=joint), period=1.3)
    together = np.linalg.eigvals(expm(1.3 * np.array([[0.0, 1.0], [-3.0 / 4.0, -0.4 / 4.0]])))
    np.testing.assert_allclose(np.sort(abs(found["multipliers"])), np.sort([0.0, 0.0, *abs(together)]), rtol=0, atol=1e-11)


def test_a_capacitor_that_a_source_keeps_through_a_diode_has_no_direction():
    """From anywhere in a period: where the diode conducts the voltage is that of the source, and where not it comes there."""
    circuit = nsds.circuit(["V1 in 0 5", "D1 in out DX", "C1 out 0 100u", "R1 out 0 100", "L1 out far 1m", "R2 far 0 2", ".model DX D"])
    circuit["circuit"]["x"] = np.where(circuit["circuit"]["x"] == 0.0, 1.0, circuit["circuit"]["x"])
    states = circuit["names"]["state_names"].item().decode().split()
    circuit["circuit"]["x"][states.index("C1")] = 5.0
    found = nsds.floquet(circuit, period=1e-3)
    np.testing.assert_allclose(found["multipliers"], [math.exp(-2.0), 0.0], rtol=0, atol=1e-12)


def test_a_surface_to_which_lambda_does_not_lead_back_is_counted():
    """``x'' = lambda`` kept at x = x' = 0 by a relay: states beside it circle it, and none comes back."""
    relation = nsds.first_order_linear_relation([[1.0, 0.0]], [[0.0], [1.0]])
    part = nsds.first_order_linear([[0.0, 1.0], [0.0, 0.0]], x=[0.0, 0.0])
    system = nsds.system(part=part, switch=nsds.interaction(relation, nsds.relay(-1.0, 1.0), on="part"))
    assert nsds.floquet(system, period=1.0)["n_untreated"] == 1
