"""Iterated maps stated by users, with the interface of sections of systems: iterations, derivatives, borders."""

import inspect
import math
import re
import time
from functools import cache, partial

import numpy as np
from numba import float64, types

from nsds import _checks, _jit
from nsds._jit import kernel, view
from nsds._jit.cache import fingerprint
from nsds._jit.mistakes import FAILURES, users_callback
from nsds.analysis.parameters import label_of, one_record
from nsds.analysis.sections import Returned, SectionMap
from nsds.analysis.tangent import log_of_determinant, multiply, orthonormalise
from nsds.schemes.run.cores import shares
from nsds.schemes.run.interrupts import Interrupts, next_chunk
from nsds.status import CONVERGED, NON_FINITE

_vector = float64[::1]
_MAP = types.void(_vector, _vector, _vector)
_call = _jit.caller(_MAP)
_WIDEST, _NARROWER, _WIDTHS = 2.0**-6, 2.0**-4, 16  # finite differences: the first, relative to 1 or the variable; factor; their number
_SECONDS = 1e-7  # for an image, about
_FIRST = 2**16  # images up to the first check for Ctrl-C, at most
_AGREE, _NOISE = 1e-9, 2.0**-48  # of the derivative: accepted difference of extrapolations; of the values: their noise


class IteratedMap:
    """A map ``x -> f(x, p)`` stated by a user: see `iterated_map`."""

    def __init__(self, function, x, p, jac, modulo, border):
        self.function, self.jac, self.x, self.p, self.modulo, self.border, self.n = function, jac, x, p, modulo, border, x.size
        self.turns = modulo if modulo.any() else None
        self.callbacks = [_compiled("f", function, "x, p, cleared(out)")]
        if jac is not None:
            self.callbacks.append(_compiled("jac", jac, "x, p, matrix(cleared(out), (x.size, x.size))"))

    def addresses(self):
        """Addresses of the map and its Jacobian; 0 without a Jacobian."""
        return tuple(np.uintp(one.address) for one in self.callbacks) + (np.uintp(0),) * (2 - len(self.callbacks))

    def __reduce__(self):
        return IteratedMap, (self.function, self.x, self.p, self.jac, self.modulo, self.border)

    def identity(self):
        """Bytes that determine its images and where they start."""
        functions = [fingerprint(one, {}) for one in (self.function, self.jac) if one is not None]
        return repr(functions).encode() + b"".join(array.tobytes() for array in (self.x, self.p, self.modulo))

    def __repr__(self):
        return f"iterated_map({self.function.__name__}, x={self.x.tolist()}, p={self.p.tolist()})"


@cache
def _compiled(name, function, arguments):
    """A user's function with an address, called with these arguments."""
    about = f"iterated_map: the function {function.__qualname__} does not compile as {name}(x, p, out)"
    return users_callback(about, _MAP, function, "x, p, out", arguments)


