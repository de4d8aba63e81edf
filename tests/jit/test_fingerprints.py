"""A kernel has one fingerprint, in every process and whatever that has done before: with another one it is never found compiled."""

import json
import os
import subprocess
import sys

FINGERPRINTS = """
import json, nsds
from nsds import build_kernels
from nsds._jit import cache
print(json.dumps(sorted((kernel.py_func.__qualname__, cache.fingerprint(kernel, {})) for kernel in build_kernels.kernels())))
"""
RUN = "import nsds; nsds.simulate(nsds.examples.cam_follower(), t_end=0.01, h=1e-3)"


def fingerprints(before, seed):
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    result = subprocess.run([sys.executable, "-c", before + FINGERPRINTS], env=environment, capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


def test_fingerprints_are_those_of_any_process():
    first, second = fingerprints("", "1"), fingerprints(RUN, "2")
    assert len(first) > 1000
    assert [one for one, other in zip(first, second, strict=True) if one != other] == []
