"""Derivatives of event-driven motions through impacts and friction, orbits, branches, exponents and diagrams of systems.

Models and closed forms are those of the cases impact_oscillator_period_n, den_hartog_response, lyapunov_impact_oscillator and
sensitivity_bouncing_ball of the reference collection.
"""

import math
from contextlib import closing

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq, root

import nsds
from nsds.analysis.maps import section_of
from nsds.schemes.run import preparation
from tests.analysis.models import (
    PERIOD,
    C,
    R,
    buck,
    den_hartog,
    duffing,
    free_motion,
    friction_oscillator,
    impact_oscillator,
    self_excited,
    single_impact_orbit,
)


@pytest.mark.parametrize(("omega", "n", "sigma", "r"), [(2.8, 1, 0.0, 0.8), (5.0, 2, 0.0, 0.8), (1.3, 1, 0.3, 0.5)])
def test_single_impact_orbits(omega, n, sigma, r):
    """State, trace and determinant: the sign of the lower left entry of a saltation matrix is seen by the trace alone."""
    _, phase, state, trace, det = single_impact_orbit(0.05, omega, r, n, sigma, 0.4)
    start = impact_oscillator(0.05, omega, r, sigma, *(state + np.array([1e-3, -2e-3])), phase)
    found = nsds.orbit(start, period=2 * math.pi / omega, n_periods=n)
    np.testing.assert_allclose(found["x"], state, atol=1e-12)
    assert found["n_impacts"] == 1
    assert found["residual"] < 1e-11
    np.testing.assert_allclose([found["monodromy"].trace(), np.linalg.det(found["monodromy"])], [trace, det], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(np.sum(found["multipliers"]), trace, rtol=1e-10, atol=1e-11)
    assert abs(found["log_det"] - math.log(abs(det))) < 1e-12


def test_period_doubling_of_a_single_impact_orbit():
    """The frequency of the closed form; on the way the orbit remains that of the closed form."""
    _, phase, state, _, _ = single_impact_orbit(0.05, 2.67, 0.8, 1, 0.0, 0.4)
    start = impact_oscillator(0.05, 2.67, 0.8, 0.0, *state, phase)
    branch = nsds.continue_orbit(start, parameter="mass.z[0]", until=2.65, period=lambda omega: 2 * math.pi / omega, step=0.2)
    (doubling,) = branch[branch["kind"] == "period_doubling"]
    assert abs(doubling["parameter"] - 2.6588845466848356) < 1e-10
    for row in branch:
        _, _, _, trace, _ = single_impact_orbit(0.05, row["parameter"], 0.8, 1, 0.0, 0.4)
        assert abs(row["monodromy"].trace() - trace) < 1e-10


@pytest.mark.parametrize(("zeta", "omega"), [(0.1, 2.2), (0.05, 1.5)])
def test_a_branch_without_impacts_ends_where_a_contact_grazes(zeta, omega):
    """Where its amplitude is the gap."""
    response = 1.0 / (1.0 - omega**2 + 2j * zeta * omega)
    start = impact_oscillator(zeta, omega, 0.5, 1.3 * abs(response), response.real, -omega * response.imag)
    branch = nsds.continue_orbit(start, parameter="stop.b", until=0.5 * abs(response), period=2 * math.pi / omega)
    assert branch["kind"][-1] == "grazing"
    assert branch["n_impacts"][-1] == 0
    assert abs(branch["parameter"][-1] - abs(response)) < 1e-11


@pytest.mark.parametrize(("zeta", "omega", "e", "until"), [(0.1, 2.2, 0.5, 0.475), (0.05, 2.7, 0.8, 1.77)])
def test_a_branch_with_impacts_ends_where_a_contact_grazes(zeta, omega, e, until):
    """One impact a period, until its speed is none: at the same gap."""
    _, phase, state, *_ = single_impact_orbit(zeta, omega, e, 1, 0.0, 0.37)
    start = impact_oscillator(zeta, omega, e, 0.0, *state, phase)
    branch = nsds.continue_orbit(start, parameter="stop.b", until=until, period=2 * math.pi / omega, max_points=200)
    assert branch["kind"][-1] == "grazing"
    assert branch["slowest"][-1] == 0.0
    assert abs(branch["parameter"][-1] - 1.0 / math.hypot(1.0 - omega**2, 2.0 * zeta * omega)) < 1e-8


def test_the_branch_that_leaves_a_single_impact_orbit():
    """Two impacts in two periods of the drive, from the doubling on; past it the single-impact orbit is unstable and this one attracts."""
    _, phase, state, *_ = single_impact_orbit(0.05, 2.7, 0.8, 1, 0.0, 0.37)
    start = impact_oscillator(0.05, 2.7, 0.8, 0.0, *state, phase)
    period = lambda omega: 2 * math.pi / omega  # noqa: E731
    rows = nsds.continue_orbit(start, parameter="mass.z[0]", until=2.6, period=period, switch=1)
    first, doubled = rows[rows["branch"] == 0], rows[rows["branch"] == 1]
    assert abs(doubled["parameter"][0] - 2.6588845466848356) < 1e-10
    assert list(doubled["kind"][[0, -1]]) == ["leaves", "until"]
    assert (first["n_impacts"] == 1).all()
    assert (doubled["n_impacts"] == 2).all()
    assert doubled["residual"].max() < 1e-9
    last = impact_oscillator(0.05, doubled["parameter"][-1], 0.8, 0.0, *doubled["x"][-1], phase)
    once = nsds.simulate(last, t_end=period(last["mass"]["z"][0]), h=period(last["mass"]["z"][0]), scheme=nsds.event_driven())[-1]
    assert abs(once["mass"]["q"][0] - doubled["x"][-1, 0]) > 1e-3  # it does not close after one period
    assert nsds.plotting.branch(rows).get_legend() is not None


@pytest.mark.parametrize(("f", "omega"), [(0.1, 0.8), (0.3, 1.2), (0.5, 2.0)])
def test_multipliers_of_an_oscillator_with_dry_friction(f, omega):
    """The map of a period is the square of that of half a period with the symmetry."""
    _, phase, state, trace, det = den_hartog(f, omega, 0.4)
    found = nsds.orbit(friction_oscillator(f, omega, *(state + 1e-3), phase), period=2 * math.pi / omega)
    np.testing.assert_allclose(found["x"], state, atol=1e-11)
    assert abs(found["monodromy"].trace() - (trace**2 - 2 * det)) < 1e-10
    assert abs(np.linalg.det(found["monodromy"]) - det**2) < 1e-10


@pytest.mark.parametrize(("omega", "f", "onset"), [(0.8, 0.79, 0.817406385710882739), (0.6, 0.5, 0.531512540169225788)])
def test_where_a_motion_begins_to_stick(omega, f, onset):
    """Where the force at the turning point is that of friction (Den Hartog 1931): beyond it one multiplier is 0."""
    _, phase, state, *_ = den_hartog(f, omega, 0.3)
    start = friction_oscillator(f, omega, *state, phase)
    rows = nsds.continue_orbit(start, parameter="friction.limit", until=f + 0.04, period=2 * math.pi / omega, step=0.2)
    (stick,) = rows[rows["kind"] == "stick"]
    assert abs(stick["parameter"] - onset) < 2e-9
    assert abs(rows["multipliers"][-1, 1]) < 1e-12
    assert rows["n_events"][-1] == rows["n_events"][0] + 2


@pytest.mark.parametrize(
    ("f", "omega", "x", "v", "phase"),
    [(0.938058528147625, 0.5, 0.0, 0.0, -2.558622568016208), (0.978564940674796, 0.3, 0.22679192136686033, 0.1303148745334699, 0.0),
     (0.8266700526894071, 0.8, 0.0, 0.0, -2.522690633917592)],
)  # fmt: skip
def test_an_orbit_that_sticks_is_found_beyond_kinks(f, omega, x, v, phase):
    """The map of a period has a kink where a motion begins to stick, at which no Newton step lessens the residual.

    Of two motions beside each other friction lets none go away (Shaw 1986), so that there is one orbit.
    """
    start, period = friction_oscillator(f, omega, x, v, phase), 2 * math.pi / omega
    found = nsds.orbit(start, period=period)
    assert found["residual"] < 1e-11
    settled = nsds.simulate(start, t_end=200 * period, h=period, scheme=nsds.event_driven())["mass"][-1]
    np.testing.assert_allclose(found["x"], [settled["q"][0], settled["v"][0]], rtol=0, atol=1e-8)


def force(t, z, out):
    out[1] = z[2] * math.cos(z[0] * t + z[1])


@pytest.mark.parametrize(("omega", "f", "onset"), [(0.8, 0.79, 0.817406385710882739), (0.6, 0.5, 0.531512540169225788)])
def test_where_a_motion_begins_to_slide(omega, f, onset):
    """The same oscillator with a relay for its friction: it slides where that sticks, as the drive falls to f / onset."""
    _, phase, state, *_ = den_hartog(f, omega, 0.3)
    start = nsds.system(
        plant=nsds.first_order_linear([[0.0, 1.0], [-1.0, 0.0]], b=force, x=state, z=[omega, phase, 1.0]),
        friction=nsds.interaction(nsds.first_order_linear_relation(C=[[0.0, 1.0]], B=[[0.0], [1.0]]), nsds.relay(-f, f), on="plant"),
    )
    rows = nsds.continue_orbit(start, parameter="plant.z[2]", until=f / (f + 0.04), period=2 * math.pi / omega, step=0.2)
    (slides,) = rows[rows["kind"] == "sliding"]
    assert abs(slides["parameter"] - f / onset) < 2e-9
    assert abs(rows["multipliers"][-1, 1]) < 1e-12
    assert rows["n_events"][-1] == rows["n_events"][0] + 2


def vivid(v, phase, gap, omega, zeta, e):
    """What a flight of one period from an impact of this speed and phase ends with: (displacement beyond the stop, change of the speed).

    "Velocity into variation in displacement" (Ghosh and Simpson 2025): no impact is looked for, so that it is smooth at speed 0 and beyond.
    """
    x, end = free_motion(zeta, omega, phase, gap, -e * v, 2 * math.pi / omega)
    return np.array([x - gap, end - v])


def test_branches_to_a_grazing_are_zeros_of_a_map_from_speeds():
    """By Newton's method from one speed to the next, down to none, where the gap is the amplitude of the motion without impacts."""
    zeta, omega, e = 0.1, 2.2, 0.5
    _, phase, state, *_ = single_impact_orbit(zeta, omega, e, 1, 0.0, 0.37)
    start, at_impact = impact_oscillator(zeta, omega, e, 0.0, *state, phase), phase - 0.37 * 2 * math.pi
    rows = nsds.continue_orbit(start, parameter="stop.b", until=0.475, period=2 * math.pi / omega, max_points=200)
    unknown = np.array([at_impact, 0.0])
    for speed, gap in zip(rows["slowest"], rows["parameter"], strict=True):
        unknown = root(lambda u, speed=speed: vivid(speed, *u, omega, zeta, e), unknown, tol=1e-13).x
        assert abs(unknown[1] - gap) < 1e-8
    assert rows["kind"][-1] == "grazing"
    virtual = root(lambda u: vivid(-0.1, *u, omega, zeta, e), unknown, tol=1e-13)
    assert virtual.success  # at a speed that no impact has: the other side of the grazing


def test_exponents_of_a_chaotic_impact_oscillator():
    """Their sum is ``-2 zeta + 2 ln r`` times the rate of impacts, to rounding; the largest is 0.1578."""
    found = nsds.lyapunov(impact_oscillator(0.05, 2.8, 0.8), period=2 * math.pi / 2.8, n_periods=3000)
    rate = found["n_impacts"] / found["time"]
    assert abs(found["exponents"].sum() + 0.1 - 2 * math.log(0.8) * rate) < 1e-11
    assert abs(found["sum_error"]) < 1e-11
    assert abs(found["exponents"][0] - 0.1578) < 5 * found["errors"][0]
    assert abs(rate - 0.4892) < 0.02
    assert found["n_untreated"] == 0 == found["status"]


def test_a_contact_lets_go_once_however_late():
    """Where the drive no longer presses it on the stop: there the acceleration is nothing but the rounding of the time."""
    rng, n = np.random.default_rng(0), 2000
    systems = np.repeat(impact_oscillator(0.03, 2.82, 0.75, x=0.0), n)
    systems["t"] = (0.5 * math.pi + 2 * math.pi * rng.integers(0, 3000, n)) / 2.82 - 10.0 ** rng.uniform(-3, -0.3, n)
    found = nsds.lyapunov(systems, period=0.6, n_periods=1, transient=0)
    assert (found["status"] == 0).all()
    assert (found["n_events"] == 1).all()


def test_exponents_of_an_ensemble_are_those_of_its_members():
    one = impact_oscillator(0.05, 2.8, 0.8)
    both = np.repeat(one, 2)
    both["mass"]["z"][1, 0] = 2.6
    found = nsds.lyapunov(both, period=2 * math.pi / np.array([2.8, 2.6]), n_periods=200)
    alone = nsds.lyapunov(one, period=2 * math.pi / 2.8, n_periods=200)
    assert (found[0]["exponents"] == alone["exponents"]).all()
    assert abs(found[1]["exponents"][0] - found[1]["exponents"][1]) < 0.01  # a stable orbit with complex multipliers


def test_sensitivities_of_a_bouncing_ball():
    """Through four impacts, by the state, e and g; numbers of the case."""
    ball = nsds.system(
        ball=nsds.lagrangian_linear(M=[[1.0]], fext=[-9.81], q=[1.0], v=[0.3]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.8), on="ball"),
    )
    found = nsds.sensitivity(ball, t_end=2.5, parameters=["floor.e", "ball.fext[0]"], objective=lambda x: x[0] ** 2, rows=1)
    np.testing.assert_allclose(found["x"], [0.148004892454816426, -0.634770260516749262], atol=1e-13)
    by_state = [[0.927507130947831, 0.09307058101947998], [11.74125589773367, 1.359059813386351]]
    by_parameters = [[4.870671745101632, 0.08230615828734542], [49.2262246596263, 1.303133955378831]]
    np.testing.assert_allclose(found["by_state"], by_state, atol=1e-12)
    np.testing.assert_allclose(found["by_parameters"], by_parameters, atol=1e-9)
    slope = 2 * found["x"][0] * np.append(by_state[0], by_parameters[0])
    np.testing.assert_allclose(found["gradient"], slope, atol=1e-9)
    assert found["n_impacts"] == 4
    assert found["n_untreated"] == 0


