"""A roller that is pressed into an elastic bed of finite elements: half width of the contact, and the pressure of Hertz (1882)."""

import numpy as np

from nsds import _checks
from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import complementarity
from nsds.model.relations_first_order import first_order_linear_relation
from nsds.pictures.plotting import legend_beside
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 1000.0, "h": 100.0, "scheme": euler_moreau()}

RADIUS = 0.05  # m
_YOUNGS_MODULUS, _POISSON = 1e6, 0.3  # Pa, 1: rubber
_PLANE = _YOUNGS_MODULUS / (1.0 - _POISSON**2)  # of plane strain
_REACH = 1.6  # half widths within which nodes may touch
_GROWTH = 1.25  # of elements beyond


def hertz_roller(n=4, load=70.0, bed=12.0):
    """A rigid roller on an elastic bed in plane strain, ``u' = -K u + H^T lambda``, ``0 <= lambda ⟂ gap >= 0``, that comes to rest.

    The rate has no meaning: large implicit steps lead to rest, where the half width of the contact and its pressure are those of Hertz.

    Parameters
    ----------
    n : int
        Elements in half of the contact; those farther away grow. 4 make 841 unknowns, 64 with a bed of 40 15 139, with 205 rows.
    load : float
        Weight of the roller on a metre of its length (N/m).
    bed : float
        How many half widths away the bed ends: on 40 of them the roller rests as on a half space but for one part in a thousand.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``bed`` (sparse A; displacements x, y of each node above the fixed ones, then the height of the roller) and
        ``contact``, a row for each node that may touch, with forces in N/m.

    Examples
    --------
    Largest pressure over that of Hertz:

    >>> import nsds
    >>> from nsds.examples.hertz_roller import hertz, nodes
    >>> rows = nsds.simulate(nsds.examples.hertz_roller(), **nsds.examples.EXAMPLES["hertz_roller"].run)
    >>> width = nodes(4)[1] - nodes(4)[0]
    >>> round(float(rows["contact"]["lambda"][-1].max() / width / hertz(70.0)[1]), 2)
    1.0
    """
    from scipy.sparse import block_diag, csr_array

    n = _checks.integer("hertz_roller", "n", n, 2)
    load, bed = _checks.number("hertz_roller", "load", load, above=0.0), _checks.number("hertz_roller", "bed", bed, 2.0)
    # 1. stiffness of the nodes above the lowest ones, which are fixed, and the height of the roller, whose weight is a source
    across, depth = (_graded(n, load, bed, reach) for reach in (_REACH, 0.0))
    across, height = np.concatenate([-across[:0:-1], across]), -depth[::-1]
    K = _stiffness(across, height)
    free = np.flatnonzero(np.tile(np.repeat(np.arange(height.size) > 0, 2), across.size))
    A = -block_diag([K[free][:, free], csr_array((1, 1))]).tocsr()
    b = np.zeros(A.shape[0])
    b[-1] = -load
    # 2. gaps of the nodes of the surface under the roller: its height above them
    under = np.flatnonzero(abs(across) <= _REACH * hertz(load)[0] * (1.0 + 1e-9))
    m, every = under.size, np.arange(under.size)
    vertical = 2 * (height.size - 1) * (under + 1) - 1
    C = csr_array((np.repeat([-1.0, 1.0], m), (np.tile(every, 2), np.append(vertical, np.full(m, b.size - 1)))), shape=(m, b.size))
    relation = first_order_linear_relation(C=C, B=C.T.tocsr(), e=across[under] ** 2 / (2.0 * RADIUS))
    return system(
        bed=first_order_linear(A, b=b, x=np.zeros(b.size)),
        contact=interaction(relation, complementarity(), on="bed"),
    )


def hertz(load):
    """(half width of the contact, largest pressure) of a cylinder on a half space by Hertz."""
    half = np.sqrt(4.0 * load * RADIUS / (np.pi * _PLANE))
    return half, 2.0 * load / (np.pi * half)


