"""What every figure can do: be a table, be drawn, be saved."""

import io
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from abstain._foundation.files import write_atomically
from abstain.errors import InputError
from abstain.plots.labels import head
from abstain.plots.style import lone_axes, new_axes

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# The same numbers give the same bytes: no date in the file, no random names inside it.
_METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {},
}
# Letters stay letters in a PDF (journals refuse Type 3 fonts).
_SETTINGS: Any = {"svg.hashsalt": "abstain", "pdf.fonttype": 42}


@dataclass(eq=False)
class Drawable(ABC):
    """A figure and the table of what it draws.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects or None
        Set by `plot`.
    """

    ax_: "Axes | None" = field(default=None, init=False, repr=False)
    figure_: "Figure | SubFigure | None" = field(default=None, init=False, repr=False)

    _alone: bool = field(default=False, init=False, repr=False)

    @abstractmethod
    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table."""

    @abstractmethod
    def plot(self, ax: "Axes | None" = None, **kwargs: Any) -> Self:
        """Draw it."""

    def save(self, path: str | os.PathLike[str], *, dpi: float = 200) -> Path:
        """Write the figure to a file, drawing it first if it is not drawn yet.

        Parameters
        ----------
        path : path-like
            Ends in ``.svg``, ``.pdf`` or ``.png``; the folder must exist.
        dpi : float, default=200
            Dots per inch of a PNG.

        Returns
        -------
        pathlib.Path
            The file written.

        Raises
        ------
        InputError
            If the ending is another one, or the file cannot be written.
        """
        place = Path(path)
        write_atomically(place, self.image(place.suffix, dpi=dpi))
        return place

    def image(
        self, suffix: str, *, dpi: float = 200, letters: bool = False, **drawing: Any
    ) -> bytes:
        """Return the figure as the content of a file.

        `letters` keeps the text of an SVG as text; `drawing` goes to `plot` if that is still to
        be done.
        """
        import matplotlib as mpl

        kind = suffix.lower()
        if kind not in _METADATA:
            msg = f"the name of a figure's file must end in .svg, .pdf or .png; got {suffix!r}"
            raise InputError(msg)
        if self.figure_ is None:
            self._draw_alone(drawing)
        whole: Any = self.figure_
        # What was left empty around a figure of its own is cut off. Asked for by name, "tight"
        # would draw the figure once more to find out.
        margin = mpl.rcParams["savefig.pad_inches"]
        box = whole.get_tightbbox().padded(margin) if self._alone else None
        content = io.BytesIO()
        settings = {**_SETTINGS, "svg.fonttype": "none"} if letters else _SETTINGS
        with mpl.rc_context(settings):
            # Of a part of a figure, the whole figure.
            whole.figure.savefig(
                content, format=kind[1:], dpi=dpi, metadata=_METADATA[kind], bbox_inches=box
            )
        return content.getvalue()

    def _draw_alone(self, drawing: dict[str, Any]) -> None:
        """Draw on a figure that nobody else sees, and lay it out once for all formats."""
        self.plot(ax=lone_axes(*self._size()), **drawing)
        self._alone = True
        figure: Any = self.figure_
        # What `draw_without_rendering` is for, without the drawing.
        figure.get_layout_engine().execute(figure)
        figure.set_layout_engine("none")

    def _size(self) -> tuple[float, float]:
        """Return width and height of a figure of its own, in inches."""
        return 5.6, 4.2

    def _open(self, ax: "Axes | None") -> "Axes":
        """Take the axes given or open new ones, and remember them."""
        self.ax_ = new_axes(*self._size()) if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_


class Titled(Drawable):
    """A figure that says above itself what it shows."""

    if TYPE_CHECKING:
        # A field in some figures, a property in others.
        @property
        def title(self) -> str:
            """What the figure shows, in words."""

    def plot(self, ax: "Axes | None" = None, *, title: bool = True, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure. Several panels take the place of axes that
            ``plt.subplots`` made, and `ax_` is the first of them.
        title : bool, default=True
            Say above the figure what it shows.
        **kwargs
            Passed on to what draws the data; the class says to what.

        Returns
        -------
        Self
            With `ax_` and `figure_` set.
        """
        self._draw_on(self._open(ax), kwargs)
        if title and self.ax_ is not None:
            self._head(self.ax_)
        return self

    @abstractmethod
    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw all but the title."""

    def _head(self, ax: "Axes") -> None:
        head(ax, self.title)
