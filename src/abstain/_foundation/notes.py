"""`Note`, a remark about the data or the results."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from abstain.typing import Split

#: Kinds of notes on reading data, which reports do not group. The kinds are selected columns,
#: external confidences of FD-Shifts, dropped rows, answers that the model refused, and other notes.
COLUMNS: Final = "columns"
EXTERNAL_CONFIDENCE: Final = "external_confidence"
DROPPED: Final = "dropped"
ABSTENTIONS: Final = "refused"
READING: Final = "source"
READING_KINDS: Final = frozenset({COLUMNS, EXTERNAL_CONFIDENCE, DROPPED, ABSTENTIONS, READING})


@dataclass(frozen=True)
class RowCount:
    """The number of rows that a note refers to, and the total number of rows."""

    n: int
    n_total: int

    def __str__(self) -> str:
        """Return the number and the share of rows as text, such as "2 of 8 rows (25.00%)"."""
        return f"{self.n:,} of {self.n_total:,} rows ({self.n / self.n_total:.2%})"


@dataclass(frozen=True)
class Note:
    """A note or a warning about all data or one split.

    Attributes
    ----------
    kind : str
        Topic of the note. Notes of the same kind are grouped in reports.
    text : str
        Text of the note. If `rows` is set, the number of rows precedes the text.
    split : tuple of (column, value)
        Split that the note concerns, or an empty tuple for all data.
    score : str
        Name of the confidence score that the note concerns, or an empty text.
    level : {"note", "warning"}
        Importance of the note. A warning indicates that results may be wrong.
    rows : RowCount or None
        Number of rows that the note concerns.
    source : str
        Name of the file or data set, or an empty text.
    """

    kind: str
    text: str
    split: "Split" = ()
    score: str = ""
    level: Literal["note", "warning"] = "note"
    rows: RowCount | None = None
    source: str = ""

    @classmethod
    def warning(cls, kind: str, text: str, split: "Split" = (), score: str = "") -> "Note":
        """Create a warning."""
        return cls(kind, text, split, score, "warning")

    @property
    def message(self) -> str:
        """Complete sentence of the note, with the number of rows and the source."""
        message = self.text
        if self.kind == DROPPED and self.rows is not None:
            message = f"dropped: {message}"
        if self.rows is not None:
            message = f"{self.rows} {message}"
        return f"{self.source}: {message}" if self.source else message

    def __str__(self) -> str:
        """Return the complete sentence of the note."""
        return self.message

    def within(self, source: str) -> "Note":
        """Return the note with a file or data set name added to its source."""
        if self.source.startswith(source):
            return self
        full_source = f"{source}: {self.source}" if self.source else source
        return replace(self, source=full_source)


def merge_notes(parts: Iterable[tuple[int, Iterable[Note]]]) -> tuple[Note, ...]:
    """Merge the notes on chunks of a table, and sum the row counts of equal notes.

    Parameters
    ----------
    parts : iterable of (int, iterable of Note)
        Number of rows of each chunk, and the notes on the chunk.
    """
    n_total = 0
    # Number of rows of each note, or None for a note without a number of rows.
    n_by_note: dict[Note, int | None] = {}
    for n_rows, notes in parts:
        n_total += n_rows
        for note in notes:
            if note.rows is None:
                n_by_note[note] = None
                continue
            key = replace(note, rows=RowCount(0, 0))
            n_by_note[key] = (n_by_note.get(key) or 0) + note.rows.n
    merged = []
    for note, n in n_by_note.items():
        merged.append(note if n is None else replace(note, rows=RowCount(n, n_total)))
    return tuple(merged)
