"""Nonlinear Lagrangian systems against their slow twin, in closed form where there is one, and the laws that every step must obey."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import block_diag

import nsds
from nsds.status import INEXACT, NEWTON, NON_FINITE, NOT_DEFINITE
from tests.reference import moreau_jean_nonlinear, slope
from tests.strategies import examples, generators

TIGHT = 1e-11
EXACT = nsds.solvers.solver("auto", tol=1e-13)


def called(function, *shape):
    """A user's function as one that returns its result, also for complex arguments."""

    def result(*arguments):
        out = np.zeros(shape, np.result_type(*arguments, float))
        function(*arguments, out)
        return out

    return result


# --- a random system: its functions read everything from z, so that each is compiled once ---------------------------------------------
def mass(q, z, out):
    n = q.size
    for i in range(n):
        for j in range(n):
            out[i, j] = z[i * n + j] + (0.3 * np.sin(q[i]) if i == j else 0.15 * np.cos(q[i] + q[j]))


def fint(t, q, v, z, out):
    n = q.size
    for i in range(n):
        j = (i + 1) % n
        out[i] = z[n * n + i] * np.sin(q[i]) + 0.3 * v[i] * (1 + q[j] ** 2) + np.cos(2 * t + i)


def fgyr(q, v, z, out):
    n = q.size
    for i in range(n):
        out[i] = 0.4 * v[i] * v[(i + 1) % n] * np.cos(q[i])


def jac_q(t, q, v, z, out):
    n = q.size
    out[:] = 0.0
    for i in range(n):
        j = (i + 1) % n
        out[i, i] += z[n * n + i] * np.cos(q[i]) - 0.4 * v[i] * v[j] * np.sin(q[i])
        out[i, j] += 0.6 * v[i] * q[j]


def jac_v(t, q, v, z, out):
    n = q.size
    out[:] = 0.0
    for i in range(n):
        j = (i + 1) % n
        out[i, i] += 0.3 * (1 + q[j] ** 2) + 0.4 * v[j] * np.cos(q[i])
        out[i, j] += 0.4 * v[i] * np.cos(q[i])


def fext(t, z, out):
    for i in range(out.size):
        out[i] = 2 * np.sin(3 * t + i) - 4


def weight(q, z, out):
    for i in range(q.size):
        out[i, 0] = np.cos(q[i] + i)


def command(t, q, v, z, out):
    out[0] = np.sin(t) - 0.5 * q[0] - 0.3 * v[0]


def _pull(q, z, k, m):
    n = q.size
    s = z[m * n + k]
    for j in range(n):
        s += z[k * n + j] * q[j] + 0.2 * np.sin(q[j] + k)
    return s


def gap(q, z, out):
    n, m = q.size, out.size
    for k in range(m):
        out[k] = z[m * n + k]
        for j in range(n):
            out[k] += z[k * n + j] * q[j] + 0.2 * np.sin(q[j] + k)


def gap_H(q, z, out):
    n = q.size
    for k in range(out.shape[0]):
        for j in range(n):
            out[k, j] = z[k * n + j] + 0.2 * np.cos(q[j] + k)


def moving(t, q, z, out):
    n, m = q.size, out.size
    for k in range(m):
        out[k] = z[m * n + k] + 0.1 * np.sin(3 * t + k) * (1 + q[0])
        for j in range(n):
            out[k] += z[k * n + j] * q[j] + 0.2 * np.sin(q[j] + k)


def moving_H(t, q, z, out):
    n = q.size
    for k in range(out.shape[0]):
        for j in range(n):
            out[k, j] = z[k * n + j] + 0.2 * np.cos(q[j] + k)
        out[k, 0] += 0.1 * np.sin(3 * t + k)


def moving_t(t, q, z, out):
    for k in range(out.size):
        out[k] = 0.3 * np.cos(3 * t + k) * (1 + q[0])


def rubber(q, lam, z, out):
    n, m = q.size, out.size
    for k in range(m):
        out[k] = z[m * n + k] + 0.05 * (lam[k] + lam[k] ** 3 / 3000) + 0.02 * lam[(k + 1) % m]
        for j in range(n):
            out[k] += z[k * n + j] * q[j] + 0.2 * np.sin(q[j] + k)


def rubber_H(q, lam, z, out):
    n = q.size
    for k in range(lam.size):
        for j in range(n):
            out[k, j] = z[k * n + j] + 0.2 * np.cos(q[j] + k)


def rubber_D(q, lam, z, out):
    m = lam.size
    out[:] = 0.0
    for k in range(m):
        out[k, k] += 0.05 * (1 + lam[k] ** 2 / 1000)
        out[k, (k + 1) % m] += 0.02


def paste(t, q, lam, z, out):
    n, m = q.size, out.size
    for k in range(m):
        out[k] = z[m * n + k] + 0.05 * (lam[k] + lam[k] ** 3 / 3000) + 0.1 * np.sin(3 * t)
        for j in range(n):
            out[k] += z[k * n + j] * q[j] + 0.2 * np.sin(q[j] + k)


def paste_D(t, q, lam, z, out):
    out[:] = 0.0
    for k in range(lam.size):
        out[k, k] = 0.05 * (1 + lam[k] ** 2 / 1000)


def press(t, q, lam, z, out):
    n, m = q.size, lam.size
    for j in range(n):
        out[j] = 0.0
        for k in range(m):
            out[j] += (z[k * n + j] + 0.2 * np.cos(q[j] + k)) * (1 + 0.3 * q[0] ** 2 + 0.1 * np.cos(t)) * lam[k]


def press_B(t, q, lam, z, out):
    n, m = q.size, lam.size
    for j in range(n):
        for k in range(m):
            out[j, k] = (z[k * n + j] + 0.2 * np.cos(q[j] + k)) * (1 + 0.3 * q[0] ** 2 + 0.1 * np.cos(t))


def paste_H(t, q, lam, z, out):
    n = q.size
    for k in range(lam.size):
        for j in range(n):
            out[k, j] = z[k * n + j] + 0.2 * np.cos(q[j] + k)


# relation -> (constructor, its functions, their derivatives, (t, q, lam) of the twin -> arguments)
RELATIONS = {
    "scleronomous": (nsds.scleronomous, {"h": gap}, {"H": gap_H}, lambda t, q, lam: (q,)),
    "rheonomous": (nsds.rheonomous, {"h": moving}, {"H": moving_H, "h_t": moving_t}, lambda t, q, lam: (t, q)),
    "compliant": (nsds.compliant, {"h": rubber}, {"H": rubber_H, "D": rubber_D}, lambda t, q, lam: (q, lam)),
    "lagrangian_relation": (nsds.lagrangian_relation, {"h": paste, "g": press}, {"H": paste_H, "D": paste_D, "B": press_B},
                            lambda t, q, lam: (t, q, lam)),
}  # fmt: skip
LAWS = ("newton_impact", "newton_impact_friction", "fremond_impact", "complementarity", "equality")


