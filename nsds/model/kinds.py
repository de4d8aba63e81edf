"""What kinds of parts there are, and which go together: a new kind of system or relation is one line here."""

LAGRANGIAN, FIRST_ORDER, NEWTON_EULER = "Lagrangian", "first-order", "Newton–Euler"

# kind of system -> (family, its state, what of it changes in time)
SYSTEMS = {
    "lagrangian_linear": (LAGRANGIAN, "q", ("q", "v")),
    "lagrangian": (LAGRANGIAN, "q", ("q", "v", "u")),
    "first_order_linear": (FIRST_ORDER, "x", ("x", "r", "u")),
    "first_order": (FIRST_ORDER, "x", ("x", "r", "u")),
    "rigid_bodies": (NEWTON_EULER, "q", ("q", "v", "p")),
}
# kind of relation -> families of the systems that it joins
RELATIONS = {
    "lagrangian_linear_relation": (LAGRANGIAN,),
    "scleronomous": (LAGRANGIAN,),
    "rheonomous": (LAGRANGIAN,),
    "compliant": (LAGRANGIAN,),
    "lagrangian_relation": (LAGRANGIAN,),
    "prescribed_velocity": (LAGRANGIAN, NEWTON_EULER),
    "newton_euler_relation": (NEWTON_EULER,),
    "contact_point": (NEWTON_EULER,),
    "joint": (NEWTON_EULER,),
    "first_order_linear_relation": (FIRST_ORDER,),
    "type1_relation": (FIRST_ORDER,),
    "type2_relation": (FIRST_ORDER,),
    "first_order_relation": (FIRST_ORDER,),
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
    return CONTROL_STATE if kind == CONTROL else INTERACTION_STATE[RELATIONS[kind][0]]


def read_by_controllers(kind):
    """Fields of a system that a controller reads, one behind the other."""
    return ("x",) if SYSTEMS[kind][0] == FIRST_ORDER else ("q", "v")
