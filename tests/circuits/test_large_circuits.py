"""Circuits of many elements: sparse records, work that grows as the netlist does, steps without a matrix of the devices."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, diags_array, eye_array

import nsds
from nsds.circuits import elimination, equations, readings, record, waveforms
from nsds.circuits.netlist import read
from nsds.schemes.event_driven import linear_operators as by_events
from nsds.schemes.first_order import linear
from nsds.schemes.run import preparation
from nsds.status import CONVERGED
from tests.random_netlists import random_netlist
from tests.strategies import examples


def ladder(n):
    """Sections of R and C, each with a diode and a resistor to ground."""
    lines = ["ladder", ".model dx D", "V1 n0 0 SIN(0 10 1k)"]
    for k in range(n):
        lines += [f"R{k} n{k} n{k + 1} 10", f"C{k} n{k + 1} 0 1u IC=0", f"D{k} n{k + 1} d{k} dx", f"Rd{k} d{k} 0 100"]
    return "\n".join(lines)


def edges(k):
    """Pairs of neighbours in a square of k x k nodes."""
    across = [(k * i + j, k * i + j + 1) for i in range(k) for j in range(k - 1)]
    return across + [(k * i + j, k * i + j + k) for i in range(k - 1) for j in range(k)]


def resistor_grid(k, ohms):
    """A square of k x k nodes, driven at a corner, with capacitors to ground along one border; ohms: of the resistor of each of `edges`."""
    lines = ["grid", "V1 s 0 SIN(0 10 1k)", "Rs s n0 10", *(f"C{i} n{k * i + k - 1} 0 1u" for i in range(k))]
    return "\n".join(lines + [f"R{a}_{b} n{a} n{b} {value}" for (a, b), value in zip(edges(k), ohms, strict=True)])


def entries_worked_on(monkeypatch, text):
    """Sum of the lengths of rows, over all eliminations."""
    work, eliminate = [], elimination.eliminate

    def counted(row, key, other):
        eliminate(row, key, other)
        work.append(len(row))

    with monkeypatch.context() as patch:
        patch.setattr(elimination, "eliminate", counted)
        equations.reduced(read(text, {})[0])
    return sum(work)


def test_equations_take_work_that_grows_as_the_netlist(monkeypatch):
    """Substitutions, and entries of their rows, for each section."""
    sums = [entries_worked_on(monkeypatch, ladder(n)) / n for n in (40, 160)]
    assert sums[1] <= 1.05 * sums[0]


def test_a_grid_of_resistors_takes_little_more_than_its_voltages_have_entries(monkeypatch):
    """Each of the k^2 voltages and 2 k^2 currents depends on k states: those of 3 k^3 entries, each of them a few times."""
    for k in (6, 12):
        assert entries_worked_on(monkeypatch, resistor_grid(k, [10] * (2 * k * (k - 1)))) <= 8 * 3 * k**3


@examples(8)
@given(st.integers(0, 10**6))
def test_equations_of_a_grid_are_those_of_its_dense_matrix_of_conductances(seed):
    """Also where exact numbers would have thousands of digits, and beside resistances of all sizes."""
    rng, k = np.random.default_rng(seed), 9
    ohms = [float(f"{10 ** rng.uniform(-3, 6) if rng.random() < 0.2 else rng.uniform(1, 20):.5g}") for _ in range(2 * k * (k - 1))]
    system = nsds.circuit(resistor_grid(k, ohms))
    # Schur complement of the nodes without a capacitor, in the conductances
    G = np.zeros((k * k, k * k))
    for pair, value in zip(edges(k), ohms, strict=True):
        G[np.ix_(pair, pair)] += np.array([[1.0, -1.0], [-1.0, 1.0]]) / value
    G[0, 0] += 0.1
    inside = np.flatnonzero(np.arange(k * k) % k != k - 1)
    at = np.arange(k - 1, k * k, k)
    A = -(G[np.ix_(at, at)] - G[np.ix_(at, inside)] @ np.linalg.solve(G[np.ix_(inside, inside)], G[np.ix_(inside, at)])) / 1e-6
    np.testing.assert_allclose(system["circuit"]["A"], A, rtol=0, atol=1e-12 * abs(A).max())


def test_rows_that_are_rounded_keep_zeros():
    """A bridge of two long dividers, one with three times the resistances of the other: no current across depends on the source."""
    section = "R{0}{1} {0}{1} {0}{2} {3}\nG{0}{1} {0}{1} 0 {0}{1} 0 {4}"
    dividers = [
        section.format(side, i, i + 1, Fraction(700 + i * i % 913, 100) * factor, Fraction(1 + i % 5, 1000) / factor)
        for side, factor in (("a", 1), ("b", 3))
        for i in range(300)
    ]
    ends = ["V1 s 0 SIN(0 10 1k)", "Ra s a0 3", "Rb s b0 9", "C1 a300 0 1u", "C2 b300 0 1u", "Rm a150 b150 10"]
    found = equations.reduced(read("\n".join(["bridge", *dividers, *ends]), {})[0])
    assert found.currents["Rm"].keys() == {("x", "C1"), ("x", "C2")}


def test_events_of_a_long_circuit_are_found_by_sparse_factors(monkeypatch):
    """Where rows lie at zeros of a current, as before it has come to a section: as by the pseudo-inverse."""
    system = nsds.circuit(ladder(130))
    rows = nsds.simulate(system, t_end=1e-4, h=5e-6, scheme=nsds.event_driven(), progress=False)
    middles, found = [], readings.Readings._in_the_middle
    monkeypatch.setattr(readings.Readings, "_in_the_middle", lambda *given: middles.append(given) or found(*given))
    by_factors = nsds.circuits.events(system, rows)
    assert 0 < len(middles) < len(rows)  # once for all devices
    monkeypatch.setattr(readings, "LARGE", 10**9)
    assert nsds.circuits.events(system, rows).tolist() == by_factors.tolist()


def test_states_that_nothing_has_reached_cost_nothing_and_change_nothing():
    """A circuit among many that stand still, before and behind it, moves as alone, event by event."""
    still = "\n".join(f"R{k} s{k} s{k + 1} 10\nC{k} s{k + 1} 0 1u\nD{k} s{k + 1} 0 dx" for k in range(60))
    moving = "V1 a 0 SIN(0 10 1k)\nRa a b 10\nCa b 0 1u IC=1\nDa b c dx\nRb c d 100\nCb d 0 1u\nRd d 0 300"
    alone, among = (
        f"title\n.model dx D\n{lines}\n"
        for lines in (moving, f"{still}\n{moving}\n{still.replace('s', 'u').replace('R', 'Ru').replace('C', 'Cu').replace('D', 'Du')}")
    )
    systems = [nsds.circuit(text) for text in (alone, among)]
    rows = [nsds.simulate(system, t_end=2e-3, h=2e-5, scheme=nsds.event_driven(), progress=False) for system in systems]
    by_rows = [each[each["status"] == CONVERGED] for each in rows]
    for node in "bd":
        values = [nsds.circuits.voltage(*pair, node) for pair in zip(systems, by_rows, strict=True)]
        np.testing.assert_allclose(values[0], values[1], rtol=0, atol=1e-12)
    moved = by_rows[1]["circuit"]["x"]
    assert np.count_nonzero(abs(moved).max(axis=0)) == 2


def test_a_sparse_record_is_the_dense_one(monkeypatch):
    sparse = nsds.circuit(ladder(70))
    monkeypatch.setattr(record, "LARGE", 10**9)
    dense = nsds.circuit(ladder(70))
    assert sparse["circuit"]["A"].dtype.names
    assert dense["circuit"]["A"].shape == (70, 70)
    rows = [nsds.simulate(one, t_end=2e-4, h=5e-6, progress=False) for one in (sparse, dense)]
    np.testing.assert_allclose(rows[0]["circuit"]["x"], rows[1]["circuit"]["x"], rtol=0, atol=1e-12)
    for reading, name in ((nsds.circuits.voltage, "d33"), (nsds.circuits.current, "D33"), (nsds.circuits.current, "V1")):
        values = [reading(system, each, name) for system, each in zip((sparse, dense), rows, strict=True)]
        np.testing.assert_allclose(values[0], values[1], rtol=0, atol=1e-12)
    ledgers = [nsds.circuits.energy(system, each) for system, each in zip((sparse, dense), rows, strict=True)]
    for field in ledgers[0].dtype.names:
        np.testing.assert_allclose(ledgers[0][field], ledgers[1][field], rtol=0, atol=1e-15)
    assert nsds.circuits.events(sparse, rows[0]).tolist() == nsds.circuits.events(dense, rows[1]).tolist()


def test_a_ladder_of_a_thousand_sections_obeys_kirchhoff():
    """Currents of the resistors into a node are those of its capacitor and its diode, and no diode has both a voltage and a current."""
    circuit = nsds.circuit(ladder(1000))
    rows = nsds.simulate(circuit, t_end=1e-4, h=5e-6, progress=False)
    assert (rows["status"] == CONVERGED).all()
    for k in (0, 1, 500, 998):
        into, out_of, diode = (nsds.circuits.current(circuit, rows, name) for name in (f"R{k}", f"R{k + 1}", f"D{k}"))
        charging = np.diff(1e-6 * nsds.circuits.voltage(circuit, rows, f"n{k + 1}")) / 5e-6
        np.testing.assert_allclose((into - out_of - diode)[1:], charging, rtol=0, atol=1e-12)
    y, lam = rows["devices"]["y"], rows["devices"]["lambda"]
    assert min(y.min(), lam.min()) >= -1e-12
    assert np.minimum(y, lam).max() <= 1e-12


@examples(30)
@given(st.integers(0, 10**6))
def test_steps_with_and_without_a_matrix_of_the_devices_agree(seed):
    """Ideal diodes and switches in loops and cut sets, also such as contradict each other: as many steps succeed, with the same results."""
    try:
        circuit = nsds.circuit(random_netlist(seed))
    except ValueError:
        return
    rows = []
    with pytest.MonkeyPatch.context() as patch:
        for pairs in (linear.number_of_pairs, lambda *tables: 10**6):
            preparation._kept.clear()
            patch.setattr(linear, "number_of_pairs", pairs)
            patch.setattr(linear, "is_cheaper", lambda planned, n_pairs: n_pairs == 10**6)
            patch.setattr(linear, "SMALLEST", 0)
            rows.append(nsds.simulate(circuit, t_end=1e-4, h=2e-6, on_failure="continue", progress=False))
    preparation._kept.clear()
    good = (rows[0]["status"] == CONVERGED) & (rows[1]["status"] == CONVERGED)
    assert good.sum() == (rows[0]["status"] == CONVERGED).sum() == (rows[1]["status"] == CONVERGED).sum()
    until = good.size if good.all() else int(np.argmin(good))
    for part, field in (("circuit", "x"), ("devices", "y")):
        one, other = (each[part][field][:until] for each in rows)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8 * (1e-3 + abs(other).max(initial=0.0)))


def without_events(rows):
    """The rows at the times of the steps: those of events follow them, with the same number."""
    return rows[np.append(True, np.diff(rows["step"]) > 0)]


def relays(n):
    """Heat equation with a relay on each node, which sticks or slides."""
    A = 10.0 * (np.eye(n, k=1) + np.eye(n, k=-1) - 2.0 * np.eye(n))
    relation = nsds.first_order_linear_relation(C=np.eye(n), B=np.eye(n))
    plant = nsds.first_order_linear(A=A, x=np.sin(3.0 * np.arange(n)) * np.linspace(-1.0, 1.0, n))
    return nsds.system(plant=plant, friction=nsds.interaction(relation, nsds.relay(-0.1, 0.1), on="plant"))


@pytest.mark.parametrize(("build", "h", "steps"), [(lambda: nsds.circuit(ladder(70)), 5e-6, 12), (lambda: relays(70), 1e-3, 4)])
def test_events_with_sparse_operators_are_those_with_full_ones(monkeypatch, build, h, steps):
    runs = []
    for many in (10**6, 64):
        monkeypatch.setattr(by_events, "_MANY", many)
        monkeypatch.setattr(by_events, "LARGEST_LOOKED_AT", many)
        monkeypatch.setattr(by_events, "_FEW", many)
        rows = nsds.simulate(build(), t_end=steps * h, h=h, scheme=nsds.event_driven(), progress=False)
        runs.append(without_events(rows))
    part, row = rows.dtype.names[5:7]
    for name, field in ((part, "x"), (row, "lambda")):
        values = [run[name][field] for run in runs]
        np.testing.assert_allclose(*values, rtol=0, atol=1e-12 * abs(values[0]).max())


def coupled_rows(seed):
    """Random states in a line, with relays or diodes on some of them, whose D or C B couples up to three neighbours."""
    rng, n, m = np.random.default_rng(seed), 90, 70
    A = sparse_line(n, rng) - 3.0 * eye_array(n)
    C = csr_array((rng.choice([1.0, -1.0], m), (np.arange(m), np.sort(rng.choice(n, m, replace=False)))), shape=(m, n))
    groups = np.sort(rng.integers(0, 3, m).cumsum() % m)
    D = csr_array(np.where(groups == groups[:, None], 0.2 * rng.normal(size=(m, m)), 0.0))
    D = D @ D.T + 0.1 * eye_array(m) if rng.random() < 0.5 else csr_array((m, m))
    law = nsds.relay(-0.1, 0.1) if rng.random() < 0.5 or D.nnz == 0 else nsds.complementarity()
    relation = nsds.first_order_linear_relation(C=C, B=C.T.tocsr(), D=D)
    plant = nsds.first_order_linear(A=A.tocsr(), b=rng.normal(size=n), x=rng.normal(size=n))
    return nsds.system(plant=plant, law=nsds.interaction(relation, law, on="plant"))


def sparse_line(n, rng):
    """Random couplings of neighbours."""
    return diags_array([rng.normal(size=n - 1), rng.normal(size=n - 1)], offsets=[-1, 1])


@examples(12)
@given(st.integers(0, 10**6))
def test_events_by_components_are_those_of_all_rows_at_once(seed):
    """Random models: those whose rows fall into components, and the same with one component and dense operators at set-up."""
    system, runs = coupled_rows(seed), []
    with pytest.MonkeyPatch.context() as patch:
        for many in (10**6, 64):
            preparation._kept.clear()
            patch.setattr(by_events, "_MANY", many)
            patch.setattr(by_events, "LARGEST_LOOKED_AT", many)
            patch.setattr(by_events, "_FEW", many)
            runs.append(without_events(nsds.simulate(system, t_end=0.5, h=0.1, scheme=nsds.event_driven(), progress=False)))
    preparation._kept.clear()
    for part, field in (("plant", "x"), ("law", "lambda")):
        one, other = (run[part][field] for run in runs)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * abs(one).max())


def test_events_of_models_whose_operators_fill_a_gigabyte_are_refused_with_what_to_take():
    """Rows that D couples to each other without determining lambda of each are one component, which reads all states."""
    n = 4000
    one, D = eye_array(n).tocsr(), diags_array([np.ones(n - 1), -np.ones(n - 1)], offsets=[1, -1]).tocsr()
    relation = nsds.first_order_linear_relation(C=one, B=one, D=D)
    system = nsds.system(
        plant=nsds.first_order_linear(A=-one, x=np.ones(n)), diodes=nsds.interaction(relation, nsds.complementarity(), on="plant")
    )
    with pytest.raises(ValueError, match=r"4000 states and 4000 rows would be dense, 1\.\d+ GB; nsds\.euler_moreau"):
        nsds.simulate(system, t_end=1e-3, h=1e-3, scheme=nsds.event_driven(), progress=False)


def test_events_of_a_long_ladder_take_work_that_grows_as_it_does():
    """Entries of the operators of one member, and of its memory."""
    sizes = []
    for n in (300, 900):
        record = nsds.circuit(ladder(n)).reshape(1)
        prepared = preparation.prepare_run("simulate", record, 5e-6, nsds.event_driven(), None, True)[0].prepared
        sizes.append((prepared.work.size + prepared.iwork.size) / n)
    assert sizes[1] <= 1.1 * sizes[0]


def test_a_ladder_of_300_sections_moves_event_by_event_as_a_short_one():
    """Where its end cannot be felt yet."""
    runs = [nsds.simulate(nsds.circuit(ladder(n)), t_end=3e-5, h=5e-6, scheme=nsds.event_driven(), progress=False) for n in (60, 300)]
    short, long = (without_events(rows)["circuit"]["x"][:, :30] for rows in runs)
    np.testing.assert_allclose(long, short, rtol=0, atol=1e-12 * abs(short).max())


def test_motion_that_fades_along_a_ladder_keeps_its_digits():
    """Each section has a part of the one before: where that leads below numbers with all digits, it stands still."""
    rows = nsds.simulate(nsds.circuit(ladder(500)), t_end=5e-4, h=5e-6, scheme=nsds.event_driven(), progress=False)
    x = abs(rows["circuit"]["x"][-1])
    assert 0 < np.count_nonzero(x) < x.size
    assert 1e-250 < x[x > 0.0].min() < 1e-100 * x.max()


def test_edited_maps_of_a_large_circuit_are_checked():
    circuit = nsds.circuit(ladder(70))
    circuit["names"]["voltages"]["indices"][3] = 10**6
    with pytest.raises(ValueError, match=r"names\.voltages\.indices must be a whole number"):
        nsds.simulate(circuit, t_end=1e-5, h=5e-6, progress=False)


def gated(n):
    """Buck converters side by side, each with a gate of its own, and a sine that capacitors follow at once."""
    lines = [".model SW SW(Vt=0.5)", ".model DI D", "Vin in 0 10", "Vs s 0 SIN(0 1 20k)", "Ca s m 1u", "Cb m 0 1u", "Rm m 0 1k"]
    for k in range(n):
        lines += [f"Vg{k} g{k} 0 PULSE(0 1 {k % 7}u 0 0 5u 10u)", f"S{k} in a{k} g{k} 0 SW", f"D{k} 0 a{k} DI"]
        lines += [f"L{k} a{k} o{k} 100u", f"C{k} o{k} 0 10u", f"R{k} o{k} 0 5"]
    return "\n".join(["gates", *lines])


@pytest.mark.parametrize("scheme", [None, nsds.event_driven()])
def test_many_driven_switches_move_as_by_dense_weights(scheme, monkeypatch):
    sparse = nsds.circuit(gated(41))
    monkeypatch.setattr(record, "LARGE", 10**9)
    dense = nsds.circuit(gated(41))
    assert sparse["devices"]["z"].size < dense["devices"]["z"].size / 4
    rows = [nsds.simulate(one, t_end=3e-5, h=1e-6, scheme=scheme, progress=False) for one in (sparse, dense)]
    assert abs(rows[0]["circuit"]["x"][-1]).min() > 1e-3  # all of them run
    for reading, name in ((nsds.circuits.voltage, "m"), (nsds.circuits.current, "S3"), (nsds.circuits.current, "D40")):
        values = [reading(system, each, name) for system, each in zip((sparse, dense), rows, strict=True)]
        np.testing.assert_allclose(values[0], values[1], rtol=0, atol=1e-12)


def test_records_of_driven_switches_grow_as_the_netlist_does():
    sizes = [nsds.circuit(gated(n)).nbytes for n in (200, 400)]
    assert sizes[1] < 2.1 * sizes[0]


@pytest.mark.parametrize("place", ["WEIGHTS", "SWITCH"])
@pytest.mark.parametrize("part", ["devices", "names"])
def test_edited_places_of_sources_are_refused(part, place):
    """Where columns of weights begin, and which waves control a switch."""
    circuit = nsds.circuit(gated(2))
    z = circuit[part]["z"]
    z[int(z[getattr(waveforms, place)]) + (waveforms.SWITCH_HEAD if place == "SWITCH" else 0)] += 1
    with pytest.raises(ValueError, match="entries were changed that say where"):
        nsds.simulate(circuit, t_end=1e-6, h=1e-6, progress=False)


def test_lines_of_inductors_and_more_than_ten_thousand_diodes_are_ordinary():
    """Each diode clamps its node: with all of them closed no voltage is above the supply."""
    n, lines = 5001, ["line", ".model dx D", "V1 n0 0 5", "VP vp 0 3.3"]
    for k in range(n):
        lines += [f"L{k} n{k} n{k + 1} 2.5n IC=0.1", f"C{k} n{k + 1} 0 1p IC=3.3", f"DU{k} n{k + 1} vp dx", f"DL{k} 0 n{k + 1} dx"]
    system = nsds.circuit("\n".join([*lines, f"RL n{n} 0 33"]))
    rows = nsds.simulate(system, t_end=2e-11, h=1e-11, progress=False)
    assert (rows["status"] == CONVERGED).all()
    assert nsds.circuits.voltage(system, rows, f"n{n // 2}").max() <= 3.3 + 1e-12
