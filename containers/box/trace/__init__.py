"""Runs a target repo's own test rows without a GPU and records every kernel launch."""
