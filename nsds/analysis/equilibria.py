"""Static equilibria by quasi-static motion: implicit steps from rest that grow until the forces balance."""

import math
import warnings

import numpy as np

from nsds import _checks, solvers
from nsds.analysis.balance import balance_of
from nsds.collision.kinds import thickness_of
from nsds.model.collisions import with_room
from nsds.model.functions import offered
from nsds.model.laws import LAWS, is_force, rows_of_contact
from nsds.model.records import copied, model_of
from nsds.model.system_kinds import CONTROL, FIRST_ORDER, NEWTON_EULER, collisions_of, family, split
from nsds.model.validation import runnable
from nsds.schemes.options.projection import moreau_jean_combined_projection
from nsds.schemes.run.simulation import simulate
from nsds.schemes.run.stepping import stepper
from nsds.solvers.workspaces import left_at_interrupts
from nsds.status import ACCELERATING, CONVERGED, MAX_ITER, NEWTON, advice, has_failed

_PROBE = -10  # forces are first evaluated in a step of 2^-10 s
_SMALL = 1e-3  # of the lengths of a system: displacement in the first step
_FASTER, _SLOWER = 2, 2  # powers of 2 by which steps grow, and shrink after a failure
_PATIENCE = 6  # steps of the longest length that succeeded before a longer one is tried
_NOTHING = 1e-12  # of forces: zero
_LOST = 2.0**-49  # of forces on other coordinates: zero
_UNDONE = 0.5  # of a step: where the projection leaves less of two steps in a row, they are too long for the gaps that they close
_LEAVES = 1e3  # of the residual: a step that raises it so is not accepted at once
_FALLS = 0.7  # of the residual: a step that falls below it is accepted, even if it turns back
_GROWTH, _SHRINKAGE = 80, 40  # powers of 2 between the first step and the longest, and the shortest
_SHARE = 0.01  # of the tolerance: tolerance of the default solver of a step
_BRIEF = 10  # powers of 2 by which the last step is shorter than the first: it has no contacts but the closed ones
_TURN = 0.5  # rad: largest rotation of a body in a step
_FARTHEST = 1e9  # sizes of a system: a larger displacement in a step does not come to rest
_FAR = 2.0  # multiple of the intended displacement at which a step is repeated
_ROUNDING = 16 * 2.0**-52  # of the size of a system: displacement that is rounding
_STEADY = 0.1  # of its largest residual: a search that ends with more is accelerating, not slow
_NEWTON_TOL, _CLOSED = 1e-12, 1e-11  # of the steps; of the lengths of a system, tolerance of closed gaps
_KEPT = 8  # lengths of steps that stay prepared
_FIRST = -100, 30  # powers of 2 between which the first step is
# Forms of laws that constrain a velocity, for contacts the normal one.


