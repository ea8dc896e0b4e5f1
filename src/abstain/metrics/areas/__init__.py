"""Areas under risk-coverage curves, and metrics derived from them."""
