"""Relations of interactions, between states and y, one constructor each."""

from nsds.model.relations_first_order import first_order_linear_relation, first_order_relation, type1_relation, type2_relation
from nsds.model.relations_lagrangian import (
    compliant,
    lagrangian_linear_relation,
    lagrangian_relation,
    prescribed_velocity,
    rheonomous,
    scleronomous,
)
from nsds.model.relations_rigid import contact_point, newton_euler_relation

__all__ = [
    "compliant",
    "contact_point",
    "first_order_linear_relation",
    "first_order_relation",
    "lagrangian_linear_relation",
    "lagrangian_relation",
    "newton_euler_relation",
    "prescribed_velocity",
    "rheonomous",
    "scleronomous",
    "type1_relation",
    "type2_relation",
]


def __dir__():
    return __all__
