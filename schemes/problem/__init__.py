"""The one-step problem: its active constraints, matrix and vector, and its solver."""
