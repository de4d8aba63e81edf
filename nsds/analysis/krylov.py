"""Derivatives of sections with hundreds of states: products with vectors, for Krylov's methods, in place of matrices.

References: Sánchez, Net, García-Archilla, Simó, Journal of Computational Physics 201 (2004) 13–33 (Newton–Krylov for periodic orbits);
Lehoucq, Sorensen, Yang, *ARPACK Users' Guide* (SIAM 1998).
"""

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs, gmres

from nsds.analysis.sections import difference
from nsds.status import CONVERGED, advice

_DIFFERENCE = 2.0**-17  # largest change of a state in a finite difference, relative to 1 or the state
_SHORTER, _TRIALS = 2.0**-7, 3  # factor of the difference where its sides have other events, and how often it is tried
_FORCING = 1e-4  # residual of the linear equations of a Newton step, relative to the right-hand side
_MOST = 300  # products for one Newton step
_CLOSE = 1e-8  # relative accuracy that multipliers are asked for
_RESTARTS = 100  # of ARPACK, of 20 products each or twice as many as multipliers are asked for


class Products:
    """Products ``M v`` of the derivative M of a section at x, in units of the states: central differences of two runs each."""

    def __init__(self, section, x, values):
        self.section, self.x, self.values, self.units = section, x, values, np.maximum(1.0, abs(x))

    def __call__(self, v):
        """M v."""
        v, largest = v.reshape(-1), abs(v).max()
        delta = _DIFFERENCE / largest if largest > 0.0 else 1.0
        for _ in range(_TRIALS if largest > 0.0 else 1):
            used, change = delta, delta * self.units * v
            returned = self.section.returns(np.array([self.x + change, self.x - change]), [self.values, self.values], derive=False)
            for side in range(2):
                if returned.status[side] != CONVERGED:
                    reason = advice(int(returned.status[side]))
                    raise ValueError(f"{self.section.owner}: the motion from a state near {self.x.tolist()} ends: {reason}")
            if (returned.events[0], returned.impacts[0]) == (returned.events[1], returned.impacts[1]):
                break
            delta *= _SHORTER
        return difference(returned.ends[0], returned.ends[1], self.section.modulo) / (2.0 * used * self.units)


def newton_step(section, x, values, off):
    """Solution s of ``(M - 1) s = off`` by GMRES, to a part of `_FORCING`, or as well as `_MOST` products allow."""
    products, n = Products(section, x, values), x.size
    operator = LinearOperator((n, n), matvec=lambda v: products(v) - v.reshape(-1), dtype=np.float64)
    return products.units * gmres(operator, off / products.units, rtol=_FORCING, atol=0.0, restart=min(n, _MOST), maxiter=1)[0]


def largest_multipliers(section, x, values, count):
    """(the count largest eigenvalues of M by Arnoldi's method, the largest residual ``||M v - mu v||`` of their vectors of length 1)."""
    products, n = Products(section, x, values), x.size
    operator = LinearOperator((n, n), matvec=products, dtype=np.float64)
    try:
        found, vectors = eigs(operator, k=count + 1, v0=np.random.default_rng(0).normal(size=n), maxiter=_RESTARTS, tol=_CLOSE)
    except ArpackNoConvergence as error:
        raise ValueError(
            f"{section.owner}: ARPACK found {len(error.eigenvalues)} of the {count + 1} largest multipliers; those asked for may be as "
            "large as many others, or as small as the error of differences: ask for another number"
        ) from error
    # one more than asked for, so that the first ones are whole pairs but for the last
    chosen = order(found)[:count]
    images = [products(vectors[:, k].real) + 1j * products(vectors[:, k].imag) for k in chosen]
    error = max(np.linalg.norm(image - found[k] * vectors[:, k]) for image, k in zip(images, chosen, strict=True))
    return found[chosen], error


def order(multipliers):
    """Places of multipliers by size, the largest first, of a complex pair that with the positive imaginary part first."""
    return np.lexsort((-multipliers.imag, -abs(multipliers).round(12)))
