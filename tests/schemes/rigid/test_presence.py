"""Bodies that are born and die, bonds, springs, clutches and shapes that are switched: against systems without them, and closed forms."""

import io
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds import joints
from tests.schemes.rigid.test_forces import AT_ORIGIN, Z, run
from tests.strategies import examples

G, R = 9.81, 0.1
SCHEMES = {
    "moreau_jean": nsds.moreau_jean(), "explicit": nsds.moreau_jean(form="explicit"), "rattle": nsds.rattle(),
    "generalised_alpha": nsds.generalised_alpha(), "direct": nsds.moreau_jean_direct_projection(),
    "combined": nsds.moreau_jean_combined_projection(),
}  # fmt: skip
LAW = nsds.newton_impact_friction(e_n=0.4, mu=0.3)


def balls(x, v, alive=None, chain=False, **more):
    """Balls over a plane, of which neighbours may hold together by springs."""
    q = np.column_stack([x, np.tile([1.0, 0, 0, 0], (len(x), 1))])
    parts = {"balls": nsds.rigid_bodies(1.0, 0.4 * R**2, q=q, v=v, alive=alive)}
    if chain:
        line = joints.distance([0, 0, 0], [1.0, 0, 0], length=0.3)
        parts["links"] = nsds.interaction(line, nsds.spring_damper(50.0, 1.0), on=("balls[:-1]", "balls[1:]"))
    contacts = nsds.collisions({"balls": nsds.shapes.sphere(R)}, LAW, world=nsds.shapes.plane())
    return nsds.system(gravity=[0, 0, -G], **parts, contacts=contacts, **more)


