"""Zero-order hold: exact steps of linear first-order systems with control, source and multiplier constant over the step.

    x_{k+1} = exp(M^-1 A h) x_k + Psi (b(t_{k+1}) + T u + r),      Psi = integral of exp(M^-1 A s) over [0, h] M^-1

It is the step of `nsds.schemes.first_order.linear` with Psi in place of ``h (M - h theta A)^-1``, because ``exp(A h) - I = Psi A``.
"""

import numpy as np

from nsds.model.layout import ABSENT, DENSE, DIAGONAL
from nsds.schemes.first_order import linear
from nsds.schemes.first_order.functions import set_windows
from nsds.schemes.first_order.tables import is_constant, layout_of
from nsds.schemes.linear_algebra import dense
from nsds.schemes.memory import Allocator, require_affordable


def prepare(records, mem, options, h, method):
    """Exponentials, tables, and the matrices of the one-step problem of all members."""
    work, iwork = Allocator(records.size), Allocator(records.size)
    layout = layout_of(records, work)
    if not is_constant(records):
        raise ValueError("zero_order_hold: A and the relations must be linear and constant in time; use nsds.euler_moreau")
    set_windows(records, (h, 0.0), (h, 0.0))
    inverses = [_integral(records[name], part, name, h) for name, part in zip(layout.part_names, layout.parts, strict=True)]
    return linear.prepare(records, layout, inverses, linear.Options(h, 1.0, 0.0, 1.0, 1.0), method, work, iwork)


def _integral(records, part, name, h):
    """(kind, Psi, no index, 0, 0) for the elements of a part, as `nsds.schemes.linear_algebra.invert` gives a matrix."""
    from scipy.linalg import expm

    records = records.reshape(records.shape[0], -1)
    n = part["n"].item()
    no_index = np.zeros((*records.shape, 0), np.int64)
    # diagonal: (exp(a h) - 1) / a without cancellation, h for a = 0
    if part["A_kind"] == DIAGONAL and part["M"] == ABSENT:
        exponent = h * records["A"]
        small = exponent == 0
        return DIAGONAL, h * np.where(small, 1.0, np.expm1(exponent) / np.where(small, 1.0, exponent)), no_index, 0, 0
    require_affordable(f"zero_order_hold: the exponential of part '{name}'", records.size * 4 * n**2, "nsds.euler_moreau keeps A sparse")
    try:
        M_inverse = np.linalg.inv(dense(records, part, "M"))
    except np.linalg.LinAlgError:
        raise ValueError(f"part '{name}': M is singular; the zero-order hold needs its inverse, use nsds.euler_moreau") from None
    # dense: the integral is a block of the exponential of an augmented matrix (Van Loan)
    block = np.zeros((*records.shape, 2 * n, 2 * n))
    block[..., :n, :n] = h * M_inverse @ dense(records, part, "A")
    block[..., :n, n:] = h * M_inverse
    return DENSE, expm(block)[..., :n, n:].reshape(*records.shape, -1), no_index, 0, 0
