"""Lagrangian models with few coordinates, circuits, relays."""

import math

import numpy as np

import nsds
from tests.scenes.model import FINE, G, close, scene, variant

MICRO = (1e-5, 1e-6, 1e-7)


@scene(t_end=2.0, short=1.0)
def bouncing_ball(e=0.9, y=1.0, length=1.0):
    """A ball bounces on the ground, or lies on it."""
    record = nsds.system(
        ball=nsds.lagrangian_linear(M=[1.0], fext=[-G], q=[y * length], v=[0.0]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(e), on="ball"),
    )

    def facts(rows, h):
        q, v = rows["ball"]["q"][:, 0], rows["ball"]["v"][:, 0]
        top = math.sqrt(2 * G * y * length)
        return {
            "it does not fall through": q.min() > -top * h - G * h**2,
            "it does not fly higher": q.max() <= y * length + 1e-12 + (top * h + G * h**2) * (e > 0),
            "it lies still without restitution": e > 0 or abs(v[-1]) < 1e-12,
        }

    return record, facts


variant("ball_that_lies", "bouncing_ball", y=0.0, e=0.5, rest=1.0)
variant("bouncing_ball_without_loss", "bouncing_ball", e=1.0)
variant("bouncing_ball_without_restitution", "bouncing_ball", e=0.0, rest=1.0)
variant("bouncing_ball_of_a_micrometre", "bouncing_ball", length=1e-6, t_end=2e-3, short=1e-3, steps=MICRO)
variant("bouncing_ball_of_a_kilometre", "bouncing_ball", length=1e3, t_end=60.0, short=30.0, steps=(0.3, 3e-2, 3e-3))


@scene(t_end=5.0, short=2.0, motors=True)
def block_on_a_belt(mu=0.4, speed=0.5):
    """A block on a spring is carried along by a belt until it slips back."""
    record = nsds.system(
        block=nsds.lagrangian_linear(M=np.eye(2), K=[[0, 0], [0, 20.0]], fext=[-G, 0], q=[0, 0], v=[0, 0]),
        belt=nsds.interaction(
            nsds.rheonomous(belt, belt_by_q, belt_by_t, m=2, z=[speed]), nsds.newton_impact_friction(0.0, mu), on="block"
        ),
    )

    def facts(rows, h):
        q, v = rows["block"]["q"], rows["block"]["v"]
        return {
            "it stays on the belt": close(q[:, 0], 0, 4 * G * h**2),
            "friction pulls no farther than it can": q[:, 1].max() < mu * G / 20 * (1 + 1e-6) + speed / math.sqrt(20) + 2 * speed * h,
            "it is never faster than the belt": v[:, 1].max() < speed + 1e-9,
        }

    return record, facts


def belt(t, q, z, out):
    """Gap, and slip of a block at q = (height, way) on a belt of speed z[0]."""
    out[0], out[1] = q[0], q[1] - z[0] * t


def belt_by_q(t, q, z, out):
    """Derivative of `belt` by q."""
    out[0, 0], out[0, 1], out[1, 0], out[1, 1] = 1.0, 0.0, 0.0, 1.0


def belt_by_t(t, q, z, out):
    """Derivative of `belt` by t."""
    out[0], out[1] = 0.0, -z[0]


@scene(t_end=2.0, short=0.5)
def impacting_bar(n=20):
    """A steel bar of finite elements is held against a wall by a force, drawn exactly touching."""
    record = nsds.examples.impacting_bar(n_nodes=n)
    record["bar"]["q"], record["bar"]["v"] = 0.0, -0.1

    def facts(rows, h):
        q, v = rows["bar"]["q"], rows["bar"]["v"]
        mass = record["bar"]["M"]["data"].sum()
        return {
            "it does not go through the wall": q[:, 0].min() > -0.2 * h - 1e-9,
            "it comes back no faster": 0.5 * mass * v.mean(axis=1)[-1] ** 2 < 0.55 * mass * 0.01,
        }

    return record, facts


@scene(t_end=1.0, short=0.5, rest=0.5)
def column_of_beads_at_rest(n=10):
    """Beads on a wire lie on each other, drawn exactly touching."""
    record = nsds.system(
        beads=nsds.lagrangian_linear(M=[1.0], fext=[-G], q=0.1 * np.arange(n), v=np.zeros(n), count=n),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.5), on="beads[0]"),
        between=nsds.interaction(
            nsds.lagrangian_linear_relation(H=[[-1.0, 1.0]], b=[-0.1]), nsds.newton_impact(0.5), on=("beads[:-1]", "beads[1:]")
        ),
    )
    return record, lambda rows, h: {"nothing moves": close(rows["beads"]["q"][..., 0], 0.1 * np.arange(n), 1e-8)}


def pendulum_weight(t, q, v, z, out):
    """Moment of the weight."""
    out[0] = G * math.sin(q[0])


def wall_of_a_pendulum(q, z, out):
    """Gap to a wall at x = -z[0]."""
    out[0] = math.sin(q[0]) + z[0]


