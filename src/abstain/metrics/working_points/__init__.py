"""Risk at a coverage or threshold, coverage at a risk, and other metrics of one threshold."""