def test_sensitivities_of_a_nonlinear_motion_are_those_of_differences():
    """Through two impacts; the derivatives converge with the fourth power of the distance of rows."""
    exact = nsds.event_driven(rtol=1e-12, atol=1e-14)
    run = lambda rows=1, **start: nsds.sensitivity(duffing(**start), t_end=9.0, parameters=["mass.z[0]"], rows=rows, scheme=exact)  # noqa: E731
    wanted = []
    for name, value in (("x", 0.1), ("v", 0.3), ("stiffness", 0.5)):
        ends = [run(**{name: value + k * 1e-3})["x"] for k in (-2, -1, 1, 2)]
        wanted.append((8 * (ends[2] - ends[1]) - ends[3] + ends[0]) / 12e-3)
    errors = []
    for rows in (64, 128):
        found = run(rows)
        errors.append(abs(np.column_stack([found["by_state"], found["by_parameters"]]) - np.transpose(wanted)).max())
    assert found["n_impacts"] == 2
    assert errors[1] < 1e-5
    assert errors[0] / errors[1] > 10


def test_diagram_of_an_impact_oscillator():
    """One impact a period at omega = 2.65, two periods past the doubling at 2.6589, from impacts as from periods."""
    start, period = impact_oscillator(0.05, 2.7, 0.8, x=-0.5), lambda omega: 2 * math.pi / omega
    vary = {"mass.z[0]": [2.7, 2.65]}
    rows = nsds.sweep(start, vary=vary, period=period, direction=1, transient=500, keep=8)
    assert rows["n_periods"].tolist() == [[2, 1]]
    assert rows["n_impacts"].tolist() == [[2, 1]]
    impacts = nsds.sweep(start, vary=vary, period=period, direction=1, record="impact", transient=500, keep=8)
    assert impacts["n_periods"].tolist() == [[2, 1]]
    v, *_ = single_impact_orbit(0.05, 2.65, 0.8, 1, 0.0, 0.0)
    np.testing.assert_allclose(impacts["x"][0, 1, :, 1], v, atol=1e-6)
    np.testing.assert_allclose(impacts["x_after"][0, 1, :, 1], -0.8 * v, atol=1e-6)
    at_once = nsds.sweep(start, vary=vary, period=period, direction=None, transient=500, keep=8)
    assert (at_once["x"][0] == rows["x"][0, 0]).all()


