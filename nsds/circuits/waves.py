"""Waves of sources, from their numbers in a netlist: sines and straight pieces, and others as sums of these."""

import cmath
import itertools
import math
from fractions import Fraction
from typing import NamedTuple

# how many numbers each kind has
COUNTS = {"DC": (1, 1), "SIN": (3, 6), "PULSE": (2, 7), "PWL": (2, math.inf), "EXP": (6, 6), "SFFM": (5, 5), "AM": (4, 5)}
_MOST_TERMS = 500  # of SFFM
_NO_TERM = 1e-16  # factor of a sine that is rounding beside 1


class Wave(NamedTuple):
    """A source. kind "SIN": offset, amplitude, frequency (Hz), delay, damping (1/s), phase (degrees). kind "PIECES", linear ones: delay,
    period (inf: once), then pairs of time and value; before the delay the first value, two pairs of one time make a step. kind "SUM": the
    waves of which it is one.
    """

    kind: str
    numbers: tuple

    @property
    def is_constant(self):
        """Whether its value never changes."""
        return self.kind == "PIECES" and len(set(self.numbers[3::2])) == 1

    @property
    def has_steps(self):
        """Whether it jumps, of linear pieces: between two of them, or from the end of a period to the next one."""
        times, values = self.numbers[2::2], self.numbers[3::2]
        pairs = zip(times[:-1], times[1:], values[:-1], values[1:], strict=True)
        return self.kind == "PIECES" and (any(early == late and one != other for early, late, one, other in pairs) or (
            self.numbers[1] < math.inf and values[0] != values[-1]
        ))  # fmt: skip

    def parts(self, name):
        """{name: wave} of the waves whose sum it is, as kernels treat them: before its delay a sine has its offset, and the contribution of
        its phase then is a step of its own.
        """
        if self.kind == "SUM":
            terms = [wave.parts(f"{name}#{k}" if k else name) for k, wave in enumerate(self.numbers)]
            return {key: part for parts in terms for key, part in parts.items()}
        if self.kind != "SIN" or self.numbers[3] <= 0 or self.numbers[5] == 0:
            return {name: self}
        waiting = self.numbers[1] * math.sin(math.radians(self.numbers[5]))
        return {name: self, f"{name}#wait": Wave("PIECES", (self.numbers[3], math.inf, 0.0, waiting, 0.0, 0.0))}


def wave_of(kind, numbers, repeats, delay):
    """Wave of a kind, by numbers as fractions; of PWL whether it repeats, and by how much it is late. A ValueError says what is wrong."""
    least, most = COUNTS[kind]
    if not least <= len(numbers) <= most or (kind == "PWL" and len(numbers) % 2):
        count = f"{least}" if least == most else f"{least} to {most}"
        raise ValueError(f"{kind} has {count} numbers{', in pairs' * (kind == 'PWL')}; got {len(numbers)}")
    if kind == "DC":
        return Wave("PIECES", (0.0, math.inf, 0.0, float(numbers[0])))
    if kind == "PWL":
        return _pieces(numbers, repeats, delay)
    return {"SIN": _sine, "PULSE": _pulse, "EXP": _exponential, "SFFM": _frequency_modulated, "AM": _amplitude_modulated}[kind](*numbers)


def _sine(offset, amplitude, frequency, delay=0, damping=0, phase=0):
    """``offset + amplitude exp(-damping (t - delay)) sin(2 pi frequency (t - delay) + phase)``, with a frequency that is not negative."""
    if frequency < 0:
        amplitude, frequency, phase = -amplitude, -frequency, -phase
    return Wave("SIN", tuple(map(float, (offset, amplitude, frequency, delay, damping, phase))))


def _pieces(numbers, repeats, delay):
    """PWL: pairs of time and value."""
    times = numbers[::2]
    if any(late < early for early, late in itertools.pairwise(times)):
        raise ValueError("the times of PWL must not fall")
    if repeats and (times[0] < 0 or times[-1] <= 0):
        raise ValueError("what repeats must end after 0, and not begin before it")
    return Wave("PIECES", (float(delay), float(times[-1]) if repeats else math.inf, *map(float, numbers)))


def _pulse(low, high, delay=0, rise=0, fall=0, width=None, period=0):
    """PULSE(v1 v2 td tr tf pw per); without pw it stays at v2, without per it occurs once."""
    if min(rise, fall, width or 0) < 0 or (period > 0 and width is not None and rise + width + fall > period):
        raise ValueError("rise, width and fall must not be negative, and fit into the period")
    points = [0, low, rise, high]
    if width is not None:
        points += [rise + width, high, rise + width + fall, low]
    return Wave("PIECES", (float(delay), float(period) if period > 0 else math.inf, *map(float, points)))


def _exponential(low, high, rise, tau_rise, fall, tau_fall):
    """EXP(v1 v2 td1 tau1 td2 tau2): towards v2 from td1 on, and back from td2 on."""
    if min(tau_rise, tau_fall) <= 0 or not 0 <= rise <= fall:
        raise ValueError("the time constants of EXP must be positive, and td2 not before td1")
    there, back = (_sine(end, start - end, 0, late, 1 / tau, 90) for start, end, late, tau in
                   ((low, high, rise, tau_rise), (0, low - high, fall, tau_fall)))  # fmt: skip
    return Wave("SUM", (there, back))


def _frequency_modulated(offset, amplitude, carrier, index, signal):
    """``offset + amplitude sin(2 pi carrier t + index sin(2 pi signal t))`` as the sum of ``J_n(index) sin(2 pi (carrier + n signal) t)``.

    The J_n are the Fourier coefficients of ``exp(i index sin)``, those of equal frequencies are added.
    """
    # 1. as many terms as are above rounding
    index = float(index)
    most = math.ceil(abs(index) + 12 * max(abs(index), 1) ** (1 / 3)) + 20
    if most > _MOST_TERMS:
        raise ValueError(f"the index of SFFM must be at most 400, got {index:g}")
    angles = [2 * math.pi * k / (4 * most) for k in range(4 * most)]
    turns = [cmath.exp(1j * index * math.sin(angle)) for angle in angles]
    amplitudes = {}
    for n in range(-most, most + 1):
        bessel = math.fsum((turn * cmath.exp(-1j * n * angle)).real for turn, angle in zip(turns, angles, strict=True)) / (4 * most)
        frequency = carrier + n * signal
        amplitudes[abs(frequency)] = amplitudes.get(abs(frequency), 0.0) + (bessel if frequency >= 0 else -bessel)
    # 2. the sines, the first one with the offset
    sizes = [(frequency, float(amplitude) * size) for frequency, size in amplitudes.items() if abs(size) > _NO_TERM]
    return Wave("SUM", tuple(_sine(0 if k else offset, size, frequency) for k, (frequency, size) in enumerate(sizes)))


def _amplitude_modulated(amplitude, offset, signal, carrier, delay=0):
    """``amplitude (offset + sin(2 pi signal (t - delay))) sin(2 pi carrier (t - delay))``, 0 before the delay, as three sines."""
    half = Fraction(amplitude) / 2
    return Wave("SUM", (
        _sine(0, amplitude * offset, carrier, delay), _sine(0, half, carrier - signal, delay, 0, 90),
        _sine(0, -half, carrier + signal, delay, 0, 90),
    ))  # fmt: skip
