"""User functions of nonlinear problems: compiled to code that kernels call by its address, or called in Python where numba cannot."""

import ctypes
import inspect
import types as python_types

import numpy as np

from nsds import _checks, _jit
from nsds._jit.cache import fingerprint
from nsds._jit.mistakes import FAILURES, NOT_COMPILED
from nsds.solvers.nonlinear.signature import CALLBACK

_compiled = {}
_SIGNATURE = ctypes.CFUNCTYPE(None, *[ctypes.c_size_t] * 6)  # where three vectors lie, and how long they are


class Function:
    """A user's function with an ``address``. ``error``: what it raised, where it runs in Python; then it gives NaN.

    n_values: of its result, where they are not as many as unknowns, or a matrix of these.
    """

    def __init__(self, owner, field, function, with_parameters, is_matrix, n_values=0):
        self.error, self._n_values = None, n_values
        function = getattr(function, "py_func", function)
        wanted = f"{field}({'z, p, out' if with_parameters else 'z, out'})"
        if not callable(function):
            raise TypeError(f"{owner}: {field} must be a function {wanted}, got {_checks.shortened(function)}")
        try:
            inspect.signature(function).bind(*range(3 if with_parameters else 2))
        except (TypeError, ValueError):
            raise TypeError(f"{owner}: expected a function {wanted}, got {_checks.shortened(function)}") from None
        self._function, self._with_parameters, self._is_matrix, self._about = function, with_parameters, is_matrix, f"{owner}: {wanted}"
        self._code = self._compile()
        self.address = self._code.address if self._code else ctypes.cast(self._own_callback(), ctypes.c_void_p).value

    def _compile(self):
        """Compiled code, or None for a function that numba does not compile; a function whose constants have changed is another one."""
        if not isinstance(self._function, python_types.FunctionType):
            return self._code_of()
        key = fingerprint(self._function, {}), self._with_parameters, self._is_matrix
        if key not in _compiled:
            _compiled[key] = self._code_of()
        return _compiled[key]

    def _code_of(self):
        """Callback that `nsds._jit.callback` compiles of the function, if it can."""
        out = "matrix(cleared(out), (z.size, z.size))" if self._is_matrix else "cleared(out)"
        try:
            return _jit.callback(CALLBACK, self._function, "z, p, out", f"z, p, {out}" if self._with_parameters else f"z, {out}")
        except (*NOT_COMPILED, AttributeError, ValueError):
            return None

    def _own_callback(self):
        self._callback = _SIGNATURE(self._call)
        return self._callback

    def _call(self, *words):
        """Callback for kernels: it calls the function in Python, and writes NaN after an error."""
        z, p, out = map(_vector_at, words[::2], words[1::2])
        try:
            if self.error is None:
                self.run(z.copy(), p.copy(), out)
        except Exception as error:
            self.error = error
        if self.error is not None:
            out[:] = np.nan

    def run(self, z, p, out):
        """Call the function in Python."""
        out[:] = 0.0
        result = out.reshape(z.size, z.size) if self._is_matrix else out
        returned = self._function(z, p, result) if self._with_parameters else self._function(z, result)
        if returned is not None:
            raise TypeError(f"{self._about} must write its result into out and return nothing, got {_checks.shortened(returned)}")

    def try_once(self, z, p):
        """Run the function in Python, where an index out of range is an error; refuse it where it fails."""
        try:
            self.run(z.copy(), p.copy(), np.zeros(z.size**2 if self._is_matrix else self._n_values or z.size))
        except FAILURES as error:
            raise ValueError(f"{self._about} fails at z0, with {z.size} unknowns: {error}") from None


def _vector_at(address, length):
    return np.frombuffer((ctypes.c_double * length).from_address(address)) if length else np.zeros(0)
