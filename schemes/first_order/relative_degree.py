"""Relative degree of linear complementarity systems ([Notes], 1.1.3 and 8.1), from the Markov parameters D, CB, CAB, ..."""

from typing import NamedTuple

import numpy as np

from nsds.model.layout import ABSENT, SPARSE
from nsds.model.records import copied, model_of, stored_sparse
from nsds.model.system_kinds import FIRST_ORDER, family
from nsds.model.validation import runnable
from nsds.schemes.first_order.tables import is_constant, layout_of
from nsds.schemes.linear_algebra import dense
from nsds.schemes.memory import Allocator

ZERO = 1e-12  # relative to the sum of the absolute terms of a product
NONE = -1


class RelativeDegree(NamedTuple):
    """``uniform``: the degree, None where there is no uniform one; ``of_outputs`` (m,): of each y, -1 where no multiplier acts on it."""

    uniform: int | None
    of_outputs: np.ndarray


def relative_degree(system):
    """Number of differentiations of the outputs until the multipliers appear ([Notes], eqs 8.3–8.5).

    The uniform relative degree is 0 if D is regular, else the first r with ``D = CB = ... = C A^(r-2) B = 0`` and ``C A^(r-1) B`` regular.
    The degree of one output is the first of these matrices in which its row is not zero.

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        A record of linear first-order systems with constant operators; all interactions are taken together, in the record's order.

    Returns
    -------
    RelativeDegree
        NamedTuple (uniform, of_outputs).

    Raises
    ------
    ValueError
        A system that is not linear, first-order and constant, or has no interaction; M singular.

    Examples
    --------
    >>> import nsds
    >>> nsds.relative_degree(nsds.examples.relay_oscillator())
    RelativeDegree(uniform=3, of_outputs=array([3]))
    """
    records = copied(runnable("relative_degree", system)).reshape(-1)[:1]
    if family(model_of(records)) != FIRST_ORDER:
        raise ValueError("relative_degree: expected a record of first-order systems")
    work = Allocator(1)
    layout = layout_of(records, work)
    if not is_constant(records) or layout.constraints.size == 0:
        raise ValueError("relative_degree: expected linear systems with constant operators and at least one interaction")
    return degrees(*operators(records, layout, work.first()))


def require_low_degree(owner, records, layout, work):
    """Refuse unilateral constraints of relative degree 2 and more of the first member: the jump of their state is not determined."""
    # 1. one-sided rows without D and C B: the only candidates
    c = layout.constraints
    unilateral = (np.isfinite(layout.lower[0]) != np.isfinite(layout.upper[0])) & (c["y"] != ABSENT)
    if not (unilateral & (c["coupling"] == c["coupling_end"])).any() or not is_constant(records):
        return
    C, A, B, D = operators(records, layout, work.first())
    rows = c["y"] != ABSENT
    suspects = unilateral[rows] & (abs(D).sum(axis=1) == 0) & (abs(C @ B).sum(axis=1) <= ZERO * (abs(C) @ abs(B)).sum(axis=1))
    if not suspects.any():
        return
    # 2. their degrees
    of_outputs = degrees(C, A, B, D).of_outputs
    for i in np.flatnonzero(suspects & (of_outputs >= 2)):
        name = np.repeat(layout.relation_names, layout.relations["m"])[i]
        raise ValueError(
            f"{owner}: interaction '{name}' has a one-sided constraint of relative degree {of_outputs[i]} from lambda to y: the state "
            f"jumps when y reaches 0, and nothing here says how far; degrees 0 and 1 are treated. Give it a feedthrough D, let "
            f"nsds.higher_order_sweeping say how far, or for mechanics use nsds.lagrangian_linear with an impact law"
        )


