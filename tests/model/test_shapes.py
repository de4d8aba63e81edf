"""Shapes: what their constructors give and refuse; volumes and inertias by sampling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from nsds.model import shapes
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


def corners(size):
    return (np.stack(np.meshgrid(*[[0, 1]] * 3, indexing="ij"), axis=-1).reshape(-1, 3) - 0.5) * size


@examples(25)
@given(st.tuples(lengths, lengths, lengths), quaternions, st.tuples(*[st.floats(-2, 2)] * 3))
def test_a_hull_or_closed_mesh_of_the_corners_of_a_box_has_its_volume_centre_and_inertia(size, p, shift):
    box = shapes.box(size, orientation=p)
    hull = shapes.convex(np.vstack([corners(size), 0.3 * corners(size)]) + shift, orientation=p)
    for shape in (hull, shapes.mesh(hull["vertices"], hull["triangles"], orientation=p)):
        assert shape["vertices"].shape == (8, 3)
        assert np.isclose(shapes.volume(shape), shapes.volume(box), rtol=1e-12)
        R = Rotation.from_quat(np.roll(box["pose"][3:], -1)).as_matrix()
        assert np.allclose(shapes.centre_of_mass(shape), R @ shift, atol=1e-12)
        moved = shape | {"pose": shape["pose"] - np.concatenate([shapes.centre_of_mass(shape), np.zeros(4)])}
        for each in (shape, moved):
            assert np.allclose(shapes.inertia(each, 3.0), shapes.inertia(box, 3.0), atol=1e-11)
    assert np.array_equal(shapes.centre_of_mass(shapes.sphere(1.0, position=[1, 2, 3])), [1, 2, 3])


TETRAHEDRON = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
UNIT = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: shapes.convex([[0, 0, 0]] * 3), ValueError, r"convex: vertices must have shape \(n, 3\), n at least 4, got \(3, 3\)"),
        (lambda: shapes.convex(corners([1, 1, 0])), ValueError, "convex: vertices must span a volume, got 8 in a plane"),
        (lambda: shapes.convex([[0, 0, 0]] * 3 + [[0, 0, np.nan]]), ValueError, "convex: vertices must be finite"),
        (lambda: shapes.mesh(UNIT, [[0, 1, 4]]), ValueError, "mesh: triangles must be numbers of vertices, 0 to 3, got 4"),
        (lambda: shapes.mesh(UNIT, [[0, 1, -1]]), ValueError, "got -1"),
        (lambda: shapes.mesh(UNIT, [[0.0, 1.0, 2.0]]), TypeError, "mesh: triangles must be whole numbers, got float64"),
        (lambda: shapes.mesh(UNIT, [0, 1, 2]), ValueError, r"mesh: triangles must have shape \(k, 3\), k at least 1, got \(3,\)"),
        (lambda: shapes.mesh(UNIT, [[0, 1, 1]]), ValueError, "mesh: triangles must have an area, number 0 has none"),
        (lambda: shapes.mesh(UNIT, [[0, 1, 2], [0, 1, 3]]), ValueError, "from vertex 0 to 1 is passed 2 times"),
        (lambda: shapes.volume(shapes.mesh(UNIT, TETRAHEDRON[:3])), ValueError, "volume: the mesh must be closed, got 3 edges of one"),
        (lambda: shapes.inertia(shapes.mesh(UNIT, TETRAHEDRON[:1]), 1.0), ValueError, "inertia: the mesh must be closed"),
        (lambda: shapes.volume(shapes.mesh(UNIT, TETRAHEDRON[:, ::-1])), ValueError, "counterclockwise from outside, got the volume -0.1"),
        (lambda: shapes.centre_of_mass(shapes.plane()), ValueError, "centre_of_mass: shape must be one of .*, got plane"),
    ],
)  # fmt: skip
def test_refusals_of_polyhedra(call, error, message):
    with pytest.raises(error, match=message):
        call()


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
        (lambda: shapes.volume(shapes.plane()), "volume: shape must be one of sphere, capsule, cylinder, box, convex, mesh, got plane"),
        (lambda: shapes.inertia(shapes.tube(1), 1), "inertia: shape must be one of .*, got tube"),
        (lambda: shapes.inertia(shapes.sphere(1), 0), "inertia: mass must be above 0, got 0"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
