"""Activity of a contact in a step: one rule for detection, forecast and start, of all schemes."""

from nsds._jit import tiny

_LENGTH = 1e-10  # relative to the lengths whose difference is a gap: their rounding, and that of the steps before
_SPEED = 1e-6  # of the displacement in a step


@tiny
def slack(length, speed, h):
    """Bound up to which a gap, or its forecast ``y + gamma h ydot``, counts as closed: ``1e-10 length + 1e-6 h speed``.

    length: sum of the magnitudes that cancel in y, as ``|b| + sum |H_j q_j|``. speed: sum of those that cancel in ydot, and its change by
    forces in a step of size h. Both scale with the scene, so that bodies drawn in contact are in contact, whatever the units. It is for
    contacts at rest; for moving ones the sign of the forecast decides.
    """
    return _LENGTH * length + _SPEED * h * speed


@tiny
def is_closed(forecast, way, rounding, rest):
    """Whether a contact is active: its forecast ``y + gamma h ydot <= rounding``; or it is at rest and open by at most ``rest``.

    way: displacement of a step, along the normal. At rest means that it moves by at most ``rest``; flight and impacts are those of the
    forecast alone. Lagrangian systems, whose gaps are sums of a few terms, use 0 for rounding and `slack` for rest. Rigid bodies, whose
    gaps come from iterations that end at a tolerance, use `slack` for rounding, and for rest a tenth of the displacement by forces in a
    step.
    """
    return forecast <= rounding or max(forecast, abs(way)) <= rest
