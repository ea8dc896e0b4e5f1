"""A comparison without an adjustment calls its p-values p; a notebook explains its own mark."""

import io

import numpy as np
import pytest
from rich.console import Console

import abstain as ab
from abstain.report import build_document, render

RNG = np.random.default_rng(0)
SIGNAL = RNG.random(300)
PREDICTIONS = ab.Predictions(
    confidence={
        "first": SIGNAL + 0.3 * RNG.random(300),
        "second": SIGNAL + 0.3 * RNG.random(300),
        "third": RNG.random(300),
    },
    loss=(RNG.random(300) > SIGNAL).astype(float),
)


@pytest.fixture(scope="module")
def comparisons():
    options = {"metrics": ["augrc"], "margin": 0.01, "reference": "first"}
    return {
        adjustment: ab.compare(PREDICTIONS, adjustment=adjustment, **options)
        for adjustment in ("none", "holm")
    }


def printed(comparison, format):
    document = build_document(comparison)
    if format != "terminal":
        return str(render(document, format))
    console = Console(file=io.StringIO(), width=100)
    console.print(render(document, format))
    return console.file.getvalue()


@pytest.mark.parametrize("format", ["terminal", "markdown", "html", "latex", "notebook"])
def test_p_values_are_called_adjusted_only_if_they_are(comparisons, format):
    texts = {
        adjustment: " ".join(printed(comparison, format).split()).lower()
        for adjustment, comparison in comparisons.items()
    }
    assert "adjusted p" in texts["holm"]
    assert "adjusted p" not in texts["none"]
    assert "for the number of pairs, p is" not in texts["none"]


def test_the_notebook_has_no_unexplained_marks(comparisons):
    page = comparisons["holm"]._repr_html_()
    assert "Conclusion" in page
    assert "≈" not in page
    assert "†" not in page
