"""Poisson's law for several contacts at once: a problem of compression, then one of expansion, with Coulomb's friction in both.

    compression   0 <= u_C = u- + W P_C  ⟂  P_C >= 0
    expansion     0 <= u+ = u_C + W P_E  ⟂  P_E - e P_C >= 0

are the normal components; the tangential ones obey ``||P_CT|| <= mu P_CN`` against ``u_CT``, and ``||P_ET|| <= mu P_EN`` against ``u+_T``.

The disk of the expansion, whose radius is that of ``e P_CN`` and of the impulse beyond it, is the sum of two: the friction of what is given
back has a block of its own, its twin, whose normal impulse is known. So both phases are problems of `nsds.solvers.contact.signature`.
With one e for all contacts no impact gains energy: ``E+ - E- <= e P_C W P_E - P_C W P_C / 2 - P_E W P_E / 2 <= 0``.

Reference: Pfeiffer, Glocker, Multibody Dynamics with Unilateral Contacts, Wiley 1996, chapter 8, without restitution of tangents.
"""

import math
from typing import NamedTuple

import numpy as np

from nsds._jit import kernel, on_demand, tiny, view
from nsds.solvers.box import auto as box_auto
from nsds.solvers.box.signature import N_INFO, SOLVER, Options, call_solver, multiply, problem_of
from nsds.solvers.contact import auto as contact_auto
from nsds.solvers.contact import signature as contact
from nsds.status import CONVERGED

_VECTORS = 5  # of n numbers, of scratch
ENOUGH = 1e-7  # residual of the problems, see `nsds.solvers.impact.LAWS`
_NONE = -1

address_of_box_solver = on_demand(SOLVER, box_auto.auto)
address_of_contact_solver = on_demand(contact.SOLVER, contact_auto.auto)
call_contact_solver, problem_of_contacts = contact.call_solver, contact.problem_of


class _Blocks(NamedTuple):
    """Blocks of d components: contacts, then twins. own, twin: component of a row, or none; row_of, the reverse."""

    own: np.ndarray
    twin: np.ndarray
    disk: np.ndarray
    row_of: np.ndarray
    mark: np.ndarray
    row: np.ndarray
    column: np.ndarray
    mu: np.ndarray
    share: np.ndarray  # normal impulse of a twin
    matrix: np.ndarray
    q: np.ndarray
    r: np.ndarray
    w: np.ndarray
    work: np.ndarray  # of the solver
    iwork: np.ndarray