def iterated_map(f, x, p=(), jac=None, modulo=None, border=None):
    """A map ``x -> f(x, p)``, to be analysed like the section of a system.

    Parameters
    ----------
    f : function ``f(x, p, out)``
        Plain Python function, which is compiled; it writes the image of x into ``out`` (n,).
    x : array_like (n,)
        Where iterations start.
    p : array_like (k,)
        Parameters, which are varied as ``"p[0]"``.
    jac : function ``jac(x, p, out)``, optional
        Writes ``df_i/dx_j`` into ``out`` (n, n). By finite differences if not given, as short as the map requires, to some 1e-12.
    modulo : array_like (n,), optional
        Periods of coordinates that are angles; 0, or none at all, of those that are not.
    border : function ``border(x, p, out)``, optional
        For piecewise maps: writes into ``out`` (1,) a number that is zero where another piece begins, for several borders their product.
        `nsds.continue_orbit` uses it to find border collisions of orbits.

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

    The orbits of three points of Nordmark's square-root map end where one of them meets its border, at rho = 1/9:

    >>> def nordmark(x, p, out):
    ...     out[0] = 0.5 * x[0] + p[0] if x[0] <= 0 else p[0] - x[0] ** 0.5
    >>> def border(x, p, out):
    ...     out[0] = x[0]
    >>> start = nsds.orbit(nsds.iterated_map(nordmark, x=[0.05], p=[0.08]), n_periods=3)["x"]
    >>> of_three = nsds.iterated_map(nordmark, x=start, p=[0.08], border=border)
    >>> end = nsds.continue_orbit(of_three, parameter="p[0]", until=0.2, n_periods=3)[-1]
    >>> str(end["kind"]), bool(abs(end["parameter"] - 1 / 9) < 1e-12)
    ('border', True)
    """
    # 1. functions and their arguments
    owner = "iterated_map"
    function, jacobian, border = (getattr(one, "py_func", one) for one in (f, jac, border))
    for name, given in (("f", function), ("jac", jacobian), ("border", border)):
        if (name == "f" or given is not None) and (not inspect.isfunction(given) or len(inspect.signature(given).parameters) != 3):
            raise TypeError(f"{owner}: {name} must be a function {name}(x, p, out), got {_checks.shortened(given)}")
    # 2. state, parameters, angles
    x, p = _checks.array(owner, "x", x, n_dims=1), _checks.array(owner, "p", p, n_dims=1)
    if x.size == 0:
        raise ValueError(f"{owner}: x must have at least one entry")
    modulo = np.zeros(x.size) if modulo is None else _checks.array(owner, "modulo", modulo, shape=x.shape)
    if (modulo < 0).any():
        raise ValueError(f"{owner}: modulo must be at least 0, got {modulo.min()}")
    # 3. a trial in Python, where mistakes have messages
    for name, given, shape in (("f", function, x.size), ("jac", jacobian, (x.size, x.size)), ("border", border, 1)):
        if given is not None:
            try_once(owner, name, given, x.copy(), p.copy(), np.zeros(shape))
    return IteratedMap(function, x, p, jacobian, modulo, border)


def try_once(owner, name, function, *arguments):
    """Runs a function in Python, where an index out of range is an error; refuses it if it fails or writes no numbers into the last one."""
    out = arguments[-1]
    try:
        result = function(*arguments)
    except FAILURES as error:
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
def slopes(address, n, x, p, varied, i, out, spare):
    """``df_a/dv_i`` into out (n,), v = varied being x or p, by central differences, shortened until extrapolations agree.

    Differences D of half widths h, h/2 and h/4 are extrapolated twice (Richardson's rule), ``R = (16 E_2 - E_1)/15`` of
    ``E_1 = (4 D_2 - D_1)/3``, ``E_2 = (4 D_3 - D_2)/3``; |R - E_2| estimates the error of E_2, that of R is smaller. Near a
    singularity of the map, or a border, h must be less than its distance; for each component the R of the least error counts.
    spare (6 n).
    """
    at = varied[i]
    high, low, least = view(spare, 0, n), view(spare, n, n), view(spare, 2 * n, n)
    first, second, third = view(spare, 3 * n, n), view(spare, 4 * n, n), view(spare, 5 * n, n)
    h = _WIDEST * max(1.0, abs(at))
    for a in range(n):
        out[a], least[a] = math.nan, math.inf
    # 1. three central differences; the width is that of the rounded arguments
    for _ in range(_WIDTHS):
        for k in range(3):
            D = view(spare, (3 + k) * n, n)
            varied[i] = at + h * 0.5**k
            width = varied[i]
            _call(address, (x, p, high))
            varied[i] = at - h * 0.5**k
            width -= varied[i]
            _call(address, (x, p, low))
            varied[i] = at
            for a in range(n):
                D[a] = (high[a] - low[a]) / width
        # 2. extrapolate, and keep the best of each component
        agree = True
        for a in range(n):
            E_1, E_2 = (4.0 * second[a] - first[a]) / 3.0, (4.0 * third[a] - second[a]) / 3.0
            R, noise = (16.0 * E_2 - E_1) / 15.0, _NOISE * abs(high[a]) / h
            error = abs(R - E_2) + noise
            if error < least[a]:
                out[a], least[a] = R, error
            agree &= error <= max(_AGREE * abs(R), 2.0 * noise)
        # 3. done when all components agree to the accuracy or to their noise
        if agree:
            break
        h *= _NARROWER


