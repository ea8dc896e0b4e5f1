"""Whatever a table holds, something is proposed or nothing is, and a library never complains."""

import warnings

import numpy as np
import polars as pl
import pytest

from abstain.tables.proposal import propose
from abstain.tables.table import from_polars

NAMES = (
    "label", "gt", "y_test", "pred", "prediction", "correct", "confidence", "score", "loss", "id",
    "p_0", "p_1", "p_2", "logit_a", "logit_b", "image", "class", "split", "entropy", "0", "1", "cat",
)  # fmt: skip


def columns(rng, n):
    """Entries of every kind that a file may hold."""
    return (
        rng.integers(0, 3, n).tolist(),
        [None] * n,
        rng.choice(["cat", "dog", ""], n).tolist(),
        rng.random(n).tolist(),
        rng.choice([0.5, np.nan, np.inf, -1.0], n).tolist(),
        rng.random(n).round().astype(bool).tolist(),
        [[a, 1 - a] for a in rng.random(n).tolist()],
        [0.0] * n,
        list(map(str, range(n))),
        np.repeat(np.arange((n + 1) // 2), 2)[:n].tolist(),
        [[1.0] * int(size) for size in rng.integers(0, 3, n)],
        [["word"] * 2] * n,
    )


@pytest.mark.parametrize("seed", range(8))
def test_any_table(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        n = int(rng.integers(1, 40))
        kinds = columns(rng, n)
        names = rng.choice(NAMES, size=int(rng.integers(1, 9)), replace=False)
        frame = pl.DataFrame({str(name): kinds[rng.integers(len(kinds))] for name in names})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = propose(from_polars(frame, "a file"))
        asked = [
            name.removeprefix("-") if name not in frame.columns else name
            for one in result
            if one.role not in {"missing", "unknown_label"}
            for name in one.columns
        ]
        assert set(asked) <= set(frame.columns)
