"""First-order systems against trajectories of the established code, see `tests.reference_cases`."""

import math

import numpy as np
import pytest

import nsds
from tests.reference_cases import (
    REFERENCE,
    Bound,
    compare_at_checkpoints,
    compare_in_full,
    needs_collection,
    numbered,
    run_example,
    trajectory_of,
)

TRAPEZOIDAL = nsds.euler_moreau(theta=0.5)


def buck_converter():
    _, rows = run_example("buck_converter")
    x, lam, y = rows["circuit"]["x"], rows["switches"]["lambda"], rows["switches"]["y"]
    named = {"v_out": x[:, 0], "i_l": x[:, 1], "v_amp": x[:, 4], "drain": lam[:, 11] - 0.8, "comparator": 15 * (lam[:, 0] - lam[:, 1])}
    return named | {"lambda10": lam[:, 10], "y11": y[:, 11]}


def circuit_rlcd_theta_gamma():
    circuit, rows = run_example("circuit_rlcd")
    storage, dissipated = nsds.examples.circuit_rlcd_energies(circuit, rows)
    x, lam = rows["plant"]["x"], rows["switches"]["lambda"]
    minus_y = -(4 * math.pi**2 * x[:, 0] + 10 * lam)  # of the row's own state, not of the point where the law holds
    return numbered(x=x) | {"lam": lam, "minus_y": minus_y, "storage": storage, "dissipated": dissipated, "total": storage + dissipated}


def diode_bridge():
    _, rows = run_example("diode_bridge")
    x, y, lam = rows["plant"]["x"], rows["switches"]["y"], rows["switches"]["lambda"]
    diodes = {"minus_lambda0": -lam[:, 0], "minus_lambda1": -lam[:, 1], "lambda2": lam[:, 2], "y0": y[:, 0]}
    return {"v_c": x[:, 0], "i_l": x[:, 1], "i_resistor": y[:, 0] + lam[:, 2]} | diodes


def diode_bridge_cap_filter():
    _, rows = run_example("filtered_bridge")
    tank = rows["tank"]["x"]
    return {"v_c": tank[:, 0], "i_l": tank[:, 1]} | numbered(**{"lambda": rows["diodes"]["lambda"]})


def relays(B, x, t_end, h, scheme=TRAPEZOIDAL):
    """Trajectory of ``x' = B lambda``, lambda = -sign(x)."""
    system = nsds.linear_complementarity_system(A=np.zeros((2, 2)), B=B, C=np.eye(2), x=x, law=nsds.relay())
    rows = nsds.simulate(system, t_end=t_end, h=h, scheme=scheme)
    return rows["plant"]["x"], rows["switches"]["lambda"], rows["switches"]["y"]


def filippov_linear():
    x, lam, y = relays([[2, -52], [52, 2]], [3, 3], 2.0, 1e-3)
    return numbered(x=x, **{"lambda": lam}, y=y)


def filippov_nonlinear():
    _, rows = run_example("filippov_spiral")
    return numbered(x=rows["point"]["x"], **{"lambda": rows["relays"]["lambda"]})


def relay_simple():
    x, lam, y = relays(2 * np.eye(2), [1, -1], 1.0, 1e-3)
    return numbered(x=x, **{"lambda": lam}, y=y)


def zoh_relay_two():
    x, lam, _ = relays(np.eye(2), [1, -1], 10.0, 0.1, nsds.zero_order_hold())
    return numbered(x=x, lam=lam)


def relay_oscillator():
    _, rows = run_example("relay_oscillator")
    return numbered(x=rows["plant"]["x"]) | {"lam": rows["switches"]["lambda"], "y": rows["switches"]["y"]}


def pid(t, x, state, z, u):
    """Incremental PID; state: the last two errors."""
    error = -x[0]
    u[0] += (0.25 + 0.125 * 0.05 + 2 / 0.05) * error - (0.25 + 4 / 0.05) * state[0] + 2 / 0.05 * state[1]
    state[1], state[0] = state[0], error


