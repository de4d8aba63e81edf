"""Report on a run: failed steps, residuals, violation of the laws, energy balance."""

import sys

import numpy as np

from nsds import _checks
from nsds.circuits import balance
from nsds.model.functions import offered
from nsds.model.laws import LAWS, is_force, rows_of_contact
from nsds.model.records import model_of
from nsds.model.system_kinds import FIRST_ORDER, NAMES, RELATIONS, collisions_of, family, split
from nsds.model.validation import valid
from nsds.results.contacts import intervals_of
from nsds.results.energy import WORKS, along, energy
from nsds.results.trajectories import left_limits, of_system, require_rows
from nsds.status import INEXACT, advice, has_failed, is_event


def report(system, trajectory, *, theta=None, file=None, functions=None):
    """Prints a summary of a run: failed steps, worst residual, penetration, impacts, energy balance.

    Residuals have no unit: those of contacts are velocities by which these miss their laws, relative to the velocities that all of them
    would have without impulses. `nsds.one_step_problems` tells them in metres a second.

    Of contacts: the deepest penetration, the number of impacts and the largest impulse, for how long they were kept closed, in how many
    intervals (`nsds.contact_intervals`), and the largest lambda / h there, a force (of `nsds.event_driven` lambda itself). All of normal
    constraints, in SI units, for a gap that is a length (of stops of angles: rad, N m s and N m). Of bilateral constraints it says by how
    much they are violated. Of first-order systems, instead, the ranges of y and lambda, and by how much the law is violated at worst; of
    circuits by how much diodes, switches and op-amps violate theirs, the largest sum of currents at a node beside those that cancel there,
    and the energy of `nsds.circuits.energy`. Of bodies that come and go (``alive``): how many, and which was born deepest in another.

    Parameters
    ----------
    system : numpy.ndarray
        The record, or ensemble, that was simulated; of a run in a file `nsds.read_system` gives it.
    trajectory : numpy.ndarray (rows,) or (members, rows)
        Result of `nsds.simulate` for it; the energy balance is that of one system with every step saved.
    theta : float, optional
        The one of the run, for the energy balance: 1/2 if not given, of circuits 1, as of the default schemes.
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
    >>> nsds.report(system, nsds.simulate(system, t_end=1.0, h=5e-3))  # doctest: +ELLIPSIS
    200 steps, t = 0 to 1 s, 201 rows
    failed steps      none
    worst residual    0.0e+00
    floor             no penetration; 1 impact, impulse up to 8.44 N s; never closed for longer than a step
    energy            9.81 -> 7.948 J: contact -1.862, balance within ...
    """
    # 1. arguments
    offered("report", functions)
    out = sys.stdout if file is None else file
    try:
        out.write("")
    except (AttributeError, TypeError):  # also of a stream of bytes
        raise TypeError(f"report: file must be a text stream, got {_checks.shortened(file)}") from None
    theta = None if theta is None else _checks.number("report", "theta", theta, 0.0, 1.0)
    system, trajectory = valid("report", system), require_rows("report", trajectory, (1, 2))
    if np.shape(system) != trajectory.shape[:-1]:
        raise ValueError(
            f"report: system must be the record that was simulated: it has the shape {np.shape(system)}, the trajectory {trajectory.shape}"
        )
    trajectory = of_system("report", system, trajectory)
    # 2. steps, failures, residuals
    rows = np.atleast_2d(trajectory)
    members = "" if trajectory.ndim == 1 else f"{rows.shape[0]} members, "
    steps = int((rows["step"][:, -1] - rows["step"][:, 0]).max())
    print(f"{members}{steps} steps, t = {rows['t'][0, 0]:g} to {np.nanmax(rows['t']):g} s, {rows.shape[1]} rows", file=out)
    print(f"failed steps      {_failures(rows)}", file=out)
    if (rows["status"] == INEXACT).any():
        print(f"inexact steps     {_inexact(rows)}", file=out)
    worst = np.unravel_index(np.nanargmax(rows["residual"]), rows.shape)
    at = f" at t = {rows['t'][worst]:g} s" if rows["residual"][worst] > 0 else ""
    print(f"worst residual    {rows['residual'][worst]:.1e}{at}", file=out)
    # 3. each part: bodies that come and go, detected contacts, interactions
    mechanical, circuit = family(model_of(system)) != FIRST_ORDER, NAMES in (kind for _, kind, *_ in model_of(system))
    for name in rows.dtype.names:
        part = rows.dtype[name].base
        if "alive" in (part.names or ()):
            print(f"{name:<17} {_lives(rows, name, system)}", file=out)
        if part.names and {"n", "normal"} <= set(part.names):
            print(f"{name:<17} {_collisions(rows, name)}", file=out)
        elif part.names and {"y", "lambda"} <= set(part.names):
            print(f"{name:<17} {_interaction(rows, name, system, mechanical, circuit)}", file=out)
    # 4. balances
    if circuit and trajectory.ndim == 1:
        for name, text in _of_circuit(system, trajectory, 1.0 if theta is None else theta).items():
            print(f"{name:<17} {text}", file=out)
    if mechanical and trajectory.ndim == 1:
        print(f"energy            {_balance(system, trajectory, 0.5 if theta is None else theta)}", file=out)


