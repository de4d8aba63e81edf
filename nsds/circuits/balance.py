"""Balances of a circuit's run: Kirchhoff's current law at its nodes, and energy."""

import numpy as np

from nsds import _checks
from nsds.circuits.readings import NOTHING, Readings
from nsds.status import is_event

WORKS = ("sources", "resistors", "devices")
LEDGER = np.dtype([(name, "<f8") for name in ("t", "stored", *WORKS, "numerical")])
_WORK_OF = {"R": "resistors"} | dict.fromkeys("DSW", "devices") | dict.fromkeys("VIEFGHB", "sources")  # by the first letter of a name


def energy(system, trajectory, theta=1.0):
    """Energy ledger of a circuit's trajectory: stored energy at each row, and the work done since the row before.

    ``d stored = sources + resistors + devices + numerical``, each positive where it puts energy into the circuit:

    - stored ``C v^2 / 2`` of capacitors and ``i^T L i / 2`` of inductors, with what couples them;
    - sources those of voltage and current, controlled ones and op-amps among them;
    - resistors ``-R i^2``, and devices what diodes and switches take, by their Ron, Roff and Vfwd: nothing where they are ideal;
    - numerical, the remainder. Works of time stepping are those of its equation, ``h v . i`` at ``x_theta``, so that numerical is
      the dissipation of the scheme, ``-(theta - 1/2) (C dv^2 + di^T L di)``, but for loops and cut sets of C, L and sources;
      with gamma = 1 and theta < 1 there is a part of that order in devices, of which v and i are then those of different times.
      Under `nsds.event_driven` they are sums over rows, with powers linear between rows: numerical is their error, O(h^2).

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        Record of `nsds.circuit`.
    trajectory : numpy.ndarray (rows,)
        Result of `nsds.simulate` for it, every step saved.
    theta : float
        The one of `nsds.euler_moreau`, with gamma = 1 or ``gamma_for_relation``; `nsds.event_driven` has none.

    Returns
    -------
    numpy.ndarray (rows,)
        Fields t, stored, and work sources, resistors, devices, numerical since the row before (J).

    Raises
    ------
    TypeError, ValueError
        Not a circuit and its trajectory; steps between rows are missing.

    Examples
    --------
    >>> import nsds
    >>> circuit = nsds.circuit([("V1", "in", 0, 5.0), ("R1", "in", "out", 1e3), ("C1", "out", 0, 1e-6)])
    >>> ledger = nsds.circuits.energy(circuit, nsds.simulate(circuit, t_end=1e-2, h=1e-5, scheme=nsds.event_driven()))
    >>> float(ledger["stored"][-1].round(9)), float(ledger["sources"].sum().round(8))  # C V^2 / 2, and C V^2
    (1.2499e-05, 2.5e-05)
    """
    # 1. arguments; every step must be there
    theta = _checks.number("energy", "theta", theta, 0.0, 1.0)
    of = Readings("energy", system, trajectory)
    of.require_all_readable()
    rows = of.trajectory
    if (np.diff(rows["step"]) > 1).any():
        raise ValueError("energy: needs every step saved (save_every=1)")
    # 2. power of each element: mean over a row under events, else at theta, with lambda of the step
    h, before, after = np.diff(rows["t"])[:, None], of.known_at(True), of.known
    if is_event(rows["status"]).any():
        power = (_power(of, before[1:]) + _power(of, after[:-1])) / 2
    else:
        known = theta * before[1:] + (1.0 - theta) * before[:-1]
        known[:, of.of_lambda] = before[1:, of.of_lambda]  # of the step
        power = _power(of, known)
    # 3. ledger; of a diode with a switch beside it the current counts once
    work, ledger = h * power, np.zeros(rows.size, LEDGER)
    ledger["t"] = rows["t"]
    ledger["stored"] = _stored(of)
    for place, name in of.distinct_elements():
        kind = name.rpartition(".")[2][0].upper()
        if kind in _WORK_OF:
            ledger[_WORK_OF[kind]][1:] -= work[:, place]
    ledger["numerical"][1:] = np.diff(ledger["stored"]) - sum(ledger[name][1:] for name in WORKS)
    return ledger


def _power(of, known):
    """Power that each element absorbs (rows, elements)."""
    return of.voltages_across(known) * (known @ of.currents)


def _stored(of):
    """``sum value s_a s_b / 2`` over pairs of elements, s the voltage of a capacitor and the current of an inductor."""
    v, i = of.voltages_across(of.known), of.known @ of.currents
    total = np.zeros(of.trajectory.size)
    for (a, b), value in zip(of.names["stores"], of.names["stored"], strict=True):
        total += value / 2 * (v[:, a] * v[:, b] if of.element_names[a].rpartition(".")[2][0] in "cC" else i[:, a] * i[:, b])
    return total


def unbalanced(system, trajectory):
    """(largest sum of currents at a node, relative to those that cancel there; name of the node)."""
    of = Readings("report", system, trajectory)
    of.require_all_readable()
    i, nodes = of.known @ of.currents, of.node_names
    total, size = np.zeros((2, len(nodes), of.trajectory.size))
    for place, _ in of.distinct_elements():
        for node, sign in zip(of.names["terminals"][place], (1, -1), strict=True):
            total[node] += sign * i[:, place]
            size[node] += abs(i[:, place])
    relative = abs(total).max(axis=1) / np.maximum(np.maximum(size.max(axis=1), NOTHING * size.max()), np.finfo(float).tiny)
    return relative.max(), nodes[relative.argmax()]
