"""Options of nonsmooth RATTLE."""

from nsds.model.system_kinds import NEWTON_EULER
from nsds.schemes.declared import integer, number, record_of
from nsds.schemes.table import scheme_for

_OPTIONS = {"newton_tol": number(above=0.0), "newton_max_iter": integer(low=1)}


@scheme_for(_OPTIONS, {NEWTON_EULER: "rigid.rattle"})
def rattle(newton_tol=1e-12, newton_max_iter=50):
    """Options of nonsmooth RATTLE: joints and closed contacts exact for positions and velocities, second order, energy without drift.

    What rigid bodies have by default.

    Parameters
    ----------
    newton_tol, newton_max_iter
        See `nsds.moreau_jean`.

    Notes
    -----
    A step in which joints and contacts leave no velocity, or would drive what they hold, is INEXACT: joints hold for velocities in
    it, and a motion beside it closes them. Of mechanisms that jam, or are struck while they turn by a radian in a step. By how much of
    their size joints stay open is in its residual, and beyond what the solver's ``inexact`` bears it has failed.

    A body comes to touch without overlap, or by less than a hundredth of its size where another one throws it there within the step, or
    it turns by much of a radian; more is left by what joints hold, or where five solutions do not do it. What overlaps is pushed apart
    in the next steps, by a hundredth of a body's size in each, and without energy. Overlaps below 1e-9 of the size, 1e-6 of many
    contacts, stay as they are.

    Examples
    --------
    >>> import nsds
    >>> int(nsds.rattle()["newton_max_iter"])
    50
    """
    return record_of("rattle", _OPTIONS, locals())
