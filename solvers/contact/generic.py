"""Mixed systems as contact problems: each law becomes contacts of one size, filled up with components on which nothing acts."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.solvers.contact.forms import block_rows
from nsds.solvers.contact.signature import EQUATION, Problem

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
    if not isinstance(blocks, (list, tuple)):
        raise TypeError(f"{owner}: blocks must be a sequence of tuples (law, size, ...), got {_checks.shortened(blocks)}")
    wanted = {"equality": 1, "lcp": 1, "friction": 2, "rolling": 3}
    for k, block in enumerate(blocks):
        law, *rest = block if isinstance(block, (tuple, list)) and block else (None,)
        if not isinstance(law, str) or len(rest) != wanted.get(law):
            raise ValueError(
                f"{owner}: block {k} must be ('equality', size), ('lcp', size), ('friction', d, mu) or ('rolling', d, mu, mu_r), "
                f"got {_checks.shortened(block)}"
            )
        size = _checks.integer(owner, f"size of block {k}", rest[0], low=1)
        if size not in _SIZES.get(law, (size,)):
            raise ValueError(f"{owner}: a {law} block has {' or '.join(map(str, _SIZES[law]))} unknowns, got {size} in block {k}")
        result.append(Block(law, size, *(_checks.number(owner, f"coefficient of block {k}", mu, low=0.0) for mu in rest[1:])))
    if sum(block.size for block in result) != n:
        raise ValueError(f"{owner}: the sizes of blocks must add up to {n}, got {sum(block.size for block in result)}")
    return result


class _Layout(NamedTuple):
    """Places of blocks among contacts of size d: disk (nc,); coned: contacts with coefficients; place of the unknowns; padding (free).

    first: the unknowns that begin the contacts to which free places belong.
    """

    d: int
    disk: np.ndarray
    coned: np.ndarray
    place: np.ndarray
    free: np.ndarray
    first: np.ndarray


@lru_cache(maxsize=64)
def _layout(blocks):
    """`_Layout` of blocks (law, size)."""
    d = max(size for law, size in blocks if law in _SIZES)
    disk, coned, place = [], [], []
    for law, size in blocks:
        if law == "equality":
            place += [len(disk) * d + i for i in range(size)]
            disk += [EQUATION] * -(-size // d)
        elif law == "lcp":
            place += [(len(disk) + i) * d for i in range(size)]
            disk += [0] * size
        else:
            tangents = size - 1 if law == "friction" else (size - 1) // 2
            first, own = len(disk) * d, 2 if d == 5 else tangents  # no disk has more than two components
            place += [first, *(first + 1 + i for i in range(tangents))]
            place += [first + 1 + own + i for i in range(size - 1 - tangents)]
            coned.append(len(disk))
            disk.append(own)
    unknown = np.full(len(disk) * d, -1)
    unknown[place] = np.arange(len(place))
    free = np.flatnonzero(unknown < 0)
    return _Layout(d, np.array(disk), np.array(coned), np.array(place), free, unknown[free - free % d])


def embedded(M, q, blocks):
    """(`Problem`, places of the unknowns in it): contacts of one size d, the largest that a block needs.

    An equality is cut into contacts of d equations; a row of complementarity is a contact without tangents. Padding
    components have ``u = s r``, s the diagonal of the first, or of the size of M, and mu_r = 0 or an equation, so that they stay 0.
    """
    d, disk, coned, place, free, first = _layout(tuple((block.law, block.size) for block in blocks))
    n, left = disk.size * d, M.diagonal()[first]
    if not (left > 0.0).all():
        left = np.where(left > 0.0, left, abs(M.data if hasattr(M, "tocoo") else M).max(initial=0.0) or 1.0)
    mu, vector = np.zeros((disk.size, 2)), np.zeros(n)
    mu[coned], vector[place] = [block[2:] for block in blocks if block.law in _SIZES], q
    if hasattr(M, "tocoo"):
        import scipy.sparse as sp

        entries = np.concatenate([M.data, left])
        places = np.concatenate([place[M.row], free]), np.concatenate([place[M.col], free])
        whole = sp.coo_array((entries, places), shape=(n, n))
    else:
        whole = np.zeros((n, n))
        whole[place[:, None], place] = M
        whole[free, free] = left
    return Problem(disk, mu.reshape(-1), *block_rows(whole, d, full=0), vector), place
