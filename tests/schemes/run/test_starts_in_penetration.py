"""Contacts that begin in penetration are warned of, those of functions and matrices as those of shapes, whatever the scheme."""

import warnings

import numpy as np
import pytest

import nsds

LAGRANGIAN = [
    nsds.moreau_jean(), nsds.moreau_jean_direct_projection(), nsds.moreau_jean_combined_projection(), nsds.schatzman_paoli(),
    nsds.generalised_alpha(), nsds.d1_minus_linear(), nsds.event_driven(),
]  # fmt: skip
RIGID = [nsds.moreau_jean(), nsds.moreau_jean_combined_projection(), nsds.rattle(), nsds.generalised_alpha(), nsds.d1_minus_linear(),
         nsds.event_driven()]  # fmt: skip
MOVED = r"'(ball|door)' begins in penetration: its contacts have moved it out before the first row, q\[\d\] by 0\.0[12]"
TEXT = r"the contact 'floor' begins in penetration, the deepest is 'floor', row 0, with the gap y = -0\.02; it stays so"


def height(q, z, out):
    out[0] = q[0]


def slope(q, z, out):
    out[0, 0] = 1.0


def floor(t, q, z, out):
    out[0] = q[2]
    out[1], out[2], out[3] = q[0], q[1], 0.0
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def linear(gap, law=None):
    law = nsds.newton_impact(0.5) if law is None else law
    H = [[1.0, 0.0]] if "mu" not in law else [[1.0, 0.0], [0.0, 1.0]]
    return nsds.system(
        ball=nsds.lagrangian_linear(M=[1.0, 1.0], fext=[-9.81, 0], q=[gap, 0.0], v=[0.0, 0.0]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=H), law, on="ball"),
    )


def curved(gap):
    return nsds.system(
        ball=nsds.lagrangian_linear(M=[1.0], fext=[-9.81], q=[gap], v=[0.0]),
        floor=nsds.interaction(nsds.scleronomous(height, slope, m=1), nsds.newton_impact(0.5), on="ball"),
    )


def rigid(gap, law=None):
    law = nsds.newton_impact(0.5) if law is None else law
    ball = nsds.rigid_bodies(1.0, 0.1, q=[0, 0, gap, 1, 0, 0, 0], v=[0] * 6)
    return nsds.system(gravity=[0, 0, -9.81], ball=ball, floor=nsds.interaction(nsds.contact_point(floor), law, on="ball"))


def stopped(gap):
    door = nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 0, 1, 0, 0, 0], v=[0] * 6)
    stop = nsds.interaction(nsds.joints.hinge_angle([0, 0, 1], upper=gap), nsds.newton_impact(0.5), on="door")
    hinge = nsds.interaction(nsds.joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="door")
    return nsds.system(door=door, hinge=hinge, floor=stop)


CASES = [(build, scheme) for build in (linear, curved) for scheme in LAGRANGIAN]
CASES += [(build, scheme) for build in (rigid, stopped) for scheme in RIGID]


@pytest.mark.parametrize(("build", "scheme"), CASES, ids=lambda x: getattr(x, "__name__", None) or x["scheme"].item().decode())
def test_a_start_in_penetration_is_warned_of_once_and_one_that_touches_is_not(build, scheme):
    text = MOVED if scheme["scheme"] == b"event_driven" else TEXT
    with pytest.warns(UserWarning, match=text) as caught:
        nsds.simulate(build(-0.02), t_end=2e-3, h=1e-3, scheme=scheme, on_failure="continue")
    assert sum("in penetration" in str(each.message) for each in caught) == 1
    for gap in (0.0, -1e-12, 0.02):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*in penetration")
            nsds.simulate(build(gap), t_end=2e-3, h=1e-3, scheme=scheme, on_failure="continue")


@pytest.mark.parametrize(
    "law", [nsds.newton_impact_friction(e_n=0.5, mu=0.3, dimension=2), nsds.poisson_impact(0.5), nsds.multiple_impact(0.5)]
)
def test_laws_of_contact_have_their_gap_in_their_first_row(law):
    system = linear(-0.02, law)
    system["ball"]["q"][1] = -5.0  # what is along the floor is no gap
    with pytest.warns(UserWarning, match=TEXT):
        nsds.simulate(system, t_end=2e-3, h=1e-3, on_failure="continue")


def test_members_and_elements_are_named_and_what_goes_on_is_not():
    balls = nsds.lagrangian_linear(M=[1.0], fext=[-9.81], q=[[0.1], [-0.2], [-0.3]], v=np.zeros((3, 1)), count=3)
    system = nsds.system(
        balls=balls, floors=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.0), on="balls")
    )
    several = np.repeat(system, 2)
    several["balls"]["q"][0] = 1.0
    with pytest.warns(
        UserWarning, match=r"2 contacts of 'floors' begin in penetration, the deepest is 'floors\[2\]', row 0 of member 1, .* y = -0\.3"
    ):
        nsds.simulate(several, t_end=1e-3, h=1e-3)
    with pytest.warns(UserWarning, match=r"2 contacts of 'floors' begin in penetration"):
        stepper = nsds.stepper(system, h=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nsds.simulate(stepper(system, 2), t_end=3e-3, h=1e-3)


def test_disabled_contacts_and_forces_of_laws_with_a_gap_of_either_sign_are_not_warned_of():
    off = nsds.system(
        ball=nsds.rigid_bodies(1.0, 0.1, q=[0, 0, -0.02, 1, 0, 0, 0], v=[0] * 6),
        floor=nsds.interaction(nsds.contact_point(floor), nsds.newton_impact(0.5), on="ball", enabled=False),
    )
    soft = nsds.system(
        ball=nsds.lagrangian_linear(M=[1.0], fext=[-9.81], q=[-0.02], v=[0.0]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]], D=[[1e-3]]), nsds.complementarity(), on="ball"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for system in (off, soft):
            nsds.simulate(system, t_end=2e-3, h=1e-3)