def _failures(rows):
    failed = np.argwhere(has_failed(rows["status"]))
    if not len(failed):
        return "none"
    first = rows[tuple(failed[0])]
    return f"in {len(failed)} rows, first at t = {first['t']:g} s: {advice(first['status'])}"


def _inexact(rows):
    """Line on rows that were solved to less than the tolerance."""
    found = np.argwhere(rows["status"] == INEXACT)
    first, residuals = rows[tuple(found[0])], rows["residual"][tuple(found.T)]
    size = f"residual {np.median(residuals):.1e}, at most {residuals.max():.1e}"
    return f"{len(found)} of {rows.size} rows, first at t = {first['t']:g} s, {size}"


def _lives(rows, name, system):
    """Line on bodies that appear and disappear: how many, and the one that appeared deepest in another."""
    # 1. numbers at the start and at the end
    alive = rows[name]["alive"].reshape(*rows.shape, -1).astype(int)
    change, counts = np.diff(alive, axis=1), alive.sum(axis=2)
    text = f"{counts[:, 0].max()} of {alive.shape[2]} bodies at the start, {counts[:, -1].max()} at the end: "
    text += f"{np.count_nonzero(change > 0)} born, {np.count_nonzero(change < 0)} died"
    # 2. overlaps of bodies just after they appear
    models, worst = np.atleast_1d(system), (0.0,)
    first = first_bodies(models[0])[name]
    for contacts, *_ in (line for line in collisions_of(model_of(system)) if line[0] in rows.dtype.names):
        for member, row, body in np.argwhere(change[:, :-1] > 0):  # its contacts are in the row after it was born
            found, bodies = rows[contacts][member, row + 2], models[contacts][member]["shape_body"]
            own = (bodies[found["a"]] == first + body) | (bodies[found["b"]] == first + body)
            depth = np.where(own & (np.arange(own.size) < found["n"]), -found["y"], 0.0)
            if depth.max() > worst[0]:
                other = found["b" if bodies[found["a"][depth.argmax()]] == first + body else "a"][depth.argmax()]
                worst = depth.max(), rows["t"][member, row + 1], body, other
    if worst[0] > 0:
        text += f"; {name}[{worst[2]}], born at t = {worst[1]:g} s, overlaps shape {worst[3]} by {worst[0]:.1e} m"
    return text


def first_bodies(record):
    """{part: number of its first body} of a record of rigid bodies."""
    first, n = {}, 0
    for name, *_ in split(model_of(record))[0]:
        first[name] = n
        n += record[name].size
    return first


def _collisions(rows, name):
    """Line on detected contacts: their number, those with load, and the deepest penetration."""
    n, y, lam = (rows[name][key] for key in ("n", "y", "lambda"))
    gap = _penetration(rows, y, 0)
    pressing = (lam.reshape(*y.shape, -1)[..., 0] > 0).sum(axis=2)
    return f"{gap}; {n.max()} contacts at most, {pressing.max()} pressing, {pressing.mean():.1f} on average"


def _interaction(rows, name, system, mechanical, circuit):
    """Line on an interaction: violation of its law."""
    # 1. first-order systems: ranges, and violation of the law
    y, lam = (rows[name][key].reshape(*rows.shape, -1) for key in ("y", "lambda"))
    start = 0 if mechanical else 1  # in first-order systems row 0 need not be consistent
    ranges = ", ".join(f"{key} in {_range(value, start)}" for key, value in (("y", y), ("lambda", lam)))
    _, relation, law, *_ = next(line for line in model_of(system) if line[0] == name)
    part = np.atleast_1d(system)[name]
    if not mechanical:
        violated = _violated(rows, _violation(rows, name, part, relation, law), start, " V" if circuit else "")
        return f"laws {violated}" if circuit else f"{ranges}, {law} {violated}"
    # 2. laws with bounds, prescribed velocities, equations
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
    # 3. contacts: penetration of the normal rows, and intervals of load
    size = rows_of_contact(law, part.dtype)
    return f"{_penetration(rows, y[..., ::size], start)}; {_closings(rows, name, size, bool(start))}"


def _penetration(rows, y, start):
    depth, where = _worst(rows, np.maximum(-y, 0), start)
    return f"penetration {depth:.1e} m{where}" if depth > 0 else "no penetration"


