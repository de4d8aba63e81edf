"""The report says what a trajectory holds, how well each law does, and where the energy went, for all systems and laws."""

import io
import math
import re

import numpy as np
import pytest

import nsds


def printed(system, trajectory):
    out = io.StringIO()
    nsds.report(system, trajectory, file=out)
    return out.getvalue()


def one_state(law):
    """``x' = 1 + lambda``, y = x, under a law."""
    return nsds.linear_complementarity_system(A=[[0.0]], B=[[1.0]], C=[[1.0]], b=[1.0], x=[0.5], law=law)


LAWS = {
    "complementarity": nsds.complementarity(),
    "relay": nsds.relay(-2.0, 0.5),
    "equality": nsds.equality(),
    "mixed_complementarity": nsds.mixed_complementarity(1),
    "normal_cone": nsds.normal_cone(G=[[1.0], [-1.0]], g=[-2.0, -0.5]),
}


@pytest.mark.parametrize("law", LAWS)
def test_first_order_report_has_no_mechanical_words(law):
    system = one_state(LAWS[law])
    text = printed(system, nsds.simulate(system, t_end=1.0, h=0.1))
    assert f"{law} violated by at most" in text
    assert not any(word in text for word in ("energy", "penetration", "impact", "J:"))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("field", ["y", "lambda"])
def test_report_finds_the_row_that_breaks_the_law(law, field):
    system = one_state(LAWS[law])
    trajectory = nsds.simulate(system, t_end=1.0, h=0.1)
    trajectory["switches"][field][7] = -3.0
    if law in ("equality", "mixed_complementarity") and field == "lambda":
        trajectory["switches"]["y"][7] = 0.25  # any multiplier will do there
        assert "violated by at most 2.5e-01, at t = 0.7 s" in printed(system, trajectory)
    else:
        size = float(printed(system, trajectory).split("violated by at most ")[1].split(",")[0])
        assert size >= 1.0
        assert ", at t = 0.7 s\n" in printed(system, trajectory)


def test_report_of_ensembles_and_array_parts():
    system = nsds.system(
        cells=nsds.first_order_linear(A=-1.0, x=[1.0, -1.0, 0.5], count=3),
        relays=nsds.interaction(nsds.first_order_linear_relation(C=[[1.0]], B=[[1.0]]), nsds.relay(), on="cells"),
    )
    members = np.repeat(system, 2)
    members["relays"]["upper"] = 2.0
    trajectories = nsds.simulate(members, t_end=1.0, h=0.1)
    assert "relay violated by at most" in printed(members, trajectories)
    trajectories["relays"]["lambda"][1, 4, 2] = 2.5  # above the upper bound
    assert "violated by at most 5.0e-01, at t = 0.4" in printed(members, trajectories)


linear = nsds.lagrangian_linear_relation


def test_friction_is_judged_by_its_normal_constraints():
    system = nsds.examples.spinning_disk(spin=-2.0)
    system["floor"]["b"][1] = -1.0
    trajectory = nsds.simulate(system, t_end=2.0, h=5e-3)
    y, lam = trajectory["floor"]["y"][:, 0], trajectory["floor"]["lambda"][:, 0]
    assert trajectory["floor"]["lambda"][:, 1].min() < 0  # only a bilateral normal would pull
    assert trajectory["floor"]["y"][:, 1].min() < -0.1
    impacts = ((lam[1:] > 0) & (lam[:-1] == 0)).sum()
    depth = f"penetration {-y.min():.1e} m at t = {trajectory['t'][y.argmin()]:g} s"
    assert f"floor             {depth}; {impacts} impacts, impulse up to {lam.max():.3g} N s; never closed" in printed(system, trajectory)
    trajectory["floor"]["y"][7, 0] = -0.5
    assert "penetration 5.0e-01 m at t = 0.035 s;" in printed(system, trajectory)


