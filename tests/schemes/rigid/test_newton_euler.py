"""Moreau–Jean steps of rigid bodies against a plain twin and against motions that are known."""

import math

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import nsds
from nsds.model import joints
from tests import reference_newton_euler as twin
from tests.model.test_joints import configuration, turn, unit, values
from tests.strategies import examples, generators

GRAVITY = 9.81
AT_REST = np.zeros(6)
ORIGIN = [0, 0, 0, 1, 0, 0, 0]
TIGHT = {"newton_tol": 1e-11, "newton_max_iter": 200}


def spd(rng, n=3, spread=2.0):
    """A symmetric positive definite matrix; of three rows the inertia of a solid."""
    axes = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return axes @ np.diag(rng.uniform(1.0, spread, size=n)) @ axes.T


def rod(t, q, z, out):
    """Squared distance of two points, the first in axes of the body, the second at the centre of the other."""
    out[0] = 0.5 * ((q[0] - q[7]) ** 2 + (q[1] - q[8]) ** 2 + (q[2] - q[9]) ** 2) - z[0] * (q[3] * q[11] + t)


def rod_by_t(t, q, z, out):
    out[0] = -z[0]


def ball_on_slope(t, q, z, out):
    """A ball of radius z0 around a point off the centre of the body, on a plane through the origin with normal z1..z3."""
    q0, q1, q2, q3 = q[3], q[4], q[5], q[6]
    off = (0.1 * (q0 * q0 + q1 * q1 - q2 * q2 - q3 * q3), 0.2 * (q1 * q2 + q0 * q3), 0.2 * (q1 * q3 - q0 * q2))
    out[0] = -z[0]
    for k in range(3):
        out[0] += z[1 + k] * (q[k] + off[k])
    for k in range(3):
        out[1 + k] = q[k] + off[k] - z[0] * z[1 + k]
        out[4 + k] = z[1 + k]


def two_balls(t, q, z, out):
    """Balls of radii z0 and z1 around the centres."""
    d0, d1, d2 = q[0] - q[7], q[1] - q[8], q[2] - q[9]
    d = math.sqrt(d0 * d0 + d1 * d1 + d2 * d2)
    out[0] = d - z[0] - z[1]
    out[4], out[5], out[6] = d0 / d, d1 / d, d2 / d
    for k in range(3):
        out[1 + k] = q[7 + k] + (z[1] + 0.5 * out[0]) * out[4 + k]


JOINTS = {
    "none": None,
    "ball": lambda rng: joints.ball_joint(rng.normal(size=3)),
    "hinge": lambda rng: joints.hinge(rng.normal(size=3), rng.normal(size=3)),
    "prismatic": lambda rng: joints.prismatic(rng.normal(size=3)),
    "cylindrical": lambda rng: joints.cylindrical(rng.normal(size=3), rng.normal(size=3)),
    "fixed": lambda rng: joints.fixed_joint(),
}


