"""One step of rigid bodies by the theta method or generalised-alpha, in plain NumPy: quaternions by their definition, differences.

It shares no code with the package but its solver of small contact problems, which has tests of its own. Forces, relations and contacts
are Python functions of (t, q, v); the Jacobian of a relation is its difference quotient along motions with constant twists.
"""

import math
from typing import NamedTuple

import numpy as np
from hypothesis import reject

from nsds import solvers


class Body(NamedTuple):
    """Mass, inertia (3, 3) in axes of the body, and force and moment ``wrench(t, q, v)`` (6,), without the gyroscopic moment."""

    mass: float
    inertia: np.ndarray
    wrench: object


class Equations(NamedTuple):
    """``y(t, q_a, q_b)`` (m,) whose rate is zero; b is None for the world."""

    a: int
    b: int
    y: object


class Contact(NamedTuple):
    """``gap(q_a, q_b) = (y, point, normal)``, and its law; mu_r: of rolling friction."""

    a: int
    b: int
    gap: object
    e_n: float
    mu: float
    e_t: float = 0.0
    mu_r: float = 0.0


class Options(NamedTuple):
    h: float
    theta: float = 0.5
    gamma: float = 0.5
    q_star: float = 1.0
    linear: bool = False
    explicit: bool = False


def product(p, q):
    """Hamilton's product; in floats, which take a twentieth of the time of arrays so short."""
    (a, b, c, d), (e, f, g, h) = np.asarray(p).tolist(), np.asarray(q).tolist()
    return np.array(
        [a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g, a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e]
    )


def matrix(p):
    """``x -> p x p*`` as a matrix: ``(p0^2 - u.u) 1 + 2 u u^T + 2 p0 u~``."""
    (p0, a, b, c), u = p, p[1:]
    return (p0 * p0 - u @ u) * np.eye(3) + 2 * np.outer(u, u) + 2 * p0 * np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]])


def moved(q, v, t, linear=False):
    """The configuration after a time t with the constant twist v; or along the tangent, then normalised."""
    half = t * v[3:] / 2
    angle = np.linalg.norm(half)
    if linear:
        p = q[3:] + product(q[3:], np.array([0.0, *half]))
        p = p / np.linalg.norm(p)
    else:
        p = product(q[3:], np.array([math.cos(angle), *(np.sinc(angle / math.pi) * half)]))
    return np.concatenate([q[:3] + t * v[:3], p])


