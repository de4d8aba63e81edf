"""Hand-written kernels for piles of equal spheres in a box: contacts from a grid, and sweeps that know that these are spheres."""

import time

import numba
import numpy as np

from tests.benchmarks import flops


@numba.njit
def _fill_cells(x, low, size, shape, cell, start, members):
    """Spheres by cells: those of cell k are ``members[start[k]:start[k + 1]]``."""
    for k in range(start.size):
        start[k] = 0
    for i in range(len(x)):
        c = 0
        for a in range(3):
            c = c * shape[a] + min(max(int((x[i, a] - low[a]) / size), 0), shape[a] - 1)
        cell[i] = c
        start[c + 1] += 1
    for k in range(start.size - 1):
        start[k + 1] += start[k]
    for i in range(len(x) - 1, -1, -1):
        start[cell[i] + 1] -= 1
        members[start[cell[i] + 1]] = i
    for k in range(start.size - 1):
        start[k] = start[k + 1]
    start[start.size - 1] = len(x)


@numba.njit
def _find(x, radius, reach, half, low, size, shape, cell, start, members, ids, normals):
    """Pairs closer than reach, and spheres as close to the walls (body n is the world); returns how many."""
    n, found = len(x), 0
    _fill_cells(x, low, size, shape, cell, start, members)
    for k in range(n):
        i = members[k]
        at_0, rest = cell[i] // (shape[1] * shape[2]), cell[i] % (shape[1] * shape[2])
        at_1, at_2 = rest // shape[2], rest % shape[2]
        for a in range(max(at_0 - 1, 0), min(at_0 + 2, shape[0])):
            for b in range(max(at_1 - 1, 0), min(at_1 + 2, shape[1])):
                for c in range(max(at_2 - 1, 0), min(at_2 + 2, shape[2])):
                    other = (a * shape[1] + b) * shape[2] + c
                    for m in range(start[other], start[other + 1]):
                        j = members[m]
                        if j < i:
                            d_0, d_1, d_2 = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1], x[i, 2] - x[j, 2]
                            square = d_0 * d_0 + d_1 * d_1 + d_2 * d_2
                            if square < (2.0 * radius + reach) ** 2 and found < len(ids):
                                distance = np.sqrt(square)
                                ids[found, 0], ids[found, 1] = i, j
                                normals[found, 0], normals[found, 1], normals[found, 2] = d_0 / distance, d_1 / distance, d_2 / distance
                                found += 1
        for a in range(3):
            for side in range(1 if a == 2 else 2):
                gap = x[i, 2] if a == 2 else half - x[i, a] if side == 1 else half + x[i, a]
                if gap < radius + reach and found < len(ids):
                    ids[found, 0], ids[found, 1] = i, n
                    normals[found, 0] = normals[found, 1] = normals[found, 2] = 0.0
                    normals[found, a] = 1.0 - 2.0 * side
                    found += 1
    return found


