"""CWSA and CWSA+: selective accuracy weighted by the confidence."""
