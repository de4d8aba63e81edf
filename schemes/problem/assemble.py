"""The matrix of the one-step problem, ``W = C M_hat^-1 B + D``."""

from nsds._jit import tiny
from nsds.maths.cholesky import add_kept_column, clear_kept, keeps_inverse
from nsds.schemes.linear_algebra import FRONTS, apply_inverse


@tiny
def assemble(plan, bodies, constraints, entries, inputs, couplings, chosen, pattern, scale, shift, work, iwork):
    """``W = scale C M_hat^-1 B + D`` of the chosen constraints on a pattern: eqs 1.39–1.42 and 9.35.

    On Lagrangian systems C is H, and B its transpose. Column j: solve with column j of B, then multiply by the rows linked to j.
    pattern: rows, columns, and of each entry the place of the transposed one. C is at offset ``shift`` from the coefficients of the
    entries.
    In: tables, work (C, B, D, inverses), iwork.
    Out: work[plan.W:]. Work: plan.rhs, plan.solution, plan.scratch, plan.dofs (zero before and after).
    """
    (W_row, W_column, W_transpose), W, dofs = pattern, plan[0].W, plan[0].dofs
    # 1. M_hat^-1 B_j, body by body
    for column in range(chosen.size):
        j = chosen[column]
        k = constraints[j].input
        while k < constraints[j].input_end:
            k = _solve_for_body(plan, bodies, inputs, constraints[j].input_end, k, work, iwork)
        # 2. rows linked to j, and couplings by D
        for k in range(W_row[column], W_row[column + 1]):
            c = constraints[chosen[W_column[k]]]
            s = 0.0
            for a in range(c.entry, c.entry_end):
                s += work[entries[a].coefficient + shift] * work[dofs + entries[a].dof]
            s *= scale
            for a in range(c.coupling, c.coupling_end):
                if couplings[a].constraint == j:
                    s += couplings[a].sign * work[couplings[a].coefficient]
            work[W + W_transpose[k]] = s
        # 3. clear what was written: cheaper than clearing all degrees of freedom
        for k in range(constraints[j].input, constraints[j].input_end):
            if k == constraints[j].input or inputs[k].body != inputs[k - 1].body:
                body = bodies[inputs[k].body]
                if body.kind == FRONTS and keeps_inverse(body.index, iwork):
                    clear_kept(body.n, body.index, dofs + body.dof, work, iwork)
                else:
                    for i in range(body.n):
                        work[dofs + body.dof + i] = 0.0


@tiny
def _solve_for_body(plan, bodies, inputs, end, k, work, iwork):
    """Solve with the entries of one constraint on one body, from entry k on; returns the first entry of another body."""
    rhs, solution = plan[0].rhs, plan[0].solution
    number = inputs[k].body
    body = bodies[number]
    # factors that keep the wanted columns of the inverse: no solve
    if body.kind == FRONTS and keeps_inverse(body.index, iwork):
        while k < end and inputs[k].body == number:
            unknown, factor = inputs[k].dof - body.dof, work[inputs[k].coefficient]
            add_kept_column(body.n, body.data, body.index, unknown, factor, plan[0].dofs + body.dof, work, iwork)
            k += 1
        return k
    for i in range(body.n):
        work[rhs + i] = 0.0
    while k < end and inputs[k].body == number:
        work[rhs + inputs[k].dof - body.dof] += work[inputs[k].coefficient]
        k += 1
    apply_inverse(body.kind, body.n, body.n_lower, body.n_upper, body.data, body.index, work, iwork, rhs, solution, plan[0].scratch)
    for i in range(body.n):
        work[plan[0].dofs + body.dof + i] += work[solution + i]
    return k
