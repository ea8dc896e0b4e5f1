"""Where scripts find what reads a configuration: from `abstain.benchmark.specification`."""

from abstain.benchmark.specification.changes import Changes, changed
from abstain.benchmark.specification.reading import (
    default_config,
    from_plain,
    plain,
    read_config,
    tables_of,
)

__all__ = [
    "Changes",
    "changed",
    "default_config",
    "from_plain",
    "plain",
    "read_config",
    "tables_of",
]
