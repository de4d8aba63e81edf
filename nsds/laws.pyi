"""Types of a group of names of the package. Made from the docstrings by ``python -m tests.stubs``."""

from nsds import complementarity as complementarity
from nsds import dry_friction as dry_friction
from nsds import equality as equality
from nsds import force_law as force_law
from nsds import fremond_impact as fremond_impact
from nsds import mixed_complementarity as mixed_complementarity
from nsds import multiple_impact as multiple_impact
from nsds import multiple_impact_friction as multiple_impact_friction
from nsds import newton_impact as newton_impact
from nsds import newton_impact_friction as newton_impact_friction
from nsds import newton_impact_rolling_friction as newton_impact_rolling_friction
from nsds import newton_impact_spinning_friction as newton_impact_spinning_friction
from nsds import normal_cone as normal_cone
from nsds import poisson_impact as poisson_impact
from nsds import poisson_impact_friction as poisson_impact_friction
from nsds import relay as relay
from nsds import spring_damper as spring_damper

__all__ = [
    "complementarity",
    "dry_friction",
    "equality",
    "force_law",
    "fremond_impact",
    "mixed_complementarity",
    "multiple_impact",
    "multiple_impact_friction",
    "newton_impact",
    "newton_impact_friction",
    "newton_impact_rolling_friction",
    "newton_impact_spinning_friction",
    "normal_cone",
    "poisson_impact",
    "poisson_impact_friction",
    "relay",
    "spring_damper",
]
