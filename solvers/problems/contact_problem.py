"""A contact problem with a name: what families generate, files hold and comparisons take."""

from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

from nsds import _checks
from nsds.solvers.problems.profiling import path_of, read_arrays

_LOCAL, _GLOBAL = ("M", "q", "mu"), ("M", "H", "q", "b", "mu")
_STORED = {
    "fc2d": _LOCAL, "fc3d": _LOCAL, "rfc3d": (*_LOCAL, "mu_r"), "gfc2d": _GLOBAL, "gfc3d": _GLOBAL, "grfc3d": (*_GLOBAL, "mu_r"),
}  # fmt: skip


class ContactProblem(NamedTuple):
    """``u = W r + q``, or ``M v = f + H r`` and ``u = H^T v + w``, with the law of `nsds.solvers.solve_fc3d`; a field not given is None.

    mu, and with rolling friction mu_r, have one entry for each contact. Where both forms are given they are the same problem:
    ``W = H^T M^-1 H``, ``q = H^T M^-1 f + w``.
    """

    name: str
    W: object
    q: object
    mu: object
    mu_r: object = None
    M: object = None
    H: object = None
    f: object = None
    w: object = None

    @property
    def n_contacts(self):
        """Number of contacts."""
        return np.size(self.mu)

    @property
    def d(self):
        """Components of a contact; without contacts 3."""
        return np.size(self.w if self.q is None else self.q) // self.n_contacts if self.n_contacts else 3

    @property
    def tangents(self):
        """Components of u_T: 1 in the plane, 2 in space."""
        return self.d - 1 if self.mu_r is None else (self.d - 1) // 2


def checked_problem(owner, problem):
    """A `ContactProblem` with matrices of one form at least."""
    if not isinstance(problem, ContactProblem):
        raise TypeError(f"{owner}: a problem must be a ContactProblem, got {type(problem).__name__}")
    if not isinstance(problem.name, str):
        raise TypeError(f"{owner}: name must be a text, got {_checks.shortened(problem.name)}")
    for fields in (("W", "q"), ("M", "H", "f", "w")):
        missing = [field for field in fields if getattr(problem, field) is None]
        if 0 < len(missing) < len(fields):
            raise ValueError(f"{owner}({problem.name}): {', '.join(fields)} must be given together, {', '.join(missing)} missing")
    if problem.W is None and problem.M is None:
        raise ValueError(f"{owner}({problem.name}): W and q, or M, H, f and w must be given")
    _checks.array(f"{owner}({problem.name})", "mu", problem.mu, n_dims=1)
    return problem


def read_contact_problem(file):
    """Contact problem of an ``.npz`` file.

    Parameters
    ----------
    file : str or Path
        Array ``cls``: "fc2d", "fc3d" or "rfc3d" with ``M`` (the matrix W), ``q``, ``mu`` and, with rolling friction, ``mu_r``; "gfc2d",
        "gfc3d" or "grfc3d" with ``M``, ``H``, ``q`` (f in `ContactProblem`), ``b`` (w), ``mu`` and ``mu_r``. A matrix ``X`` may be stored
        as ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape``: compressed rows.

    Returns
    -------
    ContactProblem
        Named after the file.

    Raises
    ------
    ValueError
        Another class, an array is missing, or the sizes of mu and q or b do not go with the class.

    Examples
    --------
    >>> import nsds, numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "pressed.npz"
    ...     np.savez(file, cls="fc2d", M=[[2.0, 0.0], [0.0, 1.0]], q=[-4.0, 3.0], mu=[0.5])
    ...     problem = nsds.solvers.read_contact_problem(file)
    >>> problem.name, nsds.solvers.solve_fc2d(problem.W, problem.q, problem.mu).r.tolist()
    ('pressed', [2.0, -1.0])
    """
    path = path_of("read_contact_problem", file)
    owner, name = f"read_contact_problem({path.name})", path.stem
    try:
        kind, field = read_arrays(owner, file, _STORED)
    except (BadZipFile, EOFError, KeyError, AttributeError) as error:
        raise ValueError(f"{owner}: not an .npz file of a contact problem: {error}") from None
    mu, mu_r = field["mu"], field.get("mu_r")
    if kind[0] == "g":
        problem = ContactProblem(name, None, None, mu, mu_r, field["M"], field["H"], field["q"], field["b"])
    else:
        problem = ContactProblem(name, field["M"], field["q"], mu, mu_r)
    d = int(kind[-2]) if mu_r is None else 2 * int(kind[-2]) - 1
    size = np.size(field["b" if kind[0] == "g" else "q"])
    if size != d * problem.n_contacts:
        raise ValueError(
            f"{owner}: a {kind} problem of {problem.n_contacts} coefficients mu must have {d * problem.n_contacts} rows, got {size}"
        )
    f = field["q"]
    for name, value, shape in (("M", field["M"], (f.size, f.size)), ("H", field.get("H"), (f.size, size)), ("mu_r", mu_r, mu.shape)):
        if value is not None and np.shape(value) != shape:
            raise ValueError(f"{owner}: {name} must have shape {shape}, got {np.shape(value)}")
    return problem
