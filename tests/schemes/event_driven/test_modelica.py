"""Clutches, brakes, gears, drives and thermostats of the Modelica Standard Library beside its published results.

Cases, equations and tolerances are those of the collection's ``case.md``; numbers are results of
github.com/modelica/MAP-LIB_ReferenceResults (v4.0.0, commit d6a2b9b2).
"""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsds
from tests.reference_modelica import compare, deviations, needs_collection, reference_of

reference = pytest.mark.reference
flows = pytest.mark.parametrize("flow", ["dopri5", "radau"])
ways = pytest.mark.parametrize("way", ["dopri5", "radau", "steps"])


def simulate(system, t_end, h, way, steps=100, **options):
    """Rows of distance h by a flow of the event-driven scheme, or by so many steps of Euler–Moreau each."""
    if way == "steps":
        return nsds.simulate(system, t_end=t_end, h=h / steps, save_every=steps, scheme=nsds.euler_moreau())
    return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.event_driven(flow=way, **options))


def changes(rows):
    """Times at which modes change."""
    bits = nsds.status.CLOSED | nsds.status.OPENED | nsds.status.SWITCHED
    return rows["t"][nsds.status.is_event(rows["status"]) & (rows["status"] & bits > 0)]


def inclusion(A, force, G, pieces, x, h, way="auto", steps=100):
    """(t, x) of ``x' = A x + force(t) + G lambda``, lambda against ``y = G^T x``; pieces: (end, lower, upper) of its bounds, in turn."""
    G, t, found = np.asarray(G, float), 0.0, []
    for end, lower, upper in pieces:
        rubs = nsds.interaction(nsds.first_order_linear_relation(C=G.T, B=G), nsds.relay(lower, upper), on="plant")
        system = nsds.system(t=t, plant=nsds.first_order_linear(A, x=x, b=force), rubs=rubs)
        rows = simulate(system, end, min(h, end - t), way, steps)
        found.append((rows["t"], rows["plant"]["x"]))
        t, x = end, rows["plant"]["x"][-1]
    return [np.concatenate(each) for each in zip(*found, strict=True)]


def wheels(n):
    """``phi' = w`` of n wheels: states phi_0, w_0, phi_1, w_1, ..."""
    return np.kron(np.eye(n), [[0.0, 1.0], [0.0, 0.0]])


def on(n, **factors):
    """Column of G of n wheels: factors of speeds by ``w0=1, w1=-1``."""
    column = np.zeros(2 * n)
    for name, factor in factors.items():
        column[2 * int(name[1:]) + 1] = factor
    return column


def no_force(t, z, out):
    out[:] = 0.0


def translational_brake(way="auto"):
    pieces = [(0.1, [0.0], [0.0]), (2.0, [-1.0], [1.0])]
    return inclusion(wheels(1), no_force, on(1, w0=1)[:, None], pieces, [0.0, 1.0], 0.01, way)


@reference
@needs_collection
@ways
def test_translational_brake(way):
    t, x = translational_brake(way)
    compare("translational_brake", t, {"s": x[:, 0], "v": x[:, 1]}, 1e-9 if way != "steps" else 1e-4)  # by steps of 1e-4 s


def test_a_brake_at_checkpoints():
    """Rest at 1.1 s and 0.6 m, as published."""
    t, x = translational_brake()
    at = np.searchsorted(t, [0.5 - 1e-9, 1.9 - 1e-9])
    np.testing.assert_allclose(x[at], [[0.42, 0.6], [0.6, 0.0]], rtol=0, atol=1e-9)


def sine_torques(t, z, out):
    out[:] = 0.0
    for k in (0, 1, 2, 4):
        out[2 * k + 1] = 10.0 * math.sin(2.0 * math.pi * t)


