"""Relays with hysteresis and feedback that amplifies: of several solutions a run goes on with that of the branch it is on."""

import contextlib
import itertools
import math
import warnings

import numpy as np
import pytest

import nsds

BY = {"linear": False, "by a function": True}
SCHEMES = {"euler_moreau": nsds.euler_moreau, "event_driven": nsds.event_driven}
PERIOD = 2 * math.log(2.5 / 1.5)


def rate(t, x, z, out):
    for i in range(x.size):
        out[i] = -z[0] * x[i]


def output(t, x, lam, z, out):
    m = lam.size
    for i in range(m):
        out[i] = x[i]
        for j in range(m):
            out[i] += z[i * m + j] * lam[j]


def heat(t, lam, z, out):
    m = lam.size
    for i in range(m):
        out[i] = z[m * m] * lam[i]


def plant(W, x, lam, is_function, decay=1.0, gain=2.0):
    """``x' = -decay x + gain lambda``, ``y = x + W lambda`` and relays between -1 and 1, which begin at lam."""
    W, x = np.atleast_2d(np.asarray(W, float)), np.atleast_1d(np.asarray(x, float))
    m = x.size
    if is_function:
        relation = nsds.type2_relation(output, heat, m=m, z=np.append(W.ravel(), gain))
        system = nsds.system(
            plant=nsds.first_order(rate, x=x, z=[decay]), switches=nsds.interaction(relation, nsds.relay(-1, 1), on="plant")
        )
    else:
        eye = np.eye(m)
        system = nsds.linear_complementarity_system(A=-decay * eye, B=gain * eye, C=eye, D=W, x=x, law=nsds.relay(-1, 1))
    system["switches"]["lambda"] = lam if m > 1 else np.ravel(lam)[0]
    return system


def multipliers(rows):
    return rows["switches"]["lambda"].reshape(len(rows), -1)


def solutions(W, q):
    """All z in [-1, 1] with ``-(W z + q)`` in its normal cone, by enumeration: (solution, whether all are at their bounds)."""
    m, found = len(q), []
    for sides in itertools.product((-1, 0, 1), repeat=m):
        z, free = np.array(sides, float), [i for i in range(m) if sides[i] == 0]
        if free:
            block = W[np.ix_(free, free)]
            if abs(np.linalg.det(block)) < 1e-6:
                continue
            z[free] = np.linalg.solve(block, -(q + W @ z)[free])
        w = q + W @ z
        if all(abs(z[i]) <= 1 if s == 0 else s * w[i] <= 0 for i, s in enumerate(sides)):
            found.append((z, not free))
    return found


@pytest.mark.parametrize("is_function", BY.values(), ids=BY)
@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_solution_at_bounds_is_kept(m, is_function):
    """Whatever else solves the problem of a step: the branch that the record is on is left only where it ends."""
    rng = np.random.default_rng(m)
    several = 0
    for _ in range(12):
        W, q = rng.uniform(-1, 1, (m, m)) - 0.5 * np.eye(m), rng.uniform(-0.6, 0.6, m)
        at_bounds = [z for z, is_at in solutions(W, q) if is_at and abs(W @ z + q).min() > 1e-3]
        several += len(at_bounds) > 1
        for z in at_bounds:
            system = plant(W, q, z, is_function, decay=0.0, gain=0.0)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                rows = nsds.simulate(system, t_end=2.0, h=1.0)
            np.testing.assert_array_equal(multipliers(rows), [z, z, z])
    assert several > 2


@pytest.mark.parametrize("is_function", BY.values(), ids=BY)
def test_an_unstable_solution_is_left(is_function):
    """A latch of two that invert each other: between its two states it is in neither, and goes to that of the side it begins on."""
    latch = [[0.0, 1.0], [1.0, 0.0]]
    for lam, expected in (([0.2, -0.1], [1, -1]), ([-0.2, 0.3], [-1, 1]), ([1.0, -1.0], [1, -1]), ([-1.0, 1.0], [-1, 1])):
        with pytest.warns(RuntimeWarning, match="either bound") if max(np.abs(lam)) < 1 else contextlib.nullcontext():
            rows = nsds.simulate(plant(latch, [0.0, 0.0], lam, is_function, decay=0.0, gain=0.0), t_end=3.0, h=1.0)
        np.testing.assert_array_equal(multipliers(rows)[1:], [expected] * 3)


