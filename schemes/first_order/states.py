"""States and sources of all elements of first-order systems in one vector."""

import numpy as np

from nsds._jit import kernel, view
from nsds.model.layout import table
from nsds.schemes.first_order.functions import source

# One row per element of a part: its states are from dof on, those of its group of elements that are solved for together have a number.
ELEMENT = table("part", "e", "dof", "body")


def elements_of(parts):
    """Elements of all parts in their order, as dense operators have their states; groups are not numbered."""
    elements = np.zeros(parts["count"].sum(), ELEMENT)
    elements["part"] = np.repeat(np.arange(parts.size), parts["count"])
    elements["e"] = np.arange(elements.size) - parts["body"][elements["part"]]
    elements["dof"] = parts["dof"][elements["part"]] + parts["n"][elements["part"]] * elements["e"]
    return elements


@kernel
def gather(parts, elements, x, behind, memory):
    """The states of all elements from mem, side by side into work[x:]; ``behind``: 1 for the inputs r, which lie behind them, else 0."""
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        for i in range(part.n):
            memory.work[x + el.dof + i] = memory.mem[part.q + el.e * part.stride + behind * part.n + i]


@kernel
def scatter(parts, elements, x, behind, memory):
    """States side by side in work[x:] into mem; ``behind``: see `gather`."""
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        for i in range(part.n):
            memory.mem[part.q + el.e * part.stride + behind * part.n + i] = memory.work[x + el.dof + i]


@kernel
def gather_sources(t, parts, elements, out, functions, memory):
    """``s = b + T u`` of all elements at t, side by side into work[out:]."""
    for k in range(elements.size):
        el = elements[k]
        part = parts[el.part]
        x = view(memory.mem, part.q + el.e * part.stride, part.n)
        source(t, part, el.e, x, functions, memory, out + el.dof)
