"""Motions of rigid bodies as VTKHDF files (extra ``io``), which ParaView and VTK read as time series.

A file is one data set of polygons in time: points of each row, cells once as long as the same shapes are there. The layout is that of
"VTKHDF file format", version 2.0, of VTK's documentation: PolyData with the group Steps.
"""

import os

import numpy as np

from nsds import _checks
from nsds.collision.frames import frame_in
from nsds.collision.kinds import PLANAR
from nsds.maths.rotations import turned
from nsds.model.records import model_of
from nsds.model.system_kinds import collisions_of, split
from nsds.pictures.scenes import limits, mesh, placed_shapes, poses, positions
from nsds.results.trajectories import require_rows

_GROUPS = ("Vertices", "Lines", "Polygons", "Strips")  # in the order of the columns of CellOffsets
_OWNER, _CHUNK = "to_vtkhdf", 4096


def to_vtkhdf(system, trajectory, path, *, contacts=None, shapes=None, extent=None, overwrite=False):
    """Writes the motion of rigid bodies as a file that ParaView opens as a time series, and on request another one with the contacts.

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        The record, which has the shapes.
    trajectory : numpy.ndarray (rows,)
        From `nsds.simulate`, one system, with q of all bodies; a time for each row.
    path : str or path
        The file, ending in ``.vtkhdf``: surfaces of all shapes. Cells have ``body``, the number of the body through all parts, -1 the
        world; points have ``velocity`` (m/s), if it was recorded.
    contacts : str or path, optional
        A second file, of contact points: with ``impulse`` (N s, inertial) on the first body, ``normal`` and ``gap`` (m).
    shapes : dict of str to shape, optional
        Shapes for pictures only, see `nsds.plotting.scene`.
    extent : float, optional
        Half the edge of the square that stands for a plane, half the length of a tube without end (m); that of the motion by default.
    overwrite : bool
        Whether files that exist may be replaced.

    Raises
    ------
    ImportError
        h5py is not installed; the message names the extra.
    FileExistsError
        A file exists.
    ValueError
        Names that do not end in .vtkhdf, no shapes, coordinates or contacts that were not recorded, times that do not grow.

    Examples
    --------
    >>> import nsds, os, tempfile
    >>> system = nsds.examples.box_stack(n=3)
    >>> rows = nsds.simulate(system, t_end=0.1, h=1e-3, save_every=10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nsds.to_vtkhdf(system, rows, os.path.join(folder, "stack.vtkhdf"))
    ...     os.listdir(folder)
    ['stack.vtkhdf']
    """
    # 1. arguments
    given = {"path": path} | ({} if contacts is None else {"contacts": contacts})
    paths = [_checks.path_ending(_OWNER, field, each, "VTKHDF", (".vtkhdf",)) for field, each in given.items()]
    rows = require_rows(_OWNER, trajectory, (1,))
    placed = placed_shapes(system, shapes)
    if not placed:
        raise ValueError(f"{_OWNER}: there are no shapes: the system has no collisions; give shapes={{part: shape}}")
    q = positions(system, rows)
    at = poses(placed, q)
    extent = np.ptp(limits(placed, at), axis=0).max() if extent is None else _checks.number(_OWNER, "extent", extent, low=0.0)
    _checks.require_package("h5py", "h5py", f"{_OWNER}: VTKHDF files need h5py")
    for each in paths:
        if os.path.exists(each) and not overwrite:
            raise FileExistsError(f"{_OWNER}: the file {each} exists; overwrite=True replaces it")
    names = [] if contacts is None else _collisions(system, rows)
    # 2. surfaces, then contacts
    _write(paths[0], rows["t"], _surfaces(placed, at, q, _velocities(system, rows), extent), "Polygons")
    if contacts is not None:
        _write(paths[1], rows["t"], _contacts(system, rows, names), "Vertices")


