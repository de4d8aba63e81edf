"""Relations of Lagrangian systems ([EventCapturing], Time discretization of the relations; [Notes], 10.1)."""

import math

import numpy as np

from nsds import _checks
from nsds.model.fields import LARGEST, PER_ROW, Leaf, floats, sparse
from nsds.model.functions import function_name
from nsds.model.relations_first_order import nonlinear
from nsds.model.system_kinds import AT_Q, AT_T, LAGRANGIAN, NEWTON_EULER, relation_of
from nsds.model.systems import compressed_rows, is_sparse

_D = floats("m", "m"), sparse("m", "m", "nonzeros of D")
_H = floats("m", "n", required=True), sparse("m", "n", "nonzeros of H")


@relation_of(LAGRANGIAN, role="gap", fields={"H": _H, "b": PER_ROW, "D": _D})
def lagrangian_linear_relation(H, b=None, D=None):
    """Linear relation ``y = H q + b + D lambda``, ``ydot = H v + D lambda``, ``p = H^T lambda`` ([EventCapturing]; [Notes], eq. 10.7).

    Parameters
    ----------
    H : array_like (m, n) or (n,), or scipy.sparse (m, n)
        Jacobian, one row per scalar constraint; between two parts the columns of the first, then those of the second.
    b : array_like (m,), optional
        Constant gap.
    D : array_like (m, m), or scipy.sparse, optional
        With the laws `nsds.complementarity` and `nsds.equality`, compliance: y is ``H q + b + D lambda`` with lambda a force, and the law
        holds for y. With the impact laws lambda is an impulse: D acts on ydot, and y is ``H q + b``.

    Raises
    ------
    TypeError, ValueError
        Wrong shape, NaN or infinity.

    Examples
    --------
    >>> import nsds
    >>> nsds.lagrangian_linear_relation(H=[[1, 0, 0]])["H"]
    array([[1., 0., 0.]])
    """
    owner = "lagrangian_linear_relation"
    # 1. H by compressed rows, or dense
    jacobian = H if is_sparse(H) else _checks.array(owner, "H", H, at_least=2)
    if jacobian.ndim != 2 or 0 in jacobian.shape:
        raise ValueError(f"{owner}: H must have shape (m, n), got {jacobian.shape}")
    m, n = jacobian.shape
    # 2. constant gap and compliance
    relation = {"relation": owner, "m": m, "n": n, "H": compressed_rows(owner, "H", H) if is_sparse(H) else jacobian}
    if b is not None:
        relation["b"] = _checks.array(owner, "b", b, shape=(m,), at_least=1)
    if is_sparse(D):
        if D.shape != (m, m):
            raise ValueError(f"{owner}: D must have shape {(m, m)}, got {D.shape}")
        relation["D"] = compressed_rows(owner, "D", D)
    elif D is not None:
        relation["D"] = _checks.array(owner, "D", D, shape=(m, m), at_least=2)
    return relation


@relation_of(LAGRANGIAN, role="gap", functions=dict.fromkeys(("h", "H"), "q, z, out"), needed=("h",), parameters=AT_Q)
def scleronomous(h, H=None, *, m, z=None):
    """Relation ``y = h(q)``, ``ydot = H(q) v``, ``p = H(q)^T lambda`` ([Notes], eq. 10.6).

    Parameters
    ----------
    h : function ``h(q, z, out)``
        Writes y into ``out`` (m,). Between two parts, q is that of the first, then that of the second.
    H : function ``H(q, z, out)``, optional
        Writes ``dh_i/dq_j`` into ``out`` (m, n); by finite differences if not given, which is slower. With friction its rows are the normal
        and the tangent of each contact, and only the first need be the gradient of h.
    m : int
        Number of constraints.
    z : array_like, optional
        Parameters passed to the functions.

    Examples
    --------
    >>> import nsds
    >>> def wall(q, z, out):
    ...     out[0] = z[0] - q[0] ** 2 - q[1] ** 2
    >>> nsds.scleronomous(wall, m=1, z=[1.0])["relation"]
    'scleronomous'
    """
    return nonlinear("scleronomous", m, z, {"h": h, "H": H})


