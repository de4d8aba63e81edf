"""Rigid bodies in space: ``m v' = f``, ``I Omega' + Omega × I Omega = M``, with unit quaternions ([Notes], 11.5)."""

import warnings

import numpy as np

from nsds import _checks
from nsds.model.functions import function_name
from nsds.model.records import pack
from nsds.model.systems import control_fields

UNIT = 1e-6  # accepted deviation of the norm of a quaternion from 1
_SYMMETRIC = 1e-9  # accepted asymmetry of an inertia, relative to its largest entry
_PLATE = 1e-6  # of the largest moment: accepted excess over the sum of the others, as in files with six digits for a plate


def rigid_bodies(mass, inertia, q, v, fext=None, mext=None, *, frame="body", fint=None, mint=None, jac_q=None, jac_v=None, C=None, K=None,
                 T=None, u=None, u_frame="body", alive=None, z=None, count=None):  # fmt: skip
    """Rigid bodies ``m v' = m g + f_ext - f_int + f_u + p_f``, ``I Omega' + Omega × I Omega = M_ext - M_int + M_u + p_M``.

    This is eq. 11.198 of [Notes], with the control ``(f_u, M_u) = T u``, gravity g of `nsds.system`, and ``q' = T(q) v``. Coordinates are
    ``q = (x, p)``: centre of mass (m) and unit quaternion, scalar first, which turns body axes into inertial ones. Velocities are
    ``v = (v_g, Omega)``: of the centre in inertial axes (m/s), and angular in *body* axes (rad/s). Forces are in inertial axes, moments in
    body axes, if nothing else is said.

    Parameters
    ----------
    mass : float or array_like (count,)
        Masses (kg). An infinite one makes a body that nothing stops: it keeps its velocity, as the drum of a mixer.
    inertia : float, array_like (3,), (3, 3) or (count, ...)
        Inertia (kg m²) about the centre of mass in body axes: a number for a sphere, principal moments, or a matrix; or one
        of these for each body, where the shape is not (3,) or (3, 3), which mean all bodies.
    q : array_like (7,) or (count, 7)
        Coordinates at the start. A matrix makes an array of bodies.
    v : array_like (6,) or (count, 6)
        Velocities at the start.
    fext, mext : array_like (3,), (count, 3), or function ``fext(t, z, out)``, optional
        External force in inertial axes (N), besides weight, and moment (N m).
    frame : "body" or "inertial"
        Axes in which mext is given ([Notes], eq. 11.224).
    fint, mint : function ``fint(t, q, v, z, out)``, optional
        Write the internal force and moment into ``out`` (3,); on the left-hand side, so a spring is ``+k x``.
    jac_q, jac_v : function ``jac_q(t, q, v, z, out)``, optional
        Write the derivatives of (fint, mint) by q and by v into ``out``, (6, 7) and (6, 6). By finite differences if not given.
    C, K : array_like (6, 6) and (6, 7), optional
        Linear internal wrench ``C v + K q`` ([Notes], eq. 11.222), on the left-hand side.
    T : array_like (6, n_u) or (count, 6, n_u), optional
        Weight of the control: each column the force, then the moment about the centre of mass, of one input. The identity if not given.
    u : array_like (n_u,) or (count, n_u), optional
        Control (N and N m where T is the identity), held in a step. It may be changed between steps, by `nsds.stepper` as well as by a
        `nsds.sampled_control`. One that is a function of the state at any time is a force fint.
    u_frame : "body" or "inertial"
        Axes of both the force and the moment ``T u``: those of a thruster on the body, or of a push in the room.
    alive : bool or array_like of bool (count,), optional
        Which bodies are there, where that may change: between steps, in the record, or in a run, by a `nsds.sampled_control` that writes
        ``"grains.alive"``. A disabled one stays where it is, with its velocity; nothing touches it, no force acts on it, and what joins
        it to others is left out. It begins from there when it becomes 1. All bodies are there for good if this is not given.
    z : array_like, optional
        Parameters passed to the functions; with ``count``, of shape (count, n_z) for one set each.
    count : int, optional
        Number of bodies, where the shapes of q and v do not tell.

    Returns
    -------
    dict
        A part for `nsds.system`. In the record it has the fields q, v, p (impulse of the last step, moments in body axes), mass,
        inertia (3, 3), and those that were given; alive, 0 or 1, is recorded, too.

    Raises
    ------
    TypeError, ValueError
        Wrong shape or type, NaN or infinity, a mass that is not positive, an inertia that is not symmetric and positive definite, a
        quaternion whose norm is not 1, or a function that has the wrong arguments or does not compile.

    Warns
    -----
    UserWarning
        An inertia that no body can have: its largest principal moment is larger than the sum of the others. It is used as given.

    Examples
    --------
    A top far from any force turns about a fixed angular momentum:

    >>> import numpy as np, nsds
    >>> top = nsds.rigid_bodies(1.0, [0.7, 0.7, 1.3], q=[0, 0, 0, 1, 0, 0, 0], v=[0, 0, 0, 0.8, 0, 2.0])
    >>> rows = nsds.simulate(nsds.system(top=top), t_end=1.0, h=1e-3)
    >>> rows["top"]["v"][-1, 3:].round(4), float(np.linalg.norm(rows["top"]["q"][-1, 3:]).round(12))
    (array([-0.1144,  0.7918,  2.    ]), 1.0)

    A drone whose rotor, along its own z, carries its weight stays where it is:

    >>> drone = nsds.rigid_bodies(2.0, 0.1, q=[0, 0, 1, 1, 0, 0, 0], v=[0] * 6, T=np.eye(6)[:, 2:3], u=[2.0 * 9.81])
    >>> rows = nsds.simulate(nsds.system(gravity=[0, 0, -9.81], drone=drone), t_end=1.0, h=1e-2)
    >>> float(rows["drone"]["q"][-1, 2].round(12))
    1.0
    """
    # 1. state, mass and inertia of each body
    owner = "rigid_bodies"
    count = count_of(owner, q, v, count)
    fields = {"q": per_body(owner, "q", q, (7,), count), "v": per_body(owner, "v", v, (6,), count)}
    fields["p"] = np.zeros_like(fields["v"])
    fields["mass"] = _masses(owner, mass, count)
    fields["inertia"] = _inertias(owner, inertia, count)
    # 2. forces and moments: numbers or functions
    is_inertial = _is_inertial(owner, "frame", frame)
    for name, value in (("fext", fext), ("mext", mext)):
        if callable(value):
            fields[name] = function_name(value, owner, name)
        elif value is not None:
            fields[name] = per_body(owner, name, value, (3,), count)
    if mext is not None:
        fields["mext_inertial"] = np.full(() if count is None else (count,), int(is_inertial))
    for name, function in (("fint", fint), ("mint", mint), ("jac_q", jac_q), ("jac_v", jac_v)):
        if function is not None:
            fields[name] = function_name(function, owner, name)
    if fint is None and mint is None and (jac_q is not None or jac_v is not None):
        raise ValueError(f"{owner}: jac_q and jac_v are derivatives of fint and mint, which are missing")
    # 3. linear internal wrench, control, flags, parameters
    for name, matrix, shape in (("C", C, (6, 6)), ("K", K, (6, 7))):
        if matrix is not None:
            fields[name] = per_body(owner, name, matrix, shape, count)
    for name, value in (("T", T), ("u", u)):
        if callable(value):
            raise TypeError(f"{owner}: {name} must be numbers; a force that is a function of the state is fint(t, q, v, z, out)")
    fields |= control_fields(owner, 6, T, u, None, None, count)
    if u is not None:
        fields["u_inertial"] = np.full(() if count is None else (count,), int(_is_inertial(owner, "u_frame", u_frame)))
    if alive is not None:
        fields["alive"] = _checks.flags(owner, "alive", alive, () if count is None else (count,))
    if z is not None:
        z = np.atleast_1d(_checks.array(owner, "z", z))
        fields["z"] = per_body(owner, "z", z, z.shape[-1:], count)
    # 4. checks of the values; quaternions are normalised, and the inertia of infinite masses, which is not used, is made regular
    record = pack(fields, count)
    require_values(owner, "", record)
    _warn_of_moments(owner, record)
    record["q"][..., 3:] /= _norm(record["q"])[..., None]
    record["inertia"][np.isinf(record["mass"])] = np.eye(3)
    return {"kind": owner, "record": record}


