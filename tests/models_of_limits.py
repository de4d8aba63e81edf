"""Models of all families whose event-driven motion is the limit of time stepping: one list for the test of orders and for pictures of it.

Each model ends at a time at which nothing happens, so that the error of time stepping there is a power of its step.
"""

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import nsds

_NEARBY = 24  # steps


class Limit(NamedTuple):
    """A model, the scheme that is the limit, and what approaches it."""

    name: str
    build: Callable  # () -> record
    t_end: float
    state: tuple  # (part, field), ...: what is compared at t_end
    stepping: np.ndarray  # scheme of time stepping
    steps: tuple  # its h, falling
    order: float  # of its error
    events: np.ndarray = nsds.event_driven(rtol=1e-11, atol=1e-13)
    fluctuates: bool = False  # errors depend on where in a step events lie: the largest of some steps near each h counts


def errors_of(limit):
    """Largest difference at t_end of time stepping with each h from the event-driven motion, relative to the largest state there."""
    exact = _end_of(limit, limit.events, limit.t_end / 8)

    def error(n_steps):
        return abs(_end_of(limit, limit.stepping, limit.t_end / n_steps) - exact).max() / abs(exact).max()

    counts = (round(limit.t_end / h) for h in limit.steps)
    part = np.linspace(1.0, 1.1, _NEARBY) if limit.fluctuates else (1.0,)
    return np.array([max(error(round(n * k)) for k in part) for n in counts])


def slope_of(limit, errors):
    """Order of the errors: slope of the straight line through their logarithms."""
    return np.polyfit(np.log(limit.steps), np.log(errors), 1)[0]


def _end_of(limit, scheme, h):
    last = nsds.simulate(limit.build(), t_end=limit.t_end, h=h, scheme=scheme, save_every=10**9)[-1]
    return np.concatenate([np.ravel(last[part][field]) for part, field in limit.state])


def _clamped_circuit():
    """A capacitor and a coil, whose current a diode keeps from turning."""
    return nsds.linear_complementarity_system([[0, -1.0], [1.0, 0]], [[0], [1.0]], [[0, 1.0]], x=[1.0, 0.0], b=[0.2, -0.1])


def _relay_loop():
    return nsds.linear_complementarity_system(
        [[0, 1.0, 0], [0, 0, 1.0], [0, -3.0, -2.0]], [[0], [0], [1.0]], [[1.0, 0, 0]], x=[0, 0.675, 0], law=nsds.relay()
    )


def pushed(t, z, out):
    out[1] = np.cos(0.3 * t)


def _two_masses():
    """Two masses on springs; dry friction on the second, the first is driven."""
    A = [[0, 1.0, 0, 0], [-2.0, 0, 1.0, 0], [0, 0, 0, 1.0], [1.0, 0, -1.0, 0]]
    return nsds.linear_complementarity_system(
        A, [[0], [0], [0], [1.0]], [[0, 0, 0, 1.0]], b=pushed, x=[1.0, 0, 0, 0], law=nsds.relay(-0.5, 0.5)
    )


def circle(t, x, lam, z, out):
    out[0] = x[0] ** 2 + x[1] ** 2 - 1.0


def along_the_radius(t, x, lam, z, out):
    out[0], out[1] = x[0] * lam[0], x[1] * lam[0]


def turning(t, x, z, out):
    a = 1.5 * np.sin(t)
    out[0], out[1] = a * x[0] - 2.0 * x[1], a * x[1] + 2.0 * x[0]


def _ring():
    """A relay pushes along the radius: the state slides on the unit circle, and leaves it where the drive is stronger."""
    relation = nsds.first_order_relation(circle, along_the_radius, m=1)
    return nsds.system(plant=nsds.first_order(turning, x=[1.2, 0.0]), switches=nsds.interaction(relation, nsds.relay(), on="plant"))


def cubic(t, x, lam, z, out):
    out[0] = x[0] + lam[0] + lam[0] ** 3


def push(t, lam, z, out):
    out[0] = lam[0]


def swinging(t, x, z, out):
    out[0] = 2.0 * np.cos(3.0 * t) - 0.2 * x[0] ** 3


def _nonlinear_diode():
    relation = nsds.type2_relation(cubic, push, m=1)
    return nsds.system(plant=nsds.first_order(swinging, x=[0.5]), switches=nsds.interaction(relation, nsds.complementarity(), on="plant"))


def bound(t, z, out):
    out[0] = -0.5 * np.cos(3.0 * t)


