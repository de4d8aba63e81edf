"""Types of a group of names of the package. Made from the docstrings by ``python -m tests.stubs``."""

from nsds import compliant as compliant
from nsds import contact_point as contact_point
from nsds import first_order_linear_relation as first_order_linear_relation
from nsds import first_order_relation as first_order_relation
from nsds import lagrangian_linear_relation as lagrangian_linear_relation
from nsds import lagrangian_relation as lagrangian_relation
from nsds import newton_euler_relation as newton_euler_relation
from nsds import prescribed_velocity as prescribed_velocity
from nsds import rheonomous as rheonomous
from nsds import scleronomous as scleronomous
from nsds import type1_relation as type1_relation
from nsds import type2_relation as type2_relation

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
