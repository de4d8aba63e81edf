"""The table of schemes: a new scheme is one module with `prepare`, whose result names the module with `start`, `step` and `blame`."""

import inspect
from functools import lru_cache

import numpy as np

from nsds import _checks
from nsds.model.kinds import FIRST_ORDER, LAGRANGIAN, NEWTON_EULER, family
from nsds.model.records import model_of
from nsds.schemes.first_order import euler_moreau, zero_order_hold
from nsds.schemes.lagrangian import d1_minus_linear, generalised_alpha, moreau_jean, projection, schatzman_paoli
from nsds.schemes.lagrangian import exact as moreau_jean_exact
from nsds.schemes.rigid import tables as newton_euler_tables
from nsds.solvers.box import table as solvers
from nsds.solvers.contact import table as contact_solvers
from nsds.solvers.contact.local import LOCALS

# name -> (families of systems it is for, module); the first of a family is its default
SCHEMES = {
    "moreau_jean": ((LAGRANGIAN, NEWTON_EULER), moreau_jean),
    "moreau_jean_direct_projection": ((LAGRANGIAN, NEWTON_EULER), projection),
    "moreau_jean_combined_projection": ((LAGRANGIAN,), projection),
    "moreau_jean_exact": ((LAGRANGIAN,), moreau_jean_exact),
    "d1_minus_linear": ((LAGRANGIAN,), d1_minus_linear),
    "generalised_alpha": ((LAGRANGIAN,), generalised_alpha),
    "schatzman_paoli": ((LAGRANGIAN,), schatzman_paoli),
    "euler_moreau": ((FIRST_ORDER,), euler_moreau),
    "zero_order_hold": ((FIRST_ORDER,), zero_order_hold),
}


def chosen(options, system):
    """Module and options of what a caller passed as scheme for a system; None means the default of the family of systems."""
    systems = family(model_of(system))
    default, module = next((name, module) for name, (treated, module) in SCHEMES.items() if systems in treated)
    if options is None:
        return module, getattr(module, default)()
    name = _name_of(options)
    if name not in SCHEMES:
        known = ", ".join(f"nsds.{scheme}" for scheme in SCHEMES)
        raise TypeError(f"scheme: expected the result of one of {known}, got {_checks.shortened(options)}")
    treated, module = SCHEMES[name]
    if systems not in treated:
        raise ValueError(f"{name}: this scheme is for {' and '.join(treated)} systems; {systems} systems want nsds.{default}")
    _require_valid(name, options.dtype, options.tobytes())
    return module, options


def _name_of(options):
    """Name of the scheme that a record of options is for."""
    if not isinstance(options, (np.ndarray, np.void)) or np.shape(options) != () or "scheme" not in (options.dtype.names or ()):
        return None
    name = options["scheme"].item()
    return name.decode(errors="replace") if isinstance(name, bytes) else None


# Fields of options that are not arguments of the same name of their constructors: the name, and the values for 0 and 1.
_FLAGS = {
    "every_contact": ("contacts", ("active", "all")),
    "velocity_level": ("level", ("acceleration", "velocity")),
    "gamma_for_relation": ("gamma_for_relation", (False, True)),
    "midpoint": ("midpoint", (False, True)),
}


@lru_cache(maxsize=64)
def _require_valid(name, dtype, stored):
    """Options may be edited after they were made: what their constructor would refuse is refused here."""
    constructor = getattr(SCHEMES[name][1], name)
    if dtype != constructor().dtype:
        raise TypeError(f"{name}: expected the options that nsds.{name} makes, got a record of type {dtype}")
    options = np.frombuffer(stored, dtype)[0]
    made = constructor(**arguments_of(options))
    for field in dtype.names:
        if made[field] != options[field]:
            raise ValueError(
                f"{name}: {field} must be {made[field].item()!r} together with the other options, got {options[field].item()!r}"
            )


def arguments_of(options):
    """Arguments by which the constructor of a scheme makes these options."""
    name, arguments = _name_of(options), {}
    taken = inspect.signature(getattr(SCHEMES[name][1], name)).parameters
    for field in options.dtype.names[1:]:
        value, argument = options[field].item(), field
        if field in _FLAGS:
            if value not in (0, 1):
                raise ValueError(f"{name}: {field} must be 0 or 1, got {value}")
            argument, values = _FLAGS[field]
            value = values[value]
        if argument in taken:
            arguments[argument] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return arguments


def solver_of(choice, system):
    """(method, kernel options, address of its code) of what a caller passed as solver for a system."""
    if family(model_of(system)) != NEWTON_EULER:
        _require_valid_solver(choice, solvers.OPTIONS, _remade)
        _, method, options = solvers.chosen(choice)
        return method, options, solvers.address(method)
    _require_valid_solver(choice, contact_solvers.OPTIONS, _remade_contact)
    name, method, options = contact_solvers.chosen(choice, newton_euler_tables.components(system))
    return (name, method), options, contact_solvers.address(method)


def _require_valid_solver(choice, dtype, remade):
    """Records of solvers may be edited, too."""
    if isinstance(choice, (np.ndarray, np.void)) and choice.dtype == dtype:
        if np.shape(choice) != ():
            raise TypeError(f"solver: expected one record, got an array of shape {np.shape(choice)}")
        remade(choice.tobytes())


@lru_cache(maxsize=64)
def _remade(stored):
    options = np.frombuffer(stored, solvers.OPTIONS)[0]
    taken = inspect.signature(solvers.solver).parameters
    others = {name: options[name].item() or None for name in solvers.OPTIONS.names[1:] if name in taken}
    solvers.solver(options["method"].item().decode(errors="replace"), **others | {"tol": options["tol"].item()})


@lru_cache(maxsize=64)
def _remade_contact(stored):
    options = np.frombuffer(stored, contact_solvers.OPTIONS)[0]
    values = {name: options[name].item() for name in contact_solvers.OPTIONS.names}
    method, local = values.pop("method").decode(errors="replace"), values.pop("local")
    if local not in range(len(LOCALS)):
        raise ValueError(f"solver: local must be the number of one of {', '.join(LOCALS)}, got {local}")
    whole = {name: value for name, value in values.items() if name in ("max_iter", "seed", "freeze")}
    for name, value in whole.items():
        if value != int(value if np.isfinite(value) else -1):
            raise ValueError(f"solver: {name} must be a whole number, got {value}")
        values[name] = int(value)
    contact_solvers.contact_solver(method, local=LOCALS[int(local)], **{name: value or None for name, value in values.items()})
