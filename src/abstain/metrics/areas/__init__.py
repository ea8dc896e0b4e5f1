"""Areas under risk-coverage curves, and metrics that are computed from these areas."""
