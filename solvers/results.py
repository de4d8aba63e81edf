"""Common part of all results of solvers: the status as text, success, advice by class of problem, the policy on failure."""

import warnings

import numpy as np

from nsds import _checks
from nsds.status import ADVICE, CONVERGED, INFEASIBLE, MAX_ITER, NON_FINITE, RAY, SINGULAR, STALLED, UNBOUNDED, UNSUITED

POLICIES = ("raise", "warn", "continue")

# Advice by class of problem: status: (sentence, methods to try). The method that failed is not proposed again.
_ADVICE = {
    MAX_ITER: ("iteration limit reached: raise max_iter, loosen tol, or take another method", ()),
    STALLED: ("the residual no longer falls: the problem may be degenerate or have no solution", ("proximal", "lemke")),
    RAY: ("the method found no way on, which does not prove that there is no solution", ("enumerate", "newton_fb")),
    SINGULAR: ("zero pivot: constraints are redundant or a diagonal entry vanishes", ("proximal", "lemke")),
    NON_FINITE: ("numbers grew beyond what floating point holds: look at the size of the matrix, the vector and the bounds", ()),
    UNSUITED: ("the method does not treat this problem: see nsds.solvers.methods()", ()),
    INFEASIBLE: ("no z within its bounds gives w the signs that are asked for, which was proved up to rounding", ()),
}
BOX = _ADVICE
POLYHEDRON = _ADVICE | {
    INFEASIBLE: ("no z and multipliers satisfy the inequalities and the equations, which was proved up to rounding", ()),
    RAY: ("the method found no way on, which does not prove that there is no solution", ("newton_fb", "interior_point")),
    SINGULAR: ("zero pivot: rows are redundant or leave z undetermined", ("lemke", "interior_point")),
    STALLED: ("the residual no longer falls: the problem may be degenerate or have no solution", ("lemke", "interior_point")),
}
PROGRAM = POLYHEDRON | {
    INFEASIBLE: ("no point satisfies the constraints, which was proved up to rounding", ()),
    UNBOUNDED: ("the objective falls without end within the constraints, which was proved up to rounding", ()),
}
_CONTACT = _ADVICE | {
    UNSUITED: ("the method does not treat contacts of this dimension, or as many: see nsds.solvers.methods()", ()),
    INFEASIBLE: ("no contact forces within the cones give velocities that the law allows, which was proved up to rounding", ()),
}
PLANE = _CONTACT | {
    RAY: ("the method found no way on, which does not prove that there is no solution", ("proximal", "enumerate")),
}
SPACE = _CONTACT | {
    STALLED: ("the residual no longer falls: the problem may be redundant or have no solution", ("proximal", "interior_point")),
    RAY: ("the method found no way on, which does not prove that there is no solution", ("proximal", "newton_ac")),
    SINGULAR: ("zero pivot: contacts are redundant or a diagonal entry vanishes", ("proximal", "admm")),
}


class SolverError(RuntimeError):
    """A problem that was not solved; ``solution`` is what the method ended with."""

    def __init__(self, solution):
        super().__init__(f"{solution.method}: {solution.message} (residual {solution.residual:.3g}, {solution.n_iter} iterations)")
        self.solution = solution

    def __reduce__(self):
        return SolverError, (self.solution,)


def readable(advice):
    """Class decorator: a result gets ``success``, ``message`` and a ``repr``; advice (solution) gives its table of sentences."""

    def decorate(cls):
        cls.success = property(lambda self: self.status == CONVERGED, doc="True where the problem was solved.")
        cls.message = property(lambda self: _message(advice(self), self), doc="One sentence on the status, with what to do about it.")
        cls.__repr__ = _text
        return cls

    return decorate


def _message(table, solution):
    sentence, others = table.get(solution.status) or (ADVICE[solution.status], ())
    others = [other for other in others if other not in solution.method]
    return sentence + (f"; try {' or '.join(others)}" if others else "")


def _text(solution):
    """Status as text, method and residual in one line, then the arrays, shortened where they are long."""
    head = f"{type(solution).__name__}: {solution.message}"
    head += f"\n  method {solution.method}, {solution.n_iter} iterations, residual {solution.residual:.3g}"
    arrays = [(name, value) for name, value in zip(solution._fields, solution, strict=True) if isinstance(value, np.ndarray)]
    width = max((len(name) for name, _ in arrays), default=0)
    for name, value in arrays:
        shown = np.array2string(value, threshold=12, edgeitems=4, precision=8, max_line_width=120, prefix=" " * (width + 3))
        head += f"\n  {name:<{width}} {shown}"
    return head


def check_policy(owner, on_failure):
    """Refuse an unknown word before anything is computed."""
    if not isinstance(on_failure, str) or on_failure not in POLICIES:
        raise ValueError(f"{owner}: on_failure must be 'raise', 'warn' or 'continue', got {_checks.shortened(on_failure)}")


def judged(solution, on_failure):
    """The solution, its SolverError, or a warning."""
    if solution.status == CONVERGED:
        return solution
    if on_failure == "raise":
        raise SolverError(solution)
    if on_failure == "warn":
        warnings.warn(str(SolverError(solution)), RuntimeWarning, stacklevel=3)
    return solution
