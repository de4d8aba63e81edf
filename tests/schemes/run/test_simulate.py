"""simulate, step, restart and report: what they save, what they refuse, and how they fail."""

import contextlib
import io
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import nsds
from nsds import status
from nsds.schemes.run.progress import Progress

ball = nsds.examples.bouncing_ball
relation = nsds.lagrangian_linear_relation


def test_rows_and_clock():
    trajectory = nsds.simulate(ball(), t_end=1.0, h=0.01)
    np.testing.assert_array_equal(trajectory["step"], np.arange(101))
    np.testing.assert_array_equal(trajectory["t"], 0.01 * np.arange(101))
    assert trajectory["ball"]["q"].shape == (101, 3)
    assert trajectory["floor"]["lambda"].shape == (101,)
    assert trajectory["floor"]["active"].dtype == np.int64


@pytest.mark.parametrize(("t_end", "n_steps"), [(1.0, 10), (0.95, 10), (0.30000000000000004, 3), (0.05, 1)])
def test_the_fewest_steps_that_reach_t_end(t_end, n_steps):
    assert len(nsds.simulate(ball(), t_end=t_end, h=0.1)) == n_steps + 1


@pytest.mark.parametrize(
    ("fields", "t_end", "h", "words"),
    [
        ({}, 1e300, 1e-3, "h = 0.001 is lost in the rounding of times like 1e\\+300"),
        ({}, 1.0, 1e-20, "h = 1e-20 is lost in the rounding of times like 1, which is 2.2e-16"),
        ({"t": 1e17}, None, 0.1, "h = 0.1 is lost"),
        ({"t": -1e17}, 1.0, 0.1, "h = 0.1 is lost"),
        ({"t": np.nan}, 1.0, 0.1, "t.*must be finite"),
        ({"t": np.inf}, None, 0.1, "t.*must be finite"),
        ({"step": 2**60, "t": 0.25 * 2**60, "t0": 0.0}, None, 64.0, "lost|step must be"),
        ({"step": -5, "t0": 0.5}, None, 0.1, "step"),
    ],
)
def test_times_that_steps_do_not_reach_are_refused(fields, t_end, h, words):
    system = ball()
    for name, value in fields.items():
        system[name] = value
    with pytest.raises(ValueError, match=words):
        nsds.step(system, h) if t_end is None else nsds.simulate(system, t_end=t_end, h=h)


def test_steps_are_allowed_down_to_the_rounding_of_times():
    system = ball()
    system["t"] = system["t0"] = 2.0**40
    rows = nsds.simulate(system, t_end=2.0**40 + 2.0**-10, h=2.0**-12)
    np.testing.assert_array_equal(np.diff(rows["t"]), 2.0**-12)
    with pytest.raises(ValueError, match="lost in the rounding"):
        nsds.simulate(system, t_end=2.0**40 + 2.0**-10, h=2.0**-13)


def test_save_every_keeps_the_same_rows_and_the_last():
    every = nsds.simulate(ball(), t_end=1.0, h=0.01)
    some = nsds.simulate(ball(), t_end=1.0, h=0.01, save_every=7)
    kept = [*range(0, 101, 7), 100]
    for name in ("t", "step", "ball", "floor"):
        np.testing.assert_array_equal(some[name], every[name][kept])
    assert some["n_iter"].sum() == every["n_iter"].sum()


def test_rows_at_times_are_those_of_the_steps_that_reach_them():
    every = nsds.simulate(ball(), t_end=1.0, h=0.01)
    some = nsds.simulate(ball(), t_end=1.0, h=0.01, t_eval=[0.0, 0.105, 0.2, 0.2, 0.9])
    for name in ("t", "step", "ball", "floor"):
        np.testing.assert_array_equal(some[name], every[name][[0, 11, 20, 90, 100]])
    assert some["n_iter"].sum() == every["n_iter"].sum()
    systems = np.repeat(ball(), 3)
    assert nsds.simulate(systems, t_end=1.0, h=0.01, t_eval=np.linspace(0.0, 1.0, 11)).shape == (3, 11)
    with pytest.raises(ValueError, match=r"t_eval .* save_every=1"):
        nsds.simulate(ball(), t_end=1.0, h=0.01, t_eval=[0.1], save_every=2)


