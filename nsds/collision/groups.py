"""Which shapes are looked at with each other: each is of a group, and a mask has a bit for each pair of groups.

The pair of groups a and b, a >= b, has bit ``a (a + 1) / 2 + b`` of the words of the mask, 64 bits each.
"""

import numpy as np

from nsds._jit import tiny

_WORD = 64  # bits of a word


@tiny
def groups_meet(a, b, mask):
    """Whether shapes of groups a and b are looked at with each other."""
    larger = max(a, b)
    bit = (larger * (larger + 1) >> 1) + min(a, b)
    return (mask[bit >> 6] >> (bit & 63)) & 1 != 0


def mask_of(meets):
    """The mask, int64 words, of the symmetric matrix (n, n) that says which groups meet."""
    bits = meets[np.tril_indices(len(meets))]
    return np.packbits(np.pad(bits, (0, -bits.size % _WORD)), bitorder="little").view("<i8")


def meeting(mask, n):
    """The matrix (n, n) of a mask: which of n groups meet."""
    rows, columns = np.tril_indices(n)
    meets = np.zeros((n, n), bool)
    meets[rows, columns] = meets[columns, rows] = np.unpackbits(np.ascontiguousarray(mask).view(np.uint8), bitorder="little")[: rows.size]
    return meets


def has_groups(mask, last):
    """Whether a mask has bits for the groups up to this one."""
    return last * (last + 3) // 2 < _WORD * mask.shape[-1]


def kinds_that_meet(kind, body, group, mask):
    """Pairs of kinds, the smaller first, of shapes (ns,) that are looked at with each other; those of one body are not."""
    rows, where = np.unique(np.stack([kind, group], axis=1), axis=0, return_inverse=True)
    least, most = np.full(len(rows), np.iinfo(np.int64).max), np.full(len(rows), -1)
    np.minimum.at(least, where.reshape(-1), body)
    np.maximum.at(most, where.reshape(-1), body)
    may_meet = meeting(mask, int(group.max()) + 1)[np.ix_(rows[:, 1], rows[:, 1])]
    may_meet &= np.minimum(least, least[:, None]) < np.maximum(most, most[:, None])
    a, b = (rows[side, 0] for side in np.nonzero(may_meet))
    return {(min(pair), max(pair)) for pair in np.unique(np.stack([a, b], axis=1), axis=0).tolist()}
