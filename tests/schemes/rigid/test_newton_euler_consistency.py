"""Starts of rigid bodies made consistent: joints closed, velocities that they allow, bodies that do not overlap."""

import numpy as np
import pytest

import nsds
from nsds.model import joints, shapes

GRAVITY = [0, 0, -9.81]


def four_bar():
    """Three rods between two hinges: the hinges about parallel axes are redundant, and the loop is open by a centimetre."""
    ends = np.array([[0, 0, 0], [0, 0, 1.0], [2.0, 0, 1.5], [2.0, 0, 0]])
    parts = {}
    for i, name in enumerate("abc"):
        x = (ends[i] + ends[i + 1]) / 2
        angle = -np.arctan2(*(ends[i + 1] - ends[i])[[2, 0]])
        parts[name] = nsds.rigid_bodies(
            1.0 + i, [0.1, 0.2, 0.3], q=[*x, np.cos(angle / 2), 0, np.sin(angle / 2), 0], v=[1.0, 0, -0.5, 0.1, 1.0, 0.2], fext=GRAVITY
        )
    sides = ("a", ("a", "b"), ("b", "c"), "c")
    hinges = {f"hinge_{i}": nsds.interaction(joints.hinge(ends[i], [0, 1, 0]), nsds.equality(), on=side) for i, side in enumerate(sides)}
    system = nsds.system(**parts, **hinges)
    system["b"]["q"] += [0.01, 0.005, -0.01, 0, 0, 0.005, 0]
    system["b"]["q"][3:] /= np.linalg.norm(system["b"]["q"][3:])
    return system


def residuals(record):
    names = [name for name in record.dtype.names if name.startswith("hinge")]
    return tuple(max(abs(record[name][field]).max() for name in names) for field in ("y", "ydot"))


def test_a_loop_is_closed_and_moves_as_its_hinges_allow():
    system = four_bar()
    before = system.copy()
    mended = nsds.consistent(system)
    assert system.tobytes() == before.tobytes()
    y, ydot = residuals(mended)
    assert y <= 1e-10
    assert ydot <= 1e-11
    assert all(abs(mended[name]["q"] - system[name]["q"]).max() < 0.03 for name in "abc")
    assert all(abs(np.linalg.norm(mended[name]["q"][3:]) - 1) < 1e-15 for name in "abc")
    again = nsds.consistent(mended)
    for name in "abc":
        np.testing.assert_allclose(again[name]["q"], mended[name]["q"], rtol=0, atol=1e-15)
        np.testing.assert_allclose(again[name]["v"], mended[name]["v"], rtol=0, atol=1e-13)
    rows = nsds.simulate(mended, t_end=0.1, h=1e-3, scheme=nsds.moreau_jean_direct_projection(constraint_tol=1e-10))
    assert abs(rows["a"]["v"][1] - rows["a"]["v"][0]).max() < 0.1  # nothing jumps


def test_velocities_change_as_by_impulses_of_the_joints():
    """``M dv`` is a combination of rows of H: it does no work on motions that the joints allow, and loses energy."""
    system = four_bar()
    placed = nsds.consistent(system)
    for name in "abc":
        placed[name]["v"] = system[name]["v"]
    moved = nsds.consistent(placed)

    def product(v, w):
        masses = [np.concatenate([np.full(3, placed[name]["mass"]), np.diag(placed[name]["inertia"])]) for name in "abc"]
        return sum((m * a[name]["v"] * b[name]["v"]).sum() for m, name, a, b in zip(masses, "abc", [v] * 3, [w] * 3, strict=True))

    assert product(placed, moved) == pytest.approx(product(moved, moved), rel=1e-10)  # (v - v') M v' = 0
    assert product(moved, moved) < product(placed, placed)


def test_what_overlaps_is_pushed_apart_and_listed():
    ball = shapes.sphere(0.1)
    q = np.zeros((3, 7))
    q[:, 2], q[:, 3] = [0.05, 0.22, 0.4], 1
    system = nsds.system(
        balls=nsds.rigid_bodies(1.0, 0.004, q=q, v=np.zeros((3, 6)), fext=GRAVITY),
        contacts=nsds.collisions({"balls": ball}, nsds.newton_impact_friction(0.0, 0.3), world=shapes.plane(), capacity=1),
    )
    mended = nsds.consistent(system)
    np.testing.assert_allclose(mended["balls"]["q"][:, 2], [0.1, 0.3, 0.5], rtol=0, atol=1e-9)
    assert mended["contacts"]["n"] == 3
    assert abs(mended["contacts"]["y"][:3]).max() <= 1e-10


def test_drives_and_ensembles():
    system = nsds.system(
        wheel=nsds.rigid_bodies(1.0, 2.0, q=[0, 0, 0.1, 1, 0, 0, 0], v=[0, 1.0, 0, 0, 0, 5.0]),
        hinge=nsds.interaction(joints.hinge([0, 0, 0.1], [0, 0, 1]), nsds.equality(), on="wheel"),
        drive=nsds.interaction(nsds.prescribed_velocity([5], [3.0]), nsds.equality(), on="wheel"),
    )
    members = np.repeat(system, 2)
    members["wheel"]["q"][1, 2] = 0.3
    mended = nsds.consistent(members)
    np.testing.assert_allclose(mended["wheel"]["q"][:, 2], 0.1, rtol=0, atol=1e-10)
    np.testing.assert_allclose(mended["wheel"]["v"], [[0, 0, 0, 0, 0, 3.0]] * 2, rtol=0, atol=1e-12)


def test_what_cannot_be_mended_is_refused():
    wheel = nsds.rigid_bodies(1.0, 2.0, q=[0, 0, 0, 1, 0, 0, 0], v=np.zeros(6))
    drives = {f"drive_{k}": nsds.interaction(nsds.prescribed_velocity([5], [speed]), nsds.equality(), on="wheel") for k, speed in
              enumerate((3.0, 4.0))}  # fmt: skip
    with pytest.raises(ValueError, match="consistent: "):
        nsds.consistent(nsds.system(wheel=wheel, **drives))
