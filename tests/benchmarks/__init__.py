"""Benchmarks: ``python -m tests.benchmarks``. Never collected as tests; figures are shown, not asserted."""
