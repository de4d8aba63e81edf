"""Tests of circuits from netlists."""
