"""Faces of boxes and hulls, neighbours and bounding-box trees of meshes: one vector of floats for all shapes of a record.

Its first entry is its length; then follows, for each shape, the index of its block. The first entries of a block are numbered below.
"""

from functools import lru_cache

import numpy as np

from nsds.collision.kinds import BOX, MESH, POLYHEDRA
from nsds.collision.surfaces import BOX_CORNERS, BOX_SIDES
from nsds.collision.triangles import Edges, across_of, beyond, turned

# Entries of a block: number of vertices, index of the first; the same for faces (triangles of a mesh); a point well within; the least
# extent, of a mesh the largest. Meshes only: first index in the fan list of each vertex, that list, normals summed with angle weights,
# boxes of the tree, the triangles in the order of its leaves, number of edges, half of the thickness.
N_VERTICES, VERTICES, N_FACES, FACES, MIDDLE, SMALLEST = 0, 1, 2, 3, 4, 7
FANS, FAN_LIST, OUTWARDS, NODES, ORDER, N_EDGES, HALF = range(8, 15)
_HEAD = 15
FACE = 5  # entries of a face: normal, index of the numbers of its corners, their count
TRIANGLE = 12  # entries of a triangle: numbers of its corners, normal, the triangle beyond each edge or -1, numbers of the edges
NODE = 8  # entries of a box of the tree: least and largest corner; first child, or first triangle; number of triangles, 0 of an inner box
_LEAF = 4  # triangles in a leaf
DEPTH = 48  # upper bound of the depth of a tree: halves are equal
_COPLANAR = 1e-9  # fraction of the size of a polyhedron: distance from a plane up to which vertices belong to one face


def surface_of(size, vertices, triangles):
    """(vertices, triangles) of one polyhedron, by its row ``size``, out of those of all in a record."""
    first, end = int(size[1]), int(size[1] + size[2])
    own = (triangles[:, 0] >= first) & (triangles[:, 0] < end)
    return vertices[first:end], triangles[own] - first


def geometry_of(kind, size, vertices, triangles):
    """Blocks of all shapes of a record; equal shapes share one."""
    parts, places, end = [], {}, 1 + len(kind)
    starts = np.zeros(1 + len(kind))
    # a block for each distinct box, hull or mesh; a box is a hull of its eight corners
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
        # 0 for spheres and others without a block; the first entry of all is the length of the vector
        starts[1 + s] = places.get(key, 0)
    starts[0] = end
    return np.concatenate([starts, *parts])


def _moved(block, places, start):
    """A block with its indices counted from the start of the whole vector."""
    block = block.copy()
    block[places] += start
    return block


