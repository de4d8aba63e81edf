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
    if shape["shape"] == "cone":
        return (x[:, 2] >= -length / 4) & (np.hypot(x[:, 0], x[:, 1]) * length <= radius * (0.75 * length - x[:, 2]))
    along = np.abs(x[:, 2])
    if shape["shape"] == "cylinder":
        return (np.hypot(x[:, 0], x[:, 1]) <= radius) & (along <= length / 2)
    beyond = np.maximum(along - length / 2, 0) if shape["shape"] == "capsule" else along
    return x[:, 0] ** 2 + x[:, 1] ** 2 + beyond**2 <= radius**2


@examples(25)
@given(st.sampled_from(["sphere", "box", "capsule", "cylinder", "cone"]), st.tuples(lengths, lengths, lengths), quaternions)
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
        beyond = {"capsule": 2 * size[0], "cone": 0.5 * size[1]}.get(kind, 0.0)
        extent = size if kind == "box" else [2 * size[0], 2 * size[0], size[1] + beyond]
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
        (lambda: shapes.mesh(UNIT, [[0, 1, 1]]), ValueError, "mesh: triangles must have an area, none of the 1 has one"),
        (lambda: shapes.mesh([*UNIT, [0, 0, np.nan]], [[0, 1, 2]]), ValueError, r"mesh: vertices must be finite, .* \[4, 2\]"),
        (lambda: shapes.volume(shapes.mesh(UNIT, TETRAHEDRON[:3])), ValueError, "volume: the mesh must be closed, got 3 edges of one"),
        (lambda: shapes.inertia(shapes.mesh(UNIT, TETRAHEDRON[:1]), 1.0), ValueError, "inertia: the mesh must be closed"),
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
        (
            lambda: shapes.volume(shapes.plane()),
            "volume: shape must be one of sphere, capsule, cylinder, box, convex, mesh, disk, stadium, polygon, cone, got plane",
        ),
        (lambda: shapes.inertia(shapes.tube(1), 1), "inertia: shape must be one of .*, got tube"),
        (lambda: shapes.inertia(shapes.sphere(1), 0), "inertia: mass must be above 0, got 0"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def written(shape, path, scale=1.0):
    """A file of a mesh, by its ending: STL as text or in binary, each triangle with vertices of its own; OBJ with numbers."""
    x, triangles = shape["vertices"] / scale, shape["triangles"]
    if path.suffix == ".obj":
        text = "".join(f"v {a!r} {b!r} {c!r}\n" for a, b, c in x.tolist()) + "".join(
            f"f {i} {j} {k}\n" for i, j, k in (triangles + 1).tolist()
        )
        path.write_text(text)
    elif path.stem == "text":
        corners = "".join(
            "facet normal 0 0 0\nouter loop\n" + "".join(f"vertex {a!r} {b!r} {c!r}\n" for a, b, c in x[t].tolist()) + "endloop\nendfacet\n"
            for t in triangles
        )
        path.write_text(f"solid part\n{corners}endsolid part\n")
    else:
        rows = np.zeros(len(triangles), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
        rows["corners"] = x[triangles]
        path.write_bytes(bytes(80) + np.uint32(len(triangles)).tobytes() + rows.tobytes())
    return path


@pytest.mark.parametrize("name", ["part.obj", "text.stl", "binary.stl"])
@pytest.mark.parametrize("hull", [False, True])
def test_a_part_from_a_file_has_the_volume_centre_and_inertia_of_what_was_written(name, hull, tmp_path):
    pytest.importorskip("trimesh")
    whole = shapes.convex(np.random.default_rng(1).normal(size=(20, 3)), orientation=[1, 2, 3, 4])
    path = written(whole, tmp_path / name, scale=1e-3)  # in millimetres
    shape = shapes.from_file(path, scale=1e-3, hull=hull, orientation=[1, 2, 3, 4])
    assert shape["shape"] == ("convex" if hull else "mesh")
    assert len(shape["vertices"]) == len(whole["vertices"])  # which STL has six times
    assert np.isclose(shapes.volume(shape), shapes.volume(whole), rtol=1e-6)
    assert np.allclose(shapes.centre_of_mass(shape), shapes.centre_of_mass(whole), atol=1e-6)
    assert np.allclose(shapes.inertia(shape, 2.0), shapes.inertia(whole, 2.0), rtol=1e-5, atol=1e-6)


def test_a_mirrored_part_stays_closed_and_the_right_side_out(tmp_path):
    pytest.importorskip("trimesh")
    path = written(shapes.mesh(UNIT, TETRAHEDRON), tmp_path / "part.obj")
    shape = shapes.from_file(path, scale=[2, -1, 1])
    assert np.isclose(shapes.volume(shape), 1 / 3)
    assert np.allclose(shapes.centre_of_mass(shape), [0.5, -0.25, 0.25])


def test_files_that_are_open_inside_out_or_no_meshes_are_named(tmp_path):
    pytest.importorskip("trimesh")
    open_one = shapes.from_file(written(shapes.mesh(UNIT, TETRAHEDRON[:3]), tmp_path / "open.stl"))
    with pytest.raises(ValueError, match="volume: the mesh must be closed, got 3 edges of one triangle only"):
        shapes.volume(open_one)
    inside_out = shapes.mesh(UNIT, TETRAHEDRON)
    inside_out["triangles"] = inside_out["triangles"][:, ::-1]
    path = written(inside_out, tmp_path / "turned.obj")
    with pytest.warns(UserWarning, match=r"from_file: '.*turned\.obj': mesh: 4 of 4 triangles .* inside out: they are turned"):
        assert np.isclose(shapes.volume(shapes.from_file(path)), 1 / 6)
    with pytest.raises(ValueError, match=r"counterclockwise from outside, got the volume -0\.166667"):
        shapes.inertia(inside_out, 1.0)
    flat = tmp_path / "flat.obj"
    flat.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    with pytest.raises(ValueError, match=r"from_file: '.*flat\.obj': convex: vertices must have shape"):
        shapes.from_file(flat, hull=True)
    line = tmp_path / "line.obj"
    line.write_text("v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n")
    with pytest.raises(ValueError, match=r"from_file: '.*line\.obj': mesh: triangles must have an area, none of the 1 has one"):
        shapes.from_file(line)
    (tmp_path / "empty.obj").write_text("v 0 0 0\n")
    (tmp_path / "text.txt").write_text("no mesh")
    for name in ("empty.obj", "text.txt", "nowhere.stl"):
        with pytest.raises(ValueError, match=rf"from_file: path: .*{name}"):
            shapes.from_file(tmp_path / name)


@examples(25)
@given(st.integers(2, 6), st.integers(2, 6), st.tuples(*[st.floats(-2, 2)] * 3))
def test_a_height_map_goes_through_its_heights_and_looks_up(n, m, slope):
    x, y = np.meshgrid(np.linspace(-1.5, 1.5, n), np.linspace(-0.5, 0.5, m), indexing="ij")
    heights = slope[0] + slope[1] * x + slope[2] * y
    heights[1, 1] += 1.0
    shape = shapes.height_map(heights, [3.0, 1.0])
    assert shape["triangles"].shape == (2 * (n - 1) * (m - 1), 3)
    assert np.allclose(shape["vertices"], np.stack([x, y, heights], axis=-1).reshape(-1, 3))
    corners_of = shape["vertices"][shape["triangles"]]
    normal = np.cross(corners_of[:, 1] - corners_of[:, 0], corners_of[:, 2] - corners_of[:, 0])
    assert np.isclose(normal[:, 2].sum() / 2, 3.0)
    assert (normal[:, 2] > 0).all()
