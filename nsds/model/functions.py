"""User functions: compiled once to callbacks, known to records by name, called by kernels at their address.

All callbacks have one signature, ``(t, x, lam, z, out)``, whatever arguments the user's function takes: kernels call all of them alike.
"""

import dis
import importlib
import inspect
import random
import sys
import types as python_types
import warnings
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, partial

import numpy as np
from numba import float64, types
from numba.core.dispatcher import Dispatcher

from nsds import _checks, _jit
from nsds._jit.cache import fingerprint
from nsds._jit.mistakes import FAILURES, users_callback
from nsds.model.system_kinds import AT_T, CONTROL, RELATIONS

_vector = float64[::1]
_CALLBACK = types.void(float64, _vector, _vector, _vector, _vector)

call_address = _jit.caller(_CALLBACK)


@_jit.kernel
def _nothing(t, x, lam, z, out):
    """Default callback of an empty slot: its result NaN makes a call noticeable."""
    for i in range(out.size):
        out[i] = np.nan


@cache
def no_functions():
    """Addresses of users' functions (1, 1) before there are any: the first one is called for the slot ABSENT."""
    return np.array([[_jit.address(_CALLBACK, _nothing)]], np.uintp)


@_jit.tiny
def call_function(functions, slot, arguments):
    """Calls the user's function at a slot; ``arguments = (t, x, lam, z, out)``. At an empty slot, ABSENT, out becomes NaN."""
    call_address(functions[slot + 1], arguments)


_MECHANICAL = "t, q, v, z, out"
# kind of part, but for relations, or law -> its functions -> their arguments; the last one takes the result
_ARGUMENTS = {
    "lagrangian_linear": {"fext": AT_T},
    "lagrangian": {"mass": "q, z, out", "fgyr": "q, v, z, out", "fext": AT_T, "T": "q, z, out"}
    | dict.fromkeys(("fint", "jac_q", "jac_v", "u"), _MECHANICAL),
    "first_order_linear": dict.fromkeys(("A", "b", "T", "u"), AT_T),
    "first_order": dict.fromkeys(("f", "jac_f", "T", "u"), "t, x, z, out"),
    "rigid_bodies": dict.fromkeys(("fext", "mext"), AT_T) | dict.fromkeys(("fint", "mint", "jac_q", "jac_v"), _MECHANICAL),
    "sampled_control": dict.fromkeys(("control", "start"), "t, x, state, z, u"),
    "collisions": {"on_contact": "shapes, poses, z, contact"},
    "force_law": {"force": "t, y, ydot, z, out"},
}
# names of a callback's parameters
_PARAMETERS = {
    "sampled_control": "t, x, state, z, u",
    "collisions": "t, shapes, poses, z, contact",
    "force_law": "t, y, ydot, z, out",
    **dict.fromkeys(("lagrangian_linear", "first_order_linear", "first_order"), "t, x, lam, z, out"),
    **dict.fromkeys(("lagrangian", "rigid_bodies"), _MECHANICAL),
}
# shape of the results that are matrices
_SHAPES = {
    "A": "x.size, x.size", "jac_f": "x.size, x.size", "K": "x.size, x.size", "T": "x.size, out.size // x.size",
    "C": "lam.size, x.size", "B": "x.size, lam.size", "D": "lam.size, lam.size", "F": "lam.size, out.size // lam.size",
    "bounds": "2, lam.size", "mass": "x.size, x.size", "jac_q": "out.size // x.size, x.size", "jac_v": "lam.size, lam.size",
    "jac": "lam.size, x.size", "H": "lam.size, x.size",
}  # fmt: skip

_IN_PLACE = ("sampled_control", "collisions")  # their functions modify their last argument in place

CENTRAL_STEP = 2.0**-17  # of a central difference, relative to 1 or the variable

_OF_THE_PACKAGE = ("nsds.examples.", "nsds.circuits.")  # modules with functions, imported on demand

_compiled, _offered = {}, {}


