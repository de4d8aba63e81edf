"""Consistent initial values: positions on the constraints, velocities tangent to the bilateral ones."""

import warnings

import numpy as np

from nsds import _checks
from nsds._jit import kernel
from nsds.collision import WORLD
from nsds.collision.kinds import BOX, CONVEX, CYLINDER, NAMES, PLANE
from nsds.model.functions import offered
from nsds.model.kinds import LAGRANGIAN, collisions_of, family
from nsds.model.layout import ABSENT
from nsds.model.records import copied, memory, model_of
from nsds.model.validation import runnable
from nsds.schemes.lagrangian import newton as moreau_jean_newton
from nsds.schemes.lagrangian import projection
from nsds.schemes.lagrangian.contact_forces import push_apart
from nsds.schemes.lagrangian.newton import speeds, velocity
from nsds.schemes.lagrangian.tables import POSITION, VELOCITY
from nsds.schemes.problem.one_step_problem import ULPS, update_outputs, worse
from nsds.solvers import table as solvers
from nsds.status import CONVERGED, advice

_VIOLATION = 1e-6
_OVERLAP = 0.01  # of the least extent of the smaller shape


def consistent(system, tol=1e-10, max_rounds=50, *, functions=None):
    """The record, or ensemble, with positions moved onto its constraints, and velocities that keep the bilateral ones.

    Positions move as little as possible in the norm of the mass: gaps to ``y >= -tol``, bilateral constraints to ``|y| <= tol``. Velocities
    change as by an impulse that makes ``ydot = 0`` in the bilateral constraints. Constraints at position level (`nsds.compliant`, or linear
    ones with D under `nsds.complementarity` and `nsds.equality`) are left alone.

    Parameters
    ----------
    system : numpy.ndarray
        A record of Lagrangian systems, or an ensemble; it is not changed.
    tol : float
        Largest violation that is left.
    max_rounds : int
        Projections, each linearised at the last.
    functions : sequence of functions, optional
        See `nsds.simulate`.

    Raises
    ------
    ValueError
        Not a record of Lagrangian systems, or constraints that cannot be satisfied.

    Examples
    --------
    >>> import nsds
    >>> def rod(q, z, out):
    ...     out[0] = q[0] ** 2 + q[1] ** 2 - 1
    >>> system = nsds.system(
    ...     bob=nsds.lagrangian([1.0, 1.0], fext=[0, -9.81], q=[0.9, -0.6], v=[1, 1]),
    ...     rod=nsds.interaction(nsds.scleronomous(rod, m=1), nsds.equality(), on="bob"),
    ... )
    >>> nsds.consistent(system)["bob"]["q"].round(4), nsds.consistent(system)["bob"]["v"].round(4)
    (array([ 0.8321, -0.5547]), array([0.7692, 1.1538]))
    """
    owner = "consistent"
    offered(owner, functions)
    system = runnable(owner, system)
    if family(model_of(system)) != LAGRANGIAN:
        raise ValueError(f"{owner}: expected a record of Lagrangian systems, got {family(model_of(system))} ones")
    tol = _checks.number(owner, "tol", tol, above=0.0)
    max_rounds = _checks.integer(owner, "max_rounds", max_rounds, low=1)
    records = copied(system).reshape(-1)
    mem = memory(records)
    options = projection.moreau_jean_direct_projection(theta=1.0, constraint_tol=tol, max_rounds=max_rounds)
    method, solver_options = solvers.chosen(None, "relay")
    prepared = projection.prepare(records, mem, options, 1.0, method)
    for m in range(records.size):
        status = _make_consistent(
            records["t"][m], prepared.tables, prepared.functions[m], solvers.address(method), solver_options, prepared.options, mem[m],
            mem[m].view(np.int64), prepared.work[m], prepared.iwork[m]
        )  # fmt: skip
        if status != CONVERGED:
            raise ValueError(f"{owner}: {'' if np.shape(system) == () else f'member {m}: '}{advice(status)}")
    return records.reshape(np.shape(system))