def test_what_a_call_has_prepared_serves_the_next_with_the_same_bits():
    """Also where it has varied a number of which copies are prepared, or of which more is."""
    period = 2 * math.pi / 2.7
    _, phase, state, *_ = single_impact_orbit(0.05, 2.7, 0.8, 1, 0.0, 0.37)

    def found(e, b=0.0, x=state):
        system = impact_oscillator(0.05, 2.7, e, b, *x, phase)
        return nsds.orbit(system, period=period)

    fresh = []
    for e, b in ((0.8, 0.0), (0.75, 0.0), (0.8, 0.01)):
        preparation._kept.clear()
        fresh.append(found(e, b).tobytes())
    branches = {}
    for parameter, until in (("stop.e", 0.75), ("stop.b", 0.01), ("mass.C[0][0]", 0.11)):
        start = impact_oscillator(0.05, 2.7, 0.8, 0.0, *state, phase)
        branches[parameter] = nsds.continue_orbit(start, parameter=parameter, until=until, period=period)[-1]
        assert [found(0.8).tobytes(), found(0.75).tobytes(), found(0.8, 0.01).tobytes()] == fresh
    for (parameter, row), wanted in zip(branches.items(), (found(0.75), found(0.8, 0.01)), strict=False):
        np.testing.assert_allclose(row["x"], wanted["x"], atol=1e-11, err_msg=parameter)
    for e, then in ((0.8, 0.75), (0.75, 0.8), (0.8, 0.75)):  # of one member, which is taken over each time
        with closing(section_of("test", impact_oscillator(0.05, 2.7, e, 0.0, *state, phase), period, 1, None, ["stop.e"])) as section:
            for value in (e, then):
                section.returns(state[None], [[value]])
        assert found(then).tobytes() == fresh[then < 0.8]
    trace, det = single_impact_orbit(0.055, 2.7, 0.8, 1, 0.0, 0.37)[3:]
    M = branches["mass.C[0][0]"]["monodromy"]
    np.testing.assert_allclose([M.trace(), np.linalg.det(M)], [trace, det], atol=1e-9)


