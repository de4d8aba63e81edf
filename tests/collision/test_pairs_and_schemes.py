"""Every pair of shapes under every scheme with detection: what is set down rests, what is dropped comes back, what is thrown beside misses.

Of time stepping the impact is seen up to a step late, and the jump of velocity, ``(1 + e) g tau``, by as much: that is the bound of the
height after it. Smooth flight under a constant force is that of the parabola, up to ``g h t / 2`` of schemes of first order.
"""

import numpy as np
import pytest

import nsds
from nsds.model.system_kinds import NEWTON_EULER
from nsds.schemes.table import SCHEMES
from tests.pairs import DROP, PAIRS, E, G, beside, heights, scene

SCHEMES_OF_BODIES = sorted(name for name, scheme in SCHEMES.items() if NEWTON_EULER in scheme.modules)
H, REST, END = 2e-3, 0.2, 0.45
TAU = np.sqrt(2 * DROP / G)  # of the fall


def _run(system, scheme, t_end):
    h = H if scheme != "event_driven" else 0.05
    return nsds.simulate(system, t_end=t_end, h=h, scheme=getattr(nsds, scheme)(), progress=False)


@pytest.mark.parametrize("scheme", SCHEMES_OF_BODIES)
@pytest.mark.parametrize(("above", "below"), PAIRS)
def test_what_is_set_down_rests(above, below, scheme):
    height, rate = heights(above, _run(scene(above, below), scheme, REST))
    assert abs(height).max() <= (1e-9 if scheme == "event_driven" else 1e-5)
    assert abs(rate[-1]) <= (1e-9 if scheme == "event_driven" else 1e-3)


@pytest.mark.parametrize("scheme", SCHEMES_OF_BODIES)
@pytest.mark.parametrize(("above", "below"), PAIRS)
def test_what_is_dropped_comes_back_as_its_law_says(above, below, scheme):
    height, rate = heights(above, _run(scene(above, below, height=DROP), scheme, END))
    s = END - TAU
    assert s < 2 * E * TAU  # before it strikes again
    late = 0.0 if scheme == "event_driven" else (1 + E) * G * TAU * H
    assert abs(height[-1] - (E * G * TAU * s - G * s**2 / 2)) <= late + G * H * END / 2 * (late > 0) + 1e-9
    assert abs(rate[-1] - (E * G * TAU - G * s)) <= (1e-9 if late == 0 else 2 * G * H)


@pytest.mark.parametrize("scheme", SCHEMES_OF_BODIES)
@pytest.mark.parametrize(("above", "below"), PAIRS)
def test_what_is_thrown_beside_misses(above, below, scheme):
    x, speed = beside(above, below)
    rows = _run(scene(above, below, x=x, height=DROP, speed=speed), scheme, END)
    height, _ = heights(above, rows)
    assert abs(height[-1] - (DROP + speed * END - G * END**2 / 2)) <= (1e-9 if scheme == "event_driven" else G * H * END)
    assert abs(rows["contacts"]["lambda"]).max() == 0.0
    np.testing.assert_allclose(rows["body"]["q"][:, 0], x, rtol=0, atol=1e-12)
