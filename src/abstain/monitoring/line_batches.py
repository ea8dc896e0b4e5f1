"""Batches of lines, as a pipe or a folder yields them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

#: The longest line that is read, in bytes; a longer one is a bad line.
MAX_LINE: Final = 1 << 20


def _ignore(_: int) -> None:
    """Take no notice: a pipe cannot be read again."""


@dataclass(frozen=True)
class LineBatch:
    """Lines that were read together; none if nothing arrived for a while.

    Attributes
    ----------
    lines : list of (place, text)
        The text of a line that is longer than `MAX_LINE` is None.
    accept : callable
        To be called with the number of lines that were taken, from the first on. Reading goes on
        behind these after a restart.
    """

    lines: list[tuple[str, str | None]]
    accept: Callable[[int], None] = _ignore

    @classmethod
    def from_bytes(
        cls,
        lines: Sequence[bytes],
        n_before: int,
        file: str = "",
        accept: Callable[[int], None] = _ignore,
    ) -> "LineBatch":
        """Decode lines that follow `n_before` others of the file, which is named in their place."""
        prefix = f"{file}, " if file else ""
        numbered = enumerate(lines, n_before + 1)
        return cls([(f"{prefix}line {i}", _decode(line)) for i, line in numbered], accept)


def _decode(line: bytes) -> str | None:
    if len(line) > MAX_LINE:
        return None
    # Bytes that are not UTF-8 make the line bad, or stay distinct within an id.
    return line.decode("utf-8", "surrogateescape")
