"""Netlists: a subset of SPICE, parsed into elements; unsupported lines are refused by line and name."""

import ast
import codecs
import math
import operator
import os
import re
import sys
import warnings
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from nsds import _checks
from nsds.circuits.waves import COUNTS, wave_of

_OWNER = "circuit"
# A number: digits, a factor, a unit, which is ignored; or the factor in place of the point, 4k7. µ and Ω have two code points each.
_PREFIXES = ("icro", "li")  # of units after m and mil: SPICE reads 1micro as 1m and 1milli as 1mil, which is never meant
_FACTOR, _UNIT = "meg|mil|[tgkmu\u00b5\u03bcnpf]", "[a-z\u03a9\u2126]*"
_NUMBER = re.compile(rf"([0-9]+\.?[0-9]*|\.[0-9]+)(?:e([+-]?[0-9]{{1,3}}))?({_FACTOR})?({_UNIT})", re.IGNORECASE)
_POINTED = re.compile(rf"([0-9]+)({_FACTOR})([0-9]+){_UNIT}", re.IGNORECASE)
_DIGITS = re.compile(r"(?<![\w.])\.?[0-9](?:[\w.]|(?<=[0-9.][eE])[+-](?=[0-9]))*")  # beginning of a number
_BRACES = re.compile(r"\{[^}]*\}")
_QUOTED = re.compile(r"(?<![\w\"])'([^']*)'")  # an expression of other programs
_COMMENT = re.compile(r";|(?:^|\s)\$(?=\s|$)|\s//.*")  # behind a line
_COMMENTS = re.compile(r"[;$/]")  # what some have
_READ = re.compile(r"\b([vi])\(([^\s,()]+)(?:,([^\s,()]+))?\)", re.IGNORECASE)  # in an expression
_BEHAVIOUR = re.compile(r"(value|v|i|vol|cur)(?:=|(?=\{))(.+)", re.IGNORECASE)
_POWERS = {"": 0, "t": 12, "g": 9, "meg": 6, "k": 3, "m": -3, "u": -6, "\u00b5": -6, "\u03bc": -6, "n": -9, "p": -12, "f": -15}
_FACTORS = {factor: Fraction(10) ** power for factor, power in _POWERS.items()} | {"mil": Fraction(254, 10**7)}
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_FUNCTIONS = {
    "sqrt": math.sqrt, "exp": math.exp, "ln": math.log, "log10": math.log10, "sin": math.sin, "cos": math.cos, "tan": math.tan,
    "atan": math.atan, "arctan": math.atan, "abs": abs, "min": min, "max": max, "pow": math.pow, "floor": math.floor, "ceil": math.ceil,
}  # fmt: skip
_TABLE = re.compile(
    r"(\S+)\s+(\S+)\s+(\S+)\s+TABLE\s*\{?\s*V\s*\(\s*([^\s,()]+)\s*(?:,\s*([^\s,()]+)\s*)?\)\s*\}?\s*=?\s*(.*)", re.IGNORECASE
)
_PAIR = re.compile(r"\(\s*([^\s,()]+)\s*,\s*([^\s,()]+)\s*\)")
# lines about output, about other analyses, and about the methods of other programs
_WITHOUT_EFFECT = (
    ".print", ".plot", ".probe", ".save", ".backanno", ".title", ".meas", ".measure", ".four", ".option", ".options", ".temp", ".width",
    ".nodeset", ".op", ".ac", ".dc", ".tf", ".noise",
)  # fmt: skip
_MODELS = {"D": ("ron", "roff", "vfwd", "vrev"), "SW": ("ron", "roff", "vt", "vh"), "CSW": ("ron", "roff", "it", "ih")}
_MODEL_OF = {"D": "D", "S": "SW", "W": "CSW"}
_KEYS = {"R": ("r",), "C": ("c", "ic", "rser"), "L": ("l", "ic", "rser"), "V": ("dc", "r", "td", "rser"), "I": ("dc", "r", "td")}
_SERIES = ":Rser"  # behind the name of an element, of its series resistor
_REPEATED = re.compile(r"\bPWL\s+REPEAT\s+FOREVER\s*\((.*)\)\s*ENDREPEAT\b", re.IGNORECASE)
_REFUSED = dict.fromkeys("JMQZ", "transistors (write a switch and a diode)") | dict.fromkeys(
    "UTO", "transmission lines (write a ladder of inductors and capacitors)"
)
_TRANSFER = re.compile(r"(laplace|freq)\s*\{", re.IGNORECASE)  # sources that are filters
_NOT_LINEAR = re.compile(r"[<>?&|]|\bif\(", re.IGNORECASE)  # in an expression: a choice
_N_NODES = {"R": 2, "C": 2, "L": 2, "V": 2, "I": 2, "D": 2, "S": 4, "W": 2, "E": 4, "G": 4, "F": 2, "H": 2, "K": 0, "B": 2}


