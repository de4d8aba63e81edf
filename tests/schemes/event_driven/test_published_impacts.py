"""Published and exact runs with impacts, event by event: chains of balls under the law of multiple impacts, a rocking block, a pendulum.

The published ones were marched in steps of impulse, and are off by some 5e-4 after each impact; checkpoints are those of the exact limit
(Hertz's chain by SciPy at 1e-12, in the statements of the cases).
"""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsds
from nsds.status import ACCUMULATION, JUMP
from tests.paths import REFERENCE
from tests.reference_cases import needs_collection
from tests.reference_impact import deformation_form
from tests.schemes.event_driven.test_event_driven import G, falling_ball, happened, run, string_length
from tests.solvers.impact.test_multiple_impact import CHAIN_OF_TEN, COLUMN_OF_TEN

PI = 3.14159265  # of the published masses
STIFF = 203e9 / (1 - 0.3**2)  # E/(1 - nu^2)
linear = nsds.lagrangian_linear_relation


def published(case):
    with np.load(REFERENCE / case / "ref.npz") as file:
        return dict(file)


def at_impacts(reference):
    """Rows of a published run before its impacts: the second of two at one time is that after it."""
    same = np.flatnonzero(np.diff(reference["t"]) == 0)
    return same[(reference["t"][same] > 0) & ~np.isin(same + 1, same)]


def velocities(rows, name="balls"):
    return rows[name]["v"].reshape(len(rows), -1)


# ------------------------------------------------------------------------------------------------------- balls in a row
def row_of_balls(r, q, v, e=1.0, mass=None, stiffness=None, exponent=1.5, g=0.0, floor=False):
    """Balls of one radius on a line, with Hertz's stiffness, and a floor below the first one."""
    n = len(q)
    mass = np.full(n, 4 / 3 * PI * r**3 * 7780) if mass is None else np.asarray(mass)
    stiffness = math.sqrt(r / 2) * 2 / 3 * STIFF if stiffness is None else stiffness
    balls = nsds.lagrangian_linear(M=mass[:, None, None], fext=-g * mass[:, None], q=np.c_[q], v=np.c_[v], count=n)
    law = nsds.multiple_impact(1.0, 1.0, exponent)
    parts = {"touch": nsds.interaction(linear([[-1.0, 1.0]], b=[-2 * r]), law, on=("balls[:-1]", "balls[1:]"))}
    if floor:
        wall = nsds.multiple_impact(1.0, math.sqrt(r) * 2 / 3 * STIFF, exponent)
        parts["floor"] = nsds.interaction(linear([[1.0]], b=[-r]), wall, on="balls[0]")
    system = nsds.system(balls=balls, **parts)
    for name, values in (("e", e), ("stiffness", stiffness)):  # of each pair
        system["touch"][name] = np.broadcast_to(values, n - 1).reshape(system["touch"][name].shape)
    return system


def cradle():
    """Case lzb_chain_monodisperse: a ball flies 0.2 onto nine that touch."""
    return row_of_balls(0.01, [0.0, *(0.2 + 0.02 * np.arange(1, 10))], np.eye(10)[0])


def column():
    """Case lzb_column_of_beads: ten balls in contact fall on a floor."""
    return row_of_balls(0.005, 0.055 + 0.01 * np.arange(10), np.zeros(10), g=G, floor=True)


def energy_of(rows, g=0.0):
    """Per mass, of balls of one mass."""
    return (0.5 * velocities(rows) ** 2 + g * rows["balls"]["q"].reshape(len(rows), -1)).sum(axis=1)


def test_a_ball_hits_a_row_of_nine():
    rows = run(cradle(), 0.6, h=0.1)
    after, before = happened(rows, JUMP)
    np.testing.assert_allclose(after["t"], [0.2], rtol=0, atol=1e-12)
    np.testing.assert_allclose(velocities(after)[0], CHAIN_OF_TEN, rtol=0, atol=1e-6)
    assert velocities(after)[0].sum() == pytest.approx(1.0, abs=1e-12)
    assert np.ptp(energy_of(rows)) < 1e-9
    flown = before["balls"]["q"][0].ravel() + 0.4 * velocities(after)[0]
    np.testing.assert_allclose(rows["balls"]["q"][-1].ravel(), flown, rtol=0, atol=1e-12)


def test_a_column_falls_on_a_floor_and_breaks_up():
    rows = run(column(), 0.5, h=0.1)
    after, _ = happened(rows, JUMP)
    assert after["t"][0] == pytest.approx(math.sqrt(0.1 / G), abs=1e-12)
    np.testing.assert_allclose(velocities(after)[0], COLUMN_OF_TEN, rtol=0, atol=3e-6)
    assert after["t"][1] == pytest.approx(0.14146, abs=1e-5)
    assert 100 < len(after) < 180
    energy = energy_of(rows, G)
    assert np.ptp(energy) < 1e-9 * energy[0]
    assert min(rows["touch"]["y"].min(), rows["floor"]["y"].min()) > -1e-12


