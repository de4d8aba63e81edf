"""Tangent maps along an event-driven run: smooth flow between events, saltation matrices at them.

Between rows the tangent map is ``exp(Omega)`` of the Jacobian J of the motion in its modes, by Magnus' method of fourth order,

    Omega = h (J_1 + J_2) / 2 - sqrt(3) h^2 [J_1, J_2] / 12,

at the two Gauss points of the row, between the states at its ends; of a linear motion ``Omega = h J``, to rounding. At an event whose
guard g comes to zero, with the reset R of the state and the motions f- before and f+ after it,

    S = DR + (f+ - DR f- - R_t) g_x^T / (g_x f- + g_t)        (P. C. Müller, Chaos, Solitons and Fractals 5 (1995) 1671)

Parameters are constant states: their columns follow those of the state and are left alone by the maps. All derivatives
are central differences, exact where the function is linear; those of a reset by time are of fourth order, because finite differences
inside users' functions are noisy. The sizes of the states are noted by a run without derivatives. Families of systems define f, g and R:
`nsds.analysis.event_mechanics`, `nsds.analysis.event_general` and `nsds.analysis.event_linear`.
"""

import math
from typing import NamedTuple

import numba
import numpy as np
from numba import float64, int64, types

from nsds import _jit
from nsds._jit import kernel, tiny, view
from nsds.model.records import STEP, T0, T
from nsds.schemes.memory import MEMORY, Memory, calls_of, memory_of
from nsds.status import ACCUMULATION, CLOSED, CONVERGED, EVENT, INEXACT, JUMP, PAUSED, TIME_EVENT

FIELD, GUARD, RESET, OFF_SURFACE, ALONG_LAMBDA = range(5)  # function that is evaluated
# Columns of the progress of a member; HALTED: in a row, 2 after an event; PUT_ON: columns are those of states on the surfaces of the mode.
DONE, STOPPED, STARTED, POINTS, HALTED, PUT_ON = range(6)
N_REACHED = 6
_PAUSES, _EVENTS = 16, 2000  # of a row, or of a call, until the loop is left so that Ctrl-C is heard
_MAY_HOLD = CLOSED | ACCUMULATION | TIME_EVENT  # of an event: lambda may keep the motion on surfaces after it
_AT_START, _UNDER_WAY = 1, 2  # STARTED, before and after the first step
AT_TIMES, AT_IMPACTS, AT_CROSSINGS = range(3)  # where points are recorded
LOG_DET, TIME, EVENTS, IMPACTS, TOGETHER, UNTREATED, SLOWEST, CROSSINGS, BEGAN = range(9)  # columns of the counters of a run
N_NOTES = 9
_STEP = 2.0**-17  # finite difference, relative to 1 or the variable; 1 for linear systems
_LONG = 2.0**-12  # of a section: step of the long differences of a reset in time
_ROUGH = 1e-10  # of a reset: its noise if it has derivatives by finite differences
_TERMS = 16  # of the series of the exponential
_GAUSS = math.sqrt(3.0) / 6.0
_FAR = 1e-6  # of the speeds: accepted deviation of a reset from the state after an event
_LOCATED, _SECANTS = 2.0**-50, 60  # of a crossing: final relative length of its bracket; number of secants
_SHORTER, _LEVELS = 2.0**-4, 13  # ratio of differences that are compared for states of small size, and how many are
_AGREEMENT = 2.0**-34  # of derivatives by two differences, relative to the largest of the row
ROUNDED = 2.0**-46  # of the terms of a rate: what is less is rounding
_LOST, _GOLDEN = 2.0**-46, 0.6180339887498949  # of a column: what is left of none; multiples without a pattern
_SWEEPS = 16  # of a balance
_DEPENDENT = 1e-9  # relative to its terms: a gradient, or its product with a direction, that is 0
_NARROWEST = 2.0**-30  # of the size of a state: shorter differences agree, too, but on 0, as nothing changes by them
_CLEAR, _RISE = 2.0**-24, 2.0  # what says that differences are short enough, and that shorter ones only have more rounding
# Scratch memory: the rate of the guard, vectors x_0, x_1, x_m, f_0, f_1, moved, high, low, guard, sizes of the states, their units, the
# derivatives by a longer difference, matrices J_1 (S), J_2, omega, map, power, product.
VECTORS, _MATRICES = 12, 6
SIZES, UNITS, _LONGER = 9, 10, 11  # among the vectors
SMALL = 2.0**-3  # a state that is smaller throughout may be so because of its unit


class Plan(NamedTuple):
    """Sizes of the tangent map."""

    n: int  # states
    n_parameters: int
    n_columns: int  # of the tangent map
    n_own: int  # states that are perturbed: those of the sources of a circuit follow them
    every: int  # rows from one section to the next
    orthonormal: int  # whether columns are orthonormalised at sections, and their growth summed
    section: int  # AT_TIMES, AT_IMPACTS or AT_CROSSINGS: where points are recorded
    width: int  # entries of a point
    evaluate: int  # address of `evaluate` of the family
    surface: int  # address of the function whose zero set is the section
    crossing: int  # 1: it has to rise there, -1: to fall, 0: either


