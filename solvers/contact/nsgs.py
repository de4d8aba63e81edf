"""Block Gauss–Seidel over contacts: each contact is solved, the others being held."""

import math

from nsds._jit import kernel, specialised, tiny, view
from nsds.solvers.contact import local as one
from nsds.solvers.contact.signature import conclude, diagonal_block
from nsds.status import MAX_ITER, STALLED

MAX_SWEEPS = 10_000
_CHECKED = 25  # sweeps between two looks at the residual while the changes are not small
_PATIENCE = 40  # looks without progress after which sweeps have stalled


def work_size(d, row, column):
    """Places of the diagonal blocks and scratch of one contact."""
    return one.SCRATCH + 10, row.size - 1


_D = 0


def _sweep(local, disk, mu, row, column, W, q, r, place, work):
    """One sweep in order; returns the squared sum of ``||W_cc|| ||change of r_c||``."""
    r_new, q_c, scratch = view(work, 0, 5), view(work, 5, 5), view(work, 10, one.SCRATCH)
    change = 0.0
    for c in range(disk.size):
        at, diagonal = c * _D, place[c] * _D * _D
        for a in range(_D):
            q_c[a] = q[at + a]
        for k in range(row[c], row[c + 1]):
            j = column[k] * _D
            if k != place[c]:
                for a in range(_D):
                    s = 0.0
                    for b in range(_D):
                        s += W[(k * _D + a) * _D + b] * r[j + b]
                    q_c[a] += s
        for a in range(_D):
            r_new[a] = r[at + a]
        one.solve_contact(local, _D, disk[c], mu[2 * c], mu[2 * c + 1], W, diagonal, q_c, r_new, scratch)
        moved = trace = 0.0
        for a in range(_D):
            moved += (r_new[a] - r[at + a]) ** 2
            trace += W[diagonal + a * (_D + 1)]
            r[at + a] = r_new[a]
        change += moved * trace * trace
    return change


_sweep_2 = kernel(specialised(_sweep, "2", _D=2))
_sweep_3 = kernel(specialised(_sweep, "3", _D=3))
_sweep_5 = kernel(specialised(_sweep, "5", _D=5))


@tiny
def sweep(d, local, disk, mu, row, column, W, q, r, place, work):
    """One sweep over all contacts."""
    if d == 2:
        return _sweep_2(local, disk, mu, row, column, W, q, r, place, work)
    if d == 3:
        return _sweep_3(local, disk, mu, row, column, W, q, r, place, work)
    return _sweep_5(local, disk, mu, row, column, W, q, r, place, work)


@kernel
def nsgs(disk, mu, row, column, W, q, options, r, u, info, work, iwork):
    """Contact problem ``u = W r + q``, contact by contact: ``W_cc r_c + (q_c + sum of W_cj r_j over the others)`` is solved for r_c."""
    n_contacts = disk.size
    d = q.size // max(n_contacts, 1)
    scale = 0.0
    for i in range(q.size):
        scale += q[i] ** 2
    small = options[0] * math.sqrt(scale)
    for c in range(n_contacts):
        iwork[c] = diagonal_block(row, column, c)
    limit = int(options[1]) if options[1] > 0 else MAX_SWEEPS
    least, patience = math.inf, _PATIENCE
    for k in range(limit):
        change = math.sqrt(sweep(d, int(options[2]), disk, mu, row, column, W, q, r, iwork, work))
        if change <= small or k % _CHECKED == _CHECKED - 1:
            status = conclude(MAX_ITER, k + 1, disk, mu, row, column, W, q, options, r, u, info, work)
            if status != MAX_ITER:
                return status
            patience = _PATIENCE if info[1] < 0.999 * least else patience - 1
            least = min(least, info[1])
            if patience == 0:
                return STALLED
    return conclude(MAX_ITER, limit, disk, mu, row, column, W, q, options, r, u, info, work)