class Scene:
    """Two random bodies, for the package and for the twin, with what acts between them."""

    def __init__(self, rng, bushing):
        self.rng, self.parts, self.bodies, self.equations, self.contacts = rng, {}, [], [], []
        self.q, self.v = [configuration(rng) for _ in "ab"], [rng.normal(size=6) for _ in "ab"]
        for name, q, v in zip("ab", self.q, self.v, strict=True):
            self.add_body(name, q, v, bushing)

    def add_body(self, name, q, v, bushing):
        rng = self.rng
        mass, inertia, fext, mext = rng.uniform(0.5, 2), spd(rng), rng.normal(size=3), rng.normal(size=3)
        inertial = rng.random() < 0.5
        C, K = (rng.normal(size=(6, 6)), rng.normal(size=(6, 7))) if bushing else (np.zeros((6, 6)), np.zeros((6, 7)))
        terms = {"C": C, "K": K} if bushing else {}
        frame = "inertial" if inertial else "body"
        self.parts[name] = nsds.rigid_bodies(mass, inertia, q, v, fext, mext, frame=frame, **terms)

        def wrench(t, q, v):
            moment = twin.matrix(q[3:]).T @ mext if inertial else mext
            return np.concatenate([fext, moment]) - C @ v - K @ q

        self.bodies.append(twin.Body(mass, inertia, wrench))

    def add_joint(self, kind, on):
        if JOINTS[kind] is not None:
            relation = JOINTS[kind](self.rng)
            fields = joints.resolve(relation, *(self.q["ab".index(side)] for side in on))
            self.parts[f"joint{len(self.parts)}"] = nsds.interaction(relation, nsds.equality(), on=tuple(on) if len(on) > 1 else on)
            sides = ["ab".index(side) for side in on] + [None]
            self.equations.append(twin.Equations(sides[0], sides[1], lambda t, q_a, q_b: values(fields, q_a, q_b)))

    def add_rod(self):
        z = self.rng.normal(size=1)
        relation = nsds.newton_euler_relation(rod, h_t=rod_by_t, m=1, z=z)
        self.parts["rod"] = nsds.interaction(relation, nsds.equality(), on=("a", "b"))
        self.equations.append(twin.Equations(0, 1, lambda t, q_a, q_b: self.evaluated(rod, 1, t, [*q_a, *q_b], z)))

    def add_contacts(self, rolling=False, mu=None):
        for name, part, z in (("slope", "a", [0.3, *unit(self.rng)]), ("pair", ("a", "b"), [0.5, 0.5])):
            function, z = ball_on_slope if name == "slope" else two_balls, np.array(z)
            z[0] += self.evaluated(function, 7, 0.0, np.concatenate(self.q)[: 7 * len(part)], z)[0]  # they touch
            e_n, e_t, drawn = self.rng.uniform(0, 1), self.rng.uniform(-0.5, 1), self.rng.uniform(0, 1)
            mu_r, slope = self.rng.uniform(0, 0.3) if rolling else 0.0, drawn if mu is None else mu
            law = nsds.newton_impact_rolling_friction(e_n, slope, mu_r, e_t) if rolling else nsds.newton_impact_friction(e_n, slope, e_t)
            self.parts[name] = nsds.interaction(nsds.contact_point(function, z), law, on=part)

            def gap(q_a, q_b, function=function, z=z):
                out = self.evaluated(function, 7, 0.0, q_a if q_b is None else [*q_a, *q_b], z)
                return out[0], out[1:4], out[4:]

            self.contacts.append(twin.Contact(0, None if len(part) == 1 else 1, gap, e_n, slope, e_t, mu_r))

    @staticmethod
    def evaluated(function, m, t, q, z):
        out = np.zeros(m)
        function(t, np.asarray(q), z, out)
        return out

    def compare(self, n_steps, theta, q_star, update, form, h=0.02):
        """With states of steps, too, that are refused as too coarse, by the work of their joints: they solve the same equations."""
        scheme = nsds.moreau_jean(theta=theta, q_star=q_star, update=update, form=form, **TIGHT)
        record, q, v = nsds.system(**self.parts), self.q, self.v
        for k in range(n_steps):
            record = nsds.step(record, h, scheme=scheme, solver=nsds.solvers.solver(tol=1e-12), on_failure="continue")
            options = twin.Options(h, theta, 0.5, q_star, update == "linear", form == "explicit")
            q, v, p = twin.step(self.bodies, self.equations, self.contacts, k * h, q, v, options)
            for i, name in enumerate("ab"):
                for field, wanted in (("q", q), ("v", v), ("p", p)):
                    np.testing.assert_allclose(record[name][field], wanted[i], rtol=0, atol=1e-7, err_msg=f"{name}.{field}")


thetas, q_stars = st.sampled_from([0.5, 0.7, 1.0]), st.sampled_from([0.0, 0.5, 1.0])
updates, forms = st.sampled_from(["exponential", "linear"]), st.sampled_from(["reduced", "reduced", "explicit"])
kinds = st.sampled_from(list(JOINTS))


