"""The curves of a comparison as the page shows them: figures, points and who is drawn."""

from typing import Any

from abstain.curves.bands import RiskCoverageBand
from abstain.evaluation.comparison import Comparison
from abstain.plots import chosen
from abstain.plots.bands import whole
from abstain.plots.palette import dash, variable
from abstain.report.comparison_figures import find_figure
from abstain.report.comparison_rows import band_rows
from abstain.report.comparison_words import where
from abstain.report.words import unique
from abstain.typing import Split

#: Curves shown at first; a reader can show the others that are drawn.
_CURVES = 3


def curves_said(comparison: Comparison) -> str:
    """Say how many methods have their curves drawn, where not all have."""
    drawn, known = len(chosen.with_curves(comparison)), len(comparison.methods)
    return f"{drawn} of {known} methods are drawn, the first by rank." if drawn < known else ""


def methods_of(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the methods whose curves are drawn, and which of them are shown at first."""
    return [
        _method(comparison.methods.index(name), name, comparison)
        for name in chosen.with_curves(comparison)
    ]


def _method(index: int, name: str, comparison: Comparison) -> dict[str, Any]:
    standings = chosen.standings_in(comparison, comparison.metrics[0], comparison.data[0])
    first = [s.method for s in standings][:_CURVES] or list(comparison.methods[:_CURVES])
    pattern = " ".join(str(length) for length in dash(index))
    shown = name in first
    return {"key": index, "name": name, "color": variable(index), "dash": pattern, "shown": shown}


def curves_of(
    comparison: Comparison, j: int, data: Split, figures: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the figures of one data set, each with some of its points."""
    kept = chosen.with_curves(comparison)
    bands = [b for b in comparison.bands if b.data == data and b.method in kept]
    if not bands:
        return None
    kinds = ("selective", "generalized")
    return {
        "data": j,
        "label": where(data),
        "parts": [
            {
                "key": f"{kind}-{j}",
                "figure": find_figure(figures, f"{kind}-bands", "", data),
                "rows": band_rows(bands, kind),
                "note": " ".join(_notes_of([getattr(b, kind) for b in bands])),
            }
            for kind in kinds
        ],
    }


def _notes_of(bands: list[RiskCoverageBand]) -> list[str]:
    notes = unique(band.note for band in bands if band.note)
    first = max((band.simultaneous_from for band in bands), default=0.0)
    more = f"The outer band speaks of coverages from {first:.2g} up." if first else ""
    if not any(whole(band).any() for band in bands):
        more = f"It would speak of coverages from {first:.2g} up only."
    return [*([more] if more else []), *(f"{chosen.sentence(note)}." for note in notes)]
