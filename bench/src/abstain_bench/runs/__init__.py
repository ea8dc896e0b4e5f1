"""Runs of a benchmark: what is specified, trained, stored and read again."""
