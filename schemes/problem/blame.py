"""Functions of users that gave NaN or infinity, by name: one search for all families of systems."""

from nsds.model.functions import is_finite_at, nan_of
from nsds.model.layout import ABSENT
from nsds.model.records import memory


def blaming(asked):
    """The function ``blame(records, prepared, m)`` of a family, whose functions ``asked(layout, mem, work)`` lists.

    Of each function: "part" or "interaction", its name, element, field; slot, arguments x, lam and z at the state, size of the result.
    """

    def blame(records, prepared, m):
        """Name of the function that gave NaN or infinity at the state of member m, as text; empty if none does."""
        for kind, name, e, field, slot, *arguments in asked(prepared.layout, memory(records)[m], prepared.work[m]):
            if slot != ABSENT and not is_finite_at(prepared.functions[m, slot + 1], records["t"][m].item(), *arguments):
                return nan_of(f"{field} of {kind} '{name}'", records[name][field].reshape(records.size, -1)[m, e])
        return ""

    return blame


def asked_of_relations(layout, mem, work):
    """Functions of the relations of a layout, for `blaming`."""
    for name, r in zip(layout.relation_names, layout.relations, strict=True):
        x, lam, z = work[r["x"] : r["x"] + r["n"]], work[r["lam"] : r["lam"] + r["m"]], mem[r["z"] : r["z"] + r["n_z"]]
        m, n = r["m"], r["n"]
        sizes = {"h": m, "g": n, "e": m, "H": m * n, "C": m * n, "D": m * m, "B": n * m, "K": n * n, "F": m * z.size, "h_t": m}
        for field, size in (sizes | {"velocity": m}).items():
            if f"{field}_function" in r.dtype.names:
                yield "interaction", name, 0, field, r[f"{field}_function"], x, lam, z, size
