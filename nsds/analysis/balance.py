"""Residual of the balance of forces at rest, for each body."""

from typing import NamedTuple

import numpy as np

from nsds.maths.rotations import turned_back
from nsds.model.function_checks import n_u
from nsds.model.joints import DISTANCE, POINT
from nsds.model.laws import is_force
from nsds.model.layout import elements_of
from nsds.model.records import GRAVITY, model_of, stored_sparse
from nsds.model.system_kinds import NEWTON_EULER, collisions_of, family, split
from nsds.results.energy import along, generalised, of_control, times


class Balance(NamedTuple):
    """Balance of forces of the rigid bodies, or coordinates of Lagrangian systems, of a record after a step from rest.

    Coordinates are apart, as each has its own unit. parts: names of the bodies or systems. left, total: the rate of change of momentum
    (residual), and the sum of the magnitudes of the forces f, in the norm ``(f . M^-1 f)^(1/2)`` with the diagonal of M. pull: the largest
    acceleration by one of the forces alone, of rigid bodies that of translation. speed: the largest of the velocities, (bodies, 2) with
    those of rotation. v, momentum: of all coordinates; first: the index of the first coordinate of each.
    """

    parts: list
    left: np.ndarray
    total: np.ndarray
    pull: np.ndarray
    speed: np.ndarray
    v: np.ndarray
    momentum: np.ndarray
    first: np.ndarray

    @property
    def ratio(self):
        """Residual of the forces on each body, relative to their magnitudes; 0 where there are none."""
        sizes = np.maximum(self.left, self.total)
        return np.divide(self.left, sizes, out=np.zeros(sizes.size), where=sizes > 0.0)


