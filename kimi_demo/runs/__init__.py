"""Runs: tasks the application owns, kept as lists of events that tabs subscribe to."""
