"""What every layer stands on: arrays, checks, ranks and ties, catalogues, optional packages.

Imports NumPy, SciPy and the array-API helpers, and nothing else of abstain but its errors.
"""
