"""Nonsmooth RATTLE of rigid bodies: positions and velocities satisfy the equations, contacts act in both halves of the step.

    M (v - v_k) = h/2 F + H(q_k)^T r,               q_{k+1} = q_k o exp(h v),    h(q_{k+1}) = 0 of the equations
    M (v_{k+1} - v) = h/2 F + H(q_{k+1})^T s,       H v_{k+1} + rate = 0 of these

with ``F = F(t_k + h/2, q_k o exp(h v / 2), v)``, and the laws of contacts, friction and bounds for ``H(q_k) v`` in the first half and for
``H(q_{k+1}) v_{k+1}`` in the second, of what is closed at q_k, or at q_{k+1}; velocities before an impact are v_k and v. Without contacts
the step is the same backwards: of order 2, and what a conservative machine has of energy does not drift. Forces are those of the implicit
midpoint rule, so that no spring or damper is too stiff; as under that rule, what is much faster than a step rings and is not damped.

Where no v is found that keeps joints at their positions and follows the laws of contacts, as of a mechanism that is struck while it turns
by a radian in a step, or where joints would drive what they hold, they hold for velocities in the first half, and a linear motion beside
it closes them; such a step is INEXACT, and of order 1.

Where joints form a tree, both halves are solved in the velocities that these leave free (`schemes.rigid.trees`). Else, and where that
finds nothing, both halves are steps of Moreau–Jean of half the length: an implicit one whose equations hold for positions
(`problem.Options.span`), and a semi-explicit one that moves nothing and has the same forces.
References: Breuling, Capobianco, Eugster, Leine, Nonlinear Analysis: Hybrid Systems 52 (2024) 101469, whose forces are those of q_k and
q_{k+1}; Jay, SIAM J. Numer. Anal. 45 (2007) 1814–1842: forces by Gauss's, constraints by Lobatto's quadrature.
"""

import math
import sys
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds._jit import by_reference, kernel, stack, tiny, view
from nsds.maths.vectors import dot, norm, times
from nsds.model.joints import ALIGN, POINT
from nsds.model.kinds import NEWTON_EULER
from nsds.model.layout import ABSENT, table
from nsds.schemes.problem.box import worse
from nsds.schemes.rigid import blocks, passing, problem, trees
from nsds.schemes.rigid import collisions as contacts
from nsds.schemes.rigid import moreau_jean as plain
from nsds.schemes.rigid.bodies import EXPONENTIAL, move
from nsds.schemes.rigid.moreau_jean import blame, cause_of, grow  # noqa: F401
from nsds.schemes.rigid.tables import EQUALITY, FORCE, INERTIA, MASS, P, tables
from nsds.schemes.run.memory import Allocator, Prepared
from nsds.schemes.table import scheme_for
from nsds.status import CAPACITY, CONVERGED, INEXACT, NON_FINITE

OPTIONS = np.dtype([("scheme", "S32"), ("newton_tol", "<f8"), ("newton_max_iter", "<i8")])
# Impulses of the first half: on bodies in axes of the body (6 each), of interactions, and of contacts as they lie in the record.
# way: velocities by which the bodies move.
PLAN = table("impulse", "lam", "load", "way")
_TURN = 0.5  # radians, by which a linear motion that closes joints may turn bodies
_FAR = 1 / 4  # radians, by which bodies turn in a step of which impulses of the last one are a guess that counts
_OPEN = 1e-8  # of the coordinates, by which joints may be open at rest
_STIFF = 1 / 16  # (h omega / 2)^2 of a link that its joints pull is 3 to 4 times that, see `_are_loads_stiff`


@by_reference
class Tables(NamedTuple):
    """What a step reads of a model."""

    motion: plain.Tables
    plan: np.ndarray
    tree: trees.Tables


@by_reference
class Options(NamedTuple):
    """Words of a step."""

    h: float
    first: problem.Options
    loaded: problem.Options  # of a first half whose joints have H of its middle
    second: problem.Options
    yielding: problem.Options  # of a first half whose joints hold for velocities,
    closing: problem.Options  # and of the motion that closes them


