"""Zero-order hold: linear first-order systems stepped exactly while control, source and multiplier are held over the step.

    x_{k+1} = exp(M^-1 A h) x_k + Psi (b(t_{k+1}) + T u + r),      Psi = integral of exp(M^-1 A s) over [0, h] M^-1

It is the step of `nsds.schemes.first_order.linear` with Psi in place of ``h (M - h theta A)^-1``, because ``exp(A h) - I = Psi A``.
"""

import numpy as np

from nsds.model.kinds import FIRST_ORDER
from nsds.model.layout import ABSENT, DENSE, DIAGONAL
from nsds.schemes.first_order import linear
from nsds.schemes.first_order.tables import is_constant, layout_of
from nsds.schemes.linear_algebra import dense
from nsds.schemes.run.memory import Allocator
from nsds.schemes.table import scheme_for

OPTIONS = np.dtype([("scheme", "S16")])


@scheme_for(FIRST_ORDER)
def zero_order_hold():
    """Options of the zero-order hold: exact for linear systems whose control, source and multipliers are constant over each step.

    A source or control that is a function of time is taken at the end of the step and held. Laws hold at the end of the step, with the
    multiplier that acts over it.

    Returns
    -------
    numpy.ndarray, shape ()
        Record for `nsds.simulate`.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> decay = nsds.system(tank=nsds.first_order_linear(A=[[-1.0]], x=[1.0]))
    >>> rows = nsds.simulate(decay, t_end=1.0, h=0.5, scheme=nsds.zero_order_hold())
    >>> bool(abs(rows["tank"]["x"][-1, 0] - np.exp(-1.0)) < 1e-15)
    True
    """
    record = np.zeros((), OPTIONS)
    record["scheme"] = b"zero_order_hold"
    return record


def prepare(records, mem, options, h, method):
    """Exponentials, tables, and the matrices of the one-step problem of all members."""
    work, iwork = Allocator(records.size), Allocator(records.size)
    layout = layout_of(records, work)
    if not is_constant(layout):
        raise ValueError("zero_order_hold: A and the relations must be linear and constant in time; use nsds.euler_moreau")
    inverses = [_integral(records[name], part, name, h) for name, part in zip(layout.part_names, layout.parts, strict=True)]
    return linear.prepare(records, layout, inverses, linear.Options(h, 1.0, 0.0, 1.0, 1.0), method, work, iwork)


def _integral(records, part, name, h):
    """(kind, Psi, no index, 0, 0) for the elements of a part, as `nsds.schemes.linear_algebra.invert` gives a matrix."""
    from scipy.linalg import expm

    records = records.reshape(records.shape[0], -1)
    n = part["n"].item()
    no_index = np.zeros((*records.shape, 0), np.int64)
    if part["A_kind"] == DIAGONAL and part["M"] == ABSENT:
        exponent = h * records["A"]
        small = exponent == 0
        return DIAGONAL, h * np.where(small, 1.0, np.expm1(exponent) / np.where(small, 1.0, exponent)), no_index, 0, 0
    try:
        M_inverse = np.linalg.inv(dense(records, part, "M"))
    except np.linalg.LinAlgError:
        raise ValueError(f"part '{name}': M is singular; the zero-order hold needs its inverse, use nsds.euler_moreau") from None
    block = np.zeros((*records.shape, 2 * n, 2 * n))
    block[..., :n, :n] = h * M_inverse @ dense(records, part, "A")
    block[..., :n, n:] = h * M_inverse
    return DENSE, expm(block)[..., :n, n:].reshape(*records.shape, -1), no_index, 0, 0
