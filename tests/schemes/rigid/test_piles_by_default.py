"""Many contacts by the defaults: what a step owes is met in m/s, rest is kept, a tolerance that is given is met or is INEXACT."""

import numpy as np
import pytest

import nsds
from nsds.model import shapes
from nsds.schemes.memory import Calls, Memory
from nsds.schemes.rigid import problem, rattle
from nsds.schemes.run import preparation
from nsds.status import CONVERGED, INEXACT

G, RADIUS = 9.81, 0.1
UPRIGHT = [1.0, 0, 0, 0]
OWED = 1e-2  # of the velocities that contacts would have without impulses


def spheres(n=75):
    """A loose grid, five by five, that falls by a fiftieth of a radius and settles within walls."""
    i = np.arange(n)
    x, y, layer = i % 5 - 2, i // 5 % 5 - 2, i // 25
    place = RADIUS * np.stack([2.02 * x + 0.3 * (layer % 2), 2.02 * y + 0.2 * (layer % 2), 1.02 + 2.02 * layer], axis=1)
    q = np.concatenate([place, np.tile(UPRIGHT, (n, 1))], axis=1)
    mass, ball, half = 4.0, shapes.sphere(RADIUS), 5.6 * RADIUS
    walls = [shapes.plane()] + [shapes.plane(normal, -half) for normal in ([1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0])]
    return nsds.system(
        gravity=[0, 0, -G],
        balls=nsds.rigid_bodies(mass, shapes.inertia(ball, mass), q=q, v=np.zeros((n, 6)), count=n),
        contacts=nsds.collisions({"balls": ball}, nsds.newton_impact_friction(0.0, 0.3), world=walls),
    )


def tower(n=20, gap=0.0):
    """Cubes of half a metre one upon the other: four contacts each, whose impulses are not unique."""
    edge, mass = 0.5, 12.5
    cube = shapes.box([edge] * 3)
    q = [[0, 0, edge / 2 + (edge + gap) * k + gap, *UPRIGHT] for k in range(n)]
    return nsds.system(
        gravity=[0, 0, -G],
        cubes=nsds.rigid_bodies(mass, shapes.inertia(cube, mass), q=q, v=np.zeros((n, 6)), count=n),
        contacts=nsds.collisions({"cubes": cube}, nsds.newton_impact_friction(0.0, 0.5), world=[shapes.plane()]),
    )


def test_spheres_that_settle_are_solved_to_what_is_owed_and_gain_no_energy():
    system, h = spheres(), 5e-3
    rows = nsds.simulate(system, t_end=120 * h, h=h)
    assert (rows["status"] == CONVERGED).all()
    assert rows["residual"].max() <= OWED
    assert rows["contacts"]["n"].max() > 100
    q, v = rows["balls"]["q"], rows["balls"]["v"]
    energy = 4.0 * (G * q[..., 2] + 0.5 * (v[..., :3] ** 2).sum(axis=-1) + 0.2 * RADIUS**2 * (v[..., 3:] ** 2).sum(axis=-1)).sum(axis=-1)
    assert np.diff(energy).max() <= 1e-3 * (energy[0] - energy[-1])  # what pushes overlaps apart lifts, too
    n, y = rows["contacts"]["n"], rows["contacts"]["y"]
    deepest = [max(0.0, -y[k, : n[k]].min(initial=0.0)) for k in range(len(rows))]
    assert max(deepest) <= 1e-2 * RADIUS


def test_a_tower_stands_where_it_was_drawn():
    """It has more contacts than are solved with a matrix at once: sweeps alone leave it to creep by a tenth of a millimetre."""
    rows = nsds.simulate(tower(), t_end=0.4, h=2e-3)
    assert (rows["status"] == CONVERGED).all()
    q = rows["cubes"]["q"]
    assert abs(q - q[0]).max() <= 2e-6
    assert abs(q - q[50])[50:].max() <= 1e-6  # and not farther later on
    assert abs(rows["cubes"]["v"][2:]).max() <= 1e-4 * G * 2e-3


def test_a_tower_that_comes_to_rest_stays():
    rows = nsds.simulate(tower(gap=1e-4), t_end=0.6, h=2e-3)
    assert (rows["status"] == CONVERGED).all()
    q, v, resting = rows["cubes"]["q"], rows["cubes"]["v"], rows["t"] > 0.3
    turning = 0.5**2 / 6 * (v[..., 3:] ** 2).sum(axis=-1)
    energy = (G * q[..., 2] + 0.5 * (v[..., :3] ** 2).sum(axis=-1) + 0.5 * turning).sum(axis=-1)
    assert energy[-1] < energy[0]
    assert np.ptp(energy[resting]) <= 1e-8 * energy[0]
    assert abs(q[resting][..., :3] - q[resting][0][..., :3]).max() <= 1e-5
    y = rows["contacts"]["y"]
    assert y[resting].min() >= -1e-6


