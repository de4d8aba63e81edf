"""Earthquakes: blocks on springs that a plate drags slowly over rough ground, the model of Burridge and Knopoff (1967).

References: Carlson and Langer, "Mechanical model of an earthquake fault", Physical Review A 40 (1989) 6470–6484; Carlson, Langer and Shaw,
"Dynamics of earthquake faults", Reviews of Modern Physics 66 (1994) 657–670.
"""

import numpy as np

from nsds import _checks
from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.lagrangian import lagrangian
from nsds.model.laws import dry_friction
from nsds.model.relations_lagrangian import lagrangian_linear_relation

RUN = {"t_end": 300.0, "h": 0.05, "fields": ["blocks"]}

STUCK = 1e-8  # velocity below which a block is at rest


def springs(t, q, v, z, out):
    """Springs to the neighbours and to the plate, and what friction loses where blocks slide; z: l^2, 2 alpha, velocity of the plate."""
    n = q.size
    for i in range(n):
        left, right = q[max(i - 1, 0)], q[min(i + 1, n - 1)]
        y = z[1] * v[i]
        out[i] = q[i] - z[2] * t + z[0] * (2.0 * q[i] - left - right) - y / (1.0 + abs(y))


def burridge_knopoff(n=100, l=10.0, alpha=2.5, speed=0.01):
    """Fault of unit blocks between springs, dragged over the ground by a plate; friction weakens with the velocity.

    ``v_i' = l^2 (q_{i+1} - 2 q_i + q_{i-1}) + speed t - q_i - phi(2 alpha v_i)``, ``phi(y) = sign(y) / (1 + |y|)``: the jump of phi is a
    dry friction of 1; the rest, which is smooth, goes with the springs.

    Parameters
    ----------
    n : int
        Blocks; the two at the ends have one neighbour.
    l : float
        Velocity of sound, in blocks in a unit of time.
    alpha : float
        How fast friction weakens with the velocity.
    speed : float
        Velocity of the plate.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``blocks`` and ``ground``. At the start springs to the plate pull with half of what friction holds, and
        blocks lie where they would, give or take 0.005.

    Notes
    -----
    In these units a block holds a force of 1, and springs to the plate have the stiffness 1. Small earthquakes obey the law of Gutenberg
    and Richter, with ``M^-b dM / M`` of moment M and b near 1; those that run along the fault are more than that.

    Examples
    --------
    Moments of earthquakes, the largest far from the others:

    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.burridge_knopoff(), **nsds.examples.EXAMPLES["burridge_knopoff"].run)
    >>> moments = nsds.examples.burridge_knopoff_moments(rows)
    >>> [int(((moments > low) & (moments < high)).sum()) > 0 for low, high in ((1e-3, 1e-2), (1e-2, 1.0), (30.0, 300.0))]
    [True, True, True]
    """
    from scipy.sparse import diags_array, eye_array

    n, l = _checks.integer("burridge_knopoff", "n", n, 2), _checks.number("burridge_knopoff", "l", l)
    alpha, speed = (_checks.number("burridge_knopoff", name, value, 0.0) for name, value in (("alpha", alpha), ("speed", speed)))
    q, neighbours = np.random.default_rng(0).uniform(-5e-3, 5e-3, n) - 0.5, diags_array([np.ones(n)] * 3, offsets=[-1, 0, 1], shape=(n, n))
    return system(
        blocks=lagrangian(np.ones(n), springs, q=q, v=np.zeros(n), z=[l * l, 2.0 * alpha, speed], jac_sparsity=neighbours),
        ground=interaction(lagrangian_linear_relation(H=eye_array(n)), dry_friction(1.0), on="blocks"),
    )


def burridge_knopoff_moments(trajectory):
    """Moments of earthquakes: the slip of all blocks that slide side by side and without a rest between.

    Parameters
    ----------
    trajectory : numpy.ndarray
        With a row for each step.

    Returns
    -------
    numpy.ndarray, shape (earthquakes,)
    """
    from scipy.ndimage import label, sum_labels

    v = trajectory["blocks"]["v"]
    places, n = label(abs(v) > STUCK)
    return sum_labels(v, places, np.arange(1, n + 1)) * (trajectory["t"][-1] - trajectory["t"][0]) / max(len(v) - 1, 1)


def draw(system, trajectory):
    """Blocks that slide against time, and numbers of earthquakes by their moment beside the law of Gutenberg and Richter with b = 1."""
    import matplotlib.pyplot as plt

    drawing, (fault, sizes) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    when, where = np.nonzero(abs(trajectory["blocks"]["v"]) > 100.0 * STUCK)
    fault.plot(trajectory["t"][when], where, "k,")
    fault.set(xlabel="t", ylabel="block that slides")
    moments = burridge_knopoff_moments(trajectory)
    edges = 10.0 ** np.arange(-4.0, 3.6, 0.25)
    middles = np.sqrt(edges[1:] * edges[:-1])
    number = np.histogram(moments, edges)[0]
    sizes.loglog(middles[number > 0], number[number > 0], "o", label="of this run")
    law, small = 1.0 / middles, (middles > 3e-3) & (middles < 0.3)
    sizes.loglog(middles[small], number[small].sum() / law[small].sum() * law[small], "k--", label="b = 1")
    sizes.set(xlabel="moment", ylabel="earthquakes")
    sizes.legend(frameon=False)
    return drawing
