"""Maps whose orbits are analysed: from one section to the next of a forced system, or those that a user states, with their derivatives."""

import inspect
import math
import re
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import float64, types
from numba.core.errors import NumbaError

from nsds import _checks, _jit
from nsds._jit import kernel, view
from nsds._jit.cache import fingerprint
from nsds.analysis.carried import Carried
from nsds.analysis.parameters import Parameter, one_record, state_words
from nsds.analysis.tangent import EVENTS, IMPACTS, LOG_DET, SLOWEST, TOGETHER, UNTREATED, log_of_determinant, multiply, orthonormalise
from nsds.model.records import memory
from nsds.schemes.run.interrupts import Interrupts
from nsds.schemes.run.simulation import on_one_core, shares
from nsds.status import CONVERGED, NON_FINITE

_vector = float64[::1]
_MAP = types.void(_vector, _vector, _vector)
_call = _jit.caller(_MAP)
_STEP = 2.0**-17  # of a difference, relative to 1 or the variable


class Returned(NamedTuple):
    """What a map gave, of each member."""

    ends: np.ndarray  # (members, n)
    maps: np.ndarray  # (members, n, n): derivatives by the state
    status: np.ndarray
    impacts: np.ndarray
    events: np.ndarray
    slowest: np.ndarray  # the smallest rate of a guard at its event: 0 where a contact grazes
    log_det: np.ndarray  # of the derivatives, as it was summed along the run
    together: np.ndarray  # events at which several guards came to zero
    untreated: np.ndarray  # events whose saltation matrix is not known


class SectionMap:
    """The map of a forced system from one time to the same phase later: n_periods periods of it."""

    def __init__(self, owner, system, period, n_periods, scheme, path):
        self.owner, self.system, self.scheme, self.n_periods = owner, system, scheme, n_periods
        self.period = _period_of(owner, period)
        self.parameter = None if path is None else Parameter(owner, "parameter", self.system, path)
        self.value = math.nan if path is None else self.parameter.of(self.system)
        self._pools, self._is_plain, self._state = {}, None, state_words(self.system)
        self.x = memory(self.system.reshape(1).copy())[0, self._state]
        self.n = self.x.size
        self.modulo = np.zeros(self.n)

    def record(self, x, value):
        """The record of a state and a value of the parameter."""
        result = self.system.reshape(1).copy()
        if self.parameter is not None:
            self.parameter.put(result, value)
        memory(result)[0, self._state] = x
        return result.reshape(())

    def _pool(self, members, n_columns, values):
        systems = np.repeat(self.system.reshape(1), members)
        if self.parameter is not None:
            self.parameter.put(systems, values)
        periods = [self.period(value) * self.n_periods for value in values]
        return Carried(self.owner, systems, periods, self.scheme, n_columns=n_columns, keep=self.parameter is None or bool(self._is_plain))

    def _at(self, states, values, n_columns):
        """A run from these states at these values: a prepared one, where the parameter is in the records alone."""
        key = len(values), n_columns
        if self.parameter is None:
            if key not in self._pools:
                self._pools[key] = self._pool(*key, values)
            self._pools[key].restart(states, [self.period(value) * self.n_periods for value in values])
            return self._pools[key]
        if self._is_plain is None:
            one, other = (self._pool(1, 0, [self.value + change]) for change in (0.0, max(1.0, abs(self.value)) * 2.0**-10))
            same = one.run.prepared.work.shape == other.run.prepared.work.shape
            self._is_plain = same and np.array_equal(one.run.prepared.work, other.run.prepared.work, equal_nan=True)
            self._words = np.flatnonzero(one.run.mem[0] != other.run.mem[0])
        if key not in self._pools or not self._is_plain:
            self._pools[key] = self._pool(*key, values)
        periods = [self.period(value) * self.n_periods for value in values]
        self._pools[key].restart(states, periods, [(self._words, values)] if self._is_plain else ())
        return self._pools[key]

    def returns(self, states, values, *, derive=True):
        """Ends of sections that start from states (members, n) at values (members,) of the parameter, as `Returned`."""
        run = self._at(np.asarray(states, float), list(values), None if derive else 0)
        with on_one_core():  # a few members: to wake a thread takes longer than they do
            run.advance(1)
        return _returned(run, run.columns.copy())

    def close(self):
        """Leave what was prepared to other sections."""
        for pool in self._pools.values():
            pool.release()

    def impact_times(self, x, value):
        """When the impacts of the section from x are, as parts of it."""
        run = self._at(x[None], [value], 0)
        run.advance(1)
        count = int(run.notes[0, IMPACTS])
        run.restart(x[None], run.h * run.rows, [(self._words, [value])] if self._is_plain else ())
        run.record(count, at_impacts=True)
        run.advance(1)
        result = (run.recorded(0)[0] - self.system["t"]) / (self.period(value) * self.n_periods)
        run.record(0)
        return result