@pytest.mark.parametrize("second", JOINTS)
@settings(examples(8), phases=[Phase.explicit, Phase.generate])
@given(rng=generators, theta=thetas, q_star=q_stars, update=updates, form=forms, first=kinds, bushing=st.booleans())
def test_twin_with_joints(second, rng, theta, q_star, update, form, first, bushing):
    scene = Scene(rng, bushing)
    scene.add_joint(first, "ab")
    scene.add_joint(second, "b")
    if first == "none":
        scene.add_rod()
    scene.compare(2, theta, q_star, update, form)


@pytest.mark.parametrize("kind", JOINTS)
@settings(examples(8), phases=[Phase.explicit, Phase.generate])
@given(rng=generators, theta=thetas, q_star=q_stars, update=updates, form=forms, rolling=st.booleans())
def test_twin_with_contacts(kind, rng, theta, q_star, update, form, rolling):
    scene = Scene(rng, False)
    scene.add_joint(kind, "b")
    scene.add_contacts(rolling)
    scene.compare(1, theta, q_star, update, form)


@pytest.mark.parametrize("mu_r", [0.002, 0.05])
def test_twin_of_a_sphere_that_resists_rolling(mu_r):
    """Thrown on a plane: it slides, rolls and stops; detected contact against a gap in NumPy."""
    ball, h, radius, weight = nsds.shapes.sphere(0.1), 0.01, 0.1, np.array([0, 0, -GRAVITY, 0, 0, 0])
    q, v = np.array([0, 0, 0.1 - 1e-9, *turn([1, 2, 3], 0.5)]), np.array([0.4, -0.3, -0.5, 2.0, 1.0, 5.0])
    law = nsds.newton_impact_rolling_friction(0.3, 0.4, mu_r)
    record = nsds.system(
        ball=nsds.rigid_bodies(1.0, nsds.shapes.inertia(ball, 1.0), q, v, weight[:3]),
        contacts=nsds.collisions({"ball": ball}, law, world=nsds.shapes.plane()),
    )
    body = twin.Body(1.0, nsds.shapes.inertia(ball, 1.0), lambda t, q, v: weight)
    up = np.array([0, 0, 1.0])
    contact = twin.Contact(0, None, lambda q_a, q_b: (q_a[2] - radius, q_a[:3] - radius * up, up), 0.3, 0.4, 0.0, mu_r)
    for k in range(40):
        record = nsds.step(record, h, scheme=nsds.moreau_jean(), solver=nsds.solvers.solver(tol=1e-12))
        (q,), (v,), _ = twin.step([body], [], [contact], k * h, [q], [v], twin.Options(h))
        np.testing.assert_allclose(record["ball"]["q"], q, rtol=0, atol=1e-8)
        np.testing.assert_allclose(record["ball"]["v"], v, rtol=0, atol=1e-8)
    assert (abs(v[:3]).max() < 1e-9) == (mu_r == 0.05)


TOP = {"mass": 1.0, "inertia": [0.7, 0.7, 1.3], "q": ORIGIN}


def quaternion_at(t):
    """Of the symmetric top: a turn about the angular momentum times one about its own axis."""
    L, nu = np.array([0.56, 0, 2.6]), (1.3 - 0.7) / 0.7 * 2.0
    return twin.product(turn(L, np.linalg.norm(L) * t / 0.7), turn([0, 0, 1], -nu * t))


@pytest.mark.parametrize(("theta", "order"), [(0.5, 2), (1.0, 1)])
@pytest.mark.parametrize("update", ["exponential", "linear"])
def test_order_of_a_free_top(theta, order, update):
    errors, drifts = [], []
    for h in (0.02, 0.01):
        scheme = nsds.moreau_jean(theta=theta, update=update)
        top = nsds.simulate(nsds.system(top=nsds.rigid_bodies(v=[0, 0, 0, 0.8, 0, 2.0], **TOP)), t_end=2.0, h=h, scheme=scheme)["top"]
        errors.append(abs(top["q"][-1, 3:] - quaternion_at(2.0)).max())
        L = np.array([twin.matrix(q[3:]) @ (np.diag(TOP["inertia"]) @ v[3:]) for q, v in zip(top["q"], top["v"], strict=True)])
        energy = (top["v"][:, 3:] ** 2 @ TOP["inertia"]) / 2
        drifts.append(abs(L - L[0]).max() + abs(energy - energy[0]).max())
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)
    assert drifts[1] < 1e-13 or drifts[0] / drifts[1] > 0.85 * 2**order  # theta = 1/2 with the linear update keeps them