@_jit.kernel
def evaluate_at(address, t, x, lam, z, out):
    """Rows ``out[k]``: results of the function at ``address`` for ``t[k]``, ``x[k]`` and ``lam[k]``."""
    for k in range(t.size):
        call_address(address, (t[k], x[k], lam[k], z, out[k]))


def is_finite_at(address, t, x, lam, z, size):
    """Whether a function gives finite numbers at finite arguments; True at others, which are not its fault."""
    out = np.zeros((1, size))
    if all(np.isfinite(argument).all() for argument in (x, lam, z)):
        evaluate_at(address, np.array([t]), x[None], lam[None], z, out)
    return bool(np.isfinite(out).all())


def nan_of(what, name):
    """Message on a function that gave NaN, with its name as in records."""
    return f"{what}, {name.decode().partition('#')[0]}, returned NaN or infinity"


def arguments_of(kind):
    """Functions of a kind of part, with their arguments; the last one receives the result."""
    return RELATIONS[kind].functions if kind in RELATIONS else _ARGUMENTS.get(kind, {})


def wanted(kind, field):
    """Signature of a function as text, such as ``fext(t, z, out)``."""
    known = arguments_of(kind)
    if field not in known:
        raise ValueError(f"{kind}: no function {field} is said to belong to it, but {', '.join(known) or 'none'}")
    return f"{field}({known[field]})"


def function_name(function, kind, field):
    """Compiles a user function and returns the name by which records refer to it; entries of out that it does not write are 0.

    The name is ``module:qualified_name#fingerprint``. The fingerprint covers the code, the constants that it reads and the functions
    that it calls, so one that was redefined in a notebook is a new function, and a saved record never runs with another one.

    Parameters
    ----------
    function : callable
        Plain Python function (or a numba dispatcher) with the arguments of `wanted`; it writes its result into the last one.
    kind, field : str
        Its use: a kind of part and one of its functions.

    Raises
    ------
    TypeError
        Not a function, wrong number of arguments, or numba cannot compile it; the message shows the signature wanted.
    """
    function = getattr(function, "py_func", function)
    _require_signature(function, kind, field)
    name = ":".join((str(function.__module__), "#".join(_identity(function))))
    _keep(name, function, kind, field)
    return name


def _require_signature(function, kind, field):
    signature = wanted(kind, field)
    if not isinstance(function, python_types.FunctionType):
        is_object = callable(function) and not isinstance(function, (type, np.ufunc, python_types.BuiltinFunctionType))
        hint = "; write a plain function, and pass what the object holds in z" if is_object else ""
        raise TypeError(f"{kind}: {field}: expected an array or a function {signature}, got {_checks.shortened(function)}{hint}")
    try:
        inspect.signature(function).bind(*range(signature.count(",") + 1))
    except TypeError:
        given = f"{function.__name__}{inspect.signature(function)}"
        raise TypeError(f"{kind}: {field}: expected a function {signature}, got {given}") from None


def _keep(name, function, kind, field):
    """Compiles a function for the field of a kind of part, unless that was done."""
    if (name, kind, field) not in _compiled:
        if kind != CONTROL:  # a controller is called once an instant, and may well measure with noise
            _require_repeatable(function, kind, field)
        _compiled[name, kind, field] = _compile(function, kind, field), function, _globals_read(function)


def function_address(name, kind, field):
    """Address of the compiled function that a record names: built in this process, passed by `offered`, or found in a loaded module."""
    if (name, kind, field) not in _compiled:
        function = _found(name, field)
        _require_signature(function, kind, field)
        _keep(name, function, kind, field)
    return _compiled[name, kind, field][0].address


def functions_named(names):
    """Functions of these names that are compiled in this process, to be `offered` in another one."""
    return list({function for (name, _, _), (_, function, _) in _compiled.items() if name in names})