def _returned(run, maps):
    notes = run.notes
    return Returned(
        run.states(), maps, run.status.copy(), *(notes[:, k].copy() for k in (IMPACTS, EVENTS, SLOWEST, LOG_DET, TOGETHER, UNTREATED))
    )


def _period_of(owner, period):
    """A function of the parameter that gives the period."""
    if callable(period):
        return lambda value: _checks.number(owner, "period(value)", period(value), above=0.0)
    number = _checks.number(owner, "period", period, above=0.0)
    return lambda value: number


class IteratedMap:
    """A map ``x -> f(x, p)`` that a user states: see `iterated_map`."""

    def __init__(self, function, x, p, jac, modulo):
        self.function, self.jac, self.x, self.p, self.modulo, self.n = function, jac, x, p, modulo, x.size
        self.callbacks = [_compiled(function, "x, p, cleared(out)")]
        if jac is not None:
            self.callbacks.append(_compiled(jac, "x, p, matrix(cleared(out), (x.size, x.size))"))

    def addresses(self):
        """Where the map and its Jacobian are called; 0 of a Jacobian that is not given."""
        return tuple(np.uintp(one.address) for one in self.callbacks) + (np.uintp(0),) * (2 - len(self.callbacks))

    def __reduce__(self):
        return IteratedMap, (self.function, self.x, self.p, self.jac, self.modulo)

    def identity(self):
        """All that decides its images, and where they start."""
        functions = [fingerprint(one, {}) for one in (self.function, self.jac) if one is not None]
        return repr(functions).encode() + b"".join(array.tobytes() for array in (self.x, self.p, self.modulo))

    def __repr__(self):
        return f"iterated_map({self.function.__name__}, x={self.x.tolist()}, p={self.p.tolist()})"


@cache
def _compiled(function, arguments):
    """A user's function with an address, called with these arguments."""
    return _jit.callback(_MAP, function, "x, p, out", arguments)


