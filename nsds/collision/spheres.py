"""Contacts of spheres with all other shapes. The sphere is the first shape: the normal points to it, the point lies on it."""

import math

from nsds._jit import kernel, stack, tiny
from nsds.collision.frames import TINY, axes, put, seen_from, third_axis
from nsds.maths.vectors import norm, times


@tiny
def _on_sphere(size, pose, a, margin, gap, normal, found):
    """Contact of sphere a opposite to the normal: one point, feature 0."""
    r = size[3 * a]
    return put(
        found,
        0,
        margin,
        0.0,
        gap,
        normal,
        pose[7 * a] - r * normal[0],
        pose[7 * a + 1] - r * normal[1],
        pose[7 * a + 2] - r * normal[2],
    )


@tiny
def sphere_sphere(size, pose, a, b, margin, found):
    """``gap = |x_a - x_b| - r_a - r_b``; z is the normal of spheres with one centre."""
    n = stack(3)
    n[0], n[1], n[2] = pose[7 * a] - pose[7 * b], pose[7 * a + 1] - pose[7 * b + 1], pose[7 * a + 2] - pose[7 * b + 2]
    distance = norm(n)
    if distance > TINY:
        for i in range(3):
            n[i] /= distance
    else:
        n[0], n[1], n[2] = 0.0, 0.0, 1.0
    return _on_sphere(size, pose, a, margin, distance - size[3 * a] - size[3 * b], n, found)


@tiny
def sphere_plane(size, pose, a, b, margin, found):
    """``gap = n . (x_a - x_b) - r``."""
    n = stack(3)
    third_axis(pose, b, n)
    height = 0.0
    for i in range(3):
        height += n[i] * (pose[7 * a + i] - pose[7 * b + i])
    return _on_sphere(size, pose, a, margin, height - size[3 * a], n, found)


@kernel
def sphere_capsule(size, pose, a, b, margin, found):
    """``gap = |x_a - c| - r_a - r_b`` with c the point next to the centre on the capsule's axis."""
    n, R = stack(3), stack(9)
    axes(pose, b, R)
    seen_from(R, pose, a, b, n)
    half = 0.5 * size[3 * b + 1]
    n[2] -= min(max(n[2], -half), half)
    distance = norm(n)
    if distance > TINY:
        for i in range(3):
            n[i] /= distance
    else:  # a centre on the axis leaves sideways
        n[0], n[1], n[2] = 1.0, 0.0, 0.0
    normal = stack(3)
    times(R, n, normal)
    return _on_sphere(size, pose, a, margin, distance - size[3 * a] - size[3 * b], normal, found)


@kernel
def sphere_box(size, pose, a, b, margin, found):
    """Signed distance of the centre to the box, less the radius; a centre inside leaves through the nearest face."""
    c, n, R = stack(3), stack(3), stack(9)
    axes(pose, b, R)
    seen_from(R, pose, a, b, c)
    # 1. vector from the closest point of the box, and the nearest face for a centre inside
    distance, depth, face = 0.0, math.inf, 0
    for i in range(3):
        half = 0.5 * size[3 * b + i]
        n[i] = c[i] - min(max(c[i], -half), half)
        distance += n[i] * n[i]
        if half - abs(c[i]) < depth:
            depth, face = half - abs(c[i]), i
    # 2. outside: along that vector; inside: through the nearest face
    if distance > TINY * TINY:
        distance = math.sqrt(distance)
        for i in range(3):
            n[i] /= distance
    else:
        n[0], n[1], n[2] = 0.0, 0.0, 0.0
        distance, n[face] = -depth, math.copysign(1.0, c[face])
    normal = stack(3)
    times(R, n, normal)
    return _on_sphere(size, pose, a, margin, distance - size[3 * a], normal, found)


@kernel
def sphere_cylinder(size, pose, a, b, margin, found):
    """Signed distance of the centre to the solid cylinder, less the radius; a centre inside leaves by side or end, whichever is nearer."""
    n, R = stack(3), stack(9)
    axes(pose, b, R)
    seen_from(R, pose, a, b, n)
    # 1. cylindrical coordinates: distances beyond the side and beyond the end
    half, rho, z = 0.5 * size[3 * b + 1], math.hypot(n[0], n[1]), n[2]
    beyond_side, beyond_end = rho - size[3 * b], abs(z) - half
    side, end = max(beyond_side, 0.0), max(beyond_end, 0.0)
    distance = math.hypot(side, end)
    # 2. inside: the nearer of both; outside: both components
    if distance <= TINY:
        distance = max(beyond_side, beyond_end)
        side, end = (1.0, 0.0) if beyond_side >= beyond_end else (0.0, 1.0)
    else:
        side, end = side / distance, end / distance
    # 3. back to the axes of the cylinder; a centre on the axis has no direction of its own
    cosine, sine = (n[0] / rho, n[1] / rho) if rho > TINY else (1.0, 0.0)
    n[0], n[1], n[2] = side * cosine, side * sine, math.copysign(end, z)
    normal = stack(3)
    times(R, n, normal)
    return _on_sphere(size, pose, a, margin, distance - size[3 * a], normal, found)


@kernel
def sphere_tube(size, pose, a, b, margin, found):
    """``gap = r_tube - rho - r`` of a sphere within a tube, rho the distance of its centre to the axis; without effect beyond the ends.

    A sphere that has left the tube entirely through its wall has no contact.
    """
    n, R = stack(3), stack(9)
    axes(pose, b, R)
    seen_from(R, pose, a, b, n)
    rho = math.hypot(n[0], n[1])
    if abs(n[2]) > 0.5 * size[3 * b + 1] or rho > size[3 * b] + size[3 * a]:
        return 0
    n[0], n[1], n[2] = (-n[0] / rho, -n[1] / rho, 0.0) if rho > TINY else (-1.0, 0.0, 0.0)
    normal = stack(3)
    times(R, n, normal)
    return _on_sphere(size, pose, a, margin, size[3 * b] - rho - size[3 * a], normal, found)