def pid_double_integrator():
    system = nsds.system(
        plant=nsds.first_order_linear(A=[[0, 1], [0, 0]], x=[10, 0], T=[[0], [1]], u=[0.0]),
        controller=nsds.sampled_control(pid, reads="plant", writes="plant", period=0.05, state=[0, 0]),
    )
    plant = nsds.simulate(system, t_end=100.0, h=0.05, scheme=nsds.zero_order_hold())["plant"]
    return numbered(x=plant["x"]) | {"u": plant["u"][:, 0]}


def pid_and_innovation(t, x, state, z, u):
    """PID of the measured position, and what the observer is off by: x = (plant, observer), u = (control, innovation)."""
    error = -x[0]
    u[0] += (0.25 + 0.125 * 0.05 + 2 / 0.05) * error - (0.25 + 4 / 0.05) * state[0] + 2 / 0.05 * state[1]
    state[1], state[0] = state[0], error
    u[1] = x[2] - x[0]


def luenberger_observer():
    A = np.array([[0, 1], [-1, 0]])
    gain = -8.71455866, -24.02084375
    system = nsds.system(
        both=nsds.first_order_linear(A=np.kron(np.eye(2), A), x=[10, 0, -10, -5], T=[[0, 0], [1, 0], [0, gain[0]], [1, gain[1]]], u=[0, 0]),
        controller=nsds.sampled_control(pid_and_innovation, reads="both", writes="both", period=0.1, state=[0, 0]),
    )
    both = nsds.simulate(system, t_end=100.0, h=0.05, scheme=nsds.zero_order_hold())["both"]
    even = np.arange(len(both)) // 2 * 2  # the last instant of the controller; odd rows repeat what it said
    innovation = np.append(0.0, both["u"][:-1, 1])[even]
    return numbered(x=both["x"][:, :2], xhat=both["x"][even, 2:]) | {"u": both["u"][:, 0], "err": innovation}


def source(t, z, out):
    out[0], out[1] = 30 * math.sin(50 * t), 60 * math.sin(50 * t)


def offset(t, z, out):
    out[0] = 30 * math.sin(50 * t)


def coupling(t, x, state, z, u):
    u[0] = 2 * (x[0] + x[1])


def observer_lcs():
    def switches(on):
        relation = nsds.first_order_linear_relation(C=[[-1, 1]], B=[[-1], [1]], D=[[1]], e=offset)
        return nsds.interaction(relation, nsds.complementarity(), on=on)

    system = nsds.system(
        plant=nsds.first_order_linear([[1, 1], [3, 1]], source, x=[10, 0]),
        observer=nsds.first_order_linear([[-1, -1], [1, -1]], source, x=[0, 0], T=[[1], [1]], u=[0.0]),
        switches=switches("plant"),
        copy=switches("observer"),
        coupling=nsds.sampled_control(coupling, reads="plant", writes="observer"),
    )
    rows = nsds.simulate(system, t_end=2.0, h=1e-4, scheme=TRAPEZOIDAL)
    multipliers = {"lam": rows["switches"]["lambda"], "lam_hat": rows["copy"]["lambda"]}
    return (
        numbered(x=rows["plant"]["x"], xhat=rows["observer"]["x"]) | multipliers | {"y": rows["switches"]["y"], "y_hat": rows["copy"]["y"]}
    )


def costate_rate(t, x, z, out):
    out[0], out[1] = 0.5 * x[1] + 0.5, -0.5 * x[0] - x[1]
    out[2], out[3] = 2 - x[0] + 0.5 * x[3], -1 - x[1] - 0.5 * x[2] + x[3]


def costate_rate_by_x(t, x, z, out):
    out[:] = 0
    out[0, 1] = out[2, 3] = 0.5
    out[1, 0] = out[3, 2] = -0.5
    out[1, 1] = out[2, 0] = out[3, 1] = -1
    out[3, 3] = 1


def switching(t, x, lam, z, out):
    out[0], out[1] = lam[1] + (1 - x[1]) * x[2] + x[0] * x[3], 2 - lam[0]


