"""The table of schemes: a new scheme is one module with `prepare`, whose result names the module with `start`, `step` and `blame`."""

from nsds.kinds import FIRST_ORDER, LAGRANGIAN, family
from nsds.records import model_of
from nsds.schemes import euler_moreau, moreau_jean, zero_order_hold

SCHEMES = {"moreau_jean": moreau_jean, "euler_moreau": euler_moreau, "zero_order_hold": zero_order_hold}
DEFAULTS = {LAGRANGIAN: moreau_jean.moreau_jean, FIRST_ORDER: euler_moreau.euler_moreau}


def chosen(options, system):
    """Module and options of what a caller passed as scheme; None means the default of the family of systems."""
    if options is None:
        options = DEFAULTS[family(model_of(system))]()
    name = options["scheme"].item().decode() if getattr(options, "dtype", None) and "scheme" in (options.dtype.names or ()) else None
    if name not in SCHEMES:
        raise TypeError(f"scheme: expected the result of one of {', '.join(f'nsds.{s}' for s in SCHEMES)}, got {options!r}")
    return SCHEMES[name], options
