"""Report of a cascade: its guarantee and its checks on other data."""
