"""Schemes of rigid bodies."""