def offered(owner, functions):
    """Makes functions known to this process, for records that name them.

    Raises
    ------
    TypeError
        Not a sequence of plain functions.
    """
    if functions is None:
        return
    if not callable(functions) and not isinstance(functions, (list, tuple, set, frozenset)):
        raise TypeError(f"{owner}: functions must be a list of functions, got {_checks.shortened(functions)}")
    for function in [functions] if callable(functions) else functions:
        function = getattr(function, "py_func", function)
        if not isinstance(function, python_types.FunctionType):
            raise TypeError(f"{owner}: functions must be plain Python functions, got {_checks.shortened(function)}")
        _offered[_identity(function)] = function


def _identity(function):
    """(qualified name, fingerprint), by which a record identifies a function; its module may differ between processes."""
    return function.__qualname__, fingerprint(function, {})[:12]


def _found(name, field):
    """The function of a name: one that was offered, or one in a loaded module; nothing is imported for a record, except modules
    of the package itself.

    Attributes are read from the dictionaries of modules and classes only: a module may import when it is asked for an attribute.
    """
    # 1. a function that was passed
    place, _, wanted = name.partition("#")
    module, _, qualified = place.partition(":")
    if (qualified, wanted) in _offered:
        return _offered[qualified, wanted]
    # 2. its module, which a record must not import
    if module not in sys.modules and module.startswith(_OF_THE_PACKAGE):
        with suppress(ModuleNotFoundError):
            importlib.import_module(module)
    if module not in sys.modules:
        raise ValueError(
            f"{field}: the record names the user function {name!r}, and no module {module!r} is loaded: a record does not decide what is "
            f"imported; import the module first, or pass the function as functions=[...]"
        )
    # 3. the function in it, with the same fingerprint
    found = sys.modules[module]
    for attribute in qualified.split("."):
        found = vars(found).get(attribute) if isinstance(found, (python_types.ModuleType, type)) else None
    found = getattr(found, "py_func", found) if isinstance(found, (python_types.FunctionType, Dispatcher)) else None
    if not isinstance(found, python_types.FunctionType):
        raise ValueError(
            f"{field}: the record names the user function {name!r}, which this process does not know; "
            f"run the code that defines it, then build a system with it once, or pass the function as functions=[...]"
        )
    if _identity(found) != (qualified, wanted):
        raise ValueError(f"{field}: the record names the user function {name!r}, but {module}.{qualified} has changed since")
    return found


def _compile(function, kind, field):
    # names of x and lam in the callback give the shapes of matrix results
    parameters = RELATIONS[kind].parameters if kind in RELATIONS else _PARAMETERS[kind]
    inner = arguments_of(kind)[field].replace("out", "cleared(out)")
    if field in _SHAPES:
        _, x, lam, *_ = parameters.split(", ")
        shape = _SHAPES[field].replace("x.", f"{x}.").replace("lam.", f"{lam}.")
        inner = inner.replace("cleared(out)", f"matrix(cleared(out), ({shape}))")
    about = f"{kind}: {field}: the function {function.__qualname__} does not compile as {wanted(kind, field)}"
    return users_callback(about, _CALLBACK, function, parameters, inner)


def try_once(part, name, kind, field, t, x, lam, z, out):
    """Runs a function in Python, where an index out of range is an error and not a wild write; refuses it if it fails or gives NaN.

    out: its last argument, as it is before the call.
    """
    # 1. run it on copies
    function_address(name, kind, field)
    function = _compiled[name, kind, field][1]
    arguments = t, x.copy(), lam.copy(), z.copy(), out.copy()
    about = _about(part, function, kind, field)
    try:
        result = _run(function, kind, field, arguments)
    except FAILURES as error:
        raise ValueError(f"{about} fails at the start, with the shapes {_shapes(kind, field, arguments)}: {error}") from None
    # 2. the result must be in the last argument: not returned, not bound to the name, and written at all
    if result is not None:
        raise TypeError(f"{about} must write its result into its last argument and return nothing, got {_checks.shortened(result)}")
    last = _last_parameter(function)
    how = f"must write into its last argument, as {last}[0] = ..., or {last}[:] = ..."
    if _binds(function, last):
        trial = (*arguments[:-1], np.full(out.size, np.nan))
        _run(function, kind, field, trial)
        if out.size and np.isnan(trial[-1]).all():
            raise TypeError(f"{about} {how}; '{last} = ...' is lost")
    elif kind not in _IN_PLACE and not _uses(function, last):
        raise TypeError(f"{about} {how}, and never does")
    # 3. finite results; bounds may be infinite
    is_wrong = np.isnan if field in ("bounds", "on_contact") else lambda out: ~np.isfinite(out)
    if is_wrong(arguments[-1]).any():
        raise ValueError(f"{about} gives NaN or infinity at the start")


