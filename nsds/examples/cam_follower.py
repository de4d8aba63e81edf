"""The cam follower of the source documents: a mass on a spring, pressed against a turning cam ([Notes], chapter 14)."""

import math

import numpy as np

from nsds._jit import kernel
from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.laws import newton_impact
from nsds.model.relations_lagrangian import lagrangian_linear_relation
from nsds.model.systems import lagrangian_linear
from nsds.pictures.plotting import figure, legend_beside
from nsds.results.contacts import contact_intervals

RUN = {"t_end": 5.0, "h": 1e-4}

_PI = 3.14159265  # the study truncates pi
_OFFSET = 0.3
_RESTING = 0.40 - _OFFSET  # position of the resting circle


@kernel
def cam_profile(t, rpm):
    """Cam position c(t), velocity c'(t) and acceleration c''(t) at the follower, in m, m/s, m/s².

    A resting circle, a flank, a nose and a top; the falling side mirrors the rising one.
    """
    speed = 2.0 * _PI * rpm / 60.0
    beta = (speed * t + 0.5 * _PI) % (2.0 * _PI)
    if beta > _PI:
        beta = 2.0 * _PI - beta
        speed = -speed
    if beta <= 0.5 * _PI:
        return _RESTING, 0.0, 0.0
    if beta <= 0.5 * _PI + 1.050328174371336:
        rise, slope, curvature = _arc(0.45, 0.85, beta)
    elif beta <= 0.5 * _PI + 1.22173047639603:
        rise, slope, _ = _arc(0.40393320723821, 0.15, beta + _PI / 9.0 + 0.5 * math.pi)
        _, _, curvature = _arc(-0.40393320723821, 0.15, beta - 1.22173047639603)
    else:
        return 0.55393320723821 - _OFFSET, 0.0, 0.0
    return rise - _OFFSET, speed * slope, speed * speed * curvature


@kernel
def _arc(k, rho, angle):
    """Lift of a follower on an arc of radius rho whose centre is k from the shaft, and its two derivatives by the angle."""
    s, c = math.sin(angle), math.cos(angle)
    root = math.sqrt(1.0 - (k * c / rho) ** 2)
    bend = c * c - s * s - (k * s * c / (rho * root)) ** 2
    return -k * s + rho * root, -k * c + k * k * s * c / (rho * root), k * s + k * k * bend / (rho * root)


def cam_force(t, z, out):
    """Force in the frame of the cam, ``-(m c'' + zeta c' + k c)`` (eq. 14.3), z = (rpm, m, zeta, k)."""
    position, velocity, acceleration = cam_profile(t, z[0])
    out[0] = -(z[1] * acceleration + z[2] * velocity + z[3] * position)


def cam_follower(rpm=358.0, e=0.8, q=0.1, v=0.0, damping=0.0):
    """Follower driven by the cam; its coordinate is the distance from the cam surface ([Notes], eqs 14.3–14.9).

    Parameters
    ----------
    rpm : float
        Speed of the cam (revolutions per minute).
    e : float
        Restitution.
    q, v : float
        Distance (m) and its rate (m/s) at the start.
    damping : float
        Viscous damping of the follower (N s/m).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``follower`` (m = 1.221 kg, k = 1430.8 N/m) and ``contact``; ``follower.z[0]`` is the speed.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> followers = np.repeat(nsds.examples.cam_follower(), 3)
    >>> followers["follower"]["z"][:, 0] = [358, 660, 700]
    >>> nsds.simulate(followers, t_end=0.1, h=1e-4).shape
    (3, 1001)
    """
    mass, stiffness = 1.221, 1430.8
    return system(
        follower=lagrangian_linear(
            M=[[mass]], K=[[stiffness]], C=[[damping]] if damping else None, fext=cam_force, q=[q], v=[v], z=[rpm, mass, damping, stiffness]
        ),
        contact=interaction(lagrangian_linear_relation(H=[[1.0]]), newton_impact(e), on="follower"),
    )


def cam_motion(t, rpm):
    """Cam position, velocity and acceleration at an array of times; three arrays of the shape of t.

    Examples
    --------
    >>> import nsds
    >>> [float(x[0].round(4)) for x in nsds.examples.cam_motion([0.03], rpm=358)]
    [0.2468, 5.5407, -2233.5622]
    """
    t = np.asarray(t, float)
    motion = np.array([cam_profile(time, float(rpm)) for time in t.reshape(-1)])
    return tuple(motion[:, i].reshape(t.shape) for i in range(3))


def draw(system, trajectory):
    """The last three revolutions: lift of cam and follower, lift-off and impacts; force and impulses of the contact; impact velocities."""
    drawing, (lifts, forces, speeds) = figure(3, sharex=True)
    # 1. the last three revolutions, with the intervals of contact: an infinitely short one is an impact
    rpm = system["follower"]["z"][0].item()
    last = trajectory[trajectory["t"] >= trajectory["t"][-1] - 180 / rpm]
    t, cam = last["t"], cam_motion(last["t"], rpm)[0]
    lift = 1e3 * (cam + last["follower"]["q"][:, 0] - _RESTING)
    found = contact_intervals(system, last, "contact")
    # 2. lifts, with the ends of the contacts
    impacts, kept = found[np.isfinite(found["impulse"])], found[found["end"] > found["begin"]]
    lifts.plot(t, 1e3 * (cam - _RESTING), label="cam", color="0.6")
    lifts.plot(t, lift, label="follower", color="C0", linewidth=1.0)
    lifts.plot(impacts["begin"], np.interp(impacts["begin"], t, lift), "v", color="C3", markersize=4, label="impact")
    ends = kept["end"][kept["end"] < t[-1]]
    lifts.plot(ends, np.interp(ends, t, lift), "^", color="C2", markersize=7, label="lift-off")
    lifts.set_ylabel("lift (mm)")
    # 3. forces: a multiplier is the impulse of a step; that of an impact is drawn as an impulse, not as a force
    held = np.zeros(t.size)
    for begin, end, impulse in found[["begin", "end", "impulse"]].tolist():
        chosen = (t > begin if np.isfinite(impulse) else t >= begin) & (t <= end)
        held[chosen] = last["contact"]["lambda"][chosen] / (t[1] - t[0])
    forces.plot(t, held, color="C0", linewidth=1.0)
    forces.set_ylabel("contact force,\nlambda / h (N)", color="C0")
    impulses = forces.twinx()
    impulses.vlines(impacts["begin"], 0, impacts["impulse"], color="C3", linewidth=1.2)
    impulses.set_ylabel("impulse (N s)", color="C3")
    for ax in (forces, impulses):
        ax.set_ylim(bottom=0)
    # 4. impact velocities
    speeds.vlines(impacts["begin"], 0, impacts["approach"], color="C3", linewidth=1.2)
    speeds.plot(impacts["begin"], impacts["approach"], "v", color="C3", markersize=4)
    speeds.set(xlabel="t (s)", ylabel="impact velocity (m/s)", xlim=(t[0], t[-1]))
    legend_beside(lifts)
    return drawing
