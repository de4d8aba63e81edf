"""An elastic bar of finite elements that hits a rigid wall."""

import numpy as np

from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.laws import newton_impact
from nsds.model.relations_lagrangian import lagrangian_linear_relation
from nsds.model.systems import lagrangian_linear
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.moreau_jean import moreau_jean

RUN = {"t_end": 1.49601e-3, "h": 2e-6, "scheme": moreau_jean(gamma=0.0)}


def impacting_bar(n_nodes=100, e=0.0):
    """Steel bar of 1 m and 3.14 cm² that flies against a wall at 0.1 m/s; linear elements, consistent mass.

    Parameters
    ----------
    n_nodes : int
        Number of nodes, at least 2; an element is 1 m / n_nodes long.
    e : float
        Restitution of the contact node.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``bar`` (sparse M and K, displacements of the nodes) and ``wall``; it starts at t = 1e-8 s.

    Examples
    --------
    >>> import nsds
    >>> nsds.examples.impacting_bar(n_nodes=5)["bar"]["K"]["indptr"]
    array([ 0,  2,  5,  8, 11, 13])
    """
    from scipy.sparse import diags_array

    youngs_modulus, section, density, length = 210e9, 0.000314, 7800.0, 1.0
    element = length / n_nodes
    ends = np.full(n_nodes, 2.0)
    ends[[0, -1]] = 1.0
    off = np.ones(n_nodes - 1)
    M = density * section * element / 6 * diags_array([off, 2 * ends, off], offsets=[-1, 0, 1])
    K = youngs_modulus * section / element * diags_array([-off, ends, -off], offsets=[-1, 0, 1])
    first_node = np.eye(1, n_nodes)
    return system(
        t=1e-8,
        bar=lagrangian_linear(M=M, K=K, q=np.full(n_nodes, 5e-5), v=np.full(n_nodes, -0.1)),
        wall=interaction(lagrangian_linear_relation(H=first_node), newton_impact(e), on="bar"),
    )


def draw(system, trajectory):
    """Both ends of the bar, and the impulse at the wall."""
    drawing, axes = figure(3, sharex=True)
    last = system["bar"]["q"].size - 1
    time_series(trajectory, "bar.q[0]", f"bar.q[{last}]", ax=axes[0])
    time_series(trajectory, "bar.v[0]", f"bar.v[{last}]", ax=axes[1])
    time_series(trajectory, "wall.lambda", ax=axes[2])
    return drawing
