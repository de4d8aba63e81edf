"""Nonsmooth laws: what holds between the output y and the multiplier lambda of an interaction.

A law is a small dict: its name in the table below and its parameters.
"""

from nsds import _checks

# name -> (is the constraint bilateral, names of its parameters)
LAWS = {
    "newton_impact": (False, ("e",)),
    "complementarity": (False, ()),
    "equality": (True, ()),
}


def newton_impact(e):
    """Unilateral contact with Newton's restitution: ``0 <= ydot+ + e ydot-  ⟂  lambda >= 0`` while ``y <= 0`` (seed 001).

    Parameters
    ----------
    e : float or array_like (m,)
        Restitution in [0, 1]; one value for all constraints of the interaction, or one each.

    Raises
    ------
    ValueError
        e outside [0, 1].

    Examples
    --------
    >>> import nsds
    >>> nsds.newton_impact(0.9)["law"]
    'newton_impact'
    """
    e = _checks.array("newton_impact", "e", e)
    if e.ndim > 1 or (e < 0).any() or (e > 1).any():
        raise ValueError(f"newton_impact: e must be a number or a vector in [0, 1], got {e.tolist()}")
    return {"law": "newton_impact", "e": e}


def complementarity():
    """Complementarity: ``0 <= y ⟂ lambda >= 0``; at velocity level under Moreau–Jean, an impact that dissipates all (e = 0).

    Examples
    --------
    >>> import nsds
    >>> nsds.complementarity()
    {'law': 'complementarity'}
    """
    return {"law": "complementarity"}


def equality():
    """Bilateral constraint: ``y = 0`` with lambda of either sign; ``ydot = 0`` at every step under Moreau–Jean.

    Examples
    --------
    >>> import nsds
    >>> nsds.equality()
    {'law': 'equality'}
    """
    return {"law": "equality"}
