"""Presence: bodies that are alive, interactions and shapes that are enabled, by flags of the record (`nsds.rigid_bodies`).

A dead body has no dynamics and is at rest: its q and v in the record are kept. No contact of its shapes is detected, and its joints are
disabled. Flags change between steps only, and the scheme restarts then: a step reads the notes made here.
"""

import math

from nsds._jit import kernel, tiny
from nsds.collision import WORLD
from nsds.model.layout import ABSENT
from nsds.schemes.rigid.tables import FORCE


@kernel
def note_presence(s, memory):
    """Flags of the record, for the steps to come. Out: gone, off, hidden; forces and impulses of disabled parts are cleared."""
    imem, work = memory.imem, memory.work
    p = s.plan[0]
    # 1. bodies
    for i in range(s.bodies.size):
        work[s.bodies[i].gone] = 0.0 if is_on(s.bodies[i].alive, imem) else 1.0
        for k in range(6 if is_gone(s.bodies[i], work) else 0):
            work[p.f + 6 * i + k] = work[p.f_old + 6 * i + k] = work[p.size + 2 * i + k % 2] = 0.0
    # 2. interactions: both bodies have to be present
    for k in range(s.interactions.size):
        it = s.interactions[k]
        is_here = is_on(it.enabled, imem) and not is_gone(s.bodies[it.a], work)
        is_here = is_here and (it.b == ABSENT or not is_gone(s.bodies[it.b], work))
        work[it.off] = 0.0 if is_here else 1.0
        for i in range(0 if is_here else it.m):
            memory.mem[it.lam + i], work[it.joined + i], imem[it.active + i] = 0.0, 0.0, 0
            if it.law == FORCE:
                work[it.force_old + i] = work[it.force + i] = 0.0
    # 3. shapes, by their own flag and that of their body
    for k in range(s.collisions.size):
        c = s.collisions[k]
        for shape in range(c.n_shapes):
            body = imem[c.body + shape]
            is_here = c.enabled == ABSENT or imem[c.enabled + shape] != 0
            is_here = is_here and (body == WORLD or not is_gone(s.bodies[body], work))
            work[c.hidden + shape] = 0.0 if is_here else 1.0


@tiny
def is_on(flag, imem):
    """Whether a flag, if there is one, is set."""
    return flag == ABSENT or imem[flag] != 0


@tiny
def is_gone(body, work):
    """Whether a body is dead."""
    return work[body.gone] != 0.0


@tiny
def is_unmoved(body, work):
    """Whether nothing changes the velocity of a body: of infinite mass, or dead."""
    return body.fixed != 0 or is_gone(body, work)


@tiny
def hide(c, pose, work):
    """Move disabled shapes to nowhere (NaN), which detection ignores. In/out: pose (7 each)."""
    for shape in range(c.n_shapes):
        if work[c.hidden + shape] != 0.0:
            pose[7 * shape] = math.nan