class Element(NamedTuple):
    """An element. kind: its letter; "OP" for an op-amp with rails; "BV" or "BI" for a voltage or current that is a sum of others.

    value: of R, C, L, K, the gain of E, G, F, H; a `Wave` of V and I; of D, S, W the parameters of the model, and "on"; of OP the corners
    of its table; of BV and BI their terms, ((what, names, factor), ...) with what "v" between two nodes, "i" through an element, or "one".
    of: names of the inductors of K, or of the source whose current controls F, H and W. start: initial voltage or current, or
    None.
    """

    name: str
    kind: str
    nodes: tuple
    value: object
    of: tuple = ()
    start: object = None


class Netlist(NamedTuple):
    """Elements in order, and the end of .tran, or None."""

    elements: tuple
    t_end: object


class _Scope(NamedTuple):
    """Names that a line may use. given: parameters that no .param changes; prefix: of the names of a subcircuit; ports: outer nodes of its
    own ones.
    """

    models: dict
    subcircuits: dict
    functions: dict  # of .func: names of the arguments, and text
    parameters: dict
    given: frozenset
    shared: frozenset  # nodes of .global, as subcircuits see them, too
    prefix: str = ""
    ports: dict = {}  # noqa: RUF012 (never changed)


class _Subcircuit(NamedTuple):
    """Names of its nodes; the line at which it begins, with its parameters; its models, parameters and functions; its elements; what it
    defines inside.
    """

    nodes: tuple
    header: tuple
    parameters: list
    names: list
    elements: list
    subcircuits: dict


def read(netlist, parameters):
    """`Netlist` of a text, a file, or lines and tuples; ``parameters`` override those of .param with the same names."""
    # 1. lines, without spaces inside braces, so that expressions are one word
    title, lines = _lines(netlist)
    lines = [(number, _joined(text) if "{" in text or "'" in text else text) for number, text in lines]
    given = {name.lower(): exact(value) for name, value in parameters.items()}
    shared = frozenset(node for _, text in lines if text.lower().startswith(".global") for node in text.lower().split()[1:])
    scope = _Scope({}, {}, {}, given, frozenset(given), shared)
    _require_used(parameters, lines)
    # 2. models, parameters and subcircuits, wherever they stand
    starts, t_end, elements = {}, None, []
    left = _defined(lines, scope)
    _warn_of_title(title, scope)
    # 3. elements and commands
    for number, text in left:
        word = text.split()[0].lower()
        if word == ".tran":
            t_end = _horizon(number, text, scope)
        elif word == ".global":  # noted above
            continue
        elif word == ".ic":
            starts |= _starts(number, text, scope)
        elif word.startswith("."):
            raise _wrong(number, text, f"{word} is not supported")
        else:
            elements += _made(number, text, scope)
    if all(node != "0" for element in _checked(elements) for node in element.nodes):
        warnings.warn(
            f"{_OWNER}: no element is at the ground, node 0 or gnd: voltages of nodes are not determined, differences of them are",
            UserWarning, stacklevel=4,
        )  # fmt: skip
    return Netlist(tuple(_started(elements, starts)), t_end)


def _joined(text):
    """A line with its expressions in braces, as words without spaces."""
    return _BRACES.sub(lambda match: re.sub(r"\s", "", match[0]), _QUOTED.sub(r"{\1}", text))


def exact(value):
    """A number as a fraction; a float is the decimal number by which it prints."""
    return Fraction(repr(_checks.number(_OWNER, "a value of params", value)))


def _lines(netlist):
    """(title, [(number, text), ...]) without comments, continued lines joined."""
    # 1. a list, a text, or a file
    if isinstance(netlist, (list, tuple)):
        return "", [(k + 1, _line_of(k, each)) for k, each in enumerate(netlist)]
    if not isinstance(netlist, (str, os.PathLike)):
        raise TypeError(f"{_OWNER}: netlist must be a text, a path, or a list of lines and tuples, got {_checks.shortened(netlist)}")
    if isinstance(netlist, os.PathLike) or "\n" not in netlist:
        try:
            netlist = _decoded(Path(netlist).read_bytes())
        except (OSError, ValueError) as error:
            raise ValueError(f"{_OWNER}: netlist has one line, so it must be a file: {error}") from None
    # 2. strip comments, join continuation lines, stop at .end
    title, *others = netlist.splitlines() or [""]
    result, is_command = [], False
    for number, text in enumerate(others, 2):
        text = _COMMENT.split(text, maxsplit=1)[0].strip() if _COMMENTS.search(text) else text.strip()
        if text.startswith(".") and text.lower() in (".control", ".endc"):  # commands of another program
            is_command = not is_command and text.lower() == ".control"
            continue
        if not text or text.startswith("*") or is_command:
            continue
        if text.startswith("+"):
            if not result:
                raise _wrong(number, text, "there is no line that it goes on with")
            result[-1] = (result[-1][0], f"{result[-1][1]} {text[1:]}")
        elif text[:4].lower() == ".end" and text.split()[0].lower() == ".end":
            break
        else:
            result.append((number, text))
    return title.strip(), result


