"""Explanation of a user's function that numba does not compile, in one line, with what to write instead."""

import dis
import linecache
import re
from pathlib import Path

from numba.core.errors import NumbaError, UnsupportedBytecodeError

from nsds import _jit

NOT_COMPILED = NumbaError, UnsupportedBytecodeError, TypeError  # raised by numba
FAILURES = ArithmeticError, AssertionError, IndexError, NameError, ValueError  # raised by a function in a trial call in Python

_HOW = "write the result into its last argument, {out}[0] = ..., and return nothing"
_LASTING = "it changes a global: what lasts from call to call is a state of the system, or of nsds.sampled_control"
_FROM_OUTSIDE = "compiled code reads numbers, tuples and arrays of its module: make it one of them, or pass what changes in z"
_AS_NUMBERS = "it draws random numbers: draw them before the run, as an array of the module, or between steps, and pass them in z"
_AS_TABLE = "for a curve through points: np.interp(x, points, values), with arrays of the module"
_UNKNOWN = "it uses {1}.{0}, which numba does not compile"
_TEXT = "it formats text, which compiled code can't: print values as print(t, out[0]), or format them after the run"
_NO_ERRORS = "it catches errors, and compiled arithmetic raises none: test the value before, as in 'if t != 0.0'"
# pattern in numba's text -> the mistake, and the remedy; {0}, {1} are the groups, {out} the last argument
_REASONS = tuple(
    (re.compile(pattern, re.DOTALL), reason)
    for pattern, reason in (
        (r"No conversion from .*? generator\(", "it yields: " + _HOW),
        (r"No conversion from .*? to none for", "it returns a value: " + _HOW),
        (r"Untyped \w+ name '(\w+)':.*?<class '(scipy\.interpolate\.[\w.]+)'>", "it reads {0}, a {1}; " + _AS_TABLE),
        (r"Untyped \w+ name '(\w+)':[^']*?<class 'function'>", "it calls {0}, which is not compiled: write @numba.njit above it"),
        (r"Untyped \w+ name '(\w+)':.*?<class '([\w.]+)'>", "it reads {0}, a {1}; " + _FROM_OUTSIDE),
        (r"assigned to variable '(\w+)' in globals", "it reads {0}, a list; " + _FROM_OUTSIDE),
        (r"[Uu]se of a (reflected list)|(reflected set)", "it reads a list from outside; " + _FROM_OUTSIDE),
        (r"NameError: name '(\w+)' is not defined", "{0} is not defined"),
        (r"Unknown attribute '(\w+)' of type Module\(<module '(scipy[\w.]*)'", _UNKNOWN + "; " + _AS_TABLE),
        (r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'", _UNKNOWN),
        (r"Unknown attribute '(\w+)' of type (\w+)", "it uses .{0} of an object of type {1}, which compiled code does not have"),
        (r"format spec in f-strings|opcode \(FORMAT\w*\)|mod\(Literal\[str\]|mod\(unicode", _TEXT),
        (r"opcode \(IMPORT_NAME\)", "it imports: do that at the top of the module"),
        (r"opcode \(STORE_GLOBAL\)", _LASTING),
        (r"opcode \((\w+)\)", "it has a construct that numba does not compile ({0})"),
        (r"The 'with \(context manager\)", "it has a with block, which numba does not compile"),
        (r"exception_match|Exception matching|try .*? except", _NO_ERRORS),
        (r"use of yield in a closure", "it has a generator, (... for ...): write a loop"),
        (r"cannot index array\((\w+), (\d)d, \w\) with (\d) indices", "it takes an array of {1} dimensions at {2} indices"),
        (r">>> [gs]etitem\(array\([^)]*\), (?:Literal\[str\]|unicode)", "it takes an array at an index that is text"),
        (r">>> setitem\(array\(.*?\), .*?, Literal\[str\]", "it writes text in the place of a number"),
        (r">>> setitem\(array\(.*?\), .*?, complex", "it writes a complex number in the place of a real one: write .real"),
        (r">>> setitem\(array\(.*?\), .*?, (list|array|UniTuple|Tuple|reflected list)", "it writes a {0} in the place of one number"),
        (r">>> setitem\(array\(.*?\), .*?, (?:pyobject|none|\[unichr|\[char)", "it writes what is not a number in the place of one"),
        (r"Invalid use of (\w+) with parameters \(", "it calls {0}, which is a value, as a function: leave out the brackets"),
        (r"Illegal IR, (del) found", "it deletes a variable: leave that out"),
        (r"NumPyRandomGeneratorType", _AS_NUMBERS),
        (r"arguments must all have the same dtype", "it multiplies whole numbers with floats by @: write a matrix of floats"),
        (r"Cannot unify (.*?) and (.*?) for '(\w+?)(?:\.\d+)?'", "its variable {2} is now {0}, now {1}: give it one type"),
        (r"No implementation of function Function\(.*?>>> (.*?)\n", "no compiled function takes {0}"),
    )
)  # fmt: skip
_PLACES = re.compile(r'File "([^"]+)", line (\d+)|(?:at|from) (\S+) \((\d+)\)')


def users_callback(about, signature, function, *names):
    """`nsds._jit.callback` of a user's function; a `TypeError` that begins with `about` explains a failure."""
    try:
        return _jit.callback(signature, function, *names)
    except NOT_COMPILED as error:
        raise TypeError(f"{about}: {_reason(getattr(function, 'py_func', function), error)}") from None


def _reason(function, error):
    """The mistake in a function that raised `error` when it was compiled, one line, and a line with its place."""
    # 1. first pattern that matches numba's text; numba's own first line where none does
    text = str(error)
    out = function.__code__.co_varnames[max(function.__code__.co_argcount - 1, 0)]
    found = next(((match, words) for pattern, words in _REASONS if (match := pattern.search(text))), None)
    if found is None:
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("Failed in nopython mode")]
        said = lines[0] if lines else type(error).__name__
    else:
        match, words = found
        said = words.format(*match.groups(), out=out)
    # 2. where it is
    return f"{said}\n  {_place(function, text)}"


def _place(function, text):
    """File, line and source of numba's complaint, if it is within the function; else those of its head."""
    code = function.__code__
    lines = {line for _, line in dis.findlinestarts(code) if line}
    name = Path(code.co_filename).name
    named = [(match[1] or match[3], int(match[2] or match[4])) for match in _PLACES.finditer(text)]
    line = next((line for file, line in named if Path(file).name == name and line in lines), code.co_firstlineno)
    source = linecache.getline(code.co_filename, line).strip()
    return f"{name}, line {line}" + (f": {source}" if source else "")
