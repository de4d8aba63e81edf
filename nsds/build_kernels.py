"""``python -m nsds.build_kernels``: compile kernels for the baseline processor into the archive that wheels take along.

A kernel is compiled once for all models, so that a list of what is compiled is one of what can be called: what kernels ask for by address,
all methods, and the time loops of all schemes and analyses with the kernels that prepare them. These are made by runs of a few steps: of
models of each kind with each scheme, of all examples, and of the examples in docstrings. The archive has all that they have compiled, in
processes that begin from an empty cache of their own.
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
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from unittest import mock

import numpy as np
from numba.core.dispatcher import Dispatcher
from scipy.sparse import diags_array, eye_array

import nsds
from nsds import schemes, solvers
from nsds._jit import cache, calls, shipped
from nsds.model.records import model_of
from nsds.model.system_kinds import family
from nsds.schemes.lagrangian import mixed
from nsds.schemes.run import tiles
from nsds.schemes.run.simulation import name_of
from nsds.schemes.table import SCHEMES, is_event_driven
from nsds.solvers import table
from nsds.solvers.box import forms
from nsds.solvers.box import signature as of_rows
from nsds.solvers.contact import signature as of_contacts
from nsds.status import CONVERGED

_STEPS = 3
# Options of schemes that are other code than the defaults.
_OTHERWISE = (
    ("moreau_jean", {"form": "global"}), ("moreau_jean", {"form": "explicit"}), ("moreau_jean", {"pre_impact": "q_star"}),
    ("d1_minus_linear", {"level": "velocity"}), ("event_driven", {"flow": "dopri5"}), ("event_driven", {"flow": "radau"}),
    ("euler_moreau", {"midpoint": True}),
)  # fmt: skip
# Kinds of systems whose steps or tangent maps are different code: linear and not, with friction in the plane and in space, with detected
# contacts, joints and rolling friction; first-order ones linear, nonlinear and of higher relative degree.
_OF_EACH_KIND = (
    "bouncing_ball", "double_pendulum", "impacting_stick", "sliding_ball", "box_stack", "slider_crank_3d", "euler_disk",
    "diode_bridge", "relay_oscillator", "friction_oscillator", "gene_network", "third_order_stop",
)  # fmt: skip


def modules():
    """All modules of the package, imported; in a checkout solvers and schemes lie beside it."""
    found = {}
    for package in (nsds, solvers, schemes):
        found |= {one.name: None for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")}
    return [importlib.import_module(name) for name in found if not name.endswith(("__main__", "build_kernels"))]


def jobs():
    """(name, function) of all that is compiled, in an order in which what many call comes first."""
    found = modules()
    for signature, kernel in calls.ON_DEMAND:
        yield f"{kernel.__module__}.{kernel.__name__}", functools.partial(calls.address, signature, kernel)
    for kind in ("box", "contact"):
        for name, method in table.CLASSES[kind].methods.items():
            if isinstance(method.kernel, Dispatcher):  # the others run in Python
                yield f"method {name} of {kind}", functools.partial(_prepare, method, (2,) if kind == "box" else (2, 3, 5))
    for kernel in dict.fromkeys(one for module in found for one in vars(module).values() if _is_public(one)):
        yield f"{kernel.__name__} from Python", functools.partial(kernel, *map(np.ones, kernel.sizes.values()))
    for name in _OF_EACH_KIND:
        for scheme in SCHEMES:
            yield f"{scheme} of {name}", functools.partial(_steps, nsds.examples.EXAMPLES[name], scheme)
        for scheme, options in _OTHERWISE:
            yield f"{scheme} of {name} with {options}", functools.partial(_steps, nsds.examples.EXAMPLES[name], scheme, **options)
    for name, example in nsds.examples.EXAMPLES.items():
        yield f"example {name}", functools.partial(_steps, example)
        yield f"consistent {name}", lambda example=example: nsds.consistent(example.build())
    for module in found:
        if ">>>" in Path(module.__file__).read_text(encoding="utf-8"):
            yield f"docstrings of {module.__name__}", functools.partial(doctest.testmod, module, report=False)
    for compute in OTHERS:
        yield compute.__name__, compute


def _is_public(value):
    """Whether Python may call a kernel, of which the lengths of arrays are then known."""
    return isinstance(value, Dispatcher) and hasattr(value, "sizes")


def _prepare(method, sizes):
    """Code of a method, and what says how much memory it needs: of full matrices, and of diagonal ones."""
    table.address(method)
    for size in sizes:
        table.scratch(method, size, 2 * np.arange(3), np.array([0, 1, 0, 1]))
        table.scratch(method, size, np.arange(3), np.arange(2))


def _halve(z, out):
    for i in range(z.size):
        out[i] = 2.0 * z[i] - 1.0


def _solve_by_functions():
    """Problems of functions, dense, by all methods."""
    for method in nsds.solvers.methods("ncp"):
        nsds.solvers.solve_ncp(_halve, np.zeros(2), method=method, on_failure="continue")


def _solve_with_bodies():
    """Problems of contacts between bodies by methods that do not form W."""
    for method in ("nsgs_bodies", "newton_global"):
        for solve, d, mu in (("solve_gfc2d", 2, [0.5]), ("solve_gfc3d", 3, [0.5]), ("solve_grfc3d", 5, [0.5, 0.2])):
            getattr(nsds.solvers, solve)(np.eye(d), np.eye(d), -np.arange(1.0, d + 1.0), np.zeros(d), *mu, method, on_failure="continue")


def _solve_extremes():
    """Rows with bounds in units that no method gets along with."""
    for size in (1e-200, 1e200):
        nsds.solvers.solve_lcp(size * np.eye(2), -size * np.ones(2), on_failure="continue")
    nsds.solvers.solve_fc3d(1e-200 * np.eye(3), [-1e-200, 0.0, 0.0], 0.5, on_failure="continue")
    row, column, data, _ = forms.compressed_rows(np.eye(2))
    forms.missing(1e-10, of_rows.Problem(row, column, data, -np.ones(2), *forms.bounds("", 2, 0.0, np.inf)), np.ones(2))


def _own_cone(rho, mu, mu_r, r, u, out):
    for i in range(r.size):
        out[i] = max(r[i] - rho * u[i], 0.0)


def _use_own_law():
    """Steps with a law of contacts that a user states."""
    settings = {"scheme": nsds.moreau_jean(), "solver": nsds.solvers.own_law(_own_cone), "on_failure": "continue"}
    for name in ("sliding_ball", "box_stack"):
        nsds.simulate(nsds.examples.EXAMPLES[name].build(), t_end=0.01, h=1e-3, **settings)


def _own_method(row, column, M, q, lower, upper, options, z, w, info, work, iwork):
    return of_rows.conclude(CONVERGED, 1, row, column, M, q, lower, upper, options, z, w, info)


def _own_method_of_contacts(disk, mu, row, column, W, q, options, r, u, info, work, iwork):
    return of_contacts.conclude(CONVERGED, 1, disk, mu, row, column, W, q, options, r, u, info)


def _use_own_methods():
    """Problems by methods that a user states."""
    nsds.solvers.solve_lcp(np.eye(2), np.ones(2), nsds.solvers.solver(_own_method))
    nsds.solvers.solve_fc3d(np.eye(3), [1.0, 0.0, 0.0], 0.5, nsds.solvers.solver(_own_method_of_contacts))


def _keep_problems():
    """One-step problems that are kept."""
    for name, method in (("box_stack", "auto"), ("box_stack", "bodies"), ("sliding_ball", "auto"), ("relay_oscillator", "auto")):
        example, solver = nsds.examples.EXAMPLES[name], nsds.solvers.solver(method)
        list(nsds.one_step_problems(example.build(), t_end=_STEPS * example.run["h"], h=example.run["h"], solver=solver))
    # more contacts than a matrix is made for
    q, ball = np.zeros((600, 7)), nsds.shapes.sphere(1.0)
    q[:, 0], q[:, 2:4] = 3.0 * np.arange(600), 1.0
    balls = nsds.rigid_bodies(1.0, nsds.shapes.inertia(ball, 1.0), q=q, v=np.zeros((600, 6)))
    law = nsds.newton_impact_friction(e_n=0.0, mu=0.5)
    floor = nsds.collisions({"balls": ball}, law, world=nsds.shapes.plane())
    at_rest = nsds.system(gravity=[0.0, 0.0, -9.81], balls=balls, contacts=floor)
    list(nsds.one_step_problems(at_rest, t_end=1e-3, h=1e-3, solver=nsds.solvers.solver("bodies")))


def _switch():
    """A circuit with a switch that a source drives."""
    circuit = nsds.circuit("""a switch
        V1 in 0 12
        S1 in out gate 0 SW
        Vg gate 0 PULSE(0 1 0 0 0 50u 100u)
        L1 out load 1m
        R1 load 0 10
        D1 0 out DI
        .model DI D
        .model SW SW(Vt=0.5)""")
    for scheme in (nsds.euler_moreau(), nsds.event_driven()):
        nsds.simulate(circuit, t_end=2e-4, h=1e-5, scheme=scheme)


def _stretch_a_chain():
    """Linear systems with more rows than a matrix of all is made for, without and with friction, and their tangent maps."""
    n = mixed.FEW + 20
    for d, law in ((1, nsds.newton_impact(e=0.5)), (2, nsds.newton_impact_friction(e_n=0.5, mu=0.5, dimension=2))):
        K = diags_array([np.full(n, 2.0), np.full(n - d, -1.0), np.full(n - d, -1.0)], offsets=[0, d, -d])
        chain = nsds.lagrangian_linear(M=eye_array(n), K=K, q=np.zeros(n), v=-np.ones(n))
        floor = nsds.interaction(nsds.lagrangian_linear_relation(H=eye_array(n)), law, on="chain")
        system = nsds.system(chain=chain, floor=floor)
        with mock.patch.object(mixed, "MANY_PAIRS", 0):
            nsds.simulate(system, t_end=_STEPS * 1e-3, h=1e-3, progress=False)
            nsds.lyapunov(system, period=_STEPS * 1e-3, n_periods=2, transient=0, n_exponents=1, blocks=2, h=1e-3)


def _drive(t, z, out):
    out[0] = z[0] * t


def _differentiate_by_a_drive():
    """The gradient by parameters of a force that is a user's function."""
    mass = nsds.lagrangian_linear(M=[1.0], fext=_drive, z=[1.0], q=[0.1], v=[0.0])
    stop = nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(e=0.5), on="mass")
    system = nsds.system(mass=mass, stop=stop)
    nsds.gradient(system, t_end=_STEPS * 1e-3, objective=np.sum, parameters=["mass.z[0]"], rows=1, h=1e-3)


