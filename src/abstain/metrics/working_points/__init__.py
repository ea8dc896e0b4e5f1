"""Risk at a coverage or threshold, coverage at a risk, and what else holds at one threshold."""
