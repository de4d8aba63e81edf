"""Vectors, rotations and times: kernels of their own that everything else may use."""
