"""Dry friction at rest on a stop that acts on another body: on the load behind a gear, or the slider of a crank.

Joints hand on what friction and stop carry. With the impulses of equations that answer a unit of either, ``x_j = -W_EE^-1 W_Ej``, the
entries of W between both are ``W_ij + W_iE x_j``, and `nsds.schemes.problem.friction` is true of these: where they have rank 1, the change
of both, with that of the equations, changes no velocity.
"""

from nsds._jit import kernel, tiny, view
from nsds.schemes.problem import friction, redundancy
from nsds.schemes.rigid import equations

_STEADY = 1e-12  # relative to the bound: friction that differs by less from that of the last step is the same
_MOVES = 1e-9  # relative to the diagonal entry: the answer of a row that joints do not hold still


@kernel
def keep(stated, row, column, W, G, kept, s, memory):
    """Friction as near to that of the last step as a stop elsewhere allows, after `friction.note`. In/out: r of stated."""
    p, d, r = s.plan[0], s.plan[0].d, stated.r
    n_equations, rank = 0, -1
    for f in range(stated.disk.size):
        if kept[2 * f] != friction.RUBS:
            continue
        limit = r[d * f]
        wanted = min(max(kept[2 * f + 1], -limit), limit)
        for k in range(stated.disk.size):
            is_pressed = kept[2 * k] == friction.STOPS and r[d * k] > 0.0 and friction.is_in_cone(d, stated.disk[k], r, k)
            if not (is_pressed and abs(wanted - r[d * f + 1]) > _STEADY * limit):
                continue
            if rank < 0:
                n_equations = equations.gather_dense(d, stated, s.bodies, G, p, memory)
                rank = redundancy.factorise(n_equations, p, memory)
            _share(f, k, n_equations, rank, wanted, (stated, row, column, W), p, memory)


@kernel
def _share(f, k, n_equations, rank, wanted, problem, p, memory):
    """Shift load between friction of block f and the stop of block k, and through the equations. In/out: r."""
    d, r = p.d, problem[0].r
    rubs, stops, x = d * f + 1, d * k, view(memory.work, p.answer, 2 * r.size)
    by_friction, by_stop = view(x, 0, r.size), view(x, r.size, r.size)
    _answer(rubs, n_equations, rank, problem, by_friction, p, memory)
    _answer(stops, n_equations, rank, problem, by_stop, p, memory)
    ff, sf = _rate(rubs, by_friction, problem, d), _rate(stops, by_friction, problem, d)
    fs, ss = _rate(rubs, by_stop, problem, d), _rate(stops, by_stop, problem, d)
    if not (ff > _MOVES * _own(rubs, problem, d) and ss > _MOVES * _own(stops, problem, d)):
        return  # equations alone hold one of them
    change = friction.shift(wanted, view(memory.work, p.u, r.size)[rubs], r[d * f], r[rubs], r[stops], (ff, fs, sf, ss))
    for i in range(r.size if change != 0.0 else 0):
        r[i] += change * (by_friction[i] - sf / ss * by_stop[i])
    r[stops] = max(r[stops], 0.0)


@kernel
def _answer(j, n_equations, rank, problem, x, p, memory):
    """Impulses of the equations by which a unit of component j does not move them. Out: x, 1 in j."""
    stated, row, column, W = problem
    d, q = p.d, view(memory.work, p.answer + 2 * x.size, x.size)
    for i in range(stated.disk.size):
        for a in range(d):
            q[d * i + a] = 0.0
        for l in range(row[i], row[i + 1]):
            for a in range(d if column[l] == j // d else 0):
                q[d * i + a] = W[(l * d + a) * d + j % d]
    redundancy.solve(n_equations, rank, q, p, x, memory)
    x[j] = 1.0


@tiny
def _rate(i, x, problem, d):
    """Velocity of component i by impulses x."""
    _, row, column, W = problem
    total = 0.0
    for l in range(row[i // d], row[i // d + 1]):
        for a in range(d):
            total += W[(l * d + i % d) * d + a] * x[d * column[l] + a]
    return total


@tiny
def _own(i, problem, d):
    """Diagonal entry of component i."""
    _, row, column, W = problem
    own = friction.entry(i // d, i // d, row, column)
    return W[(own * d + i % d) * d + i % d]