@pytest.mark.reference
@needs_collection
def test_cradle_in_full():
    reference, rows = published("lzb_chain_monodisperse"), run(cradle(), 0.6, h=1e-3)
    after, _ = happened(rows, JUMP)
    wanted = np.stack([reference[f"v{i + 1}"] for i in range(10)], axis=1)
    k = at_impacts(reference)
    np.testing.assert_allclose(after["t"], reference["t"][k], rtol=0, atol=1e-9)
    np.testing.assert_allclose(velocities(after), wanted[k + 1], rtol=0, atol=2e-3)
    np.testing.assert_allclose(velocities(rows)[-1], wanted[-1], rtol=0, atol=2e-3)


@pytest.mark.reference
@needs_collection
def test_column_in_full():
    reference, rows = published("lzb_column_of_beads"), run(column(), 0.5, h=1e-3)
    after, _ = happened(rows, JUMP)
    wanted = np.stack([reference[f"v{i + 1}"] for i in range(10)], axis=1)
    k = at_impacts(reference)
    assert after["t"][0] == pytest.approx(reference["t"][k[0]], abs=1e-9)
    np.testing.assert_allclose(velocities(after)[0], wanted[k[0] + 1], rtol=0, atol=4e-3)
    assert after["t"][1] == pytest.approx(reference["t"][k[1]], abs=3e-4)
    assert len(after) == pytest.approx(len(k), rel=0.3)
    energy = energy_of(rows, G)
    np.testing.assert_allclose(energy, energy[0], rtol=1e-9)


ROWS = [  # masses, e, stiffnesses (of pairs), exponent
    ([1.0, 0.1, 3.0], [0.9, 0.4], [1.0, 20.0], 1.5), ([1e-6, 2e-6, 1e-6, 3e-6], [1.0, 0.5, 0.8], [3.0, 1.0, 0.2], 1.0),
    ([1e6, 3e6, 1e6], [0.7, 1.0], [1.0, 1.0], 2.0), ([1.0, 1e3, 1.0, 1.0, 5.0], [0.6, 0.9, 0.3, 1.0], [1.0, 1.0, 5.0, 0.1], 1.5),
]  # fmt: skip


@pytest.mark.parametrize(("mass", "e", "stiffness", "exponent"), ROWS)
def test_rows_of_other_balls(mass, e, stiffness, exponent):
    """The first one hits the others: beside the deformation form by SciPy, and the same for stiffnesses a million times as large."""
    n, r = len(mass), 0.05
    q, v = [-0.3, *(2 * r * np.arange(1, n))], np.eye(n)[0]
    H = np.diff(np.eye(n), axis=0)
    u, P, *_ = deformation_form(H @ np.diag(1 / np.array(mass)) @ H.T * mass[0], H @ v, np.array(stiffness) / max(stiffness), exponent, e)
    for scale in (1.0, 1e6):
        rows = run(row_of_balls(r, q, v, e, mass, scale * np.array(stiffness), exponent), 0.5, h=0.1)
        after, _ = happened(rows, JUMP)
        assert after["t"][0] == pytest.approx(0.3, abs=1e-12)
        np.testing.assert_allclose(H @ velocities(after)[0], u, rtol=0, atol=1e-7 * max(1.0, abs(u).max()))
        np.testing.assert_allclose(mass * (velocities(after)[0] - v), H.T @ P * mass[0], rtol=0, atol=1e-7 * mass[0] * (1 + P.max()))


# ----------------------------------------------------------------------------------------------------- a rocking block
def corner_gaps(q, z, out):
    for i in range(2):
        out[i] = q[1] + (2 * i - 1) * z[0] / 2 * math.sin(q[2]) - z[1] / 2 * math.cos(q[2])


def block(q, v=(0.0, 0.0, 0.0), e=0.8, m=1.0, inertia=1.25 / 12, length=0.2, height=0.1, stiffness=1e10):
    """A block on its two lower corners; the published one is small, but has the inertia of a large one."""
    body = nsds.lagrangian_linear(M=[m, m, inertia], fext=[0.0, -m * G, 0.0], q=list(q), v=list(v))
    law = nsds.multiple_impact(e, stiffness)
    return nsds.system(body=body, corners=nsds.interaction(nsds.scleronomous(corner_gaps, m=2, z=[length, height]), law, on="body"))


