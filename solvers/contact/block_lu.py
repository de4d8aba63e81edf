"""Sparse elimination by blocks: one order for rows and columns, no row exchanges but inside the diagonal blocks.

The order is that of least degree: contacts with the fewest neighbours are eliminated first, and their neighbours become neighbours of
each other. Neighbours are kept as bits, n^2 / 8 bytes in all, so that an elimination is a few word operations and its result the
pattern of the factors.

Columns are numbered in the order of elimination, in which the blocks of a row of U lie side by side in a few runs. The d rows of such a
row of blocks are stored as d rows of numbers, so that elimination is ``line += L_ik U_k`` along runs, with L_ik in registers.
Rows of zeros (open contacts, where A = 0) are skipped.
"""

import numpy as np

from nsds._jit import kernel, load, put, specialised, spread, tiny, view
from nsds.maths.dense import invert

LARGEST = 8192  # contacts for which the bits of all pairs are kept
UNLIMITED = 1 << 62  # products of two blocks
LARGEST_FILL = 1 << 22  # blocks above the diagonal of the factors for which scratch is asked for


@tiny
def words(n):
    """Integers that hold n bits."""
    return (n + 63) // 64


@kernel
def integer_room(n, n_upper):
    """Integers of scratch for n contacts whose factors have n_upper blocks above the diagonal."""
    return n * words(n) + 5 * n + 2 + 3 * n_upper


@kernel
def float_room(d, n, n_upper):
    """Floats of scratch: diagonal blocks, a row, the size of each row of U, and the blocks of both factors."""
    return d * d * (2 * n + 1 + 2 * n_upper) + n


@tiny
def count_bits(x):
    """Number of bits of x that are set."""
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((x * 0x0101010101010101) >> 56) & 127


