"""y and ydot of constraints, from the state in mem and the operators in the work memory; and the magnitudes of their terms."""

from nsds._jit import inlined, kernel, tiny
from nsds.model.layout import ABSENT
from nsds.schemes.problem.activation_rule import slack
from nsds.schemes.problem.rows import POSITION


@tiny
def keep_state(parts, elements, q, v, memory):
    """The state in mem, by degree of freedom, into work[q:] and work[v:]."""
    for k in range(elements.size):
        el = elements[k]
        at, n = parts[el.part].q + el.e * parts[el.part].stride, parts[el.part].n
        for i in range(n):
            memory.work[q + el.dof + i], memory.work[v + el.dof + i] = memory.mem[at + i], memory.mem[at + n + i]


@tiny
def add_change(of_velocity, parts, elements, change, memory):
    """``v += change``, or q, by degree of freedom in work[change:]."""
    for k in range(elements.size):
        el = elements[k]
        at = parts[el.part].q + el.e * parts[el.part].stride + (parts[el.part].n if of_velocity else 0)
        for i in range(parts[el.part].n):
            memory.mem[at + i] += memory.work[change + el.dof + i]


@tiny
def velocity(c, entries, memory):
    """(``H v + rate``, the sum of the magnitudes that cancel in it)."""
    ydot = 0.0 if c.rate == ABSENT else memory.work[c.rate]
    size = abs(ydot)
    for k in range(c.entry, c.entry_end):
        term = memory.work[entries[k].coefficient] * memory.mem[entries[k].q + entries[k].n]
        ydot += term
        size += abs(term)
    return ydot, size


@tiny
def acceleration(c, a, entries, work):
    """(``H a + curvature`` of the accelerations in work[a:], the sum of the magnitudes that cancel in it)."""
    w = 0.0 if c.curvature == ABSENT else work[c.curvature]
    size = abs(w)
    for k in range(c.entry, c.entry_end):
        term = work[entries[k].coefficient] * work[a + entries[k].dof]
        w += term
        size += abs(term)
    return w, size


@tiny
def position(c, entries, memory):
    """h of a nonlinear relation, ``H q + b`` of a linear one."""
    work = memory.work
    if c.h != ABSENT:
        return work[c.h]
    y = 0.0 if c.base == ABSENT else work[c.base]
    for k in range(c.entry, c.entry_end):
        y += work[entries[k].coefficient] * memory.mem[entries[k].q]
    return y


@tiny
def lengths(c, entries, memory):
    """Sum of the magnitudes that cancel in y, of nonlinear relations too: ``|b| + sum |H_j q_j|``."""
    length = 0.0 if c.base == ABSENT else abs(memory.work[c.base])
    for k in range(c.entry, c.entry_end):
        length += abs(memory.work[entries[k].coefficient] * memory.mem[entries[k].q])
    return length


@tiny
def gap_slack(c, h, entries, memory):
    """Up to which y of a constraint, or its forecast, counts as closed."""
    work = memory.work
    length, speed = 0.0 if c.base == ABSENT else abs(work[c.base]), work[c.pull] + (0.0 if c.rate == ABSENT else abs(work[c.rate]))
    for k in range(c.entry, c.entry_end):
        coefficient, q = work[entries[k].coefficient], entries[k].q
        length += abs(coefficient * memory.mem[q])
        speed += abs(coefficient * memory.mem[q + entries[k].n])
    return slack(length, speed, h)


@kernel
def state_pulls(pull, constraints, entries, work):
    """Change of ydot of each constraint by forces in a step, in size; work[pull:]: of each velocity."""
    for i in range(constraints.size):
        c = constraints[i]
        if c.component == 0:
            work[c.pull] = 0.0
            for k in range(c.entry, c.entry_end):
                work[c.pull] += abs(work[entries[k].coefficient]) * work[pull + entries[k].dof]


@tiny
def compliance(c, constraints, couplings, memory):
    """``D lambda`` of a constraint from the multipliers in mem."""
    s = 0.0
    for k in range(c.coupling, c.coupling_end):
        s += memory.work[couplings[k].coefficient] * memory.mem[constraints[couplings[k].constraint].lam]
    return s


@inlined
def update_outputs(h, theta, constraints, entries, couplings, memory):
    """``y = H q + b`` and ``ydot = H v + D lambda`` (at position level: y has the D) of linear relations, from the state in mem.

    Beside them `gap_slack` of contacts, for the next choice.
    """
    mem, work = memory.mem, memory.work
    for i in range(constraints.size):
        c = constraints[i]
        # 1. linear terms, with the sums of their magnitudes
        y = 0.0 if c.base == ABSENT else work[c.base]
        ydot = 0.0 if c.rate == ABSENT else work[c.rate]
        length, speed = abs(y), abs(ydot)
        for k in range(c.entry, c.entry_end):
            coefficient = work[entries[k].coefficient]
            y_k, ydot_k = coefficient * mem[entries[k].q], coefficient * mem[entries[k].q + entries[k].n]
            y += y_k
            ydot += ydot_k
            length += abs(y_k)
            speed += abs(ydot_k)
        # 2. compliance, at position level a displacement by an impulse
        if c.level == POSITION:
            y += h * theta * h * compliance(c, constraints, couplings, memory)
        else:
            ydot += compliance(c, constraints, couplings, memory)
        mem[c.y] = y if c.h == ABSENT else work[c.h]
        mem[c.ydot] = ydot
        # 3. slack for the next choice of active contacts
        if c.component == 0:
            work[c.closed] = slack(length, speed + work[c.pull], h)
