"""Shapes of bodies for contact detection: balls, boxes, capsules, cylinders, cones, planes, tubes, hulls and meshes, placed in its axes.

Disks, stadia, rectangles, polygons and half planes are those of `nsds.planar_bodies`, in the plane z = 0.

A shape is a small dict: ``"shape"``, the name of its kind; ``"size"`` (3,), lengths in m, see `nsds.collision.kinds`; ``"pose"`` (7,),
position and unit quaternion, scalar first, in the axes of its body; hulls and meshes also have ``"vertices"`` (n, 3) and ``"triangles"``
(k, 3), numbers of vertices, counterclockwise from outside. A body may have several shapes, and several bodies may share one.
"""

import os
import warnings

import numpy as np

from nsds import _checks
from nsds._docstrings import with_sections
from nsds.collision.kinds import SHAPES
from nsds.collision.triangles import Edges, is_inside_out, mended, turned
from nsds.maths.rotations import rotation_matrix

__all__ = [
    "box", "capsule", "centre_of_mass", "cone", "convex", "cylinder", "disk", "from_file", "half_plane", "height_map", "inertia", "mesh",
    "plane", "polygon", "rectangle", "sphere", "stadium", "tube", "volume",
]  # fmt: skip


def __dir__():
    return __all__


_SHAPE = """dict
    ``shape``, ``size`` and ``pose``."""
_POSE = """position, orientation : array_like (3,) and (4,)
    As for `box`."""
_LENGTHS = """TypeError, ValueError
    Lengths that are not positive, a pose that is not finite, a quaternion that is zero."""
_shaped = with_sections(Returns=_SHAPE)
_solid = with_sections(Parameters=_POSE, Returns=_SHAPE, Raises=_LENGTHS)


@_shaped
def sphere(radius, *, position=(0, 0, 0)):
    """Ball of given radius.

    Parameters
    ----------
    radius : float
        In m, positive.
    position : array_like (3,)
        Centre in the axes of the body.

    Raises
    ------
    TypeError, ValueError
        A radius that is not positive, a position that is not three finite numbers.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.sphere(0.1)["size"]
    array([0.1, 0. , 0. ])
    """
    return _shape("sphere", [_positive("sphere", "radius", radius), 0, 0], position, (1, 0, 0, 0))


@_shaped
def box(lengths, *, position=(0, 0, 0), orientation=(1, 0, 0, 0)):
    """Box, its edges along its axes.

    Parameters
    ----------
    lengths : array_like (3,)
        Full lengths of the edges along x, y and z, in m.
    position, orientation : array_like (3,) and (4,)
        Centre, and unit quaternion, scalar first, that takes the axes of the box to those of the body.

    Raises
    ------
    TypeError, ValueError
        Lengths that are not three positive numbers, a pose that is not finite, a quaternion that is zero.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.box([1, 2, 3], position=[0, 0, 1.5])["pose"]
    array([0. , 0. , 1.5, 1. , 0. , 0. , 0. ])
    """
    lengths = _checks.array("box", "lengths", lengths, shape=(3,))
    if not (lengths > 0).all():
        raise ValueError(f"box: lengths must be positive, got {lengths.tolist()}")
    return _shape("box", lengths, position, orientation)


@_solid
def capsule(radius, length, *, position=(0, 0, 0), orientation=(1, 0, 0, 0)):
    """Cylinder along z between two half balls.

    Parameters
    ----------
    radius : float
        In m, positive.
    length : float
        Length of the cylinder between the centres of the half balls, in m, positive.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.capsule(0.1, 1.0)["shape"]
    'capsule'
    """
    return _shape("capsule", [_positive("capsule", "radius", radius), _positive("capsule", "length", length), 0], position, orientation)


@_solid
def cylinder(radius, length, *, position=(0, 0, 0), orientation=(1, 0, 0, 0)):
    """Solid cylinder along z.

    Parameters
    ----------
    radius, length : float
        In m, positive.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.cylinder(0.5, 0.2)["size"]
    array([0.5, 0.2, 0. ])
    """
    return _shape("cylinder", [_positive("cylinder", "radius", radius), _positive("cylinder", "length", length), 0], position, orientation)


