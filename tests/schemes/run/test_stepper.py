"""Steps one by one: the bits of `simulate`, whatever changes in between, and what a stepper refuses."""

import math
import threading
import tracemalloc

import numpy as np
import pytest

import nsds
from nsds import _checks
from nsds.model.records import model_of
from nsds.model.system_kinds import SYSTEMS
from nsds.schemes.run import preparation
from tests.jit.test_plain import STEPS, WITH_SCHEMES

# Of all families, with all schemes: (example, step, scheme or none).
RUNS = [(name, h, None) for name, h in STEPS.items()] + [(name, h, scheme) for (scheme, _), (name, h) in WITH_SCHEMES.items()]
INPUTS = ("u", "z", "fext", "mext", "b")


def built(name, scheme):
    return getattr(nsds.examples, name)(), None if scheme is None else getattr(nsds, scheme)()


def simulated(system, n, h, scheme):
    """The record after n steps of a run that nothing was prepared for."""
    preparation._kept.clear()
    rows = nsds.simulate(system, t_end=float(system["t"]) + n * h, h=h, scheme=scheme)
    return nsds.restart(system, rows[-1])


def pushed(system):
    """The system with other inputs, where it has some in numbers."""
    result, changed = system.copy(), False
    for name, kind, *_ in model_of(system):
        for field in INPUTS if kind in SYSTEMS else ():
            if field in system.dtype[name].base.names and system.dtype[name].base[field].base.kind == "f":
                result[name][field] *= 1.01
                changed = True
    return result if changed else None


def same_state(one, other):
    """Whether two records of one model hold the same bits, but for room for contacts and numbers that no row holds."""
    parts = [name for name in one.dtype.names if name not in ("model", "residual", "n_iter", "status")]
    return all(_same(one[part], other[part]) for part in parts)


def _same(one, other):
    if one.dtype.names is None:
        return one.tobytes() == other.tobytes()
    return all(_same(one[field], other[field]) for field in one.dtype.names if field != "p")  # p is in rows of rigid bodies alone


@pytest.mark.parametrize(("name", "h", "scheme"), RUNS, ids=[f"{name} {scheme or ''}" for name, _, scheme in RUNS])
def test_steps_have_the_bits_of_a_run(name, h, scheme):
    """One by one, several at once, and from a state that was set, after inputs were changed too."""
    system, scheme = built(name, scheme)
    advance = nsds.stepper(system, h, scheme=scheme)
    expected = simulated(system, 6, h, scheme)
    stepped = system
    for _ in range(6):
        stepped = advance(stepped)
    assert same_state(stepped, expected)
    assert same_state(advance(system, 6), expected)
    assert same_state(advance(advance(system, 2), 4), expected)
    other = pushed(advance(system, 2))
    if other is not None:
        assert same_state(advance(other, 3), simulated(other, 3, h, scheme))
    if scheme is not None and (scheme["scheme"] == b"event_driven" or (scheme["scheme"] == b"generalised_alpha" and name == "box_stack")):
        return  # of these `step` starts from the record alone, which has not all that goes on
    for _ in range(6):
        system = nsds.step(system, h, scheme=scheme)
    assert same_state(system, expected)


@pytest.mark.parametrize(("name", "h", "scheme"), RUNS, ids=[f"{name} {scheme or ''}" for name, _, scheme in RUNS])
def test_a_run_that_takes_what_another_prepared_has_its_bits(name, h, scheme):
    system, scheme = built(name, scheme)
    preparation._kept.clear()
    first, second = (nsds.simulate(system, t_end=float(system["t"]) + 8 * h, h=h, scheme=scheme) for _ in range(2))
    assert first.tobytes() == second.tobytes()


def servo(kind, controlled):
    """A plant with a control that is a number, and what sets it in each step: a function of time and state."""
    parts = {
        "first order": lambda: nsds.first_order_linear(A=[[0.0, 1.0], [-4.0, -0.1]], b=[0.1, 0.2], x=[1.0, 0.0], u=[0.0, 0.0]),
        "nonlinear": lambda: nsds.first_order(pendulum, x=[1.0, 0.0], u=[0.0, 0.0]),
        "Lagrangian": lambda: nsds.lagrangian(mass=[1.0], fint=spring, q=[1.0], v=[0.0], u=[0.0]),
    }
    system = {"plant": parts[kind]()}
    if controlled:
        system["controller"] = nsds.sampled_control(feedback, reads="plant", writes="plant")
    return nsds.system(**system)


