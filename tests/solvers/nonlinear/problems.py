"""Classical complementarity problems of user functions, written down from the literature, with their solutions.

Kojima and Shindo 1986; Josephy 1979; Mathiesen 1987; Murphy, Sherali and Soyster 1982 (Nash–Cournot); Watson 1979; Billups 1995;
Chandrasekaran (Murty 1988); Hock and Schittkowski 1981 (optimality conditions of programmes 34, 35, 66 and 76).
"""

import math
from typing import NamedTuple

import numpy as np

_C, _BETA = np.array([10.0, 8.0, 6.0, 4.0, 2.0]), np.array([1.2, 1.1, 1.0, 0.9, 0.8])
_ROOT = math.sqrt(1.5)


class Case(NamedTuple):
    """F, first guesses, bounds, and all solutions known; None: any that satisfies the definition."""

    F: object
    guesses: tuple
    solutions: tuple | None
    lower: object = 0.0
    upper: object = math.inf


def kojima_shindo(z, out):
    out[0] = 3 * z[0] ** 2 + 2 * z[0] * z[1] + 2 * z[1] ** 2 + z[2] + 3 * z[3] - 6
    out[1] = 2 * z[0] ** 2 + z[0] + z[1] ** 2 + 10 * z[2] + 2 * z[3] - 2
    out[2] = 3 * z[0] ** 2 + z[0] * z[1] + 2 * z[1] ** 2 + 2 * z[2] + 9 * z[3] - 9
    out[3] = z[0] ** 2 + 3 * z[1] ** 2 + 2 * z[2] + 3 * z[3] - 3


def josephy(z, out):
    out[0] = 3 * z[0] ** 2 + 2 * z[0] * z[1] + 2 * z[1] ** 2 + z[2] + 3 * z[3] - 6
    out[1] = 2 * z[0] ** 2 + z[0] + z[1] ** 2 + 3 * z[2] + 2 * z[3] - 2
    out[2] = 3 * z[0] ** 2 + z[0] * z[1] + 2 * z[1] ** 2 + 2 * z[2] + 3 * z[3] - 1
    out[3] = z[0] ** 2 + 3 * z[1] ** 2 + 2 * z[2] + 3 * z[3] - 3


def mathiesen(z, out):
    """A Walrasian equilibrium; solutions are (t, 0, 0, 0), t from 0 to 3, and perhaps others."""
    out[0] = -z[1] + z[2] + z[3]
    out[1] = z[0] - (4.5 * z[2] + 2.7 * z[3]) / (z[1] + 1)
    out[2] = 5 - z[0] - (0.5 * z[2] + 0.3 * z[3]) / (z[2] + 1)
    out[3] = 3 - z[0]


def nash_cournot(z, out):
    """Five firms: marginal cost minus marginal revenue; the price is not defined where nothing is produced."""
    total = 0.0
    for i in range(5):
        total += z[i]
    price = (5000.0 / total) ** (1 / 1.1)
    for i in range(5):
        out[i] = _C[i] + (z[i] / 5.0) ** (1 / _BETA[i]) - price * (1 - z[i] / (1.1 * total))


def watson(z, out):
    """The gradient of ``exp(sum (z_i - i + 2)^2)``."""
    s = 0.0
    for i in range(5):
        s += (z[i] - i + 1) ** 2
    for i in range(5):
        out[i] = 2 * (z[i] - i + 1) * math.exp(s)


def billups(z, out):
    """Made so that merit functions have a minimum near 0 that solves nothing."""
    out[0] = (z[0] - 1) ** 2 - 1.01


def chandrasekaran(z, out):
    """Pivoting methods take 2^n steps."""
    for i in range(8):
        out[i] = z[i] - 1
        for j in range(i + 1, 8):
            out[i] += 2 * z[j]


def hock_schittkowski_34(z, out):
    """``min -x_1``, ``x_2 >= exp x_1``, ``x_3 >= exp x_2``; z = (x, multipliers)."""
    out[0] = -1 + z[3] * math.exp(z[0])
    out[1] = -z[3] + z[4] * math.exp(z[1])
    out[2] = -z[4]
    out[3] = z[1] - math.exp(z[0])
    out[4] = z[2] - math.exp(z[1])