@_solid
def cone(radius, height, *, position=(0, 0, 0), orientation=(1, 0, 0, 0)):
    """Solid cone along z, with its centre of mass at its position: the base is a quarter of the height below, the tip three above.

    Parameters
    ----------
    radius, height : float
        Of the base, and from there to the tip, in m, positive.

    Examples
    --------
    >>> import numpy as np
    >>> from nsds import shapes
    >>> round(shapes.volume(shapes.cone(0.5, 0.6)) / (np.pi * 0.5**2 * 0.6), 12)
    0.333333333333
    """
    return _shape("cone", [_positive("cone", "radius", radius), _positive("cone", "height", height), 0], position, orientation)


@_solid
def tube(radius, length=None, *, position=(0, 0, 0), orientation=(1, 0, 0, 0)):
    """Inner wall of a hollow cylinder along z, without caps: a drum for the spheres in it.

    Parameters
    ----------
    radius : float
        In m, positive.
    length : float, optional
        In m, positive; without end if it is not given.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.tube(2.0)["size"]
    array([ 2., inf,  0.])
    """
    length = np.inf if length is None else _positive("tube", "length", length)
    return _shape("tube", [_positive("tube", "radius", radius), length, 0], position, orientation)


def plane(normal=(0, 0, 1), offset=0.0, *, point=None):
    """Half space below a plane: what has ``n . x <= offset`` is solid, n the unit normal.

    Parameters
    ----------
    normal : array_like (3,)
        Points out of the solid; of any length but zero.
    offset : float
        Distance of the plane to the origin along the normal, in m.
    point : array_like (3,), optional
        A point of the plane, in place of the offset.

    Returns
    -------
    dict
        ``shape``, ``size`` and ``pose``: the plane's z axis is the normal.

    Raises
    ------
    TypeError, ValueError
        A normal that is zero or not three finite numbers, an offset and a point at the same time.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.plane([0, 0, 2], offset=-0.5)["pose"]
    array([ 0. ,  0. , -0.5,  1. ,  0. ,  0. ,  0. ])
    """
    normal, point = _boundary("plane", 3, normal, offset, point)
    # The shortest turn from z to the normal; half a turn about x where they are opposite.
    turn = np.array([1 + normal[2], -normal[1], normal[0], 0.0]) if normal[2] > -1 + 1e-12 else [0.0, 1.0, 0.0, 0.0]
    return _shape("plane", [0, 0, 0], point, turn)


def _boundary(kind, n, normal, offset, point):
    """(unit normal, one of its points) of the boundary of a half space in n dimensions."""
    normal = _checks.array(kind, "normal", normal, shape=(n,))
    if not normal.any():
        raise ValueError(f"{kind}: normal must not be zero, got {[0] * n}")
    normal = _unit(normal)
    offset, given = _checks.number(kind, "offset", offset), point is not None
    point = _checks.array(kind, "point", point if given else offset * normal, shape=(n,))
    if given and offset != 0:
        raise ValueError(f"{kind}: give the offset or a point, got offset {offset} and point {point.tolist()}")
    return normal, point


def convex(vertices, *, position=(0, 0, 0), orientation=(1, 0, 0, 0)):
    """Convex hull of points.

    Parameters
    ----------
    vertices : array_like (n, 3)
        At least four points that span a volume, in m; those within the hull are left out.
    position, orientation : array_like (3,) and (4,)
        Where the origin of the vertices is, and how their axes are turned, as for `box`. The body's own origin is its centre of mass:
        see `centre_of_mass`.

    Returns
    -------
    dict
        ``shape``, ``size``, ``pose``, and ``vertices`` and ``triangles`` of the hull.

    Raises
    ------
    TypeError, ValueError
        Points that do not span a volume, a pose that is not finite, a quaternion that is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from nsds import shapes
    >>> stone = shapes.convex([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1], [0, 0, 0.2]])
    >>> stone["vertices"].shape, round(shapes.volume(stone), 12)
    ((6, 3), 1.333333333333)
    """
    from scipy.spatial import ConvexHull, QhullError  # which few programs need, and takes long to import

    vertices = _vertices("convex", vertices, 4)
    try:
        hull = ConvexHull(vertices)
    except QhullError:
        raise ValueError(f"convex: vertices must span a volume, got {len(vertices)} in a plane, on a line or in one point") from None
    triangles = hull.simplices.copy()
    corners = vertices[triangles]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inwards = (across * hull.equations[:, :3]).sum(axis=1) < 0
    triangles[inwards] = triangles[inwards][:, ::-1]
    return _polyhedron("convex", vertices, triangles, position, orientation)


