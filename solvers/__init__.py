"""Solvers of one-step nonsmooth problems: one signature, one table of methods, one merit function."""

from nsds.solvers.families import FAMILIES, generate
from nsds.solvers.profiling import Problem, profile, read_problem
from nsds.solvers.solve import (
    ConstrainedSolution,
    Solution,
    SolverError,
    all_solutions,
    solve_avi,
    solve_lcp,
    solve_mlcp,
    solve_qp,
    solve_relay,
)
from nsds.solvers.table import methods, solver

__all__ = [
    "FAMILIES",
    "ConstrainedSolution",
    "Problem",
    "Solution",
    "SolverError",
    "all_solutions",
    "generate",
    "methods",
    "profile",
    "read_problem",
    "solve_avi",
    "solve_lcp",
    "solve_mlcp",
    "solve_qp",
    "solve_relay",
    "solver",
]
