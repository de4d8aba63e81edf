"""Values and operators of relations with functions, at the state in mem or between it and that of the start of the step."""

from nsds._jit import kernel, tiny
from nsds.model.layout import ABSENT
from nsds.schemes.lagrangian.functions import relation_operators, relation_output
from nsds.schemes.problem.impact import restitution
from nsds.schemes.problem.rows import POSITION, coordinate, number_of

EVERY, ACTIVE, INACTIVE, KEPT = range(4)


@kernel
def evaluate_relations(t, q_star, paoli, which, options, relations, p, functions, memory):
    """h, g, H, B, D and rate of relations, chosen by whether they have an active constraint, at q* (q_{k+1} at position level).

    paoli: at the point of (10.45) instead, with ``q_{k-1} = q_k - h v_k``. KEPT: of the active ones, but derivatives by finite differences
    are not updated. INACTIVE: also those for which this may be so.
    """
    work = memory.work
    for k in range(relations.size):
        r = relations[k]
        if which == EVERY or is_active(r, memory.imem) == (which != INACTIVE) or (which == INACTIVE and _has_differences(r)):
            # 1. point of evaluation
            e = restitution(r, work) if paoli != 0.0 else 0.0
            at = 1.0 / (1.0 + e) if paoli != 0.0 or r.level == POSITION else q_star
            for j in range(r.n):
                dof = number_of(r, j)
                before = work[p.q_old + dof] - (options.h * work[p.v_old + dof] if paoli != 0.0 else 0.0)
                work[r.x + j] = at * memory.mem[coordinate(r, j)] + (1.0 - at) * before
            for i in range(r.m):
                work[r.lam + i] = memory.mem[r.multiplier + i]
            relation_output(t, r, functions, memory)
            # 2. values, and operators, at position level in the units of a velocity
            scale = 1.0 / (options.h * options.h * options.a) if r.level == POSITION else 1.0
            relation_operators(t, options.h, r, which != KEPT, scale, p.spare, functions, memory)


@tiny
def _has_differences(r):
    """Whether ydot depends on derivatives by finite differences."""
    return (
        r.H_function == ABSENT
        or (r.rate != ABSENT and r.h_t_function == ABSENT)
        or (r.D != ABSENT and r.D_function == ABSENT and r.level != POSITION)
    )


@tiny
def is_active(r, imem):
    """Whether a relation has an active constraint."""
    active = False
    for i in range(r.m):
        active |= imem[r.active + i] != 0
    return active
