"""Steps of `nsds.schemes.first_order.linear` for several members of an ensemble at once, in vector registers.

The formulas are those of a single member, to the last rounding. A member whose basis (conducting diodes) differs from that of its last step
leaves the tile for that step: `propose` reports it, and has not changed the state.
"""

import numpy as np

from nsds._jit import absolute, bits_of, chosen, inlined, larger, load, put, spread, tiny
from nsds.model.layout import ABSENT, DENSE, table
from nsds.schemes.first_order.basis_reuse import NO_BASIS
from nsds.schemes.linear_algebra import apply_inverse_in_lanes
from nsds.solvers.box.newton_min import BASIC, LOWER
from nsds.solvers.box.signature import UNDERFLOW

# Offsets in the memory from `propose` to `commit`.
KEPT = table(
    # x and r at the end of the step; q, z, w of the one-step problem; side: basis of the last step that the member made alone
    "x", "r", "q", "z", "w", "side", "size",
)  # fmt: skip
_LARGEST = 16  # states of one body, above which its product with G A is limited by memory


def suits(s, solver_options):
    """Whether `propose` treats steps with these tables: constant sources, and matrices that are not sparse."""
    p, o = s.plan[0], s.operators
    plain = p["keeps_basis"] != 0 and not any(p[column] for column in ("timed", "driven", "controlled", "n_cone"))
    is_small = (o["kind"] <= DENSE) & (o["product"] != ABSENT) & (o["constant"] != 0) & (s.parts["n"] <= _LARGEST)
    return bool(plain and is_small.all())


def places(s):
    """The row of `KEPT`."""
    dofs, n = (s.parts["count"] * s.parts["n"]).sum(), s.constraints.size
    return np.array([(0, dofs, *(2 * dofs + i * n for i in range(5)))], KEPT)


@tiny
def recall(lane, width, s, k, iwork, kept):
    """Read the integer work memory of a member: the basis of its last step."""
    for i in range(s.constraints.size):
        kept[(k.side + i) * width + lane] = float(iwork[s.plan[0].side + i])


@tiny
def release(s, iwork):
    """The basis of a member is unchanged: nothing to write."""


@inlined
def propose(width, first, t, s, places, functions, solver_options, options, mems, works, iworks, mem, work, kept):
    """(bits of the members that have to leave, residuals, iterations) of a step; the state at its end in kept."""
    k, weight = places[0], options.output_weight
    # 1. free motion
    _free_motion(width, s, k, options, mem, work, kept)
    zero = spread(0.0, width)
    finite = zero
    # 2. q
    for i in range(s.constraints.size):
        q = load(work, s.constraints[i].base, width)
        for j in range(s.constraints[i].entry, s.constraints[i].entry_end):
            entry = s.entries[j]
            x = load(kept, k.x + entry.dof, width)
            if weight != 1.0:
                x = weight * x + (1.0 - weight) * load(mem, entry.q, width)
            q = q + load(work, entry.coefficient, width) * x
        put(kept, k.q + i, width, q)
        finite = finite + 0.0 * q
    # 3. basis of the last step; members for which it fails leave the tile
    wrong, merit = _try_last_basis(width, s, k, work, kept)
    for i in range(s.constraints.size):
        c = s.constraints[i]
        z = load(kept, k.z + i, width)
        finite = finite + 0.0 * z + 0.0 * load(kept, k.w + i, width)
        for j in range(c.input, c.input_end):
            r = k.r + s.inputs[j].dof
            put(kept, r, width, load(kept, r, width) + load(work, s.inputs[j].coefficient, width) * z)
    # 4. end of the step
    finite = finite + _end_motion(width, s, k, options, work, kept)
    return bits_of((wrong > 0.0) | (merit > solver_options.tol) | (finite != 0.0)), merit, zero