def test_what_is_refused_is_named():
    system = impact_oscillator(0.05, 2.8, 0.8)
    with pytest.raises(ValueError, match=r"no orbit of 1 periods was found: the residual is .* largest multiplier"):
        nsds.orbit(system, period=2 * math.pi / 2.8, max_iter=2)
    with pytest.raises(ValueError, match=r"'mass' has .*z"):
        nsds.sweep(system, vary={"mass.omega": [1.0]}, period=1.0)
    with pytest.raises(ValueError, match=r"2 entries: say which, as 'mass.z\[0\]'"):
        nsds.continue_orbit(system, parameter="mass.z", until=3.0, period=1.0)
    with pytest.raises(ValueError, match="record is 'impact', and there is none"):
        nsds.sweep(
            impact_oscillator(0.05, 2.8, 0.8, sigma=9.0), vary={"mass.z[0]": [2.8]}, period=1.0, record="impact", transient=2, keep=3
        )
    with pytest.raises(ValueError, match=r"drifts to infinity|ends: "):
        nsds.orbit(impact_oscillator(-20.0, 2.8, 0.8, x=-1e3), period=30.0, settle=9)
    with pytest.raises(ValueError, match="drifts to infinity"):
        nsds.orbit(impact_oscillator(-0.5, 2.8, 0.8, sigma=1e30), period=2 * math.pi / 2.8, settle=60)
    with pytest.raises(ValueError, match=r"stop\.e must be in \[0, 1\], got 1\.2"):
        nsds.continue_orbit(system, parameter="stop.e", until=1.2, period=2 * math.pi / 2.8)
    with pytest.raises(ValueError, match="rigid bodies"):
        nsds.lyapunov(nsds.examples.dzhanibekov(), period=1.0)
    with pytest.raises(ValueError, match=r"scheme must be nsds.event_driven"):
        nsds.floquet(system, period=1.0, scheme=nsds.moreau_jean())


