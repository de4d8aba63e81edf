"""Impact laws: what velocities and impulses follow from the velocities before, positions being frozen."""
