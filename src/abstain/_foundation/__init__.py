"""What every layer stands on: arrays, checks, ranks and ties, catalogues, records, files.

Imports NumPy, SciPy, the array-API helpers and msgspec, and nothing else of abstain but its errors.
"""
