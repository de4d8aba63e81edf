"""Solvers of nonsmooth problems: rows with bounds, blocks with cones, user functions, impacts; one table of methods, one merit for each."""

from nsds.solvers.faces.box import (
    ConstrainedSolution,
    ProgramSolution,
    Solution,
    all_solutions,
    solve_avi,
    solve_lcp,
    solve_mlcp,
    solve_qp,
    solve_relay,
)
from nsds.solvers.faces.contact import (
    ContactSolution,
    GlobalContactSolution,
    solve_fc2d,
    solve_fc3d,
    solve_generic,
    solve_gfc2d,
    solve_gfc3d,
    solve_grfc3d,
    solve_rfc2d,
    solve_rfc3d,
)
from nsds.solvers.faces.impact import ImpactSolution, solve_multiple_impact, solve_poisson_impact
from nsds.solvers.faces.nonlinear import InequalitySolution, NonlinearSolution, solve_mcp, solve_ncp, solve_soclcp, solve_vi
from nsds.solvers.problems.contact_families import CONTACT_FAMILIES, generate_contacts
from nsds.solvers.problems.contact_problem import ContactProblem, read_contact_problem
from nsds.solvers.problems.contact_profiling import profile_contacts
from nsds.solvers.problems.families import FAMILIES, generate
from nsds.solvers.problems.fclib import FclibFile, FclibSolution, read_fclib, write_fclib
from nsds.solvers.problems.profiling import Problem, profile, read_problem
from nsds.solvers.results import SolverError
from nsds.solvers.table import methods, own_law, solver

__all__ = [
    "CONTACT_FAMILIES",
    "FAMILIES",
    "ConstrainedSolution",
    "ContactProblem",
    "ContactSolution",
    "FclibFile",
    "FclibSolution",
    "GlobalContactSolution",
    "ImpactSolution",
    "InequalitySolution",
    "NonlinearSolution",
    "Problem",
    "ProgramSolution",
    "Solution",
    "SolverError",
    "all_solutions",
    "generate",
    "generate_contacts",
    "methods",
    "own_law",
    "profile",
    "profile_contacts",
    "read_contact_problem",
    "read_fclib",
    "read_problem",
    "solve_avi",
    "solve_fc2d",
    "solve_fc3d",
    "solve_generic",
    "solve_gfc2d",
    "solve_gfc3d",
    "solve_grfc3d",
    "solve_lcp",
    "solve_mcp",
    "solve_mlcp",
    "solve_multiple_impact",
    "solve_ncp",
    "solve_poisson_impact",
    "solve_qp",
    "solve_relay",
    "solve_rfc2d",
    "solve_rfc3d",
    "solve_soclcp",
    "solve_vi",
    "solver",
    "write_fclib",
]


def __dir__():
    return __all__
