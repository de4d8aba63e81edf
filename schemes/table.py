"""The table of schemes: a new scheme is one module with `prepare`, `start` and `step`, and one line here."""

from nsds.schemes import moreau_jean

SCHEMES = {"moreau_jean": moreau_jean}


def chosen(options):
    """Module and options of what a caller passed as scheme; None means Moreau–Jean with its defaults."""
    if options is None:
        options = moreau_jean.moreau_jean()
    name = options["scheme"].item().decode() if getattr(options, "dtype", None) and "scheme" in (options.dtype.names or ()) else None
    if name not in SCHEMES:
        raise TypeError(f"scheme: expected the result of one of {', '.join(f'nsds.{s}' for s in SCHEMES)}, got {options!r}")
    return SCHEMES[name], options
