"""A grid of water pipes in two pressure zones with check valves, whose flows at rest are those of least content.

References: Collins, Cooper, Helgason, Kennington, LeBlanc, "Solving the pipe network analysis problem using optimization techniques",
Management Science 24 (1978) 747–760.
"""

import numpy as np

from nsds import _checks
from nsds.model.assembly import system
from nsds.model.first_order import first_order
from nsds.model.interactions import interaction
from nsds.model.laws import complementarity
from nsds.model.relations_first_order import first_order_linear_relation
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 1440.0, "h": 2.0, "scheme": euler_moreau()}

HEADS = 50.0, 46.0  # m, of the reservoirs
_INERTIA, _STORAGE, _FEEDER, _PIPE = 0.5, 0.05, 20.0, 200.0  # m min/unit, unit min/m, m/unit^2


def flow(t, x, z, out):
    """Heads of junctions and flows of pipes; z: storage, inertia, demand, swing, junctions; of each pipe ends, resistance, head.

    A pipe that begins at -1 comes from a reservoir with this head.
    """
    n = int(z[4])
    demand = z[2] * (1.0 - z[3] * np.cos(2.0 * np.pi * t / 1440.0))
    for i in range(n):
        out[i] = -demand / z[0]
    for k in range(x.size - n):
        first, last, q = int(z[5 + 4 * k]), int(z[6 + 4 * k]), x[n + k]
        head = x[first] if first >= 0 else z[8 + 4 * k]
        out[n + k] = (head - x[last] - z[7 + 4 * k] * abs(q) * q) / z[1]
        out[last] += q / z[0]
        if first >= 0:
            out[first] -= q / z[0]


def pipes(n):
    """(from, to, resistance, head of its reservoir) of the feeders and pipes of a grid of n x 2 n junctions; which have check valves."""
    number = np.arange(2 * n * n).reshape(n, 2 * n)
    found = [(-1, 0, _FEEDER, HEADS[0]), (-1, 2 * n * n - 1, _FEEDER, HEADS[1])]
    for i in range(n):
        found += [(number[i, j], number[i, j + 1], _PIPE, 0.0) for j in range(2 * n - 1)]
    for i in range(n - 1):
        found += [(number[i, j], number[i + 1, j], _PIPE, 0.0) for j in range(2 * n)]
    found = np.array(found, float)
    crosses = (found[:, 0] % (2 * n) == n - 1) & (found[:, 1] == found[:, 0] + 1)
    return found, (found[:, 0] < 0) | crosses


def water_network(n=3, demand=0.04, swing=0.8):
    """Water from two reservoirs, 50 m and 46 m high, to n x 2 n junctions in two zones; time in minutes.

    ``storage p' = inflow - demand``,  ``inertia q' = p_from - p_to - R |q| q + lambda``,  ``0 <= q ⟂ lambda >= 0`` of check valves: in the
    feeders of both reservoirs, and in the pipes from the zone of the higher one to that of the lower one. At night that of the lower
    reservoir closes.

    Parameters
    ----------
    n : int
        Rows of junctions, and columns of each zone.
    demand : float
        Mean of each junction.
    swing : float
        Part by which it is smaller at midnight and larger at noon, up to 1.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``water`` (heads of junctions, then flows of pipes) and ``valves``, with flows as y and the heads that closed
        ones hold as lambda.

    Examples
    --------
    Hours in which the lower reservoir gives nothing:

    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.water_network(), **nsds.examples.EXAMPLES["water_network"].run)
    >>> round(float((rows["valves"]["lambda"][:, 1] > 0).sum() * 2 / 60), 1)
    4.1
    """
    n = _checks.integer("water_network", "n", n, 1)
    demand, swing = _checks.number("water_network", "demand", demand, 0.0), _checks.number("water_network", "swing", swing, 0.0, 1.0)
    # 1. junctions at the head of the lower reservoir, pipes at rest
    found, has_valve = pipes(n)
    n_junctions, valves = 2 * n * n, np.flatnonzero(has_valve)
    x = np.concatenate([np.full(n_junctions, HEADS[1]), np.zeros(len(found))])
    z = np.concatenate([[_STORAGE, _INERTIA, demand, swing, n_junctions], found.reshape(-1)])
    # 2. flows through the valves, on which they act by heads
    C = np.zeros((valves.size, x.size))
    C[np.arange(valves.size), n_junctions + valves] = 1.0
    relation = first_order_linear_relation(C=C, B=C.T / _INERTIA)
    return system(water=first_order(flow, x=x, z=z), valves=interaction(relation, complementarity(), on="water"))


def draw(system, trajectory):
    """Flows from both reservoirs, and the heads of all junctions, over a day."""
    import matplotlib.pyplot as plt

    drawing, (flows, heads) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
    hours, n = trajectory["t"] / 60.0, int(system["water"]["z"][4])
    for k, label in ((0, "from the higher reservoir"), (1, "from the lower one")):
        flows.plot(hours, trajectory["valves"]["y"][:, k], label=label)
    flows.set(ylabel="flow")
    flows.legend(frameon=False)
    heads.plot(hours, trajectory["water"]["x"][:, :n], linewidth=0.8)
    heads.set(xlabel="h", ylabel="head (m)")
    return drawing
