"""Trajectories, their files, and evaluations of them."""