@relation_of(LAGRANGIAN, role="gap", functions=dict.fromkeys(("h", "H", "h_t"), "t, q, z, out"), needed=("h",), parameters=AT_Q)
def rheonomous(h, H=None, h_t=None, *, m, z=None):
    """Relation ``y = h(t, q)``, ``ydot = H(t, q) v + h_t(t, q)``, ``p = H(t, q)^T lambda`` ([Notes], eq. 10.5).

    Parameters
    ----------
    h : function ``h(t, q, z, out)``
        Writes y into ``out`` (m,). Between two parts, q is that of the first, then that of the second.
    H : function ``H(t, q, z, out)``, optional
        Writes ``dh_i/dq_j`` into ``out`` (m, n).
    h_t : function ``h_t(t, q, z, out)``, optional
        Writes the partial derivative ``dh_i/dt`` into ``out`` (m,).
    m : int
        Number of constraints.
    z : array_like, optional
        Parameters passed to the functions.

    Derivatives that are not given are computed by finite differences, which is slower.

    Examples
    --------
    >>> import nsds
    >>> def lift(t, q, z, out):
    ...     out[0] = q[0] - 0.1 * t
    >>> nsds.rheonomous(lift, m=1)["m"]
    1
    """
    return nonlinear("rheonomous", m, z, {"h": h, "H": H, "h_t": h_t})


@relation_of(LAGRANGIAN, role="gap", functions=dict.fromkeys(("h", "H", "D"), "q, lam, z, out"), needed=("h",), parameters=AT_Q)
def compliant(h, H=None, D=None, *, m, z=None):
    """Relation ``y = h(q, lambda)``, ``p = H^T lambda`` with ``H = dh/dq`` and ``D = dh/dlambda`` (G0 and G1 of [EventCapturing]).

    With the laws `nsds.complementarity` and `nsds.equality` lambda is a force, and the law holds for y. With the impact laws lambda is an
    impulse, and ``ydot = H v + D lambda``, where Newton's iteration neglects the change of D with lambda.

    Parameters
    ----------
    h : function ``h(q, lam, z, out)``
        Writes y into ``out`` (m,). Between two parts, q is that of the first, then that of the second.
    H, D : function ``H(q, lam, z, out)``, optional
        Write ``dh_i/dq_j`` (m, n) and ``dh_i/dlam_j`` (m, m) into ``out``; by finite differences if not given, which is slower.
    m : int
        Number of constraints.
    z : array_like, optional
        Parameters passed to the functions.

    Examples
    --------
    >>> import nsds
    >>> def rubber(q, lam, z, out):
    ...     out[0] = q[0] + z[0] * lam[0] + z[1] * lam[0] ** 3
    >>> nsds.compliant(rubber, m=1, z=[1e-2, 1e-4])["m"]
    1
    """
    return nonlinear("compliant", m, z, {"h": h, "H": H, "D": D})


@relation_of(LAGRANGIAN, role="position", functions=dict.fromkeys(("h", "g", "H", "D", "B"), AT_Q), needed=("h", "g"), parameters=AT_Q)
def lagrangian_relation(h, g, H=None, D=None, B=None, *, m, z=None):
    """Fully nonlinear relation ``y = h(t, q, lambda)``, ``p = g(t, q, lambda)``, lambda and p forces ([Notes], eq. 10.4).

    For the laws `nsds.complementarity` and `nsds.equality`, which hold for y.

    Parameters
    ----------
    h : function ``h(t, q, lam, z, out)``
        Writes y into ``out`` (m,). Between two parts, q is that of the first, then that of the second.
    g : function ``g(t, q, lam, z, out)``
        Writes the generalised force p into ``out`` (n,).
    H, D, B : function ``H(t, q, lam, z, out)``, optional
        Write ``dh_i/dq_j`` (m, n), ``dh_i/dlam_j`` (m, m) and ``dg_i/dlam_j`` (n, m) into ``out``; by finite differences if not given,
        which is slower. The derivative of g by q is not used: where p is steep in q, Newton's iteration takes more steps.
    m : int
        Number of constraints.
    z : array_like, optional
        Parameters passed to the functions.

    Examples
    --------
    >>> import nsds
    >>> def output(t, q, lam, z, out):
    ...     out[0] = q[0] + 1e-3 * lam[0]
    >>> def push(t, q, lam, z, out):
    ...     out[0] = (1 + q[0] ** 2) * lam[0]
    >>> nsds.lagrangian_relation(output, push, m=1)["relation"]
    'lagrangian_relation'
    """
    return nonlinear("lagrangian_relation", m, z, {"h": h, "g": g, "H": H, "D": D, "B": B})