def mesh(vertices, triangles, *, position=(0, 0, 0), orientation=(1, 0, 0, 0)):
    """Surface of triangles, closed or open, as of terrain; it meets planes, solids and other meshes.

    Other shapes are kept on the side from which the triangles are counterclockwise; there is nothing within the surface, so that what
    is wholly inside does not touch it. A body of this shape touches planes with its vertices.

    Parameters
    ----------
    vertices : array_like (n, 3)
        In m. Those at one place become one, those without triangles are left out.
    triangles : array_like of int (k, 3)
        Numbers of vertices, counterclockwise from outside. Those without area, those that are there again, and walls within a solid,
        between parts that lie face to face, are left out; where one without area fills a slit beside an edge, its neighbour is divided.
        Triangles may be open, turned against their neighbours, and more than two at an edge: that is a surface, and no solid, as `volume`,
        `inertia` and `centre_of_mass` say. Contacts are found as if all went with most of the surface they are of.
    position, orientation : array_like (3,) and (4,)
        As for `convex`.

    Returns
    -------
    dict
        ``shape``, ``size``, ``pose``, ``vertices`` and ``triangles``.

    Raises
    ------
    TypeError, ValueError
        Numbers that are not those of vertices, vertices or a pose that are not finite, no triangle with an area, a quaternion that is zero.

    Warns
    -----
    UserWarning
        Triangles that are turned against their neighbours, with the first of them; a closed surface that is inside out, which is turned.

    Examples
    --------
    >>> from nsds import shapes
    >>> ramp = shapes.mesh([[0, 0, 0], [2, 0, 1], [2, 2, 1], [0, 2, 0]], [[0, 1, 2], [0, 2, 3]])
    >>> ramp["triangles"].shape
    (2, 3)
    """
    return _mesh("", vertices, triangles, position, orientation)


def _mesh(where, vertices, triangles, position, orientation):
    """`mesh`; where: prefix of warnings."""
    vertices = _vertices("mesh", vertices, 3)
    triangles = _checks.whole_numbers("mesh", "triangles", triangles)
    if triangles.ndim != 2 or triangles.shape[1:] != (3,) or not len(triangles):
        raise ValueError(f"mesh: triangles must have shape (k, 3), k at least 1, got {triangles.shape}")
    if triangles.min() < 0 or triangles.max() >= len(vertices):
        outside = triangles[(triangles < 0) | (triangles >= len(vertices))][0]
        raise ValueError(f"mesh: triangles must be numbers of vertices, 0 to {len(vertices) - 1}, got {outside}")
    n_given, triangles = len(triangles), mended(vertices, triangles)
    if not len(triangles):
        raise ValueError(f"mesh: triangles must have an area, none of the {n_given} has one")
    triangles = _right_side_out(where, vertices, triangles)
    return _polyhedron("mesh", vertices, triangles, position, orientation)


