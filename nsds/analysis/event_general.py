"""Interface of general event-driven first-order systems for `nsds.analysis.tangent`: x' with multipliers, outputs, no jumps."""

import math

from nsds._jit import kernel, tiny
from nsds.analysis.tangent import ALONG_LAMBDA, FIELD, GUARD, OFF_SURFACE, ROUNDED
from nsds.schemes.event_driven.general_outputs import (
    along_lambda,
    evaluate_output_rates,
    evaluate_outputs,
    follow_bounds,
    hold,
    linearise,
    off_surface,
)
from nsds.schemes.event_driven.general_outputs import n_surfaces as count_surfaces
from nsds.schemes.event_driven.switched_rows import HELD, LOWER
from nsds.schemes.sides import clamped


@tiny
def is_linear(s):
    """False: there are functions of time, or nonlinear ones."""
    return False


@tiny
def n_guards(s):
    """Number of rows with guards."""
    return s.flow[0].m


@tiny
def crosses(i, s, iwork):
    """Whether the output of an open row has crossed zero; where lambda of a closed one reaches a bound the motion stays smooth."""
    f = s.flow[0]
    return iwork[f.fired + i] != 0 and iwork[f.mode + i] != HELD


@kernel
def n_surfaces(t, x, s, functions, options, memory):
    """(Number of surfaces on which lambda keeps the motion from x on, 0 of them by second derivatives)."""
    f = s.flow[0]
    for j in range(f.n):
        memory.work[f.x_sampled + j] = x[j]
    return count_surfaces(clamped(t, f, memory.work), f.x_sampled, s, functions, memory), 0


@kernel
def load(x, s, memory):
    """Copies the state into x."""
    f = s.flow[0]
    for j in range(f.n):
        x[j] = memory.work[f.x + j]


@kernel
def evaluate(what, row, t, x, out, system, memory):
    """x' in the present modes, the output of a row, the unchanged state in place of a reset; how far off surfaces x is, or B there."""
    s, functions = system.tables, system.functions
    work = memory.work
    f = s.flow[0]
    for j in range(f.n):
        work[f.x_sampled + j] = x[j]
    _put_at_bounds(s, memory)
    if what == FIELD:
        if f.is_affine != 0:
            linearise(clamped(t, f, work), s, functions, memory)  # constant matrices may be those of a changed parameter
        hold(clamped(t, f, work), f.x_sampled, s, functions, memory)
        for j in range(f.n):
            out[j] = work[f.xdot + j]
            # where lambda cancels what moves a state there is nothing but rounding, which has no derivatives
            free = out[j]
            for i in range(f.m if memory.iwork[f.count] > 0 else 0):
                free -= work[f.MB + i * f.n + j] * memory.mem[s.newton.constraints[i].lam]
            out[j] = out[j] if abs(out[j]) > ROUNDED * abs(free) else 0.0
    elif what == GUARD:
        follow_bounds(clamped(t, f, work), s, functions, memory)
        evaluate_outputs(clamped(t, f, work), f.x_sampled, s, functions, memory)
        out[0] = work[f.w + row]
    elif what == OFF_SURFACE:
        evaluate_outputs(clamped(t, f, work), f.x_sampled, s, functions, memory)
        for k in range(min(memory.iwork[f.count] - memory.iwork[f.n_direct] - row, f.n)):
            out[k] = off_surface(row + k, s, memory)
    elif what == ALONG_LAMBDA:
        along_lambda(row, out, s, memory)
    else:
        for j in range(f.n):
            out[j] = x[j]


@kernel
def _put_at_bounds(s, memory):
    """Lambda of rows that are at a bound, as bounds may be those of a changed parameter."""
    constraints, f, p = s.newton.constraints, s.flow[0], s.newton.plan[0]
    for i in range(f.m):
        if memory.iwork[f.mode + i] != HELD:
            bound = memory.work[(p.lower if memory.iwork[f.mode + i] == LOWER else p.upper) + i]
            memory.mem[constraints[i].lam] = bound if abs(bound) < math.inf else memory.mem[constraints[i].lam]


@kernel
def guard_rate(row, t, x, s, functions, options, memory):
    """Rate of change of the output of a row along the motion; call after `evaluate` of FIELD."""
    work = memory.work
    f = s.flow[0]
    linearise(clamped(t, f, work), s, functions, memory)
    evaluate_output_rates(clamped(t, f, work), f.x_sampled, s, functions, memory)
    return work[f.wt + row]


@kernel
def set_reset(s, memory):
    """No operation: jumps of the state are counted as untreated."""
