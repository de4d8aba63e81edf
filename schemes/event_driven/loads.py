"""Forces that are functions of time, over a step of a linear motion: as polynomials of theta, and where they jump."""

from nsds._jit import kernel, view
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT
from nsds.schemes.event_driven.guards import time_in_step
from nsds.schemes.event_driven.polynomials import FORCE_DEGREE, FORCE_NODES, interpolate_force, value

_ACCURATE = 1e-13  # of what is missing in the interpolation of a force, over the step for which it counts
_UNIT = 2.0**-52
JUMP = 1e-5  # missing in a polynomial: a jump is looked for
_DIFFERS = 1e-6  # of the largest value, from the polynomial: beyond a jump
_CLOSER, _HALVINGS = 3, 64  # of the stretch with a jump, until polynomials are carried on into it; and further ones
_APART = 4.0  # units in the last place: nothing lies between


@kernel
def missing_in_forces(t, h, s, functions, options, mem, work, iwork):
    """Polynomials of the forces over the step into f.force_poly. Returns (what is missing in them, relative; whether that is too much)."""
    f, form = s.flow[0], s.newton
    if iwork[f.has_forces] == 0:
        return 0.0, False
    n = f.n // 2
    for j in range(FORCE_DEGREE + 1):
        _forces_at(time_in_step(t, FORCE_NODES[j], h), f.force_value + j * n, form.parts, form.elements, functions, mem, work)
    missing = interpolate_force(n, f.force_value, _UNIT * (abs(t) + h) / h, f.force_poly, f.spare, work)
    return missing, not missing * h <= _ACCURATE * min(options.h, work[f.limit])


@kernel
def _forces_at(t, out, parts, elements, functions, mem, work):
    """Given forces of all parts at a time, into work[out:]."""
    nothing = view(mem, 0, 0)
    for k in range(elements.size):
        el = elements[k]
        part, to = parts[el.part], out + el.dof
        if part.fext_function != ABSENT:
            z = view(mem, part.z + el.e * part.stride, part.n_z)
            call_function(functions, part.fext_function + el.e, (t, nothing, nothing, z, view(work, to, part.n)))
        else:
            for i in range(part.n):
                work[to + i] = 0.0 if part.fext == ABSENT else mem[part.fext + el.e * part.stride + i]


@kernel
def before_jump(t, h, beyond, s, functions, options, mem, work, iwork):
    """Where between h and ``beyond`` forces jump: (length of a step that ends before, of another one across), or (h, 0) if they do not.

    Polynomials are good up to h and not up to ``beyond``. The stretch between is halved, first by polynomials, then by single values beside
    the last good one, down to rounding of times. Out: polynomials over the step of the first length.
    """
    for _ in range(_CLOSER):
        middle = 0.5 * (h + beyond)
        is_bad = missing_in_forces(t, middle, s, functions, options, mem, work, iwork)[1]
        h, beyond = (h, middle) if is_bad else (middle, beyond)
    missing_in_forces(t, h, s, functions, options, mem, work, iwork)
    low, high, shortest = h, beyond, _APART * _UNIT * (abs(t) + beyond)
    if not _is_beyond(t, h, high, s, functions, mem, work):
        return h, 0.0
    for _ in range(_HALVINGS):
        if high - low <= shortest:
            break
        middle = 0.5 * (low + high)
        if _is_beyond(t, h, middle, s, functions, mem, work):
            high = middle
        else:
            low = middle
    if missing_in_forces(t, low, s, functions, options, mem, work, iwork)[1]:
        missing_in_forces(t, h, s, functions, options, mem, work, iwork)
        return h, 0.0
    return low, high - low


@kernel
def _is_beyond(t, h, length, s, functions, mem, work):
    """Whether a force at ``t + length`` is another than the polynomials over the step h say, carried on."""
    f = s.flow[0]
    n, differs = f.n // 2, False
    _forces_at(t + length, f.force_value, s.newton.parts, s.newton.elements, functions, mem, work)
    for i in range(n):
        carried = value(FORCE_DEGREE, f.force_poly + i, n, length / h, work)
        now = work[f.force_value + i]
        differs |= abs(now - carried) > _DIFFERS * max(abs(now), abs(carried))
    return differs