def masses(bodies):
    """Mass matrix of all bodies, (6 n, 6 n)."""
    M = np.zeros((6 * len(bodies), 6 * len(bodies)))
    for i, body in enumerate(bodies):
        M[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = np.diag([*[body.mass] * 3, 0, 0, 0])
        M[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] = body.inertia
    return M


def forces(bodies, t, q, v):
    """Force and moment of all bodies, with ``I Omega × Omega``, (6 n,)."""
    gyroscopic = [np.concatenate([np.zeros(3), np.cross(body.inertia @ w[3:], w[3:])]) for body, w in zip(bodies, v, strict=True)]
    return np.concatenate([body.wrench(t, x, w) + g for body, x, w, g in zip(bodies, q, v, gyroscopic, strict=True)])


def slope(function, x, step=1e-6):
    """Central differences, one column for each variable."""
    return np.column_stack([(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(x.size)])


def rows_of(relation, t, q):
    """H (m, 6 n) of a relation: the rate of y while the bodies move with constant twists."""
    bodies = [body for body in (relation.a, relation.b) if body is not None]

    def y(w):
        places = [moved(q[body], w[6 * i : 6 * i + 6], 1.0) for i, body in enumerate(bodies)]
        return np.atleast_1d(relation.y(t, *places, *[None] * (2 - len(bodies))))

    D = slope(y, np.zeros(6 * len(bodies)), 1e-5)
    H = np.zeros((len(D), 6 * len(q)))
    for i, body in enumerate(bodies):
        H[:, 6 * body : 6 * body + 6] = D[:, 6 * i : 6 * i + 6]
    return H


def rate_of(relation, t, q, step=1e-6):
    """What the rate of y is while the bodies rest."""
    places = [q[relation.a], None if relation.b is None else q[relation.b]]
    return np.atleast_1d((relation.y(t + step, *places) - relation.y(t - step, *places)) / (2 * step))


def frame_of(normal):
    """Normal and tangents by rows, which vary smoothly with it but where z is -1e-6 (Duff et al. 2017)."""
    x, y, z = normal
    sign = np.copysign(1.0, z + 1e-6)
    a = 1.0 / (sign + z)
    return np.array([[x, y, z], [1 - sign * x * x * a, -sign * x * y * a, -sign * x], [-x * y * a, sign - y * y * a, -y]])


def rows_of_contact(contact, q):
    """(gap, H (5, 6 n)): velocity of a against b at the contact point, normal first, on the tangents; angular one about these."""
    gap, point, normal = contact.gap(q[contact.a], None if contact.b is None else q[contact.b])
    frame = frame_of(normal)
    H = np.zeros((5, 6 * len(q)))
    for body, sign in ((contact.a, 1.0), (contact.b, -1.0)):
        if body is not None:
            lever, R = point - q[body][:3], matrix(q[body][3:])
            turning = np.column_stack([np.cross(R[:, k], lever) for k in range(3)])
            H[:3, 6 * body : 6 * body + 6] = sign * frame @ np.hstack([np.eye(3), turning])
            H[3:, 6 * body + 3 : 6 * body + 6] = sign * frame[1:] @ R
    return gap, H


def step(bodies, equations, contacts, t, q, v, options, n_iter=60):
    """(q, v, p) after a step from t: p (n, 6) the impulses of relations and contacts, moments in axes of the bodies.

    ``M (v - v_k) - h theta F(t_{k+1}, q(v), v) - h (1 - theta) F_k = H(q~)^T r`` with ``H(qbar) v = 0``, q~ at ``max(1/2, theta)`` of the
    way to qbar, and the laws of the contacts that are forecast, with H(q_k); repeated linearisation for velocities until nothing changes.
    """
    o, n = options, len(bodies)
    theta_end, q_star = (0.0, 0.0) if o.explicit else (o.theta, o.q_star)
    M = masses(bodies)
    v_old = np.concatenate(v)
    F_old = forces(bodies, t, q, v)
    active, q_bar = [], q
    for contact in contacts:
        y, G = rows_of_contact(contact, q)
        if y + o.gamma * o.h * (G @ v_old)[0] <= 0:
            active.append((contact, G))

    def places(w, weight):
        return [moved(x, o.theta * w[6 * i : 6 * i + 6] + (1 - o.theta) * v[i], weight * o.h, o.linear) for i, x in enumerate(q)]

    def free_residual(w):
        F_new = forces(bodies, t + o.h, places(w, 1.0), w.reshape(-1, 6)) if theta_end else 0.0
        return M @ (w - v_old) - o.h * theta_end * F_new - o.h * (1 - theta_end) * F_old

    w, p = v_old, np.zeros(6 * n)
    for _ in range(n_iter):
        q_bar = places(w, q_star) if q_star else q
        H = np.vstack([rows_of(relation, t + o.h, q_bar) for relation in equations] or [np.zeros((0, 6 * n))])
        rate = np.concatenate([rate_of(relation, t + o.h, q_bar) for relation in equations] or [np.zeros(0)])
        before = max(0.5, o.theta) * q_star
        q_press, t_press = places(w, before) if q_star else q, t + o.h - (q_star - before) * o.h
        H_press = np.vstack([rows_of(relation, t_press, q_press) for relation in equations] or [np.zeros((0, 6 * n))])
        inverse = np.linalg.inv(slope(free_residual, w))
        free = w - inverse @ free_residual(w)
        new, p = with_impulses(free, inverse, H, rate, active, [G @ v_old for _, G in active], H_press)
        change, w = abs(new - w).max(), new
        if change < 1e-10 * (1 + abs(w).max()):
            break
    return places(w, 1.0), list(w.reshape(-1, 6)), p.reshape(-1, 6)


def with_impulses(free, inverse, H, rate, active, before, H_press=None):
    """(velocities, impulses): ``w = free + M_hat^-1 p`` under the equations H w + rate = 0 and the laws of the contacts.

    before: velocities of the contacts before the impact; H_press: the H with which equations act, where it is another one.
    """
    P = H.T if H_press is None else H_press.T
    pinv = np.linalg.pinv(H @ inverse @ P, rcond=1e-9) if len(H) else np.zeros((0, 0))
    projected = inverse - inverse @ P @ pinv @ H @ inverse
    held = free - inverse @ P @ pinv @ (H @ free + rate)
    impulse = -P @ pinv @ (H @ free + rate)
    if active:
        G = np.vstack([rows for _, rows in active])
        e = np.concatenate([[c.e_n, c.e_t, c.e_t, 0.0, 0.0] for c, _ in active])
        W, b = G @ projected @ G.T, G @ held + e * np.concatenate(before)
        coefficients = (np.array([getattr(c, name) for c, _ in active]) for name in ("mu", "mu_r"))
        solution = solvers.solve_rfc3d(W, b, *coefficients, tol=1e-11, on_failure="continue")
        if not solution.success:  # a guide may jam, which no impulses by these laws explain
            reject()
        r = solution.r
        impulse = impulse + G.T @ r - P @ pinv @ H @ inverse @ G.T @ r
    return free + inverse @ impulse, impulse


def rows_and_rates(equations, t, q):
    """H and rate of all equations."""
    H = np.vstack([rows_of(relation, t, q) for relation in equations] or [np.zeros((0, 6 * len(q)))])
    return H, np.concatenate([rate_of(relation, t, q) for relation in equations] or [np.zeros(0)])


def start_accelerations(bodies, equations, t, q, v, s=1e-3):
    """``M a = F + H^T lambda`` with the second derivative of all y zero, by differences of the fourth order along the motion with v."""
    M, F = masses(bodies), forces(bodies, t, q, v)
    H, _ = rows_and_rates(equations, t, q)

    def y(at):
        return outputs(equations, t + at, [moved(x, w, at) for x, w in zip(q, v, strict=True)])

    curvature = (16 * (y(s) + y(-s)) - (y(2 * s) + y(-2 * s)) - 30 * y(0.0)) / (12 * s * s)
    free, inverse = np.linalg.solve(M, F), np.linalg.inv(M)
    return with_impulses(free, inverse, H, curvature, [], [])[0]


def outputs(equations, t, q):
    """y of all equations."""
    return np.concatenate(
        [np.atleast_1d(each.y(t, q[each.a], None if each.b is None else q[each.b])) for each in equations] or [np.zeros(0)]
    )


def alpha_step(bodies, equations, contacts, t, q, v, accelerations, h, rho, n_iter=60):
    """(q, v, p, accelerations) after a step of generalised-alpha: motion, positions, impulses; accelerations: (a, A), (6 n,) each."""
    a, A = accelerations
    alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma = 0.5 + alpha_f - alpha_m
    beta = 0.25 * (gamma + 0.5) ** 2
    M, v_old, ratio = masses(bodies), np.concatenate(v), (1 - alpha_f) / (1 - alpha_m)
    inverse, n = np.linalg.inv(M), len(bodies)

    def new_A(a_new):
        return ((1 - alpha_f) * a_new + alpha_f * a - alpha_m * A) / (1 - alpha_m)

    def velocities(a_new):
        return v_old + h * ((1 - gamma) * A + gamma * new_A(a_new))

    def places(a_new):
        way = h * v_old + h * h * ((0.5 - beta) * A + beta * new_A(a_new))
        return [moved(x, way[6 * i : 6 * i + 6], 1.0) for i, x in enumerate(q)]

    a_new, force = a, np.zeros(6 * n)
    for _ in range(n_iter):  # M a = F + H^T lambda with H v + rate = 0, linearised in a

        def free_residual(x):
            return M @ x - forces(bodies, t + h, places(x), velocities(x).reshape(-1, 6))

        H, rate = rows_and_rates(equations, t + h, places(a_new))
        hat = np.linalg.inv(slope(free_residual, a_new, 1e-4))
        free, weight = a_new - hat @ free_residual(a_new), h * gamma * ratio
        known = (H @ velocities(np.zeros(6 * n)) + rate) / weight
        new, force = with_impulses(free, hat, H, known, [], [])
        change, a_new = abs(new - a_new).max(), new
        if change < 1e-8 * (1 + abs(new).max()):  # H comes from differences, with as much noise
            break
    closed = np.array([rows_of_contact(contact, places(a_new))[0] <= 1e-9 for contact in contacts], bool)
    q_new, w = projected(inverse, equations, contacts, t + h, places(a_new)), velocities(a_new)
    smooth = [contact._replace(mu=0.0, mu_r=0.0) for contact in contacts]
    ends = [jump(inverse, equations, each, closed, t + h, q_new, w, q, v_old)[0] for each in (contacts, smooth)]
    way = h / 2 * (ends[0] - ends[1])
    if abs(way).max() > 0:  # what friction does in the step
        q_new = [moved(x, way[6 * i : 6 * i + 6], 1.0) for i, x in enumerate(q_new)]
        q_new = projected(inverse, equations, contacts, t + h, q_new)
    w, p = jump(inverse, equations, contacts, closed, t + h, q_new, w, q, v_old)
    return q_new, list(w.reshape(-1, 6)), (h * force + p).reshape(-1, 6), (a_new, new_A(a_new))


def jump(inverse, equations, contacts, closed, t, q, w, q_old, v_old):
    """(velocities, impulses) after the impulses of the equations and of the contacts that are closed at q. In/out: closed."""
    H, rate = rows_and_rates(equations, t, q)
    active, before = [], []
    for i, contact in enumerate(contacts):
        y, G = rows_of_contact(contact, q)
        closed[i] |= y <= 1e-9
        if closed[i]:
            active.append((contact, G))
            before.append(rows_of_contact(contact, q_old)[1] @ v_old)
    return with_impulses(w, inverse, H, rate, active, before)


def projected(inverse, equations, contacts, t, q, tol=1e-13):
    """Positions on the equations and out of the contacts, by ``M^-1 H^T nu`` of the last positions."""
    listed = np.zeros(len(contacts), bool)
    for _ in range(50):
        y, gaps = outputs(equations, t, q), [rows_of_contact(contact, q) for contact in contacts]
        open_by = np.array([gap for gap, _ in gaps])
        if max(abs(y).max(initial=0.0), (-open_by).max(initial=0.0)) <= tol:
            break
        H, _ = rows_and_rates(equations, t, q)
        listed |= open_by < 0
        G = np.vstack([rows[:1] for (_, rows), each in zip(gaps, listed, strict=True) if each] or [np.zeros((0, 6 * len(q)))])
        pinv = np.linalg.pinv(H @ inverse @ H.T, rcond=1e-9) if len(H) else np.zeros((0, 0))
        moves = inverse - inverse @ H.T @ pinv @ H @ inverse
        way = -inverse @ H.T @ pinv @ y
        if len(G):
            nu = solvers.solve_lcp(G @ moves @ G.T, G @ way + open_by[listed]).z
            way = way + moves @ G.T @ nu
        q = [moved(x, way[6 * i : 6 * i + 6], 1.0) for i, x in enumerate(q)]
    return q


def d1_step(bodies, equations, contacts, t, q, v, h, s=1e-3):
    """(q, v) after a step of the D1- scheme, accelerations being what forces keep from going below zero; contacts without friction."""
    inverse, w = np.linalg.inv(masses(bodies)), np.concatenate(v)

    def curvature(rates):
        return (8 * (rates(s) - rates(-s)) - (rates(2 * s) - rates(-2 * s))) / (12 * s)

    def accelerations(t, q, w, closed):
        """With the forces of equations and of the contacts in closed that do not open."""

        def along(rates):
            return curvature(lambda way: rates(t + way, [moved(x, w[6 * i : 6 * i + 6], way) for i, x in enumerate(q)]))

        def rates_of_equations(t, q):
            H, rate = rows_and_rates(equations, t, q)
            return H @ w + rate

        pressed, bent = [], []
        for contact in closed:
            _, G = rows_of_contact(contact, q)
            if (G @ w)[0] <= 1e-10:
                pressed.append((contact._replace(e_n=1.0, mu=0.0), G))
                bent.append(along(lambda _, q, contact=contact: rows_of_contact(contact, q)[1] @ w))
        free = inverse @ forces(bodies, t, q, w.reshape(-1, 6))
        H, _ = rows_and_rates(equations, t, q)
        return with_impulses(free, inverse, H, along(rates_of_equations), pressed, bent)[0]

    def touch(contact, q):
        return rows_of_contact(contact, q)[0] <= 1e-9

    at_start = [contact for contact in contacts if touch(contact, q)]
    a = accelerations(t, q, w, at_start)
    w_star = w + h * a
    q_new = [moved(x, 0.5 * (w + w_star)[6 * i : 6 * i + 6], h) for i, x in enumerate(q)]
    a_new = accelerations(t + h, q_new, w_star, [contact for contact in at_start if touch(contact, q_new)])
    w_minus = w + 0.5 * h * (a + a_new)
    H, rate = rows_and_rates(equations, t + h, q_new)
    struck = [(contact._replace(mu=0.0), rows_of_contact(contact, q_new)[1]) for contact in contacts if touch(contact, q_new)]
    w_new, _ = with_impulses(w_minus, inverse, H, rate, struck, [G @ w_minus for _, G in struck])
    return q_new, list(w_new.reshape(-1, 6))
