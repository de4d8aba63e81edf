"""Members of an ensemble on the cores of this machine."""

import math
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import pairwise

import numpy as np

from nsds.schemes.run.tiles import whole_tiles

THREADS_FROM = 5e-3  # seconds of work: waking a thread takes milliseconds if other processes use the cores
_ONE_CORE = ContextVar("one core", default=False)


def cores():
    """Cores that this process, or the task that runs, may use."""
    if _ONE_CORE.get():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def on_one_core():
    """Context in which members are not distributed over the cores."""
    token = _ONE_CORE.set(True)
    try:
        yield
    finally:
        _ONE_CORE.reset(token)


@contextmanager
def shares(n_members):
    """A function that calls another with ranges of members, on each core one where the work takes so long that this pays.

    Its argument is the time in seconds on one core, if known.
    """
    workers = min(n_members, cores())
    if workers == 1:
        yield lambda chunk, seconds=math.inf: chunk(0, n_members)
        return
    bounds = whole_tiles(np.linspace(0, n_members, workers + 1))
    with ThreadPoolExecutor(workers - 1) as pool:

        def in_shares(chunk, seconds=math.inf):
            if seconds < THREADS_FROM:
                chunk(0, n_members)
            else:
                chunk(0, 0)  # what two threads call first, both at once, has numba look at all arguments in Python for ever
                together(pool, [partial(chunk, *ends) for ends in pairwise(bounds)])

        yield in_shares


def together(pool, calls):
    """Results of calls, the first of which is made here: of as many threads as there are cores two would start on one of them."""
    first, *others = calls
    others = [pool.submit(call) for call in others]
    return [first(), *(other.result() for other in others)]
