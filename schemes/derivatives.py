"""Derivatives of the functions of a relation, by the user's function or by forward differences."""

import math

from nsds._jit import kernel, view
from nsds.functions import call_function
from nsds.layout import ABSENT

STEP = 2.0**-26  # of a forward difference, relative to 1 or the variable


@kernel
def derivative(t, r, function, jacobian, value, rows, variable, columns, out, spare, functions, mem, work):
    """Jacobian (rows, columns) of a function of relation r, whose value is at hand; variable is an offset of its arguments x or lam."""
    x, lam, z = view(work, r.x, r.n), view(work, r.lam, r.m), view(mem, r.z, r.n_z)
    if jacobian != ABSENT:
        call_function(functions[jacobian], (t, x, lam, z, view(work, out, rows * columns)))
        return
    for j in range(columns):
        x_j = work[variable + j]
        work[variable + j] = x_j + math.copysign(STEP * max(1.0, abs(x_j)), x_j)
        step = work[variable + j] - x_j
        call_function(functions[function], (t, x, lam, z, view(work, spare, rows)))
        work[variable + j] = x_j
        for i in range(rows):
            work[out + i * columns + j] = (work[spare + i] - work[value + i]) / step
