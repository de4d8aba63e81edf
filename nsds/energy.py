"""After the run: where the energy went."""

import numpy as np

from nsds import _checks
from nsds.functions import evaluate_at, function_address
from nsds.kinds import LAGRANGIAN, SYSTEMS, family
from nsds.layout import state_fields
from nsds.records import model_of, stored_sparse

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
