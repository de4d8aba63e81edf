"""Sources and switches of circuits in event-driven runs: sources are states of their own, whose motion is linear between their corners.

A source u has two states, behind those of the system: a sine has ``u = offset + a``, ``a' = -damping a + omega b`` and ``b' = -omega a -
damping b``; straight pieces have ``u = a``, ``a' = b``, ``b' = 0``, where a and b are set again at corners. The value of a source at a time
is given by its formula, so that no error accumulates. Switches change the bounds of lambda at corners, and when their controls come to the
threshold.
"""

import math

import numpy as np

from nsds._jit import kernel, tiny, view
from nsds.circuits.waveforms import (
    CONSTANTS,
    SIN,
    SWITCH,
    SWITCH_HEAD,
    SWITCHES,
    WAVES,
    K,
    bound,
    is_closed,
    next_switch,
    next_wave,
    wave,
    weights_of,
)  # fmt: skip
from nsds.maths.times import is_later
from nsds.model.records import stored_sparse
from nsds.schemes.first_order.functions import CONTRADICTION
from nsds.status import IMPULSE, INFEASIBLE, advice

_SAMPLES = 64  # of a period of a sine, in which a control comes to its threshold
_HALVINGS = 60
_OVER = 40.0  # time constants after which a sine is below rounding


def cause_in_circuit(record, row, status):
    """Reason for a failure in a row of the devices, by the names of the netlist: the device, and the quantity that would jump."""
    owners, states = (record["names"][f"{what}_names"].item().decode().split() for what in ("row", "state"))
    device, said = owners[row] if row < len(owners) else "devices", advice(status)
    if status == INFEASIBLE:
        return f"{device}: {said}: {CONTRADICTION}"
    if status != IMPULSE:
        return f"{device}: {said}"
    C = record["devices"]["C"]
    weights = stored_sparse(C, len(states)).toarray()[row] if C.dtype.names else C[row]
    jumping = [name for name, c in zip(states, weights, strict=False) if c]
    ways = {"C": "a capacitor is short-circuited", "L": "an inductor has no path left"}
    reasons = [ways[kind] for kind in "CL" if kind in {name.rpartition(".")[2][0].upper() for name in jumping}]
    if not reasons:
        return f"{device}: {CONTRADICTION}"
    return f"{device}: charges or fluxes would jump, of {', '.join(jumping)}: {', or '.join(reasons)}; nsds.euler_moreau lets them"


def augmented(record, C, A, B, mass):
    """Sparse (C, A, B, mass) and e, s of a circuit with the states of its sources; constants of y and of x' replace functions."""
    from scipy.sparse import block_array, block_diag, csc_array, csr_array, diags_array, eye_array, hstack, vstack

    def weights(z, n):
        starts, rows, *both = weights_of(z)
        return tuple(csc_array((each, rows.astype(np.int64), starts.astype(np.int64)), shape=(n, int(z[K]))) for each in both)

    n, m = A.shape[0], C.shape[0]
    # 1. weights of sources and of their rates, and constants
    part, devices = record["circuit"][0], record["devices"][0]
    z = devices["z"]
    k = int(z[K])
    W, W_rate = weights(z, m)
    e = devices["e"] if devices.dtype["e"].kind == "f" else z[int(z[CONSTANTS]) : int(z[CONSTANTS]) + m]
    U, U_rate, s = csc_array((n, k)), csc_array((n, k)), part["b"]
    if "z" in part.dtype.names:
        y = part["z"]
        U, U_rate = weights(y, n)
        s = y[int(y[CONSTANTS]) : int(y[CONSTANTS]) + n]
    # 2. motion of each source
    own, offset, at = np.zeros((k, 2, 2)), np.zeros(k), int(z[WAVES])
    for j in range(k):
        if z[at] == SIN:
            offset[j], omega, damping = z[at + 2], 2 * math.pi * z[at + 4], z[at + 6]
            own[j] = [[-damping, omega], [-omega, -damping]]
        else:
            own[j] = [[0.0, 1.0], [0.0, 0.0]]
        at = next_wave(at, z)

    def columns(U, U_rate):
        pairs = [U + U_rate @ diags_array(own[:, 0, 0]), U_rate @ diags_array(own[:, 0, 1])]
        return csr_array(hstack(pairs, format="csc")[:, np.arange(2 * k).reshape(2, k).T.reshape(-1)])

    # 3. system and sources together
    if k > 0:
        A = block_array([[A, mass @ columns(U, U_rate)], [None, block_diag(own)]]).tocsr()
        C, B = hstack([C, columns(W, W_rate)]).tocsr(), vstack([B, csr_array((2 * k, m))]).tocsr()
        mass = block_diag([mass, eye_array(2 * k)]).tocsr()
    s = np.append(s + U @ offset, np.zeros(2 * k))
    return C, A, B, mass, e + W @ offset, s


