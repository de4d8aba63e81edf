"""Small cases for runs without a compiler."""

import doctest
import importlib
from functools import partial

import numpy as np

import nsds
from tests.analysis import models
from tests.analysis.test_surfaces import moving
from tests.benchmarks import bits
from tests.circuits.netlists import EXAMPLES
from tests.collision.test_general import Found, on_edge
from tests.models_of_limits import LIMITS
from tests.random_piles import box_of_corners
from tests.scenes import SCENES
from tests.scenes import run as run_scene
from tests.schemes.event_driven.test_friction_in_space import bar, box
from tests.schemes.event_driven.test_handover import column
from tests.schemes.first_order.test_paths_of_steps import drawn_by_power
from tests.schemes.rigid.test_forces import SCHEMES as MACHINE_SCHEMES
from tests.schemes.rigid.test_forces import planetary, rope
from tests.schemes.rigid.test_planar import SCHEMES as PLANAR_SCHEMES
from tests.schemes.rigid.test_planar import linked, of_all_shapes
from tests.schemes.rigid.test_presence import SCHEMES as PRESENCE_SCHEMES
from tests.schemes.rigid.test_presence import coming_and_going
from tests.schemes.test_friction_on_a_stop import driven
from tests.solvers.test_own_law import elliptic, point
from tests.test_doctests import MODULES

# With one scheme only.
_LARGE = dict.fromkeys(("sheared_block", "burridge_knopoff"), "moreau_jean") | dict.fromkeys(
    ("american_put", "membrane_obstacle", "melting_front", "sandpile", "water_network", "hertz_roller"), "euler_moreau"
)
# Sweeps or events by the thousand, or many bodies, and no lines that others do not run.
_LONG = (
    "cam_bifurcation event_driven", "planetary_gear d1_minus_linear", "planetary_gear event_driven", "masonry_arch event_driven",
    "suspended_car event_driven", "six_axis_arm event_driven", "masonry_arch d1_minus_linear", "masonry_arch generalised_alpha",
    "gripper event_driven", "suspended_car d1_minus_linear", "suspended_car generalised_alpha", "six_axis_arm d1_minus_linear",
    "slider_crank_3d event_driven", "eccentric_cam event_driven", "door_latch event_driven", "planetary_gear generalised_alpha",
    "planetary_gear moreau_jean", "planetary_gear moreau_jean_direct_projection", "planetary_gear moreau_jean_combined_projection",
    "dominoes generalised_alpha", "six_axis_arm generalised_alpha", "rotating_drum generalised_alpha", "masonry_arch rattle",
    "masonry_arch moreau_jean_direct_projection", "masonry_arch moreau_jean_combined_projection",
)  # fmt: skip
# Examples of docstrings that take seconds and run no lines that others do not run.
_LONG_DOCSTRINGS = (
    "nsds.circuits.sources", "nsds.circuits.balance", "nsds.model.robots", "nsds.model.rigid_bodies", "nsds.schemes.run.streaming",
    "nsds.schemes.options.d1_minus_linear", "nsds.schemes.options.generalised_alpha", "nsds.schemes.options.projection",
)  # fmt: skip
_CROWDED = ("vise", "stack_of_mass_ratio_million", "spheres_in_a_box", "spheres_in_a_box_with_room", "pyramid_of_balls")
# Of the runs of these.
_PART = {"heavy top": 0.05, "block on an incline in space": 0.1, "two masses, dry friction": 0.2, "relay that slides on a circle": 0.3}
# Of each family of `nsds.analysis`, with parameters, impacts and friction.
TANGENTS = {
    "relay": lambda: nsds.floquet(nsds.examples.relay_oscillator(), period=7.0),
    "converter": lambda: nsds.sensitivity(models.buck(15.0, 11.9, 0.56), t_end=models.PERIOD, parameters=["plant.A[0][0]"], rows=4),
    "steps": lambda: nsds.lyapunov(models.friction_oscillator(0.3, 0.8, 0.7, 0.1, 0.2), period=0.3, h=0.05, n_periods=4, transient=1),
    "stick": lambda: nsds.sensitivity(nsds.examples.impacting_stick(), t_end=0.5, rows=4),
    "impacts": lambda: nsds.sweep(
        models.impact_oscillator(0.05, 2.8, 0.8), vary={"mass.z[0]": [2.8]}, period=2.25, record="impact", transient=1, keep=4
    ),
    "crossings": lambda: nsds.sweep(
        models.impact_oscillator(0.05, 2.8, 0.8), vary={"mass.z[0]": [2.8]}, period=2.25, record=moving, crossing=0, transient=1, keep=3
    ),
    "backwards": lambda: nsds.gradient(models.duffing(), t_end=3.0, objective=lambda x: x[0], parameters=["mass.z[0]", "stop.e"], rows=6),
    "corners": lambda: nsds.continue_orbit(
        models.impact_oscillator(0.05, 2.67, 0.8, x=-0.41, v=-0.62),
        parameter="mass.z[0]",
        until=2.66,
        period=2.36,
        corners=[0.3],
        max_points=3,
    ),
}
HANDED_OVER = {
    "a column": lambda: column(0.9, [0.0, 1e-3, 2e-3], [0, 0, -0.1]),
    "a box on four feet": lambda: box([0.6, 0.4, 0.1], [0, 0, -0.1, 0, 0, 0], 0.6, 0.7),
}
# What lies along an edge, kind of solid and of box, and angle of the normal; poses of a box of triangles on another.
ON_EDGES = [(kind, hull, angle) for kind in ("cylinder", "cone") for hull in (False, True) for angle in (0.0, 3e-3, 0.7)]
ON_TRIANGLES = {
    "face on face": [0.1, 0.05, 1.0, 1, 0, 0, 0],
    "edge on face": [0.1, 0.05, 1.2, 0.92, 0.38, 0, 0],
    "corner on face": [0.1, 0.05, 1.3, 0.9, 0.3, 0.3, 0],
    "edge across edge": [0.8, 0.1, 0.9, 0.9, 0, 0.3, 0.3],
}


