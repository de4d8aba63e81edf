"""Rows of one-step problems of mechanical systems: the table of constraints, and on which level each is stated."""

from nsds.model.layout import RANGES, table

# One row per scalar unknown of the one-step problem. In the record: y, ydot, lam, active; gap and gap_rate, the y and ydot of the contact
# it belongs to. component: its place in the contact, 0 of the normal constraint and of one without friction; tangents: of the contact, 0
# without friction. In the work memory: base, the constant part of y; h, the value of a nonlinear y; rate, what ydot is besides H v;
# curvature, what its derivative is besides H a; e; of multiple impacts stiffness and exponent; of laws of impacts rebound and blow, see
# `schemes.problem.impact`; mu and mu_r of the contact; lower and upper, bounds of the force, of laws that have their own; closed, up
# to which the gap counts as closed; pull, what the forces add to ydot in a step. impact_law: a place in IMPACTS.
CONSTRAINT = table(
    "y", "ydot", "lam", "active", "gap", "gap_rate", "component", "tangents", "closed", "pull", "level", "bilateral", "always", "base", "h",
    "rate", "curvature", "e", "stiffness", "exponent", "impact_law", "rebound", "blow", "mu", "mu_r", "lower", "upper", *RANGES,
)  # fmt: skip
POSITION, VELOCITY, DRIVEN = range(3)
IMPACTS = ("", "multiple_impact", "poisson")  # forms of laws of impacts, by the place that constraints and plans have
