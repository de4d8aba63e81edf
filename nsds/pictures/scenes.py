"""Pictures of rigid bodies, in space or in the plane (extra ``plot``): shapes of collisions, and others, at the poses of a row."""

import itertools

import numpy as np

from nsds import _checks
from nsds.collision.geometry import surface_of
from nsds.collision.kinds import NAMES, POLYHEDRA, SHAPES, bound
from nsds.maths.rotations import turned
from nsds.model.records import model_of
from nsds.model.shapes import require_shape
from nsds.model.system_kinds import NEWTON_EULER, SYSTEMS, collisions_of, split
from nsds.model.validation import valid
from nsds.results.trajectories import require_rows

_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#eeca3b", "#b279a2", "#ff9da6")
_WORLD_COLOUR = "#b0b0b0"
SEE_THROUGH = ("plane", "tube", "half_plane")
_LIGHT = np.array([0.3, -0.5, 0.8])


def placed_shapes(system, shapes=None):
    """The shapes of all collisions of a system of rigid bodies, and further ones.

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        A record from `nsds.system`.
    shapes : dict of str to shape, optional
        Shapes for pictures only, of parts: one from `nsds.shapes` or a list, for all bodies of the part.

    Returns
    -------
    list of (kind, size, pose, surface, body)
        Name of the kind, size (3,), pose (7,) in the axes of its body, vertices and triangles of a polyhedron, else None, and number of the
        body, counted through all parts; -1: the world.

    Raises
    ------
    ValueError
        A part that is not one of rigid bodies.

    Examples
    --------
    >>> import nsds
    >>> from nsds.pictures.scenes import placed_shapes
    >>> [kind for kind, *_ in placed_shapes(nsds.examples.sliding_ball())]
    ['sphere', 'plane']
    """
    # 1. shapes of collisions
    record = valid("scene", system)
    if record.size != 1:
        raise ValueError(f"scene: system must be one record, got an ensemble of shape {record.shape}")
    record, model, result = record.reshape(()), model_of(record), []
    for name, *_ in collisions_of(model):
        part = record[name]
        columns = (part[field].copy() for field in ("shape_kind", "shape_size", "shape_pose", "shape_body"))
        for kind, size, pose, body in zip(*columns, strict=True):
            surface = surface_of(size, part["vertices"], part["triangles"]) if kind in POLYHEDRA else None
            result.append((NAMES[kind], size, pose, surface, int(body)))
    # 2. bodies of each part
    first, n_bodies = {}, 0
    for name, kind, *_ in split(model)[0]:
        if SYSTEMS[kind][0] == NEWTON_EULER:
            first[name] = range(n_bodies, n_bodies + record[name].size)
            n_bodies += record[name].size
    if not first:
        parts = ", ".join(name for name, *_ in split(model)[0])
        raise ValueError(f"scene: system must have rigid bodies, which have shapes, and its parts are {parts}")
    # 3. further shapes, one for each body of their part
    if not isinstance(shapes, (dict, type(None))):
        raise TypeError(f"scene: shapes must be a dict from names of parts to shapes, got {_checks.shortened(shapes)}")
    for name, given in (shapes or {}).items():
        for shape in given if isinstance(given, (list, tuple)) else [given]:
            require_shape(f"scene: the shapes of '{name}'", shape)
        if name not in first:
            raise ValueError(f"shapes: there is no part '{name}' of rigid bodies; there are: {', '.join(first) or 'none'}")
        for shape, body in itertools.product([given] if isinstance(given, dict) else given, first[name]):
            surface = (shape["vertices"], shape["triangles"]) if "vertices" in shape else None
            result.append((shape["shape"], shape["size"], shape["pose"], surface, body))
    return result


