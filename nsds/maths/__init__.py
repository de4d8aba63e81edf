"""Vectors, rotations, times, polynomials and sparse factors: kernels without dependencies on the rest."""
