"""An elastic block, pressed on the ground and sheared until its edges slide: finite elements with friction in space."""

import numpy as np

from nsds import _checks
from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.laws import newton_impact_friction
from nsds.model.relations_lagrangian import lagrangian_linear_relation
from nsds.model.systems import lagrangian_linear
from nsds.pictures.plotting import legend_beside
from nsds.schemes.options.moreau_jean import moreau_jean

RUN = {"t_end": 0.24, "h": 4e-3, "scheme": moreau_jean(theta=1.0)}

SIDE, HEIGHT = 0.1, 0.05  # m
_YOUNGS_MODULUS, _POISSON, _DENSITY = 1e6, 0.3, 1000.0  # Pa, 1, kg/m^3: rubber
_DAMPING = 2e-3  # s, times K
_PRESSED, _SHEARED = 0.04, 0.2  # s: while the pressure grows, then while the shear grows


def load(t, z, out):
    """Pressure on the top grows until z[0], then shear for z[1]; forces of both, in full, lie behind."""
    n = out.size
    pressure, shear = min(t / z[0], 1.0), min(max((t - z[0]) / z[1], 0.0), 1.0)
    for i in range(n):
        out[i] = pressure * z[2 + i] + shear * z[2 + n + i]


def sheared_block(n=4, mu=0.5, pressure=2e4, shear=0.8):
    """Block of rubber, 0.1 m × 0.1 m × 0.05 m, of hexahedra; each node of its lower face may touch the ground.

    Parameters
    ----------
    n : int
        Elements along a side, even; half as many in height. 16 make 7803 unknowns with 289 contacts, 40 make 105 903 with 1681.
    mu : float
        Friction.
    pressure : float
        On the upper face (Pa).
    shear : float
        Force along x on the upper face at the end, as part of the one at which the whole block slides.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``block`` (sparse M, K, C; displacements x, y, z of each node) and ``floor``.

    Raises
    ------
    ImportError
        scikit-fem, extra ``fem``, which makes mesh and matrices, is not installed.

    Notes
    -----
    Iteration matrices of such bodies are factorised in fronts (nested dissection), with the coordinates of contacts last, so that the
    Delassus matrix is at hand without solving for each contact.

    Examples
    --------
    The edges slide while the middle sticks:

    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.sheared_block(), **nsds.examples.EXAMPLES["sheared_block"].run)
    >>> impulse = rows["floor"]["lambda"][-1].reshape(-1, 3)
    >>> slides = (impulse[:, 1] ** 2 + impulse[:, 2] ** 2) ** 0.5 > 0.499999 * impulse[:, 0]
    >>> bool(slides[impulse[:, 0] > 0].any()), bool(slides[impulse[:, 0] > 0].all())
    (True, False)
    """
    from scipy.sparse import csr_array

    mesh, M, K = _elements(n)
    z = mesh.p[2]
    area = _areas(n).reshape(-1)
    top, bottom = (nodes[np.lexsort(mesh.p[:2, nodes])] for nodes in (np.flatnonzero(z == HEIGHT), np.flatnonzero(z == 0.0)))
    down, along = np.zeros((2, M.shape[0]))
    down[3 * top + 2], along[3 * top] = -pressure * area, shear * mu * pressure * area
    rows = np.arange(3 * bottom.size)
    H = csr_array((np.ones(rows.size), (rows, (3 * bottom[:, None] + [2, 0, 1]).reshape(-1))), shape=(rows.size, M.shape[0]))
    rest = np.zeros(M.shape[0])
    return system(
        block=lagrangian_linear(M=M, K=K, C=_DAMPING * K, fext=load, q=rest, v=rest, z=np.concatenate([[_PRESSED, _SHEARED], down, along])),
        floor=interaction(lagrangian_linear_relation(H=H), newton_impact_friction(e_n=0.0, mu=mu, dimension=3), on="block"),
    )


def _elements(n):
    """(mesh, mass, stiffness) of the block."""
    _checks.require_package("skfem", "scikit-fem", "sheared_block: mesh and matrices are made by scikit-fem")
    import skfem
    from skfem.helpers import dot
    from skfem.models.elasticity import lame_parameters, linear_elasticity

    mesh = skfem.MeshHex.init_tensor(*(np.linspace(0.0, length, k + 1) for length, k in ((SIDE, n), (SIDE, n), (HEIGHT, n // 2))))
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementHex1()), intorder=2)
    K = linear_elasticity(*lame_parameters(_YOUNGS_MODULUS, _POISSON)).assemble(basis)
    M = skfem.BilinearForm(lambda u, v, w: _DENSITY * dot(u, v)).assemble(basis)
    order = basis.nodal_dofs.T.reshape(-1)  # x, y, z of the nodes in their order
    return mesh, M[order][:, order], K[order][:, order]


def _areas(n):
    """Area of a face that each of its nodes stands for (n + 1, n + 1)."""
    width = np.full(n + 1, SIDE / n)
    width[[0, -1]] /= 2
    return np.outer(width, width)


def draw(system, trajectory):
    """The lower face at the end: pressure, and where it sticks and slides; how many contacts do so in time."""
    import matplotlib.pyplot as plt

    # 1. contacts that are open, stick and slide: those slide whose friction is on the cone
    m = round(np.sqrt(trajectory["floor"]["lambda"].shape[-1] / 3))
    impulse = trajectory["floor"]["lambda"].reshape(-1, m * m, 3)
    normal, tangential, mu = impulse[..., 0], np.hypot(impulse[..., 1], impulse[..., 2]), system["floor"]["mu"].reshape(-1)
    presses = normal > 0
    slides = presses & (tangential > (1 - 1e-6) * mu * normal)
    where = np.meshgrid(*(np.linspace(0, 1e3 * SIDE, m),) * 2)
    # 2. pressure of the face at the end, with the status of its contacts, and their numbers in time
    drawing, (face, counts) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    h = trajectory["t"][-1] / max(int(trajectory["step"][-1]), 1)
    shown = face.pcolormesh(*where, 1e-3 * (normal[-1] / h).reshape(m, m) / _areas(m - 1), cmap="Blues", shading="gouraud")
    drawing.colorbar(shown, ax=face, label="pressure (kPa)")
    for chosen, marker, label in ((presses & ~slides, "ks", "sticks"), (slides, "r>", "slides"), (~presses, "wo", "open")):
        face.plot(*(axis.reshape(-1)[chosen[-1]] for axis in where), marker, ms=4, mec="k", label=label)
        counts.plot(trajectory["t"], chosen.sum(axis=1), label=label)
    face.set(xlabel="x (mm)", ylabel="y (mm)", aspect="equal")
    counts.set(xlabel="t (s)", ylabel="contacts")
    face.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3, fontsize="small", frameon=False)
    legend_beside(counts)
    return drawing
