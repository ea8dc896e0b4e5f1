"""The confusion matrix with a column for no answer, as a figure."""

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from abstain.errors import InputError
from abstain.metrics.selective_confusion import (
    Normalize,
    SelectiveConfusion,
    selective_confusion_matrix,
)
from abstain.plots.drawable import Titled
from abstain.plots.labels import hide_frame, unique_labels, set_tick_labels, label_width, draw_text
from abstain.plots.style import GRID, INK, LIGHT, MUTED, PAPER
from abstain.typing import AnyArray

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


def last_column(k: int) -> tuple[float, float]:
    """Return left and right edge of the column of abstentions beside k classes, in cells.

    It stands apart, and is wide enough to be seen where cells are small.
    """
    left = k - 0.5 + 0.3 + k / 60
    return left, left + max(1.0, k / 40)


def mixed(color: str, share: float) -> tuple[float, float, float]:
    """Mix a color with white: a share of 0 is white, and a small one can still be seen."""
    from matplotlib.colors import to_rgb

    part = 0.0 if share <= 0 else 0.08 + 0.92 * min(share, 1.0)
    red, green, blue = (1 + part * (level - 1) for level in to_rgb(color))
    return red, green, blue


def short(value: float) -> str:
    """Write a count in full and a share with two digits.

    Examples
    --------
    >>> short(1234), short(0.123), short(0.0), short(0.001), short(float("nan"))
    ('1234', '.12', '0', '<.01', '–')
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


#: Characters of a name.
_NAME = 18
#: Right, wrong, no answer.
_HUES = (LIGHT[0], LIGHT[1], MUTED)
#: More classes than this have no lines between them, and are pixels also in vector formats.
_RULED = 150
#: Shares that are told apart by color.
_LEVELS = np.linspace(0, 1, 257)
#: The smallest letters worth printing, in points.
_SMALLEST = 5.0
_TITLES = {
    None: "True class by answer",
    "true": "Share of each true class by answer",
    "pred": "Share of each answer by true class",
    "all": "Share of all samples by true class and answer",
}


@dataclass(eq=False)
class SelectiveConfusionDisplay(Titled):
    """True classes by answer: blue is right, orange is wrong, gray is no answer.

    A cell is the darker, the larger its share of the true class (of the answer, where the
    matrix is normalized so). Where cells are too small for numbers there are none; `frame` has
    them all.

    `plot` passes its options on to ``matplotlib.axes.Axes.pcolormesh`` (linewidth, edgecolors).

    Attributes
    ----------
    confusion : SelectiveConfusion
        What is drawn.

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
        """Take a matrix.

        Parameters
        ----------
        confusion : SelectiveConfusion
            What `selective_confusion_matrix` returned.

        Returns
        -------
        SelectiveConfusionDisplay
            Call `plot` to draw it.
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
        """Count, as `selective_confusion_matrix` does.

        Parameters
        ----------
        labels, prediction, accepted : array of shape (n,)
            True classes, predicted classes, and whether each prediction is accepted.
        classes : iterable, optional
            The classes in the order of rows and columns.
        weight : array of shape (n,), optional
            Frequency weights.
        normalize : {"true", "pred", "all"}, optional
            What adds up to 1.

        Returns
        -------
        SelectiveConfusionDisplay
            Call `plot` to draw it.
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
        """Ask a fitted selective classifier, and count.

        Parameters
        ----------
        estimator : SelectiveClassifier
            Fitted; anything with `predict_or_abstain`.
        X : array-like or sparse matrix of shape (n, d)
            Samples.
        y : array of shape (n,)
            True classes.
        weight : array of shape (n,), optional
            Frequency weights.
        normalize : {"true", "pred", "all"}, optional
            What adds up to 1.

        Returns
        -------
        SelectiveConfusionDisplay
            Call `plot` to draw it.

        Raises
        ------
        InputError
            If the estimator has no `predict_or_abstain`.
        """
        if not hasattr(estimator, "predict_or_abstain"):
            raise InputError(
                "`estimator` must have `predict_or_abstain`, as SelectiveClassifier does; got "
                f"{type(estimator).__name__}. Of a search pass `best_estimator_`, of a pipeline "
                "its last step with samples as that step sees them; or use `from_predictions`."
            )
        prediction, accepted, _ = estimator.predict_or_abstain(X)
        return cls.from_predictions(y, prediction, accepted, weight=weight, normalize=normalize)

    @property
    def title(self) -> str:
        """What the figure shows, in words."""
        return f"{_TITLES[self.confusion.normalize]}\n(blue right, orange wrong, gray no answer)"

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row a cell."""
        return self.confusion.frame()

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        k = len(self.confusion.classes)
        cell = self._cell(axes)
        self._draw_cells(axes, {"linewidth": min(0.8, 4 * cell) * (k <= _RULED), **kwargs})
        self._write_numbers(axes, cell)
        axes.set(xlim=(-0.52, last_column(k)[1] + 0.02), ylim=(k - 0.48, -0.52), aspect="equal")
        hide_frame(axes)
        self._name(axes, cell)

    def _draw_cells(self, ax: "Axes", style: dict[str, Any]) -> None:
        shares = np.nan_to_num(self.confusion.by_class)
        k = shares.shape[0]
        hue = np.full(shares.shape, 1)
        np.fill_diagonal(hue, 0)
        hue[:, -1] = 2
        colors = np.array([[mixed(name, share) for share in _LEVELS] for name in _HUES])
        # Rounded up: what is there can be seen.
        level = np.ceil(np.minimum(shares, 1) * (_LEVELS.size - 1)).astype(int)
        cells, edges = colors[hue, level], np.arange(k + 1) - 0.5
        look = {"edgecolors": GRID, "rasterized": k > _RULED, **style}
        ax.pcolormesh(edges, edges, cells[:, :-1], **look)
        ax.pcolormesh(last_column(k), edges, cells[:, -1:], **look)

    def _write_numbers(self, ax: "Axes", cell: float) -> None:
        """Write the number of each cell, where they all fit."""
        words = [[short(value) for value in row] for row in self.confusion.counts.tolist()]
        size = min(9.0, 72 * cell / (0.75 * max(2, *(len(word) for row in words for word in row))))
        if size < _SMALLEST:
            return
        dark = self.confusion.by_class > 0.5
        for row, column in product(range(len(words)), range(len(words) + 1)):
            word = words[row][column]
            color = PAPER if dark[row, column] else MUTED if word == "0" else INK
            x = sum(self._sides(column)) / 2
            style = {"color": color, "ha": "center", "va": "center", "fontsize": size}
            draw_text(ax, x, row, word, **style).set_in_layout(False)

    def _sides(self, column: int) -> tuple[float, float]:
        k = len(self.confusion.classes)
        return last_column(k) if column == k else (column - 0.5, column + 0.5)

    def _name(self, ax: "Axes", cell: float) -> None:
        classes = [str(name) for name in self.confusion.classes]
        k = len(classes)
        written = unique_labels(classes, _NAME)
        size = min(9.0, max(72 * cell * 0.8, _SMALLEST))
        # Where even the smallest letters would overlap, every second name or fewer is written.
        step = max(1, math.ceil(_SMALLEST * 1.15 / (72 * cell)))
        kept = range(0, k, step)
        names = [written[classes[i]] for i in kept]
        set_tick_labels(ax, "y", names, list(kept))
        long = max(map(len, names)) * size * 0.7 > 72 * cell
        last = "no answer" if long else "no\nanswer"
        set_tick_labels(ax, "x", [*names, last], [*kept, sum(last_column(k)) / 2])
        ax.tick_params(labelsize=size)
        for label in ax.get_xticklabels() if long else ():
            label.set(rotation=45, ha="right", rotation_mode="anchor")
        ax.set_xlabel("Answer", color=MUTED, fontsize=9)
        ax.set_ylabel("True class", color=MUTED, fontsize=9)

    def _cell(self, ax: "Axes") -> float:
        """Return about how wide a cell will be, in inches."""
        figure: Any = ax.figure
        box = ax.bbox
        alone = len(figure.axes) == 1
        width, height = ((figure.bbox if alone else box).size / figure.dpi).tolist()
        names = label_width(map(str, self.confusion.classes), _NAME)
        k = len(self.confusion.classes)
        across, down = (
            (width - names - 0.5) / (last_column(k)[1] + 0.5),
            (height - 0.7 * names - 1.1) / k,
        )
        return float(max(min(across, down), 0.002))

    def _size(self) -> tuple[float, float]:
        k = len(self.confusion.classes)
        side = min(max(0.5 * k, 1.5), 6.0 + 0.03 * k, 10.0)
        names = label_width(map(str, self.confusion.classes), _NAME)
        return max(
            side * (last_column(k)[1] + 0.5) / k + names + 0.6, 3.6
        ), side + 1.2 + 0.7 * names
