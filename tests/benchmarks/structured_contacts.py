"""A second family of contact problems for `fuzz_contacts`: assemblies of bodies, planted solutions on edges of cones, proofs that none is.

``python -m tests.benchmarks.fuzz_contacts --generators structured``. ``W = H M^-1 H^T`` of integer H that lose rank, of chains, towers,
rings and random graphs with masses 1 to 10^6, in units of 10^-8 to 10^8; coefficients 0, 10^-6 and 10^3 side by side.
"""

import numpy as np
import scipy.linalg

from tests.benchmarks.structured_boxes import incidence

_COEFFICIENTS = (0.0, 1e-6, 0.3, 1.0, 1e3)


# ---------------------------------------------------------------------------------------------------------------------- matrices


def assembly(rng, laws, n):
    """Contacts are edges between bodies that move in each direction: the graph times identity, masses up to 10^6 apart."""
    n_bodies = int(rng.integers(1, len(laws) + 1))
    graph, d = incidence(rng, len(laws), n_bodies), max(law.N.size + law.T.size + law.R.size for law in laws)
    H = np.zeros((n, n_bodies * d))
    for i, law in enumerate(laws):
        for direction, place in enumerate([*law.N, *law.T, *law.R]):
            H[place, direction::d] = graph[i]
    return H @ (H / np.repeat(10.0 ** rng.choice([0, 0, 3, 6], size=n_bodies), d)).T


def lever(rng, laws, n):
    """One rigid body with many contacts: normals and tangents of integers and their lever arms, of rank six at most."""
    H = rng.integers(-2, 3, size=(n, int(rng.integers(1, 7)))).astype(float)
    return H @ (H * 2.0 ** rng.integers(-4, 5, size=H.shape[1])).T


def ring(rng, laws, n):
    """Circulant and semidefinite."""
    stencil = np.zeros(n)
    stencil[: min(3, n)] = rng.integers(-2, 3, size=min(3, n))
    C = scipy.linalg.circulant(stencil)
    return C @ C.T


def decaying(rng, laws, n):
    """Toeplitz: a string of contacts, each of which feels the others by a power of their distance."""
    return scipy.linalg.toeplitz(rng.choice([-0.5, 0.5, 0.9, -0.9, 0.999]) ** np.arange(n))


def jammed(rng, laws, n):
    """Contacts in pairs that press on the same body from both sides: normals against each other, tangents along each other."""
    W, first = lever(rng, laws, n), laws[0]
    for law in laws[1::2]:
        for mine, other in ((law.N, first.N), (law.T, first.T), (law.R, first.R)):
            k = min(len(mine), len(other))
            S = np.eye(n)
            S[mine[:k]] = 0.0
            S[mine[:k], other[:k]] = -1.0 if mine is law.N else 1.0
            W = S @ W @ S.T
    return W


def isolated(rng, laws, n):
    """Contacts that know of no other, without a tangential row, or without any."""
    W = np.zeros((n, n))
    for law in laws:
        places = np.r_[law.N, law.T, law.R]
        G = rng.integers(-1, 2, size=(len(places), len(places)))
        W[np.ix_(places, places)] = G @ G.T * rng.integers(2) + np.eye(len(places)) * rng.integers(2)
        if rng.uniform() < 0.3 and law.T.size:
            W[law.T], W[:, law.T] = 0.0, 0.0
    return W


def mesh(rng, laws, n):
    """Compliance of an elastic string: the inverse of its stiffness."""
    return np.linalg.inv(2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))


def skewed(rng, laws, n):
    """An assembly with gyroscopic terms."""
    W, A = assembly(rng, laws, n), rng.integers(-1, 2, size=(n, n))
    return W + 0.1 * abs(W).max() * (A - A.T)


MATRICES = (assembly, assembly, lever, ring, decaying, jammed, isolated, mesh, skewed)


# ---------------------------------------------------------------------------------------------------------------------- vectors


