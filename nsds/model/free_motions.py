"""Coordinates that joints leave free: whether a motor or spring acts on one that can change at all."""

import numpy as np

from nsds.maths.rotations import turned
from nsds.model.joints import ALIGN, ANGLE, POINT

_HELD = 1e-9  # of a coordinate's gradient: part outside the span of the joints' gradients below which joints constrain it


def require_free(records, lines, places):
    """Refuses a force on a coordinate between two bodies that the joints of these bodies constrain: it would do nothing.

    records: of interactions, by name; lines: (name, whether it is a joint, whether it is a force) of those that are rows of `nsds.joints`;
    places: name -> [(body of A, body of B or None, q of A, q of B or None), ...] of its elements, bodies by hashable names.
    """
    # 1. gradients of the joints of each ordered pair of bodies
    joints = {}
    for name, is_joint, _ in lines:
        for element, (a, b, q_a, q_b) in zip(np.atleast_1d(records[name]) if is_joint else (), places[name], strict=False):
            joints.setdefault((a, b), []).append((name, _gradients(element["geometry"], q_a, q_b)))
            if b is not None:
                joints.setdefault((b, a), []).append((name, _seen_from_other(_gradients(element["geometry"], q_a, q_b), q_a, q_b)))
    # 2. a force whose gradient is in their span acts on a coordinate that cannot change
    for name, _, is_force in lines:
        for element, (a, b, q_a, q_b) in zip(np.atleast_1d(records[name]) if is_force else (), places[name], strict=False):
            held = joints.get((a, b), [])
            rows = [each for _, each in held if each is not None]
            for i, row in enumerate(_gradients(element["geometry"], q_a, q_b) if rows else ()):
                left = row - np.linalg.lstsq(np.concatenate(rows).T, row, rcond=1e-9)[0] @ np.concatenate(rows)
                if np.linalg.norm(row) > 0 and np.linalg.norm(left) < _HELD * np.linalg.norm(row):
                    by = " and ".join(f"'{joint}'" for joint, _ in held)
                    raise ValueError(f"interaction '{name}': the coordinate of row {i} cannot change, joint {by} holds it")


def _gradients(geometry, q_a, q_b):
    """Gradients (rows, 6) of POINT, ALIGN and ANGLE rows by the velocity of A's centre and its angular velocity relative to B."""
    place = np.array([0.0, 0, 0, 1, 0, 0, 0]) if q_b is None else q_b
    rows = []
    for kind, a, u, w in zip(*(geometry[field] for field in ("row", "a", "u", "w")), strict=True):
        n, zero = turned(place[3:], w), np.zeros(3)
        if kind == POINT:
            rows.append(np.concatenate([n, np.cross(turned(q_a[3:], a), n)]))
        elif kind == ALIGN:
            rows.append(np.concatenate([zero, np.cross(turned(q_a[3:], u), n)]))
        elif kind == ANGLE:
            rows.append(np.concatenate([zero, n]))
    return np.array(rows).reshape(-1, 6)


def _seen_from_other(rows, q_a, q_b):
    """The same rows by the velocities of B relative to A: ``v' = -v - omega × d``, ``omega' = -omega``, d from A's centre to B's."""
    d = q_b[:3] - q_a[:3]
    return -np.concatenate([rows[:, :3], rows[:, 3:] - np.cross(d, rows[:, :3])], axis=1)
