"""Base classes of the displays."""

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
from abstain.plots.labels import (
    add_curve_legend,
    legend_height,
    set_axes_title,
    set_figure_title,
)
from abstain.plots.style import (
    CURVE_ID,
    Style,
    axes_without_window,
    line_style,
    new_axes,
    style_axes,
)
from abstain.typing import AnyArray

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Files are reproducible, because the files contain no date and no random ids.
_METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {},
}
# Text in PDF files uses TrueType fonts, because some journals reject Type 3 fonts.
_SETTINGS: Any = {"svg.hashsalt": "abstain", "pdf.fonttype": 42}
# Disable automatic layout.
_NO_LAYOUT: Any = {"figure.autolayout": False, "figure.constrained_layout.use": False}


#: Maximum number of fields and of entries in the representation of a display.
_MAX_FIELDS = 6
_MAX_ENTRIES = 5


def _summarize_field(value: Any) -> str:
    """Return a short text for a field, with the names of its entries or the shape of its array."""
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
    """A figure and the table of its data.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects or None
        Set by `plot`. They are None before.
    """

    ax_: "Axes | None" = field(default=None, init=False, repr=False)
    figure_: "Figure | SubFigure | None" = field(default=None, init=False, repr=False)

    _has_own_figure: bool = field(default=False, init=False, repr=False)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Set the short `repr` of displays, which the decorator `dataclass` would replace."""
        super().__init_subclass__(**kwargs)
        cls.__repr__ = Drawable.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Return a short representation without numbers."""
        fields_text = [
            f"{f.name}={_summarize_field(getattr(self, f.name))}" for f in fields(self) if f.repr
        ]
        contents = ", ".join(fields_text[:_MAX_FIELDS])
        return f"{type(self).__name__}({contents}; .frame() has the numbers, .plot() draws them)"

    @abstractmethod
    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table."""

    @abstractmethod
    def plot(self, ax: "Axes | None" = None, **kwargs: Any) -> Self:
        """Draw the figure."""

    def save(self, path: str | os.PathLike[str], *, dpi: float = 200) -> Path:
        """Write the figure to a file.

        A figure that is not drawn yet is drawn first.

        Parameters
        ----------
        path : path-like
            Path with the suffix ``.svg``, ``.pdf`` or ``.png``. The folder must exist.
        dpi : float, default=200
            Resolution of PNG files, in dots per inch.

        Returns
        -------
        pathlib.Path
            Path of the file.

        Raises
        ------
        InputError
            If the suffix is not supported, or if the file cannot be written.
        """
        file_path = Path(path)
        write_atomically(file_path, self.image(file_path.suffix, dpi=dpi))
        return file_path

    def image(
        self, suffix: str, *, dpi: float = 200, keep_text: bool = False, **plot_options: Any
    ) -> bytes:
        """Return the content of the figure file with this suffix.

        If `keep_text` is true, an SVG file contains text as text and not as paths. `plot_options`
        are passed to `plot` if the figure is not drawn yet.
        """
        import matplotlib as mpl

        suffix_lower = suffix.lower()
        if suffix_lower not in _METADATA:
            raise InputError(
                f"the suffix of a figure file must be .svg, .pdf or .png; got {suffix!r}"
            )
        if self.figure_ is None:
            self._plot_on_own_figure(plot_options)
        figure: Any = self.figure_
        # Crop the empty margin. The option "tight" of savefig would draw the figure again.
        margin = mpl.rcParams["savefig.pad_inches"]
        box = figure.get_tightbbox().padded(margin) if self._has_own_figure else None
        content = io.BytesIO()
        settings = {**_SETTINGS, "svg.fonttype": "none"} if keep_text else _SETTINGS
        options = {"dpi": dpi, "metadata": _METADATA[suffix_lower], "bbox_inches": box}
        with mpl.rc_context(settings):
            # `figure.figure` is the complete figure if `figure` is a subfigure.
            figure.figure.savefig(content, format=suffix_lower[1:], **options)
        return content.getvalue()

    def _plot_on_own_figure(self, plot_options: dict[str, Any]) -> None:
        """Draw on a new figure that has no window.

        The layout is computed only once, for all file formats.
        """
        import matplotlib as mpl

        self.plot(ax=axes_without_window(*self._size()), **plot_options)
        self._has_own_figure = True
        figure: Any = self.figure_
        # The call has the same effect as `draw_without_rendering`, but does not draw.
        figure.get_layout_engine().execute(figure)
        # With the engine "none", matplotlib would draw the figure again.
        with mpl.rc_context(_NO_LAYOUT):
            figure.set_layout_engine(None)

    def _size(self) -> tuple[float, float]:
        """Return the width and height of a new figure, in inches."""
        return 5.6, 4.2

    def _get_axes(self, ax: "Axes | None") -> "Axes":
        """Store the given axes, or new axes, in `ax_`, and return them."""
        self.ax_ = new_axes(*self._size()) if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_


class Titled(Drawable):
    """A figure with a title."""

    if TYPE_CHECKING:
        # The title is a field of some figures and a property of others.
        @property
        def title(self) -> str:
            """Title of the figure."""

    def plot(self, ax: "Axes | None" = None, *, title: bool = True, **kwargs: Any) -> Self:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on. The default is a new figure. If there are several panels, they replace
            the axes, which must be created by ``plt.subplots``. `ax_` is then the first panel.
        title : bool, default=True
            Whether to draw the title above the figure.
        **kwargs
            Options for the matplotlib function that draws the data. The docstring of the class
            names this function.

        Returns
        -------
        Self
            The display, with `ax_` and `figure_` set.
        """
        self._draw_on(self._get_axes(ax), kwargs)
        if title and self.ax_ is not None:
            self._draw_title(self.ax_)
        return self

    @abstractmethod
    def _draw_on(self, axes: "Axes", kwargs: dict[str, Any]) -> None:
        """Draw the figure without its title."""

    def _draw_title(self, ax: "Axes") -> None:
        """Draw the title above the axes, or across the figure if there are no other axes."""
        if len(ax.figure.axes) == 1:
            set_figure_title(ax.figure, self.title)
        else:
            set_axes_title(ax, self.title)


