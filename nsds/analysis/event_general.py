"""Interface of general event-driven first-order systems for `nsds.analysis.tangent`: x' with multipliers, outputs, no jumps."""

import math

from nsds._jit import kernel, tiny
from nsds.analysis.tangent import FIELD, GUARD
from nsds.schemes.event_driven.general_outputs import evaluate_output_rates, evaluate_outputs, follow_bounds, hold, linearise
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
def load(x, s, memory):
    """Copies the state into x."""
    f = s.flow[0]
    for j in range(f.n):
        x[j] = memory.work[f.x + j]


@kernel
def evaluate(what, row, t, x, out, system, memory):
    """x' in the present modes, the output of a row, or the unchanged state in place of a reset."""
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
    elif what == GUARD:
        follow_bounds(clamped(t, f, work), s, functions, memory)
        evaluate_outputs(clamped(t, f, work), f.x_sampled, s, functions, memory)
        out[0] = work[f.w + row]
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
