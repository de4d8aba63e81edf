"""Fast bodies event by event: nothing passes what is thin, and the law of impacts holds, at any speed."""

import numpy as np
import pytest

import nsds
from nsds import shapes

BALL, MASS, E = shapes.sphere(0.005), 0.004, 0.5
_PLATE = shapes.convex(np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-0.02, 0)], float))
WORLDS = {
    "sheet": shapes.box([1, 1, 1e-3]),
    "plate": shapes.box([1, 1, 2e-2]),
    "ball": shapes.sphere(0.1, position=[0.013, 0.027, -0.1]),
    "mesh": shapes.mesh(_PLATE["vertices"], _PLATE["triangles"]),
    "hull": _PLATE,
    "height map": shapes.height_map(np.zeros((3, 3)), [2, 2]),
    "coin": shapes.cylinder(0.5, 1e-3),
}


@pytest.mark.parametrize("speed", [1.0, 7.0, 33.0, 123.0, 1000.0])
@pytest.mark.parametrize("world", WORLDS)
def test_a_fast_ball_comes_back_from_whatever_is_thin(world, speed):
    """Without gravity it strikes once, and leaves with e times its speed, from rows that are up to 10 m apart."""
    start = [0.013, 0.027, 0.5, 1, 0, 0, 0]
    system = nsds.system(
        ball=nsds.rigid_bodies(MASS, shapes.inertia(BALL, MASS), q=start, v=[0, 0, -speed, 0, 0, 0]),
        contacts=nsds.collisions({"ball": BALL}, nsds.newton_impact(E), world=WORLDS[world]),
    )
    rows = nsds.simulate(system, t_end=0.6, h=1e-2, scheme=nsds.event_driven(), progress=False)
    assert abs(rows["ball"]["v"][-1, 2] - E * speed) <= 1e-9 * speed
    assert rows["contacts"]["y"].min() >= -1e-12


def test_two_fast_bodies_meet():
    """A ball at 400 m/s and a board that comes towards it: momentum holds, and they part with e times the speed of approach."""
    board = shapes.box([0.2, 0.2, 1e-3])
    system = nsds.system(
        ball=nsds.rigid_bodies(MASS, shapes.inertia(BALL, MASS), q=[0, 0, 1.0, 1, 0, 0, 0], v=[0, 0, -400.0, 0, 0, 0]),
        board=nsds.rigid_bodies(0.05, shapes.inertia(board, 0.05), q=[0, 0, -1.0, 1, 0, 0, 0], v=[0, 0, 300.0, 0, 0, 0]),
        contacts=nsds.collisions({"ball": BALL, "board": board}, nsds.newton_impact(E)),
    )
    rows = nsds.simulate(system, t_end=0.02, h=1e-2, scheme=nsds.event_driven(), progress=False)
    ball, board = rows["ball"]["v"][-1, 2], rows["board"]["v"][-1, 2]
    assert abs(ball - board - E * 700.0) <= 1e-9 * 700.0
    assert abs(MASS * ball + 0.05 * board - (0.05 * 300.0 - MASS * 400.0)) <= 1e-9 * 20.0