@reference
@needs_collection
@ways
def test_friction_elements(way):
    """The freewheel and the clutch beside it are one row, ``-c <= lambda``."""
    G = np.stack([on(6, w0=1), on(6, w1=1), on(6, w3=1, w2=-1), on(6, w4=1, w5=-1)], axis=1)
    pieces = [(t, np.array([-1.0, -c, -c, -c]), np.array([1.0, c, c, np.inf])) for t, c in ((0.5, 0.0), (1.1, 50.0))]
    h = 1e-4  # rows of both pieces lie on those of the reference
    t, x = inclusion(wheels(6), sine_torques, G, pieces, np.zeros(12), h, way, steps=20)
    columns = {f"{what}_{k}": x[:, 2 * k + (what == "w")] for what in ("phi", "w") for k in (0, 1, 2, 5)}
    for what, i in (("phi", 0), ("w", 1)):
        columns |= {f"{what}_clutch": x[:, 6 + i] - x[:, 4 + i], f"{what}_one_way": x[:, 8 + i] - x[:, 10 + i]}
    compare("friction_elements", t, columns, 3e-5)


def freewheel_torque(t, z, out):
    out[:] = 0.0
    out[1] = 10.0 * math.sin(6.0 * math.pi * t)


@reference
@needs_collection
@ways
def test_one_way_clutch_until_it_sticks(way):
    """From then on the clutch holds with 25 times what it slides with, which is another law."""
    pieces = [(0.3, [0.0], [np.inf]), (0.43, [-1.5], [np.inf])]
    t, x = inclusion(wheels(2), freewheel_torque, on(2, w1=1, w0=-1)[:, None], pieces, [0, -0.5, 0, 0], 2.5e-3, way)
    columns = {"phi_in": x[:, 0], "w_in": x[:, 1], "phi_clutch": x[:, 2] - x[:, 0], "w_clutch": x[:, 3] - x[:, 1]}
    compare("one_way_clutch", t, columns, 2e-4, until=0.43)


_END, _CRUISE = math.radians(120.0) / 3.0 + 0.3, math.radians(120.0) / 3.0
_L, _C = 250.0 / 6600.0, 0.0024 / 5500.0


def robot_reference(t, z, out):
    """What q and its rate put into x', and through the wanted current into v_c'."""
    if t < 0.3:
        q, rate = 5.0 * t * t, 10.0 * t
    elif t < z[0]:
        q, rate = 0.45 + 3.0 * (t - 0.3), 3.0
    elif t < z[1]:
        q, rate = z[2] - 5.0 * (z[1] - t) ** 2, 10.0 * (z[1] - t)
    else:
        q, rate = z[2], 0.0
    u = 5.0 * 210.0 * q + 210.0 * rate
    out[:] = 0.0
    out[0] = u / 0.05
    out[5] = -0.5 * u / z[3]


@reference
@needs_collection
@ways
def test_robot_one_axis(way):
    """States x, phi_m, w_m, phi, w, v_c, i."""
    A, c = np.zeros((7, 7)), 10.0 * _C
    A[0, [1, 2]] = -5.0 / 0.05, -1.0 / 0.05
    A[1, 2] = A[3, 4] = 1.0
    gear = np.array([0, -8.0, -0.01, 210.0 * 8.0, 2.1, 0, 0])
    A[2] = gear / 0.0013
    A[2, [2, 6]] += np.array([-0.1 / 130.0, 1.1616]) / 0.0013
    A[4] = -210.0 * gear / 19.5
    A[5, [6, 0, 1, 2]] = 1.0 / c, -0.5 / c, 0.5 * 5.0 / c, 0.5 / c
    A[6, [5, 6, 2]] = -5.0 / _L, -250.0 / _L, -1.1616 / _L
    B, C = np.zeros((7, 1)), np.zeros((1, 7))
    B[2, 0], C[0, 2] = 1.0 / 0.0013, 1.0
    system = nsds.system(
        plant=nsds.first_order_linear(A, x=np.zeros(7), b=robot_reference, z=[_CRUISE, _END, math.radians(120.0), c]),
        rubs=nsds.interaction(nsds.first_order_linear_relation(C=C, B=B, D=None), nsds.relay(-0.5, 0.5), on="plant"),
    )
    rows = simulate(system, 1.4976, 3.2e-3, way, time_events=[0.3, _CRUISE, _END])
    x = rows["plant"]["x"]
    columns = {"x_pi": x[:, 0], "phi_spring": 210 * x[:, 3] - x[:, 1], "w_spring": 210 * x[:, 4] - x[:, 2], "phi": x[:, 3], "w": x[:, 4],
               "v_c": x[:, 5], "i": x[:, 6]}  # fmt: skip
    compare("robot_one_axis", rows["t"], columns, 5e-6 if way != "steps" else 6e-3)  # a third of the shortest time constant a step
    if way != "steps":
        assert abs(changes(rows) - reference_of("robot_one_axis")["instants"][:, None]).min(axis=1).max() <= 1e-6


