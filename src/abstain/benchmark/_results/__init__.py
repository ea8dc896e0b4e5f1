"""The parts of `abstain.benchmark.results`."""
