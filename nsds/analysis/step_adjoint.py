"""Adjoint of Moreau–Jean steps of linear Lagrangian systems: one vector backwards through the recorded steps, whatever is asked for.

A step from (q, v) to (q+, v+), with impulses lambda of the active constraints and ``u = H v``, solves

    M_hat (v+ - v) + h C v + h K (q + h theta v) - h (theta F+ + (1 - theta) F) - B lambda = 0
    H v+ + rate + e (H v + rate) = 0     of rows whose lambda is between its bounds
    lambda = s mu lambda_n, or a bound   of the others
    q+ = q + h (theta v+ + (1 - theta) v)

The costate goes back by the transposed equations, whose matrix is factorised once for each active set; what parameters change follows from
derivatives of these equations, summed over all steps. Derivatives of steps with the active set that they had, as those of
`nsds.analysis.tangent_steps`.
"""

from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds._jit import kernel, view
from nsds.analysis.sensitivities import slope_of
from nsds.analysis.tangent_steps import AT_BOUND, bounded_rows, warn_of_events, whole_steps
from nsds.maths import superlu
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT, DENSE
from nsds.model.records import model_of
from nsds.model.system_kinds import LAGRANGIAN, family
from nsds.schemes import table
from nsds.schemes.lagrangian.tables import is_linear, layout_of
from nsds.schemes.linear_algebra import sparse
from nsds.schemes.memory import Allocator
from nsds.schemes.problem.rows import POSITION
from nsds.schemes.run.simulation import simulate
from nsds.status import CONVERGED, INEXACT

_DENSE = 200  # coordinates up to which matrices are dense
_SETS = 256  # active sets whose factors are kept
_CHANGE = 2.0**-17  # of a parameter, relative to 1 or its value
_ACCURATE = 1e-9  # relative: residual of the equations of a step with the matrix of its active set


class Motion(NamedTuple):
    """The matrices of the equations of motion, dense or sparse."""

    M: object
    C: object
    K: object


class Rows(NamedTuple):
    """The numbers of all constraints in the equations of a step."""

    H: object
    B: object
    rate: np.ndarray
    e: np.ndarray
    mu: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class Sets(NamedTuple):
    """Tables of a record that do not change with its parameters, and the times of its steps."""

    layout: NamedTuple
    h: float
    theta: float
    times: np.ndarray