@inlined
def _free_motion(width, s, k, options, mem, work, kept):
    """x_free, as in `nsds.schemes.first_order.linear`, and ``r = 0``."""
    theta, input_weight, p = options.source_weight, options.input_weight, s.plan[0]
    for a in range(s.parts.size):
        part, o = s.parts[a], s.operators[a]
        n = part.n
        for e in range(part.count):
            q, dof, data = part.q + e * part.stride, part.dof + e * n, o.product + e * o.data_stride
            increment = o.increment + e * n
            # 1. increment, unless sources are constant
            if input_weight != 1.0:
                for i in range(n):
                    source = load(work, o.source + e * n + i, width)
                    rhs = 0.0 + (1.0 - theta) * source + theta * source
                    put(work, p.rhs + i, width, rhs + (1.0 - input_weight) * load(mem, q + n + i, width))
                apply_inverse_in_lanes(width, o.kind, n, o.data + e * o.data_stride, p.rhs, p.solution, work)
                increment = p.solution
            # 2. plus G A x; sums in the order of the single member, so that the bits agree
            for i in range(n):
                x = load(work, increment + i, width)
                if input_weight == 1.0:
                    x = 0.0 + x
                if o.kind == DENSE:
                    row = spread(0.0, width)
                    for j in range(n):
                        row = row + load(work, data + i * n + j, width) * load(mem, q + j, width)
                    x = x + row
                else:
                    x = x + load(work, data + i, width) * load(mem, q + i, width)
                put(kept, k.x + dof + i, width, load(mem, q + i, width) + x)
                put(kept, k.r + dof + i, width, 0.0)


@inlined
def _try_last_basis(width, s, k, work, kept):
    """(not 0 if some sign is wrong, merit) of ``z = s + S q``: see `nsds.schemes.first_order.basis_reuse.try_last_basis`."""
    n, p, zero, one = s.constraints.size, s.plan[0], spread(0.0, width), spread(1.0, width)
    wrong, merit = chosen(load(kept, k.side, width) == float(NO_BASIS), one, zero), zero
    # 1. candidate
    for i in range(n):
        basic = load(kept, k.side + i, width) == float(BASIC)
        alone = load(work, p.s + i, width)
        z = alone
        for j in range(n):
            z = z + load(work, p.S + i * n + j, width) * load(kept, k.q + j, width)
        inside = (load(work, p.lower + i, width) <= z) & (z <= load(work, p.upper + i, width))
        wrong = wrong + chosen(basic, chosen(inside, zero, one), zero)
        put(kept, k.z + i, width, chosen(basic, z, alone))
    # 2. residual of basic rows, signs of the others
    for i in range(n):
        w = load(kept, k.q + i, width)
        terms = absolute(w)
        for j in range(s.W_row[i], s.W_row[i + 1]):
            term = load(work, p.W + j, width) * load(kept, k.z + s.W_column[j], width)
            w, terms = w + term, terms + absolute(term)
        put(kept, k.w + i, width, w)
        side, free = load(kept, k.side + i, width), load(work, p.lower + i, width) < load(work, p.upper + i, width)
        basic, low = side == float(BASIC), side == float(LOWER)
        error = absolute(w) / larger(terms, spread(UNDERFLOW, width))
        merit = chosen(basic, larger(merit, error), merit)
        goes = chosen(low, chosen(w >= 0.0, zero, one), chosen(w <= 0.0, zero, one))
        wrong = wrong + chosen(basic, zero, chosen(free, goes, zero))
    return wrong, merit


@inlined
def _end_motion(width, s, k, options, work, kept):
    """``x <- x_free + weight G r``; 0 of members where x and r are finite."""
    p, finite = s.plan[0], spread(0.0, width)
    for a in range(s.parts.size):
        part, o = s.parts[a], s.operators[a]
        for e in range(part.count):
            n, dof = part.n, part.dof + e * part.n
            for i in range(n):
                put(work, p.rhs + i, width, options.input_weight * load(kept, k.r + dof + i, width))
            apply_inverse_in_lanes(width, o.kind, n, o.data + e * o.data_stride, p.rhs, p.solution, work)
            for i in range(n):
                x = load(kept, k.x + dof + i, width) + load(work, p.solution + i, width)
                put(kept, k.x + dof + i, width, x)
                finite = finite + 0.0 * x + 0.0 * load(kept, k.r + dof + i, width)
    return finite


@inlined
def commit(width, first, s, places, options, iworks, mem, work, kept):
    """The state at the end of the step, multipliers and outputs, in mem."""
    k = places[0]
    for a in range(s.parts.size):
        part = s.parts[a]
        for e in range(part.count):
            q, dof = part.q + e * part.stride, part.dof + e * part.n
            for i in range(part.n):
                put(mem, q + i, width, load(kept, k.x + dof + i, width))
                put(mem, q + part.n + i, width, load(kept, k.r + dof + i, width))
    for i in range(s.constraints.size):
        put(mem, s.constraints[i].lam, width, load(kept, k.z + i, width))
        if s.constraints[i].y != ABSENT:
            put(mem, s.constraints[i].y, width, load(kept, k.w + i, width))
