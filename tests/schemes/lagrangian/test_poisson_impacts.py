"""Poisson's law, and multiple impacts with friction, in simulations: Newton's for one contact, a block that rocks, sliding and rest."""

import numpy as np
import pytest
from hypothesis import given

import nsds
from nsds.solvers import solve_multiple_impact, solve_poisson_impact
from nsds.status import CLOSED, JUMP, is_event
from tests.schemes.lagrangian.test_multiple_impacts import column, velocities
from tests.strategies import examples, generators

GRAVITY = 9.81
SCHEMES = [nsds.moreau_jean(), nsds.moreau_jean_combined_projection(), nsds.event_driven()]


def _height(q, z, out):
    out[0] = q[0] - z[0]


@pytest.mark.parametrize("is_nonlinear", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_one_contact_without_friction_is_newtons_law(scheme, is_nonlinear):
    """A ball bounces: the same rows. Time stepping by Newton's law has a contact that opens slowly close again, with the other sign."""
    t_end, found = 4.0 if scheme["scheme"] == b"event_driven" else 2.3, []
    for law in (nsds.newton_impact(0.7), nsds.poisson_impact(0.7)):
        wall = nsds.scleronomous(_height, m=1, z=[0.1]) if is_nonlinear else nsds.lagrangian_linear_relation([[1.0]], b=[-0.1])
        ball = nsds.lagrangian_linear(M=[2.0], fext=[-2.0 * GRAVITY], q=[1.0], v=[0.0])
        system = nsds.system(ball=ball, floor=nsds.interaction(wall, law, on="ball"))
        found.append(nsds.simulate(system, t_end=t_end, h=5e-3, scheme=scheme))
    assert found[0].size == found[1].size
    for part, field in (("ball", "q"), ("ball", "v"), ("floor", "lambda")):
        np.testing.assert_allclose(found[1][part][field], found[0][part][field], rtol=0, atol=1e-9)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_column_comes_to_rest_and_carries_its_weight(scheme):
    rows = nsds.simulate(column(0.5, 1.0, n=5, law=_poisson), t_end=2.5, h=1e-3, scheme=scheme)
    assert abs(velocities(rows)[-1]).max() < 1e-9
    force = 1.0 if scheme["scheme"] == b"event_driven" else 1e-3
    np.testing.assert_allclose(rows["touch"]["lambda"][-1].ravel() / force, GRAVITY * np.arange(4, 0, -1), rtol=1e-7)
    energy = 0.5 * (velocities(rows) ** 2).sum(1) + GRAVITY * rows["balls"]["q"][..., 0].sum(1)
    assert np.diff(energy).max() < (1e-9 if force == 1.0 else 5 * 0.5 * (1e-3 * GRAVITY) ** 2)


def _poisson(e, stiffness=1.0, exponent=1.0):
    return nsds.poisson_impact(e)


WIDTH, HEIGHT = 0.4, 0.2
INERTIA = (WIDTH**2 + HEIGHT**2) / 12


def corners(angle):
    """H of both corners of the base of a block, gap and tangent each, at an angle."""
    rows = []
    for side in (-1.0, 1.0):
        x, y = 0.5 * side * WIDTH, -0.5 * HEIGHT
        sine, cosine = np.sin(angle), np.cos(angle)
        rows += [[0.0, 1.0, x * cosine - y * sine], [1.0, 0.0, -(x * sine + y * cosine)]]
    return np.array(rows)


def _gaps(q, z, out):
    for k in range(2):
        x, y = (2 * k - 1) * 0.5 * z[0], -0.5 * z[1]
        out[2 * k] = q[1] + x * np.sin(q[2]) + y * np.cos(q[2])
        out[2 * k + 1] = 0.0


def _jacobian(q, z, out):
    for k in range(2):
        x, y = (2 * k - 1) * 0.5 * z[0], -0.5 * z[1]
        for i in range(2):
            for j in range(3):
                out[2 * k + i, j] = 0.0
        out[2 * k, 1], out[2 * k, 2] = 1.0, x * np.cos(q[2]) - y * np.sin(q[2])
        out[2 * k + 1, 0], out[2 * k + 1, 2] = 1.0, -(x * np.sin(q[2]) + y * np.cos(q[2]))


def block(law, angle, v=(0.0, 0.0, 0.0)):
    """A block whose right corner is up by an angle, its left one on the floor."""
    y = 0.5 * WIDTH * np.sin(angle) + 0.5 * HEIGHT * np.cos(angle)
    body = nsds.lagrangian_linear(M=[1.0, 1.0, INERTIA], fext=[0.0, -GRAVITY, 0.0], q=[0.0, y, angle], v=v)
    base = nsds.scleronomous(_gaps, H=_jacobian, m=4, z=[WIDTH, HEIGHT])
    return nsds.system(body=body, base=nsds.interaction(base, law, on="body"))


FRICTIONAL = [
    (nsds.poisson_impact_friction, solve_poisson_impact, {}),
    (nsds.multiple_impact_friction, solve_multiple_impact, {"stiffness": 2.0, "exponent": 1.5}),
]


@pytest.mark.parametrize(("law", "solve", "further"), FRICTIONAL)
def test_a_block_rocks_as_the_law_says(law, solve, further):
    """The impact of the second corner has impulses under the first, too."""
    rows = nsds.simulate(block(law(0.4, 0.6, **further), 0.2), t_end=0.5, h=0.01, scheme=nsds.event_driven())
    k = int(np.flatnonzero(is_event(rows["status"]) & (rows["status"] & JUMP > 0))[0])
    before, after = rows["body"][k - 1], rows["body"][k]
    assert abs(before["q"][2]) < 1e-9
    wanted = solve(np.diag([1.0, 1.0, INERTIA]), corners(0.0), before["v"], 0.4, mu=0.6, dimension=2, **further)
    np.testing.assert_allclose(after["v"], wanted.v, rtol=0, atol=1e-7)
    assert wanted.P[0] > 0.1 * wanted.P[2] > 0.0
    newton = nsds.simulate(block(nsds.newton_impact_friction(0.4, 0.6), 0.2), t_end=0.5, h=0.01, scheme=nsds.event_driven())
    other = newton["body"]["v"][np.flatnonzero(is_event(newton["status"]) & (newton["status"] & JUMP > 0))[0]]
    assert abs(other - after["v"]).max() > 0.01


@pytest.mark.parametrize("law", [row[0] for row in FRICTIONAL])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_block_rocks_to_rest_and_never_gains_energy(scheme, law):
    rows = nsds.simulate(block(law(0.3, 0.8), 0.15), t_end=3.0, h=1e-3, scheme=scheme)
    v = rows["body"]["v"]
    assert abs(v[-1]).max() < 1e-3
    energy = 0.5 * (v**2 @ [1.0, 1.0, INERTIA]) + GRAVITY * rows["body"]["q"][:, 1]
    assert np.diff(energy).max() < (1e-8 if scheme["scheme"] == b"event_driven" else 1e-3)
    assert rows["base"]["y"][:, ::2].min() > -1e-3


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("law", [row[0] for row in FRICTIONAL])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_slides_is_braked_and_what_falls_slides_on(scheme, law, dimension):
    """A body falls obliquely on a floor and slides to rest: in closed form."""
    mu, e, u = 0.3, 0.5, 2.0
    H = np.eye(3)[[2, 0, 1][:dimension]]
    body = nsds.lagrangian_linear(
        M=[1.0] * 3, fext=[0.0, 0.0, -GRAVITY], q=[0.0, 0.0, 0.1], v=[0.6 * u, 0.8 * u if dimension == 3 else 0.0, 0.0]
    )
    floor = nsds.interaction(nsds.lagrangian_linear_relation(H), law(e, mu, dimension=dimension), on="body")
    rows = nsds.simulate(nsds.system(body=body, floor=floor), t_end=1.0, h=2e-3, scheme=scheme)
    speed = np.linalg.norm(rows["body"]["v"][:, :2], axis=1)
    start, fall = speed[0], np.sqrt(2 * 0.1 * GRAVITY)
    first = int(np.argmax(rows["body"]["v"][:, 2] > 0.0))
    assert rows["body"]["v"][first, 2] == pytest.approx(e * fall, abs=0.03)
    assert speed[first] == pytest.approx(start - mu * (1 + e) * fall, abs=0.03)
    momentum = np.interp(rows["t"][-1], [0.0, 10.0], [0.0, 10.0 * GRAVITY])  # all of the floor's impulse in the end, as it carries
    assert rows["floor"]["active"][-1].any() or speed[-1] < 1e-9
    assert speed[-1] == pytest.approx(max(start - mu * momentum, 0.0), abs=0.03)


def _bowl(q, z, out):
    out[0], out[1] = z[0] - np.hypot(q[0], q[1]), 0.0


def _bowl_rows(q, z, out):
    r = np.hypot(q[0], q[1])
    out[0, 0], out[0, 1] = -q[0] / r, -q[1] / r
    out[1, 0], out[1, 1] = -q[1] / r, q[0] / r


def test_on_a_curve_friction_is_that_of_newtons_law_in_the_limit():
    """A bead slides in a bowl: each step has a small impact, which must not hide the forces from friction."""
    end = []
    for law in (nsds.newton_impact_friction(0.0, 0.2), nsds.poisson_impact_friction(0.0, 0.2), nsds.multiple_impact_friction(0.0, 0.2)):
        bead = nsds.lagrangian_linear(M=[1.0, 1.0], fext=[0.0, -GRAVITY], q=[1.0, 0.0], v=[0.0, 0.0])
        bowl = nsds.interaction(nsds.scleronomous(_bowl, H=_bowl_rows, m=2, z=[1.0]), law, on="bead")
        rows = nsds.simulate(nsds.system(bead=bead, bowl=bowl), t_end=0.6, h=5e-4)
        end.append(np.r_[rows["bead"]["q"][-1], rows["bead"]["v"][-1]])
    np.testing.assert_allclose(end[1:], [end[0]] * 2, rtol=0, atol=5e-3)


@given(generators)
@examples(10)
def test_no_impact_gains_energy(rng):
    """Random bodies with a few contacts at once, event by event."""
    d, nc = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    H, half = rng.normal(size=(nc * d, 6)), np.eye(6) + 0.2 * rng.normal(size=(6, 6))
    M, v = half @ half.T, rng.normal(size=6)
    v -= 0.2 * np.linalg.pinv(H[::d]) @ (H[::d] @ v + 1.0)
    law = rng.choice([row[0] for row in FRICTIONAL])(rng.uniform(), rng.uniform(0.0, 0.5), dimension=d)
    body = nsds.lagrangian_linear(M=M, q=np.zeros(6), v=v)
    system = nsds.system(body=body, walls=nsds.interaction(nsds.lagrangian_linear_relation(H), law, on="body"))
    rows = nsds.simulate(system, t_end=0.1, h=0.05, scheme=nsds.event_driven(), on_failure="continue")
    assert rows["status"][-1] in (0, CLOSED) or (rows["status"] > 0).any()
    speeds = rows["body"]["v"]
    energy = 0.5 * np.einsum("ki,ij,kj->k", speeds, M, speeds)
    assert np.diff(energy).max() <= 1e-8 * energy[0]


def test_equations_hold_during_the_impact():
    """A bead on an inclined rod, stated by an equation, hits two balls: as in the coordinate along the rod."""
    cosine, sine = np.cos(0.6), np.sin(0.6)
    bead = nsds.lagrangian_linear(M=[2.0, 2.0], q=[-0.01, 0.0], v=[cosine, sine])
    balls = nsds.lagrangian_linear(M=[1.0], q=[[0.0], [0.1]], v=[[0.0], [0.0]], count=2)
    law, relation = nsds.poisson_impact(0.9), nsds.lagrangian_linear_relation
    system = nsds.system(
        bead=bead, balls=balls,
        rod=nsds.interaction(relation([[-sine, cosine]], b=[-0.01 * sine]), nsds.equality(), on="bead"),
        first=nsds.interaction(relation([[-1.0, 0.0, 1.0]]), law, on=("bead", "balls[0]")),
        second=nsds.interaction(relation([[-1.0, 1.0]], b=[-0.1]), law, on=("balls[0]", "balls[1]")),
    )  # fmt: skip
    rows = nsds.simulate(system, t_end=0.03, h=1e-3)
    wanted = solve_poisson_impact(np.diag([2.0, 1.0, 1.0]), [[-cosine, 1, 0], [0, -1, 1]], [1.0, 0.0, 0.0], 0.9).v
    np.testing.assert_allclose(rows["bead"]["v"][-1], wanted[0] * np.array([cosine, sine]), rtol=0, atol=1e-8)
    np.testing.assert_allclose(velocities(rows)[-1], wanted[1:], rtol=0, atol=1e-8)


def test_what_does_not_go_together_is_named():
    relation, touch = nsds.lagrangian_linear_relation([[1.0]]), nsds.poisson_impact(1.0)
    ball = nsds.lagrangian_linear(M=[1.0], q=[1.0], v=[0.0])
    for other in (nsds.newton_impact(0.5), nsds.multiple_impact(0.5)):
        mixed = {"a": nsds.interaction(relation, touch, on="ball"), "b": nsds.interaction(relation, other, on="ball")}
        with pytest.raises(ValueError, match="interaction 'a' has the law poisson_impact, which goes with no other law but equality"):
            nsds.simulate(nsds.system(ball=ball, **mixed), t_end=0.1, h=0.01)
    for scheme in (nsds.schatzman_paoli(), nsds.generalised_alpha(), nsds.moreau_jean(form="global")):
        with pytest.raises(ValueError, match=r"interaction 'a': poisson_impact is for nsds\.event_driven, and nsds\.moreau_jean"):
            nsds.simulate(nsds.system(ball=ball, a=mixed["a"]), t_end=0.1, h=0.01, scheme=scheme)
    with pytest.raises(ValueError, match="poisson_impact have no tangent map"):
        nsds.floquet(nsds.system(ball=ball, a=mixed["a"]), period=1.0)