def test_motions_are_carried_along_by_their_tangent_maps():
    """Without forcing ``M x'(0) = x'(T)``, where a relay switches, too."""
    relay = nsds.examples.relay_oscillator()
    found = nsds.floquet(relay, period=7.0)
    end = nsds.simulate(relay, t_end=7.0, h=7.0, scheme=nsds.event_driven(), progress=False)["plant"]["x"][-1]
    A, switch = np.array([[0, 1, 0], [0, 0, 1], [0, -3, -2]]), np.array([0, 0, 1])
    np.testing.assert_allclose(found["monodromy"] @ (A @ found["x"] - switch), A @ end - switch * np.sign(end[0]), atol=1e-13)
    assert found["n_events"] == 3
    assert abs(found["log_det"] + 14) < 1e-12


def test_a_converter():
    """State, trace and determinant of the case buck_period_doubling of the collection, at 15 V."""
    exact = nsds.event_driven(time_events=[PERIOD], rtol=1e-12, atol=1e-14)
    found = nsds.floquet(buck(15.0, 11.864897927512084, 0.5633093936033488), period=PERIOD, scheme=exact)
    assert found["residual"] < 1e-9
    assert abs(found["monodromy"].trace() + 1.2261789538342707) < 1e-7
    assert abs(np.linalg.det(found["monodromy"]) - math.exp(-PERIOD / (R * C))) < 1e-9