@numba.njit
def _sweep(n_sweeps, radius, mu, ids, normals, r, v, inverse):
    """Sweeps over contacts whose block of W is a diagonal: the root of the normal, the tangent projected; v and omega by body."""
    for _ in range(n_sweeps):
        for c in range(len(ids)):
            i, j = ids[c, 0], ids[c, 1]
            n_0, n_1, n_2 = normals[c, 0], normals[c, 1], normals[c, 2]
            w_0, w_1, w_2 = v[i, 3] + v[j, 3], v[i, 4] + v[j, 4], v[i, 5] + v[j, 5]
            u_0 = v[i, 0] - v[j, 0] - radius * (w_1 * n_2 - w_2 * n_1)
            u_1 = v[i, 1] - v[j, 1] - radius * (w_2 * n_0 - w_0 * n_2)
            u_2 = v[i, 2] - v[j, 2] - radius * (w_0 * n_1 - w_1 * n_0)
            W = inverse[i, 0] + inverse[j, 0]
            W_t = W + radius * radius * (inverse[i, 1] + inverse[j, 1])
            u_n = u_0 * n_0 + u_1 * n_1 + u_2 * n_2
            new_n = max(0.0, r[c, 3] - u_n / W)
            t_0, t_1, t_2 = r[c, 0] - (u_0 - u_n * n_0) / W_t, r[c, 1] - (u_1 - u_n * n_1) / W_t, r[c, 2] - (u_2 - u_n * n_2) / W_t
            size, most = np.sqrt(t_0 * t_0 + t_1 * t_1 + t_2 * t_2), mu * new_n
            if size > most:
                share = most / size
                t_0, t_1, t_2 = share * t_0, share * t_1, share * t_2
            d_n = new_n - r[c, 3]
            p_0, p_1, p_2 = t_0 - r[c, 0], t_1 - r[c, 1], t_2 - r[c, 2]
            l_0, l_1, l_2 = radius * (p_1 * n_2 - p_2 * n_1), radius * (p_2 * n_0 - p_0 * n_2), radius * (p_0 * n_1 - p_1 * n_0)
            p_0, p_1, p_2 = p_0 + d_n * n_0, p_1 + d_n * n_1, p_2 + d_n * n_2
            r[c, 0], r[c, 1], r[c, 2], r[c, 3] = t_0, t_1, t_2, new_n
            m, a = inverse[i, 0], inverse[i, 1]
            v[i, 0], v[i, 1], v[i, 2] = v[i, 0] + m * p_0, v[i, 1] + m * p_1, v[i, 2] + m * p_2
            v[i, 3], v[i, 4], v[i, 5] = v[i, 3] + a * l_0, v[i, 4] + a * l_1, v[i, 5] + a * l_2
            m, a = inverse[j, 0], inverse[j, 1]
            v[j, 0], v[j, 1], v[j, 2] = v[j, 0] - m * p_0, v[j, 1] - m * p_1, v[j, 2] - m * p_2
            v[j, 3], v[j, 4], v[j, 5] = v[j, 3] + a * l_0, v[j, 4] + a * l_1, v[j, 5] + a * l_2


_REACH = 1e-3  # radii
_SWEEPS = 10
_BEST_OF = 3


class Pile:
    """The contacts of a pile of spheres, and arrays for its sweeps."""

    def __init__(self, x, v, radius, mass, half):
        n, self.x, self.radius, self.half = len(x), np.ascontiguousarray(x), radius, half
        self.low, self.size = np.append(-half * np.ones(2), 0.0), 2.01 * radius
        self.shape = np.maximum(np.ceil((np.append([half, half], x[:, 2].max() + radius) - self.low) / self.size), 1).astype(np.int64)
        self.cell, self.start, self.members = np.empty(n, int), np.empty(self.shape.prod() + 1, int), np.empty(n, int)
        self.ids, self.normals = np.empty((8 * n, 2), int), np.empty((8 * n, 3))
        self.n_contacts = self.find()
        self.v = np.vstack([v, np.zeros(6)])
        self.v[:n, 2] -= 9.81 * 5e-3
        self.inverse = np.vstack([np.tile([1 / mass, 1 / (0.4 * mass * radius**2)], (n, 1)), np.zeros(2)])

    def find(self):
        """Contacts, as `_find` has them; returns their number."""
        return _find(self.x, self.radius, _REACH * self.radius, self.half, self.low, self.size, self.shape, self.cell, self.start,
                     self.members, self.ids, self.normals)  # fmt: skip

    def arguments(self, n_sweeps, n_contacts, mu):
        """Of `_sweep`, with the state at the start."""
        ids, normals = self.ids[:n_contacts], self.normals[:n_contacts]
        return n_sweeps, self.radius, mu, ids, normals, np.zeros((n_contacts, 4)), self.v.copy(), self.inverse

    def measure(self, mu):
        """(s to find all contacts, s a contact and sweep, operations a contact and sweep); NaN without contacts."""
        finding = min(_seconds(self.find) for _ in range(_BEST_OF))
        if self.n_contacts == 0:
            return finding, np.nan, np.nan
        given = [self.arguments(_SWEEPS, self.n_contacts, mu) for _ in range(_BEST_OF + 1)]
        _sweep(*given[0])
        sweeping = min(_seconds(lambda few=few: _sweep(*few)) for few in given[1:]) / self.n_contacts / _SWEEPS
        some = min(self.n_contacts, 200)
        return finding, sweeping, flops.of(_sweep, *self.arguments(_SWEEPS, some, mu)) / some / _SWEEPS


def _seconds(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
