"""How scenes are drawn: bodies with shapes, joints and loads by name; and the table that they enter."""

import numpy as np

import nsds
from nsds.model import shapes
from tests.scenes.runs import Scene

G = 9.81
ALL = (1e-2, 1e-3, 1e-4)
FINE = (1e-3, 1e-4)
SCENES = {}


def scene(t_end, steps=ALL, short=None, rest=None, motors=False, **settings):
    """Enter a function that returns (record, facts) into the table, under its name; or several, for ``(name, arguments)`` in variants."""

    def enter(build):
        SCENES[build.__name__] = Scene(build.__name__, build, t_end, steps, t_end if short is None else short, rest, settings, motors)
        return build

    return enter


def variant(name, of, **arguments):
    """Enter a scene once more with other arguments; those named as fields of a `Scene` are its own."""
    own = {key: arguments.pop(key) for key in list(arguments) if key in Scene._fields}
    base = SCENES[of]
    SCENES[name] = base._replace(name=name, build=lambda: base.build(**arguments), **own)


def turn(axis, angle):
    """Quaternion of a turn by an angle (rad) about an axis."""
    axis = np.asarray(axis, dtype=float)
    return np.r_[np.cos(angle / 2), np.sin(angle / 2) * axis / np.linalg.norm(axis)]


def times(p, q):
    """Product of two quaternions: first q, then p."""
    return np.r_[p[0] * q[0] - p[1:] @ q[1:], p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])]


class Model:
    """Rigid bodies under their weight, drawn one by one; ``record()`` makes the system."""

    def __init__(self, mu=0.3, e=0.0, ground=True, world=(), g=G, law=None, pairs=None, margin=0.0, capacity=None):
        self.parts, self.shapes, self.g = {}, {}, g
        self.world = ([shapes.plane()] if ground else []) + list(world)
        self.law = nsds.newton_impact_friction(e_n=e, mu=mu) if law is None else law
        self.options = {"pairs": pairs, "margin": margin, "capacity": capacity}

    def body(self, name, shape, at, mass=1.0, turned=(1, 0, 0, 0), v=(0, 0, 0, 0, 0, 0), inertia=None, collides=True, **forces):
        """A body; shape: one, or several whose inertia is then given."""
        shape = list(shape) if isinstance(shape, (list, tuple)) else [shape]
        if inertia is None:
            inertia = shapes.inertia(shape[0], 1.0 if np.isinf(mass) else mass)
        if not np.isinf(mass):
            forces.setdefault("fext", [0, 0, -mass * self.g])
        self.parts[name] = nsds.rigid_bodies(mass, inertia, q=np.r_[at, turned], v=v, **forces)
        if collides:
            self.shapes[name] = shape
        return name

    def bodies(self, name, shape, q, mass=1.0, v=None, fext=None):
        """An array of equal bodies at q (n, 7) or, upright, (n, 3)."""
        q = np.asarray(q, dtype=float)
        if q.shape[1] == 3:
            q = np.hstack([q, np.tile([1.0, 0, 0, 0], (len(q), 1))])
        v = np.zeros((len(q), 6)) if v is None else v
        mass = np.asarray(mass, dtype=float)
        unit = shapes.inertia(shape, 1.0)
        inertia = mass[..., None, None] * unit if mass.ndim else mass * unit
        weight = np.stack([np.zeros(len(q)), np.zeros(len(q)), np.broadcast_to(-mass * self.g, len(q))], axis=1) if fext is None else fext
        self.parts[name] = nsds.rigid_bodies(mass, inertia, q=q, v=v, fext=weight)
        self.shapes[name] = [shape]
        return name

    def join(self, name, relation, on, law=None):
        """A joint or another relation, under equality or a law of its own."""
        self.parts[name] = nsds.interaction(relation, nsds.equality() if law is None else law, on=on)

    def record(self):
        """The system."""
        parts = dict(self.parts)
        if self.shapes:
            parts["contacts"] = nsds.collisions(self.shapes, self.law, world=self.world, **self.options)
        return nsds.system(**parts)


def heights(rows, name):
    return rows[name]["q"][..., 2]


def tilt(rows, name):
    """Angle between a body's own z axis and the vertical, at each row (rad)."""
    q = rows[name]["q"]
    return 2 * np.arcsin(np.minimum(np.hypot(q[..., 4], q[..., 5]), 1.0))


def turned_by(rows, name):
    """Angle by which a body has turned since the start, at each row (rad)."""
    p = rows[name]["q"][..., 3:]
    s, v = p[..., :1], p[..., 1:]
    about = p[0, ..., :1] * v - s * p[0, ..., 1:] + np.cross(v, p[0, ..., 1:])  # vector part of p times the conjugate of that at the start
    return 2 * np.arcsin(np.minimum(np.linalg.norm(about, axis=-1), 1.0))


def close(value, wanted, tolerance):
    return bool(np.all(abs(np.asarray(value) - wanted) <= tolerance))


def violation(rows, name):
    """How far the equations of a joint are from holding, at worst."""
    return float(abs(rows[name]["y"]).max())


def pressing(rows):
    """Number of contacts that press, at each row."""
    lam = rows["contacts"]["lambda"]
    return (lam[..., 0] > 0).sum(axis=-1)


def depth(rows):
    """Deepest penetration at each row."""
    return np.maximum(-rows["contacts"]["y"], 0).max(axis=-1)
