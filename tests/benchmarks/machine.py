"""What this machine can do: its name, bytes a second of its memory by the size of what is moved, floating-point operations a second."""

import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numba
import numpy as np

_SECONDS = 0.003  # of one measurement: shorter than what others interrupt
_BEST_OF, _FEW = 25, 5
_TERMS = 8  # of a polynomial: enough arithmetic for what is loaded


@numba.njit(nogil=True)
def _write(n_passes, words):
    for k in range(n_passes):
        for i in range(words.size):
            words[i] = k


@numba.njit(nogil=True)
def _read(n_passes, words):
    total = 0
    for k in range(n_passes):
        for i in range(words.size):
            total += words[i] ^ k
    words[0] = total


@numba.njit(nogil=True)
def _multiply_and_add(n_passes, x):
    for _ in range(n_passes):
        for i in range(x.size):
            y = x[i]
            for _ in range(_TERMS):
                y = 0.5 * y + 1.0
            x[i] = y


def name():
    """The number of cores, and the processor as it calls itself."""
    cores, cpuinfo = len(os.sched_getaffinity(0)), Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{cores} core{'s' if cores > 1 else ''}, {models[0] if models else platform.processor() or platform.machine()}"


def load():
    """Processes that want to run, averaged over the last minute."""
    return os.getloadavg()[0]


@cache
def bandwidth(kind, n_bytes, cores):
    """Bytes a second of all cores together, each of which goes through so many bytes of its own: kind "read" or "write"."""
    kernel = {"read": _read, "write": _write}[kind]
    return cores * n_bytes // 8 * 8 / _seconds_a_pass(kernel, [np.zeros(max(n_bytes // 8, 1), np.int64) for _ in range(cores)])


@cache
def flops(cores):
    """Multiplications and additions a second of all cores together, from vector registers and without fused operations."""
    n = 512
    return cores * n * 2 * _TERMS / _seconds_a_pass(_multiply_and_add, [np.ones(n) for _ in range(cores)])


def _seconds_a_pass(kernel, arrays):
    """Of a kernel on one thread for each array; the least of some."""
    with ThreadPoolExecutor(len(arrays)) as pool:

        def seconds(n_passes):
            began = time.perf_counter()
            list(pool.map(kernel, [n_passes] * len(arrays), arrays))
            return time.perf_counter() - began

        n_passes = 1
        seconds(1)
        while (last := seconds(n_passes)) < _SECONDS:
            n_passes = max(2 * n_passes, int(n_passes * _SECONDS / max(last, 1e-7)))
        return min(last, *(seconds(n_passes) for _ in range(_BEST_OF - 1))) / n_passes


def fresh_bandwidth(n_bytes, cores):
    """As `bandwidth` of what is written, into memory that was just allocated: the system clears each page before."""

    def seconds():
        words = np.empty(n_bytes // 8, np.int64)
        began = time.perf_counter()
        list(pool.map(_write, [1] * cores, np.array_split(words, cores)))
        return time.perf_counter() - began

    with ThreadPoolExecutor(cores) as pool:
        return n_bytes / min(seconds() for _ in range(_FEW))