def pendulum(t, x, z, out):
    out[0] = x[1]
    out[1] = -math.sin(x[0])


def spring(t, q, v, z, out):
    out[0] = 4.0 * q[0] ** 3


def feedback(t, x, state, z, u):
    u[u.size - 1] = -x[1] + 0.3 * math.sin(7.0 * t)


@pytest.mark.parametrize("kind", ["first order", "nonlinear", "Lagrangian"])
def test_inputs_set_between_steps_act_as_those_of_a_controller(kind):
    """The bits of one run with a controller that is called in each step."""
    h, n = 0.01, 300
    rows = nsds.simulate(servo(kind, True), t_end=n * h, h=h)
    system, field = servo(kind, False), "q" if kind == "Lagrangian" else "x"
    advance = nsds.stepper(system, h)
    for k in range(n):
        plant = system["plant"]
        feedback(float(system["t"]), plant["x"] if field == "x" else np.append(plant["q"], plant["v"]), None, None, plant["u"])
        system = advance(system)
        assert system["plant"][field].tobytes() == rows["plant"][field][k + 1].tobytes()


def test_members_make_their_own_steps_from_their_own_times():
    h, system = 0.02, nsds.examples.bouncing_ball()
    systems = np.repeat(system, 5).reshape(5)
    systems["floor"]["e"] = np.linspace(0.1, 0.9, 5)
    advance = nsds.stepper(systems, h)
    counts = np.array([0, 1, 40, 7, 0])
    some = advance(systems, counts)
    for m, n in enumerate(counts):
        alone = systems[m] if n == 0 else nsds.stepper(systems[m], h)(systems[m], int(n))
        assert some[m].tobytes() == alone.tobytes()
    some[2] = systems[2]  # one is set back, the others go on
    assert advance(some, 3)[2].tobytes() == advance(systems, 3)[2].tobytes()
    assert advance(some, np.full(5, 3)).tobytes() == advance(some, 3).tobytes()
    grid = advance(systems, 2).reshape(1, 5)
    assert nsds.stepper(grid, h)(grid).tobytes() == advance(advance(systems, 2)).tobytes()
    assert (advance(systems, 2500) == advance(advance(systems, 1234), 1266)).all()  # more steps than are made in one go


def test_the_result_is_a_copy_unless_out_takes_it():
    h, system = 0.02, nsds.examples.bouncing_ball()
    advance = nsds.stepper(system, h)
    before, one = system.tobytes(), advance(system)
    kept = one.tobytes()
    two = advance(one)
    assert system.tobytes() == before
    assert one.tobytes() == kept
    place = system.copy()
    assert advance(one, out=place) is place
    assert place.tobytes() == two.tobytes()
    assert advance(one, out=one) is one
    assert one.tobytes() == two.tobytes()
    ensemble = np.repeat(system, 6)
    assert nsds.stepper(ensemble[::2], h)(ensemble[::2]).tobytes() == np.repeat(advance(system), 3).tobytes()
    assert advance(ensemble[1]).tobytes() == advance(system).tobytes()
    assert advance(system.astype(system.dtype.newbyteorder(">"))).tobytes() == advance(system).tobytes()


@pytest.mark.parametrize("call", [nsds.stepper, nsds.step])
def test_parameters_that_were_edited_are_prepared_for(call):
    """Masses, restitution, matrices of constraints: factors and Delassus matrices are made of them."""
    h, system = 0.02, nsds.examples.bouncing_ball()
    advance = nsds.stepper(system, h) if call is nsds.stepper else lambda system: nsds.step(system, h)
    system = advance(system)
    for part, field, value in (("ball", "M", np.diag([2.0, 1.0, 1.0])), ("floor", "e", 0.5), ("floor", "H", [[0.5, 0.0, 0.0]])):
        system[part][field] = value
        system["ball"]["q"][0], system["ball"]["v"][0] = 0.0, -1.0
        new = advance(system)
        assert new.tobytes() == nsds.stepper(system, h)(system).tobytes()
        system = new