class Scratch(NamedTuple):
    """Copies of the memory of one member, for evaluations without side effects."""

    mem: np.ndarray
    imem: np.ndarray
    work: np.ndarray
    iwork: np.ndarray


class Members(NamedTuple):
    """Memory of all members, the time between their rows, and recorded points."""

    mem: np.ndarray
    imem: np.ndarray
    work: np.ndarray
    iwork: np.ndarray
    h: np.ndarray  # (members,)
    points: np.ndarray  # (members, entries): of each point t, number of impacts so far, state; at impacts also the state after
    skipped: np.ndarray  # (members,): sections, impacts or crossings before the first point
    varied: np.ndarray  # (members, k): parameters of the function of a section


class Changes(NamedTuple):
    """Changes of memory by parameter j at ``-delta_j`` (row 2 j) and ``delta_j`` (row 2 j + 1), as lists of entries."""

    delta: np.ndarray  # (parameters,)
    mem_end: np.ndarray  # (1 + 2 parameters,): where the list of a row begins and ends
    mem_at: np.ndarray
    mem_value: np.ndarray
    work_end: np.ndarray
    work_at: np.ndarray
    work_value: np.ndarray


class System(NamedTuple):
    """Scheme, functions and memory with which maps of one member are computed."""

    plan: Plan
    changes: Changes
    one: Memory  # its memory, at the state before or after the motion
    other: Memory  # a copy, for derivatives
    tables: NamedTuple
    functions: np.ndarray
    options: NamedTuple


class Tangent(NamedTuple):
    """Tangent map and counters of each member."""

    columns: np.ndarray  # (members, n, columns) flat; with parameters as many columns as states and parameters
    growth: np.ndarray  # (members, columns): logarithms of the growth of the columns
    notes: np.ndarray  # (members, N_NOTES)
    reached: np.ndarray  # (members, N_REACHED)
    scratch: np.ndarray  # (members, entries)
    maps: np.ndarray  # (members, entries): map of each section on its own, from identity columns; empty: columns go on


def scratch_size(n, size, has_matrices):
    """Entries of `Tangent.scratch` for n states, or ``size`` with parameters; has_matrices: whether derivatives are computed there."""
    return 1 + VECTORS * size + (_MATRICES * n * size if has_matrices else 0)


@kernel
def multiply(n, m, width, A, B, out):
    """``out = A B``: the first n columns of n rows of this width, times an (n, m) matrix by rows."""
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(n):
                s += A[i * width + k] * B[k * m + j]
            out[i * m + j] = s


@kernel
def exponential(n, width, A, out, power, product):
    """The first n rows of ``exp [[A, B], [0, 0]]``, of n rows ``[A B]`` of this width; out, power, product: (n, width).

    Scaling and squaring: the series of A halved until it is small, squared as often.
    """
    # 1. row-sum norm, and the halvings that bring it below 1/2
    largest = 0.0
    for i in range(n):
        s = 0.0
        for j in range(n):
            s += abs(A[i * width + j])
        largest = max(largest, s)
    halvings = 0
    while largest > 0.5 and halvings < 1000:
        largest *= 0.5
        halvings += 1
    # 2. series
    scale = 0.5**halvings
    for i in range(n):
        for j in range(width):
            power[i * width + j] = A[i * width + j] * scale
            out[i * width + j] = power[i * width + j] + (1.0 if i == j else 0.0)
    for term in range(2, _TERMS):
        multiply(n, width, width, A, power, product)
        for i in range(n * width):
            power[i] = product[i] * scale / term
            out[i] += power[i]
    # 3. squaring; columns behind the first n add up as in the block matrix
    for _ in range(halvings):
        multiply(n, width, width, out, out, product)
        for i in range(n):
            for j in range(width):
                out[i * width + j] = product[i * width + j] + (out[i * width + j] if j >= n else 0.0)


@kernel
def balance(n, width, A, units):
    """Units, times powers of 2, in which rows and columns of A are of one size: of n rows of this width, in units of its first n columns.

    Osborne (1960). A state that none acts on, or that acts on none, has the unit in which all entries beside it are at most 1. So one whose
    size was that of rounding does not make those of all others round off.
    """
    for _ in range(_SWEEPS):
        is_balanced = True
        for i in range(n):
            row = column = 0.0
            for j in range(n):
                row += abs(A[i * width + j]) if j != i else 0.0
                column += abs(A[j * width + i]) if j != i else 0.0
            if max(row, column) == 0.0 or (min(row, column) == 0.0 and max(row, column) <= 1.0):
                continue
            ratio = row if column == 0.0 else 1.0 / column if row == 0.0 else math.sqrt(row / column)
            factor = 2.0 ** round(math.log2(ratio))
            if factor != 1.0:
                is_balanced = False
                units[i] *= factor
                for j in range(width):
                    A[i * width + j] /= factor
                for j in range(n):
                    A[j * width + i] *= factor
        if is_balanced:
            return