def gaps(t, x, z, out):
    """s, v of a mass between springs that pull and push, and of one between springs that push alone."""
    out[0], out[1] = x[1], -20.0 * x[0] - 3.0 * x[1]
    out[2], out[3] = x[3], 0.0
    for sense in (1.0, -1.0):
        spring = 10.0 * max(1.5 - (2.0 - sense * x[2]), 0.0)
        out[3] -= sense * (spring + min(max(1.5 * sense * x[3], -spring), spring))


@reference
@needs_collection
@ways
def test_elasto_gap(way):
    rows = simulate(nsds.system(masses=nsds.first_order(gaps, x=[2.0, 0, 2.0, 0])), 5.0, 0.01, way)
    x = rows["masses"]["x"]
    compare(
        "elasto_gap", rows["t"], {"s_1": 2 - x[:, 0], "v_1": x[:, 1], "s_2": 2 - x[:, 2], "v_2": x[:, 3]}, 2e-5 if way != "steps" else 1e-3
    )  # by steps of 1e-4 s


def wheel_torque(t, z, out):
    out[:] = 0.0
    out[1] = 10.0 * math.sin(10.0 * math.pi * t)


def clutch_torques(t, z, out):
    """Bounds of the three clutches."""
    out[1, 0] = 10.0 * max(math.cos(0.4 * math.pi * t), 0.0)
    out[1, 1], out[1, 2] = 10.0 if t >= 0.4 else 0.0, 10.0 if t >= 0.9 else 0.0
    out[0, 0], out[0, 1], out[0, 2] = -out[1, 0], -out[1, 1], -out[1, 2]


def coupled_clutches():
    G = np.stack([on(4, w1=1, w0=-1), on(4, w2=1, w1=-1), on(4, w3=1, w2=-1)], axis=1)
    engaged = nsds.first_order_linear_relation(C=G.T, B=G, bounds=clutch_torques)
    wheels_in_a_row = nsds.first_order_linear(wheels(4), b=wheel_torque, x=[0.0, 10.0, 0, 0, 0, 0, 0, 0])
    return nsds.system(plant=wheels_in_a_row, clutches=nsds.interaction(engaged, nsds.relay(), on="plant"))


def of_clutches(x):
    columns = {"phi_1": x[:, 0], "w_1": x[:, 1]}
    for k in (1, 2, 3):
        columns |= {f"{what}_clutch_{k}": x[:, 2 * k + i] - x[:, 2 * k - 2 + i] for i, what in enumerate(("phi", "w"))}
    return columns


def push_of_chain(t, x, z, out):
    """Rates of s_1, v_1, ..., s_4, v_4; the friction of mass 4 is 3 N at rest, of which some is lost with its speed."""
    compressed = 100.0 * max(0.03 - x[0], 0.0)
    contact = compressed - min(max(20.0 * x[1], -compressed), compressed)
    first = 100.0 * (x[2] - x[0] - 0.1) + 10.0 * (x[3] - x[1])
    second = 100.0 * (x[4] - x[2] - 0.1)
    third = 1e4 * (x[6] - x[4] - 0.1) + 1e3 * (x[7] - x[5])
    for k in range(4):
        out[2 * k] = x[2 * k + 1]
    out[1] = 20.0 * math.sin(2.0 * math.pi * t) - 10.0 * x[1] + contact + first
    out[3], out[5] = second - first, third - second
    out[7] = -third - 0.5 * x[7] + math.copysign(2.0 * (1.0 - math.exp(-2.0 * abs(x[7]))), x[7])