def _is_inertial(owner, name, frame):
    if not isinstance(frame, str) or frame not in ("body", "inertial"):
        raise ValueError(f"{owner}: {name} must be 'body' or 'inertial', got {_checks.shortened(frame)}")
    return frame == "inertial"


def count_of(owner, q, v, count):
    """Number of bodies, None for a single one: from count, else from the shapes of q and v."""
    if count is not None:
        return _checks.integer(owner, "count", count, low=1)
    shapes = (_checks.shape_of(owner, name, value) for name, value in (("q", q), ("v", v)))
    return next((shape[0] for shape in shapes if len(shape) == 2), None)


def per_body(owner, name, value, shape, count):
    """An array with a row of this shape for each body; one row is for all."""
    value = _checks.array(owner, name, value)
    whole = shape if count is None else (count, *shape)
    if value.shape not in (shape, whole):
        raise ValueError(f"{owner}: {name} must have shape {whole}, got {value.shape}")
    return np.broadcast_to(value, whole)


def _masses(owner, mass, count):
    try:
        infinite = np.isposinf(np.asarray(mass))
    except (TypeError, ValueError):  # not numbers at all
        infinite = np.False_
    if not infinite.any():
        return per_body(owner, "mass", mass, (), count)
    given = np.asarray(mass, dtype=np.float64)
    return np.where(infinite, np.inf, per_body(owner, "mass", np.where(infinite, 1.0, given), (), count))