@kernel
def least_degree_order(most, row, column, bits, order, degree):
    """Order of elimination; afterwards the bits of a contact are its neighbours at that moment. Returns the number of those in all.

    -1 as soon as the elimination takes more than so many products of two blocks.
    """
    n = row.size - 1
    m = words(n)
    for i in range(n * m):
        bits[i] = 0
    for c in range(n):
        for k in range(row[c], row[c + 1]):
            j = column[k]
            if j != c:
                bits[c * m + j // 64] |= np.int64(1) << (j % 64)
        degree[c] = row[c + 1] - row[c] - 1
    total = least = products = 0
    for step in range(n):
        bound, least, chosen = least - 1, n, 0  # an elimination lowers the least degree by one at most
        for c in range(n):
            if 0 <= degree[c] < least:
                least, chosen = degree[c], c
                if least <= bound:
                    break
        order[step] = chosen
        total += degree[chosen]
        products += degree[chosen] ** 2
        if products > most:
            return -1
        degree[chosen] = -1
        for w in range(m):
            rest = bits[chosen * m + w]
            while rest != 0:
                bit = rest & -rest
                rest ^= bit
                j = 64 * w + count_bits(bit - 1)
                count = 0
                for i in range(m):
                    merged = bits[j * m + i] | bits[chosen * m + i]
                    if i == w:
                        merged &= ~bit
                    if i == chosen // 64:
                        merged &= ~(np.int64(1) << (chosen % 64))
                    bits[j * m + i] = merged
                    count += count_bits(merged)
                degree[j] = count
    return total


def work_size(room, d, row, column):
    """(floats, integers) of scratch for a method that needs ``room(d, n, n_upper)`` floats; if too much, what it takes to say so."""
    n = row.size - 1
    if n > LARGEST:
        return 5, 0
    scratch = np.zeros(n * words(n) + 2 * n, np.int64)
    n_upper = least_degree_order(UNLIMITED, row, column, scratch[2 * n :], scratch[:n], scratch[n : 2 * n])
    return (room(d, n, n_upper), integer_room(n, n_upper)) if n_upper <= LARGEST_FILL else (5, 0)


@kernel
def pattern(most, row, column, symbols):
    """Order of elimination and pattern of the factors. Out: symbols.

    Returns the number of blocks above the diagonal; -1 where symbols is too small, or factors take more than so many products of blocks.
    """
    n = row.size - 1
    m = words(n)
    if n > LARGEST or symbols.size < integer_room(n, 0):
        return -1
    bits, order, work = view(symbols, 5 * n + 2, n * m), view(symbols, 0, n), view(symbols, n, n)
    total = least_degree_order(most, row, column, bits, order, work)
    if total < 0 or symbols.size < integer_room(n, total):
        return -1
    _, place, upper, lower, columns, runs = parts(n, total, symbols)
    cursor = view(symbols, 4 * n + 2, n)
    lower[0] = upper[0] = 0
    for step in range(n):
        place[order[step]] = step
        lower[step + 1] = 0
    for step in range(n):
        for w in range(m):
            rest = bits[order[step] * m + w]
            while rest != 0:
                lower[place[64 * w + count_bits((rest & -rest) - 1)] + 1] += 1
                rest &= rest - 1
    for step in range(n):
        lower[step + 1] += lower[step]
        cursor[step] = total + lower[step]
    for step in range(n):
        upper[step + 1] = upper[step]
        for w in range(m):
            rest = bits[order[step] * m + w]
            while rest != 0:
                i = place[64 * w + count_bits((rest & -rest) - 1)]
                rest &= rest - 1
                columns[cursor[i]] = step
                cursor[i] += 1
                upper[step + 1] += 1
    _transpose(n, total, upper, lower, columns, cursor)
    for e in range(total):
        runs[e] = 1
    for step in range(n):
        for e in range(upper[step + 1] - 2, upper[step] - 1, -1):
            if columns[e + 1] == columns[e] + 1:
                runs[e] = runs[e + 1] + 1
    return total


@kernel
def cost(row, column, symbols):
    """Products of two blocks that `factorise` may have to form; -1 where symbols is too small."""
    n = row.size - 1
    n_upper = pattern(UNLIMITED, row, column, symbols)
    return n_products(n, n_upper, symbols) if n_upper >= 0 else -1


@tiny
def n_products(n, n_upper, symbols):
    """Products of two blocks that `factorise` has to form for a pattern."""
    upper, total = parts(n, n_upper, symbols)[2], 0
    for step in range(n):
        total += (upper[step + 1] - upper[step]) ** 2
    return total


@tiny
def _transpose(n, total, upper, lower, columns, cursor):
    """Columns of U from those of L."""
    for step in range(n):
        cursor[step] = upper[step]
    for step in range(n):
        for e in range(total + lower[step], total + lower[step + 1]):
            k = columns[e]
            columns[cursor[k]] = step
            cursor[k] += 1


@tiny
def parts(n, n_upper, symbols):
    """Contact of each step, its inverse (n,); for each step the begin of its blocks in U, in L; their columns; run of columns from each.

    Columns are steps and ascend: first those of U, then those of L.
    """
    at = 5 * n + 2 + n * words(n)
    return (
        view(symbols, 0, n),
        view(symbols, n, n),
        view(symbols, 2 * n, n + 1),
        view(symbols, 3 * n + 1, n + 1),
        view(symbols, at, 2 * n_upper),
        view(symbols, at + 2 * n_upper, n_upper),
    )


@tiny
def pieces(n, n_upper, m, factors):
    """Inverse diagonal blocks, a row of blocks and one block, the size of each row of U; U by rows of numbers, L by blocks of m."""
    return (
        view(factors, 0, n * m),
        view(factors, n * m, (n + 1) * m),
        view(factors, (2 * n + 1) * m, n),
        view(factors, (2 * n + 1) * m + n, n_upper * m),
        view(factors, (2 * n + 1 + n_upper) * m + n, n_upper * m),
    )


_D = 0  # rows of a block; bound by `specialised`


@tiny
def _add_2(L, e, U, u, width, line, to, stride, size):
    """``line += L_e U`` for size columns of two rows; rows of U and line are width and stride apart."""
    a, b, c, d = L[e], L[e + 1], L[e + 2], L[e + 3]
    for x in range(size):
        U_0, U_1 = U[u + x], U[u + width + x]
        line[to + x] += a * U_0 + b * U_1
        line[to + stride + x] += c * U_0 + d * U_1


@tiny
def _add_3(L, e, U, u, width, line, to, stride, size):
    """The same for three rows."""
    a, b, c, d, f, g, h, i, j = L[e], L[e + 1], L[e + 2], L[e + 3], L[e + 4], L[e + 5], L[e + 6], L[e + 7], L[e + 8]
    for x in range(size):
        U_0, U_1, U_2 = U[u + x], U[u + width + x], U[u + 2 * width + x]
        p, q, r = line[to + x], line[to + stride + x], line[to + 2 * stride + x]
        line[to + x] = p + a * U_0 + b * U_1 + c * U_2
        line[to + stride + x] = q + d * U_0 + f * U_1 + g * U_2
        line[to + 2 * stride + x] = r + h * U_0 + i * U_1 + j * U_2


@tiny
def _add_5(L, e, U, u, width, line, to, stride, size):
    """The same for five rows."""
    for i in range(5):
        a, b, c, d, f = L[e + 5 * i], L[e + 5 * i + 1], L[e + 5 * i + 2], L[e + 5 * i + 3], L[e + 5 * i + 4]
        for x in range(u, u + size):
            line[to + i * stride + x - u] += (
                a * U[x] + b * U[width + x] + c * U[2 * width + x] + d * U[3 * width + x] + f * U[4 * width + x]
            )


@tiny
def _add_6(L, e, U, u, width, line, to, stride, size):
    """The same for six rows, six columns side by side."""
    for x in range(0, size, 6):
        v = u + x
        U_0, U_1, U_2 = _six(U, v), _six(U, v + width), _six(U, v + 2 * width)
        U_3, U_4, U_5 = _six(U, v + 3 * width), _six(U, v + 4 * width), _six(U, v + 5 * width)
        for i in range(6):
            at, out = e + 6 * i, view(line, to + i * stride + x, 6)
            total = L[at] * U_0 + L[at + 1] * U_1 + L[at + 2] * U_2 + L[at + 3] * U_3 + L[at + 4] * U_4 + L[at + 5] * U_5
            put(out, 0, 6, load(out, 0, 6) + total)


@tiny
def _six(x, at):
    """Six numbers of x."""
    return load(view(x, at, 6), 0, 6)


_add, _invert = _add_3, invert  # bound by `specialised`


def _load_plain(c, problem, eta, A, B, place, line):
    """The row of blocks of W, as it is."""
    n = problem.row.size - 1
    for k in range(problem.row[c], problem.row[c + 1]):
        j = place[problem.column[k]]
        for a in range(_D):
            put(line, a * n + j, _D, load(problem.W, k * _D + a, _D))


def _load(c, problem, eta, A, B, place, line):
    """The row of blocks of contact c: ``A (W_cj + δ_cj eta I) + δ_cj B``."""
    row = problem.row
    n, m = row.size - 1, _D * _D
    for k in range(row[c], row[c + 1]):
        j = place[problem.column[k]] * _D
        for a in range(_D):
            s = spread(0.0, _D)
            for i in range(_D):
                s = s + A[c * m + a * _D + i] * load(problem.W, k * _D + i, _D)
            put(view(line, a * n * _D + j, _D), 0, _D, s)
    for a in range(_D):
        for b in range(_D):
            line[(a * n + place[c]) * _D + b] += B[c * m + a * _D + b] + eta[c] * A[c * m + a * _D + b]


def _multiplier(n, k, line, inverse, L, e):
    """Block e of L: ``- line_k inverse_k``; returns the sum of sizes of the block of line."""
    size = 0.0
    for a in range(_D):
        at = (a * n + k) * _D
        s = spread(0.0, _D)
        for i in range(_D):
            size += abs(line[at + i])
            s = s - line[at + i] * load(inverse, k * _D + i, _D)
        put(L, e * _D + a, _D, s)
    return size


def _add_row(n, k, e, upper, columns, runs, U, L, line):
    """``line += L_e U_k``, run by run."""
    first, f, width = upper[k], upper[k], (upper[k + 1] - upper[k]) * _D
    while f < upper[k + 1]:
        u, to = first * _D * _D + (f - first) * _D, columns[f] * _D
        _add(L, e * _D * _D, U, u, width, line, to, n * _D, runs[f] * _D)
        f += runs[f]


def _factorise(problem, eta, A, B, n_upper, symbols, factors):
    """Factors of the matrix with blocks ``A_i (W_ij + δ_ij eta_i I) + δ_ij B_i``; False: a diagonal block became singular."""
    n, m = problem.row.size - 1, _D * _D
    order, place, upper, lower, columns, runs = parts(n, n_upper, symbols)
    inverse, line, size, U, L = pieces(n, n_upper, m, factors)
    for x in range(n * m):
        line[x] = 0.0
    for step in range(n):
        _load(order[step], problem, eta, A, B, place, line)
        for e in range(lower[step], lower[step + 1]):
            k = columns[n_upper + e]
            some = _multiplier(n, k, line, inverse, L, e)
            if some > 0.0 and size[k] > 0.0:
                _add_row(n, k, e, upper, columns, runs, U, L, line)
            for a in range(_D):
                for b in range(_D):
                    line[(a * n + k) * _D + b] = 0.0
        size[step] = 0.0
        width = (upper[step + 1] - upper[step]) * _D
        for e in range(upper[step], upper[step + 1]):
            to, at = upper[step] * m + (e - upper[step]) * _D, columns[e] * _D
            for a in range(_D):
                for b in range(_D):
                    x = line[a * n * _D + at + b]
                    U[to + a * width + b] = x
                    line[a * n * _D + at + b] = 0.0
                    size[step] += abs(x)
        for a in range(_D):
            for b in range(_D):
                at = (a * n + step) * _D + b
                line[n * m + a * _D + b] = line[at]
                line[at] = 0.0
        if not _invert(view(line, n * m, m), view(inverse, step * m, m)):
            return False
    return True


def _substitute(row, n_upper, symbols, factors, x):
    """``x <- (matrix)^-1 x`` with the factors of `factorise`."""
    n, m = row.size - 1, _D * _D
    order, place, upper, lower, columns, _ = parts(n, n_upper, symbols)
    inverse, y, _, U, L = pieces(n, n_upper, m, factors)
    for step in range(n):
        i = step * _D
        for a in range(_D):
            y[i + a] = x[order[step] * _D + a]
        for e in range(lower[step], lower[step + 1]):
            j = columns[n_upper + e] * _D
            for a in range(_D):
                for b in range(_D):
                    y[i + a] += L[e * m + a * _D + b] * y[j + b]
    for step in range(n - 1, -1, -1):
        i, to = step * _D, order[step] * _D
        width = (upper[step + 1] - upper[step]) * _D
        for e in range(upper[step], upper[step + 1]):
            j, at = columns[e] * _D, upper[step] * m + (e - upper[step]) * _D
            for a in range(_D):
                for b in range(_D):
                    y[i + a] -= U[at + a * width + b] * y[j + b]
        for a in range(_D):
            x[to + a] = 0.0
            for b in range(_D):
                x[to + a] += inverse[step * m + a * _D + b] * y[i + b]
        for a in range(_D):
            y[i + a] = x[to + a]


def _templates(d, add, load_row=_load):
    """(factorise, substitute) for blocks of d rows."""
    names = {"_D": d, "_invert": tiny(specialised(invert, str(d), _N=d))}
    for name, function in (("_load", load_row), ("_multiplier", _multiplier), ("_add_row", _add_row)):
        names[name] = tiny(specialised(function, str(d), _D=d, _add=add))
    return kernel(specialised(_factorise, str(d), **names)), kernel(specialised(_substitute, str(d), **names))


_factorise_2, _substitute_2 = _templates(2, _add_2)
_factorise_3, _substitute_3 = _templates(3, _add_3)
_factorise_5, _substitute_5 = _templates(5, _add_5)
_factorise_6, _substitute_6 = _templates(6, _add_6, _load_plain)


@kernel
def factorise(d, problem, eta, A, B, n_upper, symbols, factors):
    """Factors of the matrix with blocks ``A_i (W_ij + δ_ij eta_i I) + δ_ij B_i``; False: a diagonal block became singular."""
    if d == 2:
        return _factorise_2(problem, eta, A, B, n_upper, symbols, factors)
    if d == 3:
        return _factorise_3(problem, eta, A, B, n_upper, symbols, factors)
    return _factorise_5(problem, eta, A, B, n_upper, symbols, factors)


@kernel
def factorise_bodies(problem, n_upper, symbols, factors):
    """Factors of the matrix of 6 × 6 blocks W as it is; False: a diagonal block became singular."""
    nothing = problem.q
    return _factorise_6(problem, nothing, nothing, nothing, n_upper, symbols, factors)


@kernel
def substitute(d, row, n_upper, symbols, factors, x):
    """``x <- (matrix)^-1 x`` with the factors of `factorise`."""
    if d == 2:
        _substitute_2(row, n_upper, symbols, factors, x)
    elif d == 3:
        _substitute_3(row, n_upper, symbols, factors, x)
    elif d == 5:
        _substitute_5(row, n_upper, symbols, factors, x)
    else:
        _substitute_6(row, n_upper, symbols, factors, x)
