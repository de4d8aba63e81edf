"""The one-step problems of a run, for those who develop or compare solvers."""

from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds.model.functions import offered
from nsds.results.trajectories import SimulationError
from nsds.schemes.recorder import Recorder
from nsds.schemes.run.preparation import number_of_steps
from nsds.schemes.run.stepping import made
from nsds.schemes.table import is_event_driven
from nsds.solvers.problems.contact_problem import ContactProblem
from nsds.solvers.problems.profiling import Problem


class OneStepProblem(NamedTuple):
    """A problem that the step to time t had to solve, the solver's first guess, and its solution.

    r, u: of contacts ``u = W r + q``, and v of global problems, so that it is a solution for `nsds.solvers.write_fclib`; of a
    `nsds.solvers.Problem` z and w.
    """

    t: float
    step: int
    problem: ContactProblem | Problem
    guess: np.ndarray
    r: np.ndarray
    u: np.ndarray
    v: np.ndarray | None
    status: int
    n_iter: int
    residual: float

    @property
    def error(self):
        """By how much a contact, or a row with bounds, misses its law at most: a velocity (m/s), or in units of w; 0 without any."""
        problem = self.problem
        if isinstance(problem, Problem):
            D = _largest_in_rows(problem.M)
            missed = np.maximum(np.minimum(self.u, D * (self.r - problem.lower)), D * (self.r - problem.upper))
            return float(abs(missed).max(initial=0.0))
        n, split = problem.n_contacts, 1 + problem.tangents
        r, u = self.r.reshape(n, -1), self.u.reshape(n, -1)
        D = (_own_admittance(problem) if problem.W is None else _largest_in_rows(problem.W)).reshape(n, -1)
        normal = D[:, 0] * r[:, 0]
        missed = [np.minimum(normal, u[:, 0])[:, None]]
        for part, coefficient in ((slice(1, split), problem.mu), (slice(split, None), problem.mu_r)):
            if coefficient is not None and r[:, part].size:
                unit = D[:, part].max(axis=1, keepdims=True)
                x, radius = unit * r[:, part], unit[:, 0] * coefficient * np.maximum(r[:, 0], 0.0)
                inside = radius / np.maximum(np.linalg.norm(x - u[:, part], axis=1), np.maximum(radius, np.finfo(float).tiny))
                missed.append(x - inside[:, None] * (x - u[:, part]))
        return float(np.linalg.norm(np.concatenate(missed, axis=1), axis=1).max(initial=0.0))


def _largest_in_rows(M):
    """A w, or velocity, for a unit of each unknown: the largest entry in its row, 1 of an empty row."""
    largest = np.zeros(M.shape[0])
    entries = M.tocoo()
    np.maximum.at(largest, entries.coords[0], abs(entries.data))
    return np.where(largest > 0.0, largest, 1.0)


def _own_admittance(problem):
    """The same by the diagonal of ``H^T M^-1 H``, M by its diagonal."""
    mass = np.abs(problem.M.diagonal())
    own = problem.H.multiply(problem.H).T @ np.divide(1.0, mass, out=np.zeros(mass.size), where=mass > 0.0)
    return np.where(own > 0.0, own, 1.0)


