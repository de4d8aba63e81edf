"""hypothesis strategies: box-constrained complementarity problems by the property that solvers rely on."""

from typing import NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numba import config

from nsds import solvers


class Drawn(NamedTuple):
    """``w = M z + q``, ``lower <= z <= upper``, ``-w ∈ N(z)``; M dense."""

    M: np.ndarray
    q: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    family: str
    kind: str

    @property
    def data(self):
        return self[:4]


DEFINITE = ("positive_definite", "unsymmetric")
SOLVABLE = (*DEFINITE, "m_matrix", "redundant", "degenerate", "chain", "stack")
_PLAIN = 2  # examples of a test that runs without a compiler
KINDS = ("lcp", "mlcp", "relay", "mixed")


def many(number):
    """How many random cases there are of so many: all of them with ``--hypothesis-profile=thorough``, else a third, of few as many as 5."""
    return max(min(number, 5), number * settings.default.max_examples // 100)


def examples(number):
    """The same examples in every run, without a deadline (the first call compiles), `many`; without a compiler a few of them."""
    return settings(max_examples=min(number, _PLAIN) if config.DISABLE_JIT else many(number), deadline=None, derandomize=True)


def draw_problem(family, n, seed, kind="lcp"):
    """`nsds.solvers.generate` with a dense matrix."""
    p = solvers.generate(family, n, seed, kind)
    return Drawn(p.M.toarray() if hasattr(p.M, "toarray") else p.M, p.q, p.lower, p.upper, family, kind)


@st.composite
def problems(draw, families=SOLVABLE, kinds=KINDS, largest=8):
    """A problem that has a solution where its family is in SOLVABLE, and exactly one where it is in DEFINITE."""
    family, kind = draw(st.sampled_from(families)), draw(st.sampled_from(kinds))
    return draw_problem(family, draw(st.integers(1, largest)), draw(st.integers(0, 2**32 - 1)), kind)


generators = st.integers(0, 2**32 - 1).map(np.random.default_rng)
