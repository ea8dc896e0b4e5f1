"""The failures that make a difference, as pictures."""

from collections.abc import Iterator, Sequence

from abstain.plots.pictures import PicturesDisplay
from abstain.studies.rankings.changes import AFTER, BEFORE
from abstain.studies.rankings.folder import RankedFolder
from abstain.studies.rankings.violations import Disagreement


def pictures_figure(
    folder: RankedFolder, found: Sequence[Disagreement], most: int
) -> tuple[PicturesDisplay | None, str]:
    """Draw the failures of some pairs; or say why there are no pictures."""
    wanted = [one for pair in found for one in _of_pair(folder, pair, most)]
    pictures, why = folder.pictures(wanted)
    title = (
        f"Failures for which {BEFORE.title} prefers the method that {AFTER.title} does not: the "
        "share is of the samples that the method is less sure of"
    )
    return (PicturesDisplay(tuple(pictures), title) if pictures else None), why


def _of_pair(
    folder: RankedFolder, pair: Disagreement, most: int
) -> Iterator[tuple[str, int, str, str]]:
    labels = pair.units[0].labels
    for row in pair.blamed[:most].tolist():
        exposure, place = folder.place(pair.study, row)
        name = "" if labels is None else f"{folder.label(int(labels[row]))}: "
        share = f"{100 * pair.surer_than(pair.better, row):.1f}\u00a0%"
        yield (
            exposure,
            place,
            f"{name}{share}",
            f"{pair.study}: {pair.better} is better, {BEFORE.title} prefers {pair.worse}",
        )
