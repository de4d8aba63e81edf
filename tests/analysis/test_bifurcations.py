"""Curves of bifurcations over two parameters against closed forms."""

import math

import numpy as np
import pytest

import nsds
from nsds import plotting
from tests.analysis.models import impact_oscillator, single_impact_orbit


def bounce(x, p, out):
    out[0], out[1] = x[0] + x[1], p[1] * x[1] - p[0] * math.cos(x[0] + x[1])


def cubic(x, p, out):
    out[0] = x[0] + p[0] + p[1] * x[0] - x[0] ** 3


def beside(x, p, out):
    """The cubic map, and another state that it does not touch: its multiplier falls with p[1], and jumps past 1 at p[1] = 0.4."""
    out[0] = x[0] + p[0] + p[1] * x[0] - x[0] ** 3
    out[1] = (p[1] - 1.6 if p[1] > 0.4 else 1.5) * x[1]


def delayed(x, p, out):
    out[0], out[1] = p[0] * x[0] * (1 - x[1]) + p[1], x[0]


def table(gamma, phase):
    """A ball on a table, one bounce a period (Holmes 1982): p[0] the strength of its motion, p[1] restitution."""
    return nsds.iterated_map(bounce, x=[phase, 2 * math.pi], p=[gamma, 0.5], modulo=[2 * math.pi, 0])


@pytest.mark.parametrize("until", [0.2, 0.9])
def test_folds_of_a_ball_on_a_table(until):
    """``gamma = 2 pi (1 - a)``."""
    rows = nsds.continue_bifurcation(table(3.2, -3.0), kind="fold", parameters=("p[0]", "p[1]"), until=until)
    gamma, a = rows["parameters"].T
    np.testing.assert_allclose(gamma, 2 * math.pi * (1 - a), rtol=1e-9)
    assert (a[-1], rows["kind"][-1]) == (until, "until")
    assert (abs(rows["multipliers"] - 1).min(axis=1) < 1e-5).all()


def test_doublings_of_a_ball_on_a_table():
    """``gamma**2 = 4 pi**2 (1 - a)**2 + 4 (1 + a)**2``."""
    rows = nsds.continue_bifurcation(table(4.4, -2.4), kind="period_doubling", parameters=("p[0]", "p[1]"), until=0.95)
    gamma, a = rows["parameters"].T
    np.testing.assert_allclose(gamma, np.hypot(2 * math.pi * (1 - a), 2 * (1 + a)), rtol=1e-10)
    np.testing.assert_allclose(abs(rows["multipliers"] + 1).min(axis=1), 0.0, atol=1e-8)


def test_folds_go_on_through_a_cusp():
    """``27 p**2 = 4 q**3``: from q = 1 to the cusp at 0, where both parameters turn, and back on the other side."""
    rows = nsds.continue_bifurcation(
        nsds.iterated_map(cubic, x=[0.6], p=[-0.4, 1.0]), kind="fold", parameters=("p[0]", "p[1]"), until=-1.0, max_points=200
    )
    p, q = rows["parameters"].T
    np.testing.assert_allclose(27 * p**2, 4 * q**3, atol=1e-10)
    assert (rows["kind"][-1], q[-1]) == ("until", 1.0)
    assert p[0] == pytest.approx(-p[-1], rel=1e-9)
    assert 0.0 < q.min() < 0.01


def test_what_else_happens_is_marked_and_no_jump_is_passed():
    """Folds of one state while the other doubles, where its multiplier is -1, and while that jumps from -1.2 to 1.5."""
    rows = nsds.continue_bifurcation(
        nsds.iterated_map(beside, x=[0.6, 0.0], p=[-0.4, 1.0]), kind="fold", parameters=("p[0]", "p[1]"), until=0.3
    )
    p, q = rows["parameters"].T
    np.testing.assert_allclose(27 * p**2, 4 * q**3, atol=1e-10)
    assert [kind for kind in rows["kind"] if kind] == ["period_doubling", "jump", "until"]
    assert q[rows["kind"] == "period_doubling"] == pytest.approx([0.6], abs=1e-9)
    assert q[rows["kind"] == "jump"] == pytest.approx([0.4], abs=1e-9)


