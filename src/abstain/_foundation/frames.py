"""Convert results to dataframes of several libraries, and to HTML in a notebook."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from abstain._foundation.checks import one_of
from abstain._foundation.lazy_imports import lazy_function

if TYPE_CHECKING:
    import polars as pl

#: A dataframe of a supported library. Type checkers treat it as a Polars dataframe.
AnyFrame: TypeAlias = "pl.DataFrame | Any"
#: Library of the dataframe that the method `frame` of a result returns.
Backend: TypeAlias = Literal["polars", "pandas", "pyarrow"]
_BACKENDS = ("polars", "pandas", "pyarrow")

# `abstain.tables` also reads files, so it is imported only for libraries other than Polars.
_to_frame = lazy_function("abstain.tables.table:to_frame")
# The renderers import the records, so they are imported only to display a result.
_notebook_html = lazy_function("abstain.report.output:notebook_html")


class NotebookDisplay:
    """Base class of results with a table and a curve in Jupyter."""

    def _repr_html_(self) -> str:
        """Return self-contained HTML for Jupyter, in which names are escaped."""
        return str(_notebook_html(self))


def is_arrow_table(source: object) -> bool:
    """Return whether an object implements the Arrow PyCapsule interface for tables."""
    if not hasattr(source, "__arrow_c_stream__"):
        return False
    # A series exports a column through the same interface. It has a length, but no schema.
    is_series = hasattr(source, "__len__") and not hasattr(source, "schema")
    return not is_series


def is_list_of_rows(source: object) -> bool:
    """Return whether an object is a list of mappings."""
    return isinstance(source, list) and all(isinstance(row, Mapping) for row in source)


def frame_from_rows(rows: Any, backend: Backend = "polars") -> AnyFrame:
    """Create a dataframe from a list of rows or a mapping of columns."""
    import polars as pl

    return convert_frame(pl.DataFrame(rows, infer_schema_length=None), backend)


def convert_frame(frame: "pl.DataFrame", backend: Backend) -> AnyFrame:
    """Convert a Polars dataframe to another library.

    Examples
    --------
    >>> import polars as pl
    >>> convert_frame(pl.DataFrame({"n": [1, 2]}), "polars").height
    2
    """
    one_of(backend, "backend", _BACKENDS)
    return frame if backend == "polars" else _to_frame(frame, backend)
