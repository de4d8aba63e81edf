"""Recorder of one-step problems: a stand-in for the solver while the problems of a run are recorded."""

from functools import partial

import numpy as np

from nsds import _jit
from nsds.schemes.rigid.interactions import contact_rows
from nsds.schemes.rigid.problem import SWEEPERS
from nsds.schemes.table import StandIn
from nsds.solvers.bodies import rigid
from nsds.solvers.box import signature as box
from nsds.solvers.contact import signature as contact
from nsds.solvers.contact.forms import without_equations
from nsds.solvers.contact.signature import EQUATION
from nsds.solvers.problems.contact_problem import ContactProblem
from nsds.solvers.problems.profiling import Problem
from nsds.status import NOT_COMPUTED


@_jit.kernel
def _sweep(sweeps, given, options, r, v, u, info, work, iwork):
    """Call the sweeps over the contacts of rigid bodies."""
    return rigid.call_sweeps(sweeps, (given, options, r, v, u, info, work, iwork))


class Recorder(StandIn):
    """Stand-in for a solver in the tables of a scheme: passes all problems on to it, and records them while ``is_on``.

    choice: the solver, as a caller passes it. kept: in the order of the calls, the fields of a `OneStepProblem` from the problem on,
    without a name. error: exception raised meanwhile, or None.
    """

    def __init__(self, choice):
        self.choice, self.is_on, self.kept, self.error = choice, False, [], None
        self._sweeps = _jit.PythonCallback(rigid.SIGNATURE, self._pass_sweeps_on)

    def in_place_of(self, method, options, address):
        """(`Method`, options, address) that direct every problem here; under no known name, so that no scheme uses a path of its own."""
        self.kept.clear()  # a step is made again with what is prepared now
        signature, take, settings = (box, _box_problem, (1, True)) if "relay" in method.kinds else (contact, _contact_problem, (1,))

        def solve(*arguments):
            *_, solution, _, info, _, _ = arguments  # of both classes of problems
            guess = solution.copy()
            return self._keep(take, arguments, guess, info, partial(signature.solve_repeatedly, *settings, address, guess, *arguments))

        self._solver = _jit.PythonCallback(signature.SOLVER, solve)
        sweeps = self._sweeps.address if method.name in SWEEPERS else 0
        options = options._replace(at_once=False) if hasattr(options, "at_once") else options
        return method._replace(name="recorded", sweeps=sweeps), options, np.uintp(self._solver.address)

    def _pass_sweeps_on(self, *arguments):
        sweeps = np.uintp(_jit.address(rigid.SIGNATURE, rigid.nsgs_rigid))
        guess, info = arguments[2].copy(), arguments[5]
        return self._keep(_problem_of_bodies, arguments, guess, info, partial(_sweep, sweeps, *arguments))

    def _keep(self, take, arguments, guess, info, solve):
        """The status of a problem, which is kept with its solution."""
        try:
            status = solve()
            solved = take(arguments, guess) if self.is_on else None
            if solved is not None:
                self.kept.append((*solved, int(status), int(info[0]), float(info[1])))
        except Exception as error:  # nobody sees what is raised in a callback: `one_step_problems` raises it
            self.error, status = self.error or error, NOT_COMPUTED
        return status


def _box_problem(arguments, guess):
    from scipy.sparse import csr_array

    row, column, M, q, lower, upper = (np.copy(x) for x in arguments[0])
    z, w = arguments[2].copy(), arguments[3].copy()
    return Problem("", csr_array((M, column, row), shape=(q.size, q.size)), q, lower, upper), guess, z, w, None


def _contact_problem(arguments, guess):
    """Without the equations, which are eliminated; None where there is nothing else."""
    from scipy.sparse import bsr_array

    disk, mu, row, column, W, q = (np.copy(x) for x in arguments[0])
    r, u = arguments[2].copy(), arguments[3].copy()
    d, size = q.size // max(disk.size, 1), q.size
    W = bsr_array((W.reshape(-1, d, d), column, row), shape=(size, size)).tocsr()
    is_equation = np.repeat(disk == EQUATION, d)
    if is_equation.all():
        return None
    if is_equation.any():
        own, other = np.flatnonzero(~is_equation), np.flatnonzero(is_equation)
        rows, equations = W[own], W[other]
        W, q = without_equations(
            "one_step_problems", rows[:, own], rows[:, other], equations[:, own], equations[:, other], q[own], q[other]
        )
        guess, r, u = guess[own], r[own], u[own]
    return ContactProblem("", W, q, *_frictions(disk, mu, d)), guess, r, u, None


