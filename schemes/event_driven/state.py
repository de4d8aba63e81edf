"""State of all bodies: (q, v) consecutive in the work memory, and as fields of the record."""

from nsds._jit import kernel
from nsds.schemes.lagrangian.outputs import add_change, keep_state
from nsds.schemes.mechanics.bodies import copy_state, displace


@kernel
def load(s, memory, x):
    """The state from mem, (q, v) into work[x:]."""
    if s.rigid.bodies.size > 0:
        copy_state(s, True, memory, x)
        return
    keep_state(s.newton.parts, s.newton.elements, x, x + s.flow[0].n // 2, memory)


@kernel
def store(s, memory, x):
    """The state into mem, from (q, v) in work[x:]."""
    if s.rigid.bodies.size > 0:
        copy_state(s, False, memory, x)
        return
    form, n = s.newton, s.flow[0].n // 2
    for k in range(form.elements.size):
        el = form.elements[k]
        part = form.parts[el.part]
        q = part.q + el.e * part.stride
        for i in range(part.n):
            memory.mem[q + i], memory.mem[q + part.n + i] = memory.work[x + el.dof + i], memory.work[x + n + el.dof + i]


@kernel
def add(s, memory, shift, at_velocity):
    """Add a displacement, or a change of velocity, by degree of freedom in work[shift:] to the state in mem."""
    if s.rigid.bodies.size > 0 and not at_velocity:
        displace(s, memory, shift)
    else:
        add_change(at_velocity, s.newton.parts, s.newton.elements, shift, memory)