def equilibrium(system, *, tol=1e-9, max_iter=2000, h=None, solver=None, on_failure="raise", functions=None):
    """The static equilibrium to which slow motion from the positions of a system leads, with the constraint and contact forces.

    Quasi-static motion: implicit steps of Moreau–Jean with a projection of the positions, each of which begins at rest,
    ``M (q_{k+1} - q_k) / h^2 = F(q_{k+1}) + H^T lambda`` with the laws of contacts for ``(q_{k+1} - q_k) / h``, and which grow until they
    are those of Newton's method for ``0 = F(q) + H^T lambda``. Without friction the potential energy decreases: a stable equilibrium is
    found, of several the near one. With friction it is the first place where everything sticks. An equilibrium is not left, even
    if it is unstable. Velocities of the system and restitution play no part.

    Parameters
    ----------
    system : numpy.ndarray
        A record of Lagrangian systems or rigid bodies, or an ensemble; it is not changed. Functions of time have their values at its t,
        controls u those of the record.
    tol : float
        Largest residual: sum of the forces on a body, or a Lagrangian system, relative to the sum of their magnitudes, all in the
        norm ``(f . M^-1 f)^(1/2)`` with the diagonal of the mass; in a short step from the positions that are returned.
    max_iter : int
        Steps.
    h : float, optional
        The first step (s), short against the time in which the system would move. By default the unbalanced forces would move it in
        that time by a thousandth of its coordinates and gaps, of rigid bodies of their radius of gyration.
    solver : str or numpy.ndarray, optional
        See `nsds.simulate`; by default the usual one with a tolerance of a hundredth of tol.
    on_failure : "raise", "warn" or "continue"
        Behaviour if none is found: see Raises; or the record has the positions where the search ended, and its status.
    functions : sequence of functions, optional
        See `nsds.simulate`.

    Returns
    -------
    numpy.ndarray
        The record with new q and y, and ``v = 0``. lambda of interactions and p of bodies are *forces* (N, N m), not impulses. status
        (see `nsds.advice`), n_iter, the number of steps, and residual. Records of `nsds.collisions` that run out of room come back larger.

        Where forces are not unique, as those of redundant supports, joints have multipliers of least norm, and contacts those
        that the solver finds first.

    Raises
    ------
    ValueError, TypeError
        Arguments that do not fit; first-order systems, sampled controls, and constraints that move, as then nothing is at rest.
    ValueError
        No equilibrium is found. The message names a part that keeps accelerating, as a free body under its weight or a block on a slope
        that is too steep for its friction; its status is ACCELERATING.

    Notes
    -----
    Bodies turn by at most a radian in a step, and those with shapes move by at most half the least thickness of these, so that they do not
    tunnel. A step against the force at its start is repeated with a shorter length: it leads to a maximum.
    References: [Notes], 10.3 and chapter 13, for the steps; Kelley and Keyes, SIAM J. Numer. Anal. 35 (1998) 508–523, for growing steps on
    a path to a steady state.

    Examples
    --------
    A ladder of 10 kg leans on a smooth wall and stands on a rough floor, which is more than steep enough:

    >>> import numpy as np, nsds
    >>> def ends(q, z, out):
    ...     out[0], out[1] = q[1] - np.sin(q[2]), q[0] + np.cos(q[2])  # of the lower one height and way from the wall
    >>> def wall(q, z, out):
    ...     out[0] = q[0] - np.cos(q[2])  # of the upper one
    >>> system = nsds.system(
    ...     ladder=nsds.lagrangian([10.0, 10.0, 10 / 3], fext=[0, -98.1, 0], q=[np.cos(1.2), np.sin(1.2), 1.2], v=[0, 0, 0]),
    ...     floor=nsds.interaction(nsds.scleronomous(ends, m=2), nsds.newton_impact_friction(e_n=0.0, mu=0.4), on="ladder"),
    ...     wall=nsds.interaction(nsds.scleronomous(wall, m=1), nsds.newton_impact(e=0.0), on="ladder"),
    ... )
    >>> found = nsds.equilibrium(system)
    >>> found["floor"]["lambda"].round(2).tolist(), float(found["wall"]["lambda"].round(2))  # 98.1, and 98.1 / (2 tan 1.2)
    ([98.1, -19.07], 19.07)
    """
    # 1. arguments
    owner = "equilibrium"
    offered(owner, functions)
    tol, max_iter = _checks.number(owner, "tol", tol, above=0.0), _checks.integer(owner, "max_iter", max_iter, low=1)
    h = None if h is None else _checks.number(owner, "h", h, *(2.0**k for k in _FIRST))
    _checks.choice(owner, "on_failure", on_failure, ("raise", "warn", "continue"))
    records, results = runnable(owner, system), []
    _require_rest(owner, records)
    # 2. one search for each member
    for m, record in enumerate(records.reshape(-1)):
        result, message = _Search(owner, record, tol, max_iter, h, solver).run()
        message = f"{owner}: {'' if records.ndim == 0 else f'member {m}: '}{message}"
        if result["status"] != CONVERGED and on_failure == "raise":
            raise ValueError(message)
        if result["status"] != CONVERGED and on_failure == "warn":
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        results.append(result)
    return _joined(results).reshape(records.shape)


def _require_rest(owner, records):
    """Refuses records in which something is never at rest."""
    model = model_of(records)
    systems, _, controls = split(model)
    if family(model) == FIRST_ORDER:
        raise ValueError(
            f"{owner}: expected a record of Lagrangian systems or rigid bodies, got first-order ones; a state in which these stay is where "
            "nsds.simulate with nsds.euler_moreau(theta=1.0) and long steps ends"
        )
    if controls:
        raise ValueError(f"{owner}: '{controls[0][0]}' is a {CONTROL}, which acts in time; leave it out and set u of what it writes")
    for name, kind in systems:
        if kind == "rigid_bodies" and (np.isinf(records[name]["mass"]) & (records[name]["v"] != 0).any(axis=-1)).any():
            raise ValueError(f"{owner}: '{name}' has a body of infinite mass that moves, which nothing brings to rest; set its v to 0")


def _joined(results):
    """Array of records; those of detected contacts get the room of the largest."""
    names = [name for name, *_ in collisions_of(model_of(results[0]))]
    rooms = {name: max(result.dtype[name]["a"].shape[0] for result in results) for name in names}
    return np.array([with_room(result, rooms) if names else result for result in results])


