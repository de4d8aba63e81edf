"""Energy ledger of a mechanical trajectory."""

import math
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.maths.rotations import turned, turned_back
from nsds.model.function_checks import n_u
from nsds.model.functions import CENTRAL_STEP, evaluate_at, function_address, offered
from nsds.model.laws import LAWS, is_force
from nsds.model.layout import elements_of
from nsds.model.records import GRAVITY, model_of, stored_sparse
from nsds.model.system_kinds import FIRST_ORDER, NEWTON_EULER, collisions_of, family, split
from nsds.model.validation import runnable
from nsds.results.trajectories import of_system, require_rows
from nsds.status import JUMP, is_event

WORKS = ("forces", "internal", "damping", "joints", "contact", "switching")
# Steps of differences, of the largest coordinate; ratio of those compared. Gaps of two slopes: none agree; only rounding makes them grow.
_LONGEST, _SHORTEST, _SHORTER = 2.0**-5, 2.0**-37, 2.0**-4
_FAR, _CLEAR, _TINY = 2.0**-10, 2.0**-20, 1e-300
_OF_JOINTS = ("joint", "newton_euler_relation", "scleronomous", "lagrangian_linear_relation")
LEDGER = np.dtype([(name, "<f8") for name in ("t", "kinetic", "potential", *WORKS, "numerical")])


