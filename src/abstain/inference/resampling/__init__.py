"""Areas of every resample of a score that is sorted once, in NumPy alone or compiled."""
