"""Event-driven integration: smooth flows, the events that end them, and their effects."""
