"""Results as tables of a library of dataframes, and as HTML in a notebook."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from abstain._foundation.checks import one_of
from abstain._foundation.lazy_imports import lazy_function

if TYPE_CHECKING:
    import polars as pl

#: A dataframe of that library; a checker of types takes it for one of polars.
AnyFrame: TypeAlias = "pl.DataFrame | Any"
#: Whose dataframe `.frame()` of a result is.
Backend: TypeAlias = Literal["polars", "pandas", "pyarrow"]
_BACKENDS = ("polars", "pandas", "pyarrow")

# What knows the libraries reads files too: it is loaded when another one is asked for.
_converted = lazy_function("abstain.tables.table:to_frame")
# The renderers import the records, so they are loaded when a notebook displays a result.
_notebook_html = lazy_function("abstain.report.notebook:notebook_html")


class NotebookDisplay:
    """A result that a notebook displays as a table and a curve."""

    def _repr_html_(self) -> str:
        """Return HTML that loads nothing and in which every name is escaped, for Jupyter."""
        return str(_notebook_html(self))


def is_arrow_table(source: object) -> bool:
    """Return whether something gives out a table by the Arrow PyCapsule interface.

    A series does too, but has no schema.
    """
    has_stream = hasattr(source, "__arrow_c_stream__")
    return has_stream and (hasattr(source, "schema") or not hasattr(source, "__len__"))


def is_list_of_rows(source: object) -> bool:
    """Return whether this is a list of mappings, one for each row."""
    return isinstance(source, list) and all(isinstance(row, Mapping) for row in source)


def frame_from_rows(rows: Any, backend: Backend = "polars") -> AnyFrame:
    """Return flat rows, or columns by name, as a dataframe."""
    import polars as pl

    return convert_frame(pl.DataFrame(rows, infer_schema_length=None), backend)


def convert_frame(frame: "pl.DataFrame", backend: Backend) -> AnyFrame:
    """Return a table of polars as a dataframe of another library.

    Examples
    --------
    >>> import polars as pl
    >>> convert_frame(pl.DataFrame({"n": [1, 2]}), "polars").height
    2
    """
    one_of(backend, "backend", _BACKENDS)
    return frame if backend == "polars" else _converted(frame, backend)
