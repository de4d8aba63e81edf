"""Accelerations and the forces of held rows, at a state in mem: ``M a = F + H^T lambda`` with ``H a + curvature = 0``.

Rows are HELD, SLIP or FREE (`nsds.schemes.event_driven.tables`); the multipliers of the HELD ones solve a dense system,

    sum_j H_i M^-1 B_j lambda_j = -(H_i M^-1 F + curvature_i),   B_j = H_j^T, of a contact that slips H_n^T - mu H_t^T direction

"""

import math

from nsds._jit import kernel, tiny, view
from nsds.model.layout import ABSENT
from nsds.schemes.derivatives import side_of
from nsds.schemes.event_driven import dependent
from nsds.schemes.event_driven.compliance import add_forces, is_compliant
from nsds.schemes.event_driven.friction_sharing import find_shifts, share
from nsds.schemes.event_driven.tables import LEANS
from nsds.schemes.lagrangian.contact_forces import clear_impulses
from nsds.schemes.lagrangian.curvature import find_curvature
from nsds.schemes.lagrangian.newton import add_pushed, evaluate_forces, evaluate_masses, invert
from nsds.schemes.lagrangian.outputs import velocity
from nsds.schemes.lagrangian.relations import ACTIVE, evaluate_relations, is_active
from nsds.schemes.linear_algebra import apply_inverses, invert_in_place
from nsds.schemes.mechanics.bodies import bend_rows, evaluate_interactions, evaluate_wrenches
from nsds.schemes.mechanics.tables import FREE, HELD, REDUNDANT, SLIP
from nsds.schemes.problem.active_set import accept, extract_pattern, transpose_pattern
from nsds.schemes.problem.assemble import assemble
from nsds.schemes.problem.disks import begins_disk, rolls, rows_of
from nsds.schemes.sides import clamped
from nsds.status import CONVERGED, NON_FINITE, NOT_DEFINITE, SINGULAR_STEP

_NO_PIVOT = 1e-11  # of the terms of a row
_MOMENT, _OF_ROW = 2.0**-10, 0.25  # s, and of the time between rows: the same for rows that depend on time
_AT_REST = 1e-10  # of the largest speeds so far
_OF_ERROR = 0.1  # of the error of a step: the part that remains of a speed that has come to zero
_OF_ERROR_IN_SPACE = 10.0  # the same in space, where a slower slip has the direction of the error


@kernel
def list_rows(s, memory):
    """List the rows that are not FREE, and make the pattern of their matrix; number those that are HELD."""
    iwork = memory.iwork
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    n, m = 0, 0
    # FREE and compliant rows have no unknown; SLIP rows are coupled to their normal
    for i in range(form.constraints.size):
        acts = iwork[f.mode + i] != FREE
        memory.imem[form.constraints[i].active] = 1 if acts else 0
        acts &= not is_compliant(form.constraints[i])
        iwork[p.local + i] = n if acts else ABSENT
        if acts:
            iwork[p.active + n] = i
            iwork[f.equation + n] = ABSENT
            if iwork[f.mode + i] == HELD:
                iwork[f.equation + n], iwork[f.row + m] = m, n
                m += 1
            n += 1
    iwork[f.count], iwork[f.n_equations], iwork[f.fresh] = n, m, 1
    iwork[f.depends] = ABSENT
    # the pattern belongs to this list; operators have to be assembled again
    if n > 0:
        extract_pattern(p, n, form.W_row, form.W_column, iwork)
        transpose_pattern(p, n, iwork)


@kernel
def assemble_rows(n, s, memory):
    """W of the n listed rows, on the pattern that was extracted."""
    iwork = memory.iwork
    form, p = s.newton, s.newton.plan[0]
    row, column = view(iwork, p.sub_row, n + 1), view(iwork, p.sub_column, iwork[p.sub_row + n])
    chosen, transpose = view(iwork, p.active, n), view(iwork, p.sub_place, iwork[p.sub_row + n])
    assemble(form.plan, form.bodies, form.constraints, form.entries, form.inputs, form.couplings, chosen, (row, column, transpose), 1.0, 0,
             memory.work, iwork)  # fmt: skip