@relation_of(
    LAGRANGIAN, NEWTON_EULER, role="drive", functions={"velocity": AT_T},
    fields={"dofs": Leaf("i", ("m",), 0, "n-1", True), "velocity": Leaf("f", "per_row", -LARGEST, LARGEST, True)},
)  # fmt: skip
def prescribed_velocity(dofs, velocity=0.0, *, amplitude=None, omega=None, phase=0.0, z=None):
    """Boundary condition: chosen degrees of freedom move with a prescribed velocity; a relation for the law `nsds.equality`.

    ``ydot = v[dofs] - velocity``, and lambda is the impulse of the reaction that makes it zero. y is 0.

    Parameters
    ----------
    dofs : array_like (m,) of int
        Degrees of freedom; of two parts those of the first, then those of the second. Of a rigid body 0 to 2 are the velocity of its
        centre of mass, 3 to 5 its angular velocity in axes of the body: a motor on the z-axis is ``[5]``, lambda / h its torque.
    velocity : float, array_like (m,), or function ``velocity(t, z, out)``
        Velocity; 0 holds a degree of freedom fixed. A function writes it into ``out`` (m,).
    amplitude, omega, phase : float or array_like (m,), optional
        Add ``amplitude cos(omega t + phase)`` to a velocity that is a number.
    z : array_like, optional
        Parameters passed to the function.

    Raises
    ------
    TypeError, ValueError
        Wrong shape or type, or a function that has the wrong arguments or does not compile.

    Examples
    --------
    >>> import nsds
    >>> shaker = nsds.prescribed_velocity([0], amplitude=0.1, omega=20.0)
    >>> system = nsds.system(
    ...     chain=nsds.lagrangian_linear(M=[1.0, 1.0], K=[[50, -50], [-50, 50]], q=[0, 0], v=[0.1, 0]),
    ...     drive=nsds.interaction(shaker, nsds.equality(), on="chain"),
    ... )
    >>> rows = nsds.simulate(system, t_end=1.0, h=1e-3)
    >>> float(rows["chain"]["v"][-1, 0].round(6)) == round(0.1 * math.cos(20.0), 6)
    True
    """
    # 1. degrees of freedom
    owner = "prescribed_velocity"
    dofs = np.atleast_1d(_checks.whole_numbers(owner, "dofs", dofs))
    if dofs.ndim != 1 or dofs.size == 0 or (dofs < 0).any() or np.unique(dofs).size < dofs.size:
        raise ValueError(f"{owner}: dofs must be different whole numbers, not negative, got {dofs.tolist()}")
    relation = {"relation": owner, "m": dofs.size, "n": None, "dofs": dofs}
    # 2. a harmonic velocity is a function whose parameters are its waves
    if (amplitude is None) != (omega is None):
        raise ValueError(f"{owner}: amplitude and omega go together")
    if callable(velocity) and amplitude is not None:
        raise ValueError(f"{owner}: a velocity that is a function is used as it is, without amplitude and omega")
    if amplitude is not None:
        waves = [_per_dof(owner, name, value, dofs.size) for name, value in
                 (("velocity", velocity), ("amplitude", amplitude), ("omega", omega), ("phase", phase))]  # fmt: skip
        velocity, z = _harmonic, np.concatenate(waves)
    # 3. a function, or numbers
    if callable(velocity):
        relation["velocity"] = function_name(velocity, owner, "velocity")
        if z is not None:
            relation["z"] = _checks.array(owner, "z", z, at_least=1, n_dims=1)
    else:
        if z is not None:
            raise ValueError(f"{owner}: z holds parameters of a velocity that is a function, got {_checks.shortened(z)} with a number")
        relation["velocity"] = _per_dof(owner, "velocity", velocity, dofs.size)
    return relation


def _per_dof(owner, name, value, m):
    value = _checks.array(owner, name, value)
    if value.shape not in ((), (m,)):
        raise ValueError(f"{owner}: {name} must be a number or have shape {(m,)}, got {value.shape}")
    return np.broadcast_to(value, (m,))


def _harmonic(t, z, out):
    """Velocity from mean, amplitude, angular frequency and phase of each degree of freedom in z."""
    m = out.size
    for i in range(m):
        out[i] = z[i] + z[m + i] * math.cos(z[2 * m + i] * t + z[3 * m + i])
