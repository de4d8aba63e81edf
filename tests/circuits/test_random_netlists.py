"""Random netlists event by event: beside the limit of steps in time, and where there is no motion that is said by name."""

import pytest

import nsds
from tests.random_netlists import outcome, random_netlist

CLASHES = {
    77: "D1",
    150: "D2",
    203: "D0",
    291: "D0",
    623: "D2",
    1355: "D4",
    5225: "D0",
}  # seed: what short-circuits the source, or is about to


@pytest.mark.parametrize("first", [0, 120])
def test_random_netlists_agree_with_steps_or_have_no_motion(first):
    for seed in range(first, first + 12):
        kind, said = outcome(seed)
        assert kind in ("agrees", "no motion", "refused"), f"{seed}: {said}"


@pytest.mark.parametrize("seed", CLASHES)
def test_an_event_after_which_there_is_no_motion_names_a_device(seed):
    """The source passes what an ideal diode lets it have: there is one event, not 64 at one time."""
    circuit = nsds.circuit(random_netlist(seed))
    with pytest.raises(nsds.SimulationError, match=r"D\d: no point satisfies .*: a source of voltage is short-circuited") as raised:
        nsds.simulate(circuit, t_end=2e-3, h=1e-5, scheme=nsds.event_driven())
    assert raised.value.status == nsds.status.INFEASIBLE


def test_a_leak_decides_for_nanoseconds_which_way_a_diode_goes():
    """D1 is opened by what D2 leaks, as t^2, and conducts after 24 ns, as t^3 says."""
    netlist = ["V1 a 0 PWL(0 0 300u 0 330u 8.47)", "R1 a b 80.6", "R2 b c 637", "R3 c d 176", "R4 d 0 2.3k", "D1 b c DI", "D2 b d DR",
               "C1 a c 5.65u", "C2 c b 2.14u", ".model DI D", ".model DR D(Ron=10m Roff=10meg Vfwd=0.4)"]  # fmt: skip
    circuit = nsds.circuit(netlist)
    rows = nsds.simulate(circuit, t_end=4e-4, h=1e-5, scheme=nsds.event_driven())
    closed = rows["t"][(rows["status"] & nsds.status.CLOSED > 0) & (rows["t"] > 3e-4)]
    leak = 8.47 / 30e-6 / 1e7 * 176 / 2476
    conducted = 0.5 * 8.47 / 30e-6 / 2476 / 5.65e-6 / 80.6
    assert closed[0] - 3e-4 == pytest.approx(1.5 * leak / conducted, rel=0.01)


def test_a_charge_pump_whose_diodes_stop_within_femtoseconds_of_each_other():
    """Four stages of Dickson's, each edge of 10 ns: currents that a choice of modes sees end are followed to their ends."""
    netlist = ["VDD vdd 0 3.3", "VP p 0 PULSE(0 3.3 0 10n 10n 0.49u 1u)", "VN n 0 PULSE(3.3 0 0 10n 10n 0.49u 1u)", "D1 vdd a DS",
               "C1 a p 100n", "D2 a b DS", "C2 b n 100n", "D3 b c DS", "C3 c p 100n", "D4 c d DS", "C4 d n 100n", "D5 d out DS",
               "Cout out 0 1u", "RL out 0 100k", ".model DS D(Ron=1 Roff=100meg Vfwd=0.3)"]  # fmt: skip
    circuit = nsds.circuit(netlist)
    rows = nsds.simulate(circuit, t_end=3.2e-4, h=1e-5, scheme=nsds.event_driven())
    stepped = nsds.simulate(circuit, t_end=3.2e-4, h=5e-9, save_every=64_000)
    last = [nsds.circuits.voltage(circuit, each, "out")[-1] for each in (rows, stepped)]
    assert last[0] == pytest.approx(last[1], rel=2e-3)
