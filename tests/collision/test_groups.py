"""Which shapes are looked at with each other, of however many parts."""

import numpy as np
import pytest

import nsds
from nsds import shapes
from nsds.collision.groups import groups_meet, kinds_that_meet, mask_of, meeting

BALL, HIT = shapes.sphere(0.1), nsds.newton_impact(0.0)


@pytest.mark.parametrize("n", [1, 2, 10, 11, 62, 63, 64, 65, 200])
def test_a_mask_says_what_its_matrix_says(n):
    some = np.random.default_rng(n).random((n, n)) < 0.5
    meets = some | some.T
    mask = mask_of(meets)
    assert mask.dtype == np.int64
    assert mask.size == -(-n * (n + 1) // 128)
    assert np.array_equal(meeting(mask, n), meets)
    for a, b in np.random.default_rng(0).integers(n, size=(50, 2)):
        assert bool(groups_meet(a, b, mask)) == meets[a, b]


def test_kinds_that_meet_are_those_of_two_shapes_on_different_bodies_whose_groups_meet():
    rng = np.random.default_rng(5)
    for _ in range(20):
        ns, n_groups = 12, int(rng.integers(1, 70))
        kind, body, group = rng.integers(0, 6, size=ns), rng.integers(-1, 4, size=ns), rng.integers(0, n_groups, size=ns)
        some = rng.random((n_groups, n_groups)) < 0.2
        meets = some | some.T
        expected = {
            (min(kind[a], kind[b]), max(kind[a], kind[b]))
            for a in range(ns)
            for b in range(ns)
            if body[a] != body[b] and meets[group[a], group[b]]
        }
        assert kinds_that_meet(kind, body, group, mask_of(meets)) == expected


def dropped(n, pairs=None, flat=False):
    """n balls, or disks, under names of their own, dropped from 0.2 m."""
    if flat:
        bodies = {f"b{i}": nsds.planar_bodies(1.0, 1.0, q=[i, 0.2, 0], v=[0] * 3) for i in range(n)}
        shape, floor, gravity = shapes.disk(0.1), shapes.half_plane(), [0, -9.81, 0]
    else:
        bodies = {f"b{i}": nsds.rigid_bodies(1.0, 1.0, q=[i, 0, 0.2, 1, 0, 0, 0], v=[0] * 6) for i in range(n)}
        shape, floor, gravity = BALL, shapes.plane(), [0, 0, -9.81]
    contacts = nsds.collisions(dict.fromkeys(bodies, shape), HIT, world=floor, pairs=pairs)
    return nsds.system(gravity=gravity, **bodies, floor=contacts)


@pytest.mark.parametrize("scheme", [nsds.moreau_jean(), nsds.moreau_jean_combined_projection(), nsds.rattle()], ids=lambda s: s["scheme"])
@pytest.mark.parametrize("flat", [False, True], ids=["space", "plane"])
def test_scenes_of_any_number_of_parts_lie_on_their_floor(scheme, flat):
    for n in (63, 130):
        rows = nsds.simulate(dropped(n, flat=flat), t_end=0.2, h=5e-3, scheme=scheme, save_every=40)
        heights = np.array([rows[f"b{i}"]["q"][-1, 1 if flat else 2] for i in range(n)])
        assert abs(heights - 0.1).max() < 1e-2  # h v


def test_a_chain_of_parts_meets_all_but_neighbours():
    """70 balls in a row that overlap their neighbours, which they are not looked at with: each has a set of partners of its own."""
    n = 70
    bodies = {f"b{i}": nsds.rigid_bodies(1.0, 1.0, q=[0.15 * i, 0, 0, 1, 0, 0, 0], v=[0] * 6) for i in range(n)}
    apart = [(f"b{i}", f"b{j}") for i in range(n) for j in range(i + 2, n)]
    free = nsds.system(**bodies, contacts=nsds.collisions(dict.fromkeys(bodies, BALL), HIT, pairs=apart))
    assert nsds.simulate(free, t_end=1e-2, h=1e-2)["contacts"]["n"].max() == 0
    linked = nsds.system(**bodies, contacts=nsds.collisions(dict.fromkeys(bodies, BALL), HIT, pairs=[*apart, ("b68", "b69")]))
    with pytest.warns(UserWarning, match="overlaps at the start"):
        rows = nsds.simulate(linked, t_end=1e-2, h=1e-2)["contacts"]
    assert rows["n"][-1] == 1
    assert (rows["a"][-1, 0], rows["b"][-1, 0]) == (68, 69)


def test_a_record_with_groups_that_its_mask_does_not_have_is_refused():
    system = dropped(3)
    system["floor"]["group"][1] = 11
    with pytest.raises(ValueError, match=r"floor\.mask must have bits for all pairs of groups up to group 11"):
        nsds.simulate(system, t_end=1e-2, h=1e-2)


@pytest.mark.parametrize("name", ["t", "t0", "step", "status", "n_iter", "residual", "model", "gravity"])
def test_a_part_with_a_name_that_is_taken_is_told_so(name):
    body = nsds.rigid_bodies(1.0, 1.0, q=[0, 0, 0, 1, 0, 0, 0], v=[0] * 6)
    with pytest.raises(ValueError, match=f"the name '{name}' is taken"):
        nsds.system(**{name: body})
    with pytest.raises(ValueError, match=f"the name '{name}' is taken"):
        nsds.system(ball=body, **{name: nsds.collisions({"ball": BALL}, HIT)})