def _right_side_out(where, vertices, triangles):
    """The triangles with inside-out closed surfaces turned; warns of these, and of triangles turned against their neighbours."""
    is_turned = turned(vertices, triangles)
    is_out = is_inside_out(vertices, np.where(is_turned[:, None], triangles[:, ::-1], triangles))
    if is_turned.any():
        warnings.warn(
            f"{where}mesh: {np.count_nonzero(is_turned)} of {len(triangles)} triangles are turned against their neighbours, the first has "
            f"vertices {triangles[is_turned.argmax()].tolist()}: contacts are found as if it were not, and the mesh is no solid",
            UserWarning, stacklevel=4,
        )  # fmt: skip
    if is_out.any():
        warnings.warn(
            f"{where}mesh: {np.count_nonzero(is_out)} of {len(triangles)} triangles are those of a closed surface that is inside out: they "
            f"are turned, counterclockwise from outside",
            UserWarning, stacklevel=4,
        )  # fmt: skip
    return np.where(is_out[:, None], triangles[:, ::-1], triangles)


def from_file(path, *, scale=1.0, hull=False, position=(0, 0, 0), orientation=(1, 0, 0, 0)):
    """Mesh, or its convex hull, from a file: STL, OBJ, PLY, OFF, and what else the library trimesh reads (extra ``meshes``).

    Meshes are used as stored, see `mesh`: STL repeats the vertices for each triangle, scanners and CAD leave triangles without area.

    Parameters
    ----------
    path : str or path
        The file; its ending says what it is.
    scale : float or array_like (3,)
        Metres for each unit of length in the file, along its axes; a mirror image where the product is negative. STL and OBJ have no units:
        1e-3 for millimetres.
    hull : bool
        Whether its convex hull, as from `convex`, takes the place of the mesh.
    position, orientation : array_like (3,) and (4,)
        As for `convex`.

    Returns
    -------
    dict
        As from `mesh`, or `convex`.

    Raises
    ------
    TypeError, ValueError
        A file that is not there or cannot be read, one without triangles, and what `mesh` and `convex` refuse, with the name of the file.
        Of a mesh that is open `volume` says by how much.
    ImportError
        trimesh is not installed.

    Examples
    --------
    >>> import os, tempfile
    >>> from nsds import shapes
    >>> corner = "v 0 0 0\\nv 1 0 0\\nv 0 1 0\\nv 0 0 1\\nf 1 3 2\\nf 1 2 4\\nf 2 3 4\\nf 3 1 4\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "corner.obj")
    ...     with open(path, "w") as file:
    ...         written = file.write(corner)
    ...     shape = shapes.from_file(path, scale=3.0)
    >>> shape["shape"], round(shapes.volume(shape), 12)
    ('mesh', 4.5)
    """
    # 1. arguments
    path = _checks.path("from_file", "path", path)
    scale = _checks.array("from_file", "scale", scale)
    if scale.shape not in ((), (3,)) or not scale.all():
        raise ValueError(f"from_file: scale must be a number or three, not zero, got {scale.tolist()}")
    hull = _checks.flag("from_file", "hull", hull)
    # 2. read the file; readers of formats raise errors of all kinds
    if not os.path.isfile(path):
        raise ValueError(f"from_file: path: there is no file '{path}'")
    _checks.require_package("trimesh", "trimesh", "from_file: files of meshes are read by trimesh")
    import trimesh

    try:
        read = trimesh.load_mesh(path, process=False)
        vertices, triangles = np.array(read.vertices, dtype=np.float64) * scale, np.array(read.faces, dtype=np.int64)
    except Exception as error:  # of any kind: readers of formats raise what they like
        raise ValueError(f"from_file: path: trimesh cannot read '{path}': {type(error).__name__}: {error}") from error
    if not len(triangles):
        raise ValueError(f"from_file: path: '{path}' has no triangles")
    # 3. hull or mesh; a mirror image is inside out until its triangles are turned
    try:
        if hull:
            return convex(vertices[np.unique(triangles)], position=position, orientation=orientation)
        triangles = triangles[:, ::-1] if (scale * np.ones(3)).prod() < 0 else triangles  # a mirror image
        return _mesh(f"from_file: '{path}': ", vertices, triangles, position, orientation)
    except ValueError as error:
        raise ValueError(f"from_file: '{path}': {error}") from None


