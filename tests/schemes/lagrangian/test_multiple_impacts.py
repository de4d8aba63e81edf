"""Multiple impacts in time stepping: the velocities of the law after an impact, loads at rest, one contact as under Newton's law."""

import numpy as np
import pytest

import nsds
from nsds.solvers import solve_multiple_impact
from nsds.status import IMPACT, JUMP, is_event
from tests.solvers.impact.test_multiple_impact import COLUMN_OF_TEN

RADIUS, GRAVITY = 0.005, 9.81


def _floor(q, z, out):
    out[0] = q[0] - z[0]


def _touch(q, z, out):
    out[0] = q[1] - q[0] - 2.0 * z[0]


def column(e, exponent, n=10, law=nsds.multiple_impact, is_nonlinear=False, height=0.05):
    """Balls that touch and fall on a floor, in a relation of either form."""
    q = height + RADIUS * (1 + 2 * np.arange(n))
    balls = nsds.lagrangian_linear(M=[1.0], fext=[-GRAVITY], q=q[:, None], v=np.zeros((n, 1)), count=n)
    H = nsds.lagrangian_linear_relation
    wall = nsds.scleronomous(_floor, m=1, z=[RADIUS]) if is_nonlinear else H([[1.0]], b=[-RADIUS])
    touch = nsds.scleronomous(_touch, m=1, z=[RADIUS]) if is_nonlinear else H([[-1.0, 1.0]], b=[-2 * RADIUS])
    return nsds.system(
        balls=balls,
        floor=nsds.interaction(wall, law(e, stiffness=np.sqrt(2.0), exponent=exponent), on="balls[0]"),
        touch=nsds.interaction(touch, law(e, exponent=exponent), on=("balls[:-1]", "balls[1:]")),
    )


def velocities(rows):
    return rows["balls"]["v"][..., 0]


@pytest.mark.parametrize("is_nonlinear", [False, True])
def test_column_rebounds_as_the_law_says(is_nonlinear):
    """Ten balls in contact fall on a floor; their velocities after the step of the impact are in the limit's ratio to those before."""
    rows = nsds.simulate(column(1.0, 1.5, is_nonlinear=is_nonlinear), t_end=0.102, h=1e-4)
    v = velocities(rows)
    k = int(np.argmax(v[:, -1] > 0))
    assert rows["t"][k] == pytest.approx(np.sqrt(0.1 / GRAVITY), abs=2e-4)
    np.testing.assert_allclose(v[k] / -v[k - 1], np.array(COLUMN_OF_TEN) / np.sqrt(0.1 * GRAVITY), rtol=0, atol=3e-6)


@pytest.mark.parametrize("is_nonlinear", [False, True])
def test_column_rebounds_event_by_event(is_nonlinear):
    """The same at the very time of the impact."""
    rows = nsds.simulate(column(1.0, 1.5, is_nonlinear=is_nonlinear), t_end=0.102, h=0.02, scheme=nsds.event_driven())
    after = rows[np.flatnonzero(is_event(rows["status"]) & (rows["status"] & JUMP > 0))]
    np.testing.assert_allclose(after["t"], [np.sqrt(0.1 / GRAVITY)], rtol=1e-9)
    np.testing.assert_allclose(velocities(after)[0], COLUMN_OF_TEN, rtol=0, atol=3e-6)


def test_column_comes_to_rest_event_by_event():
    """It ends with its weight, and never gains energy."""
    rows = nsds.simulate(column(0.5, 1.0, n=5), t_end=1.5, h=0.1, scheme=nsds.event_driven())
    assert abs(velocities(rows)[-1]).max() < 1e-12
    np.testing.assert_allclose(rows["touch"]["lambda"][-1].ravel(), GRAVITY * np.arange(4, 0, -1), rtol=1e-9)
    energy = 0.5 * (velocities(rows) ** 2).sum(1) + GRAVITY * rows["balls"]["q"][..., 0].sum(1)
    assert np.diff(energy).max() < 1e-9


@pytest.mark.parametrize("scheme", [nsds.moreau_jean(), nsds.moreau_jean(theta=1.0), nsds.moreau_jean_combined_projection()])
def test_column_comes_to_rest_and_carries_its_weight(scheme):
    rows = nsds.simulate(column(0.5, 1.0, n=5), t_end=1.5, h=1e-3, scheme=scheme)
    assert (rows["status"] == 0).all()
    assert abs(velocities(rows)[-1]).max() < 1e-12
    np.testing.assert_allclose(rows["touch"]["lambda"][-1].ravel() / 1e-3, GRAVITY * np.arange(4, 0, -1), rtol=1e-9)
    assert rows["floor"]["lambda"][-1].item() / 1e-3 == pytest.approx(5 * GRAVITY, rel=1e-9)
    energy = 0.5 * (velocities(rows) ** 2).sum(1) + GRAVITY * rows["balls"]["q"][..., 0].sum(1)
    assert np.diff(energy).max() < 5 * 0.5 * (1e-3 * GRAVITY) ** 2  # what Newton's law may gain in a step


def _block_gaps(q, z, out):
    for i in range(2):
        out[i] = q[1] + (2 * i - 1) * z[0] * np.sin(q[2]) - z[1] * np.cos(q[2])


def block(law, angle):
    """A rigid block in the plane with two corners; the moment of inertia is that of the published one."""
    state = {"q": [0.0, 0.3, angle], "v": [0.0, 0.0, 0.0]}
    body = nsds.lagrangian_linear(M=[1.0, 1.0, 1.25 / 12], fext=[0.0, -GRAVITY, 0.0], **state)
    return nsds.system(body=body, corners=nsds.interaction(nsds.scleronomous(_block_gaps, m=2, z=[0.1, 0.05]), law, on="body"))


