"""Pictures of rigid bodies: corners lie on the surfaces of the shapes, where the bodies are; the browser's scene is sent what is shown."""

import re
import socket
import subprocess
import sys
import types
import urllib.request

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.animation import FFMpegWriter
from PIL import Image

import nsds
from nsds.model import shapes
from nsds.pictures import plotting, scenes, viewing

mpl.use("Agg")

SOLIDS = [
    shapes.sphere(0.3),
    shapes.box([0.2, 0.4, 0.6]),
    shapes.capsule(0.2, 0.5),
    shapes.cylinder(0.4, 0.3),
    shapes.cone(0.4, 0.6),
    shapes.tube(0.5, 0.8),
]


def distance(kind, size, x):
    """Signed distance of points (n, 3) to the surface of a shape, in its axes; zero on it."""
    r, length, _ = size
    across = np.hypot(x[:, 0], x[:, 1])
    if kind == "sphere":
        return np.linalg.norm(x, axis=1) - r
    if kind == "box":
        return (abs(x) - size / 2).max(axis=1)
    if kind == "capsule":
        return np.hypot(across, np.maximum(abs(x[:, 2]) - length / 2, 0)) - r
    if kind == "tube":
        return across - r
    if kind == "cone":
        return np.maximum(-length / 4 - x[:, 2], (across * length + r * (x[:, 2] - 0.75 * length)) / np.hypot(r, length))
    return np.maximum(across - r, abs(x[:, 2]) - length / 2)


@pytest.mark.parametrize("shape", SOLIDS, ids=lambda shape: shape["shape"])
def test_corners_lie_on_the_surface_and_faces_look_outwards(shape):
    corners, faces = scenes.mesh(shape["shape"], shape["size"], 1.0)
    np.testing.assert_allclose(distance(shape["shape"], shape["size"], corners), 0, atol=1e-12)
    quads = corners[faces]
    normal = np.cross(quads[:, 2] - quads[:, 0], quads[:, 3] - quads[:, 1])
    outwards = (normal * quads.mean(axis=1)).sum(axis=1)
    assert (-outwards if shape["shape"] == "tube" else outwards).min() >= -1e-12


@pytest.mark.parametrize("shape", [s for s in SOLIDS if s["shape"] != "tube"], ids=lambda shape: shape["shape"])
def test_meshes_are_closed_and_have_nearly_the_volume_of_the_shape(shape):
    corners, faces = scenes.mesh(shape["shape"], shape["size"], 1.0)
    triangles = corners[np.concatenate([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])]
    volume = np.linalg.det(triangles).sum() / 6  # the divergence theorem holds for closed surfaces only
    np.testing.assert_allclose(volume, shapes.volume(shape), rtol=0.06)


def test_shapes_are_placed_in_the_axes_of_their_bodies():
    half = np.sqrt(0.5)
    system = nsds.system(
        post=nsds.rigid_bodies(1.0, 1.0, q=[5, 0, 0, 1, 0, 0, 0], v=np.zeros(6)),
        arm=nsds.rigid_bodies(1.0, 1.0, q=[1, 2, 3, half, 0, 0, half], v=np.zeros(6)),  # a quarter turn about z
    )
    placed = scenes.placed_shapes(system, {"arm": shapes.sphere(0.1, position=[1, 0, 0])})
    assert [body for *_, body in placed] == [1]
    np.testing.assert_allclose(scenes.poses(placed, scenes.positions(system, system))[0], [1, 3, 3, half, 0, 0, half], atol=1e-12)


def test_scene_draws_all_faces_of_solids_and_disks_for_many_balls():
    ax = plotting.scene(nsds.examples.box_stack(n=3))
    (faces,) = ax.collections
    assert faces.get_facecolor().shape == (3 * 6 + 1, 4)
    system = nsds.examples.rotating_drum(n=50)
    surfaces, disks = plotting.scene(system).collections
    assert len(disks.get_offsets()) == 50
    assert len(surfaces.get_facecolor()) == 20 + 2  # the drum and its two caps


