"""Whether a run can be trusted: failed steps, residuals, how well the laws hold, energy balance."""

import sys

import numpy as np

from nsds.energy import energy
from nsds.laws import bounds
from nsds.records import model_of
from nsds.results import is_mechanical
from nsds.status import CONVERGED, advice


def report(trajectory, system=None, *, theta=0.5, file=None):
    """Print what a careful user asks first: failed steps, worst residual, penetration, impacts, energy balance.

    Of first-order systems, instead of the last three, the ranges of y and lambda, and by how much the law is violated at worst.

    Parameters
    ----------
    trajectory : numpy.ndarray (rows,) or (members, rows)
        From `nsds.simulate`.
    system : numpy.ndarray, optional
        The record that was simulated; with it the energy balance is shown (one system, every step saved), and the violation of laws.
    theta : float
        The one of the run, for the energy balance.
    file : text stream, optional
        Standard output by default.

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
    out = sys.stdout if file is None else file
    rows = np.atleast_2d(trajectory)
    members = "" if trajectory.ndim == 1 else f"{rows.shape[0]} members, "
    steps = int((rows["step"][:, -1] - rows["step"][:, 0]).max())
    print(f"{members}{steps} steps, t = {rows['t'][0, 0]:g} to {np.nanmax(rows['t']):g}, {rows.shape[1]} rows", file=out)
    print(f"failed steps      {_failures(rows)}", file=out)
    worst = np.unravel_index(np.nanargmax(rows["residual"]), rows.shape)
    at = f" at t = {rows['t'][worst]:g}" if rows["residual"][worst] > 0 else ""
    print(f"worst residual    {rows['residual'][worst]:.1e}{at}", file=out)
    mechanical = is_mechanical(trajectory)
    for name in rows.dtype.names:
        part = rows.dtype[name].base
        if part.names and {"y", "lambda"} <= set(part.names):
            print(f"{name:<17} {_contact(rows, name) if mechanical else _output(rows, name, system)}", file=out)
    if mechanical and trajectory.ndim == 1:
        balance = "pass the system to see the balance" if system is None else _balance(trajectory, system, theta)
        print(f"energy            {balance}", file=out)


def _failures(rows):
    failed = np.argwhere(rows["status"] != CONVERGED)
    if not len(failed):
        return "none"
    first = rows[tuple(failed[0])]
    return f"in {len(failed)} rows, first at t = {first['t']:g}: {advice(first['status'])}"


def _contact(rows, name):
    y, lam = (rows[name][key].reshape(*rows.shape, -1) for key in ("y", "lambda"))
    if (lam < 0).any():  # only a bilateral constraint pulls
        member, row, _ = np.unravel_index(np.nanargmax(abs(y)), y.shape)
        return f"violated by at most {np.nanmax(abs(y)):.1e}, at t = {rows['t'][member, row]:g}"
    pressing = np.nan_to_num(lam) != 0
    impacts = int((pressing[:, 1:] & ~pressing[:, :-1]).sum())
    member, row, _ = np.unravel_index(np.nanargmin(y), y.shape)
    depth = -float(np.nanmin(y))
    where = f" of member {member}" if rows.shape[0] > 1 else ""
    gap = f"penetration {depth:.1e} at t = {rows['t'][member, row]:g}{where}" if depth > 0 else "no penetration"
    return f"{gap}, {impacts} impact{'s' * (impacts != 1)}, in contact {100 * pressing.mean():.1f} % of the rows"


def _output(rows, name, system):
    y, lam = (rows[name][key].reshape(*rows.shape, -1)[:, 1:] for key in ("y", "lambda"))  # row 0 need not be consistent
    ranges = ", ".join(f"{key} in [{np.nanmin(v):.4g}, {np.nanmax(v):.4g}]" for key, v in (("y", y), ("lambda", lam)))
    if system is None:
        return f"{ranges}; pass the system to see how well its law holds"
    law = next(line[2] for line in model_of(system) if line[0] == name)
    violation = _violation(rows[name][:, 1:], np.atleast_1d(system)[name], law)
    member, row = np.unravel_index(np.nanargmax(violation), violation.shape)
    at = f", at t = {rows['t'][member, row + 1]:g}" if violation[member, row] > 0 else ""
    return f"{ranges}, {law} violated by at most {violation[member, row]:.1e}{at}"


def _violation(state, part, law):
    """How far rows are from ``-y ∈ N_[lower,upper](lambda)``, or from the equations of a cone: ``|lambda - P(lambda - y)|``."""
    n_members, n_rows = state.shape[:2]
    part = part.reshape(n_members, 1, -1)  # elements last, then their constraints
    y, lam = (state[key].reshape(n_members, n_rows, part.shape[2], -1) for key in ("y", "lambda"))
    if law == "normal_cone":
        mu = state["mu"].reshape(n_members, n_rows, part.shape[2], -1)
        slack = np.einsum("...ki,...i->...k", part["cone_G"], lam) - part["cone_g"]
        gap = y - np.einsum("...ki,...k->...i", part["cone_G"], mu)
        return np.concatenate([abs(gap), abs(np.minimum(mu, slack))], axis=-1).max(axis=(2, 3))
    lower, upper = bounds(part, law, y.shape[3])
    return abs(lam - np.clip(lam - y, lower, upper)).max(axis=(2, 3))


def _balance(trajectory, system, theta):
    try:
        ledger = energy(trajectory, system, theta)
    except ValueError as error:
        return f"not shown: {str(error).partition(': ')[2]}"
    total = ledger["kinetic"] + ledger["potential"]
    works = [f"{name} {ledger[name].sum():.4g}" for name in ("forces", "damping", "contact") if ledger[name].any()]
    gap = abs(ledger["numerical"]).max()
    return f"{total[0]:.4g} -> {total[-1]:.4g} J: {', '.join(works) or 'no work'}, balance within {gap:.1e}"
