"""Command line: ``python -m nsds`` lists the examples, ``run NAME`` runs one, ``warm-up [NAME ...]`` compiles what they need."""

import argparse
import inspect
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from tqdm import tqdm

import nsds
from nsds import _checks
from nsds.examples import EXAMPLES
from nsds.pictures.axes import require_matplotlib
from nsds.schemes.run.cores import cores
from nsds.schemes.table import arguments_of


def main(argv=None):
    """Run the command line; returns the exit code: 0, 1 for a failed simulation, 2 for wrong arguments."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        print(_listing())
        return 0
    if arguments.command == "warm-up":
        return _warm_up(arguments)
    try:
        return _run(arguments)
    except (ValueError, TypeError, ImportError) as error:
        print(f"nsds: {error}", file=sys.stderr)
        return 2


def _listing():
    width = max(map(len, EXAMPLES))
    lines = [f"  {name:<{width}}  {inspect.getdoc(example.build).splitlines()[0]}" for name, example in EXAMPLES.items()]
    return "\n".join(
        [f"nsds {nsds.__version__}: nonsmooth dynamical systems. Examples:", *lines, "", "Run one:",
         "  python -m nsds run cam_follower --rpm 358 --plot cam.png --save cam.npz",
         "  python -m nsds run cam_follower --help", "", "Compile ahead what they need, on all cores:",
         "  python -m nsds warm-up box_stack diode_bridge"]
    )  # fmt: skip


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, and which name was probably meant."""

    def error(self, message):
        if wrong := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message, re.DOTALL):
            likely = _checks.meant(wrong[1], re.findall(r"[\w-]+", wrong[2]))
            message = f"invalid choice: {wrong[1]!r}{likely}; python -m nsds lists the examples"
        self.exit(2, f"{self.prog}: error: {message}\n")

    def parse_known_args(self, args=None, namespace=None):
        found, unknown = super().parse_known_args(args, namespace)
        for word in (word for word in unknown if word.startswith("-")):
            likely = _checks.meant(word.partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {word}{likely}; {self.prog} --help lists them")
        return found, unknown


def _parser():
    parser = _Parser(prog="python -m nsds", description="Nonsmooth dynamical systems.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command")
    # 1. compile ahead
    ahead = commands.add_parser("warm-up", help="compile ahead what examples need, all or some", allow_abbrev=False)
    ahead.add_argument("examples", nargs="*", metavar="EXAMPLE", help="those whose schemes, laws and shapes are wanted [all]")
    ahead.add_argument("--processes", type=int, default=cores(), help="that compile at the same time [%(default)s]")
    # 2. one command for each example: parameters of its constructor, then options of the run and of its scheme
    run = commands.add_parser("run", help="run a built-in example", allow_abbrev=False)
    names = run.add_subparsers(dest="example", required=True, metavar="EXAMPLE")
    for name, example in EXAMPLES.items():
        summary = inspect.getdoc(example.build).splitlines()[0]
        options = names.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        model = options.add_argument_group("model")
        for parameter in inspect.signature(example.build).parameters.values():
            meaning = _said(example.build, parameter.name)
            model.add_argument(_flag(parameter.name), type=type(parameter.default), default=parameter.default, help=meaning)
        how = options.add_argument_group("run")
        for key, kind, default in (("h", float, None), ("t_end", float, None), ("save_every", int, 1), ("solver", str, "auto")):
            value = example.run.get(key, default)
            shown = value["method"].item().decode() if isinstance(value, np.ndarray) else value
            how.add_argument(_flag(key), type=kind, default=value, help=f"{_RUN_OPTIONS[key]} [{shown}]")
        scheme, defaults = _scheme(example)
        for key, default in defaults.items():
            kind = _truth if isinstance(default, bool) else type(default)
            how.add_argument(_flag(key), type=kind, default=default, help=f"nsds.{scheme.__name__}: {_said(scheme, key)}")
        how.add_argument("--plot", metavar="FILE", help="picture of the run (needs matplotlib)")
        how.add_argument("--save", metavar="FILE", help="file for trajectory and system, ending in .npz")
        how.add_argument("--no-progress", action="store_true", help="no progress bar")
    return parser


_RUN_OPTIONS = {
    "h": "step size (s)",
    "t_end": "time at the end (s)",
    "save_every": "save every that many steps",
    "solver": "method for the one-step problems, see nsds.solvers.methods()",
}


def _said(function, name):
    """Description of a parameter in the docstring of a function, for argparse."""
    lines = inspect.getdoc(function).partition("Parameters\n----------\n")[2].partition("\n\n")[0].splitlines()
    heads = [i for i, line in enumerate(lines) if not line.startswith(" ")] + [len(lines)]
    for i, end in pairwise(heads):
        if name in lines[i].partition(" : ")[0].split(", "):
            text = " ".join(line.strip() for line in lines[i + 1 : end])
            return f"{text} [%(default)s]".replace("%", "%%").replace("%%(default)s", "%(default)s")
    raise ValueError(f"{function.__name__}: the docstring does not say what {name} is")


def _scheme(example):
    """Constructor of the example's scheme, and the values of its options."""
    record = example.run.get("scheme", nsds.moreau_jean())
    return getattr(nsds, record["scheme"].item().decode()), arguments_of(record)


def _truth(text):
    """True or False of 1 or 0."""
    return bool(("0", "1").index(text))


def _flag(name):
    return "--" + name.replace("_", "-")


_FIRST_STEPS = """
import sys, nsds
example = nsds.examples.EXAMPLES[sys.argv[1]]
system, run = example.build(), dict(example.run)
nsds.simulate(system, **run | {"t_end": system["t"].max() + 3 * run["h"], "progress": False})
"""


def _warm_up(arguments):
    """Runs the first steps of examples in separate processes; kernels compiled there are cached for all."""
    unknown = [name for name in arguments.examples if name not in EXAMPLES]
    if unknown or arguments.processes < 1:
        print(
            f"nsds: {f'no example {unknown[0]!r}{_checks.meant(unknown[0], EXAMPLES)}' if unknown else '--processes must be at least 1'}",
            file=sys.stderr,
        )
        return 2
    # each example in a process of its own: compiled kernels are shared by the cache
    names = arguments.examples or list(EXAMPLES)

    def first_steps(name):
        return name, subprocess.run([sys.executable, "-c", _FIRST_STEPS, name], capture_output=True, text=True, check=False)

    code = 0
    with ThreadPoolExecutor(arguments.processes) as pool, tqdm(total=len(names), unit="example") as bar:
        for name, done in pool.map(first_steps, names):
            bar.set_description(name)
            bar.update()
            if done.returncode != 0:
                print(f"nsds: {name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                code = 1
    return code


def _run(arguments):
    # 1. refuse before the run what would fail after it
    example = EXAMPLES[arguments.example]
    if arguments.plot:
        require_matplotlib()  # before the run, not after it
    if arguments.save and not arguments.save.lower().endswith(".npz"):
        raise ValueError(f"--save writes the format .npz, and the name of the file must end in that, got {arguments.save!r}")
    # 2. system and scheme with the options of the command line
    system = example.build(**{name: getattr(arguments, name) for name in inspect.signature(example.build).parameters})
    scheme, options = _scheme(example)
    options = {name: getattr(arguments, name) for name in options}
    # 3. run; a failed or interrupted one still has rows
    code = 0
    try:
        trajectory = nsds.simulate(
            system,
            t_end=arguments.t_end,
            h=arguments.h,
            scheme=scheme(**options),
            solver=arguments.solver,
            save_every=arguments.save_every,
            fields=example.run.get("fields"),
            progress=not arguments.no_progress,
        )
    except (nsds.SimulationError, nsds.SimulationInterrupted) as error:
        print(f"nsds: {error}", file=sys.stderr)
        trajectory, code = error.trajectory, 1
    # 4. report, file, picture
    nsds.report(system, trajectory, theta=options.get("theta", 0.5))
    if arguments.save:
        np.savez_compressed(arguments.save, trajectory=trajectory, system=system)
        print(f"saved             {arguments.save}")
    if arguments.plot:
        example.draw(system, trajectory).savefig(arguments.plot, dpi=120)
        print(f"picture           {arguments.plot}")
    return code


if __name__ == "__main__":
    sys.exit(main())
