"""Spinning friction: a moment about the normal of at most mu_s N, which opposes spinning, under the schemes that treat it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import nsds
from nsds import joints, shapes
from nsds.model.system_kinds import NEWTON_EULER
from tests.cells.outcomes import schemes_of

G, MU_S = 10.0, 0.01
BALL = shapes.sphere(0.1)
TURN = 0.4 * 0.1**2  # moment of inertia
REFUSING = ("event_driven", "d1_minus_linear")
SCHEMES = {name: getattr(nsds, name)() for name in schemes_of(NEWTON_EULER) if name not in REFUSING}
LAW = nsds.newton_impact_spinning_friction(e_n=0.0, mu=0.5, mu_s=MU_S)


def _balls(v, normal=(0, 0, 1), law=LAW, **more):
    """Balls of 1 kg beside each other on a plane, on which they are pressed by their weight."""
    n = np.array(normal) / np.linalg.norm(normal)
    side = np.cross(n, [0.3, 0.5, -0.2])
    q = np.array([[*(0.1 * n + 3 * k * 0.1 * side / np.linalg.norm(side)), 1, 0, 0, 0] for k in range(len(v))])
    balls = nsds.rigid_bodies(1.0, shapes.inertia(BALL, 1.0), q=q, v=v)
    contacts = nsds.collisions({"balls": [[BALL]] * len(v)}, law, world=shapes.plane(normal), **more)
    return nsds.system(gravity=-G * n, balls=balls, contacts=contacts)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_ball_that_spins_on_a_plane_is_stopped_by_the_moment_of_the_law(scheme):
    """``I omega' = -mu_s N`` until it rests, on a plane of any direction; what has less spin rests at once, and all stay in place."""
    normal = np.array([0.36, 0.48, 0.8])
    spins = np.array([8.0, -3.0, 0.1])
    rows = nsds.simulate(_balls([[0, 0, 0, *(spin * normal)] for spin in spins], normal), t_end=0.4, h=1e-2, scheme=SCHEMES[scheme])
    assert (rows["status"] == nsds.status.CONVERGED).all()
    expected = np.sign(spins) * np.maximum(abs(spins) - MU_S * G / TURN * rows["t"][:, None], 0.0)
    v = rows["balls"]["v"]
    assert_allclose(v[..., 3:], expected[..., None] * normal, atol=1e-7)
    assert_allclose(v[..., :3], 0.0, atol=1e-9)
    lam = rows["contacts"]["lambda"][1:, :3]
    assert lam.shape[2] == 4
    assert (abs(lam[..., 3]) <= MU_S * lam[..., 0] + 1e-12).all()


@pytest.mark.parametrize("scheme", ["rattle", "moreau_jean"])
def test_rolling_is_free_and_a_turntable_takes_a_ball_along(scheme):
    """A ball that rolls rolls on; one on the axis of a turntable gets its speed by the moment mu_s N."""
    law = nsds.newton_impact_spinning_friction(e_n=0.0, mu=2.0, mu_s=MU_S)
    rolling = nsds.simulate(_balls([[1.0, 0, 0, 0, 10.0, 0]], law=law), t_end=0.3, h=1e-2, scheme=SCHEMES[scheme])
    assert_allclose(rolling["balls"]["v"][-1, 0], [1.0, 0, 0, 0, 10.0, 0], atol=1e-9)
    still = _balls([[0.0] * 6], law=law, surface_velocity={"world": [0, 0, 0, 0, 0, 2.0]})
    rows = nsds.simulate(still, t_end=0.3, h=1e-2, scheme=SCHEMES[scheme])
    assert_allclose(rows["balls"]["v"][:, 0, 5], np.minimum(MU_S * G / TURN * rows["t"], 2.0), atol=1e-9)


@pytest.mark.parametrize("method", ["bodies", "nsgs", "newton_ac"])
def test_methods_with_and_without_a_matrix_agree(method):
    """Balls that slide, spin and roll, two on top of each other; the matrix-free sweeps have the axes of moments of each contact."""
    rng = np.random.default_rng(3)
    system = _balls(np.concatenate([rng.normal(0, 0.5, (4, 2)), np.zeros((4, 1)), rng.normal(0, 4.0, (4, 3))], axis=1))
    system["balls"]["q"][3, :3] = system["balls"]["q"][0, :3] + [0.02, 0.01, 0.1985]
    rows = [
        nsds.simulate(system, t_end=0.2, h=5e-3, solver=nsds.solvers.solver(name, tol=1e-10), on_failure="continue")["balls"]["v"][-1]
        for name in ("interior_point", method)
    ]
    assert_allclose(rows[1], rows[0], atol=1e-5)


