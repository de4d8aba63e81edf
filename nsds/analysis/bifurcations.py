"""Curves of bifurcations of periodic orbits in the plane of two parameters."""

from contextlib import closing

import numpy as np

from nsds import _checks
from nsds.analysis.maps import section_of
from nsds.analysis.orbits import filled, newton, orbit_dtype
from nsds.analysis.paths import (
    DIFFERENCE,
    FAST,
    GROWTH,
    LONGEST,
    UNKNOWN,
    ZERO,
    Path,
    has_complex_pair,
    in_order,
    scale_of,
    tests_of_maps,
)
from nsds.analysis.sections import difference
from nsds.results.description import result_dtype

KINDS = ("fold", "period_doubling", "neimark_sacker")


def continue_bifurcation(system, *, kind, parameters, until, period=None, n_periods=1, step=0.02, smallest_step=1e-7, max_points=500,
                         tol=1e-12, scheme=None):  # fmt: skip
    """The curve in the plane of two parameters on which periodic orbits fold, double their period, or have a Neimark-Sacker bifurcation.

    Parameters
    ----------
    See `nsds.orbit`. The state and the parameters of the system are near such a point, for example of a branch of
        `nsds.continue_orbit`.
        `nsds.continue_orbit`, say.
    kind : str
        "fold", "period_doubling" or "neimark_sacker", as special points of these branches are named.
    parameters : sequence of two str
        The two parameters, as ``("follower.z[0]", "contact.e")``, of maps as ``("p[0]", "p[1]")``. The value of the first is found.
    until : float
        Value of the second one at which the curve ends; it also ends where it is back at the first value.
    period : float, or function of both parameters
        Of the excitation of the system; cycles of autonomous systems are refused.
    step, smallest_step : float
        First, and smallest, distance of points, as a fraction of the interval from the first value of the second parameter to ``until``.
    max_points : int
        Points at most.
    tol : float
        See `nsds.continue_orbit`.

    Returns
    -------
    numpy.ndarray (points,)
        The fields of `nsds.orbit` with parameters (2,), and kind: of points at which another bifurcation is, too, located to rounding,
        "fold", "period_doubling" or "neimark_sacker" (a pair of multipliers with the product 1); "stick", "sliding" or "jump" as in
        `nsds.continue_orbit`; of the last one "until", "max_points", "real" where a pair of complex multipliers becomes real, or "lost"
        where such orbits are no longer found; else empty.

    Raises
    ------
    ValueError
        No such point is near the state of the system.

    See Also
    --------
    nsds.plotting.bifurcation_curve : its picture.

    Examples
    --------
    A ball on a table doubles its period at ``p0**2 = 4 pi**2 (1 - a)**2 + 4 (1 + a)**2``, a = p1.

    >>> import numpy as np, nsds
    >>> def bounce(x, p, out):
    ...     out[0], out[1] = x[0] + x[1], p[1] * x[1] - p[0] * np.cos(x[0] + x[1])
    >>> start = [-np.arccos(-np.pi / 4.3), 2 * np.pi]
    >>> table = nsds.iterated_map(bounce, x=start, p=[4.3, 0.5], modulo=[2 * np.pi, 0])
    >>> curve = nsds.continue_bifurcation(table, kind="period_doubling", parameters=("p[0]", "p[1]"), until=0.8)
    >>> p, a = curve["parameters"].T
    >>> bool(abs(p**2 - 4 * np.pi**2 * (1 - a) ** 2 - 4 * (1 + a) ** 2).max() < 1e-9)
    True
    """
    # 1. arguments
    owner = "continue_bifurcation"
    kind = _checks.choice(owner, "kind", kind, KINDS)
    if not isinstance(parameters, (list, tuple)) or len(parameters) != 2:
        raise ValueError(f"{owner}: parameters must be two texts, got {_checks.shortened(parameters)}")
    names = [_checks.text(owner, f"parameters[{k}]", name) for k, name in enumerate(parameters)]
    if names[0] == names[1]:
        raise ValueError(f"{owner}: parameters must be different from each other, got {_checks.shortened(parameters)}")
    until, tol = _checks.number(owner, "until", until), _checks.number(owner, "tol", tol, above=0.0)
    step = _checks.number(owner, "step", step, 0.0, 1.0, above=0.0)
    smallest_step = _checks.number(owner, "smallest_step", smallest_step, 0.0, step, above=0.0)
    max_points = _checks.integer(owner, "max_points", max_points, low=2)
    # 2. the section, the point of the curve at the first value, and the curve from there
    with closing(section_of(owner, system, period, n_periods, scheme, names)) as section:
        if until == section.values[1]:
            raise ValueError(f"{owner}: until must differ from the value {until} of {names[1]!r}, where the curve begins")
        section.require_parameters()
        section.require(1, until)
        if section.n < 2 and kind == "neimark_sacker":
            raise ValueError(f"{owner}: kind 'neimark_sacker' is of two states at least, and there is one")
        curve = _Curve(section, kind, until, tol)
        return curve.table(*curve.followed(curve.begun(owner), step, smallest_step, max_points))