def _decoded(content):
    """Text of a file: UTF-8, UTF-16 with a byte order mark, or else Latin-1, which older programs write."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _warn_of_title(title, scope):
    """Warns if the first line, the title, could have been meant as an element."""
    try:
        is_element = bool(title) and bool(_made(1, title, scope))
    except ValueError:
        is_element = False
    if is_element:
        warnings.warn(f"{_OWNER}: the first line of a netlist is its title, so '{title}' is no element of it", UserWarning, stacklevel=5)


def _line_of(k, given):
    """Text of an entry of a list: a line, or a tuple of words and numbers."""
    if isinstance(given, str) and given.strip():
        return given.strip()
    if isinstance(given, tuple) and given and isinstance(given[0], str):
        words = [given[0]]
        for word in given[1:]:
            is_word = isinstance(word, (str, int)) and not isinstance(word, bool)
            words.append(str(word) if is_word else repr(_checks.number(_OWNER, f"entry {k} of netlist, {given[0]},", word)))
        return " ".join(words)
    raise TypeError(f'{_OWNER}: entry {k} of netlist must be a line or a tuple as ("R1", "a", "b", 1e3), got {_checks.shortened(given)}')


def _wrong(number, text, why):
    return ValueError(f"{_OWNER}: line {number} of the netlist, '{text.split()[0]}': {why}; the line is: {_checks.shortened(text)}")


def _require_used(parameters, lines):
    """Refuses a parameter that no line names."""
    if not parameters:
        return
    named = {word for _, text in lines for word in re.findall(r"\w+", text.lower())}
    for name in parameters:
        if name.lower() not in named:
            raise ValueError(f"{_OWNER}: no line of the netlist names the parameter '{name}'")


def _defined(lines, scope):
    """The lines other than models, parameters and subcircuits, which are entered in the scope."""
    # 1. bodies of subcircuits are kept for their uses, which enter what they define
    left, names, open_ = [], [], []
    for number, text in lines:
        word = text.split(None, 1)[0].lower()
        if word == ".subckt":
            words, parameters = _called(number, text)
            if len(words) < 3:
                raise _wrong(number, text, "expected a name and nodes")
            body = _Subcircuit(tuple(each.lower() for each in words[2:]), (number, text), parameters, [], [], {})
            (open_[-1].subcircuits if open_ else scope.subcircuits)[words[1].lower()] = body
            open_.append(body)
        elif word == ".ends":
            if not open_:
                raise _wrong(number, text, "there is no subcircuit that it ends")
            open_.pop()
        elif word in (".model", ".param", ".func", ".function"):
            (open_[-1].names if open_ else names).append((number, text))
        elif word not in _WITHOUT_EFFECT:
            (open_[-1].elements if open_ else left).append((number, text))
    if open_:
        raise ValueError(f"{_OWNER}: a .subckt has no .ends")
    # 2. models and parameters of the netlist itself
    _enter(names, scope)
    return left


def _called(number, text):
    """(words before the parameters, [(name, value), ...]) of a line of .subckt or X."""
    words = re.sub(r"\s*=\s*", "=", text).split()
    n_words = next((k for k, word in enumerate(words) if "=" in word or word.lower() == "params:"), len(words))
    parameters = " ".join(word for word in words[n_words:] if word.lower() != "params:")
    return words[:n_words], _pairs(parameters, number, text)


def _enter(lines, scope):
    """Enters .func and .param, each parameter after those that it names, and then .model, which may name all of them."""
    pending = {}
    for number, text in lines:
        word, *rest = text.split(None, 1)
        if word.lower().startswith(".func"):
            match = re.fullmatch(r"(\w+)\s*\(([^()]*)\)\s*=?\s*(.+)", rest[0] if rest else "")
            if not match:
                raise _wrong(number, text, "expected name(argument, ...) {expression}")
            scope.functions[match[1].lower()] = tuple(each.strip().lower() for each in match[2].split(",")), match[3]
        if word.lower() == ".param":
            pairs = _pairs(rest[0] if rest else "", number, text)
            pending |= {name: (value, number, text) for name, value in pairs if name not in scope.given}

    def enter(name):
        value, number, text = pending.pop(name)
        for other in re.findall(r"\b[a-z_]\w*", value.lower()):
            if other in pending:
                enter(other)
        scope.parameters[name] = _number(value, number, text, scope)

    while pending:
        enter(next(iter(pending)))
    for number, text in lines:
        if text.split(None, 1)[0].lower() == ".model":
            _note_model(number, text, scope)


def _pairs(text, number, line):
    """[(name, value), ...] of ``name=value name=value``."""
    text = re.sub(r",(?=\s*\w+=)", " ", re.sub(r"\s*=\s*", "=", text))
    result = []
    for each in re.findall(r"[^\s=]+=\{[^}]*\}|\S+", text):
        name, equals, value = each.partition("=")
        if not equals or not value:
            raise _wrong(number, line, f"expected name=value, got '{each}'")
        result.append((name.lower(), value))
    return result


def _note_model(number, text, scope):
    # 1. name and kind
    words = re.sub(r"(\{[^}]*\})|[(),]", lambda match: match[1] or " ", text).split(None, 3)
    if len(words) < 3 or words[2].upper() not in _MODELS:
        kind = words[2] if len(words) > 2 else "nothing"
        raise _wrong(number, text, f"models are of kind {' or '.join(_MODELS)}, got {kind}")
    kind, numbers = words[2].upper(), {}
    # 2. parameters of the kind, and their ranges
    for name, value in _pairs(words[3] if len(words) > 3 else "", number, text):
        if name not in _MODELS[kind]:
            why = "; write the diode as an ideal one with Vfwd" if kind == "D" and name in ("is", "n", "rs") else ""
            raise _wrong(number, text, f"parameter '{name}' of a model {kind} is not supported, these are: {', '.join(_MODELS[kind])}{why}")
        numbers[name] = _number(value, number, text, scope)
    negative = [name for name in ("ron", "roff", "vrev", "vfwd") if numbers.get(name, 0) < 0]
    if negative or numbers.get("roff", math.inf) <= numbers.get("ron", 0):
        raise _wrong(number, text, f"{negative[0]} must not be negative" if negative else "Roff must be above Ron")
    hysteresis = next((name for name in ("vh", "ih") if numbers.get(name, 0) < 0), None)
    if hysteresis:
        name = hysteresis.capitalize()
        raise _wrong(number, text, f"a negative {name} stands for a smooth transition in one program, for early switching in another")
    scope.models[words[1].lower()] = (kind, numbers)


def _number(word, number, text, scope):
    """A number, a parameter, or an expression of them, with or without braces."""
    value, is_float = _number_of(word)
    if value is None:
        value = _expression(word, number, text, scope)
        is_float = _is_float(value)
    if not is_float:
        raise _wrong(number, text, f"{_checks.shortened(word)} is too {'small' if abs(value) < 1 else 'large'}")
    return value


@lru_cache(maxsize=4096)
def _number_of(word):
    """(fraction of a word, whether it is within the range of floats); None of what is no number."""
    value = _fraction(word.strip().strip("{}").strip())
    return value, value is not None and _is_float(value)


def _expression(word, number, text, scope):
    """An expression of numbers and parameters; with `_Sum` among them that are linear, one."""
    # numbers become exact fractions first; the rest is parsed as a Python expression of few allowed nodes
    word = re.sub(r"\s", "", word).strip("{}")
    plain = _DIGITS.sub(lambda match: f"({_literal(match[0], number, text)})", word).replace("^", "**")
    try:
        return _evaluated(ast.parse(plain, mode="eval").body, number, text, scope)
    except (SyntaxError, ZeroDivisionError):
        raise _wrong(number, text, f"'{word}' is no number, parameter or expression of them") from None


def _is_float(value):
    """Whether a number is zero, or within the range of floats in all digits."""
    try:
        return not value or abs(float(value)) >= sys.float_info.min
    except OverflowError:
        return False


def _literal(word, number, text):
    """`_fraction`, or an error."""
    value = _fraction(word)
    if value is None:
        raise _wrong(number, text, f"'{word}' is no number; factors are {', '.join(filter(None, _FACTORS))}")
    return value


@lru_cache(maxsize=4096)
def _fraction(word):
    """Fraction of digits with a factor and a unit, 4k7 is 4.7k; None of what is no number."""
    match = _NUMBER.fullmatch(word)
    if match and not match[4].lower().startswith(_PREFIXES):
        return Fraction(match[1]) * Fraction(10) ** int(match[2] or 0) * _FACTORS[(match[3] or "").lower()]
    match = _POINTED.fullmatch(word)
    return Fraction(f"{match[1]}.{match[3]}") * _FACTORS[match[2].lower()] if match else None


class _Sum(dict):
    """A sum of voltages, currents and a constant: {(what, names): factor}, of the constant ("one", ())."""

    def __neg__(self):
        return self * Fraction(-1)

    def __add__(self, other):
        other = other if isinstance(other, _Sum) else _Sum({("one", ()): other})
        return _Sum({key: self.get(key, 0) + other.get(key, 0) for key in self | other})

    __radd__ = __add__

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        if isinstance(other, _Sum):
            raise _NotLinearError
        return _Sum({key: factor * other for key, factor in self.items()})

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, _Sum):
            raise _NotLinearError
        return self * (1 / other)

    def __rtruediv__(self, other):
        raise _NotLinearError


class _NotLinearError(Exception):
    """A product or function of voltages and currents."""


def _evaluated(node, number, text, scope):
    if isinstance(node, ast.Name) and node.id.lower() in scope.parameters:
        return scope.parameters[node.id.lower()]
    if isinstance(node, ast.Name) and node.id.lower() == "pi":
        return Fraction(repr(math.pi))
    if isinstance(node, ast.Constant) and type(node.value) is int:  # of a fraction
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _evaluated(node.operand, number, text, scope)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](*(_evaluated(side, number, text, scope) for side in (node.left, node.right)))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return _of_function("pow", [_evaluated(side, number, text, scope) for side in (node.left, node.right)], number, text, scope)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _of_function(node.func.id.lower(), [_evaluated(each, number, text, scope) for each in node.args], number, text, scope)
    known = ", ".join(name for name, value in scope.parameters.items() if not isinstance(value, _Sum)) or "none"
    raise _wrong(number, text, f"'{ast.unparse(node)}' is no number and no parameter; parameters are: {known}")


def _of_function(name, values, number, text, scope):
    """Value of a function of .func, or of one that is known."""
    if name in scope.functions:
        names, body = scope.functions[name]
        if len(names) != len(values):
            raise _wrong(number, text, f"{name} has {len(names)} arguments, got {len(values)}")
        inner = {each: (names_, text_) for each, (names_, text_) in scope.functions.items() if each != name}
        known = scope.parameters | dict(zip(names, values, strict=True))
        return _expression(body, number, text, scope._replace(functions=inner, parameters=known))
    if any(isinstance(value, _Sum) for value in values):
        raise _NotLinearError
    if name not in _FUNCTIONS:
        raise _wrong(number, text, f"the function {name} is not known, these are: {', '.join([*scope.functions, *_FUNCTIONS])}")
    try:
        if name in ("abs", "min", "max"):
            return Fraction(_FUNCTIONS[name](*values))
        if name == "pow" and values[1].denominator == 1 and abs(values[1]) < 64:
            return values[0] ** int(values[1])
        return Fraction(repr(float(_FUNCTIONS[name](*map(float, values)))))
    except (TypeError, ValueError, OverflowError):
        raise _wrong(number, text, f"{name} has no value at {', '.join(f'{float(value):g}' for value in values)}") from None


def _horizon(number, text, scope):
    """End time of ``.tran step end UIC``."""
    words = text.split()[1:]
    if not words or words[-1].lower() != "uic":
        raise _wrong(number, text, "UIC must end it: runs begin with the values of IC, and no operating point is computed")
    if len(words) < 2:
        raise _wrong(number, text, "expected a step and an end, or an end")
    return float(_number(words[min(1, len(words) - 2)], number, text, scope))


def _starts(number, text, scope):
    """{("V", node) or ("I", inductor): value} of .ic."""
    found = re.findall(r"([VI])\s*\(\s*([^\s()]+)\s*\)\s*=\s*(\{[^}]*\}|[^\s,]+)", text, re.IGNORECASE)
    if not found:
        raise _wrong(number, text, "expected V(node)=value or I(inductor)=value")
    return {(what.upper(), name.lower()): _number(value, number, text, scope) for what, name, value in found}


def _node(name, scope):
    name = name.lower()
    name = "0" if name == "gnd" else name
    return name if name == "0" or name in scope.shared else scope.ports.get(name, f"{scope.prefix.lower()}{name}")


def _made(number, text, scope):
    """Elements of a line; for a subcircuit those of its body."""
    words = text.split()
    kind, name = words[0][0].upper(), scope.prefix + words[0]
    # 1. subcircuits, and elements that are refused
    if kind == "X":
        return _unfolded(number, text, scope)
    if kind in _REFUSED:
        raise _wrong(number, text, f"{_REFUSED[kind]} are not supported")
    if kind not in _N_NODES:
        raise _wrong(number, text, "it is no element that is known")
    if kind == "E" and len(words) > 3 and re.match(r"table(\W|$)", words[3], re.IGNORECASE):
        return [_amplifier(number, text, name, scope)]
    if kind in "BEGFH":
        behaviour = _behaviour(number, text, name, kind, scope)
        if behaviour is not None:
            return [behaviour]
    # 2. nodes, of controls maybe as a pair
    n_nodes = _N_NODES[kind]
    if kind in "EG" and len(words) > 3 and words[3].startswith("("):
        words = _PAIR.sub(r"\1 \2", text, count=1).split()
    if len(words) < n_nodes + 2:
        raise _wrong(number, text, f"expected {n_nodes} nodes and more")
    nodes, rest = tuple(_node(word, scope) for word in words[1 : n_nodes + 1]), words[n_nodes + 1 :]
    # 3. devices with a model, sources with a wave, couplings
    if kind in _MODEL_OF:
        of, rest = ((scope.prefix + rest[0],), rest[1:]) if kind == "W" else ((), rest)
        return [Element(name, kind, nodes, _model_of(number, text, rest, kind, scope), of)]
    rest, keyed = _keyed(rest, kind)
    if kind in "VI":
        found = [Element(name, kind, nodes, _wave(number, text, rest, keyed, scope))]
        return _behind_resistor(found[0], keyed.get("rser"), number, text, scope)
    if kind == "K":
        rest, of = rest[-1:], tuple(scope.prefix + word for word in rest[:-1])
        if len(of) < 2:
            raise _wrong(number, text, "expected two inductors or more, and a coefficient")
        return [Element(name, kind, (), _number(rest[0], number, text, scope), of)]
    # 4. R, C, L and linear controlled sources: a value, and for C and L an initial one
    of = ()
    if kind in "FH":
        of, rest = (scope.prefix + rest[0],), rest[1:]
    rest = [keyed[kind.lower()], *rest] if kind.lower() in keyed else rest
    if not rest or len(rest) > 1:
        raise _wrong(number, text, f"'{' '.join(rest[1:])}' is not supported" if rest else "its value is missing")
    value, start = _number(rest[0], number, text, scope), _number(keyed["ic"], number, text, scope) if "ic" in keyed else None
    if kind in "CL" and value <= 0:
        raise _wrong(number, text, f"its value must be positive, got {float(value):g}")
    return _behind_resistor(Element(name, kind, nodes, value, of, start), keyed.get("rser"), number, text, scope)


def _keyed(words, kind):
    """(other words, {name: text}) of a line's words behind the nodes, without the entries name=value that its kind has."""
    others, keyed = [], {}
    if any(word[0] == "=" or word[-1] == "=" for word in words):
        words = re.sub(r"\s*=\s*", "=", " ".join(words)).split()
    for word in words:
        name, equals, value = word.partition("=")
        if equals and value and name.lower() in _KEYS.get(kind, ()):
            keyed[name.lower()] = value
        else:
            others.append(word)
    return others, keyed


