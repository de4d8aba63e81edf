"""Rigid bodies that move in a plane: stated by three coordinates each, stored in a record of rigid bodies."""

import numpy as np

from nsds import _checks
from nsds.model.rigid_bodies import count_of, per_body, rigid_bodies

_Z = [0, 1, 5]  # components of a velocity or wrench that lie in the plane


def planar_bodies(mass, inertia, q, v, fext=None, mext=None, *, T=None, u=None, u_frame="body", alive=None, z=None, count=None):
    """Rigid bodies that move in the plane z = 0: ``m x' = m g + f_ext + f_u``, ``I omega' = M_ext + M_u``, and what acts between them.

    Their shapes are those of `nsds.shapes` in the plane, which `nsds.collisions` finds the contacts of: disk, stadium, rectangle, polygon,
    half_plane. Friction has one tangent, z × n, and rolling friction a moment about z. They have the record, the schemes, joints, forces,
    controls, pictures and reports of `nsds.rigid_bodies`, and nothing ever takes them out of the plane; of joints the rows in the plane are
    taken alone, so that loops have no redundant ones. `nsds.in_plane` gives their coordinates back.

    Parameters
    ----------
    mass : float or array_like (count,)
        Masses (kg), infinite for a body that nothing stops.
    inertia : float or array_like (count,)
        Moment of inertia about the normal through the centre of mass (kg m²), as from `nsds.shapes.inertia`.
    q : array_like (3,) or (count, 3)
        Coordinates at the start: centre of mass x, y (m), and angle (rad). A matrix makes an array of bodies.
    v : array_like (3,) or (count, 3)
        Velocities at the start: of the centre, and angular (rad/s), counterclockwise.
    fext : array_like (2,), (count, 2), or function ``fext(t, z, out)``, optional
        External force (N), besides weight. A function writes three components, of which the last has no effect.
    mext : float, array_like (count,), or function ``mext(t, z, out)``, optional
        External moment about z (N m). A function writes three components, of which the first two have no effect.
    T : array_like (3, n_u) or (count, 3, n_u), optional
        Weight of the control: each column the force, then the moment about the centre of mass. The identity if not given.
    u : array_like (n_u,) or (count, n_u), optional
        Control, held in a step.
    u_frame : "body" or "inertial"
        Axes of the force in ``T u``.
    alive, z, count
        As of `nsds.rigid_bodies`.

    Returns
    -------
    dict
        A part for `nsds.system`, with the fields of `nsds.rigid_bodies` and ``planar``, which is 1. Of its q (7,) and v (6,) all is 0 but
        ``q[[0, 1, 3, 6]] = x, y, cos(angle / 2), sin(angle / 2)`` and ``v[[0, 1, 5]]``.

    Raises
    ------
    TypeError, ValueError
        As `nsds.rigid_bodies`. In `nsds.system`: gravity that leaves the plane, shapes in space on planar bodies or conversely,
        joints with bodies in space or about axes that do not fit the plane.

    Examples
    --------
    A disk rolls down an incline, which is level here while gravity is not: two thirds of the acceleration of one that slides.

    >>> import numpy as np, nsds
    >>> disk, slope = nsds.shapes.disk(0.1), 0.3
    >>> system = nsds.system(
    ...     gravity=[9.81 * np.sin(slope), -9.81 * np.cos(slope), 0],
    ...     disk=nsds.planar_bodies(1.0, nsds.shapes.inertia(disk, 1.0), q=[0, 0.1, 0], v=[0, 0, 0]),
    ...     contacts=nsds.collisions({"disk": disk}, nsds.newton_impact_friction(0.0, mu=0.3), world=nsds.shapes.half_plane()),
    ... )
    >>> rows = nsds.simulate(system, t_end=1.0, h=1e-2)
    >>> q, v = nsds.in_plane(rows["disk"])
    >>> float(round(v[-1, 0] / (2 / 3 * 9.81 * np.sin(slope)), 9)), bool(abs(v[-1, 0] + 0.1 * v[-1, 2]) < 1e-9)
    (1.0, True)
    """
    owner = "planar_bodies"
    # 1. coordinates and moments in the plane
    count = count_of(owner, q, v, count)
    q, v = (per_body(owner, name, value, (3,), count) for name, value in (("q", q), ("v", v)))
    moment = _checks.array(owner, "inertia", inertia)
    if moment.ndim > 1 or moment.shape not in ((), (count,)):
        raise ValueError(f"{owner}: inertia must be a number about the normal, or have shape {(count or 1,)}, got shape {moment.shape}")
    # 2. forces, moments and weight of the control, as vectors in space
    force = fext if fext is None or callable(fext) else _in_space(per_body(owner, "fext", fext, (2,), count), [0, 1], 3)
    couple = mext if mext is None or callable(mext) else _in_space(_scalars(owner, "mext", mext, count)[..., None], [2], 3)
    if u is not None and T is None:
        T = np.eye(3)
    if T is not None and not callable(T):
        T = _checks.array(owner, "T", T, at_least=2)
        if T.shape[-2] != 3 or T.ndim > 2 + (count is not None):
            raise ValueError(f"{owner}: T must have shape (3, n_u), got {T.shape}")
        T = _in_space(T.swapaxes(-1, -2), _Z, 6).swapaxes(-1, -2)
    # 3. the record of rigid bodies, with one more field that marks planar ones
    part = _as_own(
        owner, rigid_bodies, mass, moment[..., None, None] * np.eye(3), _coordinates(q), _in_space(v, _Z, 6), force, couple, T=T, u=u,
        u_frame=u_frame, alive=alive, z=z, count=count,
    )  # fmt: skip
    record = part["record"]
    result = np.zeros(record.shape, [*record.dtype.descr, ("planar", "<i8")])
    for name in record.dtype.names:
        result[name] = record[name]
    result["planar"] = 1
    return part | {"record": result}


