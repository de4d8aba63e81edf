"""Types of a public module. Made from the docstrings by ``python -m tests.stubs``."""

from typing import Any

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
ACCELERATING: int
ACCUMULATION: int
ADVICE: dict[int, str]
AFTER_JAM: int
AFTER_MANY_EVENTS: int
AFTER_NO_MODES: int
AFTER_SHORT_STEPS: int
CAPACITY: int
CLOSED: int
CONVERGED: int
EARLY_SOURCE: int
EVENT: int
FRICTION: int
HAPPENED: dict[int, str]
IMPACT: int
IMPULSE: int
INEXACT: int
INFEASIBLE: int
JUMP: int
LEFT_BRANCH: int
MAX_ITER: int
NEWTON: int
NON_FINITE: int
NOT_COMPUTED: int
NOT_CROSSED: int
NOT_DEFINITE: int
OPENED: int
PAINLEVE: int
PAUSED: int
RAY: int
SINGULAR: int
SINGULAR_STEP: int
STALLED: int
STEP_COLLAPSED: int
SWITCHED: int
TIME_EVENT: int
TIME_STEPPED: int
TOO_MANY_EVENTS: int
UNBOUNDED: int
UNSUITED: int
VIOLATED: int

def advice(status: int) -> str: ...
def has_failed(status: int) -> Any: ...
def is_event(status: int) -> Any: ...
