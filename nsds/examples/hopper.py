"""A hopper that falls, lands, and is thrown up again by its spring and a motor: with the least effort, by gradients of its motion."""

import numpy as np

from nsds import analysis
from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.laws import newton_impact
from nsds.model.relations_lagrangian import lagrangian_linear_relation
from nsds.model.systems import lagrangian_linear
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.event_driven import event_driven

BODY, FOOT, STIFFNESS, DAMPING, LENGTH, GRAVITY = 1.0, 0.2, 800.0, 2.0, 0.3, 9.81  # kg, kg, N/m, N s/m, m, m/s²
INTERVAL, N = 2.0**-5, 12  # of a thrust (s), and how many there are

RUN = {"t_end": N * INTERVAL, "h": INTERVAL / 16, "scheme": event_driven(time_events=INTERVAL * np.arange(1, N))}


def hopper_forces(t, z, out):
    """Weights, the spring's length, and the thrust of an interval, z[1:], on the body and back on the foot; z[0]: how long these are."""
    j = int(t / z[0])
    thrust = z[1 + j] if j < z.size - 1 else 0.0
    out[0] = STIFFNESS * LENGTH - BODY * GRAVITY + thrust
    out[1] = -STIFFNESS * LENGTH - FOOT * GRAVITY - thrust


def hopper(thrusts=(0.0,) * N, height=0.1):
    """Body and foot on a spring, dropped; a motor beside the spring pushes them apart.

    Parameters
    ----------
    thrusts : array_like (12,)
        Force of the motor in each 1/32 s (N).
    height : float
        Of the foot above the floor at the start (m).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``hopper`` (q: heights of body and foot) and ``floor``, on which the foot does not bounce.

    Examples
    --------
    Without thrust it lifts off again, but not as high as it was:

    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.hopper(), **nsds.examples.EXAMPLES["hopper"].run)
    >>> float(nsds.examples.hopper_apex(rows["hopper"][-1]).round(3)) < 0.35
    True
    """
    K = np.array([[STIFFNESS, -STIFFNESS], [-STIFFNESS, STIFFNESS]])
    return system(
        hopper=lagrangian_linear(
            M=np.diag([BODY, FOOT]), K=K, C=K * DAMPING / STIFFNESS, fext=hopper_forces, q=[height + LENGTH, height], v=[0.0, 0.0],
            z=[INTERVAL, *thrusts],
        ),
        floor=interaction(lagrangian_linear_relation(H=[[0.0, 1.0]]), newton_impact(0.0), on="hopper"),
    )  # fmt: skip


def hopper_apex(state):
    """Highest point that the centre of mass reaches in the flight (m): of a row's part ``hopper``, or of x = (q, v)."""
    q, v = (state["q"], state["v"]) if state.dtype.names else (state[:2], state[2:])
    weights = np.array([BODY, FOOT]) / (BODY + FOOT)
    return weights @ q + (weights @ v) ** 2 / (2 * GRAVITY)


def hopper_thrusts(height=0.1):
    """The thrusts of least effort ``sum u²`` after which the centre of mass comes as high as it was dropped from.

    Parameters
    ----------
    height : float
        Of the foot at the start (m).

    Returns
    -------
    numpy.ndarray (12,)
        Thrusts (N).

    Raises
    ------
    RuntimeError
        The optimiser has not found them.

    Notes
    -----
    Sequential quadratic programming with the gradient of the apex by all thrusts, through landing and lift-off, which one pass backwards
    along the motion gives (`nsds.gradient`).

    Examples
    --------
    >>> import nsds
    >>> thrusts = nsds.examples.hopper_thrusts()
    >>> rows = nsds.simulate(nsds.examples.hopper(thrusts), **nsds.examples.EXAMPLES["hopper"].run)
    >>> float(nsds.examples.hopper_apex(rows["hopper"][-1]).round(6))  # (1.0 * 0.4 + 0.2 * 0.1) / 1.2
    0.35
    """
    from scipy.optimize import minimize  # few programs need it

    # 1. one pass gives value and gradient: the two functions that the optimiser calls share it
    names, known = [f"hopper.z[{1 + j}]" for j in range(N)], {}
    target = hopper_apex(np.array([height + LENGTH, height, 0.0, 0.0]))

    def found(thrusts):
        if known.get("thrusts") != thrusts.tobytes():
            motion = analysis.gradient(
                hopper(thrusts, height), t_end=RUN["t_end"], objective=hopper_apex, parameters=names, rows=N, scheme=RUN["scheme"]
            )
            known.update(thrusts=thrusts.tobytes(), motion=motion)
        return known["motion"]

    # 2. least squares of the thrusts, under the condition that the centre of mass comes as high as it was dropped from
    result = minimize(
        lambda u: (0.5 * u @ u, u), np.ones(N), jac=True, method="SLSQP", options={"ftol": 1e-12, "maxiter": 200},
        constraints={"type": "eq", "fun": lambda u: found(u)["value"] - target, "jac": lambda u: found(u)["gradient"][4:]},
    )  # fmt: skip
    if not result.success:
        raise RuntimeError(f"hopper_thrusts: no thrusts were found: {result.message}")
    return result.x


def draw(system, trajectory):
    """Heights of body and foot, and the force of the floor."""
    drawing, axes = figure(2, sharex=True)
    time_series(trajectory, "hopper.q[0]", "hopper.q[1]", ax=axes[0]).set_ylabel("height of body and foot (m)")
    time_series(trajectory, "floor.lambda", ax=axes[1]).set_ylabel("force of the floor (N)")
    return drawing
