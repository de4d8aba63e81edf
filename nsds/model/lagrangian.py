"""Lagrangian systems ``M(q) v' + F_gyr(q, v) + F_int(t, q, v) = F_ext(t) + T u + p``, and modal ones, which are diagonal."""

import numpy as np

from nsds import _checks
from nsds.model.functions import function_name
from nsds.model.records import pack
from nsds.model.systems import control_fields, is_sparse, lagrangian_linear, mass_field, pattern_field, per_element


def lagrangian(
    mass, fint=None, fgyr=None, fext=None, jac_q=None, jac_v=None, *, q, v, z=None, T=None, u=None, n_u=None, count=None, jac_sparsity=None
):
    """Lagrangian system ``M(q) v' + F_gyr(q, v) + F_int(t, q, v) = F_ext(t) + T(q) u(t, q, v) + p``, ``q' = v`` ([Notes], eq. 10.1).

    Parameters
    ----------
    mass : array_like (n, n) or (n,), or function ``mass(q, z, out)``
        Symmetric, positive definite; a 1-D array is the diagonal. A function writes it into ``out`` (n, n), which may hold anything.
    fint : function ``fint(t, q, v, z, out)``, optional
        Writes the internal forces into ``out`` (n,); on the left-hand side, so a spring is ``+k q``.
    fgyr : function ``fgyr(q, v, z, out)``, optional
        Writes gyroscopic and centrifugal terms N(q, v) into ``out`` (n,), on the left-hand side.
    fext : array_like (n,) or function ``fext(t, z, out)``, optional
        External force, on the right-hand side.
    jac_q, jac_v : function ``jac_q(t, q, v, z, out)``, optional
        Write the derivatives of ``fint + fgyr`` by q and by v into ``out`` (n, n), which may hold anything. By finite differences if not
        given, which is slower. What T and u contribute is always added by finite differences where they are functions.
    q, v : array_like (n,)
        Coordinates and velocities at the start. With ``count`` also ``(count, n)``; for n = 1 also ``(count,)``.
    z : array_like, optional
        Parameters passed to the functions.
    T : array_like (n, n_u) or function ``T(q, z, out)``, optional
        Weight of the control; the identity if not given.
    u : array_like (n_u,) or function ``u(t, q, v, z, out)``, optional
        Control. A constant one is what `nsds.sampled_control` overwrites.
    n_u : int, optional
        Length of u, needed where T and u are both functions.
    count : int, optional
        Makes the part an array of that many systems that share one description.
    jac_sparsity : array_like (n, n) or scipy.sparse, optional
        Nonzero where the force of a coordinate, ``fint + fgyr - T u``, may depend on the coordinate or the velocity of a column, as of
        `scipy.integrate.solve_ivp`. Then all matrices are sparse: derivatives are finite differences by groups of columns, and Newton's
        matrix has sparse factors. For a mass of numbers, and without jac_q and jac_v. Where it is not given and n is above 60 it is found
        by trial near the state at the start; a force that begins to act later, as of a contact, may need it stated.

    Returns
    -------
    dict
        A part for `nsds.system`. In the record it has the fields q, v, p (generalised impulse of the last step) and those that were given.

    Raises
    ------
    TypeError, ValueError
        Wrong shape or type, NaN or infinity, mass not symmetric, or a function that has the wrong arguments or does not compile.

    Examples
    --------
    >>> import math, nsds
    >>> def weight(t, q, v, z, out):
    ...     out[0] = z[0] * math.sin(q[0])
    >>> pendulum = nsds.lagrangian(mass=[1.0], fint=weight, q=[1.0], v=[0.0], z=[9.81])
    >>> rows = nsds.simulate(nsds.system(pendulum=pendulum), t_end=1.0, h=1e-3)
    >>> float(rows["pendulum"]["q"][-1, 0].round(3))
    -0.98
    """
    owner = "lagrangian"
    count = None if count is None else _checks.integer(owner, "count", count, low=1)
    # 1. coordinates
    n = _n_coordinates(q, None if callable(mass) else mass, count)
    fields = {name: per_element(owner, name, value, n, count) for name, value in (("q", q), ("v", v))}
    fields["p"] = np.zeros_like(fields["q"])
    # 2. mass and forces: functions or numbers
    if callable(mass):
        fields["mass"] = function_name(mass, owner, "mass")
    else:
        fields["M"] = mass_field(owner, "mass", mass, n, count, regular=True)
    if callable(fext):
        fields["fext"] = function_name(fext, owner, "fext")
    elif fext is not None:
        fields["fext"] = per_element(owner, "fext", fext, n, count)
    for name, function in (("fint", fint), ("fgyr", fgyr), ("jac_q", jac_q), ("jac_v", jac_v)):
        if function is not None:
            fields[name] = function_name(function, owner, name)
    if jac_sparsity is not None:
        for name, given in (("mass", callable(mass)), ("jac_q", jac_q is not None), ("jac_v", jac_v is not None)):
            if given:
                raise ValueError(f"{owner}: jac_sparsity goes without a function {name}, which writes a dense matrix")
        fields["jac_sparsity"] = pattern_field(owner, "jac_sparsity", jac_sparsity, n, count)
    return {"kind": owner, "record": pack(fields | control_fields(owner, n, T, u, n_u, z, count), count)}