# the published start is that of a block of 1 by 0.5 on its corner
START = [0.25 - 0.25 * math.sin(math.pi / 3), 0.5 * math.sin(math.pi / 3) + 0.125, math.pi / 3]


def after_hit(state, corner, e, m, inertia, length, height):
    """Velocities after one corner has hit the ground: ``dv = M^-1 G P``, ``G v+ = -e G v-``."""
    X, Y, theta, *v = state
    a = (2 * corner - 1) * length / 2 * math.cos(theta) + height / 2 * math.sin(theta)
    P = (1 + e) * -(v[1] + a * v[2]) / (1 / m + a * a / inertia)
    return [X, Y, theta, v[0], v[1] + P / m, v[2] + a * P / inertia]


SHAPES = [
    ((0.1, 0.9, 1.0), {}), ((0.0, 0.6, 0.3), {"length": 0.4, "height": 0.7, "inertia": 0.65 / 12, "e": 0.5}),
    ((0.0, 0.6, -0.4), {"m": 1e6, "inertia": 2e4, "e": 0.9}), ((0.0, 0.5, 0.7), {"m": 1e-6, "inertia": 2e-8, "e": 0.6}),
]  # fmt: skip


@pytest.mark.parametrize(("q", "shape"), [(START, {}), *SHAPES])
def test_a_block_falls_from_corner_to_corner(q, shape):
    """Free flights in closed form between impacts of one corner, whose times SciPy finds."""
    given = {"e": 0.8, "m": 1.0, "inertia": 1.25 / 12, "length": 0.2, "height": 0.1} | shape
    rows = run(block(q, **given), 1.0, h=0.25)
    after, _ = happened(rows, JUMP)
    state, t, sizes = np.array([*q, 0.0, 0.0, 0.0]), 0.0, [given["length"], given["height"]]

    def gap(corner):
        def event(s, y):
            out = np.zeros(2)
            corner_gaps(y[:3], sizes, out)
            return out[corner]

        event.terminal, event.direction = True, -1
        return event

    for row in after[:3]:
        flight = solve_ivp(
            lambda s, y: [*y[3:], 0.0, -G, 0.0], (0, 2), state, "DOP853", events=[gap(0), gap(1)], rtol=1e-13, atol=1e-14, max_step=0.01
        )
        t += flight.t[-1]
        assert row["t"] == pytest.approx(t, abs=1e-10)
        state = np.array(after_hit(flight.y[:, -1], 0 if flight.t_events[0].size else 1, **given))
        np.testing.assert_allclose(row["body"]["v"], state[3:], rtol=0, atol=1e-9 * (1 + abs(state[3:]).max()))


def test_published_block_at_its_first_impacts():
    after, _ = happened(run(block(START), 2.0, h=0.1), JUMP)
    np.testing.assert_allclose(after["t"][:5], [0.3016807020, 0.78501422, 1.17873616, 1.41752252, 1.64974639], rtol=0, atol=2e-5)
    assert len(after) == 7


@pytest.mark.reference
@needs_collection
def test_rocking_block_in_full():
    """From its start; and from each published impact to the next one, since errors of the published impulses grow from one to the next."""
    reference, (after, _) = published("lzb_rocking_block"), happened(run(block(START), 2.0, h=0.01), JUMP)
    k = at_impacts(reference)
    q, v = (np.stack([reference[name] for name in names], axis=1) for names in (("X", "Y", "theta"), ("vX", "vY", "omega")))
    assert len(after) == len(k) == 7
    assert after["t"][0] == pytest.approx(reference["t"][k[0]], abs=1e-9)
    np.testing.assert_allclose(after["body"]["v"][0], v[k[0] + 1], rtol=0, atol=1e-4)
    np.testing.assert_allclose(after["t"], reference["t"][k], rtol=0, atol=1e-3)
    np.testing.assert_allclose(after["body"]["v"][:6], v[k[:6] + 1], rtol=0, atol=1e-3)
    for one, other in zip(k[:-1] + 1, k[1:], strict=True):
        rows = run(block(q[one], v[one]), reference["t"][other] - reference["t"][one] + 1e-3, h=0.01)
        hit, _ = happened(rows, JUMP)
        assert hit["t"][-1] + reference["t"][one] == pytest.approx(reference["t"][other], abs=1e-6)
        np.testing.assert_allclose(hit["body"]["v"][-1], v[other + 1], rtol=0, atol=1e-4)