@kernel
def _gather_matrix(s, memory):
    """Matrix of the HELD rows, with the sums of its rows' magnitudes in work[size:]."""
    work, iwork = memory.work, memory.iwork
    constraints, f, p = s.newton.constraints, s.flow[0], s.newton.plan[0]
    m = iwork[f.n_equations]
    # 1. operators of the listed rows
    assemble_rows(iwork[f.count], s, memory)
    for k in range(m * m):
        work[f.matrix + k] = 0.0
    # 2. held rows; friction of slip follows its normal, so its column is added to that of the normal
    for e in range(m):
        a = iwork[f.row + e]
        for k in range(iwork[p.sub_row + a], iwork[p.sub_row + a + 1]):
            b = iwork[p.sub_column + k]
            i = iwork[p.active + b]
            c = constraints[i]
            if iwork[f.mode + i] == HELD:
                work[f.matrix + e * m + iwork[f.equation + b]] += work[p.W + k]
            elif iwork[f.mode + i] == SLIP and c.component > 0:
                normal = iwork[f.equation + iwork[p.local + i - c.component]]
                if normal != ABSENT:
                    work[f.matrix + e * m + normal] -= work[c.mu] * work[f.direction + i] * work[p.W + k]
    # 3. row sums, the scale of pivots
    for e in range(m):
        work[f.size + e] = 0.0
        for k in range(m):
            work[f.size + e] += abs(work[f.matrix + e * m + k])


@kernel
def factorise(s, memory):
    """Inverse of the matrix of the HELD rows, see `dependent.invert` for linearly dependent equations; False if it is singular.

    That includes more linearly dependent equations than just before: there a mechanism may leave its branch.
    """
    iwork = memory.iwork
    f = s.flow[0]
    known = iwork[f.depends]
    iwork[f.n_shifts] = 0
    if iwork[f.count] == 0:
        return True
    _gather_matrix(s, memory)
    # plain inverse, unless dependence is known
    if known <= 0 and invert_in_place(iwork[f.n_equations], f.matrix, f.size, memory, f.pivots):
        iwork[f.depends] = 0
    elif known == 0:
        return False
    # rank-revealing inverse; the plain one has destroyed the matrix
    else:
        if known < 0:
            _gather_matrix(s, memory)
        if not dependent.invert(s, memory):
            return False
        # a new dependence is an event for the caller, not a property of the mechanism
        if 0 < known < iwork[f.depends]:
            iwork[f.depends] = known
            return False
    # contacts among which the force can be shifted
    find_shifts(s, memory)
    return True


@kernel
def mark_redundant(s, memory):
    """Contacts whose motion is determined by others become REDUNDANT, with their friction unless they carry: those whose pivot is rounding.

    Of linearly dependent rows those that lean are dropped first, then those of rolling and of bounded forces, then those that are spared;
    equations never.
    """
    work, iwork = memory.work, memory.iwork
    constraints, f, p = s.newton.constraints, s.flow[0], s.newton.plan[0]
    _gather_matrix(s, memory)
    m = iwork[f.n_equations]
    # passes in the order of preference: equations first, so that they keep their pivots
    for k in range((2 + LEANS) * m):
        e = k % m
        i = iwork[p.active + iwork[f.row + e]]
        is_equation = constraints[i].bilateral != 0
        if (0 if is_equation else 3 if rolls(constraints[i]) or constraints[i].lower != ABSENT else 1 + iwork[f.spared + i]) != k // m:
            continue
        pivot = work[f.matrix + e * m + e]
        # no pivot left: determined by the rows eliminated so far
        if iwork[f.mode + i] == REDUNDANT or not abs(pivot) > _NO_PIVOT * work[f.size + e]:
            if is_equation:
                continue
            iwork[f.mode + i] = REDUNDANT
            stays = iwork[f.carries] != 0 and work[f.kept + i] > 0.0
            for k in range(i + 1, i + rows_of(constraints[i]) if constraints[i].component == 0 and not stays else i + 1):
                iwork[f.mode + k] = REDUNDANT
            continue
        # eliminate; finished rows are not visited again
        for r in range(m):
            factor = work[f.matrix + r * m + e] / pivot
            for l in range(m if r != e else 0):
                work[f.matrix + r * m + l] -= factor * work[f.matrix + e * m + l]