@kernel
def log_of_determinant(n, A, spare):
    """``log |det A|`` of an (n, n) matrix by rows, by elimination with pivots; -inf where it is singular."""
    # elimination on a copy, with row pivots
    for i in range(n * n):
        spare[i] = A[i]
    result = 0.0
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            best = i if abs(spare[i * n + k]) > abs(spare[best * n + k]) else best
        pivot = spare[best * n + k]
        if pivot == 0.0:
            return -math.inf
        result += math.log(abs(pivot))
        for j in range(n):
            spare[k * n + j], spare[best * n + j] = spare[best * n + j], spare[k * n + j]
        for i in range(k + 1, n):
            factor = spare[i * n + k] / pivot
            for j in range(k, n):
                spare[i * n + j] -= factor * spare[k * n + j]
    return result


@kernel
def orthonormalise(n, k, columns, growth, log_det):
    """Gram-Schmidt orthonormalisation of k columns of n entries; logarithms of their lengths are added to growth.

    A motion that has lost directions, whose log_det is -inf, leaves rounding in some columns: these have no length, and go on in other
    directions.
    """
    least = _LOST if log_det == -math.inf else 0.0
    for j in range(k):
        length = _make_normal(j, n, k, least, columns)
        growth[j] += math.log(length) if length > 0.0 else -math.inf
        if length == 0.0:
            for a in range(n):
                columns[a * k + j] = ((a + 1) * (j + 2) * _GOLDEN) % 1.0 - 0.5
            _make_normal(j, n, k, 0.0, columns)


@kernel
def _make_normal(j, n, k, least, columns):
    """Makes column j normal to those before it, of length 1. Returns its length, 0 where no more than this part of it is left."""
    whole = length = 0.0
    for a in range(n):
        whole = math.hypot(whole, columns[a * k + j])
    # twice: one pass leaves the columns orthogonal only to rounding over their angle
    for _ in range(2):
        for i in range(j):
            s = 0.0
            for a in range(n):
                s += columns[a * k + i] * columns[a * k + j]
            for a in range(n):
                columns[a * k + j] -= s * columns[a * k + i]
    for a in range(n):
        length = math.hypot(length, columns[a * k + j])
    if length <= least * whole:
        return 0.0
    for a in range(n):
        columns[a * k + j] /= length
    return length


@tiny
def copy_vector(source, target):
    """target = source, of two vectors."""
    for i in range(target.size):
        target[i] = source[i]


@tiny
def _keep(memory, scratch):
    """Copies the memory of a member."""
    copy_vector(memory.mem, scratch.mem)
    copy_vector(memory.work, scratch.work)
    copy_vector(memory.iwork, scratch.iwork)


@tiny
def put_change(row, changes, scratch):
    """Changes a parameter in the memory."""
    for k in range(changes.mem_end[row], changes.mem_end[row + 1]):
        scratch.mem[changes.mem_at[k]] = changes.mem_value[k]
    for k in range(changes.work_end[row], changes.work_end[row + 1]):
        scratch.work[changes.work_at[k]] = changes.work_value[k]


@tiny
def _undo(row, changes, one, other):
    """Restores the memory before a change of a parameter."""
    for k in range(changes.mem_end[row], changes.mem_end[row + 1]):
        other.mem[changes.mem_at[k]] = one.mem[changes.mem_at[k]]
    for k in range(changes.work_end[row], changes.work_end[row + 1]):
        other.work[changes.work_at[k]] = one.work[changes.work_at[k]]


def _differentiate_template(what, row, t, x, size, out, w, system):
    """Derivatives of `size` outputs by states and parameters, by rows into out; ``what`` of the family at x in the modes of ``one``.

    Of a state that is small throughout shorter differences are tried: errors of those that are too long fall with their square, rounding
    grows as they shrink, and the one counts that agrees best with the next.
    """
    plan, changes, one, other = system.plan, system.changes, system.one, system.other
    n, is_exact = plan.n + plan.n_parameters, is_linear(system.tables)  # noqa: F821
    high, low, sizes, longer = view(w, 6 * n + 1, n), view(w, 7 * n + 1, n), view(w, SIZES * n + 1, n), view(w, _LONGER * n + 1, n)
    for j in range(n):
        # 1. states: the width is that of the rounded arguments, so that the quotient of a linear function is exact
        if j < plan.n_own:
            at, delta, least = x[j], (1.0 if is_exact else _STEP) * max(1.0, abs(x[j])), math.inf
            for level in range(_LEVELS if not is_exact and 0.0 < sizes[j] < SMALL else 1):
                x[j] = at + delta
                up = x[j]
                evaluate(plan.evaluate, (what, row, t, x, high, system, one))  # noqa: F821
                x[j] = at - delta
                width = up - x[j]
                evaluate(plan.evaluate, (what, row, t, x, low, system, one))  # noqa: F821
                x[j] = at
                gap = 0.0
                for i in range(size):
                    high[i] = (high[i] - low[i]) / width
                    gap = max(gap, _gap(i, j, n, high[i], longer[i], sizes, out)) if level > 0 else math.inf
                if gap < least or level == 0:
                    for i in range(size):
                        out[i * n + j] = longer[i] if level > 0 else high[i]
                if gap <= _AGREEMENT or (gap >= _RISE * least and least <= _CLEAR):
                    break
                least = min(least, gap)
                delta *= _SHORTER
                if delta < _NARROWEST * sizes[j]:
                    break
                for i in range(size):
                    longer[i] = high[i]
            continue
        # 2. parameters, in a copy of the memory; states of sources, in between, have no derivatives
        if j >= plan.n:
            width = 2.0 * changes.delta[j - plan.n]
            if j == plan.n:
                _keep(one, other)
            for side in range(2):
                change = 2 * (j - plan.n) + side
                put_change(change, changes, other)
                y = low if side == 0 else high
                evaluate(plan.evaluate, (what, row, t, x, y, system, other))  # noqa: F821
                _undo(change, changes, one, other)
        for i in range(size):
            out[i * n + j] = (high[i] - low[i]) / width if j >= plan.n else 0.0


