"""Pictures of trajectories and bodies."""
