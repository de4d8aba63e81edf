"""Event-driven first-order systems: closed forms, circuits, an event-driven twin in NumPy, invariants, refusals."""

import itertools
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm, null_space
from scipy.optimize import brentq

import nsds
from nsds import status
from tests.paths import REFERENCE
from tests.reference_cases import needs_collection
from tests.strategies import examples

EVENTS = nsds.event_driven()


def times_of(rows, bit):
    return rows["t"][(rows["status"] & bit > 0) & (rows["status"] >= status.EVENT)]


def test_two_decoupled_relays_slide_from_their_time_on():
    system = nsds.linear_complementarity_system(np.zeros((2, 2)), 2 * np.eye(2), np.eye(2), x=[1.0, -1.0], law=nsds.relay())
    rows = nsds.simulate(system, t_end=1.0, h=1e-2, scheme=EVENTS)
    np.testing.assert_allclose(rows["plant"]["x"][:, 0], np.maximum(1 - 2 * rows["t"], 0), rtol=0, atol=1e-15)
    assert times_of(rows, status.CLOSED) == pytest.approx([0.5], rel=1e-14)
    assert (rows["switches"]["lambda"][rows["t"] > 0.5] == 0).all()
    np.testing.assert_array_equal(rows["plant"]["x"][:, 0], -rows["plant"]["x"][:, 1])  # identical bits


def test_a_diode_that_carries_nothing_follows_the_voltage_of_the_others():
    """A floating tank behind a bridge turns its voltage: of two rows that are 0, one has no multiplier but through the other.

    Between two times of conduction the tank swings alone; besides, rows are those of short steps.
    """
    bridge, t_end = nsds.examples.filtered_bridge(), 6e-4
    rows = nsds.simulate(bridge, t_end=t_end, h=1e-5, scheme=EVENTS)
    y, lam = rows["diodes"]["y"][1:], rows["diodes"]["lambda"][1:]
    assert y.min() > -1e-12 * abs(y).max()
    assert lam.min() > -1e-12 * abs(lam).max()
    assert abs(y * lam).max() < 1e-12
    at_events = rows[rows["status"] >= status.EVENT]
    assert np.unique(at_events["t"]).size == 7
    swings = rows[(rows["t"] > 4e-5) & (rows["t"] < 2.2e-4)]
    energy = 1e-6 * swings["tank"]["x"][:, 0] ** 2 + 1e-2 * swings["tank"]["x"][:, 1] ** 2
    np.testing.assert_allclose(energy, energy[0], rtol=1e-12)
    assert swings["tank"]["x"][:, 0].min() < -1.0 < 1.0 < swings["tank"]["x"][:, 0].max()
    steps = nsds.simulate(bridge, t_end=t_end, h=1e-8, scheme=nsds.euler_moreau(theta=1.0), save_every=1000)
    grid = rows[rows["status"] < status.EVENT]
    for part in ("tank", "load"):
        assert (abs(grid[part]["x"][1:] - steps[part]["x"][1:]) < 2e-3 * abs(grid[part]["x"]).max(axis=0)).all()


def spiral(x=(3.0, 3.0)):
    return nsds.linear_complementarity_system(np.zeros((2, 2)), [[2.0, -52.0], [52.0, 2.0]], np.eye(2), x=x, law=nsds.relay())


def test_a_spiral_of_two_relays_ends_at_its_time():
    """|x0| + |x1| falls at the rate 4: infinitely many switches until 1.5; then both relays slide."""
    rows = nsds.simulate(spiral(), t_end=2.0, h=1e-2, scheme=EVENTS)
    t = rows["t"]
    followed = (t < 1.5 - 1e-5) | (t > 1.5)
    np.testing.assert_allclose(abs(rows["plant"]["x"]).sum(axis=1)[followed], np.maximum(6 - 4 * t, 0)[followed], rtol=0, atol=1e-12)
    assert times_of(rows, status.ACCUMULATION) == pytest.approx([1.5], abs=1e-12)
    assert (rows["switches"]["lambda"][rows["t"] > 1.5] == 0).all()
    for follows in (1e-3, 1e-9):
        shorter = nsds.simulate(spiral(), t_end=2.0, h=1.0, scheme=nsds.event_driven(accumulation=follows))
        assert times_of(shorter, status.ACCUMULATION) == pytest.approx([1.5], abs=1e-11)


