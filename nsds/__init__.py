"""Nonsmooth dynamical systems: one record in, one trajectory out.

Conventions, everywhere:

``y``
    Output of an interaction, the gap of a contact: ``y >= 0`` is allowed, ``y < 0`` is penetration.
``ydot``
    Its rate, ``H v``, plus ``D lambda`` where there is compliance.
``lambda``
    Multiplier dual to y, never attractive for a contact. Under Moreau–Jean it is the impulse of the step that ends at t (N s), not a
    force.
``H``
    ``ydot = H v`` and, with its transpose, the generalised impulse ``p = H^T lambda``; one row per scalar constraint. Between two parts:
    the columns of the first, then of the second.
``W``
    Delassus matrix ``H M_hat^-1 H^T``; ``M_hat`` is the iteration matrix of the scheme.
local frames
    The normal component comes first.
"""

from nsds import examples, plotting, solvers
from nsds.assembly import system
from nsds.energy import energy, report
from nsds.interactions import interaction
from nsds.laws import complementarity, equality, newton_impact
from nsds.relations import lagrangian_linear_relation
from nsds.results import SimulationError, SimulationInterrupted, restart
from nsds.schemes.moreau_jean import moreau_jean
from nsds.schemes.simulation import simulate, step
from nsds.status import advice
from nsds.systems import lagrangian_linear

__version__ = "0.1.0"

__all__ = [
    "SimulationError",
    "SimulationInterrupted",
    "advice",
    "complementarity",
    "energy",
    "equality",
    "examples",
    "interaction",
    "lagrangian_linear",
    "lagrangian_linear_relation",
    "moreau_jean",
    "newton_impact",
    "plotting",
    "report",
    "restart",
    "simulate",
    "solvers",
    "step",
    "system",
]
