"""Analysis of motions: bifurcation diagrams, periodic orbits, multipliers, Lyapunov exponents, sensitivities."""