class _Pace:
    """Step control, lengths 2^k: steps grow up to the length at which one has failed, and after some successes beyond."""

    def __init__(self, k, most=math.inf):
        self.k, self.most, self.n_at_most, self.n_shortened = k, most, 0, 0

    def shorten(self):
        """After a step that is to be repeated: shorter, by more at each repetition."""
        self.n_shortened += 1
        self.most, self.n_at_most, self.k = self.k - 1, 0, self.k - _SLOWER * self.n_shortened

    def lengthen(self, longest):
        """After an accepted step; longest: bound of the next one."""
        self.n_shortened = 0
        if self.k >= self.most:
            self.n_at_most += 1
            self.most, self.n_at_most = (self.most + 1, 0) if self.n_at_most >= _PATIENCE else (self.most, self.n_at_most)
        self.k = min(self.k + _FASTER, self.most, longest)


class _Search:
    """Search for the equilibrium of one record, in steps whose lengths are powers of 2, each prepared once."""

    def __init__(self, owner, record, tol, max_iter, h, solver):
        self.owner, self.given, self.tol, self.max_iter, self.h = owner, record, tol, max_iter, h
        self.solver = solvers.solver(tol=_SHARE * min(tol, 1.0)) if solver is None else solver
        model = model_of(record)
        self.systems, self.interactions, _ = split(model)
        self.collisions = [name for name, *_ in collisions_of(model)]
        self.is_rigid, self.t, self.steppers = family(model) == NEWTON_EULER, float(record["t"]), {}

    def run(self):
        """(record at the end of the search, message)."""
        # 1. a short step from rest shows gaps, velocities and lengths; it is not the first row, so that gaps at the start are closed
        h, start = 2.0**_PROBE, self.rested(self.given)
        start["t0"], start["step"] = self.t - h, 1  # not the first row: what overlaps, or is apart, at the start is mended
        rows = simulate(start, t_end=self.t + h, h=h, scheme=_steps(1.0), solver=self.solver, on_failure="continue", progress=False)
        self.require_still(rows[0])
        # 2. lengths of the system, then the march
        self.size, self.reach, self.way = self.lengths(rows[0])
        self.scheme = _steps(self.size)
        self.sizes = self.sizes_of(start)
        return self.march(start, self.first_of(start))

    def rested(self, record):
        """Copy of a record at rest, without multipliers."""
        record = copied(record)
        for name, _ in self.systems:
            record[name]["v"] = 0.0
        for name in (*(name for name, *_ in self.interactions), *self.collisions):
            record[name]["lambda"] = 0.0
        return record

    def require_still(self, row):
        """Refuses moving constraints: equations, and contacts along their normals; tangential velocities of the support are allowed."""
        for name, _, law, *_ in self.interactions:
            if LAWS[law].treatment.is_equation or LAWS[law].is_one_sided:
                speed = abs(row[name]["ydot"].reshape(-1)[:: rows_of_contact(law, self.given.dtype[name].base)]).max()
                if speed > 0.0:
                    raise ValueError(f"{self.owner}: '{name}' has ydot = {speed:.6g} where all parts are at rest: there is no equilibrium")

    def lengths(self, row):
        """(size of the system, reference length of the first displacement, longest displacement of a step)."""
        # coordinates and gaps of Lagrangian systems
        if not self.is_rigid:
            coordinates = [*(row[name]["q"] for name, _ in self.systems), *(row[name]["y"] for name, *_ in self.interactions)]
            size = max(abs(each).max() for each in coordinates) or 1.0
            return size, size, math.inf
        # rigid bodies: radii of gyration and thicknesses of shapes
        bodies = [self.given[name].reshape(-1) for name, _ in self.systems]
        thickness = min((thickness_of(self.given[name]).min() for name in self.collisions), default=math.inf)
        least = min(thickness, *(_gyration(each) for each in bodies))
        least = least if least < math.inf else 1.0
        return max(least, *(abs(each["q"][:, :3]).max() for each in bodies)), least, 0.25 * thickness

    def sizes_of(self, record):
        """Magnitudes of the coordinates of Lagrangian systems, which have units of their own."""
        return abs(np.concatenate([record[name]["q"].reshape(-1) for name, _ in self.systems]))

    def first_of(self, start):
        """Exponent of the first step, from the largest acceleration in a short one."""
        if self.h is not None:
            return math.floor(math.log2(self.h))
        for k in range(_PROBE, _PROBE - _SHRINKAGE, -_SLOWER):
            probe = self.step(start, k)
            if not has_failed(probe["status"]):
                pull = balance_of(probe, 2.0**k).pull.max()
                k = math.floor(0.5 * math.log2(_SMALL * self.reach / pull)) if pull > 0.0 else _PROBE
                return min(max(k, _FIRST[0]), _FIRST[1])
        return _PROBE

    def step(self, record, k):
        """Record after a step of 2^k from rest, which ends at the time of the given record."""
        h, record = 2.0**k, self.rested(record)
        record["t"], record["t0"], record["step"] = self.t - h, self.t - 2.0 * h, 1
        # prepared steppers are kept, the most recent ones
        if k not in self.steppers:
            for old in list(self.steppers)[: -_KEPT + 1]:
                del self.steppers[old]
            try:
                self.steppers[k] = stepper(record, h, scheme=self.scheme, solver=self.solver, on_failure="continue")
            except ValueError:  # M + h^2 K is singular
                if not self.steppers:
                    raise
                record["status"] = NEWTON
                return record
        return left_at_interrupts(math.inf, self.steppers[k], record)

    def march(self, record, first):
        """(record, message): steps until one is in balance, confirmed by a short step."""
        pace, before, is_shorter, is_undone, seen = _Pace(first), None, False, False, None
        largest, forces, last = 0.0, 0.0, math.inf
        # 1. a step; one that fails or leads too far is repeated with a shorter length
        for n_iter in range(1, self.max_iter + 1):
            k = pace.k
            new = self.step(record, k)
            found = None if has_failed(new["status"]) else balance_of(new, 2.0**k)
            if found is None or self.is_far(found, k):
                pace.shorten()
                if pace.k < first - _SHRINKAGE:
                    message = f"no step succeeds, however short: {advice(int(new['status']))}"
                    return self.result(self.rested(record), first, new["status"], n_iter, math.nan), message
                continue
            # 2. residual, and whether the motion turns back
            forces, way, seen = np.maximum(forces, found.total), self.moved(record, new), (found, k)
            self.sizes = np.maximum(self.sizes, self.sizes_of(new))
            residual = self.residual(found, way, k, forces)
            largest = max(largest, residual)
            turns_back = before is not None and before @ found.momentum < 0.0
            moves = abs(way).max() > _SMALL * self.reach
            # 3. converged: a short step from there decides, as a long one may rest on contacts that are not closed
            if residual <= self.tol and not (turns_back and moves):
                brief = first - _BRIEF
                settled = self.step(new, brief)
                if not has_failed(settled["status"]):
                    residual = self.residual(balance_of(settled, 2.0**brief), self.moved(new, settled), brief, forces)
                    if residual <= self.tol:
                        return self.result(settled, brief, CONVERGED, n_iter, residual), ""
                shorter = max(brief, k - 1)  # the step has seen a contact that is not closed
                record, before, last, pace = new, None, math.inf, _Pace(shorter, shorter)
            # 4. turned back with a larger residual, or left what was nearly in balance: the step has passed the equilibrium, or closed
            # contacts that are open there, and is repeated
            elif not is_shorter and ((turns_back and (moves or residual > _FALLS * last)) or residual > _LEAVES * last):
                is_shorter = True
                pace.shorten()
            # 5. no end in sight: the system accelerates
            elif 2.0**k * found.speed.max() > _FARTHEST * self.size or k + _FASTER > first + _GROWTH:
                break
            # 6. accepted; the length grows unless the projection has undone the displacement
            else:
                was_undone, is_undone = is_undone, found.momentum @ way < _UNDONE * 2.0**k * (found.momentum @ found.v)
                record, before, last, is_shorter = new, found.v, residual, False
                if was_undone and is_undone and k > first:
                    pace.shorten()
                else:
                    pace.lengthen(k if turns_back or is_undone else self.longest(found, k))
        return self.without_rest(record, first, n_iter, seen, largest)

    def residual(self, found, way, k, forces):
        """Largest relative residual of the forces; forces: the largest magnitudes that have acted on each body or coordinate so far.

        On one at rest with no forces but rounding, as one held by a spring alone, the residual is relative to the forces that it
        had, or that others have; or, if forces of that magnitude would move it in the step and do not, the ratio of displacements. Other
        coordinates may have other units: forces beside theirs are nothing only where all that it ever had are rounding beside these.
        """
        # 1. displacements in lengths: rotations times the reference length
        ways = np.maximum(abs(way), 2.0**k * abs(found.v)) * (np.tile([1.0] * 3 + [self.reach] * 3, forces.size) if self.is_rigid else 1.0)
        ways, most, ratio = np.maximum.reduceat(ways, found.first), 4.0**k * found.pull, found.ratio
        of_others = np.maximum(forces, found.total.max())
        largest = of_others if self.is_rigid else np.where(forces > _LOST * of_others, forces, of_others)
        # 2. both exceptions
        is_nothing = found.left + found.total <= _NOTHING * largest
        sizes, reaches = (self.size, self.reach) if self.is_rigid else (self.sizes, self.sizes)
        stays = (most > 0.0) & (most >= 0.1 * _SMALL * reaches) & (ways <= _ROUNDING * sizes)
        ratio[is_nothing] = found.left[is_nothing] / largest[is_nothing] if is_nothing.any() and largest.max() > 0.0 else 0.0
        ratio[stays] = np.minimum(ratio[stays], ways[stays] / most[stays])
        return ratio.max()

    def moved(self, before, after):
        """Displacement in all coordinates of velocity between two records, with rotations below a radian."""
        ways = []
        for name, _ in self.systems:
            q, q_new = before[name]["q"], after[name]["q"]
            if self.is_rigid:
                p, p_new = q[..., 3:], q_new[..., 3:]
                turn = p[..., :1] * p_new[..., 1:] - p_new[..., :1] * p[..., 1:] - np.cross(p[..., 1:], p_new[..., 1:])
                ways.append(np.concatenate([q_new[..., :3] - q[..., :3], 2.0 * turn], axis=-1).reshape(-1))
            else:
                ways.append((q_new - q).reshape(-1))
        return np.concatenate(ways)

    def without_rest(self, record, first, n_iter, seen, largest):
        """(record, message) if no equilibrium is found; seen: balance and length of the last step that succeeded."""
        last = self.step(record, first)
        record = self.rested(record) if has_failed(last["status"]) else last
        if seen is None:
            return self.result(record, first, MAX_ITER, n_iter, math.nan), f"no step succeeds in {n_iter}; give a shorter first one, h"
        found, k = seen
        worst = found.ratio.argmax()
        residual, part = found.ratio[worst], found.parts[worst]
        if residual >= _STEADY * largest:
            message = f"'{part}' keeps accelerating, in the end by {found.speed[worst].max() / 2.0**k:.3g}, and does not come to rest"
            return self.result(record, first, ACCELERATING, n_iter, residual), message
        left = f"the forces on '{part}' still leave {residual:.3g} of their magnitudes"
        return self.result(record, first, MAX_ITER, n_iter, residual), f"{left} after {n_iter} steps; raise max_iter or tol"

    def result(self, record, k, status, n_iter, residual):
        """Record at rest at its own time, with forces for the impulses of a step of 2^k."""
        result, parts = copied(record), [name for name, *_ in self.systems]
        for name, relation, law, *_ in self.interactions:
            if not is_force(law, relation, "D" in result.dtype[name].base.names):
                result[name]["lambda"] /= 2.0**k
        for name in self.collisions:
            result[name]["lambda"] /= 2.0**k
        for name in parts:
            result[name]["v"] = 0.0
            if "p" in result.dtype[name].base.names:
                result[name]["p"] /= 2.0**k
        for field in ("t", "t0", "step"):
            result[field] = self.given[field]
        result["status"], result["n_iter"], result["residual"] = status, n_iter, residual
        return result

    def is_far(self, found, k):
        """Whether a step has moved a rigid body too far."""
        return self.is_rigid and (2.0**k * found.speed > _FAR * np.array([self.way, _TURN])).any()

    def longest(self, found, k):
        """Exponent of the longest step that moves no rigid body too far, by the accelerations of a step of 2^k."""
        speed = found.speed.max(axis=0) if self.is_rigid else np.zeros(2)
        reaches = [limit / (2.0**k * each) for limit, each in zip((self.way, _TURN), speed, strict=True) if each > 0.0]
        least = min(reaches, default=math.inf)
        return k + math.floor(0.5 * math.log2(least)) if least < math.inf else k + _FASTER


def _gyration(bodies):
    """Least radius of gyration of bodies with finite mass."""
    radius = np.sqrt(np.trace(bodies["inertia"], axis1=-2, axis2=-1) / (3.0 * bodies["mass"]))
    return radius[np.isfinite(bodies["mass"])].min(initial=math.inf)


def _steps(size):
    """Options of the steps, for a system of a given size."""
    return moreau_jean_combined_projection(theta=1.0, q_star=1.0, newton_tol=_NEWTON_TOL, constraint_tol=_CLOSED * size, metric="mass")