@tiny
def _gap(i, j, n, one, other, sizes, out):
    """Difference of two derivatives of output i by state j, relative to the larger and to those by the states before, in units of j."""
    gap, scale = abs(one - other), max(abs(one), abs(other))
    for k in range(j):
        scale = max(scale, abs(out[i * n + k]) * sizes[k] / sizes[j])
    return (gap / scale if gap > 0.0 else 0.0) if gap < math.inf else math.inf


@tiny
def note_sizes(x, n, sizes):
    """Largest values of n states so far."""
    for j in range(n):
        sizes[j] = max(sizes[j], abs(x[j]))


def _jacobian_template(t, x, out, w, system):
    """Jacobian of the vector field by states and parameters, n rows."""
    plan = system.plan
    for i in range(plan.n * (plan.n + plan.n_parameters)):
        out[i] = 0.0
    differentiate(FIELD, 0, t, x, plan.n, out, w, system)  # noqa: F821


def _propagate_template(t_0, t_1, tangent, m, system):
    """Advances the tangent map from the state x_0 of the scratch memory at t_0 to x_1 at t_1, without events, in the modes of ``one``."""
    put_on(t_0, tangent, m, system)  # noqa: F821
    if not t_1 > t_0:
        return
    plan, one = system.plan, system.one
    w, notes, N, h = tangent.scratch[m], tangent.notes[m], plan.n + plan.n_parameters, t_1 - t_0
    behind, size = 1 + VECTORS * N, plan.n * N
    x_0, x_1, x_m, f_0, f_1 = view(w, 1, N), view(w, N + 1, N), view(w, 2 * N + 1, N), view(w, 3 * N + 1, N), view(w, 4 * N + 1, N)
    J_1, J_2, omega = view(w, behind, size), view(w, behind + size, size), view(w, behind + 2 * size, size)
    whole, power, product = view(w, behind + 3 * size, size), view(w, behind + 4 * size, size), view(w, behind + 5 * size, size)
    # 1. linear: the Jacobian is constant
    if is_linear(system.tables) and plan.n_parameters == 0:  # noqa: F821
        jacobian(t_1, x_1, J_1, w, system)  # noqa: F821
        for i in range(size):
            omega[i] = h * J_1[i]
    # 2. else Magnus' method of fourth order at both Gauss points; states there by Hermite interpolation of x and x'
    else:
        evaluate(plan.evaluate, (FIELD, 0, t_0, x_0, f_0, system, one))  # noqa: F821
        evaluate(plan.evaluate, (FIELD, 0, t_1, x_1, f_1, system, one))  # noqa: F821
        for k in range(2):
            a = 0.5 - _GAUSS if k == 0 else 0.5 + _GAUSS
            b = 1.0 - a
            for i in range(plan.n):
                x_m[i] = b * x_0[i] + a * x_1[i] + a * b * ((a - b) * (x_1[i] - x_0[i]) + h * (b * f_0[i] - a * f_1[i]))
            jacobian(t_0 + a * h, x_m, J_1 if k == 0 else J_2, w, system)  # noqa: F821
        multiply(plan.n, N, N, J_1, J_2, power)
        multiply(plan.n, N, N, J_2, J_1, product)
        for i in range(size):
            omega[i] = 0.5 * h * (J_1[i] + J_2[i]) - 0.5 * _GAUSS * h * h * (power[i] - product[i])
    # 3. the map in units of the states, and the growth of volumes as the trace of Omega: exact where its determinant would underflow
    units, are_one = view(w, 3 * N + 1, N), True
    copy_vector(view(w, UNITS * N + 1, N), units)
    for i in range(plan.n):
        are_one &= units[i] == 1.0
        for j in range(N):
            omega[i * N + j] *= units[j] / units[i]
    if not are_one:
        balance(plan.n, N, omega, units)
    exponential(plan.n, N, omega, whole, power, product)
    for i in range(plan.n):
        for j in range(N):
            whole[i * N + j] *= units[i] / units[j]
    for i in range(plan.n_own):
        notes[LOG_DET] += omega[i * N + i]
    apply_map(whole, tangent.columns[m], plan.n, N, plan.n_columns, product)