def box_on_slope(ratio, mu=0.4):
    """A flat box on a plane, gravity tilted by an angle whose tangent is ratio mu."""
    tilt = math.atan(ratio * mu)
    box = nsds.shapes.box([0.4, 0.4, 0.1])
    system = nsds.system(
        box=nsds.rigid_bodies(
            2.0,
            nsds.shapes.inertia(box, 2.0),
            q=[0, 0, 0.05 - 1e-9, 1, 0, 0, 0],
            v=AT_REST,
            fext=[2 * GRAVITY * math.sin(tilt), 0, -2 * GRAVITY * math.cos(tilt)],
        ),
        contacts=nsds.collisions({"box": box}, nsds.newton_impact_friction(0.0, mu), world=nsds.shapes.plane()),
    )
    return nsds.simulate(system, t_end=0.5, h=0.01)["box"], GRAVITY * (math.sin(tilt) - mu * math.cos(tilt))


def test_box_sticks_just_below_the_angle_of_friction():
    box, _ = box_on_slope(0.999)
    assert abs(box["v"]).max() < 1e-8


def test_box_slides_just_above_the_angle_of_friction():
    box, acceleration = box_on_slope(1.001)
    np.testing.assert_allclose(box["v"][-1, 0], 0.5 * acceleration, rtol=1e-5)
    box, acceleration = box_on_slope(2.0)
    np.testing.assert_allclose(box["v"][-1], [0.5 * acceleration, 0, 0, 0, 0, 0], atol=1e-7)


def ball_on_slope_of(tilt, mu, mu_r):
    """(velocity along the slope, angular velocity across) after half a second of a ball that started at rest."""
    radius = 0.1
    ball = nsds.shapes.sphere(radius)
    system = nsds.system(
        ball=nsds.rigid_bodies(
            2.0,
            nsds.shapes.inertia(ball, 2.0),
            q=[0, 0, radius - 1e-9, 1, 0, 0, 0],
            v=AT_REST,
            fext=[2 * GRAVITY * math.sin(tilt), 0, -2 * GRAVITY * math.cos(tilt)],
        ),
        contacts=nsds.collisions({"ball": ball}, nsds.newton_impact_rolling_friction(0.0, mu, mu_r), world=nsds.shapes.plane()),
    )
    end = nsds.simulate(system, t_end=0.5, h=0.01, solver=nsds.solvers.solver(tol=1e-12))["ball"][-1]
    return end["v"][0], (twin.matrix(end["q"][3:]) @ end["v"][3:])[1]


@pytest.mark.parametrize(("ratio", "mu_r"), [(0.5, 0.0), (0.999, 0.0), (0.999, 0.01), (1.001, 0.0), (1.5, 0.01)])
def test_ball_on_a_slope_slides_from_the_angle_on_where_rolling_wants_more_friction(ratio, mu_r):
    """Rolling: ``7/5 a = g (sin - mu_r / r cos)``; the force ``m (g sin - a) = mu m g cos`` gives the tangent of the threshold."""
    mu, resisted = 0.2, mu_r / 0.1
    tilt = math.atan(ratio * (3.5 * mu - 2.5 * resisted))
    sine, cosine = math.sin(tilt), math.cos(tilt)
    v, omega = ball_on_slope_of(tilt, mu, mu_r)
    if ratio < 1:
        np.testing.assert_allclose([v, 0.1 * omega], 0.5 * 5 / 7 * GRAVITY * (sine - resisted * cosine), rtol=1e-5)
    else:
        np.testing.assert_allclose(v, 0.5 * GRAVITY * (sine - mu * cosine), rtol=1e-5)
        np.testing.assert_allclose(omega, 0.5 * (mu - resisted) * GRAVITY * cosine * 2.5 / 0.1, rtol=1e-5)
        assert v > 0.1 * omega


