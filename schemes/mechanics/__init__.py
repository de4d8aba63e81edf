"""Mechanics of both families: rigid bodies as parts of Lagrangian systems, and the schemes that are stated so."""
