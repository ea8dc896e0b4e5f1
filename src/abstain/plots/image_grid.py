"""Grids of images with descriptions."""

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from abstain.errors import InputError, ShapeError
from abstain.plots._panels import Panels, distinct, replace_axes
from abstain.plots.formatting import escape_control_characters
from abstain.plots.labels import draw_text
from abstain.plots.style import INK
from abstain.typing import Array

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: Height of the heading of a row, as a share of the height of its images.
_HEADING_HEIGHT = 0.12

#: Size of an image in inches, height of a line of text in inches, and maximum number of letters in
#: a line.
_IMAGE_SIZE, _LINE_HEIGHT, _MAX_LINE_LENGTH = 1.15, 0.15, 17


@dataclass(frozen=True, eq=False)
class LabeledImage:
    """An image with a name and a description.

    Attributes
    ----------
    name, description : str
        Name of the sample, and text below the image.
    levels : ndarray of shape (height, width) or (height, width, 3)
        Gray or RGB values from 0 to 255.
    row : str
        Name of the row.

    Examples
    --------
    >>> import numpy as np
    >>> LabeledImage("iid 7", "an A, taken for B", np.zeros((8, 8), np.uint8)).row
    ''
    """

    name: str
    description: str
    levels: Array
    row: str = ""


@dataclass(eq=False)
class ImageGridDisplay(Panels):
    """Rows of images. Each row has a heading, and each image has a description.

    `plot` passes additional options to each call of ``Axes.imshow`` (cmap, interpolation).

    Attributes
    ----------
    images : tuple of LabeledImage
        Images, in the order in which they are drawn.
    title : str
        Title of the figure.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.plots import ImageGridDisplay, LabeledImage
    >>> image = LabeledImage("iid 7", "an A, taken for B", np.zeros((8, 8), np.uint8), "msr")
    >>> ImageGridDisplay((image,), "Failures").frame().rows()
    [('msr', 'iid 7', 'an A, taken for B', 8, 8)]
    """

    images: tuple[LabeledImage, ...]
    title: str

    def __post_init__(self) -> None:
        """Check that there is at least one image, and that all images have a valid shape."""
        if not self.images:
            raise InputError("`images` must contain at least one image; got none")
        for image in self.images:
            shape = image.levels.shape
            if len(shape) not in {2, 3} or shape[2:] not in {(), (3,)}:
                raise ShapeError(
                    f"image {image.name!r} must have shape (h, w) or (h, w, 3); got {shape}"
                )

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per image."""
        import polars as pl

        rows = [(p.row, p.name, p.description, *p.levels.shape[:2]) for p in self.images]
        columns = ["row", "name", "about", "height", "width"]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw each row of images below its heading."""
        rows = self._rows()
        n_columns = max(map(len, rows.values()))
        style = {"cmap": "gray", "vmin": 0, "vmax": 255, "interpolation": "nearest", **kwargs}
        figure: Any = self.figure_
        # The heading spans the complete row, and therefore does not change the width of an image.
        heights = [_HEADING_HEIGHT, 1.0] * len(rows)
        grid = replace_axes(axes, 2 * len(rows), n_columns, height_ratios=heights)
        for i, (row, row_images) in enumerate(rows.items()):
            heading = figure.add_subplot(grid[2 * i, :])
            heading.axis("off")
            draw_text(heading, 0.0, 0.0, row, fontsize=8.5, transform=heading.transAxes)
            for j, image in enumerate(row_images):
                ax = figure.add_subplot(grid[2 * i + 1, j])
                ax.imshow(image.levels, **style)
                ax.set(xticks=[], yticks=[])
                ax.spines[:].set_visible(False)
                ax.set_xlabel(_wrapped_description(image), fontsize=7, color=INK, parse_math=False)
                if i == j == 0:
                    self.ax_ = ax

    def _rows(self) -> dict[str, list[LabeledImage]]:
        """Return the images of each row, by the name of the row."""
        return {
            row: [p for p in self.images if p.row == row] for row in distinct(self.images, "row")
        }

    def _size(self) -> tuple[float, float]:
        rows = self._rows()
        n_lines = max(_wrapped_description(p).count("\n") + 1 for p in self.images)
        row_height = _IMAGE_SIZE + 0.3 + _LINE_HEIGHT * n_lines
        width = max(_IMAGE_SIZE * max(map(len, rows.values())), 4.0)
        return width, 0.4 + row_height * len(rows)


def _wrapped_description(image: LabeledImage) -> str:
    return "\n".join(wrap(escape_control_characters(image.description), _MAX_LINE_LENGTH))
