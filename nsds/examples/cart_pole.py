"""A pole balanced on a cart between two buffers, and many of them as an environment for learning."""

import math

import numpy as np

from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.lagrangian import lagrangian
from nsds.model.laws import newton_impact
from nsds.model.relations_lagrangian import lagrangian_linear_relation
from nsds.pictures.plotting import figure, time_series

RUN = {"t_end": 3.0, "h": 1e-3}

_GRAVITY = 9.81


def mass_matrix(q, z, out):
    """M(q), q = (place of the cart, angle of the pole from upright), z = (mass of the cart, of the pole, length up to its centre)."""
    out[0, 0], out[1, 1] = z[0] + z[1], z[1] * z[2] ** 2
    out[0, 1] = out[1, 0] = z[1] * z[2] * math.cos(q[1])


def centrifugal(q, v, z, out):
    """Force of the pole that swings."""
    out[0] = -z[1] * z[2] * math.sin(q[1]) * v[1] ** 2


def weight(t, q, v, z, out):
    """Moment of the weight."""
    out[1] = -z[1] * _GRAVITY * z[2] * math.sin(q[1])


def cart_pole(angle=0.05, track=2.4, e=0.5, cart=1.0, pole=0.1, length=0.5):
    """A cart with a pole that stands on it, which a force is to keep upright; the cart bounces off buffers at the ends of its track.

    Parameters
    ----------
    angle : float
        Of the pole from upright at the start.
    track : float
        From the middle to either buffer (m).
    e : float
        Restitution of the buffers.
    cart, pole : float
        Masses (kg); that of the pole is a point.
    length : float
        From the hinge to that point (m).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``cart`` (q = place and angle, u = the force on the cart) and ``buffers``.

    Examples
    --------
    Nobody pushes, and the pole falls, twice as far off upright every ln(2) / 4.6 seconds:

    >>> import numpy as np, nsds
    >>> rows = nsds.simulate(nsds.examples.cart_pole(angle=1e-6), t_end=1.0, h=1e-3)
    >>> bool(abs(rows["cart"]["q"][-1, 1] / 1e-6 / np.cosh((9.81 / 0.5 * 1.1) ** 0.5) - 1) < 1e-5)
    True
    """
    return system(
        cart=lagrangian(
            mass_matrix, weight, centrifugal, q=[0.0, angle], v=[0.0, 0.0], z=[cart, pole, length], T=[[1.0], [0.0]], u=[0.0]
        ),
        buffers=interaction(
            lagrangian_linear_relation(H=[[1.0, 0.0], [-1.0, 0.0]], b=[track, track]), newton_impact(e), on="cart"
        ),
    )  # fmt: skip


def draw(system, trajectory):
    """Place of the cart, angle of the pole, impulses of the buffers."""
    drawing, axes = figure(3, height=2.2)
    for column, ax in zip(("cart.q[0]", "cart.q[1]", "buffers.lambda"), axes, strict=True):
        time_series(trajectory, column, ax=ax)
    return drawing


class CartPoles:
    """Carts with poles as a vector environment, with the ``reset`` and ``step`` of Gymnasium's, which it does not need.

    Parameters
    ----------
    carts : numpy.ndarray, shape (members,)
        `cart_pole` records.
    advance : callable
        What `nsds.stepper` returns for them: a step of it is one of the environment.
    push : float
        Force on the cart, to the right for action 1, to the left for action 0 (N).
    steps : int
        After which an episode is cut off.

    Notes
    -----
    Observations are (place, velocity, angle, angular velocity), rewards 1. An episode ends where a pole is more than 12 degrees off
    upright. What has ended starts again with the next call of ``step``, which does not act on it; the others go on, each at its own time.

    Examples
    --------
    Pushing to where the pole falls to keeps all of them up:

    >>> import numpy as np, nsds
    >>> carts = np.repeat(nsds.examples.cart_pole(), 8)
    >>> environment = nsds.examples.CartPoles(carts, nsds.stepper(carts, h=0.02))
    >>> seen, _ = environment.reset(seed=1)
    >>> for _ in range(100):
    ...     seen, rewards, ended, cut, _ = environment.step(seen @ [0.0, 0.0, 1.0, 0.5] > 0)
    >>> seen.shape, bool(ended.any())
    ((8, 4), False)
    """

    def __init__(self, carts, advance, push=10.0, steps=500):
        self.carts, self._advance, self._push, self._steps = carts.copy(), advance, push, steps
        self._start, self._over = carts.copy(), np.zeros(carts.size, bool)
        self._random = np.random.default_rng()

    def reset(self, *, seed=None, options=None):
        """Start all episodes; (observations, {})."""
        self._random = np.random.default_rng(seed)
        self._begin(np.ones(self.carts.size, bool))
        return self._observations(), {}

    def step(self, actions):
        """(observations, rewards, terminated, truncated, {}), one entry a member, after one step."""
        # 1. members whose episode is over start again instead of this step; the others move under the force of their actions
        begins = self._over.copy()
        self.carts["cart"]["u"][:, 0] = np.where(np.asarray(actions, bool), self._push, -self._push)
        self._advance(self.carts, np.where(begins, 0, 1), out=self.carts)
        self._begin(begins)
        # 2. ends of episodes: the pole has fallen, or the number of steps is reached
        ended = abs(self.carts["cart"]["q"][:, 1]) > np.radians(12)
        cut = ~ended & (self.carts["step"] - self._start["step"] >= self._steps)
        self._over = ended | cut
        return self._observations(), np.where(begins, 0.0, 1.0), ended, cut, {}

    def _begin(self, which):
        self.carts[which] = self._start[which]
        for field in ("q", "v"):
            self.carts["cart"][field][which] = self._random.uniform(-0.05, 0.05, (np.count_nonzero(which), 2))
        self._over[which] = False

    def _observations(self):
        q, v = self.carts["cart"]["q"], self.carts["cart"]["v"]
        return np.stack([q[:, 0], v[:, 0], q[:, 1], v[:, 1]], axis=1)
