"""Forces that are functions of time, over a step of a linear motion: as polynomials of theta, and where they jump.

Where a jump is, a hundred values of the forces tell, or more. Jumps that come again after one time, as the corners of a cam do, are
foretold, each from the last one: then it takes 3 values more than the step up to it, and where there is none this costs no more.
"""

import math

from nsds._jit import kernel, tiny, view
from nsds.maths.polynomials import FORCE_DEGREE, FORCE_NODES, interpolate_force, value
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT
from nsds.schemes.event_driven.guards import time_in_step
from nsds.schemes.event_driven.tables import JUMPS
from nsds.schemes.sides import clamped

_ACCURATE = 1e-13  # of what is missing in the interpolation of a force, over the step for which it counts
_UNIT = 2.0**-52
JUMP = 1e-5  # missing in a polynomial: a jump is looked for
_DIFFERS = 1e-6  # of the largest value, from the polynomial: beyond a jump
_CLOSER, _HALVINGS = 3, 64  # of the stretch with a jump, until polynomials are carried on into it; and further ones
_APART = 4.0  # units in the last place: nothing lies between
_ASIDE = 16.0  # of these distances: by how much a jump may be off the time for which it was foretold


@tiny
def _shortest(t, h):
    """Times in a step from t that are no further apart are one."""
    return _APART * _UNIT * (abs(t) + h)


@kernel
def missing_in_forces(t, h, s, functions, options, memory):
    """Polynomials of the forces over the step into f.force_poly, up to theta^force_degree.

    Over a step across a jump, which is as short as times can tell, they are straight lines; of a jump at the start of a step they are
    what is behind it. Returns (what is missing in them, relative;
    whether that is too much).
    """
    work, iwork = memory.work, memory.iwork
    f, form = s.flow[0], s.newton
    if iwork[f.has_forces] == 0:
        iwork[f.force_degree] = 0
        return 0.0, False
    n, missing, is_across = f.n // 2, 0.0, h <= _shortest(t, h)
    for j in range(FORCE_DEGREE + 1):
        if not is_across or j % FORCE_DEGREE == 0:
            at = time_in_step(t, FORCE_NODES[j], h) + (_shortest(t, h) if j == 0 and not is_across else 0.0)
            _forces_at(clamped(at, f, work), f.force_value + j * n, form.parts, form.elements, functions, memory)
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
    """Where between h and ``beyond`` forces jump: (length of a step that ends before, of another one across), or (h, 0) if they do not.

    Polynomials are good up to h and not up to ``beyond``. The stretch between is halved, first by polynomials, then by single values beside
    the last good one, down to rounding of times. Out: polynomials over the step of the first length.
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
    """As `before_jump`, where one was foretold for ``t + h``, up to which polynomials are good; else it is looked for nearby.

    missing: in the polynomials. Where that is a jump, it is so near that this step lies across it.
    """
    shortest = _shortest(t, h)
    if missing > JUMP or h <= shortest:
        return h, shortest
    if _is_beyond(t, h, h, s, functions, memory):
        low, high = max(0.0, h - _ASIDE * shortest), h
    else:
        low, high = h, h + shortest
        if not _is_beyond(t, h, high, s, functions, memory):
            low, high = high, h + _ASIDE * shortest
            if not _is_beyond(t, h, high, s, functions, memory):
                return h, 0.0
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
    """When forces will jump next, if they do again what they did a recurrence ago; infinite where nothing is foretold."""
    iwork = memory.iwork
    while iwork[p.foretold] < iwork[p.n_jumps]:
        time = memory.work[p.jumped_at + iwork[p.foretold]] + memory.work[p.recurrence]
        if time > t:
            return time
        iwork[p.foretold] += 1
    return math.inf


@kernel
def note_jump(t, p, memory):
    """Forces have jumped at t. If nothing is foretold, look whether the last jumps have come again twice, all after the same time.

    p is a row of a table with the columns jumped_at and recurrence of the work memory, n_jumps and foretold of the integer one.
    """
    work, iwork = memory.work, memory.iwork
    n = iwork[p.n_jumps]
    if n == JUMPS:
        n //= 2
        iwork[p.foretold] = max(iwork[p.foretold] - n, 0)
        for k in range(n):
            work[p.jumped_at + k] = work[p.jumped_at + n + k]
    work[p.jumped_at + n] = t
    iwork[p.n_jumps], last = n + 1, p.jumped_at + n
    if work[p.recurrence] < math.inf and iwork[p.foretold] < n:
        return
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
    """Whether a force at ``t + length`` is another than the polynomials over the step h say, carried on."""
    work = memory.work
    f = s.flow[0]
    n, differs = f.n // 2, False
    _forces_at(clamped(t + length, f, work), f.force_value, s.newton.parts, s.newton.elements, functions, memory)
    for i in range(n):
        carried = value(FORCE_DEGREE, f.force_poly + i, n, length / h, work)
        now = work[f.force_value + i]
        differs |= abs(now - carried) > _DIFFERS * max(abs(now), abs(carried))
    return differs
