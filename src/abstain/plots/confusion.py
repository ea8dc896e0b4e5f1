"""Confusion matrices with a column for abstentions."""

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abstain.errors import InputError
from abstain.metrics.selective_confusion import (
    Normalize,
    SelectiveConfusion,
    selective_confusion_matrix,
)
from abstain.plots.drawable import Titled
from abstain.plots.labels import draw_text, hide_frame, label_width, set_tick_labels, unique_labels
from abstain.plots.style import GRID, INK, LIGHT, MUTED, PAPER, Style
from abstain.typing import AnyArray

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


def abstention_column(k: int) -> tuple[float, float]:
    """Return the x coordinates of the edges of the column for abstentions.

    Coordinates are in units of a cell. There is a gap between the `k` columns of the classes and
    the column for abstentions. If the cells are small, the column has a minimum width.
    """
    left = k - 0.5 + 0.3 + k / 60
    return left, left + max(1.0, k / 40)


def mix_with_white(color: str, share: float) -> tuple[float, float, float]:
    """Return a mixture of a color with white.

    A share of 0 is white. Small shares are distinguishable from white.
    """
    from matplotlib.colors import to_rgb

    intensity = 0.0 if share <= 0 else 0.08 + 0.92 * min(share, 1.0)
    red, green, blue = (1 + intensity * (level - 1) for level in to_rgb(color))
    return red, green, blue


def format_cell(value: float) -> str:
    """Format a count as an integer, or a share with two decimals.

    Examples
    --------
    >>> [format_cell(value) for value in (1234, 0.123, 0.0, 0.001, float("nan"))]
    ['1234', '.12', '0', '<.01', '–']
    """
    if isinstance(value, int) or float(value).is_integer():
        return str(int(value))
    if math.isnan(value):
        return "–"
    if abs(value) >= 10:
        return f"{value:.0f}"
    if value >= 1:
        return f"{value:.1f}"
    return "<.01" if value < 0.005 else ">.99" if value >= 0.995 else f"{value:.2f}"[1:]


#: Maximum length of a label, in characters.
_MAX_NAME_LENGTH = 18
#: Colors of correct answers, wrong answers and abstentions.
_COLORS = (LIGHT[0], LIGHT[1], MUTED)
#: Maximum number of classes with cell edges. With more classes, cells are rasterized in vector
#: formats.
_MAX_CLASSES_WITH_LINES = 150
#: Bounds of the intervals of shares with different colors.
_COLOR_LEVELS = np.linspace(0, 1, 257)
#: Minimum font size, in points.
_MIN_FONT_SIZE = 5.0
_TITLES = {
    None: "True class by answer",
    "true": "Share of each true class by answer",
    "pred": "Share of each answer by true class",
    "all": "Share of all samples by true class and answer",
}


