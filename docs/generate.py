"""Pages and pictures of the documentation that are made from the package: gallery, statuses, reference of all public names."""

import html
import inspect
import re
import shutil
import sys

import matplotlib as mpl

import nsds
from nsds.examples import EXAMPLES
from nsds.status import ADVICE

# What the gallery shows of an example that is long, coarse or one of statistics: other lengths of the run, other sizes of the model.
_SHORTER = {
    "burridge_knopoff": ({"n": 300}, {"t_end": 800.0}),
    "cam_bifurcation": ({"members": 41}, {"t_end": 6.5}),
    "membrane_obstacle": ({"n": 59}, {}),
    "rotating_drum": ({}, {"t_end": 0.3}),
    "third_order_stop": ({}, {"t_end": 2.0}),
}
# Pages of the reference, and what is on each: a public name that is missing here is an error.
_PAGES = {
    "Systems": """system lagrangian lagrangian_linear lagrangian_modal rigid_bodies planar_bodies first_order
        first_order_linear linear_complementarity_system circuit robot collisions sampled_control interaction""",
    "Runs": "simulate step stepper restart SimulationError SimulationInterrupted",
    "Results": "describe report view advice",
}
_TITLES = {"io": "Files and tables"}
GROUPS = ("relations", "laws", "schemes", "analysis", "io")  # modules whose names are names of the package, too


def write_all(folder):
    """Write ``generated/`` in the folder of the documentation."""
    out = folder / "generated"
    (out / "gallery").mkdir(parents=True, exist_ok=True)
    (out / "statuses.inc.md").write_text(_statuses(), encoding="utf-8")
    (out / "reference").mkdir(exist_ok=True)
    for name, text in _reference().items():
        (out / "reference" / f"{name}.md").write_text(text, encoding="utf-8")
    gallery, examples = _gallery(out / "gallery")
    for name, text in [("gallery", gallery), *((f"gallery/{name}", text) for name, text in examples.items())]:
        (out / f"{name}.md").write_text(text, encoding="utf-8")
    _take_notebooks(folder.parent / "notebooks", out / "notebooks")


def _statuses():
    rows = [f"| {code} | `{_name(code)}` | {text} |" for code, text in sorted(ADVICE.items())]
    return "\n".join(["| status | name | what it says |", "|---|---|---|", *rows, ""])


def _name(code):
    return next(name for name, value in vars(nsds.status).items() if name.isupper() and value is code)


def public_names(module):
    """Names of the functions, kernels and classes that a module of the face has for users."""
    return [name for name in module.__all__ if callable(getattr(module, name))]


def modules():
    """Names of the modules of the face."""
    return [name for name in nsds.__all__ if inspect.ismodule(getattr(nsds, name))]


def _reference():
    """{page: text}: a page for each group of the face, and for each of its modules."""
    pages = {title.lower(): _page(title, "nsds", names.split()) for title, names in _PAGES.items()}
    pages |= {
        name: _page(_TITLES.get(name, name.capitalize()), "nsds", getattr(nsds, name).__all__, getattr(nsds, name).__doc__)
        for name in GROUPS
    }
    left = {name for name in nsds.__all__ if not re.search(rf":: {name}\n", "".join(pages.values()))} - set(modules())
    if left:
        raise ValueError(f"docs/generate.py: no page of the reference has {', '.join(sorted(left))}")
    for module in set(modules()) - set(GROUPS):
        value = getattr(nsds, module)
        pages[f"nsds.{module}"] = _page(f"nsds.{module}", f"nsds.{module}", public_names(value), inspect.getdoc(value))
    return pages


def _page(title, module, names, text=""):
    lines = [f"# {title}", "", text, "", "```{eval-rst}", f".. currentmodule:: {module}", ""]
    for name in names:
        value = getattr(sys.modules[module], name)
        if inspect.isclass(value) or inspect.isfunction(value):
            lines += [f".. {'autoclass' if inspect.isclass(value) else 'autofunction'}:: {name}", ""]
        else:  # a kernel, in which autodoc sees no function
            text = "\n   ".join(inspect.getdoc(value).splitlines())
            lines += [f".. function:: {name}{inspect.signature(value.py_func)}", "", f"   {text}", ""]
    return "\n".join([*lines, "```", ""])


def _gallery(folder):
    """The page of all examples, thumbnails, with a page of each, {name: text}; pictures that are there already are kept."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    run_one = "Run one with `python -m nsds run NAME --plot picture.png`; `python -m nsds run NAME --help` says what its options mean."
    lines = [
        "# Gallery",
        "",
        "All examples of the package, from short runs; each leads to its program.",
        run_one,
        "",
        '<div class="gallery">',
    ]
    pages = {}
    for name, example in EXAMPLES.items():
        path = folder / f"{name}.png"
        size, run = _SHORTER.get(name, ({}, {}))
        if not path.exists():
            system = example.build(**size)
            figure = example.draw(system, nsds.simulate(system, progress=False, **(example.run | run)))
            figure.savefig(path, dpi=72)
            plt.close("all")
        text = inspect.getdoc(example.build).splitlines()[0].split(": x = ")[0]
        said = re.sub("``(.*?)``", r"<code>\1</code>", html.escape(text))
        card = f'<a href="gallery/{name}.html"><img src="../_images/{name}.png" alt="{name}"><b>{name}</b><span>{said}</span></a>'
        lines.append(card)
        source = inspect.getsource(sys.modules[example.build.__module__])
        pages[name] = f"# {name}\n\n{text}\n\n![{name}]({name}.png)\n\n```python\n{source}```\n"
    hidden = ["</div>", "", "```{toctree}", ":hidden:", "", *(f"gallery/{name}" for name in EXAMPLES), "```", ""]
    return "\n".join([*lines, *hidden]), pages


def _take_notebooks(source, target):
    """Notebooks as they were executed; where that was not done, without outputs."""
    target.mkdir(exist_ok=True)
    for path in sorted(source.glob("*.ipynb")):
        if not (target / path.name).exists():
            shutil.copy(path, target / path.name)