def balance_of(record, h):
    """`Balance` of a record after a step of size h from rest, which ended at its time."""
    # 1. the bodies, each with its own forces
    model, bodies = model_of(record), {}
    systems, interactions, _ = split(model)
    gravity = record[GRAVITY] if GRAVITY in record.dtype.names else np.zeros(3)
    of_system = _RigidBody if family(model) == NEWTON_EULER else _Lagrangian
    for name, kind in systems:
        for e, part in enumerate(record[name].reshape(-1)):
            bodies[name, e] = of_system(part, kind, record["t"].reshape(1), h, gravity)
    # 2. forces of interactions; those of rigid bodies are in p already, so that only their magnitudes are added
    if of_system is _RigidBody:
        _press(bodies, record, interactions, collisions_of(model), h)
    else:
        _add_interactions(bodies, record, interactions, h)
    # 3. table: one row for each body
    names = [f"{name}[{e}]" if record[name].shape else name for name, e in bodies]
    each = list(bodies.values())
    parts = [name for name, body in zip(names, each, strict=True) for _ in range(body.n_balances)]
    numbers = [np.concatenate([getattr(body, number)() for body in each]) for number in ("left", "total", "pull", "speed")]
    first = np.cumsum([0, *(body.v.size // body.n_balances for body in each for _ in range(body.n_balances))])[:-1]
    return Balance(parts, *numbers, np.concatenate([body.v for body in each]), np.concatenate([body.momentum for body in each]), first)


class _RigidBody:
    """Forces, and moments in axes of the body, and the magnitudes of those between it and others; a body of infinite mass has none."""

    n_balances = 1

    def left(self):
        return np.array([self.norm(self.momentum) / self.h])

    def total(self):
        return np.array([sum(self.norm(force) for force in self.forces) + self.pressed])

    def pull(self):
        return np.array([max((abs(self.inverse * force)[:3].max() for force in self.forces), default=0.0)])

    def speed(self):
        return np.array([[abs(self.v[:3]).max(), abs(self.v[3:]).max()]])

    def norm(self, force):
        """``(f . M^-1 f)^(1/2)`` with the diagonal of M."""
        return float(np.sqrt((self.inverse * force * force).sum()))

    def __init__(self, part, kind, t, h, gravity):
        self.h, self.pressed, self.forces = h, 0.0, []
        self.v, self.momentum, self.inverse = part["v"].copy(), np.zeros(6), np.zeros(6)
        # 1. momentum and the diagonal of the inverse mass matrix; infinite mass has zero inverse
        if np.isinf(part["mass"]):
            return
        self.momentum = np.r_[part["mass"] * self.v[:3], part["inertia"] @ self.v[3:]]
        self.inverse = 1.0 / np.r_[np.full(3, part["mass"]), np.diag(part["inertia"])]
        # 2. weight, and forces of contacts and joints as the impulses p of the step
        q, rest, names, force = part["q"].copy()[None], np.zeros((1, 6)), part.dtype.names, np.zeros(6)
        force[:3] = part["mass"] * gravity
        self.forces = [force, part["p"] / h]
        # 3. applied and internal forces and moments
        for fields, sign in ((("fext", "mext"), 1.0), (("fint", "mint"), -1.0)):
            for field, first in zip(fields, (0, 3), strict=True):
                if field in names:
                    value = along(part, kind, field, (3,), t, q, rest)
                    if field == "mext" and part["mext_inertial"]:
                        value = turned_back(q[:, 3:], value)
                    self.forces.append(np.zeros(6))
                    self.forces[-1][first : first + 3] = sign * value[0]
        # 4. control inputs, spring on the coordinates
        if "u" in names:
            wrench = part["u"] @ (part["T"].T if "T" in names else np.eye(6))
            self.forces.append(of_control(wrench[None], bool(part["u_inertial"]), q[:, 3:])[0])
        if "K" in names:
            self.forces.append(-part["K"] @ q[0])

    def press(self, magnitude):
        """Adds the magnitude of a force (N) whose vector is in p already."""
        self.pressed += magnitude * np.sqrt(self.inverse[0])


class _Lagrangian:
    """Generalised forces (n,), each coordinate by itself."""

    @property
    def n_balances(self):
        return self.v.size

    def left(self):
        """Of the step, or of the forces where it ended: a step may leave out what is little beside forces in other units."""
        return np.sqrt(self.inverse) * np.maximum(abs(self.momentum) / self.h, abs(np.sum(self.forces, axis=0)))

    def total(self):
        return np.sqrt(self.inverse) * np.sum([abs(force) for force in self.forces], axis=0, initial=0.0)

    def pull(self):
        return self.inverse * np.max([abs(force) for force in self.forces], axis=0, initial=0.0)

    def speed(self):
        return np.stack([abs(self.v), np.zeros(self.v.size)], axis=1)

    def __init__(self, part, kind, t, h, _):
        self.h, self.forces = h, [np.zeros(part["v"].size)]
        self.v, q, rest, names = part["v"].copy(), part["q"].copy()[None], np.zeros((1, part["q"].size)), part.dtype.names
        n = self.v.size
        # 1. mass matrix: a function, stored in any of its forms, or the identity
        if "mass" in names:
            M = along(part, kind, "mass", (n, n), t, q, rest)[0]
            self.momentum, diagonal = M @ self.v, np.diag(M)
        elif "M" in names:
            M = part["M"]
            self.momentum = times(self.v[None], M)[0]
            diagonal = stored_sparse(M, n).diagonal() if M.dtype.names else M if M.ndim == 1 else np.diag(M)
        else:
            self.momentum, diagonal = self.v.copy(), np.ones(n)
        # 2. forces of functions, spring, control inputs
        self.inverse = np.divide(1.0, diagonal, out=np.zeros(n), where=diagonal > 0.0)
        for field, sign in (("fext", 1.0), ("fint", -1.0), ("fgyr", -1.0)):
            if field in names:
                self.forces.append(sign * along(part, kind, field, (n,), t, q, rest)[0])
        if "K" in names:
            self.forces.append(-times(q, part["K"])[0])
        if "u" in names:
            size = n_u(part)
            T = along(part, kind, "T", (n, size), t, q, rest)[0] if "T" in names else np.eye(n)
            u = along(part, kind, "u", (size,), t, q, rest)[0]
            self.forces.append(T @ u)


def _add_interactions(bodies, record, interactions, h):
    """Adds the forces of all interactions to the systems on which they act."""
    for name, relation, law, *sides in interactions:
        # multipliers are forces or impulses of the step, by the law
        parts = record[name].reshape(-1)
        scale = 1.0 if is_force(law, relation, "D" in parts.dtype.names) else 1.0 / h
        for part, chosen in zip(parts, elements_of(record, name, len(sides)), strict=True):
            on = [bodies[side, element] for side, element in zip(sides, chosen, strict=True)]
            q = np.concatenate([record[side].reshape(-1)["q"][element] for side, element in zip(sides, chosen, strict=True)])
            force = scale * generalised(part, relation, record["t"].reshape(1), q[None], part["lambda"].reshape(1, -1))[0]
            for body, own in zip(on, np.split(force, np.cumsum([body.v.size for body in on])[:-1]), strict=True):
                body.forces.append(own)


def _press(bodies, record, interactions, collisions, h):
    """Adds the magnitudes of contact and joint forces, whose sum is in p: a squeezed body is judged by the forces that squeeze it."""
    # 1. joints and single contacts; of a joint only rows of forces, not of moments
    in_order = list(bodies.values())
    for name, relation, _, *sides in interactions:
        parts = record[name].reshape(-1)
        for part, chosen in zip(parts, elements_of(record, name, len(sides)), strict=True):
            lam = abs(part["lambda"].reshape(-1)) / h
            if relation == "joint":
                lam = lam[np.isin(part["geometry"]["row"].reshape(-1), (POINT, DISTANCE))]
            for side, element in zip(sides, chosen, strict=True):
                bodies[side, element].press(lam.sum() if relation in ("joint", "contact_point") else 0.0)
    # 2. detected contacts
    for name, *_ in collisions:
        part = record[name]
        for side in "ab":
            for shape, lam in zip(part[side][: part["n"]], part["lambda"][: part["n"]], strict=True):
                body = part["shape_body"][shape]
                if body >= 0:
                    in_order[body].press(abs(lam[:3]).sum() / h)