def _inertias(owner, inertia, count):
    _checks.length(owner, "inertia", inertia)
    inertia = _checks.array(owner, "inertia", inertia)
    single = inertia.shape if inertia.shape in ((), (3,), (3, 3)) else inertia.shape[1:]
    if single not in ((), (3,), (3, 3)):
        raise ValueError(f"{owner}: inertia must be a number or have shape (3,) or (3, 3), for each body, got {inertia.shape}")
    matrices = inertia if single == (3, 3) else inertia[..., None, None] * np.eye(3) if single == () else inertia[..., None] * np.eye(3)
    return per_body(owner, "inertia", matrices, (3, 3), count)


def require_values(owner, part, bodies, n_members=1):
    """Raises a ValueError unless quaternions are unit, masses positive, and inertias of finite masses symmetric and positive definite.

    part: prefix of the names of fields. bodies: their records, for n_members members of an ensemble.
    """
    # 1. quantities to check; the inertia of an infinite mass is not used
    q, mass, inertia = (bodies[name].reshape(n_members, -1, *shape) for name, shape in (("q", (7,)), ("mass", ()), ("inertia", (3, 3))))
    inertia = np.where(np.isinf(mass)[..., None, None], np.eye(3), inertia)
    norm, least = _norm(q), _principal_moments(inertia).min(axis=-1)
    skew = abs(inertia - inertia.swapaxes(-1, -2)).max(axis=(-1, -2))
    # 2. the first body that violates one of them is named
    for holds, field, want, got, values in (
        (abs(norm - 1.0) <= UNIT, "q[3:]", "a unit quaternion, scalar first", "norm", norm),
        (mass > 0.0, "mass", "positive", "value", mass),
        (skew <= _SYMMETRIC * abs(inertia).max(axis=(-1, -2)), "inertia", "symmetric", "difference across the diagonal", skew),
        (least > 0.0, "inertia", "positive definite", "least eigenvalue", least),
    ):
        if not holds.all():
            member, body = np.argwhere(~holds)[0].tolist()
            of_body = f" of body {body}" if mass.shape[1] > 1 else ""
            of_member = _checks.of_member(member, n_members)
            raise ValueError(f"{owner}: {part}{field} must be {want}, got one{of_body}{of_member} of {got} {values[member, body]:.9g}")


def _warn_of_moments(owner, bodies):
    """Warns of principal moments A + B < C, which no distribution of mass has, though the equations of motion have a solution."""
    mass, moments = bodies["mass"].reshape(-1), _principal_moments(bodies["inertia"]).reshape(-1, 3)
    largest = moments.max(axis=-1)
    excess = 2.0 - (moments / largest[:, None]).sum(axis=-1)  # of the largest
    wrong = (excess > _PLATE) & np.isfinite(mass)
    if wrong.any():
        body = int(wrong.argmax())
        of_body = f" of body {body}" if mass.size > 1 else ""
        warnings.warn(
            f"{owner}: inertia{of_body} is one that no body can have: its largest principal moment is {largest[body]:.9g} kg m², the "
            f"sum of the others is less by {excess[body] * largest[body]:.3g}; it is taken as it is",
            UserWarning, stacklevel=3,
        )  # fmt: skip


def _principal_moments(inertia):
    """Principal moments of each body, in any order; diagonal inertias, the usual case, need no eigenvalues."""
    off_diagonal = inertia[..., ~np.eye(3, dtype=bool)]
    return np.linalg.eigvalsh(inertia) if off_diagonal.any() else np.diagonal(inertia, axis1=-2, axis2=-1)


def _norm(q):
    return np.linalg.norm(q[..., 3:], axis=-1)