def test_many_balls_are_stopped_by_sweeps():
    """A hundred balls, each by its own moment."""
    n = 100
    spins = np.linspace(-6.0, 6.0, n)
    rows = nsds.simulate(_balls([[0, 0, 0, 0, 0, spin] for spin in spins]), t_end=0.1, h=1e-2, solver="bodies")
    expected = np.sign(spins) * np.maximum(abs(spins) - MU_S * G / TURN * 0.1, 0.0)
    assert_allclose(rows["balls"]["v"][-1, :, 5], expected, atol=1e-3)


def test_spinning_and_rolling_friction_in_one_system():
    """A ball with each, as collisions of two parts."""
    q = [[0, 0, 0.1, 1, 0, 0, 0], [1, 0, 0.1, 1, 0, 0, 0]]
    parts = {
        name: nsds.rigid_bodies(1.0, shapes.inertia(BALL, 1.0), q=at, v=[0, 0, 0, 0, 0, 5.0]) for name, at in zip("ab", q, strict=True)
    }
    rolls = nsds.newton_impact_rolling_friction(e_n=0.0, mu=0.5, mu_r=0.01)
    laws = {name: nsds.collisions({name: BALL}, law, world=shapes.plane()) for name, law in (("a", LAW), ("b", rolls))}
    system = nsds.system(gravity=[0, 0, -G], **parts, **{f"under_{name}": law for name, law in laws.items()})
    for solver in (None, "bodies"):
        rows = nsds.simulate(system, t_end=0.1, h=1e-2, solver=solver)
        assert_allclose(rows["a"]["v"][-1, 5], 5.0 - MU_S * G / TURN * 0.1, atol=1e-6)
        assert_allclose(rows["b"]["v"][-1, 5], 5.0, atol=1e-9)


def test_the_energy_is_that_of_the_moment():
    """Ledger: contact takes ``mu_s N`` times the angle."""
    system = _balls([[0, 0, 0, 0, 0, 8.0]])
    ledger = nsds.energy(system, nsds.simulate(system, t_end=0.2, h=1e-2, scheme=nsds.moreau_jean(theta=0.5)))
    angle = 8.0 * 0.2 - 0.5 * MU_S * G / TURN * 0.2**2
    assert_allclose(ledger["contact"].sum(), -MU_S * G * angle, atol=1e-9)
    assert_allclose(ledger["numerical"], 0.0, atol=1e-9)


@pytest.mark.parametrize("scheme", [getattr(nsds, name)() for name in REFUSING])
def test_schemes_that_do_not_treat_it_say_so(scheme):
    with pytest.raises(ValueError, match="collisions 'contacts': the scheme does not treat the moment of newton_impact_spinning_friction"):
        nsds.simulate(_balls([[0, 0, 0, 0, 0, 1.0]]), t_end=0.1, h=1e-2, scheme=scheme)


def test_it_is_for_bodies_in_space():
    disk = shapes.disk(0.1)
    with pytest.raises(ValueError, match="newton_impact_spinning_friction is for shapes in space"):
        nsds.collisions({"disk": disk}, LAW, world=shapes.half_plane())
    gap = nsds.lagrangian_linear_relation(H=np.eye(3))
    with pytest.raises(ValueError, match="newton_impact_spinning_friction is not a law for Lagrangian systems"):
        nsds.system(ball=nsds.lagrangian_linear(M=np.eye(3), q=np.zeros(3), v=np.zeros(3)), floor=nsds.interaction(gap, LAW, on="ball"))


def test_a_joint_beside_it():
    """A rotor in a hinge about the normal, which lies on the floor, is braked by the moment on its weight."""
    system = _balls([[0, 0, 0, 0, 0, 4.0]])
    balls = nsds.rigid_bodies(1.0, shapes.inertia(BALL, 1.0), q=system["balls"]["q"][0], v=[0, 0, 0, 0, 0, 4.0])
    axle = nsds.interaction(joints.cylindrical([0, 0, 0], [0, 0, 1]), nsds.equality(), on="balls")
    contacts = nsds.collisions({"balls": BALL}, LAW, world=shapes.plane())
    rows = nsds.simulate(nsds.system(gravity=[0, 0, -G], balls=balls, axle=axle, contacts=contacts), t_end=0.1, h=1e-2)
    assert_allclose(rows["balls"]["v"][-1, 5], 4.0 - MU_S * G / TURN * 0.1, atol=1e-7)
