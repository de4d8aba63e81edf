"""Schemes of Lagrangian systems."""