@pytest.mark.parametrize("tol", [1e-6, 1e-3])
def test_a_tolerance_that_is_given_is_met_or_the_step_is_inexact(tol):
    rows = nsds.simulate(tower(), t_end=0.02, h=2e-3, solver=nsds.solvers.solver(tol=tol, max_iter=400), on_failure="continue")
    solved = rows["status"] == CONVERGED
    assert (rows["residual"][solved] <= tol).all()
    assert (rows["status"][~solved] == INEXACT).all()
    assert (rows["residual"][~solved] > tol).all()


def test_a_default_run_is_the_same_in_pieces():
    """What a step costs is counted, so that its bits do not depend on what ran before it."""
    system, h = spheres(), 5e-3
    whole = nsds.simulate(system, t_end=30 * h, h=h)
    half = nsds.restart(system, nsds.simulate(system, t_end=20 * h, h=h)[-1])
    assert (nsds.simulate(half, t_end=30 * h, h=h)[-1]["balls"]["q"] == whole[-1]["balls"]["q"]).all()


def test_a_wall_rests_to_rounding():
    """Bricks in running bond: hundreds of contacts, many of them without load, are found once and kept."""
    brick, law, q = np.array([0.24, 0.12, 0.08]), nsds.newton_impact_friction(0.0, 0.6), []
    for course in range(6):
        q += [[brick[0] * (k + 0.5 * (course % 2)), 0, brick[2] * (course + 0.5), *UPRIGHT] for k in range(5 - course % 2)]
    bodies = nsds.rigid_bodies(4.0, shapes.inertia(shapes.box(brick), 4.0), q=q, v=np.zeros((len(q), 6)), count=len(q))
    contacts = nsds.collisions({"bricks": shapes.box(brick)}, law, world=shapes.plane())
    wall = nsds.system(gravity=[0, 0, -G], bricks=bodies, contacts=contacts)
    rows = nsds.simulate(wall, t_end=0.2, h=2e-3)
    assert (rows["status"] == CONVERGED).all()
    assert rows["contacts"]["n"].min() > 200
    assert rows["residual"].max() <= 1e-6
    assert abs(rows["bricks"]["q"] - q).max() <= 1e-9