class Steps(NamedTuple):
    """A recorded run: states (steps + 1, n), impulses (steps + 1, m), status, and the times of its rows."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    lam: np.ndarray
    status: int


def treats(system, scheme):
    """Whether these equations are those of a step of a scheme, None for the default one."""
    records = system.reshape(1)
    if family(model_of(records)) != LAGRANGIAN:
        return False
    _, options = table.chosen(scheme, records)
    if options["scheme"].item() != b"moreau_jean" or any(kind == "sampled_control" for _, kind, *_ in model_of(records)):
        return False
    layout = layout_of(records, Allocator(1), "gradient", 1.0, options["theta"].item(), has_impact_laws=True)
    c = layout.constraints
    is_planar = (c["tangents"] <= 1).all() and (c["component"] <= c["tangents"]).all()
    is_rigid = not layout.couplings.size and not (c["level"] == POSITION).any() and not c["impact_law"].any()
    is_prescribed = (layout.relations["velocity_function"] != ABSENT).any()
    return bool(is_linear(layout) and is_planar and is_rigid and not is_prescribed)


@kernel
def _forces(slot, functions, times, z, out):
    """A force by a function of a user at all times, into the rows of out."""
    n = out.size // times.size
    nothing = view(out, 0, 0)
    for k in range(times.size):
        call_function(functions, slot, (times[k], nothing, nothing, z, view(out, k * n, n)))


def _rows_of(record, sets):
    """`Rows` of one record (1,)."""
    work = Allocator(1)
    layout = layout_of(record, work, "gradient", sets.h, sets.h * sets.theta, has_impact_laws=True)
    return _rows(layout, work.array()[0])


def _motion(record, layout):
    """`Motion` of all parts."""
    from scipy.sparse import block_diag, csr_array

    blocks, n = {name: [] for name in "MCK"}, 0
    for name, part in zip(layout.part_names, layout.parts, strict=True):
        n += int(part["count"] * part["n"])
        for element in record[name].reshape(-1):
            for field, found in blocks.items():
                found.append(sparse(element, part, field))
    matrices = (csr_array(block_diag(blocks[field], format="csr")) for field in "MCK")
    return Motion(*(each.toarray() if n <= _DENSE else each for each in matrices))


def _rows(layout, work):
    """`Rows` of all constraints."""
    from scipy.sparse import coo_array, csr_array

    parts, c = layout.parts, layout.constraints
    n, m = int((parts["count"] * parts["n"]).sum()), c.size

    def operator(entries, kind):
        owner = np.repeat(np.arange(m), c[f"{kind}_end"] - c[kind])
        return csr_array(coo_array((work[entries["coefficient"]], (owner, entries["dof"])), shape=(m, n)))

    def of_rows(column, absent):
        return np.where(c[column] == ABSENT, absent, work[np.maximum(c[column], 0)])

    H, B = operator(layout.entries, "entry"), operator(layout.inputs, "input").T.tocsr()
    operators = (each.toarray() if n <= _DENSE else each for each in (H, B))
    columns = (("rate", 0.0), ("e", 0.0), ("mu", 0.0), ("lower", -np.inf), ("upper", np.inf))
    return Rows(*operators, *(of_rows(*each) for each in columns))


class Backwards(NamedTuple):
    """Points of a run, the costates there, value and gradient of the objective, error; impacts, events, together, untreated, status."""

    t: np.ndarray
    x: np.ndarray
    costates: np.ndarray | None
    value: float
    slopes: np.ndarray | None
    error: float
    counts: tuple


class Adjoint:
    """A run of a system by Moreau–Jean's steps, and its costate."""

    def __init__(self, owner, system, t_end, rows, scheme, h):
        records = system.reshape(1)
        start = float(system["t"])
        every, h = whole_steps(owner, (t_end - start) / rows, h)
        _, options = table.chosen(scheme, records)
        theta = options["theta"].item()
        layout = layout_of(records, Allocator(1), owner, h, h * theta, has_impact_laws=True)
        self.owner, self.system, self.every, self.n_rows = owner, system, every, rows
        # 1. the run, all of whose steps are kept
        trajectory = simulate(system, t_end=t_end, h=h, scheme=scheme, progress=False, on_failure="continue")
        status = trajectory["status"][(trajectory["status"] != CONVERGED) & (trajectory["status"] != INEXACT)]
        self.sets = Sets(layout, h, theta, np.ascontiguousarray(trajectory["t"]))
        self.steps = _steps_of(trajectory, layout, int(status[0]) if status.size else 0)
        # 2. active sets: sides of the multipliers, and directions of slip
        self.motion, self.rows = _motion(records, layout), _rows_of(records, self.sets)
        self.M_hat = self.motion.M + h * theta * self.motion.C + (h * theta) ** 2 * self.motion.K
        self.basic, self.slip = _sets(self.rows, layout.constraints, self.steps, h)
        self._factors = {}

    def counts(self):
        """(impacts, events, events of several rows) of the run."""
        rows = bounded_rows(self.system.reshape(1), self.sets.h)
        order = np.argsort(self.sets.layout.constraints["lam"])
        place = order[np.searchsorted(self.sets.layout.constraints["lam"][order], rows.at)]
        lam = self.steps.lam[:, place]
        with np.errstate(invalid="ignore"):  # bounds may be infinite
            side = np.where(lam <= rows.low + AT_BOUND * abs(rows.low), -1, np.where(lam >= rows.high - AT_BOUND * abs(rows.high), 1, 0))
        changed = (side[1:] != side[:-1]).sum(axis=1)
        closed = ((side[:-1] == -1) & (side[1:] == 0) & (rows.low == 0.0)).sum()
        return int(closed), int((changed > 0).sum()), int((changed > 1).sum())

    def backwards(self, slope):
        """Costates (rows + 1, 2 n) of the states at rows, from the last one. Multipliers of all steps are kept for `by_parameter`."""
        eq, h, theta, n = self.motion, self.sets.h, self.sets.theta, self.steps.q.shape[1]
        count = len(self.steps.t) - 1
        at_q, at_v = slope[:n].copy(), slope[n:].copy()
        self.mu, self.nu = np.zeros((count, n)), np.zeros((count, self.steps.lam.shape[1]))
        costates = np.zeros((self.n_rows + 1, 2 * n))
        costates[-1] = slope
        MT, CT, KT, HT = (each.T for each in (self.M_hat, eq.C, eq.K, self.rows.H))
        for k in range(count - 1, -1, -1):
            # transposed equations of the step, with the position update in the costate of v+
            mu, nu = self._solve(k, at_v + h * theta * at_q)
            pulled = KT @ mu
            at_v = h * (1.0 - theta) * at_q + MT @ mu - h * (CT @ mu) - h * h * theta * pulled
            if nu.any():
                at_v -= HT @ (self.rows.e * nu)
            at_q = at_q - h * pulled
            self.mu[k], self.nu[k] = mu, nu
            if k % self.every == 0:
                costates[k // self.every] = np.append(at_q, at_v)
        return costates

    def _solve(self, k, right):
        """mu of the equations of motion and nu of all rows, 0 of those that are not active."""
        key = self.basic[k].tobytes() + self.slip[k].tobytes()
        found = self._factors.get(key)
        if found is None:
            if len(self._factors) >= _SETS:
                self._factors.clear()
            found = self._factors[key] = self._factorise(k)
        rows, solve = found
        both = solve(np.append(right, np.zeros(rows.size)))
        nu = np.zeros(self.basic.shape[1])
        nu[rows] = both[right.size :]
        return both[: right.size], nu

    def _factorise(self, k):
        """(active rows, solution with the transposed matrix of a step): ``[[M_hat, -B S], [H, 0]]^T``, S: slip by normal impulses."""
        from scipy.sparse import block_array, csc_array

        rows = np.flatnonzero(self.basic[k])
        M_hat, H, B = self.M_hat, self.rows.H, self.rows.B @ self._slipping(k)[:, rows]
        if not rows.size:
            whole = M_hat
        elif isinstance(M_hat, np.ndarray):
            whole = np.block([[M_hat, -B], [H[rows], np.zeros((rows.size, rows.size))]])
        else:
            whole = block_array([[M_hat, -B], [H[rows], None]])
        try:
            if isinstance(whole, np.ndarray):
                inverse = np.linalg.inv(whole.T)
                return rows, _checked(whole, lambda b: inverse @ b)
            factors = superlu.factorise(csc_array(whole))
            return rows, _checked(whole, lambda b: factors.solve(b, "T"))
        except (np.linalg.LinAlgError, RuntimeError):
            raise np.linalg.LinAlgError from None

    def _slipping(self, k):
        """S (m, m): the identity, and the friction of a row that slips by its normal impulse."""
        from scipy.sparse import csr_array, eye_array

        c, m = self.sets.layout.constraints, self.basic.shape[1]
        slides = np.flatnonzero(self.slip[k])
        values = self.slip[k, slides] * self.rows.mu[slides]
        S = eye_array(m) + csr_array((values, (slides, slides - c["component"][slides])), shape=(m, m))
        return S.toarray() if isinstance(self.motion.M, np.ndarray) else S.tocsc()

    def by_parameter(self, parameter):
        """Derivative of the objective by a number of the record, after `backwards`."""
        if parameter.part in self.sets.layout.part_names:
            return self._by_number_of_a_part(parameter)
        delta = _CHANGE * max(1.0, abs(parameter.of(self.system)))
        middle = parameter.beside(self.system, delta)
        changed = (parameter.put(self.system.reshape(1).copy(), middle + sign * delta) for sign in (-1.0, 1.0))
        low, high = (_rows_of(record, self.sets) for record in changed)
        change = Rows(*((b - a) / (2.0 * delta) if _differ(a, b) else None for a, b in zip(low, high, strict=True)))
        return self._by_impulses(change) + self._by_active_rows(change)

    def _by_number_of_a_part(self, parameter):
        """``sum mu . dr`` for an entry of M, C, K or fext, or a parameter of a force; r: the right side of the equations of motion."""
        layout, h, theta, mu = self.sets.layout, self.sets.h, self.sets.theta, self.mu
        q, v, v_new = self.steps.q[:-1], self.steps.v[:-1], self.steps.v[1:]
        part, field = layout.parts[layout.part_names.index(parameter.part)], parameter.field
        # 1. which element, and which of its entries
        stored = np.asarray(self.system[parameter.part][field])
        flat = int(np.reshape(np.arange(stored.size).reshape(stored.shape)[parameter.index], -1)[0])
        e, entry = divmod(flat, stored.size // int(part["count"]))
        first, n = int(part["dof"]) + e * int(part["n"]), int(part["n"])
        # 2. forces
        if field == "fext":
            return float(h * mu[:, first + entry].sum())
        if field == "z":
            z = np.ascontiguousarray(self.system.reshape(1)[parameter.part].reshape(-1)[e]["z"], float).reshape(-1)
            delta = _CHANGE * max(1.0, abs(z[entry]))
            low, high = z.copy(), z.copy()
            low[entry], high[entry] = z[entry] - delta, z[entry] + delta
            change = (self._force(part, e, high) - self._force(part, e, low)) / (2.0 * delta)
            return float((mu[:, first : first + n] * (h * (theta * change[1:] + (1.0 - theta) * change[:-1]))).sum())
        # 3. matrices: a row, and what it multiplies
        i, j = divmod(entry, n) if part[field + "_kind"] == DENSE else (entry, entry)
        i, j = first + i, first + j
        change = v_new[:, j] - v[:, j]
        if field == "C":
            change = h * theta * change + h * v[:, j]
        elif field == "K":
            change = (h * theta) ** 2 * change + h * (q[:, j] + h * theta * v[:, j])
        return float(-(mu[:, i] @ change))

    def _force(self, part, e, z):
        """Forces of an element at all times; 0 where its force is no function."""
        if part["fext_function"] == ABSENT:
            return np.zeros((self.sets.times.size, int(part["n"])))
        forces = np.zeros(self.sets.times.size * int(part["n"]))
        _forces(int(part["fext_function"]) + e, self.sets.layout.functions[0], self.sets.times, z, forces)
        return forces.reshape(self.sets.times.size, -1)

    def _by_impulses(self, change):
        """``sum mu . dr`` for changes of B, friction and bounds: impulses of rows that slip, or are at a bound, are given."""
        h, mu, lam, c = self.sets.h, self.mu, self.steps.lam[1:], self.sets.layout.constraints
        total = _product(mu, change.B, lam)
        if change.mu is not None:
            normal = lam[:, np.arange(c.size) - c["component"]]
            total += _product(mu, self.rows.B, self.slip * change.mu * normal)
        for bound, change_of_bound in ((self.rows.lower, change.lower), (self.rows.upper, change.upper)):
            if change_of_bound is not None:
                bound = np.where(np.isfinite(bound), bound, 0.0)
                is_there = (abs(lam - h * bound) <= AT_BOUND * abs(lam)) & ~self.basic
                total += _product(mu, self.rows.B, is_there * h * np.nan_to_num(change_of_bound))
        return float(total)

    def _by_active_rows(self, change):
        """``sum nu . dr``, r: what the active rows have on their right side."""
        rows, nu, v, v_new = self.rows, self.nu, self.steps.v[:-1], self.steps.v[1:]
        total = -_product(nu, change.H, v_new) - _product(nu * rows.e, change.H, v)
        if change.e is not None:
            total -= (nu * change.e * ((rows.H @ v.T).T + rows.rate)).sum()
        if change.rate is not None:
            total -= (nu * change.rate * (1.0 + rows.e)).sum()
        return float(total)


def _checked(whole, solve):
    """The solution with the transposed matrix; LinAlgError where that is singular up to rounding: its equations are not met."""
    b = np.linspace(1.0, 2.0, whole.shape[0])
    x = solve(b)
    if not (abs(whole.T @ x - b) <= _ACCURATE * (abs(whole.T) @ abs(x) + abs(b))).all():
        raise np.linalg.LinAlgError
    return solve


def _differ(one, other):
    """Whether two arrays or sparse matrices have other entries."""
    if one is other:
        return False
    return bool((one != other).any()) if isinstance(one, np.ndarray) else (one != other).nnz > 0


def _product(left, matrix, right):
    """``sum_k left_k . matrix right_k`` over the rows k of both; 0 without a matrix."""
    if matrix is None:
        return 0.0
    if isinstance(matrix, np.ndarray):
        return float(np.einsum("ki,ij,kj->", left, matrix, right, optimize=True))
    entries = matrix.tocoo()
    i, j = entries.coords
    return float(sum(value * (left[:, a] @ right[:, b]) for a, b, value in zip(i, j, entries.data, strict=True) if value != 0.0))


def _steps_of(trajectory, layout, status):
    """`Steps` of a trajectory, in the numbers of the tables of its system."""
    q, v = [], []
    for name in layout.part_names:
        q.append(trajectory[name]["q"].reshape(len(trajectory), -1))
        v.append(trajectory[name]["v"].reshape(len(trajectory), -1))
    lam = [np.zeros((len(trajectory), 0))]
    for name in dict.fromkeys(owner[0] for owner in layout.owners):
        lam.append(trajectory[name]["lambda"].reshape(len(trajectory), -1))
    return Steps(trajectory["t"], np.concatenate(q, axis=1), np.concatenate(v, axis=1), np.concatenate(lam, axis=1), status)


def _sets(rows, c, steps, h):
    """(rows of each step whose lambda is between its bounds, direction of the friction of those that slip or 0)."""
    lam = steps.lam[1:]
    normal = lam[:, np.arange(c.size) - c["component"]]
    is_tangent, is_bounded = c["component"] > 0, (c["lower"] != ABSENT) & (c["component"] == 0)
    most = rows.mu * normal
    within = abs(lam) < most * (1.0 - AT_BOUND)
    between = (lam > h * rows.lower + AT_BOUND * abs(lam)) & (lam < h * rows.upper - AT_BOUND * abs(lam))
    basic = np.where(is_tangent, within, np.where(c["bilateral"] != 0, True, np.where(is_bounded, between, lam > 0.0)))
    return basic, np.where(is_tangent & (normal > 0.0) & ~within, np.sign(lam), 0.0)


def adjoint(owner, system, t_end, objective, named, rows, scheme, h):
    """`Backwards` of `nsds.gradient`, without costates where the run ends early; None where active constraints depend on each other."""
    run = Adjoint(owner, system, t_end, rows, scheme, _checks.number(owner, "h", h, above=0.0))
    at = np.arange(0, len(run.steps.t), run.every)
    t, x, counts = run.steps.t[at], np.column_stack([run.steps.q, run.steps.v])[at], (*run.counts(), 0, run.steps.status)
    warn_of_events(owner, run.sets.h, np.array(counts[1:2]), np.array([len(run.steps.t) - 1]))
    if run.steps.status != CONVERGED:
        return Backwards(t, x, None, np.nan, None, 0.0, counts)
    value = _checks.number(owner, "objective(x)", objective(x[-1].copy()))
    try:
        costates = run.backwards(np.array([slope_of(objective, x[-1], i) for i in range(x.shape[1])]))
    except np.linalg.LinAlgError:
        return None
    slopes = np.append(costates[0], [run.by_parameter(parameter) for parameter in named])
    return Backwards(t, x, costates, value, slopes, 0.0, counts)
