"""First-order systems of two states, of all kinds, under relations of all kinds.

What moves with time is seen from axes that move by ``s t``: the state is ``x + s t``, the source ``b + s - A s t``, relations are those of
``x - s t``.
"""

from functools import lru_cache

import numba
import numpy as np
import scipy.sparse as sp

import nsds
from tests.cells.laws import END, STEP, Cell

A, SOURCE, OFFSET, STATE = np.array([[-1.0, 2.0], [-2.0, -0.5]]), np.array([-1.0, 0.5]), np.array([0.1, -0.2]), np.array([0.4, 0.3])
SPEED = np.array([0.3, -0.7])  # of axes that move
_CONE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), np.array([-0.5, -0.5, -1.0])  # a triangle
_OF_OUTPUTS = {"euler_moreau", "zero_order_hold", "higher_order_sweeping", "event_driven"}


# ------------------------------------------------------------------------------------------------------- functions of users
# z of relations: the offset (2,), D, s (2,); of the source and the rate s (2,).
@numba.njit
def _put_on_diagonal(value, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = value if i == j else 0.0


def _rate(t, x, z, out):
    out[0] = -(x[0] - z[0] * t) + 2.0 * (x[1] - z[1] * t) - 1.0 + z[0]
    out[1] = -2.0 * (x[0] - z[0] * t) - 0.5 * (x[1] - z[1] * t) + 0.5 + z[1]


def _rate_by_x(t, x, z, out):
    out[0, 0], out[0, 1] = -1.0, 2.0
    out[1, 0], out[1, 1] = -2.0, -0.5


def _matrix(t, z, out):
    out[0, 0], out[0, 1] = -1.0, 2.0
    out[1, 0], out[1, 1] = -2.0, -0.5


def _source(t, z, out):
    out[0] = -1.0 + z[0] + t * (z[0] - 2.0 * z[1])
    out[1] = 0.5 + z[1] + t * (2.0 * z[0] + 0.5 * z[1])


def _e(t, z, out):
    for i in range(out.size):
        out[i] = z[i] - t * z[3 + i]


def _identity(t, z, out):
    _put_on_diagonal(1.0, out)


def _weight(t, z, out):
    _put_on_diagonal(z[2], out)


def _h1(t, x, z, out):
    for i in range(out.size):
        out[i] = x[i] - t * z[3 + i] + z[i]


def _h1_by_x(t, x, z, out):
    _put_on_diagonal(1.0, out)


def _h2(t, x, lam, z, out):
    for i in range(out.size):
        out[i] = x[i] - t * z[3 + i] + z[i] + z[2] * lam[i]


def _h2_by_x(t, x, lam, z, out):
    _put_on_diagonal(1.0, out)


def _h2_by_lam(t, x, lam, z, out):
    _put_on_diagonal(z[2], out)


def _g(t, lam, z, out):
    for i in range(out.size):
        out[i] = lam[i] if i < lam.size else 0.0


def _g_by_lam(t, lam, z, out):
    _put_on_diagonal(1.0, out)


def _g_x(t, x, lam, z, out):
    for i in range(out.size):
        out[i] = lam[i] if i < lam.size else 0.0


def _g_x_by_x(t, x, lam, z, out):
    _put_on_diagonal(0.0, out)


def _sides(G, g):
    """(corners, sides, their lengths squared) of the triangle ``G x >= g``."""
    corners = np.array([np.linalg.solve(G[[i, j]], g[[i, j]]) for i, j in ((0, 1), (1, 2), (2, 0))])
    sides = np.roll(corners, -1, axis=0) - corners
    return corners, sides, (sides**2).sum(axis=1)


_SIDES = _sides(*_CONE)


def _corners(x):
    """The point of the triangle that is nearest to x."""
    G, g = _CONE
    if (G @ x >= g).all():
        return x
    a, side, squared = _SIDES
    along = np.clip(((x - a) * side).sum(axis=1) / squared, 0.0, 1.0)
    points = a + along[:, None] * side
    return points[np.argmin(((points - x) ** 2).sum(axis=1))]


# name -> (law, the point of the set of multipliers that is nearest to x)
FIRST_ORDER_LAWS = {
    "complementarity": (nsds.complementarity(), lambda x: np.maximum(x, 0.0)),
    "equality": (nsds.equality(), lambda x: x),
    "mixed_complementarity": (nsds.mixed_complementarity(1), lambda x: np.array([x[0], max(x[1], 0.0)])),
    "relay": (nsds.relay(-1.0, 2.0), lambda x: np.clip(x, -1.0, 2.0)),
    "normal_cone": (nsds.normal_cone(*_CONE), _corners),
}


# ------------------------------------------------------------------------------------------------------- systems and relations
def _part(kind, speed):
    if kind == "nonlinear":
        return nsds.first_order(_rate, x=STATE, z=speed)
    if kind == "nonlinear, with derivatives":
        return nsds.first_order(_rate, _rate_by_x, x=STATE, z=speed)
    if kind == "A by a function":
        return nsds.first_order_linear(_matrix, b=SOURCE, x=STATE)
    if kind == "sparse":
        return nsds.first_order_linear(sp.csr_array(A), b=SOURCE, x=STATE)
    return nsds.first_order_linear(A, b=_source if speed.any() else SOURCE, x=STATE, z=speed if speed.any() else None)


def first_order_relations(D):
    """(relation, kind, what makes it, kind of system, speed of axes), of all relations ``y = x + offset + D lambda`` with input lambda."""
    z, eye, still = np.r_[OFFSET, D], np.eye(2), np.zeros(2)
    at_rest, moving = np.r_[z, still], np.r_[z, SPEED]
    weight, both = eye * D if D else None, np.eye(2, 4)
    linear, make = "first_order_linear_relation", nsds.first_order_linear_relation
    for kind in ("", "nonlinear", "nonlinear, with derivatives", "A by a function"):
        yield linear, kind, make(eye, eye, D=weight, e=OFFSET), kind, still
    yield linear, "sparse", make(sp.csr_array(eye), sp.csr_array(eye), D=sp.csr_array(weight) if D else None, e=OFFSET), "sparse", still
    yield linear, "e as F z", make(eye, eye, D=weight, F=np.eye(2, 3), z=z), "", still
    yield linear, "e of time", make(eye, eye, D=weight, e=_e, z=moving), "", SPEED
    yield linear, "of functions", make(_identity, _identity, D=_weight if D else None, e=_e, z=at_rest, m=2), "", still
    yield linear, "between two systems", make(both, both.T, D=weight, e=OFFSET), "two", still
    for name, one, functions in (
        ("type2_relation", nsds.type2_relation, (_h2, _g, {"C": _h2_by_x, "D": _h2_by_lam, "B": _g_by_lam})),
        ("first_order_relation", nsds.first_order_relation, (_h2, _g_x, {"C": _h2_by_x, "D": _h2_by_lam, "K": _g_x_by_x, "B": _h2_by_x})),
        ("type1_relation", nsds.type1_relation, (_h1, _g, {"C": _h1_by_x, "B": _g_by_lam})),
    ):
        if D and name == "type1_relation":
            continue
        h, g, derivatives = functions
        yield name, "", one(h, g, m=2, z=at_rest), "", still
        yield name, "with derivatives", one(h, g, m=2, z=at_rest, **derivatives), "", still
        yield name, "of time", one(h, g, m=2, z=moving), "", SPEED
        yield name, "of a nonlinear system", one(h, g, m=2, z=moving), "nonlinear", SPEED
        yield name, "between two systems", one(h, g, m=2, z=at_rest), "two", still


def first_order_cells():
    """All `Cell` of first-order systems; their laws are named by whether y depends on lambda."""
    for D in (0.5, 0.0):
        for law, (made, nearest) in FIRST_ORDER_LAWS.items():
            for relation, kind, of, system, speed in first_order_relations(D):
                yield Cell(
                    f"{law}{', D' if D else ''}", relation, kind, _system(system, of, made, speed), _required(law, nearest, D, speed)
                )


def _system(kind, relation, law, speed):
    def system():
        parts = {"part": _part(kind, speed)}
        if kind == "two":  # the other one does not move, and is not seen
            parts["other"] = nsds.first_order_linear(np.zeros((2, 2)), x=np.zeros(2))
        return nsds.system(**parts, law=nsds.interaction(relation, law, on=tuple(parts) if kind == "two" else "part"))

    return system


def _required(law, nearest, D, speed):
    def require(scheme, rows):
        y, lam = rows["law"]["y"][1:], rows["law"]["lambda"][1:]
        if scheme in _OF_OUTPUTS:
            missed = [np.linalg.norm(b - nearest(b - a)) for a, b in zip(y, lam, strict=True)]
            assert max(missed) < 1e-8, "y and lambda are not those of the law"
        np.testing.assert_allclose(rows["part"]["x"][-1] - END * speed, _twin(law, D), atol=5e-3, err_msg="the motion of the state")

    return require


@lru_cache
def _twin(law, D):
    return march_first_order(FIRST_ORDER_LAWS[law][1], D)


def march_first_order(nearest, D, h=STEP, end=END):
    """x at the end by the implicit Euler method in plain NumPy, the law solved by projections until they rest."""
    x, lam = STATE, np.zeros(2)
    inverse = np.linalg.inv(np.eye(2) - h * A)
    W = h * inverse + D * np.eye(2)
    rho = 1.0 / np.linalg.norm(W, 2)
    for _ in range(round(end / h)):
        free = inverse @ (x + h * SOURCE)
        for _ in range(20_000):
            last, lam = lam, nearest(lam - rho * (free + OFFSET + W @ lam))
            if np.linalg.norm(lam - last) <= 1e-14 * np.linalg.norm(lam):
                break
        x = free + h * inverse @ lam
    return x
