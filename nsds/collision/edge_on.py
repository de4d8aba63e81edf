"""Contact normal of shapes that touch edge on edge or corner on corner, where several faces separate them equally.

Any normal n with the largest separation ``s(n) = min_a n . x - max_b n . x`` can be that of the contact; of two cards that lean on
each other along an edge, all those between the normals of both cards. Which face separates more is then a matter of rounding, and a body
that rests under a normal in between would slide under that of a face. Here each face is weighted by how nearly it separates as much as
the best one: the normal of an edge on a face is that of the face, that of two edges which meet is in the middle, and in between it
is continuous.
"""

from nsds._jit import tiny
from nsds.maths.vectors import dot

WIDTH = 1e-5  # fraction of the smaller half width: by how much less another face may separate, and how far apart touching shapes may be
DEEP = 1e-2  # fraction of it: overlap beyond which shapes do not merely touch
_SAME = 1.0 - 5e-5  # cosine between the normals of faces that count as parallel: 0.01 rad


@tiny
def does_touch(separation, half_width):
    """Whether two shapes touch with their surfaces only, neither apart nor overlapping by more than the tolerances."""
    return -DEEP * half_width <= separation <= WIDTH * half_width


@tiny
def add_normal(best, face, less, width, total):
    """Adds a face normal of weight ``1 - less / width``; less: by how much it separates less than the best; returns whether it counts."""
    # linear weight: 1 for the best face, 0 at the width, so that the sum has no jump when a face drops out; parallel faces count once
    weight = 1.0 - max(less, 0.0) / width
    if not weight > 0.0 or dot(best, face) > _SAME:
        return False
    for i in range(3):
        total[i] += weight * face[i]
    return True
