"""A plucked stiff string that buzzes against frets, in modal coordinates (Issanchou, Acary, Pérignon, Touzé, Le Carrou 2018)."""

import numpy as np

from nsds.model.assembly import system
from nsds.model.interactions import interaction
from nsds.model.lagrangian import lagrangian_modal
from nsds.model.laws import newton_impact
from nsds.model.relations_lagrangian import lagrangian_linear_relation
from nsds.pictures.plotting import figure, time_series
from nsds.schemes.options.exact import moreau_jean_exact

RUN = {"t_end": 0.1, "h": 5e-5, "scheme": moreau_jean_exact()}


def guitar_string(n_modes=20, frets=0.7, height=-5e-4, e=0.9, pluck=0.3, amplitude=2e-3):
    """String of 1 m with ``u(x, t) = sum_j sqrt(2) sin(j pi x) q_j(t)``, plucked to a triangle, above frets.

    Parameters
    ----------
    n_modes : int
        Number of modes.
    frets : float or array_like (m,)
        Where the frets are along the string, 0 to 1 m.
    height : float or array_like (m,)
        Of the frets, the string at rest being at 0 (m).
    e : float
        Restitution.
    pluck, amplitude : float
        Where the string is plucked, and by how much (m).

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``string`` and ``frets``.

    Notes
    -----
    The string (speed of waves 100 m/s, inharmonicity 1e-4, decay 0.5 + 0.01 j² 1/s) and the default fret are those of the case
    modal_string_one_fret of the reference collection.

    Examples
    --------
    >>> import nsds
    >>> string = nsds.examples.guitar_string(frets=[0.6, 0.7, 0.8])
    >>> string["frets"]["H"].shape
    (3, 20)

    Modes are slightly sharp against multiples of the first, 50 Hz:

    >>> (string["string"]["K"][:3] ** 0.5 / (2 * np.pi)).round(2)
    array([ 50.  , 100.02, 150.07])
    """
    j = np.arange(1, n_modes + 1)
    omega, sigma = 100.0 * np.pi * j * np.sqrt(1 + 1e-4 * j**2), 0.5 + 0.01 * j**2
    triangle = 2**0.5 * amplitude * np.sin(j * np.pi * pluck) / (j**2 * np.pi**2 * pluck * (1 - pluck))
    shapes = 2**0.5 * np.sin(np.pi * np.outer(np.atleast_1d(frets), j))
    return system(
        string=lagrangian_modal(omega, sigma, q=triangle, v=np.zeros(n_modes)),
        frets=interaction(
            lagrangian_linear_relation(H=shapes, b=np.broadcast_to(-np.asarray(height), len(shapes))), newton_impact(e), on="string"
        ),
    )


def draw(system, trajectory):
    """Shape of the string at eight instants with the height of the frets, gaps, and impulses."""
    drawing, axes = figure(3)
    q = trajectory["string"]["q"]
    x = np.linspace(0.0, 1.0, 201)
    shapes = 2**0.5 * np.sin(np.pi * np.outer(np.arange(1, q.shape[1] + 1), x))
    period = np.searchsorted(trajectory["t"], trajectory["t"][0] + 0.02)  # of the first mode
    for i in np.linspace(0, min(period, len(q) - 1), 8).astype(int):
        axes[0].plot(x, q[i] @ shapes, linewidth=0.8, color="C0")
    axes[0].axhline(-system["frets"]["b"].max(), color="C1", linewidth=0.8)
    axes[0].set(xlabel="x (m)", ylabel="displacement (m)")
    time_series(trajectory, "frets.y", ax=axes[1])
    time_series(trajectory, "frets.lambda", ax=axes[2])
    return drawing
