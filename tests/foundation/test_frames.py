"""Tables of results as dataframes of the library that is asked for."""

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain import thresholds
from abstain.curves import reliability_curve
from abstain.curves.bands import risk_coverage_band
from abstain.errors import InputError, MissingInputError
from abstain.metrics import cwsa_sweep, group_contributions
from abstain.tables import table

CONFIDENCE = np.round(np.linspace(0.5, 0.99, 60), 3)
LOSS = (np.arange(60) % 4 == 0).astype(float)
PREDICTIONS = ab.Predictions(confidence={"own": CONFIDENCE, "b": CONFIDENCE[::-1]}, loss=LOSS)
RULE = thresholds.DecisionRule("risk", 0.7, target=0.4, score="own")

TABLES = {
    "evaluation": lambda: ab.evaluate(PREDICTIONS).frame,
    "comparison": lambda: ab.compare(PREDICTIONS).frame,
    "rule checks": lambda: ab.check_rule(RULE, PREDICTIONS).frame,
    "curve": lambda: ab.risk_coverage_curve(CONFIDENCE, LOSS).frame,
    "reliability": lambda: reliability_curve(CONFIDENCE, LOSS).frame,
    "band": lambda: risk_coverage_band(CONFIDENCE, LOSS).frame,
    "sweep": lambda: cwsa_sweep(CONFIDENCE, LOSS).frame,
    "contributions": lambda: group_contributions(CONFIDENCE, LOSS, np.arange(60) % 3).frame,
    "confusion": lambda: ab.selective_confusion_matrix([0, 1], [0, 0], [True, False]).frame,
}


def values(column):
    """Return entries with NaN and null as one, which pandas does not tell apart."""
    return [None if x is None or x != x else x for x in column]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("backend", ["pandas", "pyarrow"])
def test_every_result_has_the_same_table_in_each_library(kind, backend):
    has_the_same_table(TABLES[kind](), backend)


def has_the_same_table(frame, backend):
    """Assert that a table of another library has the columns and entries of that of polars."""
    library = pytest.importorskip(backend)
    own, other = frame(), frame(backend=backend)
    assert isinstance(own, pl.DataFrame)
    assert isinstance(other, library.DataFrame if backend == "pandas" else library.Table)
    columns = list(other.columns) if backend == "pandas" else other.column_names
    assert columns == own.columns
    assert own.height > 0
    for name in columns:
        column = other[name].tolist() if backend == "pandas" else other[name].to_pylist()
        assert values(column) == values(own[name].to_list())


def test_another_library_raises_an_error_by_name():
    with pytest.raises(InputError, match=r"`backend` must be .*'pandas'.*got 'cudf'"):
        ab.evaluate(PREDICTIONS).frame(backend="cudf")


def test_a_library_that_is_absent_is_named(monkeypatch):
    monkeypatch.setattr(table, "is_installed", lambda name: False)
    with pytest.raises(MissingInputError, match="pip install pandas"):
        ab.evaluate(PREDICTIONS).frame(backend="pandas")
