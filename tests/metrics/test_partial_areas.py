"""Areas between two coverages as metrics made by name; their laws are in tests/properties."""

import numpy as np
import pytest

import abstain as ab
from abstain._foundation.scored import validate_samples
from abstain.errors import UnknownNameError


@pytest.mark.parametrize("kind", ["aurc", "augrc"])
def test_an_area_between_coverages_has_a_name_and_an_interval(kind):
    confidence = np.linspace(1, 0, 60)
    loss = np.arange(60) % 7 > 4
    function = {"aurc": ab.partial_aurc, "augrc": ab.partial_augrc}[kind]
    metric = ab.metrics.metric_named(f"partial_{kind}@12.5-80cov")
    value = function(confidence, loss, low=0.125, high=0.8, mean=True)
    assert metric.compute(validate_samples(confidence, loss)).value == pytest.approx(
        value, abs=1e-15
    )
    interval = ab.metric_interval(confidence, loss, metric=metric.name)
    assert interval.low < value < interval.high
    assert "among the accepted" in interval.note or interval.note == ""


@pytest.mark.parametrize(
    "name", ["partial_aurc@80-50cov", "partial_augrc@50-101cov", "partial_ece@1-2cov"]
)
def test_coverages_that_cannot_be_raise_an_error(name):
    with pytest.raises(UnknownNameError, match="partial_augrc@50-80cov"):
        ab.metrics.metric_named(name)
