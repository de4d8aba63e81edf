"""Options of the half-explicit D1- scheme."""

from nsds.model.system_kinds import LAGRANGIAN, NEWTON_EULER
from nsds.schemes.declared import record_of, word
from nsds.schemes.table import scheme_for

_OPTIONS = {"level": word("by_kind", "acceleration", "velocity")}


@scheme_for(_OPTIONS, {LAGRANGIAN: "lagrangian.d1_minus_linear", NEWTON_EULER: "mechanics.d1_minus_linear"})
def d1_minus_linear(level="by_kind"):
    """Options of the half-explicit D1- scheme: second order between impacts and in persistent contact (Schindler and Acary 2014).

    Explicit in the forces: the step must resolve the fastest motion, ``h omega < 2``.

    Parameters
    ----------
    level : "by_kind", "acceleration" or "velocity"
        What contact forces inside a step keep from going below zero. At acceleration level, as the scheme was published, a contact takes
        part only if it does not open, be it by an error of O(h^3): along curved constraints, unless they are bilateral, contacts then
        open in some steps and close by impacts, with order 1, so that what rolls on a rim sinks and loses energy. Friction, dry friction
        and relays are stated for velocities at either level. By kind: accelerations of Lagrangian systems, velocities of rigid bodies.

    Notes
    -----
    Contacts are closed where ``y <= 0`` at a node, without a forecast; impacts act at the end of the step whose end they violate. lambda of
    a row is the whole impulse of the step: that of the impact and of the forces at both ends, ``P + h/2 (lambda+ + lambda-)``. Positions
    are not corrected: bilateral constraints drift by O(h^2). Sliding, sticking and rolling have order 2, changes between them order 1.
    Relations with D are refused.

    Rigid bodies: velocities are those in axes of the body, whose gyroscopic moment is a force; rotations follow the exponential map.
    Contacts of shapes have a row for each that two shapes can have, as under `nsds.event_driven`, for scenes of few bodies. What comes and
    goes is refused. Joints may depend on each other, and then have forces of least norm; a step in which joints do work that nothing
    explains, as at dead centres, fails with the status LEFT_BRANCH.

    Examples
    --------
    >>> import nsds
    >>> rows = nsds.simulate(nsds.examples.bouncing_ball(e=0.0), t_end=2.0, h=1e-3, scheme=nsds.d1_minus_linear())
    >>> float((rows["floor"]["lambda"][-1] / 1e-3).round(6)), bool(abs(rows["ball"]["v"][-1]).max() < 1e-12)  # rests on the floor
    (9.81, True)
    """
    return record_of("d1_minus_linear", _OPTIONS, locals())