@pytest.mark.parametrize("is_function", BY.values(), ids=BY)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("x", [0.0, 0.01, 0.2, -0.3])
def test_a_thermostat_is_on_or_off_and_an_open_start_is_said(x, scheme, is_function):
    """``|u| = 1`` from the first step on, and x swings with its period; lambda = 0 does not say how it begins, and 1 or -1 does."""
    h = 1e-3 if scheme == "euler_moreau" else 0.05
    system = plant(-0.5, x, 0.0, is_function)
    with pytest.warns(RuntimeWarning, match="row 0 of interaction 'switches' may begin at either bound"):
        rows = nsds.simulate(system, t_end=6.0, h=h, scheme=SCHEMES[scheme]())
    u, t = multipliers(rows)[1:, 0], rows["t"][1:]
    assert set(u) == {-1.0, 1.0}
    ups = t[1:][np.diff(u) > 1]
    assert abs(np.diff(ups).mean() / PERIOD - 1) < (0.01 if scheme == "euler_moreau" else 1e-9)
    for branch in (-1.0, 1.0):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rows = nsds.simulate(plant(-0.5, x, branch, is_function), t_end=h, h=h, scheme=SCHEMES[scheme]())
        assert multipliers(rows)[1, 0] == branch


@pytest.mark.parametrize("is_function", BY.values(), ids=BY)
def test_steps_one_by_one_say_an_open_start(is_function):
    """Once for each start: of the first step, of one from a record that was changed, of a member; not of steps that go on."""
    said = "row 0 of interaction 'switches' may begin at either bound"
    system = plant(-0.5, 0.01, 0.0, is_function)
    with pytest.warns(RuntimeWarning, match=said):
        first = nsds.step(system, 1e-3)
    advance = nsds.stepper(system, 1e-3)
    with pytest.warns(RuntimeWarning, match=said):
        one = advance(system)
    assert abs(one["switches"]["lambda"]).item() == 1.0
    assert one.tobytes() == first.tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        two = advance(one)
        advance(two, 2000)
    two["switches"]["lambda"] = 0.0
    two["plant"]["x"] = 0.1
    with pytest.warns(RuntimeWarning, match=said):
        advance(two)
    members = np.stack([plant(-0.5, 0.01, lam, is_function) for lam in (1.0, 0.0)])
    with pytest.warns(RuntimeWarning, match=said + " of lambda|of member 1 may begin"):
        nsds.stepper(members, 1e-3)(members, 1500)


@pytest.mark.parametrize("is_function", BY.values(), ids=BY)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_any_row_of_a_thermostat_is_a_place_to_go_on_from(scheme, is_function):
    h = 1e-2 if scheme == "euler_moreau" else 0.05
    system = plant(-0.5, 1.0, -1.0, is_function)
    whole = nsds.simulate(system, t_end=3.0, h=h, scheme=SCHEMES[scheme]())
    u = multipliers(whole)[:, 0]
    for branch in (1.0, -1.0):
        k = next(i for i in range(20, len(whole)) if u[i] == branch and abs(whole["plant"]["x"][i, 0]) < 0.3 and whole["status"][i] == 0)
        half = nsds.simulate(nsds.restart(system, whole[k]), t_end=3.0, h=h, scheme=SCHEMES[scheme]())
        assert multipliers(half)[1, 0] == u[k + 1]
        assert abs(half["plant"]["x"][-1, 0] - whole["plant"]["x"][-1, 0]) < 1e-9


