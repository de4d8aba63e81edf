"""Vectors and rotations: kernels of their own that everything else may use."""
