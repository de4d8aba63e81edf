"""The workloads: a system, how to step it, the figure aimed at, and the peer's workload of the same name."""

import ctypes
import time
import timeit
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

import nsds
from nsds.schemes.run import simulation

_GROUP_SECONDS = 0.1


class Workload(NamedTuple):
    """One row of the table; ``per`` divides the time of a step (balls of an ensemble), ``cores`` 0 means all."""

    name: str
    build: object
    n_steps: int
    h: float
    target_ns: float
    floor: str = ""
    peer: str = ""
    scheme: np.ndarray | None = None
    per: int = 1
    cores: int = 1


def box_on_a_plane():
    """A cube that slides on the ground."""
    box = nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 0.4, 1, 0, 0, 0], v=[1.0, 0.5, 0, 0, 0, 0], fext=[0, 0, -9.81])
    ground = nsds.collisions({"box": nsds.shapes.box([0.8, 0.8, 0.8])}, nsds.newton_impact_friction(0.0, 0.1), world=[nsds.shapes.plane()])
    return nsds.system(box=box, contacts=ground)


def held_bar(overlap):
    """A bar that turns about an upright hinge and rubs on a floor: where it overlaps it, no velocity solves a step, as it cannot rise."""
    bar = nsds.rigid_bodies(1.0, [0.005, 0.02, 0.02], q=[0.5, 0, 0, 1, 0, 0, 0], v=[0, 0.5, 0, 0, 0, 1.0], fext=[0, 0, -9.81])
    floor, law = nsds.shapes.plane([0, 0, 1], overlap - 0.05), nsds.newton_impact_friction(0.0, 0.3)
    rubs = nsds.collisions({"bar": nsds.shapes.box([1.0, 0.1, 0.1])}, law, world=floor)
    pivot = nsds.interaction(nsds.joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="bar")
    return nsds.system(bar=bar, pivot=pivot, rubs=rubs)


def chain(count, joint):
    """Links that hang from the world, straight to the side at first, on hinges across gravity, or on balls."""
    parts, place = {}, [0, 0, 0, 1, 0, 0, 0]
    for i in range(count):
        axis = ([0.0, 1.0, 0.0],) if joint is nsds.joints.hinge else ()
        place[0], on = 0.1 * (i + 0.5), "link0" if i == 0 else (f"link{i}", f"link{i - 1}")
        parts[f"link{i}"] = nsds.rigid_bodies(1.0, [1e-4, 1e-3, 1e-3], q=place, v=np.zeros(6), fext=[0, 0, -9.81])
        parts[f"joint{i}"] = nsds.interaction(joint([0.1 * i, 0, 0], *axis), nsds.equality(), on=on)
    return nsds.system(**parts)


def column(count, resting):
    """Beads on a floor: closed contacts throughout (e = 0), or released with gaps (e = 0.9)."""
    gap, radius = (-1e-6 if resting else 0.05), 0.1
    law, relation = nsds.newton_impact(0.0 if resting else 0.9), nsds.lagrangian_linear_relation
    return nsds.system(
        beads=nsds.lagrangian_linear(M=1.0, fext=-9.81, q=radius + gap + (2 * radius + gap) * np.arange(count), v=0.0, count=count),
        floor=nsds.interaction(relation(H=[[1.0]], b=[-radius]), law, on="beads[0]"),
        gaps=nsds.interaction(relation(H=[[-1.0, 1.0]], b=[-2 * radius]), law, on=("beads[:-1]", "beads[1:]")),
    )


def resting_ball():
    """One closed contact throughout."""
    return nsds.system(
        ball=nsds.lagrangian_linear(M=1.0, fext=-9.81, q=[0.0], v=[0.0]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.0), on="ball"),
    )


def balls(members):
    """An ensemble of bouncing balls."""
    return np.repeat(nsds.examples.bouncing_ball(), members)


def relay():
    """Two states, two relays, sliding in the end."""
    return nsds.linear_complementarity_system(np.zeros((2, 2)), 2 * np.eye(2), np.eye(2), x=[1.0, -1.0], law=nsds.relay())


def van_der_pol():
    """Two states with f and its Jacobian as Python functions, and a relay."""

    def f(t, x, z, out):
        out[0] = x[1]
        out[1] = z[0] * (1 - x[0] * x[0]) * x[1] - x[0]

    def jac_f(t, x, z, out):
        out[0, 0] = 0.0
        out[0, 1] = 1.0
        out[1, 0] = -2 * z[0] * x[0] * x[1] - 1
        out[1, 1] = z[0] * (1 - x[0] * x[0])

    return nsds.system(
        oscillator=nsds.first_order(f, jac_f, x=[1.0, 0.0], z=[1.0]),
        relay=nsds.interaction(nsds.first_order_linear_relation([[1.0, 0.0]], [[0.0], [1.0]], e=[1.5]), nsds.relay(), on="oscillator"),
    )


