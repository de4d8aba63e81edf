"""Compliant contacts: y depends on lambda, a force that follows from the state, ``0 <= h(t, q, lambda)  ⟂  lambda >= 0``.

Of the rows of an element those that are HELD have y = 0, which is solved for lambda, a force of the smooth motion; others have lambda = 0.
Guards are y of open rows, and of closed ones ``D_ii lambda_i``, or -y without the force for the only row of a nonlinear element. When one
comes to zero the motion continues with another force, without jumps. Of a nonlinear element lambda is never negative.
"""

import math

from nsds._jit import kernel, tiny
from nsds.model.layout import ABSENT
from nsds.schemes.lagrangian.functions import relation_operators, relation_output
from nsds.schemes.lagrangian.outputs import compliance, position, velocity
from nsds.schemes.linear_algebra import invert_dense
from nsds.schemes.mechanics.tables import FREE, HELD
from nsds.schemes.problem.rows import POSITION, coordinate, number_of
from nsds.schemes.sides import clamped

_ITERATIONS = 100  # of Newton's method
_SAME, _CLOSE = 2.0**-50, 1e-9  # relative change of lambda: converged to rounding; accepted
_FIRST = 1e-8  # of the largest force: initial lambda, if it is 0 and has no slope there
_BACK = 0.25  # part of lambda that is kept if Newton's step goes beyond zero
_ON_IT, _NO_FORCE, _NO_PULL = 1e-11, 1e-9, 1e-9  # relative to the largest lengths, forces and accelerations so far: zero


@tiny
def is_compliant(c):
    """Whether lambda of a row is a force that the state gives."""
    return c.level == POSITION


@tiny
def _leads(i, c, s):
    """Whether a row is the first one of a compliant element."""
    first = i
    for k in range(c.coupling, c.coupling_end):
        first = min(first, s.newton.couplings[k].constraint)
    return c.level == POSITION and first == i


@kernel
def _slope(i, j, s, options, work):
    """``dy_i / dlambda_j``."""
    c = s.newton.constraints[i]
    for k in range(c.coupling, c.coupling_end):
        if s.newton.couplings[k].constraint == j:
            return work[s.newton.couplings[k].coefficient] * options.h * options.h
    return 0.0


@tiny
def output(i, s, options, memory):
    """y of a compliant row."""
    form = s.newton
    c = form.constraints[i]
    y = position(c, form.entries, memory)
    return y if c.h != ABSENT else y + options.h * options.h * compliance(c, form.constraints, form.couplings, memory)


@kernel
def add_forces(t, s, functions, options, memory):
    """lambda of all compliant rows at the state in mem, and their forces, added to p.f; False without a solution."""
    work = memory.work
    form, p, is_solved = s.newton, s.newton.plan[0], True
    for i in range(form.constraints.size):
        c = form.constraints[i]
        if _leads(i, c, s):
            r = memory.iwork[s.flow[0].relation + i]
            is_solved &= _solve_element(t, i, s, functions, options, memory)
            if r != ABSENT and form.relations[r].g_function != ABSENT:
                _add_inputs(form.relations[r], p, work)
        if c.level == POSITION and not _has_input(i, s, memory.iwork):
            for k in range(c.input, c.input_end):
                work[p.f + form.inputs[k].dof] += work[form.inputs[k].coefficient] * memory.mem[c.lam]
    return is_solved


@tiny
def _has_input(i, s, iwork):
    """Whether the force of a row is a function g."""
    r = iwork[s.flow[0].relation + i]
    return r != ABSENT and s.newton.relations[r].g_function != ABSENT


@tiny
def _add_inputs(r, p, work):
    """``p = g`` of an element."""
    for j in range(r.n):
        work[p.f + number_of(r, j)] += work[r.g + j]


@tiny
def _solve_element(t, i, s, functions, options, memory):
    """lambda of the element that row i leads, and the values of its guards; False where there is no solution."""
    if memory.iwork[s.flow[0].relation + i] == ABSENT:
        return _solve_linear(i, s, options, memory)
    return _solve(t, i, s, functions, options, memory)