def _along_template(surface, n_gaps, t, x, d, w, system):
    """Direction d in which lambda moves states off a surface at once, at x; of a gap through its velocity.

    Of a gap that is the bracket ``[f, d] = f_x d - d_x f - d_t`` with the direction d of its velocity: ``f_x d`` of a constant d.
    """
    plan, one, options = system.plan, system.one, system.options
    n = plan.n + plan.n_parameters
    at, f, bracket, high = view(w, 2 * n + 1, n), view(w, 4 * n + 1, n), view(w, 5 * n + 1, n), view(w, 6 * n + 1, n)
    evaluate(plan.evaluate, (ALONG_LAMBDA, surface, t, x, d, system, one))  # noqa: F821
    if surface >= n_gaps:
        return
    evaluate(plan.evaluate, (FIELD, 0, t, x, f, system, one))  # noqa: F821
    for i in range(plan.n):
        bracket[i] = 0.0
    for part in range(2):
        v, what, most = d if part == 0 else f, FIELD if part == 0 else ALONG_LAMBDA, 0.0
        for i in range(plan.n):
            most = max(most, abs(v[i]) / max(1.0, abs(x[i])))
        delta = _STEP / most if most > 0.0 else 0.0
        delta = min(delta, options.h) if part == 1 else delta
        for side in range(2 if delta > 0.0 else 0):
            signed = delta if side == 0 else -delta
            for i in range(plan.n):
                at[i] = x[i] + signed * v[i]
            evaluate(plan.evaluate, (what, surface, t + (signed if part == 1 else 0.0), at, high, system, one))  # noqa: F821
            for i in range(plan.n):
                bracket[i] += (high[i] if part == 0 else -high[i]) / (2.0 * signed)
    for i in range(plan.n):
        d[i] = bracket[i]


def _put_on_template(t, tangent, m, system):
    """Puts the tangent map on the surfaces on which lambda keeps the motion from t on, from the state x_0, in the modes of ``one``.

    States beside them come back at once, along what lambda acts: ``P = 1 - D (G D)^-1 G``, with the gradients G of the surfaces and these
    directions D, one after the other.
    """
    plan, one = system.plan, system.one
    w, notes, n, N = tangent.scratch[m], tangent.notes[m], plan.n, plan.n + plan.n_parameters
    behind, size = 1 + VECTORS * N, n * N
    x, d, moved, units, r = (
        view(w, 1, N),
        view(w, 3 * N + 1, N),
        view(w, 5 * N + 1, N),
        view(w, UNITS * N + 1, N),
        view(w, _LONGER * N + 1, N),
    )
    P, G, product = view(w, behind, size), view(w, behind + size, size), view(w, behind + 5 * size, size)
    # 1. surfaces, once in a mode; without any all states are as they are
    if tangent.reached[m, PUT_ON] != 0:
        return
    tangent.reached[m, PUT_ON] = 1
    count, n_gaps = n_surfaces(t, x, system.tables, system.functions, system.options, one)  # noqa: F821
    if count == 0:
        return
    for i in range(n):
        for j in range(N):
            P[i * N + j] = 1.0 if i == j else 0.0
    for k in range(count):
        # 2. gradient of each, as many at once as there is room for; of states on the former ones
        if k % n == 0:
            differentiate(OFF_SURFACE, k, t, x, min(n, count - k), G, w, system)  # noqa: F821
        largest, rest = 0.0, 0.0
        for j in range(N):
            r[j] = G[k % n * N + j] if j >= n else 0.0
            for i in range(n):
                r[j] += G[k % n * N + i] * P[i * N + j]
            largest, rest = max(largest, abs(G[k % n * N + j]) * units[j]), max(rest, abs(r[j]) * units[j])
        if rest <= _DEPENDENT * largest:
            continue
        # 3. a direction that leaves it, its own if possible
        pivot, terms = 0.0, 0.0
        for l in range(count):
            along((k + l) % count, n_gaps, t, x, d, w, system)  # noqa: F821
            pivot, terms = 0.0, 0.0
            for i in range(n):
                pivot, terms = pivot + r[i] * d[i], terms + abs(r[i] * d[i])
            if abs(pivot) > _DEPENDENT * terms:
                break
        if not abs(pivot) > _DEPENDENT * terms:
            notes[UNTREATED] += 1.0
            continue
        # 4. onto it
        for i in range(n):
            moved[i] = 0.0
            for j in range(n):
                moved[i] += P[i * N + j] * d[j]
        for i in range(n):
            for j in range(N):
                P[i * N + j] -= moved[i] * r[j] / pivot
    notes[LOG_DET] = -math.inf
    apply_map(P, tangent.columns[m], n, N, plan.n_columns, product)


@kernel
def apply_map(A, columns, n, width, k, product):
    """``columns = A columns``, of n rows of this width and k columns; below, all columns of parameters have identity rows."""
    multiply(n, k, width, A, columns, product)
    for i in range(n):
        for j in range(k):
            columns[i * k + j] = product[i * k + j] + (A[i * width + j] if j >= n else 0.0)


