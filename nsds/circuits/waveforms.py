"""Sources and switches of circuits as functions of time, for kernels; records store their numbers in z.

z begins with a head: number of sources k, rows m, switches, where in z waves, constants (m), weights, bounds of lambda (2, m) and switches
begin, and the times before and after t between which a rate is the mean one, 0 but in steps of a scheme that evaluates rows once a step
(see `set_window`). A wave is one of the parts of a `nsds.circuits.waves.Wave`: its kind, the count of its numbers, and these.
Weights are compressed columns, one of each source: where they begin (k + 1), then their rows, the weights of u, and those of its rate.
A switch is its row, the threshold, the bounds of lambda when closed, a constant of its control, its hysteresis, whether it is closed at the
start, how many sources its control has, and of each where in z its wave begins, and its weight: with hysteresis of one source, as what its
control was last tells whether it is closed.
"""

import math

import numpy as np

from nsds._jit import kernel, tiny
from nsds.maths.times import ROUNDED
from nsds.model.fields import LARGEST

HEAD = 10
K, M, SWITCHES, WAVES, CONSTANTS, WEIGHTS, BOUNDS, SWITCH, BEFORE, AFTER = range(HEAD)
SIN, PIECES = 0.0, 1.0
KINDS = {"SIN": SIN, "PIECES": PIECES}
SWITCH_HEAD = 8


@tiny
def piece(t, is_left, at, z):
    """(first point of the linear piece that contains t, -1 before the delay; time since the delay within the period)."""
    # 1. time within the period; at its end, to rounding, the side decides
    count, delay, period = (int(z[at + 1]) - 2) // 2, z[at + 2], z[at + 3]
    phase, early = t - delay, ROUNDED * max(abs(t), abs(delay))
    if period < np.inf and phase >= 0.0:
        turns = math.floor(phase / period)
        phase -= turns * period
        if phase >= period - early and not is_left:
            phase -= period
        elif phase <= early and is_left and turns > 0:
            phase += period
    # 2. last point before t, or at it on the right side
    last = -1
    for j in range(count):
        time = z[at + 4 + 2 * j]
        if phase - early > time or (not is_left and phase + early >= time):
            last = j
    return last, phase


@kernel
def wave(t, is_left, at, z):
    """(value, rate) of a source whose wave begins at z[at]; at a step the value before or after it."""
    # 1. sine, constant before its delay
    if z[at] == SIN:
        offset, amplitude, omega = z[at + 2], z[at + 3], 2.0 * math.pi * z[at + 4]
        delay, damping, phase = z[at + 5], z[at + 6], math.radians(z[at + 7])
        early = ROUNDED * max(abs(t), abs(delay))
        if t < delay - early or (is_left and t <= delay + early and delay > 0.0):
            return offset, 0.0
        angle, size = omega * (t - delay) + phase, amplitude * math.exp(-damping * (t - delay))
        return offset + size * math.sin(angle), size * (omega * math.cos(angle) - damping * math.sin(angle))
    # 2. linear pieces
    count, first = (int(z[at + 1]) - 2) // 2, at + 4
    j, phase = piece(t, is_left, at, z)
    if j < 0:
        return z[first + 1], 0.0
    if j == count - 1:
        return z[first + 2 * j + 1], 0.0
    begin, end = z[first + 2 * j + 1], z[first + 2 * j + 3]
    rate = (end - begin) / (z[first + 2 * j + 2] - z[first + 2 * j])
    value = begin + rate * (phase - z[first + 2 * j])
    return min(max(value, min(begin, end)), max(begin, end)), rate  # rounding of t leads beyond no end


@tiny
def next_wave(at, z):
    """Index in z of the next wave."""
    return at + 2 + int(z[at + 1])


@tiny
def next_switch(s, z):
    """Index in z of the next switch."""
    return s + SWITCH_HEAD + 2 * int(z[s + SWITCH_HEAD - 1])


@kernel
def waves(times, is_left, z, values, rates):
    """Values and rates (times, sources) of all sources at some times; at a step before it where is_left, else after it."""
    for i in range(times.size):
        at = HEAD
        for j in range(int(z[K])):
            values[i, j], rates[i, j] = wave(times[i], is_left[i], at, z)
            at = next_wave(at, z)


