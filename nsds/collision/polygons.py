"""Clipping of a convex polygon by half planes (Sutherland and Hodgman), with named edges.

A vertex is (u, v, height, name of the edge that starts there): the names of the edges on both sides identify the same contact
in the next step.
"""

from nsds._jit import kernel

VERTEX = 4
MOST_VERTICES = 8  # of a quadrilateral clipped by four half planes


@kernel
def clip(polygon, n, axis, side, limit, slack, name, clipped):
    """The part of a convex polygon where ``side * coordinate[axis] <= limit``; returns its number of vertices.

    The cut becomes the edge ``name``; a vertex beyond it by no more than the slack stays as it is.
    In: polygon (n vertices). Out: clipped (n + 1 vertices at most).
    """
    count = 0
    for i in range(n):
        p, q = VERTEX * i, VERTEX * (i + 1 if i + 1 < n else 0)
        beyond_p, beyond_q = side * polygon[p + axis] - limit, side * polygon[q + axis] - limit
        at = VERTEX * count
        # a vertex inside stays
        if beyond_p <= slack:
            for k in range(VERTEX):
                clipped[at + k] = polygon[p + k]
            count, at = count + 1, at + VERTEX
        # an edge that crosses the limit gives a vertex there
        if (beyond_p <= slack) != (beyond_q <= slack):
            part = min(max(beyond_p / (beyond_p - beyond_q), 0.0), 1.0)
            for k in range(3):
                clipped[at + k] = polygon[p + k] + part * (polygon[q + k] - polygon[p + k])
            clipped[at + 3] = name if beyond_p <= slack else polygon[p + 3]
            count += 1
    return count
