"""The peer's solvers on one contact problem: ``python3 peer_contacts.py FILE METHOD... [--budget 0.2]`` prints one JSON object.

Run by the python that has siconos installed, which has no scipy. Methods are named as in ``shared/peer/solver_baseline.csv``, with the
storage of matrices behind it: ``NSGS/NSN@blocks``, or @dense, @sparse. The C drivers are called at their addresses. ``time_s`` is the best
of many driver calls, each from zero, the problem being built before.
"""

import argparse
import ctypes
import json
import math
import time
from pathlib import Path

import numpy as np
import peer_solvers
import siconos.numerics as sn

TOLERANCE = 1e-8
TIME_LIMIT = 8.0  # seconds of one child process, unless others are given
STORAGES = ("dense", "blocks", "sparse")  # of the peer, in its order
DENSE, BLOCKS, SPARSE = range(3)
EQUALITY, FRICTION = 2, 4  # kinds of blocks of its mixed problems
PREFIXES = {
    "fc2d": "FRICTION_2D", "fc3d": "FRICTION_3D", "rfc3d": "ROLLING_FRICTION_3D", "gfc3d": "GLOBAL_FRICTION_3D",
    "grfc3d": "GLOBAL_ROLLING_FRICTION_3D", "generic_mechanical": "GENERIC_MECHANICAL",
}  # fmt: skip
DRIVERS = {
    "fc2d": "fc2d_driver", "fc3d": "fc3d_driver", "rfc3d": "rolling_fc3d_driver", "gfc3d": "gfc3d_driver",
    "grfc3d": "g_rolling_fc3d_driver", "generic_mechanical": "gmp_driver",
}  # fmt: skip
LOCALS = {
    "NSN": "ONECONTACT_NSN", "NSN_GP_HYBRID": "ONECONTACT_NSN_GP_HYBRID", "QUARTIC": "ONECONTACT_QUARTIC",
    "PLI": "ONECONTACT_ProjectionOnConeWithLocalIteration", "P": "ONECONTACT_ProjectionOnCone",
}  # fmt: skip
WAYS = {"all_blocks": 0, "subs_equalities": 1, "assemble_equalities": 2, "MLCP_like": 3}  # of mixed problems
MEMBERS = {  # of the C structures, in their order: integers, numbers, the rest pointers
    "fc2d": "dimension n_contacts M q mu",
    "fc3d": "dimension n_contacts M q mu",
    "rfc3d": "dimension n_contacts M q mu mu_r",
    "gfc3d": "dimension n_contacts M H q norm_q b norm_b mu environment",
    "grfc3d": "dimension n_contacts M H q b mu mu_r",
    "generic_mechanical": "size largest M q first last",
}
TYPES = dict.fromkeys(("dimension", "n_contacts", "size", "largest"), ctypes.c_int) | dict.fromkeys(("norm_q", "norm_b"), ctypes.c_double)

library = peer_solvers.library
for _name in ("NM_create", "NM_create_from_data", "NM_csc", "NM_new_SBM", "SBM_new", "genericMechanicalProblem_new", "gmp_add"):
    getattr(library, _name).restype = ctypes.c_void_p


