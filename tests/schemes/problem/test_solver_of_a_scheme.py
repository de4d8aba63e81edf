"""Solvers by scheme: a scheme that states rigid bodies as rows has a solver of rows, without being known by name."""

import numpy as np

import nsds
from nsds import shapes
from nsds.model.system_kinds import NEWTON_EULER
from nsds.schemes.problem.kinds import Asked
from nsds.schemes.table import SCHEMES, solver_of


def test_a_new_scheme_that_states_bodies_as_rows_has_their_solver(monkeypatch):
    box = shapes.box([0.4, 0.4, 0.4])
    bodies = nsds.rigid_bodies(1.0, shapes.inertia(box, 1.0), q=[0, 0, 1, 1, 0, 0, 0], v=np.zeros(6))
    contacts = nsds.collisions({"bodies": box}, nsds.newton_impact_friction(0.5, 0.3), world=shapes.plane())
    system = nsds.system(bodies=bodies, contacts=contacts)
    monkeypatch.setitem(SCHEMES, "own", SCHEMES["event_driven"]._replace(modules={NEWTON_EULER: "mechanics.own"}))
    own = np.array((b"own",), [("scheme", "S32")])
    asked = [solver_of(None, system, options)[1] for options in (nsds.event_driven(), nsds.d1_minus_linear(), own)]
    assert asked[0] == asked[1] == asked[2]
    assert isinstance(asked[2], Asked)
    assert not isinstance(solver_of(None, system, nsds.rattle())[1], Asked)
