"""The lowest layer: arrays, checks, tie groups, catalogues, records and files.

It imports NumPy, SciPy, the array-API helpers, msgspec, and from abstain only errors and types.
"""
