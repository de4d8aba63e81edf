"""Strong forces through joints: they have no lever in the middle of a step, so that what they do not move stays accurate, of order 2."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsds
from nsds import joints


def pull(t, q, v, z, out):
    """Towards the origin, as strong as z says."""
    out[0], out[1], out[2] = z[0] * q[0], z[0] * q[1], z[0] * q[2]


def hung(stiffness, kind):
    """A body on a joint at the origin, and a spring through the joint, which has no lever."""
    held = joints.ball_joint([0, 0, 0]) if kind == "ball_joint" else joints.hinge([0, 0, 0], [0, 1, 0])
    body = nsds.rigid_bodies(1.0, [0.1, 1, 1], fint=pull, z=[stiffness], q=[1, 0, -1, 1, 0, 0, 0], v=np.zeros(6), fext=[0, 0, -9.81])
    return nsds.system(body=body, knee=nsds.interaction(held, nsds.equality(), on="body"))


def angle(t):
    """Of that body, whatever the spring."""
    run = solve_ivp(lambda t, y: [y[1], 3.27 * (np.cos(y[0]) - np.sin(y[0]))], (0, 1), [0, 0], rtol=1e-12, atol=1e-13, dense_output=True)
    return run.sol(t)[0]


@pytest.mark.parametrize("kind", ["ball_joint", "hinge"])
@pytest.mark.parametrize("stiffness", [1e2, 1e4, 1e6])
def test_the_error_is_of_order_two_whatever_the_load(stiffness, kind):
    errors = []
    for h in (0.02, 0.01, 0.005, 0.0025, 0.00125):
        rows = nsds.simulate(hung(stiffness, kind), t_end=1.0, h=h)
        b = angle(rows["t"])
        errors.append(abs(rows["body"]["q"][:, 0] - np.cos(b) + np.sin(b)).max())
    ratios = np.array(errors[:-1]) / errors[1:]
    assert ((ratios > 3.5) & (ratios < 4.5)).all()
    assert errors[0] < 1e-3


def test_the_joint_carries_what_is_pressed_into_it():
    """At rest: the spring and the weight, to the last digit; impulses on the body say the same."""
    h, stiffness = 1e-3, 1e5
    body = nsds.rigid_bodies(2.0, 0.1, fint=pull, z=[stiffness], q=[0, 0, -1, 1, 0, 0, 0], v=np.zeros(6), fext=[0, 0, -2 * 9.81])
    system = nsds.system(body=body, knee=nsds.interaction(joints.ball_joint([0, 0, 0]), nsds.equality(), on="body"))
    rows = nsds.simulate(system, t_end=0.1, h=h)
    np.testing.assert_allclose(rows["knee"]["lambda"][1:] / h, np.tile([0, 0, 2 * 9.81 - stiffness], (100, 1)), rtol=1e-10, atol=1e-6)
    np.testing.assert_allclose(rows["body"]["p"][1:, :3] / h, rows["knee"]["lambda"][1:] / h, rtol=1e-10, atol=1e-6)


def two(stiffness):
    """Two free bodies on a ball joint; a spring that is short by a fifth keeps their centres apart, and so both straight."""
    a = nsds.rigid_bodies(1.0, [0.1, 0.2, 0.15], q=[0.5, 0, 0, 1, 0, 0, 0], v=[0, 0, 0, 0.5, 1.0, 2.0])
    b = nsds.rigid_bodies(2.0, [0.3, 0.1, 0.2], q=[-0.5, 0, 0, 1, 0, 0, 0], v=[0, -2.0, 1.0, 0.5, 1.0, 2.0])
    knee = nsds.interaction(joints.ball_joint([0, 0, 0]), nsds.equality(), on=("a", "b"))
    spring = nsds.interaction(joints.distance([0.5, 0, 0], [-0.5, 0, 0], 1.2), nsds.spring_damper(stiffness), on=("a", "b"))
    return nsds.system(a=a, b=b, knee=knee, spring=spring)


def energy_and_momenta(rows, stiffness):
    energy, linear, angular = 0.5 * stiffness * rows["spring"]["y"].reshape(-1) ** 2, 0.0, 0.0
    for name, m, inertia in (("a", 1.0, [0.1, 0.2, 0.15]), ("b", 2.0, [0.3, 0.1, 0.2])):
        q, v = rows[name]["q"], rows[name]["v"]
        spin = np.cross(q[:, 4:], v[:, 3:] * inertia)
        turned = v[:, 3:] * inertia + 2 * q[:, 3:4] * spin + 2 * np.cross(q[:, 4:], spin)
        energy = energy + 0.5 * m * (v[:, :3] ** 2).sum(axis=1) + 0.5 * (v[:, 3:] ** 2 * inertia).sum(axis=1)
        linear, angular = linear + m * v[:, :3], angular + turned + m * np.cross(q[:, :3], v[:, :3])
    return energy, linear, angular


@pytest.mark.parametrize("stiffness", [10.0, 1e3])
def test_free_bodies_keep_momenta_and_energy(stiffness):
    """What one body presses into the other it loses; moments turn with bodies in a step, so that angular momentum is of order 2."""
    sizes = []
    for h in (4e-3, 2e-3):
        energy, linear, angular = energy_and_momenta(nsds.simulate(two(stiffness), t_end=4.0, h=h), stiffness)
        np.testing.assert_allclose(linear, np.tile(linear[0], (len(linear), 1)), atol=1e-10)
        sizes.append([abs(energy - energy[0]).max(), abs(angular - angular[0]).max()])
    assert sizes[0][0] < 1e-3 * energy[0]
    np.testing.assert_allclose(np.divide(*sizes), 4.0, atol=0.7)