@kernel
def _differentiate(addresses, n, x, p, place, J, slope, spare):
    """Jacobian of a map, by rows, the user's or by finite differences; by ``p[place]``, unless negative, into slope (n,)."""
    if addresses[1] != 0:
        _call(addresses[1], (x, p, J))
    else:
        for i in range(n):
            slopes(addresses[0], n, x, p, x, i, slope, spare)
            for a in range(n):
                J[a * n + i] = slope[a]
    if place >= 0:
        slopes(addresses[0], n, x, p, p, place, slope, spare)


@kernel
def iterate(first, last, count, skipped, addresses, modulo, place, x, p, points, columns, drift, growth, log_det, status, spare):
    """Iterates x (members, n) count times with p (members, k); images after ``skipped`` go into points (members, images, n).

    columns (members, n k) are multiplied by the derivatives, and orthonormalised if growth (members, k) has columns; log_det is the
    logarithm of the determinant. drift (members, n) is the derivative by ``p[place]``: ``drift <- J drift + df/dp``.
    spare (members, 8 n + 2 n^2).
    """
    n = x.shape[1]
    k = columns.shape[1] // n
    for m in range(first, last):
        state, w = x[m], spare[m]
        image, slope, differences = view(w, 0, n), view(w, n, n), view(w, 2 * n, 6 * n)
        J, product = view(w, 8 * n, n * n), view(w, 8 * n + n * n, n * n)
        for j in range(count):
            if status[m] != CONVERGED:
                break
            # 1. derivatives at the state before the image
            if k > 0:
                _differentiate(addresses, n, state, p[m], place, J, slope, differences)
                if place >= 0:
                    multiply(n, 1, n, J, drift[m], product)
                    for a in range(n):
                        drift[m, a] = product[a] + slope[a]
                multiply(n, k, n, J, columns[m], product)
                for a in range(n * k):
                    columns[m, a] = product[a]
                # 2. growth of volumes and of vectors
                log_det[m] += log_of_determinant(n, J, product)
                if growth.shape[1] > 0:
                    orthonormalise(n, k, columns[m], growth[m], log_det[m])
            # 3. image
            status[m] = _image(addresses[0], n, state, p[m], modulo, image)
            for i in range(n):
                state[i] = image[i]
                if j >= skipped and j - skipped < points.shape[1]:
                    points[m, j - skipped, i] = image[i]


