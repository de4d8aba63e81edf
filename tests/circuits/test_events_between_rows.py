"""What devices did between rows that are far apart: conduction that begins and ends at zeros of the current, phases that come in late."""

import numpy as np
import pytest

import nsds

DI = ".model DI D"
BRIDGE = ["D1 c p DI", "D2 b p DI", "D3 n c DI", "D4 n b DI", DI]
SIX = ["VA a 0 SIN(0 10 50)", "VB b 0 SIN(0 10 50 0 0 120)", "VC c 0 SIN(0 10 50 0 0 240)", "L1 p m 10m", "R1 m n 5", DI]
SIX += [line for k in "abc" for line in (f"L{k} {k} {k}x 1m", f"D{k}1 {k}x p DI", f"D{k}2 n {k}x DI")]
NETLISTS = {
    "inductor": ["V1 in 0 SIN(0 10 50)", "D1 in out DI", "L1 out m 10m", "R1 m 0 10", DI],
    "inductor, Ron": ["V1 in 0 SIN(0 10 50)", "D1 in out DI", "L1 out m 10m", "R1 m 0 10", ".model DI D(Ron=10m)"],
    "inductor, leak": ["V1 in 0 SIN(0 10 50)", "D1 in out DI", "L1 out m 10m", "R1 m 0 10", ".model DI D(Ron=1m Roff=1e9)"],
    "resonant": ["V1 in 0 SIN(0 10 50)", "D1 in out DI", "L1 out m 1m", "C1 m 0 100u", "R1 m 0 100", DI],
    "floating bridge": ["V1 a b SIN(0 10 50)", "L1 a c 5m", *BRIDGE, "C1 p n 1000u", "R1 p n 50"],
    "six pulses": SIX,
    "zener": ["V1 in 0 SIN(0 20 50)", "L1 in x 10m", "R1 x out 10", "D1 0 out DI", ".model DI D(Vfwd=0.7 Vrev=5.1)"],
    "current": ["I1 0 a SIN(0 1 50)", "D1 a 0 DI", "D2 0 a DI", DI],
}


def events(circuit, h):
    rows = nsds.simulate(circuit, t_end=0.099, h=h, scheme=nsds.event_driven())
    found = nsds.circuits.events(circuit, rows)
    return found[np.lexsort((found["device"], np.round(found["t"], 9)))]


@pytest.mark.parametrize("name", NETLISTS)
def test_all_distances_of_rows_tell_the_same_events(name):
    circuit = nsds.circuit(NETLISTS[name])
    expected = events(circuit, 2e-4)
    assert len(expected) > 5
    for h in (0.005, 0.01, 0.02, 0.033, 0.07):
        found = events(circuit, h)
        assert (found["device"] == expected["device"]).all()
        assert (found["state"] == expected["state"]).all()
        np.testing.assert_allclose(found["t"], expected["t"], atol=1e-9)


def test_a_half_wave_into_an_inductor_conducts_until_its_flux_is_gone():
    """Once a period, from 20 k ms to where ``sin(wt - phi) + sin(phi) exp(-R t / L)`` is 0."""
    found, phi = events(nsds.circuit(NETLISTS["inductor"]), 0.05), np.arctan(100 * np.pi * 1e-3)
    assert found["state"].tolist() == [1, 0] * 5
    np.testing.assert_allclose(found["t"][::2], 0.02 * np.arange(5), atol=1e-12)
    late = found["t"][1] - found["t"][0]
    assert np.sin(100 * np.pi * late - phi) + np.sin(phi) * np.exp(-1e3 * late) == pytest.approx(0.0, abs=1e-10)


def test_two_phases_that_meet_a_third_one_late():
    """The third phase has carried nothing when it comes in; after some periods each diode conducts once a period, all alike long."""
    circuit = nsds.circuit(SIX)
    rows = nsds.simulate(circuit, t_end=0.2, h=1e-3, scheme=nsds.event_driven())
    found = nsds.circuits.events(circuit, rows)
    lengths = []
    for device in ("Da1", "Db1", "Dc1", "Da2", "Db2", "Dc2"):
        own = found[(found["device"] == device) & (found["t"] > 0.1)]
        begin, end = own["t"][own["state"] == 1], own["t"][own["state"] == 0]
        end = end[end > begin[0]]
        lengths.append(end[0] - begin[0])
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-6)
    assert lengths[0] > 0.02 / 3  # a third of a period, and overlap
