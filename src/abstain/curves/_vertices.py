"""What curves have in common: arrays with an entry for each vertex, beside what holds for all."""

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from abstain._foundation.arrays import as_array_like, to_numpy
from abstain._foundation.frames import AnyFrame, Backend, convert_frame
from abstain._foundation.lazy_imports import lazy_function
from abstain.typing import AnyArray, Array

# Figures stand above the curves: they are loaded when one is drawn.
_display = lazy_function("abstain.plots.curves:display_of")


@dataclass(frozen=True, eq=False)
class Vertices:
    """A record of arrays, one entry each for a vertex."""

    #: The fields that hold for the whole curve.
    whole: ClassVar[frozenset[str]] = frozenset()
    #: Whether the table has a null where a number is undefined.
    nulls: ClassVar[bool] = False

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return the vertices as a dataframe, one row each."""
        import polars as pl

        return convert_frame(pl.DataFrame(self.on_host(), nan_to_null=self.nulls), backend)

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Draw the curve; return its display, with `ax_`, `figure_` and `save`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **kwargs
            Passed to ``Axes.plot`` (color, linewidth, label).

        Returns
        -------
        Display
            That of this kind of curve in `abstain.plots`.
        """
        return _display(self).plot(ax, **kwargs)

    def __len__(self) -> int:
        """Count the vertices."""
        return len(next(iter(self.arrays().values())))

    def arrays(self) -> dict[str, AnyArray]:
        """Return the arrays by the names of their fields."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in self.whole}

    def on_host(self) -> dict[str, Array]:
        """Return the arrays in NumPy."""
        return {name: to_numpy(values, name) for name, values in self.arrays().items()}

    def of_kind(self, reference: AnyArray) -> Self:
        """Return the curve with arrays of the library and device of `reference`."""
        return replace(
            self, **{name: as_array_like(x, reference) for name, x in self.arrays().items()}
        )
