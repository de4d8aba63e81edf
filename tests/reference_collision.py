"""Contact detection in plain NumPy and SciPy: distances by optimisation over the points of shapes, contacts by looking at all pairs."""

import numpy as np
from scipy.optimize import lsq_linear, minimize, nnls
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

CORES = ("sphere", "capsule", "box")


def axes(shape):
    """Axes of a shape as columns."""
    return Rotation.from_quat(np.roll(shape["pose"][3:], -1)).as_matrix()


def moved(shape, rotation, translation):
    """The shape after a rigid motion of the world."""
    R = Rotation.from_matrix(rotation @ axes(shape))
    return shape | {"pose": np.concatenate([rotation @ shape["pose"][:3] + translation, np.roll(R.as_quat(), 1)])}


def core(shape):
    """(directions as columns, bounds, radius): the shape is all ``x + directions s``, ``|s| <= bounds``, and what is within the radius."""
    R, size = axes(shape), shape["size"]
    if shape["shape"] == "box":
        return R, size / 2, 0.0
    if shape["shape"] == "capsule":
        return R[:, 2:], size[1:2] / 2, size[0]
    return R[:, :0], np.empty(0), size[0]


def core_distance(a, b):
    """Distance of the cores by bounded least squares, less the radii."""
    (U, bound_a, radius_a), (V, bound_b, radius_b) = core(a), core(b)
    r, bounds = a["pose"][:3] - b["pose"][:3], np.concatenate([bound_a, bound_b])
    if bounds.size == 0:
        return np.linalg.norm(r) - radius_a - radius_b
    A = np.hstack([U, -V])
    s = lsq_linear(A, -r, (-bounds, bounds), method="bvls", tol=1e-14).x
    return np.linalg.norm(A @ s + r) - radius_a - radius_b


def signed_distance(shape, x):
    """Signed distance of a point to the surface of a shape."""
    p = axes(shape).T @ (x - shape["pose"][:3])
    kind, (radius, length, _) = shape["shape"], shape["size"]
    if kind == "plane":
        return p[2]
    if kind == "tube":
        return radius - np.hypot(p[0], p[1])
    if kind == "sphere":
        return np.linalg.norm(p) - radius
    if kind in ("convex", "mesh"):  # of points on or within the hull
        return (ConvexHull(shape["vertices"]).equations @ [*p, 1]).max()
    if kind == "cone":
        return _distance_to_triangle(np.hypot(p[0], p[1]), p[2], radius, length)
    if kind == "capsule":
        return np.linalg.norm(p - [0, 0, np.clip(p[2], -length / 2, length / 2)]) - radius
    beyond = np.abs(p) - shape["size"] / 2 if kind == "box" else np.array([np.hypot(p[0], p[1]) - radius, abs(p[2]) - length / 2])
    return np.linalg.norm(np.maximum(beyond, 0)) + min(beyond.max(), 0)


def _distance_to_triangle(x, z, radius, height):
    """Signed distance of a point to a cone, in a plane through its axis."""
    corner, tip = np.array([radius, -height / 4]), np.array([0, 0.75 * height])
    outside = max(-height / 4 - z, ((np.array([x, z]) - corner) @ [height, radius]) / np.hypot(radius, height))
    if outside <= 0:
        return outside
    ends = (np.array([0, -height / 4]), corner), (corner, tip)
    return min(np.linalg.norm(p + np.clip(((x, z) - p) @ (q - p) / ((q - p) @ (q - p)), 0, 1) * (q - p) - (x, z)) for p, q in ends)


def lowest_height(shape, n, x):
    """Least distance of the points of a shape to a plane, by its support function."""
    R, size = axes(shape), shape["size"]
    c, u = n @ (shape["pose"][:3] - x), R.T @ n
    if "vertices" in shape:
        return c + (shape["vertices"] @ u).min()
    if shape["shape"] == "cylinder":
        return c - size[1] / 2 * abs(u[2]) - size[0] * np.hypot(u[0], u[1])
    if shape["shape"] == "cone":
        return c + min(0.75 * size[1] * u[2], -size[1] / 4 * u[2] - size[0] * np.hypot(u[0], u[1]))
    _, bounds, radius = core(shape)
    return c - bounds @ np.abs(core(shape)[0].T @ n) - radius


