"""The one-step problem: which constraints take part, its matrix and vector, and its solver."""
