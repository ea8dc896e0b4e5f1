"""How results show themselves in a notebook."""

from abstain._foundation.imports import later

# The writers of pages stand far above the records: they are loaded when a notebook asks.
_written = later("abstain.report.notebook:notebook_html")


class InNotebook:
    """A result that a notebook shows as a table and a curve, as Jupyter asks for it."""

    def _repr_html_(self) -> str:
        """Return what a cell shows: HTML that loads nothing, every name in it escaped."""
        return str(_written(self))
