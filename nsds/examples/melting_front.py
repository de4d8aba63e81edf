"""Melting: the Stefan problem of two phases, with the latent heat as a relay, beside Neumann's solution (Carslaw and Jaeger 1959, 11.2)."""

import math

import numpy as np

from nsds import _checks
from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import relay
from nsds.model.relations_first_order import first_order_linear_relation
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 0.25, "h": 2.5e-3, "scheme": euler_moreau()}

_LENGTH = 4.0


def melting_front(n=99, latent_heat=2.0, hot=1.0, cold=-0.5):
    """Rod of length 4 that is warmed at one end and melts; enthalpies H at n points, temperature T in units of its heat capacity.

    ``H' = T_xx``,  ``H = T + L (1 - lambda)``, lambda the solid part: 0 where T > 0, 1 where T < 0, between them where it melts.

    Parameters
    ----------
    n : int
        Points.
    latent_heat : float
        L, at least 0.1.
    hot : float
        Temperature of the end at 0.
    cold : float
        Of the rod at the start, and of its other end.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``rod`` (sparse A; enthalpies) and ``phases``, with the temperature as y and the solid part as lambda.

    Examples
    --------
    The front, by what has melted, beside Neumann's ``2 xi sqrt(t)``:

    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.melting_front(), **nsds.examples.EXAMPLES["melting_front"].run)
    >>> melted = 0.04 * (0.5 + (1 - rows["phases"]["lambda"][-1]).sum())
    >>> round(float(melted), 3), round(nsds.examples.melting_front_exact(0.25), 3)
    (0.381, 0.383)
    """
    from scipy.sparse import diags_array, eye_array

    # 1. second differences, with the temperatures of both ends
    n, L = _checks.integer("melting_front", "n", n, 2), _checks.number("melting_front", "latent_heat", latent_heat, 0.1)
    width = _LENGTH / (n + 1)
    second = diags_array([np.ones(n - 1), np.full(n, -2.0), np.ones(n - 1)], offsets=[-1, 0, 1]) / width**2
    ends = np.zeros(n)
    ends[0], ends[-1] = hot / width**2, cold / width**2
    # 2. T = H - L + L lambda in the conduction of heat, and as the output whose sign the relay has
    relation = first_order_linear_relation(C=eye_array(n), B=L * second, D=L * eye_array(n), e=np.full(n, -L))
    return system(
        rod=first_order_linear(second, b=ends - L * second.sum(axis=1), x=np.full(n, cold)),
        phases=interaction(relation, relay(0.0, 1.0), on="rod"),
    )


def melting_front_exact(t, latent_heat=2.0, hot=1.0, cold=-0.5):
    """Melted length by Neumann's solution, of a rod without end: ``2 xi sqrt(t)``."""
    low, high = 1e-9, 10.0

    def excess(xi):
        flow = hot / math.erf(xi) + cold / math.erfc(xi) if math.erfc(xi) > 0 else -math.inf
        return flow * math.exp(-xi * xi) / math.sqrt(math.pi) - latent_heat * xi

    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return 2.0 * low * math.sqrt(t)


def draw(system, trajectory):
    """Temperatures at some times, and the melted length against time beside Neumann's front."""
    import matplotlib.pyplot as plt

    drawing, (temperature, length) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    n = system["rod"]["x"].size
    width = _LENGTH / (n + 1)
    rows = trajectory[1:]
    for k in np.linspace(0, len(rows) - 1, 5).astype(int)[1:]:
        temperature.plot(width * np.arange(1, n + 1), rows["phases"]["y"][k], label=f"t = {rows['t'][k]:.2g}")
    temperature.set(xlabel="x", ylabel="temperature")
    temperature.legend(frameon=False)
    length.plot(rows["t"], width * (0.5 + (1.0 - rows["phases"]["lambda"]).sum(axis=1)), label="melted")
    length.plot(rows["t"], [melting_front_exact(t) for t in rows["t"]], "k--", label="Neumann, for L = 2, T from 1 to -0.5")
    length.set(xlabel="t", ylabel="x")
    length.legend(frameon=False)
    return drawing
