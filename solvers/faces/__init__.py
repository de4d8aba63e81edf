"""What users call: problems checked and converted, solved on a desk, and returned with a status that is raised or warned of."""
