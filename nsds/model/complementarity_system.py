"""Linear complementarity systems in one line."""

from nsds import _checks
from nsds.model.assembly import system
from nsds.model.first_order import first_order_linear
from nsds.model.interactions import interaction
from nsds.model.laws import complementarity
from nsds.model.relations_first_order import first_order_linear_relation


def linear_complementarity_system(A, B, C, D=None, *, x, b=None, e=None, M=None, law=None, t=0.0):
    """Record of ``M x' = A x + b + B lambda``, ``y = C x + D lambda + e`` with ``0 <= y ⟂ lambda >= 0`` or another law (003, 8.1).

    Parameters
    ----------
    A, B, C, D : array_like (n, n), (n, m), (m, n), (m, m)
        Operators; or functions, see `nsds.first_order_linear` and `nsds.first_order_linear_relation`.
    x : array_like (n,)
        State at the start.
    b, e : array_like (n,), (m,), or functions, optional
        Sources.
    M : array_like (n, n), optional
        Coefficient of the rate; the identity if not given.
    law : dict, optional
        For instance ``nsds.relay()``; `nsds.complementarity` if not given.
    t : float
        Time at the start.

    Returns
    -------
    numpy.ndarray, shape ()
        A record with the parts ``plant`` and ``switches``.

    Raises
    ------
    TypeError, ValueError
        See the constructors of the parts.

    Examples
    --------
    >>> import nsds
    >>> clamp = nsds.linear_complementarity_system(A=[[-1.0]], B=[[1.0]], C=[[1.0]], D=[[1.0]], x=[-2.0])
    >>> rows = nsds.simulate(clamp, t_end=1.0, h=0.01)
    >>> float(rows["switches"]["lambda"][1].round(4))
    1.9608
    """
    owner = "linear_complementarity_system"
    x = _checks.array(owner, "x", x, at_least=1, n_dims=1)
    if not callable(B) and x.size:
        B = _checks.array(owner, "B", B)
        if B.size == 0 or B.size % x.size or B.ndim > 2:
            raise ValueError(f"{owner}: B must have shape ({x.size}, m), as x has {x.size} entries, got {B.shape}")
        B = B.reshape(x.size, -1)
    return system(
        t=t,
        plant=first_order_linear(A, b, M, x=x),
        switches=interaction(first_order_linear_relation(C, B, D, e), complementarity() if law is None else law, on="plant"),
    )
