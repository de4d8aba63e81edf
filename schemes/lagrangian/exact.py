"""Exact time stepping of modal systems with impacts ([ExactScheme]; Bilbao, Torin, Chatziioannou, Acta Acustica 101 (2015) 155–173).

Without contact a mode ``q'' + 2 sigma q' + omega^2 q = f`` obeys ``q_{k+1} = A q_k - e q_{k-1}`` exactly, with ``e = r_1 r_2`` and
``A = r_1 + r_2``, r the decay of its two exponentials over a step. With ``v_k = (q_k - q_{k-1}) / h`` that is

    v_free = e v_k - omega^2 h G q_k + h G f,    G = (1 + e - A) / (omega h)^2,    W = M / G
    v_{k+1} = v_free + W^-1 H^T lambda,    q_{k+1} = q_k + h v_{k+1},    0 <= H v_{k+1} + e_n ydot_k  ⟂  lambda >= 0

which are W and v_free of the source with ``h sigma* = (1 - e) / (2 G)``. G is written as ``(1 - r_1) (1 - r_2) / (omega h)^2`` in a form
without cancellation for any step, so that the Taylor expansions of the source are not needed; its tests compare with them.
"""

import sys
from typing import NamedTuple

import numpy as np

from nsds._jit import inlined, kernel, tiny, view
from nsds.model.functions import call_function
from nsds.model.layout import ABSENT, DIAGONAL, table
from nsds.schemes.lagrangian import linear
from nsds.schemes.lagrangian.functions import blame, prescribe  # noqa: F401
from nsds.schemes.lagrangian.outputs import compliance, gap_slack
from nsds.schemes.lagrangian.tables import is_linear, layout_of
from nsds.schemes.memory import Allocator, Prepared
from nsds.schemes.problem.active_set import choose_active, extract_active, solve_active
from nsds.schemes.problem.impact import rebound
from nsds.schemes.problem.rows import POSITION
from nsds.schemes.problem.tables import BODY
from nsds.status import CONVERGED, NON_FINITE

# One row per part, offsets in the work memory: e, omega^2 h G, h G / M (0 without a force), G / M, force at the last t.
OPERATOR = table("decay", "stiffness", "push", "inverse", "force")
# One row per run of consecutive entries of H or of B on one body, and one per constraint: its runs.
STRETCH = table("coefficient", "q", "n", "body", "size")
ROW = table("first", "end")


class Options(NamedTuple):
    """Parameters of the step."""

    h: float
    gamma: float  # of h: the forecast of contact


class Tables(NamedTuple):
    """Tables of the linear form, with the operators of modes, whose rows are runs of entries."""

    linear: linear.Tables
    rows: np.ndarray  # of each constraint: its stretches of H
    stretches: np.ndarray
    input_rows: np.ndarray  # and of B
    input_stretches: np.ndarray


def modal_factors(omega, sigma, h):
    """(e, G) of modes: the decay of v over a step, and ``(1 + e - A) / (omega h)^2``, the inverse of W for a unit mass.

    No digits are lost for small or large ``omega h`` and ``sigma h``, nor at critical damping.
    """
    s, x = sigma * h, omega * h
    over = s > x
    w = np.sqrt(np.abs(x - s)) * np.sqrt(x + s)
    # overdamped: phi(s + w) phi(s - w), phi(x) = (1 - exp(-x)) / x, with s - w = x^2 / (s + w)
    sum_ = np.where(over, s + w, 1.0)
    G_over = _phi(sum_) * _phi(np.where(over, x, 0.0) * (x / sum_))
    # oscillating: |1 - exp(-s + i w)|^2 / (s^2 + w^2)
    bottom = np.where(x > 0, x, 1.0)
    G_under = np.where(x > 0, (np.expm1(-s) / bottom) ** 2 + np.exp(-s) * (2 * np.sin(w / 2) / bottom) ** 2, 1.0)
    return np.exp(-2 * s), np.where(over, G_over, G_under)


