"""States and sources of all bodies of first-order systems in one vector, as dense operators need them."""

from nsds._jit import kernel, view
from nsds.schemes.first_order.functions import source


@kernel
def gather(parts, x, memory):
    """The states of all bodies from mem, side by side into work[x:]."""
    for a in range(parts.size):
        part = parts[a]
        for e in range(part.count):
            for i in range(part.n):
                memory.work[x + part.dof + e * part.n + i] = memory.mem[part.q + e * part.stride + i]


@kernel
def scatter(parts, x, behind, memory):
    """States side by side in work[x:] into mem; ``behind``: 0, or 1 for the inputs r, which lie behind the states."""
    for a in range(parts.size):
        part = parts[a]
        for e in range(part.count):
            for i in range(part.n):
                memory.mem[part.q + e * part.stride + behind * part.n + i] = memory.work[x + part.dof + e * part.n + i]


@kernel
def gather_elements(parts, elements, x, behind, memory):
    """As `gather` in the order of the elements, of which those that are joined are neighbours; ``behind``: see `scatter`."""
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        for i in range(part.n):
            memory.work[x + el.dof + i] = memory.mem[part.q + el.e * part.stride + behind * part.n + i]


@kernel
def scatter_elements(parts, elements, x, memory):
    """States in the order of the elements in work[x:] into mem."""
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        for i in range(part.n):
            memory.mem[part.q + el.e * part.stride + i] = memory.work[x + el.dof + i]


@kernel
def gather_sources(t, parts, out, functions, memory):
    """``s = b + T u`` of all bodies at t, side by side into work[out:]."""
    for a in range(parts.size):
        part = parts[a]
        for e in range(part.count):
            x = view(memory.mem, part.q + e * part.stride, part.n)
            source(t, part, e, x, functions, memory, out + part.dof + e * part.n)
