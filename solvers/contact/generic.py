"""Mixed systems as contact problems: each law becomes contacts of one size, filled up with components on which nothing acts."""

from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.solvers.contact.forms import Contacts, block_rows
from nsds.solvers.contact.signature import EQUATION

_SIZES = {"friction": (2, 3), "rolling": (3, 5)}


class Block(NamedTuple):
    """A law, its number of unknowns, and its coefficients."""

    law: str
    size: int
    mu: float = 0.0
    mu_r: float = 0.0


def checked_blocks(owner, n, blocks):
    """The blocks as `Block`, with sizes that add up to n."""
    result = []
    if isinstance(blocks, str) or not hasattr(blocks, "__iter__"):
        raise TypeError(f"{owner}: blocks must be a sequence of tuples (law, size, ...), got {blocks!r}")
    wanted = {"equality": 1, "lcp": 1, "friction": 2, "rolling": 3}
    for k, block in enumerate(blocks):
        law, *rest = block if isinstance(block, (tuple, list)) and block else (None,)
        if not isinstance(law, str) or len(rest) != wanted.get(law):
            raise ValueError(
                f"{owner}: block {k} must be ('equality', size), ('lcp', size), ('friction', d, mu) or ('rolling', d, mu, mu_r), "
                f"got {block!r}"
            )
        size = _checks.integer(owner, f"size of block {k}", rest[0], low=1)
        if size not in _SIZES.get(law, (size,)):
            raise ValueError(f"{owner}: a {law} block has {' or '.join(map(str, _SIZES[law]))} unknowns, got {size} in block {k}")
        result.append(Block(law, size, *(_checks.number(owner, f"coefficient of block {k}", mu, low=0.0) for mu in rest[1:])))
    if sum(block.size for block in result) != n:
        raise ValueError(f"{owner}: the sizes of blocks must add up to {n}, got {sum(block.size for block in result)}")
    return result


def embedded(M, q, blocks):
    """(`Contacts`, places of the unknowns in it): contacts of one size d, the largest that a block needs.

    An equality is cut into contacts of d equations; a row of complementarity is a contact without tangents. Components that are left
    over have ``u = s r``, s the diagonal of the first, or of the size of M, and mu_r = 0 or an equation, so that they stay 0.
    """
    d = max(block.size for block in blocks if block.law in _SIZES)
    disk, mu, place = [], [], []
    for block in blocks:
        if block.law == "equality":
            n = -(-block.size // d)
            place += [len(disk) * d + i for i in range(block.size)]
            disk += [EQUATION] * n
            mu += [0.0, 0.0] * n
        elif block.law == "lcp":
            place += [(len(disk) + i) * d for i in range(block.size)]
            disk += [0] * block.size
            mu += [0.0, 0.0] * block.size
        else:
            tangents = block.size - 1 if block.law == "friction" else (block.size - 1) // 2
            first = len(disk) * d
            place += [first, *(first + 1 + i for i in range(tangents))]
            place += [first + d - (block.size - 1 - tangents) + i for i in range(block.size - 1 - tangents)]
            disk.append(tangents)
            mu += [block.mu, block.mu_r]
    place = np.array(place)
    import scipy.sparse as sp

    M = sp.coo_array(M)
    n = len(disk) * d
    free = np.setdiff1d(np.arange(n), place)
    scale = np.ones(n)
    scale[place] = np.where(M.diagonal() > 0.0, M.diagonal(), abs(M.data).max(initial=0.0) or 1.0)
    whole = sp.coo_array(
        (np.concatenate([M.data, scale[free - free % d]]), (np.concatenate([place[M.row], free]), np.concatenate([place[M.col], free]))),
        shape=(n, n),
    )
    vector = np.zeros(n)
    vector[place] = q
    return Contacts(np.array(disk), np.array(mu), *block_rows(whole, d), vector), place