def random_law(rng, name, n_contacts):
    """(law, contacts of the twin without rows)"""
    e, e_t, mu = rng.uniform(size=n_contacts), rng.uniform(-1, 1, size=n_contacts), rng.uniform(0, 0.4, size=n_contacts)
    if name == "newton_impact":
        return nsds.newton_impact(e), [{"law": "contact", "e": each} for each in e]
    if name == "newton_impact_friction":
        return nsds.newton_impact_friction(e, mu, e_t), [
            {"law": "friction", "e": each[:2], "mu": each[2]} for each in zip(e, e_t, mu, strict=True)
        ]
    if name == "fremond_impact":
        return nsds.fremond_impact(e, mu), [{"law": "friction", "e": (each[0], 1.0), "mu": each[1]} for each in zip(e, mu, strict=True)]
    return (
        (nsds.complementarity(), [{"law": "contact", "e": 0.0}] * n_contacts)
        if name == "complementarity"
        else (nsds.equality(), [{"law": "joint", "e": 0.0}] * n_contacts)
    )


def spd(rng, n):
    A = rng.normal(size=(n, n))
    return A @ A.T / n + np.eye(n)


def random_part(rng, n, jacobians, controlled=False):
    """(arguments of nsds.lagrangian, body of the twin)"""
    z = np.concatenate([spd(rng, n).ravel(), rng.uniform(1, 20, size=n)])
    arguments = {"mass": mass, "fint": fint, "fgyr": fgyr, "fext": fext, "q": rng.normal(size=n), "v": rng.normal(size=n), "z": z}
    arguments |= {"jac_q": jac_q, "jac_v": jac_v} if jacobians else {}
    arguments |= {"T": weight, "u": command, "n_u": 1} if controlled else {}
    M, f_int, f_gyr, f_ext, T, u = (
        called(function, *shape) for function, *shape in ((mass, n, n), (fint, n), (fgyr, n), (fext, n), (weight, n, 1), (command, 1))
    )

    def force(t, q, v):
        pushed = T(q, z) @ u(t, q, v, z) if controlled else 0.0
        return f_ext(t, z) - f_int(t, q, v, z) - f_gyr(q, v, z) + pushed

    return arguments, {"q": arguments["q"], "v": arguments["v"], "mass": lambda q: M(q, z), "force": force}


def random_interaction(rng, law, name, n_contacts, jacobians, q, columns):
    """(relation, law, link of the twin) on the coordinates ``columns`` of q; some constraints closed at the start."""
    constructor, functions, derivatives, arguments = RELATIONS[name]
    position = law in ("complementarity", "equality") and name in ("compliant", "lagrangian_relation")
    law, contacts = random_law(rng, law, n_contacts)
    n, m = len(columns), n_contacts * (2 if contacts[0]["law"] == "friction" else 1)
    A = 0.3 * rng.normal(size=(m, n))
    A[np.arange(m), np.arange(m) % n] += rng.choice([-1, 1], size=m)  # well-conditioned: the tolerance need not be
    z = np.concatenate([A.ravel(), np.zeros(m)])
    h = called(functions["h"], m)
    opened = 0.02 if position or contacts[0]["law"] != "joint" else 0.0
    z[m * n :] = -h(*arguments(0.0, q[columns], np.zeros(m)), z) + rng.choice([0.0, opened], size=m)
    output = lambda t, q, lam: h(*arguments(t, q, lam), z)  # noqa: E731
    push = lambda t, q, lam: slope(lambda x: output(t, x, lam), q).T @ lam  # noqa: E731
    if "g" in functions:
        g = called(functions["g"], n)
        push = lambda t, q, lam: g(t, q, lam, z)  # noqa: E731
    relation = constructor(**functions, **(derivatives if jacobians else {}), m=m, z=z)
    link = {"h": output, "push": push, "columns": columns, "contacts": contacts, "position": position, "m": m}
    return relation, law, link


def joined(bodies, links):
    """One dense model for the twin: bodies behind one another, links between their coordinates."""
    first = np.cumsum([0] + [len(body["q"]) for body in bodies])
    split = lambda x: np.split(x, first[1:-1])  # noqa: E731
    start = np.cumsum([0] + [link["m"] for link in links])
    own = [slice(a, b) for a, b in pairwise(start)]

    def push(t, q, lam):
        total = np.zeros(first[-1])
        for link, mine in zip(links, own, strict=True):
            if link["position"]:
                total[link["columns"]] += link["push"](t, q[link["columns"]], lam[mine])
        return total

    contacts = []
    for link, mine in zip(links, own, strict=True):
        rows = np.arange(start[-1])[mine].reshape(len(link["contacts"]), -1)
        contacts += [contact | {"rows": row, "position": link["position"]} for contact, row in zip(link["contacts"], rows, strict=True)]
    return {
        "q": np.concatenate([body["q"] for body in bodies]), "v": np.concatenate([body["v"] for body in bodies]),
        "mass": lambda q: block_diag(*(body["mass"](x) for body, x in zip(bodies, split(q), strict=True))),
        "force": lambda t, q, v: np.concatenate([body["force"](t, x, y) for body, x, y in zip(bodies, split(q), split(v), strict=True)]),
        "h": lambda t, q, lam: np.concatenate([link["h"](t, q[link["columns"]], lam[mine]) for link, mine in zip(links, own, strict=True)]),
        "push": push, "contacts": contacts,
    }  # fmt: skip


@st.composite
def steps(draw):
    """Law, relation, theta and q_star that go together."""
    law = draw(st.sampled_from(LAWS))
    relation = draw(st.sampled_from(list(RELATIONS)[: 4 if law in ("complementarity", "equality") else 3]))
    theta = draw(st.sampled_from([0.0, 0.5, 1.0]))
    if theta == 0 and law in ("complementarity", "equality") and relation in ("compliant", "lagrangian_relation"):
        theta = 0.7
    return law, relation, theta, draw(st.sampled_from([0.0, 0.5, 1.0]))


def random_case(rng, law, relation, jacobians, controlled):
    """(record, model of the twin): one body."""
    friction = law in ("newton_impact_friction", "fremond_impact")
    n = int(rng.integers(2 if friction else 1, 4))
    part, body = random_part(rng, n, jacobians, controlled)
    n_contacts = int(rng.integers(1, n)) if friction else int(rng.integers(1, n + 1))
    relation, law, link = random_interaction(rng, law, relation, n_contacts, jacobians, part["q"], np.arange(n))
    return nsds.system(body=nsds.lagrangian(**part), contact=nsds.interaction(relation, law, on="body")), joined([body], [link])


@pytest.mark.parametrize("jacobians", [True, False], ids=["jacobians", "differences"])
@examples(25)
@given(rng=generators, step=steps(), controlled=st.booleans())
def test_random_systems_follow_the_twin(jacobians, rng, step, controlled):
    law, relation, theta, q_star = step
    system, model = random_case(rng, law, relation, jacobians, controlled)
    compare(system, model, theta, q_star, ("body",), ("contact",), 1e-9 if jacobians else 1e-6)


@pytest.mark.parametrize("jacobians", [True, False], ids=["jacobians", "differences"])
@examples(15)
@given(rng=generators, step=steps(), flipped=st.booleans())
def test_relations_between_two_parts_follow_the_twin(jacobians, rng, step, flipped):
    """A nonlinear part and a linear one, in either order; a part between them that is not concerned."""
    law, relation, theta, q_star = step
    part, body = random_part(rng, 2, jacobians)
    M, K, C, f, q, v = spd(rng, 2), 10 * spd(rng, 2), spd(rng, 2), rng.normal(size=2), rng.normal(size=2), rng.normal(size=2)
    linear = {"q": q, "v": v, "mass": lambda q: M, "force": lambda t, q, v: f - K @ q - C @ v}
    idle = {"q": np.zeros(1), "v": np.ones(1), "mass": lambda q: np.eye(1), "force": lambda t, q, v: -q}
    columns = np.array([3, 4, 0, 1] if flipped else [0, 1, 3, 4])
    everything = np.concatenate([part["q"], [0.0], q])
    relation, law, link = random_interaction(rng, law, relation, 2, jacobians, everything, columns)
    system = nsds.system(
        body=nsds.lagrangian(**part),
        idle=nsds.lagrangian_linear(M=[1.0], K=[1.0], q=[0.0], v=[1.0]),
        linear=nsds.lagrangian_linear(M, K, C, f, q=q, v=v),
        contact=nsds.interaction(relation, law, on=("linear", "body") if flipped else ("body", "linear")),
    )
    compare(
        system, joined([body, idle, linear], [link]), theta, q_star, ("body", "idle", "linear"), ("contact",), 1e-9 if jacobians else 1e-6
    )