def test_the_orbit_of_a_buck_converter():
    """Continuous conduction, the switch closed in the first half of a period: the monodromy matrix is that of R, L and C."""
    L, C_, R_, period = 100e-6, 47e-6, 10.0, 20e-6
    netlist = ["V1 in 0 12", "S1 in sw g 0 SWI", "D1 0 sw DI", "L1 sw out 100u", "C1 out 0 47u", "R1 out 0 10",
               "VG g 0 PULSE(0 1 0 0 0 10u 20u)", ".model DI D", ".model SWI SW(Vt=0.5)"]  # fmt: skip
    found = nsds.orbit(nsds.circuit([line.replace("100u", "100u IC=0.3") for line in netlist]), period=period)
    A = np.array([[-1 / (R_ * C_), 1 / C_], [-1 / L, 0.0]])  # of the voltage of C1 and the current of L1
    np.testing.assert_allclose(found["monodromy"], expm(A * period), rtol=1e-9, atol=1e-12)
    whole, half = expm(A * period), expm(A * period / 2)  # driven by 12 V in the first half
    driven = half @ (half - np.eye(2)) @ np.linalg.solve(A, [0.0, 12 / L])
    np.testing.assert_allclose(found["x"], np.linalg.solve(np.eye(2) - whole, driven), rtol=1e-9)


def test_orbits_whose_period_is_not_known():
    """Multipliers 1 and ``e² exp(0.2 T)``, the determinant; the period is that at which a flight brings back the speed."""
    found = nsds.orbit(self_excited(x=-1.3), period=5.0, free_period=True)
    T = float(found["period"])
    multipliers = found["multipliers"].real
    np.testing.assert_allclose(multipliers, sorted([1.0, 0.25 * math.exp(0.2 * T)], reverse=True), atol=1e-9)
    assert found["residual"] < 1e-10
    assert found["n_impacts"] == 1
    flight = expm(np.array([[0.0, 1.0], [-1.0, 0.2]]) * T)
    v = (1.0 - flight[0, 0]) / flight[0, 1]  # after an impact: from x = 1 to x = 1
    assert abs(-0.5 * (flight[1, 0] + flight[1, 1] * v) - v) < 1e-9


