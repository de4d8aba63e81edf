"""Random small systems under `nsds.event_driven`, judged by what must hold.

    python -m tests.benchmarks.fuzz_events [systems] [first seed] [1: in space]

One to six contacts, restitution in [0, 1], friction in [0, 2], bodies that start in contact, at rest or not, impacts of several contacts at
once. No run hangs or ends before its time; no gap is negative by more than the tolerance, in any of many rows; forces obey their
laws; without friction energy is never gained.
"""

import sys

import numpy as np

import nsds
from nsds.status import EVENT, JUMP

_GAP = 1e-9  # of the size of the scene, one
_ENERGY = 1e-7


def random_system(seed, in_space=False):
    """(record, components of a contact) of one of a few kinds."""
    rng = np.random.default_rng(seed)
    kinds = (_points_in_space, _tied_in_space) if in_space else (_column, _box_of_points, _tied_points, _rod)
    return kinds[seed % len(kinds)](rng)


def _choice(rng, values):
    return values[rng.integers(len(values))]


def _column(rng):
    """Balls on a line above a floor, some in contact, some at rest, on springs now and then."""
    n = rng.integers(1, 7)
    gaps = rng.choice([0.0, 0.0, 0.25, 0.5, rng.random()], n)
    v = rng.choice([0.0, 0.0, 1.0, -1.0, rng.normal()], n)
    H, b = np.eye(n) - np.eye(n, k=-1), np.zeros(n)
    terms = {"K": np.diag(rng.choice([0.0, 0.0, 40.0], n))} if rng.random() < 0.5 else {}
    balls = nsds.lagrangian_linear(M=np.diag(rng.choice([1.0, 1.0, 3.0, 0.2], n)), fext=np.full(n, -_choice(rng, [0.0, 5.0, 9.81])),
                                   q=np.cumsum(gaps), v=v, **terms)  # fmt: skip
    law = nsds.newton_impact(e=_choice(rng, [0.0, 1.0, 0.5, rng.random()]))  # one for all: different ones may gain energy together
    return nsds.system(balls=balls, touch=nsds.interaction(nsds.lagrangian_linear_relation(H=H, b=b), law, on="balls")), 1


def _friction(rng, n, dimension=2):
    e, mu = rng.choice([0.0, 0.5, rng.random()], n), rng.choice([0.0, 0.3, 1.0, 2 * rng.random()], n)
    return nsds.newton_impact_friction(e_n=e, mu=mu, dimension=dimension)


def _box_of_points(rng):
    """Points in the plane on a floor, one beside the other, with friction."""
    n = rng.integers(1, 4)
    H = np.zeros((2 * n, 2 * n))
    for k in range(n):
        H[2 * k, 2 * k + 1] = H[2 * k + 1, 2 * k] = 1.0
    q, v = np.zeros((n, 2)), rng.choice([0.0, 1.0, -2.0, rng.normal()], (n, 2))
    q[:, 1] = rng.choice([0.0, 0.3, rng.random()], n)
    tilt = _choice(rng, [0.0, 0.3, 0.7])
    fext = np.tile([-9.81 * np.sin(tilt), -9.81 * np.cos(tilt)], n)
    points = nsds.lagrangian_linear(M=np.repeat(rng.choice([1.0, 2.0], n), 2), fext=fext, q=q.ravel(), v=v.ravel())
    return nsds.system(points=points, floor=nsds.interaction(nsds.lagrangian_linear_relation(H=H), _friction(rng, n), on="points")), 2


def _tied_points(rng):
    """Points in the plane on a floor with friction, tied by springs."""
    n = rng.integers(2, 4)
    H, K = np.zeros((2 * n, 2 * n)), np.zeros((2 * n, 2 * n))
    for k in range(n):
        H[2 * k, 2 * k + 1] = H[2 * k + 1, 2 * k] = 1.0
    for k in range(n - 1):
        a, b = 2 * k, 2 * k + 2
        K[a, a] += 30.0
        K[b, b] += 30.0
        K[a, b] = K[b, a] = -30.0
    q, v = np.zeros((n, 2)), np.zeros((n, 2))
    q[:, 0], v[:, 0] = rng.choice([0.0, 0.2, rng.normal()], n), rng.choice([0.0, 1.0, rng.normal()], n)
    q[:, 1] = rng.choice([0.0, 0.0, 0.3], n)
    points = nsds.lagrangian_linear(M=np.ones(2 * n), K=K, fext=np.tile([0.0, -9.81], n), q=q.ravel(), v=v.ravel())
    return nsds.system(points=points, floor=nsds.interaction(nsds.lagrangian_linear_relation(H=H), _friction(rng, n), on="points")), 2


def _in_space(rng, n, v, **terms):
    """Points above a floor that is tilted, with friction."""
    q = np.zeros((n, 3))
    q[:, 2] = rng.choice([0.0, 0.0, 0.3, rng.random()], n)
    tilt, turn = _choice(rng, [0.0, 0.3, 0.7]), _choice(rng, [0.0, 1.0, rng.normal()])
    force = 9.81 * np.array([np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), -np.cos(tilt)])
    points = nsds.lagrangian_linear(M=np.ones(3 * n), fext=np.tile(force, n), q=q.ravel(), v=v.ravel(), **terms)
    H = np.kron(np.eye(n), [[0, 0, 1.0], [1.0, 0, 0], [0, 1.0, 0]])
    floor = nsds.interaction(nsds.lagrangian_linear_relation(H=H), _friction(rng, n, dimension=3), on="points")
    return nsds.system(points=points, floor=floor), 3


