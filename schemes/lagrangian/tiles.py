"""Steps of `nsds.schemes.lagrangian.linear` for several members of an ensemble at once, in vector registers.

The formulas are those of a single member, to the last rounding; what takes branches there takes masks here. A member whose step is more
than free motion, or the impulse of one contact, leaves the tile for that step: `propose` says which, and has not changed the state.
"""

import numpy as np

from nsds._jit import absolute, bits_of, chosen, inlined, larger, load, put, spread, tiny, view
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT, DENSE, SPARSE, table
from nsds.schemes.linear_algebra import apply_inverse_in_lanes
from nsds.schemes.problem.activation_rule import slack
from nsds.schemes.problem.rows import VELOCITY
from nsds.solvers.box.signature import UNDERFLOW

# Offsets in the memory from `propose` to `commit`.
KEPT = table(
    # velocities, positions and forces at the end of the step, by degree of freedom
    "v", "q", "force",
    # impulses of the contacts, NaN of open ones; touched: bodies in contact; size of all
    "impulse", "touched", "size",
)  # fmt: skip
_MOST = 8  # contacts: of more, some member would have two closed at nearly every step
_YES = np.int64(1).view(np.float64).item()  # a flag that is set, as a float


def suits(s, solver_options):
    """Whether `propose` treats steps with these tables: contacts with restitution, matrices that are not sparse."""
    p, c, parts = s.plan[0], s.constraints, s.parts
    are_contacts = (c["level"] == VELOCITY) & (c["component"] == 0) & (c["coupling"] == c["coupling_end"])
    for column, absent in (("always", 0), ("bilateral", 0), ("lower", ABSENT), ("h", ABSENT), ("rebound", ABSENT)):
        are_contacts &= c[column] == absent
    is_dense = (s.operators["kind"] <= DENSE) & (parts["C_kind"] != SPARSE) & (parts["K_kind"] != SPARSE)
    without = s.relations.size == 0 and p["impact_law"] == 0 and s.blocks[0]["d"] == 0
    return bool(without and solver_options.at_once and c.size <= _MOST and are_contacts.all() and is_dense.all())


def places(s):
    """The row of `KEPT`."""
    dofs, n = (s.parts["count"] * s.parts["n"]).sum(), s.constraints.size
    return np.array([(0, dofs, 2 * dofs, 3 * dofs, 3 * dofs + n, 3 * dofs + n + s.parts["count"].sum())], KEPT)


@tiny
def recall(lane, width, s, kept, iwork, memory):
    """Read the integer work memory of a member: nothing to do."""


@tiny
def release(s, iwork):
    """Note that the active set of a member may differ from that of the last step which it made alone."""
    for i in range(s.constraints.size):
        iwork[s.plan[0].local + i] = -2


@inlined
def propose(width, first, t, s, places, functions, solver_options, options, mems, works, iworks, mem, work, kept):
    """(bits of the members that have to leave, residuals, iterations) of a step to the times t; the state at its end in kept."""
    k = places[0]
    # 1. free motion of all members
    _free_velocities(width, first, t, s, k, functions, options, mems, works, mem, work, kept)
    zero, one = spread(0.0, width), spread(1.0, width)
    n_closed, residual, wrong = spread(0.0, width), spread(0.0, width), spread(0.0, width)
    # 2. each contact: forecast, and impulse where any member closes it
    for i in range(s.constraints.size):
        c = s.constraints[i]
        way = options.h * load(mem, c.gap_rate, width)
        forecast = load(mem, c.gap, width) + options.gamma * options.h * load(mem, c.gap_rate, width)
        closed = (forecast <= 0.0) | (larger(forecast, absolute(way)) <= load(work, c.closed, width))
        put(kept, k.impulse + i, width, np.nan)
        # others keep NaN, so that one register serves all members
        if bits_of(closed) != 0:
            W = load(work, s.plan[0].W + iworks[first, s.plan[0].diagonal + i], width)
            z, merit, is_solved = _impulse(width, W, c, s.entries, k, mem, work, kept)
            put(kept, k.impulse + i, width, chosen(closed, z, spread(np.nan, width)))
            wrong = wrong + chosen(closed & (is_solved < 1.0), one, zero)
            wrong = wrong + chosen(closed & (merit > solver_options.box.tol), one, zero)
            residual, n_closed = chosen(closed, merit, residual), n_closed + chosen(closed, one, zero)
            for j in range(c.input, c.input_end):
                body = k.touched + s.inputs[j].body
                put(kept, body, width, chosen(closed, one, load(kept, body, width)))
    # 3. end of the step; members with two closed contacts, unsolved or not finite leave the tile
    finite = _end_velocities(width, s, k, options, mem, work, kept)
    return bits_of((wrong > 0.0) | (n_closed > 1.0) | (finite != 0.0)), residual, n_closed


