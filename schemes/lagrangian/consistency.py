"""Consistent initial values: positions on the constraints, velocities tangent to the bilateral ones."""

import numpy as np

from nsds import _checks
from nsds._jit import kernel
from nsds.model.functions import offered
from nsds.model.kinds import FIRST_ORDER, NEWTON_EULER, family
from nsds.model.layout import ABSENT
from nsds.model.records import copied, memory, model_of
from nsds.model.validation import runnable
from nsds.schemes.lagrangian import newton, projection
from nsds.schemes.lagrangian.contact_forces import push_apart
from nsds.schemes.lagrangian.outputs import update_outputs, velocity
from nsds.schemes.lagrangian.tables import POSITION
from nsds.schemes.problem.box import rounding_of, worse
from nsds.schemes.rigid.consistency import make_consistent
from nsds.schemes.run.memory import of_each_member
from nsds.schemes.table import solver_of
from nsds.status import CONVERGED, advice

_NEAR = 1e-3  # s, of rigid bodies: contacts that their motion closes in it are in the record


def consistent(system, tol=1e-10, max_rounds=50, *, functions=None):
    """The record, or ensemble, with positions moved onto its constraints, and velocities that keep the bilateral ones.

    Positions move as little as possible in the norm of the mass: gaps to ``y >= -tol``, bilateral constraints to ``|y| <= tol``. Velocities
    change as by an impulse that makes ``ydot = 0`` in the bilateral constraints. Constraints at position level (`nsds.compliant`, or linear
    ones with D under `nsds.complementarity` and `nsds.equality`) are left alone.

    Parameters
    ----------
    system : numpy.ndarray
        A record of Lagrangian systems or of rigid bodies, or an ensemble; it is not changed.
    tol : float
        Largest violation that is left.
    max_rounds : int
        Projections, each linearised at the last.
    functions : sequence of functions, optional
        See `nsds.simulate`.

    Raises
    ------
    ValueError
        A record of first-order systems, or constraints that cannot be satisfied.

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
    kind = family(model_of(system))
    if kind == FIRST_ORDER:
        raise ValueError(f"{owner}: expected a record of Lagrangian systems or rigid bodies, got {kind} ones")
    tol = _checks.number(owner, "tol", tol, above=0.0)
    max_rounds = _checks.integer(owner, "max_rounds", max_rounds, low=1)
    records = copied(system).reshape(-1)
    options = projection.moreau_jean_direct_projection(theta=1.0, constraint_tol=tol, max_rounds=max_rounds)
    method, solver_options, address = solver_of(None, records)
    if kind == NEWTON_EULER:
        records, statuses = make_consistent(records, options, _NEAR, method, address, solver_options)
    else:
        prepared = projection.prepare(records, memory(records), options, 1.0, method)
        statuses = of_each_member(_make_consistent, prepared, records, address, solver_options)
    for m, status in enumerate(statuses):
        if status != CONVERGED:
            raise ValueError(f"{owner}: {'' if np.shape(system) == () else f'member {m}: '}{advice(status)}")
    return records.reshape(np.shape(system))


@kernel
def _make_consistent(t, s, calls, options, memory):
    """Project positions, then velocities; returns a status."""
    work = memory.work
    form, parts, elements, constraints, entries = s.newton, s.newton.parts, s.newton.elements, s.newton.constraints, s.newton.entries
    p = form.plan[0]
    projection.start(t, s, calls.functions, options, memory)
    status, _ = projection.project(t, s, calls, options, memory)
    newton.evaluate_masses(1.0, parts, elements, p, calls.functions, memory)
    projection.invert_metrics(elements, parts, s.metrics, s.plan[0], memory)
    n, most = 0, 0.0
    for i in range(constraints.size):
        c = constraints[i]
        chosen = c.bilateral != 0 and c.level != POSITION
        memory.iwork[p.local + i] = n if chosen else ABSENT
        if chosen:
            memory.iwork[p.active + n] = i
            work[p.q + n], size = velocity(c, entries, memory)
            most = max(most, size)
            n += 1
    work[p.rounding] = rounding_of(most)
    for i in range(p.n_dofs):
        work[p.dv + i] = 0.0
    pushed, _, _ = push_apart(n, p.dv, 0.0, 1.0, form, s.metrics, calls, memory)
    newton.add_jump(parts, elements, p, memory)
    for i in range(constraints.size):
        memory.mem[constraints[i].lam] = 0.0
    update_outputs(options.h, 1.0, constraints, entries, form.couplings, memory)
    return worse(status, pushed)
