"""NumPy kernels and compiled kernels for the areas of all resamples of a sorted score."""
