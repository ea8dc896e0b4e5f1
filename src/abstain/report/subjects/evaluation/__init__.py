"""Report of an evaluation, with the metrics and charts of every score on every split."""