def iterated_map(f, x, p=(), jac=None, modulo=None):
    """A map ``x -> f(x, p)``, to be analysed as the section of a system is.

    Parameters
    ----------
    f : function ``f(x, p, out)``
        Plain Python function, which is compiled; it writes the image of x into ``out`` (n,).
    x : array_like (n,)
        Where iterations start.
    p : array_like (k,)
        Parameters, which are varied as ``"p[0]"``.
    jac : function ``jac(x, p, out)``, optional
        Writes ``df_i/dx_j`` into ``out`` (n, n). By central differences if not given, which are accurate to some 1e-10 where f changes over
        lengths of 1, or of x.
    modulo : array_like (n,), optional
        Periods of coordinates that are angles; 0, or none at all, of those that are not.

    Returns
    -------
    IteratedMap
        For `nsds.sweep`, `nsds.orbit`, `nsds.continue_orbit`, `nsds.lyapunov` and `nsds.basins`.

    Raises
    ------
    ValueError, TypeError
        What is no function of three arguments, does not compile, or gives no numbers at the start.

    Examples
    --------
    >>> import nsds
    >>> def logistic(x, p, out):
    ...     out[0] = p[0] * x[0] * (1 - x[0])
    >>> orbit = nsds.orbit(nsds.iterated_map(logistic, x=[0.6], p=[2.5]))
    >>> orbit["x"].round(12).tolist(), orbit["multipliers"].real.round(9).tolist()
    ([0.6], [-0.5])
    """
    owner = "iterated_map"
    function, jacobian = getattr(f, "py_func", f), getattr(jac, "py_func", jac)
    for name, given in (("f", function), ("jac", jacobian)):
        if (name == "f" or given is not None) and (not inspect.isfunction(given) or len(inspect.signature(given).parameters) != 3):
            raise TypeError(f"{owner}: {name} must be a function {name}(x, p, out), got {_checks.shortened(given)}")
    x, p = _checks.array(owner, "x", x, n_dims=1), _checks.array(owner, "p", p, n_dims=1)
    if x.size == 0:
        raise ValueError(f"{owner}: x must have at least one entry")
    modulo = np.zeros(x.size) if modulo is None else _checks.array(owner, "modulo", modulo, shape=x.shape)
    if (modulo < 0).any():
        raise ValueError(f"{owner}: modulo must be at least 0, got {modulo.min()}")
    for name, given, out in (("f", function, np.zeros(x.size)), ("jac", jacobian, np.zeros((x.size, x.size)))):
        if given is not None:
            _try_once(owner, name, given, x.copy(), p.copy(), out)
    try:
        return IteratedMap(function, x, p, jacobian, modulo)
    except NumbaError as error:
        raise TypeError(f"{owner}: f or jac does not compile: {error}") from error


def _try_once(owner, name, function, x, p, out):
    """Run a function in Python, where an index out of range is an error; refuse it where it fails or gives no numbers."""
    try:
        result = function(x, p, out)
    except (ArithmeticError, IndexError, ValueError) as error:
        raise ValueError(f"{owner}: {name} fails at the start: {error}") from None
    if result is not None or not np.isfinite(out).all():
        raise ValueError(
            f"{owner}: {name} must write numbers into out and return nothing, got {_checks.shortened(result)} and {out.tolist()}"
        )


@kernel
def _image(address, n, x, p, modulo, out):
    """``f(x)``, angles within their periods. Returns a status."""
    zero = 0.0
    _call(address, (x, p, out))
    for i in range(n):
        if modulo[i] > 0.0:
            out[i] -= modulo[i] * math.floor(out[i] / modulo[i])
        zero += 0.0 * out[i]
    return CONVERGED if zero == 0.0 else NON_FINITE


@kernel
def _differentiate(address, jac, n, x, p, J, high, low):
    """Jacobian of a map, by rows: the user's, or by central differences."""
    if jac != 0:
        _call(jac, (x, p, J))
        return
    for i in range(n):
        at, delta = x[i], _STEP * max(1.0, abs(x[i]))
        x[i] = at + delta
        width = x[i]
        _call(address, (x, p, high))
        x[i] = at - delta
        width -= x[i]
        _call(address, (x, p, low))
        x[i] = at
        for a in range(n):
            J[a * n + i] = (high[a] - low[a]) / width


@kernel
def iterate(first, last, count, skipped, addresses, modulo, x, p, points, columns, growth, log_det, status, spare):
    """count images of x (members, n) with p (members, k); those after ``skipped`` into points (members, images, n).

    columns (members, n k) are multiplied by the derivatives, and made orthonormal where growth (members, k) has columns; log_det is that
    of the derivatives. spare (members, 3 n + 2 n^2).
    """
    n = x.shape[1]
    k = columns.shape[1] // n
    for m in range(first, last):
        state, w = x[m], spare[m]
        image, high, low = view(w, 0, n), view(w, n, n), view(w, 2 * n, n)
        J, product = view(w, 3 * n, n * n), view(w, 3 * n + n * n, n * n)
        for j in range(count):
            if status[m] != CONVERGED:
                break
            if k > 0:
                _differentiate(addresses[0], addresses[1], n, state, p[m], J, high, low)
                multiply(n, k, J, columns[m], product)
                for a in range(n * k):
                    columns[m, a] = product[a]
                log_det[m] += log_of_determinant(n, J, product)
                if growth.shape[1] > 0:
                    orthonormalise(n, k, columns[m], growth[m])
            status[m] = _image(addresses[0], n, state, p[m], modulo, image)
            for i in range(n):
                state[i] = image[i]
                if j >= skipped and j - skipped < points.shape[1]:
                    points[m, j - skipped, i] = image[i]


