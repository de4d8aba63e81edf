"""The source ``s = b + T u`` of first-order systems, from numbers and functions."""

import numpy as np

from nsds._jit import tiny, view
from nsds.model.functions import call_function, is_finite_at, nan_of
from nsds.model.layout import ABSENT
from nsds.model.records import memory


@tiny
def source(t, part, e, x, functions, mem, work, out):
    """``s = b + T u`` of element e of a part at the state x. Out: work[out:out + n]. Work: part.u_work, part.T of a function."""
    n, n_u, shift = part.n, part.n_u, e * part.stride
    z, nothing = view(mem, part.z + shift, part.n_z), view(mem, 0, 0)
    for i in range(n):
        work[out + i] = 0.0 if part.b == ABSENT else mem[part.b + shift + i]
    if part.b_function != ABSENT:
        call_function(functions[part.b_function + e], (t, x, nothing, z, view(work, out, n)))
    if n_u > 0:
        T = part.T + e * n * n_u
        if part.T_function != ABSENT:
            call_function(functions[part.T_function + e], (t, x, nothing, z, view(work, T, n * n_u)))
        if part.u_function != ABSENT:
            call_function(functions[part.u_function + e], (t, x, nothing, z, view(work, part.u_work, n_u)))
        else:
            for j in range(n_u):
                work[part.u_work + j] = mem[part.u + shift + j]
        for i in range(n):
            for j in range(n_u):
                work[out + i] += work[T + i * n_u + j] * work[part.u_work + j]


def blame(records, prepared, m):
    """Which function gave NaN or infinity at the state of member m, in words; nothing if none does."""
    lists, mem, work = prepared.layout, memory(records)[m], prepared.work[m]
    nothing, t = np.zeros(0), records["t"][m].item()

    def is_broken(slot, x, lam, z, size):
        return slot != ABSENT and not is_finite_at(prepared.functions[m, slot], t, x, lam, z, size)

    def words(name, field):
        return nan_of(f"{field} of part '{name}'", records[name][field].reshape(records.size, -1)[m, 0])

    for name, part in zip(lists.part_names, lists.parts, strict=True):
        x, z = mem[part["q"] : part["q"] + part["n"]], mem[part["z"] : part["z"] + part["n_z"]]
        sizes = {
            "f": part["n"],
            "jac_f": part["n"] ** 2,
            "A": part["n"] ** 2,
            "b": part["n"],
            "T": part["n"] * part["n_u"],
            "u": part["n_u"],
        }
        for field, size in sizes.items():
            if is_broken(part[field + "_function"], x, nothing, z, size=size):
                return words(name, field)
    for name, r in zip(lists.relation_names, lists.relations, strict=True):
        x, lam, z = work[r["x"] : r["x"] + r["n"]], work[r["lam"] : r["lam"] + r["m"]], mem[r["z"] : r["z"] + r["n_z"]]
        for field, size in (("h", r["m"]), ("g", r["n"]), ("e", r["m"])):
            if is_broken(r[field + "_function"], x, lam, z, size=size):
                return words(name, field)
    return ""
