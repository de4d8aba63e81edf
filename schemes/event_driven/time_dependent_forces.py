"""Forces that are functions of time, over a step of a linear motion: polynomials of theta, and detection of their jumps.

Locating a jump takes a hundred values of the forces or more. Jumps that recur periodically, as at the corners of a cam, are predicted from
the last one: then a step takes 3 values more, and without a jump nothing more.
"""

import math

from nsds._jit import kernel, tiny, view
from nsds.maths.polynomials import FORCE_DEGREE, FORCE_NODES, interpolate_force, value
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT
from nsds.schemes.event_driven.guards import time_in_step
from nsds.schemes.event_driven.tables import JUMPS
from nsds.schemes.sides import clamped

_ACCURATE = 1e-13  # interpolation error of a force, over the step for which it counts
_UNIT = 2.0**-52
JUMP = 1e-5  # error of a polynomial: a jump is searched
_DIFFERS = 1e-6  # relative to the largest value, from the polynomial: beyond a jump
_CLOSER, _HALVINGS = 3, 64  # bisections of the interval with a jump by polynomials; and further ones by values
_APART = 4.0  # units in the last place: nothing lies between
_ASIDE = 16.0  # of these distances: deviation of a jump from its predicted time


@tiny
def _shortest(t, h):
    """Times in a step from t that are no further apart are one."""
    return _APART * _UNIT * (abs(t) + h)


@kernel
def missing_in_forces(t, h, s, functions, options, memory):
    """Polynomials of the forces over the step into f.force_poly, up to theta^force_degree.

    Over a step across a jump, which is as short as times resolve, they are linear; of a jump at the start of a step they have the values
    after it. Returns (relative error, whether it is too large).
    """
    work, iwork = memory.work, memory.iwork
    # 1. constant forces have degree 0
    f, form = s.flow[0], s.newton
    if iwork[f.has_forces] == 0:
        iwork[f.force_degree] = 0
        return 0.0, False
    # 2. values at the nodes, the first one after a jump at the start
    n, missing, is_across = f.n // 2, 0.0, h <= _shortest(t, h)
    for j in range(FORCE_DEGREE + 1):
        if not is_across or j % FORCE_DEGREE == 0:
            at = time_in_step(t, FORCE_NODES[j], h) + (_shortest(t, h) if j == 0 and not is_across else 0.0)
            _forces_at(clamped(at, f, work), f.force_value + j * n, form.parts, form.elements, functions, memory)
    # 3. polynomials: a line across a jump, else interpolation
    if is_across:
        for i in range(n):
            work[f.force_poly + i] = work[f.force_value + i]
            work[f.force_poly + n + i] = work[f.force_value + FORCE_DEGREE * n + i] - work[f.force_value + i]
        iwork[f.force_degree] = 1
    else:
        missing = interpolate_force(n, f.force_value, _UNIT * (abs(t) + h) / h, f.force_poly, f.spare, work)
        iwork[f.force_degree] = _degree_of_forces(n, f.force_poly, work)
    return missing, not missing * h <= _ACCURATE * min(options.h, work[f.limit])


@tiny
def _degree_of_forces(n, poly, work):
    """The highest power in the polynomials of forces."""
    k = (FORCE_DEGREE + 1) * n - 1
    while k > 0 and work[poly + k] == 0.0:
        k -= 1
    return k // n


@kernel
def _forces_at(t, out, parts, elements, functions, memory):
    """Given forces of all parts at a time, into work[out:]."""
    mem = memory.mem
    nothing = view(mem, 0, 0)
    for k in range(elements.size):
        el = elements[k]
        part, to = parts[el.part], out + el.dof
        if part.fext_function != ABSENT:
            z = view(mem, part.z + el.e * part.stride, part.n_z)
            call_function(functions, part.fext_function + el.e, (t, nothing, nothing, z, view(memory.work, to, part.n)))
        else:
            for i in range(part.n):
                memory.work[to + i] = 0.0 if part.fext == ABSENT else mem[part.fext + el.e * part.stride + i]


@kernel
def before_jump(t, h, beyond, s, functions, options, memory):
    """Locate the jump of forces between h and ``beyond``: (length of a step that ends before, of another one across), or (h, 0) without.

    Polynomials are accurate up to h and not up to ``beyond``. The interval between is bisected, first by polynomials, then by single values
    next to the last accurate one, down to rounding of times. Out: polynomials over the step of the first length.
    """
    for _ in range(_CLOSER):
        middle = 0.5 * (h + beyond)
        is_bad = missing_in_forces(t, middle, s, functions, options, memory)[1]
        h, beyond = (h, middle) if is_bad else (middle, beyond)
    missing_in_forces(t, h, s, functions, options, memory)
    if not _is_beyond(t, h, beyond, s, functions, memory):
        return h, 0.0
    low, high = _narrowed(t, h, h, beyond, s, functions, memory)
    if missing_in_forces(t, low, s, functions, options, memory)[1]:
        missing_in_forces(t, h, s, functions, options, memory)
        return h, 0.0
    return low, high - low