def _phi(x):
    return np.where(x == 0, 1.0, -np.expm1(-x) / np.where(x == 0, 1.0, x))


def prepare(records, mem, options, h, method):
    """Coefficients of the modes and the Delassus matrices of all members."""
    # 1. model: linear, with laws at velocity level
    owner = "moreau_jean_exact"
    work, iwork = Allocator(records.size), Allocator(records.size)
    layout = layout_of(records, work, owner, h, h)
    parts = layout.parts
    if not is_linear(layout):
        raise ValueError(f"{owner}: systems and relations must be linear; use nsds.moreau_jean")
    if (layout.constraints["level"] == POSITION).any():
        name = layout.owners[int(np.argmax(layout.constraints["level"] == POSITION))][0]
        raise ValueError(f"{owner}: interaction '{name}' is a law between y and a force; use nsds.moreau_jean")
    # 2. coefficients of the modes
    operators, bodies = np.zeros(parts.size, OPERATOR), np.zeros(parts["count"].sum(), BODY)
    for part, operator, name in zip(parts, operators, layout.part_names, strict=True):
        _store_modes(owner, records[name].reshape(records.size, -1), part, operator, name, h, work)
        mine, each = slice(part["body"], part["body"] + part["count"]), part["n"] * np.arange(part["count"])
        bodies["kind"][mine], bodies["n"][mine] = DIAGONAL, part["n"]
        bodies["dof"][mine], bodies["data"][mine] = part["dof"] + each, operator["inverse"] + each
    # 3. one-step problem; its rows as runs of entries
    form, layout, work, iwork = linear.pose(layout, operators, bodies, method, work, iwork)
    constraints = form.constraints
    tables = Tables(form, *_stretches(constraints, layout.entries, "entry"), *_stretches(constraints, layout.inputs, "input"))
    for side in ("entry", "input"):  # `gap_slack` uses b and ydot only; impulses are added by runs
        constraints[f"{side}_end"] = constraints[side]
    own = Options(h, options["gamma"].item())
    return Prepared(tables, layout.functions, own, work, iwork, sys.modules[__name__], layout)


def _store_modes(owner, fields, part, operator, name, h, work):
    """Coefficients of the modes of a part, (members, elements, n) each."""
    for matrix in "MKC":
        if part[matrix] != ABSENT and part[matrix + "_kind"] != DIAGONAL:
            raise ValueError(f"{owner}: part '{name}': {matrix} must be diagonal, a 1-D array; use modal coordinates")
    M = fields["M"]
    zero = np.zeros_like(M)
    squared, sigma = ((fields[key] / M if part[key] != ABSENT else zero) for key in "KC")
    if (squared < 0).any() or (sigma < 0).any() or (M <= 0).any():
        raise ValueError(f"{owner}: part '{name}': M must be positive, K and C must not be negative")
    decay, G = modal_factors(np.sqrt(squared), sigma / 2, h)
    operator["decay"], operator["stiffness"] = work.store(decay), work.store(squared * h * G)
    operator["push"], operator["inverse"] = work.store(h * G / M), work.store(G / M)
    has_force = part["fext"] != ABSENT or part["fext_function"] != ABSENT
    operator["force"] = work.reserve(M[0].size) if has_force else ABSENT


def _stretches(constraints, entries, side):
    """Rows and runs of consecutive entries of H or of B: long sums over neighbours in memory dominate the cost of a modal system."""
    begins = np.zeros(entries.size + 1, bool)
    begins[constraints[side]] = begins[0] = True
    begins[1:-1] |= np.diff(entries["body"]) != 0
    for column in ("coefficient", "q"):
        begins[1:-1] |= np.diff(entries[column]) != 1
    first = np.flatnonzero(begins[:-1])
    stretches = np.zeros(first.size, STRETCH)
    for column in ("coefficient", "q", "n", "body"):
        stretches[column] = entries[column][first]
    stretches["size"] = np.diff(np.append(first, entries.size))
    rows = np.zeros(constraints.size, ROW)
    rows["first"], rows["end"] = (np.searchsorted(first, constraints[column]) for column in (side, f"{side}_end"))
    return rows, stretches


