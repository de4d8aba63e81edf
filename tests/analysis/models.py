"""Models whose orbits are known in closed form."""

import math

import numpy as np
from scipy.linalg import expm

import nsds


def drive(t, z, out):
    out[0] = math.cos(z[0] * t + z[1])


def impact_oscillator(zeta, omega, r, sigma=0.0, x=-1.0, v=0.0, phase=0.0):
    """``x'' + 2 zeta x' + x = cos(omega t + phase)``, ``x <= sigma``."""
    return nsds.system(
        mass=nsds.lagrangian_linear(M=[[1.0]], K=[[1.0]], C=[[2 * zeta]], fext=drive, q=[x], v=[v], z=[omega, phase]),
        stop=nsds.interaction(nsds.lagrangian_linear_relation(H=[[-1.0]], b=[sigma]), nsds.newton_impact(r), on="mass"),
    )


def hardening(t, q, v, z, out):
    out[0] = q[0] + z[0] * q[0] ** 3 + 0.1 * v[0] - math.cos(1.3 * t)


def duffing(stiffness=0.5, x=0.1, v=0.3):
    """``x'' + 0.1 x' + x + stiffness x³ = cos(1.3 t)``, ``x <= 0.6``, e = 0.7."""
    return nsds.system(
        mass=nsds.lagrangian(mass=[[1.0]], fint=hardening, q=[x], v=[v], z=[stiffness]),
        stop=nsds.interaction(nsds.lagrangian_linear_relation(H=[[-1.0]], b=[0.6]), nsds.newton_impact(0.7), on="mass"),
    )


def self_excited(e=0.5, x=-1.0, v=0.0):
    """``x'' - 0.2 x' + x = 0``, ``x <= 1``: what the negative damping brings in, impacts take out."""
    return nsds.system(
        mass=nsds.lagrangian_linear(M=[[1.0]], K=[[1.0]], C=[[-0.2]], q=[x], v=[v]),
        stop=nsds.interaction(nsds.lagrangian_linear_relation(H=[[-1.0]], b=[1.0]), nsds.newton_impact(e), on="mass"),
    )


def friction_oscillator(f, omega, x, v, phase):
    """``x'' + x + f sgn(x') = cos(omega t + phase)``."""
    return nsds.system(
        mass=nsds.lagrangian_linear(M=[[1.0]], K=[[1.0]], fext=drive, q=[x], v=[v], z=[omega, phase]),
        friction=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.dry_friction(f), on="mass"),
    )


def free_motion(zeta, omega, phase, x, v, t):
    """State after t of the free motion from (x, v) at the forcing's phase."""
    response = 1.0 / (1.0 - omega**2 + 2j * zeta * omega)
    steady = lambda time: np.array([(response * np.exp(1j * (omega * time + phase)) * factor).real for factor in (1.0, 1j * omega)])  # noqa: E731
    return expm(np.array([[0.0, 1.0], [-1.0, -2 * zeta]]) * t) @ (np.array([x, v]) - steady(0.0)) + steady(t)


def single_impact_orbit(zeta, omega, r, n, sigma, after):
    """Orbit with one impact every n periods, of the larger impact speed: (speed, phase of the forcing and state at the part ``after`` of
    the orbit after the impact, trace, determinant); Shaw and Holmes (1983), by the formulas of the case in the reference collection.
    """
    T = 2 * math.pi * n / omega
    E = expm(np.array([[0.0, 1.0], [-1.0, -2 * zeta]]) * T)
    k0, k1 = np.linalg.solve(E - np.eye(2), [r * E[0, 1], 1 + r * E[1, 1]])
    amplitude = 1 / math.hypot(1 - omega**2, 2 * zeta * omega)
    a, b, c = k0**2 + (k1 / omega) ** 2, -2 * sigma * k0, sigma**2 - amplitude**2
    v = (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a)
    phase = math.atan2(k1 * v / omega, sigma - k0 * v) + math.atan2(2 * zeta * omega, 1 - omega**2)
    before, behind = -sigma - 2 * zeta * v + math.cos(phase), -sigma + 2 * zeta * r * v + math.cos(phase)
    monodromy = np.array([[-r, 0.0], [(behind + r * before) / v, -r]]) @ E
    state = free_motion(zeta, omega, phase, sigma, -r * v, after * T)
    return v, phase + omega * after * T, state, np.trace(monodromy), np.linalg.det(monodromy)


def den_hartog(f, omega, after):
    """Motion without sticking: (largest x, phase of the forcing and state at the part ``after`` of half a period after it, trace and
    determinant of the map of half a period); Den Hartog (1931), by the formulas of the case in the reference collection.
    """
    h = math.pi / omega
    U, V = math.sin(h) / (omega * (1 + math.cos(h))), 1 / (1 - omega**2)
    X = math.sqrt(V**2 - (f * U) ** 2)
    E = np.array([[math.cos(h), math.sin(h)], [-math.sin(h), math.cos(h)]])
    c, s = X, -f * math.sin(h) / (1 + math.cos(h))  # the steady motion is c cos(omega t) - s sin(omega t) / omega
    phase = math.atan2(s / (V * omega), c / V)
    before, behind = X + f - math.cos(phase), X - f - math.cos(phase)
    half = -np.diag([1.0, behind / before]) @ E
    t = after * h
    free = np.array([X - f - c, s])
    turn = np.array([[math.cos(t), math.sin(t)], [-math.sin(t), math.cos(t)]])
    state = turn @ free + [f + V * math.cos(omega * t + phase), -V * omega * math.sin(omega * t + phase)]
    return X, phase + omega * t, state, np.trace(half), np.linalg.det(half)


R, C, L, PERIOD = 22.0, 47e-6, 20e-3, 400e-6  # of the converter
GAIN, REFERENCE, RAMP = 8.4, 11.3, (3.8, 4.4)


def ramp(t, z, out):
    out[0] = -GAIN * REFERENCE - RAMP[0] - RAMP[1] * ((t / PERIOD) % 1.0)


def buck(v_in, v, i):
    """Voltage-mode buck converter: the switch is on while ``GAIN (v - REFERENCE)`` is below the ramp."""
    return nsds.system(
        plant=nsds.first_order_linear([[-1 / (R * C), 1 / C], [-1 / L, 0]], x=[v, i]),
        switch=nsds.interaction(
            nsds.first_order_linear_relation(C=[[GAIN, 0.0]], B=[[0.0], [1 / L]], e=ramp), nsds.relay(0.0, v_in), on="plant"
        ),
    )