class Problem:
    """One problem, built for the peer with matrices in one of its storages."""

    def __init__(self, file, storage):
        with np.load(file) as entries:
            field = dict(entries)
        self.kind, self.kept = str(field["cls"]), []
        if self.kind == "generic_mechanical":
            self.size, self.global_size = len(field["q"]), 0
            self.address = self._mixed(field)
            return
        n_contacts, d = int(field["nc"]), int(field["d"])
        self.size, self.global_size = n_contacts * d, len(field["q"]) if self.kind[0] == "g" else 0
        vectors = {key: self._keep(field[key]) for key in ("q", "b", "mu", "mu_r") if key in field}
        values = {key: vector.ctypes.data for key, vector in vectors.items()}
        values |= {name: self._matrix(field, name, storage, d) for name in "MH" if name in field or f"{name}_data" in field}
        values |= {f"norm_{key}": np.linalg.norm(vector) for key, vector in vectors.items()}
        values |= {"dimension": d, "n_contacts": n_contacts}
        structure = self._structure(self.kind)(**{key: values[key] for key in MEMBERS[self.kind].split() if key in values})
        self.kept.append(structure)
        self.address = ctypes.addressof(structure)

    @staticmethod
    def _structure(kind):
        fields = [(key, TYPES.get(key, ctypes.c_void_p)) for key in MEMBERS[kind].split()]
        return type("Structure", (ctypes.Structure,), {"_fields_": fields})

    def _keep(self, array):
        self.kept.append(np.array(array, float, order="F"))
        return self.kept[-1]

    def _matrix(self, field, name, storage, d):
        """Address of a matrix of the peer."""
        if name in field and storage == DENSE:
            A = self._keep(field[name])
            return library.NM_create_from_data(DENSE, *A.shape, ctypes.c_void_p(A.ctypes.data))
        if name in field:
            i, j = np.nonzero(field[name])
            data, shape = field[name][i, j], field[name].shape
        else:
            shape, j, data = tuple(map(int, field[f"{name}_shape"])), field[f"{name}_indices"], field[f"{name}_data"]
            i = np.repeat(np.arange(shape[0]), np.diff(field[f"{name}_indptr"]))
        if storage == DENSE:
            A = np.zeros(shape)
            A[i, j] = data
            return self._matrix({name: A}, name, DENSE, d)
        sparse = ctypes.c_void_p(library.NM_create(SPARSE, *shape))
        library.NM_triplet_alloc(sparse, ctypes.c_int64(len(data)))
        for a, b, value in zip(i.tolist(), j.tolist(), data.tolist(), strict=True):
            library.NM_entry(sparse, a, b, ctypes.c_double(value))
        if storage == SPARSE:
            return sparse.value
        blocks = ctypes.c_void_p(library.SBM_new())
        library.SBM_from_csparse(d, ctypes.c_void_p(library.NM_csc(sparse)), blocks)
        return library.NM_new_SBM(*shape, blocks)

    def _mixed(self, field):
        """Address of a mixed problem: its blocks are added one by one; M is stored by blocks of these sizes."""
        address = library.genericMechanicalProblem_new()
        begin = [int(k) for k in field["block_ptr"]]
        for k, kind in enumerate(field["block_type"]):
            kinds = {"equality": EQUALITY, "fc3d": FRICTION, "lcp": 0}
            local = library.gmp_add(ctypes.c_void_p(address), kinds[str(kind)], begin[k + 1] - begin[k])
            if kind == "fc3d":
                mu = self._structure("fc3d").from_address(local).mu
                ctypes.c_double.from_address(mu).value = float(field["mu"][k])
        structure = self._structure("generic_mechanical").from_address(address)
        structure.M, structure.q = self._uneven_blocks(field, begin), self._keep(field["q"]).ctypes.data
        return address

    def _uneven_blocks(self, field, begin):
        """Address of a block matrix whose blocks differ in size."""
        n = len(begin) - 1
        A = np.zeros((begin[-1], begin[-1]))
        A[np.repeat(np.arange(begin[-1]), np.diff(field["M_indptr"])), field["M_indices"]] = field["M_data"]
        places = [(i, j) for i in range(n) for j in range(n) if i == j or A[begin[i] : begin[i + 1], begin[j] : begin[j + 1]].any()]
        blocks = [self._keep(A[begin[i] : begin[i + 1], begin[j] : begin[j + 1]]) for i, j in places]
        rows = np.searchsorted([i for i, _ in places], range(n + 1)).astype(np.uint64)
        columns, ends = np.array([j for _, j in places], np.uint64), np.array(begin[1:], np.uint32)
        diagonal = np.array([places.index((i, i)) for i in range(n)], np.uint32)
        pointers = (ctypes.c_void_p * len(blocks))(*(block.ctypes.data for block in blocks))
        self.kept += [rows, columns, ends, diagonal, pointers]
        kinds = "u4 P u4 u4 P P u8 u8 P P P"
        values = [len(blocks), ctypes.addressof(pointers), n, n, ends, ends, n + 1, len(blocks), rows, columns, diagonal]
        stored = library.SBM_new()
        fields = [(f"_{k}", {"P": ctypes.c_void_p, "u4": ctypes.c_uint, "u8": ctypes.c_size_t}[t]) for k, t in enumerate(kinds.split())]
        matrix = type("Structure", (ctypes.Structure,), {"_fields_": fields}).from_address(stored)
        for k, value in enumerate(values):
            setattr(matrix, f"_{k}", value.ctypes.data if isinstance(value, np.ndarray) else value)
        return library.NM_new_SBM(begin[-1], begin[-1], ctypes.c_void_p(stored))