@dataclass(eq=False)
class SelectiveConfusionDisplay(Titled):
    """Confusion matrix with a column for abstentions.

    Correct answers are blue, wrong answers are orange, and abstentions are gray. A darker cell
    contains a larger share of its true class. If the matrix is normalized by answer, a darker cell
    contains a larger share of its answer.

    If the cells are too small, the figure contains no numbers. `frame` returns all numbers.

    `plot` passes additional options to ``matplotlib.axes.Axes.pcolormesh`` (linewidth, edgecolors).

    Attributes
    ----------
    confusion : SelectiveConfusion
        Confusion matrix.

    Examples
    --------
    >>> from abstain.plots.confusion import SelectiveConfusionDisplay
    >>> display = SelectiveConfusionDisplay.from_predictions(
    ...     ["cat", "cat", "dog"], ["cat", "dog", "dog"], [True, False, True]
    ... )
    >>> display.frame()["value"].to_list()
    [1, 0, 1, 0, 1, 0]
    """

    confusion: SelectiveConfusion

    @classmethod
    def from_confusion(cls, confusion: SelectiveConfusion) -> Self:
        """Create a display from a confusion matrix.

        Parameters
        ----------
        confusion : SelectiveConfusion
            Result of `selective_confusion_matrix`.

        Returns
        -------
        SelectiveConfusionDisplay
            Display of the data. The method `plot` draws the figure.
        """
        return cls(confusion)

    @classmethod
    def from_predictions(
        cls,
        labels: AnyArray,
        prediction: AnyArray,
        accepted: AnyArray,
        *,
        classes: Iterable[Hashable] | None = None,
        weight: AnyArray | None = None,
        normalize: Normalize | None = None,
    ) -> Self:
        """Compute the matrix with `selective_confusion_matrix`.

        Parameters
        ----------
        labels, prediction, accepted : array of shape (n,)
            True classes, predicted classes, and whether each prediction is accepted.
        classes : iterable, optional
            Classes in the order of rows and columns.
        weight : array of shape (n,), optional
            Frequency weights.
        normalize : {"true", "pred", "all"}, optional
            Entries that add up to 1: those of a true class, of an answer, or of the complete
            matrix.

        Returns
        -------
        SelectiveConfusionDisplay
            Display of the data. The method `plot` draws the figure.
        """
        return cls(
            selective_confusion_matrix(
                labels, prediction, accepted, classes=classes, weight=weight, normalize=normalize
            )
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: AnyArray,
        *,
        weight: AnyArray | None = None,
        normalize: Normalize | None = None,
    ) -> Self:
        """Compute the matrix from a fitted selective classifier.

        Parameters
        ----------
        estimator : SelectiveClassifier
            Fitted estimator with the method `predict_or_abstain`.
        X : array-like or sparse matrix of shape (n, d)
            Samples.
        y : array of shape (n,)
            True classes.
        weight : array of shape (n,), optional
            Frequency weights.
        normalize : {"true", "pred", "all"}, optional
            Entries that add up to 1: those of a true class, of an answer, or of the complete
            matrix.

        Returns
        -------
        SelectiveConfusionDisplay
            Display of the data. The method `plot` draws the figure.

        Raises
        ------
        InputError
            If the estimator has no method `predict_or_abstain`.
        """
        if not hasattr(estimator, "predict_or_abstain"):
            raise InputError(
                "`estimator` must have `predict_or_abstain`, like SelectiveClassifier; got "
                f"{type(estimator).__name__}. For a search, pass `best_estimator_`. For a "
                "pipeline, pass its last step and the transformed samples, or use "
                "`from_predictions`."
            )
        prediction, accepted, _ = estimator.predict_or_abstain(X)
        return cls.from_predictions(y, prediction, accepted, weight=weight, normalize=normalize)

    @property
    def title(self) -> str:
        """Title of the figure."""
        return (
            f"{_TITLES[self.confusion.normalize]}\n(blue: correct, orange: wrong, gray: no answer)"
        )

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table with one row per cell."""
        return self.confusion.frame()

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw the cells, their numbers and the names of the classes."""
        k = len(self.confusion.classes)
        cell = self._cell_size(axes)
        self._draw_cells(
            axes, {"linewidth": min(0.8, 4 * cell) * (k <= _MAX_CLASSES_WITH_LINES), **kwargs}
        )
        self._write_numbers(axes, cell)
        axes.set(
            xlim=(-0.52, abstention_column(k)[1] + 0.02), ylim=(k - 0.48, -0.52), aspect="equal"
        )
        hide_frame(axes)
        self._label_axes(axes, cell)

    def _draw_cells(self, ax: "Axes", style: Style) -> None:
        """Draw the colored cells of the classes and of the abstentions."""
        shares = np.nan_to_num(self.confusion.by_class)
        k = shares.shape[0]
        hue = np.full(shares.shape, 1)
        np.fill_diagonal(hue, 0)
        hue[:, -1] = 2
        colors = np.array(
            [[mix_with_white(name, share) for share in _COLOR_LEVELS] for name in _COLORS]
        )
        # Shares are rounded up, so that readers can see small shares.
        level = np.ceil(np.minimum(shares, 1) * (_COLOR_LEVELS.size - 1)).astype(int)
        cells, edges = colors[hue, level], np.arange(k + 1) - 0.5
        style_options = {"edgecolors": GRID, "rasterized": k > _MAX_CLASSES_WITH_LINES, **style}
        ax.pcolormesh(edges, edges, cells[:, :-1], **style_options)
        ax.pcolormesh(abstention_column(k), edges, cells[:, -1:], **style_options)

    def _write_numbers(self, ax: "Axes", cell: float) -> None:
        """Draw the number of each cell, unless a number does not fit in its cell."""
        texts = [[format_cell(value) for value in row] for row in self.confusion.counts.tolist()]
        max_length = max(len(text) for row in texts for text in row)
        font_size = min(9.0, 72 * cell / (0.75 * max(2, max_length)))
        if font_size < _MIN_FONT_SIZE:
            return
        style = {"ha": "center", "va": "center", "fontsize": font_size}
        for row, row_texts in enumerate(texts):
            for column, text in enumerate(row_texts):
                x = sum(self._column_edges(column)) / 2
                color = self._text_color(row, column, text)
                draw_text(ax, x, row, text, color=color, **style).set_in_layout(False)

    def _text_color(self, row: int, column: int, text: str) -> str:
        if self.confusion.by_class[row, column] > 0.5:
            return PAPER  # The cell is dark.
        return MUTED if text == "0" else INK

    def _column_edges(self, column: int) -> tuple[float, float]:
        k = len(self.confusion.classes)
        return abstention_column(k) if column == k else (column - 0.5, column + 0.5)

    def _label_axes(self, ax: "Axes", cell: float) -> None:
        """Draw the names of the classes and the titles of the axes."""
        classes = [str(name) for name in self.confusion.classes]
        k = len(classes)
        label_by_class = unique_labels(classes, _MAX_NAME_LENGTH)
        size = min(9.0, max(72 * cell * 0.8, _MIN_FONT_SIZE))
        # If labels of the minimum font size overlap, only every second label or fewer are drawn.
        step = max(1, math.ceil(_MIN_FONT_SIZE * 1.15 / (72 * cell)))
        labeled = range(0, k, step)
        names = [label_by_class[classes[i]] for i in labeled]
        set_tick_labels(ax, "y", names, list(labeled))
        is_slanted = max(map(len, names)) * size * 0.7 > 72 * cell
        abstention_label = "no answer" if is_slanted else "no\nanswer"
        set_tick_labels(
            ax, "x", [*names, abstention_label], [*labeled, sum(abstention_column(k)) / 2]
        )
        ax.tick_params(labelsize=size)
        for label in ax.get_xticklabels() if is_slanted else ():
            label.set(rotation=45, ha="right", rotation_mode="anchor")
        ax.set_xlabel("Answer", color=MUTED, fontsize=9)
        ax.set_ylabel("True class", color=MUTED, fontsize=9)

    def _cell_size(self, ax: "Axes") -> float:
        """Return the approximate size of a cell, in inches."""
        figure: Any = ax.figure
        box = ax.bbox
        is_only_axes = len(figure.axes) == 1
        width, height = ((figure.bbox if is_only_axes else box).size / figure.dpi).tolist()
        name_width = label_width(map(str, self.confusion.classes), _MAX_NAME_LENGTH)
        k = len(self.confusion.classes)
        across, down = (
            (width - name_width - 0.5) / (abstention_column(k)[1] + 0.5),
            (height - 0.7 * name_width - 1.1) / k,
        )
        return float(max(min(across, down), 0.002))

    def _size(self) -> tuple[float, float]:
        k = len(self.confusion.classes)
        side = min(max(0.5 * k, 1.5), 6.0 + 0.03 * k, 10.0)
        names = label_width(map(str, self.confusion.classes), _MAX_NAME_LENGTH)
        return max(
            side * (abstention_column(k)[1] + 0.5) / k + names + 0.6, 3.6
        ), side + 1.2 + 0.7 * names
