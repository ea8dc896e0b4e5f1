"""CWSA and CWSA+, which weight the selective accuracy by the confidence."""
