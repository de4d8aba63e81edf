"""Options of the event-driven scheme."""

from nsds.model.system_kinds import FIRST_ORDER, LAGRANGIAN, NEWTON_EULER
from nsds.schemes.declared import flag, integer, number, record_of, times, word
from nsds.schemes.table import scheme_for

_OPTIONS = {
    "rtol": number(above=0.0),
    "atol": number(0.0),
    "flow": word("auto", "exact", "dopri5", "radau"),
    "accumulation": number(0.0, 1.0),
    "max_events": integer(low=1),
    "hybrid": flag(or_none=True),
    "time_events": times(),
}
_MODULES = {LAGRANGIAN: "event_driven.lagrangian", FIRST_ORDER: "event_driven.linear", NEWTON_EULER: "event_driven.rigid_tables"}


@scheme_for(_OPTIONS, _MODULES)
def event_driven(rtol=1e-9, atol=0.0, flow="auto", accumulation=1e-6, max_events=100_000, time_events=(), hybrid=None):
    """Options of event-driven integration: smooth motions to the accuracy asked for, and events at their times.

    Parameters
    ----------
    rtol : float > 0
        Error of a step of the smooth motion, relative to the state.
    atol : float >= 0
        Error of a step, in the units of the states, of what passes zero. 0: 1e-12, and of states that have been smaller than 1 so far 1e-12
        of the largest in their system: of the coordinates, and of the velocities, of a Lagrangian system, of all states of a first-order
        one. States of different sizes in one system, as charges of picocoulombs beside volts, want a number below 1e-6 of the smallest.
        Of rigid bodies 0 is 1e-12 (m, m/s, rad/s).
    flow : "auto", "exact", "dopri5" or "radau"
        How smooth motions are computed. "exact": Taylor series to rounding, for linear systems whose matrices are constant, with forces
        that may depend on time (of Lagrangian systems), without friction in space and compliance; no impact is missed, and times of
        impacts are exact to rounding. First-order systems of up to 48 states, with two more for each source, go on by long steps of
        collocation where many short ones would only follow what has died away, as behind a diode that leaks: stiff circuits take no longer
        than others. "dopri5": the explicit Runge–Kutta pair of Dormand and Prince with dense output. "radau": the
        implicit method Radau IIA of order 5 with dense output, for motions that are stiff, of few coordinates (its matrices are dense, and
        slopes are differences); circuits move as by "exact". "auto": exact where it can be, else "dopri5"; first-order systems of up to 48
        states go on by "radau" where stability limits its steps, up to the next event. Such steps by "dopri5" end the run where more than
        10^6 of them are between two rows.
    accumulation : float >= 0
        Impacts that accumulate, as those of a ball that comes to rest, end where three flight times fall by one ratio q and the speed of
        approach is below this part of the largest so far: the contact closes, and the flights left out, ``d q / (1 - q)``, are summed for
        the time at which they would have ended. Where several contacts strike in turn, as the corners of a box, those that touch close
        together after 8, 16, 32 ... impacts of one of them below that speed, the second half of which were half as fast and came sooner.
        0 follows them as long as their times, and what happens between them, can be told from rounding.
    max_events : int
        More events than that between two rows of step h, or in 20 of the longest steps of the motion where rows are longer than those, are
        too many; soon after an interval of time stepping a sixteenth of that is. So are 20 000 steps of the motion that get on by less
        than a thousandth of h, or less than 20 of the longest steps: the run ends, or is handed over (``hybrid``).
    time_events : array_like (k,)
        Times known in advance at which something switches, as corners of a cam or of a force: the motion stops there exactly, and functions
        are called on their own side of them, whichever value they have there. Of linear motions jumps of forces are also found without, to
        rounding, where no pulse is shorter than a ninth of a step of the motion.
    hybrid : bool, optional
        What cannot be followed event by event is handed over to time stepping for a short interval, and goes on from events there: more
        events than ``max_events`` says, or too many at one time; impacts whose problem is not solved; events after which no
        set of active constraints is found; contacts that slip into themselves (Painlevé); steps that become too short, or 20 000 of them
        that do not get on. By default that is so but of steps that become too short where no contact slips, as a force jumps or
        grows without end, and of first-order systems whose motion is "exact", or whose outputs users' functions give, which may jump:
        the run ends with a status that says so. True: wherever it may be, but where joints alone hold a motion that fails, as at a position
        at which a mechanism loses a rank, and first-order systems all move by "dopri5". False: the run
        ends there, with a status that says why.
        The interval has 64 steps and is ``2^-10 h`` long; where another one comes soon after, that is four times as long, up to the
        next row. The status of the row at its end says so, and why, in bits (`nsds.advice`), and the run warns once. Mechanical systems
        take steps of Moreau's midpoint rule (explicit in the forces), at whose end contacts that touch close; first-order systems those
        of Euler–Moreau (explicit in f). Both are of first order. Where no choice is found at a row either, lambda there is the mean
        force of a step. Where the problem of a step in time is not solved either, the run ends.

    Notes
    -----
    The step h of `nsds.simulate` is the time between rows, no step of integration. Besides, each event has two rows at its time: the state
    before it, whose status is EVENT, and that after it, whose status tells what happened in bits: `nsds.advice` says it as text. lambda is
    the force of a contact; in the row after an impact it is the impulse of the impact. active is 1 for active constraints: a closed
    contact, its tangents where it sticks, a friction force that keeps the velocity 0.

    All contacts that touch at an impact make one problem with the laws of the record (Newton's restitution of what approaches, friction);
    then the forces make one at the level of accelerations, from which contacts stay closed, stick, slip or open. Positions and velocities
    are kept on the active constraints. A contact that slips into itself (Painlevé) has no motion, or several: an interval of time stepping
    has one, in which it is stopped by an impulse, and its row has a bit of its own. Where members of an ensemble have different numbers
    of events, the rows behind the last one of a member have the status `nsds.status.NOT_COMPUTED`.

    Compliant contacts (D, `nsds.compliant`, `nsds.lagrangian_relation`) are forces of the smooth motion, which "dopri5" follows; where they
    close and open is an event. D must be positive definite. Forces between bodies (`nsds.spring_damper`, `nsds.force_law`) act as the
    state has them; corners of a user's function are left to the control of steps. The scheme does not treat relations whose ydot depends
    on an impulse; of no system files (`nsds.stream`).
    Where contacts resist rolling (`nsds.newton_impact_rolling_friction`), what turns sticks and slips as what slides does, each by itself.

    Rigid bodies move by Dormand and Prince's pair, their quaternions made unit; joints hold for positions and velocities, to rounding, and
    may follow from each other. Contacts of shapes (`nsds.collisions`) are found as they go, of all shapes, for scenes of few bodies: each
    contact that two shapes can have is a row of the problems, and 2000 rows are the most. Rows of the record list those that touch, or are
    nearer than the margin. However fast bodies are, they do not pass each other: where they move further between two checks of their gap
    than a tenth of the thinner shape, the gap is followed by steps of what it cannot lose faster.

    Slip in space begins along the accelerations of all contacts that begin together, then follows the velocities; what sticks on a line or
    a face shares friction as evenly as can be. A slip that begins keeps its direction up to speeds that are reached in ``2^-17 h``: rows
    that are far apart cost accuracy there. It is resolved by short steps where it is slow for long; where these become too many, by an
    interval of time stepping, as in about one run in seventy of several bodies that touch each other.

    Of first-order systems linear ones with constant operators and sources move exactly, all others by "dopri5": nonlinear ones, with
    functions of time, with bounds of lambda that are, with normal cones. Constraints that are one-sided have relative degree 0 or 1. Each
    row of a relation is in a mode: lambda at a bound, or y held on 0 while lambda is between its bounds, as of a diode that conducts and
    of a relay that slides (Filippov), which ends where lambda reaches a bound. Which modes follow an event is one complementarity problem
    for all rows; where functions are nonlinear in lambda, Newton's method through such problems. lambda is that of the time of the row.
    Switches that accumulate, as those of Fuller's problem, end where the times between the same two of them fall by one ratio, and are
    below the part ``accumulation`` of the longest, or y of one of them, between its switches, is rounding, or less than ``rtol`` of the
    terms that cancel in it. Where functions of time jump, ``time_events`` says when: they are called on one side of these times alone. A
    state that violates one-sided constraints jumps, at the start or where a function of time does, by the smallest multiplier impulses that
    end it (systems that do not move exactly).

    Circuits (`nsds.circuit`) may have sources that change in time and driven switches, at whose corners the motion stops; there is a row at
    the start, too, after what switches there. Where charges or fluxes would jump, the run ends.

    Examples
    --------
    >>> import numpy as np, nsds
    >>> rows = nsds.simulate(nsds.examples.bouncing_ball(e=0.8), t_end=2.0, h=0.1, scheme=nsds.event_driven())
    >>> impacts = rows[rows["status"] & nsds.status.JUMP > 0]
    >>> bool(abs(impacts["t"][0] - np.sqrt(2 / 9.81)) < 1e-15), nsds.advice(int(impacts["status"][0]))
    (True, 'event: impact')
    """
    return record_of("event_driven", _OPTIONS, locals())