@kernel
def _solve_linear(i, s, options, memory):
    """lambda of the element whose first row is i, if y is linear."""
    work = memory.work
    form, f = s.newton, s.flow[0]
    c = form.constraints[i]
    # 1. y without force
    for k in range(c.coupling, c.coupling_end):
        j = form.couplings[k].constraint
        memory.mem[form.constraints[j].lam] = 0.0
        work[f.soft + j] = -position(form.constraints[j], form.entries, memory)
    # 2. D lambda = -y of the held rows
    is_solved = _divide(i, f.soft, s, options, memory)
    for k in range(c.coupling, c.coupling_end):
        j = form.couplings[k].constraint
        memory.mem[form.constraints[j].lam] = work[f.soft + j]
    # 3. guards
    for k in range(c.coupling, c.coupling_end):
        j = form.couplings[k].constraint
        held = memory.iwork[f.mode + j] == HELD
        work[f.margin + j] = work[f.soft + j] * _slope(j, j, s, options, work) if held else output(j, s, options, memory)
    return is_solved


@kernel
def _evaluate(t, r, s, functions, options, memory):
    """h, g and operators of a relation at the state and lambda in mem."""
    for j in range(r.n):
        memory.work[r.x + j] = memory.mem[coordinate(r, j)]
    for j in range(r.m):
        memory.work[r.lam + j] = memory.mem[r.multiplier + j]
    relation_output(t, r, functions, memory)
    relation_operators(t, options.h, r, True, 1.0 / (options.h * options.h), s.newton.plan[0].spare, functions, memory)


@kernel
def _solve(t, i, s, functions, options, memory):
    """lambda of the element whose first row is i, by Newton's method; one-sided ones stay positive."""
    mem, work, iwork = memory.mem, memory.work, memory.iwork
    form, f = s.newton, s.flow[0]
    c, r, change, size = form.constraints[i], form.relations[iwork[s.flow[0].relation + i]], 0.0, 0.0
    is_alone = c.coupling_end == c.coupling + 1
    # 1. rows that are not held have no force; a single one-sided row starts from 0, whose y is its guard
    for k in range(c.coupling, c.coupling_end):
        row = form.constraints[form.couplings[k].constraint]
        if iwork[f.mode + form.couplings[k].constraint] != HELD or (is_alone and row.bilateral == 0):
            mem[row.lam] = 0.0
    # 2. Newton's iteration
    for n in range(_ITERATIONS):
        _evaluate(t, r, s, functions, options, memory)
        if n == 0 and is_alone and c.bilateral == 0:
            y = work[c.h]
            work[f.margin + i] = -y if iwork[f.mode + i] == HELD else y
            if iwork[f.mode + i] != HELD or not y < 0.0:
                return y == y
        for k in range(c.coupling, c.coupling_end):
            j = form.couplings[k].constraint
            work[f.soft + j] = -work[form.constraints[j].h]
        is_regular, change, size = _divide(i, f.soft, s, options, memory), 0.0, 0.0
        for k in range(c.coupling, c.coupling_end):
            j = form.couplings[k].constraint
            lam = mem[form.constraints[j].lam]
            mem[form.constraints[j].lam] = new = _stepped(lam, work[f.soft + j], is_regular, j, s, memory)
            change, size = max(change, abs(new - lam)), max(size, abs(new))
        if change <= _SAME * size:
            break
    # 3. guards at the solution
    _evaluate(t, r, s, functions, options, memory)
    for k in range(c.coupling, c.coupling_end if not is_alone else c.coupling):
        j = form.couplings[k].constraint
        lam = mem[form.constraints[j].lam]
        work[f.margin + j] = lam * _slope(j, j, s, options, work) if iwork[f.mode + j] == HELD else work[form.constraints[j].h]
    return change <= _CLOSE * max(size, work[f.force]) or (is_alone and abs(work[c.h]) <= _ON_IT * work[f.length + i])


@tiny
def _stepped(lam, step, is_regular, j, s, memory):
    """lambda after a step of Newton's method."""
    f, c = s.flow[0], s.newton.constraints[j]
    if memory.iwork[f.mode + j] != HELD:
        return 0.0
    if not is_regular or not abs(step) < math.inf or (step == 0.0 and lam == 0.0 and memory.work[c.h] < 0.0):
        return max(_FIRST * memory.work[f.force], _FIRST) if lam == 0.0 else _BACK * lam
    return lam + step if c.bilateral != 0 or lam + step >= 0.0 else _BACK * lam