@pytest.mark.parametrize("is_function", BY.values(), ids=BY)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_switching_of_one_relay_leaves_the_others(scheme, is_function):
    """Three thermostats that have nothing to do with each other are in one system as they are alone."""
    h = 1e-2 if scheme == "euler_moreau" else 0.05
    starts, D = np.array([1.0, 0.1, -0.3]), np.array([-0.5, -0.5, -0.3])
    lam = np.array([-1.0, 1.0, -1.0])
    together = nsds.simulate(plant(np.diag(D), starts, lam, is_function), t_end=3.0, h=h, scheme=SCHEMES[scheme]())
    for i in range(3):
        alone = nsds.simulate(plant(D[i], starts[i], lam[i], is_function), t_end=3.0, h=h, scheme=SCHEMES[scheme]())
        on_grid = [rows[rows["status"] == 0] for rows in (together, alone)]
        x = [rows["plant"]["x"][:, k][np.unique(rows["t"], return_index=True)[1]] for rows, k in zip(on_grid, (i, 0), strict=True)]
        np.testing.assert_allclose(x[0], x[1], atol=1e-8)


def test_members_begin_on_branches_of_their_own():
    systems = np.stack([plant(-0.5, 0.1, branch, False) for branch in (-1.0, 1.0) * 8])
    rows = nsds.simulate(systems, t_end=0.5, h=1e-2)
    for m in range(16):
        np.testing.assert_array_equal(rows[m]["plant"]["x"], rows[m % 2]["plant"]["x"])
        assert rows["switches"]["lambda"].reshape(16, -1)[m, 1] == (-1.0, 1.0)[m % 2]


def heater_output(t, x, lam, z, out):
    out[0] = x[0] - 5 - lam[0]


def heater_rate(t, x, z, out):
    out[0] = -0.1 * x[0]


def heater(t, x, lam, z, out):
    out[0] = 5 * (1 + lam[0])


@pytest.mark.parametrize("h", [0.1, 1e-2, 1e-3])
@pytest.mark.parametrize("flow", ["auto", "radau"])
def test_a_heater_by_functions_switches_off_once(h, flow):
    """On until x = 6, at 10 ln(100 / 94), from where x decays: whatever the distance of rows, which the choice of modes does not see."""
    relation = nsds.first_order_relation(heater_output, heater, m=1)
    system = nsds.system(a=nsds.first_order(heater_rate, x=[0.0]), c=nsds.interaction(relation, nsds.relay(-1, 1), on="a"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = nsds.simulate(system, t_end=1.0, h=h, scheme=nsds.event_driven(flow=flow))
    assert (rows["status"] & nsds.status.SWITCHED != 0).sum() == 1
    assert abs(rows["a"]["x"][-1, 0] - 6 * math.exp(-0.1 * (1 - 10 * math.log(100 / 94)))) < 1e-6


SCHMITT = ["V1 in 0 SIN(0 10 1k)", "E1 out 0 TABLE {V(p,in)} = (0,-15) (0,15)", "R1 out p 10k", "R2 p 0 10k"]


@pytest.mark.parametrize(("scheme", "h"), [("euler_moreau", 1e-7), ("event_driven", 1e-5)])
@pytest.mark.parametrize("rail", [-15.0, 15.0])
def test_a_schmitt_trigger_begins_at_the_rail_of_its_record(rail, scheme, h):
    """It inverts, and leaves a rail where the input has come to half of it: 10 sin(2 pi 1000 t) = 7.5, at 1 / (2 pi 1000) asin(0.75)."""
    c = nsds.circuit(SCHMITT)
    c["devices"]["lambda"] = rail
    rows = nsds.simulate(c, t_end=1e-3, h=h, scheme=SCHEMES[scheme]())
    t, v = rows["t"][1:], nsds.circuits.voltage(c, rows, "out")[1:]
    np.testing.assert_allclose(abs(v), 15.0, atol=1e-9)
    assert v[0] == pytest.approx(rail)
    flips = t[1:][np.diff(np.sign(v)) != 0]
    up = math.asin(0.75) / (2e3 * math.pi)  # the input crosses 7.5 V, and half a period later -7.5 V
    expected = np.array([up, up + 5e-4]) if rail > 0 else np.array([up + 5e-4])
    np.testing.assert_allclose(flips, expected, atol=1.01 * h if scheme == "euler_moreau" else 1e-9)
