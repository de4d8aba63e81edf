"""Surfaces of shapes for pictures: corners, and quadrilaterals by their corners, counterclockwise from outside."""

import numpy as np

AROUND = 20  # corners of a circle
# Corners and sides of a box with edges of length 1, counterclockwise from outside.
BOX_CORNERS = np.array([[i, j, k] for i in (-0.5, 0.5) for j in (-0.5, 0.5) for k in (-0.5, 0.5)])
BOX_SIDES = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])


def box_surface(lengths):
    """Surface of a box."""
    return BOX_CORNERS * lengths, BOX_SIDES


def square(half):
    """Surface of a plane, a square of twice ``half``."""
    return half * np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]), np.array([[0, 1, 2, 3]])


def half_square(extent):
    """Visible part of a half plane."""
    return extent * np.array([[-1.0, -1, 0], [1, -1, 0], [1, 0, 0], [-1, 0, 0]]), np.array([[0, 1, 2, 3]])


def oval(radius, half):
    """Surface of a disk, or of a stadium whose straight sides are twice ``half`` long: triangles about its centre."""
    angle = np.linspace(0, 2 * np.pi, 2 * AROUND, endpoint=False) + np.pi / (2 * AROUND)
    rim = np.stack([radius * np.cos(angle) + np.copysign(half, np.cos(angle)), radius * np.sin(angle), 0 * angle], axis=1)
    here = np.arange(2 * AROUND)
    middle = np.full_like(here, here.size)
    return np.concatenate([rim, np.zeros((1, 3))]), np.stack([middle, here, (here + 1) % here.size, middle], axis=1)


def without_caps(radius, half):
    """Surface of a tube, from inside."""
    corners, faces = turned_round([radius, radius], [-half, half])
    return corners, faces[:, ::-1]


def turned_round(radii, heights):
    """Surface of revolution of a line about z."""
    angle = np.linspace(0, 2 * np.pi, AROUND, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    corners = np.concatenate([r * circle + [0, 0, z] for r, z in zip(radii, heights, strict=True)])
    here = np.arange(AROUND)
    ring = np.stack([here, (here + 1) % AROUND, (here + 1) % AROUND + AROUND, here + AROUND], axis=1)
    return corners, np.concatenate([ring + k * AROUND for k in range(len(radii) - 1)])
