"""The global form of a step, several schemes side by side, and consistent initial values."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import nsds
from tests.schemes.lagrangian.test_moreau_jean import build, random_model
from tests.strategies import examples

relation = nsds.lagrangian_linear_relation


def differences(one, other):
    """Largest difference of each field of two trajectories."""
    parts = one.dtype.names[5:]
    return {f"{part}.{name}": abs(one[part][name] - other[part][name]).max() for part in parts for name in one.dtype[part].base.names}


@pytest.mark.filterwarnings("ignore:the bilateral constraint")
@examples(30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 1.0]), st.booleans(), st.booleans(), st.sampled_from([np.asarray, sp.csr_array]))
def test_global_form_is_the_reduced_one(seed, theta, bilateral, compliant, matrix):
    system = build(random_model(seed, bilateral=bilateral, compliant=compliant), matrix=matrix)
    rows = [nsds.simulate(system, t_end=0.2, h=0.01, scheme=nsds.moreau_jean(theta=theta, form=form)) for form in ("reduced", "global")]
    for name in ("q", "v"):
        scale = 1 + abs(rows[0]["body"][name]).max()
        np.testing.assert_allclose(rows[1]["body"][name], rows[0]["body"][name], atol=1e-7 * scale)


@pytest.mark.parametrize("example", ["bouncing_ball", "column_of_beads", "spinning_disk"])
def test_global_form_of_examples(example):
    system = getattr(nsds.examples, example)()
    reduced, whole = (nsds.simulate(system, t_end=1.0, h=2e-3, scheme=nsds.moreau_jean(form=form)) for form in ("reduced", "global"))
    assert max(differences(reduced, whole).values()) < 1e-10


def test_global_form_wants_a_linear_system():
    with pytest.raises(ValueError, match="form='global' is for linear systems"):
        nsds.simulate(nsds.examples.double_pendulum(), t_end=0.1, h=0.01, scheme=nsds.moreau_jean(form="global"))


def ball(height):
    return nsds.lagrangian_linear(M=[1.0], fext=[-9.81], q=[height], v=[0.0])


def floor(on):
    return nsds.interaction(relation(H=[[1.0]]), nsds.newton_impact(0.5), on=on)


def two_balls():
    return nsds.system(low=ball(1.0), under=floor("low"), high=ball(2.0), below=floor("high"))


def test_each_part_marches_as_if_alone():
    schemes = {"low": nsds.schatzman_paoli(), "high": nsds.d1_minus_linear()}
    rows = nsds.simulate(two_balls(), t_end=2.0, h=1e-3, scheme=schemes)
    assert rows.dtype.names[5:] == ("low", "under", "high", "below")
    for name, contact, height in (("low", "under", 1.0), ("high", "below", 2.0)):
        alone = nsds.simulate(nsds.system(**{name: ball(height), contact: floor(name)}), t_end=2.0, h=1e-3, scheme=schemes[name])
        assert (rows[name] == alone[name]).all()
        assert (rows[contact] == alone[contact]).all()


def test_schemes_of_an_ensemble_and_of_one_step():
    ensemble = np.repeat(two_balls(), 3)
    ensemble["under"]["e"] = [0.0, 0.5, 1.0]
    schemes = {"low": nsds.schatzman_paoli()}
    rows = nsds.simulate(ensemble, t_end=1.0, h=1e-2, scheme=schemes, fields=["low.q", "high"])
    assert rows.shape == (3, 101)
    assert (rows[2]["low"]["q"] == nsds.simulate(ensemble[2], t_end=1.0, h=1e-2, scheme=schemes)["low"]["q"]).all()
    step = nsds.step(ensemble[1], 1e-2, scheme=schemes)
    assert step["t"] == 1e-2
    assert (step["low"]["q"] == rows[1, 1]["low"]["q"]).all()
    assert (step["high"]["v"] == rows[1, 1]["high"]["v"]).all()


def test_two_schemes_are_refused_where_an_interaction_links_them():
    linked = nsds.system(a=ball(1.0), b=ball(2.0), gap=nsds.interaction(relation(H=[[-1.0, 1.0]]), nsds.newton_impact(0.5), on=("a", "b")))
    with pytest.raises(ValueError, match=r"'gap' links 'a' \(schatzman_paoli\) and 'b' \(moreau_jean\)"):
        nsds.simulate(linked, t_end=1.0, h=1e-2, scheme={"a": nsds.schatzman_paoli()})
    with pytest.raises(ValueError, match="there is no system 'c'"):
        nsds.simulate(linked, t_end=1.0, h=1e-2, scheme={"c": nsds.schatzman_paoli()})


def rod(q, z, out):
    out[0] = q[0] ** 2 + q[1] ** 2 - 1


def pendulum(q, v):
    bob = nsds.lagrangian([1.0, 2.0], fext=[0, -9.81], q=q, v=v)
    return nsds.system(bob=bob, rod=nsds.interaction(nsds.scleronomous(rod, m=1), nsds.equality(), on="bob"))


def test_a_violated_constraint_is_reported_and_mended():
    off = pendulum([0.9, -0.6], [1.0, 1.0])
    with pytest.warns(RuntimeWarning, match=r"'rod', row 0, is violated at the start, y = 0\.17"):
        nsds.simulate(off, t_end=0.02, h=0.01)
    mended = nsds.consistent(off)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = nsds.simulate(mended, t_end=0.02, h=0.01)
    assert abs(rows["rod"]["y"][0]) < 1e-10
    q, v = mended["bob"]["q"], mended["bob"]["v"]
    assert abs(q @ v) < 1e-10
    # v changes by an impulse of the rod alone
    change = np.array([1.0, 2.0]) * (v - off["bob"]["v"])
    assert abs(change[0] * q[1] - change[1] * q[0]) < 1e-10


def test_consistent_opens_gaps_of_all_members():
    ensemble = np.repeat(two_balls(), 2)
    ensemble["low"]["q"] = [[-0.2], [0.3]]
    mended = nsds.consistent(ensemble)
    np.testing.assert_allclose(mended["low"]["q"][:, 0], [0.0, 0.3], atol=1e-10)
    assert (ensemble["low"]["q"][0] == -0.2).all()


def test_consistent_says_what_cannot_be():
    def above(q, z, out):
        out[0] = q[0] ** 2 + 1.0

    never = nsds.system(
        a=nsds.lagrangian([1.0], q=[0.5], v=[0.0]), j=nsds.interaction(nsds.scleronomous(above, m=1), nsds.equality(), on="a")
    )
    with pytest.raises(ValueError, match="consistent: "):
        nsds.consistent(never)
    with pytest.raises(ValueError, match="expected a record of Lagrangian systems"):
        nsds.consistent(nsds.examples.diode_bridge())
