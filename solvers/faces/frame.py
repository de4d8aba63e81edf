"""Parts that the faces of all classes of problems share: the request, the choice of a method, its name in a result."""

from typing import NamedTuple

from nsds import _checks
from nsds.solvers import results, table


class Request(NamedTuple):
    """Arguments of a ``solve_`` function beside the problem; kind: as in `nsds.solvers.methods`; caller: where the name is another."""

    kind: str
    method: object
    tol: float
    max_iter: int | None
    guess: object
    on_failure: str
    options: dict
    caller: str = ""

    @property
    def owner(self):
        """Name of the function, which begins errors."""
        return self.caller or f"solve_{self.kind}"

    def choice(self):
        """(`Method`, options for kernels); errors where these, or the policy on failure, are not valid."""
        results.check_policy(self.owner, self.on_failure)
        return table.asked(self.owner, self.kind, self.method, self.tol, self.max_iter, self.options)

    def first_guess(self, field, shape):
        """The first guess, of this shape but with any numbers; 0 where none is given."""
        return 0.0 if self.guess is None else _checks.floats(self.owner, field, self.guess, shape=shape)


def name_of(method, order, place):
    """Name of a method in a result; of "auto" also of the method that it ended with, by the place in its order."""
    return f"auto: {order[int(place)]}" if method.name == "auto" else method.name