def _approach_template(t, tangent, m, system):
    """Before an event: f- into f_1, gradient of the guard into the scratch memory, and its rate into w[0]."""
    plan, tables, one = system.plan, system.tables, system.one
    w, notes = tangent.scratch[m], tangent.notes[m]
    n = plan.n + plan.n_parameters
    x, f, g = view(w, n + 1, n), view(w, 4 * n + 1, n), view(w, 8 * n + 1, n)
    # 1. the first of the guards that have crossed zero; several together have no unique derivative, which is counted
    count, row = 0, -1
    for i in range(n_guards(tables)):  # noqa: F821
        if crosses(i, tables, one.iwork):  # noqa: F821
            count, row = count + 1, i if row < 0 else row
    # 2. vector field before the event, rate and gradient of the guard
    for j in range(n):
        g[j] = f[j] = 0.0
    evaluate(plan.evaluate, (FIELD, 0, t, x, f, system, one))  # noqa: F821
    w[0] = 0.0
    if row >= 0:
        w[0] = guard_rate(row, t, x, tables, system.functions, system.options, one)  # noqa: F821
        differentiate(GUARD, row, t, x, 1, g, w, system)  # noqa: F821
    notes[TOGETHER] += 1.0 if count > 1 else 0.0
    if w[0] != 0.0:
        notes[SLOWEST] = min(notes[SLOWEST], abs(w[0]))


def _leave_template(t, jumped, tangent, m, system):
    """After an event: applies the saltation matrix to the tangent map. In: x_1, f_1, gradient and rate of the guard before it."""
    plan, tables, options, one = system.plan, system.tables, system.options, system.one
    w, notes, n = tangent.scratch[m], tangent.notes[m], plan.n
    N = n + plan.n_parameters
    behind, size = 1 + VECTORS * N, n * N
    x, x_after, f_before, f_after = view(w, N + 1, N), view(w, 2 * N + 1, N), view(w, 4 * N + 1, N), view(w, 3 * N + 1, N)
    moved, long, g = view(w, 5 * N + 1, N), view(w, 1, N), view(w, 8 * N + 1, N)
    S, spare, product = view(w, behind, size), view(w, behind + 4 * size, size), view(w, behind + 5 * size, size)
    # 1. vector field after the event; without a jump the reset is the identity
    load(x_after, tables, one)  # noqa: F821
    evaluate(plan.evaluate, (FIELD, 0, t, x_after, f_after, system, one))  # noqa: F821
    for i in range(n):
        for j in range(N):
            S[i * N + j] = 1.0 if i == j else 0.0
        moved[i] = f_before[i]
    # 2. a jump: the reset must give the state that the run has, or the event is counted as untreated
    if jumped:
        set_reset(tables, one)  # noqa: F821
        high, low, delta = view(w, 6 * N + 1, N), view(w, 7 * N + 1, N), _STEP * max(options.h, abs(t) * _STEP)
        evaluate(plan.evaluate, (RESET, 0, t, x, high, system, one))  # noqa: F821
        miss, scale = 0.0, 0.0
        for i in range(n):
            miss, scale = max(miss, abs(high[i] - x_after[i])), max(scale, abs(x_after[i]), abs(x[i]))
        notes[UNTREATED] += 1.0 if not miss <= _FAR * scale else 0.0
        # 3. derivative of the reset by time
        evaluate(plan.evaluate, (RESET, 0, t + delta, x, high, system, one))  # noqa: F821
        evaluate(plan.evaluate, (RESET, 0, t - delta, x, low, system, one))  # noqa: F821
        for i in range(n):
            moved[i] = (high[i] - low[i]) / (2.0 * delta)
            long[i] = 0.0
        s = _LONG * plan.every * options.h
        for k in range(1, 3):
            evaluate(plan.evaluate, (RESET, 0, t + k * s, x, high, system, one))  # noqa: F821
            evaluate(plan.evaluate, (RESET, 0, t - k * s, x, low, system, one))  # noqa: F821
            for i in range(n):
                long[i] += (high[i] - low[i]) * (8.0 if k == 1 else -1.0) / (12.0 * s)
        for i in range(n):  # what the short difference has beyond the long one is noise, unless it is more: then time has a corner near
            moved[i] = long[i] if abs(long[i] - moved[i]) <= _ROUGH * scale / delta else moved[i]
        # 4. derivative of the reset by the state, and DR f- + R_t
        differentiate(RESET, 0, t, x, n, S, w, system)  # noqa: F821
        for i in range(n):
            for j in range(n):
                moved[i] += S[i * N + j] * f_before[j]
    # 5. saltation matrix; an event by time alone has no guard, and w[0] is 0
    for i in range(n if w[0] != 0.0 else 0):
        for j in range(N):
            S[i * N + j] += (f_after[i] - moved[i]) * g[j] / w[0]
    # 6. growth of volumes over the states that are perturbed, then the map
    for i in range(plan.n_own):
        for j in range(plan.n_own):
            spare[i * plan.n_own + j] = S[i * N + j]
    notes[LOG_DET] += log_of_determinant(plan.n_own, spare, product)
    apply_map(S, tangent.columns[m], n, N, plan.n_columns, product)


@kernel
def write_point(t, reached, width, n, x, x_after, notes, points):
    """Records a point if there is room."""
    at = reached[POINTS] * width
    if at + width <= points.size:
        points[at], points[at + 1] = t, notes[IMPACTS]
        for i in range(n):
            points[at + 2 + i] = x[i]
        for i in range(width - 2 - n):
            points[at + 2 + n + i] = x_after[i]
        reached[POINTS] += 1


@kernel
def set_apart(n, k, section, columns, maps):
    """Stores the map (n, k) of a section, and resets the columns to the identity; rows of parameters, below, stay as they are."""
    for i in range(n):
        for j in range(k):
            maps[(section * n + i) * k + j] = columns[i * k + j]
            columns[i * k + j] = 1.0 if i == j else 0.0


