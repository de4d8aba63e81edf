"""What is measured of a scene: failed steps, the law's residuals, energy against its bound, drift at rest, and facts that must hold."""

import time
import warnings
from typing import NamedTuple

import numpy as np

import nsds
from nsds.model.records import model_of
from nsds.model.system_kinds import COLLISIONS, FIRST_ORDER, LAGRANGIAN, NEWTON_EULER, family, split
from nsds.results.energy import energy
from nsds.schemes import table as schemes
from nsds.schemes.problem.kinds import kind_of
from nsds.status import CONVERGED, INEXACT

ROUNDING = 1e-11  # what the ledger of energy may lose, relative to the energy and all works of the run
SOLVED = 1e-9  # the same, where the equations of motion are solved to 1e-10


class Scene(NamedTuple):
    """A model: ``build()`` gives (record, facts), ``facts(rows, h)`` a dict from statements to whether they hold at the end of the run.

    t_end; steps: the h it is run with; short: t_end in the test suite; rest: time from which nothing moves, or None; settings: further
    arguments of `nsds.simulate`; motors: whether interactions put energy in.
    """

    name: str
    build: object
    t_end: float
    steps: tuple
    short: float
    rest: float
    settings: dict
    motors: bool


class Outcome(NamedTuple):
    """What a run of a scene came to; ``wrong`` lists in words everything that should not be."""

    steps: int
    failed: int
    inexact: int
    worst: float
    growth: float
    excess: float
    drift: float
    seconds: float
    wrong: list


def run(scene, h, t_end=None):
    """Run a scene with step h, to its end or to t_end, and judge what came out."""
    system, facts = scene.build()
    end = scene.t_end if t_end is None else t_end
    settings = {"progress": False, "on_failure": "warn", "fields": recorded(system), **scene.settings}
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            rows = nsds.simulate(system, t_end=float(system["t"]) + end, h=h, **settings)
    except Exception as error:  # the table says what it was and goes on
        return Outcome(0, 0, 0, np.nan, np.nan, np.nan, np.nan, time.process_time() - begin, [f"{type(error).__name__}: {error}"])
    return judge(scene, system, facts, rows, h, time.process_time() - begin)


def recorded(system):
    """What is saved: the state, and of Lagrangian systems their impulses, which the bound of energy is made of."""
    model = model_of(system)
    if family(model) != LAGRANGIAN:
        return None
    return [f"{name}.{field}" for name, _ in split(model)[0] for field in "qvp"] + [name for name, *_ in split(model)[1]]


def judge(scene, system, facts, rows, h, seconds=0.0):
    """The outcome of a run; facts are asked for at the end of the scene's run, and of the short one of the test suite."""
    wrong, status, residual, end = [], rows["status"], rows["residual"], float(rows["t"][-1] - system["t"])
    failed = (status != CONVERGED) & (status != INEXACT)
    if failed.any():
        k = int(np.argmax(failed))
        wrong.append(f"{failed.sum()} steps failed, the first at t = {rows['t'][k]:g}, status {status[k]}, residual {residual[k]:.1e}")
    unsolved = (status == CONVERGED) & ~(residual <= tolerances(system, rows, scene.settings))
    if unsolved.any():
        k = int(np.argmax(unsolved))
        wrong.append(
            f"{unsolved.sum()} rows of status 0 with residuals up to {residual[unsolved].max():.1e}, the first at t = {rows['t'][k]:g}"
        )
    growth, excess = growth_of_energy(system, rows, scene)
    if excess > 0:
        wrong.append(f"energy gains {excess:.2e} J more than its bound in a step")
    drift = np.nan if scene.rest is None or end < 1.01 * scene.rest else speed_at_rest(rows, system, scene.rest)
    if end > 0.99 * min(scene.short, scene.t_end):
        with np.errstate(all="ignore"):
            wrong += [f"not so: {fact}" for fact, holds in facts(rows, h).items() if not holds]
    worst = float(np.nanmax(residual)) if np.isfinite(residual).any() else np.nan
    return Outcome(len(rows) - 1, int(failed.sum()), int((status == INEXACT).sum()), worst, growth, excess, drift, seconds, wrong)