def _moving_bound():
    return nsds.linear_complementarity_system([[-1.0]], [[1.0]], [[1.0]], e=bound, x=[1.0])


def _polygon():
    """Controls in a polygon, whose normal cone holds the state."""
    law = nsds.normal_cone([[1, 0], [-0.2, 1], [-1, 0], [0.2, -1]], [-1.0] * 4)
    return nsds.linear_complementarity_system([[0, 1.0], [-1.0, -0.5]], [[0.5, 0], [0, 0.6]], np.eye(2), x=[-1.5, 2.0], law=law)


PLANT = (("plant", "x"),)
H = (4e-3, 2e-3, 1e-3, 5e-4)
LIMITS = [
    Limit("diode and coil", _clamped_circuit, 5.0, PLANT, nsds.euler_moreau(), H, 1.0),
    Limit("relay in a loop of third order", _relay_loop, 5.0, PLANT, nsds.euler_moreau(), H, 1.0),
    Limit("two masses, dry friction", _two_masses, 8.0, PLANT, nsds.euler_moreau(), H, 1.0),
    Limit("relay that slides on a circle", _ring, 2.0, PLANT, nsds.euler_moreau(), H, 1.0),
    Limit("diode nonlinear in lambda", _nonlinear_diode, 2.0, PLANT, nsds.euler_moreau(), H, 1.0),
    Limit("moving bound", _moving_bound, 3.5, PLANT, nsds.euler_moreau(), H, 1.0),
    Limit("normal cone of a polygon", _polygon, 1.0, PLANT, nsds.euler_moreau(), H, 1.0),
]


# ---------------------------------------------------------------------------------------------------------- mechanics
G = 9.81
BALL = (("ball", "q"), ("ball", "v"))
linear = nsds.lagrangian_linear_relation


def _bouncing_ball():
    ball = nsds.lagrangian_linear(M=[1.0], fext=[-G], q=[1.0], v=[0.0])
    return nsds.system(ball=ball, floor=nsds.interaction(linear(H=[[1.0]]), nsds.newton_impact(e=0.8), on="ball"))


def _shaken(t, z, out):
    out[0] = np.cos(2.2 * t)


def _oscillator_at_a_stop():
    ball = nsds.lagrangian_linear(M=[1.0], C=[0.04], K=[1.0], fext=_shaken, q=[0.0], v=[0.3])
    return nsds.system(ball=ball, stop=nsds.interaction(linear(H=[[-1.0]], b=[0.3]), nsds.newton_impact(e=0.5), on="ball"))


def _oscillator_that_sticks():
    ball = nsds.lagrangian_linear(M=[1.0], K=[4.0], fext=[0.2], q=[1.03], v=[0.0])
    return nsds.system(ball=ball, brake=nsds.interaction(linear(H=[[1.0]]), nsds.dry_friction(0.6), on="ball"))


def _block_on_an_incline(H, v):
    n, slope = len(v), 0.4
    force = G * np.array([-np.cos(slope), np.sin(slope), 0.0][:n])
    ball = nsds.lagrangian_linear(M=np.ones(n), fext=force, q=np.zeros(n), v=v)
    law = nsds.newton_impact_friction(e_n=0.0, mu=0.6, dimension=n)
    return nsds.system(ball=ball, plane=nsds.interaction(linear(H=H), law, on="ball"))


def _block_in_the_plane():
    return _block_on_an_incline(np.eye(2), [0.0, -2.0])


def _block_in_space():
    return _block_on_an_incline(np.eye(3), [0.0, -1.0, 2.0])


def _weight(t, q, v, z, out):
    out[0] = G * np.sin(q[0])


def _wall(q, z, out):
    out[0] = np.sin(q[0]) + 0.3


def _pendulum_at_a_wall():
    ball = nsds.lagrangian(mass=[1.0], fint=_weight, q=[0.8], v=[0.0])
    return nsds.system(ball=ball, wall=nsds.interaction(nsds.scleronomous(_wall, m=1), nsds.newton_impact(e=0.7), on="ball"))


def _chain_that_is_hit():
    """Three balls that touch, the first hit by a fourth: velocities of Liu, Zhao and Brogliato's law, for springs of Hertz's kind."""
    ball = nsds.lagrangian_linear(M=np.array([1.0, 1.0, 2.0, 0.5]), q=[0.0, 1.0, 1.0, 1.0], v=[1.0, 0.0, 0.0, 0.0])
    law = nsds.multiple_impact(0.9, exponent=1.5)
    H = np.eye(4)[1:] - np.eye(4)[:-1]
    return nsds.system(ball=ball, touch=nsds.interaction(linear(H=H), law, on="ball"))


