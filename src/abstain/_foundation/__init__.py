"""Functions and classes that all other packages use: arrays, checks, tie groups, records, files.

The modules import only the errors and the types of abstain, NumPy, SciPy, msgspec and array-API
helpers.
"""