@pytest.mark.parametrize("off", [1e-3, 0.0])
@pytest.mark.parametrize("poles", [(-1.0, -1.0, -1.0), (-1.0, -2.0, -4.0)])
def test_a_relay_in_a_loop_oscillates_from_where_it_switches(poles, off):
    """``u = -sgn y`` in a loop of three lags, its start at a switch: Tsypkin's half period, and the multipliers of its saltation matrix."""
    A, B, C = np.diag(poles) + np.eye(3, k=-1), np.eye(3)[:, :1], np.eye(3)[2:]

    def switch(h):
        """The state where y rises through 0 after a half period of u = 1, of a motion that is odd from one half to the next."""
        return np.linalg.solve(np.eye(3) + expm(A * h), np.linalg.solve(A, (expm(A * h) - np.eye(3)) @ B))[:, 0]

    h = brentq(lambda h: switch(h)[2], 0.5, 8.0, xtol=1e-14)
    x = switch(h)
    loop = nsds.linear_complementarity_system(A=A, B=B, C=C, x=1.02 * x + off, law=nsds.relay(-1.0, 1.0))
    found = nsds.orbit(loop, period=2.04 * h, free_period=True)
    rate = A @ x + B[:, 0]
    half = (np.eye(3) - np.outer(rate, C) / (C @ rate)) @ expm(A * h)
    assert found["period"] == pytest.approx(2 * h, rel=1e-10)
    wanted = sorted([1.0, *sorted(abs(np.linalg.eigvals(half)) ** 2)[1:]])
    np.testing.assert_allclose(sorted(abs(found["multipliers"])), wanted, rtol=1e-6)


@pytest.mark.parametrize("settle", [0, 5])
def test_a_state_of_rest_is_no_cycle(settle):
    """Newton's method brings the period to where all returns, or the transient the state to rest, to which it returns after any time."""
    loop = nsds.system(loop=nsds.first_order_linear(A=[[-1.0, 2.0], [-2.0, -1.0]], b=[1.0, 0.0], x=[0.2 + 1e-7 * settle, 0.4]))
    with pytest.raises(ValueError, match=r"orbit: no orbit"):
        nsds.orbit(loop, period=3.0, free_period=True, settle=settle)


def push(t, z, out):
    out[0] = z[0] * np.sin(t) - 1.0


@pytest.mark.parametrize("e", [0.5, 0.8])
def test_a_ball_on_a_vibrating_table_doubles_and_folds_at_published_values(e):
    """One impact a period of ``A sin t``, with g = 1, in the frame of the table: Luck and Mehta (1993), Tufillaro (1992)."""
    fold = np.pi * (1 - e) / (1 + e)
    doubling = np.hypot(fold, 2 * (1 + e * e) / (1 + e) ** 2)
    A = 0.5 * (fold + doubling)
    impact = np.arccos(fold / A)
    flight = 2 * np.pi - impact
    q, v = A * np.sin(impact) + np.pi * flight - 0.5 * flight**2, np.pi - flight - A
    ball = nsds.lagrangian_linear([[1.0]], fext=push, q=[q], v=[v], z=[A])
    table = nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(e), on="ball")
    system = nsds.system(ball=ball, table=table)
    for kind, value, until in (("period_doubling", doubling, 1.05 * doubling), ("fold", fold, 0.95 * fold)):
        rows = nsds.continue_orbit(system, parameter="ball.z[0]", until=until, period=2 * np.pi)
        assert rows["parameter"][rows["kind"] == kind][0] == pytest.approx(value, rel=1e-9)