@kernel
def start(t, s, functions, options, memory):
    """Before the first step: force at t, outputs of the state."""
    _evaluate_forces(t, s.linear.parts, s.linear.operators, functions, memory)
    for k in range(s.linear.relations.size):
        prescribe(t, s.linear.relations[k], functions, memory)
    _update_outputs(s, memory)
    return CONVERGED


@inlined
def step(t_new, s, calls, options, memory):
    """One step from the state in mem to the state at t_new, in mem. Returns (status, n_iter, residual)."""
    h, gamma, form = options.h, options.gamma, s.linear
    p, constraints = form.plan[0], form.constraints
    # 1. active set; rounding of gaps matters only where the forecast does not close
    for i in range(constraints.size):
        c = constraints[i]
        if c.component == 0 and c.always == 0 and memory.mem[c.gap] + gamma * h * memory.mem[c.gap_rate] > 0.0:
            memory.work[c.closed] = gap_slack(c, h, form.entries, memory)
    n = choose_active(p, constraints, gamma * h, h, memory)
    # 2. free motion
    _free_motion(form.parts, form.operators, memory)
    for k in range(form.relations.size):
        prescribe(t_new, form.relations[k], calls.functions, memory)
    status, n_iter, residual = CONVERGED, 0, 0.0
    # 3. one-step problem
    if n < 0:
        n = -1 - n
        extract_active(p, n, form.W_row, form.W_column, memory)
    if n > 0:
        _state_problem(n, s, p, memory)
        words = calls.solver_options
        status, n_iter, residual = solve_active(p, form.blocks, n, h, h, calls.solver, constraints, form.inputs, words, memory)
        _add_impulses(n, s, p, memory)
    # 4. end of the step, and forces for the next
    finite = _end_motion(h, form.parts, p, form.operators, memory)
    _evaluate_forces(t_new, form.parts, form.operators, calls.functions, memory)
    _update_outputs(s, memory)
    return status if finite else NON_FINITE, n_iter, residual


@tiny
def _evaluate_forces(t, parts, operators, functions, memory):
    """F at t, for the step that begins there."""
    mem = memory.mem
    for a in range(parts.size):
        part, n = parts[a], parts[a].n
        for e in range(part.count if operators[a].force != ABSENT else 0):
            force, z, nothing = operators[a].force + e * n, view(mem, part.z + e * part.stride, part.n_z), view(mem, 0, 0)
            if part.fext_function != ABSENT:
                call_function(functions, part.fext_function + e, (t, nothing, nothing, z, view(memory.work, force, n)))
            else:
                for i in range(n):
                    memory.work[force + i] = mem[part.fext + e * part.stride + i]


@inlined
def _state_problem(n, s, p, memory):
    """Vector q of the one-step problem: ``H v_free + e ydot_k``."""
    work = memory.work
    for a in range(n):
        i = memory.iwork[p.active + a]
        c = s.linear.constraints[i]
        ydot = 0.0 if c.rate == ABSENT else work[c.rate]
        for k in range(s.rows[i].first, s.rows[i].end):
            stretch = s.stretches[k]
            ydot += _dot(stretch.size, work, stretch.coefficient, memory.mem, stretch.q + stretch.n)
        work[p.q + a] = ydot + rebound(c, memory)


