"""Report of a decision rule with its guarantee and its checks on other data."""
