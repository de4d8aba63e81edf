"""Schatzman–Paoli time stepping ([Notes], 10.3): two steps of positions, and a law for ``(q_{k+1} + e q_{k-1}) / (1 + e)``.

    M(q_k) (q_{k+1} - 2 q_k + q_{k-1}) = h^2 F(t_{k+theta}, q_{k+theta}, v_{k+theta}) + h p_{k+1}          (10.45a)
    0 <= y((q_{k+1} + e q_{k-1}) / (1 + e))  ⟂  lambda >= 0,   p = H^T lambda there                        (10.45c-e)

Friction is a law of displacements: it opposes ``H_T (q_{k+1} - q_k) + e_t H_T (q_k - q_{k-1})`` of a contact, and is at most mu times its
lambda. Bounded forces oppose ``H (q_{k+1} - q_k)``.

The velocity in the record is ``v_{k+1} = (q_{k+1} - q_k) / h``, so that ``q_{k-1} = q_k - h v_k``: the record alone is the state, and the
step is one of the Newton form for v_{k+1}. The source's own question (10.3.1), whether to take the central difference, is answered by
that and by measurement (tests): theta = 0 conserves ``v_{k+1}^T M v_{k+1} / 2 + q_{k+1}^T K q_k / 2`` to rounding, and an impact with e = 1
reverses v exactly, whereas the central difference mixes the velocities before and after it. That is the mean of two successive v.
"""

import numpy as np

from nsds import _checks
from nsds.model.kinds import LAGRANGIAN, split
from nsds.model.laws import LAWS
from nsds.model.layout import ABSENT
from nsds.model.records import model_of
from nsds.schemes.lagrangian import newton
from nsds.schemes.lagrangian.contact_forces import require_rigid
from nsds.schemes.lagrangian.newton import Options
from nsds.schemes.lagrangian.tables import DRIVEN, POSITION, layout_of
from nsds.schemes.run.memory import Allocator
from nsds.schemes.table import scheme_for

OPTIONS = np.dtype([("scheme", "S32"), ("theta", "<f8"), ("gamma", "<f8"), ("newton_tol", "<f8"), ("newton_max_iter", "<i8")])


@scheme_for(LAGRANGIAN)
def schatzman_paoli(theta=0.0, gamma=np.inf, newton_tol=1e-10, newton_max_iter=50):
    """Options of the Schatzman–Paoli scheme ([Notes], 10.3): impacts by positions, without forecast or activation.

    Parameters
    ----------
    theta : float in [0, 1]
        Where in the step forces act. 0 is explicit: of order 2 without damping, and conserving energy, but stable only for
        ``h omega < 2``; the others are of order 1 and dissipate, 1/2 too.
    gamma : float >= 0
        Constraints with ``y + gamma h ydot > 0`` at the start of the step are left out of its problem; none is by default.
    newton_tol, newton_max_iter
        See `nsds.moreau_jean`.

    Returns
    -------
    numpy.ndarray, shape ()
        Record for `nsds.simulate`.

    Raises
    ------
    ValueError, TypeError
        An option out of its range.

    Notes
    -----
    v of a row is ``(q_k - q_{k-1}) / h``, also at the start: for order 2 begin with ``v_0 - h/2 a_0``. The central difference of the source
    is the mean of the v of two successive rows. lambda is an impulse; times h it is the multiplier of the source, which is one of
    positions. Penetration is up to ``h |v|`` in an impact. Friction, dry friction and relays oppose the displacement of a step; contacts
    of one nonlinear relation have one e_n. Relations with D are refused.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.bouncing_ball(), t_end=1.0, h=5e-3, scheme=nsds.schatzman_paoli())
    >>> float(rows["ball"]["v"][rows["floor"]["lambda"].argmax(), 0].round(3))
    3.973
    """
    owner = "schatzman_paoli"
    record = np.zeros((), OPTIONS)
    record["scheme"] = owner.encode()
    record["theta"] = _checks.number(owner, "theta", theta, 0.0, 1.0)
    record["gamma"] = _checks.number_or_inf(owner, "gamma", gamma, low=0.0)
    record["newton_tol"] = _checks.number_or_inf(owner, "newton_tol", newton_tol, above=0.0)
    record["newton_max_iter"] = _checks.integer(owner, "newton_max_iter", newton_max_iter, low=1)
    return record


def prepare(records, mem, options, h, method):
    """Tables, iteration matrices and work memory of all members."""
    owner = "schatzman_paoli"
    work, iwork = Allocator(records.size), Allocator(records.size)
    layout = layout_of(records, work, owner, h, h)
    require_rigid(owner, layout)
    _require_one_restitution(owner, records, layout)
    layout.relations["level"][layout.relations["level"] != DRIVEN] = POSITION
    rows = layout.constraints
    rows["level"][(rows["level"] != DRIVEN) & (rows["component"] == 0)] = POSITION  # friction is one of displacements
    gamma = options["gamma"].item()
    if gamma == np.inf:
        layout.constraints["always"], gamma = True, 0.0
    theta, tol, max_iter = options["theta"].item(), options["newton_tol"].item(), float(options["newton_max_iter"].item())
    step = Options(h, gamma, q_star=0.0, tol=tol, max_iter=max_iter, a=1.0, weight=1.0, at_q=theta, at_v=theta / 2, paoli=1.0)
    return newton.prepare(records, layout, step, method, work, iwork)


def _require_one_restitution(owner, records, layout):
    """A nonlinear y is evaluated at one point for all contacts of an interaction, which e decides."""
    laws = {name: LAWS[law] for name, _, law, *_ in split(model_of(records))[1]}
    for name, r in zip(layout.relation_names, layout.relations, strict=True):
        if r["e"] != ABSENT and r["m"] > r["block"]:
            e = records[name][laws[name].restitution[0]].reshape(-1, r["m"] // r["block"])
            if (e != e[:, :1]).any():
                raise ValueError(f"{owner}: interaction '{name}': a nonlinear relation wants one e for all its contacts")
