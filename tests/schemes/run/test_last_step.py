"""Runs end at t_end: the last step, or the last row of an event-driven run, is shorter where h does not divide the time."""

import numpy as np
import pytest

import nsds

REMAINDERS = [(1.0, 0.3), (0.2, 0.3), (1.0, 0.0333), (1.0, 0.3333333), (-1.0, 0.07)]


def _falling(t=0.0):
    return nsds.system(t=t, ball=nsds.lagrangian(mass=[2.0], q=[1.0], v=[3.0], fext=[-4.0]))


def _charging(t=0.0):
    return nsds.linear_complementarity_system([[-2.0]], [[1.0]], [[1.0]], x=[1.0], law=nsds.relay(-1, 1), t=t)


def _flying():
    return nsds.system(body=nsds.rigid_bodies(1.0, [1.0, 2.0, 2.5], q=[0, 0, 0, 1, 0, 0, 0], v=[1, 0, 0, 0.3, 0.1, 0.2]))


SCHEMES = [
    (_falling, None), (_falling, nsds.moreau_jean(theta=0.5)), (_falling, nsds.event_driven()), (_falling, nsds.d1_minus_linear()),
    (_falling, nsds.moreau_jean_combined_projection()), (_falling, nsds.schatzman_paoli()), (_charging, None),
    (_charging, nsds.event_driven()), (_flying, None), (_flying, nsds.moreau_jean()), (_flying, nsds.event_driven()),
]  # fmt: skip


@pytest.mark.parametrize(("model", "scheme"), SCHEMES, ids=lambda x: getattr(x, "__name__", str(x))[:24])
def test_the_last_row_is_at_t_end(model, scheme):
    """Rows are multiples of h after the start, the last one is t_end exactly; a run from there goes on with no gap."""
    system = model()
    for t_end, h in ((1.0, 0.3), (0.2, 0.3), (1.0, 0.0333)):
        rows = nsds.simulate(system, t_end=t_end, h=h, scheme=scheme)
        t = rows["t"][~nsds.status.is_event(rows["status"])]
        assert t[-1] == t_end
        assert np.array_equal(t[:-1], np.arange(t.size - 1) * h)
        assert (t.size - 2) * h < t_end <= (t.size - 1) * h
        assert not nsds.status.has_failed(rows["status"]).any()
        on = nsds.simulate(nsds.restart(system, rows[-1]), t_end=t_end + 1.0, h=0.25, scheme=scheme)
        assert on["t"][0] == t_end
        assert on["t"][-1] == t_end + 1.0


@pytest.mark.parametrize("scheme", [None, nsds.moreau_jean(theta=0.5), nsds.event_driven()])
@pytest.mark.parametrize(("t_end", "h"), REMAINDERS)
def test_the_state_at_t_end_is_that_of_t_end(scheme, t_end, h):
    """A constant force: theta = 1/2 and events give the parabola in whatever steps."""
    start = -1.5 if t_end < 0 else 0.0
    system = _falling()
    system["t"] = start
    rows = nsds.simulate(system, t_end=t_end, h=h, scheme=scheme)
    s = t_end - start
    assert rows["t"][-1] == t_end
    assert abs(rows["ball"]["v"][-1, 0] - (3 - 2 * s)) < 1e-12
    assert abs(rows["ball"]["q"][-1, 0] - (1 + 3 * s - s**2)) < 1e-12


def test_steps_that_divide_the_time_are_as_they_were():
    """h of decimals divides t_end up to rounding: no further step, and times are multiples of h to the bit."""
    for t_end, h in ((1.0, 0.1), (0.3, 0.1), (10.0, 5e-3), (4 * 97.3e-6, 97.3e-6), (1.0, 1 / 3), (1.0, 1 / 7)):
        rows = nsds.simulate(_falling(), t_end=t_end, h=h)
        assert np.array_equal(rows["t"], np.arange(round(t_end / h) + 1) * h)
    rows = nsds.simulate(_falling(), t_end=1.0, h=0.33333333)  # short by 1e-8 of time: part of the last step
    assert rows.size == 4
    assert rows["t"][-1] == 1.0