def _closings(rows, name, size, holds_forces):
    """Text on intervals of contact: impacts, durations, forces."""
    found = np.concatenate([intervals_of(row, name, size, holds_forces) for row in rows])
    impulses, forces, durations = (value[~np.isnan(value)] for value in (found["impulse"], found["force"], found["end"] - found["begin"]))
    # 1. impacts
    impacts = ""
    if not holds_forces:
        size_of = f", impulse up to {impulses.max():.3g} N s" if impulses.size else ""
        impacts = f"{_counted(impulses.size, 'impact')}{size_of}; "
    # 2. intervals longer than a step
    kept = np.count_nonzero(durations > 0)
    if not kept:
        return f"{impacts}never closed for longer than a step"
    n_contacts = rows.shape[0] * (rows[name]["lambda"][0, 0].size // size)
    mean, span = durations.sum() / n_contacts, np.nanmax(rows["t"]) - rows["t"][0, 0]
    on_average = " on average" if n_contacts > 1 else ""
    known = "lambda" if holds_forces or is_event(rows["status"]).any() else "lambda / h"
    force = f", {known} up to {forces.max():.3g} N" if forces.size else ""
    return f"{impacts}closed in {_counted(kept, 'interval')}, for {mean:.3g} s of {span:.3g} s{on_average}{force}"


def _counted(n, what):
    return f"{n} {what}{'' if n == 1 else 's'}"


def _range(values, start):
    """Smallest and largest value, of rows from start on."""
    values = values[:, min(start, values.shape[1] - 1) :]
    values = values[~np.isnan(values)]
    return f"[{values.min():.4g}, {values.max():.4g}]" if values.size else "[nan, nan]"


def _worst(rows, size, start):
    """(largest value, its place as text) of a nonnegative quantity, of rows from start on."""
    start = min(start, rows.shape[1] - 1)
    size = np.where(np.isnan(size), -1.0, size).reshape(*rows.shape, -1)[:, start:].max(axis=2)
    member, row = np.unravel_index(size.argmax(), size.shape)
    of_member = _checks.of_member(member, rows.shape[0])
    return size.max() if size.max() >= 0 else np.nan, f" at t = {rows['t'][member, row + start]:g} s{of_member}"


def _violated(rows, size, start, unit=""):
    worst, where = _worst(rows, size, start)
    return f"violated by at most {worst:.1e}{unit}" + (f",{where}" if worst > 0 else "")


def _violation(rows, name, part, relation, law):
    """Distance of rows from ``-y ∈ N_[lower,upper](lambda)``, or from the equations of a cone: ``|lambda - P(lambda - y)|``."""
    state, (n_members, n_rows) = rows[name], rows.shape
    part = part.reshape(n_members, 1, -1)  # elements last, then their constraints
    y, lam = (state[key].reshape(n_members, n_rows, part.shape[2], -1) for key in ("y", "lambda"))
    if LAWS[law].treatment.is_cone:
        mu = state["mu"].reshape(n_members, n_rows, part.shape[2], -1)
        slack = np.einsum("...ki,...i->...k", part["cone_G"], lam) - part["cone_g"]
        gap = y - np.einsum("...ki,...k->...i", part["cone_G"], mu)
        return np.concatenate([abs(gap), abs(np.minimum(mu, slack))], axis=-1).max(axis=(2, 3))
    is_moving = "bounds" in part.dtype.names
    lower, upper = _moving_bounds(rows, part[:, 0], relation, y.shape[3]) if is_moving else LAWS[law].bounds(part, y.shape[3])
    return abs(lam - np.clip(lam - y, lower, upper)).max(axis=(2, 3))


def _moving_bounds(rows, parts, relation, m):
    """Bounds that are functions of time, at each row: (members, rows, elements, m) twice; on the row's side of a jump."""
    is_after = is_event(rows["status"]) & ~left_limits(rows)
    t = rows["t"] + np.where(is_after, 2.0**-44 * np.nanmax(abs(rows["t"])), 0.0)
    x, lam = np.zeros((rows.shape[1], 0)), np.zeros((rows.shape[1], m))  # of which the bounds take the size alone
    found = [[along(part, relation, "bounds", (2, m), t[k], x, lam) for part in member] for k, member in enumerate(parts)]
    return np.moveaxis(found, (3, 2), (0, 2))


def _of_circuit(system, trajectory, theta):
    """{name: text} of currents and energy."""
    try:
        worst, node = balance.unbalanced(system, trajectory)
        ledger = balance.energy(system, trajectory, theta)
    except ValueError as error:
        return {"energy": f"not shown: {str(error).partition(': ')[2]}"}
    at = f", at node {node}" if worst > 0 else ""
    works = [f"{name} {ledger[name].sum():.4g}" for name in balance.WORKS if ledger[name].any()]
    by = "the error of sums over rows" if is_event(trajectory["status"]).any() else "what the scheme takes"
    stored = f"stored {ledger['stored'][0]:.4g} -> {ledger['stored'][-1]:.4g} J"
    return {
        "currents": f"at nodes balanced within {worst:.1e} of those that cancel{at}",
        "energy": f"{stored}: {', '.join(works) or 'no work'}, numerical {ledger['numerical'].sum():.2g}: {by}",
    }


def _balance(system, trajectory, theta):
    try:
        ledger = energy(system, trajectory, theta)
    except ValueError as error:
        return f"not shown: {str(error).removeprefix('energy: ')}"
    total = ledger["kinetic"] + ledger["potential"]
    works = [f"{name} {ledger[name].sum():.4g}" for name in WORKS if ledger[name].any()]
    gap = abs(ledger["numerical"]).max()
    return f"{total[0]:.4g} -> {total[-1]:.4g} J: {', '.join(works) or 'no work'}, balance within {gap:.1e}"
