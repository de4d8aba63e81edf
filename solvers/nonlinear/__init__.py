"""Complementarity problems and variational inequalities of user functions: one signature, one residual, a module a family of methods."""
