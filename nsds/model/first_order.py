"""First-order systems ``M x' = f(t, x) + T u + r``: circuits, relays, sliding modes, gene networks."""

import numpy as np

from nsds import _checks
from nsds.model.functions import function_name
from nsds.model.records import pack
from nsds.model.systems import control_fields, is_sparse, matrix_field, pattern_field, per_element


def first_order_linear(A, b=None, M=None, *, x, z=None, T=None, u=None, n_u=None, count=None):
    """Linear first-order system ``M x' = A x + b + T u + r`` ([Notes], eq. 9.4; [Systems], eq. 3).

    Parameters
    ----------
    A : array_like (n, n) or (n,), scipy.sparse, or function ``A(t, z, out)``
        Matrix; a 1-D array is the diagonal. A function writes the matrix at time ``t`` into ``out`` (n, n), which may hold anything.
    b : array_like (n,) or function ``b(t, z, out)``, optional
        Source.
    M : array_like (n, n) or (n,), or scipy.sparse, optional
        Coefficient of the rate; the identity if not given. It may be singular (a differential-algebraic system).
    x : array_like (n,)
        State at the start. With ``count`` also ``(count, n)``; for n = 1 also ``(count,)``.
    z : array_like, optional
        Parameters passed to the functions.
    T : array_like (n, n_u) or function ``T(t, z, out)``, optional
        Weight of the control; the identity if not given.
    u : array_like (n_u,) or function ``u(t, z, out)``, optional
        Control. A constant one is what `nsds.sampled_control` overwrites.
    n_u : int, optional
        Length of u, needed where T and u are both functions.
    count : int, optional
        Makes the part an array of that many systems that share one description.

    Returns
    -------
    dict
        A part for `nsds.system`. In the record it has the fields x, r (input of the interactions at the end of the last step) and those
        of M, A, b, T, u, z that were given.

    Raises
    ------
    TypeError, ValueError
        Wrong shape or type, NaN or infinity, or a function that has the wrong arguments or does not compile.

    Examples
    --------
    >>> import nsds
    >>> tank = nsds.first_order_linear(A=[[0, -1e6], [1e2, 0]], x=[10, 0])  # voltage and current of an LC circuit
    >>> nsds.system(tank=tank)["tank"]["x"]
    array([10.,  0.])
    """
    owner = "first_order_linear"
    count = None if count is None else _checks.integer(owner, "count", count, low=1)
    n = _size_of_state(owner, x, A, count)
    fields = _state(owner, x, n, M, count)
    fields["A"] = function_name(A, owner, "A") if callable(A) else matrix_field(owner, "A", A, n, count)
    if b is not None:
        fields["b"] = function_name(b, owner, "b") if callable(b) else per_element(owner, "b", b, n, count)
    return {"kind": owner, "record": pack(fields | control_fields(owner, n, T, u, n_u, z, count), count)}


def first_order(f, jac_f=None, M=None, *, x, z=None, T=None, u=None, n_u=None, count=None, jac_sparsity=None):
    """Nonlinear first-order system ``M x' = f(t, x) + T(t, x) u(t, x) + r`` ([Notes], eq. 9.1; [Systems], eq. 1).

    Parameters
    ----------
    f : function ``f(t, x, z, out)``
        Writes the right-hand side into ``out`` (n,).
    jac_f : function ``jac_f(t, x, z, out)``, optional
        Writes ``df_i/dx_j`` into ``out`` (n, n), which may hold anything. By finite differences if not given, which is slower. What T and
        u contribute is always added by finite differences where they are functions.
    M, x, z, n_u, count
        See `nsds.first_order_linear`.
    T : array_like (n, n_u) or function ``T(t, x, z, out)``, optional
        Weight of the control; the identity if not given.
    u : array_like (n_u,) or function ``u(t, x, z, out)``, optional
        Control. A constant one is what `nsds.sampled_control` overwrites.
    jac_sparsity : array_like (n, n) or scipy.sparse, optional
        Nonzero where the rate of a state, ``f + T u``, may depend on the state of a column, as of `scipy.integrate.solve_ivp`. Under
        `nsds.euler_moreau` derivatives then are finite differences by groups of columns, and Newton's matrix has sparse factors, unless a
        relation whose g depends on x joins the part to others. Without jac_f. A pattern that lacks an entry is refused with it; where none
        is given, that of more than 60 states is found by trial.

    Returns
    -------
    dict
        A part for `nsds.system`, with the fields x, r, f and those that were given.

    Raises
    ------
    TypeError, ValueError
        Wrong shape or type, NaN or infinity, or a function that has the wrong arguments or does not compile.

    Examples
    --------
    >>> import nsds
    >>> def logistic(t, x, z, out):
    ...     out[0] = z[0] * x[0] * (1 - x[0])
    >>> population = nsds.first_order(logistic, x=[0.1], z=[2.0])
    >>> rows = nsds.simulate(nsds.system(population=population), t_end=5.0, h=0.01, scheme=nsds.euler_moreau(theta=0.5))
    >>> float(rows["population"]["x"][-1, 0].round(4))
    0.9996
    """
    owner = "first_order"
    count = None if count is None else _checks.integer(owner, "count", count, low=1)
    n = _size_of_state(owner, x, None, count)
    fields = _state(owner, x, n, M, count)
    fields["f"] = function_name(f, owner, "f")
    if jac_f is not None:
        fields["jac_f"] = function_name(jac_f, owner, "jac_f")
    if jac_sparsity is not None:
        if jac_f is not None:
            raise ValueError(f"{owner}: jac_sparsity goes without a function jac_f, which writes a dense matrix")
        fields["jac_sparsity"] = pattern_field(owner, "jac_sparsity", jac_sparsity, n, count)
    return {"kind": owner, "record": pack(fields | control_fields(owner, n, T, u, n_u, z, count), count)}


def _size_of_state(owner, x, A, count):
    """Number of states: of the matrix A if given, else of x; with ``count`` a 1-D x of that length is one number for each element."""
    if A is not None and not callable(A) and _checks.shape_of(owner, "A", A):
        return A.shape[-1] if is_sparse(A) else _checks.length(owner, "A", A)
    return 1 if count is not None and _checks.shape_of(owner, "x", x) == (count,) else _checks.length(owner, "x", x)


def _state(owner, x, n, M, count):
    x = per_element(owner, "x", x, n, count)
    fields = {"x": x, "r": np.zeros_like(x)}
    if M is not None:
        fields["M"] = matrix_field(owner, "M", M, n, count)
    return fields