MANY, OWED = 60, 1e-2  # contacts, at about, from which on a step by default owes no more than this residual


def tolerances(system, rows, settings=None):
    """Largest residual of each row that counts as solved, of Newton's iteration and the one-step problem; of contacts, what is enough."""
    settings = settings or {}
    _, options, _ = schemes.solver_of(settings.get("solver"), system)
    kind = kind_of(system)
    if kind.startswith("lagrangian"):
        options = options.contact
    elif family(model_of(system)) == LAGRANGIAN:
        options = options.box
    _, own = schemes.chosen(settings.get("scheme"), system)
    strict = max(options.tol, own["newton_tol"].item() if "newton_tol" in own.dtype.names else 0.0)
    result = np.full(len(rows), strict)
    if kind != "relay":
        touching, many = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
        for name, kind, *law in model_of(system):
            if name not in rows.dtype.names:  # not saved
                touching |= kind == COLLISIONS or (law and law[0] != "equality")
            elif kind == COLLISIONS:
                n = np.maximum(rows[name]["n"], np.r_[0, rows[name]["n"][:-1]])
                touching, many = touching | (n > 0), many | (n > MANY)
            elif law and law[0] != "equality" and _has(rows, name, "active"):
                touching |= rows[name]["active"].reshape(len(rows), -1).any(axis=1)
        result[touching] = max(strict, options.enough)
        if own["scheme"] == b"rattle" and "solver" not in settings:
            result[many] = max(strict, OWED)
    return result


def growth_of_energy(system, rows, scene):
    """(largest rise of the energy that forces do not explain, by how much a step gains more than its bound at most).

    Of a step ``M dv = h F + P``, ``P = H^T lambda``, the laws of contacts say ``lambda . u+ <= 0`` (restitution 0, friction, joints), with
    ``u+ = H v+``. Impulses then do the work ``P . (v+ + v-) / 2 = lambda . u+ - P . M^-1 (h F + P) / 2 <= |h F|^2 / 8`` in the norm of
    M^-1: a body that forces press against a contact which opens gains that much at most. With restitution, ``lambda . u+`` is
    ``-e lambda . u-``, which adds ``e lambda_n |u_n-|`` where contacts rub, too. Gyroscopic moments at the ends of the step do the work
    ``-h Omega . (d x I d)``, ``d = (Omega+ - Omega-) / 2``. What the solver leaves open is its residual times impulses times speeds.
    RATTLE has ``H v = 0`` of joints at both ends of a step and not between: they do up to ``|lambda| |v+ - v-|``, and take it again.
    """
    if family(model_of(system)) == FIRST_ORDER or scene.motors:
        return np.nan, 0.0
    with np.errstate(all="ignore"):
        if family(model_of(system)) == NEWTON_EULER:
            return _rigid_growth(system, rows, schemes.chosen(scene.settings.get("scheme"), system)[1]["scheme"] == b"rattle")
        return _lagrangian_growth(system, rows, scene.settings.get("scheme"))


