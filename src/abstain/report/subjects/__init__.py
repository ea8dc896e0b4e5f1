"""Functions that build the report of each type of result."""
