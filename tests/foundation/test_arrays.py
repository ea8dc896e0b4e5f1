"""Arrays of every library: same numbers, arrays of the caller's kind."""

from typing import Any

import numpy as np
import pytest

import abstain as ab

C = np.array([0.9, 0.8, 0.8, 0.3, 0.1])
LOSS = np.array([0, 1, 0, 0, 1])


def test_lists_and_series() -> None:
    expected = ab.augrc(C, LOSS)
    assert ab.augrc(C.tolist(), LOSS.tolist()) == expected
    pd = pytest.importorskip("pandas")
    assert ab.augrc(pd.Series(C), pd.Series(LOSS)) == expected
    pl = pytest.importorskip("polars")
    assert ab.augrc(pl.Series(C), pl.Series(LOSS)) == expected


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_torch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    c = torch.tensor(C, dtype=getattr(torch, dtype), requires_grad=True)
    expected = ab.augrc(c.detach().to(torch.float64).numpy(), LOSS)
    value = ab.augrc(c, torch.tensor(LOSS))
    assert isinstance(value, float)
    assert value == pytest.approx(expected, abs=1e-12)


def test_torch_curves_are_tensors() -> None:
    torch = pytest.importorskip("torch")
    curve = ab.risk_coverage_curve(torch.tensor(C), torch.tensor(LOSS))
    assert isinstance(curve.risk, torch.Tensor)
    assert curve.risk.tolist() == ab.risk_coverage_curve(C, LOSS).risk.tolist()
    assert curve.frame().height == 4
    parts = ab.sample_contributions(torch.tensor(C), torch.tensor(LOSS))
    assert isinstance(parts, torch.Tensor)


def test_array_api_strict() -> None:
    xp: Any = pytest.importorskip("array_api_strict")
    c, loss = xp.asarray(C), xp.asarray(LOSS)
    assert ab.augrc(c, loss) == ab.augrc(C, LOSS)
    curve = ab.generalized_risk_coverage_curve(c, loss)
    assert type(curve.risk) is type(c)


def test_masked_array_without_mask_is_fine() -> None:
    assert ab.augrc(np.ma.array(C), LOSS) == ab.augrc(C, LOSS)