def test_one_contact_at_a_time_is_newtons_law():
    """A tilted block falls from corner to corner."""
    rows = [nsds.simulate(block(law, np.pi / 3), t_end=1.0, h=1e-3) for law in (nsds.multiple_impact(0.8, 1e10), nsds.newton_impact(0.8))]
    assert np.count_nonzero(np.diff(rows[0]["corners"]["lambda"].max(1)) > 0) > 1
    np.testing.assert_allclose(rows[0]["body"]["v"], rows[1]["body"]["v"], rtol=0, atol=1e-9)


def test_two_contacts_at_once_are_not():
    """A flat block falls on two corners of different stiffness: it turns, and Newton's law does not know why."""
    rows = nsds.simulate(block(nsds.multiple_impact(0.8, [1.0, 3.0]), 0.0), t_end=0.25, h=1e-3)
    v, k = rows["body"]["v"], int(np.argmax(rows["body"]["v"][:, 1] > 0))
    wanted = solve_multiple_impact(np.diag([1.0, 1.0, 1.25 / 12]), [[0, 1, -0.1], [0, 1, 0.1]], v[k - 1], 0.8, [1.0, 3.0])
    np.testing.assert_allclose(v[k], wanted.v, rtol=0, atol=1e-3)  # H turns within the step
    assert abs(v[k, 2]) > 0.1


def test_equations_hold_during_the_impact():
    """A bead on an inclined rod, stated by an equation, hits two balls: as in the coordinate along the rod."""
    cosine, sine = np.cos(0.6), np.sin(0.6)
    bead = nsds.lagrangian_linear(M=[2.0, 2.0], q=[-0.01, 0.0], v=[cosine, sine])
    balls = nsds.lagrangian_linear(M=[1.0], q=[[0.0], [0.1]], v=[[0.0], [0.0]], count=2)
    law, relation = nsds.multiple_impact(0.9, exponent=1.5), nsds.lagrangian_linear_relation
    system = nsds.system(
        bead=bead, balls=balls,
        rod=nsds.interaction(relation([[-sine, cosine]], b=[-0.01 * sine]), nsds.equality(), on="bead"),
        first=nsds.interaction(relation([[-1.0, 0.0, 1.0]]), law, on=("bead", "balls[0]")),
        second=nsds.interaction(relation([[-1.0, 1.0]], b=[-0.1]), law, on=("balls[0]", "balls[1]")),
    )  # fmt: skip
    rows = nsds.simulate(system, t_end=0.03, h=1e-3)
    wanted = solve_multiple_impact(np.diag([2.0, 1.0, 1.0]), [[-cosine, 1, 0], [0, -1, 1]], [1.0, 0.0, 0.0], 0.9, exponent=1.5).v
    np.testing.assert_allclose(rows["bead"]["v"][-1], wanted[0] * np.array([cosine, sine]), rtol=0, atol=1e-8)
    np.testing.assert_allclose(velocities(rows)[-1], wanted[1:], rtol=0, atol=1e-8)


def test_members_of_an_ensemble_have_laws_of_their_own():
    members = np.array([column(e, 1.5, n=3) for e in (1.0, 0.5)])
    rows = nsds.simulate(members, t_end=0.11, h=1e-4)
    for one, alone in zip(rows, members, strict=True):
        assert velocities(one).tobytes() == velocities(nsds.simulate(alone, t_end=0.11, h=1e-4)).tobytes()


def test_an_impact_that_never_ends_has_a_status():
    ball = nsds.lagrangian_linear(M=[1.0], q=[0.0], v=[1.0])
    walls = nsds.interaction(nsds.lagrangian_linear_relation([[1.0], [-1.0]], b=[-0.1, -0.1]), nsds.multiple_impact(1.0), on="ball")
    with pytest.raises(nsds.SimulationError, match="multiple impact does not end"):
        nsds.simulate(nsds.system(ball=ball, walls=walls), t_end=0.1, h=0.01)
    rows = nsds.simulate(nsds.system(ball=ball, walls=walls), t_end=0.1, h=0.01, on_failure="continue")
    assert rows["status"][1] == IMPACT


def test_what_does_not_go_together_is_named():
    relation, touch = nsds.lagrangian_linear_relation([[1.0]]), nsds.multiple_impact(1.0)
    ball = nsds.lagrangian_linear(M=[1.0], q=[1.0], v=[0.0])
    mixed = {"a": nsds.interaction(relation, touch, on="ball"), "b": nsds.interaction(relation, nsds.newton_impact(0.5), on="ball")}
    with pytest.raises(
        ValueError,
        match=r"interaction 'a' has the law multiple_impact, which goes with no other law but equality of velocities, and 'b' has newton",
    ):
        nsds.simulate(nsds.system(ball=ball, **mixed), t_end=0.1, h=0.01)
    mixed["b"] = nsds.interaction(relation, nsds.multiple_impact(1.0, exponent=1.5), on="ball")
    with pytest.raises(ValueError, match="interaction 'a': all multiple impacts of a system must have one exponent"):
        nsds.simulate(nsds.system(ball=ball, **mixed), t_end=0.1, h=0.01)
    for scheme in (nsds.schatzman_paoli(), nsds.generalised_alpha(), nsds.d1_minus_linear(), nsds.moreau_jean(form="global")):
        with pytest.raises(ValueError, match=r"interaction 'a': multiple_impact is for nsds\.event_driven, and nsds\.moreau_jean"):
            nsds.simulate(nsds.system(ball=ball, a=mixed["a"]), t_end=0.1, h=0.01, scheme=scheme)