def string(n_modes, n_frets):
    """A string against frets near its middle."""
    return nsds.examples.guitar_string(n_modes=n_modes, frets=np.linspace(0.5, 0.9, n_frets + 2)[1:-1])


TRAPEZOIDAL = nsds.euler_moreau(theta=0.5)
WORKLOADS = [
    Workload("bouncing ball", nsds.examples.bouncing_ball, 2000, 5e-3, 100, "ball", "bouncing_ball h=5e-3 T=10"),
    Workload("cam follower", nsds.examples.cam_follower, 10_000, 1e-4, 120, "cam", "cam_follower h=1e-4 T=1"),
    Workload("resting ball", resting_ball, 10_000, 1e-3, 40),
    *(Workload(f"resting column {n}", lambda n=n: column(n, True), 20_000 // n, 1e-3, 200 * n, f"column {n}", f"beads n={n} steps={steps}")
      for n, steps in ((10, 200), (100, 100), (1000, 4))),
    *(Workload(f"dropping column {n}", lambda n=n: column(n, False), 2000, 1e-3, 0, "", f"beads n={n} rest=0 steps=2000")
      for n in (10, 100, 1000)),
    Workload("bar 100", lambda: nsds.examples.impacting_bar(100), 748, 2e-6, 0,
             "bar 100", "bar n=100 steps=748 h=2e-6", nsds.moreau_jean(gamma=0.0)),
    Workload("bar 1000", lambda: nsds.examples.impacting_bar(1000), 600, 1e-6, 50_000,
             "bar 1000", "bar n=1000 steps=600 h=1e-6", nsds.moreau_jean(gamma=0.0)),
    Workload("1000 balls", lambda: balls(1000), 2000, 5e-3, 40, "ball",
             "bouncing_ball h=5e-3 T=10", None, 1000, 0),
    Workload("diode bridge", nsds.examples.diode_bridge, 5000, 1e-6, 150, "bridge", "diode_bridge h=1e-6 T=5e-3", TRAPEZOIDAL),
    Workload("relay", relay, 10_000, 1e-3, 120, "relay", "relay h=1e-3 T=10", TRAPEZOIDAL),
    Workload("nonlinear circuit", van_der_pol, 10_000, 1e-3, 1000, "", "", TRAPEZOIDAL),
    Workload("double pendulum", nsds.examples.double_pendulum, 10_000, 5e-4, 1500, "", "", nsds.moreau_jean(theta=0.500001)),
    Workload("slider-crank", nsds.examples.slider_crank, 20_000, 1e-5, 0),
    Workload("slider-crank projected", nsds.examples.slider_crank, 20_000, 1e-5, 10_000, "", "", nsds.moreau_jean_combined_projection()),
    Workload("woodpecker", nsds.examples.woodpecker, 15_000, 2e-5, 0),
    Workload("string, 862 modes", lambda: string(862, 1), 2000, 5e-6, 5000, "", "", nsds.moreau_jean_exact()),
    Workload("string, 20 frets", lambda: string(1000, 20), 2000, 5e-6, 40_000, "", "", nsds.moreau_jean_exact()),
    Workload("1000 diode bridges", lambda: np.repeat(nsds.examples.diode_bridge(), 1000), 1000, 1e-6, 80, "bridge",
             "diode_bridge h=1e-6 T=5e-3", TRAPEZOIDAL, 1000, 0),
    Workload("1000 cam followers", lambda: np.repeat(nsds.examples.cam_follower(), 1000), 1000, 1e-4, 25, "cam",
             "cam_follower h=1e-4 T=1", None, 1000, 0),
    Workload("sliding box", box_on_a_plane, 2000, 1e-3, 3000),
    Workload("steps without solution", lambda: held_bar(1e-3), 4, 1e-3, 0),
    Workload("two hinged links", lambda: chain(2, nsds.joints.hinge), 2000, 1e-3, 3000),
    Workload("six-axis arm", nsds.examples.six_axis_arm, 1000, 1e-3, 10_000),
    Workload("chain of 100 links", lambda: chain(100, nsds.joints.ball_joint), 100, 1e-3, 0),
]  # fmt: skip


def keep_memory():
    """Ask malloc to keep freed memory, so that the output of a repeated run is warm; False where there is no such request."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    mmap_max, trim_threshold = -4, -1
    return bool(mallopt(mmap_max, 0) and mallopt(trim_threshold, 2**31 - 1))


@contextmanager
def loop_clock():
    """A list that collects the seconds spent in each call of the compiled time loop."""
    spent, march_of = [], simulation.march_of

    def timed(*which, **how):
        march = march_of(*which, **how)

        def clocked(*arguments):
            began = time.perf_counter()
            march(*arguments)
            spent.append(time.perf_counter() - began)

        return clocked

    simulation.march_of = timed
    try:
        yield spent
    finally:
        simulation.march_of = march_of


def measure(workload):
    """(ns per step, set-up in ms), every step recorded; both the least of some runs.

    Set-up takes longer than 2000 steps of a ball, and its time depends on what the caches hold: a difference of two runs can be off by
    half, so the loop is clocked inside. Where threads share it, its wall time is that of the run less that of a run of one step.
    """
    system = workload.build()
    start = np.min(system["t"])

    def seconds(n_steps):
        began = time.perf_counter()
        nsds.simulate(system, t_end=start + n_steps * workload.h, h=workload.h, scheme=workload.scheme, progress=False)
        return time.perf_counter() - began

    def one_run():
        if np.ndim(system) > 0:
            total = seconds(workload.n_steps)
            loop = total - seconds(1)
        else:
            with loop_clock() as spent:
                total = seconds(workload.n_steps)
            loop = sum(spent)
        return loop, total - loop

    n_runs = int(np.clip(_GROUP_SECONDS / sum(one_run()), 3, 40))
    loop, setup = (min(column) for column in zip(*(one_run() for _ in range(n_runs)), strict=True))
    return loop / workload.n_steps / workload.per * 1e9, setup * 1e3


def peer_command(python, workload):
    """Command line of the peer's workload."""
    return [python, str(Path(__file__).with_name("peer.py")), *workload.peer.split()]


def calls():
    """µs of calls from Python above the steps that they make: of a stepper and `nsds.step`, and `nsds.simulate` of a known model."""
    ball, members = nsds.examples.bouncing_ball(), 256
    balls_, h = balls(members), 5e-3
    one, many = nsds.stepper(ball, h), nsds.stepper(balls_, h)
    place, places = ball.copy(), balls_.copy()

    def least(call, number):
        return min(timeit.repeat(call, number=number, repeat=20)) / number * 1e6

    def above(advance, system, number):
        some, more = (least(lambda n=n: advance(system, n, out=system), number) for n in (1, 101))
        return some - (more - some) / 100

    t_end = float(ball["t"]) + h
    return {
        "stepper call (µs)": (above(one, place, 2000), 5.0),
        "stepper call, set state (µs)": (least(lambda: one(ball), 2000), 5.0),
        "step call (µs)": (least(lambda: nsds.step(ball, h), 500), None),
        "256 members, each (ns)": (above(many, places, 100) / members * 1e3, 50.0),
        "simulate, set-up (µs)": (least(lambda: nsds.simulate(ball, t_end=t_end, h=h, progress=False), 100), 150.0),
    }


def threads():
    """How many times as fast two threads are as one, each with a stepper of its own: for calls of one step, and of a thousand."""

    def seconds(n_threads, n, number):
        steppers = [nsds.stepper(nsds.examples.double_pendulum(), 1e-3) for _ in range(n_threads)]

        def work(advance):
            system = nsds.examples.double_pendulum()
            for _ in range(number):
                advance(system, n, out=system)

        for advance in steppers:
            work(advance)
        with ThreadPoolExecutor(n_threads) as pool:
            began = time.perf_counter()
            list(pool.map(work, steppers))
            return time.perf_counter() - began

    def gain(n, number):
        return 2 * min(seconds(1, n, number) for _ in range(5)) / min(seconds(2, n, number) for _ in range(5))

    return {"two threads, calls of a step (x)": (gain(1, 20_000), None), "two threads, of 1000 steps (x)": (gain(1000, 200), 1.9)}


def failed_steps():
    """How many times as long as steps that are solved those without solution take, of the same joint and contacts."""
    failed, solved = (measure(Workload("", lambda overlap=overlap: held_bar(overlap), 4, 1e-3, 0))[0] for overlap in (1e-3, 0.0))
    return {"step without solution, of a solved one (x)": (failed / solved, 10.0)}


def one_off_solves():
    """µs of a call that solves one small problem."""
    M, q, W = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-5.0, -6.0]), np.diag([2.0, 1.0, 1.0])
    G, g, of_contact = np.array([[-1.0, -1.0]]), np.array([-2.0]), np.array([-4.0, 3.0, 4.0])
    blocks, larger = [("equality", 1), ("friction", 3, 0.5)], np.array([-1.0, -4.0, 3.0, 4.0])
    solves = {
        "numpy.linalg.solve": (lambda: np.linalg.solve(M, q), None),
        "solve_lcp": (lambda: nsds.solvers.solve_lcp(M, q), 10.0),
        "solve_relay": (lambda: nsds.solvers.solve_relay(M, q), 10.0),
        "solve_avi": (lambda: nsds.solvers.solve_avi(M, q, G, g), 40.0),
        "solve_fc3d": (lambda: nsds.solvers.solve_fc3d(W, of_contact, 0.5), 40.0),
        "solve_generic": (lambda: nsds.solvers.solve_generic(2 * np.eye(4), larger, blocks), 40.0),
    }
    return {f"{name} (µs)": (min(timeit.repeat(call, number=500, repeat=20)) / 500 * 1e6, goal) for name, (call, goal) in solves.items()}