@pytest.mark.parametrize("ratio", [0.999, 1.001])
def test_ball_on_a_slope_rests_up_to_the_angle_of_rolling_friction(ratio):
    mu_r = 0.01
    tilt = math.atan(ratio * mu_r / 0.1)
    v, omega = ball_on_slope_of(tilt, 0.5, mu_r)
    wanted = 0.5 * 5 / 7 * GRAVITY * max(math.sin(tilt) - mu_r / 0.1 * math.cos(tilt), 0.0)
    np.testing.assert_allclose([v, 0.1 * omega], wanted, rtol=1e-3, atol=1e-8)


class ThrownBall:
    """A ball that spins and is thrown on a plane: its state at any time up to the second impact, in closed form."""

    radius, e, inertia, weight = 0.1, 0.5, 0.4 * 0.1**2, np.array([0, 0, -GRAVITY, 0, 0, 0])
    v = np.array([1.0, -0.5, -1.0, 12.0, 5.0, 8.0])

    def __init__(self, mu, heights):
        self.mu, ball = mu, nsds.shapes.sphere(self.radius)
        law = nsds.newton_impact_friction(self.e, mu)
        system = nsds.system(
            ball=nsds.rigid_bodies(1.0, self.inertia, ORIGIN, self.v, self.weight[:3]),
            contacts=nsds.collisions({"ball": ball}, law, world=nsds.shapes.plane()),
        )
        self.systems = np.repeat(system, len(heights))
        self.systems["ball"]["q"][:, 2] = self.radius + heights

    def fly(self, q, v, t):
        return twin.moved(q, v, t) + t**2 / 2 * np.append(self.weight, 0), v + t * self.weight

    def hit(self, q, v):
        """The impulse is ``(1 + e) |u_n|``, and that which stops the slip, 2/7 of it, or friction's largest."""
        R, lever = twin.matrix(q[3:]), np.array([0, 0, -self.radius])
        slip = v[:3] + np.cross(R @ v[3:], lever)
        p = np.array([-2 / 7 * slip[0], -2 / 7 * slip[1], -(1 + self.e) * slip[2]])
        p[:2] *= min(1.0, self.mu * p[2] / np.linalg.norm(p[:2]))
        return np.concatenate([v[:3] + p, v[3:] + R.T @ np.cross(lever, p) / self.inertia])

    def at(self, t, q):
        height, fall = q[2] - self.radius, self.v[2]
        first = (fall + math.sqrt(fall**2 + 2 * GRAVITY * height)) / GRAVITY
        q, v = self.fly(q, self.v, first)
        return self.fly(q, self.hit(q, v), t - first)

    def error(self, t, h, theta):
        ends = nsds.simulate(self.systems, t_end=t, h=h, scheme=nsds.moreau_jean(theta=theta))["ball"][:, -1]
        pairs = [(end, self.at(t, start["q"])) for end, start in zip(ends, self.systems["ball"], strict=True)]
        return np.mean([abs(np.concatenate([end["q"] - q, end["v"] - v])).max() for end, (q, v) in pairs])


@pytest.mark.parametrize("theta", [0.5, 1.0])
@pytest.mark.parametrize("mu", [0.1, 1.0])  # it slides, it sticks
def test_order_of_impacts_with_friction_and_spin(mu, theta):
    """The mean over where in a step the impact falls, so that this is not what is measured."""
    steps = np.array([0.02, 0.01, 0.005, 0.0025, 0.00125])
    phases = (np.arange(8) + 0.5) / 8
    errors = [ThrownBall(mu, 0.1 + 1.5 * h * phases).error(0.2, h, theta) for h in steps]
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(1.0, abs=0.1)


