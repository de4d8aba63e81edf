"""Slow and obvious twins in plain NumPy: one dense matrix for everything, enumeration for the one-step problem. Imports no kernel."""

import itertools
from decimal import Decimal, localcontext

import numpy as np

from tests.reference_solvers import sides, solve_by_enumeration


def moreau_jean(model, t0, h, n_steps, theta=0.5, gamma=0.5):
    """Moreau–Jean for one dense system: [EventCapturing], summary of the linear case, line by line.

    model: dict with M, K, C, F (function of t), q, v, H, b, D, e, bilateral. With D, bilateral constraints are ``H q + b + D lambda = 0``
    with lambda a force, the others have D in ydot. Returns arrays t, q, v, y, ydot, lambda, active by rows.
    """
    M, K, C, F, H, b, D, e, bilateral = (model[key] for key in ("M", "K", "C", "F", "H", "b", "D", "e", "bilateral"))
    q, v = model["q"].copy(), model["v"].copy()
    m = H.shape[0]
    M_hat = M + h * theta * C + h**2 * theta**2 * K
    position = bilateral & D.any(axis=1)
    scale = np.where(position, 1 / (h * h * theta), 1.0)  # the unknown is h lambda, the equation y / (h theta)
    W = H @ np.linalg.solve(M_hat, H.T) + scale[:, None] * D
    lam, active = np.zeros(m), np.zeros(m, int)
    y, ydot = H @ q + b, H @ v
    rows = [(t0, q, v, y, ydot, lam, active)]
    for k in range(n_steps):
        t, t_new = t0 + k * h, t0 + (k + 1) * h
        rhs = -h * C @ v - h * K @ q - h**2 * theta * K @ v + h * theta * F(t_new) + h * (1 - theta) * F(t)
        v_free = v + np.linalg.solve(M_hat, rhs)
        active = (bilateral | (y + gamma * h * ydot <= 0)).astype(int)
        a = np.flatnonzero(active)
        lam = np.zeros(m)
        if a.size:
            lower = np.where(bilateral[a], -np.inf, 0.0)
            free = np.where(position, (H @ (q + h * (1 - theta) * v) + b) / (h * theta) + H @ v_free, H @ v_free + e * ydot)
            lam[a] = solve_by_enumeration(W[np.ix_(a, a)], free[a], lower, np.full(a.size, np.inf), tol=1e-10)
        v_new = v_free + np.linalg.solve(M_hat, H.T @ lam)
        q = q + h * (theta * v_new + (1 - theta) * v)
        v = v_new
        lam = np.where(position, lam / h, lam)
        y, ydot = H @ q + b + position * (D @ lam), H @ v + ~position * (D @ lam)
        rows.append((t_new, q, v, y, ydot, lam, active))
    return [np.array(column) for column in zip(*rows, strict=True)]


def euler_moreau(model, t0, h, n_steps, theta=1.0, gamma=1.0, full=False, midpoint=False):
    """Euler–Moreau ([Notes], eqs 9.5–9.7) by brute force: for each choice of sides of lambda, Newton on all equations at once.

    model: dict with M, x, lower, upper and functions f(t, x), h(t, x, lam), g(t, x, lam). Returns arrays t, x, r, y, lambda by rows.
    """
    M, f, output, g, lower, upper = (model[key] for key in ("M", "f", "h", "g", "lower", "upper"))
    n, m = len(M), len(lower)
    full = full or midpoint
    x, lam = np.array(model["x"], float), np.zeros(m)
    r, y = g(t0, x, lam), output(t0, x, lam)
    rows = [(t0, x, r, y, lam)]
    last = None
    for k in range(n_steps):
        t, t_new = t0 + k * h, t0 + (k + 1) * h

        def equations(x_new, lam, t=t, t_new=t_new, x=x, r=r):
            at, t_at = (gamma * x_new + (1 - gamma) * x, t + gamma * h) if full else (x_new, t_new)
            smooth = f(t + theta * h, theta * x_new + (1 - theta) * x) if midpoint else theta * f(t_new, x_new) + (1 - theta) * f(t, x)
            push = g(t_at, at, lam) if full else gamma * g(t_at, at, lam) + (1 - gamma) * r
            return M @ (x_new - x) - h * (smooth + push), output(t_at, at, lam), g(t_at, at, lam)

        choices = list(itertools.product(*map(sides, lower, upper)))
        for chosen in [last, *choices] if last is not None else choices:
            free = np.array([side is None for side in chosen], bool)
            fixed = np.array([0.0 if side is None else side for side in chosen])

            def unknown(v, free=free, fixed=fixed, equations=equations):
                lam = fixed.copy()
                lam[free] = v[n:]
                residual, y, _ = equations(v[:n], lam)
                return np.concatenate([residual, y[free]])

            v = _newton(unknown, np.concatenate([x, lam[free]]))
            if v is None:
                continue
            new = fixed.copy()
            new[free] = v[n:]
            _, y, push = equations(v[:n], new)
            wrong = np.maximum(np.minimum(y, new - lower), new - upper)
            if abs(wrong).max(initial=0) < 1e-8:
                break
        else:
            raise AssertionError(f"no choice of sides solves step {k + 1}")
        x, lam, r, last = v[:n], new, push, chosen
        rows.append((t_new, x, r, y, lam))
    return [np.array(column) for column in zip(*rows, strict=True)]