def on_triangles(pose):
    """Contacts of two boxes of triangles."""
    above, below = (box_of_corners("mesh", [1.0, 1.0, 1.0]) for _ in range(2))
    return Found([above | {"pose": np.array(pose) / [1, 1, 1, *[np.linalg.norm(pose[3:])] * 4]}, below], 0.3)


# Two contacts in space with friction, of which one comes to stick and the other begins to slip.
W_IN_SPACE = np.diag([1.0, 2.0, 1.5] * 2) + 0.2 * np.ones((6, 6))
IMPACTS = {"multiple": nsds.solvers.solve_multiple_impact, "poisson": nsds.solvers.solve_poisson_impact}
_WITH_ALL_SOLVERS = ("impacting_stick", "relay_oscillator", "box_stack")


def market(z, out):
    """Supply and demand: quantity and price."""
    out[0] = 2.0 + z[0] ** 1.5 - z[1]
    out[1] = z[0] - 5.0 / (1.0 + z[1])


def schmitt_trigger():
    """An oscillation that a relay with hysteresis, D < 0, follows."""
    relation = nsds.first_order_linear_relation(C=[[1.0, 0.0]], D=[[-0.5]], B=[[0.0], [0.1]])
    plant = nsds.first_order_linear(A=[[0.0, 1.0], [-1.0, 0.0]], x=[1.0, 0.0])
    return nsds.system(plant=plant, relay=nsds.interaction(relation, nsds.relay(-1, 1), on="plant"))