def _joined(head, sections, inner=()):
    """(block, entries that are indices): sections after the head, which has their indices; inner: columns of a section that are indices."""
    at, places = _HEAD, []
    # 1. index of each section
    for word, section in sections.items():
        head[word] = at
        places.append(word)
        at += section.size
    # 2. indices inside sections, relative to another section
    for word, columns, width, target in inner:
        rows = int(head[word]) + width * np.arange(sections[word].size // width) + columns
        places += rows.tolist()
        sections[word].reshape(-1, width)[:, columns] += head[target]
    return np.concatenate([head, *(section.ravel() for section in sections.values())]), np.array(places)


@lru_cache(maxsize=256)
def _block_of_hull(vertices, triangles):
    """Block of a box or hull, cached by the bytes of its arrays: members of an ensemble share it."""
    # 1. faces as polygons with outward normals
    vertices = np.frombuffer(vertices).reshape(-1, 3)
    if triangles is None:
        polygons, normals = BOX_SIDES, np.repeat(np.eye(3), 2, axis=0) * np.tile([-1.0, 1.0], 3)[:, None]
    else:
        polygons, normals = faces_of(vertices, np.frombuffer(triangles, np.int64).reshape(-1, 3))
    # 2. table of faces, head and sections
    counts = np.array([len(polygon) for polygon in polygons])
    faces = np.column_stack([normals, np.cumsum(counts) - counts, counts])
    head = np.zeros(_HEAD)
    head[[N_VERTICES, N_FACES, SMALLEST]] = len(vertices), len(faces), np.ptp(vertices, axis=0).min()
    head[MIDDLE : MIDDLE + 3] = vertices.mean(axis=0)
    sections = {VERTICES: vertices, FACES: faces, ORDER: np.concatenate(polygons).astype(float)}
    return _joined(head, sections, [(FACES, 3, FACE, ORDER)])


def faces_of(vertices, triangles):
    """(polygons, normals) of a hull, counterclockwise from outside: coplanar triangles are one face."""
    # 1. normals, as long as twice the areas
    corners = vertices[triangles]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(across, axis=1)
    left, polygons, normals = np.ones(len(triangles), bool), [], []
    tolerance = _COPLANAR * np.ptp(vertices, axis=0).max()
    # 2. largest triangles first: their normals are the most exact, and smaller ones in the same plane join them
    for t in np.argsort(-area, kind="stable"):
        if left[t]:
            normal = across[t] / area[t]
            flat = left & (abs((corners - corners[t, 0]) @ normal) <= tolerance).all(axis=1)
            left &= ~flat
            used = np.unique(triangles[flat])
            # 3. corners in the order of their angles about the centre
            spokes = vertices[used] - vertices[used].mean(axis=0)
            first = corners[t, 1] - corners[t, 0]
            angle = np.arctan2(spokes @ np.cross(normal, first), spokes @ first)
            polygons.append(used[np.argsort(angle)])
            normals.append(normal)
    return polygons, np.array(normals)


@lru_cache(maxsize=64)
def _block_of_mesh(vertices, triangles):
    """Block of a mesh, cached by the bytes of its arrays; triangles with inverted orientation are turned to that of their neighbours."""
    # 1. consistent orientation, edges, unit normals
    vertices, triangles = np.frombuffer(vertices).reshape(-1, 3), np.frombuffer(triangles, np.int64).reshape(-1, 3)
    triangles = np.where(turned(vertices, triangles)[:, None], triangles[:, ::-1], triangles)
    corners, n, edges = vertices[triangles], len(triangles), Edges(triangles)
    across = across_of(vertices, triangles)
    normals = across / np.linalg.norm(across, axis=1)[:, None]
    # 2. vertex normals weighted by the angles of the triangles: outside of them does not depend on how faces are divided
    away = np.stack([np.roll(corners, -1, axis=1) - corners, np.roll(corners, 1, axis=1) - corners])
    away /= np.linalg.norm(away, axis=-1, keepdims=True)
    angle = np.arccos(np.clip((away[0] * away[1]).sum(axis=-1), -1, 1))
    outwards = np.zeros_like(vertices)
    np.add.at(outwards, triangles.ravel(), (angle[:, :, None] * normals[:, None]).reshape(-1, 3))
    # 3. fans of triangles around vertices, tree of boxes
    fan = np.argsort(edges.starts, kind="stable")
    nodes, leaves = _tree(corners.min(axis=1), corners.max(axis=1))
    # 4. head and sections
    head = np.zeros(_HEAD)
    largest = np.ptp(vertices, axis=0).max()
    head[[N_VERTICES, N_FACES, SMALLEST, N_EDGES]] = len(vertices), n, largest, len(edges.count)
    head[HALF] = 0.5 * min(thickness_of_mesh(vertices, corners[:, 0], across, largest), largest)
    head[MIDDLE : MIDDLE + 3] = vertices.mean(axis=0)
    table = np.column_stack([triangles, normals, beyond(vertices, triangles, normals, edges), edges.edge.reshape(-1, 3)])
    begins = np.concatenate([[0.0], np.cumsum(np.bincount(edges.starts, minlength=len(vertices)))])
    sections = {VERTICES: vertices, FACES: table, FANS: begins, FAN_LIST: fan // 3.0, OUTWARDS: outwards, NODES: nodes, ORDER: leaves}
    return _joined(head, sections)


def thickness_of_mesh(vertices, places, across, surface):
    """``2 V / A`` of a closed mesh, the thickness of a plate; ``surface`` of one that encloses nothing.

    places (n, 3): a corner of each triangle; across (n, 3): its normal, of length twice its area.
    """
    volume, area = abs(((places - vertices.mean(axis=0)) * across).sum()) / 6, np.linalg.norm(across, axis=1).sum() / 2
    is_closed = np.linalg.norm(across.sum(axis=0)) <= 1e-9 * area
    return 2 * volume / area if is_closed and volume > 1e-9 * area * np.ptp(vertices, axis=0).max() else surface


def _tree(low, high):
    """(boxes (k, NODE), triangles in the order of the leaves): bisection at the median along the longest extent."""
    middle, boxes, leaves = (low + high) / 2, [None], []
    left = [(0, np.arange(len(low)))]
    # the list grows while it is walked: breadth first, so that both children of a box are neighbours in memory
    for box, members in left:
        least, most = low[members].min(axis=0), high[members].max(axis=0)
        if len(members) <= _LEAF:
            boxes[box] = [*least, *most, len(leaves), len(members)]
            leaves += members.tolist()
            continue
        # split by the median of the centres along their longest extent; equal halves bound the depth
        axis, half = np.ptp(middle[members], axis=0).argmax(), len(members) // 2
        members = members[np.argpartition(middle[members, axis], half)]
        boxes[box] = [*least, *most, len(boxes), 0]
        left += [(len(boxes), members[:half]), (len(boxes) + 1, members[half:])]
        boxes += [None, None]
    return np.array(boxes), np.array(leaves, dtype=float)
