"""Consistent initial values: positions on the constraints, velocities tangent to the bilateral ones."""

import numpy as np

from nsds import _checks
from nsds.model.functions import offered
from nsds.model.records import copied, memory, model_of
from nsds.model.system_kinds import FIRST_ORDER, NEWTON_EULER, family
from nsds.model.validation import runnable
from nsds.schemes.lagrangian import consistency as lagrangian
from nsds.schemes.memory import of_each_member
from nsds.schemes.options.projection import moreau_jean_direct_projection
from nsds.schemes.rigid import consistency as rigid
from nsds.schemes.table import solver_of
from nsds.status import CAPACITY, CONVERGED, advice

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
    options = moreau_jean_direct_projection(theta=1.0, constraint_tol=tol, max_rounds=max_rounds)
    method, solver_options, address = solver_of(None, records)
    module, h = (rigid, _NEAR) if kind == NEWTON_EULER else (lagrangian, 1.0)
    while True:  # with more room for contacts where the record has too little
        changed = copied(records)
        prepared = module.projection.prepare(changed, memory(changed), options, h, method)
        statuses = of_each_member(module.make_consistent, prepared, changed, address, solver_options)
        if CAPACITY not in statuses:
            break
        records = module.projection.grow(records)
    for m, status in enumerate(statuses):
        if status != CONVERGED:
            raise ValueError(f"{owner}: {'' if np.shape(system) == () else f'member {m}: '}{advice(status)}")
    return changed.reshape(np.shape(system))
