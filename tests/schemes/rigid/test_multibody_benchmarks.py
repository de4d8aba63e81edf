"""Mechanisms of the benchmark collections of multibody dynamics: Andrews' squeezer, rows of four-bars, Bricard's overconstrained loop."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsds
from nsds import joints

G, Z, EQUAL = 9.81, [0, 0, 1], nsds.equality()


# -------------------------------------------------------------------------------------------------------------------- Andrews' squeezer
class Squeezer(NamedTuple):
    """Lengths (m) and the stiffness (N/m) of Hairer and Wanner, Solving Ordinary Differential Equations II, VII.7."""

    A: tuple = (-0.06934, -0.00227)
    B: tuple = (-0.03635, 0.03273)
    C: tuple = (0.014, 0.072)
    c0: float = 4530.0
    l0: float = 0.07785
    d: float = 0.028
    da: float = 0.0115
    e: float = 0.02
    ea: float = 0.01421
    rr: float = 0.007
    ra: float = 0.00092
    sa: float = 0.01874
    sb: float = 0.01043
    sc: float = 0.018
    sd: float = 0.02
    ta: float = 0.02308
    tb: float = 0.00916
    u: float = 0.04
    ua: float = 0.01228
    ub: float = 0.00449
    zf: float = 0.02
    zt: float = 0.04
    fa: float = 0.01421


MASSES = [0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498]
MOMENTS = [2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5]
START = np.array([-0.0617138900142764, 0.0, 0.455279819163070, 0.222668390165886, 0.487364979543843, -0.222668390165886, 1.23054744454982])
# After 0.03 s, to all digits (Test Set for Initial Value Problem Solvers, release 2.4, II-3).
END = [15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948, 0.5244099658805304, 0.5347301163226948,
       1.048080741042263]  # fmt: skip


def squeezer():
    """Seven bodies in the plane on ten hinges, a spring, and a moment on the first."""
    s, (beta, theta, gamma, phi, delta, omega, epsilon) = Squeezer(), START
    A, B = np.array(s.A), np.array(s.B)

    def ray(angle):
        return np.array([math.cos(angle), math.sin(angle)])

    def down(angle):
        return np.array([math.sin(angle), -math.cos(angle)])

    pin = s.rr * ray(beta)
    P = pin - s.d * ray(beta + theta)
    four, six = A + s.zt * ray(delta), A + s.u * down(epsilon)
    centres = [
        s.ra * ray(beta), pin - s.da * ray(beta + theta), B + s.sa * down(gamma) + s.sb * ray(gamma),
        four + (s.e - s.ea) * down(phi + delta), A + s.ta * ray(delta) - s.tb * down(delta),
        six + (s.zf - s.fa) * ray(omega + epsilon), A + s.ua * down(epsilon) - s.ub * ray(epsilon),
    ]  # fmt: skip
    angles = [beta, beta + theta, gamma, phi + delta, delta, omega + epsilon, epsilon]
    q = np.column_stack([centres, angles])
    moments = np.zeros(7)
    moments[0] = 0.033
    at = [([0, 0], "k[0]"), (pin, ("k[0]", "k[1]")), (P, ("k[1]", "k[2]")), (P, ("k[1]", "k[3]")), (P, ("k[1]", "k[5]")), (B, "k[2]"),
          (four, ("k[3]", "k[4]")), (A, "k[4]"), (six, ("k[5]", "k[6]")), (A, "k[6]")]  # fmt: skip
    hinges = {f"hinge_{i}": nsds.interaction(joints.hinge([*x, 0], Z), EQUAL, on=on) for i, (x, on) in enumerate(at)}
    spring = joints.distance([*(B + s.sd * ray(gamma) + s.sc * down(gamma)), 0], [*s.C, 0], length=s.l0)
    return nsds.system(
        k=nsds.planar_bodies(MASSES, MOMENTS, q=q, v=np.zeros((7, 3)), mext=moments), **hinges,
        spring=nsds.interaction(spring, nsds.spring_damper(s.c0), on="k[2]"),
    )  # fmt: skip


def test_andrews_squeezer_is_where_it_was_published():
    """After two and a half turns of its crank, within 30 ms."""
    far = []
    for h in (2e-5, 1e-5):
        rows = nsds.simulate(squeezer(), t_end=0.03, h=h)
        assert (rows["status"] == 0).all()
        assert max(abs(rows[f"hinge_{i}"]["y"]).max() for i in range(10)) < 1e-13
        beta, second, gamma, fourth, delta, sixth, epsilon = nsds.in_plane(rows["k"])[0][-1, :, 2]
        far.append(abs(np.array([beta, second - beta, gamma, fourth - delta, delta, sixth - epsilon, epsilon]) - END).max())
    assert far[1] < 1e-4
    assert far[0] / far[1] == pytest.approx(4.0, abs=0.1)


# ------------------------------------------------------------------------------------------------------------------- rows of four-bars
def four_bars(n, rate):
    """n windows of rods of 1 m and 1 kg in a vertical plane, upright, on hinges of five rows each."""
    c, s, rod = 0.0, 1.0, [1e-3, 1 / 12, 1 / 12]
    quarter, parts = [math.sqrt(0.5), 0, 0, math.sqrt(0.5)], {}
    for i in range(n + 1):
        parts[f"rod{i}"] = nsds.rigid_bodies(1.0, rod, q=[i + c / 2, s / 2, 0, *quarter], v=[-rate * s / 2, rate * c / 2, 0, 0, 0, rate])
        parts[f"foot{i}"] = nsds.interaction(joints.hinge([i, 0, 0], Z), EQUAL, on=f"rod{i}")
    for i in range(n):
        parts[f"bar{i}"] = nsds.rigid_bodies(1.0, rod, q=[i + 0.5 + c, s, 0, 1, 0, 0, 0], v=[-rate * s, rate * c, 0, 0, 0, 0])
        parts[f"left{i}"] = nsds.interaction(joints.hinge([i + c, s, 0], Z), EQUAL, on=(f"bar{i}", f"rod{i}"))
        parts[f"right{i}"] = nsds.interaction(joints.hinge([i + 1 + c, s, 0], Z), EQUAL, on=(f"bar{i}", f"rod{i + 1}"))
    return nsds.system(gravity=[0, -G, 0], **parts)


@pytest.mark.parametrize("n", [2, 5])
def test_a_row_of_four_bars_swings_through_its_flat_positions(n):
    """It is a pendulum: ``((n + 1) / 3 + n) theta'' = -((n + 1) / 2 + n) g cos theta``; flat it could come apart."""
    ratio = ((n + 1) / 2 + n) / ((n + 1) / 3 + n) * G
    exact = solve_ivp(lambda t, x: [x[1], -ratio * math.cos(x[0])], (0, 2.0), [math.pi / 2, -1.0], rtol=1e-11, atol=1e-12).y[0, -1]
    assert exact < -math.pi / 2  # it has passed the right side
    far = []
    for h in (4e-3, 2e-3):
        rows = nsds.simulate(four_bars(n, -1.0), t_end=2.0, h=h)
        assert (rows["status"] == 0).all()
        ledger = nsds.energy(four_bars(n, -1.0), rows)
        total = ledger["kinetic"] + ledger["potential"]
        assert abs(total - total[0]).max() < 2e-2 * n
        angle = np.unwrap(2 * np.arctan2(rows["rod0"]["q"][:, 6], rows["rod0"]["q"][:, 3]))
        far.append(abs(angle[-1] - exact))
    assert far[1] < 1e-3
    assert far[0] / far[1] == pytest.approx(4.0, abs=0.4)


# ------------------------------------------------------------------------------------------------------------------------ Bricard's loop
# Along edges of a cube, with the axes of the hinges across both edges: five rods move, the sixth, from the last corner on, is held.
CORNERS = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1]], float)
AXES = np.array([[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]], float)
DOWN = np.array([0, -G, 0])
ACROSS = np.array([np.cross(axis, np.eye(3)).T for axis in AXES])


def rod_inertia(direction):
    """Of a thin rod of 1 m and 1 kg, and a little about itself."""
    return (np.eye(3) - np.outer(direction, direction)) / 12 + 1e-3 * np.outer(direction, direction)


def bricard():
    parts = {}
    for i in range(5):
        d = CORNERS[i + 1] - CORNERS[i]
        parts[f"rod{i}"] = nsds.rigid_bodies(1.0, rod_inertia(d), q=[*(CORNERS[i] + d / 2), 1, 0, 0, 0], v=[0] * 6)
    sides = ["rod0", *((f"rod{i}", f"rod{i - 1}") for i in range(1, 5)), "rod4"]
    hinges = {f"hinge_{i}": nsds.interaction(joints.hinge(CORNERS[i], AXES[i]), EQUAL, on=on) for i, on in enumerate(sides)}
    return nsds.system(gravity=DOWN, **parts, **hinges)


class Loop:
    """The same by the angle of its first hinge: the other angles close the loop."""

    def __init__(self):
        self.others = np.zeros(4)

    def chain(self, angles):
        """(turns of the rods, their centres, the last corner, the last axis as the last rod has it)."""
        turn, x, turns, centres = np.eye(3), CORNERS[0], [], []
        for i, angle in enumerate(angles):
            turn = turn @ (np.eye(3) + math.sin(angle) * ACROSS[i] + (1 - math.cos(angle)) * ACROSS[i] @ ACROSS[i])
            way = turn @ (CORNERS[i + 1] - CORNERS[i])
            turns.append(turn)
            centres.append(x + way / 2)
            x = x + way
        return turns, np.array(centres), x, turn @ AXES[5]

    def gap(self, angles):
        """How far the loop is open: six numbers of rank four."""
        _, _, x, axis = self.chain(angles)
        return np.concatenate([x - CORNERS[5], axis - AXES[5]])

    def close(self, first):
        """Angles of all rods."""
        angles = np.array([first, *self.others])
        J = np.array([(self.gap(angles + 1e-6 * e) - self.gap(angles - 1e-6 * e)) / 2e-6 for e in np.eye(5)[1:]]).T
        inverse = np.linalg.pinv(J, rcond=1e-6)
        for _ in range(20):
            step = inverse @ self.gap(angles)
            angles[1:] -= step
            if abs(step).max() < 1e-10:
                break
        self.others = angles[1:]
        return angles

    def mass_and_height(self, first):
        """(mass for the rate of the first angle, potential energy), rates by central differences."""
        d = 1e-5
        (turns_0, centres_0, *_), (turns_1, centres_1, *_) = self.chain(self.close(first - d)), self.chain(self.close(first + d))
        turns, centres, *_ = self.chain(self.close(first))
        mass = ((centres_1 - centres_0) ** 2).sum() / (2 * d) ** 2
        for i, (R, R0, R1) in enumerate(zip(turns, turns_0, turns_1, strict=True)):
            spin = R.T @ (R1 - R0) / (2 * d)
            w = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
            mass += w @ rod_inertia(CORNERS[i + 1] - CORNERS[i]) @ w
        return mass, -(centres @ DOWN).sum()

    def rate(self, t, x):
        """``m theta'' = -m' theta'^2 / 2 - V'``."""
        d = 1e-4
        (m, _), (m_0, V_0), (m_1, V_1) = (self.mass_and_height(x[0] + e) for e in (0.0, -d, d))
        return [x[1], (-(m_1 - m_0) / (2 * d) * x[1] ** 2 / 2 - (V_1 - V_0) / (2 * d)) / m]


def test_bricards_loop_moves_as_its_one_coordinate_says():
    """Thirty rows of hinges on thirty coordinates, and yet it moves."""
    exact = solve_ivp(Loop().rate, (0, 0.6), [0.0, 0.0], rtol=1e-7, atol=1e-9, method="DOP853").y[0, -1]
    far = []
    for h in (4e-3, 2e-3):
        rows = nsds.simulate(bricard(), t_end=0.6, h=h)
        assert (rows["status"] == 0).all()
        assert max(abs(rows[f"hinge_{i}"]["y"]).max() for i in range(6)) < 1e-11
        ledger = nsds.energy(bricard(), rows)
        total = ledger["kinetic"] + ledger["potential"]
        assert abs(total - total[0]).max() < 1e-3
        p = rows["rod0"]["q"][-1, 3:]
        far.append(abs(2 * math.atan2(p[1], p[0]) - exact))
    assert abs(exact) > 0.3
    assert far[1] < 3e-6
    assert far[0] / far[1] == pytest.approx(4.0, abs=0.5)
