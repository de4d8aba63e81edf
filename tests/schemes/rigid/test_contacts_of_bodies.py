"""What contacts see of bodies and do to them, stated with the rows H of `contact_rows`; and what a pile is solved to."""

import numpy as np
import pytest

import nsds
from nsds._jit import kernel
from nsds.collision.frames import frame_of
from nsds.schemes.rigid import collisions
from nsds.schemes.rigid.interactions import contact_rows
from tests.random_piles import GRAVITY, random_pile


@kernel
def rows(each, frame, lever, has_b, H):
    contact_rows(each, frame, lever[:3], lever[3:], has_b, H)


@kernel
def normal_velocity(a, b, normal, lever, w):
    return collisions.normal_velocity(a, b, normal, lever, w)


@kernel
def subtract(each, a, b, frame, lever, r, impulse):
    collisions._subtract(each, a, b, frame, lever, r, impulse)


@pytest.mark.parametrize("each", [1, 3, 5])
@pytest.mark.parametrize("b", [-1, 2])
def test_contacts_see_h_w_and_give_h_transposed_r(each, b):
    rng = np.random.default_rng(10 * each + b)
    frame, lever, w = np.linalg.qr(rng.normal(size=(3, 3)))[0].ravel(), rng.normal(size=6), rng.normal(size=18)
    H, r, impulse, a = np.zeros((each, 12)), rng.normal(size=each), rng.normal(size=18), 1
    rows(each, frame, lever, b >= 0, H.reshape(-1))
    on_a, on_b = H[:, :6], H[:, 6:]
    u = on_a @ w[6 * a : 6 * a + 6] + (on_b @ w[6 * b : 6 * b + 6] if b >= 0 else 0.0)
    assert normal_velocity(a, b, frame[:3].copy(), lever, w) == pytest.approx(u[0], abs=1e-13)
    left = impulse.copy()
    left[6 * a : 6 * a + 6] -= on_a.T @ r
    if b >= 0:
        left[6 * b : 6 * b + 6] -= on_b.T @ r
    subtract(each, a, b, frame, lever, r, impulse)
    np.testing.assert_allclose(impulse, left, atol=1e-13)


def tumbling(n=40, seed=2):
    """Capsules and bricks that tumble into a box, so many that sweeps solve their contacts."""
    rng, shapes = np.random.default_rng(seed), nsds.shapes
    solids = [shapes.capsule(0.03, 0.08) if i % 2 else shapes.box([0.08, 0.06, 0.04]) for i in range(n)]
    turn = rng.normal(size=(n, 4))
    place = np.stack([np.arange(n) % 4 * 0.16 - 0.24, np.arange(n) // 4 % 4 * 0.16 - 0.24, 0.1 + np.arange(n) // 16 * 0.16], axis=1)
    q = np.concatenate([place, turn / np.linalg.norm(turn, axis=1)[:, None]], axis=1)
    inertia = np.array([shapes.inertia(solid, 1.0) for solid in solids])
    walls = [shapes.plane(), *(shapes.plane(normal, -0.4) for normal in ([1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]))]
    bodies = nsds.rigid_bodies(np.ones(n), inertia, q=q, v=rng.normal(size=(n, 6)), count=n)
    law = nsds.newton_impact_friction(0.0, 0.4)
    contacts = nsds.collisions({"bodies": [[solid] for solid in solids]}, law, world=walls)
    return nsds.system(gravity=[0, 0, -9.81], bodies=bodies, contacts=contacts)


@pytest.mark.parametrize("scheme", [nsds.moreau_jean(), nsds.rattle()], ids=["moreau_jean", "rattle"])
def test_impulses_that_newtons_iteration_leaves_as_they_are_meet_the_balance(scheme):
    """Velocities of bodies that tumble change by forces, gyroscopic moments and impulses, to rounding, and laws hold to the tolerance."""
    h, system = 2e-3, tumbling()
    rows = nsds.simulate(system, t_end=0.4, h=h, scheme=scheme, progress=False)
    assert rows["contacts"]["n"].max() > 64
    assert (rows["residual"][1:] <= (1e-4 if scheme["scheme"] == b"moreau_jean" else 1e-2)).all()  # of contacts, to which sweeps solve them
    p, v = rows["bodies"]["p"][1:], rows["bodies"]["v"]
    gain = v[1:, :, :3] - v[:-1, :, :3] - h * np.array([0, 0, -9.81])  # of mass 1
    np.testing.assert_allclose(p[:, :, :3], gain, atol=1e-11 * abs(v).max())
    if scheme["scheme"] == b"moreau_jean":  # whose forces are those of both ends
        inertia, Omega = system["bodies"]["inertia"], v[:, :, 3:]
        momentum = np.einsum("bij,tbj->tbi", inertia, Omega)
        moment = -np.cross(Omega, momentum)
        gain = momentum[1:] - momentum[:-1] - 0.5 * h * (moment[1:] + moment[:-1])
        np.testing.assert_allclose(p[:, :, 3:], gain, atol=1e-9 * abs(momentum).max())


@pytest.mark.parametrize("seed", [52000, 52011])
@pytest.mark.parametrize("scheme", [nsds.rattle, nsds.moreau_jean, nsds.moreau_jean_combined_projection, nsds.generalised_alpha])
def test_impulses_of_the_record_are_those_that_change_velocities(scheme, seed):
    """Where features of shapes change within a step, what the old contacts carried is that of the new ones. A frame turns in a step."""
    system, h, masses, _ = random_pile(seed)
    rows = nsds.simulate(system, t_end=0.8, h=h, scheme=scheme())
    v = np.stack([rows[f"b{k}"]["v"][:, :3] for k in range(len(masses))], axis=1)
    gained = np.array(masses)[:, None] * (np.diff(v, axis=0) + h * GRAVITY * np.eye(3)[2])
    pressed = np.zeros_like(gained)
    for row, of_bodies in zip(rows["contacts"][1:], pressed, strict=True):
        for i in range(row["n"]):
            frame = np.zeros(9)
            frame_of(row["normal"][i], frame)
            for shape, sign in ((row["a"][i], 1.0), (row["b"][i], -1.0)):
                if shape < len(masses):
                    of_bodies[shape] += sign * row["lambda"][i] @ frame.reshape(3, 3)
    total = np.linalg.norm(gained, axis=2).sum()
    assert total > 1.0
    assert np.linalg.norm(gained - pressed, axis=2).sum() < 0.03 * total