@pytest.mark.parametrize("follows", [1e-3, 1e-6])
def test_periods_that_settle_are_no_accumulation(follows):
    """A relay with hysteresis that oscillates after a pause of 5 s: its periods fall by one ratio, to a limit which is not zero."""
    width, rate = 1e-4, 0.5
    plant = {"A": [[0, 1.0], [0, -rate]], "B": [[1.0], [0]], "C": [[1.0, 0]], "D": [[-width]]}
    system = nsds.linear_complementarity_system(**plant, x=[-3 * width, 3.0], law=nsds.relay())
    rows = nsds.simulate(system, t_end=7.0, h=1e-2, scheme=nsds.event_driven(accumulation=follows))
    assert times_of(rows, status.ACCUMULATION).size == 0
    late = rows["t"] > 6.0
    assert abs(rows["plant"]["x"][late, 0]).max() == pytest.approx(width, rel=1e-9)
    w, switches = 3.0 * np.exp(-rate * 6.5), times_of(rows, status.SWITCHED)
    after = switches[switches > 6.5]
    assert after[2] - after[0] == pytest.approx(4 * width / (1 - w**2), rel=1e-2)


def test_renumbered_relays_have_the_same_bits():
    rows = nsds.simulate(spiral((3.0, 1.0)), t_end=2.0, h=1e-2, scheme=EVENTS)
    swapped = nsds.linear_complementarity_system(np.zeros((2, 2)), [[2.0, 52.0], [-52.0, 2.0]], np.eye(2), x=[1.0, 3.0], law=nsds.relay())
    other = nsds.simulate(swapped, t_end=2.0, h=1e-2, scheme=EVENTS)
    np.testing.assert_array_equal(rows["t"], other["t"])
    np.testing.assert_array_equal(rows["plant"]["x"], other["plant"]["x"][:, ::-1])


def driven_relay(amplitude):
    """x' = amplitude sin t + lambda, the sine a state."""
    A = [[0, amplitude, 0], [0, 0, 1.0], [0, -1.0, 0]]
    return nsds.linear_complementarity_system(A, [[1.0], [0], [0]], [[1.0, 0, 0]], x=[0.25, 0, 1.0], law=nsds.relay())


def test_sliding_ends_where_lambda_reaches_its_bound():
    rows = nsds.simulate(driven_relay(1.5), t_end=3.0, h=0.01, scheme=EVENTS)
    enters = brentq(lambda t: 0.25 - t + 1.5 * (1 - np.cos(t)), 0.2, 0.5, xtol=1e-15)
    leaves = np.arcsin(2 / 3)
    assert times_of(rows, status.CLOSED)[0] == pytest.approx(enters, abs=1e-13)
    assert times_of(rows, status.OPENED)[0] == pytest.approx(leaves, abs=1e-13)
    t, x = rows["t"], rows["plant"]["x"][:, 0]
    slides = (t > enters) & (t < leaves) & (rows["status"] < status.EVENT)
    assert (rows["switches"]["y"][slides] == 0).all()
    np.testing.assert_allclose(rows["switches"]["lambda"][slides], -1.5 * np.sin(t[slides]), rtol=0, atol=1e-14)
    after = (t > leaves) & (t < 2.0)
    np.testing.assert_allclose(x[after], -1.5 * (np.cos(t) - np.cos(leaves))[after] - (t[after] - leaves), rtol=0, atol=1e-13)


def test_sliding_that_touches_its_bound_goes_on():
    """The amplitude 1 reaches the bound at pi/2, and turns: lambda stays in its interval."""
    rows = nsds.simulate(driven_relay(1.0), t_end=3.0, h=0.01, scheme=EVENTS)
    later = rows["t"] > times_of(rows, status.CLOSED)[0]
    np.testing.assert_allclose(rows["plant"]["x"][later, 0], 0.0, rtol=0, atol=1e-7)


def half_wave():
    """A rectifier with a capacitor and a resistor; the source is two states. y: what blocks the diode."""
    w, C, R = 100 * np.pi, 1e-4, 100.0
    A = [[-1 / (R * C), 0, 0], [0, 0, w], [0, -w, 0]]
    return nsds.linear_complementarity_system(A, [[1 / C], [0], [0]], [[1.0, -10.0, 0]], x=[0, 0, 1.0])


