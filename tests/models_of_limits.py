"""Models of all families whose event-driven motion is the limit of time stepping: one list for the test of orders and for pictures of it.

Each model ends at a time at which nothing happens, so that the error of time stepping there is a power of its step.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import nsds


class Limit(NamedTuple):
    """A model, the scheme that is the limit, and what approaches it."""

    name: str
    build: Callable  # () -> record
    t_end: float
    state: tuple  # (part, field), ...: what is compared at t_end
    stepping: np.ndarray  # scheme of time stepping
    steps: tuple  # its h, falling
    order: float  # of its error
    events: np.ndarray = nsds.event_driven(rtol=1e-11, atol=1e-13)


def errors_of(limit):
    """Largest difference at t_end of time stepping with each h from the event-driven motion, relative to the largest state there."""
    exact = _end_of(limit, limit.events, limit.t_end / 8)
    return np.array([abs(_end_of(limit, limit.stepping, h) - exact).max() / abs(exact).max() for h in limit.steps])


def slope_of(limit, errors):
    """Order of the errors: slope of the straight line through their logarithms."""
    return np.polyfit(np.log(limit.steps), np.log(errors), 1)[0]


def _end_of(limit, scheme, h):
    last = nsds.simulate(limit.build(), t_end=limit.t_end, h=h, scheme=scheme, save_every=10**9)[-1]
    return np.concatenate([np.ravel(last[part][field]) for part, field in limit.state])


def _clamped_circuit():
    """A capacitor and a coil, whose current a diode keeps from turning."""
    return nsds.linear_complementarity_system([[0, -1.0], [1.0, 0]], [[0], [1.0]], [[0, 1.0]], x=[1.0, 0.0], b=[0.2, -0.1])


def _relay_loop():
    return nsds.linear_complementarity_system(
        [[0, 1.0, 0], [0, 0, 1.0], [0, -3.0, -2.0]], [[0], [0], [1.0]], [[1.0, 0, 0]], x=[0, 0.675, 0], law=nsds.relay()
    )


PLANT = (("plant", "x"),)
H = (4e-3, 2e-3, 1e-3, 5e-4)
LIMITS = [
    Limit("diode and coil", _clamped_circuit, 5.0, PLANT, nsds.euler_moreau(), H, 1.0),
    Limit("relay in a loop of third order", _relay_loop, 5.0, PLANT, nsds.euler_moreau(), H, 1.0),
]
