"""Relations between rigid bodies that a user's functions state; joints are in `nsds.joints`, detected contacts in `nsds.collisions`."""

from nsds import _checks
from nsds.model.functions import function_name
from nsds.model.system_kinds import AT_Q, NEWTON_EULER, relation_of


@relation_of(NEWTON_EULER, role="joint", functions=dict.fromkeys(("h", "jac", "h_t"), "t, q, z, out"), needed=("h",), parameters=AT_Q)
def newton_euler_relation(h, jac=None, h_t=None, *, m, z=None):
    """Relation ``y = h(t, q)`` between rigid bodies, ``ydot = dh/dq T(q) v + dh/dt``, ``p = (dh/dq T(q))^T lambda`` ([Notes], eq. 11.195).

    Parameters
    ----------
    h : function ``h(t, q, z, out)``
        Writes y into ``out`` (m,); q holds the 7 coordinates of the body, or of the two bodies one behind the other.
    jac : function ``jac(t, q, z, out)``, optional
        Writes the derivative of h by q into ``out`` (m, 7) or (m, 14). By central differences if not given.
    h_t : function ``h_t(t, q, z, out)``, optional
        Writes the derivative by t into ``out`` (m,), needed where h depends on t.
    m : int
        Length of y.
    z : array_like, optional
        Parameters passed to the functions.

    Returns
    -------
    dict
        A relation for `nsds.interaction`, under `nsds.equality` or `nsds.newton_impact`.

    Examples
    --------
    A rod of length 1 between the origin and the centre of a ball:

    >>> import nsds
    >>> def rod(t, q, z, out):
    ...     out[0] = (q[0] ** 2 + q[1] ** 2 + q[2] ** 2 - 1.0) / 2.0
    >>> system = nsds.system(
    ...     ball=nsds.rigid_bodies(1.0, 0.1, q=[1, 0, 0, 1, 0, 0, 0], v=[0, 1, 0, 0, 0, 0]),
    ...     rod=nsds.interaction(nsds.newton_euler_relation(rod, m=1), nsds.equality(), on="ball"),
    ... )
    >>> rows = nsds.simulate(system, t_end=1.0, h=1e-2)
    >>> rows["ball"]["q"][-1, :2].round(2)
    array([0.54, 0.84])
    """
    owner = "newton_euler_relation"
    relation = {"relation": owner, "m": _checks.integer(owner, "m", m, low=1), "n": None}
    for name, function in (("h", h), ("jac", jac), ("h_t", h_t)):
        if function is not None or name == "h":
            relation[name] = function_name(function, owner, name)
    return _with_parameters(owner, relation, z)


@relation_of(NEWTON_EULER, role="contact", functions={"gap": "t, q, z, out"}, needed=("gap",), parameters=AT_Q)
def contact_point(gap, z=None):
    """Contact whose gap, point and normal a function gives; the frame is made from the normal ([Notes], 12.0.3 and 12.0.4).

    Velocities of the contact are ``ydot = frame (v_a + omega_a × (c - x_a) - v_b - omega_b × (c - x_b))``, normal first, c the point;
    with rolling friction, the relative angular velocities about the two tangents follow.

    Parameters
    ----------
    gap : function ``gap(t, q, z, out)``
        Writes the gap (m), the contact point (3,) and the unit normal (3,) into ``out`` (7,), in inertial axes; the normal points to the
        first body. q holds the 7 coordinates of the body, or of the two bodies one behind the other.
    z : array_like, optional
        Parameters passed to the function.

    Returns
    -------
    dict
        A relation for `nsds.interaction`, under `nsds.newton_impact` (without friction), `nsds.newton_impact_friction`,
        `nsds.newton_impact_rolling_friction` or `nsds.newton_impact_spinning_friction`.

    Raises
    ------
    TypeError
        A function that has the wrong arguments or does not compile.

    Examples
    --------
    >>> import nsds
    >>> def floor(t, q, z, out):
    ...     out[0] = q[2] - z[0]
    ...     out[1], out[2], out[3] = q[0], q[1], q[2] - z[0]
    ...     out[4], out[5], out[6] = 0.0, 0.0, 1.0
    >>> nsds.contact_point(floor, z=[0.1])["relation"]
    'contact_point'
    """
    owner = "contact_point"
    return _with_parameters(owner, {"relation": owner, "m": None, "n": None, "gap": function_name(gap, owner, "gap")}, z)


def _with_parameters(owner, relation, z):
    if z is not None:
        relation["z"] = _checks.array(owner, "z", z, at_least=1, n_dims=1)
    return relation