def test_a_rectifier_switches_at_the_times_of_its_closed_form():
    rows = nsds.simulate(half_wave(), t_end=0.06, h=1e-4, scheme=EVENTS)
    w, tau = 100 * np.pi, 1e-2
    off = (np.pi - np.arctan(w * tau)) / w
    on = brentq(lambda t: np.sin(w * off) * np.exp(-(t - off) / tau) - np.sin(w * t), 0.0203, 0.0215, xtol=1e-16)
    assert times_of(rows, status.OPENED)[0] == pytest.approx(off, rel=1e-12)
    assert times_of(rows, status.CLOSED)[0] == pytest.approx(on, rel=1e-12)
    assert rows["switches"]["lambda"][1] == pytest.approx(1e-4 * 10 * w * np.cos(w * 1e-4) + 0.1 * np.sin(w * 1e-4), rel=1e-12)


def clipper():
    """Two Zener diodes back to back hold the voltage of a capacitor between -4.0 and 5.8."""
    w, R1, R2, C = 2000 * np.pi, 1e3, 1e4, 1e-7
    A = [[-(1 / R1 + 1 / R2) / C, 20 / (R1 * C), 0], [0, 0, w], [0, -w, 0]]
    return nsds.linear_complementarity_system(
        A, [[-1 / C, 1 / C], [0, 0], [0, 0]], [[-1.0, 0, 0], [1.0, 0, 0]], e=[5.8, 4.0], x=[0, 0, 1.0]
    )


def oscillator():
    """An op-amp of infinite gain with rails, positive and negative feedback: y = v_q - v_p, x = (v_q, v_p)."""
    R1, R2, R3, C1, C2 = 1e4, 2e4, 1e4, 1e-7, 1e-9
    A = np.diag([-1 / (R3 * C1), -(1 / R1 + 1 / R2) / C2])
    return nsds.linear_complementarity_system(A, [[1 / (R3 * C1)], [1 / (R1 * C2)]], [[1.0, -1.0]], x=[-7.0, 0], law=nsds.relay(-9.0, 12.0))


