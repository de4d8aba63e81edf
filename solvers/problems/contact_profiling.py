"""Methods for contact problems compared: every method on every problem of a folder or list, as one structured array."""

from pathlib import Path

import numpy as np

from nsds import _checks
from nsds.solvers import table
from nsds.solvers.contact import forms
from nsds.solvers.contact.signature import solve_repeatedly
from nsds.solvers.faces import contact
from nsds.solvers.problems.contact_problem import ContactProblem, checked_problem, read_contact_problem
from nsds.solvers.problems.fclib import read_fclib
from nsds.solvers.problems.profiling import collected, compared, fastest
from nsds.status import CONVERGED, UNSUITED

PROFILE = np.dtype(
    [
        ("problem", "U48"), ("method", "U16"), ("n_contacts", "<i8"), ("status", "<i8"), ("n_iter", "<i8"), ("res_q", "<f8"),
        ("res_rho", "<f8"), ("time", "<f8"),
    ]
)  # fmt: skip
_READERS = {".npz": read_contact_problem, ".hdf5": lambda file: read_fclib(file).problem}


def profile_contacts(problems, methods=None, *, tol=1e-8, max_iter=None, seconds=0.02):
    """Run methods over contact problems, each from the guess 0.

    Parameters
    ----------
    problems : str, Path or sequence of ContactProblem
        A folder, searched with its subfolders for files that `read_contact_problem` (``.npz``) and `read_fclib` (``.hdf5``) read, or
        problems; what has no W is reduced first.
    methods : sequence of str, optional
        Names from `nsds.solvers.methods`, for any kind of contacts, or records from `nsds.solvers.solver`; all methods, if not given.
    tol, max_iter
        Options of those that are names, as in `solve_fc3d`.
    seconds : float
        Time to spend on the repetitions of a problem and a method, of which the fastest counts; 0: no repetition, 3600 at most.

    Returns
    -------
    numpy.ndarray (problems, methods)
        Structured: problem, method, n_contacts, status, n_iter, res_q, res_rho, and time (s) of one solution in compiled code, reduction,
        conversions and allocations not included. Where a method does not treat the problem's number of components, status is UNSUITED and
        the residuals and the time are NaN. `nsds.plotting.performance_profile` draws it.

    Raises
    ------
    ValueError, TypeError
        No problems; a file that cannot be read or a problem that is not one; an unknown method.

    Examples
    --------
    >>> import nsds
    >>> problems = [nsds.solvers.generate_contacts("pile", 6, d=d) for d in (2, 3)]
    >>> result = nsds.solvers.profile_contacts(problems, ["auto", "lemke"], seconds=0)
    >>> result["n_contacts"].tolist(), result["status"].tolist()
    ([[6, 6], [6, 6]], [[0, 0], [0, 6]])
    """
    owner = "profile_contacts"
    if isinstance(problems, ContactProblem) or not (isinstance(problems, (str, Path)) or hasattr(problems, "__len__")):
        raise TypeError(f"{owner}: problems must be a folder or a sequence of ContactProblem, got {type(problems).__name__}")
    problems = collected(owner, problems, _READERS)
    for problem in problems:
        checked_problem(owner, problem)
    if methods is not None and not isinstance(methods, (list, tuple)):
        given = _checks.shortened(methods)
        raise TypeError(f"{owner}: methods must be a list of names or of records from nsds.solvers.solver, got {given}")
    chosen = [
        method if table.is_record(method) else table.record_of(owner, method, tol, max_iter)
        for method in methods or table.methods("fc3d") | table.methods("fc2d")
    ]
    for name in (record["method"].item().decode() for record in chosen):
        if not any(table.treats(name, kind) for kind in ("fc2d", "fc3d")):
            raise ValueError(f"{owner}: {name!r} is no method for contacts")
    prepared = [(problem.name, *_reduced(owner, problem)) for problem in problems]
    return compared(owner, prepared, chosen, PROFILE, seconds, _measured)


def _reduced(owner, problem):
    """(kind, `nsds.solvers.contact.signature.Problem`) of a `ContactProblem`."""
    owner, mu_r = f"{owner}({problem.name})", 0.0 if problem.mu_r is None else problem.mu_r
    sizes = (2, 3) if problem.mu_r is None else (3, 5)
    if problem.d not in sizes:
        raise ValueError(f"{owner}: contacts must have {sizes[0]} or {sizes[1]} components, got {problem.d} for each coefficient mu")
    kind = contact.kind_of(problem.d, problem.mu_r is not None)
    W, q = problem.W, problem.q
    if W is None:
        M, H, f, w = forms.global_matrices(owner, problem.d, *problem[-4:])
        solve_M, inverse_H = forms.inverse_times(owner, M, H)
        W, q = H.T @ inverse_H, H.T @ solve_M(f) + w
    return kind, contact.contacts(owner, kind, W, q, problem.mu, mu_r)


def _measured(prepared, record, seconds):
    """One row of a profile."""
    name, kind, problem = prepared
    method = record["method"].item().decode()
    row = name, method, problem.disk.size
    if not table.treats(method, kind):
        return *row, UNSUITED, 0, np.nan, np.nan, np.nan
    if not problem.disk.size:
        return *row, CONVERGED, 0, 0.0, 0.0, 0.0
    method, options = table.chosen(record, kind)
    arguments = table.arguments_of(method, options, problem, problem.d, np.zeros(problem.q.size))
    status, least = fastest(seconds, method.name != "nsgs_parallel", solve_repeatedly, arguments)
    n_iter, res_rho = arguments[-3][:2]
    return *row, status, n_iter, contact.mixed_residual_of(problem, arguments[-5]), res_rho, least
