"""Impulses at hand that solve a problem of contacts: judged without its matrix as with it, and kept by what rests."""

import numpy as np
import pytest

import nsds
from nsds.schemes.memory import Calls, Memory
from nsds.schemes.rigid import guess, problem, rattle
from nsds.schemes.run import preparation
from nsds.solvers.contact import forms, signature

H, GRAVITY = 1e-3, 9.81
FRICTION, ROLLING = nsds.newton_impact_friction(0.0, 0.4), nsds.newton_impact_rolling_friction(0.0, 0.4, 0.01)


def _stack(law, masses=(1.0, 0.1, 3.0), inertias=(0.1, 0.02, 0.3)):
    """Boxes on the ground and on each other, each turned about the vertical."""
    parts = {}
    for i, (mass, inertia) in enumerate(zip(masses, inertias, strict=True)):
        q = [0, 0, 0.4 + 0.8 * i, np.cos(0.3 * i), 0, 0, np.sin(0.3 * i)]
        parts[f"box{i}"] = nsds.rigid_bodies(mass, np.diag([1.0, 0.8, 0.7]) * inertia, q=q, v=np.zeros(6))
    contacts = nsds.collisions(dict.fromkeys(parts, nsds.shapes.box([0.8, 0.8, 0.8])), law, world=nsds.shapes.plane())
    return nsds.system(gravity=[0, 0, -GRAVITY], **parts, contacts=contacts)


def _after_a_step(system):
    """(contacts, tables, memory) after the first step by RATTLE."""
    run = preparation.prepare_run("test", system, H, nsds.rattle(), None, False)[0]
    prepared, mem = run.prepared, run.mem[0]
    memory = Memory(mem, mem.view(np.int64), prepared.work[0], prepared.iwork[0])
    rattle.start(0.0, prepared.tables, prepared.functions[0], prepared.options, memory)
    calls = Calls(prepared.functions[0], run.solver, run.solver_options)
    status = rattle.step(H, prepared.tables, calls, prepared.options, memory)[0]
    assert status == nsds.status.CONVERGED
    return int(run.records[0]["contacts"]["n"]), prepared.tables.motion, memory


def _matrix(n, p, work, iwork):
    """(W, q) of n contacts by its definition, from frames, levers and inverses in the work memory, after forces of a step. Out: w_free."""
    d, m = p["d"], p["n_bodies"]
    work[p["w_free"] :][: 6 * m] = np.tile([0.0, 0.0, -H * GRAVITY, 0.0, 0.0, 0.0], m)
    A, J = np.zeros((6 * m, 6 * m)), np.zeros((d * n, 6 * m))
    for i in range(m):
        inverse = work[p["inverse"] + 10 * i :][:10]
        A[6 * i : 6 * i + 3, 6 * i : 6 * i + 3] = inverse[0] * np.eye(3)
        A[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] = inverse[1:].reshape(3, 3)
    for c in range(n):
        axes = work[p["frame"] + 9 * c :][:9].reshape(3, 3)
        for side, sign in ((0, 1.0), (1, -1.0)):
            body, lever = iwork[p["body"] + 2 * c + side], work[p["lever"] + 6 * c + 3 * side :][:3]
            if body >= 0:
                J[d * c : d * c + 3, 6 * body : 6 * body + 3] = sign * axes
                J[d * c : d * c + 3, 6 * body + 3 : 6 * body + 6] = sign * np.cross(lever, axes)
                if d == 5:  # moments, in units of forces
                    J[d * c + 3 : d * c + 5, 6 * body + 3 : 6 * body + 6] = sign * work[p["axes"] + 6 * c :][:6].reshape(2, 3)
    return J @ A @ J.T, J @ work[p["w_free"] :][: 6 * m] + work[p["b"] :][: d * n]


@pytest.mark.parametrize("law", [FRICTION, ROLLING])
@pytest.mark.parametrize("off", [0.0, 1e-9, 1e-3])
def test_the_error_without_a_matrix_bounds_the_merit_of_the_problem(law, off):
    n, tables, memory = _after_a_step(_stack(law))
    work, iwork = memory.work, memory.iwork
    p = tables.plan[0]
    d = p["d"]
    r, rng = work[p["r"] :][: d * n], np.random.default_rng(0)
    r *= 1.0 + off * rng.uniform(-1.0, 1.0, r.size)
    W, q = _matrix(n, p, work, iwork)
    problem.total_impulse(n, 0, p, memory)
    error, _ = guess.error(1.0, n, tables.collisions, p, memory)
    row, column, blocks = forms.block_rows(W, d)
    disk, mu, u = iwork[p["disk"] :][:n], work[p["mu"] :][: 2 * n], np.zeros(d * n)
    merit = signature.merit(False, signature.Problem(disk, mu, row, column, blocks, q), r.copy(), u)
    assert n == 20  # boxes turned against each other have eight
    assert work[p["u"] :][: d * n] == pytest.approx(u, abs=1e-13)
    rounding = 1e-13
    assert merit - rounding <= error <= 10.0 * merit + rounding
    assert (error <= 1e-10) == (off == 0.0)


