"""What solves the one-step problems of Lagrangian systems: a method for rows with bounds, or, where there is friction, one for contacts."""

from typing import NamedTuple

from nsds.model.kinds import NEWTON_EULER, family
from nsds.model.records import model_of
from nsds.schemes.lagrangian.tables import components
from nsds.schemes.rigid import tables as newton_euler_tables
from nsds.solvers import table as solvers
from nsds.solvers.box import signature as box
from nsds.solvers.contact import signature as contact


class Asked(NamedTuple):
    """What was asked of the solver, for problems of either class, of which a system has one."""

    inexact: float
    at_once: bool  # one row is solved where it is stated: see `nsds.schemes.problem.box.solve`
    box: box.Options
    contact: contact.Options


def kind_of(system):
    """Kind of the one-step problems of a Lagrangian system: rows with bounds, or that of its largest contact with friction.

    Of rigid bodies, where a scheme makes rows of their problems: always that of contacts in space.
    """
    if family(model_of(system)) == NEWTON_EULER:
        return "lagrangian_space" if newton_euler_tables.components(system) == 3 else "lagrangian_rolling"
    d, rolls = components(system)
    if d == 0:
        return "relay"
    return "lagrangian_rolling" if rolls else "lagrangian_plane" if d == 2 else "lagrangian_space"


def solver_of(choice, system):
    """(`Method`, `Asked`) of what a caller passed as solver for a Lagrangian system."""
    kind = kind_of(system)
    method, options = solvers.chosen(choice, kind)
    _, other = solvers.chosen(None, "lagrangian_plane" if kind == "relay" else "relay")
    return method, Asked(options.inexact, method.name == "auto", *((options, other) if kind == "relay" else (other, options)))
