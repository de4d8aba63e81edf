"""A ball that slides at first and then rolls (Coriolis 1835)."""

from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.laws import newton_impact_friction
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.shapes import inertia, plane, sphere
from nsds.pictures.plotting import figure, time_series
from nsds.solvers.table import solver

RUN = {"t_end": 1.5, "h": 1e-3, "solver": solver("bodies", tol=1e-8)}

_GRAVITY, _MASS, _RADIUS = 9.81, 0.17, 0.028575  # a billiard ball (SI)


def sliding_ball(speed=2.0, mu=0.1):
    """Billiard ball on a table, pushed without spin: it slides until ``t = 2 speed / (7 mu g)``, then rolls with 5/7 of its speed.

    Parameters
    ----------
    speed : float
        At the start, along x (m/s).
    mu : float
        Friction of ball and table.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``ball`` and ``contacts``.

    Notes
    -----
    Friction ``mu m g`` slows the centre and spins the ball up until the point of contact stands still; that momentum about a point of the
    table is kept gives the 5/7 (Coriolis, Théorie mathématique des effets du jeu de billard, 1835).

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.sliding_ball(), **nsds.examples.EXAMPLES["sliding_ball"].run)
    >>> (rows["ball"]["v"][-1, 0] * 7 / 5).round(4), (rows["ball"]["v"][-1, 4] * 0.028575).round(4)
    (np.float64(2.0), np.float64(1.4286))
    """
    ball = sphere(_RADIUS)
    return system(
        gravity=[0, 0, -_GRAVITY],
        ball=rigid_bodies(_MASS, inertia(ball, _MASS), q=[0, 0, _RADIUS, 1, 0, 0, 0], v=[speed, 0, 0, 0, 0, 0]),
        contacts=collisions({"ball": ball}, newton_impact_friction(e_n=0.0, mu=mu), world=plane()),
    )


def draw(system, trajectory):
    """Velocity and angular velocity."""
    drawing, axes = figure(2, sharex=True)
    time_series(trajectory, "ball.v[0]", ax=axes[0]).set_ylabel("velocity (m/s)")
    time_series(trajectory, "ball.v[4]", ax=axes[1]).set_ylabel("angular velocity (rad/s)")
    return drawing
