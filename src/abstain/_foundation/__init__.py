"""The lowest layer: arrays, checks, tie groups, catalogues, records and files.

The modules import NumPy, SciPy, the array-API helpers and msgspec. From abstain, they import only
the errors and the types.
"""
