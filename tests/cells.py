"""Every law with every relation, kind of system and scheme that may go together: small systems, and whether a scheme treats them.

A ball of radius R falls on a plane, slides and rolls; its coordinates are those of the centre and angles about the axes, of which only the
derivatives count, so that it is the same linear problem for Lagrangian systems and for rigid bodies. Laws of one row act on one of its
coordinates. ``python -m tests.cells`` writes the tables of docs/laws.md.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

import nsds
from nsds.model.laws import LAWS
from nsds.model.system_kinds import FIRST_ORDER, LAGRANGIAN, NEWTON_EULER
from nsds.schemes.table import DEFAULTS, SCHEMES
from nsds.status import is_event
from tests.pairs import PAIRS, scene
from tests.reference_contact import hat, onto_cone

RADIUS, GAP, STEP, END = 0.1, 0.02, 1e-3, 0.3
MASS = np.array([1.0] * 3 + [0.4 * RADIUS**2] * 3)
FORCE = np.array([0.3, 0.2, -9.81, 0.0, 0.0, 0.0])
START = np.array([0.5, 0.2, -0.5, 0.0, 3.0, 0.0])
COMPLIANCE = 1e-3  # m/N, of laws between y and a force
_NORMAL, _TANGENTS = [0, 0, 1, 0, 0, 0], [[1, 0, 0, 0, -RADIUS, 0], [0, 1, 0, RADIUS, 0, 0]]
_SPINS = [[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0]]
# Options besides the default ones with which a scheme is another method.
VARIANTS = {"moreau_jean": ({"form": "global"},), "d1_minus_linear": ({"level": "velocity"},)}


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
    rows["dry_friction"] = Law(nsds.dry_friction(2.0), one, np.zeros(1), bounds=(-2.0, 2.0))
    rows["relay"] = Law(nsds.relay(-2.0, 1.0), one, np.zeros(1), bounds=(-2.0, 1.0))
    for name, made in (("spring_damper", nsds.spring_damper(20.0, 0.5)), ("force_law", nsds.force_law(_pull, z=[20.0, 0.5]))):
        rows[name] = Law(made, one, np.zeros(1), bounds=(-np.inf, np.inf), pull=(20.0, 0.5))
    rows["equality"] = Law(nsds.equality(), one * [0.0] + np.eye(6)[1], np.zeros(1), bounds=(-np.inf, np.inf))
    return rows


# ------------------------------------------------------------------------------------------------------- a plain twin
def march(law, h=STEP, end=END):
    """q and v at the end by the Moreau–Jean scheme (theta = 1/2) in plain NumPy, the law solved by projections until they rest."""
    q, v = np.zeros(6), START.copy()
    lengths = np.where(np.arange(len(law.H)) > law.disk, RADIUS, 1.0)[:, None]  # spins as velocities: projections then rest soon
    law = law._replace(H=law.H * lengths, mu=(law.mu[0], law.mu[1] / RADIUS))
    if law.is_held:
        v -= law.H[0] * (law.H[0] @ v)
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


# ------------------------------------------------------------------------------------------------------- Lagrangian systems
def _weigh(q, z, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = z[i] if i == j else 0.0


def _push(t, z, out):
    for i in range(out.size):
        out[i] = z[out.size + i]


def _outputs(q, z, out):
    for i in range(out.size):
        out[i] = z[q.size * out.size + i]
        for j in range(q.size):
            out[i] += z[i * q.size + j] * q[j]


def _outputs_in_time(t, q, z, out):
    for i in range(out.size):
        out[i] = z[q.size * out.size + i]
        for j in range(q.size):
            out[i] += z[i * q.size + j] * q[j]


def _compliant(q, lam, z, out):
    for i in range(out.size):
        out[i] = z[q.size * out.size + i] + z[(q.size + 1) * out.size] * lam[i]
        for j in range(q.size):
            out[i] += z[i * q.size + j] * q[j]


def _general(t, q, lam, z, out):
    for i in range(out.size):
        out[i] = z[q.size * out.size + i] + z[(q.size + 1) * out.size] * lam[i]
        for j in range(q.size):
            out[i] += z[i * q.size + j] * q[j]


def _general_input(t, q, lam, z, out):
    for j in range(q.size):
        out[j] = 0.0
        for i in range(lam.size):
            out[j] += z[i * q.size + j] * lam[i]


LAGRANGIAN_SYSTEMS = ("linear", "modal", "nonlinear", "array")


def ball(kind, v=START):
    """The ball as a part, of one of these kinds."""
    state = {"q": np.zeros(6), "v": v}
    if kind == "modal":
        return nsds.lagrangian_modal(np.zeros(6), mass=MASS, fext=FORCE, **state)
    if kind == "nonlinear":
        return nsds.lagrangian(_weigh, fext=_push, z=np.r_[MASS, FORCE], **state)
    if kind == "array":
        return nsds.lagrangian_linear(MASS, fext=FORCE, count=2, **state)
    return nsds.lagrangian_linear(MASS, fext=FORCE, **state)


def lagrangian_relations(law, is_force=False):
    """name -> relation with the rows of a law; is_force: of those whose y depends on lambda."""
    b = np.r_[GAP if law.closes or is_force else 0.0, np.zeros(len(law.H) - 1)]
    m, H, D = len(law.H), law.H, COMPLIANCE if is_force else 0.0
    z = np.r_[H.ravel(), b]
    if is_force:
        return {
            "lagrangian_linear_relation with D": nsds.lagrangian_linear_relation(H, b=b, D=np.eye(m) * D),
            "compliant": nsds.compliant(_compliant, m=m, z=np.r_[z, D]),
            "lagrangian_relation": nsds.lagrangian_relation(_general, _general_input, m=m, z=np.r_[z, D]),
        }
    relations = {
        "lagrangian_linear_relation": nsds.lagrangian_linear_relation(H, b=b),
        "scleronomous": nsds.scleronomous(_outputs, m=m, z=z),
        "rheonomous": nsds.rheonomous(_outputs_in_time, m=m, z=z),
    }
    if m == 1 and not law.closes:
        relations["prescribed_velocity"] = nsds.prescribed_velocity([int(np.argmax(H[0]))])
    return relations


def lagrangian_cells():
    """(law, relation, kind of system, function that makes the system)."""
    for name, law in mechanical_laws().items():
        if LAGRANGIAN not in LAWS[law.made["law"]].families:
            continue
        for relation, made in lagrangian_relations(law).items():
            for kind in LAGRANGIAN_SYSTEMS if relation == "lagrangian_linear_relation" else LAGRANGIAN_SYSTEMS[:1]:
                yield name, relation, kind, _lagrangian(kind, made, law.made, law)
    for name, made in (("complementarity", nsds.complementarity()), ("equality", nsds.equality())):
        law = mechanical_laws()["newton_impact"]
        for relation, of in lagrangian_relations(law, is_force=True).items():
            yield f"{name}, a force", relation, "linear", _lagrangian("linear", of, made, law)


def _lagrangian(kind, relation, made, law):
    def system():
        v = START - law.H[0] * (law.H[0] @ START) if made["law"] == "equality" and law.bounds else START
        return nsds.system(ball=ball(kind, v), law=nsds.interaction(relation, made, on="ball"))

    return system


# ------------------------------------------------------------------------------------------------------- rigid bodies
def _gap_and_point(t, q, z, out):
    out[0] = q[2] + z[0]
    out[1], out[2], out[3] = q[0], q[1], q[2] - z[1]
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def _pull(t, y, ydot, z, out):
    for i in range(out.size):
        out[i] = -z[0] * y[i] - z[1] * ydot[i]


def _coordinates(t, q, z, out):
    for i in range(out.size):
        out[i] = z[7 * i + 6]
        for j in range(6):
            out[i] += z[7 * i + j] * q[j] if j < 3 else 0.0


def rigid_relations(name, law):
    """name -> relation with the rows of a law, for those that rigid bodies have."""
    axis = law.H[0, :3]
    if name == "newton_impact" or LAWS[law.made["law"]].blocks:
        relations = {"contact_point": nsds.contact_point(_gap_and_point, z=[GAP, RADIUS])}
        if name == "newton_impact":
            relations["joint"] = nsds.joints.slide_along(axis, lower=-GAP)
            relations["newton_euler_relation"] = nsds.newton_euler_relation(_coordinates, m=1, z=np.r_[law.H[0], GAP])
        return relations | {"collisions": None}
    relations = {"joint": nsds.joints.slide_along(axis)}
    if name != "force_law":  # whose function and that of a relation have one z
        relations["newton_euler_relation"] = nsds.newton_euler_relation(_coordinates, m=1, z=np.r_[law.H[0], 0.0])
    return relations if law.pull else relations | {"prescribed_velocity": nsds.prescribed_velocity([int(np.argmax(law.H[0]))])}


def rigid_cells():
    """(law, relation, kind of system, function that makes the system)."""
    for name, law in mechanical_laws().items():
        if NEWTON_EULER in LAWS[law.made["law"]].families and "plane" not in name:
            for relation, made in rigid_relations(name, law).items():
                yield name, relation, "rigid bodies", _rigid(made, law)


def _rigid(relation, law):
    def system():
        v = START - law.H[0] * (law.H[0] @ START) if law.is_held else START
        body = nsds.rigid_bodies(1.0, np.eye(3) * MASS[3], q=[0.0, 0, 0, 1, 0, 0, 0], v=v, fext=FORCE[:3])
        if relation is not None:
            return nsds.system(ball=body, law=nsds.interaction(relation, law.made, on="ball"))
        floor = nsds.shapes.plane(point=[0, 0, -GAP - RADIUS])
        return nsds.system(ball=body, law=nsds.collisions({"ball": nsds.shapes.sphere(RADIUS)}, law.made, world=floor))

    return system


# ------------------------------------------------------------------------------------------------------- first-order systems
_A, _SOURCE, _OFFSET, _STATE = np.array([[-1.0, 2.0], [-2.0, -0.5]]), np.array([-1.0, 0.5]), np.array([0.1, -0.2]), np.array([0.4, 0.3])
_CONE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), np.array([-0.5, -0.5, -1.0])  # a triangle


def _rate(t, x, z, out):
    out[0] = -x[0] + 2.0 * x[1] - 1.0
    out[1] = -2.0 * x[0] - 0.5 * x[1] + 0.5


def _h1(t, x, z, out):
    for i in range(out.size):
        out[i] = x[i] + z[i]


def _h2(t, x, lam, z, out):
    for i in range(out.size):
        out[i] = x[i] + z[i] + z[2] * lam[i]


def _g(t, lam, z, out):
    for i in range(out.size):
        out[i] = lam[i]


def _g_x(t, x, lam, z, out):
    for i in range(out.size):
        out[i] = lam[i]


def _corners(x):
    """The point of the triangle that is nearest to x."""
    G, g = _CONE
    if (G @ x >= g).all():
        return x
    corners = [np.linalg.solve(G[[i, j]], g[[i, j]]) for i, j in ((0, 1), (1, 2), (2, 0))]
    sides = zip(corners, np.roll(corners, -1, axis=0), strict=True)
    points = [a + np.clip((x - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1) * (b - a) for a, b in sides]
    return min(points, key=lambda point: np.linalg.norm(point - x))


# name -> (law, the point of the set of multipliers that is nearest to x)
FIRST_ORDER_LAWS = {
    "complementarity": (nsds.complementarity(), lambda x: np.maximum(x, 0.0)),
    "equality": (nsds.equality(), lambda x: x),
    "mixed_complementarity": (nsds.mixed_complementarity(1), lambda x: np.array([x[0], max(x[1], 0.0)])),
    "relay": (nsds.relay(-1.0, 2.0), lambda x: np.clip(x, -1.0, 2.0)),
    "normal_cone": (nsds.normal_cone(*_CONE), _corners),
}
FIRST_ORDER_SYSTEMS = ("linear", "nonlinear")


def first_order_relations(D):
    """name -> relation ``y = x + offset + D lambda``, whose input is lambda."""
    z, eye = np.r_[_OFFSET, D], np.eye(2)
    relations = {
        "first_order_linear_relation": nsds.first_order_linear_relation(eye, eye, D=eye * D if D else None, e=_OFFSET),
        "type2_relation": nsds.type2_relation(_h2, _g, m=2, z=z),
        "first_order_relation": nsds.first_order_relation(_h2, _g_x, m=2, z=z),
    }
    return relations if D else relations | {"type1_relation": nsds.type1_relation(_h1, _g, m=2, z=z)}


def first_order_cells():
    """(law and whether y depends on lambda, relation, kind of system, function that makes the system)."""
    for D in (0.5, 0.0):
        for name, (made, _) in FIRST_ORDER_LAWS.items():
            for relation, of in first_order_relations(D).items():
                for kind in FIRST_ORDER_SYSTEMS if relation == "first_order_linear_relation" else FIRST_ORDER_SYSTEMS[:1]:
                    yield f"{name}{', D' if D else ''}", relation, kind, _first_order(kind, of, made)


def _first_order(kind, relation, law):
    def system():
        if kind == "linear":
            part = nsds.first_order_linear(_A, b=_SOURCE, x=_STATE)
        else:
            part = nsds.first_order(_rate, x=_STATE)
        return nsds.system(part=part, law=nsds.interaction(relation, law, on="part"))

    return system


def march_first_order(nearest, D, h=STEP, end=END):
    """x at the end by the implicit Euler method in plain NumPy, the law solved by projections until they rest."""
    x, lam = _STATE, np.zeros(2)
    inverse = np.linalg.inv(np.eye(2) - h * _A)
    W = h * inverse + D * np.eye(2)
    rho = 1.0 / np.linalg.norm(W, 2)
    for _ in range(round(end / h)):
        free = inverse @ (x + h * _SOURCE)
        for _ in range(20_000):
            last, lam = lam, nearest(lam - rho * (free + _OFFSET + W @ lam))
            if np.linalg.norm(lam - last) <= 1e-14 * np.linalg.norm(lam):
                break
        x = free + h * inverse @ lam
    return x


CELLS = {LAGRANGIAN: lagrangian_cells, NEWTON_EULER: rigid_cells, FIRST_ORDER: first_order_cells}


# ------------------------------------------------------------------------------------------------------- the page
PAGE = Path(__file__).parent.parent / "docs" / "laws.md"
_INTRODUCTION = """# Laws, relations and schemes