@kernel
def _divide(i, b, s, options, memory):
    """Solve ``D x = b`` of the HELD rows of the element with first row i, 0 of others; False if D is singular. In/out: work[b:]."""
    work = memory.work
    form, f = s.newton, s.flow[0]
    first, m, A = form.constraints[i].coupling, form.constraints[i].coupling_end - form.constraints[i].coupling, f.soft_matrix
    # 1. matrix and right-hand side; identity in rows that are not held
    for k in range(m):
        j = form.couplings[first + k].constraint
        held = memory.iwork[f.mode + j] == HELD
        work[f.rhs + k] = work[b + j] if held else 0.0
        for l in range(m):
            other = form.couplings[first + l].constraint
            both = held and memory.iwork[f.mode + other] == HELD
            work[A + k * m + l] = _slope(j, other, s, options, work) if both else 1.0 if k == l else 0.0
    if not invert_dense(m, A, f.size, memory, f.pivots):
        return False
    # 2. solution
    for k in range(m):
        x = 0.0
        for l in range(m):
            x += work[A + k * m + l] * work[f.rhs + l]
        work[b + form.couplings[first + k].constraint] = x
    return True


@kernel
def choose(t, s, functions, options, memory):
    """Modes of compliant rows at the state in mem: closed ones push, open ones are separate, or will be so next.

    In: accelerations in p.acc, operators and curvatures at the state. Rows whose guard is zero follow its first derivative, or its second;
    of rows that contradict their mode the first one changes it, repeatedly. Out: zeros and opening of the guards. Returns whether any mode
    has changed.
    """
    form, f, changed = s.newton, s.flow[0], False
    t = clamped(t, f, memory.work)
    for i in range(form.constraints.size):
        c = form.constraints[i]
        if not _leads(i, c, s):
            continue
        # one change at a time, that of the lowest row: then the modes cannot cycle (least-index rule)
        for _ in range(8 * (c.coupling_end - c.coupling) + 8):
            _solve_element(t, i, s, functions, options, memory)
            _rates(i, s, options, memory)
            wrong = ABSENT
            for k in range(c.coupling, c.coupling_end):
                j = form.couplings[k].constraint
                if form.constraints[j].bilateral == 0 and _sense(j, s, options, memory) < 0.0 and (wrong == ABSENT or j < wrong):
                    wrong = j
            if wrong == ABSENT:
                break
            memory.iwork[f.mode + wrong], changed = FREE if memory.iwork[f.mode + wrong] == HELD else HELD, True
    return changed


@kernel
def _rates(i, s, options, memory):
    """First and second derivatives of the guards of the element whose first row is i, into work[opening:] and work[bend:]."""
    work = memory.work
    form, f = s.newton, s.flow[0]
    c = form.constraints[i]
    # first with velocities, then with accelerations
    for place in (f.opening, f.bend):
        for k in range(c.coupling, c.coupling_end):
            j = form.couplings[k].constraint
            row = form.constraints[j]
            rate, _ = velocity(row, form.entries, memory)
            if place == f.bend:
                rate = 0.0 if row.curvature == ABSENT else work[row.curvature]
                for l in range(row.entry, row.entry_end):
                    rate += work[form.entries[l].coefficient] * work[s.newton.plan[0].acc + form.entries[l].dof]
            work[place + j], work[f.soft + j] = rate, -rate
        # forces of coupled rows change, too
        is_coupled = c.coupling_end > c.coupling + 1 and _divide(i, f.soft, s, options, memory)
        for k in range(c.coupling, c.coupling_end):
            j = form.couplings[k].constraint
            for l in range(c.coupling, c.coupling_end if is_coupled else c.coupling):
                other = form.couplings[l].constraint
                if other != j and memory.iwork[f.mode + other] == HELD:
                    work[place + j] += _slope(j, other, s, options, work) * work[f.soft + other]
        # the guard of a held row is its force, which grows as y falls
        for k in range(c.coupling, c.coupling_end):
            j = form.couplings[k].constraint
            work[place + j] *= -1.0 if memory.iwork[f.mode + j] == HELD else 1.0


@kernel
def _sense(j, s, options, memory):
    """Sign of the guard of a row, or of its first derivative that is not zero. Out: zeros."""
    work, iwork = memory.work, memory.iwork
    f, c = s.flow[0], s.newton.constraints[j]
    margin, held = work[f.margin + j], iwork[f.mode + j] == HELD
    on_it = iwork[f.fired + j] != 0 or abs(margin) <= _ON_IT * work[f.length + j]
    on_it |= held and abs(memory.mem[c.lam]) <= _NO_FORCE * work[f.force]
    iwork[f.zeros + j] = 0
    if not on_it:
        return margin
    iwork[f.zeros + j] = 1
    if abs(work[f.opening + j]) > work[f.slow + j]:
        return work[f.opening + j]
    iwork[f.zeros + j] = 2
    return work[f.bend + j] if abs(work[f.bend + j]) > _NO_PULL * work[f.pull + j] else 0.0
