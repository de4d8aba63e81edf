"""Loops whose hinges depend on each other, under every scheme with steps: none gains energy with a clean status, none minds their order."""

import math

import numpy as np
import pytest

import nsds
from nsds import joints
from nsds.status import LEFT_BRANCH
from tests.schemes.rigid.test_multibody_benchmarks import AXES, CORNERS, DOWN, rod_inertia

G, Z = 9.81, np.array([0.0, 0.0, 1.0])
HOLDING = {
    "rattle": nsds.rattle(),
    "combined": nsds.moreau_jean_combined_projection(),
    "direct": nsds.moreau_jean_direct_projection(),
    "alpha": nsds.generalised_alpha(),
}
DRIFTING = {  # these do not hold positions, which may not tell at a flat position how the motion goes on
    "moreau_jean": nsds.moreau_jean(),
    "d1": nsds.d1_minus_linear(),
    "d1 velocity": nsds.d1_minus_linear("velocity"),
}
SCHEMES = HOLDING | DRIFTING


def rod(m, a, b):
    """(mass, inertia, centre) of a rod from a to b."""
    d = (b - a) / np.linalg.norm(b - a)
    return m, m * ((b - a) @ (b - a)) * (np.eye(3) - 0.9 * np.outer(d, d)) / 12, (a + b) / 2


def mechanism(solids, hinges, pick, gravity):
    """A system of bodies, none of them turned, whose velocities are the element of the null space of all hinges that pick chooses."""
    names, rows = list(solids), []
    for point, axis, *on in hinges:
        J = np.zeros((6, 6 * len(names)))
        for sign, name in zip((1, -1), on, strict=False):
            k = 6 * names.index(name)
            J[:3, k : k + 3], J[:3, k + 3 : k + 6] = sign * np.eye(3), sign * np.cross(np.eye(3), point - solids[name][2]).T
            J[3:, k + 3 : k + 6] = sign * np.cross(np.eye(3), axis).T
        rows.append(J)
    _, s, V = np.linalg.svd(np.vstack(rows))
    v = pick(V[np.sum(s > 1e-9) :].T, names).reshape(-1, 6)
    assert abs(np.vstack(rows) @ v.reshape(-1)).max() < 1e-12
    parts = {name: nsds.rigid_bodies(m, inertia, q=[*x, 1, 0, 0, 0], v=v[k]) for k, (name, (m, inertia, x)) in enumerate(solids.items())}
    for i, (point, axis, *on) in enumerate(hinges):
        parts[f"hinge{i}"] = nsds.interaction(joints.hinge(point, axis), nsds.equality(), on=tuple(on) if on[1:] else on[0])
    return nsds.system(gravity=gravity, **parts)


def sarrus(legs, angle=0.4, speed=-4.0):
    """Folded legs of two plates, around a top that they let move up and down alone; it passes where they all lie flat."""
    solids, hinges, up = {}, [], math.sin(angle) * Z
    for i in range(legs):
        out = np.array([math.cos(0.5 * math.pi * i), math.sin(0.5 * math.pi * i), 0])
        foot, knee, head, axis = out, (1 + math.cos(angle)) * out + up, out + 2 * up, np.cross(Z, out)
        solids |= {f"low{i}": rod(1.0, foot, knee), f"high{i}": rod(1.0, knee, head)}
        hinges += [(foot, axis, f"low{i}"), (knee, axis, f"high{i}", f"low{i}"), (head, axis, "top", f"high{i}")]
    solids["top"] = 2.0, np.diag([0.4, 0.4, 0.8]), 2 * up

    def pick(N, names):
        w = N[6 * names.index("top") + 2]
        return N @ w / (w @ w) * speed

    return mechanism(solids, hinges, pick, [0, 0, -G])


