"""Families of contact problems: each draws the matrices of n contacts in the plane or in space, with rolling or without.

A family is a function ``(rng, n, dimension, rolling) -> (W, q, M, H, f, w)``; M, H, f and w are None where there is no global form. Those
of bodies have ``f = M v`` and ``w = (gap / step, 0, ...)``: v = 0 keeps all laws at rest, so that no force that balances itself does work.
"""

import numpy as np

from nsds import _checks
from nsds.solvers.contact.forms import friction, inverse_times
from nsds.solvers.problems import families
from nsds.solvers.problems.contact_problem import ContactProblem

_LAYERS = 3  # of nodes in a flexible block
_STIFFNESS = 10.0  # of its springs, times the square of the step, over the mass of a node
_FACE = {  # where boxes touch: corners first, then points between them
    2: np.array([[-1.0], [1.0], [-1.0 / 3.0], [1.0 / 3.0]]),
    3: np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]]),
}


def frames(normal):
    """(n, D, D): rows are the unit normal and the tangents of each contact."""
    n, dimension = normal.shape
    if dimension == 2:
        return np.stack([normal, np.stack([-normal[:, 1], normal[:, 0]], axis=1)], axis=1)
    least = np.zeros_like(normal)
    least[np.arange(n), abs(normal).argmin(axis=1)] = 1.0
    first = np.cross(normal, least)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    return np.stack([normal, first, np.cross(normal, first)], axis=1)


def wrenches(frame, lever, rolling):
    """(n, d, 3 or 6): force and torque of each unit reaction on a body, at a lever from its centre."""
    n, dimension, _ = frame.shape
    if dimension == 2:
        torque = (lever[:, None, 0] * frame[..., 1] - lever[:, None, 1] * frame[..., 0])[..., None]
        axes = np.ones((n, 1, 1))
    else:
        torque, axes = np.cross(lever[:, None], frame), frame[:, 1:]
    forces = np.concatenate([frame, torque], axis=2)
    if not rolling:
        return forces
    return np.concatenate([forces, np.concatenate([np.zeros((n, dimension - 1, dimension)), axes], axis=2)], axis=1)


def bodies(centre, mass, inertia, v, a, b, point, normal, gap, rolling):
    """(W, q, M, H, f, w) of rigid bodies with diagonal inertia: contact c pushes body a_c along its normal, b_c (-1: the ground) back."""
    from scipy.sparse import coo_array, diags_array

    n, dimension = normal.shape
    frame = frames(normal)
    rows, columns, data = [], [], []
    for sign, body in ((1.0, a), (-1.0, b)):
        c = np.flatnonzero(body >= 0)
        wrench = sign * wrenches(frame[c], point[c] - centre[body[c]], rolling)
        shape, (d, size) = wrench.shape, wrench.shape[1:]
        rows.append(np.broadcast_to((body[c] * size)[:, None, None] + np.arange(size), shape).ravel())
        columns.append(np.broadcast_to((c * d)[:, None, None] + np.arange(d)[:, None], shape).ravel())
        data.append(wrench.ravel())
    entries = np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))
    H = coo_array(entries, shape=(len(centre) * size, n * d)).tocsr()
    weight = np.concatenate([np.repeat(mass[:, None], dimension, axis=1), np.repeat(inertia[:, None], size - dimension, axis=1)], axis=1)
    weight, w = weight.ravel(), np.zeros((n, d))
    w[:, 0] = gap
    W = (H.T @ diags_array(1.0 / weight) @ H).tocsr()
    return W, H.T @ v.ravel() + w.ravel(), diags_array(weight).tocsr(), H, weight * v.ravel(), w.ravel()


def velocities(rng, n, dimension, fall):
    """(n, 3 or 6): random velocities of bodies, and what gravity adds in a step."""
    v = 0.3 * rng.normal(size=(n, 3 if dimension == 2 else 6))
    v[:, dimension - 1] -= fall
    return v


