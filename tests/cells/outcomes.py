"""What becomes of a cell under a scheme: it holds, is refused, or goes wrong."""

import re

import nsds
from nsds.model.system_kinds import FIRST_ORDER
from nsds.schemes.table import DEFAULTS, SCHEMES
from nsds.status import is_event
from tests.cells.laws import END, STEP

WRONG = "wrong: "


def schemes_of(family):
    """Names of the schemes of a family, the default first."""
    names = sorted(name for name, scheme in SCHEMES.items() if family in scheme.modules)
    return sorted(names, key=lambda name: name != DEFAULTS[family])


def at_steps(scheme, family, rows):
    """Rows of a run at its steps, with the impulse of a step as lambda: what a run that stops at events has besides is left out."""
    if scheme != "event_driven":
        return rows
    rows = rows[~is_event(rows["status"])]
    if "n" not in rows["law"].dtype.names:
        rows["law"]["lambda"] *= 1.0 if family == FIRST_ORDER else STEP
    return rows


def outcome(cell, family, scheme, options):
    """None where a run of the cell does what it must, else the message that refuses it, or what goes wrong, which begins with `WRONG`."""
    try:
        rows = nsds.simulate(cell.make(), t_end=END, h=STEP, scheme=getattr(nsds, scheme)(**options), progress=False)
    except ValueError as error:
        return re.sub(r" 'law'", "", str(error))
    except nsds.SimulationError as error:
        return WRONG + str(error)
    rows = at_steps(scheme, family, rows)
    try:
        assert (rows["status"] == 0).all(), "steps are not solved"
        cell.require(scheme, rows)
    except AssertionError as error:
        return WRONG + " ".join(str(error).split())
    return None