def _frictions(disk, mu, d):
    """(mu, mu_r) of the contacts among blocks; mu_r None where nothing rolls."""
    pairs, disk = mu.reshape(-1, 2)[disk != EQUATION], disk[disk != EQUATION]
    rolls = d == 5 or (d == 3 and (disk == 1).any())
    return pairs[:, 0].copy(), pairs[:, 1].copy() if rolls else None


def _problem_of_bodies(arguments, guess):
    """The global form: velocities of the bodies, of those components that can change; then, of interactions, multipliers of equations, and
    ``diagonal r`` of other rows that have one."""
    from scipy.sparse import block_array, block_diag, coo_array, csr_array, diags_array, vstack

    # 1. mass matrices of the bodies, from their inverses
    given, _, r, v, u, *_ = arguments
    d, n, n_contacts, n_bodies = given.d, given.disk.size, given.body.size // 2, given.v_free.size // 6
    masses, moving = _inertias(given.inverse.reshape(n_bodies, 10))
    # 2. rows of interactions, and those of contacts from frames and levers
    body = np.concatenate([given.body, given.panel_body]).reshape(n, 2)
    rows = np.zeros((n, d, 2, 6))
    rows[n_contacts:] = given.H.reshape(-1, d, 2, 6)
    for c in range(n_contacts):
        lever = given.lever[6 * c : 6 * c + 6]
        contact_rows(3, given.frame[9 * c : 9 * c + 9], lever[:3], lever[3:], body[c, 1] >= 0, rows[c].reshape(-1))
        if d == 5:
            rows[c, 3:, 0, 3:] = given.axes[6 * c : 6 * c + 6].reshape(2, 3)
            rows[c, 3:, 1, 3:] = -rows[c, 3:, 0, 3:] * (body[c, 1] >= 0)
    # 3. H by components that can change
    at = 6 * body[:, None, :, None] + np.arange(6)
    which = np.broadcast_to((body >= 0)[:, None, :, None], rows.shape)
    place = np.broadcast_to(np.arange(n * d).reshape(n, d, 1, 1), rows.shape)
    H = coo_array((rows[which], (np.broadcast_to(at, rows.shape)[which], place[which])), shape=(6 * n_bodies, n * d)).tocsr()[moving]
    # 4. equations, and rows with a diagonal term, become unknowns beside the velocities
    M, w, diagonal = block_diag(masses, format="csr"), given.b.copy(), np.zeros(n * d)
    diagonal[n_contacts * d :] = given.diagonal
    is_equation = np.repeat(given.disk == EQUATION, d)
    own, other, soft = np.flatnonzero(~is_equation), np.flatnonzero(is_equation), np.flatnonzero((diagonal != 0.0) & ~is_equation)
    if not own.size:
        return None
    G, l = H[:, other], r[other]
    extra = csr_array((np.ones(soft.size), (np.arange(soft.size), np.searchsorted(own, soft))), shape=(soft.size, own.size))
    f, v = (
        np.concatenate([M @ given.v_free[moving], -w[other], np.zeros(soft.size)]),
        np.concatenate([v[moving], l, diagonal[soft] * r[soft]]),
    )
    R, S = diags_array(diagonal[other]), diags_array(1.0 / diagonal[soft])
    M = block_array([[M, -G, None], [G.T, R, None], [None, None, S]], format="csr")
    H = vstack([H[:, own], csr_array((other.size, own.size)), extra], format="csr")
    # 5. the problem in its global form
    problem = ContactProblem("", None, None, *_frictions(given.disk, given.mu, d), M=M, H=H, f=f, w=w[own])
    return problem, guess[own], r[own].copy(), u[own].copy(), v


def _inertias(inverses):
    """Mass matrices of bodies without fixed components, and the numbers of the others. inverses: 1/m and (3, 3) each."""
    masses, moving = [], []
    for k, inverse in enumerate(inverses):
        if inverse[0] != 0.0:
            masses.append(np.eye(3) / inverse[0])
            moving += range(6 * k, 6 * k + 3)
        turns = np.flatnonzero(inverse[1:].reshape(3, 3).any(axis=1))
        if turns.size:
            masses.append(np.linalg.inv(inverse[1:].reshape(3, 3)[np.ix_(turns, turns)]))
            moving += (6 * k + 3 + turns).tolist()
    return masses, np.array(moving, int)
