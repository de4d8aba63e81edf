"""A twisting controller of an unstable plant, implicit in time: it does not chatter (Huber, Acary, Brogliato, Plestan 2016)."""

from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import normal_cone
from nsds.model.relations_first_order import first_order_linear_relation
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.zero_order_hold import zero_order_hold

RUN = {"t_end": 3.0, "h": 0.05, "scheme": zero_order_hold()}


def twisting_controller(gain=300.0, ratio=0.2, period=0.05, position=-15.0, velocity=20.0):
    """Plant ``x'' = 19 x - 2 x' + gain (u_0 + ratio u_1)`` whose control solves ``-x(end of the period) ∈ N_P(u)`` at each instant.

    P is the parallelogram ``-1 <= u_0 <= 1``, ``-1 <= u_1 - period/2 u_0 <= 1``. Only the sum ``u_0 + ratio u_1`` is unique. Each row holds
    the control of the period that ends there.

    Parameters
    ----------
    gain, ratio : float
        Of the two parts of the control.
    period : float
        Of the controller (s). It is to be the step of the run.
    position, velocity : float
        State at the start.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``plant`` and ``controller``.

    Examples
    --------
    The plant is at rest after finite time, to rounding, and then needs no control:

    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.twisting_controller(), **nsds.examples.EXAMPLES["twisting_controller"].run)
    >>> bool(abs(rows["plant"]["x"][-1]).max() < 1e-10)
    True
    """
    half = period / 2
    return system(
        plant=first_order_linear(A=[[0, 1], [19, -2]], x=[position, velocity]),
        controller=interaction(
            first_order_linear_relation(C=[[1, 0], [0, 1]], B=[[0, 0], [gain, gain * ratio]]),
            normal_cone(G=[[1, 0], [-half, 1], [-1, 0], [half, -1]], g=[-1, -1, -1, -1]),
            on="plant",
        ),
    )


def draw(system, trajectory):
    """State, and the force of the controller."""
    drawing, axes = figure(2, sharex=True)
    time_series(trajectory, "plant.x", ax=axes[0]).set_ylabel("position, velocity")
    control = trajectory["controller"]["lambda"][1:] @ system["controller"]["B"][1]  # of the step that ends at t
    axes[1].step(trajectory["t"][1:], control)
    axes[1].set(xlabel="t (s)", ylabel="control")
    return drawing