def _n_coordinates(q, mass, count):
    """Number of coordinates: of the mass if given, else of q; with ``count`` a 1-D q of that length is one number for each element."""
    if mass is not None and _checks.shape_of("lagrangian", "mass", mass):
        return mass.shape[-1] if is_sparse(mass) else _checks.length("lagrangian", "mass", mass)
    return 1 if count is not None and _checks.shape_of("lagrangian", "q", q) == (count,) else _checks.length("lagrangian", "q", q)


def lagrangian_modal(omega, sigma=0.0, mass=1.0, fext=None, *, q, v, z=None, count=None):
    """Modes of a linear structure, ``mu (v' + 2 sigma v + omega^2 q) = fext(t, z) + p`` each ([ExactScheme], eq. 1).

    It is a `nsds.lagrangian_linear` with diagonal matrices, which every scheme treats, and `nsds.moreau_jean_exact` exactly.

    Parameters
    ----------
    omega : array_like (n,)
        Angular frequencies (rad/s), not negative.
    sigma : float or array_like (n,)
        Decay rates (1/s), not negative.
    mass : float or array_like (n,)
        Modal masses mu, positive.
    fext, q, v, z, count
        See `nsds.lagrangian_linear`.

    Raises
    ------
    TypeError, ValueError
        Wrong shape or type, NaN or infinity, a frequency or decay rate that is negative, a mass that is not positive.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> string = nsds.lagrangian_modal(omega=100 * np.arange(1, 4), sigma=0.5, q=[1e-3, 0, 0], v=np.zeros(3))
    >>> nsds.system(string=string)["string"]["K"]
    array([10000., 40000., 90000.])
    """
    owner = "lagrangian_modal"
    omega = _checks.array(owner, "omega", omega, at_least=1)
    if omega.ndim != 1 or omega.size == 0:
        raise ValueError(f"{owner}: omega must have shape (n,), n at least 1, got {omega.shape}")
    # 1. one number for each mode
    values = {"omega": omega}
    for name, value in (("sigma", sigma), ("mass", mass)):
        value = _checks.array(owner, name, value)
        if value.shape not in ((), omega.shape):
            raise ValueError(f"{owner}: {name} must be a number or have shape {omega.shape}, got {value.shape}")
        values[name] = np.broadcast_to(value, omega.shape)
    for name, value in values.items():
        if (value < 0).any() or (name == "mass" and (value == 0).any()):
            raise ValueError(f"{owner}: {name} must {'be positive' if name == 'mass' else 'not be negative'}, got {value.min():g}")
    # 2. diagonal matrices of the modes
    mu, damping = values["mass"], 2 * values["mass"] * values["sigma"]
    return lagrangian_linear(mu, mu * omega**2, damping if damping.any() else None, fext, q=q, v=v, z=z, count=count)
