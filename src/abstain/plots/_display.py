"""What all displays share: named curves, a table of what is drawn, one set of axes."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from abstain._foundation.arrays import to_numpy
from abstain.errors import InputError
from abstain.plots.drawable import Drawable
from abstain.plots.labels import legend_height, name_the_curves
from abstain.plots.style import CURVE, finish, line_style
from abstain.typing import AnyArray

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


class Curve(Protocol):
    """Anything with a table."""

    def frame(self) -> "pl.DataFrame":
        """Return the curve as a table."""


CurveT = TypeVar("CurveT", bound=Curve)

#: The name of a score whose caller gave none.
UNNAMED = "confidence"


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

    curves: dict[str, CurveT]

    @classmethod
    def from_curve(cls, curve: CurveT | Mapping[str, CurveT], *, name: str = UNNAMED) -> Self:
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
        named = dict(curve) if isinstance(curve, Mapping) else {name: curve}
        if not named:
            msg = "`curve` must hold at least one curve; got an empty mapping"
            raise InputError(msg)
        return cls(named)

    def frame(self) -> "pl.DataFrame":
        """Return what is drawn as a polars table, the name of the score first."""
        import polars as pl

        parts = [
            self._drawn(curve).frame().select(pl.lit(name).alias("score"), pl.all())
            for name, curve in self.curves.items()
        ]
        return pl.concat(parts, how="vertical_relaxed")

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
        axes = self._open(ax)
        self._draw_reference(axes)
        for index, (name, curve) in enumerate(self.curves.items()):
            style = {**line_style(index), "label": name, **kwargs, "gid": CURVE}
            self._draw(axes, self._drawn(curve), style)
        x_title, y_title = self._titles()
        axes.set(xlabel=x_title, ylabel=y_title)
        finish(axes)
        if len(self.curves) > 1 or "label" in kwargs:
            name_the_curves(axes)
        return self

    def _size(self) -> tuple[float, float]:
        width, height = super()._size()
        return width, height + legend_height(self.curves, width)

    def _drawn(self, curve: CurveT) -> CurveT:
        """Return the curve as it is drawn."""
        return curve

    def _draw(self, ax: "Axes", curve: CurveT, style: dict[str, Any]) -> None:
        """Draw one curve."""
        ax.plot(column(curve, self.x), column(curve, self.y), **style)

    @abstractmethod
    def _titles(self) -> tuple[str, str]:
        """Return the titles of the axes."""

    def _draw_reference(self, ax: "Axes") -> None:
        """Draw what is known without looking at the data, if anything."""


def column(curve: object, name: str) -> Any:
    """Return one array of a curve on the host."""
    return np.asarray(to_numpy(getattr(curve, name), name))


def by_score(
    confidence: AnyArray | Mapping[str, AnyArray], compute: Callable[[AnyArray], CurveT]
) -> dict[str, CurveT]:
    """Compute the curve of each named confidence."""
    named = confidence if isinstance(confidence, Mapping) else {UNNAMED: confidence}
    return {str(name): compute(to_numpy(values, "confidence")) for name, values in named.items()}