def switching_by_x(t, x, lam, z, out):
    out[:] = 0
    out[0, 0], out[0, 1], out[0, 2], out[0, 3] = x[3], -x[2], 1 - x[1], x[0]


def switching_by_lam(t, x, lam, z, out):
    out[0, 0], out[0, 1], out[1, 0], out[1, 1] = 0, 1, -1, 0


def bang(t, x, lam, z, out):
    half = 0.5 * (lam[0] - 1)
    out[0], out[1], out[2], out[3] = half * (1 - x[1]), half * x[0], -half * x[3], half * x[2]


def bang_by_x(t, x, lam, z, out):
    out[:] = 0
    out[0, 1] = out[2, 3] = -0.5 * (lam[0] - 1)
    out[1, 0] = out[3, 2] = 0.5 * (lam[0] - 1)


def bang_by_lam(t, x, lam, z, out):
    out[:] = 0
    out[0, 0], out[1, 0], out[2, 0], out[3, 0] = 0.5 * (1 - x[1]), 0.5 * x[0], -0.5 * x[3], 0.5 * x[2]


def optimal_control_bang_bang():
    relation = nsds.first_order_relation(switching, bang, m=2, C=switching_by_x, D=switching_by_lam, K=bang_by_x, B=bang_by_lam)
    start = 3.4999939172, -2.2788416237, 1.1935988302, -0.6365413023
    system = nsds.system(
        plant=nsds.first_order(costate_rate, costate_rate_by_x, x=start),
        control=nsds.interaction(relation, nsds.complementarity(), on="plant"),
    )
    rows = nsds.simulate(system, t_end=10.0, h=2e-3, scheme=TRAPEZOIDAL)
    x, control = rows["plant"]["x"], rows["control"]
    return numbered(x=x[:, :2], p=x[:, 2:], **{"lambda": control["lambda"]}, y=control["y"])


def reference_voltage(t, z, out):
    out[:] = -55 * math.sin(100 * math.pi * t)


def parallel_inverter():
    Cp, ell, R, E, kappa = 6e-5, 3.85e-4, 5.0, 70.0, 1 / 6e-5
    L1, L2, L3 = 1.5e-3, 1.22e-3, 0.9e-3
    d1, d2, d3 = 94e-3 / L1, 116e-3 / L2, 100e-3 / L3
    A = [
        [0, 1, 0, 0],
        [-1 / (Cp * ell) - d1 / (Cp * R), -d1 - 1 / (Cp * R), d1 / Cp - d2 / Cp, d1 / Cp - d3 / Cp],
        [-1 / L2, 0, -d2, 0],
        [-1 / L3, 0, 0, -d3],
    ]
    B = [[0, 0, 0], [E / (Cp * L1), E / (Cp * L2), E / (Cp * L3)], [0, E / L2, 0], [0, 0, E / L3]]
    C = [[Cp * kappa + 2 / R, 3 * Cp, -3, -3], [Cp * kappa - 1 / R, 0, 3, 0], [Cp * kappa - 1 / R, 0, 0, 3]]
    system = nsds.linear_complementarity_system(A, B, C, x=[50, 7, 4, 4], e=reference_voltage, law=nsds.relay())
    rows = nsds.simulate(system, t_end=0.02, h=1e-6, scheme=TRAPEZOIDAL)
    return numbered(x=rows["plant"]["x"], **{"lambda": rows["switches"]["lambda"]}, y=rows["switches"]["y"])


def square_wave(t, z, out):
    wave = math.sin(2 * math.pi * 55000 * t)
    out[0], out[1], out[2], out[3] = 0.0 if wave == 0 else math.copysign(1 / 1.5e-4, wave), 0, 0, 0