def _surfaces(placed, at, q, v, extent):
    """(points, data of points, cells, data of cells) of the shapes that are there, row by row; cells that stay are the same object."""
    # 1. surfaces in the axes of their shapes; triangles have one corner twice
    surfaces = [mesh(kind, size, extent, surface) for kind, size, _, surface, _ in placed]
    cells_of = [[face[:3] if face[2] == face[3] else face for face in faces] for _, faces in surfaces]
    bodies, known, cells, cell_data = np.array([body for *_, body in placed]), None, None, None
    for k in range(len(at)):
        # 2. cells, which change with the shapes that are there
        there = [i for i in range(len(placed)) if not np.isnan(at[k, i, 0])]
        if known != there:
            known = there
            first = np.cumsum([0, *(len(surfaces[i][0]) for i in there)])
            cells = [first[j] + np.asarray(face) for j, i in enumerate(there) for face in cells_of[i]]
            cell_data = {"body": np.repeat(bodies[there], [len(cells_of[i]) for i in there])}
        # 3. points, and velocities of the points of bodies
        points = [at[k, i, :3] + turned(at[k, i, 3:], surfaces[i][0]) for i in there]
        data = {}
        if v is not None:
            data["velocity"] = _joined([_velocity_of(bodies[i], q[k], v[k], x) for i, x in zip(there, points, strict=True)])
        yield _joined(points), data, cells, cell_data


def _joined(pieces):
    return np.concatenate([np.zeros((0, 3)), *pieces])


def _velocities(system, rows):
    """(rows, bodies, 6) velocities of all bodies; None where they were not recorded."""
    names = [name for name, *_ in split(model_of(system))[0]]
    if any("v" not in rows.dtype[name].base.names for name in names):
        return None
    return np.concatenate([rows[name]["v"].reshape(rows.size, -1, 6) for name in names], axis=1)


def _velocity_of(body, q, v, x):
    """Velocities of the points x of a body, at rest in the world; v has angular velocities in the axes of the bodies."""
    if body < 0:
        return np.zeros_like(x)
    return v[body, :3] + np.cross(turned(q[body, 3:], v[body, 3:]), x - q[body, :3])


def _collisions(system, rows):
    """Names of the collisions, whose contacts must have been recorded."""
    names = [name for name, *_ in collisions_of(model_of(system))]
    if not names:
        raise ValueError(f"{_OWNER}: contacts: the system has no collisions")
    for name in names:
        missing = {"n", "normal", "point", "y", "lambda"} - set(rows.dtype[name].base.names if name in rows.dtype.names else ())
        if missing:
            raise ValueError(f"{_OWNER}: the trajectory must hold {name}.{min(missing)}, which was not recorded")
    return names


def _contacts(system, rows, names):
    """(points, data of points, cells, data of cells) of the contacts of all collisions, row by row."""
    planar = [bool(np.isin(system[name]["shape_kind"], PLANAR).all()) for name in names]
    for row in rows:
        parts = [{field: row[name][field][: row[name]["n"]] for field in ("normal", "point", "y", "lambda")} for name in names]
        data = {field: np.concatenate([part[field] for part in parts]) for field in ("normal", "point")}
        impulse = np.concatenate([_impulses(part, is_planar) for part, is_planar in zip(parts, planar, strict=True)])
        gap = np.concatenate([part["y"] for part in parts])
        point = data.pop("point")
        yield point, data | {"impulse": impulse, "gap": gap}, [np.array([i]) for i in range(len(point))], {}


def _impulses(contacts, is_planar):
    """(n, 3) impulses on the first body, in inertial axes."""
    result, frame = np.zeros_like(contacts["normal"]), np.zeros(9)
    for i, (normal, lam) in enumerate(zip(contacts["normal"], contacts["lambda"], strict=True)):
        frame_in(is_planar, np.ascontiguousarray(normal), frame)
        result[i] = lam[:3] @ frame.reshape(3, 3)[: lam.size]
    return result


