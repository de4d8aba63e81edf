"""Curvature of relations along the motion, ``d/dt (H v + rate)`` at constant v: the part of accelerations that velocities give.

A difference of fourth order of ``H v + rate``, where the user gives these, else of y. How far apart its points lie follows from the data:
the same values give a formula of lower order, and what both differ by says whether the points are too far apart. Neither the size of the
coordinates nor 1 would tell: a cam of a millimetre turns by many radians, and a belt that has run far bends as at its start.
"""

import math

import numpy as np

from nsds._jit import kernel, tiny, view
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT
from nsds.schemes.derivatives import BEGIN_FIRST, BEGIN_SECOND, FIRST, SECOND, derivative, side_of
from nsds.schemes.lagrangian.functions import stated_rate
from nsds.schemes.problem.rows import coordinate, number_of, width

_STANDING = 1e-100  # of the coordinates, per unit of time
_STEPS = 10.0  # steps, in which coordinates move by their size, at least
_LONGEST, _SHORTER = 0.0618034, 0.25  # of that time: the farthest points of a search, no whole turns; nearer ones
_MOST = 30  # distances that are tried
_MOMENT, _OF_STEP = 2.0**-10, 0.25  # s, and of a step, or of the time between rows: the distance where the rate alone changes, with time
_SLACK = 2.0**-16  # of the curvature, and the accelerations beside it: what formulas of both orders may differ by
_AGREEMENT = 2.0**-14  # of the same: by points at two distances
_SHORTEST = 2.0**-12  # of that time: by points that are nearer what is rounding may not be seen as such
_NOISE, _HIDDEN = 8 * 2.0**-52, 2.0**-36  # of the terms of a row: rounding, and that of terms within y which nobody knows of
# Weights of the formulas of second order with the same points, whose difference to those of fourth order is the error.
_LOW_FIRST = np.array([[0.0, -0.5, 0.0, 0.5, 0.0], [-1.5, 2.0, -0.5, 0.0, 0.0], [0.0, 0.0, 0.5, -2.0, 1.5]])
_LOW_SECOND = np.array([[0.0, 1.0, -2.0, 1.0, 0.0, 0.0], [2.0, -5.0, 4.0, -1.0, 0.0, 0.0], [0.0, 0.0, -1.0, 4.0, -5.0, 2.0]])
_ERROR_FIRST, _ERROR_SECOND = FIRST - _LOW_FIRST, SECOND - _LOW_SECOND


@kernel
def find_curvature(t, h, low, high, sizes, acc, r, p, functions, memory):
    """Curvature of a relation at the state in mem, whose operators are known, into r.curvature.

    h: the length of a step, or of a row; low, high: between which times functions do not jump; sizes: where the largest coordinates so far
    lie, or ABSENT; acc: where accelerations lie, beside which errors are small.
    """
    work = memory.work
    unit = _time_of_a_motion(h, sizes, r, memory)
    if unit == math.inf:
        for i in range(r.m):
            work[r.curvature + i] = 0.0
        return
    # the rate alone changes, with time: points at one distance, so that what a corner of it adds is no noise for the control of steps
    if r.rate != ABSENT and r.H_function == ABSENT and _is_by_rates(r):
        _evaluate(t, min(_MOMENT, _OF_STEP * h) / unit, unit, low, high, acc, r, p, functions, memory)
    else:
        share = work[r.curvature + 3 * r.m]
        is_known = share > 0.0 and _is_within(t, share * unit, low, high, r)
        if not (is_known and _evaluate(t, share, unit, low, high, acc, r, p, functions, memory) <= 1.0):
            _search(t, unit, low, high, acc, r, p, functions, memory)
    for j in range(r.n):
        work[r.x + j] = memory.mem[coordinate(r, j)]