def power_converter():
    Lf, Cf, Lr, Cr, R = 4e-4, 2.2e-6, 1.5e-4, 6.8e-8, 33.0
    system = nsds.linear_complementarity_system(
        A=[[0, -1 / Lr, 0, 0], [1 / Cr, 0, 0, 0], [0, 0, 0, -1 / Lf], [0, 0, 1 / Cf, -1 / (R * Cf)]],
        B=[[0, 0, 0, 0], [-1 / Cr, 1 / Cr, 0, 0], [0, 0, 1 / Lf, 1 / Lf], [0, 0, 0, 0]],
        C=[[0, -1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]],
        D=[[0, 0, 1, 0], [0, 0, 0, 1], [-1, 0, 0, 0], [0, -1, 0, 0]],
        b=square_wave,
        x=np.zeros(4),
    )
    return numbered(x=nsds.simulate(system, t_end=2e-3, h=5e-8, scheme=TRAPEZOIDAL)["plant"]["x"])


def disturbance(t, z, out):
    out[0], out[1] = math.sin(50 * t), -math.sin(50 * t)


def relay_bisimulation():
    """(process, controller): trajectories of two simulations that run side by side, the process one small step behind."""
    process = nsds.system(plant=nsds.first_order_linear(np.zeros(2), disturbance, x=[1, -1], u=[0, 0]))
    controller = nsds.linear_complementarity_system(np.zeros((2, 2)), 2 * np.eye(2), np.eye(2), x=[1, -1], law=nsds.relay())
    pieces, steps = [], []
    for j in range(1, 101):
        controller = nsds.step(controller, h=1e-2, scheme=TRAPEZOIDAL)
        steps.append(controller.copy())
        process["plant"]["u"] = controller["plant"]["r"]
        rows = nsds.simulate(process, t_end=1e-2 * j - 1e-4, h=1e-4, scheme=TRAPEZOIDAL)
        pieces.append(rows[pieces != [] :])  # each begins with the last row of the one before
        process = nsds.restart(process, rows[-1])
        controller["plant"]["x"] = process["plant"]["x"]
    return np.concatenate(pieces), np.array(steps)


def relay_bisimulation_process():
    return numbered(x=relay_bisimulation()[0]["plant"]["x"])


def sliding_control(t, x, state, z, u):
    u[0] = min(max(-x[1] / (2 * z[0]), -1.0), 1.0)


def smc_implicit():
    system = nsds.system(
        plant=nsds.first_order_linear(np.zeros(2), disturbance, x=[1, -1], T=[[0], [2]], u=[0.0]),
        controller=nsds.sampled_control(sliding_control, reads="plant", writes="plant", period=1e-2, z=[1e-2]),
    )
    plant = nsds.simulate(system, t_end=1.0, h=1e-4, scheme=nsds.zero_order_hold())["plant"]
    return numbered(x=plant["x"]) | {"u": plant["u"][:, 0]}


def step_system():
    _, rows = run_example("gene_network")
    x, lam = rows["genes"]["x"], rows["regulation"]["lambda"]
    return numbered(x=x, **{"lambda": lam}, rhs=x * [-4.5, -1.5] + rows["genes"]["r"])


def zoh_twisting_implicit():
    _, rows = run_example("twisting_controller", t_end=100.05)
    s = rows["controller"]["lambda"][1:] @ [1.0, 0.2]  # the collection names a row after the instant at which its control was chosen
    return numbered(x=rows["plant"]["x"][:-1]) | {"s": s}


def two_dof_friction_oscillator():
    _, rows = run_example("friction_oscillator")
    x1, v1, x2, v2 = rows["masses"]["x"].T
    return {"x1": x1, "v1": v1, "x2": x2, "v2": v2, "lam": rows["ground"]["lambda"]}