def _height(t, q, z, out):
    out[0], out[1], out[2], out[3] = q[2] - 0.2, q[0], q[1], 0.0
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def _sphere_that_slides_and_rolls():
    ball = nsds.rigid_bodies(1.5, 0.4 * 1.5 * 0.04, q=[0, 0, 0.2, 1, 0, 0, 0], v=[2.0, 1.5, 0, 0, 0, 0], fext=[0, 0, -1.5 * G])
    law = nsds.newton_impact_friction(e_n=0.0, mu=0.25)
    return nsds.system(ball=ball, floor=nsds.interaction(nsds.contact_point(_height), law, on="ball"))


def _sphere_that_bounces_with_spin():
    ball = nsds.rigid_bodies(1.0, 0.016, q=[0, 0, 0.7, 1, 0, 0, 0], v=[1.0, 0, 0, 0, -20.0, 5.0], fext=[0, 0, -G])
    law = nsds.newton_impact_friction(e_n=0.6, mu=0.3)
    return nsds.system(ball=ball, hits=nsds.collisions({"ball": nsds.shapes.sphere(0.2)}, law, world=nsds.shapes.plane()))


def _heavy_top():
    theta, arm = 0.9, 0.3
    q = [0, -arm * np.sin(theta), arm * np.cos(theta), np.cos(theta / 2), np.sin(theta / 2), 0, 0]
    v = [arm * np.sin(theta), 0, 0, 0, np.sin(theta), 20]
    ball = nsds.rigid_bodies(1.0, [0.03, 0.03, 0.02], q=q, v=v, fext=[0, 0, -G])
    return nsds.system(ball=ball, joint=nsds.interaction(nsds.joints.ball_joint([0, 0, 0]), nsds.equality(), on="ball"))


MOREAU = nsds.moreau_jean()
LIMITS += [
    Limit("bouncing ball", _bouncing_ball, 1.0, BALL, MOREAU, H, 1.0, fluctuates=True),
    Limit("forced oscillator at a stop", _oscillator_at_a_stop, 6.0, BALL, MOREAU, H, 1.0, fluctuates=True),
    Limit("oscillator that slips and sticks", _oscillator_that_sticks, 6.0, (("ball", "q"),), MOREAU, H, 2.0, fluctuates=True),
    Limit("block on an incline in the plane", _block_in_the_plane, 1.0, (("ball", "q"),), MOREAU, H, 2.0, fluctuates=True),
    Limit("block on an incline in space", _block_in_space, 1.0, (("ball", "q"),), MOREAU, H, 1.0),
    Limit("pendulum at a wall", _pendulum_at_a_wall, 2.0, BALL, MOREAU, H, 1.0, fluctuates=True),
    Limit("chain of four balls, multiple impact", _chain_that_is_hit, 1.5, BALL, MOREAU, H, 1.0),
    Limit("rigid sphere that slides and rolls", _sphere_that_slides_and_rolls, 0.8, BALL, MOREAU, H, 2.0, fluctuates=True),
    Limit("rigid sphere that bounces with spin", _sphere_that_bounces_with_spin, 1.0, BALL, MOREAU, H, 1.0, fluctuates=True),
    Limit("heavy top", _heavy_top, 1.0, BALL, MOREAU, H, 2.0),
]


def draw(path):
    """Errors of all models over the step, in one figure, with the slopes that they should have."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.5), layout="constrained")
    axes = figure.subplots()
    for k, limit in enumerate(LIMITS):  # colours come again after ten
        errors = errors_of(limit)
        axes.loglog(limit.steps, errors, ".-" if k < 10 else "x--", label=f"{limit.name}: {slope_of(limit, errors):.2f}")
    h = np.array([min(min(limit.steps) for limit in LIMITS), max(max(limit.steps) for limit in LIMITS)])
    for order, style in ((1, "k:"), (2, "k--")):
        axes.loglog(h, 0.3 * (h / h[1]) ** order, style, label=f"order {order}")
    axes.set(xlabel="step h", ylabel="largest error at the end, relative", title="Time stepping approaches event-driven motions")
    axes.set_xticks(H, [f"{step:g}" for step in H])
    axes.minorticks_off()
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path)


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "limits.png")