def _write(path, t, rows, group):
    """A file of polygons, or of vertices, in time; rows: (points, data of points, cells, data of cells) of each."""
    import h5py

    if t.size > 1 and not (np.diff(t) >= 0.0).all():
        raise ValueError(f"{_OWNER}: the times of the trajectory must not fall")
    temporary = f"{path}.part"
    try:
        with h5py.File(temporary, "w") as file:
            _fill(file.create_group("VTKHDF", track_order=True), t, rows, group)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)


def _fill(root, t, rows, group):
    """Data sets of the root of a file: see `_write`."""
    root.attrs["Version"], root.attrs["Type"] = np.array([2, 0]), np.bytes_("PolyData")
    # 1. rows are appended; cells and their data only where they differ from those of the row before
    table, known, at, n_parts = _Table(root), None, {}, 0
    steps = {name: [] for name in ("part", "points", "cells", "connectivity")}
    for points, data, cells, cell_data in rows:
        first = table.append("Points", points, (3,))
        for name, values in data.items():
            table.append(f"PointData/{name}", values, values.shape[1:])
        if cells is not known:
            known = cells
            at["part"], n_parts = n_parts, n_parts + 1
            table.append("NumberOfPoints", [len(points)])
            sizes = np.array([len(cell) for cell in cells], np.int64)
            for each in _GROUPS:
                mine = sizes if each == group else sizes[:0]
                table.append(f"{each}/NumberOfCells", [mine.size])
                table.append(f"{each}/NumberOfConnectivityIds", [mine.sum()])
                offsets = table.append(f"{each}/Offsets", np.concatenate([[0], np.cumsum(mine)]).astype(np.int64))
                joined = np.concatenate(cells) if each == group and cells else np.zeros(0, np.int64)
                connectivity = table.append(f"{each}/Connectivity", joined)
                at[each] = offsets - at["part"], connectivity
            for name, values in cell_data.items():
                table.append(f"CellData/{name}", values)
        steps["part"].append(at["part"])
        steps["points"].append(first)
        steps["cells"].append([at[each][0] for each in _GROUPS])
        steps["connectivity"].append([at[each][1] for each in _GROUPS])
    table.close()
    # 2. where the steps are
    group_of_steps = root.create_group("Steps")
    group_of_steps.attrs["NSteps"] = t.size
    group_of_steps["Values"], group_of_steps["PartOffsets"] = t, np.array(steps["part"])
    group_of_steps["NumberOfParts"] = np.ones(t.size, np.int64)
    group_of_steps["PointOffsets"] = np.array(steps["points"])
    group_of_steps["CellOffsets"], group_of_steps["ConnectivityIdOffsets"] = np.array(steps["cells"]), np.array(steps["connectivity"])
    for name in root.get("PointData", ()):
        group_of_steps[f"PointDataOffsets/{name}"] = np.array(steps["points"])
    for name in root.get("CellData", ()):
        group_of_steps[f"CellDataOffsets/{name}"] = np.array(steps["cells"])[:, _GROUPS.index(group)]


class _Table:
    """Data sets that grow: pieces are collected and written when they are large enough."""

    def __init__(self, root):
        self._root, self._pieces, self._size = root, {}, {}

    def append(self, name, values, shape=()):
        """Adds values at the end of a data set; returns the place of the first."""
        values = np.asarray(values).reshape(-1, *shape)
        first = self._size.setdefault(name, 0)
        self._size[name] += len(values)
        pieces = self._pieces.setdefault(name, [])
        pieces.append(values)
        if sum(map(len, pieces)) > _CHUNK:
            self._flush(name)
        return first

    def _flush(self, name):
        values, self._pieces[name] = np.concatenate(self._pieces[name]), []
        if name not in self._root:
            chunk = (_CHUNK, *values.shape[1:])
            self._root.create_dataset(name, (0, *values.shape[1:]), values.dtype, maxshape=(None, *values.shape[1:]), chunks=chunk)
        data = self._root[name]
        data.resize(len(data) + len(values), axis=0)
        data[len(data) - len(values) :] = values

    def close(self):
        """Writes what is left."""
        for name, pieces in self._pieces.items():
            if pieces:
                self._flush(name)
