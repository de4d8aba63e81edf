"""Warnings of a run about how its system starts."""

import warnings

import numpy as np

from nsds.collision import WORLD
from nsds.collision.kinds import NAMES, SHAPES
from nsds.model.kinds import collisions_of
from nsds.model.records import model_of
from nsds.schemes.lagrangian.tables import VELOCITY

_VIOLATION = 1e-6
_OVERLAP = 0.01  # of the least extent of the smaller shape


def warn_of_violations(prepared, trajectory):
    """Warn of bilateral constraints that do not hold at the start: velocities are mended by the first step, positions never.

    Only what the rows (members, rows) of a run hold is looked at, and nothing where they go on from an earlier run.
    """
    if not hasattr(prepared.layout, "owners"):
        return
    c = prepared.layout.constraints
    for i in np.flatnonzero((c["bilateral"] != 0) & (c["level"] == VELOCITY)):
        name, element, row = prepared.layout.owners[i]
        if name not in trajectory.dtype.names or "y" not in trajectory.dtype[name].base.names:
            continue
        m = prepared.layout.sizes[name]
        y = trajectory[name]["y"][:, 0].reshape(trajectory.shape[0], -1)[:, element * m + row] * (trajectory["step"][:, 0] == 0)
        member = int(abs(y).argmax())
        if abs(y[member]) > _VIOLATION:
            where = f"{name}[{element}]" if trajectory.dtype[name].shape else name
            who = f" of member {member}" if trajectory.shape[0] > 1 else ""
            warnings.warn(
                f"the bilateral constraint '{where}', row {row}{who}, is violated at the start, y = {y[member]:.3g}, and stays so; "
                f"nsds.consistent(system) moves the system onto its constraints",
                RuntimeWarning, stacklevel=4,
            )  # fmt: skip
            return


def warn_of_overlaps(records, prepared):
    """Warn of detected contacts of rigid bodies that overlap at the start by more than a part of the smaller shape.

    Nothing is said of records that go on from an earlier run.
    """
    if not hasattr(prepared.layout, "general_pairs"):
        return
    for name, *_ in collisions_of(model_of(records)):
        worst = None
        for m in np.flatnonzero(records["step"] == 0):
            part = records[name][m]
            a, b, depth = part["a"][: part["n"]], part["b"][: part["n"]], -part["y"][: part["n"]]
            thickness = _thickness(part)
            deep = depth > _OVERLAP * np.minimum(thickness[a], thickness[b])
            if deep.any() and (worst is None or depth[deep].max() > worst[0]):
                i = np.argmax(np.where(deep, depth, 0.0))
                worst = depth[i], np.count_nonzero(deep), m, [_shape_named(part, s, prepared.layout) for s in (a[i], b[i])]
        if worst is not None:
            depth, count, m, (one, other) = worst
            who = f" of member {m}" if records.size > 1 else ""
            warnings.warn(
                f"collisions '{name}'{who}: {count} contact{'s' if count > 1 else ''} overlap at the start by more than "
                f"{_OVERLAP:.0%} of the smaller shape, the deepest by {depth:.3g} m: {one} and {other}; what overlaps stays so unless "
                f"something pulls it apart",
                UserWarning, stacklevel=5,
            )  # fmt: skip


def _thickness(part):
    """Least extent of all shapes of a part of collisions."""
    kind, size = part["shape_kind"], part["shape_size"]
    vertices = part["vertices"] if "vertices" in part.dtype.names else None
    result = np.empty(kind.size)
    for code, shape in enumerate(SHAPES.values()):
        result[kind == code] = shape.thickness(size[kind == code], vertices)
    return result


def _shape_named(part, s, layout):
    """In words: the kind, number and body of a shape."""
    body, kind = part["shape_body"][s], NAMES[part["shape_kind"][s]]
    if body == WORLD:
        return f"{kind} {s} of the world"
    owner, first = [(name, first) for name, first in layout.part_names if first <= body][-1]
    return f"{kind} {s} of {owner}[{body - first}]"