@pytest.mark.parametrize(
    ("name", "h", "part", "field"),
    [("bouncing_ball", 0.3, "floor", "e"), ("relay_oscillator", 0.05, "plant", "A"), ("filippov_spiral", 0.1, "relays", "upper")],
)
def test_steps_event_by_event_use_what_is_prepared(monkeypatch, name, h, part, field):
    """The bits of steps prepared anew, through events; earlier results remain as they were, and edited parameters are prepared for."""
    system, scheme = getattr(nsds.examples, name)(), nsds.event_driven()

    def anew(system):
        preparation._kept.clear()
        return nsds.step(system, h, scheme=scheme)

    expected = [system]
    for _ in range(5):
        expected.append(anew(expected[-1]))
    found, prepared = [system], []
    monkeypatch.setattr(preparation, "prepare_run", lambda *args, prepare=preparation.prepare_run: prepared.append(1) or prepare(*args))
    preparation._kept.clear()
    for _ in range(5):
        found.append(nsds.step(found[-1], h, scheme=scheme))
    assert len(prepared) == 1
    assert [record.tobytes() for record in found] == [record.tobytes() for record in expected]
    assert nsds.step(found[2], h, scheme=scheme).tobytes() == expected[3].tobytes()  # an earlier state, and another clock
    edited = found[1].copy()
    edited[part][field] *= 0.5
    after = nsds.step(edited, h, scheme=scheme)
    assert len(prepared) == 2
    assert after.tobytes() == anew(edited).tobytes()
    assert after.tobytes() != expected[2].tobytes()


def test_steps_with_hundreds_of_events_and_none():
    """Balls with 0 to some 80 impacts in a step, with two rows each, each with the bits of a run of its own."""
    balls, scheme = np.repeat(nsds.examples.bouncing_ball(), 3), nsds.event_driven()
    balls["floor"]["e"] = 0.5, 0.98, 0.98
    advance = nsds.stepper(balls, 40.0, scheme=scheme)
    stepped = advance(advance(balls), [1, 2, 0])
    for m, n in enumerate((2, 3, 1)):
        rows = nsds.simulate(balls[m], t_end=40.0 * n, h=40.0, scheme=scheme)
        assert m == 0 or rows.size > 150
        assert same_state(stepped[m], nsds.restart(balls[m], rows[-1]))


def test_what_is_handed_over_is_said():
    """Time stepping within a step event by event, as of a run."""
    system, scheme = nsds.examples.bouncing_ball(), nsds.event_driven(max_events=3)
    with pytest.warns(RuntimeWarning, match=r"event_driven: \d+ interval\(s\) were handed over to time stepping, the first up to t = "):
        nsds.stepper(system, 5.0, scheme=scheme)(system)


def test_rooms_for_contacts_grow():
    """The records that come back are larger, and go on as those of a run."""
    box = nsds.shapes.box([0.1, 0.1, 0.1])
    positions = [[0.3 * i, 0.0, 0.0499, 1, 0, 0, 0] for i in range(12)]
    system = nsds.system(
        boxes=nsds.rigid_bodies(1.0, np.eye(3) / 600, q=positions, v=np.zeros((12, 6)), fext=[0, 0, -9.81], count=12),
        contacts=nsds.collisions({"boxes": box}, nsds.newton_impact_friction(e_n=0.0, mu=0.3), world=nsds.shapes.plane(), capacity=6),
    )
    system["boxes"]["q"][6:, 2] += 5e-4  # these touch later
    advance, stepped, h = nsds.stepper(system, 5e-3), system, 5e-3
    for _ in range(8):
        stepped = advance(stepped)
    assert stepped.itemsize > system.itemsize
    assert same_state(stepped, simulated(system, 8, h, None))


def test_what_does_not_fit_is_refused_by_name():
    system = nsds.examples.bouncing_ball()
    systems = np.repeat(system, 3)
    one, some = nsds.stepper(system, 0.01), nsds.stepper(systems, 0.01)
    for advance, arguments, words in [
        (one, (system, -1), "n must be at least 0"),
        (one, (system, 2**60), "n must be at most"),
        (some, (systems, [1, 2]), r"n must be a whole number from 0, or an array of them of shape \(3,\)"),
        (some, (systems, [1, -2, 0]), "n must be a whole number from 0"),
        (one, (systems,), r"shape \(\), got shape \(3,\)"),
        (one, (nsds.examples.relay_oscillator(),), "got another model"),
    ]:
        with pytest.raises(ValueError, match=words):
            advance(*arguments)
    with pytest.raises(TypeError, match="n must be a whole number"):
        one(system, 1.5)
    with pytest.raises(TypeError, match=r"nsds\.system"):
        one([1.0])
    for out in (systems, system.reshape(1), system.tolist()):
        with pytest.raises(ValueError, match="stepper: out must be a writable, contiguous array"):
            one(system, out=out)
    with pytest.raises(ValueError, match="one scheme for all"):
        nsds.stepper(system, 0.01, scheme={"ball": nsds.moreau_jean()})
    with pytest.raises(ValueError, match="on_failure"):
        nsds.stepper(system, 0.01, on_failure="ignore")


