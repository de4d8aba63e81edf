"""Schemes: time stepping of whole systems in compiled code; one module each, and the time loop they share."""
