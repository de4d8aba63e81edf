"""Contact intervals: from closing to lift-off, with the impulse at the start and the force that follows."""

import numpy as np

from nsds import _checks
from nsds.model.laws import LAWS, is_force, rows_of_contact
from nsds.model.records import model_of
from nsds.model.system_kinds import FIRST_ORDER, RELATIONS, family
from nsds.model.validation import valid
from nsds.results.trajectories import of_system, require_rows
from nsds.status import JUMP, is_event

INTERVAL = np.dtype([("contact", "<i8"), ("begin", "<f8"), ("end", "<f8"), ("impulse", "<f8"), ("force", "<f8"), ("approach", "<f8")])


def contact_intervals(system, trajectory, name):
    """Intervals during which the contacts of an interaction carry load, from closing to lift-off.

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        The record that was simulated.
    trajectory : numpy.ndarray (rows,)
        From `nsds.simulate`, with lambda of the interaction. If not all steps were saved, events between rows are not seen.
    name : str
        The interaction: a unilateral one of a mechanical system.

    Returns
    -------
    numpy.ndarray (intervals,)
        In the order of time: contact, its number; begin and end (s), the first and the last row with load, equal for an impact of
        a single step; impulse of the first row (N s), which is the impact's, NaN where the interval begins with the trajectory or lambda is
        a force; force (N), the largest of the rows after that, lambda / h, NaN where there are none; approach, the velocity ``-ydot``
        before (m/s), NaN where ydot was not recorded. Where y is an angle, moments and angular velocities.

    Raises
    ------
    TypeError, ValueError
        Not a trajectory or record, those of different systems, or no such interaction.

    Examples
    --------
    >>> import nsds
    >>> system = nsds.examples.bouncing_ball(e=0.0)
    >>> intervals = nsds.contact_intervals(system, nsds.simulate(system, t_end=1.0, h=5e-3), "floor")
    >>> [float(intervals[key][0].round(3)) for key in ("begin", "end", "approach", "force")]
    [0.455, 1.0, 4.414, 9.81]
    """
    # 1. record and rows of one system
    owner = "contact_intervals"
    system, trajectory = valid(owner, system), require_rows(owner, trajectory, (1,))
    if system.size != 1:
        raise ValueError(f"{owner}: system must be one record, got an ensemble of shape {system.shape}")
    trajectory = of_system(owner, system, trajectory)
    # 2. the interaction: one with a unilateral law, whose lambda was recorded
    known = [line[0] for line in model_of(system) if _is_unilateral(line, system)]
    if _checks.text(owner, "name", name) not in known:
        listed, got = ", ".join(known) or "none", f"{_checks.shortened(name)}{_checks.meant(name, known)}"
        raise ValueError(f"{owner}: name must be one of the contacts of a mechanical system, {listed}, got {got}")
    if name not in trajectory.dtype.names or "lambda" not in trajectory.dtype[name].base.names:
        raise ValueError(f"{owner}: the trajectory must hold {name}.lambda, which was not recorded")
    _, relation, law, *_ = next(line for line in model_of(system) if line[0] == name)
    part = system.dtype[name].base
    return intervals_of(trajectory, name, rows_of_contact(law, part), is_force(law, relation, "D" in part.names))


def _is_unilateral(line, system):
    """Whether a line of a model is a contact that opens and closes."""
    if family(model_of(system)) == FIRST_ORDER or line[1] not in RELATIONS or RELATIONS[line[1]].role == "drive":
        return False
    return LAWS[line[2]].is_one_sided


def intervals_of(rows, name, size, holds_forces):
    """`contact_intervals` of an interaction whose contacts have ``size`` constraints each; holds_forces: lambda is a force."""
    # 1. intervals of nonzero lambda
    part, at_events = rows[name], is_event(rows["status"])
    lam = np.nan_to_num(part["lambda"].reshape(rows.size, -1)[:, ::size])
    contact, first, last = _runs(lam != 0)
    # 2. forces: lambda itself, or the impulse over the step; the first row of an interval is an impact
    if holds_forces:
        forces, is_struck = lam, np.zeros(first.size, bool)
    elif at_events.any():
        jumps = at_events & (rows["status"] & JUMP != 0)
        forces, is_struck = np.where(jumps[:, None], 0.0, lam), jumps[first]
    else:
        forces, is_struck = lam / step_sizes(rows)[:, None], first > 0
    # 3. table
    result = np.zeros(first.size, INTERVAL)
    result["contact"], result["begin"], result["end"] = contact, rows["t"][first], rows["t"][last]
    result["impulse"] = np.where(is_struck, lam[first, contact], np.nan)
    result["force"] = [forces[i : j + 1, c].max() if j >= i else np.nan for c, i, j in zip(contact, first + is_struck, last, strict=True)]
    result["approach"] = np.nan
    if "ydot" in part.dtype.names:
        ydot = part["ydot"].reshape(rows.size, -1)[:, ::size]
        result["approach"] = np.where(first > 0, -ydot[np.maximum(first - 1, 0), contact], np.nan)
    return result[np.argsort(first, kind="stable")]


def step_sizes(rows):
    """Size of the step that ends at each row; for the first row that of the second."""
    h = np.diff(rows["t"]) / np.maximum(np.diff(rows["step"]), 1)
    return np.concatenate([h[:1], h]) if h.size else np.full(rows.size, np.inf)


def _runs(pressing):
    """(columns, first rows, last rows) of stretches of True."""
    edge = np.zeros((1, pressing.shape[1]), np.int8)
    change = np.diff(np.concatenate([edge, pressing.astype(np.int8), edge]), axis=0)
    (column, first), (_, end) = (np.nonzero((change == sign).T) for sign in (1, -1))
    return column, first, end - 1