@kernel
def factorise_independent(s, memory):
    """Inverse of the matrix of the independent HELD rows; False if it is singular."""
    list_rows(s, memory)
    if factorise(s, memory):
        return True
    mark_redundant(s, memory)
    list_rows(s, memory)
    return factorise(s, memory)


@kernel
def jams(s, memory):
    """Painlevé's case: a slipping contact with ``W_nn - mu sum direction W_nt <= 0``, after `factorise`."""
    work, iwork = memory.work, memory.iwork
    constraints, f, p = s.newton.constraints, s.flow[0], s.newton.plan[0]
    for a in range(iwork[f.count]):
        i = iwork[p.active + a]
        c = constraints[i]
        if iwork[f.mode + i] == HELD and c.component == 0 and c.tangents > 0:
            effect, slips = 0.0, False
            # acceleration of the gap by a unit of normal force with its friction
            for k in range(iwork[p.sub_row + a], iwork[p.sub_row + a + 1]):
                b = iwork[p.active + iwork[p.sub_column + k]]
                if b == i:
                    effect += work[p.W + k]
                elif i < b < i + rows_of(c) and iwork[f.mode + b] == SLIP:
                    slips = True
                    effect -= work[constraints[b].mu] * work[f.direction + b] * work[p.W + k]
            if slips and effect <= 0.0:
                return True
    return False


@tiny
def bound_of(c, direction, work):
    """The force of a bounded row that slips in a direction."""
    return work[c.lower] if direction > 0.0 else work[c.upper]


@tiny
def carries(i, s, iwork):
    """Whether the force of a row is that by which the problem of forces holds a redundant contact, or friction of slip by it."""
    f, c = s.flow[0], s.newton.constraints[i]
    if iwork[f.carries] == 0 or c.lower != ABSENT or c.bilateral != 0:
        return False
    return iwork[f.mode + i] == REDUNDANT or (iwork[f.mode + i] == SLIP and iwork[f.mode + i - c.component] == REDUNDANT)


@tiny
def given_force(i, s, memory):
    """The force of a row that is not solved for. Of a bounded one: its bound where it slips, that of before where others hold it.

    Where others move it, its bound, too. Of a redundant contact: what it carries.
    """
    work = memory.work
    f, c = s.flow[0], s.newton.constraints[i]
    if c.lower == ABSENT:
        if carries(i, s, memory.iwork):
            slips = memory.iwork[f.mode + i] == SLIP
            return -work[c.mu] * work[f.direction + i] * work[f.kept + i - c.component] if slips else work[f.kept + i]
        return 0.0
    if memory.iwork[f.mode + i] == REDUNDANT:
        u, _ = velocity(c, s.newton.entries, memory)
        if abs(u) > work[f.slow + i]:
            return bound_of(c, u, work)
        return min(max(work[f.kept + i], work[c.lower]), work[c.upper])
    return bound_of(c, work[f.direction + i], work) if memory.iwork[f.mode + i] == SLIP else 0.0


@kernel
def solve_rows(s, memory):
    """Multipliers of the HELD rows, ``-A^-1 rhs``, and of those that slip with a contact, into work[p.z:] by place in the list."""
    work, iwork = memory.work, memory.iwork
    f, p = s.flow[0], s.newton.plan[0]
    n, m = iwork[f.count], iwork[f.n_equations]
    for a in range(n):
        work[p.z + a] = 0.0
    for e in range(m):
        lam = 0.0
        for k in range(m):
            lam -= work[f.matrix + e * m + k] * work[f.rhs + k]
        work[p.z + iwork[f.row + e]] = lam
    _slip_with(s, memory)


@tiny
def _slip_with(s, memory):
    """Friction of slipping rows, ``-mu lambda_n direction``."""
    work, iwork = memory.work, memory.iwork
    f, p = s.flow[0], s.newton.plan[0]
    for a in range(iwork[f.count]):
        i = iwork[p.active + a]
        c = s.newton.constraints[i]
        if iwork[f.mode + i] == SLIP and c.component > 0:
            work[p.z + a] = -work[c.mu] * work[f.direction + i] * work[p.z + iwork[p.local + i - c.component]]


