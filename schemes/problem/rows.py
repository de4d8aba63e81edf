"""Rows of one-step problems of mechanical systems: constraints, on which level each is stated; coordinates of relations of all families."""

from nsds._jit import tiny
from nsds.model.layout import RANGES, table
from nsds.solvers import impact

# One row per scalar unknown of the one-step problem.
CONSTRAINT = table(
    # record: y, ydot, lam, active; gap, gap_rate: y and ydot of the contact to which it belongs
    "y", "ydot", "lam", "active", "gap", "gap_rate",
    # component: place in the contact, 0 of the normal constraint and without friction; tangents: of the contact, 0 without friction
    "component", "tangents",
    # work memory: closed: slack up to which the gap counts as closed, m; pull: change of ydot by forces in a step, m/s
    "closed", "pull",
    # level: POSITION, VELOCITY or DRIVEN; bilateral: an equation; always: active whatever the gap
    "level", "bilateral", "always",
    # work memory: base, constant part of y; h, value of a nonlinear y; rate: ydot = H v + rate; curvature: d/dt(ydot) = H a + curvature
    "base", "h", "rate", "curvature",
    # work memory: restitution e; multiple impacts: stiffness, exponent, impact_law, a place in IMPACTS; rebound and blow, see
    # `schemes.problem.impact`
    "e", "stiffness", "exponent", "impact_law", "rebound", "blow",
    # work memory: friction mu and mu_r of the contact; lower, upper: bounds of the force that the law itself has, N
    "mu", "mu_r", "lower", "upper",
    # ranges of its entries of H, B and D
    *RANGES,
)  # fmt: skip
POSITION, VELOCITY, DRIVEN = range(3)
IMPACTS = ("", *impact.LAWS)  # laws of impacts, by their number in constraints and plans


@tiny
def coordinate(r, j):
    """Place of coordinate j of a relation; its velocity is `width` behind it."""
    return r.q_first + j if j < r.n_first else r.q_second + j - r.n_first


@tiny
def width(r, j):
    """Coordinates of the body that coordinate j of a relation belongs to."""
    return r.n_first if j < r.n_first else r.n - r.n_first


@tiny
def number_of(r, j):
    """Number of coordinate j of a relation among all."""
    return r.dof_first + j if j < r.n_first else r.dof_second + j - r.n_first