def test_order_of_a_bouncing_ball():
    """An impact falls on the grid up to h early or late: it moves the ball by (1 + e) |v| h at most; so order 1."""
    e, speed = 0.5, math.sqrt(2 * GRAVITY)
    first = speed / GRAVITY
    for h in (0.02, 0.005, 0.00125):
        ball = nsds.shapes.sphere(0.1)
        system = nsds.system(
            ball=nsds.rigid_bodies(1.0, nsds.shapes.inertia(ball, 1.0), [0, 0, 1.1, 1, 0, 0, 0], AT_REST, [0, 0, -GRAVITY]),
            contacts=nsds.collisions({"ball": ball}, nsds.newton_impact(e), world=nsds.shapes.plane()),
        )
        rows = nsds.simulate(system, t_end=first * 1.9, h=h)
        t, s = rows["t"], rows["t"] - first
        exact = np.where(s < 0, 1 - GRAVITY * t**2 / 2, e * speed * s - GRAVITY * s**2 / 2)
        assert abs(rows["ball"]["q"][:, 2] - 0.1 - exact).max() < (1 + e) * speed * h * 1.2


def pendulum_error(h, scheme):
    """Of a body on a hinge off its axes, against its equation: the angle after 1 s."""
    inertia, arm, axis = spd(np.random.default_rng(3)), np.array([0.2, 0.1, -0.6]), np.array([0.0, 1.0, 0.0])
    moment = axis @ inertia @ axis + (arm @ arm - (arm @ axis) ** 2)
    pull = np.cross(arm, [0, 0, -GRAVITY])

    def motion(t, y):
        c, s = math.cos(y[0]), math.sin(y[0])
        turned = c * arm + s * np.cross(axis, arm) + (1 - c) * (axis @ arm) * axis
        return [y[1], np.cross(turned, [0, 0, -GRAVITY]) @ axis / moment]

    assert abs(pull @ axis) > 0
    system = nsds.system(
        body=nsds.rigid_bodies(1.0, inertia, q=[*arm, 1, 0, 0, 0], v=AT_REST, fext=[0, 0, -GRAVITY]),
        hinge=nsds.interaction(joints.hinge([0, 0, 0], axis), nsds.equality(), on="body"),
        angle=nsds.interaction(joints.hinge_angle(axis), nsds.dry_friction(0.0), on="body"),
    )
    exact = solve_ivp(motion, (0, 1), [0, 0], rtol=1e-11, atol=1e-12).y[0, -1]
    return abs(nsds.simulate(system, t_end=1.0, h=h, scheme=scheme)["angle"]["y"][-1] - exact)


@pytest.mark.parametrize("options", [{}, {"q_star": 0.5}, {"theta": 1.0}, {"form": "explicit"}], ids=str)
def test_order_of_a_pendulum_on_a_hinge(options):
    errors = [pendulum_error(h, nsds.moreau_jean(**options)) for h in (0.01, 0.005, 0.0025)]
    assert errors[2] < 0.05
    assert errors[0] / errors[2] > 2.8


def heavy_top(h):
    """Held at a point of its axis: (spin about the axis, the moment's part along gravity) in time."""
    tilt = turn([1, 0, 0], 0.4)
    axis = twin.matrix(tilt)[:, 2]
    system = nsds.system(
        top=nsds.rigid_bodies(1.0, [0.02, 0.02, 0.01], q=[*(0.2 * axis), *tilt], v=[0, 0, 0, 0, 0, 80.0], fext=[0, 0, -GRAVITY]),
        tip=nsds.interaction(joints.ball_joint([0, 0, 0]), nsds.equality(), on="top"),
    )
    top = nsds.simulate(system, t_end=0.5, h=h)["top"]
    q, v = top["q"], top["v"]
    L = [np.cross(x[:3], w[:3]) + twin.matrix(x[3:]) @ ([0.02, 0.02, 0.01] * w[3:]) for x, w in zip(q, v, strict=True)]
    return v[:, 5], np.array(L)[:, 2]


def test_heavy_top_keeps_its_spin_and_the_momentum_about_gravity():
    errors = []
    for h in (1e-3, 5e-4):
        spin, L = heavy_top(h)
        np.testing.assert_allclose(spin, 80.0, rtol=1e-9)
        errors.append(abs(L - L[0]).max())
    assert errors[0] < 0.02
    assert errors[0] / errors[1] > 1.7


