"""Forces that jump at times nobody declares: found to rounding, in few steps, against the exact motion piece by piece."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nsds

_STEPS, _STEPS_A_JUMP = 12, 6  # without jumps; up to one, across it, and on


def _stairs(t, z, out):
    """z[0] = k times follow, and k forces from then on, in units of the last number of z; sin 3 t is added."""
    k = int(z[0])
    out[0] = 0.0
    for i in range(k):
        if t >= z[1 + i]:
            out[0] = z[1 + k + i]
    out[0] = (out[0] + math.sin(3.0 * t)) * z[z.size - 1]


def _exact(times, forces, omega, end):
    """q, v of ``q'' + omega² q = force + sin 3 t`` from rest, by the closed form of each piece."""

    def forced(t):
        return np.array([math.sin(3.0 * t), 3.0 * math.cos(3.0 * t)]) / (omega**2 - 9.0)

    state, now, force = np.zeros(2), 0.0, 0.0
    for until, following in [*zip(times, forces, strict=True), (end, 0.0)]:
        free = state - forced(now) - [force / omega**2, 0.0]
        c, s = math.cos(omega * (until - now)), math.sin(omega * (until - now))
        state = np.array([c * free[0] + s * free[1] / omega, c * free[1] - s * omega * free[0]]) + forced(until) + [force / omega**2, 0.0]
        now, force = until, following
    return state


@settings(max_examples=40)
@given(
    st.dictionaries(st.integers(1, 27), st.integers(-5, 5), min_size=1, max_size=6),
    st.floats(-0.01, 0.01),
    st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_forces_jump_where_they_do(jumps, shift, unit):
    times, forces = [k / 14 + shift for k in sorted(jumps)], [float(jumps[k]) for k in sorted(jumps)]  # no pulse between nodes of a step
    mass = nsds.lagrangian_linear(
        M=[[1.0 / unit]], K=[[4.0 / unit]], fext=_stairs, q=[0.0], v=[0.0], z=[len(times), *times, *forces, 1.0 / unit]
    )
    rows = nsds.simulate(nsds.system(mass=mass), t_end=2.0, h=2.0, scheme=nsds.event_driven())
    q, v = rows["mass"]["q"][-1, 0], rows["mass"]["v"][-1, 0]
    wanted = _exact(times, forces, 2.0, 2.0)
    assert abs(np.array([q, v]) - wanted).max() < 1e-12 * max(1.0, abs(np.array(forces)).max())
    assert rows["n_iter"].sum() <= _STEPS + _STEPS_A_JUMP * len(times)


def test_a_jump_of_one_of_two_forces_and_kinks():
    def kinked(t, z, out):
        out[0] = abs(t - z[0])
        out[1] = 1.0 if t > z[1] else 0.0

    mass = nsds.lagrangian_linear(M=np.eye(2), fext=kinked, q=[0.0, 0.0], v=[0.0, 0.0], z=[0.3, 0.7])
    last = nsds.simulate(nsds.system(mass=mass), t_end=1.0, h=1.0, scheme=nsds.event_driven())["mass"][-1]
    assert last["v"] == pytest.approx([(0.3**2 + 0.7**2) / 2, 0.3], abs=1e-13)
    assert last["q"][1] == pytest.approx(0.3**2 / 2, abs=1e-13)
