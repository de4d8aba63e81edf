"""Parts that the faces of all classes of problems share: the request, the choice of a method, its name in a result."""

from functools import partial
from typing import NamedTuple

from nsds import _checks
from nsds.solvers import results, table


class Request(NamedTuple):
    """Arguments of a ``solve_`` function beside the problem; owner: its name, which begins errors; kind: as in `nsds.solvers.methods`."""

    owner: str
    kind: str
    method: object
    tol: float
    max_iter: int | None
    options: dict
    guess: object
    on_failure: str

    def choice(self):
        """(`Method`, options for kernels); errors where these, or the policy on failure, are not valid."""
        owner, kind, method, tol, max_iter, options, _, on_failure = self
        results.check_policy(owner, on_failure)
        return table.asked(owner, kind, method, tol, max_iter, options)

    def first_guess(self, field, shape):
        """The first guess, of this shape but with any numbers; 0 where none is given."""
        return 0.0 if self.guess is None else _checks.floats(self.owner, field, self.guess, shape=shape)


requested = partial(tuple.__new__, Request)  # of a tuple of all fields, in a third of the time: the rest of a small problem takes 8 us


def name_of(method, order, place):
    """Name of a method in a result; of "auto" also that of the method that it ended with, by its place in the order."""
    return f"auto: {order[int(place)]}" if method.name == "auto" else method.name