def positions(system, rows):
    """Coordinates (..., bodies, 7) of all rigid bodies at rows of a trajectory, or in a record: parts one after the other.

    NaN for bodies that are not alive, which then are not drawn.
    """
    parts = [name for name, *_ in split(model_of(system))[0]]
    missing = [name for name in parts if name not in rows.dtype.names or "q" not in rows.dtype[name].base.names]
    if missing:
        raise ValueError(f"scene: the trajectory must hold q of all bodies, but '{missing[0]}.q' was not recorded")
    found = []
    for name in parts:
        held, wanted = ((*dtype[name].shape, *dtype[name].base["q"].shape) for dtype in (rows.dtype, system.dtype))
        if held != wanted:
            raise ValueError(f"scene: the trajectory is that of another system: expected of {name}.q shape {wanted}, got {held}")
        q = rows[name]["q"].reshape(*np.shape(rows), -1, 7)
        if "alive" in rows.dtype[name].base.names:
            q = np.where(rows[name]["alive"].reshape(*np.shape(rows), -1, 1), q, np.nan)
        found.append(q)
    return np.concatenate(found, axis=-2)


def poses(placed, q):
    """World poses (..., shapes, 7) of placed shapes, for coordinates (..., bodies, 7)."""
    own = np.array([pose for _, _, pose, *_ in placed])
    body = np.array([body for *_, body in placed])
    base = np.where((body >= 0)[:, None], q[..., np.maximum(body, 0), :], [0, 0, 0, 1.0, 0, 0, 0])
    x, p = base[..., :3], base[..., 3:]
    return np.concatenate([x + turned(p, own[:, :3]), _product(p, own[:, 3:])], axis=-1)


def _product(p, q):
    scalar = p[..., :1] * q[..., :1] - (p[..., 1:] * q[..., 1:]).sum(axis=-1, keepdims=True)
    return np.concatenate([scalar, p[..., :1] * q[..., 1:] + q[..., :1] * p[..., 1:] + np.cross(p[..., 1:], q[..., 1:])], axis=-1)


def mesh(kind, size, extent, surface=None):
    """Surface of a shape in its own axes.

    Parameters
    ----------
    kind : str
        A name of `nsds.collision.kinds`.
    size : array_like (3,)
        As there.
    extent : float
        Half the edge of the square that stands for a plane, half the length of a tube without end (m).
    surface : (ndarray (n, 3), ndarray (k, 3)), optional
        Vertices and triangles of a convex hull or mesh.

    Returns
    -------
    corners, faces : numpy.ndarray (n, 3) and (k, 4)
        Quadrilaterals by their corners, counterclockwise from outside (of a tube, from inside); triangles have one corner twice.
    """
    if surface is not None:
        return surface[0], surface[1][:, [0, 1, 2, 2]]
    return SHAPES[kind].surface(size, extent)


def radius_about(kind, size):
    """Radius of the smallest ball about its position that contains a shape; the radius of an unbounded tube, and 0 for a plane."""
    radius = bound(np.array([NAMES.index(kind)]), size, 0)
    return radius if np.isfinite(radius) else size[0]


def limits(placed, world_poses):
    """Smallest box (2, 3) about all shapes but planes, at all rows of world poses (..., shapes, 7)."""
    solid = [i for i, (kind, *_) in enumerate(placed) if not SHAPES[kind].is_of_world]
    if not solid:
        return np.array([[-1.0] * 3, [1.0] * 3])
    radii = np.array([radius_about(*placed[i][:2]) for i in solid])[:, None]
    x = world_poses[..., solid, :3]
    over = tuple(range(x.ndim - 1))
    return np.stack([np.nanmin(x - radii, axis=over), np.nanmax(x + radii, axis=over)])


def colours(placed):
    """Colours, one for each body in turns; the world is grey."""
    return [_WORLD_COLOUR if body < 0 else _COLOURS[body % len(_COLOURS)] for *_, body in placed]


