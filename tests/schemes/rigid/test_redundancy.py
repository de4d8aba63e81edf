"""Equations that depend on each other: multipliers of least norm against a pseudo-inverse, loads that are shared, loops without a kick."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds import joints
from nsds.schemes.problem import redundancy
from nsds.schemes.rigid import equations
from tests.schemes.rigid.test_equations import FREE, laid_out, stated_of
from tests.strategies import examples, generators

HINGE = [0.0, 0.0, 1.0]
BODIES = FREE[:2]


def problem(rng, n_blocks, dependent):
    """(blocks, G, W) of equations between two bodies, some of which are sums of others."""
    n = 3 * n_blocks
    H = rng.normal(size=(n, 12)) * 10 ** rng.uniform(-2, 2, size=(n, 1))
    for i in dependent:
        others = [j for j in range(n) if j not in dependent]
        H[i] = rng.normal(size=len(others)) @ H[others]
    stated, G, W = stated_of(rng, H, np.tile([0, 1], (n_blocks, 1)), 2)
    return stated, G, W


def least(W, q, d=3):
    """The r with ``W r + q = 0`` of least ``sum of T_i r_i^2``, T_i the trace of the block of row i."""
    scale = 1.0 / np.sqrt(np.repeat(np.diag(W).reshape(-1, d).sum(axis=1), d))
    return -scale * (np.linalg.pinv(scale[:, None] * W * scale, rcond=1e-11) @ (scale * q))


@examples(60)
@given(generators, st.integers(1, 3), st.integers(0, 4))
def test_multipliers_are_those_of_least_norm(rng, n_blocks, n_dependent):
    n = 3 * n_blocks
    dependent = list(rng.choice(n, size=min(n_dependent, n - 1), replace=False))
    stated, G, W = problem(rng, n_blocks, dependent)
    q, r, (p, memory) = W @ rng.normal(size=n), np.zeros(n), laid_out(n, n, 2)
    assert equations.gather_dense(3, stated, BODIES, G, p, memory) == n
    rank = redundancy.factorise(n, p, memory)
    assert rank == n - len(dependent)
    redundancy.solve(n, rank, q, p, r, memory)
    np.testing.assert_allclose(W @ r, -q, atol=1e-7 * abs(q).max())
    if np.linalg.cond(W[np.ix_(*[[i for i in range(n) if i not in dependent]] * 2)]) < 1e8:
        np.testing.assert_allclose(r, least(W, q), rtol=1e-4, atol=1e-6 * abs(r).max())


@examples(30)
@given(generators)
def test_equations_that_contradict_each_other_are_made_consistent(rng):
    """What is added lies in the null space of W, in its units, and takes out all that is there."""
    stated, G, W = problem(rng, 3, [1, 5])
    p, memory = laid_out(9, 9, 2)
    equations.gather_dense(3, stated, BODIES, G, p, memory)
    rank = redundancy.factorise(9, p, memory)
    q = rng.normal(size=9) * np.sqrt(np.diag(W))
    made, scale = q.copy(), 1.0 / np.sqrt(np.diag(W))
    redundancy.make_consistent(9, rank, p, made, memory)
    A = scale[:, None] * W * scale
    null = np.linalg.svd(A)[0][:, 7:]
    np.testing.assert_allclose(null.T @ (scale * made), 0.0, atol=1e-6)
    np.testing.assert_allclose(scale * (made - q), -null @ (null.T @ (scale * q)), atol=1e-6)


@pytest.mark.parametrize("scheme", [None, nsds.moreau_jean()], ids=["default", "moreau_jean"])
def test_two_hinges_on_one_axis_carry_alike(scheme):
    """Ten redundant rows for five; a load in the middle."""
    body = nsds.rigid_bodies(1.0, [0.1, 0.1, 0.1], q=[1.0, 0, 0, 1, 0, 0, 0], v=np.zeros(6), fext=[0, -10.0, 0])
    hinges = {
        name: nsds.interaction(joints.hinge([0, 0, z], HINGE), nsds.equality(), on="body") for name, z in (("low", -0.3), ("high", 0.3))
    }
    rows = nsds.simulate(nsds.system(body=body, **hinges), t_end=0.5, h=1e-3, scheme=scheme)
    assert (rows["status"] == 0).all()
    carried = rows["low"]["lambda"][1:]
    assert abs(carried[:, :3]).max() > 5e-4
    np.testing.assert_allclose(carried, rows["high"]["lambda"][1:], atol=1e-9)


def parallelogram(n, angle, rate):
    """n parallel cranks of length 1 that carry one bar, whose hinges in space are redundant."""
    c, s = math.cos(angle), math.sin(angle)
    parts = {}
    for i in range(n):
        x = 2.0 * i / (n - 1)
        parts[f"crank{i}"] = nsds.rigid_bodies(
            1.0, [0.01, 0.1, 0.1], q=[x + c / 2, s / 2, 0, math.cos(angle / 2), 0, 0, math.sin(angle / 2)],
            v=[-rate * s / 2, rate * c / 2, 0, 0, 0, rate],
        )  # fmt: skip
        parts[f"foot{i}"] = nsds.interaction(joints.hinge([x, 0, 0], HINGE), nsds.equality(), on=f"crank{i}")
    parts["bar"] = nsds.rigid_bodies(2.0, [0.01, 1.0, 1.0], q=[1.0 + c, s, 0, 1, 0, 0, 0], v=[-rate * s, rate * c, 0, 0, 0, 0])
    for i in range(n):
        x = 2.0 * i / (n - 1)
        parts[f"head{i}"] = nsds.interaction(joints.hinge([x + c, s, 0], HINGE), nsds.equality(), on=(f"crank{i}", "bar"))
    return nsds.system(**parts)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("h", [1e-2, 1e-3])
def test_a_parallelogram_passes_its_flat_position(n, h):
    """Its cranks turn at a constant rate, through positions where the rows of its hinges depend on each other, and without a kick."""
    rows = nsds.simulate(parallelogram(n, 0.3, 2.0), t_end=5.0, h=h)
    assert (rows["status"] == 0).all()
    angle = 2 * np.unwrap(np.arctan2(rows["crank0"]["q"][:, 6], rows["crank0"]["q"][:, 3]), period=np.pi)
    assert np.sum(np.diff(np.sign(np.sin(angle))) != 0) >= 3  # flat
    np.testing.assert_allclose(np.linalg.norm(rows["bar"]["v"][:, :3], axis=1), 2.0, rtol=1e-9)
    assert abs(rows["bar"]["v"][:, 3:]).max() < 1e-5
    assert abs(rows["head0"]["y"]).max() < 1e-12
