"""Status codes of solvers and schemes, with advice on each."""

import numpy as np

from nsds import _checks

__all__ = [
    "ACCELERATING",
    "ACCUMULATION",
    "ADVICE",
    "AFTER_JAM",
    "AFTER_MANY_EVENTS",
    "AFTER_NO_MODES",
    "AFTER_SHORT_STEPS",
    "CAPACITY",
    "CLOSED",
    "CONVERGED",
    "EARLY_SOURCE",
    "EVENT",
    "FRICTION",
    "HAPPENED",
    "IMPACT",
    "IMPULSE",
    "INEXACT",
    "INFEASIBLE",
    "JUMP",
    "LEFT_BRANCH",
    "MAX_ITER",
    "NEWTON",
    "NON_FINITE",
    "NOT_COMPUTED",
    "NOT_CROSSED",
    "NOT_DEFINITE",
    "OPENED",
    "PAINLEVE",
    "PAUSED",
    "RAY",
    "SINGULAR",
    "SINGULAR_STEP",
    "STALLED",
    "STEP_COLLAPSED",
    "SWITCHED",
    "TIME_EVENT",
    "TIME_STEPPED",
    "TOO_MANY_EVENTS",
    "UNBOUNDED",
    "UNSUITED",
    "VIOLATED",
    "advice",
    "has_failed",
    "is_event",
]


def __dir__():
    return __all__


CONVERGED = 0
MAX_ITER = 1
STALLED = 2
RAY = 3
SINGULAR = 4
NON_FINITE = 5
UNSUITED = 6
INFEASIBLE = 7
NEWTON = 8
SINGULAR_STEP = 9
NOT_DEFINITE = 10
VIOLATED = 11
CAPACITY = 12
INEXACT = 13
UNBOUNDED = 14
STEP_COLLAPSED = 15
TOO_MANY_EVENTS = 16
PAINLEVE = 17
EARLY_SOURCE = 18
IMPACT = 19
IMPULSE = 20
ACCELERATING = 21
NOT_CROSSED = 22
LEFT_BRANCH = 23
PAUSED = 24
# Rows at events: EVENT, with bits for the events in the row after it.
JUMP, CLOSED, OPENED, FRICTION, ACCUMULATION, TIME_EVENT, SWITCHED, EVENT = 32, 64, 128, 256, 512, 1024, 2048, 4096
# Hybrid rows, in which failures have no place: TIME_STEPPED, and the reason.
AFTER_MANY_EVENTS, AFTER_SHORT_STEPS, AFTER_NO_MODES, AFTER_JAM, TIME_STEPPED = 1, 2, 4, 8, 16
NOT_COMPUTED = -2 * EVENT  # below 0, and without any of these bits

ADVICE = {
    NOT_COMPUTED: "not computed: an earlier step ended the run",
    CONVERGED: "converged",
    MAX_ITER: "iteration limit reached: raise max_iter, loosen tol or take another method",
    STALLED: "the residual no longer falls: the problem may be degenerate or have no solution; take another method",
    RAY: "ray termination: the method found no way on, though no proof that there is no solution; take another method",
    SINGULAR: "zero pivot: constraints are redundant or a diagonal entry vanishes; take another method",
    NON_FINITE: "NaN or infinity in the problem: look at its data, in a simulation at state, step size and forces",
    UNSUITED: "the method does not treat this problem, or not at this size: see nsds.solvers.methods()",
    NEWTON: "Newton's iteration of the step did not converge: take a smaller step, look at the Jacobians, or raise newton_max_iter",
    SINGULAR_STEP: "the iteration matrix of the step is singular at this state: take another step size or theta",
    NOT_DEFINITE: "the mass matrix is not positive definite at this state: look at mass(q) and at the coordinates",
    VIOLATED: "constraints are still violated after the last projection: raise max_rounds or constraint_tol, or take a smaller step",
    CAPACITY: "more contacts than the record has room for: its arrays grow and the step is taken again",
    PAUSED: "long work between two rows, which is left for a look for Ctrl-C and then goes on",
    INEXACT: "solved less well than asked: residual tells the error; raise max_iter, or take a smaller step",
    IMPULSE: "charges or fluxes would jump: a capacitor is short-circuited, or an inductor has no path left",
    ACCELERATING: "no equilibrium: something keeps accelerating; look at what is to hold it, and at friction",
    NOT_CROSSED: "no impact, or crossing of the section, that is recorded: the motion does not come there, or not in so many periods",
    LEFT_BRANCH: "joints have done work: at a dead centre, where a mechanism may go on in several ways, positions that have drifted do not "
    "tell which, nor does a step that is too coarse; take a smaller step, or nsds.rattle() or nsds.moreau_jean_combined_projection()",
    IMPACT: "a multiple impact does not end: bodies without loss are held from both sides; give some contact e below 1",
    STEP_COLLAPSED: "the step of a smooth motion became too short: forces jump (in time: say where with time_events; with the state: by a "
    "law, as nsds.dry_friction), slip turns too fast, or rtol is too small; nsds.event_driven(hybrid=True) goes on",
    TOO_MANY_EVENTS: "more events than max_events between two rows, or at one time: where functions of time jump, say when with "
    "time_events; else look at what is named, or raise accumulation; hybrid=True goes on",
    PAINLEVE: "a contact slips into itself (Painlevé): rigid bodies with this friction have no motion, or several; "
    "time stepping has one: nsds.moreau_jean, or nsds.event_driven without hybrid=False",
    UNBOUNDED: "the objective falls without end within the constraints, which was proved up to rounding",
    EARLY_SOURCE: "a source that varies reaches an output earlier than the multipliers do, by more than one derivative: state it by states",
    INFEASIBLE: "no point satisfies the inequalities, which was proved up to rounding: look for contradictory constraints",
}

HAPPENED = {
    JUMP: "impact",
    CLOSED: "a contact closes, or y is held on 0",
    OPENED: "a contact opens, or y leaves 0",
    FRICTION: "stick or slip changes",
    ACCUMULATION: "impacts, or switchings, have accumulated",
    TIME_EVENT: "a time that was given",
    SWITCHED: "a relay switches",
    TIME_STEPPED: "time stepping up to here",
    AFTER_MANY_EVENTS: "as there were too many events",
    AFTER_SHORT_STEPS: "as steps of the smooth motion became too short",
    AFTER_NO_MODES: "as no choice of what is held was found",
    AFTER_JAM: "as a contact slips into itself (Painlevé)",
}


def is_event(status):
    """Whether a status is that of a row at an event; also of arrays."""
    return (status >= EVENT) & (status < 2 * EVENT)


def has_failed(status):
    """Whether a status says that a step was not solved; also of arrays."""
    return (status != CONVERGED) & (status != INEXACT) & (status != NOT_COMPUTED) & (status < EVENT)


def advice(status):
    """One sentence on a status code, that of a row at an event, or one of the bits from JUMP on that such a row has.

    >>> advice(0)
    'converged'
    >>> advice(EVENT | JUMP), advice(JUMP)
    ('event: impact', 'event: impact')
    """
    is_code = not isinstance(status, (bool, np.bool_)) and isinstance(status, (int, np.integer))
    if is_code and (EVENT <= status < 2 * EVENT or (JUMP <= status < EVENT and status % JUMP == 0)):
        return "event: " + (", ".join(what for bit, what in HAPPENED.items() if status & bit) or "before it, or nothing happened")
    if not is_code or int(status) not in ADVICE:
        raise ValueError(f"advice: status must be a code from {min(ADVICE)} to {max(ADVICE)}, got {_checks.shortened(status)}")
    return ADVICE[int(status)]