@inlined
def _free_motion(parts, operators, memory):
    """``v <- v_free``, ``p <- 0``."""
    mem, work = memory.mem, memory.work
    for a in range(parts.size):
        n = parts[a].n
        for e in range(parts[a].count):
            q = view(mem, parts[a].q + e * parts[a].stride, n)
            v, p = view(mem, parts[a].q + e * parts[a].stride + n, n), view(mem, parts[a].q + e * parts[a].stride + 2 * n, n)
            decay, stiffness = view(work, operators[a].decay + e * n, n), view(work, operators[a].stiffness + e * n, n)
            for i in range(n):
                v[i] = decay[i] * v[i] - stiffness[i] * q[i]
                p[i] = 0.0
            if operators[a].force != ABSENT:
                push, force = view(work, operators[a].push + e * n, n), view(work, operators[a].force + e * n, n)
                for i in range(n):
                    v[i] += push[i] * force[i]


@inlined
def _add_impulses(n, s, p, memory):
    """``p <- B lambda`` of the n active constraints; bodies are marked."""
    mem, work, iwork = memory.mem, memory.work, memory.iwork
    for a in range(n):
        row, z = s.input_rows[iwork[p.active + a]], work[p.z + a]
        for k in range(row.first, row.end):
            stretch = s.input_stretches[k]
            B, impulse = view(work, stretch.coefficient, stretch.size), view(mem, stretch.q + 2 * stretch.n, stretch.size)
            for i in range(stretch.size):
                impulse[i] += B[i] * z
            iwork[p.touched + stretch.body] = 1


@inlined
def _end_motion(h, parts, plan, operators, memory):
    """``v <- v_free + W^-1 p`` of bodies in contact, ``q <- q + h v``. False if not finite."""
    mem = memory.mem
    zero = 0.0
    for a in range(parts.size):
        n = parts[a].n
        for e in range(parts[a].count):
            q = view(mem, parts[a].q + e * parts[a].stride, n)
            v = view(mem, parts[a].q + e * parts[a].stride + n, n)
            body = plan.touched + parts[a].body + e
            if memory.iwork[body] != 0:
                memory.iwork[body] = 0
                p, inverse = view(mem, parts[a].q + e * parts[a].stride + 2 * n, n), view(memory.work, operators[a].inverse + e * n, n)
                for i in range(n):
                    v[i] += inverse[i] * p[i]
            # positions of all bodies
            for i in range(n):
                q[i] += h * v[i]
            zero += 0.0 * q[n - 1]
    return zero == 0.0


@inlined
def _update_outputs(s, memory):
    """``y = H q + b`` and ``ydot = H v + D lambda``."""
    mem, work = memory.mem, memory.work
    for i in range(s.linear.constraints.size):
        c = s.linear.constraints[i]
        y, ydot = 0.0 if c.base == ABSENT else work[c.base], 0.0 if c.rate == ABSENT else work[c.rate]
        for k in range(s.rows[i].first, s.rows[i].end):
            stretch = s.stretches[k]
            y += _dot(stretch.size, work, stretch.coefficient, mem, stretch.q)
            ydot += _dot(stretch.size, work, stretch.coefficient, mem, stretch.q + stretch.n)
        mem[c.y] = y if c.h == ABSENT else work[c.h]
        mem[c.ydot] = ydot + compliance(c, s.linear.constraints, s.linear.couplings, memory)


@kernel
def _dot(n, x, first_x, y, first_y):
    """``sum x[first_x + i] y[first_y + i]``, in eight sums side by side, as the processor adds."""
    a = b = c = d = e = f = g = h = 0.0
    whole = n - n % 8
    for i in range(0, whole, 8):
        a += x[first_x + i] * y[first_y + i]
        b += x[first_x + i + 1] * y[first_y + i + 1]
        c += x[first_x + i + 2] * y[first_y + i + 2]
        d += x[first_x + i + 3] * y[first_y + i + 3]
        e += x[first_x + i + 4] * y[first_y + i + 4]
        f += x[first_x + i + 5] * y[first_y + i + 5]
        g += x[first_x + i + 6] * y[first_y + i + 6]
        h += x[first_x + i + 7] * y[first_y + i + 7]
    for i in range(whole, n):
        a += x[first_x + i] * y[first_y + i]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))