@kernel
def push(out, s, memory):
    """lambda of the listed rows from work[p.z:] into mem, and ``M^-1 H^T lambda`` added to work[out:]."""
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    n = memory.iwork[f.count]
    clear_impulses(form.parts, form.elements, memory.mem)
    for a in range(n):
        accept(memory.work[p.z + a], 1.0, form.constraints[memory.iwork[p.active + a]], form.inputs, p.touched, memory)
    add_pushed(out, form.parts, form.elements, form.bodies, p, memory)


@kernel
def push_alone(e, out, s, memory):
    """``M^-1 B`` of one HELD row into work[out:], with the friction that slips with it."""
    work = memory.work
    f, p = s.flow[0], s.newton.plan[0]
    for a in range(memory.iwork[f.count]):
        work[p.z + a] = 1.0 if a == memory.iwork[f.row + e] else 0.0
    _slip_with(s, memory)
    for i in range(p.n_dofs):
        work[out + i] = 0.0
    push(out, s, memory)


@kernel
def hold(out, is_whole, s, memory):
    """Forces that keep ``H a + curvature = 0`` in the HELD rows; ``M^-1 H^T lambda`` is added to a in work[out:].

    is_whole: False for a coefficient of higher order of a linear motion, to which neither curvature nor bounded forces contribute.
    """
    work, iwork = memory.work, memory.iwork
    form, f, p = s.newton, s.flow[0], s.newton.plan[0]
    n = iwork[f.count]
    if n == 0:
        return
    # 1. right-hand side: acceleration of each row without multipliers, with given forces
    for e in range(iwork[f.n_equations]):
        a = iwork[f.row + e]
        c = form.constraints[iwork[p.active + a]]
        r = work[c.curvature] if is_whole and c.curvature != ABSENT else 0.0
        for k in range(c.entry, c.entry_end):
            r += work[form.entries[k].coefficient] * work[out + form.entries[k].dof]
        for k in range(iwork[p.sub_row + a] if is_whole else 0, iwork[p.sub_row + a + 1] if is_whole else 0):
            r += work[p.W + k] * given_force(iwork[p.active + iwork[p.sub_column + k]], s, memory)
        work[f.rhs + e] = r
    # 2. multipliers; of statically indeterminate friction the distribution is chosen
    solve_rows(s, memory)
    if iwork[f.n_shifts] > 0:
        share(is_whole, s, memory)
        _slip_with(s, memory)
    # 3. given forces, and accelerations by all
    for a in range(n if is_whole else 0):
        i = iwork[p.active + a]
        if (form.constraints[i].lower != ABSENT and iwork[f.mode + i] != HELD) or carries(i, s, iwork):
            work[p.z + a] = given_force(i, s, memory)
    push(out, s, memory)


@kernel
def free_accelerations(t, s, functions, options, memory):
    """``M^-1 F`` of all coordinates into p.acc, with the masses at the state. Returns a status."""
    form, p, definite, regular = s.newton, s.newton.plan[0], True, True
    t = clamped(t, s.flow[0], memory.work)
    if s.rigid.bodies.size > 0:
        evaluate_wrenches(t, p.f, s.rigid, functions, memory)
    else:
        definite = evaluate_masses(1.0, form.parts, form.elements, p, functions, memory)
        regular = invert(t, options.newton, form.parts, form.elements, form.bodies, p, functions, memory)
        evaluate_forces(t, options.newton, form.parts, form.elements, p, p.f, functions, memory)
        if s.flow[0].is_compliant != 0:
            regular &= add_forces(t, s, functions, options, memory)
    apply_inverses(form.bodies, p.f, p.acc, p.scratch, memory)
    return CONVERGED if definite and regular else SINGULAR_STEP if definite else NOT_DEFINITE


@tiny
def evaluate_operators(t, which, s, functions, options, memory):
    """y, H and rate of relations at the state in mem, chosen as by `evaluate_relations`."""
    t = clamped(t, s.flow[0], memory.work)
    if s.rigid.bodies.size > 0:
        evaluate_interactions(t, which, s.flow[0].mode, s.rigid, functions, memory)
    else:
        evaluate_relations(t, 1.0, 0.0, which, options.newton, s.newton.relations, s.newton.plan[0], functions, memory)


