"""Every pair of shapes whose contacts can be found, one on top of the other: what is set down, dropped, and thrown beside.

`tests/collision/test_pairs_and_schemes.py` runs them under every scheme with detection, `tests/cells/page.py` writes their table from the
same runs. A new shape wants its rows in `ABOVE`, if a body can have it, and `BELOW`.

Of time stepping the impact is seen up to a step late, and the jump of velocity, ``(1 + e) g tau``, by as much: that is the bound of the
height after it. Smooth flight under a constant force is that of the parabola, up to ``g h t / 2`` of schemes of first order.
"""

import numpy as np

import nsds
from nsds import shapes
from nsds.collision.kinds import NAMES, SHAPES
from nsds.collision.pairs import SUPPORTED

G, E, MU, DROP, SPEED, BESIDE = 9.81, 0.5, 0.3, 0.3, 2.0, 0.05
_H, _REST, _END = 2e-3, 0.2, 0.45
_TAU = np.sqrt(2 * DROP / G)  # of the fall
_LYING, _TURNED, _ALONG_Y = [0.5**0.5, 0, 0.5**0.5, 0], [0, 1, 0, 0], [0.5**0.5, 0.5**0.5, 0, 0]
_CORNERS = np.array([[x, y, z] for x in (-0.3, 0.3) for y in (-0.25, 0.25) for z in (-0.2, 0.2)])
_HULL, _LARGE = shapes.convex(_CORNERS), shapes.convex(2 * _CORNERS)
# kind -> (shape of the body, how far its lowest point is below its origin, half of its width)
ABOVE = {
    "sphere": (shapes.sphere(0.3), 0.3, 0.3),
    "capsule": (shapes.capsule(0.2, 0.5, orientation=_LYING), 0.2, 0.45),
    "cylinder": (shapes.cylinder(0.3, 0.5), 0.25, 0.3),
    "box": (shapes.box([0.5, 0.6, 0.4]), 0.2, 0.25),
    "convex": (_HULL, 0.2, 0.3),
    "mesh": (shapes.mesh(_HULL["vertices"], _HULL["triangles"]), 0.2, 0.3),
    "cone": (shapes.cone(0.3, 0.6), 0.15, 0.3),
    "disk": (shapes.disk(0.3), 0.3, 0.3),
    "stadium": (shapes.stadium(0.2, 0.5), 0.2, 0.45),
    "polygon": (shapes.rectangle([0.6, 0.4]), 0.2, 0.3),
}
# kind -> (shape of the world, whose top is the origin, half of its width; infinite of what cannot be missed)
BELOW = {
    "sphere": (shapes.sphere(0.5, position=[0, 0, -0.5]), 0.5),
    "capsule": (shapes.capsule(0.4, 0.8, position=[0, 0, -0.4], orientation=_LYING), 0.8),
    "cylinder": (shapes.cylinder(0.5, 0.6, position=[0, 0, -0.3]), 0.5),
    "box": (shapes.box([1.0, 1.2, 0.8], position=[0, 0, -0.4]), 0.5),
    "convex": (shapes.convex(2 * _CORNERS, position=[0, 0, -0.4]), 0.6),
    "mesh": (shapes.mesh(_LARGE["vertices"], _LARGE["triangles"], position=[0, 0, -0.4]), 0.6),
    "plane": (shapes.plane(), np.inf),
    "tube": (shapes.tube(0.7, 1.0, position=[0, 0, 0.7], orientation=_ALONG_Y), np.inf),
    "disk": (shapes.disk(0.5, position=[0, -0.5]), 0.5),
    "stadium": (shapes.stadium(0.4, 0.8, position=[0, -0.4]), 0.8),
    "polygon": (shapes.rectangle([1.2, 0.8], position=[0, -0.4]), 0.6),
    "half_plane": (shapes.half_plane(), np.inf),
    "cone": (shapes.cone(0.5, 0.8, position=[0, 0, -0.2], orientation=_TURNED), 0.5),
}
# All pairs, the shape of the body first; of two that bodies can have each is on top once.
PAIRS = sorted(
    {
        (NAMES[one], NAMES[other])
        for pair in SUPPORTED
        for one, other in (pair, pair[::-1])
        if not (SHAPES[NAMES[one]].is_of_world or NAMES[one] == "tube")
    }
)