@scheme_for(NEWTON_EULER)
def rattle(newton_tol=1e-12, newton_max_iter=50):
    """Options of nonsmooth RATTLE: joints exact for positions and velocities, second order, energy without drift.

    What rigid bodies with joints have by default.

    Parameters
    ----------
    newton_tol, newton_max_iter
        See `nsds.moreau_jean`.

    Returns
    -------
    numpy.ndarray, shape ()
        Record for `nsds.simulate`.

    Raises
    ------
    ValueError, TypeError
        An option out of its range.

    Notes
    -----
    A step in which joints and contacts leave no velocity, or joints would drive what they hold, is INEXACT: joints hold for velocities in
    it, and a motion beside it closes them. Of mechanisms that jam, or are struck while they turn by a radian in a step.

    Examples
    --------
    >>> import nsds
    >>> int(nsds.rattle()["newton_max_iter"])
    50
    """
    record = np.zeros((), OPTIONS)
    record["scheme"] = b"rattle"
    record["newton_tol"] = _checks.number("rattle", "newton_tol", newton_tol, above=0.0)
    record["newton_max_iter"] = _checks.integer("rattle", "newton_max_iter", newton_max_iter, low=1)
    return record


def prepare(records, mem, options, h, method):
    """Tables and work memory of all members."""
    work, iwork = Allocator(records.size), Allocator(records.size)
    lists = tables(records, work, iwork)
    tol, max_iter = float(options["newton_tol"].item()), float(options["newton_max_iter"].item())
    first = problem.Options(
        0.5 * h, theta=1.0, a=1.0, gamma=0.0, q_star=0.0, tol=tol, max_iter=max_iter, is_explicit=0.0, update=float(EXPONENTIAL), span=h
    )
    motion, places = plain.tables_of(lists, first, method, work, iwork, records.size), np.zeros(1, PLAN)
    n_lam = int(lists.interactions["m"].sum()) + int((lists.collisions["each"] * lists.collisions["capacity"]).sum())
    work.place(places, impulse=6 * lists.bodies.size, lam=n_lam, load=6 * lists.bodies.size, way=6 * lists.bodies.size)
    work.place(motion.plan, v_mid=6 * lists.bodies.size, w_impact=6 * lists.bodies.size)  # v_mid stays 0: the second half moves nothing
    work.place(motion.plan, E=int(motion.plan["G"][0] - motion.plan["H"][0]))
    second, closing = first._replace(is_explicit=1.0, a=0.0, span=0.0), first._replace(is_explicit=1.0, max_iter=1.0)
    words = Options(h, first, first._replace(q_star=1.0), second, first._replace(span=0.0), closing)
    tree = trees.plant(lists, mem, method, work, iwork)
    return Prepared(Tables(motion, places, tree), lists.functions, words, work.array(), iwork.array(np.int64), sys.modules[__name__], lists)


@kernel
def start(t, s, functions, options, mem, imem, work, iwork):
    """Before the first step: rotations, contacts and outputs of the state."""
    return plain.start(t, s.motion, functions, options.first, mem, imem, work, iwork)


