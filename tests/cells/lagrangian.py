"""The ball as Lagrangian systems of all kinds, under relations of all kinds.

What moves with time is seen from axes that move by ``d(t) = s t + a t^2 / 2``: relations are those of ``q - d(t)``, and the force has
``M a`` besides.
"""

import numba
import numpy as np
import scipy.sparse as sp

import nsds
from nsds.model.laws import LAWS
from nsds.model.system_kinds import LAGRANGIAN
from tests.cells import laws
from tests.cells.laws import COMPLIANCE, END, FORCE, GAP, MASS, START, Cell

SPEED, RATE = np.array([0.3, -0.2, 0.4, 0, 0, 0]), np.array([1.0, 2.0, -3.0, 0, 0, 0])  # m/s, m/s^2, of axes that move
_HEAVY = 1e12  # kg


# ------------------------------------------------------------------------------------------------------- functions of users
# z of relations: H (m, n) by rows, b (m,), the compliance, s (n,), a (n,).
@numba.njit
def _put_rows(z, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = z[i * out.shape[1] + j]


def _weigh(q, z, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = z[i] if i == j else 0.0


def _push(t, z, out):
    for i in range(out.size):
        out[i] = z[out.size + i]


def _outputs(q, z, out):
    for i in range(out.size):
        out[i] = z[q.size * out.size + i]
        for j in range(q.size):
            out[i] += z[i * q.size + j] * q[j]


def _jacobian(q, z, out):
    _put_rows(z, out)


def _outputs_in_time(t, q, z, out):
    n, m = q.size, out.size
    for i in range(m):
        out[i] = z[n * m + i]
        for j in range(n):
            out[i] += z[i * n + j] * (q[j] - t * (z[(n + 1) * m + 1 + j] + 0.5 * t * z[(n + 1) * m + 1 + n + j]))


def _jacobian_in_time(t, q, z, out):
    _put_rows(z, out)


def _rate_in_time(t, q, z, out):
    n, m = q.size, out.size
    for i in range(m):
        out[i] = 0.0
        for j in range(n):
            out[i] -= z[i * n + j] * (z[(n + 1) * m + 1 + j] + t * z[(n + 1) * m + 1 + n + j])


def _compliant(q, lam, z, out):
    for i in range(out.size):
        out[i] = z[q.size * out.size + i] + z[(q.size + 1) * out.size] * lam[i]
        for j in range(q.size):
            out[i] += z[i * q.size + j] * q[j]


def _compliant_jacobian(q, lam, z, out):
    _put_rows(z, out)


def _compliance(q, lam, z, out):
    for i in range(lam.size):
        for j in range(lam.size):
            out[i, j] = z[(q.size + 1) * lam.size] if i == j else 0.0


def _general(t, q, lam, z, out):
    n, m = q.size, out.size
    for i in range(m):
        out[i] = z[n * m + i] + z[(n + 1) * m] * lam[i]
        for j in range(n):
            out[i] += z[i * n + j] * (q[j] - t * (z[(n + 1) * m + 1 + j] + 0.5 * t * z[(n + 1) * m + 1 + n + j]))


def _general_jacobian(t, q, lam, z, out):
    _put_rows(z, out)


def _general_compliance(t, q, lam, z, out):
    for i in range(lam.size):
        for j in range(lam.size):
            out[i, j] = z[(q.size + 1) * lam.size] if i == j else 0.0


def _general_input(t, q, lam, z, out):
    for j in range(q.size):
        out[j] = 0.0
        for i in range(lam.size):
            out[j] += z[i * q.size + j] * lam[i]


def _general_input_matrix(t, q, lam, z, out):
    for j in range(q.size):
        for i in range(lam.size):
            out[j, i] = z[i * q.size + j]


def _velocity(t, z, out):
    for i in range(out.size):
        out[i] = z[2 * i] + t * z[2 * i + 1]


# ------------------------------------------------------------------------------------------------------- systems and relations
def _ball(kind, v, rate):
    """The ball as a part, of one of these kinds, with the force that a motion of the axes adds."""
    state, force = {"q": np.zeros(6), "v": v}, FORCE + MASS * rate
    if kind == "modal":
        return nsds.lagrangian_modal(np.zeros(6), mass=MASS, fext=force, **state)
    if kind == "nonlinear":
        return nsds.lagrangian(_weigh, fext=_push, z=np.r_[MASS, force], **state)
    if kind == "array":
        return nsds.lagrangian_linear(MASS, fext=force, count=2, **state)
    if kind == "sparse":
        return nsds.lagrangian_linear(sp.csr_array(np.diag(MASS)), fext=force, **state)
    if kind == "force by a function":
        return nsds.lagrangian_linear(MASS, fext=_push, z=np.r_[MASS, force], **state)
    return nsds.lagrangian_linear(MASS, fext=force, **state)


def lagrangian_relations(law, is_force=False):
    """(relation, kind, what makes it, kind of system, how its axes move), of all that have the rows of a law.

    is_force: of those whose y depends on lambda.
    """
    m, H, D = len(law.H), law.H, COMPLIANCE if is_force else 0.0
    b = np.r_[GAP if law.closes or is_force else 0.0, np.zeros(m - 1)]
    z, still, moving = np.r_[H.ravel(), b, D], np.zeros(12), np.r_[SPEED, RATE]
    both, z_both = np.c_[H, -H], np.r_[np.c_[H, -H].ravel(), b, D]
    if is_force:
        linear, eye = "lagrangian_linear_relation with D", np.eye(m) * D
        functions = {"H": _general_jacobian, "D": _general_compliance, "B": _general_input_matrix}
        yield linear, "", nsds.lagrangian_linear_relation(H, b=b, D=eye), "", still
        yield linear, "sparse H, D and M", nsds.lagrangian_linear_relation(sp.csr_array(H), b=b, D=sp.csr_array(eye)), "sparse", still
        yield linear, "between two systems", nsds.lagrangian_linear_relation(both, b=b, D=eye), "two", still
        yield "compliant", "", nsds.compliant(_compliant, m=m, z=z), "", still
        yield "compliant", "with derivatives", nsds.compliant(_compliant, _compliant_jacobian, _compliance, m=m, z=z), "", still
        yield "compliant", "between two systems", nsds.compliant(_compliant, m=m, z=z_both), "two", still
        general = "lagrangian_relation"
        for kind, given, motion in (("", {}, still), ("with derivatives", functions, still), ("of time", {}, moving)):
            yield general, kind, nsds.lagrangian_relation(_general, _general_input, m=m, z=np.r_[z, motion], **given), "", motion
        return
    linear = "lagrangian_linear_relation"
    for kind in ("", "modal", "nonlinear", "array", "force by a function"):
        yield linear, kind, nsds.lagrangian_linear_relation(H, b=b), kind, still
    yield linear, "sparse H and M", nsds.lagrangian_linear_relation(sp.csr_array(H), b=b), "sparse", still
    yield linear, "between two systems", nsds.lagrangian_linear_relation(both, b=b), "two", still
    yield "scleronomous", "", nsds.scleronomous(_outputs, m=m, z=z), "", still
    yield "scleronomous", "with derivatives", nsds.scleronomous(_outputs, _jacobian, m=m, z=z), "", still
    yield "scleronomous", "between two systems", nsds.scleronomous(_outputs, m=m, z=z_both), "two", still
    derivatives = {"H": _jacobian_in_time, "h_t": _rate_in_time}
    for kind, functions in (("", {}), ("with derivatives", derivatives)):
        yield "rheonomous", kind, nsds.rheonomous(_outputs_in_time, m=m, z=np.r_[z, moving], **functions), "", moving
    yield "rheonomous", "of a nonlinear system", nsds.rheonomous(_outputs_in_time, m=m, z=np.r_[z, moving]), "nonlinear", moving
    if m == 1 and not law.closes:
        drive, row, steady = "prescribed_velocity", law.row, np.r_[SPEED, np.zeros(6)]
        yield drive, "", nsds.prescribed_velocity([row]), "", still
        yield drive, "a number", nsds.prescribed_velocity([row], SPEED[row]), "", steady
        yield drive, "of time", nsds.prescribed_velocity([row], _velocity, z=[SPEED[row], RATE[row]]), "", moving
        yield drive, "between two systems", nsds.prescribed_velocity([row]), "two", still
        yield drive, "of a nonlinear system", nsds.prescribed_velocity([row]), "nonlinear", still


def lagrangian_cells():
    """All `Cell` of Lagrangian systems."""
    for name, law in laws.mechanical_laws().items():
        if LAGRANGIAN in LAWS[law.made["law"]].families:
            for relation, kind, made, system, motion in lagrangian_relations(law):
                yield Cell(name, relation, kind, _system(system, made, law.made, law.start, motion), _required(name, law, motion))
    law = laws.mechanical_laws()["newton_impact"]
    for name, made in (("complementarity", nsds.complementarity()), ("equality", nsds.equality())):
        for relation, kind, of, system, motion in lagrangian_relations(law, is_force=True):
            yield Cell(f"{name}, a force", relation, kind, _system(system, of, made, START, motion), _force_required(name, motion))


def _system(kind, relation, made, v, motion):
    def system():
        parts = {"ball": _ball(kind, v + motion[:6], motion[6:])}
        if kind == "two":  # the other one is moved by nothing
            parts["other"] = nsds.lagrangian_linear(np.full(6, _HEAVY), q=np.zeros(6), v=np.zeros(6))
        return nsds.system(**parts, law=nsds.interaction(relation, made, on=tuple(parts) if kind == "two" else "ball"))

    return system


def _end(rows, motion):
    """The ball at the end of a run as seen from its axes, the first one of an array, after both were found to do the same."""
    ball = rows["ball"][-1]
    if ball["q"].ndim > 1:
        np.testing.assert_allclose(rows["ball"]["q"][:, 0], rows["ball"]["q"][:, 1], atol=1e-9)
        ball, rows = ball[0], _first_of_array(rows)
    q, v = ball["q"] - END * (motion[:6] + 0.5 * END * motion[6:]), ball["v"] - motion[:6] - END * motion[6:]
    return q, v, rows


def _required(name, law, motion):
    def require(scheme, rows):
        q, v, rows = _end(rows, motion)
        laws.require_law(law, scheme, rows)
        right_q, right_v = laws.twin(name)
        laws.require_motion((q[:3], v * laws.ARM), (right_q[:3], right_v * laws.ARM))

    return require


def _force_required(name, motion):
    def require(scheme, rows):
        y, force = rows["law"]["y"][1:], rows["law"]["lambda"][1:]
        assert np.abs(y if name == "equality" else np.minimum(y / COMPLIANCE, force)).max() < 1e-6, "y and force are not those of the law"
        q, v, _ = _end(rows, motion)
        z, rate = laws.twin_of_force(name == "equality")
        assert abs(q[2] - z) < 5e-3, "the motion of the ball"
        assert abs(v[2] - rate) < 0.2, "the motion of the ball"

    return require


def _first_of_array(rows):
    first = np.zeros(len(rows), [("law", [(field, "f8", rows["law"][field].shape[2:]) for field in ("lambda", "ydot")])])
    for field in ("lambda", "ydot"):
        first["law"][field] = rows["law"][field][:, 0]
    return first