def friction_of_chain(t, z, out):
    out[1, 0], out[1, 1], out[1, 2] = 1.0, 50.0 * max(math.sin(4.0 * math.pi * t), 0.0), 3.0
    out[0, 0], out[0, 1], out[0, 2] = -out[1, 0], -out[1, 1], -out[1, 2]


def trans_heat_losses():
    G = np.stack([on(4, w1=1), on(4, w2=1), on(4, w3=1)], axis=1)
    rubs = nsds.first_order_linear_relation(C=G.T, B=G, bounds=friction_of_chain)
    masses = nsds.first_order(push_of_chain, x=[0, 0, 0.1, 0, 0.2, 0, 0.3, 0])
    return nsds.system(plant=masses, rubs=nsds.interaction(rubs, nsds.relay(), on="plant"))


def of_chain(x):
    columns = {"s_1": 0.05 - x[:, 0], "v_1": -x[:, 1], "s_4": x[:, 6], "v_4": x[:, 7]}
    return columns | {"s_12": x[:, 2] - x[:, 0] - 0.1, "v_12": x[:, 3] - x[:, 1], "s_34": x[:, 6] - x[:, 4] - 0.1}


def rate_of_gear(t, x, lam, z, out):
    """Rates of phi_b, w_b for a loss ``L = share T + drag`` between that of rolling forwards, lambda = -1, and backwards, 1.

    z: the ratio, the efficiency, m1, m2, inertias of both shafts. Torques on shafts a and b are those of the two cases, by the ratio.
    """
    ratio, eta, m1, m2, J_a, J_b = z[0], z[1], z[2], z[3], z[4], z[5]
    if ratio == 2.0:
        T_a, T_b = 10.0 * math.sin(2.0 * math.pi * t), -10.0 + 2.5 * t
    else:
        T_a, T_b = 0.0, 1.0 if t >= 0.5 else 0.0
    forwards, limit = 0.5 * (1.0 - lam[0]), (m1 - m2) / (eta - 1.0 / eta)
    out[0] = out[1] = 0.0
    for high in range(2):
        for low in range(2):
            share = forwards * (1.0 - eta if high else 1.0 - 1.0 / eta) + (1.0 - forwards) * (1.0 - 1.0 / eta if low else 1.0 - eta)
            drag = forwards * (m1 if high else m2) - (1.0 - forwards) * (m2 if low else m1)
            rate = (T_b + ratio * ((1.0 - share) * T_a - drag)) / (J_b + ratio * ratio * J_a * (1.0 - share))
            torque = T_a - J_a * ratio * rate
            if (torque > limit) == (high == 1) and (torque > -limit) == (low == 1):
                out[1] = rate


def speed_of_gear(t, x, lam, z, out):
    out[0] = x[1]


def turning(t, x, z, out):
    out[0], out[1] = x[1], 0.0


def lossy_gear(z, w):
    loss = nsds.first_order_relation(speed_of_gear, rate_of_gear, m=1, z=z)
    return nsds.system(plant=nsds.first_order(turning, x=[0.0, w]), loss=nsds.interaction(loss, nsds.relay(), on="plant"))


def lossy_gear_1():
    return lossy_gear([2.0, 0.5, 0.0, 0.0, 1.0, 1.5], 0.0)


def lossy_gear_3():
    return lossy_gear([1.0, 0.25, 0.625, 2.5, 1e-3, 1e-3], 10.0)


def of_gear(x):
    return {"phi_2": x[:, 0], "w_2": x[:, 1]}


