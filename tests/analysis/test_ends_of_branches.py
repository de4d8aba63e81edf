"""Branches end where they are told to, or with a kind that is true, and go on where an impact comes to the time of their section."""

import math

import numpy as np
import pytest

import nsds
from tests.analysis import models


def drive(t, z, out):
    out[0] = z[0] * np.cos(z[1] * t)


def rubbing(force, omega, limit):
    """A mass that a drive moves against dry friction."""
    return nsds.system(
        mass=nsds.lagrangian_linear(M=[1.0], K=[1.0], C=[0.1], fext=drive, q=[0.1], v=[0.0], z=[force, omega]),
        rubs=nsds.interaction(nsds.prescribed_velocity([0], 0.0), nsds.dry_friction(limit), on="mass"),
    )


@pytest.mark.parametrize(("omega", "limit", "until", "kind"), [(0.9, 0.5, 0.5, "rest"), (0.9, 0.5, 0.3, "rest"), (0.9, 0.4, 0.8, "until")])
def test_no_branch_passes_its_end(omega, limit, until, kind):
    """A drive below the limit of friction moves nothing: there orbits rest wherever friction holds the mass."""
    branch = nsds.continue_orbit(rubbing(0.9, omega, limit), parameter="mass.z[0]", until=until, period=2 * np.pi / omega)
    assert branch["kind"][-1] == kind
    assert branch["parameter"].min() >= max(until, limit) - 1e-9
    assert branch["parameter"][-1] == pytest.approx(max(until, limit), abs=1e-6)
    assert (branch["n_events"][:-1] > 0).all()


def test_a_branch_that_is_cut_short_says_so():
    branch = nsds.continue_orbit(rubbing(1.2, 0.9, 0.4), parameter="mass.z[0]", until=0.8, period=2 * np.pi / 0.9, max_points=4)
    assert len(branch) == 4
    assert branch["kind"][-1] == "max_points"


def test_a_branch_that_begins_at_rest_is_refused():
    system = rubbing(0.2, 0.9, 0.5)
    with pytest.raises(ValueError, match=r"continue_orbit: no branch begins .* friction holds"):
        nsds.continue_orbit(system, parameter="mass.z[0]", until=0.1, period=2 * np.pi / 0.9)


def relay_of_third_order():
    matrices = {"A": [[-1, 1, 0], [0, -1, 1], [0, 0, -1]], "B": [[0], [0], [1]], "C": [[1, 0, 0]]}
    return nsds.linear_complementarity_system(**matrices, x=[-0.1, 0.2, 0.7], law=nsds.relay(-1, 1)), 3.6, "switches.upper"


def excited_by_negative_damping():
    return models.self_excited(x=-1.3), 5.0, "stop.e"


@pytest.mark.parametrize("make", [relay_of_third_order, excited_by_negative_damping])
def test_cycles_that_nothing_drives_are_refused(make):
    """Their period changes with the parameter: over a fixed one the branch would slide along the cycle."""
    system, period, parameter = make()
    cycle = nsds.orbit(system, period=period, free_period=True)
    if "plant" in system.dtype.names:
        system["plant"]["x"] = cycle["x"]
    else:
        system["mass"]["q"], system["mass"]["v"] = cycle["x"]
    with pytest.raises(ValueError, match=r"continue_orbit: nothing drives the system.*free_period"):
        nsds.continue_orbit(system, parameter=parameter, until=0.9, period=float(cycle["period"]))


def gravity_of_a_shaken_frame(t, z, out):
    out[0] = -1.0 + z[0] * math.sin(t)


def ball_on_a_table(t, e, gamma):
    """One bounce a period, in the frame of the table, from the flight of the closed form."""
    phase = math.acos(math.pi * (1 - e) / (gamma * (1 + e)))
    s = (t - phase) % (2 * math.pi)
    q, v = gamma * math.sin(phase) + math.pi * s - s * s / 2 - gamma * math.sin(t), math.pi - s - gamma * math.cos(t)
    return nsds.system(
        t=t,
        ball=nsds.lagrangian_linear(M=[1.0], fext=gravity_of_a_shaken_frame, q=[q], v=[v], z=[gamma]),
        table=nsds.interaction(nsds.lagrangian_linear_relation([[1.0]]), nsds.newton_impact(e), on="ball"),
    )


