"""Relations of first-order systems: the output y of an interaction as a function of the state, and its input r to the system."""

from nsds import _checks
from nsds.model.fields import PER_ROW, floats, sparse
from nsds.model.functions import function_name
from nsds.model.system_kinds import AT_T, FIRST_ORDER, relation_of
from nsds.model.systems import compressed_rows, is_sparse

_OF_X, _OF_LAMBDA = "t, x, lam, z, out", "t, lam, z, out"
_OPERATORS = {
    "C": (floats("m", "n", required=True), sparse("m", "n", "nonzeros of C")),
    "B": (floats("n", "m", required=True), sparse("n", "m", "nonzeros of B")),
    "D": (floats("m", "m"), sparse("m", "m", "nonzeros of D")),
    "e": PER_ROW,
    "F": floats("m", "n_z"),
}
SPARSE_OPERATORS = "CBD"  # that may be stored by compressed rows


@relation_of(FIRST_ORDER, role="output", functions=dict.fromkeys((*_OPERATORS, "bounds"), AT_T), fields=_OPERATORS)
def first_order_linear_relation(C, B, D=None, e=None, F=None, *, bounds=None, z=None, m=None):
    """Linear relation ``y = C x + D lambda + e + F z``, ``r = B lambda`` ([Notes], eq. 9.4).

    Parameters
    ----------
    C : array_like (m, n), scipy.sparse, or function ``C(t, z, out)``
        Output of the state; between two parts the columns of the first, then those of the second.
    B : array_like (n, m), scipy.sparse, or function ``B(t, z, out)``
        Input; between two parts the rows of the first, then those of the second.
    D : array_like (m, m), scipy.sparse, or function ``D(t, z, out)``, optional
        Feedthrough.
    e : array_like (m,) or function ``e(t, z, out)``, optional
        Source.
    F : array_like (m, n_z) or function ``F(t, z, out)``, optional
        Weight of the parameters z.
    bounds : function ``bounds(t, z, out)``, optional
        Writes lower and upper bounds of lambda into ``out`` (2, m), for the law `nsds.relay` in place of its own: of a brake or clutch
        that is pressed and let go, of a driven switch, which has [0, 0] and (-inf, inf) in turn. Time stepping has those of the step that
        ends at t; under `nsds.event_driven` lambda follows them, and times at which they jump, or part from each other, are its
        ``time_events``.
    z : array_like (n_z,), optional
        Parameters, also passed to the functions.
    m : int, optional
        Number of constraints, needed where C and B are both functions.

    Raises
    ------
    TypeError, ValueError
        Wrong shape, NaN or infinity, a function that has the wrong arguments or does not compile.

    Examples
    --------
    >>> import nsds
    >>> nsds.first_order_linear_relation(C=[[-1, 0]], B=[[0], [1]], D=[[2]])["m"]
    1
    """
    owner = "first_order_linear_relation"
    # 1. operators as functions or arrays
    given = {"C": C, "B": B, "D": D, "e": e, "F": F}
    fields = {}
    for name, value in given.items():
        if callable(value):
            fields[name] = function_name(value, owner, name)
        elif is_sparse(value) and name in SPARSE_OPERATORS:
            fields[name] = value
        elif value is not None:
            _checks.length(owner, name, value)
            fields[name] = _checks.array(owner, name, value, at_least=1 if name == "e" else 2, n_dims=1 if name == "e" else 2)
        elif name in "CB":
            raise TypeError(f"{owner}: {name} must be an array or a function, got None")
    if bounds is not None:
        fields["bounds"] = function_name(bounds, owner, "bounds")
    z = None if z is None else _checks.array(owner, "z", z, at_least=1, n_dims=1)
    m = None if m is None else _checks.integer(owner, "m", m, low=1)
    # 2. lengths m, n and n_z from whichever array has them, then the shapes of all
    sizes = {"C": (0, 1), "B": (1, 0), "D": (0, 0), "e": (0,), "F": (0, 2)}  # of (m, n, n_z)
    known = [m, None, None if z is None else z.size]
    for name, shape in sizes.items():
        for axis, which in enumerate(shape):
            if name in fields and not isinstance(fields[name], str) and known[which] is None:
                known[which] = fields[name].shape[axis]
    if known[0] is None:
        raise ValueError(f"{owner}: m, the number of constraints, must be given where all is functions")
    for name, shape in sizes.items():
        expected = tuple(known[which] for which in shape)
        if name in fields and not isinstance(fields[name], str) and fields[name].shape != expected:
            raise ValueError(f"{owner}: {name} must have shape {expected}, got {fields[name].shape}")
    if 0 in (known[0], known[1]):
        raise ValueError(f"{owner}: C must have at least one row and one column, got shape {(known[0], known[1])}")
    fields = {name: compressed_rows(owner, name, field) if is_sparse(field) else field for name, field in fields.items()}
    if "F" in fields and z is None:
        raise ValueError(f"{owner}: F is the weight of z, which is missing")
    return {"relation": owner, "m": known[0], "n": known[1], **fields} | ({} if z is None else {"z": z})