@kernel
def step(t_new, s, functions, solver, solver_options, options, mem, imem, work, iwork):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, Newton's iterations, residual)."""
    form, p, t, second = s.motion, s.motion.plan[0], t_new - options.h, options.second
    is_stiff = _are_loads_stiff(options.h, form, mem, imem)
    first = options.loaded if is_stiff else options.first
    plain.begin(t, first, form, functions, mem, work)
    for i in range(6 * p.n_bodies):
        work[p.w_impact + i] = work[p.w + i]
    _scale_impulses(0.5, form, mem, imem)
    n_contacts, n_blocks = problem.choose_active(first, form, mem, imem, work, iwork)
    if n_contacts == 0 and problem.are_equations(form.interactions, p, iwork):
        _anticipate(t, first, form, functions, mem, work, iwork)
    status, n_iter, residual = _solve_half(
        t, is_stiff, n_contacts, n_blocks, s, functions, solver, solver_options, first, mem, imem, work, iwork
    )
    way = p.v
    is_found = status == CONVERGED or (status == INEXACT and not is_stiff)
    if not is_found or _do_joints_drive(options.h, n_contacts, n_blocks, s, mem, work, iwork):
        way = s.plan[0].way
        is_stiff, n_tried = False, n_iter
        n_contacts, n_blocks, status, n_iter, residual = _yield(t, s, functions, solver, solver_options, options, mem, imem, work, iwork)
        n_iter += n_tried
    if not _move(options.h, first, way, form, mem, imem, work, iwork):
        _scale_impulses(2.0, form, mem, imem)
        return CAPACITY, n_iter, residual
    done = _meet(t_new, is_stiff, n_contacts, n_blocks, s, functions, options, mem, imem, work, iwork)
    _turn_over(s, second, work)
    if p.unilateral != 0:
        plain.invert_masses(t_new, second, form, functions, mem, work)
        _approach(second, form, p, mem, work)
    n_contacts, n_blocks = problem.choose_active(second, form, mem, imem, work, iwork)
    hit, n_second, error = _solve_half(
        t_new, False, n_contacts, n_blocks, s, functions, solver, solver_options, second, mem, imem, work, iwork
    )
    ended = _commit(n_contacts, n_blocks, s, options, mem, imem, work, iwork)
    return worse(worse(ended, done), worse(hit, status)), n_iter + n_second, max(residual, error)


@kernel
def _solve_half(t, is_stiff, n_contacts, n_blocks, s, functions, solver, solver_options, options, mem, imem, work, iwork):
    """In the velocities that joints leave free, where they form a tree and loads are not stiff; else as `plain.iterate`."""
    form, n_tried, n_laws = s.motion, 0, -1
    if not is_stiff:
        n_laws = trees.laws_of(False, n_contacts, n_blocks, form, s.tree, mem, imem, work, iwork)
    if n_laws >= 0:
        if options.span > 0.0:
            status, n_tried, residual = trees.move(
                t, n_contacts, n_laws, form, s.tree, functions, solver, solver_options, options, mem, imem, work, iwork
            )
        else:
            status, n_tried, residual = trees.hold(
                t, n_contacts, n_laws, form, s.tree, functions, solver, solver_options, options, mem, imem, work, iwork
            )
        if status == CONVERGED:
            return status, n_tried, residual
        _begin_again(form, work)
        problem.choose_active(options, form, mem, imem, work, iwork)
    if options.is_explicit != 0.0 and form.plan[0].unilateral == 0:
        plain.invert_masses(t, options, form, functions, mem, work)
    status, n_iter, residual = plain.iterate(
        t, n_contacts, n_blocks, form, functions, solver, solver_options, options, mem, imem, work, iwork
    )
    return status, n_tried + n_iter, residual


@tiny
def _begin_again(s, work):
    """Velocities of the start of a half. Out: v, w."""
    p = s.plan[0]
    v, R = view(work, p.v, 6 * p.n_bodies), view(work, p.R, 9 * p.n_bodies)
    for i in range(6 * p.n_bodies):
        v[i] = work[p.v_old + i]
    plain.to_inertial(p.n_bodies, R, v, view(work, p.w, 6 * p.n_bodies))


