"""Bodies of finite elements with friction: a block against the law and a global twin, two cylinders against Cattaneo and Mindlin."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import nsds
from nsds.schemes.lagrangian.moreau_jean import prepare
from nsds.schemes.linear_algebra import FRONTS
from nsds.schemes.table import chosen, solver_of
from tests.schemes.lagrangian.elastic_blocks import elastic_block

relation, friction = nsds.lagrangian_linear_relation, nsds.newton_impact_friction


# ---------------------------------------------------------------------------------------- a block, pressed on a plane and sheared
H, MU, THETA = 2e-3, 0.4, 1.0


def block(cells, stretch=1.0):
    """(record, M, K, C, force, H) of a cube on a plane, each node of its lower face a contact, normal first."""
    points, M, K = elastic_block([np.linspace(0.0, stretch, cells + 1)] * 3, E=1e4, density=1.0)
    C = 2e-3 * K
    bottom, top = np.flatnonzero(points[:, 2] == 0.0), np.flatnonzero(points[:, 2] == stretch)
    rows = np.arange(3 * bottom.size)
    jacobian = sp.csr_array((np.ones(rows.size), (rows, (3 * bottom[:, None] + [2, 0, 1]).reshape(-1))), shape=(rows.size, 3 * len(points)))
    force = np.zeros((len(points), 3))
    force[top] = np.array([30.0, 3.0, -100.0]) / top.size
    rest = np.zeros(force.size)
    record = nsds.system(
        block=nsds.lagrangian_linear(M=M, K=K, C=C, fext=force.reshape(-1), q=rest, v=rest),
        floor=nsds.interaction(relation(H=jacobian), friction(e_n=0.0, mu=MU, dimension=3), on="block"),
    )
    return record, M, K, C, force.reshape(-1), jacobian


def on_cone(r):
    """Projection of impulses (n, 3) on Coulomb's cone, the normal component first."""
    normal, size = r[:, 0], np.linalg.norm(r[:, 1:], axis=1)
    height = np.clip((normal + MU * size) / (1 + MU**2), 0.0, None)
    inside = size <= MU * normal
    scale = np.where(inside, 1.0, MU * height / np.where(size > 0, size, 1.0))
    return np.column_stack([np.where(inside, normal, height), scale[:, None] * r[:, 1:]])


