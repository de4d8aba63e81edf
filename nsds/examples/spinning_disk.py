"""A spinning disk that is dropped on the floor and rolls away."""

from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.laws import newton_impact_friction
from nsds.model.relations_lagrangian import lagrangian_linear_relation
from nsds.model.systems import lagrangian_linear
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.moreau_jean import moreau_jean

RUN = {"t_end": 10.0, "h": 5e-3, "scheme": moreau_jean(gamma=1.0)}


def spinning_disk(spin=2.0, e=0.9, mu=0.1, height=1.0):
    """Disk of 1 kg and radius 0.5 m that falls on a rough floor; q = (height of the centre, lateral, angle).

    Parameters
    ----------
    spin : float
        Angular velocity at the start (rad/s).
    e, mu : float
        Restitution and friction.
    height : float
        Height of the centre at the start (m).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``disk`` and ``floor``.

    Notes
    -----
    The numbers are those of the case Ball2D-friction of the reference collection.

    Examples
    --------
    From the first impact on it rolls:

    >>> import nsds
    >>> disk = nsds.simulate(nsds.examples.spinning_disk(), t_end=1.0, h=5e-3)["disk"]
    >>> bool(abs(disk["v"][-1, 1] - 0.5 * disk["v"][-1, 2]) < 1e-12)
    True
    """
    radius = 0.5
    return system(
        disk=lagrangian_linear(M=[1.0, 1.0, 2 / 5 * radius**2], fext=[-9.81, 0, 0], q=[height, 0, 0], v=[0, 0, spin]),
        floor=interaction(
            lagrangian_linear_relation(H=[[1, 0, 0], [0, 1, -radius]], b=[-radius, 0]), newton_impact_friction(e, mu), on="disk"
        ),
    )


def draw(system, trajectory):
    """Height, lateral and angular velocity, and impulses."""
    drawing, axes = figure(3, sharex=True)
    time_series(trajectory, "disk.q[0]", ax=axes[0])
    time_series(trajectory, "disk.v[1]", "disk.v[2]", ax=axes[1]).set_ylabel("velocity (m/s, rad/s)")
    time_series(trajectory, "floor.lambda", ax=axes[2])
    return drawing
