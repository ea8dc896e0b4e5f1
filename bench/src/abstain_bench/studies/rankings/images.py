"""Images of the failures that cause a disagreement of the metrics."""

from collections.abc import Sequence

from abstain.plots.image_grid import ImageGridDisplay
from abstain_bench.studies._tables import Row
from abstain_bench.studies.rankings.folder import RankedFolder
from abstain_bench.studies.rankings.ranked_studies import FIRST_METRIC, SECOND_METRIC


def failure_images_figure(
    folder: RankedFolder, image_rows: Sequence[Row]
) -> tuple[ImageGridDisplay | None, str]:
    """Plot the failures of some pairs, or return the reason why there are no images."""
    requests = [(row["exposure"], row["index"], row["label"], row["panel"]) for row in image_rows]
    images, reason = folder.images(requests)
    if not images:
        return None, reason
    title = (
        f"Failures for which {FIRST_METRIC.title} prefers another method than "
        f"{SECOND_METRIC.title}, with the share of samples of lower confidence"
    )
    return ImageGridDisplay(tuple(images), title), reason
