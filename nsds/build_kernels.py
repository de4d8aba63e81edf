"""``python -m nsds.build_kernels``: compile kernels for the baseline processor into the archive that wheels take along.

A kernel is compiled once for all models, so that a list of what is compiled is one of what can be called: what kernels ask for by address,
all methods, and the time loops of all schemes and analyses with the kernels that prepare them. These are made by runs of a few steps: of
models of each kind with each scheme, of all examples, and of the examples in docstrings. The archive has what these processes have used,
which begin from an empty cache: code that is found compiled does not say what was copied into it.
"""

import argparse
import contextlib
import doctest
import functools
import importlib
import multiprocessing
import os
import pkgutil
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np
from numba.core.dispatcher import Dispatcher

import nsds
from nsds._jit import cache, calls, shipped
from nsds.model.kinds import family
from nsds.model.records import model_of
from nsds.schemes.run import tiles
from nsds.schemes.table import SCHEMES, is_event_driven
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
        yield f"{kernel.__module__}.{kernel.__name__}", functools.partial(calls.address, signature, kernel)
    for kind in ("box", "contact"):
        for name, method in table.CLASSES[kind].methods.items():
            if isinstance(method.kernel, Dispatcher):  # the others run in Python
                yield f"method {name} of {kind}", functools.partial(table.address, method)
    for kernel in dict.fromkeys(one for module in modules for one in vars(module).values() if hasattr(one, "sizes")):
        yield f"{kernel.__name__} from Python", functools.partial(kernel, *map(np.ones, kernel.sizes.values()))
    for name in _OF_EACH_KIND:
        for scheme in SCHEMES:
            yield f"{scheme} of {name}", functools.partial(_steps, nsds.examples.EXAMPLES[name], scheme)
    for name, example in nsds.examples.EXAMPLES.items():
        yield f"example {name}", functools.partial(_steps, example)
    for module in modules:
        yield f"docstrings of {module.__name__}", functools.partial(doctest.testmod, module, report=False)


def _steps(example, scheme=None):
    """A few steps of an example, of eight members too, and of its tangent map."""
    system, run = example.build(), dict(example.run)
    run |= {"t_end": float(np.max(system["t"])) + _STEPS * run["h"], "progress": False, "on_failure": "continue"}
    if scheme is not None:
        if family(model_of(system)) not in SCHEMES[scheme].modules:
            return
        run["scheme"] = getattr(nsds, scheme)()
        run.pop("solver", None)
    nsds.simulate(system, **run)
    if np.ndim(system) == 0:
        nsds.simulate(np.repeat(system, tiles.WIDTH), **run)
    h = None if is_event_driven(run.get("scheme")) else run["h"]
    nsds.lyapunov(system, period=_STEPS * run["h"], n_periods=2, transient=0, blocks=2, scheme=run.get("scheme"), h=h)


def _compile(number):
    """Do the job of this number; returns its name, the paths of all files that this process has used so far, and what was refused."""
    name, compute = _known_jobs()[number]
    refused = ""
    with warnings.catch_warnings(), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        warnings.simplefilter("ignore")
        try:
            compute()
        except (ValueError, TypeError, nsds.SimulationError) as error:  # a scheme that is not for this example
            refused = f"{type(error).__name__}: {error}"
    return name, {cache.FOLDER / one for one in cache.used()}, refused


@functools.cache
def _known_jobs():
    tiles.WORTH = tiles.WORTH_COMPILING = 0
    return list(jobs())


def lacking(files):
    """Names of kernels of the package that have no code among these files (paths), and whose callers do not contain them."""
    have = {path.name.partition("-")[0].removesuffix("_at") for path in files}
    kernels = {one for module in _modules() for one in vars(module).values() if isinstance(one, Dispatcher)}
    own = [one for one in kernels if one.py_func.__module__.startswith("nsds.") and not _is_copied(one)]
    return sorted({f"{one.py_func.__module__}.{one.py_func.__qualname__}" for one in own} - have)


def _is_copied(kernel):
    return kernel.targetoptions.get("inline") == "always" or kernel.targetoptions.get("forceinline", False)


def main(argv=None):
    """Exit status."""
    parser = argparse.ArgumentParser(prog="python -m nsds.build_kernels", description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="that compile at the same time [%(default)s]")
    parser.add_argument("--verbose", action="store_true", help="say what took how long, and which scheme is not for which example")
    arguments = parser.parse_args(argv)
    if shipped.BASELINE is None:
        print("nsds: there is no baseline for this processor", file=sys.stderr)
        return 1
    os.environ |= {
        "NUMBA_CPU_NAME": shipped.BASELINE, "NUMBA_CPU_FEATURES": shipped.FEATURES, "NUMBA_DISABLE_INTEL_SVML": "1", "MPLBACKEND": "Agg",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        lacks = _build(arguments.processes, arguments.verbose)
    for name in lacks:
        print(f"not among them: {name}")
    return 0


def _build(processes, verbose):
    """Compile all in processes that keep their code in a folder which is empty now; returns what is lacking."""
    began, files = time.perf_counter(), set()
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        numbers = range(len(list(jobs())))
        running = [pool.submit(_compile, number) for number in numbers]
        for done in as_completed(running):
            if done.exception() is not None:
                pool.shutdown(wait=False, cancel_futures=True)
            name, used, refused = done.result()
            if verbose:
                print(f"{time.perf_counter() - began:6.0f} s  {name}: {len(used - files)} files {refused[:150]}", flush=True)
            files |= used
    size = shipped.write(cache.CONFIGURATION.digest(), {path.name: path.read_bytes() for path in files})
    print(f"{shipped.path()}: {len(files)} kernels, {size / 1e6:.1f} MB, in {time.perf_counter() - began:.0f} s")
    return lacking(files)


if __name__ == "__main__":
    sys.exit(main())