def test_what_rests_keeps_its_impulses():
    """Errors of one solution do not add up from step to step: impulses change now and then, and velocities do not grow."""
    rows = nsds.simulate(_stack(FRICTION, (1.0,), (0.1,)), t_end=1.5, h=H)
    assert (rows["status"] == nsds.status.CONVERGED).all()
    assert abs(rows["box0"]["v"][100:]).max() < 1e-11
    impulses = rows["contacts"]["lambda"][500:].reshape(1001, -1)
    assert (np.diff(impulses, axis=0) != 0.0).any(axis=1).mean() < 0.05


def _tower(n):
    """n cubes on each other."""
    cubes = nsds.rigid_bodies(100.0, 100.0 / 24, q=[[0, 0, 0.25 + 0.5 * i, 1, 0, 0, 0] for i in range(n)], v=np.zeros((n, 6)), count=n)
    contacts = nsds.collisions({"cubes": nsds.shapes.box([0.5, 0.5, 0.5])}, FRICTION, world=nsds.shapes.plane())
    return nsds.system(gravity=[0, 0, -GRAVITY], cubes=cubes, contacts=contacts)


@pytest.mark.parametrize("n", [10, 20])
def test_towers_keep_their_impulses(n):
    """Neither their matrix nor that of their bodies is needed in most steps, few contacts or many, and they rest to rounding."""
    rows = nsds.simulate(_tower(n), t_end=0.5, h=H)
    assert (rows["status"] == nsds.status.CONVERGED).all()
    assert rows["residual"].max() < 1e-6
    assert abs(rows["cubes"]["q"] - rows["cubes"]["q"][0]).max() < 1e-10
    impulses = rows["contacts"]["lambda"][100:].reshape(401, -1)
    assert (np.diff(impulses, axis=0) != 0.0).any(axis=1).mean() < 0.2


def test_the_rounding_of_a_tower_is_not_that_of_all_its_contacts():
    """A velocity has the rounding of the impulses on its two bodies, whatever acts on others, so that 1e-10 can be judged."""
    n, tables, memory = _after_a_step(_tower(12))
    work, p = memory.work, tables.plan[0]
    work[p["w_free"] :][: 6 * p["n_bodies"]] = np.tile([0.0, 0.0, -H * GRAVITY, 0.0, 0.0, 0.0], p["n_bodies"])
    problem.total_impulse(n, 0, p, memory)
    assert n == 48
    assert guess.error(1e-10, n, tables.collisions, p, memory)[0] < 1e-10
    assert guess.error(1e-15, n, tables.collisions, p, memory)[0] == np.inf


@pytest.mark.parametrize("height", [20, 40])
def test_what_a_tower_carries_is_not_handed_on_box_by_box(height):
    """Without any impulses of a step before, iterations do not grow with the height."""
    q = np.tile([0, 0, 0, 1.0, 0, 0, 0], (height, 1))
    q[:, 2] = 0.4 + 0.8 * np.arange(height)
    boxes = nsds.rigid_bodies(1.0, 0.1 * np.eye(3), q=q, v=np.zeros((height, 6)), count=height)
    contacts = nsds.collisions({"boxes": nsds.shapes.box([0.8, 0.8, 0.8])}, FRICTION, world=nsds.shapes.plane())
    system = nsds.system(gravity=[0, 0, -GRAVITY], boxes=boxes, contacts=contacts)
    n, tables, memory = _after_a_step(system)
    run, p = preparation.prepare_run("test", system, H, nsds.rattle(), None, False)[0], tables.plan[0]
    r, groups = memory.work[p["r"] :][: 3 * n], memory.iwork[p["groups"] :][:3]
    r[:], memory.work[p["w_free"] :][: 6 * height] = 0.0, np.tile([0.0, 0.0, -H * GRAVITY, 0.0, 0.0, 0.0], height)
    assert n == 4 * height
    assert problem._solve_as_owed(n, groups, False, tables, run.solver, run.solver_options, memory) == nsds.status.CONVERGED
    assert 0 < memory.work[p["info"]] <= 10
    np.testing.assert_allclose(r.reshape(n, 3)[:, 0].sum(), H * GRAVITY * height * (height + 1) / 2, rtol=1e-6)