@kernel
def _make_consistent(t, tables, functions, solver, solver_options, options, mem, imem, work, iwork):
    """Project positions, then velocities; returns a status."""
    parts, elements, _, relations, constraints, entries, inputs, couplings, plan, W_row, W_column, _, metrics, _, _, places = tables
    p = plan[0]
    projection.start(t, tables, functions, options, mem, imem, work, iwork)
    status, _ = projection.project(t, tables, functions, solver, solver_options, options, mem, imem, work, iwork)
    moreau_jean_newton.evaluate_masses(1.0, parts, elements, p, functions, mem, imem, work)
    projection.invert_metrics(elements, parts, metrics, places[0], work, iwork)
    n, most = 0, 0.0
    for i in range(constraints.size):
        c = constraints[i]
        chosen = c.bilateral != 0 and c.level != POSITION
        iwork[p.local + i] = n if chosen else ABSENT
        if chosen:
            iwork[p.active + n] = i
            work[p.q + n] = velocity(c, entries, mem, work)
            most = max(most, speeds(c, entries, mem, work))
            n += 1
    work[p.rounding] = ULPS * most
    for i in range(p.n_dofs):
        work[p.dv + i] = 0.0
    rigid = parts, elements, metrics, relations, constraints, entries, inputs, couplings, plan, W_row, W_column, metrics
    pushed, _, _ = push_apart(n, p.dv, 0.0, 1.0, rigid, solver, solver_options, mem, work, iwork)
    moreau_jean_newton.add_jump(parts, elements, p, mem, work)
    for i in range(constraints.size):
        if constraints[i].lam != ABSENT:
            mem[constraints[i].lam] = 0.0
    update_outputs(options[0], 1.0, constraints, entries, couplings, mem, work)
    return worse(status, pushed)


def warn_of_violations(prepared, trajectory):
    """Warn of bilateral constraints that do not hold at the start: velocities are mended by the first step, positions never.

    Only what the rows (members, rows) of a run hold is looked at, and nothing where they go on from an earlier run.
    """
    if not hasattr(prepared.layout, "owners"):
        return
    c = prepared.layout.constraints
    for i in np.flatnonzero((c["bilateral"] != 0) & (c["level"] == VELOCITY)):
        name, element, row = prepared.layout.owners[i]
        if name not in trajectory.dtype.names or "y" not in trajectory.dtype[name].base.names:
            continue
        m = prepared.layout.sizes[name]
        y = trajectory[name]["y"][:, 0].reshape(trajectory.shape[0], -1)[:, element * m + row] * (trajectory["step"][:, 0] == 0)
        member = int(abs(y).argmax())
        if abs(y[member]) > _VIOLATION:
            where = f"{name}[{element}]" if trajectory.dtype[name].shape else name
            who = f" of member {member}" if trajectory.shape[0] > 1 else ""
            warnings.warn(
                f"the bilateral constraint '{where}', row {row}{who}, is violated at the start, y = {y[member]:.3g}, and stays so; "
                f"nsds.consistent(system) moves the system onto its constraints",
                RuntimeWarning, stacklevel=4,
            )  # fmt: skip
            return


def warn_of_overlaps(records, prepared):
    """Warn of detected contacts of rigid bodies that overlap at the start by more than a part of the smaller shape.

    Nothing is said of records that go on from an earlier run.
    """
    if not hasattr(prepared.layout, "general_pairs"):
        return
    for name, *_ in collisions_of(model_of(records)):
        worst = None
        for m in np.flatnonzero(records["step"] == 0):
            part = records[name][m]
            a, b, depth = part["a"][: part["n"]], part["b"][: part["n"]], -part["y"][: part["n"]]
            thickness = _thickness(part)
            deep = depth > _OVERLAP * np.minimum(thickness[a], thickness[b])
            if deep.any() and (worst is None or depth[deep].max() > worst[0]):
                i = np.argmax(np.where(deep, depth, 0.0))
                worst = depth[i], np.count_nonzero(deep), m, [_shape_named(part, s, prepared.layout) for s in (a[i], b[i])]
        if worst is not None:
            depth, count, m, (one, other) = worst
            who = f" of member {m}" if records.size > 1 else ""
            warnings.warn(
                f"collisions '{name}'{who}: {count} contact{'s' if count > 1 else ''} overlap at the start by more than "
                f"{_OVERLAP:.0%} of the smaller shape, the deepest by {depth:.3g} m: {one} and {other}; what overlaps stays so unless "
                f"something pulls it apart",
                UserWarning, stacklevel=5,
            )  # fmt: skip


def _thickness(part):
    """Least extent of all shapes of a part of collisions; infinite for planes."""
    kind, size = part["shape_kind"], part["shape_size"]
    result = 2 * size[:, 0]
    result[kind == CYLINDER] = np.minimum(result, size[:, 1])[kind == CYLINDER]
    result[kind == BOX] = size[kind == BOX].min(axis=1)
    result[kind == PLANE] = np.inf
    for s in np.flatnonzero(kind == CONVEX):
        first = int(size[s, 1])
        result[s] = np.ptp(part["vertices"][first : first + int(size[s, 2])], axis=0).min()
    return result


def _shape_named(part, s, layout):
    """In words: the kind, number and body of a shape."""
    body, kind = part["shape_body"][s], NAMES[part["shape_kind"][s]]
    if body == WORLD:
        return f"{kind} {s} of the world"
    owner, first = [(name, first) for name, first in layout.part_names if first <= body][-1]
    return f"{kind} {s} of {owner}[{body - first}]"
