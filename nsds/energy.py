"""After the run: where the energy went, and whether the run can be trusted."""

import sys

import numpy as np

from nsds import _checks
from nsds.functions import evaluate_at, function_address
from nsds.kinds import LAGRANGIAN, SYSTEMS, family
from nsds.layout import state_fields
from nsds.records import model_of, stored_sparse
from nsds.results import is_mechanical
from nsds.status import CONVERGED, advice

LEDGER = np.dtype([(name, "<f8") for name in ("t", "kinetic", "potential", "forces", "damping", "contact", "numerical")])


def energy(trajectory, system, theta=0.5):
    """Energy ledger of a trajectory: mechanical energy at each row, and the work done in each step.

    The discrete equation of motion (seed 003, eq. 10.14) times ``v_theta = theta v_{k+1} + (1-theta) v_k`` gives, exactly,
    ``d(kinetic + potential) = forces + damping + contact + numerical`` with forces ``h v_theta . F_theta``, damping
    ``-h v_theta . C v_theta``, contact ``v_theta . H^T lambda`` and numerical ``-(theta - 1/2) (dv . M dv + dq . K dq)``: nothing for
    theta = 1/2, dissipation for larger theta. ``numerical`` is computed as what the other terms leave over.

    Parameters
    ----------
    trajectory : numpy.ndarray (rows,)
        One system, every step saved, with the whole state.
    system : numpy.ndarray, shape ()
        The record that was simulated.
    theta : float
        The one of the run.

    Returns
    -------
    numpy.ndarray (rows,)
        Fields t, kinetic, potential (``q^T K q / 2``), and work forces, damping, contact, numerical of the step that ends at t (J).

    Raises
    ------
    ValueError
        Steps between rows are missing, or part of the state was not recorded.

    Examples
    --------
    >>> import nsds
    >>> system = nsds.examples.bouncing_ball(e=1.0)
    >>> ledger = nsds.energy(nsds.simulate(system, t_end=1.0, h=1e-3), system)
    >>> bool(abs(ledger["numerical"]).max() < 1e-12)
    True
    """
    if family(model_of(system)) != LAGRANGIAN:
        raise ValueError("energy: kinetic and potential energy are those of Lagrangian systems; this one is first-order")
    theta = _checks.number("energy", "theta", theta, 0.0, 1.0)
    if trajectory.ndim != 1 or (np.diff(trajectory["step"]) != 1).any():
        raise ValueError("energy: needs the trajectory of one system with every step saved (save_every=1)")
    for part, names in state_fields(system):
        if part not in trajectory.dtype.names or not set(names) <= set(trajectory.dtype[part].base.names):
            raise ValueError(f"energy: the trajectory must hold the state of part '{part}'")
    ledger = np.zeros(trajectory.shape, LEDGER)
    ledger["t"] = t = trajectory["t"]
    for line in model_of(system):
        if line[1] in SYSTEMS:
            _add_system(ledger, trajectory[line[0]], system[line[0]], t, theta)
        else:
            lam, ydot = trajectory[line[0]]["lambda"], trajectory[line[0]]["ydot"]
            if "D" in system.dtype[line[0]].base.names:
                ydot = ydot - _compliant_part(system[line[0]]["D"], lam)
            work = lam[1:] * (theta * ydot[1:] + (1 - theta) * ydot[:-1])
            ledger["contact"][1:] += work.reshape(len(t) - 1, -1).sum(axis=1)
    change = np.diff(ledger["kinetic"] + ledger["potential"])
    ledger["numerical"][1:] = change - ledger["forces"][1:] - ledger["damping"][1:] - ledger["contact"][1:]
    return ledger


def _add_system(ledger, state, part, t, theta):
    q, v = (np.asarray(state[name]).reshape(len(t), -1, state[name].shape[-1]) for name in "qv")
    part = part.reshape(-1)
    h = np.diff(t)[:, None, None]
    v_theta = theta * v[1:] + (1 - theta) * v[:-1]
    for e in range(part.size):
        ledger["kinetic"] += (v[:, e] * _times(part[e]["M"], v[:, e])).sum(axis=1) / 2
        if "K" in part.dtype.names:
            ledger["potential"] += (q[:, e] * _times(part[e]["K"], q[:, e])).sum(axis=1) / 2
        if "C" in part.dtype.names:
            ledger["damping"][1:] -= (h[:, 0] * v_theta[:, e] * _times(part[e]["C"], v_theta[:, e])).sum(axis=1)
        if "fext" in part.dtype.names:
            F = _force(part[e], t)
            ledger["forces"][1:] += (h[:, 0] * v_theta[:, e] * (theta * F[1:] + (1 - theta) * F[:-1])).sum(axis=1)


def _times(matrix, x):
    """Rows ``matrix @ x[k]`` for a stored diagonal, dense or compressed-row matrix."""
    if matrix.dtype.names:
        return (stored_sparse(matrix, x.shape[1]) @ x.T).T
    return x * matrix if matrix.ndim == 1 else x @ matrix.T


def _force(part, t):
    F = np.empty((t.size, part["q"].size))
    if part["fext"].dtype.kind == "S":
        z = np.ascontiguousarray(part["z"]) if "z" in part.dtype.names else np.zeros(0)
        address = np.uintp(function_address(part["fext"].decode(), "lagrangian_linear", "fext"))
        evaluate_at(address, np.ascontiguousarray(t), np.zeros(0), np.zeros(0), z, F)
    else:
        F[:] = part["fext"]
    return F


def _compliant_part(D, lam):
    """``D lambda`` of every row: the part of ydot that does not move the bodies."""
    product = np.einsum("...ij,k...j->k...i", D, lam.reshape(lam.shape[0], *D.shape[:-1]))
    return product.reshape(lam.shape)


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
    lower, upper = 0.0, np.inf
    if law == "relay":
        lower, upper = (part[key].reshape(*part.shape, -1) for key in ("lower", "upper"))
    elif law == "equality":
        lower = -np.inf
    elif law == "mixed_complementarity":
        lower = np.where(np.arange(y.shape[3]) < part["n_equalities"][..., None], -np.inf, 0.0)
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