class _Curve(Path):
    """Curve of bifurcations: u = (x / scale, the first parameter by its size, the second as a fraction of its interval)."""

    def __init__(self, section, kind, until, tol):
        first = section.values
        scale = scale_of(section.x, section.returns(section.x[None], [first]).maps[0])
        super().__init__(section, first, np.array([abs(first[0]) or 1.0, until - first[1]]), tol, scale)
        self.kind, self.own = kind, KINDS.index(kind)

    def begun(self, owner):
        """The point of the curve at the first value of the second parameter."""
        section = self.section
        ahead = np.append(np.zeros(section.n + 1), 1.0)
        # two guesses: the state as given, and the orbit at these parameters
        at_values = newton(section, section.x, section.values, self.tol, 30)[0]
        for x in (section.x, at_values):
            u = np.concatenate([x / self.scale, np.zeros(2)])
            point = self.corrected(u, ahead, ahead)
            if point is not None and (self.kind != "neimark_sacker" or has_complex_pair(point)):
                section.require_branch(*self.parts(point.u))
                section.require_drive(*self.parts(point.u))
                return point
        raise ValueError(
            f"{owner}: no {self.kind.replace('_', ' ')} is found near the state {section.x.tolist()} and the parameters "
            f"{section.values.tolist()}: continue_orbit finds special points, at which curves begin"
        )

    def equations(self, u):
        """(result of the section; residual of the orbit with the test function appended; their derivatives)."""
        # 1. central differences by all unknowns in one call of the section, on an ensemble
        section, n = self.section, self.section.n
        _, values = self.parts(u)
        widths = np.full(n + 2, DIFFERENCE)
        widths[n:] *= np.maximum(1.0, abs(values / self.span))
        around = np.concatenate([u[None], u + np.diag(widths), u - np.diag(widths)])
        states, parameters = around[:, :n] * self.scale, self.first + around[:, n:] * self.span
        # 2. no result where the number of impacts differs within the differences: they would reach across an event
        returned = section.returns(states, parameters)
        if returned.status.any() or not (np.isfinite(returned.ends).all() and np.isfinite(returned.maps).all()):
            return returned, None, None
        if (returned.impacts != returned.impacts[0]).any():
            return returned, None, None
        # 3. residual and test function; derivatives by the state are known from the tangent map, which is more exact
        off = difference(returned.ends, states, section.modulo) / self.scale
        test = np.array([tests_of_maps(M)[self.own] for M in returned.maps])
        slopes = [(each[1 : n + 3] - each[n + 3 :]).T / (2.0 * widths) for each in (off, test)]
        slopes[0][:, :n] = (returned.maps[0] - np.eye(n)) * self.scale / self.scale[:, None]
        return returned, np.append(off[0], test[0]), np.vstack(slopes)

    def tests(self, _u, returned, _derivatives, _direction):
        """Test functions of the other bifurcations."""
        return np.array(tests_of_maps(returned.maps[0]))

    def followed(self, point, step, smallest, max_points):
        """(points, their kinds) of the curve, from the first one on."""
        # 1. next point, with step control
        points, kinds, longest = [point], [""], LONGEST * step
        while len(points) < max_points and kinds[-1] != "until":
            new, step = self.next(point, step, smallest)
            if new is None:
                kinds[-1] = kinds[-1] or "lost"
                break
            # 2. special points in between; where some are not found the step is repeated, half as long
            specials, is_known = self._specials(point, new)
            if not is_known and step >= 2.0 * smallest:
                step *= 0.5
                continue
            for kind, special in specials:
                points.append(special)
                kinds.append(kind)
            # 3. end of the curve: a Neimark-Sacker pair that becomes real, or the end of the interval
            if self.kind == "neimark_sacker" and not has_complex_pair(new):
                kinds[-1] = kinds[-1] or "real"
                break
            points.append(new)
            kinds.append("until" if new.u[-1] in (0.0, 1.0) else "")
            point, step = new, max(smallest, min(step * (GROWTH if new.n_iter <= FAST else 1.0), longest))
        kinds[max_points - 1 :] = [kinds[max_points - 1] or "max_points"] if len(points) >= max_points else []
        return points[:max_points], kinds[:max_points]

    def _specials(self, a, b):
        """(special points between two, in their order: [(kind, point), ...]; whether all are found)."""
        # 1. zeros of the other test functions; a jump of one is no zero of it
        found, jumps = [], []
        for k, kind in enumerate(KINDS):
            if k == self.own or not a.tests[k] * b.tests[k] < 0.0:
                continue
            special, how = self.located(a, b, k)
            if how == UNKNOWN:
                return [("jump", b)], False
            if 0.0 <= special.u[-1] <= 1.0:
                one = np.linalg.norm(special.u - a.u), kind if how == ZERO else "jump", special
                (found if how == ZERO else jumps).append(one)
        # 2. a phase of sticking or sliding begins or ends
        if a.returned.events[0] != b.returned.events[0]:
            special = self.where_events_change(a, b)
            if special is not None:
                found.append((np.linalg.norm(special.u - a.u), self.section.phases, special))
        return in_order(found, jumps), True

    def table(self, points, kinds):
        """The table of points."""
        dtype = result_dtype([*orbit_dtype(self.section.n, ("parameters", "<f8", (2,))).descr, ("kind", "U16")])
        rows = np.zeros(len(points), dtype)
        for k, point in enumerate(points):
            filled(rows, self.section, k, *self.parts(point.u), point.returned, point.n_iter)
            rows[k]["kind"] = kinds[k]
        return rows
