"""What rests, is held or is stiff: steps are solved to their tolerances, touching bodies carry, and what is solved less well says so."""

import io
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

import nsds
from nsds.model import joints, shapes
from tests.paths import ROOT

G = 9.81
UPRIGHT = [1.0, 0, 0, 0]
CUBE = shapes.box([1.0, 1.0, 1.0])


def body(shape, at, mass=1.0, **forces):
    """A body at rest under its weight."""
    forces.setdefault("fext", [0, 0, -mass * G])
    return nsds.rigid_bodies(mass, shapes.inertia(shape, mass), q=[*at, *UPRIGHT], v=np.zeros(6), **forces)


def friction(mu, e=0.0):
    return nsds.newton_impact_friction(e_n=e, mu=mu)


def is_solved(rows, tol=1e-4):
    """Every step has status 0 and a residual within the tolerance of contacts, 1e-2 of many; all others are 1e-10."""
    assert (rows["status"] == 0).all()
    assert rows["residual"].max() <= tol


# ------------------------------------------------------------------------------------------------ equations at rest


@pytest.mark.parametrize("mu", [0.3, 0.0])
def test_a_guided_box_comes_to_rest_on_a_plane(mu):
    """Four contacts and five equations on one body, which has one degree of freedom: impulses are not unique, their sum is ``m g h``."""
    system = nsds.system(
        b=body(CUBE, [0, 0, 0.6]),
        guide=nsds.interaction(joints.prismatic([0, 0, 1]), nsds.equality(), on="b"),
        contacts=nsds.collisions({"b": CUBE}, friction(mu), world=shapes.plane()),
    )
    rows = nsds.simulate(system, t_end=0.3, h=1e-3, fields=["b", "b.p", "contacts"])
    is_solved(rows, 1e-10)
    resting = rows["t"] > np.sqrt(2 * 0.1 / G) + 5e-3
    np.testing.assert_allclose(rows["b"]["p"][resting], [[0, 0, G * 1e-3, 0, 0, 0]] * resting.sum(), rtol=0, atol=1e-9 * G * 1e-3)
    np.testing.assert_allclose(rows["b"]["v"][resting], 0, rtol=0, atol=1e-12)
    assert (rows["contacts"]["lambda"][resting][..., 0] >= 0).all()


def test_a_stiff_spring_on_a_ball_joint_takes_few_iterations():
    """The joint's force turns with the body, as stiff as the spring: Newton's matrix knows of both, and converges quadratically."""
    system = nsds.system(
        b=nsds.rigid_bodies(1.0, [0.1, 0.2, 0.15], q=[0.5, 0, 0, *UPRIGHT], v=np.zeros(6), K=np.diag([1e4] * 3 + [0] * 4)[:6],
                            fext=[0, 0, -G]),
        joint=nsds.interaction(joints.ball_joint([0, 0, 0]), nsds.equality(), on="b"),
    )  # fmt: skip
    rows = nsds.simulate(system, t_end=0.2, h=0.01, scheme=nsds.moreau_jean(theta=1.0))
    is_solved(rows, 1e-10)
    assert rows["n_iter"].max() <= 5


def test_a_braked_hinge_that_hits_its_stops():
    """Friction of 3000 N m and impacts: what cancels is large, what is left small."""
    hinge = joints.hinge([0, 0, 0], [0, 1, 0])
    system = nsds.system(
        b=nsds.rigid_bodies(1.0, [0.1, 0.2, 0.15], q=[0.5, 0, 0, *UPRIGHT], v=[0, 0, 10, 0, -20, 0], fext=[0, 0, -G]),
        hinge=nsds.interaction(hinge, nsds.equality(), on="b"),
        stops=nsds.interaction(joints.hinge_angle([0, 1, 0], lower=-0.01, upper=0.01), nsds.newton_impact(0.5), on="b"),
        brake=nsds.interaction(joints.hinge_angle([0, 1, 0]), nsds.dry_friction(3000.0), on="b"),
    )
    is_solved(nsds.simulate(system, t_end=0.2, h=1e-3), 1e-10)


