"""Grains, stones and bricks beside what is published of them: run-out of columns that collapse, limits of arches, towers and overhangs."""

import numpy as np
import pytest

import nsds
from nsds import shapes

_DIAMETER, _GRAVITY = 0.01, 9.81  # m, of grains in the mean; m/s^2


def _open(t, x, state, z, u):
    """The two walls, the last shapes, are there until z[0]."""
    if t > z[0] - 1e-9:
        u[u.size - 2] = u[u.size - 1] = 0.0


def _column(aspect, n, opens):
    """(record, half width) of disks with mu = 1 and e = 0.5 between walls, which are taken away once they have settled."""
    rng = np.random.default_rng(0)
    radius = 0.5 * _DIAMETER * rng.uniform(0.8, 1.2, n)
    # a packing of 0.8 has the aspect ratio; grains begin in loose layers
    half = np.sqrt(np.pi * (radius**2).sum() / (0.8 * 2 * aspect))
    layer = int(2 * half / (1.2 * _DIAMETER))
    cell, place = 2 * half / layer, np.divmod(np.arange(n), layer)
    x = (place[1] + 0.5) * cell - half + rng.uniform(-1, 1, n) * (0.5 * cell - radius)
    q = np.stack([x, 0.6 * _DIAMETER + 1.21 * _DIAMETER * place[0], np.zeros(n)], axis=1)
    mass = 2500.0 * np.pi * radius**2
    system = nsds.system(
        gravity=[0, -_GRAVITY, 0],
        grains=nsds.planar_bodies(mass, 0.5 * mass * radius**2, q=q, v=np.zeros((n, 3))),
        contacts=nsds.collisions(
            {"grains": [[shapes.disk(r)] for r in radius]},
            nsds.newton_impact_friction(e_n=0.5, mu=1.0),
            world=[shapes.half_plane(), shapes.half_plane([1, 0], -half), shapes.half_plane([-1, 0], -half)],
            enabled=np.ones(n + 3, bool),
        ),
        walls=nsds.sampled_control(_open, reads="grains.q", writes="contacts.enabled", z=[opens]),
    )
    return system, half


@pytest.mark.parametrize("aspect", [1.4, 4.0])
def test_columns_of_grains_run_out_by_the_law_of_their_aspect_ratio(aspect):
    """Of two-dimensional columns: 2.5 a half widths for a < 2, and 3.25 a^0.7 beyond (Staron and Hinch, J. Fluid Mech. 545 (2005) 1).

    With mu = 1 and e = 0.5, as there, by a method of the same kind. The heap ends where there is no other grain for three diameters; in one
    of 400 grains, not of thousands, that is uncertain by a quarter.
    """
    opens, h, n = 0.25, 1e-3, 400
    system, half = _column(aspect, n, opens)
    rows = nsds.simulate(system, t_end=1.4, h=h, save_every=50)
    q, _ = nsds.in_plane(rows["grains"])
    # 1. the column as it is when the walls go
    top = np.sort(q[round(opens / h) // 50, :, 1])[-5:].mean()
    a = top / half
    assert a == pytest.approx(aspect, rel=0.15)
    # 2. the heap
    x = np.sort(q[-1, :, 0])
    heap = max(np.split(x, np.flatnonzero(np.diff(x) > 3 * _DIAMETER) + 1), key=len)
    assert heap.size > 0.9 * n
    law = 2.5 * a if a < 2 else 3.25 * a**0.7
    assert 0.5 * (heap[-1] - heap[0]) / half - 1.0 == pytest.approx(law, rel=0.25)
    assert q[-1, :, 1].max() < 0.7 * top
    assert rows["contacts"]["y"].min() > -0.01 * _DIAMETER


@pytest.mark.parametrize(
    ("mu", "thickness", "stands"), [(0.305, 0.25, False), (0.315, 0.25, True), (0.34, 0.15, False), (0.42, 0.15, True)]
)
def test_no_arch_stands_below_the_friction_at_which_its_stones_slide(mu, thickness, stands):
    """Of a semicircle: 0.3092, however thick; up to 0.3958 stones slide and turn, and thickness must be above 0.1074 of the radius.

    Cocchetti and Rizzi, Frattura ed Integrità Strutturale 51 (2020) 356, table 3: from 0.2006 at 0.3092 to 0.1074 at 0.3958.
    """
    rows = nsds.simulate(nsds.examples.masonry_arch(n=25, thickness=thickness, mu=mu), t_end=1.0, h=1e-3, save_every=10)
    q, _ = nsds.in_plane(rows["stones"])
    moved = abs(q[-1] - q[0]).max()
    assert moved < 1e-9 if stands else moved > 1e-2


def _moved(x, gravity, size):
    """Largest displacement within 2 s of bricks on each other, with their centres at x."""
    brick, n = shapes.rectangle(size), len(x)
    q = np.stack([x, size[1] * (np.arange(n) + 0.5), np.zeros(n)], axis=1)
    system = nsds.system(
        gravity=gravity,
        bricks=nsds.planar_bodies(1.0, shapes.inertia(brick, 1.0), q=q, v=np.zeros((n, 3))),
        contacts=nsds.collisions({"bricks": brick}, nsds.newton_impact_friction(e_n=0.0, mu=0.7), world=shapes.half_plane()),
    )
    q, _ = nsds.in_plane(nsds.simulate(system, t_end=2.0, h=1e-3, save_every=50)["bricks"])
    return abs(q[-1] - q[0]).max()


@pytest.mark.parametrize(("part", "stands"), [(0.99, True), (1.01, False)])
def test_towers_and_overhangs_stand_up_to_their_limits(part, stands):
    """A tower of n cubes up to a slope of 1 / n; bricks up to overhangs of 1 / (2 k) of the k-th from the top, whose sum is harmonic.

    Paterson and Zwick, Overhang, Amer. Math. Monthly 116 (2009) 19.
    """
    n, slope = 5, np.arctan(part / 5)
    tower = _moved(np.zeros(n), [_GRAVITY * np.sin(slope), -_GRAVITY * np.cos(slope), 0.0], [0.1, 0.1])
    overhang = _moved(np.cumsum([0.0, *(part * 0.1 / k for k in range(n, 0, -1))]), [0.0, -_GRAVITY, 0.0], [0.2, 0.05])
    for moved in (tower, overhang):
        assert moved < 1e-9 if stands else moved > 1.0
