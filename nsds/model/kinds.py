"""What kinds of parts there are, and which go together: a new kind of system or relation is one line here."""

from types import MappingProxyType
from typing import NamedTuple

LAGRANGIAN, FIRST_ORDER, NEWTON_EULER = "Lagrangian", "first-order", "Newton–Euler"

# kind of system -> (family, its state, what of it changes in time)
SYSTEMS = {
    "lagrangian_linear": (LAGRANGIAN, "q", ("q", "v")),
    "lagrangian": (LAGRANGIAN, "q", ("q", "v", "u")),
    "first_order_linear": (FIRST_ORDER, "x", ("x", "r", "u")),
    "first_order": (FIRST_ORDER, "x", ("x", "r", "u")),
    "rigid_bodies": (NEWTON_EULER, "q", ("q", "v", "p")),
}


class Relation(NamedTuple):
    """What is said of a relation: a new one is a row of `RELATIONS`, a constructor, and its place in the tables of its families.

    families: of the systems that it joins. role: by which laws say what they go with. functions: those of users, with their arguments, the
    last of which takes the result; needed: those without which there is none. parameters: names of the compiled function's parameters.
    """

    families: tuple
    role: str
    functions: MappingProxyType = MappingProxyType({})
    needed: tuple = ()
    parameters: str = "t, x, lam, z, out"


AT_T = "t, z, out"
_AT_Q = "t, q, lam, z, out"
_OF_X = "t, x, lam, z, out"
RELATIONS = {
    "lagrangian_linear_relation": Relation((LAGRANGIAN,), "gap"),
    "scleronomous": Relation((LAGRANGIAN,), "gap", dict.fromkeys(("h", "H"), "q, z, out"), ("h",), _AT_Q),
    "rheonomous": Relation((LAGRANGIAN,), "gap", dict.fromkeys(("h", "H", "h_t"), "t, q, z, out"), ("h",), _AT_Q),
    "compliant": Relation((LAGRANGIAN,), "gap", dict.fromkeys(("h", "H", "D"), "q, lam, z, out"), ("h",), _AT_Q),
    "lagrangian_relation": Relation((LAGRANGIAN,), "position", dict.fromkeys(("h", "g", "H", "D", "B"), _AT_Q), ("h", "g"), _AT_Q),
    "prescribed_velocity": Relation((LAGRANGIAN, NEWTON_EULER), "drive", {"velocity": AT_T}),
    "newton_euler_relation": Relation((NEWTON_EULER,), "joint", dict.fromkeys(("h", "jac", "h_t"), "t, q, z, out"), ("h",), _AT_Q),
    "contact_point": Relation((NEWTON_EULER,), "contact", {"gap": "t, q, z, out"}, ("gap",), _AT_Q),
    "joint": Relation((NEWTON_EULER,), "joint"),
    "first_order_linear_relation": Relation((FIRST_ORDER,), "output", dict.fromkeys(("C", "B", "D", "e", "F"), AT_T)),
    "type1_relation": Relation(
        (FIRST_ORDER,), "output", dict.fromkeys(("h", "C"), "t, x, z, out") | dict.fromkeys(("g", "B"), "t, lam, z, out"), ("h", "g")
    ),
    "type2_relation": Relation(
        (FIRST_ORDER,), "output", dict.fromkeys(("h", "C", "D"), _OF_X) | dict.fromkeys(("g", "B"), "t, lam, z, out"), ("h", "g")
    ),
    "first_order_relation": Relation((FIRST_ORDER,), "output", dict.fromkeys(("h", "g", "C", "D", "K", "B"), _OF_X), ("h", "g")),
}
# what changes in time of an interaction, by family
INTERACTION_STATE = {
    LAGRANGIAN: ("y", "ydot", "lambda", "active"),
    FIRST_ORDER: ("y", "lambda", "mu"),
    NEWTON_EULER: ("y", "ydot", "lambda", "active", "angle"),
}
CONTROL, CONTROL_STATE = "sampled_control", ("state", "t_last")
COLLISIONS, COLLISIONS_STATE = "collisions", ("n", "a", "b", "feature", "normal", "point", "y", "lambda")


def split(model):
    """(systems, interactions, controls): the lines of a model by what they are."""
    systems = [line for line in model if line[1] in SYSTEMS]
    interactions = [line for line in model if line[1] in RELATIONS]
    return systems, interactions, [line for line in model if line[1] == CONTROL]


def collisions_of(model):
    """The lines of a model that are collisions: contacts which are detected while the simulation runs."""
    return [line for line in model if line[1] == COLLISIONS]


def family(model):
    """Family of the systems of a model; `nsds.system` lets no two families into one."""
    return SYSTEMS[split(model)[0][0][1]][0]


def state_of(kind):
    """Fields of a part of this kind that change in time, where it has them."""
    if kind in SYSTEMS:
        return SYSTEMS[kind][2]
    if kind == COLLISIONS:
        return COLLISIONS_STATE
    return CONTROL_STATE if kind == CONTROL else INTERACTION_STATE[RELATIONS[kind].families[0]]


def read_by_controllers(kind):
    """Fields of a system that a controller reads, one behind the other."""
    return ("x",) if SYSTEMS[kind][0] == FIRST_ORDER else ("q", "v")
