"""The one-step problem with a constant matrix, tried with the basis of the last step before a solver is called.

If the same unknowns stay between their bounds, the solution is ``z = s + S q`` with S and s prepared when that basis was new. It is
accepted only if every sign is right; S depends only on the multipliers of the last step, so that a restarted run has the same bits.
"""

from nsds._jit import inlined, kernel, tiny, view
from nsds.schemes.linear_algebra import invert_in_place
from nsds.solvers.box.newton_min import BASIC, LOWER, choose_sides
from nsds.solvers.box.signature import UNDERFLOW

LARGEST = 16  # unknowns; above, preparing S at each switch costs more than it saves
_HIDDEN = 1e12  # terms of a row for its q: more of them are left to a solver, which tells rounding from a solution
NO_BASIS = -1  # in place of the state of the first unknown: no basis is known


@inlined
def try_last_basis(n, p, W_row, W_column, memory):
    """(all signs are right, the merit of `nsds.solvers.box.signature.judge`) of ``z = s + S q``; z and w are written."""
    work, iwork = memory.work, memory.iwork
    q, z, w, lower, upper, S, s, side = p.q, p.z, p.w, p.lower, p.upper, p.S, p.s, p.side
    right = iwork[side] != NO_BASIS
    # 1. candidate: basic unknowns by S, the others at their bounds
    for i in range(n):
        z_i = work[s + i]
        if iwork[side + i] == BASIC:
            for j in range(n):
                z_i += work[S + i * n + j] * work[q + j]
            right &= work[lower + i] <= z_i <= work[upper + i]
        work[z + i] = z_i
    # 2. w and its residual; signs of w of unknowns at a bound
    merit = 0.0
    for i in range(n):
        w_i = work[q + i]
        terms = abs(w_i)
        for k in range(W_row[i], W_row[i + 1]):
            term = work[p.W + k] * work[z + W_column[k]]
            w_i += term
            terms += abs(term)
        work[w + i] = w_i
        side_i = iwork[side + i]
        if side_i == BASIC:
            merit = max(merit, abs(w_i) / max(terms, UNDERFLOW))
        elif work[lower + i] < work[upper + i]:
            right &= w_i >= 0.0 if side_i == LOWER else w_i <= 0.0
    return right, merit


@tiny
def _hides_q(n, W_row, W_column, p, memory):
    """Whether the terms of a row that carries its own q are so much larger that rounding hides it, as of a basis that is nearly singular.

    ``|W| |S|`` on its diagonal has no unit (Skeel, J. ACM 26, 1979).
    """
    work, most = memory.work, 0.0
    for i in range(n):
        terms = 0.0
        for k in range(W_row[i], W_row[i + 1]):
            terms += abs(work[p.W + k] * work[p.S + W_column[k] * n + i])
        most = max(most, terms)
    return not most <= _HIDDEN


@kernel
def keep_basis(n, plan, W_row, W_column, memory):
    """Prepare S and s for the basis of z, unless it is the prepared one; with a singular basis there is none."""
    work, iwork = memory.work, memory.iwork
    p = plan[0]
    lower, upper, side, now = p.lower, p.upper, p.side, p.member
    # 1. basis of z, and whether it has changed
    choose_sides(view(work, lower, n), view(work, upper, n), view(work, p.z, n), view(iwork, now, n), False)
    changed = iwork[side] == NO_BASIS
    for i in range(n):
        changed |= iwork[now + i] != iwork[side + i]
        iwork[side + i] = iwork[now + i]
    if not changed:
        return
    # 2. matrix of the basic unknowns, by their pattern
    n_basic = 0
    for i in range(n):
        if iwork[side + i] == BASIC:
            iwork[p.member + n_basic] = i
            n_basic += 1
    S, s, inverse, size = p.S, p.s, p.inverse, p.w
    for i in range(n * n):
        work[S + i] = 0.0
    for i in range(n):
        work[s + i] = 0.0 if iwork[side + i] == BASIC else work[lower + i] if iwork[side + i] == LOWER else work[upper + i]
    for a in range(n_basic):
        i = iwork[p.member + a]
        terms = 0.0
        for b in range(n_basic):
            work[inverse + a * n_basic + b] = 0.0
        for k in range(W_row[i], W_row[i + 1]):
            j = W_column[k]
            if iwork[side + j] == BASIC:
                b = 0
                while iwork[p.member + b] != j:
                    b += 1
                work[inverse + a * n_basic + b] = work[p.W + k]
                terms += abs(work[p.W + k])
        work[size + a] = terms
    # 3. inverse: S = -W_BB^-1
    if not invert_in_place(n_basic, inverse, size, memory, p.pivots):
        iwork[side] = NO_BASIS
        return
    for a in range(n_basic):
        i = iwork[p.member + a]
        for b in range(n_basic):
            j = iwork[p.member + b]
            work[S + i * n + j] = -work[inverse + a * n_basic + b]
    if _hides_q(n, W_row, W_column, p, memory):
        iwork[side] = NO_BASIS
        return
    # 4. s: bounds, and their effect on basic unknowns
    for a in range(n_basic):
        i = iwork[p.member + a]
        s_i = 0.0
        for b in range(n_basic):
            j = iwork[p.member + b]
            for k in range(W_row[j], W_row[j + 1]):
                if iwork[side + W_column[k]] != BASIC:
                    s_i += work[S + i * n + j] * work[p.W + k] * work[s + W_column[k]]
        work[p.inverse + a] = s_i
    for a in range(n_basic):
        work[s + iwork[p.member + a]] = work[p.inverse + a]
