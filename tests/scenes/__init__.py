"""Ordinary models as a user would draw them. ``python -m tests.scenes`` runs them all and prints what came out."""

from tests.scenes import lumped, mechanisms, piles, toys
from tests.scenes.model import SCENES
from tests.scenes.runs import run

__all__ = ["SCENES", "lumped", "mechanisms", "piles", "run", "toys"]
