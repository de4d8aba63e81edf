"""Event-driven steps of rigid bodies: tables by which the engine of Lagrangian systems runs them, see
`nsds.schemes.mechanics.body_rows`.
"""

import sys

import numpy as np

from nsds.schemes.event_driven.lagrangian import cause_of, opening, start, step, with_flow  # noqa: F401
from nsds.schemes.event_driven.tables import place_flow
from nsds.schemes.lagrangian import newton
from nsds.schemes.mechanics.bodies import STATE
from nsds.schemes.mechanics.body_rows import newton_form, state_bodies
from nsds.schemes.mechanics.tables import number_blocks
from nsds.schemes.memory import Allocator
from nsds.schemes.rigid.interactions import blame  # noqa: F401
from nsds.schemes.rigid.moreau_jean import grow  # noqa: F401

EVENT_ROWS = True
_OWNER = "event_driven"


def prepare(records, mem, options, h, method):
    """Tables of the engine."""
    if options["flow"].item() == b"exact":
        raise ValueError(f"{_OWNER}: flow='exact' is for linear systems, not for rigid bodies; use flow='auto'")
    work, iwork, words = Allocator(records.size), Allocator(records.size), newton.Options(h)
    stated = state_bodies(_OWNER, records, work, iwork)
    n = stated.rigid.bodies.size
    flow = place_flow(6 * n, STATE * n, stated.layout.constraints, options["flow"].item() == b"radau", work, iwork)
    prepared = newton_form(stated, records, words, method, work, iwork)
    prepared.work[:, flow["limit"][0]] = np.inf
    flow["is_controlled"] = prepared.tables.plan["controlled"]
    number_blocks(prepared, flow, stated.d)
    return with_flow(prepared, flow, stated.rigid, options, words)._replace(stepper=sys.modules[__name__])