def in_plane(bodies):
    """Coordinates and velocities of `nsds.planar_bodies` in the plane.

    Parameters
    ----------
    bodies : numpy.ndarray
        A part of a record, ``system["disk"]``, or of the rows of a trajectory, ``rows["disk"]``, with q and v.

    Returns
    -------
    q, v : ndarray (..., 3)
        x, y (m) and angle (rad); velocities x, y and angular. Angles follow the turns from row to row, along the first axis, as long as
        none is more than one turn; the first is between -2 pi and 2 pi.

    Raises
    ------
    TypeError, ValueError
        Not such an array, or bodies that are turned out of the plane.

    Examples
    --------
    >>> import nsds
    >>> wheel = nsds.planar_bodies(1.0, 0.1, q=[0.5, 0, 3.0], v=[0, 0, 10.0])
    >>> rows = nsds.simulate(nsds.system(wheel=wheel), t_end=2.0, h=0.1)
    >>> q, v = nsds.in_plane(rows["wheel"])
    >>> q[-1].round(9), v[-1]
    (array([ 0.5,  0. , 23. ]), array([ 0.,  0., 10.]))
    """
    owner = "in_plane"
    names = getattr(getattr(bodies, "dtype", None), "names", None) or ()
    if not {"q", "v"} <= set(names) or bodies["q"].shape[-1] != 7:
        raise TypeError(f"{owner}: expected a part of planar bodies, or of rows that hold its q and v, got {_checks.shortened(bodies)}")
    q, v = np.asarray(bodies["q"]), np.asarray(bodies["v"])
    off = abs(q[..., [2, 4, 5]]).max(initial=0.0)
    if off > 0:
        raise ValueError(f"{owner}: expected bodies in the plane z = 0, turned about z, got one that is {off:.3g} off")
    angle = 2 * np.arctan2(q[..., 6], q[..., 3])
    if angle.ndim and len(angle):  # quaternions follow the turns, two of which bring them back
        angle = np.unwrap(angle, axis=0, period=4 * np.pi)
    return np.stack([q[..., 0], q[..., 1], angle], axis=-1), v[..., _Z].copy()


def _scalars(owner, name, value, count):
    value = _checks.array(owner, name, value)
    if value.shape not in ((), () if count is None else (count,)):
        raise ValueError(
            f"{owner}: {name} must be a number{'' if count is None else f' or have shape {(count,)}'}, got shape {value.shape}"
        )
    return value


def _in_space(values, places, size):
    """Vectors (..., size) in space with given components at the places, else 0."""
    result = np.zeros((*values.shape[:-1], size))
    result[..., places] = values
    return result


def _coordinates(q):
    """Coordinates (..., 7) from those in the plane (..., 3)."""
    half = q[..., 2:] / 2
    return _in_space(np.concatenate([q[..., :2], np.cos(half), np.sin(half)], axis=-1), [0, 1, 3, 6], 7)


def _as_own(owner, constructor, *given, **options):
    """Result of a constructor whose errors are renamed to the given owner."""
    try:
        return constructor(*given, **options)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace(f"{constructor.__name__}: ", f"{owner}: ", 1)) from None
