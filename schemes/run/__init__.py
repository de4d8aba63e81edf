"""The march of a scheme: time loop, rows, files, controllers."""
