"""Orbits, tangent maps and sensitivities do not depend on the units of the states."""

import numpy as np
import pytest

import nsds

PERIOD = 2 * np.pi / 1.1


def forces(t, q, v, z, out):
    a, b = q[0] / z[0], q[1] / z[1]
    out[0] = z[0] * (0.2 * v[0] / z[0] + a + 0.5 * a**3 + 0.3 * (a - b))
    out[1] = z[1] * (0.2 * v[1] / z[1] + 2.0 * b + 0.3 * (b - a) + 0.1 * b**2)


def drive(t, z, out):
    out[0], out[1] = 0.6 * z[0] * np.cos(1.1 * t), 0.0


def oscillators(one, other):
    """Two masses, coupled, one of which strikes a stop; their coordinates in two units."""
    masses = nsds.lagrangian(mass=[1.0, 1.0], fint=forces, fext=drive, q=[0.1 * one, 0.2 * other], v=[0.0, 0.1 * other], z=[one, other])
    stop = nsds.lagrangian_linear_relation(H=[[-1.0, 0.0]], b=[0.3 * one])
    return nsds.system(masses=masses, stop=nsds.interaction(stop, nsds.newton_impact(0.7), on="masses"))


def in_units(matrix, one, other):
    units = np.array([one, other, one, other])
    return matrix / units[:, None] * units


@pytest.mark.parametrize("units", [(1e-6, 1e-6), (1e-9, 1e-9), (1e6, 1e6), (1e-6, 1e6)])
def test_tangent_maps_and_orbits_by_events(units):
    """Central differences of a micrometre in metres were as long as the motion; those of 1e-6 beside 1e6 lost all digits."""
    wanted, found = (nsds.floquet(oscillators(*each), period=PERIOD) for each in ((1.0, 1.0), units))
    np.testing.assert_allclose(in_units(found["monodromy"], *units), wanted["monodromy"], atol=1e-9)
    wanted, found = (nsds.orbit(oscillators(*each), period=PERIOD, settle=20) for each in ((1.0, 1.0), units))
    np.testing.assert_allclose(found["x"] / (*units, *units), wanted["x"], atol=1e-10)
    np.testing.assert_allclose(abs(found["multipliers"]), abs(wanted["multipliers"]), atol=1e-9)
    wanted, found = (nsds.sensitivity(oscillators(*each), t_end=4.0) for each in ((1.0, 1.0), units))
    np.testing.assert_allclose(in_units(found["by_state"], *units), wanted["by_state"], atol=1e-9)


@pytest.mark.parametrize("unit", [1e-6, 1e-9])
def test_tangent_maps_by_steps(unit):
    """What is active must not change within a difference that is longer than the motion."""
    wanted, found = (nsds.floquet(oscillators(each, each), period=PERIOD, h=PERIOD / 256) for each in (1.0, unit))
    assert found["n_untreated"] == wanted["n_untreated"] == 0
    np.testing.assert_allclose(in_units(found["monodromy"], unit, unit), wanted["monodromy"], atol=1e-6)


def test_a_small_state_beside_large_forces_keeps_its_long_differences():
    """Forces of order 1 that balance, and a speed of 1e-6: differences as short as that would leave noise of 1e-4 in the damping."""

    def balance(t, q, v, z, out):
        out[0] = 0.3 * v[0] + 9.81 * np.exp(q[0] - 1.0) - 9.81

    system = nsds.system(mass=nsds.lagrangian(mass=[1.0], fint=balance, q=[1.0], v=[1e-6]))
    found = nsds.floquet(system, period=1.0)
    assert np.linalg.det(found["monodromy"]) == pytest.approx(np.exp(-0.3), rel=1e-8)
    assert found["monodromy"].trace() == pytest.approx(2 * np.exp(-0.15) * np.cos(np.sqrt(9.81 - 0.15**2)), rel=1e-6)


def springs(t, q, v, z, out):
    a, b = q[0] / z[0], q[1] / z[1]
    out[0] = z[0] * (a + 0.5 * a**3 + 0.3 * (a - b) - 1.0)
    out[1] = z[1] * (2.0 * b + 0.3 * (b - a) + 0.1 * b**2)


@pytest.mark.parametrize("row", [None, 0, 1])
def test_each_coordinate_of_an_equilibrium_is_in_balance(row):
    """A part whose coordinates are counted in two units: what is left of one force is not small beside the other, nor at a stop."""
    found = []
    for one, other in ((1.0, 1.0), (1e6, 1e-6), (1e-6, 1e6), (1e3, 1e-3)):
        units = np.array([one, other])
        parts = {"masses": nsds.lagrangian(mass=[1.0, 1.0], fint=springs, q=[0.1, 0.2] * units, v=[0.0, 0.0], z=units)}
        if row is not None:
            stop = nsds.lagrangian_linear_relation(H=-np.eye(2)[[row]], b=[(0.15, 0.25)[row] * units[row]])
            parts["stop"] = nsds.interaction(stop, nsds.newton_impact(0.7), on="masses")
        found.append(nsds.equilibrium(nsds.system(**parts))["masses"]["q"] / units)
    np.testing.assert_allclose(found, [found[0]] * 4, rtol=1e-9)