def test_a_callback_sees_the_system_and_may_end_the_run():
    every, seen = nsds.simulate(ball(), t_end=1.0, h=0.01), []
    rows = nsds.simulate(ball(), t_end=1.0, h=0.01, callback=seen.append, callback_every=25)
    assert rows.tobytes() == every.tobytes()
    assert [system["ball"]["q"].tobytes() for system in seen] == [every["ball"]["q"][k].tobytes() for k in (25, 50, 75, 100)]
    low = nsds.simulate(ball(), t_end=1.0, h=0.01, save_every=7, callback=lambda system: system["ball"]["q"][0] < 0.3)
    last = int(np.argmax(every["ball"]["q"][:, 0] < 0.3))
    assert low["step"].tolist() == [*range(0, last, 7), last]
    assert low["ball"][-1].tobytes() == every["ball"][last].tobytes()
    systems = np.repeat(ball(), 3).reshape(3, 1)
    assert nsds.simulate(systems, t_end=1.0, h=0.01, callback=lambda systems: systems.shape == (3, 1), callback_every=4).shape == (3, 1, 5)

    def failing(system):
        raise LookupError("own")

    with pytest.raises(LookupError, match="own"):
        nsds.simulate(ball(), t_end=1.0, h=0.01, callback=failing)
    with pytest.raises(ValueError, match="callback: several schemes"):
        nsds.simulate(ball(), t_end=1.0, h=0.01, callback=failing, scheme={"ball": nsds.moreau_jean()})


def test_fields_choose_what_is_saved():
    trajectory = nsds.simulate(ball(), t_end=1.0, h=0.01, fields=["floor.lambda", "ball.p", "ball.q"])
    assert trajectory.dtype["ball"].names == ("p", "q")
    assert trajectory.dtype["floor"].names == ("lambda",)
    np.testing.assert_array_equal(trajectory["ball"]["p"][:, 0], trajectory["floor"]["lambda"])
    with pytest.raises(ValueError, match=r"does not hold ball\.v"):
        nsds.restart(ball(), nsds.simulate(ball(), t_end=0.1, h=0.01, fields=["ball.q", "floor.lambda"])[3])


@pytest.mark.parametrize(
    ("error", "words", "arguments"),
    [
        (ValueError, ["h", "above 0", "-0.1"], {"h": -0.1}),
        (ValueError, ["h", "above 0"], {"h": 0.0}),
        (ValueError, ["h", "finite"], {"h": np.nan}),
        (ValueError, ["t_end", "after", "-1"], {"t_end": -1.0}),
        (ValueError, ["save_every", "at least 1"], {"save_every": 0}),
        (TypeError, ["save_every", "whole number"], {"save_every": 1.5}),
        (ValueError, ["on_failure", "ignore"], {"on_failure": "ignore"}),
        (ValueError, ["fields", "'bal'", "ball, floor"], {"fields": ["bal"]}),
        (ValueError, ["fields", "'ball'", "'w'", "q, v"], {"fields": ["ball.w"]}),
        (TypeError, ["scheme", "moreau_jean"], {"scheme": "euler"}),
        (ValueError, ["solver", "lemke", "simplex"], {"solver": "simplex"}),
        (TypeError, ["solver", "record"], {"solver": 3}),
    ],
)
def test_bad_arguments_are_named(error, words, arguments):
    with pytest.raises(error) as caught:
        nsds.simulate(ball(), **{"t_end": 1.0, "h": 0.1, **arguments})
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("theta", 1.5), ("theta", -0.1), ("gamma", -1.0), ("theta", np.inf)])
def test_bad_options_of_the_scheme_are_named(name, value):
    with pytest.raises(ValueError, match=f"moreau_jean: {name}"):
        nsds.moreau_jean(**{name: value})