@examples(12)
@given(rng=generators, step=steps(), jacobians=st.booleans())
def test_relations_of_elements_of_an_array_part_follow_the_twin(rng, step, jacobians):
    """Each element has parameters of its own; one pair of elements is joined, and two of three touch walls."""
    law, relation, theta, q_star = step
    parts, bodies = zip(*(random_part(rng, 2, jacobians) for _ in range(3)), strict=True)
    part = parts[0] | {name: np.array([each[name] for each in parts]) for name in ("q", "v", "z")}
    q = part["q"].ravel()
    relation, law, link = random_interaction(rng, law, relation, 1, jacobians, q, np.array([4, 5, 0, 1]))
    wall, friction, other = random_interaction(rng, "newton_impact_friction", "scleronomous", 1, jacobians, q, np.array([2, 3]))
    system = nsds.system(
        body=nsds.lagrangian(**part, count=3),
        contact=nsds.interaction(relation, law, on=("body[2]", "body[0]")),
        wall=nsds.interaction(wall, friction, on=("body", [1, 0])),
    )
    links = [link, other, other | {"columns": np.array([0, 1])}]
    compare(system, joined(bodies, links), theta, q_star, ("body",), ("contact", "wall"), 1e-9 if jacobians else 1e-6)


def compare(system, model, theta, q_star, parts, interactions, tol, n_steps=10, h=0.02):
    scheme = nsds.moreau_jean(theta=theta, q_star=q_star, newton_tol=TIGHT)
    rows = nsds.simulate(system, t_end=n_steps * h, h=h, scheme=scheme, solver=EXACT)
    _, q, v, y, ydot, lam, active = moreau_jean_nonlinear(model, 0.0, h, n_steps, theta, 0.5, q_star)
    # A forecast within the error of zero may fall on either side; from there on two correct programs part.
    unilateral = [c["rows"][0] for c in model["contacts"] if c["law"] != "joint" and not c["position"]]
    same = 1 + np.argmax(np.r_[(abs(y + 0.5 * h * ydot) < tol)[1:-1, unilateral].any(axis=1), False, True])
    position = np.concatenate([contact["rows"] for contact in model["contacts"] if contact["position"]] or [[]]).astype(int)
    ydot[:, position] = columns(rows, interactions, "ydot")[:, position]  # nothing depends on it
    expected = {"q": q, "v": v, "y": y, "ydot": ydot, "lambda": lam, "active": active}
    for field, wanted in expected.items():
        found = columns(rows, parts if field in "qv" else interactions, field)
        np.testing.assert_allclose(found[: same + 1], wanted[: same + 1], rtol=0, atol=tol * (1 + abs(wanted).max()), err_msg=field)
    return rows


def columns(rows, names, field):
    return np.hstack([rows[name][field].reshape(len(rows), -1) for name in names])


@examples(15)
@given(rng=generators, theta=st.sampled_from([0.0, 0.5, 1.0]), law=st.sampled_from(LAWS[:3]), form=st.sampled_from(["linear", "newton"]))
def test_linear_relations_with_friction_and_compliance_follow_the_twin(rng, theta, law, form):
    """Both forms of the step; D couples normal and tangent."""
    M, K, C, f, q, v = spd(rng, 3), 10 * spd(rng, 3), spd(rng, 3), rng.normal(size=3), rng.normal(size=3), rng.normal(size=3)
    law, contacts = random_law(rng, law, 2)
    m = 4 if contacts[0]["law"] == "friction" else 2
    H, D = rng.normal(size=(m, 3)), 0.3 * spd(rng, m)
    b = -H @ q + rng.choice([0.0, 0.02], size=m)
    parts = {"body": nsds.lagrangian_linear(M, K, C, f, q=q, v=v)}
    parts["contact"] = nsds.interaction(nsds.lagrangian_linear_relation(H, b, D), law, on="body")
    body, names = {"q": q, "v": v, "mass": lambda q: M, "force": lambda t, q, v: f - K @ q - C @ v}, ("body",)
    bodies = [body]
    if form == "newton":
        parts["swing"], names = nsds.lagrangian([1.0], fint=swing, q=[1.0], v=[0.0]), ("body", "swing")
        bodies += [{"q": np.ones(1), "v": np.zeros(1), "mass": lambda q: np.eye(1), "force": lambda t, q, v: -np.sin(q)}]
    # lambda is an impulse here: D belongs to ydot, and y has none, so that only the derivative may see it
    output = lambda t, q, lam: H @ q + b + D @ (lam - lam.real)  # noqa: E731
    link = {"h": output, "push": None, "columns": np.arange(3), "contacts": contacts, "position": False, "m": m}
    compare(nsds.system(**parts), joined(bodies, [link]), theta, 1.0, names, ("contact",), 1e-9)


# --- moving walls and prescribed velocities ----------------------------------------------------------------------------------------------
def swing(t, q, v, z, out):
    out[0] = np.sin(q[0])


def floor(t, q, z, out):
    out[0] = q[0] - z[0] * np.sin(z[1] * t)


def floor_H(t, q, z, out):
    out[0, 0] = 1.0


def floor_t(t, q, z, out):
    out[0] = -z[0] * z[1] * np.cos(z[1] * t)


@pytest.mark.parametrize("derivatives", [{}, {"H": floor_H}, {"h_t": floor_t}, {"H": floor_H, "h_t": floor_t}], ids=lambda d: "+".join(d))
@pytest.mark.parametrize("law", ["equality", "newton_impact"])
def test_a_ball_follows_a_slowly_moving_floor(law, derivatives):
    a, w, g, h = 0.2, 3.0, 9.81, 1e-3
    ball = nsds.lagrangian_linear(M=[2.0], fext=[-2 * g], q=[0.0], v=[a * w])
    relation = nsds.rheonomous(floor, **derivatives, m=1, z=[a, w])
    nonsmooth = nsds.equality() if law == "equality" else nsds.newton_impact(0.0)
    system = nsds.system(ball=ball, floor=nsds.interaction(relation, nonsmooth, on="ball"))
    rows = nsds.simulate(system, t_end=3.0, h=h)
    q, v, y, lam, t = rows["ball"]["q"][:, 0], rows["ball"]["v"][:, 0], rows["floor"]["y"], rows["floor"]["lambda"], rows["t"]
    np.testing.assert_allclose(y, q - a * np.sin(w * t), atol=1e-15)
    np.testing.assert_allclose(lam[1:], 2 * (np.diff(v) + g * h), atol=1e-12)
    if law == "equality":
        np.testing.assert_allclose(v, a * w * np.cos(w * t), atol=1e-7)
        assert abs(y).max() < a * w**3 * h**2  # trapezoidal rule on a cosine
    else:  # where the gap has opened by rounding or by the rule, one step is a free fall
        assert abs(y).max() < 2 * g * h**2
        np.testing.assert_allclose(v, a * w * np.cos(w * t), atol=2 * g * h)