def _behind_resistor(element, resistance, number, text, scope):
    """The element, and its Rser, if it has one, as a resistor at its second node."""
    if resistance is None:
        return [element]
    name, (one, other) = element.name + _SERIES, element.nodes
    resistor = Element(name, "R", (name.lower(), other), _number(resistance, number, text, scope))
    return [element._replace(nodes=(one, name.lower())), resistor]


def _model_of(number, text, rest, kind, scope):
    """Parameters of the model of a diode or switch, of a switch "on", too: whether its line ends with ON."""
    wanted, start = _MODEL_OF[kind], rest[1].lower() if kind != "D" and len(rest) == 2 else ""
    if start in ("on", "off"):
        rest = rest[:1]
    if len(rest) != 1:
        raise _wrong(number, text, f"expected the name of a model alone, got '{' '.join(rest)}'")
    found, numbers = scope.models.get(rest[0].lower(), (None, None))
    if found != wanted:
        raise _wrong(number, text, f"there is no .model {rest[0]} {wanted}")
    return numbers if kind == "D" else numbers | {"on": Fraction(start == "on")}


def _unfolded(number, text, scope):
    """Elements of a subcircuit, their names prefixed with its own."""
    # 1. the subcircuit, and its nodes
    words, passed = _called(number, text)
    found = scope.subcircuits.get(words[-1].lower())
    if found is None:
        raise _wrong(number, text, f"there is no .subckt {words[-1]}")
    if len(words) - 2 != len(found.nodes):
        raise _wrong(number, text, f"the subcircuit has {len(found.nodes)} nodes, got {len(words) - 2}")
    prefix = f"{scope.prefix}{words[0]}."
    if prefix.count(".") > 20:
        raise _wrong(number, text, "the subcircuit contains itself")
    ports = {port: _node(node, scope) for port, node in zip(found.nodes, words[1:-1], strict=True)}
    inner = scope._replace(prefix=prefix, ports=ports, subcircuits=scope.subcircuits | found.subcircuits)
    # 2. its parameters, those of the line in place of its own, and its models, which are seen from inside only
    unknown = {name for name, _ in passed} - {name for name, _ in found.parameters}
    if unknown:
        names = ", ".join(name for name, _ in found.parameters) or "none"
        raise _wrong(number, text, f"the subcircuit has no parameter '{min(unknown)}', these are: {names}")
    if found.parameters or found.names:
        own = {name: _number(value, *found.header, scope) for name, value in found.parameters}
        own |= {name: _number(value, number, text, scope) for name, value in passed}
        inner = inner._replace(models=dict(scope.models), functions=dict(scope.functions), parameters=scope.parameters | own)
        _enter(found.names, inner)
    return [element for line in found.elements for element in _made(*line, inner)]


