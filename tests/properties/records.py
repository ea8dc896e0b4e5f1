"""Compare results field by field, arrays and nested records too."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def assert_equal(a: Any, b: Any, *, rtol: float = 0.0, at: str = "") -> None:
    """Assert that two results are equal, or their numbers up to a relative tolerance."""
    assert type(a) is type(b), (at, a, b)
    if callable(a) and not is_dataclass(a):
        # What draws a part of a page when it is asked for.
        return
    if is_dataclass(a):
        for field in fields(a):
            if field.repr or not field.name.startswith("known"):
                x, y = getattr(a, field.name), getattr(b, field.name)
                assert_equal(x, y, rtol=rtol, at=f"{at}.{field.name}")
    elif isinstance(a, Mapping):
        assert list(a) == list(b), at
        for key in a:
            assert_equal(a[key], b[key], rtol=rtol, at=f"{at}[{key!r}]")
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b), (at, a, b)
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_equal(x, y, rtol=rtol, at=f"{at}[{i}]")
    elif isinstance(a, np.ndarray) and a.dtype.kind in "fc":
        np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol, err_msg=at)
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b, err_msg=at)
    elif isinstance(a, float):
        close = a == b or (np.isnan(a) and np.isnan(b)) or abs(a - b) <= rtol * max(1.0, abs(a))
        assert close, (at, a, b)
    else:
        assert a == b, (at, a, b)