# Switching times of the reference, of the devices in order.
SWITCHED = {
    "halfwave_rc": (half_wave, 0.06, [0.00598093261952, 0.020701623472, 0.0259809326195, 0.040701623472, 0.0459809326195]),
    "zener_clipper": (clipper, 3e-3, [0.00012043485323, 0.000448326500258, 0.000613262588947, 0.000964697130571]),
    "relaxation_oscillator": (
        oscillator, 0.01,
        [0.00155814461805, 0.00329274567343, 0.00479682307021, 0.0065314241256, 0.00803550152238, 0.00977010257776],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SWITCHED)
def test_circuits_switch_at_the_times_of_the_reference(case):
    build, t_end, wanted = SWITCHED[case]
    rows = nsds.simulate(build(), t_end=t_end, h=t_end / 10, scheme=EVENTS)
    found = np.unique(times_of(rows, status.CLOSED | status.OPENED | status.SWITCHED))
    np.testing.assert_allclose(found[: len(wanted)], wanted, rtol=1e-11)


@needs_collection
@pytest.mark.parametrize("case", SWITCHED)
def test_full_reference_of_circuits(case):
    build, t_end, _ = SWITCHED[case]
    with np.load(REFERENCE.parent / "circuits" / case / "ref.npz") as file:
        h = file["t"][1] - file["t"][0]
        rows = nsds.simulate(build(), t_end=t_end, h=h, scheme=EVENTS)
        rows = rows[rows["status"] < status.EVENT]
        x, lam = rows["plant"]["x"], rows["switches"]["lambda"]
        columns = {
            "halfwave_rc": {"v_out": x[:, 0], "i_D1": lam},
            "zener_clipper": {"v_out": x[:, 0]},
            "relaxation_oscillator": {"v_q": x[:, 0], "v_p": x[:, 1], "v_out": lam},
        }[case]
        for name, column in columns.items():
            np.testing.assert_allclose(column[1:], file[name][1:], rtol=0, atol=1e-8 * abs(file[name]).max(), err_msg=name)
        times = np.unique(times_of(nsds.simulate(build(), t_end=t_end, h=h, scheme=EVENTS), 4095))
        wanted = np.unique(file["event_t"][file["event_t"] > 0])
        np.testing.assert_allclose(times[:1] if len(times) != len(wanted) else times, wanted[:1] if len(times) != len(wanted) else wanted,
                                   rtol=0, atol=1e-9 * t_end)  # fmt: skip


def random_model(seed):
    """Dense model with exactly one solution: passive with D, or relays with C B positive definite."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    A = rng.normal(size=(n, n)) - 0.5 * np.eye(n)
    S, K = rng.normal(size=(m, m)), rng.normal(size=(m, m))
    positive = S @ S.T + K - K.T + 0.2 * np.eye(m)
    model = {"A": A, "s": rng.normal(size=n), "e": 0.3 * rng.normal(size=m), "x": 2 * rng.normal(size=n)}
    if seed % 2 or m > n:
        B = rng.normal(size=(n, m))
        return model | {"B": B, "C": B.T, "D": positive, "lower": np.zeros(m), "upper": np.full(m, np.inf), "law": nsds.complementarity()}
    C = np.linalg.qr(rng.normal(size=(n, m)))[0].T
    return model | {"B": C.T @ positive, "C": C, "D": np.zeros((m, m)), "lower": np.full(m, -1.0), "upper": np.full(m, 1.5),
                    "law": nsds.relay(-1.0, 1.5)}  # fmt: skip


def system_of(model):
    D = model["D"] if model["D"].any() else None
    return nsds.linear_complementarity_system(
        model["A"], model["B"], model["C"], D, x=model["x"], b=model["s"], e=model["e"], law=model["law"]
    )


def affine_mode(model, mode):
    """(flow of (x, 1), lambda and y as functions of it) of a mode; None if y = 0 does not say what lambda is."""
    A, B, C, D, s, e = (model[key] for key in "ABCDse")
    n, m = B.shape
    fixed = np.array([model["lower"][i] if mode[i] == 0 else model["upper"][i] if mode[i] == 1 else 0.0 for i in range(m)])
    if not np.isfinite(fixed).all():
        return None
    held = [i for i in range(m) if mode[i] == 2]
    P, rows = D[np.ix_(held, held)], np.column_stack([C[held], e[held] + (D @ fixed)[held]])
    flow = np.vstack([np.column_stack([A, s + B @ fixed]), np.zeros(n + 1)])
    B_held = np.vstack([B[:, held], np.zeros((1, len(held)))])
    for _ in range(n + 1):
        without = null_space(P.T).T if len(held) else np.zeros((0, 0))
        if not len(without):
            break
        within = np.linalg.svd(P)[0][:, : len(held) - len(without)].T
        hidden = without @ rows
        P, rows = np.vstack([within @ P, hidden @ B_held]), np.vstack([within @ rows, hidden @ flow])
    else:
        return None
    lam = np.column_stack([np.zeros((m, n)), fixed])
    lam[held] = -np.linalg.solve(P, rows) if held else lam[held]
    return (
        flow + np.vstack([B, np.zeros((1, m))]) @ (lam - np.column_stack([np.zeros((m, n)), fixed])),
        lam,
        np.column_stack([C, e]) + D @ lam,
    )


def event_driven(model, t_end, dt=2e-3, short=1e-5):
    """(times, x, lambda) by brute force: the mode whose motion obeys the law a little later, until it does not."""
    modes = {mode: affine_mode(model, mode) for mode in itertools.product(range(3), repeat=len(model["e"]))}
    modes = {mode: (*found, expm(dt * found[0]), expm(short * found[0])) for mode, found in modes.items() if found is not None}

    def broken(mode, state):
        """How far a state is from what a mode says (negative), at its worst row."""
        _, lam, y, *_ = modes[mode]
        worst = 1.0
        for i, kind in enumerate(mode):
            values = [[(y @ state)[i]], [-(y @ state)[i]], [(lam @ state)[i] - model["lower"][i], model["upper"][i] - (lam @ state)[i]]][
                kind
            ]
            worst = min(worst, *values)
        return worst

    t, state, rows = 0.0, np.append(model["x"], 1.0), []
    while t < t_end - 1e-12:
        on_it = {mode: max((abs((modes[mode][2] @ state)[i]) for i in range(len(mode)) if mode[i] == 2), default=0.0) for mode in modes}
        allowed = [mode for mode in modes if on_it[mode] < 1e-9]
        mode = max(allowed, key=lambda mode: min(0.0, broken(mode, modes[mode][4] @ state)) - 1e-15 * sum(kind == 2 for kind in mode))
        flow, lam, _, whole, _ = modes[mode]
        moved = False
        while t < t_end - 1e-12:
            step = min(dt, t_end - t)
            new = (whole if step == dt else expm(step * flow)) @ state
            if broken(mode, new) < -1e-13:
                state_, mode_, flow_ = state, mode, flow
                begin = short / 2 if not moved else 0.0
                if broken(mode, expm(begin * flow) @ state) > 0:
                    at = brentq(lambda s, a=state_, b=mode_, c=flow_: broken(b, expm(s * c) @ a), begin, step, xtol=1e-15)
                else:
                    at = begin
                t, state = t + at, expm(at * flow) @ state
                break
            t, state, moved = t + step, new, True
            rows.append((t, state[:-1].copy(), lam @ state))
    return [np.array(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6, 7, 9])
def test_linear_systems_follow_the_twin(seed):
    model = random_model(seed)
    _, x, _ = event_driven(model, 2.0)
    rows = nsds.simulate(system_of(model), t_end=2.0, h=0.1, scheme=EVENTS)
    last = rows[-1]
    assert (rows["status"] & status.OPENED > 0).any() or (rows["status"] == 0).any()
    np.testing.assert_allclose(last["plant"]["x"], x[-1], rtol=0, atol=1e-7 * max(1.0, abs(x).max()))


@given(st.integers(0, 10**6))
@examples(40)
def test_the_law_holds_in_every_row_and_time_stepping_has_this_limit(seed):
    model = random_model(seed)
    rows = nsds.simulate(system_of(model), t_end=2.0, h=0.02, scheme=EVENTS)
    m = len(model["e"])
    y, lam = (rows["switches"][field].reshape(-1, m)[1:] for field in ("y", "lambda"))
    size = 1 + abs(y).max() + abs(lam).max()
    assert (lam >= model["lower"] - 1e-9 * size).all()
    assert (lam <= model["upper"] + 1e-9 * size).all()
    left, right = rows["t"][1:] > 0, lam < model["upper"] - 1e-9 * size
    assert left.all()
    assert (y[right] >= -1e-9 * size).all()
    assert (y[lam > model["lower"] + 1e-9 * size] <= 1e-9 * size).all()
    stepped = nsds.simulate(system_of(model), t_end=2.0, h=1e-3, scheme=nsds.euler_moreau(), save_every=20)
    regular = rows[rows["status"] < status.EVENT]
    scale = max(1.0, abs(stepped["plant"]["x"]).max())
    assert abs(regular["plant"]["x"] - stepped["plant"]["x"]).max() < 0.1 * scale


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5])
def test_units_of_states_and_of_time_change_nothing(seed):
    model, rng = random_model(seed), np.random.default_rng(seed)
    unit, second = 10.0 ** rng.integers(-6, 7, size=len(model["x"])), 1e-4
    scaled = model | {
        "A": unit[:, None] * model["A"] / unit / second, "s": unit * model["s"] / second, "x": unit * model["x"],
        "B": unit[:, None] * model["B"] / second, "C": model["C"] / unit,
    }  # fmt: skip
    rows = nsds.simulate(system_of(model), t_end=2.0, h=0.1, scheme=EVENTS)
    others = nsds.simulate(system_of(scaled), t_end=2.0 * second, h=0.1 * second, scheme=EVENTS)
    np.testing.assert_array_equal(rows["status"], others["status"])
    size = max(1.0, abs(rows["plant"]["x"]).max())
    np.testing.assert_allclose(others["plant"]["x"] / unit, rows["plant"]["x"], rtol=0, atol=1e-9 * size)


def test_time_stepping_approaches_it_to_first_order():
    model = random_model(6)
    exact = nsds.simulate(system_of(model), t_end=2.0, h=2.0, scheme=EVENTS)[-1]["plant"]["x"]
    errors = [
        abs(nsds.simulate(system_of(model), t_end=2.0, h=h, scheme=nsds.euler_moreau())[-1]["plant"]["x"] - exact).max()
        for h in (1e-3, 2.5e-4)
    ]
    assert 3.0 < errors[0] / errors[1] < 5.0


def test_the_number_of_rows_changes_nothing():
    few, many = (nsds.simulate(half_wave(), t_end=0.06, h=h, scheme=EVENTS) for h in (0.06, 1e-5))
    np.testing.assert_allclose(few[-1]["plant"]["x"], many[-1]["plant"]["x"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(times_of(few, status.OPENED), times_of(many, status.OPENED), rtol=1e-13)


def test_a_sampled_controller_is_exact():
    plant = nsds.system(
        plant=nsds.first_order_linear([[0, 1.0], [0, -0.3]], x=[1.0, 0], T=[[0.0], [1.0]], u=[0.0]),
        control=nsds.sampled_control(hold, reads="plant", writes="plant", period=0.1),
    )
    ours = nsds.simulate(plant, t_end=2.0, h=0.1, scheme=EVENTS)
    held = nsds.simulate(plant, t_end=2.0, h=0.1, scheme=nsds.zero_order_hold())
    np.testing.assert_allclose(ours["plant"]["x"], held["plant"]["x"], rtol=0, atol=1e-13)


def hold(t, x, state, z, u):
    u[0] = -x[0] - x[1]


def test_rows_stand_at_times_that_are_given():
    rows = nsds.simulate(half_wave(), t_end=0.01, h=0.01, scheme=nsds.event_driven(time_events=[0.0012345, 0.5]))
    assert times_of(rows, status.TIME_EVENT).tolist() == [0.0012345]


def test_ensembles_have_the_bits_of_single_runs():
    members = np.repeat(driven_relay(1.5), 3)
    members["plant"]["x"][:, 0] = 0.25, 0.5, -0.3
    several = nsds.simulate(members, t_end=3.0, h=0.1, scheme=EVENTS)
    for m in range(3):
        alone = nsds.simulate(members[m], t_end=3.0, h=0.1, scheme=EVENTS)
        np.testing.assert_array_equal(several[m][: len(alone)], alone)
        assert (several[m][len(alone) :]["status"] == status.NOT_COMPUTED).all()


REFUSED = {
    "relative degree 2": lambda: nsds.linear_complementarity_system([[0, 1.0], [0, 0]], [[0], [1.0]], [[1.0, 0]], x=[1.0, 0]),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_it_is_not_for_is_refused_by_name(words):
    with pytest.raises(ValueError, match=re.escape(words)):
        nsds.simulate(REFUSED[words](), t_end=1.0, h=0.1, scheme=EVENTS)


def test_an_output_that_is_violated_at_the_start_jumps_and_where_no_jump_helps_the_step_fails():
    system = nsds.linear_complementarity_system([[0.0]], [[2.0]], [[1.0]], x=[-1.0])
    rows = nsds.simulate(system, t_end=1.0, h=0.1, scheme=EVENTS)
    assert rows["status"][1] & status.JUMP
    assert (rows["plant"]["x"][1:] == 0.0).all()
    backwards = nsds.linear_complementarity_system([[0.0]], [[-1.0]], [[1.0]], x=[-1.0])
    with pytest.raises(nsds.SimulationError, match=r"y is negative.*no jump along B was found"):
        nsds.simulate(backwards, t_end=1.0, h=0.1, scheme=EVENTS)
    rows = nsds.simulate(backwards, t_end=1.0, h=0.1, scheme=EVENTS, on_failure="continue")
    assert (rows["status"][1:] == status.VIOLATED).all()  # no row says that there is a motion


@pytest.mark.parametrize("seed", range(12))
def test_a_state_jumps_as_the_first_step_of_euler_moreau_does_in_the_limit(seed):
    """``y = C x + e + D lambda`` with D that is singular, or 0, and no lambda that makes y what it must be."""
    rng = np.random.default_rng(seed)
    n, m = 4, 1 + seed % 3
    A, B, L, w = rng.normal(size=(n, n)) - 0.5 * np.eye(n), rng.normal(size=(n, m)), rng.normal(size=(m, m)), 0.1 + rng.random(m)
    L -= np.outer(w, w @ L) / (w @ w)  # no lambda changes w^T y, which begins below 0
    system = nsds.linear_complementarity_system(A, B, B.T, L @ L.T, x=-B @ w, b=rng.normal(size=n))
    rows = nsds.simulate(system, t_end=0.5, h=0.05, scheme=EVENTS)
    assert rows["status"][1] & status.JUMP
    steps = [nsds.simulate(system, t_end=0.5, h=h)["plant"]["x"][-1] for h in (2e-4, 1e-4)]
    np.testing.assert_allclose(rows["plant"]["x"][-1], 2 * steps[1] - steps[0], atol=max(2 * abs(steps[1] - steps[0]).max(), 1e-6))
    assert min(rows["switches"]["y"][1:].min(), rows["switches"]["lambda"][1:].min()) > -1e-9


@pytest.mark.parametrize("gap", [0.3, 0.03, 0.003])
def test_rows_that_contradict_each_other_a_little_end_the_run(gap):
    """``w_1 = d - 1``, ``w_2 = 1 - gap - d``: no d has both positive, and the nearest one is no mode."""

    def rate(t, z, out):
        out[0] = 1.0

    relation = nsds.first_order_linear_relation(C=[[0.0], [0.0]], B=[[1.0, -1.0]], D=[[1.0, -1.0], [-1.0, 1.0]], e=[-1.0, 1.0 - gap])
    part = nsds.first_order_linear(A=[[0.0]], x=[0.0], b=rate)
    system = nsds.system(plant=part, switches=nsds.interaction(relation, nsds.complementarity(), on="plant"))
    with pytest.raises(nsds.SimulationError, match="no point satisfies the inequalities") as raised:
        nsds.simulate(system, t_end=1.0, h=0.1, scheme=nsds.event_driven(hybrid=False))
    assert raised.value.status == status.INFEASIBLE


def test_events_are_counted():
    """A spiral whose accumulation is not taken has more events than anyone wants: the run ends, and keeps its rows."""
    with pytest.raises(nsds.SimulationError, match="interaction 'switches': more events") as error:
        nsds.simulate(spiral(), t_end=2.0, h=1.0, scheme=nsds.event_driven(accumulation=0.0, max_events=50))
    assert len(error.value.trajectory) > 50


def skew_relays(seed):
    """Relays whose D is skew, as in a gyrator, some of which chatter."""
    rng = np.random.default_rng(seed)
    n, m = 4, 3
    C, K = rng.normal(size=(m, n)), rng.normal(size=(m, m))
    A, x = rng.normal(size=(n, n)) - 0.5 * np.eye(n), 2 * rng.normal(size=n)
    return nsds.linear_complementarity_system(A, C.T.copy(), C, K - K.T, x=x, law=nsds.relay())


def test_relays_of_which_no_modes_are_found_are_stepped_in_time_by_default():
    """By "dopri5", as the exact motion goes; with hybrid=False the run ends."""
    handed = 0
    for seed in range(12):
        system, settings = skew_relays(seed), {"t_end": 2.0, "h": 0.05, "on_failure": "continue"}
        exact = nsds.simulate(system, scheme=EVENTS, **settings)[-1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            rows = nsds.simulate(system, scheme=nsds.event_driven(flow="dopri5"), **settings)
        assert rows["t"][-1] == 2.0
        np.testing.assert_allclose(rows["plant"]["x"][-1], exact["plant"]["x"], atol=1e-6 * (1.0 + abs(rows["plant"]["x"]).max()))
        stepped = (rows["status"] >= status.EVENT) & (rows["status"] & status.TIME_STEPPED != 0)
        if stepped.any():
            handed += 1
            ended = nsds.simulate(system, scheme=nsds.event_driven(flow="dopri5", hybrid=False), **settings)
            assert ended["status"].max(where=ended["status"] < status.EVENT, initial=0) > 0
    assert handed > 0


@pytest.mark.parametrize("seed", [18, 144, 177, 378])
def test_modes_that_rounding_decides_between_are_tried(seed):
    """D of low rank, and rows that come to zero together: problems whose matrix is singular but for 1e-12 left their solver stalled."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    A = rng.normal(size=(n, n)) - 0.5 * np.eye(n)
    rng.normal(size=2 * m * m + n)
    s, e, B = rng.normal(size=n), abs(0.3 * rng.normal(size=m)), rng.normal(size=(n, m))
    L = rng.normal(size=(m, int(rng.integers(0, m))))
    system = nsds.linear_complementarity_system(A, B, B.T, L @ L.T, x=np.zeros(n), b=s, e=e)
    rows = nsds.simulate(system, t_end=2.0, h=0.1, scheme=EVENTS)
    errors = [abs(nsds.simulate(system, t_end=2.0, h=h)["plant"]["x"][-1] - rows["plant"]["x"][-1]).max() for h in (1e-2, 1e-3)]
    assert errors[1] < 0.2 * errors[0] < 0.1
    assert min(rows["switches"]["y"].min(), rows["switches"]["lambda"].min()) > -1e-9