@kernel
def set_sources(t, is_left, slack, p, relations, memory):
    """States of all sources at t, before or after a step there; those that agree with a time within slack are kept.

    So the motion resolves an event in an edge of a nanosecond, for which t, late in a run, has too few digits.
    """
    work = memory.work
    z = view(memory.mem, relations[0].z, relations[0].n_z)
    at = int(z[WAVES])
    for j in range(int(z[K])):
        u, rate = wave(t, is_left, at, z)
        x = p.x + p.n_own + 2 * j
        a = u - z[at + 2] if z[at] == SIN else u
        if slack == 0.0 or abs(a - work[x]) > slack * abs(rate):
            work[x], work[x + 1] = a, rate
            if z[at] == SIN:
                omega = 2.0 * math.pi * z[at + 4]
                work[x + 1] = (rate + z[at + 6] * a) / omega if omega != 0.0 else 0.0
        at = next_wave(at, z)


@kernel
def _next_corner(t, z):
    """The first time after t at which straight pieces of a source meet, or a sine begins; infinity where there is none."""
    first, at = np.inf, int(z[WAVES])
    for _ in range(int(z[K])):
        if z[at] == SIN:
            first = min(first, z[at + 5]) if is_later(z[at + 5], t, 0.0) else first
        else:
            count, delay, period = (int(z[at + 1]) - 2) // 2, z[at + 2], z[at + 3]
            turns = max(math.floor((t - delay) / period), 0.0)
            for turn in range(3):
                for j in range(count):
                    time = delay + (turns + turn - 1.0) * period + z[at + 4 + 2 * j]
                    if turns + turn >= 1.0 and is_later(time, t, 0.0):
                        first = min(first, time)
        at = next_wave(at, z)
    return first if first < 1e300 else np.inf


@tiny
def _pace(t, at, z):
    """Rate at which the wave at z[at] curves from t on: of a sine its frequency or damping, 0 of what waits, is over, or is straight."""
    if z[at] != SIN or is_later(z[at + 5], t, 0.0) or z[at + 6] * (t - z[at + 5]) > _OVER:
        return 0.0
    return max(z[at + 4], abs(z[at + 6]))


@kernel
def _next_crossing(t, until, z):
    """First time in (t, until) at which a switch opens or closes, as its control crosses its threshold, else until.

    Between corners controls are linear, or contain sines: then they are sampled, and at most two crossings within a 64th of the period, or
    time constant, of the fastest are missed.
    """
    after_last = int(z[SWITCH])
    for _ in range(int(z[SWITCHES])):
        # 1. each switch: how fast its control curves, and the span to search
        s = after_last
        fastest, after_last = 0.0, next_switch(s, z)
        for e in range(s + SWITCH_HEAD, after_last, 2):
            fastest = max(fastest, _pace(t, int(z[e]), z)) if z[e + 1] != 0.0 else fastest
        span = until - t
        if fastest > 0.0:
            span = min(span, 2.0 / fastest)
            until = t + span
        if not span < np.inf:
            continue
        # 2. change of sign between samples, then bisection; at t itself the sign shortly after counts
        pieces = max(math.ceil(span * fastest * _SAMPLES), 1)
        low = t
        for k in range(pieces):
            high = t + span * (k + 1) / pieces
            before, after = is_closed(low, False, s, z), is_closed(high, True, s, z)
            if k == 0:
                before = is_closed(t + 1e-6 * (high - t), False, s, z)
            if before != after:
                left, right = low, high
                for _ in range(_HALVINGS):
                    middle = 0.5 * (left + right)
                    if is_closed(middle, False, s, z) == before:
                        left = middle
                    else:
                        right = middle
                until = min(until, right) if is_later(right, t, 0.0) else until
                break
            low = high
    return until


@kernel
def drive(t, p, relations, memory):
    """At a corner: sources after it, bounds of switches until the next one, and when that is."""
    work = memory.work
    z = view(memory.mem, relations[0].z, relations[0].n_z)
    set_sources(t, False, 0.0, p, relations, memory)
    work[p.corner] = _next_crossing(t, _next_corner(t, z), z)
    middle = t + (0.5 * (work[p.corner] - t) if work[p.corner] < np.inf else 1.0 + abs(t))
    s = int(z[SWITCH])
    for _ in range(int(z[SWITCHES])):
        i = int(z[s])
        closed = is_closed(middle, False, s, z)
        work[p.bounds_lower + i] = bound(z[s + 2]) if closed else work[p.open_lower + i]
        work[p.bounds_upper + i] = bound(z[s + 3]) if closed else work[p.open_upper + i]
        s = next_switch(s, z)