def scene(system, row=None, *, ax=None, shapes=None, box=None, elev=None, azim=None):
    """Draws the shapes of a system of rigid bodies at the poses of its bodies.

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        The record, which has the shapes.
    row : numpy.ndarray, shape (), optional
        A row of a trajectory, ``trajectory[k]``; the state of the record by default.
    ax : matplotlib axes, optional
        Three-dimensional ones; new ones by default.
    shapes : dict of str to shape, optional
        Shapes for pictures only, of parts, as of bodies that never touch: one from `nsds.shapes`, or a list.
    box : array_like (2, 3), optional
        Smallest and largest coordinates that are shown (m); about all shapes by default.
    elev, azim : float, optional
        Where it is seen from, in degrees above the xy-plane, and about z: 20 and -60 by default, 90 and -90, which has x to the right and y
        upwards, of shapes in the plane.

    Returns
    -------
    matplotlib axes
        With one collection for all surfaces and one for all balls where there are many.

    Raises
    ------
    ImportError
        matplotlib is not installed; the message names the extra.
    ValueError
        Nothing to draw, coordinates that were not recorded, or a part that is not one of rigid bodies.

    Examples
    --------
    >>> import nsds
    >>> ax = nsds.plotting.scene(nsds.examples.box_stack())
    >>> len(ax.collections)
    1
    """
    # 1. shapes, row, direction of view
    placed = placed_shapes(system, shapes)
    if not placed:
        raise ValueError("scene: there are no shapes to draw: the system has no collisions; give shapes={part: shape}")
    rows = np.asarray(system).reshape(()) if row is None else require_rows("scene", row, (0,), "row")
    is_flat = all(SHAPES[kind].is_planar for kind, *_ in placed)
    elev = _checks.number("scene", "elev", (90.0 if is_flat else 20.0) if elev is None else elev)
    azim = _checks.number("scene", "azim", (-90.0 if is_flat else -60.0) if azim is None else azim)
    box = None if box is None else _checks.array("scene", "box", box, shape=(2, 3))
    if ax is not None and not hasattr(ax, "set_box_aspect"):
        raise TypeError(f"scene: ax must be matplotlib axes in space, got {_checks.shortened(ax)}")
    # 2. poses of the shapes, and the axes
    at = poses(placed, positions(system, rows))
    if ax is None:
        ax = _figure(1)[1][0]
    _look(ax, limits(placed, at) if box is None else box, elev, azim)
    return _draw(ax, placed, at)


_MOST, _MOST_FRAMES = 100, 100000
_FPS = 0.01, 50.0  # of a GIF: a frame lasts hundredths of a second, in 16 bits, and viewers slow down frames shorter than 2
_MANY = 30  # number of balls above which they are drawn as disks


def _look(ax, box, elev, azim):
    middle, half = box.mean(axis=0), (box[1] - box[0]).max() / 2 * np.ones(3)
    half = np.maximum((box[1] - box[0]) / 2, 0.2 * half)
    ax.set(**{f"{axis}lim": (middle[i] - half[i], middle[i] + half[i]) for i, axis in enumerate("xyz")})
    ax.set_proj_type("ortho")
    ax.set_box_aspect(half)
    ax.view_init(elev=elev, azim=azim)
    ax.set_axis_off()


