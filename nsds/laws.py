"""Laws of interactions, one constructor each."""

from nsds.model.laws import (
    complementarity,
    dry_friction,
    equality,
    force_law,
    fremond_impact,
    mixed_complementarity,
    multiple_impact,
    multiple_impact_friction,
    newton_impact,
    newton_impact_friction,
    newton_impact_rolling_friction,
    newton_impact_spinning_friction,
    normal_cone,
    poisson_impact,
    poisson_impact_friction,
    relay,
    spring_damper,
)

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


def __dir__():
    return __all__