@tiny
def _time_of_a_motion(h, sizes, r, memory):
    """In which the fastest coordinate moves by the largest so far, or what some steps take; infinite where nothing moves."""
    fastest, size = 0.0, 0.0
    for j in range(r.n):
        q = coordinate(r, j)
        fastest, size = max(fastest, abs(memory.mem[q + width(r, j)])), max(size, abs(memory.mem[q]))
        if sizes != ABSENT:
            size = max(size, memory.work[sizes + number_of(r, j)])
    moves = fastest > _STANDING * size
    if r.rate != ABSENT:
        return _STEPS * h
    return max(_STEPS * h, size / fastest) if moves else math.inf


@tiny
def _is_by_rates(r):
    """Whether the user gives ``H v + rate``, or all of it that changes."""
    return r.h_function == ABSENT or (r.H_function != ABSENT and (r.rate == ABSENT or r.h_t_function != ABSENT))


@tiny
def _is_within(t, s, low, high, r):
    """Whether all points of a difference lie between the times at which functions may jump."""
    side, last = side_of(t, s, low, high), 4.0 if _is_by_rates(r) else 5.0
    return r.rate == ABSENT or (side == 1 and t + last * s <= high) or (side == 2 and t - last * s >= low) or side == 0


@kernel
def _search(t, unit, low, high, acc, r, p, functions, memory):
    """The farthest points whose error is small and that agree with nearer ones; where there are none, those that agree best."""
    work = memory.work
    curvature, farther, kept = r.curvature, r.curvature + 2 * r.m, r.curvature + 3 * r.m
    share, best, least, was_right = _LONGEST, _LONGEST * _SHORTER**_MOST, math.inf, False
    for _ in range(_MOST):
        if _is_within(t, share * unit, low, high, r):
            error = _evaluate(t, share, unit, low, high, acc, r, p, functions, memory)
            gap = _disagreement(share, unit, acc, r, memory)
            if was_right and gap <= 1.0:
                for i in range(r.m):
                    work[curvature + i] = work[farther + i]
                work[kept] = share / _SHORTER
                return
            change = _change(r, work)
            if change < least:
                least, best = change, share
            was_right = error <= 1.0
        for i in range(r.m):
            work[farther + i] = work[curvature + i] if _is_within(t, share * unit, low, high, r) else math.nan
        share *= _SHORTER
    work[kept] = best
    _evaluate(t, best, unit, low, high, acc, r, p, functions, memory)


@tiny
def _change(r, work):
    """The largest difference of the curvature by points at two distances."""
    most = 0.0
    for i in range(r.m):
        gap = abs(work[r.curvature + i] - work[r.curvature + 2 * r.m + i])
        most = max(most, gap) if math.isfinite(gap) else math.inf
    return most


@kernel
def _evaluate(t, share, unit, low, high, acc, r, p, functions, memory):
    """The largest error of a row by what it may be, with the curvature by points s apart; infinite where that is not finite."""
    work, s = memory.work, share * unit
    side = side_of(t, s, low, high) if r.rate != ABSENT else 0
    for i in range(2 * r.m):
        work[r.curvature + i] = 0.0
    by_rates = _is_by_rates(r)
    if by_rates or (r.block > 1 and r.H_function != ABSENT):  # of contacts with friction y says nothing of the tangents
        _difference_of_rates(t, s, side, r, p, functions, memory)
    if not by_rates:
        _difference_of_outputs(t, s, side, r.block if r.H_function != ABSENT else 1, r, functions, p, memory)
    worst = 0.0
    for i in range(r.m):
        error = abs(work[r.curvature + r.m + i])
        if error > 0.0:
            worst = max(worst, error / _allowed(i, share, unit, _SLACK, acc, r, memory))
        worst = worst if math.isfinite(error) and math.isfinite(work[r.curvature + i]) else math.inf
    return worst


@kernel
def _disagreement(share, unit, acc, r, memory):
    """As the error of `_evaluate`, by what the points before gave."""
    work, worst = memory.work, 0.0
    for i in range(r.m):
        gap = abs(work[r.curvature + i] - work[r.curvature + 2 * r.m + i])
        if gap > 0.0:
            worst = max(worst, gap / _allowed(i, share, unit, _AGREEMENT, acc, r, memory))
        worst = worst if math.isfinite(gap) else math.inf
    return worst