def one_step_problems(system, *, t_end, h, scheme=None, solver=None, every=1, functions=None):
    """The one-step problems of a run, as its solver is given them: to compare methods on them, or to write them into files.

    Parameters
    ----------
    system : numpy.ndarray, shape ()
        A record from `nsds.system`; it is not changed.
    t_end : float
        The fewest steps of size h that reach it are made, all of that size.
    h, scheme, solver, functions
        See `nsds.simulate`; one scheme, and not `nsds.event_driven`.
    every : int
        Problems of every that many steps.

    Returns
    -------
    iterator of OneStepProblem
        NamedTuples (t, step, problem, guess, r, u, v, status, n_iter, residual) as they are solved, while steps are made.
        A step may have none, where nothing touches, or several: Newton's iteration states one in each round, projections have their own.
        The last one of a step is the one that counts. problem: of contacts a `nsds.solvers.ContactProblem`, of rows with bounds a
        `nsds.solvers.Problem`, named after step and round. Equations beside contacts, as those of joints, are eliminated; of rigid
        bodies with more than 512 blocks there is no matrix W but M, H, f and w, where v begins with the velocities (v, omega) of bodies
        in inertial axes that can change, and goes on with multipliers of equations. n_iter: of the solver, as sweeps, pivots or
        iterations of Newton's; residual: of contacts ``||F|| / ||q||``, with F as below, without a unit. The property error has one: the
        largest ``||F||`` of a contact, a velocity (m/s), or of a row of a `nsds.solvers.Problem`, in units of w.

    Raises
    ------
    ValueError, TypeError
        As `nsds.simulate`; an ensemble.
    SimulationError
        A step failed; its problems come before, where it is one of which they were asked for.

    Notes
    -----
    F is what a contact misses its law by: ``min(D r_N, u_N)`` of the normal component, ``D r_T - P(D r_T - u_T)`` of the tangents, and of
    rolling likewise, P the projection onto the disk of radius ``mu D r_N``, and D a velocity for an impulse, the largest entry in its rows
    of W. So an open contact that closes has its speed, one that presses that with which it opens or closes, one that sticks its slip, and
    one that slides the velocity across its friction. Of rigid bodies that resist rolling or spinning the rates of a contact are stated as
    velocities, times a length of the bodies (see `nsds.newton_impact_rolling_friction`), by which moments and mu_r are divided.

    What a scheme solves in passing goes to its solver here: the last digits may differ from those of `nsds.simulate`. What has a solver
    of its own, as the laws of multiple impacts, or has equations alone, is not recorded.

    Examples
    --------
    >>> import nsds
    >>> blocks = nsds.examples.box_stack()
    >>> found = list(nsds.one_step_problems(blocks, t_end=0.05, h=5e-3))
    >>> found[-1].problem.name, found[-1].problem.n_contacts
    ('step-10-1', 8)
    >>> hardest = max(found, key=lambda one: one.n_iter)
    >>> W, q, mu, *_ = hardest.problem[1:]
    >>> bool(nsds.solvers.solve_fc3d(W, q, mu, method="interior_point").residual < 1e-8)
    True
    """
    owner = "one_step_problems"
    offered(owner, functions)
    every, recorder = _checks.integer(owner, "every", every, low=1), Recorder(solver)
    if is_event_driven(scheme):
        raise ValueError(f"{owner}: nsds.event_driven has no problems of steps; expected a scheme with steps of size h")
    advance = made(owner, system, h, scheme, recorder, "raise")
    if system.shape != ():
        raise ValueError(f"{owner}: system must be one record, got an ensemble of shape {system.shape}")
    n_steps = number_of_steps(owner, advance.kept.run.records, _checks.number(owner, "t_end", t_end), h)
    return _recorded(system, advance, recorder, n_steps, every)


def _recorded(system, advance, recorder, n_steps, every):
    """Problems of every ``every``-th step, as they are recorded; a failed step raises after its problems."""
    for _ in range(n_steps // every):
        system = advance(system, every - 1) if every > 1 else system
        # the recorder is on for the last of these steps only
        failure, recorder.is_on = None, True
        recorder.kept.clear()
        try:
            system = advance(system)
        except SimulationError as error:
            failure = error
        recorder.is_on = False
        if recorder.error is not None:
            raise recorder.error
        t, step = (failure.t, failure.step) if failure else (system["t"].item(), system["step"].item())
        for k, (problem, *solved) in enumerate(recorder.kept):
            yield OneStepProblem(t, step, problem._replace(name=f"step-{step}-{k}"), *solved)
        if failure:
            raise failure