def _amplifier(number, text, name, scope):
    """``E1 o 0 TABLE {V(p,q)} = (x0, y0) (x1, y1)``: linear between two corners, constant beyond."""
    match = _TABLE.fullmatch(text)
    corners = _PAIR.findall(match[6]) if match else ()
    if len(corners) != 2 or _PAIR.sub("", match[6]).replace(",", "").strip():
        raise _wrong(number, text, "expected TABLE {V(p,q)} = (x0,y0) (x1,y1), two corners")
    corners = tuple(tuple(_number(word, number, text, scope) for word in corner) for corner in corners)
    if corners[0][0] > corners[1][0] or corners[0][1] == corners[1][1]:
        raise _wrong(number, text, "the corners must rise in x, and differ in y")
    nodes = tuple(_node(match[k] or "0", scope) for k in (2, 3, 4, 5))
    return Element(name, "OP", nodes, corners)


def _behaviour(number, text, name, kind, scope):
    """Element of a source given by an expression or POLY, which must be linear; None of one that is given by nodes and a gain."""
    words = text.split(None, 3)
    rest = words[3] if len(words) > 3 else ""
    nodes = tuple(_node(word, scope) for word in words[1:3])
    is_voltage = kind in "EH"
    if _TRANSFER.match(rest):
        kind = rest.partition("{")[0].strip().upper()
        raise _wrong(number, text, f"{kind} is not supported: write the filter as a circuit of R, L and C")
    try:
        if re.match(r"poly\s*\(", rest, re.IGNORECASE):
            total = _polynomial(rest, kind in "FH", number, text, scope)
        else:
            match = _BEHAVIOUR.fullmatch(re.sub(r"\s*([=,(){+*/-])\s*", r"\1", rest))
            if match is None or kind in "FH":
                if kind == "B":
                    raise _wrong(number, text, "expected V={expression} or I={expression}")
                return None
            if kind == "B":
                is_voltage = match[1].lower() == "v"
            total = _reads(match[2], number, text, scope)
    except _NotLinearError:
        what = "behavioural sources are not supported but sums of voltages and currents, each with a factor"
        raise _wrong(number, text, f"{what}; what has corners is a switch, a diode, or E with a TABLE of two corners") from None
    terms = tuple((what, names, factor) for (what, names), factor in total.items() if factor)
    of = tuple(names[0] for what, names, _ in terms if what == "i")
    return Element(name, "BV" if is_voltage else "BI", nodes, terms, of)