# What no model, method or docstring asks for.
OTHERS = (
    _solve_by_functions, _solve_with_bodies, _solve_extremes, _use_own_law, _use_own_methods, _keep_problems, _switch, _stretch_a_chain,
    _differentiate_by_a_drive,
)  # fmt: skip


def _steps(example, scheme=None, **options):
    """A few steps of an example, of eight members too, and of its tangent map."""
    system, run = example.build(), dict(example.run)
    run |= {"t_end": float(np.max(system["t"])) + _STEPS * run["h"], "progress": False, "on_failure": "continue"}
    if scheme is not None:
        if family(model_of(system)) not in SCHEMES[scheme].modules:
            return
        run["scheme"] = getattr(nsds, scheme)(**options)
        run.pop("solver", None)
    nsds.simulate(system, **run)
    if np.ndim(system) == 0:
        nsds.simulate(np.repeat(system, tiles.WIDTH), **run)
    h = None if is_event_driven(run.get("scheme")) else run["h"]
    nsds.lyapunov(system, period=_STEPS * run["h"], n_periods=2, transient=0, blocks=2, scheme=run.get("scheme"), h=h)


def _compile(number):
    """Do the job of this number; returns its name, its processor time (s), what was refused, and what is wrong with the job."""
    name, compute = _known_jobs()[number]
    began, refused, wrong = time.process_time(), "", ""
    with warnings.catch_warnings(), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        warnings.simplefilter("ignore")
        try:
            compute()
        except (ValueError, TypeError, nsds.SimulationError) as error:  # a scheme that is not for this example
            refused = f"{type(error).__name__}: {error}"
        except Exception:  # all others are done nevertheless
            wrong = traceback.format_exc(limit=-3)
    return name, time.process_time() - began, refused, wrong


