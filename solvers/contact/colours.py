"""Colours of contacts: those of one colour do not influence each other, so that they may be solved at the same time."""

from nsds._jit import kernel


@kernel
def paint(row, column, order, begin, colour, taken):
    """Number of colours; those of colour k are ``order[begin[k]:begin[k + 1]]``, ascending. Greedy: the first colour that no neighbour has.

    Out: order (n,), begin (n+1,). Work: colour (n,), taken (n+1,).
    """
    n, n_colours = row.size - 1, 0
    for k in range(n + 1):
        taken[k] = -1
        begin[k] = 0
    for c in range(n):
        for k in range(row[c], row[c + 1]):
            if column[k] < c:
                taken[colour[column[k]]] = c
        first = 0
        while taken[first] == c:
            first += 1
        colour[c] = first
        n_colours = max(n_colours, first + 1)
        begin[first + 1] += 1
    for k in range(n_colours):
        begin[k + 1] += begin[k]
        taken[k] = begin[k]
    for c in range(n):
        order[taken[colour[c]]] = c
        taken[colour[c]] += 1
    return n_colours
