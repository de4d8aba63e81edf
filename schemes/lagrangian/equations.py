"""Equations among the listed rows of a problem of velocities or accelerations, as of joints: they may be linearly dependent.

Equations alone are solved by elimination, with multipliers of least norm; beside other rows, the right-hand side of dependent ones is made
consistent before a solver gets them. See `nsds.schemes.problem.redundancy`.
"""

import math

from nsds._jit import kernel, tiny, view
from nsds.model.layout import ABSENT
from nsds.schemes.problem import redundancy
from nsds.schemes.problem.active_set import accept
from nsds.schemes.problem.box import ULPS
from nsds.schemes.problem.rows import POSITION
from nsds.status import CONVERGED, INEXACT, STALLED

_SOLVED = 1e-10  # relative to the terms of a row: residual of independent equations
_OPEN = 1e-6  # and of dependent ones: a larger one is a contradiction, not a drift of positions
_WORDS = 2**22  # entries of the matrices of all members of an ensemble


def reserve(constraints, n_members, work, iwork):
    """Offsets of the arrays for the equations of a model, by column of the plan; none if they are too few to be dependent."""
    m, n = int((_is_equation(constraints) & (constraints["always"] != 0)).sum()), constraints.size
    if not 2 <= m <= redundancy.MOST or m**2 * n_members > _WORDS:
        return {}
    floats = {"dense": m**2, "null": m**2, "gram": m**2 + m, "scale": m, "scaled": m, "weight": m, "trace": n}
    places = {name: work.reserve(size) for name, size in floats.items()}
    return {"most": m, **places, **{name: iwork.reserve(n) for name in ("component", "number", "block")}}


def _is_equation(constraints):
    return (constraints["bilateral"] != 0) & (constraints["lower"] == ABSENT) & (constraints["level"] != POSITION)


@kernel
def gather(n, constraints, p, memory):
    """The equations among the n listed rows, whose W is assembled, as a dense matrix with ones on its diagonal.

    Returns (their number, whether there are no other rows); no equations without room. Out: component, which rows they are, number, the
    reverse, scale, dense, trace.
    """
    work, iwork = memory.work, memory.iwork
    m, are_all, row = 0, True, p.sub_row
    # 1. equations with a diagonal entry: others act on nothing
    for a in range(n if p.most > 0 else 0):
        c, own = constraints[iwork[p.active + a]], 0.0
        is_equation = c.bilateral != 0 and c.lower == ABSENT and c.level != POSITION
        are_all &= is_equation
        for k in range(iwork[row + a], iwork[row + a + 1]):
            own += work[p.sub_W + k] if iwork[p.sub_column + k] == a else 0.0
        iwork[p.number + a] = ABSENT
        if is_equation and own > 0.0:
            iwork[p.number + a], iwork[p.component + m], work[p.scale + m] = m, a, 1.0 / math.sqrt(own)
            m += 1
    # 2. scaled matrix, and the trace of each block in units of its row, the weight of least norm
    for i in range(m * m):
        work[p.dense + i] = 0.0
    for i in range(m):
        a, trace = iwork[p.component + i], 0.0
        for k in range(iwork[row + a], iwork[row + a + 1]):
            j = iwork[p.number + iwork[p.sub_column + k]]
            if j >= 0:
                work[p.dense + m * i + j] = work[p.scale + i] * work[p.sub_W + k] * work[p.scale + j]
        for j in range(m):
            ratio = work[p.scale + i] / work[p.scale + j]
            trace += ratio * ratio if _block(iwork[p.component + j], p, iwork) == _block(a, p, iwork) else 0.0
        work[p.trace + a] = work[p.weight + i] = trace
    return m, are_all and p.most > 0


@tiny
def _block(a, p, iwork):
    """Number of the first row of the block that the a-th listed row belongs to: three rows of a joint, of one unit."""
    return iwork[p.block + iwork[p.active + a]]


@kernel
def solve(n, m, unit, constraints, inputs, inexact, p, memory):
    """Solve ``W z + q = 0`` of n equations, m of them with a diagonal entry, z of least norm. Returns (status, 1, residual).

    Out: lambda and impulses in mem, z and w.
    """
    work, iwork = memory.work, memory.iwork
    # 1. right-hand side
    size, q, z = work[p.rounding] / ULPS, view(work, p.w, n), view(work, p.z, n)
    for a in range(n):
        q[a] = work[p.q + a]
        size = max(size, abs(q[a]))
    # 2. factors; consistent right-hand side, and least norm, if the rank is deficient
    rank = redundancy.factorise(m, p, memory)
    if rank < m:
        redundancy.make_consistent(m, rank, p, q, memory)
        for i in range(m):
            work[p.weight + i] = work[p.trace + iwork[p.component + i]]
    redundancy.solve(m, rank, q, p, z, memory)
    # 3. residual by W itself: of the consistent equations, and of the given ones
    left, contradiction = 0.0, 0.0
    for a in range(n):
        s = 0.0
        for k in range(iwork[p.sub_row + a], iwork[p.sub_row + a + 1]):
            s += work[p.sub_W + k] * z[iwork[p.sub_column + k]]
            size = max(size, abs(work[p.sub_W + k] * z[iwork[p.sub_column + k]]))
        left, q[a] = max(left, abs(s + q[a])), s + work[p.q + a]
        contradiction = max(contradiction, abs(q[a]))
    # 4. multipliers into the record
    for a in range(n):
        accept(z[a], unit, constraints[iwork[p.active + a]], inputs, p.touched, memory)
    residual = max(left, contradiction) / size if size > 0.0 else 0.0
    if left <= _SOLVED * size and contradiction <= _OPEN * size:
        return CONVERGED, 1, residual
    return INEXACT if residual <= inexact else STALLED, 1, residual
