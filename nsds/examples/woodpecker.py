"""The toy woodpecker, which pecks its way down a pole (Pfeiffer and Glocker 1996)."""

import numpy as np

from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.laws import newton_impact_friction
from nsds.model.relations_lagrangian import lagrangian_linear_relation
from nsds.model.systems import lagrangian_linear
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 0.3, "h": 2e-5}


def woodpecker(e=0.5, mu=0.3):
    """Woodpecker on a sleeve with play; q = (height and angle of the sleeve, angle of the bird), and a spring between sleeve and bird.

    Parameters
    ----------
    e : float
        Restitution of the beak; that of the sleeve is 0.
    mu : float
        Friction of all contacts with the pole.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``toy``, ``beak``, ``lower`` and ``upper``, the edges of the sleeve; it starts just before the sleeve lets go.

    Notes
    -----
    The numbers are those of the case Woodpecker of the reference collection.

    Examples
    --------
    Two pecks. The sleeve is jammed for a quarter of the time:

    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.woodpecker(), **nsds.examples.EXAMPLES["woodpecker"].run)
    >>> float(rows["toy"]["q"][-1, 0].round(4)), float((abs(rows["toy"]["v"][:, 0]) < 1e-9).mean().round(2))
    (-0.0414, 0.26)
    """
    # 1. dimensions and masses
    pole, sleeve, half_height = 0.0025, 0.0031, 0.0058  # radii of pole and sleeve, half of the sleeve's height (m)
    arm, bird, beak, tip = 0.010, 0.015, 0.02, 0.0201  # sleeve to spring, spring to bird, beak above and in front of the bird (m)
    m_sleeve, m_bird, j_sleeve, j_bird, stiffness, gravity = 0.0003, 0.0045, 5.0e-9, 7.0e-7, 0.0056, 9.81
    # 2. mass and stiffness in the height of the sleeve and the angles of sleeve and bird
    lever = np.array([1.0, arm, bird])
    M = m_bird * np.outer(lever, lever) + np.diag([m_sleeve, j_sleeve, j_bird])
    K = stiffness * np.array([[0, 0, 0], [0, 1, -1], [0, -1, 1]])
    # 3. contacts with the pole: normal, tangent, gap at the start and restitution
    edges = {
        "beak": ([0, 0, -beak], [1, arm, bird - tip], arm + bird - tip - pole, e),
        "lower": ([0, half_height, 0], [1, sleeve, 0], sleeve - pole, 0.0),
        "upper": ([0, -half_height, 0], [1, sleeve, 0], sleeve - pole, 0.0),
    }
    return system(
        toy=lagrangian_linear(
            M, K, fext=-gravity * (m_bird * lever + [m_sleeve, 0, 0]), q=[0, -0.1036, -0.2788], v=[-0.3411, 4.8572e-15, -7.4583]
        ),
        **{
            name: interaction(lagrangian_linear_relation(H=[normal, tangent], b=[gap, 0]), newton_impact_friction(e_n, mu), on="toy")
            for name, (normal, tangent, gap, e_n) in edges.items()
        },
    )


def draw(system, trajectory):
    """Height of the sleeve, angles of sleeve and bird, and velocities of both angles."""
    drawing, axes = figure(3, sharex=True)
    time_series(trajectory, "toy.q[0]", ax=axes[0]).set_ylabel("height (m)")
    time_series(trajectory, "toy.q[1]", "toy.q[2]", ax=axes[1]).set_ylabel("angle (rad)")
    time_series(trajectory, "toy.v[1]", "toy.v[2]", ax=axes[2]).set_ylabel("velocity (rad/s)")
    return drawing
