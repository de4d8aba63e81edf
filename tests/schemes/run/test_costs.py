"""What `nsds.describe` tells of a step: sizes, fill, kind of solve, memory and multiplications, beside counts of their own."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import nsds
from nsds.examples import EXAMPLES
from nsds.model.records import memory
from nsds.schemes.run.preparation import prepare_run


def cells(system, **options):
    """{(first, second): (third, fourth)} of the rows that tell of a step."""
    rows = nsds.describe(system, **options).rows
    first = next(k for k, row in enumerate(rows) if row[0] == "step")
    return {row[:2] if row[1] != "multiplications" else row[1:3]: row[2:] for row in rows[first:]}


def line(n):
    return sp.diags_array([[-1.0] * (n - 1), [2.0] * n, [-1.0] * (n - 1)], offsets=[-1, 0, 1]).tocsr()


def chain(n, contacts, convert=sp.csr_array):
    """Masses in a row, of which so many touch a floor."""
    part = nsds.lagrangian_linear(convert(sp.eye_array(n)), convert(1e4 * line(n)), q=np.zeros(n), v=np.zeros(n))
    H = sp.eye_array(n).tocsr()[:contacts]
    return nsds.system(
        chain=part, floor=nsds.interaction(nsds.lagrangian_linear_relation(H=convert(H)), nsds.newton_impact(0.0), on="chain")
    )


@pytest.mark.parametrize("n", [100, 300])
def test_factors_of_a_chain_are_counted_as_superlu_does(n):
    told = cells(chain(n, 1), h=1e-3)
    lu = splu((sp.eye_array(n) + line(n)).tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0)
    entries = lu.L.nnz + lu.U.nnz - n
    stored = n + (3 * n - 2)  # M and K
    kind = ("sparse triangular factors", f"{n} rows, {entries} entries, {entries / stored:.3g} times those of the record")
    assert told["chain", "iteration matrix"] == kind
    assert told["", "one-step problem"] == ("matrix W of the rows", "1 rows, 1 entries, 100 % of all")
    assert told["multiplications", "of a free motion"][-1] == str(entries + stored)
    assert told["step", "moreau_jean, h = 0.001"] == ("states", str(2 * n))


def test_dense_and_sparse_statements_are_told_apart_and_many_rows_are_solved_with_the_states():
    n = 100
    dense, sparse = (cells(chain(n, n, convert), h=1e-3) for convert in (lambda A: A.toarray(), sp.csr_array))
    assert dense["chain", "iteration matrix"][0] == "dense inverse"
    assert dense["", "one-step problem"] == ("matrix W of the rows", f"{n} rows, {n * n} entries, 100 % of all")
    assert sparse["", "one-step problem"][0].startswith("mixed")
    few = int(sparse["multiplications", "of an iteration"][-1])
    assert 3 * n - 2 <= few < 20 * n


def test_memory_is_that_of_the_record_and_of_the_scratch():
    for system, scheme in (
        (chain(200, 3), nsds.moreau_jean()),
        (nsds.examples.box_stack(), nsds.rattle()),
        (chain(40, 2), nsds.event_driven()),
    ):
        run, _ = prepare_run("test", system, 1e-3, scheme, None, False)
        n_bytes = memory(run.records).nbytes + run.prepared.work.nbytes + run.prepared.iwork.nbytes
        number, unit = cells(system, h=1e-3, scheme=scheme)["", "memory"][-1].split()
        assert float(number) * {"B": 1, "kB": 1e3, "MB": 1e6}[unit] == pytest.approx(n_bytes, rel=6e-3)


def test_every_example_tells_what_its_step_costs():
    for name, example in EXAMPLES.items():
        told = cells(example.build(), h=example.run["h"], scheme=example.run.get("scheme"))
        assert ("", "memory") in told, name
        assert ("", "one-step problem") in told, name


def test_systems_of_all_families_tell_their_rows():
    stop = nsds.examples.third_order_stop()
    assert cells(stop, h=1e-3, scheme=nsds.higher_order_sweeping())["", "one-step problem"][1].startswith("3 rows")
    bridge = nsds.examples.diode_bridge()
    assert cells(bridge, h=1e-6, scheme=nsds.event_driven())["", "one-step problem"][1].startswith("4 rows")
    ball = nsds.examples.bouncing_ball()
    assert cells(ball, h=1e-2, scheme=nsds.event_driven())["", "one-step problem"] == (
        "modes: dense matrix of active rows",
        "1 rows, 1 entries",
    )
    assert "room for 64 contacts" in cells(nsds.examples.box_stack(), h=1e-3)["", "one-step problem"][1]


def test_what_cannot_be_told_is_refused():
    with pytest.raises(ValueError, match="describe: scheme and solver need a step h"):
        nsds.describe(nsds.examples.bouncing_ball(), scheme=nsds.moreau_jean())
    with pytest.raises(ValueError, match="describe: a step h is for systems, got newton_impact"):
        nsds.describe(nsds.newton_impact(0.5), h=1e-3)
    with pytest.raises(ValueError, match=r"the matrices of 40000 states would be dense, 141 GB"):
        nsds.describe(chain(20_000, 1), h=1e-3, scheme=nsds.event_driven(flow="radau"))