def test_fields_assigned_later_are_checked_before_the_first_step():
    system = ball()
    system["ball"]["v"][1] = np.inf
    with pytest.raises(ValueError, match=r"ball\.v must be finite"):
        nsds.simulate(system, t_end=1.0, h=0.1)
    bar = nsds.examples.impacting_bar()
    bar["bar"]["K"]["data"][3] = np.nan
    with pytest.raises(ValueError, match=r"bar\.K\.data must be finite"):
        nsds.simulate(bar, t_end=1.0, h=0.1)
    systems = np.repeat(ball(), 3)
    systems["floor"]["e"] = [0.5, 2.0, 0.1]
    with pytest.raises(ValueError, match=r"floor\.e must be in \[0, 1\]"):
        nsds.simulate(systems, t_end=1.0, h=0.1)


@pytest.mark.parametrize("storage", [np.diag, np.asarray, sp.csr_array])
def test_singular_iteration_matrix_names_the_part(storage):
    parts = {"M": np.diag([1.0, 0.0]), "q": [0, 0], "v": [0, 0]}
    system = nsds.system(cart=nsds.lagrangian_linear(**{**parts, "M": storage(parts["M"])}))
    with pytest.raises(ValueError, match=r"part 'cart'.*M \+ h theta C \+ h\^2 theta\^2 K is singular"):
        nsds.simulate(system, t_end=1.0, h=0.1)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n", [3, 90])
def test_singular_iteration_matrix_names_its_row(storage, n):
    """Row 2 is zero, or twice row 1."""
    for block, rows in (([[1.0, 0.0], [0.0, 0.0]], "2"), ([[1.0, 2.0], [2.0, 4.0]], "[12]")):
        M = 2.0 * np.eye(n) + 0.3 * (np.eye(n, k=1) + np.eye(n, k=-1))
        M[1:3] = M[:, 1:3] = 0.0
        M[1:3, 1:3] = block
        system = nsds.system(cart=nsds.lagrangian_linear(M=storage(M), q=np.zeros(n), v=np.zeros(n)))
        with pytest.raises(ValueError, match=rf"part 'cart'.* is singular \(h = 0.1\): row {rows} is zero or depends on the others"):
            nsds.simulate(system, t_end=1.0, h=0.1)


def test_singular_member_and_element_are_named():
    systems = np.repeat(nsds.system(cart=nsds.lagrangian_linear(M=[[1.0]], q=[0], v=[0], count=3)), 4)
    systems["cart"]["M"][2, 1] = 0.0
    with pytest.raises(ValueError, match="part 'cart', element 1, member 2"):
        nsds.simulate(systems, t_end=1.0, h=0.1)


def unsolvable(after=3):
    """A method that gives up: pgs on a problem that needs many sweeps, limited to one."""
    system = nsds.system(
        beads=nsds.lagrangian_linear(M=1.0, fext=-9.81, q=np.arange(3.0) + after * 0.01, v=-1.0, count=3),
        floor=nsds.interaction(relation(H=[[1.0]]), nsds.newton_impact(0.0), on="beads[0]"),
        gaps=nsds.interaction(relation(H=[[-1.0, 1.0]], b=[-1.0]), nsds.newton_impact(0.0), on=("beads[:-1]", "beads[1:]")),
    )
    return system, {"t_end": 0.1, "h": 0.01, "solver": nsds.solvers.solver("pgs", max_iter=1)}


def test_an_unsolved_step_raises_with_everything_computed_so_far():
    system, arguments = unsolvable()
    with pytest.raises(nsds.SimulationError, match=r"step \d+ .*iteration limit.*residual") as caught:
        nsds.simulate(system, **arguments)
    error = caught.value
    assert error.status == status.MAX_ITER
    assert error.trajectory["status"].tolist() == [0] * error.step + [status.MAX_ITER]
    assert error.residual == error.trajectory["residual"][-1] > 1e-10
    assert error.member is None


