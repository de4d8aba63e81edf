"""The report of first-order systems says what a trajectory holds and how well each law does."""

import io

import numpy as np
import pytest

import nsds


def printed(*arguments):
    out = io.StringIO()
    nsds.report(*arguments, file=out)
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
    text = printed(nsds.simulate(system, t_end=1.0, h=0.1), system)
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
        assert "violated by at most 2.5e-01, at t = 0.7" in printed(trajectory, system)
    else:
        size = float(printed(trajectory, system).split("violated by at most ")[1].split(",")[0])
        assert size >= 1.0
        assert ", at t = 0.7\n" in printed(trajectory, system)


def test_report_of_ensembles_and_array_parts():
    system = nsds.system(
        cells=nsds.first_order_linear(A=-1.0, x=[1.0, -1.0, 0.5], count=3),
        relays=nsds.interaction(nsds.first_order_linear_relation(C=[[1.0]], B=[[1.0]]), nsds.relay(), on="cells"),
    )
    members = np.repeat(system, 2)
    members["relays"]["upper"] = 2.0
    trajectories = nsds.simulate(members, t_end=1.0, h=0.1)
    assert "relay violated by at most" in printed(trajectories, members)
    trajectories["relays"]["lambda"][1, 4, 2] = 2.5  # above the upper bound
    assert "violated by at most 5.0e-01, at t = 0.4" in printed(trajectories, members)
    assert "pass the system" in printed(trajectories)
