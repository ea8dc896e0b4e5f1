"""The failures that make a difference, as pictures."""

from collections.abc import Mapping, Sequence
from typing import Any

from abstain.plots.image_grid import ImageGridDisplay
from abstain_bench.studies.rankings.changes import AFTER, BEFORE
from abstain_bench.studies.rankings.folder import RankedFolder


def pictures_figure(
    folder: RankedFolder, wanted: Sequence[Mapping[str, Any]]
) -> tuple[ImageGridDisplay | None, str]:
    """Draw the failures of some pairs; or say why there are no pictures."""
    asked = [(row["exposure"], row["place"], row["about"], row["row"]) for row in wanted]
    pictures, why = folder.pictures(asked)
    title = (
        f"Failures for which {BEFORE.title} prefers the method that {AFTER.title} does not: the "
        "share is of the samples that the method is less sure of"
    )
    return (ImageGridDisplay(tuple(pictures), title) if pictures else None), why