@pytest.mark.parametrize(("e", "gamma", "times"), [(0.8, 0.8, (0.0, 1.0)), (0.6, 1.1, (0.0, 0.5))])
def test_a_branch_goes_on_where_its_impact_comes_to_the_section(e, gamma, times):
    """The fold at pi (1 - e) / (1 + e) has its impact at phase 0; rows are at the time of the system, whatever section found them."""
    fold = math.pi * (1 - e) / (1 + e)
    for t in times:
        system = ball_on_a_table(t, e, gamma)
        branch = nsds.continue_orbit(system, parameter="ball.z[0]", until=0.9 * fold, period=2 * math.pi)
        assert branch["kind"][branch["kind"] != ""].tolist() == ["fold", "until"]
        assert branch["parameter"][branch["kind"] == "fold"][0] == pytest.approx(fold, abs=1e-8)
        assert branch["parameter"][-1] == gamma
        assert (branch["n_impacts"] == 1).all()
        for row in branch[[0, len(branch) * 3 // 4, -1]]:
            system["ball"]["z"], system["ball"]["q"], system["ball"]["v"] = row["parameter"], row["x"][0], row["x"][1]
            again = nsds.floquet(system, period=2 * math.pi)
            assert again["residual"] < 1e-9
            np.testing.assert_allclose(again["monodromy"], row["monodromy"], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"parameter": "mass.q[0]"}, r"parameter must be no state, which an orbit has, got 'mass.q\[0\]'"),
        ({"parameter": "rubs.lambda"}, "parameter must be no state, which an orbit has, got 'rubs.lambda'"),
        ({"period": lambda: 7.0}, r"period must be a function period\(value\)"),
        ({"period": lambda value, other: 7.0}, r"period must be a function period\(value\)"),
        ({"period": lambda value: "a"}, r"period\(value\) must be"),
        ({"period": 1e-300}, "period must be at least"),
    ],
)
def test_what_is_bad_is_refused_by_name(given, answer):
    arguments = {"parameter": "mass.z[0]", "until": 0.8, "period": 2 * np.pi / 0.9} | given
    with pytest.raises((TypeError, ValueError), match=f"continue_orbit: {answer}"):
        nsds.continue_orbit(rubbing(1.2, 0.9, 0.4), **arguments)


def table_height(t, q, z, out):
    out[0] = q[0] - z[0] * math.sin(t)


def slope(t, q, z, out):
    out[0, 0] = 1.0


def sinking(t, q, z, out):
    out[0] = -z[0] * math.cos(t)


@pytest.mark.parametrize(
    ("e", "given", "tol"),
    [(0.8, {}, 1e-6), (0.8, {"h_t": sinking}, 1e-6), (0.7, {"H": slope}, 1e-6), (0.8, {"H": slope, "h_t": sinking}, 1e-9)],
)
def test_no_doubling_is_missed_where_derivatives_are_finite_differences(e, given, tol):
    """A bounce a period is unstable beyond hypot(pi (1 - e) / (1 + e), 2 (1 + e²) / (1 + e)²)."""
    gamma, right = 0.8 if e == 0.8 else 1.0, math.hypot(math.pi * (1 - e) / (1 + e), 2 * (1 + e * e) / (1 + e) ** 2)
    phase = math.acos(math.pi * (1 - e) / (gamma * (1 + e)))
    s = (-2.0 - phase) % (2 * math.pi)
    system = nsds.system(
        t=-2.0,
        ball=nsds.lagrangian_linear(M=[1.0], fext=[-1.0], q=[gamma * math.sin(phase) + math.pi * s - s * s / 2], v=[math.pi - s]),
        table=nsds.interaction(nsds.rheonomous(table_height, m=1, z=[gamma], **given), nsds.newton_impact(e), on="ball"),
    )
    branch = nsds.continue_orbit(system, parameter="table.z[0]", until=1.2, period=2 * math.pi)
    assert branch["kind"][branch["kind"] != ""].tolist() == ["period_doubling", "until"]
    assert branch["parameter"][branch["kind"] == "period_doubling"][0] == pytest.approx(right, abs=tol)


def of_frequency(t, z, out):
    out[0] = math.cos(0.8 * t)


@pytest.mark.parametrize(
    ("n", "t", "x"),
    [
        (1, -3.458722242204233, [-2.390009241997398, -0.046680938676132766]),
        (2, -3.7279827459156576, [-2.196396193302174, -0.779556258892792]),
    ],
)
def test_orbits_with_an_impact_in_several_periods_end_where_they_graze(n, t, x):
    """At the amplitude without a wall: beside it speeds go as the root of the distance, and so do differences by the parameter."""
    graze = 1.0 / math.hypot(0.36, 0.16)
    system = nsds.system(
        t=t,
        mass=nsds.lagrangian_linear(M=[[1.0]], C=[[0.2]], K=[[1.0]], fext=of_frequency, q=x[:1], v=x[1:]),
        wall=nsds.interaction(nsds.lagrangian_linear_relation([[-1.0]], b=[graze - 0.1]), nsds.newton_impact(0.8), on="mass"),
    )
    last = nsds.continue_orbit(system, parameter="wall.b", until=graze + 0.05, period=2.5 * math.pi, n_periods=n)[-1]
    assert last["kind"] == "grazing"
    assert last["parameter"] == pytest.approx(graze, abs=1e-8)
    assert last["residual"] < 1e-4
