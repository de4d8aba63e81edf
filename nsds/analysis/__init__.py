"""Analysis of systems and motions: equilibria, periodic orbits, bifurcations, exponents, sensitivities, energies, contacts."""

from nsds import _checks

# What few programs need is imported when it is asked for.
_PLACES = {
    "basins": "nsds.analysis.basin_maps",
    "consistent": "nsds.schemes.run.consistency",
    "contact_intervals": "nsds.results.contacts",
    "continue_bifurcation": "nsds.analysis.bifurcations",
    "continue_equilibrium": "nsds.analysis.equilibrium_paths",
    "continue_orbit": "nsds.analysis.continuation",
    "energy": "nsds.results.energy",
    "equilibrium": "nsds.analysis.equilibria",
    "floquet": "nsds.analysis.orbits",
    "gradient": "nsds.analysis.gradients",
    "in_plane": "nsds.model.planar_bodies",
    "iterated_map": "nsds.analysis.maps",
    "lyapunov": "nsds.analysis.exponents",
    "one_step_problems": "nsds.schemes.run.problem_capture",
    "orbit": "nsds.analysis.orbits",
    "rays": "nsds.results.rays",
    "relative_degree": "nsds.schemes.first_order.relative_degree",
    "sensitivity": "nsds.analysis.sensitivities",
    "sweep": "nsds.analysis.sweeps",
}
__all__ = [*_PLACES]
__getattr__, __dir__ = _checks.imported_later(__name__, _PLACES)
