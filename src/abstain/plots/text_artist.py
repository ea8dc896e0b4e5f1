"""A matplotlib artist that draws many short texts.

Matplotlib measures each tick label many times before it writes a figure. For each tick label,
matplotlib also creates a second label, two tick marks and a grid line. The artist of this module
measures each text once.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backend_bases import RendererBase
from matplotlib.text import Text
from matplotlib.transforms import Bbox, Transform

from abstain.typing import FloatArray


class TextArtist(Artist):
    """Many texts of the same style at given points."""

    def __init__(
        self, texts: Sequence[str], points: FloatArray, transform: Transform, **style: Any
    ) -> None:
        super().__init__()
        self._texts, self._points = list(texts), np.asarray(points, np.float64)
        self._template = Text(parse_math=False, **style)
        self._cached_boxes: tuple[float, FloatArray] | None = None
        self.set_transform(transform)

    @property
    def texts(self) -> list[str]:
        """Texts of the artist."""
        return self._texts

    def set_figure(self, fig: Any) -> None:
        """Set the figure.

        Its resolution determines the size of the texts in pixels.
        """
        super().set_figure(fig)
        self._template.set_figure(fig)

    def draw(self, renderer: RendererBase) -> None:
        """Draw all texts."""
        if not self.get_visible():
            return
        for text, point in zip(self._texts, self._positions(), strict=True):
            self._text_at(text, point).draw(renderer)
        self.stale = False

    def boxes(self, renderer: RendererBase | None = None) -> FloatArray:
        """Return the left, bottom, right and top of each text in pixels, of shape (n, 4)."""
        return np.asarray(self._relative_boxes(renderer) + np.tile(self._positions(), 2))

    def get_window_extent(self, renderer: RendererBase | None = None) -> Bbox:
        """Return the bounding box of all texts."""
        if not self._texts:
            return Bbox.null()
        boxes = self.boxes(renderer)
        return Bbox([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])

    def _positions(self) -> FloatArray:
        return np.asarray(self.get_transform().transform(self._points))

    def _text_at(self, text: str, point: FloatArray) -> Text:
        self._template.set_text(text)
        self._template.set_position((float(point[0]), float(point[1])))
        return self._template

    def _relative_boxes(self, renderer: RendererBase | None) -> FloatArray:
        """Return the bounding box of each text, relative to the point of the text.

        The boxes are cached for each resolution.
        """
        figure: Any = self.figure
        if self._cached_boxes is None or self._cached_boxes[0] != figure.dpi:
            origin = np.zeros(2)
            boxes = [
                self._text_at(t, origin).get_window_extent(renderer).extents for t in self._texts
            ]
            self._cached_boxes = figure.dpi, np.array(boxes, np.float64)
        return self._cached_boxes[1]