@relation_of(
    FIRST_ORDER, role="output", needed=("h", "g"),
    functions=dict.fromkeys(("h", "C"), "t, x, z, out") | dict.fromkeys(("g", "B"), _OF_LAMBDA),
)  # fmt: skip
def type1_relation(h, g, *, m, C=None, B=None, z=None):
    """Relation ``y = h(t, x)``, ``r = g(t, lambda)`` ([Notes], eq. 9.2).

    Parameters
    ----------
    h : function ``h(t, x, z, out)``
        Writes y into ``out`` (m,). Between two parts, x is that of the first, then that of the second.
    g : function ``g(t, lam, z, out)``
        Writes r into ``out`` (n,).
    m : int
        Number of constraints.
    C : function ``C(t, x, z, out)``, optional
        Writes ``dh_i/dx_j`` into ``out`` (m, n).
    B : function ``B(t, lam, z, out)``, optional
        Writes ``dg_i/dlam_j`` into ``out`` (n, m).
    z : array_like, optional
        Parameters passed to the functions.

    Jacobians that are not given are computed by finite differences, which is slower.

    Examples
    --------
    >>> import nsds
    >>> def square(t, x, z, out):
    ...     out[0] = x[0] ** 2 - 1
    >>> def push(t, lam, z, out):
    ...     out[0] = lam[0]
    >>> nsds.type1_relation(square, push, m=1)["relation"]
    'type1_relation'
    """
    return nonlinear("type1_relation", m, z, {"h": h, "g": g, "C": C, "B": B})


@relation_of(
    FIRST_ORDER, role="output", functions=dict.fromkeys(("h", "C", "D"), _OF_X) | dict.fromkeys(("g", "B"), _OF_LAMBDA), needed=("h", "g")
)
def type2_relation(h, g, *, m, C=None, D=None, B=None, z=None):
    """Relation ``y = h(t, x, lambda)``, ``r = g(t, lambda)`` ([Notes], eq. 9.3).

    Parameters
    ----------
    h : function ``h(t, x, lam, z, out)``
        Writes y into ``out`` (m,). Between two parts, x is that of the first, then that of the second.
    g : function ``g(t, lam, z, out)``
        Writes r into ``out`` (n,).
    m : int
        Number of constraints.
    C, D : function ``C(t, x, lam, z, out)``, optional
        Write ``dh_i/dx_j`` into ``out`` (m, n), and ``dh_i/dlam_j`` into ``out`` (m, m).
    B : function ``B(t, lam, z, out)``, optional
        Writes ``dg_i/dlam_j`` into ``out`` (n, m).
    z : array_like, optional
        Parameters passed to the functions.

    Jacobians that are not given are computed by finite differences, which is slower.

    Examples
    --------
    >>> import nsds
    >>> def output(t, x, lam, z, out):
    ...     out[0] = x[0] + lam[0] ** 3
    >>> def push(t, lam, z, out):
    ...     out[0] = lam[0]
    >>> nsds.type2_relation(output, push, m=1)["m"]
    1
    """
    return nonlinear("type2_relation", m, z, {"h": h, "g": g, "C": C, "D": D, "B": B})


@relation_of(FIRST_ORDER, role="output", functions=dict.fromkeys(("h", "g", "C", "D", "K", "B"), _OF_X), needed=("h", "g"))
def first_order_relation(h, g, *, m, C=None, D=None, K=None, B=None, z=None):
    """Fully nonlinear relation ``y = h(t, x, lambda)``, ``r = g(t, x, lambda)`` ([Notes], eq. 9.1).

    Parameters
    ----------
    h : function ``h(t, x, lam, z, out)``
        Writes y into ``out`` (m,). Between two parts, x is that of the first, then that of the second.
    g : function ``g(t, x, lam, z, out)``
        Writes r into ``out`` (n,).
    m : int
        Number of constraints.
    C, D, K, B : function ``C(t, x, lam, z, out)``, optional
        Write ``dh_i/dx_j`` (m, n), ``dh_i/dlam_j`` (m, m), ``dg_i/dx_j`` (n, n) and ``dg_i/dlam_j`` (n, m) into ``out``.
    z : array_like, optional
        Parameters passed to the functions.

    Jacobians that are not given are computed by finite differences, which is slower.

    Examples
    --------
    >>> import nsds
    >>> def output(t, x, lam, z, out):
    ...     out[0] = x[0]
    >>> def push(t, x, lam, z, out):
    ...     out[0] = (1 + x[0] ** 2) * lam[0]
    >>> nsds.first_order_relation(output, push, m=1)["relation"]
    'first_order_relation'
    """
    return nonlinear("first_order_relation", m, z, {"h": h, "g": g, "C": C, "D": D, "K": K, "B": B})


def nonlinear(owner, m, z, functions):
    """A relation of functions, of which h and g are required."""
    fields = {name: function_name(function, owner, name) for name, function in functions.items() if function is not None or name in "hg"}
    if z is not None:
        fields["z"] = _checks.array(owner, "z", z, at_least=1, n_dims=1)
    return {"relation": owner, "m": _checks.integer(owner, "m", m, low=1), "n": None, **fields}
