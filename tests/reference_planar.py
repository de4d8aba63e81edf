"""Contacts in the plane in plain NumPy: distances of convex cores by their corners and edges, overlaps by the hull of all differences."""

import numpy as np
from scipy.spatial import ConvexHull


def turned(angle):
    """Rotation matrix (2, 2)."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def frame(shape):
    """(position (2,), rotation matrix (2, 2)) of a shape."""
    return shape["pose"][:2], turned(2 * np.arctan2(shape["pose"][6], shape["pose"][3]))


def core(shape):
    """(corners (n, 2) in the world, radius): a shape is what is within the radius of the hull of its corners."""
    x, R = frame(shape)
    if shape["shape"] == "disk":
        return x[None], shape["size"][0]
    if shape["shape"] == "stadium":
        bound, radius, _ = shape["size"]
        return x + np.array([[radius - bound, 0], [bound - radius, 0]]) @ R.T, radius
    return x + shape["vertices"][:, :2] @ R.T, 0.0


def from_edges(points, corners):
    """Distances of points (m, 2) from the closed line through corners (n, 2)."""
    p, q = corners, np.roll(corners, -1, axis=0)
    e = q - p
    squares = np.maximum((e**2).sum(axis=1), 1e-300)
    part = np.clip(((points[:, None] - p) * e).sum(axis=2) / squares, 0, 1)
    return np.linalg.norm(points[:, None] - p - part[..., None] * e, axis=2).min(axis=1)


def overlap(x, y):
    """Least way by which one of two polygons, or one and a point or line, can leave the other; negative where they are apart."""
    differences = (x[:, None] - y[None]).reshape(-1, 2)
    if np.linalg.matrix_rank(differences - differences[0], tol=1e-12) < 2:
        return -np.inf
    return -ConvexHull(differences).equations[:, 2].max()


def distance(a, b):
    """Signed distance of two shapes; of cores that overlap, the least way by which they part, less the radii."""
    if b["shape"] == "half_plane":
        x, R = frame(b)
        corners, radius = core(a)
        return ((corners - x) @ R[:, 1]).min() - radius
    (x, r_a), (y, r_b) = core(a), core(b)
    depth = overlap(x, y)
    apart = -depth if depth > 0 else min(from_edges(x, y).min(), from_edges(y, x).min())
    return apart - r_a - r_b


def least_overlap(a, b):
    """How deep the cores of two shapes overlap, negative where they do not."""
    return -np.inf if b["shape"] == "half_plane" else overlap(core(a)[0], core(b)[0])


def moved(shape, angle, translation):
    """The shape after a rigid motion of the plane."""
    half, pose = angle / 2, shape["pose"].copy()
    p, r = pose[3], pose[6]
    pose[:2] = turned(angle) @ pose[:2] + translation
    pose[3], pose[6] = np.cos(half) * p - np.sin(half) * r, np.cos(half) * r + np.sin(half) * p
    return shape | {"pose": pose}