# ------------------------------------------------------------------------------------------- a ball, and a pendulum
@pytest.mark.reference
@needs_collection
def test_exact_bouncing_events_in_full():
    reference, rows = published("exact_bouncing_events"), run(falling_ball(0.8), 5.0, h=0.05)
    after, before = happened(rows, JUMP)
    for name, found in (
        ("t", after["t"]), ("v_before", before["ball"]["v"][:, 0]), ("v_after", after["ball"]["v"][:, 0]),
        ("impulse_per_mass", after["floor"]["lambda"].ravel()),
    ):  # fmt: skip
        np.testing.assert_allclose(found[:30], reference[name][:30], rtol=0, atol=1e-12)
    np.testing.assert_allclose(after["ball"]["v"][:30, 0] ** 2 / (2 * G), reference["apex_after"][:30], rtol=0, atol=1e-12)
    end, _ = happened(rows, ACCUMULATION)
    assert end["t"] == pytest.approx([4.063712768871579], abs=1e-9)
    rests = rows[rows["t"] > end["t"][0]]
    assert not rests["ball"]["v"].any()
    np.testing.assert_allclose(rests["floor"]["lambda"][1:], G, rtol=1e-12)
    for h in (1e-3, 2.5e-4):
        rows = nsds.simulate(falling_ball(0.8), t_end=2.0, h=h)
        upwards = rows["ball"]["v"][:, 0] > 0
        k = np.flatnonzero(upwards[1:] & ~upwards[:-1])[:3] + 1
        np.testing.assert_allclose(rows["t"][k], reference["t"][:3], rtol=0, atol=5 * h)


def pendulum(law, angle=math.pi / 3):
    mass = nsds.lagrangian_linear([1.0, 1.0], fext=[0.0, G], q=[math.sin(angle), math.cos(angle)], v=[0.0, 0.0])
    return nsds.system(mass=mass, string=nsds.interaction(nsds.scleronomous(string_length, m=1), law, on="mass"))


def of_pendulum(t, angle=math.pi / 3):
    """Positions, velocities and multiplier of the pendulum equation."""
    a, w = solve_ivp(lambda s, y: [y[1], -G * math.sin(y[0])], (0, t[-1]), [angle, 0.0], "DOP853", t, rtol=1e-13, atol=1e-14).y
    return np.stack([np.sin(a), np.cos(a)], 1), w[:, None] * np.stack([np.cos(a), -np.sin(a)], 1), (G * np.cos(a) + w**2) / 2


@pytest.mark.parametrize("angle", [math.pi / 3, 1.5, 0.05])
@pytest.mark.parametrize("rho", [0.99, 0.8, 0.3])
def test_pendulum_by_generalised_alpha(rho, angle):
    """With steps of the case ed_pendulum_alpha: of order 2, within what it states against the exact motion, whatever the damping."""
    rows = nsds.simulate(pendulum(nsds.equality(), angle), t_end=10.0, h=1e-3, scheme=nsds.generalised_alpha(rho=rho, constraint_tol=1e-13))
    q, v, lam = of_pendulum(rows["t"], angle)
    np.testing.assert_allclose(rows["mass"]["q"], q, rtol=0, atol=4e-4)
    np.testing.assert_allclose(rows["mass"]["v"], v, rtol=0, atol=1.2e-3)
    np.testing.assert_allclose(rows["string"]["lambda"][1:] / 1e-3, lam[1:], rtol=0, atol=3e-3)
    assert abs(rows["string"]["y"]).max() < 1e-12


@pytest.mark.reference
@needs_collection
def test_pendulum_in_full():
    """Event by event, on a string; and by generalised-alpha on a rod: the published run has the error of that scheme."""
    reference = published("ed_pendulum_alpha")
    k = np.rint(reference["t"] / 1e-3).astype(int)
    wanted = [np.stack([reference[name] for name in names.split()], 1) for names in ("X Y", "vX vY", "lambda")]
    later = k > 0
    for law, scheme, unit in (
        (nsds.newton_impact(0.9), nsds.event_driven(), 1.0), (nsds.equality(), nsds.generalised_alpha(rho=0.99, constraint_tol=1e-13), 1e-3)
    ):  # fmt: skip
        rows = nsds.simulate(pendulum(law), t_end=10.0, h=1e-3, scheme=scheme)
        found = rows["mass"]["q"], rows["mass"]["v"], rows["string"]["lambda"].reshape(-1, 1) / unit
        for ours, published_one, exact, bound in zip(found, wanted, of_pendulum(rows["t"]), (1e-4, 3e-4, 1e-3), strict=True):
            np.testing.assert_allclose(ours[k][later], published_one[later], rtol=0, atol=bound)
            np.testing.assert_allclose(ours[1:], exact.reshape(ours.shape)[1:], rtol=0, atol=bound)
        assert abs(rows["string"]["y"]).max() < 1e-12