# Acceptance of each case as the collection states it.
CASES = {
    buck_converter: [Bound(1e-8, "v_out i_l v_amp drain comparator")],
    circuit_rlcd_theta_gamma: [Bound(1e-10, "x0 x1 minus_y lam storage dissipated total")],
    diode_bridge: [Bound(1e-8, "v_c minus_lambda0 minus_lambda1"), Bound(1e-10, "i_l y0 lambda2 i_resistor")],
    diode_bridge_cap_filter: [Bound(1e-8, "v_c i_l lambda0 lambda2")],
    filippov_linear: [Bound(1e-8, "x0 x1 lambda0 lambda1 y0 y1")],
    filippov_nonlinear: [Bound(1e-10, "x0 x1 lambda0")],
    luenberger_observer: [Bound(1e-8, "x0 x1 u xhat0 xhat1 err")],
    observer_lcs: [Bound(1e-7, "x0 x1 xhat0 xhat1 lam lam_hat y y_hat")],
    optimal_control_bang_bang: [Bound(1e-6, "x0 x1 p0 p1 lambda0 lambda1 y0 y1"), Bound(1e-9, "x0 x1 p0 p1 lambda0 lambda1 y0 y1", 2500)],
    parallel_inverter: [Bound(1e-6, "x1"), Bound(1e-9, "x0 x2 x3"), Bound(1e-8, "lambda0 lambda1 lambda2")],
    pid_double_integrator: [Bound(1e-9, "x0 x1 u")],
    power_converter: [Bound(1e-9, "x0 x1 x2 x3")],
    relay_bisimulation_process: [Bound(1e-10, "x0 x1")],
    relay_oscillator: [Bound(1e-8, "x0 x1 x2 lam y")],
    relay_simple: [Bound(1e-10, "x0 x1 lambda0 lambda1")],
    smc_implicit: [Bound(1e-9, "x0 x1 u")],
    step_system: [Bound(1e-9, "x0 x1 lambda0 lambda1 lambda2 lambda3 rhs0 rhs1")],
    two_dof_friction_oscillator: [Bound(1e-9, "x1 v1 x2 v2 lam")],
    zoh_relay_two: [Bound(1e-12, "x0 x1 lam0 lam1")],
    zoh_twisting_implicit: [Bound(1e-7, "x0 x1 s")],
}
# case: columns, and their values in some rows of the full series
CHECKPOINTS = {
    buck_converter: (
        "v_out i_l v_amp drain comparator",
        {
            18898: (0.0059696060635664, 0.27956953307262, 1.3328586708974, 2.865011888326, 0.77622869786787),
            33110: (0.014872081937388, 0.27494559629881, 1.2181733438596, -0.034676245145628, 3.0),
            40000: (0.019920053487932, 0.37469597799391, 1.0722415687973, 2.9527431980621, 0.0),
        },
    ),
    circuit_rlcd_theta_gamma: (
        "x0 x1 minus_y lam total",
        {
            5: (-0.14641106164469, 6.2954070868764, 5.7800770335063, 0.0, 20.239208802179),
            30: (-0.23835421445248, 0.67085014062525, -0.037186058855603, 0.94470332747691, 20.239208802179),
            99: (0.0022723898094625, -0.035492940214427, -0.089710353857846, 0.0, 20.239208802179),
        },
    ),
    diode_bridge: (
        "v_c i_l y0 lambda2",
        {
            99: (4.8360748512521, 0.079608433952017, 0.0, 0.0048360748512519),
            2001: (1.4021874368033, 0.033326501202664, 0.0, 0.0014021874368032),
            4999: (0.78638391072773, -0.0028307180541469, 0.0, 0.00078638391072777),
        },
    ),
    diode_bridge_cap_filter: (
        "v_c i_l lambda0 lambda2",
        {
            1: (7.685804319422, 0.0007685804319422, 0.0, 2.313427100146),
            249: (-5.3853897021023, 0.046614580060566, 0.014899818246363, 0.0),
            4999: (-0.15463914626187, -0.0046244078082153, 0.0, 0.0),
        },
    ),
    filippov_linear: (
        "x0 x1 lambda0 lambda1",
        {
            40: (5.0, 0.84, -1.0, -1.0),
            600: (-1.64, 1.512, 1.0, -1.0),
            1450: (0.0, 0.0, 0.0, 0.0),
        },
    ),
    filippov_nonlinear: (
        "x0 x1 lambda0",
        {
            7: (-0.49, 5.44, 1.0),
            28: (0.099999999999999, -3.96, -1.0),
            54: (0.06, 0.0, -1.0),
        },
    ),
    luenberger_observer: (
        "x0 x1 u xhat0 xhat1 err",
        {
            2: (7.9389059375154, -41.187523955356, 80.346917852897, 7.339822165808, 2.9250517024272, -20.0),
            150: (-0.098147139179008, 0.027213286273796, -0.10398333389866, -0.098147139179007, 0.027213286273826, 0.0),
            2000: (1.9615943464254e-05, -1.2199370367903e-06, 1.9630718871933e-05, 1.9615943464254e-05, -1.2199370367958e-06, 0.0),
        },
    ),
    observer_lcs: (
        "x0 xhat0 xhat1 lam lam_hat",
        {
            50: (10.038746171151, 0.11922169623875, 0.13843830698128, 2.398094918225, 0.0),
            5005: (20.220644740789, 15.841548091397, 29.167931158, 0.0, 0.0),
            19999: (1207.9176825407, 1208.4382713315, 2090.3051788404, 0.0, 0.0),
        },
    ),
    optimal_control_bang_bang: (
        "x0 x1 p0 p1 lambda0",
        {
            60: (3.2186760800649, -2.4007101403586, 0.95074918729584, -0.68310211056302, 0.0),
            999: (-0.42520649349302, -0.85775167810623, 1.623138776287, -1.2163818022316, 0.0),
            2499: (0.48677202679234, 0.17413363383822, -9.711226015081, -45.535688709182, 2.0),
        },
    ),
    parallel_inverter: (
        "x0 x2 x3 lambda0 lambda1",
        {
            50: (43.898740696165, -0.84058786991282, -2.5554906739322, -1.0, -1.0),
            5996: (52.629851668127, 3.4085144922383, 3.4085144922384, 0.74703928319071, 0.74991406528013),
            19999: (-1.0536299315734, 0.27520839531607, 0.27520839531607, 0.0099145221003565, 0.0053853793945779),
        },
    ),
    pid_double_integrator: (
        "x0 x1 u",
        {
            1: (9.496796875, -20.128125, 17.632070800782),
            99: (-1.086376057435, 0.040860838183257, 0.068218876126889),
            2000: (-0.0025405770462401, -0.002109220806704, 0.0003809158402953),
        },
    ),
    power_converter: (
        "x0 x1 x2 x3",
        {
            90: (0.021323584465518, 0.77772433585335, 0.0032357960831751, 0.0017127697064945),
            11990: (-0.039783971281823, -0.56211020464203, 0.019063317494484, 0.62248686203718),
            39999: (-0.040702681267036, -0.81755799069592, 0.018497838771986, 0.61640909237106),
        },
    ),
    relay_bisimulation_process: (
        "x0 x1",
        {
            98: (0.982753337925, -0.982753337925),
            4998: (0.00060340444236926, -0.00060340444236926),
            9998: (-0.0049787274718405, 0.0049787274718405),
        },
    ),
    relay_oscillator: (
        "x0 x1 x2 lam",
        {
            90: (0.38450987492955, 0.064247806169418, -0.83155076289184, -1.0),
            3000: (0.16155433333377, 0.24850031188468, -0.55118914953503, -1.0),
            9999: (0.1620224098723, -0.22652113787003, -0.43255047964105, -1.0),
        },
    ),
    relay_simple: (
        "x0 x1 lambda0",
        {
            100: (0.8, -0.8, -1.0),
            500: (0.0, 0.0, -0.99999999999978),
            700: (0.0, 0.0, 0.0),
        },
    ),
    smc_implicit: (
        "x0 x1 u",
        {
            90: (1.0020128020816, -0.98401280208161, 1.0),
            4002: (1.0120671768227, -0.21166717682281, 1.0),
            10000: (1.0006875592277, 0.0048568218242051, -0.24284109121026),
        },
    ),
    step_system: (
        "x0 x1 lambda1 lambda2 lambda3",
        {
            60: (2.8666756218892, 5.4835870190918, 1.0, 0.0, 0.0),
            250: (6.3277465085834, 8.0, 1.0, 0.0, 0.69999999999998),
            2999: (8.0, 8.0, 1.0, 0.10000000000035, 0.69999999999984),
        },
    ),
    two_dof_friction_oscillator: (
        "x1 v1 x2 v2 lam",
        {
            40: (0.13940728335732, -0.10412095950829, 0.31541121893382, 0.0, 0.17286351180436),
            5002: (0.54274815771016, -0.017315714098854, -0.12440788993338, 0.23912844707091, -0.5),
            10000: (0.23239525183944, 0.38064492849901, -0.26472025688633, 0.0, -0.48758900573002),
        },
    ),
    zoh_relay_two: (
        "x0 x1 lam0",
        {
            4: (0.6, -0.6, -1.0),
            10: (0.0, 0.0, -0.99999999999999),
            60: (0.0, 0.0, 0.0),
        },
    ),
    zoh_twisting_implicit: (
        "x0 x1 s",
        {
            5: (-11.516116903691, 11.26325634392, 0.805),
            16: (-0.047496349520323, 17.941472786935, -1.1531540090875),
            40: (0.0, 0.0, 0.0),
        },
    ),
}