def _draw(ax, placed, at):
    """Draws surfaces as one collection, which sorts them by depth, and many balls as disks."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    # 1. shapes that are drawn as surfaces, with flat shading
    extent = np.ptp(_box_of(ax), axis=0).max() / 2
    balls = [i for i, (kind, *_) in enumerate(placed) if kind == "sphere"]
    as_disks = set(balls) if len(balls) > _MANY else set()
    polygons, shades, colour = [], [], np.array([_rgb(c) for c in colours(placed)])
    for i, (kind, size, _, surface, _) in enumerate(placed):
        if i in as_disks or np.isnan(at[i, 0]):
            continue
        corners, faces = mesh(kind, size, extent, surface)
        corners = at[i, :3] + turned(at[i, 3:], corners)
        if SHAPES[kind].is_of_world:
            corners = _within(corners, ax, kind)
        across = np.cross(corners[faces[:, 2]] - corners[faces[:, 0]], corners[faces[:, 3]] - corners[faces[:, 1]])
        light = 0.75 + 0.25 * across @ _LIGHT / np.maximum(np.linalg.norm(across, axis=1) * np.linalg.norm(_LIGHT), 1e-300)
        polygons += list(corners[faces])
        alpha = 0.15 if kind in SEE_THROUGH else 1.0
        shades += [[*(s * colour[i]), alpha] for s in light]
    # 2. one collection for all polygons; disks for many balls
    if polygons:
        ax.add_collection3d(Poly3DCollection(polygons, facecolors=np.array(shades), edgecolors="none"))
    if as_disks:
        _disks(ax, at[balls, :3], np.array([placed[i][1][0] for i in balls]), colour[balls])
    return ax


def _within(corners, ax, kind):
    """The square of a plane, or the part of a half plane, moved along itself to the middle of the picture."""
    middle = _box_of(ax).mean(axis=0)
    if kind == "half_plane":
        line = corners[1] - corners[0]
        return corners + (middle - corners.mean(axis=0)) @ line / (line @ line) * line
    normal = np.cross(corners[1] - corners[0], corners[3] - corners[0])
    normal /= np.linalg.norm(normal)
    shift = middle - corners.mean(axis=0)
    return corners + shift - (shift @ normal) * normal


def _disks(ax, centres, radii, colour):
    """Draws balls as disks of their size: in parallel projection one length is the same number of points everywhere."""
    from mpl_toolkits.mplot3d import proj3d

    ax.apply_aspect()
    towards = _box_of(ax).mean(axis=0)
    upwards = np.cross(np.cross(_direction(ax), [0, 0, 1.0]), _direction(ax)) if abs(_direction(ax)[2]) < 0.999 else np.array([1.0, 0, 0])
    upwards /= np.linalg.norm(upwards)
    ends = np.stack([towards, towards + radii.max() * upwards], axis=1)
    x, y, _ = proj3d.proj_transform(*ends, ax.get_proj())
    pixels = np.linalg.norm(np.diff(ax.transData.transform(np.stack([x, y], axis=1)), axis=0))
    points = pixels * 72 / ax.figure.dpi * radii / radii.max()
    ax.scatter(*centres.T, s=(2 * points) ** 2, c=colour, edgecolors=(0, 0, 0, 0.35), linewidths=0.3, depthshade=False)


def _box_of(ax):
    """Smallest and largest coordinates (2, 3) of the axes."""
    return np.reshape(ax.get_w_lims(), (3, 2)).T


def _direction(ax):
    """Unit vector from the scene to the eye."""
    elev, azim = np.radians(ax.elev), np.radians(ax.azim)
    return np.array([np.cos(elev) * np.cos(azim), np.cos(elev) * np.sin(azim), np.sin(elev)])


def _rgb(colour):
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def _figure(columns, size=4.8):
    """A figure off the screen, and its axes in space, side by side."""
    require_matplotlib()
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(size * columns, size), layout="constrained")
    return figure, [figure.add_subplot(1, columns, k + 1, projection="3d") for k in range(columns)]


def require_matplotlib():
    """Raises an ImportError with the command that installs matplotlib, if it is not installed."""
    _checks.require_package("matplotlib", "matplotlib", "pictures need matplotlib")


def snapshots(system, trajectory, count=3, *, shapes=None, elev=None, azim=None):
    """Draw scenes of a trajectory side by side, evenly spaced in time from the first row to the last.

    Parameters
    ----------
    system, shapes, elev, azim
        See `scene`.
    trajectory : numpy.ndarray (rows,)
        From `nsds.simulate`.
    count : int
        How many.

    Returns
    -------
    matplotlib figure

    Examples
    --------
    >>> import nsds
    >>> system = nsds.examples.sliding_ball()
    >>> figure = nsds.plotting.snapshots(system, nsds.simulate(system, t_end=0.1, h=1e-3), 2)
    >>> [ax.get_title() for ax in figure.axes]
    ['t = 0 s', 't = 0.1 s']
    """
    trajectory, count = require_rows("snapshots", trajectory, (1,)), _checks.integer("snapshots", "count", count, low=1, high=_MOST)
    placed = placed_shapes(system, shapes)
    if not placed:
        raise ValueError("snapshots: there are no shapes to draw: the system has no collisions; give shapes={part: shape}")
    figure, axes = _figure(count, 3.6)
    rows = trajectory[np.linspace(0, trajectory.size - 1, count).round().astype(int)]
    seen = limits(placed, poses(placed, positions(system, trajectory)))
    for row, ax in zip(rows, axes, strict=True):
        scene(system, row, ax=ax, shapes=shapes, box=seen, elev=elev, azim=azim)
        ax.set_title(f"t = {row['t']:.3g} s")
    return figure


def animate(system, trajectory, path, *, fps=25, speed=1.0, shapes=None, box=None, elev=None, azim=None, inches=4.8, dpi=80):
    """Write a moving picture of a trajectory as GIF or MP4; needs no screen.

    Parameters
    ----------
    system, shapes, box, elev, azim
        See `scene`; the box is about the whole motion by default.
    trajectory : numpy.ndarray (rows,)
        From `nsds.simulate`, one system. Each frame shows the saved row that is nearest in time.
    path : str or path
        The file, ending in ``.gif`` or ``.mp4``; the latter is written by the program ffmpeg, which is to be installed.
    fps : float
        Frames per second, 0.01 to 50.
    speed : float
        Seconds of the motion in one second of the picture; below 1 it is slow motion.
    inches, dpi : float
        Edge of the picture, and pixels per inch.

    Returns
    -------
    int
        Number of frames.

    Raises
    ------
    ImportError
        matplotlib is not installed, the message names the extra; or ffmpeg is not, for MP4.
    ValueError
        A path that ends in neither .gif nor .mp4, numbers that are not positive, coordinates that were not recorded.

    Examples
    --------
    >>> import nsds, os, tempfile
    >>> system = nsds.examples.sliding_ball()
    >>> trajectory = nsds.simulate(system, t_end=0.1, h=1e-3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nsds.plotting.animate(system, trajectory, os.path.join(folder, "ball.gif"), fps=20)
    3
    """
    shown, size = _film("animate", trajectory, path, fps, speed, inches, dpi)
    placed = placed_shapes(system, shapes)
    seen = limits(placed, poses(placed, positions(system, shown))) if box is None else box

    def draw(ax, row):
        ax.clear()
        scene(system, row, ax=ax, shapes=shapes, box=seen, elev=elev, azim=azim)

    return _write_film(path, shown, draw, fps, dpi, (size, size), projection="3d")


def animate_plane(trajectory, lines, path, *, fps=25, speed=1.0, box=None, inches=4.8, dpi=80):
    """Write a moving picture of a planar mechanism as GIF or MP4: lines through points that are computed from the rows; needs no screen.

    Parameters
    ----------
    trajectory : numpy.ndarray (rows,)
        From `nsds.simulate`, one system. Each frame shows the saved row that is nearest in time.
    lines : function ``lines(row)``
        Returns a list of arrays (points, 2), in m: each is drawn as a line with joints, in a colour of its own.
    path : str or path
        The file, ending in ``.gif`` or ``.mp4``; the latter is written by the program ffmpeg, which is to be installed.
    fps, speed, inches, dpi
        See `animate`.
    box : array_like (2, 2), optional
        Smallest and largest x and y that are shown; around all frames by default.

    Returns
    -------
    int
        Number of frames.

    Raises
    ------
    ImportError
        matplotlib is not installed, the message names the extra; or ffmpeg is not, for MP4.
    TypeError, ValueError
        A function that does not return arrays (points, 2), a path that ends in neither .gif nor .mp4, numbers that are not positive.

    Examples
    --------
    >>> import nsds, numpy as np, os, tempfile
    >>> trajectory = nsds.simulate(nsds.examples.bouncing_ball(), t_end=0.2, h=5e-3)
    >>> def lines(row):
    ...     height, sideways, angle = row["ball"]["q"]
    ...     turned = np.linspace(0, 2 * np.pi, 25) + angle
    ...     return [np.column_stack([sideways + 0.1 * np.cos(turned), height + 0.1 * np.sin(turned)])]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nsds.plotting.animate_plane(trajectory, lines, os.path.join(folder, "ball.gif"), fps=20)
    5
    """
    # 1. lines of each frame
    owner = "animate_plane"
    if not callable(lines):
        raise TypeError(f"{owner}: lines must be a function lines(row), got {_checks.shortened(lines)}")
    shown, size = _film(owner, trajectory, path, fps, speed, inches, dpi)
    drawn = [_lines_at(owner, lines(row)) for row in shown]
    # 2. box about all of them, with a margin
    if box is None:
        points = np.concatenate([line for each in drawn for line in each])
        box = np.stack([points.min(axis=0), points.max(axis=0)]) + 0.06 * np.ptp(points, axis=0).max() * np.array([[-1.0], [1.0]])
    box = _checks.array(owner, "box", box, shape=(2, 2))
    width, height = np.maximum(box[1] - box[0], 1e-9 * abs(box).max() + 1e-300)

    def draw(ax, row_lines):
        ax.clear()
        ax.set(xlim=box[:, 0], ylim=box[:, 1], aspect="equal")
        ax.set_axis_off()
        for i, line in enumerate(row_lines):
            ax.plot(*line.T, "o-", color=_COLOURS[i % len(_COLOURS)], markersize=4 if len(line) < _MANY else 0, linewidth=2)

    return _write_film(path, drawn, draw, fps, dpi, size * np.array([width, height]) / max(width, height))


def _lines_at(owner, given):
    """Result of a function of lines, as arrays."""
    if not isinstance(given, (list, tuple)) or not given:
        raise TypeError(f"{owner}: lines must return a list of arrays of shape (points, 2), got {_checks.shortened(given)}")
    result = [_checks.array(owner, f"lines()[{i}]", line, n_dims=2) for i, line in enumerate(given)]
    if any(line.shape[1] != 2 or not line.size for line in result):
        raise ValueError(f"{owner}: lines must return arrays of shape (points, 2), got shapes {[line.shape for line in result]}")
    return result


def _film(owner, trajectory, path, fps, speed, inches, dpi):
    """(rows of the frames, edge in inches), with all arguments checked."""
    require_matplotlib()
    if not _checks.path(owner, "path", path).endswith((".gif", ".mp4")):
        raise ValueError(f"{owner}: path must end in .gif or .mp4, got {_checks.shortened(str(path))}")
    if str(path).endswith(".mp4"):
        _require_ffmpeg(owner)
    trajectory = require_rows(owner, trajectory, (1,))
    fps = _checks.number(owner, "fps", fps, *_FPS)
    speed, inches, _ = (
        _checks.number(owner, name, value, above=0.0) for name, value in (("speed", speed), ("inches", inches), ("dpi", dpi))
    )
    n_frames = (trajectory["t"][-1] - trajectory["t"][0]) * fps / speed
    if not n_frames <= _MOST_FRAMES:
        raise ValueError(f"{owner}: fps and speed must give at most {_MOST_FRAMES} frames, got {n_frames:.3g}")
    return trajectory[frames(trajectory, fps, speed)], inches


def _require_ffmpeg(owner):
    from matplotlib.animation import FFMpegWriter

    if not FFMpegWriter.isAvailable():
        raise ImportError(
            f"{owner}: films in .mp4 are written by the program ffmpeg, which was not found: install it (apt, brew, conda install ffmpeg) "
            "or give its path in matplotlib.rcParams['animation.ffmpeg_path']; .gif needs no program"
        )


def _write_film(path, shown, draw, fps, dpi, size, **axes):
    """Draws each frame onto the axes of one figure, and writes all; returns their number."""
    from matplotlib.animation import FFMpegWriter, PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    ax = figure.add_axes((0, 0, 1, 1), **axes)
    draw(ax, shown[0])  # what it refuses is raised here: beyond, matplotlib covers it by an error of its own, for lack of frames
    writer = FFMpegWriter(fps=fps, codec="h264") if str(path).endswith(".mp4") else PillowWriter(fps=fps)
    with writer.saving(figure, str(path), dpi):
        for each in shown:
            draw(ax, each)
            writer.grab_frame()
    return len(shown)


def frames(trajectory, fps, speed):
    """Rows nearest to the times of frames, ``speed / fps`` apart."""
    t = trajectory["t"]
    times = t[0] + speed / fps * np.arange(int((t[-1] - t[0]) * fps / speed + 1e-9) + 1)
    return np.searchsorted((t[1:] + t[:-1]) / 2, times)