def test_a_screw_jack_turns_a_small_moment_into_a_large_force():
    """``(m lead^2 + I) Omega' = m g lead`` with m lead^2 a millionth of I: the thread's rows differ by a factor of a thousand."""
    lead, mass, inertia, h = 1e-3, 1e3, 0.5, 1e-2
    system = nsds.system(
        nut=nsds.rigid_bodies(mass, inertia, q=[0, 0, 0, *UPRIGHT], v=np.zeros(6), fext=[0, 0, -mass * G]),
        shaft=nsds.interaction(joints.cylindrical([0, 0, 0], [0, 0, 1]), nsds.equality(), on="nut"),
        thread=nsds.interaction(joints.coupler(("angle", [0, 0, 1]), ("translation", [0, 0, 1]), lead), nsds.equality(), on="nut"),
    )
    rows = nsds.simulate(system, t_end=1.0, h=h)
    is_solved(rows, 1e-10)
    spin = -mass * G * lead / (mass * lead**2 + inertia) * rows["t"]
    np.testing.assert_allclose(rows["nut"]["v"][:, 5], spin, rtol=1e-7, atol=1e-9)


def chain(n, length=0.1, mass=0.1):
    """Links on ball joints, stretched out level, which fall."""
    J = mass * length**2 / 12
    parts = {
        f"l{i}": nsds.rigid_bodies(mass, [0.1 * J, J, J], q=[length * (i + 0.5), 0, 0, *UPRIGHT], v=np.zeros(6), fext=[0, 0, -mass * G])
        for i in range(n)
    }
    for i in range(n):
        on = f"l{i}" if i == 0 else (f"l{i}", f"l{i - 1}")
        parts[f"j{i}"] = nsds.interaction(joints.ball_joint([length * i, 0, 0]), nsds.equality(), on=on)
    return nsds.system(**parts)


def test_a_long_chain_with_large_steps():
    rows = nsds.simulate(chain(30), t_end=0.5, h=1e-2)
    is_solved(rows, 1e-10)
    assert rows["n_iter"][1:].mean() < 10


# ------------------------------------------------------------------------------------------------ bodies that touch


@pytest.mark.parametrize("h", [1e-2, 1e-3])
@pytest.mark.parametrize("mu", [0.3, 0.0])
def test_what_is_drawn_touching_stays(mu, h):
    """Corners whose gap is rounding carry from the first step on; rounding of a step is all that moves."""
    small = shapes.box([0.2, 0.2, 0.2])
    system = nsds.system(b=body(small, [0.3, 0.1, 0.1]), contacts=nsds.collisions({"b": small}, friction(mu), world=shapes.plane()))
    rows = nsds.simulate(system, t_end=50 * h, h=h)
    is_solved(rows)
    np.testing.assert_allclose(rows["b"]["q"], np.broadcast_to(rows["b"]["q"][0], rows["b"]["q"].shape), rtol=0, atol=1e-8)
    assert ((rows["contacts"]["lambda"][1:, :4, 0] > 0).sum(axis=1) >= 3).all()


def test_a_contact_open_by_rounding_is_closed_and_one_that_is_farther_is_not():
    """A ball of 0.1 m above the plane by 1e-17, 1e-11 m, or by a hundredth of what its weight moves it within a step: held at once."""
    h, ball = 1e-2, shapes.sphere(0.1)
    for gap, holds in ((1e-17, True), (1e-11, True), (0.01 * G * h**2, True), (-1e-12, True), (1.0 * G * h**2, False), (1e-2, False)):
        system = nsds.system(b=body(ball, [0, 0, 0.1 + gap]), contacts=nsds.collisions({"b": ball}, friction(0.3), world=shapes.plane()))
        new = nsds.step(system, h)
        assert (abs(new["b"]["v"][2]) < 1e-14) == holds, gap


def gripper(pressed):
    """Two fingers press a box and carry it, with nothing below it."""
    side = 0.1
    part, finger = shapes.box([side] * 3), shapes.box([side / 2, side, side])
    parts = {"part": body(part, [0, 0, 0], 0.5)}
    for name, sign in (("left", -1), ("right", 1)):
        parts[name] = body(finger, [sign * (0.75 * side - pressed), 0, 0], 0.2, fext=[-50.0 * sign, 0, 0])
        parts[f"guide_{name}"] = nsds.interaction(joints.prismatic([1, 0, 0]), nsds.equality(), on=name)
    law = {"part": part, "left": finger, "right": finger}
    return nsds.system(**parts, contacts=nsds.collisions(law, friction(0.5)))


