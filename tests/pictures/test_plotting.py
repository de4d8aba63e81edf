"""Pictures show the numbers of the trajectory."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import nsds
from nsds.pictures import plotting

mpl.use("Agg")


@pytest.fixture(scope="module")
def trajectory():
    return nsds.simulate(nsds.examples.bouncing_ball(), t_end=3.0, h=0.01)


def test_time_series_draws_the_named_columns(trajectory):
    ax = plotting.time_series(trajectory, "ball.q[0]", "ball.v[0]")
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), trajectory["ball"]["q"][:, 0])
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), trajectory["ball"]["v"][:, 0])
    assert len(plotting.time_series(trajectory, "ball.q").lines) == 3


def test_impulses_are_needles_where_they_act(trajectory):
    ax = plotting.time_series(trajectory, "floor.lambda")
    assert len(ax.collections[0].get_segments()) == (trajectory["floor"]["lambda"] != 0).sum()


def test_multipliers_of_first_order_systems_are_lines_without_mechanical_units():
    rows = nsds.simulate(nsds.examples.diode_bridge(), t_end=1e-4, h=1e-6)
    ax = plotting.time_series(rows, "switches.lambda[0]", "switches.lambda[1]")
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), rows["switches"]["lambda"][1:, 1])  # row 0 has no step behind it
    assert plotting.time_series(rows[5:], "switches.lambda[1]").lines[0].get_xdata().size == rows.size - 5
    assert ax.get_ylabel() == "multiplier"
    assert plotting.time_series(rows, "switches.y[0]", "switches.y[1]").get_ylabel() == "output"
    assert plotting.time_series(rows, "plant.x[0]", "plant.x[1]").get_ylabel() == "state"


def test_phase_plane_does_not_join_impacts(trajectory):
    line = plotting.phase_plane(trajectory, "ball").lines[0]
    jumps = (trajectory["floor"]["lambda"] > 0).sum()
    assert np.isnan(line.get_xdata()).sum() == jumps
    assert plotting.phase_plane(trajectory, "ball", after=2.9).lines[0].get_xdata().size <= 12


def test_given_axes_are_used_and_returned(trajectory):
    _, ax = plotting.figure()
    assert plotting.time_series(trajectory, "ball.q", ax=ax) is ax
    assert plotting.phase_plane(trajectory, "ball", ax=ax) is ax
    assert plotting.bifurcation([1.0], [[2.0]], ax=ax) is ax
    assert plotting.map_points(plotting.stroboscopic_points(trajectory, "ball", period=0.1), ax=ax) is ax


def test_stroboscopic_points_are_the_nearest_rows(trajectory):
    points = plotting.stroboscopic_points(trajectory, "ball", period=0.123, after=1.0)
    strobes = 0.123 * np.arange(9, 25)
    nearest = np.abs(trajectory["t"][:, None] - strobes).argmin(axis=0)
    np.testing.assert_array_equal(points["q"], trajectory["ball"]["q"][nearest])


def test_impact_points_are_the_rows_in_which_an_impulse_sets_in(trajectory):
    points = plotting.impact_points(trajectory, "ball", "floor", after=0.5)
    rows = np.flatnonzero(trajectory["floor"]["lambda"] > 0)[1:]
    np.testing.assert_array_equal(points["t"], trajectory["t"][rows])
    assert (points["v"][:, 0] > 0).all()


def test_bifurcation_repeats_the_parameter():
    line = plotting.bifurcation([1.0, 2.0], [[0.1, 0.2], [0.3]]).lines[0]
    assert line.get_xdata().tolist() == [1.0, 1.0, 2.0]
    assert line.get_ydata().tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("name", ["ball", "ball.w", "bell.q", "ball.q[7]"])
def test_unknown_names_are_refused_with_what_there_is(trajectory, name):
    with pytest.raises(ValueError, match=r"ball\.q"):
        plotting.time_series(trajectory, name)


def profile_of(rows):
    """A profile (problems, 2 methods) from (status, time, residual) of each."""
    result = np.zeros((len(rows), 2), nsds.solvers.problems.profiling.PROFILE)
    for problem, row in zip(result, rows, strict=True):
        for method, (code, time, residual) in zip(problem, row, strict=True):
            method["status"], method["time"], method["residual"] = code, time, residual
    result["method"] = ["a", "b"]
    return result


def test_performance_profile_counts_problems_within_a_factor_of_the_best():
    """a: 1, 3 times as long as b, failed; b: twice as long as a, 1, 1; a problem that nobody solves is left out."""
    result = profile_of([[(0, 1.0, 0), (0, 2.0, 0)], [(0, 3.0, 0), (0, 1.0, 0)], [(1, 1.0, 1), (0, 1.0, 0)], [(1, 1, 1), (1, 1, 1)]])
    np.testing.assert_array_equal(plotting.performance_ratios(result), [[1, 2], [3, 1], [np.inf, 1], [np.nan, np.nan]])
    a, b = plotting.performance_profile(result).lines
    assert a.get_label() == "a"
    np.testing.assert_allclose(a.get_xdata(), [1, 1, 3, 6])
    np.testing.assert_allclose(a.get_ydata(), [0, 1 / 3, 2 / 3, 2 / 3])
    np.testing.assert_allclose(b.get_ydata(), [0, 1 / 3, 2 / 3, 1, 1])


def test_accuracy_is_compared_from_rounding_on():
    result = profile_of([[(0, 1, 0.0), (1, 1, 1e-6)], [(0, 1, 1e-17), (0, 1, 1e-12)], [(5, 1, np.nan), (0, 1, 1e-12)]])
    np.testing.assert_allclose(plotting.performance_ratios(result, "residual"), [[1, 1e10], [1, 1e4], [np.inf, 1]])
    with pytest.raises(ValueError, match="measure must be"):
        plotting.performance_profile(result, "memory")


def test_the_axes_of_a_user_keep_what_they_have(trajectory):
    """Neither neighbours nor what is there already are touched."""
    _, axes = plt.subplots(2, 2)
    for ax in axes.flat:
        ax.set(xlabel="mine", ylabel="mine")
    plotting.time_series(trajectory, "ball.q[0]", ax=axes[0, 1])
    assert [ax.get_xlabel() for ax in axes.flat] == ["mine", "t (s)", "mine", "mine"]
    assert all(label.get_visible() for label in axes[0, 1].get_xticklabels() + axes[0, 1].get_yticklabels())
    assert axes[0, 1].get_ylabel() == "ball.q[0]"


def test_the_time_is_named_below_axes_that_share_it(trajectory):
    _, axes = plotting.figure(2, sharex=True)
    assert [plotting.time_series(trajectory, name, ax=ax).get_xlabel() for name, ax in zip(("ball.q", "ball.v"), axes, strict=True)] == [
        "",
        "t (s)",
    ]


def test_a_legend_stands_beside_the_curves(trajectory):
    ax = plotting.time_series(trajectory, "ball.q")
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1


def test_phase_plane_of_states():
    rows = nsds.simulate(nsds.examples.diode_bridge(), t_end=1e-4, h=1e-6)
    for chosen, (i, j) in (({}, (0, 1)), ({"coordinate": 1}, (1, 0)), ({"other": 0}, (0, 0))):
        line = plotting.phase_plane(rows, "plant", **chosen).lines[0]
        np.testing.assert_array_equal(line.get_xdata(), rows["plant"]["x"][:, i])
        np.testing.assert_array_equal(line.get_ydata(), rows["plant"]["x"][:, j])
    with pytest.raises(ValueError, match="other must be"):
        plotting.phase_plane(rows, "plant", other=2)


def test_other_is_for_states(trajectory):
    with pytest.raises(ValueError, match="other is for first-order systems"):
        plotting.phase_plane(trajectory, "ball", other=1)


def test_a_planar_picture_moves(trajectory, tmp_path):
    seen = []

    def lines(row):
        seen.append(float(row["t"]))
        return [[[0.0, 0.0], [row["ball"]["q"][0], 1.0]]]

    assert plotting.animate_plane(trajectory, lines, tmp_path / "ball.gif", fps=4, dpi=20) == 13
    np.testing.assert_allclose(seen, np.arange(13) / 4, atol=1e-9)
    with Image.open(tmp_path / "ball.gif") as picture:
        assert picture.n_frames > 5
    with pytest.raises(ValueError, match=r"lines must return arrays of shape \(points, 2\)"):
        plotting.animate_plane(trajectory, lambda row: [[[0.0, 0.0, 1.0]]], tmp_path / "ball.gif")


def test_the_picture_of_the_cam_has_its_impacts_and_lift_off():
    system = nsds.examples.cam_follower(rpm=150.0)
    rows = nsds.simulate(system, t_end=1.2, h=1e-3)
    lifts, forces, speeds, _ = nsds.examples.EXAMPLES["cam_follower"].draw(system, rows).axes
    cam, follower, impacts, ends = lifts.lines
    np.testing.assert_allclose(follower.get_ydata() - cam.get_ydata(), 1e3 * rows["follower"]["q"][:, 0], atol=1e-9)
    found = nsds.contact_intervals(system, rows, "contact")
    assert impacts.get_xdata().size == np.isfinite(found["impulse"]).sum() > 3
    assert 0 < ends.get_xdata().size <= (found["end"] > found["begin"]).sum()
    assert forces.lines[0].get_ydata().max() == pytest.approx(np.nanmax(found["force"]))
    assert speeds.get_ylabel() == "impact velocity (m/s)"