def scene(above, below, x=0.0, height=0.0, speed=0.0):
    """A body on top of a shape of the world, so high above it, beside its middle by x, with a velocity upwards."""
    shape, lowest, _ = ABOVE[above]
    if SHAPES[above].is_planar:
        gravity, law = [0, -G, 0], nsds.newton_impact_friction(E, MU, dimension=2)
        body = nsds.planar_bodies(1.0, shapes.inertia(shape, 1.0), q=[x, lowest + height, 0], v=[0, speed, 0])
    else:
        gravity, law = [0, 0, -G], nsds.newton_impact_friction(E, MU)
        body = nsds.rigid_bodies(1.0, shapes.inertia(shape, 1.0), q=[x, 0, lowest + height, 1, 0, 0, 0], v=[0, 0, speed, 0, 0, 0])
    return nsds.system(gravity=gravity, body=body, contacts=nsds.collisions({"body": shape}, law, world=BELOW[below][0]))


def beside(above, below):
    """(x, speed) with which a body from DROP on misses: it passes at a distance BESIDE, or flies upwards where nothing can be passed."""
    x = BELOW[below][1] + ABOVE[above][2] + BESIDE
    return (x, -SPEED) if np.isfinite(x) else (0.0, SPEED)


def heights(above, rows):
    """(height of the lowest point above the top, its rate) of the rows."""
    up = 1 if SHAPES[above].is_planar else 2
    return rows["body"]["q"][:, up] - ABOVE[above][1], rows["body"]["v"][:, up]


def _run(system, scheme, t_end):
    h = _H if scheme != "event_driven" else 0.05
    return nsds.simulate(system, t_end=t_end, h=h, scheme=getattr(nsds, scheme)(), progress=False)


def require_rest(above, below, scheme):
    """What is set down rests."""
    height, rate = heights(above, _run(scene(above, below), scheme, _REST))
    assert abs(height).max() <= (1e-9 if scheme == "event_driven" else 1e-5)
    assert abs(rate[-1]) <= (1e-9 if scheme == "event_driven" else 1e-3)


def require_return(above, below, scheme):
    """What is dropped comes back as its law says."""
    height, rate = heights(above, _run(scene(above, below, height=DROP), scheme, _END))
    s = _END - _TAU
    assert s < 2 * E * _TAU  # before it strikes again
    late = 0.0 if scheme == "event_driven" else (1 + E) * G * _TAU * _H
    assert abs(height[-1] - (E * G * _TAU * s - G * s**2 / 2)) <= late + G * _H * _END / 2 * (late > 0) + 1e-9
    assert abs(rate[-1] - (E * G * _TAU - G * s)) <= (1e-9 if late == 0 else 2 * G * _H)


def require_miss(above, below, scheme):
    """What is thrown beside misses."""
    x, speed = beside(above, below)
    rows = _run(scene(above, below, x=x, height=DROP, speed=speed), scheme, _END)
    height, _ = heights(above, rows)
    assert abs(height[-1] - (DROP + speed * _END - G * _END**2 / 2)) <= (1e-9 if scheme == "event_driven" else G * _H * _END)
    assert abs(rows["contacts"]["lambda"]).max() == 0.0
    np.testing.assert_allclose(rows["body"]["q"][:, 0], x, rtol=0, atol=1e-12)


REQUIRED = {
    "what is set down rests": require_rest,
    "what is dropped comes back": require_return,
    "what is thrown beside misses": require_miss,
}


def outcome_of_pair(above, below, scheme):
    """None where a pair does all that it must, else what it does not, or the message that refuses it."""
    for what, require in REQUIRED.items():
        try:
            require(above, below, scheme)
        except ValueError as error:
            return str(error)
        except (AssertionError, nsds.SimulationError):
            return f"wrong: not true that {what}"
    return None