SIDES = {"contact": ("open", "closed"), "joint": ("closed",), "friction": ("open", "stick", "left", "right")}


def higher_order_sweeping(model, h, n_steps):
    """Higher-order sweeping process by brute force, in coordinates (z, xi): z_i = C A^(i-1) x, and xi what no jump changes.

    model: dict with A, B, C, degree, x and s (function of t, reaching no z but the last). Returns t, x, lambda, and mu (rows, degree, m).
    """
    A, B, C, degree, source = (model[key] for key in ("A", "B", "C", "degree", "s"))
    n, m = B.shape
    Z = np.vstack([C @ np.linalg.matrix_power(A, i) for i in range(degree)])
    reached = np.hstack([np.linalg.matrix_power(A, i) @ B for i in range(degree)])
    unchanged = np.linalg.svd(reached.T)[2][degree * m :]
    T = np.vstack([Z, unchanged])
    A_z, B_z = T @ A @ np.linalg.inv(T), np.eye(n, degree * m)
    B_z[: degree * m, -m:] = Z @ B
    G = np.linalg.inv(np.eye(n) - h * A_z)
    z, rows = T @ model["x"], [(0.0, model["x"], np.zeros(m), np.zeros((degree, m)))]
    for k in range(1, n_steps + 1):
        closed = np.vstack([np.ones((1, m), bool), np.cumprod(z[: (degree - 1) * m].reshape(degree - 1, m) <= 1e-12, axis=0, dtype=bool)])
        a = np.flatnonzero(closed.reshape(-1))
        free = G @ (z + h * T @ source(k * h))
        mu = np.zeros(degree * m)
        mu[a] = solve_by_enumeration((G @ B_z)[np.ix_(a, a)], free[a], np.zeros(a.size), np.full(a.size, np.inf), tol=1e-12)
        z = free + G @ B_z @ mu
        z[abs(z) < 1e-15] = 0.0
        rows.append((k * h, np.linalg.solve(T, z), mu[-m:] / h, mu.reshape(degree, m)))
    return [np.array(column) for column in zip(*rows, strict=True)]


