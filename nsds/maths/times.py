"""Comparison of times up to rounding: one tolerance for rows, edges of sources, and scheduled times."""

from nsds._jit import tiny

ROUNDED = 2.0**-46  # of a time, or of the time between rows: two times no further apart are equal


@tiny
def is_later(t, than, h):
    """Whether t, which may be infinite, is after another time, and not equal to it up to rounding of times, or of steps of h."""
    return t - than > ROUNDED * max(abs(than), h)


@tiny
def is_same(t, other, h):
    """Whether t, which may be infinite, equals another time up to rounding of times, or of steps of h."""
    return abs(t - other) <= ROUNDED * max(abs(other), h)
