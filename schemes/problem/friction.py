"""Dry friction at rest on a stop: the laws leave its distribution undetermined, and the previous motion decides.

A row of bounded force and a contact that act along the same coordinate, as friction in a hinge and its stop, have a matrix of rank 1: of
the changes of both that change no velocity, ``dr_f = s, dr_s = -s W_sf / W_ss``, the one is chosen after which the force of friction is as
near to that of the last step as its bounds and the contact, which must not pull, allow. So friction that has opposed a motion until it was
stopped continues to do so, whatever the solver, and in whatever order both are stated.
"""

from nsds._jit import kernel, tiny
from nsds.model.layout import ABSENT
from nsds.solvers.contact.signature import EQUATION

_PARALLEL = 1e-9  # relative to the product of diagonal entries: a smaller determinant is zero
_RESTS = 1e-7  # relative to the velocities by impulses: slower rows are at rest
OTHER, RUBS, STOPS = range(3)  # kinds of blocks


@tiny
def entry(i, j, row, column):
    """Place of an entry of a matrix in compressed rows; -1 where there is none."""
    for k in range(row[i], row[i + 1]):
        if column[k] == j:
            return k
    return -1


@tiny
def shift(wanted, u, limit, r_f, r_s, entries):
    """Change of friction towards the wanted value: 0 if a row moves, or both are not parallel.

    limit: half of the distance of its bounds; r_f, r_s: impulses of friction and contact; entries of W: ff, fs, sf, ss.
    """
    ff, fs, sf, ss = entries
    is_parallel = abs(ff * ss - fs * sf) <= _PARALLEL * abs(ff * ss) and sf != 0.0
    if not (is_parallel and r_s > 0.0 and abs(u) <= _RESTS * abs(ff) * (abs(r_f) + limit)):
        return 0.0
    change, ratio = wanted - r_f, sf / ss
    return change if r_s - change * ratio >= 0.0 else r_s / ratio


@kernel
def keep_rows(p, n, row, column, constraints, memory):
    """As above, of the n active rows of a problem with bounds; the last impulses are in mem. In/out: z."""
    work = memory.work
    # rows of friction
    for a in range(n):
        c = constraints[memory.iwork[p.active + a]]
        limit = 0.5 * (work[p.upper + a] - work[p.lower + a]) if c.lower != ABSENT else 0.0
        if not 0.0 < limit < 1e300:
            continue
        # contacts linked to it
        for k in range(row[a], row[a + 1]):
            b = column[k]
            other = constraints[memory.iwork[p.active + b]]
            if other.lower != ABSENT or other.bilateral != 0 or other.component != 0 or other.tangents != 0:
                continue
            ff, sf, ss = entry(a, a, row, column), entry(b, a, row, column), entry(b, b, row, column)
            wanted = min(max(memory.mem[c.lam], work[p.lower + a]), work[p.upper + a])
            W, z_f, z_s = p.sub_W, work[p.z + a], work[p.z + b]
            change = shift(wanted, work[p.w + a], limit, z_f, z_s, (work[W + ff], work[W + k], work[W + sf], work[W + ss]))
            if change != 0.0:
                work[p.z + a] = z_f + change
                work[p.z + b] = max(0.0, z_s - change * work[W + sf] / work[W + ss])


@kernel
def note(d, disk, diagonal, r, kept):
    """Note the kinds of blocks, and the impulses of friction, before a problem in blocks is solved. Out: kept (2 each)."""
    for k in range(disk.size):
        is_left_over = diagonal[d * k] > 0.0
        kept[2 * k], kept[2 * k + 1] = OTHER, 0.0
        if disk[k] != EQUATION and not is_left_over:
            kept[2 * k] = STOPS
        elif disk[k] != EQUATION and disk[k] > 0 and diagonal[d * k + 1] == 0.0:
            kept[2 * k], kept[2 * k + 1] = RUBS, r[d * k + 1]


@kernel
def keep_blocks(d, disk, row, column, W, u, kept, r):
    """As above, of a problem in blocks, after `note`. In/out: r."""
    for f in range(disk.size):
        if kept[2 * f] != RUBS:
            continue
        limit, own = r[d * f], entry(f, f, row, column)
        for k in range(row[f], row[f + 1]):
            s = column[k]
            if kept[2 * s] != STOPS:
                continue
            # entries of W between the tangent of the friction block and the normal of the contact
            ff, fs, sf, ss = (
                (own * d + 1) * d + 1,
                (k * d + 1) * d,
                entry(s, f, row, column) * d * d + 1,
                entry(s, s, row, column) * d * d,
            )
            # friction as in the last step, within its bounds
            wanted = min(max(kept[2 * f + 1], -limit), limit)
            change = shift(wanted, u[d * f + 1], limit, r[d * f + 1], r[d * s], (W[ff], W[fs], W[sf], W[ss]))
            if change != 0.0 and is_in_cone(d, disk[s], r, s):
                r[d * f + 1] += change
                r[d * s] = max(0.0, r[d * s] - change * W[sf] / W[ss])


@tiny
def is_in_cone(d, disk, r, s):
    """Whether a contact may carry less: nothing rubs in it."""
    rubs = False
    for i in range(d * s + 1, d * s + 1 + min(disk, d - 1)):
        rubs = rubs or r[i] != 0.0
    return not rubs