def moreau_jean_nonlinear(model, t0, h, n_steps, theta=0.5, gamma=0.5, q_star=1.0):
    """Moreau–Jean ([Notes], 10.2) by brute force: for each choice of sides of the contacts, Newton on all equations at once.

    model: dict with q, v, functions mass(q), force(t, q, v), h(t, q, lam), which must also take complex numbers, push(t, q, lam) where a
    force is not ``H^T lam``, and contacts: dicts with law (a key of SIDES), rows, position (True: h and a force), e by rows, mu.
    Returns arrays t, q, v, y, ydot, lambda, active by rows.
    """
    mass, force, output, contacts = (model[key] for key in ("mass", "force", "h", "contacts"))
    position = np.concatenate([[contact["position"]] * len(contact["rows"]) for contact in contacts]).astype(bool)
    e = np.concatenate([np.broadcast_to(contact["e"], len(contact["rows"])) for contact in contacts])
    push = model.get("push", lambda t, q, lam: slope(lambda x: output(t, x, lam), q).T @ (position * lam))

    def ydot_of(t, q, v, lam):
        H, D = slope(lambda x: output(t, x, lam), q), slope(lambda x: output(t, q, x), lam)
        return H, H @ v + slope(lambda x: output(x[0], q, lam), np.array([t]))[:, 0] + ~position * (D @ lam)

    q, v = np.array(model["q"], float), np.array(model["v"], float)
    n, m = q.size, position.size
    lam, last = np.zeros(m), None
    y, ydot = output(t0, q, lam), ydot_of(t0, q, v, lam)[1]
    rows = [(t0, q, v, y, ydot, lam, np.zeros(m, int))]
    for k in range(n_steps):
        t, t_new = t0 + k * h, t0 + (k + 1) * h
        f_old = force(t, q, v)
        forecast = y + gamma * h * ydot
        is_active = [c["position"] or c["law"] == "joint" or forecast[c["rows"][0]] <= 0 for c in contacts]

        def equations(x, t_new=t_new, q=q, v=v, ydot=ydot, f_old=f_old):
            v_new, lam = x[:n], x[n:]
            q_new = q + h * (theta * v_new + (1 - theta) * v)
            at = q_star * q_new + (1 - q_star) * q
            H, w = ydot_of(t_new, at, v_new, lam)
            w = np.where(position, output(t_new, q_new, lam), w + e * ydot)
            impulse = H.T @ (~position * lam) + h * push(t_new, q_new, lam)
            smooth = h * (theta * force(t_new, q_new, v_new) + (1 - theta) * f_old)
            return mass(at) @ (v_new - v) - smooth - impulse, w, q_new

        choices = list(itertools.product(*(SIDES[c["law"]] if on else ("off",) for c, on in zip(contacts, is_active, strict=True))))
        for chosen in [last, *choices] if last in choices else choices:

            def unknown(x, chosen=chosen, equations=equations):
                motion, w, _ = equations(x)
                return np.concatenate([motion, *(_law(c, side, w, x[n:]) for c, side in zip(contacts, chosen, strict=True))])

            x = _newton(unknown, np.concatenate([v, lam]))
            if x is None:
                continue
            _, w, q_new = equations(x)
            if all(_is_allowed(c, side, w, x[n:]) for c, side in zip(contacts, chosen, strict=True)):
                break
        else:
            raise AssertionError(f"no choice of sides solves step {k + 1}")
        q, v, lam, last = q_new, x[:n], x[n:], chosen
        y, ydot = output(t_new, q, lam), ydot_of(t_new, q, v, lam)[1]
        rows.append((t_new, q, v, y, ydot, lam, np.concatenate([[on] * len(c["rows"]) for c, on in zip(contacts, is_active, strict=True)])))
    return [np.array(column) for column in zip(*rows, strict=True)]


def slope(function, x):
    """Jacobian by complex steps, exact up to rounding."""
    return np.array([function(x + d).imag for d in 1e-30j * np.eye(x.size)]).T / 1e-30


def _law(contact, side, w, lam):
    """Equations of one contact on one of its sides."""
    w, lam = w[contact["rows"]], lam[contact["rows"]]
    if side in ("open", "off"):
        return lam
    if side in ("left", "right"):  # it slides there, and friction pushes the other way
        return np.array([w[0], lam[1] - contact["mu"] * lam[0] * (1 if side == "left" else -1)])
    return w


def _is_allowed(contact, side, w, lam, tol=1e-9):
    """Inequalities of one contact on one of its sides."""
    w, lam = w[contact["rows"]], lam[contact["rows"]]
    if contact["law"] == "joint" or side == "off":
        return True
    if side == "open":
        return w[0] >= -tol
    if side == "stick" and abs(lam[1]) > contact["mu"] * lam[0] + tol:
        return False
    return lam[0] >= -tol and (side not in ("left", "right") or w[1] * (-1 if side == "left" else 1) >= -tol)


def _newton(function, v):
    """Root by Newton's method with central differences, which are kept while they make the residual ten times smaller, or None."""
    size = np.inf
    for _ in range(50):
        value = function(v)
        before, size = size, abs(value).max(initial=0)
        if size < 1e-13:
            return v
        if not size < 0.1 * before or before == np.inf:
            steps = 1e-6 * np.maximum(1, abs(v))
            columns = [(function(v + d) - function(v - d)) / (2 * s) for d, s in zip(np.diag(steps), steps, strict=True)]
        change = np.linalg.lstsq(np.array(columns).T, -value, rcond=None)[0]
        v = v + change
        if abs(change).max(initial=0) < 1e-15 * (1 + abs(v).max(initial=0)):
            break
    return v if abs(function(v)).max(initial=0) < 1e-9 else None


