"""A membrane that sinks on a ball, and where it leaves it: the obstacle problem whose free boundary is known (Bartels 2015, 5.1)."""

import numpy as np

from nsds import _checks
from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import complementarity
from nsds.model.relations_first_order import first_order_linear_relation
from nsds.pictures.plotting import legend_beside
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 8.0, "h": 0.5, "scheme": euler_moreau()}

FREE_BOUNDARY = 0.6979651482233704  # r in r^2 (1 - log(r / 2)) = 1
_HALF = 2.0  # side of the square, half


def membrane_obstacle(n=15):
    """Membrane over a square of side 4, in a viscous fluid, over a ball of radius 1 in its middle; ``u' = u_xx + u_yy + lambda``.

    ``0 <= lambda ⟂ u - ball >= 0``. The rim is held where the membrane over a disk of radius 2 with a flat rim would pass, so that it comes
    to rest there: on the ball up to the radius 0.698, and beyond as a logarithm.

    Parameters
    ----------
    n : int
        Nodes along a side.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``membrane`` (sparse A, heights of the nodes) and ``ball``, a row for each node.

    Examples
    --------
    The distance from the middle of the farthest node that touches; nodes are 0.25 apart, and the exact free boundary is at 0.698:

    >>> import math, nsds
    >>> rows = nsds.simulate(nsds.examples.membrane_obstacle(), **nsds.examples.EXAMPLES["membrane_obstacle"].run)
    >>> touches = rows["ball"]["lambda"][-1].reshape(15, 15) > 0
    >>> round(max(0.25 * math.hypot(i - 7, j - 7) for i, j in zip(*touches.nonzero())), 2)
    0.75
    """
    from scipy.sparse import diags_array, eye_array, kron

    # 1. five-point differences, with the heights of the rim as a source
    n = _checks.integer("membrane_obstacle", "n", n, 2)
    width, places = 2 * _HALF / (n + 1), np.linspace(-_HALF, _HALF, n + 2)
    second = diags_array([np.ones(n - 1), np.full(n, -2.0), np.ones(n - 1)], offsets=[-1, 0, 1]) / width**2
    A = kron(second, eye_array(n)) + kron(eye_array(n), second)
    square = np.hypot(*np.meshgrid(places, places))
    rim = np.zeros((n + 2, n + 2))
    for edge in (np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1]):
        rim[edge] = at_rest(square[edge]) / width**2
    b = rim[:-2, 1:-1] + rim[2:, 1:-1] + rim[1:-1, :-2] + rim[1:-1, 2:]
    # 2. the ball; what lies beside it is far below
    radius = square[1:-1, 1:-1].reshape(-1)
    ball = np.where(radius < 1.0, np.sqrt(np.maximum(1.0 - radius**2, 0.0)), -1.0)
    relation = first_order_linear_relation(C=eye_array(n * n), B=eye_array(n * n), e=-ball)
    return system(
        membrane=first_order_linear(A, b=b.reshape(-1), x=np.ones(n * n)),
        ball=interaction(relation, complementarity(), on="membrane"),
    )


def at_rest(radius):
    """Height of the membrane at rest."""
    slope = FREE_BOUNDARY**2 / np.sqrt(1.0 - FREE_BOUNDARY**2)
    outside = -slope * np.log(np.maximum(radius, FREE_BOUNDARY) / 2.0)
    return np.where(radius > FREE_BOUNDARY, outside, np.sqrt(np.maximum(1.0 - radius**2, 0.0)))


def draw(system, trajectory):
    """Sections through the middle as the membrane sinks, and where it touches at the end, with the exact free boundary."""
    import matplotlib.pyplot as plt

    drawing, (section, face) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    n = round(system["membrane"]["x"].size ** 0.5)
    places = np.linspace(-_HALF, _HALF, n + 2)[1:-1]
    heights = trajectory["membrane"]["x"].reshape(-1, n, n)
    for k in (0, 1, len(trajectory) - 1):
        section.plot(places, heights[k, n // 2], label=f"t = {trajectory['t'][k]:.2g}")
    around = np.linspace(0.0, 2 * np.pi, 200)
    section.plot(np.cos(around[:101]), np.sin(around[:101]), "k", linewidth=0.8, label="ball")
    section.set(xlabel="x", ylabel="height")
    section.legend(frameon=False)
    touches = trajectory["ball"]["lambda"][-1].reshape(n, n) > 0
    face.plot(*(axis[touches] for axis in np.meshgrid(places, places)), ".", label="touches")
    face.plot(FREE_BOUNDARY * np.cos(around), FREE_BOUNDARY * np.sin(around), "k", label="exact")
    face.set(xlabel="x", ylabel="y", aspect="equal")
    legend_beside(face)
    return drawing