# case -> system, columns of x, rows of the reference that are compared, times known in advance, tolerance, step of time stepping
CASES = {
    "coupled_clutches": (coupled_clutches, of_clutches, 2.5e-3, 331, [0.4], 2e-5, 5e-5),  # until what holds more than slides slips
    "trans_heat_losses": (trans_heat_losses, of_chain, 5e-4, 856, [], 1e-5, 1e-5),  # until mass 4 is at its stop
    "lossy_gear_1": (lossy_gear_1, of_gear, 1e-3, 499, [], 1e-5, 2e-5),
    "lossy_gear_3": (lossy_gear_3, of_gear, 2e-3, 500, [0.5], 5e-8, 1e-4),
}
INSTANTS = {"coupled_clutches": (2, 5e-6), "trans_heat_losses": (3, 6e-6), "lossy_gear_1": (4, 1e-7), "lossy_gear_3": (1, 1e-10)}


@reference
@needs_collection
@flows
@pytest.mark.parametrize("case", CASES)
def test_friction_event_by_event(case, flow):
    system, columns_of, row, n, times, tolerance, _ = CASES[case]
    rows = nsds.simulate(system(), t_end=n * row, h=row, scheme=nsds.event_driven(flow=flow, time_events=times))
    compare(case, rows["t"], columns_of(rows["plant"]["x"]), tolerance, until=n * row)
    count, within = INSTANTS[case]
    assert abs(changes(rows) - reference_of(case)["instants"][:count, None]).min(axis=1).max() <= within
    assert not (rows["status"] & nsds.status.TIME_STEPPED).any()


@reference
@needs_collection
@pytest.mark.parametrize("case", CASES)
def test_friction_by_steps(case):
    """Of first order towards the published result."""
    system, columns_of, row, n, _, tolerance, h = CASES[case]
    worst = []
    for step in (10 * h, h):
        rows = nsds.simulate(system(), t_end=n * row, h=step, save_every=round(row / step), scheme=nsds.euler_moreau())
        off = deviations(case, rows["t"], columns_of(rows["plant"]["x"]), until=n * row)
        worst.append({name: each.max() for name, each in off.items()})
    for name, error in worst[1].items():
        assert error <= 0.12 * worst[0][name] + tolerance, name
        assert error <= 6e-3, name


def rate_of_gear_and_bearing(t, x, lam, z, out):
    """Rates of phi_b, w_b: lambda is the gear's loss, as in `rate_of_gear`, and the dry part of the torque of the bearing of shaft a."""
    T_a, T_b = 10.0 * math.sin(2.0 * math.pi * t) - x[1] + lam[1], -10.0 + 2.5 * t
    forwards = 0.5 * (1.0 - lam[0])
    out[0] = out[1] = 0.0
    for drives in range(2):
        share = forwards * (0.5 if drives else -1.0) + (1.0 - forwards) * (-1.0 if drives else 0.5)
        rate = (T_b + 2.0 * (1.0 - share) * T_a) / (1.5 + 4.0 * (1.0 - share))
        if (T_a > 2.0 * rate) == (drives == 1):
            out[1] = rate


def speeds_of_gear_and_bearing(t, x, lam, z, out):
    out[0], out[1] = x[1], 2.0 * x[1]


def test_a_lossy_gear_whose_shaft_rubs_at_checkpoints():
    """Example LossyGearDemo2: two rows hold one speed, now one and now the other; by then it has stuck twice and rolled three times."""
    losses = nsds.first_order_relation(speeds_of_gear_and_bearing, rate_of_gear_and_bearing, m=2)
    law = nsds.relay([-1.0, -0.5], [1.0, 0.5])
    system = nsds.system(plant=nsds.first_order(turning, x=[0.0, 0.0]), loss=nsds.interaction(losses, law, on="plant"))
    rows = nsds.simulate(system, t_end=0.5, h=0.1, scheme=nsds.event_driven())
    x = rows[~nsds.status.is_event(rows["status"])]["plant"]["x"]
    phi, w = [-0.00055904613933, -0.00050512204023, -0.00050177199025, -0.00058918332307], [0.0, 0.000746185083, 0.0, -0.009624278093]
    np.testing.assert_allclose(x[2:, 0], phi, rtol=0, atol=3e-9)
    np.testing.assert_allclose(x[2:, 1], w, rtol=0, atol=3e-7)
    assert abs(changes(rows)[:, None] - [0.0635911, 0.2303740, 0.3083068, 0.4727383]).min(axis=0).max() <= 1e-6


