"""The kernels that a variant computes with: numba's, or NumPy's alone."""

from benchmarks.cases.entry import AbsentError

#: NumPy's alone: with ABSTAIN_NO_NUMBA=1.
NUMBA, NUMPY = "numba", "NumPy"


def require_numba() -> None:
    """Raise an `AbsentError` where numba is not installed."""
    try:
        import numba
    except ImportError as error:
        raise AbsentError(str(error)) from error
    del numba
