"""The only place where numba is configured: kernels, callbacks and calls by address.

numba's own cache checks the file of a function, not the functions that it calls: an edited callee would leave a stale caller
behind. A kernel is therefore cached under a fingerprint of its own code and of all that it reads and calls (`nsds._jit.cache`).

Kernels release the GIL, follow IEEE arithmetic (``error_model="numpy"``, no fastmath) and return status codes instead of raising. With
``NUMBA_DISABLE_JIT=1`` they are plain Python (`nsds._jit.plain`).
"""

import numba

from nsds._jit.bound import bound
from nsds._jit.calls import PythonCallback, address, caller, on_demand
from nsds._jit.compiler import announcing, callback, compiled, each, inlined, is_compiled, kernel, parallel, specialised, threaded, tiny
from nsds._jit.convention import AS_CALLED
from nsds._jit.lanes import absolute, apart, bits_of, chosen, gather, larger, load, places, put, root, scatter, spread
from nsds._jit.reference import by_reference, made
from nsds._jit.views import at_address, pointer, stack, view

if numba.config.DISABLE_JIT:
    from nsds._jit import plain

    globals().update({name: item for name, item in vars(plain).items() if not name.startswith("_")})

__all__ = [
    "AS_CALLED",
    "PythonCallback",
    "absolute",
    "address",
    "announcing",
    "apart",
    "at_address",
    "bits_of",
    "bound",
    "by_reference",
    "callback",
    "caller",
    "chosen",
    "compiled",
    "each",
    "gather",
    "inlined",
    "is_compiled",
    "kernel",
    "larger",
    "load",
    "made",
    "on_demand",
    "parallel",
    "places",
    "pointer",
    "put",
    "root",
    "scatter",
    "specialised",
    "spread",
    "stack",
    "threaded",
    "tiny",
    "view",
]
