"""Kinds of parts, and their compatibility: a new kind of system is one line here, a relation registers itself."""

from types import MappingProxyType
from typing import NamedTuple

from nsds._docstrings import with_sections
from nsds.model.fields import CONTACT_FIELDS

LAGRANGIAN, FIRST_ORDER, NEWTON_EULER = "Lagrangian", "first-order", "Newton–Euler"

RIGID_BODIES = "rigid_bodies"  # the kind whose coordinates are positions and unit quaternions
# kind of system -> (family, its state, fields that change in time)
SYSTEMS = {
    "lagrangian_linear": (LAGRANGIAN, "q", ("q", "v")),
    "lagrangian": (LAGRANGIAN, "q", ("q", "v", "u")),
    "first_order_linear": (FIRST_ORDER, "x", ("x", "r", "u")),
    "first_order": (FIRST_ORDER, "x", ("x", "r", "u")),
    RIGID_BODIES: (NEWTON_EULER, "q", ("q", "v", "p", "u", "alive")),
}


class Relation(NamedTuple):
    """Description of a relation, registered by `relation_of` at its constructor; read from `RELATIONS` everywhere else.

    families: of the systems that it joins. role: by which laws say which relations they fit. functions: those of users, with their
    arguments, the last of which receives the result; needed: required ones. parameters: names of the compiled function's parameters.
    fields: number fields of a record, each a `nsds.model.fields.Leaf` or alternatives of it, besides the functions' z.
    """

    families: tuple
    role: str
    functions: MappingProxyType = MappingProxyType({})
    needed: tuple = ()
    parameters: str = "t, x, lam, z, out"
    fields: MappingProxyType = MappingProxyType({})


AT_T = "t, z, out"
AT_Q = "t, q, lam, z, out"
# name of a constructor -> `Relation`
RELATIONS = {}
_RAISES = """TypeError, ValueError
    A function that has the wrong arguments or does not compile."""


def relation_of(*families, role, **said):
    """Decorator of a constructor of relations: registers its description under its name; the arguments are those of `Relation`."""

    def entered(constructor):
        RELATIONS[constructor.__name__] = Relation(families, role, **said)
        return with_sections(Raises=_RAISES)(constructor) if "functions" in said else constructor

    return entered


# fields of an interaction that change in time, by family
INTERACTION_STATE = {
    LAGRANGIAN: ("y", "ydot", "lambda", "active", "enabled"),
    FIRST_ORDER: ("y", "lambda", "mu"),
    NEWTON_EULER: ("y", "ydot", "lambda", "active", "angle", "enabled"),
}
CONTROL, CONTROL_STATE = "sampled_control", ("state", "t_last")
WRITABLE = ("u", "alive", "enabled")  # by controllers
NAMES = "names"  # a part without a state: linear maps from a circuit's record to its voltages and currents
COLLISIONS, COLLISIONS_STATE = "collisions", ("n", *CONTACT_FIELDS, "enabled")


def split(model):
    """(systems, interactions, controls): the lines of a model by kind."""
    systems = [line for line in model if line[1] in SYSTEMS]
    interactions = [line for line in model if line[1] in RELATIONS]
    return systems, interactions, [line for line in model if line[1] == CONTROL]


def collisions_of(model):
    """The lines of a model that are collisions."""
    return [line for line in model if line[1] == COLLISIONS]


def family(model):
    """Family of the systems of a model; `nsds.system` allows one family only."""
    return SYSTEMS[split(model)[0][0][1]][0]


def state_of(kind):
    """Fields of a part of this kind that change in time, if it has them."""
    if kind in SYSTEMS:
        return SYSTEMS[kind][2]
    if kind == COLLISIONS:
        return COLLISIONS_STATE
    if kind == NAMES:
        return ()
    return CONTROL_STATE if kind == CONTROL else INTERACTION_STATE[RELATIONS[kind].families[0]]


def wiring(model, line):
    """([(part, field)] that a controller writes, [(part, fields)] that it reads), by its line: ``name kind written,... read ...``.

    What is written is ``part``, a system's u, or ``part.field``; what is read is ``part``, a system's state, or ``part.field``.
    """
    kinds, read = {name: kind for name, kind, *_ in model}, []
    for part, _, field in (path.partition(".") for path in line[3:]):
        state = ("x",) if SYSTEMS.get(kinds.get(part), ("",))[0] == FIRST_ORDER else ("q", "v")
        read.append((part, (field,) if field else state))
    written = (path.partition(".") for path in line[2].split(","))
    return [(part, field or "u") for part, _, field in written], read


def systems_of(model, name):
    """Names of the systems that a part is, acts on, reads or writes."""
    line = next(line for line in model if line[0] == name)
    if line[1] != CONTROL:
        return [name] if line[1] in SYSTEMS else list(line[3:])
    written, read = wiring(model, line)
    return [system for part, _ in written + read if part != name for system in systems_of(model, part)]
