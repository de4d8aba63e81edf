"""Lines through shapes in plain NumPy: convex functions that are negative within, the roots of squares, and all triangles one by one."""

import numpy as np
from scipy.spatial.transform import Rotation

PARTS, ROUNDS = 64, 16  # parts of an interval of which one or two are kept, and how often: more than bits tell apart


def level(shape, x):
    """A convex function of points (..., 3) in the axes of a shape, 0 on its surface and negative within; of a tube the distance inwards."""
    kind, (a, b, _) = shape["shape"], shape["size"]
    rho = np.hypot(x[..., 0], x[..., 1])
    if kind in ("sphere", "disk"):
        return np.linalg.norm(x, axis=-1) - a
    if kind == "capsule":
        return np.hypot(rho, np.maximum(abs(x[..., 2]) - b / 2, 0)) - a
    if kind == "stadium":
        return np.hypot(x[..., 1], np.maximum(abs(x[..., 0]) - (a - b), 0)) - b
    if kind == "cylinder":
        return np.maximum(rho - a, abs(x[..., 2]) - b / 2)
    if kind == "cone":
        return np.maximum((rho * b - a * (0.75 * b - x[..., 2])) / np.hypot(a, b), -b / 4 - x[..., 2])
    if kind == "box":
        return (abs(x) - shape["size"] / 2).max(axis=-1)
    if kind == "plane":
        return x[..., 2]
    if kind == "half_plane":
        return x[..., 1]
    if kind == "tube":
        return a - rho
    corners = shape["vertices"][shape["triangles"]]
    if kind == "polygon":
        p = shape["vertices"]
        e = np.roll(p, -1, axis=0) - p
        n = np.column_stack([e[:, 1], -e[:, 0], 0 * e[:, 0]])
        n /= np.linalg.norm(n, axis=1)[:, None]
        return (x @ n.T - (n * p).sum(axis=1)).max(axis=-1)
    n = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    n /= np.linalg.norm(n, axis=1)[:, None]
    return (x @ n.T - (n * corners[:, 0]).sum(axis=1)).max(axis=-1)


def in_axes(shape, x, d):
    """A point and a direction in the axes of a shape."""
    R = Rotation.from_quat(np.roll(shape["pose"][3:], -1)).as_matrix()
    return R.T @ (x - shape["pose"][:3]), R.T @ d


def crossings(shape, x, d, longest):
    """(t at which a line ``x + t d``, |t| <= longest, goes through the surface, the least level along it)."""
    x, d = in_axes(shape, x, d)
    if shape["shape"] == "mesh":
        return of_triangles(shape, x, d), -np.inf
    if shape["shape"] == "tube":
        radius, length, _ = shape["size"]
        found = np.roots([d[:2] @ d[:2], 2 * x[:2] @ d[:2], x[:2] @ x[:2] - radius**2])
        found = np.sort(found[np.isreal(found)].real)
        return found[abs(x[2] + found * d[2]) <= length / 2], -np.inf

    def f(t):
        return level(shape, x + t[:, None] * d)

    low, high = -longest, longest
    for _ in range(ROUNDS):
        t = np.linspace(low, high, PARTS + 1)
        values = f(t)
        lowest = values.argmin()
        low, high = t[max(lowest - 1, 0)], t[min(lowest + 1, PARTS)]
    least = values[lowest]
    if least >= 0:
        return np.empty(0), least
    ends = (_root(f, t[lowest], end) for end in (-longest, longest))
    return np.array([t for t in ends if abs(t) < longest]), least


def _root(f, inside, outside):
    """Where f, negative inside, changes its sign; the other end, if it does not."""
    for _ in range(ROUNDS):
        t = np.linspace(inside, outside, PARTS + 1)
        is_outside = f(t) >= 0
        if not is_outside[1:].any():
            return t[-1]
        k = max(is_outside.argmax(), 1)
        inside, outside = t[k - 1], t[k]
    return inside


def of_triangles(shape, x, d):
    """All t where a line meets a triangle, each a system of three equations."""
    found = []
    for a, b, c in shape["vertices"][shape["triangles"]]:
        A = np.column_stack([d, a - b, a - c])
        if abs(np.linalg.det(A)) > 0:
            t, u, v = np.linalg.solve(A, a - x)
            if u >= 0 and v >= 0 and u + v <= 1:
                found.append(t)
    return np.sort(found)


def first(shape, x, d, longest=1e6):
    """(distance at which a ray meets a shape first, infinite if it does not; how near it comes to doing otherwise)."""
    found, least = crossings(shape, x, d, longest)
    ahead = found[found >= 0]
    nearness = min([abs(least), *abs(found)])
    return (ahead.min() if ahead.size else np.inf), nearness
