"""The first name of `abstain_bench.runs.specification` in scripts; kept for them."""

from abstain_bench.runs.specification import (
    changed,
    default_config,
    from_plain,
    plain,
    read_config,
    tables_of,
)

__all__ = [
    "changed",
    "default_config",
    "from_plain",
    "plain",
    "read_config",
    "tables_of",
]