class Curve(Protocol):
    """A curve with a method that returns its points as a table."""

    def frame(self) -> "pl.DataFrame":
        """Return the curve as a table."""


CurveT = TypeVar("CurveT", bound=Curve)

#: Name of a score without a name.
DEFAULT_NAME = "confidence"


@dataclass(eq=False)
class Display(Drawable, Generic[CurveT]):
    """Base class of displays of named curves.

    Attributes
    ----------
    curves : dict of str to curve
        Curve of each score.
    ax_, figure_ : matplotlib objects or None
        Set by `plot`. They are None before.
    """

    #: Fields of the curve on the x and y axis.
    x: ClassVar[str]
    y: ClassVar[str]

    #: Whether a single curve has a legend.
    always_named: ClassVar[bool] = False

    curves: dict[str, CurveT]

    @classmethod
    def from_curve(cls, curve: CurveT | Mapping[str, CurveT], *, name: str = DEFAULT_NAME) -> Self:
        """Create a display from a single curve or from several named curves.

        Parameters
        ----------
        curve : curve, or mapping from name to curve
            Curves from `abstain.curves`.
        name : str, default="confidence"
            Name of a single curve.

        Returns
        -------
        Self
            Display of the data. The method `plot` draws the figure.
        """
        curves = dict(curve) if isinstance(curve, Mapping) else {name: curve}
        if not curves:
            raise InputError("`curve` must hold at least one curve; got an empty mapping")
        return cls(curves)

    def frame(self) -> "pl.DataFrame":
        """Return the plotted data as a Polars table. The first column is the score."""
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
            Axes to draw on. The default is a new figure.
        **kwargs
            Passed to ``Axes.plot`` for each curve (color, linewidth, label).

        Returns
        -------
        Self
            The display, with `ax_` and `figure_` set.
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
        """Return the curve, reduced to the points that are drawn."""
        return curve

    def _draw_curve(self, ax: "Axes", curve: CurveT, style: Style) -> None:
        """Draw one curve."""
        ax.plot(curve_column(curve, self.x), curve_column(curve, self.y), **style)

    @abstractmethod
    def _titles(self) -> tuple[str, str]:
        """Return the titles of the x and y axis."""

    def _draw_reference(self, ax: "Axes") -> None:
        """Draw the reference line, if there is one."""


def curve_column(curve: object, name: str) -> Any:
    """Return an array of a curve as a NumPy array."""
    return np.asarray(to_numpy(getattr(curve, name), name))


def curves_by_name(
    compute: Callable[..., CurveT],
    confidence: AnyArray | Mapping[str, AnyArray],
    loss: AnyArray,
    **options: Any,
) -> dict[str, CurveT]:
    """Compute the curve of each confidence score."""
    if not isinstance(confidence, Mapping):
        confidence = {DEFAULT_NAME: confidence}
    return {
        str(name): compute(to_numpy(values, "confidence"), loss, **options)
        for name, values in confidence.items()
    }
