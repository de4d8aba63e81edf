"""Functions that users call: problems are checked and converted, solved in a workspace, and returned with a status."""
