"""Clipping of a convex polygon by half planes (Sutherland and Hodgman), with named edges.

A vertex is (u, v, height, name of the edge that starts there): the names of the edges on both sides identify the same contact
in the next step.
"""

from nsds._jit import kernel

VERTEX = 4
MOST_VERTICES = 8  # of a quadrilateral clipped by four half planes


@kernel
def clip(polygon, n, beyond, slack, name, clipped):
    """The part of a convex polygon that is not beyond a side; returns its number of vertices, no more than there is room for.

    The cut becomes the edge ``name``. A vertex beyond the side by no more than the slack stays as it is, so that one on it keeps its name
    whatever the rounding.
    In: polygon (n vertices); beyond (n,): signed distances from the side. Out: clipped.
    """
    count, room = 0, clipped.size // VERTEX
    for i in range(n):
        following = i + 1 if i + 1 < n else 0
        p, q, is_inside = VERTEX * i, VERTEX * following, beyond[i] <= slack
        # a vertex inside stays
        if is_inside and count < room:
            for k in range(VERTEX):
                clipped[VERTEX * count + k] = polygon[p + k]
            count += 1
        # an edge that crosses the side gives a vertex there
        if is_inside != (beyond[following] <= slack) and count < room:
            part = min(max(beyond[i] / (beyond[i] - beyond[following]), 0.0), 1.0)
            for k in range(3):
                clipped[VERTEX * count + k] = polygon[p + k] + part * (polygon[q + k] - polygon[p + k])
            clipped[VERTEX * count + 3] = name if is_inside else polygon[p + 3]
            count += 1
    return count