@pytest.mark.parametrize("pressed", [0.0, 1e-12])
def test_a_gripper_holds_what_it_touches(pressed):
    rows = nsds.simulate(gripper(pressed), t_end=0.3, h=1e-2)
    is_solved(rows)
    q = rows["part"]["q"]
    np.testing.assert_allclose(q, np.broadcast_to(q[0], q.shape), rtol=0, atol=1e-8)


def test_a_wheel_that_hovers_within_the_resolution_of_a_step_carries():
    """A table on four legs, of which one is short by 1e-7 m: in rigid statics it stands on all four."""
    h, top = 1e-3, shapes.box([1.0, 1.0, 0.05])
    places = [[x, y, -0.48 + (1e-7 if x == y == 0.4 else 0.0)] for x in (-0.4, 0.4) for y in (-0.4, 0.4)]
    feet = [shapes.sphere(0.02, position=place) for place in places]
    system = nsds.system(
        table=body(top, [0, 0, 0.5], 10.0), contacts=nsds.collisions({"table": [feet]}, friction(0.3), world=shapes.plane())
    )
    rows = nsds.simulate(system, t_end=0.05, h=h)
    is_solved(rows)
    lam = rows["contacts"]["lambda"][1:, :4, 0]
    assert (lam > 0.1 * 10.0 * G * h).all()


# ------------------------------------------------------------------------------------------------ more contacts than a matrix is taken for


