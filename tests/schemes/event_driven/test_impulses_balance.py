"""Rows of impacts: ``M (v+ - v-) = H^T lambda``, the last one of an accumulation too, after which contacts are at rest."""

import numpy as np
import pytest

import nsds
from nsds.status import EVENT, JUMP

LINEAR = nsds.lagrangian_linear_relation
LAWS = {
    "newton": nsds.newton_impact(e=0.5),
    "poisson": nsds.poisson_impact(e=0.5),
    "multiple": nsds.multiple_impact(e=0.5, stiffness=1e4, exponent=1.5),
}


def largest_imbalance(rows, body, M, H, *contacts):
    """Of rows after impacts, relative to the first of them."""
    k = np.flatnonzero((rows["status"] > EVENT) & (rows["status"] & JUMP != 0))
    assert k.size > 3
    jump = (rows[body]["v"][k] - rows[body]["v"][k - 1]).reshape(k.size, -1) @ M
    impulse = np.concatenate([rows[name]["lambda"][k].reshape(k.size, -1) for name in contacts], axis=1)
    return abs(jump - np.einsum("ka,kaj->kj", impulse, H(rows[k]))).max() / abs(jump[0]).max()


def constant(H):
    return lambda rows: np.broadcast_to(H, (len(rows), *np.shape(H)))


def run(system, t_end, **options):
    return nsds.simulate(system, t_end=t_end, h=0.1, scheme=nsds.event_driven(**options), progress=False)


@pytest.mark.parametrize("accumulation", [1e-2, 1e-6])
@pytest.mark.parametrize("law", LAWS)
def test_a_ball_comes_to_rest(law, accumulation):
    M, H = np.array([[2.0]]), [[1.0]]
    ball = nsds.lagrangian_linear(M=M, fext=[-20.0], q=[1.0], v=[0.0])
    rows = run(nsds.system(ball=ball, floor=nsds.interaction(LINEAR(H=H), LAWS[law], on="ball")), 3.0, accumulation=accumulation)
    assert rows["ball"]["v"][-1] == 0.0
    assert largest_imbalance(rows, "ball", M, constant(H), "floor") < 1e-12


@pytest.mark.parametrize("law", ["newton", "poisson"])
@pytest.mark.parametrize("mu", [0.01, 0.5])
def test_friction_of_the_last_impact_is_in_its_cone(law, mu):
    """Slipping and sticking: ``|lambda_t| <= mu lambda_n`` of the impulse that stops the ball, too."""
    M, H = np.diag([2.0, 2.0]), [[0.0, 1.0], [1.0, 0.0]]
    law = nsds.newton_impact_friction(e_n=0.5, mu=mu) if law == "newton" else nsds.poisson_impact_friction(e=0.5, mu=mu)
    ball = nsds.lagrangian_linear(M=M, fext=[0.0, -20.0], q=[0.0, 1.0], v=[1.0, 0.0])
    rows = run(nsds.system(ball=ball, floor=nsds.interaction(LINEAR(H=H), law, on="ball")), 2.0, accumulation=1e-3)
    assert largest_imbalance(rows, "ball", M, constant(H), "floor") < 1e-12
    impulses = rows["floor"]["lambda"][rows["status"] & JUMP != 0].reshape(-1, 2)
    assert (abs(impulses[:, 1]) <= mu * impulses[:, 0] * (1 + 1e-12)).all()


@pytest.mark.parametrize("law", ["newton", "poisson"])
def test_a_column_of_two_comes_to_rest(law):
    """Impacts in turn, whose end is that of all that touch: they come to rest together."""
    M, H = np.diag([1.0, 3.0]), [[1.0, 0.0], [-1.0, 1.0]]
    column = nsds.lagrangian_linear(M=M, fext=[-10.0, -30.0], q=[0.5, 1.5], v=[0.0, 0.0])
    law = nsds.newton_impact(e=0.5) if law == "newton" else nsds.poisson_impact(e=0.5)
    rows = run(nsds.system(column=column, contacts=nsds.interaction(LINEAR(H=H), law, on="column")), 4.0, accumulation=1e-3)
    assert abs(rows["column"]["v"][-1]).max() < 1e-30
    assert largest_imbalance(rows, "column", M, constant(H), "contacts") < 1e-12


def corners(q, z, out):
    c, s = np.cos(q[2]), np.sin(q[2])
    for k in range(4):
        x, y = -z[0] if k in (0, 3) else z[0], -z[1] if k < 2 else z[1]
        out[2 * k], out[2 * k + 1] = q[1] + s * x + c * y, q[0] + c * x - s * y


def test_a_box_that_falls_on_its_corners_comes_to_rest():
    a, b = 0.256, 0.212
    relation = nsds.scleronomous(corners, m=8, z=[a, b])
    box = nsds.lagrangian(mass=[1.0, 1.0, (a * a + b * b) / 3], fext=[0, -9.81, 0], z=[0.0], q=[0, 0.4, -1.2], v=[0.7, 0, 2.0])
    law = nsds.newton_impact_friction(e_n=0.3, mu=0.3)
    rows = run(nsds.system(box=box, floor=nsds.interaction(relation, law, on="box")), 2.0, accumulation=1e-2)

    def H(rows):
        out, angle = np.zeros((len(rows), 8, 3)), rows["box"]["q"][:, 2]
        c, s = np.cos(angle), np.sin(angle)
        for k in range(4):
            x, y = -a if k in (0, 3) else a, -b if k < 2 else b
            out[:, 2 * k, 1], out[:, 2 * k, 2] = 1.0, c * x - s * y
            out[:, 2 * k + 1, 0], out[:, 2 * k + 1, 2] = 1.0, -s * x - c * y
        return out

    assert abs(rows["box"]["v"][-1]).max() < 1e-12
    assert largest_imbalance(rows, "box", np.diag([1.0, 1.0, (a * a + b * b) / 3]), H, "floor") < 1e-7  # H by differences there
