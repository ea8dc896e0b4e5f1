"""What tests of the kernels share."""

import importlib.util

import pytest

_NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba")


@pytest.fixture(params=["numpy", pytest.param("numba", marks=_NUMBA)])
def backend(request, monkeypatch):
    """Take the kernels of NumPy, then the compiled ones."""
    monkeypatch.setenv("ABSTAIN_NO_NUMBA", "1" if request.param == "numpy" else "0")
    return request.param
