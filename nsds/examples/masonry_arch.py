"""A semicircular arch of dry stones in the plane: it stands where it is thick enough, and falls by four hinges where it is not."""

import itertools

import numpy as np

from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.laws import newton_impact_friction
from nsds.model.planar_bodies import planar_bodies
from nsds.model.shapes import centre_of_mass, half_plane, inertia, polygon, volume
from nsds.pictures.plotting import snapshots

RUN = {"t_end": 1.0, "h": 1e-3, "save_every": 10}

_GRAVITY, _DENSITY = 9.81, 2400.0


def masonry_arch(n=15, thickness=0.13, radius=2.0, mu=0.7):
    """Arch of wedges with radial joints on level ground, drawn exactly touching.

    Parameters
    ----------
    n : int
        Stones.
    thickness : float
        As a fraction of the mean radius.
    radius : float
        Mean radius (m).
    mu : float
        Friction of the joints.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``stones``, an array, from right to left, and ``joints``.

    Notes
    -----
    Cut at any place, a semicircular arch that does not slide stands from ``thickness = 0.1075`` on: with less, no line of thrust lies
    within it, and hinges open at the feet, the crown and about 54 degrees from it (Milankovitch, Zeitschrift für Mathematik und Physik 55,
    1907, 1–27). With few joints, which are not just there, it stands with a little less.

    Examples
    --------
    >>> import nsds
    >>> run = nsds.examples.EXAMPLES["masonry_arch"].run
    >>> for thickness in (0.13, 0.09):
    ...     rows = nsds.simulate(nsds.examples.masonry_arch(thickness=thickness), **run)
    ...     q, _ = nsds.in_plane(rows["stones"])
    ...     bool(abs(q[-1, 7, 1] - q[0, 7, 1]) < 1e-6)
    True
    False
    """
    # 1. stones between radial joints, each in the frame of its centre of mass
    angles = np.pi * np.arange(n + 1) / n
    rays = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    shapes, centres = [], []
    for one, other in itertools.pairwise(rays):
        half = thickness / 2
        corners = np.stack([(1 - half) * one, (1 + half) * one, (1 + half) * other, (1 - half) * other])
        centres.append(centre_of_mass(polygon(corners))[:2])
        shapes.append([polygon(corners, position=-centres[-1])])
    # 2. masses and moments of inertia from the areas
    mass = _DENSITY * np.array([volume(each) for (each,) in shapes])
    moment = np.array([inertia(each, m) for (each,), m in zip(shapes, mass, strict=True)])
    return system(
        gravity=[0, -_GRAVITY, 0],
        stones=planar_bodies(mass, moment, q=np.column_stack([centres, np.zeros(n)]), v=np.zeros((n, 3))),
        joints=collisions({"stones": shapes}, newton_impact_friction(e_n=0.0, mu=mu), world=half_plane()),
    )


def draw(system, trajectory):
    """The arch at the start and at the end."""
    return snapshots(system, trajectory, 2)