def schatzman_paoli(model, h, n_steps, theta):
    """[Notes], eq. (10.51) in positions only, with ``v_{k+theta} = theta (q_{k+1} - q_{k-1}) / 2 h + (1 - theta) (q_k - q_{k-1}) / h``.

    The law is one for ``H (q_{k+1} + e q_{k-1}) + (1 + e) b``, e by rows. Returns arrays q, lambda (times h: the source's) by rows.
    """
    M, K, C, F, H, b, e, bilateral = (model[key] for key in ("M", "K", "C", "F", "H", "b", "e", "bilateral"))
    before, q = model["q"] - h * model["v"], model["q"]
    M_hat = M + h**2 * theta * K + h * theta / 2 * C
    rows = [(q, np.zeros(len(b)))]
    for k in range(n_steps):
        elastic = h**2 * (1 - theta) * K @ q
        viscous = h * C @ ((1 - theta) * (q - before) - theta / 2 * before)
        q_free = np.linalg.solve(M_hat, M @ (2 * q - before) - elastic - viscous + h**2 * F((k + theta) * h))
        lam = _impulses(H, np.linalg.inv(M_hat) * h, H @ q_free + e * (H @ before) + (1 + e) * b, bilateral)
        before, q = q, q_free + h * np.linalg.solve(M_hat, H.T @ lam)
        rows.append((q, lam))
    return [np.array(column) for column in zip(*rows, strict=True)]


def schatzman_paoli_nonlinear(model, h, n_steps, theta):
    """[Notes], eq. (10.45): for each choice of closed contacts Newton on all equations. model: dict with q, v, e and functions of q.

    These are M(q), y(q), H(q), and the force F(t, q, v). Returns arrays q, lambda by rows.
    """
    M, F, y, H, e = (model[key] for key in ("M", "F", "y", "H", "e"))
    before, q = model["q"] - h * model["v"], model["q"]
    n, m = len(q), len(y(q))
    rows = [(q, np.zeros(m))]
    for k in range(n_steps):

        def equations(q_new, lam, k=k, q=q, before=before):
            mean = (q_new + e * before) / (1 + e)
            v = theta * (q_new - before) / (2 * h) + (1 - theta) * (q - before) / h
            force = F((k + theta) * h, theta * q_new + (1 - theta) * q, v)
            return M(q) @ (q_new - 2 * q + before) - h**2 * force - h * H(mean).T @ lam, y(mean)

        for chosen in itertools.product([False, True], repeat=m):
            closed = np.array(chosen)

            def unknown(x, closed=closed, equations=equations):
                lam = np.zeros(m)
                lam[closed] = x[n:]
                residual, gap = equations(x[:n], lam)
                return np.concatenate([residual, gap[closed]])

            x = _newton(unknown, np.concatenate([2 * q - before, np.zeros(closed.sum())]))
            if x is None:
                continue
            lam = np.zeros(m)
            lam[closed] = x[n:]
            if (lam >= -1e-12).all() and (equations(x[:n], lam)[1] >= -1e-12).all():
                break
        else:
            raise AssertionError(f"no choice of contacts solves step {k + 1}")
        before, q = q, x[:n]
        rows.append((q, lam))
    return [np.array(column) for column in zip(*rows, strict=True)]


def _impulses(H, inverse, free, bilateral):
    """``0 <= H inverse H^T lam + free  ⟂  lam >= 0``, or an equality where bilateral."""
    lower = np.where(bilateral, -np.inf, 0.0)
    return solve_by_enumeration(H @ inverse @ H.T, free, lower, np.full(len(free), np.inf), tol=1e-11) if len(free) else free


def modal_factors(omega, sigma, h, digits=120):
    """[ExactScheme], many digits: ``e = exp(-2 s)``, ``A = 2 exp(-s) cosh(sqrt(s^2 - x^2))`` by its series, ``G = (1 + e - A) / x^2``."""
    with localcontext() as context:
        context.prec = digits
        s, x = Decimal(sigma) * Decimal(h), Decimal(omega) * Decimal(h)
        e, square = (-2 * s).exp(), s * s - x * x
        if x == 0:
            return float(e), float((1 - e) / (2 * s)) if s else 1.0
        cosh = term = Decimal(1)
        k = 0
        while abs(term) > abs(cosh) * Decimal(10) ** -digits or k * k < abs(square):
            k += 2
            term *= square / (k * (k - 1))
            cosh += term
        return float(e), float((1 + e - 2 * (-s).exp() * cosh) / (x * x))