def test_every_member_and_every_way_to_save_ends_there():
    members = np.repeat(_falling(), 5)
    members["ball"]["v"] += np.linspace(0, 1, 5).reshape(members["ball"]["v"].shape)
    for settings in ({}, {"save_every": 3}, {"t_eval": [0.3, 0.91]}, {"fields": "ball"}, {"on_failure": "continue"}):
        rows = nsds.simulate(members, t_end=0.95, h=0.1, **settings)
        assert (rows["t"][:, -1] == 0.95).all()
        assert (rows["step"][:, -1] == 10).all()
    rows = nsds.simulate(members, t_end=0.95, h=[0.1, 0.2, 0.3, 0.95, 2.0])
    last = [r["t"][r["status"] != nsds.status.NOT_COMPUTED][-1] for r in rows]
    assert last == [0.95] * 5
    seen = []
    nsds.simulate(_falling(), t_end=0.95, h=0.1, callback=lambda system: seen.append(float(system["t"])))
    assert seen[-1] == 0.95
    assert len(seen) == 10


def test_the_run_in_a_file_ends_there_and_goes_on(tmp_path):
    pytest.importorskip("h5py")
    file = tmp_path / "run.h5"
    last = nsds.stream(_falling(), file, t_end=0.95, h=0.1)
    assert last["t"] == 0.95
    nsds.resume(file, t_end=1.25)
    rows = nsds.read_trajectory(file)
    np.testing.assert_allclose(rows["t"], [*np.arange(10) * 0.1, 0.95, 1.05, 1.15, 1.25], rtol=0, atol=1e-15)
    np.testing.assert_allclose(rows["ball"]["q"][:, 0], 1 + 3 * rows["t"] - rows["t"] ** 2, rtol=0, atol=1e-12)


def test_an_event_in_the_last_shorter_row_is_found():
    """A ball that comes to the floor at 1 s, in a run that ends at 1.02 s with rows of 0.3 s; and one that ends before."""
    system = nsds.system(
        ball=nsds.lagrangian(mass=[1.0], q=[1.0], v=[0.0], fext=[-2.0]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation([[1.0]]), nsds.newton_impact(0.5), on="ball"),
    )
    rows = nsds.simulate(system, t_end=1.02, h=0.3, scheme=nsds.event_driven())
    assert rows["t"][-1] == 1.02
    assert np.sum(nsds.status.is_event(rows["status"])) == 2
    assert abs(rows["ball"]["q"][-1, 0] - (0.02 - 0.02**2)) < 1e-12
    rows = nsds.simulate(system, t_end=0.99, h=0.3, scheme=nsds.event_driven())
    assert rows["t"][-1] == 0.99
    assert not nsds.status.is_event(rows["status"]).any()


def test_controllers_keep_their_instants():
    """A controller with a period of two steps is called at multiples of it, and not at t_end."""

    def control(t, x, state, z, u):
        u[0] = t

    system = nsds.system(
        cart=nsds.lagrangian(mass=[1.0], q=[0.0], v=[0.0], u=[0.0]),
        hold=nsds.sampled_control(control, reads="cart", writes="cart", period=0.2),
    )
    for scheme in (None, nsds.event_driven()):
        rows = nsds.simulate(system, t_end=0.75, h=0.1, scheme=scheme, fields=["cart", "cart.u"])
        assert rows["t"][-1] == 0.75
        np.testing.assert_allclose(rows["cart"]["u"][-1], 0.6, atol=1e-12)
        v = 0.2 * (0.0 + 0.2 + 0.4) + 0.15 * 0.6
        np.testing.assert_allclose(rows["cart"]["v"][-1], v, atol=1e-12)


def test_members_that_begin_at_different_times_are_told():
    members = np.repeat(_falling(), 2)
    members["t"] = [0.0, 0.02]
    with pytest.raises(ValueError, match="begin at different times"):
        nsds.simulate(members, t_end=0.95, h=0.1)


def test_a_condition_that_holds_at_the_end():
    rows = nsds.simulate(_falling(), t_end=0.95, h=0.1, until=lambda rows: rows["t"] > 0.94)
    assert rows["t"][-1] == 0.95
    assert rows["t"][-2] < 0.94
