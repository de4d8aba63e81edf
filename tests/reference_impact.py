"""Slow twins of laws of impacts: of multiple impacts in the impulse form of the papers, and in deformations by SciPy; Poisson's."""

import numpy as np
from scipy.integrate import solve_ivp


def impulse_form(W, u, stiffness, exponent, e, dP):
    """March in the impulse of the primary contact: the one with the largest energy. Error of first order in dP.

    ``dP_j/dP_i = (K_j/K_i)^(1/(eta+1)) (E_j/E_i)^(eta/(eta+1))``, ``dE_j = -u_j dP_j``, divided by e_j^2 where u_j > 0. At the start, where
    all energies vanish, the limit ``(K_j/K_i) (u_j/u_i)^eta`` for approaching contacts.
    """
    u, P, E = np.array(u, float), np.zeros(len(u)), np.zeros(len(u))
    while (E > 0).any() or (u < -1e-9).any():
        if (E > 0).any():
            i = E.argmax()
            share = (stiffness / stiffness[i]) ** (1 / (exponent + 1)) * (E / E[i]) ** (exponent / (exponent + 1))
        else:
            i = u.argmin()
            share = stiffness / stiffness[i] * np.maximum(u / u[i], 0.0) ** exponent
        new_u = u + W @ share * dP
        mean = 0.5 * (u + new_u)  # of the step, so that energy is not lost by its size
        E = np.maximum(E - np.where(mean > 0, mean / e**2, mean) * share * dP, 0.0)
        P, u = P + share * dP, new_u
    return u, P


def deformation_form(W, u, stiffness, exponent, e, tol=1e-10):
    """Integrate ``(P, D, absorbed, released)`` from switch to switch. Returns (u, P, work absorbed, work released) of the contacts.

    e > 0. A contact is "closing" (rate -u), "opening" (rate -u/e^2) or "idle".
    """
    W, n = np.asarray(W), len(u)
    state, mode = np.zeros(4 * n), ["closing" if x < -1e-13 else "idle" for x in u]

    def velocity(y):
        return u + W @ y[:n]

    def slope(s, y):
        now, rate = velocity(y), np.zeros(n)
        force = stiffness * np.sign(y[n : 2 * n]) * abs(y[n : 2 * n]) ** exponent * [m != "idle" for m in mode]
        for j in range(n):
            rate[j] = 0.0 if mode[j] == "idle" else -now[j] / (e[j] ** 2 if mode[j] == "opening" else 1.0)
        return np.concatenate([force, rate, np.maximum(-force * now, 0.0), np.maximum(force * now, 0.0)])

    def switch(j, wanted):
        def event(s, y):
            return y[n + j] if wanted == "idle" else velocity(y)[j] + (1e-12 if wanted == "closing" else -1e-12)

        event.terminal, event.direction, event.contact, event.mode = True, 1 if wanted == "opening" else -1, j, wanted
        return event

    leads_to = {"idle": ["closing"], "closing": ["opening"], "opening": ["closing", "idle"]}
    for _ in range(1000):
        if all(m == "idle" for m in mode):
            return velocity(state), state[:n], state[2 * n : 3 * n], state[3 * n :]
        events = [switch(j, wanted) for j in range(n) for wanted in leads_to[mode[j]]]
        run = solve_ivp(slope, (0.0, 1e4), state, "DOP853", rtol=tol, atol=tol * 1e-2, events=events, max_step=0.2)
        if run.status == 0:
            return velocity(state), state[:n], state[2 * n : 3 * n], state[3 * n :]
        state = run.y[:, -1]
        event = next(event for event, times in zip(events, run.t_events, strict=True) if times.size)
        mode[event.contact] = event.mode
        if event.mode == "idle":
            state[n + event.contact] = 0.0
    raise AssertionError("the impact does not end")


def poisson(W, u, e, mu, d):
    """(u, P) after an impact of contacts of d rows by Poisson's law, each phase by projections until they rest."""
    compression = _phase(W, u, np.zeros(len(e)), mu, d)
    after = u + W @ compression
    expansion = _phase(W, after, e * compression[::d], mu, d)
    return after + W @ expansion, compression + expansion


def _phase(W, u, least, mu, d):
    """``0 <= (u + W P)_N  ⟂  P_N - least >= 0`` with ``P_T`` in the disk of ``mu P_N`` against the tangential velocity."""
    P = np.zeros(len(u))
    for _ in range(50_000):
        before = P.copy()
        for k, first in enumerate(range(0, len(u), d)):
            P[first] = max(least[k], P[first] - (u[first] + W[first] @ P) / W[first, first])
            tangents = slice(first + 1, first + d)
            if d > 1:
                x = P[tangents] - (u[tangents] + W[tangents] @ P) / np.linalg.norm(W[tangents, tangents], 2)
                P[tangents] = x * min(1.0, mu[k] * P[first] / max(np.linalg.norm(x), 1e-300))
        if abs(P - before).max() <= 1e-15 * (1 + abs(P).max()):
            break
    return P


def stronge(W, u, e, mu):
    """(u, P) after an impact of one contact in the plane, by phases of slip and stick (Keller) and the work of the normal impulse."""
    (a, b), (_, c) = W
    P, work, compressed = np.zeros(2), 0.0, None
    u_n, u_t = u
    while True:
        friction = -mu * np.sign(u_t) if u_t != 0 else -b / c if abs(b) <= mu * c else -mu * np.sign(b)
        rate_n, rate_t = a + b * friction, b + c * friction
        to_stop = -u_t / rate_t if u_t * rate_t < 0 else np.inf
        if compressed is None:
            to_end = -u_n / rate_n if rate_n > 0 else np.inf
        else:
            to_end = (np.sqrt(u_n**2 + 2 * rate_n * (compressed - work)) - u_n) / rate_n
        d = min(to_end, to_stop)
        P, work, u_n, u_t = P + d * np.array([1.0, friction]), work + d * (u_n + 0.5 * rate_n * d), u_n + rate_n * d, u_t + rate_t * d
        u_t = 0.0 if to_stop <= to_end else u_t
        if to_end <= to_stop:
            if compressed is not None:
                return u + W @ P, P
            compressed, work, u_n = -(e**2) * work, 0.0, 0.0


def small_steps(W, u, stiffness, exponent, e, mu, d, ds):
    """(u, P) of multiple impacts with friction, contacts of d rows: steps ds of fictitious time, implicit in friction."""
    n, nc = len(u), len(mu)
    D, P, v, normal, T = np.zeros(nc), np.zeros(n), np.array(u, float), np.arange(nc) * d, np.zeros((nc, d - 1))
    while (D > 0).any() or (v[normal] < -1e-9).any():
        force, step = stiffness * D**exponent, np.zeros((nc, d))
        step[:, 0] = force * ds
        for _ in range(500):
            before = T.copy()
            for k in range(nc):
                step[:, 1:], rows = T, slice(d * k + 1, d * k + d)
                x = T[k] - (v[rows] + W[rows] @ step.ravel()) / np.linalg.norm(W[rows, rows], 2)
                T[k] = x * min(1.0, mu[k] * force[k] * ds / max(np.linalg.norm(x), 1e-300))
            if abs(T - before).max() <= 1e-10 * ds:
                break
        step[:, 1:] = T
        new = v + W @ step.ravel()
        mean = 0.5 * (v + new)[normal]
        D = np.maximum(D - ds * np.where(mean < 0, mean, np.where(D > 0, mean / e**2, 0.0)), 0.0)
        P, v = P + step.ravel(), new
    return v, P