def planted(rng, laws, n):
    """(r, u) on edges: pressed without velocity, grazing without impulse, sticking on the face of the cone, and at its apex."""
    r, u = np.zeros(n), np.zeros(n)
    for law in laws:
        N, state = law.N[0], rng.integers(5)
        if law.kind == "equality":
            r[N] = rng.integers(-2, 3)
            continue
        if state == 0:  # open
            u[N] = rng.integers(1, 4)
        elif state == 1:  # grazing, with a tangential velocity
            u[law.T], u[law.R] = rng.integers(-1, 2, size=law.T.size), rng.integers(-1, 2, size=law.R.size)
        else:
            r[N] = rng.integers(1, 4)
            for part, mu in ((law.T, law.mu), (law.R, law.mu_r)):
                if part.size:
                    t = (np.eye(part.size)[int(rng.integers(part.size))], np.array([0.6, 0.8])[: part.size])[int(part.size == 2)]
                    r[part] = t * mu * r[N] * (rng.choice([0.0, 0.5, 1.0]) if state == 2 else 1.0)
                    u[part] = -t * (rng.integers(1, 3) if state == 4 else 0.0)
    return r, u


def proven(rng, laws, W):
    """(W, q) where a lever of two normals, or one normal without a row, allows no u_N >= 0: ``y^T W = 0`` and ``y^T q = -1``."""
    normals = [law.N[0] for law in laws if law.kind != "equality"]
    of = rng.choice(normals, size=min(len(normals), int(rng.integers(1, 3))), replace=False)
    S = np.eye(len(W))
    S[of[0]] = 0.0
    if len(of) > 1:
        S[of[0], of[1]] = -1.0
    W, q = S @ W @ S.T, rng.integers(-2, 3, size=len(W)).astype(float)
    q[of[0]] = -q[of[-1]] - rng.choice([1.0, 1e-3]) if len(of) > 1 else -1.0
    return W, q


def draw(rng, cls, laws, blocks, n):
    """(name, laws, blocks, W, q, solvable), as `fuzz_contacts.draw`, with other coefficients in its laws and blocks."""
    laws = [law._replace(mu=_coefficient(rng, law.T), mu_r=_coefficient(rng, law.R)) for law in laws]
    contacts = iter(law for law in laws if law.kind == "contact")
    blocks = [block if block[0] in ("equality", "lcp") else _with_coefficients(block, next(contacts)) for block in blocks]
    matrix, vector = MATRICES[rng.integers(len(MATRICES))], str(rng.choice(["planted", "planted", "gravity", "one", "proven", "faces"]))
    W = matrix(rng, laws, n)
    r, u = planted(rng, laws, n)
    if vector == "planted":
        q = (u - W.astype(np.longdouble) @ r).astype(float)
    elif vector == "proven":
        W, q = proven(rng, laws, W)
    elif vector == "gravity":
        q = np.zeros(n)
        q[[law.N[0] for law in laws]] = -1.0
    elif vector == "one":
        q = np.eye(n)[int(rng.integers(n))] * rng.choice([-1.0, 1.0])
    else:  # q itself in the cone, or opposite to it: on a face
        q = r * rng.choice([-1.0, 1.0])
    unit = str(rng.choice(["none", "none", "W", "q", "contacts"]))
    if unit == "W":
        W = W * 10.0 ** rng.choice([-8.0, 8.0])
    elif unit == "q":
        q = q * 10.0 ** rng.choice([-8.0, 8.0])
    elif unit == "contacts":  # one unit for each of them, so that cones stay cones
        S = np.ones(n)
        for law in laws:
            S[np.r_[law.N, law.T, law.R]] = 10.0 ** rng.choice([-4.0, 0, 4])
        W, q = S[:, None] * W * S, S * q
    solvable = not cls.startswith("gf") and vector == "planted" and unit != "contacts" and abs(W @ r).max(initial=0.0) < 1e6 * abs(q).max()
    return f"{cls}-{matrix.__name__}-{unit}-{vector}", laws, blocks, W, q, solvable


def _coefficient(rng, part):
    return float(rng.choice(_COEFFICIENTS)) if part.size else 0.0


def _with_coefficients(block, law):
    return (block[0], block[1], law.mu, law.mu_r) if block[0] == "rolling" else (block[0], block[1], law.mu)