def _voltage(one, other, scope):
    return _Sum({("v", (_node(one, scope), _node(other, scope))): Fraction(1)})


def _reads(word, number, text, scope):
    """`_Sum` of an expression with V(node), V(node,node) and I(element)."""
    found = {}

    def note(match):
        key, (what, one, other) = f"read_{len(found)}_", match.groups()
        found[key] = _voltage(one, other or "0", scope) if what.lower() == "v" else _Sum({("i", (scope.prefix + one,)): Fraction(1)})
        return key

    if _NOT_LINEAR.search(word):
        raise _NotLinearError
    word = _READ.sub(note, word)
    total = _expression(word, number, text, scope._replace(parameters=scope.parameters | found))
    return _Sum() + total


def _polynomial(rest, is_of_currents, number, text, scope):
    """`_Sum` of POLY(n), n controls and the coefficients 1, x, y, ..., of which those of higher powers must be 0."""
    match = re.match(r"poly\s*\(\s*(\d+)\s*\)", rest, re.IGNORECASE)
    words = re.findall(r"\{[^}]*\}|[^\s(),]+", rest[match.end() :]) if match else []
    n = int(match[1]) if match else 0
    n_words = n if is_of_currents else 2 * n
    controls, numbers = words[:n_words], [_number(word, number, text, scope) for word in words[n_words:]]
    if n < 1 or len(controls) < n_words or not numbers:
        raise _wrong(number, text, "expected POLY(n), n controls and coefficients")
    if is_of_currents:
        controls = [_Sum({("i", (scope.prefix + word,)): Fraction(1)}) for word in controls]
    else:
        controls = [_voltage(one, other, scope) for one, other in zip(controls[::2], controls[1::2], strict=True)]
    if n == len(numbers) == 1:  # the one coefficient is that of the control
        return controls[0] * numbers[0]
    if any(numbers[1 + n :]):
        raise _NotLinearError
    return sum((control * factor for control, factor in zip(controls, numbers[1:], strict=False)), _Sum({("one", ()): numbers[0]}))


