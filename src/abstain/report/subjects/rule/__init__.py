"""Report of a decision rule: its guarantee and its checks on other data."""
