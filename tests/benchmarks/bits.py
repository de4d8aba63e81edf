"""Bits of trajectories and solutions, to compare before and after a change: ``python -m tests.benchmarks.bits FILE [--only TEXT]``.

Short runs of every example with every scheme of its family and every solver, all scenes, and the test problems of ``solvers.generate`` and
``generate_contacts`` with every method. The first call writes hashes into FILE; later ones name what has other bits, and end with status 1
if something has. ``--write`` writes anew.
"""

import argparse
import hashlib
import json
import sys
import warnings
from functools import partial
from pathlib import Path

import nsds
from nsds import solvers
from nsds.model.records import model_of
from nsds.model.system_kinds import family
from nsds.schemes.problem.kinds import kind_of
from nsds.schemes.table import SCHEMES
from tests.scenes import SCENES

_STEPS, _SCENE_STEPS = 60, 25
_N = 12  # unknowns, or contacts, of generated problems
SLOW = {("hertz_roller", "event_driven")}  # rows at rest; events follow the fastest of what decays to it


def trajectories(steps=_STEPS, scene_steps=_SCENE_STEPS):
    """(name, function that returns an array) of short runs."""
    for name, example in nsds.examples.EXAMPLES.items():
        system = getattr(nsds.examples, name)()
        systems = family(model_of(system))
        run = {key: value for key, value in example.run.items() if key not in ("t_end", "save_every", "fields", "on_failure")}
        run["t_end"] = float(system["t"].max()) + steps * run["h"]
        for scheme, known in SCHEMES.items():
            if systems in known.modules and (name, scheme) not in SLOW:
                yield f"{name} {scheme}", _run(system, run | {"scheme": known.constructor()})
        kind = kind_of(system)
        for method in solvers.methods("lcp" if kind == "relay" else kind):
            yield f"{name} {method}", _run(system, run | {"solver": method})
    for name, scene in SCENES.items():
        h = max(scene.steps)
        yield f"scene {name}", _run(scene.build()[0], {"h": h, "t_end": scene_steps * h} | scene.settings)


def _run(system, settings):
    return lambda: nsds.simulate(system, progress=False, **settings | {"on_failure": "continue"})


def solutions(n=_N):
    """(name, function that returns a solution) of generated problems."""
    settings = {"on_failure": "continue"}
    for name in solvers.FAMILIES:
        p = solvers.generate(name, n, kind="relay")
        for method in solvers.methods("relay"):
            yield f"boxes {name} {method}", partial(solvers.solve_relay, p.M, p.q, p.lower, p.upper, method, **settings)
    for name in solvers.CONTACT_FAMILIES:
        p, plane = solvers.generate_contacts(name, n), solvers.generate_contacts(name, n, d=2)
        for method in solvers.methods("fc3d"):
            yield f"contacts {name} {method}", partial(solvers.solve_fc3d, p.W, p.q, p.mu, method, **settings)
        for method in solvers.methods("fc2d"):
            yield f"contacts in the plane {name} {method}", partial(solvers.solve_fc2d, plane.W, plane.q, plane.mu, method, **settings)


def digest(compute):
    """Hash of what a function returns, or of the kind of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = compute()
        except (ValueError, TypeError, nsds.SimulationError) as error:
            return f"{type(error).__name__}: {str(error)[:60]}"
    arrays = [result] if hasattr(result, "tobytes") else [field for field in result if hasattr(field, "tobytes")]
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16]


def main():
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    known = json.loads(arguments.file.read_text()) if arguments.file.exists() and not arguments.write else {}
    found, changed = {}, []
    for source in (trajectories, solutions):
        for name, compute in source():
            if arguments.only in name:
                found[name] = digest(compute)
                if known.get(name, found[name]) != found[name]:
                    changed.append(name)
                    print(f"{name}: {known[name]} became {found[name]}", flush=True)
    missing = [name for name in known if arguments.only in name and name not in found]
    if not known:
        arguments.file.write_text(json.dumps(found, indent=0))
    print(f"{len(found)} results, {len(changed)} with other bits, {len(missing)} missing")
    sys.exit(1 if changed or missing else 0)


if __name__ == "__main__":
    main()
