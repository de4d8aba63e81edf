"""Whether a run can be trusted: failed steps, residuals, how well the laws hold, energy balance."""

import sys

import numpy as np

from nsds import _checks
from nsds.model.functions import offered
from nsds.model.kinds import FIRST_ORDER, RELATIONS, family
from nsds.model.laws import LAWS, is_force, rows_of_contact
from nsds.model.records import model_of
from nsds.model.validation import valid
from nsds.results.energy import WORKS, energy
from nsds.results.trajectories import is_mechanical, of_system, require_rows
from nsds.status import INEXACT, advice, has_failed


def report(trajectory, system=None, *, theta=0.5, file=None, functions=None):
    """Print what a careful user asks first: failed steps, worst residual, penetration, impacts, energy balance.

    Penetration and impacts are those of the normal constraints, and of bilateral ones it says by how much they are violated. Of
    first-order systems, instead, the ranges of y and lambda, and by how much the law is violated at worst. Without the system, which
    tells what the law is, nothing is assumed of it: only these ranges are shown.

    Parameters
    ----------
    trajectory : numpy.ndarray (rows,) or (members, rows)
        From `nsds.simulate`.
    system : numpy.ndarray, optional
        The record that was simulated; with it the energy balance is shown (one system, every step saved), and how well laws hold.
    theta : float
        The one of the run, for the energy balance.
    file : text stream, optional
        Standard output by default.
    functions : sequence of functions, optional
        See `nsds.simulate`.

    Raises
    ------
    TypeError, ValueError
        Not a trajectory or record, or those of different systems.

    Examples
    --------
    >>> import nsds
    >>> system = nsds.examples.bouncing_ball()
    >>> nsds.report(nsds.simulate(system, t_end=1.0, h=5e-3), system)  # doctest: +ELLIPSIS
    200 steps, t = 0 to 1, 201 rows
    failed steps      none
    worst residual    0.0e+00
    floor             no penetration, 1 impact, in contact 0.5 % of the rows
    energy            0 -> 0.9431 J: forces 2.805, contact -1.862, balance within ...
    """
    offered("report", functions)
    out = sys.stdout if file is None else file
    if not callable(getattr(out, "write", None)):
        raise TypeError(f"report: file must be a text stream, got {_checks.shortened(file)}")
    theta = _checks.number("report", "theta", theta, 0.0, 1.0)
    trajectory = require_rows("report", trajectory, (1, 2))
    if system is not None:
        system = valid("report", system)
        if np.shape(system) != trajectory.shape[:-1]:
            raise ValueError(
                f"report: system must be the record that was simulated: it has the shape {np.shape(system)}, "
                f"the trajectory {trajectory.shape}"
            )
    trajectory = of_system("report", trajectory, system)
    rows = np.atleast_2d(trajectory)
    members = "" if trajectory.ndim == 1 else f"{rows.shape[0]} members, "
    steps = int((rows["step"][:, -1] - rows["step"][:, 0]).max())
    print(f"{members}{steps} steps, t = {rows['t'][0, 0]:g} to {np.nanmax(rows['t']):g}, {rows.shape[1]} rows", file=out)
    print(f"failed steps      {_failures(rows)}", file=out)
    if (rows["status"] == INEXACT).any():
        print(f"inexact steps     {_inexact(rows)}", file=out)
    worst = np.unravel_index(np.nanargmax(rows["residual"]), rows.shape)
    at = f" at t = {rows['t'][worst]:g}" if rows["residual"][worst] > 0 else ""
    print(f"worst residual    {rows['residual'][worst]:.1e}{at}", file=out)
    mechanical = is_mechanical(trajectory) if system is None else family(model_of(system)) != FIRST_ORDER
    for name in rows.dtype.names:
        part = rows.dtype[name].base
        if part.names and {"n", "normal"} <= set(part.names):
            print(f"{name:<17} {_collisions(rows, name)}", file=out)
        elif part.names and {"y", "lambda"} <= set(part.names):
            print(f"{name:<17} {_interaction(rows, name, system, mechanical)}", file=out)
    if mechanical and trajectory.ndim == 1:
        balance = "pass the system to see the balance" if system is None else _balance(trajectory, system, theta)
        print(f"energy            {balance}", file=out)


def _failures(rows):
    failed = np.argwhere(has_failed(rows["status"]))
    if not len(failed):
        return "none"
    first = rows[tuple(failed[0])]
    return f"in {len(failed)} rows, first at t = {first['t']:g}: {advice(first['status'])}"


def _inexact(rows):
    """What one line says of rows that were solved less well than asked."""
    found = np.argwhere(rows["status"] == INEXACT)
    first, residuals = rows[tuple(found[0])], rows["residual"][tuple(found.T)]
    size = f"residual {np.median(residuals):.1e}, at most {residuals.max():.1e}"
    return f"{len(found)} of {rows.size} rows, first at t = {first['t']:g}, {size}"


