"""Fields of records that are edited between two runs: the second one has the new values, or refuses them, as a first run would."""

import numpy as np
import pytest

import nsds
from nsds.schemes.run import preparation

NETLIST = ["R1 in a 1", "D1 a b DI", "C1 b 0 1m", "R2 b 0 10", "L1 a 0 1m", ".model DI D(Vfwd=0.5)"]


def fed_by(source):
    return nsds.circuit([f"V1 in 0 {source}", *NETLIST])


def relay():
    relation = nsds.first_order_linear_relation([[1.0, 0.3]], [[1.0], [0.2]], D=[[0.3]], e=[0.1], F=[[0.2]], z=[0.4])
    part = nsds.first_order_linear(
        [[-1.0, 2.0], [-2.0, -1.0]], b=[0.1, 0.2], M=[[1.0, 0.1], [0.1, 1.0]], x=[1.0, 0.5], T=[[1.0], [0.5]], u=[0.3]
    )
    return nsds.system(part=part, relay=nsds.interaction(relation, nsds.relay(-1, 1), on="part"))


def ball():
    part = nsds.lagrangian_linear(M=[1.0, 2.0], K=[3.0, 1.0], C=[0.1, 0.2], q=[0.1, 1.0], v=[0.0, 0.5], fext=[0.3, -9.81])
    floor = nsds.interaction(nsds.lagrangian_linear_relation([[0.0, 1.0]], b=[0.1]), nsds.newton_impact(0.5), on="part")
    return nsds.system(part=part, floor=floor)


RUNS = {
    "relay, events": (relay, 0.4, 0.1, nsds.event_driven()),
    "relay, steps": (relay, 0.4, 0.1, nsds.euler_moreau()),
    "circuit, events": (lambda: fed_by("5"), 4e-3, 1e-3, nsds.event_driven()),
    "circuit, steps": (lambda: fed_by("5"), 4e-3, 1e-3, nsds.euler_moreau()),
    "sine, events": (lambda: fed_by("SIN(0 5 50)"), 4e-3, 1e-3, nsds.event_driven()),
    "ball": (ball, 0.4, 0.1, nsds.moreau_jean()),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_after_another_one_has_the_fields_of_its_own_record(name):
    build, t_end, h, scheme = RUNS[name]
    system = build()

    def run(record):
        try:
            return nsds.simulate(record, t_end=t_end, h=h, scheme=scheme).tobytes()
        except (ValueError, nsds.SimulationError) as error:
            return str(error)

    n_tried = 0
    for part in (part for part in system.dtype.names if system.dtype[part].names):
        for field in (field for field in system.dtype[part].names if system[part][field].dtype.kind == "f"):
            edited = system.copy()
            edited[part][field] = edited[part][field] * 1.25 + 0.03125
            preparation._kept.clear()
            fresh = run(edited)
            preparation._kept.clear()
            run(system)
            assert run(edited) == fresh, f"{part}.{field}"
            n_tried += 1
    assert n_tried > 8


@pytest.mark.parametrize("scheme", [nsds.event_driven(), nsds.euler_moreau()])
def test_an_edited_circuit_is_the_one_that_states_these_values(scheme):
    system, other = fed_by("5"), fed_by("7")
    expected = nsds.simulate(other, t_end=4e-3, h=1e-3, scheme=scheme)
    nsds.simulate(system, t_end=4e-3, h=1e-3, scheme=scheme)
    system["circuit"]["b"], system["devices"]["e"] = other["circuit"]["b"], other["devices"]["e"]
    rows = nsds.simulate(system, t_end=4e-3, h=1e-3, scheme=scheme)
    for part, field in (("circuit", "x"), ("devices", "lambda"), ("devices", "y")):
        assert rows[part][field].tolist() == expected[part][field].tolist()


@pytest.mark.parametrize("part", ["circuit", "devices", "names"])
def test_sources_that_differ_between_parts_of_a_circuit_are_refused(part):
    system = fed_by("SIN(0 5 50)")
    nsds.simulate(system, t_end=1e-3, h=1e-3)
    system[part]["z"][np.argmax(system[part]["z"] == 50.0)] = 60.0
    with pytest.raises(ValueError, match="have different sources: change them in all parts"):
        nsds.simulate(system, t_end=1e-3, h=1e-3)


def test_a_circuit_whose_z_is_laid_out_otherwise_is_refused():
    system = fed_by("SIN(0 5 50)")
    system["circuit"]["z"] *= 1.25
    with pytest.raises(ValueError, match=r"circuit\.z: entries were changed that say where its other ones are"):
        nsds.simulate(system, t_end=1e-3, h=1e-3)