def _cross_template(t_0, t_1, tangent, m, members, calls, system):
    """Records the crossing of the section by the motion from x_0 at t_0, the state of ``one``, to x_1 at t_1, without events in between.

    The function changes its sign; the zero is found by the Illinois method, on motions from ``one`` that end earlier.
    """
    plan, tables, one, other = system.plan, system.tables, system.one, system.other
    w, notes, reached, n, varied = tangent.scratch[m], tangent.notes[m], tangent.reached[m], plan.n + plan.n_parameters, members.varied[m]
    x_m, g = view(w, 2 * n + 1, n), view(w, 0, 1)
    # 1. does the function change its sign in the wanted direction?
    on_surface(plan.surface, (t_0, view(w, 1, plan.n_own), varied, g))  # noqa: F821
    g_0 = g[0]
    on_surface(plan.surface, (t_1, view(w, n + 1, plan.n_own), varied, g))  # noqa: F821
    g_1 = g[0]
    rises, falls = g_0 < 0.0 <= g_1 and plan.crossing >= 0, g_0 > 0.0 >= g_1 and plan.crossing <= 0
    if not (rises or falls):
        return
    # 2. count; locate only the crossings that are recorded
    notes[CROSSINGS] += 1.0
    if notes[CROSSINGS] <= members.skipped[m] or (reached[POINTS] + 1) * plan.width > members.points[m].size:
        return
    # 3. secants of Illinois, each on a motion from the start of the row: no interpolation error
    low, high, g_low, g_high, side, t = t_0, t_1, g_0, g_1, 0, t_1
    copy_vector(view(w, n + 1, n), x_m)
    for _ in range(_SECANTS):
        if g[0] == 0.0 or high - low <= _LOCATED * max(abs(low), abs(high), t_1 - t_0):
            break
        t = (low * g_high - high * g_low) / (g_high - g_low)
        t = t if low < t < high else 0.5 * (low + high)
        _keep(one, other)
        status = PAUSED
        while status == PAUSED:
            status, _, _ = step_(t, tables, calls, system.options, other)  # noqa: F821
        load(x_m, tables, other)  # noqa: F821
        on_surface(plan.surface, (t, view(w, 2 * n + 1, plan.n_own), varied, g))  # noqa: F821
        if g[0] * g_1 > 0.0:
            high, g_high = t, g[0]
            g_low *= 0.5 if side == 1 else 1.0
            side = 1
        else:
            low, g_low = t, g[0]
            g_high *= 0.5 if side == -1 else 1.0
            side = -1
    write_point(t, reached, plan.width, plan.n, x_m, x_m, notes, members.points[m])


