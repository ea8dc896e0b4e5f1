"""Where numbers come from, for the pages that are no documents yet."""

from abstain.report.document import Origin

__all__ = ["Origin"]
