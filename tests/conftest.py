"""hypothesis profiles: no deadlines (compilation), the same examples every time in CI, three times as many where all is tried thoroughly.
Figures are closed after each test.

Python looks for garbage rarely, and never among the tests themselves: 17,000 of them are more than what a test makes.

The summary says how much of the processors' time was the compiler's, how many kernels two workers have compiled at the same time, and
how many comparisons were skipped.
"""

import gc
import os
import sys
import time

import pytest
from hypothesis import settings
from numba.core import event

from nsds._jit import cache

settings.register_profile("default", deadline=None, max_examples=33)
settings.register_profile("ci", deadline=None, max_examples=33, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=100)  # what `tests.strategies.many` counts by
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_collection_finish():
    gc.freeze()
    gc.set_threshold(20000)


class _Compiler(event.Listener):
    """The processor time (s) for which code is compiled in this process; a kernel is compiled inside its caller."""

    def __init__(self):
        self.seconds, self._depth = 0.0, 0

    def on_start(self, event):
        if self._depth == 0:
            self._began = time.process_time()
        self._depth += 1

    def on_end(self, event):
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.process_time() - self._began


_compiler = _Compiler()
event.register("numba:compile", _compiler)
_spent = []  # (compiling, in all) of each process with tests


def _own():
    return _compiler.seconds, time.process_time()


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["spent"] = _own()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    if "spent" in getattr(node, "workeroutput", {}):  # not of one that has crashed
        _spent.append(node.workeroutput["spent"])


def pytest_terminal_summary(terminalreporter):
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    left_out = sum("not part of the package" in reason or "not at hand" in reason for reason in reasons)
    if left_out:
        terminalreporter.write_line(f"comparisons: {left_out} tests or files were skipped, as their reference data are not at hand")
    compiling, spent = map(sum, zip(*(_spent or [_own()]), strict=True))
    text = f"compiler: {compiling:.0f} of {spent:.0f} s of processor time, but for processes that tests start"
    if cache.FOLDER is not None and cache.FOLDER.exists():
        codes = [path.name.rpartition("-")[0] for path in cache.FOLDER.glob("*.nbc")]
        text += f"; {len(codes) - len(set(codes))} of {len(codes)} files in the cache are of kernels that it has twice"
    terminalreporter.write_line(text)
