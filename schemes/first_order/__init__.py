"""Schemes of first-order systems."""