K_CHAIN = np.array([[50.0, -50.0], [-50.0, 70.0]])


def chain_force(t, q, v, z, out):
    out[0] = 50 * q[0] - 50 * q[1]
    out[1] = -50 * q[0] + 70 * q[1]


def ramp(t, z, out):
    out[0] = z[0] * t + np.sin(t)


PRESCRIBED = {
    "fixed": (nsds.prescribed_velocity([0]), lambda t: 0 * t),
    "constant": (nsds.prescribed_velocity([0], 0.3), lambda t: 0.3 + 0 * t),
    "harmonic": (nsds.prescribed_velocity([0], 0.1, amplitude=0.2, omega=5.0, phase=0.4), lambda t: 0.1 + 0.2 * np.cos(5 * t + 0.4)),
    "function": (nsds.prescribed_velocity([0], ramp, z=[0.7]), lambda t: 0.7 * t + np.sin(t)),
}


@pytest.mark.parametrize("theta", [0.5, 1.0])
@pytest.mark.parametrize("drive", PRESCRIBED)
def test_a_prescribed_velocity_is_met_and_its_reaction_is_the_force_needed(drive, theta):
    relation, velocity = PRESCRIBED[drive]
    h, start = 0.01, {"q": [0.0, 0.1], "v": [velocity(0.0), 0.0]}
    parts = (nsds.lagrangian_linear([2.0, 1.0], K_CHAIN, **start), nsds.lagrangian([2.0, 1.0], fint=chain_force, **start))
    runs = []
    for part in parts:
        system = nsds.system(chain=part, drive=nsds.interaction(relation, nsds.equality(), on="chain"))
        runs.append(nsds.simulate(system, t_end=1.0, h=h, scheme=nsds.moreau_jean(theta=theta)))
    for field, tol in (("q", 1e-9), ("v", 1e-9)):
        np.testing.assert_allclose(runs[0]["chain"][field], runs[1]["chain"][field], atol=tol)
    for rows in runs:
        q, v = rows["chain"]["q"], rows["chain"]["v"]
        np.testing.assert_allclose(v[1:, 0], velocity(rows["t"][1:]), atol=1e-12)
        between = theta * q[1:] + (1 - theta) * q[:-1]
        needed = 2 * np.diff(v[:, 0]) / h + between @ K_CHAIN[0]
        np.testing.assert_allclose(rows["drive"]["lambda"][1:] / h, needed, atol=1e-7)
        np.testing.assert_allclose(rows["drive"]["ydot"], 0, atol=1e-12)


# --- laws between y and a force ----------------------------------------------------------------------------------------------------------
def spring(q, lam, z, out):
    out[0] = q[0] + z[0] * lam[0]


def spring_t(t, q, lam, z, out):
    out[0] = q[0] + z[0] * lam[0]


def straight(t, q, lam, z, out):
    out[0] = lam[0]


SPRING = 1e-2  # compliance; the mass is 1, so that omega = 10
SPRINGS = {
    "linear": nsds.lagrangian_linear_relation([[1.0]], D=[[SPRING]]),
    "compliant": nsds.compliant(spring, m=1, z=[SPRING]),
    "full": nsds.lagrangian_relation(spring_t, straight, m=1, z=[SPRING]),
}


def on_a_spring(relation, law, theta, h, t_end=0.4):
    ball = nsds.lagrangian_linear(M=[1.0], q=[0.0], v=[-1.0])
    system = nsds.system(ball=ball, spring=nsds.interaction(SPRINGS[relation], law, on="ball"))
    return nsds.simulate(system, t_end=t_end, h=h, scheme=nsds.moreau_jean(theta=theta))


@pytest.mark.parametrize("relation", SPRINGS)
@pytest.mark.parametrize("theta", [0.5, 0.7, 1.0])
def test_complementarity_with_compliance_is_a_one_sided_spring(relation, theta):
    """Half an oscillation, then free flight: at t = 0.4 the ball is back at ``q = 0.4 - pi / omega`` with v = 1."""
    errors, losses, steps = [], [], 0.01 / 2.0 ** np.arange(4)
    for h in steps:
        rows = on_a_spring(relation, nsds.complementarity(), theta, h)
        q, v, y, lam = rows["ball"]["q"][:, 0], rows["ball"]["v"][:, 0], rows["spring"]["y"], rows["spring"]["lambda"]
        np.testing.assert_allclose(np.diff(v), h * lam[1:], atol=1e-12)
        np.testing.assert_allclose(y[1:], np.maximum(q[1:], 0), atol=1e-11)
        np.testing.assert_allclose(lam[1:], np.maximum(-q[1:], 0) / SPRING, atol=1e-9)
        errors.append(abs(q[-1] - (0.4 - np.pi / 10)))
        losses.append(1 - v[-1] ** 2)
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert abs(orders - 1).max() < 0.3
    # each step in contact multiplies the energy by 1 / (1 + theta (h omega)^2), of which there are pi / (h omega)
    np.testing.assert_allclose(losses, theta * np.pi * 10 * steps, rtol=0.2)
    np.testing.assert_allclose(losses[-1], theta * np.pi * 10 * steps[-1], rtol=0.03)


@pytest.mark.parametrize("relation", SPRINGS)
def test_equality_with_compliance_is_a_spring(relation):
    h = 1e-3
    rows = on_a_spring(relation, nsds.equality(), 0.5, h)
    q, v, lam = rows["ball"]["q"][:, 0], rows["ball"]["v"][:, 0], rows["spring"]["lambda"]
    np.testing.assert_allclose(lam[1:], -q[1:] / SPRING, atol=1e-9)
    np.testing.assert_allclose(np.diff(v), h * lam[1:], atol=1e-12)
    np.testing.assert_allclose(q, -np.sin(10 * rows["t"]) / 10, atol=20 * h * 0.1)


def circle(t, q, z, out):
    out[0] = q[0] ** 2 + q[1] ** 2 - (z[0] + 0.1 * np.sin(t)) ** 2


@pytest.mark.parametrize("length", [1.0, 10.0, 1000.0])
def test_differences_of_a_gap_with_large_terms_do_not_stop_newtons_iteration(length):
    """Their rounding is that of ``length^2``; taken anew in each iterate it would be noise of the impulse, above newton_tol."""
    relation = nsds.rheonomous(circle, m=1, z=[length])
    body = nsds.lagrangian([1.0, 1.0], fext=[0.0, -9.81], q=[length, 0.0], v=[0.1, 0.0])
    rows = nsds.simulate(nsds.system(body=body, rod=nsds.interaction(relation, nsds.equality(), on="body")), t_end=1.0, h=0.01)
    assert rows["n_iter"].max() <= 5
    np.testing.assert_allclose(np.hypot(*rows["body"]["q"].T), length + 0.1 * np.sin(rows["t"]), atol=2e-3)


# --- control -----------------------------------------------------------------------------------------------------------------------------
T_CONST = np.array([[1.0, 0.5], [-0.3, 2.0]])


def T_function(q, z, out):
    out[0, 0] = 1.0 + q[0]
    out[0, 1] = 0.5
    out[1, 0] = np.sin(q[1])
    out[1, 1] = 2.0


