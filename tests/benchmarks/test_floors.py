"""What stands beside measured times: operations are counted right, and the hand-written pile is that of its definition."""

import math

import numpy as np
import pytest

from tests.benchmarks import flops, sphere_floors
from tests.benchmarks.roofline import Line


def polynomial(n, a, x, out):
    """Four operations for each number, one of them a root."""
    for i in range(n):
        out[i] = -(a * x[i] + 1.0) / math.sqrt(abs(x[i]))


def twice(n, a, x, out):
    polynomial(n, a, x, out)
    polynomial(n, 2.0 * a, x, out)


def test_operations_are_counted_through_calls():
    x, out = np.linspace(1.0, 2.0, 7), np.zeros(7)
    assert flops.of(polynomial, 7, 3.0, x, out) == 4 * 7
    assert flops.of(twice, 7, 3.0, x, out) == 8 * 7 + 1
    assert (out == 0.0).all()


def test_a_line_is_bound_by_the_longer_of_its_times():
    of_memory = Line("ball", 1, bytes=120, flops=30, ns=40.0, by_hand=10.0, bandwidth=6.0, peak=6.0).cells()
    assert of_memory[2:6] == ("120", "30", "0.25", "40 ns")
    assert of_memory[8:] == ("memory, 20 ns", "50 %", "10 ns")
    of_arithmetic = Line("ball", 1, bytes=60, flops=300, ns=2e3, by_hand=10.0, bandwidth=6.0, peak=6.0).cells()
    assert (of_arithmetic[5], of_arithmetic[8]) == ("2 µs", "arithmetic, 50 ns")


@pytest.fixture
def plain(monkeypatch):
    for name in ("_find", "_sweep"):
        monkeypatch.setattr(sphere_floors, name, flops.plain(getattr(sphere_floors, name)))


def test_the_grid_finds_what_all_pairs_do(plain):
    rng, half, radius, reach = np.random.default_rng(0), 0.5, 0.1, 1e-4
    x = rng.uniform([-0.4, -0.4, 0.1], [0.4, 0.4, 0.9], (60, 3))
    pile = sphere_floors.Pile(x, np.zeros((60, 6)), radius, 1.0, half)
    found = {tuple(pair) for pair in pile.ids[: pile.n_contacts] if pair[1] < 60}
    distance = np.linalg.norm(x[:, None] - x[None], axis=2)
    assert found == {(i, j) for i in range(60) for j in range(i) if distance[i, j] < 2 * radius + reach}
    gaps = np.stack([half + x[:, 0], half - x[:, 0], half + x[:, 1], half - x[:, 1], x[:, 2]])
    assert (pile.ids[: pile.n_contacts, 1] == 60).sum() == (gaps < radius + reach).sum()


def test_sweeps_by_hand_end_with_the_law_of_coulomb(plain):
    """Two spheres on top of each other that slide: u_N >= 0, r in its cone, r_T against u_T where it slips, momentum kept."""
    radius, mass, mu, h = 0.1, 2.0, 0.3, 5e-3
    x, v = np.array([[0.0, 0, radius], [0, 0, 3 * radius]]), np.array([[1.0, 0, -1, 0, 0, 0], [0, 0.5, 0, 0, 0, 0]])
    pile = sphere_floors.Pile(x, v, radius, mass, 1.0)
    given = pile.arguments(200, pile.n_contacts, mu)
    sphere_floors._sweep(*given)
    ids, normals, r, new = given[3], given[4], given[5], given[6]
    p = r[:, :3] + r[:, 3:] * normals
    impulse = np.zeros((3, 3))
    for (i, j), p_c in zip(ids, p, strict=True):
        impulse[i] += p_c
        impulse[j] -= p_c
    free = v[:, :3] - [0, 0, 9.81 * h]
    assert np.allclose(mass * (new[:2, :3] - free), impulse[:2], rtol=0, atol=1e-12)
    for c, (i, j) in enumerate(ids):
        u = new[i, :3] - new[j, :3] - radius * np.cross(new[i, 3:] + new[j, 3:], normals[c])
        u_t = u - (u @ normals[c]) * normals[c]
        assert abs(u @ normals[c]) < 1e-12
        assert np.linalg.norm(r[c, :3]) <= mu * r[c, 3] * (1 + 1e-12)
        assert np.linalg.norm(u_t) < 1e-12 or np.allclose(r[c, :3], -mu * r[c, 3] * u_t / np.linalg.norm(u_t), atol=1e-9)
