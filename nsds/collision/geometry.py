"""Faces of boxes and hulls, neighbours and trees of meshes: one vector of floats for all shapes of a record, which kernels read.

Its first word is its length; then follows, for each shape, where its own block begins. The first words of a block are numbered below.
"""

from functools import lru_cache

import numpy as np

from nsds.collision.kinds import BOX, MESH, POLYHEDRA
from nsds.collision.surfaces import BOX_CORNERS, BOX_SIDES
from nsds.collision.triangles import Edges, across_of, beyond, turned

# Words of a block: how many vertices there are, and where the first is; faces, of a mesh triangles, alike; a point well within; the least
# extent, of a mesh the largest. Of a mesh: where the triangles around each vertex begin in a list, that list, sums of their normals by
# angles, boxes of the tree, and the triangles in the order of its leaves.
N_VERTICES, VERTICES, N_FACES, FACES, MIDDLE, SMALLEST, FANS, FAN_LIST, OUTWARDS, NODES, ORDER, N_EDGES = (
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    9,
    10,
    11,
    12,
    13,
)
_HEAD = 14
FACE = 5  # words of a face: normal, where the numbers of its corners are, how many
TRIANGLE = 12  # words of a triangle: numbers of its corners, normal, the triangle beyond each edge or -1, numbers of the edges
NODE = 8  # words of a box of the tree: least and largest corner; the first of its two halves, or of its triangles; how many, 0 of a half
_LEAF = 4  # triangles in a leaf
DEPTH = 48  # of a tree, and more: halves are equal
_COPLANAR = 1e-9  # of the size of a polyhedron: how far the vertices of one face may be off a plane


def surface_of(size, vertices, triangles):
    """(vertices, triangles) of the polyhedron of a size, out of those of all in a record."""
    first, end = int(size[1]), int(size[1] + size[2])
    own = (triangles[:, 0] >= first) & (triangles[:, 0] < end)
    return vertices[first:end], triangles[own] - first


def geometry_of(kind, size, vertices, triangles):
    """The blocks of all shapes of a record, one for those that are alike."""
    parts, places, end = [], {}, 1 + len(kind)
    starts = np.zeros(1 + len(kind))
    for s, (code, lengths) in enumerate(zip(kind.tolist(), size.tolist(), strict=True)):
        key = code, *lengths
        if key not in places and (code == BOX or code in POLYHEDRA):
            if code == BOX:
                block, inner = _block_of_hull((BOX_CORNERS * lengths).tobytes(), None)
            else:
                own = (np.ascontiguousarray(part).tobytes() for part in surface_of(lengths, vertices, triangles))
                block, inner = _block_of_mesh(*own) if code == MESH else _block_of_hull(*own)
            places[key] = end
            parts.append(_moved(block, inner, end))
            end += len(block)
        starts[1 + s] = places.get(key, 0)
    starts[0] = end
    return np.concatenate([starts, *parts])


def _moved(block, places, start):
    """A block whose places count from the start of the vector."""
    block = block.copy()
    block[places] += start
    return block