def test_an_unsolved_step_may_be_warned_of_or_left_in_the_statuses():
    system, arguments = unsolvable()
    with pytest.warns(RuntimeWarning, match="iteration limit"):
        warned = nsds.simulate(system, on_failure="warn", **arguments)
    quiet = nsds.simulate(system, on_failure="continue", **arguments)
    np.testing.assert_array_equal(warned, quiet)
    assert (quiet["status"] == status.MAX_ITER).any()
    thinned = nsds.simulate(system, on_failure="continue", save_every=100, **arguments)
    assert thinned["status"][-1] == status.MAX_ITER
    assert thinned["residual"][-1] == quiet["residual"].max()
    with pytest.raises(nsds.SimulationError):
        nsds.step(nsds.restart(system, quiet[np.argmax(quiet["status"]) - 1]), h=0.01, solver=arguments["solver"])


def test_a_failed_member_of_an_ensemble_is_named_and_the_others_are_kept():
    systems = np.repeat(ball(), 3)
    systems["ball"]["q"][1] = [1e308, 0, 0]
    systems["ball"]["v"][1] = [1e308, 0, 0]
    with pytest.raises(nsds.SimulationError, match=r"member 1, step \d+ .*the state of part 'ball' became NaN or infinite") as caught:
        nsds.simulate(systems, t_end=20.0, h=0.1)
    trajectories = caught.value.trajectory
    assert trajectories.shape[0] == 3
    assert caught.value.member == 1
    assert (trajectories["status"][1, caught.value.step + 1 :] == status.NOT_COMPUTED).all()
    assert np.isfinite(trajectories["ball"]["q"][[0, 2]]).all()


@pytest.mark.parametrize("solver", nsds.solvers.methods())
def test_a_problem_without_solution_is_reported_by_every_method(solver):
    """Between two touching walls of different restitution: ``w_1 + w_2 = (e_1 - e_2) v < 0``."""
    system = nsds.system(
        ball=nsds.lagrangian_linear(M=[1.0], q=[0.0], v=[1.0]),
        walls=nsds.interaction(relation(H=[[1.0], [-1.0]]), nsds.newton_impact([0.0, 0.5]), on="ball"),
    )
    with pytest.raises(nsds.SimulationError) as caught:
        nsds.simulate(system, t_end=0.1, h=0.01, solver=solver, scheme=nsds.moreau_jean(gamma=0.0))
    assert caught.value.step == 1
    assert caught.value.residual > 0.01


def test_interrupt_keeps_what_was_computed():
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    nsds.simulate(ball(), t_end=1.0, h=1e-2)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process that runs tests for another ignores it
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            nsds.simulate(ball(), t_end=1e9, h=1.0, save_every=1000)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert isinstance(caught.value, nsds.SimulationInterrupted)
    trajectory = caught.value.trajectory
    assert 1 < len(trajectory) < 1e6
    np.testing.assert_array_equal(trajectory["step"], 1000 * np.arange(len(trajectory)))


def test_progress_bar_counts_the_steps():
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown):
        nsds.simulate(ball(), t_end=1.0, h=1e-3, progress=True)
    assert "1.00k/1.00k" in shown.getvalue()


def test_the_progress_bar_begins_after_what_may_be_compiled():
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown), Progress(True, 100) as bar:
        assert shown.getvalue() == ""
        bar.update(40)
        bar.update(60)
    first, *_ = shown.getvalue().strip("\r").split("\r")
    assert "40.0/100" in first
    assert "100/100" in shown.getvalue()


def test_step_agrees_with_simulate_bit_for_bit():
    system = ball(height=0.02)
    trajectory = nsds.simulate(system, t_end=0.2, h=0.01)
    for k in range(1, 21):
        system = nsds.step(system, h=0.01)
        for part, names in (("ball", ("q", "v")), ("floor", ("y", "ydot", "lambda", "active"))):
            for name in names:
                np.testing.assert_array_equal(system[part][name], trajectory[part][name][k])
    assert system["t"] == trajectory["t"][-1]


