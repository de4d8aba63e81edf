"""Trajectories, their files, and what is read off them."""
