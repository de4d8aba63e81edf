"""Surfaces in state space stated by users, on which points of a motion are recorded."""

import inspect
from functools import cache

import numpy as np

from nsds import _checks
from nsds._jit.cache import fingerprint
from nsds._jit.mistakes import users_callback
from nsds.analysis.maps import try_once
from nsds.analysis.tangent import SURFACE


class Surface:
    """Zero set of a function ``function(t, x, p, out)``; crossing: 1 if it has to rise there, -1 if it has to fall, 0 either."""

    def __init__(self, owner, function, crossing):
        function = getattr(function, "py_func", function)
        if not inspect.isfunction(function) or len(inspect.signature(function).parameters) != 4:
            raise TypeError(
                f"{owner}: record must be 'stroboscopic', 'impact' or a function record(t, x, p, out), got {_checks.shortened(function)}"
            )
        self.owner, self.function, self.crossing = owner, function, crossing

    def check(self, t, x, p):
        """Compiles the function; refuses one that fails, or gives no number, at a state x (n,) with the varied parameters p."""
        try_once(self.owner, "record", self.function, t, x.copy(), p.copy(), np.zeros(1))
        _compiled(self.owner, self.function)

    @property
    def address(self):
        """Address of the compiled function."""
        return int(_compiled(self.owner, self.function).address)

    def __reduce__(self):
        return Surface, (self.owner, self.function, self.crossing)

    def identity(self):
        """Bytes that determine where it is crossed."""
        return repr((fingerprint(self.function, {}), self.crossing)).encode()


@cache
def _compiled(owner, function):
    about = f"{owner}: the function {function.__qualname__} does not compile as record(t, x, p, out)"
    return users_callback(about, SURFACE, function, "t, x, p, out", "t, x, p, cleared(out)")