@kernel
def driven_rows(t, z, out):
    """Constants and sources at t, before a step there: ``out = constants + weights u + rates u'``, of rates the mean over the window."""
    k, at, first = int(z[K]), int(z[WAVES]), int(z[WEIGHTS])
    row = first + k + 1
    weight = row + int(z[first + k])
    of_rate = weight + int(z[first + k])
    begin, end = max(t - z[BEFORE], 0.0), t + z[AFTER]
    for i in range(out.size):
        out[i] = z[int(z[CONSTANTS]) + i]
    for j in range(k):
        u, rate = wave(t, True, at, z)
        if begin < end and z[BEFORE] + z[AFTER] > 0.0:
            rate = (wave(end, True, at, z)[0] - wave(begin, True, at, z)[0]) / (end - begin)
        for e in range(int(z[first + j]), int(z[first + j + 1])):
            out[int(z[row + e])] += z[weight + e] * u + z[of_rate + e] * rate
        at = next_wave(at, z)


@kernel
def control(t, is_left, s, z):
    """Control of the switch at z[s] less its threshold."""
    value = z[s + 4] - z[s + 1]
    for e in range(s + SWITCH_HEAD, next_switch(s, z), 2):
        if z[e + 1] != 0.0:
            value += z[e + 1] * wave(t, is_left, int(z[e]), z)[0]
    return value


@kernel
def is_closed(t, is_left, s, z):
    """Whether the switch at z[s] is closed: its control is above the threshold, or was by its hysteresis, and not below by it since."""
    value, hysteresis = control(t, is_left, s, z), z[s + 5]
    if hysteresis == 0.0 or abs(value) > hysteresis:
        return value > 0.0
    # the source that acts, and the last value of the control beyond its hysteresis
    last, rest = 0.0, z[s + 4] - z[s + 1]
    for e in range(s + SWITCH_HEAD, next_switch(s, z), 2):
        at, weight = int(z[e]), z[e + 1]
        if weight != 0.0:
            if z[at] == SIN:
                last = _last_of_sine(t, weight, rest, hysteresis, at, z)
            else:
                last = _last_of_pieces(t, is_left, weight, rest, hysteresis, at, z)
    return last > 0.0 or (last == 0.0 and z[s + 6] > 0.0)


@kernel
def _last_of_pieces(t, is_left, weight, rest, hysteresis, at, z):
    """Last value of ``rest + weight u`` before t that is larger than hysteresis, of straight pieces: at one of their ends; 0: none."""
    count, period = (int(z[at + 1]) - 2) // 2, z[at + 3]
    last, _ = piece(t, is_left, at, z)
    is_repeated = period < np.inf and t - z[at + 2] >= period
    for k in range(last + 1 + (count if is_repeated else 0)):
        value = rest + weight * z[at + 5 + 2 * ((last - k) % count)]
        if abs(value) > hysteresis:
            return value
    value = rest + weight * z[at + 5]  # before the delay
    return value if abs(value) > hysteresis else 0.0


@kernel
def _last_of_sine(t, weight, rest, hysteresis, at, z):
    """Last value of ``rest + weight u`` before t that is larger than hysteresis, of a sine: at an extremum, or at its start; 0: none."""
    omega, phase = 2.0 * math.pi * z[at + 4], math.radians(z[at + 7])
    angle = omega * (t - z[at + 5]) + phase
    rest += weight * z[at + 2]
    half = math.floor(angle / math.pi - 0.5)  # the extremum before, in half turns
    for k in range(2):
        if (half - k + 0.5) * math.pi >= phase:
            value = rest + weight * z[at + 3] * (1.0 if (half - k) % 2.0 == 0.0 else -1.0)
            if abs(value) > hysteresis:
                return value
    value = rest + weight * z[at + 3] * math.sin(phase)
    return value if abs(value) > hysteresis else 0.0


@tiny
def bound(value):
    """A bound, which may be infinite; z is finite."""
    return np.inf if value >= LARGEST else -np.inf if value <= -LARGEST else value


@kernel
def driven_bounds(t, z, out):
    """Bounds of lambda for the states of the switches just before t."""
    m, s = int(z[M]), int(z[SWITCH])
    for i in range(m):
        out[0, i], out[1, i] = bound(z[int(z[BOUNDS]) + i]), bound(z[int(z[BOUNDS]) + m + i])
    for _ in range(int(z[SWITCHES])):
        if is_closed(t, True, s, z):
            out[0, int(z[s])], out[1, int(z[s])] = bound(z[s + 2]), bound(z[s + 3])
        s = next_switch(s, z)