@functools.cache
def _known_jobs():
    tiles.WORTH = tiles.WORTH_COMPILING = 0
    return list(jobs())


def lacking(files):
    """Names of kernels and time loops that have no code among these files, and whose callers do not contain them."""
    have = {name.partition("-")[0] for name in files}
    own = {f"{one.py_func.__module__}.{one.py_func.__qualname__}" for one in kernels() if not _is_copied(one)}
    steppers = [one for one in modules() if one.__name__.startswith("nsds.schemes.") and {"start", "step"} <= vars(one).keys()]
    own |= {f"nsds.schemes.run.simulation._march_template_{name_of(one)}" for one in steppers}
    return sorted(own - have - {name.removesuffix("_at") for name in have})


def kernels():
    """All kernels of the package, but for those that are made from templates when they are asked for."""
    found = {one for module in modules() for one in vars(module).values() if isinstance(one, Dispatcher)}
    return [one for one in found if one.py_func.__module__.startswith("nsds.")]


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
        return int(_build(Path(folder), arguments.processes, arguments.verbose))


def _build(folder, processes, verbose):
    """Compile all in processes that keep their code in a folder, which is empty now, and write the archive; whether it lacks something."""
    began, failed = time.perf_counter(), []
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        numbers = range(len(list(jobs())))
        running = [pool.submit(_compile, number) for number in numbers]
        for done in as_completed(running):
            name, spent, refused, wrong = done.result()
            if wrong:
                failed.append(name)
                print(f"{name}:\n{wrong}", file=sys.stderr, flush=True)
            if verbose:
                print(f"{time.perf_counter() - began:6.0f} s  {name}: {spent:.1f} s of processor time {refused[:150]}", flush=True)
    files = {path.name: path.read_bytes() for path in folder.rglob("*.nbc")}
    size = shipped.write(cache.CONFIGURATION.digest(), files)
    print(f"{shipped.path()}: {len(files)} kernels, {size / 1e6:.1f} MB, in {time.perf_counter() - began:.0f} s")
    not_there = lacking(files)
    print("".join([f"failed: {name}\n" for name in failed] + [f"not among them: {name}\n" for name in not_there]), end="")
    return bool(failed or not_there)


if __name__ == "__main__":
    sys.exit(main())