def test_scene_draws_the_triangles_of_hulls_and_meshes():
    hull = shapes.convex([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
    slope = shapes.mesh([[0, 0, 0], [2, 0, 1], [2, 2, 1], [0, 2, 0]], [[0, 1, 2], [0, 2, 3]], position=[0, 0, -2])
    system = nsds.system(
        stone=nsds.rigid_bodies(1.0, shapes.inertia(hull, 1.0), q=[0, 0, 2, 1, 0, 0, 0], v=np.zeros(6)),
        contacts=nsds.collisions({"stone": hull}, nsds.newton_impact(0.0), world=[shapes.plane(offset=-3.0), slope]),
    )
    corners, faces = scenes.mesh("convex", hull["size"], 1.0, (hull["vertices"], hull["triangles"]))
    sides = corners[faces[:, :3]]
    assert np.linalg.det(sides).min() > 0  # outwards
    (drawn,) = plotting.scene(system, shapes={"stone": slope}).collections
    assert len(drawn.get_facecolor()) == 8 + 1 + 2 + 2
    placed = scenes.placed_shapes(system)
    np.testing.assert_array_equal(placed[2][3][0], slope["vertices"])
    assert len(viewing._alike(placed)) == 3


def test_scene_names_what_is_wrong():
    with pytest.raises(ValueError, match="no shapes to draw"):
        plotting.scene(nsds.examples.dzhanibekov())
    with pytest.raises(ValueError, match="no part 'bolt' of rigid bodies; there are: nut"):
        plotting.scene(nsds.examples.dzhanibekov(), shapes={"bolt": shapes.sphere(1.0)})
    system = nsds.examples.box_stack(n=2)
    rows = nsds.simulate(system, t_end=0.01, h=1e-3, fields=["boxes.v"])
    with pytest.raises(ValueError, match=r"'boxes\.q' was not recorded"):
        plotting.scene(system, rows[-1])


@pytest.fixture(scope="module")
def tower():
    system = nsds.examples.box_stack(n=2, drop=0.05)
    return system, nsds.simulate(system, t_end=0.2, h=1e-3)


def test_snapshots_show_rows_spaced_evenly(tower):
    figure = plotting.snapshots(*tower, 3)
    assert [ax.get_title() for ax in figure.axes] == ["t = 0 s", "t = 0.1 s", "t = 0.2 s"]


def test_animation_has_its_frames_and_lasts_as_long_as_the_motion(tower, tmp_path):
    path = tmp_path / "tower.gif"
    assert plotting.animate(*tower, path, fps=20, speed=0.5, inches=2, dpi=50) == 9
    with Image.open(path) as picture:
        assert picture.size == (100, 100)
        duration = 0
        for k in range(picture.n_frames):  # frames that are alike are joined
            picture.seek(k)
            duration += picture.info["duration"]
    assert duration == 9 * 50
    with pytest.raises(ValueError, match=r"end in \.gif or \.mp4"):
        plotting.animate(*tower, tmp_path / "tower.avi")


def test_films_in_mp4_are_those_of_ffmpeg(tower, tmp_path, monkeypatch):
    """As many frames as are reported; without the program the message says what to install."""
    if FFMpegWriter.isAvailable():
        path = tmp_path / "tower.mp4"
        assert plotting.animate(*tower, path, fps=20, speed=0.5, inches=2, dpi=50) == 9
        shown = subprocess.run([FFMpegWriter.bin_path(), "-i", path, "-f", "null", "-"], capture_output=True, text=True, check=True).stderr
        assert re.findall(r"frame= *(\d+)", shown)[-1] == "9"
        assert "h264" in shown
        assert "100x100" in shown
    monkeypatch.setitem(mpl.rcParams, "animation.ffmpeg_path", "no-such-program")
    with pytest.raises(ImportError, match=r"animate: films in \.mp4 are written by the program ffmpeg, which was not found: install it"):
        plotting.animate(*tower, tmp_path / "tower.mp4")


def test_frames_are_the_nearest_rows(tower):
    chosen = scenes.frames(tower[1], fps=30, speed=1.0)
    np.testing.assert_allclose(tower[1]["t"][chosen], np.arange(7) / 30, atol=0.5e-3 + 1e-12)


def test_view_without_viser_names_the_command(tower, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install viser"):
        nsds.view(*tower)


class Anything:
    """Takes any call, keeps what is set."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: Anything(value=kwargs.get("initial_value"), **{k: v for k, v in kwargs.items() if "batched" in k})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def test_view_sends_the_poses_of_the_row_that_is_shown(tower, monkeypatch):
    server = Anything(scene=Anything(), gui=Anything(), initial_camera=Anything())
    monkeypatch.setitem(sys.modules, "viser", types.SimpleNamespace(ViserServer=lambda **_: server))
    monkeypatch.setattr(viewing._checks, "require_package", lambda *_: None)
    system, trajectory = tower
    viewer = nsds.view(system, trajectory)
    viewer.show(150)
    (_, boxes), (_, _plane) = viewer._batches
    np.testing.assert_allclose(boxes.batched_positions, trajectory["boxes"]["q"][150, :, :3], rtol=1e-6)
    np.testing.assert_allclose(boxes.batched_wxyzs, trajectory["boxes"]["q"][150, :, 3:], rtol=1e-6, atol=1e-7)
    assert viewer.row == 150
    with pytest.raises(ValueError, match="row must be below 201"):
        viewer.show(201)
    viewer.stop()


def test_view_serves_a_page_plays_and_stops(tower):
    pytest.importorskip("viser")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    viewer = nsds.view(*tower, port=port)
    with urllib.request.urlopen(f"http://127.0.0.1:{viewer.port}", timeout=5) as page:
        assert page.status == 200
    viewer.show(10)
    viewer.play()
    for _ in range(100):
        if viewer.row > 10:
            break
        viewer._stopped.wait(0.05)
    assert viewer.row > 10
    viewer.pause()
    viewer.stop()