def u_function(t, q, v, z, out):
    out[0] = np.cos(t) - 3 * q[0] - v[1]
    out[1] = 0.5 * q[1] * v[0]


def minus_u(t, q, v, z, out):
    out[0] = -0.7
    out[1] = 0.4


def minus_T_const_u(t, q, v, z, out):
    u0, u1 = np.cos(t) - 3 * q[0] - v[1], 0.5 * q[1] * v[0]
    out[0] = -u0 - 0.5 * u1
    out[1] = 0.3 * u0 - 2 * u1


def minus_T_u(t, q, v, z, out):
    u0, u1 = np.cos(t) - 3 * q[0] - v[1], 0.5 * q[1] * v[0]
    out[0] = -(1 + q[0]) * u0 - 0.5 * u1
    out[1] = -np.sin(q[1]) * u0 - 2 * u1


def minus_T_times_one(t, q, v, z, out):
    out[0] = -(1 + q[0]) * 0.7 + 0.2
    out[1] = -np.sin(q[1]) * 0.7 + 0.8


CONTROLS = {
    "u": ({"u": [0.7, -0.4]}, minus_u),
    "T, u(t, q, v)": ({"T": T_CONST, "u": u_function}, minus_T_const_u),
    "T(q), u": ({"T": T_function, "u": [0.7, -0.4]}, minus_T_times_one),
    "T(q), u(t, q, v)": ({"T": T_function, "u": u_function, "n_u": 2}, minus_T_u),
}


