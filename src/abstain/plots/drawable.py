"""What every figure can do: be a table, be drawn, be saved; and what those of curves share."""

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain._foundation.files import write_atomically
from abstain.errors import InputError
from abstain.plots.labels import set_figure_title, legend_height, add_curve_legend
from abstain.plots.style import CURVE_ID, style_axes, line_style, axes_without_window, new_axes
from abstain.typing import AnyArray

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
# No figure is laid out unless it is asked for.
_NO_LAYOUT: Any = {"figure.autolayout": False, "figure.constrained_layout.use": False}


#: Fields and entries that the text of a display names.
_MAX_FIELDS = 6
_MAX_ENTRIES = 5


def _summarize_field(value: Any) -> str:
    """Write a field of a display in a few words: names of entries, sizes of arrays."""
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    if isinstance(value, Mapping):
        names = [repr(name) for name in value]
        more = ", ..." if len(names) > _MAX_ENTRIES else ""
        return "{" + ", ".join(names[:_MAX_ENTRIES]) + more + "}"
    if hasattr(value, "shape"):
        return f"array of shape {tuple(value.shape)}"
    if isinstance(value, Sequence):
        return f"{len(value)} {'entry' if len(value) == 1 else 'entries'}"
    return type(value).__name__


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

    _has_own_figure: bool = field(default=False, init=False, repr=False)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep the short text of this class, which `dataclass` would replace by all numbers."""
        super().__init_subclass__(**kwargs)
        cls.__repr__ = Drawable.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Name what it holds, without the numbers."""
        fields_text = [f"{f.name}={_summarize_field(getattr(self, f.name))}" for f in fields(self) if f.repr]
        contents = ", ".join(fields_text[:_MAX_FIELDS])
        return f"{type(self).__name__}({contents}; .frame() has the numbers, .plot() draws them)"

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
        file_path = Path(path)
        write_atomically(file_path, self.image(file_path.suffix, dpi=dpi))
        return file_path

    def image(
        self, suffix: str, *, dpi: float = 200, keep_text: bool = False, **plot_options: Any
    ) -> bytes:
        """Return the figure as the content of a file.

        `letters` keeps the text of an SVG as text; `drawing` goes to `plot` if that is still to
        be done.
        """
        import matplotlib as mpl

        suffix_lower = suffix.lower()
        if suffix_lower not in _METADATA:
            raise InputError(
                f"the name of a figure's file must end in .svg, .pdf or .png; got {suffix!r}"
            )
        if self.figure_ is None:
            self._plot_on_own_figure(plot_options)
        figure: Any = self.figure_
        # What was left empty around a figure of its own is cut off. Asked for by name, "tight"
        # would draw the figure once more to find out.
        margin = mpl.rcParams["savefig.pad_inches"]
        box = figure.get_tightbbox().padded(margin) if self._has_own_figure else None
        content = io.BytesIO()
        settings = {**_SETTINGS, "svg.fonttype": "none"} if keep_text else _SETTINGS
        with mpl.rc_context(settings):
            # Of a part of a figure, the whole figure.
            figure.figure.savefig(
                content, format=suffix_lower[1:], dpi=dpi, metadata=_METADATA[suffix_lower], bbox_inches=box
            )
        return content.getvalue()

    def _plot_on_own_figure(self, plot_options: dict[str, Any]) -> None:
        """Draw on a figure that nobody else sees, and lay it out once for all formats."""
        import matplotlib as mpl

        self.plot(ax=axes_without_window(*self._size()), **plot_options)
        self._has_own_figure = True
        figure: Any = self.figure_
        # What `draw_without_rendering` is for, without the drawing.
        figure.get_layout_engine().execute(figure)
        # Not "none", with which matplotlib draws once more for an engine that does nothing.
        with mpl.rc_context(_NO_LAYOUT):
            figure.set_layout_engine(None)

    def _size(self) -> tuple[float, float]:
        """Return width and height of a figure of its own, in inches."""
        return 5.6, 4.2

    def _get_axes(self, ax: "Axes | None") -> "Axes":
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
        self._draw_on(self._get_axes(ax), kwargs)
        if title and self.ax_ is not None:
            self._draw_title(self.ax_)
        return self

    @abstractmethod
    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw all but the title."""

    def _draw_title(self, ax: "Axes") -> None:
        set_figure_title(ax, self.title)


class Curve(Protocol):
    """Anything with a table."""

    def frame(self) -> "pl.DataFrame":
        """Return the curve as a table."""


CurveT = TypeVar("CurveT", bound=Curve)

#: The name of a score whose caller gave none.
DEFAULT_NAME = "confidence"


@dataclass(eq=False)
class Display(Drawable, Generic[CurveT]):
    """Named curves that can be drawn, and had as a table.

    Attributes
    ----------
    curves : dict of str to curve
        One for each score.
    ax_, figure_ : matplotlib objects or None
        Set by `plot`.
    """

    #: The fields of the curve on the axes, and the titles of the axes.
    x: ClassVar[str]
    y: ClassVar[str]

    #: Whether a curve alone has its name beside it.
    always_named: ClassVar[bool] = False

    curves: dict[str, CurveT]

    @classmethod
    def from_curve(cls, curve: CurveT | Mapping[str, CurveT], *, name: str = DEFAULT_NAME) -> Self:
        """Take a curve, or several by name, as they are.

        Parameters
        ----------
        curve : curve, or mapping from name to curve
            What the functions of `abstain.curves` return.
        name : str, default="confidence"
            The name of a single curve.

        Returns
        -------
        Self
            A display that is not drawn yet.
        """
        curves = dict(curve) if isinstance(curve, Mapping) else {name: curve}
        if not curves:
            raise InputError("`curve` must hold at least one curve; got an empty mapping")
        return cls(curves)

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, the name of the score first."""
        import polars as pl

        tables = [
            self._for_drawing(curve).frame().select(pl.lit(name).alias("score"), pl.all())
            for name, curve in self.curves.items()
        ]
        return pl.concat(tables, how="vertical_relaxed")

    def plot(self, ax: "Axes | None" = None, **kwargs: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **kwargs
            Passed to every ``Axes.plot`` of a curve (color, linewidth, label).

        Returns
        -------
        Self
            With `ax_` and `figure_` set.
        """
        axes = self._get_axes(ax)
        self._draw_reference(axes)
        for index, (name, curve) in enumerate(self.curves.items()):
            style = {**self._style(index, name), **kwargs, "gid": CURVE_ID}
            self._draw_curve(axes, self._for_drawing(curve), style)
        x_title, y_title = self._titles()
        axes.set(xlabel=x_title, ylabel=y_title)
        style_axes(axes)
        if self.always_named or len(self.curves) > 1 or "label" in kwargs:
            add_curve_legend(axes)
        return self

    def _style(self, index: int, name: str) -> dict[str, Any]:
        return {**line_style(index), "label": name}

    def _size(self) -> tuple[float, float]:
        width, height = super()._size()
        return width, height + legend_height(self.curves, width)

    def _for_drawing(self, curve: CurveT) -> CurveT:
        """Return the curve as it is drawn."""
        return curve

    def _draw_curve(self, ax: "Axes", curve: CurveT, style: dict[str, Any]) -> None:
        """Draw one curve."""
        ax.plot(curve_column(curve, self.x), curve_column(curve, self.y), **style)

    @abstractmethod
    def _titles(self) -> tuple[str, str]:
        """Return the titles of the axes."""

    def _draw_reference(self, ax: "Axes") -> None:
        """Draw what is known without looking at the data, if anything."""


def curve_column(curve: object, name: str) -> Any:
    """Return one array of a curve on the host."""
    return np.asarray(to_numpy(getattr(curve, name), name))


def curves_by_name(
    confidence: AnyArray | Mapping[str, AnyArray], compute: Callable[[AnyArray], CurveT]
) -> dict[str, CurveT]:
    """Compute the curve of each named confidence."""
    confidence_by_name = confidence if isinstance(confidence, Mapping) else {DEFAULT_NAME: confidence}
    return {str(name): compute(to_numpy(values, "confidence")) for name, values in confidence_by_name.items()}