def _wave(number, text, rest, keyed, scope):
    """Wave of a source: its kind and numbers, or a number alone."""
    # 1. kind, numbers, and what PWL may have beside them
    words = _REPEATED.sub(r"PWL(\1)", " ".join(rest))
    repeats = words != " ".join(rest)
    words = _of_time([*(["DC", keyed["dc"]] if "dc" in keyed else []), *re.findall(r"\{[^}]*\}|[^\s(),]+", words)])
    kind = {"SINE": "SIN"}.get(words[0].upper(), words[0].upper()) if words else ""
    late, again = (_number(keyed[name], number, text, scope) if name in keyed else None for name in ("td", "r"))
    if (late is not None or again is not None) and kind != "PWL":
        raise _wrong(number, text, "td= and r= belong to PWL")
    if again:
        raise _wrong(number, text, f"PWL repeats from its beginning, r=0, got r={keyed['r']}")
    # 2. its numbers
    if kind not in COUNTS or len(words) == 1:
        if len(words) != 1:
            likely = _checks.meant(kind, COUNTS)
            raise _wrong(number, text, f"'{' '.join(words[:1])}' is not supported; sources are {', '.join(COUNTS)}{likely}")
        kind, words = "DC", ["DC", *words]
    numbers = [_number(word, number, text, scope) for word in words[1:]]
    try:
        return wave_of(kind, numbers, repeats or again is not None, late or 0)
    except ValueError as error:
        raise _wrong(number, text, error) from None


