"""Functions and classes that all other packages use: arrays, checks, tie groups, records, files.

The modules import only NumPy, SciPy, msgspec, array-API helpers, and the errors and types of
abstain.
"""
