"""``python -m tests.checked [NAME ...]``: the scene table, short runs, with bounds checked at every index and view of memory.

As compiled code that was compiled for this (NUMBA_BOUNDSCHECK=1, a cache of its own: minutes the first time); the same as plain Python,
which needs no compiling, is ``NUMBA_DISABLE_JIT=1 python -m tests.scenes --short NAME``. Code that is called by its address cannot raise:
numba prints what it would have raised as an exception that is ignored, and that counts as a failure here.
"""

import os
import subprocess
import sys

OUTSIDE = ("IndexError", "Exception ignored")


def main(names):
    """Exit status: 1 where memory was read or written outside of its array."""
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1"}
    command = [sys.executable, "-m", "tests.scenes", "--short", "--steps", "0", *names]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    print(run.stdout)
    print(run.stderr, file=sys.stderr)
    found = [word for word in OUTSIDE if word in run.stdout + run.stderr]
    print(f"outside of memory: {', '.join(found) or 'nothing'}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