def moreau_jean_exact(model, h, n_steps, gamma):
    """[ExactScheme] line by line: modes with mu, omega, sigma, F constant. Returns arrays q, v, lambda by rows."""
    mu, omega, sigma, F, H, b, e = (model[key] for key in ("mu", "omega", "sigma", "force", "H", "b", "e"))
    root = np.emath.sqrt(sigma**2 - omega**2)
    A = (np.exp(-sigma * h) * (np.exp(root * h) + np.exp(-root * h))).real
    decay = np.exp(-2 * sigma * h)
    weight = 2 / (omega * h) ** 2 - A / (1 + decay - A)
    sigma_star = (1 / h + omega**2 * h / 2 - weight * omega**2 * h / 2) * (1 - decay) / (1 + decay)
    W = mu * (1 + h**2 / 2 * (1 - weight) * omega**2 + h * sigma_star)
    q, v, lam = model["q"], model["v"], np.zeros(len(b))
    rows = [(q, v, lam)]
    for _ in range(n_steps):
        v_free = v - mu * (h * omega**2 * q + 2 * h * sigma_star * v) / W + h * F / W
        closed = H @ q + b + gamma * h * (H @ v) <= 0
        lam = np.zeros(len(b))
        lam[closed] = _impulses(H[closed], np.diag(1 / W), (H @ v_free + e * (H @ v))[closed], np.zeros(closed.sum(), bool))
        v = v_free + (H.T @ lam) / W
        q = q + h * v
        rows.append((q, v, lam))
    return [np.array(column) for column in zip(*rows, strict=True)]


def moreau_jean_projected(model, h, n_steps, theta, gamma, combined, every_contact, inverse_metric, tol):
    """Rules of the cases bouncing_ball_direct_projection_all and BouncingBallTS-MoreauJeanCombinedProjectionOSI for several contacts.

    Returns arrays q, v, lambda by rows.
    """
    M, K, C, F, H, b, e, bilateral = (model[key] for key in ("M", "K", "C", "F", "H", "b", "e", "bilateral"))
    inverse = np.linalg.inv(M + h * theta * C + h**2 * theta**2 * K)
    q, v, y = model["q"], model["v"], H @ model["q"] + b
    pull = h * abs(F(0.0) - C @ v - K @ q) / np.diag(M)
    rows = [(q, v, np.zeros(len(b)))]
    for k in range(n_steps):
        force = theta * F((k + 1) * h) + (1 - theta) * F(k * h)
        v_free = v + inverse @ (h * force - h * C @ v - h * K @ q - h**2 * theta * K @ v)
        slack = 1e-10 * (abs(b) + abs(H) @ abs(q)) + 1e-6 * h * (abs(H @ v) + abs(H) @ (abs(v) + pull))
        forecast, rests = y + gamma * h * (H @ v), h * abs(H @ v) <= slack
        active = bilateral | (forecast <= 0) | (rests & (forecast <= slack))
        while True:
            lam = np.zeros(len(b))
            lam[active] = _impulses(H[active], inverse, (H @ v_free + e * (H @ v))[active], bilateral[active])
            v_new = v_free + inverse @ H.T @ lam
            q_new = q + h * (theta * v_new + (1 - theta) * v)
            joining = ~active & (H @ q_new + b < -tol)
            if not combined or not joining.any():
                break
            active |= joining
        chosen = active | every_contact
        pressing = bilateral | (combined & (lam > 0))
        y = H @ q_new + b
        if np.where(pressing, abs(y), -y)[chosen].max(initial=0) > tol:
            shift = np.zeros(len(b))
            shift[chosen] = _impulses(H[chosen], inverse_metric, y[chosen], pressing[chosen])
            q_new = q_new + inverse_metric @ H.T @ shift
        q, v, y = q_new, v_new, H @ q_new + b
        rows.append((q, v, lam))
    return [np.array(column) for column in zip(*rows, strict=True)]