def energy(system, trajectory, theta=0.5, *, functions=None):
    """Energy ledger of a trajectory: mechanical energy at each row, and the work done in each step.

    It is the discrete equation of motion ([Notes], eq. 10.14) times ``v_theta = theta v_{k+1} + (1-theta) v_k``, with
    ``d(kinetic + potential) = forces + internal + damping + joints + contact + numerical`` and

    - kinetic ``v^T M(q) v / 2``, potential ``q^T K q / 2 - q . F_ext`` for constant F_ext, as weight: zero at q = 0. Of forces that are
      functions none is known: their work is in the ledger;
    - forces ``h v_theta . (F_ext(t) + T u)_theta``;
    - internal ``-h v_theta . (F_int + F_gyr)_theta + v_theta . dM v_theta / 2``: what forces that are functions take, and the change of
      the mass gives, which are equal where F_gyr is all that M(q) gives rise to;
    - damping ``-h v_theta . C v_theta``;
    - contact ``v_theta . p``, p the generalised impulse of all interactions in the step but joints, which is ``H^T lambda``,
      ``h H^T lambda`` where lambda is a force, or ``h g``; negative where energy is lost, positive where a drive puts it in;
    - joints the same of bilateral constraints, which in exact motion take nothing: what the scheme loses or gains in them. In models of
      rigid bodies with `nsds.collisions` it is part of contact;
    - switching the energy of bodies that appear at the row, less that of bodies that disappear (``alive``), and likewise of springs
      that are switched on or off; disabled parts do not count;
    - numerical, the remainder. For constant matrices and H it is ``-(theta - 1/2) (dv . M dv + dq . K dq)``: nothing for
      theta = 1/2, dissipation for larger theta. It is O(h) of the power where the mass varies, as the error of the scheme.

    Of rigid bodies potential is that of gravity, of constant forces and of springs between them (`nsds.spring_damper`), whose dampers are
    in damping; constant moments, which have none, and controls belong to forces; what `nsds.force_law` and K say belongs to internal, and
    the gyroscopic moment, which does no work, to numerical.

    H is that of the end of the step, as `nsds.moreau_jean` takes it: exact for constant H and for ``q_star=1``, and O(h) otherwise.
    Where positions move without velocities (projections), the change of the potential energy is numerical.

    Where a trajectory of `nsds.event_driven` has rows at events, lambda is a force, and the motion between rows is exact: theta plays no
    part, and the work of contacts is the mean of their power at both rows times the time between. Behind the first row, and behind an
    impact, whose row has its impulse, the force is that of the next row. So numerical is the error of these sums, of second order in the
    time between rows, and nothing where forces are constant; and what flights that an accumulation leaves out
    would have lost. The row after an impact has its work, ``p . (v+ + v-) / 2``, in contact, or joints.

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        The record that was simulated.
    trajectory : numpy.ndarray (rows,)
        One system, every step saved, with the states of its parts and lambda of the interactions, which are saved by default.
    theta : float
        The one of the run; 1/2 for schemes without, and for `nsds.schatzman_paoli`, whose theta is another. Impacts lose
        ``p . (v+ + v-) / 2``, which contact is for 1/2.
    functions : sequence of functions, optional
        See `nsds.simulate`.

    Returns
    -------
    numpy.ndarray (rows,)
        Fields t, kinetic, potential, and work forces, internal, damping, joints, contact, switching, numerical of the step that ends at t
        (J).

    Raises
    ------
    ValueError
        A first-order system, the trajectory of another system, steps between rows are missing, rows at events of rigid bodies with
        `nsds.collisions`, or part of the state was not recorded.

    Examples
    --------
    >>> import nsds
    >>> system = nsds.examples.bouncing_ball(e=1.0)
    >>> ledger = nsds.energy(system, nsds.simulate(system, t_end=1.0, h=1e-3))
    >>> bool(abs(ledger["numerical"]).max() < 1e-12)
    True
    """
    # 1. record, and every step of one trajectory
    offered("energy", functions)
    system = runnable("energy", system)
    model = model_of(system)
    trajectory = require_rows("energy", of_system("energy", system, trajectory), (1, 2))
    if family(model) == FIRST_ORDER:
        way = "; that of circuits is nsds.circuits.energy"
        raise ValueError(f"energy: kinetic and potential energy are those of mechanical systems; this one is first-order{way}")
    theta = _checks.number("energy", "theta", theta, 0.0, 1.0)
    system, at_events = np.asarray(system), is_event(trajectory["status"])
    is_missing = np.diff(trajectory["step"]) > 1 if at_events.any() else np.diff(trajectory["step"]) != 1
    if system.size != 1 or trajectory.ndim != 1 or is_missing.any():
        raise ValueError("energy: needs the trajectory of one system with every step saved (save_every=1)")
    if at_events.any() and collisions_of(model):
        raise ValueError(
            "energy: rows at events do not tell the work of friction between them in nsds.collisions; q and v of the rows tell the energy"
        )
    # 2. weights of a step: theta, or the mean of powers between events
    system, t = system.reshape(()), trajectory["t"].copy()
    theta = 0.5 if at_events.any() else theta
    steps = _Steps(theta, np.diff(t), at_events.any(), (at_events & (trajectory["status"] & JUMP > 0)))
    ledger = np.zeros(t.shape, LEDGER)
    ledger["t"] = t
    # 3. rigid bodies: each body while it is alive, then forces between them
    systems, interactions, _ = split(model)
    if family(model) == NEWTON_EULER:
        gravity = system[GRAVITY] if GRAVITY in system.dtype.names else np.zeros(3)
        for name, _ in systems:
            elements = system[name].reshape(-1)
            q, v, p = (_recorded(trajectory, name, field, elements.size) for field in "qvp")
            u = _recorded(trajectory, name, "u", elements.size) if "u" in elements.dtype.names else v[..., :0]
            alive = _flags(trajectory, name, "alive", elements)
            for e in np.flatnonzero(np.isfinite(elements["mass"])):
                own = np.zeros_like(ledger)
                own["potential"] -= elements[e]["mass"] * (q[:, e, :3] @ gravity)
                _add_body(own, elements[e], theta, t, q[:, e], v[:, e], u[:, e])
                if not steps.at_events:  # then impulses of bodies are those of forces, or of impacts
                    own["contact"][1:] += steps.work(v[:, e], p[:, e], p[:, e])
                _add_present(ledger, own, alive[:, e])
        _add_interactions(ledger, system, model, steps, trajectory)
        return _closed(ledger)
    # 4. Lagrangian systems, then the work of their interactions
    state = {}
    for name, kind in systems:
        elements = system[name].reshape(-1)
        q, v = state[name] = [_recorded(trajectory, name, field, elements.size) for field in "qv"]
        controlled = "u" in elements.dtype.names and elements.dtype["u"].kind != "S"
        u = _recorded(trajectory, name, "u", elements.size) if controlled else v[..., :0]
        for e, part in enumerate(elements):
            _add_system(ledger, part, kind, theta, t, q[:, e], v[:, e], u[:, e])
    for name, relation, law, *sides in interactions:
        parts = system[name].reshape(-1)
        is_joint = _is_joint(relation, law, "D" in parts.dtype.names)
        lam = _recorded(trajectory, name, "lambda", parts.size)
        h = np.diff(t, prepend=t[0])[:, None] if is_force(law, relation, "D" in parts.dtype.names) else 1.0
        for e, chosen in enumerate(elements_of(system, name, len(sides))):
            q, v = (np.concatenate([state[side][i][:, element] for side, element in zip(sides, chosen, strict=True)], 1) for i in (0, 1))
            impulse, start = (h * generalised(parts[e], relation, t, q, x) for x in (lam[:, e], steps.begun(lam[:, e])))
            ledger["joints" if is_joint else "contact"][1:] += steps.work(v, impulse, start)
    return _closed(ledger)


