"""One-step problems of Newton's iteration for states and multipliers together, where W would have more entries than sparse factors.

The equations are those of `nsds.schemes.problem.mixed`, with ``A = M/h - theta A``, ``input output B``, C and D of the last linearisation:
their pattern is that of all iterations, and their values are gathered from where the linearisation leaves them.
"""

import numpy as np

from nsds._jit import kernel
from nsds.maths import patterns, sparse_lu
from nsds.model.layout import table
from nsds.schemes.problem.mixed import SMALLEST, VECTORS, Equations, is_cheaper, place_mixed
from nsds.schemes.problem.tables import number_of_pairs
from nsds.solvers.table import find

# One row: entries of the equations, and those with values elsewhere in the work memory; integers: places of these values, and of the
# entries; factors; integers: by state, the place of its entry of the diagonal; scratch of a number for each state.
SOURCES = table("nnz", "n", "source", "place", "factor", "own", "scratch")


def planned(layout, bodies, states, weight, method, given):
    """(`Equations` without values, rows, columns, sources, factors of their entries); None where W is the cheaper form, or asked for.

    layout: with constraints, entries, inputs and couplings; states: (row, column) of the compressed matrix of each body, None of one that
    has another form; weight: of B; given: values of the first member in the work memory, 0 where functions write them.
    """
    constraints, entries, inputs, couplings = layout
    n, N = constraints.size, int(bodies["n"].sum())
    if n <= SMALLEST or method is not find("auto", "relay") or any(each is None for each in states):
        return None
    # 1. entries: of the states, B, C and D
    of = {kind: np.repeat(np.arange(n), constraints[f"{kind}_end"] - constraints[kind]) for kind in ("entry", "input", "coupling")}
    if not _is_positive(layout, of, given):
        return None
    lengths = [np.diff(row) for row, _ in states]
    pieces = [
        (body["dof"] + np.repeat(np.arange(length.size), length), body["dof"] + column, body["data"] + np.arange(column.size), 1.0)
        for body, length, (_, column) in zip(bodies, lengths, states, strict=True)
    ]
    pieces += [
        (inputs["dof"], N + of["input"], inputs["coefficient"], -weight),
        (N + of["entry"], entries["dof"], entries["coefficient"], 1.0),
        (N + of["coupling"], N + couplings["constraint"], couplings["coefficient"], couplings["sign"]),
    ]
    rows, columns, sources = (np.concatenate([piece[k] for piece in pieces]).astype(np.int64) for k in range(3))
    factors = np.concatenate([np.broadcast_to(piece[3], piece[0].shape) for piece in pieces])
    # 2. factors, with the diagonal of the rows of w
    n_pairs = number_of_pairs(constraints, entries, inputs, couplings, bodies["kind"])
    if n_pairs <= n + rows.size:
        return None
    plan = sparse_lu.plan(_with_diagonal(rows, columns, N, n), last_after=np.arange(N, N + n))
    equations = Equations(N, plan, np.zeros((1, plan.nnz)), np.ones((1, n)), several=False)
    return (equations, rows, columns, sources, factors) if is_cheaper(equations, n_pairs) else None


def _is_positive(layout, of, given):
    """Whether each row acts on its own y with the sign of its lambda: by ``D + C B`` of numbers; else there may be several solutions."""
    from scipy.sparse import csr_array

    constraints, entries, inputs, couplings = layout
    n, N = constraints.size, 1 + max(int(entries["dof"].max(initial=0)), int(inputs["dof"].max(initial=0)))
    C = csr_array((given[entries["coefficient"]], (of["entry"], entries["dof"])), shape=(n, N))
    B = csr_array((given[inputs["coefficient"]], (of["input"], inputs["dof"])), shape=(n, N))
    D = csr_array((couplings["sign"] * given[couplings["coefficient"]], (of["coupling"], couplings["constraint"])), shape=(n, n)).diagonal()
    own = C.multiply(B).sum(axis=1)
    return bool(((own >= 0.0) & (D >= 0.0) & (own + D > 0.0)).all())


def _with_diagonal(rows, columns, N, n):
    """Pattern of the equations as scipy.sparse."""
    from scipy.sparse import coo_array

    every = np.arange(N + n)
    rows, columns = np.concatenate([rows, every]), np.concatenate([columns, every])
    return coo_array((np.ones(rows.size), (rows, columns)), shape=(N + n, N + n)).tocsr()


def place(chosen, plan, work, iwork):
    """Rows of `MIXED` and `SOURCES`, with their memory; plan: with the vectors of the problem."""
    equations, rows, columns, sources, factors = chosen
    members = work.n_members
    given = np.zeros((members, equations.plan.nnz))
    mixed = place_mixed(equations._replace(given=given, unit=np.ones((members, equations.unit.shape[1]))), work, iwork)
    for vector in VECTORS:
        mixed[vector] = plan[vector]
    p, row, column, every = np.zeros(1, SOURCES), equations.plan.row, equations.plan.column, np.arange(equations.N)
    p["nnz"], p["n"], p["factor"] = equations.plan.nnz, sources.size, work.store(np.broadcast_to(factors, (members, factors.size)))
    work.place(p, scratch=equations.N)
    lists = {"source": sources, "place": patterns.places(row, column, rows, columns), "own": patterns.places(row, column, every, every)}
    for name, numbers in lists.items():
        p[name] = iwork.store(np.broadcast_to(numbers.astype(np.int64), (members, numbers.size)))
    return mixed, p


@kernel
def refresh(weight, m, p, s, memory):
    """Values of the equations from those of the last linearisation, and units of the rows: ``|D| + |C| |weight B| / |diagonal of A|``."""
    work, iwork = memory.work, memory.iwork
    # 1. entries; there are no factors for them
    for k in range(p.nnz):
        work[m.given + k] = 0.0
    for k in range(p.n):
        work[m.given + iwork[p.place + k]] += work[p.factor + k] * work[iwork[p.source + k]]
    iwork[m.known] = 0
    # 2. units; the scratch is zero between two rows
    for i in range(m.n):
        c, unit = s.constraints[i], 0.0
        for k in range(c.input, c.input_end):
            work[p.scratch + s.inputs[k].dof] += abs(weight * work[s.inputs[k].coefficient])
        for k in range(c.entry, c.entry_end):
            j = s.entries[k].dof
            own = abs(work[m.given + iwork[p.own + j]])
            unit += abs(work[s.entries[k].coefficient]) * work[p.scratch + j] / (own if own > 0.0 else 1.0)
        for k in range(c.input, c.input_end):
            work[p.scratch + s.inputs[k].dof] = 0.0
        for k in range(c.coupling, c.coupling_end):
            unit += abs(work[s.couplings[k].coefficient]) if s.couplings[k].constraint == i else 0.0
        work[m.unit + i] = unit if unit > 0.0 else 1.0