def d1_minus_linear(model, h, n_steps, velocity_level, rest=0.05):
    """Rules of the case BouncingBallTS-D1MinusLinearOSI for several contacts of a dense system, forces at one level or the other.

    rest: how far, of ``h^2 |H| |a|``, a contact that pressed in the last step may be open at velocity level. Returns q, v, lambda by rows.
    """
    M, K, C, F, H, b, e, bilateral = (model[key] for key in ("M", "K", "C", "F", "H", "b", "e", "bilateral"))
    inverse = np.linalg.inv(M)
    q, v, y, pressed = model["q"], model["v"], H @ model["q"] + b, np.zeros(len(b), bool)
    rows = [(q, v, np.zeros(len(b)))]
    for k in range(n_steps):
        a = inverse @ (F(k * h) - C @ v - K @ q)
        closed = y <= h**2 * rest * (pressed & velocity_level) * (abs(H) @ abs(a))
        closed = bilateral | (closed & (velocity_level | (H @ v <= 1e-12)))
        left = np.zeros(len(b))
        left[closed] = _impulses(H[closed], inverse, (H @ a + velocity_level * (H @ v) / h)[closed], bilateral[closed])
        a = a + inverse @ H.T @ left
        v_star, q_new = v + h * a, q + h * v + h**2 / 2 * a
        y_new, a_new = H @ q_new + b, inverse @ (F((k + 1) * h) - C @ v_star - K @ q_new)
        closed = np.maximum(y, y_new) <= h**2 * rest * (pressed & velocity_level) * (abs(H) @ abs(a_new))
        closed = bilateral | (closed & (velocity_level | (H @ v_star <= 1e-12)))
        free = H @ a_new + velocity_level * (H @ a + 2 / h * (H @ v))
        right = np.zeros(len(b))
        right[closed] = _impulses(H[closed], inverse, free[closed], bilateral[closed])
        v_minus = v + h / 2 * (a + a_new + inverse @ H.T @ right)
        closed = bilateral | (y_new <= 0)
        impact = np.zeros(len(b))
        impact[closed] = _impulses(H[closed], inverse, ((1 + e) * (H @ v_minus))[closed], bilateral[closed])
        lam = impact + h / 2 * (left + right)
        q, v, y, pressed = q_new, v_minus + inverse @ H.T @ impact, y_new, lam != 0
        rows.append((q, v, lam))
    return [np.array(column) for column in zip(*rows, strict=True)]


def generalised_alpha(model, h, n_steps, rho, tol=1e-10):
    """Smooth, position and velocity problem in turn, as `nsds.schemes.lagrangian.generalised_alpha` states them, of a dense system.

    Returns arrays q, v, lambda by rows.
    """
    M, K, C, F, H, b, e, bilateral = (model[key] for key in ("M", "K", "C", "F", "H", "b", "e", "bilateral"))
    alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma = 0.5 + alpha_f - alpha_m
    beta = (gamma + 0.5) ** 2 / 4
    inverse, G = np.linalg.inv(M), H[bilateral]
    n, n_G = len(M), len(G)
    q, v = model["q"], model["v"]

    def constrained(matrix, rhs, by_a, known):
        """``matrix a = rhs + G^T lam``, ``by_a G a + known = 0``."""
        x = np.linalg.solve(np.block([[matrix, -G.T], [by_a * G, np.zeros((n_G, n_G))]]), np.concatenate([rhs, -known]))
        return x[:n], x[n:]

    a, _ = constrained(M, F(0.0) - C @ v - K @ q, 1.0, np.zeros(n_G))
    A = a
    rows = [(q, v, np.zeros(len(b)))]
    for k in range(n_steps):
        known, ratio = (alpha_f * a - alpha_m * A) / (1 - alpha_m), (1 - alpha_f) / (1 - alpha_m)
        v_known = v + h * ((1 - gamma) * A + gamma * known)
        q_known = q + h * v + h**2 * ((0.5 - beta) * A + beta * known)
        matrix = M + h * gamma * ratio * C + h**2 * beta * ratio * K
        a, force = constrained(matrix, F((k + 1) * h) - C @ v_known - K @ q_known, h * gamma * ratio, G @ v_known)
        A = known + ratio * a
        q_new, v_new = q_known + h**2 * beta * ratio * a, v_known + h * gamma * ratio * a
        y = H @ q_new + b
        closed = bilateral | (y <= 0)
        if np.where(bilateral, abs(y), -y).max() > tol:
            q_new = q_new + inverse @ H.T @ _impulses(H, inverse, y, bilateral)
        lam = np.zeros(len(b))
        lam[closed] = _impulses(H[closed], inverse, (H @ v_new + e * (H @ v))[closed], bilateral[closed])
        q, v = q_new, v_new + inverse @ H.T @ lam
        lam[bilateral] += h * force
        rows.append((q, v, lam))
    return [np.array(column) for column in zip(*rows, strict=True)]