@inlined
def _free_velocities(width, first, t, s, k, functions, options, mems, works, mem, work, kept):
    """v_free, as in `nsds.schemes.lagrangian.linear.free_motion`, and new forces; no body is touched."""
    h, theta, p = options.h, options.theta, s.plan[0]
    for a in range(s.parts.size):
        part, o = s.parts[a], s.operators[a]
        n = part.n
        for e in range(part.count):
            q, dof, increment = part.q + e * part.stride, part.dof + e * n, o.impulse + e * n
            put(kept, k.touched + part.body + e, width, 0.0)
            # 1. increment, unless it is constant
            if o.constant == 0:
                if part.fext_function != ABSENT:
                    _forces_of_function(width, first, t, part, o, e, k.force + dof, functions, mems, works, kept)
                for i in range(n):
                    pushed = load(work, increment + i, width)
                    if part.fext_function != ABSENT:
                        pushed = h * (1.0 - theta) * load(work, o.force + e * n + i, width)
                        pushed = pushed + h * theta * load(kept, k.force + dof + i, width)
                    put(work, p.rhs + i, width, pushed)
                if part.C != ABSENT:
                    for i in range(n):
                        put(work, p.x + i, width, load(mem, q + n + i, width))
                    _subtract_product(width, part.C_kind, n, part.C + e * part.stride, h, p, mem, work)
                if part.K != ABSENT:
                    for i in range(n):
                        put(work, p.x + i, width, load(mem, q + i, width) + h * theta * load(mem, q + n + i, width))
                    _subtract_product(width, part.K_kind, n, part.K + e * part.stride, h, p, mem, work)
                apply_inverse_in_lanes(width, o.kind, n, o.data + e * o.data_stride, p.rhs, p.solution, work)
                increment = p.solution
            # 2. free velocity
            for i in range(n):
                put(kept, k.v + dof + i, width, load(mem, q + n + i, width) + load(work, increment + i, width))


@inlined
def _forces_of_function(width, first, t, part, o, e, force, functions, mems, works, kept):
    """A user's function, called for one member after the other."""
    for lane in range(width):
        m = first + lane
        z, out = view(mems[m], part.z + e * part.stride, part.n_z), view(works[m], o.force + e * part.n, part.n)
        nothing = view(mems[m], 0, 0)
        call_function(functions[m], part.fext_function + e, (t[lane], nothing, nothing, z, out))
        for i in range(part.n):
            kept[(force + i) * width + lane] = out[i]


@inlined
def _impulse(width, W, c, entries, k, mem, work, kept):
    """(impulse, merit, 1.0 where there is one) of a contact by itself, as `nsds.solvers.box.newton_min.one_unknown` gives them."""
    q, zero = spread(0.0, width), spread(0.0, width)
    if c.rate != ABSENT:
        q = load(work, c.rate, width)
    for j in range(c.entry, c.entry_end):
        q = q + load(work, entries[j].coefficient, width) * load(kept, k.v + entries[j].dof, width)
    if c.e != ABSENT:
        q = q + load(work, c.e, width) * load(mem, c.ydot, width)
    else:
        q = q + 0.0
    z = larger(-q / W, zero)
    w = W * z + q
    error = larger(larger(0.0 - w, chosen(z > 0.0, 0.0 + w, zero)), zero)
    merit = chosen(error > 0.0, error / larger(absolute(q) + absolute(W * z), spread(UNDERFLOW, width)), zero)
    return z, merit, chosen((W > 0.0) & (z < np.inf) & (0.0 * w == 0.0), spread(1.0, width), zero)


@inlined
def _end_velocities(width, s, k, options, mem, work, kept):
    """Velocities with the impulses, and the positions by them; 0 of members in which all is finite."""
    h, theta, p, finite = options.h, options.theta, s.plan[0], spread(0.0, width)
    for a in range(s.parts.size):
        part, o = s.parts[a], s.operators[a]
        n = part.n
        for e in range(part.count):
            q, dof = part.q + e * part.stride, part.dof + e * n
            # 1. impulses, where any member has some
            touched = load(kept, k.touched + part.body + e, width) > 0.0
            if bits_of(touched) != 0:
                _gather_impulses(width, s, k, q, n, part.body + e, work, kept)
                apply_inverse_in_lanes(width, o.kind, n, o.data + e * o.data_stride, p.rhs, p.solution, work)
                for i in range(n):
                    v = load(kept, k.v + dof + i, width)
                    put(kept, k.v + dof + i, width, chosen(touched, v + load(work, p.solution + i, width), v))
            # 2. positions
            for i in range(n):
                way = h * (theta * load(kept, k.v + dof + i, width) + (1.0 - theta) * load(mem, q + n + i, width))
                position = load(mem, q + i, width) + way
                put(kept, k.q + dof + i, width, position)
                finite = finite + 0.0 * position
    return finite