def test_complex_pairs_until_they_are_real():
    """Of ``x' = a x (1 - y) + b, y' = x``: at a fixed point a x = 1 the pair has the product 1; at a = 3 both are 1."""
    start = nsds.iterated_map(delayed, x=[0.52, 0.5], p=[1.97, 0.0])
    rows = nsds.continue_bifurcation(start, kind="neimark_sacker", parameters=("p[0]", "p[1]"), until=-0.5)
    a, b = rows["parameters"].T
    np.testing.assert_allclose(b, 1 / a - (1 - 1 / a), atol=1e-11)
    assert rows["kind"][-1] == "fold"
    assert rows["parameters"][-1] == pytest.approx([3.0, -1 / 3], abs=1e-9)
    rows = nsds.continue_bifurcation(start, kind="neimark_sacker", parameters=("p[0]", "p[1]"), until=0.4)
    np.testing.assert_allclose(abs(rows["multipliers"]), 1.0, atol=1e-10)


@pytest.mark.parametrize(("parameter", "until"), [("stop.e", 0.6), ("stop.e", 0.95), ("mass.C[0][0]", 0.16)])
def test_doublings_of_an_impact_oscillator(parameter, until):
    """Trace and determinant of Shaw and Holmes (1983) say ``1 + trace + det = 0``."""
    _, phase, state, *_ = single_impact_orbit(0.05, 2.66, 0.8, 1, 0.0, 0.4)
    start = impact_oscillator(0.05, 2.66, 0.8, 0.0, *state, phase)
    rows = nsds.continue_bifurcation(
        start, kind="period_doubling", parameters=("mass.z[0]", parameter), until=until, period=lambda omega, _: 2 * math.pi / omega
    )
    assert (rows["kind"][-1], rows["parameters"][-1, 1]) == ("until", until)
    assert rows["parameters"][0, 0] == pytest.approx(2.6588845466848356, abs=1e-9)
    for omega, value in rows["parameters"]:
        zeta, e = (0.05, value) if parameter == "stop.e" else (0.5 * value, 0.8)
        *_, trace, det = single_impact_orbit(zeta, omega, e, 1, 0.0, 0.4)
        assert abs(1 + trace + det) < 1e-9


def test_doublings_of_the_cam_follower_end_where_a_branch_has_them():
    """The end of the curve over speed and restitution is the special point of a branch over the speed alone."""
    follower = nsds.examples.cam_follower(rpm=739.3, q=1.3279, v=-66.2)
    found = nsds.orbit(follower, period=60 / 739.3)
    follower["follower"]["q"], follower["follower"]["v"] = found["x"]
    rows = nsds.continue_bifurcation(
        follower, kind="period_doubling", parameters=("follower.z[0]", "contact.e"), until=0.75, period=lambda rpm, _: 60 / rpm
    )
    assert rows["parameters"][0, 0] == pytest.approx(739.3197803250873, abs=1e-6)
    rpm, e = rows["parameters"][-1]
    q, v = rows["x"][-1]
    branch = nsds.continue_orbit(
        nsds.examples.cam_follower(rpm=rpm - 1, e=e, q=q, v=v), parameter="follower.z[0]", until=rpm + 1, period=lambda rpm: 60 / rpm
    )
    assert branch[branch["kind"] == "period_doubling"]["parameter"] == pytest.approx([rpm], abs=1e-7)


def test_a_picture_marks_what_else_happens():
    start = nsds.iterated_map(delayed, x=[0.5, 0.5], p=[2.0, 0.0])
    ax = plotting.bifurcation_curve(nsds.continue_bifurcation(start, kind="neimark_sacker", parameters=("p[0]", "p[1]"), until=-0.5))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["fold"]
    np.testing.assert_allclose(ax.lines[1].get_xydata(), [[3.0, -1 / 3]], atol=1e-9)


def test_what_is_refused_is_named():
    with pytest.raises(ValueError, match="no period doubling is found near"):
        nsds.continue_bifurcation(
            nsds.iterated_map(cubic, x=[0.0], p=[0.0, 5.0]), kind="period_doubling",
            parameters=("p[0]", "p[1]"), until=6.0, max_points=3,
        )  # fmt: skip
    with pytest.raises(ValueError, match="two states"):
        nsds.continue_bifurcation(
            nsds.iterated_map(cubic, x=[0.0], p=[0.0, 0.0]), kind="neimark_sacker", parameters=("p[0]", "p[1]"), until=1.0
        )
    with pytest.raises(ValueError, match="must differ"):
        nsds.continue_bifurcation(nsds.iterated_map(cubic, x=[0.0], p=[0.0, 0.0]), kind="fold", parameters=("p[0]", "p[1]"), until=0.0)
