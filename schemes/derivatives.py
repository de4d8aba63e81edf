"""Derivatives of the functions of a relation, by the user's function or by differences."""

from nsds._jit import kernel, view
from nsds.functions import CENTRAL_STEP, call_function
from nsds.layout import ABSENT

STEP = 2.0**-26  # of a forward difference, relative to 1 or the variable


@kernel
def derivative(t, r, function, jacobian, rows, variable, columns, out, spare, functions, mem, work):
    """Jacobian (rows, columns) of a function of relation r; variable is an offset of its arguments x or lam. Work: spare (rows).

    Differences are central: what of H is noise is noise of the impulses, below which Newton's residual does not fall.
    """
    x, lam, z = view(work, r.x, r.n), view(work, r.lam, r.m), view(mem, r.z, r.n_z)
    if jacobian != ABSENT:
        call_function(functions[jacobian], (t, x, lam, z, view(work, out, rows * columns)))
        return
    for j in range(columns):
        x_j = work[variable + j]
        step = CENTRAL_STEP * max(1.0, abs(x_j))
        work[variable + j] = x_j + step
        call_function(functions[function], (t, x, lam, z, view(work, spare, rows)))
        for i in range(rows):
            work[out + i * columns + j] = work[spare + i]
        work[variable + j] = x_j - step
        call_function(functions[function], (t, x, lam, z, view(work, spare, rows)))
        work[variable + j] = x_j
        for i in range(rows):
            work[out + i * columns + j] = (work[out + i * columns + j] - work[spare + i]) / (2.0 * step)
