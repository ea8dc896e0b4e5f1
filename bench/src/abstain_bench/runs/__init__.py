"""Define, train, store and read the runs of a benchmark."""
