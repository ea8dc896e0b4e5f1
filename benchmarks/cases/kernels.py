"""Select the numba or NumPy kernels for a variant."""

from benchmarks.cases.entry import AbsentError

#: Names of the kernels. ABSTAIN_NO_NUMBA=1 selects the NumPy kernels.
NUMBA, NUMPY = "numba", "NumPy"


def require_numba() -> None:
    """Raise an `AbsentError` if numba is not installed."""
    try:
        import numba
    except ImportError as error:
        raise AbsentError(str(error)) from error
    del numba