class _Steps(NamedTuple):
    """Kind of the rows of a trajectory: steps with impulses, or events and times between which forces act."""

    theta: float
    h: np.ndarray  # (rows - 1,)
    at_events: bool
    is_jump: np.ndarray  # (rows,)

    def begun(self, lam):
        """Multipliers (rows, m) just after each row: at the first row, or after an impulse, those of the next row."""
        is_unknown = self.is_jump & self.at_events
        is_unknown[0] = self.at_events  # closed contacts are determined when the first step begins
        return np.where(is_unknown[:, None], np.concatenate([lam[1:], lam[-1:]]), lam)

    def work(self, v, p, begun):
        """Work (rows - 1,) of impulses p (rows, n); with events, of impulses of impacts and of forces; begun: those just after rows."""
        impulsive = (_mean(self.theta, v) * p[1:]).sum(axis=1)
        if not self.at_events:
            return impulsive
        power = (v[:-1] * begun[:-1] + v[1:] * p[1:]).sum(axis=1) / 2
        return np.where(self.is_jump[1:], impulsive, self.h * power)


def _is_joint(relation, law, has_D=False):
    """Whether an interaction is a stationary rigid bilateral constraint, which does no work in exact motion."""
    return LAWS[law].treatment.is_equation and relation in _OF_JOINTS and not has_D


def _closed(ledger):
    """The ledger with its remainder as numerical."""
    ledger["numerical"][1:] = np.diff(ledger["kinetic"] + ledger["potential"]) - sum(ledger[name][1:] for name in WORKS)
    return ledger


def _add_body(ledger, part, theta, t, q, v, u):
    """Energy of one rigid body, and the works of its forces; u: its control."""
    kind, names, v_theta = "rigid_bodies", part.dtype.names, _mean(theta, v)
    # 1. kinetic energy
    q, v, power = q.copy(), v.copy(), np.diff(t)[:, None] * v_theta
    ledger["kinetic"] += (part["mass"] * (v[:, :3] ** 2).sum(axis=1) + np.einsum("ki,ij,kj->k", v[:, 3:], part["inertia"], v[:, 3:])) / 2
    # 2. applied and internal forces; a constant force has a potential
    for work, sign, fields in (("forces", 1, ("fext", "mext")), ("internal", -1, ("fint", "mint"))):
        for field, chosen in zip(fields, (slice(0, 3), slice(3, 6)), strict=True):
            if field in names:
                if field == "fext" and part.dtype[field].kind != "S":
                    ledger["potential"] -= q[:, :3] @ part[field]
                    continue
                force = along(part, kind, field, (3,), t, q, v)
                if field == "mext" and part["mext_inertial"]:
                    force = turned_back(q[:, 3:], force)
                ledger[work][1:] += sign * (power[:, chosen] * _mean(theta, force)).sum(axis=1)
    # 3. control, constant in a step, in axes that may turn with the body
    if "u" in names:
        held = u[:-1] @ (part["T"].T if "T" in names else np.eye(6))  # a controller sets it at a row, for the step that follows
        force = [of_control(held, bool(part["u_inertial"]), at[:, 3:]) for at in (q[:-1], q[1:])]
        ledger["forces"][1:] += (power * _mean(theta, *force)).sum(axis=1)
    # 4. linear internal wrench
    for work, field, x in (("damping", "C", v), ("internal", "K", q)):
        if field in names:
            ledger[work][1:] -= (power * _mean(theta, x @ part[field].T)).sum(axis=1)


def of_control(wrench, is_inertial, p):
    """Forces in inertial axes and moments in axes of the body, from wrenches (rows, 6) given in one of these."""
    force, moment = wrench[:, :3], wrench[:, 3:]
    return np.concatenate([force if is_inertial else turned(p, force), turned_back(p, moment) if is_inertial else moment], axis=1)