@scene(t_end=3.0, short=1.0)
def pendulum_on_a_wall(e=0.5):
    """A point on a string hits a wall."""
    record = nsds.system(
        rod=nsds.lagrangian(mass=[1.0], fint=pendulum_weight, q=[1.2], v=[0.0]),
        wall=nsds.interaction(nsds.scleronomous(wall_of_a_pendulum, m=1, z=[0.1]), nsds.newton_impact(e), on="rod"),
    )

    def facts(rows, h):
        q = rows["rod"]["q"][:, 0]
        return {"it does not go through": np.sin(q).min() > -0.1 - 5 * h, "it swings no higher": abs(q).max() < 1.2 + 5 * h}

    return record, facts


@scene(t_end=0.1, steps=(1e-4, 1e-5), short=0.02)
def slider_crank():
    """The slider-crank of the examples with its four corners in a guide with clearance."""
    record = nsds.examples.slider_crank()

    def facts(rows, h):
        y = rows["corners"]["y"][:, ::2]
        return {"the slider stays in its guide": y.min() > -30 * h, "the crank turns on": rows["mechanism"]["v"][-1, 0] > 50}

    return record, facts


@scene(t_end=1.0, steps=FINE, short=0.3)
def woodpecker():
    """The woodpecker toy of the examples."""
    record = nsds.examples.woodpecker()
    return record, lambda rows, h: {"it goes down its pole": bool(np.isfinite(rows["t"]).all())}


# circuits ------------------------------------------------------------------------------------------------------------------------------


def buck_A(t, z, out):
    """z = (R_on, R_off, period, duty, source, inductance, capacitance, load)."""
    phase = t / z[2] + 1e-9
    r = z[0] if phase - math.floor(phase) < z[3] else z[1]
    out[0, 0], out[0, 1], out[1, 0], out[1, 1] = -r / z[5], -1 / z[5], 1 / z[6], -1 / (z[7] * z[6])


def buck_b(t, z, out):
    """The source drives the inductor through the switch."""
    out[0], out[1] = z[4] / z[5], 0.0


def buck_B(t, z, out):
    """The diode's current goes past the switch."""
    phase = t / z[2] + 1e-9
    out[0, 0], out[1, 0] = (z[0] if phase - math.floor(phase) < z[3] else z[1]) / z[5], 0.0


def buck_C(t, z, out):
    """Voltage behind the switch, of the current of the inductor."""
    phase = t / z[2] + 1e-9
    out[0, 0], out[0, 1] = -(z[0] if phase - math.floor(phase) < z[3] else z[1]), 0.0


def buck_D(t, z, out):
    """Voltage behind the switch, of the diode's current."""
    phase = t / z[2] + 1e-9
    out[0, 0] = z[0] if phase - math.floor(phase) < z[3] else z[1]


def buck_e(t, z, out):
    """Voltage behind the switch: the source."""
    out[0] = z[4]


@scene(t_end=5e-3, steps=(1e-6, 1e-7), short=5e-4)
def buck_converter(on=1e-3, off=1e6, duty=0.4):
    """Step-down converter with a switch of 1 mOhm or 1 MOhm and an ideal diode; x = (current, voltage of the load)."""
    z = [on, off, 1e-4, duty, 12.0, 1e-3, 1e-4, 5.0]
    record = nsds.system(
        filter=nsds.first_order_linear(buck_A, buck_b, x=[0, 0], z=z),
        diode=nsds.interaction(
            nsds.first_order_linear_relation(buck_C, buck_B, buck_D, buck_e, z=z, m=1), nsds.complementarity(), on="filter"
        ),
    )

    def facts(rows, h):
        x = rows["filter"]["x"]
        late = rows["t"] > 4e-3
        return {
            "the voltage is the share of the source": not late.any() or close(x[late, 1].mean(), 12.0 * duty, 0.15 * 12 * duty),
            "the current is not negative": x[:, 0].min() > -1e-3,
            "neither is the diode's": rows["diode"]["lambda"].min() >= 0,
        }

    return record, facts


def boost_A(t, z, out):
    """z as of `buck_A`: the source drives the inductor, which the switch connects to ground."""
    phase = t / z[2] + 1e-9
    r = z[0] if phase - math.floor(phase) < z[3] else z[1]
    out[0, 0], out[0, 1], out[1, 0], out[1, 1] = -r / z[5], 0.0, 0.0, -1 / (z[7] * z[6])


def boost_B(t, z, out):
    """The diode's current leaves the switch and loads the capacitor."""
    phase = t / z[2] + 1e-9
    out[0, 0], out[1, 0] = (z[0] if phase - math.floor(phase) < z[3] else z[1]) / z[5], 1 / z[6]


def boost_C(t, z, out):
    """Reverse voltage of the diode, of the state."""
    phase = t / z[2] + 1e-9
    out[0, 0], out[0, 1] = -(z[0] if phase - math.floor(phase) < z[3] else z[1]), 1.0


