"""The text of a display names what it holds and prints no arrays."""

import numpy as np

import abstain as ab
from abstain.curves import reliability_curve
from abstain.plots import ReliabilityDisplay, RiskCoverageDisplay, SeriesDisplay, drawable

RNG = np.random.default_rng(0)
CONFIDENCE, LOSS = RNG.random(200), RNG.integers(0, 2, 200)


def test_displays_of_curves_name_them():
    curve = ab.risk_coverage_curve(CONFIDENCE, LOSS)
    text = repr(RiskCoverageDisplay.from_curve({"msr": curve, "pe": curve}))
    assert text.startswith("RiskCoverageDisplay(curves={'msr', 'pe'}; .frame() has the numbers")
    many = {f"score {i}": curve for i in range(9)}
    assert "'score 4', ...}" in repr(RiskCoverageDisplay.from_curve(many))


def test_no_display_prints_an_array():
    def classes(base):
        return {base}.union(*(classes(sub) for sub in base.__subclasses__()))

    curve = reliability_curve(CONFIDENCE, LOSS)
    assert "array" not in repr(ReliabilityDisplay.from_curve(curve))
    assert SeriesDisplay in classes(drawable.Drawable)
    for cls in classes(drawable.Drawable):
        assert cls.__repr__ is drawable.Drawable.__repr__, cls