def _points_in_space(rng):
    n = rng.integers(1, 4)
    return _in_space(rng, n, rng.choice([0.0, 1.0, -2.0, rng.normal()], (n, 3)))


def _tied_in_space(rng):
    """Tied by springs, so that those that stick are pulled, in turning directions."""
    n = rng.integers(2, 4)
    K = 30.0 * np.kron(np.diag(np.r_[1.0, np.full(n - 2, 2.0), 1.0]) - np.eye(n, k=1) - np.eye(n, k=-1), np.eye(3))
    return _in_space(rng, n, rng.choice([0.0, 0.0, 1.0, rng.normal()], (n, 3)), K=K)


def _ends(q, z, out):
    out[0], out[1] = q[1] - np.sin(q[2]), q[0] - np.cos(q[2])
    out[2], out[3] = q[1] + np.sin(q[2]), q[0] + np.cos(q[2])


def _heights(q, z, out):
    out[0], out[1] = q[1] - np.sin(q[2]), q[1] + np.sin(q[2])


def _rod(rng):
    """A rod above a floor, with friction or without, flat now and then."""
    angle, rubs = _choice(rng, [0.0, 0.3, 1.0, rng.normal()]), rng.random() < 0.5
    height = abs(np.sin(angle)) + _choice(rng, [0.0, 0.2, 0.5])
    v = [_choice(rng, [0.0, 1.0, rng.normal()]), _choice(rng, [0.0, -1.0]), _choice(rng, [0.0, rng.normal()])]
    rod = nsds.lagrangian(mass=[1.0, 1.0, 1 / 3], fext=[0.0, -9.81, 0.0], q=[0.0, height, angle], v=v)
    e = _choice(rng, [0.0, 0.5, rng.random()])
    if rubs:
        law, relation = nsds.newton_impact_friction(e_n=e, mu=_choice(rng, [0.1, 0.5, rng.random()])), nsds.scleronomous(_ends, m=4)
    else:
        law, relation = nsds.newton_impact(e=e), nsds.scleronomous(_heights, m=2)
    return nsds.system(rod=rod, floor=nsds.interaction(relation, law, on="rod")), 2 if rubs else 1


def fault_of(seed, t_end=1.5, flow="auto", in_space=False):
    """What is wrong with the run of a seed, in words; nothing if nothing is."""
    system, block = random_system(seed, in_space)
    rubs = block > 1
    try:
        rows = nsds.simulate(system, t_end=t_end, h=0.01, scheme=nsds.event_driven(flow=flow, max_events=5000))
    except nsds.SimulationError as error:
        return str(error)
    contact_name = system.dtype.names[-1]
    contact, impact = rows[contact_name], rows["status"] & (EVENT | JUMP) == EVENT | JUMP
    y, lam = (contact[name].reshape(len(rows), -1)[:, ::block] for name in ("y", "lambda"))
    if y.min() < -_GAP:
        return f"gap {y.min():.2e} at t = {rows['t'][y.min(axis=1).argmin()]:.9g}"
    if lam.min() < -1e-6:
        return f"normal force {lam.min():.2e} at t = {rows['t'][lam.min(axis=1).argmin()]:.9g}"
    if rubs:
        mu, pull = system[contact_name]["mu"], np.linalg.norm(contact["lambda"].reshape(len(rows), -1, block)[..., 1:], axis=-1)
        over = pull - mu * lam
        if over.max() > 1e-6 * (1 + lam.max()):
            return f"friction beyond its cone by {over.max():.2e} at t = {rows['t'][over.max(axis=1).argmax()]:.9g}"
    open_ = (y > 1e-6) & (lam > 1e-9) & ~impact[:, None]
    if open_.any():
        return f"force on an open contact at t = {rows['t'][open_.any(axis=1).argmax()]:.9g}"
    gain = gain_of(system, rows)
    return f"energy gained: {gain:.2e}" if (in_space or not rubs) and gain > _ENERGY else ""


def gain_of(system, rows):
    """The largest rise of energy from one row to the next."""
    name = system.dtype.names[-2]
    part, q, v = system[name], rows[name]["q"], rows[name]["v"]
    M = part["M"] if "M" in part.dtype.names else part["mass"]
    energy = 0.5 * (v**2 @ np.diag(M) if M.ndim == 2 else v**2 @ M) - q @ part["fext"]
    if "K" in part.dtype.names:
        K = part["K"]
        energy += 0.5 * (np.einsum("ti,ij,tj->t", q, K, q) if K.ndim == 2 else q**2 @ K)
    return np.diff(energy).max()


def main(count=10_000, first=0, in_space=0):
    """Run so many seeds; print what is wrong, and how many runs were right."""
    wrong = 0
    for seed in range(first, first + count):
        fault = fault_of(seed, in_space=bool(in_space))
        if fault:
            wrong += 1
            print(f"seed {seed}: {fault}", flush=True)
    print(f"{count - wrong} of {count} runs are right")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