def nodes(n, load=70.0):
    """Places of the nodes that may touch."""
    half = hertz(load)[0]
    most = int(_REACH * n + 1e-9)
    return half / n * np.arange(-most, most + 1)


def _graded(n, load, bed, reach):
    """Places from 0 on: elements of an n-th of the half width within so many half widths, growing beyond."""
    half = hertz(load)[0]
    widths = np.full(int(reach * n + 1e-9), half / n)
    while widths.sum() < bed * half:
        widths = np.append(widths, _GROWTH * (widths[-1] if widths.size else half / (n * _GROWTH)))
    return np.concatenate([[0.0], np.cumsum(widths)])


def _stiffness(across, height):
    """Stiffness of bilinear rectangles between these places, unknowns x, y of a node together, columns of nodes one after the other."""
    from scipy.sparse import kron

    lame = _YOUNGS_MODULUS * _POISSON / ((1.0 + _POISSON) * (1.0 - 2.0 * _POISSON))
    shear = _YOUNGS_MODULUS / (2.0 * (1.0 + _POISSON))
    (m_x, s_x, g_x), (m_y, s_y, g_y) = _along(across), _along(height)
    blocks = {
        (0, 0): (lame + 2 * shear) * kron(s_x, m_y) + shear * kron(m_x, s_y),
        (1, 1): (lame + 2 * shear) * kron(m_x, s_y) + shear * kron(s_x, m_y),
        (0, 1): lame * kron(g_x, g_y.T) + shear * kron(g_x.T, g_y),
        (1, 0): lame * kron(g_x.T, g_y) + shear * kron(g_x, g_y.T),
    }
    return sum(kron(block, np.outer(np.arange(2) == i, np.arange(2) == j)) for (i, j), block in blocks.items()).tocsr()


def _along(places):
    """Integrals of N_i N_j, N_i' N_j' and N_i' N_j of hat functions on these places."""
    from scipy.sparse import diags_array

    def assembled(element, scale):
        of_left, of_right = np.append(scale, 0.0), np.append(0.0, scale)
        (a, b), (c, d) = element
        return diags_array([c * scale, a * of_left + d * of_right, b * scale], offsets=[-1, 0, 1])

    width = np.diff(places)
    mass, stiffness = assembled(((2, 1), (1, 2)), width / 6.0), assembled(((1, -1), (-1, 1)), 1.0 / width)
    return mass, stiffness, assembled(((-1, -1), (1, 1)), np.full(width.size, 0.5))


def draw(system, trajectory):
    """Pressure at rest beside that of Hertz, and the deformed surface with the roller."""
    import matplotlib.pyplot as plt

    load, force = -float(system["bed"]["b"][-1]), trajectory["contact"]["lambda"][-1]
    half, peak = hertz(load)
    x = np.sqrt(2.0 * RADIUS * system["contact"]["e"]) * np.sign(np.arange(force.size) - force.size // 2)
    drawing, (pressure, surface) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    # 1. forces of the nodes over the width that each stands for
    fine = np.linspace(-half, half, 200)
    pressure.plot(1e3 * fine, 1e-3 * peak * np.sqrt(1.0 - (fine / half) ** 2), "k", linewidth=0.8, label="Hertz")
    pressure.plot(1e3 * x, 1e-3 * force / (x[1] - x[0]), ".", label="nodes")
    pressure.set(xlabel="x (mm)", ylabel="pressure (kPa)")
    # 2. the roller above its surface
    roller = trajectory["bed"]["x"][-1, -1] + x**2 / (2.0 * RADIUS)
    surface.plot(1e3 * x, 1e3 * roller, "k", linewidth=0.8, label="roller")
    surface.plot(1e3 * x, 1e3 * (roller - trajectory["contact"]["y"][-1]), ".", label="surface")
    surface.set(xlabel="x (mm)", ylabel="height (mm)")
    pressure.legend(frameon=False)
    legend_beside(surface)
    return drawing