def work_size(row, column, component):
    """Scratch of rows that are these components of contacts: floats and integers."""
    n, d = component.size, int(component.max(initial=0)) + 1
    if d == 1:
        floats, integers = box_auto.work_size(n, row, column)
        return _VECTORS * n + N_INFO + floats, max(integers, 1)
    block = np.cumsum(component == 0) - 1
    nc = int(block[-1]) + 1
    pairs = np.unique(block[np.repeat(np.arange(n), np.diff(row))] * nc + block[column])
    first, second = np.divmod(pairs, nc)
    twice = np.sort(np.concatenate([(first + i) * 2 * nc + second + j for i in (0, nc) for j in (0, nc)]))
    floats, integers = contact_auto.work_size(d, np.searchsorted(twice // (2 * nc), np.arange(2 * nc + 1)), twice % (2 * nc))
    own = _VECTORS * n + 2 * nc * (3 + 3 * d) + 4 * column.size * d * d + contact.N_INFO
    return own + floats, 2 * n + 2 * nc * (3 + d) + 1 + 4 * column.size + max(integers, 1)


@kernel
def poisson_impact(impact, tol, rounding, u, P, info, work, iwork):
    """Impulses P and velocities u after an impact by Poisson's law; arguments: `nsds.solvers.impact.signature`.

    info: iterations, and the larger residual of both problems. Returns the status of the solver, the method "auto" for rows with bounds or,
    where there are tangents, for contacts.
    """
    closing, d = 0.0, 1
    info[0], info[1] = 0.0, 0.0
    for i in range(u.size):
        P[i], d = 0.0, max(d, impact.component[i] + 1)
        closing = max(closing, -u[i] if impact.component[i] == 0 else 0.0)
    if closing <= rounding:
        return CONVERGED
    if d == 1:
        return _collide_without_friction(impact, tol, u, P, info, work, iwork)
    return _collide(d, impact, tol, u, P, info, work, iwork)


@kernel
def _collide_without_friction(impact, tol, u, P, info, work, iwork):
    """Both phases as linear complementarity problems."""
    n, row, column, W = u.size, impact.row, impact.column, impact.W
    lower, upper, z, w, q = view(work, 0, n), view(work, n, n), view(work, 2 * n, n), view(work, 3 * n, n), view(work, 4 * n, n)
    box_info, scratch = view(work, _VECTORS * n, N_INFO), view(work, _VECTORS * n + N_INFO, work.size - _VECTORS * n - N_INFO)
    options, status = Options(tol, 0.0, 0.0, 0.0, 0.0, 0.0), CONVERGED
    for i in range(n):
        lower[i], upper[i], z[i], q[i] = 0.0, math.inf, 0.0, u[i]
    problem = problem_of((row, column, W, q, lower, upper))
    for phase in range(2):
        iwork[0] = 0
        status = call_solver(address_of_box_solver(), (problem, options, z, w, box_info, scratch, iwork))
        info[0], info[1] = info[0] + box_info[0], max(info[1], box_info[1])
        for i in range(n):
            P[i] += z[i]
            if phase == 0:
                z[i] *= impact.e[i]
                P[i] += z[i]
        if status != CONVERGED:
            break
        if phase == 0:  # the least that is given back
            multiply(row, column, W, w, z, q)
            for i in range(n):
                z[i] = 0.0
    multiply(row, column, W, u, P, w)
    for i in range(n):
        u[i] = w[i]
    return status


@kernel
def _collide(d, impact, tol, u, P, info, work, iwork):
    """Both phases as problems of contacts of d components."""
    n, count, component = u.size, 0, impact.component
    for i in range(n):
        count += 1 if component[i] == 0 else 0
    s = _blocks(d, n, count, impact.column.size, work, iwork)
    z, q, q_C = view(work, 0, n), view(work, n, n), view(work, 2 * n, n)
    # 1. compression
    _list_contacts(d, component, impact.mu, s)
    status = _solve_phase(d, count, impact, u, tol, s, info)
    for i in range(n):  # of the expansion: the impulse that is given back acts first
        P[i], q_C[i] = s.r[s.own[i]], s.w[s.own[i]]
        z[i] = impact.e[i] * P[i] if component[i] == 0 else 0.0
    # 2. expansion
    if status == CONVERGED:
        multiply(impact.row, impact.column, impact.W, q_C, z, q)
        count = _list_twins(d, count, component, z, s)
        status = _solve_phase(d, count, impact, q, tol, s, info)
        for i in range(n):
            P[i] += z[i] + s.r[s.own[i]] + (s.r[s.twin[i]] if s.twin[i] != _NONE else 0.0)
    # 3. velocities
    for i in range(n):
        q[i] = u[i]
    multiply(impact.row, impact.column, impact.W, q, P, u)
    return status


@tiny
def _blocks(d, n, count, nnz, work, iwork):
    """Views of the scratch for contacts and as many twins."""
    m, i, f = 2 * count, 2 * n, _VECTORS * n
    own, twin, disk, row_of = view(iwork, 0, n), view(iwork, n, n), view(iwork, i, m), view(iwork, i + m, m * d)
    i += m + m * d
    mark, block_row, block_column = view(iwork, i, m), view(iwork, i + m, m + 1), view(iwork, i + 2 * m + 1, 4 * nnz)
    mu, share, q = view(work, f, 2 * m), view(work, f + 2 * m, m), view(work, f + 3 * m, m * d)
    i, f = i + 2 * m + 1 + 4 * nnz, f + 3 * m + m * d
    r, w, matrix = view(work, f, m * d), view(work, f + m * d, m * d), view(work, f + 2 * m * d, 4 * nnz * d * d)
    f += 2 * m * d + 4 * nnz * d * d
    rest, integers = view(work, f, work.size - f), view(iwork, i, iwork.size - i)
    return _Blocks(own, twin, disk, row_of, mark, block_row, block_column, mu, share, matrix, q, r, w, rest, integers)


@tiny
def _begin(d, k, disk, mu, share, s):
    """Block k, without rows yet."""
    s.disk[k], s.mu[2 * k], s.mu[2 * k + 1], s.share[k] = disk, mu, 0.0, share
    for a in range(d):
        s.row_of[d * k + a] = _NONE


@tiny
def _place(i, at, place, s):
    """Row i is component at of the blocks."""
    place[i], s.row_of[at] = at, i


@kernel
def _list_contacts(d, component, mu, s):
    """A block for each contact."""
    k = -1
    for i in range(component.size):
        if component[i] == 0:
            k += 1
            _begin(d, k, 0, mu[i], 0.0, s)
        else:
            s.disk[k] += 1
        _place(i, d * k + component[i], s.own, s)
        s.twin[i] = _NONE


@kernel
def _list_twins(d, count, component, share, s):
    """Behind the contacts a block for the friction of each impulse that is given back. Returns how many blocks there are then."""
    has_twin = False
    for i in range(component.size):
        k = s.own[i] // d
        if component[i] == 0:
            has_twin = share[i] > 0.0 and s.disk[k] > 0 and s.mu[2 * k] > 0.0
            if has_twin:
                _begin(d, count, s.disk[k], s.mu[2 * k], share[i], s)
                count += 1
        elif has_twin:
            _place(i, d * (count - 1) + component[i], s.twin, s)
    return count


@kernel
def _solve_phase(d, count, impact, q, tol, s, info):
    """One problem of count blocks, whose rows have the vector q. Out: r and w of the blocks, info. Returns the status of the solver."""
    _link(d, count, impact.row, impact.column, s)
    _fill(d, count, impact, q, s)
    m, n_pairs, block_info = d * count, s.row[count], view(s.work, 0, contact.N_INFO)
    options = contact.Options(tol, 0.0, 0.0, 0.0, 0.0, 0.0, tol, tol, 0.0)
    problem = problem_of_contacts((
        view(s.disk, 0, count), view(s.mu, 0, 2 * count), view(s.row, 0, count + 1), view(s.column, 0, n_pairs),
        view(s.matrix, 0, n_pairs * d * d), view(s.q, 0, m),
    ))  # fmt: skip
    scratch = view(s.work, contact.N_INFO, s.work.size - contact.N_INFO)
    arguments = problem, options, view(s.r, 0, m), view(s.w, 0, m), block_info, scratch, s.iwork
    status = call_contact_solver(address_of_contact_solver(), arguments)
    info[0], info[1] = info[0] + block_info[0], max(info[1], block_info[1])
    return status


@kernel
def _link(d, count, row, column, s):
    """Compressed rows of the blocks, columns ascending. Out: row, column."""
    end = 0
    for k in range(count):
        s.mark[k] = _NONE
    for k in range(count):
        begin = end
        s.row[k] = begin
        for i in range(d * k, d * (k + 1)):
            a = s.row_of[i]
            for t in range(row[a] if a != _NONE else 0, row[a + 1] if a != _NONE else 0):
                for at in (s.own[column[t]], s.twin[column[t]]):
                    if at != _NONE and s.mark[at // d] < begin:
                        s.mark[at // d] = begin
                        place = end
                        while place > begin and s.column[place - 1] > at // d:
                            s.column[place] = s.column[place - 1]
                            place -= 1
                        s.column[place] = at // d
                        end += 1
    s.row[count] = end


@kernel
def _fill(d, count, impact, q, s):
    """Matrix, vector and guess of the blocks. Components without a row have ``w = s r``, the normal one of a twin ``w = s (r - share)``."""
    row, column = impact.row, impact.column
    for i in range(d * d * s.row[count]):
        s.matrix[i] = 0.0
    for k in range(count):
        diagonal, largest = 0, 0.0
        for l in range(s.row[k], s.row[k + 1]):
            s.mark[s.column[l]] = l
            diagonal = l if s.column[l] == k else diagonal
        for i in range(d):
            a = s.row_of[d * k + i]
            for t in range(row[a] if a != _NONE else 0, row[a + 1] if a != _NONE else 0):
                for at in (s.own[column[t]], s.twin[column[t]]):
                    if at != _NONE:
                        s.matrix[(s.mark[at // d] * d + i) * d + at % d] = impact.W[t]
            s.q[d * k + i], s.r[d * k + i] = q[a] if a != _NONE else 0.0, 0.0
            largest = max(largest, s.matrix[(diagonal * d + i) * d + i])
        for i in range(d):
            if s.row_of[d * k + i] == _NONE:
                s.matrix[(diagonal * d + i) * d + i] = largest if largest > 0.0 else 1.0
        if s.share[k] > 0.0:
            s.q[d * k], s.r[d * k] = -s.share[k] * s.matrix[diagonal * d * d], s.share[k]