def test_a_new_step_size_starts_a_new_clock():
    system = nsds.step(nsds.step(ball(), h=0.1), h=0.03)
    assert system["t"] == 0.1 + 0.03
    assert system["step"] == 1


def test_ensemble_keeps_its_shape():
    systems = np.tile(np.repeat(ball(), 3), 2)
    assert nsds.simulate(systems, t_end=0.1, h=0.01).shape == (6, 11)
    assert nsds.step(systems, h=0.01).shape == (6,)
    one_row = nsds.simulate(systems, t_end=0.1, h=0.01)[:, 4]
    assert nsds.restart(systems, one_row)["t"].tolist() == [0.04] * 6
    systems["t"][2] = 0.5
    with pytest.raises(ValueError, match="same time"):
        nsds.simulate(systems, t_end=1.0, h=0.01)


def test_restart_wants_one_row_for_each_record():
    with pytest.raises(ValueError, match=r"shape \(\), got \(11,\)"):
        nsds.restart(ball(), nsds.simulate(ball(), t_end=0.1, h=0.01))


def test_report_tells_failures_penetration_and_balance():
    shown = io.StringIO()
    system, arguments = unsolvable()
    trajectory = nsds.simulate(system, on_failure="continue", **arguments)
    nsds.report(system, trajectory, file=shown)
    text = shown.getvalue()
    assert f"in {((trajectory['status'] != 0) & (trajectory['status'] != status.INEXACT)).sum()} rows" in text
    assert "iteration limit" in text
    assert "penetration" in text
    assert "balance within" in text
    shown = io.StringIO()
    nsds.report(np.repeat(ball(), 2), nsds.simulate(np.repeat(ball(), 2), t_end=1.0, h=0.01), file=shown)
    assert shown.getvalue().startswith("2 members, 100 steps")


def test_report_tells_joints_from_contacts():
    system = nsds.system(
        cart=nsds.lagrangian_linear(M=[1.0], fext=[1.0], q=[0.0], v=[0.0]),
        brake=nsds.interaction(relation(H=[[1.0]], b=[0.25]), nsds.equality(), on="cart"),
    )
    shown = io.StringIO()
    nsds.report(system, nsds.simulate(system, t_end=1.0, h=0.01), file=shown)
    assert "brake             violated by at most 2.5e-01, at t = 0" in shown.getvalue()
    assert "0 -> 0 J: no work" in shown.getvalue()  # the force on it does not move


def test_energy_wants_every_step():
    with pytest.raises(ValueError, match="every step saved"):
        nsds.energy(ball(), nsds.simulate(ball(), t_end=1.0, h=0.01, save_every=2))
    with pytest.raises(ValueError, match="state of part 'ball'"):
        nsds.energy(ball(), nsds.simulate(ball(), t_end=1.0, h=0.01, fields=["floor"]))


def test_energy_of_a_damped_driven_oscillator_balances():
    def drive(t, z, out):
        out[0] = np.cos(3 * t)

    for storage in (np.asarray, sp.csr_array):
        part = nsds.lagrangian_linear(M=storage([[2.0]]), K=storage([[8.0]]), C=storage([[0.3]]), fext=drive, q=[1.0], v=[0.0])
        wall = nsds.interaction(relation(H=[[1.0]], b=[0.2], D=[[0.01]]), nsds.newton_impact(0.5), on="mass")
        system = nsds.system(mass=part, wall=wall)
        ledger = nsds.energy(system, nsds.simulate(system, t_end=10.0, h=1e-2))
        assert abs(ledger["numerical"]).max() < 1e-12
        assert ledger["damping"].max() <= 0
        assert ledger["contact"].min() < 0


def test_a_member_of_an_ensemble_is_not_changed_by_its_own_run():
    """`numpy.array(ensemble[0])` shares memory with the ensemble."""
    ensemble = np.repeat(nsds.examples.bouncing_ball(), 2)
    before = ensemble.tobytes()
    rows = nsds.simulate(ensemble[0], t_end=0.5, h=0.01)
    nsds.step(ensemble[1], 0.01)
    nsds.restart(ensemble[1], rows[10])
    assert ensemble.tobytes() == before