def _of_time(words):
    """Words of a source without what other analyses use: AC with magnitude and phase, and a value for DC before a wave."""
    names, known = [word.upper() for word in words], {*COUNTS, "SINE"}
    if "AC" in names:
        start = names.index("AC")
        end = next((k for k in range(start + 1, len(names)) if names[k] in known), len(names))
        if end - start <= 3:
            words = words[:start] + words[end:] or ["0"]
            names = [word.upper() for word in words]
    start = next((k for k, name in enumerate(names) if name in known and name != "DC"), 0)
    return words[start:] if start == 1 + (names[0] == "DC") else words


def _checked(elements):
    """Elements with distinct names, whose references exist."""
    known = {}
    for element in elements:
        if element.name.lower() in known:
            raise ValueError(f"{_OWNER}: there are two elements of the name '{element.name}'")
        known[element.name.lower()] = element.kind
    for element in elements:
        for other in element.of:
            wanted = "L" if element.kind == "K" else "V" if element.kind in "FHW" else "VRLCIEGFH"
            if known.get(other.lower(), " ") not in wanted:
                what = {"L": "inductor", "V": "voltage source"}.get(wanted, "element")
                raise ValueError(f"{_OWNER}: element '{element.name}' names the {what} '{other}', which there is not")
    if not elements:
        raise ValueError(f"{_OWNER}: the netlist has no elements; its first line is a title")
    return elements


def _started(elements, starts):
    """Elements with initial values of .ic, unless they have their own."""
    nodes = {node for element in elements for node in element.nodes}
    inductors = {element.name.lower() for element in elements if element.kind == "L"}
    for what, name in starts:
        if name not in (nodes if what == "V" else inductors):
            raise ValueError(f"{_OWNER}: .ic names {what}({name}), which is no {'node' if what == 'V' else 'inductor'}")
    # nodes that .ic does not name are at 0, but not beside sources: other programs differ there
    voltages = {"0": 0} | {node: value for (what, node), value in starts.items() if what == "V"}
    sourced = {node for element in elements if element.kind in ("V", "E", "H", "OP", "BV") for node in element.nodes[:2]}
    outer = {e.nodes[0]: e.nodes[1] for e in elements if e.kind == "R" and e.name.endswith(_SERIES) and e.nodes[0] == e.name.lower()}
    for element in elements:
        ends = [outer.get(node, node) for node in element.nodes]
        if element.start is None and element.kind == "L":
            yield element._replace(start=starts.get(("I", element.name.lower())))
        elif element.start is None and element.kind == "C" and any(node in voltages for node in ends if node != "0"):
            unknown = next((node for node in ends if node not in voltages and node in sourced), None)
            if unknown:
                raise ValueError(
                    f"{_OWNER}: .ic names one node of '{element.name}', and not V({unknown}), where a source is: give it, too, or IC= of "
                    f"'{element.name}'"
                )
            a, b = (voltages.get(node, 0) for node in ends)
            yield element._replace(start=a - b)
        else:
            yield element
