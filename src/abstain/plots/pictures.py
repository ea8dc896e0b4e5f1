"""Pictures in rows, each with its words: which samples a finding is about."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from abstain.errors import InputError, ShapeError
from abstain.plots._panels import Panels
from abstain.plots.formatting import escape_control_characters
from abstain.plots.labels import draw_text
from abstain.plots.style import INK
from abstain.typing import Array

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

#: The height of the name of a row, as a share of that of its pictures.
_HEAD = 0.12

#: Inches of a picture, and of a line of its words; how many letters a line has.
_SIDE, _LINE, _LETTERS = 1.15, 0.15, 17


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture.

    Attributes
    ----------
    name, about : str
        Which it is, and the words below it.
    levels : ndarray of shape (height, width) or (height, width, 3)
        Bytes: gray or red, green and blue.
    row : str
        The row that it stands in.

    Examples
    --------
    >>> import numpy as np
    >>> Picture("iid 7", "an A, taken for B", np.zeros((8, 8), np.uint8)).row
    ''
    """

    name: str
    about: str
    levels: Array
    row: str = ""


@dataclass(eq=False)
class PicturesDisplay(Panels):
    """Pictures in rows with names, each with words below it.

    `plot` passes its options on to every ``Axes.imshow`` (cmap, interpolation).

    Attributes
    ----------
    pictures : tuple of Picture
        In their order.
    title : str
        What the figure shows.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.plots import Picture, PicturesDisplay
    >>> one = Picture("iid 7", "an A, taken for B", np.zeros((8, 8), np.uint8), "msr")
    >>> PicturesDisplay((one,), "Failures").frame().rows()
    [('msr', 'iid 7', 'an A, taken for B', 8, 8)]
    """

    pictures: tuple[Picture, ...]
    title: str

    def __post_init__(self) -> None:
        """Refuse a figure of nothing, and what is no picture."""
        if not self.pictures:
            raise InputError("`pictures` must hold at least one picture; got none")
        for one in self.pictures:
            shape = one.levels.shape
            if len(shape) not in {2, 3} or shape[2:] not in {(), (3,)}:
                raise ShapeError(
                    f"the picture {one.name!r} must be (h, w) or (h, w, 3); got {shape}"
                )

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, one row a picture."""
        import polars as pl

        rows = [(p.row, p.name, p.about, *p.levels.shape[:2]) for p in self.pictures]
        columns = ["row", "name", "about", "height", "width"]
        return pl.DataFrame(rows, schema=columns, orient="row")

    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        rows, most = self._rows, self._most
        place = axes.get_subplotspec()
        figure: Any = axes.figure
        if place is None:
            raise InputError(
                "`ax` must come from plt.subplots or add_subplot, so that pictures can stand there"
            )
        axes.remove()
        # A name goes across its whole row, so that it makes no picture narrow.
        heights = [_HEAD, 1.0] * len(rows)
        spec = place.subgridspec(2 * len(rows), most, height_ratios=heights)
        made: list[Axes] = []
        for i, (row, own) in enumerate(rows.items()):
            head = figure.add_subplot(spec[2 * i, :])
            head.axis("off")
            draw_text(head, 0.0, 0.0, row, fontsize=8.5, color=INK, transform=head.transAxes)
            for j, one in enumerate(own):
                ax = figure.add_subplot(spec[2 * i + 1, j])
                self._show(ax, one, kwargs)
                made.append(ax)
        self.ax_ = made[0]

    def _show(self, ax: "Axes", one: Picture, kwargs: dict[str, Any]) -> None:
        style = {"cmap": "gray", "vmin": 0, "vmax": 255, "interpolation": "nearest", **kwargs}
        ax.imshow(one.levels, **style)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.set_xlabel(_below(one), fontsize=7, color=INK, parse_math=False)

    @property
    def _rows(self) -> dict[str, Sequence[Picture]]:
        named = dict.fromkeys(p.row for p in self.pictures)
        return {row: [p for p in self.pictures if p.row == row] for row in named}

    @property
    def _most(self) -> int:
        return max(len(own) for own in self._rows.values())

    def _size(self) -> tuple[float, float]:
        lines = max(_below(p).count("\n") + 1 for p in self.pictures)
        return max(_SIDE * self._most, 4.0), 0.4 + (_SIDE + 0.3 + _LINE * lines) * len(self._rows)


def _below(one: Picture) -> str:
    return "\n".join(wrap(escape_control_characters(one.about), _LETTERS))
