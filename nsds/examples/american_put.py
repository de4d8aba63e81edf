"""An American put: the Black–Scholes equation with the payoff as an obstacle."""

import numpy as np

from nsds import _checks
from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import complementarity
from nsds.model.relations_first_order import first_order_linear_relation
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 1.0, "h": 1e-2, "scheme": euler_moreau(theta=0.5)}

STRIKE, HIGHEST = 40.0, 120.0  # of the option, and of the prices of the grid


def american_put(n=119, rate=0.06, volatility=0.2):
    """Values V of a put that may be exercised at any time, at n prices S of its stock, against the time t (years) to expiry.

    ``V_t = sigma^2 S^2 / 2 V_SS + r S V_S - r V + lambda``,  ``0 <= lambda ⟂ V - (40 - S)_+ >= 0``: where lambda > 0 it is exercised.

    Parameters
    ----------
    n : int
        Prices, evenly spaced between 0 and 120.
    rate : float
        Interest (1 / year).
    volatility : float
        Of the stock (1 / sqrt(year)).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``option`` (sparse A, values) and ``exercise``, a row for each price.

    Examples
    --------
    A year before expiry, with a stock at 40: a binomial tree of 2000 steps gives 2.3194, finite differences of Longstaff and Schwartz
    (Review of Financial Studies 14, 2001, table 1) 2.314 where it may be exercised on 50 days. 239 prices make it 2.318, 479 2.319.

    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.american_put(), **nsds.examples.EXAMPLES["american_put"].run)
    >>> round(float(rows["option"]["x"][-1, 39]), 3)
    2.312
    """
    from scipy.sparse import diags_array, eye_array

    # 1. central differences; beyond the lowest price the option is exercised, beyond the highest it is worth nothing
    n = _checks.integer("american_put", "n", n, 2)
    price = prices(n)
    k = np.arange(1.0, n + 1.0)  # prices in widths of the grid
    diffusion, drift = (volatility * k) ** 2 / 2, rate * k / 2
    below, above = diffusion - drift, diffusion + drift
    A = diags_array([below[1:], -2 * diffusion - rate, above[:-1]], offsets=[-1, 0, 1])
    edge = np.zeros(n)
    edge[0] = below[0] * STRIKE
    # 2. the payoff is the obstacle, and the value at expiry
    payoff, identity = np.maximum(STRIKE - price, 0.0), eye_array(n)
    relation = first_order_linear_relation(C=identity, B=identity, e=-payoff)
    return system(
        option=first_order_linear(A, b=edge, x=payoff),
        exercise=interaction(relation, complementarity(), on="option"),
    )


def prices(n):
    """The prices of the grid."""
    return HIGHEST / (n + 1) * np.arange(1, n + 1)


def draw(system, trajectory):
    """Values against prices at some times, and the price below which the option is exercised against time."""
    import matplotlib.pyplot as plt

    drawing, (values, exercise) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    price = prices(system["option"]["x"].size)
    for k in np.linspace(0, len(trajectory) - 1, 4).astype(int):
        values.plot(price, trajectory["option"]["x"][k], label=f"{trajectory['t'][k]:.2g} years")
    values.set(xlabel="price of the stock", ylabel="value of the option", xlim=(20, 70), ylim=(-1, 21))
    values.legend(frameon=False)
    rows = trajectory[1:]
    exercise.plot(rows["t"], np.where(rows["exercise"]["lambda"] > 0, price, 0.0).max(axis=1))
    exercise.set(xlabel="time to expiry (years)", ylabel="exercised below")
    return drawing