@pytest.mark.parametrize("theta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("control", CONTROLS)
def test_a_control_is_an_inner_force_of_the_other_sign(control, theta):
    given_control, inner = CONTROLS[control]
    runs = []
    for arguments in (given_control, {"fint": inner}):
        system = nsds.system(arm=nsds.lagrangian([1.0, 2.0], q=[0.5, -0.2], v=[1.0, 0.3], **arguments))
        runs.append(nsds.simulate(system, t_end=1.0, h=0.02, scheme=nsds.moreau_jean(theta=theta, newton_tol=TIGHT))["arm"])
    for field in "qv":
        np.testing.assert_allclose(runs[0][field], runs[1][field], atol=1e-9)


def hold(t, x, state, z, u):
    """PI control of the position, with the velocity fed back; x = (q, v)."""
    state[0] += 0.1 * x[0]
    u[0] = -z[0] * x[0] - 0.5 * x[1] - state[0] + 0.1 * u[0]


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_a_sampled_controller_reads_q_and_v_and_is_held_in_between(theta):
    h, every, m, k, T = 0.05, 2, 2.0, 3.0, 1.5
    system = nsds.system(
        cart=nsds.lagrangian([m], fint=three_times, q=[1.0], v=[-0.5], T=[[T]], u=[0.0]),
        controller=nsds.sampled_control(hold, reads="cart", writes="cart", period=every * h, state=[0.0], z=[4.0]),
    )
    rows = nsds.simulate(system, t_end=3.0, h=h, scheme=nsds.moreau_jean(theta=theta))
    q, v, u, state = 1.0, -0.5, np.zeros(1), np.zeros(1)
    for i, row in enumerate(rows):
        if i % every == 0:
            hold(i * h, np.array([q, v]), state, np.array([4.0]), u)
        np.testing.assert_allclose([*row["cart"]["q"], *row["cart"]["v"], *row["cart"]["u"]], [q, v, u[0]], atol=1e-9)
        v_new = v + (h * (T * u[0] - k * q) - h**2 * theta * k * v) / (m + h**2 * theta**2 * k)
        q, v = q + h * (theta * v_new + (1 - theta) * v), v_new
    again = nsds.simulate(nsds.restart(system, rows[17]), t_end=3.0, h=h, scheme=nsds.moreau_jean(theta=theta))
    assert again.tobytes() == rows[17:].tobytes()


def three_times(t, q, v, z, out):
    out[0] = 3 * q[0]


# --- invariants --------------------------------------------------------------------------------------------------------------------------
def kinetic(M, v):
    return 0.5 * np.einsum("...i,...ij,...j", v, M, v)


@examples(30)
@given(rng=generators)
def test_an_elastic_impact_on_a_curved_wall_keeps_the_kinetic_energy(rng):
    n, h = int(rng.integers(1, 4)), 1e-10
    z = np.concatenate([spd(rng, n).ravel(), np.zeros(n)])
    q, v = rng.normal(size=n), rng.normal(size=n)
    relation, law, link = random_interaction(rng, "newton_impact", "scleronomous", 1, True, q, np.arange(n))
    law["e"] = np.ones(1)
    relation["z"][-1] -= link["h"](0.0, q, np.zeros(1))[0]
    H = called(gap_H, 1, n)(q, relation["z"])
    v *= -np.sign(H @ v)
    system = nsds.system(body=nsds.lagrangian(mass, q=q, v=v, z=z), wall=nsds.interaction(relation, law, on="body"))
    rows = nsds.simulate(system, t_end=h, h=h)
    M = called(mass, n, n)(q, z)
    assert rows["wall"]["lambda"][-1] > 0
    np.testing.assert_allclose(rows["wall"]["ydot"][-1], -rows["wall"]["ydot"][0], rtol=1e-8)
    np.testing.assert_allclose(kinetic(M, rows["body"]["v"][-1]), kinetic(M, v), rtol=1e-9)


def impacts(rng, law, n_members, n, n_contacts, form="linear"):
    """(before, after, contact, M, H, parameters) of one step without forces of an ensemble of random bodies in contact."""
    H = np.eye(n)[: 2 * n_contacts] + 0.5 * rng.normal(size=(n_members, 2 * n_contacts, n))
    L = rng.normal(size=(n_members, n, n))
    M, v = L @ np.swapaxes(L, 1, 2) + 0.5 * np.eye(n), rng.normal(size=(n_members, n))
    e, mu = (rng.uniform(size=(n_members, n_contacts)) for _ in range(2))
    mu *= rng.choice([0.0, 0.3, 2.0], size=(n_members, 1))
    relation = nsds.lagrangian_linear_relation(np.zeros((2 * n_contacts, n)))
    if form == "newton":
        relation = nsds.scleronomous(linear, linear_H, m=2 * n_contacts, z=np.zeros(2 * n_contacts * n))
    zeros = np.zeros(n_contacts)
    chosen = nsds.fremond_impact(zeros, zeros) if law == "fremond" else nsds.newton_impact_friction(zeros, zeros, zeros)
    system = nsds.system(
        body=nsds.lagrangian_linear(np.eye(n), q=np.zeros(n), v=v[0]), contact=nsds.interaction(relation, chosen, on="body")
    )
    systems = np.repeat(system, n_members)
    e_t = np.ones_like(e) if law == "fremond" else rng.uniform(-1, 1, size=e.shape)
    one = (lambda x: x[:, 0]) if n_contacts == 1 else (lambda x: x)
    systems["body"]["M"], systems["body"]["v"] = M, v
    systems["contact"]["e_n"], systems["contact"]["e_t"], systems["contact"]["mu"] = one(e), one(e_t), one(mu)
    systems["contact"]["H" if form == "linear" else "z"] = H if form == "linear" else H.reshape(n_members, -1)
    return systems, M, H, e, e_t, mu


def linear(q, z, out):
    for i in range(out.size):
        out[i] = 0.0
        for j in range(q.size):
            out[i] += z[i * q.size + j] * q[j]


def linear_H(q, z, out):
    for i in range(out.shape[0]):
        for j in range(q.size):
            out[i, j] = z[i * q.size + j]


@pytest.mark.parametrize("form", ["linear", "newton"])
@pytest.mark.parametrize("law", ["fremond", "newton"])
@pytest.mark.parametrize(("n", "n_contacts"), [(2, 1), (3, 1), (6, 3)])
def test_impacts_with_friction_obey_their_law(n, n_contacts, law, form):
    """Coulomb's cone, opposition to sliding, sticking, restitution and momentum; Frémond's law gains no energy.

    The gaps are zero, so that only contacts that close are active: one that opens while it is still penetrated may gain energy.
    """
    systems, M, H, e, e_t, mu = impacts(np.random.default_rng(n), law, 400, n, n_contacts, form)
    rows = nsds.simulate(systems, t_end=1.0, h=1.0, scheme=nsds.moreau_jean(theta=0.0))
    assert (rows["status"] == 0).all()
    v = rows["body"]["v"]
    lam, active = rows["contact"]["lambda"][:, 1], rows["contact"]["active"][:, 1, 0::2] == 1
    np.testing.assert_allclose(np.einsum("mij,mj->mi", M, v[:, 1] - v[:, 0]), np.einsum("mij,mi->mj", H, lam), atol=1e-9)
    before, after = (np.einsum("mij,mj->mi", H, v[:, k]) for k in (0, 1))
    w_n, w_t = after[:, 0::2] + e * before[:, 0::2], after[:, 1::2] + e_t * before[:, 1::2]
    lam_n, lam_t = lam[:, 0::2], lam[:, 1::2]
    tol = 1e-7 * (1 + abs(lam).max())
    np.testing.assert_array_equal(active, before[:, 0::2] <= 0)
    assert (lam[~np.repeat(active, 2, axis=1)] == 0).all()
    assert lam_n.min() > -tol
    assert w_n[active].min() > -tol
    assert abs(np.minimum(w_n, lam_n))[active].max() < tol
    assert (abs(lam_t) - mu * lam_n).max() < tol
    slides = active & (abs(w_t) > 1e-4)
    np.testing.assert_allclose(lam_t[slides], (-mu * lam_n * np.sign(w_t))[slides], atol=tol)
    sticks = active & (abs(lam_t) < mu * lam_n - 1e-4)
    assert abs(w_t[sticks]).max() < tol
    assert min(slides.sum(), sticks.sum()) > 10
    if law == "fremond":
        assert (kinetic(M, v[:, 1]) - kinetic(M, v[:, 0])).max() < 1e-8


def test_newtons_restitution_with_friction_may_gain_energy_and_fremonds_law_does_not():
    """A rod that strikes the floor obliquely (Kane and Levinson 1985)."""
    angle, v = np.deg2rad(53.0), [-0.5, 0.1, -0.7]  # of a rod of length 2: height, sideways, turning
    M = np.diag([1.0, 1.0, 1 / 3])
    H = [[1.0, 0.0, np.cos(angle)], [0.0, 1.0, -np.sin(angle)]]
    gains = []
    for law in (nsds.newton_impact_friction(0.9, 0.65), nsds.fremond_impact(0.9, 0.65)):
        system = nsds.system(
            rod=nsds.lagrangian_linear(M, q=[0, 0, 0], v=v), floor=nsds.interaction(nsds.lagrangian_linear_relation(H), law, on="rod")
        )
        gains.append(float(np.diff(kinetic(M, nsds.simulate(system, t_end=1.0, h=1.0)["rod"]["v"]))[0]))
    assert gains[0] > 0.03
    assert gains[1] <= 0


def test_friction_is_equivariant():
    """Mirrored tangents, scaled masses, permuted contacts; without friction it is the impact law alone."""
    systems, *_ = impacts(np.random.default_rng(5), "newton", 100, 6, 3)
    systems["contact"]["mu"] *= 0.1  # so little that there is one solution only
    run = lambda systems: nsds.simulate(systems, t_end=1.0, h=1.0, scheme=nsds.moreau_jean(theta=0.0))[:, 1]  # noqa: E731
    expected = run(systems)
    tol = {"atol": 1e-7 * (1 + abs(expected["contact"]["lambda"]).max())}

    mirrored = systems.copy()
    mirrored["contact"]["H"][:, 1::2] *= -1
    rows = run(mirrored)
    np.testing.assert_allclose(rows["body"]["v"], expected["body"]["v"], **tol)
    np.testing.assert_allclose(rows["contact"]["lambda"] * [1, -1, 1, -1, 1, -1], expected["contact"]["lambda"], **tol)

    heavy = systems.copy()
    heavy["body"]["M"] *= 1e3
    rows = run(heavy)
    np.testing.assert_allclose(rows["body"]["v"], expected["body"]["v"], **tol)
    np.testing.assert_allclose(rows["contact"]["lambda"] / 1e3, expected["contact"]["lambda"], **tol)

    order, permuted = [2, 0, 1], systems.copy()
    both = np.add.outer(2 * np.array(order), [0, 1]).ravel()
    permuted["contact"]["H"] = systems["contact"]["H"][:, both]
    for field in ("e_n", "e_t", "mu"):
        permuted["contact"][field] = systems["contact"][field][:, order]
    rows = run(permuted)
    np.testing.assert_allclose(rows["body"]["v"], expected["body"]["v"], **tol)
    np.testing.assert_allclose(rows["contact"]["lambda"], expected["contact"]["lambda"][:, both], **tol)

    smooth = systems.copy()
    smooth["contact"]["mu"] = 0.0
    body = nsds.lagrangian_linear(np.eye(6), q=np.zeros(6), v=np.zeros(6))
    contact = nsds.interaction(nsds.lagrangian_linear_relation(np.zeros((3, 6))), nsds.newton_impact(np.zeros(3)), on="body")
    plain = np.repeat(nsds.system(body=body, contact=contact), 100)
    plain["body"]["M"], plain["body"]["v"] = systems["body"]["M"], systems["body"]["v"]
    plain["contact"]["H"], plain["contact"]["e"] = systems["contact"]["H"][:, 0::2], systems["contact"]["e_n"]
    np.testing.assert_allclose(run(smooth)["body"]["v"], run(plain)["body"]["v"], **tol)


def height(q, z, out):
    """Only the normal row of H is the gradient of this."""
    out[0], out[1] = q[0], 7.0


@pytest.mark.parametrize("form", ["linear", "newton"])
@pytest.mark.parametrize("mu", [0.2, 0.7])
def test_a_block_on_an_incline_slides_where_the_slope_is_steeper_than_friction(mu, form):
    angles, g, h = np.arctan(mu) + np.array([-0.1, -1e-3, 1e-3, 0.1]), 9.81, 0.01
    relation = (
        nsds.lagrangian_linear_relation(np.eye(2)) if form == "linear" else nsds.scleronomous(height, linear_H, m=2, z=np.eye(2).ravel())
    )
    block = nsds.lagrangian_linear([2.0, 2.0], fext=[0, 0], q=[0, 0], v=[0, 0])
    systems = np.repeat(nsds.system(block=block, plane=nsds.interaction(relation, nsds.newton_impact_friction(0.0, mu), on="block")), 4)
    systems["block"]["fext"] = 2 * g * np.column_stack([-np.cos(angles), np.sin(angles)])
    rows = nsds.simulate(systems, t_end=1.0, h=h)
    acceleration = np.maximum(g * (np.sin(angles) - mu * np.cos(angles)), 0)
    np.testing.assert_allclose(rows["block"]["v"][:, :, 1], np.outer(acceleration, rows["t"][0]), atol=1e-9)
    np.testing.assert_allclose(rows["plane"]["lambda"][:, 1:, 0], np.outer(2 * g * h * np.cos(angles), np.ones(100)), atol=1e-10)
    friction = 2 * (acceleration - g * np.sin(angles)) * h
    np.testing.assert_allclose(rows["plane"]["lambda"][:, 1:, 1], np.outer(friction, np.ones(100)), atol=1e-10)


# --- convergence -------------------------------------------------------------------------------------------------------------------------
def weight_of_pendulum(t, q, v, z, out):
    out[0] = 9.81 * np.sin(q[0])


def arms(q, z, out):
    """Mass of a double pendulum of unit masses and lengths, in absolute angles."""
    out[0, 0], out[1, 1] = 2.0, 1.0
    out[0, 1] = out[1, 0] = np.cos(q[0] - q[1])


def arms_gyr(q, v, z, out):
    out[0] = np.sin(q[0] - q[1]) * v[1] ** 2
    out[1] = -np.sin(q[0] - q[1]) * v[0] ** 2


def arms_weight(t, q, v, z, out):
    out[0] = 2 * 9.81 * np.sin(q[0])
    out[1] = 9.81 * np.sin(q[1])


def errors_against(system, part, exact, t_end, steps, scheme):
    return [abs(nsds.simulate(system, t_end=t_end, h=t_end / n, scheme=scheme)[part]["q"][-1] - exact).max() for n in steps]


@pytest.mark.parametrize(("theta", "q_star", "order"), [(0.0, 0.0, 1), (0.5, 0.0, 1), (0.5, 0.5, 2), (0.5, 1.0, 1), (1.0, 1.0, 1)])
def test_order_of_convergence_of_a_double_pendulum(theta, q_star, order):
    """Order 2 wants theta = q_star = 1/2: the mass at an end of the step is a one-sided rule."""
    M, gyr, heavy = called(arms, 2, 2), called(arms_gyr, 2), called(arms_weight, 2)

    def rate(t, x):
        return [*x[2:], *np.linalg.solve(M(x[:2], None), -gyr(x[:2], x[2:], None) - heavy(t, x[:2], x[2:], None))]

    exact = solve_ivp(rate, (0, 1), [0.5, 1.0, 0.0, 0.5], rtol=1e-12, atol=1e-12).y[:2, -1]
    system = nsds.system(arms=nsds.lagrangian(arms, arms_weight, arms_gyr, q=[0.5, 1.0], v=[0.0, 0.5]))
    errors = errors_against(system, "arms", exact, 1.0, [200, 400, 800], nsds.moreau_jean(theta=theta, q_star=q_star))
    assert abs(np.log2(np.divide(errors[:-1], errors[1:])) - order).max() < 0.2


@pytest.mark.parametrize(("theta", "order"), [(0.5, 2), (1.0, 1)])
def test_order_of_convergence_of_a_pendulum_is_one_across_an_impact(theta, order):
    swing_by = lambda t, x: [x[1], -9.81 * np.sin(x[0])]  # noqa: E731
    hit = lambda t, x: x[0] + 0.3  # noqa: E731
    hit.terminal = True
    free = solve_ivp(swing_by, (0, 1), [1.0, 0.0], rtol=1e-12, atol=1e-12).y[0, -1]
    first = solve_ivp(swing_by, (0, 1), [1.0, 0.0], rtol=1e-12, atol=1e-12, events=hit)
    rest = solve_ivp(swing_by, (first.t[-1], 1), [-0.3, -0.8 * first.y[1, -1]], rtol=1e-12, atol=1e-12).y[0, -1]
    pendulum = nsds.lagrangian([1.0], weight_of_pendulum, q=[1.0], v=[0.0])
    wall = nsds.interaction(nsds.scleronomous(wall_at, m=1), nsds.newton_impact(0.8), on="pendulum")
    scheme = nsds.moreau_jean(theta=theta)
    errors = errors_against(nsds.system(pendulum=pendulum), "pendulum", free, 1.0, [200, 400, 800], scheme)
    assert abs(np.log2(np.divide(errors[:-1], errors[1:])) - order).max() < 0.1
    # where in a step the impact falls is as good as random: the order is that of a fit
    steps = np.round(100 * 1.3 ** np.arange(16)).astype(int)
    errors = errors_against(nsds.system(pendulum=pendulum, wall=wall), "pendulum", rest, 1.0, steps, scheme)
    slope_of_fit = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert 0.7 < slope_of_fit < 1.4


def wall_at(q, z, out):
    out[0] = q[0] + 0.3


# --- failures, restarts, ensembles -------------------------------------------------------------------------------------------------------
def fading(q, z, out):
    out[0, 0] = 1 - q[0]


def root(t, q, v, z, out):
    out[0] = np.sqrt(1 - q[0])


def root_of_q(q, z, out):
    out[0, 0] = np.sqrt(1 - q[0])


def gap_until_one(q, z, out):
    out[0] = 5 - np.sqrt(1 - q[0])


def slope_until_one(q, z, out):
    out[0, 0] = np.sqrt(1 - q[0])


def always_closed(q, z, out):
    out[0] = -1.0 + 0 * q[0]


def stiff(t, q, v, z, out):
    out[0] = 1e6 * np.sin(1e3 * q[0])


def flat(t, q, v, z, out):
    out[0, 0] = 0.0


def failure(t_end=2.0, scheme=None, **parts):
    with pytest.raises(nsds.SimulationError) as error:
        nsds.simulate(nsds.system(**parts), t_end=t_end, h=0.01, scheme=scheme)
    return error.value


def moving_to_one(**arguments):
    return nsds.lagrangian(**{"mass": [1.0], "q": [0.0], "v": [1.0]} | arguments)


def test_a_mass_that_is_not_definite_on_the_way_is_named():
    error = failure(body=moving_to_one(mass=fading))
    assert error.status == NOT_DEFINITE
    assert 0.9 < error.trajectory["body"]["q"][-1, 0] < 1.1
    assert "mass matrix is not positive definite" in str(error)


def test_a_newton_iteration_that_does_not_converge_is_named():
    error = failure(body=moving_to_one(fint=stiff, jac_q=flat))
    assert error.status == NEWTON
    assert "newton_max_iter" in str(error)
    limited = nsds.simulate(nsds.system(body=moving_to_one(fint=swing)), t_end=2.0, h=0.01, scheme=nsds.moreau_jean(newton_max_iter=1))
    assert (limited["status"][1:] == np.where(limited["residual"][1:] <= 1e-10, 0, INEXACT)).all()
    assert (limited["status"] == INEXACT).any()
    once = nsds.moreau_jean(newton_max_iter=1, newton_tol=np.inf)
    assert (nsds.simulate(nsds.system(body=moving_to_one(fint=swing)), t_end=1.0, h=0.01, scheme=once)["n_iter"][1:] == 1).all()


@pytest.mark.parametrize("field", ["fint", "mass", "u", "h", "H"])
def test_a_function_that_gives_nan_is_named_with_its_part(field):
    function = {"fint": root, "u": root, "mass": root_of_q, "h": gap_until_one, "H": slope_until_one}[field]
    body = moving_to_one(**{field: function} if field in ("fint", "mass", "u") else {})
    wall = {}
    if field in "hH":
        h = gap_until_one if field == "h" else always_closed
        relation = nsds.scleronomous(h, slope_until_one if field == "H" else None, m=1)
        wall = {"wall": nsds.interaction(relation, nsds.newton_impact(1.0), on="body")}
    if field == "fint":
        body = moving_to_one(fint=root, v=[2.0])
    if field == "H":
        body = moving_to_one(fext=[9.0])
    error = failure(body=body, **wall)
    assert error.status == NON_FINITE
    assert f"{field} of {'interaction' if wall else 'part'} '{'wall' if wall else 'body'}'" in str(error)
    assert function.__name__ in str(error)


def slope_of_root(t, q, v, z, out):
    out[0, 0] = np.sqrt(1 - q[0])


@pytest.mark.parametrize("field", ["jac_q", "jac_v"])
def test_a_jacobian_that_gives_nan_is_named(field):
    error = failure(body=moving_to_one(fint=swing, v=[3.0], **{field: slope_of_root}))
    assert error.status == NON_FINITE
    assert f"{field} of part 'body'" in str(error)


@pytest.mark.parametrize(("mass", "count"), [([-1.0], None), ([[1.0, 2.0], [2.0, 1.0]], None), ([[2.0, 0.0], [0.0, 0.0]], 3)])
def test_a_mass_of_numbers_is_definite(mass, count):
    with pytest.raises(ValueError, match="lagrangian: mass must be positive definite"):
        nsds.lagrangian(mass, q=np.zeros(len(mass)), v=np.zeros(len(mass)), count=count)


def test_what_does_not_fit_is_refused():
    part = nsds.lagrangian([1.0], q=[0.0], v=[0.0])
    one = nsds.scleronomous(linear, m=1, z=[1.0])
    full = nsds.lagrangian_relation(spring_t, straight, m=1, z=[SPRING])
    with pytest.raises(ValueError, match="newton_impact_friction wants 2 constraints for each contact, the normal first, got 1"):
        nsds.system(body=part, c=nsds.interaction(one, nsds.newton_impact_friction(0.0, 0.5), on="body"))
    with pytest.raises(ValueError, match="lagrangian_relation wants one of the laws complementarity, equality, got newton_impact"):
        nsds.simulate(nsds.system(body=part, c=nsds.interaction(full, nsds.newton_impact(0.0), on="body")), t_end=1.0, h=0.1)
    with pytest.raises(ValueError, match="prescribed_velocity wants one of the laws dry_friction, equality, relay, got newton_impact"):
        nsds.simulate(
            nsds.system(body=part, c=nsds.interaction(nsds.prescribed_velocity([0]), nsds.newton_impact(0.0), on="body")), t_end=1.0, h=0.1
        )
    for relation in SPRINGS.values():
        system = nsds.system(body=part, c=nsds.interaction(relation, nsds.complementarity(), on="body"))
        with pytest.raises(ValueError, match="theta = 0 cannot treat; raise theta"):
            nsds.simulate(system, t_end=1.0, h=0.1, scheme=nsds.moreau_jean(theta=0.0))
    with pytest.raises(ValueError, match="interaction 'drive': dofs must be below 1"):
        nsds.system(body=part, drive=nsds.interaction(nsds.prescribed_velocity([1]), nsds.equality(), on="body"))
    with pytest.raises(ValueError, match=r"q must have shape \(2,\)"):
        nsds.lagrangian(np.eye(2), q=[0.0], v=[0.0])
    with pytest.raises(ValueError, match="mass must have shape"):
        nsds.lagrangian(np.ones((2, 3)), q=[0, 0, 0], v=[0, 0, 0])
    with pytest.raises(ValueError, match="symmetric"):
        nsds.lagrangian([[1.0, 0.5], [0.0, 1.0]], q=[0, 0], v=[0, 0])
    with pytest.raises(ValueError, match="T must have shape"):
        nsds.lagrangian([1.0], q=[0.0], v=[0.0], T=np.eye(2), u=[0, 0])
    with pytest.raises(ValueError, match="n_u, the length of u, must be given"):
        nsds.lagrangian([1.0, 1.0], q=[0, 0], v=[0, 0], T=T_function, u=u_function)
    with pytest.raises(TypeError, match=r"fint\(t, q, v, z, out\)"):
        nsds.lagrangian([1.0], fint=fgyr, q=[0.0], v=[0.0])
    with pytest.raises(ValueError, match="out of bounds"):
        nsds.system(body=nsds.lagrangian([1.0], fint=chain_force, q=[0.0], v=[0.0]))


@pytest.mark.parametrize(("field", "value"), [("e_n", 1.1), ("e_t", -1.5), ("mu", -0.1)])
def test_parameters_that_were_assigned_out_of_their_range_are_refused(field, value):
    contact = nsds.interaction(nsds.scleronomous(linear, m=2, z=np.eye(2).ravel()), nsds.newton_impact_friction(0.5, 0.3, 0.1), on="body")
    system = nsds.system(body=nsds.lagrangian([1.0, 1.0], q=[0, 0], v=[0, 0]), contact=contact)
    system["contact"][field] = value
    with pytest.raises(ValueError, match=rf"contact\.{field} must be (in \[|finite and at least)"):
        nsds.simulate(system, t_end=1.0, h=0.1)


def hybrid(rng):
    """A system with every kind of relation: contacts with friction, a joint and a spring that acts one way, between two parts."""
    part, _ = random_part(rng, 3, False)
    q = np.concatenate([part["q"], [0.0]])
    parts = {"body": nsds.lagrangian(**part), "other": nsds.lagrangian([2.0], fint=swing, q=[0.0], v=[0.5])}
    kinds = {"ground": ("newton_impact_friction", "rheonomous", 1), "stop": ("newton_impact", "compliant", 2),
             "spring": ("complementarity", "lagrangian_relation", 1)}  # fmt: skip
    for name, (law, relation, n_contacts) in kinds.items():
        relation, law, _ = random_interaction(rng, law, relation, n_contacts, False, q, np.arange(4))
        parts[name] = nsds.interaction(relation, law, on=("body", "other"))
    return nsds.system(**parts)


@pytest.mark.parametrize("q_star", [0.0, 0.5, 1.0])
def test_restarts_and_ensembles_give_the_same_bits(q_star):
    rng = np.random.default_rng(5)
    options = {"t_end": 0.6, "h": 0.02, "scheme": nsds.moreau_jean(q_star=q_star)}
    systems = np.repeat(hybrid(rng), 4)
    systems["body"]["z"] *= rng.uniform(0.9, 1.1, size=(4, 1))
    systems["ground"]["mu"], systems["ground"]["e_n"] = rng.uniform(size=(2, 4))
    systems["stop"]["e"] = rng.uniform(size=(4, 2))
    systems["spring"]["z"][:, -1] -= rng.uniform(0, 0.1, size=4)
    together = nsds.simulate(systems, **options)
    for name in ("ground", "stop", "spring"):
        assert (together[name]["lambda"][:, 1:] != 0).any()
    for member, system in enumerate(systems):
        assert nsds.simulate(system, **options).tobytes() == together[member].tobytes()
    for row in (1, 7, 16, 29):
        again = nsds.simulate(nsds.restart(systems[1], together[1, row]), **options)
        assert again.tobytes() == together[1, row:].tobytes()