def test_basin_of_an_orbit():
    """Near the orbit with one impact, at the least."""
    _, phase, state, *_ = single_impact_orbit(0.05, 2.6, 0.8, 1, 0.0, 0.4)
    start = impact_oscillator(0.05, 2.6, 0.8, 0.0, *state, phase)
    grid = {"mass.q[0]": state[0] + np.array([-1e-2, 1e-2]), "mass.v[0]": state[1] + np.array([-1e-2, 0.0, 1e-2])}
    found = nsds.basins(start, grid=grid, period=2 * math.pi / 2.6, transient=500, keep=4)
    assert (found.labels == np.zeros((2, 3))).all()
    (orbit,) = found.attractors
    assert (orbit["n_periods"], orbit["fraction"]) == (1, 1)
    np.testing.assert_allclose(orbit["x"][0], state, atol=1e-6)


def test_doubling_and_corner_of_the_cam_follower():
    """Orbits with one impact a turn double their period at 739.31978 rpm, and fold at 673.23444 rpm, where the impact is at a corner.

    Both numbers follow from a harmonic motion between impacts, whose equations are solved for the phase; the cam's acceleration is the
    derivative of its velocity to 1e-6 only, so that they agree to 1e-9.
    """
    corner = 1.050328174371336 / (2 * math.pi)
    follower = nsds.examples.cam_follower(rpm=700.0, q=1.3279, v=-66.2068)
    settings = {"parameter": "follower.z[0]", "period": lambda rpm: 60 / rpm, "corners": [corner], "step": 0.08}
    up = nsds.continue_orbit(follower, until=745.0, **settings)
    (doubling,) = up[up["kind"] == "period_doubling"]
    assert abs(doubling["parameter"] - 739.3197803250873) < 1e-6
    down = nsds.continue_orbit(follower, until=650.0, **settings)
    assert down["kind"][-1] == "corner"
    assert abs(down["parameter"][-1] - 673.23444503) < 1e-6


def attraction(t, x, z, out):
    for i in range(3):
        ax = ay = 0.0
        for j in range(3):
            if j != i:
                dx, dy = x[2 * j] - x[2 * i], x[2 * j + 1] - x[2 * i + 1]
                cube = (dx * dx + dy * dy) ** 1.5
                ax += dx / cube
                ay += dy / cube
        out[2 * i], out[2 * i + 1] = x[6 + 2 * i], x[7 + 2 * i]
        out[6 + 2 * i], out[7 + 2 * i] = ax, ay


def test_an_orbit_among_those_that_its_symmetries_give():
    """The figure of eight of three bodies, which may move, turn and grow: its equations are singular."""
    x, v = np.array([0.97000436, -0.24308753]), np.array([-0.93240737, -0.86473146])
    system = nsds.system(bodies=nsds.first_order(f=attraction, x=np.concatenate([x, -x, np.zeros(2), -0.5 * v, -0.5 * v, v])))
    found = nsds.orbit(system, period=6.3259, free_period=True, scheme=nsds.event_driven(rtol=1e-12, atol=1e-14))
    assert found["period"] == pytest.approx(6.32591398, abs=2e-6)  # it scales with the size
    assert abs(abs(found["multipliers"]) - 1.0).max() <= 1e-3


def flight(t, x, z, out):
    """Of a satellite about the earth and the moon, in a frame that turns with them."""
    mu = z[0]
    a, b = ((x[0] + mu) ** 2 + x[1] ** 2) ** 1.5, ((x[0] - 1.0 + mu) ** 2 + x[1] ** 2) ** 1.5
    out[0], out[1] = x[2], x[3]
    out[2] = x[0] + 2.0 * x[3] - (1.0 - mu) * (x[0] + mu) / a - mu * (x[0] - 1.0 + mu) / b
    out[3] = x[1] - 2.0 * x[2] - (1.0 - mu) * x[1] / a - mu * x[1] / b


def test_an_orbit_that_is_not_found_is_refused_with_its_residual():
    """Arenstorf's, whose derivatives of 10^6 leave no step that leads on: no error of linear algebra."""
    system = nsds.system(craft=nsds.first_order(f=flight, x=[0.994, 0.0, 0.0, -2.00158510637908252], z=[0.012277471]))
    with pytest.raises(ValueError, match="the residual is"):
        nsds.orbit(system, period=17.0652165601579625, free_period=True)
