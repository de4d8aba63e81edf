"""Ordinary models as a user would draw them. ``python -m tests.scenes`` runs them all and prints what came out."""

from tests.scenes import mechanisms, piles
from tests.scenes.model import SCENES
from tests.scenes.runs import run

__all__ = ["SCENES", "mechanisms", "piles", "run"]
