"""Types of a group of names of the package. Made from the docstrings by ``python -m tests.stubs``."""

from nsds import basins as basins
from nsds import consistent as consistent
from nsds import contact_intervals as contact_intervals
from nsds import continue_bifurcation as continue_bifurcation
from nsds import continue_equilibrium as continue_equilibrium
from nsds import continue_orbit as continue_orbit
from nsds import energy as energy
from nsds import equilibrium as equilibrium
from nsds import floquet as floquet
from nsds import gradient as gradient
from nsds import in_plane as in_plane
from nsds import iterated_map as iterated_map
from nsds import lyapunov as lyapunov
from nsds import one_step_problems as one_step_problems
from nsds import orbit as orbit
from nsds import rays as rays
from nsds import relative_degree as relative_degree
from nsds import sensitivity as sensitivity
from nsds import sweep as sweep

__all__ = [
    "basins",
    "consistent",
    "contact_intervals",
    "continue_bifurcation",
    "continue_equilibrium",
    "continue_orbit",
    "energy",
    "equilibrium",
    "floquet",
    "gradient",
    "in_plane",
    "iterated_map",
    "lyapunov",
    "one_step_problems",
    "orbit",
    "rays",
    "relative_degree",
    "sensitivity",
    "sweep",
]