def _add_interactions(ledger, system, model, steps, trajectory):
    """Energies and works of forces between rigid bodies; the work that is not of joints is subtracted to give theirs.

    With events contacts and drives have the work of their lambda, joints none.
    """
    lines, of_others = split(model)[1], np.zeros(ledger.size - 1)
    # 1. forces with a law of their own: energy and work while both bodies are alive
    for name, relation, law, *sides in lines:
        elements = system[name].reshape(-1)
        if _is_joint(relation, law):
            continue
        y, ydot, lam = (_recorded(trajectory, name, field, elements.size) for field in ("y", "ydot", "lambda"))
        chosen, enabled = elements_of(system, name, len(sides)), _flags(trajectory, name, "enabled", elements)
        for e, element in enumerate(elements):
            if LAWS[law].is_given:
                own, is_on = np.zeros_like(ledger), enabled[:, e].copy()
                for side, i in zip(sides, chosen[e], strict=True):
                    is_on *= _flags(trajectory, side, "alive", system[side].reshape(-1))[:, i]
                _add_force(own, element, steps.theta, ledger["t"], y[:, e], ydot[:, e], lam[:, e])
                _add_present(ledger, own, is_on)
                continue
            # 2. other interactions: work of lambda with the rate on which it acts
            rate = ydot[:, e]
            if "dofs" in element.dtype.names:  # whose ydot is the velocity less the one that is wanted
                v = [_recorded(trajectory, side, "v", system[side].size)[:, i] for side, i in zip(sides, chosen[e], strict=True)]
                rate = np.concatenate(v, axis=1)[:, element["dofs"].reshape(-1)]
            of_others += steps.work(rate, lam[:, e], steps.begun(lam[:, e]))
    # 3. joints have the rest of the work of all contacts and joints
    if steps.at_events:
        ledger["contact"][1:] = of_others
    if any(_is_joint(*line[1:3]) for line in lines) and not collisions_of(model):
        ledger["joints"][1:], ledger["contact"][1:] = ledger["contact"][1:] - of_others, of_others


def _flags(trajectory, part, field, elements):
    """Flags (rows, elements) of a part, 1 if it has none."""
    if field not in elements.dtype.names:
        return np.ones((trajectory.size, elements.size))
    return _recorded(trajectory, part, field, elements.size)[..., 0].astype(float)


def _add_present(ledger, own, is_on):
    """Adds energies and works of one body or force while it is enabled; a flag of a row holds from there on."""
    energy = own["kinetic"] + own["potential"]
    own["switching"][1:] = np.diff(is_on) * energy[1:]
    for name in ("kinetic", "potential", *WORKS):
        if name in ("kinetic", "potential"):
            own[name] *= is_on
        elif name != "switching":
            own[name][1:] *= is_on[:-1]
        ledger[name] += own[name]


def _add_force(ledger, part, theta, t, y, ydot, lam):
    """Energy and work of one force between bodies."""
    rate = _mean(theta, ydot)
    if "stiffness" not in part.dtype.names:
        ledger["internal"][1:] += (rate * lam[1:]).sum(axis=1)
        return
    stiffness, damping = (part[field].reshape(y.shape[1], -1) for field in ("stiffness", "damping"))
    ledger["potential"] += np.einsum("ki,ij,kj->k", y, stiffness, y) / 2
    ledger["damping"][1:] -= np.diff(t) * np.einsum("ki,ij,kj->k", rate, damping, rate)


def _recorded(trajectory, part, field, count):
    """A field (rows, elements, values) of a part, as a copy."""
    if part not in trajectory.dtype.names or field not in trajectory.dtype[part].base.names:
        raise ValueError(f"energy: the trajectory must hold the state of part '{part}', but {part}.{field} was not recorded")
    return trajectory[part][field].reshape(trajectory.size, count, -1).copy()


def _mean(theta, start, end=None):
    """``theta x_{k+1} + (1 - theta) x_k`` of each step, for values at all rows, or those at the start and at the end of each step."""
    start, end = (start[:-1], start[1:]) if end is None else (start, end)
    return theta * end + (1 - theta) * start


