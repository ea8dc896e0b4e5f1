"""Confidence-weighted selective accuracy (CWSA and CWSA+)."""
