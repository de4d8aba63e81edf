"""Sources of a record that take other waves: as a circuit made anew, prepared only where it must be, and what is refused."""

import numpy as np
import pytest

import nsds
from nsds.schemes.run import preparation

WAVES = {  # two waves of one source
    "PULSE": ("PULSE(0 10 1m 1m 2m 3m 10m)", "PULSE(-1 8 0 2m 1m 4m 9m)"),
    "PWL": ("PWL(0 0 5m 10 6m -10)", "PWL(1m 1 2m 9 8m -5)"),
    "SIN": ("SIN(0 10 50)", "SIN(1 8 60 2m 20)"),
    "SIN that waits": ("SIN(0 10 50 1m 0 90)", "SIN(1 8 60 2m 0 45)"),
    "EXP": ("EXP(0 10 1m 2m 12m 1m)", "EXP(1 8 2m 3m 9m 2m)"),
    "AM": ("AM(5 1 50 200)", "AM(4 2 60 300)"),
    "SFFM": ("SFFM(0 10 100 1 30)", "SFFM(1 8 110 1 30)"),
}
SCHEMES = {"steps": None, "events": nsds.event_driven()}


def rectifier(wave, r=100):
    """Half-wave, from a source behind a resistor in a subcircuit."""
    return nsds.circuit(
        [".subckt source a", f"Vg a0 0 {wave}", "Ri a0 a 1", ".ends", "X1 in source", "D1 in out DI", "C1 out 0 100u", f"R1 out 0 {r}",
         ".model DI D"],
    )  # fmt: skip


def simulated(system, scheme, t_end=0.03):
    return nsds.simulate(system, t_end=t_end, h=1e-3, scheme=SCHEMES[scheme])


def name_of(system):
    return system["names"]["source_names"].item().decode().split()[0].removesuffix("#wait")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", WAVES)
def test_runs_are_those_of_a_circuit_made_anew(kind, scheme):
    """Also where the run before was prepared with the former wave, and of members of an ensemble; voltages are read with the new one."""
    first, second = WAVES[kind]
    anew, system = rectifier(second), rectifier(first)
    preparation._kept.clear()
    expected = simulated(anew, scheme)
    preparation._kept.clear()
    simulated(system, scheme)
    nsds.circuits.set_source(system, name_of(system).lower(), second)
    assert system.tobytes() == anew.tobytes()
    rows = simulated(system, scheme)
    assert rows.tobytes() == expected.tobytes()
    assert nsds.circuits.voltage(system, rows, "in").tobytes() == nsds.circuits.voltage(anew, expected, "in").tobytes()
    several = np.stack([rectifier(first), rectifier(first, 200)])
    nsds.circuits.set_source(several, name_of(system), second)
    assert several.tobytes() == np.stack([anew, rectifier(second, 200)]).tobytes()


@pytest.mark.parametrize("kind", WAVES)
def test_numbers_of_a_record_count_wherever_preparation_has_used_them(kind):
    """A run after another, whose record differs in z alone, of all parts; of one part alone it contradicts the others."""
    first, second = (rectifier(wave) for wave in WAVES[kind])
    expected, parts = simulated(second, "events"), [name for name in first.dtype.names if "z" in (first.dtype[name].names or ())]
    simulated(first, "events")
    for name in parts:
        first[name]["z"] = second[name]["z"]
        if name != parts[-1]:
            with pytest.raises(ValueError, match="have different sources: change them in all parts"):
                simulated(first, "events")
    assert simulated(first, "events").tobytes() == expected.tobytes()
    preparation._kept.clear()
    assert simulated(first, "events").tobytes() == expected.tobytes()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_linear_pieces_need_no_new_preparation(monkeypatch, scheme):
    first, second = WAVES["PULSE"]
    system, prepared = rectifier(first), []
    preparation._kept.clear()
    expected = simulated(rectifier(second), scheme)
    preparation._kept.clear()
    simulated(system, scheme)
    monkeypatch.setattr(preparation, "prepare_run", lambda *args, prepare=preparation.prepare_run: prepared.append(1) or prepare(*args))
    nsds.circuits.set_source(system, name_of(system), second)
    assert simulated(system, scheme).tobytes() == expected.tobytes()
    assert prepared == []


def test_what_does_not_fit_is_refused_and_changes_nothing():
    system = rectifier(WAVES["PULSE"][0])
    before, name = system.copy(), name_of(system)
    for arguments, error, words in [
        ((nsds.examples.bouncing_ball(), name, "SIN(0 1 50)"), ValueError, "must be a record of nsds.circuit"),
        (([1.0], name, "SIN(0 1 50)"), TypeError, "must be a record of nsds.circuit"),
        ((system, "Vx", "SIN(0 1 50)"), ValueError, f"there is no source 'Vx' that varies in time; these are: {name}"),
        ((system, name, 5.0), TypeError, "wave must be a text"),
        ((system, name, "SIN(0 1)"), ValueError, f"wave of '{name}': .*SIN has 3 to 6 numbers"),
        ((system, name, "SIN(0 1 50)"), ValueError, f"the wave of '{name}' must be of the kind and have as many numbers"),
        ((system, name, "PULSE(0 10 1m 1m 2m 3m 10m) Rser=1"), ValueError, f"wave of '{name}' must be a wave alone"),
        ((system, name, "PWL(0 0 1 1)"), ValueError, f"the wave of '{name}' must be of the kind and have as many numbers"),
    ]:
        with pytest.raises(error, match=words):
            nsds.circuits.set_source(*arguments)
    assert system.tobytes() == before.tobytes()


@pytest.mark.parametrize("wave", ["SIN(0 10 50 0 0 90)", "SIN(0 10 50 1m 0 0)"])
def test_a_sine_that_no_longer_waits_is_refused(wave):
    """What it adds while it waits would go on."""
    system = rectifier("SIN(0 10 50 1m 0 90)")
    with pytest.raises(ValueError, match="must be of the kind and have as many numbers as in the netlist"):
        nsds.circuits.set_source(system, name_of(system), wave)


LADDER = [line for k in range(150) for line in (f"R{k} n{k} n{k + 1} 1", f"Cx{k} n{k} 0 1u")]
CHARGED = {  # capacitors that follow a source at once, of which one is no state, or none is
    "two": ["C1 in m 1u", "C2 m 0 1u", "R1 m 0 1k"],
    "one": ["C1 in 0 1u", "R1 in 0 1k"],
    "ladder": ["C1 in 0 1u", "Ra in n0 1", *LADDER],
}


@pytest.mark.parametrize("lines", CHARGED)
def test_a_step_that_asks_for_an_impulse_is_refused_as_in_a_netlist(lines):
    netlist = ["V1 in 0 PULSE(0 1 0 1u 1u 3u 10u)", *CHARGED[lines]]
    with pytest.raises(ValueError, match="the source steps, and capacitors or inductors follow it without a resistor"):
        nsds.circuit([netlist[0].replace("1u 1u", "0 0"), *netlist[1:]])
    system = nsds.circuit(netlist)
    with pytest.raises(ValueError, match="wave of 'V1': the source steps, and capacitors or inductors follow it without a resistor"):
        nsds.circuits.set_source(system, "V1", "PULSE(0 1 0 0 0 3u 10u)")
    nsds.circuits.set_source(system, "V1", "PULSE(0 2 0 2u 1u 3u 10u)")
