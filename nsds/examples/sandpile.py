"""Sand that is poured on a table: Prigozhin's variational model, a sweeping process whose set is that of slopes at rest.

References: Prigozhin, "Variational model of sandpile growth", European Journal of Applied Mathematics 7 (1996) 225–235.
"""

import numpy as np

from nsds import _checks
from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import complementarity
from nsds.model.relations_first_order import first_order_linear_relation
from nsds.schemes.options.euler_moreau import euler_moreau

RUN = {"t_end": 0.2, "h": 2e-3, "scheme": euler_moreau()}


def sandpile(n=99, slope=1.0, source=0.35):
    """Heap on a table of length 1 without rims; ``-(u' - w) ∈ N_K(u)``, K the heights u no steeper than sand that does not slide.

    Sand falls on one place at the rate 1. Between two of n places it is as steep as it may be, or does not slide there:
    ``0 <= slope ± u_x ⟂ lambda >= 0``, and lambda is how much slides.

    Parameters
    ----------
    n : int
        Places along the table.
    slope : float
        Tangent of the angle of repose, positive.
    source : float
        Where the sand falls, between 0 and 1; at the nearest place.

    Returns
    -------
    numpy.ndarray, shape ()
        Record with the parts ``heap`` (heights) and ``repose``, whose rows have the n + 1 slopes upwards and then those downwards.

    Examples
    --------
    The height at t = 0.09, before the heap reaches the edge; it grows as the square root of ``slope t``:

    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.sandpile(), **nsds.examples.EXAMPLES["sandpile"].run)
    >>> round(float(rows["heap"]["x"][45].max()), 3)
    0.3
    """
    from scipy.sparse import diags_array, eye_array, vstack

    # 1. what falls in a time on the place of the source
    n, slope = _checks.integer("sandpile", "n", n, 2), _checks.number("sandpile", "slope", slope, above=0.0)
    width, place = 1.0 / (n + 1), _checks.number("sandpile", "source", source, 0.0, 1.0)
    falls = np.zeros(n)
    falls[min(max(round(place / width), 1), n) - 1] = 1.0 / width
    # 2. slopes, those beside the table's ends with the height 0 there
    slopes = diags_array([np.ones(n), -np.ones(n)], offsets=[0, -1], shape=(n + 1, n)) / width
    C = vstack([slopes, -slopes])
    relation = first_order_linear_relation(C=C, B=C.T, e=np.full(2 * n + 2, slope))
    return system(
        heap=first_order_linear(0.0 * eye_array(n), b=falls, x=np.zeros(n)), repose=interaction(relation, complementarity(), on="heap")
    )


def draw(system, trajectory):
    """The heap at some times, and its volume beside what was poured, up to where it reaches the nearer edge."""
    import matplotlib.pyplot as plt

    drawing, (section, volume) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    heights = np.pad(trajectory["heap"]["x"], [(0, 0), (1, 1)])
    places = np.linspace(0.0, 1.0, heights.shape[1])
    for k in np.linspace(0, len(trajectory) - 1, 6).astype(int)[1:]:
        section.plot(places, heights[k], label=f"t = {trajectory['t'][k]:.2g}")
    section.set(xlabel="x", ylabel="height", aspect="equal")
    section.legend(frameon=False)
    volume.plot(trajectory["t"], heights.sum(axis=1) * places[1], label="heap")
    volume.plot(trajectory["t"], trajectory["t"], "k--", label="poured")
    volume.set(xlabel="t", ylabel="volume")
    volume.legend(frameon=False)
    return drawing
