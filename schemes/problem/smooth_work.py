"""Bound of the work of joints in one smooth step, in which nothing but joints and forces acts: one bound for all schemes and families."""

from nsds._jit import tiny

HELD = 1e-6  # relative to the velocities that cancel: joints that hold; above it, and above a turn in a step, they are being closed
_SMOOTH, _OF_TURN = 0.01, 0.25  # of kinetic energies, and of them times the square of the turn


@tiny
def of_smooth(expected, energy):
    """Work of joints that a smooth step explains; energy: kinetic, of both ends, and of what forces do; joints hold at its start.

    Impulses of ``h omega`` of the momenta act along rows that turn by ``h omega`` in the step, with the velocity of the start and what
    forces alone add to it. What a step makes of a turn explains nothing: a mechanism that leaves its branch flies apart.
    """
    return (_SMOOTH + _OF_TURN * expected * expected) * energy
