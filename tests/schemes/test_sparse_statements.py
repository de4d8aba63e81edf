"""Linear systems whose matrices are stated in sparse form or dense: one model, under all schemes and laws."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds.model import laws
from nsds.model.system_kinds import FIRST_ORDER, LAGRANGIAN
from tests.cells.first_order import FIRST_ORDER_LAWS
from tests.cells.laws import mechanical_laws
from tests.cells.outcomes import schemes_of
from tests.sparse import FORMATS
from tests.strategies import examples

LAWS = {name: law for name, law in mechanical_laws().items() if LAGRANGIAN in laws.LAWS[law.made["law"]].families}
N = 8
seeds, forms = st.integers(0, 2**32 - 1), st.sampled_from(FORMATS)


def masses(seed, law, convert):
    """Masses with springs and dampers in a random net, and two places where the law holds, on a few coordinates each."""
    random, made = np.random.default_rng(seed), LAWS[law]
    net = np.where(random.uniform(size=(N, N)) < 0.3, random.normal(size=(N, N)), 0.0)
    M, K = np.diag(random.uniform(0.5, 2.0, N)), 20.0 * net @ net.T
    M[0, 1] = M[1, 0] = 0.2
    H = random.normal(size=(2 * len(made.H), N)) * (random.uniform(size=(2 * len(made.H), N)) < 0.4)
    H[np.arange(len(H)), random.permutation(2 * N)[: len(H)] % N] = 1.0
    gaps = random.uniform(0.0, 0.02, len(H)) if made.closes else np.zeros(len(H))
    part = nsds.lagrangian_linear(
        convert(M), convert(K), convert(0.02 * K), q=np.zeros(N), v=random.normal(size=N), fext=random.normal(0.0, 3.0, N)
    )
    return nsds.system(part=part, law=nsds.interaction(nsds.lagrangian_linear_relation(H=convert(H), b=gaps), made.made, on="part"))


def states(seed, law, has_D, convert):
    """States in a random net with decay, and two rows of the law, through passive inputs and outputs."""
    random = np.random.default_rng(seed)
    A = np.where(random.uniform(size=(N, N)) < 0.3, random.normal(size=(N, N)), 0.0) - 3.0 * np.eye(N)
    C = random.normal(size=(2, N)) * (random.uniform(size=(2, N)) < 0.4)
    C[[0, 1], random.permutation(N)[:2]] = 1.0
    D = convert(np.diag(random.uniform(0.1, 1.0, 2))) if has_D else None
    relation = nsds.first_order_linear_relation(C=convert(C), B=convert(C.T), D=D, e=0.3 * random.normal(size=2))
    part = nsds.first_order_linear(convert(A), b=random.normal(size=N), x=np.zeros(N))
    return nsds.system(part=part, law=nsds.interaction(relation, FIRST_ORDER_LAWS[law][0], on="part"))


def rows_of(system, scheme):
    """The rows of a run, or what it is refused with."""
    try:
        return nsds.simulate(system, t_end=0.05, h=5e-3, scheme=scheme, on_failure="continue", progress=False)
    except ValueError as error:
        return str(error)


def require_one_model(make, scheme, form, fields):
    sparse, dense = (rows_of(make(convert), scheme) for convert in (lambda A: sp.coo_array(A).asformat(form), np.asarray))
    if isinstance(dense, str):
        assert sparse == dense
        return
    np.testing.assert_array_equal(sparse["status"], dense["status"])
    for part, field in fields:
        unit = max(1.0, abs(dense[part][field]).max())
        np.testing.assert_allclose(sparse[part][field], dense[part][field], rtol=0, atol=1e-12 * unit)


@pytest.mark.parametrize("name", schemes_of(LAGRANGIAN))
@given(seeds, st.sampled_from(sorted(LAWS)), forms)
@examples(12)
def test_sparse_and_dense_statements_are_one_mechanical_model(name, seed, law, form):
    fields = ("part", "q"), ("part", "v"), ("law", "lambda")
    require_one_model(lambda convert: masses(seed, law, convert), getattr(nsds, name)(), form, fields)


@pytest.mark.parametrize("name", schemes_of(FIRST_ORDER))
@given(seeds, st.sampled_from(sorted(FIRST_ORDER_LAWS)), st.booleans(), forms)
@examples(12)
def test_sparse_and_dense_statements_are_one_first_order_model(name, seed, law, has_D, form):
    fields = ("part", "x"), ("law", "y"), ("law", "lambda")
    require_one_model(lambda convert: states(seed, law, has_D, convert), getattr(nsds, name)(), form, fields)
