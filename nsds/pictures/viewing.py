"""Rigid bodies in a browser (extra ``view``): the scene of a trajectory, with a slider for time and a button that plays it."""

import threading
import time

import numpy as np

from nsds import _checks
from nsds.pictures.scenes import SEE_THROUGH, colours, limits, mesh, placed_shapes, poses, positions
from nsds.results.trajectories import require_rows


def view(system, trajectory=None, *, port=8080, shapes=None, fps=30.0, host="127.0.0.1"):
    """Show a trajectory of rigid bodies in a browser, at ``http://localhost:PORT``; returns at once, and serves until it is stopped.

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        The record, which has the shapes.
    trajectory : numpy.ndarray (rows,), optional
        From `nsds.simulate`, with q of all bodies; the state of the record alone by default.
    port : int
        Port of the server; the next free one if it is taken.
    shapes : dict of str to shape, optional
        Shapes for pictures only, of parts, as of bodies that never touch: one from `nsds.shapes`, or a list.
    fps : float
        Pictures per second while it plays.
    host : str
        Address that is listened at; "0.0.0.0" lets other machines in.

    Returns
    -------
    Viewer
        With ``show(row)``, ``play()``, ``pause()``, ``wait()``, which serves until Ctrl-C, and ``stop()``.

    Raises
    ------
    ImportError
        viser is not installed; the message names the extra.
    ValueError
        Nothing to draw, or coordinates that were not recorded.

    Examples
    --------
    >>> import nsds
    >>> system = nsds.examples.dominoes()
    >>> trajectory = nsds.simulate(system, t_end=0.01, h=5e-4)
    >>> viewer = nsds.view(system, trajectory)  # doctest: +SKIP
    >>> viewer.wait()  # doctest: +SKIP
    """
    # 1. arguments
    port, fps = _checks.integer("view", "port", port, low=0, high=65535), _checks.number("view", "fps", fps, above=0.0)
    host = _checks.text("view", "host", host)
    if trajectory is not None:
        trajectory = require_rows("view", trajectory, (1,))
    _checks.require_package("viser", "viser", "the view in a browser needs viser")
    # 2. shapes and their poses at all rows
    placed = placed_shapes(system, shapes)
    if not placed:
        raise ValueError("view: there are no shapes to draw: the system has no collisions; give shapes={part: shape}")
    rows = np.asarray(system).reshape(1) if trajectory is None else trajectory
    return Viewer(placed, rows["t"], poses(placed, positions(system, rows)), port, fps, host)


class Viewer:
    """A server of one scene; from `view`."""

    def __init__(self, placed, t, world_poses, port, fps, host):
        import viser

        # 1. scene: shapes of one kind and size as one batch
        self._t, self._poses, self._fps = t.copy(), world_poses, fps
        self.server = viser.ViserServer(host=host, port=port, verbose=False)
        self.server.scene.set_up_direction("+z")
        self._batches = [_batch(self.server.scene, placed, chosen, world_poses) for chosen in _alike(placed)]
        # 2. camera, so that all rows are in view
        middle = limits(placed, world_poses)
        size = max(np.ptp(middle, axis=0).max(), 1e-9)
        self.server.initial_camera.look_at = middle.mean(axis=0)
        self.server.initial_camera.position = middle.mean(axis=0) + size * np.array([0.8, -1.4, 0.7])
        # 3. controls, and the thread that plays
        gui = self.server.gui
        self._row = gui.add_slider("row", min=0, max=max(t.size - 1, 1), step=1, initial_value=0)
        self._time = gui.add_text("t (s)", initial_value="", disabled=True)
        self._playing = gui.add_checkbox("play", initial_value=False)
        self._speed = gui.add_slider("speed", min=0.01, max=2.0, step=0.01, initial_value=1.0)
        self._row.on_update(lambda _: self._draw(int(self._row.value)))
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._draw(0)
        self._thread.start()

    @property
    def port(self):
        """Port of the server."""
        return self.server.get_port()

    @property
    def row(self):
        """Number of the row that is shown."""
        return min(int(self._row.value), self._t.size - 1)

    def show(self, row):
        """Show a row of the trajectory."""
        row = _checks.integer("show", "row", row, low=0)
        if row >= self._t.size:
            raise ValueError(f"show: row must be below {self._t.size}, got {row}")
        self._row.value = row
        self._draw(row)

    def play(self):
        """Play from the row that is shown, over and over."""
        self._playing.value = True

    def pause(self):
        """Pause at the present row."""
        self._playing.value = False

    def stop(self):
        """Stop the server."""
        self._stopped.set()
        self._thread.join()
        self.server.stop()

    def wait(self):
        """Serve until Ctrl-C."""
        try:
            while not self._stopped.wait(1.0):
                pass
        except KeyboardInterrupt:
            self.stop()

    def _draw(self, row):
        row = min(row, self._t.size - 1)
        with self.server.atomic():
            for chosen, handle in self._batches:
                handle.batched_positions = self._poses[row, chosen, :3].astype(np.float32)
                handle.batched_wxyzs = self._poses[row, chosen, 3:].astype(np.float32)
        self._time.value = f"{self._t[row]:.4g}"

    def _run(self):
        """Advances by the elapsed time; restarts after the last row."""
        before, at, last = time.monotonic(), self._t[0], 0
        while not self._stopped.wait(1.0 / self._fps):
            now = time.monotonic()
            if self._playing.value:
                at = at if self.row == last else self._t[self.row]  # the slider was moved
                at += self._speed.value * (now - before)
                at = self._t[0] if at > self._t[-1] else at
                last = int(np.searchsorted(self._t, at, side="right")) - 1
                self.show(last)
            before = now


def _alike(placed):
    """Numbers of shapes of the same kind and size, which are sent as one batch."""
    groups = {}
    for i, (kind, size, _, surface, body) in enumerate(placed):
        geometry = () if surface is None else tuple(array.tobytes() for array in surface)
        groups.setdefault((kind, *size, *geometry, body < 0), []).append(i)
    return list(groups.values())


def _batch(scene, placed, chosen, world_poses):
    """(numbers of the shapes, handle of their meshes)."""
    # one mesh, drawn at the poses of all shapes that are alike
    kind, size, _, surface, _ = placed[chosen[0]]
    box = limits(placed, world_poses)
    corners, faces = mesh(kind, size, max(np.ptp(box, axis=0).max(), 1e-9), surface)
    triangles = np.concatenate([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])
    every = colours(placed)
    handle = scene.add_batched_meshes_simple(
        f"/{kind}/{chosen[0]}",
        corners.astype(np.float32),
        triangles.astype(np.uint32),
        batched_wxyzs=world_poses[0, chosen, 3:].astype(np.float32),
        batched_positions=world_poses[0, chosen, :3].astype(np.float32),
        batched_colors=np.array([[int(every[i][k : k + 2], 16) for k in (1, 3, 5)] for i in chosen], np.uint8),
        opacity=0.25 if kind in SEE_THROUGH else None,
        side="double",
    )
    return np.array(chosen), handle
