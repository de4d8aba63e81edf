"""Derivatives of the functions of a relation, by the user's function or by finite differences."""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import kernel, tiny, view
from nsds.model.functions import CENTRAL_STEP, call_function
from nsds.model.layout import ABSENT

FORWARD_STEP = 2.0**-26  # of a forward difference, relative to 1 or the variable
_USUAL = 2.0**-3, 2.0**3  # variables that are smaller or larger may be so because of their unit, or have run far: then the step is checked
_SHORTER, _LEVELS = 2.0**-4, 13  # ratio of steps that are compared, and how many are
_AGREEMENT = 2.0**-34  # of derivatives by two steps, relative to the largest of the row
_ROUNDING = 2.0**-52  # of the terms of a row
_CLEAR, _RISE = 2.0**-24, 2.0  # what says that steps are short enough, and that shorter ones only have more rounding
_OF_STEP, _NEARER = 2.0**-4, 0.25  # of a step in time: between the points of a first difference by time, and how much nearer the next are
_SMOOTH = 2.0**-18  # of a rate: by what formulas of second and fourth order may differ
# Weights of first and second derivatives of order 4 by values at equal distances: at a middle one, the first, the last; where the first
# value lies, in steps.
FIRST = np.array([[1.0, -8.0, 0.0, 8.0, -1.0], [-25.0, 48.0, -36.0, 16.0, -3.0], [3.0, -16.0, 36.0, -48.0, 25.0]]) / 12.0
SECOND = np.array(
    [[-1.0, 16.0, -30.0, 16.0, -1.0, 0.0], [45.0, -154.0, 214.0, -156.0, 61.0, -10.0], [-10.0, 61.0, -156.0, 214.0, -154.0, 45.0]]
) / 12.0  # fmt: skip
BEGIN_FIRST, BEGIN_SECOND = np.array([-2, 0, -4]), np.array([-2, 0, -5])


class _Asked(NamedTuple):
    """A function whose derivatives are asked for, its arguments, and scratch."""

    function: int
    t: float
    x: np.ndarray
    lam: np.ndarray
    z: np.ndarray
    rows: int
    spare: int  # offset in the work memory, of 3 rows


@tiny
def side_of(t, step, low, high):
    """Row of the weights of a difference at t in time, whose values must lie between two times at which functions may jump."""
    return 1 if t - 2.0 * step < low else 2 if t + 2.0 * step > high else 0


@kernel
def derivative(t, r, function, jacobian, rows, variable, columns, out, spare, functions, memory):
    """Jacobian (rows, columns) of a function of relation r; variable is an offset of its arguments x or lam. Work: spare (3 rows)."""
    work = memory.work
    x, lam, z = view(work, r.x, r.n), view(work, r.lam, r.m), view(memory.mem, r.z, r.n_z)
    if jacobian != ABSENT:
        call_function(functions, jacobian, (t, x, lam, z, view(work, out, rows * columns)))
        return
    differences(t, x, lam, z, function, rows, variable, columns, out, spare, functions, memory)


@tiny
def _step_at(value):
    """A power of 2, which value plus or minus the step does not round, but where it is shorter than the rounding of value."""
    return CENTRAL_STEP * 2.0 ** math.floor(math.log2(max(1.0, abs(value))))


@kernel
def differences(t, x, lam, z, function, rows, variable, columns, out, spare, functions, memory):
    """Jacobian (rows, columns) of a function by central differences, into work[out:]; its arguments lie at variable. Work: spare (3 rows).

    What of it is noise is noise of the impulses, below which Newton's residual does not fall. A step is relative to 1 or the variable;
    where neither may be a measure it is compared with shorter ones.
    """
    work, asked = memory.work, _Asked(function, t, x, lam, z, rows, spare)
    for j in range(columns):
        step = _step_at(work[variable + j])
        _by_step(asked, step, variable + j, out + j, columns, functions, memory)
    for j in range(columns):
        size = abs(work[variable + j])
        if not _USUAL[0] <= size <= _USUAL[1]:
            step = _step_at(size) * _lengthening(_step_at(size), rows, columns, variable, out, work)
            _refine(asked, step, columns, variable + j, j, out, functions, memory)