def double_pendulum_exact(t_end, start):
    """Two rods of mass 1, length 1 and inertia 1/12, angles from the vertical, by Lagrange's equations."""

    def motion(t, y):
        d = y[0] - y[1]
        M = np.array([[4 / 3, math.cos(d) / 2], [math.cos(d) / 2, 1 / 3]])
        force = [-math.sin(d) / 2 * y[3] ** 2 - 1.5 * GRAVITY * math.sin(y[0]), math.sin(d) / 2 * y[2] ** 2 - GRAVITY / 2 * math.sin(y[1])]
        return [*y[2:], *np.linalg.solve(M, force)]

    return solve_ivp(motion, (0, t_end), [*start, 0, 0], rtol=1e-10, atol=1e-12).y[:, -1]


def double_pendulum(t_end, start, h):
    parts, pivot = {}, np.zeros(3)
    for name, angle in zip("ab", start, strict=True):
        along = np.array([math.sin(angle), 0, -math.cos(angle)])
        q = [*(pivot + along / 2), *turn([0, 1, 0], -angle)]
        parts[name] = nsds.rigid_bodies(1.0, [1 / 12, 1 / 12, 0.01], q=q, v=AT_REST, fext=[0, 0, -GRAVITY])
        on = "a" if name == "a" else ("b", "a")
        parts[f"hinge_{name}"] = nsds.interaction(joints.hinge(pivot, [0, 1, 0]), nsds.equality(), on=on)
        pivot = pivot + along
    rows = nsds.simulate(nsds.system(**parts), t_end=t_end, h=h)
    up = [twin.matrix(rows[name]["q"][-1, 3:])[:, 2] for name in "ab"]
    return [math.atan2(-x, z) for x, _, z in up]


def test_double_pendulum_of_two_hinges():
    start, errors = (1.2, 0.4), []
    for h in (2e-3, 1e-3):
        errors.append(abs(double_pendulum(1.0, start, h) - double_pendulum_exact(1.0, start)[:2]).max())
    assert errors[0] < 0.05
    assert errors[0] / errors[1] > 1.6


MOMENT = (0.3, -0.5, 0.8)


def moment_in_body_axes(t, q, v, z, out):
    """Minus an inertial moment (its parts are z) in axes of the body, as an internal one."""
    a, b, c, w = -q[4], -q[5], -q[6], q[3]
    x, y, u = 2 * (b * z[2] - c * z[1]), 2 * (c * z[0] - a * z[2]), 2 * (a * z[1] - b * z[0])
    out[0] = -(z[0] + w * x + b * u - c * y)
    out[1] = -(z[1] + w * y + c * x - a * u)
    out[2] = -(z[2] + w * u + a * y - b * x)


def test_moments_in_inertial_axes_are_those_in_axes_of_the_body():
    free = {"mass": 1.0, "inertia": [0.5, 0.8, 1.1], "q": [0, 0, 0, *turn([1, 2, 3], 0.7)], "v": [0, 0, 0, 0.5, -0.3, 0.9]}
    inertial = nsds.rigid_bodies(mext=MOMENT, frame="inertial", **free)
    internal = nsds.rigid_bodies(mint=moment_in_body_axes, z=MOMENT, **free)
    rows = nsds.simulate(nsds.system(inertial=inertial, internal=internal), t_end=1.0, h=0.01)
    np.testing.assert_allclose(rows["inertial"]["q"], rows["internal"]["q"], rtol=0, atol=1e-8)
    body = nsds.simulate(nsds.system(body=nsds.rigid_bodies(mext=MOMENT, **free)), t_end=1.0, h=0.01)
    assert abs(body["body"]["q"] - rows["inertial"]["q"]).max() > 0.1


def bushing_force(t, q, v, z, out):
    for i in range(3):
        out[i] = z[0] * q[i] + z[1] * v[i]


def bushing_moment(t, q, v, z, out):
    for i in range(3):
        out[i] = z[2] * q[4 + i] + z[3] * v[3 + i]


def bushing_by_q(t, q, v, z, out):
    for i in range(3):
        out[i, i] = z[0]
        out[3 + i, 4 + i] = z[2]


def bushing_by_v(t, q, v, z, out):
    for i in range(3):
        out[i, i] = z[1]
        out[3 + i, 3 + i] = z[3]