def height_map(heights, lengths, *, position=(0, 0, 0), orientation=(1, 0, 0, 0)):
    """Terrain from heights on a grid: a mesh of two triangles in each of its rectangles, solid below.

    Parameters
    ----------
    heights : array_like (n, m)
        Heights z over n places along x and m along y, at least 2 each, in m.
    lengths : array_like (2,)
        Of the whole along x and y, in m; its middle is the origin.
    position, orientation : array_like (3,) and (4,)
        As for `convex`.

    Returns
    -------
    dict
        As from `mesh`.

    Raises
    ------
    TypeError, ValueError
        Fewer heights than a grid has, lengths that are not two positive numbers, a pose that is not finite, a quaternion that is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from nsds import shapes
    >>> x = np.linspace(-1, 1, 21)
    >>> valley = shapes.height_map(0.2 * x[:, None] ** 2 + 0 * x, lengths=[2.0, 2.0])
    >>> valley["triangles"].shape
    (800, 3)
    """
    # 1. heights and lengths
    heights = _checks.array("height_map", "heights", heights, n_dims=2)
    lengths = _checks.array("height_map", "lengths", lengths, shape=(2,))
    n, m = heights.shape
    if min(n, m) < 2:
        raise ValueError(f"height_map: heights must have shape (n, m), both at least 2, got {heights.shape}")
    if not (lengths > 0).all():
        raise ValueError(f"height_map: lengths must be positive, got {lengths.tolist()}")
    # 2. grid of vertices, two triangles in each rectangle
    x, y = (np.linspace(-0.5, 0.5, count) * length for count, length in zip((n, m), lengths, strict=True))
    vertices = np.stack([*np.meshgrid(x, y, indexing="ij"), heights], axis=-1).reshape(-1, 3)
    corner = (np.arange(n - 1)[:, None] * m + np.arange(m - 1)).ravel()
    triangles = np.stack([corner, corner + m, corner + m + 1, corner, corner + m + 1, corner + 1], axis=1).reshape(-1, 3)
    return mesh(vertices, triangles, position=position, orientation=orientation)


@_shaped
def disk(radius, *, position=(0, 0)):
    """Disk in the plane.

    Parameters
    ----------
    radius : float
        In m, positive.
    position : array_like (2,)
        Centre in the axes of the body.

    Raises
    ------
    TypeError, ValueError
        A radius that is not positive, a position that is not two finite numbers.

    Examples
    --------
    >>> from nsds import shapes
    >>> round(shapes.volume(shapes.disk(0.1)), 6), shapes.inertia(shapes.disk(0.1), mass=2.0)
    (0.031416, 0.010000000000000002)
    """
    return _in_plane("disk", [_positive("disk", "radius", radius), 0, 0], position, 0.0)


@_shaped
def stadium(radius, length, *, position=(0, 0), angle=0.0):
    """Rectangle along x between two half disks: a capsule in the plane.

    Parameters
    ----------
    radius : float
        In m, positive.
    length : float
        Of the rectangle, between the centres of the half disks, in m, positive.
    position : array_like (2,)
        Centre in the axes of the body.
    angle : float
        By which it is turned, counterclockwise, in radians.

    Raises
    ------
    TypeError, ValueError
        Lengths that are not positive, a position or angle that is not finite.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.stadium(0.1, 1.0)["size"]
    array([0.6, 0.1, 0. ])
    """
    radius, length = _positive("stadium", "radius", radius), _positive("stadium", "length", length)
    return _in_plane("stadium", [radius + length / 2, radius, 0], position, angle)


def rectangle(lengths, *, position=(0, 0), angle=0.0):
    """Rectangle in the plane, its edges along its axes: a `polygon` of four corners.

    Parameters
    ----------
    lengths : array_like (2,)
        Full lengths of the edges along x and y, in m.
    position, angle
        As for `stadium`.

    Returns
    -------
    dict
        As from `polygon`.

    Raises
    ------
    TypeError, ValueError
        Lengths that are not two positive numbers, a position or angle that is not finite.

    Examples
    --------
    >>> from nsds import shapes
    >>> round(shapes.inertia(shapes.rectangle([3.0, 4.0]), mass=12.0), 12)
    25.0
    """
    lengths = _checks.array("rectangle", "lengths", lengths, shape=(2,))
    if not (lengths > 0).all():
        raise ValueError(f"rectangle: lengths must be positive, got {lengths.tolist()}")
    return polygon(lengths / 2 * [[-1, -1], [1, -1], [1, 1], [-1, 1]], position=position, angle=angle)