def edges_of(z, t, t_end, fast, most):
    """(source, its edges) of each with linear pieces in (t, t_end], at most ``most``: midpoints of steps, or of rises within ``fast``."""
    at = int(z[WAVES])
    for source in range(int(z[K])):
        if z[at] == PIECES:
            delay, period, points = z[at + 2], z[at + 3], z[at + 4 : at + 2 + int(z[at + 1])].reshape(-1, 2)
            times, values = points.T
            edges = 0.5 * (times[1:] + times[:-1])[(np.diff(times) < fast) & (np.diff(values) != 0)] + delay
            if edges.size and period < LARGEST:
                if values[0] != values[-1]:
                    edges = np.append(edges, delay + period)
                first = max(math.floor((t - delay) / period), 0)
                count = int(min(t_end - t, most * period) // period) + 2
                edges = (edges + (first + np.arange(count))[:, None] * period).reshape(-1)
            yield source, edges[(edges > t) & (edges <= t_end)][:most]
        at = next_wave(at, z)


def weights_of(z):
    """(starts of the columns (k + 1), rows, weights of u, weights of its rate) in z."""
    k, first = int(z[K]), int(z[WEIGHTS])
    starts = z[first : first + k + 1]
    return starts, *z[first + k + 1 : first + k + 1 + 3 * int(starts[-1])].reshape(3, -1)


def by_rate(z):
    """Whether some row depends on the rate of each source."""
    starts, _, _, rates = weights_of(z)
    return np.diff(np.cumsum([0, *(rates != 0.0)])[starts.astype(int)]) > 0


def rates_at_once(z):
    """Whether some row depends on the rate of each source at a time, and not on its mean over a step."""
    return by_rate(z) & (z[BEFORE] + z[AFTER] == 0.0)


def set_window(z, before, after):
    """Times before and after t between which rates in rows of members (members, n) are mean ones; none where no row depends on a rate.

    Rows that a step evaluates once then move the charge that a source asks for over the step, however short its edges.
    """
    for member in z:
        member[[BEFORE, AFTER]] = (before, after) if by_rate(member).any() else 0.0


def place_of(number, z):
    """Index in z at which the wave of a source begins."""
    at = int(z[WAVES])
    for _ in range(number):
        at = next_wave(at, z)
    return at


def place_of_switch(number, z):
    """Index in z at which a switch begins."""
    s = int(z[SWITCH])
    for _ in range(number):
        s = next_switch(s, z)
    return s


def places_of_pieces(z):
    """Indices in z of the numbers of sources made of linear pieces, which kernels read as they are at any time."""
    found, at = [], int(z[WAVES])
    for _ in range(int(z[K])):
        if z[at] == PIECES:
            found += range(at + 2, next_wave(at, z))
        at = next_wave(at, z)
    return tuple(found)


def numbers_of(each):
    """Numbers of a `nsds.circuits.waves.Wave` in z."""
    return np.clip(np.array([KINDS[each.kind], len(each.numbers), *each.numbers]), -LARGEST, LARGEST)


def packed(waves, constants, weights, rates, bounds=None, switches=()):
    """z for rows of the given sizes.

    waves: `nsds.circuits.waves.Wave`s; weights, rates: (m, k), of arrays all entries are stored, of scipy.sparse those that are not zero;
    switches: (their numbers before the sources, numbers of these, weights).
    """
    # 1. each part in turn
    numbers = [numbers_of(each) for each in waves]
    at = HEAD + np.cumsum([0, *(each.size for each in numbers)])
    controls = [np.stack([at[np.array(sources, int)], weights_], axis=1).reshape(-1) for _, sources, weights_ in switches]
    of_switches = [part for (first, sources, _), pairs in zip(switches, controls, strict=True) for part in (first, [len(sources)], pairs)]
    parts = [np.concatenate([np.zeros(0), *numbers]), constants, np.concatenate(_columns(weights, rates)),
             np.zeros(0) if bounds is None else bounds.reshape(-1), np.concatenate([np.zeros(0), *of_switches])]  # fmt: skip
    # 2. where they begin
    starts = HEAD + np.cumsum([0, *(part.size for part in parts[:-1])])
    head = np.concatenate([[len(waves), constants.size, len(switches)], starts, np.zeros(2)])
    return np.clip(np.concatenate([head, *parts]), -LARGEST, LARGEST)


def _columns(weights, rates):
    """(starts, rows, weights of u, weights of its rate) of compressed columns."""
    m, k = weights.shape
    if isinstance(weights, np.ndarray):
        return m * np.arange(k + 1), np.tile(np.arange(m), k), weights.T.reshape(-1), rates.T.reshape(-1)
    keys = [each.coords[1].astype(np.int64) * m + each.coords[0] for each in (weights.tocoo(), rates.tocoo())]
    every = np.unique(np.concatenate(keys))
    numbers = np.zeros((2, every.size))
    for number, key, each in zip(numbers, keys, (weights, rates), strict=True):
        number[np.searchsorted(every, key)] = each.tocoo().data
    return np.searchsorted(every, m * np.arange(k + 1)), every % m, *numbers


def contradiction(records):
    """In what z of circuits (members,) contradict themselves or each other after an edit, as text; empty if they do not."""
    first, of_first = None, None
    for part in [name for name in ("circuit", "devices", "names") if "z" in records.dtype[name].names]:
        z = records[part]["z"]
        if (z[:, :BEFORE] != z[0, :BEFORE]).any() or not _is_laid_out(z[0]):
            return f"{part}.z: entries were changed that say where its other ones are; see nsds.circuits.set_source"
        waves = z[:, int(z[0, WAVES]) : int(z[0, CONSTANTS])]
        if of_first is not None and (waves != of_first).any():
            return f"{first}.z and {part}.z have different sources: change them in all parts, as nsds.circuits.set_source does"
        first, of_first = part, waves
    return ""


def waves_in(records, like):
    """Views of the sources in each z of circuits (members,) that are laid out as others."""
    parts = [name for name in ("circuit", "devices", "names") if "z" in records.dtype[name].names]
    return [records[part]["z"][:, int(like[part]["z"][0, WAVES]) : int(like[part]["z"][0, CONSTANTS])] for part in parts]


def _is_laid_out(z):
    """Whether the head of z says where waves, constants, weights, bounds and switches are, one behind the other."""
    # 1. waves
    if not (np.isfinite(z[:HEAD]).all() and (z[:BEFORE] == np.floor(z[:BEFORE])).all() and (z[:BEFORE] >= 0).all()):
        return False
    k, m, n_switches = (int(z[at]) for at in (K, M, SWITCHES))
    at, starts, waves_at = HEAD, [HEAD], set()
    for _ in range(min(k, z.size)):
        waves_at.add(at)
        if at + 1 >= z.size or z[at] not in KINDS.values() or not 0 <= z[at + 1] <= z.size:
            return False
        at = next_wave(at, z)
    starts += [at, at + m]
    # 2. columns of weights, bounds and switches behind them
    end = at + m + k
    if end >= z.size or not 0 <= z[end] <= z.size:
        return False
    starts += [end + 1 + 3 * int(z[end])]
    n_bounds = int(z[SWITCH]) - int(z[BOUNDS])
    if z[WAVES:SWITCH].tolist() != starts or n_bounds not in (0, 2 * m) or z[SWITCH] > z.size:
        return False
    columns, rows, _, _ = weights_of(z)
    is_ascending = columns[0] == 0 and (columns[1:] >= columns[:-1]).all()
    return (
        is_ascending and _are_indices(columns, z.size) and _are_indices(rows, m) and _are_switches(int(z[SWITCH]), n_switches, waves_at, z)
    )


def _are_switches(s, n_switches, waves_at, z):
    """Whether so many switches begin at z[s] and end with z, their rows those that there are, and their waves at some of these places."""
    m = int(z[M]) or z.size  # readings have switches without rows
    for _ in range(n_switches):
        if s + SWITCH_HEAD > z.size or not 0 <= z[s + SWITCH_HEAD - 1] <= len(waves_at) or not _are_indices(z[s : s + 1], m):
            return False
        after = next_switch(s, z)
        if not waves_at.issuperset(z[s + SWITCH_HEAD : after : 2].tolist()):
            return False
        s = after
    return s == z.size


def _are_indices(numbers, n):
    """Whether numbers are whole, from 0 to n - 1."""
    return bool(((numbers >= 0) & (numbers < n) & (numbers == np.floor(numbers))).all())


def value_of(each, t):
    """Value of a wave at t, after a step there; also for an array of times."""
    total, none = np.zeros(np.shape(t)), np.zeros((0, 1))
    for part in each.parts("").values():
        z = packed([part], np.zeros(0), none, none)
        total += np.array([wave(time, False, HEAD, z)[0] for time in np.ravel(t)]).reshape(np.shape(t))
    return total[()]