def _tangent_march_template(first, last, until, plan, all_members, tables, functions, solver, solver_options, options, tangent, changes,
                            ones, others):  # fmt: skip
    """Rows of members first..last up to ``until``, tangent maps if these have columns, points of a section; in long rows it is HALTED."""
    n = plan.n + plan.n_parameters
    # 1. memory of the member, and copies for derivatives
    for m in range(first, last):
        mem, imem, address = all_members.mem[m], all_members.imem[m], functions[m]
        memory = memory_of((mem, imem, all_members.work[m], all_members.iwork[m]))
        reached, notes, w, is_after, before = tangent.reached[m], tangent.notes[m], tangent.scratch[m], False, tangent.notes[m, EVENTS]
        points, skipped = all_members.points[m], all_members.skipped[m]
        one = memory_of((ones.mem[m], ones.imem[m], ones.work[m], ones.iwork[m]))
        other = memory_of((others.mem[m], others.imem[m], others.work[m], others.iwork[m]))
        calls = calls_of((address, solver, solver_options))
        system = System(plan, changes, one, other, tables, address, options)
        x_0, x_1, x_m = view(w, 1, n), view(w, n + 1, n), view(w, 2 * n + 1, n)
        # 2. start of the run
        if reached[STARTED] == 0:
            reached[STARTED] = _AT_START
            reached[STOPPED] = start(mem[T], tables, address, options, memory)  # noqa: F821
        # 3. the motion to the end of the row, or to an event
        while reached[DONE] < until and reached[STOPPED] == 0 and not (is_after and notes[EVENTS] > before + _EVENTS):
            k, t_0 = imem[STEP] + 1, mem[T]
            t = mem[T0] + k * all_members.h[m]
            if reached[HALTED] != 0:
                t_0, is_after, reached[HALTED] = notes[BEGAN], reached[HALTED] == 2, 0
            elif not is_after:
                load(x_0, tables, memory)  # noqa: F821
                if plan.section == AT_CROSSINGS:
                    _keep(memory, one)
            status, pauses = PAUSED, 0
            while status == PAUSED and pauses < _PAUSES:
                status, _, _ = step_(t, tables, calls, options, memory)  # noqa: F821
                pauses += 1
            if status == PAUSED:
                notes[BEGAN], reached[HALTED] = t_0, 2 if is_after else 1
                break
            if status != CONVERGED and status != INEXACT and status < EVENT:
                reached[STOPPED] = status
                break
            # 4. the end of the row is reached; circuits show their start as an event, at which nothing changes but by a jump
            imem[STEP], mem[T] = (k, t) if status < EVENT else (imem[STEP], mem[T])
            is_start, reached[STARTED] = reached[STARTED] == _AT_START and mem[T] == t_0 and status >= EVENT, _UNDER_WAY
            # 5. after an event: saltation matrix, and the point at an impact
            if is_after or is_start or status > EVENT:
                notes[IMPACTS] += 1.0 if (status & JUMP) != 0 else 0.0
                notes[UNTREATED] += 0.0 if is_after or (is_start and (status & JUMP) == 0) else 1.0
                if plan.section == AT_IMPACTS and (status & JUMP) != 0 and is_after and notes[IMPACTS] > skipped:
                    load(x_m, tables, memory)  # noqa: F821
                    write_point(mem[T], reached, plan.width, plan.n, x_1, x_m, notes, points)
                if is_after and plan.n_columns > 0:
                    _keep(memory, one)
                    leave(mem[T], (status & JUMP) != 0, tangent, m, system)  # noqa: F821
                is_after, reached[PUT_ON] = False, 0 if (status & _MAY_HOLD) != 0 else reached[PUT_ON]
                continue
            # 6. smooth part: sizes of the states, crossings of the section, tangent map
            load(x_1, tables, memory)  # noqa: F821
            if plan.n_columns == 0:
                note_sizes(x_0, plan.n_own, view(w, SIZES * n + 1, n))
                note_sizes(x_1, plan.n_own, view(w, SIZES * n + 1, n))
            if plan.section == AT_CROSSINGS and mem[T] > t_0:
                cross(t_0, mem[T], tangent, m, all_members, calls, system)  # noqa: F821
            if plan.n_columns > 0:
                _keep(memory, one)
                propagate(t_0, mem[T], tangent, m, system)  # noqa: F821
            # 7. before an event: its guard and vector field; the loop continues with the state after it
            notes[TIME] += mem[T] - t_0
            is_after = status == EVENT
            if is_after:
                notes[EVENTS] += 1.0
                if plan.n_columns > 0:
                    approach(mem[T], tangent, m, system)  # noqa: F821
                continue
            # 8. end of a section: store or orthonormalise the map, record the point
            reached[DONE] += 1
            if reached[DONE] % plan.every == 0:
                reached[PUT_ON] = 0
                if tangent.maps.shape[1] > 0:
                    set_apart(plan.n, plan.n_columns, reached[DONE] // plan.every - 1, tangent.columns[m], tangent.maps[m])
                if plan.orthonormal != 0:
                    orthonormalise(plan.n_own, plan.n_columns, tangent.columns[m], tangent.growth[m], notes[LOG_DET])
                if plan.section == AT_TIMES and reached[DONE] > skipped * plan.every:
                    write_point(mem[T], reached, plan.width, plan.n, x_1, x_1, notes, points)
        if is_after and reached[HALTED] == 0 and reached[STOPPED] == 0:
            notes[BEGAN], reached[HALTED] = mem[T], 2


FAMILY = ("is_linear", "n_guards", "crosses", "load", "guard_rate", "set_reset", "n_surfaces")
_vector = float64[::1]
SURFACE = types.void(float64, _vector, _vector, _vector)
_on_surface = _jit.caller(SURFACE)
_marches, _evaluates = {}, {}  # by family: tables of all models have the same types


def address_of_evaluate(prepared, family):
    """Address of ``evaluate`` for the family of a prepared run."""
    if family not in _evaluates:
        _evaluates[family] = int(_jit.address(_signature_of(prepared), family.evaluate))
    return _evaluates[family]


def _signature_of(prepared):
    numbers, entries = np.zeros(0), np.zeros(0, np.int64)
    one, changes = Memory(numbers, entries, numbers, entries), Changes(numbers, *(entries, entries, numbers) * 2)
    system = System(Plan(*(0,) * len(Plan._fields)), changes, one, one, prepared.tables, prepared.functions[0], prepared.options)
    return types.void(int64, int64, float64, _vector, _vector, numba.typeof(system), MEMORY)


def _kernels_of(family, name, signature, step):
    """Kernels of the tangent map of a family of systems, whose module defines f, g and R; these are called by address."""
    names = {key: getattr(family, key) for key in FAMILY} | {"evaluate": _jit.caller(signature), "on_surface": _on_surface, "step_": step}
    for template, key in (
        (_differentiate_template, "differentiate"),
        (_jacobian_template, "jacobian"),
        (_along_template, "along"),
        (_put_on_template, "put_on"),
        (_propagate_template, "propagate"),
        (_approach_template, "approach"),
        (_leave_template, "leave"),
        (_cross_template, "cross"),
    ):
        names[key] = kernel(_jit.specialised(template, name, **names))
    return names


def march_of(prepared, family):
    """Compiled loop that advances tangent maps, for the scheme and the family of systems of a prepared run."""
    name = family.__name__.rpartition(".")[2]
    if name not in _marches:
        names = _kernels_of(family, name, _signature_of(prepared), prepared.stepper.step) | {"start": prepared.stepper.start}
        _marches[name] = kernel(_jit.specialised(_tangent_march_template, name, **names))
    return _marches[name]