def polygon(vertices, *, position=(0, 0), angle=0.0):
    """Convex polygon in the plane: the convex hull of points.

    Parameters
    ----------
    vertices : array_like (n, 2)
        At least three points that span an area, in m; those within the hull or on its edges are left out.
    position : array_like (2,)
        Where the origin of the vertices is in the axes of the body. The body's own origin is its centre of mass: see `centre_of_mass`.
    angle : float
        By which their axes are turned, counterclockwise, in radians.

    Returns
    -------
    dict
        ``shape``, ``size``, ``pose``, and ``vertices`` (n, 3), counterclockwise, and ``triangles`` of the hull.

    Raises
    ------
    TypeError, ValueError
        Points that do not span an area, a position or angle that is not finite.

    Examples
    --------
    >>> from nsds import shapes
    >>> corner = shapes.polygon([[0, 0], [0, 3], [3, 0], [1, 1], [1.5, 0]])
    >>> len(corner["vertices"]), shapes.volume(corner), shapes.centre_of_mass(corner)
    (3, 4.5, array([1., 1., 0.]))
    """
    vertices = _checks.array("polygon", "vertices", vertices, n_dims=2)
    if vertices.shape[1] != 2 or len(vertices) < 3:
        raise ValueError(f"polygon: vertices must have shape (n, 2), n at least 3, got {vertices.shape}")
    hull = _hull_in_plane(vertices)
    if len(hull) < 3:
        raise ValueError(f"polygon: vertices must span an area, got {len(vertices)} on a line or in one point")
    hull = np.column_stack([hull, np.zeros(len(hull))])
    last = np.arange(2, len(hull))
    shape = _in_plane("polygon", [np.linalg.norm(hull, axis=1).max(), 0, len(hull)], position, angle)
    return shape | {"vertices": hull, "triangles": np.stack([0 * last, last - 1, last], axis=1)}


_STRAIGHT = 1e-12  # of the extent: distance from the line of their neighbours below which corners are dropped


def _hull_in_plane(points):
    """Corners of the convex hull, counterclockwise, by its lower and upper chains (Andrew 1979)."""
    points = np.unique(points, axis=0)
    least = _STRAIGHT * np.ptp(points, axis=0).max() ** 2
    chains = []
    # lower and upper chain: a point that makes no left turn is dropped
    for way in (points, points[::-1]):
        chain = []
        for point in way:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= least:
                chain.pop()
            chain.append(point)
        chains += chain[:-1]
    return np.array(chains)


