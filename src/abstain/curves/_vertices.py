"""The base class `CurveArrays` of all curves."""

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from abstain._foundation.arrays import as_array_like, to_numpy
from abstain._foundation.frames import AnyFrame, Backend, convert_frame
from abstain._foundation.lazy_imports import lazy_function
from abstain.typing import AnyArray, Array

# The package `abstain.plots` imports this package, so it is imported only when a curve is plotted.
_display = lazy_function("abstain.plots.curves:display_of")


@dataclass(frozen=True, eq=False)
class CurveArrays:
    """Base class of curves. Each array has one entry per point of the curve."""

    #: Fields that are not arrays over the points of the curve.
    scalar_fields: ClassVar[frozenset[str]] = frozenset()
    #: Whether NaN becomes null in the dataframe.
    has_undefined_values: ClassVar[bool] = False

    def frame(self, *, backend: Backend = "polars") -> AnyFrame:
        """Return a dataframe with one row per point of the curve."""
        import polars as pl

        frame = pl.DataFrame(self.to_numpy_arrays(), nan_to_null=self.has_undefined_values)
        return convert_frame(frame, backend)

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Plot the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes of the plot. By default, the method creates a new figure.
        **kwargs
            Arguments of ``Axes.plot``, such as color, linewidth and label.

        Returns
        -------
        Display
            The display from `abstain.plots`, with `ax_`, `figure_` and `save`.
        """
        return _display(self).plot(ax, **kwargs)

    def __len__(self) -> int:
        """Return the number of points of the curve."""
        return len(next(iter(self.arrays().values())))

    def arrays(self) -> dict[str, AnyArray]:
        """Return the arrays by field name."""
        names = [field.name for field in fields(self) if field.name not in self.scalar_fields]
        return {name: getattr(self, name) for name in names}

    def to_numpy_arrays(self) -> dict[str, Array]:
        """Return the arrays as NumPy arrays."""
        return {name: to_numpy(values, name) for name, values in self.arrays().items()}

    def as_arrays_like(self, reference: AnyArray) -> Self:
        """Convert the arrays to the library and device of `reference`."""
        converted = {name: as_array_like(x, reference) for name, x in self.arrays().items()}
        return replace(self, **converted)