@kernel
def evaluate_rows(t, which, s, functions, options, memory):
    """Operators of relations at the state, chosen as by `evaluate_relations`, curvature and directions of slip."""
    form, f, p, moment = s.newton, s.flow[0], s.newton.plan[0], min(_MOMENT, _OF_ROW * options.h)
    t = clamped(t, f, memory.work)
    if s.rigid.bodies.size > 0:
        memory.iwork[s.rigid.plan[0].side] = side_of(t, moment, memory.work[f.t_low], memory.work[f.t_high])
        bend_rows(t, moment, which, f.mode, s.rigid, functions, memory)
    evaluate_operators(t, which, s, functions, options, memory)
    for k in range(form.relations.size):
        if which != ACTIVE or is_active(form.relations[k], memory.imem):
            find_curvature(t, options.h, memory.work[f.t_low], memory.work[f.t_high], f.x_size, f.acc_size, form.relations[k], p,
                           functions, memory)  # fmt: skip
    for i in range(form.constraints.size):
        if memory.iwork[f.mode + i] == SLIP and form.constraints[i].tangents == 2 and begins_disk(form.constraints[i]):
            turn(i, False, s, memory)


@tiny
def _mark_acting(s, memory):
    """Mark acting rows, by which relations are chosen: in a row of the record only HELD ones are marked."""
    for i in range(s.newton.constraints.size if s.rigid.bodies.size == 0 else 0):
        memory.imem[s.newton.constraints[i].active] = 1 if memory.iwork[s.flow[0].mode + i] != FREE else 0


@kernel
def accelerate(t, s, functions, options, memory):
    """Accelerations at the state in mem, into p.acc, and lambda into mem. Returns a status."""
    work = memory.work
    f, p = s.flow[0], s.newton.plan[0]
    status = free_accelerations(t, s, functions, options, memory)
    for i in range(p.n_dofs):
        work[f.acc_size + i] = abs(work[p.acc + i])
    if memory.iwork[f.count] > 0:
        _mark_acting(s, memory)
        evaluate_rows(t, ACTIVE, s, functions, options, memory)
        if not factorise(s, memory):
            status = SINGULAR_STEP
        hold(p.acc, True, s, memory)
    zero = 0.0
    for i in range(p.n_dofs):
        zero += 0.0 * work[p.acc + i]
    return status if status != CONVERGED or zero == 0.0 else NON_FINITE


@tiny
def slip_of(i, s, memory):
    """(velocities of both rows of a disk, their size); i: the first. In the plane, and of a bounded row, there is one."""
    form, v = s.newton, 0.0
    u, _ = velocity(form.constraints[i], form.entries, memory)
    if form.constraints[i].tangents == 2:
        v, _ = velocity(form.constraints[i + 1], form.entries, memory)
    return u, v, math.hypot(u, v)


@tiny
def speed_of_rest(fastest, tangents, options):
    """Up to which speed a row of a contact with so many tangents is at rest; fastest: the largest speeds that cancelled in it so far."""
    if tangents < 2:
        return max(_AT_REST, _OF_ERROR * options.rtol) * fastest
    return max(_AT_REST * fastest, _OF_ERROR_IN_SPACE * (options.rtol * fastest + options.atol))


@tiny
def turn(i, anywhere, s, memory):
    """The direction of slip of a contact in space is that of its velocity; i: its first tangent.

    Below the speed of rest it stays, of a slip that begins below a larger one; and, unless it is to turn anywhere, where the velocity is
    reversed: so motions go on smoothly beyond the time at which slip ends.
    """
    work = memory.work
    f = s.flow[0]
    u, v, speed = slip_of(i, s, memory)
    least = work[f.creep + i] if memory.iwork[f.zeros + i] != 0 else work[f.slip + i]
    if speed > least and (anywhere or u * work[f.direction + i] + v * work[f.direction + i + 1] > 0.0):
        work[f.direction + i], work[f.direction + i + 1] = u / speed, v / speed