What goes with what. This page is made by `python -m tests.cells`, which makes a small system for each cell and runs it;
`tests/test_laws_and_schemes.py` holds every cell marked ✓ to the definition of its law and to a plain twin. All others are refused with
the message below the table.
"""
_SHAPES = """
## Shapes

A shape on a body above one of the world. `tests/collision/test_pairs_and_schemes.py` holds every cell: what is set
down rests, what is dropped comes back as its law says, what is thrown beside misses.
"""
_ORDER = """
## What the schemes promise

Measured with default options. Order: of smooth motion, of an oscillator (Lagrangian), of a top with three different moments of inertia
(rigid bodies), or of a linear system with a constant source (first order); "exact" is rounding. With impacts or sliding that begin inside
a step every time-stepping scheme is of order 1. Energy: of the oscillator, after 100 periods with ``omega h = 0.1``.
"""
_FAMILIES = {
    LAGRANGIAN: "Lagrangian systems, with linear equations of motion",
    NEWTON_EULER: "Rigid bodies",
    FIRST_ORDER: "First-order systems",
}


def page():
    """docs/laws.md."""
    text = [_INTRODUCTION]
    for family, title in _FAMILIES.items():
        text += [f"\n## {title}\n", *_table(family, _outcomes(family))]
    return "\n".join([*text, _SHAPES, *_pairs_of_shapes(), _ORDER, *_promises(), ""])


def _pairs_of_shapes():
    """Lines of the table of shapes: pairs by schemes, and below it the refusals."""
    schemes, numbers = schemes_of(NEWTON_EULER), {}
    lines = ["| above | below | " + " | ".join(schemes) + " |", "|---|---|" + "---|" * len(schemes)]
    for above, below in PAIRS:
        marks = (_mark(refusal(scene(above, below), getattr(nsds, scheme)()), numbers) for scheme in schemes)
        lines.append(f"| {above} | {below} | " + " | ".join(marks) + " |")
    return [*lines, "", *(f"{number}. {why}" for why, number in numbers.items())]


def _outcomes(family):
    """{(law, relation, kind): {scheme: why it refuses, or None}}, for the schemes of a family."""
    outcomes = {}
    for law, relation, kind, make in CELLS[family]():
        system = make()
        outcomes[law, relation, kind] = {scheme: refusal(system, getattr(nsds, scheme)()) for scheme in schemes_of(family)}
    return outcomes


def schemes_of(family):
    """Names of the schemes of a family, the default first."""
    names = sorted(name for name, scheme in SCHEMES.items() if family in scheme.modules)
    return sorted(names, key=lambda name: name != DEFAULTS[family])


def refusal(system, scheme):
    """The message with which a scheme refuses a system, without the name of the interaction; None where it takes it."""
    try:
        nsds.simulate(system, t_end=2 * STEP, h=STEP, scheme=scheme)
    except ValueError as error:
        return re.sub(r" 'law'", "", str(error))
    return None


def at_steps(scheme, family, rows):
    """Rows of a run at its steps, with the impulse of a step as lambda: what a run that stops at events has besides is left out."""
    if scheme != "event_driven":
        return rows
    rows = rows[~is_event(rows["status"])]
    rows["law"]["lambda"] *= 1.0 if family == FIRST_ORDER else STEP
    return rows


def _table(family, outcomes):
    """Lines of the table of a family: laws and relations by schemes, and below which other kinds of systems there are, and the refusals."""
    schemes, numbers = schemes_of(family), {}
    lines = ["| law | relation | " + " | ".join(schemes) + " |", "|---|---|" + "---|" * len(schemes)]
    kinds = dict.fromkeys(kind for _, _, kind in outcomes)
    first = next(iter(kinds))
    for (law, relation, kind), row in outcomes.items():
        if kind == first:
            marks = (_mark(why, numbers) for why in row.values())
            lines.append(f"| {law} | {relation} | " + " | ".join(marks) + " |")
    for other in list(kinds)[1:]:
        differing = [
            f"{scheme} {_mark(why, numbers)}"
            for scheme in schemes
            for why in dict.fromkeys(
                row[scheme]
                for (law, relation, kind), row in outcomes.items()
                if kind == other and row[scheme] != outcomes[law, relation, first][scheme]
            )
        ]
        lines.append(f"\n{other.capitalize()} systems: as above" + (f", but {', '.join(differing)}" if differing else "") + ".")
    return [*lines, "", *(f"{number}. {why}" for why, number in numbers.items())]


def _mark(why, numbers):
    """✓, or the number of the refusal, which is a new one if need be."""
    return "✓" if why is None else str(numbers.setdefault(why, len(numbers) + 1))


def _promises():
    lines = ["| scheme | systems | order | energy |", "|---|---|---|---|"]
    for family in _FAMILIES:
        lines += [f"| {scheme} | {family} | {_order(scheme, family)} | {_energy(scheme, family)} |" for scheme in schemes_of(family)]
    return lines


def _smooth(family, scheme, h, end):
    """Rows of smooth motion."""
    if family == LAGRANGIAN:
        is_difference = scheme in ("schatzman_paoli", "moreau_jean_exact")  # v of a row is (q_k - q_{k-1}) / h
        part = nsds.lagrangian_modal([1.0], q=[1.0], v=[(1.0 - np.cos(h)) / h if is_difference else 0.0])
    elif family == NEWTON_EULER:
        part = nsds.rigid_bodies(1.0, np.diag([1.0, 2.0, 3.0]), q=[0.0, 0, 0, 1, 0, 0, 0], v=[0.0, 0, 0, 0.3, 1.0, 0.5])
    else:
        part = nsds.first_order_linear(_A, b=_SOURCE, x=_STATE)
    return nsds.simulate(nsds.system(part=part), t_end=end, h=h, scheme=getattr(nsds, scheme)())["part"]


def _order(scheme, family):
    """Measured order, from errors against a run with a step that is much shorter."""
    state = "x" if family == FIRST_ORDER else "q"
    ends = [_smooth(family, scheme, h, 1.0)[state][-1] for h in (0.02, 0.01, 0.01 / 16)]
    errors = [np.linalg.norm(end - ends[-1]) for end in ends[:2]]
    return "exact" if errors[1] < 1e-11 else str(round(np.log2(errors[0] / errors[1])))


def _energy(scheme, family):
    """What becomes of the energy of the oscillator, in words."""
    if family != LAGRANGIAN:
        return "–"
    rows = _smooth(family, scheme, 0.1, 628.4)  # a hundred periods, in whole steps
    first, last = (_amplitude(rows[part]) for part in (slice(0, 63), slice(-63, None)))
    change = (last / first) ** 2 - 1
    return "conserved" if abs(change) < 3e-4 else f"{'gains' if change > 0 else 'loses'} {abs(change):.2%}"


def _amplitude(rows):
    """Of the harmonic through the positions of a period, by least squares."""
    phase = 0.1 * np.arange(len(rows))
    return np.linalg.norm(np.linalg.lstsq(np.c_[np.cos(phase), np.sin(phase)], rows["q"][:, 0], rcond=None)[0])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