def _turn(a, b, c):
    """Twice the area of a triangle, positive if its corners are counterclockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def half_plane(normal=(0, 1), offset=0.0, *, point=None):
    """Half plane below a line: what has ``n . x <= offset`` is solid, n the unit normal.

    Parameters
    ----------
    normal : array_like (2,)
        Points out of the solid; of any length but zero.
    offset : float
        Distance of the line to the origin along the normal, in m.
    point : array_like (2,), optional
        A point of the line, in place of the offset.

    Returns
    -------
    dict
        ``shape``, ``size`` and ``pose``: its y axis is the normal.

    Raises
    ------
    TypeError, ValueError
        A normal that is zero or not two finite numbers, an offset and a point at the same time.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.half_plane([0, 2], offset=-0.5)["pose"]
    array([ 0. , -0.5,  0. ,  1. ,  0. ,  0. ,  0. ])
    """
    normal, point = _boundary("half_plane", 2, normal, offset, point)
    return _in_plane("half_plane", [0, 0, 0], point, np.arctan2(-normal[0], normal[1]))


def _in_plane(kind, size, position, angle):
    position, half = _checks.array(kind, "position", position, shape=(2,)), _checks.number(kind, "angle", angle) / 2
    return _shape(kind, size, [*position, 0], [np.cos(half), 0, 0, np.sin(half)])


def volume(shape):
    """Volume of a solid shape in m^3; of a shape in the plane its area in m^2.

    Parameters
    ----------
    shape : dict
        A sphere, box, capsule, cylinder, cone, convex hull or closed mesh; a disk, stadium, rectangle or polygon.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        The shape is a plane, a half plane or a tube, or a mesh that is open or inside out.

    Examples
    --------
    >>> from nsds import shapes
    >>> round(shapes.volume(shapes.box([1, 2, 3])), 12)
    6.0
    """
    kind = _solid("volume", shape)
    return _moments("volume", shape)[0] if kind.is_polyhedron else float(kind.volume(shape["size"]))


def centre_of_mass(shape):
    """Centre of mass of a homogeneous solid shape in the axes of the body, where the body's own is the origin.

    Parameters
    ----------
    shape : dict
        As for `volume`.

    Returns
    -------
    ndarray (3,)
        In m. A hull or mesh at ``position=-centre_of_mass(shape)`` of one that was given no position has it at the origin.

    Raises
    ------
    ValueError
        As `volume`.

    Examples
    --------
    >>> from nsds import shapes
    >>> corner = [[0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4]]
    >>> shapes.centre_of_mass(shapes.convex(corner))
    array([1., 1., 1.])
    >>> bool((abs(shapes.centre_of_mass(shapes.convex(corner, position=[-1, -1, -1]))) < 1e-12).all())
    True
    """
    kind = _solid("centre_of_mass", shape)
    centre = _moments("centre_of_mass", shape)[1] if kind.is_polyhedron else np.zeros(3)
    return shape["pose"][:3] + _rotation(shape["pose"][3:]) @ centre


def inertia(shape, mass):
    """Inertia of a homogeneous solid shape about its centre of mass, in the axes of the body.

    Parameters
    ----------
    shape : dict
        As for `volume`.
    mass : float
        In kg, positive.

    Returns
    -------
    ndarray (3, 3)
        In kg m^2. The position of the shape plays no part: for a body of several shapes, add ``mass (|x|^2 1 - x x^T)`` of each. Of a
        shape in the plane a float, the moment about the normal, to which ``mass |x|^2`` comes.

    Raises
    ------
    TypeError, ValueError
        As `volume`; the mass is not positive.

    Examples
    --------
    >>> from nsds import shapes
    >>> shapes.inertia(shapes.box([1, 2, 3]), mass=12.0).diagonal()
    array([13., 10.,  5.])
    """
    kind = _solid("inertia", shape)
    mass = _positive("inertia", "mass", mass)
    R = _rotation(shape["pose"][3:])
    if kind.is_planar and not kind.is_polyhedron:
        return float(kind.moments(shape["size"], mass))
    if kind.is_polyhedron:
        whole, _, second = _moments("inertia", shape)
        if kind.is_planar:
            return float(mass / whole * np.trace(second))
        return mass / whole * (R @ (np.trace(second) * np.eye(3) - second) @ R.T)
    moments = kind.moments(shape["size"], mass)
    return R @ np.diag(moments) @ R.T


def require_shape(where, shape):
    """Raises a TypeError unless a shape comes from a constructor of this module."""
    kind = shape.get("shape") if isinstance(shape, dict) else None
    known = isinstance(kind, str) and kind in SHAPES
    if not known or not {"size", "pose", *(("vertices", "triangles") if SHAPES[kind].is_polyhedron else ())} <= set(shape):
        raise TypeError(f"{where} must come from nsds.shapes, got {_checks.shortened(shape)}")


def _unit(vector):
    """A nonzero vector at length 1, also if its square over- or underflows."""
    length = np.linalg.norm(vector)
    return vector / length if 1e-150 < length < 1e150 else _unit(vector / abs(vector).max())


def _positive(owner, field, value):
    return _checks.number(owner, field, value, above=0)


def _shape(kind, size, position, orientation):
    position = _checks.array(kind, "position", position, shape=(3,))
    orientation = _checks.array(kind, "orientation", orientation, shape=(4,))
    if not orientation.any():
        raise ValueError(f"{kind}: orientation must be a unit quaternion, scalar first, got {orientation.tolist()}")
    pose = np.concatenate([position, _unit(orientation)]) + 0.0  # no -0
    return {"shape": kind, "size": np.array(size, dtype=np.float64), "pose": pose}


def _vertices(owner, vertices, least):
    vertices = _checks.array(owner, "vertices", vertices, n_dims=2)
    if vertices.shape[1] != 3 or len(vertices) < least:
        raise ValueError(f"{owner}: vertices must have shape (n, 3), n at least {least}, got {vertices.shape}")
    return vertices


def _polyhedron(kind, vertices, triangles, position, orientation):
    """The shape without vertices that no triangle uses."""
    used, triangles = np.unique(triangles, return_inverse=True)
    vertices = vertices[used]
    size = [np.linalg.norm(vertices, axis=1).max(), 0, len(vertices)]
    shape = _shape(kind, size, position, orientation)
    return shape | {"vertices": vertices, "triangles": triangles.reshape(-1, 3).astype(np.int64)}


def _moments(owner, shape):
    """(volume, centre, second moments about it (3, 3)) of the volume within triangles: signed tetrahedra from one point.

    Of a polygon (area, centre, second moments) of its triangles.
    """
    if SHAPES[shape["shape"]].is_planar:
        return _moments_in_plane(shape)
    # 1. closed, with consistent orientation
    edges = Edges(shape["triangles"])
    n_open, n_against = np.count_nonzero(edges.count == 1), np.count_nonzero((edges.balance != 0) & (edges.count > 1))
    if n_open:
        raise ValueError(f"{owner}: the mesh must be closed, got {n_open} edges of one triangle only")
    if n_against:
        wanted = "the mesh must be closed, with triangles that pass each edge as often in one sense as in the other"
        raise ValueError(f"{owner}: {wanted}, got {n_against} edges where some are turned, or three meet")
    # 2. tetrahedra from the mean of the vertices, which keeps cancellation small far from the origin
    middle = shape["vertices"].mean(axis=0)
    corners = (shape["vertices"] - middle)[shape["triangles"]]
    weight = np.linalg.det(corners) / 6
    whole = weight.sum()
    if whole <= 0:
        raise ValueError(f"{owner}: the triangles of the mesh must be counterclockwise from outside, got the volume {whole:.6g}")
    # 3. moments of tetrahedra, shifted to the centre
    total = corners.sum(axis=1)
    centre = weight @ total / (4 * whole)
    second = (np.einsum("t,tci,tcj->ij", weight, corners, corners) + np.einsum("t,ti,tj->ij", weight, total, total)) / 20
    return float(whole), middle + centre, second - whole * np.outer(centre, centre)


def _moments_in_plane(shape):
    middle = shape["vertices"].mean(axis=0)
    corners = (shape["vertices"] - middle)[shape["triangles"]]
    weight = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])[:, 2] / 2
    whole, total = weight.sum(), corners.sum(axis=1)
    centre = weight @ total / (3 * whole)
    second = (np.einsum("t,tci,tcj->ij", weight, corners, corners) + np.einsum("t,ti,tj->ij", weight, total, total)) / 12
    return float(whole), middle + centre, second - whole * np.outer(centre, centre)


def _solid(owner, shape):
    require_shape(f"{owner}: shape", shape)
    solids = [name for name, kind in SHAPES.items() if kind.is_polyhedron or kind.volume is not None]
    if shape["shape"] not in solids:
        raise ValueError(f"{owner}: shape must be one of {', '.join(solids)}, got {shape['shape']}")
    return SHAPES[shape["shape"]]


def _rotation(p):
    R = np.empty(9)
    rotation_matrix(p, R)
    return R.reshape(3, 3)
