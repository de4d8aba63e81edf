"""User functions: compiled once to callbacks, known to records by name, called by kernels at their address.

All callbacks have one signature, ``(t, x, lam, z, out)``, whatever arguments the user's function takes: kernels call them in one way.
"""

import importlib
import inspect
import types as python_types

import numpy as np
from numba import float64, types
from numba.core.errors import NumbaError

from nsds import _jit
from nsds._cache import fingerprint

_vector = float64[::1]
_CALLBACK = types.void(float64, _vector, _vector, _vector, _vector)

call_function = _jit.caller(_CALLBACK)

_AT_T = "t, z, out"
_RELATION = "t, x, lam, z, out"
_MECHANICAL = "t, q, v, z, out"
_AT_Q = "t, q, lam, z, out"
# kind of part -> its functions -> their arguments; the last one takes the result
ARGUMENTS = {
    "lagrangian_linear": {"fext": _AT_T},
    "lagrangian": {"mass": "q, z, out", "fgyr": "q, v, z, out", "fext": _AT_T, "T": "q, z, out"}
    | dict.fromkeys(("fint", "jac_q", "jac_v", "u"), _MECHANICAL),
    "first_order_linear": dict.fromkeys(("A", "b", "T", "u"), _AT_T),
    "first_order": dict.fromkeys(("f", "jac_f", "T", "u"), "t, x, z, out"),
    "first_order_linear_relation": dict.fromkeys(("C", "B", "D", "e", "F"), _AT_T),
    "type1_relation": dict.fromkeys(("h", "C"), "t, x, z, out") | dict.fromkeys(("g", "B"), "t, lam, z, out"),
    "type2_relation": dict.fromkeys(("h", "C", "D"), _RELATION) | dict.fromkeys(("g", "B"), "t, lam, z, out"),
    "first_order_relation": dict.fromkeys(("h", "g", "C", "D", "K", "B"), _RELATION),
    "scleronomous": dict.fromkeys(("h", "H"), "q, z, out"),
    "rheonomous": dict.fromkeys(("h", "H", "h_t"), "t, q, z, out"),
    "compliant": dict.fromkeys(("h", "H", "D"), "q, lam, z, out"),
    "lagrangian_relation": dict.fromkeys(("h", "g", "H", "D", "B"), _AT_Q),
    "prescribed_velocity": {"velocity": _AT_T},
    "rigid_bodies": dict.fromkeys(("fext", "mext"), _AT_T) | dict.fromkeys(("fint", "mint", "jac_q", "jac_v"), _MECHANICAL),
    "newton_euler_relation": dict.fromkeys(("h", "jac", "h_t"), "t, q, z, out"),
    "contact_point": {"gap": "t, q, z, out"},
    "sampled_control": {"control": "t, x, state, z, u"},
}
# names of a callback's parameters, where they are not (t, x, lam, z, out)
_ALL = {
    "sampled_control": "t, x, state, z, u",
    **dict.fromkeys(("lagrangian", "rigid_bodies"), _MECHANICAL),
    **dict.fromkeys(("scleronomous", "rheonomous", "compliant", "lagrangian_relation", "newton_euler_relation", "contact_point"), _AT_Q),
}
# shape of the results that are matrices
_SHAPES = {
    "A": "x.size, x.size", "jac_f": "x.size, x.size", "K": "x.size, x.size", "T": "x.size, out.size // x.size",
    "C": "lam.size, x.size", "B": "x.size, lam.size", "D": "lam.size, lam.size", "F": "lam.size, out.size // lam.size",
    "mass": "x.size, x.size", "jac_q": "out.size // x.size, x.size", "jac_v": "lam.size, lam.size",
    "jac": "lam.size, x.size", "H": "lam.size, x.size",
}  # fmt: skip

CENTRAL_STEP = 2.0**-17  # of a central difference, relative to 1 or the variable

_compiled = {}


@_jit.kernel
def evaluate_at(address, t, x, lam, z, out):
    """Rows ``out[k]`` of what the function that lives at ``address`` gives at ``t[k]``, ``x[k]`` and ``lam[k]``."""
    for k in range(t.size):
        call_function(address, (t[k], x[k], lam[k], z, out[k]))


def is_finite_at(address, t, x, lam, z, size):
    """Whether a function gives numbers at arguments that are numbers; True at others, which are not its fault."""
    out = np.zeros((1, size))
    if all(np.isfinite(argument).all() for argument in (x, lam, z)):
        evaluate_at(address, np.array([t]), x[None], lam[None], z, out)
    return bool(np.isfinite(out).all())