def test_bushing_by_matrices_and_by_functions():
    z = np.array([40.0, 0.5, 30.0, 0.2])
    K, C = np.zeros((6, 7)), np.diag([z[1]] * 3 + [z[3]] * 3)
    for i in range(3):
        K[i, i], K[3 + i, 4 + i] = z[0], z[2]
    free = {"mass": 1.0, "inertia": [0.5, 0.8, 1.1], "q": [0.1, 0.2, 0, *turn([1, 2, 3], 0.7)], "v": [1, 0, 0, 0.5, -0.3, 0.9]}
    functions = {"fint": bushing_force, "mint": bushing_moment, "z": z}
    system = nsds.system(
        matrices=nsds.rigid_bodies(C=C, K=K, **free),
        differences=nsds.rigid_bodies(**functions, **free),
        jacobians=nsds.rigid_bodies(jac_q=bushing_by_q, jac_v=bushing_by_v, **functions, **free),
    )
    rows = nsds.simulate(system, t_end=1.0, h=0.01)
    for name in ("differences", "jacobians"):
        np.testing.assert_allclose(rows[name]["q"], rows["matrices"]["q"], rtol=0, atol=1e-7)


def test_what_has_infinite_mass_keeps_its_velocity_and_carries_others():
    ball = nsds.shapes.sphere(0.5)
    lift = nsds.rigid_bodies(np.inf, 1.0, q=[0, 0, -0.5, 1, 0, 0, 0], v=[0.2, 0, 0.3, 0, 0, 0.1], fext=[0, 0, -GRAVITY])
    load = nsds.rigid_bodies(2.0, nsds.shapes.inertia(ball, 2.0), q=[0, 0, 0.5 - 1e-9, 1, 0, 0, 0], v=AT_REST, fext=[0, 0, -2 * GRAVITY])
    contacts = nsds.collisions({"lift": ball, "load": ball}, nsds.newton_impact(0.0))
    rows = nsds.simulate(nsds.system(lift=lift, load=load, contacts=contacts), t_end=0.1, h=0.01)
    assert (rows["lift"]["v"] == rows["lift"]["v"][0]).all()
    np.testing.assert_allclose(rows["load"]["v"][1:3, 2], 0.3, atol=1e-3)


@pytest.mark.parametrize("name", ["fixed", "hinge"])
def test_joints_hold_what_is_at_rest(name):
    held = nsds.rigid_bodies(1.0, [1, 2, 2.5], q=[0.3, 0.2, 0, 1, 0, 0, 0], v=AT_REST, fext=[0, 0, -GRAVITY])
    joint = joints.fixed_joint() if name == "fixed" else joints.hinge([0.3, 0.2, 1], [0, 1, 0])
    rows = nsds.simulate(nsds.system(held=held, joint=nsds.interaction(joint, nsds.equality(), on="held")), t_end=0.1, h=0.01)
    assert abs(rows["held"]["v"]).max() < 1e-12


@pytest.mark.parametrize("kind", ["ball", "hinge", "prismatic", "cylindrical"])
@pytest.mark.parametrize("seed", range(4))
def test_defaults_solve_joints_with_contacts(kind, seed):
    scene = Scene(np.random.default_rng(seed), False)
    scene.add_joint(kind, "b")
    scene.add_contacts()
    assert nsds.step(nsds.system(**scene.parts), 0.02)["status"] == 0


def test_bodies_that_nothing_stops_pass_through_one_another():
    ball = nsds.shapes.sphere(0.5)
    parts = {name: nsds.rigid_bodies(np.inf, 1.0, q=[x, 0, 0, 1, 0, 0, 0], v=[-x, *AT_REST[1:]]) for name, x in (("a", -0.52), ("b", 0.52))}
    contacts = nsds.collisions({"a": ball, "b": ball}, nsds.newton_impact(0.5))
    rows = nsds.simulate(nsds.system(**parts, contacts=contacts), t_end=0.1, h=0.01)
    assert (rows["a"]["v"] == rows["a"]["v"][0]).all()
