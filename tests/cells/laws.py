"""Laws of mechanical systems on the ball, a plain twin of its motion, and the definition by which rows of a run are judged."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

import nsds
from nsds.model.laws import LAWS
from tests.reference_contact import hat, onto_cone

RADIUS, GAP, STEP, END = 0.1, 0.02, 1e-3, 0.3
MASS = np.array([1.0] * 3 + [0.4 * RADIUS**2] * 3)
FORCE = np.array([0.3, 0.2, -9.81, 0.0, 0.0, 0.0])
START = np.array([0.5, 0.2, -0.5, 0.0, 3.0, 0.0])
COMPLIANCE = 1e-3  # m/N, of laws between y and a force
ARM = np.array([1.0] * 3 + [RADIUS] * 3)  # m, what makes angular velocities comparable
_NORMAL, _TANGENTS = [0, 0, 1, 0, 0, 0], [[1, 0, 0, 0, -RADIUS, 0], [0, 1, 0, RADIUS, 0, 0]]
_SPINS = [[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0]]
# Schemes whose lambda is the impulse of the problem of velocities at the end of a step, which so obeys the law of velocities in every row.
OF_VELOCITIES = {
    "moreau_jean", "moreau_jean_exact", "moreau_jean_direct_projection", "moreau_jean_combined_projection", "generalised_alpha"
}  # fmt: skip


class Cell(NamedTuple):
    """A system of one kind that a cell of the table stands for.

    make: a function that makes it. require: a function of the name of a scheme and the rows of a run that asserts what must hold.
    """

    law: str
    relation: str
    kind: str
    make: Callable
    require: Callable


class Law(NamedTuple):
    """A law on the ball: how it is made, its rows H, restitution of each, friction, what the multiplier lies between, and its kind.

    pull: stiffness and damping of a law that states a force.
    """

    made: dict
    H: np.ndarray
    restitution: np.ndarray
    mu: tuple = (0.0, 0.0)
    disk: int = 0
    bounds: tuple = ()
    pull: tuple = ()

    @property
    def is_held(self):
        """Whether its rows are equations."""
        return not self.closes and not np.isfinite(self.bounds).all() and not self.pull

    @property
    def closes(self):
        """Whether it is a contact, which is open at first."""
        return not self.bounds

    @property
    def start(self):
        """Velocity of the ball at the start: that of `START`, without what equations forbid."""
        return START - self.H[0] * (self.H[0] @ START) if self.is_held else START

    @property
    def row(self):
        """The coordinate of the ball on which a law of one row acts."""
        return int(np.argmax(self.H[0]))

    def rebound(self, before):
        """What the law adds to the velocity after a step, of the one before: ``e u-``; of laws of impacts only where contacts close."""
        return self.restitution * (np.minimum(before, 0.0) if LAWS[self.made["law"]].treatment.impact else before)

    def nearest(self, x, u, h):
        """The multiplier allowed by the law that is nearest to x, where it is stated for the velocity u."""
        if self.bounds:
            return np.clip(x, h * self.bounds[0], h * self.bounds[1])
        return onto_cone(x - hat(u, *self.mu, self.disk) + u, *self.mu, self.disk)


def _contact(made, tangents, spins, e_n, e_t, mu, mu_r=0.0):
    H = np.array([_NORMAL, *tangents, *spins], float)
    restitution = np.array([e_n] + [e_t] * len(tangents) + [0.0] * len(spins))
    return Law(made, H, restitution, (mu, mu_r), len(tangents))


def pull(t, y, ydot, z, out):
    for i in range(out.size):
        out[i] = -z[0] * y[i] - z[1] * ydot[i]


@lru_cache
def mechanical_laws():
    """name -> `Law` of all laws of mechanical systems that are stated for velocities."""
    one, plane, rolls = np.array([[1.0, 0, 0, 0, 0, 0]]), _TANGENTS[:1], _SPINS[1:]
    rows = {"newton_impact": _contact(nsds.newton_impact(0.4), [], [], 0.4, 0.0, 0.0)}
    rows["multiple_impact"] = _contact(nsds.multiple_impact(0.4), [], [], 0.4, 0.0, 0.0)
    rows["poisson_impact"] = _contact(nsds.poisson_impact(0.4), [], [], 0.4, 0.0, 0.0)
    rows["complementarity"] = _contact(nsds.complementarity(), [], [], 0.0, 0.0, 0.0)
    for d, tangents, spins in ((2, plane, rolls), (3, _TANGENTS, _SPINS)):
        where = "plane" if d == 2 else "space"
        friction = nsds.newton_impact_friction(0.4, 0.1, dimension=d)
        rows[f"newton_impact_friction, {where}"] = _contact(friction, tangents, [], 0.4, 0.0, 0.1)
        rows[f"fremond_impact, {where}"] = _contact(nsds.fremond_impact(0.4, 0.1, dimension=d), tangents, [], 0.4, 1.0, 0.1)
        multiple = nsds.multiple_impact_friction(0.4, 0.1, dimension=d)  # of a ball, whose W is diagonal, that is Newton's law
        rows[f"multiple_impact_friction, {where}"] = _contact(multiple, tangents, [], 0.4, 0.0, 0.1)
        poisson = nsds.poisson_impact_friction(0.4, 0.1, dimension=d)  # and so is Poisson's
        rows[f"poisson_impact_friction, {where}"] = _contact(poisson, tangents, [], 0.4, 0.0, 0.1)
        rolling = nsds.newton_impact_rolling_friction(0.4, 0.1, 2e-3, dimension=d)
        rows[f"newton_impact_rolling_friction, {where}"] = _contact(rolling, tangents, spins, 0.4, 0.0, 0.1, 2e-3)
    spinning = nsds.newton_impact_spinning_friction(0.4, 0.1, 2e-3)
    rows["newton_impact_spinning_friction"] = _contact(spinning, _TANGENTS, np.eye(6)[5:], 0.4, 0.0, 0.1, 2e-3)
    rows["dry_friction"] = Law(nsds.dry_friction(2.0), one, np.zeros(1), bounds=(-2.0, 2.0))
    rows["relay"] = Law(nsds.relay(-2.0, 1.0), one, np.zeros(1), bounds=(-2.0, 1.0))
    for name, made in (("spring_damper", nsds.spring_damper(20.0, 0.5)), ("force_law", nsds.force_law(pull, z=[20.0, 0.5]))):
        rows[name] = Law(made, one, np.zeros(1), bounds=(-np.inf, np.inf), pull=(20.0, 0.5))
    rows["equality"] = Law(nsds.equality(), one * [0.0] + np.eye(6)[1], np.zeros(1), bounds=(-np.inf, np.inf))
    return rows


# ------------------------------------------------------------------------------------------------------- a plain twin
def march(law, h=STEP, end=END, arm=RADIUS):
    """q and v at the end by the Moreau–Jean scheme (theta = 1/2) in plain NumPy, the law solved by projections until they rest.

    arm: of the force of a contact about the centre; 0 of what lies flat and does not turn.
    """
    q, v, is_row = np.zeros(6), law.start.copy(), np.arange(len(law.H)) > law.disk
    if arm == 0.0:
        kept = law.H.copy()
        kept[:, 3:] = 0.0
        law = law._replace(H=kept[~is_row], restitution=law.restitution[~is_row], mu=(law.mu[0], 0.0))
        v[3:] = 0.0
    lengths = np.where(is_row[: len(law.H)], RADIUS, 1.0)[:, None]  # spins as velocities: projections then rest soon
    law = law._replace(H=law.H * lengths, mu=(law.mu[0], law.mu[1] / RADIUS))
    W = law.H @ (law.H / MASS).T
    r, rho = np.zeros(len(W)), 1.0 / np.linalg.norm(W, 2)
    for _ in range(round(end / h)):
        before, free = law.H @ v, v + h * FORCE / MASS
        if law.pull:
            free -= h * law.H[0] * (law.pull[0] * law.H[0] @ q + law.pull[1] * before) / MASS
        elif not law.closes or GAP + law.H[0] @ (q + 0.5 * h * v) <= 0:
            for _ in range(20_000):
                u = law.H @ free + W @ r + law.rebound(before)
                last, r = r, law.nearest(r - rho * u, rho * u, h)
                if np.linalg.norm(r - last) <= 1e-14 * (np.linalg.norm(r) + 1e-30):
                    break
            free += law.H.T @ r / MASS
        q, v = q + 0.5 * h * (v + free), free
    return q, v


def spring(bilateral, h=1e-5, end=END):
    """z and its velocity at the end, of the ball on a spring of the stiffness ``1 / COMPLIANCE``, one-sided or not."""
    z, v = 0.0, START[2]
    for _ in range(round(end / h)):
        pressed = -(GAP + z) / COMPLIANCE
        v += h * (FORCE[2] + (pressed if bilateral else max(pressed, 0.0)))
        z += h * v
    return z, v


@lru_cache
def twin(name, arm=RADIUS):
    return march(mechanical_laws()[name], arm=arm)


@lru_cache
def twin_of_force(is_bilateral):
    return spring(is_bilateral)


# ------------------------------------------------------------------------------------------------------- what rows must be
def velocities_break(law, rows):
    """By how much (m/s or N s, whichever is more) the rows of a mechanical system miss a law of velocities, by its definition."""
    part, worst = rows["law"], 0.0
    lam, after = np.atleast_2d(part["lambda"].T).T, np.atleast_2d(part["ydot"].T).T
    W = law.H @ (law.H / MASS).T
    rho = 1.0 / np.linalg.norm(W, 2)
    for k in range(1, len(rows)):
        if lam[k].any() or not law.closes:
            u = after[k] + law.rebound(after[k - 1])
            if (
                law.made["law"].endswith("_impact_friction")
                and LAWS[law.made["law"]].treatment.impact
                and law.disk == 2
                and after[k - 1][0] < -1e-9
            ):
                continue  # friction of an impact opposes the slip that it leaves, which forces of the step turn a little
            worst = max(worst, np.linalg.norm(lam[k] - law.nearest(lam[k] - rho * u, rho * u, STEP)))
    return worst


def impulses_leave_cone(law, rows):
    """By how much (N s) impulses are not allowed by the law, whatever the velocities."""
    lam = np.atleast_2d(rows["law"]["lambda"].T).T
    if law.bounds:
        return max(np.max(law.bounds[0] * STEP - lam), np.max(lam - law.bounds[1] * STEP), 0.0)
    friction, rolling = np.linalg.norm(lam[:, 1 : 1 + law.disk], axis=1), np.linalg.norm(lam[:, 1 + law.disk :], axis=1)
    return max(np.max(-lam[:, 0]), np.max(friction - law.mu[0] * lam[:, 0]), np.max(rolling - law.mu[1] * lam[:, 0]), 0.0)


def require_law(law, scheme, rows):
    """The law by its definition."""
    assert impulses_leave_cone(law, rows) < 1e-9, "impulses are not those that the law allows"
    if scheme in OF_VELOCITIES and not law.pull:
        # spins are those of the axes at the start of a step, rows have those of its end: an impact turns one into the other, by O(h)
        most = 2e-5 if LAWS[law.made["law"]].treatment.spins else 1e-6
        assert velocities_break(law, rows) < most, "velocities are not those of the law"


def require_motion(got, expected, what="the motion of the ball"):
    """Coordinates and velocities at the end, those of rotations times an arm, beside those of the twin."""
    for value, right, most in zip(got, expected, (5e-3, 3e-2), strict=True):
        np.testing.assert_allclose(value, right, atol=most, err_msg=what)
