"""Right-hand sides, relations and their Jacobians at a state: user functions, stored numbers, or finite differences."""

from nsds._jit import kernel, view
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT
from nsds.schemes.derivatives import STEP, derivative
from nsds.schemes.first_order.source import source
from nsds.schemes.first_order.tables import FULL, LINEAR, TYPE2
from nsds.schemes.linear_algebra import subtract_product


@kernel
def rate(t, part, e, x, spare, functions, mem, imem, work, out):
    """``f(t, x) + T u`` of element e of a part, f being ``A x + b`` for a linear one; x, out and spare (n each) are offsets in work."""
    n = part.n
    at_x = view(work, x, n)
    source(t, part, e, at_x, functions, mem, work, out)
    if part.f_function != ABSENT:
        z, nothing = view(mem, part.z + e * part.stride, part.n_z), view(mem, 0, 0)
        call_function(functions[part.f_function + e], (t, at_x, nothing, z, view(work, spare, n)))
        for i in range(n):
            work[out + i] += work[spare + i]
    elif part.A_function != ABSENT:
        A = part.A_work + e * n * n
        z, nothing = view(mem, part.z + e * part.stride, part.n_z), view(mem, 0, 0)
        call_function(functions[part.A_function + e], (t, at_x, nothing, z, view(work, A, n * n)))
        for i in range(n):
            for j in range(n):
                work[out + i] += work[A + i * n + j] * work[x + j]
    else:
        subtract_product(part.A_kind, n, part.A_nnz, mem, imem, part.A + e * part.stride, -1.0, work, x, out)


@kernel
def rate_jacobian(t, part, e, x, at_x, spare, functions, mem, imem, work):
    """Derivative of `rate` by x, of a nonlinear part, into work[part.A_work + e n^2:]; at_x is what `rate` gave at x. Work: spare (2 n)."""
    n = part.n
    A = part.A_work + e * n * n
    is_given = part.jac_f_function != ABSENT
    is_whole = is_given and part.u_function == ABSENT and part.T_function == ABSENT
    if is_given:
        z, nothing = view(mem, part.z + e * part.stride, part.n_z), view(mem, 0, 0)
        call_function(functions[part.jac_f_function + e], (t, view(work, x, n), nothing, z, view(work, A, n * n)))
    if is_given and not is_whole:
        source(t, part, e, view(work, x, n), functions, mem, work, at_x)
    for j in range(0 if is_whole else n):
        x_j = work[x + j]
        work[x + j] = x_j + STEP * max(1.0, abs(x_j))
        step = work[x + j] - x_j
        if is_given:
            source(t, part, e, view(work, x, n), functions, mem, work, spare)
        else:
            rate(t, part, e, x, spare + n, functions, mem, imem, work, spare)
        work[x + j] = x_j
        for i in range(n):
            slope = (work[spare + i] - work[at_x + i]) / step
            work[A + i * n + j] = slope + (work[A + i * n + j] if is_given else 0.0)


@kernel
def relation_values(t, r, functions, mem, work):
    """h and g of a relation at its arguments x and lam; of a linear one also its operators that are functions of time."""
    x, lam, z = view(work, r.x, r.n), view(work, r.lam, r.m), view(mem, r.z, r.n_z)
    if r.kind != LINEAR:
        call_function(functions[r.h_function], (t, x, lam, z, view(work, r.h, r.m)))
        call_function(functions[r.g_function], (t, x, lam, z, view(work, r.g, r.n)))
        return
    m, n, n_z = r.m, r.n, r.n_z
    if r.C_function != ABSENT:
        call_function(functions[r.C_function], (t, x, lam, z, view(work, r.C, m * n)))
    if r.B_function != ABSENT:
        call_function(functions[r.B_function], (t, x, lam, z, view(work, r.B, n * m)))
    if r.D_function != ABSENT:
        call_function(functions[r.D_function], (t, x, lam, z, view(work, r.D, m * m)))
    if r.F_function != ABSENT:
        call_function(functions[r.F_function], (t, x, lam, z, view(work, r.F, m * n_z)))
    if r.e_function != ABSENT:
        call_function(functions[r.e_function], (t, x, lam, z, view(work, r.h, m)))
    for i in range(m):
        s = work[r.base + i] + (work[r.h + i] if r.e_function != ABSENT else 0.0)
        for j in range(n):
            s += work[r.C + i * n + j] * work[r.x + j]
        for j in range(m):
            s += work[r.D + i * m + j] * work[r.lam + j]
        if r.F_function != ABSENT:
            for j in range(n_z):
                s += work[r.F + i * n_z + j] * mem[r.z + j]
        work[r.h + i] = s
    for i in range(n):
        s = 0.0
        for j in range(m):
            s += work[r.B + i * m + j] * work[r.lam + j]
        work[r.g + i] = s


@kernel
def relation_jacobians(t, r, spare, functions, mem, work):
    """C, D, K, B of a nonlinear relation at its arguments, where h and g are known. Work: spare (3 max(m, n))."""
    derivative(t, r, r.h_function, r.C_function, r.m, r.x, r.n, r.C, spare, functions, mem, work)
    derivative(t, r, r.g_function, r.B_function, r.n, r.lam, r.m, r.B, spare, functions, mem, work)
    if r.kind >= TYPE2:
        derivative(t, r, r.h_function, r.D_function, r.m, r.lam, r.m, r.D, spare, functions, mem, work)
    if r.kind == FULL:
        derivative(t, r, r.g_function, r.K_function, r.n, r.x, r.n, r.K, spare, functions, mem, work)
