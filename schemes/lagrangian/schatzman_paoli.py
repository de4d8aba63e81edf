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

from nsds.model.laws import LAWS
from nsds.model.layout import ABSENT
from nsds.model.records import model_of
from nsds.model.system_kinds import split
from nsds.schemes.lagrangian import newton
from nsds.schemes.lagrangian.contact_forces import require_rigid
from nsds.schemes.lagrangian.newton import Options
from nsds.schemes.lagrangian.tables import layout_of
from nsds.schemes.memory import Allocator
from nsds.schemes.problem.rows import DRIVEN, POSITION


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
    return newton.prepare(records, layout, step, method, work, iwork, may_be_mixed=True)


def _require_one_restitution(owner, records, layout):
    """A nonlinear y is evaluated at one point for all contacts of an interaction, which e decides."""
    laws = {name: LAWS[law] for name, _, law, *_ in split(model_of(records))[1]}
    for name, r in zip(layout.relation_names, layout.relations, strict=True):
        if r["e"] != ABSENT and r["m"] > r["block"]:
            e = records[name][laws[name].restitution[0]].reshape(-1, r["m"] // r["block"])
            if (e != e[:, :1]).any():
                raise ValueError(f"{owner}: interaction '{name}': a nonlinear relation wants one e for all its contacts")