def heating(t, x, z, out):
    out[0] = 5.0 / (1.0 + (x[0] - 293.15) / 255.0) - 0.1 * (x[0] - 293.15)


def heater(t, x, lam, z, out):
    out[0] = 5.0 * lam[0] / (1.0 + (x[0] - 293.15) / 255.0)


def too_warm(t, x, lam, z, out):
    out[0] = x[0] - 298.15 - 25.0 * min(max((t - 2.0) / 6.0, 0.0), 1.0) - lam[0]


def controlled_temperature(**run):
    switch = nsds.interaction(nsds.first_order_relation(too_warm, heater, m=1), nsds.relay(), on="room")
    room = nsds.system(room=nsds.first_order(heating, x=[293.15]), switch=switch)
    room["switch"]["lambda"] = 1.0
    return nsds.simulate(room, t_end=10.0, **run)


@reference
@needs_collection
def test_controlled_temperature_by_steps():
    rows = controlled_temperature(h=1e-4, save_every=200, scheme=nsds.euler_moreau())
    compare("controlled_temperature", rows["t"], {"T": rows["room"]["x"][:, 0]}, 1e-4)


@flows
def test_controlled_temperature_to_nine_digits(flow):
    """Beside scipy, stopped at each threshold: the published result is off by 2.8e-4 of its range, 1.2e-3 s in its instants."""
    rows = controlled_temperature(h=0.02, scheme=nsds.event_driven(flow=flow, time_events=[2.0, 8.0]))
    t, T, on, found = 0.0, 293.15, 1.0, []
    for corner in (2.0, 8.0, 10.0):
        while t < corner:

            def rate(t, x, on=on):
                return [5.0 * (1.0 + on) / (1.0 + (x[0] - 293.15) / 255.0) - 0.1 * (x[0] - 293.15)]

            def threshold(t, x, on=on):
                return on * (x[0] - 298.15 - 25.0 * min(max((t - 2.0) / 6.0, 0.0), 1.0) - on)

            threshold.terminal = threshold.direction = 1
            piece = solve_ivp(rate, (t, corner), [T], method="DOP853", rtol=1e-12, atol=1e-10, events=threshold, max_step=0.1)
            t, T = piece.t[-1], piece.y[0, -1]
            if piece.status == 1:
                found.append(t)
                on = -on
    np.testing.assert_allclose(changes(rows)[-len(found) :], found, rtol=0, atol=1e-8)
    assert rows["room"]["x"][-1, 0] == pytest.approx(T, abs=1e-8)


def test_clutches_gears_and_a_chain_at_checkpoints():
    """Values as published, and rest at 0.02 s and 0.1 rad of ``lossy_gear_3``, whose closed form that is."""
    checkpoints = {
        "coupled_clutches": (0.75, "w_clutch_1 w_clutch_2", (-0.6613409474691967, 0.0), 2e-4),
        "trans_heat_losses": (0.4, "s_4 v_4 s_12", (0.33270615421938204, 0.5337682529133327, -0.09340400520039845), 6e-6),
        "lossy_gear_1": (0.3, "phi_2 w_2", (-0.0005173171075717059, 0.013181180166635815), 3e-8),
        "lossy_gear_3": (0.4, "phi_2 w_2", (0.1, 0.0), 1e-9),
    }
    for case, (t, names, wanted, within) in checkpoints.items():
        system, columns_of, _, _, times, *_ = CASES[case]
        rows = nsds.simulate(system(), t_end=t, h=t / 10, scheme=nsds.event_driven(time_events=times))
        columns = columns_of(rows["plant"]["x"][-1:])
        np.testing.assert_allclose([columns[name][0] for name in names.split()], wanted, rtol=0, atol=within, err_msg=case)
