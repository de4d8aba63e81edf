"""The schemes by name: each has a module with `prepare` for a family, whose result names the module with `start`, `step` and `blame`."""

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds._docstrings import with_sections
from nsds.model.laws import LAWS, NONE
from nsds.model.records import model_of
from nsds.model.system_kinds import FIRST_ORDER, LAGRANGIAN, NEWTON_EULER, family
from nsds.schemes import declared
from nsds.schemes.problem import kinds
from nsds.solvers import table as solvers


class Scheme(NamedTuple):
    """A scheme: the constructor of its options, and by family of systems the module that steps these."""

    constructor: Callable
    options: dict  # argument -> `nsds.schemes.declared.Option`
    modules: dict  # family -> module of `nsds.schemes`, imported when it is asked for: each has hundreds of kernels


class StandIn:
    """Stand-in for a solver: has the solver as choice, and in_place_of, see `nsds.schemes.recorder.Recorder`."""


SCHEMES = {}  # by name
DEFAULTS = {LAGRANGIAN: "moreau_jean", NEWTON_EULER: "rattle", FIRST_ORDER: "euler_moreau"}
_BODIES = "rigid."  # folder of schemes with blocks of bodies; all others treat rigid bodies as rows of Lagrangian systems
_RETURNS = """numpy.ndarray, shape ()
    Record for `nsds.simulate`."""
_RAISES = """ValueError, TypeError
    An option out of its range."""


def scheme_for(options, modules):
    """Decorator of the constructor of a scheme's options: enters the scheme under its name, and completes the docstring."""

    def entered(constructor):
        SCHEMES[constructor.__name__] = Scheme(constructor, options, modules)
        return _checks.naming_options(with_sections(Returns=_RETURNS, **({"Raises": _RAISES} if options else {}))(constructor))

    return entered


def chosen(options, system, solver=None):
    """Module and options of a caller's choice of scheme for a system; None means the default of such systems and of their solver."""
    model = model_of(system)
    systems = family(model)
    # 1. default; a law of a user's own needs a scheme of velocities
    default = DEFAULTS[systems]
    if options is None and systems == NEWTON_EULER and solver is not None and not isinstance(solver, StandIn):
        default = _OF_VELOCITIES[0] if solvers.chosen(solver, kinds.kind_of(system))[0].law else default
    if options is None:
        options = SCHEMES[default].constructor()
        return module_of(options, systems), options
    # 2. a known scheme, for this family, with valid options
    name = _name_of(options)
    if name not in SCHEMES:
        known = ", ".join(f"nsds.{scheme}" for scheme in sorted(SCHEMES))
        raise TypeError(f"scheme: expected the result of one of {known}, got {_checks.shortened(options)}")
    if systems not in SCHEMES[name].modules:
        treated = " and ".join(SCHEMES[name].modules)
        raise ValueError(f"{name}: this scheme is for {treated} systems; {systems} systems want nsds.{default}")
    _require_valid(name, options.dtype, options.tobytes())
    return module_of(options, systems), options


def module_of(options, systems):
    """The module that steps a family of systems under a scheme, by its options."""
    return import_module(f"nsds.schemes.{SCHEMES[_name_of(options)].modules[systems]}")


def _name_of(options):
    """Name of the scheme that a record of options is for."""
    if not isinstance(options, (np.ndarray, np.void)) or np.shape(options) != () or "scheme" not in (options.dtype.names or ()):
        return None
    name = options["scheme"].item()
    return name.decode(errors="replace") if isinstance(name, bytes) else None


def is_event_driven(options):
    """Whether options of a scheme, or None, are those of `nsds.event_driven`."""
    return _name_of(options) == "event_driven"


@lru_cache(maxsize=64)
def _require_valid(name, dtype, stored):
    """Refuse edited options that their constructor would refuse."""
    constructor = SCHEMES[name].constructor
    plain = constructor().dtype
    if dtype.names != plain.names or any(dtype[field].base != plain[field].base for field in plain.names):
        raise TypeError(f"{name}: expected the options that nsds.{name} makes, got a record of type {dtype}")
    options = np.frombuffer(stored, dtype)[0]
    made = constructor(**arguments_of(options))
    if dtype != made.dtype:
        raise TypeError(f"{name}: expected the options that nsds.{name} makes, got a record of type {dtype}")
    for field in dtype.names:
        if (made[field] != options[field]).any():
            raise ValueError(
                f"{name}: {field} must be {made[field].tolist()!r} together with the other options, got {options[field].tolist()!r}"
            )


def arguments_of(options):
    """Arguments by which the constructor of a scheme makes these options."""
    name = _name_of(options)
    return declared.arguments_of(name, SCHEMES[name].options, options)


def solver_of(choice, system, scheme=None):
    """(`Method`, kernel options, address of its code) of a caller's choice of solver for a system under a scheme, options or None."""
    if isinstance(choice, StandIn):
        return choice.in_place_of(*solver_of(choice.choice, system, scheme))
    systems = family(model_of(system))
    module = SCHEMES[_name_of(scheme) or DEFAULTS[systems]].modules[systems]
    if systems != FIRST_ORDER and not module.startswith(_BODIES):
        method, options = kinds.by_rows(choice, system)
    else:
        method, options = solvers.chosen(choice, kinds.kind_of(system))
    if method.law:
        _require_law_fits(solvers.name_of_law(method.name), system, _name_of(scheme))
    return method, options, solvers.address(method)


# Schemes that a user's law between velocities and impulses can be combined with.
_OF_VELOCITIES = ("moreau_jean", "moreau_jean_exact")
_WITH_POSITIONS = ("moreau_jean_direct_projection", "moreau_jean_combined_projection")  # whose problems of positions have no friction


def _require_law_fits(law, system, scheme):
    """Refuse a law of `nsds.solvers.own_law` where problems are not all stated for velocities, or other laws do not go with it."""
    model, owner = model_of(system), f"own_law: {law}"
    if family(model) == FIRST_ORDER:
        raise ValueError(f"{owner} is a law of velocities and impulses; first-order systems have relays and nsds.filippov for others")
    lines = [(line[0], line[2]) for line in model if len(line) > 2 and line[2] in LAWS]
    is_of_contacts = family(model) == NEWTON_EULER or any(LAWS[name].treatment.has_friction for _, name in lines)
    schemes = (*_OF_VELOCITIES, *_WITH_POSITIONS) if is_of_contacts else _OF_VELOCITIES
    if scheme not in schemes:
        wanted = " or ".join(f"nsds.{name}()" for name in schemes)
        raise ValueError(f"{owner} is a law of velocities and impulses, which the scheme {scheme} does not only have; use {wanted}")
    for interaction, name in lines:
        form = LAWS[name].treatment
        if form.impact or (form.bounds != NONE if is_of_contacts else form.is_given):
            raise ValueError(f"{owner} does not go with {name} of '{interaction}'; with friction it is a law of contacts, else of bounds")