def no_source(t, z, out):
    """Nothing."""
    out[0] = 0.0


@scene(t_end=2e-2, steps=(1e-6, 1e-7), short=5e-4)
def boost_converter(on=1e-3, off=1e6, duty=0.5):
    """Step-up converter with a switch of 1 mOhm or 1 MOhm and an ideal diode; x = (current, voltage of the load)."""
    z = [on, off, 1e-4, duty, 12.0, 1e-3, 1e-5, 50.0]
    record = nsds.system(
        filter=nsds.first_order_linear(boost_A, buck_b, x=[0, 12.0], z=z),
        diode=nsds.interaction(
            nsds.first_order_linear_relation(boost_C, boost_B, buck_D, no_source, z=z, m=1), nsds.complementarity(), on="filter"
        ),
    )

    def facts(rows, h):
        x, late = rows["filter"]["x"], rows["t"] > 1.5e-2
        wanted = 12.0 / (1 - duty)
        return {
            "the voltage is stepped up": not late.any() or close(x[late, 1].mean(), wanted, 0.15 * wanted),
            "the diode lets nothing back": rows["diode"]["lambda"].min() >= 0,
        }

    return record, facts


@scene(t_end=5e-3, steps=MICRO[:2], short=1e-3)
def diode_bridge():
    """The full-wave rectifier of the examples, whose tank has no source: its energy falls."""
    record = nsds.examples.diode_bridge()

    def facts(rows, h):
        u, i = rows["plant"]["x"].T
        stored = 0.5 * 1e-6 * u**2 + 0.5 * 1e-2 * i**2
        load = rows["switches"]["lambda"][1:, :2].sum(axis=1)
        return {"its energy falls": np.diff(stored).max() < 1e-12 * stored[0], "the load's voltage has one sign": load.min() > -1e-9}

    return record, facts


@scene(t_end=2.0, short=1.0)
def relay_controller(gain=1.0, scale=1.0):
    """A double integrator under ``u = -gain sign(x + x')``: it slides to the origin without chattering."""
    record = nsds.system(
        plant=nsds.first_order_linear(A=[[0, 1], [0, 0]], x=[0.2 * scale, 0.1 * scale]),
        relay=nsds.interaction(
            nsds.first_order_linear_relation(C=[[1, 1]], B=[[0], [1]]), nsds.relay(-gain * scale, gain * scale), on="plant"
        ),
    )

    def facts(rows, h):
        s = rows["plant"]["x"].sum(axis=1) / scale
        late = rows["t"] > 0.7
        return {
            "it slides without chattering": abs(s[late]).max() < 1e-9 + 2 * gain * h**2,
            "u is within its bounds": abs(rows["relay"]["lambda"]).max() <= gain * scale,
        }

    return record, facts


variant("relay_controller_of_millionths", "relay_controller", scale=1e-6)
variant("relay_controller_of_millions", "relay_controller", scale=1e6)


@scene(t_end=20.0, steps=(5e-2, 1e-2, 1e-3), short=5.0)
def friction_oscillator():
    """Two masses on springs, one of which rubs on the ground, as a relay."""
    record = nsds.examples.friction_oscillator()

    def facts(rows, h):
        return {
            "it stays small": abs(rows["masses"]["x"]).max() < 5,
            "friction is within its bounds": abs(rows["ground"]["lambda"]).max() <= 0.5 + 1e-12,
        }

    return record, facts


def rocking(t, q, v, z, out):
    """Weight of a block; q = (x, z, angle)."""
    out[0], out[1], out[2] = 0.0, G, 0.0


def rocking_corners(q, z, out):
    """Gap and way of the two lower corners of a block of half width z[0] and half height z[1]."""
    s, c = math.sin(q[2]), math.cos(q[2])
    for i in range(2):
        w = z[0] if i == 0 else -z[0]
        out[2 * i] = q[1] + w * s - z[1] * c
        out[2 * i + 1] = q[0] + w * c + z[1] * s


@scene(t_end=3.0, short=1.0)
def rocking_block(mu=0.6):
    """A block in the plane is let go on one corner, and rocks until it stands."""
    a, b, tilted = 0.1, 0.3, 0.15
    s, c = math.sin(tilted), math.cos(tilted)
    record = nsds.system(
        block=nsds.lagrangian(mass=[1.0, 1.0, (a**2 + b**2) / 3], fint=rocking, q=[0, a * s + b * c, tilted], v=[0, 0, 0]),
        ground=nsds.interaction(nsds.scleronomous(rocking_corners, m=4, z=[a, b]), nsds.newton_impact_friction(0.0, mu), on="block"),
    )

    def facts(rows, h):
        q = rows["block"]["q"]
        return {
            "it does not sink": rows["ground"]["y"][:, ::2].min() > -2 * h,
            "it does not tip over": abs(q[:, 2]).max() < 1.05 * tilted + 2 * h,
            "it comes to stand": rows["t"][-1] < 2.5 or abs(q[-1, 2]) < 0.03,
        }

    return record, facts