def _rigid_growth(system, rows, swings):
    ledger = energy(system, rows)
    h = np.diff(rows["t"])
    gained, allowed, speed, load, change = (np.zeros(len(rows)) for _ in range(5))  # gained: the work of the impulses that bodies have got
    for name, _ in split(model_of(system))[0]:
        parts = system[name].reshape(-1)
        v, p = (rows[name][key].reshape(len(rows), len(parts), 6) for key in ("v", "p"))
        for k, part in enumerate(parts):
            dv, mean = np.diff(v[:, k], axis=0), (v[1:, k] + v[:-1, k]) / 2
            gained[1:] += (mean * p[1:, k]).sum(axis=1)
            if np.isinf(part["mass"]):  # a drive: what it puts in is no gain
                continue
            I, m = part["inertia"], float(part["mass"])
            force = m * dv[:, :3] - p[1:, k, :3], dv[:, 3:] @ I - p[1:, k, 3:]
            moment = np.linalg.solve(I, force[1].T).T
            work = ((force[0] ** 2).sum(axis=1) / m + (force[1] * moment).sum(axis=1)) / 8
            d = dv[:, 3:] / 2
            gyroscopic = abs(h * (mean[:, 3:] * np.cross(d, d @ I)).sum(axis=1))
            allowed[1:] += work + gyroscopic
            weight = np.sqrt(np.trace(I) / m)
            fast = np.linalg.norm(v[:, k, :3], axis=1) + weight * np.linalg.norm(v[:, k, 3:], axis=1)
            speed[1:] = np.maximum(speed[1:], np.maximum(fast[1:], fast[:-1]) + np.linalg.norm(force[0], axis=1) / m)
            change[1:] = np.maximum(change[1:], np.linalg.norm(dv[:, :3], axis=1) + weight * np.linalg.norm(dv[:, 3:], axis=1))
            load[1:] += np.linalg.norm(p[1:, k, :3], axis=1) + np.linalg.norm(p[1:, k, 3:], axis=1) / weight
    load = np.maximum(load, _loads(system, rows))
    residual = np.where(np.isfinite(rows["residual"]), rows["residual"], 0.0)
    rubs = any(np.max(system[name]["mu"]) > 0 for name in system.dtype.names if _has(system, name, "mu"))
    restitution = [float(np.max(system[name][e])) for name in system.dtype.names for e in ("e", "e_n") if _has(system, name, e)]
    allowed += 2 * (residual + (max(restitution, default=0.0) if rubs else 0.0)) * load * speed
    allowed += load * change * swings
    return _rise(gained), _most(gained - allowed - ROUNDING * _moved(ledger))


def _has(system, name, field):
    return system.dtype[name].base.names is not None and field in system.dtype[name].base.names


def _loads(system, rows):
    """Sum of the magnitudes of all impulses of each step."""
    result = np.zeros(len(rows))
    for name in rows.dtype.names:
        part = rows.dtype[name].base
        if part.names and "lambda" in part.names:
            result += abs(rows[name]["lambda"].reshape(len(rows), -1)).sum(axis=1)
    return result


def _lagrangian_growth(system, rows, scheme):
    theta = 0.5 if scheme is None else scheme["theta"].item()
    ledger = energy(system, rows, theta)
    gained, allowed, pressed, constant = ledger["joints"] + ledger["contact"], np.zeros(len(rows)), np.zeros(len(rows)), True
    for name, _ in split(model_of(system))[0]:
        parts = system[name].reshape(-1)
        v, p = (rows[name][field].reshape(len(rows), len(parts), -1) for field in "vp")
        allowed[1:] += np.maximum(-(p[1:] * np.diff(v, axis=0)).sum(axis=(1, 2)) / 2, 0.0)
        if "M" not in parts.dtype.names:
            constant = False
        elif parts.dtype["M"].names is None:
            for k, M in enumerate(parts["M"]):
                pressed += (p[:, k] * (p[:, k] / M if M.ndim == 1 else np.linalg.solve(M, p[:, k].T).T)).sum(axis=1)
    if constant:  # else the ledger's numerical part is what mass and its gyroscopic terms differ by, of order h
        gained += ledger["numerical"]
    moved = _moved(ledger) + abs(ledger["potential"]) + pressed
    return _rise(gained), _most(gained - allowed - SOLVED * moved)


def _moved(ledger):
    """Energy that the parts have, and all that has gone in and out, which rounding is relative to."""
    works = sum(abs(ledger[name]) for name in ("forces", "internal", "damping", "contact"))
    return ledger["kinetic"] + (works + abs(np.diff(ledger["potential"], prepend=ledger["potential"][0]))).cumsum()


def _rise(gained):
    """Largest rise of the sum of what steps gain."""
    total = gained.cumsum()
    return float((total - np.minimum.accumulate(total)).max())


def _most(excess):
    """The largest, 0 if none is positive, infinite if one is not finite."""
    return float(excess.max(initial=0.0)) if np.isfinite(excess).all() else np.inf


def speed_at_rest(rows, system, since):
    """Largest mean speed of any coordinate from ``since`` on (m/s; quaternions in 1/s)."""
    late = np.searchsorted(rows["t"], float(system["t"]) + since)
    span = rows["t"][-1] - rows["t"][late]
    result = 0.0
    for name, _ in split(model_of(system))[0]:
        q = rows[name]["q"]
        result = max(result, float(abs(q[-1] - q[late]).max() / span))
    return result
