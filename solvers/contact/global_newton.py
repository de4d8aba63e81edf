"""Newton's method on the global form: velocities and reactions together, without the Delassus matrix.

    M v - H r - q = 0,    F(H^T v + b, r) = 0                                                   ([Notes], 16.17, 16.23)

with Alart–Curnier's F. The matrix of a step, by the chain rule (16.24, 16.25),

    [   M     -H        ]
    [ A H^T    B + eta A ]        A = ∂F/∂u,  B = ∂F/∂r

is sparse whatever the contacts of a body, and SuperLU factorises it. The first equation is linear: it holds after every step of any length
from a v that satisfies it, so that the second one alone is watched. eta as in `nsds.solvers.contact.newton`.
"""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import kernel, view
from nsds.maths import superlu
from nsds.solvers.contact import alart_curnier
from nsds.solvers.contact.newton import DECREASE, HALVINGS, LEAST, MAX_ITERATIONS, MEMORY, MOST, RELAX, STIFFEN
from nsds.solvers.contact.signature import cone_of, natural_maps
from nsds.status import CONVERGED, MAX_ITER, NON_FINITE, SINGULAR


class Problem(NamedTuple):
    """A global problem; M and H are arrays or sparse matrices."""

    disk: np.ndarray  # (nc,)
    mu: np.ndarray  # (2 nc,)
    M: object
    H: object
    q: np.ndarray
    b: np.ndarray


@kernel
def equations(disk, mu, rho, r, u, F, A, B):
    """``F``, ``A`` (n, d, d) and ``B`` of all contacts; returns ``||F||^2``; rho (n, 3)."""
    d, s = r.size // disk.size, 0.0
    for c in range(disk.size):
        at, block = c * d, c * d * d
        rho_c, F_c, A_c, B_c = view(rho, 3 * c, 3), view(F, at, d), view(A, block, d * d), view(B, block, d * d)
        cone, r_c, u_c = cone_of(c, d, disk, mu), view(r, at, d), view(u, at, d)
        alart_curnier.evaluate(alart_curnier.ALART_CURNIER, cone, rho_c, r_c, u_c, F_c, A_c, B_c)
        for i in range(d):
            s += F[at + i] ** 2
    return s


@kernel
def scales(disk, d, W, rho):
    """`alart_curnier.split_rho` of the diagonal blocks W (n, d, d). Out: rho (n, 3)."""
    for c in range(disk.size):
        alart_curnier.split_rho(disk[c], d, W, c * d * d, view(rho, 3 * c, 3))


def diagonal_blocks(M, H, d):
    """``H_c^T diag(M)^-1 H_c`` (n, d, d): what stands for W_cc, which would take M^-1."""
    import scipy.sparse as sp

    n = H.shape[1] // d
    inverse = 1.0 / np.where(M.diagonal() != 0.0, abs(M.diagonal()), 1.0)
    columns = [sp.csc_array(H[:, a::d]) for a in range(d)]
    blocks = np.empty((n, d, d))
    for a in range(d):
        for b in range(d):
            blocks[:, a, b] = (columns[a] * columns[b]).multiply(inverse[:, None]).sum(axis=0)
    return blocks


def newton_global(problem, W, scale, options, v, r):
    """(v, r, u, status, n_iter, res_q, res_rho) of a `Problem` from ``v = M^-1 (q + H r)``; scale: ``||H^T M^-1 q + b||``."""
    import scipy.sparse as sp

    disk, mu, M, H, _, b = problem
    n, d = disk.size, r.size // disk.size
    rho, F, A, B = np.zeros(3 * n), np.zeros(n * d), np.zeros(n * d * d), np.zeros(n * d * d)
    scales(disk, d, W.reshape(-1), rho)
    D = np.repeat(np.trace(W, axis1=1, axis2=2) / d, d)
    tol, limit = options.tol, int(options.max_iter) or MAX_ITERATIONS
    transposed, x = sp.csr_array(H.T), np.zeros(5)
    blocks = (np.arange(n), np.arange(n + 1))
    u = transposed @ v + b
    merit, sigma, recent = equations(disk, mu, rho, r, u, F, A, B), LEAST, []
    for n_iter in range(limit + 1):
        error, mixed = natural_maps(d, disk, mu, W.reshape(-1), r, u, x)
        status = CONVERGED if error <= tol * scale else MAX_ITER if math.isfinite(error) else NON_FINITE
        if status != MAX_ITER or n_iter == limit:
            break
        recent = [*recent[1 - MEMORY :], merit]
        A_all = sp.bsr_array((A.reshape(n, d, d), *blocks))
        B_all = sp.bsr_array((B.reshape(n, d, d), *blocks)) + sigma * A_all @ sp.diags_array(D)
        try:
            factors = superlu.factorise(sp.block_array([[M, -H], [A_all @ transposed, B_all]], format="csc"))
        except RuntimeError:
            if sigma == MOST:
                status = SINGULAR
                break
            sigma = min(sigma * STIFFEN, MOST)
            continue
        step = factors.solve(np.concatenate([np.zeros(v.size), F]))
        t = 1.0
        for _ in range(HALVINGS):
            v_new, r_new = v - t * step[: v.size], r - t * step[v.size :]
            u = transposed @ v_new + b
            merit = equations(disk, mu, rho, r_new, u, F, A, B)
            if merit <= (1.0 - 2.0 * DECREASE * t) * max(recent):
                break
            t *= 0.5
        v, r = v_new, r_new
        sigma = max(sigma / RELAX, LEAST) if t == 1.0 else min(sigma * STIFFEN, MOST)
    return v, r, u, status, n_iter, mixed / scale, error / scale
