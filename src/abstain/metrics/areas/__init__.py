"""Areas under risk-coverage curves, and what is made of them."""
