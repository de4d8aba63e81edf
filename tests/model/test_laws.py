"""The table of laws: rows that agree with relations and constructors, and refusals by name."""

import inspect

import numpy as np
import pytest

import nsds
from nsds.model.laws import ANY, FORMS, HELD, LAWS, Form, fitting, require_fitting
from nsds.model.system_kinds import LAGRANGIAN, RELATIONS
from nsds.solvers import impact

_GIVEN = {
    "e": 0.5,
    "e_n": 0.5,
    "mu": 0.3,
    "mu_r": 0.1,
    "mu_s": 0.1,
    "limit": 2.0,
    "n_equalities": 1,
    "G": [[1.0]],
    "g": [0.0],
    "stiffness": 3.0,
}


def pull(t, y, ydot, z, out):
    out[0] = -y[0]


_GIVEN["force"] = pull


@pytest.mark.parametrize("name", list(LAWS))
def test_a_row_says_all_of_a_law(name):
    law = LAWS[name]
    assert law.form in FORMS
    assert set(law.restitution) <= set(law.parameters)
    arguments = inspect.signature(getattr(nsds, name)).parameters.values()
    made = getattr(nsds, name)(**{argument.name: _GIVEN[argument.name] for argument in arguments if argument.default is argument.empty})
    assert set(made) == {"law", *law.parameters, *law.held}
    assert set(law.blocks) <= set(law.families)
    for family, roles in law.roles.items():
        assert roles
        assert set(roles) <= {relation.role for relation in RELATIONS.values() if family in relation.families}


def test_forms_name_the_laws_of_impacts_that_there_are():
    assert {form.impact for form in FORMS.values()} - {""} == set(impact.LAWS)
    assert {law.form for law in LAWS.values()} == set(FORMS)


def test_a_row_without_what_kernels_read_is_refused_when_the_system_is_made(monkeypatch):
    row = LAWS["newton_impact_friction"]
    monkeypatch.setitem(LAWS, "newton_impact_friction", row._replace(parameters={"e_n": (0.0, 1.0), "e_t": (-1.0, 1.0)}))
    law, message = {"law": "newton_impact_friction"}, "laws of the form 'friction' have a parameter mu, which the row of .* lacks"
    monkeypatch.setitem(HELD, "newton_impact_friction", ())
    point = nsds.lagrangian_linear([1.0, 1.0], q=[0.0, 0.0], v=[0.0, 0.0])
    with pytest.raises(ValueError, match=f"interaction 'floor': {message}"):
        nsds.system(point=point, floor=nsds.interaction(nsds.lagrangian_linear_relation(np.eye(2)), law, on="point"))
    with pytest.raises(ValueError, match=f"collisions: {message}"):
        nsds.collisions({"ball": nsds.shapes.sphere(1.0)}, law)


def _adhesive(values, m):
    return np.full((*values.shape, m), -2.0), np.full((*values.shape, m), np.inf)


@pytest.mark.parametrize(
    ("row", "form", "message"),
    [
        ({"own_bounds": _adhesive}, {}, "the row of newton_impact has bounds of lambda, and its form 'own' has none"),
        ({}, {"bounds": ANY}, "the form 'own' of newton_impact has bounds of lambda, and its row has none"),
        ({"own_bounds": _adhesive}, {"bounds": ANY}, "a contact opens with its gap, and a law of the form 'own' as newton_impact acts"),
        ({}, {"is_equation": True, "tangents": {2: 1}}, "newton_impact has the form 'own' with is_equation and tangents, of which kernels"),
        ({}, {"impact": "poisson_impact"}, "newton_impact has the form 'own' with impact; of Newton–Euler systems kernels treat gaps"),
        ({"blocks": {LAGRANGIAN: {2: 2}}}, {}, "newton_impact has contacts of 2 constraints, of which its form 'own' names no tangent"),
        ({}, {"tangents": {2: 1}}, "newton_impact has contacts of 1 constraints, of which its form 'own' names no tangent"),
        ({}, {"is_given": True}, "newton_impact has the form 'own' with is_given; of Lagrangian systems kernels treat gaps"),
    ],
)  # fmt: skip
def test_a_law_that_kernels_would_treat_as_another_one_is_refused(row, form, message, monkeypatch):
    monkeypatch.setitem(FORMS, "own", Form(**form))
    monkeypatch.setitem(LAWS, "newton_impact", LAWS["newton_impact"]._replace(form="own", **row))
    ball = nsds.lagrangian_linear([1.0], q=[1.0], v=[0.0])
    with pytest.raises(ValueError, match=f"interaction 'floor': {message}"):
        nsds.system(ball=ball, floor=nsds.interaction(nsds.lagrangian_linear_relation([[1.0]]), nsds.newton_impact(0.5), on="ball"))
    with pytest.raises(ValueError, match=f"collisions: {message}"):
        nsds.collisions({"ball": nsds.shapes.sphere(1.0)}, nsds.newton_impact(0.5))


