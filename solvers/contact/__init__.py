"""Solvers of contact problems with Coulomb friction."""