def test_what_rolls_without_slip_is_in_motion():
    """By whether velocities at contacts are small a step decides how finely it is solved: those of rolling count, if it meets friction."""
    n, r, omega, h = 70, 0.1, 2.0, 1e-3
    q = np.array([[3 * r * (k % 10), 3 * r * (k // 10), r, *UPRIGHT] for k in range(n)])
    system = nsds.system(
        gravity=[0, 0, -G],
        balls=nsds.rigid_bodies(1.0, 0.4 * r**2, q=q, v=np.tile([omega * r, 0, 0, 0, omega, 0], (n, 1)), count=n),
        contacts=nsds.collisions({"balls": shapes.sphere(r)}, nsds.newton_impact_rolling_friction(0.0, 0.5, 1e-9), world=[shapes.plane()]),
    )
    run = preparation.prepare_run("test", system, h, nsds.rattle(), None, False)[0]
    prepared, mem = run.prepared, run.mem[0]
    memory = Memory(mem, mem.view(np.int64), prepared.work[0], prepared.iwork[0])
    functions, plan = prepared.functions[0], prepared.tables.motion.plan[0]
    rattle.start(0.0, prepared.tables, functions, prepared.options, memory)
    status = rattle.step(h, prepared.tables, Calls(functions, run.solver, run.solver_options), prepared.options, memory)[0]
    assert status == CONVERGED
    speed, slip = problem.contact_speed(plan["w"], n, plan, memory)
    np.testing.assert_allclose(speed, np.sqrt(n) * omega * r, rtol=1e-4)
    assert slip <= 1e-4 * speed


def test_grains_with_rolling_friction_are_solved():
    """Chains of contacts that roll, over which sweeps take the square of their length."""
    r, rng, n = 0.005, np.random.default_rng(2), 100
    x = np.stack(np.meshgrid(np.arange(5), np.arange(5), np.arange(4), indexing="ij"), axis=-1).reshape(-1, 3)[:n]
    place = r * (2.04 * x + [0, 0, 1.01]) + rng.uniform(-0.01, 0.01, (n, 3)) * r
    q, mass = np.concatenate([place, np.tile(UPRIGHT, (n, 1))], axis=1), 1e-3
    grains = nsds.rigid_bodies(mass, shapes.inertia(shapes.sphere(r), mass), q=q, v=np.zeros((n, 6)), count=n)
    law = nsds.newton_impact_rolling_friction(0.0, 0.5, 0.1 * r)
    contacts = nsds.collisions({"grains": shapes.sphere(r)}, law, world=shapes.plane())
    rows = nsds.simulate(nsds.system(gravity=[0, 0, -G], grains=grains, contacts=contacts), t_end=0.05, h=5e-4)
    assert rows["contacts"]["n"].max() > 64
    assert (rows["status"] == CONVERGED).all()
    assert rows["residual"].max() <= OWED


def test_columns_of_grains_that_collapse_are_solved():
    """Beams of five grains, one upon the other: where sweeps and Newton's steps fail a method with a matrix has all its iterations."""
    r, rng, n, i = 0.005, np.random.default_rng(2), 600, np.arange(-4, 5)
    disk = np.stack(np.meshgrid(i, i), axis=-1).reshape(-1, 2) * 2.05 * r
    disk = [at for at in disk if np.hypot(*at) < 6.2 * r]
    x = np.array([(*(at + rng.uniform(-0.02, 0.02, 2) * r), r * (1.02 + 2.05 * k)) for k in range(n) for at in disk][:n])
    q, mass = np.concatenate([x, np.tile(UPRIGHT, (n, 1))], axis=1), 2500 * 4 / 3 * np.pi * r**3
    grains = nsds.rigid_bodies(mass, shapes.inertia(shapes.sphere(r), mass), q=q, v=np.zeros((n, 6)), count=n)
    law = nsds.newton_impact_rolling_friction(0.0, 0.5, 0.1 * r)
    contacts = nsds.collisions({"grains": shapes.sphere(r)}, law, world=shapes.plane())
    system = nsds.system(gravity=[0, 0, -G], grains=grains, contacts=contacts)
    rows = nsds.simulate(system, t_end=46 * 5e-4, h=5e-4, fields=("grains.q",), on_failure="continue")
    assert (rows["status"] == CONVERGED).all()
    assert rows["residual"].max() <= OWED


def test_a_heap_of_disks_with_rolling_friction_is_solved_by_sweeps():
    """As one without: to what is owed, in sweeps whose number is bounded, and without a gain of energy or overlap."""
    r, rng, n, width = 0.01, np.random.default_rng(3), 120, 24
    i = np.arange(n)
    x = r * ((i % width - width / 2) * 2.1 + i // width % 2 + rng.uniform(-0.05, 0.05, n))
    q, mass = np.stack([x, r * (1.05 + 2.1 * (i // width)), 0 * x], axis=1), 0.8
    disks = nsds.planar_bodies(mass, 0.5 * mass * r**2, q=q, v=np.zeros((n, 3)), count=n)
    law = nsds.newton_impact_rolling_friction(0.0, 0.5, 0.1 * r)
    contacts = nsds.collisions({"disks": shapes.disk(r)}, law, world=shapes.half_plane([0, 1], 0.0))
    rows = nsds.simulate(nsds.system(gravity=[0, -G, 0], disks=disks, contacts=contacts), t_end=0.2, h=1e-3)
    assert rows["contacts"]["n"].max() > n
    assert (rows["status"] == CONVERGED).all()
    assert rows["residual"].max() <= OWED
    y, v = rows["disks"]["q"][..., 1], rows["disks"]["v"]
    energy = (G * y + 0.5 * (v[..., :2] ** 2).sum(axis=-1) + 0.25 * r**2 * v[..., 2] ** 2).sum(axis=-1)
    assert np.diff(energy).max() <= 1e-3 * (energy[0] - energy[-1])
    assert rows["contacts"]["y"].min() >= -1e-2 * r


def test_welded_boxes_that_touch_rest():
    """Bodies that are welded together touch the floor alone, which carries their weight; impulses of the welds are not unique."""
    box, mass = shapes.box([0.4, 0.3, 0.3]), 10.0
    place = np.array([(0.4 * i, 0.3 * j, 0.15 + 0.3 * k) for k in range(3) for i in range(2) for j in range(2)])
    n, apart = len(place), abs(place[:, None] - place[None])
    a, b = np.nonzero(np.triu(((apart > 1e-9).sum(-1) == 1) & (apart.max(-1) < 0.45)))
    goods = nsds.rigid_bodies(mass, shapes.inertia(box, mass), q=np.c_[place, np.tile(UPRIGHT, (n, 1))], v=np.zeros((n, 6)), count=n)
    welds = nsds.interaction(nsds.joints.fixed_joint(), nsds.equality(), on=(("goods", a), ("goods", b)))
    contacts = nsds.collisions({"goods": box}, nsds.newton_impact_friction(0.0, 0.5), world=shapes.plane())
    rows = nsds.simulate(nsds.system(gravity=[0, 0, -G], goods=goods, welds=welds, contacts=contacts), t_end=0.05, h=1e-3)
    assert (rows["status"] == CONVERGED).all()
    assert (rows["contacts"]["n"] == 16).all()
    np.testing.assert_allclose(rows["contacts"]["lambda"][1:, :16, 0].sum(axis=1), n * mass * G * 1e-3, rtol=1e-8)
    assert rows["residual"].max() <= 1e-8
    assert abs(rows["goods"]["q"] - rows["goods"]["q"][0]).max() <= 1e-12
    assert abs(rows["welds"]["y"]).max() <= 1e-12