def scattered(seed, n):
    """Places, of which none touch, and velocities."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([0.25 * np.arange(n), 0.05 * rng.normal(size=n), R + 0.3 * rng.random(n)])
    return x, np.column_stack([rng.normal(size=(n, 3)), 5 * rng.normal(size=(n, 3))])


@pytest.mark.parametrize("name", SCHEMES)
def test_what_is_dead_changes_no_bit_of_what_is_not(name):
    x, v = scattered(1, 5)
    alive = np.array([1, 0, 1, 1, 0], bool)
    x[4] = x[2]  # where another one is
    with_dead = run(balls(x, v, alive), 0.4, 2e-3, SCHEMES[name])
    without = run(balls(x[alive], v[alive]), 0.4, 2e-3, SCHEMES[name])
    for field in "qvp":
        assert with_dead["balls"][field][:, alive].tobytes() == without["balls"][field].tobytes()
    assert without["contacts"]["lambda"].any()
    assert (with_dead["balls"]["q"][:, ~alive, :3] == x[~alive]).all()
    assert (with_dead["balls"]["v"][:, ~alive] == v[~alive]).all()


def on_a_plane(t, q, z, out):
    out[0], out[1], out[2], out[3] = q[2] - R, q[0], q[1], 0.0
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


@pytest.mark.parametrize("name", SCHEMES)
def test_a_disabled_joint_changes_no_bit(name):
    """Nor the guess of impulses of a contact behind it."""
    inertia, law = np.diag([1.0, 2.0, 3.0]), nsds.newton_impact_friction(0.0, 0.4)
    block = nsds.rigid_bodies(1.3, inertia, q=[0, 0, R, 1, 0, 0, 0], v=[2, -1, 0, 0.3, 0.2, 0.1], fext=[0.3, 0, -12.0])
    bond = nsds.interaction(joints.hinge([0, 0, 0.5], [0, 1, 0]), nsds.equality(), on="block", enabled=False)
    plane = nsds.interaction(nsds.contact_point(on_a_plane), law, on="block")
    with_bond, without = (nsds.system(block=block, **more, plane=plane) for more in ({"bond": bond}, {}))
    rows, alone = (run(system, 0.2, 1e-2, SCHEMES[name]) for system in (with_bond, without))
    assert rows["block"].tobytes() == alone["block"].tobytes()
    assert rows["plane"].tobytes() == alone["plane"].tobytes()
    assert alone["plane"]["lambda"].any()


@examples(10)
@given(seed=st.integers(0, 10**6), dead=st.sets(st.integers(0, 3)), name=st.sampled_from(["moreau_jean", "rattle"]))
def test_links_of_the_dead_are_left_out(seed, dead, name):
    """As in chains of those that are left."""
    x, v = scattered(seed, 4)
    alive = np.array([i not in dead for i in range(4)])
    rows = nsds.simulate(balls(x, v, alive, chain=True), t_end=0.1, h=5e-3, scheme=SCHEMES[name])
    for first, last in ((i, j) for i in range(4) for j in range(i + 1, 5) if alive[i:j].all()):
        is_whole = (first == 0 or not alive[first - 1]) and (last == 4 or not alive[last])
        if is_whole and alive.sum() == last - first:  # nobody else whom it could meet
            alone = nsds.simulate(balls(x[first:last], v[first:last], chain=last - first > 1), t_end=0.1, h=5e-3, scheme=SCHEMES[name])
            assert rows["balls"]["q"][:, first:last].tobytes() == alone["balls"]["q"].tobytes()


def born(t, x, state, z, u):
    for i in range(z.size):
        u[i] = 1.0 if t > z[i] - 1e-9 else 0.0


@pytest.mark.parametrize("name", SCHEMES)
def test_who_is_born_later_moves_as_one_that_started_then(name):
    x, v = scattered(2, 3)
    clock = nsds.sampled_control(born, reads="balls", writes="balls.alive", z=[0.0, 0.1, 0.0])
    rows = run(balls(x, v, [True, False, True], clock=clock), 0.4, 2e-3, SCHEMES[name])
    assert rows["balls"]["alive"].sum(axis=0).tolist() == [201, 151, 201]
    assert rows["balls"]["alive"][:, 1].argmax() == 50
    before = balls(x, v, [True, False, True])
    middle = nsds.restart(before, run(before, 0.1, 2e-3, SCHEMES[name])[-1])
    middle["balls"]["alive"][1] = 1
    later = run(middle, 0.4, 2e-3, SCHEMES[name])
    for part, field in (("balls", "q"), ("balls", "v"), ("contacts", "y"), ("contacts", "lambda")):
        assert rows[part][field][51:].tobytes() == later[part][field][1:].tobytes()


def test_a_ball_born_on_the_ground_rests_there():
    """Its contact is there in its first step."""
    clock = nsds.sampled_control(born, reads="balls", writes="balls.alive", z=[0.05])
    rows = run(balls([[0, 0, R]], np.zeros((1, 6)), [False], clock=clock), 0.1, 1e-3)
    np.testing.assert_allclose(rows["balls"]["q"][:, 0, 2], R, atol=1e-15)
    np.testing.assert_allclose(rows["contacts"]["lambda"][51:, 0, 0], G * 1e-3, rtol=1e-9)
    assert not rows["contacts"]["lambda"][:51].any()


def test_death_by_a_condition_and_room_that_grows_at_birth():
    """Many are born at once, with room for one contact; those that have fallen off an edge are taken away."""
    n, rng = 40, np.random.default_rng(3)
    x = np.column_stack([0.25 * np.arange(n) - 4.0, np.zeros(n), np.full(n, R)])
    q, v = np.column_stack([x, np.tile([1.0, 0, 0, 0], (n, 1))]), np.zeros((n, 6))
    v[:, 1] = 0.5 * rng.random(n)
    table = nsds.shapes.box([20.0, 1.0, 0.2], position=[0, 0, -0.1])
    system = nsds.system(
        gravity=[0, 0, -G],
        balls=nsds.rigid_bodies(1.0, 0.4 * R**2, q=q, v=v, alive=np.zeros(n)),
        contacts=nsds.collisions({"balls": nsds.shapes.sphere(R)}, nsds.newton_impact(0.0), world=table, capacity=1),
        birth=nsds.sampled_control(all_at_once, reads="balls.q", writes="balls.alive", z=[-0.5, 0.02], state=[0.0]),
    )
    rows = run(system, 3.0, 5e-3)
    alive = rows["balls"]["alive"]
    assert (alive[:4] == 0).all()
    assert (alive[4] == 1).all()
    assert 0 < alive[-1].sum() < n
    gone = alive[-1] == 0
    assert (rows["balls"]["q"][-1, gone, 2] < -0.5).all()
    assert (rows["balls"]["q"][-1, ~gone, 2] >= -0.5).all()
    np.testing.assert_allclose(rows["contacts"]["n"][5], n)


def all_at_once(t, x, state, z, u):
    if state[0] == 0.0 and t > z[1] - 1e-9:
        u[:] = 1.0
        state[0] = 1.0
    for i in range(u.size):
        if x[7 * i + 2] < z[0]:
            u[i] = 0.0


def cut(t, x, state, z, u):
    if t > z[0] - 1e-9:
        u[0] = 0.0


@pytest.mark.parametrize("name", ["moreau_jean", "rattle", "generalised_alpha"])
@pytest.mark.parametrize("law", ["joint", "spring"])
def test_two_bodies_whose_bond_breaks_keep_momentum_and_what_energy_is_theirs(name, law):
    """They turn about each other, and then fly on along tangents; a spring takes along what it holds."""
    q, v = np.tile(AT_ORIGIN, (2, 1)), np.zeros((2, 6))
    q[1, 0], v[0, 1], v[1, 1], length = 1.0, -2.0, 1.0, 0.7 if law == "spring" else 1.0
    bond = joints.distance(q[0, :3], q[1, :3], length=length)
    held = nsds.spring_damper(100.0) if law == "spring" else nsds.equality()
    system = nsds.system(
        pair=nsds.rigid_bodies([1.0, 2.0], 0.01, q=q, v=v),
        bond=nsds.interaction(bond, held, on=("pair[0]", "pair[1]"), enabled=True),
        cut=nsds.sampled_control(cut, reads="bond.lambda", writes="bond.enabled", z=[0.2]),
    )
    rows = run(system, 0.4, 1e-3, SCHEMES[name])
    assert rows["bond"]["enabled"].tolist() == 200 * [1] + 201 * [0]
    momentum = rows["pair"]["v"][:, :, 1] @ [1.0, 2.0]
    np.testing.assert_allclose(momentum, 0.0, atol=1e-12)
    assert rows["bond"]["lambda"][1:201].all()
    assert not rows["bond"]["lambda"][201:].any()
    assert (rows["pair"]["v"][200:] == rows["pair"]["v"][200]).all()
    ledger = nsds.energy(system, rows)
    taken = 0.0 if law == "joint" else 50.0 * (rows["bond"]["y"][200]) ** 2
    assert abs(ledger["switching"][200] + taken) < 1e-12
    assert np.count_nonzero(ledger["switching"]) == (law == "spring")
    np.testing.assert_allclose(ledger["potential"][200:], 0.0)
    assert abs(ledger["numerical"][201:]).max() < 1e-13


def engage(t, x, state, z, u):
    u[0] = 1.0 if t > z[0] - 1e-9 else 0.0


def test_a_clutch_that_closes():
    """Two flywheels rub until they turn alike: after dw / (T (1/I1 + 1/I2)), with the loss of a plastic impact."""
    I, w, torque, closes, h = np.array([0.3, 0.2]), np.array([20.0, -5.0]), 2.0, 0.1, 1e-3
    v = np.zeros((2, 6))
    v[:, 5] = w
    system = nsds.system(
        wheels=nsds.rigid_bodies(1.0, [[1.0, 1.0, i] for i in I], q=np.tile(AT_ORIGIN, (2, 1)), v=v),
        clutch=nsds.interaction(joints.hinge_angle(Z), nsds.dry_friction(torque), on=("wheels[0]", "wheels[1]"), enabled=False),
        pedal=nsds.sampled_control(engage, reads="wheels", writes="clutch.enabled", z=[closes]),
    )
    rows = run(system, 2.0, h)
    turning, end = rows["wheels"]["v"][:, :, 5], closes + (w[0] - w[1]) / (torque * (1 / I).sum())
    assert (turning[:101] == w).all()
    np.testing.assert_allclose(turning[-1], I @ w / I.sum(), rtol=1e-12)
    slips = abs(turning[:, 0] - turning[:, 1]) > 1e-9
    assert abs(rows["t"][slips][-1] - end) <= 1.01 * h
    ledger = nsds.energy(system, rows)
    assert abs(ledger["contact"].sum() + 0.5 * I.prod() / I.sum() * (w[0] - w[1]) ** 2) < 1e-9
    assert not ledger["switching"].any()


def test_the_ledger_of_births_and_deaths():
    x, v = scattered(4, 2)
    clock = nsds.sampled_control(swap, reads="balls", writes="balls.alive", z=[0.1])
    system = balls(x, v, [True, False], clock=clock)
    rows = nsds.simulate(system, t_end=0.2, h=1e-3, scheme=nsds.moreau_jean())
    ledger, k = nsds.energy(system, rows), 100
    energy = 0.5 * (rows["balls"]["v"][..., :3] ** 2).sum(axis=2) + 0.2 * R**2 * (rows["balls"]["v"][..., 3:] ** 2).sum(axis=2)
    energy += G * rows["balls"]["q"][..., 2]
    np.testing.assert_allclose(ledger["switching"][k], energy[k, 1] - energy[k, 0], rtol=1e-12)
    assert np.flatnonzero(ledger["switching"]).tolist() == [k]
    assert abs(ledger["numerical"]).max() < 1e-12


def swap(t, x, state, z, u):
    if t > z[0] - 1e-9:
        u[0], u[1] = 0.0, 1.0


def coming_and_going():
    """Linked balls, of which one dies and one is born, for runs without a compiler."""
    x, v = scattered(7, 3)
    clock = nsds.sampled_control(swap, reads="balls", writes="balls.alive", z=[0.01])
    return balls(x, v, [True, False, True], chain=True, clock=clock)


def test_a_trap_door_opens():
    """A shape of the world that is switched off: what lay on it falls freely."""
    world = [nsds.shapes.box([1, 1, 0.1], position=[0, 0, -0.05]), nsds.shapes.plane(offset=-1.0)]
    system = nsds.system(
        gravity=[0, 0, -G],
        ball=nsds.rigid_bodies(1.0, 0.4 * R**2, q=[0, 0, R, 1, 0, 0, 0], v=[0] * 6),
        contacts=nsds.collisions({"ball": nsds.shapes.sphere(R)}, LAW, world=world, enabled=True),
        door=nsds.sampled_control(open_door, reads="ball", writes="contacts.enabled", z=[0.1]),
    )
    rows = run(system, 0.3, 1e-3)
    assert rows["contacts"]["enabled"][[99, 100]].tolist() == [[1, 1, 1], [1, 0, 1]]
    fallen = R - 0.5 * G * np.maximum(rows["t"] - 0.1, 0.0) ** 2
    np.testing.assert_allclose(rows["ball"]["q"][:, 2], fallen, atol=1e-9 * R)


def open_door(t, x, state, z, u):
    if t > z[0] - 1e-9:
        u[1] = 0.0


def test_flags_may_be_changed_between_steps():
    """As a stepper finds them; the bits are those of a controller."""
    x, v = scattered(5, 3)
    clock = nsds.sampled_control(born, reads="balls", writes="balls.alive", z=[0.0, 0.02, 0.0])
    rows = run(balls(x, v, [True, False, True], clock=clock), 0.1, 1e-3)
    system = balls(x, v, [True, False, True])
    advance = nsds.stepper(system, 1e-3)
    system = advance(system, 20)
    system["balls"]["alive"][1] = 1
    system = advance(system, 80)
    assert system["balls"]["q"].tobytes() == rows["balls"]["q"][-1].tobytes()


def test_members_of_an_ensemble_have_their_own():
    x, v = scattered(6, 3)
    members = np.repeat(balls(x, v, True), 4)
    members["balls"]["alive"] = [[1, 1, 1], [1, 0, 1], [0, 0, 0], [0, 1, 1]]
    rows = nsds.simulate(members, t_end=0.2, h=2e-3)
    for m in range(4):
        assert rows["balls"]["q"][m].tobytes() == nsds.simulate(members[m], t_end=0.2, h=2e-3)["balls"]["q"].tobytes()
    assert (rows["balls"]["q"][2] == members["balls"]["q"][2]).all()


def test_the_report_tells_of_lives_and_of_births_within_others():
    x, v = np.array([[0, 0, R], [0.15, 0, R]]), np.zeros((2, 6))
    clock = nsds.sampled_control(born, reads="balls", writes="balls.alive", z=[0.0, 0.05])
    system = balls(x, v, [True, False], clock=clock)
    out = io.StringIO()
    nsds.report(system, run(system, 0.1, 1e-3), file=out)
    line = next(line for line in out.getvalue().splitlines() if line.startswith("balls"))
    assert line.split(maxsplit=1)[1] == (
        "1 of 2 bodies at the start, 2 at the end: 1 born, 0 died; balls[1], born at t = 0.05 s, overlaps shape 0 by 4.9e-02 m"
    )


def test_pictures_leave_out_the_dead():
    from nsds.pictures.scenes import limits, placed_shapes, poses, positions

    system = balls([[0, 0, R], [50.0, 0, R]], np.zeros((2, 6)), [True, False])
    seen = limits(placed_shapes(system), poses(placed_shapes(system), positions(system, system)))
    assert seen[:, 0].tolist() == [-R, R]


def on_a_hinge(**more):
    return nsds.interaction(joints.hinge([0, 0, 0], Z), nsds.equality(), on="balls[0]", **more)


@pytest.mark.parametrize(("build", "words"), [
    (lambda: nsds.rigid_bodies(1.0, 1.0, q=AT_ORIGIN, v=[0] * 6, alive=2), "alive must be flags, True or False, got 2"),
    (lambda: nsds.rigid_bodies(1.0, 1.0, q=[AT_ORIGIN] * 2, v=[[0] * 6] * 2, alive=[1, 0, 1]), r"or have shape \(2,\), got \(3,\)"),
    (lambda: balls([[0, 0, 1]], [[0] * 6], bond=on_a_hinge(enabled=[1, 0])), r"'bond': enabled must be .* shape \(\), got \(2,\)"),
    (lambda: nsds.system(
        mass=nsds.lagrangian_linear([1.0], q=[0.0], v=[0.0]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation([[1.0]]), nsds.newton_impact(0.0), on="mass", enabled=True),
     ), "interaction 'floor': enabled is for rigid bodies, but 'mass' is Lagrangian"),
    (lambda: balls([[0, 0, 1]], [[0] * 6], c=nsds.sampled_control(cut, reads="balls", writes="balls.alive")),
     "can write u, alive, enabled of parts that have them, got balls.alive; give it alive=True"),
    (lambda: balls([[0, 0, 1]], [[0] * 6], c=nsds.sampled_control(cut, reads="balls", writes="balls.q")), "got balls.q$"),
    (lambda: nsds.simulate(balls([[0, 0, 1]], [[0] * 6], [True]), t_end=1.0, h=0.1, scheme=nsds.event_driven()),
     "does not treat what comes and goes, as by balls.alive"),
])  # fmt: skip
def test_what_does_not_fit_is_named(build, words):
    with pytest.raises((ValueError, TypeError), match=words):
        build()


def test_edited_flags_are_checked():
    system = balls([[0, 0, 1]], [[0] * 6], [True])
    system["balls"]["alive"] = 2
    with pytest.raises(ValueError, match=r"balls\.alive"):
        nsds.simulate(system, t_end=0.1, h=0.01)


@pytest.mark.parametrize("settings", [{}, {"save_every": 3}])
def test_who_is_born_inside_another_is_named_with_the_amount(settings):
    """Of members of an ensemble, too; who was there before, and whoever is born beside others, is not."""
    clock = nsds.sampled_control(born, reads="balls", writes="balls.alive", z=[0.0, 0.1, 0.2])
    system = balls([[0, 0, R], [0, 0, 1.0], [1.0, 0, R]], np.zeros((3, 6)), [True, False, False], clock=clock)
    system["balls"]["mass"][0] = 2.0
    several = np.stack([system, system])
    several[1]["balls"]["q"][1, 2] = 2.5 * R
    words = r"'contacts'.*1 contact overlaps .* of member 1 by 0\.0[45]\d* m at t = 0\.1\d*: sphere 0 of balls\[0\]"
    with pytest.warns(UserWarning, match=words):
        nsds.simulate(several, t_end=0.3, h=2e-3, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nsds.simulate(system, t_end=0.3, h=2e-3, **settings)
