"""Constructors of systems, relations and laws, and the records they make."""
