"""When a contact takes part in a step: one rule for detection, forecast and start, of all schemes."""

from nsds._jit import tiny

_LENGTH = 1e-10  # of the lengths that a gap is the difference of: their rounding, and that of the steps before
_SPEED = 1e-6  # of the way of a step


@tiny
def slack(length, speed, h):
    """Up to which a gap, or the forecast ``y + gamma h ydot`` of one, counts as closed: ``1e-10 length + 1e-6 h speed``.

    length: sum of the magnitudes that cancel in y, as ``|b| + sum |H_j q_j|``. speed: sum of those that cancel in ydot, and what the forces
    add to it in a step of size h. Both are of the scene, so that bodies drawn in contact are, whatever the units. It is for contacts at
    rest; of those that move, the sign of the forecast decides.
    """
    return _LENGTH * length + _SPEED * h * speed


@tiny
def is_closed(forecast, way, rounding, rest):
    """Whether a contact takes part: its forecast ``y + gamma h ydot <= rounding``; or it is at rest and open by no more than ``rest``.

    way: of a step, along the normal. At rest is what moves by no more than ``rest``; flight and impacts are those of the forecast alone.
    Lagrangian systems, whose gaps are sums of a few terms, take 0 for rounding and `slack` for rest. Rigid bodies, whose gaps come from
    iterations that end at a tolerance, take `slack` for rounding, and for rest a tenth of the way that forces are worth in a step.
    """
    return forecast <= rounding or max(forecast, abs(way)) <= rest