@kernel
def _anticipate(t, options, s, functions, mem, work, iwork):
    """Where Newton's iteration begins: after forces at t_k, and half of what joints have done in the last step. Out: v, w.

    Velocities are those at t_k where some body turns too far in a step for this to spare an iteration, or would do so, as after an impact.
    """
    p, m, farthest = s.plan[0], s.plan[0].n_bodies, 0.0
    for i in range(m):
        farthest = max(farthest, options.span * norm(view(work, p.v_old + 6 * i + 3, 3)))
    if not farthest <= _FAR:
        return
    R, change, way = view(work, p.R, 9 * m), view(work, p.R_free, 6 * m), view(work, p.w_free, 6 * m)
    for i in range(6 * m):
        change[i] = options.h * work[p.f_old + i] + 0.5 * mem[s.bodies[i // 6].q + P + i % 6]
    plain.to_inertial(m, R, change, change)
    for k in range(s.interactions.size if p.forces != 0 else 0):
        it = s.interactions[k]
        for i in range(it.m if it.law == FORCE and iwork[p.begin + k] >= 0 else 0):
            more = mem[it.lam + i] - options.h * work[it.force_old + i]
            for l in range(6):
                change[6 * it.a + l] += more * work[it.H + 12 * i + l]
                if it.b != ABSENT:
                    change[6 * it.b + l] += more * work[it.H + 12 * i + 6 + l]
    plain.invert_masses(t, options, s, functions, mem, work)
    blocks.multiply_inverse(m, p.stride, view(work, p.inverse, p.stride * m), change, way)
    for i in range(m):
        farthest = max(farthest, options.span * norm(view(way, 6 * i + 3, 3)))
    plain.to_body(m, R, way, change)
    for i in range(6 * m if farthest <= _FAR else 0):
        work[p.w + i] += way[i]
        work[p.v + i] += change[i]


@kernel
def _yield(t, s, functions, solver, solver_options, options, mem, imem, work, iwork):
    """A first half whose joints hold for velocities. Returns (contacts, blocks, status, iterations, residual). Out: way, closing joints."""
    form, p, places = s.motion, s.motion.plan[0], s.plan[0]
    _hold_velocities(t, s, functions, solver, solver_options, options, mem, imem, work, iwork)
    for i in range(6 * p.n_bodies):
        work[places.way + i] = work[p.v_old + i] = work[p.v + i]
        work[p.f_old + i] = 0.0
    plain.invert_masses(t, options.closing, form, functions, mem, work)
    n = problem.list_blocks(problem.EQUATIONS, form.interactions, p, work, iwork)
    plain.iterate(t, 0, n, form, functions, solver, solver_options, options.closing, mem, imem, work, iwork)
    fastest, zero = 0.0, 0.0
    for i in range(6 * p.n_bodies):
        work[p.v + i] -= work[p.v_old + i]
        zero += 0.0 * work[p.v + i]
    for i in range(p.n_bodies):
        fastest = max(fastest, norm(view(work, p.v + 6 * i + 3, 3)))
    share = _TURN / max(_TURN, options.h * fastest)
    for i in range(6 * p.n_bodies if zero == 0.0 else 0):
        work[places.way + i] += share * work[p.v + i]
    return _hold_velocities(t, s, functions, solver, solver_options, options, mem, imem, work, iwork)  # whose work is lost


@kernel
def _hold_velocities(t, s, functions, solver, solver_options, options, mem, imem, work, iwork):
    """From the state in mem, whose R, w and H are found again. Returns as `_yield`, INEXACT at best.

    Where nothing is found with forces of the middle, a tree of joints takes those at q_k, and one problem.
    """
    form = s.motion
    n_contacts, n_blocks, status, n_iter, residual = _hold_with_forces(
        t, form, functions, solver, solver_options, options.yielding, mem, imem, work, iwork
    )
    if status != CONVERGED and status != INEXACT and s.tree.links.size > 0:
        n_contacts, n_blocks = _begin_anew(t, form, functions, options.second, mem, imem, work, iwork)
        n_laws, left = trees.laws_of(True, n_contacts, n_blocks, form, s.tree, mem, imem, work, iwork), math.inf
        if n_laws >= 0:
            _, _, left = trees.hold(
                t, n_contacts, n_laws, form, s.tree, functions, solver, solver_options, options.second, mem, imem, work, iwork
            )
        if left <= solver_options.inexact:
            status, residual = CONVERGED, left
            for i in range(6 * form.plan[0].n_bodies):
                work[form.plan[0].f + i] = work[form.plan[0].f_old + i]
        else:
            n_contacts, n_blocks, status, n_iter, residual = _hold_with_forces(
                t, form, functions, solver, solver_options, options.yielding, mem, imem, work, iwork
            )
    return n_contacts, n_blocks, INEXACT if status == CONVERGED else status, n_iter, residual


@kernel
def _hold_with_forces(t, s, functions, solver, solver_options, options, mem, imem, work, iwork):
    """As `_hold_velocities`, with forces of the middle."""
    n_contacts, n_blocks = _begin_anew(t, s, functions, options, mem, imem, work, iwork)
    status, n_iter, residual = plain.iterate(t, n_contacts, n_blocks, s, functions, solver, solver_options, options, mem, imem, work, iwork)
    return n_contacts, n_blocks, status, n_iter, residual


@kernel
def _begin_anew(t, s, functions, options, mem, imem, work, iwork):
    """(contacts, blocks) of the state in mem. Out: R, w and H, and what `plain.begin` says."""
    p, m = s.plan[0], s.plan[0].n_bodies
    plain.begin(t, options, s, functions, mem, work)
    q, v, R = view(work, p.q_old, 7 * m), view(work, p.v_old, 6 * m), view(work, p.R, 9 * m)
    plain.outputs(t, s.interactions, p, q, v, R, functions, mem, imem, work)
    return problem.choose_active(options, s, mem, imem, work, iwork)


@kernel
def _do_joints_drive(h, n_contacts, n_blocks, s, mem, work, iwork):
    """Whether most of the kinetic energy after the first half, and more than there was, is work of joints: ``r^T H (w + w_k) / 2``.

    They hold at the ends of the step, and H at its start turns with it: a share of some ``(h omega)^2 / 2`` is as it should be. Joints
    alone do not drive.
    """
    form, p, done = s.motion, s.motion.plan[0], 0.0
    if n_contacts == 0 and problem.are_equations(form.interactions, p, iwork):
        return False
    stated = problem.stated_blocks(n_contacts, n_blocks, p, work, iwork)
    for k in range(form.interactions.size):
        it, first = form.interactions[k], p.d * iwork[p.begin + k]
        for i in range(first, first + it.m if it.row != ABSENT and it.law == EQUALITY and first >= 0 else first):
            for l in range(12):
                body = it.a if l < 6 else it.b
                if body != ABSENT:
                    at = 6 * body + l % 6
                    done += 0.5 * stated.r[i] * stated.H[12 * i + l] * (work[p.w + at] + work[p.w_impact + at])
    before, after = 0.0, 0.0
    for i in range(form.bodies.size if done > 0.0 else 0):
        if not form.bodies[i].fixed:
            before += _kinetic_energy(form.bodies[i], p.v_old + 6 * i, mem, work) + _least_energy(h, form.bodies[i], p, i, mem, work)
            after += _kinetic_energy(form.bodies[i], p.v + 6 * i, mem, work)
    return done > max(before, 0.5 * after)


@kernel
def _kinetic_energy(body, at, mem, work):
    """``(m |v|^2 + Omega . I Omega) / 2`` of the velocity that lies there."""
    v, Omega, momentum = view(work, at, 3), view(work, at + 3, 3), stack(3)
    times(view(mem, body.q + INERTIA, 9), Omega, momentum)
    return 0.5 * (mem[body.q + MASS] * dot(v, v) + dot(Omega, momentum))


@kernel
def _least_energy(h, body, p, i, mem, work):
    """What forces give in a step to a body at rest, and what closes a joint that is open by little."""
    m, I = mem[body.q + MASS], view(mem, body.q + INERTIA, 9)
    inertia = (I[0] + I[4] + I[8]) / 3.0
    speed = h * norm(view(work, p.f + 6 * i, 3)) / m + _OPEN * norm(view(work, p.q_old + 7 * i, 3)) / h
    turning = h * norm(view(work, p.f + 6 * i + 3, 3)) / inertia + _OPEN / h
    return 0.5 * (m * speed * speed + inertia * turning * turning)


@kernel
def _are_loads_stiff(h, s, mem, imem):
    """Whether the last impulses of joints make some body's rotation so stiff that H of the ends of the step is not enough.

    A load F on an arm a that turns has the stiffness F a, against the inertia ``I + m a^2`` about the joint.
    """
    for k in range(s.interactions.size):
        it = s.interactions[k]
        for i in range(it.m if it.row != ABSENT and it.law == EQUALITY else 0):
            kind, load = imem[it.row + i], abs(mem[it.lam + i])
            for side in range(2):
                body, arm = it.a, norm(view(mem, (it.row_a if kind == POINT else it.row_u) + 3 * i, 3))
                if side == 1:
                    body, arm = it.b, norm(view(mem, it.row_b + 3 * i, 3))
                if (kind != POINT and (kind != ALIGN or side == 1)) or body == ABSENT or s.bodies[body].fixed:
                    continue
                q = s.bodies[body].q
                I, lever = view(mem, q + INERTIA, 9), mem[q + MASS] * arm * arm if kind == POINT else 0.0
                if 0.25 * h * load * arm > _STIFF * ((I[0] + I[4] + I[8]) / 3.0 + lever):
                    return True
    return False


@kernel
def _scale_impulses(factor, s, mem, imem):
    """lambda of the record, from which each half guesses its own."""
    for k in range(s.interactions.size):
        for i in range(s.interactions[k].m):
            mem[s.interactions[k].lam + i] *= factor
    for k in range(s.collisions.size):
        c = s.collisions[k]
        for i in range(c.each * imem[c.n]):
            mem[c.lam + i] *= factor


@kernel
def _move(h, options, way, s, mem, imem, work, iwork):
    """The bodies move by h times the velocities at ``way``; contacts there, False where the record has no room for them. Out: q."""
    p = s.plan[0]
    q, v = view(work, p.q, 7 * p.n_bodies), view(work, p.v, 6 * p.n_bodies)
    for i in range(p.n_bodies):
        v_i = view(work, way + 6 * i, 6)
        move(EXPONENTIAL, view(work, p.q_old + 7 * i, 7), h, 1.0, v_i, v_i, view(q, 7 * i, 7))
    passing.keep_from_passing(h, 1.0, s, mem, imem, work, iwork)
    return plain.find_contacts(options, p.parallel != 0, s.collisions, q, v, mem, imem, work, iwork)


@kernel
def _meet(t_new, is_stiff, n_contacts, n_blocks, s, functions, options, mem, imem, work, iwork):
    """The state between the halves in mem, with its contacts. Returns CONVERGED or NON_FINITE. Out: what the first half did, R, w."""
    form, p, places = s.motion, s.motion.plan[0], s.plan[0]
    m = p.n_bodies
    q, v, R = view(work, p.q, 7 * m), view(work, p.v, 6 * m), view(work, p.R, 9 * m)
    _hold_loads(is_stiff, n_contacts, n_blocks, form, places, work, iwork)
    plain.to_body(m, R, view(work, p.p, 6 * m), view(work, places.impulse, 6 * m))
    problem.keep_impulses(n_contacts, n_blocks, options.first, form, mem, imem, work, iwork)
    for k in range(form.collisions.size):
        c = form.collisions[k]
        contacts.inherit(c, iwork[c.found], mem, imem, work, iwork)
        contacts.pass_on(c, iwork[c.found], mem, imem, work, iwork)
        contacts.take_over(c, iwork[c.found], mem, imem, work, iwork)
    _each_lambda(2.0 if is_stiff else 1.0, s, mem, imem, work)
    return plain.put_state(t_new, form, q, v, R, functions, mem, imem, work)


@kernel
def _hold_loads(is_stiff, n_contacts, n_blocks, s, places, work, iwork):
    """What joints have done with H of the middle, which the second half does, too, in axes of the bodies: 0 unless loads are stiff."""
    p, stated = s.plan[0], problem.stated_blocks(n_contacts, n_blocks, s.plan[0], work, iwork)
    load, R = view(work, places.load, 6 * p.n_bodies), view(work, p.R, 9 * p.n_bodies)
    for i in range(6 * p.n_bodies):
        load[i] = 0.0
    for k in range(s.interactions.size if is_stiff else 0):
        it, first = s.interactions[k], p.d * iwork[p.begin + k]
        for side in range(2):
            body = it.a if side == 0 else it.b
            for l in range(6 if it.law == EQUALITY and first >= 0 and body != ABSENT else 0):
                for i in range(first, first + it.m):
                    load[6 * body + l] += stated.H[12 * i + 6 * side + l] * stated.r[i]
    plain.to_body(p.n_bodies, R, load, load)


@kernel
def _turn_over(s, options, work):
    """The second half begins where the first one ended, with its forces and loads. Out: q_old, v_old, f_old and force_old."""
    form, p, load = s.motion, s.motion.plan[0], s.plan[0].load
    m = p.n_bodies
    for i in range(7 * m):
        work[p.q_old + i] = work[p.q + i]
    for i in range(6 * m):
        work[p.v_old + i], work[p.f_old + i] = work[p.v + i], work[p.f + i] + work[load + i] / options.h
    for k in range(form.interactions.size):
        it = form.interactions[k]
        for i in range(it.m if it.law == FORCE else 0):
            work[it.force_old + i] = work[it.force + i]


@kernel
def _approach(options, s, p, mem, work):
    """Velocities before an impact, of contacts that have carried nothing: those to which forces alone lead. Out: w_impact, ydot."""
    m = p.n_bodies
    R, w, F, w_impact = view(work, p.R, 9 * m), view(work, p.w, 6 * m), view(work, p.R_free, 6 * m), view(work, p.w_impact, 6 * m)
    inverse = view(work, p.inverse, p.stride * m)
    for i in range(6 * m):
        F[i] = options.h * work[p.f_old + i]
    plain.to_inertial(m, R, F, F)
    blocks.multiply_inverse(m, p.stride, inverse, F, w_impact)
    for i in range(6 * m):
        F[i] = 0.0 if s.bodies[i // 6].fixed else w_impact[i]
        w_impact[i] = w[i] + F[i]
    for k in range(s.interactions.size):
        it = s.interactions[k]
        for i in range(it.m if it.always == 0 else 0):
            gain = 0.0
            if mem[it.lam + i // it.each * it.each] != 0.0:  # the contact, of which this is a row, carries
                continue
            for l in range(6):
                gain += work[it.H + 12 * i + l] * F[6 * it.a + l]
                gain += work[it.H + 12 * i + 6 + l] * F[6 * it.b + l] if it.b != ABSENT else 0.0
            mem[it.ydot + i] += gain


@kernel
def _commit(n_contacts, n_blocks, s, options, mem, imem, work, iwork):
    """The velocities after the second half, and the impulses of both, in mem. Returns CONVERGED or NON_FINITE.

    H of everything is that of `_meet`: the second half moves nothing.
    """
    form, p, places = s.motion, s.motion.plan[0], s.plan[0]
    m = p.n_bodies
    q, v, R = view(work, p.q, 7 * m), view(work, p.v, 6 * m), view(work, p.R, 9 * m)
    plain.to_body(m, R, view(work, p.p, 6 * m), view(work, p.R_free, 6 * m))
    for i in range(m):
        for k in range(6):
            at = 6 * i + k
            mem[form.bodies[i].q + P + k] = work[p.R_free + at] + work[places.impulse + at] + work[places.load + at]
    problem.keep_impulses(n_contacts, n_blocks, options.second, form, mem, imem, work, iwork)
    _each_lambda(0.0, s, mem, imem, work)
    is_finite = plain.keep_state(form, q, v, mem, imem, work)
    is_finite = plain.outputs_of_velocities(form.interactions, p, v, R, mem, work) and is_finite
    return CONVERGED if is_finite else NON_FINITE


@kernel
def _each_lambda(factor, s, mem, imem, work):
    """lambda of the record is kept, factor times of equations; or, where that is 0, what was kept is added to it."""
    at = s.plan[0].lam
    for k in range(s.motion.interactions.size):
        it = s.motion.interactions[k]
        _keep_or_add(factor if it.law == EQUALITY or factor == 0.0 else 1.0, view(mem, it.lam, it.m), view(work, at, it.m))
        at += it.m
    for k in range(s.motion.collisions.size):
        c = s.motion.collisions[k]
        _keep_or_add(min(factor, 1.0), view(mem, c.lam, c.each * imem[c.n]), view(work, at, c.each * imem[c.n]))
        at += c.each * c.capacity


@tiny
def _keep_or_add(factor, lam, kept):
    for i in range(lam.size):
        if factor == 0.0:
            lam[i] += kept[i]
        else:
            kept[i] = factor * lam[i]
