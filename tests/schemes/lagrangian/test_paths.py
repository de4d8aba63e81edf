"""Steps whose Newton iteration fails and whose solution a path of problems finds: stiff stops on both sides, with damping that is cut."""

import numpy as np
import pytest

import nsds

MASS = np.array([0.15, 0.01, 0.01])


def stops(t, q, v, z, out):
    """Minus the forces on a slider between two guided masses, which a spring of 20 N/mm pulls together; stops have 1 kN/mm."""
    slider, left, right = q[0] - 0.095, q[1], q[2]
    spring = 20e3 * (right - left - 0.027)
    out[0], out[1], out[2] = 2500 * v[0] - 150 * np.sin(0.02 * np.pi * t), -spring, spring
    for k in range(4):
        if k == 0:
            gap, rate = left + 0.093, v[1]
        elif k == 1:
            gap, rate = -0.0675 - right, -v[2]
        elif k == 2:
            gap, rate = left - slider + 0.01275, v[1] - v[0]
        else:
            gap, rate = slider - right + 0.01275, v[0] - v[2]
        push = 1e6 * max(-gap, 0.0)
        push -= min(max(250 * rate, -push), push)
        if k == 0 or k == 2:
            out[1] -= push
        else:
            out[2] += push
        if k >= 2:
            out[0] += push if k == 2 else -push


def run(h, t_end, **how):
    system = nsds.system(m=nsds.lagrangian(MASS, stops, q=[0.01475, -0.093, -0.06925], v=[0.0, 0.0, 0.0]))
    return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.moreau_jean(theta=1.0, gamma=1.0), progress=False, **how)


@pytest.mark.parametrize("h", [1e-1, 1e-2, 1e-3])
def test_each_step_satisfies_its_equation(h):
    rows = run(h, 30 * h)
    assert (rows["status"] == 0).all()
    q, v, force = rows["m"]["q"], rows["m"]["v"], np.empty(3)
    for k in range(1, len(rows)):
        stops(rows["t"][k], q[k], v[k], np.empty(0), force)
        np.testing.assert_allclose(q[k], q[k - 1] + h * v[k], rtol=0, atol=1e-15)
        assert abs(MASS * (v[k] - v[k - 1]) + h * force).max() <= 1e-9 * h * 50


def test_the_published_motion():
    """Distance at the inner stop of the example PreLoad of the Modelica Standard Library 4.0.0 (MAP-LIB_ReferenceResults); range 6.3 mm."""
    rows = run(1e-2, 80.0, save_every=1000)
    y = rows["m"]["q"][:, 1] - rows["m"]["q"][:, 0] + 0.10875
    published = [9.128311634749839e-4, 8.577303889960938e-4, 9.852811541926367e-4, 3.945706422352553e-3, 6.7944056106592375e-3]
    np.testing.assert_allclose(y[[1, 2, 5, 6, 8]], published, rtol=0, atol=2e-6)
