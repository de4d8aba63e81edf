"""Sparse elimination by blocks: one order for rows and columns, no row exchanges but inside the diagonal blocks.

The order is that of least degree: contacts with the fewest neighbours are eliminated first, and their neighbours become neighbours of
each other. Neighbours are kept as bits, n^2 / 8 bytes in all, so that an elimination is a few word operations and its result the
pattern of the factors.
"""

import numpy as np

from nsds._jit import kernel, specialised, tiny, view

LARGEST = 8192  # contacts for which the bits of all pairs are kept
_SMALL = 1e-14  # pivot of a diagonal block that counts as zero, relative to the largest entry of its row of the matrix


@tiny
def words(n):
    """Integers that hold n bits."""
    return (n + 63) // 64


@kernel
def integer_room(n, n_upper):
    """Integers of scratch for n contacts whose factors have n_upper blocks above the diagonal."""
    return n * words(n) + 5 * n + 2 + 2 * n_upper


@kernel
def float_room(d, n, n_upper):
    """Floats of scratch: diagonal blocks, a row, and the blocks of both factors."""
    return d * d * (2 * n + 2 * n_upper)


@tiny
def _count_bits(x):
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((x * 0x0101010101010101) >> 56) & 127


@kernel
def least_degree_order(row, column, bits, order, degree):
    """Order of elimination; afterwards the bits of a contact are its neighbours at that moment. Returns the number of those in all."""
    n = row.size - 1
    m = words(n)
    for i in range(n * m):
        bits[i] = 0
    for c in range(n):
        for k in range(row[c], row[c + 1]):
            j = column[k]
            if j != c:
                bits[c * m + j // 64] |= 1 << (j % 64)
        degree[c] = row[c + 1] - row[c] - 1
    total = 0
    for step in range(n):
        least, chosen = n, 0
        for c in range(n):
            if 0 <= degree[c] < least:
                least, chosen = degree[c], c
        order[step] = chosen
        total += degree[chosen]
        degree[chosen] = -1
        for w in range(m):
            rest = bits[chosen * m + w]
            while rest != 0:
                bit = rest & -rest
                rest ^= bit
                j = 64 * w + _count_bits(bit - 1)
                count = 0
                for i in range(m):
                    merged = bits[j * m + i] | bits[chosen * m + i]
                    if i == w:
                        merged &= ~bit
                    if i == chosen // 64:
                        merged &= ~(1 << (chosen % 64))
                    bits[j * m + i] = merged
                    count += _count_bits(merged)
                degree[j] = count
    return total


def count(row, column):
    """(blocks above the diagonal in the factors, integers of scratch) of a pattern."""
    n = row.size - 1
    scratch = np.zeros(n * words(n) + 2 * n, np.int64)
    n_upper = least_degree_order(row, column, scratch[2 * n :], scratch[:n], scratch[n : 2 * n])
    return n_upper, integer_room(n, n_upper)


@kernel
def pattern(row, column, symbols):
    """Order of elimination and pattern of the factors; number of blocks above the diagonal, or -1 where symbols is too small. Out: symbols."""
    n = row.size - 1
    m = words(n)
    if symbols.size < integer_room(n, 0):
        return -1
    bits, order, work = view(symbols, 5 * n + 2, n * m), view(symbols, 0, n), view(symbols, n, n)
    total = least_degree_order(row, column, bits, order, work)
    if symbols.size < integer_room(n, total):
        return -1
    _, _, upper, lower, columns = parts(n, total, symbols)
    for i in range(n):
        work[i] = 0
    for step in range(n):  # how many blocks each row has to the left of the diagonal
        for w in range(m):
            rest = bits[order[step] * m + w]
            while rest != 0:
                bit = rest & -rest
                rest ^= bit
                work[64 * w + _count_bits(bit - 1)] += 1
    lower[0] = upper[0] = 0
    for step in range(n):
        lower[step + 1] = lower[step] + work[order[step]]
        work[order[step]] = total + lower[step]
    n_upper = 0
    for step in range(n):
        for w in range(m):
            rest = bits[order[step] * m + w]
            while rest != 0:
                bit = rest & -rest
                rest ^= bit
                j = 64 * w + _count_bits(bit - 1)
                columns[n_upper] = j
                n_upper += 1
                columns[work[j]] = order[step]
                work[j] += 1
        upper[step + 1] = n_upper
    for step in range(n):
        work[order[step]] = step
    return total


@tiny
def parts(n, n_upper, symbols):
    """order (n,), its inverse (n,), and for each step: begin of its blocks in U, in L, and their columns (U's, then L's, which ascend)."""
    return (
        view(symbols, 0, n),
        view(symbols, n, n),
        view(symbols, 2 * n, n + 1),
        view(symbols, 3 * n + 1, n + 1),
        view(symbols, 5 * n + 2 + n * words(n), 2 * n_upper),
    )


_D = 0  # rows of a block; bound by `specialised`


def _invert(A, at, inverse, to):
    """Inverse of a block by Gauss–Jordan with row exchanges; the block is destroyed. False: singular."""
    for i in range(_D * _D):
        inverse[to + i] = 0.0
    for i in range(_D):
        inverse[to + i * (_D + 1)] = 1.0
    for k in range(_D):
        p = k
        for i in range(k + 1, _D):
            if abs(A[at + i * _D + k]) > abs(A[at + p * _D + k]):
                p = i
        if not abs(A[at + p * _D + k]) > 0.0:
            return False
        if p != k:
            for j in range(_D):
                A[at + k * _D + j], A[at + p * _D + j] = A[at + p * _D + j], A[at + k * _D + j]
                inverse[to + k * _D + j], inverse[to + p * _D + j] = inverse[to + p * _D + j], inverse[to + k * _D + j]
        f = 1.0 / A[at + k * _D + k]
        for j in range(_D):
            A[at + k * _D + j] *= f
            inverse[to + k * _D + j] *= f
        for i in range(_D):
            if i != k:
                f = A[at + i * _D + k]
                for j in range(_D):
                    A[at + i * _D + j] -= f * A[at + k * _D + j]
                    inverse[to + i * _D + j] -= f * inverse[to + k * _D + j]
    return True


def _multiply_subtract(X, x, Y, y, Z, z):
    """``Z -= X Y`` for blocks that begin at x, y and z."""
    for a in range(_D):
        for b in range(_D):
            s = Z[z + a * _D + b]
            for i in range(_D):
                s -= X[x + a * _D + i] * Y[y + i * _D + b]
            Z[z + a * _D + b] = s


def _multiply_add(X, x, Y, y, Z, z):
    """``Z += X Y`` for blocks that begin at x, y and z."""
    for a in range(_D):
        for b in range(_D):
            s = Z[z + a * _D + b]
            for i in range(_D):
                s += X[x + a * _D + i] * Y[y + i * _D + b]
            Z[z + a * _D + b] = s


def _factorise(row, column, W, eta, A, B, n_upper, symbols, factors):
    """Factors of the matrix with blocks ``A_i (W_ij + δ_ij eta_i I) + δ_ij B_i``; False: a diagonal block became singular."""
    n, m = row.size - 1, _D * _D
    order, place, upper, lower, columns = parts(n, n_upper, symbols)
    inverse, line, U, L = (
        view(factors, 0, n * m),
        view(factors, n * m, n * m),
        view(factors, 2 * n * m, n_upper * m),
        view(factors, (2 * n + n_upper) * m, n_upper * m),
    )
    for step in range(n):
        i = order[step]
        for e in range(upper[step], upper[step + 1]):
            for a in range(m):
                line[columns[e] * m + a] = 0.0
        for e in range(n_upper + lower[step], n_upper + lower[step + 1]):
            for a in range(m):
                line[columns[e] * m + a] = 0.0
        for k in range(row[i], row[i + 1]):
            j = column[k] * m
            for a in range(_D):
                for b in range(_D):
                    s = 0.0
                    for c in range(_D):
                        s += A[i * m + a * _D + c] * W[k * m + c * _D + b]
                    line[j + a * _D + b] = s
        for a in range(m):
            line[i * m + a] += B[i * m + a] + eta[i] * A[i * m + a]
        for e in range(lower[step], lower[step + 1]):
            k = columns[n_upper + e]
            some = 0.0
            for a in range(m):
                L[e * m + a] = 0.0
                some = max(some, abs(line[k * m + a]))
            if some > 0.0:
                _multiply_subtract(line, k * m, inverse, k * m, L, e * m)  # minus the factor
                for f in range(upper[place[k]], upper[place[k] + 1]):
                    _multiply_add(L, e * m, U, f * m, line, columns[f] * m)
        for e in range(upper[step], upper[step + 1]):
            for a in range(m):
                U[e * m + a] = line[columns[e] * m + a]
        if not _invert(line, i * m, inverse, i * m):
            return False
    return True


def _substitute(row, n_upper, symbols, factors, x):
    """``x <- (matrix)^-1 x`` with the factors of `factorise`."""
    n, m = row.size - 1, _D * _D
    order, place, upper, lower, columns = parts(n, n_upper, symbols)
    inverse, line, U, L = (
        view(factors, 0, n * m),
        view(factors, n * m, n * m),
        view(factors, 2 * n * m, n_upper * m),
        view(factors, (2 * n + n_upper) * m, n_upper * m),
    )
    for step in range(n):
        i = order[step] * _D
        for e in range(lower[step], lower[step + 1]):
            j = columns[n_upper + e] * _D
            for a in range(_D):
                for b in range(_D):
                    x[i + a] += L[e * m + a * _D + b] * x[j + b]
    for step in range(n - 1, -1, -1):
        i = order[step] * _D
        for e in range(upper[step], upper[step + 1]):
            j = columns[e] * _D
            for a in range(_D):
                for b in range(_D):
                    x[i + a] -= U[e * m + a * _D + b] * x[j + b]
        for a in range(_D):
            line[a] = x[i + a]
            x[i + a] = 0.0
        for a in range(_D):
            for b in range(_D):
                x[i + a] += inverse[order[step] * m + a * _D + b] * line[b]


def _templates(d):
    """(factorise, substitute) for blocks of d rows."""
    pieces = {
        "_D": d,
        "_invert": tiny(specialised(_invert, str(d), _D=d)),
        "_multiply_add": tiny(specialised(_multiply_add, str(d), _D=d)),
        "_multiply_subtract": tiny(specialised(_multiply_subtract, str(d), _D=d)),
    }
    return kernel(specialised(_factorise, str(d), **pieces)), kernel(specialised(_substitute, str(d), **pieces))


_factorise_2, _substitute_2 = _templates(2)
_factorise_3, _substitute_3 = _templates(3)
_factorise_5, _substitute_5 = _templates(5)


@kernel
def factorise(d, row, column, W, eta, A, B, n_upper, symbols, factors):
    """Factors of the matrix with blocks ``A_i (W_ij + δ_ij eta_i I) + δ_ij B_i``; False: a diagonal block became singular."""
    if d == 2:
        return _factorise_2(row, column, W, eta, A, B, n_upper, symbols, factors)
    if d == 3:
        return _factorise_3(row, column, W, eta, A, B, n_upper, symbols, factors)
    return _factorise_5(row, column, W, eta, A, B, n_upper, symbols, factors)


@kernel
def substitute(d, row, n_upper, symbols, factors, x):
    """``x <- (matrix)^-1 x`` with the factors of `factorise`."""
    if d == 2:
        _substitute_2(row, n_upper, symbols, factors, x)
    elif d == 3:
        _substitute_3(row, n_upper, symbols, factors, x)
    else:
        _substitute_5(row, n_upper, symbols, factors, x)
