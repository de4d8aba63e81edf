"""Clutches, brakes, drives and thermostats of the Modelica Standard Library beside its published results.

Cases, equations and tolerances are those of the collection's ``case.md``; numbers are results of
github.com/modelica/MAP-LIB_ReferenceResults (v4.0.0, commit d6a2b9b2).
"""

import math

import numpy as np
import pytest

import nsds
from tests.reference_modelica import compare, needs_collection, reference_of

reference = pytest.mark.reference


def inclusion(A, force, G, pieces, x, h, flow="auto"):
    """(t, x) of ``x' = A x + force(t) + G lambda``, lambda against ``y = G^T x``; pieces: (end, lower, upper) of its bounds, in turn."""
    G, t, found = np.asarray(G, float), 0.0, []
    for end, lower, upper in pieces:
        rubs = nsds.interaction(nsds.first_order_linear_relation(C=G.T, B=G), nsds.relay(lower, upper), on="plant")
        system = nsds.system(t=t, plant=nsds.first_order_linear(A, x=x, b=force), rubs=rubs)
        rows = nsds.simulate(system, t_end=end, h=min(h, end - t), scheme=nsds.event_driven(flow=flow))
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


def translational_brake(flow="auto"):
    pieces = [(0.1, [0.0], [0.0]), (2.0, [-1.0], [1.0])]
    return inclusion(wheels(1), no_force, on(1, w0=1)[:, None], pieces, [0.0, 1.0], 0.01, flow)


@reference
@needs_collection
def test_translational_brake():
    t, x = translational_brake("dopri5")
    compare("translational_brake", t, {"s": x[:, 0], "v": x[:, 1]}, 1e-9)


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
def test_friction_elements():
    """The freewheel and the clutch beside it are one row, ``-c <= lambda``."""
    G = np.stack([on(6, w0=1), on(6, w1=1), on(6, w3=1, w2=-1), on(6, w4=1, w5=-1)], axis=1)
    pieces = [(t, np.array([-1.0, -c, -c, -c]), np.array([1.0, c, c, np.inf])) for t, c in ((0.5, 0.0), (1.1, 50.0))]
    h = 1e-4  # rows of both pieces lie on those of the reference
    t, x = inclusion(wheels(6), sine_torques, G, pieces, np.zeros(12), h, "dopri5")
    columns = {f"{what}_{k}": x[:, 2 * k + (what == "w")] for what in ("phi", "w") for k in (0, 1, 2, 5)}
    for what, i in (("phi", 0), ("w", 1)):
        columns |= {f"{what}_clutch": x[:, 6 + i] - x[:, 4 + i], f"{what}_one_way": x[:, 8 + i] - x[:, 10 + i]}
    compare("friction_elements", t, columns, 3e-5)


def freewheel_torque(t, z, out):
    out[:] = 0.0
    out[1] = 10.0 * math.sin(6.0 * math.pi * t)


@reference
@needs_collection
def test_one_way_clutch_until_it_sticks():
    """From then on the clutch holds with 25 times what it slides with, which is another law."""
    pieces = [(0.3, [0.0], [np.inf]), (0.43, [-1.5], [np.inf])]
    t, x = inclusion(wheels(2), freewheel_torque, on(2, w1=1, w0=-1)[:, None], pieces, [0, -0.5, 0, 0], 2.5e-3, "dopri5")
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


def dry(t, z, out):
    out[0, 0], out[1, 0] = -0.5, 0.5


@reference
@needs_collection
def test_robot_one_axis():
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
    scheme = nsds.event_driven(time_events=[0.3, _CRUISE, _END], flow="dopri5", rtol=1e-9)
    rows = nsds.simulate(system, t_end=1.4976, h=3.2e-3, scheme=scheme)
    x = rows["plant"]["x"]
    columns = {"x_pi": x[:, 0], "phi_spring": 210 * x[:, 3] - x[:, 1], "w_spring": 210 * x[:, 4] - x[:, 2], "phi": x[:, 3], "w": x[:, 4],
               "v_c": x[:, 5], "i": x[:, 6]}  # fmt: skip
    compare("robot_one_axis", rows["t"], columns, 5e-6)
    instants = rows["t"][
        nsds.status.is_event(rows["status"]) & (rows["status"] & (nsds.status.CLOSED | nsds.status.OPENED | nsds.status.SWITCHED) > 0)
    ]
    assert abs(instants[None] - reference_of("robot_one_axis")["instants"][:, None]).min(axis=1).max() <= 1e-6


def gaps(t, x, z, out):
    """s, v of a mass between springs that pull and push, and of one between springs that push alone."""
    out[0], out[1] = x[1], -20.0 * x[0] - 3.0 * x[1]
    out[2], out[3] = x[3], 0.0
    for sense in (1.0, -1.0):
        spring = 10.0 * max(1.5 - (2.0 - sense * x[2]), 0.0)
        out[3] -= sense * (spring + min(max(1.5 * sense * x[3], -spring), spring))


@reference
@needs_collection
@pytest.mark.parametrize("flow", ["dopri5", "radau"])
def test_elasto_gap(flow):
    rows = nsds.simulate(
        nsds.system(masses=nsds.first_order(gaps, x=[2.0, 0, 2.0, 0])), t_end=5.0, h=0.01, scheme=nsds.event_driven(flow=flow)
    )
    x = rows["masses"]["x"]
    compare("elasto_gap", rows["t"], {"s_1": 2 - x[:, 0], "v_1": x[:, 1], "s_2": 2 - x[:, 2], "v_2": x[:, 3]}, 2e-5)
