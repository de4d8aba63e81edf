"""Meshes as they come, from scanners, CAD and games: what is left out, what is a surface and what a solid, and what lies on them."""

import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nsds
from nsds import shapes
from nsds.collision.triangles import Edges, across_of, beyond, is_inside_out, mended, turned

CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float) - [0.5, 0.5, 1.0]
QUADS = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
CLOSED = [t for q in QUADS for t in ([q[0], q[1], q[2]], [q[0], q[2], q[3]])]
TURNED = [t[::-1] for t in CLOSED]
TOP = [i for i, t in enumerate(CLOSED) if (CUBE[t][:, 2] == 0).all()]
# the midpoint of an edge of the top is a vertex of the side alone, and a triangle without area closes the slit
SLIT = [t for t in CLOSED if t != [0, 5, 1]] + [[0, 5, 8], [0, 8, 1], [1, 8, 5]]
BALL = shapes.sphere(0.1)


def numbered(parts):
    """(vertices, triangles) of several, one behind the other."""
    vertices, triangles = [], []
    for x, t in parts:
        triangles += [[i + sum(map(len, vertices)) for i in row] for row in t]
        vertices.append(x)
    return np.vstack(vertices), triangles


MIDDLE = (CUBE[1] + CUBE[5]) / 2
# name -> (vertices, triangles, volume or None of what is no solid, words of the warning or None)
MESHES = {
    "closed": (CUBE, CLOSED, 1.0, None),
    "no area, beside": (np.vstack([CUBE, MIDDLE]), [*CLOSED, [1, 5, 8]], 1.0, None),
    "no area, in a slit": (np.vstack([CUBE, MIDDLE]), SLIT, 1.0, None),
    "two corners alike": (CUBE, [*CLOSED, [0, 0, 4], [3, 3, 3]], 1.0, None),
    "vertices anew": (CUBE[np.ravel(CLOSED)], np.arange(36).reshape(-1, 3).tolist(), 1.0, None),
    "vertices unused": (np.vstack([CUBE, [[9.0, 9, 9]]]), CLOSED, 1.0, None),
    "twice": (CUBE, [*CLOSED, CLOSED[0], [*CLOSED[3][1:], CLOSED[3][0]]], 1.0, None),
    "a fin": (np.vstack([CUBE, [0.0, -0.8, -0.5]]), [*CLOSED, [0, 4, 8]], None, None),
    "twice, once turned": (CUBE, [*CLOSED, CLOSED[TOP[0]][::-1]], 1.0, None),
    "top twice, once turned": (CUBE, [*[CLOSED[i][::-1] for i in TOP], *CLOSED], 1.0, None),
    "two face to face": (*numbered([(CUBE, CLOSED), (np.add(CUBE, [1, 0, 0]), CLOSED)]), 2.0, None),
    "two apart": (*numbered([(CUBE, CLOSED), (np.add(CUBE, [1.5, 0, 0]), CLOSED)]), 2.0, None),
    "two that meet in an edge": (*numbered([(CUBE, CLOSED), (np.add(CUBE, [1, 1, 0]), CLOSED)]), 2.0, None),
    "inside out": (CUBE, TURNED, 1.0, "12 of 12 triangles .* inside out"),
    "one of two inside out": (*numbered([(CUBE, CLOSED), (np.add(CUBE, [1.5, 0, 0]), TURNED)]), 2.0, "12 of 24 .* inside out"),
    "larger of two inside out": (*numbered([(CUBE, TURNED), (0.5 * CUBE + [1.5, 0, 0], CLOSED)]), 1.125, "12 of 24 .* inside out"),
    "a hollow": (*numbered([(CUBE, CLOSED), (0.5 * CUBE - [0, 0, 0.25], TURNED)]), 0.875, None),
    "a hollow, inside out": (*numbered([(CUBE, TURNED), (0.5 * CUBE - [0, 0, 0.25], CLOSED)]), 0.875, "24 of 24 .* inside out"),
    "open below": (CUBE, [t for t in CLOSED if not (CUBE[t][:, 2] == -1).all()], None, None),
} | {
    f"triangle {i} turned": (CUBE, [t[::-1] if k == i else t for k, t in enumerate(CLOSED)], None, "1 of 12 triangles are turned against")
    for i in (3, *TOP)
}  # fmt: skip


