"""Shared functions and classes for arrays, checks, tie groups, records and files.

The modules import only NumPy, SciPy, msgspec, array-API helpers, and the errors and types of
abstain.
"""
