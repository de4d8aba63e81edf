"""How kernels hand arrays to each other: what arrives is what was given, whoever calls."""

from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import types

from nsds._jit import address, bound, by_reference, caller, each, kernel, made, parallel, tiny

CASES = {
    "a vector": np.arange(5.0),
    "none of it": np.arange(3.0)[:0],
    "integers": np.arange(4),
    "bits": np.array([True, False, True]),
    "a matrix": np.arange(6.0).reshape(2, 3),
    "three axes": np.arange(24.0).reshape(2, 3, 4),
    "by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "every other one": np.arange(6.0)[::2],
    "from the end": np.arange(6.0)[::-1],
    "read only": np.frombuffer(np.arange(3.0).tobytes()),
}


@kernel
def shape_and_place(array):
    """What of an array is not in its numbers."""
    return array.shape, array.strides, array.size, array.itemsize, array.ndim, array.ctypes.data


@kernel
def handed_on(array):
    return shape_and_place(array)


@tiny
def copied_into(array):
    return shape_and_place(array)


@numba.njit
def of_a_user(array):
    return handed_on(array), copied_into(array)


@pytest.mark.parametrize("name", CASES)
def test_an_array_arrives_as_it_is(name):
    array = CASES[name]
    whole = array.shape, array.strides, array.size, array.itemsize, array.ndim, array.ctypes.data
    assert shape_and_place(array) == handed_on(array) == whole
    assert of_a_user(array) == (whole, whole)


class Tables(NamedTuple):
    rows: np.ndarray
    weight: float
    first: np.ndarray
    matrix: np.ndarray


@kernel
def weighed(tables, out):
    rows, first, matrix = tables.rows, tables.first, tables.matrix
    for i in range(rows.size):
        out[i] = tables.weight * rows[i].value + rows[i].count * first[i] + matrix[i, 1]


@kernel
def weigh_each(tables, out):
    for i in range(out.shape[0]):
        weighed(tables, out[i])


@parallel
def weigh_all(tables, out):
    for i in each(out.shape[0]):
        weighed(tables, out[i])


def test_arrays_of_rows_in_tuples_arrive_on_one_core_and_on_all():
    rows = np.array([(1, 2.0), (3, 4.0), (5, 6.0)], [("count", "<i4"), ("value", "<f8")])
    tables = Tables(rows, 10.0, np.array([1, 2, 3]), np.arange(6.0).reshape(3, 2))
    expected = 10.0 * rows["value"] + rows["count"] * [1, 2, 3] + [1.0, 3.0, 5.0]
    for march in (weigh_each, weigh_all):
        out = np.zeros((4, 3))
        march(tables, out)
        np.testing.assert_array_equal(out, np.tile(expected, (4, 1)))


SIGNATURE = types.float64(types.float64[::1], types.int64[:, ::1])
call = caller(SIGNATURE)


@kernel
def last_of_both(vector, matrix):
    return vector[vector.size - 1] + matrix[matrix.shape[0] - 1, matrix.shape[1] - 1]


@kernel
def call_it(at, vector, matrix):
    return call(at, (vector, matrix))


def test_what_is_called_by_its_address_gets_whole_arrays():
    assert call_it(np.uintp(address(SIGNATURE, last_of_both)), np.arange(4.0), np.arange(6).reshape(2, 3)) == 8.0


@kernel
def add_up(out, rows, matrix, every_other, weight):
    for i in range(out.size):
        out[i] = rows[i].value + matrix[i, 1] + weight * every_other[i]
    return 7


def test_bound_arguments_are_what_was_given():
    rows, out = np.array([(1, 2.0), (3, 4.0)], [("count", "<i4"), ("value", "<f8")]), np.zeros(2)
    given = out, rows, np.arange(4.0).reshape(2, 2), np.arange(8.0)[::4], 10.0
    assert bound((add_up, given))() == 7
    np.testing.assert_array_equal(out, [3.0, 47.0])


@by_reference
class Inner(NamedTuple):
    rows: np.ndarray
    weight: float


@by_reference
class Outer(NamedTuple):
    first: float
    inner: Inner
    last: np.ndarray


inner_of, outer_of = made(Inner), made(Outer)


@kernel
def weigh(outer, out):
    for i in range(out.size):
        out[i] = outer.first + outer.inner.weight * outer.inner.rows[i] + outer.last[i]


@kernel
def weigh_made(rows, out):
    """A value inside another one, both made here."""
    weigh(outer_of((1.0, inner_of((rows, 2.0)), out)), out)


def test_values_by_reference_lie_in_others_where_kernels_make_them_too():
    rows, out = np.array([3.0, 4.0]), np.array([10.0, 20.0])
    weigh_made(rows, out)
    np.testing.assert_array_equal(out, [17.0, 29.0])
    weigh(Outer(1.0, Inner(rows, 2.0), np.array([10.0, 20.0])), out)
    np.testing.assert_array_equal(out, [17.0, 29.0])
