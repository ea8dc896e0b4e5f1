"""Areas of all resamples of a score that is sorted once: NumPy kernels and compiled kernels."""
