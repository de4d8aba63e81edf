"""The value in which kernels get a member's memory, for tests of one kernel."""

import numpy as np

from nsds.schemes.memory import Memory


def memory_with(work, iwork=None, mem=None):
    """A `Memory` of these arrays, and of none."""
    mem = np.zeros(0) if mem is None else mem
    return Memory(mem, mem.view(np.int64), work, np.zeros(0, np.int64) if iwork is None else iwork)
