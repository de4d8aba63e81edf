"""The whole package as plain Python (``NUMBA_DISABLE_JIT=1``): the same bits as compiled, and checked indices."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

import nsds
from nsds._jit import plain as _plain
from nsds.model.system_kinds import FIRST_ORDER, LAGRANGIAN, NEWTON_EULER
from nsds.schemes.table import SCHEMES
from tests.paths import ROOT

# Of all families, with users' functions, detected contacts, friction, joints, relays.
STEPS = {
    "bouncing_ball": 1e-3, "column_of_beads": 1e-3, "double_pendulum": 1e-3, "impacting_stick": 1e-3, "diode_bridge": 1e-6,
    "filippov_spiral": 1e-3, "gene_network": 1e-3, "sliding_ball": 1e-3, "box_stack": 1e-3, "slider_crank": 1e-3, "euler_disk": 1e-3,
}  # fmt: skip
# Every scheme with an example of each family that it is for, and the step.
WITH_SCHEMES = {
    ("moreau_jean", LAGRANGIAN): ("bouncing_ball", 0.1),
    ("moreau_jean", NEWTON_EULER): ("box_stack", 1e-2),
    ("moreau_jean_direct_projection", LAGRANGIAN): ("slider_crank", 1e-4),
    ("moreau_jean_direct_projection", NEWTON_EULER): ("slider_crank_3d", 1e-4),
    ("moreau_jean_combined_projection", LAGRANGIAN): ("slider_crank", 1e-4),
    ("moreau_jean_combined_projection", NEWTON_EULER): ("slider_crank_3d", 1e-4),
    ("moreau_jean_exact", LAGRANGIAN): ("guitar_string", 1e-4),
    ("d1_minus_linear", LAGRANGIAN): ("impacting_stick", 1e-2),
    ("d1_minus_linear", NEWTON_EULER): ("sliding_ball", 1e-2),
    ("generalised_alpha", LAGRANGIAN): ("impacting_stick", 1e-2),
    ("generalised_alpha", NEWTON_EULER): ("box_stack", 1e-2),
    ("rattle", NEWTON_EULER): ("box_stack", 1e-2),
    ("schatzman_paoli", LAGRANGIAN): ("impacting_stick", 1e-2),
    ("event_driven", LAGRANGIAN): ("bouncing_ball", 0.1),
    ("event_driven", NEWTON_EULER): ("sliding_ball", 1e-2),
    ("event_driven", FIRST_ORDER): ("relay_oscillator", 0.5),
    ("euler_moreau", FIRST_ORDER): ("filippov_spiral", 1e-2),
    ("zero_order_hold", FIRST_ORDER): ("diode_bridge", 1e-6),
    ("higher_order_sweeping", FIRST_ORDER): ("third_order_stop", 0.1),
}
RUNS = """
from tests.jit.test_plain import digests
print(digests())
"""


def digests():
    """Hashes of short runs and of what solvers give."""
    result = {}
    for name, h in STEPS.items():
        system = getattr(nsds.examples, name)()
        traj = nsds.simulate(system, t_end=float(system["t"]) + 6 * h, h=h)
        result[name] = hashlib.sha256(traj.tobytes()).hexdigest()
    for (scheme, _), (name, h) in WITH_SCHEMES.items():
        system = getattr(nsds.examples, name)()
        traj = nsds.simulate(system, t_end=float(system["t"]) + 10 * h, h=h, scheme=getattr(nsds, scheme)())
        result[scheme, name] = hashlib.sha256(traj.tobytes()).hexdigest()
    rng = np.random.default_rng(7)
    A = rng.normal(size=(6, 6))
    for method in ("auto", "lemke", "newton_min", "pgs"):
        solution = nsds.solvers.solve_lcp(A @ A.T + np.eye(6), rng.normal(size=6), method, on_failure="continue")
        result[method] = hashlib.sha256(solution.z.tobytes() + solution.w.tobytes()).hexdigest()
    contact = nsds.solvers.solve_fc3d(A @ A.T + np.eye(6), rng.normal(size=6), mu=[0.3, 0.7])
    result["contact"] = hashlib.sha256(contact.r.tobytes()).hexdigest()
    return result


def test_every_scheme_is_compared():
    assert {(name, family) for name, scheme in SCHEMES.items() for family in scheme.modules} == set(WITH_SCHEMES)


def test_plain_python_gives_the_bits_of_compiled_code():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    plain = subprocess.run([sys.executable, "-c", RUNS], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert plain.returncode == 0, plain.stderr
    assert plain.stdout.strip() == repr(digests())


def test_plain_views_lie_inside_their_array():
    words = np.arange(4.0)
    assert _plain.view(words, 1, 3).tolist() == [1.0, 2.0, 3.0]
    assert _plain.view(words, -1, 0).size == 0
    for start, size in ((-1, 2), (2, 3), (4, 1)):
        with pytest.raises(IndexError, match="of 4"):
            _plain.view(words, start, size)