def distance(a, b):
    """Signed distance of two shapes, where the cores do not overlap."""
    kinds = {a["shape"], b["shape"]}
    if kinds <= set(CORES):
        return core_distance(a, b)
    if b["shape"] not in ("plane", "tube", "cylinder"):
        a, b = b, a
    if b["shape"] == "plane":
        return lowest_height(a, axes(b)[:, 2], b["pose"][:3])
    return signed_distance(b, a["pose"][:3]) - a["size"][0]


def distance_to_cylinder(shape, x):
    """Distance of a point outside to a solid cylinder, by minimisation over its points."""
    p, (radius, length, _) = axes(shape).T @ (x - shape["pose"][:3]), shape["size"]
    disc = {"type": "ineq", "fun": lambda y: radius**2 - y[0] ** 2 - y[1] ** 2, "jac": lambda y: np.array([-2 * y[0], -2 * y[1], 0])}
    bounds = [(-radius, radius), (-radius, radius), (-length / 2, length / 2)]
    start = np.array([0.0, 0.0, 0.0])
    found = minimize(
        lambda y: ((y - p) ** 2).sum(), start, jac=lambda y: 2 * (y - p), bounds=bounds, constraints=disc, method="SLSQP", tol=1e-14
    )
    return np.sqrt(found.fun)


def hull_distance(x, y):
    """Signed distance of the hulls of points x (n, 3) and y (m, 3): of the hull of all differences to the origin.

    Outside by the least distance problem of Lawson and Hanson (1974, 23.4), inside by the nearest face.
    """
    differences = (x[:, None] - y[None]).reshape(-1, 3)
    depth = -ConvexHull(differences).equations[:, 3].max()
    if depth >= 0:
        return -depth
    s = nnls(np.vstack([differences.T, np.ones(len(differences))]), np.array([0, 0, 0, 1.0]))[0]
    return np.linalg.norm(s @ differences / s.sum())


def farthest(shape, d):
    """The point of a bounded shape that is farthest along a direction."""
    R, (radius, length, _) = axes(shape), shape["size"]
    if shape["shape"] in ("box", "convex", "mesh"):
        x = corners(shape)
        return x[np.argmax(x @ d)]
    u = d @ R[:, 2]
    if shape["shape"] == "sphere":
        return shape["pose"][:3] + radius * d
    across = d if shape["shape"] == "capsule" else d - u * R[:, 2]
    if shape["shape"] == "cone":
        size = np.linalg.norm(across)
        rim = -length / 4 * R[:, 2] + (radius / size * across if size > 1e-12 else 0)
        return shape["pose"][:3] + max(rim, 0.75 * length * R[:, 2], key=lambda x: x @ d)
    size = np.linalg.norm(across)
    return shape["pose"][:3] + np.sign(u) * length / 2 * R[:, 2] + (radius / size * across if size > 1e-12 else 0)


def separation(a, b, n):
    """How far two shapes are apart along a direction n from b to a, negative where they overlap."""
    x = np.zeros(3)
    return lowest_height(a, n, x) + lowest_height(b, -n, x)


def corners(shape):
    """Vertices of a box, hull or mesh in the world."""
    signs = np.stack(np.meshgrid(*[[-0.5, 0.5]] * 3), axis=-1).reshape(-1, 3)
    own = signs * shape["size"] if shape["shape"] == "box" else shape["vertices"]
    return shape["pose"][:3] + own @ axes(shape).T


def overlap(a, b, n):
    """How far two boxes overlap along a direction n, from b to a."""
    across = sum(s["size"] / 2 @ np.abs(axes(s).T @ n) for s in (a, b))
    return across - n @ (a["pose"][:3] - b["pose"][:3])


def least_overlap(a, b):
    """The least overlap of two boxes along normals of faces and cross products of edges, in both senses."""
    A, B = axes(a).T, axes(b).T
    crossed = [np.cross(u, v) for u in A for v in B]
    directions = [*A, *B, *(w / np.linalg.norm(w) for w in crossed if np.linalg.norm(w) > 1e-6)]
    return min(overlap(a, b, sign * n) for n in directions for sign in (1, -1))


def sphere_contacts(x, radius, body, reach, group, meets):
    """(a, b, gap) of spheres that reach each other, all pairs looked at, in order; world shapes come second. meets: of groups, a matrix."""
    found = []
    for a in range(len(x)):
        for b in range(len(x)):
            ordered = body[a] != -1 and (body[b] == -1 or a < b)
            if ordered and body[a] != body[b] and meets[group[a], group[b]]:
                gap = np.linalg.norm(x[a] - x[b]) - radius[a] - radius[b]
                if gap <= reach[a] + reach[b]:
                    found.append((a, b, gap))
    return found