def six_bar(links, angles, base, seed):
    """Five rods and the ground, by hinges in space, of which a plane loop needs fewer rows; with a random velocity."""
    points = [np.zeros(2)]
    for length, angle in zip(links, angles, strict=False):
        points.append(points[-1] + length * np.array([math.cos(angle), math.sin(angle)]))
    end, (a, b) = np.array([base, 0.0]), links[3:]
    far = math.hypot(*(end - points[-1]))
    angle = math.atan2(*(end - points[-1])[::-1]) + math.acos((a**2 + far**2 - b**2) / (2 * a * far))
    points += [points[-1] + a * np.array([math.cos(angle), math.sin(angle)]), end]
    points = [np.array([*x, 0.0]) for x in points]
    solids = {f"rod{i}": rod(1.0, points[i], points[i + 1]) for i in range(5)}
    on = [("rod0",), *((f"rod{i}", f"rod{i - 1}") for i in range(1, 5)), ("rod4",)]

    def pick(N, names):
        v = N @ np.random.default_rng(seed).normal(size=N.shape[1])
        return v / abs(v).max() * 4.0

    return mechanism(solids, [(points[i], Z, *on[i]) for i in range(6)], pick, [0, -G, 0])


LOOPS = {
    "sarrus": lambda: sarrus(2),
    "three legs": lambda: sarrus(3),
    "six-bar": lambda: six_bar((0.3, 0.5, 0.4, 0.5, 0.3), (1.0, 0.3, -0.2), 0.8, 2),
    "hexagon": lambda: six_bar((0.5,) * 5, (2 * math.pi / 3, math.pi / 3, 0.0), 0.5, 0),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_energy_is_kept_or_the_run_ends(scheme, loop):
    """Up to 0.7 s, in which Sarrus' linkage passes its flat position; what holds positions passes it."""
    system, failure = LOOPS[loop](), None
    try:
        rows = nsds.simulate(system, t_end=0.7, h=2e-3, scheme=SCHEMES[scheme])
    except nsds.SimulationError as error:
        failure, rows = error, error.trajectory[:-1]
    ledger = nsds.energy(system, rows)
    E = ledger["kinetic"] + ledger["potential"]
    assert failure is None or (scheme in DRIFTING and failure.status == LEFT_BRANCH)
    assert len(rows) > 30
    assert abs(E - E[0]).max() < 0.02 * ledger["kinetic"].max()
    if "top" in system.dtype.names and failure is None:
        assert rows["top"]["q"][:, 2].min() < 0.0


def bricard(order):
    """Bricard's loop along edges of a cube, its hinges stated in an order."""
    parts = {}
    for i in range(5):
        d = CORNERS[i + 1] - CORNERS[i]
        parts[f"rod{i}"] = nsds.rigid_bodies(1.0, rod_inertia(d), q=[*(CORNERS[i] + d / 2), 1, 0, 0, 0], v=[0] * 6)
    on = ["rod0", *((f"rod{i}", f"rod{i - 1}") for i in range(1, 5)), "rod4"]
    hinges = {f"hinge{i}": nsds.interaction(joints.hinge(CORNERS[i], AXES[i]), nsds.equality(), on=on[i]) for i in order}
    return nsds.system(gravity=DOWN, **parts, **hinges)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_order_of_hinges_does_not_matter(scheme):
    """Of thirty rows twenty-nine are independent, and any of them may be left out: the motion is that of the benchmark, in every order."""
    right = nsds.simulate(bricard(range(6)), t_end=0.4, h=1e-3)[-1]
    for order in ([3, 0, 5, 2, 4, 1], [5, 4, 3, 2, 1, 0]):
        rows = nsds.simulate(bricard(order), t_end=0.4, h=2e-3, scheme=SCHEMES[scheme])
        for i in range(5):
            np.testing.assert_allclose(rows[f"rod{i}"]["q"][-1], right[f"rod{i}"]["q"], rtol=0, atol=2e-5, err_msg=f"{order}")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_two_hinges_on_one_axis_carry_alike(scheme):
    """Ten rows for five; a load in the middle."""
    body = nsds.rigid_bodies(1.0, [0.1, 0.1, 0.1], q=[1.0, 0, 0, 1, 0, 0, 0], v=np.zeros(6), fext=[0, -10.0, 0])
    low, high = (nsds.interaction(joints.hinge([0, 0, z], Z), nsds.equality(), on="body") for z in (-0.3, 0.3))
    rows = nsds.simulate(nsds.system(body=body, low=low, high=high), t_end=0.2, h=1e-3, scheme=SCHEMES[scheme])
    low, high = rows["low"]["lambda"][1:], rows["high"]["lambda"][1:]
    assert abs(low[:, :3]).max() > 5e-4
    np.testing.assert_allclose(low, high, rtol=0, atol=1e-9)