def _last_parameter(function):
    return function.__code__.co_varnames[function.__code__.co_argcount - 1]


def _uses(function, name):
    """Whether a function reads one of its variables, as writing into an array does."""
    return any(
        "LOAD" in instruction.opname and name in (instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,))
        for instruction in dis.get_instructions(function)
    )


def _binds(function, name):
    """Whether a function binds a local variable to another value, other than by an operation in place."""
    before = ""
    for instruction in dis.get_instructions(function):
        bound = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if instruction.opname.startswith("STORE_FAST") and name in bound[: instruction.opname.count("STORE")]:
            return not before.startswith("INPLACE") and not before.endswith("=")
        before = instruction.argrepr if instruction.opname == "BINARY_OP" else instruction.opname
    return False


def _functions_used(function):
    """A function, and those of its module that it calls."""
    seen, waiting = [], [function]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.append(one)
        for value in map(one.__globals__.get, one.__code__.co_names):
            value = getattr(value, "py_func", value)
            if isinstance(value, python_types.FunctionType) and value.__module__ == function.__module__:
                waiting.append(value)
    return seen


def _globals_read(function):
    """[(namespace of a module, name, number)] that a function, or one that it calls, reads: compiled code keeps these values."""
    found = [(one.__globals__, name, one.__globals__.get(name)) for one in _functions_used(function) for name in one.__code__.co_names]
    return [each for each in found if isinstance(each[2], (bool, int, float, complex))]


def _require_repeatable(function, kind, field):
    """Refuses a function that draws random numbers: steps evaluate it several times, and each time it would be another one."""
    for one in _functions_used(function):
        known = {**one.__globals__, **inspect.getclosurevars(one).nonlocals}
        for name in (*one.__code__.co_names, *one.__code__.co_freevars):
            value = known.get(name)
            is_module = value is random or value is np.random or (value is np and "random" in one.__code__.co_names)
            if is_module or isinstance(getattr(value, "__self__", value), (random.Random, np.random.RandomState, np.random.Generator)):
                raise TypeError(
                    f"{kind}: {field}: the function {one.__qualname__}: it draws random numbers, others each time that a step "
                    "evaluates it: draw them before the run, and pass them in z"
                )


def warn_of_globals(owner, names):
    """Warns of functions, by their names in records, that read numbers of their modules which have changed since compilation."""
    for (named, _, field), (_, function, numbers) in _compiled.items():
        for namespace, name, value in numbers if named in names else ():
            new = namespace.get(name)
            if new is not value and new != value:
                warnings.warn(
                    f"{owner}: the function {function.__qualname__} ({field}) reads {name}, which was {value!r} when it was compiled "
                    f"and is {_checks.shortened(new)} now: the system keeps {value!r}; build it again, or pass what changes in z",
                    RuntimeWarning, stacklevel=4,
                )  # fmt: skip


def _about(part, function, kind, field):
    return f"part '{part}': {wanted(kind, field)}, {function.__qualname__},"


def _run(function, kind, field, arguments):
    """Calls a function in Python with its own selection of the arguments of callbacks, (t, x, lam, z, out)."""
    return function(*_taken(kind, field, arguments))


