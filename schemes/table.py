"""The table of schemes: a new scheme is one module with `prepare`, whose result names the module with `start`, `step` and `blame`."""

from nsds.kinds import FIRST_ORDER, LAGRANGIAN, NEWTON_EULER, family
from nsds.records import model_of
from nsds.schemes import (
    d1_minus_linear,
    euler_moreau,
    generalised_alpha,
    moreau_jean,
    moreau_jean_exact,
    newton_euler_tables,
    projection,
    schatzman_paoli,
    zero_order_hold,
)
from nsds.solvers import table as solvers
from nsds.solvers.contact import table as contact_solvers

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
    name = options["scheme"].item().decode() if getattr(options, "dtype", None) and "scheme" in (options.dtype.names or ()) else None
    if name not in SCHEMES:
        raise TypeError(f"scheme: expected the result of one of {', '.join(f'nsds.{s}' for s in SCHEMES)}, got {options!r}")
    treated, module = SCHEMES[name]
    if systems not in treated:
        raise ValueError(f"{name}: this scheme is for {' and '.join(treated)} systems; {systems} systems want nsds.{default}")
    return module, options


def solver_of(choice, system):
    """(method, kernel options, address of its code) of what a caller passed as solver for a system."""
    if family(model_of(system)) != NEWTON_EULER:
        _, method, options = solvers.chosen(choice)
        return method, options, solvers.address(method)
    name, method, options = contact_solvers.chosen(choice, newton_euler_tables.components(system))
    return (name, method), options, contact_solvers.address(method)
