"""Schemes: time stepping of whole systems in compiled code; one module each, and the time loop they share."""

import nsds.schemes.event_driven  # noqa: F401 - the folder, before the name stands for the scheme
from nsds.schemes.options.d1_minus_linear import d1_minus_linear
from nsds.schemes.options.euler_moreau import euler_moreau
from nsds.schemes.options.event_driven import event_driven
from nsds.schemes.options.exact import moreau_jean_exact
from nsds.schemes.options.generalised_alpha import generalised_alpha
from nsds.schemes.options.higher_order_sweeping import higher_order_sweeping
from nsds.schemes.options.moreau_jean import moreau_jean
from nsds.schemes.options.projection import moreau_jean_combined_projection, moreau_jean_direct_projection
from nsds.schemes.options.rattle import rattle
from nsds.schemes.options.schatzman_paoli import schatzman_paoli
from nsds.schemes.options.zero_order_hold import zero_order_hold

__all__ = [
    "d1_minus_linear",
    "euler_moreau",
    "event_driven",
    "generalised_alpha",
    "higher_order_sweeping",
    "moreau_jean",
    "moreau_jean_combined_projection",
    "moreau_jean_direct_projection",
    "moreau_jean_exact",
    "rattle",
    "schatzman_paoli",
    "zero_order_hold",
]


def __dir__():
    return __all__
