"""States and sources of all bodies of first-order systems in one vector, as dense operators need them."""

from nsds._jit import kernel, view
from nsds.schemes.first_order.functions import source


@kernel
def gather(parts, x, behind, memory):
    """States of all bodies from mem, side by side into work[x:]; ``behind``: 0, or 1 for the inputs r, which lie behind the states."""
    for a in range(parts.size):
        part = parts[a]
        for e in range(part.count):
            for i in range(part.n):
                memory.work[x + part.dof + e * part.n + i] = memory.mem[part.q + e * part.stride + behind * part.n + i]


@kernel
def scatter(parts, x, behind, memory):
    """States side by side in work[x:] into mem; behind: see `gather`."""
    for a in range(parts.size):
        part = parts[a]
        for e in range(part.count):
            for i in range(part.n):
                memory.mem[part.q + e * part.stride + behind * part.n + i] = memory.work[x + part.dof + e * part.n + i]


@kernel
def gather_sources(t, parts, out, functions, memory):
    """``s = b + T u`` of all bodies at t, side by side into work[out:]."""
    for a in range(parts.size):
        part = parts[a]
        for e in range(part.count):
            x = view(memory.mem, part.q + e * part.stride, part.n)
            source(t, part, e, x, functions, memory, out + part.dof + e * part.n)