def solver_options(kind, method):
    """Options of a method of the table: outer solver, the solver of one contact, tolerance, many iterations."""
    outer, _, inner = method.partition("/")
    if kind == "generic_mechanical":
        options = sn.SolverOptions(sn.SICONOS_GENERIC_MECHANICAL_NSGS)
        options.iparam[sn.SICONOS_GENERIC_MECHANICAL_IPARAM_ISREDUCED] = WAYS[inner or outer]
        options.iparam[sn.SICONOS_IPARAM_MAX_ITER] = 100_000
    else:
        options = sn.SolverOptions(getattr(sn, f"SICONOS_{PREFIXES[kind]}_{outer}"))
        if inner in LOCALS:
            sn.solver_options_update_internal(options, 0, getattr(sn, f"SICONOS_{PREFIXES[kind]}_{LOCALS[inner]}"))
        if outer[:4] in ("NSGS", "VI_E", "VI_F", "CPG"):
            options.iparam[sn.SICONOS_IPARAM_MAX_ITER] = 1_000_000
        elif outer[:4] == "ADMM":
            options.iparam[sn.SICONOS_IPARAM_MAX_ITER] = 100_000
    options.dparam[sn.SICONOS_DPARAM_TOL] = TOLERANCE
    return options


def limit(repeats, budget):
    """Seconds that repetitions may go on for: slow methods have a few, too, for the least of one or two says little."""
    return budget if repeats >= peer_solvers.MIN_REPEATS else max(budget, TIME_LIMIT / 4)


def measure(file, method, budget):
    """(best time, number of calls, return code, r of the last call) of repeated driver calls, each from zero with new options.

    Global problems are built anew for every call: the peer keeps factors of M inside them.
    """
    with np.load(file) as entries:
        kind = str(entries["cls"])
    method, _, storage = method.partition("@")
    driver = getattr(library, DRIVERS[kind])
    best, repeats, start, problem = math.inf, 0, time.perf_counter(), None
    while repeats < peer_solvers.MAX_REPEATS and (repeats == 0 or time.perf_counter() - start < limit(repeats, budget)):
        if problem is None or kind[:2] in ("gf", "gr"):
            problem = Problem(file, STORAGES.index(storage or "dense"))
        options = solver_options(kind, method)
        r, u, v = np.zeros(problem.size), np.zeros(problem.size), np.zeros(problem.global_size)
        vectors = [r, u, v] if problem.global_size else [r, u]
        arguments = [ctypes.c_void_p(a) for a in (problem.address, *(x.ctypes.data for x in vectors), int(options.this))]
        library.numerics_set_verbose(0)  # also warms the path of such a call
        began = time.perf_counter()
        code = driver(*arguments)
        best, repeats = min(best, time.perf_counter() - began), repeats + 1
    return best, repeats, code, r.tolist()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("methods", nargs="+", metavar="METHOD")
    parser.add_argument("--budget", type=float, default=0.2, help="seconds for one method")
    parser.add_argument("--limit", type=float, default=TIME_LIMIT, help="seconds after which a method is given up")
    given = parser.parse_args()
    rows = []
    for name in given.methods:
        status, values = peer_solvers.in_child(measure, (given.file, name, given.budget), given.limit)
        rows.append({"solver": name, "status": status, **dict(zip(("time_s", "calls", "code", "r"), values or (), strict=False))})
    print(json.dumps(rows))
