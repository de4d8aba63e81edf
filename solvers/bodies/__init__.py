"""Contacts of bodies without a Delassus matrix: sweeps that act on velocities."""