class Iterates:
    """Iterations of an ensemble of one map; the fields are those of `iterate`."""

    def __init__(self, iterated, states, parameters, n_points=0, n_columns=0, orthonormal=False):
        members, n = np.shape(states)
        self.iterated, self.x, self.p = iterated, np.array(states, float), np.ascontiguousarray(parameters, float)
        self.points = np.full((members, n_points, n), math.nan)
        self.columns = np.zeros((members, n, n_columns))
        self.columns[:] = np.eye(n)[:, :n_columns]
        self.growth = np.zeros((members, n_columns if orthonormal else 0))
        self.log_det, self.status = np.zeros(members), np.zeros(members, np.int64)
        self._spare = np.zeros((members, 3 * n + 2 * n * n))

    def advance(self, count, skipped=0):
        """Take count images of all members."""
        with Interrupts() as interrupts, shares(len(self.x)) as in_shares, interrupts.at_once():
            in_shares(
                lambda first, last: iterate(
                    first, last, count, skipped, self.iterated.addresses(), self.iterated.modulo, self.x, self.p, self.points,
                    self.columns.reshape(len(self.x), -1), self.growth, self.log_det, self.status, self._spare,
                )
            )  # fmt: skip


class IteratedSection:
    """n_periods iterations of a map, as a section of a system is."""

    def __init__(self, owner, iterated, n_periods, path):
        self.owner, self.iterated, self.n_periods, self.period = owner, iterated, n_periods, lambda value: 1.0
        self.place = None if path is None else place_in_map(owner, "parameter", iterated, path)
        self.value = math.nan if path is None else float(iterated.p[self.place])
        self.x, self.n, self.modulo = iterated.x.copy(), iterated.n, iterated.modulo

    def record(self, x, value):
        """The map with its start at x."""
        return self.iterated

    def close(self):
        """Nothing was prepared."""

    def impact_times(self, x, value):
        """A map has no impacts."""
        return np.zeros(0)

    def returns(self, states, values, *, derive=True):
        """See `SectionMap.returns`."""
        p = np.repeat(self.iterated.p[None], len(states), axis=0)
        if self.place is not None:
            p[:, self.place] = values
        run = Iterates(self.iterated, states, p, n_columns=self.n if derive else 0)
        run.advance(self.n_periods)
        nothing = np.zeros(len(states))
        return Returned(run.x, run.columns, run.status, nothing, nothing, nothing + math.inf, run.log_det, nothing, nothing)


def place_in_map(owner, label, iterated, path, letter="p"):
    """Number of the parameter of a map that is named as ``p[i]``, or of the state ``x[i]``."""
    found, size = re.fullmatch(letter + r"\[(\d+)\]", _checks.text(owner, label, path)), getattr(iterated, letter).size
    if found is None or int(found.group(1)) >= size:
        raise ValueError(f"{owner}: {label}: numbers of a map are named '{letter}[0]' to '{letter}[{size - 1}]', got {path!r}")
    return int(found.group(1))


def section_of(owner, system, period, n_periods, scheme, path):
    """The section of a system, or of a map."""
    n_periods = _checks.integer(owner, "n_periods", n_periods, low=1)
    if isinstance(system, IteratedMap):
        if period is not None or scheme is not None:
            raise ValueError(f"{owner}: a map has neither period nor scheme: leave them out")
        return IteratedSection(owner, system, n_periods, path)
    system = one_record(owner, system)
    if period is None:
        raise ValueError(f"{owner}: period is missing: that of what drives the system, a number or a function of the parameter")
    return SectionMap(owner, system, period, n_periods, scheme, path)


def difference(ends, states, modulo):
    """``ends - states`` (members, n), the nearest one of coordinates that are angles."""
    result = ends - states
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = np.where(modulo > 0, np.round(result / modulo), 0.0)
    return result - turns * modulo