def test_friction_of_array_parts_and_ensembles():
    system = nsds.system(
        blocks=nsds.lagrangian_linear(M=[1.0, 1.0], fext=[0.0, -10.0], q=[0.0, 1e-3], v=[[1.0, 0.0], [-1.0, 0.0]], count=2),
        floor=nsds.interaction(
            linear(H=[[0, 1], [1, 0], [0, 1], [2, 0]]), nsds.newton_impact_friction(0.0, 0.3), on="blocks"
        ),  # two contacts each
    )
    members = np.repeat(system, 2)
    trajectories = nsds.simulate(members, t_end=0.1, h=1e-2)
    assert trajectories["floor"]["y"].shape == (2, 11, 2, 4)
    trajectories["floor"]["y"][1, 6, 1, 2] = -0.25
    trajectories["floor"]["lambda"][..., 1::2] = 3.0  # tangents do not count
    text = printed(members, trajectories)
    pressing = trajectories["floor"]["lambda"][..., 0::2] != 0
    assert "penetration 2.5e-01 m at t = 0.06 s of member 1" in text
    assert f"{(pressing[:, 1:] & ~pressing[:, :-1]).sum()} impacts, impulse up to 0.2 N s; closed in " in text
    assert f"for {(pressing[:, 1:] & pressing[:, :-1]).sum(axis=1).mean() * 1e-2:.3g} s of 0.1 s on average, lambda / h up to 10 N" in text


def test_without_the_state_laws_are_told_but_no_energy():
    system = nsds.examples.spinning_disk()
    text = printed(system, nsds.simulate(system, t_end=1.0, h=5e-3, fields=["floor.y", "floor.lambda"]))
    assert "impacts, impulse up to" in text
    assert "energy            not shown: the trajectory must hold the state of part 'disk', but disk.q was not recorded" in text


def shaken():
    return nsds.system(
        chain=nsds.lagrangian_linear(M=[1.0, 1.0], K=[[50, -50], [-50, 50]], q=[0, 0], v=[0.1, 0]),
        drive=nsds.interaction(nsds.prescribed_velocity([0], amplitude=0.1, omega=20.0), nsds.equality(), on="chain"),
    )


def test_prescribed_velocities_are_judged_by_ydot():
    trajectory = nsds.simulate(shaken(), t_end=1.0, h=1e-2)
    assert re.search(r"drive +velocity violated by at most \d\.\de-1\d", printed(shaken(), trajectory))
    trajectory["drive"]["ydot"][30] = -0.125
    assert "velocity violated by at most 1.2e-01, at t = 0.3" in printed(shaken(), trajectory)
    kept = nsds.simulate(shaken(), t_end=1.0, h=1e-2, fields=["chain", "drive.y", "drive.lambda"])
    assert "ydot, which tells how well the velocity is kept, was not recorded" in printed(shaken(), kept)


@pytest.mark.parametrize("law", [nsds.complementarity(), nsds.equality()], ids=lambda law: law["law"])
def test_laws_of_forces_start_with_the_first_step(law):
    """At the start lambda is zero, and y, which has D lambda in it, need not be right."""
    system = nsds.system(
        ball=nsds.lagrangian_linear(M=[1.0], fext=[-9.81], q=[-0.05], v=[0.0]),
        floor=nsds.interaction(linear(H=[[1.0]], D=[[0.01]]), law, on="ball"),
    )
    trajectory = nsds.simulate(system, t_end=0.3, h=1e-3)
    assert trajectory["floor"]["y"][0] == -0.05
    text = printed(system, trajectory)
    assert "5.0e-02" not in text
    if law["law"] == "complementarity":
        assert "closed in 1 interval, for 0.2" in text
    trajectory["floor"]["y"][9] = -0.5
    assert re.search(r"(penetration|violated by at most) 5.0e-01( m|,) at t = 0.009 s", printed(system, trajectory))


def weight(t, q, v, z, out):
    out[0] = 9.81 * math.sin(q[0])


