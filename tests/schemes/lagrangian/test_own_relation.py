"""A relation that only its constructor states is run by the schemes: a nonholonomic constraint, with the Chaplygin sleigh."""

import math

import numpy as np
import pytest

import nsds
from nsds.model.relations_first_order import nonlinear
from nsds.model.system_kinds import AT_Q, LAGRANGIAN, RELATIONS, relation_of

_OFFSET, _RADIUS = 0.4, 0.7  # of the centre of mass from the blade; of gyration


@pytest.fixture(scope="module", autouse=True)
def nonholonomic():
    """``ydot = H(q) v + h_t(t, q)``, which is no derivative of a y."""

    @relation_of(LAGRANGIAN, role="drive", functions=dict.fromkeys(("H", "h_t"), "t, q, z, out"), needed=("H",), parameters=AT_Q)
    def nonholonomic(H, h_t=None, *, m, z=None):
        return nonlinear("nonholonomic", m, z, {"H": H, "h_t": h_t})

    yield nonholonomic
    del RELATIONS["nonholonomic"]


def blade(t, q, z, out):
    """No velocity across the blade, z[0] behind the centre of mass."""
    out[0, 0], out[0, 1], out[0, 2] = -math.sin(q[2]), math.cos(q[2]), -z[0]


def wind(t, q, z, out):
    out[0] = -0.2 * math.cos(3.0 * t)


def sleigh(nonholonomic, omega, speed, h_t=None):
    return nsds.system(
        body=nsds.lagrangian_linear(M=[1.0, 1.0, _RADIUS**2], q=[0.0, 0.0, 0.0], v=[speed, _OFFSET * omega, omega]),
        blade=nsds.interaction(nonholonomic(blade, h_t, m=1, z=[_OFFSET]), nsds.equality(), on="body"),
    )


def solution(t, omega):
    """(omega, speed along the blade) of the sleigh that starts without speed: ``u' = a w^2``, ``(k^2 + a^2) w' = -a u w``."""
    u_end = omega * math.sqrt(_RADIUS**2 + _OFFSET**2)
    rate = _OFFSET * u_end / (_RADIUS**2 + _OFFSET**2)
    return omega / np.cosh(rate * t), u_end * np.tanh(rate * t)


@pytest.mark.parametrize(
    ("scheme", "order"), [("moreau_jean", 1), ("d1_minus_linear", 2), ("generalised_alpha", 2), ("moreau_jean_combined_projection", 1)]
)
def test_a_sleigh_turns_as_chaplygin_says(nonholonomic, scheme, order):
    errors = []
    for h in (0.02, 0.01):
        system = sleigh(nonholonomic, omega=2.0, speed=0.0)
        if scheme == "moreau_jean_combined_projection":
            options = nsds.moreau_jean_combined_projection()
        else:
            options = getattr(nsds, scheme)(**{"moreau_jean": {"theta": 1.0}}.get(scheme, {}))
        rows = nsds.simulate(system, t_end=1.0, h=h, scheme=options)
        assert (rows["status"] == 0).all()
        q, v = rows["body"]["q"][-1], rows["body"]["v"][-1]
        omega, speed = solution(1.0, 2.0)
        along = math.cos(q[2]) * v[0] + math.sin(q[2]) * v[1]
        errors.append(abs(v[2] - omega) + abs(along - speed))
        assert np.abs(rows["blade"]["y"]).max() == 0.0
    assert errors[1] < 0.05
    assert errors[0] / errors[1] > 0.75 * 2**order


def test_its_rate_may_be_given(nonholonomic):
    rows = nsds.simulate(sleigh(nonholonomic, omega=0.5, speed=1.0, h_t=wind), t_end=1.0, h=0.01)
    q, v, t = rows["body"]["q"][1:], rows["body"]["v"][1:], rows["t"][1:]
    across = -np.sin(q[:, 2]) * v[:, 0] + np.cos(q[:, 2]) * v[:, 1] - _OFFSET * v[:, 2]
    np.testing.assert_allclose(across, 0.2 * np.cos(3.0 * t), atol=1e-9)


def test_a_function_that_no_scheme_reads_is_named(nonholonomic):
    row = RELATIONS["nonholonomic"]
    RELATIONS["nonholonomic"] = row._replace(functions=row.functions | {"T": "t, q, z, out"})
    try:
        with pytest.raises(ValueError, match="interaction 'blade': no scheme here reads T of a nonholonomic; they read h, g, H"):
            nsds.simulate(sleigh(nonholonomic, 1.0, 0.0), t_end=0.1, h=0.05)
    finally:
        RELATIONS["nonholonomic"] = row


def test_a_function_that_its_row_lacks_is_named(nonholonomic):
    row = RELATIONS["nonholonomic"]
    RELATIONS["nonholonomic"] = row._replace(functions={"H": "t, q, z, out"})
    try:
        with pytest.raises(ValueError, match="nonholonomic: no function h_t is said to belong to it, but H"):
            nonholonomic(blade, wind, m=1, z=[_OFFSET])
    finally:
        RELATIONS["nonholonomic"] = row
    with pytest.raises(ValueError, match="unstated: no function h is said to belong to it, but none"):
        nonlinear("unstated", 1, None, {"h": blade})
