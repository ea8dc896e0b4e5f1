"""Report of an evaluation, with metrics and charts of each score on each split."""