def hock_schittkowski_35(z, out):
    out[0] = -8 + 4 * z[0] + 2 * z[1] + 2 * z[2] + z[3]
    out[1] = -6 + 4 * z[1] + 2 * z[0] + z[3]
    out[2] = -4 + 2 * z[2] + 2 * z[0] + 2 * z[3]
    out[3] = 3 - z[0] - z[1] - 2 * z[2]


def hock_schittkowski_66(z, out):
    out[0] = -0.8 + z[3] * math.exp(z[0])
    out[1] = -z[3] + z[4] * math.exp(z[1])
    out[2] = 0.2 - z[4]
    out[3] = z[1] - math.exp(z[0])
    out[4] = z[2] - math.exp(z[1])


def hock_schittkowski_76(z, out):
    out[0] = 2 * z[0] - z[2] - 1 + z[4] + 3 * z[5]
    out[1] = z[1] - 3 + 2 * z[4] + z[5] - z[6]
    out[2] = 2 * z[2] - z[0] + z[3] + 1 + z[4] + 2 * z[5] - 4 * z[6]
    out[3] = z[3] + z[2] - 1 + z[4] - z[5]
    out[4] = 5 - z[0] - 2 * z[1] - z[2] - z[3]
    out[5] = 4 - 3 * z[0] - z[1] - 2 * z[2] + z[3]
    out[6] = z[1] + 4 * z[2] - 1.5


def _of_powers(z, out):
    """Doubly bounded and free unknowns: ``z_1^3 + z_2 = 4`` is an equation, z_2 is between 0 and 1, z_3 presses on its upper bound."""
    out[0] = z[0] ** 3 + z[1] - 4
    out[1] = z[1] - 0.25 * z[0]
    out[2] = z[2] - 5 + z[1]


_BOUNDED = [100.0, 100.0, 10.0, math.inf, math.inf]
CASES = {
    "Kojima-Shindo": Case(kojima_shindo, ([0.0] * 4, [1.0] * 4, [100.0] * 4, [-5.0] * 4), ([_ROOT, 0, 0, 0.5], [1, 0, 3, 0])),
    "Josephy": Case(josephy, ([0.0] * 4, [1.0] * 4, [100.0] * 4, [1, 0, 0, 0]), ([_ROOT, 0, 0, 0.5],)),
    "Mathiesen": Case(mathiesen, ([1.0] * 4, [0.0] * 4, [10.0] * 4), None),
    "Nash-Cournot": Case(
        nash_cournot, ([10.0] * 5, [1.0] * 5, [1.0, 10, 100, 1, 10]), ([36.93251, 41.81814, 43.70658, 42.65923, 39.17895],)
    ),
    "Watson": Case(watson, ([0.0] * 5, [1.0] * 5, [2, 0, 1, 3, 3]), ([0, 0, 1, 2, 3],)),
    "Billups": Case(billups, ([0.0], [0.5], [5.0]), ([1 + math.sqrt(1.01)],)),
    "Chandrasekaran": Case(chandrasekaran, ([0.0] * 8, [1.0] * 8), ([0.0] * 7 + [1.0],)),
    "Hock-Schittkowski 34": Case(
        hock_schittkowski_34, ([0, 1.05, 2.9, 0, 0],), ([math.log(math.log(10)), math.log(10), 10, 1 / math.log(10), 0.1 / math.log(10)],),
        upper=_BOUNDED,
    ),
    "Hock-Schittkowski 35": Case(hock_schittkowski_35, ([0.5] * 3 + [0.0],), ([4 / 3, 7 / 9, 4 / 9, 2 / 9],)),
    "Hock-Schittkowski 66": Case(
        hock_schittkowski_66, ([0, 1.05, 2.9, 0, 0],), ([0.1841264879, 1.202167873, 3.327322322, 0.6654644, 0.2],), upper=_BOUNDED
    ),
    "Hock-Schittkowski 76": Case(hock_schittkowski_76, ([0.5] * 4 + [0.0] * 3,), None),
    "bounds of all kinds": Case(
        _of_powers, ([1.0, 0.5, 0.0], [-3.0, 0.0, 2.0]), None, lower=[-math.inf, 0.0, -1.0], upper=[math.inf, 1.0, 3.0]
    ),
}  # fmt: skip