@pytest.mark.parametrize("name", [name for name, law in LAWS.items() if not law.is_bounded])
def test_bounds_are_those_of_the_sign_of_lambda(name):
    lower, upper = LAWS[name].bounds(np.zeros((2, 3), [("y", float)]), 4)
    assert lower.shape == upper.shape == (2, 3, 4)
    assert (lower == (-np.inf if LAWS[name].bilateral else 0.0)).all()
    assert (upper == np.inf).all()


def test_a_relay_has_both_bounds_or_those_of_a_sign():
    assert (nsds.relay()["lower"].item(), nsds.relay()["upper"].item()) == (-1.0, 1.0)
    for given, missing in (("lower", "upper"), ("upper", "lower")):
        with pytest.raises(TypeError, match=f"relay: {missing} must be given where {given} is, got {given} = 1 alone"):
            nsds.relay(**{given: 1})


def test_bounds_of_relays_dry_friction_and_mixed_problems():
    brakes = np.array([([2.0, 3.0],)], [("limit", float, (2,))])
    lower, upper = LAWS["dry_friction"].bounds(brakes, 2)
    assert (-lower).tolist() == upper.tolist() == [[2.0, 3.0]]
    relays = np.zeros(2, [("lower", float, (3,)), ("upper", float, (3,))])
    relays["lower"], relays["upper"] = [[-1, 0, -np.inf]] * 2, [[1, 2, 0]] * 2
    lower, upper = LAWS["relay"].bounds(relays, 3)
    assert lower.tolist() == [[-1, 0, -np.inf]] * 2
    assert upper.tolist() == [[1, 2, 0]] * 2
    mixed = np.array([(0,), (2,)], [("n_equalities", int)])
    lower, upper = LAWS["mixed_complementarity"].bounds(mixed, 3)
    assert lower.tolist() == [[0, 0, 0], [-np.inf, -np.inf, 0]]
    assert (upper == np.inf).all()


@pytest.mark.parametrize("relation", list(RELATIONS))
@pytest.mark.parametrize("name", list(LAWS))
def test_what_does_not_go_together_is_refused_with_what_would(name, relation):
    for family in RELATIONS[relation].families:
        known = fitting(relation, family)
        assert known, "every relation has a law"
        if name in known:
            require_fitting("interaction 'a'", name, relation, family)
        elif family in LAWS[name].families:
            with pytest.raises(ValueError, match=f"interaction 'a': {relation} wants one of the laws {', '.join(known)}, got {name}"):
                require_fitting("interaction 'a'", name, relation, family)
        else:
            with pytest.raises(ValueError, match=f"interaction 'a': {name} is not a law for {family} systems; these are: .*{known[0]}"):
                require_fitting("interaction 'a'", name, relation, family)


def test_misfits_are_refused_when_the_system_is_made():
    body = nsds.lagrangian_linear(q=[0.0, 0.0], v=[0.0, 0.0], M=np.eye(2))
    driven = nsds.interaction(nsds.prescribed_velocity([0], [1.0]), nsds.newton_impact(0.5), on="body")
    with pytest.raises(
        ValueError, match="interaction 'drive': prescribed_velocity wants one of the laws dry_friction, equality, relay, got newton_impact"
    ):
        nsds.system(body=body, drive=driven)


@pytest.mark.parametrize("name", ["dry_friction", "spring_damper", "relay"])
def test_a_parameter_that_is_a_function_is_refused_with_what_there_is_for_it(name):
    def varies(t, z, out):
        out[:] = 1.0 + t

    make = getattr(nsds, name)
    with pytest.raises(TypeError, match=rf"{name}: \w+ must be numbers, got the function .*nsds.stepper"):
        make(varies, 1.0) if name != "dry_friction" else make(varies)


def test_a_limit_that_varies_is_set_between_steps():
    """A block of 1 kg slides under a limit that grows with t: v = 1 - t - t^2 / 2, by steps of h to their order."""
    part, h = nsds.lagrangian_linear(M=[[1.0]], q=[0.0], v=[1.0]), 5e-3
    brake = nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.dry_friction(1.0), on="block")
    step = nsds.stepper(nsds.system(block=part, brake=brake), h=h)
    system = nsds.system(block=part, brake=brake)
    for k in range(100):
        system["brake"]["limit"] = 1.0 + h * k
        system = step(system)
    assert abs(system["block"]["v"].item() - (1.0 - 0.5 - 0.125)) < h