def unit_mass(q, z, out):
    out[0, 0] = 1.0


def test_a_failed_first_step_is_reported():
    trajectory = nsds.simulate(shaken(), t_end=1.0, h=1e-2)[:2]
    trajectory["drive"]["ydot"][1] = trajectory["drive"]["y"][1] = trajectory["drive"]["lambda"][1] = np.nan
    assert "velocity violated by at most nan" in printed(shaken(), trajectory)
    assert "balance within nan" in printed(shaken(), trajectory)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (nsds.lagrangian([1.0], fint=weight, q=[1.0], v=[0.0]), "internal 4."),
        (nsds.lagrangian(unit_mass, q=[1.0], v=[0.5]), "0.125 -> 0.125 J: no work"),
        (nsds.lagrangian([1.0], q=[1.0], v=[0.0], u=[1.0]), "0 -> 0.125 J: forces 0.125"),
        (nsds.lagrangian_linear([1.0], C=[0.5], q=[0.0], v=[1.0]), "damping -0."),
    ],
    ids=["fint", "mass", "control", "damping"],
)
def test_energy_of_all_kinds_of_systems_is_shown(part, words):
    system = nsds.system(part=part)
    trajectory = nsds.simulate(system, t_end=0.5, h=1e-2)
    line = printed(system, trajectory).splitlines()[-1]
    assert line.startswith("energy ")
    assert words in line
    assert float(line.rpartition(" ")[2]) < 1e-9
    assert re.search(r"energy +not shown: \w", printed(system, trajectory[::2]))


def test_intervals_of_a_ball_that_comes_to_rest_by_steps_and_by_events():
    """It falls from 1 m, bounces with e = 0.2, and rests with its weight, 9.81 N; impacts are those of the closed form."""
    system = nsds.examples.bouncing_ball(e=0.2)
    fall, v = math.sqrt(2 / 9.81), math.sqrt(2 * 9.81)
    for run in ({"h": 1e-4}, {"h": 0.05, "scheme": nsds.event_driven()}):
        found = nsds.contact_intervals(system, nsds.simulate(system, t_end=2.0, **run), "floor")
        np.testing.assert_allclose(found["begin"][:2], [fall, fall * 1.4], atol=3e-4)
        np.testing.assert_allclose(found["approach"][:2], [v, 0.2 * v], atol=2e-3)
        np.testing.assert_allclose(found["impulse"][:2], [1.2 * v, 0.24 * v], atol=3e-3)
        assert found["begin"][-1] == pytest.approx(fall * 1.5, abs=1e-3)
        assert found["end"][-1] == pytest.approx(2.0)
        assert found["force"][-1] == pytest.approx(9.81, rel=0.05)  # of the largest step, in which it also comes to rest
        assert (found["end"][:2] == found["begin"][:2]).all()


def test_intervals_tell_contacts_apart_and_begin_with_the_trajectory():
    system = nsds.system(
        blocks=nsds.lagrangian_linear(M=[2.0], fext=[-20.0], q=[[0.0], [0.5]], v=[[0.0], [0.0]], count=2),
        floor=nsds.interaction(linear(H=[[1.0]]), nsds.newton_impact(0.0), on="blocks"),
    )
    rows = nsds.simulate(system, t_end=0.5, h=1e-3)[10:]
    found = nsds.contact_intervals(system, rows, "floor")
    assert found["contact"].tolist() == [0, 1]
    assert found["begin"][0] == rows["t"][0]
    assert np.isnan(found[0][["impulse", "approach"]].tolist()).all()
    np.testing.assert_allclose(found["force"], 20.0)
    assert found["begin"][1] == pytest.approx(math.sqrt(0.1), abs=2e-3)
    with pytest.raises(ValueError, match="name must be one of the contacts of a mechanical system, floor, got 'flor'"):
        nsds.contact_intervals(system, rows, "flor")
