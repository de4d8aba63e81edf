"""A ball on the floor."""

from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.laws import newton_impact
from nsds.model.relations_lagrangian import lagrangian_linear_relation
from nsds.model.systems import lagrangian_linear
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 10.0, "h": 5e-3}


def bouncing_ball(height=1.0, e=0.9):
    """Ball that falls on the floor: q = (height of the centre, lateral, angle), the floor acts on the centre.

    Parameters
    ----------
    height : float
        Height of the centre at the start (m).
    e : float
        Restitution.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``ball`` and ``floor``.

    Examples
    --------
    >>> import nsds
    >>> nsds.examples.bouncing_ball(height=2.0)["ball"]["q"]
    array([2., 0., 0.])
    """
    radius = 0.1
    M = [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 2 / 5 * radius**2]]
    return system(
        ball=lagrangian_linear(M=M, fext=[-9.81, 0, 0], q=[height, 0, 0], v=[0, 0, 0]),
        floor=interaction(lagrangian_linear_relation(H=[[1, 0, 0]]), newton_impact(e), on="ball"),
    )


def draw(system, trajectory):
    """Height, velocity and impulse against time."""
    drawing, axes = figure(3, sharex=True)
    for ax, name in zip(axes, ("ball.q[0]", "ball.v[0]", "floor.lambda"), strict=True):
        time_series(trajectory, name, ax=ax)
    return drawing
