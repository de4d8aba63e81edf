"""Forces that jump at times nobody declares: found to rounding, in few steps, against the exact motion piece by piece."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds.schemes.event_driven import time_dependent_forces
from nsds.schemes.event_driven.tables import JUMPS, place_flow
from nsds.schemes.memory import Allocator
from nsds.schemes.problem.rows import CONSTRAINT
from tests.memories import memory_with
from tests.strategies import examples

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


@examples(40)
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


def _square_wave(t, z, out):
    """1 for the part z[1] of a period z[0], that begins z[2] late, then -1."""
    out[0] = 1.0 if (t / z[0] - z[2]) % 1.0 < z[1] else -1.0


@examples(25)
@given(st.floats(0.2, 0.5), st.floats(0.2, 0.8), st.floats(0.0, 0.999), st.booleans())
def test_jumps_that_come_again_are_found_to_rounding_in_few_steps(period, part, phase, at_rows):
    """Also where rows begin at the jumps: they then lie beside the ends of steps, or on them."""
    phase = 0.0 if at_rows else phase
    periods, omega = 30, 2.0
    mass = nsds.lagrangian_linear(M=[[1.0]], K=[[omega**2]], fext=_square_wave, q=[0.0], v=[0.0], z=[period, part, phase])
    rows = nsds.simulate(nsds.system(mass=mass), t_end=periods * period, h=period, scheme=nsds.event_driven())
    state, now, up = np.zeros(2), 0.0, (-phase) % 1.0 < part
    offsets = sorted([phase % 1.0, (phase + part) % 1.0])
    times = [(k + offset) * period for k in range(periods) for offset in offsets if k + offset > 0.0]
    for until in [*times, periods * period]:
        rest, angle = np.array([(1.0 if up else -1.0) / omega**2, 0.0]), omega * (until - now)
        c, s = math.cos(angle), math.sin(angle)
        state = np.array([[c, s / omega], [-s * omega, c]]) @ (state - rest) + rest
        now, up = until, not up
    assert abs(np.array([rows["mass"]["q"][-1, 0], rows["mass"]["v"][-1, 0]]) - state).max() < 3e-13 * periods * max(1.0, now)
    assert rows["n_iter"].sum() <= _STEPS_A_JUMP * len(times) + 2 * periods + _STEPS


class Foretelling:
    """What is foretold, in plain Python: jumps so far that may come again, and after what time."""

    def __init__(self):
        self.times, self.ahead, self.recurrence = [], [], math.inf

    def next(self, now):
        while self.ahead and self.ahead[0] <= now:
            self.ahead.pop(0)
        return self.ahead[0] if self.ahead else math.inf

    def note(self, time, tol):
        self.times = [*(self.times[JUMPS // 2 :] if len(self.times) == JUMPS else self.times), time]
        if self.ahead:
            self.ahead.append(time + self.recurrence)
            return
        gaps, self.recurrence = np.array(self.times), math.inf
        for cycle in range(1, (len(gaps) - 1) // 3 + 1):
            again = gaps[-2 * cycle :] - gaps[-3 * cycle : -cycle]
            if (abs(again - again[-1]) <= tol).all():
                self.recurrence = again[-1]
                self.ahead = list(gaps[-cycle:] + again[-1])
                return


def seems_to_recur_too_soon(gaps):
    """Whether a part of the jumps that recur with these gaps looks like cycles that are none."""
    period = next(n for n in range(1, len(gaps) + 1) if gaps == np.resize(gaps[:n], len(gaps)).tolist() and len(gaps) % n == 0)
    times = np.cumsum(np.resize(gaps, 4 * len(gaps)))
    for cycle in (n for n in range(1, len(gaps)) if n % period):
        again = times[cycle:] - times[:-cycle]
        if any(np.ptp(again[i : i + 2 * cycle]) == 0 for i in range(again.size - 2 * cycle + 1)):
            return True
    return False


@examples(60)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 99), st.sampled_from([2.0**-9, 1.0, 2.0**9]))
def test_jumps_are_foretold(gaps, count, unit):
    """As the twin says, and rightly from the third cycle on, unless a part of a cycle seems to be one."""
    work, iwork = Allocator(1), Allocator(1)
    p, twin, wrong = place_flow(1, 2, np.zeros(0, CONSTRAINT), False, work, iwork)[0], Foretelling(), 0
    memory = memory_with(work.array()[0], iwork.array(np.int64)[0])
    time_dependent_forces.forget_jumps(p, memory)
    now = 0.0
    for k, time in enumerate(unit * np.cumsum(np.resize(gaps, count))):
        foretold = time_dependent_forces.next_jump(now, p, memory)
        assert foretold == twin.next(now)
        while foretold < time:  # there is none
            now, foretold = foretold, time_dependent_forces.next_jump(foretold, p, memory)
            assert foretold == twin.next(now)
        wrong += k > 9 * len(gaps) and foretold != time
        if foretold == time:
            memory.iwork[p["foretold"]] += 1
            twin.ahead.pop(0)
        time_dependent_forces.note_jump(time, p, memory)
        twin.note(time, 1e-9 * unit)
        assert memory.work[p["recurrence"]] == twin.recurrence
        now = time
    assert wrong == 0 or seems_to_recur_too_soon(gaps)