def nan_of(what, name):
    """Words on a function that gave NaN, named as records do."""
    return f"{what}, {name.decode().partition('#')[0]}, returned NaN or infinity"


def wanted(kind, field):
    """How a function is to be written, as ``fext(t, z, out)``."""
    return f"{field}({ARGUMENTS[kind][field]})"


def function_name(function, kind, field):
    """Compile a user function and return the name under which records refer to it; what it leaves unwritten is 0.

    The name is ``module:qualified_name#fingerprint``. The fingerprint covers the code, the constants that it reads and the functions
    that it calls, so one that was redefined in a notebook is a new function, and a saved record never runs with another one.

    Parameters
    ----------
    function : callable
        Plain Python function (or a numba dispatcher) with the arguments of `wanted`; it writes its result into the last one.
    kind, field : str
        What it is used for, keys of ``ARGUMENTS``.

    Raises
    ------
    TypeError
        Not a function, wrong number of arguments, or numba cannot compile it; the message shows the signature wanted.
    """
    signature = wanted(kind, field)
    function = getattr(function, "py_func", function)
    if not isinstance(function, python_types.FunctionType):
        raise TypeError(f"{kind}: {field}: expected an array or a function {signature}, got {function!r}")
    try:
        inspect.signature(function).bind(*range(signature.count(",") + 1))
    except TypeError:
        given = f"{function.__name__}{inspect.signature(function)}"
        raise TypeError(f"{kind}: {field}: expected a function {signature}, got {given}") from None
    name = f"{function.__module__}:{function.__qualname__}#{fingerprint(function, {})[:12]}"
    if (name, kind, field) not in _compiled:
        _compiled[name, kind, field] = _compile(function, kind, field), function
    return name


def function_address(name, kind, field):
    """Address of the compiled function that a record names; looks it up in its module if this process has not seen it yet."""
    if (name, kind, field) not in _compiled:
        module, _, qualified = name.partition("#")[0].partition(":")
        try:
            found = importlib.import_module(module)
            for attribute in qualified.split("."):
                found = getattr(found, attribute)
        except (ImportError, AttributeError):
            raise ValueError(
                f"{field}: the record names the user function {name!r}, which this process does not know; "
                f"run the code that defines it, then build a system with it once"
            ) from None
        if function_name(found, kind, field) != name:
            raise ValueError(f"{field}: the record names the user function {name!r}, but {module}.{qualified} has changed since")
    return _compiled[name, kind, field][0].address


def _compile(function, kind, field):
    inner, parameters = ARGUMENTS[kind][field].replace("out", "cleared(out)"), _ALL.get(kind, _RELATION)
    if field in _SHAPES:
        _, x, lam, *_ = parameters.split(", ")
        inner = inner.replace("(out)", f"(out).reshape({_SHAPES[field].replace('x.', f'{x}.').replace('lam.', f'{lam}.')})")
    try:
        return _jit.callback(_CALLBACK, function, parameters, inner)
    except (NumbaError, TypeError) as error:
        out = "a matrix" if field in _SHAPES else "a vector"
        raise TypeError(
            f"{kind}: {field}: the function {function.__qualname__} does not compile as {wanted(kind, field)} "
            f"(t a float, the last argument {out}, the others float64 vectors, nothing returned): {error}"
        ) from error


def try_once(part, name, kind, field, t, x, lam, z, n_out):
    """Run a function in Python, where an index out of range is an error and not a wild write; refuse it where it fails or gives NaN."""
    function = _compiled[name, kind, field][1]
    out = np.zeros(n_out)
    if field in _SHAPES:
        out = out.reshape(eval(_SHAPES[field], {"x": x, "lam": lam, "out": out}))
    names = ARGUMENTS[kind][field].split(", ")
    first, second = x.copy(), lam.copy()
    values = {"t": t, "x": first, "q": first, "lam": second, "v": second, "state": second, "z": z.copy()}
    arguments = [values.get(name, out) for name in names]
    about = f"part '{part}': {wanted(kind, field)}, {function.__qualname__},"
    try:
        result = function(*arguments)
    except (IndexError, ValueError) as error:
        shapes = ", ".join(f"{name} {np.shape(argument)}" for name, argument in zip(names, arguments, strict=True))
        raise ValueError(f"{about} fails at the start, with the shapes {shapes}: {error}") from None
    if result is not None:
        raise TypeError(f"{about} must write its result into its last argument and return nothing, got {result!r}")
    if not np.isfinite(out).all():
        raise ValueError(f"{about} gives NaN or infinity at the start")