@pytest.mark.parametrize("call", [nsds.stepper, nsds.step])
@pytest.mark.parametrize(
    ("part", "field", "value", "words"),
    [
        ("ball", "v", np.nan, r"ball\.v must be finite"),
        ("floor", "e", 2.0, r"floor\.e must be in \[0, 1\]"),
        ("floor", "active", 7, r"floor\.active must be a whole number in \[0, 1\]"),
        (None, "t", np.inf, "t must be finite"),
        (None, "t", 1e17, "h = 0.01 is lost in the rounding"),
        (None, "step", -3, "step must be"),
    ],
)
def test_what_was_edited_is_checked_and_the_next_call_is_as_before(call, part, field, value, words):
    system = nsds.examples.bouncing_ball()
    advance = nsds.stepper(system, 0.01) if call is nsds.stepper else lambda system: nsds.step(system, 0.01)
    good, bad = advance(system), system.copy()
    (bad if part is None else bad[part])[field] = value
    for _ in range(2):
        with pytest.raises(ValueError, match=f"{call.__name__}: .*{words}"):
            advance(bad)
    assert advance(system).tobytes() == good.tobytes()


def test_failures_are_told_as_those_of_a_run():
    def force(t, q, v, z, out):
        out[0] = np.sqrt(z[0] - t)

    system = nsds.system(mass=nsds.lagrangian(mass=[1.0], fint=force, q=[0.0], v=[0.0], z=[0.05]))
    systems = np.repeat(system, 3)
    systems["mass"]["z"][:, 0] = [1.0, 0.05, 1.0]
    advance = nsds.stepper(systems, 0.01)
    assert (advance(systems, 3)["status"] == 0).all()
    with pytest.raises(nsds.SimulationError, match=r"member 1, step \d+ .* fint of part 'mass'") as caught:
        advance(systems, 20)
    assert caught.value.member == 1
    with pytest.raises(nsds.SimulationError, match=r"member 1, step \d+ .* fint of part 'mass'") as caught:
        advance(systems, np.array([0, 20, 1]))
    assert caught.value.member == 1
    assert caught.value.trajectory.shape == (caught.value.step + 1,)
    assert (advance(systems, 3)["status"] == 0).all()
    with pytest.warns(RuntimeWarning, match="fint of part 'mass'"):
        ended = nsds.stepper(systems, 0.01, on_failure="warn")(systems, 20)
    np.testing.assert_array_equal(ended["status"] != 0, [False, True, False])
    assert nsds.stepper(systems, 0.01, on_failure="continue")(systems, 20).tobytes() == ended.tobytes()


def test_memory_is_flat_and_threads_have_steppers_of_their_own():
    system = nsds.examples.bouncing_ball()
    expected = nsds.stepper(system, 1e-3)(system, 500)
    results = [None] * 4

    def work(k):
        advance, one = nsds.stepper(system, 1e-3), system.copy()
        for _ in range(500):
            advance(one, out=one)
        results[k] = one

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one.tobytes() == expected.tobytes() for one in results)
    advance = nsds.stepper(system, 1e-3)
    advance(system)
    tracemalloc.start()
    try:
        for _ in range(1000):
            advance(system)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            advance(system)
        assert tracemalloc.get_traced_memory()[0] - before < 1000
    finally:
        tracemalloc.stop()


def test_what_was_prepared_with_threads_is_prepared_anew_in_a_forked_process(monkeypatch):
    system = nsds.system(ball=nsds.rigid_bodies(1.0, np.eye(3), q=[0, 0, 1, 1, 0, 0, 0], v=[0, 0, 0, 0, 0, 0], fext=[0, 0, -9.81]))
    advance = nsds.stepper(system, 0.01)
    before, stepped = advance.kept, advance(system)
    monkeypatch.setattr(_checks, "_forked_from_threads", [1])
    assert advance(system).tobytes() == stepped.tobytes()
    assert advance.kept is not before
    assert preparation.key_of(system, 0.01, None, None)[-1] is False