@pytest.mark.parametrize("run", CASES, ids=lambda run: run.__name__)
def test_checkpoints(run):
    compare_at_checkpoints(trajectory_of(run), CASES[run], *CHECKPOINTS[run])


@pytest.mark.reference
@needs_collection
@pytest.mark.parametrize("run", CASES, ids=lambda run: run.__name__)
def test_full_reference(run):
    compare_in_full(run.__name__, trajectory_of(run), CASES[run])


@pytest.mark.reference
@needs_collection
def test_full_reference_of_the_bisimulated_controller():
    _, steps = relay_bisimulation()
    with np.load(REFERENCE / "relay_bisimulation_process" / "controller.npz") as reference:
        for part, field, column in (("plant", "x", "x"), ("switches", "lambda", "lambda"), ("switches", "y", "y")):
            wanted = np.stack([reference[f"{column}{i}"][1:] for i in range(2)], axis=1)
            np.testing.assert_allclose(steps[part][field][: len(wanted)], wanted, rtol=0, atol=1e-10)


def test_full_theta_gamma_keeps_the_energy_to_rounding():
    total = trajectory_of(circuit_rlcd_theta_gamma)["total"]
    assert np.ptp(total) < 1e-12


def test_blocked_bridge_is_complementary_where_its_voltages_are_not_unique():
    """While all diodes block, y_0 and lambda_1 of diode_bridge_cap_filter are free in an interval: only the law itself can be compared."""
    bridge, rows = run_example("filtered_bridge")
    y, lam = rows["diodes"]["y"][1:], rows["diodes"]["lambda"][1:]
    assert (lam[:, [0, 2, 3]] == 0).all(axis=1).mean() > 0.2
    assert abs(np.minimum(y, lam)).max() < 1e-12
    state = np.column_stack([rows["tank"]["x"], rows["load"]["x"]])[1:]
    np.testing.assert_allclose(y, state @ bridge["diodes"]["C"].T + lam @ bridge["diodes"]["D"].T, atol=1e-12)


def test_chopper_in_discontinuous_conduction():
    """Mean voltage of a step-down converter whose current falls to zero in each period: ``2 E / (1 + sqrt(1 + 4 K / duty^2))``."""
    _, rows = run_example("ideal_switch")
    x, lam, y = rows["filter"]["x"], rows["switches"]["lambda"], rows["switches"]["y"]
    last = slice(-1000, None)  # ten periods
    assert x[last, 1].mean() == pytest.approx(2 * 12 / (1 + math.sqrt(1 + 4 * 0.4 / 0.4**2)), rel=0.01)
    assert abs(y[1:, 0]).max() < 1e-12
    assert (np.minimum(y[1:, 1], lam[1:, 1]) > -1e-12).all()
    assert ((lam[last, 0] > 1e-9).mean(), (y[last, 1] > 1e-9).mean()) == pytest.approx((0.4, 0.4 * (12 / 5.6 - 1)), abs=0.03)
