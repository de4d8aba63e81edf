"""Stiffness and mass of rectangular grids of linear elements, in the plane (strain) or in space, in NumPy alone."""

from itertools import product

import numpy as np
import scipy.sparse as sp


def grid_of(axes):
    """Points (n, d) of a tensor grid, the last axis running fastest."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def elastic_block(axes, E=1.0, nu=0.3, density=1.0):
    """(points (n, d), M, K) of multilinear elements between the places of each axis; the d displacements of a point lie together."""
    d, cells = len(axes), [len(axis) - 1 for axis in axes]
    lame, shear = E * nu / (1 + nu) / (1 - 2 * nu), E / 2 / (1 + nu)
    corners = np.array(list(product((0, 1), repeat=d)))
    ids = np.arange(np.prod([len(axis) for axis in axes])).reshape([len(axis) for axis in axes])
    first = np.stack([index.reshape(-1) for index in np.indices(cells)], axis=1)
    nodes = np.stack([ids[tuple((first + corner).T)] for corner in corners], axis=1)
    size = np.stack([np.diff(axis)[first[:, i]] for i, axis in enumerate(axes)], axis=1)
    size, kind = np.unique(size, axis=0, return_inverse=True)  # elements of one size have one matrix
    n_e, n_c = len(size), len(corners)
    stiffness, mass = np.zeros((n_e, n_c * d, n_c * d)), np.zeros((n_e, n_c * d, n_c * d))
    for point in product((0.5 - 0.5 / 3**0.5, 0.5 + 0.5 / 3**0.5), repeat=d):
        factors = np.where(corners == 1, point, 1 - np.array(point))  # shape functions are their products
        shape, weight = factors.prod(axis=1), size.prod(axis=1) / 2**d
        slopes = np.stack([(2 * corners[:, i] - 1) * np.delete(factors, i, axis=1).prod(axis=1) for i in range(d)], axis=1)
        gradient = slopes[None] / size[:, None]  # (element, corner, direction)
        flat = gradient.reshape(n_e, -1)
        within = np.einsum("eai,ebi->eab", gradient, gradient)
        K = lame * flat[:, :, None] * flat[:, None, :]
        K += shear * np.einsum("eaj,ebi->eaibj", gradient, gradient).reshape(K.shape)
        K += shear * np.einsum("eab,ij->eaibj", within, np.eye(d)).reshape(K.shape)
        stiffness += weight[:, None, None] * K
        mass += density * weight[:, None, None] * np.kron(np.outer(shape, shape), np.eye(d))
    dofs = (d * nodes[:, :, None] + np.arange(d)).reshape(len(nodes), -1)
    where = np.repeat(dofs, n_c * d, axis=1).reshape(-1), np.tile(dofs, (1, n_c * d)).reshape(-1)
    n = d * ids.size
    values = (matrix[kind.reshape(-1)].reshape(-1) for matrix in (mass, stiffness))
    return grid_of(axes), *(sp.csr_array(sp.coo_array((value, where), shape=(n, n))) for value in values)