def cases():
    """(group, name, function that raises where something is wrong)."""
    for name, scene in SCENES.items():
        if name not in _CROWDED:
            yield "scenes, two steps", name, partial(_scene, scene)
    for name, compute in bits.trajectories(3, 0):
        example, scheme_or_solver = name.split()
        if _LARGE.get(example, scheme_or_solver) != scheme_or_solver or name in _LONG:
            continue
        if scheme_or_solver in nsds.__all__ or example in _WITH_ALL_SOLVERS:
            yield "examples x schemes", name, partial(bits.digest, compute)
    for name, compute in bits.solutions(4):
        yield "generated problems x methods", name, partial(bits.digest, compute)
    for limit in LIMITS:
        yield "event by event", limit.name, partial(_event_by_event, limit.build, limit.events, limit.t_end * _PART.get(limit.name, 1.0))
    stuck = partial(bar, [2.0, 0.1, -9.81, 0.5, 1.0])
    yield "event by event", "feet on a line that stick", partial(_event_by_event, stuck, nsds.event_driven(), 0.02)
    yield "event by event", "forces that jump again", partial(_event_by_event, nsds.examples.cam_follower, nsds.event_driven(), 0.8)
    radau = nsds.event_driven(flow="radau")
    for build in (nsds.examples.relay_oscillator, nsds.examples.friction_oscillator):
        yield "event by event", f"{build.__name__} by radau", partial(_event_by_event, build, radau, 0.3)
    hybrid = nsds.event_driven(hybrid=True, max_events=1, accumulation=0.0)
    for name, build in HANDED_OVER.items():
        yield "event by event", f"handed over, {name}", partial(_event_by_event, build, hybrid, 0.1)
    for name, solve in IMPACTS.items():
        u = [-1.0, 0.3, 0.1, -0.5, 0.0, 0.0]
        yield "impacts in space", name, partial(solve, W=W_IN_SPACE, u=u, e=0.5, mu=[0.3, 0.02], dimension=3)
    own = nsds.solvers.own_law(elliptic)
    yield "laws of users", "elliptic", partial(nsds.simulate, point([2.0, 1.0, 0.0]), t_end=3e-3, h=1e-3, solver=own, progress=False)
    for level in ("acceleration", "velocity"):
        d1 = nsds.d1_minus_linear(level)
        yield "D1-", level, partial(nsds.simulate, nsds.examples.sliding_ball(), t_end=0.02, h=5e-3, scheme=d1, progress=False)
    for name, netlist in EXAMPLES.items():
        yield "event by event", f"circuit {name}", partial(_event_by_event, partial(nsds.circuit, netlist), nsds.event_driven(), 2e-3)
    for name, scheme in MACHINE_SCHEMES.items():
        yield "machines", f"planetary gear {name}", partial(nsds.simulate, planetary(), t_end=4e-3, h=2e-3, scheme=scheme, progress=False)
    for name, scheme in PRESENCE_SCHEMES.items():
        come_and_go = partial(nsds.simulate, coming_and_going(), t_end=0.02, h=5e-3, scheme=scheme, progress=False)
        yield "machines", f"coming and going {name}", come_and_go
    for name, scheme in PLANAR_SCHEMES.items():
        build = linked if name in ("rattle", "event_driven") else of_all_shapes
        yield "machines", f"in the plane {name}", partial(nsds.simulate, build(), t_end=0.02, h=5e-3, scheme=scheme, progress=False)
    for kind, hull, angle in ON_EDGES:
        yield "collision", f"{kind} on an edge {angle}", partial(Found, [*on_edge(kind, hull, angle, 0.3, 0.0)[:2]], 0.05)
    for name, pose in ON_TRIANGLES.items():
        yield "collision", f"triangles, {name}", partial(on_triangles, pose)
    path = nsds.system(part=nsds.first_order(drawn_by_power, x=[1e-6], z=[1.0, 0.5]))
    yield "nonlinear first order", "path of problems", partial(nsds.simulate, path, t_end=0.03, h=0.01, progress=False)
    yield "machines", "rope", partial(nsds.simulate, rope(), t_end=0.4, h=1e-2, progress=False)
    yield "machines", "friction behind a gear", partial(nsds.simulate, driven("gear")[0], t_end=0.6, h=2e-2, progress=False)
    yield "consistent starts", "slider_crank_3d", partial(nsds.consistent, nsds.examples.slider_crank_3d())
    yield "hysteresis", "steps", partial(nsds.simulate, schmitt_trigger(), t_end=4.0, h=0.1, scheme=nsds.euler_moreau(), progress=False)
    for method in nsds.solvers.methods("ncp"):
        yield "problems of functions", method, partial(nsds.solvers.solve_ncp, market, z0=[1.0, 1.0], method=method, on_failure="continue")
    for name, analyse in TANGENTS.items():
        yield "tangent maps", name, analyse
    for module in MODULES:
        is_left_out = module.endswith("__main__") or module.startswith(("nsds.examples", "nsds.pictures")) or module in _LONG_DOCSTRINGS
        if not is_left_out:
            yield "examples of docstrings", module, partial(_docstrings, module)


def _scene(scene):
    outcome = run_scene(scene, scene.steps[0], 2 * scene.steps[0])
    assert not outcome.wrong, outcome.wrong


def _event_by_event(build, scheme, t_end):
    rows = nsds.simulate(build(), t_end=t_end, h=t_end / 2, scheme=scheme, progress=False)
    assert rows["t"][-1] == t_end


def _docstrings(module):
    assert doctest.testmod(importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