def _add_system(ledger, part, kind, theta, t, q, v, u):
    """Energies of one element of a part, and the works of its forces; u: its control if that is a number."""
    # 1. kinetic energy, and the work of a varying mass
    q, v, names, n = q.copy(), v.copy(), part.dtype.names, q.shape[1]
    v_theta = _mean(theta, v)
    power = np.diff(t)[:, None] * v_theta  # times a force and summed
    if "M" in names:
        momentum = times(v, part["M"])
    else:
        M = along(part, kind, "mass", (n, n), t, q, v)
        momentum = np.einsum("kij,kj->ki", M, v)
        ledger["internal"][1:] += np.einsum("ki,kij,kj->k", v_theta, np.diff(M, axis=0), v_theta) / 2
    ledger["kinetic"] += (v * momentum).sum(axis=1) / 2
    # 2. spring, damper and constant force
    if "K" in names:
        ledger["potential"] += (q * times(q, part["K"])).sum(axis=1) / 2
    if "C" in names:
        ledger["damping"][1:] -= (power * times(v_theta, part["C"])).sum(axis=1)
    is_constant = "fext" in names and part.dtype["fext"].kind != "S"
    if is_constant:
        ledger["potential"] -= q @ part["fext"]
    # 3. forces that are functions
    for work, sign, field in (("forces", 1, "fext"), ("internal", -1, "fint"), ("internal", -1, "fgyr")):
        if field in names and not (field == "fext" and is_constant):
            ledger[work][1:] += sign * (power * _mean(theta, along(part, kind, field, (n,), t, q, v))).sum(axis=1)
    # 4. control
    if "u" in names:
        size = n_u(part)
        T = along(part, kind, "T", (n, size), t, q, v) if "T" in names else np.broadcast_to(np.eye(n), (t.size, n, n))
        if part.dtype["u"].kind == "S":
            u = along(part, kind, "u", (size,), t, q, v)
            start, end = u[:-1], u[1:]
        else:
            start = end = u[:-1]  # a controller sets it at a row, for the step that follows
        force = _mean(theta, np.einsum("kij,kj->ki", T[:-1], start), np.einsum("kij,kj->ki", T[1:], end))
        ledger["forces"][1:] += (power * force).sum(axis=1)


def generalised(part, relation, t, q, lam):
    """``H^T lambda``, or g, of one element of an interaction at each row (rows, n)."""
    (rows, m), n = lam.shape, q.shape[1]
    # by the form of the relation: function g, prescribed coordinates, stored H, function H, or differences of h
    lam = lam.copy()
    if "g" in part.dtype.names:
        return along(part, relation, "g", (n,), t, q, lam)
    if "dofs" in part.dtype.names:
        result = np.zeros((rows, n))
        result[:, part["dofs"]] = lam
        return result
    if "H" in part.dtype.names and part.dtype["H"].kind != "S":
        return times(lam, part["H"], n)
    if "H" in part.dtype.names:
        H = along(part, relation, "H", (m, n), t, q, lam)
    else:
        H = _difference(part, relation, t, q, lam)
    return np.einsum("kij,ki->kj", H, lam)


def _difference(part, relation, t, q, lam):
    """dh/dq (rows, m, n) by central differences, in each row of the step that agrees best with the next shorter one.

    Steps are parts of 1 and of the largest coordinate, and shorter ones where that is small: units do not count.
    """
    H = np.empty((*lam.shape, q.shape[1]))
    for j in range(q.shape[1]):
        largest = abs(q[:, j]).max() or 1.0
        step, least, is_open = _LONGEST * max(1.0, largest), np.full(lam.shape, _FAR), np.ones(lam.shape, bool)
        H[:, :, j] = _slope(part, relation, t, q, lam, j, CENTRAL_STEP * max(1.0, largest))  # where none agrees, as noise of 0
        now = _slope(part, relation, t, q, lam, j, step)
        while step > _SHORTEST * largest and is_open.any():
            step *= _SHORTER
            shorter = _slope(part, relation, t, q, lam, j, step)
            gap = abs(shorter - now) / np.maximum(np.maximum(abs(shorter), abs(now)), _TINY)
            is_open &= ~((gap > 2.0 * least) & (least < _CLEAR))  # from there on rounding grows
            better = is_open & (gap < least)
            H[better, j], least[better] = shorter[better], gap[better]
            now = shorter
    return H


def _slope(part, relation, t, q, lam, j, step):
    """Central difference (rows, m) of h by the coordinate j."""
    before, after = q.copy(), q.copy()
    before[:, j] -= step
    after[:, j] += step
    values = [along(part, relation, "h", lam.shape[1:], t, at, lam) for at in (before, after)]
    return (values[1] - values[0]) / (after[:, j] - before[:, j])[:, None]


def along(part, kind, field, shape, t, x, lam):
    """Values (rows, ...) of a field of a part: results of its function at each row, or its stored numbers."""
    if part.dtype[field].kind != "S":
        return np.broadcast_to(part[field], (t.size, *shape))
    z = part["z"].reshape(-1).copy() if "z" in part.dtype.names else np.zeros(0)
    out = np.zeros((t.size, math.prod(shape)))
    evaluate_at(np.uintp(function_address(part[field].decode(), kind, field)), t, x, lam, z, out)
    return out.reshape(t.size, *shape)


def times(x, matrix, n=None):
    """Rows ``x[k] @ matrix`` for a stored diagonal, dense or compressed-row matrix with n columns, or a square one."""
    if matrix.dtype.names:
        return x @ stored_sparse(matrix, x.shape[1] if n is None else n)
    return x * matrix if matrix.ndim == 1 else x @ matrix