def global_step(M, K, C, force, jacobian, q, v):
    """(v, r) at the end of a step from the equation of momentum of all coordinates, without W, by accelerated projections."""
    M_hat = M + H * THETA * C + (H * THETA) ** 2 * K
    factors = splu(M_hat.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    momentum = M_hat @ v + H * (force - C @ v - K @ (q + H * THETA * v))
    x = np.random.default_rng(0).normal(size=jacobian.shape[0])
    for _ in range(30):
        x = jacobian @ factors.solve(jacobian.T @ (x / np.linalg.norm(x)))
    rho, r, s, t = 0.9 / np.linalg.norm(x), np.zeros(jacobian.shape[0]), np.zeros(jacobian.shape[0]), 1.0
    for _ in range(4000):
        v = factors.solve(momentum + jacobian.T @ s)
        u = (jacobian @ v).reshape(-1, 3)
        u[:, 0] += MU * np.linalg.norm(u[:, 1:], axis=1)
        following = on_cone(s.reshape(-1, 3) - rho * u).reshape(-1)
        t = 1.0 if np.dot(s - following, following - r) > 0 else 0.5 + math.sqrt(0.25 + t * t)
        s, r, moved = following + (t - 1) / t * (following - r) * (t > 1), following, abs(following - r).max()
        if moved < 1e-13 * abs(r).max():
            break
    return factors.solve(momentum + jacobian.T @ r), r


def assert_law(rows, M, K, C, force, jacobian, tol):
    """Each step satisfies the equation of momentum and Coulomb's law, in units of the largest velocity and impulse."""
    M_hat = M + H * THETA * C + (H * THETA) ** 2 * K
    for k in range(1, len(rows)):
        q, v = rows["block"]["q"][k - 1], rows["block"]["v"][k - 1]
        new, r = rows["block"]["v"][k], rows["floor"]["lambda"][k]
        size = abs(H * force).max() + abs(r).max()
        assert abs(M_hat @ (new - v) - H * (force - C @ v - K @ (q + H * THETA * v)) - jacobian.T @ r).max() < tol * size
        u, r, scale = (jacobian @ new).reshape(-1, 3), r.reshape(-1, 3), abs(new).max()
        slip, held = np.linalg.norm(u[:, 1:], axis=1), np.linalg.norm(r[:, 1:], axis=1)
        assert u[:, 0].min() > -tol * scale
        assert (abs(u[:, 0] * r[:, 0]) < tol * scale * size).all()
        assert (held <= (1 + tol) * MU * r[:, 0] + tol * size).all()
        assert (abs(slip * (MU * r[:, 0] - held)) < tol * scale * size).all()
        assert (np.sum(u[:, 1:] * r[:, 1:], axis=1) <= -slip * held + tol * scale * size).all()


def zones(impulse):
    """(which contacts press, which of them slide)."""
    impulse = impulse.reshape(-1, 3)
    presses = impulse[:, 0] > 1e-9 * impulse[:, 0].max()
    return presses, presses & (np.linalg.norm(impulse[:, 1:], axis=1) > (1 - 1e-7) * MU * impulse[:, 0])


@pytest.mark.parametrize(("cells", "steps"), [(5, 12), (14, 8)])
def test_a_block_that_is_pressed_and_sheared_has_zones_that_stick_and_slide(cells, steps):
    """648 and 10 125 unknowns: the law, and the last step again by the global twin, from no impulses."""
    record, *model = block(cells)
    rows = nsds.simulate(record, t_end=steps * H, h=H, scheme=nsds.moreau_jean(theta=THETA), solver=nsds.solvers.solver(tol=1e-12))
    assert_law(rows, *model, 1e-9)
    presses, slides = zones(rows["floor"]["lambda"][-1])
    assert slides.any()
    assert (presses & ~slides).any()
    v, r = global_step(*model, rows["block"]["q"][-2], rows["block"]["v"][-2])
    assert abs(v - rows["block"]["v"][-1]).max() < 1e-8 * abs(v).max()
    assert abs(r - rows["floor"]["lambda"][-1]).max() < 1e-8 * abs(r).max()


def test_reduced_and_global_form_agree():
    record, *_ = block(2)
    runs = [
        nsds.simulate(record, t_end=6 * H, h=H, scheme=nsds.moreau_jean(theta=THETA, form=form), solver=nsds.solvers.solver(tol=1e-12))
        for form in ("reduced", "global")
    ]
    for field in ("q", "v"):
        reduced, whole = (rows["block"][field] for rows in runs)
        assert abs(reduced - whole).max() < 1e-8 * abs(whole).max()


def test_the_inverse_at_contacts_is_at_hand():
    """W of a mesh comes from the inverse that is kept, and equals H M_hat^-1 H^T by a library's factors."""
    record, M, K, C, _, jacobian = block(6)
    _, options = chosen(nsds.moreau_jean(theta=THETA), record.reshape(1))
    method, *_ = solver_of(None, record.reshape(1))
    prepared = prepare(record.reshape(1), None, options, H, method)
    tables, work, iwork = prepared.tables, prepared.work[0], prepared.iwork[0]
    assert tables.operators["kind"][0] == FRONTS
    assert iwork[tables.operators["index"][0] + 1] == jacobian.shape[0]
    W = np.zeros((jacobian.shape[0],) * 2)
    row = np.repeat(np.arange(len(W)), np.diff(tables.W_row))
    W[row, tables.W_column] = work[tables.plan["W"][0] :][: row.size]
    wanted = jacobian @ splu((M + H * THETA * C + (H * THETA) ** 2 * K).tocsc()).solve(jacobian.T.toarray())
    np.testing.assert_allclose(W, wanted, rtol=0, atol=1e-12 * abs(wanted).max())


def test_contacts_of_a_mesh_that_is_pressed_slowly_stay_closed():
    """Nothing but what lies above presses a node on the ground, and rounding of its gap must not let it fall."""
    _, *model = block(3)

    def ramp(t, z, out):
        for i in range(out.size):
            out[i] = t * z[i]

    jacobian = model[-1]
    pressure = np.where(np.arange(192) % 3 == 2, model[3], 0.0)
    part = nsds.lagrangian_linear(M=model[0], K=model[1], C=model[2], fext=ramp, z=pressure, q=np.zeros(192), v=np.zeros(192))
    floor = nsds.interaction(relation(H=jacobian), friction(e_n=0.0, mu=MU, dimension=3), on="block")
    system = nsds.system(block=part, floor=floor)
    rows = nsds.simulate(system, t_end=0.1, h=H, scheme=nsds.moreau_jean(theta=THETA))
    assert rows["floor"]["active"][1:, ::3].all()
    assert abs(rows["floor"]["y"][:, ::3]).max() < 1e-12
    again = nsds.simulate(nsds.restart(system, rows[20]), t_end=0.1, h=H, scheme=nsds.moreau_jean(theta=THETA))
    np.testing.assert_array_equal(again["block"]["q"][-1], rows["block"]["q"][-1])


# ------------------------------------------------------------------------------------ two like cylinders, pressed and then sheared
WIDTH, RADIUS, SLIDING = 0.1, 1.0, 0.5  # of the contact, half of it and about; curvature of the gap; friction
YOUNGS_MODULUS, POISSON = 1.0, 0.3
APPROACH, SHIFT = 0.02, 0.01


def press_and_shear(t, z, out):
    n = out.size
    for i in range(n):
        out[i] = min(t, 1.0) * z[i] + max(t - 1.0, 0.0) * z[n + i]


def graded(fine, n, ratio, end=2.0):
    """Places from 0 to beyond end: n steps of equal size, then growing ones."""
    places = list(fine * np.arange(n + 1))
    while places[-1] < end:
        places.append(places[-1] + ratio * (places[-1] - places[-2]))
    return np.array(places)


def half_plane(x, depth, side, fine):
    """(part, places of the nodes that may touch, their coordinates, normal first) of a half plane whose far side is moved, or held."""
    points, M, K = elastic_block((x, depth if side > 0 else -depth[::-1]), YOUNGS_MODULUS, POISSON, density=1e-6)
    far = np.flatnonzero(abs(points[:, 1]) == depth[-1])
    free = np.setdiff1d(np.arange(2 * len(points)), 2 * far[:, None] + [0, 1])
    moved = np.zeros((2, 2 * len(points)))
    if side > 0:
        moved[0, 2 * far + 1], moved[1, 2 * far] = -APPROACH, SHIFT
    forces = -(K @ moved.T)[free].T
    touching = np.flatnonzero((points[:, 1] == 0.0) & (abs(points[:, 0]) < 1.4 * WIDTH + fine / 2))
    rest = np.zeros(free.size)
    part = nsds.lagrangian_linear(
        M=M[free][:, free], K=K[free][:, free], fext=press_and_shear, z=forces.reshape(-1), q=rest, v=rest
    )  # fmt: skip
    return part, points[touching, 0], np.searchsorted(free, 2 * touching[:, None] + [1, 0]).reshape(-1)


@pytest.mark.parametrize(("nodes", "steps"), [(10, 160), (20, 320)])
def test_partial_slip_of_two_like_bodies_is_that_of_cattaneo_and_mindlin(nodes, steps):
    """Half planes whose gap is x^2 / 2 R (Johnson, Contact Mechanics, 1985, 4.2 and 7.2): Hertz' pressure p_0 sqrt(1 - x^2/a^2) on the
    half-width a = sqrt(4 P R / pi E*), 1/E* = 2 (1 - nu^2) / E, and traction mu p outside of c = a sqrt(1 - Q / mu P), inside it less
    mu p_0 c/a sqrt(1 - x^2/c^2). Nodes lie a / nodes apart, about: a and c are met to one of them."""
    fine = WIDTH / nodes
    side, depth = graded(fine, round(1.4 * nodes), 1.4), graded(fine, 2, 1.3)
    (upper, x, top), (lower, _, bottom) = (half_plane(np.r_[-side[:0:-1], side], depth, sign, fine) for sign in (1, -1))
    n, row = upper["record"]["q"].size, np.tile(np.arange(2 * x.size), 2)
    ends = np.r_[np.ones(2 * x.size), -np.ones(2 * x.size)]
    jacobian = sp.csr_array((ends, (row, np.r_[top, n + bottom])), shape=(2 * x.size, n + lower["record"]["q"].size))
    gap = np.column_stack([x**2 / (2 * RADIUS), np.zeros(x.size)]).reshape(-1)
    contact = nsds.interaction(relation(H=jacobian, b=gap), friction(e_n=0.0, mu=SLIDING, dimension=2), on=("upper", "lower"))
    system, h = nsds.system(upper=upper, lower=lower, contact=contact), 1.0 / steps
    rows = nsds.simulate(system, t_end=2.0, h=h, scheme=nsds.moreau_jean(theta=1.0), fields=["contact"])
    force = rows["contact"]["lambda"][-1].reshape(-1, 2) / h
    P, Q = force.sum(axis=0)
    a = math.sqrt(8 * P * RADIUS * (1 - POISSON**2) / (math.pi * YOUNGS_MODULUS))
    c, peak = a * math.sqrt(1 - abs(Q) / (SLIDING * P)), 2 * P / (math.pi * a)
    pressure = peak * np.sqrt(np.clip(1 - (x / a) ** 2, 0, None))
    traction = SLIDING * (pressure - peak * c / a * np.sqrt(np.clip(1 - (x / c) ** 2, 0, None)))
    presses = force[:, 0] > 0
    sticks = presses & (abs(force[:, 1]) < (1 - 1e-6) * SLIDING * force[:, 0])
    assert 0.3 < abs(Q) / (SLIDING * P) < 0.9
    assert abs(fine * presses.sum() / 2 - a) < fine
    assert abs(fine * sticks.sum() / 2 - c) < fine
    assert abs(force[:, 0] / fine - pressure).max() < 0.08 * peak
    assert abs(abs(force[:, 1]) / fine - traction).max() < 0.06 * SLIDING * peak