class Iterates:
    """Iterations of an ensemble of one map; the fields are those of `iterate`."""

    def __init__(self, iterated, states, parameters, n_points=0, n_columns=0, orthonormal=False, place=-1):
        members, n = np.shape(states)
        self.iterated, self.x, self.p, self.place = iterated, np.array(states, float), np.ascontiguousarray(parameters, float), place
        self.points = np.full((members, n_points, n), math.nan)
        self.columns, self.drift = np.zeros((members, n, n_columns)), np.zeros((members, n))
        self.columns[:] = np.eye(n)[:, :n_columns]
        self.growth = np.zeros((members, n_columns if orthonormal else 0))
        self.log_det, self.status = np.zeros(members), np.zeros(members, np.int64)
        self._spare = np.zeros((members, 8 * n + 2 * n * n))

    def advance(self, count, skipped=0):
        """Computes count images of all members."""
        done, n = 0, max(1, _FIRST // len(self.x))
        with Interrupts() as interrupts, shares(len(self.x)) as in_shares:
            while done < count:
                began, n = time.perf_counter(), min(n, count - done)
                with interrupts.at_once():
                    in_shares(partial(self._iterate, done, n, skipped), _SECONDS * len(self.x) * n)
                interrupts.raise_noted()
                done, n = done + n, next_chunk(n, time.perf_counter() - began)

    def _iterate(self, done, n, skipped, first, last):
        """n images of some members, after the ``done`` first ones."""
        iterate(
            first, last, n, skipped - done, self.iterated.addresses(), self.iterated.modulo, self.place, self.x, self.p, self.points,
            self.columns.reshape(len(self.x), -1), self.drift, self.growth, self.log_det, self.status, self._spare,
        )  # fmt: skip


class IteratedSection:
    """n_periods iterations of a map, with the interface of a section of a system."""

    met, rows = "border", None  # see `SectionMap`

    def __init__(self, owner, iterated, n_periods, names):
        self.owner, self.iterated, self.n_periods, self.period = owner, iterated, n_periods, lambda *_: 1.0
        self.names, self.places = names, [place_in_map(owner, label_of(names), iterated, name) for name in names]
        self.values = iterated.p[self.places]
        self.x, self.n, self.modulo = iterated.x.copy(), iterated.n, iterated.turns

    def require(self, _k, _value):
        """No operation: parameters of maps have no range."""

    def require_parameters(self):
        """No operation: maps name no states as parameters."""

    def require_drive(self, _x, _values):
        """No operation: maps have no excitation."""

    def require_branch(self, _x, _values):
        """No operation: images of maps have one branch."""

    def follow(self, x, values):
        """See `SectionMap.follow`; maps have one branch."""
        return self.returns(x[None], [values], derive=False)

    def strays(self, _x, _values):
        """0: the next images are those of the orbit."""
        return 0.0

    def over(self, n_periods):
        """Section of orbits of another period of the same map."""
        return IteratedSection(self.owner, self.iterated, n_periods, self.names)

    def home(self, x, values):
        """See `SectionMap.home`."""
        return x, values, None

    def away(self, x, _values):
        """See `SectionMap.away`."""
        return x

    def impact_times(self, _x, _values):
        """Empty: maps have no impacts."""
        return []

    def other_times(self, _x, _values):
        """Empty: there are no times between images."""
        return []

    def close(self):
        """No operation: nothing was prepared."""

    def margins(self, x, values, corners):
        """Values of the border at the points of the orbit."""
        if self.iterated.border is None:
            return []
        run = Iterates(self.iterated, x[None], self._parameters([values]), n_points=self.n_periods)
        run.advance(self.n_periods)
        out = np.zeros((self.n_periods, 1))
        for point, number in zip(run.points[0], out, strict=True):
            self.iterated.border(point, run.p[0], number)
        return out[:, 0].tolist()

    def _parameters(self, values):
        p = np.repeat(self.iterated.p[None], len(values), axis=0)
        p[:, self.places] = values
        return p

    def returns(self, states, values, *, derive=True):
        """See `SectionMap.returns`."""
        return self._run(states, values, self.n if derive else 0, -1)[0]

    def resolved(self, _x, _values, returned):
        """See `SectionMap.resolved`; derivatives of maps are exact, or differences."""
        return returned._replace(error=np.zeros(1))

    def with_slopes(self, x, values, delta):
        """See `SectionMap.with_slopes`; the derivative is carried along the iterations."""
        returned, run = self._run(x[None], [values], self.n, self.places[0])
        return returned, run.drift[0]

    def _run(self, states, values, n_columns, place):
        run = Iterates(self.iterated, states, self._parameters(values), n_columns=n_columns, place=place)
        run.advance(self.n_periods)
        nothing = np.zeros(len(states))
        returned = Returned(run.x, run.columns, run.status, nothing, nothing, nothing + math.inf, run.log_det, nothing, nothing)
        return returned, run


def place_in_map(owner, label, iterated, path, letter="p"):
    """Index of the parameter of a map that is named as ``p[i]``, or of the state ``x[i]``."""
    found, size = re.fullmatch(letter + r"\[(\d{1,9})\]", _checks.text(owner, label, path)), getattr(iterated, letter).size
    if found is None or int(found.group(1)) >= size:
        last, given = f"{letter}[{size - 1}]", _checks.shortened(path)
        raise ValueError(f"{owner}: {label}: numbers of a map are named '{letter}[0]' to '{last}', got {given}")
    return int(found.group(1))


def section_of(owner, system, period, n_periods, scheme, names, h=None):
    """Section of a system, or of a map."""
    n_periods = _checks.integer(owner, "n_periods", n_periods, low=1)
    if isinstance(system, IteratedMap):
        if period is not None or scheme is not None or h is not None:
            raise ValueError(f"{owner}: a map has neither period nor scheme nor step: leave them out")
        return IteratedSection(owner, system, n_periods, names)
    system = one_record(owner, system)
    if period is None:
        raise ValueError(f"{owner}: period is missing: that of what drives the system, a number or a function of the parameter")
    return SectionMap(owner, system, period, n_periods, scheme, names, h)
