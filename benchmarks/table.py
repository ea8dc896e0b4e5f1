"""Format Markdown tables."""

from collections.abc import Iterable, Sequence


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Format a table. The first `left` columns are left-aligned, the others right-aligned."""
    lines = [list(header), *map(list, rows)]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(header))]
    rule = ["-" * (w - 1) + ("-" if i < left else ":") for i, w in enumerate(widths)]
    table = [lines[0], rule, *lines[1:]]
    return "\n".join(
        "| "
        + " | ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in table
    )
