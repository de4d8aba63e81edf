"""Lines of a model: the offsets of a table lead to the record's own numbers."""

import numpy as np
import pytest

import nsds
from nsds.model.layout import ABSENT, DENSE, DIAGONAL, FunctionSlots
from nsds.model.records import memory, model_of
from nsds.model.system_kinds import split
from nsds.schemes.first_order import tables as first_order
from nsds.schemes.lagrangian import tables as lagrangian
from nsds.schemes.memory import Allocator
from nsds.schemes.problem.model_reader import interaction, parts_of, relation_rows


def wave(t, z, out):
    out[0] = z[0] * t
    out[1] = 0.0


def circuits():
    relation = nsds.first_order_linear_relation(C=[[1.0, 0.0, 0.5]], B=[[0.0], [1.0], [2.0]], F=[[3.0]], z=[0.25])
    return nsds.system(
        cells=nsds.first_order_linear(A=[-1.0, -2.0], b=wave, x=np.arange(6.0).reshape(3, 2), z=[7.0], count=3),
        plant=nsds.first_order_linear(A=[[4.0]], x=[8.0], T=[[5.0, 6.0]], u=[0.1, 0.2]),
        diode=nsds.interaction(relation, nsds.complementarity(), on=("cells[1:]", "plant")),
    )


def mechanism():
    return nsds.system(
        beads=nsds.lagrangian_linear(M=2.0, q=np.arange(3.0), v=-np.arange(3.0), count=3),
        post=nsds.lagrangian_linear(M=[[3.0]], K=[[9.0]], q=[4.0], v=[5.0]),
        gap=nsds.interaction(nsds.lagrangian_linear_relation(H=[[-1.0, 1.0]]), nsds.newton_impact(0.5), on=("beads[1:]", "post")),
    )


FAMILIES = {
    "first order": (circuits, first_order, ("b", "u"), ("M", "A"), "x"),
    "Lagrangian": (mechanism, lagrangian, ("fext", "u"), ("M", "K", "C"), "q"),
}


@pytest.fixture(params=FAMILIES)
def family(request):
    build, module, vectors, matrices, state = FAMILIES[request.param]
    records = np.repeat(build(), 2)
    work = Allocator(records.size)
    systems, interactions, _ = split(model_of(records))
    parts = parts_of(records, systems, FunctionSlots(records), work, module.PART, vectors, matrices)
    return records, parts, interactions, work, module, state


def test_states_and_degrees_of_freedom_of_parts(family):
    records, parts, _, _, _, state = family
    names = [name for name, _ in split(model_of(records))[0]]
    mem, dof, body = memory(records)[1], 0, 0
    for name, part in zip(names, parts, strict=True):
        assert (part["dof"], part["body"]) == (dof, body)
        values = records[name][state][1].reshape(part["count"], part["n"])
        for e in range(part["count"]):
            first = part["q"] + e * part["stride"]
            np.testing.assert_array_equal(mem[first : first + part["n"]], values[e])
        dof, body = dof + part["count"] * part["n"], body + part["count"]


def test_relations_know_the_states_of_both_sides(family):
    records, parts, interactions, _, module, state = family
    mem = memory(records)[1]
    line = interaction(records, {name: i for i, (name, *_) in enumerate(split(model_of(records))[0])}, interactions[0])
    rows = relation_rows(line, parts, FunctionSlots(records), module.RELATION)
    assert rows["m"].tolist() == [1, 1]
    first_name, second_name = (split(model_of(records))[0][side][0] for side in line.sides)
    for element, r in enumerate(rows):
        expected = records[first_name][state][1, 1 + element].reshape(-1)
        np.testing.assert_array_equal(mem[r["q_first"] : r["q_first"] + r["n_first"]], expected)
        np.testing.assert_array_equal(
            mem[r["q_second"] : r["q_second"] + r["n"] - r["n_first"]], records[second_name][state][1].reshape(-1)
        )
        assert r["dof_first"] == parts["dof"][0] + (1 + element) * parts["n"][0]
        assert r["dof_second"] == parts["dof"][1]


def test_numbers_functions_and_controls_of_a_part():
    records = np.repeat(circuits(), 2)
    records["plant"]["T"][1] *= 10
    work, functions = Allocator(2), FunctionSlots(records)
    parts = parts_of(records, split(model_of(records))[0], functions, work, first_order.PART, ("b", "u"), ("M", "A"))
    cells, plant = parts
    mem, stored = memory(records)[1], work.array()[1]
    assert (cells["A_kind"], plant["A_kind"], cells["M"], cells["b"]) == (DIAGONAL, DENSE, ABSENT, ABSENT)
    assert functions.addresses[0, cells["b_function"]] != 0
    assert (mem[cells["z"]], mem[plant["A"]]) == (7.0, 4.0)
    assert plant["n_u"] == 2
    np.testing.assert_array_equal(mem[plant["u"] : plant["u"] + 2], [0.1, 0.2])
    np.testing.assert_array_equal(stored[plant["T"] : plant["T"] + 2], [50.0, 60.0])
    assert plant["u_work"] >= plant["T"] + 2


def test_a_control_without_weight_acts_on_the_state_itself():
    records = np.repeat(nsds.system(tank=nsds.first_order_linear(A=np.eye(2), x=[1.0, 2.0], u=[0.0, 0.0])), 3)
    work = Allocator(3)
    parts = parts_of(records, split(model_of(records))[0], FunctionSlots(records), work, first_order.PART, ("b", "u"), ("M", "A"))
    np.testing.assert_array_equal(work.array()[:, parts["T"][0] :][:, :4], np.tile(np.eye(2).reshape(-1), (3, 1)))