@tiny
def _lengthening(step, rows, columns, variable, out, work):
    """A power of 2, by which a step is to be longer where rounding of the terms of a row would be seen in its derivatives."""
    most = 1.0
    for i in range(rows):
        terms, size = 0.0, 0.0
        for j in range(columns):
            slope = abs(work[out + i * columns + j])
            terms, size = terms + slope * abs(work[variable + j]), max(size, slope)
        if _ROUNDING * terms > most * step * _AGREEMENT * size:
            most = _ROUNDING * terms / (step * _AGREEMENT * size)
    return 2.0 ** math.floor(math.log2(most)) if most < math.inf else 1.0


@kernel
def derivative_by_time(t, h, r, rows, out, spare, functions, memory):
    """``dh/dt`` of relation r by a difference of fourth order, into work[out:]; h: the length of a step. Work: spare (3 rows).

    Its points are the farthest at which one of second order differs from it by little: so that it changes smoothly in time.
    """
    work = memory.work
    x, lam, z, low = view(work, r.x, r.n), view(work, r.lam, r.m), view(memory.mem, r.z, r.n_z), spare + rows
    step = _OF_STEP * h
    for _ in range(_LEVELS):
        for i in range(rows):
            work[out + i] = work[low + i] = 0.0
        for k in range(-2, 3):
            if k == 0:
                continue
            call_function(functions, r.h_function, (t + k * step, x, lam, z, view(work, spare, rows)))
            for i in range(rows):
                work[out + i] += FIRST[0, k + 2] * work[spare + i] / step
                work[low + i] += 0.5 * k * work[spare + i] / step if abs(k) == 1 else 0.0
        is_smooth = True
        for i in range(rows):  # spare still holds h at the last point
            noise = 8.0 * _ROUNDING * abs(work[spare + i]) / step
            is_smooth &= abs(work[out + i] - work[low + i]) <= _SMOOTH * abs(work[out + i]) + noise
        if is_smooth:
            return
        step *= _NEARER


@kernel
def _refine(asked, step, columns, at, j, out, functions, memory):
    """Replace column j, a difference by step, by that of a shorter one where its own is too long.

    Errors of a step that is too long fall with its square, those of rounding grow as it shrinks: the one is taken that agrees best with the
    next.
    """
    work, rows, spare = memory.work, asked.rows, asked.spare
    now, shorter, least, is_pending = spare + rows, spare + 2 * rows, math.inf, False
    for i in range(rows):
        work[now + i] = work[out + i * columns + j]
    for _ in range(_LEVELS):
        step *= _SHORTER
        _by_step(asked, step, at, shorter, 1, functions, memory)
        gap = _disagreement(rows, columns, now, shorter, out, work)
        is_better = gap < least
        if is_better or (is_pending and gap < _RISE * least):
            for i in range(rows):
                work[out + i * columns + j] = work[now + i]
        if gap <= _AGREEMENT or (gap >= _RISE * least and least <= _CLEAR):
            return
        is_pending, least = is_better, min(least, gap)
        for i in range(rows):
            work[now + i] = work[shorter + i]


@kernel
def _by_step(asked, step, at, out, stride, functions, memory):
    """Central difference by work[at] into work[out], work[out + stride], ..."""
    function, t, x, lam, z, rows, spare = asked.function, asked.t, asked.x, asked.lam, asked.z, asked.rows, asked.spare
    work, value = memory.work, memory.work[at]
    for sign in (1.0, -1.0):
        work[at] = value + sign * step
        call_function(functions, function, (t, x, lam, z, view(work, spare, rows)))
        for i in range(rows):
            work[out + i * stride] = work[spare + i] if sign > 0.0 else (work[out + i * stride] - work[spare + i]) / (2.0 * step)
    work[at] = value


@tiny
def _disagreement(rows, columns, one, other, out, work):
    """Largest difference of two columns, relative to the larger one of that entry and the largest of its row; infinite where one is not."""
    worst = 0.0
    for i in range(rows):
        gap, size = abs(work[one + i] - work[other + i]), max(abs(work[one + i]), abs(work[other + i]))
        for j in range(columns):
            size = max(size, abs(work[out + i * columns + j]))
        worst = max(worst, gap / size if gap > 0.0 else 0.0)
        worst = worst if math.isfinite(gap) else math.inf
    return worst