@kernel
def _narrowed(t, h, low, high, s, functions, memory):
    """The times between which forces jump, halved down to rounding; in: polynomials over the step h, good up to low, not beyond high."""
    shortest = _shortest(t, high)
    for _ in range(_HALVINGS):
        if high - low <= shortest:
            break
        middle = 0.5 * (low + high)
        if _is_beyond(t, h, middle, s, functions, memory):
            high = middle
        else:
            low = middle
    return low, high


@kernel
def at_foretold_jump(t, h, missing, s, functions, options, memory):
    """As `before_jump`, for a jump predicted at ``t + h``, up to which polynomials are accurate; else it is searched nearby.

    missing: error of the polynomials. If that indicates a jump, it is so near that this step crosses it.
    """
    shortest = _shortest(t, h)
    # 1. the step crosses it already
    if missing > JUMP or h <= shortest:
        return h, shortest
    # 2. bracket: before the predicted time, or after it, by widening intervals
    if _is_beyond(t, h, h, s, functions, memory):
        low, high = max(0.0, h - _ASIDE * shortest), h
    else:
        low, high = h, h + shortest
        if not _is_beyond(t, h, high, s, functions, memory):
            low, high = high, h + _ASIDE * shortest
            if not _is_beyond(t, h, high, s, functions, memory):
                return h, 0.0
    # 3. bisection, and the step that ends before the jump
    low, high = _narrowed(t, h, low, high, s, functions, memory)
    if low != h and missing_in_forces(t, low, s, functions, options, memory)[1]:
        missing_in_forces(t, h, s, functions, options, memory)
        return h, 0.0
    return low, high - low


@tiny
def forget_jumps(p, memory):
    """Forces have not jumped. p: as of `note_jump`."""
    memory.iwork[p.n_jumps], memory.iwork[p.foretold], memory.work[p.recurrence] = 0, 0, math.inf


@kernel
def next_jump(t, p, memory):
    """Time of the next jump of forces, if they recur; infinite without prediction."""
    iwork = memory.iwork
    while iwork[p.foretold] < iwork[p.n_jumps]:
        time = memory.work[p.jumped_at + iwork[p.foretold]] + memory.work[p.recurrence]
        if time > t:
            return time
        iwork[p.foretold] += 1
    return math.inf


@kernel
def note_jump(t, p, memory):
    """Note a jump of forces at t. Without prediction, check whether the last jumps have recurred twice, all after the same time.

    p is a row of a table with the columns jumped_at and recurrence of the work memory, n_jumps and foretold of the integer one.
    """
    # 1. list of times; a full one keeps its later half
    work, iwork = memory.work, memory.iwork
    n = iwork[p.n_jumps]
    if n == JUMPS:
        n //= 2
        iwork[p.foretold] = max(iwork[p.foretold] - n, 0)
        for k in range(n):
            work[p.jumped_at + k] = work[p.jumped_at + n + k]
    work[p.jumped_at + n] = t
    iwork[p.n_jumps], last = n + 1, p.jumped_at + n
    # 2. a prediction that still holds is kept
    if work[p.recurrence] < math.inf and iwork[p.foretold] < n:
        return
    # 3. shortest cycle of jumps that has come three times
    iwork[p.foretold], work[p.recurrence] = n + 1, math.inf
    for cycle in range(1, n // 3 + 1):
        time, is_same = work[last] - work[last - cycle], True
        for k in range(1, 2 * cycle):
            is_same &= abs(work[last - k] - work[last - k - cycle] - time) <= _ASIDE * _shortest(t, time)
        if is_same:
            iwork[p.foretold], work[p.recurrence] = n + 1 - cycle, time
            break


@kernel
def _is_beyond(t, h, length, s, functions, memory):
    """Whether a force at ``t + length`` differs from the continued polynomials of the step h."""
    work = memory.work
    f = s.flow[0]
    n, differs = f.n // 2, False
    _forces_at(clamped(t + length, f, work), f.force_value, s.newton.parts, s.newton.elements, functions, memory)
    for i in range(n):
        carried = value(FORCE_DEGREE, f.force_poly + i, n, length / h, work)
        now = work[f.force_value + i]
        differs |= abs(now - carried) > _DIFFERS * max(abs(now), abs(carried))
    return differs
