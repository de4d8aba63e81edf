"""Numbers of members side by side: operators and functions give the bits of single numbers, and those of plain Python."""

import itertools

import numpy as np

from nsds._jit import absolute, apart, bits_of, chosen, gather, kernel, larger, load, places, plain, put, root, scatter, spread

WIDTH = 8
SPECIAL = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e308, -1e308, np.inf, -np.inf, np.nan, 0.1, 3.0]


@kernel
def operate(n, x, out, masks):
    """Everything that can be done with two words, for each pair of words."""
    for k in range(n):
        a, b = load(x, 2 * k, WIDTH), load(x, 2 * k + 1, WIDTH)
        at = 10 * k
        put(out, at, WIDTH, a + b)
        put(out, at + 1, WIDTH, a - b)
        put(out, at + 2, WIDTH, a * b)
        put(out, at + 3, WIDTH, a / b)
        put(out, at + 4, WIDTH, absolute(a))
        put(out, at + 5, WIDTH, larger(a, b))
        put(out, at + 6, WIDTH, chosen((a < b) | (a == 0.0), a, spread(2.0, WIDTH)))
        put(out, at + 7, WIDTH, 2.0 * a + b * 3)
        put(out, at + 8, WIDTH, 7.0)
        put(out, at + 9, WIDTH, 0.0 * -a)
        masks[4 * k], masks[4 * k + 1] = bits_of(a < b), bits_of((a <= b) & (a != b))
        masks[4 * k + 2], masks[4 * k + 3] = bits_of(a > b), bits_of(a >= b)


def words():
    pairs = np.array([*itertools.product(SPECIAL, SPECIAL)])
    pairs = np.concatenate([pairs, np.random.default_rng(3).normal(size=(-len(pairs) % WIDTH, 2))])
    return pairs.reshape(-1, WIDTH, 2).transpose(0, 2, 1).reshape(-1)


def test_lanes_are_single_numbers_side_by_side():
    x = words()
    n = x.size // 2 // WIDTH
    out, masks = np.zeros(10 * n * WIDTH), np.zeros(4 * n, np.int64)
    operate(n, x, out, masks)
    with np.errstate(all="ignore"):
        a, b = x.reshape(n, 2, WIDTH).transpose(1, 0, 2)
        expected = [a + b, a - b, a * b, a / b, np.abs(a), np.where(b > a, b, a), np.where((a < b) | (a == 0), a, 2.0), 2 * a + b * 3]
        expected += [np.full_like(a, 7.0), 0.0 * -a]
    expected = np.stack(expected, axis=1)
    found = out.reshape(expected.shape)
    assert (np.isnan(found) == np.isnan(expected)).all()
    assert (found.view(np.int64) == expected.view(np.int64))[~np.isnan(expected)].all()
    for k, mask in enumerate([a < b, (a <= b) & (a != b), a > b, a >= b]):
        assert (masks[k::4] == mask @ (1 << np.arange(WIDTH))).all()


def test_plain_lanes_are_copies():
    x = np.arange(16.0)
    a = plain.load(x, 1, WIDTH)
    plain.put(x, 1, WIDTH, plain.spread(1.0, WIDTH))
    assert (a == np.arange(8.0, 16.0)).all()
    assert (x[8:] == 1.0).all()
    assert (plain.larger(a, plain.spread(9.5, WIDTH))[:3] == [9.5, 9.5, 10.0]).all()
    assert plain.bits_of(a > 14.0) == 0b10000000


@kernel
def carry(x, numbers, out):
    """Three numbers of each of some members with roots, to where they came from in another array, backwards."""
    at, back = places(numbers, 1, 2, 3, WIDTH), apart(3 * (WIDTH - 1), -3, WIDTH)
    for k in range(3):
        scatter(out, back, k, root(gather(x, at, k)))


def test_scattered_members_are_gathered():
    rng = np.random.default_rng(1)
    x, numbers, out = rng.uniform(size=300), rng.integers(0, 100, 2 * WIDTH), np.zeros(3 * WIDTH)
    carry(x, numbers, out)
    assert (out.reshape(-1, 3)[::-1] == np.sqrt(x.reshape(-1, 3)[numbers[1::2]])).all()
    again = np.zeros(3 * WIDTH)
    at, back = plain.places(numbers, 1, 2, 3, WIDTH), plain.apart(3 * (WIDTH - 1), -3, WIDTH)
    for k in range(3):
        plain.scatter(again, back, k, plain.root(plain.gather(x, at, k)))
    assert (out == again).all()