def operators(records, layout, values):
    """Sparse C, M^-1 A, M^-1 B, D of all interactions of the first member, from its work memory; without multipliers of cones."""
    from scipy.sparse import block_diag, csr_array

    # 1. C, B and D from their entries
    m, n = layout.constraints.size, (layout.parts["count"] * layout.parts["n"]).sum()
    row = {column: _rows(layout, column) for column in ("entry", "coupling")}
    kept = layout.couplings["sign"] > 0
    C = csr_array((values[layout.entries["coefficient"]], (row["entry"], layout.entries["dof"])), shape=(m, n))
    B = inputs(layout, values)
    couplings = layout.couplings[kept]
    D = csr_array((values[couplings["coefficient"]], (row["coupling"][kept], couplings["constraint"])), shape=(m, m))
    # 2. A by parts; inverse masses
    fields = [records[name].reshape(records.size, -1)[:1] for name in layout.part_names]
    pairs = list(zip(fields, layout.parts, strict=True))
    A = block_diag([_matrix(field[0, e], part, "A") for field, part in pairs for e in range(part["count"])])
    if (layout.parts["M"] != ABSENT).any():
        inverse = block_diag(inverse_masses(records, layout))
        A, B = inverse @ A, inverse @ B
    rows = layout.constraints["y"] != ABSENT
    return C[rows], A.tocsr(), B[:, rows], D[rows][:, rows]


def inputs(layout, values):
    """Sparse B of all interactions of the first member, without M^-1, from its work memory."""
    from scipy.sparse import csr_array

    shape = ((layout.parts["count"] * layout.parts["n"]).sum(), layout.constraints.size)
    return csr_array((values[layout.inputs["coefficient"]], (layout.inputs["dof"], _rows(layout, "input"))), shape=shape)


def _rows(layout, kind):
    """The constraint of each entry of that kind."""
    return np.repeat(np.arange(layout.constraints.size), layout.constraints[kind + "_end"] - layout.constraints[kind])


def inverse_masses(records, layout):
    """Inverses of M of all bodies of the first member, in order; a sparse identity where there is none."""
    from scipy.sparse import eye_array

    inverses = []
    for name, part in zip(layout.part_names, layout.parts, strict=True):
        if part["M"] == ABSENT:
            inverses += [eye_array(int(part["n"]))] * int(part["count"])
            continue
        try:
            inverses += list(np.linalg.inv(dense(records[name].reshape(records.size, -1)[:1], part, "M"))[0])
        except np.linalg.LinAlgError:
            raise ValueError(f"part '{name}': M is singular, and a one-sided constraint without feedthrough D acts on it") from None
    return inverses


def _matrix(field, part, name):
    if part[name + "_kind"] == SPARSE:
        return stored_sparse(field[name], part["n"])
    return dense(field.reshape(1, 1), part, name)[0, 0]


def degrees(C, A, B, D):
    """Degrees from the Markov parameters; a row counts as zero if it is small against the terms of its sums."""
    m = D.shape[0]
    C, A, B = (matrix / _unit(abs(matrix)) for matrix in (C, A, B))
    of_outputs, uniform, undecided = np.full(m, NONE), None, True
    markov, terms = D.toarray(), abs(D).toarray()
    state, sizes = B, abs(B)
    # C A^(k-1) B, with the sums of absolute terms beside it
    for degree in range(min(A.shape[0], 100) + 1):
        not_zero = abs(markov) > ZERO * terms
        rows = not_zero.any(axis=1)
        of_outputs[(of_outputs == NONE) & rows] = degree
        if undecided and (np.linalg.matrix_rank(markov) == m):
            uniform, undecided = degree, False
        if rows.any() and degree > 0:
            undecided = False  # a singular D may be followed by others, CB and its like may not (8.4)
        if (of_outputs != NONE).all() and not undecided:
            break
        # next power; scaled, since powers of large A overflow
        markov, terms = (C @ state).toarray(), (abs(C) @ sizes).toarray()
        state, sizes = A @ state, abs(A) @ sizes
        unit = _unit(sizes)
        state, sizes = state / unit, sizes / unit
    return RelativeDegree(uniform, of_outputs)


def _unit(sizes):
    """A power of two near the largest entry: in such units powers of a matrix do not overflow, and keep their digits."""
    largest = sizes.max() if min(sizes.shape) else 0.0
    return 2.0 ** np.floor(np.log2(largest)) if largest > 0.0 else 1.0