def made(name, **pose):
    vertices, triangles, _, warning = MESHES[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shape = shapes.mesh(vertices, triangles, **pose)
    assert len(caught) == (warning is not None)
    return shape, caught


@pytest.mark.parametrize("name", MESHES)
def test_what_is_a_solid_has_a_volume_and_what_is_none_is_told_so_where_it_is_asked(name):
    _, _, volume, warning = MESHES[name]
    shape, caught = made(name)
    if warning:
        with pytest.warns(UserWarning, match=warning):
            warnings.warn_explicit(caught[0].message, None, __file__, 1)
        assert caught[0].filename == __file__
    if volume is not None:
        assert np.isclose(shapes.volume(shape), volume, rtol=1e-12)
        moments = np.linalg.eigvalsh(shapes.inertia(shape, 1.0))
        assert moments[0] + moments[1] >= moments[2] > 0
    else:
        for ask in (shapes.volume, shapes.centre_of_mass, lambda shape: shapes.inertia(shape, 1.0)):
            with pytest.raises(ValueError, match=r"the mesh must be closed|must pass each edge as often"):
                ask(shape)


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize("scheme", [nsds.moreau_jean(), nsds.moreau_jean_combined_projection(), nsds.rattle()], ids=lambda s: s["scheme"])
def test_a_ball_lies_on_every_mesh(name, scheme):
    """Set down at two places of the top, one on each triangle."""
    shape, _ = made(name)
    bodies = nsds.rigid_bodies(1.0, 4e-3, q=[[0.11, 0.17, 0.1, 1, 0, 0, 0], [-0.11, -0.27, 0.1, 1, 0, 0, 0]], v=np.zeros((2, 6)), count=2)
    contacts = nsds.collisions({"balls": BALL}, nsds.newton_impact(0.0), world=shape)
    rows = nsds.simulate(nsds.system(gravity=[0, 0, -9.81], balls=bodies, contacts=contacts), t_end=0.1, h=2e-3, scheme=scheme)
    assert abs(rows["balls"]["q"][-1, :, 2] - 0.1).max() < 1e-3


@pytest.mark.parametrize(
    "name", ["two face to face", "no area, in a slit", "no area, beside", "a hollow", *[f"triangle {i} turned" for i in TOP]]
)
def test_what_slides_over_a_joint_of_triangles_keeps_its_velocity(name):
    shape, _ = made(name, orientation=Rotation.from_rotvec([0, 0, 0.3]).as_quat(scalar_first=True))
    for way in (1, -1):
        body = nsds.rigid_bodies(1.0, 4e-3, q=[-0.3 * way, 0.0, 0.1, 1, 0, 0, 0], v=[2.0 * way, 0.1, 0, 0, 0, 0])
        contacts = nsds.collisions({"ball": BALL}, nsds.newton_impact(0.0), world=shape)
        rows = nsds.simulate(nsds.system(gravity=[0, 0, -9.81], ball=body, contacts=contacts), t_end=0.3, h=2e-3)
        assert np.allclose(rows["ball"]["v"][-1, :2], [2.0 * way, 0.1], atol=1e-6)


def test_what_lies_beyond_an_edge_of_many_triangles_is_met_first_outside():
    """Two cubes that touch in an edge: over it each of their faces goes on to the other of its own, not to the cube across."""
    vertices, triangles, *_ = MESHES["two that meet in an edge"]
    triangles = mended(vertices, np.array(triangles))
    across = across_of(vertices, triangles)
    normals = across / np.linalg.norm(across, axis=1)[:, None]
    edges = Edges(triangles)
    partner = beyond(vertices, triangles, normals, edges)
    assert (edges.count == 4).sum() == 1
    assert (partner >= 0).all()
    for t, others in enumerate(partner):
        for side, other in enumerate(others):
            assert t in partner[other]
            start, end = triangles[t, side], triangles[t, side - 2]
            assert {start, end} <= set(triangles[other])
    at_edge = np.flatnonzero((edges.count == 4)[edges.edge])
    for here in at_edge:  # turning outside from a side of a cube the other cube is met after a quarter, its own after three
        other = partner.ravel()[here]
        assert np.isclose(normals[here // 3] @ normals[other], 0.0)
        assert (
            vertices[triangles[other]].mean(axis=0) @ normals[here // 3] > vertices[triangles[here // 3]].mean(axis=0) @ normals[here // 3]
        )


def test_surfaces_of_one_side_and_double_sheets_stay_as_they_are():
    """A Moebius strip has no sense that is right; a sheet of both senses is no wall within a solid."""
    n = 12
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    rim = [
        [(1 + s * 0.2 * np.cos(a / 2)) * np.cos(a), (1 + s * 0.2 * np.cos(a / 2)) * np.sin(a), s * 0.2 * np.sin(a / 2)]
        for a in angle
        for s in (-1, 1)
    ]
    ring = [2 * i + np.array(t) for i in range(n - 1) for t in ([0, 1, 2], [1, 3, 2])] + [[2 * n - 2, 2 * n - 1, 1], [2 * n - 1, 0, 1]]
    strip = np.array(rim), mended(np.array(rim), np.array(ring))
    assert len(strip[1]) == 2 * n
    assert not turned(*strip).any()
    assert not is_inside_out(*strip).any()
    sheet = np.array([[0, 1, 2], [0, 2, 1]])
    assert len(mended(CUBE, sheet)) == 2
    assert len(mended(CUBE, np.array([*CLOSED, *TURNED]))) == 24


@pytest.mark.parametrize("suffix", ["obj", "stl", "ply", "off"])
@pytest.mark.parametrize("name", ["no area, beside", "twice", "a fin", "two face to face", "inside out", f"triangle {TOP[0]} turned"])
def test_files_are_read_as_meshes_are_made(name, suffix, tmp_path):
    trimesh = pytest.importorskip("trimesh")
    vertices, triangles, volume, warning = MESHES[name]
    path = tmp_path / f"part.{suffix}"
    trimesh.Trimesh(vertices, triangles, process=False).export(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shape = shapes.from_file(path)
    assert len(caught) == (warning is not None)
    if warning:
        assert f"from_file: '{path}'" in str(caught[0].message)
    expected, _ = made(name)
    assert len(shape["triangles"]) == len(expected["triangles"])
    if volume is not None:
        assert np.isclose(shapes.volume(shape), volume, rtol=1e-6)