def _collisions(rows, name):
    """What one line says of detected contacts: how many there are and press, and how deep the deepest is."""
    n, y, lam = (rows[name][key] for key in ("n", "y", "lambda"))
    depth, where = _worst(rows, np.maximum(-y, 0), 0)
    pressing = (lam.reshape(*y.shape, -1)[..., 0] > 0).sum(axis=2)
    gap = f"penetration {depth:.1e}{where}" if depth > 0 else "no penetration"
    return f"{gap}, {n.max()} contacts at most, {pressing.max()} pressing, {pressing.mean():.1f} on average"


def _interaction(rows, name, system, mechanical):
    """What one line says of an interaction: how well its law holds, or ranges alone where the law is not known."""
    y, lam = (rows[name][key].reshape(*rows.shape, -1) for key in ("y", "lambda"))
    start = 0 if mechanical else 1  # in first-order systems row 0 need not be consistent
    ranges = ", ".join(f"{key} in {_range(value, start)}" for key, value in (("y", y), ("lambda", lam)))
    if system is None:
        return f"{ranges}; pass the system to see how well its law holds"
    _, relation, law, *_ = next(line for line in model_of(system) if line[0] == name)
    part = np.atleast_1d(system)[name]
    if not mechanical:
        return f"{ranges}, {law} {_violated(rows, _violation(rows[name], part, law), start)}"
    start = int(is_force(law, relation, "D" in part.dtype.names))  # row 0 holds y for lambda = 0
    if LAWS[law].is_bounded or LAWS[law].is_given:
        known = "ydot" in rows[name].dtype.names
        return f"{ranges}, ydot in {_range(rows[name]['ydot'], start)}" if known else ranges
    if RELATIONS[relation].role == "drive":  # there is no y
        if "ydot" not in rows[name].dtype.names:
            return f"{ranges}; ydot, which tells how well the velocity is kept, was not recorded"
        return f"velocity {_violated(rows, abs(rows[name]['ydot']), 1)}"
    if LAWS[law].bilateral:
        return _violated(rows, abs(y), start)
    normal = slice(None, None, rows_of_contact(law, part.dtype))
    depth, where = _worst(rows, np.maximum(-y[..., normal], 0), start)
    pressing = np.nan_to_num(lam[..., normal]) != 0
    times = int((pressing[:, 1:] & ~pressing[:, :-1]).sum())
    closed = f"closed {times} time{'s' * (times != 1)}" if start else f"{times} impact{'s' * (times != 1)}"
    gap = f"penetration {depth:.1e}{where}" if depth > 0 else "no penetration"
    return f"{gap}, {closed}, in contact {100 * pressing.mean():.1f} % of the rows"


def _range(values, start):
    """Smallest and largest, of rows from start on."""
    values = values[:, min(start, values.shape[1] - 1) :]
    values = values[~np.isnan(values)]
    return f"[{values.min():.4g}, {values.max():.4g}]" if values.size else "[nan, nan]"


def _worst(rows, size, start):
    """(largest, where) of what is not negative, of rows from start on; where in words."""
    start = min(start, rows.shape[1] - 1)
    size = np.where(np.isnan(size), -1.0, size).reshape(*rows.shape, -1)[:, start:].max(axis=2)
    member, row = np.unravel_index(size.argmax(), size.shape)
    of_member = f" of member {member}" if rows.shape[0] > 1 else ""
    return size.max() if size.max() >= 0 else np.nan, f" at t = {rows['t'][member, row + start]:g}{of_member}"


def _violated(rows, size, start):
    worst, where = _worst(rows, size, start)
    return f"violated by at most {worst:.1e}" + (f",{where}" if worst > 0 else "")


def _violation(state, part, law):
    """How far rows are from ``-y ∈ N_[lower,upper](lambda)``, or from the equations of a cone: ``|lambda - P(lambda - y)|``."""
    n_members, n_rows = state.shape[:2]
    part = part.reshape(n_members, 1, -1)  # elements last, then their constraints
    y, lam = (state[key].reshape(n_members, n_rows, part.shape[2], -1) for key in ("y", "lambda"))
    if LAWS[law].form == "cone":
        mu = state["mu"].reshape(n_members, n_rows, part.shape[2], -1)
        slack = np.einsum("...ki,...i->...k", part["cone_G"], lam) - part["cone_g"]
        gap = y - np.einsum("...ki,...k->...i", part["cone_G"], mu)
        return np.concatenate([abs(gap), abs(np.minimum(mu, slack))], axis=-1).max(axis=(2, 3))
    lower, upper = LAWS[law].bounds(part, y.shape[3])
    return abs(lam - np.clip(lam - y, lower, upper)).max(axis=(2, 3))


def _balance(trajectory, system, theta):
    try:
        ledger = energy(trajectory, system, theta)
    except ValueError as error:
        return f"not shown: {str(error).removeprefix('energy: ')}"
    total = ledger["kinetic"] + ledger["potential"]
    works = [f"{name} {ledger[name].sum():.4g}" for name in WORKS if ledger[name].any()]
    gap = abs(ledger["numerical"]).max()
    return f"{total[0]:.4g} -> {total[-1]:.4g} J: {', '.join(works) or 'no work'}, balance within {gap:.1e}"
