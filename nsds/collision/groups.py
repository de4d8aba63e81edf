"""Groups of shapes: which pairs are tested for contact, by a mask with a bit for each pair of groups.

The pair of groups a and b, a >= b, has bit ``a (a + 1) / 2 + b`` of the entries of the mask, 64 bits each.
"""

import numpy as np

from nsds._jit import tiny

_WORD = 64  # bits of an entry


@tiny
def groups_meet(a, b, mask):
    """Whether shapes of groups a and b are tested for contact."""
    larger = max(a, b)
    bit = (larger * (larger + 1) >> 1) + min(a, b)
    return (mask[bit >> 6] >> (bit & 63)) & 1 != 0


def mask_of(meets):
    """The mask, int64 entries, of the symmetric matrix (n, n) of the groups that are tested."""
    bits = meets[np.tril_indices(len(meets))]
    return np.packbits(np.pad(bits, (0, -bits.size % _WORD)), bitorder="little").view("<i8")


def meeting(mask, n):
    """The matrix (n, n) of a mask: which of n groups are tested."""
    rows, columns = np.tril_indices(n)
    meets = np.zeros((n, n), bool)
    meets[rows, columns] = meets[columns, rows] = np.unpackbits(np.ascontiguousarray(mask).view(np.uint8), bitorder="little")[: rows.size]
    return meets


def has_groups(mask, last):
    """Whether a mask has bits for the groups up to this one."""
    return last * (last + 3) // 2 < _WORD * mask.shape[-1]


def kinds_that_meet(kind, body, group, mask):
    """Pairs of kinds, the smaller first, of shapes (ns,) that are tested for contact; shapes of one body are not."""
    # 1. distinct (kind, group), with the least and the largest body of each
    rows, where = np.unique(np.stack([kind, group], axis=1), axis=0, return_inverse=True)
    least, most = np.full(len(rows), np.iinfo(np.int64).max), np.full(len(rows), -1)
    np.minimum.at(least, where.reshape(-1), body)
    np.maximum.at(most, where.reshape(-1), body)
    # 2. groups that are tested; equal least and largest body on both sides means that all are of one body
    may_meet = meeting(mask, int(group.max()) + 1)[np.ix_(rows[:, 1], rows[:, 1])]
    may_meet &= np.minimum(least, least[:, None]) < np.maximum(most, most[:, None])
    # 3. their kinds
    a, b = (rows[side, 0] for side in np.nonzero(may_meet))
    return {(min(pair), max(pair)) for pair in np.unique(np.stack([a, b], axis=1), axis=0).tolist()}
