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
_BY_NEWTON = {
    "moreau_jean", "schatzman_paoli", "moreau_jean_direct_projection", "moreau_jean_combined_projection", "generalised_alpha"
}  # fmt: skip
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


def cubic(t, x, z, out):
    for i in range(x.size):
        out[i] = z[0] - 3.0 * x[i] - x[i] ** 3 + (x[i - 1] if i > 0 else 0.0) - (0.5 * x[i + 1] if i < x.size - 1 else 0.0)


def springs(t, q, v, z, out):
    for i in range(q.size):
        left, right = q[i] - (q[i - 1] if i > 0 else 0.0), (q[i + 1] if i < q.size - 1 else 0.0) - q[i]
        out[i] = 50.0 * (left + left**3 - right - right**3) + 0.1 * v[i] - z[0]


def net(random, shape, entries):
    """Normal numbers in about so many entries of a row."""
    return np.where(random.uniform(size=shape) < entries / shape[1], random.normal(size=shape), 0.0)


def rows_on(random, m, n):
    """m independent rows of n columns, of one entry and half another one on the mean."""
    return net(random, (m, n), 0.5) + np.eye(n)[random.permutation(n)[:m]]


def mechanical(random, kind, n, convert):
    """A part of n masses."""
    state = {"q": 0.05 * random.normal(size=n), "v": random.normal(size=n)}
    M, K, fext = np.diag(random.uniform(0.5, 2.0, n)), net(random, (n, n), 2.0), random.normal(0.0, 3.0, n)
    M[0, 1] = M[1, 0] = 0.2 * (kind != "diagonal")
    if kind == "function":
        stated = {} if convert is np.asarray else {"jac_sparsity": sp.diags_array([np.ones(n)] * 3, offsets=[-1, 0, 1], shape=(n, n))}
        return nsds.lagrangian(convert(M), fint=springs, z=[random.normal()], **state, **stated)
    K = 20.0 * K @ K.T if kind == "linear" else np.diag(random.uniform(1.0, 20.0, n))
    return nsds.lagrangian_linear(convert(M), convert(K), convert(0.02 * K), fext=fext, **state)


def first_order(random, kind, n, convert):
    """A part of n states."""
    x, b, A, M = 0.3 * random.normal(size=n), random.normal(size=n), net(random, (n, n), 2.0), net(random, (n, n), 1.0)
    if kind == "function":
        return nsds.first_order(cubic, x=x, z=[random.normal()])
    if kind == "diagonal":
        return nsds.first_order_linear(convert(np.diag(-random.uniform(0.5, 3.0, n))), b=b, x=x)
    return nsds.first_order_linear(convert(A - 4.0 * np.eye(n)), b, convert(0.2 * M + np.diag(random.uniform(0.5, 2.0, n))), x=x)


def on_parts(seed, law, are_two, are_many, is_mechanical, convert):
    """One part or two of some kind, few rows or many, across both; inputs other than outputs, and coupled rows."""
    random, make = np.random.default_rng(seed), mechanical if is_mechanical else first_order
    n = int(random.integers(61, 70)) if are_many else int(random.integers(5, 10))
    names = ("a", "b") if are_two else ("a",)
    parts = {name: make(random, random.choice(["linear", "diagonal", "function"]), n, convert) for name in names}
    if is_mechanical:
        made = LAWS[law]
        H = rows_on(random, len(made.H) * ((61 if are_many else 5) // len(made.H)), n * len(names))
        gaps = random.uniform(0.0, 0.02, len(H)) - H @ np.concatenate([part["record"]["q"].reshape(-1) for part in parts.values()])
        relation, law = nsds.lagrangian_linear_relation(convert(H), gaps if made.closes else None), made.made
    else:
        m = 2 if law == "normal_cone" else 61 if are_many else 4
        C, S = rows_on(random, m, n * len(names)), 0.3 * net(random, (m, m), 1.0)
        B, D = C.T + 0.1 * net(random, C.T.shape, 1.0), np.diag(random.uniform(0.1, 1.0, m)) + S - S.T
        more = {"e": 0.3 * random.normal(size=m), "F": 0.2 * random.normal(size=(m, 2)), "z": random.normal(size=2)}
        relation = nsds.first_order_linear_relation(convert(C), convert(B), convert(D), **more)
        law = nsds.mixed_complementarity(m // 2) if law == "mixed_complementarity" else FIRST_ORDER_LAWS[law][0]
    return nsds.system(**parts, law=nsds.interaction(relation, law, on=names if are_two else "a"))


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


@given(seeds, st.sampled_from(schemes_of(LAGRANGIAN)), st.sampled_from(sorted(LAWS)), st.booleans(), st.booleans(), forms)
@examples(30)
def test_parts_of_all_kinds_are_one_mechanical_model(seed, name, law, are_two, are_many, form):
    scheme = getattr(nsds, name)(**({"newton_tol": 1e-14} if name in _BY_NEWTON else {}))
    fields = [(part, field) for part in ("a", "b")[: 1 + are_two] for field in "qv"]
    require_one_model(lambda convert: on_parts(seed, law, are_two, are_many, True, convert), scheme, form, [*fields, ("law", "lambda")])


@given(seeds, st.sampled_from(schemes_of(FIRST_ORDER)), st.sampled_from(sorted(FIRST_ORDER_LAWS)), st.booleans(), st.booleans(), forms)
@examples(30)
def test_parts_of_all_kinds_are_one_first_order_model(seed, name, law, are_two, are_many, form):
    scheme = getattr(nsds, name)(**({"newton_tol": 1e-14} if name == "euler_moreau" else {}))
    fields = [*((part, "x") for part in ("a", "b")[: 1 + are_two]), ("law", "y"), ("law", "lambda")]
    require_one_model(lambda convert: on_parts(seed, law, are_two, are_many, False, convert), scheme, form, fields)
