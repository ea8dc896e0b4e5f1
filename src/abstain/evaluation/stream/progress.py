"""Progress of a stream: position, speed and remaining time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from abstain._foundation.input_files import file_size
from abstain.tables.scan.chunks import FileChunk


@dataclass(frozen=True)
class StreamProgress:
    """Progress of a stream.

    Attributes
    ----------
    sizes : mapping from path to int
        Size of each file in bytes.
    n_bytes_read : int
        Number of bytes that were read, including the read share of the current file.
    n_rows, n_rows_before : int
        Number of counted rows, and of rows that an earlier run had counted.
    n_bytes_before : int or None
        Number of bytes before the first piece of this run.
    start_time, current_time : float
        Seconds of a monotonic clock.
    """

    sizes: dict[Path, int]
    n_bytes_read: int = 0
    n_rows: int = 0
    n_rows_before: int = 0
    n_bytes_before: int | None = None
    start_time: float = 0.0
    current_time: float = 0.0

    @classmethod
    def start_at(cls, paths: Sequence[Path], rows: int) -> "StreamProgress":
        """Return the progress at the start, with the rows that are already counted."""
        now = monotonic()
        return cls({path: file_size(path) for path in paths}, 0, rows, rows, None, now, now)

    def after(self, piece: FileChunk, rows: int) -> "StreamProgress":
        """Return the progress after a piece."""
        files = list(self.sizes)
        whole = sum(self.sizes[path] for path in files[: files.index(piece.path)])
        done = whole + int(self.sizes[piece.path] * piece.share)
        start = whole if self.n_bytes_before is None else self.n_bytes_before
        return replace(
            self,
            n_bytes_read=done,
            n_rows=rows,
            n_bytes_before=start,
            current_time=monotonic(),
        )

    @property
    def share(self) -> float:
        """Share of all bytes that was read."""
        return self.n_bytes_read / max(sum(self.sizes.values()), 1)

    @property
    def rate(self) -> float:
        """Rows per second."""
        return (self.n_rows - self.n_rows_before) / max(self.current_time - self.start_time, 1e-9)

    @property
    def remaining_seconds(self) -> float:
        """Estimated remaining seconds; infinite before the first piece."""
        read = self.n_bytes_read - (self.n_bytes_before or 0)
        rest = sum(self.sizes.values()) - self.n_bytes_read
        return rest * (self.current_time - self.start_time) / read if read > 0 else float("inf")