def grid(n, capacity=None, gap=0.0, h=5e-3, steps=4, **options):
    """(last row, rows) of layers of 25 balls on the ground and on one another, as many contacts as bodies."""
    ball = shapes.sphere(0.1)
    x = [[0.25 * (k % 5), 0.25 * (k // 5 % 5), 0.1 + 0.2 * (k // 25) - gap] for k in range(n)]
    system = nsds.system(
        b=nsds.rigid_bodies(
            4.0, shapes.inertia(ball, 4.0), q=[[*at, *UPRIGHT] for at in x], v=np.tile([0.1, 0, 0, 0, 0, 0], (n, 1)), fext=[0, 0, -4.0 * G]
        ),
        contacts=nsds.collisions({"b": ball}, friction(0.6), world=shapes.plane(), capacity=capacity),
    )
    return nsds.simulate(system, t_end=steps * h, h=h, **options)


def test_sweeps_have_memory_of_their_own_whatever_the_room_for_contacts():
    """Between 64 contacts, from which on sweeps solve, and 512, up to which a matrix has room: the same bits as with much room."""
    rows = [grid(75, capacity) for capacity in (75, 100, 600)]
    for each in rows:
        is_solved(each, 1e-2)
        assert each["contacts"]["n"].max() == 75
        for name in "qv":
            np.testing.assert_array_equal(each["b"][name], rows[-1]["b"][name])


CHECKED = """
import numpy as np
from numba import config
from nsds._jit import kernel, view
from tests.schemes.rigid.test_newton_euler_rest import grid, is_solved


@kernel
def second_of(x, start, size):
    return view(x, start, size)[1] if size > 0 else 0.0


if config.DISABLE_JIT:
    is_solved(grid(66, 70, steps=1), 1e-2)
else:
    assert second_of(np.arange(4.0), 1, 3) == 2.0
    assert second_of(np.arange(4.0), -1, 0) == 0.0
    for start, size in ((-1, 2), (2, 3), (4, 1)):
        try:
            second_of(np.arange(4.0), start, size)
        except IndexError:
            continue
        raise AssertionError((start, size))
print("done")
"""


@pytest.mark.parametrize("switch", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_views_of_memory_are_checked_where_asked_for(switch):
    """As plain Python a step by sweeps, in which every view lies in its memory; compiled, what a view outside does."""
    environment = {**os.environ, switch: "1"}
    run = subprocess.run([sys.executable, "-c", CHECKED], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, "ignored" in run.stderr) == (0, "done\n", False), run.stderr


# ------------------------------------------------------------------------------------------------ solved less well than asked


def heap():
    """64 balls that fall onto one another."""
    x = [[1.01 * i + 0.2 * (k % 2), 1.01 * j, 0.5 + 1.01 * k] for k in range(4) for j in range(4) for i in range(4)]
    ball = shapes.sphere(0.5)
    return nsds.system(
        b=nsds.rigid_bodies(1.0, 0.1, q=[[*at, *UPRIGHT] for at in x], v=np.zeros((64, 6)), fext=[0, 0, -G]),
        contacts=nsds.collisions({"b": ball}, friction(0.5), world=shapes.plane()),
    )


def collapse(inexact=0.1, max_iter=12, **options):
    """Rows of the heap, with few sweeps for each step."""
    solver = nsds.solvers.solver("bodies", max_iter=max_iter, inexact=inexact)
    return nsds.simulate(heap(), t_end=0.5, h=5e-3, solver=solver, **options)


def test_what_is_solved_less_well_goes_on_and_is_counted():
    rows = collapse(1.0)  # on_failure="raise": nothing is
    inexact = rows["status"] == 13
    assert inexact.any()
    np.testing.assert_array_equal(rows["residual"] > 1e-4, inexact)
    assert set(rows["status"].tolist()) == {0, 13}
    text = io.StringIO()
    nsds.report(heap(), rows, file=text)
    assert "failed steps      none" in text.getvalue()
    assert f"inexact steps     {inexact.sum()} of {rows.size} rows, first at t = " in text.getvalue()


def test_what_no_longer_makes_sense_raises_from_where_the_user_says():
    """Beyond `inexact` a step has failed; those after it may leave out the impulses of their first half, and are INEXACT for that."""
    with pytest.raises(nsds.SimulationError, match=r"iteration limit .* on_failure='warn' goes on with the best that was found"):
        collapse(2e-4)
    rows = collapse(2e-4, on_failure="continue")
    status, residual = rows["status"], rows["residual"]
    first = np.argmax(status == 1)
    np.testing.assert_array_equal(status[:first] == 0, residual[:first] <= 1e-4)
    np.testing.assert_array_equal(status == 1, residual > 2e-4)
    assert (status[(residual > 1e-4) & (residual <= 2e-4)] == 13).all()
    assert first > 0
    one = collapse(2e-4, on_failure="continue", save_every=100)  # of all steps between two rows, a failed one counts more
    assert one["status"].tolist() == [0, 1]
    with pytest.raises(ValueError, match="inexact"):
        nsds.solvers.solver(inexact=-1.0)


def test_equations_that_contradict_are_no_matter_of_accuracy():
    """Impulses grow without bound: their size must not make the error look small."""
    drives = {
        name: nsds.interaction(nsds.prescribed_velocity([0], [speed]), nsds.equality(), on="b") for name, speed in (("a", 1.0), ("c", 2.0))
    }
    rows = nsds.simulate(nsds.system(b=body(CUBE, [0, 0, 0]), **drives), t_end=0.02, h=0.01, on_failure="continue")
    assert not np.isin(rows["status"][1:], (0, 13)).any()
    assert (rows["residual"][1:] > 0.1).all()


def test_shapes_that_overlap_at_a_joint_are_named():
    """Links of a chain are round at their ends, just below the joints: a contact there pulls against its joint as the links turn."""
    link, turned = shapes.capsule(0.02, 0.1), [np.sqrt(0.5), 0, np.sqrt(0.5), 0]

    def chain(**options):
        return nsds.system(
            links=nsds.rigid_bodies(0.1, shapes.inertia(link, 0.1), q=[[0.05 + 0.1 * k, 0, 1, *turned] for k in range(3)], v=[0] * 6,
                                    fext=[0, 0, -0.981]),
            hook=nsds.interaction(joints.ball_joint([0, 0, 1]), nsds.equality(), on="links[0]"),
            pin=nsds.interaction(joints.ball_joint([0.1, 0, 1.02]), nsds.equality(), on=("links[1]", "links[0]")),
            other=nsds.interaction(joints.ball_joint([0.2, 0, 1]), nsds.equality(), on=("links[2]", "links[1]")),
            contacts=nsds.collisions({"links": link}, friction(0.3), **options),
        )  # fmt: skip

    solver = nsds.solvers.solver("nsgs", max_iter=1, inexact=0.0)
    with pytest.raises(nsds.SimulationError, match=r"'links\[0\]' and 'links\[1\]', which 'pin' holds together, overlap by 0\.0399"):
        nsds.simulate(chain(), t_end=0.01, h=0.01, solver=solver)
    with pytest.raises(nsds.SimulationError, match="iteration limit") as error:
        nsds.simulate(chain(pairs=[]), t_end=0.01, h=0.01, solver=solver)
    assert "overlap" not in str(error.value)


@pytest.mark.parametrize("scheme", [None, nsds.moreau_jean()], ids=["default", "moreau_jean"])
def test_equations_that_contradict_each_other_are_named(scheme):
    """A motor on what joints hold, and two motors on one hinge; not what stands beside them, nor a motor that wants what is held."""

    def system(**parts):
        bodies = {
            name: nsds.rigid_bodies(1.0, 0.1, q=[x, 0, 0, 1, 0, 0, 0], v=np.zeros(6), fext=[0, 0, -9.81])
            for name, x in (("arm", 0.5), ("other", 5.0))
        }
        ball = nsds.interaction(nsds.joints.ball_joint([4.5, 0, 0]), nsds.equality(), on="other")
        return nsds.system(**bodies, **{name: nsds.interaction(of, nsds.equality(), on="arm") for name, of in parts.items()}, ball=ball)

    def motor(axis, rate):
        return nsds.prescribed_velocity([axis], [rate])

    hinge, settings = nsds.joints.hinge([0, 0, 0], [0, 1, 0]), {"t_end": 0.01, "h": 1e-3, "scheme": scheme}
    with pytest.raises(nsds.SimulationError, match="the equations of 'hinge' and 'motor' contradict each other"):
        nsds.simulate(system(hinge=hinge, motor=motor(5, 1.0)), **settings)
    with pytest.raises(nsds.SimulationError, match="the equations of 'first' and 'second' contradict each other"):
        nsds.simulate(system(hinge=hinge, first=motor(4, 1.0), second=motor(4, 2.0)), **settings)
    rows = nsds.simulate(system(hinge=hinge, motor=motor(4, 1.0), held=motor(5, 0.0)), **settings)
    assert (rows["status"] == 0).all()


def test_the_number_of_threads_does_not_matter():
    """Spheres on a grid that fly into their neighbours: enough contacts for all cores to find, state and sweep them."""
    n, radius, ball = 13, 0.1, shapes.sphere(0.1)
    i = np.arange(n**3)
    q = np.tile([0.0, 0, 0, *UPRIGHT], (n**3, 1))
    q[:, :3] = 2 * radius * np.stack([i % n - (n - 1) / 2, i // n % n - (n - 1) / 2, i // n**2 + 0.5], axis=1)
    v = np.random.default_rng(0).uniform(-1.0, 1.0, (n**3, 6))
    v[:, :3] -= 5.0 * q[:, :3]
    spheres = nsds.rigid_bodies(1.0, shapes.inertia(ball, 1.0), q=q, v=v, fext=[0, 0, -G])
    law, planes = nsds.newton_impact_friction(0.0, 0.3), [shapes.plane()]
    system, solver = (
        nsds.system(spheres=spheres, contacts=nsds.collisions({"spheres": ball}, law, world=planes)),
        nsds.solvers.solver("bodies", max_iter=10),
    )
    threads, found = numba.get_num_threads(), []
    how = {"t_end": 2e-3, "h": 1e-3, "solver": solver, "on_failure": "continue"}
    try:
        for count in sorted({1, threads}):
            numba.set_num_threads(count)
            found.append(nsds.simulate(system, **how))
    finally:
        numba.set_num_threads(threads)
    assert (found[0]["contacts"]["lambda"][1].reshape(-1, 3)[:, 0] > 0.0).sum() > 4000
    assert {rows.tobytes() for rows in found} == {found[0].tobytes()}
