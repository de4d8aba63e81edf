"""Derivatives of the functions of a relation, by the user's function or by finite differences."""

from nsds._jit import kernel, tiny, view
from nsds.model.functions import CENTRAL_STEP, call_function
from nsds.model.layout import ABSENT

FORWARD_STEP = 2.0**-26  # of a forward difference, relative to 1 or the variable
_TINY = 2.0**-10  # smaller variables may be small because the scene is: then the step is checked
_SHORTER = 2.0**-10  # ratio of steps that are compared
_AGREEMENT = 2.0**-34  # of derivatives by both, relative to the largest of the row


@kernel
def derivative(t, r, function, jacobian, rows, variable, columns, out, spare, functions, memory):
    """Jacobian (rows, columns) of a function of relation r; variable is an offset of its arguments x or lam. Work: spare (3 rows).

    Differences are central: noise of H is noise of the impulses, below which Newton's residual does not fall. Their step is relative to 1
    or the variable; for variables so small that 1 may be no scale of them it is compared with shorter ones.
    """
    work = memory.work
    x, lam, z = view(work, r.x, r.n), view(work, r.lam, r.m), view(memory.mem, r.z, r.n_z)
    if jacobian != ABSENT:
        call_function(functions, jacobian, (t, x, lam, z, view(work, out, rows * columns)))
        return
    is_small = False
    for j in range(columns):
        x_j = work[variable + j]
        is_small |= abs(x_j) < _TINY
        _column(t, r, function, rows, variable + j, CENTRAL_STEP * max(1.0, abs(x_j)), out + j, columns, spare, functions, memory)
    for j in range(columns if is_small else 0):
        if abs(work[variable + j]) < _TINY:
            _check_column(t, r, function, rows, columns, variable + j, j, out, spare, functions, memory)


@kernel
def _column(t, r, function, rows, at, step, out, stride, spare, functions, memory):
    """Central difference by one variable into work[out], work[out + stride], ...; work: spare (rows)."""
    work = memory.work
    x, lam, z, value = view(work, r.x, r.n), view(work, r.lam, r.m), view(memory.mem, r.z, r.n_z), work[at]
    work[at] = value + step
    call_function(functions, function, (t, x, lam, z, view(work, spare, rows)))
    for i in range(rows):
        work[out + i * stride] = work[spare + i]
    work[at] = value - step
    call_function(functions, function, (t, x, lam, z, view(work, spare, rows)))
    work[at] = value
    for i in range(rows):
        work[out + i * stride] = (work[out + i * stride] - work[spare + i]) / (2.0 * step)


@kernel
def _check_column(t, r, function, rows, columns, at, j, out, spare, functions, memory):
    """Replace a column by that of a shorter step if its own is too long; work: spare (3 rows).

    Errors of a step that is too long fall with its square, those of rounding grow as it shrinks: two shorter steps distinguish them.
    """
    work = memory.work
    shorter, shortest = spare + rows, spare + 2 * rows
    step = CENTRAL_STEP * _SHORTER
    _column(t, r, function, rows, at, step, shorter, 1, spare, functions, memory)
    if _difference(rows, columns, j, shorter, out, work) <= _AGREEMENT:
        return
    _column(t, r, function, rows, at, step * _SHORTER, shortest, 1, spare, functions, memory)
    change, next_change = 0.0, 0.0
    for i in range(rows):
        change = max(change, abs(work[out + i * columns + j] - work[shorter + i]))
        next_change = max(next_change, abs(work[shorter + i] - work[shortest + i]))
    if next_change < change:
        for i in range(rows):
            work[out + i * columns + j] = work[shortest + i]


@tiny
def _difference(rows, columns, which, other, out, work):
    """Largest difference of a column of work[out:] and another one, relative to the larger one of that and the row's largest entry."""
    worst = 0.0
    for i in range(rows):
        size = abs(work[other + i])
        for j in range(columns):
            size = max(size, abs(work[out + i * columns + j]))
        gap = abs(work[out + i * columns + which] - work[other + i])
        if gap > 0.0:
            worst = max(worst, gap / size)
    return worst