def test_rows_that_no_memory_holds_are_refused_before_the_run():
    with pytest.raises(MemoryError, match=r"rows of \d+ bytes are more than the memory .* save_every or fields, .* nsds.stream"):
        nsds.simulate(ball(), t_end=1e12, h=1e-3)
    assert len(nsds.simulate(ball(), t_end=1.0, h=1e-3, save_every=1000)) == 2


def test_rows_go_into_an_array_of_the_user():
    balls = np.repeat(nsds.examples.bouncing_ball(), 3)
    balls["ball"]["q"][:, 0] = [1.0, 1.1, 1.2]
    settings = {"t_end": 2.0, "h": 0.01, "fields": ["ball.q", "floor.lambda"]}
    rows = nsds.simulate(balls, **settings)
    out = np.empty_like(rows)
    out.view(np.uint8)[...] = 255
    again = nsds.simulate(balls, out=out, **settings)
    assert again.tobytes() == rows.tobytes()
    assert np.shares_memory(again, out)
    shorter = nsds.simulate(balls, out=out, until="ball.q[0] < 0.5", **settings)
    assert np.shares_memory(shorter, out)
    assert shorter.shape[1] < rows.shape[1]
    one = nsds.simulate(balls[1], out=out[1], **settings)
    assert one.tobytes() == rows[1].tobytes()
    assert np.shares_memory(one, out)


def test_arrays_that_do_not_fit_the_rows_are_refused():
    ball, settings = nsds.examples.bouncing_ball(), {"t_end": 1.0, "h": 0.01}
    rows = nsds.simulate(ball, **settings)
    readonly = rows.copy()
    readonly.flags.writeable = False
    for out in (rows[:-1], rows[::-1], readonly, np.repeat(rows[None], 2, axis=0), nsds.simulate(ball, fields="ball.q", **settings)):
        with pytest.raises(ValueError, match="out must be a writable, contiguous array"):
            nsds.simulate(ball, out=out, **settings)
    with pytest.raises(ValueError, match="event-driven"):
        nsds.simulate(ball, out=rows, scheme=nsds.event_driven(), **settings)


def members_of_their_own(h):
    """(balls from four heights, a trajectory in which each has its own step)."""
    balls = np.repeat(ball(), 4).reshape(2, 2)
    balls["ball"]["q"][..., 0] = [[1.0, 1.1], [1.2, 1.3]]
    return balls, nsds.simulate(balls, t_end=1.0, h=h)


def test_members_may_have_steps_of_their_own():
    h = np.array([[0.01, 0.003], [0.01, 0.1]])
    balls, rows = members_of_their_own(h)
    assert rows.shape == (2, 2, 335)
    for m in np.ndindex(h.shape):
        alone = nsds.simulate(balls[m], t_end=1.0, h=h[m])
        assert rows[m][: len(alone)].tobytes() == alone.tobytes()
        rest = rows[m][len(alone) :]
        assert (rest["status"] == status.NOT_COMPUTED).all()
        assert np.isnan(rest["ball"]["q"]).all()
    assert members_of_their_own([[0.01] * 2] * 2)[1].tobytes() == nsds.simulate(balls, t_end=1.0, h=0.01).tobytes()


def test_rows_at_times_and_ends_by_conditions_go_with_steps_of_their_own():
    balls = np.repeat(ball(), 2)
    rows = nsds.simulate(balls, t_end=1.0, h=[0.01, 0.004], t_eval=[0.2, 0.4], fields="ball.q")
    np.testing.assert_allclose(rows["t"], [[0.0, 0.2, 0.4, 1.0]] * 2, atol=1e-12)
    ended = nsds.simulate(balls, t_end=1.0, h=[0.01, 0.004], until="ball.q[0] < 0.5")
    for m, h in enumerate((0.01, 0.004)):
        alone = nsds.simulate(balls[m], t_end=1.0, h=h, until="ball.q[0] < 0.5")
        assert ended[m, : len(alone)].tobytes() == alone.tobytes()


