"""Types of a group of names of the package. Made from the docstrings by ``python -m tests.stubs``."""

from nsds import d1_minus_linear as d1_minus_linear
from nsds import euler_moreau as euler_moreau
from nsds import event_driven as event_driven
from nsds import generalised_alpha as generalised_alpha
from nsds import higher_order_sweeping as higher_order_sweeping
from nsds import moreau_jean as moreau_jean
from nsds import moreau_jean_combined_projection as moreau_jean_combined_projection
from nsds import moreau_jean_direct_projection as moreau_jean_direct_projection
from nsds import moreau_jean_exact as moreau_jean_exact
from nsds import rattle as rattle
from nsds import schatzman_paoli as schatzman_paoli
from nsds import zero_order_hold as zero_order_hold

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
