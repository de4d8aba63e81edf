"""Event by event with thousands of coordinates, whose matrices are sparse."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds.model.layout import DENSE, DIAGONAL, SPARSE
from nsds.schemes.event_driven import lagrangian
from tests.strategies import examples


def chain(n, convert=sp.csr_array, damping=0.0, mass=0.0):
    """Masses in a row on springs, whose first ones move towards a stop; mass: of the neighbours' share in the masses."""
    K = sp.diags_array([[-1.0] * (n - 1), [2.0] * n, [-1.0] * (n - 1)], offsets=[-1, 0, 1])
    M = sp.diags_array([[mass] * (n - 1), [1.0] * n, [mass] * (n - 1)], offsets=[-1, 0, 1])
    v = np.where(np.arange(n) < 10, 1.0, 0.0)
    part = nsds.lagrangian_linear(convert(M), convert(K), convert(damping * K), q=np.zeros(n), v=v)
    H = sp.csr_array(([-1.0], ([0], [5])), shape=(1, n))
    relation = nsds.lagrangian_linear_relation(convert(H), b=[0.3])
    return nsds.system(bar=part, stop=nsds.interaction(relation, nsds.newton_impact(0.5), on="bar"))


def by_events(system, **options):
    return nsds.simulate(system, t_end=1.0, h=0.1, scheme=nsds.event_driven(**options), progress=False)


@pytest.mark.parametrize(("damping", "mass"), [(0.0, 0.0), (0.3, 0.2)])
def test_of_a_long_chain_the_rows_near_the_stop_are_those_of_a_short_dense_one(damping, mass):
    """In the time of the run waves reach only the neighbours: what is 40 masses away moves by less than rounding."""
    short, long = by_events(chain(60, lambda A: A.toarray(), damping, mass)), by_events(chain(20_000, damping=damping, mass=mass))
    np.testing.assert_array_equal(long["status"], short["status"])
    assert (short["status"] & nsds.status.JUMP > 0).any()
    for field in ("q", "v"):
        np.testing.assert_allclose(long["bar"][field][:, :20], short["bar"][field][:, :20], rtol=0, atol=1e-10)
    np.testing.assert_allclose(long["stop"]["lambda"], short["stop"]["lambda"], rtol=0, atol=1e-10)


@given(st.integers(0, 2**32 - 1))
@examples(20)
def test_norms_by_products_are_those_of_the_dense_matrices(seed):
    random, n = np.random.default_rng(seed), 40
    A = np.where(random.uniform(size=(n, n)) < 0.2, random.normal(size=(n, n)), 0.0)
    beside = 0.1 * np.diag(random.uniform(size=n - 1), 1)
    M = np.diag(random.uniform(0.5, 2.0, n)) + beside + beside.T
    for masses in (sp.csr_array(M), M, np.diag(M)):
        record = nsds.system(part=nsds.lagrangian_linear(masses, sp.csr_array(A), q=np.zeros(n), v=np.zeros(n)))
        layout = lagrangian.layout_of(record.reshape(1), lagrangian.Allocator(1), "test", 0.1, 0.1)
        part, fields = layout.parts[0], record.reshape(1, 1)["part"]
        assert part["M_kind"] == (SPARSE if sp.issparse(masses) else DENSE if masses.ndim == 2 else DIAGONAL)
        exact, found = (of(fields, part, "K") for of in (lagrangian._norms, lagrangian._norms_by_products))
        assert 0.9 * exact <= found <= exact * (1 + 1e-12)


def test_dense_matrices_of_many_states_or_rows_are_refused_by_their_size():
    with pytest.raises(ValueError, match=r"flow='radau': the matrices of 40000 states would be dense, 141 GB; use flow='auto'"):
        by_events(chain(20_000), flow="radau")
    n = 20_000
    bar = nsds.lagrangian_linear(np.ones(n), q=np.zeros(n), v=np.zeros(n))
    floor = nsds.interaction(nsds.lagrangian_linear_relation(sp.eye_array(n), b=np.ones(n)), nsds.newton_impact(0.5), on="bar")
    with pytest.raises(ValueError, match=r"event_driven: the matrices of 20000 rows would be dense, 6\.4 GB; use nsds\.moreau_jean"):
        by_events(nsds.system(bar=bar, floor=floor))
