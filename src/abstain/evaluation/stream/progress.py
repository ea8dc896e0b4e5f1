"""How far a stream is, how fast it goes and how long the rest may take."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from abstain._foundation.input_files import size_of
from abstain.tables.scan.chunks import FileChunk


@dataclass(frozen=True)
class StreamProgress:
    """How far a stream is.

    Attributes
    ----------
    sizes : mapping from path to int
        Bytes of each file.
    done : int
        Bytes of the files that are read, of the one in progress a share.
    rows, before : int
        Rows that are counted, and those of them that an earlier run had counted.
    begun, now : float
        Seconds on a clock.
    """

    sizes: dict[Path, int]
    done: int = 0
    rows: int = 0
    before: int = 0
    start: int | None = None
    begun: float = 0.0
    now: float = 0.0

    @classmethod
    def of(cls, paths: Sequence[Path], rows: int) -> "StreamProgress":
        """Begin with the rows that are counted already."""
        now = monotonic()
        return cls({path: size_of(path) for path in paths}, 0, rows, rows, None, now, now)

    def after(self, piece: FileChunk, rows: int) -> "StreamProgress":
        """Return how far it is after a piece."""
        files = list(self.sizes)
        whole = sum(self.sizes[path] for path in files[: files.index(piece.path)])
        done = whole + int(self.sizes[piece.path] * piece.share)
        start = whole if self.start is None else self.start
        return replace(self, done=done, rows=rows, start=start, now=monotonic())

    @property
    def share(self) -> float:
        """The share of all bytes that is read."""
        return self.done / max(sum(self.sizes.values()), 1)

    @property
    def rate(self) -> float:
        """Rows a second."""
        return (self.rows - self.before) / max(self.now - self.begun, 1e-9)

    @property
    def left(self) -> float:
        """Seconds that the rest may take; infinite before anything is known."""
        read = self.done - (self.start or 0)
        rest = sum(self.sizes.values()) - self.done
        return rest * (self.now - self.begun) / read if read > 0 else float("inf")
