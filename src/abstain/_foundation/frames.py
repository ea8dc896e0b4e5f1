"""Tables of results in the library of dataframes that is asked for."""

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from abstain._foundation.checks import one_of
from abstain._foundation.imports import later

if TYPE_CHECKING:
    import polars as pl

#: A dataframe of that library; a checker of types takes it for one of polars.
AnyFrame: TypeAlias = "pl.DataFrame | Any"
#: Whose dataframe `.frame()` of a result is.
Backend: TypeAlias = Literal["polars", "pandas", "pyarrow"]
_BACKENDS = ("polars", "pandas", "pyarrow")

# What knows the libraries reads files too: it is loaded when another one is asked for.
_converted = later("abstain.tables.table:to_frame")


def of_rows(rows: Any, backend: Backend = "polars") -> AnyFrame:
    """Return flat rows, or columns by name, as a dataframe."""
    import polars as pl

    return in_library(pl.DataFrame(rows, infer_schema_length=None), backend)


def in_library(frame: "pl.DataFrame", backend: Backend) -> AnyFrame:
    """Return a table of polars as a dataframe of another library.

    Examples
    --------
    >>> import polars as pl
    >>> in_library(pl.DataFrame({"n": [1, 2]}), "polars").height
    2
    """
    one_of(backend, "backend", _BACKENDS)
    return frame if backend == "polars" else _converted(frame, backend)
