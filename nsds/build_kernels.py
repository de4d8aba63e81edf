"""``python -m nsds.build_kernels``: compile every kernel for the baseline processor into the archive that wheels take along.

A kernel is compiled once for all models, so that a list of what is compiled is one of what can be called: what kernels ask for by address,
all methods, and the time loops of all schemes and analyses with the kernels that prepare them. These are made by runs of a few steps: of
models of each kind with each scheme, of all examples, and of the examples in docstrings. The archive has what these processes have used.
"""

import argparse
import doctest
import importlib
import multiprocessing
import os
import pkgutil
import sys
import time
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial

import numpy as np
from numba.core.dispatcher import Dispatcher

import nsds
from nsds._jit import cache, calls, shipped
from nsds.model.kinds import family
from nsds.model.records import model_of
from nsds.schemes.run import tiles
from nsds.schemes.table import SCHEMES
from nsds.solvers import table

_STEPS = 3
# Kinds of systems whose steps or tangent maps are different code: linear and not, with friction in the plane and in space, with detected
# contacts, joints and rolling friction; first-order ones linear, nonlinear and of higher relative degree.
_OF_EACH_KIND = (
    "bouncing_ball", "double_pendulum", "impacting_stick", "sliding_ball", "box_stack", "slider_crank_3d", "euler_disk",
    "diode_bridge", "relay_oscillator", "friction_oscillator", "gene_network", "third_order_stop",
)  # fmt: skip


def _modules():
    """All modules of the package, imported."""
    names = [one.name for one in pkgutil.walk_packages(nsds.__path__, "nsds.")]
    return [importlib.import_module(name) for name in names if not name.endswith(("__main__", "build_kernels"))]


def jobs():
    """(name, function) of all that is compiled, in an order in which what many call comes first."""
    modules = _modules()
    for signature, kernel in calls.ON_DEMAND:
        yield f"{kernel.__module__}.{kernel.__name__}", partial(calls.address, signature, kernel)
    for kind, one in table.CLASSES.items():
        for name, method in one.methods.items():
            if isinstance(method.kernel, Dispatcher):
                yield f"method {name} of {kind}", partial(table.address, method)
    for scheme in SCHEMES:
        for name in _OF_EACH_KIND:
            yield f"{scheme} of {name}", partial(_steps, nsds.examples.EXAMPLES[name], scheme)
    for name, example in nsds.examples.EXAMPLES.items():
        yield f"example {name}", partial(_steps, example)
    for module in modules:
        yield f"docstrings of {module.__name__}", partial(doctest.testmod, module, report=False)


def _steps(example, scheme=None):
    """A few steps of an example, of eight members too, and of its tangent map."""
    system, run = example.build(), dict(example.run)
    run |= {"t_end": float(np.max(system["t"])) + _STEPS * run["h"], "progress": False, "on_failure": "continue"}
    if scheme is not None:
        if family(model_of(system)) not in SCHEMES[scheme][0]:
            return
        run["scheme"] = getattr(nsds, scheme)()
    nsds.simulate(system, **run)
    if np.ndim(system) == 0:
        nsds.simulate(np.repeat(system, tiles.WIDTH), **run)
    nsds.lyapunov(system, period=_STEPS * run["h"], n_periods=1, transient=0, blocks=1, scheme=run.get("scheme"), h=run["h"])


def _compile(number):
    """Do the job of this number; returns what it has used that can't be kept, the names of what can, and the error that it raised."""
    name, compute = _known_jobs()[number]
    error = ""
    with warnings.catch_warnings(), open(os.devnull, "w") as nowhere:
        warnings.simplefilter("ignore")
        stdout, sys.stdout = sys.stdout, nowhere
        try:
            compute()
        except (ValueError, TypeError, nsds.SimulationError) as one:  # a scheme that is not for this example
            error = "".join(traceback.format_exception_only(one)).strip()
        finally:
            sys.stdout = stdout
    files = cache.used()
    return name, files, error


def _known_jobs(known=[]):  # noqa: B006
    if not known:
        tiles.WORTH = tiles.WORTH_COMPILING = 0
        known += jobs()
    return known


def main(argv=None):
    """Exit status."""
    parser = argparse.ArgumentParser(prog="python -m nsds.build_kernels", description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="that compile at the same time [%(default)s]")
    parser.add_argument("--verbose", action="store_true", help="say what took how long, and what examples refuse")
    arguments = parser.parse_args(argv)
    if shipped.BASELINE is None:
        print("nsds: there is no baseline for this processor", file=sys.stderr)
        return 1
    os.environ |= {
        "NUMBA_CPU_NAME": shipped.BASELINE, "NUMBA_CPU_FEATURES": shipped.FEATURES, "NUMBA_DISABLE_INTEL_SVML": "1", "MPLBACKEND": "Agg",
    }  # fmt: skip
    began, files = time.perf_counter(), set()
    with ProcessPoolExecutor(arguments.processes, multiprocessing.get_context("spawn")) as pool:
        numbers = range(len(list(jobs())))
        running = [pool.submit(_compile, number) for number in numbers]
        for done in as_completed(running):
            if done.exception() is not None:
                pool.shutdown(wait=False, cancel_futures=True)
            name, used, error = done.result()
            new = used - files
            files |= used
            if arguments.verbose:
                print(f"{time.perf_counter() - began:6.0f} s  {name}: {len(new)} files {error[:150]}", flush=True)
    size = shipped.write(cache.CONFIGURATION.digest(), {name: (cache.FOLDER / name).read_bytes() for name in files})
    print(f"{shipped.path()}: {len(files)} kernels, {size / 1e6:.1f} MB, in {time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