def test_rows_of_steps_of_their_own_have_the_room_of_the_largest():
    places = [[0.5 * (k % 2), 0.5 * (k // 2 % 2), 1.0 + k, 1, 0, 0, 0] for k in range(8)]
    contacts = nsds.collisions(
        {"balls": nsds.shapes.sphere(0.2)}, nsds.newton_impact_friction(0.0, 0.3), world=nsds.shapes.plane(), capacity=1
    )
    system = nsds.system(
        balls=nsds.rigid_bodies(mass=np.ones(8), inertia=[np.eye(3)] * 8, q=places, v=np.zeros((8, 6)), fext=[[0, 0, -9.81]] * 8),
        ground=contacts,
    )
    systems, h = np.repeat(system, 2), [0.01, 0.02]
    systems["balls"]["q"][1, :4, 2] = 0.2  # four on the plane: only this one has to grow
    rows = nsds.simulate(systems, t_end=0.1, h=h)
    for m in range(2):
        alone = nsds.simulate(systems[m], t_end=0.1, h=h[m])
        n = alone["ground"]["n"]
        np.testing.assert_array_equal(rows["ground"]["n"][m, : len(alone)], n)
        np.testing.assert_array_equal(rows["balls"]["q"][m, : len(alone)], alone["balls"]["q"])
        np.testing.assert_array_equal(rows["ground"]["lambda"][m, : len(alone), : n.max()], alone["ground"]["lambda"][:, : n.max()])


def test_a_failed_member_with_a_step_of_its_own_is_named():
    balls = np.repeat(ball(), 3)
    balls["ball"]["q"][2] = balls["ball"]["v"][2] = [1e308, 0, 0]
    with pytest.raises(nsds.SimulationError, match=r"member 2, step \d+ .*the state of part 'ball'") as caught:
        nsds.simulate(balls, t_end=20.0, h=[0.1, 0.2, 0.1])
    rows = caught.value.trajectory
    assert caught.value.member == 2
    assert (rows["status"][0, : caught.value.step] == 0).all()
    assert (rows["status"][1] == status.NOT_COMPUTED).all()  # its turn had not come


def test_interrupted_members_with_steps_of_their_own_keep_what_was_computed():
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    balls, condition = np.repeat(ball(), 2), lambda rows: interrupted_at(rows)

    def interrupted_at(rows):
        if rows["t"][-1] > 50.0 and len(balls) == 2 and rows["step"][-1] > 600:
            signal.raise_signal(signal.SIGINT)
        return np.zeros(len(rows), bool)

    try:
        with pytest.raises(nsds.SimulationInterrupted) as caught:
            nsds.simulate(balls, t_end=100.0, h=[1.0, 0.01], until=condition)
    finally:
        signal.signal(signal.SIGINT, handler)
    rows = caught.value.trajectory
    assert (rows["status"][0, :101] == 0).all()
    assert rows["t"][1, 1] == 0.01


@pytest.mark.parametrize(
    ("h", "more", "words"),
    [
        ([0.1], {}, r"h must be a number, or one for each member with shape \(2,\), got shape \(1,\)"),
        ([0.1, -0.1], {}, "h must be.*-0.1"),
        ([0.1, np.nan], {}, "h must be finite"),
        ([0.1, 0.2], {"callback": print}, "callback: several steps run one after the other"),
        ([0.1, 0.2], {"out": np.zeros(2)}, "out: several steps run one after the other"),
    ],
)
def test_steps_of_their_own_that_do_not_fit_are_refused(h, more, words):
    with pytest.raises(ValueError, match=words):
        nsds.simulate(np.repeat(ball(), 2), t_end=1.0, h=h, **more)
    for one_only in (nsds.stepper, nsds.step):
        with pytest.raises((TypeError, ValueError), match="h must be"):
            one_only(np.repeat(ball(), 2), h=np.array(h))
