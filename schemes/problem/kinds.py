"""Kinds of the one-step problems of systems, and methods that solve them: for rows with bounds, or, with friction, for contacts."""

from typing import NamedTuple

from nsds.model.laws import LAWS, rows_of_contact
from nsds.model.records import model_of
from nsds.model.system_kinds import LAGRANGIAN, NEWTON_EULER, family, split
from nsds.solvers import table as solvers
from nsds.solvers.box import signature as box
from nsds.solvers.contact import signature as contact


class Asked(NamedTuple):
    """Solver options as requested, for problems of either class, of which a Lagrangian system has one."""

    inexact: float
    at_once: bool  # one row is solved where it is stated: see `nsds.schemes.problem.box.solve`
    box: box.Options
    contact: contact.Options


def kind_of(system, *, by_rows=False):
    """Kind of the one-step problems of a system, see `nsds.solvers.methods`; by_rows: of rigid bodies as parts of Lagrangian systems.

    Of Lagrangian systems rows with bounds, or the kind of the largest contact with friction.
    """
    systems = family(model_of(system))
    if systems == NEWTON_EULER:
        rolls = components_of_bodies(system) > 3
        if by_rows:
            return "lagrangian_rolling" if rolls else "lagrangian_space"
        return "rigid_rolling" if rolls else "rigid"
    d, rolls = components(system) if systems == LAGRANGIAN else (0, False)
    if d == 0:
        return "relay"
    return "lagrangian_rolling" if rolls else "lagrangian_plane" if d == 2 else "lagrangian_space"


def by_rows(choice, system):
    """(`Method`, `Asked`) of a caller's choice of solver for the rows of a Lagrangian system, or of bodies as parts of one."""
    kind = kind_of(system, by_rows=True)
    method, options = solvers.chosen(choice, kind)
    _, other = solvers.chosen(None, "lagrangian_plane" if kind == "relay" else "relay")
    return method, Asked(options.inexact, method.name == "auto", *((options, other) if kind == "relay" else (other, options)))


def components(records):
    """(components of the largest contact with friction of a record, whether one resists rolling); (0, False) without friction."""
    d, rolls = 0, False
    for name, _, law, *_ in split(model_of(records))[1]:
        if LAWS[law].blocks:
            d, rolls = max(d, rows_of_contact(law, records.dtype[name].base)), rolls or LAWS[law].treatment.rolls
    return d, rolls


def components_of_bodies(records):
    """Components of a contact of rigid bodies: 5 where some contact has rolling or spinning friction, else 3."""
    most = max([3, *(LAWS[line[2]].block(NEWTON_EULER) for line in model_of(records) if len(line) > 2 and line[2] in LAWS)])
    return 5 if most > 3 else 3
