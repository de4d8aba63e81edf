"""Shapes: what their constructors give and refuse; volumes and inertias by sampling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from nsds import shapes
from tests.strategies import examples

lengths = st.floats(0.2, 2.0)
quaternions = st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda p: np.linalg.norm(p) > 0.1)


def inside(shape, x):
    """Which points, in the axes of the shape, are within it."""
    radius, length, _ = shape["size"]
    if shape["shape"] == "box":
        return (2 * np.abs(x) <= shape["size"]).all(axis=1)
    along = np.abs(x[:, 2])
    if shape["shape"] == "cylinder":
        return (np.hypot(x[:, 0], x[:, 1]) <= radius) & (along <= length / 2)
    beyond = np.maximum(along - length / 2, 0) if shape["shape"] == "capsule" else along
    return x[:, 0] ** 2 + x[:, 1] ** 2 + beyond**2 <= radius**2


@examples(25)
@given(st.sampled_from(["sphere", "box", "capsule", "cylinder"]), st.tuples(lengths, lengths, lengths), quaternions)
def test_volume_and_inertia_are_those_of_the_points_within(kind, size, p):
    if kind == "sphere":
        shape = shapes.sphere(size[0], position=[1, 2, 3])
    elif kind == "box":
        shape = shapes.box(size, orientation=p)
    else:
        shape = getattr(shapes, kind)(size[0], size[1], orientation=p)
    side = 2 * (size[0] + size[1] + size[2])
    grid = (np.arange(60) + 0.5) / 60 - 0.5
    x = side * np.stack(np.meshgrid(grid, grid, grid), axis=-1).reshape(-1, 3)
    if kind != "sphere":  # the grid fits the shape closely
        extent = size if kind == "box" else [2 * size[0], 2 * size[0], size[1] + (2 * size[0] if kind == "capsule" else 0)]
        x *= np.array(extent) / side
    else:
        extent = [2 * size[0]] * 3
        x *= extent[0] / side
    x = x[inside(shape, x)]
    cell = np.prod(extent) / 60**3
    assert np.isclose(shapes.volume(shape), cell * len(x), rtol=0.01)
    R = Rotation.from_quat(np.roll(shape["pose"][3:], -1)).as_matrix()
    y = x @ R.T
    expected = ((y**2).sum() * np.eye(3) - y.T @ y) * 5.0 / len(x)
    got = shapes.inertia(shape, mass=5.0)
    assert np.allclose(got, expected, atol=0.02 * np.trace(expected))
    assert np.allclose(got, got.T)


@examples(50)
@given(st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda n: np.linalg.norm(n) > 0.1), st.floats(-2, 2))
def test_a_plane_has_its_normal_as_z_axis_and_its_offset(normal, offset):
    shape = shapes.plane(normal, offset)
    z = Rotation.from_quat(np.roll(shape["pose"][3:], -1)).apply([0, 0, 1])
    n = np.array(normal) / np.linalg.norm(normal)
    assert np.allclose(z, n, atol=1e-6)
    assert np.isclose(n @ shape["pose"][:3], offset)
    assert np.allclose(shapes.plane(normal, point=[1, 2, 3])["pose"][:3], [1, 2, 3])


@pytest.mark.parametrize("sign", [1, -1])
def test_planes_along_z(sign):
    z = Rotation.from_quat(np.roll(shapes.plane([0, 0, sign])["pose"][3:], -1)).apply([0, 0, 1])
    assert np.allclose(z, [0, 0, sign])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shapes.sphere(-1), "sphere: radius must be above 0, got -1"),
        (lambda: shapes.box([1, 1]), r"box: lengths must have shape \(3,\), got \(2,\)"),
        (lambda: shapes.box([1, 0, 1]), r"box: lengths must be positive, got \[1.0, 0.0, 1.0\]"),
        (lambda: shapes.capsule(1, 0), "capsule: length must be above 0, got 0"),
        (lambda: shapes.cylinder(1, np.nan), "cylinder: length must be finite, got nan"),
        (lambda: shapes.tube(0), "tube: radius must be above 0, got 0"),
        (lambda: shapes.plane([0, 0, 0]), "plane: normal must not be zero"),
        (lambda: shapes.plane([0, 0, 1], 1.0, point=[0, 0, 1]), "plane: give the offset or a point"),
        (lambda: shapes.box([1, 1, 1], orientation=[0, 0, 0, 0]), "box: orientation must be a unit quaternion"),
        (lambda: shapes.volume(shapes.plane()), "volume: shape must be one of sphere, capsule, cylinder, box, got plane"),
        (lambda: shapes.inertia(shapes.tube(1), 1), "inertia: shape must be one of .*, got tube"),
        (lambda: shapes.inertia(shapes.sphere(1), 0), "inertia: mass must be above 0, got 0"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