@tiny
def _allowed(i, share, unit, slack, acc, r, memory):
    """A share of the curvature of a row, what rounding makes of its terms, and of larger ones that cancel within y beside accelerations."""
    mem, work = memory.mem, memory.work
    by_rates = _is_by_rates(r)
    size, rates, terms, s = 0.0, abs(work[r.rate + i]) if r.rate != ABSENT else 0.0, 0.0 if by_rates else abs(work[r.h + i]), share * unit
    for j in range(r.n):
        q, slope = coordinate(r, j), abs(work[r.H + i * r.n + j])
        size += slope * abs(work[acc + number_of(r, j)])
        rates += slope * abs(mem[q + width(r, j)])
        terms += slope * abs(mem[q])
    part = rates / s if by_rates else terms / (s * s) + rates / s
    return slack * abs(work[r.curvature + i]) + min(slack * size, _HIDDEN * part) + (_NOISE * part if share >= _SHORTEST else 0.0)


@kernel
def _difference_of_outputs(t, s, side, each, r, functions, p, memory):
    """Second differences ``(16 (y(s) + y(-s)) - y(2 s) - y(-2 s) - 30 y) / (12 s^2)`` of each so-many-th row, or one-sided; their error."""
    mem, work = memory.mem, memory.work
    x, lam, z, out = view(work, r.x, r.n), view(work, r.lam, r.m), view(mem, r.z, r.n_z), view(work, p.spare, r.m)
    for i in range(0, r.m, each):
        work[r.curvature + i] = work[r.curvature + r.m + i] = 0.0
    for place in range(6):
        k, weight, of_error = place + BEGIN_SECOND[side], SECOND[side, place], _ERROR_SECOND[side, place]
        if weight == 0.0 and of_error == 0.0:
            continue
        for j in range(r.n if k != 0 else 0):
            q = coordinate(r, j)
            work[r.x + j] = mem[q] + k * s * mem[q + width(r, j)]
        if k != 0:
            call_function(functions, r.h_function, (t + k * s, x, lam, z, out))
        for i in range(0, r.m, each):
            y = work[p.spare + i] if k != 0 else work[r.h + i]
            work[r.curvature + i] += weight * y / (s * s)
            work[r.curvature + r.m + i] += of_error * y / (s * s)


@kernel
def _difference_of_rates(t, s, side, r, p, functions, memory):
    """``(8 (w(s) - w(-s)) - w(2 s) + w(-2 s)) / (12 s)`` of ``w = H v + rate``, or from one side, and its error; the rate stays."""
    mem, work = memory.mem, memory.work
    m, n, changes = r.m, r.n, r.H_function != ABSENT
    for place in range(5):
        k, weight, of_error = place + BEGIN_FIRST[side], FIRST[side, place], _ERROR_FIRST[side, place]
        if weight == 0.0 and of_error == 0.0:
            continue
        for j in range(n):
            q = coordinate(r, j)
            work[r.x + j] = mem[q] + k * s * mem[q + width(r, j)]
        if changes:
            derivative(t + k * s, r, r.h_function, r.H_function, m, r.x, n, p.H_moved, p.spare, functions, memory)
        if r.rate != ABSENT:
            stated_rate(t + k * s, r, functions, memory)
        for i in range(m):
            w = 0.0 if r.rate == ABSENT else work[r.rate + i]
            for j in range(n if changes else 0):
                w += work[p.H_moved + i * n + j] * mem[coordinate(r, j) + width(r, j)]
            work[r.curvature + i] += weight * w / s
            work[r.curvature + m + i] += of_error * w / s
    if r.rate != ABSENT:
        for j in range(n):
            work[r.x + j] = mem[coordinate(r, j)]
        stated_rate(t, r, functions, memory)