def _taken(kind, field, arguments):
    t, x, lam, z, out = arguments
    if field in _SHAPES:
        out = out.reshape(eval(_SHAPES[field], {"x": x, "lam": lam, "out": out}))
    values = {"t": t, "x": x, "q": x, "y": x, "shapes": x, "lam": lam, "v": lam, "ydot": lam, "state": lam, "poses": lam, "z": z}
    return [values.get(name, out) for name in _names(kind, field)]


def _names(kind, field):
    return arguments_of(kind)[field].split(", ")


def _shapes(kind, field, arguments):
    pairs = zip(_names(kind, field), _taken(kind, field, arguments), strict=True)
    return ", ".join(f"{name} {np.shape(argument)}" for name, argument in pairs)


class Watch:
    """Checked callbacks: user functions run in Python, on arrays with known lengths, and the first error is kept.

    After that all functions give NaN, so that the step ends. ``error``: its message, None without one.
    """

    def __init__(self):
        self.error, self._callbacks = None, {}

    def address(self, part, name, kind, field):
        """Address of a checked callback of the function of a part, in place of `function_address`."""
        key = part, name, kind, field
        if key not in self._callbacks:
            function_address(name, kind, field)
            called = partial(self._call, part, _compiled[name, kind, field][1], kind, field)
            self._callbacks[key] = _jit.PythonCallback(_CALLBACK, called)
        return self._callbacks[key].address

    def _call(self, part, function, kind, field, t, *vectors):
        *given, out = vectors
        # run on copies, so that a write into an argument is found
        arguments = t, *(vector.copy() for vector in given), out
        if kind not in _IN_PLACE:
            out[:] = 0.0
        try:
            if self.error is None:
                self._check(part, function, kind, field, given, arguments)
        except Exception as error:
            where = f"{_about(part, function, kind, field)} at t = {t:.9g}, with the shapes {_shapes(kind, field, arguments)}:"
            self.error = self.error or f"{where} {error} ({type(error).__name__})"
        if self.error is not None:
            out[:] = np.nan

    def _check(self, part, function, kind, field, given, arguments):
        result = _run(function, kind, field, arguments)
        if result is not None:
            raise TypeError(f"it must return nothing, got {_checks.shortened(result)}")
        for name, before, after in zip(("x", "lam", "z"), given, arguments[1:], strict=False):
            if kind == "sampled_control" and name == "lam":
                before[:] = after  # the memory of a controller is its own
            elif (before.view(np.int64) != after.view(np.int64)).any():
                at = int(np.flatnonzero(before.view(np.int64) != after.view(np.int64))[0])
                own = next(own for own in _names(kind, field) if own in _SAME[name])
                raise ValueError(f"it must write into its last argument alone, and wrote into {own}[{at}]")


class Raised:
    """Context that keeps exceptions of users' compiled functions, which numba would print and ignore.

    ``error``: the first exception, None without one.

    It knows neither the function nor the time: steps from before are to be repeated with a `Watch`.
    """

    def __enter__(self):
        self.error = None
        if sys.unraisablehook is not _note_raised:
            _before_raised[:] = [sys.unraisablehook]
            sys.unraisablehook = _note_raised
        _listening.append(self)
        return self

    def __exit__(self, *_):
        _listening.remove(self)


_listening, _before_raised = [], []


def _note_raised(unraisable):
    """Hook for unraisable exceptions: those of compiled code carry its mark."""
    if _listening and isinstance(unraisable.object, str) and unraisable.object == _jit.AS_CALLED:
        for each in tuple(_listening):
            each.error = each.error or unraisable.exc_value
    else:
        _before_raised[0](unraisable)


_SAME = {"x": ("x", "q", "y", "shapes"), "lam": ("lam", "v", "ydot", "poses"), "z": ("z",)}


watch = ContextVar("watch", default=None)


def address_for(part, name, kind, field):
    """Address of the compiled function of a part, or of its checked callback if the context asks for one."""
    watched = watch.get()
    return function_address(name, kind, field) if watched is None else watched.address(part, name, kind, field)
