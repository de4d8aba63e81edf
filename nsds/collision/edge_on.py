"""The normal of shapes that touch edge on edge, or corner on corner: several faces separate them as much, and all between allow it.

Any normal n whose separation ``s(n) = min_a n . x - max_b n . x`` is the largest one can be that of the contact; of two cards that lean on
each other along an edge, those between the normals of both cards. Which of the faces separates more is a matter of rounding there, and what
is at rest with a normal in the middle slides with that of a face. Here each face counts by how nearly it separates as much as the best
one: the normal of an edge on a face is that of the face, that of two edges which meet is in the middle, and between both it turns without a
jump.
"""

from nsds._jit import tiny
from nsds.maths.vectors import dot

WIDTH = 1e-5  # of the smaller shape's half width: how much less another face may separate, and how far apart shapes may be that touch
DEEP = 1e-2  # of it: overlap beyond which shapes do not merely touch
_SAME = 1.0 - 5e-5  # cosine between the normals of faces that lie on each other, as good as flat: 0.01 rad


@tiny
def does_touch(separation, half_width):
    """Whether two shapes touch with no more than their surfaces."""
    return -DEEP * half_width <= separation <= WIDTH * half_width


@tiny
def add_normal(best, face, less, width, total):
    """Adds the normal of a face that separates by so much less than the best one; returns whether it counts. In and out: total (3,)."""
    weight = 1.0 - max(less, 0.0) / width
    if not weight > 0.0 or dot(best, face) > _SAME:
        return False
    for i in range(3):
        total[i] += weight * face[i]
    return True