@inlined
def _gather_impulses(width, s, k, q, n, body, work, kept):
    """Generalised impulses of the contacts of one body."""
    for i in range(n):
        put(work, s.plan[0].rhs + i, width, 0.0)
    for i in range(s.constraints.size):
        z = load(kept, k.impulse + i, width)
        for j in range(s.constraints[i].input, s.constraints[i].input_end):
            if s.inputs[j].body == body:
                place = s.plan[0].rhs + s.inputs[j].q - q
                p = load(work, place, width)
                put(work, place, width, chosen(z == z, p + load(work, s.inputs[j].coefficient, width) * z, p))


@inlined
def _subtract_product(width, kind, n, A, factor, p, mem, work):
    """``rhs -= factor A x``, as `nsds.schemes.linear_algebra.subtract_product` does."""
    for i in range(n):
        b = load(work, p.rhs + i, width)
        if kind == DENSE:
            row = spread(0.0, width)
            for j in range(n):
                row = row + load(mem, A + i * n + j, width) * load(work, p.x + j, width)
            put(work, p.rhs + i, width, b - factor * row)
        else:
            put(work, p.rhs + i, width, b - factor * load(mem, A + i, width) * load(work, p.x + i, width))


@inlined
def commit(width, first, s, places, options, iworks, mem, work, kept):
    """The state at the end of the step, impulses and outputs, in mem."""
    k, p, h = places[0], s.plan[0], options.h
    # 1. state and forces
    for a in range(s.parts.size):
        part, o = s.parts[a], s.operators[a]
        for e in range(part.count):
            n, q, dof = part.n, part.q + e * part.stride, part.dof + e * part.n
            for i in range(n):
                put(mem, q + i, width, load(kept, k.q + dof + i, width))
                put(mem, q + n + i, width, load(kept, k.v + dof + i, width))
                put(mem, q + 2 * n + i, width, 0.0)
                if part.fext_function != ABSENT:
                    put(work, o.force + e * n + i, width, load(kept, k.force + dof + i, width))
    # 2. impulses and outputs; the slack of a pressed contact includes its velocity change
    zero = spread(0.0, width)
    for i in range(s.constraints.size):
        c, z = s.constraints[i], load(kept, k.impulse + i, width)
        closed = z == z
        lam = chosen(closed, z, zero)
        put(mem, c.lam, width, lam)
        put(mem, c.active, width, chosen(closed, spread(_YES, width), zero))
        for j in range(c.input, c.input_end):
            place = s.inputs[j].q + 2 * s.inputs[j].n
            pushed = load(mem, place, width)
            put(mem, place, width, chosen(closed, pushed + load(work, s.inputs[j].coefficient, width) * z, pushed))
        rest = _outputs(width, h, c, s.entries, mem, work)
        pressed = slack(zero, load(work, p.W + iworks[first, p.diagonal + i], width) * lam, h)
        put(work, c.closed, width, chosen(lam > 0.0, rest + pressed, rest))


@inlined
def _outputs(width, h, c, entries, mem, work):
    """y and ydot of a contact into mem; returns up to which its gap counts as closed. See `nsds.schemes.lagrangian.outputs`."""
    y, ydot = spread(0.0, width), spread(0.0, width)
    if c.base != ABSENT:
        y = load(work, c.base, width)
    if c.rate != ABSENT:
        ydot = load(work, c.rate, width)
    length, speed = absolute(y), absolute(ydot)
    for j in range(c.entry, c.entry_end):
        coefficient, q = load(work, entries[j].coefficient, width), entries[j].q
        y_j, ydot_j = coefficient * load(mem, q, width), coefficient * load(mem, q + entries[j].n, width)
        y, ydot = y + y_j, ydot + ydot_j
        length, speed = length + absolute(y_j), speed + absolute(ydot_j)
    put(mem, c.y, width, y)
    put(mem, c.ydot, width, ydot + 0.0)
    return slack(length, speed + load(work, c.pull, width), h)