def stack(rng, n, dimension, rolling):
    """A tower of boxes of different masses, which touch in 4 or 8 points (2 or 4 in the plane): hyperstatic, W of low rank."""
    corners = len(_FACE[dimension]) // 2
    size = corners * rng.integers(1, 3, size=-(-n // corners))
    box = np.repeat(np.arange(size.size), size)[:n]
    n_boxes = box[-1] + 1
    place = np.arange(n) - (np.cumsum(size) - size)[box]
    centre = np.column_stack([0.1 * rng.uniform(-1.0, 1.0, size=(n_boxes, dimension - 1)), np.arange(n_boxes) + 0.5])
    mass = 10.0 ** rng.uniform(-0.5, 0.5, size=n_boxes)
    middle = 0.5 * (centre + np.concatenate([centre[:1], centre[:-1]]))[box, :-1]
    point = np.column_stack([middle + 0.4 * _FACE[dimension][place], box])
    normal = np.tile(np.eye(dimension)[-1], (n, 1))
    v = velocities(rng, n_boxes, dimension, 1.0)
    return bodies(centre, mass, mass / 6.0, v, box, box - 1, point, normal, 0.0, rolling)


def pile(rng, n, dimension, rolling):
    """Spheres on a disturbed lattice that fall: each touches some of its neighbours, the lowest the ground; some gaps are still open."""
    width = max(1, round((n / dimension) ** (1.0 / dimension)))
    n_bodies = n_candidates = -(-5 * n // 4)
    body = np.arange(n_bodies)
    lattice = np.stack([body // width**k % width if k < dimension - 1 else body // width**k for k in range(dimension)], axis=1)
    below = body[:, None] - width ** np.arange(dimension)
    below[lattice == 0] = -1
    touching = lattice > 0
    touching[:, -1] = True
    i, axis = (x[:n_candidates] for x in np.nonzero(touching))
    chosen = np.sort(rng.choice(i.size, size=n, replace=False))
    a, b = i[chosen], below[i[chosen], axis[chosen]]
    n_bodies = a[-1] + 1
    radius = rng.uniform(0.35, 0.5, size=n_bodies)
    centre = lattice[:n_bodies] + 0.5 + rng.uniform(-0.15, 0.15, size=(n_bodies, dimension))
    normal, point = centre[a] - centre[b], centre[a].copy()
    normal[b < 0] = point[b < 0] = 0.0
    normal[b < 0, -1] = 1.0
    point[b < 0, :-1] = centre[a[b < 0], :-1]
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    share = (radius[b] / (radius[a] + radius[b]))[:, None]
    point = np.where(b[:, None] < 0, point, centre[b] + share * (centre[a] - centre[b]))
    mass = (2.0 * radius) ** dimension
    inertia = (0.5 if dimension == 2 else 0.4) * mass * radius**2
    gap = np.where(rng.uniform(size=n) < 0.3, rng.exponential(0.3, size=n), 0.0)
    return bodies(centre, mass, inertia, velocities(rng, n_bodies, dimension, 1.0), a, b, point, normal, gap, rolling)


def chain(rng, n, dimension, rolling):
    """A row of n + 1 blocks pushed together, each contact between two: W is block tridiagonal; time and memory are linear in n."""
    block, c = np.arange(n + 1), np.arange(n)
    centre = np.zeros((n + 1, dimension))
    centre[:, 0] = block
    point = 0.3 * rng.uniform(-1.0, 1.0, size=(n, dimension))
    point[:, 0] = c + 0.5
    normal = 0.2 * rng.normal(size=(n, dimension))
    normal[:, 0] = 1.0
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    mass = rng.uniform(0.5, 2.0, size=n + 1)
    v = velocities(rng, n + 1, dimension, 0.0)
    v[:, 0] += 1.0 - 2.0 * block / n
    return bodies(centre, mass, mass / 6.0, v, c + 1, c, point, normal, 0.0, rolling)


def flexible(rng, n, dimension, rolling):
    """A block of springs whose lowest nodes meet the ground: W is dense, symmetric and positive definite; nodes do not roll."""
    from scipy.sparse import coo_array, eye_array
    from scipy.spatial import cKDTree

    if rolling:
        raise ValueError("generate_contacts: the nodes of the family 'flexible' do not turn, mu_r must be None")
    width = n if dimension == 2 else round(np.ceil(np.sqrt(n)))
    column = np.arange(n)
    ground = np.stack([column % width, column // width][: dimension - 1], axis=1)
    lattice = np.concatenate([np.column_stack([ground, np.full(n, layer)]) for layer in range(_LAYERS)])
    i, j = cKDTree(lattice).query_pairs(1.75, output_type="ndarray").T  # edges and diagonals of the cells
    position = lattice + rng.uniform(-0.1, 0.1, size=lattice.shape)
    along = position[j] - position[i]
    along *= np.linalg.norm(along, axis=1, keepdims=True) ** -1.5  # a bar of length L has the stiffness 1 / L
    block = _STIFFNESS * along[:, :, None] * along[:, None, :]
    unknown = dimension * np.stack([i, i, j, j]), dimension * np.stack([i, j, i, j])
    shape = (4, *block.shape)
    row = np.broadcast_to(unknown[0][..., None, None] + np.arange(dimension)[:, None], shape)
    col = np.broadcast_to(unknown[1][..., None, None] + np.arange(dimension), shape)
    data = np.array([1.0, -1.0, -1.0, 1.0])[:, None, None, None] * block
    size = lattice.size
    M = (eye_array(size) + coo_array((data.ravel(), (row.ravel(), col.ravel())), shape=(size, size))).tocsr()
    normal_first = dimension * column[:, None] + np.roll(np.arange(dimension), 1)
    H = coo_array((np.ones(n * dimension), (normal_first.ravel(), np.arange(n * dimension))), shape=(size, n * dimension)).tocsc()
    f = 0.5 * rng.normal(size=lattice.shape)
    f[:, -1] -= 1.0
    gap = np.where(rng.uniform(size=n) < 0.3, rng.exponential(0.3, size=n), 0.0)
    w = np.column_stack([gap, np.zeros((n, dimension - 1))]).ravel()
    solve_M, inverse_H = inverse_times("generate_contacts", M, H)
    W = (H.T @ inverse_H).toarray()
    return 0.5 * (W + W.T), H.T @ solve_M(f.ravel()) + w, M, H, f.ravel(), w


def _components(dimension, rolling):
    return dimension + (dimension - 1 if rolling else 0)


def random(rng, n, dimension, rolling):
    """Dense, symmetric and positive definite."""
    return *families.positive_definite(rng, n * _components(dimension, rolling)), None, None, None, None


def unsymmetric(rng, n, dimension, rolling):
    """Dense, positive definite, and not symmetric."""
    return *families.unsymmetric(rng, n * _components(dimension, rolling)), None, None, None, None


CONTACT_FAMILIES = {family.__name__: family for family in (stack, pile, chain, flexible, random, unsymmetric)}
_SPACES = {(2, False): 2, (3, False): 3, (3, True): 2, (5, True): 3}  # of d and rolling


def generate_contacts(family, n_contacts, seed=0, d=3, mu=0.5, mu_r=None):
    """A random contact problem of a family.

    Parameters
    ----------
    family : str
        A name from `nsds.solvers.CONTACT_FAMILIES`: "stack" (boxes on top of each other, hyperstatic), "pile" (spheres), "chain" (a row of
        blocks), "flexible" (a block of springs), "random" and "unsymmetric" (dense matrices).
    n_contacts : int
        Contacts.
    seed : int
        The same seed gives the same problem.
    d : int
        Components of a contact: 2 in the plane, 3 in space; with rolling friction 3 and 5.
    mu : float or array_like (n_contacts,)
        Coefficients of friction.
    mu_r : float or array_like (n_contacts,), optional
        Coefficients of rolling friction; not for "flexible".

    Returns
    -------
    ContactProblem
        NamedTuple (name, W, q, mu, mu_r, M, H, f, w): ``u = W r + q``, and but for "random" and "unsymmetric" the same as
        ``M v = f + H r``, ``u = H^T v + w``. W is symmetric but for "unsymmetric", positive definite for it, "flexible" and "random", and
        semidefinite for the others; sparse for "stack", "pile" and "chain".

    Raises
    ------
    ValueError
        Unknown family; n_contacts < 1; a number of components that does not go with mu_r; negative coefficients.

    Examples
    --------
    >>> import nsds
    >>> problem = nsds.solvers.generate_contacts("chain", 3)
    >>> problem.name, problem.W.shape, problem.H.shape
    ('chain-3-0-fc3d', (9, 9), (24, 9))
    >>> nsds.solvers.solve_fc3d(problem.W, problem.q, problem.mu).status
    0
    """
    owner = "generate_contacts"
    draw, n, rng = families.drawing(owner, CONTACT_FAMILIES, family, "n_contacts", n_contacts, seed)
    rolling = mu_r is not None
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or (d, rolling) not in _SPACES:
        raise ValueError(f"{owner}: d must be {'3 or 5 with mu_r' if rolling else '2 or 3 without mu_r'}, got {_checks.shortened(d)}")
    mu, rolls = friction(owner, mu, mu_r if rolling else 0.0, n).reshape(n, 2).T.copy()
    dimension = _SPACES[d, rolling]
    W, q, *rest = draw(rng, n, dimension, rolling)
    return ContactProblem(f"{family}-{n}-{seed}-{'r' if rolling else ''}fc{dimension}d", W, q, mu, rolls if rolling else None, *rest)
