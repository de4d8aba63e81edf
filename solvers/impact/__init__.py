"""Impact laws: what velocities and impulses follow from the velocities before, positions being frozen."""

from nsds.solvers.impact import multiple, poisson

# Modules by name: each has a kernel of this name in the signature of `nsds.solvers.impact.signature`, its ``work_size``, and ENOUGH, the
# residual up to which a step of velocities takes a result that has not converged. A new law is a module and a line here, with a form in
# `nsds.model.laws` that names it.
LAWS = {"multiple_impact": multiple, "poisson_impact": poisson}
