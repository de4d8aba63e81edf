"""Every law with every relation, kind of system and scheme: refused by name, or the law holds by its definition and a plain twin agrees."""

from functools import lru_cache

import numpy as np
import pytest

import nsds
from nsds.model.laws import LAWS
from nsds.model.system_kinds import FIRST_ORDER, NEWTON_EULER, RELATIONS
from nsds.schemes.table import SCHEMES
from tests import cells

# Schemes whose lambda is the impulse of the problem of velocities at the end of a step, which so obeys the law of velocities in every row.
_OF_VELOCITIES = {
    "moreau_jean", "moreau_jean_exact", "moreau_jean_direct_projection", "moreau_jean_combined_projection", "generalised_alpha"
}  # fmt: skip
_ARM = np.array([1.0] * 3 + [cells.RADIUS] * 3)  # m, what makes angular velocities comparable
_OF_OUTPUTS = {"euler_moreau", "zero_order_hold", "higher_order_sweeping", "event_driven"}
_METHODS = [
    pytest.param(family, name, options, id=f"{name} {family}{''.join(f' {value}' for value in options.values())}")
    for name, scheme in SCHEMES.items()
    for family in scheme.modules
    for options in ({}, *cells.VARIANTS.get(name, ()))
    if not (options and family == NEWTON_EULER)
]


@lru_cache
def twin(law):
    return cells.march(cells.mechanical_laws()[law])


@lru_cache
def twin_of_force(is_bilateral):
    return cells.spring(is_bilateral)


@lru_cache
def twin_of_first_order(law):
    name, _, D = law.partition(", ")
    return cells.march_first_order(cells.FIRST_ORDER_LAWS[name][1], 0.5 if D else 0.0)


def velocities_break(law, rows):
    """By how much (m/s or N s, whichever is more) the rows of a mechanical system miss a law of velocities, by its definition."""
    part, worst = rows["law"], 0.0
    lam, after = np.atleast_2d(part["lambda"].T).T, np.atleast_2d(part["ydot"].T).T
    W = law.H @ (law.H / cells.MASS).T
    rho = 1.0 / np.linalg.norm(W, 2)
    for k in range(1, len(rows)):
        if lam[k].any() or not law.closes:
            u = after[k] + law.rebound(after[k - 1])
            if (
                law.made["law"].endswith("_impact_friction")
                and LAWS[law.made["law"]].treatment.impact
                and law.disk == 2
                and after[k - 1][0] < -1e-9
            ):
                continue  # friction of an impact opposes the slip that it leaves, which forces of the step turn a little
            worst = max(worst, np.linalg.norm(lam[k] - law.nearest(lam[k] - rho * u, rho * u, cells.STEP)))
    return worst


def impulses_leave_cone(law, rows):
    """By how much (N s) impulses are not allowed by the law, whatever the velocities."""
    lam = np.atleast_2d(rows["law"]["lambda"].T).T
    if law.bounds:
        return max(np.max(law.bounds[0] * cells.STEP - lam), np.max(lam - law.bounds[1] * cells.STEP), 0.0)
    friction, rolling = np.linalg.norm(lam[:, 1 : 1 + law.disk], axis=1), np.linalg.norm(lam[:, 1 + law.disk :], axis=1)
    return max(np.max(-lam[:, 0]), np.max(friction - law.mu[0] * lam[:, 0]), np.max(rolling - law.mu[1] * lam[:, 0]), 0.0)


def require_mechanics(scheme, name, relation, rows):
    """The law by its definition, and the motion of the twin."""
    ball = rows["ball"][-1]
    if ball.dtype["q"].shape and ball["q"].ndim > 1:  # an array of two, of which both do the same
        np.testing.assert_allclose(rows["ball"]["q"][:, 0], rows["ball"]["q"][:, 1], atol=1e-9)
        ball, rows = ball[0], _first_of_array(rows)
    if name.endswith("a force"):
        y, force = rows["law"]["y"][1:], rows["law"]["lambda"][1:]
        is_bilateral = name.startswith("equality")
        assert np.abs(y if is_bilateral else np.minimum(y / cells.COMPLIANCE, force)).max() < 1e-6
        z, v = twin_of_force(is_bilateral)
        assert abs(ball["q"][2] - z) < 5e-3
        assert abs(ball["v"][2] - v) < 0.2
        return
    law = cells.mechanical_laws()[name]
    if relation != "collisions":
        assert impulses_leave_cone(law, rows) < 1e-9
        if scheme in _OF_VELOCITIES and not law.pull:
            assert velocities_break(law, rows) < 1e-6
    q, v = twin(name)
    np.testing.assert_allclose(ball["q"][:3], q[:3], atol=5e-3)
    np.testing.assert_allclose(ball["v"] * _ARM, v * _ARM, atol=3e-2)


def _first_of_array(rows):
    first = np.zeros(len(rows), [("law", [(field, "f8", rows["law"][field].shape[2:]) for field in ("lambda", "ydot")])])
    for field in ("lambda", "ydot"):
        first["law"][field] = rows["law"][field][:, 0]
    return first


def require_output(scheme, name, rows):
    law = name.partition(", ")[0]
    y, lam = rows["law"]["y"][1:], rows["law"]["lambda"][1:]
    if scheme in _OF_OUTPUTS:
        missed = [np.linalg.norm(b - cells.FIRST_ORDER_LAWS[law][1](b - a)) for a, b in zip(y, lam, strict=True)]
        assert max(missed) < 1e-8
    np.testing.assert_allclose(rows["part"]["x"][-1], twin_of_first_order(name), atol=5e-3)


@pytest.mark.parametrize(("family", "scheme", "options"), _METHODS)
def test_law_holds_wherever_a_scheme_takes_it(family, scheme, options):
    method, treated, wrong = getattr(nsds, scheme)(**options), 0, []
    for name, relation, kind, make in cells.CELLS[family]():
        system = make()
        if cells.refusal(system, method) is not None:
            continue
        rows, treated = cells.at_steps(scheme, family, nsds.simulate(system, t_end=cells.END, h=cells.STEP, scheme=method)), treated + 1
        try:
            assert (rows["status"] == 0).all()
            if family == FIRST_ORDER:
                require_output(scheme, name, rows)
            else:
                require_mechanics(scheme, name, relation, rows)
        except AssertionError as error:
            wrong.append(f"{name} | {relation} | {kind}: {error}")
    assert not wrong, "\n".join(wrong)
    assert treated > 0


def test_page_of_laws_says_what_is_treated_and_why_the_rest_is_not():
    assert cells.PAGE.read_text(encoding="utf-8") == cells.page(), "python -m tests.cells writes it anew"


def test_no_law_and_no_relation_is_left_out():
    cases = [(name.partition(",")[0], relation.partition(" ")[0]) for each in cells.CELLS.values() for name, relation, *_ in each()]
    assert {law for law, _ in cases} == set(LAWS)
    assert {relation for _, relation in cases} - {"collisions"} == set(RELATIONS)
