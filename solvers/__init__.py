"""Solvers of one-step nonsmooth problems: one signature, one table of methods, one merit function."""

from nsds.solvers.solve import Solution, SolverError, solve_lcp
from nsds.solvers.table import methods, solver

__all__ = ["Solution", "SolverError", "methods", "solve_lcp", "solver"]