def _joined(head, sections, inner=()):
    """(block, its words that are places): sections behind the head, which has their places; inner: words of a section that are places."""
    at, places = _HEAD, []
    for word, section in sections.items():
        head[word] = at
        places.append(word)
        at += section.size
    for word, columns, width, target in inner:
        rows = int(head[word]) + width * np.arange(sections[word].size // width) + columns
        places += rows.tolist()
        sections[word].reshape(-1, width)[:, columns] += head[target]
    return np.concatenate([head, *(section.ravel() for section in sections.values())]), np.array(places)


@lru_cache(maxsize=256)
def _block_of_hull(vertices, triangles):
    """Of a box or hull, from the bytes of its arrays: members of an ensemble share it."""
    vertices = np.frombuffer(vertices).reshape(-1, 3)
    if triangles is None:
        polygons, normals = BOX_SIDES, np.repeat(np.eye(3), 2, axis=0) * np.tile([-1.0, 1.0], 3)[:, None]
    else:
        polygons, normals = faces_of(vertices, np.frombuffer(triangles, np.int64).reshape(-1, 3))
    counts = np.array([len(polygon) for polygon in polygons])
    faces = np.column_stack([normals, np.cumsum(counts) - counts, counts])
    head = np.zeros(_HEAD)
    head[[N_VERTICES, N_FACES, SMALLEST]] = len(vertices), len(faces), np.ptp(vertices, axis=0).min()
    head[MIDDLE : MIDDLE + 3] = vertices.mean(axis=0)
    sections = {VERTICES: vertices, FACES: faces, ORDER: np.concatenate(polygons).astype(float)}
    return _joined(head, sections, [(FACES, 3, FACE, ORDER)])


def faces_of(vertices, triangles):
    """(polygons, normals) of a hull, counterclockwise from outside: triangles in one plane are one face."""
    corners = vertices[triangles]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(across, axis=1)
    left, polygons, normals = np.ones(len(triangles), bool), [], []
    tolerance = _COPLANAR * np.ptp(vertices, axis=0).max()
    for t in np.argsort(-area, kind="stable"):
        if left[t]:
            normal = across[t] / area[t]
            flat = left & (abs((corners - corners[t, 0]) @ normal) <= tolerance).all(axis=1)
            left &= ~flat
            used = np.unique(triangles[flat])
            spokes = vertices[used] - vertices[used].mean(axis=0)
            first = corners[t, 1] - corners[t, 0]
            angle = np.arctan2(spokes @ np.cross(normal, first), spokes @ first)
            polygons.append(used[np.argsort(angle)])
            normals.append(normal)
    return polygons, np.array(normals)


@lru_cache(maxsize=64)
def _block_of_mesh(vertices, triangles):
    """Of a mesh, from the bytes of its arrays; triangles that are turned against their neighbours count as if they were not."""
    vertices, triangles = np.frombuffer(vertices).reshape(-1, 3), np.frombuffer(triangles, np.int64).reshape(-1, 3)
    triangles = np.where(turned(vertices, triangles)[:, None], triangles[:, ::-1], triangles)
    corners, n, edges = vertices[triangles], len(triangles), Edges(triangles)
    across = across_of(vertices, triangles)
    normals = across / np.linalg.norm(across, axis=1)[:, None]
    away = np.stack([np.roll(corners, -1, axis=1) - corners, np.roll(corners, 1, axis=1) - corners])
    away /= np.linalg.norm(away, axis=-1, keepdims=True)
    angle = np.arccos(np.clip((away[0] * away[1]).sum(axis=-1), -1, 1))
    outwards = np.zeros_like(vertices)
    np.add.at(outwards, triangles.ravel(), (angle[:, :, None] * normals[:, None]).reshape(-1, 3))
    fan = np.argsort(edges.starts, kind="stable")
    nodes, leaves = _tree(corners.min(axis=1), corners.max(axis=1))
    head = np.zeros(_HEAD)
    head[[N_VERTICES, N_FACES, SMALLEST, N_EDGES]] = len(vertices), n, np.ptp(vertices, axis=0).max(), len(edges.count)
    head[MIDDLE : MIDDLE + 3] = vertices.mean(axis=0)
    table = np.column_stack([triangles, normals, beyond(vertices, triangles, normals, edges), edges.edge.reshape(-1, 3)])
    begins = np.concatenate([[0.0], np.cumsum(np.bincount(edges.starts, minlength=len(vertices)))])
    sections = {VERTICES: vertices, FACES: table, FANS: begins, FAN_LIST: fan // 3.0, OUTWARDS: outwards, NODES: nodes, ORDER: leaves}
    return _joined(head, sections)


def _tree(low, high):
    """(boxes (k, NODE), triangles in the order of the leaves): halves by the middle of what is longest."""
    middle, boxes, leaves = (low + high) / 2, [None], []
    left = [(0, np.arange(len(low)))]
    for box, members in left:
        least, most = low[members].min(axis=0), high[members].max(axis=0)
        if len(members) <= _LEAF:
            boxes[box] = [*least, *most, len(leaves), len(members)]
            leaves += members.tolist()
            continue
        axis, half = np.ptp(middle[members], axis=0).argmax(), len(members) // 2
        members = members[np.argpartition(middle[members, axis], half)]
        boxes[box] = [*least, *most, len(boxes), 0]
        left += [(len(boxes), members[:half]), (len(boxes) + 1, members[half:])]
        boxes += [None, None]
    return np.array(boxes), np.array(leaves, dtype=float)
